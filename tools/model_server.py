"""Serve the OpenAI APIs in place of a model: answers are a function of the request, faults come on demand.

Both `/v1/responses` and `/v1/chat/completions`. A policy sees a request in the form of the Responses API and
gives output items, a text, or a `Status`. Which calls fail is a function of the seed, the request and how often
the same request came before, so that two runs against two servers meet the same faults whatever the order. A script
answers by the request as it came in and its number instead; it may block, and ask for a fault.

    with serving(policy=fixed("4"), faults=Faults(share=0.2, kinds=ALL_KINDS)) as server:
        ...  # server.url, server.counts, server.calls

    python -m tools.model_server --port 8000 --policy echo --fault-share 0.2
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Body = dict[str, Any]
Items = list[dict[str, Any]]

# 429_after asks to wait (Retry-After); truncated is whole HTTP with half a JSON; cut promises more than it sends;
# hollow, mute, mistyped and failed are well-formed JSON that no model said
ALL_KINDS = (
    "429", "429_after", "500", "503", "hang", "reset", "garbage", "truncated", "cut", "empty", "error_object",
    "hollow", "mute", "mistyped", "failed",
)  # fmt: skip


@dataclass(frozen=True)
class Status:
    """An HTTP answer other than a reply, from a policy."""

    code: int
    message: str = ""
    error_code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None  # as it stands, in place of an error object


@dataclass(frozen=True)
class Reply:
    """What a policy says beside its items: why it stopped, what it counts."""

    items: Items
    is_cut: bool = False
    usage: tuple[int, int] | None = None  # None: counted from the text
    has_usage: bool = True
    drip: float = 0.0  # seconds before each of 20 blanks that come before it


Policy = Callable[[Body], "str | Items | Reply | Status"]
Act = Reply | Status | str  # a string is one of ALL_KINDS
Script = Callable[["Call", int], Act]  # the call, and how many came before it


@dataclass(frozen=True)
class Faults:
    """Which share of calls fails, and how; `most` bounds the faults in a row for one request (0: unbounded)."""

    share: float = 0.0
    kinds: Sequence[str] = ALL_KINDS
    seed: int = 0
    hang: float = 5.0  # seconds that a hanging call stays silent
    retry_after: str = "0"
    most: int = 0

    def kind(self, digest: bytes, number: int) -> str | None:
        """The fault of the `number`-th call (from 0) with this content, or None."""
        fault = self._drawn(digest, number)
        before = range(number - self.most, number)
        if self.most and before.start >= 0 and all(self._drawn(digest, place) for place in before):
            return None
        return fault

    def _drawn(self, digest: bytes, number: int) -> str | None:
        draw = random.Random(f"{self.seed}:{digest.hex()}:{number}")
        return draw.choice(list(self.kinds)) if draw.random() < self.share else None


@dataclass
class Call:
    """A request as it came in."""

    path: str
    body: Body
    headers: dict[str, str]
    fault: str | None

    @property
    def is_chat(self) -> bool:
        return "/chat/completions" in self.path

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"] if self.is_chat else self.body["instructions"])

    @property
    def turns(self) -> list[dict[str, str]]:
        """What came after the system's words; three turns are a question, its answer and a correction."""
        return list(self.body["messages"][1:] if self.is_chat else self.body["input"])

    @property
    def is_second(self) -> bool:
        return len(self.turns) == 3

    @property
    def about(self) -> str:
        """The id that a question of `blade read` names."""
        return next(iter(re.findall(r"^> id: (.*)$", self.turns[0]["content"], re.MULTILINE)), "")

    @property
    def has_schema(self) -> bool:
        return "response_format" in self.body or "text" in self.body


class Server:
    """What tests see of the running server."""

    def __init__(self, policy: Policy, faults: Faults, is_chat_only: bool, delay: float, keeps: bool) -> None:
        self.policy, self.faults = policy, faults
        self.script: Script | None = None  # in place of the policy, in a thread of its own
        self.is_chat_only, self.delay, self.keeps = is_chat_only, delay, keeps
        self.counts: Counter[str] = Counter()  # calls, answered, responses, chat, fault:<kind>
        self.calls: list[Call] = []  # in order of arrival, when kept
        self.most_at_once = 0
        self.port = 0
        self._at_once = 0
        self._seen: Counter[bytes] = Counter()

    @property
    def url(self) -> str:
        """The base URL, as `policy_base_url` wants it."""
        return f"http://{self.host}/v1"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def faulted(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith("fault:"))

    # ---- Handlers ------------------------------------------------------------------------------

    async def responses(self, request: web.Request) -> web.StreamResponse:
        if self.is_chat_only:
            self.counts["no_responses_api"] += 1
            return _error(404, "Not Found: unknown endpoint /v1/responses", "not_found")
        return await self._handled(request, "responses")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return await self._handled(request, "chat")

    async def _handled(self, request: web.Request, api: str) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            return _error(400, "the request is no JSON", "invalid_json")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
        number = self._seen[digest]
        self._seen[digest] += 1
        fault = self.faults.kind(digest, number)
        self.counts["calls"] += 1
        self.counts[api] += 1
        call, n_before = Call(request.path_qs, body, dict(request.headers), fault), len(self.calls)
        if self.keeps:
            self.calls.append(call)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.script:
                return await self._acted(request, await asyncio.to_thread(self.script, call, n_before), api)
            answer = self._answer(self.policy(body if api == "responses" else from_chat(body)), body, api)
            if fault is None:
                self.counts["answered"] += 1
                return answer
            self.counts[f"fault:{fault}"] += 1
            if fault in WELL_FORMED:
                return web.json_response(WELL_FORMED[fault][api])
            return await self._faulty(request, fault, answer)
        finally:
            self._at_once -= 1

    async def _acted(self, request: web.Request, act: Act, api: str) -> web.StreamResponse:
        if isinstance(act, str):
            return await self._faulty(request, act, self._answer("", {}, api))
        answer = self._answer(act, {}, api)
        if isinstance(act, Reply) and act.drip and isinstance(answer.body, bytes):
            stream = await _stream(request, 20 + len(answer.body))
            for _ in range(20):
                await stream.write(b" ")
                await asyncio.sleep(act.drip)
            await stream.write(answer.body)
            return stream
        return answer

    def _answer(self, answer: str | Items | Reply | Status, body: Body, api: str) -> web.Response:
        if isinstance(answer, Status):
            if answer.body is not None:
                return web.Response(status=answer.code, text=answer.body, headers=answer.headers)
            return _error(answer.code, answer.message, answer.error_code, answer.headers)
        reply = answer if isinstance(answer, Reply) else Reply(message(answer) if isinstance(answer, str) else answer)
        make = response_object if api == "responses" else chat_object
        return web.json_response(make(body, reply))

    async def _faulty(self, request: web.Request, kind: str, answer: web.Response) -> web.StreamResponse:
        whole = answer.body if isinstance(answer.body, bytes) else b"{}"
        limited = ("Rate limit reached", "rate_limit_exceeded")
        instead = {
            "429": lambda: _error(429, *limited),
            "429_after": lambda: _error(429, *limited, {"Retry-After": self.faults.retry_after}),
            "500": lambda: _error(500, "The server had an error", "server_error"),
            "503": lambda: _error(503, "The server had an error", "server_error"),
            "garbage": lambda: web.Response(text="<html><body>Bad gateway \x00\ufffd", content_type="text/html"),
            "truncated": lambda: web.Response(body=whole[: len(whole) // 2], content_type="application/json"),
            "empty": lambda: web.Response(body=b"", content_type="application/json"),
            "error_object": lambda: web.json_response({"error": {"message": "internal error", "code": "internal"}}),
        }
        if kind in instead:
            return instead[kind]()
        if kind == "hang":
            await asyncio.sleep(self.faults.hang)
        elif kind == "cut":
            stream = await _stream(request, len(whole))
            await stream.write(whole[: len(whole) // 2])
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)


async def _stream(request: web.Request, length: int) -> web.StreamResponse:
    """An answer of a promised length, whose bytes come one by one."""
    stream = web.StreamResponse(headers={"Content-Length": str(length)})
    stream.content_type = "application/json"
    await stream.prepare(request)
    return stream


def _chat_of(content: Any, **why: Any) -> Body:
    return {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": content, **why}]}


WELL_FORMED: dict[str, dict[str, Body]] = {
    "hollow": {"responses": {"output": [{"type": "message"}]}, "chat": _chat_of({})},
    "mute": {"responses": {"output": []}, "chat": _chat_of({"role": "assistant", "content": None})},
    "mistyped": {
        "responses": {"output": [{"type": "message", "role": "assistant", "content": 5}]},
        "chat": _chat_of({"role": "assistant", "content": 5}, finish_reason="stop"),
    },
    "failed": {
        "responses": {"output": [], "status": "failed"},
        "chat": _chat_of({"role": "assistant", "content": "4"}, finish_reason="error"),
    },
}


# ---- Policies ----------------------------------------------------------------------------------


def message(text: str) -> Items:
    """An assistant's message as output items."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return [{"type": "message", "role": "assistant", "status": "completed", "content": [part]}]


def says(
    text: Any, usage: tuple[int, int] | None = (1000, 100), is_cut: bool = False, refusal: str = "", drip: float = 0.0
) -> Reply:
    """A reply of a script: a text, or an object that is written as JSON; without usage nothing is counted."""
    items = [{"type": "reasoning", "summary": []}, *message(text if isinstance(text, str) else json.dumps(text))]
    if refusal:
        items[1]["content"] = [{"type": "refusal", "refusal": refusal}]
    return Reply(items, is_cut, usage, usage is not None, drip)


def call(name: str, arguments: dict[str, Any], call_id: str = "call_1") -> dict[str, Any]:
    """A function call as an output item."""
    text = json.dumps(arguments, sort_keys=True)
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text, "status": "completed"}


def echo(body: Body) -> str:
    """The last text that a user said."""
    turns = body.get("input") or ""
    if isinstance(turns, str):
        return turns
    texts = [text_of(item.get("content")) for item in turns if item.get("role") == "user"]
    return texts[-1] if texts else ""


def fixed(text: str) -> Policy:
    """The same text to every request."""
    return lambda body: text


def choice(texts: Sequence[str], seed: int = 0) -> Policy:
    """One of several texts, drawn by the content of the request (its `seed` among it)."""

    def drawn(body: Body) -> str:
        digest = hashlib.sha256(f"{seed}:{json.dumps(body, sort_keys=True)}".encode()).digest()
        return texts[int.from_bytes(digest[:4], "big") % len(texts)]

    return drawn


def text_of(content: Any) -> str:
    """The text of a message's content in either form."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


# ---- The two forms on the wire -----------------------------------------------------------------


def from_chat(body: Body) -> Body:
    """A chat request in the form of the Responses API, as policies see it."""
    items: Items = []
    for turn in body.get("messages", []):
        role, content = turn["role"], turn.get("content")
        if role == "tool":
            output = text_of(content)
            items.append({"type": "function_call_output", "call_id": turn["tool_call_id"], "output": output})
            continue
        if content:
            items.append({"type": "message", "role": role, "content": content})
        for asked_call in turn.get("tool_calls") or []:
            item = {"type": "function_call", "call_id": asked_call["id"], **asked_call["function"]}
            items.append(item)
    tools = [{"type": "function", **tool["function"]} for tool in body.get("tools") or []]
    rest = {name: value for name, value in body.items() if name not in ("messages", "tools")}
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return {**rest, "input": items, "tools": tools, "max_output_tokens": limit}


def _spent(body: Body, reply: Reply) -> tuple[int, int]:
    if reply.usage is not None:
        return reply.usage
    prompt = body.get("input", body.get("messages"))
    return len(json.dumps(prompt)) // 4 + 1, len(json.dumps(reply.items)) // 4 + 1


def _id(body: Body, prefix: str) -> str:
    return prefix + hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]


def response_object(body: Body, reply: Reply) -> Body:
    """What `/v1/responses` answers."""
    spent_in, spent_out = _spent(body, reply)
    items = [{"id": f"{_id(body, 'item_')}_{place}", **item} for place, item in enumerate(reply.items)]
    usage = {
        "input_tokens": spent_in, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": spent_out,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": spent_in + spent_out,
    }  # fmt: skip
    return {
        "id": _id(body, "resp_"), "object": "response", "created_at": 1_700_000_000.0, "model": body.get("model") or "test-model",
        "status": "incomplete" if reply.is_cut else "completed", "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if reply.is_cut else None, "output": items,
        "parallel_tool_calls": bool(body.get("parallel_tool_calls", True)), "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [], "temperature": body.get("temperature"), "top_p": body.get("top_p"),
        "usage": usage if reply.has_usage else None,
    }  # fmt: skip


def chat_object(body: Body, reply: Reply) -> Body:
    """What `/v1/chat/completions` answers."""
    text, thought, refusal, calls = "", "", None, []
    for item in reply.items:
        if item["type"] == "message":
            for part in item["content"]:
                text += part.get("text", "")
                refusal = part.get("refusal", refusal)
        elif item["type"] == "reasoning":
            thought += "".join(part["text"] for part in item.get("summary", []))
        else:
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls.append({"id": item["call_id"], "type": "function", "function": function})
    turn: Body = {"role": "assistant", "content": text or None, "refusal": refusal}
    if thought:
        turn["reasoning_content"] = thought
    if calls:
        turn["tool_calls"] = calls
    why = "length" if reply.is_cut else "tool_calls" if calls else "stop"
    spent_in, spent_out = _spent(body, reply)
    usage = {
        "prompt_tokens": spent_in, "completion_tokens": spent_out, "total_tokens": spent_in + spent_out,
        "prompt_tokens_details": {"cached_tokens": 0},
    }  # fmt: skip
    choices = [{"index": 0, "message": turn, "finish_reason": why, "logprobs": None}]
    model = body.get("model") or "test-model"
    head = {"id": _id(body, "chatcmpl-"), "object": "chat.completion", "created": 1_700_000_000, "model": model}
    return {**head, "choices": choices, "usage": usage if reply.has_usage else None}


def _error(code: int, text: str, error_code: str | None, headers: dict[str, str] | None = None) -> web.Response:
    error = {"message": text, "type": "error", "param": None, "code": error_code}
    return web.json_response({"error": error}, status=code, headers=headers)


# ---- Running it --------------------------------------------------------------------------------


def application(server: Server) -> web.Application:
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/responses", server.responses)
    app.router.add_post("/v1/chat/completions", server.chat)
    return app


async def _started(server: Server, port: int) -> web.AppRunner:
    runner = web.AppRunner(application(server), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=4096)
    await site.start()
    server.port = runner.addresses[0][1]
    return runner


async def _ended(runner: web.AppRunner) -> None:
    await runner.cleanup()
    hanging = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)


@contextmanager
def serving(
    policy: Policy = echo,
    faults: Faults | None = None,
    *,
    is_chat_only: bool = False,
    delay: float = 0.0,
    keeps: bool = True,
    port: int = 0,
) -> Iterator[Server]:
    """A server in a thread of its own while the block lasts; `keeps`: requests stay in `server.calls`."""
    server = Server(policy, faults or Faults(), is_chat_only, delay, keeps)
    loop = asyncio.new_event_loop()
    runner = loop.run_until_complete(_started(server, port))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_ended(runner), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


def main() -> None:
    """Serve until interrupted; the first line of output is the base URL."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--policy", default="echo", help="echo, or fixed:TEXT")
    parser.add_argument("--fault-share", type=float, default=0.0)
    flags = parser.parse_args()
    policy = fixed(flags.policy.removeprefix("fixed:")) if flags.policy.startswith("fixed:") else echo
    server = Server(policy, Faults(flags.fault_share), False, 0.0, keeps=False)

    async def forever() -> None:
        await _started(server, flags.port)
        print(server.url, flush=True)
        await asyncio.Event().wait()

    with suppress(KeyboardInterrupt):
        asyncio.run(forever())


if __name__ == "__main__":
    main()
