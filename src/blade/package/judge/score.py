"""Score a report: what it finds of the anchors, how much of what it claims holds, and on what evidence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from blade.agent.skills.names import slug
from blade.check import checked
from blade.model.checked import CONTRADICTED, SUPPORTED, UNCITED, UNVERIFIABLE, Finding
from blade.package.judge.anchors import TRIVIAL, Anchor, Meaning, meaning, rows_queries
from blade.package.judge.matching import DENIAL, ROLLOUTS, Hit, hit_of, is_number, is_same_query
from blade.package.judge.statements import Passage, Statement, Tasks, passages, tasks_of, visible
from blade.package.worlds import Worlds
from blade.query.citations import citations

BASE = 0.2  # what true totals alone are worth: a shallow report has no more
WRONG = 2.0  # what a wrong claim costs, in right ones
MOST_BARE = 2 / 3  # of the passages of a section that may speak of tasks without evidence
BARE = 0.5  # what a passage about tasks without evidence costs
MADE_UP = 0.7  # what is left of the score for each id or quotation that no rollout has, at least BASE
FRAMED, MOSTLY = 0.2, 0.4  # shares of sentences that may ask, deny or repeat a formula; that leave nothing
OFTEN = 5  # sentences from which on words are a formula
PROSE = ("sentence", "item", "quote")
MOST_PROBLEMS = 20


class Bench(msgspec.Struct, frozen=True):
    """What reports on a run are judged by."""

    worlds: Worlds | None
    known: Tasks
    anchors: tuple[Anchor, ...]
    meanings: Mapping[str, Meaning]  # by the id of the anchor
    titles: tuple[str, ...] = ()  # of the golden report's sections
    ours: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    thin: frozenset[str] = frozenset()  # what the shallow report cites

    @property
    def usable(self) -> tuple[Anchor, ...]:
        return tuple(anchor for anchor in self.anchors if not anchor.problem)

    @property
    def telling(self) -> tuple[Anchor, ...]:
        return tuple(anchor for anchor in self.usable if anchor.weighs)


class Score(msgspec.Struct, frozen=True):
    """What a report is worth, and all that this rests on."""

    score: float
    recall: float
    precision: float
    evidence: float
    gates: Mapping[str, float]
    counts: Mapping[str, int]
    hits: tuple[Hit, ...]
    problems: tuple[str, ...]
    structure: float = 0.0
    tables: float = 0.0


class Reading(msgspec.Struct, frozen=True):
    """A report as the judge reads it."""

    text: str
    passages: tuple[Passage, ...]
    findings: tuple[Finding, ...]
    hits: tuple[Hit, ...]


def bench(
    worlds: Worlds | None,
    golden: str,
    anchors: Sequence[Anchor],
    shallow: str = "",
    ours: Sequence[str] = (),
    others: Sequence[str] = (),
) -> Bench:
    """What reports are judged by; anchors that a shallow report meets weigh nothing."""
    known = tasks_of(worlds.home if worlds is not None else None)
    meanings: dict[str, Meaning] = {}
    ready: list[Anchor] = []
    if worlds is not None:
        queries = [anchor.query for anchor in anchors if anchor.query is not None]
        cited = [each.query for text in (golden, shallow) for each in citations(visible(text))]
        worlds.prefetch([*queries, *rows_queries(queries + cited, worlds)])
    for anchor in anchors:
        meant = meaning(anchor, worlds) if anchor.query is not None else _wording(anchor, known)
        if isinstance(meant, Meaning):
            meanings[anchor.id] = meant
        problem = anchor.problem or (meant if isinstance(meant, str) else "")
        ready.append(replace(anchor, problem=problem))
    titles = tuple(title for title in _titles(golden) if title)
    made = Bench(worlds, known, tuple(ready), meanings, titles, tuple(ours), tuple(others))
    if not shallow:
        return made
    reading = read(shallow, made)
    met = {hit.anchor.id for hit in reading.hits if hit.met}
    kept = (replace(anchor, weight=TRIVIAL) if anchor.id in met else anchor for anchor in ready)
    thin = frozenset(finding.query for finding in reading.findings if finding.query)
    return replace(made, anchors=tuple(kept), thin=thin)


def _wording(anchor: Anchor, known: Tasks) -> str | None:
    """Why a fact in prose cannot be used; None if it can."""
    strange = [task for task in anchor.tasks if known.keys and known.key(task) is None]
    return f"there is no task {strange[0]}" if strange else None


def _titles(text: str) -> list[str]:
    return [line[3:].strip().lower() for line in text.split("\n") if line.startswith("## ")]


def read(text: str, bench: Bench) -> Reading:
    """A report with what the rows say of it and how each anchor fares."""
    text = visible(text)
    findings = bench.worlds.checked(text) if bench.worlds is not None else checked(text, None)
    held = tuple(passages(text, bench.known))
    if bench.worlds is not None:
        cited = (each.query for each in findings if _is_right(each) and each.query)
        bench.worlds.prefetch(rows_queries(cited, bench.worlds))
    hits = tuple(
        hit_of(anchor, bench.meanings.get(anchor.id), held, findings, bench.worlds, bench.known)
        for anchor in bench.usable
    )
    return Reading(text, held, findings, hits)


def judged(text: str, bench: Bench) -> Score:
    """The score of a report."""
    reading = read(text, bench)
    weight = sum(hit.anchor.weighs for hit in reading.hits)
    recall = sum(hit.anchor.weighs for hit in reading.hits if hit.met) / weight if weight else 0.0
    counts, problems = _counts(reading, bench)
    right = counts["supported"] + counts["by_wording"] + counts["found_again"]
    wrong, bare = counts["wrong"], counts["bare"]
    precision = right / (right + WRONG * wrong + BARE * bare) if right else 0.0
    evidence = counts["evidence"] / (counts["evidence"] + 1)
    plain, why = _plain(reading)
    names, whose = _names(reading, bench)
    gates = {"plain": plain, "names": names, "made_up": max(BASE, MADE_UP ** counts["made_up"])}
    final = math.prod(gates.values()) * precision * (BASE + (1 - BASE) * recall * evidence)
    return Score(
        final, recall, precision, evidence, gates, counts, reading.hits, (*whose, *why, *problems),
        _structure(reading.text, bench), _tables(reading.findings),
    )  # fmt: skip


# -- what holds and what does not -------------------------------------------------------------------


def _counts(reading: Reading, bench: Bench) -> tuple[dict[str, int], list[str]]:
    """Claims by what became of them, each once, and what is wrong with the wrong ones."""
    right = {_key(each): each for each in reading.findings if _is_right(each)}
    wrong = {_key(each): each for each in reading.findings if _is_wrong(each) and _is_ours(each, bench.known)}
    problems = [_problem(each) for each in wrong.values()]
    against = _contradicted(reading.passages, bench)
    problems += [f"line {statement.line}: {why}" for statement, why in against]
    by_wording = sum(hit.met and hit.how != "citation" for hit in reading.hits)
    counts = {
        "supported": len(right),
        "by_wording": by_wording,
        "wrong": len(wrong) + len(against),
        "made_up": sum(_is_made_up(each) for each in wrong.values()),
        "uncited": sum(each.verdict == UNCITED for each in reading.findings),
        "found_again": len({each.query for each in reading.findings if _is_found_again(each)}),
        "bare": len(_bare(reading, bench.worlds)),
        "evidence": len(_evidence(reading, bench)),
        "anchors": len(reading.hits),
        "anchors_met": sum(hit.met for hit in reading.hits),
        "anchors_denied": sum(hit.denied for hit in reading.hits),
    }
    more = len(problems) - MOST_PROBLEMS
    return counts, [*problems[:MOST_PROBLEMS], *([f"and {more} more claims do not hold"] if more > 0 else [])]


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.kind, finding.query or "", finding.printed


def _is_right(finding: Finding) -> bool:
    """A citation or a quotation that holds; that a task exists says nothing about it."""
    holds = finding.verdict == SUPPORTED and finding.kind in ("citation", "quotation")
    return holds and not DENIAL.search(finding.text)


def _is_found_again(finding: Finding) -> bool:
    """A number without a citation that exactly one short query gives; a single digit many would give."""
    is_number = finding.verdict == UNCITED and finding.query and len(re.findall(r"\d", finding.printed)) > 1
    return bool(is_number) and not DENIAL.search(finding.text)


def _is_wrong(finding: Finding) -> bool:
    """What the rows or the report itself contradict, a citation that cannot be run, or a denied truth."""
    if finding.verdict == CONTRADICTED:
        return True
    is_denied = finding.verdict == SUPPORTED and DENIAL.search(finding.text) is not None
    return finding.kind == "citation" and (finding.verdict == UNVERIFIABLE or is_denied)


def _is_made_up(finding: Finding) -> bool:
    """An id or a quotation that no rollout has; one that stands elsewhere is only misplaced."""
    if finding.verdict != CONTRADICTED or finding.kind not in ("id", "quotation"):
        return False
    return not finding.expected.startswith(("it stands in", "task "))


def _is_ours(finding: Finding, known: Tasks) -> bool:
    """Whether an unknown id could be that of a task: records of the tasks' own worlds have ids too."""
    if finding.kind != "id" or not known.keys:
        return True
    longest = max((len(digits) for name in known.keys for digits in re.findall(r"\d+", name)), default=0)
    return all(len(digits) <= longest + 2 for digits in re.findall(r"\d+", finding.printed))


def _problem(finding: Finding) -> str:
    if finding.verdict == SUPPORTED:
        return f"line {finding.line}: denies {finding.printed}, which the rows give"
    says = f", the rows give {finding.expected[:80]}" if finding.expected else ""
    why = f" ({finding.why[:120]})" if finding.why else ""
    return f"line {finding.line}: {finding.kind} {finding.printed[:80]}{says}{why}"


_COUNTED = re.compile(rf"\s+(?:[a-z]+\s+)?{ROLLOUTS}\b", re.IGNORECASE)


def _contradicted(read: Sequence[Passage], bench: Bench) -> list[tuple[Statement, str]]:
    """Sentences with another number for exactly what an anchor counts: its tasks, its names, one figure."""
    contradictions = []
    for anchor in bench.telling:
        meant = bench.meanings.get(anchor.id)
        if meant is None or not anchor.tasks or not meant.names:
            continue
        for statement in (each for passage in read for each in passage.statements):
            if statement.tasks != set(anchor.tasks) or len(statement.figures) != 1:
                continue
            own, figure = re.sub(r"“[^”]*”", " ", statement.text).lower(), statement.figures[0]
            counted = _COUNTED.match(own, own.find(figure.text.lower()) + len(figure.text))
            is_alike = figure.is_percent if meant.kind == "rate" else counted is not None
            is_named = all(name.replace("_", " ") in own.replace("_", " ") for name in meant.names)
            if is_alike and is_named and not is_number(figure, meant, anchor.tolerance):
                contradictions.append((statement, f"says {figure.text}, {anchor.id} is {meant.value:.4g}"))
    return contradictions


# -- evidence ---------------------------------------------------------------------------------------


def _evidence(reading: Reading, bench: Bench) -> set[str]:
    """Quotations found in the rows and citations about single tasks, beyond what the anchors ask for."""
    if bench.worlds is None:
        return set(re.findall(r"“[^”]{8,}”|<!--\s*blade:.*?-->", reading.text))
    pieces = set()
    facts = " ".join(" ".join(anchor.fact.split()) for anchor in bench.anchors)
    for finding in reading.findings:
        if not _is_right(finding):
            continue
        if finding.kind == "quotation":
            quote = " ".join(finding.printed.split())
            pieces |= {quote} if quote not in facts else set()
        elif is_shown(finding, bench.worlds) and not _is_of_anchor(finding.query or "", bench):
            pieces.add(finding.query or "")
    return pieces


def _is_of_anchor(query: str, bench: Bench) -> bool:
    worlds = bench.worlds
    return (
        query in bench.thin
        or worlds is None
        or any(
            is_same_query(anchor.query, query, bench.meanings[anchor.id], worlds)
            for anchor in bench.usable
            if anchor.query is not None and anchor.id in bench.meanings
        )
    )


def _bare(reading: Reading, worlds: Worlds | None) -> list[Passage]:
    """Passages that say something of tasks without evidence, in sections that show little of it."""
    lines = {finding.line for finding in reading.findings if _is_right(finding) and is_shown(finding, worlds)}
    lines |= {hit.line for hit in reading.hits if hit.met and hit.anchor.weighs}
    met = {frozenset(hit.anchor.tasks) for hit in reading.hits if hit.met}
    about, bare = Counter[tuple[str, ...]](), []
    for passage in reading.passages:
        own = frozenset(task for each in passage.statements for task in each.tasks)
        if own and passage.statements[0].kind != "heading":
            about[passage.section] += 1
            bare += [passage] if not passage.lines & lines and own not in met else []
    unbacked = Counter(passage.section for passage in bare)
    return [each for each in bare if unbacked[each.section] > MOST_BARE * about[each.section]]


def is_shown(finding: Finding, worlds: Worlds | None) -> bool:
    """A quotation, or a citation that looks into rollouts and does not add up totals."""
    if finding.kind != "citation" or worlds is None:
        return finding.kind == "quotation"
    return not worlds.is_aggregate(finding.query or "")


# -- whether it is meant ----------------------------------------------------------------------------

_OF_ITSELF = re.compile(  # a sentence that takes the whole report back
    r"\b(?:this report|every (?:statement|word|claim))\b[^.]*\b(?:is|are|was|were)"
    r" (?:a lie|lies|false|untrue|made up|fabricated|invented)\b",
    re.IGNORECASE,
)
_DISOWNED = re.compile(  # a title or heading that does
    r"\W*(?:refuted|false|untrue|debunked|retracted)\b(?!\s+(?:positive|negative|alarm|success|report))", re.I
)


def _plain(reading: Reading) -> tuple[float, list[str]]:
    """Whether a report means what it says: questions, denials and formulas may be a few of its sentences."""
    prose = [each for passage in reading.passages for each in passage.statements if each.kind in PROSE]
    title = next((line.lstrip("# ") for line in reading.text.split("\n") if line.startswith("# ")), "")
    if _DISOWNED.match(title) or any(_OF_ITSELF.search(each.text) for each in prose):
        return 0.0, ["the report takes back what it says"]
    formulas, again = _formulas(prose), Counter(each.text for each in prose)
    under = {
        line for each in reading.passages if any(map(_DISOWNED.match, each.section)) for line in each.lines
    }
    framed = sum(
        each.text.rstrip('*_"”) ').endswith("?")
        or DENIAL.search(each.text) is not None
        or bool(_ends(each.text) & formulas)
        or again[each.text] >= OFTEN
        or each.line in under
        for each in prose
    )
    share = framed / max(1, len(prose))
    if share <= FRAMED:
        return 1.0, []
    return max(0.0, 1 - (share - FRAMED) / (MOSTLY - FRAMED)), [
        f"{framed} of {len(prose)} sentences ask, deny or repeat a formula"
    ]


def _ends(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {"^" + " ".join(words[:3]), " ".join(words[-2:]) + "$"} if len(words) >= OFTEN else set()


def _formulas(prose: Sequence[Statement]) -> set[str]:
    """Words that open or close more than half of all sentences."""
    ends = Counter(end for each in prose for end in _ends(each.text))
    return {end for end, n in ends.items() if n >= OFTEN and 2 * n > len(prose)}


def _names(reading: Reading, bench: Bench) -> tuple[float, list[str]]:
    """A report whose title names another run of the package and not this one is about that one."""
    title = f"_{slug(next((line for line in reading.text.split(chr(10)) if line.startswith('# ')), ''))}_"
    ours, others = (
        [name for name in names if f"_{slug(name)}_" in title] for names in (bench.ours, bench.others)
    )
    return (BASE, [f"the title names {others[0]}"]) if others and not ours else (1.0, [])


def _structure(text: str, bench: Bench) -> float:
    have = set(_titles(text))
    return sum(title in have for title in bench.titles) / len(bench.titles) if bench.titles else 0.0


def _tables(findings: Sequence[Finding]) -> float:
    """The share of cited table cells that hold."""
    cells = [each for each in findings if each.kind == "citation" and " | " in each.text]
    return sum(map(_is_right, cells)) / len(cells) if cells else 0.0
