"""Hostile text through every exit: nothing runs, styles, links or deceives."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache

import jsonschema
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from blade.model import Report
from blade.report import RENDERERS, figures, html, markdown
from tests.inert import assert_inert_markdown, headings, uncited

from .conftest import make_report
from .explained import explain
from .test_html import Page
from .test_markdown import SECTIONS
from .test_text import assert_fits
from .test_wire import VALIDATOR

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "closing": "</script></style></pre></code><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "comment": "<!-- --><![CDATA[x]]><?php x ?>",
    "link": "[click](javascript:alert(1))",
    "half link": "](javascript:alert(1))",
    "image": "![x](https://evil.example/x.png)",
    "reference": "[x]: https://evil.example",
    "autolink": "<https://evil.example> https://evil.example www.evil.example a@evil.example",
    "entity": "&lt;script&gt; &#60;b&#62;",
    "ansi": "\x1b[31mred\x1b[0m\x1b]0;owned\x07\x1b]8;;https://evil.example\x1b\\x\x9b2J",
    "bidi": "abc\u202ecba\u2066\u200f\u061c",
    "nul": "a\x00b\x07\x08\x7f\x85",
    "fence": "```\n\n# Owned\n\n````html\n<b>\n```",
    "tilde": "~~~\n# Owned\n~~~",
    "template": "{{7*7}}{% raw %}${7*7}#{7*7}",
    "pipes": "a | b || c \\| d \\",
    "newlines": "a\n## Owned\r\n- item\n\n    code\u2028b",
    "heading": "# Owned\n===\n---",
    "emphasis": "**bold** __x__ *y* ~~z~~ `c`",
    "html block": "<details open><summary>x</summary>",
    "surrogate": "a\ud800b\udfff",
    "tags": "hi\U000e0068\U000e0069\ufeff\u200b",
    "shell": "$(touch /tmp/owned); `id` | rm -rf /",
    "option": "--output=/etc/passwd",
    "wide": "漢字かな交じり文" * 40,
    "long": "A" * 5_000,
    "empty": "",
    "blank": " \t ",
    "csv": "=cmd|' /C calc'!A0",
}
DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


@pytest.fixture(scope="module", params=list(HOSTILE))
def hostile(request: pytest.FixtureRequest) -> Report:
    """A report in which every foreign text holds the hostile one, at its start, alone or in its middle."""
    bad = HOSTILE[request.param]
    calls = iter(range(10**6))

    def word(text: str) -> str:
        # Task keys must stay distinct; texts take turns in where the hostile part stands.
        return (
            f"{bad}{text}"
            if text.isdigit()
            else (f"{bad}{text}", f"{text}{bad}", f"a {bad} b")[next(calls) % 3]
        )

    runs = {f"{bad}one": {"0": [1.0, 0.0], "1": [0.0, 0.0]}, f"two{bad}": {"0": [1.0, 1.0], "2": [None, 0.0]}}
    return explain(make_report(runs, word=word), word)


class Exits:
    """A report and what each renderer makes of it, made once."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.said = cache(lambda name: RENDERERS[name].render(report, ()))


@pytest.fixture(scope="module", params=["one", "two"])
def exits(request: pytest.FixtureRequest, hostile: Report) -> Exits:
    """The same with one and with two runs: their pages differ."""
    return Exits(hostile if request.param == "two" else replace(hostile, runs=hostile.runs[:1]))


@pytest.mark.parametrize("name", list(RENDERERS))
def test_no_renderer_lets_controls_through(exits: Exits, name: str) -> None:
    said = exits.said(name)
    said.encode("utf-8")
    assert not DECEIVING.search(said)


def test_the_terminal_page_keeps_its_width(exits: Exits) -> None:
    assert_fits(exits.said("text"))


def test_markdown_holds_no_markup_but_ours(exits: Exits) -> None:
    tokens = assert_inert_markdown(exits.said("markdown"))
    assert headings(tokens, "h2") == SECTIONS
    assert all(token.markup == "-" for token in tokens if token.type == "bullet_list_open")


def test_markdown_tables_keep_their_shape(exits: Exits) -> None:
    said = exits.said("markdown")
    tokens = MarkdownIt("commonmark").enable("table").parse(said)
    n_rows = sum(token.type == "tr_open" for token in tokens)
    n_drawn = len(re.findall(r"^\| ", said, re.MULTILINE)) - len(re.findall(r"^\| ---", said, re.MULTILINE))
    assert n_rows == n_drawn
    # Markdown drops surplus cells in silence, so the pipes are counted too; an escaped one is no border.
    for table in re.findall(r"(?:^\| .*\n?)+", said, re.MULTILINE):
        borders = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}
        assert len(borders) == 1, table


def test_bare_addresses_are_broken_in_markdown_prose(build: Callable[..., Report]) -> None:
    said = uncited(
        markdown.render(
            build({"r": {"0": [1.0, 0.0]}}, word=lambda text: f"{text} https://evil.example www.evil.example")
        )
    )
    prose = re.sub(r"```.*?```", "", said, flags=re.DOTALL)
    prose = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", prose)
    assert "https\\://" in prose
    assert "https://" not in prose
    assert "www.evil" not in prose


def test_html_holds_no_tag_but_ours(exits: Exits) -> None:
    page = Page(exits.said("html"))
    assert not page.open
    ours = set(
        "html head meta title style body div nav p ol li a main header h1 section h2 h3 dl dt dd ul table thead tbody tr th td".split()
    )
    ours |= {"code", "strong", "span", "data", "figure", "figcaption", "pre", "footer", "img"}
    assert {tag for tag, _ in page.tags} <= ours
    for _, attributes in page.tags:
        assert set(attributes) <= {
            "lang",
            "charset",
            "http-equiv",
            "content",
            "name",
            "class",
            "id",
            "href",
            "aria-label",
            "src",
            "alt",
            "title",
            "value",
        }
        assert (attributes.get("href") or "#").startswith("#")


def test_text_between_backticks_is_code_and_stays_inert(build: Callable[..., Report]) -> None:
    bad = "calls `<img src=x>` and `[a](b)` and ` ` and `"
    report = explain(build({"r": {"0": [1.0, 0.0], "1": [0.0, 0.0]}}), lambda text: f"{text} {bad}")
    said = uncited(markdown.render(report))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(said)
    assert not [
        t for token in tokens for t in token.children or () if t.type in ("html_inline", "link_open", "image")
    ]
    assert "<img src" not in re.sub(r"<style>.*?</style>", "", html.render(report), flags=re.DOTALL)


def test_templates_are_not_run_twice(build: Callable[..., Report]) -> None:
    report = build({"r": {"0": [1.0]}}, word=lambda text: text + "{{7*7}}")
    assert "{{7*7}}" in html.render(report)
    assert "49" not in re.sub(r"<style>.*?</style>", "", html.render(report), flags=re.DOTALL)


def test_json_gives_the_text_back(exits: Exits) -> None:
    of_runs = exits.report
    document = json.loads(exits.said("wire"))
    try:
        VALIDATOR.validate(document)
    except jsonschema.ValidationError as wrong:
        pytest.fail(wrong.message)
    assert document["runs"][0]["name"] == of_runs.runs[0].name
    quotes = {group.quote.quote for group in of_runs.groups if group.quote is not None}
    assert quotes
    assert {group["quote"]["text"] for group in document["groups"]} == quotes
    name = of_runs.runs[0].name
    for key, part, wired in (
        ("trust", "text", "text"), ("groups", "name", "name"), ("groups", "why_label", "why_label"), ("groups", "query", "query"),
        ("attributions", "mechanism", "text"), ("recommendations", "action", "action"), ("run_causes", "text", "text"),
        ("slices", "value", "value"),
    ):  # fmt: skip
        given = {getattr(noun, part) for noun in getattr(of_runs, key) if noun.run == name}
        assert given
        assert {noun[wired] for noun in document[key] if noun["run"] == name} == given


DRAWN = ["script", "closing", "ansi", "bidi", "template", "wide", "empty"]  # what figures treat apart


@pytest.mark.parametrize("hostile", DRAWN, indirect=True)
def test_figures_stay_well_formed(hostile: Report) -> None:
    for figure in figures.drawn(hostile):
        assert re.fullmatch(r"(buckets|tasks|funnel|tokens|losses)(-\d+)?\.svg", figure.file)
        assert not DECEIVING.search(figure.svg)
        root = ET.fromstring(figure.svg)
        assert not [
            e
            for e in root.iter()
            if e.tag.rpartition("}")[2] in ("script", "image", "a", "style", "foreignObject")
        ]


def test_commands_are_one_inert_line_each(exits: Exits) -> None:
    said = exits.said("markdown")
    for line in re.findall(r"^blade show .*$", said, re.MULTILINE):
        words = shlex.split(line, comments=True)
        assert len(words) in (4, 6)
        assert words[4:5] in ([], ["--steps"])
        assert words[:2] == ["blade", "show"]
        assert not words[2].startswith("-")
