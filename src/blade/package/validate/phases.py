"""Define what a validation finds: checks that pass or fail, for a phase and a line of the checklist."""

from __future__ import annotations

import re
from dataclasses import dataclass

PHASES = ("skill", "rollouts", "golden")

# What a check counts for in the readiness checklist; an empty one counts for none.
SKILL = "skill"
RUNS = "runs"
EVIDENCE = "evidence"
METRICS = "metrics"
ANCHORS = "anchors"
SHALLOW = "shallow"
SANITISED = "sanitised"
DRAFT = "draft"  # what a person has yet to read

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    passed: bool
    text: str
    counts_for: str = ""

    @property
    def line(self) -> str:
        """The line of print; names of files and values of rows cannot steer the terminal."""
        return f"[{'PASS' if self.passed else 'FAIL'}] {_UNSEEN.sub('?', self.text)}"


def either(passed: bool, good: str, bad: str, counts_for: str = "") -> Check:
    """A check that says one thing if it passes and another if it fails."""
    return Check(passed, good if passed else bad, counts_for)


def words(text: str) -> set[str]:
    """The distinct words of a text, of any language; a single letter is none."""
    return set(re.findall(r"[^\W\d_]{2,}", text.lower())) | set(
        re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", text)  # scripts that put no spaces
    )


def plural(n: int, noun: str, many: str = "") -> str:
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"
