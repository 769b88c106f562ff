"""Point at what to read: outcomes, flags, findings, and the tasks worth opening first."""

from __future__ import annotations

from blade import hostile
from blade.model import Evidence, Finding, Health, Outcome, Report, Run, TaskResult
from blade.report import quantities, words
from blade.report.facts import Facts
from blade.report.sections import Badge, Block, Code, Commands, Heading, Line, Quote, Table, cells, para
from blade.report.summary import TONES

MAX_ROWS = 30
MAX_QUOTES = 6
MAX_REPEATS = 16
TO_READ = 5  # tasks whose commands are written out
SEVERITIES = (("note", "quiet"), ("minor", "quiet"), ("serious", "warning"), ("breaks the score", "bad"))
SIGNS = {
    Outcome.PASSED: "1",
    Outcome.FAILED: "0",
    Outcome.ERRORED: "e",
    Outcome.TIMED_OUT: "t",
    Outcome.MALFORMED: "x",
    Outcome.MASKED: "m",
    Outcome.MISSING: "-",
}
LEGEND = "Repeats: 1 passed, 0 failed, e errored, t timed out, x malformed, m masked, - missing."
MEANINGS = {
    Outcome.PASSED: "reward at or above the threshold",
    Outcome.FAILED: "scored below the threshold",
    Outcome.ERRORED: "below the threshold, and the row carries an error",
    Outcome.TIMED_OUT: "below the threshold, and the row says it timed out",
    Outcome.MALFORMED: "in the rollouts file without a usable reward",
    Outcome.MASKED: "the environment says its reward is no measurement",
    Outcome.MISSING: "expected, not in the rollouts file (failed or lost)",
}


def dominant_failure_modes(runs: tuple[Facts, ...]) -> list[Block]:
    """What can be said of failures without causes: outcomes, health flags, findings."""
    blocks: list[Block] = [
        para(
            "Failure modes and root causes are not computed yet: nothing here says why a rollout failed. ",
            "What the rows show by themselves:",
        )
    ]
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        blocks += _outcomes(facts)
        blocks += _losses(facts)
        blocks += _health(facts)
        blocks += _findings(facts)
    return blocks


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
    return [Table(("Outcome", "Rollouts", f"Share of {total:,}", "What it means"), rows, "lrrl")]


def _losses(facts: Facts) -> list[Block]:
    """Points of score by cause, once causes are known; until then one row says they are not."""
    if not facts.losses:
        return []
    rows = tuple(
        cells(loss.cause.value, hostile.line(loss.mode, 120), words.points(loss.lost).removeprefix("+"))
        for loss in facts.losses[:MAX_ROWS]
    )
    return [
        Heading(("Score lost",)),
        para(f"The losses add up to 1 − {facts.run.score_name}, over {words.count(facts.score.n, 'task')}."),
        Table(("Cause", "Mode", "Lost"), rows, "llr"),
        *_left_out(len(facts.losses), len(rows), "row"),
    ]


def _health(facts: Facts) -> list[Block]:
    if not facts.health:
        return [para("No health flag was raised.")]
    rows = tuple(
        cells(
            Badge(flag.level.value, TONES[flag.level]),
            Code(hostile.line(flag.flag, 60)),
            hostile.line(flag.text, 400),
            words.number(flag.value),
            words.whole(flag.n),
            Code(hostile.line(flag.task, 60)) if flag.task is not None else "run",
        )
        for flag in facts.health[:MAX_ROWS]
    )
    blocks: list[Block] = [
        Heading(("Health flags",)),
        Table(("Level", "Flag", "What was seen", "Value", "n", "Task"), rows, "lllrrl"),
        *_left_out(len(facts.health), len(rows), "flag"),
    ]
    return blocks + _quotes(facts.health)


def _findings(facts: Facts) -> list[Block]:
    if not facts.findings:
        return [para("No finding was made.")]
    rows = tuple(
        cells(
            Badge(*SEVERITIES[min(max(finding.severity, 0), 3)]),
            Code(hostile.line(finding.detector, 60)),
            Code(hostile.line(place(finding.task, finding.repeat), 60)),
            hostile.line(finding.summary, 400),
            finding.confidence.value,
        )
        for finding in facts.findings[:MAX_ROWS]
    )
    return [
        Heading(("Findings",)),
        Table(("Severity", "Detector", "Where", "What was found", "Confidence"), rows, "lllll"),
        *_left_out(len(facts.findings), len(rows), "finding"),
        *_quotes(facts.findings),
    ]


def _quotes(nouns: list[Health] | list[Finding]) -> list[Block]:
    """The first quotation of the first nouns that have one; report.json has them all."""
    found: list[Block] = []
    for noun in nouns:
        name = noun.flag if isinstance(noun, Health) else noun.detector
        quoted = next((evidence for evidence in noun.evidence if evidence.quote is not None), None)
        if quoted is not None and len(found) < MAX_QUOTES:
            found.append(
                Quote(
                    (Code(hostile.line(name, 60)), ": ", *address(quoted)), hostile.quoted(quoted.quote or "")
                )
            )
    return found


def address(evidence: Evidence) -> Line:
    """Where a quotation stands."""
    where: Line = ("task ", Code(hostile.line(place(evidence.task, evidence.repeat), 80)))
    if evidence.step is not None:
        return (*where, f", step {evidence.step}")
    return (*where, ", field ", Code(hostile.line(evidence.field or "", 80)))


def place(task: str, repeat: int | None) -> str:
    """TASK/REPEAT, as `blade show` takes it."""
    return task if repeat is None else f"{task}/{repeat}"


def sometimes_pass(runs: tuple[Facts, ...]) -> list[Block]:
    """The tasks that pass sometimes, the most evenly split first."""
    blocks: list[Block] = [
        para(
            "What the passing repeats did that the failing ones did not is not computed yet. ",
            "The tasks are ranked by how evenly their repeats split (shrunk rate nearest 50%): ",
            "there the two sides have most to tell.",
        )
    ]
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        if facts.run.coverage.repeats <= 1:
            blocks.append(para("One repeat per task: a task cannot be seen to pass sometimes."))
        blocks += _task_table(facts, evenly_split(facts.tasks), never=False)
    return blocks


def never_pass(runs: tuple[Facts, ...]) -> list[Block]:
    """The tasks that never pass, the surest first."""
    blocks: list[Block] = [
        para(
            "Why these tasks fail is not computed yet. The surest come first. The upper bound is the exact ",
            "one-sided 95% limit for no pass in n repeats, 1 − 0.05^(1/n): with few repeats a task may well ",
            "be solvable.",
        )
    ]
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        blocks += _task_table(facts, surely_never(facts.tasks), never=True)
    return blocks


def evenly_split(tasks: list[TaskResult]) -> list[TaskResult]:
    """The sometimes-pass tasks, those with a shrunk rate nearest 50% first."""
    found = [task for task in tasks if task.bucket == "sometimes"]
    return sorted(
        found, key=lambda task: abs((task.shrunk if task.shrunk is not None else task.rate or 0.0) - 0.5)
    )


def surely_never(tasks: list[TaskResult]) -> list[TaskResult]:
    """The never-pass tasks, the most probable first."""
    found = [task for task in tasks if task.bucket == "never"]
    return sorted(found, key=lambda task: (-(task.p_bucket or 0.0), -task.n))


def upper_bound(n: int) -> float | None:
    """The rate that `n` failures in a row rule out at 95%."""
    from blade.stats import upper_bound_zero

    return upper_bound_zero(n) if n > 0 else None


def _task_table(facts: Facts, tasks: list[TaskResult], never: bool) -> list[Block]:
    if not facts.run.has_pass_rate:
        return [para("There is no pass rate, so there are no such tasks.")]
    if not tasks:
        return [para("No task.")]
    shown = tasks[:MAX_ROWS]
    rows = tuple(
        cells(
            _task_name(task),
            f"{words.percent(task.rate)} ({task.passed}/{task.n})",
            words.percent(task.shrunk),
            quantities.range_of(task.low, task.high),
            *([words.percent(upper_bound(task.n))] if never else []),
            words.probability(task.p_bucket),
            Code(repeats(task)),
            Code(" ".join(place(task.task, repeat) for repeat in to_read(task))),
        )
        for task in shown
    )
    bound = ("Upper 95% bound",) if never else ()
    header = ("Task", "Rate", "Shrunk rate", "95% interval", *bound, "P(bucket)", "Repeats", "Read")
    return [
        Table(header, rows, "lrrrrrll" if never else "lrrrrll"),
        *_left_out(len(tasks), len(rows), "task"),
        para(LEGEND),
        *_commands(facts.run, shown),
    ]


def _task_name(task: TaskResult) -> Line:
    key, name = hostile.line(task.task, 60), hostile.line(task.task_name, 60)
    return (Code(key), " ", name) if name and name != key else (Code(key),)


def repeats(task: TaskResult) -> str:
    """`1 0 1 1`."""
    signs = [SIGNS.get(repeat.outcome, "?") if repeat.outcome else "?" for repeat in task.repeats]
    if len(signs) > MAX_REPEATS:
        return " ".join(signs[:MAX_REPEATS]) + f" … ({len(signs)})"
    return " ".join(signs)


def to_read(task: TaskResult) -> list[int]:
    """A passing and a failing repeat, or the first two that failed."""
    passed = [r.repeat for r in task.repeats if r.outcome is Outcome.PASSED]
    unread = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)
    # Differing duplicates share a repeat; one command opens them all.
    failed = list(dict.fromkeys(r.repeat for r in task.repeats if r.outcome not in unread))
    return [*passed[:1], *failed[: 1 if passed else 2]]


def run_argument(run: Run) -> str | None:
    """What to type for this run: its file when it is one, else its name."""
    return hostile.argument(run.sources[0].path if len(run.sources) == 1 else run.name)


def commands(run: Run, tasks: list[TaskResult]) -> list[tuple[str, str]]:
    """`blade show` lines for the repeats worth reading, each with the outcome it shows."""
    found = []
    for task in tasks:
        outcomes = {r.repeat: r.outcome.value if r.outcome else "not judged" for r in task.repeats}
        for repeat in to_read(task):
            who, what = run_argument(run), hostile.argument(place(task.task, repeat))
            if who is not None and what is not None:
                found.append((f"blade show {who} {what}", outcomes[repeat].replace("_", " ")))
    return found


def _commands(run: Run, tasks: list[TaskResult]) -> list[Block]:
    found = commands(run, tasks[:TO_READ])
    return [para("Read next:"), Commands(tuple(found))] if found else []


def _left_out(total: int, shown: int, noun: str) -> list[Block]:
    left = words.count(total - shown, noun)
    return (
        [para(f"{left} more {'is' if total - shown == 1 else 'are'} in report.json.")]
        if total > shown
        else []
    )


def cross_model(runs: tuple[Facts, ...]) -> list[Block]:
    """The runs side by side, without a verdict."""
    if len(runs) < 2:
        return [para("There is one run, so there is nothing to compare." if runs else "No run was read.")]
    rows = tuple(
        cells(
            Code(hostile.line(facts.run.name, 80)),
            Code(hostile.line(facts.run.model, 80)) if facts.run.model else words.NONE,
            quantities.label(facts.score),
            quantities.with_interval(facts.score, facts.is_rate),
            quantities.n_of(facts.score),
            words.whole(facts.run.n_rollouts),
            words.whole(facts.run.coverage.repeats),
        )
        for facts in runs
    )
    header = ("Run", "Model", "Score is", "Score, 95% interval", "n", "Rollouts", "Repeats")
    blocks: list[Block] = [
        Table(header, rows, "lllrrrr"),
        para(
            "A paired verdict is not computed yet. The intervals are for each run alone: whether they ",
            "overlap does not say whether the difference is real, because the runs share tasks.",
        ),
    ]
    shared = set.intersection(*({task.task for task in facts.tasks} for facts in runs))
    n_all = len(set.union(*({task.task for task in facts.tasks} for facts in runs)))
    blocks.append(para(f"{words.count(len(shared), 'task key')} of {n_all:,} occur in every run."))
    if len({facts.run.score_name for facts in runs}) > 1:
        blocks.append(para("The scores are of different kinds and must not be compared as they stand."))
    return blocks


def recommendations(report: Report) -> list[Block]:
    """What to do, as far as it follows from what was measured."""
    return [
        para(
            "Interventions ranked by the score they could win need causes, which are not computed yet, ",
            "so this version recommends none.",
        )
    ]
