"""Find the environment whose scores and answers an agent's rows have, in a configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from blade_eval import verifiers
from blade_eval.config import Resolved, Server
from blade_eval.environment import Environment


@dataclass
class Scoring:
    """The environments of a configuration, each built when an agent's rows first ask for it."""

    found: Resolved
    notices: list[str] = field(default_factory=list)
    _built: dict[str, Environment] = field(default_factory=dict)

    def of(self, agent: str) -> Environment | None:
        """That of an agent; None, and noted, where the configuration has none that we could build."""
        server = self._server(agent)
        if server is None:
            self.notices.append(f"the configuration names no resources server of {agent}: {_LEFT_OUT}")
            return None
        if server.implementation not in verifiers.ENVIRONMENTS:
            self.notices.append(f"{server.implementation} is no environment of ours: {_LEFT_OUT}")
            return None
        if server.instance not in self._built:
            built = verifiers.environment(server.implementation, server.settings)
            self._built[server.instance] = built
        return self._built[server.instance]

    def _server(self, agent: str) -> Server | None:
        named = self.found.server(agent)
        judge = self.found.server(named.named("resources_server")) if named else None
        if judge is not None:
            return judge
        judges = [server for server in self.found.servers if server.kind == "resources_servers"]
        return judges[0] if len(judges) == 1 else None  # the run may have called its agent otherwise


_LEFT_OUT = "metrics of its environment are left out"
