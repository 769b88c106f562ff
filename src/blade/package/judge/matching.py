"""Decide whether a report meets an anchor: by the same query, or by its number beside its names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from blade.model.checked import SUPPORTED, Finding
from blade.package.judge.anchors import Anchor, Meaning, rows_of
from blade.package.judge.statements import Passage, Statement, Tasks, figures, mentions
from blade.query.figures import Figure, agrees
from blade.query.measures import measure_of

if TYPE_CHECKING:
    from blade.package.worlds import Worlds

MOST_NAMED = 3  # tasks up to which a sentence must name all; of more, two thirds
MOST_OTHERS = 2  # tasks beside them that it may name, or half as many


ROLLOUTS = r"(?:rollouts?|repeats?|tr(?:y|ies)|attempts?|runs?|transcripts?|samples?)"


class Hit(msgspec.Struct, frozen=True):
    """How an anchor fared: met by what, or denied."""

    anchor: Anchor
    met: bool
    how: str = ""  # citation, number, rollouts, words, wording
    text: str = ""
    line: int = 0
    denied: bool = False


def hit_of(
    anchor: Anchor,
    meant: Meaning | None,
    read: Sequence[Passage],
    findings: Sequence[Finding],
    worlds: Worlds | None,
    known: Tasks,
) -> Hit:
    """The best that a report says of an anchor; what it also denies it has not found."""
    hits: list[Hit] = []
    if meant is not None:
        hits += [_cited(anchor, meant, finding, worlds) for finding in findings]
        hits += [hit for passage in read for hit in _said(anchor, meant, passage)]
    else:
        hits += [hit for passage in read for hit in _worded(anchor, passage, known)]
    denied = [hit for hit in hits if hit.denied]
    met = [hit for hit in hits if hit.met]
    return (denied or met or [Hit(anchor, False)])[0]


# -- by citation ------------------------------------------------------------------------------------


def _cited(anchor: Anchor, meant: Meaning, finding: Finding, worlds: Worlds | None) -> Hit:
    if finding.kind != "citation" or finding.verdict != SUPPORTED or not finding.query or worlds is None:
        return Hit(anchor, False)
    if not is_same_query(anchor.query or "", finding.query, meant, worlds):
        return Hit(anchor, False)
    denied = is_denied(finding.text, finding.text.find(finding.printed), anchor)
    return Hit(anchor, not denied, "citation", finding.text, finding.line, denied)


def is_same_query(first_query: str, second_query: str, meant: Meaning, worlds: Worlds) -> bool:
    """Whether two queries ask the same: letter by letter, or the same measure of the same rollouts."""
    if _plain(first_query) == _plain(second_query):
        return True
    first, second = measure_of(first_query), measure_of(second_query)
    if first is None or second is None or not meant.rollouts or worlds.is_of_others(second_query):
        return False
    is_alike = (first.name, first.argument, first.part) == (second.name, second.argument, second.part)
    return is_alike and rows_of(second, worlds) == meant.rollouts


@lru_cache(maxsize=4096)
def _plain(query: str) -> str:
    bare = re.sub(r"\s*\|\s*(?:percent|points|number|count|list|table)(?:\s+\d)?\s*$", "", query.strip())
    return re.sub(r"\s+", " ", bare).lower().replace("( ", "(").replace(" )", ")")


# -- by a number and names --------------------------------------------------------------------------


def _said(anchor: Anchor, meant: Meaning, passage: Passage) -> Iterable[Hit]:
    for number, statement in enumerate(passage.all):
        start, how = _stated(anchor, meant, statement, passage)
        if how and is_about(anchor, meant, number, passage):
            denied = is_denied(statement.text, start, anchor)
            yield Hit(anchor, not denied, how, statement.text, statement.line, denied)


def is_about(anchor: Anchor, meant: Meaning, number: int, passage: Passage) -> bool:
    """Whether a statement of a passage is about what an anchor is about.

    It, a neighbour or the passage names the tasks; or the passage names a tool, value or field of the query.
    """
    wanted, every = frozenset(anchor.tasks), passage.all
    spans = ((number, number + 1), (max(0, number - 1), number + 1), (number, number + 2), (0, len(every)))
    windows = [every[start:end] for start, end in spans]
    if wanted and any(_covers(_named(window), wanted) for window in windows):
        return True
    text = _spelled(passage.text)
    if any(_has(text, name) for name in meant.names):
        return True
    return not wanted and not meant.names and bool(_MEASURES.get(meant.measure, _NEVER).search(text))


def _named(window: Sequence[Statement]) -> frozenset[str]:
    return frozenset(task for statement in window for task in statement.tasks)


def _covers(named: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether tasks that are named are those that are wanted: all or most of them, and few others."""
    least = len(wanted) if len(wanted) <= MOST_NAMED else math.ceil(len(wanted) * 2 / 3)
    return len(named & wanted) >= least and len(named - wanted) <= max(MOST_OTHERS, len(wanted) / 2)


_NEVER = re.compile(r"(?!)")
_MEASURES = {
    name: re.compile(r"pass(?:es|ed|ing)?\b|pass 1|score|success|accura|solve[sd]?\b")
    for name in ("pass_at_1", "rate")
}
_MEASURES |= {
    "count": re.compile(r"rollouts?|attempts?|rows?|tries"),
    "tasks": re.compile(r"tasks?|problems?"),
}
_MEASURES |= {name: re.compile(r"at least one|some|pass \d|any|all") for name in ("pass_at_k", "pass_hat_k")}


@lru_cache(maxsize=4096)
def _spelled(text: str) -> str:
    return re.sub(r"[^\w.'-]+", " ", text.lower().replace("_", " "))


def _has(text: str, name: str) -> bool:
    bare = _spelled(name).strip()
    return bool(bare) and re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", text) is not None


def _stated(anchor: Anchor, meant: Meaning, statement: Statement, passage: Passage) -> tuple[int, str]:
    """Where a statement says what the anchor says, and how; nowhere: -1 and nothing."""
    for figure in statement.figures:
        if is_number(figure, meant, anchor.tolerance):
            return figure.start, "number"
    if _lists(anchor, meant, statement, passage):
        return 0, "rollouts"
    only = _ONLY.search(statement.text) if meant.kind == "count" and meant.value == 1 else None
    if only and len(anchor.tasks) == 1 and statement.tasks == set(anchor.tasks):
        return only.start(), "words"
    word, text = _in_words(meant, statement.text), _spelled(statement.text)
    if word is not None and (not meant.names or any(_has(text, name) for name in meant.names)):
        return word, "words"
    return -1, ""


def is_number(figure: Figure, meant: Meaning, tolerance: float = 0.0) -> bool:
    """Whether a printed number can be the anchor's: a share as a percentage, a count as a count."""
    is_share = figure.is_percent or figure.is_points or figure.whole is not None or figure.step < 1
    if meant.kind == "rate":
        if figure.whole is not None:
            return figure.whole > 0 and abs(figure.number / figure.whole - meant.value) < 1e-9
        scaled = figure.number / 100 if figure.is_percent or figure.is_points else figure.number
        return is_share and (agrees(figure, meant.value) or abs(scaled - meant.value) <= tolerance)
    if figure.is_percent or figure.is_points:
        return False
    if meant.kind == "count":
        return figure.step == 1 and abs(figure.number - meant.value) <= tolerance
    return agrees(figure, meant.value) or abs(figure.number - meant.value) <= tolerance


def _lists(anchor: Anchor, meant: Meaning, statement: Statement, passage: Passage) -> bool:
    """Whether the rollouts that an anchor counts are listed one by one."""
    if meant.kind != "count":
        return False
    for named in (statement.rollouts, passage.rollouts):
        if len(named) != meant.value or len(named) < 2:
            continue
        tasks = {name.rpartition("/")[0] for name in named}
        if named == meant.rollouts or (
            meant.rollouts is None and anchor.tasks and tasks == set(anchor.tasks)
        ):
            return True
    is_single = meant.rollouts is not None and len(meant.rollouts) == 1 == meant.value
    return (
        is_single
        and statement.rollouts == meant.rollouts
        and any(_has(_spelled(passage.text), name) for name in meant.names)
    )


_ALL = re.compile(r"\b(?:all|every|each|always|both)\b", re.IGNORECASE)
_EVERY_ROLLOUT = re.compile(
    rf"\b(?:all|every|each)\s+(?:of\s+)?(?:the\s+|its\s+|these\s+|single\s+)?(?:{ROLLOUTS}|time|of\s+tasks?|tasks?\s+\d)\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\bthe (?:only|one|single)\b|\bonly one\b|\bno other\b", re.IGNORECASE)
_NONE = re.compile(r"\b(?:none|no|never|neither|not a single|not one)\b", re.IGNORECASE)
_PASS = re.compile(r"\b(?:pass(?:es|ed|ing)?|solved?|succeeds?|succeeded)\b", re.IGNORECASE)
_FAIL = re.compile(r"\b(?:fail(?:s|ed|ing|ures?)?|lost|loses?)\b", re.IGNORECASE)


def _in_words(meant: Meaning, text: str) -> int | None:
    """Where words say a whole share: all of them pass, none passes, all fail, every repeat does it."""
    every, none = _ALL.search(text), _NONE.search(text)
    if meant.kind == "rate" and meant.value in (0.0, 1.0):
        if meant.value == 1.0:
            return every.start() if every and _PASS.search(text) and not _FAIL.search(text) else None
        if none and _PASS.search(text, none.end()):
            return none.start()
        return every.start() if every and _FAIL.search(text) and not _PASS.search(text) else None
    if meant.kind == "count" and meant.value and meant.value == meant.n_rollouts:
        whole = _EVERY_ROLLOUT.search(text)
        return whole.start() if whole else None
    return None


# -- by wording alone -------------------------------------------------------------------------------


def _worded(anchor: Anchor, passage: Passage, known: Tasks) -> Iterable[Hit]:
    """An anchor without a query: its numbers, ids and names beside each other."""
    wanted = [figure for figure in figures(anchor.fact, known) if figure.number or figure.is_percent]
    named = {name.rpartition("/")[0] or name for _, _, name in mentions(anchor.fact, known)}
    tasks = named | set(anchor.tasks)
    names = {
        name.lower() for name in re.findall(r"`([^`]+)`|\b(\w+_\w+)\b", anchor.fact) for name in name if name
    }
    text = _spelled(passage.text)
    if not (tasks or names) or not tasks <= passage.tasks or not all(_has(text, name) for name in names):
        return
    here = {(figure.number, figure.is_percent) for each in passage.all for figure in each.figures}
    is_met = all((figure.number, figure.is_percent) in here for figure in wanted)
    if is_met and (wanted or _shared(anchor.fact, passage.text) >= 0.5):
        denied = any(is_denied(each.text, len(each.text), anchor) for each in passage.all)
        yield Hit(anchor, not denied, "wording", passage.text, passage.statements[0].line, denied)


def _shared(fact: str, text: str) -> float:
    """The share of a fact's longer words that a passage has too."""
    words = set(re.findall(r"[a-z]{4,}", fact.lower()))
    return len(words & set(re.findall(r"[a-z]{4,}", text.lower()))) / max(1, len(words))


# -- negation ---------------------------------------------------------------------------------------

DENIAL = re.compile(
    r"\bit(?: is|'s) (?:simply |just )?(?:false|untrue|wrong|not true|not the case|a (?:lie|myth)) that\b"
    r"|\bthis is (?:false|untrue|wrong|a lie)\b|, which is (?:false|untrue|a lie)\b"
    r"|\b(?:none|nothing) of (?:that|this|it|the above) (?:is|was) true\b|\bno evidence that\b"
    r"|\bdoubt(?:s|ed)? that\b|\brefutes? the (?:idea|claim|notion)\b|\bwrongly (?:alleges?|claims?) that\b",
    re.IGNORECASE,
)
_JUST_BEFORE = re.compile(r"\b(?:not|never|no|neither|nor)\b(?:\s+[\w-]+){0,2}\s+[\"“*_]*$", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|without|nor|neither|nothing|skip\w*|lacks?|missing)\b|= 0\b|n't\b", re.I
)


def is_denied(text: str, start: int, anchor: Anchor) -> bool:
    """Whether a sentence turns the number at `start` round: denied, or negated where the fact is not."""
    if DENIAL.search(text) and not DENIAL.search(anchor.fact):
        return True
    if _NEGATIVE.search(anchor.fact) or _NEGATIVE.search(anchor.query or ""):
        return False  # the negation is the fact
    return _JUST_BEFORE.search(text[: max(start, 0)]) is not None
