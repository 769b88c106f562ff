"""Hostile text through every exit of a comparison: nothing runs, styles, links or deceives."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from functools import cached_property
from typing import Any

import pytest

from blade.model import Report
from blade.report import html, markdown, report_json
from blade.report.change import figures as change_figures
from blade.report.change import pages as change
from blade.report.change.text import compare_text
from tests.inert import assert_inert_markdown, headings

from . import changed
from .test_change_text import assert_fits
from .test_hostile import DECEIVING, DRAWN, HOSTILE
from .test_html import Page
from .test_wire import VALIDATOR


class Exits:
    """A comparison and what goes out of it, made once."""

    def __init__(self, report: Report) -> None:
        self.report = report

    @cached_property
    def sections(self) -> Any:
        return change.chapters(self.report)

    @cached_property
    def markdown(self) -> str:
        return markdown.page(change.title(self.report), self.sections)

    @cached_property
    def html(self) -> str:
        return html.page(change.title(self.report), self.sections, "0")

    @cached_property
    def json(self) -> str:
        return report_json.render(self.report)

    @cached_property
    def text(self) -> str:
        return compare_text(self.report)


@pytest.fixture(scope="module", params=list(HOSTILE))
def bad(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


@pytest.fixture(scope="module", params=["pair", "many"])
def hostile(request: pytest.FixtureRequest, bad: str) -> Exits:
    """Every foreign text holds the hostile one, at its start, its end or in its middle."""
    calls = iter(range(10**6))

    def word(text: str) -> str:
        return bad + text if text[-1:].isdigit() else (bad + text, text + bad, f"a {bad} b")[next(calls) % 3]

    pair = request.param == "pair"
    return Exits(changed.pair_report(word=word) if pair else changed.many_report(word))


def test_no_exit_lets_controls_through(hostile: Exits) -> None:
    for said in (
        hostile.markdown,
        hostile.html,
        hostile.json,
        hostile.text,
        markdown.render(hostile.report),
        html.render(hostile.report),
    ):
        said.encode("utf-8")
        assert not DECEIVING.search(said)


def test_the_terminal_stays_one_screen(hostile: Exits) -> None:
    assert_fits(hostile.text)


def test_markdown_holds_no_markup_but_ours(hostile: Exits) -> None:
    tokens = assert_inert_markdown(hostile.markdown)
    assert len(headings(tokens, "h2")) == len(hostile.sections)


def test_html_holds_no_tag_but_ours_and_links_only_within(hostile: Exits) -> None:
    page = Page(hostile.html)
    assert not page.open
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "img", "svg", "details", "b", "link"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert re.fullmatch(r"#[a-z0-9-]+", attributes.get("href") or "#a")


def test_json_gives_the_text_back(hostile: Exits) -> None:
    document = json.loads(hostile.json)
    VALIDATOR.validate(document)
    first = hostile.report.comparisons[0]
    assert [term["term"] for term in document["comparisons"][0]["bridge"]] == [
        term.term for term in first.bridge
    ]
    assert document["comparisons"][0]["missing_run"] == first.missing_run


def test_commands_are_one_inert_line_each(hostile: Exits) -> None:
    for line in re.findall(r"^blade show .*$", hostile.markdown, re.MULTILINE):
        words = shlex.split(line, comments=True)
        assert len(words) == 4
        assert words[:2] == ["blade", "show"]
        assert not words[2].startswith("-")


@pytest.mark.parametrize("name", DRAWN)
def test_figures_stay_well_formed(name: str) -> None:
    for figure in change_figures.drawn(changed.many_report(lambda text: HOSTILE[name] + text), "compare-"):
        assert re.fullmatch(r"compare-(bridge|scatter|transitions|series|front)(-\d+)?\.svg", figure.file)
        assert not DECEIVING.search(figure.svg)
        tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(figure.svg).iter()}
        assert not tags & {"script", "image", "a", "style", "foreignObject"}
