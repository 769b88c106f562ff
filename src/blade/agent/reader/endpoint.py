"""Ask a model behind an OpenAI-compatible endpoint, and say what to do about whatever goes wrong."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from blade import hostile
from blade.agent.reader.questions import Prompt
from blade.agent.reader.spending import Usage
from blade.endpoint import client, faults
from blade.endpoint.chat import Form
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.endpoint.client import Client

PUBLIC = "https://api.openai.com/v1"
_MOST_BODY = 8 << 20  # bytes of a response
_SHORT, _LONG = 10, 24  # characters of a key, with a digit in it and without
_FORM = Form(limits=("max_completion_tokens", "max_tokens", ""))
_OWNERS = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}


class Fault(Exception):
    """A call without an answer."""

    def __init__(self, text: str, hint: str = "", again: bool = False, is_final: bool = False) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint
        self.again = again  # worth another try
        self.is_final = is_final  # no other question would fare better
        self.wait: float | None = None  # seconds that the endpoint asks for
        self.is_charged = False  # the endpoint may have done the work


class Reply(msgspec.Struct, frozen=True):
    """What came back: the text, what it cost, and why there may be no text."""

    text: str
    usage: Usage | None  # None: the endpoint does not say
    fault: str = ""  # cut short, refused


class Endpoint:
    """One model behind one URL."""

    def __init__(self, model: str, url: str, key: str, timeout: float, limit: int) -> None:
        self.model, self.host, self.limit = model, host_of(url), limit
        self._url, self._key, self._timeout = url, key, timeout
        # endpoints that want no key are given words such as `none` or `EMPTY`, which rollouts may hold too
        is_secret = len(key) >= _LONG or (len(key) >= _SHORT and any(sign.isdigit() for sign in key))
        self._secret = _spelled(key) if is_secret else None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        """The connections to it, open while the block lasts."""
        url = client.address(self._url)
        assert url is not None  # as `host_of` has found
        headers = {header: os.environ[name] for name, header in _OWNERS.items() if os.environ.get(name)}
        async with client.connected(
            url, self._key, self._timeout, _FORM, most_body=_MOST_BODY, headers=headers
        ) as connection:
            yield connection

    async def ask(
        self, connection: Client, prompt: Prompt, turns: Sequence[tuple[str, str]], schema: dict[str, Any]
    ) -> Reply:
        """One reply; `turns` are what was said after the prompt, by role."""
        try:
            response = await connection.ask(lambda form: self._request(form, prompt, turns, schema))
        except faults.Fault as fault:
            raise self._told(fault) from None
        return self._reply(response)

    def without_key(self, text: str) -> str:
        """A text of the endpoint in which it repeats the key, plainly or escaped, does not keep it."""
        return text if self._secret is None else self._secret.sub("[key]", text)

    def _request(
        self, form: Form, prompt: Prompt, turns: Sequence[tuple[str, str]], schema: dict[str, Any]
    ) -> dict[str, Any]:
        shape: dict[str, Any] = {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
        system = prompt.system
        if not form.has_schema:
            text = msgspec.json.encode(schema).decode()
            system += (
                f"\n\nReply with one JSON object and nothing else, valid under this JSON Schema:\n{text}"
            )
        return {
            "model": self.model,
            "instructions": system,
            "input": [{"role": role, "content": text} for role, text in (("user", prompt.user), *turns)],
            "max_output_tokens": self.limit,
            "store": False,  # the endpoint is asked to keep nothing
            **({"text": {"format": shape}} if form.has_schema else {}),
        }

    def _reply(self, response: dict[str, Any]) -> Reply:
        messages = [item.get("content") or [] for item in response["output"] if item.get("type") == "message"]
        parts = [
            part
            for content in messages
            for part in ([{"text": content}] if isinstance(content, str) else content)
        ]
        text = self.without_key("".join(str(part.get("text") or "") for part in parts))
        refusal = next((str(part["refusal"]) for part in parts if part.get("refusal")), "")
        reason = (response.get("incomplete_details") or {}).get("reason", "max_output_tokens")
        fault = ""
        if response.get("status") == "incomplete" and reason == "max_output_tokens":
            fault = "the reply was cut short at the limit of output tokens; --max-output raises it"
        elif refusal:
            fault = self.without_key(f"the model refused: {refusal}")
        elif not text.strip():
            fault = "the reply is empty"
        return Reply(text, _usage(response.get("usage")), fault)

    def _told(self, fault: faults.Fault) -> Fault:
        # before it is cut, for half a key is not found; and after, for what is invisible may have hidden it
        text = self.without_key(hostile.line(self.without_key(fault.text), 300))
        advised = Fault(text, *_advice(fault, self.model))
        advised.wait, advised.is_charged = fault.wait, fault.status is None
        return advised


def host_of(url: str) -> str:
    """The host and port of a URL; user names, passwords and paths are left out."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(
            "the base URL is no http or https address", "give it as https://HOST/v1", "bad-endpoint"
        )
    return f"{host}:{port}" if port else host


def _spelled(key: str) -> re.Pattern[str]:
    """What finds a key however it is escaped: as JSON, as a URL, as HTML, and escaped twice."""
    ways = []
    for sign in key:
        code = ord(sign)
        plain = rf"\\{{0,8}}(?:{re.escape(sign)}|(?:u00|x){code:02x})"
        ways.append(rf"(?:{plain}|%{code:02x}|&#0*(?:{code}|x0*{code:x});)")
    return re.compile("".join(ways), re.IGNORECASE)


def _usage(counts: dict[str, Any] | None) -> Usage | None:
    counts = counts or {}
    tokens_in = counts.get("input_tokens", counts.get("prompt_tokens"))
    tokens_out = counts.get("output_tokens", counts.get("completion_tokens"))
    if not (type(tokens_in) is int and type(tokens_out) is int and min(tokens_in, tokens_out) >= 0):
        return None
    return Usage(tokens_in, tokens_out)


def _advice(fault: faults.Fault, model: str) -> tuple[str, bool, bool]:
    """What to do, whether to try again, and whether no other question would fare better."""
    status = fault.status
    if status is None:
        more = ", or give it longer with --timeout" if fault.kind == "model_timeout" else ""
        return f"is the endpoint running, and is --base-url right?{more}", True, False
    if fault.has_no_credit:
        return "the account has no credit left at this endpoint", False, True
    if fault.again:
        return "the endpoint is busy or broken; fewer at once with --concurrency, or try later", True, False
    if status in (401, 403):
        return "is the key right, and may it use this model? it is read from the environment", False, True
    if status in (404, 405, 501):
        name = hostile.line(model, 80)
        hint = f"is --base-url right (it mostly ends in /v1), and does it offer the model {name}?"
        return hint, False, True
    if 300 <= status < 400:
        return "redirects are not followed; give the address it points to with --base-url", False, True
    if status == 413 or faults.is_too_long(fault.said):
        return "the prompt is too long for the model; --budget makes dossiers shorter", False, False
    return "the endpoint does not take this request; what it says stands above", False, False
