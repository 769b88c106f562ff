"""What leaves the house: keys, ids, other encodings, policies, echoes, the leak test, users and people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade import errors, sanitize
from blade.sanitize import Cleaner, Policy
from blade.sanitize.echoes import Names
from blade.sanitize.lexicon import is_plain, is_telling
from tests.builders import make_call, make_message, make_response, make_row
from tests.case_tables import cases
from tests.sanitize.conftest import GITHUB, KEY, MAIL, exported, run


def clean(row: Any, policy: Policy | None = None) -> Any:
    return json.loads(Cleaner(KEY, policy).row(json.dumps(row)))


def test_a_secret_used_as_a_key_is_not_told_where_it_stood(tmp_path: Path) -> None:
    row = {"counts": {GITHUB: {"by": f"ask {MAIL}", "hunter2x9": 3}}, "note": "password: hunter2x9"}
    removed, texts = exported(tmp_path, {"a.jsonl": json.dumps(row) + "\n"})
    told = sanitize.as_json(removed)
    for value in (GITHUB, MAIL, "hunter2x9"):
        assert value not in told
        assert value.encode() not in texts["a.jsonl"]
    assert {place.field for place in removed.places} >= {"counts.(key)", "note"}
    assert any(place.field.endswith(".by") for place in removed.places)


@pytest.mark.parametrize("key", ["model", "name", "id", "status", "type", "role", "run_id"])
def test_a_field_that_is_called_like_an_id_hides_nothing(key: str) -> None:
    for value in ("/home/kvasir/m", "http://gpu-1.internal/v1", "password=hunter2x9", MAIL):
        for above in ("meta", "response")[: 1 if value == MAIL else 2]:
            assert clean({above: {key: value}})[above][key] != value


def test_true_ids_and_verifier_codes_stay() -> None:
    for row in cases(__file__, "ids_and_codes"):
        assert clean(row) == row
    assert MAIL not in clean({"_ng_task_index": 1, "id": MAIL, "uuid": MAIL}).values()
    assert clean({"case": MAIL})["case"] != MAIL
    assert clean({"case": MAIL}, Policy(ids=("case",)))["case"] == MAIL
    assert clean({"task_id": f"x-{GITHUB}"})["task_id"] == f"x-{KEY.placeholder('SECRET', GITHUB)}"


def test_an_id_like_an_address_stays_in_the_report_about_the_rows(tmp_path: Path) -> None:
    rows = "".join(json.dumps(make_row(n, 0, 1.0, task_id=f"jo{n}@desk.io")) + "\n" for n in range(3))
    _, texts = exported(tmp_path, {"a.md": f"Task jo1@desk.io failed; {MAIL} knows why.\n", "b.jsonl": rows})
    assert texts["b.jsonl"].decode() == rows
    assert texts["a.md"].decode() == f"Task jo1@desk.io failed; {KEY.placeholder('EMAIL', MAIL)} knows why.\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_wider_encodings_hide_nothing(tmp_path: Path, encoding: str) -> None:
    text = f"Zeile eins \u2028 ä\r\nask {MAIL} about it\n"
    rows = json.dumps({"note": text}, ensure_ascii=False) + "\n"
    removed, texts = exported(tmp_path, {"a.md": text.encode(encoding), "b.jsonl": rows.encode(encoding)})
    assert removed.total == 2
    assert texts["a.md"].decode("utf-8-sig") == text.replace(MAIL, KEY.placeholder("EMAIL", MAIL))
    assert json.loads(texts["b.jsonl"].decode("utf-8-sig"))["note"] == texts["a.md"].decode("utf-8-sig")


def test_names_of_files_leave_clean_and_are_told_clean(tmp_path: Path) -> None:
    (tmp_path / f"{MAIL}.jsonl").write_text('{"n": 1}\n', encoding="utf-8")
    done = run("sanitize", f"{MAIL}.jsonl", "-o", "out", "--report", "r.json")
    assert done.exit_code == 0, done.output
    code = KEY.placeholder("EMAIL", MAIL)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"{code}.jsonl"]
    assert MAIL not in (tmp_path / "r.json").read_text() + done.output


def test_every_policy_around_the_files_counts(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    (package / "rollouts").mkdir(parents=True)
    (package / "reports").mkdir()
    told = {"pack": "Quillmark", "pack/rollouts": "Inkwell", "pack/reports": "Blotter", ".": "Parchment"}
    for place, name in told.items():
        more = 'allow = ["Inkwell", "x@y.io"]\n' * (place == "pack")
        (tmp_path / place / "blade.toml").write_text(f'[sharing]\nnames = ["{name}"]\n{more}', encoding="utf-8")
    policy = sanitize.policy_near([package / "reports" / "a.md"])
    assert set(policy.names) == set(told.values())
    assert policy.allow == ("x@y.io",)
    assert "Parchment" not in sanitize.policy_near([package / "reports" / "a.md"], here=False).names


def test_echoes_go_through_strings_and_never_touch_ids(tmp_path: Path) -> None:
    many = {f"k{n}": f"password: swordfish-{n:05d}x" for n in range(1_500)}
    note = 'then "swordfish-01498x" opened it, not swordfish-01498xy'
    inner = json.dumps({"cmd": "open swordfish-01497x", "swordfish-01496x": 1})
    row = {"task_id": "swordfish-01499x", "note": note, "inner": inner, "settings": many}
    _, texts = exported(tmp_path, {"a.jsonl": json.dumps(row) + "\n", "b.md": "It is swordfish-01495x.\n"})
    new = json.loads(texts["a.jsonl"])
    assert new["task_id"] == "swordfish-01499x"
    known = KEY.placeholder("SECRET", "swordfish-01498x")
    assert new["note"] == f'then "{known}" opened it, not swordfish-01498xy'
    assert "swordfish" not in new["inner"]
    assert b"swordfish" not in texts["b.md"]


def test_numbers_and_nests_below_the_name_of_a_secret_go() -> None:
    goes, stays = cases(__file__, "below_the_name_of_a_secret")
    text = json.dumps(clean(goes))
    assert not [one for one in ("12345678", "bobby", "hunter", "839201", "abcd", "fish") if one in text]
    assert clean(goes)["credentials"]["type"] == "basic"
    assert clean(stays) == stays


def test_a_torn_row_keeps_no_dropped_field() -> None:
    raw = f'{{"n": 1, "patch": "a secret plan", "by": "ask {MAIL} now"}}'
    for end in range(14, 62):
        new = Cleaner(KEY, Policy(drop_fields=("patch",))).row(raw[:end])
        assert new.startswith('{"n": 1, ')
        assert "plan" not in new
        assert "secret" not in new


def test_dropped_fields_go_at_any_depth() -> None:
    policy = Policy(drop_fields=("patch", "meta.plan"), source_code="hash", cleared=("output.arguments",))
    code = "def f(x):\n    return x\n\nimport os\nclass A:\n    y = 1\nfor i in range(3):\n    print(i)\n" * 3
    row = {
        "output": [{"arguments": json.dumps({"patch": "a secret", "script": code, "n": 1})}],
        "meta": json.dumps({"plan": {"a": "a secret"}, "n": 2}),
        "plan": "stays",
    }
    new = clean(row, policy)
    assert "a secret" not in json.dumps(new)
    assert json.loads(new["output"][0]["arguments"])["script"] == code
    assert json.loads(new["meta"])["n"] == 2
    assert new["plan"] == "stays"


def test_a_leak_is_told_with_its_place_and_without_its_value(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"one\ntwo\n\nask {MAIL}\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(f'{{"n": 1}}\n{{"meta": {{"by": "{MAIL}"}}}}\n', encoding="utf-8")
    leaking = sanitize.Export(KEY, Policy())
    leaking.test([("out/a.md", tmp_path / "a.md"), ("out/b.jsonl", tmp_path / "b.jsonl")])
    said = "\n".join(sanitize.leak_lines(leaking.tally.told()))
    places = ("out/a.md, line 4: 1 EMAIL", "out/b.jsonl, line 2, field meta.by: 1 EMAIL")
    assert all(line in said for line in ("LEAK: 2 values", *places))
    assert MAIL not in said
    leaking.test([])
    assert not sanitize.leak_lines(leaking.tally.told())


def test_standard_input_is_cleaned_to_standard_output(tmp_path: Path) -> None:
    rows = f'{{"task_id": "{MAIL}", "note": "ask {MAIL}"}}\n{{"n": 1.50}}\n'
    done = run("sanitize", "-", "--report", tmp_path / "r.json", stdin=rows.encode())
    assert done.exit_code == 0, done.output
    assert done.stdout == rows.replace(f"ask {MAIL}", f"ask {KEY.placeholder('EMAIL', MAIL)}")
    assert "1 EMAIL" in done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["files"] == {"-": 1}
    assert run("sanitize", "-", "--check", stdin=rows.encode()).exit_code == errors.EXIT_FAILED_GATE
    for wrong in (("-", "--json"), ("-", tmp_path)):
        assert isinstance(run("sanitize", *wrong, stdin=b"x").exception, errors.UsageError)


# -- users and people whom one text gives away -----------------------------------------------------

def export(folder: Path, files: dict[str, Any]) -> dict[str, str]:
    return {name: content.decode() for name, content in exported(folder, files)[1].items()}


def test_a_user_of_a_home_is_taken_out_of_notes_settings_tables_and_keys(tmp_path: Path) -> None:
    row = {"note": "login jvrbata, then sudo", "by": {"jvrbata": 3}, "user_id": "jvrbata", "n": 1}
    rows = {"a.jsonl": json.dumps(row) + "\n" + json.dumps({"cmd": "ls /home/jvrbata/x"}) + "\n"}
    texts = export(tmp_path, rows | dict(cases(__file__, "texts_about_a_user")))
    assert texts["d.md"].endswith("Not jvrbatas.\n")
    texts["d.md"] = texts["d.md"].replace("jvrbatas", "")
    assert not [name for name, text in texts.items() if "jvrbata" in text.lower()]
    code = KEY.placeholder("USER", "jvrbata")
    assert all(code in text for text in texts.values())


def test_the_author_of_a_commit_is_taken_out_of_a_title(tmp_path: Path) -> None:
    said = "# Notes of Ines Vrbata\n\nINES VRBATA; Vrbata, Ines; ines_vrbata; Ines and the Vrbata set.\n"
    log = "commit 1\nAuthor: Ines Vrbata <ines@initech.io>\n\n    fix\n"
    text = export(tmp_path, {"a.md": said, "b.log": log})["a.md"]
    assert text.count("[PERSON:") == 4
    assert text.startswith(f"# Notes of {KEY.placeholder('PERSON', 'Ines Vrbata')}\n")
    assert text.endswith("Ines and the Vrbata set.\n")


@pytest.mark.parametrize("user", cases(__file__, "words_that_anyone_writes"))
def test_words_that_anyone_writes_stay_where_no_path_names_a_user(tmp_path: Path, user: str) -> None:
    word = user.split(".")[0] if "." not in user else "web"
    said = f"The {word} is {word} and {word.upper()}.\n"
    texts = export(tmp_path, {"a.md": said, "b.md": f"cd /home/{word}/x\n"})
    assert texts["a.md"] == said


def test_what_names_a_tool_a_field_or_a_task_is_no_user(tmp_path: Path) -> None:
    homes = json.dumps({"p": [f"/home/{name}/y" for name in ("brintool", "qorvex", "zelmar", "ylvisson")]})
    answer = make_message("brintool said qorvex of zelmar, not ylvisson")
    response = make_response([make_call("c1", "brintool", homes), answer])
    note = "qorvex by brintool, zelmar, but ylvisson"
    row = make_row(1, 0, 1.0, task_id="qorvex", zelmar="x", note=note, response=response)
    text = export(tmp_path, {"a.jsonl": json.dumps(row) + "\n"})["a.jsonl"]
    new = json.loads(text)
    code = KEY.placeholder("USER", "ylvisson")
    assert new["note"] == f"qorvex by brintool, zelmar, but {code}"
    assert new["task_id"] == "qorvex"
    assert "/home/brintool" not in text
    assert "ylvisson" not in text


@pytest.mark.parametrize(("kind", "name", "tells"), cases(__file__, "names_that_tell"))
def test_a_name_of_plain_words_is_no_name(kind: str, name: str, tells: bool) -> None:
    assert is_telling(kind, name) is tells
    assert is_plain("Reports")


@given(st.lists(st.sampled_from(["jvrbata", "Jvrbata", *"x _9.-é", "jv", "Ines", "Vrbata"])))
def test_a_name_is_found_only_between_what_is_no_letter(pieces: list[str]) -> None:
    names = Names()
    names.add("USER", "jvrbata")
    text = "".join(pieces)
    for start, end, kind, value in names.found(text, frozenset()):
        assert (text[start:end], kind, value.lower()) == (value, "USER", "jvrbata")
        assert not text[start - 1 : start].isalnum()
        assert not text[end : end + 1].isalnum()
    alone = " jvrbata " in f" {text} "
    assert not alone or names.found(text, frozenset())
