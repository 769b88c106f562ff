"""The questions that a model is asked, and the answers that it may give."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from blade.model import Cause

LABEL, NAME, EXPLAIN, ASK = "label", "name", "explain", "ask"
KINDS = (LABEL, NAME, EXPLAIN, ASK)
UNDETERMINED = Cause.UNDETERMINED.value
MOST_SAID, MOST_NAMED, MOST_QUOTED, MOST_PLACES = 600, 80, 600, 6  # characters, and places that are quoted
MOST_REPLY = 40_000  # characters of a reply that are looked at


class Cited(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place of a rollout and what stands there."""

    task: Annotated[str, msgspec.Meta(max_length=400)]
    repeat: int
    quote: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_QUOTED)]
    step: int | None = None  # exactly one of step and field
    field: Annotated[str, msgspec.Meta(max_length=400)] | None = None


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model says of one task or of one cluster."""

    about: Annotated[str, msgspec.Meta(max_length=400)]  # the task or the cluster
    answer: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAMED)]
    because: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_SAID)]
    evidence: Annotated[tuple[Cited, ...], msgspec.Meta(max_length=MOST_PLACES)]
    mode: Annotated[str, msgspec.Meta(max_length=MOST_NAMED)] = ""  # of a label: a name for what happened

    @property
    def is_undetermined(self) -> bool:
        return self.answer == UNDETERMINED


class Prompt(msgspec.Struct, frozen=True):
    """What is sent: our own words, then the data in its frame."""

    system: str
    user: str


class Question(msgspec.Struct, frozen=True):
    """One question about one task or cluster, ready to be asked."""

    kind: str
    about: str
    prompt: Prompt
    key: str  # of the rows it is about, what is asked, and of whom: an answer is kept under it
    tokens: int  # of the prompt, estimated from above
    choices: tuple[str, ...] = ()  # the answers that are allowed; empty: any short text


def schema(question: Question) -> dict[str, Any]:
    """The JSON Schema of an answer, in the dialect that strict structured output allows."""
    text: dict[str, Any] = {"type": "string"}
    place = {
        "type": "object",
        "properties": {
            "task": text,
            "repeat": {"type": "integer"},
            "step": {"type": ["integer", "null"]},
            "field": {"type": ["string", "null"]},
            "quote": text,
        },
        "required": ["task", "repeat", "step", "field", "quote"],
        "additionalProperties": False,
    }
    told = {
        "about": text,
        "answer": {"type": "string", "enum": list(question.choices)} if question.choices else text,
        **({"mode": text} if question.kind == LABEL else {}),
        "because": text,
        "evidence": {"type": "array", "items": place},
    }
    return {"type": "object", "properties": told, "required": list(told), "additionalProperties": False}
