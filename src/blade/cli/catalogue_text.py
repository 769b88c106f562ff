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
_HEADS = ["name", "domain", "agent", "verifier", "repeats"]


def width() -> int:
    """The terminal's columns, at least 60; 100 where the output goes to a file or a pipe."""
    return max(60, shutil.get_terminal_size((100, 24)).columns)


def entries(items: Sequence[Entry], by_category: bool) -> str:
    """Name, domain, agent, verifier and repeats on a line, the description beside or below."""
    from blade_eval.catalogue import CATEGORIES

    heads = _HEADS
    rows = [
        [line(item.name), item.domain or "-", item.agent or "-", item.verifier or "-", str(item.num_repeats or "-")]
        for item in items
    ]
    texts = [item.description or "" for item in items]
    widths = _widths([heads, *rows])
    if sum(widths) + 2 * len(widths) > width():  # agent and verifier go down to the description
        texts = [f"{row[2]}, {row[3]}: {text}" for row, text in zip(rows, texts, strict=True)]
        heads, rows = [heads[n] for n in (0, 1, 4)], [[row[n] for n in (0, 1, 4)] for row in rows]
        widths = _widths([heads, *rows])
    beside = sum(widths) + 2 * len(widths) + _BESIDE <= width()
    page = [_row(heads, widths, "description" if beside else "")] if items else []
    for category in CATEGORIES if by_category else [""]:
        chosen = [n for n, item in enumerate(items) if not by_category or item.category == category]
        page += ["", category[:1].upper() + category[1:]] if by_category and chosen else []
        page += [_row(rows[n], widths, texts[n]) for n in chosen]
    return "\n".join(page)


def _widths(rows: list[list[str]]) -> list[int]:
    return [min(40, max(map(len, column))) for column in zip(*rows, strict=True)]


def components(items: Sequence[Component]) -> str:
    """Name and domain on a line, the description beside or below."""
    rows = [[line(item.name), line(item.domain or "")] for item in items]
    rows = rows if any(row[1] for row in rows) else [row[:1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ((item.description or "").split("\n")[0] for item in items)
    return "\n".join(_row(row, widths, text) for row, text in zip(rows, texts, strict=True))


def _row(cells: Sequence[str], widths: Sequence[int], description: str) -> str:
    start = "  ".join(f"{line(cell, size):<{size}}" for cell, size in zip(cells, widths, strict=True))
    text, room = line(description), width()
    if text and len(start) + 2 + _BESIDE <= room:
        return f"{start}  {line(text, room - len(start) - 2)}"
    start = start.rstrip()
    if len(start) > room:
        start = textwrap.fill(", ".join(map(line, cells)), room, subsequent_indent="  ")
    indent = "    "
    below = textwrap.fill(text, room, initial_indent=indent, subsequent_indent=indent, max_lines=2, placeholder=" …")
    return f"{start}\n{below}" if text else start


def inspected(document: dict[str, Any]) -> str:
    """One component: what it is, how to choose it, and what to reproduce."""
    from blade_eval.catalogue import CRITERIA

    page = [f"{line(document['name'])} ({document['type']})", ""]
    if document["description"]:
        page += ["\n".join(textwrap.fill(part, width()) for part in lines(document["description"]).splitlines()), ""]
    facts = {"category": document.get("category"), "domain": document["domain"], **document["details"]}
    page += [_fact(key, str(value)) for key, value in facts.items() if value]
    if "choose" in document:
        choose = document["choose"]
        page += ["", "How to choose", *(_fact(name, choose.get(key, "not known")) for key, name in CRITERIA.items())]
    if document.get("published"):
        page += ["", "Reproduce before trusting it", *(_fact("-", _published(row), 2) for row in document["published"])]
    if document["usage_example"]:
        page += ["", "Use", f"  {line(document['usage_example'])}"]
    return "\n".join(page)


def _published(row: dict[str, str]) -> str:
    first = [row[key] for key in ("model", "result") if row.get(key)]
    rest = [f"{key}: {value}" for key, value in row.items() if key not in ("model", "result") and value]
    return "; ".join([": ".join(first), *rest] if first else rest)


def _fact(key: str, value: str, indent: int = 22) -> str:
    head = f"{key} " if indent == 2 else f"  {key:<{indent - 2}}"
    return textwrap.fill(
        line(value), width(), initial_indent=head, subsequent_indent=" " * indent, break_on_hyphens=False
    )
