"""Engine queries: one value by list, keys and field, and a clear refusal of everything else."""

from __future__ import annotations

import math
import re
from typing import Any, get_type_hints

import pytest
from msgspec import convert
from msgspec.structs import replace

from blade.errors import UsageError
from blade.model import Report, Slice
from blade.query.engine import LONGEST, Wish, evaluate, wish
from tests.case_tables import cases
from tests.report import changed
from tests.report.conftest import CASES, make_report, twenty


@pytest.fixture(scope="module")
def report() -> Report:
    """A report on 80 rows with two groups, in the words of the table `engine report`."""
    (parts,), types = cases(__file__, "engine report"), get_type_hints(Report)
    return replace(make_report({"desk": twenty()}), **{name: convert(value, types[name]) for name, value in parts.items()})


TABLES = {"engine values": "report", "engine comparisons": "pair", "several runs": "many"}


@pytest.mark.parametrize(("of", "query", "value"), [(of, *row) for table, of in TABLES.items() for row in cases(__file__, table)])
def test_a_query_gives_one_value(report: Report, of: str, query: str, value: Any) -> None:
    asked = report if of == "report" else changed.pair_report() if of == "pair" else changed.many_report()
    answer = evaluate(query, asked)
    assert answer == (pytest.approx(value) if isinstance(value, float) else value)
    assert isinstance(answer, bool) == isinstance(value, bool)


def test_a_matrix_is_asked_by_the_names_it_has() -> None:
    report = changed.many_report()
    assert evaluate("engine.matrix.settings['temperature']", report) == report.matrix.settings[0][1]  # type: ignore[union-attr]
    for query, why in (("(baseline='step-1').n_tasks", "nothing matches baseline='step-1' in"), (".deltas['nobody']['base']", "there is no entry 'nobody'")):
        with pytest.raises(UsageError, match=why):
            evaluate("engine.matrix" + query, report)


TOO_LONG = ("engine." + "a." * 9_000 + "b", "(" * 5_000 + "engine" + ")" * 5_000, "engine.losses.lost" + " " * LONGEST)


@pytest.mark.parametrize("query", [*cases(__file__, "engine refusals"), *TOO_LONG])
def test_what_is_no_query_is_refused(report: Report, query: str) -> None:
    with pytest.raises(UsageError) as refusal:
        evaluate(query, report)
    assert "engine.LIST(key=value" in refusal.value.hint
    assert len(refusal.value.message) < 400


EMPTY: dict[str, Any] = {
    "delta": None, "bridge": (), "movers": (), "transitions": (), "shifts": (), "churn": None, "refused": "no"
}  # fmt: skip


@pytest.mark.parametrize(("query", "message"), cases(__file__, "engine without value"))
def test_nothing_is_never_a_number(query: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        evaluate(query, changed.pair_report(**EMPTY))


@pytest.mark.parametrize("query", ["engine.comparisons(candidate='b').delta", "engine.matrix.n_tasks", "engine.series.slope"])
def test_one_run_is_not_compared(report: Report, query: str) -> None:
    with pytest.raises(UsageError, match="takes two runs or more, and only desk was given") as refusal:
        evaluate(query, report)
    assert "blade query BASELINE CANDIDATE" in refusal.value.hint
    with pytest.raises(UsageError, match="takes two runs or more"):
        wish(query, ["desk"])


@pytest.mark.parametrize(("query", "wanted"), cases(__file__, "comparisons that are named"))
def test_a_query_names_its_comparison(query: str, wanted: dict[str, Any] | None) -> None:
    assert wish(query, ["a", "b"]) == (None if wanted is None else Wish(**wanted))


def test_numbers_that_are_not_there_are_left_out_of_a_sum_and_every_report_can_be_asked(report: Report) -> None:
    slices = tuple(
        Slice(run="desk", field="kind", value=value, n_tasks=5, pass_rate=0.4, low=0.1, high=0.8, rest=0.6, p_adjusted=p)
        for value, p in (("a", None), ("b", 0.25), ("c", 0.5))
    )  # fmt: skip
    assert evaluate("engine.slices.p_adjusted", replace(report, slices=slices[:1])) is None
    assert evaluate("engine.slices.p_adjusted", replace(report, slices=slices)) == pytest.approx(0.75)
    for make in CASES.values():
        made = make()
        assert evaluate("engine.runs.count", made) == len(made.runs)
        assert evaluate("engine.losses.lost or 0", made) == pytest.approx(math.fsum(one.lost for one in made.losses))
