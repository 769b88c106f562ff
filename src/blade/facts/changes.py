"""Turn comparisons of runs into facts: changes, verdicts, terms, flips, series and gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blade.facts import names
from blade.facts.making import Says, Scope, counted, number, said, told
from blade.facts.query import path, step
from blade.model import Comparison, Fact, Gate, Matrix, Report, Series, Term

COMPARISON = (
    Says("delta", "points", ("change", "delta", "difference", "score change"), "delta"),
    Says("verdict", "text", ("verdict", "on these tasks"), "verdict"),
    Says("verdict_new_tasks", "text", ("on new tasks", "verdict on new tasks"), "verdict_new_tasks"),
    Says(
        "margin",
        "points",
        ("margin", "equivalence margin", "equivalence within", "margin of equivalence"),
        "margin",
    ),
    Says("score_baseline", "rate", ("baseline", "baseline score"), "score_baseline"),
    Says("score_candidate", "rate", ("candidate", "candidate score"), "score_candidate"),
    Says("delta_common", "points", ("change on common tasks", "change", "common tasks"), "delta_common"),
    Says(
        "common_baseline", "rate", ("baseline on common tasks", "baseline", "common tasks"), "common_baseline"
    ),
    Says(
        "common_candidate",
        "rate",
        ("candidate on common tasks", "candidate", "common tasks"),
        "common_candidate",
    ),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "comparison_p_adjusted"),
    Says("p_adjusted_new", "p", ("adjusted p on new tasks",), "comparison_p_adjusted_new"),
    Says("score_name", "text", ("score",), "score_name"),
    Says("refused", "text", ("refused",), "refused"),
    Says("bridge_note", "text", ("note",), "bridge_note"),
    Says("missing_run", "text", ("missing run",), "missing_run"),
)
TESTED = (
    Says("estimate", "points", ("estimate", "change", "effect"), "estimate", "", "", "low", "high"),
    Says("low", "points", ("lower end",), "estimate_low"),
    Says("high", "points", ("upper end",), "estimate_high"),
    Says("low90", "points", ("lower end, 90%",), "estimate_low90"),
    Says("high90", "points", ("upper end, 90%",), "estimate_high90"),
    Says("p", "p", ("p", "p-value"), "test_p"),
    Says("name", "text", ("test",), "test_name"),
)
TERM = (
    Says("value", "points", ("change", "accounts for", "term"), "term", "tasks", "n", "low", "high"),
    Says("low", "points", ("lower end",), "term_low"),
    Says("high", "points", ("upper end",), "term_high"),
    Says("p", "p", ("p",), "term_p"),
    Says("n", "count", ("tasks", "n"), "term_n", "tasks"),
    Says("expected", "points", ("expected", "share"), "term_expected"),
    Says("p_excess", "p", ("p",), "term_p_excess"),
    Says("side", "text", ("side",), "term_side"),
    Says("term", "text", ("term",), "term_name"),
)
POWER = (
    Says("se", "points", ("standard error",), "power_se"),
    Says("mde", "points", ("smallest detectable", "mde", "minimum detectable effect"), "mde"),
    Says("mde_these", "points", ("smallest detectable", "these tasks"), "mde_these"),
    Says("p_heterogeneity", "p", ("same for every task", "heterogeneity"), "p_heterogeneity"),
    Says("target", "points", ("target", "resolve"), "power_target"),
    Says("repeats_needed", "count", ("repeats", "needed"), "repeats_needed", "repeats"),
    Says("tasks_needed", "count", ("further tasks", "more tasks", "needed"), "tasks_needed", "tasks"),
)
CHURN = (
    Says("gains", "points", ("gains", "gained", "rose"), "churn_gains"),
    Says("losses", "points", ("losses", "lost", "fell"), "churn_losses"),
    Says(
        "n_up",
        "count",
        ("tasks rose", "tasks improved", "tasks up", "better", "gained", "rose"),
        "n_up",
        "tasks",
    ),
    Says(
        "n_down",
        "count",
        ("fell", "tasks fell", "tasks worsened", "tasks down", "worse", "lost"),
        "n_down",
        "tasks",
    ),
    Says("null_churn", "points", ("by chance", "churn"), "null_churn"),
    Says("null_low", "points", ("by chance",), "null_churn_low"),
    Says("null_high", "points", ("by chance",), "null_churn_high"),
    Says("null_changed", "count", ("would change", "chance"), "null_changed", "tasks"),
    Says("p", "p", ("p", "churn"), "churn_p"),
)
SURE = (
    Says("up", "count", ("surely better", "better"), "sure_up", "tasks"),
    Says("down", "count", ("surely worse", "worse"), "sure_down", "tasks"),
    Says("null_up", "count", ("chance", "noise", "better"), "sure_null_up", "tasks"),
    Says("null_down", "count", ("chance", "noise", "worse"), "sure_null_down", "tasks"),
)
SHIFT = (
    Says("baseline", "number", ("baseline",), "shift_baseline"),
    Says("candidate", "number", ("candidate",), "shift_candidate"),
    Says("change", "number", ("change",), "shift_change", "tasks", "n", "low", "high"),
    Says("low", "number", ("lower end",), "shift_low"),
    Says("high", "number", ("upper end",), "shift_high"),
    Says("p", "p", ("p",), "shift_p"),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "shift_p_adjusted"),
    Says("n", "count", ("tasks", "n"), "shift_n", "tasks"),
    Says("status", "text", ("status",), "shift_status"),
)
DERIVED = (
    Says("baseline", "number", ("baseline",), "derived_baseline"),
    Says("candidate", "number", ("candidate",), "derived_candidate"),
    Says("change", "number", ("change",), "derived_change", "tasks", "n", "low", "high"),
    Says("low", "number", ("lower end",), "derived_low"),
    Says("high", "number", ("upper end",), "derived_high"),
    Says("n", "count", ("tasks", "n"), "derived_n", "tasks"),
)
MOVER = (
    Says("value", "points", ("accounts for", "moved"), "mover", "", "", "low", "high"),
    Says("low", "points", ("lower end",), "mover_low"),
    Says("high", "points", ("upper end",), "mover_high"),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "mover_p_adjusted"),
    Says("share", "rate", ("share", "of the change"), "mover_share"),
    Says("text", "text", ("mover",), "mover_text"),
)
FLIP = (
    Says("change", "points", ("change",), "flip_change"),
    Says("p_better", "p", ("p(candidate better)", "p(better)", "better"), "flip_p_better"),
    Says(
        "p_class_change",
        "p",
        ("p(bucket changed)", "bucket truly changed", "class change"),
        "flip_p_class_change",
    ),
)
PLACED = (
    Says("score", "rate", ("score",), "placed_score"),
    Says("cost", "number", ("cost", "dollars"), "placed_cost"),
    Says("tokens", "number", ("output tokens", "tokens"), "placed_tokens"),
)
CHECKPOINT = (
    Says("score", "rate", ("score",), "checkpoint_score"),
    Says("change", "points", ("change", "against the first"), "checkpoint_change", "", "", "low", "high"),
    Says("low", "points", ("lower end",), "checkpoint_low"),
    Says("high", "points", ("upper end",), "checkpoint_high"),
    Says("p_adjusted", "p", ("adjusted p", "p adjusted"), "checkpoint_p_adjusted"),
)
CHECK = (
    Says("baseline", "number", ("baseline",), "gate_baseline"),
    Says("value", "number", ("candidate", "value"), "gate_value"),
    Says("change", "number", ("change",), "gate_change", "", "", "low", "high"),
    Says("low", "number", ("lower end",), "gate_low"),
    Says("high", "number", ("upper end",), "gate_high"),
    Says("bound", "number", ("bound", "may be worse"), "gate_bound"),
    Says("allowed", "number", ("allowed",), "gate_allowed"),
    Says("n", "count", ("tasks", "n"), "gate_n", "tasks"),
    Says("verdict", "text", ("verdict",), "gate_check_verdict"),
    Says("text", "text", ("check",), "gate_text"),
)


def of_changes(report: Report) -> Iterator[Fact]:
    """What is said of runs held against one another."""
    for one in report.comparisons:
        yield from _comparison(one)
    if report.matrix is not None:
        yield from _matrix(report.matrix)
    if report.series is not None:
        yield from _series(report.series)
    if report.gate is not None:
        yield from _gate(report.gate)
    if report.comparisons:
        yield counted("count(comparisons)", len(report.comparisons), "n_comparisons", ("comparisons",))


def _comparison(one: Comparison) -> Iterator[Fact]:
    stem = path("comparisons", baseline=one.baseline, candidate=one.candidate)
    pair: Scope = (("baseline", one.baseline), ("candidate", one.candidate))
    yield from said(one, stem, COMPARISON, None, pair)
    for tested in one.tests:
        inner = f"{stem}.{path('tests', question=tested.question, name=tested.name)}"
        yield from said(
            tested, inner, TESTED, None, (*pair, ("question", tested.question)), (tested.question.lower(),)
        )
    if one.power is not None:
        yield from said(one.power, f"{stem}.power", POWER, None, pair)
    yield from told(f"{stem}.notes", "comparison_notes", one.notes, None, pair)
    yield from _terms(one.bridge, f"{stem}.bridge", (*pair, ("view", "bridge")))
    for view in one.views:
        inner = f"{stem}.{path('views', name=view.name)}.terms"
        scope = (*pair, ("view", view.name))
        yield from _terms(view.terms, inner, scope)
        if view.note:
            query = f"{stem}.{path('views', 'note', name=view.name)}"
            yield Fact(query, "text", "view_note", ("note",), view.note, None, scope)
    for mover in one.movers:
        inner = f"{stem}.{path('movers', view=mover.view, term=mover.term)}"
        yield from said(mover, inner, MOVER, None, (*pair, ("term", mover.term)), (mover.term.lower(),))
        yield from told(f"{inner}.beside", "mover_beside", mover.beside, None, (*pair, ("term", mover.term)))
    yield from _moved(one, stem, pair)
    yield from _aligned(one, stem, pair)
    for shift in one.shifts:
        inner = f"{stem}.{path('shifts', kind=shift.kind, name=shift.name)}"
        yield from said(shift, inner, SHIFT, None, (*pair, ("shift", shift.name)), (shift.name.lower(),))
    for derived in one.derived:
        inner = f"{stem}.{path('derived', name=derived.name, k=derived.k)}"
        scope = (*pair, ("measure", derived.name), *((("k", str(derived.k)),) if derived.k else ()))
        yield from said(derived, inner, DERIVED, None, scope, names.phrases(derived.name, derived.k))
    for setting in one.config_diff:
        inner = f"{stem}.{path('config_diff', key=setting.key)}"
        for side in ("baseline", "candidate"):
            text = getattr(setting, side)
            if text is not None:
                yield Fact(
                    f"{inner}.{side}",
                    "text",
                    f"setting_{side}",
                    (setting.key.lower(), side),
                    text,
                    None,
                    (*pair, ("setting", setting.key)),
                )


def _terms(terms: tuple[Term, ...], stem: str, scope: Scope) -> Iterator[Fact]:
    head, _, last = stem.rpartition(".")
    for term in terms:
        found = f"{head}.{path(last, term=term.term, side=term.side)}"
        yield from said(term, found, TERM, None, (*scope, ("term", term.term)), (term.term.lower(),))
    if terms:
        called = ("terms", "term", "sum of")
        yield counted(f"count({stem})", len(terms), "n_terms", called, scope=scope)
        yield Fact(
            f"sum({stem}.value)",
            "points",
            "term_sum",
            ("sum", "total"),
            sum(term.value for term in terms),
            None,
            scope,
        )


def _moved(one: Comparison, stem: str, pair: Scope) -> Iterator[Fact]:
    if one.churn is not None:
        yield from said(one.churn, f"{stem}.churn", CHURN, None, pair)
        yield Fact(
            f"minus({stem}.churn.gains, {stem}.churn.losses)",
            "points",
            "churn",
            ("churn", "moved"),
            one.churn.gains - one.churn.losses,
            None,
            pair,
        )
        yield counted(
            f"plus({stem}.churn.n_up, {stem}.churn.n_down)",
            one.churn.n_up + one.churn.n_down,
            "n_changed",
            ("tasks changed", "moved", "changed bucket"),
            scope=pair,
            unit="tasks",
        )
    if one.sure is not None:
        yield from said(one.sure, f"{stem}.sure", SURE, None, pair)
    for move in one.transitions:
        inner = f"{stem}.{path('transitions', before=move.before, after=move.after)}"
        scope = (*pair, ("before", move.before), ("after", move.after))
        fields = (
            Says(
                "n",
                "count",
                (f"{move.after} in the candidate", "tasks", f"{move.before} to {move.after}"),
                "transition",
                "tasks",
            ),
            Says(
                "sure",
                "count",
                (f"{move.after} in the candidate", "sure", f"{move.before} to {move.after}"),
                "transition_sure",
                "tasks",
            ),
        )
        yield from said(move, inner, fields, None, scope)
    for flip in one.flips:
        inner = f"{stem}.{path('flips', task=flip.task)}"
        scope = (*pair, ("task", flip.task))
        yield from said(flip, inner, FLIP, None, scope)
        for side, (total, n) in (("baseline", flip.baseline), ("candidate", flip.candidate)):
            held: tuple[tuple[str, Any, str], ...] = (("sum", total, "passes"), ("n", n, "repeats"))
            for field, value, called in held:
                if number(value) is not None:
                    yield Fact(
                        f"{inner}.{side}.{field}",
                        "count",
                        f"flip_{side}_{field}",
                        (side, called),
                        number(value),
                        None,
                        scope,
                    )


def _aligned(one: Comparison, stem: str, pair: Scope) -> Iterator[Fact]:
    called = {
        "common": (
            "in both runs, compared",
            "common tasks",
            "tasks in common",
            "both runs have",
            "shared tasks",
        ),
        "added": ("only in the candidate", "added", "only the candidate has", "new tasks"),
        "removed": ("only in the baseline", "removed", "only the baseline has"),
        "modified": ("same key, other content", "modified", "changed content"),
        "missing_baseline": (
            "expected of the baseline",
            "missing in the baseline",
        ),
        "missing_candidate": (
            "expected of the candidate",
            "missing in the candidate",
        ),
    }
    for field, phrases in called.items():
        tasks = getattr(one.alignment, field)
        yield counted(
            f"{stem}.alignment.{field}.n", len(tasks), f"n_{field}", phrases, scope=pair, unit="tasks"
        )
    yield Fact(
        f"{stem}.alignment.matched_by",
        "text",
        "matched_by",
        ("matched by",),
        one.alignment.matched_by,
        None,
        pair,
    )


def _matrix(one: Matrix) -> Iterator[Fact]:
    yield counted(
        "matrix.n_tasks", one.n_tasks, "matrix_n_tasks", ("tasks that all runs have", "tasks"), unit="tasks"
    )
    yield from told("matrix.notes", "matrix_notes", one.notes)
    for setting, text in one.settings:
        query = f"matrix.{path('settings', 'text', setting=setting)}"
        yield Fact(query, "text", "setting_effect", (setting.lower(),), text, None, (("setting", setting),))
    for placed in one.placed:
        yield from said(placed, f"matrix.{path('placed', run=placed.run)}", PLACED, placed.run)
    for run, tasks in one.only_one.items():
        yield counted(
            f"matrix.only_one.{step(run)}.n",
            len(tasks),
            "only_one",
            ("tasks that it alone solves", "alone"),
            run=run,
            unit="tasks",
        )
    for run, expected in one.expected_alone.items():
        if number(expected) is not None:
            yield Fact(
                f"matrix.expected_alone.{step(run)}",
                "count",
                "expected_alone",
                ("by chance", "alone"),
                number(expected),
                run,
            )
    for field, called in (("none_solves", "no run solves"), ("all_solve", "all runs solve")):
        yield counted(f"matrix.{field}.n", len(getattr(one, field)), field, (called,), unit="tasks")
    fields = (
        Says("passes", "count", ("passes", "of"), "alone_passes", "rollouts", "repeats"),
        Says("repeats", "count", ("repeats",), "alone_repeats", "rollouts"),
        Says("others", "count", ("others", "other runs"), "alone_others", "rollouts"),
        Says("p_chance", "p", ("by chance", "p"), "alone_p"),
    )
    for alone in one.alone:
        stem = f"matrix.{path('alone', run=alone.run, task=alone.task)}"
        yield from said(alone, stem, fields, alone.run, (("task", alone.task),))


def _series(one: Series) -> Iterator[Fact]:
    fields = (
        Says("n_tasks", "count", ("tasks",), "series_n_tasks", "tasks"),
        Says("slope", "points", ("slope", "trend", "a checkpoint"), "slope", "", "", "low", "high"),
        Says("low", "points", ("lower end",), "slope_low"),
        Says("high", "points", ("upper end",), "slope_high"),
        Says("p", "p", ("p",), "slope_p"),
        Says("first_different", "text", ("first that differs",), "first_different"),
        Says("null_learned", "count", ("by chance", "learned"), "null_learned"),
        Says("null_forgotten", "count", ("by chance", "forgotten"), "null_forgotten"),
    )
    yield from said(one, "series", fields)
    yield from told("series.notes", "series_notes", one.notes)
    for point in one.checkpoints:
        yield from said(point, f"series.{path('checkpoints', run=point.run)}", CHECKPOINT, point.run)
    for field, n in (
        ("learned", max(one.n_learned, len(one.learned))),
        ("forgotten", max(one.n_forgotten, len(one.forgotten))),
    ):
        yield counted(f"series.{field}.n", n, field, (field, f"{field} tasks"), unit="tasks")
        for task, p in getattr(one, field)[:1000]:
            yield Fact(
                f"series.{path(f'{field}.tasks', task=task)}.p",
                "p",
                f"{field}_p",
                (field,),
                float(p),
                None,
                (("task", task),),
            )


def _gate(one: Gate) -> Iterator[Fact]:
    yield Fact("gate.verdict", "text", "gate_verdict", ("gate", "verdict"), one.verdict)
    yield from told("gate.notes", "gate_notes", one.notes)
    for check in one.checks:
        stem = f"gate.{path('checks', candidate=check.candidate, metric=check.metric, tier=check.tier)}"
        scope = (("candidate", check.candidate), ("metric", check.metric))
        yield from said(check, stem, CHECK, None, scope, (check.metric.lower(),))
