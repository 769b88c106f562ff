"""Check the anchor facts of a golden report: formed, each another, of use to a judge, met by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.layout import Golden
from blade.package.validate.phases import ANCHORS, EVIDENCE, Check, words

if TYPE_CHECKING:
    from blade.check.world import World
    from blade.package.judge.score import Bench

MIN_FACT = 20  # characters
DIFFICULTIES = ("high", "medium", "low")
SHOWN = 5  # facts named in one line
_CONCRETE = re.compile(r"\d|`[^`]+`|[“\"][^”\"]{3,}[”\"]|\b\w+_\w+|\b[a-z]+[A-Z]\w+")


def anchor_checks(one: Golden, least: int, world: World | None, text: str) -> Iterator[Check]:
    """The checks of one file of anchor facts; against rollouts and report where these could be read."""
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
        yield from _usable(one, formed, least, world, text)


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


def _usable(
    one: Golden, facts: Sequence[dict[str, Any]], least: int, world: World, text: str
) -> Iterator[Check]:
    """Whether a judge can look for enough of the facts, none of them is false, and the report states them."""
    name = one.anchors.name
    bench = _bench(one, facts, world, text)
    false = [told.id for told in bench.anchors if told.problem == "the rollouts contradict it"]
    if false:
        yield Check(False, f"{name}: the rollouts contradict {_some(false)}", ANCHORS)
    usable = [told for told in bench.usable if told.weighs]
    told = f"{len(usable)} of {len(bench.anchors)} anchor facts can be judged by"
    if len(usable) < least:
        why = [f"{fact.id} ({fact.problem or 'a table of totals has it'})" for fact in bench.anchors
               if fact not in usable]  # fmt: skip
        yield Check(False, f"{name}: only {told}, at least {least} must be: {_some(why)}", ANCHORS)
        return
    yield Check(True, f"{name}: {told}", ANCHORS)
    if usable:
        yield _own_score(one.report.name, bench)


def _bench(one: Golden, facts: Sequence[dict[str, Any]], world: World, text: str) -> Bench:
    """What a judge of this report would sit on."""
    from blade.errors import BladeError
    from blade.package.judge.anchors import of_file
    from blade.package.judge.score import bench
    from blade.package.judge.sources import CannotJudge, case

    runs = [name for run in world.report.runs for name in (run.name, run.model) if name]
    anchors = of_file(list(facts))
    try:
        told = case(one.report, one.anchors)
    except (CannotJudge, BladeError):  # its rollouts were found by another way than a judge would
        return bench(world, text, anchors, "", runs)
    return bench(world, text, anchors, told.shallow, (*runs, *told.ours), told.others)


def _own_score(name: str, bench: Bench) -> Check:
    """Whether the report meets the facts that others are to be judged by."""
    from blade.package.calibrate.battery import TARGETS
    from blade.package.judge.score import score

    found, least = score(bench.golden, bench), TARGETS["golden_vs_self_min"]
    met, of = found.counts["anchors_met"], found.counts["anchors"]
    if found.score >= least:
        told = f"meets its own anchor facts: {met} of {of}, a score of {found.score:.2f}"
        return Check(True, f"{name}: {told}", EVIDENCE)
    unmet = [anchor.id for anchor, is_met, _ in found.hits if not is_met]
    parts = [f"{met} of {of} are met{f', not {_some(unmet)}' if unmet else ''}"]
    parts += [f"precision {found.precision:.2f}, evidence {found.evidence:.2f}", *found.problems[:1]]
    wrong = f"scores {found.score:.2f} by its own anchor facts, at least {least} is needed"
    return Check(False, f"{name}: {wrong}: {'; '.join(parts)}", EVIDENCE)


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
