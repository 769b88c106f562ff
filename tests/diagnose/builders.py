"""Build runs as rows of NeMo Gym.

Two invented domains: a parcel desk, where a clerk works with tools, and a lending library, where a reader answers a
question in one turn. Both vary in length and wording, so that nothing but a planted fault sets rows apart.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

from tests.diagnose.rows import Act, Key, Row, grid, make_row

# ---- The parcel desk: an agent with tools --------------------------------------------------------

STREETS = "Alder Lane,Birch Row,Cedar Walk,Dogwood Close,Elm Rise,Fern Hill,Gorse Way,Hazel Court".split(",")
DESK_TOOLS = ("find_parcel", "read_notice", "check_address", "redirect_parcel")
NOTES = (
    "The parcel is on its way to {street} now.",
    "Done: everything for number {number} was sent on to {street} this morning.",
    "I moved it to {street}.",
    "All settled. The owner will find number {number} at {street} from tomorrow on, and the old label is void.",
)


def desk_acts(task: int, repeat: int, seed: int) -> list[Act]:
    """How a clerk settles an errand: find the parcel, read some notices, check the address, redirect, report."""
    chance = random.Random(seed)
    number, street = f"P-{task + 100}", STREETS[task % len(STREETS)]
    notices: list[Act] = [
        ("read_notice", {"page": page}, f"Notice {page}: the counter opens at {page + 7}.")
        for page in chance.sample(range(9), chance.randrange(0, 4))
    ]
    return [
        ("find_parcel", {"number": number}, json.dumps({"number": number, "shelf": task % 5})),
        *notices,
        ("check_address", {"street": street}, f"{street} is on route {task % 4 + 1}."),
        ("redirect_parcel", {"number": number, "street": street}, f"{number} goes to {street}."),
        chance.choice(NOTES).format(street=street, number=number),
    ]


def desk_row(task: int, repeat: int, reward: float, acts: Iterable[Act] | None = None, **fields: Any) -> Row:
    """A rollout at the parcel desk; without `acts` an ordinary one."""
    made = desk_acts(task, repeat, task * 1000 + repeat) if acts is None else acts
    return make_row(task, repeat, reward, made, tools=DESK_TOOLS, **fields)


def rewards(n_tasks: int, n_repeats: int, rate: float, seed: int = 0) -> dict[Key, float]:
    """Rewards that depend on nothing; the share of passes is exactly the rate, rounded down."""
    keys = grid(n_tasks, n_repeats)
    passes = set(random.Random(seed).sample(keys, int(rate * len(keys))))
    return {key: float(key in passes) for key in keys}


def desk(n_tasks: int = 12, n_repeats: int = 4, rate: float = 0.75, seed: int = 0) -> dict[Key, Row]:
    """An ordinary run at the parcel desk: what fails, fails for no reason that a row shows."""
    return {key: desk_row(*key, reward) for key, reward in rewards(n_tasks, n_repeats, rate, seed).items()}


# ---- The lending library: one question, one answer -----------------------------------------------


def quiz_row(task: int, repeat: int, reward: float, answer: str, gold: Any, **fields: Any) -> Row:
    """A question about the library, answered in a box; the gold is in the row."""
    ways = (
        "The register lists {shelf} shelves, so I count them. \\boxed{{{answer}}}",
        "Let me add up what the catalogue says about hall {shelf}.\nThat gives \\boxed{{{answer}}}",
        "From the opening hours and the {shelf} loans I get \\boxed{{{answer}}}",
    )
    chance = random.Random(task * 1000 + repeat)
    thought = "".join(f" Ledger {chance.randrange(10**4)} agrees." for _ in range(chance.randrange(8)))
    text = "Counting." + thought + " " + chance.choice(ways).format(shelf=chance.randrange(3, 800), answer=answer)
    prompt = fields.pop("prompt", f"How many volumes did branch {task} lend in week {task % 9 + 1}? Answer in \\boxed{{}}.")
    return make_row(task, repeat, reward, [text], prompt=prompt, expected_answer=gold, **fields)


def quiz(n_tasks: int = 12, n_repeats: int = 4, rate: float = 0.7, seed: int = 0) -> dict[Key, Row]:
    """An ordinary quiz with numbers as golds: wrong answers differ from repeat to repeat."""
    run = {}
    for (task, repeat), reward in rewards(n_tasks, n_repeats, rate, seed).items():
        gold = task * 13 + 41
        answer = gold if reward else gold + 1 + repeat
        run[task, repeat] = quiz_row(task, repeat, reward, str(answer), str(gold))
    return run
