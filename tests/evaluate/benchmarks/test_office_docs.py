"""The faults that docs/demo.md counts for each script are those that the scripts commit."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from blade_eval.models.scripted_model import truth
from blade_eval.verifiers.workplace_assistant.quests import quests

DOCS = Path(__file__).resolve().parents[3] / "docs" / "demo.md"


@pytest.mark.parametrize("script", ["flawless", "careful", "hasty", "novice"])
def test_the_docs_count_the_faults_of_a_script(script: str) -> None:
    drawn = Counter(
        truth({"task_id": ident, "_ng_rollout_index": repeat}, {"script": script})
        for ident in quests()
        for repeat in range(4)
    )
    assert drawn.total() == 296
    del drawn["none"]
    (line,) = re.findall(rf"^\| `{script}` \|.*$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    *_, wrong, ways, _ = line.split("|")
    assert int(wrong) == drawn.total()
    assert {fault: int(number) for number, fault in re.findall(r"(\d+) `(\w+)`", ways)} == drawn
