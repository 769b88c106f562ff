"""Whole outputs, read by a person once and compared ever after; `make golden` rewrites them."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from blade import __version__, planted
from blade.cli.main import cli

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = ("", "diagnose", "show", "init", "demo", "doctor", "completion")


def scrubbed(text: str, folder: Path) -> str:
    """The text without what changes from machine to machine."""
    text = text.replace(str(folder), "FOLDER").replace(f'"blade": "{__version__}"', '"blade": "VERSION"')
    text = text.replace(f"`{__version__}`", "`VERSION`").replace(f">{__version__}<", ">VERSION<")
    return re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "data:SVG", text)


def matches_golden(name: str, text: str) -> None:
    """Compare with the golden file, or rewrite it."""
    path = GOLDEN / name
    if os.environ.get("BLADE_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    if text != expected:
        path.with_suffix(path.suffix + ".actual").write_text(text, encoding="utf-8")
        diff = difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "actual", lineterm="", n=1)
        pytest.fail("\n".join(list(diff)[:60]))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo run, diagnosed once; its folder and what the terminal showed."""
    folder = tmp_path_factory.mktemp("demo")
    planted.write_demo(folder / "run")
    runner = CliRunner(env={"BLADE_CACHE_DIR": str(folder / "cache")})
    result = runner.invoke(cli, ["diagnose", str(folder / "run"), "-o", str(folder / "report")])
    assert result.exit_code == 0, result.output
    return folder, result.stdout


@pytest.mark.parametrize("name", ["report.md", "report.json", "report.html", "metrics.json"])
def test_report_files(demo: tuple[Path, str], name: str) -> None:
    folder, _ = demo
    matches_golden(name, scrubbed((folder / "report" / name).read_text(encoding="utf-8"), folder))


def test_summary(demo: tuple[Path, str]) -> None:
    folder, shown = demo
    matches_golden("summary.txt", scrubbed(shown, folder))


def test_shown_rollout(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    runner = CliRunner(env={"BLADE_CACHE_DIR": str(folder / "cache")})
    result = runner.invoke(cli, ["show", str(folder / "run"), "0/0"])
    matches_golden("show.txt", scrubbed(result.stdout, folder))


def test_help() -> None:
    runner = CliRunner()
    texts = [runner.invoke(cli, [*command.split(), "--help"], prog_name="blade").output for command in COMMANDS]
    matches_golden("help.txt", "\n".join(texts))


def test_readme_excerpt(demo: tuple[Path, str]) -> None:
    """The README shows what the demo prints, word for word."""
    folder, shown = demo
    readme = Path(__file__).parents[1] / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, opening, rest = text.partition("<!-- excerpt: make golden -->\n")
    _, closing, after = rest.partition("<!-- /excerpt -->")
    summary = scrubbed(shown, folder).split("Read next")[0].rstrip()
    fresh = f"{before}{opening}```text\n{summary}\n```\n{closing}{after}"
    if os.environ.get("BLADE_GOLDEN") == "write":
        readme.write_text(fresh, encoding="utf-8")
    else:
        assert text == fresh
