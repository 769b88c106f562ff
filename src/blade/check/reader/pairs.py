"""Turn what is said of two runs task by task into claims: in both, by one alone, here but not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from blade.check.reader.ground import TASKS, Keys, Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import STATE, TASK, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, RATE, RATIO
from blade.model import Assertion

_BOTH = r"(?:both|the two)(?:\s+(?:of\s+(?:the|them)\s*)?(?:runs?|models?|agents?|systems?))?"
_BY = r"(?:by|in|with|for|on|under|from)\s+(?:the\s+)?"
_BE = r"(?:(?:are|were|is|was|get|got|that|which|have|had|been|both)\s+)*"
_RUN = r"(?:the\s+)?(?P<{0}><R>)(?:\s+(?:run|model|agent))?"
_Q = r"(?P<q><Q>)(?:\s+of\s+the)?\s+(?:(?:shared|common)\s+)?"
_IN_BOTH = (
    shaped(rf"{_Q}(?P<n><N>)\s+{_BE}(?P<s><S>)\s+{_BY}{_BOTH}"),
    shaped(rf"\b{_BOTH}\s+(?P<s><S>)\s+(?:on\s+|the same\s+)*{_Q}(?P<n><N>)"),
)
_IN_NEITHER = (
    shaped(
        rf"{_Q}(?P<n><N>)\s+{_BE}(?P<s><S>)\s+{_BY}neither(?:\s+(?:of\s+\w+\s+)?(?:run|model|"
        rf"agent)s?)?"
    ),
    shaped(
        rf"\bneither(?:\s+(?:of\s+the\s+(?:two\s+)?)?(?:run|model|"
        rf"agent)s?)?\s+(?P<s><S>)\s+(?:on\s+)?{_Q}(?P<n><N>)"
    ),
)
_ALONE = (
    shaped(rf"{_Q}(?P<n><N>)\s+{_BE}(?P<s><S>)\s+(?:only|solely|exclusively)\s+{_BY}{_RUN.format('a')}"),
    shaped(rf"{_Q}(?P<n><N>)\s+{_BE}(?:only|solely|exclusively)\s+(?P<s><S>)\s+{_BY}{_RUN.format('a')}"),
    shaped(rf"{_Q}(?P<n><N>)\s+{_BE}(?P<s><S>)\s+{_BY}{_RUN.format('a')}\s+(?:only|alone|exclusively)\b"),
    shaped(
        rf"\b(?:only\s+{_RUN.format('a')}|{_RUN.format('a2')}\s+(?:alone|only|"
        rf"uniquely))\s+(?P<s><S>)\s+(?:on\s+)?{_Q}(?P<n><N>)"
    ),
)
# `…, 14 by B only`: what they are and what became of them stands before
_ALONE_TOO = shaped(
    rf"\s*(?:,|;)?\s*(?:and\s+|but\s+|while\s+)?(?P<q><Q>)\s+(?:(?:only|solely)\s+{_BY}{_RUN.format('a')}"
    rf"|{_BY}{_RUN.format('a2')}\s+(?:only|alone))"
)
_NOT_THE_OTHER = (
    shaped(
        rf"{_RUN.format('a')}\s+(?P<s><S>)\s+(?:on\s+)?{_Q}(?P<n><N>)\s+(?:that|which|where|on which|"
        rf"and|but)?\s*"
        rf"{_RUN.format('b')}\s+(?:does not|doesn['’]t|did not|didn['’]t|could not|cannot|can['’]t|"
        rf"(?P<s2><S>)|misses|missed)"
    ),
    shaped(
        rf"{_Q}(?P<n><N>)\s+{_BE}(?P<s><S>)\s+{_BY}{_RUN.format('a')}(?:,|\s+but|\s+and|\s+yet)+\s*{_BE}"
        rf"(?:not\s+(?:{_BY})?|(?P<s2><S>)\s+{_BY}){_RUN.format('b')}"
    ),
)
_CHANGED = shaped(
    rf"{_Q}(?P<n><N>)\s+(?:have\s+|had\s+|has\s+)?(?:chang(?:e|ed|es)|flip(?:s|ped)?|switch(?:es|"
    rf"ed)?|differ(?:s|ed)?|disagree[ds]?)"
    r"(?:\s+(?:their\s+|the\s+)?(?:outcomes?|results?|verdicts?|buckets?|status))?"
    r"(?=\s*(?:$|[.,;:)(]|between\b|from\b|across\b|in outcome|in result))"
)
_TASK_BY = shaped(
    rf"(?P<t><T>)\s+{_BE}(?P<no>not\s+|never\s+)?(?P<s><S>)\s+(?:it\s+)?{_BY}{_RUN.format('a')}"
    rf"(?P<more>(?:,|\s+but|\s+and|\s+while|\s+yet|"
    rf"\s+whereas)+\s*{_BE}(?:it\s+)?(?:(?P<no2>not)\s+{_BY}|(?P<no3>not\s+)?(?P<s2><S>)"
    rf"\s+(?:it\s+)?{_BY}){_RUN.format('b')})?"
)
_RUN_TASK = shaped(
    rf"{_RUN.format('a')}\s+(?P<no>(?:does not|did not|doesn['’]t|didn['’]t|"
    rf"never)\s+)?(?P<s><S>)\s+(?:on\s+|in\s+)?(?P<t><T>)"
    rf"(?P<more>(?:,|\s+but|\s+and|\s+while|\s+yet|\s+whereas)+\s*{_RUN.format('b')}\s+"
    r"(?:(?P<no2>does not|did not|doesn['’]t|didn['’]t|cannot)|(?P<s2><S>)(?:\s+(?:it|them|there))?))?"
)
_TASK_BOTH = shaped(
    rf"(?P<t><T>)\s+{_BE}(?P<s><S>)\s+{_BY}(?P<which>{_BOTH}|neither(?:\s+(?:run|model|agent))?)"
)
_END = re.compile(
    r"\s*(?:$|[.,;:)(]|and\b|but\b|while\b|whereas\b|out of\b|overall\b|here\b|in total\b|because\b)"
)


# `of the 12 tasks that A fails, B solves 2`, `B solves 53 of the 88 tasks that A solves`
_WHICH = r"\s+(?:(?:that|which)\s+)?"
_OF_ONE = (
    shaped(
        rf"\b(?:of|among|out of)\s+the\s+(?P<of><Q>)\s+(?P<n><N>){_WHICH}{_RUN.format('b')}\s+(?P<s2><S>)"
        r"\s*,?\s*"
        rf"{_RUN.format('a')}\s+(?P<s><S>)\s+(?:only\s+|just\s+)?(?P<q><Q>)(?:\s*\((?P<share><Q>)\))?"
    ),
    shaped(
        rf"{_RUN.format('a')}\s+(?P<s><S>)\s+(?:only\s+|just\s+)?(?P<q><Q>)\s+(?P<n><N>){_WHICH}"
        rf"{_RUN.format('b')}\s+(?P<s2><S>)(?:\s*\((?P<share><Q>)\))?"
    ),
)


class Pairs:
    """What one sentence says of tasks in two runs at once."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        runs = tuple(self.ground.runs)
        if (
            len(runs) != 2
            or self.sentence.of("L")
            or self.sentence.of("A")
            or not (self.sentence.of(STATE) or self._flips())
        ):
            return
        yield from self._tasks(runs)
        taken: set[int] = set()
        for hit in (one for pattern in _OF_ONE for one in pattern.finditer(self.line.shape)):
            for claim in self._of_one(hit):
                taken.add(claim.start)
                yield claim
        for patterns, told in (
            (_IN_BOTH, self._both),
            (_IN_NEITHER, self._neither),
            (_NOT_THE_OTHER, self._not_other),
            (_ALONE, self._alone),
            ((_CHANGED,), self._changed),
        ):
            for hit in (one for pattern in patterns for one in pattern.finditer(self.line.shape)):
                amount = self.sentence.at[hit.start("q")]
                sets = None if amount.start in taken else told(hit, runs)
                if sets is not None:
                    taken.add(amount.start)
                    yield from self._counted(hit, amount, sets, runs)
                    yield from self._too(hit, runs) if patterns is _ALONE else ()

    def _flips(self) -> list[Mention]:
        return self.sentence.of("N") if _CHANGED.search(self.line.shape) else []

    # --- how many ------------------------------------------------------------------------------------

    def _counted(
        self, hit: re.Match[str], amount: Mention, sets: list[Keys], runs: tuple[str, ...]
    ) -> Iterator[Assertion]:
        quantity = amount.amount
        if quantity is None or (
            self.sentence.at[hit.start("n")].names[0] != TASKS and not self._is_single(runs)
        ):
            return
        shared = len(self._shared(runs))
        words = [f"{len(each)} of the {shared} tasks both have" for each in sets]
        readings = [Reading(float(len(each)), told) for each, told in zip(sets, words, strict=True)]
        if quantity.kind == RATIO and quantity.of != shared:
            return
        if quantity.kind == RATE:
            readings = [Reading(one.value / shared, one.words) for one in readings] if shared else []
        elif quantity.kind not in (COUNT, RATIO):
            return
        rest = self.line.shape[hit.end() :]
        doubt = "" if _END.match(rest) or hit.re is _CHANGED else "more is said of it"
        yield self.line.amount(
            amount,
            "count",
            readings,
            "tasks_of_both",
            None,
            given=(("runs", " ".join(runs)),),
            doubt=doubt or self.line.part(),
        )

    def _of_one(self, hit: re.Match[str]) -> Iterator[Assertion]:
        """How many of those that are one thing in one run are another in the other."""
        (one, other), amount = (
            (self.sentence.at[hit.start(name)].names for name in "ab"),
            self.line.mention(hit, "q"),
        )
        state, against = self._state(hit, "s"), self._state(hit, "s2")
        quantity = amount.amount if amount is not None else None
        of = self.line.mention(hit, "of")
        size = (
            of.amount.value if of is not None and of.amount is not None else quantity.of if quantity else None
        )
        if (
            amount is None
            or quantity is None
            or size is None
            or len(one) != 1
            or len(other) != 1
            or one == other
        ):
            return
        if quantity.kind not in (COUNT, RATIO) or self.sentence.at[hit.start("n")].names[0] != TASKS:
            return
        shared = self._shared((one[0], other[0]))
        wholes = [each & shared for each in self.ground.runs[other[0]].senses(against)]
        fitting = [each for each in wholes if len(each) == size]
        parts = self.ground.runs[one[0]].senses(state)
        told = dict.fromkeys(
            f"{len(whole & each)} of the {len(whole)}" for whole in fitting or wholes for each in parts
        )
        readings = [
            Reading(float(words.split()[0]), f"{words} tasks {against} in {other[0]}") for words in told
        ]
        doubt = "" if fitting else "no such part is known here"
        if not _END.match(self.line.shape[hit.end() :]):
            doubt = doubt or "more is said of it"
        given = (("runs", " ".join((one[0], other[0]))),)
        yield self.line.amount(
            amount, "count", readings if fitting else [], "tasks_of_both", None, given=given, doubt=doubt
        )
        share = self.line.mention(hit, "share")
        if share is not None and share.amount is not None and share.amount.kind == RATE and size:
            rates = [Reading(each.value / size, each.words) for each in readings] if fitting else []
            yield self.line.amount(
                share, "share", rates, "tasks_of_both", None, given=given, as_rate=True, doubt=doubt
            )

    def _is_single(self, runs: tuple[str, ...]) -> bool:
        return all(self.ground.runs[run].run.coverage.repeats == 1 for run in runs)

    def _shared(self, runs: tuple[str, ...]) -> Keys:
        return frozenset(self.ground.runs[runs[0]].tasks) & frozenset(self.ground.runs[runs[1]].tasks)

    def _each(
        self, one: tuple[str, str], other: tuple[str, str], join: Callable[[Keys, Keys], Keys]
    ) -> list[Keys]:
        """All that two states of two runs may mean together, over the tasks both have."""
        shared = self._shared((one[0], other[0]))
        senses = (self.ground.runs[run].senses(state) for run, state in (one, other))
        made = [join(a & shared, b & shared) for a, b in zip(*senses, strict=True)]
        return list(dict.fromkeys(made))

    def _both(self, hit: re.Match[str], runs: tuple[str, ...]) -> list[Keys] | None:
        state = self._state(hit, "s")
        return self._each((runs[0], state), (runs[1], state), frozenset.intersection) if state else None

    def _neither(self, hit: re.Match[str], runs: tuple[str, ...]) -> list[Keys] | None:
        state = self._state(hit, "s")
        if not state:
            return None
        shared = self._shared(runs)
        unions = self._each((runs[0], state), (runs[1], state), frozenset.union)
        return [shared - each for each in unions]

    def _alone(self, hit: re.Match[str], runs: tuple[str, ...]) -> list[Keys] | None:
        named = self.line.mention(hit, "a") or self.line.mention(hit, "a2")
        state = self._state(hit, "s")
        if named is None or len(named.names) != 1 or not state:
            return None
        other = next(run for run in runs if run != named.names[0])
        return self._each((named.names[0], state), (other, state), frozenset.difference)

    def _too(self, hit: re.Match[str], runs: tuple[str, ...]) -> Iterator[Assertion]:
        more, state = _ALONE_TOO.match(self.line.shape, hit.end()), self._state(hit, "s")
        named = (self.line.mention(more, "a") or self.line.mention(more, "a2")) if more else None
        if more is None or named is None or len(named.names) != 1:
            return
        other = next(run for run in runs if run != named.names[0])
        sets = self._each((named.names[0], state), (other, state), frozenset.difference)
        readings = [
            Reading(float(len(each)), f"{len(each)} tasks by {named.names[0]} alone") for each in sets
        ]
        amount = self.sentence.at[more.start("q")]
        if amount.amount is not None and amount.amount.kind == COUNT:
            doubt = "" if _END.match(self.line.shape[more.end() :]) else "more is said of it"
            given = (("runs", " ".join(runs)),)
            yield self.line.amount(
                amount, "count", readings, "tasks_of_both", None, given=given, doubt=doubt or self.line.part()
            )

    def _not_other(self, hit: re.Match[str], runs: tuple[str, ...]) -> list[Keys] | None:
        one, other = self.sentence.at[hit.start("a")], self.sentence.at[hit.start("b")]
        state, against = self._state(hit, "s"), self._state(hit, "s2")
        if len(one.names) != 1 or len(other.names) != 1 or one.names == other.names or not state:
            return None
        if against == state:
            return None
        return self._each((one.names[0], state), (other.names[0], state), frozenset.difference)

    def _changed(self, hit: re.Match[str], runs: tuple[str, ...]) -> list[Keys] | None:
        found = self._each((runs[0], "solved"), (runs[1], "solved"), frozenset.symmetric_difference)
        moved = frozenset(
            key
            for key in self._shared(runs)
            if self.ground.runs[runs[0]].tasks[str(key)].bucket
            != self.ground.runs[runs[1]].tasks[str(key)].bucket
        )
        rates = frozenset(
            key
            for key in self._shared(runs)
            if self.ground.runs[runs[0]].tasks[str(key)].rate
            != self.ground.runs[runs[1]].tasks[str(key)].rate
        )
        return [*found, moved, rates]

    def _state(self, hit: re.Match[str], name: str) -> str:
        one = self.line.mention(hit, name)
        return one.names[0] if one is not None else ""

    # --- which ---------------------------------------------------------------------------------------

    def _tasks(self, runs: tuple[str, ...]) -> Iterator[Assertion]:
        if not self.sentence.of(TASK):
            return
        for hit in _TASK_BOTH.finditer(self.line.shape):
            is_not = hit["which"].lower().startswith("neither")
            yield from (one for run in runs for one in self._one(hit, "s", run, is_not))
        for pattern in (_TASK_BY, _RUN_TASK):
            for hit in pattern.finditer(self.line.shape):
                if pattern is _RUN_TASK and _TASK_BY.search(self.line.shape):
                    continue
                first = self.sentence.at[hit.start("a")]
                if len(first.names) == 1:
                    yield from self._one(hit, "s", first.names[0], bool(hit["no"]))
                second = self.line.mention(hit, "b")
                if second is not None and len(second.names) == 1:
                    denied = bool(hit["no2"]) or bool(hit.groupdict().get("no3"))
                    yield from self._one(hit, "s2" if hit["s2"] else "s", second.names[0], denied)

    def _one(self, hit: re.Match[str], name: str, run: str, is_not: bool) -> Iterator[Assertion]:
        task, state = self.sentence.at[hit.start("t")], self._state(hit, name)
        rest = "" if _END.match(self.line.shape[hit.end() :]) else "more is said of it"
        for key in task.names:
            known = self.ground.runs[run].tasks.get(key)
            if known is None or known.bucket not in ("always", "sometimes", "never"):
                continue
            holds = _holds(state, known.bucket, is_not)
            yield self.line.claim(
                "bucket",
                self.line.span(hit.start(), hit.end()),
                holds,
                f"task {key} is {known.bucket} ({known.passed} of {known.n} passed) in {run}",
                rest,
                subject=state,
                run=run,
                given=(("task", key),),
                value=("not " if is_not else "") + state,
            )


def _holds(state: str, bucket: str, is_not: bool) -> bool | None:
    """Whether a state can be said of a task in a bucket; what passes sometimes both passes and fails."""
    if state in ("always", "sometimes", "never"):
        return (state == bucket) != is_not
    wanted = {"passed": "always", "solved": "always", "solved_once": "always", "failed": "never"}.get(state)
    if wanted is None or bucket == "sometimes":
        return None
    return (wanted == bucket) != is_not
