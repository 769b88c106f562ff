"""Have a model read tasks: every answer quotes its rollouts, or it is thrown away."""

from __future__ import annotations

from blade.agent.reader.asked import (
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
)
from blade.agent.reader.decoded import again
from blade.agent.reader.endpoint import PUBLIC, Endpoint, host_of
from blade.agent.reader.kept import Kept
from blade.agent.reader.prompts import VERSION, framed, prompt
from blade.agent.reader.queries import proposals
from blade.agent.reader.questions import (
    ASK,
    EXPLAIN,
    KINDS,
    LABEL,
    NAME,
    UNDETERMINED,
    Answer,
    Cited,
    Prompt,
    Question,
    schema,
)
from blade.agent.reader.spending import EXPECTED_OUT, Cap, Price, Purse, Usage
from blade.agent.reader.tally import agreement, answers, statuses

__all__ = [
    "ACCEPTED", "ASK", "DISCARDED", "EXPECTED_OUT", "EXPLAIN", "FAILED", "KEPT", "KINDS", "LABEL", "LEFT",
    "NAME", "PUBLIC", "STATUSES", "UNDETERMINED", "VERSION", "Answer", "Asking", "Cap", "Cited", "Endpoint",
    "Kept", "Patience", "Price", "Prompt", "Purse", "Question", "Result", "Stopped", "Usage", "again",
    "agreement", "answers", "framed", "host_of", "prompt", "proposals", "schema", "statuses",
]  # fmt: skip
