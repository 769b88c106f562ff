"""Ask a model for a verdict, and take no other answer for one.

What a rollout says is evidence for the judge and may try to be more. It is put between marks that it cannot
contain, and the verdict is read from the judge's own last message alone: its last line must be one label.
A judge that cannot be reached or understood is a failure of the judge: nothing was measured.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from blade.errors import UsageError
from blade_eval import expressions, replies
from blade_eval.environment import Attempt, Response, Row, Unmeasured

TRIES = 2
LONGEST_ERROR = 2000
MARKS = " \t*_`#>\"'“”.,;:!-–—|"  # what may stand around a verdict without a meaning of its own
LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore|conclusion)\b[\s,:]*)?(?:(?:my|the|our)\s+)?(?:final\s+)?"
    r"(?:(?:verdict|answer|label|class|classification|decision|judge?ment)(?:\s+is)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Judge:
    """How the judge is asked: its messages, its labels, of which the first rewards, and the request's other settings."""

    template: str
    labels: tuple[str, ...]
    system: str | None
    request: Mapping[str, Any]


def judge(settings: Mapping[str, Any], environment: str, labels: Sequence[str] | None = None) -> Judge:
    """The judge of an environment's settings, with its own prompt or theirs."""
    prompt = expressions.table("judge_prompts.yaml")[environment]
    server = settings.get("judge_model_server")
    if not isinstance(server, Mapping) or not server.get("name"):
        what = f"{environment} asks a judge, and its settings name no judge_model_server"
        hint = "add judge_model_server: {type: responses_api_models, name: policy_model} or another model"
        raise UsageError(what, hint, "no-judge")
    template = str(settings.get("judge_prompt_template") or prompt["template"])
    if reason := unusable(template, set(prompt["needed"]), set(prompt["possible"])):
        hint = "a template has {question}, {expected_answer} and {generated_answer}; a literal brace is doubled"
        raise UsageError(f"judge_prompt_template cannot be used: {reason}", hint, "environment-settings")
    system = settings.get("judge_system_message")
    request = settings.get("judge_responses_create_params") or {}
    return Judge(template, tuple(labels or prompt["labels"]), str(system) if system else None, dict(request))


def unusable(template: str, needed: set[str], possible: set[str]) -> str | None:
    """Why a template cannot be used: it is none, names a field nobody fills, or leaves out one the verdict needs."""
    try:
        named = {name for _, name, _, _ in Formatter().parse(template) if name}
    except ValueError as error:
        return str(error)
    if unknown := named - needed - possible:
        return f"it names {', '.join(sorted(unknown))}"
    return f"it leaves out {', '.join(sorted(needed - named))}" if needed - named else None


def fenced(text: str, labels: Sequence[str] = ()) -> str:
    """A text between marks that it cannot close, and without the labels of verdicts: who quotes it quotes none."""
    for label in labels:
        text = re.sub(re.escape(label), "(label removed)", text, flags=re.IGNORECASE)
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return f"<text {mark}>\n{text}\n</text {mark}>"


async def agreement(attempt: Attempt, judge: Judge, prompts: Sequence[Mapping[str, str]]) -> tuple[int, list[Row]]:
    """How many prompts in a row get the first label, and the exchanges; the first other verdict is the last."""
    evaluations: list[Row] = []
    for fields in prompts:
        evaluations.append(await verdict(attempt, judge, fields))
        if evaluations[-1]["verdict_label"] != judge.labels[0]:
            return len(evaluations) - 1, evaluations
    return len(evaluations), evaluations


async def verdict(attempt: Attempt, judge: Judge, fields: Mapping[str, str]) -> Row:
    """The exchange with the verdict on one text; asked once more when it cannot be read, then given up."""
    prompt = judge.template.format_map(dict(fields))
    messages = [{"role": "system", "content": judge.system}] if judge.system else []
    params = {**judge.request, "input": [*messages, {"role": "user", "content": prompt}]}
    evaluations: list[Row] = []
    for _ in range(TRIES):
        response = await answered(attempt, params, evaluations)
        # a judge that was stopped was still weighing
        is_cut = response.get("incomplete_details") or response.get("status") not in (None, "completed")
        label = None if is_cut else label_of(replies.answer(response), judge.labels)
        evaluations.append({"responses_create_params": params, "response": response, "verdict_label": label})
        if label is not None:
            return evaluations[-1]
    last = replies.answer(response)[:LONGEST_ERROR]
    raise failed(f"the judge gave no verdict: {last!r}", evaluations, kind="judge_unparseable")


async def answered(attempt: Attempt, params: Row, evaluations: list[Row]) -> Response:
    """The judge's response; that there is none is the judge's failure, whatever the reason."""
    if attempt.ask is None:
        raise failed("no model of the judge was given", evaluations)
    try:
        response = await attempt.ask(params, attempt.row)
    except Exception as error:
        kind = "" if isinstance(error, Unmeasured) else f"{type(error).__name__}: "
        raise failed(f"the judge did not answer: {kind}{error}", evaluations) from error
    if not isinstance(response, dict):
        raise failed("the judge's answer is no response", evaluations)
    return response


def failed(reason: str, evaluations: list[Row], kind: str = "judge_failed") -> Unmeasured:
    """What the failures sidecar shall say of a judge that gave no verdict."""
    reason = reason[:LONGEST_ERROR]
    fields = {"_ng_failure_judge_error": reason, "failure_kind": kind, "judge_evaluations": evaluations}
    return Unmeasured("judge_failed", reason, fields=fields)


def label_of(text: str, labels: Sequence[str]) -> str | None:
    """The label that is the last line, or all of it but marks and a word such as `Verdict:`; a sentence round one may deny it."""
    lines = [line for line in text.splitlines() if line.strip(MARKS)]
    for label in labels if lines else ():
        start = lines[-1].rfind(label)
        before, behind = lines[-1][:start], lines[-1][start + len(label) :]
        if start >= 0 and LEAD.fullmatch(before.strip(MARKS)) and not behind.strip(MARKS):
            edges = before[-1:] + label[:1], label[-1:] + behind[:1]
            if not any(edge.isalnum() and len(edge) > 1 for edge in edges):
                return label
    return None
