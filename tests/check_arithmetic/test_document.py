"""Markdown as a reader sees it: sentences, tables, lists, quotations and comments, each with its lines."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.check.markdown_document import parse
from tests.case_tables import cases


@pytest.mark.parametrize(("text", "title", "sentences"), cases(__file__, "sentences_of_documents"))
def test_sentences_keep_their_lines_and_headings(text: str, title: str, sentences: list[list[object]]) -> None:
    document = parse(text)
    assert document.title == title
    fields = ("own", "kind", "line", "last_line", "headings", "before")
    rows = msgspec.to_builtins(document.sentences)
    assert [[row[field] for field in fields] for row in rows] == [[*row[:4], tuple(row[4]), row[5]] for row in sentences]


@pytest.mark.parametrize(("raw", "seen"), cases(__file__, "markup_goes_and_code_stays"))
def test_markup_goes_and_code_stays(raw: str, seen: str) -> None:
    assert [one.text for one in parse(raw).sentences] == [seen]


@pytest.mark.parametrize(("text", "sentence", "offset", "line"), cases(__file__, "a_comment_stands_behind_its_number"))
def test_a_comment_stands_behind_its_number(text: str, sentence: str, offset: int, line: int) -> None:
    (one,) = parse(text).sentences
    assert one.text == sentence
    assert [(" ".join(c.text.split()), c.offset, c.line) for c in one.comments] == [("blade: count", offset, line)]


def test_comments_in_cells_may_hold_borders_and_code_keeps_what_looks_like_one() -> None:
    (table,) = parse("| a | b |\n|---|---|\n| x | 12<!--blade: count | percent--> |\n<!--blade: rate-->\n").tables
    assert [(cell.text, len(cell.comments)) for cell in table.rows[0].cells] == [("x", 0), ("12", 1)]
    document = parse("- in a list\n\n  ```\n  <!-- a\n  b -->\n  ```\n\n      <!--c-->\n\nand `x\n<!--d-->`\n")
    assert [one.text for one in document.quotations] == ["<!-- a\nb -->", "<!--c-->"]
    assert document.sentences[-1].text == "and `x <!--d-->`"


def test_tables_have_pipes_escapes_lead_and_note() -> None:
    text = "Before it:\n| a | b \\| c |\n|:--|--:|\n| `x` | 1 |\n| y |\n\nAfter it.\n"
    (table,) = parse(text).tables
    assert [cell.text for cell in table.header] == ["a", "b | c"]
    assert [(row.line, [cell.text for cell in row.cells]) for row in table.rows] == [(4, ["`x`", "1"]), (5, ["y", ""])]
    assert [one.text for one in table.lead] == ["Before it:"]
    assert [one.text for one in table.note] == ["After it."]
    assert not table.ragged


@pytest.mark.parametrize(("text", "ragged"), cases(__file__, "tables_of_other_shapes"))
def test_tables_of_other_shapes(text: str, ragged: bool) -> None:
    (table,) = parse(text).tables
    assert ([cell.text for cell in table.header], table.rows[0].cells[0].text) == (["a", "b"], "1")
    assert table.ragged is ragged


@pytest.mark.parametrize("text", cases(__file__, "no_tables"))
def test_what_is_no_table(text: str) -> None:
    assert not parse(text).tables


def test_lists_have_their_lead_and_nest() -> None:
    text = "The causes:\n\n1. First. More\n   of it\n   - inner one\n   - inner two\n\n     its end\n2. Second\n\nOutside.\n"
    outer, inner = parse(text).lists
    assert [one.text for one in outer.lead] == ["The causes:"]
    assert [[one.text for one in item] for item in outer.items] == [["First.", "More of it"], ["Second"]]
    assert [[one.text for one in item] for item in inner.items] == [["inner one"], ["inner two", "its end"]]
    assert [one.text for one in inner.lead] == ["First.", "More of it"]
    assert parse(text).sentences[-1].kind == "sentence"


def test_quotations_have_their_lines() -> None:
    text = "Failing, task `4/1`:\n\n````text\nit said ```\n````\n\n> quoted words\n> go on.\n\n    indented\n"
    fence, quote, indented = parse(text).quotations
    assert (fence.text, fence.line, fence.last_line, fence.info) == ("it said ```", 3, 5, "text")
    assert (quote.text, quote.kind, quote.line, quote.last_line) == ("quoted words go on.", "quote", 7, 8)
    assert (indented.text, indented.kind) == ("indented", "indented")
    assert parse(text).sentences[-1].kind == "quote"


@given(st.text(alphabet="#*-_`|>~<![]()0aB .,:=\n\\\t%", max_size=300))
@settings(max_examples=300, deadline=None)
def test_anything_can_be_read_and_lines_are_within_the_text(text: str) -> None:
    document = parse(text)
    last = text.count("\n") + 1
    assert all(1 <= one.line <= one.last_line <= last for one in document.sentences)
    assert all(0 <= comment.offset <= len(one.text) for one in document.sentences for comment in one.comments)
    assert all(1 <= row.line <= last for table in document.tables for row in table.rows)


@pytest.mark.parametrize("piece", cases(__file__, "hostile_markdown"))
def test_hostile_text_costs_linear_time(piece: str) -> None:
    text = piece * (40_000 // len(piece)) + "x"

    def cost(text: str) -> float:
        start = time.process_time()
        parse.__wrapped__(text)
        return time.process_time() - start

    cost(text[:10])  # imports
    # four times the text: linear work takes four times as long, quadratic work sixteen times
    bound = 8 * max(cost(text[: len(text) // 4]), 0.02)
    assert any(cost(text) < bound for _ in range(4))
