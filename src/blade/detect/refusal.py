"""B31: the model, or a filter before it, declined the task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="refusal",
    number="B31",
    rule="A content part is a refusal, a content filter ended the response, or the final text opens "
    "by declining to help.",
    cause=Cause.BEHAVIOUR,
    otherwise="weak where the model worked with tools or a user before: that may be policy",
    procedural=True,
    needs=(),
    kind="prompt",
    remedy="Say in the prompt why the request is legitimate, or review the filter that declined it "
    "({detail}).",
    terminal=True,
)

_DECLINES = re.compile(
    r"\bI(?:['’]m| am)?(?: really| very| so)?(?: sorry| afraid)?[,;]?(?: but| that)?(?: I)? ?"
    r"(?:can(?:no|['’])t|can not|won['’]t|will not"
    r"|(?:(?:am|['’]m) )?(?:unable|not (?:able|allowed|permitted)) to|(?:must|have to) (?:decline|refuse) to)"
    r" (?:help(?! but\b)|assist|comply|fulfil+|participate|engage"
    r"|(?:support|do|generate|create) (?:this|that)"
    r"|provide (?:this|that|help|assistance|instructions)|continue with (?:this|that) request)\b",
    re.IGNORECASE,
)
_OPENING = 250
_FILTER = re.compile(
    r"content[_ ]?filter|content[_ ]policy|safety[_ ]?(?:block|filter|refusal)|^refusal$", re.IGNORECASE
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """What the response says, else how the final text opens."""
    for episode in task.episodes:
        yield _filtered(episode) or _refusal_part(episode) or _declined(episode)


def _filtered(episode: Episode) -> Hit | None:
    data = episode.trace.row
    told = [("response.incomplete_details.reason", row.value_at(data, "response.incomplete_details.reason"))]
    stopped = row.stop_reason(data)
    if stopped is not None:
        told.append(stopped)
    told += [(field, text[:300]) for field, text in row.errors(data)]
    for field, value in told:
        if isinstance(value, str) and _FILTER.search(value):
            summary = f"A filter ended the response: `{field}` says {value[:80]}."
            return hit(
                episode, summary, 3, events.in_field(episode, field), detail="content filter", certain=True
            )
    return None


def _refusal_part(episode: Episode) -> Hit | None:
    items = row.value_at(episode.trace.row, "response.output")
    for item in items if isinstance(items, list) else ():
        parts = item.get("content") if isinstance(item, Mapping) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping) and part.get("type") == "refusal":
                text = str(part.get("refusal") or "")
                place = next((step.index for step in episode.trace.steps if text and text in step.text), None)
                if place is not None:
                    summary = f"The response holds a refusal at step {place}: {' '.join(text.split())[:100]}"
                    return hit(
                        episode, summary, 3, events.at_step(episode, place), detail="refusal", certain=True
                    )
    return None


def _declined(episode: Episode) -> Hit | None:
    found = _DECLINES.search(episode.final[:_OPENING])
    if found is None or episode.final_step is None:
        return None
    alone = not episode.calls and not episode.has_user
    summary = f"The final text declines the task: “{' '.join(found.group().split())}”."
    quote = events.at_step(episode, episode.final_step, found.start())
    return hit(episode, summary, 2 if alone else 1, quote, detail="final text")
