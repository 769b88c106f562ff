"""Comparisons on the wire: they validate, nothing is lost, and what must add up does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from blade.model import Alignment, Report, Term
from blade.report import report_json

from . import changed
from .test_wire import VALIDATOR

PROMISED = "baseline candidate delta verdict verdict_new_tasks margin mde tests bridge views flips config_diff refused".split()


def parsed(report: Report) -> Any:
    return json.loads(report_json.render(report), parse_constant=lambda name: pytest.fail(f"{name} on the wire"))


@pytest.mark.parametrize("make", [changed.pair_report, changed.many_report])
def test_comparisons_validate(make: Callable[[], Report]) -> None:
    document = parsed(make())
    VALIDATOR.validate(document)
    for found in document["comparisons"]:
        assert list(found)[: len(PROMISED)] == PROMISED


def test_a_report_without_comparisons_has_nulls(one_run: Report) -> None:
    document = parsed(one_run)
    assert (document["comparisons"], document["matrix"], document["series"], document["gate"]) == (
        [],
        None,
        None,
        None,
    )


def test_bridge_and_views_add_up_to_delta() -> None:
    (found,) = parsed(changed.pair_report())["comparisons"]
    for terms in (found["bridge"], *(view["terms"] for view in found["views"])):
        assert math.fsum(term["value"] for term in terms) == pytest.approx(found["delta"], abs=1e-9)
    assert found["delta"] == pytest.approx(0.21875)
    assert found["mde"] == found["power"]["mde"]


def test_long_lists_of_tasks_are_cut_and_counted() -> None:
    keys = tuple(str(at) for at in range(2500))
    report = changed.pair_report(alignment=Alignment("task key", keys, added=keys[:1001]))
    found = parsed(report)["comparisons"][0]["alignment"]
    assert (found["common"]["n"], len(found["common"]["tasks"])) == (2500, 1000)
    assert (found["added"]["n"], len(found["added"]["tasks"])) == (1001, 1000)
    assert found["removed"] == {"n": 0, "tasks": []}


def test_a_refused_pair_has_no_numbers_and_its_reason() -> None:
    document = parsed(changed.many_report())
    refused = document["comparisons"][-1]
    assert refused["refused"] == "the runs have no task in common"
    assert refused["delta"] is None
    assert refused["verdict"] is None
    assert refused["bridge"] == []
    assert refused["mde"] is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    report = changed.pair_report(p_adjusted=value, delta_common=value)
    (found,) = parsed(report)["comparisons"]
    assert found["p_adjusted"] is None
    assert found["delta_common"] is None


def test_a_term_without_a_value_is_refused() -> None:
    broken = Term("timeout", math.nan, None, None, None, "model", 3)
    with pytest.raises(ValueError, match="cannot add up"):
        report_json.render(changed.pair_report(bridge=(broken,)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d["comparisons"][0].update(verdict="unchanged"),
        lambda d: d["comparisons"][0].update(surprise=1),
        lambda d: d["comparisons"][0]["bridge"][0].update(value=None),
        lambda d: d["comparisons"][0]["bridge"][0].pop("n"),
        lambda d: d["comparisons"][0]["tests"][0].update(p=1.5),
        lambda d: d["comparisons"][0]["shifts"][0].update(status="changed"),
        lambda d: d["comparisons"][0]["alignment"]["common"].update(n=-1),
        lambda d: d["comparisons"][0].pop("alignment"),
        lambda d: d["gate"].update(verdict="MAYBE"),
        lambda d: d["gate"]["checks"][0].update(tier="vital"),
        lambda d: d["matrix"]["verdicts"][0].append("better"),
        lambda d: d["series"].pop("first_different"),
        lambda d: d.pop("matrix"),
    ],
)
def test_the_schema_refuses_what_is_wrong(spoil: Callable[[Any], Any]) -> None:
    document = json.loads(json.dumps(report_json.document(changed.many_report())))
    VALIDATOR.validate(document)
    spoil(document)
    assert not VALIDATOR.is_valid(document)


def test_the_same_report_is_the_same_bytes_whatever_the_order_of_mappings() -> None:
    report = changed.many_report()
    assert report.matrix is not None
    turned = replace(report.matrix, only_one=dict(reversed(list(report.matrix.only_one.items()))))
    assert report_json.render(replace(report, matrix=turned)) == report_json.render(report)


def test_a_claim_holds_its_rollouts_and_what_they_show_as_well() -> None:
    (found,) = parsed(changed.pair_report())["comparisons"]
    plain, mechanical = found["movers"]
    assert (plain["rollouts"], plain["beside"]) == ([], [])
    assert mechanical["rollouts"][0] == {"run": "cand", "task": "5", "repeat": 0}
    assert mechanical["beside"] == ["of the 7 failing rollouts of base 5 also time out"]
