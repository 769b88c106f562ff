"""A dossier holds what is needed to judge a task, in the order of reading, and no more than its budget."""

from __future__ import annotations

import shlex

import click
import pytest
from msgspec.structs import replace

from blade.agent.dossier import BUDGET, LEAST, dossier
from blade.agent.dossier.budget import tokens
from blade.errors import UsageError
from blade.model import Attribution, Cause, Confidence, Evidence, Trace, Trust
from blade.pipeline.session import Session
from blade.report.run_facts import Facts, facts
from tests.builders import make_call, make_message, make_result
from tests.dossier.conftest import Written, rollout
from tests.dossier.reading import HEADINGS, commands, focus, shown, strangers


def known(asked: Session) -> tuple[Facts, tuple[Trace, ...]]:
    """The first task of a session, and its rows."""
    return asked.facts[asked.loaded[0].name], asked.traces(asked.loaded[0], "0")


def changed(asked: Session, **changes: object) -> Facts:
    """The same run with another attribution of its first task."""
    found = [replace(one, **changes) if one.task == "0" else one for one in asked.report.attributions]
    return facts(replace(asked.report, attributions=tuple(found)))[0]


def test_the_parts_stand_in_the_order_of_reading(desk: Session) -> None:
    of, traces = known(desk)
    told = dossier(of, "0", traces)
    places = [told.text.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)
    assert not strangers(told.text)
    assert told.tokens == tokens(told.text) <= told.budget == BUDGET
    assert (told.run, told.task) == ("rollouts", "0")


def test_it_says_what_is_asked_expected_and_judged(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", traces).text
    assert "first user turn | Make the lamp of order O-0 green." in text
    assert "expected call, made differently at step 3" in text
    assert "(differs in lamp)" in text
    assert "name | desk-0" in text
    assert "verifier_message: the lamp is red, not green" in text
    assert "4 repeats: 2 passed, 2 failed (in order 1 0 1 0; 1 passes)" in text
    assert f"{tokens(text):,} tokens of {BUDGET:,}" in text


def test_an_expected_call_that_was_made_is_told_as_made(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", traces, repeat=0).text
    assert "expected calls that were made, with their steps | write_order [3]" in text
    assert "expected call, " not in text


def test_a_row_that_broke_takes_the_task_from_its_siblings(desk: Session) -> None:
    of, traces = known(desk)
    broken = rollout([], error="connection reset", responses_create_params=None)
    text = dossier(of, "0", [broken, traces[0]], repeat=1).text
    assert "first user turn | Make the lamp of order O-0 green." in text
    assert 'expected call, not made in repeat 1 | write_order {"order":"O-0","lamp":"green"}' in text
    assert "error: connection reset" in text


def test_that_no_call_is_expected_is_told(desk: Session) -> None:
    of, _ = known(desk)
    text = dossier(of, "0", [rollout([make_message("done")], expected_actions=[])]).text
    assert "no call is expected" in text
    assert not strangers(text)


def test_the_rollout_in_focus_is_the_blamed_one_or_the_one_asked_for(desk: Session) -> None:
    of, traces = known(desk)
    blamed = of.attribution["0"].repeat
    assert focus(dossier(of, "0", traces).text) == blamed
    for repeat in range(4):
        assert focus(dossier(of, "0", traces, repeat=repeat).text) == repeat


def test_the_rollout_in_focus_is_set_beside_a_passing_repeat(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", traces).text
    assert "in focus repeat 1, 2 calls | read_order > write_order" in text
    assert "passing repeat 0, 2 calls | read_order > write_order" in text
    assert 'first different call, in focus [3] call | write_order {"order":"O-0","lamp":"red"}' in text
    assert 'first different call, passing [3] call | write_order {"order":"O-0","lamp":"green"}' in text
    assert "passing [5] message, its last words | Done: the lamp of O-0 is green now." in text


def test_a_rollout_that_stops_calling_is_told_from_one_that_goes_on(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", [traces[0], rollout([make_message("I cannot help.")])]).text
    assert "in focus repeat 1: no calls" in text
    assert "first different call, in focus: none, it makes no further call" in text
    assert 'first different call, passing [1] call | read_order {"order":"O-0"}' in text
    assert not strangers(text)


def test_equal_calls_have_no_first_difference(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", [traces[0], traces[2]], repeat=2).text
    assert "in focus repeat 2, 2 calls" in text
    assert "first different call" not in text


def test_a_task_without_a_passing_repeat_has_no_other_side(desk: Session) -> None:
    of, traces = known(desk)
    assert "beside a passing rollout" not in dossier(of, "0", [traces[1], traces[3]]).text


def test_the_cause_comes_with_its_group_and_the_confidence_as_a_word(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", traces).text
    assert "cause: BI, behaviour (the model could do it and went about it wrongly), proved" in text
    group = of.group(of.attribution["0"].group)
    assert group is not None
    assert f"failure group {group.id} | {group.name}" in text
    assert f"group in words | {group.text}" in text
    assert (
        "in the whole run: 4 failures in 2 tasks, 16.7 points of the score; 0 passing rollouts show it too"
        in text
    )
    assert "where: repeat 1, step 3" in text


def test_reasons_for_and_against_are_listed(desk: Session) -> None:
    _, traces = known(desk)
    text = dossier(changed(desk, grounds=("it did so",), against=("it did not",) * 7), "0", traces).text
    assert "for | it did so" in text
    assert text.count("against | it did not") == 5
    assert "against: 2 more in report.json" in text
    assert not strangers(text)


def test_a_group_is_quoted_from_its_example_unless_that_is_read_below(desk: Session) -> None:
    _, traces = known(desk)
    (group,) = desk.report.groups
    for quote, says in (
        (Evidence("rollouts", "1", 3, step=3, quote="red lamp"), "group example | 1/3, step 3: red lamp"),
        (
            Evidence("rollouts", "1", 3, field="verifier_message", quote="not green"),
            "1/3, verifier_message: not green",
        ),
        (Evidence("rollouts", "0", 1, step=3, quote="red"), None),
    ):
        of = facts(
            replace(desk.report, groups=(replace(group, quote=quote, consequences=("a wrong lamp",)),))
        )[0]
        text = dossier(of, "0", traces).text
        assert ("group example" in text) is (says is not None)
        assert says is None or says in text
        assert "consequence | a wrong lamp" in text
        assert not strangers(text)


def test_alarms_and_warnings_of_the_run_are_repeated_and_notes_are_not(desk: Session) -> None:
    _, traces = known(desk)
    (group,) = desk.report.groups
    trust = (
        Trust("rollouts", "alarm", Cause.TASK_OR_VERIFIER, "The grader rejects right answers.", 9, ""),
        Trust("rollouts", "warning", None, group.text, 4, ""),
        Trust("rollouts", "note", None, "Small set.", 24, ""),
    )
    text = dossier(facts(replace(desk.report, trust=trust))[0], "0", traces).text
    assert "alarm on the whole run, TI, 9 rows | The grader rejects right answers." in text
    assert "warning on the whole run, 4 rows | the failure group above" in text
    assert "Small set." not in text
    assert not strangers(text)


def test_without_a_cause_it_says_so_and_what_causes_there_are(desk: Session) -> None:
    _, traces = known(desk)
    unknown = {
        "cause": Cause.UNDETERMINED,
        "confidence": Confidence.UNSURE,
        "group": "",
        "step": None,
        "steps": (),
    }
    text = dossier(changed(desk, **unknown), "0", traces).text
    assert "undetermined: the rows do not decide the cause; judge it from what follows" in text
    for cause in Cause:
        assert cause is Cause.UNDETERMINED or f" {cause.value} " in text
    assert "failure group" not in text
    assert "where: no step is named" in text
    assert "--cause CAUSE" in text


def test_a_judgement_stands_beside_what_the_engine_proposes(desk: Session) -> None:
    _, traces = known(desk)
    judged = {
        "judged_by": "ann",
        "proposed": Cause.UNRELIABLE_KNOWLEDGE,
        "proposed_confidence": Confidence.LIKELY,
    }
    text = dossier(changed(desk, cause=Cause.BEHAVIOUR, disputed=True, **judged), "0", traces).text
    assert "judged: BI, behaviour (" in text
    assert "the engine proposes UK, unreliable knowledge, likely; the judges disagree" in text
    assert "judged by | ann" in text
    assert not strangers(text)


def test_a_task_that_passes_has_a_short_dossier_without_a_label_to_fill_in(desk: Session) -> None:
    of, _ = known(desk)
    text = dossier(of, "5", desk.traces(desk.loaded[0], "5")).text
    assert "no cause: this task loses no points" in text
    assert not [line for line in commands(text) if "label" in line]
    assert tokens(text) < BUDGET / 2


def test_steps_that_are_left_out_are_said_with_how_to_see_them(desk: Session) -> None:
    of, _ = known(desk)
    output = [make_message(f"thought {number} " + "and so on " * 30) for number in range(300)]
    text = dossier(of, "0", [rollout(output)]).text
    left = [line for line in text.splitlines() if "left out: --steps" in line]
    assert left
    covered = sum(
        int(line.split(":")[-1].rstrip(")")) - int(line.split("--steps ")[1].split(":")[0]) for line in left
    )
    seen = [number for number in range(300) if shown(text, 1, number) is not None]
    assert covered + len(seen) == 300
    assert {0, 299} <= set(seen)


def test_what_is_quoted_of_a_long_step_is_in_it(desk: Session) -> None:
    needle = "the total price is 305 and not 255"
    trace = rollout([make_message("hello"), make_message("x" * 30_000 + needle + "y" * 30_000)])
    evidence = (Evidence("rollouts", "0", 1, step=1, quote=needle),)
    for step in (1, None):  # blamed and quoted, or quoted alone
        of = changed(desk, step=step, steps=(), evidence=evidence)
        said = shown(dossier(of, "0", [trace]).text, 1, 1)
        assert said is not None
        assert needle in said


def test_a_larger_budget_tells_more(desk: Session) -> None:
    of, _ = known(desk)
    output = [make_message(f"thought {number} " + "and so on " * 200) for number in range(60)]
    sizes = [dossier(of, "0", [rollout(output)], budget).tokens for budget in (LEAST, 1500, 3000, 12_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 3 * sizes[0]


def test_the_smallest_budget_still_holds_the_proposal_and_the_command(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", traces, LEAST).text
    for heading in ("## outcomes", "## proposal of the engine", "## rollout in focus"):
        assert heading in text
    assert any(line.startswith("blade label") for line in commands(text))
    blamed = of.attribution["0"]
    assert blamed.repeat is not None
    assert blamed.step is not None
    assert shown(text, blamed.repeat, blamed.step) is not None


@pytest.mark.parametrize("budget", [LEAST - 1, 0, -5, 10**9])
def test_a_budget_that_nothing_fits_in_is_refused(desk: Session, budget: int) -> None:
    of, traces = known(desk)
    with pytest.raises(UsageError, match="out of range") as refused:
        dossier(of, "0", traces, budget)
    assert str(LEAST) in refused.value.hint


def test_every_command_parses(desk: Session) -> None:
    from blade.cli.main import cli

    of, traces = known(desk)
    lines = commands(dossier(of, "0", traces).text)
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "blade"
        with click.Context(cli) as context:
            command = cli.get_command(context, words[1])
        assert command is not None
        command.make_context(words[1], words[2:])


def test_a_rollout_without_steps_is_labelled_by_a_field(planted: Written) -> None:
    _, asked = planted("empty_run", 1.0)
    of, traces = known(asked)
    text = dossier(of, "0", traces).text
    (label,) = (line for line in commands(text) if line.startswith("blade label"))
    assert " --field " in label
    assert " --step " not in label
    assert "where: no step is named" in text
    assert "alarm on the whole run, IR, 23 rows | the failure group above" in text


def test_a_task_without_rows_still_has_its_proposal(desk: Session) -> None:
    of, _ = known(desk)
    text = dossier(of, "0", []).text
    assert "## proposal of the engine" in text
    assert focus(text) is None
    assert not strangers(text)


def test_another_failing_repeat_is_told_by_its_last_change(desk: Session) -> None:
    of, traces = known(desk)
    text = dossier(of, "0", traces, repeat=1).text
    assert 'repeat 3 [3] call | write_order {"order":"O-0","lamp":"red"}' in text


def test_checks_that_were_not_met_are_named_first(desk: Session) -> None:
    of, _ = known(desk)
    checks = [{"check": {"name": f"check_{number}"}, "met": number != 7} for number in range(40)]
    trace = rollout([make_message("done")], verifier={"checks": checks})
    assert "verifier: not met: check_7 (met); " in dossier(of, "0", [trace]).text


def test_differing_duplicates_do_not_confuse_it(desk: Session) -> None:
    of, traces = known(desk)
    twice = [*traces, rollout([make_message("another row of the same key")], repeat=1)]
    assert "another row" not in dossier(of, "0", twice, repeat=1).text


def test_the_result_of_a_call_that_failed_is_marked(desk: Session) -> None:
    of, _ = known(desk)
    output = [make_call("c", "go"), make_result("c", "Error: no such order"), make_call("d", "go")]
    text = dossier(of, "0", [rollout(output)]).text
    assert "[0] call, failed | go" in text or "[0]* call, failed | go" in text
    assert "call, never answered | go" in text


def test_the_attribution_is_not_needed(desk: Session) -> None:
    found: tuple[Attribution, ...] = ()
    of = facts(replace(desk.report, attributions=found))[0]
    assert not strangers(dossier(of, "0", known(desk)[1]).text)
