"""How a comparison is told: the verdict an expert would sign, terms that add up, names that can be told apart."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Comparison, Report, Setting, Term
from blade.query.engine import evaluate as engine
from blade.report import comparison_pages, comparison_terms, comparison_verdict, markdown, report_json
from blade.report import comparison_words as say
from blade.report.blocks import Code, Num, Said, Strong, Table
from blade.report.draft_report import draft
from blade.report.phrases import plain
from tests.inert import uncited

from . import changed
from .renders import Forms, assert_says, changes, sayings
from .test_chapters import section

VERDICTS = ("improved", "regressed", "equivalent", "inconclusive")
TOPICS = ["Verdict", "What Moved It", "Comparability", "Further Views", "Tasks That Moved", "What Else Changed"]

def page(report: Report) -> str:
    return markdown.page(comparison_pages.title(report), comparison_pages.chapters(report), cited=False)


def topic_of(topic: str, **changes: Any) -> str:
    return section(page(changed.pair_report(**changes)), topic)


def titles(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def pair(**changes: Any) -> Comparison:
    return changed.pair_report(**changes).comparisons[0]


# What is changed of the pair beside what sayings.yaml has of it, by the same names.
CHANGES: dict[str, dict[str, Any]] = {
    "no mechanical mover": {"movers": tuple(mover for mover in pair().movers if not mover.mechanical)},
    "another test": {"tests": tuple(replace(test, name="stratified exchange") for test in pair().tests)},
    "wrong sum": {"bridge": (replace(pair().bridge[0], value=0.5), *pair().bridge[1:])},
}


@pytest.mark.parametrize("case", sayings("comparison"), ids=lambda case: f"{case['topic']} {case['changes']}")
def test_a_topic_says(case: dict[str, Any]) -> None:
    assert_says(topic_of(case["topic"], **(CHANGES.get(case["changes"]) or changes(case["changes"]))), case)


@pytest.mark.parametrize("case", sayings("several candidates"), ids=lambda case: case["topic"])
def test_a_chapter_of_several_candidates_says(case: dict[str, Any]) -> None:
    text = section(page(changed.many_report()), case["topic"])
    assert_says(text, case)
    verdicts = re.findall(r"^\| (FAIL|WARN|PASS|INCONCLUSIVE) \|", text, re.MULTILINE)
    assert case["topic"] != "Gate" or verdicts == ["FAIL", "WARN", "PASS"]


def test_pages_have_their_chapters_in_order(one_run: Report) -> None:
    text = page(changed.pair_report())
    assert text.startswith("# base → cand BLADE Comparison Report\n")
    assert titles(text) == [*TOPICS, "Reproducibility Notes"]
    candidates = ["Candidate 1: step-1", "Candidate 2: step-2", "Candidate 3: step-3"]
    assert titles(page(changed.many_report())) == ["Verdict", *candidates, "Many Runs", "Gate", "Reproducibility Notes"]
    refused = page(changed.pair_report(refused="the runs have no task in common", delta=None))
    assert titles(refused) == ["Verdict", "Comparability", "Reproducibility Notes"]
    assert "**Not compared:** the runs have no task in common." in refused
    assert "No pair of runs was compared." in page(one_run)
    many = page(changed.many_report(n=12))
    assert "4 more candidates are in compare.json." in section(many, "Verdict")
    assert sum(title.startswith("Candidate") for title in titles(many)) == 8
    assert "The pairs of 13 runs are in compare.json" in many
    assert "0123456789abcdef" in report_json.render(changed.pair_report())  # the hashes of the inputs are in the JSON alone


def test_a_diagnosis_tells_the_same_in_its_cross_model_section() -> None:
    report = changed.pair_report()
    diagnosed = section(uncited(Forms(report).markdown), "Cross-Model Comparison")
    compared = page(report)
    for topic in TOPICS:
        body = section(compared, topic).replace("compare.json", "report.json").strip()
        assert f"### {topic}\n\n{body}" in diagnosed
    drafted = draft(report, ["base", "cand"])  # which leaves out what explains tables
    assert "Not separable" in drafted
    assert "Tasks were matched by" not in drafted
    several = section(Forms(changed.many_report()).markdown, "Cross-Model Comparison")
    for heading in ("### Verdict (`base` → `step-1`)", "### Verdict (`base` → `step-3`)", "### Gate"):
        assert heading in several


@pytest.mark.parametrize("these", VERDICTS)
@pytest.mark.parametrize("new", VERDICTS)
def test_every_pair_of_verdicts_reads_and_none_says_unchanged(these: str, new: str) -> None:
    text = topic_of("Verdict", verdicts=(these, new))
    line = comparison_verdict.headline(pair(verdicts=(these, new)))
    assert f"**{line}**" in text
    assert line.count("tasks") == 2
    assert not re.search(r"no change|not changed|(?<!with the model )unchanged|same score", text)
    assert "equivalent" not in (these, new) or "within the margin" in line
    if these in ("improved", "regressed") and new == "inconclusive":
        assert "not established for new tasks" in line
    assert ("What would resolve it" in text) == ("inconclusive" in (these, new))


def test_a_headline_that_is_composition_is_not_taken_for_the_change_of_common_tasks() -> None:
    before, after = changed.rewards("1100 1000 1111"), changed.rewards("1100 1000 1111 1111 1111")
    text = page(replace(changed.pair_report(), comparisons=(changed.compared(before, after, movers=()),)))
    for topic, part in (
        ("Verdict", "Over the 3 tasks that both have, and which the verdicts are about, it is 58.3% → 58.3%: **0 points**"),
        ("Comparability", "**Common tasks only:** the verdicts are about 3 of the baseline's 3 and of the candidate's 5 tasks"),
        ("Comparability", "| only in the candidate | 2 | `3`, `4` |"),
    ):
        assert part in section(text, topic)


@pytest.mark.parametrize("these", VERDICTS)
def test_exchanging_the_runs_mirrors_the_verdict(these: str) -> None:
    turned = {"improved": "regressed", "regressed": "improved"}.get(these, these)
    mirrored = changed.pair_report(changed.B, changed.A, verdicts=(turned, "inconclusive")).comparisons[0]
    opposite = {"better": "worse", "worse": "better"}
    pairs = (pair(verdicts=(these, "inconclusive")), mirrored)
    text, other = (plain(comparison_verdict.answer(each, "these tasks")) for each in pairs)
    bare = re.compile(r"[+−]?[\d.]+( points)?")
    assert re.sub("better|worse", lambda word: opposite[word[0]], bare.sub("#", text)) == bare.sub("#", other)
    assert "[+2.7 points, +41.0 points]" in text
    assert "[−41.0 points, −2.7 points]" in other


def test_a_change_below_the_margin_is_called_so_beside_its_verdict() -> None:
    one = pair(**changes("below the margin"))
    assert comparison_verdict.headline(one).startswith("Regressed, by less than the margin, on these tasks; ")
    text = plain(comparison_verdict.answer(one, "these tasks"))
    assert "the candidate is worse, by less than the margin of ±3.0 points: −1.2 points [" in text
    assert "regressed (by less than the margin) on these tasks" in comparison_verdict.in_short(one)
    wide = replace(one, tests=(replace(one.tests[0], low90=-0.031),))
    assert "less than" not in comparison_verdict.headline(wide) + plain(comparison_verdict.answer(wide, "these tasks"))


def test_scores_that_are_no_rates_and_settings_that_cannot_move_a_score() -> None:
    text = page(changed.pair_report(score_name="mean_reward"))
    assert "points [" not in section(text, "What Moved It").partition("| Term")[2]
    assert "%" not in section(text, "Verdict").replace("95%", "").replace("90%", "")
    inert = Setting("dataset", "40 tasks", "39 tasks", "dataset", True, counts=False)
    text = topic_of("Comparability", config_diff=(inert, replace(inert, key="max_tokens", counts=True)))
    assert ["mechanical" in line for line in text.splitlines() if line.startswith("| `")] == [False, True]


def test_mechanical_causes_come_first_with_what_their_rollouts_show_and_how_to_read_them() -> None:
    text = topic_of("What Moved It")
    (bullet, *_) = [line for line in text.splitlines() if line.startswith("- ")]
    assert bullet.startswith("- **mechanical** request timed out (infrastructure) accounts for **+8.8 points** [")
    for part in ("adjusted p = 0.004", "40.0% of the change", "Of the 7 failing rollouts of base 5 also time out."):
        assert part in bullet
    first, _, second = text.partition("- calls with a wrong argument")
    for command in ("5/0  # candidate, request timed out\n", "4/1  # baseline, request timed out\n"):
        assert f"blade show runs/airline.jsonl {command}" in first
    assert "blade show" not in second
    mover = replace(pair().movers[0], beside=("4 of its 9 failing rollouts in cand also show: repeats a call of `x`",))
    also = " 7 tasks. 4 of its 9 failing rollouts in cand also show: repeats a call of `x`."
    assert also in topic_of("What Moved It", movers=(mover,))


@pytest.mark.parametrize(("value", "text"), sayings("shares"))
def test_a_share_of_the_change_is_said_without_absurd_percentages(value: float, text: str) -> None:
    mover = replace(pair().movers[0], share=value)
    assert f", {text};" in plain(comparison_terms.claim(pair(movers=(mover,)), mover))


def test_many_terms_share_a_row_that_keeps_the_sum() -> None:
    terms = tuple(Term(f"mode {at}", 0.001 * at, None, None, None, "model", 1) for at in range(60))
    shown, left = comparison_terms.folded(terms, 25)
    assert (len(shown), len(left)) == (24, 36)
    assert min(one.value for one in shown) > max(one.value for one in left)
    report = changed.pair_report(bridge=terms)
    blocks = comparison_terms.what_moved_it(report.comparisons[0], report, (), "compare.json")
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert len(table.rows) == 25
    assert plain(table.rows[-1][0]) == "36 smaller terms, each in compare.json"
    (rest,) = [span for span in table.rows[-1][2] if isinstance(span, Num)]
    assert engine(rest.query, report) == pytest.approx(sum(one.value for one in left))
    assert "[" not in rest.query


@given(st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=40), st.integers(2, 30))
def test_folding_loses_no_term(values: list[float], most: int) -> None:
    terms = tuple(Term(str(at), value, None, None, None, "model", 1) for at, value in enumerate(values))
    shown, left = comparison_terms.folded(terms, most)
    assert sorted(one.term for one in (*shown, *left)) == sorted(one.term for one in terms)
    assert len(shown) + bool(left) <= most
    assert len(left) != 1


def test_flips_that_are_equally_sure_are_not_ranked_and_what_appeared_stands_first() -> None:
    flips = tuple(replace(pair().flips[0], task=str(task)) for task in range(30))
    text = topic_of("Tasks That Moved", flips=flips)
    assert "all flips are equally sure, so their order means nothing" in text
    assert sum(line.startswith("| `") for line in text.splitlines()) == 8
    text = topic_of("What Else Changed")
    assert text.index("asks the user") < text.index("reads the same file again")


@pytest.mark.parametrize(("p", "low", "high", "said"), sayings("trends"))
def test_a_trend_takes_the_test_and_the_interval(p: float, low: float | None, high: float | None, said: str) -> None:
    series = changed.make_series(["a", "b", "c"], str)
    line = comparison_pages.trend(replace(series, slope=-0.011, low=low, high=high, p=p, first_different=None), True)
    assert line[0] == Strong(said)
    assert line[-1] == " For new tasks like these, no checkpoint differs from the first beyond noise."


def test_single_rollouts_do_not_tell_what_was_learned() -> None:
    def text(signs: tuple[str, str], **changes: Any) -> str:
        series = replace(changed.make_series(["base", "cand"], str), learned=(), n_learned=0, **changes)
        return plain(comparison_pages.single_rollouts(series, replace(changed.pair_report(*signs), series=series)))

    single = text(("1 1 0 0", "1 0 1 1"))
    assert "one try per task cannot show which tasks were learned or forgotten" in single
    assert "3 tasks flipped" in single
    assert text(("11 10 00 00", "11 00 11 10")) == text(("1 1 0 0", "1 0 1 1"), forgotten=(("1", 0.97),)) == ""


@pytest.mark.parametrize(("text", "said"), sayings("signs"))
def test_signs_of_our_own_sentences_are_signs_and_names_keep_theirs(text: str, said: str) -> None:
    assert plain(say.sentence(text, "engine.x", names=("zone=a -> -1",))) == said
    (span, _) = say.sentence("`x -> y` rose", "engine.x")
    assert isinstance(span, Said)
    assert span.line[0] == Code("x -> y")


@pytest.mark.parametrize(("text", "said"), sayings("notes"))
def test_a_note_has_its_capital_but_a_run_keeps_its_letters(text: str, said: str) -> None:
    assert plain(say.note(text, "engine.x", ("gpt-4o", "gpt-4.1"))) == said


@pytest.mark.parametrize("columns", [10, 14, 28, 60])
def test_names_with_a_long_start_in_common_stay_apart(columns: int) -> None:
    names = say.apart([f"codellama-7b_output[_ng_rollout_index={place}]" for place in range(9)], columns)
    assert len(set(names)) == 9
    assert max(map(len, names)) <= columns
    assert all(name.endswith(f"{place}]") for place, name in enumerate(names))
    assert [say.middle(*name) for name in (("short", 10), ("0123456789abcdef", 9), ("漢字漢字漢字", 7))] == ["short", "0123…cdef", "漢…字"]
    middles = say.apart([f"{'a' * 40}/model-{letter}/{'b' * 40}" for letter in "xyz"], 20)
    assert all(letter in name for letter, name in zip("xyz", middles, strict=True))


@given(st.lists(st.text("ab-漢", min_size=1, max_size=40), min_size=1, max_size=9, unique=True), st.integers(8, 30))
def test_different_names_never_become_one(names: list[str], columns: int) -> None:
    short = say.apart(names, columns)
    assert len(set(short)) == len(names)
    assert max(map(cell_len, short)) <= columns
