"""Turn the rollouts of a task into what each ended with, so that equal results can be counted."""

from __future__ import annotations

import hashlib

from blade import answers, events
from blade.model import Episode, TaskTraces

_FIELDS = ("extracted_answer", "predicted_answer", "parsed_option", "predicted_value", "model_patch_sha256")


def observe(task: TaskTraces) -> list[tuple[int, str]]:
    """Position and content of every rollout; empty where it ended with nothing that can be compared."""
    changes = bool(task.gold.actions) or any(_writes(episode) for episode in task.episodes)
    return [(episode.position, content(episode, changes)) for episode in task.episodes]


def content(episode: Episode, changes: bool) -> str:
    """The answer, or the changes it made, in a form in which equal ones are equal.

    Where the task is to change something, to have changed nothing is a result; what was said is none.
    """
    row = episode.trace.row
    for name in _FIELDS:
        value = row.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return f"answer {answers.normalised(str(value))}"
    if changes:
        made = " ".join(_writes(episode)).encode("utf-8", "surrogatepass")
        return f"writes {hashlib.blake2b(made, digest_size=8).hexdigest()}"
    told = answers.answer_in(episode.final) if episode.final else None
    return f"answer {answers.normalised(told)}" if told else ""


def _writes(episode: Episode) -> list[str]:
    return sorted(call.key for call in episode.calls if call.does == events.WRITE and not call.failed)
