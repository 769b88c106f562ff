"""What the tests of the sanitiser share: a key of their own, values to plant, and folders that are cleaned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from blade import sanitize
from blade.cli.main import cli
from blade.sanitize import Key, Removed

KEY = Key(b"a key for tests, of some length")
GITHUB = "ghp_" + "a1B2c3D4e5F6" * 3
MAIL = "mara.quint@initech.io"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", KEY.secret.decode())
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)), input=stdin)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def exported(folder: Path, files: dict[str, Any]) -> tuple[Removed, dict[str, bytes]]:
    """Clean the files of a folder; what was removed, which a mere look finds too, and what was written."""
    source, target = folder / "in", folder / "out"
    source.mkdir()
    for name, content in files.items():
        (source / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    removed = sanitize.folder(source, target)
    assert removed.leaks == 0
    found = sanitize.files.looked(source.iterdir())
    assert (found.kinds, found.total) == (removed.kinds, removed.total)
    return removed, contents(target)
