"""Turn what is said of effort into claims: mean turns, calls and tokens, of passing and of failing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, RUN, STATE, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT
from blade.check.reader.scope import aligned
from blade.model import Assertion, Report

_WHAT: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:tool|function)[ -]?(?:calls?|invocations?|uses)", ("tool_calls",)),
    (r"(?:model |assistant |agent )?turns?", ("turns",)),
    (r"output items?|items", ("items",)),
    (r"(?:output|completion|generated) tokens?", ("output_tokens",)),
    (r"(?:input|prompt) tokens?", ("input_tokens",)),
    (r"reasoning tokens?", ("reasoning_tokens",)),
    (r"total tokens?", ("total_tokens",)),
    (r"tokens?", ("total_tokens", "output_tokens", "input_tokens", "reasoning_tokens")),
    (r"(?:wall[- ]?(?:clock )?)?seconds?", ("wall_s",)),
    (r"(?:steps?|messages?)", ("turns", "items", "tool_calls")),
)
_NAMES = "|".join(f"(?:{pattern})" for pattern, _ in _WHAT)
_AFTER = shaped(rf"(?P<q><Q>)\s+(?:mean\s+|average\s+|model\s+)?(?P<what>{_NAMES})\b")
_BEFORE = shaped(
    rf"\b(?P<what>{_NAMES})\b(?:\s*\(?(?:per|a|each|for each|of)\s+(?:<N>|run)\)?)?"
    r"(?:\s+(?:count|number|usage|use))?\s*"
    r"(?:[:=(]|\b(?:is|are|was|were|averages?|averaged|of|at|about|around|on average|in|for|<RS>|<N>|"
    r"an?|mean)\b|\s)*"
    r"(?P<q><Q>)"
)
_MEAN = shaped(
    r"\b(?:mean|average[sd]?|avg|on average|typical(?:ly)?|per <N>|per run|a <N>|each <N>|median)\b|[⌀ø]"
)
_MEDIAN = re.compile(r"\bmedian\b", re.IGNORECASE)
_TOTAL = re.compile(
    r"\b(?:in total|altogether|overall total|sum|at most|up to|max(?:imum)?|"
    r"min(?:imum)?|longest|"
    r"shortest|limit\w*|budget|cap(?:ped)?|first|last|step \d|turn \d|after|until|"
    r"within)\b",
    re.IGNORECASE,
)
_WAY = shaped(
    r"(?P<a><S>)(?:\s+(?:<N>|ones|runs))?(?:\s+(?:of|in|from|by)\s+<R>)?\s+(?:(?:tend|tends|seem|seems)\s+to\s+)?"
    r"(?:(?:make|makes|made|use|uses|used|take|takes|took|need|needs|needed|spend|spends|spent|"
    r"consume|consumes|"
    rf"consumed|have|has|had|contain|issue|issues|burn|burns)\s+(?:(?!not\b|no\b|never\b)\w+\s+)?(?P<way>more|fewer|"
    rf"less)\s+(?P<what>{_NAMES})"
    rf"|(?:are|is|were|was|run|runs|ran)\s+(?:(?!not\b|no\b|never\b)\w+\s+)?(?P<long>longer|"
    rf"shorter)(?:\s+\(<Q>\s*(?P<what2>{_NAMES})\))?)"
    r"(?:\s+on average)?\s+than\s+(?:the\s+|its\s+)?(?P<b><S>)"
    rf"(?:(?:\s+(?:<N>|ones|runs))?\s+in\s+(?P<what3>{_NAMES}))?"
)
_SIDES = {"passed": "passed", "solved": "passed", "failed": "failed"}
_KNOWN = frozenset(
    """take takes took consume consumes consumed need needs needed spend spends spent issue issues burn burns
    call calls turn turns token tokens tool function output input prompt completion reasoning total typical
    typically median mean average averages averaged usage using longer shorter ones agent assistant message
    messages step steps second seconds wall wall-clock clock""".split()
)


class Efforts:
    """What one sentence says of how much work rollouts take."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence = line, line.sentence

    def read(self) -> Iterator[Assertion]:
        if any(self.sentence.of(kind) for kind in "TALDC") or self.line.part():
            return
        if not re.search(rf"\b(?:{_NAMES}|longer|shorter)\b", self.line.shape, re.IGNORECASE):
            return
        yield from self._numbers()
        for hit in _WAY.finditer(self.line.shape):
            yield from self._longer(hit)

    # --- numbers -------------------------------------------------------------------------------------

    def _numbers(self) -> Iterator[Assertion]:
        if any(one.amount is None or one.amount.kind != COUNT for one in self.sentence.of(AMOUNT)):
            return  # a share of the rollouts may do so much, which is no mean
        found = self._found()
        sides = [one for one in self.sentence.of(STATE) if one.names[0] in _SIDES]
        if (
            not found
            or (not _MEAN.search(self.line.shape) and not sides)
            or _TOTAL.search(self.sentence.text)
        ):
            return
        amounts = [amount for amount, _, _, _ in found]
        whose = aligned(self.sentence, amounts)
        run = self.line.run()
        if run is None and whose is None:
            return
        of = self._sides(sides, amounts)
        if of is None:
            return
        for amount, what, start, end in found:
            name = whose[amount.start] if whose is not None else run
            assert name is not None
            readings = [one for each in what for one in self._of(name, each, of[amount.start])]
            yield self.line.amount(
                amount,
                "metric",
                readings,
                what[0],
                name,
                given=(("outcome", of[amount.start]),),
                doubt=self.line.beside(start, end, _KNOWN),
            )

    def _found(self) -> list[tuple[Mention, tuple[str, ...], int, int]]:
        """Amounts with what they count; one without a noun counts what the one before it counted."""
        found: dict[int, tuple[Mention, tuple[str, ...], int, int]] = {}
        for pattern in (_AFTER, _BEFORE):
            for hit in pattern.finditer(self.line.shape):
                amount = self.sentence.at[hit.start("q")]
                if amount.amount is not None and amount.amount.kind == COUNT and amount.start not in found:
                    found[amount.start] = (amount, meant(hit["what"]), *hit.span())
        every = [one for one in self.sentence.of(AMOUNT) if one.amount and one.amount.kind == COUNT]
        sides = [{one.names for one in self.sentence.of(kind)} for kind in (STATE, RUN)]
        if len(found) == 1 and len(every) == 2 and any(len(side) == 2 for side in sides):
            (mine,) = found.values()
            for one in every:
                found.setdefault(one.start, (one, mine[1], mine[2], mine[3]))
        return [found[start] for start in sorted(found)]

    def _sides(self, sides: list[Mention], amounts: list[Mention]) -> dict[int, str] | None:
        """Passing, failing or all rollouts, for each amount; None where it is not plain."""
        named = [_SIDES[one.names[0]] for one in sides]
        if not named:
            return {one.start: "all" for one in amounts}
        if len(set(named)) == 1 and len(amounts) == 1:
            return {amounts[0].start: named[0]}
        if len(named) != 2 or len(amounts) != 2 or len(set(named)) != 2:
            return None
        marks = sorted([(one.start, "S") for one in sides] + [(one.start, "Q") for one in amounts])
        order = "".join(kind for _, kind in marks)
        if order in ("SQSQ", "QSQS", "SSQQ"):
            return {amount.start: side for amount, side in zip(amounts, named, strict=True)}
        return None

    def _of(self, run: str, name: str, side: str) -> list[Reading]:
        is_median = bool(_MEDIAN.search(self.sentence.text))
        return of_effort(self.line.ground.report, run, name, side, is_median=is_median)

    # --- longer and shorter --------------------------------------------------------------------------

    def _longer(self, hit: re.Match[str]) -> Iterator[Assertion]:
        a, b = (self.sentence.at[hit.start(name)] for name in "ab")
        sides = [_SIDES.get(one.names[0]) for one in (a, b)]
        run = self.line.run()
        if run is None or None in sides or sides[0] == sides[1]:
            return
        word = (hit["way"] or hit["long"]).lower()
        way = 1 if word in ("more", "longer") else -1
        named = hit["what"] or hit["what2"] or hit["what3"]
        what = meant(named) if named else ("turns", "items", "tool_calls", "total_tokens", "output_tokens")
        gaps = [
            one.value - other.value
            for each in what
            for one in self._of(run, each, str(sides[0]))
            for other in self._of(run, each, str(sides[1]))
        ]
        if not gaps:
            return
        holds = (
            True
            if any(gap * way > 0 for gap in gaps)
            else False
            if all(gap * way < 0 for gap in gaps)
            else None
        )
        words = "; ".join(one.words for side in sides for one in self._of(run, what[0], str(side))[:1])
        yield self.line.claim(
            "ordering",
            self.line.span(*hit.span()),
            holds,
            words,
            self.line.beside(*hit.span(), _KNOWN),
            subject=what[0],
            run=run,
            value=word,
        )


def of_effort(
    report: Report, run: str, name: str, side: str, *, is_median: bool = False, either: bool = False
) -> list[Reading]:
    """The mean, the median, or either of them; failing with and without what errored."""
    found = {
        (one.name, one.slice): one
        for one in report.measures
        if one.run == run and one.value is not None and one.name in (name, f"{name}_median")
    }
    wanted = [name, f"{name}_median"] if either else [f"{name}_median"] if is_median else [name]
    readings = [
        Reading(float(one.value), f"{each.replace('_', ' ')} ({side}) of {run}: {float(one.value):.4g}")
        for each in wanted
        if (one := found.get((each, side))) is not None and one.value is not None
    ]
    if side == "failed" and not is_median:
        parts = [found[name, each] for each in ("failed", "errored", "timed_out") if (name, each) in found]
        n = sum(one.n for one in parts)
        if n:
            mean = sum(float(one.value or 0) * one.n for one in parts) / n
            told = f"{name.replace('_', ' ')} of what did not pass in {run}: {mean:.4g}"
            readings.append(Reading(mean, told))
    return readings


def meant(words: str) -> tuple[str, ...]:
    """The measures of effort that words may mean."""
    return next((names for pattern, names in _WHAT if re.fullmatch(pattern, words, re.IGNORECASE)), ())
