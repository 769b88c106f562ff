"""Turn the blocks of a configuration into models, environments and agents that are ready to be asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blade.errors import BladeError, UsageError
from blade_eval import models, verifiers
from blade_eval.config import Resolved, Server
from blade_eval.environment import Environment, Respond, Row, Unmeasured
from blade_eval.runner import agent, skills
from blade_eval.servers.sessions import Sessions

AGENTS = ("simple_agent",)  # whose loop is ours


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
    _skills: dict[tuple[str, str], skills.Skills] = field(default_factory=dict)

    async def run(self, row: Row) -> Row:
        """One rollout in this process."""
        return await agent.run(
            row, self.respond, self.judging.environment, self.settings, self.skills_of(row), self.judging.ask
        )

    def skills_of(self, row: Row) -> skills.Skills | None:
        """The skills that stamp a row, if they are still those it names."""
        ref = row.get("skills_ref")
        if not isinstance(ref, dict):
            return None
        path, hash_ = str(ref.get("path")), str(ref.get("hash"))
        if (path, hash_) not in self._skills:
            places = [Path(path), *(root / path for root in self.roots)]
            folder = next((place for place in places if place.is_dir()), Path(path))
            try:
                found = skills.loaded(path, folder)
            except BladeError as error:
                raise Unmeasured("skills_unavailable", error.message, terminal=True) from None
            if found.hash != hash_:
                reason = f"the row was stamped with skills {hash_}, but {path} now holds {found.hash}"
                raise Unmeasured("skills_unavailable", reason, terminal=True)
            self._skills[path, hash_] = found
        return self._skills[path, hash_]


@dataclass(frozen=True)
class Parts:
    """What a configuration describes, by instance."""

    models: dict[str, Respond]
    judging: dict[str, Judging]
    agents: dict[str, Acting]


@asynccontextmanager
async def parts(found: Resolved) -> AsyncIterator[Parts]:
    """Everything the configuration names, with the connections of its models open while the block lasts."""
    made = Parts({}, {}, {})
    async with AsyncExitStack() as stack:
        for server in found.servers:
            if server.kind == "responses_api_models":
                entered = models.model(server.implementation, server.settings)
                made.models[server.instance] = await stack.enter_async_context(entered)
        for server in found.servers:
            if server.kind == "resources_servers":
                built = verifiers.environment(server.implementation, server.settings)
                made.judging[server.instance] = Judging(built, _judge(server, made))
        for server in found.servers:
            if server.kind == "responses_api_agents":
                made.agents[server.instance] = _acting(server, made, found)
            elif server.kind not in ("responses_api_models", "resources_servers"):
                raise _unknown(server)
        yield made


def _judge(server: Server, made: Parts) -> Respond | None:
    name = server.named("judge_model_server")
    respond = made.models.get(name) if name else None
    return models.as_judge(respond) if respond is not None else None


def _acting(server: Server, made: Parts, found: Resolved) -> Acting:
    if server.implementation not in AGENTS:
        raise _unknown(server)
    judging = made.judging.get(server.named("resources_server") or "")
    respond = made.models.get(server.named("model_server") or "")
    if judging is None or respond is None:
        lacks = "resources_server" if judging is None else "model_server"
        raise UsageError(
            f"the agent {server.instance} names no {lacks} of this configuration",
            "add --resources-server NAME or --model-type openai_model (see `blade env resolve`)",
            "config-incomplete",
        )
    return Acting(respond, judging, server.settings, found.roots)


def _unknown(server: Server) -> UsageError:
    return UsageError(
        f"BLADE has no {server.kind} {server.implementation!r} (instance {server.instance})",
        f"of agents it has {', '.join(AGENTS)}; others need the tool they were written for",
        "unknown-agent-type",
    )
