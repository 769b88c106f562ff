"""The benchmarks run to their end and print the table; what they measure is not judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.bench.__main__ import main


@pytest.mark.slow
def test_the_table_is_printed(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tools.bench", "--size-mb", "1", "--runs", "1", "--json", str(tmp_path / "lines.json")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    lines = json.loads((tmp_path / "lines.json").read_text())
    for line in lines:
        assert line["what"] in done.stdout
    budgets = [line["budget"] for line in lines if line["budget"]]
    assert budgets[:8:2] == ["<= 1.65 x", "<= 1.95 x", "<= 1.65 x", "<= 0.9 x"]
    assert len(budgets) == 27
    assert [path.name for path in tmp_path.iterdir()] == ["lines.json"]  # all files are gone


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--size-mb", "1000000000"])
    assert main() == 2
    assert "MB free; the files need" in capsys.readouterr().err
