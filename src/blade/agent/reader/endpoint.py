"""Ask an OpenAI-compatible endpoint once, and turn whatever goes wrong into one kind of fault."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import msgspec

from blade import hostile, refusal
from blade.agent.reader import wire
from blade.agent.reader.questions import Prompt
from blade.agent.reader.wire import CHAT, LIMITS, RESPONSES, Form, Reply
from blade.backoff import asked_wait
from blade.errors import UsageError

PUBLIC = "https://api.openai.com/v1"
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MOST_BODY = 8 << 20  # bytes of a response
_SHORT, _LONG = 10, 24  # characters of a key, with a digit in it and without
_NO_SCHEMA = re.compile(
    r"response_format|json_schema|text\.format|\bschema\b|structured output|\bstrict\b", re.IGNORECASE
)


class Fault(Exception):
    """A call without an answer."""

    def __init__(self, text: str, hint: str = "", again: bool = False, is_final: bool = False) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint
        self.again = again  # worth another try
        self.is_final = is_final  # no other question would fare better
        self.wait: float | None = None  # seconds that the endpoint asks for
        self.is_charged = False  # the endpoint may have done the work


class Endpoint:
    """One model behind one URL; what its endpoint understands is found out once."""

    def __init__(self, model: str, url: str, key: str, timeout: float, limit: int) -> None:
        openai = _package()
        self.model, self.host, self.limit, self.timeout = model, host_of(url), limit, timeout
        self._key = key
        # endpoints that want no key are given words such as `none` or `EMPTY`, which rollouts may hold too
        is_secret = len(key) >= _LONG or (len(key) >= _SHORT and any(sign.isdigit() for sign in key))
        self._secret = _spelled(key) if is_secret else None
        self.form = Form()
        self._changing = Lock()
        self._client: Any = openai.OpenAI(
            api_key=key or "none",
            base_url=url,
            timeout=timeout,
            max_retries=0,  # we wait ourselves, within our own bounds
            # a redirect would carry rollouts to a host that nobody named
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )

    def ask(self, prompt: Prompt, turns: Sequence[tuple[str, str]], schema: dict[str, Any]) -> Reply:
        """One reply; a form that the endpoint does not know is left for a simpler one."""
        while True:
            form = self.form
            try:
                content = self._sent(form, wire.body(form, self.model, prompt, turns, schema, self.limit))
            except _Refused as refused:
                if self._simpler(form, refused):
                    continue
                raise self._told(refused) from None
            try:
                found = wire.reply(form, content)
            except (msgspec.DecodeError, RecursionError):
                raise _torn("the endpoint sent no whole response") from None
            return msgspec.structs.replace(
                found, text=self.without_key(found.text), fault=self.without_key(found.fault)
            )

    def _sent(self, form: Form, body: dict[str, Any]) -> bytes:
        openai = _package()
        made = self._client.responses if form.api == RESPONSES else self._client.chat.completions
        try:
            with made.with_streaming_response.create(**body) as response:
                return self._read(response)
        except openai.APIStatusError as error:
            raise _Refused(error.status_code, error.body, asked_wait(error.response.headers)) from None
        except openai.APITimeoutError:
            raise self._slow() from None
        except openai.APIConnectionError as error:
            raise _torn(f"no connection to {self.host}: {_why(error)}") from None
        except openai.OpenAIError as error:
            told = self.without_key(hostile.line(self.without_key(str(error)), 200))
            raise _torn(f"the endpoint answered nonsense: {told}") from None

    def _read(self, response: Any) -> bytes:
        """The body, within a time and a size: the client's own time limit starts anew with every byte."""
        until, held = time.monotonic() + self.timeout, bytearray()
        try:
            for piece in response.iter_bytes():
                held += piece
                if len(held) > MOST_BODY:
                    raise _torn(f"the endpoint sent more than {MOST_BODY >> 20} MiB")
                if time.monotonic() > until:
                    raise self._slow()
        except Fault:
            raise
        except Exception as error:  # the classes of the HTTP library differ from version to version
            if "timeout" in type(error).__name__.lower():
                raise self._slow() from None
            raise _torn(f"the response broke off: {type(error).__name__}") from None
        return bytes(held)

    def _slow(self) -> Fault:
        return _torn(f"no answer within {self.timeout:g} s; --timeout gives it longer")

    def _simpler(self, form: Form, refused: _Refused) -> bool:
        """Step down to a form that the endpoint may know; False where there is none to try."""
        new = _stepped(form, refused)
        if new is None:
            return False
        with self._changing:
            if self.form == form:  # another question may have stepped down meanwhile
                self.form = new
        return True

    def without_key(self, text: str) -> str:
        """A text of the endpoint in which it repeats the key, plainly or escaped, does not keep it."""
        return text if self._secret is None else self._secret.sub("[key]", text)

    def _told(self, refused: _Refused) -> Fault:
        # before it is cut, for half a key is not found; and after, for what is invisible may have hidden it
        said = self.without_key(hostile.line(self.without_key(refused.text), 300))
        text = f": {said}" if said else ""
        fault = Fault(f"{self.host} answered {refused.status}{text}", *_advice(refused, self.model))
        fault.wait = refused.wait
        return fault


class _Refused(Exception):
    def __init__(self, status: int, body: Any, wait: float | None) -> None:
        self.status, self.wait = status, wait
        self.text = refusal.words(body)
        super().__init__(self.text)


def _spelled(key: str) -> re.Pattern[str]:
    """What finds a key however it is escaped: as JSON, as a URL, as HTML, and escaped twice."""
    ways = []
    for sign in key:
        code = ord(sign)
        plain = rf"\\{{0,8}}(?:{re.escape(sign)}|(?:u00|x){code:02x})"
        ways.append(rf"(?:{plain}|%{code:02x}|&#0*(?:{code}|x0*{code:x});)")
    return re.compile("".join(ways), re.IGNORECASE)


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


def _package() -> Any:
    try:
        import openai
    except ImportError:
        raise UsageError(
            "`blade read` needs the package `openai`, which is not installed",
            "pip install 'blade-diagnostics[llm]'",
            "llm-not-installed",
        ) from None
    return openai


def _torn(text: str) -> Fault:
    fault = Fault(text, "is the endpoint running, and is --base-url right?", again=True)
    fault.is_charged = True
    return fault


def _stepped(form: Form, refused: _Refused) -> Form | None:
    status, text = refused.status, refused.text
    if form.api == RESPONSES and status in (404, 405, 501):
        return Form(CHAT)
    if status not in (400, 415, 422):
        return None
    if form.has_schema and _NO_SCHEMA.search(text):
        return msgspec.structs.replace(form, has_schema=False)
    if form.api == RESPONSES and (refusal.has_no_responses(text) or refusal.refuses("store", text)):
        return Form(CHAT, form.has_schema)
    if form.api == CHAT and form.limit:
        other = LIMITS[LIMITS.index(form.limit) + 1]
        if refusal.refuses(form.limit, text) or (other and refusal.needs(other, text)):
            return msgspec.structs.replace(form, limit=other)
    return None


def _advice(refused: _Refused, model: str) -> tuple[str, bool, bool]:
    """What to do, whether to try again, and whether no other question would fare better."""
    status = refused.status
    if status == 402 or (status == 429 and refusal.has_no_credit(refused.text)):
        return "the account has no credit left at this endpoint", False, True
    if status in AGAIN:
        return "the endpoint is busy or broken; fewer at once with --concurrency, or try later", True, False
    if status in (401, 403):
        return "is the key right, and may it use this model? it is read from the environment", False, True
    if status in (404, 405, 501):
        name = hostile.line(model, 80)
        return (
            f"is --base-url right (it mostly ends in /v1), and does it offer the model {name}?",
            False,
            True,
        )
    if 300 <= status < 400:
        return "redirects are not followed; give the address it points to with --base-url", False, True
    if status == 413 or refusal.is_too_long(refused.text):
        return "the prompt is too long for the model; --budget makes dossiers shorter", False, False
    return "the endpoint does not take this request; what it says stands above", False, False


def _why(error: Exception) -> str:
    return type(error.__cause__).__name__ if error.__cause__ is not None else "it failed"
