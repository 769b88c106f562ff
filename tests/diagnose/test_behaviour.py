"""Rung 9: what do failures do that passes of the same task do not?"""

from __future__ import annotations

import json
import random

import pytest

from tests.diagnose.builders import Act, Diagnose, Key, Row, desk_acts, desk_row, grid, make_row, told_of

FAULTY = {(task, repeat) for task, repeat in grid(16, 4) if (task + 2 * repeat) % 5 < 2}


def work(task: int, repeat: int, checks: bool = True) -> list[Act]:
    """An errand with or without a look at the address book, and always a redirect at the end."""
    acts = desk_acts(task, repeat, random.Random(task * 100 + repeat))
    return [act for act in acts if checks or not (isinstance(act, tuple) and act[0] == "check_address")]


def noisy(place: int, faulty: bool) -> float:
    """A faulty row fails, others pass nine times in ten."""
    return 0.0 if faulty else float(place % 11 > 0)


def run_of(faulty: set[Key], make: dict[Key, list[Act]], n_tasks: int = 16, n_repeats: int = 4) -> list[Row]:
    return [
        desk_row(*key, noisy(place, key in faulty), make[key]) for place, key in enumerate(grid(n_tasks, n_repeats))
    ]


# ---- Within tasks --------------------------------------------------------------------------------


def test_omission_within_tasks(diagnose: Diagnose) -> None:
    """Never looks the address up, and redirects all the same."""
    acts = {key: work(*key, checks=key not in FAULTY) for key in grid(16, 4)}
    run = diagnose(run_of(FAULTY, acts))
    group = run.group(FAULTY)
    assert (group.rung, group.label.value) == ("behaviour", "BI")
    assert "check_address" in group.name
    assert "check_address" in group.fix
    assert run.alarms == []


def test_omission_without_effect_is_no_group(diagnose: Diagnose) -> None:
    acts = {key: work(*key, checks=key not in FAULTY) for key in grid(16, 4)}
    rows = [desk_row(*key, float((3 * place + place // 7) % 5 > 1), acts[key]) for place, key in enumerate(grid(16, 4))]
    assert diagnose(rows).of_rung("behaviour") == []


def test_error_that_only_failures_run_into(diagnose: Diagnose) -> None:
    """A call with a malformed argument; rows that go on after it never pass."""
    bad: Act = ("check_address", {"street": ""}, "error: the street is missing")
    acts = {key: [*work(*key)[:1], *([bad] if key in FAULTY else []), *work(*key)[1:]] for key in grid(16, 4)}
    group = diagnose(run_of(FAULTY, acts)).group(FAULTY)
    assert group.label == "BI"
    assert "street is missing" in told_of(group)


def test_error_from_which_passes_recover_is_no_group(diagnose: Diagnose) -> None:
    bad: Act = ("check_address", {"street": ""}, "error: the street is missing")
    acts = {key: [*work(*key)[:1], *([bad] if key in FAULTY else []), *work(*key)[1:]] for key in grid(16, 4)}
    rows = [desk_row(*key, float((3 * place + place // 7) % 5 > 1), acts[key]) for place, key in enumerate(grid(16, 4))]
    assert diagnose(rows).of_rung("behaviour") == []


def test_loop_within_tasks(diagnose: Diagnose) -> None:
    """The same call again and again, then a give-up; how often differs, so that there is no limit."""
    again: Act = ("find_parcel", {"number": "unknown"}, "Nothing under that number.")
    acts = {}
    for task, repeat in grid(16, 4):
        loop = [again] * (4 + (task * 3 + repeat) % 5)
        acts[task, repeat] = [*loop, "I give up."] if (task, repeat) in FAULTY else work(task, repeat)
    run = diagnose(run_of(FAULTY, acts))
    assert run.labels(FAULTY) == {"BI"}
    assert run.alarms == []


@pytest.mark.parametrize("is_left", [False, True])
def test_loop_that_is_left_before_the_end_is_no_cause(diagnose: Diagnose, is_left: bool) -> None:
    """All look for a number that is not there; some do so four times, and end on it or go on as the others do."""
    again: Act = ("find_parcel", {"number": "unknown"}, "Nothing under that number.")
    acts = {}
    for task, repeat in grid(16, 4):
        rest = work(task, repeat)[-3:-1]  # looks the address up and redirects
        loop = [again] * (4 if (task, repeat) in FAULTY else 1)
        acts[task, repeat] = [*([*loop, *rest] if is_left else [*rest, *loop]), f"So much for errand {task}."]
    run = diagnose(run_of(FAULTY, acts))
    told = [run.keys(group) for group in run.of_rung("behaviour") if group.name == "repeats one call or one error"]
    assert told == ([] if is_left else [FAULTY])


def looked(task: int, answer: str, number: str | None = None) -> Act:
    return ("search_ledger", {"query": number or f"P-{task + 100}"}, answer)


FOUND = '{{"total": 1, "parcels": [{{"number": "P-{0}"}}]}}'


@pytest.mark.parametrize("nothing", ['{"total": 0, "parcels": []}', "[]", "No matching records.", "0 results"])
def test_empty_result_that_is_accepted(diagnose: Diagnose, nothing: str) -> None:
    """The search finds nothing, and the errand is settled all the same."""
    acts = {key: [looked(key[0], nothing if key in FAULTY else FOUND.format(key[0])), *work(*key)] for key in grid(16, 4)}
    run = diagnose(run_of(FAULTY, acts))
    group = run.group(FAULTY)
    assert (group.rung, group.label.value, group.name) == ("behaviour", "BI", "accepts an empty result")
    assert "`search_ledger`" in group.text


def test_empty_result_that_another_search_makes_up_for_is_not_accepted(diagnose: Diagnose) -> None:
    acts = {}
    for task, repeat in grid(16, 4):
        first = [looked(task, "[]", f"P-{task + 900}")] if (task, repeat) in FAULTY else []
        acts[task, repeat] = [*first, looked(task, FOUND.format(task)), *work(task, repeat)]
    run = diagnose(run_of(FAULTY, acts))
    assert not any("empty" in group.name for group in run.groups)


def page(task: int, number: int, how: str) -> Act:
    """Two of four entries of a list, with a count of all or with what leads to the rest."""
    rest = '"total": 4' if how == "total" else f'"next_cursor": {json.dumps("" if number else f"c{task}")}'
    entries = ", ".join(json.dumps(f"P-{task}-{2 * number + n}") for n in range(2))
    arguments = {"shelf": task, "from": number} if number else {"shelf": task}
    return ("list_shelf", arguments, f'{{"parcels": [{entries}], {rest}}}')


@pytest.mark.parametrize("how", ["total", "cursor"])
def test_list_that_is_left_after_its_first_part(diagnose: Diagnose, how: str) -> None:
    acts = {}
    for key in grid(16, 4):
        rest = [] if key in FAULTY else [page(key[0], 1, how)]
        acts[key] = [page(key[0], 0, how), *rest, *work(*key)]
    group = diagnose(run_of(FAULTY, acts)).group(FAULTY)
    assert (group.label.value, group.name) == ("BI", "stops after the first part of a list")
    assert "`list_shelf`" in group.text


@pytest.mark.parametrize("how", ["total", "cursor"])
def test_list_that_is_read_to_its_end_is_no_cause(diagnose: Diagnose, how: str) -> None:
    """Failures read both parts as the passes do."""
    acts = {key: [page(key[0], 0, how), page(key[0], 1, how), *work(*key)] for key in grid(16, 4)}
    run = diagnose(run_of(FAULTY, acts))
    assert not any("list" in group.name for group in run.groups)


def weighed(key: Key, is_odd: bool) -> list[Act]:
    """An errand with a look at the scales, on a day that is written in digits or in words."""
    day = f"{key[0] % 27 + 1} May 2031" if is_odd else f"2031-05-{key[0] % 27 + 1:02d}"
    return [("read_scales", {"day": day, "desk": key[0]}, f"{key[0] + 3} ounces."), *work(*key)]


def test_argument_in_another_form_than_the_passes(diagnose: Diagnose) -> None:
    acts = {key: weighed(key, key in FAULTY) for key in grid(16, 4)}
    group = diagnose(run_of(FAULTY, acts)).group(FAULTY)
    assert (group.label.value, group.name) == ("BI", "gives `day` of `read_scales` in another form than the passes")
    assert "`9 a 9`" in group.text


def test_form_of_an_argument_without_effect_is_no_group(diagnose: Diagnose) -> None:
    acts = {key: weighed(key, key in FAULTY) for key in grid(16, 4)}
    rows = [desk_row(*key, float((3 * place + place // 7) % 5 > 1), acts[key]) for place, key in enumerate(grid(16, 4))]
    assert diagnose(rows).of_rung("behaviour") == []


# ---- The form of a reply -------------------------------------------------------------------------


def replies(is_rejected: bool) -> list[Row]:
    """Letters of one turn, some of them under a heading; a judge reads them, and rejects those or any."""
    rows = []
    for place, (task, repeat) in enumerate(grid(16, 4)):
        is_headed = (task, repeat) in FAULTY
        head = f"# Parcel {task}\n" if is_headed else ""
        fails = (place % 9 > 0 if is_headed else place % 11 == 0) if is_rejected else (3 * place + place // 7) % 5 < 2
        text = f"{head}Dear owner, parcel {task} is on shelf {place}." + " It is sealed and dry." * (place % 4)
        rows.append(make_row(task, repeat, float(not fails), [text], prompt=f"Write to the owner of parcel {task}."))
    return rows


def test_replies_with_a_heading_that_are_rejected(diagnose: Diagnose) -> None:
    """Nothing forbids a heading: it may be the grader that does not read them, and nothing is sure."""
    rows = replies(is_rejected=True)
    run = diagnose(rows)
    group = run.group(FAULTY & run.failing)
    assert (group.rung, group.label.value, group.confidence) == ("behaviour", "TI", "unsure")
    assert group.name == "replies with a heading (#) are rejected"


def test_replies_with_a_heading_that_pass_as_usual(diagnose: Diagnose) -> None:
    run = diagnose(replies(is_rejected=False))
    assert run.of_rung("behaviour") == []


# ---- Upstream before downstream ------------------------------------------------------------------


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
    group = run.group(FAULTY)
    assert group.label == "BI"
    assert "look_up_owner" in group.name
    assert "ask_visitor" in " ".join(group.consequences)


def test_fixes_of_one_run_do_not_contradict_each_other(diagnose: Diagnose) -> None:
    """Some tasks need the express desk and some must not use it: one finding about choosing, not call more and call less."""
    acts, faulty = {}, set()
    for place, (task, repeat) in enumerate(grid(20, 4)):
        wants_express = task % 2 == 0
        is_wrong = (place * 7 + task) % 5 < 2
        express: Act = ("express_desk", {"number": task}, "Taken.")
        uses = wants_express != is_wrong
        acts[task, repeat] = [*work(task, repeat)[:2], *([express] if uses else []), *work(task, repeat)[2:]]
        if is_wrong:
            faulty.add((task, repeat))
    run = diagnose(run_of(faulty, acts, 20, 4))
    about = [group for group in run.groups if "express_desk" in told_of(group) + group.fix]
    more = [group for group in about if group.name.startswith("never")]
    less = [group for group in about if group.name.startswith("calls")]
    assert not (more and less), [(group.name, group.fix) for group in about]


# ---- What is no cause ----------------------------------------------------------------------------


def test_hardness_is_no_cause(diagnose: Diagnose) -> None:
    """Hard tasks need the archive and mostly fail; within a task the archive makes no difference."""
    rows = []
    for place, (task, repeat) in enumerate(grid(20, 4)):
        is_hard = task < 8
        uses = (place * 3) % 8 < (7 if is_hard else 1)
        archive: list[Act] = [("open_archive", {"box": place}, f"Box {place}.")] if uses else []
        reward = float((place * 5 + task) % 7 == 0) if is_hard else float((place * 5 + task) % 9 > 0)
        rows.append(desk_row(task, repeat, reward, [*archive, *work(task, repeat)]))
    run = diagnose(rows)
    assert not [group for group in run.of_rung("behaviour") if "open_archive" in told_of(group)]


def test_length_is_no_cause(diagnose: Diagnose) -> None:
    """Failing rollouts are longer, as it goes where nothing works; no act sets them apart."""
    rows = []
    for place, (task, repeat) in enumerate(grid(16, 4)):
        fails = (place * 3 + task) % 5 < 2
        n = (8 if fails else 2) + (place * 7) % 5
        notices: list[Act] = [("read_notice", {"page": place * 20 + page}, f"Page {page}.") for page in range(n)]
        rows.append(desk_row(task, repeat, float(not fails), [*notices, *work(task, repeat)]))
    run = diagnose(rows)
    for group in run.groups:
        assert not any(word in group.name for word in ("long", "turns", "length", "words", "more calls"))
    assert run.alarms == []


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


def single(faulty_share: int, n_tasks: int = 80) -> tuple[list[Row], set[Key]]:
    acts, faulty = {}, set()
    for task in range(n_tasks):
        is_faulty = task % faulty_share == 0
        acts[task, 0] = work(task, 0, checks=not is_faulty)
        if is_faulty:
            faulty.add((task, 0))
    return run_of(faulty, acts, n_tasks, 1), faulty


def test_one_try_per_task_gives_a_lead(diagnose: Diagnose) -> None:
    rows, faulty = single(4)
    group = diagnose(rows).group(faulty)
    assert group.label == "BI"
    assert group.confidence == "unsure"
    assert "lead" in group.text or any("one try" in reason for reason in group.against)


def test_one_try_per_task_holds_the_kind_of_task(diagnose: Diagnose) -> None:
    """Letters never need the address book and mostly fail; within each kind the omission makes no difference."""
    rows = []
    for task in range(90):
        is_letter = task % 3 == 0
        checks = (task * 7) % 10 >= (9 if is_letter else 1)
        reward = float((task * 11) % 10 < (2 if is_letter else 9))
        kind = "letter" if is_letter else "parcel"
        rows.append(desk_row(task, 0, reward, work(task, 0, checks=checks), kind=kind))
    run = diagnose(rows)
    assert not [group for group in run.of_rung("behaviour") if "check_address" in told_of(group)]


def of_two_kinds(is_cause: bool) -> tuple[list[Row], set[Key]]:
    """Letters and parcels by their ids, one try each; the address book is left out now and then, and some of that passes.

    It decides within both kinds; or letters are hard, and it is mostly letters that go without.
    """
    rows: list[Row] = []
    without: set[Key] = set()
    for task in range(120):
        is_letter = task % 3 == 0
        kind = "letter" if is_letter else "parcel"
        if is_cause:
            skips = (task * 7) % 10 < 4
            passes = (task * 11) % 13 < (1 if skips else 12)
        else:
            skips = (task * 7) % 10 < 9 if is_letter else task % 40 == 1
            passes = (task * 11) % 13 < (2 if is_letter else 12)
        if skips:
            without.add((task, 0))
        rows.append(desk_row(task, 0, float(passes), work(task, 0, checks=not skips), task_id=f"{kind}-{task:03d}"))
    return rows, without


def test_one_try_fact_that_some_passes_show_holds_within_kinds(diagnose: Diagnose) -> None:
    rows, without = of_two_kinds(is_cause=True)
    run = diagnose(rows)
    assert without - run.failing
    assert "check_address" in run.group(without & run.failing).name


def test_one_try_fact_of_a_hard_kind_is_no_cause(diagnose: Diagnose) -> None:
    rows, without = of_two_kinds(is_cause=False)
    run = diagnose(rows)
    assert without - run.failing
    assert run.of_rung("behaviour") == []


@pytest.mark.parametrize(("n_repeats", "is_mended", "is_told"), [(1, False, True), (1, True, False), (4, True, True)])
def test_one_try_error_that_a_later_call_gets_past(diagnose: Diagnose, n_repeats: int, is_mended: bool, is_told: bool) -> None:
    """With repeats the same tasks pass without the error, which shows that it was not made good."""
    keys = grid(64 // n_repeats, n_repeats)
    faulty = {key for place, key in enumerate(keys) if (3 * place + place // 4) % 4 == 0}
    bad: Act = ("check_address", {"street": ""}, "error: the street is missing")
    acts: dict[Key, list[Act]] = {}
    for key in keys:
        first, *rest = work(*key, checks=key not in faulty or is_mended)
        acts[key] = [first, *([bad] if key in faulty else []), *rest]
    run = diagnose(run_of(faulty, acts, 64 // n_repeats, n_repeats))
    told = [run.keys(group) for group in run.of_rung("behaviour") if "street is missing" in group.name]
    assert told == ([faulty] if is_told else [])


def test_one_try_passes_of_other_kinds_are_not_shown(diagnose: Diagnose) -> None:
    """Cards never need the address book, and pass; they say nothing about letters and parcels."""
    rows, without = of_two_kinds(is_cause=True)
    for task in range(120, 160):
        rows.append(desk_row(task, 0, float(task % 8 > 0), work(task, 0, checks=False), task_id=f"card-{task:03d}"))
    run = diagnose(rows)
    group = run.group(without & run.failing)
    assert "check_address" in group.name
    assert "among tasks of the same kind" in group.text
    assert group.passed_rows == len(without - run.failing)


@pytest.mark.parametrize("n_repeats", [1, 4])
def test_group_claims_only_what_it_shows(diagnose: Diagnose, n_repeats: int) -> None:
    """Failures that did look the address up are not counted in."""
    keys = grid(64 // n_repeats, n_repeats)
    faulty = {key for place, key in enumerate(keys) if (3 * place + place // 4) % 4 == 0}
    rows = []
    for place, key in enumerate(keys):
        reward = 0.0 if key in faulty else float(place % 6 > 0)
        rows.append(desk_row(*key, reward, work(*key, checks=key not in faulty)))
    run = diagnose(rows)
    assert run.keys(run.holders(faulty)[0]) <= faulty
