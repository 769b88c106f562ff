"""Rows and sidecars to runs: keys, attempts, duplicates, what was expected, and the same answer in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.builders import DROP, Row, encode, joined, make_input, make_row, make_rows, make_run, packed
from tests.conftest import Blade, Said
from tests.same import of_rows
from tools.planted import FAULTS, write_run

Load = Callable[..., Any]
ROWS = make_rows({0: [1.0, 0.0], 1: [1.0, 1.0], 2: [0.0, 0.0]})


def coverage(said: Said) -> dict[str, int]:
    run = said.run
    assert run["expected_rollouts"] == run["scored"] + run["failed"] + run["masked"] + run["lost"]
    return {name: run[name] for name in ("scored", "failed", "masked", "lost") if run[name]}


# -- attempts, duplicates, what was expected ------------------------------------------------------


def without(rows: Sequence[Row], **changed: Any) -> list[Row]:
    return [{key: value for key, value in {**row, **changed}.items() if value is not DROP} for row in rows]


class Case(NamedTuple):
    """Rows and sidecars, how many keys came to what, and what else the run, its keys and its health say."""

    rows: list[Row]
    coverage: dict[str, int]
    run: dict[str, Any] | None = None
    keys: dict[str, Any] | None = None
    flags: tuple[str, ...] = ()
    no_flags: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    tasks: tuple[str, ...] | None = None
    inputs: list[Row] | None = None
    failures: list[Row] | None = None


UNNUMBERED = without(ROWS, _ng_rollout_index=DROP)
NEGATIVE = [make_row(0, -1), make_row(0, 0)]
LATER = make_rows({3: [0.0, 0.0]})
TRANSPORT = {"_ng_task_index": 2, "_ng_rollout_index": 1, "_ng_failure_class": "agent_request_failed", "_ng_failure_http_status": 503}
COUNTED = {
    "the highest attempt wins": Case(
        [make_row(0, 0, 0.0), make_row(0, 0, 0.5, _ng_attempt_index=1), make_row(0, 0, 1.0, _ng_attempt_index=2), make_row(0, 1)],
        {"scored": 2}, {"n_rollouts": 2, "duplicates": 0, "score": 1.0}, flags=("superseded_attempts",)),
    "two rows of the highest attempt differ": Case(
        [make_row(0, 0, 0.0), *(make_row(0, 0, value, _ng_attempt_index=1) for value in (0.0, 1.0)), make_row(0, 1)],
        {"scored": 2}, {"n_rollouts": 3, "duplicates": 1, "score": pytest.approx(2 / 3)}),
    "identical rows without numbers are repeats": Case(
        without([make_row(0, 0)] * 3 + [make_row(1, 0, 0.0)] * 3, _ng_rollout_index=DROP), {"scored": 6}, {"duplicates": 0}),
    "failures only, one line per attempt": Case(
        ROWS[:5], {"scored": 5, "failed": 1}, flags=("failed_rows",), failures=without([ROWS[5]] * 2, _ng_failure_class="judge_failed")),
    "failures that were completed later": Case(ROWS, {"scored": 6}, failures=without(ROWS[:3], _ng_failure_class="timeout_exceeded")),
    "a task that only failed": Case(ROWS, {"scored": 6, "failed": 2}, missing=("7",), failures=[make_row(7, 0), make_row(7, 1)]),
    "transport failures without reward or response": Case(ROWS[:5], {"scored": 5, "failed": 1}, failures=[TRANSPORT]),
    "by materialised inputs": Case(
        ROWS[:5], {"scored": 5, "lost": 3}, no_flags=("expected_inferred",), missing=("3",), inputs=[*ROWS, *LATER]),
    "by materialised inputs without repeat numbers": Case(UNNUMBERED[:5], {"scored": 5, "lost": 1}, inputs=UNNUMBERED),
    "by inference": Case(
        [row for row in make_rows({n: [1.0] * 4 for n in range(4)}) if (row["_ng_task_index"], row["_ng_rollout_index"]) != (2, 1)],
        {"scored": 15, "lost": 1}, {"repeats": 4}, {"lost_keys": (("2", 1),)}, ("expected_inferred", "lost_rows")),
    "duplicates are counted per row": Case(
        [*ROWS, ROWS[0], ROWS[0], make_row(1, 0, 0.0), make_row(1, 0, 0.25)], {"scored": 6}, {"duplicates": 4, "expected_rollouts": 6},
        {"identical_duplicates": 2, "duplicate_keys": (("1", 0),)}),
    "sparse indices": Case(make_rows({28: [1.0, 0.0], 598: [1.0, 1.0], 10**12: [0.0, 0.0]}), {"scored": 6}, tasks=("28", "598", str(10**12))),
    "unexpected keys": Case([*ROWS, make_row(8, 0)], {"scored": 7}, flags=("unexpected_keys",), inputs=ROWS),
    "negative repeats match their inputs": Case(NEGATIVE, {"scored": 2}, no_flags=("unexpected_keys",), inputs=NEGATIVE),
    "masked": Case(
        [{**row, "mask_sample": place in (0, 5)} for place, row in enumerate(ROWS)], {"scored": 4, "masked": 2},
        {"score": pytest.approx(1 / 3)}, inputs=ROWS),
    "a key with a masked and a valid row is scored": Case([*ROWS, make_row(0, 0, 0.0, mask_sample=True)], {"scored": 6}),
    "all masked": Case(without(ROWS, mask_sample=True), {"masked": 6}, {"score": None}, missing=("0", "1", "2")),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_what_was_expected_and_what_came(tmp_path: Path, diagnosed: Blade, loaded: Load, name: str) -> None:
    case = COUNTED[name]
    sidecars: dict[str, Any] = {} if case.failures is None else {"failures": case.failures}
    if case.inputs is not None:
        sidecars["inputs"] = map(make_input, case.inputs)
    path = make_run(tmp_path, case.rows, **sidecars)
    said, counted = diagnosed(path), loaded(path)[0].run.coverage
    assert coverage(said) == case.coverage
    assert not case.keys or {key: getattr(counted, key) for key in case.keys} == case.keys
    assert case.tasks in (None, tuple(task["task"] for task in said.report["tasks"]))
    assert not case.run or {key: said.run[key] for key in case.run} == case.run
    assert set(case.flags) <= said.flags
    assert not set(case.no_flags) & said.flags
    assert [task for bucket in said.report["buckets"] for task in bucket["missing"]] == list(case.missing)


# -- agents ---------------------------------------------------------------------------------------

ANN, BOB = ([{**row, "agent_ref": {"name": name}} for row in ROWS] for name in ("ann", "bob"))
NAMELESS = [make_row(9, 0, agent_ref=DROP), make_row(9, 1, agent_ref=None)]
# rows, inputs, failures -> name, agent and keys scored, failed and lost of each run
AGENTS: dict[str, tuple[list[Row], list[Row] | None, list[Row] | None, list[Any]]] = {
    "several with sidecars": (ANN + BOB[:4], ANN + BOB, BOB[4:5], [("x:ann", "ann", 6, 0, 0), ("x:bob", "bob", 4, 1, 1)]),
    "several beside none": (ANN + BOB + NAMELESS, None, None, [("x:ann", "ann", 6, 0, 0), ("x:bob", "bob", 6, 0, 0), ("x:(no agent named)", None, 2, 0, 0)]),
    "one that only the sidecars name": (ANN, ANN + BOB, None, [("x:ann", "ann", 6, 0, 0), ("x:bob", "bob", 0, 0, 6)]),
    "one beside none": (ANN + NAMELESS, None, None, [("x", "ann", 8, 0, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("case", AGENTS)
def test_each_agent_has_a_run_and_sidecars_of_its_own(tmp_path: Path, diagnosed: Blade, case: str) -> None:
    rows, inputs, failures, runs = AGENTS[case]
    said = diagnosed(f"x={make_run(tmp_path, rows, inputs=inputs and map(make_input, inputs), failures=failures)}")
    assert [tuple(run[key] for key in ("name", "agent", "scored", "failed", "lost")) for run in said.report["runs"]] == runs
    assert len(runs) == 1 or f"holds {len(runs)} agents" in said.err


def test_long_names_of_agents_and_models(tmp_path: Path, diagnosed: Blade) -> None:
    model = "/checkpoints/" + "m" * 900
    rows = [{**row, "agent_ref": {"name": name * 900}, "response": {**row["response"], "model": model}} for name in "ab" for row in ROWS]
    runs = diagnosed(make_run(tmp_path, rows)).report["runs"]
    assert [(run["agent"], run["model"]) for run in runs] == [("a" * 900, model), ("b" * 900, model)]


# -- rows without indices -------------------------------------------------------------------------


def unnumbered(rows: Sequence[Row], **changed: Any) -> list[Row]:
    return without(rows, **{"_ng_task_index": DROP, "_ng_rollout_index": DROP, **changed})


BARE = unnumbered(ROWS)
EIGHT, NINE = unnumbered(make_rows({8: [1.0, 1.0]}), task_id="eight"), unnumbered(make_rows({9: [1.0, 1.0]}), _ng_task_index="nine")
GROUPED = {
    **{field: ([{**row, field: f"id-{at // 2}", "question": str(at)} for at, row in enumerate(BARE)], ["id-0", "id-1", "id-2"])
       for field in ("task_id", "problem_id", "instance_id")},
    "case": ([{**row, "case": at // 2, "task_id": "same"} for at, row in enumerate(BARE)], ["0", "1", "2"]),  # as declared
    "content of the task fields": (BARE, None),
    "_ng_task_index and task_id": ([*ROWS, *EIGHT, *NINE], ["0", "1", "2", "eight", "nine"]),
}  # fmt: skip


@pytest.mark.parametrize("by", GROUPED)
def test_what_tasks_are_grouped_by(tmp_path: Path, diagnosed: Blade, by: str) -> None:
    rows, names = GROUPED[by]
    path = make_run(tmp_path, rows)
    if by == "case":
        (tmp_path / "blade.toml").write_text('task_id = "case"')
    said = diagnosed(path)
    assert names in (None, [task["task"] for task in said.report["tasks"]])
    assert [task["n"] for task in said.report["tasks"]] == [2] * (len(rows) // 2)
    assert said.run["settings"]["tasks grouped by"] == by
    assert coverage(said) == {"scored": len(rows)}


def test_sidecars_with_indices_beside_rows_without(tmp_path: Path, diagnosed: Blade) -> None:
    """Nothing could match them, and to call everything lost would be wrong."""
    said = diagnosed(make_run(tmp_path, unnumbered(ROWS), inputs=map(make_input, ROWS), failures=ROWS[:1]))
    assert coverage(said) == {"scored": 6}
    assert said.err.count("carry no task index") == 2


# -- the same answer in any order -----------------------------------------------------------------


def odd_rows() -> list[Row | bytes]:
    """Rows of many shapes; which of them meet in a block must not matter."""
    rows: list[Row | bytes] = []
    for n in range(12):
        for at in range(3):
            told = {"task_id": f"t{n}", "level": n % 3, "options": ["A", "B"], "metadata": {"a": n, "b": [at]}}
            rows.append(make_row(n, at, float((n + at) % 2), **told))
    rows += [make_row(n, 0, None, extra={"x": 1}, level="text") for n in range(12, 15)]
    rows += [make_row(3, 1, 0.0, note="differs"), make_row(3, 1, 0.5), make_row(4, 0, 0.25), make_row(4, 0, 0.25)]
    rows += [make_row(5, 0, 1.0, _ng_attempt_index=1), make_row("odd", 0), make_row(6, "x", 1.0, big=10**400)]
    rows += [make_row(7, DROP, value, mask_sample=True) for value in (0.0, 1.0)]
    rows += [encode(make_row(20, at, 1.0)).replace(b"1.0", b"NaN", 1) for at in range(3)]
    rows += [make_row(21, 0, response="text"), make_row(21, 1, response={"output": [None, "x"]}), make_row(21, 2, agent_ref="sim_agent")]
    rows += [make_row(22, at, **{f"k{at}-{k}": k for k in range(250)}) for at in range(3)]
    rows += [make_row(23, at, metadata={f"m{at}-{k}": k for k in range(250)}) for at in range(3)]
    return rows


@pytest.fixture
def told(blade: Blade) -> Callable[..., dict[str, Any]]:
    """The report on `x=PATH` without what may differ."""

    def report(path: object) -> dict[str, Any]:
        return of_rows(blade("diagnose", "--json", f"x={path}").report)

    return report


@pytest.mark.parametrize("has_indices", [True, False])
def test_order_shards_and_compression_do_not_matter(tmp_path: Path, told: Callable[..., dict[str, Any]], has_indices: bool) -> None:
    bare = unnumbered([row for row in odd_rows() if isinstance(row, dict)])
    lines = [*odd_rows(), b"<PLACEHOLDER ROW>", b"[1]", b'{"torn": '] if has_indices else bare
    expected = told(make_run(tmp_path / "as-is", lines))
    mixed = random.Random(0).sample(lines, len(lines))
    assert told(make_run(tmp_path / "mixed", mixed, compress="zst")) == expected
    for shard in range(7):
        make_run(tmp_path / "shards", mixed[shard::7], name=f"r-{shard:05d}-of-00007", compress=(None, "gz", "zst")[shard % 3])
    assert told(tmp_path / "shards") == told(f"{tmp_path}/shards/*") == expected


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, *(name for name in FAULTS if name != "torn_tail")])
def test_order_does_not_matter_for_simulated_runs(tmp_path: Path, told: Callable[..., dict[str, Any]], fault: str | None) -> None:
    planted = write_run(tmp_path, n_tasks=8, repeats=3, faults=[fault] if fault else [])
    expected = told(planted.path)
    lines = planted.path.read_bytes().splitlines()
    planted.path.unlink()
    planted.path.with_suffix(".jsonl.zst").write_bytes(packed(joined(reversed(lines)), "zst"))
    assert told(planted.path.with_suffix(".jsonl.zst")) == expected


def test_block_borders_do_not_matter(tmp_path: Path, told: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rows are decoded together decides only how fast it goes."""
    from blade.formats import columns, lines

    rows = odd_rows()
    expected = told(make_run(tmp_path / "a", rows))
    for size in (1000, 20_000):
        monkeypatch.setattr(lines, "BLOCK_BYTES", size)
        monkeypatch.setattr(columns, "PART_ROWS", size // 250)
        assert told(make_run(tmp_path / str(size), rows)) == expected


def test_reading_again_and_the_order_of_the_sidecars_change_nothing(tmp_path: Path, told: Callable[..., dict[str, Any]]) -> None:
    path = make_run(tmp_path, odd_rows())
    told(path)
    with path.open("ab") as file:
        file.write(joined([make_row(50, 0)]))
    grown = told(path)
    assert grown == told(make_run(tmp_path / "new", [*odd_rows(), make_row(50, 0)]))
    inputs = [make_input(row) for row in ROWS]
    failed = [{**ROWS[5], "_ng_failure_class": name} for name in ("judge_failed", "timeout_exceeded", "judge_failed", "agent_run_error")]
    failed += [{**ROWS[4], "_ng_failure_class": name, "_ng_attempt_index": at} for at, name in ((2, "first"), (1, "zeroth"))]
    expected = told(make_run(tmp_path / "a", ROWS[:4], inputs=inputs, failures=failed))
    assert told(make_run(tmp_path / "b", ROWS[:4], inputs=inputs[::-1], failures=failed[::-1])) == expected
