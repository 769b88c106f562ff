"""List the closed vocabularies: outcomes, causes, confidences, kinds of reward, levels, verdicts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta


class Outcome(StrEnum):
    """What became of one expected rollout; the order is the order of print."""

    PASSED = "passed"
    FAILED = "failed"  # scored below the threshold
    ERRORED = "errored"  # scored below the threshold, and the row carries an error
    TIMED_OUT = "timed_out"  # scored below the threshold, and the row says it timed out
    MALFORMED = "malformed"  # in the main file without a usable reward
    MASKED = "masked"  # the environment says its reward is no measurement
    MISSING = "missing"  # expected, not in the main file


class Cause(StrEnum):
    """The root causes; the value is the code of print and wire."""

    KNOWLEDGE_GAP = "KG"
    UNRELIABLE_KNOWLEDGE = "UK"
    BEHAVIOUR = "BI"
    TASK_OR_VERIFIER = "TI"
    INFRASTRUCTURE = "IR"
    DATA_ARTIFACT = "DA"
    UNDETERMINED = "undetermined"


class Confidence(StrEnum):
    PROVED = "proved"
    LIKELY = "likely"
    UNSURE = "unsure"


class RewardKind(StrEnum):
    BINARY = "binary"
    ORDINAL = "ordinal"
    CONTINUOUS = "continuous"
    UNBOUNDED = "unbounded"
    CONSTANT = "constant"


class Level(StrEnum):
    """How much a health flag matters to a reader of the score."""

    INFO = "info"
    WARNING = "warning"
    PROBLEM = "problem"


# How JSON schemas narrow the types of nouns: reports that are written keep to it, nothing checks it when one is read.
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
Share = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]


def _words(listed: str) -> Meta:
    return Meta(extra_json_schema={"enum": listed.split()})


Bucket = Annotated[str, _words("always sometimes never missing")]
Effect = Annotated[str, _words("appeared disappeared more less unclear")]
GateVerdict = Annotated[str, _words("PASS WARN FAIL INCONCLUSIVE")]
ShiftKind = Annotated[str, _words("behaviour signature outcome effort")]
Tier = Annotated[str, _words("critical supporting advisory")]
TrustLevel = Annotated[str, _words("alarm warning note")]
Unit = Annotated[str, _words("tasks rows")]
Verdict = Annotated[str, _words("improved regressed equivalent inconclusive")]
PairVerdict = Annotated[
    str, Meta(extra_json_schema={"enum": [*"improved regressed equivalent inconclusive refused".split(), ""]})
]
Digest = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
Texts = Annotated[tuple[str, ...], Meta(extra_json_schema={"minItems": 1})]  # at least one
