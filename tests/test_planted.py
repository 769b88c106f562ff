"""The simulated runs say the truth about themselves."""

from __future__ import annotations

import gzip
import json
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.evaluate.rows import key
from tools.planted import FAULTS, KINDS, Planted, write_bench, write_demo, write_light, write_run

Row = dict[str, Any]
NEAR_MISSES = {"sparse_indices", "simulated_user_opening", "missing_repeat_index"}
ALL_ROWS = {"constant_reward", "batch_reward", "two_agents"} | NEAR_MISSES


def read_rows(path: Path) -> list[Row]:
    """Every line that parses; a cut last line is left out."""
    rows = []
    for line in path.read_bytes().split(b"\n"):
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def rows_of(planted: Planted) -> list[Row]:
    return [row for row in read_rows(planted.path) if row["agent_ref"]["name"] == planted.agent]


def attempt(row: Row) -> int:
    return row.get("_ng_attempt_index", 0)


def find(rows: list[Row], task: int, repeat: int) -> list[Row]:
    return [row for row in rows if key(row) == (task, repeat)]


def recount(planted: Planted) -> Row:
    """The truth once more, from the files alone."""
    stem = planted.path.parent / planted.path.name.removesuffix(".jsonl")
    main, seen = defaultdict(list), Counter[int]()
    for row in rows_of(planted):
        task = row["_ng_task_index"]
        main[task, row.get("_ng_rollout_index", seen[task])].append(row)
        seen[task] += 1
    inputs = Path(f"{stem}_materialized_inputs.jsonl")
    expected, failed = set(main), set()
    if inputs.exists():
        expected = {key(row) for row in read_rows(inputs) if row["agent_ref"]["name"] == planted.agent}
        failed = set(map(key, read_rows(Path(f"{stem}_failures.jsonl")))) - set(main)
    tasks = {task for task, _ in expected}
    finals = {place: [row for row in rows if attempt(row) == max(map(attempt, rows))] for place, rows in main.items()}
    distinct = {place: {json.dumps(row, sort_keys=True): row for row in rows} for place, rows in finals.items()}
    scored = {place for place, rows in finals.items() if not any(row.get("mask_sample") for row in rows)}
    counted = {task: [row for place in scored if place[0] == task for row in distinct[place].values()] for task in tasks}
    passes = {task: sum((row["reward"] or 0) >= 1 for row in rows) for task, rows in counted.items()}
    rows = {task: len(rows) for task, rows in counted.items()}
    return {
        "n_tasks": len(tasks), "expected": len(expected), "scored": len(scored), "failed": len(failed),
        "masked": len(main) - len(scored), "lost": len(expected - set(main) - failed),
        "identical_duplicates": sum(len(finals[place]) - len(distinct[place]) for place in main),
        "differing_duplicates": sum(len(distinct[place]) - 1 for place in main),
        "superseded": sum(len(main[place]) - len(finals[place]) for place in main), "passes": passes, "rows": rows,
        "always": tuple(sorted(t for t in tasks if rows[t] and passes[t] == rows[t])),
        "sometimes": tuple(sorted(t for t in tasks if 0 < passes[t] < rows[t])),
        "never": tuple(sorted(t for t in tasks if rows[t] and not passes[t])),
        "missing": tuple(sorted(t for t in tasks if not rows[t])),
    }  # fmt: skip


def assert_true(planted: Planted) -> None:
    for name, value in recount(planted).items():
        assert getattr(planted, name) == value, name
    assert planted.expected == planted.scored + planted.failed + planted.masked + planted.lost
    for other in planted.others:
        assert_true(other)


def symptom(fault: str, planted: Planted, place: Row, rows: list[Row]) -> bool:
    """Does the file show a row fault where the truth says it is?"""
    here = find(rows, place["task"], place["repeat"])
    failures = read_rows(Path(str(planted.path).removesuffix(".jsonl") + "_failures.jsonl"))
    failed = find(failures, place["task"], place["repeat"])
    if fault in ("lost_rows", "torn_tail"):
        return not here and not failed
    if fault == "failed_rows":
        classes = {row["_ng_failure_class"] for row in failed}
        return not here and len(failed) == place["lines"] and classes == {"judge_failed"}
    first = here[0]
    empty = first["response"]["output"] == [] and first["reward"] == 0
    return {
        "provider_errors": lambda: empty and "503" in first["error"],
        "empty_outputs": lambda: empty and "error" not in first,
        "masked_rows": lambda: first["mask_sample"] is True,
        "null_rewards": lambda: first["reward"] is None,
        "duplicate_identical": lambda: len(here) == 2 and here[0] == here[1],
        "duplicate_differing": lambda: sorted(row["reward"] for row in here) == [0.0, 1.0],
        "retried_attempt": lambda: sorted(map(attempt, here)) == [0, 1],
        "two_tasks_one_index": lambda: first["task_id"] == place["task_id"],
    }[fault]()


@pytest.mark.parametrize("compress", [None, "gz", "zst"])
def test_same_arguments_same_bytes(tmp_path: Path, compress: Any) -> None:
    faults = ("provider_errors", "lost_rows", "duplicate_differing", "torn_tail")
    for name in "ab":
        write_run(tmp_path / name, n_tasks=9, seed=3, faults=faults, compress=compress)
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab")
    assert one == other


def test_the_plain_run_is_whole_and_seed_compression_and_order_change_what_they_should(tmp_path: Path) -> None:
    plain, other = (write_run(tmp_path / str(seed), seed=seed) for seed in (0, 1))
    inputs = "rollouts_materialized_inputs.jsonl"
    assert (tmp_path / "0" / inputs).read_bytes() == (tmp_path / "1" / inputs).read_bytes()
    assert plain.passes != other.passes
    packed = write_run(tmp_path / "packed", compress="gz")
    assert gzip.decompress(packed.path.read_bytes()) == plain.path.read_bytes()
    in_order = write_run(tmp_path / "sorted", shuffle=False)
    assert sorted(plain.path.read_bytes().splitlines()) == sorted(in_order.path.read_bytes().splitlines())
    keys, shuffled = (list(map(key, rows_of(run))) for run in (in_order, plain))
    assert keys == sorted(keys) != shuffled
    assert_true(plain)
    assert plain.expected == plain.scored == 80
    assert all((plain.always, plain.sometimes, plain.never))
    assert not plain.missing
    assert plain.faults == ()
    decided = write_run(tmp_path / "rates", n_tasks=6, repeats=8, rates=[1.0, 0.0, 0.5])
    assert decided.always == (0, 3)
    assert set(decided.never) >= {1, 4}


@pytest.mark.parametrize("fault", FAULTS)
def test_truth_of_each_fault(tmp_path: Path, fault: str) -> None:
    has_size = fault not in ALL_ROWS | {"torn_tail", "one_task_two_indices"}
    planted = write_run(tmp_path, faults=[f"{fault}:2" if has_size else fault])
    assert_true(planted)
    assert {place["fault"] for place in planted.faults} == {fault}
    assert not has_size or len({place["task"] for place in planted.faults}) == 2
    rows = rows_of(planted)
    for place in planted.faults:
        if fault not in ALL_ROWS | {"one_task_two_indices"}:
            assert symptom(fault, planted, place, rows), place


def test_tasks_and_indices(tmp_path: Path) -> None:
    mixed, doubled = (write_run(tmp_path / fault, faults=[fault]) for fault in ("two_tasks_one_index", "one_task_two_indices"))
    ids = {(row["_ng_task_index"], row["task_id"]) for row in rows_of(mixed)}
    n_ids = Counter(task for task, _ in ids)
    assert {task for task in n_ids if n_ids[task] == 2} == {place["task"] for place in mixed.faults}
    id_of = {row["_ng_task_index"]: row["task_id"] for row in rows_of(doubled)}
    first, second = doubled.faults[0]["tasks"]
    assert id_of[first] == id_of[second]
    assert len(set(id_of.values())) == 19


def test_failing_rollouts_show_why(tmp_path: Path) -> None:
    planted = write_run(tmp_path, n_tasks=60)
    modes = {"solved", "guessed_record", "stopped_early", "ignored_error", "truncated"}
    assert set(planted.modes.values()) == modes
    rows = rows_of(planted)
    for (task, repeat), mode in planted.modes.items():
        (row,) = find(rows, task, repeat)
        names = [item["name"] for item in row["response"]["output"] if item["type"] == "function_call"]
        results = [item["output"] for item in row["response"]["output"] if item["type"] == "function_call_output"]
        assert len(names) == len(results)
        assert (row["reward"] == 1) == (mode == "solved")
        assert ("find_customer" not in names) == (mode == "guessed_record")
        assert ("update_order" not in names) == (mode in ("stopped_early", "truncated"))
        assert (row["response"]["incomplete_details"] is not None) == (mode == "truncated")
        if mode == "ignored_error":
            assert any(text.startswith("Error") for text in results)
            assert row["extracted_answer"]


def test_the_demo(tmp_path: Path) -> None:
    planted = write_demo(tmp_path)
    assert_true(planted)
    assert (planted.n_tasks, planted.repeats, planted.lost, planted.failed) == (24, 4, 2, 2)
    assert planted.identical_duplicates == 1
    facts = tomllib.loads((tmp_path / "blade.toml").read_text())
    for row in rows_of(planted):
        for name in [facts["answer"], *facts["slices"], *(stage["field"] for stage in facts["stages"])]:
            assert not isinstance(row[name], list | dict)
    assert "simulated" in (tmp_path / "notes.md").read_text().lower()


@pytest.mark.parametrize("kind", KINDS)
def test_bench_rows(tmp_path: Path, kind: str) -> None:
    made = KINDS[kind]
    size = 12 * made.row_bytes * 8
    path, again = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    n_rows = write_bench(path, kind, size)
    assert write_bench(again, kind, size) == n_rows
    assert again.read_bytes() == path.read_bytes()
    lines, total = path.read_bytes().splitlines(), path.stat().st_size
    rows = [json.loads(line) for line in lines]
    assert len(rows) == n_rows
    assert total == pytest.approx(size, rel=0.15)
    assert total / n_rows == pytest.approx(made.row_bytes, rel=0.15)
    assert {len(row["response"]["output"]) for row in rows} == {made.n_items}
    assert set(Counter(row["_ng_task_index"] for row in rows).values()) == {8}
    assert len({row["response"]["id"] for row in rows}) == n_rows
    assert {row["reward"] for row in rows} == {0.0, 1.0}
    assert 0 < sum(not line.isascii() for line in lines) < 0.15 * n_rows


def test_light_rows(tmp_path: Path) -> None:
    path = tmp_path / "light.jsonl"
    assert write_light(path, 2001, repeats=4) == 2001
    rows = read_rows(path)
    assert len(rows) == 2001
    assert path.stat().st_size / 2001 == pytest.approx(400, rel=0.15)
    assert Counter(Counter(row["_ng_task_index"] for row in rows).values()) == {4: 500, 1: 1}
