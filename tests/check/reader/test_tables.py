"""Tables both ways round, cell by cell."""

from __future__ import annotations

import pytest

from blade.check.world import World
from tests.check.reader.worlds import ALPHA, false_lines, said

MODELS = """| Model | pass@1 | pass@4 | tasks | rollouts |
| --- | --- | --- | --- | --- |
| alpha | 43.8% | 0.67 | 12 | 48 |
| beta | {beta} | 0.83 | 12 | 48 |
"""
TURNED = """| Metric | alpha | beta |
| --- | ---: | ---: |
| pass@1 | 43.8% | 79.2% |
| Never pass | 4 | 2 |
| Always pass | {always} | 8 |
| Rollouts | 48 | 48 |
"""
TASKS = """| Task | Passes | Bucket | Cause |
| --- | --- | --- | --- |
| 0 | 4/4 | always | |
| 4 | {four} | sometimes | BI |
| 7 | 1/4 | {seven} | |
| 8 | 0/4 | never | KG |
"""
BUCKETS = """| Bucket | Tasks | Share |
| --- | --- | --- |
| Always pass | 3 | 25% |
| Sometimes | 5 | {some} |
| Always fail | {never} | 33% |
| Total | 12 | 100% |
"""
SLICES = """| Category | Tasks | Pass rate |
| --- | --- | --- |
| refund | 4 | 81% |
| exchange | 4 | {exchange} |
| lookup | {lookup} | 0% |
"""


def test_models_down_and_metrics_across(both: World) -> None:
    assert false_lines(MODELS.format(beta="79.2%"), both) == []
    assert false_lines(MODELS.format(beta="72.9%"), both) == [4]
    assert len(said(MODELS.format(beta="79.2%"), both, "supported")) == 8


def test_metrics_down_and_models_across(both: World) -> None:
    assert false_lines(TURNED.format(always=3), both) == []
    assert false_lines(TURNED.format(always=8), both) == [5]
    assert len(said(TURNED.format(always=3), both, "supported")) == 8


def test_tasks_down(alpha: World) -> None:
    assert false_lines(TASKS.format(four="2/4", seven="sometimes"), alpha) == []
    assert false_lines(TASKS.format(four="3/4", seven="sometimes"), alpha) == [4]
    assert false_lines(TASKS.format(four="2/4", seven="never"), alpha) == [5]
    assert false_lines(TASKS.format(four="2/4", seven="sometimes").replace("| 8 |", "| 80 |"), alpha) == [6]


def test_buckets_down(alpha: World) -> None:
    assert false_lines(BUCKETS.format(some="42%", never=4), alpha) == []
    assert false_lines(BUCKETS.format(some="24%", never=4), alpha) == [4]
    assert false_lines(BUCKETS.format(some="42%", never=5), alpha) == [5]


def test_slices_down(alpha: World) -> None:
    assert false_lines(SLICES.format(exchange="50%", lookup=4), alpha) == []
    assert false_lines(SLICES.format(exchange="56%", lookup=4), alpha) == [4]
    assert false_lines(SLICES.format(exchange="50%", lookup=5), alpha) == [5]


def test_percent_in_the_header(alpha: World) -> None:
    table = "| Run | pass@1 (%) | Δ |\n| --- | --- | --- |\n| alpha | {} | 9.9 |\n"
    assert false_lines(table.format("43.8"), alpha) == []
    assert false_lines(table.format("48.3"), alpha) == [3]


@pytest.mark.parametrize(
    "table",
    [
        "| Setting | pass@1 |\n| --- | --- |\n| with retries | 91% |\n| temperature 0 | 12% |\n",
        "| Model | pass@1 |\n| --- | --- |\n| gamma | 91% |\n",
        "| Step | Result |\n| --- | --- |\n| 1 | 99 |\n",
        "| a | b |\n| 1 |\n",
        "Examples of failing tasks:\n\n| Bucket | Tasks |\n| --- | --- |\n| Never pass | 2 |\n",
    ],
)
def test_what_a_table_does_not_say_of_the_runs_raises_no_alarm(alpha: World, table: str) -> None:
    assert false_lines(table, alpha) == []


def test_a_table_of_fifty_thousand_rows_is_read_to_its_end(alpha: World) -> None:
    lines = ["| Task | Passes |", "| --- | --- |"]
    lines += [f"| {at % 12} | {ALPHA[at % 12]}/4 |" for at in range(50_000)]
    lines[40_001] = "| 2 | 3/4 |"
    assert false_lines("\n".join(lines), alpha) == [40_002]
