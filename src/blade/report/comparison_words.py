"""Word a comparison: runs that can be told apart, verdicts, tests, and what stages say as sentences of a page."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from blade import hostile, number_format
from blade.model import MARGIN, Comparison, Measure, Report, RewardKind, Tested
from blade.report import printed_names, queried_numbers
from blade.report.blocks import Badge, Bullets, Code, Line, Said
from blade.report.queried_numbers import Cited
from blade.report.terminal import cell_width

THESE, NEW = "these tasks", "new tasks"  # the two questions every verdict answers
TONES = {"improved": "good", "regressed": "bad", "equivalent": "quiet", "inconclusive": "warning"}
ALPHA = 0.05
SMALL = "by less than the margin"
LOG_RATIO = "log ratio"  # the unit of a measure that is given as a ratio
SIDES = {"task or verifier": "task, verifier or harness"}


def cited(comparison: Comparison) -> Cited:
    """A comparison with its query; what is not the default of `blade compare` is stated."""
    keys: dict[str, Any] = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    keys |= {"margin": comparison.margin} if comparison.margin != MARGIN else {}
    keys |= {"quick": True} if comparison.quick else {}
    return Cited(comparison, queried_numbers.entry("comparisons", **keys), is_rate(comparison.score_name))


def is_rate(score_name: str) -> bool:
    """Whether a score is printed in percent and points, not as a plain number."""
    return score_name.startswith("pass")


def report_score_name(report: Report) -> str:
    """The score of the comparisons, else of the runs."""
    names = [pair.score_name for pair in report.comparisons] + [run.score_name for run in report.runs]
    return next(iter(names), "pass_at_1")


def score_label(score_name: str) -> str:
    known = printed_names.QUANTITIES.get(score_name)
    return known.label if known is not None else hostile.line(score_name, 40)


def pair(comparison: Comparison) -> tuple[str, str]:
    return (comparison.baseline, comparison.candidate)


def score_of(comparison: Comparison, report: Report, role: str) -> Line:
    """The score of the baseline or candidate, with the query of its run where that gives the same."""
    name: str = getattr(comparison, role)
    of = cited(comparison)
    score, query = of[f"score_{role}"]
    if is_tabled(comparison, report, name):
        query = printed_names.query(Measure(name, comparison.score_name, None, 0))
    return (queried_numbers.num(number_format.level(score, of.is_rate), score, query),)


def is_tabled(comparison: Comparison, report: Report, name: str) -> bool:
    """Whether the tables of a run judge its rows as the comparison does, which takes runs scored in different ways by what reaches 1."""
    run = next((run for run in report.runs if run.name == name), None)
    if run is None or comparison.score_name not in ("pass_at_1", "mean_reward"):
        return False
    if comparison.score_name == "mean_reward":
        return True
    facts = report.benchmark.get(name)
    stated = facts.pass_threshold if facts is not None else None
    if stated is not None:
        return stated == run.pass_threshold
    if run.reward_kind is RewardKind.CONSTANT and run.score != 1:
        means = [measure.value for measure in report.measures if (measure.run, measure.name) == (name, "mean_reward")]
        return means == [0]  # all rewards are 0, not some other number below 1
    return run.reward_kind is not RewardKind.UNBOUNDED


def run(name: str, limit: int = 80) -> Code:
    return Code(middle(name, limit))


def both(comparison: Comparison) -> Line:
    """`base` → `cand`."""
    return (run(comparison.baseline), " → ", run(comparison.candidate))


def n_common(comparison: Comparison) -> Line:
    """`8 tasks`: those that both runs have."""
    n = len(comparison.alignment.common)
    return queried_numbers.count(n, "task", f"{cited(comparison).query}.alignment.common.count")


def margin(comparison: Comparison) -> Line:
    """`±3.0 points`."""
    return ("±", cited(comparison).size("margin"))


def candidate_keys(comparison: Comparison) -> dict[str, str]:
    """What the candidate calls a common task; empty where the keys themselves match."""
    return dict(zip(comparison.alignment.common, comparison.alignment.common_candidate, strict=False))


def term(name: str, limit: int = 120) -> str:
    """The name of a term, safe to print."""
    return hostile.line(name, limit) or "(no name)"


def side(name: str) -> str:
    """Who answers for a loss: a limit of the harness counts with task and verifier."""
    return SIDES.get(name) or hostile.line(name, 40)


# ---- Verdicts and tests --------------------------------------------------------------------------


def verdict(word: str | None) -> Badge:
    return Badge(word, TONES.get(word, "quiet")) if word else Badge("no verdict", "quiet")


def verdict_on(comparison: Comparison, question: str) -> str | None:
    return comparison.verdict if question == THESE else comparison.verdict_new_tasks


def is_small(comparison: Comparison, question: str) -> bool:
    """Whether a change is claimed that is surely smaller than the margin."""
    test, margin = test_of(comparison, question), comparison.margin
    if verdict_on(comparison, question) not in ("improved", "regressed") or test is None:
        return False
    return test.low90 is not None and test.high90 is not None and -margin < test.low90 and test.high90 < margin


def verdict_badge(comparison: Comparison, question: str) -> Line:
    """The verdict, and that the change is smaller than the margin where it is."""
    badge = verdict(verdict_on(comparison, question))
    return (badge, f" {SMALL}") if is_small(comparison, question) else (badge,)


def answers(comparison: Comparison, question: str) -> list[Tested]:
    """The tests of one question; the one that carries the estimate first."""
    return [test for test in comparison.tests if test.question == question]


def test_of(comparison: Comparison, question: str) -> Tested | None:
    return next(iter(answers(comparison, question)), None)


def tested(comparison: Comparison, test: Tested) -> Cited:
    """A test, selected by its question, the first of which carries the estimate."""
    return cited(comparison).entry("tests", test, "question")


# ---- Names of runs that fit a column and can still be told apart ---------------------------------

LONGEST = 400  # characters of a name that are looked at
_WORD = re.compile(r"[^\W_]+\Z")


def middle(name: str, columns: int) -> str:
    """The name, cleaned, in at most so many cells of a terminal: both ends tell more than the start alone."""
    from rich.cells import set_cell_size

    name = hostile.line(name, LONGEST)
    if cell_width(name) <= columns:
        return name
    head = (columns - 1) // 2
    end = set_cell_size(name[::-1], columns - 1 - head).rstrip()[::-1]
    return f"{set_cell_size(name, head).rstrip()}…{end}"


def apart(names: Sequence[str], columns: int) -> list[str]:
    """The names, each in at most so many cells, if need be without what all begin or end with; different names stay different."""
    cleaned = [hostile.line(name, LONGEST) for name in names]
    starts = _without_start(cleaned)
    ends = [name[::-1] for name in _without_start([name[::-1] for name in starts])]
    for shape in (cleaned, starts, ends):
        short = [middle(name, columns) for name in shape]
        if len(set(short)) == len(set(names)):
            return short
    places = {name: f" #{place}" for place, name in enumerate(dict.fromkeys(names), 1)}
    return [middle(name, max(1, columns - len(places[name]))) + places[name] for name in names]


def _without_start(names: list[str]) -> list[str]:
    """Without what all begin with, up to where a word starts."""
    first, last = min(names, default=""), max(names, default="")  # the farthest apart share the least
    same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = len(_WORD.sub("", first[:same]))
    return [f"…{name[start:]}" for name in names] if start > 1 else names


# ---- What a stage says, as sentences of a page ---------------------------------------------------

# What is taken from elsewhere keeps its letters: code spans and quotations.
_FOREIGN = r"`[^`]*`|“[^”]*”|\"[^\"]*\""
_SIGNS = r"(?P<minus>(?<![^\s(\[{])-(?=\d))"
_ENDS = (".", "!", "?", "…", ".)", ".”")


def sentence(text: str, query: str, limit: int = 600, names: Collection[str] = (), written: str | None = None) -> Line:
    """What a stage says, with its full stop; `names` stand in it as they are, whatever they hold."""
    cleaned = hostile.line(text, limit)
    if not cleaned:
        return ()
    # With − for the hyphen before a number, outside of names and quotations.
    untouched = "|".join([_FOREIGN, *(rf"(?<!\w){re.escape(name)}(?!\w)" for name in _cleaned(names))])
    signed = re.sub(f"{untouched}|{_SIGNS}", lambda hit: number_format.MINUS if hit["minus"] else hit[0], cleaned)
    span = Said(signed, query, text if written is None else written)
    return (span,) if signed.endswith(_ENDS) else (span, ".")


def note(text: str, query: str, names: Collection[str] = ()) -> Line:
    """A note as a sentence of its own; the name of a run that it starts with keeps its letters."""
    start = hostile.line(text, 600)
    if not any(start.startswith(name) and not start[len(name) :][:1].isalnum() for name in _cleaned(names)):
        start = start[:1].upper() + start[1:]
    return sentence(start, query, 600, names, text)


def notes(of: Cited, names: Collection[str], member: str = "notes") -> list[Line]:
    """The notes of a noun, a sentence each."""
    entries = enumerate(getattr(of.noun, member))
    return [note(text, f"{of.query}.{member}[{place}]", names) for place, text in entries if text.strip()]


def note_bullets(of: Cited, names: Collection[str]) -> list[Bullets]:
    """The same as bullets, if there are any."""
    items = notes(of, names)
    return [Bullets(tuple(items))] if items else []


def _cleaned(names: Collection[str]) -> list[str]:
    """Longest first, so that a name is not taken for one that it begins with."""
    cleaned = {hostile.line(name, 600) for name in names} - {""}
    return sorted(cleaned, key=lambda name: (-len(name), name))
