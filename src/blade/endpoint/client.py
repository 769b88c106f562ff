"""Send a request to an OpenAI-compatible endpoint in a form that it understands, and name what goes wrong.

The Responses API is asked first; an endpoint that does not have it is asked in the form of a chat from then on.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from blade.endpoint import faults
from blade.endpoint.chat import BadRequest, Form, Row, Unsayable, chat_request, response_of
from blade.endpoint.faults import Fault

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MOST_BODY = 64 << 20  # bytes of a response
_RESPONSES, _CHAT = "responses", "chat/completions"
_INFLATED = ("gzip", "x-gzip", "deflate")
_BAD_STATES = ("queued", "in_progress", "cancelled", "failed")

Build = Callable[[Form], Row]  # the request as the Responses API takes it, for an endpoint of this form


class Client:
    """One endpoint; what it understands is found out once."""

    def __init__(
        self, session: aiohttp.ClientSession, url: URL, timeout: float, form: Form, splits_thoughts: bool,
        most_body: int,
    ) -> None:  # fmt: skip
        self.host = host(url)
        self._session, self._limit, self._most_body = session, timeout, most_body
        # with the query of the address, such as an api-version
        self._at = {path: url.joinpath(path).with_query(url.query) for path in (_CHAT, _RESPONSES)}
        self._timeout = _timeout(timeout)  # of a try that has all its time
        self._answered: set[str] = set()  # the paths below the URL that have answered so far
        self._form, self._splits_thoughts = form, splits_thoughts

    async def ask(self, build: Build, left: float = float("inf")) -> Row:
        """One try, within `left` seconds: a Responses object with what readers of it rely on, or a `Fault`."""
        # One answer in the form of a chat settles it, unless the Responses API has answered too.
        is_chat = _CHAT in self._answered and _RESPONSES not in self._answered
        while True:
            form, path = self._form, _CHAT if is_chat else _RESPONSES
            request = build(form)
            try:
                body = chat_request(request, form) if is_chat else request
            except Unsayable as unsayable:
                raise Fault("model_refused", f"{self.host} has no Responses API, and {unsayable}") from None
            except BadRequest as error:
                raise Fault("bad_request", str(error), is_terminal=True) from None
            try:
                content = await self._sent(path, body, left)
            except Fault as fault:
                if fault.status == 404 and path in self._answered and not fault.has_no_model:
                    # a route that was there a moment ago is not missing
                    fault.kind, fault.again = "model_unreachable", True
                elif not is_chat and path not in self._answered and (
                    fault.has_no_responses
                    or ("store" in body and fault.status in (400, 415, 422) and faults.refuses("store", fault.said))
                ):  # fmt: skip
                    is_chat = True
                    continue
                elif (simpler := faults.simpler(form, fault, is_chat)) is not None:
                    if self._form == form:  # another call may have stepped down meanwhile
                        self._form = simpler
                    continue
                raise
            response = self._read(content, request, is_chat)
            self._answered.add(path)
            return response

    async def _sent(self, path: str, body: Row, left: float) -> bytes:
        import aiohttp

        limit = max(0.05, min(self._limit, left))
        try:
            async with self._session.post(
                self._at[path],
                data=msgspec.json.encode(body),
                allow_redirects=False,  # a redirect would carry rollouts to a host that nobody named
                timeout=self._timeout if limit == self._limit else _timeout(limit),
            ) as answer:
                content = await bounded(answer, self._most_body)
                if not 200 <= answer.status < 300:
                    fault = faults.of_status(answer.status, _text(content), answer.headers)
                    fault.text = f"{self.host} {fault.text}"
                    raise fault
                return content
        except TimeoutError:
            text = f"{self.host} gave no answer within {limit:g} s"
            raise Fault("model_timeout", text, again=True) from None
        except TooLarge as error:
            raise self._garbage(f"an answer that {error}", b"") from None
        except (aiohttp.ClientError, OSError) as error:
            is_far = isinstance(error, aiohttp.ClientConnectorError)
            text = f"no connection to {self.host}" if is_far else f"{self.host} broke off its answer"
            raise Fault("model_unreachable", f"{text}: {type(error).__name__}", again=True) from None

    def _read(self, content: bytes, request: Row, is_chat: bool) -> Row:
        try:
            response = msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError, ValueError):
            raise self._garbage("an answer that is no JSON", content) from None
        if not isinstance(response, dict):
            raise self._garbage("an answer that is no object", content)
        if response.get("error"):
            fault = faults.in_body(response["error"], _text(content))
            fault.text = f"{self.host} {fault.text}"
            raise fault
        try:
            return response_of(response, request, self._splits_thoughts) if is_chat else _completed(response, request)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._garbage(f"an answer that is no response: {error}", content) from None

    def _garbage(self, what: str, content: bytes) -> Fault:
        return Fault("model_garbage", f"{self.host} sent {what}", again=True, body=_text(content))


@asynccontextmanager
async def connected(
    url: URL, key: str, timeout: float, form: Form, *, splits_thoughts: bool = True, most_body: int = MOST_BODY
) -> AsyncIterator[Client]:
    """The client of an address, which may hold a name and a password, with its connections open."""
    import aiohttp

    sent = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    elif url.user:
        sent["Authorization"] = f"Basic {base64.b64encode(login(url).encode()).decode()}"
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300),
        headers=sent,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # `bounded` does it
        trust_env=url.host not in ("127.0.0.1", "localhost", "::1"),  # proxies are for other machines
    ) as session:
        yield Client(session, url.with_user(None), timeout, form, splits_thoughts, most_body)


def address(text: str) -> URL | None:
    """The URL of an endpoint; None where it is no http or https address."""
    from yarl import URL

    try:
        url = URL(text.strip().rstrip("/"))
        return url if url.scheme in ("http", "https") and url.host and url.port else None
    except ValueError:
        return None


def host(url: URL) -> str:
    """Whom a URL addresses."""
    return f"{url.host}:{url.explicit_port}" if url.explicit_port else str(url.host)


def login(url: URL) -> str:
    """Name and password of an address in the form in which they are sent, or nothing."""
    return f"{url.user}:{url.password or ''}" if url.user else ""


# ---- Bodies ------------------------------------------------------------------------------------


class TooLarge(ValueError):
    """A body that is not read to its end; the message says why."""


async def bounded(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of an answer whose session does not decompress: of at most `most` bytes, packed or not."""
    content = bytearray()
    async for piece in answer.content.iter_any():
        content += piece
        if len(content) > most:
            raise TooLarge(f"has more than {most >> 20} MiB")
    return inflated(bytes(content), answer.headers.get("Content-Encoding", ""), most)


def inflated(content: bytes, encoding: str, most: int) -> bytes:
    """A body as it was before it was packed; it is never unpacked beyond `most` bytes."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity") or not content:
        return content
    if encoding not in _INFLATED:
        raise TooLarge(f"is packed in a way that is not read here ({encoding[:40]!r})")
    unpacking = zlib.decompressobj(32 + zlib.MAX_WBITS)
    try:
        plain = unpacking.decompress(content, most + 1)
    except zlib.error:
        raise TooLarge("cannot be unpacked") from None
    if len(plain) > most:
        raise TooLarge(f"unpacks to more than {most >> 20} MiB")
    if not unpacking.eof:
        raise TooLarge("cannot be unpacked")
    return plain


def _text(content: bytes) -> str:
    return content[:20_000].decode("utf-8", "replace")


def _timeout(limit: float) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=limit, sock_connect=min(30.0, limit))


# ---- What the Responses API answers ------------------------------------------------------------


def _completed(response: Row, request: Row) -> Row:
    """The object with what readers of rollouts rely on; raises where it is no whole response."""
    output, status, usage = response.get("output"), response.get("status"), response.get("usage")
    if not isinstance(output, list):
        raise ValueError("it has no output")
    if status in _BAD_STATES:
        raise ValueError(f"its status is {status}")
    if usage is not None and not isinstance(usage, dict):
        raise ValueError("its usage is no object")
    is_silent = not sum(map(_says, output))  # every item is looked at
    is_own = status == "incomplete" or (status == "completed" and usage)
    if is_silent and not is_own:
        # the model's own silence comes with a status and with what it cost; else a server has failed
        raise ValueError("it says nothing, nor why")
    own = {"id": "", "object": "response", "created_at": 0.0}
    usual = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    for name, value in (own | usual).items():
        response.setdefault(name, request.get(name, value) if name in usual else value)
    response["model"] = response.get("model") or request["model"]
    return response


def _says(item: Any) -> bool:
    """Whether an item of an output is more than silence; raises where it lacks what makes it one."""
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str):
        raise ValueError("an item of its output has no type")
    if kind == "function_call" and not all(isinstance(item.get(name), str) for name in ("call_id", "name")):
        raise ValueError("a call of its output has no call_id or no name")
    if kind != "message":
        return True
    content = item.get("content")
    parts = [{"text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ValueError("a message of its output has no content")
    if not all(isinstance(part.get("text"), str) for part in parts if part.get("type") == "output_text"):
        raise ValueError("a part of its output has no text")
    return any(part.get("text", part.get("refusal")) for part in parts)
