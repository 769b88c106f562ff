"""Hold a golden report against the rollouts of its package, claim by claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blade.errors import BladeError
from blade.package.layout import prefix_of
from blade.package.validate.phases import EVIDENCE, Check, plural

if TYPE_CHECKING:
    from blade.check.world import World
    from blade.model import Assertion
    from blade.store.index import Watcher

SHOWN = 8  # contradictions told one by one


class NotProved(Exception):
    """Why a report could not be held against its rollouts, in words."""


def world_of(text: str, rollouts: Sequence[Path], watcher: Watcher) -> World:
    """What the rollouts say, made as the report says that it was made."""
    from blade.check.made import made
    from blade.check.recomputed import recomputed

    told = made(text)
    named = len(told.runs) == len(rollouts)
    specs = [str(path) if named else f"{prefix_of(path)}={path}" for path in rollouts]
    try:
        return recomputed(text, specs, watcher)
    except BladeError as error:
        raise NotProved(error.message) from error


def proof_checks(name: str, found: Sequence[Assertion], world: World | None) -> list[Check]:
    """Whether a report passes `blade check`, with a line for each contradiction."""
    from blade.model import CONTRADICTED, SUPPORTED

    wrong = [one for one in found if one.verdict == CONTRADICTED]
    n = sum(one.verdict == SUPPORTED for one in found)
    if wrong:
        return list(_contradicted(name, wrong))
    if world is None:
        return [Check(True, f"{name}: does not contradict itself", EVIDENCE)]
    if not n:
        return [Check(False, f"{name}: holds no claim that its rollouts support", EVIDENCE)]
    told = f"{plural(n, 'claim')} supported, 0 contradicted, {len(found) - n} unverifiable"
    return [Check(True, f"{name}: passes blade check: {told}", EVIDENCE)]


def _contradicted(name: str, wrong: Sequence[Assertion]) -> Iterator[Check]:
    for one in wrong[:SHOWN]:
        says = f", the rollouts say {one.expected[:80]}" if one.expected else ""
        why = f" ({one.why[:120]})" if one.why else ""
        yield Check(False, f"{name}: line {one.line}: says {one.found[:80]}{says}{why}", EVIDENCE)
    if len(wrong) > SHOWN:
        yield Check(False, f"{name}: {len(wrong) - SHOWN} further claims are contradicted", EVIDENCE)
