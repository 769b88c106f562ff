"""What a sentence says against itself: each false one has a true twin, and twins that only look false."""

from __future__ import annotations

import pytest

from tests.check.within.said import contradicted, found, supported

FALSE_AND_TRUE = [
    # percentages of counts
    ("9 of 24 tasks (39.5%) passed.", "9 of 24 tasks (37.5%) passed."),
    ("9 of 24 tasks passed (39%).", "9 of 24 tasks passed (38%)."),
    ("The rate is 41.0% (9/24).", "The rate is 37.5% (9/24)."),
    ("It passes in 11/28 (93.3%) of them.", "It passes in 11/28 (39.3%) of them."),
    ("1,203 of 4,000 rows (31.0%) are short.", "1,203 of 4,000 rows (30.1%) are short."),
    ("3 of 5,059 rows (<0.01%) miss it.", "3 of 5,059 rows (<0.1%) miss it."),
    ("5,050 of 5,059 rows (>99.9%) hold it.", "5,058 of 5,059 rows (>99.9%) hold it."),
    # intervals and p-values
    ("It scored 67.0% [70.9%, 78.6%].", "It scored 67.0% [52.9%, 78.6%]."),
    ("The change is −4.3 points [−3.1, +2.0 points].", "The change is −4.3 points [−6.1, +2.0 points]."),
    ("The gain is 0.276 [0.457, 0.147].", "The gain is 0.276 [0.147, 0.457]."),
    ("It scored 67.0% (95% CI: 72.9–78.6%).", "It scored 67.0% (95% CI: 52.9–78.6%)."),
    ("The test gives p = 1.3 here.", "The test gives p = 0.13 here."),
    # sums
    (
        "96 expected = 92 scored + 3 failed + 0 masked + 2 lost (inputs).",
        "96 expected = 92 scored + 2 failed + 0 masked + 2 lost (inputs).",
    ),
    ("That is 69.1% − 67.0% = 3.1 points.", "That is 69.1% − 67.0% = 2.1 points."),
    ("A total of 13 failures: 5 slow, 4 empty and 3 wrong.", "A total of 12 failures: 5 slow, 4 empty and 3 wrong."),
    (
        "33.0 points are lost, 29.5 to the model, 4.5 to infrastructure, 0 undetermined.",
        "33.0 points are lost, 29.5 to the model, 3.5 to infrastructure, 0 undetermined.",
    ),
    # partitions
    (
        "Of 24 tasks, 9 passed in every repeat, 13 in some and 3 in none; 0 are missing.",
        "Of 24 tasks, 9 passed in every repeat, 13 in some and 2 in none; 0 are missing.",
    ),
    ("24 tasks: 9 always, 12 sometimes, 2 never.", "24 tasks: 9 always, 13 sometimes, 2 never."),
    # changes
    ("The score rose from 41% to 38%.", "The score fell from 41% to 38%."),
    ("It moved from 41.0% to 38.0%, a drop of 5.0 points.", "It moved from 41.0% to 38.0%, a drop of 3.0 points."),
    ("It moved from 38% to 41%, a drop of 3 points.", "It moved from 38% to 41%, a rise of 3 points."),
    ("The count doubled from 10 to 14.", "The count doubled from 10 to 20."),
    ("We see an increase of −3 points, from 41% to 38%.", "We see it fall from 41% to 38% (−3 points)."),
    (
        "12.0% pass with it (n = 11), 78.2% without (n = 78): a difference of 60.2 points.",
        "12.0% pass with it (n = 11), 78.2% without (n = 78): a difference of 66.2 points.",
    ),
    # words beside numbers
    ("Most tasks (9 of 24) pass.", "Most tasks (14 of 24) pass."),
    ("Most tasks pass: 9 of 24.", "Most tasks pass: 14 of 24."),
    ("The majority of failures (39%) is of this kind.", "The majority of failures (61%) is of this kind."),
    ("All tasks pass (9 of 24).", "All tasks pass (24 of 24)."),
    ("No task passes (3 of 24).", "No task passes (0 of 24)."),
    ("None of the rollouts (1 of 24) finish.", "None of the rollouts (0 of 24) finish."),
    ("Half of the tasks (6 of 24) fail.", "Half of the tasks (12 of 24) fail."),
    ("Only a few tasks (15 of 24) fail.", "Only a few tasks (3 of 24) fail."),
    ("Fewer than half of the tasks (15 of 24) fail.", "Fewer than half of the tasks (3 of 24) fail."),
    ("The first run (41%) scores higher than the second (43%).", "The first run (45%) scores higher than the second (43%)."),
    ("The rate is lower with it (43%) than without (41%).", "The rate is lower with it (41%) than without (43%)."),
]  # fmt: skip


@pytest.mark.parametrize(("false", "true"), FALSE_AND_TRUE)
def test_a_false_sentence_is_contradicted_and_its_twin_is_supported(false: str, true: str) -> None:
    wrong = contradicted(false)
    assert wrong, found(false)
    assert all(one.expected and one.why and one.line == one.last_line == 1 for one in wrong)
    assert not contradicted(true)
    assert supported(true)


LOOKS_FALSE = [
    "2 of 3 tasks (67%) and 1 of 8 tasks (12%) and 1 of 8 tasks (13%) pass.",  # a half rounds either way
    "3 of the 5 modes explain most of the loss (72%).",  # another share than that of the counts
    "9 of 24 tasks (62.5% of rows) pass.",
    "About 9 of 24 tasks (~40%) pass.",
    "Not all tasks pass (9 of 24).",
    "Nearly all tasks (23 of 24) pass.",
    "The rate of every task (200 of 800 tasks, evenly sampled) is shown.",
    "In most tasks, 1 of 4 repeats passes.",
    "Most tasks pass: 1 of 24 fails.",
    "At most tasks (9 of 24) of this size fit.",
    "The score did not rise from 41% to 38%.",
    "It would have risen from 41% to 38% without them.",
    "The score fell from 41% to 38%, a drop of 7.3%.",  # relative
    "It went from 0.41 to 0.38, a change of −3 points.",  # shares, told in points
    "The mean fell from 69.4 to 61.4 (−7.9 points).",  # rounded ends
    "Improved from 5.2 to 4.1, an improvement of 1.1.",
    "As shown by others in 2021 [3, 5], this holds.",
    "The odds ratio is 0.00 [0.06, 47.00] with ½ added.",
    "The sum 0.329861 = 1 − pass_at_1 holds.",
    "The payload is 65,507 bytes = 65,535 − 8 bytes of header − 20 bytes of address.",
    "Of 24 tasks, 9 need a tool, 13 need two and 8 need none of them.",
    "24 tasks: 9 always call it, 20 call it twice.",
    "The first run (41%) is not higher than the second (43%).",
    "With p = 3 the norm is cubic.",
    "33.0 points are lost, 20.5 to the model, 3.5 to infrastructure.",  # no word of the rest
    "29.5% or 7 von 24 Aufgaben (29,2 %) scheitern; 3,5 % (7 sur 24).",
    "`9 of 24 tasks (99%)` and “All tasks pass (9 of 24)” are quoted.",
    "The 24/7 service answered on 9/11.",
]


@pytest.mark.parametrize("text", LOOKS_FALSE)
def test_what_only_looks_false_is_left_alone(text: str) -> None:
    assert not contradicted(text)


def test_a_part_larger_than_its_whole_is_contradicted() -> None:
    assert [one.kind for one in contradicted("28 of 24 tasks passed.")] == ["count"]


def test_a_finding_stands_where_its_words_stand() -> None:
    text = "# Report\n\nFirst a line.\nThen 9 of 24 tasks (39.5%) pass here.\n"
    (one,) = contradicted(text)
    assert (one.line, one.last_line) == (4, 4)
    assert one.text[one.start :].startswith("9 of 24 tasks (39.5%)")
    assert one.expected == "37.5%"


def test_code_blocks_and_comments_claim_nothing() -> None:
    text = "# R\n\n```text\nAll tasks pass (9 of 24).\n```\n\n<!-- Most tasks (9 of 24) pass. -->\n"
    assert found(text) == []
