"""Materialised rows: whose task a line is, how often it runs, in which order, and what stands in it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.environment import Row
from blade_eval.runner import benchmark_run as run_settings
from blade_eval.runner import inputs, json_lines
from blade_eval.runner.inputs import Source, Wanted


def line(name: str, **more: Any) -> str:
    return json.dumps({"responses_create_params": {"input": name}, **more})


def rows(tmp: Path, lines: list[str], wanted: Wanted | None = None, **source: Any) -> list[Row]:
    path = tmp / "in.jsonl"
    path.write_text("".join(text + "\n" for text in lines))
    return list(inputs.materialized([Source(path, **source)], wanted or Wanted()))


def keys(made: list[Row]) -> list[tuple[int, int]]:
    return [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in made]


A, B, C = line("a"), line("b"), line("c")


def test_lines_of_the_same_text_are_one_task_with_the_number_of_the_first(tmp_path: Path) -> None:
    assert keys(rows(tmp_path, [A, A, B, "", C, A])) == [(0, 0), (0, 1), (2, 0), (3, 0), (0, 2)]


def test_repeats_set_and_limit_counts_tasks(tmp_path: Path) -> None:
    lines = [A, A, B, C]
    assert keys(rows(tmp_path, lines, Wanted(repeats=2))) == [(0, 0), (0, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert keys(rows(tmp_path, lines, Wanted(limit=2))) == [(0, 0), (0, 1), (2, 0)]
    assert keys(rows(tmp_path, [A, B], Wanted(repeats=2), repeats=3)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert keys(rows(tmp_path, [A, B], Wanted(limit=1), repeats=3)) == [(0, 0), (0, 1), (0, 2)]


def test_in_gyms_sense_limit_counts_lines_and_repeats_multiply(tmp_path: Path) -> None:
    gym = Wanted(gym=True, limit=4)
    assert keys(rows(tmp_path, [A, B], gym, repeats=3)) == [(0, 0), (0, 1), (0, 2), (3, 0)]
    twice = Wanted(gym=True, repeats=2)
    assert keys(rows(tmp_path, [A, A, B], twice)) == [(0, 0), (0, 1), (0, 2), (0, 3), (2, 0), (2, 1)]
    assert len(rows(tmp_path, [A, B], twice, repeats=3)) == 12


def test_repeats_by_agent(tmp_path: Path) -> None:
    lines = [line("a", agent_ref={"name": "x"}), line("b", agent_ref={"name": "y"}), line("c")]
    made = rows(tmp_path, lines, Wanted(repeats={"x": 3, "_default": 2}))
    assert Counter(row["_ng_task_index"] for row in made) == {0: 3, 1: 2, 2: 2}


def test_interleaved_is_the_same_rows_in_another_order(tmp_path: Path) -> None:
    plain = rows(tmp_path, [A, B, C], Wanted(repeats=2))
    other = rows(tmp_path, [A, B, C], Wanted(repeats=2, interleaved=True))
    assert keys(other) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert sorted(map(json_lines.line, plain)) == sorted(map(json_lines.line, other))


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=20),
    shards=st.integers(1, 5),
    repeats=st.none() | st.integers(1, 3),
    limit=st.none() | st.integers(1, 6),
    gym=st.booleans(),
    interleaved=st.booleans(),
)
def test_shards_are_disjoint_by_task_and_together_the_whole(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], shards: int, repeats: int | None,
    limit: int | None, gym: bool, interleaved: bool,
) -> None:  # fmt: skip
    tmp = tmp_path_factory.mktemp("shards")
    lines = [line(text) for text in texts]

    def wanted(shard: tuple[int, int] | None) -> Wanted:
        return Wanted(repeats=repeats, limit=limit, gym=gym, interleaved=interleaved, shard=shard)

    whole = rows(tmp, lines, wanted(None), repeats=2)
    parts = [rows(tmp, lines, wanted((number, shards)), repeats=2) for number in range(1, shards + 1)]
    assert len(set(keys(whole))) == len(whole)
    assert sorted(json_lines.line(row) for part in parts for row in part) == sorted(map(json_lines.line, whole))
    tasks = [{row["_ng_task_index"] for row in part} for part in parts]
    assert sum(map(len, tasks)) == len(set().union(*tasks))
    sizes = [len(part) for part in tasks]
    assert max(sizes) - min(sizes) <= 1


def test_the_indices_are_the_last_keys_and_sampling_reaches_every_row(tmp_path: Path) -> None:
    wanted = Wanted(params={"temperature": 0.5, "max_output_tokens": 9}, agent="me")
    first = rows(tmp_path, [line("a", agent_ref={"name": "x"}, answer=1)], wanted)[0]
    assert list(first) == [
        "responses_create_params",
        "agent_ref",
        "answer",
        "_ng_task_index",
        "_ng_rollout_index",
    ]
    assert first["responses_create_params"] == {"input": "a", "temperature": 0.5, "max_output_tokens": 9}
    assert first["agent_ref"] == {"name": "me"}


def test_rows_without_an_agent_get_that_of_their_dataset(tmp_path: Path) -> None:
    made = rows(tmp_path, [A, line("b", agent_ref={"name": "x"})], agent="mine")
    assert [row["agent_ref"]["name"] for row in made] == ["mine", "x"]


def test_seeds_are_the_repeats_in_a_text_of_json(tmp_path: Path) -> None:
    given = (
        line("a")[:-1].replace('"a"', '"a", "metadata": {"k": "v", "extra_body": "{\\"top_k\\": 3}"}') + "}"
    )
    made = rows(tmp_path, [given], Wanted(repeats=2, seeds=True))
    bodies = [row["responses_create_params"]["metadata"] for row in made]
    assert [json.loads(body["extra_body"]) for body in bodies] == [
        {"top_k": 3, "seed": 0},
        {"top_k": 3, "seed": 1},
    ]
    assert all(body["k"] == "v" for body in bodies)


def test_numbers_that_rows_give_are_kept(tmp_path: Path) -> None:
    made = rows(
        tmp_path, [line("a", _ng_task_index=7), line("b", _ng_task_index=7), line("c", _ng_task_index=3)]
    )
    assert keys(made) == [(7, 0), (7, 1), (3, 0)]
    with pytest.raises(Unreadable, match="some rows give their _ng_task_index"):
        rows(tmp_path, [line("a", _ng_task_index=1), B])


def test_prompts_are_filled_from_columns_and_from_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text('system: "Be {tone}."\nuser: "Q: {q} {{literal}}"\n')
    prompt = inputs.load_prompt(path)
    row = rows(tmp_path, [json.dumps({"q": "{tone}?", "tone": 3})], prompt=prompt)[0]
    assert row["responses_create_params"]["input"] == [
        {"role": "system", "content": "Be 3."},
        {"role": "user", "content": "Q: {tone}? {literal}"},
    ]
    with pytest.raises(UsageError, match=r"1 row\(s\) have no column 'tone'.*columns of the first are q"):
        rows(tmp_path, [json.dumps({"q": 1})], prompt=prompt)
    with pytest.raises(
        UsageError, match=r"2 row\(s\) have a responses_create_params.input of their own.*tasks 0, 1"
    ):
        rows(tmp_path, [A, B], prompt=prompt)
    with pytest.raises(UsageError, match="no prompt to make one from"):
        rows(tmp_path, [json.dumps({"q": 1})])


@pytest.mark.parametrize(
    "text", ["system: x\n", "user: [1]\n", 'user: "{"\n', 'user: "{}"\n', "user: a: b: c\n", "- 1\n"]
)
def test_a_prompt_that_cannot_be_used_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(BladeError) as caught:
        inputs.load_prompt(path)
    assert caught.value.slug == "bad-prompt"


def test_lines_that_are_no_rows_are_named(tmp_path: Path) -> None:
    for text in ("{", "[1]", "1"):
        with pytest.raises(Unreadable, match="line 2"):
            rows(tmp_path, [A, text])


def test_strange_numbers_and_half_characters_are_written_as_json(tmp_path: Path) -> None:
    made = rows(
        tmp_path,
        ['{"responses_create_params": {"input": "\\ud800"}, "x": NaN, "n": 123456789012345678901234567890}'],
    )
    again = json.loads(json_lines.line(made[0]), parse_constant=lambda _: pytest.fail("no JSON"))
    assert again["x"] is None
    assert again["n"] == 123456789012345678901234567890
    assert again["responses_create_params"]["input"] == "?"


def test_what_flags_and_overrides_mean() -> None:
    flags, params, rest = run_settings.parsed_overrides(
        ["+skills.path=s", "++num_repeats_add_seed=true", "+num_repeats={_default: 4, a: 2}", "a.b=1",
         "++responses_create_params.temperature=0.3"]
    )  # fmt: skip
    assert flags == {"skills": "s", "seeds": True, "num_repeats": {"_default": 4, "a": 2}}
    assert params == {"temperature": 0.3}
    assert rest == ("a.b=1",)
    assert run_settings.parsed_repeats("{a: 2, _default: 1}") == {"a": 2, "_default": 1}
    assert run_settings.parsed_shard("2/8") == (2, 8)
    for wrong in ("0/2", "3/2", "1", "a/b", "1/0"):
        with pytest.raises(UsageError):
            run_settings.parsed_shard(wrong)
    for number in ("0", "x", "-1", True):
        with pytest.raises(UsageError):
            run_settings.parsed_repeats(number)


@pytest.mark.parametrize(("value", "count"), [("5", 5), ("x", 3), ("0", 3)])
def test_attempts_come_from_gyms_variable(monkeypatch: pytest.MonkeyPatch, value: str, count: int) -> None:
    monkeypatch.setenv(run_settings.ATTEMPTS_VARIABLE, value)
    told: list[str] = []
    assert run_settings.max_attempts(None, told.append) == count
    assert bool(told) == (value != "5")
    assert run_settings.max_attempts(0, told.append) == 1
