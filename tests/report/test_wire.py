"""The wire format: every report validates, nothing is lost, nothing is invented."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from blade.model import Measure, Report
from blade.report import report_json
from scripts import report_schema

SCHEMA = json.loads((files("blade.report") / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
KEYS = (
    "schema made_by runs measures buckets tasks health funnel slices trust groups unexplained task_matrix "
    "attributions losses run_causes comparisons recommendations claims skipped skipped_total gaps accuracy reported "
    "judgements agreements matrix series gate"
).split()
RUN_KEYS = (
    "name model agent benchmark sources artifacts notes settings n_tasks n_rollouts expected_rollouts scored failed masked "
    "lost duplicates repeats expected_from superseded unexpected identical_duplicates unnumbered_copies outcomes reward_kind pass_threshold score_name score oracle"
).split()


def read(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} on the wire"))


def parsed(report: Report) -> Any:
    return read(report_json.render(report))


@pytest.fixture(scope="module")
def printed(report: Report) -> str:
    """Every kind of report as it goes out, printed once."""
    return report_json.render(report)


def test_the_schema_is_made_of_the_nouns() -> None:
    assert report_schema.document() == SCHEMA, "make golden writes it"


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_report_validates(printed: str) -> None:
    document = read(printed)
    VALIDATOR.validate(document)
    assert list(document) == KEYS
    assert all(list(run) == RUN_KEYS for run in document["runs"])


def test_layout_is_a_line_for_each_entry_and_one_last_newline(report: Report, printed: str) -> None:
    assert printed.startswith('{\n"schema": "blade.report/2",\n"made_by": {')
    assert printed.endswith("\n}\n")
    assert '\n"claims": [\n{"id":"c1",' in printed or '\n"claims": [],\n' in printed
    assert report_json.render(report) == printed


def test_floats_print_by_repr(build: Callable[..., Report]) -> None:
    third = Measure("airline", "x", 1 / 3, 3, low=0.1 + 0.2, high=-0.0)
    text = report_json.render(build({"airline": {"0": [1.0]}}, measures=(third,)))
    assert '"value":0.3333333333333333,' in text
    assert '"low":0.30000000000000004,' in text
    assert '"high":0.0,' in text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(build: Callable[..., Report], value: float) -> None:
    document = parsed(
        build({"airline": {"0": [1.0]}}, measures=(Measure("airline", "x", value, 1, low=value, high=value),))
    )
    assert document["measures"][0]["value"] is None
    VALIDATOR.validate(document)


def test_other_scripts_are_kept_and_deceivers_escaped(build: Callable[..., Report]) -> None:
    report = build(
        {"Ωμέγα-日本": {"0": [1.0]}}, made_by={"blade": "1", "command": "a\u202eb\x9bc\ud800d\u2028"}
    )
    text = report_json.render(report)
    assert "Ωμέγα-日本" in text
    assert "a\\u202eb\\u009bc\\ud800d\\u2028" in text
    assert json.loads(text)["made_by"]["command"] == "a\u202eb\x9bc\ud800d\u2028"
    text.encode("utf-8")


def test_coverage_is_flat_and_adds_up(printed: str) -> None:
    for run in read(printed)["runs"]:
        assert run["expected_rollouts"] == run["scored"] + run["failed"] + run["masked"] + run["lost"]


def test_only_the_first_thousand_skipped_lines_are_listed(
    build: Callable[..., Report], one_run: Report
) -> None:
    report = build({"a": {"0": [1.0]}}, skipped=one_run.skipped * 1500, skipped_total=2000)
    document = parsed(report)
    assert len(document["skipped"]) == 1000
    assert document["skipped_total"] == 2000


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("claims"),
        lambda d: d.update(surprise=1),
        lambda d: d["runs"][0].update(score="0.5"),
        lambda d: d["runs"][0].update(reward_kind="fuzzy"),
        lambda d: d["measures"][0].update(n=-1),
        lambda d: d["health"][0]["evidence"][0].update(step=3),
        lambda d: d["health"][0]["evidence"][0].update(quote=None),
        lambda d: d["trust"][0].update(level="fatal"),
        lambda d: d["groups"][0].update(label="??"),
        lambda d: d["groups"][0].update(confidence=0.9),
        lambda d: d["groups"][0].update(examples=[]),
        lambda d: d["groups"][0]["quote"].update(field="error"),
        lambda d: d["groups"][0]["quote"].pop("step"),
        lambda d: d["groups"][0]["gain"].pop("level"),
        lambda d: d["attributions"][0].update(mechanism=""),
        lambda d: d["recommendations"][0].pop("most"),
        lambda d: d["tasks"][0].update(rate=1.5),
        lambda d: d["health"][0].update(level="fatal"),
    ],
)
def test_the_schema_refuses_what_is_wrong(explained: Report, spoil: Callable[[Any], Any]) -> None:
    document = json.loads(json.dumps(report_json.document(explained)))
    VALIDATOR.validate(document)
    spoil(document)
    assert not VALIDATOR.is_valid(document)
