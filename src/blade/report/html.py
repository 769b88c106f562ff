"""Lay blocks out as one offline HTML page without scripts, and escape every text in it: the guard against XSS."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

from blade import hostile
from blade.query.comments import escape_comment
from blade.report.blocks import Section
from blade.report.phrases import plain

TEMPLATE = Path(__file__).with_name("report.html.j2")


def page(title: str, sections: tuple[Section, ...], version: str) -> str:
    """Any title and sections as a page: figures embedded, nothing fetched, nothing run; each number holds its value and its query."""
    text: str = _template().render(title=title, sections=sections, version=version)
    return text + "\n"


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, finalize=_cleaned, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"base64": lambda text: base64.b64encode(text.encode()).decode("ascii")}
    environment.filters |= {"query": escape_comment, "plain": plain}
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _cleaned(value: Any) -> Any:
    # Escaping leaves controls and bidi overrides; `Markup` has passed through here already.
    return hostile.lines(value) if type(value) is str else value
