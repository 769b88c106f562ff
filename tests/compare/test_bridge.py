"""The bridge: terms that add up to the change, each with what it rests on."""

from __future__ import annotations

import math
from typing import Any

import pytest

from blade.compare import compare
from blade.compare.bridge import bridge
from blade.model import OTHER, Alignment, Side, Term
from tests.case_tables import cases
from tests.compare.builders import pair_of, side, told

TABLE = (
    ("infrastructure", "infra_error"),
    ("task or verifier", "flaky"),
    ("data", "bad_gold"),
    ("model", "timeout"),
    ("model", "wrong_arg"),
    ("model", "no_answer"),
    ("model", "wrong_logic"),
    ("undetermined", OTHER),
)


def score(run: Side) -> float:
    by_task: dict[int, list[float]] = {}
    for task, value in zip(run.judged.task.tolist(), run.judged.score.tolist(), strict=True):
        by_task.setdefault(task, []).append(value)
    return math.fsum(math.fsum(rows) / len(rows) for rows in by_task.values()) / len(by_task)


def total(terms: tuple[Term, ...]) -> float:
    return math.fsum(term.value for term in terms)


def values(terms: tuple[Term, ...]) -> dict[str, float]:
    return {term.term: term.value for term in terms}


def counted(run: str, fails: dict[str, int], n: int = 100) -> Side:
    """One row for each of `n` tasks, of which the first fail by one mode, the next by another, and so on."""
    modes = [mode for mode, times in fails.items() for _ in range(times)]
    outcomes = {str(i): "0" if i < len(modes) else "1" for i in range(n)}
    return side(run, outcomes, modes={(str(i), 0): ("model", mode) for i, mode in enumerate(modes)}, table=TABLE)


# ---- Worked references ------------------------------------------------------------------------------


def test_the_waterfall_of_failure_modes_is_the_worked_one() -> None:
    a = counted("a", {"timeout": 10, "wrong_arg": 15, "no_answer": 5, "wrong_logic": 20})
    b = counted("b", {"timeout": 2, "wrong_arg": 12, "no_answer": 9, "wrong_logic": 22})
    terms, note = bridge(pair_of(a, b))
    assert values(terms) == pytest.approx(
        {"timeout": 0.08, "wrong_arg": 0.03, "no_answer": -0.04, "wrong_logic": -0.02}, abs=1e-12
    )
    assert total(terms) == pytest.approx(0.05, abs=1e-12)
    assert [term.term for term in terms] == ["timeout", "no_answer", "wrong_arg", "wrong_logic"]
    assert "not causation" in note


@pytest.mark.parametrize("case", cases(__file__, "bridges"), ids=lambda case: case["about"])
def test_the_terms_of_two_runs(case: dict[str, Any]) -> None:
    a, b = (told(name, case[name]) for name in "ab")
    terms = compare(a, b).bridge
    found = values(terms)
    assert {name: found[name] for name in case["terms"]} == pytest.approx(case["terms"], abs=1e-9)
    assert total(terms) == pytest.approx(case["sum"], abs=1e-9)
    assert set(found) == set(case["terms"]) or not case.get("all")


# ---- What is told -----------------------------------------------------------------------------------


def test_tasks_outside_the_common_ones_are_told_by_what_became_of_them() -> None:
    a = side("a", {"1": "11", "2": "01", "3": "00", "4": "11"}, expected={"5": 2})
    b = side("b", {"1": "11", "2": "11", "3": "11", "5": "00", "6": "01"}, expected={"4": 2})
    told = Alignment("key", ("1", "2"), ("6",), (), ("3",), ("5",), ("4",))
    terms, _ = bridge(pair_of(a, b, alignment=told))
    assert [(term.term, term.side) for term in terms] == [
        ("added tasks", "composition"),
        ("modified tasks", "composition"),
        ("tasks the candidate lost", "missing"),
        ("tasks the baseline lost", "missing"),
        (OTHER, "undetermined"),
    ]
    found = values(terms)
    assert found["added tasks"] == pytest.approx((0.5 - 1) / 5)
    assert found["modified tasks"] == pytest.approx((1 - 1) / 5 - (0 - 0.75) / 4)
    assert found["tasks the candidate lost"] == pytest.approx(-(1 - 0.75) / 4)
    assert found["tasks the baseline lost"] == pytest.approx((0 - 1) / 5)
    assert total(terms) == pytest.approx(score(b) - score(a), abs=1e-12)


def test_sides_are_told_in_their_order_and_unnamed_losses_last() -> None:
    fails = [("undetermined", OTHER), ("data", "bad_gold"), TABLE[0], TABLE[1], TABLE[4], TABLE[3]]
    a = side("a", {str(i): "1" for i in range(12)}, table=TABLE)
    modes = {(str(i), 0): mode for i, mode in enumerate([*fails, ("undetermined", OTHER), ("undetermined", OTHER)])}
    b = side("b", {str(i): "0" if i < 8 else "1" for i in range(12)}, modes=modes, table=TABLE)
    assert [term.term for term in bridge(pair_of(a, b))[0]] == ["infra_error", "flaky", "bad_gold", "timeout", "wrong_arg", OTHER]


def test_many_small_modes_are_one_term() -> None:
    table = tuple(("model", f"mode {i:02}") for i in range(20))
    n = sum(range(1, 21))
    fails = [mode for i, mode in enumerate(table) for _ in range(i + 1)]
    a = side("a", dict.fromkeys(map(str, range(n)), "0"), modes=dict(zip(_rows(n), fails, strict=True)), table=table)
    b = side("b", dict.fromkeys(map(str, range(n)), "1"), table=table)
    terms, _ = bridge(pair_of(a, b))
    assert [term.term for term in terms] == [*(f"mode {i:02}" for i in range(19, 7, -1)), "other groups (8)"]
    assert terms[-1].value == pytest.approx(36 / n)
    assert total(terms) == pytest.approx(1.0, abs=1e-12)


def _rows(n: int) -> list[tuple[str, int]]:
    return [(str(i), 0) for i in range(n)]


# ---- How sure ---------------------------------------------------------------------------------------


def test_a_mode_that_changes_as_the_others_do_has_no_excess_and_one_that_goes_away_has() -> None:
    names = ("timeout", "wrong_arg", "no_answer")
    many = counted("a", dict.fromkeys(names, 60), 300)
    halved = counted("b", dict.fromkeys(names, 30), 300)
    for term in bridge(pair_of(many, halved))[0]:
        assert term.p < 0.01
        assert term.expected == pytest.approx(term.value)
        assert term.p_excess > 0.9
    cured = counted("b", {"wrong_arg": 60, "no_answer": 60}, 300)
    terms = {term.term: term for term in bridge(pair_of(many, cured))[0]}
    assert (terms["timeout"].p_excess or 0) < 1e-6
    assert max(terms[name].p_excess or 0 for name in ("wrong_arg", "no_answer")) > 0.5


def test_modes_that_one_mode_crowds_out_do_not_stand_out_by_that() -> None:
    """A limit that ends half of all rows early leaves half as many to fail in each other way."""
    names = ("wrong_arg", "no_answer", "wrong_logic")
    before = counted("a", {"timeout": 20, **dict.fromkeys(names, 60)}, 400)
    after = counted("b", {"timeout": 250, **dict.fromkeys(names, 30)}, 400)
    terms = {term.term: term for term in bridge(pair_of(before, after))[0]}
    assert (terms["timeout"].p_excess or 0) < 1e-6
    assert min(terms[name].p_excess or 0 for name in names) > 0.5


def test_removed_tasks_that_differ_are_told_from_removed_tasks_that_do_not() -> None:
    kept = {f"k{i}": "1110" if i % 2 else "1010" for i in range(20)}
    hard = {f"r{i}": "0001" if i % 2 else "0000" for i in range(10)}
    alike = {f"r{i}": "1110" if i % 2 else "1010" for i in range(10)}
    b = side("b", kept)
    found = [bridge(pair_of(side("a", kept | gone), b))[0][0] for gone in (hard, alike)]
    assert [term.term for term in found] == ["removed tasks"] * 2
    assert (found[0].p or 0) < 1e-6 < 0.05 < (found[1].p or 0)
    assert (found[0].low or 0) > 0
