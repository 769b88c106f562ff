"""Rung 3: was the rollout stopped from outside?"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.diagnose.builders import (
    Act,
    Diagnose,
    Key,
    Row,
    desk,
    desk_acts,
    desk_row,
    grid,
    make_row,
    told_of,
)

CUT = {(task, task % 4) for task in range(12)} | {(task, (task + 2) % 4) for task in range(4)}


def planted(make: Callable[[int, int], Row], rate: float = 0.85) -> list[Row]:
    """An ordinary run at the desk with the rows of `CUT` made otherwise."""
    return [make(*key) if key in CUT else row for key, row in desk(rate=rate).items()]


def looks(task: int, n: int, last_answered: bool = True) -> list[Act]:
    """Calls that all differ, the last one with or without an answer."""
    acts: list[Act] = [("read_notice", {"page": task * 50 + page}, f"Page {page} of the notice.") for page in range(n)]
    if not last_answered:
        acts[-1] = ("read_notice", {"page": task * 50 + n}, None)
    return acts


# ---- Stop reasons --------------------------------------------------------------------------------


def test_incomplete_response(diagnose: Diagnose) -> None:
    stop = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}

    def make(task: int, repeat: int) -> Row:
        text = f"First I look at shelf {task}, then at the ledger of week {repeat + 3}, where number {task}"
        return desk_row(task, repeat, 0.0, [*desk_acts(task, repeat, random.Random(task))[:-2], text], response=stop)

    group = diagnose(planted(make)).proved(CUT, "cut", "TI", "alarm")
    assert "max_output_tokens" in told_of(group) or "incomplete" in told_of(group)


@pytest.mark.parametrize(("is_counted", "is_shared"), [(True, False), (False, False), (True, True)])
def test_limit_is_told_by_its_reason_and_its_tokens(diagnose: Diagnose, is_counted: bool, is_shared: bool) -> None:
    """The reason says more than the status; the tokens are told only where all cut rows and no others have the maximum."""
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0, [*looks(task, 3), f"Page {task} says that number {repeat}"]))
    for place, row in enumerate(rows):
        is_cut = (row["_ng_task_index"], row["_ng_rollout_index"]) in CUT
        used = 2048 if is_cut or (is_shared and place % 3 == 0) else 300 + place * 7
        stop = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}} if is_cut else {"status": "completed"}
        row["response"].update({**stop, **({"usage": {"output_tokens": used}} if is_counted else {})})
    group = diagnose(rows).proved(CUT, "cut", "TI", "alarm")
    assert "max_output_tokens" in group.name
    assert "incomplete_details.reason" in group.fix
    assert ("`response.usage.output_tokens` = 2,048, the maximum in the run" in group.text) == (is_counted and not is_shared)


@pytest.mark.parametrize("field", ["stop_reason", "finish_status"])
def test_stop_reason_in_a_field_of_the_row(diagnose: Diagnose, field: str) -> None:
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0))
    for row in rows:
        key = row["_ng_task_index"], row["_ng_rollout_index"]
        row[field] = "turn limit reached" if key in CUT else "finished"
    assert "turn limit reached" in told_of(diagnose(rows).proved(CUT, "cut", "TI", "alarm"))


def test_few_cut_rows_are_a_warning(diagnose: Diagnose) -> None:
    few = {(1, 1), (5, 2), (9, 0)}
    rows = [
        desk_row(*key, 0.0 if key in few else row["reward"], stop_reason="length" if key in few else "stop")
        for key, row in desk(rate=0.6).items()
    ]
    diagnose(rows).proved(few, "cut", "TI", "warning")


def test_stop_reason_of_rows_that_pass_as_usual_is_innocent(diagnose: Diagnose) -> None:
    rows = []
    for place, (key, row) in enumerate(desk(rate=0.6).items()):
        reward = float(place % 2) if key in CUT else row["reward"]
        rows.append(desk_row(*key, reward, stop_reason="length" if key in CUT else "stop"))
    assert diagnose(rows).of_rung("cut") == []


@pytest.mark.parametrize("value", ["wavelength agreed", "unlimited plan", "climax of the tour"])
def test_stop_words_match_whole_words(diagnose: Diagnose, value: str) -> None:
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0))
    for row in rows:
        key = row["_ng_task_index"], row["_ng_rollout_index"]
        row["stop_note"] = value if key in CUT else "finished"
    assert diagnose(rows).of_rung("cut") == []


def test_limit_that_the_grader_reports_about_the_work_is_a_verdict(diagnose: Diagnose) -> None:
    """The submitted work was too slow for the test; nobody cut the rollout."""
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0))
    for row in rows:
        key = row["_ng_task_index"], row["_ng_rollout_index"]
        row["test_status"] = "time limit exceeded" if key in CUT else "accepted" if row["reward"] else "wrong output"
    run = diagnose(rows)
    assert run.of_rung("cut") == []
    assert "TI" not in run.labels(CUT)
    assert "time limit exceeded" in told_of(run.group(CUT))


def test_usual_rate_is_taken_among_rows_that_earlier_rungs_left(diagnose: Diagnose) -> None:
    """24 crashed rows must not lower the rate that the cut rows are compared with: 25% against 83%."""
    keys = grid(12, 4)
    crashed = {key for key in keys if key[1] < 2}
    cut = {key for key in keys if key[1] == 2}
    rows = []
    for task, repeat in keys:
        if (task, repeat) in crashed:
            rows.append(make_row(task, repeat, 0.0, (), fault="the desk was closed", stop_reason="none"))
        elif (task, repeat) in cut:
            rows.append(desk_row(task, repeat, float(task % 4 == 0), stop_reason="length"))
        else:
            rows.append(desk_row(task, repeat, float(task % 6 > 0), stop_reason="stop"))
    run = diagnose(rows)
    failing = {(task, repeat) for task, repeat in cut if task % 4}
    assert {(group.rung, group.label.value) for group in run.holders(failing)} == {("cut", "TI")}


# ---- A call that nothing answers -----------------------------------------------------------------


def test_every_rollout_stops_at_ten_calls_with_the_last_unanswered(diagnose: Diagnose) -> None:
    """Row 4 of "why a new core"."""
    rows = [desk_row(*key, 0.0, looks(key[0] + key[1], 10, last_answered=False)) for key in grid(12, 4)]
    run = diagnose(rows)
    group = run.proved(run.failing, "cut", "TI", "alarm")
    assert "10" in group.text
    assert "empty" not in run.said.lower()


def test_unanswered_last_call_in_some_rows(diagnose: Diagnose) -> None:
    run = diagnose(planted(lambda task, repeat: desk_row(task, repeat, 0.0, looks(task, 9, last_answered=False))))
    group = run.proved(CUT, "cut", "TI", "alarm")
    assert group.quote is not None
    assert "page" in (group.quote.quote or "")


def test_harness_that_never_answers_the_last_call_is_innocent(diagnose: Diagnose) -> None:
    """All rows end on an unanswered `close_desk`; four in five pass."""
    rows = []
    for key, row in desk(rate=0.8).items():
        acts = [*desk_acts(*key, random.Random(key[0]))[:-1], ("close_desk", {"desk": key[0]}, None)]
        rows.append(desk_row(*key, row["reward"], acts))
    assert diagnose(rows).of_rung("cut") == []


def test_unanswered_call_is_not_refuted_by_stop_on_success(diagnose: Diagnose) -> None:
    """Below ten calls everything passes; at ten calls all end on an unanswered one: still cut off."""
    rows = []
    for task, repeat in grid(12, 4):
        if (task, repeat) in CUT:
            rows.append(desk_row(task, repeat, 0.0, looks(task, 10, last_answered=False)))
        else:
            rows.append(desk_row(task, repeat, 1.0, [*looks(task, 2 + (task + repeat) % 7), "The notice is found."]))
    diagnose(rows).proved(CUT, "cut", "TI", "alarm")


AGAIN = set(sorted(CUT)[::3])


@pytest.mark.parametrize("is_same", [True, False])
def test_unanswered_call_that_is_made_for_the_third_time_is_a_loop(diagnose: Diagnose, is_same: bool) -> None:
    """The others, and those whose last call is another one, were at work when they were stopped."""

    def make(task: int, repeat: int) -> Row:
        if (task, repeat) not in AGAIN:
            return desk_row(task, repeat, 0.0, looks(task, 9, last_answered=False))
        again: list[Act] = [("check_address", {"street": "?"}, "Nothing here.")] * (2 if is_same else 3)
        last: Act = ("check_address", {"street": "?" if is_same else f"Elm Rise {task}"}, None)
        return desk_row(task, repeat, 0.0, [*looks(task, 6 if is_same else 5), *again, last])

    run = diagnose(planted(make))
    if is_same:
        group = run.group(AGAIN)
        assert (group.label.value, group.name) == ("BI", "repeats one call until it is stopped")
        run.proved(CUT - AGAIN, "cut", "TI", "alarm")
    else:
        run.proved(CUT, "cut", "TI", "alarm")


@pytest.mark.parametrize("is_even", [True, False])
def test_turn_limit_is_named_where_all_stop_after_as_many_turns(diagnose: Diagnose, is_even: bool) -> None:
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0, looks(task, 9 if is_even else 8 + task % 3, last_answered=False)))
    text = diagnose(rows).group(CUT).text
    assert ("after 9 turns" in text) == ("a turn limit is the likely reason" in text) == is_even
    assert ("after 8 to 10 turns" in text) == ("the rows do not say what stopped them" in text) == (not is_even)


def test_call_that_ends_the_passes_and_is_never_made(diagnose: Diagnose) -> None:
    """Half of the cut rows had made it before."""
    made = {(task, repeat) for task, repeat in CUT if task % 2}

    def make(task: int, repeat: int) -> Row:
        first: list[Act] = [("redirect_parcel", {"number": task}, "Sent on.")] if (task, repeat) in made else []
        return desk_row(task, repeat, 0.0, [*first, *looks(task, 9 - len(first), last_answered=False)])

    run = diagnose(planted(make, rate=1.0))
    assert f"{len(CUT - made)} never reached `redirect_parcel`" in run.group(CUT).text
    for entry in run.report.attributions:
        assert ("`redirect_parcel` is never called" in entry.mechanism) == (int(entry.task) % 2 == 0), entry.mechanism


@pytest.mark.parametrize("rate", [0.9, 0.0])
def test_others_are_told_where_some_of_them_pass(diagnose: Diagnose, rate: float) -> None:
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0, looks(task, 9, last_answered=False)), rate=rate)
    n = sum(row["reward"] > 0 for row in rows)
    text = diagnose(rows).group(CUT).text
    assert (f" Of the other 32 with an output, {n} pass" in text) == ("other" in text) == (rate > 0)


# ---- Spikes at a maximum -------------------------------------------------------------------------


def lengths(n_cut: int, reward_below: Callable[[int], float]) -> list[Row]:
    """Rollouts of 3 to 9 calls that file what they found, and those of `CUT` with exactly `n_cut` calls that do not."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        if (task, repeat) in CUT:
            rows.append(desk_row(task, repeat, 0.0, [*looks(task, n_cut), f"On to page {n_cut + place}."]))
        else:
            end: Act = ("file_notice", {"page": task}, f"Filed {task}.")
            acts = [*looks(task, 2 + place % 7), end, f"Notice {task} says so." + " Really." * (place % 5)]
            rows.append(desk_row(task, repeat, reward_below(place), acts))
    return rows


def test_spike_of_calls_at_the_maximum(diagnose: Diagnose) -> None:
    group = diagnose(lengths(14, lambda place: float(place % 4 > 0))).proved(CUT, "cut", "TI", "alarm")
    assert "14 " in told_of(group) or "15 " in told_of(group)  # calls, or turns with the message


def test_spike_where_nearly_all_rows_below_pass_is_no_cut(diagnose: Diagnose) -> None:
    """The episode stops on success, on whatever step that is: failing is what makes a rollout long."""
    rows = lengths(14, lambda place: 1.0)
    for row in rows:
        row["response"]["output"] = [item for item in row["response"]["output"] if item["type"] != "message"]
    run = diagnose(rows)
    assert run.of_rung("cut") == []
    assert not run.alarms


@pytest.mark.parametrize(("is_ended", "label"), [(False, "undetermined"), (True, "TI")])
def test_limit_where_success_ends_a_rollout(diagnose: Diagnose, is_ended: bool, label: str) -> None:
    """Guesses go on until one is right: what fails reaches the limit for whatever reason. Where any guess ends it, the limit cut."""
    rows = []
    for task, repeat in grid(60, 1):
        acts = looks(task, 2 + task % 7)
        guess: Act = ("guess_owner", {"name": f"owner {task}", "is_sure": True}, "Noted.")
        if task % 2:
            acts = [*acts, guess]
        elif task % 4 and is_ended:  # a wrong guess hands the errand in
            acts = [*acts, ("guess_owner", {"name": f"cousin {task}", "is_sure": True}, "Noted.")]
        elif task % 4:
            acts = [*looks(task, 3), ("guess_owner", {"name": f"cousin {task}", "is_sure": True}, "Noted."), *looks(task + 100, 8)]
        else:
            acts = looks(task, 12)
        rows.append(make_row(task, repeat, float(task % 2), acts))
    run = diagnose(rows)
    limited = {(task, 0) for task in range(0, 60, 4)}
    assert run.labels(limited) == {label}
    assert any(entry.label == "TI" for entry in run.trust) == is_ended


def test_longest_rollouts_without_a_spike_are_no_cut(diagnose: Diagnose) -> None:
    """Eight lengths, six rollouts each: the longest fail, but no more of them than of any other length."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        n = 3 + (place * 5) % 8
        end: list[Act] = [f"On to page {place}."] if n == 10 else [("file_notice", {"page": task}, "Filed."), "Filed it."]
        rows.append(desk_row(task, repeat, 0.0 if n == 10 else float(place % 4 > 0), [*looks(task, n), *end]))
    assert diagnose(rows).of_rung("cut") == []


def test_spike_of_rows_that_pass_as_usual_is_no_cut(diagnose: Diagnose) -> None:
    rows = lengths(14, lambda place: float(place % 3 > 0))
    for place, row in enumerate(rows):
        row["reward"] = float(place % 3 > 0)
    assert diagnose(rows).of_rung("cut") == []


def test_rollouts_that_loop_at_a_limit_are_told_apart(diagnose: Diagnose) -> None:
    """A third of those that reach the limit repeat one call; the others were at work when it came."""
    loops = set(sorted(CUT)[::3])
    rows = lengths(14, lambda place: float(place % 4 > 0))
    for row in rows:
        task, repeat = row["_ng_task_index"], row["_ng_rollout_index"]
        if (task, repeat) in loops:
            again: list[Act] = [("check_address", {"street": "?"}, "nothing here")] * 8
            row["response"]["output"] = desk_row(task, repeat, 0.0, [*looks(task, 6), *again, f"On to page {task}."])["response"]["output"]
    run = diagnose(rows)
    assert run.group(loops).label == "BI"
    assert run.group(CUT - loops).label == "TI"


@pytest.mark.parametrize("how", ["filed", "recorded"])
def test_rollouts_at_the_maximum_that_end_by_themselves_are_no_cut(diagnose: Diagnose, how: str) -> None:
    """A third of those at the maximum file what they found as the passes do, or record that they gave up."""
    ended = set(sorted(CUT)[::3])
    rows = lengths(14, lambda place: float(place % 4 > 0))
    for place, row in enumerate(rows):
        task, repeat = row["_ng_task_index"], row["_ng_rollout_index"]
        if how == "filed" and (task, repeat) in ended:
            acts = [*looks(task, 13), ("file_notice", {"page": task}, f"Filed {task}."), f"Notice {place} says so."]
            rows[place] = desk_row(task, repeat, 0.0, acts)
        elif how == "recorded" and ((task, repeat) in ended or (task, repeat) not in CUT):
            row["stop_note"] = "gave up" if (task, repeat) in ended else "filed"
    run = diagnose(rows)
    (group,) = run.of_rung("cut")
    assert (group.label.value, run.keys(group)) == ("TI", CUT - ended)


@pytest.mark.parametrize("repeated", ["call", "error"])
def test_loop_before_the_maximum_is_behaviour(diagnose: Diagnose, repeated: str) -> None:
    """The acts before the limit repeat one call, or run into one error: the limit only ends what had failed."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        if (task, repeat) in CUT:
            again: list[Act] = [
                ("check_address", {"street": "?" if repeated == "call" else f"? {n}"}, "error: a street needs a name")
                for n in range(12)
            ]
            rows.append(desk_row(task, repeat, 0.0, [*looks(task, 2), *again]))
        else:
            acts = [*looks(task, 3 + place % 7), f"Notice {task} says so." + " Really." * (place % 5)]
            rows.append(desk_row(task, repeat, float(place % 4 > 0), acts))
    run = diagnose(rows)
    assert run.group(CUT).label == "BI"
    assert not [entry for entry in run.alarms if entry.label == "TI"]


@pytest.mark.parametrize("field", ["moves_used", "telemetry.ink"])
def test_spike_in_a_number_of_any_name(diagnose: Diagnose, field: str) -> None:
    """A limit under a name that nothing knows; the rollouts end in the middle of their work."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_cut = (task, repeat) in CUT
        amount = 60 if is_cut else 11 + (place * 17) % 41
        name, _, inner = field.partition(".")
        told = {name: {inner: amount} if inner else amount}
        acts = [*looks(task, 3 + place % 4), f"On to page {place}."] if is_cut else None
        rows.append(desk_row(task, repeat, 0.0 if is_cut else float(place % 5 > 0), acts, **told))
    group = diagnose(rows).proved(CUT, "cut", "TI", "alarm")
    assert "60" in told_of(group)
    assert field.rpartition(".")[2] in told_of(group)


def test_common_number_below_the_maximum_is_no_cut(diagnose: Diagnose) -> None:
    """As many rows at 60 as before, but others go on beyond it: no limit."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        amount = 60 if (task, repeat) in CUT else 11 + (place * 17) % 83
        reward = 0.0 if (task, repeat) in CUT else float(place % 5 > 0)
        rows.append(desk_row(task, repeat, reward, moves_used=amount))
    assert diagnose(rows).of_rung("cut") == []


def test_short_complete_answers_of_equal_length_are_no_cut(diagnose: Diagnose) -> None:
    """`evening` is the longest answer, the commonest and mostly wrong: a habit of the model, not a limit of seven letters."""
    rows = []
    for task, repeat in grid(16, 3):
        gold = ("dawn", "noon", "night", "evening")[task % 4]
        answer = gold if (task + repeat) % 5 == 0 else "evening"
        prompt = f"When does branch {task} lend most: dawn, noon, night or evening? One word."
        rows.append(make_row(task, repeat, float(answer == gold), [answer], prompt=prompt, expected_answer=gold))
    run = diagnose(rows)
    assert run.of_rung("cut") == []
    assert run.alarms == []


def test_complete_answers_of_one_form_are_no_cut(diagnose: Diagnose) -> None:
    """Failing rows all fill in the same long form, which ends with a full stop."""
    form = "Form 12: the parcel was weighed, labelled, stamped, entered in the ledger and put on the shelf."
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_hit = (task, repeat) in CUT
        text = form if is_hit else f"Parcel {task} weighs {place * 7} ounces." + " It is sealed." * (place % 4)
        rows.append(make_row(task, repeat, 0.0 if is_hit else float(place % 5 > 0), [text]))
    assert diagnose(rows).of_rung("cut") == []


# ---- What the task is given, cut to a limit ------------------------------------------------------


def given(field: str, is_hard: bool = True, rate: int = 7) -> tuple[list[Row], set[Key]]:
    """Thirty tasks with an amount of their own, the same in all repeats; six have exactly the largest, and fail in the middle.

    Of those one in `rate` passes.
    """
    rows: list[Row] = []
    largest = set()
    for place, (task, repeat) in enumerate(grid(30, 4)):
        is_largest = task % 5 == 4
        fails = place % rate > 0 if is_largest and is_hard else place % 5 == 0
        if is_largest and fails:
            largest.add((task, repeat))
        acts: list[Act] | None = [*looks(task, 3 + place % 4), f"On to page {place}."] if is_largest and fails else None
        rows.append({**desk_row(task, repeat, float(not fails), acts), field: 8192 if is_largest else 900 + task * 137})
    return rows, largest


@pytest.mark.parametrize(("field", "rate"), [("prompt_tokens", 7), ("input_length", 7), ("context_size", 7), ("prompt_tokens", 3)])
def test_input_at_a_limit(diagnose: Diagnose, field: str, rate: int) -> None:
    """Of a cut input enough may be left: a third of the rollouts still passes."""
    rows, largest = given(field, rate=rate)
    run = diagnose(rows)
    group = run.group(largest)
    assert (group.rung, group.label.value) == ("cut", "TI")
    assert f"8,192 `{field}`" in group.name
    assert "in all repeats of these tasks" in group.text


@pytest.mark.parametrize("field", ["difficulty", "iteration"])
def test_largest_value_of_what_describes_a_task_is_no_limit(diagnose: Diagnose, field: str) -> None:
    """The hardest tasks have the highest number: nothing was cut to it."""
    rows, _ = given(field)
    assert diagnose(rows).of_rung("cut") == []


def test_largest_input_that_passes_as_usual_is_no_limit(diagnose: Diagnose) -> None:
    rows, _ = given("prompt_tokens", is_hard=False)
    assert diagnose(rows).of_rung("cut") == []


# ---- Texts that stop in the middle ---------------------------------------------------------------


def letters(is_cut: Callable[[str], str], tokens: int | None) -> list[Row]:
    """A desk that writes letters; those of `CUT` are cut by a rule, all at the same number of tokens if given."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        whole = (
            f"Dear owner of parcel {task}.\nWe found it on shelf {repeat + 2}.\nThe fee is {task + 3} crowns.\n"
            f"```\nform {task}\nweek {repeat}\n```\nYours, the desk." + " We open at nine." * (place % 4)
        )
        key: Key = (task, repeat)
        text = is_cut(whole) if key in CUT else whole
        used = tokens if key in CUT else 40 + (place * 7) % 23
        response = {"usage": {"output_tokens": used}} if tokens else None
        reward = 0.0 if key in CUT else float(place % 5 > 0)
        prompt = f"Write to owner {task}.\nClose with these words:\nYours, the desk.\nForm {task} must be in it."
        rows.append(make_row(task, repeat, reward, [text], prompt=prompt, response=response))
    return rows


def test_open_code_fence(diagnose: Diagnose) -> None:
    run = diagnose(letters(lambda whole: whole[: whole.rindex("```")].rstrip(), None))
    run.proved(CUT, "cut", "TI", "alarm")


def test_last_line_that_is_the_beginning_of_a_line_of_the_prompt(diagnose: Diagnose) -> None:
    run = diagnose(letters(lambda whole: whole[: whole.index("Yours") + 9], None))
    run.proved(CUT, "cut", "TI", "alarm")


def test_middle_of_a_sentence_at_a_shared_token_count(diagnose: Diagnose) -> None:
    run = diagnose(letters(lambda whole: whole[: whole.index(" crowns") - 5], 64))
    group = run.proved(CUT, "cut", "TI", "alarm")
    assert "64" in told_of(group) or "middle" in told_of(group)


def test_empty_at_a_shared_token_count(diagnose: Diagnose) -> None:
    """The tokens were spent, nothing was said: a limit of the harness, which counts as infrastructure too."""
    rows = letters(lambda whole: "", 2048)
    run = diagnose(rows)
    group = run.group(CUT)
    assert group.label in ("TI", "IR")
    assert "2,048" in group.text
    assert any(entry.level == "alarm" and run.keys(entry) == CUT for entry in run.trust)


def test_text_without_a_full_stop_is_no_cut(diagnose: Diagnose) -> None:
    """Failing letters end on a word, and so do passing ones: an ending that is not rare proves nothing."""
    rows = letters(lambda whole: whole, None)
    for row in rows:
        row["response"]["output"][0]["content"][0]["text"] += "\nThe desk wishes you well"
    assert diagnose(rows).of_rung("cut") == []


FORM = [f"{name} of the {what}" for name in ("Number", "Weight", "Colour", "Height") for what in ("parcel", "label", "string", "stamp")]
SLIP = [f"{name} of the letter" for name in ("Number", "Weight", "Colour", "Height")] + [f"Stamp {sign} of the letter" for sign in "abcdefgh"]


def forms(how: str) -> list[Row]:
    """Forms whose lines the prompt gives. Those of `CUT` stop after a whole line, or are complete: their prompt goes on with what is
    no line of the form, or they fill in most of it in another order."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_hit = (task, repeat) in CUT
        lines, close = FORM, "Thank you for filling this in."
        filled = {"cut": FORM[:13], "order": [*FORM[13:], *FORM[2:13]], "whole": SLIP}[how] if is_hit else FORM
        if how == "whole" and is_hit:
            lines, close = SLIP, "Hand it to the counter: it closes at nine."
        prompt = "\n".join([f"Fill in this form about folder {place}.", *(f"{line}: …" for line in lines), close])
        text = "\n".join(f"{line}: {place * 31 + n}" for n, line in enumerate(filled))
        rows.append(make_row(task, repeat, 0.0 if is_hit else float(place % 5 > 0), [text], prompt=prompt))
    return rows


def test_form_that_stops_at_a_whole_line_of_the_prompt(diagnose: Diagnose) -> None:
    """A third of all stop after the same line, so that it is the prompt and not their number that shows the cut."""
    group = diagnose(forms("cut")).proved(CUT, "cut", "TI", "alarm")
    assert group.name == "answer cut off in the middle"


@pytest.mark.parametrize("how", ["whole", "order"])
def test_complete_form_is_no_cut(diagnose: Diagnose, how: str) -> None:
    assert diagnose(forms(how)).of_rung("cut") == []


def test_repetition_inside_one_text_is_a_loop(diagnose: Diagnose) -> None:
    """One sentence again and again until the tokens run out: the cut is the consequence."""
    rows = letters(lambda whole: whole[:60] + "The fee is due. " * 400 + "The fee", 2048)
    for row in rows:
        if (row["_ng_task_index"], row["_ng_rollout_index"]) in CUT:
            row["response"]["incomplete_details"] = {"reason": "max_output_tokens"}
    run = diagnose(rows)
    assert run.group(CUT).label == "BI"
    assert not [entry for entry in run.alarms if entry.label in ("TI", "IR")]


def test_healthy_run_is_silent(diagnose: Diagnose) -> None:
    assert diagnose(desk().values()).of_rung("cut") == []


# ---- What another model wrote about a rollout ------------------------------------------------------


def remarks(path: str, passes: int) -> tuple[list[Row], set[Key]]:
    """Notes that a judge remarks on; a third of the remarks has exactly the largest length, and so many of those pass."""
    rows, longest = [], set()
    for place, (task, repeat) in enumerate(grid(24, 3)):
        is_longest = place % 3 == 0
        reward = float(place // 3 < passes) if is_longest else float(place % 5 > 0)
        if is_longest and not reward:
            longest.add((task, repeat))
        amount = 512 if is_longest else 180 + place * 4
        name, _, inner = path.partition(".")
        note = f"Note {place} on folder {task}." + " It is filed." * (place % 4)
        rows.append(make_row(task, repeat, reward, [note], **{name: {inner: amount, "style": place % 7}}))
    return rows, longest


def test_a_remark_at_its_limit(diagnose: Diagnose) -> None:
    rows, longest = remarks("remark.tokens_out", 0)
    group = diagnose(rows).group(longest)
    assert (group.rung, group.label.value) == ("cut", "TI")
    assert "512" in group.name


@pytest.mark.parametrize(("path", "passes"), [("remark.shelf", 0), ("remark.tokens_out", 6)])
def test_a_largest_number_that_is_no_text_or_that_passes(diagnose: Diagnose, path: str, passes: int) -> None:
    rows, _ = remarks(path, passes)
    assert diagnose(rows).of_rung("cut") == []


# ---- First tries that all end in an error ----------------------------------------------------------


@pytest.mark.parametrize("is_barred", [True, False])
def test_first_tries_that_nearly_all_end_in_an_error(diagnose: Diagnose, is_barred: bool) -> None:
    """Tries until one is accepted, and failures whose tries are mostly errors: the first one of all, or of every other errand only."""
    rows = []
    for task in range(40):
        shelf = chr(97 + task % 20) + chr(97 + task // 2)  # another word in each task: no error is common
        n = 4 if task % 2 else 10
        # which tries end in an error, the first apart
        errors = {1} if task % 2 else {1, 3, 4, 6, 7, 9}
        errors |= {0} if is_barred or task % 4 < 2 else set()
        tries: list[Act] = [
            ("ask_ledger", {"page": page, "week": task}, f"Error: no shelf {shelf}{chr(97 + page)}." if page in errors else f"Entry {page}.")
            for page in range(n - task % 3 if task % 2 else n)
        ]
        rows.append(make_row(task, 0, float(task % 2), tries))
    run = diagnose(rows)
    group = run.group(run.failing)
    assert (group.name, group.label.value) == ("most tries end in an error", "undetermined" if is_barred else "BI")
    warnings = [entry.text for entry in run.trust if "first try" in entry.text and entry.level == "warning"]
    assert len(warnings) == is_barred
    assert not is_barred or "The first try of 40 of 40 rollouts ends in an error" in warnings[0]
