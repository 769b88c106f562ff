"""Endpoints that behave, that know less, that are busy, slow, torn or broken: over real HTTP."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from blade.agent.reader import ACCEPTED, FAILED, Patience
from tests.case_tables import cases
from tests.read.conftest import FAILED as TASKS
from tests.read.conftest import Ask, honest, label, statuses
from tests.read.server import Act, Call, Gone, Raw, Says, Server, Status


def test_a_well_behaved_endpoint_is_asked_once_for_each_task(ask: Ask, server: Server) -> None:
    reading = ask()
    assert statuses(reading) == [ACCEPTED] * len(TASKS)
    assert sorted(call.about for call in server.calls) == list(TASKS)
    assert {call.path for call in server.calls} == {"/v1/responses"}
    body = server.calls[0].body
    assert (body["store"], body["max_output_tokens"], body["text"]["format"]["strict"]) == (False, 1000, True)
    assert body["text"]["format"]["schema"]["properties"]["answer"]["enum"][-1] == "undetermined"
    assert (reading.spent.tokens_in, reading.spent.tokens_out, reading.spent.estimated) == (6000, 600, 0)


# The client itself is tested where rollouts are run with it; here is what reading does with what comes of it.


def test_an_endpoint_that_has_only_chat_is_found_out_once(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: honest(call, n) if call.is_chat else Status(404, "no such route")
    assert statuses(ask(at_once=1)) == [ACCEPTED] * len(TASKS)
    assert [call.is_chat for call in server.calls] == [False] + [True] * len(TASKS)
    body = server.calls[1].body
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (body["max_completion_tokens"], body["messages"][0]["role"]) == (1000, "system")


def test_an_old_endpoint_without_schemas_is_asked_for_json_in_the_text(ask: Ask, server: Server) -> None:
    def old(call: Call, number: int) -> Act:
        if not call.is_chat:
            return Status(404, "not found")
        if "max_completion_tokens" in call.body:
            return Status(400, "unsupported parameter: max_completion_tokens")
        if call.has_schema:
            return Status(422, "extra fields: response_format")
        return Says(f"<think>hm, {{}}</think>\n```json\n{json.dumps(label(call.about))}\n```")

    server.script = old
    assert statuses(ask(tasks=("2",))) == [ACCEPTED]
    assert server.calls[-1].body["max_tokens"] == 1000
    assert ['"additionalProperties":false' in call.system for call in server.calls] == [False, False, False, True]


@pytest.mark.parametrize("name", cases(__file__, "endpoints"))
def test_what_an_endpoint_may_answer(name: str, ask: Ask, server: Server) -> None:
    case: dict[str, Any] = cases(__file__, "endpoints")[name]
    acts = [Status(**act) for act in case.get("acts", ())]
    last = Status(**case["for_good"]) if "for_good" in case else None
    server.script = lambda call, n: acts[n] if n < len(acts) else last or honest(call, n)
    start = time.monotonic()
    reading = ask(at_once=1, **{"tasks": tuple(case["tasks"])} if "tasks" in case else {})
    assert (" ".join(statuses(reading)), len(server.calls)) == (case["statuses"], case["calls"])
    assert time.monotonic() - start >= case.get("seconds", 0)
    assert reading.spent.total == case.get("spent", reading.spent.total)
    assert case.get("says", "") in " ".join(reading.results[0].reasons)
    assert (reading.stopped is not None) == ("stops" in case)
    assert reading.stopped is None or case["stops"] in reading.stopped.hint


BAD: dict[str, Act] = {
    "slow": Gone(1.0),
    "dripping": Says(label(0), drip=0.05),
    "reset": Gone(),
    "short": Raw(b'{"output": [', declared=5000),
    "deep": Raw(b"[" * 200_000),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_breaks_on_the_way_is_tried_again(bad: str, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: BAD[bad] if n < 1 else honest(call, n)
    reading = ask(tasks=("0",), timeout=0.3 if bad in ("slow", "dripping") else 5.0)
    assert statuses(reading) == [ACCEPTED]
    assert reading.results[0].calls == len(server.calls) >= 2
    # the first call may have been charged for: it is counted, and said to be an estimate
    assert reading.spent.estimated > 300


def test_a_request_that_is_refused_for_itself_does_not_stop_the_others(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Status(400, "maximum context length") if call.about == "1" else honest(call, n)
    reading = ask(tasks=("0", "1", "2"))
    assert statuses(reading) == [ACCEPTED, FAILED, ACCEPTED]
    assert "--budget" in reading.results[1].reasons[0]
    assert len(server.calls) == 3


def test_results_stand_in_the_order_of_the_questions_however_many_are_asked_at_once(ask: Ask, server: Server) -> None:
    together = threading.Barrier(3, timeout=10)

    def uneven(call: Call, number: int) -> Act:
        if number < 3:
            together.wait()  # breaks unless three are asked at once
        return honest(call, number)

    server.script = uneven
    several, alone = (ask(at_once=n, fresh=True).results for n in (3, 1))
    assert [(one.question.about, one.answer) for one in several] == [(one.question.about, one.answer) for one in alone]


def test_waiting_grows_and_is_bounded() -> None:
    patience = Patience(tries=4, base=1.0, longest=3.0, longest_asked=10.0)
    for tried, low, high in ((1, 0.5, 1), (2, 1, 2), (3, 1.5, 3)):
        assert low <= (patience.wait(tried, None) or 0) <= high
    assert [patience.wait(4, None), patience.wait(1, 7.0), patience.wait(1, 11.0)] == [None, 7.0, None]
