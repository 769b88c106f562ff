"""Rung 0: are the rows grouped as they were run?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from blade.report import first_page
from tests.diagnose.builders import STREETS, desk, quiz, quiz_row, rewards
from tests.diagnose.diagnosed import Diagnose, each
from tests.diagnose.rows import Row, grid, keys_of, make_row, struck


def shuffled_index(n_prompts: int, n_repeats: int) -> list[Row]:
    """A quiz whose rows were numbered by position: each index holds as many prompts as there are repeats."""
    listed = []
    for position in range(n_prompts * n_repeats):
        prompt, repeat = position % n_prompts, position // n_prompts
        gold = prompt * 13 + 41
        # the same wrong answer each time, or another one
        answer = gold + (5 if prompt < 3 else 7 + repeat if prompt < 5 else 0)
        row = quiz_row(prompt, repeat, float(answer == gold), str(answer), str(gold), hall=f"hall {prompt}")
        row["_ng_task_index"], row["_ng_rollout_index"] = position // n_repeats, position % n_repeats
        listed.append(row)
    return listed


def test_index_that_holds_three_prompts(diagnose: Diagnose) -> None:
    """Row 5 of "why a new core": said before all else; causes, buckets and tries are by prompt, and the score stays as it is."""
    rows = [{**row, "task_id": f"quiz-part{row['_ng_task_index'] % 3}-{row['_ng_task_index']}"} for row in shuffled_index(12, 3)]
    run = diagnose(rows)
    assert [(entry.label, entry.rows) for entry in run.alarms] == [("DA", 36)]
    assert run.trust[0] is run.alarms[0]
    assert "12 of 12 indices mix up to 3 different prompts" in run.alarms[0].text
    same = keys_of(row for row in rows if row["hall"] in ("hall 0", "hall 1", "hall 2"))
    other = keys_of(row for row in rows if row["hall"] in ("hall 3", "hall 4"))
    group = run.group(same | other)
    assert f"{len(same)} in tasks that never pass and whose repeats mostly agree" in group.text
    assert f"{len(other)} in tasks that pass sometimes or whose repeats differ" in group.text
    assert run.score == pytest.approx(sum(row["reward"] for row in rows) / len(rows))
    (buckets,) = run.report.buckets
    assert (len(buckets.always), len(buckets.sometimes), len(buckets.never)) == (7, 0, 5)
    tries = {(one.name, one.k): (one.slice, one.value, one.n) for one in run.report.measures if one.name in ("solved", "pass_at_k", "icc")}
    assert tries == {
        ("solved", None): ("by prompt", pytest.approx(7 / 12), 12),
        **{("pass_at_k", k): ("by prompt", pytest.approx(7 / 12), 12) for k in (1, 2, 3)},
    }
    assert not [piece for piece in run.report.slices if "task id" in piece.field]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_interval_of_the_headline_is_over_the_tasks_by_prompt(diagnose: Diagnose, is_shuffled: bool) -> None:
    run = diagnose(shuffled_index(12, 3) if is_shuffled else quiz(12, 3).values())
    name, words = ("pass_at_k", "by prompt ") if is_shuffled else ("pass_at_1", "")
    score = next(one for one in run.report.measures if one.name == name and one.k in (None, 1))
    (index,) = [one for one in run.report.measures if one.name == "pass_at_1"]
    assert ((score.low, score.high) != (index.low, index.high)) == is_shuffled
    said = " ".join(first_page.render(run.report).split())
    assert f" rollouts, 95% CI {words}{score.low:.1%} to {score.high:.1%}); 12 tasks, 3 tries each" in said


def simulated_users() -> Iterator[Row]:
    """A simulated user words every request anew; the gold is the task's."""
    for (task, repeat), reward in rewards(12, 4, 0.6).items():
        gold = str(task * 13 + 41)
        prompt = f"Hello, visitor {task * 31 + repeat * 17} here. How much did branch {task} lend?"
        yield quiz_row(task, repeat, reward, gold if reward else str(task * 13 + 42 + repeat), gold, prompt=prompt)


def empty_prompts() -> list[Row]:
    rows = shuffled_index(12, 3)
    for row in rows:
        row["responses_create_params"]["input"][0]["content"] = ""
    return rows


def structured_golds() -> Iterator[Row]:
    """The request is one of ten forms; what is asked lies in the attached ledger, and so does the gold."""
    for task in range(40):
        gold = {"shelves": [task, task + 1], "hall": task % 3}
        text = f"Hall {task % 3} holds shelves {task} and {task + 1}." + " Counted twice." * (task % 4)
        yield make_row(task, 0, float(task % 3 > 0), [text], prompt=f"Fill in form {task % 10}.", expected_output=gold)


def irregular() -> Iterator[Row]:
    """Every row has its own index, and some questions are asked more often than others: a log of visitors, no repeats."""
    asked = [question for question in range(12) for _ in range(1 + (question * 5) % 7)]
    for index, question in enumerate(asked):
        gold = str(question * 13 + 41)
        answer = gold if index % 3 else str(question * 13 + 50 + index)
        yield {**quiz_row(question, 0, float(index % 3 > 0), answer, gold), "_ng_task_index": index}


def test_missing_rows_are_a_warning(diagnose: Diagnose) -> None:
    whole = quiz(12, 4)
    inputs = [{key: row[key] for key in row if key not in ("response", "reward")} for row in whole.values()]
    lost = {(2, 1), (5, 3), (7, 0), (7, 2), (9, 1), (11, 3)}
    run = diagnose([row for key, row in whole.items() if key not in lost], inputs)
    assert run.alarms == []
    assert any(entry.level == "warning" and "6 of 48" in entry.text for entry in run.trust), run.said


OWNERS = "Abel Brook Corin Dara Edda Fenn Greta Hollis Iven Jorun Kaia Lorne".split()


def dialogues(shift: int) -> Iterator[Row]:
    """Each errand names an owner, a street and a number; the clerk talks of those of the errand `shift` further."""
    for (task, repeat), reward in rewards(12, 2, 0.5).items():
        spoken = (task + shift) % 12
        owner, street, number = OWNERS[spoken], STREETS[spoken % 8], f"K-{4000 + spoken}"
        acts = [
            ("find_parcel", {"owner": owner}, f"{number} is held for {owner}."),
            ("redirect_parcel", {"number": number, "street": street}, f"{number} goes to {street}."),
            f"{owner}'s parcel {number} goes to {street}." + " Anything else?" * (repeat + task % 3),
        ]
        prompt = f"My name is {OWNERS[task]}. Please send parcel K-{4000 + task} on to {STREETS[task % 8]}, not to my old flat."
        yield make_row(task, repeat, reward, acts, prompt=prompt, tools=("find_parcel",))


def nested(n_prompts: tuple[int, ...], n_repeats: int = 3) -> Iterator[Row]:
    """A quiz whose index is a branch: each holds some questions of its own, every one asked equally often."""
    for index, n in enumerate(n_prompts):
        for place in range(n * n_repeats):
            question, number = place // n_repeats, sum(n_prompts[:index]) + place // n_repeats
            gold = number * 13 + 41
            passes = number % 3 > 0
            prompt = f"How many volumes of kind {question} did branch {index} lend? Answer in \\boxed{{}}."
            answer = str(gold if passes else gold + 5)
            yield quiz_row(index, place, float(passes), answer, str(gold), prompt=prompt)


def test_index_that_holds_whole_prompts(diagnose: Diagnose) -> None:
    """Branches with two to five questions: rates by branch would mix always and never into sometimes."""
    rows = list(nested((2, 3, 5, 4, 2, 3, 5, 4)))
    run = diagnose(rows)
    assert [(entry.label, run.keys(entry)) for entry in run.alarms] == [("DA", keys_of(rows))]
    assert "28 tasks with 3 rollouts each" in run.alarms[0].text
    assert "8 of 8 indices" in run.alarms[0].text
    (buckets,) = run.report.buckets
    assert (len(buckets.always), len(buckets.sometimes), len(buckets.never)) == (18, 0, 10)


def essays(copied: bool, timed: bool, same_times: bool) -> Iterator[Row]:
    """A run in which repeat 1 of each task may be a copy of repeat 0, with or without its times."""
    for task, repeat in grid(12, 4):
        source = 0 if copied and repeat == 1 else repeat
        text = (
            f"Branch {task} lent {task * 13 + source * 5} volumes. I looked at {source + 2} ledgers, began with the "
            f"{'oldest' if source % 2 else 'newest'} one and went on to hall {source * 3 + task % 7}; of the returns "
            f"{task * 3 + source * 11} came late. " + "The rest is in order. " * (source + task % 3)
        )
        moment = source if same_times else repeat
        times = {"started_at": 1_700_000_000.25 + 97.5 * task + 7.125 * moment, "seconds": 3.5 + 0.31 * moment + task}
        yield make_row(task, repeat, float(source % 2), [text], **(times if timed else {}))


@pytest.mark.parametrize(("n_copied", "level"), [(12, "alarm"), (6, "alarm"), (4, "warning"), (1, "warning")])
def test_many_copies_are_an_alarm_and_few_a_warning(diagnose: Diagnose, n_copied: int, level: str) -> None:
    """More than one row in ten decides: 4 of 48 rows leave the score usable."""
    rows = list(essays(copied=False, timed=True, same_times=True))
    copies = essays(copied=True, timed=True, same_times=True)
    mixed = [copy if copy["_ng_task_index"] < n_copied else row for row, copy in zip(rows, copies, strict=True)]
    run = diagnose(mixed)
    assert [(entry.level, run.keys(entry)) for entry in run.trust if entry.label == "DA"] == [
        (level, {(task, 1) for task in range(n_copied)})
    ]


def short_answers() -> Iterator[Row]:
    for task, repeat in grid(15, 4):
        gold, answer = "yes" if task % 3 else "no", "yes" if (task + repeat // 2) % 3 else "no"
        yield make_row(task, repeat, float(answer == gold), [answer], seconds=1.0, expected_answer=gold)


def answered(shift: int) -> Iterator[Row]:
    """A quiz whose golds stand `shift` tasks further down than they should."""
    for task, repeat in grid(12, 3):
        value, gold = task * 13 + 41, (task + shift) % 12 * 13 + 41
        answer = value if (task + repeat) % 5 else value + 5
        yield quiz_row(task, repeat, float(answer == gold), str(answer), str(gold))


def letters() -> Iterator[Row]:
    """Nearly everything is wrong, and every wrong answer is some other task's gold: there are only four to choose from."""
    for task, repeat in grid(12, 3):
        answer = "ABCD"[(task + 1 + repeat) % 4]
        yield quiz_row(task, repeat, float(answer == "ABCD"[task % 4]), answer, "ABCD"[task % 4])


@struck
def slipped(first: int, last: int, step: int = 1, n_tasks: int = 40) -> Iterator[tuple[Row, bool]]:
    """Every answer is right, and some tasks were given the gold of a task beside them."""
    for task, repeat in grid(n_tasks, 2):
        is_slipped = first <= task <= last
        answer, gold = task * 37 + 5, (task + step if is_slipped else task) * 37 + 5
        yield quiz_row(task, repeat, float(answer == gold), str(answer), str(gold)), is_slipped and first < task < last


@pytest.mark.parametrize("step", [-1, 1])
def test_golds_that_slipped_by_one_in_part_of_the_run(diagnose: Diagnose, step: int) -> None:
    rows, wrong = slipped(12, 28, step)
    whole = diagnose(answered(shift=1))
    assert [entry.label for entry in whole.alarms] == [whole.groups[0].label] == ["DA"]
    run = diagnose(rows)
    (group,) = [group for group in run.groups if group.label.value == "DA"]
    assert wrong <= run.keys(group) <= run.failing
    assert "neighbouring" in group.name


@each({
    "repeats that were numbered as tasks": (
        lambda: [{**row, "_ng_task_index": i, "_ng_rollout_index": 0} for i, row in enumerate(quiz(10, 4).values())],
        40, "10 different prompts",
    ),
    "dialogues that name the entities of other tasks": (lambda: dialogues(shift=5), 24, ""),
})  # fmt: skip
def test_the_whole_run_is_in_alarm(diagnose: Diagnose, case: tuple[Callable[[], Any], int, str]) -> None:
    make, n, words = case
    alarms = diagnose(make()).alarms
    assert [(entry.label, entry.rows, words in entry.text) for entry in alarms] == [("DA", n, True)]


SILENT: dict[str, Callable[[], Any]] = {
    "desk": lambda: desk().values(), "one prompt to an index": lambda: quiz(12, 3).values(), "simulated users": simulated_users,
    "empty prompts": empty_prompts, "structured golds": structured_golds, "irregular prompts": irregular,
    "dialogues of their own": lambda: dialogues(shift=0),
    "an index as regular as its prompts": lambda: nested((2,) * 8),  # two wordings of every question: the index may well be the task
    "copies without times": lambda: essays(True, False, False), "copies at other times": lambda: essays(True, True, False),
    "equal times alone": lambda: essays(False, True, True),
    "a fraction that describes the task": lambda: [
        {**row, "depth": 0.137 * row["_ng_task_index"] + 0.03} for row in essays(copied=True, timed=False, same_times=False)
    ],
    "equal short answers": short_answers, "golds of their own": lambda: answered(shift=0), "golds that tasks share": letters,
    "wrong answers beside right golds": lambda: [
        quiz_row(task, repeat, float(task % 3 > 0), str(task * 37 + (5 if task % 3 else 18 + repeat)), str(task * 37 + 5))
        for task, repeat in grid(40, 2)
    ],
    "two golds that alternate": lambda: [
        quiz_row(task, repeat, float(task % 2), "yes", "yes" if task % 2 else "no") for task, repeat in grid(40, 2)
    ],
}  # fmt: skip


@each(SILENT)
def test_what_is_no_fault_of_the_data(diagnose: Diagnose, case: Callable[[], Any]) -> None:
    assert [entry.text for entry in diagnose(case()).trust if entry.label == "DA"] == []
