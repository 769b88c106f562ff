"""Say a report on one screen of a terminal."""

from __future__ import annotations

from textwrap import wrap

from blade import hostile
from blade.model import Level, Measure, Outcome, Report, RewardKind
from blade.report import quantities, words
from blade.report.deepdives import commands, evenly_split, surely_never
from blade.report.facts import Facts, facts
from blade.report.sections import Figure
from blade.report.summary import identity, missing_rows

SUFFIX = ".txt"
COLUMNS = 80
LINES = 24
INDENT = 10
BARS = {"always": "█", "sometimes": "▒", "never": "░", "missing": "·"}


def render(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """The summary: at most 24 lines of 80 columns, plain text without colour."""
    runs = facts(report)
    if not runs:
        found = ["No run was read."]
    elif len(runs) == 1:
        found = _one(report, runs[0])
    else:
        found = _several(runs)
    return "\n".join(fitted(text, COLUMNS).rstrip() for text in found[:LINES]) + "\n"


def fitted(text: str, columns: int) -> str:
    """`text`, cleaned, in at most `columns` cells of a terminal; wide characters take two."""
    from rich.cells import cell_len, set_cell_size

    text = hostile.lines(text).replace("\n", " ").replace("\t", " ")
    return text if cell_len(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"


def padded(text: str, columns: int, right: bool = False) -> str:
    from rich.cells import cell_len

    text = fitted(text, columns)
    space = " " * (columns - cell_len(text))
    return space + text if right else text + space


def _labelled(label: str, text: str) -> str:
    return f"{label:<{INDENT}}{text}"


def _one(report: Report, facts: Facts) -> list[str]:
    run = facts.run
    about = [
        hostile.line(text, 30)
        for text in (
            f"model {run.model}" if run.model else "",
            f"benchmark {run.benchmark}" if run.benchmark else "",
        )
        if text
    ]
    found = [f"BLADE  {' · '.join([hostile.line(run.name, 40), *about])}", ""]
    found += _score(facts)
    found += _tasks(facts)
    found.append(_labelled("Coverage", identity(facts)))
    if n_bad := run.outcomes.get(Outcome.MALFORMED, 0):
        found.append(_labelled("", f"of the scored, {words.count(n_bad, 'row')} without a usable reward"))
    found += _missing(facts)
    if run.has_pass_rate:
        ended = [f"{n:,} {outcome.value.replace('_', ' ')}" for outcome, n in facts.run.outcomes.items() if n]
        found.append(_labelled("Rollouts", ", ".join(ended)))
    found += _effort(facts)
    ending = _ending(report, facts)
    found.append("")
    found += _health(facts, LINES - len(found) - len(ending))
    return found + ending


def _score(facts: Facts) -> list[str]:
    score = facts.score
    if score.value is None:
        return [_labelled("Score", "none: no rollout was scored")]
    said = f"{quantities.with_interval(score, facts.is_rate)}  {quantities.label(score)}"
    rows = facts.measure(f"{score.name}_micro")
    rests = f"n = {quantities.n_of(score)}" + (f", {words.count(rows.n, 'row')}" if rows else "")
    method = f"95%: {quantities.method(score)}" if score.low is not None else quantities.method(score)
    found = [_labelled("Score", f"{said}, {rests}"), _labelled("", method)]
    found += _passing(facts)
    more = [m for m in (facts.at_most_k("pass_at_k"), facts.at_most_k("pass_hat_k")) if m and m.k and m.k > 1]
    if not facts.run.has_pass_rate:
        more = [
            m for m in (facts.at_most_k("best_of_k"), facts.at_most_k("worst_of_k")) if m and m.k and m.k > 1
        ]
    if more:
        found.append(_labelled("Repeats", "   ".join(_short(m, facts.is_rate) for m in more)))
    return found


def _passing(facts: Facts) -> list[str]:
    """What passes, where it is not simply a reward of 1 among rewards of 0 and 1."""
    run = facts.run
    if run.reward_kind in (RewardKind.BINARY, RewardKind.CONSTANT) and run.pass_threshold == 1:
        return []
    mean = facts.measure("mean_reward")
    said = [f"rewards are {run.reward_kind.value}"]
    said += [f"a row passes at {words.number(run.pass_threshold)}"] if run.has_pass_rate else []
    said += [f"mean reward {quantities.value(mean, False)}"] if mean and facts.is_rate else []
    return [_labelled("", "; ".join(said))]


def _short(measure: Measure, is_rate: bool) -> str:
    return f"{quantities.label(measure)} {quantities.with_interval(measure, is_rate)}"


def _tasks(facts: Facts) -> list[str]:
    if not facts.run.has_pass_rate:
        return [
            _labelled("Tasks", f"{facts.run.n_tasks:,}; no pass rate, so no buckets (see --pass-threshold)")
        ]
    counts = {name: len(getattr(facts.buckets, name)) for name in BARS}
    said = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    return [
        _labelled("Tasks", f"{facts.run.n_tasks:,}: {said}"),
        _labelled("", bar(counts, COLUMNS - INDENT - 2)),
    ]


def bar(counts: dict[str, int], columns: int) -> str:
    """The buckets as one bar; whatever is not empty gets at least one cell."""
    total = sum(counts.values())
    if not total:
        return ""
    cells = {name: max(1, n * columns // total) if n else 0 for name, n in counts.items()}
    largest = max(cells, key=lambda name: cells[name])
    cells[largest] += columns - sum(cells.values())
    return "".join(BARS[name] * n for name, n in cells.items())


def _missing(facts: Facts) -> list[str]:
    if not missing_rows(facts, only_large=False):
        return []
    as_fail, low, high = (facts.measure(name) for name in ("missing_as_fail", "bound_low", "bound_high"))
    text = f"as failed {quantities.value(as_fail, facts.is_rate)}" if as_fail else ""
    if low and high:
        text += f"; bounds {quantities.value(low, facts.is_rate)} to {quantities.value(high, facts.is_rate)}"
    large = " (over 1 SE)" if missing_rows(facts, only_large=True) else ""
    return [_labelled("Missing", text + large)]


def _effort(facts: Facts) -> list[str]:
    ended = [facts.measure("output_tokens", slice=o.value) for o in (Outcome.PASSED, Outcome.FAILED)]
    found = [m for m in ended if m] or [m for m in [facts.measure("output_tokens", slice="all")] if m]
    parts = [f"{words.number(round(m.value or 0))} {m.slice} (n = {m.n:,})" for m in found]
    return [_labelled("Tokens", "mean output: " + ", ".join(parts))] if parts else []


def _health(facts: Facts, room: int) -> list[str]:
    """Findings, problems and warnings; those at the top in two lines while there is room."""
    urgent = [flag for flag in facts.health if flag.level is not Level.INFO]
    told = [("!", finding.summary) for finding in facts.findings]
    told += [("!" if flag.level is Level.PROBLEM else "-", flag.text) for flag in urgent]
    if not told:
        return [_labelled("Health", "no problem or warning")]
    levels = facts.levels()
    n_problems, n_warnings = levels[Level.PROBLEM], levels[Level.WARNING]
    said = f"{words.count(n_problems, 'problem')}, {words.count(n_warnings, 'warning')}"
    if facts.findings:
        said = f"{words.count(len(facts.findings), 'finding')}, {said}"
    shown = told[: max(0, room - 1)]
    if len(shown) < len(told):
        said += f" ({len(shown)} shown, all in the report)"
    spare = room - 1 - len(shown)
    lines: list[str] = []
    for mark, text in shown:
        found = wrap(f"{mark} {hostile.line(text, 4 * COLUMNS)}", COLUMNS - 4)
        if len(found) > 1 and spare > 0:
            spare -= 1
            lines += [f"  {found[0]}", f"    {' '.join(found[1:])}"]
        else:
            lines.append(f"  {' '.join(found)}")
    return [_labelled("Health", said), *lines]


def _ending(report: Report, facts: Facts) -> list[str]:
    """What was skipped, what cannot be said, and what to read next."""
    found: list[str] = []
    if report.skipped_total:
        found.append(
            _labelled("Skipped", words.count(report.skipped_total, "line or file", "lines or files"))
        )
    if report.gaps:
        found.append(
            _labelled("Gaps", f"{words.count(len(report.gaps), 'thing')} this report cannot say, named in it")
        )
    worth_reading = evenly_split(facts.tasks) or surely_never(facts.tasks)
    # A command that would be cut is no command.
    lines = [line for line, _ in commands(facts.run, worth_reading[:1]) if len(line) <= COLUMNS - INDENT]
    found += [_labelled("Read next" if at == 0 else "", line) for at, line in enumerate(lines[:2])]
    return found


def _several(runs: tuple[Facts, ...]) -> list[str]:
    """A table of runs; each number with its n and interval."""
    head = ["Run", "Score", "95% interval", "Tasks", "Rows", "A/S/N/M", "!"]
    rows = []
    for each in runs:
        run, parts = each.run, each.buckets
        split = (len(parts.always), len(parts.sometimes), len(parts.never), len(parts.missing))
        rows.append(
            [
                hostile.line(run.name, 60),
                quantities.value(each.score, each.is_rate),
                quantities.interval(each.score, each.is_rate) or words.NONE,
                f"{each.score.n:,}",
                f"{run.n_rollouts:,}",
                "/".join(str(n) for n in split) if run.has_pass_rate else words.NONE,
                str(each.levels()[Level.PROBLEM] + len(each.findings)),
            ]
        )
    room = LINES - 7 - (len(rows) > LINES - 7)
    widths = [max(len(row[at]) for row in [head, *rows[:room]]) for at in range(len(head))]
    widths[0] = max(8, min(widths[0], COLUMNS - sum(widths[1:]) - 2 * (len(head) - 1)))
    found = [f"BLADE  {words.count(len(runs), 'run')}", ""]
    for row in [head, *rows[:room]]:
        found.append("  ".join(padded(cell, widths[at], right=at > 0) for at, cell in enumerate(row)))
    if len(rows) > room:
        found.append(f"… {words.count(len(rows) - room, 'more run')} in the report")
    kinds = words.listing(sorted({hostile.line(each.run.score_name, 30) for each in runs}))
    found += ["", f"Score: {kinds}, mean over tasks. !: findings and health problems."]
    found.append("A/S/N/M: tasks that always, sometimes, never passed, or are missing.")
    found.append("No paired verdict is computed yet: overlapping intervals do not decide.")
    return found
