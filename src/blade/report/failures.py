"""Say what the score was lost to: run causes, why, losses, mechanisms before symptoms, findings."""

from __future__ import annotations

from blade import hostile
from blade.model import Cause, Finding, Outcome
from blade.report import causes, judged, patterns, places, reasons, words
from blade.report.facts import Facts
from blade.report.sections import (
    Badge,
    Block,
    Code,
    Figure,
    Heading,
    Line,
    Para,
    Strong,
    Table,
    cells,
    named,
    para,
    prose,
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
        named: Line = () if mode.lower() in causes.text(cause).lower() else (f" Mode: {mode}.",)
        blocks.append(Para((*causes.told(cause, facts), *named)))
        blocks += places.quotations(facts, cause.evidence, 2)
    return blocks


def losses(facts: Facts) -> list[Block]:
    """Points of score by cause and mode; they add up to what is missing from 1."""
    all_lost = causes.total(facts.losses)
    if not facts.losses or (facts.run.score is not None and 1 - facts.run.score < causes.SAME):
        return [para(_no_losses(facts))]
    rows = [
        cells(
            causes.named(loss.cause),
            causes.mode(facts, loss.mode),
            exact_points(loss.lost),
            words.percent(loss.lost / all_lost) if all_lost > causes.SAME else words.NONE,
            _tasks_of(facts, loss.cause, loss.mode),
        )
        for loss in facts.losses[:MAX_ROWS]
    ]
    left = facts.losses[MAX_ROWS:]
    if left:
        rest = causes.total(left)
        others = f"{words.count(len(left), 'smaller mode')}, in report.json"
        part = words.percent(rest / all_lost) if all_lost > causes.SAME else words.NONE
        rows.append(cells(words.NONE, others, exact_points(rest), part, words.NONE))
    rows.append(cells(Strong("Sum"), "", Strong(exact_points(all_lost)), "", ""))
    blocks: list[Block] = [
        Heading(("Score lost",)),
        Para(_apart(facts)),
        Table(("Cause", "Mode", "Lost", "Share of loss", "Tasks"), tuple(rows), "llrrr"),
        para(_sum_line(facts)),
    ]
    return blocks


def exact_points(value: float) -> str:
    """Lost points with two decimals: a table of losses is added up by its readers."""
    return f"{value * 100:.2f} points"


def _tasks_of(facts: Facts, cause: Cause, mode: str) -> str:
    n = sum(found.cause is cause and found.mode == mode for found in facts.attributions)
    return words.whole(n) if n else words.NONE


def _apart(facts: Facts) -> Line:
    """The model's losses apart from those of the measurement, and both scores."""
    lost = causes.points(causes.total(facts.losses))
    said: Line = (Strong(f"Of {lost} lost: "), f"{causes.split(facts.losses)}.")
    if not causes.is_explained(facts.losses):
        said = (Strong(f"{lost} lost: "), "none was traced to a cause.")
    return (*said, causes.clean(facts))


def _sum_line(facts: Facts) -> str:
    """The losses beside what is missing from 1: they must agree, and a reader can see that they do."""
    found, score = causes.total(facts.losses), facts.run.score
    if score is None:
        return "The run has no score to compare the sum with."
    n = words.count(facts.score.n, "task")
    text = f"Sum: {found:.6f} = 1 − {facts.run.score_name}, over {n}; the rows above are rounded."
    if abs(found - (1 - score)) > causes.SAME:
        text = f"The losses sum to {found:.6f}, but 1 − {facts.run.score_name} is {1 - score:.6f}: "
        text += "do not rely on this table."
    return text + " Tasks: failed tasks whose primary label it is; a task may lose points to several modes."


def _no_losses(facts: Facts) -> str:
    if facts.run.score is None:
        return "No rollout was scored, so there is no score to lose."
    if abs(1 - facts.run.score) < causes.SAME:
        return "No score was lost: every task scores 1."
    if not facts.run.has_pass_rate:
        return "Without a pass rate and with rewards beyond 0 to 1, no point of score can be called lost."
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
    counts = facts.run.outcomes
    total = sum(counts.values())
    rows = tuple(
        cells(
            outcome.value.replace("_", " "),
            words.whole(n),
            words.percent(n / total if total else None),
            MEANINGS[outcome],
        )
        for outcome, n in counts.items()
    )
    return [
        Heading(("How rollouts ended",)),
        Table(("Outcome", "Rollouts", f"Share of {total:,}", "What it means"), rows, "lrrl"),
    ]


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
    n = f"{words.count(len(facts.findings), 'finding')}, each with its evidence, in report.json"
    if not by_detector:
        return [para(f"{n}; all are of the behaviours above.")]
    rows, quotes = [], []
    for detector, found in list(by_detector.items())[:MAX_FINDINGS]:
        first = found[0]
        rows.append(
            cells(
                Badge(*SEVERITIES[min(max(first.severity, 0), 3)]),
                Code(hostile.line(detector, 60)),
                words.whole(len(found)),
                words.whole(len({finding.task for finding in found})),
                Code(hostile.line(places.place(first.task, first.repeat), 60)),
                prose(hostile.line(first.summary, 400)),
                first.confidence.value,
            )
        )
        quoted = places.first_quoted(first.evidence)
        quotes += [places.quotation(quoted, Code(hostile.line(detector, 60)), ": ")] if quoted else []
    header = ("Severity", "Detector", "Findings", "Tasks", "For instance", "What was found", "Confidence")
    return [
        Heading(("Findings",)),
        para(f"What the rows show beside the behaviours above. {n}."),
        Table(header, tuple(rows), "llrrlll"),
        *places.left_out(len(by_detector), len(rows), "detector"),
        *quotes[:MAX_QUOTES],
    ]
