"""Start every server of a configuration in this process, and answer: a site for each of them, and the head."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import logging
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import yaml
from aiohttp import web

from blade import hostile
from blade.endpoint.client import TooLarge, inflated
from blade.errors import BladeError, UsageError
from blade_eval.config import Resolved, hidden
from blade_eval.environment import Attempt, Environment, Respond, Row, Unmeasured
from blade_eval.runner import agent, json_lines
from blade_eval.runner.components import Acting, Components, Judging, foreign

COOKIE = "session"
READY = "All servers ready"
_SHUTDOWN_S = 2.0  # seconds that rollouts under way have to end
_BACKLOG = 4096
_INDICES = ("_ng_task_index", "_ng_rollout_index")
MOST_BODY = 256 << 20  # bytes of a request; rows hold images
MOST_INFLATED = 32 << 20  # bytes of one that is sent packed, which no client of ours does
Handler = Callable[[web.Request], Awaitable[web.Response]]


def resources_site(name: str, part: Judging) -> web.Application:
    """Where rollouts begin, where tools are called, and where rollouts are judged."""

    async def seed(request: web.Request) -> web.Response:
        row = await _row(request)
        begin = part.environment.seed
        state = await agent.awaited(begin(row)) if begin else None
        answer = _json({})
        answer.set_cookie(COOKIE, part.sessions.opened(state), httponly=True, samesite="Strict")
        return answer

    async def verify(request: web.Request) -> web.Response:
        row = await _row(request)
        response = row.pop("response", None)
        if not isinstance(response, dict):
            return _refused(422, "the body has no response to judge")
        token = request.cookies.get(COOKIE)
        state = part.sessions.state(token) if token else None
        fields = await part.environment.verify(Attempt(row, response, state, part.ask))
        if token:
            part.sessions.closed(token)
        return _json(agent.result(row, row.get("responses_create_params") or {}, response, fields))

    async def tool(request: web.Request) -> web.Response:
        call = part.environment.call
        if call is None:
            return _refused(404, f"{name} has no tools")
        token = request.cookies.get(COOKIE)
        if token is None and part.environment.seed is not None:
            return _refused(400, "no session: begin with POST /seed_session and send its cookie back")
        arguments = await _row(request)
        state = part.sessions.state(token) if token else None
        output = await agent.awaited(call(state, request.match_info["tool"], arguments))
        if isinstance(output, str):
            kind = "application/json" if output[:1] in ("{", "[", '"') else "text/plain"
            return web.Response(text=output, content_type=kind)
        return _json(output)

    posts = {"/seed_session": seed, "/verify": verify, "/aggregate_metrics": _aggregate(part.environment), "/{tool}": tool}
    return _application(posts, {"/reverify_mode": _always({"reverify_mode": part.environment.reverify})})


def agent_site(part: Acting) -> web.Application:

    async def run(request: web.Request) -> web.Response:
        row = await _row(request)
        return _json(await part.run(row, part.skills_of(row)))

    async def responses(request: web.Request) -> web.Response:
        """The loop without the verdict, in the session that a cookie of the resources server names."""
        params = await _row(request)
        token = request.cookies.get(COOKIE)

        async def unjudged(attempt: Attempt) -> Row:
            return {"reward": 0.0}

        environment = dataclasses.replace(part.judging.environment, verify=unjudged)
        if token:
            state = part.judging.sessions.state(token)
            environment = dataclasses.replace(environment, seed=lambda row: state)
        row = {"responses_create_params": params}
        return _json((await agent.run(row, part.respond, environment, part.settings))["response"])

    aggregate = _aggregate(part.judging.environment)
    return _application({"/run": run, "/v1/responses": responses, "/aggregate_metrics": aggregate})


def model_site(respond: Respond) -> web.Application:
    async def responses(request: web.Request) -> web.Response:
        return _json(await respond(await _row(request), {}))

    return _application({"/v1/responses": responses})


def head_site(tree: Row, instances: list[Row]) -> web.Application:
    """What runs where; `tree` holds no secrets, for every process of this machine may ask."""
    # NeMo Gym sends the YAML as a JSON string, and its clients expect one.
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return _application({}, {"/global_config_dict_yaml": _always(text), "/server_instances": _always(instances)})


class _OneLine(logging.Formatter):
    """What somebody sends that is no HTTP is said on one line; its traceback tells nobody anything."""

    def format(self, record: logging.LogRecord) -> str:
        why = record.exc_info[1] if record.exc_info else None
        cause = f": {type(why).__name__}" if why is not None else ""
        return hostile.line(f"a request was refused: {record.getMessage()}{cause}", 300)


def _application(posts: Mapping[str, Handler], gets: Mapping[str, Handler] | None = None) -> web.Application:
    app = web.Application(client_max_size=MOST_BODY, middlewares=[_for_programs])
    for path, handler in {"/health": _always({"status": "ok"}), **(gets or {})}.items():
        app.router.add_get(path, _guarded(handler))
    for path, handler in posts.items():
        app.router.add_post(path, _guarded(handler))
    return app


@web.middleware
async def _for_programs(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A page that somebody has open in a browser shall not spend the key that the model server holds."""
    here: Any = request.transport.get_extra_info("sockname") if request.transport else None
    # is this machine meant, rather than a name that somebody lets lead here
    is_local = re.fullmatch(r"(127\.0\.0\.1|localhost|\[::1\])(:[^:]*)?", request.host) is not None
    is_loopback = here is not None and here[0] in ("127.0.0.1", "::1")
    if request.headers.get("Origin") or (is_loopback and not is_local):
        return _refused(403, "these servers are for programs of this machine, not for pages")
    return await handler(request)


def _aggregate(environment: Environment) -> Handler:
    async def aggregate(request: web.Request) -> web.Response:
        from blade_eval.aggregate import aggregate_metrics

        body = await _row(request)
        rows = body.get("verify_responses")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return _refused(422, "the body has no list verify_responses")
        # a row without indices is the first of the first task, as NeMo Gym takes it
        rows = [row | {name: 0 for name in _INDICES if row.get(name) is None} for row in rows]
        if not all(isinstance(row[name], int) for row in rows for name in _INDICES):
            return _refused(422, f"{' and '.join(_INDICES)} are no numbers in every row")
        try:
            rows.sort(key=lambda row: tuple(row[name] for name in _INDICES))
            entries = aggregate_metrics(rows, environment)
        except BladeError as error:  # the rows are at fault, and sending them again is no help
            return _refused(422, error.message)
        if len(entries) != 1:
            return _refused(422, f"the rows are of {len(entries)} agents; send those of one")
        return _json({key: value for key, value in entries[0].items() if key != "agent_ref"})

    return aggregate


def _always(value: Any) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return _json(value)

    return answer


def _guarded(handler: Handler) -> Handler:
    """A failure is told in words that the other side understands; our own errors, too, cost no reward."""

    async def answered(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except Unmeasured as unmeasured:
            failure = unmeasured
        except Exception as error:
            kind = "verifier_error" if request.path == "/verify" else "agent_run_error"
            failure = Unmeasured(kind, str(error), fields={"_ng_failure_type": type(error).__name__})
            print(hostile.line(f"{request.path}: {type(error).__name__}: {error}", 500), file=sys.stderr)
        body = {"failure_class": failure.kind, **{name: getattr(failure, name) for name in ("reason", "terminal", "fields")}}
        return _json(body, 500 if failure.terminal else 503)  # another attempt helps against 503, never against 500

    return answered


async def _row(request: web.Request) -> Row:
    content = await request.read()
    try:
        content = inflated(content, request.headers.get("Content-Encoding", ""), MOST_INFLATED)
    except TooLarge as error:
        status = web.HTTPUnsupportedMediaType if "not read here" in str(error) else web.HTTPBadRequest
        raise status(text=f"the body {error}") from None
    try:
        return msgspec.json.decode(content or b"{}", type=dict[str, Any])
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8
        raise web.HTTPUnprocessableEntity(text=f"the body is no JSON object: {error}") from None


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=json_lines.line(value).rstrip(b"\n"), status=status, content_type="application/json")


def _refused(status: int, text: str) -> web.Response:
    return _json({"detail": text}, status)


def start(resolved: Resolved, host: str = "127.0.0.1", head_port: int = 11000) -> None:
    if not resolved.servers:
        hint = "name some, such as --resources-server workplace_assistant --model-type openai_model"
        raise UsageError("no server instances are configured, so there is nothing to start", hint, "nothing-to-start")
    asyncio.run(_served(resolved, host, head_port))


async def _served(resolved: Resolved, host: str, head_port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        parts, apps = Components(resolved, stack), list[web.Application]()
        for server in resolved.servers:
            name = server.instance
            if server.kind == "responses_api_models":
                apps.append(model_site(await parts.model(name, name)))
            elif server.kind == "resources_servers":
                apps.append(resources_site(name, await parts.resources(name, name)))
            elif server.kind == "responses_api_agents":
                apps.append(agent_site(await parts.agent(name)))
            else:
                raise foreign(server)
        tree = copy.deepcopy(resolved.tree)
        instances: list[dict[str, Any]] = []
        # the head's port is tried first: if another head runs there, nothing else need be begun
        async with AsyncExitStack() as trial:
            await listening(trial, web.Application(), host, head_port)
        for server, app in zip(resolved.servers, apps, strict=True):
            place = str(server.settings.get("host") or host)
            port = await listening(stack, app, place, int(server.settings.get("port") or 0))
            address = {"host": place, "port": port}
            tree[server.instance][server.kind][server.implementation] |= address
            instances.append({
                "name": server.instance, "server_type": server.kind, "implementation": server.implementation,
                **address, "url": f"http://{place}:{port}", "status": "running",
            })  # fmt: skip
        tree["head_server"] = {"host": host, "port": head_port}
        await listening(stack, head_site(hidden(tree), instances), host, head_port)
        lines = [(entry["name"], entry["server_type"], entry["url"]) for entry in instances]
        lines.append(("head server", "", f"http://{host}:{head_port}"))
        width, kinds = (max(len(line[column]) for line in lines[:-1]) for column in (0, 1))
        for name, kind, url in lines:
            print(f"{name:<{width}}  {kind:<{kinds}}  {url}")
        print(f"{READY}; Ctrl-C stops them", flush=True)
        await stopped.wait()
        print("Stopping the servers", flush=True)


async def listening(stack: AsyncExitStack, app: web.Application, host: str, port: int) -> int:
    """The port at which a site listens; it is left free when the stack is. Bodies are unpacked by us, within bounds."""
    log = logging.Logger("blade.servers", logging.WARNING)
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    log.addHandler(handler)
    # when a caller goes away, its rollout need not go on
    how: dict[str, Any] = {"handler_cancellation": True, "auto_decompress": False, "shutdown_timeout": _SHUTDOWN_S}
    runner = web.AppRunner(app, access_log=None, logger=log, **how)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    try:
        await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
    except OSError as error:
        what = f"cannot listen at {host}:{port}: {error.strerror or error}"
        hint = "another `blade env start` may run there (`blade env status`); stop it, or choose another --port"
        raise UsageError(what, hint, "port-taken") from error
    return int(runner.addresses[0][1])
