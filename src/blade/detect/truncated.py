"""B04: the model's text was cut at its token limit."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="truncated",
    number="B04",
    rule="The response is incomplete for its token limit, its one turn used 99% of that limit, or "
    "its last item is incomplete.",
    cause=Cause.BEHAVIOUR,
    otherwise="IR, a matter of configuration, where more than a tenth of the run is cut",
    procedural=True,
    needs=(),
    kind="harness",
    remedy="Raise the limit of output tokens ({detail}), or ask for shorter reasoning.",
    terminal=True,
)

_MANY = 0.1


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Rows that were cut; without a final text it is decisive."""
    cause = Cause.INFRASTRUCTURE if facts.share_truncated > _MANY else None
    for episode in task.episodes:
        field = row.cut_by(episode.trace)
        if field is None:
            continue
        data = episode.trace.row
        written = row.used(data, "output_tokens")
        limit = row.token_limit(data) or facts.max_output_tokens
        spent = f" after {written:,} output tokens" if written else ""
        of = f" of at most {limit:,}" if limit else ""
        ended = "with an answer begun" if episode.final.strip() else "before any answer"
        summary = f"The text was cut{spent}{of}, {ended} (`{field}`)."
        last = events.at_step(episode, row.last_quotable(episode))
        said = None if last and field == "response.output" else events.in_field(episode, field)
        yield hit(
            episode,
            summary,
            2 if episode.final.strip() else 3,
            last,
            said,
            detail=f"{limit:,}" if limit else "not named",
            cause=cause,
            certain=field != "response.usage.output_tokens",
        )
