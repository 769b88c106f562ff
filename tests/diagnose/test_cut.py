"""Rung 3: was the rollout stopped from outside?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.diagnose.builders import desk, desk_acts, desk_row
from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Act, Key, Made, Row, grid, key_of, make_row, struck

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


@pytest.mark.parametrize(("is_counted", "is_shared"), [(True, False), (False, False), (True, True)])
def test_limit_is_told_by_its_reason_and_its_tokens(diagnose: Diagnose, is_counted: bool, is_shared: bool) -> None:
    """The reason says more than the status; the tokens are told only where all cut rows and no others have the maximum."""
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0, [*looks(task, 3), f"Page {task} says that number {repeat}"]))
    for place, row in enumerate(rows):
        is_cut = key_of(row) in CUT
        used = 2048 if is_cut or (is_shared and place % 3 == 0) else 300 + place * 7
        stop = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}} if is_cut else {"status": "completed"}
        row["response"].update({**stop, **({"usage": {"output_tokens": used}} if is_counted else {})})
    group = diagnose(rows).shows(CUT, "cut TI alarm")
    assert "max_output_tokens" in group.name
    assert "incomplete_details.reason" in group.fix
    assert ("`response.usage.output_tokens` = 2,048, the maximum in the run" in group.text) == (is_counted and not is_shared)


def noted(field: str, cut: str, other: str = "finished", keys: set[Key] = CUT, rate: float = 0.85) -> Made:
    """A desk whose rows note how they ended: some fail, with a note of their own."""
    rows = [
        desk_row(*key, 0.0 if key in keys else row["reward"], **{field: cut if key in keys else other})
        for key, row in desk(rate=rate).items()
    ]
    return rows, keys


def test_limit_that_the_grader_reports_about_the_work_is_a_verdict(diagnose: Diagnose) -> None:
    """The submitted work was too slow for the test; nobody cut the rollout."""
    rows = planted(lambda task, repeat: desk_row(task, repeat, 0.0, test_status="time limit exceeded"))
    for row in rows:
        row.setdefault("test_status", "accepted" if row["reward"] else "wrong output")
    diagnose(rows).shows(CUT, "verdicts undetermined", "time limit exceeded")


def test_usual_rate_is_taken_among_rows_that_earlier_rungs_left(diagnose: Diagnose) -> None:
    """24 crashed rows must not lower the rate that the cut rows are compared with: 25% against 83%."""
    rows = []
    for task in range(12):
        rows += [make_row(task, repeat, 0.0, (), fault="the desk was closed", stop_reason="none") for repeat in (0, 1)]
        rows.append(desk_row(task, 2, float(task % 4 == 0), stop_reason="length"))
        rows.append(desk_row(task, 3, float(task % 6 > 0), stop_reason="stop"))
    holders = diagnose(rows).holders({(task, 2) for task in range(12) if task % 4})
    assert {(group.rung, group.label.value) for group in holders} == {("cut", "TI")}


# ---- A call that nothing answers -----------------------------------------------------------------


def unanswered(rate: float = 0.85, n: Callable[[int], int] = lambda task: 9) -> Made:
    return planted(lambda task, repeat: desk_row(task, repeat, 0.0, looks(task, n(task), last_answered=False)), rate=rate), CUT


def never_answered() -> list[Row]:
    """All rows end on an unanswered `close_desk`; four in five pass."""
    return [
        desk_row(*key, row["reward"], [*desk_acts(*key, key[0])[:-1], ("close_desk", {"desk": key[0]}, None)])
        for key, row in desk(rate=0.8).items()
    ]


AGAIN = set(sorted(CUT)[::3])  # a third of those that are cut


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
    run.shows(CUT - AGAIN if is_same else CUT, "cut TI alarm")
    assert not is_same or run.shows(AGAIN, "cut BI").name == "repeats one call until it is stopped"


@pytest.mark.parametrize("is_even", [True, False])
def test_turn_limit_is_named_where_all_stop_after_as_many_turns(diagnose: Diagnose, is_even: bool) -> None:
    text = diagnose(unanswered(n=lambda task: 9 if is_even else 8 + task % 3)[0]).group(CUT).text
    assert ("after 9 turns" in text) == ("a turn limit is the likely reason" in text) == is_even
    assert ("after 8 to 10 turns" in text) == ("the rows do not say what stopped them" in text) == (not is_even)


# ---- Spikes at a maximum -------------------------------------------------------------------------


def lengths(n_cut: int, reward_below: Callable[[int], float]) -> Iterator[Row]:
    """Rollouts of 3 to 9 calls that file what they found, and those of `CUT` with exactly `n_cut` calls that do not."""
    for place, (task, repeat) in enumerate(grid(12, 4)):
        if (task, repeat) in CUT:
            yield desk_row(task, repeat, 0.0, [*looks(task, n_cut), f"On to page {n_cut + place}."])
        else:
            end: Act = ("file_notice", {"page": task}, f"Filed {task}.")
            acts = [*looks(task, 2 + place % 7), end, f"Notice {task} says so." + " Really." * (place % 5)]
            yield desk_row(task, repeat, reward_below(place), acts)


def all_pass_below() -> list[Row]:
    """The episode stops on success, on whatever step that is: failing is what makes a rollout long."""
    rows = list(lengths(14, lambda place: 1.0))
    for row in rows:
        row["response"]["output"] = [item for item in row["response"]["output"] if item["type"] != "message"]
    return rows


@pytest.mark.parametrize(("is_ended", "label"), [(False, "undetermined"), (True, "TI")])
def test_limit_where_success_ends_a_rollout(diagnose: Diagnose, is_ended: bool, label: str) -> None:
    """Guesses go on until one is right: what fails reaches the limit for whatever reason. Where any guess ends it, the limit cut."""
    rows = []
    for task, repeat in grid(60, 1):
        guess: Act = ("guess_owner", {"name": f"{'owner' if task % 2 else 'cousin'} {task}", "is_sure": True}, "Noted.")
        if task % 4 == 0:
            acts = looks(task, 12)
        elif task % 2 or is_ended:  # a wrong guess hands the errand in too
            acts = [*looks(task, 2 + task % 7), guess]
        else:
            acts = [*looks(task, 3), guess, *looks(task + 100, 8)]
        rows.append(make_row(task, repeat, float(task % 2), acts))
    run = diagnose(rows)
    limited = {(task, 0) for task in range(0, 60, 4)}
    assert run.labels(limited) == {label}
    assert any(entry.label == "TI" for entry in run.trust) == is_ended


def test_rollouts_that_loop_at_a_limit_are_told_apart(diagnose: Diagnose) -> None:
    """A third of those that reach the limit repeat one call; the others were at work when it came."""
    rows = list(lengths(14, lambda place: float(place % 4 > 0)))
    for row in rows:
        task, repeat = key_of(row)
        if (task, repeat) in AGAIN:
            again: list[Act] = [("check_address", {"street": "?"}, "nothing here")] * 8
            row["response"]["output"] = desk_row(task, repeat, 0.0, [*looks(task, 6), *again, f"On to page {task}."])["response"]["output"]
    run = diagnose(rows)
    assert (run.group(AGAIN).label, run.group(CUT - AGAIN).label) == ("BI", "TI")


@pytest.mark.parametrize("how", ["filed", "recorded"])
def test_rollouts_at_the_maximum_that_end_by_themselves_are_no_cut(diagnose: Diagnose, how: str) -> None:
    """A third of those at the maximum file what they found as the passes do, or record that they gave up."""
    rows = list(lengths(14, lambda place: float(place % 4 > 0)))
    for place, row in enumerate(rows):
        task, repeat = key_of(row)
        if how == "filed" and (task, repeat) in AGAIN:
            acts = [*looks(task, 13), ("file_notice", {"page": task}, f"Filed {task}."), f"Notice {place} says so."]
            rows[place] = desk_row(task, repeat, 0.0, acts)
        elif how == "recorded" and ((task, repeat) in AGAIN or (task, repeat) not in CUT):
            row["stop_note"] = "gave up" if (task, repeat) in AGAIN else "filed"
    run = diagnose(rows)
    (group,) = run.of_rung("cut")
    assert (group.label.value, run.keys(group)) == ("TI", CUT - AGAIN)


@pytest.mark.parametrize("street", ["?", "? {}"])
def test_loop_before_the_maximum_is_behaviour(diagnose: Diagnose, street: str) -> None:
    """The acts before the limit repeat one call, or run into one error: the limit only ends what had failed."""
    rows = []
    again: list[Act] = [("check_address", {"street": street.format(n)}, "error: a street needs a name") for n in range(12)]
    for place, (task, repeat) in enumerate(grid(12, 4)):
        acts = [*looks(task, 3 + place % 7), f"Notice {task} says so." + " Really." * (place % 5)]
        is_cut = (task, repeat) in CUT
        rows.append(desk_row(task, repeat, 0.0 if is_cut else float(place % 4 > 0), [*looks(task, 2), *again] if is_cut else acts))
    run = diagnose(rows)
    assert run.group(CUT).label == "BI"
    assert not [entry for entry in run.alarms if entry.label == "TI"]


def numbered(field: str) -> Made:
    """A limit under a name that nothing knows; the rollouts end in the middle of their work."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_cut = (task, repeat) in CUT
        amount = 60 if is_cut else 11 + (place * 17) % 41
        name, _, inner = field.partition(".")
        acts = [*looks(task, 3 + place % 4), f"On to page {place}."] if is_cut else None
        reward = 0.0 if is_cut else float(place % 5 > 0)
        rows.append(desk_row(task, repeat, reward, acts, **{name: {inner: amount} if inner else amount}))
    return rows, CUT


def evenings() -> Iterator[Row]:
    """`evening` is the longest answer, the commonest and mostly wrong: a habit of the model, not a limit of seven letters."""
    for task, repeat in grid(16, 3):
        gold = ("dawn", "noon", "night", "evening")[task % 4]
        answer = gold if (task + repeat) % 5 == 0 else "evening"
        prompt = f"When does branch {task} lend most: dawn, noon, night or evening? One word."
        yield make_row(task, repeat, float(answer == gold), [answer], prompt=prompt, expected_answer=gold)


@struck
def given(field: str, is_hard: bool = True, rate: int = 7) -> Iterator[tuple[Row, bool]]:
    """Thirty tasks with an amount of their own, the same in all repeats; six have exactly the largest, and fail in the middle.

    Of those one in `rate` passes.
    """
    for place, (task, repeat) in enumerate(grid(30, 4)):
        is_largest = task % 5 == 4
        fails = place % rate > 0 if is_largest and is_hard else place % 5 == 0
        is_cut = is_largest and fails
        acts: list[Act] | None = [*looks(task, 3 + place % 4), f"On to page {place}."] if is_cut else None
        yield {**desk_row(task, repeat, float(not fails), acts), field: 8192 if is_largest else 900 + task * 137}, is_cut


def letters(is_cut: Callable[[str], str], tokens: int | None) -> Iterator[Row]:
    """A desk that writes letters; those of `CUT` are cut by a rule, all at the same number of tokens if given."""
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
        yield make_row(task, repeat, reward, [text], prompt=prompt, response=response)


def test_empty_at_a_shared_token_count(diagnose: Diagnose) -> None:
    """The tokens were spent, nothing was said: a limit of the harness, which counts as infrastructure too."""
    run = diagnose(letters(lambda whole: "", 2048))
    group = run.group(CUT)
    assert (group.label in ("TI", "IR"), "2,048" in group.text, "alarm" in run.levels(CUT)) == (True, True, True)


def without_a_stop() -> list[Row]:
    """Failing letters end on a word, and so do passing ones: an ending that is not rare proves nothing."""
    rows = list(letters(lambda whole: whole, None))
    for row in rows:
        row["response"]["output"][0]["content"][0]["text"] += "\nThe desk wishes you well"
    return rows


FORM = [f"{name} of the {what}" for name in ("Number", "Weight", "Colour", "Height") for what in ("parcel", "label", "string", "stamp")]
SLIP = [f"{name} of the letter" for name in ("Number", "Weight", "Colour", "Height")] + [f"Stamp {sign} of the letter" for sign in "abcdefgh"]


def forms(how: str) -> Iterator[Row]:
    """Forms whose lines the prompt gives. Those of `CUT` stop after a whole line, or are complete: their prompt goes on with what is
    no line of the form, or they fill in most of it in another order."""
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_hit = (task, repeat) in CUT
        lines, close = FORM, "Thank you for filling this in."
        filled = {"cut": FORM[:13], "order": [*FORM[13:], *FORM[2:13]], "whole": SLIP}[how] if is_hit else FORM
        if how == "whole" and is_hit:
            lines, close = SLIP, "Hand it to the counter: it closes at nine."
        prompt = "\n".join([f"Fill in this form about folder {place}.", *(f"{line}: …" for line in lines), close])
        text = "\n".join(f"{line}: {place * 31 + n}" for n, line in enumerate(filled))
        yield make_row(task, repeat, 0.0 if is_hit else float(place % 5 > 0), [text], prompt=prompt)


def test_repetition_inside_one_text_is_a_loop(diagnose: Diagnose) -> None:
    """One sentence again and again until the tokens run out: the cut is the consequence."""
    rows = list(letters(lambda whole: whole[:60] + "The fee is due. " * 400 + "The fee", 2048))
    for row in rows:
        if key_of(row) in CUT:
            row["response"]["incomplete_details"] = {"reason": "max_output_tokens"}
    run = diagnose(rows)
    assert run.group(CUT).label == "BI"
    assert not [entry for entry in run.alarms if entry.label in ("TI", "IR")]


@struck
def remarks(path: str, passes: int) -> Iterator[tuple[Row, bool]]:
    """Notes that a judge remarks on; a third of the remarks has exactly the largest length, and so many of those pass."""
    for place, (task, repeat) in enumerate(grid(24, 3)):
        is_longest = place % 3 == 0
        reward = float(place // 3 < passes) if is_longest else float(place % 5 > 0)
        amount = 512 if is_longest else 180 + place * 4
        name, _, inner = path.partition(".")
        note = f"Note {place} on folder {task}." + " It is filed." * (place % 4)
        yield make_row(task, repeat, reward, [note], **{name: {inner: amount, "style": place % 7}}), is_longest and not reward


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


# ---- One line for each claim -----------------------------------------------------------------------

PROVED = {
    "stop reason": (lambda: noted("stop_reason", "turn limit reached"), "cut TI alarm", "turn limit reached"),
    "finish status": (lambda: noted("finish_status", "turn limit reached"), "cut TI alarm", "turn limit reached"),
    "few rows": (lambda: noted("stop_reason", "length", "stop", {(1, 1), (5, 2), (9, 0)}, 0.6), "cut TI warning"),
    "unanswered in some rows": (unanswered, "cut TI alarm"),
    "every rollout": (  # row 4 of "why a new core"
        lambda: ([desk_row(*key, 0.0, looks(sum(key), 10, last_answered=False)) for key in grid(12, 4)], set(grid(12, 4))), "cut TI alarm", "10",
    ),
    "calls": (lambda: (lengths(14, lambda place: float(place % 4 > 0)), CUT), "cut TI alarm", "stopped at 1"),
    "number of any name": (lambda: numbered("moves_used"), "cut TI alarm", "60", "moves_used"),
    "number in an object": (lambda: numbered("telemetry.ink"), "cut TI alarm", "60", "ink"),
    "prompt tokens": (lambda: given("prompt_tokens"), "cut TI", "8,192 `prompt_tokens`", "in all repeats of these tasks"),
    "input length": (lambda: given("input_length"), "cut TI", "8,192 `input_length`"),
    "context size": (lambda: given("context_size"), "cut TI", "8,192 `context_size`"),
    "input of which enough is left": (lambda: given("prompt_tokens", rate=3), "cut TI", "8,192 `prompt_tokens`"),
    "open fence": (lambda: (letters(lambda whole: whole[: whole.rindex("```")].rstrip(), None), CUT), "cut TI alarm"),
    "line of the prompt": (lambda: (letters(lambda whole: whole[: whole.index("Yours") + 9], None), CUT), "cut TI alarm"),
    "middle of a sentence": (lambda: (letters(lambda whole: whole[: whole.index(" crowns") - 5], 64), CUT), "cut TI alarm", "middle"),
    "form": (lambda: (forms("cut"), CUT), "cut TI alarm", "answer cut off in the middle"),  # a third stops after the same whole line
    "remark": (lambda: remarks("remark.tokens_out", 0), "cut TI", "512"),
}
INNOCENT = {
    "healthy": lambda: desk().values(),
    "rows that end so and pass as usual": lambda: [
        desk_row(*key, float(place % 2) if key in CUT else row["reward"], stop_reason="length" if key in CUT else "stop")
        for place, (key, row) in enumerate(desk(rate=0.6).items())
    ],
    "wavelength": lambda: noted("stop_note", "wavelength agreed"),
    "unlimited": lambda: noted("stop_note", "unlimited plan"),
    "climax": lambda: noted("stop_note", "climax of the tour"),
    "a harness that never answers the last call": never_answered,
    "nearly all below pass": all_pass_below,
    "a spike that passes as usual": lambda: [
        {**row, "reward": float(place % 3 > 0)} for place, row in enumerate(lengths(14, lambda place: float(place % 3 > 0)))
    ],
    "short complete answers of one length": evenings,
    "difficulty": lambda: given("difficulty"),
    "iteration": lambda: given("iteration"),
    "largest input that passes as usual": lambda: given("prompt_tokens", is_hard=False),
    "no full stop": without_a_stop,
    "a whole form": lambda: forms("whole"),
    "a form in another order": lambda: forms("order"),
    "a largest number that is no text": lambda: remarks("remark.shelf", 0),
    "a largest remark that passes": lambda: remarks("remark.tokens_out", 6),
}
