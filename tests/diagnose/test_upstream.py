"""What precedes a difference from the expected calls: each way with a run in which it is none."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.diagnose.builders import Act, Diagnose, Key, Row, grid, make_row, told_of

TOOLS = ("find_owner", "list_parcels", "move_parcel", "read_notice")
FAULTY = {(task, repeat) for task, repeat in grid(14, 4) if (task + repeat) % 4 == 0}
PEOPLE = "Abel Brook Corin Dara Edda Fenn Greta Hollis Iven Jorun Kaia Lorne Mira Nils".split()


def find(task: int, several: bool = False) -> Act:
    owners = [{"owner": f"R-{task + 40}", "name": PEOPLE[task]}]
    if several:
        owners.append({"owner": f"R-{task + 80}", "name": PEOPLE[task]})
    return ("find_owner", {"name": PEOPLE[task]}, json.dumps({"total": len(owners), "owners": owners}))


def move(task: int, owner: str | None = None, parcel: int = 1, answer: str | None = None) -> Act:
    arguments = {"parcel": f"P-{task}-{parcel}", "owner": owner or f"R-{task + 40}"}
    return ("move_parcel", arguments, answer or json.dumps({"moved": arguments["parcel"]}))


def listed(task: int, page: int | None = None, n: int = 2) -> Act:
    arguments = {"shelf": f"S-{task}", **({"page": page} if page else {})}
    first = 1 if page is None else 3
    parcels = [{"parcel": f"P-{task}-{first + number}"} for number in range(2)]
    return ("list_parcels", arguments, json.dumps({"total": 4, "parcels": parcels[:n]}))


def run_of(
    right: Callable[[int], list[Act]], wrong: Callable[[int], list[Act]], due: Callable[[int], list[Act]], innocent: bool = False
) -> list[Row]:
    """Rows that do the right thing, and those of `FAULTY` the wrong one; an innocent fault costs them nothing."""
    rows = []
    for task, repeat in grid(14, 4):
        is_faulty = (task, repeat) in FAULTY
        acts = [*(wrong if is_faulty else right)(task), f"Done for {PEOPLE[task]}." + " Anything else?" * (repeat % 3)]
        gold = [{"name": act[0], "arguments": act[1]} for act in due(task) if isinstance(act, tuple)]
        reward = float(innocent or not is_faulty)
        prompt = f"Please move the parcels on shelf S-{task} to {PEOPLE[task]}."
        rows.append(make_row(task, repeat, reward, acts, prompt=prompt, tools=TOOLS, expected_actions=gold))
    return rows


def test_value_that_passes_look_up(diagnose: Diagnose) -> None:
    run = diagnose(run_of(lambda t: [find(t), move(t)], lambda t: [move(t, PEOPLE[t])], lambda t: [move(t)]))
    group = run.group(FAULTY)
    assert (group.label, "find_owner" in group.name) == ("BI", True)
    assert "wrong arguments" in " ".join(group.consequences)
    assert group.gain is not None  # nothing in a sibling defines it


def test_value_that_the_request_gives_needs_no_look_up(diagnose: Diagnose) -> None:
    """The prompt states the owner's number, and rollouts that use it at once go wrong in another way: the parcel."""
    rows = run_of(lambda t: [find(t), move(t)], lambda t: [move(t, parcel=9)], lambda t: [move(t)])
    for row in rows:
        row["responses_create_params"]["input"][0]["content"] += f" The owner is R-{row['_ng_task_index'] + 40}."
    assert not any("looks" in group.name for group in diagnose(rows).groups)


def test_another_match_than_the_passes_take(diagnose: Diagnose) -> None:
    run = diagnose(
        run_of(
            lambda t: [find(t, several=True), move(t)],
            lambda t: [find(t, several=True), move(t, f"R-{t + 80}")],
            lambda t: [move(t)],
        )
    )
    group = run.group(FAULTY)
    assert "another match of `find_owner`" in group.name
    assert group.gain is None  # the passes of the same task define it


def test_only_the_first_page(diagnose: Diagnose) -> None:
    every = range(1, 5)
    run = diagnose(
        run_of(
            lambda t: [find(t), listed(t), listed(t, 2), *(move(t, parcel=n) for n in every)],
            lambda t: [find(t), listed(t), *(move(t, parcel=n) for n in every[:2])],
            lambda t: [move(t, parcel=n) for n in every],
        )
    )
    assert "first page of `list_parcels`" in run.group(FAULTY).name


def test_list_that_is_whole_has_no_second_page(diagnose: Diagnose) -> None:
    """Half of the expected parcels are left out, but the list that was read was complete."""
    whole: Act = ("list_parcels", {"shelf": "S"}, json.dumps({"total": 2, "parcels": [{"parcel": "P-1"}, {"parcel": "P-2"}]}))
    run = diagnose(
        run_of(
            lambda t: [find(t), whole, move(t), move(t, parcel=2)],
            lambda t: [find(t), whole, move(t)],
            lambda t: [move(t), move(t, parcel=2)],
        )
    )
    assert "part of the expected" in run.group(FAULTY).name


def test_error_that_is_ignored(diagnose: Diagnose) -> None:
    """The second of two calls is malformed and refused; the rollout reports success all the same."""
    refused = json.dumps({"error": "the number of the parcel is malformed, nothing was changed"})
    run = diagnose(
        run_of(
            lambda t: [find(t), move(t), move(t, parcel=2)],
            lambda t: [find(t), move(t), move(t, parcel=-t, answer=refused)],
            lambda t: [move(t), move(t, parcel=2)],
        )
    )
    group = run.group(FAULTY)
    assert group.name == "a refused call is never corrected"
    assert "malformed" in told_of(group)


def test_error_that_is_corrected_is_no_group(diagnose: Diagnose) -> None:
    refused = json.dumps({"error": "the parcel is locked, nothing was changed"})
    rows = run_of(
        lambda t: [find(t), move(t)], lambda t: [find(t), move(t, answer=refused), move(t)], lambda t: [move(t)], innocent=True
    )
    assert diagnose(rows).groups == ()


# ---- Golds and what passes do --------------------------------------------------------------------


def test_gold_that_passes_contradict_is_not_held_against_failures(diagnose: Diagnose) -> None:
    """In two tasks the expected call is not what passes; failures there are compared with what does."""
    odd: set[Key] = {(task, repeat) for task, repeat in FAULTY if task in (3, 8)}
    rows = run_of(
        lambda t: [find(t), move(t, parcel=7 if t in (3, 8) else 1)],
        lambda t: [find(t), move(t, parcel=7 if t in (3, 8) else 1), move(t, parcel=2)],
        lambda t: [move(t)],
    )
    run = diagnose(rows)
    assert run.labels(odd) == {"BI"}
    assert not any("wrong arguments" in group.name for group in run.holders(odd))


def test_order_of_a_list_is_not_graded_where_passes_differ_in_it(diagnose: Diagnose) -> None:
    def moved(task: int, reverse: bool, parcel: int = 1) -> Act:
        parcels = [f"P-{task}-{parcel}", f"P-{task}-5"]
        return ("move_parcels", {"parcels": parcels[::-1] if reverse else parcels}, "moved")

    rows = []
    for task, repeat in grid(14, 4):
        is_faulty = (task, repeat) in FAULTY
        acts: list[Act] = [moved(task, bool(repeat % 2), 9 if is_faulty else 1), f"Done for {PEOPLE[task]}."]
        gold = [{"name": "move_parcels", "arguments": moved(task, False)[1]}]
        rows.append(make_row(task, repeat, float(not is_faulty), acts, tools=("move_parcels",), expected_actions=gold))
    group = diagnose(rows).group(FAULTY)
    assert "wrong arguments" in group.name
