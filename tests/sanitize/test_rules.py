"""Private values go where something beside them gives them away; what only looks like them stays."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.sanitize import Cleaner, Key
from blade.sanitize.secret_rules import Rule, rules
from tests.case_tables import cases

KEY = Key(b"a key for tests, of some length")
TORN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def clean(text: str) -> str:
    return Cleaner(KEY).row(text)


# `survived` is M8: what a red team carried past the rules, and more of each class.
TEXTS = [case for name in ("chosen", "survived", "disguised") for case in cases(__file__, name)]
TEXTS += [[text, "kvasirsson"] for text in cases(__file__, "users")]


@pytest.mark.parametrize(("text", "value"), TEXTS)
def test_what_is_private_goes_in_any_disguise(text: str, value: str) -> None:
    assert value in text
    for raw in (text, json.dumps({"note": text}), json.dumps({"note": text}, ensure_ascii=False)):
        new = clean(raw)
        assert value not in (new if raw == text else json.loads(new)["note"])
        assert clean(new) == new


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_rule_takes_out_its_example(rule: Rule) -> None:
    assert Cleaner(KEY).text(rule.example) != rule.example


@pytest.mark.parametrize("text", cases(__file__, "beside"))
def test_what_stands_beside_a_value_gives_it_away(text: str) -> None:
    assert clean(text) != text


@pytest.mark.parametrize("text", cases(__file__, "stays"))
def test_what_only_looks_private_stays(text: str) -> None:
    assert clean(text) == text
    assert clean(json.dumps({"a": text})) == json.dumps({"a": text})


def test_an_id_stays_where_a_secret_is_named_before_it() -> None:
    row = '{"name": "API_KEY", "task_id": "winterfell9", "reward": 1.0, "value": "sommerabend7"}'
    new = Cleaner(KEY).row(row)
    assert '"task_id": "winterfell9", "reward": 1.0' in new
    assert "sommerabend7" not in new


@pytest.mark.parametrize("gap", ["\n", "\r\n", "\n    ", "\n> "])
def test_a_token_over_two_lines_goes(gap: str) -> None:
    for at in range(5, 36):
        new = Cleaner(KEY).text(f"pushed with {TORN[:at]}{gap}{TORN[at:]} today\nnext line")
        assert TORN[:at] not in new
        assert TORN[at:] not in new or at > 33
        assert new.endswith(" today\nnext line")


def test_the_line_after_a_whole_token_stays() -> None:
    for after in ("gpt4 was asked", "step12", "a plain line"):
        assert Cleaner(KEY).text(f"with {TORN}\n{after}").endswith(f"]\n{after}")
    for text in ("hf_hub\nv2 of it12345", "npm_config\ntest1234567", "sk-proj-\nabcdef12"):
        assert Cleaner(KEY).text(text) == text


def test_encoded_data_stays_as_it_is() -> None:
    data = bytes(at * 37 % 251 for at in range(6_000))
    for text in (base64.b64encode(data).decode(), base64.encodebytes(data).decode(), data.hex()):
        assert clean(text) == text
    words = base64.encodebytes(b"a line of nothing much, said again and again\n" * 40).decode()
    assert clean(words) == words


def test_a_quotation_of_an_escaped_value_is_known_with_the_key() -> None:
    raw = "ask mara.qu\u200bint@initech.io or q=x&to=mara.quint%40initech.io now"
    new = clean(raw)
    assert new.count(KEY.placeholder("EMAIL", "mara.quint@initech.io")) == 2
    assert new.startswith("ask [")
    assert new.endswith(" now")


@given(st.text(alphabet="ab1A_-.\\u200b%4026+=& \n\u200b…~$:", max_size=80))
def test_odd_texts_are_answered_and_stay_stable(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@pytest.mark.parametrize("piece", cases(__file__, "pieces_of_disguises"))
def test_a_long_text_of_one_disguise_is_answered(piece: str) -> None:
    # what grows with the square of the length would not come back from this
    assert clean(piece * 15_000) is not None
