"""The office: an assistant with mail, calendar, customers and tasks, judged by what it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blade_eval.environment import Environment, Row
from blade_eval.verifiers.workplace_assistant.judging import verify
from blade_eval.verifiers.workplace_assistant.tools import call
from blade_eval.verifiers.workplace_assistant.world import State, fresh


def _seed(_: Row) -> State:
    return fresh()


def environment(settings: Mapping[str, Any]) -> Environment:
    """The environment; it has no settings of its own."""
    return Environment("workplace_assistant", verify, seed=_seed, call=call)
