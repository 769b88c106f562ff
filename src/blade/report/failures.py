"""Say what the score was lost to: run causes, why, losses, mechanisms before symptoms, findings."""

from __future__ import annotations

from blade import hostile
from blade.model import Cause, Finding, Loss, Outcome
from blade.report import causes, judged, numbers, patterns, places, quantities, queries, reasons, words
from blade.report.facts import Facts
from blade.report.sections import (
    Badge,
    Block,
    Code,
    Figure,
    Heading,
    Line,
    Para,
    Span,
    Strong,
    Table,
    cells,
    named,
    para,
)

MAX_ROWS = 30
MAX_QUOTES = 6
MAX_FINDINGS = 12  # detectors in the table of findings
SEVERITIES = (("note", "quiet"), ("minor", "quiet"), ("serious", "warning"), ("breaks the score", "bad"))
MEANINGS = {
    Outcome.PASSED: "reward at or above the threshold",
    Outcome.FAILED: "scored below the threshold",
    Outcome.ERRORED: "below the threshold, and the row carries an error",
    Outcome.TIMED_OUT: "below the threshold, and the row says it timed out",
    Outcome.MALFORMED: "in the rollouts file without a usable reward",
    Outcome.MASKED: "the environment says its reward is no measurement",
    Outcome.MISSING: "expected, not in the rollouts file (failed or lost)",
}


def dominant_failure_modes(runs: tuple[Facts, ...], figures: tuple[Figure, ...] = ()) -> list[Block]:
    """What the score was lost to, the largest first; mechanisms before the symptoms."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading(("Run ", Code(hostile.line(facts.run.name, 80)))))
        blocks += run_causes(facts)
        blocks += reasons.chapter(facts)
        blocks += losses(facts)
        blocks += named(figures, "losses", facts.run.name)
        blocks += judged.judgements(facts)
        explained = [*patterns.mechanisms(facts), *patterns.behaviours(facts), *patterns.signatures(facts)]
        blocks += explained or [para(nothing_recurs(facts))]
        blocks += patterns.meanings(facts)
        blocks += _outcomes(facts)
        blocks += _findings(facts)
    return blocks or [para("No run was read.")]


def run_causes(facts: Facts) -> list[Block]:
    """The causes that concern the run as a whole, each with its quotation."""
    if not facts.run_causes:
        return []
    blocks: list[Block] = [Heading(("Causes of the run as a whole",))]
    for cause in facts.run_causes:
        mode = causes.mode(facts, cause.mode)
        is_told = mode.lower() in causes.text(cause).lower()
        named: Line = () if is_told else (" Mode: ", numbers.name(mode), ".")
        blocks.append(Para((*causes.told(cause, facts), *named)))
        blocks += places.quotations(facts, cause.evidence, 2)
    return blocks


def losses(facts: Facts) -> list[Block]:
    """Points of score by cause and mode; they add up to what is missing from 1."""
    if not facts.losses or (facts.run.score is not None and 1 - facts.run.score < causes.SAME):
        return [para(_no_losses(facts))]
    rows = [_loss(facts, loss) for loss in facts.losses[:MAX_ROWS]]
    left = facts.losses[MAX_ROWS:]
    if left:
        rest, shown = causes.total(left), facts.losses[:MAX_ROWS]
        parts = " - ".join(f"{facts.entry('losses', loss)}.lost" for loss in shown)
        every = queries.entry("losses", run=facts.run.name)
        others = numbers.count(len(left), "smaller mode", f"{every}.count - {MAX_ROWS}")
        lost = _exact_points(rest, f"{every}.lost - {parts}")
        rows.append(cells(words.NONE, (*others, ", in report.json"), lost, words.NONE, words.NONE))
    total = _exact_points(causes.total(facts.losses), causes.lost_query(facts), strong=True)
    rows.append(cells(Strong("Sum"), "", total, "", ""))
    return [
        Heading(("Score lost",)),
        Para(_apart(facts)),
        Table(("Cause", "Mode", "Lost", "Share of loss", "Tasks"), tuple(rows), "llrrr"),
        para(*_sum_line(facts)),
    ]


def _loss(facts: Facts, loss: Loss) -> tuple[Line, ...]:
    query, total = f"{facts.entry('losses', loss)}.lost", causes.total(facts.losses)
    share = loss.lost / total if total > causes.SAME else None
    return cells(
        causes.named(loss.cause),
        numbers.name(causes.mode(facts, loss.mode)),
        _exact_points(loss.lost, query),
        numbers.percent(share, f"{query} / {causes.lost_query(facts)}"),
        _tasks_of(facts, loss.cause, loss.mode),
    )


def _exact_points(value: float, query: str, strong: bool = False) -> Span:
    """Lost points with two decimals: a table of losses is added up by its readers."""
    return numbers.num(f"{value * 100:.2f} points", value, query, strong)


def _tasks_of(facts: Facts, cause: Cause, mode: str) -> Span:
    n = sum(task.cause is cause and task.mode == mode for task in facts.attributions)
    query = queries.entry("attributions", run=facts.run.name, cause=cause, mode=mode)
    return numbers.whole(n, f"{query}.count") if n else words.NONE


def _apart(facts: Facts) -> Line:
    """The model's losses apart from those of the measurement, and both scores."""
    if not causes.is_explained(facts.losses):
        return (causes.all_lost(facts), " lost; none was traced to a cause.", *causes.clean(facts))
    return ("Of ", causes.all_lost(facts), " lost: ", *causes.split(facts), ".", *causes.clean(facts))


def _sum_line(facts: Facts) -> Line:
    """The losses beside what is missing from 1: they must agree, and a reader can see that they do."""
    found, score = causes.total(facts.losses), facts.run.score
    if score is None:
        return ("The run has no score to compare the sum with.",)
    total = numbers.num(f"{found:.6f}", found, causes.lost_query(facts))
    n = numbers.count(facts.score.n, "task", quantities.query(facts.score, "n"))
    text: Line = (
        "Sum: ",
        total,
        f" = 1 − {facts.run.score_name}, over ",
        *n,
        "; the rows above are rounded.",
    )
    if abs(found - (1 - score)) > causes.SAME:
        text = (
            "The losses sum to ",
            total,
            f", which is not 1 − {facts.run.score_name}: do not rely on this table.",
        )
    return (*text, " Tasks: failed tasks whose primary label it is; a task may lose points to several modes.")


def _no_losses(facts: Facts) -> str:
    if facts.run.score is None:
        return "No rollout was scored, so there is no score to lose."
    if abs(1 - facts.run.score) < causes.SAME:
        return "No score was lost: every task scores 1."
    if not facts.run.has_pass_rate:
        return "Without a pass rate and with rewards that leave [0, 1], no point of score can be called lost."
    return "What the score was lost to was not computed."


def nothing_recurs(facts: Facts) -> str:
    """Why no mechanism, behaviour or signature stands here."""
    if not facts.run.has_pass_rate:
        return (
            "Without a pass rate no rollout can be called failing, so nothing can be said to go with failing."
        )
    if facts.run.score is None:
        return "No rollout was scored, so there is nothing to look for patterns in."
    if not _failing(facts):
        return "No scored rollout failed, so there is nothing to look for patterns in."
    return (
        "No mechanism, behaviour or error signature was found: either the trajectories were not read, or "
        "they hold nothing that recurs. What could not be tested stands under Reproducibility Notes."
    )


def _failing(facts: Facts) -> int:
    passing = (Outcome.PASSED, Outcome.MASKED, Outcome.MISSING)
    return sum(n for outcome, n in facts.run.outcomes.items() if outcome not in passing)


def _outcomes(facts: Facts) -> list[Block]:
    if not facts.run.has_pass_rate:
        return [para("Without a pass rate, rollouts are not sorted into passed and failed.")]
    rows = tuple(_outcome(facts, outcome, n) for outcome, n in facts.run.outcomes.items())
    header = ("Outcome", "Rollouts", "Share of all", "What it means")
    return [Heading(("How rollouts ended",)), Table(header, rows, "lrrl")]


def _outcome(facts: Facts, outcome: Outcome, n: int) -> tuple[Line, ...]:
    run, total = facts.run.name, sum(facts.run.outcomes.values())
    gone = {Outcome.MASKED: "masked", Outcome.MISSING: "failed + lost"}
    rows = queries.select("count(*)", "rollouts", run, f"outcome = {queries.quoted(outcome.value)}")
    part = gone.get(outcome, f"({rows})")
    every = f"(({queries.select('count(*)', 'rollouts', run, 'not masked')}) + masked + failed + lost)"
    counted = queries.measure("count", run, f"outcome = {queries.quoted(outcome.value)}")
    return cells(
        outcome.value.replace("_", " "),
        numbers.whole(n, facts.counted(gone[outcome]) if outcome in gone else counted),
        numbers.percent(n / total if total else None, facts.counted(f"({part}) / {every}")),
        MEANINGS[outcome],
    )


def grouped(findings: list[Finding]) -> dict[str, list[Finding]]:
    """The findings by detector, the most severe and most frequent first."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.detector, []).append(finding)
    order = sorted(found, key=lambda name: (-max(f.severity for f in found[name]), -len(found[name]), name))
    return {name: found[name] for name in order}


def plain_findings(facts: Facts) -> list[Finding]:
    """Findings that no base rate speaks for: facts about the data rather than behaviours of the model."""
    told = {behaviour.detector for behaviour in facts.behaviours}
    return [finding for finding in facts.findings if finding.detector not in told]


def _findings(facts: Facts) -> list[Block]:
    """The findings that no base rate speaks for, by detector; every single one is in report.json."""
    if not facts.findings:
        return [para("No finding was made.")]
    by_detector = grouped(plain_findings(facts))
    counted = f"{queries.entry('findings', run=facts.run.name)}.count"
    n = numbers.count(len(facts.findings), "finding", counted)
    if not by_detector:
        return [para(*n, ", each with its evidence, in report.json; all are of the behaviours above.")]
    rows, quotes = [], []
    for detector, group in list(by_detector.items())[:MAX_FINDINGS]:
        rows.append(_findings_row(facts, detector, group))
        quoted = places.first_quoted(group[0].evidence)
        quotes += [places.quotation(quoted, Code(hostile.line(detector, 60)), ": ")] if quoted else []
    header = ("Severity", "Detector", "Findings", "For instance", "What was found", "Confidence")
    return [
        Heading(("Findings",)),
        para(
            "What the rows show beside the behaviours above. ",
            *n,
            ", each with its evidence, in report.json.",
        ),
        Table(header, tuple(rows), "llrlll"),
        *places.left_out(len(by_detector), len(rows), "detector"),
        *quotes[:MAX_QUOTES],
    ]


def _findings_row(facts: Facts, detector: str, group: list[Finding]) -> tuple[Line, ...]:
    first = group[0]
    every = queries.entry("findings", run=facts.run.name, detector=detector)
    return cells(
        Badge(*SEVERITIES[min(max(first.severity, 0), 3)]),
        Code(hostile.line(detector, 60)),
        numbers.whole(len(group), f"{every}.count"),
        Code(hostile.line(places.place(first.task, first.repeat), 60)),
        numbers.said(first.summary, f"{facts.entry('findings', first)}.summary", 400),
        first.confidence.value,
    )
