"""Render a report: for the terminal, as Markdown, HTML and JSON, with figures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from blade.model import Report
from blade.report import html, markdown, metrics, text, wire
from blade.report.chapters import chapters, title
from blade.report.claims import claims_of
from blade.report.sections import Figure, Section


class Renderer(Protocol):
    SUFFIX: str  # how the name of a file in this form ends

    # The whole report in this form. Same report, same text; foreign text is neutralised for this exit.
    def render(self, report: Report, figures: tuple[Figure, ...] = ()) -> str: ...


# In the order of print: what a person sees first comes first.
RENDERERS: dict[str, Renderer] = {
    "text": text,
    "markdown": markdown,
    "html": html,
    "wire": wire,
    "metrics": metrics,
}

# The files of a report folder, by renderer; the text goes to the terminal only.
FILES = {"markdown": "report.md", "html": "report.html", "wire": "report.json", "metrics": "metrics.json"}


def write(report: Report, folder: Path, figures: bool = True) -> list[Path]:
    """Write every file of a report into `folder` and return their paths; each appears whole or not at all."""
    drawn = _figures(report) if figures else ()
    texts = {f"figures/{figure.file}": figure.svg for figure in drawn}
    sections, version = chapters(report, drawn), report.made_by.get("blade", "")
    texts[FILES["markdown"]] = markdown.page(title(report), sections)
    texts[FILES["html"]] = html.page(title(report), sections, version)
    texts[FILES["wire"]] = wire.render(report, drawn, claims_of(sections).listed)
    texts[FILES["metrics"]] = metrics.render(report, drawn)
    folder.mkdir(parents=True, exist_ok=True)
    _remove_stale(folder / "figures", {figure.file for figure in drawn})
    return [_write(folder / name, content) for name, content in texts.items()]


# The files of a comparison, named so that a report in the same folder keeps its own.
COMPARED = {"markdown": "compare.md", "html": "compare.html", "wire": "compare.json"}
COMPARED_FIGURES = "compare-"


def write_comparison(
    report: Report, folder: Path, extra: Mapping[str, str] | None = None, figures: bool = True
) -> list[Path]:
    """Write compare.md, compare.html, compare.json, their figures, and `extra` files (name -> text)."""
    from blade.report.change import pages as change

    drawn = _comparison_figures(report) if figures else ()
    named, sections = change.title(report), change.chapters(report, drawn)
    texts = {f"figures/{figure.file}": figure.svg for figure in drawn}
    texts[COMPARED["markdown"]] = markdown.page(named, sections)
    texts[COMPARED["html"]] = html.page(named, sections, report.made_by.get("blade", ""))
    texts[COMPARED["wire"]] = wire.render(report, drawn, claims_of(sections).listed)
    texts |= extra or {}
    folder.mkdir(parents=True, exist_ok=True)
    _remove_stale(folder / "figures", {figure.file for figure in drawn}, COMPARED_FIGURES)
    return [_write(folder / name, content) for name, content in texts.items()]


def printed(report: Report) -> str:
    """report.json as `write` writes it, without drawing a figure."""
    return wire.render(report, _figures(report, draw=False))


def printed_comparison(report: Report) -> str:
    """compare.json as `write_comparison` writes it, without drawing a figure."""
    return wire.render(report, (), claims_of(_comparison(report)).listed)


def pages(report: Report) -> str:
    """report.md as `write` writes it, without the comments of its claims and without drawing a figure."""
    return markdown.page(title(report), chapters(report, _figures(report, draw=False)), cited=False)


def comparison_pages(report: Report) -> str:
    """compare.md as `write_comparison` writes it, without the comments of its claims."""
    from blade.report.change import pages as change

    return markdown.page(change.title(report), _comparison(report), cited=False)


def html_page(report: Report) -> str:
    """report.html as `write` writes it."""
    sections = chapters(report, _figures(report))
    return html.page(title(report), sections, report.made_by.get("blade", ""))


def comparison_html_page(report: Report) -> str:
    """compare.html as `write_comparison` writes it."""
    from blade.report.change import pages as change

    sections = change.chapters(report, _comparison_figures(report))
    return html.page(change.title(report), sections, report.made_by.get("blade", ""))


def _figures(report: Report, draw: bool = True) -> tuple[Figure, ...]:
    from blade.report import figures
    from blade.report.change import figures as change_figures

    return (*figures.drawn(report, draw=draw), *change_figures.drawn(report, draw=draw))


def _comparison_figures(report: Report, draw: bool = True) -> tuple[Figure, ...]:
    from blade.report.change import figures as change_figures

    return change_figures.drawn(report, COMPARED_FIGURES, draw=draw)


def _comparison(report: Report) -> tuple[Section, ...]:
    from blade.report.change import pages as change

    return change.chapters(report, _comparison_figures(report, draw=False))


def _remove_stale(folder: Path, drawn: set[str], prefix: str = "") -> None:
    """Take away figures of an earlier report that this one does not have; nothing that is not ours."""
    from blade.report.change import figures as change_figures
    from blade.report.figures import NAMES

    ours = change_figures.NAMES if prefix else (*NAMES, *change_figures.NAMES)
    for path in sorted(folder.glob(f"{prefix}*.svg")):
        name, _, at = path.stem.removeprefix(prefix).partition("-")
        if name in ours and (not at or at.isdigit()) and path.name not in drawn:
            path.unlink()


def _write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        waiting.write_bytes(content.encode("utf-8"))
        os.replace(waiting, path)
    finally:
        waiting.unlink(missing_ok=True)
    return path
