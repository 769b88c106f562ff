"""Anchor facts: drafted from the rollouts, read from files, parsed from prose, matched one to one."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.package.judge.anchors import (
    OKAY,
    TRIVIAL,
    VITAL,
    Anchor,
    as_file,
    of_file,
    parsed,
    settled,
    undrafted,
)
from blade.package.judge.matching import matched
from blade.package.judge.predicates import STEP, Predicate, met, overlap, predicate_of, tasks_of
from blade.package.judge.score import Bench, Judged, claims
from blade.package.judge.sources import Case
from tests.conftest import Blade
from tests.package.court import files, make_unit, reports, seat_of

SPOKEN = "I have found the account and will take care of the request shortly."


@pytest.fixture
def court(made: Path, cache: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


def test_drafted_facts_name_tasks_of_the_run_and_the_golden_report_meets_each(
    court: tuple[Case, Bench, Judged],
) -> None:
    case, seat, golden = court
    tasks = {one.task for one in seat.world.report.tasks}
    assert len(case.anchors) == 12
    assert all(one.predicate is not None and tasks_of(one.predicate) <= tasks for one in case.anchors)
    assert {one.predicate.type for one in case.anchors if one.predicate} >= {"cause", "quote", "existence"}
    assert all(is_met for _, is_met, _ in golden.hits)


def test_a_file_gives_back_what_was_written(court: tuple[Case, Bench, Judged]) -> None:
    anchors = list(court[0].anchors)
    written = json.loads(json.dumps(as_file(anchors, "desk", "sim-model-a")))
    assert of_file(written) == anchors
    assert of_file(written["anchor_facts"]) == anchors
    assert set(written) == {"benchmark", "model", "extraction_method", "review_required", "anchor_facts", "draft"}
    assert {"id", "fact", "difficulty", "mean_score"} <= set(written["anchor_facts"][0])


@pytest.mark.parametrize("data", [None, 3, "facts", {}, {"anchor_facts": 3}, [], {"anchor_facts": None}])
def test_a_file_without_facts_holds_none(data: object) -> None:
    assert of_file(data) == []


def test_odd_entries_become_facts_that_cannot_be_used() -> None:
    found = of_file([7, None, {"fact": 3}, {"fact": "too short"}, "Task 4 fails for a knowledge gap (KG)."])
    assert [bool(one.problem) for one in found] == [True, True, True, True, False]
    assert [one.id for one in found] == ["B1", "B2", "B3", "B4", "B5"]


@pytest.mark.parametrize(
    "given",
    [
        None, "cause", {"type": "vibe", "must_cite": ["4"]}, {"type": "cause", "value": "BI"},
        {"type": "cause", "must_cite": 4}, {"type": "quote", "must_cite": ["4"], "tolerance": "wide"},
    ],
)  # fmt: skip
def test_what_is_no_predicate_is_none(given: object) -> None:
    assert predicate_of(given) is None


def test_prose_becomes_a_predicate_where_it_names_a_task(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    told = seat.world.report.attributions[0]
    cause, why = parsed(f"Task {told.task} has {told.cause.value} as its cause.", seat.world, seat.known)
    assert cause == Predicate("cause", value=told.cause.value, must_cite=(told.task,))
    assert why == ""
    steps = (step for run in seat.world.rows.runs for one in seat.world.rows.at(run, told.task) for step in one.steps)
    spoken = next(step.text for step in steps if step.text and "\n" not in step.text and 20 < len(step.text) < 200)
    quote, _ = parsed(f"In task {told.task} the model says “{spoken}”", seat.world, seat.known)
    assert quote is not None
    assert (quote.type, quote.object) == ("quote", spoken)
    assert parsed(f"In task {told.task} the model says “{SPOKEN}”", seat.world, seat.known)[1] == (
        "the rollouts contradict it"
    )


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ("The agent often stops before it has done what it announced.", "no task"),
        ("Task 4711 fails for a behavioural issue (BI).", "contradict"),
        ("Task 1 is one of the tasks of this benchmark.", "no cause"),
    ],
)
def test_prose_that_cannot_be_checked_says_why(
    court: tuple[Case, Bench, Judged], fact: str, why: str
) -> None:
    _, seat, _ = court
    predicate, problem = parsed(fact, seat.world, seat.known)
    assert predicate is None
    assert why in problem


def test_what_a_shallow_report_has_weighs_nothing(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    told = seat.world.report.attributions[0]
    fact = f"Task {told.task} fails for {told.cause.value}."
    anchor = Anchor("B1", fact, predicate=Predicate("cause", value=told.cause.value, must_cite=(told.task,)))
    thin = claims(f"# x\n\n## Results\n\n{fact}\n", seat.world, seat.known)
    assert [one.weight for one in settled([anchor], seat.world, seat.known, thin)] == [TRIVIAL]
    other = claims(case.shallow, seat.world, seat.known)
    assert [one.weight for one in settled([anchor], seat.world, seat.known, other)] == [VITAL]
    metric = Anchor("B2", fact, predicate=Predicate("metric", "pass@1", value=0.5, must_cite=(told.task,)))
    assert [one.weight for one in settled([metric], seat.world, seat.known)] == [TRIVIAL]


def test_a_report_alone_gives_facts_that_name_tasks() -> None:
    text = f"# x\n\n## Deep dives\n\nTask 7 is a knowledge gap (KG). Rollout `7/1` says “{SPOKEN}”\n\nAll is well.\n"
    found = undrafted(text)
    assert [one.predicate.type for one in found if one.predicate] == ["cause", "quote"]
    assert undrafted("# x\n\nAll is well, and nothing failed for a knowledge gap.\n") == []


def test_the_command_drafts_a_file_that_the_judge_can_use(
    blade: Blade, package: Path, tmp_path: Path
) -> None:
    golden, _, _ = files(package)
    to = tmp_path / "facts.json"
    words = ("package", "extract-anchor-facts", "--golden", golden, "--benchmark", "desk", "--output", to)
    said = blade(*words, "--model-name", "sim-model-a", "--num-facts", 9)
    assert said.code == 0, said.err
    assert len(json.loads(to.read_text())["anchor_facts"]) == 9
    few = blade(*words, "--model-name", "sim-model-a", "--min-facts", 99)
    assert few.code == 1
    assert len(json.loads(to.read_text())["anchor_facts"]) == 12
    told = json.loads(to.read_text())
    for changed in (told | {"review_required": False}, told | {"anchor_facts": told["anchor_facts"][1:]}):
        to.write_text(json.dumps(changed))
        kept = blade(*words, "--model-name", "sim-model-a")
        assert (kept.code, json.loads(to.read_text())) == (2, changed)
        assert "--force" in kept.err
    assert blade(*words, "--model-name", "sim-model-a", "--force").code == 0
    assert json.loads(to.read_text()) == told


def test_without_rollouts_facts_are_drafted_and_marked_as_unchecked(
    blade: Blade, tmp_path: Path, package: Path
) -> None:
    alone = tmp_path / "alone.md"
    alone.write_text((reports(package) / "sim_model_a_golden_report.md").read_text())
    to = tmp_path / "facts.json"
    said = blade(
        "package", "extract-anchor-facts", "--golden", alone, "--benchmark", "desk", "--model-name", "m",
        "--output", to,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "no rollouts" in said.err
    assert "no rollouts" in json.loads(to.read_text())["extraction_method"]


KG = Predicate("cause", value="KG", must_cite=("4",))


def test_a_cause_is_met_by_its_name_and_its_task_alone() -> None:
    unit = make_unit("Task 4 is a knowledge gap (KG).", causes=frozenset({"KG"}))
    assert list(met(unit, KG))
    for miss in (
        make_unit(causes=frozenset({"BI"})),
        make_unit(causes=frozenset({"KG", "BI"})),
        make_unit(causes=frozenset({"KG"}), tasks=frozenset({"5"})),
        make_unit(causes=frozenset({"KG"}), verdict="unverifiable"),
        make_unit(causes=frozenset({"KG"}), denied=True),
        make_unit(causes=frozenset({"KG"}), foreign=True),
    ):
        assert not list(met(miss, KG))


def test_a_step_is_met_by_its_number_and_a_share_by_its_count() -> None:
    step = Predicate("existence", STEP, value=3.0, must_cite=("4/1",))
    blamed = "Rollout 4/1 goes wrong at step 3."
    assert list(met(make_unit(blamed, steps=frozenset({3})), step))
    assert not list(met(make_unit(blamed, steps=frozenset({2})), step))
    assert not list(met(make_unit("Rollout 4/1 has a step 3.", steps=frozenset({3})), step))
    share = Predicate("share", "wrong_arg_field", value=5 / 11, tolerance=0.006, must_cite=("4/0",))
    assert list(met(make_unit("The wrong arg field occurs in 10 of 22 failing rollouts."), share))
    assert not list(met(make_unit("The wrong arg field occurs in 11 of 22 failing rollouts."), share))
    assert not list(met(make_unit("The wrong tool occurs in 10 of 22 failing rollouts."), share))


def test_quotations_overlap_by_a_telling_piece() -> None:
    assert overlap(SPOKEN, SPOKEN[5:60])
    assert not overlap(SPOKEN, "I have found")
    assert not overlap(SPOKEN, "I have lost the account and cannot take any care of it.")


@given(st.lists(st.sets(st.integers(0, 5), max_size=4), max_size=5))
def test_matching_is_one_to_one_and_as_large_as_can_be(wanted: list[set[int]]) -> None:
    units = [make_unit(f"unit {at}", line=at) for at in range(6)]
    predicates = [Predicate("cause", value=str(at), must_cite=("4",)) for at in range(len(wanted))]

    def meets(unit: object, predicate: Predicate) -> list[str]:
        return ["part"] if int(str(unit.line)) in wanted[int(str(predicate.value))] else []

    found = matched(units, predicates, meets)
    lines = [unit.line for unit in found.values()]
    assert len(set(lines)) == len(lines)
    assert all(unit.line in wanted[at] for at, unit in found.items())
    best = max(
        sum(line in mine for line, mine in zip(order, wanted, strict=False))
        for order in permutations(range(6), len(wanted))
    )
    assert len(found) == best


def test_okay_facts_weigh_half() -> None:
    assert [Anchor("B", "fact", weight=weight).weighs for weight in (VITAL, OKAY, TRIVIAL)] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("name", ["weight", "difficulty"])
@pytest.mark.parametrize("value", [[], {}, 3, True])
def test_a_weight_that_is_no_word_is_told_and_stops_nothing(name: str, value: object) -> None:
    fact = {"id": "B1", "fact": "Task 4 fails for a knowledge gap (KG).", name: value}
    [bad, good] = of_file([fact, {**fact, name: "high" if name == "difficulty" else "okay"}])
    assert name in bad.problem
    assert not good.problem
