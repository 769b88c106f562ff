"""Plant false ids and false quotations: tasks that are not there, words that no rollout says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from mutation.lines import HEADING, PROSE, QUOTE, ROW, Line, cells, code_spans, quoted_spans, replaced
from mutation.numbers import cell_start, fault
from mutation.page import Fault, Page, flat

_PLAIN_ID = re.compile(r"\btask (?P<id>[\w.-]+/\d+)\b(?=:)|\bin task (?P<key>\d+)(?=[.,;])")
# Tables whose code is no task, though it may look like one.
_STATED = {
    (name,)
    for name in (
        "Setting", "Number", "Made by", "What", "Artifact", "Rollouts file", "Setting that differs",
    )
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z]{3,}")
_DIGITS = re.compile(r"\d+")
OTHER_WORDS = "lantern velvet quarry harbour marble thunder orchard pepper canvas saddle".split()


def identity(page: Page, rng: Random) -> Iterator[Fault]:
    """A task or rollout is another one, or one that is not there."""
    for line in page.lines:
        if line.role not in (PROSE, ROW, HEADING) or line.header[:1] in _STATED:
            continue
        for start, end in _ids(page, line):
            for new in _others(page, line, line.text[start:end], rng):
                yield fault("id", line, replaced(line.text, start, end, new), "id")


def _ids(page: Page, line: Line) -> Iterator[tuple[int, int]]:
    """Where a line names tasks and rollouts."""
    for start, end in code_spans(line.text):
        parts = line.text[start:end].split(" ")
        if all(_is_id(page, part) for part in parts):
            at = start
            for part in parts:
                if len(parts) == 1 or "/" in part:
                    yield at, at + len(part)
                at += len(part) + 1
    if line.role == PROSE:
        for hit in _PLAIN_ID.finditer(line.text):
            which = "id" if hit["id"] else "key"
            if _is_id(page, hit[which]):
                yield hit.span(which)
    names = {name for name in page.tasks.values() if name and not name.isdigit()}
    for hit in re.finditer(r"(?<![\w`/-])[\w.-]*\w(?![\w`/-])", line.text):
        if hit[0] in names and hit[0] not in page.tasks and (line.role == HEADING or line.role == ROW):
            yield hit.span()


def _is_id(page: Page, text: str) -> bool:
    key, slash, repeat = text.rpartition("/")
    return text in page.tasks or bool(slash and key in page.tasks and repeat.isdigit())


def _others(page: Page, line: Line, old: str, rng: Random) -> Iterator[str]:
    """Ids that make the line false: of nothing, or of what the line cannot be about."""
    if old not in page.tasks and not _is_id(page, old):
        digits = list(_DIGITS.finditer(old))
        if digits:
            at = rng.choice(digits)
            new = f"{int(at[0]) + rng.randrange(1000, 9000):0{len(at[0])}d}"
            yield replaced(old, *at.span(), new)
        return
    key, slash, repeat = old.rpartition("/") if old not in page.tasks else (old, "", "")
    yield f"{_absent(page, key, rng)}{slash}{repeat}"
    if slash:
        most = max((at for task, at in page.outcomes if task == key), default=0)
        yield f"{key}/{most + rng.randrange(1, 9) + (64 if len(page.runs) > 1 else 0)}"
    other = _existing(page, line, key, repeat, rng)
    if other is not None:
        yield other


def _absent(page: Page, key: str, rng: Random) -> str:
    numbers = [int(task) for task in page.tasks if task.isdigit()]
    if key.isdigit():
        return str(max(numbers, default=0) + rng.randrange(1, 60))
    new = key
    while new in page.tasks:
        new = f"{key[:-1]}{rng.choice('qxzjkvw')}{rng.randrange(100)}"
    return new


def _existing(page: Page, line: Line, key: str, repeat: str, rng: Random) -> str | None:
    """Another task of the run that the line cannot mean: its name, its list or its quotation says so."""
    others = [task for task in page.tasks if task != key]
    if not others:
        return None
    new = rng.choice(others)
    name = page.tasks[key]
    if not repeat:
        named = name is not None and name != key and name in line.text and page.tasks[new] != name
        listed = (
            re.match(r"- \d+ tasks?: ", line.text)
            and f"`{new}`" not in line.text
            and " more" not in line.text
        )
        return new if named or listed else None
    if line.text.startswith("- Failing rollouts that show it:"):
        passing = [task for task, told in page.outcomes.items() if told == {"passed"}]
        return "/".join(map(str, rng.choice(passing))) if passing else None
    quoted = quotation_below(page, line)
    if (
        len(flat(quoted)) >= 12
        and (new, int(repeat)) in page.outcomes
        and not _says(page, f"{new}/{repeat}", quoted)
    ):
        return f"{new}/{repeat}"
    return None


def quotation_below(page: Page, line: Line) -> str:
    """What the lines behind a label quote."""
    found, at = [], line.number  # the index of the next line
    while at < len(page.lines) and page.lines[at].role != QUOTE:
        if page.lines[at].text.strip() and not page.lines[at].text.startswith("`"):
            return ""
        at += 1
    while at < len(page.lines) and page.lines[at].role == QUOTE:
        found.append(page.lines[at].text)
        at += 1
    return "\n".join(found)


def quote(page: Page, rng: Random) -> Iterator[Fault]:
    """A word or a number of a quotation is another one, or a word is left out."""
    for line in page.lines:
        spans: list[tuple[int, int]] = []
        if line.role == QUOTE and line.text.strip():
            spans = [(0, len(line.text))]
        elif line.role == PROSE:
            spans = [span for span in quoted_spans(line.text) if span[1] - span[0] > 12]
        elif line.role == ROW and "Template" in line.header:
            column = line.header.index("Template")
            start = cell_start(line.text, column)
            spans = [(start + 1, start + len(cells(line.text)[column]) - 1)]
        for start, end in spans:
            new = requoted(line.text[start:end], rng)
            if new is not None and not _known(page, line, new):
                yield fault("quote", line, replaced(line.text, start, end, new), "quote")


def requoted(old: str, rng: Random) -> str | None:
    """Words that are not those of the quotation."""
    words = list(_WORD.finditer(old))
    digits = [hit for hit in _DIGITS.finditer(old) if len(hit[0]) > 1]
    how = rng.randrange(3)
    if how == 0 and digits:
        at = rng.choice(digits)
        return replaced(old, *at.span(), str(int(at[0]) + rng.choice((1, 3, 10, 100))))
    if how == 1 and len(words) > 4:
        at = words[rng.randrange(1, len(words) - 1)]
        if old[at.end() : at.end() + 1] == " " and old[at.start() - 1 : at.start()] == " ":
            return replaced(old, at.start(), at.end() + 1, "")
    if not words:
        return None
    at = rng.choice(words)
    new = rng.choice(OTHER_WORDS)
    return replaced(old, *at.span(), new.capitalize() if at[0][0].isupper() else new)


def _known(page: Page, line: Line, new: str) -> bool:
    """Is the changed quotation said somewhere in the rollout that it is ascribed to, after all."""
    told = re.search(r"task `?(?P<key>[\w.-]+)/(?P<repeat>\d+)", line.label or line.text)
    return bool(told and _says(page, f"{told['key']}/{told['repeat']}", new))


def _says(page: Page, which: str, text: str) -> bool:
    key, _, repeat = which.rpartition("/")
    if key not in page.tasks:
        return False
    return flat(text) in page.said(key, int(repeat))
