"""What rollouts cost, by outcome."""

from __future__ import annotations

from typing import Any

from blade.measure.outcome_rates import effort as measures
from blade.measure.scoring import scoring
from blade.model import Measure
from tests.measure.builders import make_rollouts

NAN = float("nan")


def effort(rewards: Any, **columns: Any) -> dict[tuple[str, str | None], Measure]:
    rollouts = make_rollouts(rewards, **columns)
    return {(each.name, each.slice): each for each in measures(rollouts, scoring(rollouts, None))}


def test_mean_and_median_over_rows_that_report() -> None:
    found = effort({"a": [1, 1, 0, 0]}, output_tokens=[10.0, 20.0, 90.0, NAN], errored=[False, False, False, True])
    assert (found["output_tokens", "all"].value, found["output_tokens", "all"].n) == (40.0, 3)
    assert found["output_tokens_median", "all"].value == 20.0
    assert found["output_tokens", "passed"].value == 15.0
    assert found["output_tokens", "failed"].value == 90.0
    nothing = found["output_tokens", "errored"]
    assert (nothing.value, nothing.n) == (None, 0)
    assert found["output_tokens", "all"].unit == "rows"
    assert found["output_tokens", "all"].low is None
    assert found["output_tokens", "all"].method == "mean over rows that report it"


def test_nothing_where_no_row_reports() -> None:
    found = effort({"a": [1, 0]})
    assert {name for name, _ in found} == {"turns", "turns_median", "items", "items_median"}


def test_counts_keep_their_zeros_beside_others() -> None:
    assert effort({"a": [1, 0]}, n_calls=[4, 0])["tool_calls", "all"].value == 2.0


def test_masked_rows_and_missing_pass_rates() -> None:
    found = effort({"a": [-1, 5, 9]}, wall_s=[1.0, 3.0, 50.0], masked=[False, False, True])
    assert found["wall_s", "all"].value == 2.0
    assert {label for _, label in found} == {"all"}


def test_an_empty_run() -> None:
    assert effort({}) == {}
