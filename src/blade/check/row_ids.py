"""Read the tasks, rollouts, repeats and steps that a report names, and check that they exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from blade.check.markdown_document import Passage, blanked, quotes_in
from blade.check.report_ground import Rows, World
from blade.check.vocabulary import compiled
from blade.formats.rollout_steps import NOTHING, value_at
from blade.model import Trace
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding

STEP, REPEAT, TASK = "step", "repeat", "task"
MAX_NAMED = 100  # tasks of one sentence
# What a number counts, or is a share of, stands behind it; a number that is not whole names nothing.
_RANGE = r"(?:\s?[-–—]\s?|\s+(?:up\s+)?to\s+|\s+through\s+)"
_AT = r"/(?P<repeat>\d{1,8})#(?P<where>\w+(?:[.\[\]-]+\w+)*)`"
_HASH = re.compile(rf"(?<![\w/#.-])`?(?P<task>\w[\w.@:+-]{{0,200}}(?:/[\w.@:+-]+){{0,8}}?){_AT}?")
_CODED = re.compile(rf"`(?P<task>[^`\n]{{1,400}}){_AT}")  # a known task may hold any sign
_WORD = re.compile(r"`(?P<code>[^`\s]{1,200})`|(?<![\w./-])(?P<bare>[\w.#@:+-]*\w(?:/\d{1,8})?)(?![\w/%-])")
_FIELD = re.compile(r"\bfield\s+`(?P<field>[^`]{1,200})`", re.IGNORECASE)
_OF = re.compile(r"`?\s*(?:\(\s*\d|%|=|(?:of|(?:task|rollout|repeat|attempt|time)s?|pass|fail)\b)", re.I)


class Address(msgspec.Struct, frozen=True):
    """A rollout, or a task, and the steps or the field of it."""

    task: str
    repeat: int | None = None
    steps: tuple[int, ...] = ()
    field: str | None = None
    run: str = ""
    is_pinned: bool = False  # the step belongs to the address itself: 12/0#4

    @property
    def rollout(self) -> Address:
        return Address(self.task, self.repeat)

    def __str__(self) -> str:
        place = self.task if self.repeat is None else f"{self.task}/{self.repeat}"
        if self.steps:
            return f"{place}, step {', '.join(map(str, self.steps))}"
        return f"{place}, field {self.field}" if self.field else place


class Numbered(msgspec.Struct, frozen=True):
    """Numbers right behind the word for what they number: `steps 4 and 7`."""

    kind: str
    numbers: tuple[int, ...]  # all of a short range
    start: int
    end: int
    text: str


class Mention(msgspec.Struct, frozen=True):
    """A task or rollout, and where a text names it."""

    address: Address
    start: int
    end: int
    is_sure: bool  # it can be nothing but an id


@lru_cache(maxsize=20_000)
def numbered(text: str) -> tuple[Numbered, ...]:
    """What a text names by its number, in order; `4 steps` and `steps: 4` are amounts."""
    addresses = []
    for hit in compiled("numbered").finditer(text):
        digits = hit["number"] or hit["numbers"]
        numbers = [int(number) for number in re.findall(r"\d+", digits)]
        if re.search(_RANGE, digits) and len(numbers) == 2 and 0 < numbers[1] - numbers[0] < 200:
            numbers = list(range(numbers[0], numbers[1] + 1))
        addresses.append(Numbered((hit["one"] or hit["some"]).lower(), tuple(numbers), *hit.span(), hit[0]))
    return tuple(addresses)


def steps_in(text: str) -> tuple[int, ...]:
    """The steps that a text names."""
    return tuple(dict.fromkeys(n for name in numbered(text) if name.kind == STEP for n in name.numbers))


def step_spans(text: str) -> list[tuple[int, int]]:
    """Where a text names a step: `step 4`, `12/0#4`."""
    names = [(name.start, name.end) for name in numbered(text) if name.kind == STEP]
    return sorted([*names, *(hit.span() for hit in _HASH.finditer(text))])


@lru_cache(maxsize=20_000)
def mentions(text: str, rows: Rows) -> tuple[Mention, ...]:
    """The tasks and rollouts that a text names, in order."""
    coded = {hit.end(): hit for hit in _CODED.finditer(text) if hit["task"] in rows.names}
    all_mentions = [_pinned(coded.get(hit.end(), hit)) for hit in _HASH.finditer(text)]
    taken = bytearray(len(text))
    lists = [name for name in numbered(text) if name.kind == TASK and len(name.numbers) > 1]
    all_mentions += [Mention(Address(str(n)), name.start, name.end, True) for name in lists for n in name.numbers]
    for mention in all_mentions:
        taken[mention.start : mention.end] = b"x" * (mention.end - mention.start)
    for pattern, read in ((compiled("noun"), _noun), (_WORD, _word)):
        for hit in pattern.finditer(text):
            other = None if any(taken[hit.start() : hit.end()]) else read(hit, rows)
            if other is not None:
                all_mentions.append(other)
                taken[hit.start() : hit.end()] = b"x" * len(hit[0])
    return tuple(sorted(all_mentions, key=lambda mention: mention.start))


def _pinned(hit: re.Match[str]) -> Mention:
    where = hit["where"]
    steps = (int(where),) if where.isdecimal() and len(where) < 9 else ()
    address = Address(hit["task"], int(hit["repeat"]), steps, None if steps else where, is_pinned=True)
    return Mention(address, *hit.span(), True)


def _noun(hit: re.Match[str], rows: Rows) -> Mention | None:
    word = (hit["code"] or hit["bare"]).strip(".,;: ")
    is_marked = hit["code"] is not None or hit["noun"].lower() == TASK or "/" in word
    address = address_of(word, rows, is_marked)
    if address is None:
        return None
    repeat = hit["repeat"] or hit["nth"]
    if repeat and address.repeat is None:
        address = Address(address.task, int(repeat))
    is_id = re.fullmatch(r"(?:0|[1-9]\d{0,5})(?:/\d+)?", word) is not None or address.task in rows.names
    return Mention(address, *hit.span(), is_marked and is_id and not (hit["many"] and hit["bare"]))


def _word(hit: re.Match[str], rows: Rows) -> Mention | None:
    """A word that is an id without saying so: `4/1`, or the name of a task."""
    word, text, is_code = hit["code"] or hit["bare"], hit.string, hit["code"] is not None
    if word.isdigit() or (not is_code and not re.search(r"\d", word)):
        return None
    is_ratio = re.fullmatch(r"\d+/\d+", word) is not None
    before = text[max(0, hit.start() - 40) : hit.start()]
    if is_ratio and (compiled("fraction").search(before) or _OF.match(text, hit.end())):
        return None
    address = address_of(word, rows, False)
    is_sure = is_code or address is None or address.repeat is None
    if address is None or not (is_sure or address.repeat in rows.repeats(address.task, rows.runs)):
        return None
    return Mention(address, *hit.span(), is_code)


def address_of(word: str, rows: Rows, is_marked: bool) -> Address | None:
    """A word as a rollout or task; an unknown one only if it could be nothing else."""
    if word in rows.names:
        return Address(word)
    task, slash, repeat = word.rpartition("/")
    if slash and repeat.isdecimal() and len(repeat) < 9 and (task in rows.names or is_marked):
        return Address(task, int(repeat))
    return Address(word) if is_marked and re.search(r"\d", word) and not slash else None


def addresses(text: str, rows: Rows) -> tuple[Address, ...]:
    """The rollouts and tasks that a text names, with the steps and the field that it names."""
    every, field = [mention.address for mention in mentions(text, rows)], _FIELD.search(text)
    pinned = dict.fromkeys(address for address in every if address.is_pinned)
    others = dict.fromkeys(address.rollout for address in every)
    wide = {"steps": steps_in(text), "field": field["field"] if field else None}
    left = [place for place in others if place not in {address.rollout for address in pinned}]
    return (*pinned, *(msgspec.structs.replace(place, **wide) for place in left))


def without_steps(places: tuple[Address, ...], even_pinned: bool = False) -> tuple[Address, ...]:
    """The same places; steps that the text names for something else are left out."""
    return tuple(place if place.is_pinned and not even_pinned else place.rollout for place in places)


def leading(text: str, rows: Rows) -> Address | None:
    """The rollout that a line begins with, in backticks; with all steps of the line if one is behind it."""
    hit = compiled("lead").match(text)
    if hit is None:
        return None
    if pinned := _HASH.fullmatch(f"`{hit['code']}`"):
        return _pinned(pinned).address
    address = address_of(hit["code"], rows, bool(hit["steps"]) and "/" in hit["code"])
    steps = steps_in(text) if hit["steps"] else ()
    return msgspec.structs.replace(address, steps=steps) if address is not None else None


@lru_cache(maxsize=20_000)
def named(text: str, rows: Rows) -> tuple[str, ...]:
    """The tasks and rollouts that a text names first, by their keys: 12, 12/0."""
    places = [mention.address for mention in mentions(text, rows)[:MAX_NAMED]]
    keys = [(key, place.repeat) for place in places for key in rows.keys(place.task)]
    return tuple(dict.fromkeys(key if repeat is None else f"{key}/{repeat}" for key, repeat in keys))


def runs_named(text: str, runs: tuple[str, ...]) -> tuple[str, ...]:
    """The runs that a text names; all of them if it names none."""
    marks = [(run, re.escape(run) if len(run) > 2 else f"`{re.escape(run)}`") for run in runs[1:] and runs]
    return tuple(run for run, mark in marks if re.search(rf"(?<![\w-]){mark}(?![\w-])", text)) or runs

_BEHIND = re.compile(r"\s*\(?(?:in|of|for)\s+(?:the\s+)?(?:task\s+|rollout\s+|failing\s+|passing\s+)*", re.I)
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
        # the rollout named last before the sentence, else in the nearest heading that names any
        texts = (self.passage.before[-2000:], *reversed(self.passage.headings)) if names else ()
        around = self.here or next((near[-1:] for text in texts if (near := mentions(text, self.rows))), ())
        repeats = [name for name in names if name.kind == REPEAT]
        yield from self._repeats(repeats, around)
        numbers = {number for name in repeats for number in name.numbers}
        tasks = {mention.address.rollout for mention in self.here}
        is_one = len(numbers) == len(tasks) == 1 and tasks.pop().repeat is None
        repeat = numbers.pop() if is_one else None
        for name in names if around else ():
            if name.kind == STEP and not compiled("others").search(self.text[: name.start]):
                yield from self._step(name, around, repeat)

    def _exists(self, mention: Mention) -> Iterator[Finding]:
        place, printed = mention.address.rollout, self.text[mention.start : mention.end]
        printed = str(place) if re.search(r",| and | or ", printed) else printed
        if place.task in self.rows.ambiguous and not mention.address.is_pinned:
            why = f"{place.task} is the index of one task and the name of another"
            yield self._finding(UNVERIFIABLE, printed, why)
            return
        known = self.rows.repeats(place.task, self.runs) or self.rows.repeats(place.task, self.rows.runs)
        if place.repeat in known or (place.repeat is None and place.task in self.rows.names):
            yield self._pinned(mention, printed) or self._finding(SUPPORTED, printed, f"{place} exists")
        elif mention.is_sure and compiled("absent").search(self.text):
            yield self._finding(UNVERIFIABLE, printed, f"{place} is none of this run")
        elif mention.is_sure:
            expected = f"task {place.task} has the repeats {min(known)} to {max(known)}" if known else ""
            kind = "task" if place.repeat is None else "rollout"
            yield self._finding(CONTRADICTED, printed, f"there is no {kind} {place}", expected)

    def _pinned(self, mention: Mention, printed: str) -> Finding | None:
        """What is wrong with the step or the field of an address: `12/0#77`."""
        place, traces = mention.address, self._traces(mention.address)
        length = max((len(trace.steps) for trace in traces), default=0)
        if traces and place.steps and place.steps[0] >= length:
            expected = f"{place.rollout} has {length} steps, counted from 0"
            return self._finding(CONTRADICTED, printed, "there is no such step", expected)
        if traces and place.field and all(value_at(trace.row, place.field) is NOTHING for trace in traces):
            return self._finding(CONTRADICTED, printed, f"no row has the field {place.field}")
        return None

    def _repeats(self, names: Sequence[Numbered], around: Sequence[Mention]) -> Iterator[Finding]:
        tasks = sorted({mention.address.task for mention in around})
        known = self.rows.repeats(tasks[0], self.rows.runs) if len(tasks) == 1 else set()
        for name in names if known else ():
            if any(mention.start <= name.start < mention.end for mention in self.here):
                continue  # part of an id
            if all(number in known or number == len(known) for number in name.numbers):  # some count from one
                yield self._finding(SUPPORTED, name.text, "the task has such a repeat")
            elif compiled("before_repeat").search(self.text[: name.start]):
                expected = f"task {tasks[0]} has the repeats {min(known)} to {max(known)}"
                yield self._finding(CONTRADICTED, name.text, "there is no such repeat", expected)

    def _step(self, name: Numbered, around: Sequence[Mention], repeat: int | None) -> Iterator[Finding]:
        places = [mention.address.rollout for mention in around]
        places = [Address(address.task, repeat) if address.repeat is None else address for address in places]
        place = places[self._nearest(name) if self.here else -1]
        lengths = {address: max((len(trace.steps) for trace in self._traces(address)), default=0) for address in places}
        if max(name.numbers) < lengths[place]:
            yield self._finding(SUPPORTED, name.text, f"{place} has such a step")
        elif max(name.numbers) > max(lengths.values()) > 0:
            expected = f"{place} has {lengths[place]} steps, counted from 0"
            yield self._finding(CONTRADICTED, name.text, "there is no such step", expected)

    def _nearest(self, name: Numbered) -> int:
        """`step 4 of 2/0`, else the rollout that is named last before it, else the first one."""
        places = [n for n, mention in enumerate(self.here) if mention.start >= name.end][:1]
        if places and _BEHIND.fullmatch(self.text[name.end : self.here[places[0]].start].rstrip("`")):
            return places[0]
        return max((n for n, mention in enumerate(self.here) if mention.end <= name.start), default=0)

    def _traces(self, place: Address) -> list[Trace]:
        return [trace for run in self.runs for trace in self.rows.at(run, place.task, place.repeat)]

    def _finding(self, verdict: str, printed: str, why: str, expected: str = "") -> Finding:
        where = (self.passage.line, self.passage.lines, self.passage.text, printed, expected)
        return Finding(verdict, "id", *where, "", why)
