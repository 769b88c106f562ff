"""What is taken out of rows and texts in any disguise, what stays, and that no text costs more than its length."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.sanitize import Cleaner, Policy
from blade.sanitize.secret_rules import rules
from tests.builders import make_call, make_message, make_response, make_result, make_row
from tests.case_tables import cases
from tests.sanitize.conftest import GITHUB, KEY, MAIL, exported
from tools.canaries import recall
from tools.canaries.canary_kinds import HELD_OUT
from tools.canaries.recall import PLACES, survives


def clean(text: str, policy: Policy | None = None) -> str:
    return Cleaner(KEY, policy).row(text)


@pytest.mark.parametrize(("kind", "text", "value"), cases(__file__, "kinds"))
def test_each_kind_becomes_its_placeholder(kind: str, text: str, value: str) -> None:
    assert KEY.placeholder(kind, value) in clean(text)
    assert value not in clean(text)


def test_a_row_changes_in_nothing_but_its_private_strings() -> None:
    calls = [make_call("c1", "shell", json.dumps({"cmd": f"use {GITHUB}"})), make_result("c1", "fine")]
    response = make_response([*calls, make_message("ok")])
    odd = {"big": 12345678901234567890, "failure_kind": "x_err"}
    row = make_row(3, 1, 0.30000000000000004, response=response, **odd)
    raw = json.dumps(row, separators=(", ", ":  "))
    new = Cleaner(KEY).row(raw)
    assert new == raw.replace(GITHUB, KEY.placeholder("SECRET", GITHUB))
    assert json.loads(json.loads(new)["response"]["output"][0]["arguments"])["cmd"].startswith("use [SECRET:")


def test_keys_escapes_base64_and_addresses_hide_nothing() -> None:
    held = base64.b64encode(f"notes\nask {MAIL}\n".encode()).decode()
    forms = [
        json.dumps({MAIL: 1}),
        '{"a": "' + MAIL.replace("@", "\\u0040") + '"}',
        json.dumps({"a": json.dumps({"b": json.dumps({"c": MAIL})})}),
        json.dumps({"data": held}),
        json.dumps({"url": f"https://example.org/?q={MAIL.replace('@', '%40')}"}),
        f"- **{MAIL.replace('@', chr(92) + '@')}**",
        MAIL.replace("@", "&#64;"),
        f"+{MAIL}",
        "cut short mara.quint@init…",
    ]
    for form in forms:
        new = Cleaner(KEY).row(form)
        assert new != form
        assert "mara" not in new
        if held not in form and "…" not in form:
            assert KEY.code("EMAIL", MAIL) in new
    again = base64.b64decode(json.loads(Cleaner(KEY).row(forms[3]))["data"]).decode()
    assert again == f"notes\nask {KEY.placeholder('EMAIL', MAIL)}\n"


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


ODD = st.text(alphabet="ab1A_-.\\u200b%4026+=& \n\u200b…~$:", max_size=80)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300) | ODD)
def test_any_text_survives_and_cleaning_is_stable(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    row = json.dumps({"a": text, "n": 1.5})
    assert json.loads(Cleaner(KEY).row(row))["n"] == 1.5


LONG = [(piece * 200_000)[:200_000] for piece in cases(__file__, "pieces_of_long_texts")]
LONG += [piece * 15_000 for piece in cases(__file__, "pieces_of_disguises")]


@pytest.mark.parametrize("text", LONG, ids=lambda text: repr(text[:20]))
def test_a_long_text_of_one_piece_is_answered(text: str) -> None:
    # what grows with the square of the length would not come back from this
    assert clean(text) is not None


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


TORN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

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


@pytest.mark.parametrize("text", [*(rule.example for rule in rules()), *cases(__file__, "beside")])
def test_a_rule_takes_out_its_example_and_what_stands_beside_a_value_gives_it_away(text: str) -> None:
    assert clean(text) != text


@pytest.mark.parametrize("case", cases(__file__, "labelled"), ids=lambda case: case[0][:40])
def test_b22_a_secret_goes_from_behind_its_label_and_a_stand_in_stays(case: list[str]) -> None:
    text, value, *more = case
    row = json.dumps({"_ng_task_index": 0, "response": {"output": [{"type": "function_call_output", "output": text}]}})
    assert value not in Cleaner(KEY).text(text)
    assert value not in json.loads(Cleaner(KEY).row(row))["response"]["output"][0]["output"]
    if not more:
        twin = text.replace(value, "changeme")
        assert Cleaner(KEY).text(twin) == twin


@pytest.mark.parametrize("text", [*cases(__file__, "stays"), *cases(__file__, "looks_labelled")])
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


# -- private keys ----------------------------------------------------------------------------------

DRAW = random.Random(3)
PKCS8 = bytes.fromhex("308204bd020100300d06092a864886f70d0101010500048204a7")


def lines(head: str, tail: str, data: bytes = b"", more: int = 900) -> list[str]:
    text = base64.b64encode(data + DRAW.randbytes(more)).decode()
    return [*head.split("\n"), *(text[at : at + 64] for at in range(0, len(text), 64)), tail]


KEYS = {
    "PEM": lines("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", PKCS8),
    "OpenSSH": lines("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----", b"openssh-key-v1\0"),
    "SSH2": lines("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: k", "---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
    "PGP": lines("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 2\n", "=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"),
    "PuTTY": lines("PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 14", f"Private-MAC: {'0a' * 32}"),
    "long": lines("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", more=15_000),
}  # fmt: skip
FORMS = {
    "text": "\n".join,
    "row": lambda key: json.dumps({"a": f"see\n{chr(10).join(key)}\nthanks"}),
    "list": lambda key: json.dumps({"a": [{"type": "text", "line": line} for line in key]}),
    "siblings": lambda key: json.dumps({f"part {n}": line for n, line in enumerate(key)}),
    "rows": lambda key: "\n".join(json.dumps({"n": n, "at": "noon", "line": line}) for n, line in enumerate(key)),
    "cut at its end": lambda key: "\n".join(key[: len(key) // 2]) + "…\nand more words",
    "rows, cut at their end": lambda key: "\n".join(json.dumps({"line": line}) for line in key[: len(key) // 2]),
    "cut at its beginning": lambda key: "\n".join(key[len(key) // 2 :]),
    "list, cut at its beginning": lambda key: json.dumps({"a": key[len(key) // 2 :]}),
    "rows, cut at their beginning": lambda key: "\n".join(json.dumps({"line": line}) for line in key[len(key) // 2 :]),
    "log": lambda key: "\n".join(f"2024-01-01 12:00:00 INFO app: {line}" for line in key),
    "diff": lambda key: "\n".join(f"+{line}" for line in key),
    "Python": repr,
    "HTML": lambda key: "".join(f"<p>{line}</p>" for line in key),
    "encoded": lambda key: json.dumps({"a": base64.b64encode("\n".join(key).encode()).decode()}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KEYS)
def test_no_line_of_a_key_survives(tmp_path: Path, kind: str, form: str) -> None:
    text = FORMS[form](KEYS[kind])
    (written,) = exported(tmp_path, {"a.jsonl" if text.startswith("{") else "a.md": text})[1].values()
    new = written.decode()
    new = base64.b64decode(json.loads(new)["a"]).decode() if form == "encoded" else new
    assert not [line for line in KEYS[kind] if len(line) == 64 and (line[:20] in new or line[-20:] in new)]
    assert "PRIVATE KEY" not in new


@pytest.mark.parametrize("text", cases(__file__, "marks_alone"))
def test_a_mark_alone_goes_and_takes_nothing_with_it(text: str) -> None:
    new = Cleaner(KEY).row(text)
    mark = text[text.index("-----") : text.rindex("-----") + 5]
    assert new == text.replace(mark, KEY.placeholder("SECRET", mark))


def test_public_keys_stay() -> None:
    body = base64.b64encode(bytes.fromhex("30820122300d06092a864886f70d01010105000382010f00") + bytes(9) * 20)
    text = f"-----BEGIN CERTIFICATE-----\n{body.decode()[:64]}\n-----END CERTIFICATE-----\n"
    assert Cleaner(KEY).text(text) == text


# -- the suite of canaries -------------------------------------------------------------------------

def test_canaries_of_every_kind_are_caught_in_every_place() -> None:
    planted, caught, moved = recall.recall(1, 3)
    assert len(recall.ALL) >= 100
    assert sum(caught.values()) >= recall.RECALL * sum(planted.values())
    assert moved == 0


def test_simulated_rows_stay_as_they_are() -> None:
    tokens, lost, _ = recall.changed(recall.simulated_lines())
    assert tokens > 100_000
    assert lost <= recall.CHANGED * tokens


def test_a_canary_that_nobody_took_out_is_seen() -> None:
    for kind, make in {**recall.ALL, **HELD_OUT}.items():
        canary = make(random.Random(5))
        assert all(survives(canary, json.dumps(plant(canary))) for plant in PLACES.values()), kind
