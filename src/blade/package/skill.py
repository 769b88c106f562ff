"""Check the analysis skill of a package: frontmatter by the Agent Skills rules, sections, substance."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from blade.package import files, frontmatter
from blade.package.layout import Layout, slug
from blade.package.phases import SKILL, Check, plural, words

MIN_LINES = 50
MIN_HEADINGS = 3
MIN_WORDS = 100  # distinct ones, of the whole skill
MIN_SECTION_WORDS = 10  # distinct ones, of a section with those below it
MAX_NAME = 64
MAX_DESCRIPTION = 1024

# What a benchmark-specific skill must explain, with the headings that do.
SECTIONS = {
    "Overview": r"overview|introduction|what .*measures|about",
    "Input schema": r"schema|input|fields|row format|data format",
    "Workflow funnel": r"funnel|stages|phases|pipeline",
    "Failure taxonomy": r"taxonomy|failure (modes?|labels?|categor\w+|classes)|labels",
    "Analysis workflow": r"analysis|workflow|procedure|how to analy[sz]e|steps",
    "Report template": r"report|template|output format",
}
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_PLACEHOLDER = re.compile(
    r"\b(TODO|TBD|FIXME|XXX)\b|lorem ipsum|\bplaceholder\b|<(fill|insert|your|describe|add)[^>]*>"
    r"|\[(fill|insert|your|describe|add)\b[^\]]*\]",
    re.IGNORECASE,
)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_RESERVED = ("anthropic", "claude")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_PERSON = re.compile(r"^\s*(I|You|We)\b|\b(I can|I will|I'll|you can use|we will)\b", re.IGNORECASE)


def skill_checks(package: Layout, benchmarks: Iterable[str] = (), fields: Iterable[str] = ()) -> list[Check]:
    """The checks of D1; `benchmarks` are further names of it, `fields` those that its rows have."""
    path = package.skill
    if path is None:
        return [Check(False, "D1 skill missing: expected skill/SKILL.md or SKILL.md", SKILL)]
    found = [Check(True, f"D1 skill found: {path.resolve()}", SKILL)]
    try:
        text = files.text(path)
    except files.Broken as broken:
        return [*found, Check(False, f"SKILL.md {broken}", SKILL)]
    block, body = frontmatter.split(text)
    if block is None:
        found.append(Check(False, "SKILL.md is missing YAML frontmatter", SKILL))
    else:
        found += _head(frontmatter.keys(block), path, package.folder, benchmarks)
    lines, headings = len(text.splitlines()), _headings(body)
    n = sum(depth == 2 for depth, _, _ in headings)
    is_long = lines >= MIN_LINES and n >= MIN_HEADINGS
    found.append(Check(is_long, f"SKILL.md has substantive content: {lines} lines, {n} sections", SKILL))
    return [*found, *_body(body, headings), *_named(body, list(fields))]


def _head(keys: dict[str, str], path: Path, folder: Path, benchmarks: Iterable[str]) -> Iterable[Check]:
    """The two keys that a skill must have, then the rules for each."""
    name, description = keys.get("name", ""), keys.get("description", "")
    yield Check(bool(name), "SKILL.md frontmatter has name", SKILL)
    yield Check(bool(description), "SKILL.md frontmatter has description", SKILL)
    if name:
        wrong = _wrong_name(name, path, folder, benchmarks)
        yield Check(not wrong, f"SKILL.md name {files.compact(name)} {wrong or 'follows the rules'}", SKILL)
    if description:
        wrong = _wrong_description(description)
        yield Check(not wrong, f"SKILL.md description {wrong or 'follows the rules'}", SKILL)


def _wrong_name(name: str, path: Path, folder: Path, benchmarks: Iterable[str]) -> str:
    if len(name) > MAX_NAME:
        return f"has {len(name)} characters, at most {MAX_NAME} are allowed"
    if not _NAME.fullmatch(name):
        return "must be lower-case letters and digits, joined by single hyphens"
    if any(word in name for word in _RESERVED):
        return f"holds a reserved word ({', '.join(_RESERVED)})"
    own = {slug(one, "-") for one in (path.resolve().parent.name, folder.resolve().name, *benchmarks)}
    own.discard("")
    if not any(name == one or name.startswith(f"{one}-") for one in own):
        return f"is neither the folder of the skill nor the benchmark ({', '.join(sorted(own))})"
    return ""


def _wrong_description(description: str) -> str:
    if len(description) > MAX_DESCRIPTION:
        return f"has {len(description):,} characters, at most {MAX_DESCRIPTION:,} are allowed"
    if _TAG.search(description):
        return "holds an XML tag"
    if _PERSON.search(description):
        return "must speak of the skill in the third person"
    if len(words(description)) < 5:
        return "does not say what the skill does and when to use it"
    return ""


def _headings(body: str) -> list[tuple[int, str, str]]:
    """Depth, title and text of every heading, the text with what stands below its lower headings."""
    marks: list[tuple[int, str, int]] = []
    lines, fence = body.splitlines(), ""
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line)):
            marks.append((len(heading[1]), heading[2], at))
    found = []
    for place, (depth, title, at) in enumerate(marks):
        end = next((low for other, _, low in marks[place + 1 :] if other <= depth), len(lines))
        found.append((depth, title, "\n".join(lines[at + 1 : end])))
    return found


def _body(body: str, headings: list[tuple[int, str, str]]) -> Iterable[Check]:
    """Whether each section is there, says something, and was not left for later."""
    known = len(words(body))
    is_filler = known < MIN_WORDS
    told = f"SKILL.md {'says hardly anything' if is_filler else 'says something'}: {known} distinct words"
    yield Check(not is_filler, told, SKILL)
    sections: dict[str, str | None] = dict.fromkeys(SECTIONS)
    for name, pattern in SECTIONS.items():
        titled = [
            text for depth, title, text in headings if depth == 2 and _is_titled(title, name, pattern)
        ]
        sections[name] = max(titled, key=len, default=None)
    missing = [name for name, text in sections.items() if text is None]
    yield Check(
        not missing,
        f"SKILL.md lacks the section{'s' * (len(missing) > 1)} {', '.join(missing)}"
        if missing
        else f"SKILL.md has the sections {', '.join(SECTIONS)}",
        SKILL,
    )
    empty = [
        name for name, text in sections.items() if text is not None and len(words(text)) < MIN_SECTION_WORDS
    ]
    if len(missing) < len(SECTIONS):
        told = f"SKILL.md says nothing under {', '.join(empty)}" if empty else "SKILL.md sections are filled"
        yield Check(not empty, told, SKILL)
    left = _PLACEHOLDER.search(body)
    told = (
        f"SKILL.md still holds a placeholder: {files.compact(left[0])}"
        if left
        else "SKILL.md has no placeholder"
    )
    yield Check(not left, told, SKILL)


def _is_titled(title: str, name: str, pattern: str) -> bool:
    """Whether a heading is the one of a section; `workflow` alone is no funnel and a funnel no workflow."""
    if name == "Analysis workflow" and re.search(SECTIONS["Workflow funnel"], title, re.IGNORECASE):
        return False
    return bool(re.search(pattern, title, re.IGNORECASE))


def _named(body: str, fields: list[str]) -> Iterable[Check]:
    """Whether the skill speaks of the rows that lie beside it."""
    if not fields:
        return
    named = [field for field in fields if re.search(rf"(?<![\w.]){re.escape(field)}(?!\w)", body)]
    told = f"SKILL.md names {len(named)} of {plural(len(fields), 'field')} that the rollouts have"
    yield Check(len(named) >= min(3, len(fields)), told, SKILL)
