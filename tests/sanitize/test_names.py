"""Users and people whom one text gives away are taken out of all; words that anyone writes stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.sanitize.echoes import Names
from blade.sanitize.lexicon import is_plain, is_telling
from tests.builders import make_call, make_message, make_response, make_row
from tests.case_tables import cases
from tests.sanitize.conftest import KEY, exported


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
