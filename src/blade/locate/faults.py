"""Turn errors, missing ends and findings of one rollout into candidate steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from blade.align import end_step, model_step
from blade.locate.vote import Candidate
from blade.model import Call, Episode, Finding

MOST = 0.8  # share of the output at which a budget is all but spent
_ACKNOWLEDGED = re.compile(
    r"\b(?:unable|could not|couldn't|cannot|can't|failed|failure|error|unfortunately|did not|didn't|sorry"
    r"|unsuccessful|problem|issue)\b",
    re.IGNORECASE,
)
_HEAD = 2000
_TARGETS = ("path", "file", "file_path", "filename", "url", "id")


def errors(episode: Episode) -> list[Candidate]:
    """The call before the first error, and the first error that nothing later makes good.

    Where both are one error it votes once.
    """
    first = next((call for call in episode.calls if call.failed), None)
    if first is None:
        return []
    acknowledged = _ACKNOWLEDGED.search(episode.final[:_HEAD]) is not None
    lasting = None if acknowledged else _unrecovered(episode.calls)
    found = []
    if lasting is not None:
        reason = f"{lasting.tool} fails, and no later call makes up for it"
        found.append(Candidate(lasting.step, "unrecovered_error", reason, _seen(lasting)))
    if first is not lasting:
        found.append(
            Candidate(first.step, "first_error", f"{first.tool} returns the first error", _seen(first))
        )
    return found


def _seen(call: Call) -> int:
    return call.result_step if call.result_step is not None else call.step


def _unrecovered(calls: Sequence[Call]) -> Call | None:
    """The earliest failed call after which neither its tool nor its target is used with success."""
    done: set[str] = set()
    earliest = None
    for call in reversed(calls):
        names = {f"tool {call.tool}", *_targets(call)}
        if not call.failed:
            done |= names
        elif not done & names:
            earliest = call
    return earliest


def _targets(call: Call) -> set[str]:
    if not isinstance(call.arguments, Mapping):
        return set()
    told = ((key, call.arguments.get(key)) for key in _TARGETS)
    return {f"{key} {value}" for key, value in told if isinstance(value, str) and value}


def ends(episode: Episode) -> list[Candidate]:
    """A rollout that its token limit cut, or that ends without an answer."""
    if _is_cut(episode):
        step = _spent(episode)
        if step is None:
            return []
        return [Candidate(step, "truncated", "most of the output before the token limit is used up here")]
    if not episode.final.strip() and episode.calls:
        return [Candidate(episode.calls[-1].step, "no_final_answer", "the last call; no answer follows")]
    return []


def _is_cut(episode: Episode) -> bool:
    response = episode.trace.row.get("response")
    if not isinstance(response, Mapping):
        return False
    return response.get("status") == "incomplete" or bool(response.get("incomplete_details"))


def _spent(episode: Episode) -> int | None:
    """Where most of the output is written and no later call changes anything."""
    steps = episode.trace.steps
    sizes = [
        (step.index, step.tokens if step.tokens is not None else len(step.text) + len(step.reasoning))
        for step in steps
        if step.kind in ("message", "reasoning", "call")
    ]
    total, so_far = sum(size for _, size in sizes), 0
    if not total:
        return end_step(episode)
    progress = max(
        (call.step for call in episode.calls if call.does == "write" and not call.failed), default=-1
    )
    for index, size in sizes:
        so_far += size
        if so_far >= MOST * total and index >= progress:
            return index
    return end_step(episode)


def findings(episode: Episode, found: Sequence[Finding]) -> list[Candidate]:
    """The decisive steps of what the detectors found, if it is plain or decisive."""
    candidates = []
    for finding in found:
        step = finding.evidence[0].step
        if finding.severity < 2 or step is None or model_step(episode, step) is None:
            continue
        rule = "finding_3" if finding.severity >= 3 else "finding_2"
        candidates.append(Candidate(step, rule, f"{finding.detector}: {finding.summary}", step))
    return candidates
