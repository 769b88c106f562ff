"""Start every server of a configuration in this process, say where they listen, and stop when told."""

from __future__ import annotations

import asyncio
import copy
import signal
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web

from blade.errors import UsageError
from blade_eval.config import Resolved, Server, hidden
from blade_eval.runner.components import Components, components
from blade_eval.servers import sites

READY = "All servers ready"
_SHUTDOWN_S = 2.0  # seconds that rollouts under way have to end
_BACKLOG = 4096


def start(resolved: Resolved, host: str = "127.0.0.1", head_port: int = 11000) -> None:
    if not resolved.servers:
        raise UsageError(
            "no server instances are configured, so there is nothing to start",
            "name some, such as --resources-server workplace_assistant --model-type openai_model",
            "nothing-to-start",
        )
    asyncio.run(_served(resolved, host, head_port))


async def _served(resolved: Resolved, host: str, head_port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(components(resolved))
        tree = copy.deepcopy(resolved.tree)
        instances: list[dict[str, Any]] = []
        # the head's port is tried first: if another head runs there, nothing else need be begun
        async with AsyncExitStack() as trial:
            await _listening(trial, web.Application(), host, head_port)
        for server in resolved.servers:
            settings = server.settings
            place = str(settings.get("host") or host)
            port = await _listening(stack, _site(server, parts), place, int(settings.get("port") or 0))
            tree[server.instance][server.kind][server.implementation] |= {"host": place, "port": port}
            instances.append(
                {
                    "name": server.instance, "server_type": server.kind, "implementation": server.implementation,
                    "host": place, "port": port, "url": f"http://{place}:{port}", "status": "running",
                }
            )  # fmt: skip
        tree["head_server"] = {"host": host, "port": head_port}
        await _listening(stack, sites.head_site(hidden(tree), instances), host, head_port)
        lines = [(entry["name"], entry["server_type"], entry["url"]) for entry in instances]
        lines.append(("head server", "", f"http://{host}:{head_port}"))
        width, kinds = (max(len(line[column]) for line in lines[:-1]) for column in (0, 1))
        for name, kind, url in lines:
            print(f"{name:<{width}}  {kind:<{kinds}}  {url}")
        print(f"{READY}; Ctrl-C stops them", flush=True)
        await stopped.wait()
        print("Stopping the servers", flush=True)


def _site(server: Server, parts: Components) -> web.Application:
    if server.kind == "responses_api_models":
        return sites.model_site(parts.models[server.instance])
    if server.kind == "resources_servers":
        return sites.resources_site(server.instance, parts.judging[server.instance])
    return sites.agent_site(parts.agents[server.instance])


async def _listening(stack: AsyncExitStack, app: web.Application, host: str, port: int) -> int:
    """The port at which a site listens; it is left free when the stack is."""
    runner = sites.runner(app, _SHUTDOWN_S)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    try:
        await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
    except OSError as error:
        raise UsageError(
            f"cannot listen at {host}:{port}: {error.strerror or error}",
            "another `blade env start` may run there (`blade env status`); stop it, or choose another --port",
            "port-taken",
        ) from error
    return int(runner.addresses[0][1])
