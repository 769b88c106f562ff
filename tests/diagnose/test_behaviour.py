"""Rung 9: what do failures do that passes of the same task do not?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.diagnose.builders import desk_acts, desk_row
from tests.diagnose.diagnosed import Diagnose, each, told_of
from tests.diagnose.rows import Act, Key, Made, Row, failing, grid, make_row, struck

FAULTY = {(task, repeat) for task, repeat in grid(16, 4) if (task + 2 * repeat) % 5 < 2}


def work(task: int, repeat: int, checks: bool = True) -> list[Act]:
    """An errand with or without a look at the address book, and always a redirect at the end."""
    acts = desk_acts(task, repeat, task * 100 + repeat)
    return [act for act in acts if checks or not (isinstance(act, tuple) and act[0] == "check_address")]


def run_of(faulty: set[Key], make: dict[Key, list[Act]], n_tasks: int = 16, n_repeats: int = 4) -> list[Row]:
    """Faulty rows fail, others pass ten times in eleven."""
    return [desk_row(*key, float(key not in faulty and place % 11 > 0), make[key]) for place, key in enumerate(grid(n_tasks, n_repeats))]


BAD: Act = ("check_address", {"street": ""}, "error: the street is missing")
Acts = Callable[[int, int, bool], list[Act]]  # of a rollout, and whether it is a faulty one


def omits(task: int, repeat: int, is_faulty: bool) -> list[Act]:
    """Never looks the address up, and redirects all the same."""
    return work(task, repeat, checks=not is_faulty)


def errs(task: int, repeat: int, is_faulty: bool) -> list[Act]:
    """A call with a malformed argument; rows that go on after it never pass."""
    first, *rest = work(task, repeat)
    return [first, *([BAD] if is_faulty else []), *rest]


AGAIN: Act = ("find_parcel", {"number": "unknown"}, "Nothing under that number.")


def loops(task: int, repeat: int, is_faulty: bool) -> list[Act]:
    """The same call again and again, then a give-up; how often differs, so that there is no limit."""
    return [*[AGAIN] * (4 + (task * 3 + repeat) % 5), "I give up."] if is_faulty else work(task, repeat)


def weighs(task: int, repeat: int, is_faulty: bool) -> list[Act]:
    """An errand with a look at the scales, on a day that is written in digits or in words."""
    day = f"{task % 27 + 1} May 2031" if is_faulty else f"2031-05-{task % 27 + 1:02d}"
    return [("read_scales", {"day": day, "desk": task}, f"{task + 3} ounces."), *work(task, repeat)]


def faulty(acts: Acts) -> Made:
    return run_of(FAULTY, {key: acts(*key, key in FAULTY) for key in grid(16, 4)}), FAULTY


def harmless(acts: Acts) -> list[Row]:
    """The same acts, with rewards that have nothing to do with them."""
    return [
        desk_row(*key, float((3 * place + place // 7) % 5 > 1), acts(*key, key in FAULTY)) for place, key in enumerate(grid(16, 4))
    ]


@pytest.mark.parametrize("is_left", [False, True])
def test_loop_that_is_left_before_the_end_is_no_cause(diagnose: Diagnose, is_left: bool) -> None:
    """All look for a number that is not there; some do so four times, and end on it or go on as the others do."""
    acts = {}
    for task, repeat in grid(16, 4):
        rest = work(task, repeat)[-3:-1]  # looks the address up and redirects
        loop = [AGAIN] * (4 if (task, repeat) in FAULTY else 1)
        acts[task, repeat] = [*([*loop, *rest] if is_left else [*rest, *loop]), f"So much for errand {task}."]
    run = diagnose(run_of(FAULTY, acts))
    told = [run.keys(group) for group in run.of_rung("behaviour") if group.name == "repeats one call or one error"]
    assert told == ([] if is_left else [FAULTY])


def looked(task: int, answer: str, number: str | None = None) -> Act:
    return ("search_ledger", {"query": number or f"P-{task + 100}"}, answer)


FOUND = '{{"total": 1, "parcels": [{{"number": "P-{0}"}}]}}'


def finds(nothing: str) -> Acts:
    """The search finds nothing, and the errand is settled all the same."""
    return lambda task, repeat, is_faulty: [looked(task, nothing if is_faulty else FOUND.format(task)), *work(task, repeat)]


def page(task: int, number: int, how: str) -> Act:
    """Two of four entries of a list, with a count of all or with what leads to the rest."""
    rest = '"total": 4' if how == "total" else f'"next_cursor": {json.dumps("" if number else f"c{task}")}'
    entries = ", ".join(json.dumps(f"P-{task}-{2 * number + n}") for n in range(2))
    arguments = {"shelf": task, "from": number} if number else {"shelf": task}
    return ("list_shelf", arguments, f'{{"parcels": [{entries}], {rest}}}')


def pages(how: str, is_whole: bool = False) -> Acts:
    return lambda task, repeat, is_faulty: [
        page(task, 0, how), *([] if is_faulty and not is_whole else [page(task, 1, how)]), *work(task, repeat)
    ]  # fmt: skip


def replies(is_rejected: bool) -> Iterator[Row]:
    """Letters of one turn, some of them under a heading; a judge reads them, and rejects those or any."""
    for place, (task, repeat) in enumerate(grid(16, 4)):
        is_headed = (task, repeat) in FAULTY
        head = f"# Parcel {task}\n" if is_headed else ""
        fails = (place % 9 > 0 if is_headed else place % 11 == 0) if is_rejected else (3 * place + place // 7) % 5 < 2
        text = f"{head}Dear owner, parcel {task} is on shelf {place}." + " It is sealed and dry." * (place % 4)
        yield make_row(task, repeat, float(not fails), [text], prompt=f"Write to the owner of parcel {task}.")


def rejected(run: Iterator[Row]) -> Made:
    rows, fails = failing(run)
    return rows, FAULTY & fails


def test_earlier_act_names_the_group_and_the_later_is_its_consequence(diagnose: Diagnose) -> None:
    """Never looks the owner up, and so asks the visitor and writes to a namesake: one group, named by what came first."""
    acts = {}
    for task, repeat in grid(16, 4):
        is_faulty = (task, repeat) in FAULTY
        first: Act = ("read_order", {"number": task}, f"Order {task} for an owner.")
        book: Act = ("look_up_owner", {"number": task}, f"Owner {task} lives at street {task}.")
        asked: Act = ("ask_visitor", {"text": "Who owns it?"}, "The one with the red door.")
        to = f"{'namesake' if is_faulty else 'owner'} {task}"
        sent: Act = ("send_note", {"to": to, "text": f"Please collect order {task}."}, "Sent.")
        pages: list[Act] = [("read_notice", {"page": n}, f"Page {n}.") for n in range((task + repeat) % 3)]
        acts[task, repeat] = [first, *pages, asked if is_faulty else book, sent, f"Sent for {task}."]
    run = diagnose(run_of(FAULTY, acts))
    group = run.shows(FAULTY, "behaviour BI")
    assert "look_up_owner" in group.name
    assert "ask_visitor" in " ".join(group.consequences)


def long() -> Iterator[Row]:
    """Failing rollouts are longer, as it goes where nothing works; no act sets them apart."""
    for place, (task, repeat) in enumerate(grid(16, 4)):
        fails = (place * 3 + task) % 5 < 2
        notices = [("read_notice", {"page": place * 20 + page}, f"Page {page}.") for page in range((8 if fails else 2) + (place * 7) % 5)]
        yield desk_row(task, repeat, float(not fails), [*notices, *work(task, repeat)])


def test_stop_on_success_is_no_cause(diagnose: Diagnose) -> None:
    """Tries until one works, at most eight: only failures have many tries, and a last one that was refused."""
    rows = []
    for place, (task, repeat) in enumerate(grid(16, 4)):
        fails = (place * 3 + task) % 5 < 2
        n = 8 if fails else 1 + (place * 3) % 6
        tries: list[Act] = [("try_key", {"key": place * 10 + n_try}, "error: the lock stays shut") for n_try in range(n)]
        if not fails:
            tries[-1] = ("try_key", {"key": place * 10 + 9}, "The lock opens.")
        rows.append(desk_row(task, repeat, float(not fails), tries))
    run = diagnose(rows)
    assert run.of_rung("cut") == []
    assert not [group for group in run.of_rung("behaviour") if "repeats" in group.name]


# ---- One try per task ----------------------------------------------------------------------------


def test_one_try_per_task_gives_a_lead(diagnose: Diagnose) -> None:
    skips = {(task, 0) for task in range(0, 80, 4)}
    rows = run_of(skips, {key: work(*key, checks=key not in skips) for key in grid(80, 1)}, 80, 1)
    group = diagnose(rows).shows(skips, "behaviour BI", "a lead")
    assert (group.confidence, any("one try" in reason for reason in group.against)) == ("unsure", True)


@struck
def of_two_kinds(is_cause: bool) -> Iterator[tuple[Row, bool]]:
    """Letters and parcels by their ids, one try each; the address book is left out now and then, and some of that passes.

    It decides within both kinds; or letters are hard, and it is mostly letters that go without.
    """
    for task in range(120):
        is_letter = task % 3 == 0
        kind = "letter" if is_letter else "parcel"
        if is_cause:
            skips = (task * 7) % 10 < 4
            passes = (task * 11) % 13 < (1 if skips else 12)
        else:
            skips = (task * 7) % 10 < 9 if is_letter else task % 40 == 1
            passes = (task * 11) % 13 < (2 if is_letter else 12)
        yield desk_row(task, 0, float(passes), work(task, 0, checks=not skips), task_id=f"{kind}-{task:03d}"), skips


@pytest.mark.parametrize(("n_repeats", "is_mended", "is_told"), [(1, False, True), (1, True, False), (4, True, True)])
def test_one_try_error_that_a_later_call_gets_past(diagnose: Diagnose, n_repeats: int, is_mended: bool, is_told: bool) -> None:
    """With repeats the same tasks pass without the error, which shows that nothing was done about it."""
    keys = grid(64 // n_repeats, n_repeats)
    faulty = {key for place, key in enumerate(keys) if (3 * place + place // 4) % 4 == 0}
    acts: dict[Key, list[Act]] = {}
    for key in keys:
        first, *rest = work(*key, checks=key not in faulty or is_mended)
        acts[key] = [first, *([BAD] if key in faulty else []), *rest]
    run = diagnose(run_of(faulty, acts, 64 // n_repeats, n_repeats))
    told = [run.keys(group) for group in run.of_rung("behaviour") if "street is missing" in group.name]
    assert told == ([faulty] if is_told else [])


@pytest.mark.parametrize("n_cards", [0, 40])
def test_one_try_fact_that_some_passes_show_holds_within_kinds(diagnose: Diagnose, n_cards: int) -> None:
    """Cards never need the address book, and pass; they say nothing about letters and parcels, and are not shown."""
    rows, without = of_two_kinds(is_cause=True)
    for task in range(120, 120 + n_cards):
        rows.append(desk_row(task, 0, float(task % 8 > 0), work(task, 0, checks=False), task_id=f"card-{task:03d}"))
    run = diagnose(rows)
    group = run.shows(without & run.failing, "behaviour BI", "check_address", "among tasks of the same kind")
    assert group.passed_rows == len(without - run.failing) > 0


# ---- One line for each claim -----------------------------------------------------------------------

PROVED = {
    "omission": (lambda: faulty(omits), "behaviour BI", "never calls `check_address`", "Have the model call `check_address`"),
    "error": (lambda: faulty(errs), "behaviour BI", "street is missing"), "loop": (lambda: faulty(loops), "delivered BI"),
    **{
        nothing: (lambda nothing=nothing: faulty(finds(nothing)), "behaviour BI", "accepts an empty result", "`search_ledger`")
        for nothing in ('{"total": 0, "parcels": []}', "[]", "No matching records.", "0 results")
    },
    "list with a total": (lambda: faulty(pages("total")), "behaviour BI", "stops after the first part of a list", "`list_shelf`"),
    "list with a cursor": (lambda: faulty(pages("cursor")), "behaviour BI", "stops after the first part of a list"),
    # nothing forbids a heading: it may be the grader that does not read them
    "heading": (lambda: rejected(replies(True)), "behaviour TI unsure", "replies with a heading (#) are rejected"),
    "form": (lambda: faulty(weighs), "behaviour BI", "gives `day` of `read_scales` in another form than the passes", "`9 a 9`"),
}
INNOCENT: dict[str, Callable[[], Any]] = {
    "omission without effect": lambda: harmless(omits), "error from which passes recover": lambda: harmless(errs),
    "form without effect": lambda: harmless(weighs), "length": long,
    "one try of a hard kind": lambda: of_two_kinds(is_cause=False), "heading that passes": lambda: replies(is_rejected=False),
}  # fmt: skip


@each({
    "another search": lambda task, repeat, is_faulty: [
        *([looked(task, "[]", f"P-{task + 900}")] if is_faulty else []), looked(task, FOUND.format(task)), *work(task, repeat)
    ],
    "list to its end": pages("total", True), "list by its cursor": pages("cursor", True),
})  # fmt: skip
def test_what_is_made_up_for_names_no_group(diagnose: Diagnose, case: Acts) -> None:
    assert not any("empty" in told_of(group) or "list" in group.name for group in diagnose(faulty(case)[0]).groups)
