"""Turn the steps and repeats that a report names into claims: they are there, or they are not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from blade.check.places import REPEAT, STEP, Numbered, numbered
from blade.check.reader.lines import Line
from blade.check.reader.mentions import ADDRESS, AMOUNT, TASK, Sentence
from blade.check.reader.verdicts import said
from blade.model import CONTRADICTED, SUPPORTED, Assertion

# Steps of something else than a rollout.
_OTHERS = re.compile(
    r"\b(?:training|gradient|optimi[sz]er|update|checkpoint|global|next|action|recommended)\s+$",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\s*\(?(?:in|of|for)\s+(?:the\s+)?(?:task\s+|rollout\s+|failing\s+|passing\s+)*$", re.IGNORECASE
)
# `the failing repeat 3`, and not `they repeat 3 calls`
_NOUN = re.compile(
    r"(?:^|[,;:(`\d]|\b(?:the|in|of|at|for|on|from|its|this|failing|passing|failed|passed|and|or|than|also))\s*$",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\s+(?:[\w-]+\s+)?(?:calls|steps|turns|lines|errors|times)\b", re.IGNORECASE)
_CODE = re.compile(r"`(?P<task>\d{1,9})`")


class Named(msgspec.Struct, frozen=True):
    """A rollout, or all those of a task, and where a text names it."""

    task: str
    repeat: int | None
    start: int
    end: int
    is_sure: bool = True  # a bare number in backticks may be something else


class Steps:
    """The steps and repeats of one sentence, held against the rollouts that it speaks of."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        told = [one for one in numbered(self.sentence.text) if self._is_said(one)]
        if not told:
            return
        here = self._named(self.sentence)
        repeats = [one for one in told if one.kind == REPEAT and self._text(one).lower().startswith("repeat")]
        only = self._only_repeat(here, repeats)
        around = () if here else self._around()
        yield from self._repeats(here or around, repeats)
        for one in told:
            if one.kind == STEP and not _OTHERS.search(self.sentence.text[: one.start]):
                yield from self._step(one, here, around, only)

    def _text(self, one: Numbered) -> str:
        return self.sentence.text[one.start : one.end]

    def _is_said(self, one: Numbered) -> bool:
        """Not one that stands in a quotation or in a name."""
        taken = (each for each in self.sentence.mentions if each.kind not in (AMOUNT, "N"))
        return not any(each.start <= one.first < each.end for each in taken)

    # --- whom it is about ----------------------------------------------------------------------------

    def _named(self, sentence: Sentence) -> tuple[Named, ...]:
        found = []
        for one in sentence.mentions:
            for name in one.names if one.kind in (TASK, ADDRESS) else ():
                task, slash, repeat = name.rpartition("/")
                is_one = one.kind == ADDRESS and bool(slash) and repeat.isdecimal()
                found.append(
                    Named(task if is_one else name, int(repeat) if is_one else None, one.start, one.end)
                )
        if found:
            return tuple(found)
        return tuple(
            Named(self.line.reader.tasks[hit["task"]], None, hit.start(), hit.end(), False)
            for hit in _CODE.finditer(sentence.text)
            if hit["task"] in self.line.reader.tasks
        )

    def _around(self) -> tuple[Named, ...]:
        """The rollouts named last before the sentence, else in the nearest heading that names any."""
        around = self.line.around
        for text in (around.before, *reversed(around.headings)):
            if text and (found := self._named(self.line.reader.sentence(text[-2000:]))):
                return found
        return ()

    def _only_repeat(self, here: Sequence[Named], repeats: Sequence[Numbered]) -> int | None:
        """The repeat of the one task of a sentence, if it names but one."""
        is_one = len({one.task for one in here}) == 1 and all(one.repeat is None for one in here)
        numbers = {number for one in repeats for number in one.numbers}
        return next(iter(numbers)) if is_one and len(numbers) == 1 else None

    # --- steps and repeats ---------------------------------------------------------------------------

    def _repeats(self, names: Sequence[Named], repeats: Sequence[Numbered]) -> Iterator[Assertion]:
        tasks = {one.task for one in names if one.is_sure}
        if len(tasks) != 1:
            return
        task = next(iter(tasks))
        runs = [self.ground.runs[run] for run in self._runs() if task in self.ground.runs[run].tasks]
        known = [
            each.tasks[key] for each in runs for key in self.line.reader.either(task) if key in each.tasks
        ]
        text = self.sentence.text
        there = {each.repeat for one in known for each in one.repeats}
        most = max((len(one.repeats) for one in known), default=0)  # some count from one
        if not known:
            return
        for one in repeats:
            fits = all(number in there or number == most for number in one.numbers)
            if not fits and (not _NOUN.search(text[: one.start]) or _COUNTED.match(text, one.end)):
                continue
            yield self._said(one, fits, "id", f"task {task} has {most} repeats", "no such repeat")

    def _step(
        self, one: Numbered, here: Sequence[Named], around: Sequence[Named], repeat: int | None
    ) -> Iterator[Assertion]:
        names = here or around
        if not names:
            return
        lengths = {each: self._length(each, repeat if here else None) for each in names}
        nearest = self._nearest(one, here) if here else around[-1]
        last, most = max(one.numbers), max(lengths.values())
        told = f"{_address(nearest, repeat if here else None)} has {lengths[nearest]} steps"
        if last <= lengths[nearest]:
            yield self._said(one, True, "step", told)
        elif last > most > 0 and all(each.is_sure for each in names) and (here or len(set(lengths)) == 1):
            yield self._said(one, False, "step", told, "no such step")

    def _nearest(self, one: Numbered, here: Sequence[Named]) -> Named:
        """`step 4 of 2/0`, else the rollout that is named last before it, else the first one."""
        behind = [each for each in here if each.start >= one.end]
        if behind and _BEHIND.fullmatch(self.sentence.text[one.end : behind[0].start]):
            return behind[0]
        before = [each for each in here if each.end <= one.start]
        return before[-1] if before else here[0]

    def _runs(self) -> tuple[str, ...]:
        return self.line.runs().runs or tuple(self.ground.runs)

    def _length(self, one: Named, repeat: int | None) -> int:
        """The steps of the longest rollout that may be meant."""
        repeat = one.repeat if one.repeat is not None else repeat
        traces = [
            trace
            for run in self._runs()
            for key in self.line.reader.either(one.task)
            if key in self.ground.runs[run].tasks
            for trace in self.ground.world.rows.at(run, key, repeat)
        ]
        return max((len(trace.steps) for trace in traces), default=0)

    def _said(self, one: Numbered, fits: bool, kind: str, told: str, why: str = "") -> Assertion:
        runs = self._runs()
        return said(
            self.line.place, SUPPORTED if fits else CONTRADICTED, kind, self._text(one), one.start,
            expected=told, why="" if fits else why, run=runs[0] if len(runs) == 1 else None,
            value=float(one.numbers[-1]),
        )  # fmt: skip


def _address(one: Named, repeat: int | None) -> str:
    repeat = one.repeat if one.repeat is not None else repeat
    return f"the longest rollout of task {one.task}" if repeat is None else f"{one.task}/{repeat}"
