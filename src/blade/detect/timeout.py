"""B03: a tool, the agent or the verifier ran out of time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="timeout",
    number="B03",
    rule="The row says that it timed out or ran as long as its time limit, or a failed tool call was"
    " told so.",
    cause=Cause.BEHAVIOUR,
    otherwise="IR where the request or, in some repeats only, the verifier timed out; TI where the "
    "verifier times out in every repeat",
    procedural=True,
    needs=(),
    kind="harness",
    remedy="Raise the time limit of {detail}, or forbid the commands that reach it.",
)

_FLAGS = "timed_out agent_timed_out eval_timed_out container_timed_out agent_timeout_error".split()
_VERIFIER = re.compile(r"eval|verif|judge|test|grad|scor", re.IGNORECASE)
_TRANSPORT = re.compile(r"request|connect|read|transport|gateway|api|provider|litellm|http", re.IGNORECASE)
_SECONDS = "duration_s agent_run_time total_run_time wall_s duration_seconds elapsed_s".split()
_LIMITS = tuple(
    "timeout_s timeout_seconds timeout_sec time_limit_s time_limit agent_timeout_s max_seconds".split()
)
_HEAD = 300
# A result may well speak of timeouts; these say that one happened.
_HAPPENED = re.compile(
    r"\btimed[ -]?out\b|\btime-?out (?:error|exceeded|reached|expired|after|waiting|while|of \d)"
    r"|\b\w*Timeout(?:Error|Exception|Expired)\b|\A\W*(?:error\W+)?timeout\b|\bdeadline exceeded\b",
    re.IGNORECASE,
)

_Told = tuple[str, str]  # field, and who timed out: verifier, request, agent


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """What rows say of themselves, else what their tools were told."""
    told = [_told_by_row(episode) for episode in task.episodes]
    always = len(told) > 1 and all(one is not None and one[1] == "verifier" for one in told)
    for episode, one in zip(task.episodes, told, strict=True):
        if one is None:
            yield from _told_by_tools(episode)
            continue
        field, who = one
        if who == "verifier":
            cause = Cause.TASK_OR_VERIFIER if always else Cause.INFRASTRUCTURE
        else:
            silent = not episode.trace.steps
            cause = Cause.INFRASTRUCTURE if who == "request" or silent else Cause.BEHAVIOUR
        summary = f"The {who} ran out of time, says `{field}`."
        yield hit(
            episode,
            summary,
            3,
            events.in_field(episode, field),
            events.at_step(episode, row.last_quotable(episode)),
            detail=who,
            cause=cause,
            certain=True,
        )


def _told_by_row(episode: Episode) -> _Told | None:
    data = episode.trace.row
    for field, name, value in row.fields(data):
        if name in _FLAGS and (
            value is True or (isinstance(value, str) and row.TIMEOUT.search(value[:_HEAD]))
        ):
            return field, "verifier" if _VERIFIER.search(name) else "agent"
    for field, text in row.errors(data):
        if row.TIMEOUT.search(text[:_HEAD]):
            if _VERIFIER.search(field) or _VERIFIER.search(text[:_HEAD]):
                return field, "verifier"
            agent = "agent" in text[:_HEAD].lower()
            return field, "request" if _TRANSPORT.search(text[:_HEAD]) and not agent else "agent"
    stopped = row.stop_reason(data)
    if stopped is not None and row.TIMEOUT.search(stopped[1]):
        return stopped[0], "agent"
    return _too_long(episode)


def _too_long(episode: Episode) -> _Told | None:
    data = episode.trace.row
    limit = row.first_of(data, _LIMITS)
    spent = row.first_of(data, tuple(_SECONDS))
    if limit is None or spent is None:
        return None
    values = [
        value for _, value in (limit, spent) if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return (spent[0], "agent") if len(values) == 2 and 0 < values[0] <= values[1] else None


def _told_by_tools(episode: Episode) -> Iterator[Hit | None]:
    worked = row.successes(episode)
    seen: dict[str, list[tuple[Call, int]]] = {}
    for call in episode.calls:
        found = _HAPPENED.search(call.output[:_HEAD]) if call.failed else None
        if found is not None:
            seen.setdefault(call.tool, []).append((call, found.start()))
    for tool, calls in seen.items():
        lost = [(call, at) for call, at in calls if worked.get(tool, -1) < call.step]
        call, at = (lost or calls)[0]
        times = f"{len(calls)} times" if len(calls) > 1 else "once"
        after = "no later call of it worked" if lost else "a later call of it worked"
        summary = f"`{tool}` timed out {times}, first at step {calls[0][0].step}; {after}."
        yield hit(
            episode,
            summary,
            2 if lost else 1,
            events.at_step(episode, row.result_place(call), at),
            detail=tool,
        )
