"""Failure groups that compared runs share: the same row is booked alike in every run, whatever the run proves alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from blade.model import Comparison
from blade.pipeline import comparing, comparison_sides, report_pages, stages
from blade.pipeline.comparison_sides import UNEXPLAINED, WRONG_ANSWER, Mode
from blade.tables.index import Silent
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.conftest import Blade, read
from tools.planted.paired_runs import BROKEN
from tools.planted.planted_runs import PlantedPair, write_pair

Key = tuple[str, int]  # task, repeat
pytestmark = pytest.mark.usefixtures("cache")


def booked(*paths: Path) -> list[dict[Key, Mode]]:
    """Of each run, the mode of every rollout that loses points."""
    loaded = read(*paths)
    scored = [report_pages.scoring_of(one, None) for one in loaded]
    work = stages.Work(Silent(), loaded=loaded, scored=scored)
    for stage in stages.DIAGNOSING[:5]:
        stage(work)
    found = []
    for reading, of_run in zip(work.readings, comparison_sides.booked(work.readings), strict=True):
        judged = reading.judged
        places = zip(judged.rows.tolist(), judged.task.tolist(), judged.repeat.tolist(), strict=True)
        keys = {position: (judged.task_keys[task], repeat) for position, task, repeat in places}
        found.append({keys[position]: mode for position, mode in of_run.modes.items()})
    return found


def compared(*paths: Path) -> Comparison:
    return comparing.compare(read(*paths), "test").comparisons[0]


def first_repeats(path: Path, name: str) -> Path:
    """A run with the first repeat of every task and nothing else."""
    rows = [line for line in path.read_bytes().splitlines(keepends=True) if json.loads(line)["_ng_rollout_index"] == 0]
    path.with_name(f"{name}.jsonl").write_bytes(b"".join(rows))
    return path.with_name(f"{name}.jsonl")


def nothing_changed(folder: Path, world: str) -> PlantedPair:
    """A pair of runs that are alike and fail in visible ways: a desk has expected calls, a quiz has answers."""
    pairs = (write_pair(folder / str(seed), "nothing", seed=seed, n_tasks=40, repeats=4) for seed in range(20))
    return next(pair for pair in pairs if pair.world == world)


def test_the_same_row_is_booked_alike_and_what_rollouts_did_wrong_decides_their_group(tmp_path: Path) -> None:
    pair = nothing_changed(tmp_path, "desk")
    every, first = booked(pair.baseline, first_repeats(pair.baseline, "first"))
    assert len(first) >= 10
    assert {key: every[key] for key in first} == first
    assert len({mode for mode in first.values() if mode[0] == "model"}) >= 2
    ways = {(str(task), repeat): way for (task, repeat), way in pair.how[0].items()}
    usual = []
    for way in ("wrong_arg_field", "extra_side_effect"):
        groups = Counter(mode for key, mode in every.items() if ways[key] == way)
        mode, n = groups.most_common(1)[0]
        assert n >= 0.8 * groups.total()
        usual.append(mode)
    assert usual[0] != usual[1]
    assert {side for side, _ in usual} == {"model"}


def test_wrong_answers_are_one_group_whatever_the_repeats(tmp_path: Path) -> None:
    """With four repeats wrong answers are alike or not; with one they are neither: that is no change."""
    pair = nothing_changed(tmp_path, "quiz")
    first = first_repeats(pair.baseline, "first")
    every, single = booked(pair.baseline, first)
    assert WRONG_ANSWER in single.values()
    assert {key: every[key] for key in single} == single
    assert compared(pair.baseline, first).movers == ()


def test_an_outage_of_one_run_stays_with_that_run_and_its_messages_are_one_term(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, "infra outage", seed=2, n_tasks=40, repeats=3)
    modes = booked(pair.baseline, pair.candidate)
    for of_run, how in zip(modes, pair.how, strict=True):
        broken = {(str(task), repeat) for (task, repeat), way in how.items() if way == BROKEN}
        assert {key for key, mode in of_run.items() if mode[0] == "infrastructure"} == broken
    # A provider that is down answers in several ways, none of which may be frequent enough by itself.
    pair = write_pair(tmp_path / "whole", "infra outage", seed=5, n_tasks=40, repeats=3, effect=1.0)
    messages = [json.loads(line).get("error") for path in (pair.baseline, pair.candidate) for line in path.open()]
    assert len(set(messages) - {None}) == 3
    terms = [term for term in compared(pair.baseline, pair.candidate).bridge if term.side == "infrastructure"]
    assert [term.term for term in terms] == ["never ran"]


def acting(task: int, repeat: int, looks: bool, reward: float) -> Row:
    calls = [(f"c{number}", tool) for number, tool in enumerate(["find", "write"] if looks else ["write"])]
    output = [item for name, tool in calls for item in (make_call(name, tool), make_result(name, '{"ok": true}'))]
    return make_row(task, repeat, reward, question=f"Task {task}?", response=make_response([*output, make_message("Done.")]))


def looking(path: Path, looks: tuple[bool, ...]) -> Path:
    """Ten tasks; a rollout passes if it calls `find` first."""
    rows = [acting(task, repeat, look, float(look)) for task in range(10) for repeat, look in enumerate(looks)]
    return make_run(path, [json.dumps(row) for row in rows])


def test_a_fact_that_one_run_proves_names_rows_of_another_and_a_judgement_stands_there_too(tmp_path: Path, blade: Blade) -> None:
    """The second run never passes, so that nothing in it says what is wrong."""
    mixed, failing = looking(tmp_path / "a", (True, True, False)), looking(tmp_path / "b", (False,))
    (alone,) = booked(failing)
    assert set(alone.values()) == {UNEXPLAINED}
    modes = booked(mixed, failing)
    assert {mode for of_run in modes for mode in of_run.values()} == {("model", "never calls `find`")}
    comparison = compared(mixed, failing)
    assert [(mover.term, mover.value) for mover in comparison.movers] == [("never calls `find`", pytest.approx(-2 / 3))]
    (fact,) = [shift for shift in comparison.shifts if shift.kind == "behaviour"]
    assert (fact.name, fact.baseline, fact.candidate) == ("never calls `find`", pytest.approx(1 / 3), 1.0)
    said = blade(
        "label", failing, "3", "--cause", "TI", "--repeat", "0", "--step", "0", "--quote", "write", "--by", "ann",
        "--mechanism", "The task forbids it.", "--mode", "task is impossible",
    )  # fmt: skip
    assert said.code == 0, said.err
    modes = booked(mixed, failing)[1]
    assert modes["3", 0] == ("task or verifier", "task is impossible")
    assert Counter(modes.values())["model", "never calls `find`"] == 9
