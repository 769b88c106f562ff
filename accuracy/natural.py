"""Hold located steps and causes against failures that people have labelled."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from blade import measure, pipeline
from blade.model import Episode
from blade.pipeline import reading
from blade.pipeline.conclude import concluded
from blade.store.index import Silent

# Categories of the labels -> our causes; KG and UK cannot be told apart without repeats.
CAP = ("KG", "UK")
CAUSES = {
    "misinterpretation of tool output": CAP,
    "invention of new information": CAP,
    "invalid invocation": CAP,
    "intent-plan misalignment": CAP,
    "intent plan misalignment": CAP,
    "instruction adherence failure": ("BI",),
    "instruction/plan adherence failure": ("BI",),
    "plan adherence failure": ("BI",),
    "underspecified user intent": ("TI",),
    "intent not supported": ("TI",),
    "guardrails triggered": ("TI", "IR"),
    "system failure": ("IR",),
}


@dataclass(frozen=True)
class Labelled:
    """One labelled failure beside what was concluded, and what needs no thought."""

    task: str
    step: int  # as labelled
    category: str
    told: int | None
    ranked: tuple[int, ...]
    cause: str
    confidence: float
    last: int
    before_error: int
    length: int


def labelled(folder: Path) -> list[Labelled]:
    """The labelled failures of a folder that holds `unstated` rollouts and `labels`."""
    truth = {}
    with gzip.open(folder / "labels.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            truth[str(row["_ng_task_index"]), int(row["_ng_rollout_index"])] = row["root_cause"]
    one = pipeline.load([str(folder / "unstated.jsonl.gz")], Silent())[0]
    scoring = measure.scoring.scoring(one.run.rollouts, None)
    read = reading.traces(one, scoring, Silent(), reading.Clock())
    told = concluded(read, {}, reading.Clock())
    attributed = {entry.task: entry for entry in told.attributed.attributions}
    found = []
    for task, repeat, position in zip(read.judged.task, read.judged.repeat, read.judged.rows, strict=True):
        key = read.judged.task_keys[int(task)]
        label = truth.get((key, int(repeat)))
        if label is None or key not in attributed:
            continue
        step, ranked = told.attributed.steps[int(position)]
        episode = read.walker.opener(int(position))
        cause = attributed[key]
        found.append(
            Labelled(
                key,
                int(label["output_index"]),
                str(label["category"]),
                step,
                tuple(b.step for b in ranked),
                cause.cause.value,
                cause.confidence,
                _last(episode),
                _before_error(episode),
                len(episode.trace.steps),
            )
        )
    return found


def _last(episode: Episode) -> int:
    """The last step of the model."""
    steps = [step.index for step in episode.trace.steps if step.kind in ("message", "call")]
    return steps[-1] if steps else 0


def _before_error(episode: Episode) -> int:
    """The call that met the first error, or the last step where there is none."""
    return next((call.step for call in episode.calls if call.failed), _last(episode))


def constant(found: list[Labelled]) -> list[int]:
    """For each failure the median labelled step of all the others."""
    steps = [one.step for one in found]
    return [round(median(steps[:at] + steps[at + 1 :])) if len(steps) > 1 else 0 for at in range(len(steps))]


def accepted(category: str) -> tuple[str, ...]:
    """The causes that a category of the labels stands for; empty if for none."""
    return CAUSES.get(category.strip().lower(), ())
