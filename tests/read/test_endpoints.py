"""Endpoints that behave, that know less, that are busy, slow, torn or broken: over real HTTP."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from blade.agent.reader import ACCEPTED, FAILED, LEFT, Patience
from tests.read import server as endpoint
from tests.read.conftest import FAILED as TASKS
from tests.read.conftest import Ask, honest, label
from tests.read.server import Call, Drip, Raw, Reset, Says, Server, Slow, Status


def statuses(found: Any) -> list[str]:
    return [result.status for result in found.results]


def test_a_well_behaved_endpoint_is_asked_once_for_each_task(ask: Ask, server: Server) -> None:
    found = ask()
    assert statuses(found) == [ACCEPTED] * len(TASKS)
    assert sorted(call.about for call in server.calls) == list(TASKS)
    assert {call.path for call in server.calls} == {"/v1/responses"}
    body = server.calls[0].body
    assert body["store"] is False
    assert body["max_output_tokens"] == 1000
    assert body["text"]["format"]["strict"] is True
    assert body["text"]["format"]["schema"]["properties"]["answer"]["enum"][-1] == "undetermined"
    assert found.spent.tokens_in == 6000
    assert found.spent.tokens_out == 600
    assert not found.spent.estimated


def test_an_endpoint_that_has_only_chat_is_found_out_once(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: honest(call, n) if call.is_chat else Status(404, "no such route")
    found = ask(at_once=1)
    assert statuses(found) == [ACCEPTED] * len(TASKS)
    assert [call.is_chat for call in server.calls] == [False] + [True] * len(TASKS)
    assert server.calls[1].body["response_format"]["json_schema"]["strict"] is True
    assert server.calls[1].body["max_completion_tokens"] == 1000
    assert server.calls[1].body["messages"][0]["role"] == "system"


def test_an_endpoint_without_schemas_is_asked_for_json_in_the_text(ask: Ask, server: Server) -> None:
    refusal = Status(400, "response_format json_schema is not supported by this model")
    server.script = lambda call, n: refusal if call.has_schema else honest(call, n)
    found = ask(tasks=("0", "1"), at_once=1)
    assert statuses(found) == [ACCEPTED] * 2
    assert [call.has_schema for call in server.calls] == [True, False, False]
    assert '"additionalProperties":false' in server.calls[1].system
    assert "JSON Schema" not in server.calls[0].system


def test_an_old_chat_endpoint_is_asked_in_its_own_words(ask: Ask, server: Server) -> None:
    def old(call: Call, number: int) -> endpoint.Act:
        if not call.is_chat:
            return Status(404, "not found")
        if "max_completion_tokens" in call.body:
            return Status(400, "unsupported parameter: max_completion_tokens")
        if call.has_schema:
            return Status(422, "extra fields: response_format")
        return Says(f"<think>hm, {{}}</think>\n```json\n{endpoint.json.dumps(label(call.about))}\n```")

    server.script = old
    assert statuses(ask(tasks=("2",))) == [ACCEPTED]
    assert server.calls[-1].body["max_tokens"] == 1000
    assert len(server.calls) == 4


def test_a_limit_that_is_asked_for_by_its_old_name_is_given_so(ask: Ask, server: Server) -> None:
    def older(call: Call, number: int) -> endpoint.Act:
        if not call.is_chat:
            return Status(400, "this model is not supported with the Responses API")
        return honest(call, number) if "max_tokens" in call.body else Status(422, "max_tokens: Field required")

    server.script = older
    assert statuses(ask(tasks=("0",))) == [ACCEPTED]


def test_a_limit_whose_value_is_disliked_is_not_dropped(ask: Ask, server: Server) -> None:
    def picky(call: Call, number: int) -> endpoint.Act:
        return Status(400, "max_tokens is too large: 1000, at most 512") if call.is_chat else Status(404, "no")

    server.script = picky
    assert statuses(ask(tasks=("0",))) == [FAILED]
    assert [call.body.get("max_completion_tokens") for call in server.calls if call.is_chat] == [1000]


def test_a_busy_endpoint_is_waited_for_as_long_as_it_asks(ask: Ask, server: Server) -> None:
    times: list[float] = []

    def busy(call: Call, number: int) -> endpoint.Act:
        times.append(time.monotonic())
        return Status(429, "slow down", {"Retry-After": "0.2"}) if number < 1 else honest(call, number)

    server.script = busy
    found = ask(tasks=("0",))
    assert statuses(found) == [ACCEPTED]
    assert found.results[0].calls == 2
    assert times[1] - times[0] >= 0.2


def test_an_endpoint_that_asks_for_more_than_our_patience_is_given_up(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Status(429, "tomorrow", {"Retry-After": "86400"})
    found = ask(tasks=("0",))
    assert statuses(found) == [FAILED]
    assert len(server.calls) == 1


@pytest.mark.parametrize("code", [500, 502, 503, 529, 408])
def test_a_burst_of_errors_passes(code: int, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Status(code, "down") if n < 2 else honest(call, n)
    found = ask(tasks=("0",))
    assert statuses(found) == [ACCEPTED]
    assert len(server.calls) == 3
    assert found.spent.total == 1100  # what was refused costs nothing


def test_an_endpoint_that_stays_broken_is_tried_as_often_as_told_and_not_for_every_task(
    ask: Ask, server: Server
) -> None:
    server.script = lambda call, n: Status(500, "down")
    found = ask(at_once=1)
    assert statuses(found) == [FAILED] * 3 + [LEFT] * 3
    assert len(server.calls) == 3 * 3
    assert "500: down" in found.results[0].reasons[0]
    assert found.stopped is not None


@pytest.mark.parametrize(
    "bad",
    [
        Slow(1.0),
        Drip(0.05, Says(label(0))),
        Reset(),
        Raw(b'{"output": [{"type": "message", "con'),
        Raw(b'{"output": [', declared=5000),
        Raw(b"<html>gateway</html>"),
        Raw(b'{"output": 3}'),
        Raw(b"[" * 200_000),
    ],
    ids=["slow", "dripping", "reset", "torn", "short", "no JSON", "other JSON", "deep"],
)
def test_what_breaks_on_the_way_is_tried_again(bad: endpoint.Act, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: bad if n < 1 else honest(call, n)
    found = ask(tasks=("0",), timeout=0.3 if isinstance(bad, Slow | Drip) else 5.0)
    assert statuses(found) == [ACCEPTED]
    assert found.results[0].calls == len(server.calls) >= 2
    # the first call may have been charged for: it is counted, and said to be an estimate
    assert found.spent.estimated > 300


def test_what_breaks_every_time_gives_no_answer(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Raw(b'{"output": [', declared=5000)
    found = ask(tasks=("0",))
    assert statuses(found) == [FAILED]
    assert len(server.calls) == 3
    assert "broke off" in found.results[0].reasons[0]


@pytest.mark.parametrize(
    ("refusal", "word"),
    [
        (Status(401, "bad key"), "key"),
        (Status(403, "not yours"), "key"),
        (Status(404, "the model does not exist"), "model"),
        (Status(402, "pay"), "credit"),
        (Status(429, "You exceeded your quota", error_code="insufficient_quota"), "credit"),
        (Status(429, "Your account is not active", error_code="billing_not_active"), "credit"),
        (Status(307, "moved", {"Location": "http://127.0.0.1:9/v1/responses"}), "redirect"),
    ],
)
def test_what_no_question_would_pass_stops_at_once(
    refusal: Status, word: str, ask: Ask, server: Server
) -> None:
    server.script = lambda call, n: refusal
    found = ask(at_once=1)
    assert statuses(found) == [FAILED] + [LEFT] * 5
    assert len(server.calls) == 1
    assert found.stopped is not None
    assert word in found.stopped.hint


def test_a_request_that_is_refused_for_itself_does_not_stop_the_others(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: (
        Status(400, "maximum context length") if call.about == "1" else honest(call, n)
    )
    found = ask(tasks=("0", "1", "2"))
    assert statuses(found) == [ACCEPTED, FAILED, ACCEPTED]
    assert "--budget" in found.results[1].reasons[0]
    assert len(server.calls) == 3


def test_results_stand_in_the_order_of_the_questions_however_many_are_asked_at_once(
    ask: Ask, server: Server
) -> None:
    together = threading.Barrier(3, timeout=10)

    def uneven(call: Call, number: int) -> endpoint.Act:
        if number < 3:
            together.wait()  # breaks unless three are asked at once
        return honest(call, number)

    server.script = uneven
    found = ask(at_once=3)
    assert server.most_at_once == 3
    alone = ask(at_once=1, fresh=True)
    assert [one.answer for one in found.results] == [one.answer for one in alone.results]
    assert [one.question.about for one in found.results] == [one.question.about for one in alone.results]


def test_waiting_grows_and_is_bounded() -> None:
    patience = Patience(tries=4, base=1.0, longest=3.0, longest_asked=10.0)
    drawn = [patience.wait(tried, None) for tried in (1, 2, 3)]
    assert all(
        wait is not None and low <= wait <= high
        for wait, (low, high) in zip(drawn, [(0.5, 1), (1, 2), (1.5, 3)], strict=True)
    )
    assert patience.wait(4, None) is None
    assert patience.wait(1, 7.0) == 7.0
    assert patience.wait(1, 11.0) is None
