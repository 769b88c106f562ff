"""Turn a sentence and what stands around it into what its readers share: runs, doubts, claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from blade.check.reader import scope
from blade.check.reader.ground import Ground, Reading
from blade.check.reader.mentions import Mention, Reader, Sentence
from blade.check.reader.verdicts import Place, judged, said
from blade.model import Assertion
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE

# A thought, another source, or a part: what is said may not be said of these rows.
_THOUGHT = re.compile(
    r"\b(?:would|could|should|might|may|if|unless|whether|targets?|goals?|expect(?:ed|s)?|hypothe\w*|"
    r"suppos\w*"
    r"|previous(?:ly)?|earlier|published|papers?|leaderboard|reported(?:ly)?|claim(?:s|ed)?|"
    r"estimat\w*|exclud\w*"
    r"|except|without|ignoring|apart from|other than|besides|it is (?:false|untrue|not true)|likely|plan\w*"
    r"|simulated|hypothetical\w*|remaining|adjusted|so[- ]called)\b|\?",
    re.IGNORECASE,
)


class Line(msgspec.Struct, frozen=True):
    """A sentence, where it stands, and whom its report is about there."""

    reader: Reader
    sentence: Sentence
    place: Place
    around: scope.Around

    @property
    def ground(self) -> Ground:
        return self.reader.ground

    @property
    def shape(self) -> str:
        return self.sentence.shape

    @property
    def thought(self) -> str:
        """Why nothing here is contradicted: the sentence supposes, or tells of another source or a part."""
        hit = _THOUGHT.search(self.sentence.text)
        return f"the sentence may not be said of these rows: {hit[0]}" if hit else ""

    def runs(self) -> scope.Scope:
        return scope.run_of(self.reader, self.sentence, self.around)

    def run(self) -> str | None:
        """The one run it is about, if there is no doubt."""
        told = self.runs()
        return told.runs[0] if len(told.runs) == 1 and not told.doubt else None

    def part(self) -> str:
        """Why it may be said of a part of the run only."""
        task, more = scope.task_of(self.reader, self.sentence, self.around)
        return more or ("it is said of one task" if task is not None else "")

    def beside(self, start: int, end: int, known: Iterable[str] = ()) -> str:
        """What beside a span that was read in full may narrow it."""
        blank = self.shape[:start] + "·" * (end - start) + self.shape[end:]
        return scope.doubt_of(
            msgspec.structs.replace(self.sentence, shape=blank), start, end, frozenset(known)
        )

    def mention(self, hit: re.Match[str], name: str) -> Mention | None:
        return self.sentence.at.get(hit.start(name)) if hit.groupdict().get(name) else None

    def span(self, start: int, end: int) -> tuple[int, str]:
        """A span of the shape as it stands in the text."""
        first, last = self.sentence.places[start], self.sentence.places[end]
        return first, self.sentence.text[first:last].rstrip()

    def amount(
        self,
        amount: Mention,
        kind: str,
        readings: Sequence[Reading],
        subject: str,
        run: str | None,
        *,
        given: tuple[tuple[str, str], ...] = (),
        as_rate: bool = False,
        doubt: str = "",
    ) -> Assertion:
        """An amount held against its readings."""
        return judged(
            self.place,
            amount,
            kind,
            readings,
            subject=subject,
            run=run,
            scope=given,
            as_rate=as_rate,
            doubt=doubt or self.thought,
        )

    def claim(
        self,
        kind: str,
        span: tuple[int, str],
        holds: bool | None,
        expected: str,
        doubt: str = "",
        *,
        subject: str,
        run: str | None = None,
        value: str = "",
        given: tuple[tuple[str, str], ...] = (),
    ) -> Assertion:
        """What is said without an amount: it holds, or does not, or nothing here settles it (None)."""
        doubt = doubt or self.thought
        verdict = SUPPORTED if holds else UNVERIFIABLE if doubt or holds is None else CONTRADICTED
        why = "" if holds else doubt or ("the rows say otherwise" if holds is False else "nothing settles it")
        return said(
            self.place,
            verdict,
            kind,
            span[1],
            span[0],
            expected=expected,
            why=why,
            subject=subject,
            run=run,
            value=value,
            scope=given,
        )
