"""Turn amounts that no phrase accounts for into claims, by what the clause of each names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from blade.check.reader.clauses import ASIDE, BACK, Clause, clauses
from blade.check.reader.ground import ROLLOUTS, TASKS, Reading
from blade.check.reader.lexicon import NARROWING
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, METRIC, MODE, RUN, STATE, UNIT, Mention, Sentence
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, POINTS, RATE, RATIO
from blade.check.reader.verdicts import held, said
from blade.model import Assertion
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE

_RIGHT = shaped(
    r"\b(?:gets?|got|answer(?:s|ed)?|has|have|had|is|are|were)\b[^,;]*?<Q>(?:\s+<N>)?\s+"
    r"(?P<w>right|correct(?:ly)?|wrong|incorrect(?:ly)?)\b"
    r"|<Q>(?:\s+<N>)?\s+(?:(?:are|were|is|was|answered)\s+)(?P<w2>right|correct(?:ly)?|wrong)\b"
)
_IN_ALL = re.compile(r"\b(?P<a>\w+)(?: times)? out of (?P<b>\w+)\b", re.IGNORECASE)
_BARE = shaped(
    r"^(?:[\s.,:=~]|<RQN>|\b(?:the|a|an|or|and|only|just|for|with|in|of|at|i\.e|is|are|was|were|model|run)\b)*$"
)
_PLACED = re.compile(
    r"^\W*(?:in|on|at|with|for|of|out of|over|among|under|using|by|during|from|after|before|within"
    r"|across|per|to)\b",
    re.IGNORECASE,
)
_MORE = shaped(r"<Q>\s+(?:more|fewer|less|extra|additional|other|new)\b")
_OF_THEM = re.compile(r"\bof (?:them|these|those)\b", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:every|each) one\b", re.IGNORECASE)
_ALL_SCORED = shaped(
    r"\s*(?P<n><N>)(?:\s+(?:is|are|was|were|got|has been|have been))?\s+(?:<M>|scored|graded|there"
    r"|collected)\s*(?:$|[.,;])"
)
_ENDS = re.compile(r"\b(?:CI|interval|confidence|p)\b|±|\[", re.IGNORECASE)
_LISTED = re.compile(r"(?:,\s*(?:and\s+)?|\s+and\s+)#?\d+(?=[\s,.;)]|$)(?!\s*%|\s+(?:points|tasks|rollouts))")
_LISTS = re.compile(r"(?<!\w)#?\d+(?:,\s*(?:and\s+)?|\s+and\s+)$")
_NO = re.compile(r"\b(?:not|no|never|none|neither|nor|without|n['’]t)\b|n['’]t\b", re.IGNORECASE)
_NEXT = shaped(r"(?:\s+|\s*-)(?:(?:the|of|all|its|our)\s+)*(?P<s><S>)?[\s-]*(?P<n><N>)")
# A whole run by its size: what may stand in such a clause, and nothing else.
_SIZE = shaped(
    r"^\W*(?:(?:the|this|our|whole|run|file|log|data|dataset|benchmark|set|suite|it|we|i|has|have|had|holds?|"
    r"contains?|comprises?|consists?|of|covers?|covered|there|are|were|is|was|in|total|altogether|overall|all|"
    r"with|evaluated|ran|on|over|across|for|from|tested|collected|looked|at|a|an|and|came|back|out|to|"
    r"scored|recorded|expected|exactly|<R>|<Q>|<N>|<M>)\W*|[\s.,])*$"
)
_SIZED = shaped(
    r"\b(?:holds?|contains?|comprises?|consists?|total|altogether|overall|ran|evaluated|over|across|covers?|has|have)\b"
    r"|^\W*of <Q>"
)
_SIDES = (
    ("model", re.compile(r"\b(?:to|on|by|with) the (?:model|agent)(?: itself)?\b", re.IGNORECASE)),
    ("infrastructure", re.compile(r"\b(?:infrastructure|infra|plumbing)\b|\ue043", re.IGNORECASE)),
    (
        "undetermined",
        re.compile(r"\b(?:unexplained|undetermined|unaccounted(?: for)?|unattributed)\b", re.IGNORECASE),
    ),
)
_SIDE_WORDS = frozenset(
    "unexplained undetermined unaccounted unattributed infra infrastructure plumbing lost".split()
)
_CHANGE = re.compile(
    r"\b(?:gain(?:s|ed)?|improvement|increase[sd]?|lift(?:s|ed)?|jump(?:s|ed)?|up|more|better|ahead|drop(?:s|ped)?"
    r"|change[sd]?|difference|plus|rise|rose|gap|lead|delta|higher|swing)\b",
    re.IGNORECASE,
)
_PLAIN = ("pass_at_1", "pass_rate", "score")


class Frame(msgspec.Struct, frozen=True):
    """What a clause speaks of, its own or left over from the clause before."""

    metric: Mention | None = None
    states: tuple[str, ...] = ()
    unit: str = ""
    mode: Mention | None = None
    runs: tuple[str, ...] = ()
    several: bool = False  # more than one of a kind: nobody knows which is meant
    is_left: bool = False  # what it speaks of is left over from the clause before
    narrow: str = ""  # a word of the clause that it is left over from, of which nobody knows what it does


class Found(msgspec.Struct, frozen=True):
    """What an amount may stand for."""

    readings: list[Reading]
    subject: str
    kind: str
    as_rate: bool = False
    wholes: tuple[float, ...] = ()  # of a ratio
    doubt: str = ""
    is_plain: bool = False  # the whole clause was read


class Grounded:
    """The amounts of one sentence that nobody has settled."""

    def __init__(self, line: Line, settled: set[int], open_to: set[int]) -> None:
        """`settled` are amounts with a verdict; of those in `open_to` something is said already."""
        self.line, self.sentence, self.ground = line, line.sentence, line.ground
        self.settled, self.told = settled, open_to
        self.placed = ""  # `in a pilot, …`: what may set apart all that follows it

    def read(self) -> Iterator[Assertion]:
        if not any(one.start not in self.settled for one in self.sentence.of(AMOUNT)):
            return
        frame: Frame | None = None
        for clause in clauses(self.sentence):
            frame = self._frame(clause, frame)
            if _PLACED.match(clause.shape) and clause.unknown:
                self.placed = clause.unknown[0]
            for amount in clause.of(AMOUNT):
                if amount.start not in self.settled:
                    yield from self._amount(amount, clause, frame)

    # --- what a clause is about ----------------------------------------------------------------------

    def _frame(self, clause: Clause, last: Frame | None) -> Frame:
        metrics = {one.names: one for one in clause.of(METRIC)}
        states = tuple(dict.fromkeys(one.names[0] for one in clause.of(STATE)))
        modes = {one.names: one for one in clause.of("DC")}
        units = tuple(dict.fromkeys(one.names[0] for one in clause.of(UNIT)))
        right = _RIGHT.search(clause.shape)
        if right and not states:
            word = (right["w"] or right["w2"]).lower()
            states = ("failed",) if word.startswith(("wrong", "incorrect")) else ("passed",)
        if not states:
            states = next(((state,) for state, often in _OFTEN if often.search(clause.shape)), ())
        if full := _IN_ALL.search(self.sentence.text, clause.first, clause.last):
            is_full = full["a"].lower() == full["b"].lower() and states in (("solved",), ("passed",))
            states = ("always",) if is_full else states
        several = len(metrics) > 1 or len(states) > 1 or len(modes) > 1
        metric, mode = next(iter(metrics.values()), None), next(iter(modes.values()), None)
        named = {one.names for one in clause.of(RUN)}
        runs = next(iter(named)) if len(named) == 1 else ()
        several |= len(named) > 1 or len(runs) > 1
        narrow, is_left = _first(clause.unknown), False
        if last is not None:
            if metric is None and not states and mode is None and not clause.unknown:
                metric, states, mode = last.metric, last.states, last.mode
                several, narrow, is_left = several or last.several, last.narrow, True
            runs = runs or last.runs
        unit = units[0] if len(units) == 1 else last.unit if last is not None and not units else ""
        if not runs and not named and (len(self.ground.runs) == 1 or not self.sentence.of(RUN)):
            told = self.line.runs()
            runs = told.runs if len(told.runs) == 1 and not told.doubt else ()
        return Frame(metric, states, unit, mode, runs, several, is_left, narrow)

    # --- one amount ----------------------------------------------------------------------------------

    def _amount(self, amount: Mention, clause: Clause, frame: Frame) -> Iterator[Assertion]:
        quantity = amount.amount
        if quantity is None:
            return
        found = self._meant(amount, clause, frame)
        if found is None:
            return
        told: dict[str, Any] = {
            "subject": found.subject, "run": frame.runs[0] if len(frame.runs) == 1 else None,
            "value": quantity.value,
        }  # fmt: skip
        fit = held(quantity, found.readings, found.as_rate)
        if quantity.kind == RATIO and not found.as_rate and quantity.of not in found.wholes:
            fit = None
        at = (found.kind, amount.text, amount.start)
        if fit is not None:
            if not found.doubt or amount.start not in self.told:
                yield said(self.line.place, SUPPORTED, *at, expected=fit.words, query=fit.query, **told)
            return
        doubt = found.doubt or (self.line.thought if found.is_plain else self._doubt(clause, found, frame))
        words = found.readings[0].words if found.readings else ""
        if found.wholes and words:
            words += f", of {found.wholes[0]:g}"
        if doubt or not words:
            if amount.start not in self.told:
                why = f"{doubt or 'nothing here measures it'}{'; could be: ' if words else ''}{words}"
                yield said(self.line.place, UNVERIFIABLE, *at, why=why, **told)
            return
        first = found.readings[0]
        yield said(
            self.line.place,
            CONTRADICTED,
            *at,
            expected=words,
            why="the rows say otherwise",
            query=first.query,
            **told,
        )

    def _meant(self, amount: Mention, clause: Clause, frame: Frame) -> Found | None:
        quantity = amount.amount
        assert quantity is not None
        if clause.of("TAL") or self.sentence.of("TAL") or self._is_other(amount, clause):
            return None
        every = _EVERY.search(self.sentence.text, 0, amount.start + 3)
        if quantity.kind == RATIO and every and quantity.value == 1 and quantity.of:
            return self._every(amount, frame)
        if quantity.kind == POINTS:
            return self._points(clause, frame)
        beside = self._beside(amount)
        if (
            quantity.kind == COUNT
            and beside is not None
            and not beside[0]
            and (frame.metric or not frame.states)
        ):
            return self._size(beside[1], clause, frame)
        if len(frame.runs) != 1 or frame.several:
            return None
        run = frame.runs[0]
        if frame.mode is not None:
            return self._mode(amount, frame, run)
        if frame.metric is not None and not frame.states:
            return self._rate(amount, clause, frame, run)
        if len(frame.states) == 1:
            return self._state(amount, clause, frame, run, beside)
        return None

    def _is_other(self, amount: Mention, clause: Clause) -> bool:
        """An end of an interval, or one of a list of numbers, which may be ids or one for each repeat."""
        text = self.sentence.text
        if amount.text.lower() == "one":
            return True  # hardly ever a number
        if _ENDS.search(text[max(clause.first, amount.start - 40) : amount.start]):
            return True
        return bool(_LISTED.match(text, amount.end) or _LISTS.search(text[: amount.start]))

    def _every(self, amount: Mention, frame: Frame) -> Found | None:
        """`every one of the 200 rows`: all that there are."""
        at = next(place for place, one in self.sentence.at.items() if one is amount)
        hit = _ALL_SCORED.match(self.sentence.shape, at + 1)
        if hit is None or len(frame.runs) != 1:
            return None
        unit = self.sentence.at[hit.start("n")].names[0]
        wholes = self.ground.wholes(frame.runs[0], unit, ())
        quantity = amount.amount
        fits = quantity is not None and quantity.of in wholes
        told = Reading(1.0 if fits else -1.0, f"{wholes[0]:g} {unit} in {frame.runs[0]}")
        return Found([told], f"n_{unit}", "count", wholes=tuple(wholes), is_plain=True)

    def _beside(self, amount: Mention) -> tuple[str, str] | None:
        """The noun right behind an amount, and what it is said to be: `12 failed tasks`."""
        at = next(place for place, one in self.sentence.at.items() if one is amount)
        hit = _NEXT.match(self.sentence.shape, at + 1)
        if hit is None:
            return None
        state = self.line.mention(hit, "s")
        return (state.names[0] if state else "", self.sentence.at[hit.start("n")].names[0])

    def _size(self, unit: str, clause: Clause, frame: Frame) -> Found | None:
        """`over 200 rollouts of 50 tasks`: the size of the run, where the clause says nothing else."""
        if len(frame.runs) != 1:
            return None
        readings = self.ground.counts(frame.runs[0], unit, ())
        doubt = ""
        is_size = frame.metric is not None or _SIZED.search(clause.shape)
        if (
            not is_size
            or not _SIZE.match(clause.shape)
            or re.match(r"\s*(?:of the|in the)\b", clause.shape, re.IGNORECASE)
        ):
            doubt = "it may be a part of them"
        if doubt and (clause.unknown or not frame.metric):
            return None
        return Found(readings, f"n_{unit}", "count", doubt=doubt)

    def _rate(self, amount: Mention, clause: Clause, frame: Frame, run: str) -> Found | None:
        metric = frame.metric
        assert metric is not None
        assert amount.amount is not None
        name, k = metric.names[0], int(metric.names[1]) if metric.names[1] else None
        is_number = name in ("icc", "design_effect", "mean_reward")
        quantity = amount.amount
        if (
            quantity.kind == COUNT
            and not is_number
            and not (0 <= quantity.value <= 1 and "." in quantity.text)
        ):
            return None
        if quantity.kind == RATE and is_number:
            return None
        readings = self.ground.rates(run, name, k)
        alone = [one for one in clause.of(AMOUNT) if self._beside(one) is None]
        doubt = "several values are given for one measure" if len(alone) > 1 else ""
        return Found(readings, name if k is None else f"{name}:{k}", "metric", not is_number, doubt=doubt)

    def _state(
        self, amount: Mention, clause: Clause, frame: Frame, run: str, beside: tuple[str, str] | None
    ) -> Found | None:
        quantity, state = amount.amount, frame.states[0]
        assert quantity is not None
        unit = beside[1] if beside else frame.unit
        units = (unit,) if unit else (TASKS, ROLLOUTS)
        doubt = self.ground.unsettled((run,), (state,))
        if quantity.kind == RATE:
            readings = [one for each in units for one in self.ground.shares(run, each, (), (state,))]
            if state in ("passed", "solved") and not frame.unit:
                readings += self.ground.rates(run, "pass_rate", None)
            return Found(readings, state, "share", True, doubt=doubt)
        if quantity.kind == COUNT and quantity.value != int(quantity.value):
            return None
        readings = [one for each in units for one in self.ground.counts(run, each, (state,))]
        if quantity.kind == RATIO:
            wholes = tuple(one for each in units for one in self.ground.wholes(run, each, ()))
            return Found(readings, state, "count", wholes=wholes, doubt=doubt)
        if beside and beside[0]:
            doubt = doubt or "it may be a part of them"
        if len(clause.of(AMOUNT)) > 1:
            doubt = doubt or "several numbers stand in one clause"
        return Found(readings, state, "count", doubt=doubt)

    def _mode(self, amount: Mention, frame: Frame, run: str) -> Found | None:
        """`x fires on 54 of 116 failures`: a rule by its own name, and what it fired on."""
        mode, quantity = frame.mode, amount.amount
        assert mode is not None
        assert quantity is not None
        seen = self.ground.runs[run].behaviours.get(mode.names[0])
        if seen is None or mode.kind != MODE or quantity.kind not in (COUNT, RATIO):
            return None
        state = frame.states[0] if len(frame.states) == 1 else ""
        doubt = "" if "_" in mode.text else "it may be meant in another way than the rule has it"
        tops, wholes = [seen.n_rollouts, seen.in_fail], [seen.of_fail + seen.of_pass, seen.of_fail]
        if state == "failed":
            tops, wholes = [seen.in_fail], [seen.of_fail]
        elif state in ("passed", "solved"):
            tops, wholes = [seen.in_pass], [seen.of_pass]
        elif state or frame.unit == TASKS:
            return None
        readings = [Reading(float(n), f"{mode.names[0]}: {n} rollouts in {run}") for n in tops]
        whole = tuple(map(float, wholes)) if quantity.kind == RATIO else ()
        return Found(readings, "behaviour_rollouts", "count", wholes=whole, doubt=doubt)

    def _points(self, clause: Clause, frame: Frame) -> Found | None:
        sides = [side for side, pattern in _SIDES if pattern.search(clause.shape)]
        if len(sides) == 1 and len(frame.runs) == 1 and not clause.of("D"):
            causes = {
                "model": ("KG", "UK", "BI"),
                "infrastructure": ("IR",),
                "undetermined": ("undetermined",),
            }
            run = frame.runs[0]
            lost = self.ground.lost(run, causes[sides[0]])
            told = [Reading(lost, f"{lost * 100:.1f} points of {run} are lost to {sides[0]}")]
            return Found(told, "lost_by_side", "metric") if self.ground.runs[run].losses else None
        compared = self.ground.report.comparisons
        if len(compared) != 1 or sides or not _CHANGE.search(clause.shape) or clause.of("DCS"):
            return None
        if frame.metric is not None and frame.metric.names[0] not in _PLAIN:
            return None
        gaps = [one for one in (compared[0].delta, compared[0].delta_common) if one is not None]
        told = [Reading(sign * one, f"{one * 100:+.1f} points") for one in gaps for sign in (1, -1)]
        return Found(told, "delta", "metric")

    def _of_all(self) -> bool:
        """Whether `of them` is of all: what stands before it tells the size of the run and nothing else."""
        if len(self.ground.runs) != 1:
            return False
        them = _OF_THEM.search(self.sentence.text)
        here = self.line.reader.sentence(self.sentence.text[: them.start()]) if them else None
        # the number right before `of them` is the part; what it is a part of stands before that
        if here is not None and len(here.of(AMOUNT)) > 1:
            return self._is_size(here, here.of(AMOUNT)[:-1])
        before = self.line.around.before.strip()
        last = self.line.reader.sentence(re.split(r"(?<=[.!?])\s+(?=[A-Z`])", before)[-1][-300:])
        return self._is_size(last, last.of(AMOUNT))

    def _is_size(self, told: Sentence, amounts: list[Mention]) -> bool:
        run = next(iter(self.ground.runs))
        sizes = {one for unit in (TASKS, ROLLOUTS) for one in self.ground.wholes(run, unit, ())}
        sizes.add(float(self.ground.runs[run].run.coverage.repeats))
        return (
            bool(amounts)
            and all(one.amount is not None and one.amount.value in sizes for one in amounts)
            and not any(told.of(kind) for kind in "TALDCSX")
        )

    # --- why a misfit may be none --------------------------------------------------------------------

    def _doubt(self, clause: Clause, found: Found, frame: Frame) -> str:
        text = self.sentence.text
        own, before = text[clause.first : clause.last], text[: clause.first]
        unknown = _first(clause.unknown) or frame.narrow
        if unknown:
            return f"the clause may narrow it: {unknown}"
        if self.placed or _MORE.search(clause.shape):
            return f"it may be said of a part: {self.placed or 'more or fewer'}"
        is_bare = clause.joint != ":" and _BARE.match(clause.shape)
        if frame.is_left and found.subject != "delta" and not is_bare:
            return "what it measures is left to what stands before it"
        if clause.of("X"):
            return "it names what is not known here"
        if self.line.thought or self.line.part():
            return self.line.thought or self.line.part()
        if self._of_all():
            own, before = (_OF_THEM.sub("", each) for each in (own, before))
        if _NO.search(_plainly(clause.shape)) or BACK.search(own):
            return "it leans on what stands before it"
        aside = ASIDE.search(_plainly(own)) or ASIDE.search(before) or _behind(text[clause.last :])
        if aside:
            return f"the sentence may narrow it: {aside[0]}"
        narrow = NARROWING.search(_plainly(_CHANGE.sub(" ", clause.shape)))
        return f"the sentence may narrow it: {narrow[0]}" if narrow else ""


_FIRES = frozenset("fires fire fired flags flagged follows triggers triggered appears".split())
# How often each was solved, in a clause that leaves the solving to the one before it.
_OFTEN = tuple(
    (state, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for state, words in (
        ("solved_once", "at least once"),
        ("always", "every time|each time|every single time"),
        ("sometimes", "now and then|sometimes|occasionally|some of the time|at times|in between"),
        ("never", "not once|never|not at all"),
    )
)


def _plainly(text: str) -> str:
    """A text without the words that tell how often each was solved."""
    for _, often in _OFTEN:
        text = often.sub(" ", text)
    return text


def _first(unknown: tuple[str, ...]) -> str:
    return next((word for word in unknown if word not in _SIDE_WORDS and word not in _FIRES), "")


def _behind(text: str) -> re.Match[str] | None:
    """What narrows a clause from behind, up to the next full stop of thought."""
    return ASIDE.match(text.lstrip(" ,")) or _NARROWED.match(text)


_NARROWED = re.compile(
    r"\W*(?:among|when|where|if|excluding|except|without|counting|ignoring|after|before|with)\b",
    re.IGNORECASE,
)
