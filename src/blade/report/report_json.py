"""Write report.json: the nouns of the report as JSON values, under the names of the wire format `blade.report/2`.

Each noun is written field by field, as `model` declares it; the tables below hold what the wire says otherwise.
`scripts/report_schema.py` makes report.schema.json of the same tables.

    blade.report/1  first version
    blade.report/2  claims are {id, value, text, query}: a query over the tables or of the engine; no indents;
                    trust, groups, unexplained and task_matrix instead of findings, behaviours, signatures,
                    meanings, mechanisms, contrasts and divergences
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from blade import hostile, model
from blade.model import Cause, Evidence, Group, Outcome, Report, Term
from blade.model.enums import Count, Share
from blade.report.blocks import Claim, Section, claims_of
from blade.report.printed_names import largest, lost_by_side, total
from blade.report.run_facts import Facts, facts, ordered

SCHEMA = "blade.report/2"
MAX_SKIPPED = 1000
MAX_KEYS = 1000  # task keys of one list on the wire; its count says how many there are


def render(report: Report, sections: tuple[Section, ...] | None = None) -> str:
    """The report as JSON text with the claims of these pages; unless given, of the report's own."""
    from blade.report.chapters import chapters

    claims = claims_of(chapters(report) if sections is None else sections).listed
    return hostile.json_text(laid_out(document(report, claims)))


def document(report: Report, claims: Sequence[Claim] = ()) -> dict[str, Any]:
    """The report as JSON values, keys in the order of the format's description."""
    wired: dict[str, Any] = values(ordered(report))
    return {**wired, "claims": msgspec.to_builtins(list(claims))}


def laid_out(document: dict[str, Any]) -> str:
    """JSON with a line for each key and each entry of a list: quick to read through, and to compare."""

    def entries(value: Any) -> str:
        is_long = isinstance(value, list) and value
        return "[\n" + ",\n".join(map(_compact, value)) + "\n]" if is_long else _compact(value)

    return "{\n" + ",\n".join(f"{_compact(key)}: {entries(value)}" for key, value in document.items()) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def indented(document: dict[str, Any]) -> str:
    """A short document as JSON text with an indent, in which nothing deceives whoever prints it."""
    return hostile.json_text(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


# ---- Nouns as JSON values ------------------------------------------------------------------------


def values(value: Any, is_float: bool = False) -> Any:
    """A noun, or what it holds, as JSON has it; `is_float` says that whole numbers in it are measured ones."""
    if isinstance(value, msgspec.Struct):
        written = ((name, take(value), of) for name, take, of in members(type(value)))
        return {name: values(part, of) for name, part, of in written if part is not UNSET}
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return number(value) if is_float or isinstance(value, float) else int(value)
    if isinstance(value, Mapping):
        return {str(values(key)): values(part, is_float) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [values(part, is_float) for part in value]
    return values(value.item(), is_float) if hasattr(value, "item") else str(value)


def number(value: float | None) -> float | None:
    """A measured number; JSON has no nan and no infinity, and adding 0.0 turns -0.0 into 0.0."""
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None


@cache
def members(noun: type) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """What the wire has of a noun: its names in order, how each is taken, and whether it is a measured number."""
    kinds = types(noun)
    forms = FORMS.get(noun, {})
    return tuple(
        (name, forms[name][1] if name in forms else attrgetter(name), "float" in str(kind))
        for name, kind in kinds.items()
    )


def types(noun: type) -> dict[str, Any]:
    """The names that the wire has of a noun, each with its type."""
    hints = get_type_hints(noun, include_extras=True)
    names = ORDER.get(noun.__name__) or noun.__struct_fields__  # type: ignore[attr-defined]
    forms = FORMS.get(noun, {})
    return {name: forms[name][0] if name in forms else hints[name] for name in names}


# ---- What the wire says otherwise ----------------------------------------------------------------


class Keys(msgspec.Struct, frozen=True):
    """Tasks: all are counted, the first are listed."""

    n: Count
    tasks: tuple[str, ...]


class RankedTask(msgspec.Struct, frozen=True):
    task: str
    p: Share  # posterior probability


class RankedTasks(msgspec.Struct, frozen=True):
    """Tasks, the surest first: all are counted, the first are listed."""

    n: Count
    tasks: Annotated[tuple[RankedTask, ...], Meta(extra_json_schema={"maxItems": MAX_KEYS})]


class Counted(msgspec.Struct, frozen=True):
    """What the rollouts of a task add up to."""

    sum: float  # passes, or sum of scores
    n: Count  # repeats


class Place(msgspec.Struct, frozen=True):
    """One rollout."""

    run: str
    task: str
    repeat: int


class Effect(msgspec.Struct, frozen=True):
    """What the runs together say of a setting."""

    setting: str
    text: str


class LabelPair(msgspec.Struct, frozen=True):
    """What two authors said of the same tasks, and how often."""

    first: Cause
    second: Cause
    n: Count


class Quote(msgspec.Struct, frozen=True):
    """Words of one rollout, of a step or of a field."""

    task: str
    repeat: int | None
    step: Count | UnsetType
    field: str | UnsetType | None
    text: str | None


class JudgedTask(msgspec.Struct, frozen=True):
    """What somebody holds to be the cause of a failed task; it stands in the rows."""

    id: str
    run: str
    task: str
    cause: Cause
    mode: str  # a name for what happened; may be empty
    mechanism: str  # what happened, in a sentence
    by: str
    at: str  # when, in UTC
    proposed: Cause | None  # what the engine proposed when it was given
    condition: str  # the condition that the rollout meets, where it was judged by one; else empty
    evidence: tuple[Evidence, ...]  # none where the condition alone stands for it


def _keys(tasks: Sequence[str]) -> Keys:
    return Keys(len(tasks), tuple(tasks[:MAX_KEYS]))


def _ranked(tasks: Sequence[tuple[str, float]], n: int) -> RankedTasks:
    return RankedTasks(max(int(n), len(tasks)), tuple(RankedTask(task, p) for task, p in tasks[:MAX_KEYS]))


def _quote(group: Group) -> Quote | None:
    if (quote := group.quote) is None:
        return None
    step, field = (UNSET, quote.field) if quote.step is None else (quote.step, UNSET)
    return Quote(quote.task, quote.repeat, step, field, quote.quote)


def _addend(term: Term) -> float:
    if not math.isfinite(term.value):
        raise ValueError(f"the term {term.term!r} has no value, so its view cannot add up")
    return term.value


def _judgements(report: Report) -> list[JudgedTask]:
    names = [name for name in JudgedTask.__struct_fields__ if name not in ("run", "evidence")]
    return [
        JudgedTask(run=run, evidence=entry.shown(run), **{name: getattr(entry, name) for name in names})
        for run, judgements in report.judgements.items() for entry in judgements
    ]


def _of(kind: Any, path: str) -> tuple[Any, Callable[[Any], Any]]:
    """What the noun has elsewhere."""
    return kind, attrgetter(path)


def _or_null(name: str) -> tuple[Any, Callable[[Any], Any]]:
    """An empty text as null."""
    return str | None, lambda noun: getattr(noun, name) or None


def _counted_keys(name: str) -> tuple[Any, Callable[[Any], Any]]:
    return Keys, lambda noun: _keys(getattr(noun, name))


# Noun -> name on the wire -> its type there, and how it is taken from the noun.
FORMS: dict[type, dict[str, tuple[Any, Callable[[Any], Any]]]] = {
    Report: {
        "schema": (Literal["blade.report/2"], lambda report: SCHEMA),
        "funnel": _of(tuple[model.Funnel, ...], "funnels"),
        "claims": (tuple[Claim, ...], lambda report: ()),  # added by `document`: they are of the pages
        "skipped": (tuple[model.Skipped, ...], lambda report: report.skipped[:MAX_SKIPPED]),
        "skipped_total": (Count, lambda report: max(report.skipped_total, len(report.skipped))),
        "reported": _of(tuple[model.Compared, ...], "compared"),
        "judgements": (tuple[JudgedTask, ...], _judgements),
    },
    model.Run: {
        "settings": (Mapping[str, str], lambda run: dict(sorted(run.settings.items()))),
        "expected_rollouts": _of(Count, "coverage.expected"),
        "expected_from": _of(str, "coverage.expected_from"),
        **{
            name: _of(Count, f"coverage.{name}")
            for name in "scored failed masked lost duplicates repeats superseded unexpected "
            "identical_duplicates unnumbered_copies".split()
        },
    },
    Evidence: {
        # only there where a placeholder stands in the quote for what may not be shared
        "redacted": (Literal[True] | UnsetType, lambda evidence: True if evidence.is_redacted else UNSET)
    },
    Group: {"quote": (Quote | None, _quote)},
    model.Attribution: {
        "group": _or_null("group"),  # id of the group; null: unexplained, or judged otherwise
        "text": _of(str, "mechanism"),  # what the task's own rows show, in a sentence
        "judged_by": _or_null("judged_by"),  # who gave the cause; null: the engine
    },
    model.Agreement: {
        "confusion": (tuple[LabelPair, ...], lambda both: [LabelPair(*pair) for pair in both.confusion])
    },
    model.Recommendation: {
        "group": _or_null("group"),  # id of the group it repairs
    },
    model.Comparison: {
        # smallest detectable effect, on new tasks
        "mde": (float | None, lambda pair: pair.power.mde if pair.power is not None else None),
    },
    Term: {
        "value": (float, _addend),  # points of score; positive: the candidate gains
    },
    model.Flip: {
        "baseline": (Counted, lambda flip: Counted(*flip.baseline)),
        "candidate": (Counted, lambda flip: Counted(*flip.candidate)),
    },
    model.Alignment: {
        name: _counted_keys(name)
        for name in "common added removed modified missing_baseline missing_candidate common_candidate "
        "modified_candidate".split()
    },
    model.Mover: {"rollouts": (tuple[Place, ...], lambda mover: [Place(*place) for place in mover.rollouts])},
    model.Matrix: {
        "only_one": (
            Mapping[str, Keys],
            lambda matrix: {run: _keys(tasks) for run, tasks in sorted(matrix.only_one.items())},
        ),
        "none_solves": _counted_keys("none_solves"),
        "all_solve": _counted_keys("all_solve"),
        "settings": (tuple[Effect, ...], lambda matrix: [Effect(*effect) for effect in matrix.settings]),
        # run -> tasks that it alone would solve if passes fell to the runs at random
        "expected_alone": (Mapping[str, float], lambda matrix: dict(sorted(matrix.expected_alone.items()))),
    },
    model.Series: {
        "learned": (RankedTasks, lambda series: _ranked(series.learned, series.n_learned)),
        "forgotten": (RankedTasks, lambda series: _ranked(series.forgotten, series.n_forgotten)),
    },
}  # fmt: skip

# Noun -> its names on the wire, where they are others than its fields or in another order.
ORDER: dict[str, list[str]] = {
    noun: names.split() for noun, _, names in (
        line.partition(":") for line in Path(__file__).with_name("wire_order.txt").read_text(encoding="utf-8").splitlines()
    )
}


# ---- The metrics sidecar of a BLADE-ready package ------------------------------------------------


def metrics_text(report: Report) -> str:
    """metrics.json: one flat object for one run, `{"runs": {name: object}}` for several; rates as fractions."""
    by_run = {run.run.name: metrics(run) for run in facts(report)}
    return indented(next(iter(by_run.values())) if len(by_run) == 1 else {"runs": by_run})


def metrics(facts: Facts) -> dict[str, Any]:
    """The keys that tools around BLADE reports read."""
    run, buckets, score, losses = facts.run, facts.buckets, facts.score, facts.losses
    judged = run.has_pass_rate
    passed = run.outcomes[Outcome.PASSED] if judged else None
    scored = sum(n for outcome, n in run.outcomes.items() if outcome not in (Outcome.MASKED, Outcome.MISSING))
    at_k, (mode, lost) = facts.at_most_k("pass_at_k"), largest(facts) or (None, 0.0)
    by_cause = {cause.value: number(math.fsum(loss.lost for loss in losses if loss.cause is cause)) for cause in Cause}
    return {
        "model": run.model,
        "model_name": run.model,
        "benchmark": run.benchmark,
        "score_name": run.score_name,
        "score": number(run.score),
        "score_low": number(score.low),
        "score_high": number(score.high),
        "score_n": score.n,
        "score_method": score.method,
        "pass_at_1": _value(facts, "pass_at_1"),
        "pass_at_k": number(at_k.value) if at_k else None,
        "k": at_k.k if at_k else None,
        "consistency": _value(facts, "consistency"),
        "coverage": _value(facts, "coverage"),
        "total_tasks": run.n_tasks,
        "num_tasks": run.n_tasks,
        "total_rollouts": run.n_rollouts,
        "num_rollouts": run.n_rollouts,
        "expected_rollouts": run.coverage.expected,
        "passed_rollouts": passed,
        "failed_rollouts": scored - passed if passed is not None else None,
        "always_pass_tasks": len(buckets.always) if judged else None,
        "sometimes_pass_tasks": len(buckets.sometimes) if judged else None,
        "always_fail_tasks": len(buckets.never) if judged else None,
        "missing_tasks": len(buckets.missing),
        "repeats": run.coverage.repeats,
        "unexplained": number(facts.unexplained.points) if facts.unexplained is not None else None,
        "losses": {side: number(points) for side, points in lost_by_side(losses).items()} if losses else None,
        "losses_by_cause": by_cause if losses else None,  # they add up to 1 - score
        # the mode that costs most: its name, the failed tasks it labels, its share of the loss
        "dominant_failure_type": mode,
        "dominant_failure_count": sum(cause.mode == mode for cause in facts.attributions) if mode is not None else None,
        "dominant_failure_fraction": number(lost / total(losses)) if mode is not None else None,
    }


def _value(facts: Facts, name: str) -> float | None:
    measure = facts.measure(name)
    return number(measure.value) if measure else None
