"""Read the tasks, rollouts, repeats and steps that a text names."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from blade.check.row_texts import Address
from blade.check.world import Rows

STEP, REPEAT, TASK = "step", "repeat", "task"
MAX_NAMED = 100  # tasks of one sentence
_WORDS = "step|repeat|attempt|trial|rollout|row|turn|line|index|task|message|episode|position|order"
# What a number counts, or is a share of, stands behind it; a number that is not whole names nothing.
_COUNTED = (
    r"times|percent|points?|pp|tasks|rollouts|rows|attempts|trials|tokens|seconds|minutes|hours|messages|failures"
    r"|others?|more|fewer|less"
)
_DOES = r"calls|runs|turns|steps|passes|repeats|lines|errors"  # `repeat 1 calls` it, and `7 calls`
_DIGITS = r"#?\d{1,6}(?![\w@^/]|[.,:]\d|\s?%|\s+(?:[a-z]+(?:ing|ed|er|nt)\s+)?"
_NUMBER = rf"{_DIGITS}(?:{_COUNTED})\b)"
_NEXT = rf"{_DIGITS}(?:{_COUNTED}|{_DOES})\b)"
_RANGE = r"(?:\s?[-–—]\s?|\s+(?:up\s+)?to\s+|\s+through\s+)"
_NUMBERED = re.compile(
    r"(?<![\w`-])(?<!per )(?<!each )(?<!every )(?<!another )"
    rf"(?:(?P<one>{_WORDS})\s+(?P<number>{_NUMBER}(?:(?:{_RANGE}|\s+(?:and|or|&)\s+){_NEXT})*)"
    rf"|(?P<some>{_WORDS})s\s+(?P<numbers>{_NUMBER}(?:(?:{_RANGE}|,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+){_NEXT})+))",
    re.IGNORECASE,
)
_HASH = re.compile(
    r"(?<![\w/#.-])`?(?P<task>\w[\w.@:+-]{0,200}(?:/[\w.@:+-]+){0,8}?)/(?P<repeat>\d{1,8})#"
    r"(?P<where>\w+(?:[.\[\]-]+\w+)*)`?"
)
_NOUN = re.compile(
    r"\b(?:(?:rollout|repeat)\s+(?P<nth>\d{1,8})\s+(?:of|in|for)\s+)?(?P<noun>task|rollout)(?P<many>s?)\s+"
    r"(?:`(?P<code>[^`]{1,200})`|(?P<bare>[\w.#@:+-]*\w(?:/\d{1,8})?)(?![\w/]))"
    r"(?:[,\s]*\(?(?:repeat|rollout)\s+(?P<repeat>\d{1,8})(?![\d/]))?",
    re.IGNORECASE,
)
_WORD = re.compile(r"`(?P<code>[^`\s]{1,200})`|(?<![\w./-])(?P<bare>[\w.#@:+-]*\w(?:/\d{1,8})?)(?![\w/%-])")
_FIELD = re.compile(r"\bfield\s+`(?P<field>[^`]{1,200})`", re.IGNORECASE)
# Beside a fraction: `passes 2/4`, `2/4 of them`, `2/4 (50%)`.
_FRACTION = re.compile(
    r"(?:pass\w*|fail\w*|solv\w*|scor\w*|succe\w*|got|reach\w*|=|\bis|\bwas|\bat|rate|score)\s*:?\s*`?$", re.I
)
_OF = re.compile(r"`?\s*(?:of\b|\(\s*\d|%|=|(?:task|rollout|repeat|attempt|time)s?\b|(?:pass|fail|correct)\b)", re.I)


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
    found = []
    for hit in _NUMBERED.finditer(text):
        digits = hit["number"] or hit["numbers"]
        numbers = [int(number) for number in re.findall(r"\d+", digits)]
        if re.search(_RANGE, digits) and len(numbers) == 2 and 0 < numbers[1] - numbers[0] < 200:
            numbers = list(range(numbers[0], numbers[1] + 1))
        found.append(Numbered((hit["one"] or hit["some"]).lower(), tuple(numbers), *hit.span(), hit[0]))
    return tuple(found)


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
    found, taken = [_pinned(hit) for hit in _HASH.finditer(text)], bytearray(len(text))
    lists = [name for name in numbered(text) if name.kind == TASK and len(name.numbers) > 1]
    found += [Mention(Address(str(n)), name.start, name.end, True) for name in lists for n in name.numbers]
    for mention in found:
        taken[mention.start : mention.end] = b"x" * (mention.end - mention.start)
    for pattern, read in ((_NOUN, _noun), (_WORD, _word)):
        for hit in pattern.finditer(text):
            other = None if any(taken[hit.start() : hit.end()]) else read(hit, rows)
            if other is not None:
                found.append(other)
                taken[hit.start() : hit.end()] = b"x" * len(hit[0])
    return tuple(sorted(found, key=lambda mention: mention.start))


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
    is_id = word.replace("/", "", 1).isdecimal() or address.task in rows.names
    return Mention(address, *hit.span(), is_marked and is_id and not (hit["many"] and hit["bare"]))


def _word(hit: re.Match[str], rows: Rows) -> Mention | None:
    """A word that is an id without saying so: `4/1`, or the name of a task."""
    word, text, is_code = hit["code"] or hit["bare"], hit.string, hit["code"] is not None
    if word.isdigit() or (not is_code and not re.search(r"\d", word)):
        return None
    is_ratio = re.fullmatch(r"\d+/\d+", word) is not None
    before = text[max(0, hit.start() - 40) : hit.start()]
    if is_ratio and (_FRACTION.search(before) or _OF.match(text, hit.end())):
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
    steps, field, found = steps_in(text), _FIELD.search(text), dict[Address, Address]()
    for address in (mention.address for mention in mentions(text, rows)):
        wide = msgspec.structs.replace(address, steps=steps, field=field["field"] if field else None)
        found.setdefault(address.rollout, address if address.is_pinned else wide)
    return tuple(found.values())


def without_steps(places: tuple[Address, ...], even_pinned: bool = False) -> tuple[Address, ...]:
    """The same places; steps that the text names for something else are left out."""
    return tuple(place if place.is_pinned and not even_pinned else place.rollout for place in places)


_LEAD = re.compile(
    r"\W*(?:(?:in|see|from|task|rollout|failing|passing|example)\b\W*){0,3}`(?P<code>[^`\s]{1,200})`"
    r"(?:\W*\(?(?:at\s+)?(?P<steps>steps?\s+\d))?",
    re.IGNORECASE,
)


def leading(text: str, rows: Rows) -> Address | None:
    """The rollout that a line begins with, in backticks; with all steps of the line if one stands behind it.

    What such a line says of other steps may be what is quoted.
    """
    hit = _LEAD.match(text)
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
    found = [(key, place.repeat) for place in places for key in rows.keys(place.task)]
    return tuple(dict.fromkeys(key if repeat is None else f"{key}/{repeat}" for key, repeat in found))


def runs_named(text: str, runs: tuple[str, ...]) -> tuple[str, ...]:
    """The runs that a text names; all of them if it names none."""
    marks = [(run, re.escape(run) if len(run) > 2 else f"`{re.escape(run)}`") for run in runs[1:] and runs]
    return tuple(run for run, mark in marks if re.search(rf"(?<![\w-]){mark}(?![\w-])", text)) or runs
