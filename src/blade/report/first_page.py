"""Write the first page: can the score be trusted, where the points went, what to fix first, what to look at.

The same rows of it stand on the terminal (`render`) and open report.md and report.html (`blocks`); `blade health`
prints its first row at length (`health`).
"""

from __future__ import annotations

from textwrap import wrap
from typing import NamedTuple

import msgspec

from blade import hostile, number_format
from blade.model import Cause, Group, Level, Outcome, Recommendation, Report, Slice
from blade.report import printed_names, queried_numbers, row_addresses, terminal
from blade.report.blocks import Block, Bullets, Code, Commands, Line, Para, Span, Strong, Table, para
from blade.report.phrases import code, joined, line, paragraph, short, table
from blade.report.queried_numbers import count, num, number, said, whole
from blade.report.run_facts import Facts, facts
from blade.report.terminal import labelled, text, wrapped

TRUSTED, POINTS, FIX, LOOK, WHERE, HAPPENED = LABELS = (
    "Can the score be trusted?", "Where the points went", "Fix first", "Look at", "On which tasks", "What happened",
)  # fmt: skip
MAX_TRUST = 4
MAX_FIXES = 3
MAX_SLICES, MAX_VALUES = 3, 5  # fields, and values of one
MAX_LOOK = 3
ANSWERS = {"alarm": "No.", "warning": "With care.", "note": "Yes, with a note:"}  # the gravest first
SOUND = "Yes: nothing in the rows speaks against it."
LEVEL = 0.05
SENTENCE = 700


class Row(NamedTuple):
    """One question of the first page with its answer."""

    label: str
    block: Bullets | Commands | Table
    lead: Line = ()  # the answer in a word
    legend: str = ""  # what the codes in a table stand for


def rows(facts: Facts) -> list[Row]:
    """What the first page of a run says under its headline."""
    answer, reasons = trust(facts)
    page = [Row(TRUSTED, Bullets(tuple(reasons)), answer)]
    if facts.groups or facts.unexplained is not None:
        page.append(Row(POINTS, points(facts), legend=legend(facts)))
    if where := slices(facts):
        page.append(Row(WHERE, Bullets(tuple(where))))
    if facts.groups:
        page.append(Row(FIX, Bullets(tuple(fixes(facts)))))
    if commands := look(facts):
        page.append(Row(LOOK, Commands(tuple(commands))))
    return page


# ---- What each row says --------------------------------------------------------------------------


def headline(facts: Facts) -> Line:
    """The score with what it rests on."""
    run, score = facts.run, facts.score
    name, model = hostile.line(run.name, 60), hostile.line(run.model or "", 60)
    who: Line = (Code(name),) if not model or model in name else line("{} ({})", Code(model), Code(name))
    on: Line = (*who, *((" on ", code(run.benchmark, 60)) if run.benchmark else ()))
    if score.value is None or run.score is None:
        return (*on, ": no score, because no rollout was scored.")
    value, interval, tries = printed_names.value(score, facts.is_rate, True), _interval(facts), run.coverage.repeats
    each: Line = ("one try each",) if tries == 1 else (whole(tries, facts.counted("repeats")), " tries each")
    bar: Line = ()  # what passes, where it is not simply a reward of 1
    if run.has_pass_rate and run.pass_threshold != 1:
        bar = line("; a rollout passes at a reward of {}", number(run.pass_threshold, facts.counted("pass_threshold")))
    tasks = count(run.n_tasks, "task", facts.n_tasks)
    if score.n < run.n_tasks:
        tasks = line("{} of {} scored", whole(score.n, printed_names.query(score, "n")), tasks)
    rests: Line = (*tasks, ", ", *each, *bar)
    if not facts.is_rate:
        kind = " (partial credit)" if 0 <= score.value <= 1 else ""
        return line("{}: mean reward {}{}{}; {}", on, value, kind, interval, rests)
    passed, masked = (run.outcomes.get(outcome, 0) for outcome in (Outcome.PASSED, Outcome.MASKED))
    unmasked = ("not masked",) if masked else ()
    n = run.n_rollouts - masked
    # tasks count alike, so with unequal numbers of tries the score is no plain ratio of rollouts
    is_ratio = abs(passed / n - score.value) < 5e-4 if n else True
    return line(
        "{}: {} passed{} ({} of {} rollouts{}); {}",
        on, value, "" if is_ratio else " on average over tasks",
        whole(passed, queried_numbers.measure("count", run.name, "passed", *unmasked)),
        whole(n, queried_numbers.measure("count", run.name, *unmasked)), interval, rests,
    )  # fmt: skip


def _interval(facts: Facts) -> Line:
    """The interval of the score; over the tasks that share a prompt, where the index does not tell tasks apart."""
    by_prompt = next((m for m in facts.measures if m.name == "pass_at_k" and m.k == 1 and m.slice is not None), None)
    score = by_prompt or facts.score
    if score.low is None or score.high is None:
        return ()
    low, high = (printed_names.value(score, facts.is_rate, part=end) for end in ("low", "high"))
    return line(", 95% CI {}{} to {}", "by prompt " if by_prompt else "", low, high)


def trust(facts: Facts) -> tuple[Line, list[Line]]:
    """The answer in a word, and its reasons, the gravest first."""
    entries = sorted(facts.trust, key=lambda entry: list(ANSWERS).index(entry.level))
    answer = ANSWERS[entries[0].level] if entries else SOUND
    if facts.score.value is None and answer != ANSWERS["alarm"]:
        answer = "There is none."
    reasons: list[Line] = []
    for entry in entries[:MAX_TRUST]:
        label = f" [{printed_names.called(entry.label)}]" if entry.label is not None and entry.level == "alarm" else ""
        reasons.append((facts.cited("trust", entry).said("text", SENTENCE), *((label,) if label else ())))
    return (Strong(answer),), reasons


def points(facts: Facts) -> Table:
    """The failure groups with the points they cost and how many passes show the same; the unexplained last."""
    rest = facts.unexplained
    lost = sum(group.points for group in facts.groups) + (rest.points if rest is not None else 0.0)

    def size(value: float, query: str) -> Span:
        return num(f"{number_format.lost(value)} points", value, f"{query}.points") if lost else number_format.NONE

    rows: list[tuple[Span | Line, ...]] = []
    for of in facts.listed("groups"):
        failures, passes = of.count("rows", "failure"), count(of.noun.passed_rows, "pass", f"{of.query}.passed_rows", "passes")
        rows.append((size(of.noun.points, of.query), of.said("name", 120), of.noun.label.value, failures, passes))
    if rest is not None:
        of = facts.cited("unexplained", rest)
        rows.append((size(rest.points, of.query), "unexplained", "", of.count("rows", "failure"), ""))
    return table("Lost|Failure group|Label|Failures|Passes with it", "rllrr", rows)


def legend(facts: Facts) -> str:
    """The labels of the groups, spelled out."""
    labels = dict.fromkeys(group.label for group in facts.groups if group.label is not Cause.UNDETERMINED)
    return "; ".join(f"{label.value}: {printed_names.NAMES[label]}" for label in labels)


def slices(facts: Facts) -> list[Line]:
    """Kinds of task that pass far less often than the others: the values of a field, each with its rate."""
    fields: dict[str, list[Slice]] = {}
    for piece in facts.slices:
        if piece.p_adjusted is not None and piece.p_adjusted <= LEVEL and piece.is_worse:
            fields.setdefault(piece.field, []).append(piece)
    lines: list[Line] = []
    for field, pieces in list(fields.items())[:MAX_SLICES]:
        parts: list[Line] = []
        for piece in sorted(pieces[:MAX_VALUES], key=lambda piece: piece.pass_rate or 0.0):
            of = facts.cited("slices", piece)
            # a class of expected answers is a description, any other value is as the rows have it
            is_class = piece.value.startswith(("a ", "several ")) and " " in field
            value = piece.value if is_class else code(piece.value, 60)
            parts.append(line("{}: {} pass ({})", value, of.percent("pass_rate"), of.count("n_tasks", "task")))
        name: Line = (f"{field} ",) if " " in field else (code(field, 60), " = ")
        rest: Line = (", the others ", facts.cited("slices", pieces[0]).percent("rest")) if len(pieces) == 1 else ()
        lines.append((*name, *joined(parts, ", ", ", "), *rest))
    return lines


def fixes(facts: Facts) -> list[Line]:
    """What to change, each with what it could win."""
    return [
        (*printed_names.ended((of.said("action", 400),)), " ", *gain(facts, of.noun))
        for of in facts.listed("recommendations", MAX_FIXES)
    ] or [("Nothing: no failure is explained by something that can be changed.",)]


def gain(facts: Facts, fix: Recommendation) -> Line:
    """The expected gain, or its upper bound, called so."""
    query = facts.entry("recommendations", fix)
    if fix.gain is not None:
        point, low, high = (
            num(number_format.points(getattr(fix.gain, name)), getattr(fix.gain, name), f"{query}.gain.{name}")
            for name in ("point", "low", "high")
        )
        return line("Expected gain {} (95% interval {} to {}).", point, low, high)
    if fix.is_measurement:
        return ("(Fixes the measurement, not the model.)",)
    if fix.most <= 0:
        return ()
    most = num(number_format.size(fix.most), fix.most, f"{query}.most")
    return line("(Gain not identified; at most {}.)", most)


def look(facts: Facts) -> list[tuple[str, str]]:
    """Commands that show an example of the first groups, each with why it is worth it."""
    commands: list[tuple[str, str]] = []
    for group in facts.groups[:MAX_LOOK]:
        task, _, repeat = group.examples[0].rpartition("/")
        commands += row_addresses.show(facts.run, task, int(repeat), hostile.line(group.name, 60))
    return commands


# ---- As blocks of a page -------------------------------------------------------------------------


def blocks(facts: Facts) -> list[Block]:
    """The first page of one run, for Markdown and HTML."""
    page: list[Block] = [Para(headline(facts))]
    for row in rows(facts):
        lead = (" ", *row.lead) if row.lead else (f" ({row.legend})",) if row.legend else ()
        page.append(para(Strong(row.label), *lead))
        page += [row.block] if not isinstance(row.block, Bullets) or row.block.items else []
    return page


def group_blocks(facts: Facts, group: Group) -> list[Block]:
    """One failure group with its evidence."""
    of = facts.cited("groups", group)
    against: Line = ()
    if group.against:
        every = said("; ".join(group.against), f"{of.query}.against[0]", written=group.against[0])
        against = line(" Against it: {}.", every)
    page: list[Block] = [
        paragraph(
            "{} {}: {}.{} Fix: {} Rollouts: {}.",
            of.said("text", SENTENCE), group.confidence.value.capitalize(), of.said("why_label"), against, of.said("fix"),
            joined([(code(name, 60),) for name in group.examples]),
        )
    ]  # fmt: skip
    if group.quote is not None:
        page.append(row_addresses.quotation(group.quote, row_addresses.side(facts, group.quote)))
    return page


# ---- On a terminal -------------------------------------------------------------------------------

NAME = 30  # cells of a run's name in the table of several runs
SHARED = 6  # groups of several runs that are told once for all of them


def render(report: Report) -> str:
    """The first page of the runs as plain text for a terminal."""
    runs, width = facts(report), terminal.columns()
    if not runs:
        return terminal.page(["No run was read."])
    lines = _one(runs[0], width) if len(runs) == 1 else _several(report, runs, width)
    return terminal.page([*lines, *_ending(report, width)])


def painted(page: str) -> str:
    """The page with colour."""
    return terminal.painted(page, LABELS)


def _one(facts: Facts, width: int) -> list[str]:
    lines = [*wrapped(text(headline(facts)), width), ""]
    for row in rows(facts):
        block, notes = row.block, [row.legend] if row.legend else []
        if row.label == FIX:
            lines += labelled(HAPPENED, _what_happened(facts), width)
        if isinstance(block, Table):
            if not facts.groups and not (facts.unexplained is not None and facts.unexplained.rows):
                continue
            cut = tuple(((text(cell[0]).removesuffix(" points"),), *cell[1:]) for cell in block.rows)
            block = Table(block.header, cut, block.align)
            if any(group.passed_rows for group in facts.groups):
                notes.append("passes: passing rollouts that show the same")
        lines += terminal.laid_out(row.label, block, width, row.lead, "; ".join(notes))
    return lines


def _what_happened(facts: Facts) -> list[str]:
    """What the first groups are, each with words from one of its own rows."""
    above = {entry.text for entry in facts.trust[:MAX_TRUST]}
    texts = []
    for rank, group in enumerate(facts.groups[:3], 1):
        is_above, quote = group.text in above, ""
        sentence = f"{hostile.line(group.name, 120)} (see above)." if is_above else hostile.line(group.text, SENTENCE)
        if group.quote is not None and group.quote.quote:
            address = hostile.line(f"{group.quote.task}/{group.quote.repeat}", 60)
            quote = f' In {address}: "{hostile.line(group.quote.quote, 160)}"'
        texts.append(f"{rank}. {sentence}{quote}")
    return texts


def _several(report: Report, runs: tuple[Facts, ...], width: int) -> list[str]:
    """One line for each run, then the groups that they share, then the verdicts of their comparison."""
    from blade.report import comparison_verdict

    header = ["Run", "Score", "95% interval", "Tasks", "Rows", "Trust", "Largest group"]
    lines = [number_format.count(len(runs), "run"), ""]
    lines += [*terminal.aligned([header, *map(_line, runs)], "lrrrrll", width, 6), ""]
    alarms = [
        f"{hostile.line(run.run.name, 40)}: {entry.label.value if entry.label else ''} {hostile.line(entry.text, SENTENCE)}"
        for run in runs for entry in run.trust if entry.level == "alarm"
    ]
    first = [f"{hostile.line(run.run.name, 40)}: {text(fixes(run)[0])}" for run in runs if run.groups]
    for label, texts in (("Tasks", _matrix(report)), (POINTS, _shared(runs)), (TRUSTED, alarms), (FIX, first)):
        lines += labelled(label, texts, width)
    for comparison in report.comparisons:
        lines += ["", *wrapped(comparison_verdict.in_short(comparison), width)]
    return lines


def _line(run: Facts) -> list[str]:
    """One run in the table of several."""
    largest = next(iter(run.groups), None)
    return [
        terminal.fitted(hostile.line(run.run.name, 60), NAME),
        printed_names.formatted(run.score, run.score.value, run.is_rate),
        short(printed_names.interval(run.score, run.is_rate)).strip() or number_format.NONE,
        f"{run.score.n:,}", f"{run.run.n_rollouts:,}",
        text(trust(run)[0]).partition(":")[0].partition(",")[0].rstrip("."),
        f"{largest.label.value} {hostile.line(largest.name, 60)}" if largest else number_format.NONE,
    ]  # fmt: skip


def _matrix(report: Report) -> list[str]:
    """What the runs together say of their tasks."""
    if (matrix := report.task_matrix) is None:
        return []
    passed = f"{len(matrix.never_passed):,} passed by no run, {len(matrix.passed_by_one):,} by one run only."
    texts = [f"{len(matrix.tasks):,} tasks in common: {passed}"]
    kinds = {
        "different models agree against the expected answer (review these golds)": matrix.gold_to_review,
        "the runs expect different answers": matrix.gold_differs,
        "runs that do not belong to these tasks": matrix.misfit_runs,
    }
    for what, names in kinds.items():
        if names:
            shown = ", ".join(hostile.line(name, 40) for name in names[:8])
            texts.append(f"{len(names):,}: {what}: {shown}{' …' if len(names) > 8 else ''}")
    return texts


def _shared(runs: tuple[Facts, ...]) -> list[str]:
    """The groups of all runs by name, with the points they cost in each."""
    groups: dict[str, dict[str, Group]] = {}
    for one_run, group in ((each, group) for each in runs for group in each.groups):
        groups.setdefault(group.name, {})[one_run.run.name] = group
    texts = []
    for name, of_runs in sorted(groups.items(), key=lambda item: -sum(group.points for group in item[1].values()))[:SHARED]:
        parts = ", ".join(f"{hostile.line(run, 30)} {100 * group.points:.1f}" for run, group in of_runs.items())
        texts.append(f"{hostile.line(name, 90)} [{printed_names.called([*of_runs.values()][-1].label)}]: {parts}")
    return texts


def _ending(report: Report, width: int) -> list[str]:
    """What was skipped and what cannot be said."""
    texts = []
    if report.skipped_total:
        texts.append(f"{number_format.count(report.skipped_total, 'line or file', 'lines or files')} could not be read.")
    if report.gaps:
        where = "see the report" if " -o " in report.made_by.get("command", "") else "see the report: -o DIR"
        texts.append(f"{number_format.count(len(report.gaps), 'limitation')} ({where}).")
    return ["", *wrapped(" ".join(texts), width)] if texts else []


# ---- The trust at length: `blade health` ---------------------------------------------------------

HEALTH_SCHEMA = "blade.health/2"
LEVEL_LABEL = 9  # columns of the levels on the left
ENTRY = 1200  # characters of one entry
LEVELS = {Level.PROBLEM: "problem", Level.WARNING: "warning", Level.INFO: "note"}


def health(report: Report) -> str:
    """The trust in each run and the flags of its columns as plain text, the gravest first."""
    width = terminal.columns()
    lines = [line for run in facts(report) for line in (*_health(run, width), "")]
    lines.append("`blade show RUN TASK/REPEAT` opens a rollout; --json adds the query that selects the rows.")
    return terminal.page(lines)


def _health(run: Facts, width: int) -> list[str]:
    def entry(level: str, text: str) -> list[str]:
        return terminal.hung(level, wrap(text, width - LEVEL_LABEL, break_on_hyphens=False) or [""], LEVEL_LABEL)

    lines = [*wrap(short(headline(run), "`"), width), f"{TRUSTED} {_answer(run)}"]
    for reason in run.trust:
        label = f"{printed_names.called(reason.label)}; " if reason.label is not None else ""
        rows = number_format.count(reason.rows, "row")
        lines += entry(reason.level, f"{hostile.line(reason.text, ENTRY)} [{label}{rows}]")
        lines += entry("", f"Fix: {hostile.line(reason.fix, ENTRY)}") if reason.fix else []
    lines += ["", "Flags of the columns"]
    for flag in run.health:
        lines += entry(LEVELS[flag.level], hostile.line(flag.text, ENTRY))
        for quoted in [quoted for quoted in flag.evidence if quoted.quote][:1]:
            where = f"step {quoted.step}" if quoted.step is not None else hostile.line(quoted.field or "", 40)
            address = f"{hostile.line(row_addresses.place(quoted.task, quoted.repeat), 40)}, {where}"
            lines.append(f"{'':<{LEVEL_LABEL}}{address}: {hostile.line(quoted.quote or '', 210)!r}")
    return lines if run.health else [*lines, "None."]


def _answer(run: Facts) -> str:
    """Answer in a word; a grave flag of the columns is reason for care as well."""
    is_flagged = any(flag.level is not Level.INFO for flag in run.health)
    if is_flagged and not any(entry.level in ("alarm", "warning") for entry in run.trust):
        return "With care, see the flags below."
    return short(trust(run)[0])


def health_json(report: Report) -> str:
    """The same for a program: for each run its score, the trust in it, and the flags of its columns."""
    from blade.report.report_json import indented, number, values

    runs = [
        {
            "name": run.run.name,
            "score_name": run.run.score_name,
            "score": number(run.run.score),
            "n_tasks": run.run.n_tasks,
            "n_rollouts": run.run.n_rollouts,
            "trust": values(run.trust),
            "flags": [
                {**msgspec.to_builtins(flag), "value": number(flag.value), "n": int(flag.n)} for flag in run.health
            ],
        } for run in facts(report)
    ]
    return indented({"schema": HEALTH_SCHEMA, "made_by": dict(report.made_by), "runs": runs})
