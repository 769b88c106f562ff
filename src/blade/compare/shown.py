"""Turn a term of the bridge into rollouts that show it, and into what these rollouts show as well."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from blade.compare.pairing import Paired
from blade.model import OTHER, Side, Term

if TYPE_CHECKING:
    from blade.model import Ints

MANY = 5  # rollouts from which it is told what they have in common
MOST = 0.6  # of them must show another thing for it to be told
LISTED = 5
_CALLS = re.compile(r"^(never )?calls ")  # words are of several rollouts, but of calls of one
_SLUG = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")  # a rule of ours, told with spaces


def in_words(name: str, words: Mapping[str, str]) -> str:
    """A mode or a behaviour as a reader says it."""
    return words.get(name) or (name.replace("_", " ") if _SLUG.fullmatch(name) else name)


def signed(number: float, form: str) -> str:
    """A number with its sign as it is printed: `+0.264`, `−0.410`."""
    return f"{number:+{form}}".replace("-", "−")


def shown(
    pair: Paired, term: Term, words: Mapping[str, str]
) -> tuple[tuple[tuple[str, str, int], ...], tuple[str, ...]]:
    """Run, task and repeat of some rollouts booked under the term, of the run that has more of them; and what
    most of these show as well, in words."""
    rows_a, rows_b = _rows(pair.a, pair.code_a, term), _rows(pair.b, pair.code_b, term)
    more_in_a = (rows_a.size, pair.a.run) > (rows_b.size, pair.b.run)
    side, rows = (pair.a, rows_a) if more_in_a else (pair.b, rows_b)
    judged = side.judged
    listed = tuple(
        (side.run, judged.task_keys[int(judged.task[row])], int(judged.repeat[row])) for row in rows[:LISTED]
    )
    return listed, _beside(side, rows, term, words)


def _rows(side: Side, common: Ints, term: Term) -> Ints:
    codes = [code for code, mode in enumerate(side.modes) if mode == (term.side, term.term)]
    return np.flatnonzero(np.isin(side.mode, codes) & np.isin(side.judged.task, common))


def _beside(side: Side, rows: Ints, term: Term, words: Mapping[str, str]) -> tuple[str, ...]:
    if rows.size < MANY or term.side != "model" or term.term == OTHER:
        return ()
    found = []
    for name, others in side.behaviours.items():
        n = int(np.isin(rows, others).sum())
        if name != term.term and n >= MOST * rows.size:
            found.append((-n, name))
    return tuple(
        f"of its {rows.size} failing rollouts in {side.run}, {-n} also {_do(name, words)}"
        for n, name in sorted(found)[:2]
    )


def _do(name: str, words: Mapping[str, str]) -> str:
    """What several rollouts with a behaviour do: `repeat a call of x unchanged`, `show turn limit`."""
    if name not in words:
        return f"show {in_words(name, words)}"
    return _CALLS.sub(r"\1call ", words[name], count=1)
