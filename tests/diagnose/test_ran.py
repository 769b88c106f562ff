"""Rungs 1 and 2: is behaviour recorded at all, and did the agent run?"""

from __future__ import annotations

import random

import pytest

from tests.diagnose.builders import Diagnose, Diagnosed, Key, Row, desk, desk_row, grid, make_row, told_of

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


# ---- Never ran: a text that only such rows share -------------------------------------------------


def with_logs(run: dict[Key, Row], down: set[Key], line: str) -> list[Row]:
    """A run whose rows all have a log, with some rows that have nothing but a log, which ends in a line."""
    rows = []
    for (task, repeat), row in run.items():
        if (task, repeat) in down:
            rows.append(silent(task, repeat, agent_log=started(task, repeat, line)))
        else:
            rows.append({**row, "agent_log": started(task, repeat, f"clerk {repeat} leaves")})
    return rows


DOWN = {(task, task % 4) for task in range(12)} | {(task, (task + 1) % 4) for task in range(6)}


def test_crash_line_at_the_end_of_a_log(diagnose: Diagnose) -> None:
    """Row 3 of "why a new core"."""
    run = diagnose(with_logs(desk(), DOWN, CRASH))
    group = run.proved(DOWN, "ran", "IR", "alarm")
    assert CRASH in group.text
    assert group.quote is not None
    assert CRASH in (group.quote.quote or "")
    assert (group.rows, group.passed_rows) == (18, 0)


def test_crash_lines_with_volatile_numbers_are_one_group(diagnose: Diagnose) -> None:
    rows = with_logs(desk(), DOWN, CRASH)
    for row in rows:
        if not row["response"]["output"]:
            task, repeat = row["_ng_task_index"], row["_ng_rollout_index"]
            row["agent_log"] = started(task, repeat, f"worker {4000 + 7 * task + repeat} lost at 10:{20 + task}:0{repeat}")
    run = diagnose(rows)
    assert "lost" in run.proved(DOWN, "ran", "IR", "alarm").text


def test_short_error_field(diagnose: Diagnose) -> None:
    rows = [silent(*key, fault="gateway gave up") if key in DOWN else row for key, row in desk().items()]
    assert "gateway gave up" in diagnose(rows).proved(DOWN, "ran", "IR", "alarm").text


def test_two_reasons_are_two_groups(diagnose: Diagnose) -> None:
    first, second = {key for key in DOWN if key[0] < 6}, {key for key in DOWN if key[0] >= 6}
    rows = []
    for key, row in desk().items():
        fault = "gateway gave up" if key in first else "no desk was free"
        rows.append(silent(*key, fault=fault) if key in DOWN else row)
    run = diagnose(rows)
    assert "gateway gave up" in run.group(first).text
    assert "no desk was free" in run.group(second).text
    assert run.labels(DOWN) == {"IR"}


def test_few_rows_are_a_warning(diagnose: Diagnose) -> None:
    """Below 10% of the rows the score can still be used."""
    few = {(0, 1), (4, 2), (8, 3), (11, 0)}
    diagnose(with_logs(desk(rate=0.5), few, CRASH)).proved(few, "ran", "IR", "warning")


def test_no_tokens_and_no_time(diagnose: Diagnose) -> None:
    rows = []
    for (task, repeat), row in desk().items():
        if (task, repeat) in DOWN:
            spent = {"usage": {"input_tokens": 0, "output_tokens": 0}}
            rows.append(silent(task, repeat, response=spent, seconds=0.01))
        else:
            spent = {"usage": {"input_tokens": 900 + 17 * task, "output_tokens": 120 + 31 * repeat + 7 * task}}
            row["response"].update(spent)
            rows.append({**row, "seconds": 20.5 + 1.7 * task + 3.3 * repeat})
    run = diagnose(rows)
    run.proved(DOWN, "ran", "IR", "alarm")
    assert not said_not_recorded(run)


def test_line_that_passing_rows_have_too_is_no_reason(diagnose: Diagnose) -> None:
    """The transcripts of these rows are missing, not the work: half of them pass."""
    rows = []
    for place, ((task, repeat), row) in enumerate(desk(rate=0.6).items()):
        if (task, repeat) in DOWN:
            rows.append(silent(task, repeat, float(place % 2), agent_log=started(task, repeat, CRASH)))
        else:
            rows.append({**row, "agent_log": started(task, repeat, f"clerk {repeat} leaves")})
    run = diagnose(rows)
    assert run.of_rung("ran") == []
    assert said_not_recorded(run)
    assert CRASH not in run.said


def test_line_of_rows_that_ran_is_no_reason(diagnose: Diagnose) -> None:
    """The same last line in rows with output: it does not say why the others have none."""
    rows = with_logs(desk(), DOWN, CRASH)
    for row in rows:
        row["agent_log"] = started(row["_ng_task_index"], row["_ng_rollout_index"], CRASH)
    run = diagnose(rows)
    assert CRASH not in run.said


SEVERAL = ("clerk enters", "could not fetch trolley {n}: not found in hall 12 at 10:{m}", "doors close", "clerk leaves early")


def with_several_lines(lines: tuple[str, ...]) -> list[Row]:
    """Rows without output whose logs share several lines, which no other log has."""
    rows = with_logs(desk(), DOWN, CRASH)
    for row in rows:
        if not row["response"]["output"]:
            task, repeat = row["_ng_task_index"], row["_ng_rollout_index"]
            told = [line.format(n=4000 + 17 * task + repeat, m=10 + 3 * task) for line in lines]
            row["agent_log"] = started(task, repeat, *told)
    return rows


def test_of_several_lines_the_one_that_reads_as_an_error_names_the_group(diagnose: Diagnose) -> None:
    """In the words of a row, its numbers included, not as a template."""
    group = diagnose(with_several_lines(SEVERAL)).proved(DOWN, "ran", "IR", "alarm")
    own = {f"could not fetch trolley {4000 + 17 * task + repeat}: not found" for task, repeat in DOWN}
    assert [line for line in own if line in group.name], group.name
    assert [line for line in own if line in group.text], group.text
    assert "<" not in group.name + group.text


def test_without_an_error_the_last_line_names_the_group(diagnose: Diagnose) -> None:
    lines = tuple(line for line in SEVERAL if "not found" not in line)
    group = diagnose(with_several_lines(lines)).proved(DOWN, "ran", "IR", "alarm")
    assert "clerk leaves early" in group.name


# ---- No output, and nothing that says why --------------------------------------------------------


def test_empty_without_a_reason_is_one_group(diagnose: Diagnose) -> None:
    """Never split by a field about the task: the hall and the gold of the empty rows differ."""
    rows = []
    for (task, repeat), row in desk().items():
        facts = {"hall": "north" if task < 6 else "south", "expected_answer": f"street {task % 3}"}
        rows.append(silent(task, repeat, **facts) if (task, repeat) in DOWN else {**row, **facts})
    group = diagnose(rows).proved(DOWN, "ran", "IR", "alarm")
    assert "empty" in told_of(group)


def test_rare_passes_among_empty_rows_do_not_make_them_recorded(diagnose: Diagnose) -> None:
    lucky = min(DOWN)
    rows = [silent(*key, float(key == lucky)) if key in DOWN else row for key, row in desk().items()]
    run = diagnose(rows)
    assert not said_not_recorded(run)
    run.proved(DOWN - {lucky}, "ran", "IR", "alarm")


@pytest.mark.parametrize(("n_empty", "levels"), [(2, set()), (4, {"warning"})])
def test_a_few_empty_outputs_say_nothing_about_the_run(diagnose: Diagnose, n_empty: int, levels: set[str]) -> None:
    """Up to 5% of the rows are a group and no doubt about the score; 4 of 48 are one."""
    few = {(task * 3, task) for task in range(n_empty)}
    run = diagnose([silent(*key) if key in few else row for key, row in desk(rate=0.6).items()])
    group = run.group(few)
    assert (group.rung, group.label.value) == ("ran", "IR")
    assert {entry.level for entry in run.trust if entry.query and run.keys(entry) == few} == levels


def test_empty_output_that_is_the_right_act(diagnose: Diagnose) -> None:
    """Where no call is due, silence passes: an empty output is a recording of that."""
    rows = []
    for task, repeat in grid(12, 4):
        if task < 6:
            passes = (task + repeat) % 4 > 0
            acts = [] if passes else [("redirect_parcel", {"number": f"P-{task}"}, "Moved.")]
            rows.append(make_row(task, repeat, float(passes), acts, expected_actions=[]))
        else:
            due = {"number": f"P-{task}"}
            passes = (task + repeat) % 3 > 0
            made = due if passes else {"number": f"P-{task + 20 + repeat}"}
            acts = [("redirect_parcel", made, "Moved.")]
            gold = [{"name": "redirect_parcel", "arguments": due}]
            rows.append(make_row(task, repeat, float(passes), acts, expected_actions=gold))
    run = diagnose(rows)
    assert run.of_rung("ran") == []
    assert run.alarms == []


# ---- Not recorded --------------------------------------------------------------------------------


def unpublished() -> list[Row]:
    """No transcript at all, but tests and durations: 16 of 48 rows fail, 12 of them the same test."""
    rows = []
    for task, repeat in grid(12, 4):
        place = task * 4 + repeat
        label = place % 4 != 1  # prints the label
        weight = place % 6 != 3  # weighs the parcel
        tests = [{"name": "prints_label", "passed": label}, {"name": "weighs_parcel", "passed": weight}]
        times = {"seconds": 31.5 + 2.25 * place, "test_seconds": 4.5 + 0.5 * (place % 11)}
        rows.append(silent(task, repeat, float(label and weight), tests=tests, **times))
    return rows


def test_transcripts_that_were_not_published(diagnose: Diagnose) -> None:
    """Row 2 of "why a new core"."""
    run = diagnose(unpublished())
    assert said_not_recorded(run)
    assert run.alarms == []
    assert run.of_rung("ran", "cut", "environment", "verifier") == []
    assert "empty" not in run.said.lower()
    assert "verifier" not in run.said.lower()


def test_diagnosis_goes_on_from_the_tests(diagnose: Diagnose) -> None:
    run = diagnose(unpublished())
    label = {(task, repeat) for task, repeat in grid(12, 4) if (task * 4 + repeat) % 4 == 1}
    assert "prints_label" in told_of(run.group(label))


def test_every_failure_has_a_failed_test_to_its_name(diagnose: Diagnose) -> None:
    run = diagnose(unpublished())
    weight_only = {key for key in run.failing if (key[0] * 4 + key[1]) % 4 != 1}
    assert len(weight_only) == 4
    assert "weighs_parcel" in told_of(run.group(weight_only))


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


@pytest.mark.parametrize(("field", "spent", "label"), [
    ("generation_ms", 9000, "TI"), ("usage.output_tokens", 9000, "TI"), ("generation_ms", 40, "IR"), ("prompt_tokens", 9000, "IR"), ("usage.total_tokens", 9000, "IR"), ("judge_latency.seconds", 9000, "IR"),
    ("created_time", 1_700_000_000, "IR"), ("shelf", 9000, "IR"),
])  # fmt: skip
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


def test_shared_texts_come_before_the_question_of_recording(diagnose: Diagnose) -> None:
    """18 rows crashed; 12 others have no output either and pass as the rest does: only those were not recorded."""
    bare = {(task, repeat) for task, repeat in grid(12, 4) if (task, repeat) not in DOWN and repeat == task % 3}
    rows = []
    for place, ((task, repeat), row) in enumerate(desk(rate=0.9).items()):
        if (task, repeat) in DOWN:
            rows.append(silent(task, repeat, agent_log=started(task, repeat, CRASH)))
        elif (task, repeat) in bare:
            rows.append(silent(task, repeat, float(place % 3 > 0), agent_log=started(task, repeat, "leaves")))
        else:
            rows.append({**row, "agent_log": started(task, repeat, "leaves")})
    run = diagnose(rows)
    run.proved(DOWN, "ran", "IR", "alarm")
    assert said_not_recorded(run)


def test_healthy_run_is_silent(diagnose: Diagnose) -> None:
    run = diagnose([desk_row(*key, float(sum(key) % 4 > 0)) for key in grid(12, 4)])
    assert run.of_rung("ran") == []
    assert not said_not_recorded(run)


@pytest.mark.parametrize(("reason", "label"), [("max_output_tokens", "TI"), ("upstream_refused", "IR")])
def test_empty_output_that_a_limit_ended_did_run(diagnose: Diagnose, reason: str, label: str) -> None:
    rows = []
    for key, row in desk().items():
        if key in DOWN:
            row = silent(*key)
            row["response"]["incomplete_details"] = {"reason": reason}
        rows.append(row)
    assert diagnose(rows).labels(DOWN) == {label}
