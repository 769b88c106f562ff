"""Ask an OpenAI-compatible server until it answers or the time is up.

The Responses API is asked first; a server that does not have it is asked in the form of a chat from then on.
Whatever is not an answer of the model costs another try; what no try can mend raises `Unmeasured`.
"""

from __future__ import annotations

import asyncio
import base64
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from blade import hostile
from blade.errors import UsageError
from blade_eval.config.secret import names_secret, without
from blade_eval.environment import Response, Row, Unmeasured
from blade_eval.models.openai_model import faults
from blade_eval.models.openai_model.chat import ChatForm, Unsayable, chat_request, response_of
from blade_eval.models.openai_model.faults import Fault
from blade_eval.replies import text_of

MOST_BODY = 64 << 20  # bytes of a response
_RESPONSES, _CHAT = "responses", "chat/completions"
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The block of the config, under the names of NeMo Gym's model of this name; the rest is ours."""

    openai_base_url: str
    openai_model: str
    openai_api_key: str = ""
    timeout: float = 600.0  # seconds for one try
    retries: int = 8  # tries after the first
    deadline: float = 3600.0  # seconds for all tries of one request together
    first_wait: float = _FIRST_WAIT
    seed: int | None = None  # of the waits
    splits_thoughts: bool = True  # <think> at the start of a chat's text becomes a reasoning item


class OpenAIModel:
    """One model behind one URL: a `Respond` that counts what it cost to get the answers."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        self.settings = settings
        self.calls = 0  # requests that were to be answered
        self.retried = 0  # further tries
        self.faults: Counter[str] = Counter()  # what the tries met, by kind
        self._session = session
        self._url = _url(settings.openai_base_url)
        # with the query of the address, such as an api-version
        paths = (_CHAT, _RESPONSES)
        self._at = {path: self._url.joinpath(path).with_query(self._url.query) for path in paths}
        self._host = f"{self._url.host}:{self._url.port}"
        self._timeout = _timeout(settings.timeout)  # of a try that has all its time
        self._secrets = _secrets(settings)
        self._random = random.Random(settings.seed)
        self._answered: set[str] = set()  # the paths below the URL that have answered so far
        self._form = ChatForm()

    async def __call__(self, params: Row, row: Row) -> Response:
        """The model's answer to a request in the form of `responses_create_params`."""
        self.calls += 1
        asked = request(params, self.settings.openai_model)
        until = time.monotonic() + self.settings.deadline
        tries = 0
        while True:
            try:
                return await self._tried(asked, until - time.monotonic())
            except Fault as fault:
                self.faults[fault.kind] += 1
                told = fault
            wait = self._wait(tries, told)
            if not told.again or tries >= self.settings.retries or time.monotonic() + wait > until:
                raise self._given_up(told, tries) from None
            tries += 1
            self.retried += 1
            await asyncio.sleep(wait)

    def _wait(self, tries: int, fault: Fault) -> float:
        """What the server asks for, and full jitter, lest a thousand callers come back together."""
        jitter = self._random.uniform(0, min(_LONGEST_WAIT, self.settings.first_wait * 2**tries))
        return jitter + (fault.wait or 0.0)

    def _given_up(self, fault: Fault, tries: int) -> Unmeasured:
        # before it is cut, for half a key is not found; and after, for what is invisible may have hidden it
        said = without(f"{self._host}: {fault.text}", self._secrets)
        said = without(hostile.line(said, 500), self._secrets)
        text = f"{said} (after {tries + 1} {'tries' if tries else 'try'})" if fault.again else said
        fields: Row = {}
        if fault.status is not None:
            fields["_ng_failure_http_status"] = fault.status
        if fault.body:
            fields["_ng_failure_response_body"] = faults.cut(without(fault.body, self._secrets))
        return Unmeasured(fault.kind, text, terminal=fault.is_terminal, fields=fields)

    # ---- One try -------------------------------------------------------------------------------

    async def _tried(self, asked: Row, left: float) -> Response:
        # One answer in the form of a chat settles it, unless the Responses API has answered too.
        is_chat = _CHAT in self._answered and _RESPONSES not in self._answered
        while True:
            form, path = self._form, _CHAT if is_chat else _RESPONSES
            try:
                body = chat_request(asked, form) if is_chat else asked
            except Unsayable as unsayable:
                raise Fault("model_refused", f"it has no Responses API, and {unsayable}") from None
            try:
                content = await self._sent(path, body, left)
            except Fault as fault:
                if fault.status == 404 and path in self._answered and not faults.is_without_model(fault):
                    # a route that was there a moment ago is not missing
                    fault.kind, fault.again = "model_unreachable", True
                elif not is_chat and path not in self._answered and faults.has_no_responses(fault):
                    is_chat = True
                    continue
                elif is_chat and self._stepped(form, fault):
                    continue
                raise
            try:
                found = msgspec.json.decode(content)
            except (msgspec.DecodeError, RecursionError, ValueError):
                raise Fault(
                    "model_garbage", "the answer is no JSON", again=True, body=_text(content)
                ) from None
            response = self._read(found, asked, content, is_chat)
            self._answered.add(path)
            return response

    def _read(self, found: Any, asked: Row, content: bytes, is_chat: bool) -> Response:
        if not isinstance(found, dict):
            raise Fault("model_garbage", "the answer is no object", again=True, body=_text(content))
        if found.get("error"):
            raise faults.in_body(found["error"], _text(content))
        try:
            if is_chat:
                return response_of(found, asked, self.settings.splits_thoughts)
            return _completed(found, asked)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            told = f"the answer is no response: {error}"
            raise Fault("model_garbage", told, again=True, body=_text(content)) from None

    async def _sent(self, path: str, body: Row, left: float) -> bytes:
        limit = max(0.05, min(self.settings.timeout, left))
        timeout = self._timeout if limit == self.settings.timeout else _timeout(limit)
        try:
            async with self._session.post(
                self._at[path],
                data=msgspec.json.encode(body),
                allow_redirects=False,  # a redirect would carry rollouts to a host that nobody named
                timeout=timeout,
            ) as answer:
                content = await _bounded(answer)
                if not 200 <= answer.status < 300:
                    raise faults.of_status(answer.status, _text(content), answer.headers)
                return content
        except TimeoutError:
            raise Fault("model_timeout", f"no answer within {limit:g} s", again=True) from None
        except (aiohttp.ClientError, OSError) as error:
            told = f"the connection failed: {type(error).__name__}"
            raise Fault("model_unreachable", told, again=True) from None

    def _stepped(self, form: ChatForm, fault: Fault) -> bool:
        """Step down to a form of chat that the server may know; False where there is none to try."""
        new = faults.simpler(form, fault)
        if new is None:
            return False
        if self._form == form:  # another call may have stepped down meanwhile
            self._form = new
        return True


@asynccontextmanager
async def model(settings: Mapping[str, Any]) -> AsyncIterator[OpenAIModel]:
    """The model of a config's block, with its connections open while the block lasts."""
    told = _settings(settings)
    host = _url(told.openai_base_url).host or ""
    headers = {"Content-Type": "application/json"}
    if told.openai_api_key:
        headers["Authorization"] = f"Bearer {told.openai_api_key.strip()}"
    elif pair := _login(told):
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300)
    async with aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=host not in ("127.0.0.1", "localhost", "::1"),  # proxies are for other machines
    ) as session:
        yield OpenAIModel(told, session)


def request(params: Row, name: str) -> Row:
    """The body that `params` ask for: nulls dropped, `metadata.extra_body` merged, the configured model."""
    body = {field: _dropped(value) for field, value in params.items() if value is not None}
    body["model"] = name
    body.pop("stream", None)
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and "extra_body" in metadata:
        kept = {field: value for field, value in metadata.items() if field != "extra_body"}
        body = {**body, "metadata": kept} if kept else {k: v for k, v in body.items() if k != "metadata"}
        extra = metadata["extra_body"]
        try:
            merged = (
                msgspec.json.decode(extra, type=dict[str, Any]) if isinstance(extra, str) else dict(extra)
            )
        except (msgspec.DecodeError, TypeError, ValueError):
            raise Unmeasured("bad_request", "metadata.extra_body is no JSON object", terminal=True) from None
        body |= merged
    return body


def _dropped(value: Any) -> Any:
    """Nulls of items and tools are as good as absent, but servers refuse an `id` that is null."""
    if not isinstance(value, list):
        return value
    return [_item(item) if isinstance(item, dict) else item for item in value]


def _item(item: Row) -> Row:
    # a message must have content, and an assistant's that only calls has none
    silent = {"content": ""} if "role" in item and item.get("content") is None else {}
    return {name: value for name, value in item.items() if value is not None} | silent


def _login(settings: Settings) -> str:
    """Name and password in the form in which they are sent, or nothing."""
    url = _named(settings.openai_base_url)
    return f"{url.user}:{url.password or ''}" if url.user else ""


def _secrets(settings: Settings) -> set[str]:
    """What a server may say back in an error, and nobody else may read."""
    url = _named(settings.openai_base_url)
    pair = _login(settings)
    known = {settings.openai_api_key.strip(), url.password or "", pair}
    known |= {value for name, value in url.query.items() if names_secret(name)}
    known |= {quote(text, safe="") for text in known}
    return known | {base64.b64encode(pair.encode()).decode()}


def _completed(found: Row, asked: Row) -> Response:
    """The object with what readers of rollouts rely on; raises where it is no whole response."""
    output, status, usage = found.get("output"), found.get("status"), found.get("usage")
    if not isinstance(output, list):
        raise ValueError("it has no output")
    if status in ("queued", "in_progress", "cancelled", "failed"):
        raise ValueError(f"its status is {status}")
    if usage is not None and not isinstance(usage, dict):
        raise ValueError("its usage is no object")
    is_silent = True
    for item in output:
        if _says(item):
            is_silent = False
    is_own = status == "incomplete" or (status == "completed" and usage)
    if is_silent and not is_own:
        # the model's own silence comes with a status and with what it cost; else a server has failed
        raise ValueError("it says nothing, nor why")
    found.setdefault("id", "")
    found.setdefault("object", "response")
    found.setdefault("created_at", 0.0)
    found.setdefault("parallel_tool_calls", asked.get("parallel_tool_calls", True))
    found.setdefault("tool_choice", asked.get("tool_choice", "auto"))
    found.setdefault("tools", asked.get("tools", []))
    found["model"] = found.get("model") or asked["model"]
    return found


def _says(item: Any) -> bool:
    """Whether an item of an output is more than silence; raises where it lacks what makes it one."""
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str):
        raise ValueError("an item of its output has no type")
    if kind == "message":
        content = item.get("content")
        if not isinstance(content, str):
            _parts(content)
        return bool(text_of(content))
    if kind == "function_call" and not (
        isinstance(item.get("call_id"), str) and isinstance(item.get("name"), str)
    ):
        raise ValueError("a call of its output has no call_id or no name")
    return True


def _parts(content: Any) -> None:
    """Raise where the content of a message is not made of parts."""
    if not isinstance(content, list):
        raise ValueError("a message of its output has no content")
    for part in content:
        if not isinstance(part, dict):
            raise ValueError("a message of its output has no content")
        if part.get("type") == "output_text" and not isinstance(part.get("text"), str):
            raise ValueError("a part of its output has no text")


def _timeout(limit: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=limit, sock_connect=min(30.0, limit))


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    if "Content-Encoding" not in answer.headers and (answer.content_length or MOST_BODY) < MOST_BODY:
        return await answer.read()  # as long as it says, for nothing unpacks to more
    held = bytearray()
    async for piece in answer.content.iter_any():
        held += piece
        if len(held) > MOST_BODY:
            raise Fault("model_garbage", f"the answer has more than {MOST_BODY >> 20} MiB", again=True)
    return bytes(held)


def _text(content: bytes) -> str:
    return content[:20_000].decode("utf-8", "replace")


def _url(text: str) -> URL:
    """The address without the name and password it may hold."""
    return _named(text).with_user(None)


def _named(text: str) -> URL:
    try:
        url = URL(text.strip().rstrip("/"))
    except ValueError:
        url = URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(
            "policy_base_url is no http or https address",
            "give it as http://HOST/v1, in env.yaml, with --model-url or as OPENAI_BASE_URL",
            "bad-model-url",
        )
    return url


def _settings(block: Mapping[str, Any]) -> Settings:
    known = {name: block[name] for name in Settings.__struct_fields__ if block.get(name) is not None}
    try:
        return msgspec.convert(known, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"the block of openai_model: {error}",
            "it wants openai_base_url, openai_api_key and openai_model; see docs/serve.md",
            "bad-model-settings",
        ) from None
