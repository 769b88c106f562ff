"""The first golden report of the made package with what it is judged by, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from blade.model import SUPPORTED, Assertion
from blade.package.judge.score import Bench, Judged, judged
from blade.package.judge.sources import Case, case, seated
from blade.package.judge.units import Unit
from blade.store.index import Silent

MODEL = "sim_model_a"


def reports(package: Path) -> Path:
    return package / "golden_reports"


def files(package: Path) -> tuple[Path, Path, Path]:
    """The golden report, its anchors, its shallow baseline."""
    names = (f"{MODEL}_golden_report.md", f"{MODEL}_anchor_facts.json", f"{MODEL}_shallow.md")
    golden, anchors, shallow = (reports(package) / name for name in names)
    return golden, anchors, shallow


@cache
def seat_of(package: Path) -> tuple[Case, Bench, Judged]:
    """The case, the bench, and the golden report judged."""
    told = case(*files(package))
    seat = seated(told, Silent())
    return told, seat, judged(told.golden, seat)


def make_unit(text: str = "Task 4 fails.", line: int = 1, **changes: object) -> Unit:
    """A supported sentence about task 4."""
    part = Assertion(SUPPORTED, "id", line, line, text, "task 4")
    told: dict[str, Any] = {
        "line": line, "last_line": line, "kind": "sentence", "text": text, "section": ("Deep Dives",),
        "verdict": SUPPORTED, "assertions": (part,), "tasks": frozenset({"4"}), "own": frozenset({"4"}),
        "causes": frozenset(), "steps": frozenset(), "quotes": (), "numbers": (),
    }  # fmt: skip
    return Unit(**{**told, **changes})
