"""A package that is shared: its reports still hold of the clean rollouts, and nothing private is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blade.package.drafts import MARK
from blade.package.layout import layout
from blade.package.sharing import SIGNATURE, sanitised_checks
from blade.planted import write_run
from tests.conftest import Blade

PRIVATE = ("jo.doe@example-corp.com", "jdoe", "db-7.corp", "hunter2x9")
SAID = "is locked by jo.doe@example-corp.com at /home/jdoe/desk on db-7.corp with password: hunter2x9"


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")


@pytest.mark.slow
@pytest.mark.usefixtures("_key")
def test_drafts_and_a_report_that_a_person_changed_hold_of_the_clean_rollouts(
    tmp_path: Path, blade: Blade
) -> None:
    for model in "ab":
        path = write_run(
            tmp_path / model, n_tasks=8, repeats=2, seed=ord(model), model=f"s-{model}", sidecars=False
        ).path
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

    result = blade("package", "validate", "--benchmark-dir", clean, "--min-anchor-facts", "1")
    failed = [line for line in result.out.splitlines() if line.startswith("[FAIL]")]
    known = ("draft: not reviewed", "anchor facts are not reviewed", "anchor facts exist for each",
             "about single tasks supported", "cite task-level evidence")  # fmt: skip
    assert failed
    assert [line for line in failed if not any(words in line for words in known)] == []
    report = clean / "golden_reports" / changed.name
    assert "I asked [EMAIL:" in texts[report]
    run = f"s_a={clean}/rollouts/s_a_rollouts.jsonl"
    result = blade("check", report, "--run", run)
    assert result.code == 0, result.out
    raw, kept = (set(SIGNATURE.findall(path.read_text(encoding="utf-8"))) for path in (changed, report))
    assert len(raw) == len(kept)
    assert raw - kept, "the hash of a text with a password in it is not shared"
