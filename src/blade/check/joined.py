"""Turn what several readers say of one report into one verdict for each thing it claims."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion

_STRENGTH = (CONTRADICTED, SUPPORTED, UNVERIFIABLE)


def joined(
    again: Iterable[Assertion],
    read: Iterable[Assertion],
    inside: Iterable[Assertion],
    given: AbstractSet[tuple[int, str]] = frozenset(),
) -> tuple[Assertion, ...]:
    """The claims in the order of their lines, each once; `given` is what the rows give word for word.

    Where the rows give the very sentence or table row again, that settles what stands in it: a reader that
    knows its words alone is not asked, and of two lines that disagree the one that the rows give is right.
    """
    kept = list(again)
    settled = {(one.line, one.text) for one in kept} | given
    right = settled - {(one.line, one.text) for one in kept if one.verdict == CONTRADICTED}
    kept += [one for one in read if (one.line, one.text) not in settled]
    kept += [one for one in inside if (one.line, one.text) not in right]
    best: dict[tuple[int, str, int, str], Assertion] = {}
    for one in kept:
        key = (one.line, one.text, one.start, one.found)
        if key not in best or _STRENGTH.index(one.verdict) < _STRENGTH.index(best[key].verdict):
            best[key] = one
    return tuple(sorted(best.values(), key=lambda one: (one.line, one.text, one.start, one.found)))
