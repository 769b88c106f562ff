"""A cache that cannot be written costs time and a note, never the answer."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from blade.errors import Unreadable
from blade.tables import cache, index
from tests.builders import make_row, make_run
from tests.conftest import Blade, Listener
from tests.tables.watching import GYM, Spy, in_pieces, mounted, opened, told, told_anew
from tools.planted import write_light

ROWS = [make_row(n, note=f"note {n}") for n in range(5)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", ROWS)


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
        monkeypatch.setattr(cache, "scratch", lambda: str(disk))
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


def test_a_cache_below_a_file(path: Path, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    check_temporary(path, scratch, "Not a directory")
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "file"))
    check_temporary(path, scratch, "")


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


def test_a_user_without_a_home(path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(self: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("BLADE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert opened(path).n_rows == 5
    assert [entry.name for entry in scratch.iterdir()] == [f"blade-cache-{os.getuid()}"]
