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
    assert [each.own for each in parse(raw).sentences] == [seen]


@pytest.mark.parametrize(("text", "sentence", "offset", "line"), cases(__file__, "a_comment_stands_behind_its_number"))
def test_a_comment_stands_behind_its_number(text: str, sentence: str, offset: int, line: int) -> None:
    (each,) = parse(text).sentences
    assert each.own == sentence
    assert [(" ".join(c.text.split()), c.offset, c.line) for c in each.comments] == [("blade: count", offset, line)]


def outline(text: str) -> dict[str, object]:
    """The tables, lists and quotations of a text, and its last sentence."""
    document = parse(text)
    return {
        "tables": [
            {"header": [cell.text for cell in table.header], "lead": [lead.own for lead in table.lead],
             "rows": [[row.line, *([cell.text, len(cell.comments)] for cell in row.cells)] for row in table.rows],
             "note": [note.own for note in table.note], "ragged": table.ragged}
            for table in document.tables
        ],
        "lists": [[[lead.own for lead in each.lead], *([part.own for part in item] for item in each.items)] for each in document.lists],
        "quotations": [[each.text, each.kind, each.line, each.last_line, each.info] for each in document.quotations],
        "last": [[each.own, each.kind] for each in document.sentences[-1:]],
    }  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), cases(__file__, "tables_lists_and_quotations"))
def test_tables_lists_and_quotations(text: str, parts: dict[str, object]) -> None:
    assert outline(text) == parts


@pytest.mark.parametrize(("text", "ragged"), cases(__file__, "tables_of_other_shapes"))
def test_tables_of_other_shapes(text: str, ragged: bool) -> None:
    (table,) = parse(text).tables
    assert ([cell.text for cell in table.header], table.rows[0].cells[0].text) == (["a", "b"], "1")
    assert table.ragged is ragged


@pytest.mark.parametrize("text", cases(__file__, "no_tables"))
def test_what_is_no_table(text: str) -> None:
    assert not parse(text).tables


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
