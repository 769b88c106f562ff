"""Find what a sentence mentions: runs, tasks, slices, measures, states, causes, units and amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from blade.check.reader import lexicon
from blade.check.reader.ground import Ground
from blade.check.reader.quantities import Quantity, quantities

RUN, TASK, ADDRESS, SLICE, MODE, METRIC, STATE, CAUSE, UNIT, AMOUNT, OPAQUE = "RTALDMSCNQX"
_MARK = {letter: chr(0xE000 + ord(letter)) for letter in "RTALDMSCNQX"}
_LETTER = {mark: letter for letter, mark in _MARK.items()}


class Mention(msgspec.Struct, frozen=True):
    """Something a sentence names: its kind, what it is, and where it stands."""

    kind: str
    names: tuple[str, ...]  # run names; task ids; field and value; measure and k; state; cause; unit
    start: int
    end: int
    amount: Quantity | None = None
    text: str = ""


class Sentence(msgspec.Struct, frozen=True):
    """A text, its mentions in order, and its shape: the text with one mark in place of each mention."""

    text: str
    mentions: tuple[Mention, ...]
    shape: str
    places: tuple[int, ...]  # position in the shape -> position in the text
    at: dict[int, Mention]  # position in the shape -> mention

    def of(self, kind: str) -> list[Mention]:
        return [one for one in self.mentions if one.kind == kind]


def pattern(text: str) -> re.Pattern[str]:
    """A pattern over shapes: <Q> is the mark of an amount, <SCD> that of a state, a cause or a mode."""
    told = re.sub(r"<([A-Z]+)>", lambda hit: "[" + "".join(_MARK[one] for one in hit[1]) + "]", text)
    return re.compile(told, re.IGNORECASE)


def letters(shape: str) -> str:
    """The kinds of the mentions of a shape, in order."""
    return "".join(_LETTER.get(one, "") for one in shape)


_TOKEN = re.compile(r"[^\W_](?:[\w.:#+-]*\w)?(?:[/=][\w.:#+-]*\w)*", re.UNICODE)
_CODE = re.compile(r"(?<!`)(`{1,9})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_QUOTE = re.compile(r"“[^“”]{0,2000}”|(?<!\w)\"[^\"\n]{1,2000}\"(?!\w)|(?<!\w)'[^'\n]{1,80}'(?!\w)")
_INTERVAL = re.compile(
    r"[\[(](?:\d+% ?(?:CI|interval|confidence interval)[:,]? ?)?[-+−]?\d[\d.]*\s?%?\s?(?:,|to|–|-|;)\s?"
    r"[-+−]?\d[\d.]*\s?(?:%|points?|pp)?\s?[\])]"
    r"|\b\d+% ?(?:CI|confidence)\b[^,;)]*|±\s?\d[\d.]*\s?(?:%|pp|points?)?|\bp\s?[<=>]\s?0?\.\d+|"
    r"\bn\s?=\s?\d+",
    re.IGNORECASE,
)
_ID = r"(?:`[^`]{1,120}`|#?\w(?:[\w.:/-]{0,118}\w)?)"
_TASKS = re.compile(
    rf"\b(?P<word>tasks?(?: ids?)?|problems?|questions?|instances?|rollouts?|"
    rf"attempts?)[ #:]+(?P<ids>(?:no\.? )?{_ID}(?:(?:,| and|, and| or|, or|/| &)\s+{_ID})*)",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s*(?:(?:up )?to|through|–|—)\s*(\d{1,5})\b")
_SPLIT = re.compile(r",? (?:and|or|&) |, ?")
_ADDRESS = re.compile(r"(?P<task>.+)/(?P<repeat>\d{1,6})")
_METRICS = lexicon.compiled(lexicon.METRICS)
_STATES = lexicon.compiled(lexicon.STATES)
_UNITS = lexicon.compiled(lexicon.UNITS)
_CAUSES = lexicon.compiled(lexicon.CAUSES)
_CODES = re.compile(r"\b(?:KG|UK|BI|TI|IR|DA)\b")
_ONE = re.compile(r"\b(?:one|an?|single|each|first|second|another|this|that|full|quick)\s$", re.IGNORECASE)
# what was scored has a score, and it is not said which
_BE_SCORED = re.compile(
    r"\b(?:is|are|was|were|be|been|being|get|gets|got)\s+(?:all\s+|not\s+|fully\s+)?$", re.IGNORECASE
)
_ROUND = re.compile(r"pass(?:es)?\s+(?:over|through|across|per)\b", re.IGNORECASE)


class Reader:
    """The names of the runs and their parts, once, and sentences read by them."""

    MOST_WORDS = 6
    MOST_SENTENCES = 4_000  # that are kept: headings and sentences before one are read again for each below

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.sentence = lru_cache(maxsize=self.MOST_SENTENCES)(self._sentence)
        self.tasks: dict[str, str] = {key: key for run in ground.runs.values() for key in run.tasks}
        self.named: dict[str, str] = {}  # names that are the key of another task: either may be meant
        for run in ground.runs.values():
            for key, task in run.tasks.items():
                if self.tasks.setdefault(task.task_name, key) != key:
                    self.named.setdefault(task.task_name, key)
        self.entities: dict[tuple[str, ...], tuple[str, tuple[str, ...]]] = {}
        self.loose: dict[str, tuple[str, str]] = {}  # values of slices that are common words too: easy, other
        self._name_runs()
        self._name_parts()
        self.longest = min(self.MOST_WORDS, max((len(words) for words in self.entities), default=0))
        self.has_numbers = any(key.isdigit() for key in self.tasks)

    def _name_runs(self) -> None:
        called: dict[str, list[str]] = {}
        for run in self.ground.report.runs:
            for name in {run.name, run.model, run.agent} - {None}:
                assert name is not None
                for form in {name, name.rpartition("/")[2]}:
                    called.setdefault(form.lower(), []).append(run.name)
        for name, runs in called.items():
            words = _words(name)
            if words and not (len(words) == 1 and words[0] in lexicon.HARMLESS):
                self.entities[words] = (RUN, tuple(dict.fromkeys(runs)))
        self._name_short(called)

    def _name_short(self, called: dict[str, list[str]]) -> None:
        """`the RL model`: a run by a part of its name that no other run has."""
        having: dict[str, set[str]] = {}
        for name, runs in called.items():
            for part in re.findall(r"[a-z][a-z0-9]+", name):
                having.setdefault(part, set()).update(runs)
        for part, of in having.items():
            if len(of) == 1 and len(self.ground.runs) > 1 and part not in lexicon.HARMLESS:
                for noun in ("model", "run", "checkpoint"):
                    self.entities.setdefault((part, noun), (RUN, tuple(of)))
        marks = ("ft", "sft", "finetuned", "tuned")
        tuned = {run for part, of in having.items() if part in marks for run in of}
        if len(tuned) == 1 and len(self.ground.runs) > 1:
            for part in ("fine-tuned", "finetuned", "tuned"):
                for noun in ("model", "run", "checkpoint", "one"):
                    self.entities.setdefault((part, noun), (RUN, tuple(tuned)))

    def _name_parts(self) -> None:
        values: dict[tuple[str, ...], set[tuple[str, str]]] = {}
        for one in self.ground.report.slices:
            told = (one.field, one.value)
            self.entities.setdefault(_words(f"{one.field}={one.value}"), (SLICE, told))
            values.setdefault(_words(one.value), set()).add(told)
            field = one.field.rpartition(".")[2]
            self.entities.setdefault(_words(f"{field} {one.value}"), (SLICE, told))
            self.entities.setdefault(_words(f"{field}={one.value}"), (SLICE, told))
            self.entities.setdefault(_words(f"{one.value} {field}"), (SLICE, told))
        for words, told_of in values.items():
            plain = words and len(words[0]) > 2 and not words[0].isdigit() and not (set(words) & _COMMON)
            if plain and len(told_of) == 1:
                self.entities.setdefault(words, (SLICE, next(iter(told_of))))
            elif len(words) == 1 and len(told_of) == 1 and words[0].isalpha() and len(words[0]) > 2:
                self.loose[words[0]] = next(iter(told_of))
        modes = {one.detector for one in self.ground.report.behaviours}
        modes |= {one.mode for one in self.ground.report.attributions}
        for mode in sorted(modes):
            for form in (mode, mode.replace("_", " ")):
                words = _words(form)
                if words and not (len(words) == 1 and words[0] in _COMMON):
                    self.entities.setdefault(words, (MODE, (mode,)))
        for name, key in self.tasks.items():
            words = _words(name)
            if re.search(r"\d", name) and re.search(r"[^\W\d]", name) and len(name) >= 4:
                self.entities.setdefault(words, (TASK, (key,)))

    def either(self, key: str) -> tuple[str, ...]:
        """The tasks that may be meant: the one with this key, and one with this name."""
        return (key, self.named[key]) if key in self.named else (key,)

    # --- one sentence --------------------------------------------------------------------------------

    def _sentence(self, text: str) -> Sentence:
        """A sentence with everything in it that has a name."""
        free = _Free(text)
        for one in self._found(free):
            free.take(one)
        return _shaped(text, free.taken)

    def _found(self, free: _Free) -> Iterator[Mention]:
        for hit in _TASKS.finditer(free.text):
            yield from self._listed(hit)
        yield from self._spans(free)
        yield from self._entities(free)
        yield from self._loose(free)
        yield from (_blank(hit) for hit in _INTERVAL.finditer(free.left()))
        for hit in lexicon.BASELINE.finditer(free.left()):
            yield from self._role(hit, 0)
        for hit in lexicon.CANDIDATE.finditer(free.left()):
            yield from self._role(hit, 1)
        for hit in _METRICS.finditer(free.low()):
            if hit[0] != "scored" or not _BE_SCORED.search(free.text[: hit.start()]):
                yield _measured(hit, free.text)
        for hit in _CODES.finditer(free.left()):
            yield Mention(CAUSE, (hit[0],), hit.start(), hit.end(), text=hit[0])
        for kind, found, table in ((CAUSE, _CAUSES, lexicon.CAUSES), (STATE, _STATES, lexicon.STATES),
                                   (UNIT, _UNITS, lexicon.UNITS)):  # fmt: skip
            for hit in found.finditer(free.low()):
                text = free.text[hit.start() : hit.end()]
                if (
                    kind == STATE
                    and _ROUND.match(free.text, hit.start())
                    and _ONE.search(free.text[: hit.start()])
                ):
                    continue  # one pass over the tasks is a round, no success
                yield Mention(kind, (lexicon.which(hit, table),), hit.start(), hit.end(), text=text)
        for amount in quantities(free.left(), free.text):
            yield Mention(AMOUNT, (), amount.start, amount.end, amount, amount.text)

    def _role(self, hit: re.Match[str], at: int) -> Iterator[Mention]:
        runs = self.roles()
        if runs is not None:
            yield Mention(RUN, (runs[at],), hit.start(), hit.end(), text=hit[0])

    def roles(self) -> tuple[str, str] | None:
        """Baseline and candidate, where there are exactly two runs."""
        told = self.ground.report.comparisons
        if len(told) == 1:
            return told[0].baseline, told[0].candidate
        runs = tuple(self.ground.runs)
        return (runs[0], runs[1]) if len(runs) == 2 and not told else None

    def _listed(self, hit: re.Match[str]) -> Iterator[Mention]:
        """`tasks 3, 5 and 9`: what is no task ends the list."""
        word, ids = hit["word"].lower(), hit["ids"]
        at, found, end = 0, [], hit.start("ids")
        for part in [*_SPLIT.finditer(ids), None]:
            piece = ids[at : part.start() if part else len(ids)].removeprefix("no. ").removeprefix("no ")
            name = piece.strip().strip("`").lstrip("#").rstrip(".:")
            known = self._id(name, word)
            if known is None:
                break
            found.append(known)
            end = hit.start("ids") + at + len(piece.rstrip(".:"))
            if part is None:
                break
            at = part.end()
        colon = ":" in hit.string[hit.start() : hit.start("ids")] and not ids.startswith("`")
        if len(found) == 1 and found[0].isdigit() and colon:
            return  # one number behind a colon is a count
        rest = hit.string[end:]
        if (more := _RANGE.match(rest)) and found and found[-1].isdigit():
            ids_between = [str(one) for one in range(int(found[-1]), int(more[1]) + 1)]
            if len(ids_between) > 1 and all(one in self.tasks for one in ids_between):
                found, end = [*found[:-1], *(self.tasks[one] for one in ids_between)], end + more.end()
                rest = hit.string[end:]
        if not found or re.match(r"\s*(?:%|(?:out )?of\b|tasks?\b|rollouts?\b|rows\b|\.\d)", rest):
            return
        kind = ADDRESS if any("/" in one and one not in self.tasks for one in found) else TASK
        start = hit.start("ids") if word.startswith(("rollout", "attempt")) else hit.start()
        yield Mention(kind, tuple(found), start, end, text=hit.string[hit.start() : end])

    def _id(self, name: str, word: str) -> str | None:
        """A task or an address as it is known; a number after `task` even if no task has it."""
        if name in self.tasks:
            return None if word.startswith(("rollout", "attempt")) else self.tasks[name]
        address = _ADDRESS.fullmatch(name)
        if address and address["task"] in self.tasks:
            return f"{self.tasks[address['task']]}/{int(address['repeat'])}"
        if address and self.has_numbers and address["task"].isdigit():
            return f"{address['task']}/{int(address['repeat'])}"
        is_number = self.has_numbers and name.isdigit() and word.startswith("task")
        return name if is_number else None

    def _spans(self, free: _Free) -> Iterator[Mention]:
        for hit in _CODE.finditer(free.left()):
            yield self._named(hit, hit[2].strip())
        for hit in _QUOTE.finditer(free.left()):
            yield self._named(hit, hit[0][1:-1].strip())
        for hit in re.finditer(r"(?<![\w./-])(\d+)/(\d+)(?![\w/]|\.\d)", free.left()):
            # more passes than tries there cannot be: an address
            known = self._id(hit[0], "task")
            if known and (int(hit[2]) < int(hit[1]) or int(hit[2]) == 0) and self._exists(known):
                yield Mention(ADDRESS, (known,), hit.start(), hit.end(), text=hit[0])

    def _exists(self, address: str) -> bool:
        task, _, repeat = address.rpartition("/")
        return any(
            task in run.tasks and any(one.repeat == int(repeat) for one in run.tasks[task].repeats)
            for run in self.ground.runs.values()
        )

    def _named(self, hit: re.Match[str], inside: str) -> Mention:
        told = self.entities.get(_words(inside))
        if told is not None:
            return Mention(told[0], told[1], hit.start(), hit.end(), text=hit[0])
        if inside in lexicon.CAUSE_CODES:
            return Mention(CAUSE, (inside,), hit.start(), hit.end(), text=hit[0])
        address = _ADDRESS.fullmatch(inside)
        if inside in self.tasks and re.search(r"\W", inside):
            return Mention(TASK, (self.tasks[inside],), hit.start(), hit.end(), text=hit[0])
        if address and address["task"] in self.tasks:
            name = f"{self.tasks[address['task']]}/{int(address['repeat'])}"
            return Mention(ADDRESS, (name,), hit.start(), hit.end(), text=hit[0])
        return Mention(OPAQUE, (inside,), hit.start(), hit.end(), text=hit[0])

    def _entities(self, free: _Free) -> Iterator[Mention]:
        tokens = list(_TOKEN.finditer(free.left()))
        words = [hit[0].lower() for hit in tokens]
        at = 0
        while at < len(words):
            for length in range(min(self.longest, len(words) - at), 0, -1):
                told = self.entities.get(tuple(words[at : at + length]))
                if told is not None:
                    first, last = tokens[at].start(), tokens[at + length - 1].end()
                    yield Mention(told[0], told[1], first, last, text=free.text[first:last])
                    at += length - 1
                    break
            at += 1

    def _loose(self, free: _Free) -> Iterator[Mention]:
        """`hard tasks`, or `easy 92%, hard 42%`: a common word is a slice beside a noun or its like."""
        if not self.loose:
            return
        text = free.left()
        found = [hit for hit in _TOKEN.finditer(text) if hit[0].lower() in self.loose]
        plain = [hit for hit in found if not _is_praise(text, hit) and not _GOES_TO.match(text, hit.end())]
        sure = {
            self.loose[hit[0].lower()]
            for hit in plain
            if _NOUN.match(text, hit.end()) or _CALLED.search(text[: hit.start()])
        }
        values = {self.loose[hit[0].lower()] for hit in plain}
        fields = {
            field
            for field, value in values
            if any(known == field and (known, other) != (field, value) for known, other in values)
        }
        for hit in plain:
            told = self.loose[hit[0].lower()]
            if _NOUN.match(text, hit.end()) or told[0] in fields or told in sure:
                yield Mention(SLICE, told, hit.start(), hit.end(), text=hit[0])


_NOUN = re.compile(r"[\s-]+(?:tasks?|ones?|problems?|questions?|items?|cases?|instances?|examples?|"
    r"requests?|tier|"
                   r"slice|split|subset|bucket|category|difficulty|level)\b", re.IGNORECASE)  # fmt: skip
_CALLED = re.compile(
    r"\b(?:slice|category|tier|level|difficulty|split|group)\s*(?:is|was|:|=|are)?\s*(?:the\s+)?$",
    re.IGNORECASE,
)


def _is_praise(text: str, hit: re.Match[str]) -> bool:
    """`the task is hard`, where `the hardest slice is hard` names one."""
    before = text[: hit.start()]
    return bool(_PRAISED.search(before)) and not _CALLED.search(before)


_PRAISED = re.compile(r"\b(?:is|are|was|were|very|too|so|more|most|quite|fairly|rather|it['’]s|not|as)\s+$",
                      re.IGNORECASE)  # fmt: skip
_GOES_TO = re.compile(r"\s+(?:to\s+[a-z]|for\s|that\s|enough\b)", re.IGNORECASE)
_COMMON = lexicon.HARMLESS | frozenset(
    "other others none unknown default true false yes test tests easy hard simple medium error errors "
    "failure "
    "timeout pass fail passed failed answer question output input tool tools call calls user data text "
    "code".split()
)


def _words(name: str) -> tuple[str, ...]:
    return tuple(hit[0].lower() for hit in _TOKEN.finditer(name))


def measures_in(text: str) -> set[tuple[str, ...]]:
    """The measures that a text names, and their k."""
    return {_measured(hit, text).names for hit in _METRICS.finditer(lexicon.lowered(text))}


def _measured(hit: re.Match[str], text: str) -> Mention:
    name, k = lexicon.which(hit, lexicon.METRICS), hit["at"] or hit["hat"] or ""
    if (name, k) == ("pass_at_k", "1"):
        name, k = "pass_at_1", ""
    return Mention(METRIC, (name, k), hit.start(), hit.end(), text=text[hit.start() : hit.end()])


def _blank(hit: re.Match[str]) -> Mention:
    return Mention(OPAQUE, ("interval",), hit.start(), hit.end(), text=hit[0])


class _Free:
    """A text and what of it nobody has named yet."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.taken: list[Mention] = []
        self._left = text
        self._low = lexicon.lowered(text)

    def left(self) -> str:
        return self._left

    def low(self) -> str:
        return self._low

    def take(self, one: Mention) -> None:
        if "\0" in self._left[one.start : one.end] or one.end <= one.start:
            return
        self.taken.append(one)
        blank = "\0" * (one.end - one.start)
        self._left = self._left[: one.start] + blank + self._left[one.end :]
        self._low = self._low[: one.start] + blank + self._low[one.end :]


def _shaped(text: str, taken: list[Mention]) -> Sentence:
    mentions = sorted(taken, key=lambda one: one.start)
    shape: list[str] = []
    places: list[int] = []
    at: dict[int, Mention] = {}
    position = 0
    for one in mentions:
        shape.append(text[position : one.start])
        places.extend(range(position, one.start))
        if one.kind == OPAQUE and one.names == ("interval",):
            shape.append(" ")
        else:
            at[len(places)] = one
            shape.append(_MARK[one.kind])
        places.append(one.start)
        position = one.end
    shape.append(text[position:])
    places.extend(range(position, len(text) + 1))
    return Sentence(text, tuple(mentions), "".join(shape), tuple(places), at)
