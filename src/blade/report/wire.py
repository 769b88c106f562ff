"""Write a report in the wire format `blade.report/2`, and nothing that is not promised by it."""

# History of the format, one line per version:
#   blade.report/1  first version
#   blade.report/2  claims are {id, value, text, query}: a query over the tables or of the engine; no indents;
#                   trust, groups, unexplained and task_matrix instead of findings, behaviours, signatures,
#                   meanings, mechanisms, contrasts and divergences

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from blade.model import (
    Buckets,
    Compared,
    Funnel,
    Gap,
    Health,
    Measure,
    Report,
    Run,
    Skipped,
    Slice,
    TaskResult,
)
from blade.report import wire_comparisons as wire_compared
from blade.report import wire_conclusions as concluded
from blade.report.chapters import chapters
from blade.report.claims import Claim, claims_of
from blade.report.order import ordered
from blade.report.sections import Figure
from blade.report.wire_conclusions import evidence, number

SUFFIX = ".json"
SCHEMA = "blade.report/2"
MAX_SKIPPED = 1000

# JSON allows these raw, but they deceive whoever prints the file: C1 controls, bidi marks and overrides, line
# separators, tag characters; lone surrogates cannot be encoded at all. Escaped, they parse to the same text.
_DECEIVING = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def render(report: Report, figures: tuple[Figure, ...] = (), claims: Sequence[Claim] | None = None) -> str:
    """The report as JSON text; of figures only what their captions claim is part of the wire.

    `claims` are those of the pages; unless told, those of the report's own.
    """
    if claims is None:
        claims = claims_of(chapters(report, figures)).listed
    return escaped(laid_out(document(report, claims)))


def laid_out(document: dict[str, Any]) -> str:
    """JSON with a line for each key and each entry of a list: quick to read through, and to compare."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(_compact(entry) for entry in value)
            lines.append(f"{_compact(key)}: [\n{entries}\n]")
        else:
            lines.append(f"{_compact(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def escaped(text: str) -> str:
    """JSON text in which nothing deceives whoever prints it."""
    return _DECEIVING.sub(lambda hit: json.dumps(hit[0])[1:-1], text)


def document(report: Report, claims: Sequence[Claim] = ()) -> dict[str, Any]:
    """The report as JSON values, keys in the order of the format's description."""
    report = ordered(report)
    return {
        "schema": SCHEMA,  # name and version of this format
        "made_by": dict(report.made_by),  # blade: version; command: as it was typed
        "runs": [_run(run) for run in report.runs],
        "measures": [_measure(measure) for measure in report.measures],
        "buckets": [_buckets(buckets) for buckets in report.buckets],
        "tasks": [_task(task) for task in report.tasks],
        "health": [_health(health) for health in report.health],
        "funnel": [_funnel(funnel) for funnel in report.funnels],
        "slices": [_slice(piece) for piece in report.slices],
        "trust": [concluded.trust(one) for one in report.trust],  # the most important first
        "groups": [concluded.group(one) for one in report.groups],  # of each run in the order of print
        "unexplained": [concluded.unexplained(one) for one in report.unexplained],
        "task_matrix": concluded.task_matrix(report.task_matrix) if report.task_matrix is not None else None,
        "attributions": [concluded.attribution(one) for one in report.attributions],
        "losses": [concluded.loss(one) for one in report.losses],
        "run_causes": [concluded.run_cause(one) for one in report.run_causes],
        "comparisons": [wire_compared.comparison(one) for one in report.comparisons],
        "recommendations": [concluded.recommendation(one) for one in report.recommendations],
        "claims": [_claim(claim) for claim in claims],  # what the pages state, in the order of print
        "skipped": [_skipped(skipped) for skipped in report.skipped[:MAX_SKIPPED]],
        "skipped_total": max(report.skipped_total, len(report.skipped)),  # all of them, shown or not
        "gaps": [_gap(gap) for gap in report.gaps],
        "accuracy": concluded.plain(report.accuracy),  # on sets of known truth; null: no card came along
        "reported": [_compared(compared) for compared in report.compared],
        "judgements": [
            concluded.judgement(run, one) for run, told in report.judgements.items() for one in told
        ],  # of people and agents; each stands in the rows
        "agreements": [concluded.agreement(one) for one in report.agreements],
        "matrix": wire_compared.matrix(report.matrix) if report.matrix is not None else None,
        "series": wire_compared.series(report.series) if report.series is not None else None,
        "gate": wire_compared.gate(report.gate) if report.gate is not None else None,
    }


def _run(run: Run) -> dict[str, Any]:
    counts = run.coverage
    return {
        "name": run.name,  # unique in the report; NAME of NAME=PATH, or from the file name
        "model": run.model,  # null: no artifact names it
        "agent": run.agent,  # null: no artifact names it
        "benchmark": run.benchmark,  # null: no artifact names it
        "sources": [
            {
                "path": source.path,  # as it was given
                "sha256": source.sha256,  # of the file as it lies on disk; null: not hashed
                "bytes": int(source.bytes),  # on disk
                "rows": int(source.rows),  # lines that were read as rows
            }
            for source in run.sources
        ],
        "artifacts": [
            {
                "kind": artifact.kind,  # rollouts, materialized_inputs, failures, ...
                "path": artifact.path,  # where it is or would be
                "present": bool(artifact.present),
            }
            for artifact in run.artifacts
        ],
        "notes": list(run.notes),  # texts left beside the run
        "settings": {key: run.settings[key] for key in sorted(run.settings)},  # sampling, limits, agent
        "n_tasks": int(run.n_tasks),  # tasks seen anywhere
        "n_rollouts": int(run.n_rollouts),  # rows kept
        "expected_rollouts": int(counts.expected),  # = scored + failed + masked + lost, in keys
        "scored": int(counts.scored),  # in the main file and not masked
        "failed": int(counts.failed),  # only in the failures file; never a low reward
        "masked": int(counts.masked),  # the environment says the reward is no measurement
        "lost": int(counts.lost),  # no trace
        "duplicates": int(counts.duplicates),  # surplus rows that share a key
        "repeats": int(counts.repeats),  # per task, modal
        "expected_from": counts.expected_from,  # materialized inputs, or inferred
        "superseded": int(counts.superseded),  # rows replaced by a later attempt
        "unexpected": int(counts.unexpected),  # keys that the materialised inputs do not name
        "identical_duplicates": int(counts.identical_duplicates),  # of the duplicates, kept once
        "unnumbered_copies": int(counts.unnumbered_copies),  # identical rows without a number: repeats
        "outcomes": {outcome.value: int(n) for outcome, n in run.outcomes.items()},  # rollouts by outcome
        "reward_kind": run.reward_kind.value,  # binary, ordinal, continuous, unbounded, constant
        "pass_threshold": number(run.pass_threshold),  # a row passes at this reward
        "score_name": run.score_name,  # the measure that is the headline
        "score": number(run.score),  # its value; null: nothing was scored
        "oracle": number(run.oracle),  # the score of the best repeat of every task
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "run": measure.run,
        "name": measure.name,
        "k": int(measure.k) if measure.k is not None else None,  # of pass_at_k and the like
        "slice": measure.slice,  # the part of the rollouts it is over; null: all
        "value": number(measure.value),  # rates are fractions; null: cannot be computed
        "n": int(measure.n),  # what it rests on
        "unit": measure.unit,  # what n counts: tasks or rows
        "low": number(measure.low),  # 95% interval
        "high": number(measure.high),
        "method": measure.method,  # how the interval was made, or why there is none
    }


def _buckets(buckets: Buckets) -> dict[str, Any]:
    return {
        "run": buckets.run,
        "always": list(buckets.always),  # task keys: every scored repeat passed
        "sometimes": list(buckets.sometimes),  # some passed
        "never": list(buckets.never),  # none passed
        "missing": list(buckets.missing),  # no scored row
    }


def _task(task: TaskResult) -> dict[str, Any]:
    return {
        "run": task.run,
        "task": task.task,  # the grouping key as text
        "task_name": task.task_name,  # the readable id beside it
        "n": int(task.n),  # scored rows
        "passed": int(task.passed) if task.passed is not None else None,  # null: no pass rate
        "rate": number(task.rate),  # passed / n
        "mean_reward": number(task.mean_reward),  # over its scored rows
        "shrunk": number(task.shrunk),  # posterior mean of the rate
        "low": number(task.low),  # 95% posterior interval of the rate
        "high": number(task.high),
        "bucket": task.bucket,  # always, sometimes, never, missing; null: no pass rate
        "p_bucket": number(task.p_bucket),  # probability that the bucket is right
        "repeats": [
            {
                "repeat": int(repeat.repeat),
                "outcome": repeat.outcome.value if repeat.outcome is not None else None,
                "reward": number(repeat.reward),  # null: no usable reward
            }
            for repeat in task.repeats
        ],
    }


def _health(health: Health) -> dict[str, Any]:
    return {
        "run": health.run,
        "flag": health.flag,  # what kind of thing was seen
        "level": health.level.value,  # info, warning, problem
        "task": health.task,  # null: the whole run
        "text": health.text,  # in words
        "value": number(health.value),
        "n": int(health.n),  # what the value rests on
        "evidence": [evidence(one) for one in health.evidence],
    }


def _funnel(funnel: Funnel) -> dict[str, Any]:
    return {
        "run": funnel.run,
        "source": funnel.source,  # blade.toml, or inferred
        "stages": [
            {
                "name": stage.name,
                "reached": int(stage.reached),  # rollouts that reached it
                "of": int(stage.of),  # expected rollouts
            }
            for stage in funnel.stages
        ],
    }


def _slice(piece: Slice) -> dict[str, Any]:
    return {
        "run": piece.run,
        "field": piece.field,
        "value": piece.value,
        "n_tasks": int(piece.n_tasks),
        "pass_rate": number(piece.pass_rate),  # mean of the score over its tasks
        "low": number(piece.low),
        "high": number(piece.high),
        "rest": number(piece.rest),  # the same of all other tasks
        "p_adjusted": number(
            piece.p_adjusted
        ),  # against the rest, over all fields and values; null: not testable
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,  # c1, c2, … as the pages name it
        "value": claim.value,  # the unrounded number, or the sentence as a stage wrote it
        "text": claim.text,  # as printed
        "query": claim.query,  # over the tables, or of the engine: what gives the value again
    }


def _skipped(skipped: Skipped) -> dict[str, Any]:
    return {
        "file": skipped.file,
        "line": int(skipped.line) if skipped.line is not None else None,  # 1-based; null: the whole file
        "reason": skipped.reason,
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {"what": gap.what, "why": gap.why}  # what the report cannot say, and why


def _compared(compared: Compared) -> dict[str, Any]:
    return {
        "run": compared.run,
        "file": compared.file,  # the sidecar that says so
        "name": compared.name,
        "reported": number(compared.reported),  # as the evaluation wrote it
        "ours": number(compared.ours),  # null: we compute no such number
        "explanation": compared.explanation,  # why they agree or differ
    }
