"""A redacted quotation stands in the raw text that it was made of, and in no other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blade.sanitize import Cleaner, Key, is_redacted, matches

KEY = Key(b"a key for tests, of some length")
OTHER = Key(b"another key, also long enough")
RAW = "step 1 ok\nmailed mara.quint@initech.io and x@initech.io from /home/kvasir/run\nexit 0"


def test_a_redacted_quote_matches_its_raw_text() -> None:
    quote = Cleaner(KEY).text(RAW)[10:-7]
    assert is_redacted(quote)
    assert matches(quote, RAW)
    assert matches(quote, RAW, KEY)
    assert not matches(quote, RAW, OTHER)


def test_what_stands_outside_the_placeholders_must_be_equal() -> None:
    quote = Cleaner(KEY).text(RAW)
    assert not matches(quote.replace("exit 0", "exit 1"), RAW)
    assert not matches(quote.replace("mailed", "called"), RAW, KEY)
    assert not matches("no placeholder here", RAW)


def test_a_placeholder_of_another_value_needs_the_key_to_be_seen() -> None:
    forged = f"mailed {KEY.placeholder('EMAIL', 'someone@else.org')} and"
    assert matches(forged, RAW)
    assert not matches(forged, RAW, KEY)


def test_placeholders_at_either_end_and_side_by_side() -> None:
    raw = "mara.quint@initech.io kvasir"
    both = f"{KEY.placeholder('EMAIL', 'mara.quint@initech.io')} {KEY.placeholder('USER', 'kvasir')}"
    assert matches(both, raw, KEY)
    joined = KEY.placeholder("USER", "ab") + KEY.placeholder("USER", "cd")
    assert matches(joined, "xabcd", KEY)
    assert not matches(joined, "xabdc", KEY)
    assert matches(KEY.stub("CODE", "a = 1\n"), "x = 2\na = 1\n", KEY)


@given(st.lists(st.sampled_from(["mara@initech.io", "ok", "10.0.0.7", "\n", " ", "a"]), max_size=12))
def test_every_cleaned_text_matches_what_it_was_made_of(parts: list[str]) -> None:
    raw = " ".join(parts)
    assert matches(Cleaner(KEY).text(raw), raw, KEY)
