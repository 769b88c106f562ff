"""What the stages that explain conclude, as a reader meets it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from blade.model import Cause, Evidence, Gain, Loss, Report
from blade.report import RENDERERS, figures, html, markdown, metrics, wire
from blade.report.cases import chosen
from blade.report.facts import facts
from tests.inert import uncited

from .conftest import make_report, twenty
from .explained import SKIPS, explain
from .test_markdown import section
from .test_wire import VALIDATOR, parsed

Cases = dict[str, Callable[[], Report]]


def first(report: Report, title: str) -> str:
    return section(markdown.render(report), title).strip()


# ---- Executive Summary ---------------------------------------------------------------------------


def test_a_cause_of_the_run_comes_before_its_score(explained: Report) -> None:
    cause, score, *_ = first(explained, "Executive Summary").split("\n\n")
    assert cause.startswith(
        "**A cause that concerns the run as a whole (infrastructure):** 7 rollouts end in a provider error"
    )
    assert "Without it the score would be 53.8% instead of 50.0% (n = 19 tasks)." in cause
    assert "scored **50.0%** [31.9%, 68.1%] pass@1 on" in score


def test_a_cause_that_takes_most_of_the_loss_is_the_cause_of_the_run(explained: Report) -> None:
    outage = replace(explained.run_causes[0], lost=0.3, score_without=None, n_without=0)
    said = first(replace(explained, run_causes=(outage,)), "Executive Summary")
    assert said.startswith("**The cause of this run is infrastructure:** ")
    assert (
        "It loses 30.0 points of the 50.0 points lost, in 7 rollouts. Excluding these rows leaves nothing to score."
        in said
    )


def test_a_distortion_is_not_said_to_lose_score(explained: Report) -> None:
    shifted = replace(explained.run_causes[0], cause=Cause.DATA_ARTIFACT, lost=0.0, text="Ids are misaligned")
    said = first(replace(explained, run_causes=(shifted,)), "Executive Summary")
    assert said.startswith(
        "**A fault of the whole run that distorts it without losing score (data):** Ids are misaligned."
    )


def test_the_summary_says_where_the_score_went_why_and_what_to_do(explained: Report) -> None:
    said = first(explained, "Executive Summary")
    went, why, do = (
        said.index(lead) for lead in ("**Where the score went:**", "**Why:**", "**What to do first:**")
    )
    assert went < why < do
    assert (
        "50.0 points are lost: 33.8 points to the model, 3.8 points to infrastructure, 8.8 points to task or verifier, "
        "2.5 points to data"
        in said
    )
    assert "The largest failure mode with a cause is exchanges without a product look-up (BI): 18.8 points." in said
    assert "(clean pass@1, n = 17 tasks)" in said
    assert "Expected gain +8.4 points (+3.1 points to +14.2 points) of score over 14 tasks." in said


def test_a_lead_is_not_given_as_the_reason(explained: Report) -> None:
    leads = tuple(one for one in explained.mechanisms if one.standing == "lead")
    said = first(replace(explained, mechanisms=leads, behaviours=()), "Executive Summary")
    assert "**Why:**" not in said
    assert "**No mechanism or behaviour is proved.** The strongest lead: Final texts above 900 char" in said


# ---- Dominant Failure Modes ----------------------------------------------------------------------


def test_the_losses_are_a_table_that_adds_up(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes")
    lost = [
        float(number)
        for number in re.findall(r"^\| (?!\*).* \| ([\d.]+) points \| [\d.<]+%", said, re.MULTILINE)
    ]
    assert len(lost) == 7
    assert abs(sum(lost) - 50.0) < 0.04
    assert lost == sorted(lost, reverse=True)
    assert "| **Sum** |  | **50.00 points** |" in said
    assert "Sum: 0.500000 = 1 − pass_at_1, over 20 tasks" in said


def test_losses_that_do_not_add_up_are_disowned(explained: Report) -> None:
    said = first(replace(explained, losses=explained.losses[1:]), "Dominant Failure Modes")
    assert "do not rely on this table" in said


def test_mechanisms_come_before_symptoms_and_leads_are_set_apart(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes")
    titles = re.findall(r"^### (.*)$", said, re.MULTILINE)
    assert titles == ["Causes of the run as a whole", "Why", "Score lost", "Mechanisms", "Leads, not mechanisms", "Behaviours",
                      "Error signatures", "What the verifier's fields mean", "How rollouts ended", "Findings"]  # fmt: skip
    leads = said.split("### Leads, not mechanisms")[1].split("###")[0]
    assert "`L1`" in leads
    assert "`M1`" not in leads


def test_a_mechanism_carries_interval_control_p_and_rollouts(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes")
    assert (
        "6.5% pass with it (n = 31 rollouts), 67.9% without (n = 28): a difference of 61.4 points [+39.0 points, +78.0 points]"
        in said
    )
    assert "tested among repeats of the same tasks, p <0.001, adjusted p = 0.004." in said
    assert "Control: each task compared with itself; rows with a provider error left out." in said
    assert (
        "Failing rollouts that show it: `6/1`, `6/2`, `6/3`, `7/0`, `7/3`, `8/1`, `8/3`, `9/3` and 32 more in report.json."
        in said
    )


def test_behaviours_stand_with_their_base_rate_and_style_notes_apart(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes").split("### Behaviours")[1]
    assert (
        "| cause | `writes-without-reading` | 29/40 (72.5%) | 4/40 (10.0%) | 9 | 11.40 [3.10, 41.80] | <0.001, 0.006 | `7/0` |"
        in said
    )
    assert "| unproven | `loops` | 2/40 (5.0%) | 0/40 (0%) | 1 | not estimable | –, – | – |" in said
    assert said.index("`loops`") < said.index("Style notes, not causes") < said.index("`long-apology`")


def test_a_signature_says_how_many_of_its_rollouts_fail_and_where_it_is_dense(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes").split("### Error signatures")[1]
    assert "`domain=exchange`, 3.40 times the rate elsewhere (p adjusted 0.01)" in said
    assert "| `NotFound` in `tool get_order` | 3/9 (33.3%) | 4 | idiosyncratic |" in said


def test_only_fields_that_blame_something_are_explained(explained: Report) -> None:
    said = first(explained, "Dominant Failure Modes").split("### What the verifier's fields mean")[1]
    assert "| `status` = `cut` | BI | cut at the turn limit | proposed |" in said
    assert "db_match" not in said


def test_health_flags_are_no_failure_modes(explained: Report) -> None:
    assert "lost_rows" not in first(explained, "Dominant Failure Modes")


# ---- Deep dives ----------------------------------------------------------------------------------


def test_examples_are_spread_over_causes_the_costliest_mode_first(explained: Report) -> None:
    (run,) = facts(explained)
    picked = chosen(run, run.attributions)
    assert picked[0].mode == SKIPS
    assert len({(one.cause, one.mode) for one in picked}) == len(picked) == 5
    assert [one.task for one in chosen(run, list(reversed(run.attributions)))] == [one.task for one in picked]


def test_one_mode_alone_still_gives_three_examples(explained: Report) -> None:
    same = tuple(replace(one, cause=Cause.BEHAVIOUR, mode=SKIPS) for one in explained.attributions)
    (run,) = facts(replace(explained, attributions=same, losses=(Loss("desk", Cause.BEHAVIOUR, SKIPS, 0.5),)))
    assert len(chosen(run, run.attributions)) == 3
    assert chosen(run, []) == []


def test_an_example_tells_cause_step_both_sides_and_grounds(explained: Report) -> None:
    said = first(explained, "Sometimes-Pass Deep Dives")
    told = said.split("### Task `6` `tau-6`: exchanges without a product look-up")[1].split("\n### ")[0]
    parts = ["1 of 4 repeats passed (`1 0 0 0`). **Cause: behavioural issue (BI)**, confidence 0.86.", "**What happened.** The agent calls",
             "**Where it went wrong:** `6/1#7` (weight 0.61): first write that no passing repeat makes.",
             "Also considered: `6/1#4` (weight 0.22), last step both sides share", "Failing, task `6/1#7`:", "**Beside the passing side:**",
             "Failing, task `6/1#5`:", "Passing, task `6/0#5`:", "- For: the look-up is missing", "- Against: nothing was found.",
             "blade show runs/airline.jsonl 6/1 --steps 5:10", "blade show runs/airline.jsonl 6/0 --steps 3:8"]  # fmt: skip
    places = [told.index(part) for part in parts]
    assert places == sorted(places)


def test_an_undetermined_task_blames_no_step(explained: Report) -> None:
    open_ones = tuple(replace(one, cause=Cause.UNDETERMINED, step=None) for one in explained.attributions)
    said = first(replace(explained, attributions=open_ones), "Never-Pass Deep Dives")
    assert "**Cause: undetermined**: no cause reaches the bar, and we do not guess." in said
    assert "**No step is blamed:** the candidates disagree. In order of weight: `15/0#7` (weight 0.61)" in said


def test_a_task_that_never_passes_says_why_there_is_no_other_side(explained: Report) -> None:
    said = first(explained, "Never-Pass Deep Dives")
    assert (
        "**Passing side:** no repeat of this task passes, and no passing rollout of another run stands beside it."
        in said
    )


def test_borrowed_passes_are_labelled(explained: Report) -> None:
    theirs = Evidence("other-run", "15", 2, step=4, quote="get_product_details")
    borrowed = replace(explained.contrasts[1], task="15", other_run="other-run", evidence=(theirs,))
    said = first(replace(explained, contrasts=(borrowed,)), "Never-Pass Deep Dives")
    assert "The passes are borrowed from run `other-run`." in said
    assert "Passing in run `other-run`, task `15/2#4`:" in said


def test_the_tables_of_tasks_name_the_cause(explained: Report) -> None:
    assert "| UK 0.64 quotes a stale balance | `0 1 1 0` |" in first(explained, "Sometimes-Pass Deep Dives")
    assert "| TI 0.92 expected result contradicts the policy | `0 0 0 0` |" in first(
        explained, "Never-Pass Deep Dives"
    )


def test_several_runs_share_the_room_for_examples(cases: Cases) -> None:
    said = first(cases["explained runs"](), "Sometimes-Pass Deep Dives")
    assert len(re.findall(r"^### Task ", said, re.MULTILINE)) == 6


# ---- Recommendations -----------------------------------------------------------------------------


def test_advice_for_the_model_and_repairs_of_the_measurement_stand_apart(explained: Report) -> None:
    model, repairs = first(explained, "Recommendations").split("### Repairs of the measurement")
    assert "| 1 | Refuse exchange_items unless" in model
    assert "+8.4 points (+3.1 points to +14.2 points). Basis: repeats of the same tasks" in model
    assert "14 tasks: `6`, `7`, `8`, `9`, `10`, `11`, `12`, `13` and 6 more in report.json." in model
    assert "do not add them up" in model
    assert "would change the measurement, not the model" in repairs
    assert "Retry rollouts whose request ended with status 503" in repairs
    assert "503" not in model


def test_the_gap_to_the_oracle_is_always_printed(report: Report) -> None:
    if report.runs:
        assert first(report, "Recommendations").count("**Unexplained gap to the oracle:**") == len(
            report.runs
        )


def test_only_repairs_are_called_so(explained: Report) -> None:
    repairs = tuple(one for one in explained.recommendations if one.is_measurement)
    report = replace(explained, recommendations=repairs)
    assert first(report, "Recommendations").startswith("Nothing is recommended for the model itself")
    assert "**Repair the measurement first:** Correct the expected actions" in first(
        report, "Executive Summary"
    )


# ---- The accuracy card ---------------------------------------------------------------------------


def test_natural_sets_stand_before_planted_ones(explained: Report) -> None:
    said = first(explained, "Reproducibility Notes").split("### How right are these labels")[1]
    assert said.index("`labelled failures`, natural") < said.index("`planted faults`")
    assert "| steps exact | 0.310 [0.170, 0.490] | 29 |" in said


def test_a_card_of_another_shape_is_still_printed(explained: Report) -> None:
    card = {
        "planted": {"n": 5},
        "natural": {"exact": {"value": 0.5, "n": 4}, "note": "x"},
        "odd": [1],
        "date": None,
    }
    said = first(replace(explained, accuracy=card), "Reproducibility Notes").split("### How right")[1]
    assert said.index("`natural`") < said.index("`planted`")
    assert parsed(replace(explained, accuracy=card))["accuracy"]["odd"] == [1]


# ---- The wire, the sidecar, the figure -----------------------------------------------------------


def test_the_wire_carries_every_noun(explained: Report) -> None:
    document = parsed(explained)
    VALIDATOR.validate(document)
    assert document["mechanisms"][0]["rollouts"][0] == {"task": "6", "repeat": 1}
    assert document["signatures"][0]["class"] == "ActionMismatch"
    assert document["attributions"][0]["steps"][0] == {
        "step": 7,
        "weight": 0.61,
        "reason": "first write that no passing repeat makes",
    }
    assert document["recommendations"][0]["gain"] == {"low": 0.031, "point": 0.084, "high": 0.142}
    assert document["runs"][0]["unexplained"] == 0.047
    assert abs(sum(loss["lost"] for loss in document["losses"]) - (1 - document["runs"][0]["score"])) < 1e-9
    assert document["meanings"][0]["cause"] is None


def test_what_is_no_number_is_null_in_every_noun(explained: Report) -> None:
    nan = float("nan")
    broken = replace(
        explained,
        behaviours=(replace(explained.behaviours[0], odds_ratio=float("inf"), high=nan),),
        recommendations=(replace(explained.recommendations[0], gain=Gain(nan, nan, nan)),),
        accuracy={"x": {"value": nan}},
    )
    document = parsed(broken)
    VALIDATOR.validate(document)
    assert document["behaviours"][0]["odds_ratio"] is None
    assert document["accuracy"] == {"x": {"value": None}}
    for renderer in RENDERERS.values():
        assert renderer.render(broken, ())
    assert "∞" in markdown.render(broken)


def test_the_order_of_the_rows_does_not_show(explained: Report) -> None:
    rng = random.Random(7)

    def shuffled(nouns: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(rng.sample(nouns, len(nouns)))

    names = ("findings", "behaviours", "meanings", "attributions", "losses", "run_causes", "recommendations",
             "divergences")  # fmt: skip
    other = replace(explained, **{name: shuffled(getattr(explained, name)) for name in names})
    other = replace(
        other, mechanisms=tuple(replace(one, rollouts=shuffled(one.rollouts)) for one in other.mechanisms)
    )
    for name in ("text", "markdown", "html", "wire", "metrics"):
        assert RENDERERS[name].render(other, ()) == RENDERERS[name].render(explained, ())


def test_tasks_are_in_numeric_order_on_the_wire(explained: Report) -> None:
    tasks = [one["task"] for one in parsed(explained)["attributions"]]
    assert tasks == [str(at) for at in range(6, 20)]


def test_metrics_tell_losses_and_the_dominant_mode(explained: Report) -> None:
    found = metrics.metrics(facts(explained)[0])
    assert found["clean_pass_at_1"] == 0.58
    assert abs(sum(found["losses_by_cause"].values()) - 0.5) < 1e-9
    assert set(found["losses_by_cause"]) == {cause.value for cause in Cause}
    assert abs(found["losses"]["model"] - 0.3375) < 1e-9
    assert found["dominant_failure_type"] == SKIPS
    assert found["dominant_failure_count"] == 5
    assert abs(found["dominant_failure_fraction"] - 0.375) < 1e-9


def test_the_losses_are_drawn_largest_first_and_the_small_share_a_bar(
    explained: Report, one_run: Report
) -> None:
    made = figures.losses_spec(facts(explained)[0])
    assert made is not None
    values = made[0]["data"]["values"]
    assert [value["label"] for value in values][:2] == [
        "BI exchanges without a product look-up",
        "TI expected result contradicts the poli…",
    ]
    assert abs(sum(value["lost"] for value in values) - 50) < 1e-6
    many = tuple(Loss("desk", Cause.BEHAVIOUR, f"mode {at}", 0.5 / 40) for at in range(40))
    made = figures.losses_spec(facts(replace(explained, losses=many))[0])
    assert made is not None
    assert made[0]["data"]["values"][-1]["label"] == "29 smaller modes"
    assert "losses.svg" in [figure.file for figure in figures.drawn(explained)]
    assert figures.losses_spec(facts(one_run)[0]) is None


def test_modes_named_by_detectors_read_as_words(explained: Report) -> None:
    renamed = tuple(
        replace(loss, mode="turn_limit") if loss.mode == SKIPS else loss for loss in explained.losses
    )
    said = first(replace(explained, losses=renamed), "Dominant Failure Modes")
    assert "| BI behavioural issue | turn limit |" in said


def test_the_clean_score_is_said_where_it_differs_where_it_does_not_and_where_none_is_left(
    explained: Report,
) -> None:
    def summary(value: float | None, n: int) -> str:
        measures = tuple(
            replace(m, value=value, n=n) if m.name == "clean_pass_at_1" else m for m in explained.measures
        )
        return first(replace(explained, measures=measures), "Executive Summary")

    assert "the model scores 58.0% [25.0%, 100%] (clean pass@1, n = 17 tasks) instead of 50.0%." in summary(
        0.58, 17
    )
    assert "suspect tasks the score is the same." in summary(0.5, 20)
    assert "nothing is left to score (n = 0 tasks)." in summary(None, 0)
    runs = tuple(replace(run, score_name="mean_reward") for run in explained.runs)
    assert "(clean pass@1" not in first(replace(explained, runs=runs), "Executive Summary"), "not beside a mean reward"


def test_what_happened_is_told_once(explained: Report) -> None:
    told = replace(
        explained.attributions[0],
        mechanism="It writes twice.",
        grounds=("3 of 3 failing repeats: It writes twice.",),
    )
    told = replace(told, steps=(replace(told.steps[0], reason="extra_write: It writes twice."),))
    report = replace(explained, attributions=(told,))
    said = first(report, "Sometimes-Pass Deep Dives")
    assert said.count("It writes twice") == 1
    assert "(weight 0.61): extra_write: as told above." in said
    assert "- For: 3 of 3 failing repeats: as told above." in said


def test_a_name_that_was_cut_off_stays_text(explained: Report) -> None:
    cut = replace(explained.mechanisms[0], text="31 never call `get_x` nor `getx")
    assert "31 never call `get_x` nor \\`getx." in first(replace(explained, mechanisms=(cut,)), "Executive Summary")


def test_an_untested_contrast_is_called_so(explained: Report) -> None:
    shown = tuple(replace(one, p=None) for one in explained.contrasts)
    assert "Shown to be read, not tested." in first(
        replace(explained, contrasts=shown), "Sometimes-Pass Deep Dives"
    )


def test_the_largest_mode_is_summed_over_its_causes(explained: Report) -> None:
    split = (
        Loss("desk", Cause.BEHAVIOUR, "a", 0.2),
        Loss("desk", Cause.KNOWLEDGE_GAP, "b", 0.14),
        Loss("desk", Cause.BEHAVIOUR, "b", 0.16),
    )
    said = first(replace(explained, losses=split), "Executive Summary")
    assert "The largest failure mode with a cause is b (BI/KG): 30.0 points." in said


def test_names_between_backticks_are_code(explained: Report) -> None:
    named = replace(explained.mechanisms[0], text="31 never call `get_x`: 6% of them pass")
    report = replace(explained, mechanisms=(named,))
    assert "31 never call `get_x`: 6% of them pass." in first(report, "Executive Summary")
    assert "31 never call <code>get_x</code>: 6% of them pass</span>." in html.render(report)


def test_a_thousand_of_everything_stays_readable() -> None:
    report = explain(make_report({"desk": twenty()}))
    many = replace(
        report,
        mechanisms=report.mechanisms * 300,
        behaviours=report.behaviours * 250,
        signatures=report.signatures * 300,
        contrasts=report.contrasts * 100,
        recommendations=report.recommendations * 250,
        meanings=report.meanings * 300,
        findings=report.findings * 60,
        losses=tuple(Loss("desk", Cause.BEHAVIOUR, f"mode {at}", 0.5 / 1000) for at in range(1000)),
    )
    said = uncited(markdown.render(many))
    assert len(said) < 2 * len(uncited(markdown.render(report))) + 40_000
    assert "are in report.json" in said
    assert "970 smaller modes, in report.json" in said
    assert len(wire.document(many)["mechanisms"]) == 900
