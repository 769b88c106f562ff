"""Lay a report out as one offline HTML page without scripts."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

from blade import hostile
from blade.model import Report
from blade.query.comments import escape_comment
from blade.report.blocks import Figure, Section, plain
from blade.report.chapters import chapters, title

SUFFIX = ".html"
TEMPLATE = Path(__file__).with_name("report.html.j2")


def render(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """The report as one page: figures embedded as images, nothing fetched, nothing run."""
    return page(title(report), chapters(report, figures), report.made_by.get("blade", ""))


def page(title: str, sections: tuple[Section, ...], version: str) -> str:
    """Any title and sections as such a page; each number holds its value and its query."""
    made: str = _template().render(title=title, sections=sections, version=version)
    return made + "\n"


@cache
def _template() -> Any:
    import jinja2

    desk = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    desk.filters |= {"data_uri": _data_uri, "query": escape_comment, "plain": plain}
    return desk.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _cleaned(value: Any) -> Any:
    # Escaping leaves controls and bidi overrides; `Markup` has passed through here already.
    return hostile.lines(value) if type(value) is str else value


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
