"""How right the conclusions are where the truth is known: a small form of `make accuracy`, and the card that ships."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from accuracy import card, natural, planted, shuffled
from blade.detect import DETECTORS
from blade.pipeline.card import card as shipped
from blade.planted.injected import INJECTIONS

pytestmark = pytest.mark.usefixtures("cache")
FAULTS = [name for name, one in INJECTIONS.items() if not one.twin and name not in planted.OF_RUN]
TWINS = [name for name, one in INJECTIONS.items() if one.twin]
SEED = 11


def value(found: dict[str, Any]) -> float:
    assert found["n"] > 0
    return float(found["value"])


# -- measured anew, on a sample -------------------------------------------------------------------


@pytest.mark.slow
def test_injected_faults_are_told_by_cause_and_step() -> None:
    found = card.planted_set(planted.measured([SEED], FAULTS[::4], (0.05, 1.0)))
    assert found["cause"]["coverage"]["n"] > 300
    assert value(found["cause"]["coverage"]) >= 0.85
    assert value(found["cause"]["accuracy where a cause is told"]) >= 0.90
    assert value(found["step"]["within 1"]) >= 0.90
    constant = value(found["cause"]["baseline: always the commonest"])
    assert value(found["cause"]["accuracy where a cause is told"]) > constant


@pytest.mark.slow
def test_faults_of_the_whole_run_are_named_as_its_cause() -> None:
    told = planted.measured([SEED], sorted(planted.OF_RUN))
    assert len(told.runs) == len(planted.OF_RUN)
    assert [fault for fault, true, said in told.runs if not set(true) & set(said)] == []


@pytest.mark.slow
def test_what_only_looks_like_a_fault_is_no_cause_of_the_run() -> None:
    told = planted.measured([SEED], TWINS[::3], (0.05,))
    assert told.n_runs == len(TWINS[::3])
    assert not told.alarms
    assert not told.causes  # nothing was injected that could be told


@pytest.mark.slow
def test_shuffled_outcomes_explain_nothing() -> None:
    told = shuffled.shuffled(24)
    assert (told.n_runs, told.n_within) == (24, 12)
    assert told.with_mechanism <= 2
    assert told.with_contrast <= 1
    assert told.n_tasks > 100
    assert told.tasks_with_contrast <= 0.05 * told.n_tasks


# -- the card -------------------------------------------------------------------------------------


def measures(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Every share of a set."""
    return [share for group in one.values() if isinstance(group, dict) for share in group.values()]


def test_the_card_that_ships_has_natural_sets_first_and_says_how_many() -> None:
    made = json.loads((files("blade") / "accuracy.json").read_text(encoding="utf-8"))
    assert made == shipped()
    kinds = [one["kind"] for one in made["sets"]]
    assert set(kinds) == {"natural", "planted"}
    assert kinds == sorted(kinds)
    for one in made["sets"]:
        assert one["name"]
        assert measures(one)
        for share in measures(one):
            assert set(share) == {"value", "low", "high", "n"}
            assert (share["value"] is None) == (share["n"] == 0)
            if share["low"] is not None:
                assert share["low"] <= share["value"] <= share["high"]


def test_the_card_that_ships_holds_what_is_promised() -> None:
    made = shipped()
    assert made is not None
    faults, nothing = (one for one in made["sets"] if one["kind"] == "planted")
    assert value(faults["cause"]["coverage"]) >= 0.85
    assert value(faults["cause"]["accuracy where a cause is told"]) >= 0.90
    assert value(faults["step"]["within 1"]) >= 0.90
    false = nothing["false discoveries"]
    assert false["runs with a mechanism"]["n"] >= 200
    assert value(false["runs with a mechanism"]) <= 0.05
    assert value(false["tasks with a contrast"]) <= 0.05


def test_the_natural_set_stands_beside_what_needs_no_thought() -> None:
    made = shipped()
    assert made is not None
    one = next(one for one in made["sets"] if one["kind"] == "natural")
    groups = [name for name in one if name == "step" or name.startswith("baseline")]
    assert len(groups) == 4
    for name in groups:
        assert [one[name][width]["n"] for width in ("exact", "within 1", "within 3", "within 5")] == [29] * 4
        low_to_high = [one[name][width]["value"] for width in ("exact", "within 1", "within 3", "within 5")]
        assert low_to_high == sorted(low_to_high)


def test_the_card_names_only_detectors_that_exist() -> None:
    made = shipped()
    assert made is not None
    assert set(made["detectors"]) <= set(DETECTORS)
    for one in made["detectors"].values():
        assert one["n_right"] <= one["n_fired"]
        assert one["n_recalled"] <= one["n_planted"]
        assert one["in_pass"] <= one["of_pass"]


def test_injections_name_detectors_or_faults_of_task_and_run() -> None:
    for name, one in INJECTIONS.items():
        assert (one.behaviour in DETECTORS) == bool(one.id), name
        if one.id:
            assert DETECTORS[one.behaviour].RULE.number == one.id


# -- how a card is counted ------------------------------------------------------------------------


def test_an_abstention_is_not_right() -> None:
    found = card.tolerances([3, None, 5, 10], [3, 3, 6, 15])
    assert [found[name]["value"] for name in ("exact", "within 1", "within 3", "within 5")] == [
        0.25,
        0.5,
        0.5,
        0.75,
    ]
    assert found["exact"]["n"] == 4


def test_an_undetermined_cause_is_not_covered_and_not_wrong() -> None:
    found = card.causes(
        [
            (("BI",), "BI", 0.9),
            (("UK", "KG"), "KG", 0.5),
            (("TI",), "undetermined", 0.4),
            (("IR",), "BI", 0.7),
        ]
    )
    assert (found["coverage"]["value"], found["coverage"]["n"]) == (0.75, 4)
    assert (
        found["accuracy where a cause is told"]["value"],
        found["accuracy where a cause is told"]["n"],
    ) == (0.6667, 3)


def test_nothing_to_share_is_null() -> None:
    assert card.share(0, 0) == {"value": None, "low": None, "high": None, "n": 0}


def test_the_constant_of_one_is_the_median_of_the_others() -> None:
    found = [natural.Labelled("t", step, "", None, (), "", 0.0, 0, 0, 9) for step in (1, 5, 7)]
    assert natural.constant(found) == [6, 4, 3]
