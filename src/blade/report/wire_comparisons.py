"""Write comparisons, matrix, series and gate in the wire format `blade.report/2`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from blade.model import (
    Alignment,
    Alone,
    Checkpoint,
    Churn,
    Comparison,
    Derived,
    Flip,
    Gate,
    Matrix,
    Mover,
    Placed,
    Power,
    Series,
    Setting,
    Shift,
    SureFlips,
    Term,
    Tested,
    Transition,
    View,
)
from blade.report.wire_conclusions import number

MAX_KEYS = 1000  # task keys of one list on the wire; its count says how many there are


def comparison(found: Comparison) -> dict[str, Any]:
    power = found.power
    return {
        "baseline": found.baseline,
        "candidate": found.candidate,
        "delta": number(found.delta),  # score_candidate - score_baseline; null: refused
        "verdict": found.verdict,  # on these tasks; null: refused, or nothing to test
        "verdict_new_tasks": found.verdict_new_tasks,  # on new tasks like these
        "margin": number(found.margin),  # of equivalence, in points of score: a setting, whatever the rows
        "mde": number(power.mde) if power is not None else None,  # smallest detectable effect, on new tasks
        "tests": [_tested(one) for one in found.tests],
        "bridge": [_term(one) for one in found.bridge],  # the default view: its values add up to delta
        "views": [_view(one) for one in found.views],  # further ways to add up to delta
        "flips": [_flip(one) for one in found.flips],  # the surest, ranked; churn counts all
        "config_diff": [_setting(one) for one in found.config_diff],
        "refused": found.refused,  # why there is no comparison; null: there is one
        "score_name": found.score_name,
        "score_baseline": number(found.score_baseline),  # the headline, over all tasks of the run
        "score_candidate": number(found.score_candidate),
        "delta_common": number(found.delta_common),  # over the tasks that both runs have
        "common_baseline": number(found.common_baseline),
        "common_candidate": number(found.common_candidate),
        "alignment": _alignment(found.alignment),
        "power": _power(power) if power is not None else None,
        "bridge_note": found.bridge_note,
        "movers": [_mover(one) for one in found.movers],  # terms claimed to have moved the score
        "churn": _churn(found.churn) if found.churn is not None else None,
        "sure": _sure(found.sure) if found.sure is not None else None,
        "transitions": [_transition(one) for one in found.transitions],
        "shifts": [_shift(one) for one in found.shifts],
        "derived": [_derived(one) for one in found.derived],
        "separable": found.separable,  # false: several settings changed at once; null: nothing to tell
        "missing_run": found.missing_run,  # the run that would separate them, in words
        "identical": bool(found.identical),  # both runs hold the same rows
        "notes": list(found.notes),
        "p_adjusted": number(found.p_adjusted),  # these tasks, over all candidates of the baseline
        "p_adjusted_new": number(found.p_adjusted_new),  # new tasks, likewise
    }


def _tested(one: Tested) -> dict[str, Any]:
    return {
        "question": one.question,  # these tasks, new tasks, or the measure that was tested
        "name": one.name,  # of the test
        "p": number(one.p),
        "estimate": number(one.estimate),
        "low": number(one.low),  # 95% interval
        "high": number(one.high),
        "low90": number(one.low90),  # 90% interval: one-sided 95% bounds
        "high90": number(one.high90),
    }


def _term(one: Term) -> dict[str, Any]:
    if not math.isfinite(one.value):
        raise ValueError(f"the term {one.term!r} has no value, so its view cannot add up")
    return {
        "term": one.term,
        "value": number(one.value),  # points of score; positive: the candidate gains
        "low": number(one.low),  # 95% interval
        "high": number(one.high),
        "side": one.side,  # who answers for it, or composition, missing, slice, mix, task, setting
        "p": number(one.p),  # that it is 0; null: cannot be tested
        "n": int(one.n),  # tasks it rests on
        "expected": number(one.expected),  # its value if it took its share of the change and no more
        "p_excess": number(one.p_excess),  # that it takes no more than its share
    }


def _view(one: View) -> dict[str, Any]:
    return {"name": one.name, "terms": [_term(term) for term in one.terms], "note": one.note}


def _flip(one: Flip) -> dict[str, Any]:
    return {
        "task": one.task,
        "task_name": one.task_name,
        "baseline": _counted(one.baseline),
        "candidate": _counted(one.candidate),
        "change": number(one.change),
        "p_better": number(one.p_better),  # posterior probability that the candidate is better at it
        "p_class_change": number(one.p_class_change),  # that its bucket truly changed
        "classes": list(one.classes),  # buckets by counts, baseline then candidate
    }


def _counted(found: tuple[float, int]) -> dict[str, Any]:
    return {"sum": number(found[0]), "n": int(found[1])}  # passes, or sum of scores; repeats


def _setting(one: Setting) -> dict[str, Any]:
    return {
        "key": one.key,
        "baseline": one.baseline,  # null: not stated
        "candidate": one.candidate,
        "kind": one.kind,  # model, sampling, limit, tools, prompt, data, verifier, repeats, ...
        "mechanical": bool(one.mechanical),  # can change the score with the model unchanged
        "known": bool(one.known),  # false: one side does not state it
        "counts": bool(one.counts),  # false: it cannot change what a rollout scores
    }


def _alignment(one: Alignment) -> dict[str, Any]:
    return {
        "matched_by": one.matched_by,  # in words
        "changed_fields": list(one.changed_fields),  # by which modified tasks are told
        "common": _keys(one.common),
        "added": _keys(one.added),  # only the candidate has them
        "removed": _keys(one.removed),  # only the baseline has them
        "modified": _keys(one.modified),  # the same key, another content
        "missing_baseline": _keys(one.missing_baseline),  # expected there, without a scored row
        "missing_candidate": _keys(one.missing_candidate),
        "common_candidate": _keys(one.common_candidate),  # what the candidate calls `common`; empty: the same
        "modified_candidate": _keys(one.modified_candidate),
        "changed_everywhere": list(one.changed_everywhere),  # fields that differ in nearly all tasks
    }


def _keys(tasks: Sequence[str]) -> dict[str, Any]:
    return {"n": len(tasks), "tasks": list(tasks[:MAX_KEYS])}  # all are counted, the first are listed


def _power(one: Power) -> dict[str, Any]:
    return {
        "se": number(one.se),  # of the change on new tasks
        "mde": number(one.mde),  # smallest true change seen in 80 of 100 comparisons, on new tasks
        "mde_these": number(one.mde_these),  # the same on these tasks
        "omega2": number(one.omega2),  # variance of the true change over tasks
        "sigma2_a": number(one.sigma2_a),  # variance between repeats of a task, baseline
        "sigma2_b": number(one.sigma2_b),
        "p_heterogeneity": number(one.p_heterogeneity),  # that the change is the same for every task
        "target": number(one.target),  # the change that more data should resolve
        "repeats_needed": _whole(one.repeats_needed),  # of each run; null: no number is enough
        "tasks_needed": _whole(one.tasks_needed),  # further tasks
    }


def _whole(value: int | None) -> int | None:
    return int(value) if value is not None else None


def _mover(one: Mover) -> dict[str, Any]:
    return {
        "view": one.view,
        "term": one.term,
        "side": one.side,
        "value": number(one.value),
        "low": number(one.low),
        "high": number(one.high),
        "p_adjusted": number(one.p_adjusted),
        "share": number(one.share),  # of the change; null: the change is near 0
        "mechanical": bool(one.mechanical),  # can move the score with the model unchanged: told first
        "text": one.text,
        "rollouts": [{"run": run, "task": task, "repeat": int(repeat)} for run, task, repeat in one.rollouts],
        "beside": list(one.beside),  # what the same rollouts show as well, in words
    }


def _churn(one: Churn) -> dict[str, Any]:
    return {
        "gains": number(one.gains),  # points of score
        "losses": number(one.losses),  # negative
        "n_up": int(one.n_up),  # tasks
        "n_down": int(one.n_down),
        "null_churn": number(one.null_churn),  # gains - losses, were rollouts exchanged within tasks
        "null_low": number(one.null_low),  # 95% of such exchanges
        "null_high": number(one.null_high),
        "null_changed": number(one.null_changed),  # tasks that would change
        "p": number(one.p),  # that churn is no larger than that
    }


def _sure(one: SureFlips) -> dict[str, Any]:
    return {
        "up": int(one.up),  # tasks that are surely better
        "down": int(one.down),
        "null_up": number(one.null_up),  # tasks that noise alone would show as such; null: not known
        "null_down": number(one.null_down),
    }


def _transition(one: Transition) -> dict[str, Any]:
    return {
        "before": one.before,  # always, sometimes, never: in the baseline
        "after": one.after,  # in the candidate
        "n": int(one.n),  # tasks by counts
        "sure": int(one.sure),  # of these, with a posterior probability of at least .8
    }


def _shift(one: Shift) -> dict[str, Any]:
    return {
        "kind": one.kind,  # behaviour, signature, outcome, effort
        "name": one.name,
        "baseline": number(one.baseline),  # rate or mean over tasks
        "candidate": number(one.candidate),
        "change": number(one.change),
        "low": number(one.low),
        "high": number(one.high),
        "p": number(one.p),
        "p_adjusted": number(one.p_adjusted),
        "n": int(one.n),  # tasks
        "status": one.status,  # appeared, disappeared, more, less, unclear
    }


def _derived(one: Derived) -> dict[str, Any]:
    return {
        "name": one.name,
        "k": _whole(one.k),
        "baseline": number(one.baseline),
        "candidate": number(one.candidate),
        "change": number(one.change),
        "low": number(one.low),
        "high": number(one.high),
        "n": int(one.n),  # tasks
        "method": one.method,
        "unit": one.unit,  # rate, or what it counts
    }


def matrix(found: Matrix) -> dict[str, Any]:
    return {
        "runs": list(found.runs),
        "n_tasks": int(found.n_tasks),  # that all of the runs have
        "verdicts": [list(row) for row in found.verdicts],  # row against column, on new tasks
        "deltas": [[number(cell) for cell in row] for row in found.deltas],
        "p_adjusted": [[number(cell) for cell in row] for row in found.p_adjusted],
        "placed": [_placed(one) for one in found.placed],
        "only_one": {run: _keys(found.only_one[run]) for run in sorted(found.only_one)},
        "none_solves": _keys(found.none_solves),
        "all_solve": _keys(found.all_solve),
        "settings": [{"setting": setting, "text": text} for setting, text in found.settings],
        "alone": [_alone(one) for one in found.alone],  # of only_one, the surest of each run
        "expected_alone": {run: number(found.expected_alone[run]) for run in sorted(found.expected_alone)},
        "notes": list(found.notes),
    }


def _alone(one: Alone) -> dict[str, Any]:
    return {
        "run": one.run,
        "task": one.task,
        "task_name": one.task_name,
        "passes": int(one.passes),
        "repeats": int(one.repeats),
        "others": int(one.others),  # repeats of the other runs, none of which passes
        "p_chance": number(one.p_chance),  # that so many passes all fall to one run by chance
    }


def _placed(one: Placed) -> dict[str, Any]:
    return {
        "run": one.run,
        "score": number(one.score),  # over the tasks that all runs have
        "cost": number(one.cost),  # mean dollars of a rollout
        "tokens": number(one.tokens),  # mean output tokens of a rollout
        "on_front_cost": one.on_front_cost,  # no other run is better and cheaper; null: not reported
        "on_front_tokens": one.on_front_tokens,
    }


def series(found: Series) -> dict[str, Any]:
    return {
        "runs": list(found.runs),  # in order
        "n_tasks": int(found.n_tasks),  # that all of the runs have
        "slope": number(found.slope),  # points of score a checkpoint, over tasks
        "low": number(found.low),
        "high": number(found.high),
        "p": number(found.p),
        "checkpoints": [_checkpoint(one) for one in found.checkpoints],
        "first_different": found.first_different,  # from the first; null: none is
        "learned": _ranked(found.learned, found.n_learned),
        "forgotten": _ranked(found.forgotten, found.n_forgotten),
        "null_learned": number(found.null_learned),  # tasks that chance alone would show as such
        "null_forgotten": number(found.null_forgotten),
        "notes": list(found.notes),
    }


def _checkpoint(one: Checkpoint) -> dict[str, Any]:
    return {
        "run": one.run,
        "score": number(one.score),
        "change": number(one.change),  # against the first
        "low": number(one.low),
        "high": number(one.high),
        "p_adjusted": number(one.p_adjusted),
    }


def _ranked(found: Sequence[tuple[str, float]], n: int) -> dict[str, Any]:
    listed = [{"task": task, "p": number(p)} for task, p in found[:MAX_KEYS]]
    return {"n": max(int(n), len(found)), "tasks": listed}


def gate(found: Gate) -> dict[str, Any]:
    return {
        "policy": found.policy,  # where it was read
        "baseline": found.baseline,
        "question": found.question,  # that the policy asks: these tasks or new tasks
        "verdict": found.verdict,  # PASS, WARN, FAIL, INCONCLUSIVE
        "checks": [
            {
                "candidate": one.candidate,
                "metric": one.metric,
                "tier": one.tier,  # critical, supporting, advisory
                "verdict": one.verdict,
                "text": one.text,
                "waived": one.waived,  # why a failure is let pass, and until when; empty: it is not
                "baseline": number(one.baseline),  # the metric itself
                "value": number(one.value),
                "change": number(one.change),
                "low": number(one.low),  # 95% interval of the change
                "high": number(one.high),
                "bound": number(one.bound),  # how much worse it may be: one-sided 95% bound of the change
                "allowed": number(one.allowed),  # how much worse it is allowed to be
                "n": _whole(one.n),  # tasks
            }
            for one in found.checks
        ],
        "notes": list(found.notes),
    }
