"""Print the numbers of a comparison with their queries: levels, changes, intervals, verdicts, tests."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from blade import hostile, number_format
from blade.model import MARGIN, Comparison, Measure, Report, RewardKind, Tested
from blade.report import numbers, quantities, queries
from blade.report.blocks import Badge, Code, Line, Span
from blade.report.change.names import middle

THESE, NEW = "these tasks", "new tasks"  # the two questions every verdict answers
TONES = {"improved": "good", "regressed": "bad", "equivalent": "quiet", "inconclusive": "warning"}
ALPHA = 0.05
SMALL = "by less than the margin"
LOG_RATIO = "log ratio"  # the unit of a measure that is given as a ratio
SIDES = {"task or verifier": "task, verifier or harness"}


class Scale(NamedTuple):
    """How a score is printed: a rate in percent and points, any other as a plain number."""

    is_rate: bool

    def level(self, value: float | None, query: str) -> Span:
        return numbers.percent(value, query) if self.is_rate else numbers.number(value, query)

    def said(self, value: float | None) -> str:
        """`+8.4 points`, or `+0.084` where the score is no rate."""
        if self.is_rate or value is None or not math.isfinite(value):
            return number_format.points(value)
        return signed(value)

    def change(self, value: float | None, query: str, strong: bool = False) -> Span:
        return numbers.num(self.said(value), value, query, strong)

    def size(self, value: float | None, query: str) -> Span:
        """A change without its sign: `8.4 points`."""
        if value is None:
            return number_format.NONE
        return numbers.num(self.said(abs(value)).removeprefix("+"), abs(value), query)

    def interval(self, low: float | None, high: float | None, query: str) -> Line:
        """` [+3.1 points, +14.2 points]`, or nothing; `query` selects what has the ends `low` and `high`."""
        return numbers.between(self.change(low, f"{query}.low"), self.change(high, f"{query}.high"))

    def tested(self, test: Tested, query: str) -> Line:
        """`+8.4 points [+3.1 points, +14.2 points]` of a test that `query` selects."""
        estimate = self.change(test.estimate, f"{query}.estimate")
        return (estimate, *self.interval(test.low, test.high, query))


def scale(score_name: str) -> Scale:
    return Scale(score_name.startswith("pass"))


def signed(value: float) -> str:
    """A plain number with its sign."""
    said = number_format.number(value)
    return f"+{said}" if value >= number_format.EXACT else said


def score_label(score_name: str) -> str:
    known = quantities.QUANTITIES.get(score_name)
    return known.label if known is not None else hostile.line(score_name, 40)


def query(comparison: Comparison) -> str:
    """The engine query that selects a comparison; what is not the default of `blade compare` is stated."""
    keys: dict[str, Any] = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    keys |= {"margin": comparison.margin} if comparison.margin != MARGIN else {}
    keys |= {"quick": True} if comparison.quick else {}
    return queries.entry("comparisons", **keys)


def score_query(comparison: Comparison, report: Report, role: str) -> str:
    """The query that gives the score of the baseline or candidate: that of its run where it is the same."""
    name: str = getattr(comparison, role)
    if is_tabled(comparison, report, name):
        return quantities.query(Measure(name, comparison.score_name, None, 0))
    return f"{query(comparison)}.score_{role}"


def is_tabled(comparison: Comparison, report: Report, name: str) -> bool:
    """Whether the tables of a run judge its rows as the comparison does.

    Runs that are scored in different ways by themselves are compared by what reaches 1, and their tables
    know nothing of that.
    """
    found = next((run for run in report.runs if run.name == name), None)
    if found is None or comparison.score_name not in ("pass_at_1", "mean_reward"):
        return False
    if comparison.score_name == "mean_reward":
        return True
    facts = report.benchmark.get(name)
    stated = facts.pass_threshold if facts is not None else None
    if stated is not None:
        return stated == found.pass_threshold
    if found.reward_kind is RewardKind.CONSTANT and found.score != 1:
        means = [one.value for one in report.measures if (one.run, one.name) == (name, "mean_reward")]
        return means == [0]  # all rewards are 0, not some other number below 1
    return found.reward_kind is not RewardKind.UNBOUNDED


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
    """The name of a term, safe to print."""
    return hostile.line(name, limit) or "(no name)"


def side(name: str) -> str:
    """Who answers for a loss: a limit of the harness counts with task and verifier."""
    return SIDES.get(name) or hostile.line(name, 40)


def answers(comparison: Comparison, question: str) -> list[Tested]:
    """The tests of one question; the one that carries the estimate first."""
    return [one for one in comparison.tests if one.question == question]


def test_of(comparison: Comparison, question: str) -> Tested | None:
    return next(iter(answers(comparison, question)), None)


def n_common(comparison: Comparison) -> Line:
    """`8 tasks`: those that both runs have."""
    return numbers.count(
        len(comparison.alignment.common), "task", f"{query(comparison)}.alignment.common.count"
    )


def margin(comparison: Comparison) -> Line:
    """`±3.0 points`."""
    return ("±", scale(comparison.score_name).size(comparison.margin, f"{query(comparison)}.margin"))


def test_query(comparison: Comparison, test: Tested) -> str:
    """The engine query that selects a test: by its question, the first of which carries the estimate."""
    return queries.chosen(f"{query(comparison)}.tests", comparison.tests, test, "question")


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
