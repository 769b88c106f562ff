"""Run rollouts in this process: the agents, environments and models of a resolved configuration."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from blade.errors import Unreadable, UsageError
from blade_eval import models, verifiers
from blade_eval.config import Resolved, Server
from blade_eval.environment import Environment, Respond, Row
from blade_eval.runner import agent
from blade_eval.runner.inputs import agent_of
from blade_eval.runner.skills import Skills

AGENT = "simple_agent"  # the one whose loop BLADE has
_PROBES, _PROBE_S, _PROBE_WAIT_S = 3, 5.0, 1.0


@dataclass(frozen=True)
class _Seat:
    """What one agent of the configuration works with."""

    settings: Mapping[str, Any]
    environment: Environment
    respond: Respond
    ask: Respond | None


class Local:
    """A runner: each row goes to the agent that it names, in this process."""

    def __init__(
        self, seats: Mapping[str, _Seat], skills: Skills | None, models: Iterable[Respond] = ()
    ) -> None:
        self._seats = seats
        self._skills = skills
        self._models = tuple(models)

    async def __call__(self, row: Row) -> Row:
        """The result row, or `Unmeasured`."""
        seat = self._seats.get(agent_of(row) or "")
        if seat is None:
            raise unknown_agent(agent_of(row), self._seats)
        return await agent.run(row, seat.respond, seat.environment, seat.settings, self._skills, seat.ask)

    def retried(self) -> int:
        """Requests to models that were made again, by models that count them."""
        return sum(getattr(model, "retried", 0) for model in self._models)

    def environment(self, name: str) -> Environment | None:
        """The environment of an agent, for the metrics of its rows."""
        seat = self._seats.get(name)
        return seat.environment if seat is not None else None


@asynccontextmanager
async def local(
    resolved: Resolved, names: Iterable[str], skills: Skills | None, max_steps: int | None
) -> AsyncIterator[Local]:
    """A runner for the agents of these names; their models stay open while the block lasts."""
    async with AsyncExitStack() as stack:
        opened: dict[str, Respond] = {}

        async def model(instance: str | None, why: str) -> Respond:
            server = _needed(resolved, instance, "responses_api_models", why)
            if server.instance not in opened:
                await _probed(server)
                opened[server.instance] = await stack.enter_async_context(
                    models.model(server.implementation, server.settings)
                )
            return opened[server.instance]

        seats: dict[str, _Seat] = {}
        for name in dict.fromkeys(names):
            server = _agent(resolved, name)
            judged_by = _needed(resolved, server.named("resources_server"), "resources_servers", name)
            respond = await model(server.named("model_server"), name)
            judge = judged_by.named("judge_model_server")
            ask = models.as_judge(await model(judge, judged_by.instance)) if judge else None
            settings = {**server.settings, **({"max_steps": max_steps} if max_steps else {})}
            environment = verifiers.environment(judged_by.implementation, judged_by.settings)
            seats[name] = _Seat(settings, environment, respond, ask)
        yield Local(seats, skills, opened.values())


def described(resolved: Resolved, names: Iterable[str]) -> Row:
    """What the agents of these names are, as far as a reward may depend on it; addresses may change."""
    told: Row = {}
    for name in dict.fromkeys(names):
        server = resolved.server(name)
        if server is None:
            continue
        parts = [server]
        for field in ("resources_server", "model_server"):
            other = resolved.server(server.named(field))
            parts += [other] if other is not None else []
        told[name] = {part.kind: {part.implementation: _steady(part.settings)} for part in parts}
    return told


def _steady(settings: Mapping[str, Any]) -> Row:
    drops = ("url", "host", "port", "api_key", "datasets", "entrypoint", "timeout", "retries", "deadline")
    return {key: value for key, value in settings.items() if not key.endswith(drops)}


def _agent(resolved: Resolved, name: str) -> Server:
    server = resolved.server(name)
    if server is None or server.kind != "responses_api_agents":
        raise unknown_agent(name, [agent.instance for agent in resolved.agents])
    if server.implementation != AGENT:
        raise UsageError(
            f"BLADE does not have the agent {server.implementation} ({name})",
            f"it has {AGENT}; run others with the tool they were written for, or behind --no-serve",
            "unknown-agent",
        )
    return server


def unknown_agent(name: str | None, known: Iterable[str]) -> UsageError:
    there = ", ".join(sorted(known)) or "none"
    if not name:
        return UsageError("a row names no agent", f"name one with --agent: {there}", "no-agent")
    return UsageError(f"there is no agent {name!r}", f"there are: {there}", "unknown-agent")


def _needed(resolved: Resolved, instance: str | None, kind: str, why: str) -> Server:
    server = resolved.server(instance)
    if server is None or server.kind != kind:
        hint = "`blade env validate` says what is missing; --model-type names a model, such as openai_model"
        raise UsageError(f"{why} needs {kind}/{instance}, which is not defined", hint, "no-server")
    return server


async def _probed(server: Server) -> None:
    """See that somebody listens before a thousand rollouts wait for each other's retries."""
    address = urlsplit(str(server.settings.get("openai_base_url") or ""))
    if address.scheme not in ("http", "https") or not address.hostname or urllib.request.getproxies():
        return  # its settings are told by whoever reads them; behind a proxy only a request can tell
    port = address.port or (443 if address.scheme == "https" else 80)
    for attempt in range(_PROBES):
        if attempt:
            await asyncio.sleep(_PROBE_WAIT_S)
        try:
            async with asyncio.timeout(_PROBE_S):
                _, writer = await asyncio.open_connection(address.hostname, port)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            continue
        writer.close()
        return
    raise Unreadable(
        f"nobody answers at {address.hostname}:{port}, the address of {server.instance} ({why})",
        "start the model server, or give its address with --model-url",
        "endpoint-dead",
    )
