"""The page in a real browser, where one is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from blade.model import Report
from blade.report import write

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync".split()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_the_page_opens_whole_and_runs_nothing(tmp_path: Path, build: Callable[..., Report]) -> None:
    hostile = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    write(build({hostile: {"0": [1.0, 0.0], hostile: [0.0, 0.0]}}), tmp_path / "report")
    page = (tmp_path / "report" / "report.html").as_uri()
    command = [
        str(BROWSER),
        "--headless",
        *QUIET,
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        page,
    ]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert seen.count("<section") == 11
    assert "<title>owned" not in seen
    assert "<script" not in seen
    assert "data:image/svg+xml" in seen
