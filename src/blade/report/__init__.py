"""Write a report, or a comparison, as files and as text: Markdown, HTML, JSON, and a folder of them with figures."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from blade.errors import UsageError
from blade.model import Report
from blade.report.blocks import Figure, Section
from blade.targets import put_all, refuse_link

# The files of a comparison are named so that a report in the same folder keeps its own.
FILES = {False: ("report.md", "report.html", "report.json"), True: ("compare.md", "compare.html", "compare.json")}
ALSO = {False: ("metrics.json",), True: ("gate.md",)}
PREFIX = {False: "", True: "compare-"}  # of the names of figures
PAGES = ("report.md", "compare.md")  # whose last line names every file that was written with it
_MARK = re.compile(rb"\n<!-- written by blade: (?P<files>[^<>\n]+) -->\n\Z")


class Pages(NamedTuple):
    """What every form of a report shows."""

    title: str
    sections: tuple[Section, ...]
    figures: tuple[Figure, ...]


def pages(report: Report, is_comparison: bool = False, draw: bool | None = False) -> Pages:
    """The blocks of a report, or of a comparison; without `draw` figures have captions alone, with None there are none."""
    from blade.report import chapters, charts, comparison_pages

    room = comparison_pages if is_comparison else chapters
    figures: tuple[Figure, ...] = ()
    if draw is not None:
        figures = () if is_comparison else charts.run_figures(report, draw)
        figures += charts.comparison_figures(report, PREFIX[is_comparison], draw)
    return Pages(room.title(report), room.chapters(report, figures), figures)


def markdown_text(report: Report, is_comparison: bool = False) -> str:
    """The Markdown page without the comments of its claims and without drawing a figure."""
    from blade.report import markdown

    shown = pages(report, is_comparison)
    return markdown.page(shown.title, shown.sections, cited=False)


def html_text(report: Report, is_comparison: bool = False) -> str:
    """The HTML page as it is written to a folder."""
    from blade.report import html

    shown = pages(report, is_comparison, draw=True)
    return html.page(shown.title, shown.sections, report.made_by.get("blade", ""))


def json_text(report: Report, is_comparison: bool = False) -> str:
    """The JSON file as it is written to a folder."""
    from blade.report import report_json

    return report_json.render(report, pages(report, is_comparison).sections)


# ---- Folders -------------------------------------------------------------------------------------


def write(
    report: Report, folder: Path, is_comparison: bool = False, extra: Mapping[str, str] | None = None, figures: bool = True,
    force: bool = False,
) -> list[Path]:
    """Write a report or comparison, its figures and `extra` files (name -> text), all or none; over what is not ours only with `force`."""
    from blade.report import html, markdown, report_json

    shown = pages(report, is_comparison, figures or None)
    page, offline, wire = FILES[is_comparison]
    texts = {
        **{f"figures/{figure.file}": figure.svg for figure in shown.figures},
        page: markdown.page(shown.title, shown.sections),
        offline: html.page(shown.title, shown.sections, report.made_by.get("blade", "")),
        wire: report_json.render(report, shown.sections),
    }
    metrics = {} if is_comparison else {"metrics.json": report_json.metrics_text(report)}
    return put(folder, {**texts, **metrics, **(extra or {})}, is_comparison, force)


def put(folder: Path, texts: Mapping[str, str], is_comparison: bool, force: bool) -> list[Path]:
    """Write the files of a report, all or none, and take away those of ours that it no longer has."""
    stale = _stale(folder, texts, is_comparison)
    refuse_changed(folder, (*texts, *stale), force)
    contents = {name: text.encode("utf-8") for name, text in texts.items()}
    names = " ".join(f"{name}={_digest(content)}" for name, content in contents.items())
    for page in contents.keys() & set(PAGES):
        contents[page] += f"\n<!-- written by blade: {names} -->\n".encode()
    put_all({folder / name: content for name, content in contents.items()})
    for name in stale:
        (folder / name).unlink()
    return [folder / name for name in contents]


def refuse_others(folder: Path, is_comparison: bool, force: bool) -> None:
    """Refuse a folder in which a report, or a comparison, would write over or take away what is not ours."""
    names = (*FILES[is_comparison], *ALSO[is_comparison])
    refuse_changed(folder, [*names, *_stale(folder, (), is_comparison)], force)


def refuse_changed(folder: Path, names: Iterable[str], force: bool) -> None:
    """Refuse to write over a file that is not ours, or that somebody changed, unless told to; a link always."""
    ours = _ours(folder)
    for name in names:
        path = folder / name
        refuse_link(path, folder)
        if path.is_dir():
            raise UsageError(f"{path} is a folder", "name another folder with -o", "output-not-empty")
        if path.exists() and name not in ours and not force:
            hint = "name another folder, or add --force to write over it"
            raise UsageError(f"{path} was not written by blade, or was changed since", hint, "output-not-empty")


def _stale(folder: Path, texts: Container[str], is_comparison: bool) -> list[str]:
    """Figures with the names of ours that are not among `texts`: those of an earlier report."""
    from blade.report import charts

    ours, prefix = charts.COMPARISON_NAMES if is_comparison else charts.NAMES, PREFIX[is_comparison]
    stale = []
    for path in sorted((folder / "figures").glob(f"{prefix}*.svg")):
        name, _, number = path.stem.removeprefix(prefix).partition("-")
        if name in ours and (not number or number.isdigit()) and f"figures/{path.name}" not in texts:
            stale.append(f"figures/{path.name}")
    return stale


def _ours(folder: Path) -> set[str]:
    """The files that are as a page of ours says they were written."""
    ours: set[str] = set()
    for page in PAGES:
        mark = _MARK.search(_content(folder / page))
        for entry in mark["files"].decode("utf-8", "replace").split() if mark else ():
            name, _, digest = entry.rpartition("=")
            content = _content(folder / name)
            if digest == _digest(content[: mark.start()] if mark and name == page else content):
                ours.add(name)
    return ours


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""  # nobody can say that it is ours


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:12]
