"""Find what the shape of a report takes back: questions, open boxes, refrains, hidden blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from blade.model import SUPPORTED, UNVERIFIABLE
from blade.package.judge.frames import is_untrue, parts
from blade.package.judge.units import Unit, is_pointer
from blade.prose.document import document

_QUESTION = re.compile(r"\?[\s*_)\]!?]*$")
_ASKS = re.compile(r"^\W*(?:why|what|how|which|where|who|whom|whose|when)\b", re.IGNORECASE)
_OPEN_BOX = re.compile(r"^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*\[ \][ \t]", re.MULTILINE)
REFRAIN = 5  # claims after which the same words are no accident
_FEW_WORDS = 6
_RATING = re.compile(
    r"\b(?:confidence|certainty|severity|priority|impact|effort|evidence|risk|importance|scope|see|seen|shown)\b",
    re.IGNORECASE,
)
# A mark of feeling after a full stop would hide where the next sentence begins.
_PICTURE = re.compile(r"(?<=[.!?])[ \t]+[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff]+(?=\s|$)")


def shown(text: str) -> str:
    """A report as its reader sees it: without hidden blocks, and without pictures between sentences."""
    bare = "".join(part if is_fenced else _PICTURE.sub("", part) for part, is_fenced in parts(text))
    return _unhidden(bare)


_HIDES = re.compile(
    r"^\s*<(?P<tag>div|section|span|p|article|template|details)\b(?P<how>[^<>]*)>(?P<rest>.*)$",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"\bhidden\b|display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary[^<>]*>(.*?)(?:</summary|$)", re.IGNORECASE | re.DOTALL)
_THROWN = re.compile(
    r"\b(?:discard|reject|obsolete|outdated|supersed|retract|withdraw|abandon|scrap|ignore"
    r"|do not (?:read|use))",
    re.IGNORECASE,
)


def _unhidden(text: str) -> str:
    """A text without blocks that are not shown or thrown away; its lines keep their numbers."""
    lines = [(line, is_fenced) for part, is_fenced in parts(text) for line in part.splitlines(keepends=True)]
    kept, tag, depth = [], "", 0
    for at, (line, is_fenced) in enumerate(lines):
        hit = None if is_fenced or tag else _HIDES.match(line)
        if hit and _is_hidden(hit, "".join(told for told, _ in lines[at : at + 4])):
            tag = hit["tag"].lower()
        if not tag:
            kept.append(line)
            continue
        if not is_fenced:
            depth += len(re.findall(rf"<{tag}\b", line, re.IGNORECASE))
            depth -= len(re.findall(rf"</{tag}\s*>", line, re.IGNORECASE))
        kept.append("\n" if line.endswith("\n") else "")
        if depth <= 0:
            tag, depth = "", 0
    return "".join(kept)


def _is_hidden(hit: re.Match[str], opening: str) -> bool:
    tag = hit["tag"].lower()
    if tag == "template" or _HIDDEN.search(hit["how"]):
        return True
    told = _SUMMARY.search(opening) if tag == "details" else None
    if told is None:
        return False
    return bool(_THROWN.search(told[1])) or any(map(is_untrue, re.findall(r"[a-z-]+", told[1].lower())))


def without_unclaimed(read: Sequence[Unit], text: str) -> tuple[Unit, ...]:
    """Units with those that claim nothing supporting nothing: what is asked, left open or laughed off."""
    boxes = {text.count("\n", 0, hit.start()) + 1 for hit in _OPEN_BOX.finditer(text)}
    laughed, judged = _before_refrains(read), set(_rows_called_wrong(text))
    told = []
    for at, unit in enumerate(read):
        # What is still to be done is rightly left open.
        is_open = unit.line in boxes and not unit.advice and unit.kind == "sentence"
        is_asked = unit.kind == "sentence" and bool(_QUESTION.search(unit.text))
        if is_asked and _ASKS.match(unit.text) and unit.verdict == SUPPORTED:
            unit = replace(unit, verdict=UNVERIFIABLE)
        elif is_open or at in laughed or (is_asked and not _ASKS.match(unit.text)):
            unit = replace(unit, denied=True, verdict=unit.verdict and UNVERIFIABLE)
        elif unit.kind == "row" and unit.line in judged and unit.verdict == SUPPORTED:
            unit = replace(unit, denied=True, verdict=UNVERIFIABLE)
        told.append(unit)
    return tuple(told)


def _before_refrains(read: Sequence[Unit]) -> set[int]:
    """The claims before short words without a fact that come back again and again."""
    follows: dict[str, list[int]] = {}
    labels: set[int] = set()  # words of which a report has some in the section of every task
    for at, unit in enumerate(read[1:]):
        if _is_bare(unit) and read[at].kind == "sentence" and read[at].verdict is not None:
            follows.setdefault(_plain(unit.text), []).append(at)
            if unit.tasks - unit.near:
                labels.add(at)
    claims = [
        unit for unit in read if unit.kind == "sentence" and unit.verdict and not unit.text.endswith(":")
    ]
    often = [places for places in follows.values() if len(places) >= REFRAIN]
    # Words that come back after most of what is said are on labels, rows and quotations too.
    if often and 2 * sum(map(len, often)) >= len(claims):
        return set(range(len(read)))
    alone = [[at for at in places if at not in labels] for places in often]
    return {at for places in alone if len(places) >= REFRAIN for at in places}


def _is_bare(unit: Unit) -> bool:
    words = unit.text.split()
    is_short = unit.kind == "sentence" and 0 < len(words) <= _FEW_WORDS and unit.verdict is None
    is_plain = not re.search(r"[\d`“”]|:$", unit.text) and not _RATING.search(unit.text)
    return is_short and is_plain and not (unit.causes or unit.own) and not is_pointer(unit.text)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


_JUDGING = frozenset("wrong false untrue incorrect refuted lie lies bogus invented no nope".split())
_ASKED = re.compile(r"holds|true|correct|right|valid|verdict|believ|real", re.IGNORECASE)


def _rows_called_wrong(text: str) -> Iterator[int]:
    """The lines of rows whose table has a column that does nothing but call them wrong."""
    for table in document(text).tables:
        for at, head in enumerate(table.header):
            cells = Counter(_plain(row.cells[at]) for row in table.rows if at < len(row.cells))
            is_verdict = not head.strip() or _plain(head) in _JUDGING or bool(_ASKED.search(head))
            if is_verdict and cells and set(cells) <= _JUDGING:
                yield from (row.line for row in table.rows)
