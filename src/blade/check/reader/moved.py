"""Turn what is said of tasks that changed between two runs, and of lists of tasks, into claims."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.clauses import ASIDE, Clause, clauses
from blade.check.reader.ground import TASKS, Keys, Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, RUN, STATE, TASK, UNIT, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT
from blade.model import Assertion

UP, DOWN, BOTH, NEITHER, BOTH_FAIL = "up", "down", "both", "neither", "both fail"
_PASS = r"(?:right|correct|pass(?:es|ed|ing)?|solved?|succe\w+)"
_FAIL = r"(?:wrong|incorrect|fail(?:s|ed|ing|ures?)?)"
_TO = r"\s*(?:to|→|->|into)\s*(?:a\s+)?"
_WAYS: tuple[tuple[str, str], ...] = (
    (
        r"(?:the |in )*(?:other way(?: a?round| about)?|opposite (?:direction|way)|reverse(?: direction)?)",
        "turned",
    ),
    (rf"(?:from\s+)?{_FAIL}{_TO}{_PASS}|newly (?:{_PASS})", UP),
    (rf"(?:from\s+)?{_PASS}{_TO}{_FAIL}|newly {_FAIL}", DOWN),
    (rf"(?:both (?:runs |models )?{_FAIL}|{_FAIL} (?:in|by|with|under) both(?: runs| models)?)", BOTH_FAIL),
    (rf"(?:both (?:runs |models )?{_PASS}|{_PASS} (?:in|by|with|under) both(?: runs| models)?)", BOTH),
    (r"(?:in|by|with|under) neither(?: run| model)?", NEITHER),
    (r"gain(?:s|ed)?|won|wins|fixed|recovered", UP),
    (r"los(?:t|es?)|regress(?:ed|es)?|broken?", DOWN),
)
_WAY = re.compile(
    r"\b(?:" + "|".join(f"(?P<w{at}>{pattern})" for at, (pattern, _) in enumerate(_WAYS)) + r")(?!\w)",
    re.IGNORECASE,
)
_MOVES = frozenset(
    """flip flips flipped move moves moved switch switches switched changed turned way other around round from
    in neither both gained lost lose loses won wins fixed recovered broken broke newly regressed""".split()
)
_ID = r"#?[\w][\w.-]*"
_LIST = re.compile(rf"(?:tasks?\s+)?{_ID}(?:(?:,\s*|,?\s+and\s+){_ID})*")
_SPLIT = re.compile(r",?\s+and\s+|,\s*")
_NAMED = re.compile(
    rf"\b(?:tasks|problems|questions|ones|instances)\b[^,;:()]{{0,40}}?(?:\s(?:are|were)|:)\s+(?P<ids>{_ID}"
    rf"(?:(?:,\s*|,?\s+and\s+){_ID})+)",
    re.IGNORECASE,
)
_HOPELESS = re.compile(r"\b(?:hopeless|impossible|never[- ]solved|unsolved|lost causes?)\b", re.IGNORECASE)
_LOOSE = ("passed", "failed", "solved")


_GOAL = shaped(
    r"(?:\b(?:switch|mov|go|chang|upgrad|downgrad|migrat|shift|chang)\w*\s+(?:over\s+|from\s+(?:the\s+)?<R>\s+)?"
    r"to\s+|^\W*from\s+<R>\s+to\s+|^\W*(?:with|using|under|in)\s+)(?:the\s+)?(?P<r><R>)"
)
_AGAINST = ("versus", "vs", "vs.", "against", "compared with", "compared to", "over")
_ORIGIN = shaped(
    r"\b(?:compared (?:to|with)|relative to|against|versus|vs\.?|over|from)\s+(?:the\s+)?(?P<r><R>)"
)


class Moved:
    """Tasks that changed between two runs, and tasks in lists, in one sentence."""

    def __init__(self, line: Line, settled: set[int]) -> None:
        self.line, self.sentence, self.ground, self.settled = line, line.sentence, line.ground, settled

    def read(self) -> Iterator[Assertion]:
        if self.sentence.of("L") or self.sentence.of("A"):
            return
        parts = clauses(self.sentence)
        if not parts:
            return
        if self.line.reader.roles() is not None and len(self.ground.runs) == 2:
            yield from self._moves(parts)
        yield from self._lists(parts)

    # --- two runs ------------------------------------------------------------------------------------

    def _moves(self, parts: list[Clause]) -> Iterator[Assertion]:
        last, has_unit = "", False
        for clause, behind in zip(parts, [*parts[1:], None], strict=True):
            if clause.joint == "(":
                continue
            text = self.sentence.text[clause.first : clause.last]
            has_unit |= any(one.names[0] == TASKS for one in clause.of(UNIT))
            ways = {_WAYS[int((hit.lastgroup or "w0")[1:])][1] for hit in _WAY.finditer(_flat(text))}
            if len(ways) != 1:
                continue
            way = next(iter(ways))
            if way == "turned":
                way = {UP: DOWN, DOWN: UP}.get(last, "")
            runs = {one.names for one in clause.of(RUN)}
            is_against = clause.joint in _AGAINST or _ORIGIN.search(clause.shape)
            is_base = runs == {(self._roles()[0],)} and not is_against
            if way in (UP, DOWN) and is_base:
                way = {UP: DOWN, DOWN: UP}[way]
            last = way
            if not way or (len(runs) > 1 and not _GOAL.search(clause.shape)):
                continue
            sets, doubt = self._sets(way), self._doubt(clause)
            for one in clause.of(TASK):
                yield from self._ids(one.names, (one.start, one.text), sets, way, doubt)
            amounts = [one for one in clause.of(AMOUNT) if one.amount and one.amount.kind == COUNT]
            if len(amounts) == 1 and has_unit and not clause.of(TASK):
                yield from self._count(amounts[0], sets, way, doubt)
                yield from self._bracket(amounts[0], behind, sets, way, doubt)

    def _count(self, amount: Mention, sets: list[Keys], way: str, doubt: str) -> Iterator[Assertion]:
        if amount.start in self.settled:
            return
        base, other = self._roles()
        told = f"tasks ({way}) from {base} to {other}"
        readings = [Reading(float(len(each)), f"{len(each)} {told}") for each in sets]
        yield self.line.amount(amount, "count", readings, f"tasks_{way}", None, doubt=doubt)

    def _roles(self) -> tuple[str, str]:
        roles = self.line.reader.roles()
        assert roles is not None
        goals, origins = (
            {name for hit in pattern.finditer(self.line.shape) for name in self._run(hit)}
            for pattern in (_GOAL, _ORIGIN)
        )
        # a sentence that names where it goes, or where it comes from, sets the direction itself
        if goals == {roles[0]} or (not goals and origins == {roles[1]}):
            return roles[1], roles[0]
        return roles

    def _run(self, hit: re.Match[str]) -> tuple[str, ...]:
        return self.sentence.at[hit.start("r")].names

    def _sets(self, way: str) -> list[Keys]:
        base, other = (self.ground.runs[run] for run in self._roles())
        shared = frozenset(base.tasks) & frozenset(other.tasks)
        state = "failed" if way == BOTH_FAIL else "passed"
        found: list[Keys] = []
        for one, two in zip(base.senses(state), other.senses(state), strict=False):
            a, b = one & shared, two & shared
            found.append({UP: b - a, DOWN: a - b, NEITHER: shared - a - b}.get(way, a & b))
        if way in (UP, DOWN):
            sign = 1 if way == UP else -1
            found.insert(0, frozenset(
                key for key in shared
                if sign * ((other.tasks[key].rate or 0) - (base.tasks[key].rate or 0)) > 1e-9
            ))  # fmt: skip
        return list(dict.fromkeys(found))

    def _doubt(self, clause: Clause) -> str:
        unknown = [word for word in clause.unknown if word not in _MOVES]
        if unknown:
            return f"the clause may narrow it: {unknown[0]}"
        own = self.sentence.text[clause.first : clause.last]
        aside = ASIDE.search(_WAY.sub(" ", own)) or ASIDE.search(self.sentence.text[: clause.first])
        if aside:
            return f"the sentence may narrow it: {aside[0]}"
        return "it leans on what is not known here" if clause.of("XDCM") else ""

    # --- lists of tasks ------------------------------------------------------------------------------

    def _lists(self, parts: list[Clause]) -> Iterator[Assertion]:
        run = self.line.run()
        if run is None:
            return
        for clause, behind in zip(parts, [*parts[1:], None], strict=True):
            states = {one.names[0] for one in clause.of(STATE)}
            amounts = [one for one in clause.of(AMOUNT) if one.amount and one.amount.kind == COUNT]
            if len(states) == 1 and len(amounts) == 1 and not clause.of("TDCMX") and clause.joint != "(":
                state = next(iter(states))
                sets = list(self.ground.runs[run].states(state, TASKS))
                yield from self._bracket(amounts[0], behind, sets, state, self._doubt(clause))
        yield from self._named(run)

    def _named(self, run: str) -> Iterator[Assertion]:
        """`the hopeless tasks are 0, 3 and 34`."""
        for hit in _NAMED.finditer(self.sentence.text):
            ids = self._known(hit["ids"])
            before = self.sentence.text[: hit.start("ids")]
            states = {one.names[0] for one in self.sentence.of(STATE) if one.start < hit.start("ids")}
            if _HOPELESS.search(before) and not states - {"never"}:
                states = {"never"}
            if ids is None or len(states) != 1 or self.sentence.of(TASK):
                continue
            state = next(iter(states))
            sets = list(self.ground.runs[run].states(state, TASKS))
            doubt = self.line.thought or ("the state may be meant loosely" if state in _LOOSE else "")
            if re.search(r"\b(?:not|but|except|some|by|because|with)\b", before, re.IGNORECASE):
                doubt = doubt or "more is said of it"
            yield from self._ids(ids, (hit.start("ids"), hit["ids"]), sets, state, doubt)

    def _bracket(
        self, amount: Mention, behind: Clause | None, sets: list[Keys], what: str, doubt: str
    ) -> Iterator[Assertion]:
        """`two (7 and 22) lost`: as many ids as the number says."""
        if behind is None or behind.joint != "(":
            return
        text = self.sentence.text[behind.first : behind.last]
        ids = self._known(text)
        if ids is None or amount.amount is None or len(ids) != amount.amount.value:
            return
        yield from self._ids(ids, (behind.first, text), sets, what, doubt)

    def _known(self, text: str) -> tuple[str, ...] | None:
        if not _LIST.fullmatch(text.strip().rstrip(".")):
            return None
        listed = re.sub(r"^tasks?\s+", "", text.strip().rstrip("."))
        names = [one.removeprefix("#") for one in _SPLIT.split(listed)]
        tasks = self.line.reader.tasks
        known = [tasks[one] for one in names if one in tasks]
        return tuple(known) if len(known) == len(names) else None

    def _ids(
        self, ids: tuple[str, ...], span: tuple[int, str], sets: list[Keys], what: str, doubt: str
    ) -> Iterator[Assertion]:
        if not sets or any(key in self.line.reader.named for key in ids):
            return
        holds = any(set(ids) <= each for each in sets)
        wrong = [key for key in ids if not any(key in each for each in sets)]
        words = f"not so ({what}): {', '.join(wrong[:5])}" if wrong else f"all of them ({what})"
        yield self.line.claim(
            "bucket",
            span,
            True if holds else False if wrong else None,
            words,
            doubt,
            subject=what,
            value=what,
        )


def _flat(text: str) -> str:
    return " ".join(text.split())
