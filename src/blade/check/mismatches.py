"""Point out sentences that name another value, tool, run or outcome than the citation beside their number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from blade.check.cited_numbers import Cited
from blade.check.world import World
from blade.errors import BladeError
from blade.model.checked import UNVERIFIABLE, Finding
from blade.query.measures import measure_of

_EQUALS = re.compile(
    r"(?P<no>\bnot\s+)?(?:\b\w+\.)?(?P<column>\"[^\"]+\"|\b[a-z_]\w*)\s*==?\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<n>\d+)\b)",
    re.IGNORECASE,
)
_CALLS = re.compile(r"\bcalls\(\s*'(?P<tool>(?:[^']|'')*)'\s*\)", re.IGNORECASE)
_PASSED = re.compile(r"(?P<no>\bnot\s+)?\bpassed\b(?!')(?P<un>\s*(?:=|is)\s*(?:false|0)\b)?", re.IGNORECASE)
_OUTCOMES = {  # the words for the two outcomes that every run has
    "passed": re.compile(r"\bpass(?:e[sd]|ing)?\b(?!\s*rate)", re.IGNORECASE),
    "failed": re.compile(r"\bfail(?:s|ed|ing|ures?)?\b(?!\s*rate)", re.IGNORECASE),
}
_ORDINALS = "first second third fourth fifth sixth seventh eighth".split()
_BREAK = re.compile(r"[;:—–]|\.\s")
About = tuple[str, str]  # a column, or `measured` or `k`; and the value that a citation is about


def mismatches(items: Sequence[Cited], world: World) -> Iterator[Finding]:
    """One finding for each citation whose clause names something else of the same column, and not its own."""
    subjects = {id(item): list(about(item.citation.query)) for item in items if not item.citation.is_open}
    every: dict[int, set[About]] = {}
    for item in items:
        every.setdefault(id(item.passage), set()).update(subjects.get(id(item), ()))
    for item in items:
        for subject in subjects.get(id(item), ()):
            other = _other(subject, item, every[id(item.passage)], world)
            if other is not None:
                said = " ".join(subject) if subject[1].isdecimal() else subject[1]
                place = (item.line, item.lines, item.text, item.before[-80:].strip(), "", f"about {said}")
                why = f"the sentence says {other}, the citation is about {said}"
                yield Finding(UNVERIFIABLE, "citation", *place, why, item.citation.query)
                break


def about(query: str) -> Iterator[About]:
    """The values, tools and outcomes that a query selects by."""
    try:
        measure = measure_of(query)
    except BladeError:
        return
    condition = query if measure is None else measure.where or ""
    if measure is not None and measure.name in ("mean", "sum"):
        yield "measured", (measure.argument or "").strip('"')
    if measure is not None and measure.name in ("pass_at_k", "pass_hat_k"):
        yield "k", str(measure.k)
    if query.startswith("engine.") or re.search(r"\bor\b|\bcase\b", condition, re.IGNORECASE):
        return
    for hit in _EQUALS.finditer(condition):
        value = (hit["text"] or hit["n"] or "").replace("''", "'")
        if value and not hit["no"]:
            yield hit["column"].strip('"'), value
    yield from (("tool", hit["tool"].replace("''", "'")) for hit in _CALLS.finditer(condition))
    fails = [bool(hit["no"] or hit["un"]) for hit in _PASSED.finditer(condition)]
    yield from (("outcome", "failed" if fail else "passed") for fail in fails)


def _other(subject: About, item: Cited, every: set[About], world: World) -> str | None:
    """The other value that the clause of a number names, where nothing around it names the cited one."""
    (column, cited), passage = subject, item.passage
    if passage is None:
        return None
    breaks = [hit.end() for hit in _BREAK.finditer(passage.own)]
    start = max((place for place in breaks if place <= item.start), default=0)
    end = min((place for place in breaks if place > item.end), default=len(passage.own))
    clause = passage.label if passage.kind == "cell" else passage.own[start:end]
    context = " ".join((clause, passage.text, passage.before, passage.around, *passage.headings))
    if _names(subject, context, is_lenient=True):
        return None
    for value in _alternatives(column, cited, world):
        if value != cited and (column, value) not in every and _names((column, value), clause):
            return value
    for number, word in enumerate(_ORDINALS) if cited.isdecimal() else ():
        hit = re.search(rf"\b{word}\s+{re.escape(column)}\b", clause, re.IGNORECASE)
        if hit and int(cited) not in (number, number + 1):
            return hit[0]
    return None


def _alternatives(column: str, cited: str, world: World) -> Iterable[str]:
    """The other values that could have been meant."""
    if column == "measured":  # columns that differ from it in their first word, by which `_names` tells them
        tail = cited.partition("_")[2]
        return [name for name in world.columns() if tail and name.partition("_")[2] == tail]
    fixed = {"outcome": tuple(_OUTCOMES), "k": tuple(map(str, range(1, 65))), "run": world.rows.runs}
    return fixed[column] if column in fixed else world.values(column)


def _names(subject: About, text: str, is_lenient: bool = False) -> bool:
    """Whether a text names a value; leniently also by its beginning or inside another word."""
    column, value = subject
    if column == "outcome" and value in _OUTCOMES:
        return _OUTCOMES[value].search(text) is not None
    word = re.escape(value)
    if column == "k":
        pattern = rf"[@^]{word}\b" + (rf"|\b{word}\b" if is_lenient else "")
    elif column == "measured":
        pattern = rf"(?<!\bin )\b{re.escape(value.split('_')[0])}\b"
    elif column == "tool" or re.fullmatch(r"[\d.]+|\w{1,2}", value):  # may mean anything
        pattern = rf"[`“\"'‘]{word}[`”\"'’]|\b{re.escape(column)}\s+(?:number\s+)?#?{word}\b"
        pattern += rf"|\b{word}\b" if is_lenient else ""
    else:
        start = rf"(?<!\w-)\b{re.escape(value[:4])}"
        pattern = start if is_lenient else rf"(?<![\w-]){word}(?!\w|-(?!\w+\b))"
    return re.search(pattern, text, re.IGNORECASE) is not None
