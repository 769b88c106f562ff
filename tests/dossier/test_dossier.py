"""A dossier holds what is needed to judge a task, in the order of reading, and no more than its budget."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import click
import pytest
from msgspec.structs import replace

from blade.agent.dossier import BUDGET, LEAST, Dossier, dossier
from blade.agent.dossier.budget import tokens
from blade.errors import UsageError
from blade.model import Cause, Confidence, Evidence, Trace, Trust
from blade.pipeline.session import Session
from blade.report.run_facts import Facts, facts
from tests.builders import make_call, make_message, make_result
from tests.dossier.conftest import Written, rollout
from tests.dossier.reading import HEADINGS, commands, focus, shown, strangers

Tell = Callable[..., str]


@pytest.fixture
def traces(desk: Session) -> tuple[Trace, ...]:
    return desk.traces(desk.loaded[0], "0")


@pytest.fixture
def of(desk: Session) -> Facts:
    return desk.facts[desk.loaded[0].name]


@pytest.fixture
def tell(desk: Session, of: Facts, traces: tuple[Trace, ...]) -> Tell:
    """The dossier of the first task; `cause` changes its attribution, `report` the report. No line is forged."""

    def told(rows: Any = traces, *, cause: Any = None, report: Any = None, **options: Any) -> str:
        known = of
        if cause is not None:
            causes = tuple(replace(one, **cause) if one.task == "0" else one for one in desk.report.attributions)
            report = {**(report or {}), "attributions": causes}
        if report is not None:
            known = facts(replace(desk.report, **report))[0]
        text = dossier(known, "0", rows, **options).text
        assert not strangers(text)
        return text

    return told


def test_the_parts_stand_in_the_order_of_reading(of: Facts, traces: tuple[Trace, ...]) -> None:
    told = dossier(of, "0", traces)
    places = [told.text.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)
    assert told.tokens == tokens(told.text) <= told.budget == BUDGET
    assert told == Dossier("rollouts", "0", told.text, told.tokens, BUDGET)
    assert f"{told.tokens:,} tokens of {BUDGET:,}" in told.text


SAID = [
    "first user turn | Make the lamp of order O-0 green.",
    "expected call, made differently at step 3",
    "(differs in lamp)",
    "name | desk-0",
    "verifier_message: the lamp is red, not green",
    "4 repeats: 2 passed, 2 failed (in order 1 0 1 0; 1 passes)",
    # beside a passing repeat
    "in focus repeat 1, 2 calls | read_order > write_order",
    "passing repeat 0, 2 calls | read_order > write_order",
    'first different call, in focus [3] call | write_order {"order":"O-0","lamp":"red"}',
    'first different call, passing [3] call | write_order {"order":"O-0","lamp":"green"}',
    "passing [5] message, its last words | Done: the lamp of O-0 is green now.",
    # the cause and its group
    "cause: BI, behaviour (the model could do it and went about it wrongly), proved",
    "in the whole run: 4 failures in 2 tasks, 16.7 points of the score; 0 passing rollouts show it too",
    "where: repeat 1, step 3",
    # another failing repeat is told by its last change
    'repeat 3 [3] call | write_order {"order":"O-0","lamp":"red"}',
]


def test_it_says_what_is_asked_expected_done_elsewhere_and_judged(tell: Tell, of: Facts) -> None:
    text = tell()
    assert [words for words in SAID if words not in text] == []
    group = of.group(of.attribution["0"].group)
    assert group is not None
    assert f"failure group {group.id} | {group.name}" in text
    assert f"group in words | {group.text}" in text


def test_an_expected_call_that_was_made_is_told_as_made(tell: Tell) -> None:
    text = tell(repeat=0)
    assert "expected calls that were made, with their steps | write_order [3]" in text
    assert "expected call, " not in text


def test_a_row_that_broke_takes_the_task_from_its_siblings(tell: Tell, traces: tuple[Trace, ...]) -> None:
    broken = rollout([], error="connection reset", responses_create_params=None)
    text = tell([broken, traces[0]], repeat=1)
    assert "first user turn | Make the lamp of order O-0 green." in text
    assert 'expected call, not made in repeat 1 | write_order {"order":"O-0","lamp":"green"}' in text
    assert "error: connection reset" in text


def test_that_no_call_is_expected_is_told(tell: Tell) -> None:
    assert "no call is expected" in tell([rollout([make_message("done")], expected_actions=[])])


def test_the_rollout_in_focus_is_the_blamed_one_or_the_one_asked_for(tell: Tell, of: Facts) -> None:
    assert focus(tell()) == of.attribution["0"].repeat
    assert [focus(tell(repeat=repeat)) for repeat in range(4)] == [0, 1, 2, 3]


def test_the_other_side_is_a_passing_repeat_where_there_is_one(tell: Tell, traces: tuple[Trace, ...]) -> None:
    text = tell([traces[0], rollout([make_message("I cannot help.")])])
    assert "in focus repeat 1: no calls" in text
    assert "first different call, in focus: none, it makes no further call" in text
    assert 'first different call, passing [1] call | read_order {"order":"O-0"}' in text
    equal = tell([traces[0], traces[2]], repeat=2)
    assert "in focus repeat 2, 2 calls" in equal
    assert "first different call" not in equal
    assert "beside a passing rollout" not in tell([traces[1], traces[3]])


def test_reasons_for_and_against_are_listed(tell: Tell) -> None:
    text = tell(cause={"grounds": ("it did so",), "against": ("it did not",) * 7})
    assert "for | it did so" in text
    assert text.count("against | it did not") == 5
    assert "against: 2 more in report.json" in text


def test_a_group_is_quoted_from_its_example_unless_that_is_read_below(tell: Tell, desk: Session) -> None:
    (group,) = desk.report.groups
    for place, says in (
        (("1", 3, 3, None, "red lamp"), "group example | 1/3, step 3: red lamp"),
        (("1", 3, None, "verifier_message", "not green"), "group example | 1/3, verifier_message: not green"),
        (("0", 1, 3, None, "red"), ""),
    ):
        task, repeat, step, field, words = place
        quote = Evidence("rollouts", task, repeat, step=step, field=field, quote=words)
        text = tell(report={"groups": (replace(group, quote=quote, consequences=("a wrong lamp",)),)})
        assert says in text
        assert ("group example" in text) == bool(says)
        assert "consequence | a wrong lamp" in text


def test_alarms_and_warnings_of_the_run_are_repeated_and_notes_are_not(tell: Tell, desk: Session) -> None:
    trust = (
        Trust("rollouts", "alarm", Cause.TASK_OR_VERIFIER, "The grader rejects right answers.", 9, ""),
        Trust("rollouts", "warning", None, desk.report.groups[0].text, 4, ""),
        Trust("rollouts", "note", None, "Small set.", 24, ""),
    )
    text = tell(report={"trust": trust})
    assert "alarm on the whole run, TI, 9 rows | The grader rejects right answers." in text
    assert "warning on the whole run, 4 rows | the failure group above" in text
    assert "Small set." not in text


def test_without_a_cause_it_says_so_and_what_causes_there_are(tell: Tell) -> None:
    text = tell(cause={"cause": Cause.UNDETERMINED, "confidence": Confidence.UNSURE, "group": "", "step": None, "steps": ()})
    assert "undetermined: the rows do not decide the cause; judge it from what follows" in text
    assert not [cause for cause in Cause if cause is not Cause.UNDETERMINED and f" {cause.value} " not in text]
    assert "failure group" not in text
    assert "where: no step is named" in text
    assert "--cause CAUSE" in text
    assert tell(report={"attributions": ()})


def test_a_judgement_stands_beside_what_the_engine_proposes(tell: Tell) -> None:
    engine = {"proposed": Cause.UNRELIABLE_KNOWLEDGE, "proposed_confidence": Confidence.LIKELY}
    text = tell(cause={"cause": Cause.BEHAVIOUR, "disputed": True, "judged_by": "ann", **engine})
    assert "judged: BI, behaviour (" in text
    assert "the engine proposes UK, unreliable knowledge, likely; the judges disagree" in text
    assert "judged by | ann" in text


def test_a_task_that_passes_has_a_short_dossier_without_a_label_to_fill_in(desk: Session, of: Facts) -> None:
    text = dossier(of, "5", desk.traces(desk.loaded[0], "5")).text
    assert "no cause: this task loses no points" in text
    assert not [line for line in commands(text) if "label" in line]
    assert tokens(text) < BUDGET / 2


def test_steps_that_are_left_out_are_said_with_how_to_see_them(tell: Tell) -> None:
    text = tell([rollout([make_message(f"thought {number} " + "and so on " * 30) for number in range(300)])])
    gaps = [(int(first), int(last)) for first, last in re.findall(r"left out: --steps (\d+):(\d+)", text)]
    seen = {number for number in range(300) if shown(text, 1, number) is not None}
    assert gaps
    assert seen | {number for gap in gaps for number in range(*gap)} == set(range(300))
    assert sum(last - first for first, last in gaps) + len(seen) == 300
    assert {0, 299} <= seen


@pytest.mark.parametrize("step", [1, None], ids=["blamed and quoted", "quoted alone"])
def test_what_is_quoted_of_a_long_step_is_in_it(tell: Tell, step: int | None) -> None:
    needle = "the total price is 305 and not 255"
    trace = rollout([make_message("hello"), make_message("x" * 30_000 + needle + "y" * 30_000)])
    evidence = (Evidence("rollouts", "0", 1, step=1, quote=needle),)
    assert needle in (shown(tell([trace], cause={"step": step, "steps": (), "evidence": evidence}), 1, 1) or "")


def test_a_larger_budget_tells_more_and_the_smallest_holds_the_proposal(tell: Tell, of: Facts) -> None:
    rows = [rollout([make_message(f"thought {number} " + "and so on " * 200) for number in range(60)])]
    sizes = [tokens(tell(rows, budget=budget)) for budget in (LEAST, 1500, 3000, 12_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 3 * sizes[0]
    text = tell(budget=LEAST)
    headings = ("## outcomes", "## proposal of the engine", "## rollout in focus")
    assert [heading for heading in headings if heading not in text] == []
    assert any(line.startswith("blade label") for line in commands(text))
    assert shown(text, of.attribution["0"].repeat or 0, of.attribution["0"].step or 0) is not None


@pytest.mark.parametrize("budget", [LEAST - 1, -5, 10**9])
def test_a_budget_that_nothing_fits_in_is_refused(of: Facts, traces: tuple[Trace, ...], budget: int) -> None:
    with pytest.raises(UsageError, match="out of range") as refused:
        dossier(of, "0", traces, budget)
    assert str(LEAST) in refused.value.hint


def test_every_command_parses(tell: Tell) -> None:
    from blade.cli.main import cli

    lines = [shlex.split(line) for line in commands(tell())]
    assert len(lines) == 3
    for blade, name, *words in lines:
        assert blade == "blade"
        with click.Context(cli) as context:
            command = cli.get_command(context, name)
        assert command is not None
        command.make_context(name, words)


def test_a_rollout_without_steps_is_labelled_by_a_field(planted: Written) -> None:
    _, empty = planted("empty_run", 1.0)
    run = empty.loaded[0]
    text = dossier(empty.facts[run.name], "0", empty.traces(run, "0")).text
    (label,) = (line for line in commands(text) if line.startswith("blade label"))
    assert (" --field " in label, " --step " in label) == (True, False)
    assert "where: no step is named" in text
    assert "alarm on the whole run, IR, 23 rows | the failure group above" in text


def test_a_task_without_rows_still_has_its_proposal(tell: Tell) -> None:
    assert "## proposal of the engine" in tell([])
    assert focus(tell([])) is None


def test_checks_that_were_not_met_are_named_first(tell: Tell) -> None:
    checks = [{"check": {"name": f"check_{number}"}, "met": number != 7} for number in range(40)]
    text = tell([rollout([make_message("done")], verifier={"checks": checks})])
    assert "verifier: not met: check_7 (met); " in text


def test_differing_duplicates_do_not_confuse_it(tell: Tell, traces: tuple[Trace, ...]) -> None:
    twice = [*traces, rollout([make_message("another row of the same key")], repeat=1)]
    assert "another row" not in tell(twice, repeat=1)


def test_calls_that_failed_or_were_never_answered_are_marked(tell: Tell) -> None:
    output = [make_call("c", "go"), make_result("c", "Error: no such order"), make_call("d", "go")]
    text = tell([rollout(output)])
    assert "[0] call, failed | go" in text or "[0]* call, failed | go" in text
    assert "call, never answered | go" in text
