"""Engine queries: one value by list, keys and field, and a clear refusal of everything else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from blade.errors import UsageError
from blade.model import Cause, Gap, Loss, Report
from blade.query.engine import LONGEST, evaluate
from tests.report import changed
from tests.report.conftest import CASES, make_report, twenty
from tests.report.explained import explain


@pytest.fixture(scope="module")
def report() -> Report:
    losses = (Loss("desk", Cause.KNOWLEDGE_GAP, "a", 0.1), Loss("desk", Cause.BEHAVIOUR, "b", 0.2))
    return explain(
        make_report({"desk": twenty()}), losses=losses, gaps=(Gap("it's", 'a "why"'), Gap("b", "c"))
    )


@pytest.fixture(scope="module")
def pair() -> Report:
    return changed.pair_report()


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("engine.losses(run='desk', cause='KG').lost", 0.1),
        ("engine.losses(run='desk').lost", math.fsum((0.1, 0.2))),
        ("engine.losses(run='desk', cause='IR').lost", 0),
        ("engine.losses(run='desk').count", 2),
        ("engine.losses.count", 2),
        ("engine.losses(cause='IR').count", 0),
        ("engine.mechanisms(run='desk', id='M1').n_with", 31),
        ("engine.mechanisms(id='M1').within_task", True),
        ("engine.recommendations(run='desk', rank=1).gain.low", 0.031),
        ("engine.recommendations(rank=1).tasks.count", 14),
        ("engine.attributions(task='6').steps[0].weight", 0.61),
        ("engine.attributions(task='6').cause", "BI"),
        ("engine.behaviours(detector='loops').odds_ratio", None),
        ("engine.gaps[0].what", "it's"),
        ("engine.gaps(why='a \"why\"').what", "it's"),
        ("engine.runs(name='desk').coverage.expected", 80),
        ("engine.runs(name='desk').settings['temperature']", "0.7"),
        ("engine.runs(name='desk').settings.count", 2),
        ("engine.accuracy['sets'][0]['causes']['accuracy']['n']", 340),
        ("engine.skipped_total", 1),
        (" engine.losses(cause='BI').lost - engine.losses(cause='KG').lost", 0.1),
        ("engine.mechanisms(id='M1').n_with * (1 - engine.mechanisms(id='M1').pass_with)", 29.0),
        ("engine.losses(cause='KG').lost / engine.losses.lost", 1 / 3),
        ("engine.tasks(run='desk', bucket='never').p_bucket / engine.tasks(bucket='never').count", 0.62),
    ],
)
def test_a_query_gives_one_value(report: Report, query: str, value: Any) -> None:
    answer = evaluate(query, report)
    assert answer == (pytest.approx(value) if isinstance(value, float) else value)
    assert isinstance(answer, bool) == isinstance(value, bool)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("engine.comparisons(baseline='base', candidate='cand').delta", 0.21875),
        ("engine.comparisons(candidate='cand').alignment.common.count", 8),
        ("engine.comparisons.bridge.value", 0.21875),
        ("engine.comparisons.bridge[1].term", "wrong_arg_field"),
        ("engine.comparisons.bridge(side='infrastructure').n", 8),
        ("engine.comparisons.transitions(before='never', after='always').n", 1),
        ("engine.comparisons.movers(mechanical=True, view='bridge').count", 1),
        ("engine.comparisons.flips[0].baseline[1]", 4),
        ("engine.comparisons.churn.n_up", 4),
        ("engine.comparisons.transitions(before='never', after='nowhere').n", 0),
        ("engine.series", None),
    ],
)
def test_a_query_reaches_into_comparisons(pair: Report, query: str, value: Any) -> None:
    assert evaluate(query, pair) == pytest.approx(value)


def test_several_runs_matrix_and_series_are_reached() -> None:
    report = changed.many_report()
    assert evaluate("engine.matrix.deltas[1][0]", report) == pytest.approx(0.1)
    assert evaluate("engine.matrix.only_one['step-2'].count", report) == 2
    assert evaluate("engine.series.learned[0][1]", report) == 0.98
    assert evaluate("engine.gate.checks(verdict='FAIL').n", report) == 8


@pytest.mark.parametrize(
    "query",
    [
        "",
        "engine",
        "engine.losses",
        "engine.losses(run='desk')",
        "engine.losses(run='desk').mode",
        "engine.losses(cause='IR').mode",
        "engine.comparisons(candidate='nobody').delta",
        "engine.nothing(run='desk').lost",
        "engine.losses(colour='red').lost",
        "engine.losses(run='desk').colour",
        "engine.losses(cause='IR').colour",
        "engine.losses(run=desk).lost",
        "engine.losses('desk').lost",
        "engine.losses(**{'run': 'desk'}).lost",
        "engine.losses[9].lost",
        "engine.losses[-1].lost",
        "engine.runs(name='desk').settings['colour']",
        "engine.losses.lost / engine.losses(cause='IR').lost",
        "engine.losses.lost - engine.gaps[0].what",
        "engine.made_by.keys()",
        "engine.__class__",
        "engine.losses.__class__",
        "engine.losses(run='desk').lost ** 9",
        "engine.losses(run='desk').lost if 1 else 2",
        "[engine.losses.lost for _ in (1, 2)]",
        "__import__('os').getcwd()",
        "engine.losses(run='desk'.upper()).lost",
        "losses(run='desk').lost",
        "True",
        "'desk'",
        "engine.losses.lost; 1",
        "engine." + "a." * 9_000 + "b",
        "(" * 5_000 + "engine" + ")" * 5_000,
        "engine.losses.lost" + " " * LONGEST,
        "engine.losses(run='\0').lost\0",
    ],
)
def test_what_is_no_query_is_refused(report: Report, query: str) -> None:
    with pytest.raises(UsageError) as refusal:
        evaluate(query, report)
    assert "engine.LIST(key=value" in refusal.value.hint
    assert len(refusal.value.message) < 400


def test_numbers_that_are_not_there_are_left_out_of_a_sum(report: Report) -> None:
    behaviours = tuple(replace(one, p=None) for one in report.behaviours)
    assert evaluate("engine.behaviours.p", replace(report, behaviours=behaviours[:1])) is None
    assert evaluate("engine.behaviours.p", report) == pytest.approx(0.0003 + 0.24 + 0.91)


def test_every_kind_of_report_can_be_asked() -> None:
    for make in CASES.values():
        made = make()
        assert evaluate("engine.runs.count", made) == len(made.runs)
        assert evaluate("engine.losses.lost", made) == pytest.approx(
            math.fsum(one.lost for one in made.losses)
        )
