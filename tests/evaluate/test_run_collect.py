"""Collection: attempts, failures, dead endpoints, interruption, bounded work, one writer, and what is told of it."""

from __future__ import annotations

import asyncio
import io
import json
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.environment import JUDGE_UNREACHED, Row, Unmeasured
from blade_eval.runner import benchmark_run, json_lines, run_files
from blade_eval.runner.collect import Course, Runner, Stop, Summary
from blade_eval.runner.progress import Prices, Progress, Totals
from tests.evaluate.rows import key, rows_of


def materialised(n_tasks: int, n_repeats: int = 1) -> list[Row]:
    return [
        {"responses_create_params": {"input": f"task {task}"}, "agent_ref": {"name": "a"},
         "_ng_task_index": task, "_ng_rollout_index": repeat}
        for task in range(n_tasks) for repeat in range(n_repeats)
    ]  # fmt: skip


def result(row: Row) -> Row:
    return {"response": {"output": [], "usage": None}, "reward": float(row["_ng_task_index"] % 2)}


async def answered(row: Row) -> Row:
    await asyncio.sleep(0)
    return result(row)


async def fails_once(row: Row) -> Row:
    """The judge fails in the second task."""
    if key(row)[0] == 1:
        raise Unmeasured("judge_failed", "x" * 3000)
    return await answered(row)


def unreachable(calls: Counter[Any] | None = None) -> Runner:
    async def dead(row: Row) -> Row:
        if calls is not None:
            calls[key(row)] += 1
        raise Unmeasured("model_unreachable", "connection refused")

    return dead


class Run:
    """A run in a folder: its sittings, its files, and what was told."""

    def __init__(self, folder: Path) -> None:
        self.places = run_files.beside(folder / "r.jsonl")
        self.notes: list[str] = []

    def __call__(
        self, rows: Any, run: Runner, *, resume: bool = False, force: bool = False, identity: Row | None = None,
        stop: Stop | None = None, attempts: int = 3, concurrency: int = 8,
    ) -> Summary:  # fmt: skip
        self.notes.clear()
        opened = run_files.open_run(self.places, rows, identity or {}, resume=resume, force=force, notice=self.notes.append)
        try:
            kept = (opened.kept, opened.standing, opened.expected, concurrency, attempts, 0.001)
            return asyncio.run(Course(self.places, run, *kept, stop=stop or Stop()).summary())
        finally:
            opened.kept.close()

    def refused(self, slug: str, rows: Any, run: Runner = answered, **how: Any) -> BladeError:
        with pytest.raises(BladeError) as error:
            self(rows, run, **how)
        assert error.value.slug == slug
        return error.value

    @property
    def rollouts(self) -> list[Row]:
        return rows_of(self.places.rollouts)

    @property
    def tasks(self) -> list[int]:
        return sorted(row["_ng_task_index"] for row in self.rollouts)

    @property
    def failed(self) -> list[Row]:
        return rows_of(self.places.failures)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_every_row_comes_out_once_and_one_that_cannot_be_encoded_costs_no_other_its_line(run: Run) -> None:
    summary = run(materialised(20, 3), answered)
    assert (summary.expected, summary.scored, summary.failed, summary.unfinished) == (60, 60, 0, 0)
    assert sorted(map(key, run.rollouts)) == sorted(map(key, materialised(20, 3)))
    assert list(run.rollouts[0]) == ["response", "reward", "_ng_task_index", "_ng_rollout_index", "agent_ref"]  # the framework's last
    assert run.failed == []
    deep: Row = {}
    for _ in range(200_000):
        deep = {"a": deep}

    async def bottomless(row: Row) -> Row:
        return result(row) | ({"deep": deep} if key(row)[0] == 3 else {})

    summary = run(materialised(8), bottomless, force=True)
    assert (summary.scored, summary.failed) == (7, 1)
    assert {row["_ng_failure_type"] for row in run.failed} == {"RecursionError"}
    line = json_lines.line({"a": float("nan"), "b": "\ud83d", "c": 10**30, 5: {1.5: float("inf")}})
    assert json.loads(line) == {"a": None, "b": "?", "c": 10**30, "5": {"1.5": None}}


def test_what_cannot_be_measured_is_tried_again_and_never_gets_a_reward(run: Run) -> None:
    tries: Counter[Any] = Counter()

    async def sometimes(row: Row) -> Row:
        task = key(row)[0]
        tries[task] += 1
        if task == 1:
            raise Unmeasured("judge_failed", "no verdict", fields={"response": {"output": []}, "reward": 0.0})
        if task == 2 and tries[task] < 3:
            raise ValueError("a bug")
        if task == 3:
            raise Unmeasured("task_invalid", "no answer in the row", terminal=True)
        return await answered(row)

    summary = run(materialised(5), sometimes)
    assert (summary.scored, summary.failed, summary.unfinished, summary.failure_lines) == (3, 2, 0, 6)
    assert tries == {0: 1, 1: 3, 2: 3, 3: 1, 4: 1}
    assert {row["_ng_task_index"]: row.get("_ng_attempt_index") for row in run.rollouts} == {0: None, 2: 2, 4: None}
    by_task = {task: [row for row in run.failed if row["_ng_task_index"] == task] for task in (1, 2, 3)}
    assert all("reward" not in row and row["mask_sample"] is True for row in run.failed)
    assert [(row["_ng_failure_class"], row.get("_ng_attempt_index")) for row in by_task[1]] == [
        ("judge_failed", None), ("judge_failed", 1), ("judge_failed", 2),
    ]  # fmt: skip
    assert by_task[1][0]["_ng_failure_judge_error"] == "no verdict"
    assert [row["_ng_failure_type"] for row in by_task[2]] == ["ValueError"] * 2
    assert [(row["_ng_failure_class"], row["_ng_failure_terminal"]) for row in by_task[3]] == [("task_invalid", True)]
    # given up is given up, unless more attempts are allowed; what no attempt can help stays
    again = run(materialised(5), answered, resume=True)
    assert (again.scored, again.scored_before, again.failed, again.unfinished) == (3, 3, 2, 0)
    more = run(materialised(5), answered, resume=True, attempts=4)
    assert (more.scored, more.failed, run.tasks) == (4, 1, [0, 1, 2, 4])


def test_an_endpoint_that_is_dead_stops_the_run_and_uses_up_no_attempts(run: Run) -> None:
    tries: Counter[Any] = Counter()
    error = run.refused("endpoint-dead", materialised(500), unreachable(tries))
    assert "connection refused" in error.message
    assert "stopped at 0 of 500" in error.message
    assert (tries.total() < 40, run.failed) == (True, [])

    async def dies(row: Row) -> Row:
        tries[0] += 1
        return await (answered if tries[0] <= 100 else unreachable())(row)

    tries.clear()
    assert "stopped at 100 of 500" in run.refused("endpoint-dead", materialised(500), dies, resume=True).message
    assert len(run.failed) < 8  # those that failed while others were still answered
    assert run(materialised(500), answered, resume=True).scored == 500


def test_a_dead_judge_stops_the_run_but_its_rows_are_kept_and_an_endpoint_that_fails_now_and_then_does_not(run: Run) -> None:
    async def unjudged(row: Row) -> Row:
        raise Unmeasured("judge_failed", "refused", fields={"_ng_failure_type": JUDGE_UNREACHED, "response": {"output": []}})

    assert "judge" in run.refused("endpoint-dead", materialised(500), unjudged).message
    assert 10 <= len(run.failed) < 40
    assert all("response" in row for row in run.failed)
    tries: Counter[Any] = Counter()

    async def shaky(row: Row) -> Row:
        tries[key(row)] += 1
        is_reset = tries[key(row)] == 1 and key(row)[0] % 2
        return await (unreachable() if is_reset else answered)(row)

    summary = run(materialised(200), shaky, force=True)
    assert (summary.scored, summary.failure_lines, len(run.failed)) == (200, 100, 100)


def refusing(status: int, **more: str) -> Callable[[Row], Awaitable[Row]]:
    """Refuses the first 40 tasks at once; the others are answered, later."""

    async def refuses(row: Row) -> Row:
        if key(row)[0] < 40:
            kind = "judge_failed" if more else "model_refused"
            raise Unmeasured(kind, f"it answered {status}", fields={"_ng_failure_http_status": status, **more})
        await asyncio.sleep(0.002)
        return result(row)

    return refuses


@pytest.mark.parametrize("status", [400, 413, 422, 401, 402, 403, 404, 429, 500, 503])
def test_rows_that_are_refused_one_by_one_do_not_stop_the_others_but_a_server_that_refuses_whoever_asks_does(run: Run, status: int) -> None:
    if status in (400, 413, 422):
        for more in ({}, {"_ng_failure_type": JUDGE_UNREACHED}):
            summary = run(materialised(60), refusing(status, **more), force=True)
            assert (summary.scored, summary.failed, summary.unfinished, len(run.failed)) == (20, 40, 0, 120)
        return
    message = run.refused("endpoint-dead", materialised(60), refusing(status)).message
    assert f"it answered {status}" in message
    assert ("stopped at 0 of 60" in message, run.failed) == (True, [])


@pytest.mark.parametrize("is_alive", [True, False])
def test_what_is_under_way_finishes_before_an_endpoint_is_called_dead(run: Run, is_alive: bool) -> None:
    calls: Counter[Any] = Counter()

    async def busy(row: Row) -> Row:
        calls[key(row)] += 1
        if key(row) == (5, 0):
            await asyncio.sleep(0.2)  # in which hundreds of others could fail
            return await (answered if is_alive else unreachable())(row)
        return await (answered if 5 in run.tasks else unreachable())(row)

    if is_alive:
        summary = run(materialised(60), busy)
        assert (summary.scored, summary.unfinished) == (60 - summary.failed, 0)
        assert (calls[(5, 0)], summary.failed <= 4) == (1, True)
    else:  # and nothing new is begun while it is in doubt
        assert "stopped at 0 of 500" in run.refused("endpoint-dead", materialised(500), busy).message
        assert (calls.total() < 30, run.failed) == (True, [])


def test_asked_to_stop_it_finishes_what_is_under_way_and_asked_twice_it_stops_at_once(run: Run) -> None:
    stop, begun = Stop(), Counter[str]()

    async def slow(row: Row) -> Row:
        begun["rows"] += 1
        if begun["rows"] == 20:
            stop.ask()
        await asyncio.sleep(0.005)
        return result(row)

    summary = run(materialised(100), slow, stop=stop)
    assert (summary.is_interrupted, summary.unfinished) == (True, 100 - summary.scored)
    assert 20 <= summary.scored == begun["rows"] == len(run.rollouts) < 40
    assert run(materialised(100), answered, resume=True).scored == 100
    assert run.tasks == list(range(100))
    stop = Stop()

    async def endless(row: Row) -> Row:
        for _ in range(2 if key(row)[0] == 5 else 0):
            asyncio.get_running_loop().call_soon(stop.ask)  # as a signal comes: from outside of all work
        await asyncio.sleep(3600)
        return result(row)

    summary = run(materialised(100), endless, stop=stop, force=True)
    assert (summary.is_interrupted, summary.scored) == (True, 0)

    async def misses(row: Row) -> Row:
        if key(row)[0] == 3:
            raise UsageError("no library", "install it", "the-reason")
        return await answered(row)

    run.refused("the-reason", materialised(100), misses, force=True)  # what is wrong with the run itself ends it


def test_no_more_is_under_way_or_in_memory_than_was_allowed(run: Run) -> None:
    now = most = 0

    async def counted(row: Row) -> Row:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return result(row)

    tracemalloc.start()
    try:
        run(({**row, "text": "x" * 20_000} for row in materialised(1000)), counted, concurrency=16)  # 20 MB
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(run.rollouts), most, peak < 8e6) == (1000, 16, True)


@pytest.mark.parametrize("how", [{}, {"resume": True}, {"force": True}])
def test_two_processes_cannot_write_one_run(run: Run, how: dict[str, bool]) -> None:
    run.places.rollouts.write_bytes(b"{}\n")
    writing = run_files.Kept(run.places)
    run.refused("run-is-locked", materialised(1), **how)
    writing.close()
    run.refused("output-exists", materialised(1))  # a run is not written over unless it is said
    assert run.places.rollouts.read_bytes() == b"{}\n"
    run_files.Kept(run.places).close()  # whoever is refused lets go
    assert (run(materialised(2), answered, force=True).scored, len(run.rollouts)) == (2, 2)


@pytest.mark.parametrize("cut", [1, 2, 30, 10_000])
@pytest.mark.parametrize("name", ["rollouts", "failures"])
def test_a_torn_last_line_is_mended_and_its_rollout_runs_again(run: Run, cut: int, name: str) -> None:
    run(materialised(6), fails_once)
    path = getattr(run.places, name)
    whole = path.read_bytes()
    path.write_bytes(whole[: -min(cut, len(whole.splitlines(keepends=True)[-1]) - 1)])
    run(materialised(6), fails_once, resume=True)
    assert any("newline" in text if cut == 1 else "torn" in text for text in run.notes)
    assert (run.tasks, len(run.failed)) == ([0, 2, 3, 4, 5], 3)


@pytest.mark.parametrize("name", ["rollouts", "failures"])
def test_torn_lines_in_the_middle_are_set_aside_and_told(run: Run, tmp_path: Path, name: str) -> None:
    run(materialised(6), fails_once)
    path = getattr(run.places, name)
    whole = path.read_bytes().splitlines(keepends=True)
    torn = whole[0][:-9] + whole[1]  # as after a disk that was full for a while
    path.write_bytes(b"".join([torn, b"[1]\n", *whole[2:]]))
    again = run(materialised(6), fails_once, resume=True)
    aside = f"{path.name}.unreadable"
    what = f"{path.name}: 2 lines (1, 2) were no rows and stand in {aside} now; a rollout that is missing runs again"
    assert run.notes == [what]
    assert (again.scored, again.failed, again.unfinished) == (5, 1, 0)
    assert (run.tasks, len(run.failed)) == ([0, 2, 3, 4, 5], 3)
    assert path.read_bytes().startswith(b"".join(whole[2:]))
    assert (tmp_path / aside).read_bytes() == torn + b"[1]\n"
    assert not list(tmp_path.glob("*.tmp"))
    run(materialised(6), fails_once, resume=True)
    assert run.notes == []


def test_a_file_that_was_replaced_is_locked_and_written_to(run: Run) -> None:
    run.places.rollouts.write_bytes(b"torn\n{}\n")
    files = run_files.Kept(run.places)
    files.set_aside(run.places.rollouts, [1])
    with pytest.raises(UsageError, match="another process"):
        run_files.Kept(run.places)
    files.rollout(b'{"a":1}\n')
    files.close()
    assert run.places.rollouts.read_bytes() == b'{}\n{"a":1}\n'
    run_files.Kept(run.places).close()


def test_lines_that_other_tools_spell_are_known_too_and_their_file_is_not_replaced(run: Run) -> None:
    run(materialised(4), answered)
    path = run.places.rollouts
    spelled = b'\n{ "_ng_task_index": 9, "_ng_rollout_index": 0, "x": NaN}\n' + path.read_bytes()
    path.write_bytes(spelled)
    before = path.stat().st_ino
    run(materialised(4), answered, resume=True)
    assert (run.notes, path.read_bytes(), path.stat().st_ino) == ([], spelled, before)
    odd = ['"response":[1]', '"response":{"x":NaN}', '"response":{"x":"\\ud800"}', '"response":null']
    lines = [line.replace('"response":{"output":[],"usage":null}', new) for line, new in zip(path.read_text().splitlines()[2:], odd, strict=True)]
    path.write_text("\n".join(lines))  # and the last has no newline
    again = run(materialised(4), answered, resume=True)
    assert (again.scored_before, len(path.read_text().splitlines())) == (4, 4)


def test_a_file_that_ends_as_it_should_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in (b"", b'{"a":1}\n', b'{"a":1}\n\n'):
        path.write_bytes(text)
        assert (run_files.mend(path), path.read_bytes()) == (None, text)
    path.write_bytes(b'{"a":1}\n{"b"\n')  # the last line has its newline, and is no row
    assert ("torn" in str(run_files.mend(path)), path.read_bytes()) == (True, b'{"a":1}\n')
    path.write_bytes(b'{"a":1')  # the only line is torn
    assert ("torn" in str(run_files.mend(path)), path.read_bytes()) == (True, b"")
    assert run_files.mend(tmp_path / "none") is None


def test_only_the_same_run_is_gone_on_with(run: Run) -> None:
    rows = materialised(4)
    run(rows, answered)
    other = [{**row, "responses_create_params": {"input": "new"}} if key(row)[0] == 2 else row for row in rows]
    for what, others in {
        "fewer rows": materialised(5), "more rows": materialised(3),
        "line 3 of the inputs has another responses_create_params": other,
    }.items():  # fmt: skip
        assert what in run.refused("cannot-resume", others, resume=True).message
    path = run.places.materialized
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))  # with blanks, as others write
    assert run(rows, answered, resume=True).scored == 4
    path.unlink()
    assert "is missing" in run.refused("cannot-resume", rows, resume=True).message


def test_a_full_disk_is_said_in_words(run: Run) -> None:
    files = run_files.Kept(run.places)
    with open("/dev/full", "wb", buffering=0) as full:  # where writing fails for want of room
        files._open[run.places.rollouts] = full.fileno()
        with pytest.raises(Unreadable, match="No space left"):
            files.rollout(b"{}\n")


def test_the_line_says_done_pass_rate_cost_errors_and_retries() -> None:
    progress = Progress(expected=10, prices=Prices(1.0, 10.0), out=io.StringIO())
    for reward in (1.0, 0.0, 0.5, 1.0):
        progress.scored(reward, {"input_tokens": 1_000_000, "output_tokens": 100_000})
    for kind, is_final in (("model_timeout", False), ("judge_failed\x1b[31m", True), ("model_timeout", False)):
        progress.failed(kind, is_final)
    line = (
        "5 of 10 rollouts (50%) · pass rate 50.0% · mean reward 0.625 · $8.00 · 1 given up"
        " · 3 errors, most model_timeout (2) · 2 retries"
    )
    assert progress.text() == line
    progress.asked_again = lambda: 1234
    assert progress.text() == f"{line} · 1,234 requests made again"
    counted, silent = Totals(), Totals()  # without prices or counts there is no cost
    counted.add(1.0, {"prompt_tokens": 5, "completion_tokens": 7})
    silent.add(1.0, None)
    silent.add(None, {"input_tokens": 0, "output_tokens": 0})  # zeros mean that nobody counted
    assert (counted.tokens_in, counted.tokens_out, silent.scored, silent.passed) == (5, 7, 2, 1)
    assert [counted.cost(None), counted.cost(Prices(1e6, 0)), silent.cost(Prices(1, 1))] == [None, 5.0, None]
    progress = Progress(expected=1000, out=io.StringIO())  # plain lines are sparse and come even if no rollout ends
    progress.waited()
    assert progress.out.getvalue() == ""
    progress._drawn -= 3600
    progress.waited()
    assert progress.out.getvalue() == "0 of 1,000 rollouts (0%)\n"
    for _ in range(1000):
        progress.scored(1.0, None)
    assert progress.out.getvalue().count("\n") <= 2


@pytest.mark.parametrize("can_write", [True, False])
@pytest.mark.parametrize("is_well", [True, False])
def test_what_ended_a_run_is_told_rather_than_that_it_cannot_be_written_down(tmp_path: Path, can_write: bool, is_well: bool) -> None:
    places = run_files.beside(tmp_path / "r.jsonl")

    async def run(row: Row) -> Row:
        if not can_write:
            places.manifest.unlink()
            places.manifest.mkdir()  # nothing can take its place
        if not is_well:
            raise Unreadable("the disk is full", "make room", "the-reason")
        return {"reward": 1.0}

    row = {"_ng_task_index": 0, "_ng_rollout_index": 0}
    opened = run_files.open_run(places, [row], {}, resume=False, force=False, notice=print)
    course = Course(places, run, opened.kept, opened.standing, opened.expected)
    sitting = benchmark_run._sitting(course, Progress(), {"sittings": [{"status": "running"}]})
    if is_well and can_write:
        assert asyncio.run(sitting).scored == 1
    else:
        with pytest.raises(Unreadable) as error:
            asyncio.run(sitting)
        assert error.value.slug == ("cannot-write" if is_well else "the-reason")
    assert not list(tmp_path.glob("*.tmp")) + list(tmp_path.glob(".*.part"))
    if can_write:
        status = json.loads(places.manifest.read_text())["sittings"][0]["status"]
        assert status == ("finished" if is_well else "stopped")
    run_files.Kept(places).close()  # the lock is free


def test_a_manifest_is_replaced_as_a_whole_one_that_is_broken_is_none_and_differences_are_named_in_depth(tmp_path: Path) -> None:
    for output, stem in (("r.jsonl", "r"), ("roll.v1.jsonl", "roll.v1"), ("plain", "plain")):  # names derive from the output
        places = run_files.beside(tmp_path / output)
        assert [places.failures, places.manifest] == [tmp_path / f"{stem}{end}" for end in ("_failures.jsonl", "_manifest.json")]
    path = tmp_path / "r_manifest.json"
    run_files.write_manifest(path, {"a": "é", "n": [1, 2]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "n": [1, 2]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["r_manifest.json"]
    path.write_text("{")
    assert [run_files.read_manifest(path), run_files.read_manifest(tmp_path / "none")] == [None, None]
    before = {"flags": {"--limit": None, "p": {"temperature": 0.5}}, "dataset": [{"sha256": "a"}]}
    after = {"flags": {"--limit": 3, "p": {}}, "dataset": [{"sha256": "a"}, {"sha256": "b"}]}
    assert run_files.differences(before, before) == []
    assert run_files.differences(before, after) == [
        "flags.--limit: was not given, now 3",
        "flags.p.temperature: was 0.5, now not given",
        "dataset.2.sha256: was not given, now b",
    ]
