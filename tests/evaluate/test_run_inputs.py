"""Materialised rows: whose task a line is, how often it runs, in which order, and what stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.environment import Row
from blade_eval.runner import benchmark_run, inputs, json_lines
from blade_eval.runner.inputs import Source, Wanted
from tests.case_tables import tables
from tests.evaluate.rows import key


def line(name: str, **more: Any) -> str:
    return json.dumps({"responses_create_params": {"input": name}, **more})


def rows(tmp: Path, lines: list[str], wanted: Wanted | None = None, **source: Any) -> list[Row]:
    path = tmp / "in.jsonl"
    path.write_text("".join(text + "\n" for text in lines))
    return list(inputs.materialized([Source(path, **source)], wanted or Wanted()))


A, B = line("a"), line("b")
CASES = tables(__file__)


@pytest.mark.parametrize("case", CASES["repeats"])
def test_which_lines_run_how_often(tmp_path: Path, case: dict[str, Any]) -> None:
    lines = ["" if entry == "" else line(entry) if isinstance(entry, str) else line(**entry) for entry in case["lines"]]
    result = map(key, rows(tmp_path, lines, Wanted(**case.get("wanted", {})), repeats=case.get("repeats", 1)))
    assert " ".join(f"{task}{repeat}" for task, repeat in result) == case["runs"]


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=20), shards=st.integers(1, 5),
    repeats=st.none() | st.integers(1, 3), limit=st.none() | st.integers(1, 6), gym=st.booleans(), interleaved=st.booleans(),
)  # fmt: skip
def test_shards_are_disjoint_by_task_and_together_the_whole(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], shards: int, repeats: int | None,
    limit: int | None, gym: bool, interleaved: bool,
) -> None:  # fmt: skip
    tmp, lines = tmp_path_factory.mktemp("shards"), list(map(line, texts))

    def part(shard: tuple[int, int] | None) -> list[Row]:
        wanted = Wanted(repeats=repeats, limit=limit, gym=gym, interleaved=interleaved, shard=shard)
        return rows(tmp, lines, wanted, repeats=2)

    whole, parts = part(None), [part((number, shards)) for number in range(1, shards + 1)]
    assert len(set(map(key, whole))) == len(whole)
    assert sorted(json_lines.line(row) for part in parts for row in part) == sorted(map(json_lines.line, whole))
    tasks = [{row["_ng_task_index"] for row in part} for part in parts]
    assert sum(map(len, tasks)) == len(set().union(*tasks))
    assert max(map(len, tasks)) - min(map(len, tasks)) <= 1


def test_the_indices_are_the_last_keys_and_sampling_reaches_every_row(tmp_path: Path) -> None:
    wanted = Wanted(params={"temperature": 0.5, "max_output_tokens": 9}, agent="me")
    (first,) = rows(tmp_path, [line("a", agent_ref={"name": "x"}, answer=1)], wanted)
    assert list(first) == ["responses_create_params", "agent_ref", "answer", "_ng_task_index", "_ng_rollout_index"]
    assert first["responses_create_params"] == {"input": "a", "temperature": 0.5, "max_output_tokens": 9}
    assert first["agent_ref"] == {"name": "me"}
    of_dataset = rows(tmp_path, [A, line("b", agent_ref={"name": "x"})], agent="mine")
    assert [row["agent_ref"]["name"] for row in of_dataset] == ["mine", "x"]
    # seeds are the repeats, in a text of JSON
    metadata = {"k": "v", "extra_body": '{"top_k": 3}'}
    text = json.dumps({"responses_create_params": {"input": "a", "metadata": metadata}})
    result = [row["responses_create_params"]["metadata"] for row in rows(tmp_path, [text], Wanted(repeats=2, seeds=True))]
    assert result == [{"k": "v", "extra_body": f'{{"top_k": 3, "seed": {seed}}}'} for seed in (0, 1)]
    # strange numbers and half characters are written as JSON
    (row,) = rows(tmp_path, ['{"responses_create_params": {"input": "\\ud800"}, "x": NaN, "n": 123456789012345678901234567890}'])
    again = json.loads(json_lines.line(row), parse_constant=lambda _: pytest.fail("no JSON"))
    assert (again["x"], again["n"], again["responses_create_params"]["input"]) == (None, 123456789012345678901234567890, "?")


def test_prompts_are_filled_from_columns_and_from_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text('system: "Be {tone}."\nuser: "Q: {q} {{literal}}"\n')
    prompt = inputs.load_prompt(path)
    (row,) = rows(tmp_path, [json.dumps({"q": "{tone}?", "tone": 3})], prompt=prompt)
    messages = [("system", "Be 3."), ("user", "Q: {tone}? {literal}")]
    assert [(part["role"], part["content"]) for part in row["responses_create_params"]["input"]] == messages
    for lines, template, error in (
        ([json.dumps({"q": 1})], prompt, r"1 row\(s\) have no column 'tone'.*columns of the first are q"),
        ([A, B], prompt, r"2 row\(s\) have a responses_create_params.input of their own.*tasks 0, 1"),
        ([json.dumps({"q": 1})], None, "no prompt to make one from"),
    ):
        with pytest.raises(UsageError, match=error):
            rows(tmp_path, lines, prompt=template)


@pytest.mark.parametrize("text", ["system: x\n", "user: [1]\n", 'user: "{"\n', 'user: "{}"\n', "user: a: b: c\n", "- 1\n"])
def test_a_prompt_that_cannot_be_used_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(BladeError) as error:
        inputs.load_prompt(tmp_path / "p.yaml")
    assert error.value.slug == "bad-prompt"


@pytest.mark.parametrize("text", ["{", "[1]", "1", line("b", _ng_task_index=1)])
def test_lines_that_are_no_rows_or_only_some_of_which_have_a_number_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(Unreadable, match="line 2"):
        rows(tmp_path, [A, text])


def test_what_flags_overrides_and_gyms_variable_of_attempts_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, count in (("5", 5), ("x", 3), ("0", 3)):
        monkeypatch.setenv(benchmark_run.ATTEMPTS_VARIABLE, value)
        notes: list[str] = []
        assert [benchmark_run.max_attempts(retries, notes.append) for retries in (None, 0)] == [count, 1]
        assert bool(notes) == (value != "5")
    words = ["+skills.path=s", "++num_repeats_add_seed=true", "+num_repeats={_default: 4, a: 2}", "a.b=1"]
    flags, params, rest = benchmark_run.parsed_overrides([*words, "++responses_create_params.temperature=0.3"])
    assert flags == {"skills": "s", "seeds": True, "num_repeats": {"_default": 4, "a": 2}}
    assert (params, rest) == ({"temperature": 0.3}, ("a.b=1",))
    assert benchmark_run.parsed_repeats("{a: 2, _default: 1}") == {"a": 2, "_default": 1}
    assert benchmark_run.parsed_shard("2/8") == (2, 8)
    for parse, texts in ((benchmark_run.parsed_shard, "0/2 3/2 1 a/b 1/0".split()), (benchmark_run.parsed_repeats, ["0", "x", "-1", True])):
        for text in texts:
            with pytest.raises(UsageError):
                parse(text)


