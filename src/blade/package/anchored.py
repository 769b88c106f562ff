"""Check the anchor facts of a golden report: formed, each another, and of use to a judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.layout import Golden
from blade.package.phases import ANCHORS, Check, words

if TYPE_CHECKING:
    from blade.check.world import World

MIN_FACT = 20  # characters
DIFFICULTIES = ("high", "medium", "low")
SHOWN = 5  # facts named in one line
_CONCRETE = re.compile(r"\d|`[^`]+`|[“\"][^”\"]{3,}[”\"]|\b\w+_\w+|\b[a-z]+[A-Z]\w+")


def anchor_checks(one: Golden, least: int, world: World | None) -> Iterator[Check]:
    """The checks of one file of anchor facts; against the rollouts where these could be read."""
    name = one.anchors.name
    if not one.anchors.is_file():
        if one.is_comparison:
            yield Check(True, f"{one.report.name}: comparison report anchor facts missing; optional")
        else:
            yield Check(False, f"{one.report.name}: missing anchor facts {name}", ANCHORS)
        return
    try:
        told = files.data(one.anchors)
    except files.Broken as broken:
        yield Check(False, f"{name}: anchor facts JSON failed to parse ({broken})", ANCHORS)
        return
    facts = told.get("anchor_facts") if isinstance(told, dict) else told
    facts = facts if isinstance(facts, list) else []
    yield Check(len(facts) >= least, f"{name}: {len(facts)} anchor facts", ANCHORS)
    formed = [fact for fact in facts if _is_formed(fact)]
    yield Check(
        len(formed) == len(facts), f"{name}: {len(facts) - len(formed)} malformed anchor facts", ANCHORS
    )
    yield from _distinct(name, formed)
    if formed and world is not None:
        yield from _usable(name, formed, least, world)


def _distinct(name: str, facts: Sequence[dict[str, Any]]) -> Iterator[Check]:
    """Whether facts differ and name something that can be looked up."""
    texts = [" ".join(fact["fact"].lower().split()) for fact in facts]
    again = len(texts) - len(set(texts))
    if again:
        yield Check(False, f"{name}: {again} of {len(texts)} anchor facts repeat another one", ANCHORS)
    vague = [_id(fact, at) for at, fact in enumerate(facts) if not _is_concrete(fact)]
    if vague:
        told = f"{len(vague)} of {len(texts)} anchor facts name nothing that could be looked up"
        yield Check(False, f"{name}: {told}: {_some(vague)}", ANCHORS)
    if not again and not vague and texts:
        yield Check(True, f"{name}: anchor facts are concrete, and each is another", ANCHORS)


def _usable(name: str, facts: Sequence[dict[str, Any]], least: int, world: World) -> Iterator[Check]:
    """Whether enough of the facts are such that a judge can look for them, and none of them is false."""
    from blade.package.anchors import of_file, settled
    from blade.package.units import names

    found = settled(of_file(list(facts)), world, names(world.report))
    false = [one.id for one in found if one.problem == "the rollouts contradict it"]
    if false:
        yield Check(False, f"{name}: the rollouts contradict {_some(false)}", ANCHORS)
    usable = [one for one in found if not one.problem and one.predicate is not None]
    told = f"{len(usable)} of {len(found)} anchor facts can be judged by"
    if len(usable) < least:
        why = [f"{one.id} ({one.problem})" for one in found if one.problem]
        yield Check(False, f"{name}: only {told}, at least {least} must be: {_some(why)}", ANCHORS)
    else:
        yield Check(True, f"{name}: {told}", ANCHORS)


def _is_formed(fact: Any) -> bool:
    if not isinstance(fact, dict) or not isinstance(fact.get("fact"), str):
        return False
    difficulty = fact.get("difficulty", "low")
    return (
        len(fact["fact"].strip()) >= MIN_FACT and isinstance(difficulty, str) and difficulty in DIFFICULTIES
    )


def _is_concrete(fact: dict[str, Any]) -> bool:
    """A number, a name or a quotation among other words."""
    return len(words(fact["fact"])) >= 3 and bool(_CONCRETE.search(fact["fact"]))


def _id(fact: dict[str, Any], at: int) -> str:
    told = fact.get("id")
    return told[:20] if isinstance(told, str) and told else f"#{at + 1}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
