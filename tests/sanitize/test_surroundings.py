"""What a secret stands in hides it from no rule: lists, tables, prefixes of lines, cuts, and what was read before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from blade.cli.main import cli
from blade.sanitize import Cleaner, Key, clean_files, files, read_key
from blade.sanitize.scan import MARKS, Sieve
from blade.sanitize.secret_rules import Rule, rules
from tests.case_tables import tables

KEY = Key(b"a key for tests, of some length")
CASES: dict[str, Any] = tables(__file__, "surroundings.yaml")


def clean(text: str) -> str:
    return Cleaner(KEY).text(text)


def row_of(output: str) -> str:
    call = {"type": "function_call_output", "call_id": "call_1", "output": output}
    return json.dumps({"_ng_task_index": 0, "reward": 0.0, "response": {"output": [call]}})


def output_of(row: str) -> str:
    output: str = json.loads(Cleaner(KEY).row(row))["response"]["output"][0]["output"]
    return output


def values_in(text: str) -> list[str]:
    values: list[str] = []
    Cleaner(KEY, None, lambda field, kind, value: values.append(value)).text(text)
    return values


@pytest.mark.parametrize("mark", sorted(MARKS))
def test_b23_a_sieve_that_saw_much_finds_what_a_fresh_one_finds(mark: str) -> None:
    words = [form.format(mark) for form in ("{}", "({}", "{})", "{}.", '"{}"', "a{}b", "x.{}")]
    words += [word.upper() for word in words]
    used = Sieve()
    used.marks(" ".join(words))
    for word in words:
        assert used.marks(word) == Sieve().marks(word)


@pytest.mark.parametrize("text", ["new PDO( 'mysql:host=x', 'u', '{}' )", "await login( 'joe', '{}')"])
def test_b23_the_second_password_of_a_kind_goes_like_the_first(text: str) -> None:
    for value in ("Xk9vQ2mLp7wT", "Ab3tR8zWq1yK", "Jd5yU4kNe9hM"):
        assert value not in clean(text.format(value))


@pytest.mark.parametrize("case", CASES["tables"], ids=lambda case: case[0][:30])
def test_b24_a_table_is_read_to_its_end(case: list[str]) -> None:
    head, row, end = case
    values = [f"Zwiebel{n}kuchen" for n in range(700)]
    wide = ",".join(f"column_number_{n}" for n in range(40))
    text = head.format(wide=wide) + "".join(row.format(n=n, wide=wide, value=value) for n, value in enumerate(values)) + end.format()
    for new in (clean(text), output_of(row_of(text)), Cleaner(KEY).row(text)):
        assert [value for value in values if value in new] == []
    twin = text.replace("password", "meadow").replace("Password", "Meadow")
    assert clean(twin) == Cleaner(KEY).row(twin) == twin


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_b25_a_rule_finds_its_example_in_any_surrounding(rule: Rule) -> None:
    example = rule.example.replace("zwiebel7kuchen", "zwiebel7").replace("zwiebelkuchen", "Xk9vQ2mLp7wT")
    values = values_in(example)
    lines = example.split("\n")
    texts = ["\n".join(form.format(n=n, line=line) for n, line in enumerate(lines, 9)) for form in CASES["lines"]]
    if rule.name not in CASES["bound_to_lines"]:
        texts += [before + example + after for before, after in CASES["around"]]
    for text in texts:
        new = clean(text)
        assert [value for value in values if value in new] == [], text


@pytest.mark.parametrize("case", CASES["commands"], ids=lambda case: case[0])
def test_b25_the_arguments_of_a_command_are_read_together(case: list[str]) -> None:
    command, value = case
    words = command.split()
    items = "command:\n" + "".join(f"  - {word}\n" for word in words) + "image: x\n"
    for text in (items, json.dumps(words), f"execve({words[0]!r}, {words!r}, 0x7)", f"run({words[0]!r}, {words[1:]!r})"):
        for raw in (text, json.dumps({"cmd": words}), row_of(text)):
            assert value not in Cleaner(KEY).row(raw)
    assert json.loads(Cleaner(KEY).row(json.dumps({"cmd": words})))["cmd"][0] == words[0]


@pytest.mark.parametrize("case", CASES["beside"], ids=lambda case: case[0][:40])
def test_b25_what_stands_around_a_secret_gives_it_away(case: list[str]) -> None:
    text, value, *twins = case
    assert value not in clean(text)
    assert value not in output_of(row_of(text))
    for twin in twins:
        assert clean(twin) == twin


@pytest.mark.parametrize("case", CASES["forms"], ids=lambda case: case[0][:24])
def test_b26_a_token_goes_by_its_form(case: list[str]) -> None:
    token, *twins = case
    for text in (token, f"we saw {token} there", f"x='{token}'"):
        assert token[-12:] not in clean(text)
    for twin in twins:
        assert clean(f"we saw {twin} there") == f"we saw {twin} there"


@pytest.mark.parametrize("text", CASES["stays"])
def test_b26_what_only_looks_so_stays(text: str) -> None:
    assert clean(text) == text
    assert Cleaner(KEY).row(text) == text


@pytest.mark.parametrize("is_check", [False, True])
def test_b27_the_key_stays_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_check: bool) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "in"))
    monkeypatch.delenv("BLADE_SANITIZE_KEY", raising=False)
    words, own = "a long key of some words", "another key, that is my own"
    key, folder = tmp_path / "in" / "k.txt", tmp_path / "in" / "blade"
    folder.mkdir(parents=True)
    key.write_text(words, encoding="utf-8")
    (folder / "sanitize.key").write_text(own, encoding="utf-8")
    (folder / "note.md").write_text(f"it is {words}, and hello\n", encoding="utf-8")
    options = ["--check"] if is_check else ["-o", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, ["sanitize", str(tmp_path / "in"), "--key", str(key), *options])
    assert result.output.count("stays at home") == 2
    assert "Found 1 values" in result.output or not is_check
    if not is_check:
        left = {path.name: path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()}
        assert left == {"note.md": f"it is {read_key(key).placeholder('SECRET', words)}, and hello\n"}


def filler(size: int) -> str:
    return ("the quick brown fox went on and on\n" * (size // 35 + 1))[: size - 1] + "\n"


@pytest.mark.parametrize(
    "text",
    [
        *(filler(4096 - cut) + "password:\n  Xk9vQ2mLp7wT\nx: 1\n" + filler(900) for cut in (5, 10, 14)),
        filler(900) + "id,user,password\n" + "".join(f"{n},u{n},Zwiebel{n}kuchen\n" for n in range(900)),
        filler(900) + "INSERT INTO t (id, password) VALUES\n" + ",\n".join(f"({n}, 'Zw{n}iebel')" for n in range(900)) + ";\n",
        filler(900) + "INSERT INTO t (id, password) VALUES " + ", ".join(f"({n}, 'Zw{n}iebel')" for n in range(900)) + ";\n",
    ],
)  # fmt: skip
def test_b28_a_cut_between_pieces_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "out" / "a.txt"
    source.write_text(text, encoding="utf-8")
    monkeypatch.setattr(files, "_PIECE", 4096)
    removed = clean_files([(source, target)], tmp_path / "out", KEY)
    assert target.read_text(encoding="utf-8") == clean(text)
    assert (removed.leaks, removed.kinds["SECRET"]) == (0, len(values_in(text)))
    lines = [n for n, line in enumerate(text.split("\n"), 1) if "Xk9" in line or "Zw" in line]
    assert sorted({place.line for place in removed.places}) == lines


@pytest.mark.parametrize("options", [["--json"], ["--report", "removed.json"]])
def test_b29_a_file_name_of_no_encoding_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")
    (tmp_path / "in").mkdir()
    try:
        Path(os.fsdecode(b"in/caf\xe9.md")).write_text("ask mara.quint@initech.io\n", encoding="utf-8")
    except OSError:
        pytest.skip("this disk has names in UTF-8 alone")
    result = CliRunner().invoke(cli, ["sanitize", "in", "-o", "out", *options])
    assert result.exit_code == 0, result.output
    text = result.output if options == ["--json"] else Path("removed.json").read_text(encoding="utf-8")
    assert list(json.loads(text)["files"]) == ["in/caf\udce9.md"]
