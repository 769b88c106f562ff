"""Tell what a policy says of the comparisons: its verdict, then every line of it."""

from __future__ import annotations

from blade import hostile
from blade.model import Gate
from blade.report import words
from blade.report.change import words as say
from blade.report.change.sentences import note_told, sentence
from blade.report.sections import Badge, Block, Bullets, Code, Table, cells, para

TONES = {"PASS": "good", "WARN": "warning", "FAIL": "bad", "INCONCLUSIVE": "warning"}
ORDER = ("FAIL", "INCONCLUSIVE", "WARN", "PASS")


def gate(found: Gate) -> list[Block]:
    """The verdict of the policy, every line of it, failures first."""
    checks = sorted(found.checks, key=lambda one: place(one.verdict))
    names = {found.baseline, *(one.candidate for one in found.checks)}
    rows = tuple(
        cells(
            badge(one.verdict),
            hostile.line(one.tier, 20),
            Code(hostile.line(one.metric, 60)),
            say.run(one.candidate, 60),
            sentence(one.text, 400, names),
            words.whole(one.n) if one.n is not None else words.NONE,
            hostile.line(one.waived, 200) or words.NONE,
        )
        for one in checks
    )
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
    return blocks + ([Bullets(tuple(note_told(note, names) for note in found.notes))] if found.notes else [])


def place(word: str) -> int:
    return ORDER.index(word) if word in ORDER else len(ORDER)


def badge(word: str) -> Badge:
    return Badge(hostile.line(word, 20), TONES.get(word, "quiet"))
