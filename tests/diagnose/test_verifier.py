"""Rung 5: does the grade follow from the answer?"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.diagnose.builders import desk_row, quiz, quiz_row, rewards
from tests.diagnose.diagnosed import Diagnose, each
from tests.diagnose.rows import Key, Made, Row, failing, grid, key_of, keys_of, make_row, struck

WRONGED = {(1, 0), (4, 2), (6, 1), (9, 3)}


SPELLINGS = (
    "1250|1,250  1250|1250 volumes  1250|1250.  1250|1250.0  1250|x = 1250  1250|1{,}250  [1, 2, 3]|[1,2,3]  {1, 2, 3}|{3, 1, 2}  "
    r"2024-05-01|1 May 2024  \left(2, 3\right)|(2, 3)  \frac{3}{4}|0.75"
)


@pytest.mark.parametrize("pair", SPELLINGS.split("  "))
def test_answer_equal_to_the_gold_but_for_its_spelling(diagnose: Diagnose, pair: str) -> None:
    """Four failures give the gold in another spelling; all other answers agree or differ as the reward says."""
    gold, answer = pair.split("|")
    rows = quiz(12, 4)
    for task, repeat in WRONGED:
        for other in range(4):
            is_wronged = other == repeat
            rows[task, other] = quiz_row(task, other, float(not is_wronged), answer if is_wronged else gold, gold)
    diagnose(rows.values()).shows(WRONGED, "verifier TI")


def answers(of: Callable[[int, int, float, int], tuple[str, str]], **fields: Any) -> list[Row]:
    """A quiz of 48 rows whose answers and golds come of task, repeat, reward and place."""
    made = [(key, reward, *of(*key, reward, place)) for place, (key, reward) in enumerate(rewards(12, 4, 0.6).items())]
    return [quiz_row(*key, reward, answer, gold, **fields) for key, reward, answer, gold in made]


def literal(task: int, repeat: int, reward: float, place: int) -> tuple[str, str]:
    """`'North hall'` and `'north  hall'` are two literals, however alike they read."""
    gold = f"'North hall {task}'"
    return gold if reward else f"'north  hall {task}'" if repeat % 2 else gold.upper(), gold


@struck
def spelled(gold_of: Callable[[int], str], other: Callable[[str], str]) -> Iterator[tuple[Row, bool]]:
    """A quiz in which a quarter of all rows give the gold in another spelling, and never pass."""
    for place, (task, repeat) in enumerate(grid(16, 4)):
        gold, passes, is_odd = gold_of(task), place % 7 > 0, place % 4 == task % 4
        answer = other(gold) if is_odd else gold if passes else gold_of(task + 30 + repeat)
        yield quiz_row(task, repeat, float(passes and not is_odd), answer, gold), is_odd


def nothing_passes(answer: Callable[[int], str]) -> Made:
    rows = [quiz_row(*key, 0.0, answer(key[0] * 13 + 41), str(key[0] * 13 + 41)) for key in grid(12, 4)]
    return rows, keys_of(rows)


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


@struck
def about(document: Callable[[int], str], is_hard: bool = True) -> Iterator[tuple[Row, bool]]:
    """A quiz about a document in the prompt, in some tasks another one; those mostly fail."""
    for place, (task, repeat) in enumerate(grid(16, 4)):
        is_odd = task % 4 == 1
        gold = str(task * 13 + 41)
        fails = place % 21 > 0 if is_odd and is_hard else place % 5 == 0
        held = document(task) if is_odd else f"Branch {task} lends from {task % 9 + 1} halls."
        prompt = f"How many volumes did branch {task} lend?\n<document>{held}</document>\nAnswer in \\boxed{{}}."
        answer = str(task * 13 + 60 + repeat) if fails else gold
        yield quiz_row(task, repeat, float(not fails), answer, gold, prompt=prompt), is_odd and fails


@each({
    "little": lambda: about(lambda task: f"Branch {task}."), "costs nothing": lambda: about(lambda task: "", is_hard=False),
})  # fmt: skip
def test_block_of_the_prompt_that_is_no_doubt(diagnose: Diagnose, case: Callable[[], Made]) -> None:
    assert "<document>" not in diagnose(case()[0]).said


# ---- The same answer graded 0 and 1 --------------------------------------------------------------


def both_ways(answer: Callable[[int, int], str], has_gold: bool) -> Made:
    """Row 8 of "why a new core": of four tasks one repeat fails with the answer that passes in another."""
    rows = {}
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        rows[task, repeat] = quiz_row(task, repeat, reward, answer(task, 0) if reward else answer(task, 1 + repeat), answer(task, 0))
    for task, repeat in WRONGED:
        for other, reward in ((repeat, 0.0), ((repeat + 1) % 4, 1.0)):
            rows[task, other] = quiz_row(task, other, reward, answer(task, 0), answer(task, 0))
    for row in rows.values() if not has_gold else ():
        del row["expected_answer"]
    return rows.values(), WRONGED


COLOURS = "amber cobalt ivory jade ochre russet teal umber azure coral mauve sable".split()


def wrong_both_ways() -> Made:
    """Another value than the expected one passes once, and fails in another repeat of the task."""
    rows = quiz(12, 4, rate=0.6)
    odd = {(2, 1), (7, 3)}
    for task, repeat in odd:
        for other, reward in ((repeat, 0.0), (repeat - 1, 1.0)):
            rows[task, other] = quiz_row(task, other, reward, str(task * 13 + 90), str(task * 13 + 41))
    return rows.values(), odd


@struck
def split_verdicts(says: Callable[[int, int], str], gold: Callable[[int], str]) -> Iterator[tuple[Row, bool]]:
    """Every task has one verdict, but for two whose last repeat fails all the same."""
    for task, repeat in grid(16, 4):
        is_odd = task in (3, 9) and repeat == 3
        passes = task % 4 > 0 and not is_odd
        text = says(task, repeat) if passes or is_odd else f"I would look in hall {task * 5 + repeat}, by the stairs."
        yield make_row(task, repeat, float(passes), [text], expected_answer=gold(task)), is_odd


def in_other_words(task: int, repeat: int) -> str:
    """A judge takes other words for right too, so that equality is not what is graded."""
    return quire(task) if task % 2 or repeat == 3 else f"The {repeat}th of the {task} alder leaves."


def quire(task: int) -> str:
    return f"Quire {chr(97 + task)}lder"


def lenient(is_other_type: bool) -> list[Row]:
    rows = quiz(12, 4)
    for task, repeat in ((2, 1), (8, 0)):
        answer = "the eastern annex" if is_other_type else str(task * 13 + 999)
        rows[task, repeat] = quiz_row(task, repeat, 1.0, answer, str(task * 13 + 41))
    return list(rows.values())


def test_pass_with_another_closed_value_is_a_warning(diagnose: Diagnose) -> None:
    assert diagnose(lenient(is_other_type=False)).levels({(2, 1), (8, 0)}) == ["warning"]
    run = diagnose(lenient(is_other_type=True))
    assert run.of_rung("verifier") == []
    assert [entry.text for entry in run.trust if entry.label == "TI" or "verifier" in entry.text.lower()] == []


def idle(expected: Sequence[object] | None, idle_keys: set[Key]) -> Iterator[Row]:
    """A desk where some passing rollouts make no call at all, though the gold may demand one."""
    for (task, repeat), reward in rewards(12, 4, 0.7).items():
        is_free = task in (3, 7) and expected is not None
        due, made = (("redirect_parcel", {"number": number}, "Moved.") for number in (task, task if reward else task + 20 + repeat))
        acts = ["All is settled already."] if (task, repeat) in idle_keys else ["Nothing to do."] if is_free else [made, "Moved it."]
        yield desk_row(task, repeat, 1.0 if (task, repeat) in idle_keys else reward, acts, due=expected if is_free else [due])


@pytest.mark.parametrize(("expected", "levels"), [(None, ["warning"]), ([], [])])
def test_pass_without_acts_is_a_doubt_where_acts_are_due(diagnose: Diagnose, expected: Sequence[object] | None, levels: list[str]) -> None:
    assert diagnose(idle(expected, {(3, 0), (7, 1)})).levels({(3, 0), (7, 1)}) == levels


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


@pytest.mark.parametrize("around", ["{}", "This settles it:\n{}\nPlease check the street."])
def test_fenced_answers_that_the_checker_cannot_decode(diagnose: Diagnose, around: str) -> None:
    """Row 1 of "why a new core": scored again, not run again."""
    rows, wrapped, matching = commands(around.format(FENCE))
    run = diagnose(rows)
    group = run.shows(wrapped, "verifier TI alarm", "fence")
    assert re.search(rf"\b{len(matching)}\b", group.text)  # how many would match without the fence
    assert "IR" not in {group.label for group in run.groups} | {entry.label for entry in run.trust}
    assert "rerun" not in group.fix.lower().replace("no rerun", "")


def test_fenced_answers_none_of_which_would_match_are_wrong_answers(diagnose: Diagnose) -> None:
    """Every fenced answer is another call than expected, and the checker says so: the fence costs nothing."""
    rows, wrapped, _ = commands(FENCE, is_right=False)
    for row in rows:
        row["error"] = row["error"] and "another call than expected"
    run = diagnose(rows)
    assert not [entry for entry in run.alarms if entry.label == "TI"]
    assert "TI" not in run.labels(wrapped)


# ---- Checks and logs against the reward ----------------------------------------------------------


def checked(contradicted: set[Key]) -> Iterator[Row]:
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        place = task * 4 + repeat
        good = bool(reward) or (task, repeat) in contradicted
        weighed = good or place % 2 == 0
        checks = [{"name": "weighed", "passed": weighed}, {"name": "labelled", "passed": good or not weighed}]
        yield desk_row(task, repeat, 0.0 if (task, repeat) in contradicted else reward, checks=checks)


CONTRADICTED = set(sorted(key for key, reward in rewards(12, 4, 0.6).items() if not reward)[::5])


@struck
def opposite(field: str) -> Iterator[tuple[Row, bool]]:
    """`resolved: true`, or a log that ends in `all 9 tests passed`, beside a reward of 0; or a field that names no success."""
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        is_wronged, place = (task, repeat) in WRONGED, task * 4 + repeat
        good = bool(reward) or is_wronged
        lines = [f"unit {task * 7 + repeat}.{n} ran in {n + repeat} ms" for n in range(9)]
        log = "\n".join([*lines, "all 9 tests passed" if good else f"{1 + place % 3} of 9 tests failed"])
        yield desk_row(task, repeat, 0.0 if is_wronged else reward, **{field: log if field == "test_log" else good}), is_wronged


def failing_check(message: str) -> Iterator[Row]:
    """Nothing passes: one check fails in every row, with a message; two others pass now and then."""
    for task, repeat in grid(12, 4):
        place = task * 4 + repeat
        met = (("weighed", place % 5 > 0, ""), ("labelled", place % 7 > 0, ""), ("shelf_free", False, message))
        yield desk_row(task, repeat, 0.0, checks=[{"name": name, "passed": passed, "message": text} for name, passed, text in met])


@pytest.mark.parametrize(
    ("message", "is_doubt"), [("ImportError: no module named shelf_probe", True), ("the shelf still holds the old parcel", False)]
)
def test_check_that_fails_for_all_is_a_doubt_where_it_errors(diagnose: Diagnose, message: str, is_doubt: bool) -> None:
    run = diagnose(failing_check(message))
    assert any("shelf_free" in entry.text for entry in run.trust) == is_doubt
    assert "TI" not in run.labels(run.failing)


def ledgers(is_told: bool) -> Iterator[Row]:
    """The clerk writes a ledger under a name of its own; the test opens another one, which the prompt may give."""
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
        yield make_row(task, repeat, float(right), acts, prompt=prompt, tools=("write_file",), test_log=log)


# ---- Judges that are cut off, values in another spelling, options in another order -----------------


@struck
def judged(is_list: bool, is_to_blame: bool) -> Iterator[tuple[Row, bool]]:
    """Notes that a judge model grades; in every third row it was stopped by a limit, and the row fails, or fares as all others."""
    for place, (task, repeat) in enumerate(grid(20, 3)):
        is_cut = place % 3 == 0
        reward = 0.0 if is_cut and is_to_blame else float(place % 5 > 0)
        reply = {
            "output": [{"type": "message", "content": [{"type": "output_text", "text": f"I read note {place}, and then"}]}],
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        }
        record = {"response": reply, "mark": None if is_cut else "fair"}
        note = f"Branch {task} is closed on the {repeat + 3}rd, says ledger {place * 7}." + " It is stamped." * (place % 4)
        yield make_row(task, repeat, reward, [note], opinions=[record] if is_list else record), is_cut and not reward


@struck
def records(day: str) -> Iterator[tuple[Row, bool]]:
    """Forms that are stored with a day; on every third the day is written as given here."""
    for place, (task, repeat) in enumerate(grid(20, 3)):
        due = {"owner": f"N. {task * 7}", "day": f"2031-05-{task + 10}", "halls": task % 4 + 1}
        is_spelt = place % 3 == 0
        kept = {**due, "day": day.format(task + 10)} if is_spelt else due
        note = f"Form {place} is filed." + " It is stamped." * (place % 4)
        yield make_row(task, repeat, float(not is_spelt), [note], target=due, stored=kept), is_spelt


@struck
def options(is_shifted: bool) -> Iterator[tuple[Row, bool]]:
    """Questions with four options; in the last third of the tasks the key has the letter of another option."""
    for place, (task, repeat) in enumerate(grid(24, 3)):
        volumes = [task * 5 + step for step in (3, 11, 17, 29)]
        right = (task * 7) % 4
        is_off = is_shifted and task % 3 == 2
        key = "ABCD"[(right + 1) % 4] if is_off else "ABCD"[right]
        picked = right if place % 5 else (right + 2) % 4
        reward = float("ABCD"[picked] == key)
        listed = "\n".join(f"{letter}) {volume} volumes" for letter, volume in zip("ABCD", volumes, strict=True))
        says = f"I count them in ledger {place}." + " It adds up." * (place % 3) + f"\nAnswer: {'ABCD'[picked]}"
        fields = {"key": key, "source": {"true_option": f"{volumes[right]} volumes"}}
        yield make_row(task, repeat, reward, [says], prompt=f"How many did branch {task} lend?\n{listed}", **fields), is_off and picked == right


def shared_counts() -> Iterator[Row]:
    """The size of a result agrees in passes and in most failures: it is not what is graded, and the run is healthy."""
    for place, (task, repeat) in enumerate(grid(30, 3)):
        fails = place % 4 == 0
        n_due = 4 if task % 7 == 3 else 1
        n_given = 2 if fails and place % 3 == 0 else n_due
        note = f"select {place * 3} from halls" + " order by 1" * (place % 3)
        outcome = {"outcome": "mismatch" if fails else "ok", "n_pred": n_given, "n_gold": n_due}
        yield make_row(task, repeat, float(not fails), [note], execution=outcome)


# ---- Signs that change no meaning, ends that nobody reads, names that are not there ----------------


@struck
def declined(sign: str, rejected: bool) -> Iterator[tuple[Row, bool]]:
    """Every text declines; some spell the apostrophe with another sign, which the check may not know."""
    for task, repeat in grid(12, 4):
        is_odd = (task + repeat) % 3 == 0
        text = f"I can{sign if is_odd else chr(39)}t help with this request, number {task * 7 + repeat}."
        yield make_row(task, repeat, float(not (is_odd and rejected)), [text]), is_odd


@struck
def late(limit: int, n_tasks: int = 30) -> Iterator[tuple[Row, bool]]:
    """Every text gives the right place, at once or after a long walk; what stands beyond the limit is not graded."""
    for task, repeat in grid(n_tasks, 2):
        gold = f"shelf {task * 31 + 7}"
        is_long = (task + repeat) % 2 == 0
        text = ("I went along the corridor and read the signs. " * 15 if is_long else "") + f"You find it on {gold}."
        reward = float(text.index(gold) <= limit)
        yield make_row(task, repeat, reward, [text], prompt=f"Where is volume {task}?", expected_answer=gold), not reward


def edited(made: Made, change: Callable[[int, str], str]) -> Made:
    """A run in which the texts of the struck rows are others."""
    for row in made[0]:
        if key_of(row) in made[1]:
            text = row["response"]["output"][0]["content"][0]
            text["text"] = change(row["_ng_task_index"], text["text"])
    return made


@struck
def queried(name: str, shown: str) -> Iterator[tuple[Row, bool]]:
    """Some queries end in an error that there is no such column; the prompt lists the columns."""
    for task, repeat in grid(12, 4):
        is_failed = task % 2 == 0
        yield make_row(
            task, repeat, float(not is_failed), [f"SELECT {name} FROM loans WHERE branch = {task}"],
            prompt=f"CREATE TABLE loans (branch INTEGER, {shown} REAL, hall TEXT);\nWhat is the total {name} of branch {task}?",
            exec_error=f"no such column: {name}" if is_failed else None,
        ), is_failed  # fmt: skip


@each({
    "name": (lambda: queried("amount", "amount"), "an error says that there is no `amount`, which its prompt gives"),
    "sign": (lambda: declined("\u2019", rejected=True), 'its text has \u2019: "I can\u2019t help with this request, number 0."'),
})  # fmt: skip
def test_sentence_of_a_task_says_what_its_row_shows(diagnose: Diagnose, case: tuple[Callable[[], Made], str]) -> None:
    make, words = case
    assert words in next(entry.mechanism for entry in diagnose(make()[0]).report.attributions if entry.task == "0")


# ---- One line for each claim -----------------------------------------------------------------------

PROVED = {
    "thousands": (lambda: spelled(lambda task: str(task * 1301 + 4001), lambda gold: f"{int(gold):,}"), "verifier TI alarm"),
    "units": (lambda: spelled(lambda task: str(task * 13 + 41), lambda gold: f"{gold} volumes"), "verifier TI alarm"),
    "dates": (
        lambda: spelled(lambda task: f"2024-05-{task % 28 + 1:02d}", lambda gold: f"{int(gold[-2:])} May 2024"), "verifier TI alarm",
    ),
    "all zero, and the gold to the letter": (lambda: nothing_passes(str), "verifier TI alarm"),
    "empty block": (lambda: about(lambda task: ""), "verifier TI alarm", "`<document>`"),
    "block of blanks": (lambda: about(lambda task: "\n  \n"), "verifier TI alarm", "`<document>`"),
    "one answer, both grades": (lambda: both_ways(lambda task, step: COLOURS[(task + step) % 12], True), "verifier TI"),
    "the same without a gold": (lambda: both_ways(lambda task, step: str(task * 13 + 41 + 18 * (step > 0) + step), False), "verifier TI"),
    "a wrong answer, both grades": (
        wrong_both_ways, "verifier TI warning", "same answer graded 0 and 1", "It is not the expected answer, so either these passes or",
        "Review the expected answers of these tasks",
    ),
    "a reply that is the gold, both grades": (lambda: split_verdicts(in_other_words, quire), "verifier TI", "same answer graded 0 and 1"),
    "a value that the grader read instead": (lambda: (extracted(is_said=True), WRONGED), "verifier TI", "`extracted_answer`"),
    "all checks pass, reward 0": (lambda: (checked(CONTRADICTED), CONTRADICTED), "verifier TI"),
    "resolved, reward 0": (lambda: opposite("resolved"), "verifier TI"),
    "log of success, reward 0": (lambda: opposite("test_log"), "verifier TI"),
    "judge in a list that a limit stops": (lambda: judged(True, True), "verifier TI alarm", "opinions"),
    "judge that a limit stops": (lambda: judged(False, True), "verifier TI alarm", "opinions"),
    "day with slashes": (lambda: records("05/{}/2031"), "verifier TI alarm", "another spelling"),
    "day with points": (lambda: records("{}.05.2031"), "verifier TI alarm", "another spelling"),
    "day in words": (lambda: records("May {}, 2031"), "verifier TI alarm", "another spelling"),
    "another day with slashes": (lambda: records("06/{}/2031"), "verdicts BI"),
    "another day in words": (lambda: records("May {}, 2032"), "verdicts BI"),
    "options in another order than the key": (lambda: options(True), "verifier TI alarm", "source.true_option"),
    "sign that the check does not know": (lambda: declined("\u2019", rejected=True), "verifier TI", "\u2019"),
    "answer beyond what is graded": (lambda: late(300), "verifier TI", "beginning"),
    "path that the test needs and the prompt never gives": (lambda: failing(ledgers(False)), "verifier TI alarm", "ledger.csv"),
    "name that the prompt gives": (lambda: queried("amount", "amount"), "verifier TI", "`amount`"),
}  # fmt: skip
INNOCENT = {
    "other numbers": lambda: quiz(12, 4).values(),
    "literals": lambda: answers(literal),
    "other decimals": lambda: spelled(lambda task: f"{task * 3 + 4}.50", lambda gold: gold.removesuffix("0")),
    "all zero": lambda: quiz(12, 4, rate=0.0).values(),
    "all zero, and like the gold": lambda: nothing_passes(lambda gold: f"{gold}.0 volumes"),
    "a wrong answer that is read otherwise": lambda: extracted(is_said=False),
    "different answers graded both ways": lambda: answers(lambda task, repeat, reward, place: (str(task * 50 + repeat), "")),
    "the same short message beside a gold": lambda: split_verdicts(lambda task, repeat: "Done.", lambda task: f"ledger {task * 7} is closed"),
    "checks that agree with the reward": lambda: checked(set()),
    "a field that names no success": lambda: opposite("terminated"),
    "a judge that is stopped after its verdict": lambda: judged(is_list=True, is_to_blame=False),
    "options in the order of the key": lambda: options(False),
    "counts that agree by chance": shared_counts,
    "other words with the sign": lambda: edited(
        declined("\u2019", rejected=True), lambda task, text: f"Here\u2019s how one does it: step {task}."
    ),
    "a path that the prompt gives": lambda: ledgers(True),
    "a name of the model's own": lambda: queried("amount", "total_due"),
    "an answer that is decided against": lambda: edited(
        late(300), lambda task, text: f"{text} No: on second thoughts that was another volume," + " and I went back" * 20 + "."
    ),
}  # fmt: skip
