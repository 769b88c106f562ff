"""Tell what a policy says of the comparisons: its verdict, then every line of it."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Checked, Gate
from blade.report import numbers, queries
from blade.report.blocks import Badge, Block, Bullets, Code, Line, Table, cells, para
from blade.report.change import words as say
from blade.report.change.sentences import note_told, sentence

TONES = {"PASS": "good", "WARN": "warning", "FAIL": "bad", "INCONCLUSIVE": "warning"}
ORDER = ("FAIL", "INCONCLUSIVE", "WARN", "PASS")


def gate(found: Gate) -> list[Block]:
    """The verdict of the policy, every line of it, failures first."""
    checks = sorted(found.checks, key=lambda one: place(one.verdict))
    names = {found.baseline, *(one.candidate for one in found.checks)}
    rows = tuple(_check(found, one, names) for one in checks)
    header = ("Verdict", "Tier", "Metric", "Candidate", "Why", "Tasks", "Waived")
    blocks: list[Block] = [
        para(
            "The policy ",
            Code(hostile.line(found.policy, 200)),
            " says ",
            badge(found.verdict),
            f", on {hostile.line(found.question, 20)}.",
        ),
        Table(header, rows, "lllllrl"),
    ]
    notes = tuple(
        note_told(note, f"engine.gate.notes[{number}]", names) for number, note in enumerate(found.notes)
    )
    return blocks + ([Bullets(notes)] if notes else [])


def _check(found: Gate, one: Checked, names: set[str]) -> tuple[Line, ...]:
    query = queries.chosen("engine.gate.checks", found.checks, one, "candidate", "metric")
    return cells(
        badge(one.verdict),
        hostile.line(one.tier, 20),
        Code(hostile.line(one.metric, 60)),
        say.run(one.candidate, 60),
        sentence(one.text, f"{query}.text", 400, names),
        numbers.whole(one.n, f"{query}.n") if one.n is not None else number_format.NONE,
        numbers.said(one.waived, f"{query}.waived", 200) if one.waived else number_format.NONE,
    )


def place(word: str) -> int:
    return ORDER.index(word) if word in ORDER else len(ORDER)


def badge(word: str) -> Badge:
    return Badge(hostile.line(word, 20), TONES.get(word, "quiet"))
