"""Turn what a sentence says of slices into claims: their rates, in whatever order, and their sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, SLICE, STATE, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, RATE
from blade.model import Assertion

# What may stand between the name of a slice and its rate; any other word may make it another number.
_BRIDGES = """
tasks? ones? items? questions? problems? rows? rollouts? requests? changes? category slice cases? is are was
were do does did best worst weakest strongest hardest easiest lowest highest
only just at by far with the a an of
have has reach reaches reached scores? scored pass passes passed succeed succeeds succeeded rate in them about
roughly around leads? trails? lags? behind ahead and while but whereas on for to from against versus
vs compared accuracy success solve solved solves gets? fails? failed performs? comes? sits?
""".split()
_BRIDGE = shaped(rf"(?:[\s,:;()—–=→%-]|\b(?:{'|'.join(_BRIDGES)})\b|<MSN>)*")
_NOT_A_RATE = shaped(
    r"\s*(?:\)\s*)?(?:of (?:the |all |its )*(?:<SNCDML>|fail\w*|loss\w*|lost|benchmark|total|points|time)|"
    r"points?|tokens?|share|more|fewer|less|higher|lower|better|worse|of them)"
)
_SIZE = shaped(
    r"(?:^|[,:;(]\s*|\b(?:are|were|is|has|have|contains?|includes?|comprises?|and|with|of|covers?)\s+)"
    r"(?P<q><Q>)\s+(?:of the\s+)?(?P<l><L>)[\s-]+(?:<N>|ones?|items|cases|examples|requests)"
    r"(?=\s*(?:$|[.,;:)(]|and\b|in total\b|in the (?:run|benchmark|suite|set|dataset)\b))"
)
_SHARE = re.compile(
    r"\b(?:make[s]? up|account|share|comprise|represent|contribut\w*|lost|points?)\b", re.IGNORECASE
)


class Slices:
    """What one sentence says of the slices of one run."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence = line, line.sentence

    def read(self) -> Iterator[Assertion]:
        run = self.line.run()
        pieces = self.sentence.of(SLICE)
        if run is None or not pieces or len({one.names[0] for one in pieces}) != 1 or self.sentence.of("T"):
            return
        yield from self._sizes(run)
        yield from self._rates(run, pieces)

    def _rates(self, run: str, pieces: list[Mention]) -> Iterator[Assertion]:
        amounts = [one for one in self.sentence.of(AMOUNT) if one.amount and one.amount.kind == RATE]
        amounts = [one for one in amounts if not self._is_other(one)]
        if not amounts or _SHARE.search(self.sentence.text) or self.sentence.of("D") or self.sentence.of("C"):
            return
        found = paired(pieces, amounts)
        fails = any(one.names[0] == "failed" for one in self.sentence.of(STATE))
        for piece, amount in found:
            first, last = sorted((self._at(piece), self._at(amount)))
            if not _BRIDGE.fullmatch(self.line.shape, first + 1, last):
                continue
            field, value = piece.names
            readings = self.of_slice(run, field, value, fails)
            yield self.line.amount(
                amount,
                "metric",
                readings,
                "slice_rate",
                run,
                given=(("slice", f"{field}={value}"),),
                as_rate=True,
                doubt="" if readings else "nothing here measures it",
            )

    def of_slice(self, run: str, field: str, value: str, fails: bool) -> list[Reading]:
        """The rate of a slice, and its complement where failing is told; over rows it may differ a little."""
        ground = self.line.ground
        readings = ground.of_slice(run, field, value)
        if len({task.n for task in ground.runs[run].tasks.values()}) > 1:
            near = [
                Reading(one.value + step / 1000, one.words, one.query)
                for one in readings
                for step in range(-30, 31)
            ]
            readings = [*readings, *near]
        if fails:
            readings = [
                *readings,
                *(Reading(1 - one.value, f"{one.words} pass", one.query) for one in readings),
            ]
        return readings

    def _at(self, wanted: Mention) -> int:
        return next(place for place, one in self.sentence.at.items() if one is wanted)

    def _is_other(self, amount: Mention) -> bool:
        return bool(_NOT_A_RATE.match(self.line.shape, self._at(amount) + 1))

    def _sizes(self, run: str) -> Iterator[Assertion]:
        for hit in _SIZE.finditer(self.line.shape):
            amount, piece = self.sentence.at[hit.start("q")], self.sentence.at[hit.start("l")]
            if amount.amount is None or amount.amount.kind != COUNT:
                continue
            field, value = piece.names
            readings = [
                Reading(float(one.n_tasks), f"{one.n_tasks} tasks have {field}={value} in {run}")
                for one in self.line.ground.runs[run].slices
                if (one.field, one.value) == (field, value)
            ]
            yield self.line.amount(
                amount,
                "count",
                readings,
                "slice_n_tasks",
                run,
                given=(("slice", f"{field}={value}"),),
                doubt=self.line.beside(hit.start(), hit.end()),
            )


def paired(pieces: list[Mention], amounts: list[Mention]) -> list[tuple[Mention, Mention]]:
    """Names and amounts that stand in turn, each with its own; nothing where that is not plain."""
    n = len(pieces)
    if n != len(amounts):
        return []
    marks = sorted([(one.start, "L") for one in pieces] + [(one.start, "Q") for one in amounts])
    order = "".join(kind for _, kind in marks)
    if order in ("LQ" * n, "QL" * n, "L" * n + "Q" * n) or (n == 2 and order in ("LQQL", "QLLQ")):
        return list(zip(pieces, amounts, strict=True))
    return []
