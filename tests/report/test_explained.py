"""What the ladder concludes, as a reader meets it: trust, groups, tasks, fixes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from blade.model import Cause, Gain, Loss, Report
from blade.report import RENDERERS, causes, figures, html, markdown, metrics, report_json
from blade.report.facts import facts
from tests.inert import uncited

from .conftest import make_report, twenty
from .explained import GOLD, OUTAGE, SKIPS, STALE, STOPS, UNEXPLAINED, explain
from .test_markdown import section
from .test_wire import VALIDATOR, parsed

Cases = dict[str, Callable[[], Report]]


def first(report: Report, title: str) -> str:
    return section(markdown.render(report), title).strip()


def table(said: str) -> list[list[str]]:
    """The body of the first table of a page, cell by cell."""
    rows = re.search(r"(?:^\| .*\n?)+", said, re.MULTILINE)
    assert rows is not None
    return [line.strip("| ").split(" | ") for line in rows[0].strip().split("\n")[2:]]


# ---- Executive Summary ---------------------------------------------------------------------------


def test_the_summary_asks_for_trust_before_it_says_where_the_points_went(explained: Report) -> None:
    said = first(explained, "Executive Summary")
    heads = ["**50.0%** passed", "**Can the score be trusted?** **No.**", "**Where the points went**", "**On which tasks**",
             "**Fix first**", "**Look at**"]  # fmt: skip
    places = [said.index(head) for head in heads]
    assert places == sorted(places)


def test_the_points_of_groups_and_unexplained_add_up(explained: Report) -> None:
    rows = table(first(explained, "Executive Summary"))
    assert [row[1] for row in rows] == [SKIPS, GOLD, STALE, OUTAGE, STOPS, UNEXPLAINED]
    assert rows[0] == ["16.2 points", SKIPS, "BI", "13 failures", "1 pass"]
    assert abs(sum(float(row[0].removesuffix(" points")) for row in rows) - 50.0) < 0.3
    points = [one.points for one in (*explained.groups, *explained.unexplained)]
    assert sum(points) == pytest.approx(1 - explained.runs[0].score)  # type: ignore[operator]


def test_only_the_labels_that_occur_are_spelled_out(explained: Report) -> None:
    said = first(replace(explained, groups=explained.groups[:2]), "Executive Summary")
    assert "**Where the points went** (BI: behaviour; TI: task, verifier or harness)" in said
    assert "unreliable" not in said


def test_a_measurement_to_repair_promises_no_gain(explained: Report) -> None:
    said = first(explained, "Executive Summary").split("**Fix first**")[1]
    assert "gold breaks the policy. (Fixes the measurement, not the model.)" in said
    assert "Expected gain +8.4 points (95% interval +3.1 points to +14.2 points)." in said
    assert said.count("Expected gain") == 1


def test_a_gain_that_is_not_identified_is_only_bounded(explained: Report) -> None:
    unknown = tuple(replace(one, gain=None, is_measurement=False, most=0.084) for one in explained.recommendations)
    said = first(replace(explained, recommendations=unknown), "Executive Summary")
    assert "(Gain not identified; at most 8.4 points.)" in said
    assert "Expected gain" not in said
    nothing = tuple(replace(one, most=0.0) for one in unknown)
    assert "not identified" not in first(replace(explained, recommendations=nothing), "Executive Summary")


# ---- Dominant Failure Modes ----------------------------------------------------------------------


def test_a_group_says_what_it_is_why_the_label_what_speaks_against_it_and_the_fix(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes").split("### ")[1]
    parts = [
        f"1. {SKIPS} (BI)",
        "13 failures show it",
        "Likely: the tool accepts an item that no look-up returned.",
        "Against it: one pass does the same.",
        "Fix: Refuse exchange_items unless",
        "Rollouts: `6/1`, `9/3`, `13/1`, `14/0` and `17/0`.",
        "Failing, task `6/1#7`:",
        '> {"order_id": "\\#W42"}',
    ]
    places = [said.index(part) for part in parts]
    assert places == sorted(places)


def test_groups_are_told_the_largest_first_and_the_rest_is_counted(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes")
    titles = re.findall(r"^### (.*)$", said, re.MULTILINE)
    assert titles == [f"1. {SKIPS} (BI)", f"2. {GOLD} (TI)", f"3. {STALE} (UK)", f"4. {OUTAGE} (IR)"]
    assert "1 more group is in report.json." in said


def test_health_flags_are_no_failure_groups(explained: Report) -> None:
    assert "Rollouts are lost." not in first(explained, "Dominant Failure Modes")
    assert "Rollouts are lost." in first(explained, "Aggregate Results")


def test_names_between_backticks_are_code_and_one_that_was_cut_off_stays_text(explained: Report) -> None:
    named = replace(explained.groups[0], text="31 never call `get_x`: 6% of them pass.", name="never calls `getx")
    report = replace(explained, groups=(named,))
    assert "31 never call `get_x`: 6% of them pass. Likely" in first(report, "Dominant Failure Modes")
    assert "never calls \\`getx (BI)" in first(report, "Dominant Failure Modes")
    assert "31 never call <code>get_x</code>: 6% of them pass." in html.render(report)


# ---- Deep dives ----------------------------------------------------------------------------------


def test_a_task_tells_its_own_rows_the_dearest_first(explained: Report) -> None:
    rows = table(first(explained, "Sometimes-Pass Deep Dives"))
    assert rows[0] == ["`6` `tau-6`", "1 of 4", "BI", "3 of its 4 rollouts show it", "`6/0 6/1`"]
    passed = [int(row[1][0]) for row in rows]
    assert passed == sorted(passed)


def test_an_unexplained_task_is_called_undetermined(explained: Report) -> None:
    rows = table(first(explained, "Never-Pass Deep Dives"))
    assert rows[-1][2:4] == ["undetermined", "4 of its 4 rollouts fail, and the rows do not show why."]


def test_several_runs_share_the_room_for_tasks(cases: Cases) -> None:
    said = first(cases["explained runs"](), "Sometimes-Pass Deep Dives")
    assert len(re.findall(r"^\| `\d+`", said, re.MULTILINE)) == 9
    assert "4 more tasks are in report.json." in said


# ---- Recommendations -----------------------------------------------------------------------------


def test_recommendations_are_ranked_with_label_gain_and_tasks(explained: Report) -> None:
    rows = table(first(explained, "Recommendations"))
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [row[2] for row in rows] == ["BI", "TI", "UK", "IR", "BI"]
    assert rows[0][3:] == ["Expected gain +8.4 points (95% interval +3.1 points to +14.2 points).", "5"]
    assert "without such tasks it is not identified" in first(explained, "Recommendations")


# ---- The accuracy card ---------------------------------------------------------------------------


def test_the_card_says_how_many_labels_of_each_confidence_were_right(explained: Report) -> None:
    said = first(explained, "Reproducibility Notes").split("### How right are these labels")[1]
    assert table(said) == [["proved", "38 of 40"], ["likely", "31 of 50"], ["unsure", "4 of 9"]]
    assert "`make accuracy` measures it again." in said


@pytest.mark.parametrize("card", [None, {}, {"date": "2026-11-01", "sets": []}, {"confidence": {}}])
def test_without_a_card_of_this_shape_nothing_is_claimed(explained: Report, card: Any) -> None:
    said = first(replace(explained, accuracy=card), "Reproducibility Notes")
    assert "How often such labels are right was not measured." in said


# ---- The wire, the sidecar, the figure -----------------------------------------------------------


def test_the_wire_carries_every_noun(explained: Report, cases: Cases) -> None:
    document = parsed(explained)
    VALIDATOR.validate(document)
    group = document["groups"][0]
    assert (group["id"], group["label"], group["confidence"], group["rows"], group["tasks"]) == ("g1", "BI", "likely", 13, 5)
    assert group["quote"] == {"task": "6", "repeat": 1, "step": 7, "text": '{"order_id": "#W42"}'}
    assert group["gain"] == {"low": 0.031, "point": 0.084, "high": 0.142, "level": 0.95}
    assert [one["gain"] for one in document["groups"][1:]] == [None] * 4
    assert [(one["level"], one["label"]) for one in document["trust"]] == [("alarm", "IR"), ("warning", None), ("note", None)]
    assert document["attributions"][0]["steps"] == [{"step": 7, "weight": 1.0, "reason": SKIPS}]
    assert document["attributions"][5]["group"] is None
    lost = sum(loss["lost"] for loss in document["losses"])
    points = sum(one["points"] for one in (*document["groups"], *document["unexplained"]))
    assert lost == pytest.approx(1 - document["runs"][0]["score"]) == pytest.approx(points)
    assert document["task_matrix"] is None
    matrix = parsed(cases["explained runs"]())["task_matrix"]
    assert matrix["runs"] == ["desk", "desk-b"]
    assert matrix["passes"][8] == [0.5, None]  # the second run has eight tasks


def test_what_is_no_number_is_null_in_every_noun(explained: Report) -> None:
    nan = float("nan")
    broken = replace(
        explained,
        slices=(replace(explained.slices[0], high=nan, rest=float("inf")),),
        groups=(replace(explained.groups[0], gain=Gain(nan, nan, nan)),),
        accuracy={"x": {"value": nan}},
    )
    document = parsed(broken)
    VALIDATOR.validate(document)
    assert document["groups"][0]["gain"]["point"] is None
    assert document["slices"][0]["rest"] is None
    assert document["accuracy"] == {"x": {"value": None}}
    for renderer in RENDERERS.values():
        assert renderer.render(broken, ())


def test_the_order_of_the_conclusions_does_not_show(explained: Report) -> None:
    rng = random.Random(7)
    names = ("attributions", "losses", "recommendations")
    shuffled = {name: tuple(rng.sample(getattr(explained, name), len(getattr(explained, name)))) for name in names}
    for name in ("text", "markdown", "html", "wire", "metrics"):
        assert RENDERERS[name].render(replace(explained, **shuffled), ()) == RENDERERS[name].render(explained, ())


def test_tasks_are_in_numeric_order_on_the_wire(explained: Report) -> None:
    tasks = [one["task"] for one in parsed(explained)["attributions"]]
    assert tasks == [str(at) for at in range(6, 20)]


def test_metrics_tell_losses_and_the_dominant_mode(explained: Report) -> None:
    found = metrics.metrics(facts(explained)[0])
    assert found["unexplained"] == pytest.approx(0.0875)
    assert sum(found["losses_by_cause"].values()) == pytest.approx(0.5)
    assert set(found["losses_by_cause"]) == {cause.value for cause in Cause}
    assert found["losses"]["model"] == pytest.approx(0.25)
    assert found["dominant_failure_type"] == SKIPS
    assert found["dominant_failure_count"] == 5
    assert found["dominant_failure_fraction"] == pytest.approx(0.325)


def test_the_largest_mode_is_summed_over_its_causes(explained: Report) -> None:
    split = (
        Loss("desk", Cause.BEHAVIOUR, "a", 0.2),
        Loss("desk", Cause.KNOWLEDGE_GAP, "b", 0.14),
        Loss("desk", Cause.BEHAVIOUR, "b", 0.16),
    )
    found = causes.largest(facts(replace(explained, losses=split))[0])
    assert found is not None
    assert (found.name, found.causes) == ("b", (Cause.BEHAVIOUR, Cause.KNOWLEDGE_GAP))
    assert found.lost == pytest.approx(0.3)


def test_the_losses_are_drawn_largest_first_and_the_small_share_a_bar(
    explained: Report, one_run: Report
) -> None:
    made = figures.losses_spec(facts(explained)[0])
    assert made is not None
    values = made[0]["data"]["values"]
    assert [value["label"] for value in values][:2] == [f"BI {SKIPS}", "TI expected result contradicts the poli…"]
    assert abs(sum(value["lost"] for value in values) - 50) < 1e-6
    many = tuple(Loss("desk", Cause.BEHAVIOUR, f"mode {at}", 0.5 / 40) for at in range(40))
    made = figures.losses_spec(facts(replace(explained, losses=many))[0])
    assert made is not None
    assert made[0]["data"]["values"][-1]["label"] == "29 smaller modes"
    assert "losses.svg" in [figure.file for figure in figures.drawn(explained)]
    assert figures.losses_spec(facts(one_run)[0]) is None


def test_a_thousand_of_everything_stays_readable() -> None:
    report = explain(make_report({"desk": twenty()}))
    many = replace(
        report,
        groups=tuple(replace(report.groups[0], id=f"g{at}") for at in range(1000)),
        trust=report.trust * 300,
        slices=report.slices * 300,
        recommendations=tuple(replace(report.recommendations[0], rank=at) for at in range(1000)),
        losses=tuple(Loss("desk", Cause.BEHAVIOUR, f"mode {at}", 0.5 / 1000) for at in range(1000)),
    )
    said = uncited(markdown.render(many))
    assert "996 more groups are in report.json." in said
    assert len(said.split("## Dominant Failure Modes")[1]) < 2 * len(uncited(markdown.render(report)))
    assert len(report_json.document(many)["groups"]) == 1000
