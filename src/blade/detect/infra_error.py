"""B01: something around the model broke: a provider, a sandbox, a network, a verifier."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="infra_error",
    number="B01",
    rule="The row carries an error of the response, the provider or the verifier, says that its "
    "evaluation did not complete, or a tool result reads like a lost connection, a refused "
    "request or a dead sandbox.",
    cause=Cause.INFRASTRUCTURE,
    otherwise="weak where a later call of the same tool works",
    procedural=False,
    needs=(),
    kind="infrastructure",
    remedy="Rerun the rows that {detail} spoiled, retry such errors in the runner, and keep these rows"
    " out of the model's score.",
    terminal=True,
)  # fmt: skip

# Codes of a runner that blame neither the provider nor the machine.
_MODEL_CODES = re.compile(
    r"^(?:agent_)?(?:command_not_allowed|timeout|refusal|(?:parse|format)_error|model_output_\w+)$"
    r"|content[_ ]?(?:filter|policy)|\bmax[_ ]?(?:turns|steps|iterations)",
    re.IGNORECASE,
)
_INFRA_STOP = re.compile(
    r"infra|provider|(?:server|system|network|sandbox|api|connection|environment)_?(?:error|failure|crash)",
    re.IGNORECASE,
)
_URL = re.compile(r"\w://|\b(?:curl|wget|localhost)\b")
# In a shell a refused connection is most often the doing of the command; these never are.
_MACHINE = re.compile(r"no space left|ENOSPC|OOM-?Killed|\b137\b|sandbox|container", re.IGNORECASE)
_OWN_FAULT = re.compile(
    r"\b(?:Syntax|Name|Assertion|Type|Value|Key|Index|Attribute|Import|ZeroDivision|Indentation)Error\b"
)
_HEAD = 500
_SHORT = 300  # a final text longer than this is the model's, not an error in its place


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Rows that say so themselves first, then what the tools were told."""
    for episode in task.episodes:
        found = list(_told_by_row(episode))
        yield from found[:1]
        if not found:
            yield from _told_by_tools(episode)
            yield _told_by_final(episode)


def _told_by_row(episode: Episode) -> Iterator[Hit | None]:
    data = episode.trace.row
    for field, text in row.errors(data):
        if row.is_overflow(field, text) or _MODEL_CODES.search(text):
            continue
        infra = row.INFRA.search(text) is not None
        if not infra and row.TIMEOUT.search(text):  # has a rule of its own
            continue
        if field == "error" and not infra and episode.trace.steps:
            # where a program is judged, this field may well hold what the model's own program raised
            if not _OWN_FAULT.search(text):
                summary = f"The row carries an error: {_short(text)}."
                yield hit(episode, summary, 2, events.in_field(episode, field), detail=field)
            continue
        summary = f"The row's `{field}` says: {_short(text)}."
        yield hit(
            episode, summary, 3, events.in_field(episode, field), detail=_detail(text, field), certain=True
        )
    for holder in row.HOLDERS:
        field = f"{holder}.evaluation_completed" if holder else "evaluation_completed"
        if row.value_at(data, field) is False:
            summary = "The evaluation of this rollout did not complete; its reward is no judgement."
            yield hit(episode, summary, 3, events.in_field(episode, field), detail="evaluation", certain=True)
    stopped = row.stop_reason(data)
    if stopped is not None and _INFRA_STOP.search(stopped[1]):
        summary = f"The rollout ended with `{stopped[0]}` {stopped[1]}."
        yield hit(episode, summary, 3, events.in_field(episode, stopped[0]), detail=stopped[1], certain=True)


def _told_by_tools(episode: Episode) -> Iterator[Hit | None]:
    worked = row.successes(episode)
    seen: dict[str, list[tuple[Call, int]]] = {}
    for call in episode.calls:
        found = row.INFRA.search(call.output[:_HEAD]) if call.failed else None
        if found and not (_URL.search(call.raw[:2000]) and not _MACHINE.search(found.group())):
            seen.setdefault(call.tool, []).append((call, found.start()))
    for tool, calls in seen.items():
        lost = [(call, at) for call, at in calls if worked.get(tool, -1) < call.step]
        call, at = (lost or calls)[0]
        recovered = "a later call of it worked" if not lost else "no later call of it worked"
        summary = (
            f"`{tool}` failed {len(calls)} time{'s' if len(calls) > 1 else ''} for want of infrastructure "
            f"({_short(call.output[at:], 60)}); {recovered}."
        )
        ended = call.step == episode.calls[-1].step and not episode.final.strip()
        in_shell = events.command_of(tool, call.arguments) is not None and not _MACHINE.search(
            call.output[:_HEAD]
        )
        severity = 1 if not lost or in_shell else 3 if ended else 2
        yield hit(
            episode, summary, severity, events.at_step(episode, row.result_place(call), at), detail=tool
        )


def _told_by_final(episode: Episode) -> Hit | None:
    """An error that stands where the model's answer should."""
    text = episode.final.strip()
    if (
        episode.final_step is None
        or len(text) > _SHORT
        or not text.lower().startswith(("error", "http", "litellm", "api"))
    ):
        return None
    found = row.INFRA.search(text)
    if found is None:
        return None
    summary = f"An error stands where the answer should: {_short(text)}."
    return hit(episode, summary, 2, events.at_step(episode, episode.final_step), detail="response")


def _short(text: str, length: int = 120) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= length else line[:length].rstrip() + "…").rstrip(".")


def _detail(text: str, field: str) -> str:
    """What broke, to group by: the error's own name, else the field."""
    named = re.search(r"\b[A-Za-z_.]*(?:Error|Exception|Timeout)\b", text)
    if named:
        return named.group().rpartition(".")[2]
    return text if re.fullmatch(r"[\w:-]{3,40}", text) else field
