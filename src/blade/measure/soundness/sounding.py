"""What one look at a task's traces leaves: small facts, from which the flags of a run are raised."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from blade.model import Evidence, Health, Suspicion

SUSPECT, REVIEW = 3, 2  # points from which a task is suspect, and from which it deserves a look
HARD = 3  # points of evidence that is enough by itself

# How the answer of a rollout was found; the first two are answers whatever else the rollout did.
FIELD, BOXED, TOLD, SHORT, NO_ANSWER = "field", "boxed", "told", "short", ""
EXPLICIT = (FIELD, BOXED)

# What a gold answer and the answer of a rollout have in common.
EXACT, NUMERIC, SPELLING, CONTAINS, NEAR, SCALED, OTHER = (
    "exact", "numeric", "spelling", "contains", "near", "scaled", "other",
)  # fmt: skip
EQUAL = (EXACT, NUMERIC, SPELLING)


class Heard(msgspec.Struct, frozen=True, array_like=True):
    """One rollout."""

    position: int  # in `Rollouts`
    kind: str  # how the answer was found
    answer: str  # without decoration and case, cut
    spelled: int  # of the answer as it was written; 0 without one
    relation: str  # of the answer to the gold of its own row; empty without both
    final: int  # of the last text; 0 without one
    has_user: bool  # somebody answers the model, so its last text is not all it said
    state: int  # of all writing calls and what came of them, in order; 0 without one, or where one is open
    made: int  # of the ids that the model's server gave to the response; 0 without one
    output: int  # of all output items; 0 without one
    size: int  # characters of output
    n_items: int
    n_calls: int
    n_writes: int  # failed ones too


class Sounding(msgspec.Struct, frozen=True):
    """One task."""

    task: str
    heard: tuple[Heard, ...]
    gold: str  # without decoration and case, cut; empty without one
    gold_field: str | None
    is_plain: bool  # the gold is a number or one short word, so an answer equals it or is wrong
    same_gold: bool  # every row of the task states the same gold
    identity: int  # of what the task expects; 0 where the rows do not say
    prompt: int  # of the request; 0 where rows differ in it or have none
    leak: str  # where the gold stands though it should not: prompt, tools
    leaked: Evidence | None
    undeclared: tuple[str, ...]  # tools of expected calls that no row declares or gets an answer from
    n_expected_writes: int  # of the expected calls; -1 where the rows list none
    asks_words: bool  # the task also expects something to be said
    actions_field: str | None
    expected: Mapping[str, tuple[int, ...]]  # field -> hashes of the words it holds
    spoke: int  # position of the rollout whose words follow, one that passed if there is one; -1: none
    words: bytes  # hashes of the words of one trajectory, 32 bits each
    quotes: Mapping[int, Evidence]  # position -> the answer, for the rows that may be asked about


Suspects = Mapping[str, tuple[Suspicion, ...]]  # by task key


class Sound(msgspec.Struct, frozen=True):
    """What is wrong with an evaluation, and with which of its tasks."""

    health: tuple[Health, ...] = ()
    suspects: Suspects = msgspec.field(default_factory=dict)


def digest(*parts: str) -> int:
    """A number that names a text on every machine; never 0."""
    made = blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8, "big") + data)
    return int.from_bytes(made.digest(), "big") or 1


def points(suspicions: tuple[Suspicion, ...]) -> int:
    """What the reasons to doubt a task amount to: hard evidence counts once."""
    soft = sum(one.points for one in suspicions if one.points < HARD)
    return soft + (HARD if any(one.points >= HARD for one in suspicions) else 0)
