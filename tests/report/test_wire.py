"""report.json and metrics.json: every report validates, nothing is lost, nothing is invented."""

from __future__ import annotations

import json
import math
import random
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from blade.model import Alignment, Cause, Gain, Loss, Measure, Report, Term
from blade.report import report_json
from blade.report.run_facts import facts
from scripts import report_schema

from . import changed
from .conftest import CASES, make_report
from .explained import SKIPS
from .renders import SAYINGS, Forms

SCHEMA = json.loads((files("blade.report") / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PROMISED = "baseline candidate delta verdict verdict_new_tasks margin mde tests bridge views flips config_diff refused".split()


def read(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} on the wire"))


def parsed(report: Report) -> Any:
    document = read(report_json.render(report))
    VALIDATOR.validate(document)
    return document


def test_the_schema_is_made_of_the_nouns_and_is_a_schema() -> None:
    assert report_schema.document() == SCHEMA, "make golden writes it"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_report_validates_and_has_a_line_for_each_entry(report: Report) -> None:
    text = report_json.render(report)
    document = parsed(report)
    assert list(document) == report_json.ORDER["Report"]
    for run in document["runs"]:
        assert list(run) == report_json.ORDER["Run"]
        assert run["expected_rollouts"] == run["scored"] + run["failed"] + run["masked"] + run["lost"]
    assert text.startswith('{\n"schema": "blade.report/2",\n"made_by": {')
    assert text.endswith("\n}\n")
    assert '\n"claims": [\n{"id":"c1",' in text or '\n"claims": [],\n' in text
    assert report_json.render(report) == text


def test_floats_print_by_repr() -> None:
    third = Measure("airline", "x", 1 / 3, 3, low=0.1 + 0.2, high=-0.0)
    text = report_json.render(make_report({"airline": {"0": [1.0]}}, measures=(third,)))
    for part in ('"value":0.3333333333333333,', '"low":0.30000000000000004,', '"high":0.0,'):
        assert part in text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(explained: Report, value: float) -> None:
    broken = replace(
        explained,
        measures=(Measure("desk", "x", value, 1, low=value, high=value),),
        slices=(replace(explained.slices[0], high=value, rest=value),),
        groups=(replace(explained.groups[0], gain=Gain(value, value, value)),),
        accuracy={"x": {"value": value}},
    )
    document = parsed(broken)
    numbers = document["measures"][0]["value"], document["groups"][0]["gain"]["point"], document["slices"][0]["rest"]
    assert (*numbers, document["accuracy"]) == (None, None, None, {"x": {"value": None}})
    assert all(Forms(broken).all)
    (found,) = parsed(changed.pair_report(p_adjusted=value, delta_common=value))["comparisons"]
    assert (found["p_adjusted"], found["delta_common"]) == (None, None)
    with pytest.raises(ValueError, match="cannot add up"):  # a term without a value is refused
        report_json.render(changed.pair_report(bridge=(Term("timeout", value, None, None, None, "model", 3),)))


def test_other_scripts_are_kept_and_deceivers_escaped() -> None:
    command = "a\u202eb\x9bc\ud800d\u2028"
    text = report_json.render(make_report({"Ωμέγα-日本": {"0": [1.0]}}, made_by={"blade": "1", "command": command}))
    assert "Ωμέγα-日本" in text
    assert "a\\u202eb\\u009bc\\ud800d\\u2028" in text
    assert json.loads(text)["made_by"]["command"] == command
    text.encode("utf-8")


def test_the_schema_refuses_what_is_wrong(explained: Report) -> None:
    texts = [json.dumps(report_json.document(report)) for report in (explained, changed.many_report())]
    for path, values in SAYINGS["spoiled"].items():
        *parents, last = path.split(".")
        document = json.loads(texts[path.split(".")[0] in ("comparisons", "gate", "matrix", "series")])
        VALIDATOR.validate(document) if path == "claims" else None
        part = document
        for name in parents:
            part = part[int(name) if name.isdigit() else name]
        key: Any = int(last) if last.isdigit() else last
        if values:
            part[key] = values[0]
        else:
            del part[key]
        assert not VALIDATOR.is_valid(document), path


def test_points_and_losses_add_up_and_what_is_absent_is_null(explained: Report) -> None:
    document = parsed(explained)
    lost = sum(loss["lost"] for loss in document["losses"])
    points = sum(part["points"] for part in (*document["groups"], *document["unexplained"]))
    assert lost == pytest.approx(1 - document["runs"][0]["score"]) == pytest.approx(points)
    assert [group["gain"] for group in document["groups"][1:]] == [None] * 4
    assert document["attributions"][5]["group"] is None
    assert [document[name] for name in ("task_matrix", "comparisons", "matrix", "series", "gate")] == [None, [], None, None, None]
    refused = parsed(changed.many_report())["comparisons"][-1]
    assert [refused[name] for name in ("delta", "verdict", "bridge", "mde")] == [None, None, [], None]
    matrix = parsed(CASES["explained runs"]())["task_matrix"]
    assert (matrix["runs"], matrix["passes"][8]) == (["desk", "desk-b"], [0.5, None])  # the second run has eight tasks


def test_the_order_of_the_conclusions_does_not_show(explained: Report) -> None:
    rng = random.Random(7)
    names = ("attributions", "losses", "recommendations")
    shuffled = {name: tuple(rng.sample(getattr(explained, name), len(getattr(explained, name)))) for name in names}
    assert Forms(replace(explained, **shuffled)).all == Forms(explained).all
    report = changed.many_report()
    assert report.matrix is not None
    matrix = replace(report.matrix, only_one=dict(reversed(list(report.matrix.only_one.items()))))
    assert report_json.render(replace(report, matrix=matrix)) == report_json.render(report)


def test_comparisons_add_up_and_hold_their_rollouts() -> None:
    (found,) = parsed(changed.pair_report())["comparisons"]
    assert list(found)[: len(PROMISED)] == PROMISED
    for terms in (found["bridge"], *(view["terms"] for view in found["views"])):
        assert math.fsum(term["value"] for term in terms) == pytest.approx(found["delta"], abs=1e-9)
    assert found["delta"] == pytest.approx(0.21875)
    assert found["mde"] == found["power"]["mde"]
    plain, mechanical = found["movers"]
    assert (plain["rollouts"], plain["beside"]) == ([], [])
    assert mechanical["rollouts"][0] == {"run": "cand", "task": "5", "repeat": 0}
    assert mechanical["beside"] == ["of the 7 failing rollouts of base 5 also time out"]


def test_long_lists_of_tasks_and_of_skipped_lines_are_cut_and_counted(one_run: Report) -> None:
    document = parsed(replace(one_run, skipped=one_run.skipped * 1500, skipped_total=2000))
    assert (len(document["skipped"]), document["skipped_total"]) == (1000, 2000)
    keys = tuple(str(at) for at in range(2500))
    report = changed.pair_report(alignment=Alignment("task key", keys, added=keys[:1001]))
    found = parsed(report)["comparisons"][0]["alignment"]
    assert (found["common"]["n"], len(found["common"]["tasks"])) == (2500, 1000)
    assert (found["added"]["n"], len(found["added"]["tasks"])) == (1001, 1000)
    assert found["removed"] == {"n": 0, "tasks": []}


METRICS = (
    "model model_name benchmark pass_at_1 pass_at_k consistency coverage total_tasks num_tasks total_rollouts num_rollouts "
    "passed_rollouts failed_rollouts always_pass_tasks sometimes_pass_tasks always_fail_tasks missing_tasks repeats score_name "
    "score dominant_failure_type dominant_failure_count dominant_failure_fraction"
).split()


def test_the_metrics_of_one_run_are_one_object_those_of_several_are_named(one_run: Report) -> None:
    found = json.loads(report_json.metrics_text(one_run))
    assert set(METRICS) <= set(found)
    assert found["pass_at_1"] == found["score"] == 0.5
    assert (found["pass_at_k"], found["k"]) == (0.75, 4)
    assert found["passed_rollouts"] + found["failed_rollouts"] == found["num_rollouts"] == 32
    buckets = ("always_pass", "sometimes_pass", "always_fail", "missing")
    assert [found[f"{bucket}_tasks"] for bucket in buckets] == [2, 4, 2, 0]
    assert found["dominant_failure_type"] is None
    assert list(json.loads(report_json.metrics_text(CASES["two runs"]()))["runs"]) == ["airline", "airline-b"]
    unbounded = json.loads(report_json.metrics_text(CASES["unbounded"]()))
    assert unbounded["score_name"] == "mean_reward"
    judged = ("pass_at_1", "pass_at_k", "passed_rollouts", "failed_rollouts", "always_pass_tasks")
    assert [unbounded[key] for key in judged] == [None] * 5


def test_metrics_tell_losses_and_the_dominant_mode_over_its_causes(explained: Report) -> None:
    found = report_json.metrics(facts(explained)[0])
    assert found["unexplained"] == pytest.approx(0.0875)
    assert sum(found["losses_by_cause"].values()) == pytest.approx(0.5)
    assert set(found["losses_by_cause"]) == {cause.value for cause in Cause}
    assert found["losses"]["model"] == pytest.approx(0.25)
    assert (found["dominant_failure_type"], found["dominant_failure_count"]) == (SKIPS, 5)
    assert found["dominant_failure_fraction"] == pytest.approx(0.325)
    parts = (("a", Cause.BEHAVIOUR, 0.2), ("b", Cause.KNOWLEDGE_GAP, 0.14), ("b", Cause.BEHAVIOUR, 0.16))
    split = replace(explained, losses=tuple(Loss("desk", cause, mode, lost) for mode, cause, lost in parts))
    assert report_json.metrics(facts(split)[0])["dominant_failure_type"] == "b"
