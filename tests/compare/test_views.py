"""Further views: every one adds up to the same change, with an interval for each term."""

from __future__ import annotations

import math
from typing import Any

import pytest

from blade.compare.bridge import bridge
from blade.compare.change_views import views
from blade.compare.task_pairs import Paired
from blade.model import Setting, Side, Term, View
from tests.compare.builders import pair_of, side
from tests.compare.test_bridge import score

LIMIT = Setting("max_output_tokens", "4096", "512", "limit", True)
SAMPLING = Setting("temperature", "0.0", "1.0", "sampling", False)


def seen(a: Side, b: Side, diff: tuple[Setting, ...] = (), separable: bool | None = None, **told: Any) -> dict[str, View]:
    pair = pair_of(a, b, **told)
    return of_pair(pair, diff, separable)


def of_pair(pair: Paired, diff: tuple[Setting, ...] = (), separable: bool | None = None) -> dict[str, View]:
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


def test_labels_are_joined_by_their_text() -> None:
    """The codes of a label differ between runs if one has labels that the other has not."""
    a = side("a", {"1": "1", "2": "0"}, slices={"kind": {"1": "beta", "2": "gamma"}})
    b = side("b", {"1": "0", "2": "0", "3": "1"}, slices={"kind": {"1": "beta", "2": "gamma", "3": "alpha"}})
    found = terms_of(seen(a, b)["slices: kind"])
    assert found["kind=beta"].value == pytest.approx(-(1 / 2 + 1 / 3) / 2)
    assert found["kind=gamma"].value == 0
    assert "kind=alpha" not in found
    assert found["share of kind=alpha"].value > 0


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


@pytest.mark.parametrize(
    ("diff", "separable", "name"),
    [
        ((LIMIT,), True, "max_output_tokens: 4096 → 512"),
        ((LIMIT, SAMPLING), False, "not separable: max_output_tokens, temperature"),
        ((), None, "no known setting differs"),
        ((Setting("seed", "1", "2", "sampling", False, counts=False),), None, "no known setting differs"),
        ((Setting("tools", None, "x", "tools", True, known=False),), None, "no known setting differs"),
    ],
)  # fmt: skip
def test_the_whole_change_is_laid_to_the_one_setting_that_differs(
    diff: tuple[Setting, ...], separable: bool | None, name: str
) -> None:
    a, b = side("a", {"1": "11", "2": "10"}), side("b", {"1": "00", "2": "10", "3": "11"})
    added, term = seen(a, b, diff, separable)["settings"].terms
    assert (term.term, term.side, term.n) == (name, "setting", 2)
    assert term.value == pytest.approx(-0.5)  # of the tasks that both have: what others add is no setting
    assert added.side == "composition"
    assert added.value + term.value == pytest.approx(score(b) - score(a))


def test_a_row_with_several_marks_counts_for_the_first() -> None:
    tasks = [str(i) for i in range(6)]
    flags = {
        "errored": [("0", 0)],
        "timed out": [("0", 0), ("1", 0)],
        "truncated": [("1", 0), ("2", 0), ("5", 0)],
        "no usable reward": [("3", 0)],
    }
    a = side("a", dict.fromkeys(tasks, "1"))
    b = side("b", {key: "0" if int(key) < 5 else "1" for key in tasks}, flags=flags)
    found = seen(a, b)["outcomes"]
    assert [(term.term, round(term.value * 6)) for term in found.terms] == [
        ("errored", -1),
        ("timed out", -1),
        ("truncated", -1),  # not the row that passed
        ("no usable reward", -1),
        ("other failures", -1),
    ]


def test_scores_without_bounds_have_no_outcomes_but_all_other_views() -> None:
    labels = {"kind": {"1": "x", "2": "y"}}
    a, b = side("a", {"1": [-1], "2": [3]}, slices=labels), side("b", {"1": [2], "2": [1]}, slices=labels)
    found = seen(a, b)
    assert list(found) == ["slices: kind", "tasks", "settings"]
    assert all(total(view) == pytest.approx(0.5) for view in found.values())
