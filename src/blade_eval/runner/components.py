"""Build the models, environments and agents that a configuration describes, and run rollouts with them."""

from __future__ import annotations

import asyncio
import secrets
import time
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval import models, verifiers
from blade_eval.config import Resolved, Server
from blade_eval.environment import Environment, Respond, Row, Unmeasured
from blade_eval.runner import agent, skills
from blade_eval.runner.inputs import agent_of
from blade_eval.runner.skills import Skills

AGENT = "simple_agent"  # the one whose loop is ours
MOST_SESSIONS, IDLE_S = 20_000, 3600.0
_PROBES, _PROBE_S, _PROBE_WAIT_S = 3, 5.0, 1.0


class Sessions:
    """The states of rollouts between requests, by a random token: so many at most, and not for ever."""

    def __init__(
        self, most: int = MOST_SESSIONS, idle: float = IDLE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._idle, self._clock = most, idle, clock
        self._states: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def opened(self, state: Any) -> str:
        """A token for a state. Where all places are taken by states in use, none of them is thrown out."""
        self._expire()
        if len(self._states) >= self._most:
            raise Unmeasured("session_limit", f"{self._most:,} sessions are open; try again later")
        token = secrets.token_urlsafe(24)
        self._states[token] = (self._clock(), state)
        return token

    def state(self, token: str) -> Any:
        self._expire()
        if token not in self._states:
            raise Unmeasured("session_expired", "the session is unknown: it ended, or the server was restarted")
        state = self._states[token][1]
        self._states[token] = (self._clock(), state)
        self._states.move_to_end(token)
        return state

    def closed(self, token: str) -> None:
        self._states.pop(token, None)

    def _expire(self) -> None:
        until = self._clock() - self._idle
        while self._states and next(iter(self._states.values()))[0] <= until:
            self._states.popitem(last=False)


@dataclass(frozen=True)
class Judging:
    """A resources server: its environment, the model that its judge asks, and the rollouts under way."""

    environment: Environment
    ask: Respond | None
    sessions: Sessions = field(default_factory=Sessions)


@dataclass(frozen=True)
class Acting:
    """An agent: its model, where it acts, and the settings of its loop."""

    respond: Respond
    judging: Judging
    settings: Mapping[str, Any]
    roots: tuple[Path, ...]
    _skills: dict[tuple[str, str], Skills] = field(default_factory=dict)

    async def run(self, row: Row, known: Skills | None = None) -> Row:
        """One rollout in this process, with these skills or none."""
        judging = self.judging
        return await agent.run(row, self.respond, judging.environment, self.settings, known, judging.ask)

    def skills_of(self, row: Row) -> Skills | None:
        """The skills that stamp a row, if they are still those it names."""
        ref = row.get("skills_ref")
        if not isinstance(ref, dict):
            return None
        path, hash_ = str(ref.get("path")), str(ref.get("hash"))
        if (path, hash_) not in self._skills:
            places = [place for root in (Path(), *self.roots) if (place := Path(root, path)).is_dir()]
            try:
                loaded = skills.loaded(path, (*places, Path(path))[0])
            except BladeError as error:
                raise Unmeasured("skills_unavailable", error.message, terminal=True) from None
            if loaded.hash != hash_:
                reason = f"the row was stamped with skills {hash_}, but {path} now holds {loaded.hash}"
                raise Unmeasured("skills_unavailable", reason, terminal=True)
            self._skills[path, hash_] = loaded
        return self._skills[path, hash_]


class Components:
    """What a configuration describes, by instance; each is built when it is first asked for."""

    def __init__(
        self, resolved: Resolved, stack: AsyncExitStack, is_probed: bool = False, known: Skills | None = None
    ) -> None:
        self.models: dict[str, Respond] = {}
        self.judging: dict[str, Judging] = {}
        self.agents: dict[str, Acting] = {}
        self._resolved, self._stack, self._is_probed, self._skills = resolved, stack, is_probed, known

    async def __call__(self, row: Row) -> Row:
        """Run a row with the agent that it names, in this process."""
        acting = self.agents.get(agent_of(row) or "")
        if acting is None:
            raise unknown_agent(agent_of(row), self.agents)
        return await acting.run(row, self._skills)

    def retried(self) -> int:
        """Requests to models that were made again, by models that count them."""
        return sum(getattr(model, "retried", 0) for model in self.models.values())

    async def model(self, instance: str | None, why: str) -> Respond:
        server = self._needed(instance, "responses_api_models", why)
        if server.instance not in self.models:
            if self._is_probed:
                await _probed(server)
            opening = models.model(server.implementation, server.settings)
            self.models[server.instance] = await self._stack.enter_async_context(opening)
        return self.models[server.instance]

    async def resources(self, instance: str | None, why: str, has_judge: bool = True) -> Judging:
        server = self._needed(instance, "resources_servers", why)
        if server.instance not in self.judging:
            judge = server.named("judge_model_server") if has_judge else None
            ask = models.as_judge(await self.model(judge, server.instance)) if judge else None
            environment = verifiers.environment(server.implementation, server.settings)
            self.judging[server.instance] = Judging(environment, ask)
        return self.judging[server.instance]

    async def agent(self, name: str, settings: Mapping[str, Any] | None = None) -> Acting:
        server = self._resolved.server(name)
        if server is None or server.kind != "responses_api_agents":
            raise unknown_agent(name, [agent.instance for agent in self._resolved.agents])
        if server.implementation != AGENT:
            raise foreign(server)
        judging = await self.resources(server.named("resources_server"), name)
        respond = await self.model(server.named("model_server"), name)
        whole = {**server.settings, **(settings or {})}
        self.agents[name] = Acting(respond, judging, whole, self._resolved.roots)
        return self.agents[name]

    def _needed(self, instance: str | None, kind: str, why: str) -> Server:
        server = self._resolved.server(instance)
        if server is None or server.kind != kind:
            hint = "`blade env validate` says what is missing; --model-type names a model, such as openai_model"
            raise UsageError(f"{why} needs {kind}/{instance}, which is not defined", hint, "no-server")
        return server


def described(resolved: Resolved, names: Iterable[str]) -> Row:
    """What the agents of these names are, as far as a reward may depend on it; addresses may change."""
    drops = ("url", "host", "port", "api_key", "datasets", "entrypoint", "timeout", "retries", "deadline")
    descriptions: Row = {}
    for server in filter(None, map(resolved.server, names)):
        parts = [server, *(resolved.server(server.named(role)) for role in ("resources_server", "model_server"))]
        descriptions[server.instance] = {
            part.kind: {part.implementation: {k: v for k, v in part.settings.items() if not k.endswith(drops)}}
            for part in parts if part is not None
        }  # fmt: skip
    return descriptions


def unknown_agent(name: str | None, known: Iterable[str]) -> UsageError:
    names = ", ".join(sorted(known)) or "none"
    if not name:
        return UsageError("a row names no agent", f"name one with --agent: {names}", "no-agent")
    return UsageError(f"there is no agent {name!r}", f"there are: {names}", "unknown-agent")


def foreign(server: Server) -> UsageError:
    what = f"BLADE has no {server.kind} {server.implementation!r} (instance {server.instance})"
    hint = f"of agents it has {AGENT}; run others with the tool they were written for, or behind --no-serve"
    return UsageError(what, hint, "unknown-agent-type")


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
    what = f"nobody answers at {address.hostname}:{port}, the address of {server.instance} ({why})"
    raise Unreadable(what, "start the model server, or give its address with --model-url", "endpoint-dead")
