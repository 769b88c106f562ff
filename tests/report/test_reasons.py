"""One ranked list of what goes with failing, and what weakens or bounds what is said."""

from __future__ import annotations

import random

from msgspec.structs import replace

from blade.model import Behaviour, Cause, Report
from blade.report import advice, html, markdown, reasons, text
from blade.report.facts import facts
from blade.report.sections import Num, plain
from tests.inert import uncited

from .conftest import make_report
from .explained import explain
from .test_explained import first
from .test_text import assert_one_screen

Rewards = dict[str, list[float | None]]
ONCE: Rewards = {str(at): [float(at % 2)] for at in range(12)}  # one repeat of each task
BOUND = "the repeats without it of the same 3 tasks; a row with it cannot pass, so this is an upper bound"


def once(report: Report) -> str:
    """The terminal's words, however they are broken into lines."""
    return " ".join(text.render(report).split())


def single() -> Report:
    """A run with one repeat of each task."""
    return explain(make_report({"desk": ONCE}))


def fires(detector: str, in_fail: int, in_pass: int, low: float | None = 3.1) -> Behaviour:
    """A behaviour of standing cause among 40 failing and 40 passing rollouts."""
    n = in_fail + in_pass
    return Behaviour(
        "desk", detector, n, 9, in_fail, 40, in_pass, 40, 11.4, low, 41.8, 0.0003, 0.006, "cause"
    )


def only(report: Report, *found: Behaviour) -> Report:
    """The report with these behaviours and its leads, but without a mechanism."""
    leads = tuple(one for one in report.mechanisms if one.standing == "lead")
    return replace(report, mechanisms=leads, behaviours=found)


# ---- One list ------------------------------------------------------------------------------------


def test_mechanisms_and_behaviours_are_ranked_together_by_cover_times_difference(explained: Report) -> None:
    (run,) = facts(explained)
    ranked = reasons.reasons(run)
    assert [(one.name, one.covers) for one in ranked] == [
        ("writes-without-reading", 29),
        ("M1", 29),
        ("M2", 13),
    ]
    assert abs(reasons.apart(fires("x", 29, 4)) - (36 / 47 - 4 / 33)) < 1e-12


def test_whatever_covers_more_leads_on_every_page(explained: Report) -> None:
    for more, less in (("wide", "narrow"), ("narrow", "wide")):
        report = replace(explained, behaviours=(fires(more, 38, 0), fires(less, 6, 0)))
        pages = (
            text.render(report),
            first(report, "Executive Summary"),
            first(report, "Dominant Failure Modes"),
        )
        for page in pages:
            told = page.index("Why")
            assert page.index(f"`{more}` occurs in 38 of 40 failing and 0 of 40 passing", told) < page.index(
                "59 completed", told
            )
        ranked = pages[2].split("### Why")[1].split("\n###")[0]
        assert ranked.index(f"`{more}`") < ranked.index("`M1`: ") < ranked.index(f"`{less}`")


def test_the_order_of_the_conclusions_does_not_matter(explained: Report) -> None:
    twins = tuple(fires(name, 12, 1) for name in ("a", "b", "c"))
    report = replace(explained, behaviours=(*explained.behaviours, *twins))
    shaken = random.Random(5).sample(report.behaviours, len(report.behaviours))
    assert text.render(replace(report, behaviours=tuple(shaken))) == text.render(report)


def test_a_behaviour_is_a_sentence_with_an_example_that_fails(explained: Report) -> None:
    said = first(explained, "Executive Summary")
    assert (
        "- `writes-without-reading` occurs in 29 of 40 failing and 4 of 40 passing rollouts: 12.1% pass with it, "
        "76.6% without, odds of failing on the same tasks at least 3.10 times as high, adjusted p = 0.006; "
        "for instance task `7/0`: exchange_items is called before any read"
    ) in said
    assert "12.1% pass with it, 76.6% without, adjusted p = 0.006" in once(explained)
    assert "<code>writes-without-reading</code> occurs in <data " in html.render(explained)


def test_an_example_is_taken_from_a_failing_rollout_though_a_passing_one_is_graver(explained: Report) -> None:
    hit = next(
        one for one in explained.findings if one.detector == "writes-without-reading" and one.task == "6"
    )
    where = replace(hit.evidence[0], repeat=0)
    passing = replace(hit, id="p", repeat=0, summary="It passes all the same.", severity=3, evidence=(where,))
    said = once(replace(explained, findings=(passing, *explained.findings)))
    assert "for instance task `7/0`" in said


def test_a_proved_behaviour_alone_is_the_reason_and_no_lead_is_told(explained: Report) -> None:
    report = only(explained, fires("wrong_field", 18, 0))
    assert "Leads" not in text.render(report)
    assert "Why 1. `wrong_field` occurs in 18 of 40 failing and 0 of 40 passing rollouts" in once(report)
    said = first(report, "Executive Summary")
    assert "**Why:** `wrong_field` occurs in 18 of 40 failing" in said
    assert "is proved" not in said


def test_behaviours_that_are_open_or_style_are_no_reasons(explained: Report) -> None:
    for standing in ("unproven", "style"):
        report = only(explained, replace(fires("wrong_field", 18, 0), standing=standing))
        assert "Leads     1. Final texts above 900" in text.render(report)
        assert "### Why" not in first(report, "Dominant Failure Modes")


def test_a_behaviour_of_infrastructure_is_left_to_the_causes_of_the_run(explained: Report) -> None:
    def blamed(cause: Cause) -> Report:
        findings = tuple(replace(one, cause=cause) for one in explained.findings)
        return only(replace(explained, findings=findings), fires("writes-without-reading", 29, 4))

    assert "Why" in text.render(blamed(Cause.BEHAVIOUR))
    assert "Leads" in text.render(blamed(Cause.INFRASTRUCTURE))
    assert "| cause | `writes-without-reading`" in first(
        blamed(Cause.INFRASTRUCTURE), "Dominant Failure Modes"
    )


def test_odds_are_said_only_where_their_bound_lies_above_one(explained: Report) -> None:
    (run,) = facts(explained)
    for low, said in ((None, None), (0.7, None), (2.39, "2.39"), (793.2, "793"), (float("inf"), None)):
        odds = reasons.at_least(fires("x", 9, 0, low), run)
        assert (odds.text if isinstance(odds, Num) else odds) == said
    assert "odds of failing" not in markdown.render(only(explained, fires("x", 9, 0, None)))


def test_odds_over_all_rollouts_do_not_pose_as_odds_within_tasks() -> None:
    report = only(single(), fires("x", 9, 0))
    assert ", odds of failing at least 3.10 times as high, adjusted" in first(report, "Executive Summary")


def test_a_behaviour_that_fires_everywhere_sets_nothing_apart() -> None:
    assert reasons.apart(fires("x", 40, 40)) == reasons.apart(fires("x", 0, 0)) == 0


def test_many_reasons_still_fit_and_are_counted(explained: Report) -> None:
    many = tuple(fires(f"rule_{at}", 30 - at, 0) for at in range(12))
    report = replace(explained, behaviours=many)
    assert_one_screen(text.render(report))
    assert "More reasons are in report.json." in first(report, "Dominant Failure Modes")


# ---- What bounds and weakens it ------------------------------------------------------------------


def test_a_gain_that_is_an_upper_bound_says_up_to_everywhere(explained: Report) -> None:
    bounded = replace(explained.recommendations[0], basis=BOUND)
    report = replace(explained, recommendations=(bounded, *explained.recommendations[1:]))
    assert "up to +8.4 points; harness, 14 tasks" in once(report)
    assert "Expected gain up to +8.4 points of score over 14 tasks." in first(report, "Executive Summary")
    said = first(report, "Recommendations")
    assert "| harness | harness | up to +8.4 points | 14 |" in said
    assert "“Up to” marks an upper bound; its basis says why." in said
    assert "+2.1 points (0 points to +5.0 points)" in said
    assert "first Refuse exchange" in once(replace(report, runs=report.runs * 2))
    assert "(up to +8.4 points)" in once(replace(report, runs=report.runs * 2))


def test_a_gain_that_is_no_bound_keeps_its_interval(explained: Report) -> None:
    (run,) = facts(explained)
    gain = advice.expected(run, explained.recommendations[0])
    assert plain(gain) == "+8.4 points (+3.1 points to +14.2 points)"
    none = replace(
        explained.recommendations[0],
        basis=BOUND,
        gain=replace(explained.recommendations[0].gain, low=0, point=0),
    )
    assert plain(advice.expected(run, none)) == "up to +14.2 points"
    assert "marks an upper bound" not in first(explained, "Recommendations")


def test_one_repeat_per_task_weakens_causes_and_is_said_once(explained: Report) -> None:
    report = single()
    assert text.render(report).count("One try per task: hard tasks and bad behaviour cannot be told apart.") == 1
    assert markdown.render(report).count("**One try per task:** the causes are weaker for it, because") == 1
    assert_one_screen(text.render(report))
    assert "are weaker" not in text.render(explained) + markdown.render(explained)


def test_one_repeat_per_task_is_not_said_where_no_cause_is_told() -> None:
    bare = make_report({"desk": ONCE})
    assert "are weaker" not in text.render(bare) + markdown.render(bare)


def test_of_several_runs_those_with_one_repeat_are_named_once() -> None:
    often: Rewards = {key: [1.0, 0.0, 1.0, 0.0] for key in ONCE}
    report = explain(make_report({"first": ONCE, "second": ONCE, "third": often}))
    assert text.render(report).count("2 runs with one try per task: causes are weaker there.") == 1
    said = markdown.render(report)
    assert said.count("**One try per task:** the causes of `first` and `second` are weaker for it,") == 1


# ---- Causes of the run ---------------------------------------------------------------------------


def test_a_share_of_the_rows_is_not_said_twice(explained: Report) -> None:
    told = "Responses are empty in all 80 rollouts: The response has no output items; so do 100% of the run's rows"
    report = replace(explained, run_causes=(replace(explained.run_causes[0], text=told),))
    for page in (once(report), uncited(markdown.render(report))):
        assert "Responses are empty in all 80 rollouts: The response has no output items" in page
        assert "so do 100%" not in page
    kept = replace(explained.run_causes[0], text="Rows end early; so do we")
    assert "Rows end early; so do we." in uncited(markdown.render(replace(explained, run_causes=(kept,))))


def test_a_distortion_without_rows_touches_none_and_counts_none(explained: Report) -> None:
    bent = replace(
        explained.run_causes[0],
        cause=Cause.TASK_OR_VERIFIER,
        lost=0.0,
        n_rollouts=0,
        score_without=None,
        n_without=0,
    )
    said = first(replace(explained, run_causes=(bent,)), "Executive Summary")
    assert "It concerns" not in said
    assert "(n = 0" not in said
    assert "cannot be trusted: no rows are lost, but the score may be biased by an unknown amount." in said
    assert "It concerns 7 rollouts." in first(
        replace(explained, run_causes=(replace(bent, n_rollouts=7),)), "Executive Summary"
    )
