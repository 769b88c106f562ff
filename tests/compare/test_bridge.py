"""The bridge and further views: terms that add up to the change, each with what it rests on."""

from __future__ import annotations

import math
from typing import Any

import pytest

from blade.compare import compare
from blade.compare.bridge import bridge
from blade.compare.change_views import views
from blade.model import OTHER, Alignment, Setting, Side, Term, View
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
    a = side("a", dict.fromkeys(map(str, range(n)), "0"), modes=dict(zip(((str(i), 0) for i in range(n)), fails, strict=True)), table=table)
    b = side("b", dict.fromkeys(map(str, range(n)), "1"), table=table)
    terms, _ = bridge(pair_of(a, b))
    assert [term.term for term in terms] == [*(f"mode {i:02}" for i in range(19, 7, -1)), "other groups (8)"]
    assert terms[-1].value == pytest.approx(36 / n)
    assert total(terms) == pytest.approx(1.0, abs=1e-12)


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


# ---- Further views ------------------------------------------------------------------------------------


def seen(a: Side, b: Side, diff: tuple[Setting, ...] = (), separable: bool | None = None) -> dict[str, View]:
    pair = pair_of(a, b)
    return {view.name: view for view in views(pair, bridge(pair)[0], diff, separable)}


def terms_of(view: View) -> dict[str, Term]:
    return {term.term: term for term in view.terms}


def sliced(run: str, easy: tuple[int, int], hard: tuple[int, int]) -> Side:
    """Tasks with one row each, of which so many pass."""
    outcomes, labels = {}, {}
    for label, (passes, n) in (("easy", easy), ("hard", hard)):
        for i in range(n):
            key = f"{label}{i + 1}"
            outcomes[key], labels[key] = "1" if i < passes else "0", label
    return side(run, outcomes, slices={"level": labels})


def test_slices_are_the_worked_ones() -> None:
    view = seen(sliced("a", (40, 50), (15, 50)), sliced("b", (574, 700), (84, 300)))["slices: level"]
    found = {name: term.value for name, term in terms_of(view).items()}
    assert found == pytest.approx(
        {"level=easy": 0.012, "level=hard": -0.008, "share of level=easy": 0.0416, "share of level=hard": 0.0624},
        abs=1e-12,
    )
    assert total(view.terms) == pytest.approx(0.108, abs=1e-12)
    assert "share" in view.note


def test_many_labels_and_fields_are_cut_and_still_add_up() -> None:
    tasks = [str(i) for i in range(80)]
    labels = {f"field {n}": {key: str(int(key) % (n + 2)) for key in tasks} for n in range(9)}
    labels["field 9"] = {key: str(int(key) % 40) for key in tasks}
    a = side("a", dict.fromkeys(tasks, "10"), slices=labels)
    b = side("b", {key: "1" if int(key) % 3 else "01" for key in tasks}, slices=labels)
    found = seen(a, b)
    assert [name for name in found if name.startswith("slices")] == [f"slices: field {n}" for n in range(8)]
    only = seen(
        *(side(run.run, dict.fromkeys(tasks, "1" if run is b else "0"), slices={"id": labels["field 9"]}) for run in (a, b))
    )
    view = only["slices: id"]
    assert len(view.terms) == 30
    assert terms_of(view)["id=other labels (11)"].n == 22
    assert total(view.terms) == pytest.approx(1.0, abs=1e-12)


def test_a_slice_that_changes_alone_exceeds_its_share_and_one_that_changes_along_does_not() -> None:
    labels = {"level": {str(i): "hard" if i < 20 else "easy" for i in range(80)}}
    a = side("a", {str(i): "1101" if i % 2 else "1011" for i in range(80)}, slices=labels)
    alone = side(
        "b", {str(i): ("0001" if i % 3 else "0000") if i < 20 else ("1101" if i % 3 else "0111") for i in range(80)},
        slices=labels,
    )
    along = side("b", {str(i): "0001" if i % 3 else "0101" for i in range(80)}, slices=labels)
    hard = terms_of(seen(a, alone)["slices: level"])["level=hard"]
    assert (hard.p or 1) < 1e-5
    assert hard.p_excess < 1e-6
    assert hard.expected == pytest.approx(0.25 * (score(alone) - score(a)))
    hard = terms_of(seen(a, along)["slices: level"])["level=hard"]
    assert hard.p < 1e-3
    assert (hard.p_excess or 0) > 0.05


def test_tasks_that_were_dropped_do_not_make_a_slice_stand_out() -> None:
    """Only the hard half of a slice is gone: its rate rises, but no task that is still there changed."""
    labels = {"level": {str(i): "mixed" if i < 40 else "easy" for i in range(80)}}
    rows = {str(i): ("0001" if i < 20 else "1110") if i % 2 else ("0000" if i < 20 else "1111") for i in range(80)}
    a = side("a", rows, slices=labels)
    b = side("b", {key: told for key, told in rows.items() if int(key) >= 20}, slices=labels)
    mixed = terms_of(seen(a, b)["slices: level"])["level=mixed"]
    assert mixed.p < 0.01
    assert mixed.p_excess == 1.0


def test_the_largest_gains_and_losses_are_told_with_newcombes_intervals_and_the_others_together() -> None:
    tasks = [str(i) for i in range(100)]
    a = side("a", {key: "0000" if int(key) < 40 else "1111" for key in tasks})
    b = side("b", {key: "1110" if int(key) < 2 else "1000" if int(key) < 40 else "1100" if int(key) < 60 else "1111" for key in tasks})
    view = seen(a, b)["tasks"]
    names = [term.term for term in view.terms]
    assert (names[:3], names[15], names[-2:]) == (["0", "1", "2"], "40", ["all other gains", "all other losses"])
    assert [term.n for term in view.terms[-2:]] == [25, 5]
    assert view.terms[0].value == pytest.approx(0.0075)
    assert view.terms[-1].value == pytest.approx(-0.025)
    assert total(view.terms) == pytest.approx(score(b) - score(a), abs=1e-12)
    assert all(term.p is None for term in view.terms)
    # the interval of a task is Newcombe's: 56/70 against 48/80, the worked example of his paper
    a, b = side("a", {"1": "1" * 48 + "0" * 32}), side("b", {"1": "1" * 56 + "0" * 14})
    (term,) = seen(a, b)["tasks"].terms
    assert (term.low, term.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


# ---- Settings and outcomes --------------------------------------------------------------------------


@pytest.mark.parametrize(("diff", "separable", "name"), cases(__file__, "laid to a setting"))
def test_the_whole_change_is_laid_to_the_one_setting_that_differs(
    diff: list[list[Any]], separable: bool | None, name: str
) -> None:
    a, b = side("a", {"1": "11", "2": "10"}), side("b", {"1": "00", "2": "10", "3": "11"})
    added, term = seen(a, b, tuple(Setting(*setting) for setting in diff), separable)["settings"].terms
    assert (term.term, term.side, term.n) == (name, "setting", 2)
    assert term.value == pytest.approx(-0.5)  # of the tasks that both have: what others add is no setting
    assert added.side == "composition"
    assert added.value + term.value == pytest.approx(score(b) - score(a))


@pytest.mark.parametrize("case", cases(__file__, "views"), ids=lambda case: case["about"])
def test_the_terms_of_a_view(case: dict[str, Any]) -> None:
    a, b = (told(name, case[name]) for name in "ab")
    found = seen(a, b)
    for name, terms in case["terms"].items():
        assert {term.term: term.value for term in found[name].terms} == pytest.approx(terms, abs=1e-9)
        assert [term.term for term in found[name].terms] == list(terms)
    assert list(found) == case["views"]
    assert [total(view.terms) for view in found.values()] == pytest.approx([score(b) - score(a)] * len(found))
