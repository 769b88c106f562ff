"""A package that leaves: what a person wrote still holds of the clean rollouts, and nothing private is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blade.package.drafts import MARK
from blade.planted import write_run
from tests.conftest import Blade

PRIVATE = ("jo.doe@example-corp.com", "jdoe", "db-7.corp", "hunter2x9")
SAID = "is locked by jo.doe@example-corp.com at /home/jdoe/desk on db-7.corp with password: hunter2x9"


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")


@pytest.mark.slow
@pytest.mark.usefixtures("_key")
def test_what_a_person_reviewed_holds_of_the_clean_rollouts(tmp_path: Path, blade: Blade) -> None:
    for model in "ab":
        path = write_run(
            tmp_path / model, n_tasks=8, seed=ord(model), model=f"s-{model}", sidecars=False
        ).path
        path.write_text(path.read_text(encoding="utf-8").replace("is locked", SAID), encoding="utf-8")
    assert blade("package", "init", tmp_path / "desk", "--run", tmp_path / "a", tmp_path / "b").code == 0
    for path in (tmp_path / "desk" / "golden_reports").glob("*.md"):
        text = re.sub(rf"^{MARK}.*\n\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        path.write_text(f"{text}\nI asked {PRIVATE[0]}: hunter2x9 still opens it.\n", encoding="utf-8")
    clean = tmp_path / "clean" / "desk"
    told = blade("package", "sanitize", "--benchmark-dir", tmp_path / "desk", "-o", clean)
    assert told.code == 0, told.out + told.err
    texts = {path: path.read_text(encoding="utf-8") for path in clean.rglob("*") if path.is_file()}
    assert not [(path, value) for path, text in texts.items() for value in PRIVATE if value in text]
    assert [path.name for path in clean.parent.iterdir()] == ["desk"]
    for path in clean.glob("golden_reports/*_golden_report.md"):
        names = path.name.removesuffix("_golden_report.md").split("_vs_")
        runs = [f"{name}={clean}/rollouts/{name}_rollouts.jsonl" for name in names]
        said = blade("check", path, "--run", *runs)
        assert said.code == 0, said.out
        assert "I asked [EMAIL:" in texts[path]
