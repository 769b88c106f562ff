"""Turn fingerprints of paired tasks into what they say: right keys, changed tasks or templates."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade.compare.pairing import counts
from blade.model import ID_FIELDS, PROMPT, Side

if TYPE_CHECKING:
    from blade.model import Bools, Hashes, Ints

_KNOWN = 0.5  # share of the paired tasks whose value both runs must tell
_NEARLY_ALL = 0.9  # of the tasks differ: then the field tells of all and of none
_AGREES = 0.5  # agreement beyond chance from which a field says that the keys are right
_UNRELATED = 0.1  # and below which it says nothing
_ALIKE = 0.8  # overlap of the tasks in which two fields differ, from which they tell of one change
_REPEATED = 5  # tasks with repeats that must hold a prompt still before it counts as the task's
WEAK_IDS = ID_FIELDS[6:]  # they may name a rollout, or not be unique

# Names that can only be the task's own; `answer` or `label` alone may be what the model gave.
_TEXT = re.compile(
    r"((user|task|original|raw|input)_)?(instructions?|questions?|problem(_statement)?)"
    r"|(unit_)?tests|options|choices"
)
_GOLD = re.compile(
    r"(expected|gold(en)?|ground_truth|reference)"
    r"(_(answers?|actions?|outputs?|solutions?|results?|labels?|values?|calls?|tools?|state|response))?"
)


@dataclass(frozen=True)
class Pairs:
    """Tasks taken to be the same, as codes of each run."""

    a: Ints
    b: Ints


@dataclass(frozen=True)
class Related:
    """How a field of the tasks agrees between the runs."""

    differs: Bools  # by pair; False where either run does not tell
    n_known: int
    agreement: float  # beyond chance: 1 if all agree, 0 if the pairs say nothing

    @property
    def is_everywhere(self) -> bool:
        return int(self.differs.sum()) >= _NEARLY_ALL * self.n_known


def group_of(field: str) -> str:
    """What a field is to a task by its name: id, text or gold; empty for what may be the model's."""
    last = field.rpartition(".")[2].lower()
    if field in ID_FIELDS:
        return "id"
    if field == PROMPT or _TEXT.fullmatch(last):
        return "text"
    return "gold" if _GOLD.fullmatch(last) else ""


def related(a: Side, b: Side, pairs: Pairs) -> dict[str, Related]:
    """The fields that both runs tell for most of the paired tasks, by name."""
    found = {}
    for name in sorted(a.fingerprints.keys() & b.fingerprints.keys()):
        left, right = a.fingerprints[name][pairs.a], b.fingerprints[name][pairs.b]
        known = (left != 0) & (right != 0)
        n_known = int(known.sum())
        if n_known and n_known >= _KNOWN * len(known):
            differs = known & (left != right)
            found[name] = Related(differs, n_known, _beyond_chance(left[known], right[known]))
    return found


def _beyond_chance(left: Hashes, right: Hashes) -> float:
    """Cohen's kappa: of the agreement that chance leaves room for, how much there is."""
    agree = float((left == right).mean())
    if agree in (0.0, 1.0):
        return agree
    values, code = np.unique(np.concatenate([left, right]), return_inverse=True)
    n = len(left)
    shares = [np.bincount(part, minlength=len(values)) / n for part in (code[:n], code[n:])]
    chance = float(shares[0] @ shares[1])
    return (agree - chance) / (1 - chance) if chance < 1 else 0.0


def supporters(fields: Mapping[str, Related], groups: Collection[str] = ("id", "text", "gold")) -> list[str]:
    """The fields of the tasks that agree with how the tasks are paired, ids first."""
    names = [name for name, one in fields.items() if group_of(name) in groups and one.agreement >= _AGREES]
    return sorted(names, key=lambda name: (group_of(name) != "id", name == PROMPT, name))


def sure(a: Side, b: Side, pairs: Pairs, fields: Mapping[str, Related]) -> dict[str, Related]:
    """The fields that can only be the task's own and by which single tasks are told apart.

    `id` and its like may name a rollout. The prompt counts if repeats show that it holds still: with a
    simulated user it does not.
    """
    return {
        name: one
        for name, one in fields.items()
        if group_of(name) and name not in WEAK_IDS and (name != PROMPT or _holds_still(a, b, pairs))
    }


def _holds_still(a: Side, b: Side, pairs: Pairs) -> bool:
    """Has either run enough tasks whose repeats all show one prompt."""
    for side, codes in ((a, pairs.a), (b, pairs.b)):
        still = (counts(side)[codes] > 1) & (side.fingerprints[PROMPT][codes] != 0)
        if still.any() and int(still.sum()) >= min(_REPEATED, len(codes)):
            return True
    return False


def unrelated_groups(fields: Mapping[str, Related]) -> set[str]:
    """The kinds of fields that agree no more than those of any two tasks would."""
    return {
        group_of(name) for name, one in fields.items() if one.differs.any() and one.agreement < _UNRELATED
    }


def changed_tasks(
    a: Side, b: Side, pairs: Pairs, fields: Mapping[str, Related]
) -> tuple[Bools, tuple[str, ...]]:
    """The pairs that are clearly not one and the same task, and the fields that say so."""
    changed = np.zeros(len(pairs.a), bool)
    certain = sure(a, b, pairs, fields)
    told = _unlike_altogether(fields, certain, _share_no_field(a, b)) or [
        name
        for name, one in fields.items()
        if one.differs.any()
        and not one.is_everywhere
        and (name in certain or _has_company(fields, name))
    ]
    for name in told:
        changed |= fields[name].differs
    return changed, tuple(told)


def _share_no_field(a: Side, b: Side) -> bool:
    """Do both runs tell their tasks by questions or answers, and none of these by the same name."""
    mine, theirs = (
        {name for name in side.fingerprints if group_of(name) in ("text", "gold") and name != PROMPT}
        for side in (a, b)
    )
    return bool(mine) and bool(theirs) and not mine & theirs


def _unlike_altogether(
    fields: Mapping[str, Related], certain: Mapping[str, Related], is_other_form: bool
) -> list[str]:
    """The fields that say that these are other tasks throughout; empty where they may be the same.

    One kind of field alone may have a new spelling: another template, other names, another way to write the
    answer. Question and answer together are the task, whatever its number; so are other names in rows of
    another form.
    """
    groups = unrelated_groups(certain) | ({"form"} if is_other_form else set())
    if supporters(fields, ("text", "gold")) or len(groups) < 2:
        return []
    if "id" in groups and supporters(fields, ("id",)):
        groups.discard("id")
    return [name for name in certain if group_of(name) in groups] if len(groups) > 1 else []


def _has_company(fields: Mapping[str, Related], name: str) -> bool:
    """Does a second field, which is no part of this one, differ in the same tasks.

    Two fields that may both be the model's own, such as its answer and a label of it, speak only where
    nothing confirms the tasks: they differ wherever the model does.
    """
    mine = fields[name].differs
    confirmed = bool(supporters(fields))
    for other, one in fields.items():
        if confirmed and not group_of(name) and not group_of(other):
            continue
        if other.partition(".")[0] == name.partition(".")[0] or one.is_everywhere:
            continue
        either = int((mine | one.differs).sum())
        if int((mine & one.differs).sum()) >= _ALIKE * either:
            return True
    return False


def changed_everywhere(a: Side, b: Side, pairs: Pairs, fields: Mapping[str, Related]) -> tuple[str, ...]:
    """The fields of the tasks that differ in nearly all of them: a template or a format that changed."""
    certain = sure(a, b, pairs, fields)
    return tuple(name for name, one in certain.items() if one.differs.any() and one.is_everywhere)
