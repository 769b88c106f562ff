"""What a rollout did: steps, calls, episodes, and what is known of a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One output item of a rollout."""

    index: int  # into the rollout's flattened output items, 0-based
    kind: str  # message, user, system, reasoning, call, result, other
    text: str
    reasoning: str = ""  # thinking that stood inside the text, taken out of it
    tool: str | None = None
    arguments: str | None = None  # as the model wrote them
    call_id: str | None = None
    answered: bool | None = None  # calls only: does a result with this call_id follow
    failed: bool | None = None  # None: the item does not say
    tokens: int | None = None


class Rollout(msgspec.Struct, frozen=True):
    """One row, light: what its columns say and where its text lies."""

    run: str
    task: str
    task_name: str
    repeat: int
    reward: float | None
    file: str
    line: int


class Trace(msgspec.Struct, frozen=True):
    """A rollout with its steps."""

    rollout: Rollout
    steps: tuple[Step, ...]
    steps_from: str  # the field the steps were read from
    row: Mapping[str, Any]


class Call(msgspec.Struct, frozen=True):
    """One tool call with its result: what a rollout did at a step."""

    step: int
    tool: str
    arguments: Any  # as parsed; None where they are no JSON
    raw: str  # as the model wrote them
    key: str  # tool and canonical arguments without volatile fields: equal keys are the same action
    does: str  # read, write or check
    result_step: int | None  # None: nothing answered it
    output: str
    failed: bool  # the result says so, or reads like an error


class Episode(msgspec.Struct, frozen=True):
    """A trace read as events."""

    trace: Trace
    position: int  # in `Rollouts`
    score: float  # what the row adds to the score: 0 and 1, or its reward
    passed: bool | None  # None: no threshold judges the run
    calls: tuple[Call, ...]
    final: str  # what the model said after its last call; may be empty
    final_step: int | None  # of the last message that makes up `final`
    tools: Mapping[str, Any]  # declared tools: name -> JSON schema of the parameters (may be empty)
    has_user: bool  # somebody answers the model inside the rollout
    fault: str = ""  # why it could not be read as events; then it has no calls and no final text


class Gold(msgspec.Struct, frozen=True):
    """What a task expects, as far as its rows say."""

    answer: str | None = None
    answer_field: str | None = None
    actions: tuple[tuple[str, Any], ...] = ()  # tool and arguments; only those the model itself must take
    actions_field: str | None = None


class TaskTraces(msgspec.Struct, frozen=True):
    """All counted rollouts of one task, read as events."""

    run: str
    task: str
    task_name: str
    episodes: tuple[Episode, ...]
    gold: Gold
    given: Mapping[str, Any] = msgspec.field(default_factory=dict)  # the materialised input, where there is one
