"""Collection: attempts, failures, dead endpoints, interruption, bounded work, one writer."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.environment import JUDGE_UNREACHED, Row, Unmeasured
from blade_eval.runner import collect, json_lines, run_files
from blade_eval.runner.collect import Plan, Runner, Stop, Summary

Key = tuple[int, int]


def materialised(n_tasks: int, n_repeats: int = 1) -> list[Row]:
    return [
        {"responses_create_params": {"input": f"task {task}"}, "agent_ref": {"name": "a"},
         "_ng_task_index": task, "_ng_rollout_index": repeat}
        for task in range(n_tasks) for repeat in range(n_repeats)
    ]  # fmt: skip


def key(row: Row) -> Key:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def result(row: Row) -> Row:
    return {"response": {"output": [], "usage": None}, "reward": float(row["_ng_task_index"] % 2)}


async def answered(row: Row) -> Row:
    await asyncio.sleep(0)
    return result(row)


def ran(
    folder: Path, rows: list[Row], run: Runner, *, resume: bool = False, identity: Row | None = None,
    stop: Stop | None = None, attempts: int = 3, concurrency: int = 8, notice: Callable[[str], None] = print,
    force: bool = False,
) -> Summary:  # fmt: skip
    at = run_files.beside(folder / "r.jsonl")
    opened = run_files.open_run(at, rows, identity or {}, resume=resume, force=force, notice=notice)
    try:
        plan = Plan(
            at, run, opened.kept, opened.standing, opened.expected, concurrency, attempts, 0.001,
            None, stop or Stop(),
        )  # fmt: skip
        return asyncio.run(collect.collected(plan))
    finally:
        opened.kept.close()


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rollouts(folder: Path) -> list[Row]:
    return lines(folder / "r.jsonl")


def scored_keys(folder: Path) -> set[Key]:
    return {key(row) for row in rollouts(folder)}


def failed(folder: Path) -> list[Row]:
    return lines(folder / "r_failures.jsonl")


def test_every_row_comes_out_once_with_the_frameworks_keys_last(tmp_path: Path) -> None:
    summary = ran(tmp_path, materialised(20, 3), answered)
    assert (summary.expected, summary.scored, summary.failed, summary.unfinished) == (60, 60, 0, 0)
    found = rollouts(tmp_path)
    assert sorted(map(key, found)) == sorted(map(key, materialised(20, 3)))
    assert list(found[0]) == ["response", "reward", "_ng_task_index", "_ng_rollout_index", "agent_ref"]
    assert failed(tmp_path) == []


def test_lines_do_not_wait_for_rollouts_that_compute(tmp_path: Path) -> None:
    seen: list[int] = []

    async def computing(row: Row) -> Row:
        seen.append(len(rollouts(tmp_path)))
        time.sleep(2 * collect._MOMENT_S)  # the loop does not go round meanwhile
        return result(row)

    ran(tmp_path, materialised(5), computing)
    assert seen == [0, 1, 2, 3, 4]


def test_a_row_that_cannot_be_encoded_costs_no_other_its_line(tmp_path: Path) -> None:
    deep: Row = {}
    for _ in range(200_000):
        deep = {"a": deep}

    async def bottomless(row: Row) -> Row:
        return result(row) | ({"deep": deep} if key(row)[0] == 3 else {})

    summary = ran(tmp_path, materialised(8), bottomless)
    assert (summary.scored, summary.failed) == (7, 1)
    assert {row["_ng_failure_type"] for row in failed(tmp_path)} == {"RecursionError"}


def test_what_cannot_be_measured_is_tried_again_and_never_gets_a_reward(tmp_path: Path) -> None:
    tries: Counter[Key] = Counter()

    async def sometimes(row: Row) -> Row:
        tries[key(row)] += 1
        if key(row)[0] == 1:
            raise Unmeasured("judge_failed", "no verdict", fields={"response": {"output": []}, "reward": 0.0})
        if key(row)[0] == 2 and tries[key(row)] < 3:
            raise ValueError("a bug")
        if key(row)[0] == 3:
            raise Unmeasured("task_invalid", "no answer in the row", terminal=True)
        return await answered(row)

    summary = ran(tmp_path, materialised(5), sometimes)
    assert (summary.scored, summary.failed, summary.unfinished, summary.failure_lines) == (3, 2, 0, 6)
    assert tries == {(0, 0): 1, (1, 0): 3, (2, 0): 3, (3, 0): 1, (4, 0): 1}
    by_task = {row["_ng_task_index"]: row for row in rollouts(tmp_path)}
    assert by_task[2]["_ng_attempt_index"] == 2
    assert "_ng_attempt_index" not in by_task[0]
    told = failed(tmp_path)
    assert Counter(row["_ng_failure_class"] for row in told) == {
        "judge_failed": 3,
        "agent_run_error": 2,
        "task_invalid": 1,
    }
    assert all("reward" not in row and row["mask_sample"] is True for row in told)
    judged = [row for row in told if row["_ng_failure_class"] == "judge_failed"]
    assert [row.get("_ng_attempt_index") for row in judged] == [None, 1, 2]
    assert judged[0]["_ng_failure_judge_error"] == "no verdict"
    assert [row["_ng_failure_type"] for row in told if row["_ng_task_index"] == 2] == ["ValueError"] * 2
    assert [row.get("_ng_failure_terminal") for row in told if row["_ng_task_index"] == 3] == [True]


def test_resume_leaves_what_is_given_up_and_more_attempts_take_it_up(tmp_path: Path) -> None:
    async def fails(row: Row) -> Row:
        if key(row)[0] < 2:
            raise Unmeasured("judge_failed" if key(row)[0] else "task_invalid", "x", terminal=not key(row)[0])
        return await answered(row)

    ran(tmp_path, materialised(4), fails)
    again = ran(tmp_path, materialised(4), answered, resume=True)
    assert (again.scored, again.scored_before, again.failed, again.unfinished) == (2, 2, 2, 0)
    more = ran(tmp_path, materialised(4), answered, resume=True, attempts=4)
    assert (more.scored, more.failed) == (3, 1)
    assert sorted(map(key, rollouts(tmp_path))) == [(1, 0), (2, 0), (3, 0)]


def test_an_endpoint_that_is_dead_stops_the_run_and_uses_up_no_attempts(tmp_path: Path) -> None:
    tries: Counter[Key] = Counter()

    async def dead(row: Row) -> Row:
        tries[key(row)] += 1
        raise Unmeasured("model_unreachable", "connection refused")

    with pytest.raises(Unreadable, match=r"connection refused.*stopped at 0 of 500") as caught:
        ran(tmp_path, materialised(500), dead)
    assert caught.value.slug == "endpoint-dead"
    assert tries.total() < 40
    assert failed(tmp_path) == []
    assert ran(tmp_path, materialised(500), answered, resume=True).scored == 500


def test_a_judge_that_is_dead_stops_the_run_but_what_it_should_judge_is_kept(tmp_path: Path) -> None:
    async def unjudged(row: Row) -> Row:
        told = {"_ng_failure_type": JUDGE_UNREACHED, "response": {"output": []}}
        raise Unmeasured("judge_failed", "refused", fields=told)

    with pytest.raises(Unreadable, match="judge"):
        ran(tmp_path, materialised(500), unjudged)
    found = failed(tmp_path)
    assert 10 <= len(found) < 40
    assert all("response" in row for row in found)


def test_an_endpoint_that_dies_on_the_way_stops_it_too(tmp_path: Path) -> None:
    calls = 0

    async def dies(row: Row) -> Row:
        nonlocal calls
        calls += 1
        if calls > 100:
            raise Unmeasured("model_timeout", "no answer")
        return await answered(row)

    with pytest.raises(Unreadable, match="stopped at 100 of 500"):
        ran(tmp_path, materialised(500), dies)
    assert len(failed(tmp_path)) < 8  # those that failed while others were still answered
    assert ran(tmp_path, materialised(500), answered, resume=True).scored == 500


def test_an_endpoint_that_fails_now_and_then_does_not_stop_it(tmp_path: Path) -> None:
    tries: Counter[Key] = Counter()

    async def shaky(row: Row) -> Row:
        tries[key(row)] += 1
        if tries[key(row)] == 1 and key(row)[0] % 2:
            raise Unmeasured("model_unreachable", "reset")
        return await answered(row)

    summary = ran(tmp_path, materialised(200), shaky)
    assert (summary.scored, summary.failure_lines) == (200, 100)
    assert len(failed(tmp_path)) == 100


def test_a_few_rows_that_the_endpoint_never_answers_are_written_down(tmp_path: Path) -> None:
    async def refused(row: Row) -> Row:
        raise Unmeasured("model_refused", "too long", terminal=True)

    summary = ran(tmp_path, materialised(3), refused)
    assert (summary.failed, len(failed(tmp_path))) == (3, 3)


def refusing(status: int, kind: str = "model_refused", **more: str) -> Callable[[Row], Awaitable[Row]]:
    """Refuses the first 40 tasks at once; the others are answered, later."""

    async def refuses(row: Row) -> Row:
        if key(row)[0] < 40:
            fields = {"_ng_failure_http_status": status, **more}
            raise Unmeasured(kind, f"it answered {status}", fields=fields)
        await asyncio.sleep(0.002)
        return result(row)

    return refuses


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("of_judge", [False, True])
def test_rows_that_are_refused_one_by_one_do_not_stop_the_others(
    tmp_path: Path, status: int, of_judge: bool
) -> None:
    run = refusing(status, "judge_failed", _ng_failure_type=JUDGE_UNREACHED) if of_judge else refusing(status)
    summary = ran(tmp_path, materialised(60), run)
    assert (summary.scored, summary.failed, summary.unfinished) == (20, 40, 0)
    assert len(failed(tmp_path)) == 120


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429, 500, 503])
def test_a_server_that_refuses_whoever_asks_stops_the_run(tmp_path: Path, status: int) -> None:
    with pytest.raises(Unreadable, match=f"it answered {status}.*stopped at 0 of 60"):
        ran(tmp_path, materialised(60), refusing(status))
    assert failed(tmp_path) == []


def test_what_is_under_way_finishes_before_an_endpoint_is_called_dead(tmp_path: Path) -> None:
    asked: Counter[Key] = Counter()

    async def busy(row: Row) -> Row:
        asked[key(row)] += 1
        if key(row)[0] == 5:
            await asyncio.sleep(0.2)
            return result(row)
        if (5, 0) not in scored_keys(tmp_path):
            raise Unmeasured("model_unreachable", "it answered 503")
        return await answered(row)

    summary = ran(tmp_path, materialised(60), busy)
    assert (summary.scored, summary.unfinished) == (60 - summary.failed, 0)
    assert asked[(5, 0)] == 1
    assert summary.failed <= 4


def test_nothing_new_is_begun_while_it_is_in_doubt(tmp_path: Path) -> None:
    calls = 0

    async def last_word(row: Row) -> Row:
        nonlocal calls
        calls += 1
        if key(row)[0] == 5:
            await asyncio.sleep(0.2)  # in which hundreds of others could fail
        raise Unmeasured("model_unreachable", "it answered 503")

    with pytest.raises(Unreadable, match="stopped at 0 of 500"):
        ran(tmp_path, materialised(500), last_word)
    assert calls < 30
    assert failed(tmp_path) == []


def test_what_is_wrong_with_the_run_itself_ends_it(tmp_path: Path) -> None:
    async def misses(row: Row) -> Row:
        if key(row)[0] == 3:
            raise UsageError("no library", "install it", "x")
        return await answered(row)

    with pytest.raises(UsageError, match="no library"):
        ran(tmp_path, materialised(100), misses)


def test_asked_to_stop_it_finishes_what_is_under_way_and_can_go_on(tmp_path: Path) -> None:
    stop = Stop()
    under_way = 0

    async def slow(row: Row) -> Row:
        nonlocal under_way
        under_way += 1
        if under_way == 20:
            stop.ask()
        await asyncio.sleep(0.005)
        return result(row)

    summary = ran(tmp_path, materialised(100), slow, stop=stop)
    assert summary.is_interrupted
    assert summary.scored == under_way == len(rollouts(tmp_path))
    assert 20 <= summary.scored < 40
    assert summary.unfinished == 100 - summary.scored
    assert ran(tmp_path, materialised(100), answered, resume=True).scored == 100
    assert len({key(row) for row in rollouts(tmp_path)}) == len(rollouts(tmp_path)) == 100


def test_asked_twice_it_stops_at_once(tmp_path: Path) -> None:
    stop = Stop()

    async def endless(row: Row) -> Row:
        if key(row)[0] == 5:
            for _ in range(2):
                asyncio.get_running_loop().call_soon(stop.ask)  # as a signal comes: from outside of all work
        await asyncio.sleep(3600)
        return result(row)

    summary = ran(tmp_path, materialised(100), endless, stop=stop)
    assert summary.is_interrupted
    assert summary.scored == 0


def test_no_more_is_under_way_or_in_memory_than_was_allowed(tmp_path: Path) -> None:
    now = most = 0

    async def counted(row: Row) -> Row:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return result(row)

    at = run_files.beside(tmp_path / "r.jsonl")
    many = ({**row, "text": "x" * 20_000} for row in materialised(2000))  # 40 MB
    tracemalloc.start()
    try:
        opened = run_files.open_run(at, many, {}, resume=False, force=False, notice=print)
        asyncio.run(collect.collected(Plan(at, counted, opened.kept, opened.standing, opened.expected, 16)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        opened.kept.close()
    assert len(rollouts(tmp_path)) == 2000
    assert most == 16
    assert peak < 8e6


# -- what is kept -------------------------------------------------------------------------------


def test_a_run_is_not_written_over_unless_it_is_said(tmp_path: Path) -> None:
    ran(tmp_path, materialised(3), answered)
    with pytest.raises(UsageError, match="is there already"):
        ran(tmp_path, materialised(2), answered)
    assert len(rollouts(tmp_path)) == 3
    assert ran(tmp_path, materialised(2), answered, force=True).scored == 2
    assert len(rollouts(tmp_path)) == 2


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    at = run_files.beside(tmp_path / "r.jsonl")
    first = run_files.Kept(at)
    with pytest.raises(UsageError, match="another process"):
        run_files.Kept(at)
    first.close()
    run_files.Kept(at).close()


@pytest.mark.parametrize("cut", [1, 2, 30, 10_000])
@pytest.mark.parametrize("name", ["r.jsonl", "r_failures.jsonl"])
def test_a_torn_last_line_is_mended_and_its_rollout_runs_again(tmp_path: Path, cut: int, name: str) -> None:
    async def fails(row: Row) -> Row:
        if key(row)[0] == 1:
            raise Unmeasured("judge_failed", "x" * 3000)
        return await answered(row)

    ran(tmp_path, materialised(6), fails)
    path = tmp_path / name
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole[: -min(cut, len(last) - 1)])
    told: list[str] = []
    ran(tmp_path, materialised(6), fails, resume=True, notice=told.append)
    assert any("newline" in text if cut == 1 else "torn" in text for text in told)
    assert sorted(map(key, rollouts(tmp_path))) == [(task, 0) for task in (0, 2, 3, 4, 5)]
    assert len(failed(tmp_path)) == 3


@pytest.mark.parametrize("name", ["r.jsonl", "r_failures.jsonl"])
def test_torn_lines_in_the_middle_are_set_aside_and_told(tmp_path: Path, name: str) -> None:
    async def fails(row: Row) -> Row:
        if key(row)[0] == 1:
            raise Unmeasured("judge_failed", "x")
        return await answered(row)

    ran(tmp_path, materialised(6), fails)
    path = tmp_path / name
    whole = path.read_bytes().splitlines(keepends=True)
    torn = whole[0][:-9] + whole[1]  # as after a disk that was full for a while
    path.write_bytes(b"".join([torn, b"[1]\n", *whole[2:]]))
    told: list[str] = []
    again = ran(tmp_path, materialised(6), fails, resume=True, notice=told.append)
    assert told == [f"{name}: 2 lines (1, 2) were no rows and stand in {name}.unreadable now; a rollout that"
                    " is missing runs again"]  # fmt: skip
    assert (again.scored, again.failed, again.unfinished) == (5, 1, 0)
    assert sorted(map(key, rollouts(tmp_path))) == [(task, 0) for task in (0, 2, 3, 4, 5)]
    assert len(failed(tmp_path)) == 3
    assert path.read_bytes().startswith(b"".join(whole[2:]))
    assert (tmp_path / f"{name}.unreadable").read_bytes() == torn + b"[1]\n"
    assert not list(tmp_path.glob("*.tmp"))
    told.clear()
    ran(tmp_path, materialised(6), fails, resume=True, notice=told.append)
    assert told == []


def test_a_file_without_torn_lines_is_not_replaced(tmp_path: Path) -> None:
    ran(tmp_path, materialised(3), answered)
    path = tmp_path / "r.jsonl"
    spelled = b'\n{ "_ng_task_index": 9, "_ng_rollout_index": 0, "x": NaN}\n' + path.read_bytes()
    path.write_bytes(spelled)
    before = path.stat().st_ino
    told: list[str] = []
    ran(tmp_path, materialised(3), answered, resume=True, notice=told.append)
    assert (told, path.read_bytes(), path.stat().st_ino) == ([], spelled, before)


def test_a_file_that_was_replaced_is_locked_and_written_to(tmp_path: Path) -> None:
    at = run_files.beside(tmp_path / "r.jsonl")
    at.rollouts.write_bytes(b"torn\n{}\n")
    files = run_files.Kept(at)
    files.set_aside(at.rollouts, [1])
    with pytest.raises(UsageError, match="another process"):
        run_files.Kept(at)
    files.rollouts([b'{"a":1}\n'])
    files.close()
    assert at.rollouts.read_bytes() == b'{}\n{"a":1}\n'
    run_files.Kept(at).close()


def test_a_run_that_somebody_writes_is_not_said_to_be_there_for_the_deleting(tmp_path: Path) -> None:
    at = run_files.beside(tmp_path / "r.jsonl")
    at.rollouts.write_bytes(b"{}\n")
    for more in ({}, {"resume": True}, {"force": True}):
        writing = run_files.Kept(at)
        with pytest.raises(UsageError) as caught:
            ran(tmp_path, materialised(1), answered, **more)
        writing.close()
        assert caught.value.slug == "run-is-locked"
    with pytest.raises(UsageError) as caught:
        ran(tmp_path, materialised(1), answered)
    assert caught.value.slug == "output-exists"
    run_files.Kept(at).close()  # whoever is refused lets go


def test_lines_that_other_tools_spell_are_known_too(tmp_path: Path) -> None:
    ran(tmp_path, materialised(4), answered)
    path = tmp_path / "r.jsonl"
    odd = ['"response":[1]', '"response":{"x":NaN}', '"response":{"x":"\\ud800"}', '"response":null']
    lines_ = path.read_text().splitlines()
    changed = [
        line.replace('"response":{"output":[],"usage":null}', new)
        for line, new in zip(lines_, odd, strict=True)
    ]
    assert changed != lines_
    path.write_text("\n".join(changed))  # and the last has no newline
    again = ran(tmp_path, materialised(4), answered, resume=True)
    assert (again.scored_before, len(path.read_text().splitlines())) == (4, 4)


def test_a_repeat_of_any_number_is_known_without_a_number_of_that_many_bits() -> None:
    standing = run_files.Standing()
    for found in ((3, 0), (3, 10**12), (4, 4096)):
        assert not standing.has(found)
        standing.add(found)
        assert standing.has(found)
    assert not standing.has((3, 1))
    assert not standing.has((4, 10**12))
    assert standing.n_scored == 3


def test_a_file_that_ends_as_it_should_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in (b"", b'{"a":1}\n', b'{"a":1}\n\n'):
        path.write_bytes(text)
        assert run_files.mend(path) is None
        assert path.read_bytes() == text
    path.write_bytes(b'{"a":1')  # the only line is torn
    assert "torn" in str(run_files.mend(path))
    assert path.read_bytes() == b""
    assert run_files.mend(tmp_path / "none") is None


def test_only_the_same_run_is_gone_on_with(tmp_path: Path) -> None:
    rows = materialised(4)
    ran(tmp_path, rows, answered)
    others = {
        "fewer rows": materialised(5),
        "more rows": materialised(3),
        "line 3 of the inputs has another responses_create_params": [
            {**row, "responses_create_params": {"input": "new"}} if number == 2 else row
            for number, row in enumerate(rows)
        ],
    }
    for says, other in others.items():
        with pytest.raises(UsageError, match=says) as caught:
            ran(tmp_path, other, answered, resume=True)
        assert caught.value.slug == "cannot-resume"
    assert ran(tmp_path, rows, answered, resume=True).scored == 4
    (tmp_path / "r_materialized_inputs.jsonl").unlink()
    with pytest.raises(UsageError, match="is missing"):
        ran(tmp_path, rows, answered, resume=True)


def test_inputs_that_are_spelled_otherwise_are_the_same(tmp_path: Path) -> None:
    rows = materialised(2)
    ran(tmp_path, rows, answered)
    path = tmp_path / "r_materialized_inputs.jsonl"
    path.write_text(
        "".join(json.dumps(row, indent=None) + "\n" for row in rows)
    )  # with blanks, as others write
    assert ran(tmp_path, rows, answered, resume=True).scored == 2


def test_rows_that_cannot_be_encoded_at_once_are_still_json() -> None:
    line = json_lines.line({"a": float("nan"), "b": "\ud83d", "c": 10**30, 5: {1.5: float("inf")}})
    assert json.loads(line) == {"a": None, "b": "?", "c": 10**30, "5": {"1.5": None}}


def test_a_full_disk_is_said_in_words() -> None:
    files = run_files.Kept.__new__(run_files.Kept)
    with open("/dev/full", "wb", buffering=0) as full:  # where writing fails for want of room
        files._rollouts, files._places = full.fileno(), run_files.beside(Path("x/r.jsonl"))
        with pytest.raises(BladeError, match="No space left"):
            files.rollouts([b"{}\n"])
