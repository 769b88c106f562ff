"""Write the first page: the score and what it rests on, as an expert would say it."""

from __future__ import annotations

from blade import hostile
from blade.model import Cause, Finding, Health, Level, Measure, Report, RewardKind
from blade.report import advice, causes, numbers, quantities, queries, reasons, words
from blade.report.facts import Facts
from blade.report.failures import grouped, plain_findings
from blade.report.results import BUCKETS, doubted, in_bucket
from blade.report.sections import (
    Badge,
    Block,
    Bullets,
    Code,
    Line,
    Para,
    Said,
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
    said: Line = (causes.all_lost(facts), " are lost: ", *causes.split(facts), ".")
    largest = causes.largest(facts)
    if largest is not None:
        lead = " The largest failure mode with a cause is "
        said += (lead, *largest.told(facts), ": ", largest.points(facts), ".")
    return (Strong("Where the score went: "), *said, *causes.clean(facts))


def weaker(runs: tuple[Facts, ...]) -> list[Block]:
    """That causes are weaker where a run has one repeat per task, said once for all such runs."""
    found = [facts.run.name for facts in runs if reasons.is_weaker(facts)]
    if not found:
        return []
    of: Line = (
        (" of ", *numbers.joined([(Code(hostile.line(name, 60)),) for name in found]))
        if len(runs) > 1
        else ()
    )
    return [
        para(
            Strong("One try per task: "),
            "the causes",
            *of,
            " are weaker for it, because hard tasks and bad behaviour cannot be told apart.",
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
        *causes.sentence(found.action, f"{facts.entry('recommendations', found)}.action", 400),
        " Expected gain ",
        *advice.expected(facts, found),
        " of score over ",
        *numbers.count(len(found.tasks), "task", f"{facts.entry('recommendations', found)}.tasks.count"),
        ".",
    )


def _paragraphs(facts: Facts) -> list[Para]:
    first = [*headline(facts), *missing_rows(facts, only_large=True)]
    found = [Para(tuple(first)), *_buckets(facts), _coverage(facts)]
    smaller = missing_rows(facts, only_large=False)
    if smaller and not missing_rows(facts, only_large=True):
        found.append(Para(tuple(smaller)))
    weighting = _weighting(facts)
    return [*found, Para(weighting)] if weighting else found


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
    method = quantities.method(score).removesuffix(" (no interval)")
    how = (
        f"The brackets hold the 95% interval ({method})."
        if score.low is not None
        else f"No interval: {method}."
    )
    return (
        *who,
        " scored ",
        *quantities.with_interval(score, facts.is_rate, strong=True),
        f" {of}",
        *where,
        f" ({quantities.meaning(score) or 'mean over tasks'}; n = ",
        *quantities.n_of(score),
        ", ",
        *numbers.count(run.n_rollouts, "rollout", facts.n_rollouts),
        ", ",
        *numbers.count(run.coverage.repeats, "repeat", facts.counted("repeats")),
        f" per task). {how}",
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
            " Rewards leave the range from 0 to 1, so there is no pass rate; ",
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
        bar = numbers.number(run.pass_threshold, facts.counted("pass_threshold"))
        return (" A rollout passes at a reward of ", bar, " or more.")
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
    unscored = numbers.count(gone, "expected rollout", facts.counted("expected - scored"))
    as_failed, scored = (quantities.value(measure, facts.is_rate) for measure in (as_fail, score))
    text: Line = (
        *unscored,
        f" {'has' if gone == 1 else 'have'} no score: counted as failed, the score would be ",
    )
    text += (as_failed, " instead of ", scored)
    if low is not None and high is not None:
        lower, upper = (quantities.value(measure, facts.is_rate) for measure in (low, high))
        text += (", and whatever they were, it lies between ", lower, " and ", upper)
    tail = ". That is more than one standard error: the missing rows decide how to read it." if large else "."
    return (" ", Strong("Missing rows matter. "), *text, tail) if only_large else (*text, tail)


def _buckets(facts: Facts) -> list[Para]:
    run = facts.run
    if not run.has_pass_rate:
        return []
    always, sometimes, never, missing = (
        numbers.whole(len(getattr(facts.buckets, name)), in_bucket(facts, name)) for name in BUCKETS
    )
    are = "is" if len(facts.buckets.missing) == 1 else "are"
    text: Line = (
        "Of ",
        *numbers.count(run.n_tasks, "task", facts.n_tasks),
        ", ",
        always,
        " passed in every repeat, ",
    )
    text += (sometimes, " in some and ", never, " in none; ", missing, f" {are} missing (no scored rollout).")
    if run.coverage.repeats <= 1:
        return [
            para(
                *text,
                " With one repeat per task nobody can see which passes and failures are chance: run repeats "
                "to learn which tasks pass sometimes.",
            )
        ]
    return [para(*text, *_tries(facts))]


def _tries(facts: Facts) -> Line:
    """What several tries would solve."""
    best, every = facts.at_most_k("pass_at_k"), facts.at_most_k("pass_hat_k")
    retry = facts.measure("retry_value") or facts.at_most_k("retry_value")
    if best is None or best.k is None or best.k <= 1:
        return ()
    text: Line = (
        f" Some try succeeds ({quantities.label(best)}) on ",
        *quantities.with_interval(best),
        " of the tasks",
    )
    if every is not None:
        text += (f", every try ({quantities.label(every)}) on ", *quantities.with_interval(every))
    if retry is not None:
        text += ("; a perfect choice among the repeats would win ", quantities.value(retry))
    return (*text, " (n = ", *quantities.n_of(best), ").")


def _coverage(facts: Facts) -> Para:
    counts = facts.run.coverage
    named = (
        ("duplicates", "duplicate row", None),
        ("unnumbered_copies", "identical row without a number", "identical rows without a number"),
        ("superseded", "row superseded by a later attempt", "rows superseded by a later attempt"),
        ("unexpected", "row that nothing expected", "rows that nothing expected"),
    )
    more = [
        numbers.count(getattr(counts, name), noun, facts.counted(name), plural)
        for name, noun, plural in named
        if getattr(counts, name)
    ]
    first = next((getattr(counts, name) for name, _, _ in named if getattr(counts, name)), 0)
    beside: Line = (
        (f" There {'is' if first == 1 else 'are'} also ", *numbers.joined(more), ".") if more else ()
    )
    return para("Coverage: ", *identity(facts), f" ({hostile.line(counts.expected_from, 80)}).", *beside)


def identity(facts: Facts) -> Line:
    """expected = scored + failed + masked + lost."""
    counts = facts.run.coverage
    parts: list[Line] = [
        (numbers.whole(getattr(counts, name), facts.counted(name)), f" {name}")
        for name in ("scored", "failed", "masked", "lost")
    ]
    expected = numbers.whole(counts.expected, facts.counted("expected"))
    return (expected, " expected = ", *numbers.joined(parts, " + ", " + "))


def _weighting(facts: Facts) -> Line:
    macro, micro = facts.measure("pass_at_1"), facts.measure("pass_at_1_micro")
    if macro is None or micro is None or macro.value is None or micro.value is None:
        return ()
    if abs(macro.value - micro.value) < 1e-9:
        return ()
    over_rows, over_tasks = (f"{facts.entry('measures', measure)}.value" for measure in (micro, macro))
    return (
        "Tasks have unequal numbers of rows. Over rows instead of tasks, pass@1 is ",
        quantities.value(micro),
        " (n = ",
        *quantities.n_of(micro),
        "): a weighting effect of ",
        numbers.points(micro.value - macro.value, f"{over_rows} - {over_tasks}"),
        ".",
    )


def _flags(runs: tuple[Facts, ...]) -> list[Block]:
    """The findings, problems and warnings, in words."""
    flags = [(facts, flag) for facts in runs for flag in doubted(facts)[0] if flag.level is not Level.INFO]
    flags.sort(key=lambda pair: pair[1].level is not Level.PROBLEM)
    n_tasks = sum(len(doubted(facts)[1]) for facts in runs)
    urgent: list[tuple[Badge, Facts, Line]] = [
        (Badge(_finding_for(group[0]), TONES[Level.PROBLEM]), facts, _first_of(facts, group))
        for facts in runs
        for group in grouped(plain_findings(facts)).values()
    ]
    is_finding = bool(urgent)
    urgent += [
        (Badge(flag.level.value, TONES[flag.level]), facts, (_flag_text(facts, flag),))
        for facts, flag in flags
    ]
    if not urgent and not n_tasks:
        return [para("No health check found a problem or a warning.")]
    items: list[Line] = []
    for badge, facts, text in urgent[:MAX_FLAGS]:
        run: Line = (" ", Code(hostile.line(facts.run.name, 80))) if len(runs) > 1 else ()
        items.append((badge, *run, " ", *text))
    if len(urgent) > MAX_FLAGS:
        items.append(("More stand under Aggregate Results.",))
    levels = {flag.level for _, flag in flags}
    kinds = ["findings"] * is_finding
    kinds += ["problems"] * (Level.PROBLEM in levels) + ["warnings"] * (Level.WARNING in levels)
    kinds += ["tasks in doubt"] * bool(n_tasks)
    lead = para(
        f"Read the {words.listing(kinds)} before using the score; see Health under Aggregate Results."
    )
    return [lead, Bullets(tuple(items))] if items else [lead]


def _flag_text(facts: Facts, flag: Health) -> Said:
    return numbers.said(flag.text, f"{facts.entry('health', flag)}.text", 400)


def _finding_for(found: Finding) -> str:
    return "finding" if found.cause is Cause.UNDETERMINED else f"finding for {found.cause.value}"


def _first_of(facts: Facts, group: list[Finding]) -> Line:
    """The first finding of a detector, and how many more it made."""
    first = numbers.said(group[0].summary, f"{facts.entry('findings', group[0])}.summary", 400)
    if len(group) == 1:
        return (first,)
    every = f"{queries.entry('findings', run=facts.run.name, detector=group[0].detector)}.count"
    return (first, " (", *numbers.count(len(group) - 1, "more finding", f"{every} - 1"), " of this kind)")


def _cannot_say(report: Report) -> Para:
    text: Line = (
        "Numbers, causes and gains follow from the rows by fixed rules, without a language model; "
        "Reproducibility Notes say how often such labels are right",
    )
    if not report.gaps:
        return para(*text, ".")
    return para(
        *text,
        ", and what this report cannot say (",
        *numbers.count(len(report.gaps), "gap", "engine.gaps.count"),
        ").",
    )


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
        found.append(_bucket_tile(facts))
    counts = facts.run.coverage
    share = counts.scored / counts.expected if counts.expected else None
    scored, expected = (
        numbers.whole(n, facts.counted(name))
        for name, n in (("scored", counts.scored), ("expected", counts.expected))
    )
    value = numbers.percent(share, facts.counted("scored / expected"))
    found.append(Tile("Coverage", (value,), (scored, " of ", expected, " rollouts")))
    problems, warnings = (
        numbers.count(n, level.value, _flags_query(facts, level, n))
        for level, n in facts.levels().items()
        if level is not Level.INFO
    )
    found.append(Tile("Health", problems, warnings))
    return Tiles(tuple(found))


def _flags_query(facts: Facts, level: Level, n: int) -> str:
    """The query that counts the flags of a level; it says that none count 0."""
    return f"{queries.entry('health', run=facts.run.name, level=level)}.count{'' if n else ' or 0'}"


def _split(facts: Facts, names: tuple[str, ...]) -> Line:
    """`10 / 26 / 14`: the tasks of these buckets."""
    parts: list[Line] = [
        (numbers.whole(len(getattr(facts.buckets, name)), in_bucket(facts, name)),) for name in names
    ]
    return numbers.joined(parts, " / ", " / ")


def _bucket_tile(facts: Facts) -> Tile:
    tasks = numbers.count(facts.run.n_tasks, "task", facts.n_tasks)
    missing: Line = (", ", *_split(facts, ("missing",)), " missing") if facts.buckets.missing else ()
    label = "Always / sometimes / never"
    return Tile(label, _split(facts, ("always", "sometimes", "never")), (*tasks, *missing))


def _tile(label: str, measure: Measure, is_rate: bool) -> Tile:
    bounds: Line = quantities.interval(measure, is_rate)
    detail: Line = ("[", *bounds[1:]) if bounds else ("no interval",)
    return Tile(label, (quantities.value(measure, is_rate),), (*detail, ", n = ", *quantities.n_of(measure)))


def _overview(runs: tuple[Facts, ...]) -> list[Block]:
    """Several runs side by side, then what is peculiar to each."""
    rows = []
    for facts in runs:
        run = facts.run
        split = _split(facts, ("always", "sometimes", "never", "missing"))
        rows.append(
            cells(
                Code(hostile.line(run.name, 80)),
                Code(hostile.line(run.model, 80)) if run.model else words.NONE,
                quantities.label(facts.score),
                quantities.with_interval(facts.score, facts.is_rate),
                quantities.n_of(facts.score),
                numbers.whole(run.n_rollouts, facts.n_rollouts),
                split if run.has_pass_rate else words.NONE,
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
    start: Line = (Code(hostile.line(facts.run.name, 80)), ": ", *identity(facts), ".")
    large, missing = missing_rows(facts, only_large=True), missing_rows(facts, only_large=False)
    parts = (missing if not large else (), _weighting(facts), where_lost(facts), first_fix(facts))
    rest = [span for line in parts for span in (*((" ",) if line else ()), *line)]
    return (*start, *_caveat(facts), *large, *rest)
