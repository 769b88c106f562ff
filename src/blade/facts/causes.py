"""Turn what was concluded of runs into facts: losses, causes, behaviours, mechanisms, advice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from blade.facts import names
from blade.facts.making import Says, Scope, counted, said
from blade.facts.query import path, step
from blade.model import Behaviour, Fact, Loss, Mechanism, Report

SIGNATURE = (
    Says("n_rollouts", "count", ("rollouts",), "signature_rollouts", "rollouts"),
    Says("n_tasks", "count", ("tasks",), "signature_tasks", "tasks"),
    Says(
        "n_failed",
        "count",
        ("failing", "failing rollouts", "fail"),
        "signature_failed",
        "rollouts",
        "n_rollouts",
    ),
    Says("n_exact", "count", ("distinct texts",), "signature_exact"),
    Says("spread", "text", ("spread",), "signature_spread"),
    Says("kind", "text", ("class",), "signature_class", wire="class"),
    Says("source", "text", ("source",), "signature_source"),
    Says("template", "text", ("template", "message"), "signature_template"),
    Says("slice", "text", ("concentrated in",), "signature_slice"),
    Says("slice_ratio", "number", ("times the rate elsewhere",), "signature_slice_ratio"),
    Says("slice_p_adjusted", "p", ("p adjusted",), "signature_slice_p"),
    Says("id", "text", ("signature",), "signature_id"),
)
BEHAVIOUR = (
    Says("n_rollouts", "count", ("rollouts", "fires on"), "behaviour_rollouts", "rollouts"),
    Says("n_tasks", "count", ("tasks",), "behaviour_tasks", "tasks"),
    Says("in_fail", "count", ("failing", "in failing"), "behaviour_in_fail", "rollouts", "of_fail"),
    Says("of_fail", "count", ("failing rollouts",), "behaviour_of_fail", "rollouts"),
    Says("in_pass", "count", ("passing", "in passing"), "behaviour_in_pass", "rollouts", "of_pass"),
    Says("of_pass", "count", ("passing rollouts",), "behaviour_of_pass", "rollouts"),
    Says("odds_ratio", "number", ("odds ratio", "odds", "times"), "odds_ratio", "", "", "low", "high"),
    Says("low", "number", ("lower end", "odds ratio"), "odds_ratio_low"),
    Says("high", "number", ("upper end", "odds ratio"), "odds_ratio_high"),
    Says("p", "p", ("p",), "behaviour_p"),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "behaviour_p_adjusted"),
    Says("standing", "text", ("standing",), "behaviour_standing"),
    Says("detector", "text", ("behaviour", "detector"), "behaviour"),
)
AGREEMENT = (
    Says("n", "count", ("tasks", "tasks that both labelled"), "agreement_tasks", "tasks"),
    Says("agreed", "count", ("same label", "agree"), "agreement_same", "tasks", "n"),
    Says("kappa", "number", ("kappa",), "agreement_kappa"),
)
MECHANISM = (
    Says("n_with", "count", ("with it", "rollouts"), "mechanism_n_with", "rollouts"),
    Says("pass_with", "rate", ("pass with it", "of them pass"), "mechanism_pass_with", "rollouts", "n_with"),
    Says("n_without", "count", ("without", "without it"), "mechanism_n_without", "rollouts"),
    Says(
        "pass_without", "rate", ("pass without", "against"), "mechanism_pass_without", "rollouts", "n_without"
    ),
    Says("low", "points", ("lower end", "difference"), "mechanism_difference_low"),
    Says("high", "points", ("upper end", "difference"), "mechanism_difference_high"),
    Says("p", "p", ("p",), "mechanism_p"),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "mechanism_p_adjusted"),
    Says("share_of_failures", "rate", ("covers", "share of the failing rollouts"), "mechanism_share"),
    Says("text", "text", ("mechanism",), "mechanism_text"),
    Says("control", "text", ("control",), "mechanism_control"),
    Says("actionable", "text", ("concerns",), "mechanism_concerns"),
    Says("standing", "text", ("standing",), "mechanism_standing"),
    Says("predicate", "text", ("predicate",), "mechanism_predicate"),
    Says("id", "text", ("mechanism", "lead"), "mechanism_id"),
)
CONTRAST = (
    Says("in_pass", "rate", ("of passing", "passing"), "contrast_in_pass", "rollouts", "n_pass"),
    Says("in_fail", "rate", ("of failing", "failing"), "contrast_in_fail", "rollouts", "n_fail"),
    Says("n_pass", "count", ("passing rollouts", "passing"), "contrast_n_pass", "rollouts"),
    Says("n_fail", "count", ("failing rollouts", "failing"), "contrast_n_fail", "rollouts"),
    Says("p", "p", ("p",), "contrast_p"),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "contrast_p_adjusted"),
    Says("text", "text", ("contrast",), "contrast_text"),
    Says("feature", "text", ("feature",), "contrast_feature"),
)
DIVERGENCE = (
    Says("repeat", "number", ("failing", "repeat"), "divergence_repeat"),
    Says("step", "number", ("step",), "divergence_step"),
    Says("passer_step", "number", ("step", "passing"), "divergence_passer_step"),
    Says("first_step", "number", ("first", "step"), "divergence_first_step"),
    Says("first_passer_step", "number", ("first", "step"), "divergence_first_passer_step"),
    Says("distance", "rate", ("distance", "differ"), "divergence_distance"),
    Says("fitness", "rate", ("fitness",), "divergence_fitness"),
    Says("does", "text", ("does",), "divergence_does"),
    Says("passer_does", "text", ("passing",), "divergence_passer_does"),
)
RUN_CAUSE = (
    Says("n_rollouts", "count", ("rollouts", "touches"), "run_cause_rollouts", "rollouts"),
    Says("lost", "points", ("loses", "lost"), "run_cause_lost"),
    Says(
        "score_without",
        "rate",
        ("without it", "score without"),
        "run_cause_score_without",
        "tasks",
        "n_without",
    ),
    Says("n_without", "count", ("tasks",), "run_cause_n_without", "tasks"),
    Says("text", "text", ("cause",), "run_cause_text"),
)
MEANING = (
    Says("n_rollouts", "count", ("rollouts",), "meaning_rollouts", "rollouts"),
    Says("n_passed", "count", ("passed", "pass"), "meaning_passed", "rollouts", "n_rollouts"),
    Says("n_tasks", "count", ("tasks",), "meaning_tasks", "tasks"),
    Says("mode", "text", ("mode",), "meaning_mode"),
    Says("field", "text", ("field",), "meaning_field"),
    Says("value", "text", ("value",), "meaning_value"),
    Says("origin", "text", ("origin",), "meaning_origin"),
)
ADVICE = (
    Says("rank", "number", ("rank", "#"), "recommendation_rank"),
    Says("action", "text", ("action",), "recommendation_action"),
    Says("kind", "text", ("kind",), "recommendation_kind"),
    Says("effort", "text", ("effort",), "recommendation_effort"),
    Says("basis", "text", ("basis",), "recommendation_basis"),
    Says("mode", "text", ("mode",), "recommendation_mode"),
)
GAIN = (
    Says("point", "points", ("gain", "expected gain", "could win"), "gain", "", "", "low", "high"),
    Says("low", "points", ("lower end", "gain"), "gain_low"),
    Says("high", "points", ("upper end", "gain"), "gain_high"),
)
FINDING = (
    Says("summary", "text", ("finding",), "finding_summary"),
    Says("id", "text", ("finding",), "finding_id"),
)


def of_causes(report: Report) -> Iterator[Fact]:
    """What is concluded of the runs, apart from what is said of single tasks."""
    yield from _losses(report)
    yield from _by_cause(report)
    for cause in report.run_causes:
        stem = path("run_causes", run=cause.run, cause=cause.cause.value, mode=cause.mode)
        scope: Scope = (("cause", cause.cause.value), ("mode", cause.mode))
        yield from said(cause, stem, RUN_CAUSE, cause.run, scope, (cause.mode.lower(),))
    for one in report.signatures:
        scope = (("signature", one.id),)
        stem = path("signatures", run=one.run, id=one.id)
        yield from said(one, stem, SIGNATURE, one.run, scope, (one.id.lower(),))
        if one.n_rollouts:
            yield _share(
                f"{stem}.n_failed",
                f"{stem}.n_rollouts",
                one.n_failed,
                one.n_rollouts,
                "signature_failed_share",
                ("failing",),
                one.run,
                scope,
            )
    for behaviour in report.behaviours:
        yield from _behaviour(behaviour)
    for mechanism in report.mechanisms:
        yield from _mechanism(mechanism)
    yield from _contrasts(report)
    for meaning in report.meanings:
        stem = path("meanings", run=meaning.run, field=meaning.field, value=meaning.value)
        scope = (("field", meaning.field), ("value", meaning.value))
        yield from said(meaning, stem, MEANING, meaning.run, scope, (meaning.value.lower(),))
    for agreed in report.agreements:
        stem = path("agreements", run=agreed.run, first=agreed.first, second=agreed.second)
        scope = (("first", agreed.first), ("second", agreed.second))
        yield from said(agreed, stem, AGREEMENT, agreed.run, scope, (agreed.second.lower(),))
    yield from _advice(report)
    yield from _counted(report)
    yield from _gaps(report)
    if report.accuracy is not None:
        yield from _card(report.accuracy, "accuracy", ())


def _share(
    part: str, whole: str, n: float, of: float, subject: str, called: tuple[str, ...], run: str, scope: Any
) -> Fact:
    return Fact(f"share({part}, {whole})", "rate", subject, called, n / of, run, scope, float(of), "rollouts")


def _losses(report: Report) -> Iterator[Fact]:
    by_run: dict[str, list[Loss]] = {}
    for loss in report.losses:
        by_run.setdefault(loss.run, []).append(loss)
    for run, losses in by_run.items():
        total = math.fsum(loss.lost for loss in losses)
        whole = f"sum({path('losses', 'lost', run=run)})"
        yield Fact(
            whole, "points", "lost_total", ("lost", "points lost", "sum", "points are lost"), total, run
        )
        for keys, called, subject in _groups(losses):
            lost = math.fsum(
                loss.lost for loss in losses if all(_held(loss, key) == value for key, value in keys.items())
            )
            query = f"sum({path('losses', 'lost', run=run, **keys)})"
            scope = tuple(keys.items())
            yield Fact(query, "points", subject, (*called, "lost"), lost, run, scope)
            if total > 0:
                yield Fact(
                    f"share({query}, {whole})",
                    "rate",
                    f"{subject}_share",
                    (*called, "share of loss"),
                    lost / total,
                    run,
                    scope,
                )
        for side, causes in names.SIDES.items():
            lost = math.fsum(loss.lost for loss in losses if loss.cause.value in causes)
            parts = [f"sum({path('losses', 'lost', run=run, cause=cause)})" for cause in causes]
            query = parts[0] if len(parts) == 1 else f"plus({', '.join(parts)})"
            called = (side, f"to {side}", f"to the {side}", "lost")
            yield Fact(query, "points", "lost_by_side", called, lost, run, (("side", side),))


def _groups(losses: list[Loss]) -> Iterator[tuple[dict[str, str], tuple[str, ...], str]]:
    """Cause and mode, cause alone, mode alone: the selectors of each."""
    causes = list(dict.fromkeys(loss.cause.value for loss in losses))
    modes = list(dict.fromkeys(loss.mode for loss in losses))
    for cause, mode in dict.fromkeys((loss.cause.value, loss.mode) for loss in losses):
        yield {"cause": cause, "mode": mode}, (mode.lower(), *names.CAUSES[cause]), "lost"
    for cause in causes:
        yield {"cause": cause}, names.CAUSES[cause], "lost_by_cause"
    for mode in modes:
        yield {"mode": mode}, (mode.lower(), mode.lower().replace("_", " ")), "lost_by_mode"


def _held(loss: Loss, key: str) -> str:
    return loss.cause.value if key == "cause" else loss.mode


def _by_cause(report: Report) -> Iterator[Fact]:
    """How many failed tasks are put down to each cause and mode."""
    totals = Counter(one.run for one in report.attributions)
    for run, n in totals.items():
        yield counted(
            f"count({path('attributions', run=run)})",
            n,
            "attributed_tasks",
            ("failed tasks", "tasks that fail", "failed at least once"),
            run=run,
            unit="tasks",
        )
    for (run, cause), n in Counter((one.run, one.cause.value) for one in report.attributions).items():
        query = f"count({path('attributions', run=run, cause=cause)})"
        yield counted(
            query,
            n,
            "tasks_by_cause",
            names.CAUSES[cause],
            run=run,
            scope=(("cause", cause),),
            n=float(totals[run]),
            unit="tasks",
        )
        whole = f"count({path('attributions', run=run)})"
        yield Fact(
            f"share({query}, {whole})",
            "rate",
            "tasks_by_cause_share",
            names.CAUSES[cause],
            n / totals[run],
            run,
            (("cause", cause),),
            float(totals[run]),
            "tasks",
        )
    both = Counter((one.run, one.cause.value, one.mode) for one in report.attributions)
    for (run, cause, mode), n in both.items():
        query = f"count({path('attributions', run=run, cause=cause, mode=mode)})"
        yield counted(
            query,
            n,
            "tasks_by_mode",
            (mode.lower(), *names.CAUSES[cause]),
            run=run,
            scope=(("cause", cause), ("mode", mode)),
            n=float(totals[run]),
            unit="tasks",
        )


def _behaviour(one: Behaviour) -> Iterator[Fact]:
    stem = path("behaviours", run=one.run, detector=one.detector)
    scope = (("behaviour", one.detector),)
    called = (one.detector.lower(), one.detector.lower().replace("_", " "))
    yield from said(one, stem, BEHAVIOUR, one.run, scope, called)
    if one.of_fail:
        yield _share(
            f"{stem}.in_fail",
            f"{stem}.of_fail",
            one.in_fail,
            one.of_fail,
            "behaviour_fail_share",
            ("failing", *called),
            one.run,
            scope,
        )
    if one.of_pass:
        yield _share(
            f"{stem}.in_pass",
            f"{stem}.of_pass",
            one.in_pass,
            one.of_pass,
            "behaviour_pass_share",
            ("passing", *called),
            one.run,
            scope,
        )
    if one.of_fail and one.of_pass:
        yield from _difference_in_passing(one, stem, scope, called)


def _difference_in_passing(one: Behaviour, stem: str, scope: Any, called: tuple[str, ...]) -> Iterator[Fact]:
    """The pass rate with the behaviour and without, and their difference."""
    having, lacking = one.in_fail + one.in_pass, one.of_fail + one.of_pass - one.in_fail - one.in_pass
    if not having or not lacking:
        return
    with_it = f"share({stem}.in_pass, plus({stem}.in_fail, {stem}.in_pass))"
    rest = f"minus({stem}.of_pass, {stem}.in_pass)"
    without = f"share({rest}, plus(minus({stem}.of_fail, {stem}.in_fail), {rest}))"
    rates = one.in_pass / having, (one.of_pass - one.in_pass) / lacking
    yield Fact(with_it, "rate", "behaviour_pass_with", ("pass with it", *called), rates[0], one.run, scope)
    yield Fact(without, "rate", "behaviour_pass_without", ("pass without", *called), rates[1], one.run, scope)
    yield Fact(
        f"minus({without}, {with_it})",
        "points",
        "behaviour_difference",
        ("difference in pass rate", "difference", *called),
        rates[1] - rates[0],
        one.run,
        scope,
    )


def _mechanism(one: Mechanism) -> Iterator[Fact]:
    stem = path("mechanisms", run=one.run, id=one.id)
    scope, called = (("mechanism", one.id),), (one.id.lower(),)
    yield from said(one, stem, MECHANISM, one.run, scope, called)
    yield Fact(
        f"minus({stem}.pass_without, {stem}.pass_with)",
        "points",
        "mechanism_difference",
        ("difference", "a difference of", *called),
        one.pass_without - one.pass_with,
        one.run,
        scope,
        low=one.low,
        high=one.high,
    )
    yield counted(
        f"count({stem}.rollouts)",
        len(one.rollouts),
        "mechanism_rollouts",
        ("failing rollouts", "covers", "rollouts", *called),
        run=one.run,
        scope=scope,
        unit="rollouts",
    )
    yield counted(
        f"plus({stem}.n_with, {stem}.n_without)",
        one.n_with + one.n_without,
        "mechanism_n",
        ("completed rollouts", *called),
        run=one.run,
        scope=scope,
        unit="rollouts",
    )


def _contrasts(report: Report) -> Iterator[Fact]:
    for one in report.contrasts:
        scope: Scope = (("contrast", one.id),)
        if one.task is not None:
            scope += (("task", one.task),)
        yield from said(one, path("contrasts", run=one.run, id=one.id), CONTRAST, one.run, scope)
    for found in report.divergences:
        stem = path("divergences", run=found.run, task=found.task, repeat=found.repeat)
        scope = (("task", found.task), ("repeat", str(found.repeat)))
        yield from said(found, stem, DIVERGENCE, found.run, scope)
        yield Fact(
            f"{stem}.passer.repeat",
            "number",
            "divergence_passer",
            ("passing", "repeat"),
            float(found.passer),
            found.run,
            scope,
        )


def _advice(report: Report) -> Iterator[Fact]:
    for one in report.recommendations:
        stem = path("recommendations", run=one.run, rank=one.rank)
        scope = (("recommendation", str(one.rank)),)
        yield from said(one, stem, ADVICE, one.run, scope)
        yield from said(one.gain, f"{stem}.gain", GAIN, one.run, scope, (one.mode.lower(),))
        yield counted(
            f"count({stem}.tasks)",
            len(one.tasks),
            "recommendation_tasks",
            ("tasks", "task"),
            run=one.run,
            scope=scope,
            unit="tasks",
        )
        yield Fact(f"{stem}.tasks", "ids", "recommendation_task_ids", ("tasks",), one.tasks, one.run, scope)
        yield Fact(
            f"{stem}.cause", "text", "recommendation_cause", ("cause",), one.cause.value, one.run, scope
        )
    for run, n in Counter(one.run for one in report.recommendations).items():
        yield counted(
            f"count({path('recommendations', run=run)})", n, "recommendations", ("recommendations",), run=run
        )


def _counted(report: Report) -> Iterator[Fact]:
    """How many there are of what the report lists, by run."""
    for name, found in (
        ("findings", report.findings),
        ("signatures", report.signatures),
        ("behaviours", report.behaviours),
        ("mechanisms", report.mechanisms),
        ("contrasts", report.contrasts),
        ("slices", report.slices),
    ):
        for run, n in Counter(one.run for one in found).items():
            yield counted(f"count({path(name, run=run)})", n, f"n_{name}", (name,), run=run)
    yield counted("count(runs)", len(report.runs), "n_runs", ("runs",))
    for one in report.findings:
        scope = (("finding", one.id), ("task", one.task))
        yield from said(one, path("findings", run=one.run, id=one.id), FINDING, one.run, scope)
    both = Counter((one.run, one.standing) for one in report.mechanisms)
    for (run, standing), n in both.items():
        yield counted(
            f"count({path('mechanisms', run=run, standing=standing)})",
            n,
            f"n_{standing}s",
            (f"{standing}s", standing),
            run=run,
        )


def _gaps(report: Report) -> Iterator[Fact]:
    yield counted("count(gaps)", len(report.gaps), "n_gaps", ("gaps", "gap"))
    total = max(report.skipped_total, len(report.skipped))
    yield counted("skipped_total", total, "skipped_total", ("skipped", "could not be read"), unit="lines")
    for gap in report.gaps:
        stem = path("gaps", what=gap.what, why=gap.why)
        yield Fact(f"{stem}.why", "text", "gap_why", ("why",), gap.why, scope=(("gap", gap.what),))
        yield Fact(f"{stem}.what", "text", "gap_what", ("gap",), gap.what, scope=(("gap", gap.what),))


def _card(held: Any, query: str, called: tuple[str, ...]) -> Iterator[Fact]:
    """Every number of the accuracy card, called by the words on the way to it."""
    if isinstance(held, list | tuple):
        for inner in held:
            if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                head, _, last = query.rpartition(".")
                found = f"{head}.{path(last, name=inner['name'])}" if head else path(last, name=inner["name"])
                yield from _card(inner, found, (*called, inner["name"].lower()))
        return
    for key, value in held.items():
        here = f"{query}.{step(str(key))}"
        if isinstance(value, dict | list | tuple):
            yield from _card(value, here, (*called, str(key).lower()))
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            kind = "count" if isinstance(value, int) else "number"
            told = tuple(reversed((*called, str(key).lower())))
            # A value with its interval is one measure; a number by itself is another.
            about = called if "value" in held else (*called, str(key).lower())
            scope = (("accuracy", " / ".join(about)),)
            yield Fact(here, kind, f"accuracy_{key}", (*told, "value", "n"), float(value), scope=scope)
        elif isinstance(value, str):
            yield Fact(here, "text", f"accuracy_{key}", (str(key).lower(),), value)
