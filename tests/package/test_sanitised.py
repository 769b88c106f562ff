"""A package that is shared: its reports still hold of the clean rollouts, and nothing private is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blade.package.drafts import MARK
from blade.package.layout import layout
from blade.package.sharing import sanitised_checks
from tests.conftest import Blade
from tools.planted import write_run

PRIVATE = ("jo.doe@example-corp.com", "jdoe", "db-7.corp", "hunter2x9")
SAID = "is locked by jo.doe@example-corp.com at /home/jdoe/desk on db-7.corp with password: hunter2x9"


def failed(blade: Blade, package: Path) -> set[str]:
    said = blade("package", "validate", "--benchmark-dir", package, "--min-anchor-facts", "1").out
    return {line for line in said.splitlines() if line.startswith("[FAIL]")}


@pytest.mark.slow
def test_drafts_and_a_report_that_a_person_changed_hold_of_the_clean_rollouts(
    tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")
    size = {"n_tasks": 8, "repeats": 2, "sidecars": False}
    for model in "ab":
        path = write_run(tmp_path / model, seed=ord(model), model=f"s-{model}", **size).path
        path.write_text(path.read_text(encoding="utf-8").replace("is locked", SAID), encoding="utf-8")
    desk, clean = tmp_path / "desk", tmp_path / "clean" / "desk"
    assert blade("package", "init", desk, "--run", tmp_path / "a", tmp_path / "b").code == 0
    changed = desk / "golden_reports" / "s_a_golden_report.md"
    text = re.sub(rf"^{MARK}.*\n\n", "", changed.read_text(encoding="utf-8"), flags=re.MULTILINE)
    changed.write_text(f"{text}\nI asked {PRIVATE[0]}: hunter2x9 still opens it.\n", encoding="utf-8")
    assert "look private" in sanitised_checks(layout(desk))[0].text

    result = blade("package", "sanitize", "--benchmark-dir", desk, "-o", clean)
    assert result.code == 0, result.out + result.err
    texts = {path: path.read_text(encoding="utf-8") for path in clean.rglob("*") if path.is_file()}
    assert not [(path, value) for path, text in texts.items() for value in PRIVATE if value in text]
    assert [path.name for path in clean.parent.iterdir()] == ["desk"]

    # a draft fails as a draft does, shared or not: cleaning may mend a check and breaks none
    raw, shared = (failed(blade, folder) for folder in (desk, clean))
    assert any("look private" in line for line in raw)
    assert shared
    assert shared <= raw
    report = clean / "golden_reports" / changed.name
    assert "I asked [EMAIL:" in texts[report]
    run = f"s_a={clean}/rollouts/s_a_rollouts.jsonl"
    result = blade("check", report, "--run", run)
    assert result.code == 0, result.out
