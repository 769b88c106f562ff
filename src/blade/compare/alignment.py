"""Match the tasks of two runs by key, then by content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from blade.compare.task_pairs import codes_of, counts
from blade.model import ID_FIELDS, PROMPT, Alignment, Bools, Hashes, Ints, Side

_MOVED = 0.8  # share of the smaller run whose contents stand under another key: then keys are no guide
_UNIQUE = 0.95  # share of the tasks that a field must tell from all others of their run
_SHOWN = 3  # fields named in words
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


def group_of(field: str) -> str:
    """What a field is to a task by its name: id, text or gold; empty for what may be the model's."""
    last = field.rpartition(".")[2].lower()
    if field in ID_FIELDS:
        return "id"
    if field == PROMPT or _TEXT.fullmatch(last):
        return "text"
    return "gold" if _GOLD.fullmatch(last) else ""


def align(a: Side, b: Side) -> Alignment:
    """Match tasks by key, or by content where that shows the keys of the runs to be unrelated.

    A key is `modified` only where a field that belongs to the task clearly differs: one that differs in
    nearly all tasks tells of a template or a format and of no single task.
    """
    scored_a, scored_b = counts(a) > 0, counts(b) > 0
    keys_a, keys_b = a.judged.task_keys, b.judged.task_keys
    place = codes_of(b, keys_a)
    in_a = np.flatnonzero(place >= 0)
    in_b = place[in_a]
    both = scored_a[in_a] & scored_b[in_b]
    pairs = Pairs(a, b, in_a[both], in_b[both])
    by_content = None
    if not pairs.supporters("text", "gold"):
        by_content = _by_content(a, b, scored_a, scored_b, ids=not pairs.supporters())
    # Which tasks the other run scored or expected; without a row there is no content to know a task by.
    known_a, known_b = np.zeros(len(keys_a), bool), np.zeros(len(keys_b), bool)
    if by_content is None:
        known_a[in_a], known_b[in_b] = (scored_b | (b.expected > 0))[in_b], (scored_a | (a.expected > 0))[in_a]
    pairs, matched_by = by_content or (pairs, pairs.words())
    changed, changed_fields = pairs.changed_tasks()
    common, modified = (
        (_named(keys_a, pairs.codes_a[chosen]), _named(keys_b, pairs.codes_b[chosen]) if by_content else ())
        for chosen in (~changed, changed)
    )
    left_a, left_b = scored_a.copy(), scored_b.copy()
    left_a[pairs.codes_a] = left_b[pairs.codes_b] = False
    return Alignment(
        matched_by=matched_by, common=common[0], common_candidate=common[1],
        added=_named(keys_b, np.flatnonzero(left_b & ~known_b)),
        removed=_named(keys_a, np.flatnonzero(left_a & ~known_a)),
        modified=modified[0], modified_candidate=modified[1],
        missing_baseline=_named(keys_b, np.flatnonzero(left_b & known_b)),
        missing_candidate=_named(keys_a, np.flatnonzero(left_a & known_a)),
        changed_fields=changed_fields,
        changed_everywhere=pairs.changed_everywhere() if not changed.all() else (),
    )  # fmt: skip


def _named(keys: tuple[str, ...], codes: Ints) -> tuple[str, ...]:
    return tuple(keys[code] for code in codes.tolist())


# -- by content -----------------------------------------------------------------------------------


def _by_content(a: Side, b: Side, scored_a: Bools, scored_b: Bools, ids: bool) -> tuple[Pairs, str] | None:
    """The tasks by the surest field by which most of the smaller run are found in the other under another key."""
    smaller = min(int(scored_a.sum()), int(scored_b.sum()))
    ranks_a, ranks_b = _ranks(a, b)

    def rank(name: str) -> tuple[bool, bool, bool, int, str]:
        """The surest first."""
        order = ID_FIELDS.index(name) if name in ID_FIELDS else len(ID_FIELDS)
        return name in WEAK_IDS, name == PROMPT, group_of(name) == "gold", order, name

    for name in sorted(filter(group_of, a.fingerprints.keys() & b.fingerprints.keys()), key=rank):
        if group_of(name) == "id" and not ids:
            continue  # one of them says that the keys are right
        pairs = _same_values(a, b, name, scored_a, scored_b)
        rank_a, rank_b = ranks_a[pairs.codes_a], ranks_b[pairs.codes_b]
        n_moved = int((rank_a != rank_b).sum())
        if n_moved >= max(_MOVED * smaller, 1) and not pairs.is_denied(name):
            # by the smaller of the two keys, so that the order does not tell which run is the baseline
            order = np.lexsort((np.maximum(rank_a, rank_b), np.minimum(rank_a, rank_b)))
            words = f"{name}: {n_moved} of {len(order)} tasks have another key in the other run"
            return Pairs(a, b, pairs.codes_a[order], pairs.codes_b[order]), words
    return None


def _same_values(a: Side, b: Side, name: str, scored_a: Bools, scored_b: Bools) -> Pairs:
    """Tasks with the same value of a field; none where values stand for several tasks of a run."""
    codes, values = [], []
    for side, scored in ((a, scored_a), (b, scored_b)):
        known = np.flatnonzero(scored & (side.fingerprints[name] != 0))
        single, first, n = np.unique(side.fingerprints[name][known], return_index=True, return_counts=True)
        if int((n == 1).sum()) < _UNIQUE * len(known):
            return Pairs(a, b, known[:0], known[:0])
        codes.append(known[first[n == 1]])
        values.append(single[n == 1])
    _, of_a, of_b = np.intersect1d(values[0], values[1], assume_unique=True, return_indices=True)
    return Pairs(a, b, codes[0][of_a], codes[1][of_b])  # in the order of the values, whichever run comes first


def _ranks(a: Side, b: Side) -> tuple[Ints, Ints]:
    """The place of each task of either run among the keys of both: numbers by value, then texts by spelling."""

    def order(key: str) -> tuple[int, int, str]:
        digits = key.removeprefix("-")
        return (0, int(key), key) if digits.isascii() and digits.isdigit() else (1, 0, key)

    place = {key: rank for rank, key in enumerate(sorted({*a.judged.task_keys, *b.judged.task_keys}, key=order))}
    rank_a, rank_b = (np.array([place[key] for key in side.judged.task_keys], np.int64) for side in (a, b))
    return rank_a, rank_b


# -- what the fields say of a pairing -------------------------------------------------------------


class Related(NamedTuple):
    """How a field of the tasks agrees between the runs."""

    differs: Bools  # by pair; False where either run does not tell
    n_known: int
    agreement: float  # beyond chance: 1 if all agree, 0 if the pairs say nothing

    @property
    def is_everywhere(self) -> bool:
        return int(self.differs.sum()) >= _NEARLY_ALL * self.n_known


@dataclass(frozen=True)
class Pairs:
    """Tasks of two runs taken to be the same, and what the fields of their rows say to that."""

    a: Side
    b: Side
    codes_a: Ints
    codes_b: Ints

    @cached_property
    def fields(self) -> dict[str, Related]:
        """The fields that both runs tell for most of the paired tasks, by name."""
        agreements = {}
        for name in sorted(self.a.fingerprints.keys() & self.b.fingerprints.keys()):
            left, right = self.a.fingerprints[name][self.codes_a], self.b.fingerprints[name][self.codes_b]
            known = (left != 0) & (right != 0)
            n_known = int(known.sum())
            if n_known and n_known >= _KNOWN * len(known):
                agreement = _beyond_chance(left[known], right[known])
                agreements[name] = Related(known & (left != right), n_known, agreement)
        return agreements

    @cached_property
    def certain(self) -> dict[str, Related]:
        """The fields that can only be the task's own and by which single tasks are told apart.

        `id` and its like may name a rollout. The prompt counts if repeats show that it holds still: with a
        simulated user it does not.
        """
        return {
            name: field for name, field in self.fields.items()
            if group_of(name) and name not in WEAK_IDS and (name != PROMPT or self._prompt_holds_still())
        }

    def _prompt_holds_still(self) -> bool:
        """Has either run enough tasks whose repeats all show one prompt."""
        runs, least = ((self.a, self.codes_a), (self.b, self.codes_b)), max(1, min(_REPEATED, len(self.codes_a)))
        still = ((counts(side)[codes] > 1) & (side.fingerprints[PROMPT][codes] != 0) for side, codes in runs)
        return any(int(tasks.sum()) >= least for tasks in still)

    def supporters(self, *groups: str) -> list[str]:
        """The fields of the tasks, of all groups or of these, that agree with the pairing, ids first."""
        wanted = groups or ("id", "text", "gold")
        names = [name for name, field in self.fields.items() if group_of(name) in wanted and field.agreement >= _AGREES]
        return sorted(names, key=lambda name: (group_of(name) != "id", name == PROMPT, name))

    def words(self) -> str:
        names = self.supporters()
        if not names:
            return "task key; no field of the tasks confirms it"
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"task key, confirmed by {', '.join(names[:_SHOWN])}{more}"

    def is_denied(self, name: str) -> bool:
        """Do other fields show that tasks with the same value of this one are others all the same.

        Two sets of tasks may both be counted from 0 in a field of their own. A text says itself what the task is.
        """
        against = _unrelated({other: field for other, field in self.certain.items() if other != name})
        if group_of(name) == "id":
            return bool(against) if name in WEAK_IDS else {"text", "gold"} <= against
        return group_of(name) == "gold" and "text" in against

    def changed_tasks(self) -> tuple[Bools, tuple[str, ...]]:
        """The pairs that are clearly not one and the same task, and the fields that say so."""
        names = self._unlike_altogether() or [
            name for name, field in self.fields.items()
            if field.differs.any() and not field.is_everywhere and (name in self.certain or self._has_company(name))
        ]
        changed = np.zeros(len(self.codes_a), bool)
        for name in names:
            changed |= self.fields[name].differs
        return changed, tuple(names)

    def changed_everywhere(self) -> tuple[str, ...]:
        """The fields of the tasks that differ in nearly all of them: a template or a format that changed."""
        return tuple(name for name, field in self.certain.items() if field.differs.any() and field.is_everywhere)

    def _unlike_altogether(self) -> list[str]:
        """The fields that say that these are other tasks throughout; empty where they may be the same.

        One kind of field alone may have a new spelling: another template, other names, another way to write the
        answer. Question and answer together are the task, whatever its number; so are other names in rows of
        another form.
        """
        groups = _unrelated(self.certain) | ({"form"} if self._share_no_field() else set())
        if self.supporters("text", "gold") or len(groups) < 2:
            return []
        if self.supporters("id"):
            groups.discard("id")
        return [name for name in self.certain if group_of(name) in groups] if len(groups) > 1 else []

    def _share_no_field(self) -> bool:
        """Do both runs tell their tasks by questions or answers, and none of these by the same name."""
        mine, theirs = (
            {name for name in side.fingerprints if group_of(name) in ("text", "gold") and name != PROMPT}
            for side in (self.a, self.b)
        )
        return bool(mine and theirs) and not mine & theirs

    def _has_company(self, name: str) -> bool:
        """Does a second field, which is no part of this one, differ in the same tasks.

        Two fields that may both be the model's own, such as its answer and a label of it, speak only where
        nothing confirms the tasks: they differ wherever the model does.
        """
        mine, is_confirmed = self.fields[name].differs, bool(self.supporters())
        for other, field in self.fields.items():
            is_models = is_confirmed and not group_of(name) and not group_of(other)
            is_part = other.partition(".")[0] == name.partition(".")[0]
            if is_models or is_part or field.is_everywhere:
                continue
            if int((mine & field.differs).sum()) >= _ALIKE * int((mine | field.differs).sum()):
                return True
        return False


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


def _unrelated(fields: Mapping[str, Related]) -> set[str]:
    """The kinds of fields that agree no more than those of any two tasks would."""
    return {group_of(name) for name, field in fields.items() if field.differs.any() and field.agreement < _UNRELATED}
