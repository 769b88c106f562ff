"""Turn what two runs state of themselves into what changed, and whether one change can be told."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from blade.compare.contents import group_of
from blade.compare.named_settings import KINDS, MECHANICAL, Named, named, tail_of, without_file
from blade.compare.shown import signed
from blade.model import Alignment, Setting, Side

_NOTHING = frozenset(
    {"", "none", "null", "nan"}
)  # a setting that was left open: nobody knows what it came to
_NO_SKILLS = "none"
_SKILLS = "skills_ref.hash"
# Settings that tell the content itself, so that where it lies does not matter.
_CONTENTS = {
    "dataset": "data", "tools": "tools", "verifier": "verifier", "system prompt": "prompt", _SKILLS: "skills"
}  # fmt: skip
_SHOWN = 3  # pairs of runs named for one setting

Delta = tuple[float | None, float | None, float | None]  # change over the common tasks, low, high


# -- two runs -------------------------------------------------------------------------------------


def config_diff(a: Side, b: Side, alignment: Alignment | None = None) -> tuple[Setting, ...]:
    """The settings that differ: first those that can have moved the score, by kind and name.

    A setting that one run does not state is listed as unknown: what nobody wrote down may well be the same.
    Only skills are different, which are stamped on every row that had any. With an alignment a template or
    a format that changed in all tasks is a setting too; other names of the same tasks are listed alone.
    """
    found = _differences(_stated(a), _stated(b))
    for field in alignment.changed_everywhere if alignment is not None else ():
        kind = "prompt" if group_of(field) == "text" else "data"
        counts = group_of(field) != "id"  # no model is asked for the name of a task
        if not any(one.kind == kind and one.known and (one.counts or not counts) for one in found):
            values = (_digest(a, field), _digest(b, field))
            mechanical = counts and kind in MECHANICAL
            found.append(Setting(field, *values, kind, mechanical, counts=counts))
    return tuple(sorted(found, key=_rank))


def _differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[Setting]:
    found = []
    for key, other in _couples(there, here):
        one = _setting(key, other, there.get(key), here.get(other))
        if one is not None:
            found.append(one)
    said = {_same_as(key) for key in there} & {_same_as(key) for key in here}
    by_content = {kind for key, kind in _CONTENTS.items() if key in there and key in here}
    found = [
        one
        for one in found
        if (one.known or _same_as(one.key) not in said)
        and not (_is_place(one.key) and one.kind in by_content)
    ]
    return _once(sorted(found, key=_rank))


def _rank(one: Setting) -> tuple[bool, bool, int, int, str]:
    """What may have moved the score before what cannot; what a run says itself before files beside it."""
    depth = one.key.count(".") if one.key not in _CONTENTS else 0
    return not (one.known and one.counts), not one.known, KINDS.index(one.kind), depth, one.key


def _digest(side: Side, field: str) -> str:
    """All values of a task field as one short word."""
    return hashlib.sha256(np.sort(side.fingerprints[field]).tobytes()).hexdigest()[:12]


def _stated(side: Side) -> dict[str, str]:
    """What a run states: the rows before a file beside them, everything else by spelling."""
    found: dict[str, str] = {}
    for key, value in (("model", side.model), ("agent", side.agent), ("repeats", _repeats(side))):
        if value is not None:
            found[key] = value
    if side.threshold is not None:
        found["pass threshold"] = _number(side.threshold)
    for key in sorted(side.settings, key=lambda key: (without_file(key) != key, key)):
        value = side.settings[key].strip()
        if value.lower() not in _NOTHING and named(without_file(key)) is not None:
            found.setdefault(without_file(key), value)
    if not any(_same_as(key) == "skills" for key in found):
        found[_SKILLS] = _NO_SKILLS
    return found


def _repeats(side: Side) -> str | None:
    """The commonest number of rollouts expected of a task; the larger one of a tie."""
    expected = side.expected[side.expected > 0]
    if not expected.size:
        return None
    shares = np.bincount(expected)
    return str(len(shares) - 1 - int(np.argmax(shares[::-1])))


def _couples(there: Mapping[str, str], here: Mapping[str, str]) -> list[tuple[str, str]]:
    """The settings of both runs side by side; one that stands elsewhere in the other is found by its name."""
    couples = [(key, key) for key in there.keys() & here.keys()]
    left, right = (_by_tail(one.keys() - other.keys()) for one, other in ((there, here), (here, there)))
    for tail in left.keys() | right.keys():
        keys_a, keys_b = left.get(tail, []), right.get(tail, [])
        if len(keys_a) == len(keys_b) == 1:
            couples.append((keys_a[0], keys_b[0]))
        else:
            couples += [(key, key) for key in (*keys_a, *keys_b)]
    return couples


def _by_tail(keys: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(tail_of(key).lower(), []).append(key)
    return found


def _setting(key: str, other: str, baseline: str | None, candidate: str | None) -> Setting | None:
    """The setting as a difference; None if there is none."""
    shown = min(key, other, key=lambda name: (len(name), name))  # whichever run comes first
    about = named(shown)
    if about is None:
        return None
    known = baseline is not None and candidate is not None
    if known and _plain(baseline, about) == _plain(candidate, about):
        return None
    return Setting(shown, baseline, candidate, about.kind, about.kind in MECHANICAL, known, about.counts)


def _plain(value: str | None, about: Named) -> str:
    """A value in one spelling: 1 and 1.0 are the same, and so is a file of the same folder elsewhere."""
    text = (value or "").strip()
    if about.kind != "model" and (about.is_place or re.match(r"(/|~/|\.\.?/|[A-Za-z]:\\|\w+://)", text)):
        return "/".join(re.split(r"[/\\]+", text.rstrip("/"))[-2:])
    try:
        return _number(float(text))
    except (ValueError, OverflowError):
        return text.lower() if text.lower() in ("true", "false") else text


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _is_place(key: str) -> bool:
    about = named(key)
    return about is not None and about.is_place


def _same_as(key: str) -> str:
    about = named(key)
    return about.same_as if about is not None else ""


def _once(found: list[Setting]) -> list[Setting]:
    """Without settings that say again what one before them said: the same thing, or the same two values."""
    seen: set[tuple[str, ...]] = set()
    kept = []
    for one in found:
        about = named(one.key)
        if about is None:
            continue
        values = (_plain(one.baseline, about), _plain(one.candidate, about)) if ":" in about.same_as else ()
        if (about.same_as, *values) not in seen:
            kept.append(one)
        seen.add((about.same_as, *values))
    return kept


def changed(diff: Sequence[Setting]) -> list[Setting]:
    """The settings that are known to differ and can have changed what a rollout scores."""
    return [one for one in diff if one.known and one.counts]


def separation(diff: Sequence[Setting], a: Side, b: Side) -> tuple[bool | None, str]:
    """Whether the change can be laid to one setting, and else the run that would help, in words.

    True: one setting changed. False: several did. None: none did, or one did and another is unknown.
    """
    keys = changed(diff)
    if len(keys) < 2:
        is_sure = len(keys) == 1 and all(one.known or not one.counts for one in diff)
        return (True if is_sure else None), ""
    first, others = keys[0], keys[1:]
    run = _run_with(first, others)
    if len(others) > 1:
        more = "another such run" if len(others) == 2 else f"{len(others) - 1} more such runs"
        run += f"; it sets {first.key} apart from the others, which take {more}"
    return False, run


def _run_with(first: Setting, others: Sequence[Setting], baseline: str = "the baseline") -> str:
    """A run in which one setting is the candidate's and the others are the baseline's."""
    kept = _listed([f"{one.key} = {one.baseline}" for one in others])
    if first.key == "model":
        return f"a run of {first.candidate} with {kept} (everything else as in {baseline})"
    return f"a run with {first.key} = {first.candidate} and {kept} (everything else as in {baseline})"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# -- several runs ---------------------------------------------------------------------------------


class _Step(NamedTuple):
    """Two runs that differ in a setting."""

    a: str
    b: str
    setting: Setting
    others: list[Setting]  # that changed along with it
    is_sure: bool  # no setting is stated by one of them only
    delta: Delta | None


def effects(sides: Sequence[Side], deltas: Mapping[tuple[str, str], Delta]) -> tuple[tuple[str, str], ...]:
    """For each setting that varies among the runs: its effect where two differ in it alone, else why none."""
    stated = {side.run: _stated(side) for side in sides}
    steps: dict[str, list[_Step]] = {}
    for first, second in combinations([side.run for side in sides], 2):
        is_turned = (first, second) not in deltas and (second, first) in deltas
        a, b = (second, first) if is_turned else (first, second)
        diff = sorted(_differences(stated[a], stated[b]), key=_rank)
        keys = changed(diff)
        is_sure = all(one.known or not one.counts for one in diff)
        for one in keys:
            others = [other for other in keys if other is not one]
            steps.setdefault(one.key, []).append(_Step(a, b, one, others, is_sure, deltas.get((a, b))))
    order = sorted(steps, key=lambda key: _rank(steps[key][0].setting))
    return tuple((key, _effect(steps[key])) for key in order)


def _effect(steps: list[_Step]) -> str:
    alone = sorted((step for step in steps if not step.others), key=lambda step: step.delta is None)
    if alone:
        told = "; ".join(_told(step) for step in alone[:_SHOWN])
        more = f"; and {len(alone) - _SHOWN} more pairs of runs" if len(alone) > _SHOWN else ""
        return f"identified by runs that differ in it alone: {told}{more}"
    nearest = min(steps, key=lambda step: len(step.others))
    always = set.intersection(*({one.key for one in step.others} for step in steps))
    names = [one.key for one in nearest.others if one.key in always or not always]
    run = _run_with(nearest.setting, nearest.others, nearest.a)
    return f"not separable from {_listed(names)}; {run} would separate it"


def _told(step: _Step) -> str:
    one = step.setting
    words = f"{one.baseline} → {one.candidate} ({step.a} → {step.b})"
    delta, low, high = step.delta or (None, None, None)
    if delta is not None:
        words += f" {signed(delta, '.3f')}"
    if low is not None and high is not None:
        words += f" [{signed(low, '.3f')}, {signed(high, '.3f')}]"
    return words if step.is_sure else f"{words}, as far as the runs state their settings"
