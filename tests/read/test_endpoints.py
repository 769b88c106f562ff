"""Endpoints that behave, are busy or break, over real HTTP; what was paid for is not asked again, and caps hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade import pipeline
from blade.agent import reader
from blade.agent.reader import ACCEPTED, DISCARDED, FAILED, KEPT, LEFT, Answer, Cap, Patience, Price, Usage
from blade.pipeline import model_reading
from blade.pipeline.session import Session
from tests.case_tables import cases
from tests.conftest import environment
from tests.read.conftest import TASKS, Ask, honest, label, locked, place, rows, statuses
from tools.model_server import Act, Call, Server, Status, says


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
        return says(f"<think>hm, {{}}</think>\n```json\n{json.dumps(label(call.about))}\n```")

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
    "slow": "hang",
    "dripping": says(label(0), drip=0.05),
    "reset": "reset",
    "short": "cut",
    "deep": Status(200, body="[" * 200_000),
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


# ---- The cache ---------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing(ask: Ask, server: Server) -> None:
    first, second = ask(), ask()
    assert len(server.calls) == len(TASKS)
    assert statuses(second) == [KEPT] * len(TASKS)
    assert [one.answer for one in second.results] == [one.answer for one in first.results]
    assert (second.spent, second.agreement) == (Usage(), first.agreement)


@pytest.mark.parametrize("other", [{"model": "n"}, {"fresh": True}, {"budget": 2000}, {"clean": True}])
def test_another_question_is_asked_again(other: dict[str, Any], ask: Ask, server: Server, session: Session) -> None:
    ask(tasks=("0",))
    if "clean" in other:
        other = {"clean": model_reading.Clean(session.report, lambda rows: [dict(row) for row in rows], str)}
    assert statuses(ask(tasks=("0",), **other)) == [ACCEPTED]
    assert len(server.calls) == 2


def test_another_kind_of_question_is_another_question(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: says(label(0, answer="yes", mode=""))
    for words, n in (({"asked": "One?"}, 1), ({"asked": "Two?"}, 2), ({"asked": "Two?", "choices": ("yes",)}, 3), ({"asked": "Two?"}, 3)):
        ask("ask", tasks=("0",), **words)
        assert len(server.calls) == n


def test_changed_rows_are_asked_about_again_and_others_are_not(ask: Ask, tmp_path: Path) -> None:
    def read(rollouts: list[dict[str, Any]]) -> list[str]:
        path = tmp_path / "rollouts.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rollouts))
        reading = ask("label", pipeline.session([str(path)]))
        return sorted(one.question.about for one in reading.results if one.status == ACCEPTED)

    assert read(rows()) == list(TASKS)
    assert read(list(reversed(rows()))) == []  # the order of rows is nothing to a task
    changed = rows()
    changed[4] = {**changed[4], "reward": 0.0, "extra": "new"}
    assert read(changed) == ["2"]


@pytest.mark.parametrize(
    ("old", "new"),
    [(locked(0), "Error: it was never locked at all"), ('"answer":"BI"', '"answer":"XX"'), ('"about":"0"', '"about":"1"'), ('"step":3', '"step":4')],
)
def test_a_kept_answer_is_held_against_the_rows_again(old: str, new: str, ask: Ask, server: Server, cache: Path) -> None:
    ask(tasks=("0",))
    (path,) = cache.glob("answers/*.jsonl")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert statuses(ask(tasks=("0",))) == [ACCEPTED]
    assert len(server.calls) == 2


def test_what_was_discarded_is_not_kept(ask: Ask, server: Server, cache: Path) -> None:
    server.script = lambda call, n: says(label(0, evidence=[place(0, step=0)]))
    assert statuses(ask(tasks=("0",))) == [DISCARDED]
    assert not list(cache.glob("answers/*.jsonl"))


def test_a_torn_line_costs_its_own_answer_alone_and_no_one_else_reads_it(ask: Ask, server: Server, cache: Path) -> None:
    ask(tasks=("0", "1"), at_once=1)
    (path,) = cache.glob("answers/*.jsonl")
    assert (path.stat().st_mode | path.parent.stat().st_mode) & 0o077 == 0
    path.write_bytes(path.read_bytes()[:-30])  # as a killed process leaves it
    assert statuses(ask(tasks=("0", "1", "2"))) == [KEPT, ACCEPTED, ACCEPTED]
    assert statuses(ask(tasks=("0", "1", "2"))) == [KEPT] * 3


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    answer = Answer("0", "undetermined", "because", ())

    def write(who: int) -> None:
        assert all(reader.Kept(tmp_path, "m", "h").keep(f"{who}-{number}", answer, Usage(1, 1)) for number in range(40))

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = reader.Kept(tmp_path, "m", "h")
    assert all(kept.get(f"{who}-{number}") == answer for who in range(4) for number in range(40))


def test_a_cache_that_cannot_be_written_is_told(ask: Ask, server: Server, cache: Path) -> None:
    (cache / "answers").write_text("a file where the folder belongs")
    reading = ask(tasks=("0",))
    assert (statuses(reading), reading.is_kept) == ([ACCEPTED], False)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_killed_run_goes_on_where_it_stopped(
    how: signal.Signals, code: int, server: Server, cache: Path, run_path: Path, ask: Ask
) -> None:
    stuck, free = threading.Event(), threading.Event()

    def half(call: Call, number: int) -> Act:
        if number >= 3 and not free.is_set():
            stuck.set()
            free.wait(30)
            return Status(500)
        return honest(call, number)

    server.script = half
    words = [sys.executable, "-m", "blade", "read", str(run_path), "--label", "--model", "m", "--base-url", server.url, "--concurrency", "1"]
    process = subprocess.Popen(words, env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert stuck.wait(60)
    os.kill(process.pid, how)
    assert process.wait(30) == code
    free.set()
    done = {call.about for call in server.calls[:3]}
    (path,) = cache.glob("answers/*.jsonl")
    assert {json.loads(line)["answer"]["about"] for line in path.read_text().splitlines()} == done
    server.calls.clear()
    reading = ask()
    assert {call.about for call in server.calls} == set(TASKS) - done
    assert {one.question.about for one in reading.results if one.status == KEPT} == done


# ---- Money -------------------------------------------------------------------------------------------


def test_a_cap_stops_before_the_call_that_would_pass_it(ask: Ask, server: Server) -> None:
    reading = ask(at_once=3, cap=Cap(tokens=7000))
    n = statuses(reading).count(ACCEPTED)
    assert 0 < n < len(TASKS)
    assert len(server.calls) == n
    assert statuses(reading) == [ACCEPTED] * n + [LEFT] * (len(TASKS) - n)  # the most valuable first
    assert reading.stopped is not None
    assert reading.stopped.is_cap
    assert f"{len(TASKS) - n} not asked" in reading.stopped.text
    # one more could have passed it
    assert 7000 - reading.results[n].question.tokens - 1000 < reading.spent.total <= 7000
    assert statuses(ask(cap=Cap(tokens=7000))).count(KEPT) == n


def test_a_cap_in_dollars_needs_nothing_but_the_price(ask: Ask, server: Server) -> None:
    price = Price(10.0, 100.0)  # an answer costs 1,000 in and 100 out: two cents
    reading = ask(at_once=1, cap=Cap(cost=0.21), price=price, limit=1500)
    n = len(server.calls)
    assert 0 < n < len(TASKS)
    assert price.of(reading.spent) == pytest.approx(0.02 * n)
    assert price.of(reading.spent) <= 0.21


@pytest.mark.parametrize(("act", "status"), [(says(label(0, evidence=[])), DISCARDED), ("reset", FAILED)], ids=["wrong", "broken off"])
def test_a_second_try_is_not_begun_past_the_cap(act: Act, status: str, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: act
    tokens = ask(tasks=("0",), fresh=True).results[0].question.tokens
    server.calls.clear()
    reading = ask(tasks=("0",), fresh=True, cap=Cap(tokens=tokens + 1000 + 10))
    assert (len(server.calls), statuses(reading)) == (1, [status])
    assert "pass the cap" in reading.results[0].reasons[-1]


@pytest.mark.parametrize("usage", [None, (0, 0), (0, 100), (1, 1)])
@pytest.mark.parametrize("is_chat", [False, True], ids=["responses", "chat"])
def test_a_cap_binds_at_an_endpoint_that_counts_too_little(usage: tuple[int, int] | None, is_chat: bool, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: says(label(call.about), usage=usage) if call.is_chat == is_chat else Status(404, "no")
    price = Price(10.0, 30.0)
    reading = ask(cap=Cap(cost=0.12), price=price, limit=1000, at_once=1)
    n = statuses(reading).count(ACCEPTED)
    assert reading.stopped is not None
    assert reading.stopped.is_cap
    assert 0 < n < len(TASKS)
    assert reading.spent.estimated == reading.spent.total > 1000 * n
    assert price.of(Usage(1000, 100)) * n < price.of(reading.spent) <= 0.12


def test_what_an_endpoint_counts_is_believed_where_it_can_be_and_else_estimated(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: says(label(call.about), usage=(700, 1) if call.about == "0" else None)
    assert ask(tasks=("0",)).spent == Usage(700, 1)
    reading = ask(tasks=("1",))
    assert reading.spent.estimated == reading.spent.total > 0
    question = reading.results[0].question
    assert reading.spent.tokens_in >= question.tokens > len((question.prompt.system + question.prompt.user).split())


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=30), st.integers(0, 300))
def test_no_order_of_calls_passes_a_cap(calls: list[tuple[int, int]], cap: int) -> None:
    purse = reader.Purse(Cap(tokens=cap))
    for tokens_in, tokens_out in calls:
        most = Usage(tokens_in, tokens_out)
        if purse.take(most):
            purse.settle(most, Usage(tokens_in, tokens_out // 2))
        else:
            assert purse.spent.total + most.total > cap
    assert purse.spent.total <= cap
