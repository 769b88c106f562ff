"""B05: the conversation grew beyond what the model can read."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="context_overflow",
    number="B05",
    rule="An error speaks of the context length, or one request took 95% of the context window that "
    "the row names.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=(),
    kind="harness",
    remedy="Cap the outputs of the tools, the largest first ({detail}), or compact the conversation "
    "before it reaches the window.",
    terminal=True,
)

_WINDOWS = ("context_window", "context_length", "max_model_len", "max_context_length", "max_context_tokens")
_FULL = 0.95
_HEAD = 500


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Errors of the row, then of the tools, then token use."""
    for episode in task.episodes:
        yield _told_by_row(episode) or _told_by_tool(episode) or _told_by_use(episode)


def _told_by_row(episode: Episode) -> Hit | None:
    last = events.at_step(episode, row.last_quotable(episode))
    for field, text in row.errors(episode.trace.row):
        if row.is_overflow(field, text):
            summary = f"The context was exceeded: `{field}` says {' '.join(text.split())[:120].rstrip('.')}."
            said = events.in_field(episode, field)
            return hit(episode, summary, 3, last, said, detail=_largest(episode), certain=True)
    stopped = row.stop_reason(episode.trace.row)
    if stopped is not None and (row.OVERFLOW.search(stopped[1]) or "context" in stopped[1].lower()):
        summary = f"The rollout ended with `{stopped[0]}` {stopped[1]}."
        said = events.in_field(episode, stopped[0])
        return hit(episode, summary, 3, last, said, detail=_largest(episode), certain=True)
    return None


def _told_by_tool(episode: Episode) -> Hit | None:
    for call in episode.calls:
        found = row.OVERFLOW.search(call.output[:_HEAD]) if call.failed else None
        if found is not None:
            summary = f"`{call.tool}` was refused for the length of its input at step {call.step}."
            place = row.result_place(call)
            return hit(episode, summary, 2, events.at_step(episode, place, found.start()), detail=call.tool)
    return None


def _told_by_use(episode: Episode) -> Hit | None:
    data = episode.trace.row
    window = row.first_of(data, _WINDOWS)
    taken = row.used(data, "input_tokens")
    # the use of several requests adds up, the window holds for each
    if window is None or taken is None or row.n_turns(episode.trace) > 1:
        return None
    size = window[1]
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0 or taken < _FULL * size:
        return None
    summary = f"The request took {taken:,} tokens of a window of {size:,}."
    return hit(
        episode, summary, 2, events.in_field(episode, "response.usage.input_tokens"), detail="the prompt"
    )


def _largest(episode: Episode) -> str:
    """The tool that filled most of the context."""
    sizes: dict[str, int] = {}
    for call in episode.calls:
        sizes[call.tool] = sizes.get(call.tool, 0) + len(call.output)
    return max(sorted(sizes), key=lambda tool: sizes[tool]) if sizes else "the prompt"
