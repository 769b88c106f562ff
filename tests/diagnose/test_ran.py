"""Rungs 1 and 2: is behaviour recorded at all, and did the agent run?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.case_tables import cases
from tests.diagnose.builders import desk
from tests.diagnose.diagnosed import Diagnose, Diagnosed, told_of
from tests.diagnose.rows import Key, Made, Row, grid, make_row, struck

CRASH = "trolley: command not found"


def started(task: int, repeat: int, *last: str) -> str:
    """A log of an agent that starts: long, and another one in every row but for how it ends."""
    chance = random.Random(task * 31 + repeat)
    lines = [f"loaded rule {chance.randrange(10**6)} of binder {chance.randrange(90)}" for _ in range(8)]
    return "\n".join([f"desk {task} opened, clerk {repeat} on duty", *lines, *last])


def silent(task: int, repeat: int, reward: float = 0.0, **fields: object) -> Row:
    """A row without any output."""
    return make_row(task, repeat, reward, (), **fields)


def said_not_recorded(run: Diagnosed) -> bool:
    return any(entry.level == "note" and "record" in entry.text for entry in run.trust)


DOWN = {(task, task % 4) for task in range(12)} | {(task, (task + 1) % 4) for task in range(6)}


def with_logs(last: Callable[[int, int], list[str]], down: set[Key] = DOWN, rate: float = 0.75) -> Made:
    """A run whose rows all have a log, with some rows that have nothing but a log, which ends in lines of its own."""
    rows = []
    for key, row in desk(rate=rate).items():
        end = last(*key) if key in down else [f"clerk {key[1]} leaves"]
        rows.append({**(silent(*key) if key in down else row), "agent_log": started(*key, *end)})
    return rows, down


def with_faults(fault: Callable[[Key], str]) -> Made:
    return [silent(*key, fault=fault(key)) if key in DOWN else row for key, row in desk().items()], DOWN


def test_crash_line_at_the_end_of_a_log(diagnose: Diagnose) -> None:
    """Row 3 of "why a new core"."""
    group = diagnose(with_logs(lambda task, repeat: [CRASH])[0]).shows(DOWN, "ran IR alarm", CRASH)
    assert group.quote is not None
    assert CRASH in (group.quote.quote or "")
    assert (group.rows, group.passed_rows) == (18, 0)


def test_two_reasons_are_two_groups(diagnose: Diagnose) -> None:
    run = diagnose(with_faults(lambda key: "gateway gave up" if key[0] < 6 else "no desk was free")[0])
    run.shows({key for key in DOWN if key[0] < 6}, "ran IR", "gateway gave up")
    run.shows({key for key in DOWN if key[0] >= 6}, "ran IR", "no desk was free")


@struck
def without_tokens() -> Iterator[tuple[Row, bool]]:
    """No tokens and no time."""
    for (task, repeat), row in desk().items():
        is_down = (task, repeat) in DOWN
        tokens = {"input_tokens": 0, "output_tokens": 0} if is_down else {"input_tokens": 900 + 17 * task, "output_tokens": 120 + 31 * repeat}
        own = silent(task, repeat) if is_down else row
        own["response"]["usage"] = tokens
        yield {**own, "seconds": 0.01 if is_down else 20.5 + 1.7 * task + 3.3 * repeat}, is_down


def test_line_that_passing_rows_have_too_is_no_reason(diagnose: Diagnose) -> None:
    """The transcripts of these rows are missing, not the work: half of them pass."""
    rows, _ = with_logs(lambda task, repeat: [CRASH], rate=0.6)
    for place, row in enumerate(rows):
        row["reward"] = row["reward"] if row["response"]["output"] else float(place % 2)
    run = diagnose(rows)
    assert (run.of_rung("ran"), said_not_recorded(run), CRASH in run.said) == ([], True, False)


SEVERAL = ("clerk enters", "could not fetch trolley {n}: not found in hall 12 at 10:{m}", "doors close", "clerk leaves early")


def test_of_several_lines_the_one_that_reads_as_an_error_names_the_group(diagnose: Diagnose) -> None:
    """In the words of a row, its numbers included, not as a template."""
    rows, _ = with_logs(lambda task, repeat: [line.format(n=4000 + 17 * task + repeat, m=10 + 3 * task) for line in SEVERAL])
    group = diagnose(rows).shows(DOWN, "ran IR alarm")
    own = {f"could not fetch trolley {4000 + 17 * task + repeat}: not found" for task, repeat in DOWN}
    assert [line for line in own if line in group.name and line in group.text], group.name
    assert "<" not in group.name + group.text


@struck
def without_a_reason() -> Iterator[tuple[Row, bool]]:
    """One group, never split by a field about the task: the hall and the gold of the empty rows differ."""
    for key, row in desk().items():
        facts = {"hall": "north" if key[0] < 6 else "south", "expected_answer": f"street {key[0] % 3}"}
        yield {**(silent(*key) if key in DOWN else row), **facts}, key in DOWN


@pytest.mark.parametrize(("n_empty", "levels"), [(2, set()), (4, {"warning"})])
def test_a_few_empty_outputs_say_nothing_about_the_run(diagnose: Diagnose, n_empty: int, levels: set[str]) -> None:
    """Up to 5% of the rows are a group and no doubt about the score; 4 of 48 are one."""
    few = {(task * 3, task) for task in range(n_empty)}
    run = diagnose([silent(*key) if key in few else row for key, row in desk(rate=0.6).items()])
    run.shows(few, "ran IR")
    assert set(run.levels(few)) == levels


def test_empty_output_that_is_the_right_act(diagnose: Diagnose) -> None:
    """Where no call is due, silence passes: an empty output is a recording of that."""
    rows = []
    for task, repeat in grid(12, 4):
        right, wrong = ([("redirect_parcel", {"number": f"P-{number}"}, "Moved.")] for number in (task, task + 20 + repeat))
        passes = (task + repeat) % (4 if task < 6 else 3) > 0
        due, wrong = ([], right) if task < 6 else (right, wrong)
        rows.append(make_row(task, repeat, float(passes), due if passes else wrong, due=due))
    run = diagnose(rows)
    assert (run.of_rung("ran"), run.alarms) == ([], [])


@struck
def unpublished() -> Iterator[tuple[Row, bool]]:
    """No transcript at all, but tests and durations: 16 of 48 rows fail, 12 of them as they do not print the label."""
    for place, key in enumerate(grid(12, 4)):
        is_printed, is_weighed = place % 4 != 1, place % 6 != 3
        tests = [{"name": "prints_label", "passed": is_printed}, {"name": "weighs_parcel", "passed": is_weighed}]
        times = {"seconds": 31.5 + 2.25 * place, "test_seconds": 4.5 + 0.5 * (place % 11)}
        yield silent(*key, float(is_printed and is_weighed), tests=tests, **times), not is_printed


def test_transcripts_that_were_not_published(diagnose: Diagnose) -> None:
    """Row 2 of "why a new core": the diagnosis goes on from the tests."""
    rows, label = unpublished()
    run = diagnose(rows)
    assert said_not_recorded(run)
    assert (run.alarms, run.of_rung("ran", "cut", "environment", "verifier")) == ([], [])
    assert not [word for word in ("empty", "verifier") if word in run.said.lower()]
    assert "prints_label" in told_of(run.group(label))
    assert "weighs_parcel" in told_of(run.group(run.failing - label))


@pytest.mark.parametrize(
    ("fields", "label"), [({"seconds": 12.5}, "TI"), ({"tests": [{"name": "prints_label", "passed": False}]}, "IR")]
)
def test_time_or_tests_alone_do_not_make_rows_recorded(diagnose: Diagnose, fields: dict[str, object], label: str) -> None:
    rows = []
    for place, (key, row) in enumerate(desk().items()):
        own = {"seconds": 12.5 + place} if "seconds" in fields else fields
        passed = {"tests": [{"name": "prints_label", "passed": bool(row["reward"])}], "seconds": 12.5 + place}
        kept = {name: passed[name] for name in fields}
        rows.append(silent(*key, **own) if key in DOWN else {**row, **kept})
    run = diagnose(rows)
    assert not said_not_recorded(run)
    assert run.labels(DOWN) == {label}


@pytest.mark.parametrize(("field", "spent", "label"), cases(__file__, "work"))
def test_empty_after_as_much_work_as_an_answer_takes(diagnose: Diagnose, field: str, spent: int, label: str) -> None:
    """The model was at work, so a limit ended it; no time or little, what was given, dates and other numbers show no such thing."""
    rows = []
    for place, (key, row) in enumerate(desk().items()):
        amount = (spent if key in DOWN else max(spent, 9000)) + place
        name, _, inner = field.partition(".")
        rows.append({**(silent(*key) if key in DOWN else row), name: {inner: amount} if inner else amount})
    run = diagnose(rows)
    assert run.labels(DOWN) == {label}
    assert (field in told_of(run.group(DOWN))) == (label == "TI")


@pytest.mark.parametrize(("reason", "label"), [("max_output_tokens", "TI"), ("upstream_refused", "IR")])
def test_empty_output_that_a_limit_ended_did_run(diagnose: Diagnose, reason: str, label: str) -> None:
    response = {"incomplete_details": {"reason": reason}}
    rows = [silent(*key, response=response) if key in DOWN else row for key, row in desk().items()]
    assert diagnose(rows).labels(DOWN) == {label}


PROVED = {
    "volatile numbers": (
        lambda: with_logs(lambda task, repeat: [f"worker {4000 + 7 * task + repeat} lost at 10:{20 + task}:0{repeat}"]),
        "ran IR alarm", "lost",
    ),
    "short field": (lambda: with_faults(lambda key: "gateway gave up"), "ran IR alarm", "gateway gave up"),
    "below 10% of the rows": (
        lambda: with_logs(lambda task, repeat: [CRASH], {(0, 1), (4, 2), (8, 3), (11, 0)}, 0.5), "ran IR warning", CRASH,
    ),
    "the last of lines without an error": (
        lambda: with_logs(lambda task, repeat: [line for line in SEVERAL if "not found" not in line]), "ran IR alarm", "clerk leaves early",
    ),
    "no tokens and no time": (without_tokens, "ran IR alarm"),
    "empty without a reason": (without_a_reason, "ran IR alarm", "empty"),
}  # fmt: skip
