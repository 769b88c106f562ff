"""List the settings that differ between runs, and say whether the change can be laid to one."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from blade.compare.alignment import group_of
from blade.model import Alignment, Setting, Side
from blade.number_format import listing

_NOTHING = frozenset({"", "none", "null", "nan"})  # a setting that was left open: nobody knows what it came to
_NO_SKILLS = "none"
_SKILLS_HASH = "skills_ref.hash"
# Settings that tell the content itself, so that where it lies does not matter.
_CONTENTS = {
    "dataset": "data", "tools": "tools", "verifier": "verifier", "system prompt": "prompt", _SKILLS_HASH: "skills"
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
    settings = _differences(_stated(a), _stated(b))
    for field in alignment.changed_everywhere if alignment is not None else ():
        kind = "prompt" if group_of(field) == "text" else "data"
        counts = group_of(field) != "id"  # no model is asked for the name of a task
        if not any(setting.kind == kind and setting.known and (setting.counts or not counts) for setting in settings):
            # all values of the field as one short word
            there, here = (hashlib.sha256(np.sort(side.fingerprints[field]).tobytes()).hexdigest()[:12] for side in (a, b))
            settings.append(Setting(field, there, here, kind, counts and kind in MECHANICAL, counts=counts))
    return tuple(sorted(settings, key=_rank))


def _differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[Setting]:
    """Without settings that say again what one before them said: the same thing, or the same two values."""
    couples = (_setting(key, other, there.get(key), here.get(other)) for key, other in _couples(there, here))
    meanings = {_about(key).same_as for key in there} & {_about(key).same_as for key in here}
    by_content = {kind for key, kind in _CONTENTS.items() if key in there and key in here}
    distinct: dict[tuple[str, ...], Setting] = {}
    for setting in sorted(filter(None, couples), key=_rank):
        about = _about(setting.key)
        if (setting.known or about.same_as not in meanings) and not (about.is_place and setting.kind in by_content):
            values = (_plain(setting.baseline, about), _plain(setting.candidate, about)) if ":" in about.same_as else ()
            distinct.setdefault((about.same_as, *values), setting)
    return list(distinct.values())


def _rank(setting: Setting) -> tuple[bool, bool, int, int, str]:
    """What may have moved the score before what cannot; what a run says itself before files beside it."""
    depth = setting.key.count(".") if setting.key not in _CONTENTS else 0
    return not (setting.known and setting.counts), not setting.known, KINDS.index(setting.kind), depth, setting.key


def _stated(side: Side) -> dict[str, str]:
    """What a run states: the rows before a file beside them, everything else by spelling."""
    stated = {key: value for key, value in (("model", side.model), ("agent", side.agent)) if value is not None}
    if (side.expected > 0).any():  # the commonest number of rollouts expected of a task; the larger one of a tie
        shares = np.bincount(side.expected[side.expected > 0])
        stated["repeats"] = str(len(shares) - 1 - int(np.argmax(shares[::-1])))
    if side.threshold is not None:
        stated["pass threshold"] = _number(side.threshold)
    for key in sorted(side.settings, key=lambda key: (without_file(key) != key, key)):
        value = side.settings[key].strip()
        if value.lower() not in _NOTHING and named(without_file(key)) is not None:
            stated.setdefault(without_file(key), value)
    if not any(_about(key).same_as == "skills" for key in stated):
        stated[_SKILLS_HASH] = _NO_SKILLS
    return stated


def _couples(there: Mapping[str, str], here: Mapping[str, str]) -> list[tuple[str, str]]:
    """The settings of both runs side by side; one that stands elsewhere in the other is found by its name."""
    couples = [(key, key) for key in there.keys() & here.keys()]
    by_tail: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for run, mine, other in ((0, there, here), (1, here, there)):
        for key in mine.keys() - other.keys():
            by_tail[tail_of(key).lower()][run].append(key)
    for keys_a, keys_b in by_tail.values():
        if len(keys_a) == len(keys_b) == 1:
            couples.append((keys_a[0], keys_b[0]))
        else:
            couples += [(key, key) for key in (*keys_a, *keys_b)]
    return couples


def _setting(key: str, other: str, baseline: str | None, candidate: str | None) -> Setting | None:
    shown = min(key, other, key=lambda name: (len(name), name))  # whichever run comes first
    about = _about(shown)
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


def changed(diff: Sequence[Setting]) -> list[Setting]:
    """The settings that are known to differ and can have changed what a rollout scores."""
    return [setting for setting in diff if setting.known and setting.counts]


def separation(diff: Sequence[Setting], a: Side, b: Side) -> tuple[bool | None, str]:
    """Whether the change can be laid to one setting, and else the run that would help, in words.

    True: one setting changed. False: several did. None: none did, or one did and another is unknown.
    """
    keys = changed(diff)
    if len(keys) < 2:
        is_sure = len(keys) == 1 and all(setting.known or not setting.counts for setting in diff)
        return (True if is_sure else None), ""
    first, others = keys[0], keys[1:]
    run = _run_with(first, others)
    if len(others) > 1:
        more = "another such run" if len(others) == 2 else f"{len(others) - 1} more such runs"
        run += f"; it sets {first.key} apart from the others, which take {more}"
    return False, run


def _run_with(first: Setting, others: Sequence[Setting], baseline: str = "the baseline") -> str:
    """A run in which one setting is the candidate's and the others are the baseline's."""
    others_as_before = listing([f"{setting.key} = {setting.baseline}" for setting in others])
    change = f"of {first.candidate} with" if first.key == "model" else f"with {first.key} = {first.candidate} and"
    return f"a run {change} {others_as_before} (everything else as in {baseline})"


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
        is_sure = all(setting.known or not setting.counts for setting in diff)
        for setting in keys:
            others = [other for other in keys if other is not setting]
            steps.setdefault(setting.key, []).append(_Step(a, b, setting, others, is_sure, deltas.get((a, b))))
    order = sorted(steps, key=lambda key: _rank(steps[key][0].setting))
    return tuple((key, _effect(steps[key])) for key in order)


def _effect(steps: list[_Step]) -> str:
    alone = sorted((step for step in steps if not step.others), key=lambda step: step.delta is None)
    if alone:
        pairs = "; ".join(_effect_text(step) for step in alone[:_SHOWN])
        more = f"; and {len(alone) - _SHOWN} more pairs of runs" if len(alone) > _SHOWN else ""
        return f"identified by runs that differ in it alone: {pairs}{more}"
    nearest = min(steps, key=lambda step: len(step.others))
    always = set.intersection(*({setting.key for setting in step.others} for step in steps))
    names = [setting.key for setting in nearest.others if setting.key in always or not always]
    run = _run_with(nearest.setting, nearest.others, nearest.a)
    return f"not separable from {listing(names)}; {run} would separate it"


def signed(number: float, form: str) -> str:
    """Print a number with its sign: `+0.264`, `−0.410`."""
    return f"{number:+{form}}".replace("-", "−")


def _effect_text(step: _Step) -> str:
    words = f"{step.setting.baseline} → {step.setting.candidate} ({step.a} → {step.b})"
    delta, low, high = step.delta or (None, None, None)
    if delta is not None:
        words += f" {signed(delta, '.3f')}"
    if low is not None and high is not None:
        words += f" [{signed(low, '.3f')}, {signed(high, '.3f')}]"
    return words if step.is_sure else f"{words}, as far as the runs state their settings"


MECHANICAL = frozenset({"limit", "tools", "verifier", "data"})
KINDS = tuple("model harness skills prompt tools sampling limit verifier data other repeats".split())

_FILE = re.compile(r"[^:\s]+\.(?:ya?ml|json|toml): ")  # "config.yaml: a.b" is the setting a.b of that file
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

_OURS = frozenset({"tasks grouped by"})
_OF_A_FILE = frozenset({"prompt", "tools", "data", "verifier", "skills", "model"})


def _sets(lists: Any) -> Any:
    """The words of each list."""
    return frozenset(lists.split()) if isinstance(lists, str) else {name: _sets(part) for name, part in lists.items()}


@cache
def _known() -> Any:
    """The lists of `setting_words.yaml`."""
    import yaml

    return _sets(yaml.safe_load(Path(__file__).with_name("setting_words.yaml").read_text("utf-8")))


class Named(NamedTuple):
    """What the name of a setting says."""

    kind: str
    counts: bool  # False: a rollout scores the same whatever it is
    is_place: bool  # its value says where something lies
    same_as: str  # settings that say the same thing under several names have the same word here


def without_file(key: str) -> str:
    """The setting without the file it was read from."""
    return _FILE.sub("", key, count=1)


def tail_of(key: str) -> str:
    return key.rpartition(".")[2]


@lru_cache(maxsize=4096)
def named(key: str) -> Named | None:
    """What a setting is by its name; None if any two runs differ in it and it means nothing.

    Only names of places and records are passed over, and only where no word of theirs names a variable: one
    variable too many is seen, one too few is not.
    """
    tail, words = _words(tail_of(key)), _words(key)
    kind = _kind(tail, words)
    if key in _OURS or (tail & _known()["server"] and kind != "limit"):
        return None
    is_place = bool(tail & _known()["place"])
    if is_place and kind not in _OF_A_FILE:
        return None
    if tail & _known()["record"] and kind in ("other", "harness"):
        return None
    counts = kind != "repeats" and "seed" not in tail and not _is_how_many(tail)
    of_one = _known()["of_one"]
    is_one = kind in ("repeats", "skills") or (kind in of_one and tail <= of_one[kind])
    return Named(kind, counts, is_place, kind if is_one else f"{kind}: {tail_of(key).lower()}")


def _about(key: str) -> Named:
    about = named(key)
    assert about is not None
    return about


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(text))


def _kind(tail: frozenset[str], words: frozenset[str]) -> str:
    """By the words of the last part of the name, then by those before it."""
    for kind in ("verifier", "skills"):
        if words & _known()[kind]:
            return kind
    if tail & _known()["repeats"] or {"per", "task"} <= tail:
        return "repeats"
    if _is_how_many(tail):
        return "data"
    if "seed" in tail:
        return "other"
    for part in (tail, words):
        for kind, known in _known()["kinds"].items():
            if part & known:
                return str(kind)
    return "other"


def _is_how_many(tail: frozenset[str]) -> bool:
    """Does it say how many tasks are run, not how."""
    return tail == {"limit"} or (bool(tail & _known()["how_many"]) and bool(tail & {"num", "n", "max", "limit"}))
