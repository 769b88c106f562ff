"""The HTML report: one page, no scripts, nothing fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from blade.model import Report
from blade.report import html_text

from .renders import Forms

DATA = "data:image/svg+xml;base64,"
VOID = {"meta", "img", "br", "hr", "input", "link"}


class Page(HTMLParser):
    """Collects tags and attributes, and sees that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_page_is_closed_quiet_and_offline(report: Report) -> None:
    text = Forms(report).html
    page = Page(text)
    assert not page.open
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object", "link", "form", "base", "svg"}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#"), tag
        assert (attributes.get("src") or DATA).startswith(DATA), tag
    assert [part for part in ("http://", "https://", "@import", "url(") if part in text] == []
    assert re.findall(r'<a href="#([^"]+)">', text) == re.findall(r'<section id="([^"]+)">', text)


def test_figures_are_embedded_and_the_page_suits_screens_and_paper(one_run: Report) -> None:
    text = html_text(one_run)
    assert text.count(f'<img src="{DATA}') == 4
    assert "No figures were drawn" not in text
    assert "No figures were drawn" in Forms(one_run).html
    for part in ("default-src 'none'; style-src 'unsafe-inline'; img-src data:", "prefers-color-scheme: dark", "@media print", "position: sticky"):
        assert part in text
