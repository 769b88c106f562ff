"""Turn reports into how many planted faults are caught, by kind and place, and how many alarms are false."""

from __future__ import annotations

import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from random import Random

import msgspec

from blade import stats
from blade.check import checked
from blade.model import CONTRADICTED, Assertion
from mutation import identities, numbers, sentences, tables, values
from mutation.page import JSON, MARKDOWN, Fault, Page, fixed_numbers

KINDS: dict[str, Callable[[Page, Random], Iterator[Fault]]] = {
    "number": numbers.number,
    "id": identities.identity,
    "quote": identities.quote,
    "negation": sentences.negation,
    "swapped": sentences.swapped,
    "denominator": numbers.denominator,
    "shifted": tables.shifted,
    "bucket": tables.bucket,
}
PLACES = ("table", "id", "quote", "json", "prose")
STRICT = ("table", "id", "quote", "json")
LEAST, LEAST_STRICT, MOST_ALARMS = 0.95, 0.99, 0.01
JSON_SHARE = 0.2  # of the faults


class Trial(msgspec.Struct, frozen=True):
    """One fault in one copy of one report, and whether it was caught."""

    page: int
    fault: Fault
    caught: bool = False


class Control(msgspec.Struct, frozen=True):
    """An honest report, and what the checker says of it."""

    report: str
    form: str
    n: int
    supported: int
    contradicted: tuple[Assertion, ...]


def drawn(pages: Sequence[Page], n: int, seed: int) -> list[Trial]:
    """`n` faults, the kinds alike often, spread over reports and their sections."""
    fixed = fixed_numbers(page for page in pages if page.form == MARKDOWN)
    pools: dict[tuple[str, str], dict[int, dict[str, list[Fault]]]] = defaultdict(dict)
    for at, page in enumerate(pages):
        page.fixed = fixed
        for fault in candidates(page, Random(f"{seed}/{page.dataset}/{page.name}/{page.form}")):
            by_page = pools[page.form, fault.kind].setdefault(at, defaultdict(list))
            by_page[fault.section].append(fault)
    rng, found, seen = Random(seed), [], set()
    for kind in KINDS:
        for form, share in ((MARKDOWN, 1 - JSON_SHARE), (JSON, JSON_SHARE)):
            pool = pools[form, kind]
            wanted, tries = round(n / len(KINDS) * share), 0
            while pool and wanted and tries < 100 * n:
                tries += 1
                at = rng.choice(list(pool))
                fault = rng.choice(pool[at][rng.choice(list(pool[at]))])
                if (at, fault.edits) not in seen:
                    seen.add((at, fault.edits))
                    found.append(Trial(at, fault))
                    wanted -= 1
    return found


def candidates(page: Page, rng: Random) -> Iterator[Fault]:
    """All faults that a report may get."""
    if page.form == JSON:
        yield from values.faults(page, rng)
        return
    for make in KINDS.values():
        yield from make(page, rng)


Check = Callable[[str, Page], Iterable[Assertion]]


def as_shipped(text: str, page: Page) -> Iterable[Assertion]:
    return checked(text, page.world)


def catches(page: Page, faults: Sequence[Fault], check: Check, known: set[tuple[object, ...]]) -> list[bool]:
    """Does a contradiction name a line of each fault, which the honest report does not have."""
    against = [
        one
        for one in check(page.changed(faults), page)
        if one.verdict == CONTRADICTED and mark(one) not in known
    ]
    return [any(one.line <= at <= one.last_line for one in against for at in fault.lines) for fault in faults]


def mark(one: Assertion) -> tuple[object, ...]:
    return one.line, one.text, one.found, one.expected


_WORK: tuple[Sequence[Page], Check] = ((), as_shipped)


def _tried(job: tuple[int, list[Fault]]) -> list[bool]:
    pages, check = _WORK
    return catches(pages[job[0]], job[1], check, _known(job[0]))


@cache
def _known(at: int) -> set[tuple[object, ...]]:
    """What is held against the honest report; it may not count as a catch."""
    pages, check = _WORK
    return {mark(one) for one in check(pages[at].text, pages[at]) if one.verdict == CONTRADICTED}


def _controlled(job: tuple[int, int | None]) -> Control:
    pages, check = _WORK
    page = pages[job[0]]
    text, form = page.text, page.form
    if job[1] is not None:
        from blade.package.calibrate.paraphrase import paraphrased

        text, form = paraphrased(text, job[1]), "paraphrased"
    told = list(check(text, page))
    against = tuple(one for one in told if one.verdict == CONTRADICTED)
    supported = sum(one.verdict == "supported" for one in told)
    return Control(f"{page.dataset} {page.name}", form, len(told), supported, against)


def measure(
    pages: Sequence[Page], n: int, seed: int, workers: int = 1, check: Check = as_shipped, to_a_copy: int = 1
) -> tuple[list[Trial], list[Control]]:
    """Plant and check `n` faults, and check the honest reports and their paraphrases.

    Several faults to a copy are quicker to check, but one may make another stand out.
    """
    global _WORK
    trials = drawn(pages, n, seed)
    by_page: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_page[trial.page].append(trial)
    parts = [
        (at, part) for at, held in by_page.items() for part in apart([one.fault for one in held], to_a_copy)
    ]
    honest: list[tuple[int, int | None]] = [(at, None) for at in range(len(pages))]
    honest += [(at, seed + at) for at, page in enumerate(pages) if page.form == MARKDOWN]
    _WORK = (pages, check)
    _known.cache_clear()
    if workers < 2:
        caught, controls = [_tried(part) for part in parts], [_controlled(one) for one in honest]
    else:
        # forked, so that the worlds need not travel
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            caught = pool.map(_tried, parts, chunksize=1)
            controls = pool.map(_controlled, honest, chunksize=1)
    done = [
        Trial(at, fault, hit)
        for (at, faults), hits in zip(parts, caught, strict=True)
        for fault, hit in zip(faults, hits, strict=True)
    ]
    return done, controls


def apart(faults: Sequence[Fault], most: int) -> list[list[Fault]]:
    """Faults in groups of at most `most`, ten lines or more between any two of a group."""
    groups: list[list[Fault]] = []
    alone = [[one] for one in faults if any("\n" in text for _, text in one.edits)]  # it moves all others
    for fault in (one for one in faults if [one] not in alone):
        for group in groups:
            taken = [at for one in group for at in one.lines]
            if len(group) < most and all(abs(at - other) >= 10 for at in fault.lines for other in taken):
                group.append(fault)
                break
        else:
            groups.append([fault])
    return groups + alone


class Share(msgspec.Struct, frozen=True):
    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n if self.n else 0.0

    def __str__(self) -> str:
        bounds = stats.wilson(self.hits, self.n)
        return "–" if bounds is None else f"{self.value:.1%} [{bounds[0]:.1%}, {bounds[1]:.1%}]"


def share(trials: Iterable[Trial]) -> Share:
    held = list(trials)
    return Share(sum(one.caught for one in held), len(held))


def limits(trials: Sequence[Trial], controls: Sequence[Control]) -> list[tuple[str, Share, float, bool]]:
    """What must hold: its name, the share, the limit, and whether it holds."""
    strict = share(one for one in trials if one.fault.place in STRICT)
    everything = share(trials)
    found = [
        ("caught, all faults", everything, LEAST, everything.value >= LEAST),
        ("caught, in tables, ids, quotes and JSON", strict, LEAST_STRICT, strict.value >= LEAST_STRICT),
    ]
    for name, forms in (("clean", (MARKDOWN, JSON)), ("paraphrased", ("paraphrased",))):
        held = [one for one in controls if one.form in forms]
        alarms = Share(sum(len(one.contradicted) for one in held), sum(one.n for one in held))
        found.append((f"false alarms, {name} reports", alarms, MOST_ALARMS, alarms.value <= MOST_ALARMS))
    return found


def told(
    pages: Sequence[Page], trials: Sequence[Trial], controls: Sequence[Control], seed: int, to_a_copy: int = 1
) -> str:
    """The table by kind and place, and the limits, as Markdown."""
    datasets = len({pages[one.page].dataset for one in trials})
    many = "one" if to_a_copy == 1 else f"up to {to_a_copy}"
    where = f"{len(pages)} reports of {datasets} data sets"
    lines = [f"Mutation test: {len(trials)} faults, {many} to a copy, in {where}, seed {seed}", ""]
    lines += [f"| Fault | Planted | Caught | Share, 95% interval | {' | '.join(PLACES)} |"]
    lines += ["| --- |" + " ---: |" * (3 + len(PLACES))]
    for kind in (*KINDS, "**all**"):
        held = [one for one in trials if kind in (one.fault.kind, "**all**")]
        of = share(held)
        by_place = [share(one for one in held if one.fault.place == place) for place in PLACES]
        cells = [f"{one.hits}/{one.n}" if one.n else "–" for one in by_place]
        lines.append(f"| {kind} | {of.n} | {of.hits} | {of} | {' | '.join(cells)} |")
    lines += ["", "| Limit | Share, 95% interval | n | Asked | Holds |", "| --- | ---: | ---: | ---: | --- |"]
    for name, one, asked, holds in limits(trials, controls):
        sign = "≤" if "alarm" in name else "≥"
        lines.append(f"| {name} | {one} | {one.n} | {sign} {asked:.0%} | {'yes' if holds else '**no**'} |")
    return "\n".join(lines)


def missed(pages: Sequence[Page], trials: Sequence[Trial], controls: Sequence[Control]) -> str:
    """Every fault that was not caught, and every false alarm."""
    lines = []
    for one in sorted(trials, key=lambda trial: (trial.fault.kind, trial.fault.section)):
        if not one.caught:
            page, fault = pages[one.page], one.fault
            numbers = ", ".join(map(str, fault.lines[:4]))
            lines += [f"\n{fault.kind} in {fault.place}: {page.dataset} {page.name}.{page.form}:{numbers}"]
            lines += [f"    under {fault.section}", f"  - {fault.before}", f"  + {fault.after}"]
    for control in controls:
        for alarm in control.contradicted:
            lines.append(f"\nfalse alarm: {control.report}, {control.form}, line {alarm.line} ({alarm.kind})")
            lines += [f"    {alarm.text}", f"    found {alarm.found}; expected {alarm.expected}; {alarm.why}"]
    return "\n".join(lines)
