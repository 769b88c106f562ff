"""Write the first page: the score and what it rests on, as an expert would say it."""

from __future__ import annotations

from blade import hostile
from blade.model import Cause, Finding, Level, Measure, Report, RewardKind
from blade.report import advice, causes, places, quantities, reasons, words
from blade.report.facts import Facts
from blade.report.failures import grouped, plain_findings
from blade.report.results import doubted
from blade.report.sections import (
    Badge,
    Block,
    Bullets,
    Code,
    Line,
    Para,
    Strong,
    Table,
    Tile,
    Tiles,
    cells,
    para,
)

MAX_FLAGS = 8  # flags named in the summary; the others stand with the aggregate results
TONES = {Level.PROBLEM: "bad", Level.WARNING: "warning", Level.INFO: "quiet"}


def executive_summary(report: Report, runs: tuple[Facts, ...]) -> list[Block]:
    """The answer first, then what it rests on, then what is wrong with it."""
    if not runs:
        return [para("No run was read, so there is nothing to summarise.")]
    blocks: list[Block] = []
    if len(runs) == 1:
        first, *others = _paragraphs(runs[0])
        blocks += [*_run_causes(runs[0]), first, _tiles(runs[0]), *why(runs[0]), *others, *_flags(runs)]
    else:
        for facts in runs:
            blocks += [
                Para((Code(hostile.line(facts.run.name, 80)), ": ", *one.line)) for one in _run_causes(facts)
            ]
        blocks += [*_overview(runs), *weaker(runs), *_flags(runs)]
    blocks.append(_cannot_say(report))
    return blocks


def _run_causes(facts: Facts) -> list[Para]:
    """What is the matter with the run as a whole, before its score is read."""
    return [Para(causes.told(cause, facts)) for cause in facts.run_causes]


def why(facts: Facts) -> list[Block]:
    """Where the score went, what goes with failing, and what to do first."""
    lost, fix = ([Para(line)] if line else [] for line in (where_lost(facts), first_fix(facts)))
    return [*lost, *reasons.summary(facts), *weaker((facts,)), *fix]


def where_lost(facts: Facts) -> Line:
    """The losses by who answers for them, the score without the measurement's, and the largest mode."""
    if not causes.is_explained(facts.losses):
        lost = facts.run.score is not None and facts.run.score < 1 and bool(facts.losses)
        return (Strong("Where the score went: "), "no lost point was traced to a cause.") if lost else ()
    parts = causes.split(facts.losses).replace(" points", "", 1)
    said = f"{causes.points(causes.total(facts.losses))} are lost, {parts}."
    largest = causes.largest(facts)
    if largest is not None:
        said += f" The largest failure mode is {largest.told(facts)}: {causes.points(largest.lost)}."
    return (Strong("Where the score went: "), said + causes.clean(facts))


def weaker(runs: tuple[Facts, ...]) -> list[Block]:
    """That causes are weaker where a run has one repeat per task, said once for all such runs."""
    found = [facts.run.name for facts in runs if reasons.is_weaker(facts)]
    if not found:
        return []
    of: Line = (" of ", *places.names(found)) if len(runs) > 1 else ()
    return [
        para(
            Strong("One repeat per task: "),
            "the causes",
            *of,
            " are weaker for it. No task has a passing and a failing rollout to set side by side, so what "
            "goes with failing may only go with hard tasks.",
        )
    ]


def first_fix(facts: Facts) -> Line:
    """The first recommendation with what it could win."""
    found = next((one for one in facts.recommendations if not one.is_measurement), None)
    found = found or next(iter(facts.recommendations), None)
    if found is None:
        return ()
    lead = "Repair the measurement first: " if found.is_measurement else "What to do first: "
    return (
        Strong(lead),
        *causes.sentence(found.action, 400),
        f" Expected gain {advice.expected(found)} of score over {words.count(len(found.tasks), 'task')}.",
    )


def _paragraphs(facts: Facts) -> list[Para]:
    first = [*headline(facts), *missing_rows(facts, only_large=True)]
    found = [Para(tuple(first)), *_buckets(facts), _coverage(facts)]
    smaller = missing_rows(facts, only_large=False)
    if smaller and not missing_rows(facts, only_large=True):
        found.append(Para(tuple(smaller)))
    weighting = _weighting(facts)
    return [*found, para(weighting)] if weighting else found


def headline(facts: Facts) -> Line:
    """The score with its n, interval and method."""
    run, score = facts.run, facts.score
    name = Code(hostile.line(run.name, 80))
    who: Line = ("Run ", name)
    if run.model and run.model != run.name:
        who = (Code(hostile.line(run.model, 80)), " (run ", name, ")")
    where: Line = (" on ", Code(hostile.line(run.benchmark, 80))) if run.benchmark else ()
    if score.value is None:
        return (*who, " has ", Strong("no score"), *where, ": no rollout was scored.")
    of = quantities.label(score) if facts.is_rate else "mean reward"
    rests = [
        f"n = {quantities.n_of(score)}",
        words.count(run.n_rollouts, "rollout"),
        f"{words.count(run.coverage.repeats, 'repeat')} per task",
    ]
    method = quantities.method(score).removesuffix(" (no interval)")
    return (
        *who,
        " scored ",
        Strong(f"{quantities.with_interval(score, facts.is_rate)} {of}"),
        *where,
        f" ({quantities.meaning(score) or 'mean over tasks'}; {', '.join(rests)}). ",
        f"The brackets hold the 95% interval ({method})."
        if score.low is not None
        else f"No interval: {method}.",
        *_caveat(facts),
    )


def _caveat(facts: Facts) -> Line:
    """What kind of reward stands behind the score, where that limits what the score says."""
    run = facts.run
    if run.reward_kind is RewardKind.CONSTANT:
        return (
            " ",
            Strong("Every scored row has the same reward"),
            ", so the score cannot tell tasks apart.",
        )
    if run.reward_kind is RewardKind.UNBOUNDED and not run.has_pass_rate:
        return (
            " Rewards leave the range 0 to 1, so there is no pass rate; ",
            Code("--pass-threshold"),
            " sets one.",
        )
    if not run.has_pass_rate:
        return (
            " No reward counts as a pass, so there is no pass rate; ",
            Code("--pass-threshold"),
            " sets one.",
        )
    if run.pass_threshold != 1:
        return (f" A rollout passes at a reward of {words.number(run.pass_threshold)} or more.",)
    return ()


def missing_rows(facts: Facts, only_large: bool) -> Line:
    """What the rows that are not there could do to the score; nothing when they could do nothing.

    With `only_large`, only when counting them as failed moves the score by more than one standard error.
    """
    score, as_fail = facts.score, facts.measure("missing_as_fail")
    low, high = facts.measure("bound_low"), facts.measure("bound_high")
    if score.value is None or as_fail is None or as_fail.value is None:
        return ()
    step = abs(score.value - as_fail.value)
    ends = [m for m in (low, high) if m is not None and m.value is not None]
    if step < 1e-9 and all(abs((end.value or 0.0) - score.value) < 1e-9 for end in ends):
        return ()
    large = any(flag.flag == "missing_rows_matter" for flag in facts.health)
    if only_large and not large:
        return ()
    gone = facts.run.coverage.expected - facts.run.coverage.scored
    text = f"{words.count(gone, 'expected rollout')} {'has' if gone == 1 else 'have'} no score: "
    text += f"counted as failed, the score would be {quantities.value(as_fail, facts.is_rate)} instead of "
    text += quantities.value(score, facts.is_rate)
    if low is not None and high is not None:
        text += f", and whatever they were, it lies between {quantities.value(low, facts.is_rate)} and "
        text += quantities.value(high, facts.is_rate)
    tail = ". That is more than one standard error: the missing rows decide how to read it." if large else "."
    return (" ", Strong("Missing rows matter. "), text + tail) if only_large else (text + tail,)


def _buckets(facts: Facts) -> list[Para]:
    run, buckets = facts.run, facts.buckets
    if not run.has_pass_rate:
        return []
    always, sometimes, never, missing = (
        words.whole(len(keys)) for keys in (buckets.always, buckets.sometimes, buckets.never, buckets.missing)
    )
    text = f"Of {words.count(run.n_tasks, 'task')}, {always} passed in every repeat, {sometimes} in some and "
    text += f"{never} in none; {missing} {'is' if missing == '1' else 'are'} missing (no scored rollout)."
    if run.coverage.repeats <= 1:
        text += " With one repeat per task nobody can see which passes and failures are chance: run repeats"
        text += " to learn which tasks pass sometimes."
        return [para(text)]
    best, all_of, retry = (
        facts.at_most_k("pass_at_k"),
        facts.at_most_k("pass_hat_k"),
        facts.measure("retry_value") or facts.at_most_k("retry_value"),
    )
    if best is not None and best.k is not None and best.k > 1:
        text += f" Given {best.k} tries, {quantities.with_interval(best)} of the tasks are solved"
        if all_of is not None:
            text += f"; all {all_of.k} tries succeed on {quantities.with_interval(all_of)}"
        if retry is not None:
            text += f". A perfect choice among the repeats would win {quantities.value(retry)}"
        text += f" (n = {quantities.n_of(best)})."
    return [para(text)]


def _coverage(facts: Facts) -> Para:
    counts = facts.run.coverage
    more = [
        words.count(number, noun, plural)
        for number, noun, plural in (
            (counts.duplicates, "duplicate row", None),
            (counts.unnumbered_copies, "identical row without a number", "identical rows without a number"),
            (counts.superseded, "row superseded by a later attempt", "rows superseded by a later attempt"),
            (counts.unexpected, "row that nothing expected", "rows that nothing expected"),
        )
        if number
    ]
    are = "is" if more and more[0].startswith("1 ") else "are"
    beside = f" Besides, there {are} {words.listing(more)}." if more else ""
    return para("Coverage: ", identity(facts), f" ({hostile.line(counts.expected_from, 80)}).", beside)


def identity(facts: Facts) -> str:
    """expected = scored + failed + masked + lost."""
    counts = facts.run.coverage
    parts = {"scored": counts.scored, "failed": counts.failed, "masked": counts.masked, "lost": counts.lost}
    return f"{counts.expected:,} expected = " + " + ".join(f"{n:,} {name}" for name, n in parts.items())


def _weighting(facts: Facts) -> str:
    macro, micro = facts.measure("pass_at_1"), facts.measure("pass_at_1_micro")
    if macro is None or micro is None or macro.value is None or micro.value is None:
        return ""
    if abs(macro.value - micro.value) < 1e-9:
        return ""
    effect = words.points(micro.value - macro.value)
    return (
        "Tasks have unequal numbers of rows. Over rows instead of tasks, pass@1 is "
        f"{quantities.value(micro)} (n = {quantities.n_of(micro)}): a weighting effect of {effect}."
    )


def _flags(runs: tuple[Facts, ...]) -> list[Block]:
    """The findings, problems and warnings, in words."""
    flags = [flag for facts in runs for flag in doubted(facts)[0] if flag.level is not Level.INFO]
    n_tasks = sum(len(doubted(facts)[1]) for facts in runs)
    flags.sort(key=lambda flag: flag.level is not Level.PROBLEM)
    urgent = [(_finding_for(found[0]), TONES[Level.PROBLEM], facts.run.name, _first_of(found))
              for facts in runs for found in grouped(plain_findings(facts)).values()]  # fmt: skip
    n_findings, n_problems = len(urgent), sum(flag.level is Level.PROBLEM for flag in flags)
    urgent += [(flag.level.value, TONES[flag.level], flag.run, flag.text) for flag in flags]
    if not urgent and not n_tasks:
        return [para("No health check found a problem or a warning.")]
    counted = (
        (n_findings, "finding"),
        (n_problems, "problem"),
        (len(flags) - n_problems, "warning"),
        (n_tasks, "task in doubt"),
    )
    said = [
        words.count(n, noun, noun.replace("task", "tasks") if "task" in noun else None)
        for n, noun in counted
        if n
    ]
    items: list[Line] = []
    for badge, tone, name, text in urgent[:MAX_FLAGS]:
        run: Line = (" ", Code(hostile.line(name, 80))) if len(runs) > 1 else ()
        items.append((Badge(badge, tone), *run, " ", hostile.line(text, 400)))
    if len(urgent) > MAX_FLAGS:
        items.append((f"{len(urgent) - MAX_FLAGS} more under Aggregate Results.",))
    told = para(f"Before the score is used: {words.listing(said)}. See also Health under Aggregate Results.")
    return [told, Bullets(tuple(items))] if items else [told]


def _finding_for(found: Finding) -> str:
    return "finding" if found.cause is Cause.UNDETERMINED else f"finding for {found.cause.value}"


def _first_of(found: list[Finding]) -> str:
    """The first finding of a detector, and how many more it made."""
    more = f" ({words.count(len(found) - 1, 'more finding')} of this kind)" if len(found) > 1 else ""
    return hostile.line(found[0].summary, 400) + more


def _cannot_say(report: Report) -> Para:
    text = (
        "Numbers, causes and gains follow from the rows by fixed rules, without a language model; how often "
    )
    text += "such labels are right stands under Reproducibility Notes."
    if report.gaps:
        text += f" What this report cannot say ({words.count(len(report.gaps), 'gap')}) stands there too."
    return para(text)


def _tiles(facts: Facts) -> Tiles:
    score = facts.score
    found = [_tile("Score: " + quantities.label(score), score, facts.is_rate)]
    for measure in (facts.at_most_k("pass_at_k"), facts.at_most_k("pass_hat_k")):
        if measure is not None and measure.k is not None and measure.k > 1:
            found.append(_tile(quantities.label(measure), measure, facts.is_rate))
    best = facts.at_most_k("best_of_k")
    if not facts.run.has_pass_rate and best is not None:
        found.append(_tile(quantities.label(best), best, facts.is_rate))
    clean = facts.measure("clean_pass_at_1")
    if clean is not None:
        found.insert(1, _tile(quantities.label(clean), clean, facts.is_rate))
    if facts.run.has_pass_rate:
        parts = facts.buckets
        split = f"{len(parts.always)} / {len(parts.sometimes)} / {len(parts.never)}"
        gone = f", {len(parts.missing)} missing" if parts.missing else ""
        found.append(Tile("Always / sometimes / never", split, words.count(facts.run.n_tasks, "task") + gone))
    counts = facts.run.coverage
    share = counts.scored / counts.expected if counts.expected else None
    detail = f"{words.whole(counts.scored)} of {words.whole(counts.expected)} rollouts"
    found.append(Tile("Coverage", words.percent(share), detail))
    levels = facts.levels()
    detail = words.count(levels[Level.WARNING], "warning")
    found.append(Tile("Health", words.count(levels[Level.PROBLEM], "problem"), detail))
    return Tiles(tuple(found))


def _tile(label: str, measure: Measure, is_rate: bool) -> Tile:
    detail = f"{quantities.interval(measure, is_rate) or 'no interval'}, n = {quantities.n_of(measure)}"
    return Tile(label, quantities.value(measure, is_rate), detail)


def _overview(runs: tuple[Facts, ...]) -> list[Block]:
    """Several runs side by side, then what is peculiar to each."""
    rows = []
    for facts in runs:
        run, parts = facts.run, facts.buckets
        split = (len(parts.always), len(parts.sometimes), len(parts.never), len(parts.missing))
        rows.append(
            cells(
                Code(hostile.line(run.name, 80)),
                Code(hostile.line(run.model, 80)) if run.model else words.NONE,
                quantities.label(facts.score),
                quantities.with_interval(facts.score, facts.is_rate),
                quantities.n_of(facts.score),
                words.whole(run.n_rollouts),
                " / ".join(words.whole(part) for part in split) if run.has_pass_rate else words.NONE,
            )
        )
    header = (
        "Run",
        "Model",
        "Score is",
        "Score, 95% interval",
        "n",
        "Rollouts",
        "Always / sometimes / never / missing",
    )
    methods = sorted({quantities.method(facts.score) for facts in runs})
    how = f"Scores are means over tasks; how their 95% intervals were made: {'; '.join(methods)}."
    return [Table(header, tuple(rows), "lllrrrr"), para(how), Bullets(tuple(_brief(facts) for facts in runs))]


def _brief(facts: Facts) -> Line:
    """What the table does not say of a run: its coverage, the limits of its score, its missing rows."""
    start: Line = (Code(hostile.line(facts.run.name, 80)), ": ", identity(facts), ".")
    large = missing_rows(facts, only_large=True)
    missing: Line = large or tuple(" " + str(span) for span in missing_rows(facts, only_large=False))
    weighting = _weighting(facts)
    told = [
        span for line in (where_lost(facts), first_fix(facts)) for span in (*((" ",) if line else ()), *line)
    ]
    return (*start, *_caveat(facts), *missing, *((" " + weighting,) if weighting else ()), *told)
