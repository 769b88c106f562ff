"""What an environment, a model and an attempt are, and what it means that a reward was not measured."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from blade.errors import UsageError

Row = dict[str, Any]
Response = dict[str, Any]  # a Responses object, as it stands in a rollout row

# The request (`responses_create_params`) and the materialised row it belongs to, to a Responses object.
Respond = Callable[[Row, Row], Awaitable[Response]]

JUDGE_UNREACHED = "judge_unreached"  # `_ng_failure_type`: the rollout is whole, its judge gave no answer


class Unmeasured(Exception):
    """No reward can be given, and not because of the model: the row goes to the failures, not to reward 0."""

    def __init__(self, kind: str, reason: str, *, terminal: bool = False, fields: Row | None = None) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind  # of few values, such as judge_failed or sandbox_unavailable
        self.reason = reason
        self.terminal = terminal  # another attempt cannot help
        self.fields = fields or {}  # what else the failure line shall carry


@dataclass(frozen=True)
class Attempt:
    """What a verifier judges: the task as it was asked, and what came of it."""

    row: Row
    response: Response
    state: Any = None  # what `seed` returned and the tools changed; None for a stored rollout
    ask: Respond | None = None  # the judge's model, where one is configured


@dataclass(frozen=True)
class Environment:
    """How tasks of one kind start, which tools they have, and how a rollout is judged.

    `verify` gives the fields of the row that are the verifier's, `reward` among them. A wrong or missing
    answer is a reward; only what is not the model's doing raises `Unmeasured`.
    """

    name: str
    verify: Callable[[Attempt], Awaitable[Row]]
    seed: Callable[[Row], Any] | None = None  # the state of one rollout
    call: Callable[[Any, str, Row], str] | None = None  # state, tool, arguments: the tool's answer as text
    reverify: Literal["stateless", "unsupported"] = "stateless"  # can the response alone be judged again?
    scores: Callable[[Row], Mapping[str, float]] | None = None  # named scores of a result row
    answer: Callable[[Row], str | None] | None = None  # the answer of a result row, for majority votes


def required(module: str, package: str, environment: str) -> None:
    """Make sure, before any rollout is paid for, that the library is there; it is not yet loaded."""
    if find_spec(module.partition(".")[0]) is None:
        what = f"the environment {environment} needs the package {package!r}, which is not installed"
        raise UsageError(what, "pip install 'blade-diagnostics[eval]'", "eval-not-installed")


# A member of ENVIRONMENTS: the settings of its block in the resolved config, to the environment.
Build = Callable[[Mapping[str, Any]], Environment]
