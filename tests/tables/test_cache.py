"""Where the cache is, what empties it, what is kept there; one that cannot be written costs time, never the answer."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade.errors import Unreadable
from blade.tables import cache as kept
from blade.tables import index
from tests.builders import make_row, make_run
from tests.conftest import Blade, Listener
from tests.tables.watching import GYM, Spy, files_of, in_pieces, mounted, opened, told, told_anew
from tools.planted import write_light

ROWS = [make_row(n, note=f"note {n}") for n in range(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", ROWS)


def test_the_named_cache_folder_is_used_or_else_the_users(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blade: Blade) -> None:
    folder = tmp_path / "here" / "it" / "is"
    monkeypatch.setenv("BLADE_CACHE_DIR", str(folder))
    before = set(path.parent.iterdir())
    index.sha256_of(path)
    assert blade("diagnose", path).code == 0
    assert set(path.parent.iterdir()) == before, "nothing is written beside the source"
    assert [entry.name for entry in folder.iterdir()] == ["indexes"]
    assert files_of(path) == {"lock", "manifest.json", "part", "sha256.json", "summary.kept", "rows.kept"}
    monkeypatch.delenv("BLADE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept.root() == tmp_path / "blade"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept.root() == tmp_path / ".cache" / "blade"
    monkeypatch.setenv("BLADE_CACHE_DIR", "~/mine")
    assert kept.root() == tmp_path / "mine"


def test_doctor_shows_the_size_of_the_cache_and_empties_it_and_nothing_else(path: Path, cache: Path, blade: Blade) -> None:
    empty = json.loads(blade("doctor", "--json").out)
    assert (empty["cache_bytes"], empty["cache_indexes"]) == (0, 0)
    opened(path)
    found = json.loads(blade("doctor", "--json").out)
    real = sum(entry.stat().st_size for entry in cache.rglob("*") if entry.is_file())
    assert (found["cache_bytes"], found["cache_indexes"]) == (real, 1)
    assert found["cache"] == str(cache)
    assert str(cache) in blade("doctor").out
    assert "Freed" in blade("doctor", "--clean").out
    assert not list(cache.iterdir())  # its own empty folder too
    assert blade("doctor", "--clean").code == 0
    opened(path)
    size = kept.size()[0]
    foreign = [cache / "mine.txt", cache / "indexes" / "mine.txt", cache / "indexes" / "my-indexes" / "a.txt"]
    for file in foreign:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    away = cache.parent / "away"
    away.mkdir(exist_ok=True)
    (cache / "indexes" / ("0" * 24)).symlink_to(away)
    said = json.loads(blade("doctor", "--clean", "--json").out)
    assert (said["freed_bytes"], said["freed_indexes"]) == (size, 1)
    assert all(file.exists() for file in foreign)
    assert away.is_dir()
    assert kept.size() == (0, 0)
    assert path.exists()
    assert opened(path).n_rows == 3


def test_an_index_that_is_being_written_is_left_alone_and_may_be_emptied_while_one_waits_for_it(path: Path, cache: Path) -> None:
    opened(path)
    with (kept.folder_for(path) / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert kept.clean() == (0, 0)
        assert kept.size()[1] == 1
    assert kept.clean()[1] == 1
    opened(path)
    path.write_bytes(path.read_bytes() * 2)
    folder = kept.folder_for(path)
    lock = os.open(folder / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)

    class Waiting(Listener):
        def notice(self, text: str) -> None:
            super().notice(text)
            for entry in folder.iterdir():
                entry.unlink()
            folder.rmdir()
            os.close(lock)

    watcher = Waiting()
    assert index.open_index(path, GYM, watcher).n_rows == 6
    assert len(watcher.notes) == 1
    assert files_of(path) == {"lock", "manifest.json", "part"}


# ---- Digests -------------------------------------------------------------------------------------


def test_a_digest_is_computed_once_and_needs_no_cache(path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert index.sha256_of(path) == digest
    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("read again"))
        assert index.sha256_of(path) == digest
    stat = path.stat()
    path.write_bytes(data.swapcase())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # setting the time back does not hide an edit
    assert index.sha256_of(path) == hashlib.sha256(data.swapcase()).hexdigest()
    path.write_bytes(data)
    for text in ("", "null", "[1]", "[1, 2, 3]", "{", "\x00"):
        (kept.folder_for(path) / "sha256.json").write_text(text)
        assert index.sha256_of(path) == digest  # damage is noticed
    monkeypatch.setenv("BLADE_CACHE_DIR", str(path / "below a file"))
    assert index.sha256_of(path) == digest


# ---- Conclusions ---------------------------------------------------------------------------------


def spoil(path: Path) -> None:
    """Leave a mark in what is kept, to see whether it is used."""
    summary = kept.folder_for(path) / "summary.kept"
    content = kept.unsealed(summary.read_bytes())
    assert b" passed (" in content
    summary.write_bytes(kept.sealed(content.replace(b" passed (", b" Kept! (")))


CHANGES: dict[str, Callable[[Path], object]] = {
    "row": lambda path: path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n"),
    "threshold": lambda path: None,
    "toml": lambda path: (path.parent / "blade.toml").write_text('name = "desk"\n'),
    "notes": lambda path: (path.parent / "notes.md").write_text("a remark\n"),
    "sidecar": lambda path: (path.parent / f"{path.stem}_failures.jsonl").write_text(""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_kept_summary_is_used_until_something_changes(path: Path, blade: Blade, change: str) -> None:
    first = blade("diagnose", path).out
    (kept.folder_for(path) / "summary.kept").write_text('{"key": 3')
    assert blade("diagnose", path).out == first  # damage is noticed
    spoil(path)
    assert "Kept!" in blade("diagnose", path).out
    CHANGES[change](path)
    said = blade("diagnose", path, *(["--pass-threshold", "0.5"] if change == "threshold" else []))
    assert said.code == 0
    assert "Kept!" not in said.out


def test_a_full_cache_drops_what_others_used_and_never_what_is_in_use(
    tmp_path: Path, blade: Blade, blade_process: Callable[..., subprocess.CompletedProcess[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_run(tmp_path / "other", [make_row(task) for task in range(8)])
    blade_process("diagnose", other, "--quick")
    for name, score in (("one", 0.0), ("two", 1.0), ("three", 1.0)):
        make_run(tmp_path / "three" / name, [make_row(task, 0, score) for task in range(8)])
    monkeypatch.setenv("BLADE_CACHE_MAX_MB", "0")
    query = "select run, avg(reward) reward from rollouts group by run order by reward"
    rows = json.loads(blade("query", *sorted((tmp_path / "three").iterdir()), query, "--json").out)
    assert [row["reward"] for row in rows] == [0.0, 1.0, 1.0]
    assert not kept.folder_for(other).exists()


# -- no room ---------------------------------------------------------------------------------------

@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def check_temporary(path: Path, scratch: Path, reason: str) -> None:
    watcher = Listener()
    found = index.open_index(path, GYM, watcher)
    (note,) = watcher.notes
    assert "cannot be written" in note
    assert reason in note
    assert "using a temporary index" in note
    assert found.n_rows == path.read_bytes().count(b"\n")
    assert found.row_bytes(0) == path.read_bytes().split(b"\n")[0]
    assert not list(scratch.iterdir())  # it is gone from the disk and can still be read
    assert found.field(found.fields()[0]).kind.any()


def test_a_full_disk_means_a_temporary_index_and_full_ones_everywhere_an_error_with_a_hint(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, blade: Blade
) -> None:
    path = tmp_path / "light.jsonl"
    write_light(path, 5000)
    with mounted(tmp_path / "disk", "size=256k") as disk:
        monkeypatch.setenv("BLADE_CACHE_DIR", str(disk))
        check_temporary(path, scratch, "No space left")
        (folder,) = (disk / "indexes").iterdir()
        assert [entry.name for entry in folder.iterdir()] == ["lock"]
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        said = blade("diagnose", "--json", path)
        assert (said.code, said.error["slug"]) == (4, "no-space")
        assert "BLADE_CACHE_DIR" in said.error["hint"]
        assert not [entry for entry in disk.rglob("*") if entry.name.startswith(("part", "blade", ".tmp"))]


@pytest.mark.parametrize("query", ["count", "select count(*) as n from steps"])
def test_a_query_on_a_full_disk_is_answered(
    query: str, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, blade: Blade
) -> None:
    path = tmp_path / "light.jsonl"
    write_light(path, 3000)
    expected = blade("query", path, query).out
    with mounted(tmp_path / "disk", "size=400k") as disk:
        monkeypatch.setenv("BLADE_CACHE_DIR", str(disk))
        said = blade("query", path, query)
        assert (said.code, said.out) == (0, expected)
        assert "using temporary tables" in said.err
        assert not list(disk.rglob("*.duckdb"))
        monkeypatch.setattr(kept, "scratch", lambda: str(disk))
        said = blade("query", path, query, "--pass-threshold", 0.5)
        assert (said.code, "no-space" in said.err) == (4, True)


def fill(folder: Path, which: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every new file of a folder fail whose name begins like that."""
    usual = tempfile.mkstemp

    def full(*args: Any, **options: Any) -> Any:
        if Path(options["dir"]).is_relative_to(folder) and options["prefix"].startswith(which):
            raise OSError(code, os.strerror(code))
        return usual(*args, **options)

    monkeypatch.setattr(tempfile, "mkstemp", full)


@pytest.mark.parametrize("which", ["part", "blocks", ".tmp"])
@pytest.mark.parametrize("compress", [None, "gz"])
def test_a_write_that_fails_anywhere(
    which: str, compress: str | None, tmp_path: Path, cache: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_run(tmp_path / "run", ROWS, compress=compress)
    expected = told_anew(path, tmp_path / "other", monkeypatch)
    fill(cache, which, errno.ENOSPC, monkeypatch)
    watcher = Listener()
    found = told(index.open_index(path, GYM, watcher))
    assert found == expected
    assert len(watcher.notes) == (which != "blocks" or compress is not None)


def test_a_write_that_fails_in_a_worker(tmp_path: Path, cache: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "light.jsonl"
    write_light(path, 3000)
    in_pieces(monkeypatch, 1, 100_000, 2)
    fill(cache, "", errno.EDQUOT, monkeypatch)
    check_temporary(path, scratch, os.strerror(errno.EDQUOT))


@pytest.mark.parametrize("is_pipe", [False, True])
def test_no_temporary_folder_either(path: Path, is_pipe: bool, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    if not is_pipe:
        monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(Unreadable, match="no room to index") as error:
        index.open_index(Path("-") if is_pipe else path, GYM, Listener())
    assert (error.value.slug, error.value.exit_code) == ("no-space", 4)


def test_a_cache_below_a_file_and_a_user_without_a_home(path: Path, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    check_temporary(path, scratch, "Not a directory")
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "file"))
    check_temporary(path, scratch, "")
    def homeless(self: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("BLADE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert opened(path).n_rows == 3
    assert [entry.name for entry in scratch.iterdir()] == [f"blade-cache-{os.getuid()}"]


def test_an_index_and_a_source_on_a_read_only_disk_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blade: Blade) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        path, cached = make_run(disk / "run", ROWS), make_run(tmp_path / "cached", ROWS)
        with monkeypatch.context() as patch:
            patch.setenv("BLADE_CACHE_DIR", str(disk))
            expected = told(opened(cached))
            assert os.system(f"mount -o remount,ro {disk}") == 0
            spy = Spy()
            assert told(opened(cached, spy)) == expected
            assert not spy.was_asked
        assert blade("diagnose", disk / "run").code == 0
        assert blade("show", path, "0/0").code == 0
