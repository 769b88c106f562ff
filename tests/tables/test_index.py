"""An index tells what the file says, is reused as long as that holds, and is built anew when it does not."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from blade.errors import Unreadable
from blade.tables import cache, index, task_rows
from tests.builders import encode, joined, make_call, make_message, make_response, make_row, make_run, packed
from tests.case_tables import cases
from tests.conftest import Blade, Listener
from tests.tables.watching import Spy, in_pieces, opened, strays, told, told_anew
from tools.planted import write_run

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rewards = (1.0, 0.0, 0.5, 1.0, 0.0, 0.0)
    return make_run(tmp_path, [make_row(at // 2, at % 2, reward, difficulty="easy") for at, reward in enumerate(rewards)])


def reindexed(path: Path) -> Spy:
    """Open the index once more; the spy says what was read."""
    spy = Spy()
    opened(path, spy)
    return spy


# ---- Built ---------------------------------------------------------------------------------------


def test_columns_are_what_a_naive_count_finds(tmp_path: Path) -> None:
    planted = write_run(tmp_path, n_tasks=12, faults=("provider_errors", "null_rewards", "masked_rows", "retried_attempt"))
    lines = planted.path.read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    found = told(opened(planted.path))
    assert found["rows"] == lines
    assert found["line"] == list(range(1, len(rows) + 1))
    assert found["task_index"] == [row["_ng_task_index"] for row in rows]
    assert found["repeat"] == [row["_ng_rollout_index"] for row in rows]
    assert found["attempt"] == [row.get("_ng_attempt_index", 0) for row in rows]
    assert found["reward"] == [row["reward"] for row in rows]
    assert found["masked"] == [int(row.get("mask_sample", False)) for row in rows]
    assert found["n_items"] == [len(row["response"]["output"]) for row in rows]
    usage = [row["response"]["usage"] or {} for row in rows]
    assert found["input_tokens"] == [one.get("input_tokens") for one in usage]
    assert found["text agent"] == [row["agent_ref"]["name"] for row in rows]
    assert [entry[2] for entry in found["field category"]] == [row.get("category") for row in rows]
    assert [entry[1] for entry in found["field n_lookups"]] == [row.get("n_lookups") for row in rows]


def test_forked_workers_tell_the_same_as_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path / "run", n_tasks=12, faults=("torn_tail",)).path
    whole = told(opened(path))
    in_pieces(monkeypatch, 1, 1 << 15, 3)
    watcher = Listener()
    with monkeypatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path / "other"))
        spy = Spy()
        spied = index.open_index(path, spy, watcher)
        assert not strays(path)
    assert told(spied) == whole
    assert not spy.was_asked  # it was the workers' copies that were
    assert len(spied.manifest.parts) > 5
    assert watcher.done == watcher.total == path.stat().st_size


# ---- Reused --------------------------------------------------------------------------------------


def test_the_index_belongs_to_the_file_not_to_how_it_was_spelled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    opened(Path(path.name))
    monkeypatch.chdir("/")
    spy = Spy()
    found = opened(path, spy)
    assert not spy.was_asked
    assert found.path == path
    assert json.loads(found.row_bytes(0))["_ng_task_index"] == 0


def test_an_index_stays_readable_when_another_process_replaces_it(path: Path) -> None:
    first = opened(path)
    path.write_bytes(joined([make_row(7)]))
    opened(path)
    assert first.numbers("task_index").tolist() == [0, 0, 1, 1, 2, 2]
    assert first.field("difficulty").texts == ("easy",)


# ---- Extended ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 1, 40, -1], ids=["nothing", "one byte", "torn", "unterminated"])
def test_only_the_new_lines_of_a_file_that_grew_are_read(path: Path, cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And an unfinished last line is read again."""
    last = joined([make_row(9)])
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(last[:cut])
    opened(path)
    with path.open("ab") as file:
        file.write(last[cut:])
    assert reindexed(path).ranges == [(size, size + len(last))]
    found = told(opened(path))
    assert found["n"] == (7, 0)
    assert found == told_anew(path, tmp_path / "other", monkeypatch)
    assert not strays(path)


def test_what_is_appended_while_a_file_is_read_is_found_the_next_time(path: Path) -> None:
    class Growing(Spy):
        def plain_parts(self, path: Path, start: int, end: int) -> Any:
            yield from super().plain_parts(path, start, end)
            with path.open("ab") as file:
                file.write(joined([make_row(9)]))

    assert opened(path, Growing()).n_rows == 6
    assert opened(path).n_rows == 7


def test_a_line_too_long_to_keep_that_grows_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("lines", "columns"):
        monkeypatch.setattr(f"blade.formats.{module}.MAX_LINE_BYTES", 4000)
    monkeypatch.setattr("blade.formats.lines.BLOCK_BYTES", 1000)
    path = make_run(tmp_path, [make_row(0)], tail=b'{"text":"' + b"x" * 9000)
    assert opened(path).n_skipped == 1
    with path.open("ab") as file:
        file.write(b"y" * 500 + b'"}\n' + joined([make_row(1)]))
    found = opened(path)
    assert (found.n_rows, found.n_skipped) == (2, 1)
    assert told(found) == told_anew(path, tmp_path / "other", monkeypatch)


ANY_ROWS = st.builds(
    make_row,
    task=st.integers(0, 3) | st.sampled_from(["t-1", 2.0, None]),
    repeat=st.integers(0, 2),
    reward=st.sampled_from([0.0, 1.0, 1, True, None, "1", float("nan"), 10**400]),
    note=st.sampled_from(["", "é", "日本", "x" * 200, 7, None, [1, {"a": 2}], {"k": "v"}]),
    response=st.sampled_from([make_response(), make_response([make_call("c"), make_message("ok")]), None]),
)
LINES = ANY_ROWS.map(encode) | st.sampled_from(
    [b"", b"  ", b"{broken", b"[1]", b"null", b'{"reward":1}\r', b"\xff\xfe{", b"{}", b'{"reward":1,"reward":0}']
)


# The first row has a full key and the second has none: what is kept of a row does not hang on its neighbours.
MIXED = [encode(make_row(0, 0, note="x" * 200)), encode(make_row(None, 1))]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example(lines=MIXED, cuts=[0.5], ends=True)
@example(lines=[b"", b"  "], cuts=[], ends=False)  # a block without a row
@given(lines=st.lists(LINES, min_size=1, max_size=8), cuts=st.lists(st.floats(0, 1), max_size=6), ends=st.booleans())
@pytest.mark.parametrize("many", [False, True], ids=["one range", "many ranges"])
def test_any_sequence_of_appends_gives_the_index_of_the_whole(
    lines: list[bytes], cuts: list[float], ends: bool, many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:
        in_pieces(monkeypatch, 300, 500, 1)
        monkeypatch.setattr("blade.formats.lines.BLOCK_BYTES", 256)
    content = b"\n".join(lines) + (b"\n" if ends else b"")
    path, other = tmp_path / "rollouts.jsonl", tmp_path / "other"
    path.unlink(missing_ok=True)
    path.touch()
    for cut in [*sorted(cuts), 1.0]:
        size = path.stat().st_size
        with path.open("ab") as file:
            file.write(content[size : max(size, round(cut * len(content)))])
        found = told(opened(path))
        shutil.rmtree(other, ignore_errors=True)
        assert found == told_anew(path, other, monkeypatch)
        assert not strays(path)


# ---- Built anew ----------------------------------------------------------------------------------


def test_an_index_of_another_version_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cache, "made_by", lambda: "1/0.0.9")
        opened(path)
    assert reindexed(path).ranges == [(0, path.stat().st_size)]
    assert not reindexed(path).was_asked
    assert not strays(path)


# ---- Gone ----------------------------------------------------------------------------------------


def test_a_file_that_is_gone_cannot_be_opened(path: Path) -> None:
    found = opened(path)
    path.unlink()
    with pytest.raises(Unreadable, match="cannot read"):
        found.row_bytes(0)
    with pytest.raises(Unreadable, match="cannot read"):
        index.open_index(path, Spy(), Listener())
    with pytest.raises(Unreadable, match="cannot read"):
        index.sha256_of(path)


def test_a_file_that_may_no_longer_be_read_is_the_fault_of_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(path)

    def denied(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "_content", denied)
    with pytest.raises(Unreadable, match="Permission denied") as error:
        index.open_index(path, Spy(), Listener())
    assert error.value.slug == "unreadable-file"


def test_a_run_may_have_more_shards_than_files_may_be_open(tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1000:
        pytest.skip("this system allows few open files")
    paths = [make_run(tmp_path, [make_row(n)], name=f"shard-{n:03}") for n in range(60)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
    try:
        found = [opened(path) for path in paths]
        assert sum(len(one.row_bytes(0)) > 0 for one in found) == 60
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(list((cache.root() / "indexes").iterdir())) == 60


# -- compressed files, pipes and standard input ----------------------------------------------------

ROWS = [make_row(task, repeat, note="é" * (50 * task)) for task in range(30) for repeat in range(2)]


@pytest.mark.parametrize("compress", ["gz", "zst"])
def test_a_compressed_file_tells_what_the_plain_one_does(tmp_path: Path, compress: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blade.formats.lines.BLOCK_BYTES", 4000)  # many blocks
    plain = make_run(tmp_path / "plain", [*ROWS, "{torn", ROWS[0]])
    path = make_run(tmp_path, [*ROWS, "{torn", ROWS[0]], compress=compress)
    found = opened(path)
    assert told(found) == told(opened(plain))
    for row in (59, 0, 31, 30, 59):
        assert json.loads(found.row_bytes(row)) == ROWS[row]
    spy = Spy()
    assert opened(path, spy).row_bytes(17) == joined(ROWS).splitlines()[17]
    assert not spy.was_asked
    with path.open("ab") as file:
        file.write(packed(joined([make_row(99)]), compress))  # a second member, a second frame
    assert opened(path, spy).n_rows == 62
    assert spy.streams == 1
    assert not strays(path)


def test_a_file_compressed_in_place_standard_input_and_a_pipe_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, ROWS)
    first = told(opened(path))
    path.write_bytes(packed(path.read_bytes(), "gz"))
    assert told(opened(path)) == first
    path.write_bytes(joined(ROWS))
    assert told(opened(path)) == first
    assert not strays(path)
    cache.clean()

    class Input:
        buffer = io.BytesIO(path.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input())
    found = opened(Path("-"))
    assert told(found) == first
    assert cache.size() == (0, 0)
    assert (found.path, found.manifest.size) == (Path("-"), 0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    spy = Spy()

    def write() -> None:
        for _ in range(2):  # the reader may look at the first bytes before it reads
            try:
                pipe.write_bytes(joined(ROWS))
            except BrokenPipeError:
                continue

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    found = opened(pipe, spy)
    assert spy.streams == 1
    assert found.n_rows
    assert cache.size() == (0, 0)


# -- the quick way to a task -----------------------------------------------------------------------


def both_ways(blade: Blade, monkeypatch: pytest.MonkeyPatch, path: Path, task: str) -> None:
    """`blade show` says the same with and without the quick way."""
    quickly = blade("show", "--json", path, task)
    with monkeypatch.context() as patch:
        patch.setattr(task_rows, "places", lambda *_: None)
        thoroughly = blade("show", "--json", path, task)
    assert quickly == thoroughly


@pytest.mark.parametrize("faults", cases(__file__, "faults that both ways show"), ids="+".join)
def test_both_ways_show_the_same(faults: list[str], tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = write_run(tmp_path, n_tasks=4, repeats=3, faults=faults)
    opened(planted.path)
    for task in sorted(planted.rows)[:2]:
        for wanted in (f"{task}", f"{task}/2", f"{task}/7"):
            both_ways(blade, monkeypatch, planted.path, wanted)


def test_the_quick_way_is_taken_also_for_numbers_that_look_alike_in_bytes(tmp_path: Path) -> None:
    planted = write_run(tmp_path, n_tasks=4, repeats=3, faults=("retried_attempt:2",))
    opened(planted.path)
    for task in range(4):
        places = task_rows.places(planted.path, task)
        assert places is not None
        assert [place.repeat for place in places] == [0, 1, 2]
        rows = [json.loads(task_rows.row_bytes(planted.path, place)) for place in places]
        assert {row["_ng_task_index"] for row in rows} == {task}
        lines = planted.path.read_bytes().split(b"\n")
        assert [json.loads(lines[place.line - 1]) for place in places] == rows
        for row, place in zip(rows, places, strict=True):
            key = (task, place.repeat)
            attempts = [other.get("_ng_attempt_index", 0) for other in map(json.loads, filter(None, lines))
                        if (other["_ng_task_index"], other["_ng_rollout_index"]) == key]  # fmt: skip
            assert row.get("_ng_attempt_index", 0) == place.attempt == max(attempts)
    assert task_rows.places(planted.path, 99) == []
    assert task_rows.places(planted.path, 1 << 70) == []
    tasks = [0, 1, 255, 256, 257, 65536, 1 << 40, 0, 256]
    path = make_run(tmp_path / "alike", [make_row(task, at) for at, task in enumerate(tasks)])
    opened(path)
    for task in set(tasks):
        found = task_rows.places(path, task)
        assert found is not None
        assert [place.repeat for place in found] == [at for at, other in enumerate(tasks) if other == task]


@pytest.mark.parametrize(
    "row",
    [
        make_row("a"), make_row(None), make_row(0, None), make_row(0, -1), make_row(0, "x"),
        make_row(3, agent_ref={"name": "other"}), "{broken",
    ],
    ids=["text index", "no index", "no repeat", "negative repeat", "text repeat", "two agents", "bad line"],
)  # fmt: skip
@pytest.mark.parametrize("appended", [False, True], ids=["one part", "two parts"])
def test_an_odd_row_anywhere(row: object, appended: bool, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, [make_row(task, repeat) for task in range(3) for repeat in range(2)])
    if appended:
        opened(path)
    with path.open("ab") as file:
        file.write(joined([row]))
    found = opened(path)
    assert len(found.manifest.parts) == 1 + appended
    for wanted in ("0", "0/1", "2", "3/0"):
        both_ways(blade, monkeypatch, path, wanted)


def test_a_file_that_is_not_as_it_was_indexed(tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, [make_row(0), make_row(1)])
    assert task_rows.places(path, 0) is None  # not indexed
    opened(path)
    assert task_rows.places(path, 0)
    with path.open("ab") as file:
        file.write(joined([make_row(2)]))
    assert task_rows.places(path, 0) is None
    both_ways(blade, monkeypatch, path, "2/0")


def test_the_quick_way_loads_the_standard_library_alone() -> None:
    program = (
        "import sys; from blade.tables import task_rows; "
        "print({name.partition('.')[0] for name in sys.modules} & {'numpy', 'msgspec', 'xxhash', 'zstandard'})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
