"""Score a report of a package: what it finds of the anchors, how much of it holds, and on what evidence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from blade.agent.skills import slug
from blade.check import checked
from blade.errors import BladeError, Unreadable
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNCITED, UNVERIFIABLE, Finding
from blade.package import MIN_ANCHORS, matching
from blade.package import layout as place
from blade.package.anchors import TRIVIAL, Anchor, Meaning, meaning, of_file
from blade.package.drafts import threshold_in
from blade.package.layout import Broken, compiled, json_or_nothing, models_in, prefix_of
from blade.package.matching import DENIAL, Hit, Paragraph, Statement, Tasks, passages, tasks_of, visible
from blade.package.package_queries import Worlds, worlds_of
from blade.query.citations import citations
from blade.tables.index import Watcher

BASE = 0.2  # what true totals alone are worth: a shallow report has no more
WRONG = 2.0  # what a wrong claim costs, in right ones
MOST_BARE = 2 / 3  # of the passages of a section that may speak of tasks without evidence
BARE = 0.5  # what a passage about tasks without evidence costs
MADE_UP = 0.7  # what is left of the score for each id or quotation that no rollout has, at least BASE
FRAMED, MOSTLY = 0.2, 0.4  # shares of sentences that may ask, deny or repeat a formula; that leave nothing
OFTEN = 5  # sentences from which on words are a formula
MOST_PROBLEMS = 20
ROWS, WORDING = "rollouts", "wording"
_COUNTED = re.compile(rf"\s+(?:[a-z]+\s+)?{matching.ROLLOUTS}\b", re.IGNORECASE)
NOTE = (
    "final_score = gates x precision x (0.2 + 0.8 x recall x evidence). recall: weighted share of the anchor "
    "facts that the report meets; precision: share of its checkable claims that hold, wrong ones counted "
    "twice; evidence: quotations and citations about single tasks beyond the anchors; golden_overlap: share "
    "of anchors met; table_score: share of cited table cells that hold."
)
NO_ROLLOUTS = " No rollouts were found: the score rests on wording, and no claim was checked against rows."


# -- what reports are judged by ---------------------------------------------------------------------


class CannotJudge(Exception):
    """Why nothing can be said about a report, and what would help."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class Case(msgspec.Struct, frozen=True):
    """The files that belong to a golden report, and what they hold."""

    golden: str
    anchors: tuple[Anchor, ...]
    shallow: str
    rollouts: tuple[Path, ...]  # of the model, or models, that the golden report is about; none: not there
    beside: tuple[Path, ...]  # the other rollouts of the package
    ours: tuple[str, ...]  # what the model and its run are called
    others: tuple[str, ...]  # what the other models of the package are called
    other_goldens: tuple[str, ...] = ()  # the golden reports of single other models


def case(
    report: Path, anchors: Path | None, shallow: Path | None = None, rollouts: Sequence[Path] = (),
    model: str = "",
) -> Case:  # fmt: skip
    """Gather what a golden report is judged with; rollouts that are given go before those of the package."""
    parts = place.golden(report)
    folder = report.resolve().parent
    package = place.layout(folder.parent if folder.name == "golden_reports" else folder)
    try:
        data = place.read_json(anchors) if anchors is not None else {}
    except Broken as error:
        message = f"{anchors} is no JSON that can be read: {error}"
        raise Unreadable(message, "anchor facts are a JSON object or list", "unreadable-file") from error
    models = [*filter(None, (model, *models_in(json_or_nothing(parts.metrics)), *models_in(data)))]
    own = tuple(rollouts) or place.own_rollouts(parts, package, models)
    here = {path.resolve() for path in own}
    beside = tuple(path for path in package.rollouts if path.resolve() not in here) if own else ()
    if shallow is None and parts.shallow.is_file():
        shallow = parts.shallow
    ours = dict.fromkeys((*models, parts.prefix, *map(prefix_of, own)))
    others: dict[str, None] = {}  # by the file, and by the sidecar of its golden report
    for prefix in map(prefix_of, beside):
        sidecars = [json_or_nothing(each.metrics) for each in package.goldens if each.prefix == prefix]
        others |= dict.fromkeys((*(name for sidecar in sidecars for name in models_in(sidecar)), prefix))
    singles = [each.report for each in package.goldens if not each.is_comparison]
    texts = [place.text_or_nothing(path) for path in singles if path.resolve() != parts.report.resolve()]
    return Case(
        report_text(report), tuple(of_file(data)), report_text(shallow) if shallow is not None else "",
        own, beside, tuple(ours), tuple(name for name in others if name not in ours), tuple(filter(None, texts)),
    )  # fmt: skip


def report_text(path: Path) -> str:
    """The text of a report; an error that says so where it cannot be read."""
    try:
        return place.read_text(path)
    except Broken as error:
        hint = "a report is a Markdown file in UTF-8"
        raise Unreadable(f"{path} {error}", hint, "unreadable-file") from error


def worlds_for(case: Case, watcher: Watcher) -> Worlds | None:
    """The runs of a case; None where there are no rollouts, so that words are all there is."""
    if not case.rollouts:
        return None
    try:
        return worlds_of(case.rollouts, case.beside, watcher, threshold_in(case.golden))
    except BladeError as error:
        raise CannotJudge(f"the rollouts cannot be read: {error.message}", error.hint) from error


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


def bench_for(case: Case, watcher: Watcher, least: int = MIN_ANCHORS) -> Bench:
    """What reports on a case are judged by, or why it cannot judge."""
    seat = bench(worlds_for(case, watcher), case.golden, case.anchors, case.shallow, case.ours, case.others)
    if len(seat.telling) < least:
        rest = [anchor for anchor in seat.anchors if anchor not in seat.telling]
        reasons = dict.fromkeys(anchor.problem or "the shallow report has it too" for anchor in rest)
        why = f"; {len(rest)} cannot: {'; '.join(reasons)}" if rest else ""
        hint = "give each fact a query, its value and the tasks it is about, as extract-anchor-facts does"
        raise CannotJudge(f"{len(seat.telling)} anchor facts can be used, {least} are needed{why}", hint)
    return seat


def bench(
    worlds: Worlds | None, golden: str, anchors: Sequence[Anchor], shallow: str = "",
    ours: Sequence[str] = (), others: Sequence[str] = (),
) -> Bench:  # fmt: skip
    """What reports are judged by; anchors that a shallow report meets weigh nothing."""
    known = tasks_of(worlds.home if worlds is not None else None)
    if worlds is not None:
        queries = [anchor.query for anchor in anchors if anchor.query is not None]
        cited = [each.query for text in (golden, shallow) for each in citations(visible(text))]
        worlds.prefetch(queries, [*queries, *cited])
    meanings: dict[str, Meaning] = {}
    ready: list[Anchor] = []
    for anchor in anchors:
        strange = [task for task in anchor.tasks if known.keys and known.key(task) is None]
        problem: Meaning | str = f"there is no task {strange[0]}" if strange else ""
        if anchor.query is not None:
            problem = meaning(anchor, worlds)
        if isinstance(problem, Meaning):
            meanings[anchor.id], problem = problem, ""
        ready.append(replace(anchor, problem=anchor.problem or problem))
    seat = Bench(worlds, known, tuple(ready), meanings, _titles(golden), tuple(ours), tuple(others))
    if not shallow:
        return seat
    reading = read(shallow, seat)
    met = {hit.anchor.id for hit in reading.hits if hit.met}
    ready = [replace(anchor, weight=TRIVIAL) if anchor.id in met else anchor for anchor in ready]
    thin = frozenset(finding.query for finding in reading.findings if finding.query)
    return replace(seat, anchors=tuple(ready), thin=thin)


def _titles(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (line[3:].strip().lower() for line in text.split("\n") if line.startswith("## "))))


# -- the score of a report --------------------------------------------------------------------------


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
    passages: tuple[Paragraph, ...]
    findings: tuple[Finding, ...]
    hits: tuple[Hit, ...]

    @property
    def statements(self) -> Iterator[Statement]:
        return (statement for passage in self.passages for statement in passage.statements)

    @property
    def title(self) -> str:
        return next((line for line in self.text.split("\n") if line.startswith("# ")), "")


def read(text: str, bench: Bench) -> Reading:
    """A report with what the rows say of it and how each anchor fares."""
    text, worlds = visible(text), bench.worlds
    findings = worlds.checked(text) if worlds is not None else checked(text, None)
    parts = tuple(passages(text, bench.known))
    if worlds is not None:
        worlds.prefetch((), [each.query for each in findings if each.query and is_right(each)])
    hits = tuple(
        matching.hit_of(anchor, bench.meanings.get(anchor.id), parts, findings, worlds, bench.known)
        for anchor in bench.usable
    )
    return Reading(text, parts, findings, hits)


def judged(text: str, bench: Bench) -> Score:
    """The score of a report."""
    reading = read(text, bench)
    weight = sum(hit.anchor.weighs for hit in reading.hits)
    recall = sum(hit.anchor.weighs for hit in reading.hits if hit.met) / weight if weight else 0.0
    counts, problems = _counts(reading, bench)
    right = counts["supported"] + counts["by_wording"] + counts["found_again"]
    precision = right / (right + WRONG * counts["wrong"] + BARE * counts["bare"]) if right else 0.0
    evidence = counts["evidence"] / (counts["evidence"] + 1)
    plain, why = _plain(reading)
    # a report whose title names another run of the package and not this one is about that one
    title = f"_{slug(reading.title)}_"
    ours, others = ([each for each in names if f"_{slug(each)}_" in title] for names in (bench.ours, bench.others))
    whose = [f"the title names {others[0]}"] if others and not ours else []
    gates = {"plain": plain, "names": BASE if whose else 1.0, "made_up": max(BASE, MADE_UP ** counts["made_up"])}
    final = math.prod(gates.values()) * precision * (BASE + (1 - BASE) * recall * evidence)
    titles = _titles(reading.text)
    structure = sum(title in titles for title in bench.titles) / max(1, len(bench.titles))
    cells = [each for each in reading.findings if each.kind == "citation" and " | " in each.text]
    return Score(
        final, recall, precision, evidence, gates, counts, reading.hits, (*whose, *why, *problems),
        structure, sum(map(is_right, cells)) / max(1, len(cells)),
    )  # fmt: skip


def as_json(score: Score, bench: Bench) -> dict[str, Any]:
    """The result under the names that other tools know, and under ours."""
    parts = (score.structure, score.precision, score.evidence, score.recall)
    by_wording = bench.worlds is None
    hits = [
        {"id": hit.anchor.id, "score": hit.anchor.weighs * hit.met, "met": hit.met, "fact": hit.anchor.fact,
         "weight": hit.anchor.weight, "how": hit.how, "claim": hit.text, "line": hit.line, "denied": hit.denied}
        for hit in score.hits
    ]  # fmt: skip
    names = ("structure", "quantitative", "evidence", "anchor_coverage")
    result = {
        "final_score": score.score,
        "checklist": {
            "score": sum(share * part for share, part in zip((0.2, 0.2, 0.2, 0.4), parts, strict=True)),
            **dict(zip(names, parts, strict=True)),
        },
        "holistic": {
            "normalized_score": score.score,
            "golden_overlap": sum(hit.met for hit in score.hits) / max(1, len(score.hits)),
            "table_score": score.tables,
        },
        "anchor_hits": hits,
        "note": NOTE + (NO_ROLLOUTS if by_wording else ""),
        "rests_on": WORDING if by_wording else ROWS,
        "recall": score.recall,
        "precision": score.precision,
        "evidence": score.evidence,
        "gates": dict(score.gates),
        "counts": dict(score.counts),
        "by_wording": [anchor.id for anchor in bench.usable if anchor.by_wording],
        "unusable_anchors": [
            {"id": each.id, "fact": each.fact, "why": each.problem} for each in bench.anchors if each.problem
        ],
        "trivial_anchors": [anchor.id for anchor in bench.usable if not anchor.weighs],
        "problems": list(score.problems),
    }
    rounded: dict[str, Any] = _rounded(result)
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


# -- what holds and what does not -------------------------------------------------------------------


def _counts(reading: Reading, bench: Bench) -> tuple[dict[str, int], list[str]]:
    """Claims by what became of them, each once, and what is wrong with the wrong ones."""
    claims = [((each.kind, each.query or "", each.printed), each) for each in reading.findings]
    right = {key for key, each in claims if is_right(each)}
    numbers = [digits for name in bench.known.keys for digits in re.findall(r"\d+", name)]
    longest = max(map(len, numbers), default=0 if bench.known.keys else 99)
    wrong = {key: each for key, each in claims if _is_wrong(each, longest)}
    against = _contradicted(reading, bench)
    problems = [*(_problem(each) for each in wrong.values()), *against]
    # ids and quotations that no rollout has; those that stand elsewhere are only misplaced
    absent = [each for each in wrong.values() if each.verdict == CONTRADICTED and each.kind in ("id", "quotation")]
    # numbers without a citation that exactly one short query gives; a single digit many would give
    uncited = [each for each in reading.findings if each.verdict == UNCITED]
    again = [each for each in uncited if each.query and len(re.findall(r"\d", each.printed)) > 1]
    counts = {
        "supported": len(right),
        "by_wording": sum(hit.met and hit.how != "citation" for hit in reading.hits),
        "wrong": len(problems),
        "made_up": sum(not each.expected.startswith(("it stands in", "task ")) for each in absent),
        "uncited": len(uncited),
        "found_again": len({each.query for each in again if not DENIAL.search(each.text)}),
        "bare": len(_bare(reading, bench.worlds)),
        "evidence": len(_evidence(reading, bench)),
        "anchors": len(reading.hits),
        "anchors_met": sum(hit.met for hit in reading.hits),
        "anchors_denied": sum(hit.denied for hit in reading.hits),
    }
    more = len(problems) - MOST_PROBLEMS
    return counts, [*problems[:MOST_PROBLEMS], *([f"and {more} more claims do not hold"] if more > 0 else [])]


def is_right(finding: Finding) -> bool:
    """A citation or a quotation that holds; that a task exists says nothing about it."""
    holds = finding.verdict == SUPPORTED and finding.kind in ("citation", "quotation")
    return holds and not DENIAL.search(finding.text)


def _is_wrong(finding: Finding, longest: int) -> bool:
    """What the rows or the report itself contradict, a citation that cannot be run, or a denied truth."""
    if finding.kind == "id" and any(len(digits) > longest + 2 for digits in re.findall(r"\d+", finding.printed)):
        return False  # of a record in the tasks' own worlds, which have ids too
    is_denied = finding.verdict == SUPPORTED and DENIAL.search(finding.text) is not None
    is_no_proof = finding.kind == "citation" and (finding.verdict == UNVERIFIABLE or is_denied)
    return finding.verdict == CONTRADICTED or is_no_proof


def _problem(finding: Finding) -> str:
    if finding.verdict == SUPPORTED:
        return f"line {finding.line}: denies {finding.printed}, which the rows give"
    says = f", the rows give {finding.expected[:80]}" if finding.expected else ""
    why = f" ({finding.why[:120]})" if finding.why else ""
    return f"line {finding.line}: {finding.kind} {finding.printed[:80]}{says}{why}"


def _contradicted(reading: Reading, bench: Bench) -> list[str]:
    """Sentences with another number for exactly what an anchor counts: its tasks, its names, one figure."""
    problems = []
    for anchor in bench.telling:
        meant = bench.meanings.get(anchor.id)
        if meant is None or not anchor.tasks or not meant.names:
            continue
        for statement in reading.statements:
            if statement.tasks != set(anchor.tasks) or len(statement.figures) != 1:
                continue
            own, figure = re.sub(r"“[^”]*”", " ", statement.text).lower(), statement.figures[0]
            counted = _COUNTED.match(own, own.find(figure.text.lower()) + len(figure.text))
            is_alike = figure.is_percent if meant.kind == "rate" else counted is not None
            is_named = all(name.replace("_", " ") in own.replace("_", " ") for name in meant.names)
            if is_alike and is_named and not matching.is_number(figure, meant, anchor.tolerance):
                says = f"line {statement.line}: says {figure.text}"
                problems.append(f"{says}, {anchor.id} is {meant.value:.4g}")
    return problems


def is_shown(finding: Finding, worlds: Worlds | None) -> bool:
    """A quotation, or a citation that looks into rollouts and does not add up totals."""
    if finding.kind != "citation" or worlds is None:
        return finding.kind == "quotation"
    return not worlds.is_aggregate(finding.query or "")


def _evidence(reading: Reading, bench: Bench) -> set[str]:
    """Quotations found in the rows and citations about single tasks, beyond what the anchors ask for."""
    worlds = bench.worlds
    if worlds is None:
        return set(re.findall(r"“[^”]{8,}”|<!--\s*blade:.*?-->", reading.text))
    facts = " ".join(" ".join(anchor.fact.split()) for anchor in bench.anchors)
    asked_for = [(each.query or "", bench.meanings[each.id]) for each in bench.usable if each.id in bench.meanings]
    pieces = set()
    for finding in filter(is_right, reading.findings):
        query, quote = finding.query or "", " ".join(finding.printed.split())
        if finding.kind == "quotation":
            pieces |= {quote} if quote not in facts else set()
        elif is_shown(finding, worlds) and query not in bench.thin:
            is_new = not any(matching.is_same_query(text, query, meant, worlds) for text, meant in asked_for)
            pieces |= {query} if is_new else set()
    return pieces


def _bare(reading: Reading, worlds: Worlds | None) -> list[Paragraph]:
    """Passages that say something of tasks without evidence, in sections that show little of it."""
    lines = {each.line for each in reading.findings if is_right(each) and is_shown(each, worlds)}
    lines |= {hit.line for hit in reading.hits if hit.met and hit.anchor.weighs}
    met = {frozenset(hit.anchor.tasks) for hit in reading.hits if hit.met}
    about, bare = Counter[tuple[str, ...]](), []
    for passage in reading.passages:
        own = matching.named(passage.statements)
        if own and passage.statements[0].kind != "heading":
            about[passage.section] += 1
            bare += [passage] if not passage.lines & lines and own not in met else []
    unbacked = Counter(passage.section for passage in bare)
    return [each for each in bare if unbacked[each.section] > MOST_BARE * about[each.section]]


# -- whether it is meant ----------------------------------------------------------------------------

_OF_ITSELF = compiled("of_itself")
_DISOWNED = compiled("disowned")


def _plain(reading: Reading) -> tuple[float, list[str]]:
    """Whether a report means what it says: questions, denials and formulas may be a few of its sentences."""
    prose = [statement for statement in reading.statements if statement.kind in ("sentence", "item", "quote")]
    if _DISOWNED.match(reading.title.lstrip("# ")) or any(_OF_ITSELF.search(each.text) for each in prose):
        return 0.0, ["the report takes back what it says"]
    ends, again = Counter(end for each in prose for end in _ends(each.text)), Counter(each.text for each in prose)
    # words that open or close more than half of all sentences
    formulas = {end for end, n in ends.items() if n >= OFTEN and 2 * n > len(prose)}
    disowned = [passage for passage in reading.passages if any(map(_DISOWNED.match, passage.section))]
    under = {line for passage in disowned for line in passage.lines}
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
    why = f"{framed} of {len(prose)} sentences ask, deny or repeat a formula"
    return max(0.0, 1 - (share - FRAMED) / (MOSTLY - FRAMED)), [why]


def _ends(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {"^" + " ".join(words[:3]), " ".join(words[-2:]) + "$"} if len(words) >= OFTEN else set()
