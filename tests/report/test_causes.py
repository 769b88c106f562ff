"""Modes, distortions and gaps in words."""

from __future__ import annotations

import re

from msgspec.structs import replace

from blade.model import Cause, Gain, Gap, Loss, Report
from blade.report import advice, causes, figures, html, markdown, text
from blade.report.facts import facts
from blade.report.sections import plain
from tests.inert import uncited

from .test_explained import first

PREDICATE = "never_calls(get_product_details) within gold_has(exchange_items)"
WRITES = "not #n_writes>=1 within gold_writes"


def moded(report: Report, mode: str) -> Report:
    """The report with one mode for everything it lost."""
    return replace(
        report,
        losses=(Loss("desk", Cause.BEHAVIOUR, mode, 0.3), Loss("desk", Cause.UNDETERMINED, "rest", 0.2)),
        attributions=tuple(replace(one, mode=mode) for one in report.attributions),
        recommendations=tuple(replace(one, mode=mode) for one in report.recommendations),
    )


def test_a_predicate_reads_as_what_rollouts_do_on_every_page(explained: Report) -> None:
    report = moded(explained, PREDICATE)
    made = figures.losses_spec(facts(report)[0])
    assert made is not None
    assert made[0]["data"]["values"][0]["label"] == "BI never calls get_product_details"
    assert "most to never calls get_product_details (BI), 30.0 points" in text.render(report)
    page = uncited(markdown.render(report))
    seen = re.sub(r'title="[^"]*"', "", html.render(report))  # a query names things as the engine does
    for said in (page, seen, text.render(report)):
        assert "never_calls(" not in said
    assert "| BI behavioural issue | never calls get_product_details | 30.00 points |" in page


def test_other_predicates_take_the_words_of_their_mechanism(explained: Report) -> None:
    told = "Of the 270 completed rollouts whose task expects a call, 53 have no calls that change `x`: <1% of them pass"
    known = replace(explained.mechanisms[0], predicate=WRITES, text=told)
    (run,) = facts(replace(explained, mechanisms=(known,)))
    assert causes.mode(run, WRITES) == "have no calls that change x"
    (run,) = facts(replace(explained, mechanisms=(replace(known, text="No such shape."),)))
    assert causes.mode(run, WRITES) == WRITES


def test_a_predicate_without_its_mechanism_stays_as_it_is(explained: Report) -> None:
    (run,) = facts(replace(explained, mechanisms=()))
    assert causes.mode(run, PREDICATE) == PREDICATE
    assert causes.mode(run, "turn_limit") == "turn limit"


def test_a_distortion_does_not_promise_another_score(explained: Report) -> None:
    for score, n in ((0.5, 20), (0.7, 0), (None, 0)):
        bent = replace(
            explained.run_causes[0], cause=Cause.DATA_ARTIFACT, lost=0.0, score_without=score, n_without=n
        )
        report = replace(explained, run_causes=(bent,))
        for page in (first(report, "Executive Summary"), first(report, "Dominant Failure Modes")):
            assert "the score would be" not in page
            assert "Until it is repaired the score of 50.0% cannot be trusted" in page
        assert "score would be" not in text.render(report)
        assert "cannot be trusted" in text.render(report)


def test_a_cause_that_loses_score_and_leaves_it_the_same_says_so(explained: Report) -> None:
    same = replace(explained.run_causes[0], lost=0.05, score_without=0.5, n_without=19)
    said = first(replace(explained, run_causes=(same,)), "Executive Summary")
    assert "Without it the score is the same (n = 19 tasks)." in said


def test_a_mode_that_the_sentence_holds_is_not_said_again(explained: Report) -> None:
    named = replace(explained.run_causes[0], mode="provider_error", text="A provider error in 7 rollouts")
    said = first(replace(explained, run_causes=(named,)), "Dominant Failure Modes")
    assert "Mode: provider error" not in said
    assert "Mode: quota." in first(
        replace(explained, run_causes=(replace(named, mode="quota"),)), "Dominant Failure Modes"
    )


def test_gaps_with_one_reason_share_a_row_and_long_lists_are_counted(explained: Report) -> None:
    names = ", ".join(f"rule_{at}" for at in range(33))
    gaps = (Gap(f"{names} on desk", "no task has what they need: a tool call"),
            *(Gap(f"no config file of run-{at}", "settings are unknown") for at in range(12)))  # fmt: skip
    said = first(replace(explained, gaps=gaps), "Reproducibility Notes")
    assert "What this report cannot say (13 gaps), by what is missing:" in said
    assert "| rule_0, rule_1, rule_2" in said
    assert "rule_32 on desk | no task has what they need: a tool call |" in said
    assert "; no config file of run-7; … more in report.json | settings are unknown |" in said
    many = tuple(Gap(f"gap {at}", f"reason {at}") for at in range(200))
    assert "More gaps are in report.json." in first(replace(explained, gaps=many), "Reproducibility Notes")


def test_a_gain_that_nothing_shows_is_only_bounded(explained: Report) -> None:
    (run,) = facts(explained)

    def said(*ends: float) -> str:
        return plain(advice.expected(run, replace(explained.recommendations[0], gain=Gain(*ends))))

    assert said(0.0, 0.0, 1.0) == "up to +100.0 points"
    assert said(0.0, 0.02, 0.05) == "+2.0 points (0 points to +5.0 points)"
    assert said(0.0, 0.0, 0.0) == "0 points (0 points to 0 points)"


def test_a_sentence_ends_once(explained: Report) -> None:
    (run,) = facts(explained)
    ended = replace(explained.attributions[0], mechanism="It writes twice. (1 more such place.)", grounds=())
    said = first(replace(explained, attributions=(ended,)), "Sometimes-Pass Deep Dives")
    assert "(1 more such place.)\n" in said
    assert "- For: what is told above; nothing else was found." in said
    assert run.run.name == "desk"


def test_a_lone_candidate_disagrees_with_nobody(explained: Report) -> None:
    lone = replace(explained.attributions[0], step=None, steps=explained.attributions[0].steps[:1])
    said = first(replace(explained, attributions=(lone,)), "Sometimes-Pass Deep Dives")
    assert "**No step is blamed:** nothing points to one. What is left: `6/1#7` (weight 0.61)" in said
