"""`blade eval profile` on complete, partial and damaged runs: what is written, told and refused; the incumbent's bytes on any."""

from __future__ import annotations

import gzip
import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blade import stats
from blade.errors import BladeError
from blade_eval import aggregate, profile
from blade_eval.aggregate import shards
from blade_eval.profile import scores as hooks
from blade_eval.profile.row_table import encoded
from tests.builders import DROP, make_input, make_row, make_rows
from tests.case_tables import tables
from tests.conftest import Blade
from tests.evaluate import profile_reference as reference
from tests.evaluate.rows import rows_of

Row = dict[str, Any]
CASES = tables(__file__)


def rollouts(rewards: list[list[Any]], **changed: Any) -> list[Row]:
    return make_rows(dict(enumerate(rewards)), **changed)


def inputs_of(rows: list[Row]) -> list[Row]:
    return list(map(make_input, rows))


def line(row: Row) -> bytes:
    return msgspec.json.encode(row) + b"\n"


PAIR = rollouts([[1.0, 0.0]])


class Run:
    """The two files of a run; rows may be given as lines."""

    def __init__(self, folder: Path, inputs: list[Row | bytes], results: list[Row | bytes]) -> None:
        self.inputs, self.rollouts = folder / "r_materialized_inputs.jsonl", folder / "r.jsonl"
        for path, rows in ((self.inputs, inputs), (self.rollouts, results)):
            path.write_bytes(b"".join(row if isinstance(row, bytes) else line(row) for row in rows))

    @property
    def flags(self) -> list[str]:
        return ["--inputs", str(self.inputs), "--rollouts", str(self.rollouts)]

    def profiled(self, **how: Any) -> profile.Profiled:
        return profile.profiled(self.inputs, self.rollouts, **how)


def whole(folder: Path, results: list[Row] | None = None) -> Run:
    rows = rollouts([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]) if results is None else results
    return Run(folder, inputs_of(rows), list(rows))


def test_the_command_writes_three_files_and_tells_the_scores(blade: Blade, tmp_path: Path) -> None:
    result = blade("eval", "profile", *whole(tmp_path).flags)
    assert result.code == 0, result.err
    assert "6/6 rollout rows (100.00%)" in result.out
    assert "Input rows: 3 total; 3 complete; 0 partial; 0 without rollouts dropped from output." in result.out
    assert re.search(r"pass@1 +0\.5000  95% \[.*n = 3 tasks", result.out)
    assert re.search(r"pass@2 +0\.6667  95% \[.*n = 3 tasks", result.out)
    assert "1 always pass, 1 sometimes, 1 never" in result.out
    lines = (tmp_path / "r_reward_profiling.jsonl").read_bytes().splitlines()
    assert [json.loads(entry)["mean/reward"] for entry in lines] == [0.5, 1.0, 0.0]
    document = json.loads(blade("eval", "profile", *whole(tmp_path).flags, "--json").out)
    (agent,) = document["agents"]
    assert agent["pass@k"]["2"]["value"] == pytest.approx(2 / 3)
    assert agent["pass@1"]["ci95"][0] < 0.5 < agent["pass@1"]["ci95"][1]
    assert [task["variance"] for task in agent["per_task"]] == [0.5, 0.0, 0.0]
    assert (agent["pass@1"]["n_tasks"], document["missing"]) == (3, [])
    # abbreviations and overrides are those of the incumbent
    run = whole(tmp_path)
    run.rollouts.write_bytes(b"".join(run.rollouts.read_bytes().splitlines(keepends=True)[:-1]))
    words = ["eval", "profile", "--input", run.inputs, "--rollout", run.rollouts]
    said = blade(*words, "++allow_partial_rollouts=True")
    assert said.code == 0, said.err
    assert "Missing (task:repeat): 2:1" in said.out
    assert [blade(*words, *more).code for more in ((), ("++allow_partial=True",))] == [2, 2]


@pytest.mark.parametrize(("n", "shown"), [(8, [1, 2, 3, 4, 5, 6, 7, 8]), (9, [1, 2, 4, 8, 9]), (64, [1, 2, 4, 8, 16, 32, 64])])
def test_of_many_k_a_readable_few_are_printed(n: int, shown: list[int], blade: Blade, tmp_path: Path) -> None:
    command = ["eval", "profile", *whole(tmp_path, rollouts([[1.0] + [0.0] * (n - 1)])).flags]
    assert [int(k) for k in re.findall(r"pass@(\d+)", blade(*command).out)] == shown
    (agent,) = json.loads(blade(*command, "--json").out)["agents"]
    assert list(agent["pass@k"]) == [str(k) for k in range(1, n + 1)]


@settings(max_examples=10)
@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30), min_size=1, max_size=5))
def test_each_pass_at_k_is_the_formula_to_the_bit(rewards: list[list[float]]) -> None:
    n = np.array([len(of_task) for of_task in rewards])
    c = np.array([int(sum(of_task)) for of_task in rewards])
    with tempfile.TemporaryDirectory() as name:
        (score,) = whole(Path(name), rollouts(rewards)).profiled().scores()
    for k, found in enumerate(score.passing, 1):
        values = stats.pass_at_k(n, c, k)
        assert found.value == values[~np.isnan(values)].mean()
    assert len(score.passing) == n.max()


def test_missing_rollouts_are_listed_and_profiled_only_on_request(tmp_path: Path) -> None:
    rows = rollouts([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    run = Run(tmp_path, inputs_of(rows), list(rows[:3]))
    with pytest.raises(BladeError, match=r"3 of 6 rollouts are missing.*1:1, 2:0, 2:1"):
        run.profiled()
    found = run.profiled(allow_partial=True)
    assert found.tasks() == (3, 1, 1, 1)
    first, second = found.task_entries()
    assert (first["missing_num_rollouts"], second["missing_num_rollouts"]) == (0, 1)
    assert second["reward_profile_completion_pct"] == 50.0
    assert [entry["missing_count"] for entry in found.repeat_entries()] == [0, 1]
    paths = Run(tmp_path, inputs_of(rows), []).profiled(allow_partial=True).write()
    assert [path.read_bytes() for path in paths] == [b"", b"[]", b"[]"]
    # a torn tail is one, and a last line that only lacks its newline is whole
    run = Run(tmp_path, inputs_of(PAIR), [PAIR[0], line(PAIR[1])[:-30]])
    with pytest.raises(BladeError, match=r"0:1; 1 lines could not be read: line 2"):
        run.profiled()
    (notice,) = run.profiled(allow_partial=True).notices
    assert "the file ends inside this line" in notice
    assert Run(tmp_path, inputs_of(PAIR), [PAIR[0], line(PAIR[1])[:-1]]).profiled().notices == []


@pytest.mark.parametrize(("odd", "told"), CASES["odd_lines"])
def test_lines_that_are_no_rows_are_told_and_skipped(odd: str, told: str, tmp_path: Path) -> None:
    rows = rollouts([[1.0, 0.0], [1.0, 1.0]])
    run = Run(tmp_path, inputs_of(rows), [*rows[:2], odd.encode("latin-1"), *rows[2:]])
    found = run.profiled()
    assert any(told in notice for notice in found.notices), found.notices
    assert found.n_came == 4


def test_not_a_number_is_read_as_null_and_told(tmp_path: Path) -> None:
    odd = line(PAIR[1]).replace(b'"reward":0.0', b'"reward":NaN,"note":"NaN"')
    found = Run(tmp_path, inputs_of(PAIR), [PAIR[0], odd]).profiled()
    assert any("line 2 holds NaN" in notice for notice in found.notices)
    entry = json.loads(encoded(next(found.task_entries())))
    assert entry["mean/reward"] == 1.0
    assert "reward" in entry["rollout_infos"][1]
    assert entry["rollout_infos"][1]["reward"] is None
    # the word inside a text is no number
    fine = line(PAIR[1]).replace(b'"reward":0.0', b'"reward":0.0,"note":"NaN"')
    assert Run(tmp_path, inputs_of(PAIR), [PAIR[0], fine]).profiled().notices == []


@pytest.mark.parametrize("long", ["", "x" * 9000])
@pytest.mark.parametrize(
    ("told", "is_beyond"), [(b"1e999", True), (b"-1e999", True), (b"1e308", False), (b"null", False)]
)
def test_a_reward_beyond_any_float_is_null_and_told(told: bytes, is_beyond: bool, long: str, tmp_path: Path) -> None:
    rows = rollouts([[1.0, 0.0]], note=long)
    odd = line(rows[1]).replace(b'"reward":0.0', b'"reward":' + told)
    asked = line(inputs_of(rows)[0]).replace(b'"note":', b'"far":[' + told + b'],"note":')
    done = Run(tmp_path, [asked, inputs_of(rows)[1]], [rows[0], odd]).profiled()
    done.write()
    (task,) = (tmp_path / "r_reward_profiling.jsonl").read_bytes().splitlines()
    found = msgspec.json.decode(task)
    has_value = told == b"1e308"
    assert found["rollout_infos"][1]["reward"] == (1e308 if has_value else None)
    assert found["sample"]["far"] == [1e308 if has_value else None]
    assert found["max/reward"] == (1e308 if has_value else 1.0)
    assert any("line 2 holds" in one and "read as null" in one for one in done.notices) == is_beyond


def test_inputs_follow_the_one_agent_that_their_rollouts_name(tmp_path: Path) -> None:
    rows = rollouts([[1.0, 0.0], [1.0, 0.0]])
    asked = inputs_of(rows)
    other = [row | {"agent_ref": {"name": "other"}} for row in rows]
    done = Run(tmp_path, list(asked), [other[0], other[2]]).profiled(allow_partial=True)
    entries = list(done.task_entries())
    assert [(one["expected_num_rollouts"], one["missing_num_rollouts"]) for one in entries] == [(2, 1)] * 2
    assert not any("agent_ref" in one for one in entries)  # no task is shared
    # near miss: some of its rollouts name it, so the rest of its inputs stay its own
    done = Run(tmp_path, list(asked), [rows[0], other[2]]).profiled(allow_partial=True)
    assert [one["missing_num_rollouts"] for one in done.task_entries()] == [1, 0]


def test_copies_count_once_contradictions_name_both_lines_and_what_no_input_knows_is_refused(tmp_path: Path) -> None:
    found = Run(tmp_path, inputs_of(PAIR), [*PAIR, PAIR[0]]).profiled()
    assert found.n_came == 2
    assert any("1 rollouts stand there again, word for word" in notice for notice in found.notices)
    run = Run(tmp_path, inputs_of(PAIR), [*PAIR, make_row(0, 0, 0.25)])
    with pytest.raises(BladeError, match=r"0:0 in line 1 of .* and in line 3 of"):
        run.profiled()
    assert run.profiled(duplicates="first").agents[0].values["mean/reward"] == 0.5
    assert run.profiled(duplicates="last").agents[0].values["mean/reward"] == 0.125
    for inputs, results, what in (
        (inputs_of(PAIR), [*PAIR, make_row(7, 3)], r"knows nothing: 7:3 \(line 3\)"),
        ([inputs_of(PAIR)[0], b"{oh\n"], list(PAIR), "line 2: not JSON"),
    ):
        with pytest.raises(BladeError, match=what):
            Run(tmp_path, inputs, results).profiled(allow_partial=True)


@pytest.mark.parametrize("index", [DROP, "3", 1.5, True, None, 10**30])
def test_rows_without_indices_are_explained(index: Any, tmp_path: Path) -> None:
    odd = msgspec.json.encode({**PAIR[0], "_ng_task_index": 0})
    other = b'"x":0' if index is DROP else b'"_ng_task_index":' + json.dumps(index).encode()
    odd = odd.replace(b'"_ng_task_index":0', other)
    run = Run(tmp_path, inputs_of(PAIR), [odd + b"\n", PAIR[1]])
    with pytest.raises(BladeError, match=r"line 1: (it has no _ng_task_index|_ng_task_index is .*)"):
        run.profiled(allow_partial=True)


def test_rows_without_response_agent_or_reward_are_profiled(tmp_path: Path) -> None:
    bare = [{"_ng_task_index": 0, "_ng_rollout_index": repeat} for repeat in range(2)]
    found = Run(tmp_path, list(bare), [dict(row, right=bool(at)) for at, row in enumerate(bare)]).profiled()
    assert found.agents[0].name == "agent"
    assert found.agents[0].values["mean/right"] == 0.5
    assert found.scores()[0].mean.n_tasks == 0
    # the agent of the rollout stands for an input that names none
    rows = rollouts([[1.0]])
    found = Run(tmp_path, [{"_ng_task_index": 0, "_ng_rollout_index": 0}], list(rows)).profiled()
    assert found.agents[0].name == "sim_agent"


@pytest.mark.parametrize("pack", [lambda data: gzip.compress(data), lambda data: zstandard.compress(data)])
def test_packed_files_give_the_same_bytes(pack: Any, tmp_path: Path) -> None:
    run = whole(tmp_path)
    plain = [path.read_bytes() for path in run.profiled().write()]
    run.inputs, run.rollouts = tmp_path / "p_materialized_inputs.jsonl.gz", tmp_path / "p.jsonl.gz"
    run.inputs.write_bytes(pack((tmp_path / "r_materialized_inputs.jsonl").read_bytes()))
    run.rollouts.write_bytes(pack((tmp_path / "r.jsonl").read_bytes()))
    paths = run.profiled().write()
    assert paths[0].name == "p_reward_profiling.jsonl"
    assert [path.read_bytes() for path in paths] == plain


def test_partial_rewards_have_a_threshold_and_masked_rollouts_leave_the_statistics(blade: Blade, tmp_path: Path) -> None:
    run = whole(tmp_path, rollouts([[0.5, 0.25], [1.0, 0.75]]))
    (agent,) = json.loads(blade("eval", "profile", *run.flags, "--pass-threshold", "0.75", "--json").out)["agents"]
    assert (agent["mean_reward"]["value"], agent["pass@1"]["value"]) == (0.625, 0.5)
    rows = rollouts([[1.0, 0.0], [0.0, 0.0]])
    for row in rows[1:]:
        row["mask_sample"] = True
    said = blade("eval", "profile", *whole(tmp_path, rows).flags)
    assert "Masked rollouts: 3" in said.out
    (agent,) = json.loads((tmp_path / "r_agent_metrics.json").read_bytes())
    assert agent["mean/reward"] == 1.0
    assert agent["coverage/fully_masked_tasks"] == 1
    assert len((tmp_path / "r_reward_profiling.jsonl").read_bytes().splitlines()) == 1


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.dictionaries(
    st.sampled_from("reward response agent_ref _ng_task_index _ng_rollout_index mask_sample x \ud800".split()),
    st.one_of(values, st.fixed_dictionaries({"usage": values}), st.fixed_dictionaries({"name": values})),
)
odd_lines = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    fields.map(lambda row: json.dumps(row).encode()),
    fields.map(lambda row: json.dumps({"_ng_task_index": 0, "_ng_rollout_index": 0, **row}).encode()),
)


@settings(max_examples=40)
@given(st.lists(odd_lines, max_size=4), st.sampled_from([b"\n", b"\r\n", b""]))
def test_no_file_makes_it_fall_over(lines: list[bytes], end: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        rows = rollouts([[1.0]])
        results = [odd + b"\n" for odd in lines[:-1]] + [b"".join(lines[-1:]) + end]
        run = Run(Path(name), inputs_of(rows), results)
        try:
            found = run.profiled(allow_partial=True, duplicates="last")
        except BladeError:
            return
        found.write()
        json.dumps([score.as_json() for score in found.scores()], allow_nan=False)


@pytest.mark.parametrize(("code", "told"), CASES["hooks"])
def test_what_is_wrong_with_a_hook_is_explained(blade: Blade, code: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)
    said = blade("eval", "profile", *whole(tmp_path).flags, "--metrics", tmp_path / "mine.py")
    assert said.code == 2
    assert told in said.err


def test_a_hook_adds_metrics_of_its_own_and_that_of_the_page_runs(tmp_path: Path) -> None:
    code = "def metrics(tasks):\n    return {'any_right': sum(any(r['reward'] for r in t) for t in tasks) / len(tasks)}\n"
    (tmp_path / "mine.py").write_text(code)
    (agent,) = whole(tmp_path).profiled(hook=hooks.loaded(tmp_path / "mine.py")).agent_entries()
    assert agent["any_right"] == pytest.approx(2 / 3)
    page = (Path(__file__).resolve().parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "mine.py").write_text(code)
    found = whole(tmp_path).profiled(hook=hooks.loaded(tmp_path / "mine.py"))
    (metrics,) = found.custom.values()
    assert metrics
    assert all(math.isfinite(value) for value in metrics.values())
    odd = "{'a': float('nan'), 'b': float('inf'), 'c': -float('inf'), 'd': 10 ** 400, 'even': 1e300}"
    (tmp_path / "mine.py").write_text(f"def metrics(tasks):\n    return {odd}\n")
    whole(tmp_path).profiled(hook=hooks.loaded(tmp_path / "mine.py")).write()
    (agent,) = json.loads((tmp_path / "r_agent_metrics.json").read_bytes())
    assert (agent["even"], agent.keys() & set("abcd")) == (1e300, set())  # what is undefined is absent


rewards = st.sampled_from([0.0, -0.0, 1.0, 0.1, 0.2, 0.7, 1 / 3, -1.0, 0.30000000000000004])
wild = st.one_of(
    st.floats(-1e6, 1e6, allow_nan=False).filter(lambda x: x != 0 and abs(x) > 1e-6),
    st.floats(1e-9, 1e100) | st.floats(-1e100, -1e-9),
    st.sampled_from([0.0, -0.0]),
)
columns = st.dictionaries(
    st.sampled_from(["score", "is_right", "wer", "turns", "a note", "_hidden"]),
    st.one_of(wild, st.integers(-(2**40), 2**40), st.booleans(), st.none(), st.just("text"), st.just([1, 2])),
    max_size=4,
)
usages = st.one_of(
    st.none(),
    st.fixed_dictionaries({"input_tokens": st.integers(0, 9999), "output_tokens": st.integers(0, 9999)}),
    st.fixed_dictionaries({"cost": wild, "input_tokens": st.integers(0, 99), "details": st.just({"cached": 3})}),
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Inputs and rollouts of a complete run: sparse tasks, uneven repeats, agents that may share tasks."""
    tasks = draw(st.lists(st.integers(0, 900), min_size=1, max_size=6, unique=True))
    names = draw(st.sampled_from([["desk"], ["desk"], ["zeta", "alpha"]]))
    shares = draw(st.booleans())
    can_mask = draw(st.booleans())
    inputs, results = [], []
    for at, task in enumerate(sorted(tasks)):
        for agent in names if shares else [names[at % len(names)]]:
            for repeat in range(draw(st.integers(1, 11))):
                key = {"_ng_task_index": task, "_ng_rollout_index": repeat}
                ref = {"agent_ref": {"type": "responses_api_agents", "name": agent}}
                asked = {"responses_create_params": {"input": f"frage {task} ✓"}, "weight": 1.50, **ref}
                inputs.append({**asked, **key})
                has_reward = draw(st.sampled_from([{"reward": draw(rewards)}] * 8 + [{"reward": None}, {}]))
                masked = {"mask_sample": draw(st.booleans())} if can_mask else {}
                response = draw(st.sampled_from([{"response": {"id": "r", "usage": draw(usages)}}] * 5 + [{}]))
                results.append({**response, **has_reward, **draw(columns), **masked, **key, **ref})
    return inputs, draw(st.permutations(results))


SPARSE: list[Row] = [{"_ng_task_index": 0, "_ng_rollout_index": n, "agent_ref": {"name": "desk"}} for n in range(2)]


@example((SPARSE, [SPARSE[0] | {"reward": 1.0}, SPARSE[1] | {"score": 2.0}]))  # no column that all rows have
@settings(max_examples=8)
@given(runs())
def test_profile_and_aggregate_files_have_the_bytes_of_the_rules(run: tuple[list[Row], list[Row]]) -> None:
    expected = reference.aggregate(run[1])
    assert aggregate.content(aggregate.aggregate_metrics(run[1])) == expected
    with tempfile.TemporaryDirectory() as name:
        stored = Run(Path(name), *run)
        stored.profiled().write()
        shards.merged([str(stored.rollouts)], Path(name) / "whole.jsonl")
        for ending, content in {**reference.files(*run), "_aggregate_metrics.json": expected}.items():
            stem = "whole" if ending == "_aggregate_metrics.json" else "r"
            assert (Path(name) / f"{stem}{ending}").read_bytes() == content, ending


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e14, 1e18) | st.integers(0, 2**63)
# Texts that look like numbers, and those that end where they do not seem to.
texts = st.text() | st.lists(st.sampled_from(["1e16", '"', "\\", ":", "2e5,", "e"]), max_size=6).map("".join)


@settings(max_examples=100)
@given(st.dictionaries(texts, st.one_of(numbers, texts, st.lists(numbers, max_size=3))))
def test_every_number_is_spelled_as_the_incumbent_spells_it(value: Row) -> None:
    assert encoded(value) == orjson.dumps(value)


def test_golden(tmp_path: Path) -> None:
    """Two agents, shuffled and unequal repeats, a task of one row, gaps, a field that both row and usage have, a mask, a missing row."""
    golden = Path(__file__).parent / "golden"
    run = Run(tmp_path, *(rows_of(golden / f"run_{name}.jsonl") for name in ("inputs", "rollouts")))
    run.profiled(allow_partial=True).write()
    shards.merged([str(run.rollouts)], tmp_path / "whole.jsonl")
    for stem, ending in (*(("r", name) for name in ("reward_profiling.jsonl", "agent_metrics.json", "repeat_level_metrics.json")),
                         ("whole", "aggregate_metrics.json")):  # fmt: skip
        assert (tmp_path / f"{stem}_{ending}").read_bytes() == (golden / f"profile_{ending}").read_bytes(), ending
