"""A model server of every temper: what it costs, what is given up, what is converted, what stays secret."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.endpoint.chat import Form, Unsayable, chat_request, response_of
from blade.endpoint.faults import asked_wait
from blade.errors import UsageError
from blade_eval.environment import Unmeasured
from blade_eval.models import model
from blade_eval.models.openai_model import OpenAIModel, request
from tests.case_tables import tables
from tools import model_server
from tools.model_server import ALL_KINDS, Body, Faults, Reply, Server, Status, fixed, serving

call, message = model_server.call, model_server.message
KEY = "sk-very-secret-0123456789"
CASES: dict[str, Any] = tables(__file__, "openai_cases.yaml")
WEATHER = {"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object"}, "strict": None}
BOTH = pytest.mark.parametrize("is_chat_only", [False, True])


def asked(server: Server, *requests: Any, **settings: Any) -> tuple[Any, OpenAIModel]:
    """The answer to a request or those to several in turn, each perhaps the Unmeasured it raised; and the model."""

    async def answers() -> tuple[Any, OpenAIModel]:
        base = {"openai_base_url": server.url, "openai_api_key": KEY, "openai_model": "m"}
        more = {"first_wait": 0.001, "seed": 1, "timeout": 5.0, **settings}
        results: list[Any] = []
        async with model("openai_model", base | more) as ask:
            assert isinstance(ask, OpenAIModel)
            for params in requests:
                try:
                    results.append(await ask({"input": params} if isinstance(params, str) else params, {}))
                except Unmeasured as unmeasured:
                    results.append(unmeasured)
            return results if len(requests) > 1 else results[0], ask

    return asyncio.run(answers())


def said(response: Any) -> str:
    items = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part.get("text", "") for item in items for part in item["content"])


def called(number: int = 1) -> dict[str, Any]:
    return {"type": "function_call", "call_id": str(number), "name": "weather", "arguments": "{}"}


def thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def status_of(case: dict[str, Any]) -> Status:
    return Status(**{name: case[name] for name in ("code", "message", "error_code", "headers", "body") if name in case})


def test_the_responses_api_is_asked_as_it_stands() -> None:
    items = [{"role": "user", "content": "hello"}, {**called(), "id": None, "status": None}]
    params = {
        "input": [*items, {"type": "function_call_output", "call_id": "1", "output": "sun"}], "tools": [WEATHER],
        "temperature": 0.5, "top_p": None, "stream": True, "model": None,
        "metadata": {"extra_body": '{"seed": 3, "chat_template_kwargs": {"thinking": true}}', "run": "7"},
    }  # fmt: skip
    silent = [{"role": "assistant", "content": None, "id": None}, {"role": "user", "content": "x"}]  # silence is a message
    with serving() as server:
        answer, ask = asked(server, params)
        asked(server, {"input": silent}, openai_base_url=server.url + "?api-version=7")
    sent, other = server.calls
    assert (sent.path, sent.headers["Authorization"]) == ("/v1/responses", f"Bearer {KEY}")
    expected = {"model": "m", "seed": 3, "chat_template_kwargs": {"thinking": True}, "metadata": {"run": "7"}, "temperature": 0.5}
    assert expected.items() <= sent.body.items()
    assert not {"top_p", "stream"} & set(sent.body)
    assert (sent.body["input"][1], "strict" in sent.body["tools"][0]) == (called(), False)
    assert (said(answer), answer["usage"]["input_tokens"] > 0, ask.calls, ask.retried) == ("hello", True, 1, 0)
    assert other.path == "/v1/responses?api-version=7"
    assert other.body["input"] == [{"role": "assistant", "content": ""}, silent[1]]
    with pytest.raises(Unmeasured):
        request({"input": "x", "metadata": {"extra_body": "[1]"}}, "m")
    assert request({"input": "x", "metadata": {"extra_body": "{}"}}, "m") == {"input": "x", "model": "m"}


def test_a_server_without_the_responses_api_is_asked_in_chat_and_remembered() -> None:
    with serving(is_chat_only=True) as server:
        answers, _ = asked(server, "one", "two", openai_api_key="")
    assert list(map(said, answers)) == ["one", "two"]
    assert (server.counts["no_responses_api"], server.counts["chat"]) == (1, 2)
    assert "Authorization" not in server.calls[0].headers


@pytest.mark.parametrize("case", CASES["routes"], ids=lambda case: case.get("message", str(case["code"])))
def test_only_a_missing_route_falls_back(case: dict[str, Any]) -> None:
    with serving() as server:
        server.policy = lambda body: "fine" if server.calls[-1].is_chat else status_of(case)
        answer, _ = asked(server, "x")
    assert isinstance(answer, dict) == case["falls_back"]
    assert case["falls_back"] or (answer.kind, server.counts["calls"]) == ("model_refused", 1)


@BOTH
def test_a_route_that_has_answered_is_not_missing(is_chat_only: bool) -> None:
    with serving(lambda body: Status(404, "Not Found") if server.counts["calls"] == 2 else "fine", is_chat_only=is_chat_only) as server:
        answers, _ = asked(server, "one", "two", "three")
    assert list(map(said, answers)) == ["fine"] * 3
    assert [entry.is_chat for entry in server.calls] == [is_chat_only] * 4


def test_a_refusal_before_the_first_answer_does_not_settle_the_form() -> None:
    """The route is there for whoever asks what it can answer; a chat that fails too proves nothing."""
    with serving(lambda body: Status(404, "Not Found") if server.counts["calls"] <= 2 else "fine") as server:
        (refused, answer), _ = asked(server, "one", "two")
    assert (refused.kind, said(answer)) == ("model_refused", "fine")
    assert [entry.is_chat for entry in server.calls] == [False, True, False]


def chat_steps(body: Body) -> Any:
    """Calls a tool, then says what the tool said."""
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    if not outputs:
        return Reply([thought("look it up"), *message("wait"), call("weather", {"city": "Rome"}, "c1")])
    return Reply(message(f"it is {outputs[-1]['output']}"), usage=(7, 5))


@BOTH
def test_a_tool_loop_is_the_same_in_both_forms(is_chat_only: bool) -> None:
    items: list[Any] = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "Rome?"}]
    with serving(chat_steps, is_chat_only=is_chat_only) as server:
        first, _ = asked(server, {"input": items, "tools": [WEATHER], "max_output_tokens": 9})
        items += [*first["output"], {"type": "function_call_output", "call_id": "c1", "output": "sunny"}]
        last, _ = asked(server, {"input": items, "tools": [WEATHER], "max_output_tokens": 9})
    reasoning, _, tool_call = first["output"]
    assert reasoning["summary"] == thought("look it up")["summary"]
    assert (tool_call["call_id"], json.loads(tool_call["arguments"])) == ("c1", {"city": "Rome"})
    assert (said(last), last["usage"]["input_tokens"], last["usage"]["output_tokens"]) == ("it is sunny", 7, 5)
    if is_chat_only:
        sent = server.calls[-1].body
        assert [turn["role"] for turn in sent["messages"]] == ["system", "user", "assistant", "tool"]
        turn = sent["messages"][2]
        assert (turn["content"], turn["reasoning_content"], sent["max_tokens"]) == ("wait", "look it up", 9)
        assert turn["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Rome"}'}
        assert sent["tools"][0]["function"]["name"] == "weather"


@BOTH
def test_a_cut_answer_says_so_and_an_answer_is_judged_as_it_was_given(is_chat_only: bool) -> None:
    with serving(lambda body: Reply(message(f"half, {KEY}"), is_cut=True), is_chat_only=is_chat_only) as server:
        answer, _ = asked(server, {"input": "x", "max_output_tokens": 1})
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert said(answer) == f"half, {KEY}"  # its words are not searched for secrets
    with serving(fixed("whole"), is_chat_only=is_chat_only) as server:
        assert asked(server, "x")[0]["incomplete_details"] is None


@pytest.mark.parametrize(("text", "reasoning", "rest"), CASES["thoughts"])
def test_thoughts_at_the_start_of_a_chat_are_reasoning(text: str, reasoning: str, rest: str) -> None:
    chat = model_server.chat_object({}, Reply(message(text)))
    answer = response_of(chat, {})
    assert "".join(item["summary"][0]["text"] for item in answer["output"] if item["type"] == "reasoning") == reasoning
    assert [said(answer), said(response_of(chat, {}, splits_thoughts=False))] == [rest, text]


def test_what_a_chat_may_also_say() -> None:
    def answer(message: Any, **more: Any) -> Any:
        return response_of({"id": "x", "choices": [{"message": message, **more}]}, {})

    assert answer({"content": None, "refusal": "no"})["output"][0]["content"] == [{"type": "refusal", "refusal": "no"}]
    assert answer({"content": "x"})["usage"] is None
    assert answer({"content": ""}, finish_reason="content_filter")["incomplete_details"] == {"reason": "content_filter"}
    calls = answer({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]})["output"]
    assert [(item["arguments"], item["name"]) for item in calls] == [('{"a":1}', "f"), ("{}", "g")]
    assert len({item["call_id"] for item in calls}) == 2
    assert answer({"content": None, "reasoning": "hm"})["output"][0]["type"] == "reasoning"
    for broken in ({"choices": []}, {}, {"choices": [{}]}, {"choices": ["x"]}):
        with pytest.raises(ValueError, match="chat completion"):
            response_of(broken, {})


def test_a_request_in_the_form_of_a_chat_and_the_thoughts_of_several_steps_in_one_message() -> None:
    assert chat_request(CASES["request"]) == CASES["chat"]
    params = {"input": "x", "tools": [WEATHER], "tool_choice": {"type": "function", "name": "weather"}}
    assert chat_request(params)["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    question = {"role": "user", "content": "q"}
    steps = [[thought(f"R{number}"), called(number)] for number in (1, 2)]
    (_, together) = chat_request({"input": [question, *steps[0], *steps[1]]})["messages"]
    assert (together["reasoning_content"], [entry["id"] for entry in together["tool_calls"]]) == ("R1\n\nR2", ["1", "2"])
    between = {"type": "function_call_output", "call_id": "1", "output": "o"}
    apart = chat_request({"input": [question, *steps[0], between, *steps[1]]})["messages"]
    assert [turn.get("reasoning_content") for turn in apart] == [None, "R1", None, "R2"]


@pytest.mark.parametrize("params", [*CASES["unsayable"], *CASES["bad_requests"]])
def test_what_a_chat_cannot_be_told_is_refused_not_dropped(params: Any) -> None:
    is_bad = params in CASES["bad_requests"]
    with serving(is_chat_only=True) as server:
        answer, _ = asked(server, params)
    assert (answer.kind, answer.terminal) == (("bad_request", True) if is_bad else ("model_refused", answer.terminal))
    assert server.counts["chat"] == 0
    with pytest.raises((Unsayable, Exception) if is_bad else Unsayable):
        chat_request(params)


texts = st.text(max_size=20)
turns = st.lists(
    st.one_of(
        *(texts.filter(bool).map(lambda text, role=role: {"type": "message", "role": role, "content": text}) for role in ("user", "assistant")),
        st.integers(0, 9).map(lambda n: {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"}),
        st.tuples(st.integers(0, 9), texts).map(lambda t: {"type": "function_call_output", "call_id": f"c{t[0]}", "output": t[1]}),
    ),
    max_size=8,
)


@settings(max_examples=50)
@given(turns, st.lists(st.just(WEATHER), max_size=2))
def test_a_conversation_survives_the_way_through_a_chat(items: list[Any], tools: list[Any]) -> None:
    """The test server's own reading of a chat gives back the items, in order."""
    back = model_server.from_chat(json.loads(json.dumps(chat_request({"input": items, "tools": tools}))))
    assert (back["input"], [tool["name"] for tool in back["tools"]]) == (items, ["weather"] * len(tools))


@settings(max_examples=50)
@given(texts.filter(lambda text: "think>" not in text), st.booleans(), st.integers(0, 3))
def test_both_apis_say_the_same(text: str, is_cut: bool, calls: int) -> None:
    items = [*(message(text) if text else []), *(call("f", {"n": n}, f"c{n}") for n in range(calls))]
    body, reply = {"model": "m"}, Reply(items or message(""), is_cut=is_cut, usage=(3, 4))
    pair = model_server.response_object(body, reply), response_of(model_server.chat_object(body, reply), {})
    for name in ("model", "object", "status", "incomplete_details", "usage", "error", "tool_choice"):
        assert pair[0][name] == pair[1][name], name
    kept = ("type", "role", "name", "call_id", "arguments", "content")
    first, second = ([{k: item[k] for k in kept if k in item} for item in answer["output"]] for answer in pair)
    assert first == second


@pytest.mark.parametrize("kind", ALL_KINDS)
@BOTH
def test_a_fault_costs_a_retry_and_no_answer_unless_it_lasts(kind: str, is_chat_only: bool) -> None:
    timeout = 0.1 if kind == "hang" else 5
    with serving(fixed("4"), Faults(1.0, (kind,), hang=1.0, most=2), is_chat_only=is_chat_only) as server:
        answer, ask = asked(server, "2+2", timeout=timeout)
    assert (said(answer), ask.retried, server.faulted, ask.faults) == ("4", 2, 2, {CASES["given_up"][kind]: 2})
    if not is_chat_only:
        with serving(fixed("4"), Faults(1.0, (kind,), hang=1.0)) as server:
            failure, ask = asked(server, "2+2", timeout=timeout, retries=2)
        assert (failure.kind, failure.terminal, "after 3 tries" in failure.reason) == (CASES["given_up"][kind], False, True)
        assert (server.counts["calls"], ask.retried) == (3, 2)


def test_many_at_once_share_one_session_and_a_fifth_of_all_calls_failing_changes_no_answer() -> None:
    async def many(url: str) -> tuple[list[str], int]:
        block = {"openai_base_url": url, "openai_model": "m", "first_wait": 0.001, "timeout": 5.0}
        async with model("openai_model", block) as ask:
            answers = await asyncio.gather(*(ask({"input": f"question {n}"}, {}) for n in range(200)))
            assert isinstance(ask, OpenAIModel)
            return list(map(said, answers)), ask.retried

    kinds = tuple(kind for kind in ALL_KINDS if kind != "hang")
    with serving(faults=Faults(share=0.2, kinds=kinds, seed=5), delay=0.2) as server:
        answers, retried = asyncio.run(many(server.url))
    assert answers == [f"question {n}" for n in range(200)]
    assert retried >= server.faulted > 20  # under load an answer may also come too late by itself
    assert server.most_at_once > 100


def test_what_the_server_asks_to_wait_is_waited_for_within_the_deadline_and_one_that_is_not_there_is_unreachable() -> None:
    with serving(faults=Faults(1.0, ("429_after",), retry_after="3600")) as server:
        failure, _ = asked(server, "x", deadline=60)
    assert (failure.kind, server.counts["calls"]) == ("model_rate_limited", 1)  # an hour is more than what is left
    assert asked(server, "x", retries=1)[0].kind == "model_unreachable"
    for headers, seconds in (
        ({"retry-after": "1.5"}, 1.5), ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0), *(({"retry-after": text}, None) for text in ("soon", "nan", "inf")),
    ):  # fmt: skip
        assert asked_wait(headers) == seconds


@pytest.mark.parametrize("case", CASES["refusals"], ids=lambda case: f"{case['code']} {case.get('message', '')}")
def test_a_refusal_is_not_asked_again(case: dict[str, Any]) -> None:
    with serving(lambda body: status_of(case)) as server:
        failure, _ = asked(server, "x")
    assert (failure.kind, failure.terminal) == (case["kind"], case["terminal"])
    assert (server.counts["calls"], failure.fields["_ng_failure_http_status"]) == (1, case["code"])


@pytest.mark.parametrize("text", CASES["limits"])
def test_a_limit_that_is_too_large_is_refused_and_never_dropped(text: str) -> None:
    limits = ("max_tokens", "max_completion_tokens")

    def picky(body: Body) -> Any:
        for name in limits:
            if name in body:
                words = text.format(name=name, value=body[name])
                return Status(422, body=words) if "detail" in words else Status(400, words)
        return "unlimited"

    with serving(picky, is_chat_only=True) as server:
        failure, _ = asked(server, {"input": "one", "max_output_tokens": 100})
    assert failure.kind == "model_refused"
    names = [name for entry in server.calls for name in limits if name in entry.body]
    assert names == list(limits[: 2 if "detail" in text else 1])


@pytest.mark.parametrize("code", ["rate_limit_exceeded", None])
def test_a_rate_limit_that_speaks_of_billing_is_a_rate_limit(code: str | None) -> None:
    limit = Status(429, "Rate limit reached. Visit https://host/account/billing if you are out of credit.", code)
    with serving(lambda body: limit if server.counts["calls"] == 1 else "fine") as server:
        answer, ask = asked(server, "x")
    assert (said(answer), ask.faults) == ("fine", {"model_rate_limited": 1})


@pytest.mark.parametrize("case", CASES["choices"])
def test_the_models_own_silence_is_an_answer_and_what_no_model_says_is_garbage(case: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1} if case["usage"] else None
    chat = {"choices": [case["choice"]], "usage": usage}
    if case["is_answer"]:
        assert [said(response_of(chat, {})), len(response_of(chat, {})["output"])] == ["", 1]
    else:
        with pytest.raises(ValueError, match="chat completion"):
            response_of(chat, {})


@pytest.mark.parametrize("case", CASES["bodies"])
def test_what_is_an_answer_of_the_responses_api(case: dict[str, Any]) -> None:
    with serving(lambda body: Status(200, body=json.dumps(case["body"]))) as server:
        answer, ask = asked(server, "x", retries=1)
    if case["is_answer"]:
        assert (answer["output"], ask.retried) == (case["body"]["output"], 0)
    else:
        assert (answer.kind, server.counts["calls"]) == ("model_garbage", 2)


def test_the_limit_goes_under_the_name_that_the_server_knows_and_thoughts_not_to_one_that_refuses_them() -> None:
    renamed = Status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with serving(lambda body: renamed if "max_tokens" in body else "fine", is_chat_only=True) as server:
        answer, ask = asked(server, {"input": "x", "max_output_tokens": 5})
    assert (said(answer), server.calls[-1].body["max_completion_tokens"], ask.retried) == ("fine", 5, 0)
    output = {"type": "function_call_output", "call_id": "1", "output": "y"}
    params = {"input": [{"role": "user", "content": "x"}, thought("hm"), called(1), output]}

    def picky(body: Body) -> Any:
        has_thought = any("reasoning_content" in turn for turn in server.calls[-1].body["messages"])
        return Status(400, "reasoning_content is not allowed in the input") if has_thought else "fine"

    with serving(picky, is_chat_only=True) as server:
        assert said(asked(server, params)[0]) == "fine"
    assert set(chat_request(params, Form(has_reasoning=False))["messages"][1]) == {"role", "content", "tool_calls"}


@pytest.mark.parametrize(("address", "key"), CASES["addresses"])
@pytest.mark.parametrize("code", [401, 403, 500])
def test_whatever_opens_the_server_stands_in_no_failure(address: str, key: str, code: int) -> None:
    def gossip(body: Body) -> Status:
        """Says back all that it was sent."""
        sent = server.calls[-1]
        authorization = sent.headers.get("Authorization", "")
        text = f"go away, none of your business: {authorization}! {authorization.split(' ')[-1]} {sent.path} {key}."
        return Status(code, text) if code != 403 else Status(code, body=f"<html>{text}</html>")

    with serving(gossip) as server:
        url = address.format(host=f"127.0.0.1:{server.port}")
        failure, _ = asked(server, "x", openai_base_url=url, openai_api_key=key, retries=1)
    text = f"{failure} {failure.reason} {failure.fields} {failure!r}"
    assert ("go away" in text, "SECRET" in text) == (True, False)
    assert base64.b64encode(b"me:SECRETpass").decode() not in text
    assert key != "none" or "none of your business" in failure.reason
    assert "me:" not in address or server.calls[0].headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(("name", "block", "slug"), CASES["settings"])
def test_settings_that_cannot_work_are_told(name: str, block: Any, slug: str) -> None:
    async def enter() -> None:
        async with model(name, block):
            pass

    with pytest.raises(UsageError) as error:
        asyncio.run(enter())
    assert error.value.slug == slug
