"""Check the analysis skill of a package: frontmatter by the Agent Skills rules, sections, substance."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from blade.agent.skills import frontmatter
from blade.agent.skills.names import MAX_NAME, slug
from blade.package import files
from blade.package.layout import Layout
from blade.package.validate.phases import SKILL, Check, either, plural, words
from blade.package.validate.terms import Terms

MIN_LINES = 50
MIN_HEADINGS = 3
MIN_WORDS = 100  # distinct ones, of the whole skill
MIN_SECTION_WORDS = 10  # distinct ones, of a section with those below it
MIN_TERMS = 2  # words of the rows or of the trade in each section, and their least share of its words
MIN_TERMS_SHARE = 0.1
MIN_SMALL = 0.15  # of the words of a section that are the small ones of a language: it is prose
MIN_FIELDS = 3  # of the rows, under the schema
MIN_PARTS = 3  # of a report, under the template
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
SCHEMA, TEMPLATE = "Input schema", "Report template"
# What anybody says who analyses a benchmark, whatever its rows call things.
TRADE = frozenset(
    "accuracy agent answer answers attempted baseline behaviour behavior benchmark bucket buckets call calls "
    "cause causes code compare comparison completed correct coverage crash diagnosis error errors evidence "
    "executive expected fail failed failing fails failure failures feedback field fields finish finished "
    "funnel gold golden harness incorrect infrastructure inventory knowledge label labels limit malformed "
    "metric metrics model models never output outputs parse parsed pass passed passes passing prompt ran "
    "rate reached recommendations refusal repeat repeats report reproducibility response result results "
    "reward rewards rollout rollouts rows run runs score scored scores scoring sometimes solved stage stages "
    "started step steps submitted success summary task tasks test tests timeout timeouts token tokens tool "
    "tools trajectories trajectory turns verifier verify wrong".split()
)
# The words that prose cannot do without, in the languages that are written in Latin letters most.
SMALL = frozenset(
    "a an and are as at be before but by for from has if in into is it its no not of on only or so than that "
    "the their then there these this to was what when where which who why with without you "
    "aber als auf das dass dem den der des die ein eine für ist mit nicht oder sich sind und von wenn zu "
    "au avec ce dans de du en est et la le les ne pas pour que qui se si sont sur un une "
    "con del el las los no o para por se sin su y da do em os uma che di il non per sono".split()
)
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_PLACEHOLDER = re.compile(
    r"\b(TODO|TBD|FIXME|XXX)\b|lorem ipsum|\bplaceholder\b|<(fill|insert|your|describe|add)[^>]*>"
    r"|\[(fill|insert|your|describe|add)\b[^\]]*\]",
    re.IGNORECASE,
)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_RESERVED = ("anthropic", "claude")
_PART = re.compile(r"^\s*(?:#{1,6}\s|[-*+]\s|\d{1,2}[.)]\s|\*\*|\|)\s*(.*\w.*)$")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_PERSON = re.compile(r"^\s*(I|You|We)\b|\b(I can|I will|I'll|you can use|we will)\b", re.IGNORECASE)


def skill_checks(package: Layout, benchmarks: Iterable[str], rows: Terms) -> list[Check]:
    """The checks of D1; `benchmarks` are further names of it, `rows` what its rows call things."""
    path = package.skill
    if path is None:
        return [Check(False, "D1 skill missing: expected skill/SKILL.md or SKILL.md", SKILL)]
    checks = [Check(True, f"D1 skill found: {path.resolve()}", SKILL)]
    try:
        text = files.text(path)
    except files.Broken as broken:
        return [*checks, Check(False, f"SKILL.md {broken}", SKILL)]
    block, body = frontmatter.split(text)
    if block is None:
        checks.append(Check(False, "SKILL.md is missing YAML frontmatter", SKILL))
    else:
        checks += _head(frontmatter.keys(block), path, package.folder, benchmarks)
    lines, headings = len(text.splitlines()), _headings(body)
    n = sum(depth == 2 for depth, _, _ in headings)
    is_long = lines >= MIN_LINES and n >= MIN_HEADINGS
    checks.append(Check(is_long, f"SKILL.md has substantive content: {lines} lines, {n} sections", SKILL))
    sections = _sections(headings)
    return [*checks, *_body(body, sections), *_meant(body, sections, rows)]


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
    own = {slug(known, "-") for known in (path.resolve().parent.name, folder.resolve().name, *benchmarks)}
    own.discard("")
    if not any(name == known or name.startswith(f"{known}-") for known in own):
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
    for line_number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line)):
            marks.append((len(heading[1]), heading[2], line_number))
    headings = []
    for place, (depth, title, line_number) in enumerate(marks):
        end = next((low for other, _, low in marks[place + 1 :] if other <= depth), len(lines))
        headings.append((depth, title, "\n".join(lines[line_number + 1 : end])))
    return headings


def _sections(headings: list[tuple[int, str, str]]) -> dict[str, str | None]:
    """The text of each section that a skill must have; None where there is no such heading."""
    sections: dict[str, str | None] = {}
    for name, pattern in SECTIONS.items():
        titled = [text for depth, title, text in headings if depth == 2 and _is_titled(title, name, pattern)]
        sections[name] = max(titled, key=len, default=None)
    return sections


def _body(body: str, sections: dict[str, str | None]) -> Iterable[Check]:
    """Whether each section is there, says something, and was not left for later."""
    known = len(words(body))
    is_filler = known < MIN_WORDS
    result = f"SKILL.md {'says hardly anything' if is_filler else 'says something'}: {known} distinct words"
    yield Check(not is_filler, result, SKILL)
    missing = [name for name, text in sections.items() if text is None]
    lacks = f"SKILL.md lacks the section{'s' * (len(missing) > 1)} {', '.join(missing)}"
    yield either(not missing, f"SKILL.md has the sections {', '.join(SECTIONS)}", lacks, SKILL)
    filled = {
        name: len(words(text)) >= MIN_SECTION_WORDS for name, text in sections.items() if text is not None
    }
    empty = ", ".join(name for name, is_filled in filled.items() if not is_filled)
    if filled:
        yield either(not empty, "SKILL.md sections are filled", f"SKILL.md says nothing under {empty}", SKILL)
    left = _PLACEHOLDER.search(body)
    bad = f"SKILL.md still holds a placeholder: {files.compact(left[0])}" if left else ""
    yield either(not left, "SKILL.md has no placeholder", bad, SKILL)


def _is_titled(title: str, name: str, pattern: str) -> bool:
    """Whether a heading is the one of a section; `workflow` alone is no funnel and a funnel no workflow."""
    if name == "Analysis workflow" and re.search(SECTIONS["Workflow funnel"], title, re.IGNORECASE):
        return False
    return bool(re.search(pattern, title, re.IGNORECASE))


def _meant(body: str, sections: dict[str, str | None], rows: Terms) -> Iterable[Check]:
    """Whether the sections speak of these rows and of an analysis, in sentences."""
    present = {name: text for name, text in sections.items() if text is not None}
    if rows.top and SCHEMA in present:
        n, least = len(rows.named(present[SCHEMA])), min(MIN_FIELDS, len(rows.top))
        few = "" if n >= least else f", at least {least} are needed"
        named = f"SKILL.md {SCHEMA} names {plural(n, 'field')} that the rollouts have{few}"
        yield Check(not few, named, SKILL)
    filled = {name: text for name, text in present.items() if len(words(text)) >= MIN_SECTION_WORDS}
    idle = [name for name, text in filled.items() if name != SCHEMA and not _is_meant(text, rows)]
    if filled:
        wrong = f"SKILL.md says nothing of this benchmark or its analysis under {', '.join(idle)}"
        yield either(not idle, "SKILL.md sections speak of this benchmark", wrong, SKILL)
    if TEMPLATE in present:
        lines = map(_PART.match, present[TEMPLATE].splitlines())
        parts = {line[1].strip().lower() for line in lines if line}
        few = "" if len(parts) >= MIN_PARTS else f", at least {MIN_PARTS} are needed"
        lists = f"SKILL.md {TEMPLATE} lists {plural(len(parts), 'part')} of a report{few}"
        yield Check(not few, lists, SKILL)


def _is_meant(text: str, rows: Terms) -> bool:
    """Whether a section is prose, or a list of things that its rows or the trade have names for."""
    said = words(text)
    spaced = {word for word in said if word.isascii()}
    if len(spaced) * 2 < len(said):
        return True  # a script whose words are not told apart here
    each = re.findall(r"[^\W\d_]+", text.lower())
    if sum(word in SMALL for word in each) >= MIN_SMALL * len(each):
        return True
    known = spaced & (rows.words | TRADE)
    known |= {part for word in re.findall(r"\w*_\w+", text.lower()) for part in word.split("_")} & rows.words
    return len(known) >= max(MIN_TERMS, MIN_TERMS_SHARE * len(spaced))
