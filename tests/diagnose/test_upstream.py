"""What precedes a difference from the expected calls: each way with a run in which it is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Act, Row, grid, make_row, struck

TOOLS = ("find_owner", "list_parcels", "move_parcel", "read_notice")
FAULTY = {(task, repeat) for task, repeat in grid(14, 4) if (task + repeat) % 4 == 0}
PEOPLE = "Abel Brook Corin Dara Edda Fenn Greta Hollis Iven Jorun Kaia Lorne Mira Nils".split()
Acts = Callable[[int], list[Act]]


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


def run_of(right: Acts, wrong: Acts, due: Acts, innocent: bool = False) -> Iterator[Row]:
    """Rows that do the right thing, and those of `FAULTY` the wrong one; an innocent fault costs them nothing."""
    for task, repeat in grid(14, 4):
        is_faulty = (task, repeat) in FAULTY
        acts = [*(wrong if is_faulty else right)(task), f"Done for {PEOPLE[task]}." + " Anything else?" * (repeat % 3)]
        reward = float(innocent or not is_faulty)
        prompt = f"Please move the parcels on shelf S-{task} to {PEOPLE[task]}."
        yield make_row(task, repeat, reward, acts, prompt=prompt, tools=TOOLS, due=due(task))


REFUSED = json.dumps({"error": "the number of the parcel is malformed, nothing was changed"})
WHOLE: Act = ("list_parcels", {"shelf": "S"}, json.dumps({"total": 2, "parcels": [{"parcel": "P-1"}, {"parcel": "P-2"}]}))


def odd(task: int) -> int:
    """In two tasks the expected call is not what passes; failures there are compared with what does."""
    return 7 if task in (3, 8) else 1


WAYS: dict[str, tuple[Acts, Acts, Acts]] = {  # the only group of the faulty rows -> what the others do, what these do, what is due
    "never looks `name` up with `find_owner`": (lambda t: [find(t), move(t)], lambda t: [move(t, PEOPLE[t])], lambda t: [move(t)]),
    "takes another match of `find_owner` than the passes": (
        lambda t: [find(t, several=True), move(t)], lambda t: [find(t, several=True), move(t, f"R-{t + 80}")], lambda t: [move(t)],
    ),
    "reads only the first page of `list_parcels`": (
        lambda t: [find(t), listed(t), listed(t, 2), *(move(t, parcel=n) for n in range(1, 5))],
        lambda t: [find(t), listed(t), *(move(t, parcel=n) for n in (1, 2))], lambda t: [move(t, parcel=n) for n in range(1, 5)],
    ),
    "only part of the expected actions": (  # half of the expected parcels are left out, but the list that was read was complete
        lambda t: [find(t), WHOLE, move(t), move(t, parcel=2)], lambda t: [find(t), WHOLE, move(t)], lambda t: [move(t), move(t, parcel=2)],
    ),
    "a refused call is never corrected": (  # the second of two calls is refused; the rollout reports success all the same
        lambda t: [find(t), move(t), move(t, parcel=2)], lambda t: [find(t), move(t), move(t, parcel=-t, answer=REFUSED)],
        lambda t: [move(t), move(t, parcel=2)],
    ),
    "calls `move_parcel` where it is not expected": (
        lambda t: [find(t), move(t, parcel=odd(t))], lambda t: [find(t), move(t, parcel=odd(t)), move(t, parcel=2)], lambda t: [move(t)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_what_precedes_the_difference(diagnose: Diagnose, name: str) -> None:
    run = diagnose(run_of(*WAYS[name]))
    assert run.labels(FAULTY) == {"BI"}
    assert {group.name.replace("`owner`", "`name`") for group in run.holders(FAULTY)} == {name}
    for group in run.groups:  # what a sibling defines has no gain
        assert group.gain is None or "another match" not in group.name


def test_value_that_the_request_gives_needs_no_look_up(diagnose: Diagnose) -> None:
    """The prompt states the owner's number, and rollouts that use it at once go wrong in another way: the parcel."""
    rows = list(run_of(lambda t: [find(t), move(t)], lambda t: [move(t, parcel=9)], lambda t: [move(t)]))
    for row in rows:
        row["responses_create_params"]["input"][0]["content"] += f" The owner is R-{row['_ng_task_index'] + 40}."
    assert not any("looks" in group.name for group in diagnose(rows).groups)


def test_error_that_is_corrected_is_no_group(diagnose: Diagnose) -> None:
    corrected: Acts = lambda t: [find(t), move(t, answer=REFUSED), move(t)]  # noqa: E731
    assert diagnose(run_of(lambda t: [find(t), move(t)], corrected, lambda t: [move(t)], innocent=True)).groups == ()


# ---- A lookup without which hardly anything passes -----------------------------------------------

LUCKY = (3, 8)  # tasks that pass without the rules too


@struck
def by_the_rules(is_needed: bool) -> Iterator[tuple[Row, bool]]:
    """A third of the rows move without a look at the rules: to the wrong owner, but for some in the lucky tasks.

    Where the rules are not needed, four tasks are hard with or without them, and the others mostly pass.
    """
    for place, (task, repeat) in enumerate(grid(14, 6)):
        skips = (task + repeat) % 3 == 0
        if is_needed:
            fails = task not in LUCKY or repeat < 3 if skips else place % 11 == 0
        else:
            fails = (skips or repeat > 1) if task % 4 == 0 else not skips and (task + repeat) % 6 == 2
        look: list[Act] = [] if skips else [("read_rules", {"hall": f"H-{task}"}, f"Hall H-{task} takes parcels from {task % 5} on.")]
        notices: list[Act] = [("read_notice", {"page": page}, f"Page {page}.") for page in range(place % 3)]
        end = f"Done for {PEOPLE[task]}." + " Anything else?" * (repeat % 3)
        prompt = f"Please move parcel P-{task}-1 to R-{task + 40} or R-{task + 90}, by the rules."
        acts = [*notices, *look, move(task, f"R-{task + 90}" if fails else None), end]
        tools = ("read_rules", "read_notice", "move_parcel")
        yield make_row(task, repeat, float(not fails), acts, prompt=prompt, tools=tools, due=[move(task)]), skips


def test_lookup_without_which_rollouts_pass_far_less_often(diagnose: Diagnose) -> None:
    """Some pass without it, so that it is no rule of all passes; on the same tasks it decides."""
    rows, without = by_the_rules(is_needed=True)
    run = diagnose(rows)
    group = run.shows({key for key in without if key[0] not in LUCKY}, "behaviour BI", "never calls `read_rules`")
    assert "right action with wrong arguments" in group.consequences
    sentence = next(entry.mechanism for entry in run.report.attributions if entry.task == "5")
    assert "`owner` R-95 instead of R-45" in sentence
    lucky = {key for key in without if key[0] in LUCKY} & run.failing
    assert {group.name for group in run.holders(lucky)} == {"right action with wrong arguments"}
    rows, _ = by_the_rules(is_needed=False)  # it makes no difference, and renames nothing
    assert {group.name for group in diagnose(rows).groups} == {"right action with wrong arguments"}


def test_order_of_a_list_is_not_graded_where_passes_differ_in_it(diagnose: Diagnose) -> None:
    def moved(task: int, reverse: bool, parcel: int = 1) -> Act:
        parcels = [f"P-{task}-{parcel}", f"P-{task}-5"]
        return ("move_parcels", {"parcels": parcels[::-1] if reverse else parcels}, "moved")

    rows = []
    for task, repeat in grid(14, 4):
        is_faulty = (task, repeat) in FAULTY
        acts: list[Act] = [moved(task, bool(repeat % 2), 9 if is_faulty else 1), f"Done for {PEOPLE[task]}."]
        rows.append(make_row(task, repeat, float(not is_faulty), acts, tools=("move_parcels",), due=[moved(task, False)]))
    group = diagnose(rows).group(FAULTY)
    assert "wrong arguments" in group.name
