"""Run rollouts on servers that `blade env start` or NeMo Gym has started."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import aiohttp
import msgspec
import yaml

from blade.endpoint.client import TooLarge, bounded
from blade.endpoint.faults import cut
from blade.errors import NothingToRead, UsageError
from blade_eval.environment import Row, Unmeasured
from blade_eval.runner.inputs import agent_of

HEAD = "http://127.0.0.1:11000"
_HEAD_S = 10.0  # seconds that the head server has to answer
_CONNECT_S = 30.0
_MOST_ROW, _MOST_CONFIG = 256 << 20, 16 << 20  # bytes of an answer


class Remote:
    """A runner: each row goes to the agent that was named for all, else to the one that the row names."""

    def __init__(self, session: aiohttp.ClientSession, tree: Row, agent: str | None, timeout: float) -> None:
        self.tree = tree  # the configuration that the head server serves
        self._session, self._agent = session, agent
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_S)
        self.url = cache(self._address)

    async def __call__(self, row: Row) -> Row:
        agent = self._agent or agent_of(row)
        if agent is None:
            raise UsageError("a row names no agent", "name one for all rows with --agent", "no-agent")
        url = self.url(agent)
        try:
            body = msgspec.json.encode(row)
        except (TypeError, ValueError, OverflowError) as error:
            raise Unmeasured("agent_request_failed", f"the row is no JSON: {error}", terminal=True) from None
        try:
            request = self._session.post(url + "/run", data=body, timeout=self._timeout, allow_redirects=False)
            async with request as answer:
                content, status = await bounded(answer, _MOST_ROW), answer.status
        except TooLarge as error:
            raise Unmeasured("agent_request_failed", f"the answer of {url} {error}", terminal=True) from None
        except TimeoutError:
            raise Unmeasured("transport_timeout", f"{url} gave no answer in time") from None
        except aiohttp.ClientConnectorError:
            raise Unmeasured("transport_unreachable", f"nobody answers at {url}") from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"the connection to {url} broke off: {type(error).__name__}"
            raise Unmeasured("transport_peer_drop", text) from None
        if status == 200 and (result := _object(content)) is not None:
            return routed(result)
        raise understood(status, content)

    def _address(self, agent: str) -> str:
        blocks = {name: block for name, block in self.tree.items() if isinstance(block, dict)}
        agents = blocks.get(agent, {}).get("responses_api_agents")
        for settings in agents.values() if isinstance(agents, dict) else ():
            host, port = settings.get("host"), settings.get("port")
            if port:
                host = host if host and host != "0.0.0.0" else "127.0.0.1"
                return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        names = ", ".join(sorted(name for name, block in blocks.items() if "responses_api_agents" in block))
        hint = f"they have {names or 'none'}; --agent names one of them"
        raise UsageError(f"the servers have no agent {agent!r}", hint, "unknown-agent")


@asynccontextmanager
async def remote(
    head_url: str = HEAD, agent: str | None = None, timeout: float = 7200.0
) -> AsyncIterator[Remote]:
    """A runner on the servers behind a head server; `timeout` is for one rollout, in seconds."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        tree = await _configuration(session, head_url.rstrip("/"))
        runner = Remote(session, tree, agent, timeout)
        if agent is not None:
            runner.url(agent)
        yield runner


async def _configuration(session: aiohttp.ClientSession, head_url: str) -> Row:
    timeout = aiohttp.ClientTimeout(total=_HEAD_S)
    why = "is another program listening at that port?"
    try:
        async with session.get(head_url + "/global_config_dict_yaml", timeout=timeout) as answer:
            text, status = (await bounded(answer, _MOST_CONFIG)).decode("utf-8", "replace"), answer.status
    except TooLarge as error:
        raise NothingToRead(f"{head_url} is no head server: its answer {error}", why, "no-head-server") from None
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        raise NothingToRead(
            f"no servers: nobody answers at the head server {head_url}",
            "start them with `blade env start` in another terminal, name another port with --head-url, "
            "or leave out --no-serve",
            "no-head-server",
        ) from None
    try:
        tree = yaml.safe_load(text)
        if isinstance(tree, str):  # NeMo Gym sends the YAML as a JSON string
            tree = yaml.safe_load(tree)
    except yaml.YAMLError:
        tree = None
    if status != 200 or not isinstance(tree, dict):
        what = f"{head_url} is no head server: it answered {status} without a configuration"
        raise NothingToRead(what, why, "no-head-server")
    return tree


def _object(content: bytes) -> Row | None:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (ValueError, RecursionError):  # no JSON object, or no UTF-8
        return None


def understood(status: int, content: bytes) -> Unmeasured:
    body = _object(content) or {}
    if isinstance(body.get("failure_class"), str):
        fields = body.get("fields")
        return Unmeasured(
            body["failure_class"], str(body.get("reason") or ""), terminal=body.get("terminal") is True,
            fields=fields if isinstance(fields, dict) else None,
        )
    text = cut(content.decode("utf-8", "replace"))
    fields = {"_ng_failure_http_status": status, "_ng_failure_response_body": text}
    return Unmeasured("agent_request_failed", f"the agent server answered {status}", fields=fields)


def routed(result: Row) -> Row:
    """A result row; one that the server itself labels as a failure is none."""
    kind = result.get("_ng_failure_class")
    if not isinstance(kind, str):
        return result
    texts = map(result.get, ("failure_reason", "_ng_failure_judge_error"))
    reason = next(filter(None, texts), "the server gave no reason")
    fields = {key: value for key, value in result.items() if key != "_ng_failure_class"}
    raise Unmeasured(kind, cut(str(reason)), terminal=result.get("_ng_failure_terminal") is True, fields=fields)
