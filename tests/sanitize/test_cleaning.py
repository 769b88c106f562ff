"""What is taken out of rows and texts, what stays, and that no text costs more than its length."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.sanitize import Cleaner, Key, Policy
from tests.builders import make_call, make_message, make_response, make_result, make_row
from tests.case_tables import cases

KEY = Key(b"a key for tests, of some length")
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def clean(text: str, policy: Policy | None = None) -> str:
    return Cleaner(KEY, policy).text(text)


@pytest.mark.parametrize(("kind", "text", "value"), cases(__file__, "kinds"))
def test_each_kind_becomes_its_placeholder(kind: str, text: str, value: str) -> None:
    assert KEY.placeholder(kind, value) in clean(text)
    assert value not in clean(text)


def test_a_row_changes_in_nothing_but_its_private_strings() -> None:
    calls = [make_call("c1", "shell", json.dumps({"cmd": f"use {TOKEN}"})), make_result("c1", "fine")]
    response = make_response([*calls, make_message("ok")])
    odd = {"big": 12345678901234567890, "failure_kind": "x_err"}
    row = make_row(3, 1, 0.30000000000000004, response=response, **odd)
    raw = json.dumps(row, separators=(", ", ":  "))
    new = Cleaner(KEY).row(raw)
    assert new == raw.replace(TOKEN, KEY.placeholder("SECRET", TOKEN))
    assert json.loads(json.loads(new)["response"]["output"][0]["arguments"])["cmd"].startswith("use [SECRET:")


def test_keys_escapes_base64_and_addresses_hide_nothing() -> None:
    mail = "mara.quint@initech.io"
    held = base64.b64encode(f"notes\nask {mail}\n".encode()).decode()
    forms = [
        json.dumps({mail: 1}),
        '{"a": "' + mail.replace("@", "\\u0040") + '"}',
        json.dumps({"a": json.dumps({"b": json.dumps({"c": mail})})}),
        json.dumps({"data": held}),
        json.dumps({"url": f"https://example.org/?q={mail.replace('@', '%40')}"}),
        f"- **{mail.replace('@', chr(92) + '@')}**",
        mail.replace("@", "&#64;"),
        f"+{mail}",
        "cut short mara.quint@init…",
    ]
    for form in forms:
        new = Cleaner(KEY).row(form)
        assert new != form
        assert "mara" not in new
        if held not in form and "…" not in form:
            assert KEY.code("EMAIL", mail) in new
    again = base64.b64decode(json.loads(Cleaner(KEY).row(forms[3]))["data"]).decode()
    assert again == f"notes\nask {KEY.placeholder('EMAIL', mail)}\n"


def test_a_broken_row_is_cleaned_too() -> None:
    assert "initech" not in Cleaner(KEY).row('{"a": "mara.quint@initech.io", "b": "torn')


@pytest.mark.parametrize("odd", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_row_with_what_python_writes_for_odd_numbers_keeps_its_ids(odd: str) -> None:
    row = f'{{"_ng_task_index": 1, "reward": {odd}, "error_kind": "a@b.io", "task_id": "jane@acme.com"'
    for more in (', "x": NaN}', ', "by": "jane@acme.com"}', "}"):
        new = Cleaner(KEY).row(row + more)
        assert new.startswith(row)
        assert ("[EMAIL:" in new) == ("by" in more)


def test_configured_names_go_in_any_case_and_joining() -> None:
    policy = Policy(names=("Quill Mark",), allow=("x@initech.io",))
    assert clean("QUILL_MARK and quill-mark and x@initech.io", policy).count("[NAME:") == 2
    assert clean("quillmarked and requill mark", policy) == "quillmarked and requill mark"
    assert "x@initech.io" in clean("x@initech.io", policy)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_any_text_survives_and_cleaning_is_stable(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    row = json.dumps({"a": text, "n": 1.5})
    assert json.loads(Cleaner(KEY).row(row))["n"] == 1.5


@pytest.mark.parametrize("piece", cases(__file__, "pieces_of_long_texts"))
def test_a_long_text_of_one_piece_is_answered(piece: str) -> None:
    # what grows with the square of the length would not come back from this
    text = (piece * 200_000)[:200_000]
    assert Cleaner(KEY).row(text) is not None


def test_a_list_of_long_words_is_answered() -> None:
    # a look through the whole text for every word of it would not come back from this
    ids = [f"{n:08x}-1111-4222-8333-{n * 7919:012x}" for n in range(30_000)]
    assert clean("\n".join(ids)) == "\n".join(ids)
    assert "mara" not in clean("".join(f"{word}," for word in ids) + " mara.quint@initech.io")


def test_encoded_texts_before_and_after_wrapped_ones_are_read() -> None:
    short = base64.b64encode(b"ask mara.quint@initech.io about it").decode()
    wrapped = base64.encodebytes(b"notes of the day\n" * 9 + b"ask mara.quint@initech.io\n").decode()
    again = clean(f"{short}\n\n{wrapped}\n{short}")
    assert base64.b64encode(b"mara")[:5].decode() not in again
    assert clean(f"{short}\n\n{wrapped}\n{short}").count(clean(short)) == 2
