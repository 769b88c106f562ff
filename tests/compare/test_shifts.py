"""What changed beside the score: planted behaviours, errors and effort, and twins that only wobble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.compare.shifts import LISTED, TESTED, shifts
from blade.compare.task_pairs import Paired, paired
from blade.model import Shift
from tests.compare.builders import Place, side
from tests.compare.versus import aligned

N, K = 30, 4
PASSED = {str(task): "1" * K for task in range(N)}


def rows(tasks: Iterable[int], repeats: Iterable[int] = range(K)) -> list[Place]:
    told = list(repeats)
    return [(str(task), repeat) for task in tasks for repeat in told]


def pair_of(before: Mapping[str, Any], after: Mapping[str, Any], outcomes: Mapping[str, str] = PASSED) -> Paired:
    a, b = side("old", outcomes, **before), side("new", outcomes, **after)
    return paired(a, b, aligned(a, b))


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
    assert found["drift"].change == 0.0
    assert found["drift"].p == 1.0


def test_effort_is_compared_where_both_runs_report_it() -> None:
    before = {(task, repeat): 100.0 + int(task) for task, repeat in rows(range(N))}
    after = {place: value * 2 for place, value in before.items() if int(place[0]) < 25}
    del after["0", 1]  # one row of a task that others report
    found = told({"effort": {"output_tokens": before, "cost": before}}, {"effort": {"output_tokens": after}})
    assert set(found) == {"output_tokens"}
    tokens = found["output_tokens"]
    assert (tokens.kind, tokens.status, tokens.n) == ("effort", "more", 25)
    assert tokens.baseline == pytest.approx(112.0)
    assert tokens.change == pytest.approx(112.0)


def test_an_effort_that_wobbles_is_unclear_whatever_its_unit() -> None:
    before = {(task, repeat): 1e-4 * (10 + int(task) % 7) for task, repeat in rows(range(8))}
    after = {(task, repeat): 1e-4 * (10 + (int(task) + 3) % 7) for task, repeat in rows(range(8))}
    found = told({"effort": {"cost": before}}, {"effort": {"cost": after}})["cost"]
    assert found.status == "unclear"
    # The interval is of the size of the differences, not of a whole dollar.
    assert -1e-3 < found.low < found.change < found.high < 1e-3


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
    a = side("old", PASSED, behaviours={"loop": []}, effort={"turns": dict.fromkeys(rows(range(N)), 1.0)})
    more = {**PASSED, **{str(task): "1111" for task in range(N, 2 * N)}}
    outside = rows(range(N, 2 * N))
    b = side(
        "new", more, behaviours={"loop": outside},
        effort={"turns": {**dict.fromkeys(rows(range(N)), 1.0), **dict.fromkeys(outside, 9.0)}},
    )
    found, _ = shifts(paired(a, b, aligned(a, b)))
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
    assert alone.p == among.p
    assert alone.p_adjusted == alone.p
    assert among.p_adjusted > alone.p
    assert (alone.status, among.status) == ("appeared", "unclear")


def test_long_lists_are_cut_and_the_rest_is_counted() -> None:
    n = TESTED + 5
    before = {"signatures": {f"e{i:03}": rows([i % N], [0]) for i in range(n)}}
    after = {"signatures": {f"e{i:03}": rows([(i + 1) % N], [0]) for i in range(n)} | {"real": rows(range(N))}}
    found, left_out = shifts(pair_of(before, after))
    assert len(found) == LISTED
    assert found[0].name == "real"
    assert left_out == n + 1 - LISTED


places = st.lists(st.tuples(st.integers(0, 9).map(str), st.integers(0, 2)), max_size=20, unique=True)
told_of_run = st.fixed_dictionaries(
    {
        "flags": st.fixed_dictionaries({"errored": places}),
        "behaviours": st.dictionaries(st.sampled_from("abc"), places, max_size=3),
        "signatures": st.dictionaries(st.sampled_from("xyz"), places, max_size=3),
        "effort": st.fixed_dictionaries({"turns": st.dictionaries(st.tuples(st.integers(0, 9).map(str), st.integers(0, 2)), st.sampled_from([0.1, 1.0, 7.3]), max_size=20)}),
    }
)  # fmt: skip
TURNED = {"appeared": "disappeared", "disappeared": "appeared", "more": "less", "less": "more", "unclear": "unclear"}


@settings(max_examples=60, deadline=None)
@given(told_of_run, told_of_run)
def test_exchanging_the_runs_turns_every_sign(one: dict[str, Any], other: dict[str, Any]) -> None:
    a, b = ({str(task): "1" * k for task in range(10)} for k in (3, 3))
    first, second = side("old", a, **one), side("new", b, **other)
    there, left = shifts(paired(first, second, aligned(first, second)))
    back, left_back = shifts(paired(second, first, aligned(second, first)))
    assert left == left_back
    for x, y in zip(there, back, strict=True):
        assert (x.kind, x.name, x.n, x.p, x.p_adjusted) == (y.kind, y.name, y.n, y.p, y.p_adjusted)
        assert (x.baseline, x.candidate, x.change) == (y.candidate, y.baseline, -y.change)
        assert (x.low, x.high) == (None if y.high is None else -y.high, None if y.low is None else -y.low)
        assert x.status == TURNED[y.status]
