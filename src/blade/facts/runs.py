"""Turn what was measured into facts: counts, scores, buckets, outcomes, funnel, slices, health."""

from __future__ import annotations

from collections.abc import Iterator

from blade.facts import names
from blade.facts.making import Says, counted, number, said, told
from blade.facts.query import path, step
from blade.model import Buckets, Fact, Funnel, Health, Level, Measure, Report, Run, Slice


def of_runs(report: Report) -> Iterator[Fact]:
    """What is measured of every run."""
    score = {run.name: run.score_name for run in report.runs}
    for run in report.runs:
        yield from _run(run)
    for measure in report.measures:
        yield from _measure(measure, score.get(measure.run, ""))
    totals = {run.name: run.n_tasks for run in report.runs}
    for buckets in report.buckets:
        yield from _buckets(buckets, totals.get(buckets.run, 0))
    yield from _sureness(report)
    for funnel in report.funnels:
        yield from _funnel(funnel)
    for piece in report.slices:
        yield from _slice(piece)
    yield from _flags(report)
    yield from _compared(report)


def _run(run: Run) -> Iterator[Fact]:
    stem, name = path("runs", name=run.name), run.name
    counts = run.coverage
    held = {
        "n_tasks": run.n_tasks,
        "n_rollouts": run.n_rollouts,
        "expected_rollouts": counts.expected,
        "identical_duplicates": counts.identical_duplicates,
        "unnumbered_copies": counts.unnumbered_copies,
        "scored": counts.scored,
        "failed": counts.failed,
        "masked": counts.masked,
        "lost": counts.lost,
        "duplicates": counts.duplicates,
        "superseded": counts.superseded,
        "unexpected": counts.unexpected,
        "repeats": counts.repeats,
    }
    for subject, n in held.items():
        unit, called = names.COUNTS[subject]
        yield Fact(f"{stem}.{subject}", "count", subject, called, float(n), name, unit=unit)
    texts = {
        "name": (run.name, ("run", "run name")),
        "model": (run.model, ("model", "model name")),
        "agent": (run.agent, ("agent", "agent name")),
        "benchmark": (run.benchmark, ("benchmark", "benchmark name", "dataset")),
        "expected_from": (counts.expected_from, ("expected rollouts come from",)),
        "reward_kind": (run.reward_kind.value, ("reward kind", "rewards are")),
        "score_name": (run.score_name, ("the score is", "score name")),
    }
    for subject, (text, called) in texts.items():
        if text:
            yield Fact(f"{stem}.{subject}", "text", subject, called, text, name)
    numbers = {
        "pass_threshold": (run.pass_threshold, ("pass threshold", "passes at a reward of")),
        "oracle": (run.oracle, ("oracle", "best repeat of every task")),
        "unexplained": (run.unexplained, ("unexplained gap to the oracle", "unexplained", "oracle gap")),
        "score": (run.score, names.HEADLINE),
    }
    for subject, (value, called) in numbers.items():
        if number(value) is not None:
            kind = "rate" if subject in ("score", "oracle") and run.has_pass_rate else "number"
            yield Fact(f"{stem}.{subject}", kind, subject, called, number(value), name)
    yield from told(f"{stem}.notes", "notes", run.notes, name)
    yield from _read(run, stem)
    yield from _outcomes(run, stem)
    yield from _unscored(run, stem)


def _read(run: Run, stem: str) -> Iterator[Fact]:
    """What was read, and the settings."""
    for key, text in run.settings.items():
        called = (key.lower(), key.lower().rpartition(".")[2])
        yield Fact(
            f"{stem}.settings.{step(key)}", "text", "setting", called, text, run.name, (("setting", key),)
        )
    for source in run.sources:
        found = path(f"{stem}.sources", path=source.path)
        scope = (("source", source.path),)
        for subject, value in (("rows", source.rows), ("bytes", source.bytes)):
            yield Fact(
                f"{found}.{subject}",
                "count",
                f"source_{subject}",
                ("size", subject) if subject == "bytes" else (subject,),
                float(value),
                run.name,
                scope,
                unit=subject,
            )
        if source.sha256:
            yield Fact(f"{found}.sha256", "text", "sha256", ("sha-256",), source.sha256, run.name, scope)


def _outcomes(run: Run, stem: str) -> Iterator[Fact]:
    total = run.coverage.expected
    for outcome, n in run.outcomes.items():
        query = f"{stem}.outcomes.{outcome.value}"
        called = names.OUTCOMES[outcome.value]
        subject = f"rows_{outcome.value}"
        yield Fact(query, "count", subject, called, float(n), run.name, n=float(total), unit="rollouts")
        if total:
            yield Fact(
                f"share({query}, {stem}.expected_rollouts)",
                "rate",
                f"share_{outcome.value}",
                (*(f"share {one}" for one in called), *called, "share"),
                n / total,
                run.name,
                n=float(total),
                unit="rollouts",
            )


def _unscored(run: Run, stem: str) -> Iterator[Fact]:
    counts, of = run.coverage, float(run.coverage.expected)
    gone = f"minus({stem}.expected_rollouts, {stem}.scored)"
    yield counted(
        gone,
        counts.expected - counts.scored,
        "unscored",
        ("expected rollouts without a score", "no score"),
        run=run.name,
        n=of,
        unit="rollouts",
    )
    if not of:
        return
    for subject, n in (
        ("scored", counts.scored),
        ("failed", counts.failed),
        ("masked", counts.masked),
        ("lost", counts.lost),
    ):
        yield Fact(
            f"share({stem}.{subject}, {stem}.expected_rollouts)",
            "rate",
            f"{subject}_share",
            tuple(f"share {one}" for one in names.COUNTS[subject][1]),
            n / of,
            run.name,
            n=of,
            unit="rollouts",
        )


def _measure(measure: Measure, score: str) -> Iterator[Fact]:
    called = names.phrases(measure.name, measure.k)
    if measure.name == score and measure.k is None and measure.slice is None:
        called += names.HEADLINE
    stem = path("measures", run=measure.run, name=measure.name, k=measure.k, slice=measure.slice)
    kind = "rate" if measure.name in names.RATES else "points" if measure.name in names.POINTS else "number"
    if measure.name in names.OF_SCORE and score.startswith(("pass", "clean_pass")):
        kind = "rate"
    scope: tuple[tuple[str, str], ...] = ()
    if measure.k is not None and measure.name.endswith("_k"):
        scope += (("k", str(measure.k)),)
    if measure.slice is not None:
        scope += (("outcome", measure.slice),)
        called += (measure.slice.replace("_", " "),)
    fields = (
        Says("value", kind, called, measure.name, measure.unit, "n", "low", "high"),
        Says("low", kind, ("lower end",), f"{measure.name}_low"),
        Says("high", kind, ("upper end",), f"{measure.name}_high"),
        Says("n", "count", (measure.unit, "n", *called), f"{measure.name}_n", measure.unit),
        Says("k", "count", ("repeats", "tries", "answers", *called), f"{measure.name}_k"),
    )
    yield from said(measure, stem, fields, measure.run, scope)


def _buckets(buckets: Buckets, total: int) -> Iterator[Fact]:
    stem = path("buckets", run=buckets.run)
    for bucket, called in names.BUCKETS.items():
        tasks: tuple[str, ...] = getattr(buckets, bucket)
        scope = (("bucket", bucket),)
        query = f"{stem}.{bucket}"
        ids = (*(f"{one} tasks" for one in called[:3]), *called)
        yield Fact(query, "ids", f"{bucket}_tasks", ids, tasks, buckets.run, scope, float(total), "tasks")
        yield counted(
            f"count({query})",
            len(tasks),
            bucket,
            called,
            run=buckets.run,
            scope=scope,
            n=float(total),
            unit="tasks",
        )
        if total:
            yield Fact(
                f"share(count({query}), {path('runs', 'n_tasks', name=buckets.run)})",
                "rate",
                f"{bucket}_share",
                ("share", *(f"share of {one} tasks" for one in called)),
                len(tasks) / total,
                buckets.run,
                scope,
                float(total),
                "tasks",
            )


def _sureness(report: Report) -> Iterator[Fact]:
    """How sure the bucket of a task is, on average over those in it."""
    found: dict[tuple[str, str], list[float]] = {}
    for task in report.tasks:
        if task.bucket is not None and task.p_bucket is not None:
            found.setdefault((task.run, task.bucket), []).append(task.p_bucket)
    for (run, bucket), sure in found.items():
        query = f"mean({path('tasks', 'p_bucket', run=run, bucket=bucket)})"
        called = ("mean p(bucket)", "p(bucket)")
        scope = (("bucket", bucket),)
        mean = sum(sure) / len(sure)
        yield Fact(query, "p", "mean_p_bucket", called, mean, run, scope, float(len(sure)), "tasks")


def _funnel(funnel: Funnel) -> Iterator[Fact]:
    for one in funnel.stages:
        stem = f"{path('funnel', run=funnel.run)}.{path('stages', name=one.name)}"
        scope, called = (("stage", one.name),), (one.name.lower(),)
        fields = (
            Says("reached", "count", ("reached",), "reached", "rollouts", "of"),
            Says("of", "count", ("of rollouts",), "reached_of", "rollouts"),
        )
        yield from said(one, stem, fields, funnel.run, scope, called)
        if one.of:
            yield Fact(
                f"share({stem}.reached, {stem}.of)",
                "rate",
                "reached_share",
                ("share", "share reached", *called),
                one.reached / one.of,
                funnel.run,
                scope,
                float(one.of),
                "rollouts",
            )
    yield Fact(
        path("funnel", "source", run=funnel.run),
        "text",
        "funnel_source",
        ("stages",),
        funnel.source,
        funnel.run,
    )


def _slice(piece: Slice) -> Iterator[Fact]:
    stem = path("slices", run=piece.run, field=piece.field, value=piece.value)
    scope = (("slice", f"{piece.field}={piece.value}"),)
    called = (f"{piece.field}={piece.value}".lower(), piece.value.lower())
    fields = (
        Says("pass_rate", "rate", ("pass rate", "score"), "slice_rate", "tasks", "n_tasks", "low", "high"),
        Says("low", "rate", ("lower end",), "slice_rate_low"),
        Says("high", "rate", ("upper end",), "slice_rate_high"),
        Says("n_tasks", "count", ("tasks", "n"), "slice_n_tasks", "tasks"),
        Says("p_adjusted", "p", ("p adjusted", "adjusted p", "p"), "slice_p_adjusted"),
    )
    yield from said(piece, stem, fields, piece.run, scope, called)


def _flags(report: Report) -> Iterator[Fact]:
    seen: dict[tuple[str, str, str | None], int] = {}
    for flag in report.health:
        key = (flag.run, flag.flag, flag.task)
        seen[key] = seen.get(key, 0) + 1
    for flag in report.health:
        yield from _flag(flag, seen[flag.run, flag.flag, flag.task] > 1)
    levels: dict[tuple[str, str], int] = {
        (run.name, level.value): 0 for run in report.runs for level in Level
    }
    for flag in report.health:
        at = (flag.run, flag.level.value)
        levels[at] = levels.get(at, 0) + 1
    for (run, level), n in levels.items():
        yield counted(
            f"count({path('health', run=run, level=level)})",
            n,
            f"{level}s",
            (f"{level}s", level),
            run=run,
            unit="flags",
        )


def _flag(flag: Health, is_twice: bool) -> Iterator[Fact]:
    where = {"text": flag.text} if is_twice else {}
    stem = path("health", run=flag.run, flag=flag.flag, task=flag.task, **where)
    scope: tuple[tuple[str, str], ...] = (("flag", flag.flag),)
    if flag.task is not None:
        scope += (("task", flag.task),)
    called = (flag.flag.lower().replace("_", " "), flag.flag.lower())
    fields = (
        Says("value", "number", ("value", *called), f"flag_{flag.flag}", "", "n"),
        Says("n", "count", ("n", "rows"), f"flag_{flag.flag}_n"),
        Says("text", "text", called, f"flag_{flag.flag}_text"),
        Says("flag", "text", ("flag",), "flag"),
    )
    yield from said(flag, stem, fields, flag.run, scope)
    yield Fact(
        f"{stem}.level",
        "text",
        f"flag_{flag.flag}_level",
        ("level", *called),
        flag.level.value,
        flag.run,
        scope,
    )


def _compared(report: Report) -> Iterator[Fact]:
    for one in report.compared:
        stem = path("reported", run=one.run, file=one.file, name=one.name)
        scope = (("reported", one.name), ("file", one.file))
        fields = (
            Says("reported", "number", ("reported", "as reported"), "reported"),
            Says("ours", "number", ("ours", "as recomputed"), "reported_ours"),
            Says("explanation", "text", ("explanation",), "reported_explanation"),
        )
        yield from said(one, stem, fields, one.run, scope, (one.name.lower(),))
