"""The HTML report: one page, no scripts, nothing fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from blade.model import Report
from blade.report import figures, html

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
    text = html.render(report)
    page = Page(text)
    assert not page.open
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object", "link", "form", "base", "svg"}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#"), tag
        assert (attributes.get("src") or DATA).startswith(DATA), tag
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_forbids_what_the_page_does_not_need(one_run: Report) -> None:
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in html.render(one_run)


def test_contents_lead_to_their_sections(one_run: Report) -> None:
    text = html.render(one_run)
    assert re.findall(r'<a href="#([^"]+)">', text) == re.findall(r'<section id="([^"]+)">', text)


@pytest.mark.parametrize("part", ["prefers-color-scheme: dark", "@media print", "position: sticky"])
def test_the_page_suits_screens_and_paper(one_run: Report, part: str) -> None:
    assert part in html.render(one_run)


def test_figures_are_embedded(one_run: Report) -> None:
    drawn = figures.drawn(one_run)
    text = html.render(one_run, drawn)
    assert text.count('<img src="data:image/svg+xml;base64,') == len(drawn) == 4
    assert "No figures were drawn" in html.render(one_run)
    assert "No figures were drawn" not in text
