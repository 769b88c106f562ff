"""Whole outputs, read by a person once and compared ever after; `make golden` rewrites them."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from blade import __version__
from blade.cli.main import cli
from tools import planted
from tools.planted.planted_runs import write_pair

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = ("", "diagnose", "compare", "show", "init", "demo", "doctor", "completion")


def scrubbed(text: str) -> str:
    """The text without what changes from version to version."""
    text = text.replace(f'"blade": "{__version__}"', '"blade": "VERSION"')
    text = text.replace(f"`{__version__}`", "`VERSION`").replace(f">{__version__}<", ">VERSION<")
    text = re.sub(r"\n<!-- written by blade: [^\n]+ -->\n", "", text)
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
    """The demo run, diagnosed once from inside its folder; the folder and what the terminal showed."""
    folder = tmp_path_factory.mktemp("demo")
    with chdir(folder):
        planted.write_demo(Path("run"))
        return folder, blade("diagnose", "run", "-o", "report")


def blade(*arguments: str) -> str:
    result = CliRunner(env={"BLADE_CACHE_DIR": "cache"}).invoke(cli, arguments, prog_name="blade")
    assert result.exit_code == 0, result.output
    return result.stdout


FILES = [*(f"report/{name}" for name in ("report.md", "report.json", "report.html", "metrics.json")), "compare/compare.md"]


@pytest.mark.parametrize("path", FILES)
def test_files_that_are_written(demo: tuple[Path, str], pair: tuple[Path, str], path: str) -> None:
    folder, _ = demo if path.startswith("report") else pair
    matches_golden(Path(path).name, scrubbed((folder / path).read_text(encoding="utf-8")))


def test_screens(demo: tuple[Path, str], pair: tuple[Path, str]) -> None:
    matches_golden("summary.txt", demo[1])
    matches_golden("compare.txt", pair[1])
    with chdir(demo[0]):
        matches_golden("show.txt", blade("show", "run", "0/0"))


def test_readme_excerpt(demo: tuple[Path, str]) -> None:
    """The README shows what the demo prints, word for word."""
    readme = Path(__file__).parents[1] / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, opening, rest = text.partition("<!-- excerpt: make golden -->\n")
    _, closing, after = rest.partition("<!-- /excerpt -->")
    summary = demo[1].split("Wrote ")[0].rstrip()
    fresh = f"{before}{opening}```text\n{summary}\n```\n{closing}{after}"
    if os.environ.get("BLADE_GOLDEN") == "write":
        readme.write_text(fresh, encoding="utf-8")
    else:
        assert text == fresh


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Two runs, the second without one way to fail, compared once; the folder and what the terminal showed."""
    folder = tmp_path_factory.mktemp("pair")
    with chdir(folder):
        write_pair(Path("runs"), "one failure mode fixed", seed=5, n_tasks=26, repeats=4, effect=1.0)
        return folder, blade("compare", "runs/baseline.jsonl", "runs/candidate.jsonl", "-o", "compare")


def test_help() -> None:
    # in a process of its own: click keeps the help option of whichever context asked for it first
    program = (
        "import sys\nfrom blade.cli.main import cli\n"
        "for number, command in enumerate(sys.argv[1:]):\n"
        "    print(end='\\n' * bool(number))\n"
        "    try:\n        cli([*command.split(), '--help'], prog_name='blade')\n"
        "    except SystemExit as stop:\n        assert not stop.code\n"
    )
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", program, *COMMANDS], capture_output=True, text=True, check=True, env=environment)
    matches_golden("help.txt", done.stdout)
