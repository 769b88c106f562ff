"""Where the cache is, how large it is, what empties it, and the digests and conclusions that are kept there."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blade.tables import cache as kept
from blade.tables import index
from tests.builders import make_row, make_run
from tests.conftest import Blade, Listener
from tests.tables.watching import GYM, files_of, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", [make_row(n) for n in range(3)])


def test_the_named_cache_folder_is_used(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blade: Blade) -> None:
    folder = tmp_path / "here" / "it" / "is"
    monkeypatch.setenv("BLADE_CACHE_DIR", str(folder))
    before = set(path.parent.iterdir())
    index.sha256_of(path)
    assert blade("diagnose", path).code == 0
    assert set(path.parent.iterdir()) == before, "nothing is written beside the source"
    assert [entry.name for entry in folder.iterdir()] == ["indexes"]
    assert files_of(path) == {"lock", "manifest.json", "part", "sha256.json", "summary.kept", "rows.kept"}


def test_without_a_name_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BLADE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept.root() == tmp_path / "blade"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept.root() == tmp_path / ".cache" / "blade"
    monkeypatch.setenv("BLADE_CACHE_DIR", "~/mine")
    assert kept.root() == tmp_path / "mine"


def test_doctor_shows_the_size_of_the_cache(path: Path, cache: Path, blade: Blade) -> None:
    empty = json.loads(blade("doctor", "--json").out)
    assert (empty["cache_bytes"], empty["cache_indexes"]) == (0, 0)
    opened(path)
    found = json.loads(blade("doctor", "--json").out)
    real = sum(entry.stat().st_size for entry in cache.rglob("*") if entry.is_file())
    assert (found["cache_bytes"], found["cache_indexes"]) == (real, 1)
    assert found["cache"] == str(cache)
    assert str(cache) in blade("doctor").out


def test_doctor_empties_the_cache_and_nothing_else(path: Path, cache: Path, blade: Blade) -> None:
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


def test_doctor_removes_its_own_empty_folder(path: Path, cache: Path, blade: Blade) -> None:
    opened(path)
    assert "Freed" in blade("doctor", "--clean").out
    assert not list(cache.iterdir())
    assert blade("doctor", "--clean").code == 0


def test_an_index_that_is_being_written_is_left_alone(path: Path, cache: Path) -> None:
    opened(path)
    with (kept.folder_for(path) / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert kept.clean() == (0, 0)
        assert kept.size()[1] == 1
    assert kept.clean()[1] == 1


def test_a_folder_that_is_emptied_while_one_waits_for_it(path: Path, cache: Path) -> None:
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


def test_a_digest_is_computed_once(path: Path, cache: Path) -> None:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert index.sha256_of(path) == digest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("read again"))
        assert index.sha256_of(path) == digest
    stat = path.stat()
    path.write_bytes(data.swapcase())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # setting the time back does not hide an edit
    assert index.sha256_of(path) == hashlib.sha256(data.swapcase()).hexdigest()
    path.write_bytes(data + b"\n")
    assert index.sha256_of(path) == hashlib.sha256(data + b"\n").hexdigest()


def test_a_damaged_digest_is_computed_again(path: Path, cache: Path) -> None:
    digest = index.sha256_of(path)
    for text in ("", "null", "[1]", "[1, 2, 3]", "{", "\x00"):
        (kept.folder_for(path) / "sha256.json").write_text(text)
        assert index.sha256_of(path) == digest


def test_a_digest_needs_no_cache(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(path / "below a file"))
    assert index.sha256_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()


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
