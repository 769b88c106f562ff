"""Rung 5: does the grade follow from the answer?"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import pytest

from tests.diagnose.builders import (
    Diagnose,
    Diagnosed,
    Key,
    Row,
    desk_row,
    grid,
    keys_of,
    make_row,
    quiz,
    quiz_row,
    rewards,
    told_of,
)

WRONGED = {(1, 0), (4, 2), (6, 1), (9, 3)}


def doubts(run: Diagnosed) -> list[str]:
    """What is said against the grader."""
    said = [group.text for group in run.of_rung("verifier")]
    said += [entry.text for entry in run.trust if entry.label == "TI" or "verifier" in entry.text.lower()]
    return said


# ---- Right answers that score 0 ------------------------------------------------------------------

SPELLINGS = [
    ("1250", "1,250"),
    ("1250", "1250 volumes"),
    ("1250", "1250."),
    ("1250", "1250.0"),
    ("1250", "x = 1250"),
    ("1250", "1{,}250"),
    ("[1, 2, 3]", "[1,2,3]"),
    ("{1, 2, 3}", "{3, 1, 2}"),
    ("2024-05-01", "1 May 2024"),
    (r"\left(2, 3\right)", "(2, 3)"),
    (r"\frac{3}{4}", "0.75"),
]


@pytest.mark.parametrize(("gold", "answer"), SPELLINGS)
def test_answer_equal_to_the_gold_but_for_its_spelling(diagnose: Diagnose, gold: str, answer: str) -> None:
    """Four failures give the gold in another spelling; all other answers agree or differ as the reward says."""
    rows = quiz(12, 4)
    for task, repeat in WRONGED:
        for other in range(4):
            is_wronged = other == repeat
            rows[task, other] = quiz_row(task, other, float(not is_wronged), answer if is_wronged else gold, gold)
    group = diagnose(rows.values()).group(WRONGED)
    assert (group.rung, group.label.value) == ("verifier", "TI")


def test_doubt_in_a_few_rows_is_a_warning(diagnose: Diagnose) -> None:
    rows = quiz(12, 4, rate=0.5)
    for task, repeat in WRONGED:
        rows[task, repeat] = quiz_row(task, repeat, 0.0, f"{task * 13 + 41}.00", str(task * 13 + 41))
    run = diagnose(rows.values())
    run.proved(WRONGED, "verifier", "TI", "warning")


@pytest.mark.parametrize("n_exact", [0, 1])
def test_right_answers_that_score_0_to_the_letter_are_counted(diagnose: Diagnose, n_exact: int) -> None:
    rows = quiz(12, 4, rate=0.5)
    for place, (task, repeat) in enumerate(sorted(WRONGED)):
        gold = str(task * 13 + 41)
        rows[task, repeat] = quiz_row(task, repeat, 0.0, gold if place < n_exact else f"{gold}.00", gold)
    group = diagnose(rows.values()).group(WRONGED)
    assert ("but for formatting (1 of them to the letter), and" in group.text) == bool(n_exact)
    assert ("to the letter" in group.text) == bool(n_exact)
    assert ("check which part of the answer it reads" in group.fix) == bool(n_exact)


def test_last_of_several_boxes_counts(diagnose: Diagnose) -> None:
    rows = quiz(12, 4)
    for task, repeat in WRONGED:
        gold = str(task * 13 + 41)
        rows[task, repeat] = quiz_row(task, repeat, 0.0, f"7}} at first, but then \\boxed{{{gold}", gold)
    assert diagnose(rows.values()).group(WRONGED).label == "TI"


def test_other_numbers_are_wrong_answers(diagnose: Diagnose) -> None:
    run = diagnose(quiz(12, 4).values())
    assert doubts(run) == []
    assert run.labels(run.failing) == {"UK"}


def test_literals_are_compared_as_values_only(diagnose: Diagnose) -> None:
    """`'North hall'` and `'north  hall'` are two literals, however alike they read."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        gold = f"'North hall {task}'"
        wrong = f"'north  hall {task}'" if repeat % 2 else f"'NORTH HALL {task}'"
        rows.append(quiz_row(task, repeat, reward, gold if reward else wrong, gold))
    run = diagnose(rows)
    assert run.of_rung("verifier") == []


def test_field_that_passes_do_not_agree_with_is_not_the_gold(diagnose: Diagnose) -> None:
    """A third of the passes give another value, so that it is not equality that is graded; a fifth of the failures agree."""
    rows = []
    for place, ((task, repeat), reward) in enumerate(rewards(12, 4, 0.6).items()):
        value = task * 13 + 41
        agrees = place % 3 > 0 if reward else place % 5 == 0
        rows.append(quiz_row(task, repeat, reward, str(value if agrees else value + 1 + repeat), str(value)))
    run = diagnose(rows)
    assert run.of_rung("verifier") == []
    assert not [entry for entry in run.alarms if entry.label == "TI"]


def test_many_rows_need_exact_equality(diagnose: Diagnose) -> None:
    """A grader that asks for two decimals, and says so, is no broken grader: a quarter of the rows spell it otherwise."""
    rows = []
    for place, ((task, repeat), reward) in enumerate(rewards(12, 4, 0.6).items()):
        gold = f"{task * 13 + 41}.50"
        wrong = f"{task * 13 + 41}.5" if place % 4 else f"{task}.75"
        prompt = f"What does branch {task} owe? Box the amount with two decimals, such as 3.20; 3.2 is wrong."
        rows.append(quiz_row(task, repeat, reward, gold if reward else wrong, gold, prompt=prompt))
    run = diagnose(rows)
    assert not [entry for entry in run.alarms if entry.label == "TI"]


def spelled(gold_of: Callable[[int], str], other: Callable[[str], str]) -> tuple[list[Row], set[Key]]:
    """A quiz in which a quarter of all rows give the gold in another spelling, and never pass."""
    rows: list[Row] = []
    odd: set[Key] = set()
    for place, (task, repeat) in enumerate(grid(16, 4)):
        gold = gold_of(task)
        if place % 4 == task % 4:
            odd.add((task, repeat))
            rows.append(quiz_row(task, repeat, 0.0, other(gold), gold))
        else:
            passes = place % 7 > 0
            rows.append(quiz_row(task, repeat, float(passes), gold if passes else gold_of(task + 30 + repeat), gold))
    return rows, odd


@pytest.mark.parametrize(
    ("gold_of", "other"),
    [
        (lambda task: str(task * 1301 + 4001), lambda gold: f"{int(gold):,}"),
        (lambda task: str(task * 13 + 41), lambda gold: f"{gold} volumes"),
        (lambda task: f"2024-05-{task % 28 + 1:02d}", lambda gold: f"{int(gold[-2:])} May 2024"),
    ],
)
def test_many_numbers_in_another_spelling_where_spelling_alone_decides(
    diagnose: Diagnose, gold_of: Callable[[int], str], other: Callable[[str], str]
) -> None:
    """Every pass is the gold letter by letter, and no other spelling ever passes: so many may be, and it is the grader."""
    rows, odd = spelled(gold_of, other)
    diagnose(rows).proved(odd, "verifier", "TI", "alarm")


def test_many_numbers_with_other_decimals_are_no_alarm(diagnose: Diagnose) -> None:
    """So many decimals may be asked for."""
    rows, odd = spelled(lambda task: f"{task * 3 + 4}.50", lambda gold: gold.removesuffix("0"))
    run = diagnose(rows)
    assert "TI" not in run.labels(odd)
    assert run.alarms == []


def test_many_numbers_in_a_spelling_that_passes_too_are_no_alarm(diagnose: Diagnose) -> None:
    rows, odd = spelled(lambda task: str(task * 13 + 41), lambda gold: f"{gold} volumes")
    for place, (key, row) in enumerate(zip(grid(16, 4), rows, strict=True)):
        if place % 27 == 0:
            rows[place] = quiz_row(*key, 1.0, f"{row['expected_answer']} volumes", row["expected_answer"])
    run = diagnose(rows)
    assert "TI" not in run.labels(odd)
    assert run.alarms == []


def test_all_zero_run_by_itself_is_no_doubt(diagnose: Diagnose) -> None:
    run = diagnose(quiz(12, 4, rate=0.0).values())
    assert run.of_rung("verifier") == []
    assert run.alarms == []


def test_all_zero_run_with_answers_that_are_the_gold(diagnose: Diagnose) -> None:
    rows = [quiz_row(*key, 0.0, str(key[0] * 13 + 41), str(key[0] * 13 + 41)) for key in grid(12, 4)]
    run = diagnose(rows)
    run.proved(keys_of(rows), "verifier", "TI", "alarm")


def test_all_zero_run_with_answers_that_only_resemble_the_gold(diagnose: Diagnose) -> None:
    """Without a pass nothing shows how answers are compared: only exact equality counts."""
    rows = [quiz_row(*key, 0.0, f"{key[0] * 13 + 41}.0 volumes", str(key[0] * 13 + 41)) for key in grid(12, 4)]
    assert diagnose(rows).of_rung("verifier") == []


# ---- What the grader took from the text ----------------------------------------------------------


def extracted(is_said: bool) -> list[Row]:
    """A quiz whose grader keeps what it read; in the wronged rows that is the first number of the text, be the answer right or wrong."""
    rows = []
    for key, row in quiz(12, 4).items():
        gold = key[0] * 13 + 41
        if key in WRONGED:
            first, answer = key[0] + 3, gold if is_said else gold + 9
            text = f"There are {first} halls, and each was counted.\nFrom the loans I get \\boxed{{{answer}}}"
            row["response"]["output"][0]["content"][0]["text"] = text
            rows.append({**row, "reward": 0.0, "extracted_answer": str(first)})
        else:
            rows.append({**row, "extracted_answer": str(gold if row["reward"] else gold + 1 + key[1])})
    return rows


def test_grader_that_reads_another_value_than_the_answer(diagnose: Diagnose) -> None:
    run = diagnose(extracted(is_said=True))
    group = run.group(WRONGED)
    assert (group.rung, group.label.value) == ("verifier", "TI")
    assert "`extracted_answer`" in group.text
    sentence = next(entry.mechanism for entry in run.report.attributions if entry.task == "4")
    assert 'it answers "93", and `extracted_answer` is 7' in sentence


def test_grader_that_reads_another_value_than_a_wrong_answer_is_no_doubt(diagnose: Diagnose) -> None:
    """Read rightly it would be wrong all the same."""
    assert diagnose(extracted(is_said=False)).of_rung("verifier") == []


# ---- A prompt without what it is about -----------------------------------------------------------


def about(document: Callable[[int], str], is_hard: bool = True) -> tuple[list[Row], set[Key]]:
    """A quiz about a document in the prompt, in some tasks another one; those mostly fail."""
    rows: list[Row] = []
    struck: set[Key] = set()
    for place, (task, repeat) in enumerate(grid(16, 4)):
        is_odd = task % 4 == 1
        gold = str(task * 13 + 41)
        fails = place % 21 > 0 if is_odd and is_hard else place % 5 == 0
        if is_odd and fails:
            struck.add((task, repeat))
        held = document(task) if is_odd else f"Branch {task} lends from {task % 9 + 1} halls."
        prompt = f"How many volumes did branch {task} lend?\n<document>{held}</document>\nAnswer in \\boxed{{}}."
        answer = str(task * 13 + 60 + repeat) if fails else gold
        rows.append(quiz_row(task, repeat, float(not fails), answer, gold, prompt=prompt))
    return rows, struck


@pytest.mark.parametrize("empty", ["", "\n  \n"])
def test_block_of_the_prompt_that_holds_nothing(diagnose: Diagnose, empty: str) -> None:
    rows, struck = about(lambda task: empty)
    group = diagnose(rows).proved(struck, "verifier", "TI", "alarm")
    assert "`<document>`" in group.name


def test_block_of_the_prompt_that_holds_little_is_no_doubt(diagnose: Diagnose) -> None:
    rows, _ = about(lambda task: f"Branch {task}.")
    assert "<document>" not in diagnose(rows).said


def test_empty_block_that_costs_nothing_is_no_doubt(diagnose: Diagnose) -> None:
    rows, _ = about(lambda task: "", is_hard=False)
    assert "<document>" not in diagnose(rows).said


def test_block_that_is_empty_in_every_prompt_is_no_doubt(diagnose: Diagnose) -> None:
    """A place to answer in, say: nothing shows that it should hold something."""
    rows, _ = about(lambda task: "")
    for row in rows:
        asked = row["responses_create_params"]["input"][0]
        asked["content"] = re.sub(r"(?s)<document>.*</document>", "<document></document>", asked["content"])
    assert "<document>" not in diagnose(rows).said


# ---- The same answer graded 0 and 1 --------------------------------------------------------------


def test_same_answer_graded_both_ways(diagnose: Diagnose) -> None:
    """Row 8 of "why a new core"; words as answers, so that equality is a matter of letters."""
    words = "amber cobalt ivory jade ochre russet teal umber azure coral mauve sable".split()
    rows = {}
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        answer = words[task] if reward else words[(task + 1 + repeat) % 12]
        rows[task, repeat] = quiz_row(task, repeat, reward, answer, words[task])
    for task, repeat in WRONGED:
        rows[task, (repeat + 1) % 4] = quiz_row(task, (repeat + 1) % 4, 1.0, words[task], words[task])
        rows[task, repeat] = quiz_row(task, repeat, 0.0, words[task], words[task])
    group = diagnose(rows.values()).group(WRONGED)
    assert (group.rung, group.label.value) == ("verifier", "TI")


def test_same_answer_graded_both_ways_without_a_gold(diagnose: Diagnose) -> None:
    rows = {}
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        answer = task * 13 + 41 if reward else task * 13 + 60 + repeat
        rows[task, repeat] = quiz_row(task, repeat, reward, str(answer), "")
    for task, repeat in WRONGED:
        for other, reward in ((repeat, 0.0), ((repeat + 1) % 4, 1.0)):
            rows[task, other] = quiz_row(task, other, reward, str(task * 13 + 41), "")
    for row in rows.values():
        del row["expected_answer"]
    group = diagnose(rows.values()).group(WRONGED)
    assert (group.rung, group.label.value) == ("verifier", "TI")


@pytest.mark.parametrize("is_shared", [True, False])
def test_wrong_answer_graded_both_ways(diagnose: Diagnose, is_shared: bool) -> None:
    """Another value than the expected one passes once; where a failure of the same task gives it too, one rule does not grade both."""
    rows = quiz(12, 4, rate=0.6)
    odd = {(2, 1), (7, 3)}
    for task, repeat in odd:
        for other, reward in ((repeat, 0.0), (repeat - 1, 1.0)):
            wrong = task * 13 + (90 if is_shared or reward else 95)
            rows[task, other] = quiz_row(task, other, reward, str(wrong), str(task * 13 + 41))
    run = diagnose(rows.values())
    if is_shared:
        group = run.proved(odd, "verifier", "TI", "warning")
        assert group.name == "same answer graded 0 and 1"
        assert "It is not the expected answer, so either these passes or the expected answers are wrong." in group.text
        assert group.fix.startswith("Review the expected answers of these tasks")
    else:
        assert run.of_rung("verifier") == []


def split_verdicts(says: Callable[[int, int], str], gold: Callable[[int], str], split: set[int]) -> tuple[list[Row], set[Key]]:
    """Every task has one verdict, but for some tasks whose last repeat fails all the same."""
    rows, failed = [], set()
    for task, repeat in grid(16, 4):
        is_odd = task in split and repeat == 3
        passes = task % 4 > 0 and not is_odd
        text = says(task, repeat) if passes or is_odd else f"I would look in hall {task * 5 + repeat}, by the stairs."
        rows.append(make_row(task, repeat, float(passes), [text], expected_answer=gold(task)))
        failed |= {(task, repeat)} if is_odd else set()
    return rows, failed


def test_reply_that_is_the_gold_graded_both_ways_where_passes_say_it_in_many_ways(diagnose: Diagnose) -> None:
    """A judge takes other words for right too, so that equality is not what is graded; a reply that is the gold is one all the same."""
    rows, failed = split_verdicts(
        lambda task, repeat: f"Quire {chr(97 + task)}lder" if task % 2 or repeat == 3 else f"The {repeat}th of the {task} alder leaves.",
        lambda task: f"Quire {chr(97 + task)}lder", {3, 9},
    )  # fmt: skip
    group = diagnose(rows).group(failed)
    assert (group.rung, group.label.value, group.name) == ("verifier", "TI", "same answer graded 0 and 1")
    assert "not the expected answer" not in group.text


@pytest.mark.parametrize("says", ["Done.", "42"])
def test_same_reply_beside_a_gold_that_it_is_not_is_no_doubt(diagnose: Diagnose, says: str) -> None:
    """Work that ends with the same short message, or with a number, is graded by something else."""
    rows, failed = split_verdicts(lambda task, repeat: says, lambda task: f"ledger {task * 7} is closed", {3, 9})
    run = diagnose(rows)
    assert failed <= run.failing
    assert "graded 0 and 1" not in run.said


def test_different_answers_graded_both_ways_are_no_doubt(diagnose: Diagnose) -> None:
    rows = {}
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        rows[task, repeat] = quiz_row(task, repeat, reward, str(task * 50 + repeat), "")
        del rows[task, repeat]["expected_answer"]
    assert doubts(diagnose(rows.values())) == []


def test_free_text_judged_by_a_model_is_no_doubt(diagnose: Diagnose) -> None:
    """A judge reads more than the last line, which is the same courtesy everywhere."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.5).items():
        chance = random.Random(task * 11 + repeat)
        words = " ".join(chance.choice("the old branch lends more in spring than its halls hold".split()) for _ in range(60))
        text = f"{words}.\nI hope this helps!"
        rows.append(make_row(task, repeat, reward, [text], judge_score=round(chance.random(), 3)))
    run = diagnose(rows)
    assert run.of_rung("verifier") == []
    assert not [entry for entry in run.trust if entry.label == "TI"]


# ---- Wrong answers that score 1 ------------------------------------------------------------------


def lenient(is_other_type: bool) -> list[Row]:
    rows = quiz(12, 4)
    for task, repeat in ((2, 1), (8, 0)):
        answer = "the eastern annex" if is_other_type else str(task * 13 + 999)
        rows[task, repeat] = quiz_row(task, repeat, 1.0, answer, str(task * 13 + 41))
    return list(rows.values())


def test_pass_with_another_closed_value_is_a_warning(diagnose: Diagnose) -> None:
    run = diagnose(lenient(is_other_type=False))
    entries = [entry for entry in run.trust if entry.query and run.keys(entry) == {(2, 1), (8, 0)}]
    assert [entry.level for entry in entries] == ["warning"]


def test_pass_with_words_for_a_number_is_no_doubt(diagnose: Diagnose) -> None:
    assert doubts(diagnose(lenient(is_other_type=True))) == []


def due(task: int) -> list[dict[str, object]]:
    return [{"name": "redirect_parcel", "arguments": {"number": task}}]


def idle(expected: Sequence[object] | None, idle_keys: set[Key]) -> list[Row]:
    """A desk where some passing rollouts make no call at all, though the gold may demand one."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.7).items():
        gold = {"expected_actions": due(task) if task not in (3, 7) or expected is None else list(expected)}
        if (task, repeat) in idle_keys:
            rows.append(desk_row(task, repeat, 1.0, ["All is settled already."], **gold))
        else:
            number = task if reward else task + 20 + repeat
            acts = [("redirect_parcel", {"number": number}, "Moved."), f"Moved number {number}."]
            acts = ["Nothing to do."] if expected is not None and task in (3, 7) else acts
            rows.append(desk_row(task, repeat, reward, acts, **gold))
    return rows


def test_pass_without_acts_where_acts_are_due_is_a_doubt(diagnose: Diagnose) -> None:
    idle_keys = {(3, 0), (7, 1)}
    run = diagnose(idle(None, idle_keys))
    entries = [entry for entry in run.trust if entry.query and run.keys(entry) == idle_keys]
    assert entries, run.said
    assert entries[0].level in ("alarm", "warning")


def test_pass_without_acts_where_none_is_due_is_no_doubt(diagnose: Diagnose) -> None:
    idle_keys = {(3, 0), (7, 1)}
    run = diagnose(idle([], idle_keys))
    assert not [entry for entry in run.trust if entry.query and run.keys(entry) == idle_keys]


# ---- The parse test ------------------------------------------------------------------------------


WORDS = "north south harbour mill quarry orchard chapel lighthouse".split()


def commands(wrap: str, is_right: bool = True) -> tuple[list[Row], set[Key], set[Key]]:
    """A desk of one command per errand; most rows wrap it, and the checker's `error` says that it cannot decode.

    The rows, those that wrap their command, and of these the ones whose command is the expected one.
    """
    rows: list[Row] = []
    wrapped, matching = set(), set()
    chance = random.Random(5)
    for place, (task, repeat) in enumerate(grid(20, 3)):
        streets = " ".join(chance.sample(WORDS, chance.randrange(1, 6)))
        gold = f"redirect(number={task + 100}, street='{WORDS[task % 8]} {WORDS[task % 5]}{' east' * (task % 4)}')"
        other = f"redirect(number={chance.randrange(300, 90_000)}, street='{streets}')"
        is_wrapped = place % 4 > 0
        matches = is_right and place % 3 > 0
        passes = not is_wrapped and place % 8 > 0
        text = wrap.format(gold if matches else other) if is_wrapped else gold if passes else other
        if is_wrapped:
            wrapped.add((task, repeat))
        if is_wrapped and matches:
            matching.add((task, repeat))
        error = None if passes else "failed to decode the call" if is_wrapped else "another call than expected"
        prompt = f"Errand {task}: give the call that settles it."
        row = make_row(task, repeat, float(passes), [text], prompt=prompt, expected_answer=gold, valid=passes)
        rows.append({**row, "error": error})
    return rows, wrapped, matching


FENCE = "```python\n{}\n```"


def test_fenced_answers_that_the_checker_cannot_decode(diagnose: Diagnose) -> None:
    """Row 1 of "why a new core"."""
    rows, wrapped, matching = commands(FENCE)
    run = diagnose(rows)
    group = run.proved(wrapped, "verifier", "TI", "alarm")
    assert "fence" in told_of(group)
    assert re.search(rf"\b{len(matching)}\b", group.text)  # how many would match without the fence
    assert "IR" not in {group.label for group in run.groups} | {entry.label for entry in run.trust}


def test_fence_is_fixed_by_scoring_again_not_by_a_rerun(diagnose: Diagnose) -> None:
    rows, wrapped, _ = commands(FENCE)
    run = diagnose(rows)
    assert run.keys(run.groups[0]) == wrapped
    assert "rerun" not in run.groups[0].fix.lower().replace("no rerun", "")


def test_fence_with_words_around_it(diagnose: Diagnose) -> None:
    rows, wrapped, matching = commands("This settles it:\n" + FENCE + "\nPlease check the street.")
    group = diagnose(rows).proved(wrapped, "verifier", "TI", "alarm")
    assert "fence" in group.name
    assert re.search(rf"\b{len(matching)}\b", group.text)


@pytest.mark.parametrize("wrap", ["Sure! Here is the call: {}", "<call>{}</call>"])
def test_prefixed_and_tagged_answers(diagnose: Diagnose, wrap: str) -> None:
    rows, _, matching = commands(wrap)
    run = diagnose(rows)
    assert {(group.rung, group.label.value) for group in run.holders(matching)} == {("verifier", "TI")}
    assert any(entry.level == "alarm" and run.keys(entry) >= matching for entry in run.trust)


def test_fence_that_passing_answers_have_too_is_innocent(diagnose: Diagnose) -> None:
    rows, _, _ = commands(FENCE)
    for row in rows:
        content = row["response"]["output"][0]["content"][0]
        content["text"] = FENCE.format(content["text"].strip("`").removeprefix("python").strip())
    run = diagnose(rows)
    assert "fence" not in "\n".join(group.name for group in run.groups)


def test_fenced_answers_none_of_which_would_match_are_wrong_answers(diagnose: Diagnose) -> None:
    """Every fenced answer is another call than expected, and the checker says so: the fence costs nothing."""
    rows, wrapped, _ = commands(FENCE, is_right=False)
    for row in rows:
        row["error"] = row["error"] and "another call than expected"
    run = diagnose(rows)
    assert not [entry for entry in run.alarms if entry.label == "TI"]
    assert "TI" not in run.labels(wrapped)


# ---- Checks and logs against the reward ----------------------------------------------------------


def checked(contradicted: set[Key]) -> list[Row]:
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        place = task * 4 + repeat
        good = bool(reward) or (task, repeat) in contradicted
        weighed = good or place % 2 == 0
        checks = [{"name": "weighed", "passed": weighed}, {"name": "labelled", "passed": good or not weighed}]
        if not good and weighed:
            checks[1]["passed"] = False
        rows.append(desk_row(task, repeat, 0.0 if (task, repeat) in contradicted else reward, checks=checks))
    return rows


def test_all_checks_pass_and_the_reward_is_zero(diagnose: Diagnose) -> None:
    failing = sorted(key for key, reward in rewards(12, 4, 0.6).items() if not reward)
    contradicted = set(failing[::5])
    group = diagnose(checked(contradicted)).group(contradicted)
    assert (group.rung, group.label.value) == ("verifier", "TI")


def test_checks_that_agree_with_the_reward_are_no_doubt(diagnose: Diagnose) -> None:
    assert doubts(diagnose(checked(set()))) == []


@pytest.mark.parametrize("field", ["resolved", "test_log"])
def test_verdict_or_log_that_says_the_opposite_of_the_reward(diagnose: Diagnose, field: str) -> None:
    """`resolved: true`, or a log that ends in `all 9 tests passed`, beside a reward of 0."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        key = task, repeat
        good = bool(reward) or key in WRONGED
        lines = [f"unit {task * 7 + repeat}.{n} ran in {n + repeat} ms" for n in range(9)]
        log = "\n".join([*lines, "all 9 tests passed" if good else f"{1 + place_of(key) % 3} of 9 tests failed"])
        verdict = {"resolved": good} if field == "resolved" else {"test_log": log}
        rows.append(desk_row(*key, 0.0 if key in WRONGED else reward, **verdict))
    run = diagnose(rows)
    group = run.group(WRONGED)
    assert (group.rung, group.label.value) == ("verifier", "TI")


def test_field_that_says_how_a_rollout_ended_is_no_verdict(diagnose: Diagnose) -> None:
    """`terminated` is 1 in every pass and in few failures, but names no success: there is nothing to contradict."""
    rows = []
    for key, reward in rewards(12, 4, 0.6).items():
        ended = int(bool(reward) or key in WRONGED)
        rows.append(desk_row(*key, 0.0 if key in WRONGED else reward, terminated=ended))
    assert doubts(diagnose(rows)) == []


def place_of(key: Key) -> int:
    return key[0] * 4 + key[1]


def failing_check(message: str) -> list[Row]:
    """Nothing passes: one check fails in every row, with a message; two others pass now and then."""
    rows = []
    for task, repeat in grid(12, 4):
        place = task * 4 + repeat
        checks = [
            {"name": "weighed", "passed": place % 5 > 0, "message": ""},
            {"name": "labelled", "passed": place % 7 > 0, "message": ""},
            {"name": "shelf_free", "passed": False, "message": message},
        ]
        rows.append(desk_row(task, repeat, 0.0, checks=checks))
    return rows


def test_check_that_errors_for_all_is_a_doubt(diagnose: Diagnose) -> None:
    run = diagnose(failing_check("ImportError: no module named shelf_probe"))
    entries = [entry for entry in run.trust if entry.label == "TI" or "shelf_free" in entry.text]
    assert entries, run.said
    assert "shelf_free" in run.said


def test_check_that_fails_for_all_is_no_doubt_by_itself(diagnose: Diagnose) -> None:
    run = diagnose(failing_check("the shelf still holds the old parcel"))
    assert not [entry for entry in run.trust if entry.label == "TI"]
    assert "TI" not in run.labels(run.failing)


# ---- A name that the test needs and the prompt never gives ---------------------------------------


def ledgers(is_told: bool) -> list[Row]:
    """The clerk writes a ledger under a name of its own; the test opens another one, which the prompt may give."""
    rows = []
    for task, repeat in grid(12, 4):
        place = task * 4 + repeat
        right = place % 6 == 0
        name = "/srv/desk/ledger.csv" if right else f"/srv/desk/{['out', 'list', 'week'][place % 3]}{task}.csv"
        acts = [
            ("write_file", {"path": name, "text": f"week;{task};{repeat}"}, "written"),
            f"The ledger of week {task} is written." + " Please have a look." * (place % 3),
        ]
        end = "3 of 3 tests passed" if right else "FileNotFoundError: no such file: /srv/desk/ledger.csv"
        lines = [f"unit {place}.{n} collected in {n + repeat} ms" for n in range(9)]
        where = " Write it to /srv/desk/ledger.csv." if is_told else ""
        prompt = f"Write the ledger of week {task} as a table into the folder of the desk.{where}"
        log = "\n".join([*lines, end])
        rows.append(make_row(task, repeat, float(right), acts, prompt=prompt, tools=("write_file",), test_log=log))
    return rows


def test_path_that_the_test_needs_and_the_prompt_never_gives(diagnose: Diagnose) -> None:
    run = diagnose(ledgers(is_told=False))
    group = run.proved(run.failing, "verifier", "TI", "alarm")
    assert "ledger.csv" in told_of(group)


def test_path_that_the_prompt_gives_is_behaviour(diagnose: Diagnose) -> None:
    run = diagnose(ledgers(is_told=True))
    assert run.of_rung("verifier") == []
    assert "TI" not in run.labels(run.failing)


# ---- A judge that is cut off -----------------------------------------------------------------------


def judged(is_list: bool, is_to_blame: bool) -> tuple[list[Row], set[Key]]:
    """Notes that a judge model grades; in every third row it was stopped by a limit, and the row fails, or fares as all others."""
    rows, cut = [], set()
    for place, (task, repeat) in enumerate(grid(20, 3)):
        is_cut = place % 3 == 0
        reward = 0.0 if is_cut and is_to_blame else float(place % 5 > 0)
        if is_cut and not reward:
            cut.add((task, repeat))
        reply = {
            "output": [{"type": "message", "content": [{"type": "output_text", "text": f"I read note {place}, and then"}]}],
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        }
        record = {"response": reply, "mark": None if is_cut else "fair"}
        note = f"Branch {task} is closed on the {repeat + 3}rd, says ledger {place * 7}." + " It is stamped." * (place % 4)
        rows.append(make_row(task, repeat, reward, [note], opinions=[record] if is_list else record))
    return rows, cut


@pytest.mark.parametrize("is_list", [True, False])
def test_a_judge_that_a_limit_stops(diagnose: Diagnose, is_list: bool) -> None:
    rows, cut = judged(is_list, is_to_blame=True)
    group = diagnose(rows).proved(cut, "verifier", "TI", "alarm")
    assert "opinions" in group.text
    assert group.quote is not None
    assert "max_output_tokens" in group.quote.quote


def test_a_judge_that_is_stopped_after_its_verdict_is_no_doubt(diagnose: Diagnose) -> None:
    rows, _ = judged(is_list=True, is_to_blame=False)
    run = diagnose(rows)
    assert run.of_rung("verifier") == []
    assert doubts(run) == []


# ---- Values that are right in another spelling -----------------------------------------------------


def records(day: str) -> tuple[list[Row], set[Key]]:
    """Forms that are stored with a day; on every third the day is written as given here."""
    rows, spelt = [], set()
    for place, (task, repeat) in enumerate(grid(20, 3)):
        due = {"owner": f"N. {task * 7}", "day": f"2031-05-{task + 10}", "halls": task % 4 + 1}
        is_spelt = place % 3 == 0
        kept = {**due, "day": day.format(task + 10)} if is_spelt else due
        if is_spelt:
            spelt.add((task, repeat))
        note = f"Form {place} is filed." + " It is stamped." * (place % 4)
        rows.append(make_row(task, repeat, float(not is_spelt), [note], target=due, stored=kept))
    return rows, spelt


@pytest.mark.parametrize("day", ["05/{}/2031", "{}.05.2031", "May {}, 2031"])
def test_values_that_differ_in_spelling_alone(diagnose: Diagnose, day: str) -> None:
    rows, spelt = records(day)
    group = diagnose(rows).proved(spelt, "verifier", "TI", "alarm")
    assert "another spelling" in group.name


@pytest.mark.parametrize("day", ["06/{}/2031", "May {}, 2032"])
def test_values_that_differ_are_wrong(diagnose: Diagnose, day: str) -> None:
    rows, spelt = records(day)
    assert diagnose(rows).labels(spelt) == {"BI"}


# ---- Options in another order than the key ---------------------------------------------------------


def options(is_shifted: bool) -> tuple[list[Row], set[Key]]:
    """Questions with four options; in the last third of the tasks the key has the letter of another option."""
    rows, shifted = [], set()
    for place, (task, repeat) in enumerate(grid(24, 3)):
        volumes = [task * 5 + step for step in (3, 11, 17, 29)]
        right = (task * 7) % 4
        is_off = is_shifted and task % 3 == 2
        key = "ABCD"[(right + 1) % 4] if is_off else "ABCD"[right]
        picked = right if place % 5 else (right + 2) % 4
        reward = float("ABCD"[picked] == key)
        if is_off and picked == right:
            shifted.add((task, repeat))
        listed = "\n".join(f"{letter}) {volume} volumes" for letter, volume in zip("ABCD", volumes, strict=True))
        says = f"I count them in ledger {place}." + " It adds up." * (place % 3) + f"\nAnswer: {'ABCD'[picked]}"
        fields = {"key": key, "source": {"true_option": f"{volumes[right]} volumes"}}
        rows.append(make_row(task, repeat, reward, [says], prompt=f"How many did branch {task} lend?\n{listed}", **fields))
    return rows, shifted


def test_options_in_another_order_than_the_key(diagnose: Diagnose) -> None:
    rows, shifted = options(True)
    group = diagnose(rows).proved(shifted, "verifier", "TI", "alarm")
    assert "source.true_option" in group.text


def test_options_in_the_order_of_the_key_are_no_doubt(diagnose: Diagnose) -> None:
    rows, _ = options(False)
    run = diagnose(rows)
    assert run.of_rung("verifier") == []
    assert run.alarms == []


# ---- A count that nearly all rows share ------------------------------------------------------------


def test_counts_that_agree_by_chance_are_no_answer(diagnose: Diagnose) -> None:
    """The size of a result agrees in passes and in most failures: it is not what is graded, and the run is healthy."""
    rows = []
    for place, (task, repeat) in enumerate(grid(30, 3)):
        fails = place % 4 == 0
        n_due = 4 if task % 7 == 3 else 1
        n_given = 2 if fails and place % 3 == 0 else n_due
        note = f"select {place * 3} from halls" + " order by 1" * (place % 3)
        outcome = {"outcome": "mismatch" if fails else "ok", "n_pred": n_given, "n_gold": n_due}
        rows.append(make_row(task, repeat, float(not fails), [note], execution=outcome))
    run = diagnose(rows)
    assert run.alarms == []
    assert "TI" not in {group.label.value for group in run.groups}


# ---- Signs that change no meaning, ends that nobody reads, names that are not there ----------------


def declined(sign: str, rejected: bool) -> tuple[list[Row], set[Key]]:
    """Every text declines; some spell the apostrophe with another sign, which the check may not know."""
    rows, odd = [], set()
    for task, repeat in grid(12, 4):
        is_odd = (task + repeat) % 3 == 0
        text = f"I can{sign if is_odd else chr(39)}t help with this request, number {task * 7 + repeat}."
        rows.append(make_row(task, repeat, float(not (is_odd and rejected)), [text]))
        odd |= {(task, repeat)} if is_odd else set()
    return rows, odd


def test_typographic_sign_that_the_check_does_not_know(diagnose: Diagnose) -> None:
    rows, odd = declined("\u2019", rejected=True)
    group = diagnose(rows).group(odd)
    assert (group.label.value, group.rung) == ("TI", "verifier")
    assert "\u2019" in group.text


def test_other_words_with_a_typographic_sign_are_no_fault_of_the_check(diagnose: Diagnose) -> None:
    rows, odd = declined("\u2019", rejected=True)
    for row in rows:
        if (row["_ng_task_index"], row["_ng_rollout_index"]) in odd:
            row["response"]["output"][0]["content"][0]["text"] = f"Here\u2019s how one does it: step {row['_ng_task_index']}."
    assert all("sign" not in group.text for group in diagnose(rows).groups)


def late(limit: int, n_tasks: int = 30) -> tuple[list[Row], set[Key]]:
    """Every text gives the right place, at once or after a long walk; what stands beyond the limit is not graded."""
    rows, lost = [], set()
    for task, repeat in grid(n_tasks, 2):
        gold = f"shelf {task * 31 + 7}"
        is_long = (task + repeat) % 2 == 0
        text = ("I went along the corridor and read the signs. " * 15 if is_long else "") + f"You find it on {gold}."
        reward = float(text.index(gold) <= limit)
        rows.append(make_row(task, repeat, reward, [text], prompt=f"Where is volume {task}?", expected_answer=gold))
        lost |= set() if reward else {(task, repeat)}
    return rows, lost


def test_answer_that_stands_beyond_what_is_graded(diagnose: Diagnose) -> None:
    rows, lost = late(300)
    group = diagnose(rows).group(lost)
    assert (group.label.value, group.rung) == ("TI", "verifier")
    assert "beginning" in group.text


def test_long_texts_that_pass_too_blame_no_end(diagnose: Diagnose) -> None:
    rows, _ = late(10_000)
    for row in rows:
        row["reward"] = float((row["_ng_task_index"] * 7 + row["_ng_rollout_index"]) % 3 > 0)
    assert all("beginning" not in group.text for group in diagnose(rows).groups)


def queried(name: str, shown: str) -> tuple[list[Row], set[Key]]:
    """Some queries end in an error that there is no such column; the prompt lists the columns."""
    rows, failed = [], set()
    for task, repeat in grid(12, 4):
        is_failed = task % 2 == 0
        rows.append(make_row(
            task, repeat, float(not is_failed), [f"SELECT {name} FROM loans WHERE branch = {task}"],
            prompt=f"CREATE TABLE loans (branch INTEGER, {shown} REAL, hall TEXT);\nWhat is the total {name} of branch {task}?",
            exec_error=f"no such column: {name}" if is_failed else None,
        ))  # fmt: skip
        failed |= {(task, repeat)} if is_failed else set()
    return rows, failed


def test_name_that_the_prompt_gives_and_the_environment_lacks(diagnose: Diagnose) -> None:
    rows, failed = queried("amount", "amount")
    group = diagnose(rows).group(failed)
    assert (group.label.value, group.rung) == ("TI", "verifier")
    assert "`amount`" in group.text


def test_name_that_the_model_takes_from_the_question_is_its_own(diagnose: Diagnose) -> None:
    rows, _ = queried("amount", "total_due")
    assert all("the prompt gives" not in group.name for group in diagnose(rows).groups)


def test_answer_that_is_mentioned_late_and_decided_against_blames_no_end(diagnose: Diagnose) -> None:
    rows, lost = late(300)
    for row in rows:
        if (row["_ng_task_index"], row["_ng_rollout_index"]) in lost:
            text = row["response"]["output"][0]["content"][0]
            text["text"] += " No: on second thoughts that was another volume," + " and I went back" * 20 + ", so it is in the cellar."
    assert all("beginning" not in group.text for group in diagnose(rows).groups)


@pytest.mark.parametrize(
    ("name", "error", "prompt"),
    [
        ("ledger", "No such file or directory: 'ledger'", "Write the loans to `ledger`."),
        ("loans", "NameError: name 'loans' is not defined", "def count(loans, hall): ..."),
        ("command", "sh: lend: command not found", 'Answer with {"command": "..."}.'),
    ],
)
def test_name_that_the_model_should_have_made_is_its_own(diagnose: Diagnose, name: str, error: str, prompt: str) -> None:
    rows = [
        make_row(task, repeat, float(task % 2), [f"I used {name} {task}."], prompt=f"{prompt} {task}.", log=None if task % 2 else error)
        for task, repeat in grid(12, 4)
    ]
    assert all("the prompt gives" not in group.name for group in diagnose(rows).groups)
