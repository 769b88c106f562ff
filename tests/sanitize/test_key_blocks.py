"""No part of a private key survives, however its lines are spread, torn or marked."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest

from blade.sanitize import Cleaner
from tests.case_tables import cases
from tests.sanitize.conftest import KEY, exported

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
