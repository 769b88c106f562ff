"""Word the groups and warnings of the ladder: rows and facts come from a question, its sentences from `ladder.yaml`."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from blade import hostile
from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.population import Mask, Population

Place = Callable[[RowEvidence], tuple[int | str, str] | None]  # step or field, and what to quote
Detail = Callable[[int], str]


@dataclass
class Group:
    """Failing rows that one fact explains, with everything a reader is told of them."""

    rung: str
    kind: str  # its card in the rung
    label: str | None
    name: str  # a phrase for a table
    rows: Mask  # failing rows
    text: str  # a sentence
    fix: str
    why: str  # reason for the label
    matched: Mask  # all rows that show the fact
    passed: int = 0  # passing rows that show the same fact
    against: list[str] = field(default_factory=list)
    consequences: list[str] = field(default_factory=list)
    place: Place = lambda row: None
    blame: Place | None = None  # the act that forecloses the task, where it is another than the one to quote
    confidence: str = "likely"  # proved, likely, unsure
    label_of: Callable[[int], str] | None = None  # label of a row by its place, where rows of one group differ
    tool: str = ""  # that is called too often or not, where that is the fact
    is_defined_by_passes: bool = False  # the fact is a difference from passing siblings or from the gold
    most: float | None = None  # the points that its fix could win at most, where that is not all that its rows lose
    detail: Detail | None = None  # what the row at a place shows of it, for a sentence about its task
    recount: Callable[[Mask, Any], Group] | None = None  # the same group of other rows


@dataclass
class Trust:
    """What a reader must know before the score is used."""

    level: str  # alarm, warning, note
    label: str | None
    text: str
    rows: Mask
    fix: str = ""


@dataclass
class Findings:
    """What one rung proved."""

    groups: list[Group] = field(default_factory=list)
    trust: list[Trust] = field(default_factory=list)

    def rest(self, rows: Mask) -> Mask:
        """The rows that none of its groups explains."""
        for proved in self.groups:
            rows = rows & ~proved.rows
        return rows


# ---- Places that many groups quote -----------------------------------------------------------------


def in_final(words: Callable[[RowEvidence], str]) -> Place:
    """Some words of the last message."""
    return lambda row: (row.final_step, words(row)) if row.final_step is not None else None


at_end = in_final(lambda row: "")  # the last message itself


def at_act(holds: Callable[[Act], Any]) -> Place:
    """The first act that a condition holds for."""
    return lambda row: next(((act.step, "") for act in row.acts if holds(act)), None)


def at_call(tool: str) -> Place:
    """The first call of a tool."""
    return at_act(lambda act: act.tool == tool)


def in_field(path: str, text: str | None = None) -> Place:
    """What a field holds, or a text in it."""
    return lambda row: (path, str(row.fields.get(path, "")) if text is None else text)


PLACES: dict[str, Place] = {  # as the cards name them
    "end": at_end,
    "gold": in_final(lambda row: row.gold_text.strip()),
    "last words": in_final(lambda row: row.final[-80:]),
    "first act": at_act(lambda act: True),
    "first error": at_act(lambda act: act.failed),
    "first error or act": lambda row: at_act(lambda act: act.failed)(row) or at_act(lambda act: True)(row),
    "closing words": in_final(lambda row: row.final.strip()[-120:]),
    "end of the answer": in_final(lambda row: row.final[-60:]),
    "last act": lambda row: (row.acts[-1].step, "") if row.acts else None,
    "none": lambda row: None,
}


# ---- Sentences -------------------------------------------------------------------------------------


@cache
def cards() -> Mapping[str, Any]:
    """The questions of the ladder by name, each with the sentences of its groups and warnings."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load(Path(__file__).with_name("ladder.yaml").read_text("utf-8"), loader))


class _Sentences(string.Formatter):
    """Numbers with their thousands, texts up to a length; `{n:failure}` counts things, `{n:pass|passes}` with a plural of their own."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, str) and format_spec.isdigit():
            return short(value, int(format_spec))
        if isinstance(value, int) and len(format_spec) > 2 and format_spec[0].isalpha():
            noun, _, plural = format_spec.partition("|")
            return count(value, noun, plural or None)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return str(super().format_field(value, format_spec or ("," if is_number else "")))


_SENTENCES = _Sentences()


def _filled(part: Any, facts: Mapping[str, Any]) -> str:
    """A text with its facts; of a list the sentences that apply: `says: …` stands only where there is such a fact, `not says: …` else."""
    if isinstance(part, str):
        return _SENTENCES.vformat(part, (), facts)
    if isinstance(part, list):
        return " ".join(filter(None, (_filled(entry, facts) for entry in part)))
    ((fact, text),) = part.items()
    return _filled(text, facts) if bool(facts.get(fact.removeprefix("not "))) != fact.startswith("not ") else ""


def _card(kind: str) -> tuple[str, Mapping[str, str]]:
    rung, _, name = kind.partition(".")
    return rung, cards()[rung]["groups"][name]


def group(
    kind: str, people: Population, rows: Mask, left: Mask | None = None, /, *, matched: Mask | None = None, path: str = "",
    place: Place | None = None, blame: Place | None = None, detail: Detail | None = None, against: Iterable[str] = (),
    label: str = "", confidence: str = "", **facts: Any,
) -> Group:  # fmt: skip
    """The group of a kind: of the rows that show its fact, those that are left to explain; `path` is the field that shows it.

    A card is filled with the facts, and with how many rows and tasks it has, and how rows with and without the fact pass.
    """
    rung, card = _card(kind)
    matched = rows if matched is None else matched
    claimed = rows if left is None else rows & left
    passed = int(people.passed[matched].sum())
    facts = {
        "n": int(claimed.sum()), "tasks": people.n_tasks(claimed), "rate": people.rate(matched), "others": people.rate(~matched),
        "passed": passed, "total": people.n, "with_these": int(people.passed.sum() + claimed.sum()), "path": path, **facts,
    }  # fmt: skip
    name, text, fix, why = (_filled(card[part], facts) for part in ("name", "text", "fix", "why"))
    if detail is None and "detail" in card:
        detail = lambda i: _filled(card["detail"], {**facts, "row": people.rows[i]})  # noqa: E731
    if place is None:
        place = (lambda row: (path, "")) if card.get("place") == "field" else PLACES[card.get("place", "none")]
    return Group(
        rung=rung, kind=kind.partition(".")[2], label=label or card["label"], name=name, rows=claimed, text=text, fix=fix, why=why,
        against=[*(_filled(doubt, facts) for doubt in card.get("against", ())), *against], matched=matched, detail=detail, place=place,
        blame=PLACES["none"] if card.get("blame") == "none" else blame, confidence=confidence or card.get("confidence", "likely"),
        passed=passed, tool=facts.get("tool", ""),
    )  # fmt: skip


def warning(kind: str, people: Population, rows: Mask, /, *, level: str = "", **facts: Any) -> Trust:
    """The warning of a kind about some rows, at the level that its card gives where none is said."""
    card = _card(kind)[1]
    facts = {"n": int(rows.sum()), "rate": people.rate(rows), "others": people.rate(~rows), "total": people.n, **facts}
    text, fix = (_filled(card.get(part, ""), facts) for part in ("text", "fix"))
    return Trust(level or card.get("level", "warning"), card.get("label"), text, rows, fix)


def sentence(kind: str, /, **facts: Any) -> str:
    """A sentence that stands in several groups, or in none."""
    return _filled(_card(kind)[1]["text"], facts)


def doubt(people: Population, group: Group) -> Trust:
    """A group as a reason to doubt the score: an alarm where so many rows are concerned that it cannot be used as it stands."""
    n, failed = int(group.rows.sum()), int(people.failed.sum())
    is_alarm = n >= 0.25 * failed and n >= 0.1 * people.n and group.passed <= 0.1 * (n + group.passed)
    return Trust("alarm" if is_alarm else "warning", group.label, group.text, group.rows, group.fix)


def explained(people: Population, groups: Iterable[Group]) -> Mask:
    """The rows that some group explains."""
    rows: Mask = np.logical_or.reduce([people.none, *(proved.rows for proved in groups)])
    return rows


def ask_each(people: Population, left: Mask, makes: Iterable[Callable[..., Any]], *context: Any, doubted: bool = False) -> Findings:
    """The groups that some questions prove, one after the other, each of the rows that those before it left; each with its doubt."""
    findings = Findings()
    for make in makes:
        result = make(people, findings.rest(left), *context)
        findings.groups += result if isinstance(result, list) else [result] if result is not None else []
    findings.trust += [doubt(people, proved) for proved in findings.groups if doubted]
    return findings


def joined(names: Iterable[str], n: int = 3) -> str:
    """Some names for a sentence, in backticks."""
    listed = [f"`{name}`" for name in names]
    more = f" and {len(listed) - n} more" if len(listed) > n else ""
    return ", ".join(listed[:n]) + more


def count(n: int, noun: str, plural: str | None = None) -> str:
    """`1 rollout`, `1,319 rollouts`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def short(text: str, most: int) -> str:
    """Words of a row for a sentence: on one line, without backticks, not longer than a bound."""
    return hostile.line(text.replace("`", "'"), most)
