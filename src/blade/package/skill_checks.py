"""Check the skill of a package: frontmatter by the Agent Skills rules, sections, words of these rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from blade.agent.skills import MAX_NAME, keys, slug, split
from blade.package.layout import Broken, Layout, compact, compiled, read_text, table, words_of
from blade.package.shallow import HEADING, unfenced
from blade.package.validation import SKILL, Check, either, plural, words

MIN_LINES, MIN_HEADINGS = 50, 3
MIN_WORDS = 100  # distinct ones, of the whole skill
MIN_SECTION_WORDS = 10  # distinct ones, of a section with those below it
MIN_TERMS = 2  # words of the rows or of the trade in each section, and their least share of its words
MIN_TERMS_SHARE = 0.1
MIN_SMALL = 0.15  # of the words of a section that are the small ones of a language: it is prose
MIN_FIELDS = 3  # of the rows, under the schema
MIN_PARTS = 3  # of a report, under the template
MAX_DESCRIPTION = 1024

# What a benchmark-specific skill must explain, with the headings that do.
SECTIONS: dict[str, str] = table()["sections"]
SCHEMA, TEMPLATE = "Input schema", "Report template"
# The words that prose cannot do without, in the languages that are written in Latin letters most.
SMALL = words_of("small")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_RESERVED = ("anthropic", "claude")
_PART = re.compile(r"^\s*(?:#{1,6}\s|[-*+]\s|\d{1,2}[.)]\s|\*\*|\|)\s*(.*\w.*)$")
_PERSON = re.compile(r"^\s*(I|You|We)\b|\b(I can|I will|I'll|you can use|we will)\b", re.IGNORECASE)


def skill_checks(package: Layout, benchmarks: Iterable[str], rows: Terms) -> list[Check]:
    """The checks of D1; `benchmarks` are further names of it, `rows` what its rows call things."""
    path = package.skill
    if path is None:
        return [Check(False, "D1 skill missing: expected skill/SKILL.md or SKILL.md", SKILL)]
    first = Check(True, f"D1 skill found: {path.resolve()}", SKILL)
    try:
        text = read_text(path)
    except Broken as broken:
        return [first, Check(False, f"SKILL.md {broken}", SKILL)]
    names = (path.resolve().parent.name, package.folder.resolve().name, *benchmarks)
    own = {slug(name, "-") for name in names} - {""}
    return [first, *_head(text, own), *_body(text, rows)]


def _head(page: str, own: set[str]) -> Iterator[Check]:
    """The two keys that a skill must have, then the rules for each."""
    block, _ = split(page)
    if block is None:
        yield Check(False, "SKILL.md is missing YAML frontmatter", SKILL)
        return
    name, description = (keys(block).get(key, "") for key in ("name", "description"))
    yield Check(bool(name), "SKILL.md frontmatter has name", SKILL)
    yield Check(bool(description), "SKILL.md frontmatter has description", SKILL)
    is_own = any(name == known or name.startswith(f"{known}-") for known in own)
    rules = (  # of what, whether it breaks the rule, and what is said then
        ("name", len(name) > MAX_NAME, f"has {len(name)} characters, at most {MAX_NAME} are allowed"),
        ("name", not _NAME.fullmatch(name), "must be lower-case letters and digits, joined by single hyphens"),
        ("name", any(word in name for word in _RESERVED), f"holds a reserved word ({', '.join(_RESERVED)})"),
        ("name", not is_own, f"is neither the folder of the skill nor the benchmark ({', '.join(sorted(own))})"),
        ("description", len(description) > MAX_DESCRIPTION,
         f"has {len(description):,} characters, at most {MAX_DESCRIPTION:,} are allowed"),
        ("description", re.search(r"</?[A-Za-z][^<>]*>", description), "holds an XML tag"),
        ("description", _PERSON.search(description), "must speak of the skill in the third person"),
        ("description", len(words(description)) < 5, "does not say what the skill does and when to use it"),
    )  # fmt: skip
    for key, text, shown in (("name", name, f"name {compact(name)}"), ("description", description, "description")):
        if text:
            wrong = next((why for of, is_broken, why in rules if of == key and is_broken), "")
            yield Check(not wrong, f"SKILL.md {shown} {wrong or 'follows the rules'}", SKILL)


def _headings(body: str) -> list[tuple[int, str, str]]:
    """Depth, title and text of every heading, the text with what stands below its lower headings."""
    hits = [(HEADING.match(line), number) for number, line in unfenced(body)]
    marks = [(len(hit[1]), hit[2], number) for hit, number in hits if hit]
    lines, headings = body.splitlines(), []
    for place, (depth, title, number) in enumerate(marks):
        end = next((low for other, _, low in marks[place + 1 :] if other <= depth), len(lines))
        headings.append((depth, title, "\n".join(lines[number + 1 : end])))
    return headings


def _body(text: str, rows: Terms) -> Iterator[Check]:
    """Whether each section is there, says something of these rows and an analysis, and was not left for later."""
    _, body = split(text)
    titles = [(title, below) for depth, title, below in _headings(body) if depth == 2]
    n, known = len(text.splitlines()), len(words(body))
    is_long = n >= MIN_LINES and len(titles) >= MIN_HEADINGS
    yield Check(is_long, f"SKILL.md has substantive content: {n} lines, {len(titles)} sections", SKILL)
    says = "says something" if known >= MIN_WORDS else "says hardly anything"
    yield Check(known >= MIN_WORDS, f"SKILL.md {says}: {known} distinct words", SKILL)
    present: dict[str, str] = {}
    for name, pattern in SECTIONS.items():
        texts = [below for title, below in titles if re.search(pattern, title, re.IGNORECASE)]
        present |= {name: max(texts, key=len)} if texts else {}
    missing = [name for name in SECTIONS if name not in present]
    lacks = f"SKILL.md lacks the section{'s' * (len(missing) > 1)} {', '.join(missing)}"
    yield either(not missing, f"SKILL.md has the sections {', '.join(SECTIONS)}", lacks, SKILL)
    filled = {name: below for name, below in present.items() if len(words(below)) >= MIN_SECTION_WORDS}
    empty = ", ".join(name for name in present if name not in filled)
    if present:
        yield either(not empty, "SKILL.md sections are filled", f"SKILL.md says nothing under {empty}", SKILL)
    left = compiled("placeholder").search(body)
    bad = f"SKILL.md still holds a placeholder: {compact(left[0])}" if left else ""
    yield either(not left, "SKILL.md has no placeholder", bad, SKILL)
    if rows.top and SCHEMA in present:
        text_of_schema, least = present[SCHEMA], min(MIN_FIELDS, len(rows.top))
        n = sum(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text_of_schema) is not None for name in rows.fields)
        few = "" if n >= least else f", at least {least} are needed"
        yield Check(not few, f"SKILL.md {SCHEMA} names {plural(n, 'field')} that the rollouts have{few}", SKILL)
    idle = [name for name, below in filled.items() if name != SCHEMA and not _is_meant(below, rows)]
    if filled:
        wrong = f"SKILL.md says nothing of this benchmark or its analysis under {', '.join(idle)}"
        yield either(not idle, "SKILL.md sections speak of this benchmark", wrong, SKILL)
    if TEMPLATE in present:
        parts = {hit[1].strip().lower() for hit in map(_PART.match, present[TEMPLATE].splitlines()) if hit}
        few = "" if len(parts) >= MIN_PARTS else f", at least {MIN_PARTS} are needed"
        yield Check(not few, f"SKILL.md {TEMPLATE} lists {plural(len(parts), 'part')} of a report{few}", SKILL)


def _is_meant(text: str, rows: Terms) -> bool:
    """Whether a section is prose, or a list of things that its rows or the trade have names for."""
    distinct = words(text)
    spaced = {word for word in distinct if word.isascii()}
    if len(spaced) * 2 < len(distinct):
        return True  # a script whose words are not told apart here
    each = re.findall(r"[^\W\d_]+", text.lower())
    if sum(word in SMALL for word in each) >= MIN_SMALL * len(each):
        return True
    known = spaced & (rows.words | words_of("trade"))
    known |= {part for word in re.findall(r"\w*_\w+", text.lower()) for part in word.split("_")} & rows.words
    return len(known) >= max(MIN_TERMS, MIN_TERMS_SHARE * len(spaced))


# -- what rows call things --------------------------------------------------------------------------

SAMPLE = 200  # rows looked at in each file
MAX_LINE = 8 << 20  # bytes
_DEPTH = 3  # levels of objects whose keys are fields
_WIDE = 40  # keys up to which an object is a record and not a map
_CODE = 40  # characters up to which a value may be a code
_TERM = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Terms:
    """What rows call things."""

    top: frozenset[str] = frozenset()  # the fields that rows of every file have
    fields: frozenset[str] = frozenset()  # these, and those of the records inside
    words: frozenset[str] = frozenset()  # of fields, tools and values that several rows share, lower case


def terms(rollouts: Iterable[Path]) -> Terms:
    """The terms of the first rows of each file; a file that cannot be read has none."""
    tops: list[set[str]] = []
    paths: set[str] = set()
    values: Counter[str] = Counter()
    for path in rollouts:
        top: set[str] = set()
        for row in _rows(path):
            top |= row.keys()
            members = list(_members(row))
            paths |= {name for name, _ in members}
            values.update({value for _, value in members if isinstance(value, str) and len(value) <= _CODE})
            values.update(_tools(row))
        tops += [top] if top else []
    common = set.intersection(*tops) if tops else set()
    inner = {leaf for name in paths for leaf in [name.rpartition(".")[2]] if "_" in leaf}
    shared = {value for value, n in values.items() if n > 1}
    words = {part.lower() for members in paths | shared for part in _TERM.findall(members) if len(part) > 2}
    return Terms(frozenset(common), frozenset(common | {name for name in paths if "." in name} | inner),
                 frozenset(words))  # fmt: skip


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with suppress(OSError), path.open("rb") as file:
        for line in islice(iter(lambda: file.readline(MAX_LINE), b""), SAMPLE):
            with suppress(ValueError, RecursionError):
                row = json.loads(line.decode("utf-8-sig"))
                yield from [row] if isinstance(row, dict) else []


def _members(value: dict[str, Any], above: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        yield f"{above}{key}", inner
        if isinstance(inner, dict) and len(inner) <= _WIDE and depth < _DEPTH:
            yield from _members(inner, f"{above}{key}.", depth + 1)


def _tools(row: dict[str, Any]) -> Iterator[str]:
    for outer, name in (("responses_create_params", "tools"), ("response", "tools"), ("response", "output")):
        inner = row.get(outer)
        items = inner.get(name) if isinstance(inner, dict) else None
        tools = [item.get("name") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        yield from (tool for tool in tools if isinstance(tool, str))
