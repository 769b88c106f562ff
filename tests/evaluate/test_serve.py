"""Servers as a client sees them: sessions, tools, verdicts, failures; and the process as its user does."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from blade.errors import NothingToRead, UsageError
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.runner import skills
from blade_eval.runner.components import Acting, Judging, Sessions
from blade_eval.servers import client, sites
from blade_eval.servers.client import remote
from tests.case_tables import tables
from tests.evaluate import serving
from tools.model_server import Status, fixed
from tools.model_server import serving as model_server

CASES = tables(__file__)
PARAMS = {"input": [{"role": "user", "content": "Two and two?"}]}
ROW = {"responses_create_params": PARAMS, "expected_answer": "4", "_ng_task_index": 0, "_ng_rollout_index": 1}


def counting(**changed: Any) -> Environment:
    """An environment with a number that a tool raises; the verdict is whether it reached the goal."""

    async def verify(attempt: Attempt) -> Row:
        if attempt.row.get("judge_is_down"):
            raise Unmeasured("judge_failed", "the judge is down", fields={"tried": 3})
        if attempt.row.get("is_broken"):
            raise ZeroDivisionError("oh")
        return {"reward": float(attempt.state == {"n": attempt.row["goal"]}), "seen": attempt.state}

    def call(state: Any, tool: str, arguments: Row) -> str:
        state["n"] += arguments["by"]
        return json.dumps({"tool": tool, "n": state["n"]})

    parts: dict[str, Any] = {"verify": verify, "seed": lambda row: {"n": row.get("start", 0)}, "call": call}
    return Environment("counting", **(parts | changed))


def asked(app: web.Application, ask: Callable[[TestClient[Any, Any]], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with TestClient(TestServer(app), cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            return await ask(client)

    return asyncio.run(run())


def site(**changed: Any) -> web.Application:
    return sites.resources_site("r", Judging(counting(**changed), None))


def answered(app: web.Application, path: str, **request: Any) -> tuple[int, str]:
    """The status and the text of one answer."""

    async def ask(client: TestClient[Any, Any]) -> tuple[int, str]:
        answer = await client.request("POST" if len(request) and "headers" not in request else "GET", path, **request)
        return answer.status, await answer.text()

    result: tuple[int, str] = asked(app, ask)
    return result


def test_a_rollout_by_hand_has_its_own_state() -> None:
    part = Judging(counting(), None)

    async def rollout(client: TestClient[Any, Any]) -> Any:
        assert (await client.post("/seed_session", json={"start": 10})).status == 200
        assert await (await client.post("/add", json={"by": 5})).json() == {"tool": "add", "n": 15}
        body = {"responses_create_params": PARAMS, "response": {"output": []}, "goal": 15, "_ng_task_index": 3}
        first = await (await client.post("/verify", json=body)).json()
        again = await client.post("/verify", json=body)
        return first, again.status, await again.json()

    row, status, again = asked(sites.resources_site("r", part), rollout)
    assert row == {"responses_create_params": PARAMS, "response": {"output": []}, "reward": 1.0, "goal": 15, "seen": {"n": 15}}
    assert (status, again["failure_class"]) == (503, "session_expired")  # it ended with its verdict
    assert len(part.sessions) == 0


@pytest.mark.parametrize(("path", "body", "status", "text"), CASES["served"])
def test_what_a_server_says(path: str, body: Row, status: int, text: str) -> None:
    answer = answered(site(), path, json=body)
    assert (answer[0], text in answer[1]) == (status, True), answer
    if len(body.get("verify_responses", ())) == 4:
        assert [group["_ng_task_index"] for group in json.loads(answer[1])["group_level_metrics"]] == [0, 1]


@pytest.mark.parametrize(("headers", "status"), CASES["browsers"])
def test_bodies_that_are_no_objects_tools_that_are_none_and_pages_in_a_browser(headers: dict[str, str], status: int) -> None:
    assert answered(site(), "/reverify_mode", headers=headers)[0] == status
    bare = {"call": None, "seed": None, "reverify": "unsupported"}
    assert [answered(site(**bare), "/verify", data=data)[0] for data in (b"[1]", b"{", b"\xff")] == [422] * 3
    assert answered(site(**bare), "/add", json={})[0] == 404
    assert answered(site(**bare), "/reverify_mode") == (200, '{"reverify_mode":"unsupported"}')


def test_sessions_are_bounded_and_expire() -> None:
    now = [0.0]
    sessions = Sessions(most=2, idle=10, clock=lambda: now[0])
    first, second = sessions.opened("a"), sessions.opened("b")
    with pytest.raises(Unmeasured, match="session_limit"):
        sessions.opened("c")  # one in use is not thrown out for a new one
    now[0] = 9.0
    assert sessions.state(first) == "a"
    now[0] = 11.0
    third = sessions.opened("c")  # the second was not used for long enough
    assert (sessions.state(first), sessions.state(third)) == ("a", "c")
    with pytest.raises(Unmeasured, match="session_expired"):
        sessions.state(second)
    sessions.closed(first)
    assert len(sessions) == 1


async def adder(params: Row, row: Row) -> Row:
    """Calls the tool once, then stops."""
    is_done = any(item.get("type") == "function_call_output" for item in params["input"])
    call = {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"by": 2}'}
    return {"id": "r", "object": "response", "model": "m", "output": [] if is_done else [call]}


def test_an_agent_runs_rollouts_and_answers_in_a_session() -> None:
    part = Judging(counting(), None)
    acting = Acting(adder, part, {}, ())
    params = {**PARAMS, "tools": [{"type": "function", "name": "add", "parameters": {}}]}

    async def ask(client: TestClient[Any, Any]) -> Any:
        row = {"responses_create_params": params, "start": 1, "goal": 3}
        ran = await (await client.post("/run", json=row)).json()
        token = part.sessions.opened(state := {"n": 40})
        said = await client.post("/v1/responses", json=params, cookies={"session": token})
        return ran, await said.json(), state

    ran, response, state = asked(sites.agent_site(acting), ask)
    assert ran["reward"] == 1.0
    assert state == {"n": 42}
    assert [item["type"] for item in response["output"]] == ["function_call", "function_call_output"]


def test_rows_with_skills_need_those_skills(tmp_path: Path) -> None:
    (tmp_path / "s" / "one").mkdir(parents=True)
    (tmp_path / "s" / "one" / "SKILL.md").write_text("---\nname: one\ndescription: d\n---\nbody\n", encoding="utf-8")
    ref = skills.loaded("s", tmp_path / "s").ref()
    seen: list[Row] = []

    async def silent(params: Row, row: Row) -> Row:
        seen.append(params)
        return {"output": []}

    acting = Acting(silent, Judging(counting(), None), {}, (tmp_path,))
    bare = {"responses_create_params": PARAMS, "goal": 0}
    for row in ({**bare, "skills_ref": ref}, bare):
        asyncio.run(acting.run(row, acting.skills_of(row)))
    assert ["- one: d" in params.get("instructions", "") for params in seen] == [True, False]
    for wrong in ({**ref, "hash": "0" * 12}, {**ref, "path": "elsewhere"}):
        with pytest.raises(Unmeasured, match="skills_unavailable") as error:
            acting.skills_of({**bare, "skills_ref": wrong})
        assert error.value.terminal


def test_a_failure_is_the_same_on_both_sides_and_a_foreign_one_is_kept_but_cut() -> None:
    for is_terminal, code in ((False, 503), (True, 500)):
        there = Unmeasured("judge_failed", "no verdict", terminal=is_terminal, fields={"response": {"output": []}})

        async def fails(attempt: Attempt, failure: Unmeasured = there) -> Row:
            raise failure

        status, body = answered(site(verify=fails), "/verify", json={"response": {}})
        assert (status, vars(client.understood(status, body.encode()))) == (code, vars(there))
    failure = client.understood(502, b"<html>" + b"x" * 5000)
    assert (failure.kind, failure.fields["_ng_failure_http_status"]) == ("agent_request_failed", 502)
    assert len(failure.fields["_ng_failure_response_body"]) == 2001
    assert client.routed({"reward": 1.0}) == {"reward": 1.0}
    with pytest.raises(Unmeasured) as error:
        client.routed({"reward": 0.0, "_ng_failure_class": "judge_failed", "_ng_failure_judge_error": "down"})
    assert (error.value.kind, error.value.reason) == ("judge_failed", "down")


@pytest.mark.parametrize("form", ["json string", "plain"])
def test_a_head_server_that_is_not_ours(form: str) -> None:
    """Another tool's head: its YAML as a JSON string or plain, an agent that listens on all addresses."""

    async def run() -> tuple[Row, list[Row]]:
        rows: list[Row] = []

        async def ran(request: web.Request) -> web.Response:
            rows.append(await request.json())
            return web.json_response({"reward": 1, "note": "theirs"})

        there, front = web.Application(), web.Application()
        there.router.add_post("/run", ran)
        async with TestServer(there) as agent:
            block = {"entrypoint": "app.py", "host": "0.0.0.0", "port": agent.port}
            text = yaml.safe_dump({"a": {"responses_api_agents": {"some_agent": block}}, "head_server": {"port": 1}})

            async def config(request: web.Request) -> web.Response:
                return web.json_response(text) if form == "json string" else web.Response(text=text)

            front.router.add_get("/global_config_dict_yaml", config)
            async with TestServer(front) as head, remote(str(head.make_url("/")), "a") as runner:
                return await runner(ROW), rows

    assert asyncio.run(run()) == ({"reward": 1, "note": "theirs"}, [ROW])


def test_no_head_server_is_told_and_one_that_sends_without_end_is_left() -> None:
    async def endless(request: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b" " * (80 << 20)), headers={"Content-Encoding": "gzip"})

    async def enter(head: str) -> None:
        async with remote(head):
            pass

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/global_config_dict_yaml", endless)
        async with TestServer(app) as server:
            await enter(str(server.make_url("/")))

    with model_server() as other:
        for port in (serving.free_port(), other.port):
            with pytest.raises(NothingToRead) as error:
                asyncio.run(enter(f"http://127.0.0.1:{port}"))
            assert error.value.slug == "no-head-server"
    with pytest.raises(NothingToRead, match="no head server"):
        asyncio.run(run())


def test_servers_start_serve_and_stop(tmp_path: Path) -> None:
    async def ask(started: serving.Started) -> Any:
        async with aiohttp.ClientSession() as session:
            async with session.get(started.head + "/server_instances") as answer:
                instances = await answer.json()
            async with session.get(started.head + "/global_config_dict_yaml") as answer:
                text = await answer.text()
            model_url = next(server["url"] for server in instances if server["server_type"] == "responses_api_models")
            async with session.post(model_url + "/v1/responses", json=PARAMS) as answer:
                response = await answer.json()
        with pytest.raises(UsageError) as error:
            async with remote(started.head, "nobody"):
                pass
        assert (error.value.slug, "words_simple_agent" in error.value.hint) == ("unknown-agent", True)
        async with remote(started.head, "words_simple_agent") as runner:
            results = await asyncio.gather(*(runner({**ROW, "n": n}) for n in range(50)))
            by_row = await runner({**ROW, "agent_ref": {"name": "words_simple_agent"}})
            model.policy = lambda body: Status(500, "Bearer sk-very-secret-0123456789")
            with pytest.raises(Unmeasured) as down:  # a model that does not answer costs no reward
                await runner(ROW)
            assert started.stopped(signal.SIGTERM) == 0
            await asyncio.sleep(0.1)  # the connections that were kept are seen to be closed
            with pytest.raises(Unmeasured) as gone:
                await runner(ROW)
        return instances, text, response, results, by_row, down.value, gone.value

    with model_server(fixed("Answer: 4")) as model, serving.served(tmp_path, model.url) as started:
        instances, text, response, results, by_row, down, gone = asyncio.run(ask(started))
    assert {server["name"] for server in instances} == {"policy_model", "words", "words_simple_agent"}
    assert all(any(server["url"] in line and server["name"] in line for line in started.lines) for server in instances)
    assert "secret" not in f"{text} {started.lines} {down} {down.fields}"
    ports = {server["name"]: server["port"] for server in instances}
    assert yaml.safe_load(json.loads(text))["words"]["resources_servers"]["string_match"]["port"] == ports["words"]
    assert response["output"][0]["content"][0]["text"] == "Answer: 4"
    assert [(result["reward"], result["n"]) for result in results] == [(1.0, n) for n in range(50)]
    assert (by_row["reward"], list(by_row)[:3]) == (1.0, ["responses_create_params", "response", "reward"])
    assert (down.kind, down.fields["_ng_failure_stage"]) == ("model_unreachable", "model")
    assert (gone.kind, gone.terminal) == ("transport_unreachable", False)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(serving.config_of("http://127.0.0.1:1/v1"), encoding="utf-8")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        code = f"import sys; sys.argv=['x', {str(config)!r}, {port!r}]\n" + serving._START
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "UsageError" in done.stderr
    assert f"cannot listen at 127.0.0.1:{port}" in done.stderr
    assert "All servers ready" not in done.stdout


def test_a_client_that_goes_away_takes_its_rollout_with_it() -> None:
    ended: list[str] = []

    async def slow(params: Row, row: Row) -> Row:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return {"output": []}

    async def run() -> None:
        acting = Acting(slow, Judging(counting(), None), {}, ())
        async with AsyncExitStack() as stack, aiohttp.ClientSession() as session:
            port = await sites.listening(stack, sites.agent_site(acting), "127.0.0.1", 0)
            with pytest.raises(asyncio.TimeoutError):
                await session.post(f"http://127.0.0.1:{port}/run", json=ROW, timeout=aiohttp.ClientTimeout(total=0.3))
            until = time.monotonic() + 20
            while not ended and time.monotonic() < until:
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert ended == ["cancelled"]


def sent(app: web.Application, *requests: bytes) -> list[bytes]:
    """What a site answers to bytes as they stand, each on a connection of its own."""

    async def run() -> list[bytes]:
        answers = []
        async with AsyncExitStack() as stack:
            port = await sites.listening(stack, app, "127.0.0.1", 0)
            for request in requests:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                answers.append(await asyncio.wait_for(reader.read(), 20))
                writer.close()
        return answers

    return asyncio.run(run())


def posted(body: bytes, *headers: str, path: str = "/verify") -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join((*lines, *headers, "", "")).encode() + body


def test_malformed_requests_are_refused_without_a_traceback_and_a_packed_body_unpacked_within_bounds(capfd: pytest.CaptureFixture[str]) -> None:
    bad = [
        b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"POST /verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /verify HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nbad header\x00: 1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        posted(b"not gzip at all", "Content-Encoding: gzip"), posted(gzip.compress(b"{}" * 999)[:-9], "Content-Encoding: gzip"),
        posted(b"{}", "Content-Encoding: br"), posted(b'{"a": "\xff"}'), posted(b"[" * 100_000), posted(b"[1]"),
    ]
    answers = sent(site(), *bad)
    assert {answer.split(b" ")[1][:1] for answer in answers if answer} == {b"4"}
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert all(len(line) < 400 for line in err.splitlines())
    rollout = {"response": {"output": []}, "goal": 0, "responses_create_params": PARAMS}
    bomb = gzip.compress(b'{"a": "' + b"x" * (400 << 20 >> 3) + b'"}')
    assert len(bomb) < 200_000
    tracemalloc.start()
    small = posted(gzip.compress(json.dumps(rollout).encode()), "Content-Encoding: gzip")
    answers = sent(site(), small, posted(bomb, "Content-Encoding: gzip"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert b'"reward":0.0' in answers[0]
    assert b"unpacks to more than 32 MiB" in answers[1]
    assert peak < 120 << 20
