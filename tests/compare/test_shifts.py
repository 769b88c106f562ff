"""What changed beside the score: planted behaviours, errors and effort, pass@k, and twins that only wobble."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from blade.compare.shifts import LISTED, TESTED, derived, shifts
from blade.compare.task_pairs import Paired
from blade.model import Derived, Shift
from tests.compare import builders
from tests.compare.builders import F1_A, F1_B, Place, named, side

N, K = 30, 4
PASSED = {str(task): "1" * K for task in range(N)}


def rows(tasks: Iterable[int], repeats: Iterable[int] = range(K)) -> list[Place]:
    told = list(repeats)
    return [(str(task), repeat) for task in tasks for repeat in told]


def pair_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> Paired:
    a, b = (side(name, PASSED | more.pop("outcomes", {}), **more) for name, more in (("old", {**before}), ("new", {**after})))
    return builders.pair_of(a, b)


def told(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Shift]:
    found, _ = shifts(pair_of(before, after))
    return {one.name: one for one in found}


@pytest.mark.parametrize(("field", "kind"), [("behaviours", "behaviour"), ("signatures", "signature"), ("flags", "outcome")])
def test_what_one_run_never_shows_appears_or_disappears(field: str, kind: str) -> None:
    shown, hidden = {field: {"loop": rows(range(12), [0, 1])}}, {field: {"loop": []}}
    found = told(hidden, shown)["loop"]
    assert (found.kind, found.status, found.n) == (kind, "appeared", N)
    assert (found.baseline, found.candidate) == (0.0, pytest.approx(12 * 0.5 / N))
    assert found.change == pytest.approx(0.2)
    assert 0 < found.low < found.change < found.high
    assert told(shown, hidden)["loop"].status == "disappeared"


def test_a_few_tasks_are_not_enough_to_say_that_something_appeared() -> None:
    few = told({"behaviours": {"loop": []}}, {"behaviours": {"loop": rows(range(5))}})["loop"]
    assert few.status == "unclear"
    assert few.p_adjusted is None  # five signs cannot tell
    assert told({}, {"behaviours": {"loop": rows(range(6))}})["loop"].status == "appeared"


def test_more_and_less_and_a_twin_that_goes_both_ways() -> None:
    before = {"behaviours": {"loop": rows(range(20), [0]), "guess": rows(range(20)), "drift": rows(range(10), [0])}}
    after = {"behaviours": {"loop": rows(range(20), [0, 1, 2]), "guess": rows(range(20), [3]), "drift": rows(range(10, 20), [0])}}
    found = told(before, after)
    assert {name: one.status for name, one in found.items()} == {"loop": "more", "guess": "less", "drift": "unclear"}
    assert (found["drift"].change, found["drift"].p) == (0.0, 1.0)


def test_effort_is_compared_where_both_runs_report_it() -> None:
    before = {(task, repeat): 100.0 + int(task) for task, repeat in rows(range(N))}
    after = {place: value * 2 for place, value in before.items() if int(place[0]) < 25}
    del after["0", 1]  # one row of a task that others report
    found = told({"effort": {"output_tokens": before, "cost": before}}, {"effort": {"output_tokens": after}})
    assert set(found) == {"output_tokens"}
    tokens = found["output_tokens"]
    assert (tokens.kind, tokens.status, tokens.n) == ("effort", "more", 25)
    assert (tokens.baseline, tokens.change) == (pytest.approx(112.0), pytest.approx(112.0))


def test_what_nobody_shows_or_all_tasks_show_alike_is_not_told() -> None:
    same = {
        "behaviours": {"loop": rows(range(9), [0]), "none": []},
        "flags": {"errored": []},
        "effort": {"calls": dict.fromkeys(rows(range(N)), 0.0)},
    }
    assert shifts(pair_of(same, same)) == ((), 0)
    # The same number of rows in the same task is alike, whichever repeat it is.
    other = {**same, "behaviours": {"loop": rows(range(9), [2])}}
    assert shifts(pair_of(same, other)) == ((), 0)


def test_rows_of_tasks_that_only_one_run_has_do_not_count() -> None:
    inside, outside = (dict.fromkeys(rows(tasks), turns) for tasks, turns in ((range(N), 1.0), (range(N, 2 * N), 9.0)))
    after = {"outcomes": {str(task): "1111" for task in range(N, 2 * N)}, "behaviours": {"loop": outside}}
    before = {"behaviours": {"loop": []}, "effort": {"turns": inside}}
    found, _ = shifts(pair_of(before, after | {"effort": {"turns": inside | outside}}))
    assert [(one.name, one.baseline, one.candidate) for one in found] == [("turns", 1.0, 1.0)]


def test_kinds_come_in_order_and_the_surest_first() -> None:
    before = {"flags": {"errored": rows(range(8)), "truncated": []}, "behaviours": {"a": [], "b": []}, "signatures": {"s": []}}
    after = {
        "flags": {"errored": [], "truncated": rows(range(3))},
        "behaviours": {"a": rows(range(7)), "b": rows(range(20))},
        "signatures": {"s": rows(range(9))},
        "effort": {"turns": dict.fromkeys(rows(range(N)), 5.0)},
    }
    before["effort"] = {"turns": dict.fromkeys(rows(range(N)), 4.0)}
    found, left_out = shifts(pair_of(before, after))
    assert [(one.kind, one.name) for one in found] == [
        ("outcome", "errored"), ("outcome", "truncated"), ("effort", "turns"), ("behaviour", "b"), ("behaviour", "a"), ("signature", "s"),
    ]  # fmt: skip
    assert left_out == 0


def test_many_tests_are_adjusted_within_their_kind() -> None:
    noise = {f"noise {i}": rows([i], [0]) for i in range(10)} | {f"more {i}": rows(range(i, i + 7), [0]) for i in range(20)}
    crossed = {name: rows([(int(task) + 9) % N for task, _ in places], [0]) for name, places in noise.items()}
    alone = told({"signatures": {}}, {"signatures": {"s": rows(range(7))}})["s"]
    among = told({"signatures": noise}, {"signatures": {**crossed, "s": rows(range(7))}})["s"]
    assert among.p_adjusted > alone.p == alone.p_adjusted == among.p
    assert (alone.status, among.status) == ("appeared", "unclear")


def test_long_lists_are_cut_and_the_rest_is_counted() -> None:
    n = TESTED + 5
    before = {"signatures": {f"e{i:03}": rows([i % N], [0]) for i in range(n)}}
    after = {"signatures": {f"e{i:03}": rows([(i + 1) % N], [0]) for i in range(n)} | {"real": rows(range(N))}}
    found, left_out = shifts(pair_of(before, after))
    assert (len(found), found[0].name, left_out) == (LISTED, "real", n + 1 - LISTED)


def of_rows(
    a: Sequence[str | Sequence[float]], b: Sequence[str | Sequence[float]], effort_a: Mapping[str, Any] | None = None,
    effort_b: Mapping[str, Any] | None = None,
) -> Paired:
    return builders.pair_of(side("old", named(a), effort=effort_a), side("new", named(b), effort=effort_b))


def measures(pair: Paired) -> dict[tuple[str, int | None], Derived]:
    return {(one.name, one.k): one for one in derived(pair)}


def test_reference_values() -> None:
    found = measures(of_rows(F1_A, F1_B))
    values = {name: (one.baseline, one.candidate) for name, one in found.items()}
    assert values == {
        ("pass_at_k", 2): (pytest.approx(0.6458333333), pytest.approx(0.7916666667)),
        ("pass_at_k", 4): (pytest.approx(0.75), pytest.approx(0.875)),
        ("pass_hat_k", 2): (pytest.approx(0.3541666667), pytest.approx(0.6458333333)),
        ("pass_hat_k", 4): (pytest.approx(0.25), pytest.approx(0.625)), ("solved", None): (0.75, 0.875),
        ("consistency", None): (0.25, 0.625),
    }
    for one in found.values():
        assert one.change == one.candidate - one.baseline
        assert one.low <= one.change <= one.high
        assert (one.n, one.method, one.unit) == (8, "task bootstrap", "rate")


def test_the_bootstrap_draws_tasks() -> None:
    first, second = (replace(side(name, named(rows)), score_name="mean_reward") for name, rows in (("old", F1_A), ("new", F1_B)))
    found = measures(builders.pair_of(first, second))["pass_at_1", None]
    assert (found.baseline, found.candidate, found.change) == (0.5, 0.71875, 0.21875)
    assert found.low == pytest.approx(-0.15625, abs=1 / 32)  # means of eight tasks go in such steps
    assert found.high == pytest.approx(0.5625, abs=1 / 32)


def test_k_goes_as_far_as_half_of_the_tasks_have_rows_in_both_runs() -> None:
    found = measures(of_rows(["1010", "1100", "11", "1"], ["1011", "0000", "1010", "1111"]))
    assert {k: one.n for (name, k), one in found.items() if name == "pass_at_k"} == {2: 3, 4: 2}
    lone = measures(of_rows(["1", "0", "1111"], ["0", "0", "1111"]))
    assert {name for name, _ in lone} == {"solved", "consistency"}


def test_more_repeats_alone_solve_no_more_tasks() -> None:
    """Twice the rows of the same rate: counted raw, more tasks would be solved, and fewer always."""
    found = measures(of_rows(["10", "10", "00", "11"], ["1010", "1100", "0000", "1111"]))
    assert found["solved", None].baseline == 0.75
    assert found["solved", None].candidate == pytest.approx((5 / 6 + 5 / 6 + 0 + 1) / 4)
    assert found["consistency", None].candidate == pytest.approx((1 / 6 + 1 / 6 + 0 + 1) / 4)
    assert "fewer" in found["solved", None].method
    # and without a pass rate there is none
    assert derived(of_rows([[0.2, 0.4], [0.3, 0.5]], [[0.1, 0.2], [0.7, 0.5]])) == ()
    assert derived(of_rows([], [])) == ()


def effort(values: Sequence[float], k: int = 2) -> dict[tuple[str, int], float]:
    return {(str(task), repeat): value for task, value in enumerate(values) for repeat in range(k)}


def test_effort_is_a_mean_of_tasks_and_output_tokens_have_a_ratio() -> None:
    rng = np.random.default_rng(1)
    before = rng.uniform(500, 1500, 40).tolist()
    after = [value * factor for value, factor in zip(before, rng.uniform(1.3, 1.7, 40).tolist(), strict=True)]
    reported = {"output_tokens": effort(before), "turns": effort(before)}
    found = measures(of_rows(["10"] * 40, ["10"] * 40, reported, {"output_tokens": effort(after)}))
    tokens, ratio = found["output_tokens", None], found["log_output_tokens", None]
    assert (tokens.unit, ratio.unit) == ("tokens", "log ratio")
    assert tokens.baseline == pytest.approx(np.mean(before))
    assert math.exp(ratio.change) == pytest.approx(np.mean(after) / np.mean(before))
    assert math.log(1.4) < ratio.low < ratio.change < ratio.high < math.log(1.6)
    assert ("turns", None) not in found  # the candidate does not report them


@pytest.mark.parametrize("odd", [[-50.0, 20.0, 10.0], [0.0, 0.0, 0.0], [-5.0, 5.0, 0.0]])
def test_tokens_that_are_no_amount_have_no_ratio(odd: list[float]) -> None:
    """Rows may report fewer tokens than none; near-miss: a task without any is an amount."""
    a, b = (["10"] * 3,) * 2
    found = measures(of_rows(a, b, {"output_tokens": effort([3.0, 4.0, 5.0])}, {"output_tokens": effort(odd)}))
    assert ("log_output_tokens", None) not in found
    assert found["output_tokens", None].candidate == pytest.approx(np.mean(odd))
    some = measures(of_rows(a, b, {"output_tokens": effort([3.0, 4.0, 5.0])}, {"output_tokens": effort([0.0, 8.0, 4.0])}))
    assert some["log_output_tokens", None].change == pytest.approx(0.0)


def test_many_tasks_take_an_interval_without_draws_that_is_the_same() -> None:
    rng = np.random.default_rng(2)
    n = 400
    before, after = rng.gamma(2, 500, n), rng.gamma(2, 600, n)
    # Each second of two hundred values for two tasks: few enough to draw, and spread alike.
    coarse = np.repeat(np.sort(before)[::4], 4), np.repeat(after[::4], 4)
    whole, few = (
        of_rows(["10"] * n, ["10"] * n, *({"output_tokens": effort(values.tolist())} for values in runs))
        for runs in ((before, after), coarse)
    )
    for name in ("output_tokens", "log_output_tokens"):
        exact, drawn = measures(whole)[name, None], measures(few)[name, None]
        assert (exact.method, drawn.method) == ("paired t", "task bootstrap")
        assert exact.high - exact.low == pytest.approx(drawn.high - drawn.low, rel=0.25)
