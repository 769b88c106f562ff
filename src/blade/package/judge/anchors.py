"""Turn what the rollouts show, or a golden report, into anchor facts: prose, and a predicate to meet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from blade.check import checked
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, Attribution, Cause, Divergence, Evidence, Report
from blade.package.judge.matching import matched
from blade.package.judge.predicates import (
    ABSENT,
    STEP,
    Predicate,
    met,
    normal,
    overlap,
    place,
    predicate_of,
    said,
    tasks_of,
)
from blade.package.judge.units import BLAMES, MIN_QUOTE, Names, Unit, causes_in, is_note, names_in, units
from blade.package.kept import sealed_data

VITAL, OKAY, TRIVIAL = "vital", "okay", "trivial"
WEIGHTS = {VITAL: 1.0, OKAY: 0.5, TRIVIAL: 0.0}
UNCHECKED = "sentences of the report that name a task; no rollouts were at hand to check them"
METHOD = "drafted from claims that the rollouts bear out"
MAX_CITES = 12  # tasks from which on a sentence is about no single one
MAX_QUOTE = 160  # characters of a quotation that an anchor asks for
_DIFFICULTY = {"high": VITAL, "medium": OKAY, "low": OKAY}
_CAUSES = {
    Cause.KNOWLEDGE_GAP: "a knowledge gap",
    Cause.UNRELIABLE_KNOWLEDGE: "unreliable knowledge",
    Cause.BEHAVIOUR: "a behavioural issue",
    Cause.TASK_OR_VERIFIER: "a task or verifier issue",
    Cause.INFRASTRUCTURE: "infrastructure reliability",
    Cause.DATA_ARTIFACT: "a data artifact",
}


class Anchor(msgspec.Struct, frozen=True):
    """A fact that a report should have found, and what a claim must say to have found it."""

    id: str
    fact: str
    difficulty: str = "high"
    mean_score: float = 3.5
    weight: str = VITAL
    predicate: Predicate | None = None
    problem: str = ""  # why it cannot be used

    @property
    def weighs(self) -> float:
        return WEIGHTS[self.weight]


def as_file(anchors: Sequence[Anchor], benchmark: str, model: str, method: str = METHOD) -> dict[str, Any]:
    """The anchors in the shape of the file."""
    told = []
    for one in anchors:
        entry = {
            "id": one.id, "fact": one.fact, "difficulty": one.difficulty, "mean_score": one.mean_score,
            "weight": one.weight,
        }  # fmt: skip
        if one.predicate is not None:
            entry["predicate"] = msgspec.to_builtins(one.predicate)
        told.append(entry)
    return sealed_data(
        {
            "benchmark": benchmark,
            "model": model,
            "extraction_method": method,
            "review_required": True,
            "anchor_facts": told,
        }
    )


def of_file(data: Any) -> list[Anchor]:
    """The anchors of a file: an object or a bare list, of objects or of sentences."""
    listed = data.get("anchor_facts", []) if isinstance(data, Mapping) else data
    if not isinstance(listed, list):
        return []
    return [_anchor(entry, at) for at, entry in enumerate(listed, 1)]


def _anchor(entry: Any, at: int) -> Anchor:
    given = entry if isinstance(entry, Mapping) else {"fact": entry if isinstance(entry, str) else ""}
    fact = given.get("fact")
    fact = fact if isinstance(fact, str) else ""
    difficulty, weight, score = given.get("difficulty", "high"), given.get("weight"), given.get("mean_score")
    odd = [name for name in ("difficulty", "weight") if not isinstance(given.get(name), str | None)]
    difficulty = difficulty if isinstance(difficulty, str) and difficulty in _DIFFICULTY else "high"
    weight = weight if isinstance(weight, str) and weight in WEIGHTS else _DIFFICULTY[difficulty]
    problem = f"its {' and '.join(odd)} is no word, so it was not understood" if odd else ""
    problem = problem if len(fact.strip()) >= 20 else "the fact has fewer than 20 characters"
    return Anchor(
        str(given.get("id") or f"B{at}"), fact, difficulty,
        float(score) if isinstance(score, int | float) else 3.5, weight,
        predicate_of(given.get("predicate")), problem,
    )  # fmt: skip


def settled(
    anchors: Iterable[Anchor], world: World, known: Names, shallow: Sequence[Unit] = ()
) -> list[Anchor]:
    """Every anchor with its predicate, what a shallow report has weighing nothing, or why it is unusable."""
    return [_settled(one, world, known, shallow) for one in anchors]


def _settled(one: Anchor, world: World, known: Names, shallow: Sequence[Unit]) -> Anchor:
    if one.problem:
        return one
    predicate, problem = one.predicate, ""
    if predicate is None:
        predicate, problem = parsed(one.fact, world, known)
    if predicate is None:
        return msgspec.structs.replace(one, problem=problem)
    trivial = predicate.type == "metric" or any(any(True for _ in said(unit, predicate)) for unit in shallow)
    return msgspec.structs.replace(one, predicate=predicate, weight=TRIVIAL if trivial else one.weight)


def parsed(fact: str, world: World, known: Names) -> tuple[Predicate | None, str]:
    """The predicate that a sentence states, or why it states none that can be checked."""
    read = units(fact, checked(fact, world), known)
    if any(unit.verdict == CONTRADICTED for unit in read):
        return None, "the rollouts contradict it"
    for unit in read:
        for predicate in _stated(unit, world):
            return predicate, ""
    if not any(unit.tasks for unit in read):
        return None, "it names no task or rollout"
    return None, "it states no cause, step, quotation or share that can be checked"


def _stated(unit: Unit, world: World) -> Iterator[Predicate]:
    yield from _of_unit(unit)
    for share in shares(world.report):
        if any(True for _ in said(_citing(unit, share), share)):
            yield share


def _of_unit(unit: Unit) -> Iterator[Predicate]:
    """The predicates of a sentence that names its tasks: a quotation, one cause, one step."""
    cites = tuple(sorted(unit.tasks))
    if not cites or len(cites) > MAX_CITES:
        return
    if unit.quotes:
        yield Predicate("quote", object=_cut(unit.quotes[0]), must_cite=cites)
    elif len(unit.causes) == 1 and unit.causes == causes_in(unit.text):
        yield Predicate("cause", value=next(iter(unit.causes)), must_cite=cites)
    elif len(unit.steps) == 1 and unit.kind == "sentence" and BLAMES.search(unit.text):
        yield Predicate("existence", STEP, value=float(next(iter(unit.steps))), must_cite=cites)


def _citing(unit: Unit, predicate: Predicate) -> Unit:
    """A unit that names no task, as if it named those of the predicate: its number decides."""
    if unit.tasks:
        return unit
    return msgspec.structs.replace(
        unit, tasks=frozenset(cite.rpartition("/")[0] or cite for cite in predicate.must_cite)
    )


def drafted(world: World, golden: Sequence[Unit], most: int = 12) -> list[Anchor]:
    """Anchors from what the rollouts show of single tasks, as far as the golden report says it too.

    Kinds take turns, so that no one kind of fact is the whole test, and each anchor has a claim of its own.
    """
    groups = [list(group) for group in (*_candidates(world.report), _told(golden, world))]
    chosen: list[Anchor] = []
    while any(groups) and len(chosen) < most:
        for group in groups:
            while group and len(chosen) < most:
                one = group.pop(0)
                if _adds(one, chosen, golden):
                    chosen.append(one)
                    break
    return [msgspec.structs.replace(one, id=f"B{at}") for at, one in enumerate(chosen, 1)]


def _adds(one: Anchor, chosen: Sequence[Anchor], golden: Sequence[Unit]) -> bool:
    if any(_is_same(one.predicate, other.predicate) for other in chosen):
        return False
    wanted = [anchor.predicate for anchor in (*chosen, one) if anchor.predicate is not None]
    return len(matched(golden, wanted, met)) == len(wanted)


def _is_same(one: Predicate | None, other: Predicate | None) -> bool:
    """Whether two anchors ask for the same: equal but for the words they would be told in."""
    if one is None or other is None:
        return one is other
    if not _own(one) & _own(other):
        return False
    if one.type == other.type == "quote":
        return overlap(one.object, other.object)
    keys = [(told.type, told.value, told.other, told.object[:60]) for told in (one, other)]
    named = [told.subject if told.type not in ("cause", "quote") else "" for told in (one, other)]
    return keys[0] == keys[1] and named[0] == named[1]


def _own(one: Predicate) -> frozenset[str]:
    """The task that a predicate was made for; those of its evidence if it was made for none."""
    task = dict(one.scope).get("task")
    return frozenset({task}) if task else tasks_of(one)


def _candidates(report: Report) -> Iterator[Iterator[Anchor]]:
    told = sorted(report.attributions, key=lambda one: (-one.lost, one.run, one.task))
    told = [one for one in told if one.cause in _CAUSES]
    yield (_cause(one, [other for other in told if other.run == one.run]) for one in told)
    yield (anchor for one in told for anchor in _quotes(one, told))
    yield _counted(report)
    yield (_step(one, told) for one in told if one.step is not None and one.repeat is not None)
    yield (anchor for one in report.divergences for anchor in _missing(one))


def _told(golden: Sequence[Unit], world: World | None) -> Iterator[Anchor]:
    """What the golden report itself says of single tasks, as far as the rows bear it out."""
    for unit in golden:
        if world is not None and (unit.verdict != SUPPORTED or unit.denied or unit.foreign):
            continue
        if is_note(unit) or not (unit.own or unit.causes) or not unit.text[:1].isalnum():
            continue
        for predicate in _of_unit(unit):
            fact = unit.text if unit.own else f"Task {', '.join(sorted(unit.tasks))}: {unit.text}"
            fact = f"Task {', '.join(sorted(unit.tasks))} says: “{fact}”" if unit.kind == "quote" else fact
            # Which of many lines to quote is a matter of taste; what failed and why is not.
            weight = OKAY if predicate.type == "quote" else VITAL
            yield Anchor("", " ".join(fact.split())[:400], weight=weight, predicate=predicate)


def undrafted(text: str, most: int = 12) -> list[Anchor]:
    """Anchors from a report alone, where there are no rollouts to hold it against."""
    found: list[Anchor] = []
    for one in _told(units(text, (), names_in(text)), None):
        if len(found) < most and all(one.predicate != other.predicate for other in found):
            found.append(one)
    return [msgspec.structs.replace(one, id=f"B{at}") for at, one in enumerate(found, 1)]


def _cause(one: Attribution, told: Sequence[Attribution]) -> Anchor:
    """Which of several tasks that fail for the same cause is looked at is the analyst's choice."""
    others = _other_tasks(one, [other for other in told if other.cause == one.cause])
    cites = (one.task, *_cites(one.evidence), *others)
    fact = f"Task {one.task} fails for {_CAUSES[one.cause]} ({one.cause.value}): {one.mode}."
    fact += f" ({_ANY}.)" if others else ""
    return Anchor(
        "", fact, predicate=_of_task(one, "cause", one.mode, value=one.cause.value, must_cite=cites)
    )


_ANY = "Another task of which the same can be shown will do"
_MOST = 60  # tasks that may stand for the one of an anchor


def _other_tasks(one: Attribution, told: Sequence[Attribution]) -> tuple[str, ...]:
    same = [other.task for other in told if other.run == one.run and other.task != one.task]
    return tuple(dict.fromkeys(same))[:_MOST]


def _places(run: str, told: Sequence[Attribution]) -> tuple[str, ...]:
    """The steps at which failing rollouts show why they fail, or are decided."""
    found: dict[str, None] = {}
    for one in [other for other in told if other.run == run][:_MOST]:
        steps = [one.step, *(blame.step for blame in one.steps), *(told.step for told in one.evidence)]
        found |= {place(one.task, step): None for step in steps if step is not None}
    return tuple(found)


def _quotes(one: Attribution, others: Sequence[Attribution]) -> Iterator[Anchor]:
    for told in one.evidence[:1]:
        quote = _cut(told.quote or "")
        if len(quote) < MIN_QUOTE or told.repeat is None:
            continue
        where = f"step {told.step}" if told.step is not None else f"field {told.field}"
        cite = f"{told.task}/{told.repeat}"
        fact = f"Rollout {cite}, {where}, shows it: “{quote}”."
        cites = (cite, *_other_tasks(one, others))
        predicate = _of_task(
            one, "quote", one.mode, object=quote, must_cite=cites, places=_places(one.run, others)
        )
        yield Anchor("", fact, weight=OKAY, predicate=predicate)


def _cut(quote: str) -> str:
    """A quotation of whole words, as far as can be told, and no longer than an analyst would copy."""
    text = normal(quote)
    if text[:1].islower() and len(text) > MAX_QUOTE // 2:
        text = text.partition(" ")[2] or text
    if len(text) > MAX_QUOTE // 2 and not re.search(r"[.!?…)}\]\"”']$", text[:MAX_QUOTE]):
        text = text[:MAX_QUOTE].rpartition(" ")[0] or text
    return text[:MAX_QUOTE]


def _step(one: Attribution, others: Sequence[Attribution]) -> Anchor:
    cite = f"{one.task}/{one.repeat}"
    fact = f"Rollout {cite} goes wrong at step {one.step} ({one.mode})."
    step = float(one.step or 0)
    cites = (cite, *_other_tasks(one, others))
    predicate = _of_task(
        one, "existence", STEP, value=step, tolerance=0.0, must_cite=cites, places=_places(one.run, others)
    )
    return Anchor("", fact, "high", 3.5, OKAY, predicate)


def _missing(one: Divergence) -> Iterator[Anchor]:
    cite = f"{one.task}/{one.repeat}"
    for tool in one.missing[:1]:
        told = f"In task {one.task} nearly all passing rollouts call {tool}"
        fact = f"{told}; the failing rollout {cite} does not."
        yield Anchor(
            "",
            fact,
            "high",
            3.5,
            OKAY,
            _of_task(one, "existence", tool, comparator=ABSENT, must_cite=(cite,)),
        )


def _of_task(one: Attribution | Divergence, kind: str, subject: str, **rest: Any) -> Predicate:
    return Predicate(kind, subject, run=one.run, scope=(("task", one.task),), **rest)


def _counted(report: Report) -> Iterator[Anchor]:
    for predicate in shares(report):
        cites = ", ".join(predicate.must_cite[:3])
        value, other = (float(number or 0) for number in (predicate.value, predicate.other))
        if predicate.type == "contrast":
            told = f"{value:.1%} of the rollouts with it pass, against {other:.1%} of the others"
            fact = f"{told}: {predicate.object} For instance rollouts {cites}."
        else:
            told = f"{predicate.subject} occurs in {value:.1%} of the failing rollouts"
            fact = f"{told}, for instance in rollouts {cites}."
        weight = VITAL if predicate.type == "contrast" else OKAY
        yield Anchor("", fact, "high" if weight == VITAL else "medium", 3.25, weight, predicate)


def shares(report: Report) -> Iterator[Predicate]:
    """What goes with failing, counted: mechanisms by their two pass rates, behaviours by their share."""
    for one in report.mechanisms:
        if one.standing == "mechanism" and one.rollouts:
            cites = tuple(f"{task}/{repeat}" for task, repeat in one.rollouts[:12])
            yield Predicate(
                "contrast", one.actionable, one.text, "<",
                one.pass_with, one.pass_without, 0.006, one.run, (), cites,
            )  # fmt: skip
    for behaviour in report.behaviours:
        cites = tuple(
            f"{found.task}/{found.repeat}"
            for found in report.findings
            if found.run == behaviour.run
            and found.detector == behaviour.detector
            and found.repeat is not None
        )[:12]
        if behaviour.standing == "cause" and behaviour.of_fail and cites:
            share = behaviour.in_fail / behaviour.of_fail
            yield Predicate(
                "share", behaviour.detector, "", "=", share, None, 0.006, behaviour.run, (), cites
            )


def _cites(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{one.task}/{one.repeat}" for one in evidence if one.repeat is not None))
