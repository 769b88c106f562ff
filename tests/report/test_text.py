"""The first page on a terminal: what a reader needs first, wrapped to the width, cut nowhere."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Report
from blade.report import text

from .conftest import f1, make_report
from .explained import SKIPS

Cases = dict[str, Callable[[], Report]]
LABELS = ("Can the score be trusted?", "Where the points went", "On which tasks", "What happened", "Fix first", "Look at")


def assert_fits(said: str) -> None:
    """No line is wider than the page, but where a word of a command would be cut; none ends in a space."""
    assert said.endswith("\n")
    lines = said.rstrip("\n").split("\n")
    commands = next((at for at, line in enumerate(lines) if line.startswith("Look at")), len(lines))
    assert all(cell_len(line) <= text.PIPED for line in lines[:commands])
    assert all(cell_len(line) <= text.PIPED or len(line[text.LABEL :].split()) == 1 for line in lines[commands:])
    assert all(line == line.rstrip() for line in lines)


def once(report: Report) -> str:
    """The terminal's words, however they are broken into lines."""
    return " ".join(text.render(report).split())


def test_every_report_fits_the_width(report: Report) -> None:
    assert_fits(text.render(report))
    assert text.render(report) == text.render(report)


def test_the_score_comes_first_with_its_n_and_interval(one_run: Report) -> None:
    assert once(one_run).startswith(
        "`gpt-4o` (`airline`) on `tau_airline`: 50.0% passed (16 of 32 rollouts, 95% CI 21.7% to 78.3%); 8 tasks, 4 tries each"
    )
    assert "; 40 tasks, one try each" in once(make_report({"once": {str(at): [float(at % 3 == 0)] for at in range(40)}}))


def test_a_score_that_is_no_ratio_of_rollouts_says_so(cases: Cases) -> None:
    assert "83.3% passed on average over tasks (6 of 7 rollouts" in once(cases["some missing"]())


def test_a_threshold_other_than_one_is_said(one_run: Report) -> None:
    half = replace(one_run, runs=(replace(one_run.runs[0], pass_threshold=0.5),))
    assert "4 tries each; a rollout passes at a reward of 0.500" in once(half)
    assert "passes at a reward" not in once(one_run)


def test_trust_points_groups_and_fixes_follow_the_score_in_this_order(explained: Report) -> None:
    said = text.render(explained)
    places = [said.index(f"\n{label}") for label in LABELS]
    assert places == sorted(places)


def test_trust_is_answered_in_a_word_the_gravest_reason_first(explained: Report) -> None:
    assert "trusted? No. 7 rollouts end in a provider error. [IR, infrastructure] Doing nothing" in once(explained)
    mild = replace(explained, trust=tuple(one for one in explained.trust if one.level != "alarm"))
    assert "trusted? With care. Doing nothing would score 40.0%. One verdict" in once(mild)
    calm = replace(explained, trust=tuple(one for one in explained.trust if one.level == "note"))
    assert "trusted? Yes, with a note: One verdict" in once(calm)
    assert "trusted? Yes: nothing in the rows speaks against it." in once(replace(explained, trust=()))


def test_only_the_gravest_reasons_are_told(explained: Report) -> None:
    notes = tuple(replace(explained.trust[2], text=f"Note {at}.") for at in range(100))
    said = text.render(replace(explained, trust=(*notes, *explained.trust[:2])))
    assert said.index("provider error") < said.index("Doing nothing") < said.index("Note 0.")
    assert "Note 2." not in said


def test_the_points_are_a_table_with_the_unexplained_last(explained: Report) -> None:
    lines = text.render(explained).split("\n")
    start = next(at for at, line in enumerate(lines) if line.startswith("Where the points went"))
    assert lines[start].split()[4] == "16.2"
    assert f"{SKIPS}     BI  13 failures    1 pass" in lines[start]
    assert lines[start + 5].split() == ["8.8", "unexplained", "7", "failures"]
    lost = [float(line[text.LABEL :].split()[0]) for line in lines[start : start + 6]]
    assert abs(sum(lost) - 50.0) < 0.3
    assert "(BI: behaviour; TI: task, verifier or harness; UK: unreliable knowledge; IR: infrastructure; passes: " in once(explained)
    assert "passes: passing rollouts that show the same)" in once(explained)


def test_a_group_has_a_quotation_from_one_of_its_own_rows(explained: Report) -> None:
    assert f'1. 13 failures show it: {SKIPS}. In 6/1: "{{"order_id": "#W42"}}" 2.' in once(explained)


def test_a_group_that_trust_told_is_not_told_again(explained: Report) -> None:
    told = replace(explained.trust[0], text=explained.groups[0].text)
    said = once(replace(explained, trust=(told,)))
    assert said.count("13 failures show it") == 1
    assert f"1. {SKIPS} (see above). In 6/1" in said


def test_a_fix_says_what_it_could_win(explained: Report) -> None:
    said = once(explained)
    assert "in the same rollout. Expected gain +8.4 points (95% interval +3.1 points to +14.2 points)." in said
    assert "gold breaks the policy. (Fixes the measurement, not the model.)" in said
    assert "after every refund. (Gain not identified; at most 7.5 points.)" in said


def test_an_example_of_each_first_group_can_be_typed(explained: Report) -> None:
    said = once(explained)
    for place, group in zip(("6/1", "10/0", "7/0"), explained.groups, strict=False):
        assert f"blade show runs/airline.jsonl {place} ({group.name})" in said


def test_a_kind_of_task_is_told_only_where_it_is_worse_beyond_chance(explained: Report) -> None:
    assert "`domain` = `exchange`: 20.0% pass (6 tasks), the others 64.0%" in once(explained)
    assert "refund`: " not in once(explained)
    better = tuple(replace(one, pass_rate=0.9) for one in explained.slices)
    assert "On which tasks" not in text.render(replace(explained, slices=better))


def test_class_of_expected_answers_is_no_value_of_the_rows(explained: Report) -> None:
    def said(field: str, value: str) -> str:
        return once(replace(explained, slices=(replace(explained.slices[0], field=field, value=value),)))

    assert "expected answer is a number: 20.0% pass (6 tasks)" in said("expected answer is", "a number")
    assert "expected answer is several values: 20.0% pass" in said("expected answer is", "several values")
    assert "expected answer is `None`: 20.0% pass" in said("expected answer is", "None")
    assert "`freight` = `a number`: 20.0% pass" in said("freight", "a number")


def test_nothing_is_said_of_causes_that_were_not_looked_for(one_run: Report) -> None:
    said = text.render(one_run)
    assert not [label for label in LABELS[1:] if label != "On which tasks" and f"\n{label}" in said]


def test_long_and_wide_texts_are_wrapped_not_cut(explained: Report) -> None:
    groups = tuple(replace(one, name="漢字 " * 30, text="漢字かな" * 60 + " END") for one in explained.groups)
    advice = tuple(replace(one, action="word " * 70 + "END") for one in explained.recommendations)
    said = text.render(replace(explained, groups=groups, recommendations=advice))
    assert_fits(said)
    assert said.count("END") == 6
    assert "".join(said.split()).count("漢字かな" * 60) == 3


def test_several_runs_are_a_table_with_a_line_each_and_their_groups_told_once(cases: Cases) -> None:
    said = text.render(cases["explained runs"]())
    assert said.startswith("2 runs\n\nRun ")
    row = next(line for line in said.split("\n") if line.startswith("desk "))
    assert row.split()[1:] == ["50.0%", "[31.9%,", "68.1%]", "20", "80", "No", "BI", *SKIPS.split()]
    assert f"{SKIPS} [BI, behaviour]: desk 16.2, desk-b 15.6" in " ".join(said.split())
    assert "1: different models agree against the expected answer (review these golds): 3" in " ".join(said.split())


def test_no_run_of_many_is_left_out() -> None:
    said = text.render(make_report({f"checkpoint-{at:05}": f1() for at in range(60)}))
    assert_fits(said)
    assert all(f"checkpoint-{at:05}" in said for at in range(60))


def test_nothing_scored_is_said(cases: Cases) -> None:
    said = once(cases["all missing"]())
    assert "no score, because no rollout was scored. Can the score be trusted? There is none." in said


def test_what_was_not_read_and_what_cannot_be_said_is_counted(one_run: Report) -> None:
    assert "1 line or file could not be read. 1 limitation (see the report: -o DIR)." in once(one_run)
    whole = replace(one_run, skipped=(), skipped_total=0, gaps=())
    assert "could not be read" not in once(whole)
    assert "limitation" not in once(whole)
