"""Engine queries: one value by list, keys and field, and a clear refusal of everything else."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from msgspec.structs import replace

from blade.errors import UsageError
from blade.model import (
    Attribution,
    Blame,
    Cause,
    Confidence,
    Gain,
    Gap,
    Group,
    Loss,
    Recommendation,
    Report,
    Slice,
    Trust,
    Unexplained,
)
from blade.query.engine import LONGEST, Wish, evaluate, wish
from tests.case_tables import cases
from tests.report import changed
from tests.report.conftest import CASES, make_report, twenty


def group(key: str, label: Cause, rows: int, passed: int, gain: Gain | None = None) -> Group:
    return Group(
        id=key, run="desk", rung="behaviour", label=label, confidence=Confidence.LIKELY, name=f"name of {key}",
        text="", points=rows / 80, rows=rows, tasks=rows // 2, passed_rows=passed, query="select 1",
        examples=("6/0", "6/1"), quote=None, why_label="", against=(), consequences=(), fix="", gain=gain, most=rows / 80,
    )  # fmt: skip


GAIN = Gain(0.031, 0.08, 0.12)
TRUST = (Trust("desk", "alarm", Cause.DATA_ARTIFACT, "a reason", 80, "select 1"), Trust("desk", "note", None, "another", 3, "select 2"))
BLAMED = Attribution(
    id="cause:6", run="desk", task="6", group="g1", cause=Cause.BEHAVIOUR, confidence=Confidence.LIKELY, mode="name of g1",
    mechanism="", repeat=0, step=4, steps=(Blame(4, 0.61, "why"),), grounds=(), against=(), evidence=(), lost=0.05,
)  # fmt: skip
ADVICE = Recommendation(
    rank=1, run="desk", group="g1", action="fix it", cause=Cause.BEHAVIOUR, mode="name of g1", gain=GAIN, most=0.2,
    is_measurement=False, basis="", tasks=tuple(map(str, range(14))), evidence=(),
)  # fmt: skip


@pytest.fixture(scope="module")
def report() -> Report:
    return replace(
        make_report({"desk": twenty()}),
        losses=(Loss("desk", Cause.KNOWLEDGE_GAP, "a", 0.1), Loss("desk", Cause.BEHAVIOUR, "b", 0.2)),
        gaps=(Gap("it's", 'a "why"'), Gap("b", "c")),
        trust=TRUST,
        groups=(group("g1", Cause.BEHAVIOUR, 31, 2, GAIN), group("g2", Cause.UNDETERMINED, 8, 0)),
        unexplained=(Unexplained("desk", 0.0125, 1, "select 3"),),
        attributions=(BLAMED,),
        recommendations=(ADVICE,),
        accuracy={"date": "2026-11-16", "rungs": {"cut": {"n": 16, "right": 14}}},
    )


@pytest.fixture(scope="module")
def pair() -> Report:
    return changed.pair_report()


@pytest.mark.parametrize(("query", "value"), cases(__file__, "engine values"))
def test_a_query_gives_one_value(report: Report, query: str, value: Any) -> None:
    answer = evaluate(query, report)
    assert answer == (pytest.approx(value) if isinstance(value, float) else value)
    assert isinstance(answer, bool) == isinstance(value, bool)


@pytest.mark.parametrize(("query", "value"), cases(__file__, "engine comparisons"))
def test_a_query_reaches_into_comparisons(pair: Report, query: str, value: Any) -> None:
    assert evaluate(query, pair) == pytest.approx(value)


@pytest.mark.parametrize(("query", "value"), cases(__file__, "several runs"))
def test_several_runs_matrix_and_series_are_reached(query: str, value: Any) -> None:
    assert evaluate(query, changed.many_report()) == (pytest.approx(value) if isinstance(value, float) else value)


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


def test_numbers_that_are_not_there_are_left_out_of_a_sum(report: Report) -> None:
    slices = tuple(
        Slice(run="desk", field="kind", value=value, n_tasks=5, pass_rate=0.4, low=0.1, high=0.8, rest=0.6, p_adjusted=p)
        for value, p in (("a", None), ("b", 0.25), ("c", 0.5))
    )  # fmt: skip
    assert evaluate("engine.slices.p_adjusted", replace(report, slices=slices[:1])) is None
    assert evaluate("engine.slices.p_adjusted", replace(report, slices=slices)) == pytest.approx(0.75)


def test_every_kind_of_report_can_be_asked() -> None:
    for make in CASES.values():
        made = make()
        assert evaluate("engine.runs.count", made) == len(made.runs)
        assert evaluate("engine.losses.lost or 0", made) == pytest.approx(math.fsum(one.lost for one in made.losses))
