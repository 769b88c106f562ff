"""Further views: every one adds up to the same change, with an interval for each term."""

from __future__ import annotations

import math
from typing import Any

import pytest

from blade.compare.bridge import bridge
from blade.compare.change_views import views
from blade.model import Setting, Side, Term, View
from tests.case_tables import cases
from tests.compare.builders import pair_of, side, told
from tests.compare.test_bridge import score


def seen(a: Side, b: Side, diff: tuple[Setting, ...] = (), separable: bool | None = None) -> dict[str, View]:
    pair = pair_of(a, b)
    return {view.name: view for view in views(pair, bridge(pair)[0], diff, separable)}


def terms_of(view: View) -> dict[str, Term]:
    return {term.term: term for term in view.terms}


def total(view: View) -> float:
    return math.fsum(term.value for term in view.terms)


# ---- Slices -----------------------------------------------------------------------------------------


def sliced(run: str, easy: tuple[int, int], hard: tuple[int, int], first: int) -> Side:
    """Tasks with one row each, of which so many pass."""
    outcomes, labels = {}, {}
    for label, (passes, n) in (("easy", easy), ("hard", hard)):
        for i in range(n):
            key = f"{label}{first + i}"
            outcomes[key], labels[key] = "1" if i < passes else "0", label
    return side(run, outcomes, slices={"level": labels})


def test_slices_are_the_worked_ones() -> None:
    a = sliced("a", (40, 50), (15, 50), 1)
    b = sliced("b", (574, 700), (84, 300), 1)
    view = seen(a, b)["slices: level"]
    found = {name: term.value for name, term in terms_of(view).items()}
    assert found == pytest.approx(
        {"level=easy": 0.012, "level=hard": -0.008, "share of level=easy": 0.0416, "share of level=hard": 0.0624},
        abs=1e-12,
    )
    assert total(view) == pytest.approx(0.108, abs=1e-12)
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
    assert total(view) == pytest.approx(1.0, abs=1e-12)


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


# ---- Tasks ------------------------------------------------------------------------------------------


def test_the_largest_gains_and_losses_are_told_and_the_others_together() -> None:
    tasks = [str(i) for i in range(100)]
    a = side("a", {key: "0000" if int(key) < 40 else "1111" for key in tasks})
    b = side(
        "b",
        {key: "1110" if int(key) < 2 else "1000" if int(key) < 40 else "1100" if int(key) < 60 else "1111" for key in tasks},
    )
    view = seen(a, b)["tasks"]
    names = [term.term for term in view.terms]
    assert names[:3] == ["0", "1", "2"]
    assert names[15] == "40"
    assert names[-2:] == ["all other gains", "all other losses"]
    assert [term.n for term in view.terms[-2:]] == [25, 5]
    assert view.terms[0].value == pytest.approx(0.0075)
    assert view.terms[-1].value == pytest.approx(-0.025)
    assert total(view) == pytest.approx(score(b) - score(a), abs=1e-12)
    assert all(term.p is None for term in view.terms)


def test_the_interval_of_a_task_is_newcombes() -> None:
    """56/70 against 48/80, the worked example of his paper: .0524 to .3339."""
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
    assert [total(view) for view in found.values()] == pytest.approx([score(b) - score(a)] * len(found))
