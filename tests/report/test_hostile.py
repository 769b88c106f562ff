"""Hostile text through every exit of a report and of a comparison: nothing runs, styles, links or deceives."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from blade.model import Report
from blade.report import charts, html_text
from tests.compared import screen as assert_one_screen
from tests.inert import assert_inert_markdown, headings, uncited

from . import changed
from .conftest import make_report
from .explained import explain
from .renders import Forms
from .test_chapters import SECTIONS
from .test_charts import assert_quiet
from .test_terminal import assert_fits
from .test_wire import VALIDATOR

HOSTILE: dict[str, str] = json.loads(Path(__file__).with_name("hostile_texts.json").read_text(encoding="utf-8"))
DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
DATA = "data:image/svg+xml;base64,"


class Page(HTMLParser):
    """Collects tags and attributes, and sees that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br", "hr", "input", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


KINDS = ("one run", "two runs", "pair", "many")


def hostile_report(bad: str, kind: str) -> Report:
    """A report in which every foreign text holds the hostile one, at its start, its end or in its middle."""
    calls = iter(range(10**6))

    def word(text: str) -> str:
        # Task keys must stay distinct; texts take turns in where the hostile part stands.
        is_key = text.isdigit() or (kind in ("pair", "many") and text[-1:].isdigit())
        return bad + text if is_key else (bad + text, text + bad, f"a {bad} b")[next(calls) % 3]

    if kind in ("pair", "many"):
        return changed.pair_report(word=word) if kind == "pair" else changed.many_report(word)
    runs = {f"{bad}one": {"0": [1.0, 0.0], "1": [0.0, 0.0]}, f"two{bad}": {"0": [1.0, 1.0], "2": [None, 0.0]}}
    report = explain(make_report(runs, word=word), word)
    return replace(report, runs=report.runs[:1]) if kind == "one run" else report


@pytest.fixture(scope="module", params=[(name, kind) for name in HOSTILE for kind in KINDS], ids=" ".join)
def forms(request: pytest.FixtureRequest) -> Forms:
    name, kind = request.param
    return Forms(hostile_report(HOSTILE[name], kind), is_comparison=kind in ("pair", "many"))


def test_no_exit_lets_controls_through_and_the_terminal_keeps_its_size(forms: Forms) -> None:
    diagnosed = Forms(forms.report)
    for text in (*forms.all, *((diagnosed.markdown, diagnosed.html) if forms.is_comparison else ())):
        text.encode("utf-8")
        assert not DECEIVING.search(text)
    (assert_one_screen if forms.is_comparison else assert_fits)(forms.text)


def test_markdown_holds_no_markup_but_ours_and_its_tables_keep_their_shape(forms: Forms) -> None:
    tokens = assert_inert_markdown(forms.markdown)
    if forms.is_comparison:
        assert len(headings(tokens, "h2")) == len(forms.shown.sections)
    else:
        assert headings(tokens, "h2") == SECTIONS
    assert all(token.markup == "-" for token in tokens if token.type == "bullet_list_open")
    n_rows = sum(token.type == "tr_open" for token in tokens)
    rows = re.findall(r"^\| (---)?", forms.markdown, re.MULTILINE)
    assert n_rows == len(rows) - len([rule for rule in rows if rule])
    # Markdown drops surplus cells in silence, so the pipes are counted too; an escaped one is no border.
    for table in re.findall(r"(?:^\| .*\n?)+", forms.markdown, re.MULTILINE):
        borders = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}
        assert len(borders) == 1, table


def test_html_holds_no_tag_but_ours_and_links_only_within(forms: Forms) -> None:
    page = Page(forms.html)
    assert not page.open
    ours = set("html head meta title style body div nav p ol li a main header h1 section h2 h3 ul table thead tbody tr th td".split())
    ours |= {"code", "strong", "span", "data", "figure", "figcaption", "pre", "footer", "img"}
    assert {tag for tag, _ in page.tags} <= ours
    allowed = set("lang charset http-equiv content name class id href aria-label src alt title value".split())
    for _, attributes in page.tags:
        assert set(attributes) <= allowed
        assert re.fullmatch(r"#[a-z0-9-]+", attributes.get("href") or "#a")


def test_json_gives_the_text_back(forms: Forms) -> None:
    report, document = forms.report, json.loads(forms.json)
    try:
        VALIDATOR.validate(document)
    except jsonschema.ValidationError as wrong:
        pytest.fail(wrong.message)
    name = report.runs[0].name
    assert document["runs"][0]["name"] == name
    if forms.is_comparison:
        first, written = report.comparisons[0], document["comparisons"][0]
        assert [term["term"] for term in written["bridge"]] == [term.term for term in first.bridge]
        assert written["missing_run"] == first.missing_run
        return
    quotes = {group.quote.quote for group in report.groups if group.quote is not None}
    assert {group["quote"]["text"] for group in document["groups"]} == quotes != set()
    for key, part, wired in (
        ("trust", "text", "text"), ("groups", "name", "name"), ("groups", "why_label", "why_label"), ("groups", "query", "query"),
        ("attributions", "mechanism", "text"), ("recommendations", "action", "action"), ("run_causes", "text", "text"),
        ("slices", "value", "value"),
    ):  # fmt: skip
        texts = {getattr(noun, part) for noun in getattr(report, key) if noun.run == name}
        assert {noun[wired] for noun in document[key] if noun["run"] == name} == texts != set()


def test_commands_are_one_inert_line_each(forms: Forms) -> None:
    for line in re.findall(r"^blade show .*$", forms.markdown, re.MULTILINE):
        blade, show, path, _ = shlex.split(line, comments=True)
        assert (blade, show, path[:1] == "-") == ("blade", "show", False)


@pytest.mark.parametrize("name", ["script", "closing", "ansi", "bidi", "template", "wide", "empty"])  # what figures treat apart
def test_figures_stay_well_formed(name: str) -> None:
    bad = HOSTILE[name]
    of_pairs = charts.comparison_figures(changed.many_report(lambda text: bad + text), "compare-")
    names = "buckets|tasks|funnel|tokens|losses|compare-(?:bridge|scatter|transitions|series|front)"
    for figure in (*charts.run_figures(hostile_report(bad, "two runs")), *of_pairs):
        assert re.fullmatch(rf"({names})(-\d+)?\.svg", figure.file)
        assert not DECEIVING.search(figure.svg)
        assert_quiet((figure,))


def test_bare_addresses_are_broken_in_markdown_prose() -> None:
    report = make_report({"r": {"0": [1.0, 0.0]}}, word=lambda text: f"{text} https://evil.example www.evil.example")
    prose = re.sub(r"```.*?```", "", uncited(Forms(report).markdown), flags=re.DOTALL)
    prose = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", prose)
    assert "https\\://" in prose
    assert [part for part in ("https://", "www.evil") if part in prose] == []


def test_text_between_backticks_is_code_and_stays_inert_and_templates_are_not_run_twice() -> None:
    def styleless(report: Report) -> str:
        return re.sub(r"<style>.*?</style>", "", Forms(report).html, flags=re.DOTALL)

    text = styleless(make_report({"r": {"0": [1.0]}}, word=lambda text: text + "{{7*7}}"))
    assert ("{{7*7}}" in text, "49" in text) == (True, False)
    bad = "calls `<img src=x>` and `[a](b)` and ` ` and `"
    report = explain(make_report({"r": {"0": [1.0, 0.0], "1": [0.0, 0.0]}}), lambda text: f"{text} {bad}")
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(uncited(Forms(report).markdown))
    inline = {child.type for token in tokens for child in token.children or ()}
    assert not inline & {"html_inline", "link_open", "image"}
    assert "<img src=x" not in styleless(report)


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
