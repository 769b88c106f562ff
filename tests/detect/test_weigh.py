"""What becomes of a detector by where it fires: a cause, a style note, or unproven."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from blade.detect import DETECTORS
from blade.detect.weigh import behaviours
from blade.model import Cause, Judged

Cell = tuple[int, int, int, int]  # of one task: fails with, passes with, fails without, passes without


def make_judged(
    cells: Sequence[Cell], judged: bool = True, broken: Sequence[int] = ()
) -> tuple[Judged, list[int]]:
    """The rows of some tasks, and the positions on which a detector fires; positions start at 100."""
    task: list[int] = []
    passed: list[bool] = []
    fires: list[bool] = []
    for code, counts in enumerate(cells):
        for n, shows, passes in zip(
            counts, (True, True, False, False), (False, True, False, True), strict=True
        ):
            task += [code] * n
            passed += [passes] * n
            fires += [shows] * n
    rows = np.arange(100, 100 + len(task))
    spoiled = np.isin(rows, np.asarray(broken, np.int64))
    told = Judged(
        "run", tuple(str(code) for code in range(len(cells))), rows, np.array(task), np.zeros(len(task), np.int64),
        np.array(passed), np.array(passed, float), judged, spoiled,
    )  # fmt: skip
    return told, [int(row) for row, fire in zip(rows, fires, strict=True) if fire]


def test_a_behaviour_of_hard_tasks_is_style() -> None:
    """All in one table it looks like a cause; within each task it makes no difference."""
    cells = [(12, 3, 4, 1)] * 5 + [(1, 4, 3, 12)] * 5
    judged, fired = make_judged(cells)
    (one,) = behaviours(judged, {"habit": fired})
    assert (one.in_fail, one.of_fail, one.in_pass, one.of_pass) == (65, 100, 35, 100)
    assert one.odds_ratio == pytest.approx(1.0)
    assert one.standing == "style"


def test_a_behaviour_that_fails_within_tasks_is_a_cause() -> None:
    judged, fired = make_judged([(3, 1, 1, 3), (2, 0, 2, 4), (4, 2, 0, 2)])
    (one,) = behaviours(judged, {"fault": fired})
    assert one.odds_ratio == pytest.approx(25.0)
    assert one.p == pytest.approx(0.01207, abs=1e-5)
    assert (one.n_rollouts, one.n_tasks) == (12, 3)
    assert one.standing == "cause"
    assert one.low is not None
    assert one.low > 1


def test_too_few_rollouts_prove_nothing() -> None:
    judged, fired = make_judged([(1, 0, 1, 2), (1, 1, 1, 1)])
    assert [one.standing for one in behaviours(judged, {"fault": fired})] == ["unproven"]


def test_a_behaviour_of_passes_is_style_at_once() -> None:
    judged, fired = make_judged([(0, 2, 2, 0), (1, 2, 1, 0)])
    (one,) = behaviours(judged, {"habit": fired})
    assert one.odds_ratio is not None
    assert one.odds_ratio < 1
    assert one.standing == "style"


def test_what_only_hard_tasks_show_is_not_proven_where_some_tasks_do_both() -> None:
    judged, fired = make_judged([(4, 0, 0, 0), (0, 0, 0, 4), (0, 0, 1, 3)])
    (one,) = behaviours(judged, {"fault": fired})
    assert (one.odds_ratio, one.p) == (None, None)
    assert one.standing == "unproven"


def test_what_every_rollout_shows_is_style() -> None:
    judged, fired = make_judged([(2, 2, 0, 0)] * 10)
    assert behaviours(judged, {"fault": fired})[0].standing == "style"
    judged, fired = make_judged([(2, 2, 0, 0)] * 2)
    assert behaviours(judged, {"fault": fired})[0].standing == "unproven"  # too few to say so


def test_what_no_pass_shows_is_a_cause_only_beyond_chance() -> None:
    judged, fired = make_judged([(2, 0, 2, 0), (0, 0, 1, 3)])
    assert behaviours(judged, {"fault": fired})[0].standing == "unproven"


def test_single_repeats_are_one_table_with_a_higher_bar() -> None:
    strong = [(1, 0, 0, 0)] * 12 + [(0, 0, 1, 0)] * 8 + [(0, 0, 0, 1)] * 20
    judged, fired = make_judged(strong)
    (one,) = behaviours(judged, {"fault": fired})
    assert one.standing == "cause"
    assert one.p is not None
    assert one.p < 0.001
    noise = {f"noise {n}": [100 + 5 * n] for n in range(8)}
    weak, weakly = make_judged([(1, 0, 0, 0)] * 5 + [(0, 0, 1, 0)] * 15 + [(0, 0, 0, 1)] * 20)
    alone = behaviours(weak, {"fault": weakly})[0]
    among = behaviours(weak, {"fault": weakly, **noise})[0]
    assert (alone.standing, among.standing) == ("cause", "unproven")


def test_broken_rows_count_for_infrastructure_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = SimpleNamespace(RULE=SimpleNamespace(cause=Cause.INFRASTRUCTURE))
    monkeypatch.setitem(DETECTORS, "outage", rule)
    judged, fired = make_judged([(4, 0, 2, 6)], broken=[100, 101, 102])
    outage, fault = behaviours(judged, {"outage": fired, "fault": fired})
    assert (outage.in_fail, outage.of_fail) == (4, 6)
    assert (fault.in_fail, fault.of_fail, fault.n_rollouts) == (1, 3, 4)


def test_rows_outside_the_comparison_and_silent_detectors_are_left_out() -> None:
    judged, fired = make_judged([(3, 1, 1, 3)])
    (one,) = behaviours(judged, {"fault": [*fired, 7, 9999], "silent": [], "elsewhere": [7]})
    assert (one.detector, one.n_rollouts) == ("fault", 4)


def test_what_only_failing_rollouts_can_show_is_never_weighed() -> None:
    judged, fired = make_judged([(9, 0, 1, 9)] * 3)
    (one,) = behaviours(judged, {"self_check_pass_verifier_fail": fired})
    assert (one.in_fail, one.odds_ratio, one.p, one.standing) == (27, None, None, "unproven")


def test_without_a_threshold_nothing_is_compared() -> None:
    judged, fired = make_judged([(9, 0, 1, 0)], judged=False)
    (one,) = behaviours(judged, {"fault": fired})
    assert (one.n_rollouts, one.of_fail, one.of_pass, one.standing) == (9, 0, 0, "unproven")


def test_a_detector_that_fires_on_broken_rows_alone_is_no_behaviour() -> None:
    judged, fired = make_judged([(2, 0, 0, 0)], broken=[100, 101])
    assert behaviours(judged, {"fault": fired}) == []
