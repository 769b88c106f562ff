"""Numbers as people read them, and foreign text at each exit."""

from __future__ import annotations

import shlex

import pytest

from blade import hostile
from blade import number_format as form
from tests.case_tables import cases, tables

CASES = tables(__file__, "number_format.yaml")


@pytest.mark.parametrize("name", CASES)
def test_a_number_is_written_so(name: str) -> None:
    write = getattr(form, name)
    assert [write(value) for value in CASES[name]] == list(CASES[name].values())


def test_a_change_has_a_sign_no_inexact_rate_is_0_or_100_and_lists_are_counted() -> None:
    assert [form.change(value, False) for value in (0.0841, -3.25, 0.0, None)] == ["+0.084", "−3.25", "0", "–"]
    texts = {form.percent(at / 20_000) for at in range(1, 20_000)}
    assert not texts & {"0%", "0.0%", "100%", "100.0%"}
    assert [form.listing(names) for names in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert [form.count(n, "task") for n in (1, 1319)] == ["1 task", "1,319 tasks"]


# -- foreign text at each exit ---------------------------------------------------------------------

@pytest.mark.parametrize("text", cases(__file__, "escaped_lines"))
def test_lines_lose_controls_and_bidi(text: str) -> None:
    cleaned = hostile.lines(text)
    assert all(char.isprintable() for char in cleaned)
    assert cleaned in ("red", "[31mred")


def test_openers_surrogates_line_breaks_fences_and_arguments_are_inert() -> None:
    assert hostile.lines("\x1b]" * 50_000) == ""  # and it costs little
    assert hostile.lines("a\ud800b") == "a\ufffdb"
    assert hostile.line("a\r\nb\rc\u2028d\x85e\tf\vg") == "a b c d e fg"
    fenced = hostile.markdown_fence("````\n</script>\n`````x")
    assert fenced.splitlines()[0] == "``````text"
    assert fenced.splitlines()[-1] == "``````"
    assert shlex.split(hostile.argument("$(rm -rf /); x") or "") == ["$(rm -rf /); x"]
    for unusable in ("", "-o/etc/passwd", "a\nb", "a\x1b[0m", "a\u202eb"):
        assert hostile.argument(unusable) is None


def test_intervals_and_names_stay_readable_in_markdown() -> None:
    plain = "42.0% [32.7%, 51.8%] pass@1, pass_at_1, <0.1%, [>99.9%, 100%], [−0.3, +5.0 points]"
    assert hostile.markdown_inline(plain) == plain
    assert hostile.markdown_inline("[1, 2](javascript:x)") == "\\[1, 2\\](javascript:x)"  # that could link
    assert hostile.markdown_inline("[1, 2]: http://x").startswith("\\[1, 2\\]")


@pytest.mark.parametrize("text", ["- a", "+ a", "> a", "=== a", "1. a", "12) a"])
def test_a_paragraph_starts_no_block(text: str) -> None:
    assert "\\" in hostile.markdown_start(text)[:4]
    assert hostile.markdown_start("42.0% of") == "42.0% of"


@pytest.mark.parametrize("text", ["", "a`b", "``", "`a", "a|b", "```\nx"])
def test_code_spans_hold_their_text(text: str) -> None:
    span = hostile.markdown_code(text, in_table=True)
    assert "\n" not in span
    assert "|" not in span.replace("\\|", "")
    ticks = len(span) - len(span.lstrip("`"))
    assert hostile._longest_run(span[ticks : len(span) - ticks]) < max(ticks, 1)
