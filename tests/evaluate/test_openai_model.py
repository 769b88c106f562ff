"""A model server of every temper: what it costs, what is given up, what is converted, what stays secret."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.endpoint.chat import Form, Unsayable, chat_request, response_of
from blade.endpoint.faults import asked_wait
from blade.errors import UsageError
from blade_eval.environment import Unmeasured
from blade_eval.models import model
from blade_eval.models.openai_model import OpenAIModel, request
from tests.evaluate.openai_server import (
    ALL_KINDS,
    Body,
    Faults,
    Policy,
    Reply,
    Server,
    Status,
    call,
    chat_object,
    fixed,
    from_chat,
    message,
    response_object,
    serving,
)

KEY = "sk-very-secret-0123456789"
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "d",
    "parameters": {"type": "object"},
    "strict": None,
}


def asked(server: Server, params: Any, **settings: Any) -> tuple[Any, OpenAIModel]:
    """The answer to one request, or the Unmeasured that it raised, and the model."""

    async def one() -> tuple[Any, OpenAIModel]:
        told = {"first_wait": 0.001, "seed": 1, "timeout": 5.0, **settings}
        base = {"openai_base_url": server.url, "openai_api_key": KEY, "openai_model": "m"}
        async with model("openai_model", base | told) as ask:
            assert isinstance(ask, OpenAIModel)
            try:
                return await ask(params, {}), ask
            except Unmeasured as unmeasured:
                return unmeasured, ask

    return asyncio.run(one())


def said(response: dict[str, Any]) -> str:
    return "".join(
        part.get("text", "")
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )


# ---- The two APIs ------------------------------------------------------------------------------


def test_the_responses_api_is_asked_as_it_stands() -> None:
    params = {
        "input": [{"role": "user", "content": "hello"}, {"type": "function_call", "id": None, "status": None,
                   "call_id": "c", "name": "weather", "arguments": "{}"},
                  {"type": "function_call_output", "call_id": "c", "output": "sun"}],
        "tools": [WEATHER],
        "temperature": 0.5,
        "top_p": None,
        "stream": True,
        "model": None,
        "metadata": {"extra_body": '{"seed": 3, "chat_template_kwargs": {"thinking": true}}', "run": "7"},
    }  # fmt: skip
    with serving() as server:
        found, ask = asked(server, params)
    (sent,) = server.calls
    assert sent.path == "/v1/responses"
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert sent.body["model"] == "m"
    assert sent.body["seed"] == 3
    assert sent.body["chat_template_kwargs"] == {"thinking": True}
    assert sent.body["metadata"] == {"run": "7"}
    assert not {"top_p", "stream"} & set(sent.body)
    assert sent.body["input"][1] == {
        "type": "function_call",
        "call_id": "c",
        "name": "weather",
        "arguments": "{}",
    }
    assert "strict" not in sent.body["tools"][0]
    assert said(found) == "hello"
    assert found["usage"]["input_tokens"] > 0
    assert (ask.calls, ask.retried) == (1, 0)


def test_a_server_without_the_responses_api_is_asked_in_chat_and_remembered() -> None:
    async def both(url: str) -> list[str]:
        settings = {"openai_base_url": url, "openai_api_key": "", "openai_model": "m"}
        async with model("openai_model", settings) as ask:
            return [said(await ask({"input": text}, {})) for text in ("one", "two")]

    with serving(is_chat_only=True) as server:
        assert asyncio.run(both(server.url)) == ["one", "two"]
    assert server.counts["no_responses_api"] == 1
    assert server.counts["chat"] == 2
    assert "Authorization" not in server.calls[0].headers


@pytest.mark.parametrize(
    ("status", "falls_back"),
    [
        (Status(405, "Method Not Allowed"), True),
        (Status(501, ""), True),
        (Status(404, body='{"detail":"Not Found"}'), True),
        (Status(400, "Unknown endpoint /v1/responses"), True),
        (Status(400, "Invalid URL (POST /v1/responses)"), True),
        (Status(422, "The Responses API is not supported by this model."), True),
        (Status(400, "Unsupported parameter: 'temperature' is not supported with this model."), False),
        (Status(400, "Invalid image. See https://host/docs/api-reference/responses/create"), False),
        (Status(400, "Invalid URL of an image: https://host/x.png"), False),
        (Status(404, "The model `m` does not exist.", "model_not_found"), False),
        (Status(400, "temperature must be at most 2"), False),
    ],
)
def test_only_a_missing_route_falls_back(status: Status, falls_back: bool) -> None:
    with serving() as server:
        server.policy = lambda body: "fine" if server.calls[-1].is_chat else status
        found, _ = asked(server, {"input": "x"})
    assert isinstance(found, dict) == falls_back
    if not falls_back:
        assert found.kind == "model_refused"
        assert server.counts["calls"] == 1


def asked_in_turn(server: Server, *texts: str, **settings: Any) -> list[Any]:
    """What one model says to several requests, one after the other."""

    async def all_of_them() -> list[Any]:
        told = {"openai_base_url": server.url, "openai_model": "m", "first_wait": 0.001, **settings}
        found: list[Any] = []
        async with model("openai_model", told) as ask:
            for text in texts:
                try:
                    found.append(said(await ask({"input": text, "max_output_tokens": 100}, {})))
                except Unmeasured as unmeasured:
                    found.append(unmeasured)
        return found

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("is_chat_only", [False, True])
def test_a_route_that_has_answered_is_not_missing(is_chat_only: bool) -> None:
    def moody(body: Body) -> Any:
        is_stray = server.counts["calls"] == 2
        return Status(404, "Not Found") if is_stray else "fine"

    with serving(moody, is_chat_only=is_chat_only) as server:
        assert asked_in_turn(server, "one", "two", "three") == ["fine"] * 3
    assert [call.is_chat for call in server.calls] == [is_chat_only] * 4
    with serving(lambda body: Status(404, "the model m does not exist")) as server:
        (found,) = asked_in_turn(server, "one")
    assert found.kind == "model_refused"


def test_a_refusal_before_the_first_answer_does_not_settle_the_form() -> None:
    """The route is there for whoever asks what it can answer; a chat that fails too proves nothing."""

    def picky(body: Body) -> Any:
        first = server.counts["calls"] <= 2
        return Status(404, "Not Found") if first else "fine"

    with serving(picky) as server:
        refused, answered = asked_in_turn(server, "one", "two")
    assert isinstance(refused, Unmeasured)
    assert answered == "fine"
    assert [call.is_chat for call in server.calls] == [False, True, False]


def chat_steps(body: Body) -> Any:
    """Calls a tool, then says what the tool said."""
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    if not outputs:
        think = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look it up"}]}
        return Reply([think, *message("wait"), call("weather", {"city": "Rome"}, "c1")])
    return Reply(message(f"it is {outputs[-1]['output']}"), usage=(7, 5))


@pytest.mark.parametrize("is_chat_only", [False, True])
def test_a_tool_loop_is_the_same_in_both_forms(is_chat_only: bool) -> None:
    async def loop(url: str) -> list[Any]:
        settings = {"openai_base_url": url, "openai_model": "m"}
        async with model("openai_model", settings) as ask:
            items: list[Any] = [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": "Rome?"},
            ]
            first = await ask({"input": items, "tools": [WEATHER], "max_output_tokens": 9}, {})
            items += [*first["output"], {"type": "function_call_output", "call_id": "c1", "output": "sunny"}]
            return [first, await ask({"input": items, "tools": [WEATHER], "max_output_tokens": 9}, {})]

    with serving(chat_steps, is_chat_only=is_chat_only) as server:
        first, last = asyncio.run(loop(server.url))
    assert [item["type"] for item in first["output"]] == ["reasoning", "message", "function_call"]
    assert first["output"][0]["summary"] == [{"type": "summary_text", "text": "look it up"}]
    assert first["output"][2]["call_id"] == "c1"
    assert json.loads(first["output"][2]["arguments"]) == {"city": "Rome"}
    assert said(last) == "it is sunny"
    assert last["usage"]["input_tokens"] == 7
    assert last["usage"]["output_tokens"] == 5
    if is_chat_only:
        sent = server.calls[-1].body
        assert sent["max_tokens"] == 9
        assert [turn["role"] for turn in sent["messages"]] == ["system", "user", "assistant", "tool"]
        assert sent["messages"][2]["content"] == "wait"
        assert sent["messages"][2]["reasoning_content"] == "look it up"
        assert sent["messages"][2]["tool_calls"][0]["function"] == {
            "name": "weather",
            "arguments": '{"city": "Rome"}',
        }
        assert sent["tools"][0]["function"]["name"] == "weather"


@pytest.mark.parametrize("is_chat_only", [False, True])
def test_a_cut_answer_says_so(is_chat_only: bool) -> None:
    with serving(lambda body: Reply(message("half"), is_cut=True), is_chat_only=is_chat_only) as server:
        found, _ = asked(server, {"input": "x", "max_output_tokens": 1})
    assert found["incomplete_details"] == {"reason": "max_output_tokens"}
    with serving(fixed("whole"), is_chat_only=is_chat_only) as server:
        found, _ = asked(server, {"input": "x"})
    assert found["incomplete_details"] is None


@pytest.mark.parametrize(
    ("text", "thought", "rest"),
    [
        ("<think>a\nb</think>\n\nfour", "a\nb", "four"),
        ("a b</think>four", "a b", "four"),  # the template opened the thought
        ("<think>never ends", "never ends", ""),
        ("four <think>late</think>", "", "four <think>late</think>"),
        ("four", "", "four"),
    ],
)
def test_thoughts_at_the_start_of_a_chat_are_reasoning(text: str, thought: str, rest: str) -> None:
    chat = chat_object({}, Reply(message(text)))
    found = response_of(chat, {})
    got = [item["summary"][0]["text"] for item in found["output"] if item["type"] == "reasoning"]
    assert "".join(got) == thought
    assert said(found) == rest
    assert said(response_of(chat, {}, splits_thoughts=False)) == text


def test_what_a_chat_may_also_say() -> None:
    def one(message: Any, **more: Any) -> Any:
        return response_of({"id": "x", "choices": [{"message": message, **more}]}, {})

    refused = one({"content": None, "refusal": "no"})["output"]
    assert refused[0]["content"] == [{"type": "refusal", "refusal": "no"}]
    assert one({"content": "x"})["usage"] is None
    assert one({"content": ""}, finish_reason="content_filter")["incomplete_details"] == {
        "reason": "content_filter"
    }
    made = one(
        {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]}
    )
    assert [(item["arguments"], item["name"]) for item in made["output"]] == [('{"a":1}', "f"), ("{}", "g")]
    assert len({item["call_id"] for item in made["output"]}) == 2
    assert one({"content": None, "reasoning": "hm"})["output"][0]["type"] == "reasoning"
    for broken in ({"choices": []}, {}, {"choices": [{}]}, {"choices": ["x"]}):
        with pytest.raises(ValueError, match="chat completion"):
            response_of(broken, {})


def test_a_request_in_the_form_of_a_chat() -> None:
    parts = [
        {"type": "input_text", "text": "what is it?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
    ]
    body = chat_request(
        {
            "model": "m",
            "instructions": "be kind",
            "input": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "old"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
                },
                {"role": "user", "content": parts},
            ],
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True}},
            "tool_choice": "auto",
            "top_logprobs": 2,
            "seed": 4,
            "metadata": {"a": "b"},
            "truncation": "auto",
        }
    )
    assert body["messages"] == [
        {"role": "system", "content": "be kind"},
        {"role": "assistant", "content": "ab"},  # its thought was before the question
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            ],
        },
    ]
    assert body["reasoning_effort"] == "low"
    assert body["response_format"]["json_schema"] == {"name": "n", "schema": {}, "strict": True}
    assert (body["logprobs"], body["top_logprobs"], body["seed"]) == (True, 2, 4)
    assert not {"tool_choice", "metadata", "truncation", "text", "reasoning", "input"} & set(body)
    named = chat_request(
        {"input": "x", "tools": [WEATHER], "tool_choice": {"type": "function", "name": "weather"}}
    )
    assert named["tool_choice"] == {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize(
    "params",
    [
        {"input": "x", "previous_response_id": "resp_1"},
        {"input": "x", "tools": [{"type": "web_search"}]},
        {"input": [{"type": "item_reference", "id": "x"}]},
        {"input": [{"role": "user", "content": [{"type": "input_hologram"}]}]},
    ],
)
def test_what_a_chat_cannot_be_told_is_refused_not_dropped(params: Any) -> None:
    with pytest.raises(Unsayable):
        chat_request(params)
    with serving(is_chat_only=True) as server:
        found, _ = asked(server, params)
    assert found.kind == "model_refused"
    assert server.counts["chat"] == 0


texts = st.text(max_size=20)
turns = st.lists(
    st.one_of(
        st.tuples(st.just("user"), texts.filter(bool)).map(
            lambda t: {"type": "message", "role": t[0], "content": t[1]}
        ),
        st.tuples(texts.filter(bool)).map(
            lambda t: {"type": "message", "role": "assistant", "content": t[0]}
        ),
        st.integers(0, 9).map(
            lambda n: {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"}
        ),
        st.tuples(st.integers(0, 9), texts).map(
            lambda t: {"type": "function_call_output", "call_id": f"c{t[0]}", "output": t[1]}
        ),
    ),
    max_size=8,
)


@given(turns, st.lists(st.just(WEATHER), max_size=2))
def test_a_conversation_survives_the_way_through_a_chat(items: list[Any], tools: list[Any]) -> None:
    """The test server's own reading of a chat gives back the items, in order."""
    body = json.loads(json.dumps(chat_request({"input": items, "tools": tools})))
    back = from_chat(body)
    assert back["input"] == items
    assert [tool["name"] for tool in back["tools"]] == ["weather"] * len(tools)


@given(texts.filter(lambda text: "think>" not in text), st.booleans(), st.integers(0, 3))
def test_both_apis_say_the_same(text: str, is_cut: bool, calls: int) -> None:
    items = [*(message(text) if text else []), *(call("f", {"n": n}, f"c{n}") for n in range(calls))]
    reply = Reply(items or message(""), is_cut=is_cut, usage=(3, 4))
    one, other = response_object({"model": "m"}, reply), response_of(chat_object({"model": "m"}, reply), {})
    for name in ("model", "object", "status", "incomplete_details", "usage", "error", "tool_choice"):
        assert one[name] == other[name], name
    kept = ("type", "role", "name", "call_id", "arguments", "content")
    same = [[{k: item[k] for k in kept if k in item} for item in found["output"]] for found in (one, other)]
    assert same[0] == same[1]


# ---- Faults ------------------------------------------------------------------------------------

GIVEN_UP = {
    "429": "model_rate_limited", "429_after": "model_rate_limited", "500": "model_unreachable",
    "503": "model_unreachable", "hang": "model_timeout", "reset": "model_unreachable", "garbage": "model_garbage",
    "truncated": "model_garbage", "cut": "model_unreachable", "empty": "model_garbage", "error_object": "model_garbage",
    "hollow": "model_garbage", "mute": "model_garbage", "mistyped": "model_garbage", "failed": "model_garbage",
}  # fmt: skip


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("is_chat_only", [False, True])
def test_a_fault_costs_a_retry_and_no_answer(kind: str, is_chat_only: bool) -> None:
    faults = Faults(share=1.0, kinds=(kind,), hang=2.0, most=2)
    with serving(fixed("4"), faults, is_chat_only=is_chat_only) as server:
        found, ask = asked(server, {"input": "2+2"}, timeout=0.2 if kind == "hang" else 5)
    assert said(found) == "4"
    assert ask.retried == 2
    assert server.faulted == 2
    assert ask.faults == {GIVEN_UP[kind]: 2}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_server_that_never_answers_is_not_the_models_fault(kind: str) -> None:
    with serving(fixed("4"), Faults(share=1.0, kinds=(kind,), hang=1.0)) as server:
        found, ask = asked(server, {"input": "2+2"}, timeout=0.1 if kind == "hang" else 5, retries=2)
    assert isinstance(found, Unmeasured)
    assert found.kind == GIVEN_UP[kind]
    assert not found.terminal
    assert "after 3 tries" in found.reason
    assert server.counts["calls"] == 3
    assert ask.retried == 2


def test_a_fifth_of_all_calls_failing_changes_no_answer() -> None:
    async def many(url: str) -> tuple[list[str], int]:
        settings = {"openai_base_url": url, "openai_model": "m", "first_wait": 0.001, "timeout": 0.5}
        async with model("openai_model", settings) as ask:
            found = await asyncio.gather(*(ask({"input": f"question {n}"}, {}) for n in range(200)))
            assert isinstance(ask, OpenAIModel)
            return [said(one) for one in found], ask.retried

    with serving(faults=Faults(share=0.2, seed=5, hang=2.0)) as server:
        answers, retried = asyncio.run(many(server.url))
    assert answers == [f"question {n}" for n in range(200)]
    assert retried >= server.faulted > 20  # under load an answer may also come too late by itself


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with serving() as server:
        pass
    found, _ = asked(server, {"input": "x"}, retries=1)
    assert found.kind == "model_unreachable"


def test_the_deadline_bounds_all_tries_together() -> None:
    faults = Faults(share=1.0, kinds=("429_after",), retry_after="3600")
    with serving(faults=faults) as server:
        found, _ = asked(server, {"input": "x"}, deadline=60)
    assert found.kind == "model_rate_limited"
    assert server.counts["calls"] == 1  # an hour is more than what is left


def test_what_the_server_asks_to_wait_is_waited_for() -> None:
    assert asked_wait({"retry-after": "1.5"}) == 1.5
    assert asked_wait({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert asked_wait({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    for nonsense in ("soon", "nan", "inf"):
        assert asked_wait({"retry-after": nonsense}) is None
    assert asked_wait({}) is None


@pytest.mark.parametrize(
    ("status", "kind", "is_terminal"),
    [
        (Status(400, "temperature must be at most 2"), "model_refused", False),
        (Status(401, "no"), "model_refused", False),
        (Status(403, "no"), "model_refused", False),
        (Status(402, "pay"), "model_refused", False),
        (Status(404, "The model `m` does not exist.", "model_not_found"), "model_refused", False),
        (Status(429, "You exceeded your quota", "insufficient_quota"), "model_refused", False),
        (
            Status(429, "You exceeded your quota", body='{"error": {"type": "insufficient_quota"}}'),
            "model_refused",
            False,
        ),
        (Status(307, headers={"Location": "http://127.0.0.1:1/"}), "model_refused", False),
        (
            Status(400, "maximum context length is 4096 tokens", "context_length_exceeded"),
            "context_length_exceeded",
            True,
        ),
        (Status(400, "This model's maximum context length is 8 tokens"), "context_length_exceeded", True),
        (Status(413, body="the prompt is too long"), "context_length_exceeded", True),
    ],
)
def test_a_refusal_is_not_asked_again(status: Status, kind: str, is_terminal: bool) -> None:
    with serving(lambda body: status) as server:
        found, _ = asked(server, {"input": "x"})
    assert isinstance(found, Unmeasured)
    assert (found.kind, found.terminal) == (kind, is_terminal)
    assert server.counts["calls"] == 1
    assert found.fields["_ng_failure_http_status"] == status.code


def test_the_limit_goes_under_the_name_that_the_server_knows() -> None:
    def picky(body: Body) -> Any:
        if "max_tokens" in body:
            return Status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return "fine"

    with serving(picky, is_chat_only=True) as server:
        found, ask = asked(server, {"input": "x", "max_output_tokens": 5})
    assert said(found) == "fine"
    assert server.calls[-1].body["max_completion_tokens"] == 5
    assert ask.retried == 0


@pytest.mark.parametrize(
    "text",
    [
        "{name} is too large: {value}. This model supports at most 50 completion tokens",
        "Unsupported value: '{name}' does not support {value} with this model.",
        "invalid {name}: {value}",
    ],
)
def test_a_limit_that_is_too_large_is_refused_and_never_dropped(text: str) -> None:
    def picky(body: Body) -> Any:
        for name in ("max_tokens", "max_completion_tokens"):
            if body.get(name, 0) > 50:
                return Status(400, text.format(name=name, value=body[name]))
        return "fine"

    with serving(picky, is_chat_only=True) as server:
        (found,) = asked_in_turn(server, "one")
        assert found.kind == "model_refused"
        assert [call.body.get("max_tokens") for call in server.calls] == [100]


def test_a_server_that_knows_no_limit_at_all_refuses() -> None:
    def strict(body: Body) -> Any:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in body:
                detail = [{"loc": ["body", name], "msg": "Extra inputs are not permitted"}]
                return Status(422, body=json.dumps({"detail": detail}))
        return "unlimited"

    with serving(strict, is_chat_only=True) as server:
        (found,) = asked_in_turn(server, "one")
    assert found.kind == "model_refused"
    sent = [{"max_tokens", "max_completion_tokens"} & set(call.body) for call in server.calls]
    assert sent == [{"max_tokens"}, {"max_completion_tokens"}]


@pytest.mark.parametrize("code", ["rate_limit_exceeded", None])
def test_a_rate_limit_that_speaks_of_billing_is_a_rate_limit(code: str | None) -> None:
    def limited(body: Body) -> Any:
        told = "Rate limit reached. Visit https://host/account/billing if you are out of credit."
        return Status(429, told, code) if server.counts["calls"] == 1 else "fine"

    with serving(limited) as server:
        found, ask = asked(server, {"input": "x"})
    assert said(found) == "fine"
    assert ask.faults == {"model_rate_limited": 1}


SPENT = {"prompt_tokens": 3, "completion_tokens": 1}


@pytest.mark.parametrize(
    ("choice", "usage"),
    [
        ({"message": {"content": None}, "finish_reason": "stop"}, SPENT),
        ({"message": {"content": ""}, "finish_reason": "length"}, None),
        ({"message": {"content": [{"type": "text", "text": ""}]}, "finish_reason": "stop"}, SPENT),
    ],
)
def test_the_models_own_silence_is_an_answer(choice: Any, usage: Any) -> None:
    found = response_of({"choices": [choice], "usage": usage}, {})
    assert said(found) == ""
    assert len(found["output"]) == 1


@pytest.mark.parametrize(
    ("choice", "usage"),
    [
        ({"message": {"content": None}}, SPENT),
        ({"message": {"content": None}, "finish_reason": "stop"}, None),
        ({"message": {}, "finish_reason": "error"}, SPENT),
        ({"message": {"content": "half"}, "finish_reason": "error"}, SPENT),
        ({"message": {"content": 5}, "finish_reason": "stop"}, SPENT),
        ({"message": {"content": {"a": 1}}, "finish_reason": "stop"}, SPENT),
        ({"message": {"content": [{"type": "text", "text": 5}]}, "finish_reason": "stop"}, SPENT),
    ],
)
def test_what_no_model_says_in_a_chat_is_garbage(choice: Any, usage: Any) -> None:
    with pytest.raises(ValueError, match="chat completion"):
        response_of({"choices": [choice], "usage": usage}, {})


@pytest.mark.parametrize(
    ("body", "is_answer"),
    [
        ({"output": [], "status": "completed", "usage": {"input_tokens": 1, "output_tokens": 0}}, True),
        ({"output": [], "status": "completed"}, False),
        ({"output": [], "usage": {"input_tokens": 1}}, False),
        ({"output": [{"type": "message", "content": []}]}, False),
        (
            {"output": [{"type": "message", "content": [{"type": "output_text"}]}], "status": "completed"},
            False,
        ),
        ({"output": [{"type": "message", "content": "hi"}]}, True),
        ({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}, True),
        ({"output": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, False),
        ({"output": [{"type": "function_call", "name": "f", "call_id": "c", "arguments": None}]}, True),
        ({"output": [{"type": "message", "content": "hi"}], "usage": "much"}, False),
    ],
)
def test_what_is_an_answer_of_the_responses_api(body: Any, is_answer: bool) -> None:
    with serving(lambda asked: Status(200, body=json.dumps(body))) as server:
        found, ask = asked(server, {"input": "x"}, retries=1)
    if is_answer:
        assert found["output"] == body["output"]
        assert ask.retried == 0
    else:
        assert found.kind == "model_garbage"
        assert server.counts["calls"] == 2


def test_the_thoughts_of_several_steps_stand_in_one_message() -> None:
    def step(number: int) -> list[Any]:
        thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": f"R{number}"}]}
        return [thought, {"type": "function_call", "call_id": str(number), "name": "f", "arguments": "{}"}]

    asking = {"role": "user", "content": "q"}
    (_, merged) = chat_request({"input": [asking, *step(1), *step(2)]})["messages"]
    assert merged["reasoning_content"] == "R1\n\nR2"
    assert [call["id"] for call in merged["tool_calls"]] == ["1", "2"]
    between = {"type": "function_call_output", "call_id": "1", "output": "o"}
    apart = chat_request({"input": [asking, *step(1), between, *step(2)]})["messages"]
    assert [turn.get("reasoning_content") for turn in apart] == [None, "R1", None, "R2"]


@pytest.mark.parametrize(
    "params",
    [
        {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
        {"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]},
        {"input": [{"type": "function_call_output", "output": "x"}]},
        {"input": ["text"]},
        {"input": {"role": "user"}},
        {"input": [{"role": "user", "content": [None]}]},
        {"input": "x", "tools": ["f"]},
        {"input": "x", "reasoning": "hard"},
    ],
)
def test_a_request_that_is_none_is_told_as_one(params: Any) -> None:
    with serving(is_chat_only=True) as server:
        found, _ = asked(server, params)
    assert isinstance(found, Unmeasured)
    assert (found.kind, found.terminal) == ("bad_request", True)
    assert server.counts["chat"] == 0


def test_thoughts_are_not_sent_to_a_server_that_refuses_them() -> None:
    items = [
        {"role": "user", "content": "x"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "y"},
    ]

    def picky(body: Body) -> Any:
        sent = server.calls[-1].body["messages"]
        is_told = any("reasoning_content" in turn for turn in sent)
        return Status(400, "reasoning_content is not allowed in the input") if is_told else "fine"

    with serving(picky, is_chat_only=True) as server:
        found, _ = asked(server, {"input": items})
    assert said(found) == "fine"
    assert chat_request({"input": items}, Form(has_reasoning=False))["messages"][1].keys() == {
        "role", "content", "tool_calls",
    }  # fmt: skip


# ---- Secrets, settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        lambda body: Status(401, f"Incorrect API key provided: {KEY}"),
        lambda body: Status(500, f"Bearer {KEY}"),
        lambda body: Status(403, body=f"<html>{KEY}</html>"),
    ],
)
def test_the_key_stands_in_no_failure(policy: Policy) -> None:
    with serving(policy) as server:
        found, _ = asked(server, {"input": "x"}, retries=1)
    assert isinstance(found, Unmeasured)
    assert "secret" not in f"{found} {found.reason} {found.fields} {found!r}"


@pytest.mark.parametrize("key", ["placeholder", "not-needed", KEY])
@pytest.mark.parametrize("is_chat_only", [False, True])
def test_an_answer_is_judged_as_it_was_given(key: str, is_chat_only: bool) -> None:
    with serving(fixed(f"a {key}, you said"), is_chat_only=is_chat_only) as server:
        found, _ = asked(server, {"input": "x"}, openai_api_key=key)
    assert said(found) == f"a {key}, you said"


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("http://{host}/v1?api-key=SECRETquery", ""),
        ("http://{host}/v1?auth=SECRET%2Fq&api-version=7", ""),
        ("http://{host}/v1", "SECRETk8"),
        ("http://me:SECRETpass@{host}/v1", ""),
    ],
)
def test_whatever_opens_the_server_stands_in_no_failure(address: str, key: str) -> None:
    def gossip(body: Body) -> Status:
        """Says back all that it was sent."""
        sent = server.calls[-1]
        authorization = sent.headers.get("Authorization", "")
        return Status(403, f"go away, {authorization}! {authorization.split(' ')[-1]} {sent.path} {key}.")

    with serving(gossip) as server:
        url = address.format(host=f"127.0.0.1:{server.port}")
        found, _ = asked(server, {"input": "x"}, openai_base_url=url, openai_api_key=key)
    told = f"{found} {found.reason} {found.fields}"
    assert "go away" in told
    assert "SECRET" not in told
    assert base64.b64encode(b"me:SECRETpass").decode() not in told
    if "me:" in address:
        assert server.calls[0].headers["Authorization"].startswith("Basic ")


def test_an_error_keeps_its_words_where_the_server_wants_no_key() -> None:
    with serving(lambda body: Status(403, "none of your business")) as server:
        found, _ = asked(server, {"input": "x"}, openai_api_key="none")
    assert "none of your business" in found.reason


@pytest.mark.parametrize(
    ("settings", "slug"),
    [
        ({"openai_base_url": "ftp://x", "openai_model": "m"}, "bad-model-url"),
        ({"openai_base_url": "x", "openai_model": "m"}, "bad-model-url"),
        ({"openai_model": "m"}, "bad-model-settings"),
        ({"openai_base_url": "http://x/v1", "openai_model": "m", "retries": "many"}, "bad-model-settings"),
    ],
)
def test_settings_that_cannot_work_are_told(settings: Any, slug: str) -> None:
    async def enter() -> None:
        async with model("openai_model", settings):
            pass

    with pytest.raises(UsageError) as told:
        asyncio.run(enter())
    assert told.value.slug == slug


def test_a_model_that_blade_does_not_have_is_told() -> None:
    with pytest.raises(UsageError) as told:
        model("vllm_model_of_tomorrow", {})
    assert told.value.slug == "unknown-model-type"


def test_an_extra_body_that_is_no_object_is_no_request() -> None:
    with pytest.raises(Unmeasured):
        request({"input": "x", "metadata": {"extra_body": "[1]"}}, "m")
    assert request({"input": "x", "metadata": {"extra_body": "{}"}}, "m") == {"input": "x", "model": "m"}


def test_what_the_address_asks_for_is_asked_and_silence_is_a_message() -> None:
    items = [{"role": "assistant", "content": None, "id": None}, {"role": "user", "content": "x"}]
    with serving() as server:
        asked(server, {"input": items}, openai_base_url=server.url + "?api-version=7")
    assert server.calls[0].path == "/v1/responses?api-version=7"
    assert server.calls[0].body["input"] == [{"role": "assistant", "content": ""}, items[1]]


def test_a_thousand_at_once_share_one_session() -> None:
    async def many(ask: Callable[[Any, Any], Awaitable[Any]]) -> list[Any]:
        return await asyncio.gather(*(ask({"input": str(n)}, {}) for n in range(1000)))

    async def run(url: str) -> list[Any]:
        async with model("openai_model", {"openai_base_url": url, "openai_model": "m"}) as ask:
            return await many(ask)

    with serving(delay=0.5, keeps=False) as server:
        found = asyncio.run(run(server.url))
    assert [said(one) for one in found] == [str(n) for n in range(1000)]
    assert server.most_at_once > 200
