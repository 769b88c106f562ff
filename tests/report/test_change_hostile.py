"""Hostile text through every exit of a comparison: nothing runs, styles, links or deceives."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET

import pytest

from blade.model import Report
from blade.report import html, json_v1, markdown
from blade.report.change import figures as change_figures
from blade.report.change import pages as change
from blade.report.change.text import compare_text
from tests.inert import assert_inert_markdown, headings

from . import changed
from .test_change_text import assert_fits
from .test_hostile import DECEIVING, HOSTILE
from .test_html import Page
from .test_json_v1 import VALIDATOR


@pytest.fixture(params=list(HOSTILE))
def bad(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


@pytest.fixture(params=["pair", "many"])
def hostile(request: pytest.FixtureRequest, bad: str) -> Report:
    """Every foreign text holds the hostile one, at its start, its end or in its middle."""
    calls = iter(range(10**6))

    def word(text: str) -> str:
        return bad + text if text[-1:].isdigit() else (bad + text, text + bad, f"a {bad} b")[next(calls) % 3]

    return changed.pair_report(word=word) if request.param == "pair" else changed.many_report(word)


def test_no_exit_lets_controls_through(hostile: Report) -> None:
    sections = change.chapters(hostile)
    for said in (
        markdown.page(change.title(hostile), sections),
        html.page(change.title(hostile), sections, "0"),
        json_v1.render(hostile),
        compare_text(hostile),
        markdown.render(hostile),
        html.render(hostile),
    ):
        said.encode("utf-8")
        assert not DECEIVING.search(said)


def test_the_terminal_stays_one_screen(hostile: Report) -> None:
    assert_fits(compare_text(hostile))


def test_markdown_holds_no_markup_but_ours(hostile: Report) -> None:
    sections = change.chapters(hostile)
    tokens = assert_inert_markdown(markdown.page(change.title(hostile), sections))
    assert len(headings(tokens, "h2")) == len(sections)


def test_html_holds_no_tag_but_ours_and_links_only_within(hostile: Report) -> None:
    page = Page(html.page(change.title(hostile), change.chapters(hostile), "0"))
    assert not page.open
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "img", "svg", "details", "b", "link"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert re.fullmatch(r"#[a-z0-9-]+", attributes.get("href") or "#a")


def test_json_gives_the_text_back(hostile: Report) -> None:
    document = json.loads(json_v1.render(hostile))
    VALIDATOR.validate(document)
    first = hostile.comparisons[0]
    assert [term["term"] for term in document["comparisons"][0]["bridge"]] == [
        term.term for term in first.bridge
    ]
    assert document["comparisons"][0]["missing_run"] == first.missing_run


def test_commands_are_one_inert_line_each(hostile: Report) -> None:
    said = markdown.page(change.title(hostile), change.chapters(hostile))
    for line in re.findall(r"^blade show .*$", said, re.MULTILINE):
        words = shlex.split(line, comments=True)
        assert len(words) == 4
        assert words[:2] == ["blade", "show"]
        assert not words[2].startswith("-")


@pytest.mark.parametrize("name", ["script", "closing", "ansi", "bidi", "template", "wide", "empty"])
def test_figures_stay_well_formed(name: str) -> None:
    for figure in change_figures.drawn(changed.many_report(lambda text: HOSTILE[name] + text), "compare-"):
        assert re.fullmatch(r"compare-(bridge|scatter|transitions|series|front)(-\d+)?\.svg", figure.file)
        assert not DECEIVING.search(figure.svg)
        tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(figure.svg).iter()}
        assert not tags & {"script", "image", "a", "style", "foreignObject"}
