"""Ask an OpenAI-compatible server until it answers or the time is up.

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

import msgspec
from yarl import URL

from blade import hostile
from blade.endpoint import client, faults
from blade.endpoint.chat import Form
from blade.endpoint.client import Client
from blade.endpoint.faults import Fault
from blade.errors import UsageError
from blade_eval.config.secret import names_secret, without
from blade_eval.environment import Response, Row, Unmeasured

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds
_FORM = Form(has_schema=False)  # a schema stays in the request: without it the request would be another one


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

    def __init__(self, settings: Settings, client: Client, secrets: set[str]) -> None:
        self.settings = settings
        self.calls = 0  # requests that were to be answered
        self.retried = 0  # further tries
        self.faults: Counter[str] = Counter()  # what the tries met, by kind
        self._client, self._secrets = client, secrets
        self._random = random.Random(settings.seed)

    async def __call__(self, params: Row, row: Row) -> Response:
        """The model's answer to a request in the form of `responses_create_params`."""
        self.calls += 1
        body = request(params, self.settings.openai_model)
        until = time.monotonic() + self.settings.deadline
        tries = 0
        while True:
            try:
                return await self._client.ask(lambda form: body, until - time.monotonic())
            except Fault as error:
                self.faults[error.kind] += 1
                fault = error
            # what the server asks for, and full jitter, lest a thousand callers come back together
            longest = min(_LONGEST_WAIT, self.settings.first_wait * 2**tries)
            wait = self._random.uniform(0, longest) + (fault.wait or 0.0)
            if not fault.again or tries >= self.settings.retries or time.monotonic() + wait > until:
                raise self._given_up(fault, tries) from None
            tries += 1
            self.retried += 1
            await asyncio.sleep(wait)

    def _given_up(self, fault: Fault, tries: int) -> Unmeasured:
        # before it is cut, for half a key is not found; and after, for what is invisible may have hidden it
        text = without(hostile.line(without(fault.text, self._secrets), 500), self._secrets)
        if fault.again:
            text += f" (after {tries + 1} {'tries' if tries else 'try'})"
        fields: Row = {}
        if fault.status is not None:
            fields["_ng_failure_http_status"] = fault.status
        if fault.body:
            fields["_ng_failure_response_body"] = faults.cut(without(fault.body, self._secrets))
        return Unmeasured(fault.kind, text, terminal=fault.is_terminal, fields=fields)


@asynccontextmanager
async def model(settings: Mapping[str, Any]) -> AsyncIterator[OpenAIModel]:
    """The model of a config's block, with its connections open while the block lasts."""
    wanted = _settings(settings)
    url = client.address(wanted.openai_base_url)
    if url is None:
        hint = "give it as http://HOST/v1, in env.yaml, with --model-url or as OPENAI_BASE_URL"
        raise UsageError("policy_base_url is no http or https address", hint, "bad-model-url")
    key, splits = wanted.openai_api_key.strip(), wanted.splits_thoughts
    async with client.connected(url, key, wanted.timeout, _FORM, splits_thoughts=splits) as connection:
        yield OpenAIModel(wanted, connection, _secrets(key, url))


def request(params: Row, name: str) -> Row:
    """The body that `params` ask for: nulls dropped, `metadata.extra_body` merged, the configured model."""
    wanted = {field: value for field, value in params.items() if value is not None and field != "stream"}
    body = {field: _dropped(value) if isinstance(value, list) else value for field, value in wanted.items()}
    body["model"] = name
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and "extra_body" in metadata:
        body["metadata"] = dict(metadata)
        extra = body["metadata"].pop("extra_body")
        if not body["metadata"]:
            del body["metadata"]
        try:
            body |= msgspec.json.decode(extra, type=dict[str, Any]) if isinstance(extra, str) else dict(extra)
        except (msgspec.DecodeError, TypeError, ValueError):
            raise Unmeasured("bad_request", "metadata.extra_body is no JSON object", terminal=True) from None
    return body


def _dropped(value: Any) -> Any:
    """Nulls of items and tools are as good as absent, but servers refuse an `id` that is null."""
    if isinstance(value, list):
        return [_dropped(item) if isinstance(item, dict) else item for item in value]
    # a message must have content, and an assistant's that only calls has none
    silent = {"content": ""} if "role" in value and value.get("content") is None else {}
    return {name: inner for name, inner in value.items() if inner is not None} | silent


def _secrets(key: str, url: URL) -> set[str]:
    """What a server may say back in an error, and nobody else may read."""
    pair = client.login(url)
    known = {key, url.password or "", pair}
    known |= {value for name, value in url.query.items() if names_secret(name)}
    known |= {quote(text, safe="") for text in known}
    return known | {base64.b64encode(pair.encode()).decode()}


def _settings(block: Mapping[str, Any]) -> Settings:
    known = {name: block[name] for name in Settings.__struct_fields__ if block.get(name) is not None}
    try:
        return msgspec.convert(known, Settings, strict=False)
    except msgspec.ValidationError as error:
        hint = "it wants openai_base_url, openai_api_key and openai_model; see docs/serve.md"
        raise UsageError(f"the block of openai_model: {error}", hint, "bad-model-settings") from None
