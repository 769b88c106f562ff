"""Check that the tasks, rollouts, repeats and steps which a report names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blade.check.addresses import REPEAT, STEP, Mention, Numbered, mentions, numbered, runs_named
from blade.check.passages import Passage, blanked
from blade.check.quotations import quotes_in
from blade.check.row_texts import Address
from blade.check.world import World
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding

# Steps of something else than a rollout.
_OTHERS = re.compile(
    r"\b(?:training|gradient|optimi[sz]er|update|checkpoint|global|next|action|recommended)\s+$", re.I
)
_BEHIND = re.compile(r"\s*\(?(?:in|of|for)\s+(?:the\s+)?(?:task\s+|rollout\s+|failing\s+|passing\s+)*", re.I)
# `the failing repeat 3`, and not `they repeat 3 calls`
_NOUN = re.compile(
    r"(?:^|[,;:(`\d]|\b(?:the|in|of|at|for|on|from|its|this|failing|passing|failed|passed|and|or|than|also))\s*$",
    re.IGNORECASE,
)
_ID_HEAD = re.compile(r"(?:task|rollout)(?:[ _-](?:id|index|key|name))?", re.IGNORECASE)
_LIST = re.compile(r"\d{1,9}(?:/\d{1,8})?(?:(?:, | and |, and )\d{1,9}(?:/\d{1,8})?)+")


def with_noun(passage: Passage) -> str:
    """A passage; a cell of a column of ids has the word before it that says so."""
    cell, head = passage.own.strip(), passage.header.strip()
    if _ID_HEAD.fullmatch(head) and re.fullmatch(r"`?[\w.#@:+/-]+`?", cell):
        return f"task {cell}"
    is_list = head.lower() in ("tasks", "rollouts", "which") and _LIST.fullmatch(cell)
    return f"tasks {cell}" if is_list else passage.own


class Ids:
    """The ids of one passage."""

    def __init__(self, passage: Passage, world: World) -> None:
        self.passage, self.rows = passage, world.rows
        text = with_noun(passage)
        self.text = blanked(text, [(start, end) for _, start, end in quotes_in(text)])
        self.here = mentions(self.text, self.rows)
        self.runs = runs_named(" ".join((*passage.headings, passage.text)), self.rows.runs)

    def findings(self) -> Iterator[Finding]:
        """What became of every task, rollout, repeat and step that the passage names."""
        for mention in self.here:
            yield from self._exists(mention)
        names = [name for name in numbered(self.text) if name.kind in (STEP, REPEAT)]
        around = self.here or (self._around() if names else ())
        repeats = [name for name in names if name.kind == REPEAT]
        yield from self._repeats(repeats, around)
        numbers = {number for name in repeats for number in name.numbers}
        tasks = {mention.address.rollout for mention in self.here}
        is_one = len(numbers) == len(tasks) == 1 and tasks.pop().repeat is None
        repeat = numbers.pop() if is_one else None
        for name in names if around else ():
            if name.kind == STEP and not _OTHERS.search(self.text[: name.start]):
                yield from self._step(name, around, repeat)

    def _around(self) -> Sequence[Mention]:
        """The rollout named last before the sentence, else in the nearest heading that names any."""
        texts = (self.passage.before[-2000:], *reversed(self.passage.headings))
        return next((found[-1:] for text in texts if (found := mentions(text, self.rows))), ())

    def _exists(self, mention: Mention) -> Iterator[Finding]:
        place, printed = mention.address.rollout, self.text[mention.start : mention.end]
        printed = str(place) if re.search(r",| and | or ", printed) else printed
        if place.task in self.rows.ambiguous:
            why = f"{place.task} is the index of one task and the name of another"
            yield self._finding(UNVERIFIABLE, printed, why)
            return
        known = self.rows.repeats(place.task, self.runs) or self.rows.repeats(place.task, self.rows.runs)
        if place.repeat in known or (place.repeat is None and place.task in self.rows.names):
            yield self._finding(SUPPORTED, printed, f"{place} exists", place)
        elif mention.is_sure:
            expected = f"task {place.task} has the repeats {min(known)} to {max(known)}" if known else ""
            kind = "task" if place.repeat is None else "rollout"
            yield self._finding(CONTRADICTED, printed, f"there is no {kind} {place}", expected=expected)

    def _repeats(self, names: Sequence[Numbered], around: Sequence[Mention]) -> Iterator[Finding]:
        tasks = sorted({mention.address.task for mention in around})
        known = self.rows.repeats(tasks[0], self.rows.runs) if len(tasks) == 1 else set()
        for name in names if known else ():
            if any(mention.start <= name.start < mention.end for mention in self.here):
                continue  # part of an id
            if all(number in known or number == len(known) for number in name.numbers):  # some count from one
                yield self._finding(SUPPORTED, name.text, "the task has such a repeat")
            elif _NOUN.search(self.text[: name.start]):
                expected = f"task {tasks[0]} has the repeats {min(known)} to {max(known)}"
                yield self._finding(CONTRADICTED, name.text, "there is no such repeat", expected=expected)

    def _step(self, name: Numbered, around: Sequence[Mention], repeat: int | None) -> Iterator[Finding]:
        places = [mention.address.rollout for mention in around]
        places = [Address(one.task, repeat) if one.repeat is None else one for one in places]
        place = places[self._nearest(name) if self.here else -1]
        lengths = {one: self._length(one) for one in places}
        if max(name.numbers) < lengths[place]:
            yield self._finding(SUPPORTED, name.text, f"{place} has such a step", place)
        elif max(name.numbers) > max(lengths.values()) > 0:
            expected = f"{place} has {lengths[place]} steps, counted from 0"
            yield self._finding(CONTRADICTED, name.text, "there is no such step", expected=expected)

    def _nearest(self, name: Numbered) -> int:
        """`step 4 of 2/0`, else the rollout that is named last before it, else the first one."""
        places = [n for n, mention in enumerate(self.here) if mention.start >= name.end][:1]
        if places and _BEHIND.fullmatch(self.text[name.end : self.here[places[0]].start].rstrip("`")):
            return places[0]
        return max((n for n, mention in enumerate(self.here) if mention.end <= name.start), default=0)

    def _length(self, place: Address) -> int:
        """The steps of the longest rollout that may be meant."""
        traces = [trace for run in self.runs for trace in self.rows.at(run, place.task, place.repeat)]
        return max((len(trace.steps) for trace in traces), default=0)

    def _finding(
        self, verdict: str, printed: str, why: str, place: Address | None = None, expected: str = ""
    ) -> Finding:
        where = (self.passage.line, self.passage.lines, self.passage.text, printed, expected)
        return Finding(verdict, "id", *where, "", why, tasks=(str(place),) if place is not None else ())
