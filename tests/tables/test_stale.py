"""Whatever happened to a file, its index or what was concluded of it, the score is that of the rows that lie there now."""

from __future__ import annotations

import gzip
import io
import json
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blade import load
from blade.errors import Unreadable
from blade.formats import single_rows
from blade.model import Part
from blade.tables import cache, index, task_rows
from tests.builders import joined, make_row, make_run, packed
from tests.conftest import TICK_NS, Blade, Listener
from tests.tables.watching import Spy, opened, strays, told, told_anew
from tools.planted import write_run

pytestmark = pytest.mark.usefixtures("cache")

N = 40
LOST, WON = ([make_row(n, 0, reward, note="x" * 9000) for n in range(N)] for reward in (0.0, 1.0))
OLD = joined(LOST)  # longer than what is compared at both ends
HALF = joined([*LOST[:10], *WON[10:30], *LOST[30:]])  # of the same length, with other rewards in its middle
assert len(OLD) == len(HALF)


def write_in_place(path: Path, data: bytes) -> None:
    """Change the content of a file: the inode stays, and so does the time of the last change."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.truncate(path, len(data))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def put_beside(path: Path, data: bytes) -> None:
    """Put another file in the place of a file, with the old time."""
    other = path.with_name("other")
    other.write_bytes(data)
    os.utime(other, ns=(1, path.stat().st_mtime_ns))
    os.replace(other, path)


def swap_files(path: Path) -> None:
    other = path.with_name("other.jsonl")
    other.write_bytes(HALF)
    os.utime(other, ns=(1, path.stat().st_mtime_ns))
    opened(other)
    os.replace(path, path.with_name("first"))
    os.replace(other, path)
    os.replace(path.with_name("first"), other)


def swap_folders(path: Path) -> None:
    other = path.parent.with_name("other")
    other.mkdir()
    (other / path.name).write_bytes(HALF)
    os.utime(other / path.name, ns=(1, path.stat().st_mtime_ns))
    os.replace(path.parent, path.parent.with_name("first"))
    os.replace(other, path.parent)


CHANGES: dict[str, tuple[Callable[[Path], None], float]] = {
    "middle, same size and time": (lambda path: write_in_place(path, HALF), 20 / N),
    "middle, then appended to": (lambda path: write_in_place(path, HALF + joined([make_row(N)])), 21 / (N + 1)),
    "cut, then as long as before": (lambda path: write_in_place(path, joined(LOST[:20] + WON[20:])), 20 / N),
    "cut, then longer": (lambda path: write_in_place(path, joined([*LOST[:20], *WON[20:], make_row(N)])), 21 / (N + 1)),
    "cut": (lambda path: os.truncate(path, len(joined(LOST[:20]))), 0.0),
    "another file, same size and time": (lambda path: put_beside(path, HALF), 20 / N),
    "another file that begins alike": (lambda path: put_beside(path, OLD + joined([make_row(N)])), 1 / (N + 1)),
    "two files swapped": (swap_files, 20 / N),
    "two folders swapped": (swap_folders, 20 / N),
    "the clock set back": (lambda path: (path.write_bytes(HALF), os.utime(path, ns=(1, 1)))[0], 20 / N),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_score_of_rows_that_are_gone_is_printed(change: str, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run" / "long.jsonl"
    path.parent.mkdir()
    path.write_bytes(OLD)
    assert " 0% passed" in blade("diagnose", path).out
    assert json.loads(blade("query", path, "rate", "--json").out)["value"] == 0
    alter, rate = CHANGES[change]
    alter(path)
    assert json.loads(blade("query", path, "rate", "--json").out)["value"] == rate
    assert (f" {100 * rate:.1f}% passed" if rate else " 0% passed") in blade("diagnose", path).out
    assert told(opened(path)) == told_anew(path, tmp_path / "anew", monkeypatch)


def test_one_of_several_shards_with_the_same_size_and_time(tmp_path: Path, blade: Blade) -> None:
    for number in range(2):
        make_run(tmp_path, LOST[20 * number : 20 * number + 20], name=f"run-shard{number}")
    assert " 0% passed" in blade("diagnose", tmp_path).out
    write_in_place(tmp_path / "run-shard1.jsonl", joined(WON[20:]))
    assert "50.0% passed" in blade("diagnose", tmp_path).out
    assert json.loads(blade("query", tmp_path, "rate", "--json").out)["value"] == 0.5


@pytest.mark.parametrize("compress", ["gz", "zst"])
def test_a_member_of_a_compressed_file_with_the_same_size_and_time(tmp_path: Path, compress: str, blade: Blade) -> None:
    def members(*rows: list[Any]) -> bytes:
        stored = (lambda data: gzip.compress(data, 0, mtime=0)) if compress == "gz" else (lambda data: packed(data, "zst"))
        return b"".join(stored(joined(some)) for some in rows)

    path = tmp_path / f"run.jsonl.{compress}"
    path.write_bytes(members(LOST[:20], LOST[20:]))
    assert " 0% passed" in blade("diagnose", path).out
    write_in_place(path, members(LOST[:20], WON[20:]))
    assert "50.0% passed" in blade("diagnose", path).out


def test_a_sidecar_with_the_same_size_and_time(tmp_path: Path, blade: Blade) -> None:
    path = make_run(tmp_path, [make_row(n, 0, 0.5) for n in range(4)])
    (tmp_path / "blade.toml").write_text("pass_threshold = 0.9\n")
    assert " 0% passed" in blade("diagnose", path).out
    write_in_place(tmp_path / "blade.toml", b"pass_threshold = 0.4\n")
    assert "100% passed" in blade("diagnose", path).out


# -- what is proved is not read again -------------------------------------------------------------


@pytest.mark.parametrize("n_parts", [1, 4])
def test_parts_before_a_change_still_hold(n_parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)
    monkeypatch.setattr(index, "_PARALLEL_BYTES", len(OLD) // n_parts)
    monkeypatch.setattr(index, "_CHUNK_BYTES", len(OLD) // n_parts)
    opened(path)
    monkeypatch.setattr(index, "_PARALLEL_BYTES", 2 * len(OLD))  # what is read again is read here, where it is seen
    write_in_place(path, joined(LOST[:25] + WON[25:]))
    spy = Spy()
    assert told(opened(path, spy)) == told_anew(path, tmp_path / "anew", monkeypatch)
    ((start, end),) = spy.ranges
    assert (start == 0) == (n_parts == 1)
    assert start <= len(joined(LOST[:25]))
    assert end == len(OLD)
    assert not strays(path)


@pytest.mark.parametrize("how", ["touched", "moved"])
def test_the_same_lines_under_another_time_or_inode_are_not_read_again(how: str, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)
    before = told(opened(path))
    os.utime(path, ns=(1, 1)) if how == "touched" else put_beside(path, OLD)
    spy = Spy()
    assert told(opened(path, spy)) == before
    assert not spy.was_asked


# -- changes while a file is read -----------------------------------------------------------------


def test_a_file_that_was_changed_while_it_was_read_is_read_again(tmp_path: Path) -> None:
    """The proof is of the lines that were read, not of those that lie there when it is taken."""
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)

    class Changing(Spy):
        def plain_parts(self, path: Path, start: int, end: int) -> Iterator[Part]:
            for part in super().plain_parts(path, start, end):
                write_in_place(path, HALF + joined([make_row(N)]))
                yield part

    opened(path, Changing())
    assert opened(path).numbers("reward").tolist() == [0.0] * 10 + [1.0] * 20 + [0.0] * 10 + [1.0]


def test_a_conclusion_belongs_to_the_file_that_was_read(tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)

    def open_and_change(*given: Any) -> Any:
        found = open_index(*given)
        write_in_place(path, HALF)
        return found

    open_index = index.open_index
    with monkeypatch.context() as patch:
        patch.setattr(index, "open_index", open_and_change)
        blade("diagnose", path)
        blade("query", path, "rate")
    assert "50.0% passed" in blade("diagnose", path).out
    assert json.loads(blade("query", path, "rate", "--json").out)["value"] == 0.5


def test_a_change_within_a_tick_of_the_clock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "TICK_NS", TICK_NS)
    monkeypatch.setattr(cache, "WHOLE", 0)  # as of a file that is too large to be hashed whole
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)
    stamp = opened(path).manifest.stamp
    assert time.time_ns() - stamp[2] >= TICK_NS
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    second = time.time_ns() // 10**9 * 10**9
    monkeypatch.setattr(cache, "stamp_of", lambda path: (len(OLD), second, second, 1, ""))  # a file system that counts seconds
    assert opened(path).manifest.stamp[1:] == (0, 0, 0, "")  # never taken for the same
    assert 0.9 < waits[0] <= 2


def test_h3_an_edit_that_moves_no_time_is_seen(tmp_path: Path, blade: Blade) -> None:
    """Pages of a mapping that are dirty already are changed without a new time."""
    path = tmp_path / "long.jsonl"
    path.write_bytes(joined([{**make_row(n), "reward": 0.0, "note": "x" * 9000} for n in range(40)]))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        for place in range(0, len(pages), mmap.PAGESIZE):
            pages[place] = pages[place]
        before = path.stat()
        asked = [("diagnose", path), ("query", path, "rate", "--json"), ("show", path, "20/0")]
        assert "0% passed" in blade(*asked[0]).out
        place = -1
        for _ in range(25):
            place = pages.find(b'"reward":0.0', place + 1)
            pages[place : place + 12] = b'"reward":1.0'
        after = path.stat()
        assert (after.st_size, after.st_mtime_ns, after.st_ctime_ns) == (before.st_size, before.st_mtime_ns, before.st_ctime_ns)
        assert "62.5% passed" in blade(*asked[0]).out
        assert json.loads(blade(*asked[1]).out)["value"] == 0.625
        assert "passed" in blade(*asked[2]).out.splitlines()[0]


def test_what_a_row_was_found_to_be_is_forgotten_with_the_facts_it_rests_on(tmp_path: Path, blade: Blade) -> None:
    codes = '[[codes]]\nfield = "code"\nequals = 7\ncause = "{}"\nmode = "bench broken"\n'
    path = make_run(tmp_path, [{**make_row(task, 0, float(task % 2)), "code": 7 - task % 2} for task in range(20)])
    toml = tmp_path / "blade.toml"
    toml.write_text(codes.format("TI"), encoding="utf-8")
    blade("diagnose", path)
    assert "Diagnosed: bench broken (TI)" in blade("show", path, "0/0").out
    toml.write_text(codes.format("KG"), encoding="utf-8")
    assert "Diagnosed" not in blade("show", path, "0/0").out
    toml.unlink()
    blade("diagnose", path)
    said = blade("show", path, "0/0").out
    toml.write_text(codes.format("KG"), encoding="utf-8")
    assert "Diagnosed" in said
    assert "Diagnosed" not in blade("show", path, "0/0").out


CHANGED = [("task_index", "3/0", np.flip), ("repeat", "1/1", np.flip), ("offset", "3/0", lambda offsets: offsets ^ 3)]


@pytest.mark.parametrize(("column", "shown", "change"), CHANGED)
def test_rows_of_a_damaged_index_are_not_shown_as_those_of_another_key(
    column: str, shown: str, change: Any, tmp_path: Path, blade: Blade
) -> None:
    path = make_run(tmp_path, [make_row(task, repeat, float(task == 4 or repeat)) for task in range(8) for repeat in range(2)])
    blade("health", path)
    before = blade("show", path, shown).out.splitlines()[:3]
    part = file_of(path, "part-")
    header, _, data = part.read_bytes().partition(b"\n")
    _, start, size = json.loads(header)[column]
    altered = change(np.frombuffer(data[start : start + size], np.int64)).tobytes()
    part.write_bytes(header + b"\n" + data[:start] + altered + data[start + size :])
    assert column != "offset" or task_rows.places(path, 3) is None  # a row starts and ends with a line
    assert blade("show", path, shown).out.splitlines()[:3] == before


@pytest.mark.parametrize("toml", ["pass_threshold = 0.4\nx = [", "pass_threshold = true", 'pass_threshold = "0.4"', "name = 3", "nonsense = 1"])
def test_a_benchmark_file_that_cannot_be_read_is_refused_by_show_as_by_diagnose(toml: str, tmp_path: Path, blade: Blade) -> None:
    path = make_run(tmp_path, [make_row(task, 0, 0.5) for task in range(8)])
    blade("health", path)
    (tmp_path / "blade.toml").write_text(toml, encoding="utf-8")
    told, shown = (blade(*words) for words in (("diagnose", path), ("show", path, "3/0")))
    assert (shown.code, shown.err.splitlines()[:1], shown.out) == (told.code, told.err.splitlines()[:1], "")
    assert told.code != 0


RUNS = "select run, avg(reward) reward from rollouts group by run order by run"


@pytest.mark.parametrize("source", ["two agents", "two files"])
def test_runs_whose_names_begin_alike_have_tables_of_their_own(
    source: str, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the tables cannot be kept: of standard input, and where the cache cannot be written."""
    names = ("experiment_number_one", "experiment_number_two")
    if source == "two agents":
        agents = [{"agent_ref": {"name": name}} for name in names]
        rows = [{**make_row(task, 0, float(agent)), **agents[agent]} for task in range(8) for agent in range(2)]
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(joined(rows))))
        given: Path | str = "-"
    else:
        monkeypatch.setenv("BLADE_CACHE_DIR", "/proc/nope")
        given = tmp_path
        for score, name in enumerate(names):
            (tmp_path / f"{name}.jsonl").write_bytes(joined([make_row(task, 0, float(score)) for task in range(8)]))
    assert [row["reward"] for row in json.loads(blade("query", given, RUNS, "--json").out)] == [0.0, 1.0]


def test_a_file_that_changes_within_a_process_is_read_again_without_a_cache(tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", "/proc/nope")
    path = tmp_path / "long.jsonl"
    for data, mean in ((OLD, 0.0), (HALF, 0.5)):
        path.write_bytes(data)
        assert json.loads(blade("query", path, RUNS, "--json").out)[0]["reward"] == mean


def test_files_of_one_name_are_mapped_one_by_one(tmp_path: Path, blade: Blade) -> None:
    for folder, score in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        rows = [{"tid": f"{folder}{task}", "score": score} for task in range(5)]
        (tmp_path / folder / "rows.jsonl").write_bytes(joined(rows))
    said = blade("diagnose", str(tmp_path / "*" / "rows.jsonl"), "--map", "reward=score,task=tid").out
    assert "50.0% passed (5 of 10" in " ".join(said.split())


def test_readers_that_come_together_see_the_whole_of_one_state(tmp_path: Path) -> None:
    """A reader opens an index while another process puts a new one in its place."""
    path = tmp_path / "long.jsonl"
    for data in (OLD, HALF) * 3:
        path.write_bytes(data)
        first, second = opened(path), index.open_index(path, Spy(), Listener())
        assert told(first) == told(second)


MEANWHILE = {"replaced": put_beside, "rewritten": write_in_place, "cut": lambda path, _: os.truncate(path, 100_000), "removed": lambda path, _: path.unlink()}


@pytest.mark.parametrize("words", ["diagnose", "query"])
@pytest.mark.parametrize("change", [*MEANWHILE, "extended"])
def test_a_run_that_changes_while_its_rows_are_read_is_refused(
    change: str, words: str, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)
    traced = single_rows.traced

    def meanwhile(run: Any, position: int) -> Any:
        if position == 7 and change == "extended":
            path.write_bytes(OLD + joined([make_row(99, 0, 1.0)]))
        elif position == 7:
            MEANWHILE[change](path, HALF)
        return traced(run, position)

    monkeypatch.setattr(single_rows, "traced", meanwhile)
    said = blade("diagnose", path) if words == "diagnose" else blade("query", path, "select max(step) from steps")
    assert said.code == (0 if change == "extended" else 4), said.err
    assert "0% passed" in said.out if (words, change) == ("diagnose", "extended") else "0% passed" not in said.out
    assert change in ("extended", "removed") or "changed while it was read" in said.err
    monkeypatch.undo()
    if change not in ("cut", "removed"):
        fresh = blade("diagnose", path).out
        assert ("2.4% passed" if change == "extended" else "50.0% passed") in fresh


@pytest.mark.parametrize("change", MEANWHILE)
def test_a_loaded_run_mixes_no_rows_of_two_times(change: str, tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(OLD)
    for ask in (lambda run: run.report(), lambda run: run.rollout("12", 0), lambda run: run.dossier("12")):
        path.write_bytes(OLD)
        run = load(path)
        MEANWHILE[change](path, HALF)
        with pytest.raises(Unreadable):
            ask(run)


# -- damage ---------------------------------------------------------------------------------------

Damage = Callable[[Path], object]


def make(folder: Path, compress: str | None = None) -> Path:
    return write_run(folder, n_tasks=6, sidecars=False, compress=compress).path


def file_of(path: Path, name: str) -> Path:
    """A file of the index."""
    (found,) = cache.folder_for(path).glob(f"{name}*")
    return found


def assert_rebuilt(path: Path, expected: object) -> None:
    for is_damaged in (True, False):
        spy = Spy()
        assert told(opened(path, spy)) == expected
        assert spy.was_asked == is_damaged
    assert not strays(path)


def flip(file: Path, seed: int) -> None:
    """Turn one bit over."""
    data, rng = bytearray(file.read_bytes()), random.Random(seed)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


FLIPS: dict[str, Damage] = {f"bit {seed} flipped": lambda file, seed=seed: flip(file, seed) for seed in range(3)}  # type: ignore[misc]
DAMAGE: dict[str, Damage] = {
    **FLIPS,
    "emptied": lambda file: file.write_bytes(b""),
    "halved": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "lengthened": lambda file: file.write_bytes(file.read_bytes() + b"\x00"),
    "zeroed": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "overwritten": lambda file: file.write_bytes(random.Random(1).randbytes(file.stat().st_size)),
    "gone": lambda file: file.unlink(),
    "made a folder": lambda file: (file.unlink(), file.mkdir()),
}


def flipped(file: Path) -> None:
    """One bit of a number that is printed or counted, else one in the middle."""
    data = bytearray(file.read_bytes())
    place = next((at for mark in (b"50.0%", b'"rows":40') if (at := data.find(mark)) >= 0), len(data) // 2)
    place += 7 if data[place : place + 1] == b'"' else 0
    data[place] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("which", ["manifest.json", "part-", "summary.kept", "report.kept", "tables-", "traces-"])
def test_a_damaged_file_of_the_cache_changes_no_answer(which: str, tmp_path: Path, blade: Blade, processes: None) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(HALF)
    asked = [("diagnose", path), ("queue", path, "--json")]
    asked += [("query", path, query, "--json") for query in ("rate", "select count(*) as n from steps")]
    before = [blade(*words) for words in asked]
    assert all(said.code == 0 for said in before)
    for damage in (DAMAGE["halved"], flipped, DAMAGE["zeroed"]):
        damage(file_of(path, which))
        assert [blade(*words) for words in asked] == before


NOT_OF = {"part-": (), "manifest": ("made a folder",), "blocks-": ("made a folder", *FLIPS)}  # of a block a bit is checked when it is read


@pytest.mark.parametrize(("which", "damage"), [(which, name) for which, others in NOT_OF.items() for name in DAMAGE if name not in others])
def test_a_damaged_file_is_built_anew(tmp_path: Path, which: str, damage: str) -> None:
    path = make(tmp_path, "gz")
    expected = told(opened(path))
    DAMAGE[damage](file_of(path, which))
    assert_rebuilt(path, expected)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"made_by": 1}', "[" * 100_000, '{"made_by":"\\ud800"}'])
def test_a_manifest_of_another_shape_is_built_anew(tmp_path: Path, text: str) -> None:
    path = make(tmp_path)
    expected = told(opened(path))
    for content in (text.encode(), cache.sealed(text.encode())):
        file_of(path, "manifest").write_bytes(content)
        assert task_rows.places(path, 0) is None
        assert_rebuilt(path, expected)


def test_a_flipped_bit_of_a_block_is_not_shown_as_text(tmp_path: Path) -> None:
    path = make(tmp_path, "gz")
    opened(path)
    flipped(file_of(path, "blocks-"))
    with pytest.raises(Unreadable, match="is damaged") as error:
        opened(path).row_bytes(0)
    assert "doctor --clean" in error.value.hint


@pytest.mark.parametrize("damage", [name for name in DAMAGE if name != "made a folder"])
def test_a_damaged_part_is_neither_extended_nor_shown(tmp_path: Path, blade: Blade, damage: str) -> None:
    path = make(tmp_path)
    opened(path)
    expected = blade("show", path, "3/1")
    assert expected.code == 0
    for which in ("part-", "manifest"):
        DAMAGE[damage](file_of(path, which))
        assert blade("show", path, "3/1") == expected
    DAMAGE[damage](file_of(path, "part-"))
    with path.open("ab") as file:
        file.write(joined([make_row(99)]))
    spy = Spy()
    assert opened(path, spy).n_rows == 25
    assert spy.ranges == [(0, path.stat().st_size)]
