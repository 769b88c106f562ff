"""Say a report on one screen of a terminal."""

from __future__ import annotations

from textwrap import wrap

from blade import hostile
from blade.model import Level, Measure, Outcome, Recommendation, Report, RewardKind
from blade.report import advice, causes, quantities, reasons, words
from blade.report.cases import chosen
from blade.report.change import verdict as change_verdict
from blade.report.deepdives import evenly_split, surely_never
from blade.report.facts import Facts, facts
from blade.report.failures import grouped, plain_findings
from blade.report.places import commands
from blade.report.results import doubted
from blade.report.sections import Figure, short
from blade.report.summary import identity, missing_rows

SUFFIX = ".txt"
COLUMNS = 80
LINES = 45
HEALTH = 10  # lines of findings and flags
LEAST_HEALTH = 5  # lines, blank ones between the parts included
# Reasons and recommendations, and lines of each, until they fit: two in full tell more than three cut off.
ROOM = ((3, 4), (3, 3), (2, 4), (2, 3), (2, 2))
INDENT = 10
WEAKER = "One try per task: hard tasks and bad behaviour cannot be told apart."
BARS = {"always": "█", "sometimes": "▒", "never": "░", "missing": "·"}


def render(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """The summary: at most 45 lines of 80 columns, plain text without colour."""
    runs = facts(report)
    if not runs:
        found = ["No run was read."]
    elif len(runs) == 1:
        found = _one(report, runs[0])
    else:
        found = _several(report, runs)
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
    top = [*found, *_score(facts), *_lost(facts)]
    rest, ending = _rest(facts), _ending(report, facts)
    for told, most in ROOM:
        found = [*top, *_why(facts, told, most), *_fix_first(facts, told, most)]
        if len(found) + len(rest) + len(ending) + LEAST_HEALTH <= LINES:
            break
    found += [""] if len(found) > 8 else []
    found += [*rest, ""]
    found += _health(facts, max(1, min(HEALTH, LINES - len(found) - len(ending))))
    return found[: LINES - len(ending)] + ending


def _rest(facts: Facts) -> list[str]:
    """The tasks and rows behind the score."""
    run = facts.run
    found = _tasks(facts)
    found.append(_labelled("Coverage", short(identity(facts))))
    if n_bad := run.outcomes.get(Outcome.MALFORMED, 0):
        found.append(_labelled("", f"of the scored, {words.count(n_bad, 'row')} without a usable reward"))
    found += _missing(facts)
    if run.has_pass_rate:
        ended = [f"{n:,} {outcome.value.replace('_', ' ')}" for outcome, n in facts.run.outcomes.items() if n]
        found.append(_labelled("Rollouts", ", ".join(ended)))
    return found + _effort(facts)


def _lost(facts: Facts) -> list[str]:
    """The causes of the run as a whole, then what the score was lost to."""
    found: list[str] = []
    for cause in facts.run_causes[:2]:
        said = f"{cause.cause.value} {hostile.line(causes.text(cause), 300)}"
        found += [*_told("Run cause", said, 2), *_told("", short(causes.without(cause, facts)), 2)]
    if len(facts.run_causes) > 2:
        found.append(
            _labelled("", f"{words.count(len(facts.run_causes) - 2, 'more run cause')} in the report")
        )
    if not causes.is_explained(facts.losses):
        return found
    lost = causes.points(causes.total(facts.losses))
    found += _told("Lost", f"{lost}: {short(causes.split(facts)).replace(' points', '')}", 2)
    largest, clean = causes.largest(facts), facts.measure("clean_pass_at_1")
    if largest:
        found += _told("", f"most to {short(largest.told(facts))}, {causes.points(largest.lost)}", 2)
    n = short(quantities.n_of(clean)) if clean else ""
    return found + ([_labelled("Clean", f"{_short(clean, True)}, n = {n}")] if clean else [])


def _why(facts: Facts, told: int, most: int) -> list[str]:
    """The first reasons with their numbers; without any, the first leads, called so."""
    proved = reasons.reasons(facts)
    label = "Why" if proved else "Leads"
    found: list[str] = []
    for at, one in enumerate((proved or reasons.leads(facts))[:told]):
        said = hostile.line(short(reasons.sentence(one, facts), "`"), 400)
        found += _told(label if at == 0 else "", f"{at + 1}. {said}", most)
        rests = short(reasons.rests_on(one, facts, with_odds=False)).removeprefix("a ")
        found += _told("", f"   {rests}", 2)
    return found + (_told("" if found else "Why", WEAKER, 2) if reasons.is_weaker(facts) else [])


def _fix_first(facts: Facts, told: int, most: int) -> list[str]:
    """The first recommendations with what they could win; repairs of the measurement are marked."""
    found: list[str] = []
    for at, one in enumerate(facts.recommendations[:told]):
        found += _told("Fix first" if at == 0 else "", f"{at + 1}. {hostile.line(one.action, 300)}", most)
        rests = f"{hostile.line(one.kind, 20)}, {words.count(len(one.tasks), 'task')}"
        rests = "fixes the measurement, not the model" if one.is_measurement else rests
        found.append(_labelled("", f"   {_gain(facts, one)}; {rests}"))
    return found


def _gain(facts: Facts, one: Recommendation) -> str:
    """`+8.0 points (+2.7 to +24.5)`."""
    first, _, rest = short(advice.expected(facts, one)).partition(" points")
    return f"{first} points{rest.replace(' points', '')}"


def _told(label: str, text: str, most: int) -> list[str]:
    """`text` under its label, in at most so many lines; the last says when something is left out."""
    lines = wrap(text, COLUMNS - INDENT) or [""]
    if len(lines) > most:
        lines = [*lines[: most - 1], fitted(f"{lines[most - 1]} …", COLUMNS - INDENT)]
        lines[-1] = lines[-1] if lines[-1].endswith("…") else lines[-1] + "…"
    return [_labelled(label if at == 0 else "", line) for at, line in enumerate(lines)]


def _score(facts: Facts) -> list[str]:
    score = facts.score
    if score.value is None:
        return [_labelled("Score", "none: no rollout was scored")]
    said = f"{short(quantities.with_interval(score, facts.is_rate))}  {quantities.label(score)}"
    rows = facts.measure(f"{score.name}_micro")
    rests = f"n = {short(quantities.n_of(score))}" + (f", {words.count(rows.n, 'row')}" if rows else "")
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
    said += [f"mean reward {_value(mean, False)}"] if mean and facts.is_rate else []
    return [_labelled("", "; ".join(said))]


def _short(measure: Measure, is_rate: bool) -> str:
    return f"{quantities.label(measure)} {short(quantities.with_interval(measure, is_rate))}"


def _value(measure: Measure, is_rate: bool) -> str:
    return quantities.said(measure, measure.value, is_rate)


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
    text = f"as failed {_value(as_fail, facts.is_rate)}" if as_fail else ""
    if low and high:
        text += f"; bounds {_value(low, facts.is_rate)} to {_value(high, facts.is_rate)}"
    large = " (over 1 SE)" if missing_rows(facts, only_large=True) else ""
    return [_labelled("Missing", text + large)]


def _effort(facts: Facts) -> list[str]:
    ended = [facts.measure("output_tokens", slice=o.value) for o in (Outcome.PASSED, Outcome.FAILED)]
    found = [m for m in ended if m] or [m for m in [facts.measure("output_tokens", slice="all")] if m]
    parts = [f"{words.number(round(m.value or 0))} {m.slice} (n = {m.n:,})" for m in found]
    return [_labelled("Tokens", "mean output: " + ", ".join(parts))] if parts else []


def _health(facts: Facts, room: int) -> list[str]:
    """Findings, problems and warnings; those at the top in two lines while there is room."""
    flags, tasks = doubted(facts)
    urgent = [flag for flag in flags if flag.level is not Level.INFO]
    data = grouped(plain_findings(facts))
    told = [("!", found[0].summary + (f" ({len(found) - 1:,} more like it)" if len(found) > 1 else ""))
            for found in data.values()]  # fmt: skip
    told += [("!" if flag.level is Level.PROBLEM else "-", flag.text) for flag in urgent]
    if not told and not tasks:
        return [_labelled("Health", "no problem or warning")]
    n_problems = sum(flag.level is Level.PROBLEM for flag in urgent)
    said = f"{words.count(n_problems, 'problem')}, {words.count(len(urgent) - n_problems, 'warning')}"
    said += f", {words.count(len(tasks), 'task')} in doubt" if tasks else ""
    if data:
        said = f"{words.count(sum(len(found) for found in data.values()), 'finding')}, {said}"
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
            _labelled("Gaps", f"{words.count(len(report.gaps), 'limitation')} (see the report, -o DIR)")
        )
    told = [task for one in chosen(facts, facts.attributions)[:1] if (task := facts.task(one.task))]
    worth_reading = told or evenly_split(facts.tasks) or surely_never(facts.tasks)
    # A command that would be cut is no command.
    lines = [line for line, _ in commands(facts.run, worth_reading[:1]) if len(line) <= COLUMNS - INDENT]
    if not lines and facts.attributions:
        lines = ["the deep dives of the report: worked examples with quotations"]
    found += [_labelled("Read next" if at == 0 else "", line) for at, line in enumerate(lines[:2])]
    return found


def _paired(report: Report, room: int) -> list[str]:
    """The verdicts of the comparisons as far as there is room; without any, what would pair the runs."""
    if not report.comparisons:
        return ["Overlapping intervals do not decide: blade compare pairs the tasks."][:room]
    told = [line for one in report.comparisons for line in _hanging(change_verdict.in_short(one), 3)]
    if len(told) > room:
        told = [*told[: max(0, room - 1)], "… more verdicts in the report"][:room]
    return told


def _several(report: Report, runs: tuple[Facts, ...]) -> list[str]:
    """A table of runs; each number with its n and interval."""
    head = ["Run", "Score", "95% interval", "Tasks", "Rows", "A/S/N/M", "!"]
    rows = []
    for each in runs:
        run, parts = each.run, each.buckets
        split = (len(parts.always), len(parts.sometimes), len(parts.never), len(parts.missing))
        rows.append(
            [
                hostile.line(run.name, 60),
                _value(each.score, each.is_rate),
                short(quantities.interval(each.score, each.is_rate)).strip() or words.NONE,
                f"{each.score.n:,}",
                f"{run.n_rollouts:,}",
                "/".join(str(n) for n in split) if run.has_pass_rate else words.NONE,
                str(each.levels()[Level.PROBLEM] + len(plain_findings(each))),
            ]
        )
    causes_of = _lost_of(runs)
    room = LINES - 7 - min(6, 3 * len(report.comparisons)) - len(causes_of)
    room -= len(rows) > room
    widths = [max(len(row[at]) for row in [head, *rows[:room]]) for at in range(len(head))]
    widths[0] = max(8, min(widths[0], COLUMNS - sum(widths[1:]) - 2 * (len(head) - 1)))
    found = [f"BLADE  {words.count(len(runs), 'run')}", ""]
    for row in [head, *rows[:room]]:
        found.append("  ".join(padded(cell, widths[at], right=at > 0) for at, cell in enumerate(row)))
    if len(rows) > room:
        found.append(f"… {words.count(len(rows) - room, 'more run')} in the report")
    kinds = words.listing(sorted({hostile.line(each.run.score_name, 30) for each in runs}))
    found += causes_of
    found += ["", f"Score: {kinds}, mean over tasks. !: findings and health problems."]
    found.append("A/S/N/M: tasks that always, sometimes, never passed, or are missing.")
    return [*found, *_paired(report, LINES - len(found))]


def _lost_of(runs: tuple[Facts, ...]) -> list[str]:
    """A few lines on what each run lost its score to and what to do first, run causes before all else."""
    found: list[str] = []
    for each in sorted(runs, key=lambda one: not one.run_causes)[:6]:
        name = hostile.line(each.run.name, 30)
        told: list[str] = []
        cause, fix = next(iter(each.run_causes), None), next(iter(each.recommendations), None)
        if cause is not None:
            told.append(f"{name}: {cause.cause.value} {hostile.line(causes.text(cause), 240)}")
        if causes.is_explained(each.losses):
            told.append(f"{name}: lost {short(causes.split(each, shown_zero=False))}")
        if fix is not None:
            told.append(f"{name}: first {hostile.line(fix.action, 240)} ({_gain(each, fix)})")
        found += [line for text in told for line in _hanging(text, 2 if len(runs) <= 3 else 1)]
    weaker = sum(reasons.is_weaker(each) for each in runs)
    once = [f"{words.count(weaker, 'run')} with one try per task: causes are weaker there."] if weaker else []
    return ["", *found[:18], *once] if found or once else []


def _hanging(text: str, most: int) -> list[str]:
    """`text` in at most so many lines, those after the first set in."""
    lines = wrap(text, COLUMNS - 2) or [""]
    if len(lines) > most:
        lines = [*lines[: most - 1], fitted(" ".join(lines[most - 1 :]), COLUMNS - 2)]
    return [line if at == 0 else f"  {line}" for at, line in enumerate(lines)]
