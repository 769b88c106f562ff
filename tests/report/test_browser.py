"""The pages in a real browser, where one is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from blade.model import Report
from blade.report import write, write_comparison
from tests.inert import BROWSER, dumped

from . import changed

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("name", "sections"), [("report.html", 11), ("compare.html", 7)])
def test_the_page_opens_whole_and_runs_nothing(
    tmp_path: Path, build: Callable[..., Report], name: str, sections: int
) -> None:
    if name == "report.html":
        write(build({HOSTILE: {"0": [1.0, 0.0], HOSTILE: [0.0, 0.0]}}), tmp_path / "report")
    else:
        write_comparison(changed.many_report(lambda text: HOSTILE + text), tmp_path / "report")
    seen = dumped(tmp_path / "report" / name, tmp_path / "profile")
    assert seen.count("<section") == sections
    assert "<title>owned" not in seen
    assert "<script" not in seen
    assert "data:image/svg+xml" in seen
