"""Rung 8: what does the grader itself say?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.case_tables import cases
from tests.diagnose.builders import STREETS, desk, desk_row, quiz_row, rewards
from tests.diagnose.diagnosed import Diagnose, each, told_of
from tests.diagnose.rows import Act, Key, Made, Row, grid, key_of, make_row, message, struck

FAILING = sorted(key for key, reward in rewards(16, 4, 0.5).items() if not reward)
FIRST, SECOND, THIRD = ({key for i, key in enumerate(FAILING) if i % 4 in part} for part in ((0, 3), (1,), (2,)))


def coded(field: str, codes: tuple[str, str, str], passed: str | None) -> Iterator[Row]:
    for key, row in desk(16, 4, 0.5).items():
        code = codes[0] if key in FIRST else codes[1] if key in SECOND else codes[2] if key in THIRD else passed
        yield row if code is None else {**row, field: code}


@pytest.mark.parametrize(("field", "codes", "passed"), cases(__file__, "codes"))
def test_values_of_a_verdict_field_partition_the_failures(diagnose: Diagnose, field: str, codes: list[str], passed: str | None) -> None:
    run = diagnose(coded(field, codes, passed))
    for keys, code in zip((FIRST, SECOND, THIRD), codes, strict=True):
        group = run.group(keys)
        assert (group.rung, code in told_of(group)) == ("verdicts", True)
    assert run.report.unexplained[0].rows == 0
    assert run.alarms == []


@pytest.mark.parametrize("n_codes", [1, 2])
def test_value_that_equals_all_failures_is_the_verdict_itself(diagnose: Diagnose, n_codes: int) -> None:
    """One code for every failure says no more than the reward, be it that passes have one code or several."""
    rows = list(coded("error_type", ("not settled",) * 3, None))
    for row in rows:
        row.setdefault("error_type", ("settled", "settled late")[row["_ng_rollout_index"] % n_codes])
    run = diagnose(rows)
    assert not any("not settled" in group.name for group in run.groups)
    assert run.report.unexplained[0].rows == len(run.failing)


@pytest.mark.parametrize("word", ["INCORRECT", "wrong", "fail"])
def test_plain_word_for_wrong_is_no_group_of_its_own(diagnose: Diagnose, word: str) -> None:
    """Two thirds of the failures are only called wrong; what the others are called says more than the reward."""
    run = diagnose(coded("judge_word", (word, word, "refused to answer"), "CORRECT"))
    assert "refused to answer" in told_of(run.group(THIRD))
    assert not run.holders(FIRST | SECOND)
    assert run.report.unexplained[0].rows == len(FIRST | SECOND)


# ---- Named checks --------------------------------------------------------------------------------

STYLES = {
    "after": ("tests/test_desk.py::{name} PASSED", "tests/test_desk.py::{name} FAILED"),
    "before": ("PASSED tests/test_desk.py::{name}", "FAILED tests/test_desk.py::{name} - AssertionError"),
    "twice": ("PASSED tests/test_desk.py::{name}", "FAILED tests/test_desk.py::{name} - late\nPASSED tests/test_desk.py::{name}"),
    "dots": ("test {name} ... ok", "test {name} ... FAILED"),
    "numbered": ("ok 3 - {name}", "not ok 3 - {name}"),
    "dashes": ("--- PASS: {name}", "--- FAIL: {name}"),
    "prose": ("all is well with {name}, it was ok", "{name} is what the clerk FAILED to see to"),
}


def checks(met: dict[str, bool], how: str) -> dict[str, Any]:
    """Three checks in every form that a row may record them in."""
    if how == "list":
        return {"assertions": [{"name": name, "passed": passed} for name, passed in met.items()]}
    if how == "words":
        return {"assertions": {name: "passed" if passed else "failed" for name, passed in met.items()}}
    if how == "scores":  # partial marks count as not met
        return {"scores": {name: 1.0 if passed else 0.5 if name == "weight" else 0.0 for name, passed in met.items()}}
    lines = [STYLES[how][not passed].format(name=name) for name, passed in met.items()]
    ends = [f"counter {n} is shut after {len(met) * 7 + n} ms" for n in range(7)]
    return {"test_log": "\n".join(["the desk opens", "collected 3 items", *lines, *ends])}


def with_checks(how: str) -> list[Row]:
    return [
        {**row, **checks({"stamp": key not in FIRST, "weight": key not in SECOND, "seal": key not in THIRD}, how)}
        for key, row in desk(16, 4, 0.5).items()
    ]


@pytest.mark.parametrize("how", ["list", "words", "scores", *(style for style in STYLES if style != "prose")])
def test_failed_checks_partition_the_failures(diagnose: Diagnose, how: str) -> None:
    run = diagnose(with_checks(how))
    for keys, name in ((FIRST, "stamp"), (SECOND, "weight"), (THIRD, "seal")):
        assert run.shows(keys, "verdicts BI").name == f"fails the check `{name}`"
    if how == "scores":  # a task's sentence lists what its own row misses
        names = {group.id: group.name.split("`")[1] for group in run.groups}
        assert all(f"1 of 3 checks not met: `{names[entry.group]}`" in entry.mechanism for entry in run.report.attributions)


def compared(is_graded: bool) -> Iterator[Row]:
    """What the desk holds in the end beside what it should; a difference is what is graded, or goes with nothing."""
    for place, (key, row) in enumerate(desk(16, 4, 0.5).items()):
        wanted = {"hall": f"hall {key[0]}", "weight": key[0] + 10, "owner": f"owner {key[0] + 3}"}
        odd = {"hall": (FIRST, 5, f"hall {key[0] + 40}"), "weight": (SECOND, 7, key[0] + 50), "owner": (THIRD, 6, f"owner {key[0] + 60}")}
        ledger = {name: value for name, (keys, n, value) in odd.items() if (key in keys if is_graded else place % n == 0)}
        yield {**row, "ledger": {**wanted, **ledger}, "wanted": wanted}


def test_two_objects_with_the_same_keys_are_checks(diagnose: Diagnose) -> None:
    run = diagnose(compared(is_graded=True))
    for keys, name in ((FIRST, "hall"), (SECOND, "weight"), (THIRD, "owner")):
        assert run.shows(keys, "verdicts BI").name == f"fails the check `{name}`"
    task = min(FIRST)[0]
    assert f"`ledger.hall` is hall {task + 40}, `wanted.hall` is hall {task}" in run.group(FIRST).text


def ungraded(what: str) -> list[Row]:
    """What is recorded and says nothing of the grade: a check and a value that passes share, amounts beyond 1, words in prose."""
    fields: dict[str, Callable[[Key, int], dict[str, Any]]] = {
        "check": lambda key, i: {"assertions": [{"name": "polite", "passed": (key[0] + key[1]) % 3 > 0}]},
        "value": lambda key, i: {"queue": ("red", "green", "blue")[(key[0] + key[1]) % 3]},
        "amounts": lambda key, i: {"counts": {"stamps": float(key not in FIRST), "weight": 2 + i % 5, "seals": i % 3}},
    }
    return [{**row, **fields[what](key, i)} for i, (key, row) in enumerate(desk(16, 4, 0.5).items())]


@each({
    **{what: lambda what=what: ungraded(what) for what in ("check", "value", "amounts")},
    "objects that differ whatever the reward": lambda: compared(is_graded=False), "prose": lambda: with_checks("prose"),
    "values that need not be told": lambda: told_values(graded=False)[0],
})  # fmt: skip
def test_what_is_not_graded_names_no_check(diagnose: Diagnose, case: Callable[[], list[Row]]) -> None:
    names = [group.name for group in diagnose(case()).groups]
    assert not [name for name in names for word in ("check", "queue", "outputs") if word in name]


# ---- Calls against the expected calls ------------------------------------------------------------


def call(task: int, street: str | None = None) -> Act:
    return ("redirect_parcel", {"number": task, "street": street or f"street {task}"}, "Moved.")


def errands() -> tuple[list[Row], dict[str, set[Key]]]:
    """Tasks that expect one, two or no calls, with each way to miss them."""
    rows: list[Row] = []
    kinds: dict[str, set[Key]] = {"arguments": set(), "none": set(), "part": set(), "beyond": set(), "undue": set()}
    for task, repeat in grid(20, 4):
        look: Act = ("find_parcel", {"number": task + repeat}, f"Parcel {task}.")
        due: list[Act] = [] if task % 5 == 4 else [call(task)]
        if task % 5 == 3:
            due = [call(task), ("pay_fee", {"number": task}, "Paid.")]
        fails = (task + repeat) % 4 == 0 or (task + repeat) % 7 == 3
        ways = (
            ("arguments", [call(task, f"street {task + 50}")]), ("none", []), ("beyond", [*due, ("pay_fee", {"number": task}, "Paid.")]),
            ("part", due[:1]), ("undue", [call(task)]),
        )  # fmt: skip
        kind, made = ways[task % 5] if fails else ("", due)
        if kind:
            kinds[kind].add((task, repeat))
        end = f"That is all for errand {task}." + " Goodbye." * (repeat % 3)
        tools = ("find_parcel", "redirect_parcel", "pay_fee")
        rows.append(make_row(task, repeat, float(not fails), [look, *made, end], tools=tools, due=due))
    return rows, kinds


def test_calls_that_differ_from_the_expected_calls(diagnose: Diagnose) -> None:
    """Row 9 of "why a new core"; under a code of the grader as well: at equal cover the act against the gold names the rows."""
    rows, kinds = errands()
    for row in rows:
        key = key_of(row)
        row["judge_code"] = next((f"code {kind}" for kind, keys in kinds.items() if key in keys), "fine")
    run = diagnose(rows)
    assert run.labels(run.failing) == {"BI"}
    assert run.report.unexplained[0].rows == 0
    words = {"arguments": "argument", "none": "no change", "part": "part"}
    for kind, word in words.items():
        assert word in run.group(kinds[kind]).name, kind
    assert ["redirect_parcel" in told_of(group) for group in run.holders(kinds["undue"])] == [True]
    # the wrong write is blamed, not the last message: find_parcel and its answer are 0 and 1
    task = min(kinds["arguments"])[0]
    assert [entry.step for entry in run.report.attributions if entry.task == str(task)] == [2]


def test_tool_that_passes_call_as_they_like_is_not_graded(diagnose: Diagnose) -> None:
    """Passes word `write_note` otherwise than the gold: its text is free, and failures are not explained by it."""
    def note(text: str) -> Act:
        return ("write_note", {"text": text}, "Written.")

    run = diagnose(
        desk_row(task, repeat, reward, [note(f"note {task} in the words of clerk {repeat}"), "Written."], due=[note(f"note {task}")])
        for (task, repeat), reward in rewards(12, 4, 0.6).items()
    )
    assert not any("argument" in group.name for group in run.groups)


def unbounded(is_monotone: bool) -> Iterator[Row]:
    """Rewards from -3 to 12, and a 0/1 field that is 1 from a reward of 5 on, or whenever it likes."""
    for place, key in enumerate(grid(12, 4)):
        reward = float((place * 7) % 16 - 3)
        settled = int(reward >= 5) if is_monotone else int((place * 5) % 3 > 0)
        yield desk_row(*key, reward, settled=settled)


def test_monotone_verdict_decides_what_passes(diagnose: Diagnose) -> None:
    rows = list(unbounded(is_monotone=True))
    run = diagnose(rows)
    assert run.score == pytest.approx(sum(row["settled"] for row in rows) / len(rows))
    assert "settled" in run.trust[0].text
    assert diagnose(unbounded(is_monotone=False)).report.runs[0].score_name == "mean_reward"


def test_last_message_of_the_environment_is_the_verdict(diagnose: Diagnose) -> None:
    """`The errand failed.` closes every failing dialogue: it is the reward in words, and no cause."""
    verdicts = ("The errand was not completed; the desk is closed.", "The errand is complete.")

    def acts(task: int, reward: float) -> list[Act]:
        return [("find_parcel", {"number": task}, f"Parcel {task} found."), ("close_errand", {"number": task}, verdicts[int(reward)])]

    run = diagnose(desk_row(*key, reward, acts(key[0], reward)) for key, reward in rewards(12, 4, 0.6).items())
    assert not any("desk is closed" in group.name for group in run.groups)
    assert run.alarms == []


# ---- Conversations that are over before the model can act ----------------------------------------


@struck
def conversations(last: str, reply: str = "Yes. Bye.") -> Iterator[tuple[Row, bool]]:
    """A desk with a visitor who answers; in some failures the errand is not done when the visitor leaves after `last`."""
    for task, repeat in grid(12, 4):
        tool = ("move_parcel", "hold_parcel")[task % 2]
        read: Act = ("read_notice", {"page": task}, f"Shelf {task}.")
        due: Act = (tool, {"number": task}, "done")
        is_late = task < 8 and repeat == task % 4
        end = [last] if is_late else [due, "The parcel is on its way. Is there anything else I can do for you today?"]
        acts: list[Act] = [read, "Which parcel is it?", message("The one on my shelf.", "user"), *end, message(reply, "user")]
        tools = ("move_parcel", "hold_parcel", "read_notice")
        yield make_row(task, repeat, float(not is_late), acts, tools=tools, due=[due]), is_late


@pytest.mark.parametrize(("last", "reply", "doubt"), cases(__file__, "leaves"))
def test_user_who_leaves_before_the_model_can_act_is_a_doubt(diagnose: Diagnose, last: str, reply: str, doubt: str) -> None:
    """Whose fault it is that nothing was done the rows do not show: the page says how many end so."""
    rows, late = conversations(last, reply)
    group = diagnose(rows).shows(late, "verdicts BI", "no change made although one was due")
    doubts = " ".join(group.against)
    assert doubt in doubts
    assert ("the user agrees" in doubts, "the conversation ends" in doubts) == ("agrees" in doubt, bool(doubt))


def confirmed(last: str, reply: str = "Yes. Bye.") -> tuple[list[Row], set[Key]]:
    """The errands of the desk again, by numbers that identify a parcel; `last` may name the number of the task."""
    rows, late = conversations(last, reply)
    for row in rows:
        task = row["_ng_task_index"]
        number = f"P-{task + 1040}"
        row["expected_actions"][0]["arguments"] = {"number": number}
        for item in row["response"]["output"]:
            if item.get("name") in ("move_parcel", "hold_parcel"):
                item["arguments"] = json.dumps({"number": number})
            elif item["type"] == "message":
                item["content"][0]["text"] = item["content"][0]["text"].replace("NUMBER", number)
    return rows, late


def test_user_who_agrees_to_the_expected_change_and_leaves(diagnose: Diagnose) -> None:
    """The model names the parcel and asks; nobody can act after the conversation is over."""
    rows, late = confirmed("I would send parcel NUMBER to the harbour; shall I go ahead with that?")
    run = diagnose(rows)
    run.shows(late, "verdicts TI", "asks to confirm")
    sentence = next(entry.mechanism for entry in run.report.attributions if entry.task == "4")
    assert "`move_parcel(number=P-1044)` is expected and never made" in sentence


@pytest.mark.parametrize(("last", "reply", "label"), cases(__file__, "agrees"))
def test_user_who_is_asked_in_other_words_or_something_else(diagnose: Diagnose, last: str, reply: str, label: str) -> None:
    rows, late = confirmed(last, reply)
    diagnose(rows).shows(late, f"verdicts {label}", "asks to confirm" if label == "TI" else "no change made although one was due")


def test_user_who_agrees_to_another_act_on_the_same_thing(diagnose: Diagnose) -> None:
    """The number alone does not show what would be done with the parcel; what is left to the group is counted again."""
    rows, late = confirmed("I would hold parcel NUMBER for a week; shall I go ahead with that?")
    run = diagnose(rows)
    held = {key for key in late if key[0] % 2}
    assert run.group(held).label.value == "TI"
    group = run.shows(late - held, "verdicts BI", "no change made although one was due")
    assert group.text.startswith("4 failures: no change is made although one was due (`move_parcel`).")
    assert "in 4 of them the user agrees" in " ".join(group.against)


@struck
def told_values(graded: bool) -> Iterator[tuple[Row, bool]]:
    """Each task demands a figure of its own; `outputs` says whether it was told."""
    for task, repeat in grid(12, 4):
        is_silent = repeat == task % 4
        reward = float(not is_silent) if graded else float((task + repeat) % 3 > 0)
        yield desk_row(task, repeat, reward, outputs={f"{task * 17 + 3}.5": not is_silent}), is_silent


@pytest.mark.parametrize("is_given", [True, False])
def test_text_of_the_request_is_no_verdict(diagnose: Diagnose, is_given: bool) -> None:
    """A long text that only failing rows hold names them, unless it repeats what was asked."""
    text = "Weigh the parcel on the small scale by the window.\n" + "Then note the weight in the ledger, in ounces. " * 6
    hard = {(task, 0) for task in range(0, 40, 4)}
    rows = []
    for task in range(40):
        own = text if (task, 0) in hard else f"Sort letter {task} by its street.\n" + f"Shelf {task % 7} holds the rest of them. " * 8
        reward = float((task, 0) not in hard and task % 5 > 0)
        rows.append(desk_row(task, 0, reward, prompt=own if is_given else None, about=own))
    run = diagnose(rows)
    assert any("about" in group.name for group in run.report.groups) != is_given


@struck
def chosen(is_wrong_elsewhere: bool, is_hard: bool) -> Iterator[tuple[Row, bool]]:
    """Letters that must be answered and letters that must be kept; half of the first are kept."""
    for place, (task, repeat) in enumerate(grid(24, 4)):
        is_due = task % 3 > 0
        acts_kept = place % 2 == 0 or not is_due
        due = float(not acts_kept and not (is_hard and place % 8 > 1) and place % 9 > 0)
        reward = due if is_due else float(place % 8 == 0 or not is_wrong_elsewhere)
        kind = "answer" if is_due else "keep"
        note = f"Letter {place} of folder {task}." + " It is filed." * (place % 4)
        yield make_row(task, repeat, reward, [note], pile=kind, handling="kept" if acts_kept else "answered"), is_due and acts_kept


@pytest.mark.parametrize(("is_wrong_elsewhere", "is_hard"), [(True, False), (False, True)])
def test_a_choice_that_fails_anywhere_or_a_kind_that_fails_anyhow(diagnose: Diagnose, is_wrong_elsewhere: bool, is_hard: bool) -> None:
    rows, kept = chosen(is_wrong_elsewhere, is_hard)
    assert not any(" where `pile` is " in group.name for group in diagnose(rows).holders(kept))


@struck
def forms(change: str) -> Iterator[tuple[Row, bool]]:
    """Forms with some fields to be left empty; a third invents a value there, leaves out another, or writes something else."""
    for place, (task, repeat) in enumerate(grid(20, 3)):
        due = {"owner": f"N. {task * 7}", "shelf": task % 5 + 1, "fee": None if task % 2 else 4, "seal": None}
        empty = [name for name, value in due.items() if value is None]
        more, less = {empty[task // 2 % len(empty)]: place + 2}, {"owner": None}
        odd = {"more": more, "less": less, "both": {**more, **less}, "other": {"shelf": place + 40}}[change]
        given = {**due, **(odd if place % 3 == 0 else {})}
        yield make_row(task, repeat, float(place % 3 > 0), [json.dumps(given)], wanted=due, read=given), place % 3 == 0


@pytest.mark.parametrize("change", ["both", "other"])
def test_fields_that_differ_in_other_ways_are_named_by_themselves(diagnose: Diagnose, change: str) -> None:
    rows, changed = forms(change)
    names = {group.name for group in diagnose(rows).holders(changed)}
    assert not names & {"gives a value where none is expected", "leaves out a value that is expected"}


@struck
def trials(shared: bool) -> Iterator[tuple[Row, bool]]:
    """Each task has a test of its own, or all have the same."""
    for task, repeat in grid(12, 4):
        is_failed = (task + repeat) % 3 == 0
        name = "test_total" if shared else f"test_branch_{STREETS[task % 8].split()[0]}_{'ab'[task // 8]}"
        results = {name: "failed" if is_failed else "passed", "test_opens": "passed"}
        yield desk_row(task, repeat, float(not is_failed), results=results), is_failed


def torn() -> Made:
    """Messages that differ in numbers alone; some failures have none."""
    failed = {(task, repeat) for task, repeat in grid(24, 4) if repeat < 3 and (task + repeat) % 3 == 0}
    other = {(task, 3) for task in range(8)}
    return [
        desk_row(*key, float(key not in failed | other), applied=f"error: torn at line {key[0] + key[1] * 3}" if key in failed else None)
        for key in grid(24, 4)
    ], failed


def test_letter_of_a_judge_is_no_cause(diagnose: Diagnose) -> None:
    """`B` says no more than that the answer counts as wrong."""
    rows = [
        quiz_row(task, repeat, reward, str(gold + (1 - int(reward)) * (9 + repeat)), str(gold), grade="A" if reward else "BC"[task % 2])
        for task, repeat in grid(12, 4)
        for reward, gold in [(float((task + repeat) % 2), task * 13 + 41)]
    ]
    assert {group.rung for group in diagnose(rows).groups} == {"knowledge"}


PROVED = {
    "a choice that is right only elsewhere": (lambda: chosen(False, False), "verdicts BI", "`handling` is `kept` where `pile` is `answer`"),
    "a value too much": (lambda: forms("more"), "verdicts BI", "gives a value where none is expected"),
    "a value too few": (lambda: forms("less"), "verdicts BI", "leaves out a value that is expected"),
    "tests of single tasks": (lambda: trials(shared=False), "verdicts BI", "fails a test of its own task"),
    "a test that all tasks share": (lambda: trials(shared=True), "verdicts BI", "test_total"),
    "values that were never told": (lambda: told_values(graded=True), "verdicts BI", ".5", "misses what `outputs` demands"),
    "numbers in a message": (torn, "verdicts undetermined", "torn at line"),
}
