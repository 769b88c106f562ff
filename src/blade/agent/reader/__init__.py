"""Have a model read tasks: every answer quotes its rollouts, or it is thrown away."""

from __future__ import annotations

from blade.agent.reader.answer_cache import Kept
from blade.agent.reader.endpoint import PUBLIC, Endpoint, host_of
from blade.agent.reader.questions import (
    ASK,
    EXPLAIN,
    KINDS,
    LABEL,
    NAME,
    UNDETERMINED,
    VERSION,
    Answer,
    Cited,
    Prompt,
    Question,
    again,
    framed,
    prompt,
    schema,
    shown,
)  # fmt: skip
from blade.agent.reader.rounds import (
    ACCEPTED,
    DISCARDED,
    FAILED,
    KEPT,
    LEFT,
    STATUSES,
    Asking,
    Patience,
    Result,
    Stopped,
    agreement,
    answers,
    proposals,
    statuses,
)  # fmt: skip
from blade.agent.reader.spending import EXPECTED_OUT, Cap, Price, Purse, Usage

__all__ = [
    "ACCEPTED", "ASK", "DISCARDED", "EXPECTED_OUT", "EXPLAIN", "FAILED", "KEPT", "KINDS", "LABEL", "LEFT",
    "NAME", "PUBLIC", "STATUSES", "UNDETERMINED", "VERSION", "Answer", "Asking", "Cap", "Cited", "Endpoint",
    "Kept", "Patience", "Price", "Prompt", "Purse", "Question", "Result", "Stopped", "Usage", "again",
    "agreement", "answers", "framed", "host_of", "prompt", "proposals", "schema", "shown", "statuses",
]  # fmt: skip
