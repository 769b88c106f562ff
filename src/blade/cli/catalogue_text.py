"""Lay the catalogue out in lines that fit the terminal, or a page where there is none."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blade.hostile import line, lines

if TYPE_CHECKING:
    from blade_eval.catalogue import Component, Entry

_BESIDE = 44  # columns that a description needs to stand beside the rest


def width() -> int:
    """The terminal's columns, at least 60; 100 where the output goes to a file or a pipe."""
    return max(60, shutil.get_terminal_size((100, 24)).columns)


def entries(found: Sequence[Entry], by_category: bool) -> str:
    """Name, domain, agent, verifier and repeats on a line, the description beside or below."""
    from blade_eval.catalogue import CATEGORIES

    heads, rows = ["name", "domain", "agent", "verifier", "repeats"], [_cells(one) for one in found]
    told_of = {id(one): (row, one.description or "") for one, row in zip(found, rows, strict=True)}
    widths = _widths(heads, rows)
    if sum(widths) + 2 * len(widths) > width():  # agent and verifier go down to the description
        heads, rows = _narrow(heads), [_narrow(row) for row in rows]
        widths = _widths(heads, rows)
        for one, row in zip(found, rows, strict=True):
            told_of[id(one)] = row, f"{one.agent or '-'}, {one.verifier or '-'}: {one.description or ''}"
    beside = sum(widths) + 2 * len(widths) + _BESIDE <= width()
    told = [_row(heads, widths, "description" if beside else "")] if found else []
    groups = [[one for one in found if one.category == category] for category in CATEGORIES]
    for category, group in zip(CATEGORIES, groups, strict=True) if by_category else [("", list(found))]:
        if group:
            told += ["", category[:1].upper() + category[1:]] if by_category else []
            told += [_row(told_of[id(one)][0], widths, told_of[id(one)][1]) for one in group]
    return "\n".join(told)


def _cells(one: Entry) -> list[str]:
    repeats = str(one.num_repeats) if one.num_repeats else "-"
    return [line(one.name), one.domain or "-", one.agent or "-", one.verifier or "-", repeats]


def _narrow(row: list[str]) -> list[str]:
    return [row[0], row[1], row[4]]


def _widths(heads: list[str], rows: list[list[str]]) -> list[int]:
    return [min(40, max([len(head), *(len(row[n]) for row in rows)])) for n, head in enumerate(heads)]


def components(found: Sequence[Component]) -> str:
    """Name and domain on a line, the description beside or below."""
    rows = [[line(one.name), line(one.domain or "")] for one in found]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(2)]
    if not any(row[1] for row in rows):
        rows, widths = [row[:1] for row in rows], widths[:1]
    pairs = zip(rows, found, strict=True)
    return "\n".join(_row(row, widths, (one.description or "").split("\n")[0]) for row, one in pairs)


def _row(cells: Sequence[str], widths: Sequence[int], description: str) -> str:
    start = "  ".join(f"{line(cell, size):<{size}}" for cell, size in zip(cells, widths, strict=True))
    text, room = line(description), width()
    if text and len(start) + 2 + _BESIDE <= room:
        return f"{start}  {line(text, room - len(start) - 2)}"
    start = start.rstrip()
    if len(start) > room:
        start = textwrap.fill(", ".join(map(line, cells)), room, subsequent_indent="  ")
    below = textwrap.fill(
        text, room, initial_indent="    ", subsequent_indent="    ", max_lines=2, placeholder=" …"
    )
    return f"{start}\n{below}" if text else start


def inspected(told: dict[str, Any]) -> str:
    """One component: what it is, how to choose it, and what to reproduce."""
    from blade_eval.catalogue import CRITERIA

    made = [f"{line(told['name'])} ({told['type']})", ""]
    made += [_wrapped(lines(told["description"]))] if told["description"] else []
    made += [""] if told["description"] else []
    facts = {"category": told.get("category"), "domain": told["domain"], **told["details"]}
    made += [_fact(key, str(value)) for key, value in facts.items() if value]
    if "choose" in told:
        made += ["", "How to choose"]
        choose = told["choose"]
        made += [_fact(name, choose.get(key, "not known")) for key, name in CRITERIA.items()]
    if told.get("published"):
        made += ["", "Reproduce before trusting it"]
        made += [_fact("-", _published(row), 2) for row in told["published"]]
    if told["usage_example"]:
        made += ["", "Use", f"  {line(told['usage_example'])}"]
    return "\n".join(made)


def _published(row: dict[str, str]) -> str:
    first = [row[key] for key in ("model", "result") if row.get(key)]
    rest = [f"{key}: {value}" for key, value in row.items() if key not in ("model", "result") and value]
    return "; ".join([": ".join(first), *rest] if first else rest)


def _fact(key: str, value: str, indent: int = 22) -> str:
    head = f"{key} " if indent == 2 else f"  {key:<{indent - 2}}"
    return textwrap.fill(
        line(value), width(), initial_indent=head, subsequent_indent=" " * indent, break_on_hyphens=False
    )


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.fill(part, width()) for part in text.splitlines())
