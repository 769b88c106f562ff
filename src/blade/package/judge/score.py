"""Turn a report, anchors and rollouts into a score: recall, precision and evidence, times gates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from blade.check import checked
from blade.check.held import standing
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.package.judge.anchors import Anchor, settled, shares
from blade.package.judge.around import shown, without_unclaimed
from blade.package.judge.borne import with_findings
from blade.package.judge.contrasts import with_contrasts
from blade.package.judge.frames import taken_back, titles, unstruck
from blade.package.judge.matching import matched
from blade.package.judge.plainly import telling
from blade.package.judge.polarity import signs, with_polarity
from blade.package.judge.predicates import STEP, Predicate, gainsaid, met, narrowed, said, tasks_of
from blade.package.judge.retold import with_retelling
from blade.package.judge.units import CAUSES, Names, Unit, causes_in, is_note, names, units
from blade.package.judge.whose import misnamed
from blade.prose.slots import Slot, agrees, slots

NUMBERS_WRONG, MOSTLY_WRONG, FABRICATED, FLOOR, BACKWARDS = 0.5, 0.5, 0.7, 0.2, 0.8
UNFOUNDED = 0.2  # of the score that recommendations can cost which nothing bears out
LONGEST = 3.0  # times the golden report's claims, beyond which length costs
JUMBLED = 0.15  # of the sentences; in prose that people write it is well below 0.01


class Judged(msgspec.Struct, frozen=True):
    """What a report is worth, and all that this rests on."""

    score: float
    recall: float
    precision: float
    evidence: float
    gates: Mapping[str, float]
    counts: Mapping[str, int]
    hits: tuple[tuple[Anchor, bool, str], ...]  # anchor, whether it is met, by which words
    problems: tuple[str, ...]
    units: tuple[Unit, ...] = ()

    @property
    def gate(self) -> float:
        return math.prod(self.gates.values())


class Bench(msgspec.Struct, frozen=True):
    """What reports on a run are judged by: the rollouts, the golden report's claims, the anchors."""

    world: World
    known: Names
    golden: tuple[Unit, ...]
    anchors: tuple[Anchor, ...]
    canaries: tuple[Predicate, ...]

    @property
    def usable(self) -> tuple[Anchor, ...]:
        return tuple(one for one in self.anchors if one.predicate is not None and not one.problem)


def claims(text: str, world: World, known: Names) -> tuple[Unit, ...]:
    """What a report claims, with what the rows say of it."""
    text = shown(unstruck(text))
    read = with_polarity(units(text, checked(text, world), known), world)
    read = with_findings(with_contrasts(read, shares(world.report)), world.report)
    return without_unclaimed(_without_taken_back(with_retelling(read, world), text), text)


def _without_taken_back(read: Sequence[Unit], text: str) -> tuple[Unit, ...]:
    """Units with those that a heading or another sentence takes back supporting nothing."""
    above = titles(text)
    sayings = []
    for unit in read:
        title = [told for line, told in above if line <= unit.line][-1:]
        sayings.append((unit.text, (*title, *unit.section), unit.kind == "sentence"))
    gone = taken_back(sayings)
    return tuple(_framed(unit) if at in gone else unit for at, unit in enumerate(read))


def _framed(unit: Unit) -> Unit:
    return replace(unit, denied=True, verdict=UNVERIFIABLE if unit.verdict == SUPPORTED else unit.verdict)


def bench(
    world: World,
    golden: str,
    anchors: Sequence[Anchor],
    shallow: str = "",
    ours: Sequence[str] = (),
    others: Sequence[str] = (),
) -> Bench:
    """Read the golden report and the anchors once, to judge many reports by them."""
    known = names(world.report, ours, others)
    thin = claims(shallow, world, known) if shallow else ()
    ready = settled(anchors, world, known, thin)
    known = accepting(known, ready)
    told = claims(golden, world, known)
    return Bench(world, known, told, tuple(ready), tuple(canaries(ready, world)))


def accepting(known: Names, anchors: Sequence[Anchor]) -> Names:
    """Names with the causes and steps that a person who reviewed the anchors let stand."""
    causes, steps = dict(known.causes), dict(known.steps)
    for one in anchors:
        told = one.predicate
        for task in tasks_of(told) if told is not None else ():
            if told is not None and told.type == "cause":
                causes[task] = causes.get(task, frozenset()) | {str(told.value)}
            elif told is not None and told.subject == STEP and isinstance(told.value, int | float):
                steps[task] = steps.get(task, frozenset()) | {int(told.value)}
    return replace(known, causes=causes, steps=steps)


def canaries(anchors: Sequence[Anchor], world: World, seed: int = 0) -> Iterator[Predicate]:
    """False twins of the anchors that name a cause: another cause for the same task."""
    random = Random(f"canaries/{seed}")
    true = {(one.task, one.cause.value) for one in world.report.attributions}
    for anchor in anchors:
        told = anchor.predicate
        if told is None or told.type != "cause":
            continue
        task = dict(told.scope).get("task", told.must_cite[0])
        wrong = [code for code in CAUSES if code != told.value and (task, code) not in true]
        yield replace(told, value=random.choice(wrong), must_cite=(task,))


def judged(text: str, bench: Bench, opinions: Mapping[int, str] | None = None) -> Judged:
    """The score of a report; `opinions` settle claims that the rows cannot (see `consulted`)."""
    read = claims(text, bench.world, bench.known)
    return score(_with(read, opinions or {}), bench)


def score(read: Sequence[Unit], bench: Bench) -> Judged:
    """The score of a report that was read."""
    usable = bench.usable
    hits = _hits(read, usable)
    weight = sum(one.weighs for one in usable)
    recall = sum(one.weighs for one, is_met, _ in hits if is_met) / weight if weight else 0.0
    counts = _counts(read)
    precision = _precision(counts)
    majors = [unit for unit in read if is_major(unit) and not unit.advice]
    shown = _evident(read, majors)
    evidence = shown / len(majors) if majors else float(any(unit.kind == "quote" for unit in _borne(read)))
    gates, problems = _gates(read, bench, counts)
    problems += _contradictions(read)
    counts |= {"major": len(majors), "major_with_evidence": shown, "anchors": len(usable)}
    counts["anchors_met"] = sum(is_met for _, is_met, _ in hits)
    counts["anchors_unusable"] = len(bench.anchors) - len(usable)
    final = recall * math.sqrt(precision * evidence) * math.prod(gates.values())
    return Judged(final, recall, precision, evidence, gates, counts, hits, tuple(problems), tuple(read))


def _hits(read: Sequence[Unit], usable: Sequence[Anchor]) -> tuple[tuple[Anchor, bool, str], ...]:
    wanted = [one.predicate for one in usable if one.predicate is not None]
    order = sorted(range(len(usable)), key=lambda at: -usable[at].weighs)
    found = matched(sound(read), wanted, met, order)
    # A report that says a thing and its opposite has not found it.
    meant = {at: narrowed(wanted[at], unit) for at, unit in found.items()}
    denied = {at for at in found if any(gainsaid(unit, meant[at]) for unit in read)}
    return tuple(
        (one, at in found and at not in denied, found[at].text if at in found else "")
        for at, one in enumerate(usable)
    )


_WORTH = {SUPPORTED: 1, CONTRADICTED: -2}


def sound(read: Sequence[Unit]) -> list[Unit]:
    """The units of sections that the rows bear out more than twice as often as they contradict them.

    What is said and taken back, or set in words of no known meaning, speaks against its section too.
    """
    balance: dict[tuple[str, ...], int] = {}
    for unit in read:
        worth = _WORTH.get(unit.verdict or "", 0) - (unit.denied and unit.verdict == UNVERIFIABLE)
        balance[unit.section] = balance.get(unit.section, 0) + worth
    return [unit for unit in read if balance.get(unit.section, 0) > 0]


def _counts(read: Sequence[Unit]) -> dict[str, int]:
    """Claims by verdict, each once; supported ones that any table of totals has are not counted."""
    seen: set[tuple[str, str]] = set()
    found = {SUPPORTED: 0, CONTRADICTED: 0, UNVERIFIABLE: 0, "aggregate": 0, "duplicate": 0, "foreign": 0}
    for unit in read:
        if unit.verdict is None or (is_note(unit) and unit.verdict != CONTRADICTED):
            continue
        key = (unit.verdict, " ".join(unit.text.lower().split()))
        if key in seen:
            found["duplicate"] += 1
        elif unit.foreign:
            found["foreign"] += 1
        elif unit.verdict == SUPPORTED and not is_telling(unit):
            found["aggregate"] += 1
        else:
            found[unit.verdict] += 1
        seen.add(key)
    return found


def is_telling(unit: Unit) -> bool:
    """Whether a unit says more than totals do: it names a task, a cause or a step, quotes, sets rates
    against each other, or advises.
    """
    told = unit.tasks or unit.near or unit.causes or unit.steps or unit.quotes or unit.advice
    return bool(told) or is_contrast(unit)


def _precision(counts: Mapping[str, int]) -> float:
    against = 2 * (counts[CONTRADICTED] + counts["foreign"]) + 0.5 * counts[UNVERIFIABLE]
    return counts[SUPPORTED] / (counts[SUPPORTED] + against) if counts[SUPPORTED] else 0.0


def is_major(unit: Unit) -> bool:
    """Whether a unit names the cause of a failure or the step that decided it, or says what to change."""
    if unit.verdict is None or is_note(unit) or unit.kind in ("heading", "quote"):
        return False
    if unit.advice:
        is_open = unit.verdict == UNVERIFIABLE
        return unit.kind == "row" or is_open or bool(unit.numbers or unit.tasks or unit.causes)
    if is_contrast(unit):
        return True
    return bool(unit.tasks or unit.kind == "sentence") and bool(unit.causes or (unit.steps and unit.tasks))


def is_contrast(unit: Unit) -> bool:
    """Whether a unit sets two pass rates against each other that the rows give too."""
    return any(one.kind == "contrast" and one.verdict == SUPPORTED for one in unit.assertions)


def _borne(read: Sequence[Unit]) -> list[Unit]:
    return [unit for unit in sound(read) if unit.verdict == SUPPORTED and not unit.foreign]


def _evident(read: Sequence[Unit], majors: Sequence[Unit]) -> int:
    """How many major claims name a task of the rollouts, or stand in a section with a quotation from them.

    Two pass rates that the rows give are evidence themselves.
    """
    borne = _borne(read)
    sections = {unit.section for unit in borne if unit.kind == "quote" or unit.own}
    places = {
        (unit.line, unit.text)
        for unit in borne
        if unit.tasks or unit.section in sections or is_contrast(unit)
    }
    return sum((unit.line, unit.text) in places for unit in majors)


def _founded(read: Sequence[Unit], advice: Sequence[Unit]) -> int:
    """How many recommendations have evidence, or take up a finding of the report that has."""
    found = [unit for unit in _borne(read) if not unit.advice and (unit.causes or is_contrast(unit))]
    words = {word for unit in found for word in telling(unit.text)}
    return sum(bool(_evident(read, [unit]) or words & telling(unit.text)) for unit in advice)


MOST_PROBLEMS = 20


def _contradictions(read: Sequence[Unit]) -> list[str]:
    """What the rows say against single claims, with their lines; the first of them, and how many more."""
    found = []
    for unit in read:
        if unit.verdict == CONTRADICTED:
            told = [one for one in unit.assertions if one.verdict == CONTRADICTED]
            said = f"line {unit.line}: {' '.join(unit.text.split())[:120]}"
            found.append(f"{said}: {_against(told[0]) if told else 'it denies what the rows bear out'}")
    more = len(found) - MOST_PROBLEMS
    return [*found[:MOST_PROBLEMS], *([f"and {more} more contradicted claims"] if more > 0 else [])]


def _against(one: Assertion) -> str:
    meant = f", the rows say {one.expected[:120]}" if one.expected else ""
    return f"says {one.found[:80]}{meant}" + (f" ({one.why[:160]})" if one.why else "")


def _gates(
    read: Sequence[Unit], bench: Bench, counts: Mapping[str, int]
) -> tuple[dict[str, float], list[str]]:
    problems = _numbers(read, bench.world)
    gates = {"required_numbers": NUMBERS_WRONG if problems else 1.0}
    false = _fabricated(read, bench.world)
    gates["fabricated"] = max(FLOOR, FABRICATED ** len(false))
    problems += [f"no rollout has: {found}" for found in false[:20]]
    backwards = [unit for unit in read if is_backwards(unit.text)]
    gates["chronology"] = BACKWARDS ** bool(backwards)
    problems += [f"line {unit.line}: a later step cannot cause an earlier one" for unit in backwards[:5]]
    jumbled, sentences = _jumbled(read)
    gates["prose"] = 0.0 if jumbled >= 3 and jumbled > JUMBLED * sentences else 1.0
    if gates["prose"] == 0:
        problems.append(
            f"{jumbled} of {sentences} sentences have their words in no order that English allows"
        )
    wrong = misnamed(read, bench.known.ours, bench.world.report)
    gates["names"] = FLOOR if wrong else 1.0
    problems += wrong
    is_wrong = counts[CONTRADICTED] and _precision(counts) < 0.5
    gates["more_wrong_than_right"] = MOSTLY_WRONG if is_wrong else 1.0
    limit = LONGEST * max(1, _claims(_counts(bench.golden)))
    made = _claims(counts) + counts["duplicate"]
    gates["length"] = min(1.0, limit / made) if made else 1.0
    gates["causes"] = _mostly_right([unit for unit in read if causes_in(unit.text)], _is_of_cause)
    speaking = [unit for unit in read if unit.kind == "sentence" and {*signs(unit.text)} & OUTCOMES]
    gates["outcomes"] = _mostly_right(speaking, lambda one: one.kind in TURNING and not _is_of_cause(one))
    gates["plain"] = _plain(read)
    advice = [unit for unit in read if unit.advice and is_major(unit)]
    bare = 1 - _founded(read, advice) / len(advice) if advice else 0.0
    gates["advice"] = 1 - UNFOUNDED * bare
    if bare > 0.5:
        problems.append("most recommendations name nothing that the rollouts bear out")
    agreed = sum(any(_agrees(unit, canary) for unit in read) for canary in bench.canaries)
    gates["canaries"] = max(FLOOR, 1 - agreed / len(bench.canaries)) if bench.canaries else 1.0
    if agreed:
        problems.append(f"{agreed} false facts are stated as true")
    return gates, problems


def _fabricated(read: Sequence[Unit], world: World) -> list[str]:
    """Ids and quotations that no rollout has; one that some rollout has is wrong about its place alone."""
    told = {found for unit in read for found in unit.fabricated}
    quotes = {one.found for unit in read for one in unit.assertions if one.kind == "quote"}
    return sorted(told - standing(told & quotes, world.rows))


TURNING, OUTCOMES = ("direction", "bucket", "word"), {"pass", "fail", "always"}


def _mostly_right(told: Sequence[Unit], is_of: Callable[[Assertion], bool]) -> float:
    """One less the share of wrong ones in what is said of causes, or of who passes and who fails."""
    told = [unit for unit in told if unit.verdict in (SUPPORTED, CONTRADICTED)]
    wrong = sum(any(one.verdict == CONTRADICTED and is_of(one) for one in unit.assertions) for unit in told)
    return max(FLOOR, 1 - wrong / len(told)) if told else 1.0


def _plain(read: Sequence[Unit]) -> float:
    """One less the share of sentences that deny, doubt or otherwise frame what they say."""
    told = [unit for unit in read if unit.kind == "sentence" and unit.verdict is not None]
    framed = sum(unit.denied for unit in told)
    return max(FLOOR, 1 - framed / len(told)) if told else 1.0


def _is_of_cause(one: Assertion) -> bool:
    return one.kind == "label" or one.found.upper() in CAUSES or bool(causes_in(one.found))


def _jumbled(read: Sequence[Unit]) -> tuple[int, int]:
    told = [unit for unit in read if unit.kind == "sentence" and len(unit.text.split()) > 4]
    return sum(unit.jumbled for unit in told), len(told)


def _claims(counts: Mapping[str, int]) -> int:
    return sum(counts[name] for name in (SUPPORTED, CONTRADICTED, UNVERIFIABLE, "aggregate"))


def _agrees(unit: Unit, canary: Predicate) -> bool:
    """Whether a unit states a false fact; one that the rows bear out cannot."""
    if unit.verdict == SUPPORTED or unit.denied or not unit.tasks <= tasks_of(canary):
        return False
    return any(True for _ in said(unit, canary))


_LATER = re.compile(
    r"\bstep\s+(?P<cause>\d{1,6})\b[^.;]{0,120}?"
    r"\b(?:caus(?:es|ed)|led to|leads to|explains|produced|triggered)\b[^.;]{0,120}?"
    r"\bstep\s+(?P<effect>\d{1,6})\b"
    r"|\bstep\s+(?P<effect2>\d{1,6})\b[^.;]{0,120}?\b(?:because of|due to|caused by|follows from)\b"
    r"[^.;]{0,120}?\bstep\s+(?P<cause2>\d{1,6})\b",
    re.IGNORECASE,
)


def is_backwards(text: str) -> bool:
    """Whether a step is blamed for one that came before it."""
    return any(
        int(hit["cause"] or hit["cause2"]) > int(hit["effect"] or hit["effect2"])
        for hit in _LATER.finditer(text)
    )


CHECKED = ("pass_at_1", "n_tasks", "n_rollouts", "repeats", "coverage", "score")
_SCORE = re.compile(
    r"pass@1\b|pass_at_1|\bscore[ds]?\b|pass rate|success rate|accuracy|mean reward", re.IGNORECASE
)


def _numbers(read: Sequence[Unit], world: World) -> list[str]:
    """What is wrong with the numbers that every report must have right: pass@1 and n, and k and coverage."""
    problems = []
    for stated in _stated(read, world).values():
        wrong = [unit for is_right, unit in stated if not is_right]
        # A number that is stated many times and slips once is a contradiction, not a report on other rows.
        if 2 * len(wrong) >= len(stated):
            problems.append(f"line {wrong[0].line}: a required number is wrong: {wrong[0].text[:120]}")
    ours = [unit for unit in read if unit.verdict == SUPPORTED and not unit.foreign]
    for run in world.report.runs:
        if run.score is None:
            continue
        told = [unit for unit in ours if _SCORE.search(unit.text)]
        if not any(_states(unit, run.score) for unit in told):
            problems.append(f"pass@1 of {run.name} is not stated, or not as the rollouts have it")
        if not any(_states(unit, run.n_tasks) for unit in ours if "task" in _whole(unit).lower()):
            problems.append(
                f"the number of tasks of {run.name} is not stated, or not as the rollouts have it"
            )
    return list(dict.fromkeys(problems))


def _stated(read: Sequence[Unit], world: World) -> dict[str, list[tuple[bool, Unit]]]:
    """Where required numbers are stated, by what they are, each with whether it is right."""
    found: dict[str, list[tuple[bool, Unit]]] = {}
    scores = {run.name: run.score for run in world.report.runs if run.score is not None}
    for unit in read:
        tells_score = bool(unit.assertions and _SCORE.search(unit.text))
        for one in unit.assertions:
            if one.verdict not in (SUPPORTED, CONTRADICTED):
                continue
            is_right = one.verdict == SUPPORTED
            if one.subject in CHECKED and not one.scope:
                found.setdefault(f"{one.subject} of {one.run}", []).append((is_right, unit))
            elif one.subject is None and tells_score:
                meant = one.found if is_right else one.expected or ""
                for name, value in scores.items():
                    if any(_is_rate(slot, value) for slot in slots(meant)[:1]):
                        found.setdefault(f"pass_at_1 of {name}", []).append((is_right, unit))
    return found


def _whole(unit: Unit) -> str:
    return f"{' '.join(unit.section[-1:])} {unit.text}"


def _states(unit: Unit, value: float) -> bool:
    if isinstance(value, int):
        return any(slot.of is None and not slot.unit and slot.value == value for slot in unit.numbers)
    return any(_is_rate(slot, value) for slot in unit.numbers)


def _is_rate(slot: Slot, value: float) -> bool:
    """Whether a printed number can stand for a rate: a bare 1 is no rounded 0.6."""
    told = slot.unit == "%" or slot.digits > 1 or slot.value == value
    return slot.of is None and told and agrees(slot, value)


def consulted(
    judged: Judged, bench: Bench, ask: Callable[[list[dict[str, Any]]], Mapping[int, str]]
) -> Judged:
    """The score with the opinion of a language model on what the rows cannot settle.

    `ask` sees the table of claims with their verdicts, never the report, and answers with verdicts by id.
    What it says of a claim that the rows support or contradict is not heard, so it cannot overrule them; and
    nothing that it alone calls supported can meet an anchor.
    """
    table = claim_table(judged.units)
    return score(_with(judged.units, ask(table)), bench)


def claim_table(read: Iterable[Unit]) -> list[dict[str, Any]]:
    """The claims of a report with what the rows say of them."""
    return [
        {
            "id": at,
            "verdict": unit.verdict,
            "kinds": sorted({one.kind for one in unit.assertions}),
            "found": [one.found for one in unit.assertions],
            "expected": [one.expected for one in unit.assertions if one.expected is not None],
            "cites": sorted(unit.tasks),
        }
        for at, unit in enumerate(read)
        if unit.verdict is not None
    ]


def _with(read: Sequence[Unit], opinions: Mapping[int, str]) -> list[Unit]:
    told = list(read)
    for at, verdict in opinions.items():
        if 0 <= at < len(told) and told[at].verdict == UNVERIFIABLE and verdict in (SUPPORTED, CONTRADICTED):
            # Stripped of what it names, a claim that only an opinion supports cannot meet an anchor.
            bare = replace(told[at], tasks=frozenset(), own=frozenset(), near=frozenset(), quotes=())
            told[at] = replace(bare if verdict == SUPPORTED else told[at], verdict=verdict)
    return told
