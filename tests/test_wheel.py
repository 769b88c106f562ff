"""The wheel: what it ships, and that an installation without the repository runs and explains its errors."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from blade import errors
from tests.conftest import ROOT


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles}


def test_every_page_and_anchor_that_a_message_names_ships() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"]["docs"] == "blade/docs"
    named = {
        hit.groups() for path in (ROOT / "src").rglob("*.py")
        for hit in re.finditer(r"\bdocs/([\w-]+\.md)(?:#([\w-]+))?", path.read_text(encoding="utf-8"))
    }  # fmt: skip
    assert ("errors.md", "internal-error") in named
    for page, anchor in named:
        assert (ROOT / "docs" / page).is_file(), page
        assert not anchor or anchor in anchors(ROOT / "docs" / page), (page, anchor)


def test_an_error_points_to_the_page_that_came_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = errors.UsageError("m", "docs/sanitize.md lists the keys", "usage")
    assert error.as_json()["see"] == "docs/errors.md#usage"
    monkeypatch.setattr(errors, "_DOCS", tmp_path)
    assert error.as_json()["see"] == f"{tmp_path}/errors.md#usage"
    assert error.as_json()["hint"] == f"{tmp_path}/sanitize.md lists the keys"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, unpacked where nothing else of the repository is."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    if importlib.util.find_spec("hatchling"):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    else:  # pip fetches hatchling, where there is a network
        build = [*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if not wheels and "hatchling" in done.stderr + done.stdout:
        pytest.skip("hatchling is not installed and cannot be fetched")
    assert wheels, done.stderr
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheels[0])]
    subprocess.run(install, check=True, capture_output=True)
    return folder / "site"


@pytest.mark.slow
def test_an_installed_wheel_runs_and_explains_its_errors(installed: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(installed), "BLADE_CACHE_DIR": str(tmp_path / "cache")}

    def blade(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "blade", *words]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    where = [sys.executable, "-c", "import blade, blade_eval; print(blade.__file__, blade_eval.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    assert found.stdout.count(str(installed)) == 2
    run = "blade-demo/runs/hasty_rollouts.jsonl"
    for words in (
        ["demo"], ["diagnose", run, "-o", "report"], ["query", run, "count"],
        ["skill", "install"], ["sanitize", "report", "--check"],
    ):  # fmt: skip
        done = blade(*words)
        assert done.returncode in (0, 1 if words[0] == "sanitize" else 0), (words, done.stderr)
    done = blade("diagnose", "nowhere")
    page, _, slug = done.stderr.split("see:")[1].strip().partition("#")
    assert (done.returncode, slug) == (3, "no-such-path")
    assert Path(page).is_relative_to(installed)
    assert slug in anchors(Path(page))
