"""How a comparison is told: the verdict an expert would sign, and terms that add up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blade.model import Alignment, Churn, Comparison, Derived, Power, Report, Setting, SureFlips, Term
from blade.query.engine import evaluate as engine
from blade.report import markdown, report_json
from blade.report.blocks import Num, plain
from blade.report.change import pages as change
from blade.report.change import series as change_series
from blade.report.change import terms as change_terms
from blade.report.change import verdict as change_verdict
from blade.report.change import words as change_words
from blade.report.change.words import scale
from tests.inert import uncited

from . import changed
from .test_markdown import section

VERDICTS = ("improved", "regressed", "equivalent", "inconclusive")
TOPICS = [
    "Verdict",
    "What Moved It",
    "Comparability",
    "Further Views",
    "Tasks That Moved",
    "What Else Changed",
]


def page(report: Report) -> str:
    return markdown.page(change.title(report), change.chapters(report), cited=False)


def told(part: str, **changes: object) -> str:
    return section(page(changed.pair_report(**changes)), part)


def titles(said: str) -> list[str]:
    return re.findall(r"^## (.*)$", said, re.MULTILINE)


def test_one_pair_is_told_by_topic() -> None:
    said = page(changed.pair_report())
    assert said.startswith("# base → cand BLADE Comparison Report\n")
    assert titles(said) == [*TOPICS, "Reproducibility Notes"]


def test_the_verdict_holds_delta_both_tests_intervals_n_and_margin() -> None:
    said = told("Verdict")
    assert "**Improved on these tasks; not established for new tasks like these.**" in said
    assert "`cand` scores 71.9% pass@1 and `base` 50.0%: **+21.9 points** (n = 8 tasks)" in said
    assert "+21.9 points [+2.7 points, +41.0 points] (exact stratified permutation, p = 0.04; n = 8 tasks)" in said
    assert "neither a change nor equivalence within ±3.0 points is established" in said
    assert "(paired t, p = 0.29; equivalence p = 0.83; n = 8 tasks" in said
    assert "the smallest detectable effect is 53.6 points" in said
    assert (
        "16 repeats per task in each run (now 4), or 140 more tasks like these (with as many repeats) would detect" in said
    )
    assert "a true change of 21.9 points (the size seen) in 80 of 100 cases" in said


@pytest.mark.parametrize("these", VERDICTS)
@pytest.mark.parametrize("new", VERDICTS)
def test_every_pair_of_verdicts_reads_and_none_says_unchanged(these: str, new: str) -> None:
    said = told("Verdict", verdicts=(these, new))
    line = change_verdict.headline(changed.pair_report(verdicts=(these, new)).comparisons[0])
    assert f"**{line}**" in said
    assert line.count("tasks") == 2
    assert not re.search(r"no change|not changed|(?<!with the model )unchanged|same score", said)
    if "equivalent" in (these, new):
        assert "within the margin" in line
    if these in ("improved", "regressed") and new == "inconclusive":
        assert "not established for new tasks" in line
    assert ("What would resolve it" in said) == ("inconclusive" in (these, new))


@pytest.mark.parametrize(
    ("repeats", "tasks", "said"),
    [
        (None, 140, "These rows do not show whether more repeats alone would be enough."),
        (16, None, "16 repeats per task in each run (now 4) would detect"),
        (None, None, "unknown, since these rows do not show how much repeats and tasks vary."),
        (16, 140, "16 repeats per task in each run (now 4), or 140 more tasks"),
        (4, 0, "these tasks are already enough to see a true change"),
    ],
)
def test_what_would_resolve_it(repeats: int | None, tasks: int | None, said: str) -> None:
    power = Power(0.1, 0.3, 0.2, 0.2, 0.1, 0.1, None, 0.21875, repeats, tasks)
    assert said in told("Verdict", power=power)


def test_repeats_are_ruled_out_only_where_the_change_is_shown_to_vary() -> None:
    power = Power(0.1, 0.3, 0.2, 0.2, 0.1, 0.1, 0.01, 0.21875, None, 140)
    said = "More repeats alone would not be enough: the change varies from task to task."
    assert said in told("Verdict", power=power)
    assert said not in told("Verdict", power=replace(power, p_heterogeneity=0.2))


def test_heterogeneity_is_said_only_where_it_is_shown() -> None:
    same = Power(0.1, 0.3, 0.2, 0.2, 0.1, 0.1, 0.4, 0.2, 16, 140)
    assert "The change differs by task" in told("Verdict")
    assert "The change differs by task" not in told("Verdict", power=same)


def test_a_refused_pair_says_why_and_nothing_else() -> None:
    said = page(changed.pair_report(refused="the runs have no task in common", delta=None))
    assert titles(said) == ["Verdict", "Comparability", "Reproducibility Notes"]
    assert "**Not compared:** the runs have no task in common." in said


def test_a_run_against_itself_is_recognised() -> None:
    said = told("Verdict", identical=True, verdicts=("equivalent", "equivalent"))
    assert "Equivalent: both runs hold the same rows." in said
    assert "n = 8 tasks" in said
    assert "| Question |" not in said


def test_a_headline_that_is_composition_is_not_taken_for_the_change_of_common_tasks() -> None:
    before, after = changed.rewards("1100 1000 1111"), changed.rewards("1100 1000 1111 1111 1111")
    comparison = changed.compared(before, after, movers=())
    report = replace(changed.pair_report(), comparisons=(comparison,))
    said = section(page(report), "Verdict")
    assert (
        "Over the 3 tasks that both have, and which the verdicts are about, it is 58.3% → 58.3%: **0 points**"
        in said
    )
    match = section(page(report), "Comparability")
    assert (
        "**Common tasks only:** the verdicts are about 3 of the baseline's 3 and of the candidate's 5 tasks"
        in match
    )
    assert "| only in the candidate | 2 | `3`, `4` |" in match


def test_mechanical_causes_are_told_first() -> None:
    said = told("What Moved It")
    bullets = [line for line in said.splitlines() if line.startswith("- ")]
    assert bullets[0].startswith("- **mechanical** request timed out (infrastructure) accounts for **+8.8 points** [")
    assert "adjusted p = 0.004" in bullets[0]
    assert "40.0% of the change" in bullets[0]
    assert "Rule it out" in said
    assert "Rule it out" not in told("What Moved It", movers=())
    assert "**No cause is claimed:**" in told("What Moved It", movers=())


def test_the_bridge_is_printed_with_its_sum() -> None:
    said = told("What Moved It")
    assert "| calls with a wrong argument | model | +10.9 points [−1.8 points, +23.7 points] | 0.008 | 7 |" in said
    assert "| never calls `get_order` | model |" in said
    assert "**Sum of the terms:** +0.218750, that is +21.9 points: the change of pass@1, exactly." in said


def test_a_sum_that_is_off_is_said_aloud() -> None:
    comparison = changed.pair_report().comparisons[0]
    wrong = (replace(comparison.bridge[0], value=0.5), *comparison.bridge[1:])
    assert "which is not the change of pass@1, +0.218750: do not use these terms" in told(
        "What Moved It", bridge=wrong
    )


def test_many_terms_share_a_row_that_keeps_the_sum() -> None:
    terms = tuple(Term(f"mode {at}", 0.001 * at, None, None, None, "model", 1) for at in range(60))
    shown, left = change_terms.folded(terms, 25)
    assert (len(shown), len(left)) == (24, 36)
    assert sum(one.value for one in (*shown, *left)) == pytest.approx(sum(one.value for one in terms))
    assert min(one.value for one in shown) > max(one.value for one in left)
    comparison = replace(changed.pair_report().comparisons[0], bridge=terms)
    query = f"{change_words.query(comparison)}.bridge"
    table = change_terms.terms_table(comparison, terms, scale("pass_at_1"), "compare.json", query)
    assert len(table.rows) == 25
    assert plain(table.rows[-1][0]) == "36 smaller terms, each in compare.json"
    (rest,) = [span for span in table.rows[-1][2] if isinstance(span, Num)]
    report = replace(changed.pair_report(), comparisons=(comparison,))
    assert engine(rest.query, report) == pytest.approx(sum(one.value for one in left))
    assert "[" not in rest.query


@given(st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=40), st.integers(2, 30))
def test_folding_loses_no_term(values: list[float], most: int) -> None:
    terms = tuple(Term(str(at), value, None, None, None, "model", 1) for at, value in enumerate(values))
    shown, left = change_terms.folded(terms, most)
    assert sorted(one.term for one in (*shown, *left)) == sorted(one.term for one in terms)
    assert len(shown) + bool(left) <= most
    assert len(left) != 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "**Not separable:** `model`, `max_output_tokens` changed together"),
        ({}, "The run that would separate them: the candidate's model with max_output_tokens = 4096."),
        ({"config_diff": (), "separable": None}, "No setting that the files state differs"),
        ({"config_diff": (Setting("model", "a", "b", "model", False),), "separable": True}, "**Separable:** `model`"),
        (
            {"config_diff": (Setting("repeats", "4", "8", "repeats", False, counts=False), Setting("model", "a", "b", "model", False)), "separable": True},
            "**Separable:** `model`",
        ),
        ({"config_diff": (Setting("seed", None, "1", "sampling", False, False),), "separable": None}, "Stated by one run only, so unknown: `seed`"),
    ],
)  # fmt: skip
def test_settings_are_held_against_each_other(changes: dict[str, object], said: str) -> None:
    assert said in told("Comparability", **changes)


@pytest.mark.parametrize(
    ("p", "said", "not_said"),
    [
        (0.02, "In points, **tasks moved by more than noise would move them** (p = 0.02)", "leads"),
        (0.4, "**The churn is not beyond noise** (p = 0.40)", "are real"),
        (None, "how much of this is noise is unknown", "Two runs of the same model"),
    ],
)
def test_churn_stands_beside_noise(p: float | None, said: str, not_said: str) -> None:
    churn = Churn(0.3125, -0.09375, 4, 1, 0.15, 0.08, 0.24, 3.2, p)
    text = told("Tasks That Moved", churn=churn).partition("###")[0]
    assert p is None or "By count, such runs would move 3.2 tasks; here 5 moved." in text
    assert "4 tasks rose (+31.2 points) and 1 fell (−9.4 points), of 8: a churn of 40.6 points." in text
    assert said in text
    assert not_said not in text


def test_sure_flips_stand_beside_those_of_noise() -> None:
    said = told("Tasks That Moved")
    assert "With a posterior probability of at least 0.95, 1 task is better and 0 worse." in said
    assert "Noise alone would show 0.200 and 0.100 as such." in said
    assert "unknown" in told("Tasks That Moved", sure=SureFlips(0, 0, None, None))


def test_flips_are_ranked_as_given_with_both_probabilities_and_commands() -> None:
    said = told("Tasks That Moved")
    assert "| `5` `tau-5` | 0/4 | 4/4 | +100.0 points | 0.98 | 0.90 | never → always |" in said
    assert "blade show runs/airline.jsonl 5  # baseline" in said
    assert "| never in the baseline | 1 (0) | 0 (0) | 1 (0) | 2 |" in said


def test_tasks_that_the_candidate_calls_otherwise_are_opened_by_its_name() -> None:
    keys = tuple(str(at) for at in range(8))
    other = Alignment("contents", keys, common_candidate=tuple(f"new-{key}" for key in keys))
    said = told("Tasks That Moved", alignment=other)
    assert "blade show runs/airline.jsonl 5      # baseline" in said
    assert "blade show runs/airline.jsonl new-5  # candidate" in said


def test_what_else_changed_names_what_appeared_and_hides_nothing() -> None:
    said = told("What Else Changed")
    assert "| asks the user | 0% | 21.0% | +21.0 points [+10.0 points, +32.0 points] | 0.01 | 8 | appeared |" in said
    assert "| output tokens | 1,310 | 902.5 | −407.8 [−600, −215.5], −31.1% | 0.001 | 8 | less |" in said
    assert said.index("asks the user") < said.index("reads the same file again")
    assert "| pass@4 | 75.0% | 87.5% | +12.5 points [−10.0 points, +35.0 points] | 8 | task bootstrap |" in said


def test_scores_that_are_no_rates_are_printed_as_numbers() -> None:
    said = page(changed.pair_report(score_name="mean_reward"))
    verdict = section(said, "Verdict")
    assert "`cand` scores 0.719 mean reward and `base` 0.500: **+0.219**" in verdict
    assert "points [" not in section(said, "What Moved It").partition("| Term")[2]
    assert "%" not in verdict.replace("95%", "").replace("90%", "")


def test_several_candidates_start_with_an_overview() -> None:
    said = page(changed.many_report())
    assert titles(said)[:4] == [
        "Verdict",
        "Candidate 1: step-1",
        "Candidate 2: step-2",
        "Candidate 3: step-3",
    ]
    assert titles(said)[4:] == ["Many Runs", "Gate", "Reproducibility Notes"]
    overview = section(said, "Verdict")
    assert "3 candidates against `base` (50.0% pass@1)." in overview
    assert (
        "| `step-1` | 71.9% | +21.9 points [−16.4 points, +60.2 points] | 0.29, 0.40 | improved | inconclusive | 8 |"
        in overview
    )
    assert "not compared: the runs have no task in common" in overview
    assert "- `step-1`: mechanical: request timed out, +8.8 points, and 1 further claim." in overview


def test_more_candidates_than_are_told_are_counted() -> None:
    said = page(changed.many_report(n=12))
    assert "4 more candidates are in compare.json." in section(said, "Verdict")
    assert sum(title.startswith("Candidate") for title in titles(said)) == 8
    assert "The pairs of 13 runs are in compare.json" in said


def test_many_runs_hold_pairs_fronts_solvers_and_checkpoints() -> None:
    said = section(page(changed.many_report()), "Many Runs")
    assert "| B | `step-1` | +10.0 points improved p = 0.01 | – |" in said
    assert "| `step-1` | 55.0% | – | not reported | 1,000 | dominated |" in said
    assert "| only `step-1` | 1 | 0.700 | `0` 4/4 |" in said
    assert "| no run | 1 | – | `7` |" in said
    assert (
        "**The score rises**: +5.0 points [+1.0 points, +9.0 points] a checkpoint, for new tasks like these (p = 0.02, n = 8 tasks, 4 checkpoints)"
        in said
    )
    assert "The earliest that differs from the first for new tasks like these is `step-3`." in said
    assert (
        "**Learned:** the last checkpoint is better at 2 tasks (posterior probability of each): `5` (0.98), `4` (0.96)."
        in said
    )
    assert "**Forgotten:** no task" in said


def test_the_gate_tells_failures_first() -> None:
    said = section(page(changed.many_report()), "Gate")
    assert "The policy `policy.toml` says **FAIL**, on new tasks." in said
    verdicts = re.findall(r"^\| (FAIL|WARN|PASS|INCONCLUSIVE) \|", said, re.MULTILINE)
    assert verdicts == ["FAIL", "WARN", "PASS"]
    assert "until 2031-01-01: known flake" in said


def test_a_diagnosis_tells_the_same_in_its_cross_model_section() -> None:
    report = changed.pair_report()
    diagnosed = section(uncited(markdown.render(report)), "Cross-Model Comparison")
    compared = page(report)
    for topic in TOPICS:
        body = section(compared, topic).replace("compare.json", "report.json").strip()
        assert f"### {topic}\n\n{body}" in diagnosed
    assert "There is one run" not in diagnosed


def test_a_diagnosis_of_several_names_each_pair() -> None:
    said = section(markdown.render(changed.many_report()), "Cross-Model Comparison")
    assert "### Verdict (`base` → `step-1`)" in said
    assert "### Verdict (`base` → `step-3`)" in said
    assert "### Gate" in said


def test_reproducibility_names_command_sources_and_methods() -> None:
    said = told("Reproducibility Notes")
    for part in ("blade compare a b", "0.1.0", "no row reports cost",
                 "never unchanged", "stands in compare.json", "No figures were drawn"):  # fmt: skip
        assert part in said
    assert "report.json" not in said
    assert "0123456789abcdef" in report_json.render(changed.pair_report())  # the hashes of the inputs are in the JSON alone


def test_a_report_without_comparisons_says_so(one_run: Report) -> None:
    assert "No pair of runs was compared." in page(one_run)


def turned(one: Comparison) -> Comparison:
    """Baseline and candidate exchanged."""
    flipped = {"improved": "regressed", "regressed": "improved"}

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return replace(
        one,
        baseline=one.candidate, candidate=one.baseline, score_baseline=one.score_candidate, score_candidate=one.score_baseline,
        delta=minus(one.delta), delta_common=minus(one.delta_common),
        common_baseline=one.common_candidate, common_candidate=one.common_baseline,
        verdict=flipped.get(one.verdict or "", one.verdict), verdict_new_tasks=flipped.get(one.verdict_new_tasks or "", one.verdict_new_tasks),
        tests=tuple(replace(t, estimate=minus(t.estimate), low=minus(t.high), high=minus(t.low)) for t in one.tests),
    )  # fmt: skip


@pytest.mark.parametrize("these", VERDICTS)
def test_exchanging_the_runs_mirrors_the_verdict(these: str) -> None:
    one = changed.pair_report(verdicts=(these, "inconclusive")).comparisons[0]
    opposite = {"better": "worse", "worse": "better"}
    said, other = (plain(change_verdict.question_told(each, "these tasks")) for each in (one, turned(one)))
    bare = re.compile(r"[+−]?[\d.]+( points)?")
    assert re.sub("better|worse", lambda word: opposite[word[0]], bare.sub("#", said)) == bare.sub("#", other)
    assert "[+2.7 points, +41.0 points]" in said
    assert "[−41.0 points, −2.7 points]" in other


def test_single_rollouts_do_not_tell_what_repeats_would_do() -> None:
    power = Power(0.1, 0.3, 0.2, None, None, None, None, 0.21875, None, 140)
    said = told("Verdict", power=power)
    assert "With one try per task, the number of repeats that would be enough is unknown." in said
    assert "More repeats alone" not in said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.4, "40.0% of the change"), (1.0, "100% of the change"), (1.0000000000000002, "100% of the change"), (1.001, "more than the whole change"),
     (3.7, "more than the whole change"), (-3.7, "against the change")],
)  # fmt: skip
def test_a_share_of_the_change_is_said_without_absurd_percentages(value: float, said: str) -> None:
    assert plain(change_terms.share(value, "engine.x")) == said


def test_what_the_rollouts_of_a_claim_show_as_well_follows_it() -> None:
    (one,) = changed.pair_report().comparisons
    mover = replace(one.movers[0], beside=("4 of its 9 failing rollouts in cand also show: repeats a call of `x`",))
    said = told("What Moved It", movers=(mover,))
    (bullet,) = [line for line in said.splitlines() if line.startswith("- calls with a wrong argument (model)")]
    assert bullet.endswith(" 7 tasks. 4 of its 9 failing rollouts in cand also show: repeats a call of `x`.")


def test_flips_that_are_equally_sure_are_not_ranked() -> None:
    flip = changed.pair_report().comparisons[0].flips[0]
    alike = tuple(replace(flip, task=str(at)) for at in range(30))
    said = told("Tasks That Moved", flips=alike)
    assert "all flips are equally sure, so their order means nothing" in said
    assert sum(line.startswith("| `") for line in said.splitlines()) == 8


def test_a_change_over_common_tasks_is_told_where_it_can_be_seen() -> None:
    (one,) = changed.pair_report().comparisons
    assert one.delta is not None
    said = told("Verdict", delta_common=one.delta + 0.02)
    assert "the rest is which tasks each run has" in said
    assert "the rest is which tasks each run has" not in told("Verdict", delta_common=one.delta + 1e-5)


def test_a_setting_that_cannot_move_a_score_is_not_called_mechanical() -> None:
    kept = Setting("dataset", "40 tasks", "39 tasks", "dataset", True, counts=False)
    said = told("Comparability", config_diff=(kept, replace(kept, key="max_tokens", counts=True)))
    rows = [line for line in said.splitlines() if line.startswith("| `")]
    assert ["mechanical" in row for row in rows] == [False, True]


def test_what_is_mechanical_is_taken_off_in_the_verdict() -> None:
    said = told("Verdict")
    assert (
        "+8.8 points of the change come from request timed out, which can move a score with the model unchanged."
        in said
    )
    assert "The other terms add up to +13.1 points" in said
    only_model = tuple(one for one in changed.pair_report().comparisons[0].movers if not one.mechanical)
    assert "Not all of it is the model" not in told("Verdict", movers=only_model)


def test_a_change_below_the_margin_is_called_so_beside_its_verdict() -> None:
    one = changed.pair_report(tests=changed.small(), verdicts=("regressed", "inconclusive")).comparisons[0]
    assert change_verdict.headline(one).startswith("Regressed, by less than the margin, on these tasks; ")
    said = plain(change_verdict.question_told(one, "these tasks"))
    assert "the candidate is worse, by less than the margin of ±3.0 points: −1.2 points [" in said
    assert "regressed (by less than the margin) on these tasks" in change_verdict.in_short(one)
    wide = replace(one, tests=(replace(one.tests[0], low90=-0.031),))
    assert "less than" not in change_verdict.headline(wide)
    assert "less than" not in plain(change_verdict.question_told(wide, "these tasks"))


@pytest.mark.parametrize(
    ("p", "low", "high", "said"),
    [
        (0.05, -0.031, -0.001, "The score falls"),
        (0.05, -0.031, 0.011, "No trend is established"),
        (0.06, -0.031, -0.001, "No trend is established"),
        (0.01, None, None, "No trend is established"),
    ],
)
def test_a_trend_takes_the_test_and_the_interval(
    p: float, low: float | None, high: float | None, said: str
) -> None:
    found = replace(
        changed.make_series(["a", "b", "c"], str), slope=-0.011, low=low, high=high, p=p, first_different=None
    )
    line = change_series.trend(found, scale("pass_at_1"))
    assert line[0] == change_series.Strong(said)
    assert line[-1] == " For new tasks like these, no checkpoint differs from the first beyond noise."


def test_single_rollouts_do_not_tell_what_was_learned() -> None:
    def said(signs: tuple[str, str], **changes: object) -> str:
        report = changed.pair_report(*signs)
        found = replace(changed.make_series(["base", "cand"], str), learned=(), n_learned=0, **changes)
        return plain(change_series.single_rollouts(found, replace(report, series=found)))

    single = said(("1 1 0 0", "1 0 1 1"))
    assert "one try per task cannot show which tasks were learned or forgotten" in single
    assert "3 tasks flipped" in single
    assert said(("11 10 00 00", "11 00 11 10")) == ""
    assert said(("1 1 0 0", "1 0 1 1"), forgotten=(("1", 0.97),)) == ""


def test_under_a_claim_stand_what_its_rollouts_show_and_how_to_read_them() -> None:
    said = told("What Moved It")
    first, _, second = said.partition("- calls with a wrong argument")
    assert "Of the 7 failing rollouts of base 5 also time out." in first
    assert "blade show runs/airline.jsonl 5/0  # candidate, request timed out\n" in first
    assert "blade show runs/airline.jsonl 4/1  # baseline, request timed out\n" in first
    assert "3/2" not in said
    assert "blade show" not in second


def test_a_ratio_of_logarithms_is_left_to_the_wire() -> None:
    ratio = Derived(
        "log_output_tokens", None, 7.178, 6.805, -0.373, -0.5, -0.25, 8, "task bootstrap", "log ratio"
    )
    said = told("What Else Changed", derived=(ratio,))
    assert "log" not in said
    assert "Further measures" not in said


def test_the_last_columns_of_terms_are_named_in_plain_words() -> None:
    said = told("Further Views")
    assert "| Expected | p beyond share |" in said
    assert "small where it moved by more than its share" in said
    assert "excess" not in said


def test_the_rule_of_verdicts_names_test_and_interval() -> None:
    said = told("Reproducibility Notes")
    assert "Holm's correction over all candidates, and the 95% interval excludes 0" in said
    assert "two added pseudo-tasks, one better and one worse" in said
    whole = page(changed.pair_report())
    assert (
        "The margin of equivalence, ±3.0 points, is a setting (--margin) and does not depend on the rows."
        in whole
    )
    assert "fixed" not in whole


def test_tests_are_called_as_they_are_named() -> None:
    tests = tuple(
        replace(one, name="stratified exchange") for one in changed.pair_report().comparisons[0].tests
    )
    said = page(changed.pair_report(tests=tests, score_name="mean_reward"))
    assert "stratified exchange" in said
    assert "Mantel" not in said
