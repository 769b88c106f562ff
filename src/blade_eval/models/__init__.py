"""The models that answer: a table from implementation name to the module that builds its `Respond`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any

from blade.errors import UsageError
from blade_eval.environment import JUDGE_UNREACHED, Respond, Response, Row, Unmeasured

# Each module has `model(settings)`, an async context manager that yields a `Respond`; it is imported when
# it is asked for.
MODELS = {"openai_model": "blade_eval.models.openai_model", "scripted_model": "blade_eval.models.scripted_model"}


def model(name: str, settings: Mapping[str, Any]) -> AbstractAsyncContextManager[Respond]:
    """The model of a model server's implementation, from its block of the config; enter it to ask."""
    if name not in MODELS:
        hint = f"BLADE has {', '.join(sorted(MODELS))}; openai_model talks to any OpenAI-compatible server"
        raise UsageError(f"BLADE has no model {name!r}", hint, "unknown-model-type")
    built: AbstractAsyncContextManager[Respond] = import_module(MODELS[name]).model(settings)
    return built


def as_judge(respond: Respond) -> Respond:
    """A judge that cannot be asked is the judge's failure, not that of the model under test."""

    async def asked(params: Row, row: Row) -> Response:
        try:
            return await respond(params, row)
        except Unmeasured as failure:
            fields = {**failure.fields, "_ng_failure_type": JUDGE_UNREACHED}
            raise Unmeasured("judge_failed", str(failure), terminal=failure.terminal, fields=fields) from failure

    return asked
