"""The closed vocabularies: outcomes, causes, confidences, kinds of reward, levels."""

from __future__ import annotations

from enum import StrEnum


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
