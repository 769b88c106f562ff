"""Markdown as a reader sees it: sentences, tables and quotations, each on its lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.prose.document import document, plain


def test_sentences_keep_their_lines_and_headings() -> None:
    text = "# Title\n\nFirst one. Second\ngoes on. Third.\n\n## Part\n\n- item `a. B` stays whole. And more\n- next\n"
    told = document(text)
    assert told.title == "Title"
    assert [
        (one.text, one.line, one.last_line, one.headings) for one in told.statements if one.kind == "sentence"
    ] == [
        ("First one.", 3, 3, ()),
        ("Second goes on.", 3, 4, ()),
        ("Third.", 4, 4, ()),
        ("item `a. B` stays whole.", 8, 8, ("Part",)),
        ("And more", 8, 8, ("Part",)),
        ("next", 9, 9, ("Part",)),
    ]
    assert [one.text for one in told.statements if one.kind == "heading"] == ["Title", "Part"]


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("**bold** and *it* ~~gone~~", "bold and it gone"),
        ("a\\*b\\_c 2 * 3", "a*b_c 2 * 3"),
        ("[text](https://x.example) ![alt](a.svg)", "text alt"),
        ("`**kept**` `a\\b`", "`**kept**` `a\\b`"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("1 &lt; 2 <b>x</b>", "1 < 2 x"),
    ],
)
def test_markup_goes_and_code_stays(raw: str, seen: str) -> None:
    assert plain(raw) == seen


def test_tables_with_pipes_escapes_and_ragged_rows() -> None:
    told = document("Before.\n\n| a | b |\n| --- | ---: |\n| x \\| y | 1 |\n| `c` | 2 | 3 |\n\nafter")
    (table,) = told.tables
    assert table.header == ("a", "b")
    assert [(row.line, row.cells) for row in table.rows] == [(5, ("x | y", "1")), (6, ("`c`", "2", "3"))]
    assert (table.line, table.ragged, table.before) == (3, 1, "Before.")


def test_quotations_have_the_sentence_before_them() -> None:
    told = document("Failing, task `4/1`, step 3:\n\n````text\nit said ```\n| no | table |\n````\nMore.\n")
    (quote,) = told.quotations
    assert (quote.text, quote.line, quote.last_line) == ("it said ```\n| no | table |", 3, 6)
    assert quote.label == "Failing, task `4/1`, step 3:"
    assert not told.tables
    assert told.statements[-1].line == 7


def test_comments_say_nothing_and_keep_the_count_of_lines() -> None:
    told = document("One.\n<!-- claims: c1 \n 17 of 3 -->\nTwo.")
    assert [(one.text, one.line) for one in told.statements] == [("One.", 1), ("Two.", 4)]


def test_abbreviations_and_decimals_end_no_sentence() -> None:
    told = document("It rose, e.g. From 0.5 to 0.7, i.e. A lot. Then 3.5 points. 4 more.")
    assert [one.text for one in told.statements] == [
        "It rose, e.g. From 0.5 to 0.7, i.e. A lot.", "Then 3.5 points.", "4 more.",
    ]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='ab.1 |`*#->\n\r[]()“”"<!\\_~:', max_size=200))
def test_anything_is_read_and_every_part_stands_on_a_line_of_the_text(text: str) -> None:
    told = document(text)
    n = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for one in (*told.statements, *told.quotations):
        assert 1 <= one.line <= one.last_line <= n
    for table in told.tables:
        assert all(1 <= row.line <= n for row in table.rows)


def test_line_ends_of_any_kind_read_the_same() -> None:
    text = "# T\n\nA 1. B 2.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert document(text) == document(text.replace("\n", "\r\n")) == document("\ufeff" + text)
