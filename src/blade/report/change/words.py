"""Put the numbers of a comparison into words: levels, changes, intervals, verdicts, tests."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from msgspec.structs import replace

from blade import hostile
from blade.model import Comparison, Mover, Report, Term, Tested
from blade.report import causes, quantities, words
from blade.report.change.names import middle
from blade.report.sections import Badge, Code, Line

THESE, NEW = "these tasks", "new tasks"  # the two questions every verdict answers
TONES = {"improved": "good", "regressed": "bad", "equivalent": "quiet", "inconclusive": "warning"}
ALPHA = 0.05
SMALL = "by less than the margin"
LOG_RATIO = "log ratio"  # the unit of a measure that is told as a ratio


class Scale(NamedTuple):
    """How a score is printed: a rate in percent and points, any other as a plain number."""

    is_rate: bool

    def level(self, value: float | None) -> str:
        return words.percent(value) if self.is_rate else words.number(value)

    def change(self, value: float | None) -> str:
        """`+8.4 points`, or `+0.084` where the score is no rate."""
        if self.is_rate or value is None or not math.isfinite(value):
            return words.points(value)
        return signed(value)

    def size(self, value: float | None) -> str:
        """A change without its sign: `8.4 points`."""
        return self.change(abs(value)).removeprefix("+") if value is not None else words.NONE

    def between(self, low: float | None, high: float | None) -> str:
        """`[+3.1, +14.2 points]`, or nothing where there is no interval."""
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            return ""
        return f"[{self.change(low).removesuffix(' points')}, {self.change(high)}]"

    def with_interval(self, value: float | None, low: float | None, high: float | None) -> str:
        """`+8.4 points [+3.1, +14.2 points]`."""
        return f"{self.change(value)} {self.between(low, high)}".rstrip()


def scale(score_name: str) -> Scale:
    return Scale(score_name.startswith(("pass", "clean_pass")))


def signed(value: float) -> str:
    """A plain number with its sign."""
    said = words.number(value)
    return f"+{said}" if value >= words.EXACT else said


def score_label(score_name: str) -> str:
    known = quantities.QUANTITIES.get(score_name)
    return known.label if known is not None else hostile.line(score_name, 40)


def ratio(change: float | None, low: float | None, high: float | None) -> str:
    """`×0.69 [0.60, 0.79]` of a change of logarithms."""
    if change is None or not math.isfinite(change):
        return words.NONE
    said = f"×{_exp(change)}"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return said
    return f"{said} [{_exp(low)}, {_exp(high)}]"


def _exp(value: float) -> str:
    return words.number(math.exp(min(value, 700.0)))


def run(name: str, limit: int = 80) -> Code:
    return Code(middle(name, limit))


def verdict(word: str | None) -> Badge:
    return Badge(word, TONES.get(word, "quiet")) if word else Badge("no verdict", "quiet")


def verdict_on(comparison: Comparison, question: str) -> str | None:
    return comparison.verdict if question == THESE else comparison.verdict_new_tasks


def is_small(comparison: Comparison, question: str) -> bool:
    """Whether a change is claimed that is surely smaller than the margin."""
    found = test_of(comparison, question)
    if verdict_on(comparison, question) not in ("improved", "regressed") or found is None:
        return False
    if found.low90 is None or found.high90 is None:
        return False
    return -comparison.margin < found.low90 and found.high90 < comparison.margin


def small_too(comparison: Comparison, question: str, none: str) -> str:
    """The verdict in a word, and that the change is smaller than the margin where it is."""
    word = verdict_on(comparison, question) or none
    return f"{word} ({SMALL})" if is_small(comparison, question) else word


def verdict_told(comparison: Comparison, question: str) -> Line:
    """The same with the verdict as a badge."""
    badge = verdict(verdict_on(comparison, question))
    return (badge, f" {SMALL}") if is_small(comparison, question) else (badge,)


def term(name: str, limit: int = 120) -> str:
    """A term as a reader says it: slugs of rules lose their underscores, predicates become phrases."""
    said = hostile.line(name, limit)
    call = causes.CALL.fullmatch(said.partition(" within ")[0])
    if call is not None:
        return f"{'never ' if call[1] else ''}calls {call[2]}"
    return (said.replace("_", " ") if causes.SLUG.fullmatch(said) else said) or "(no name)"


def worded(comparison: Comparison, report: Report) -> Comparison:
    """The comparison with its modes in words: a predicate as what its mechanism says that rollouts do."""
    ours = (comparison.baseline, comparison.candidate)
    said = {one.predicate: causes.does(one) for one in report.mechanisms if one.run in ours}

    def of(term: Term) -> Term:
        return replace(term, term=said.get(term.term, term.term))

    known = sorted(said, key=lambda name: (-len(name), name))
    found = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in known)) if known else None

    def moved(mover: Mover) -> Mover:
        if found is not None:
            beside = tuple(found.sub(lambda hit: f"“{said[hit[0]]}”", text) for text in mover.beside)
            mover = replace(mover, beside=beside)
        new = said.get(mover.term)
        if new is None:
            return mover
        return replace(mover, term=new, text=mover.text.replace(mover.term, f"“{new}”", 1))

    return replace(
        comparison,
        bridge=tuple(of(one) for one in comparison.bridge),
        views=tuple(replace(view, terms=tuple(of(one) for one in view.terms)) for view in comparison.views),
        movers=tuple(moved(one) for one in comparison.movers),
    )


def answers(comparison: Comparison, question: str) -> list[Tested]:
    """The tests of one question; the one that carries the estimate first."""
    return [one for one in comparison.tests if one.question == question]


def test_of(comparison: Comparison, question: str) -> Tested | None:
    return next(iter(answers(comparison, question)), None)


def tasks(n: int) -> str:
    return words.count(n, "task")


def n_common(comparison: Comparison) -> int:
    return len(comparison.alignment.common)


def candidate_keys(comparison: Comparison) -> dict[str, str]:
    """What the candidate calls a common task; empty where the keys themselves match."""
    found = comparison.alignment
    return dict(zip(found.common, found.common_candidate, strict=False))


def both(comparison: Comparison) -> Line:
    """`base` → `cand`."""
    return (run(comparison.baseline), " → ", run(comparison.candidate))


def is_partial(comparison: Comparison) -> bool:
    """Whether some task is in one run only, or is another task there."""
    one = comparison.alignment
    return bool(one.added or one.removed or one.modified)
