"""The example in the repository: a whole package of two scripted models that validates."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from blade.package import drafts
from tests.conftest import ROOT, Blade
from tests.package import office

EXAMPLE = ROOT / "benchmarks" / office.NAME
PARTS = ("skill", "rollouts")  # made by programs; the golden reports are a person's


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for part in PARTS
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


def test_its_rollouts_and_skill_are_what_init_drafts_today(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "_anchors", lambda *_: {})  # they are not compared here, and take the longest
    today = office.drafted(tmp_path)
    if os.environ.get("BLADE_GOLDEN") == "write":
        for part in PARTS:
            shutil.rmtree(EXAMPLE / part, ignore_errors=True)
            shutil.copytree(today / part, EXAMPLE / part)
    made, kept = tree(today), tree(EXAMPLE)
    assert set(made) == set(kept)
    changed = [name for name in kept if made[name] != kept[name]]
    assert not changed, f"{changed} changed: run `make golden` and read the diff"


def test_it_is_ready(blade: Blade) -> None:
    result = blade("package", "validate", "--benchmark-dir", EXAMPLE, "--phase", "all")
    assert result.code == 0, result.out
    assert "[FAIL]" not in result.out
    checklist = result.out.split("Readiness checklist\n")[1].splitlines()
    assert len(checklist) == 7
    baselines = "A shallow baseline exists for each golden report (comparison reports need none)"
    assert checklist[5] == f"[PASS] {baselines}"
    assert checklist[6].startswith("[PASS] Sanitised")
