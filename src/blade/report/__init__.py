"""Render a report: for the terminal, as Markdown, HTML and JSON, with figures."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Protocol

from blade.model import Report
from blade.report import folder as kept
from blade.report import html, markdown, metrics, report_json, text
from blade.report.blocks import Figure, Section
from blade.report.chapters import chapters, title
from blade.report.claims import claims_of


class Renderer(Protocol):
    SUFFIX: str  # how the name of a file in this form ends

    # The whole report in this form. Same report, same text; foreign text is neutralised for this exit.
    def render(self, report: Report, figures: tuple[Figure, ...] = ()) -> str: ...


# In the order of print: what a person sees first comes first.
RENDERERS: dict[str, Renderer] = {
    "text": text,
    "markdown": markdown,
    "html": html,
    "wire": report_json,
    "metrics": metrics,
}

# The files of a report folder, by renderer; the text goes to the terminal only.
FILES = {"markdown": "report.md", "html": "report.html", "wire": "report.json", "metrics": "metrics.json"}


def write(report: Report, folder: Path, figures: bool = True, force: bool = False) -> list[Path]:
    """Write the files of a report into `folder`, all or none; over what is not ours only with `force`."""
    drawn = _figures(report) if figures else ()
    texts = {f"figures/{figure.file}": figure.svg for figure in drawn}
    sections, version = chapters(report, drawn), report.made_by.get("blade", "")
    texts[FILES["markdown"]] = markdown.page(title(report), sections)
    texts[FILES["html"]] = html.page(title(report), sections, version)
    texts[FILES["wire"]] = report_json.render(report, drawn, claims_of(sections).listed)
    texts[FILES["metrics"]] = metrics.render(report, drawn)
    return kept.put(folder, texts, _stale(folder, texts), force)


# The files of a comparison, named so that a report in the same folder keeps its own.
COMPARED = {"markdown": "compare.md", "html": "compare.html", "wire": "compare.json"}
COMPARED_FIGURES = "compare-"


def write_comparison(
    report: Report,
    folder: Path,
    extra: Mapping[str, str] | None = None,
    figures: bool = True,
    force: bool = False,
) -> list[Path]:
    """Write compare.md, compare.html, compare.json, their figures, and `extra` files (name -> text)."""
    from blade.report.change import pages as change

    drawn = _comparison_figures(report) if figures else ()
    named, sections = change.title(report), change.chapters(report, drawn)
    texts = {f"figures/{figure.file}": figure.svg for figure in drawn}
    texts[COMPARED["markdown"]] = markdown.page(named, sections)
    texts[COMPARED["html"]] = html.page(named, sections, report.made_by.get("blade", ""))
    texts[COMPARED["wire"]] = report_json.render(report, drawn, claims_of(sections).listed)
    texts |= extra or {}
    return kept.put(folder, texts, _stale(folder, texts, COMPARED_FIGURES), force)


def printed(report: Report) -> str:
    """report.json as `write` writes it, without drawing a figure."""
    return report_json.render(report, _figures(report, draw=False))


def printed_comparison(report: Report) -> str:
    """compare.json as `write_comparison` writes it, without drawing a figure."""
    return report_json.render(report, (), claims_of(_comparison(report)).listed)


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


def named(folder: Path, is_comparison: bool) -> list[str]:
    """The files that a report, or a comparison, may write over or take away in a folder."""
    names = (*COMPARED.values(), "gate.md") if is_comparison else tuple(FILES.values())
    return [*names, *_stale(folder, (), COMPARED_FIGURES if is_comparison else "")]


def _stale(folder: Path, texts: Container[str], prefix: str = "") -> list[str]:
    """Figures with the names of ours that are not among `texts`: those of an earlier report."""
    from blade.report.change import figures as change_figures
    from blade.report.figures import NAMES

    ours = change_figures.NAMES if prefix else (*NAMES, *change_figures.NAMES)
    found = []
    for path in sorted((folder / "figures").glob(f"{prefix}*.svg")):
        name, _, at = path.stem.removeprefix(prefix).partition("-")
        if name in ours and (not at or at.isdigit()) and f"figures/{path.name}" not in texts:
            found.append(f"figures/{path.name}")
    return found
