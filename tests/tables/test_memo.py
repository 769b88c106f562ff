"""The summary of a diagnosis is kept beside the index, and never outlives what it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade.tables import cache
from tests.builders import make_row, make_run
from tests.conftest import Blade


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    return make_run(tmp_path / "run", [make_row(0, 0), make_row(0, 1, 0.0), make_row(1, 0), make_row(1, 1)])


def _spoil(path: Path) -> None:
    """Leave a mark in what is kept, to see whether it is used."""
    kept = cache.folder_for(path) / "summary.kept"
    content = cache.unsealed(kept.read_bytes())
    assert b" passed (" in content
    kept.write_bytes(cache.sealed(content.replace(b" passed (", b" Kept! (")))


def test_an_unchanged_run_is_told_from_what_was_kept(path: Path, blade: Blade) -> None:
    first = blade("diagnose", path).out
    assert blade("diagnose", path).out == first
    _spoil(path)
    assert "Kept!" in blade("diagnose", path).out


@pytest.mark.parametrize("change", ["row", "threshold", "toml", "notes", "sidecar"])
def test_any_change_makes_it_anew(path: Path, blade: Blade, change: str) -> None:
    assert blade("diagnose", path).code == 0
    _spoil(path)
    arguments = ["diagnose", path]
    if change == "row":
        with path.open("a") as file:
            file.write(path.read_text().splitlines()[0] + "\n")
    elif change == "threshold":
        arguments += ["--pass-threshold", "0.5"]
    elif change == "toml":
        (path.parent / "blade.toml").write_text('name = "desk"\n')
    elif change == "notes":
        (path.parent / "notes.md").write_text("a remark\n")
    else:
        (path.parent / f"{path.stem}_failures.jsonl").write_text("")
    said = blade(*arguments)
    assert said.code == 0
    assert "Kept!" not in said.out


def test_a_damaged_memo_is_made_anew(path: Path, blade: Blade) -> None:
    first = blade("diagnose", path).out
    (cache.folder_for(path) / "summary.kept").write_text('{"key": 3')
    assert blade("diagnose", path).out == first
