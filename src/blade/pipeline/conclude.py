"""Draw conclusions from what the traces of one run showed, stage after stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from blade import attribute, contrast, discover, judgements, measure, recommend, signatures
from blade.detect import weigh
from blade.ingest import opened
from blade.measure import meanings, soundness
from blade.model import (
    Behaviour,
    Cause,
    Evidence,
    Finding,
    Gap,
    Judged,
    Meaning,
    Mechanism,
    Signature,
    Suspicion,
)
from blade.pipeline.gather import Clock
from blade.pipeline.reading import RULES, Read, Reading

T = TypeVar("T")
Quote = Callable[[int, str], Evidence | None]


class _Guard:
    """Runs a stage, times it, and goes on without it if it fails: a fault must not cost the report."""

    def __init__(self, run: str, clock: Clock) -> None:
        self._run, self._clock = run, clock
        self.gaps: list[Gap] = []

    def __call__(self, stage: str, work: Callable[[], T], otherwise: Callable[[], Any]) -> T:
        try:
            return self._clock.timed(stage, work)
        except Exception as error:
            why = f"it failed: {type(error).__name__}: {error}"[:300]
            self.gaps.append(Gap(f"{stage} of {self._run}", why))
            empty: T = otherwise()
            return empty


def concluded(read: Read, shared: Mapping[str, tuple[Suspicion, ...]], clock: Clock) -> Reading:
    """What the traces of a run say; `shared` are doubts about tasks that several runs raise."""
    rollouts, seen, tried = read.loaded.run.rollouts, read.gathered, _Guard(read.loaded.name, clock)
    quote = opened.quoter(read.loaded.run)
    meant, codes, judged = read.meant, read.codes, read.judged
    behaviours = tried("weigh", lambda: _behaviours(judged, read), list)
    signed = tried("signatures", lambda: _signatures(judged, read), list)
    mechanisms = tried("discover", lambda: mechanisms_of(judged, read, meant), list)
    contrasts = tried("contrast", lambda: contrast.conclude(judged, seen.tokens, read.walker.opener), list)
    sound = tried("health", lambda: _sound(judged, read, quote, shared), soundness.Sound)
    flags = [
        *measure.health.health(rollouts, read.loaded.run.coverage, read.scoring, quote),
        *sound.health,
    ]
    artifacts = list(measure.identity.findings(rollouts, quote))
    suspects = [doubt for doubts in sound.suspects.values() for doubt in doubts] + _artifacts(artifacts)
    checks = _unmet(judged, read)
    known = attribute.known_of(judged, seen.found, codes, mechanisms, behaviours, RULES, suspects, checks)

    def quoted(position: int) -> tuple[Evidence, ...]:
        return _quoted(quote, position)

    # without these there is no diagnosis: their faults are not passed over
    attributed = clock.timed(
        "attribute",
        lambda: attribute.attribute(
            judged, known, seen.contents, seen.located, flags, quoted, read.judgements
        ),
    )
    books = recommend.Books(
        judged, attributed.losses, attributed.modes, attributed.attributions, seen.found, mechanisms, RULES,
        codes, seen.contents, {one.detector: one for one in behaviours}, quoted,
    )  # fmt: skip
    recommended = clock.timed("recommend", lambda: recommend.recommend(books))
    return Reading(
        judged=judged,
        facts=read.facts,
        found=tuple(seen.found),
        behaviours=tuple(behaviours),
        signatures=tuple(signed),
        meanings=tuple(meant),
        mechanisms=tuple(mechanisms),
        contrasts=tuple(contrasts),
        divergences=tuple(seen.divergences(attributed.attributions)),
        health=tuple(flags),
        artifacts=tuple(artifacts),
        known=known,
        attributed=attributed,
        recommended=recommended,
        gaps=(*seen.gaps(read.loaded.name), *read.gaps, *tried.gaps),
        judgements=tuple(one for told in read.judgements.values() for one in told),
        agreements=judgements.agreements(
            judged.run,
            read.judgements,
            {one.task: one.proposed for one in attributed.attributions if one.proposed is not None},
        ),
    )


def _sound(
    judged: Judged, read: Read, quote: Quote, shared: Mapping[str, tuple[Suspicion, ...]]
) -> soundness.Sound:
    found, rollouts = read.gathered.found, read.loaded.run.rollouts
    exploits = {
        one.position: one.finding
        for one in found
        if one.finding.detector == "reward_hack" and one.finding.severity >= attribute.GRAVE
    }
    return soundness.flags(judged, read.gathered.soundings, rollouts, quote, exploits, shared)


def _behaviours(judged: Judged, read: Read) -> list[Behaviour]:
    """Each detector weighed by its grave hits, which may be causes; by all where it has no others."""
    fired: dict[str, list[int]] = {}
    weak: dict[str, list[int]] = {}
    for one in read.gathered.found:
        held = fired if one.finding.severity >= attribute.GRAVE else weak
        held.setdefault(one.finding.detector, []).append(one.position)
    told = weigh.behaviours(judged, weak | fired)
    # what only ever speaks weakly, by its own rule, is no cause however often it is heard
    return [
        replace(one, standing="unproven") if one.detector not in fired and one.standing == "cause" else one
        for one in told
    ]


def _signatures(judged: Judged, read: Read) -> list[Signature]:
    part = judged.rows.size / max(read.facts.n_rollouts, 1)  # the facts may come from a part of the rows
    calls = {name: round(part * tool.n_calls) for name, tool in read.facts.tools.items()}
    return signatures.conclude(judged, read.gathered.lines, read.slices, calls)


def mechanisms_of(judged: Judged, read: Read, meant: Sequence[Meaning]) -> list[Mechanism]:
    rollouts = read.loaded.run.rollouts
    return discover.conclude(
        judged,
        rollouts.fields,
        rollouts.input_fields | frozenset(read.slices),
        read.gathered.features,
        read.walker.opener,
        meanings.restating(meant),
    )


def _unmet(judged: Judged, read: Read) -> dict[int, tuple[str, Evidence]]:
    """The first check of the verifier that each row did not meet."""
    place = {int(position): at for at, position in enumerate(judged.rows)}
    found: dict[int, tuple[str, Evidence]] = {}
    for lines in read.gathered.lines:
        for line in lines:
            at = place.get(line.position)
            if line.sort == "check" and at is not None and line.position not in found:
                task, repeat = judged.task_keys[int(judged.task[at])], int(judged.repeat[at])
                quote = Evidence(judged.run, task, repeat, line.step, line.field, line.quote)
                found[line.position] = line.masked, quote
    return found


def _artifacts(findings: Iterable[Finding]) -> list[Suspicion]:
    """Tasks whose rows disagree on what the task is: hard evidence of a data artifact."""
    return [
        Suspicion(one.task, one.detector, 3, Cause.DATA_ARTIFACT, one.summary, one.evidence)
        for one in findings
        if one.severity >= 2
    ]


def _quoted(quote: Quote, position: int) -> tuple[Evidence, ...]:
    """The best that can be quoted of a row that nothing else quotes: its error, or its reward."""
    found = quote(position, "error") or quote(position, "reward")
    return (found,) if found is not None else ()
