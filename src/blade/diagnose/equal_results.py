"""Turn the rollouts of a task into what each ended with, so that equal results can be counted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from xxhash import xxh3_64_intdigest

from blade import answers, events
from blade.model import Call, Episode, TaskTraces

_FIELDS = ("extracted_answer", "predicted_answer", "parsed_option", "predicted_value", "model_patch_sha256")

# What counts as prose:
FEWEST, MOST = 5, 150  # words: below it is a value, above a work of its own
LONGEST = 20 * MOST  # characters
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SIGNS = ".,;:!?…\"'“”‘’()"  # around words
_END = re.compile(r"[.!?…][\"'”’)]*\s*\Z")
_CODE = re.compile(r"[{}\[\]<>=|\\$`~^_;]|\w\(|::|(?:^|\s)--?\w")
_DEEPEST = 8


class Ended(NamedTuple):
    """What one rollout ended with: for repeats of its run, and in three grains (hashes, cheap to hold) for other runs; 0: nothing."""

    position: int
    content: str  # equal contents are the same result; empty where it cannot be compared
    result: int  # the answer, or the changes whatever the words around them: what was meant
    read: int  # what the verifier wrote down as the answer, as it stands
    words: int  # the changes in every argument and in their order, and every word that was said last


def observe(task: TaskTraces) -> list[Ended]:
    """What every rollout ended with."""
    changes = bool(task.gold.actions) or any(_writes(episode) for episode in task.episodes)
    return [_ended(episode, changes, task.gold.answer is not None) for episode in task.episodes]


def content(episode: Episode, changes: bool) -> str:
    """The answer or the changes, in a form in which equal ones are equal; where changes are due, none is a result, and words are not."""
    text = _read(episode.trace.row)
    if text:
        return f"answer {answers.normalised(text)}"
    if changes:
        calls = " ".join(sorted(call.key for call in _writes(episode))).encode("utf-8", "surrogatepass")
        return f"writes {hashlib.blake2b(calls, digest_size=8).hexdigest()}"
    phrase = answers.answer_in(episode.final) if episode.final else None
    return f"answer {answers.normalised(phrase)}" if phrase else ""


def _read(row: Mapping[str, Any]) -> str:
    """The answer that a verifier wrote down; empty if none did."""
    values = (row.get(name) for name in _FIELDS)
    texts = (str(value) for value in values if isinstance(value, str | int | float) and not isinstance(value, bool))
    return next((text for text in texts if text.strip()), "")


def _writes(episode: Episode) -> list[Call]:
    return [call for call in episode.calls if call.does == events.WRITE and not call.failed]


# ---- Results of one run beside those of another ---------------------------------------------------


def _ended(episode: Episode, changes: bool, wants_answer: bool) -> Ended:
    """The content of a rollout and its grains.

    What a shell does counts as a change, whatever the command looks like. So does all that was done where
    nothing says that an answer is wanted. A rollout that changed nothing is judged by what it said.
    """
    text, results = _read(episode.trace.row), content(episode, changes)
    done = [call for call in episode.calls if not call.failed]
    acts = [call for call in done if call.does == events.WRITE or _is_shell(call)]
    if not (acts or changes or text or wants_answer):
        acts = done
    result = "" if changes and not text else results
    if acts and not text:  # a rollout that breaks off after its changes did not end as one that goes on does
        result = "\n".join([f"changes {bool(episode.final.strip())}", *sorted(map(_meant, acts))])
    # what counts may have been said on the way, or done by the other
    talk = "\n".join(step.text for step in episode.trace.steps if step.kind in ("message", "user"))
    spoken = talk if episode.has_user else episode.final.strip()
    words = "\n".join([*(call.key for call in acts), spoken]) if acts or spoken else ""
    return Ended(episode.position, results, _hashed(result), _hashed(text.strip()), _hashed(words))


def _is_shell(call: Call) -> bool:
    return events.command_of(call.tool, call.arguments) is not None


def _meant(call: Call) -> str:
    """A call in which prose is no more than the numbers and names with digits that it states."""
    if call.arguments is None or _is_shell(call):
        return call.key
    return f"{call.tool} {events.canonical(_without_prose(call.arguments))}"


def _without_prose(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str) and is_prose(value):
        return {"states": sorted({word.strip(_SIGNS) for word in value.split() if any(map(str.isdigit, word))})}
    if isinstance(value, dict) and depth < _DEEPEST:
        return {key: _without_prose(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list) and depth < _DEEPEST:
        return [_without_prose(inner, depth + 1) for inner in value]
    return value


def is_prose(text: str) -> bool:
    """Whether a text is a message to somebody: sentences, mostly of words in small letters.

    Names, addresses, titles and products are capitalised or end without a full stop, dates and numbers are no
    words, code and markup have signs that sentences lack, and a language without small letters is kept whole.
    """
    if len(text) > LONGEST or not _END.search(text) or _CODE.search(text):
        return False
    words = text.split(maxsplit=MOST)
    if not FEWEST <= len(words) <= MOST:
        return False
    small = sum(1 for word in words if (bare := word.strip(_SIGNS)).islower() and _WORD.fullmatch(bare))
    return 2 * small > len(words)


def _hashed(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) or 1 if text else 0
