"""`blade check` as a person uses it: any report, with its run or without."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from blade.sanitize import PLACEHOLDER
from tests.builders import make_row, make_run
from tests.conftest import Blade

SCHEMA = json.loads(resources.files("blade").joinpath("check", "check.schema.json").read_text())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its report, made once; the report lies beside it as it was."""
    from blade.cli.main import main
    from blade.planted import write_demo

    folder = tmp_path_factory.mktemp("demo") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        with pytest.raises(SystemExit, match="0"):
            main(["diagnose", str(write_demo(folder / "run").path.parent), "-o", str(folder / "report")])
    shutil.copytree(folder / "report", folder.parent / "report")
    return folder


@pytest.fixture
def made(demo: Path) -> Path:
    """The folder, with its report as it was made: a test may change it."""
    shutil.rmtree(demo / "report")
    shutil.copytree(demo.parent / "report", demo / "report")
    return demo


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_our_own_report_holds(blade: Blade, made: Path, name: str) -> None:
    said = blade("check", made / "report" / name, "--run", made / "run")
    assert said.code == 0, said.err
    assert "0 contradicted, 0 unverifiable" in said.out


def test_a_false_number_is_told_marked_and_ends_with_1(blade: Blade, made: Path, tmp_path: Path) -> None:
    path = made / "report" / "report.md"
    text = path.read_text().replace("Of 24 tasks, 9 passed", "Of 24 tasks, 10 passed")
    path.write_text(text)
    said = blade("check", path, "--run", made / "run", "-o", tmp_path / "marked.md")
    assert said.code == 1
    assert "data says  9" in said.out
    assert said.out.endswith(f"Wrote {tmp_path / 'marked.md'}\n")
    marked = (tmp_path / "marked.md").read_text()
    assert "> **contradicted**" in marked
    assert [line for line in marked.split("\n") if line in set(text.split("\n"))] != []
    assert blade("check", path, "--run", made / "run", "-o", tmp_path / "marked.md").code == 2


def test_json_follows_its_schema(blade: Blade, made: Path) -> None:
    path = made / "report" / "report.md"
    path.write_text(path.read_text().replace("67.0%", "67.5%"))
    said = blade("check", "--json", path, "--run", made / "run")
    assert said.code == 1
    found = json.loads(said.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert found["counts"]["contradicted"] == len(found["problems"]) > 3
    assert found["problems"][0]["expected"] == "67.0%"


def test_without_a_run_the_report_is_held_against_itself(blade: Blade, tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("We solved 12 of 40 tasks (30%).\n")
    assert blade("check", path).code == 0
    path.write_text("We solved 12 of 40 tasks (45%).\n")
    said = blade("check", path)
    assert said.code == 1
    assert "against itself" in said.out


def test_a_comparison_is_made_again_as_it_was_made(blade: Blade, tmp_path: Path) -> None:
    from blade.planted import write_run

    one, two = (write_run(tmp_path / f"r{seed}", n_tasks=12, repeats=3, seed=seed).path for seed in (1, 2))
    out = tmp_path / "out"
    assert blade("compare", one, two, "--margin", "0.07", "-o", out).code == 0
    for name in ("compare.md", "compare.json"):
        said = blade("check", out / name, "--run", one, "--run", two)
        assert said.code == 0, said.out
        assert "0 contradicted" in said.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check"], 2),
        (["check", "absent.md"], 3),
        (["check", "."], 3),
        (["check", "empty.md"], 3),
        (["check", "mine.md", "--run", "absent.jsonl"], 3),
        (["check", "mine.md", "stray.jsonl"], 3),
        (["check", "odd.bin"], 4),
        (["check", "page.html"], 4),
        (["check", "half.json"], 4),
        (["check", "mine.md", "run.jsonl", "--baseline", "nobody"], 2),
    ],
)
def test_wrong_words_are_told(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").write_text("")
    (tmp_path / "mine.md").write_text("Text.")
    (tmp_path / "odd.bin").write_bytes(b"\xff\xfa\x80abc")
    (tmp_path / "page.html").write_text("<!doctype html><p>67%</p>")
    (tmp_path / "half.json").write_text('{"schema": "blade.rep')
    make_run(tmp_path, [make_row(0, 0, 1.0)], name="run")
    said = blade(*words)
    assert said.code == code
    assert "Traceback" not in said.err
    assert "hint:" in said.err or "Usage" in said.err


def test_what_was_not_read_is_told(blade: Blade, made: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("pass@1 is 67.0%.\n\nThe moon is 384,400 km away.\n")
    said = blade("check", tmp_path / "mine.md", "--run", made / "run")
    assert said.code == 0
    assert "Not read: 1 sentence, line 3" in said.out
    said = blade("check", tmp_path / "mine.md", "--run", made / "run", "--all")
    assert "line 3  The moon is 384,400 km away." in said.out


def test_what_was_not_read_is_told_in_json(blade: Blade, made: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(
        "pass@1 is 67.0%.\n\nThe moon is 384,400 km away.\n\n"
        "| Planet | Moons |\n| --- | ---: |\n| Mars | 2 |\n| Venus | none |\n"
    )
    said = blade("check", tmp_path / "mine.md", "--run", made / "run", "--json")
    found = json.loads(said.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert found["unread"] == [
        {"line": 3, "kind": "sentence", "text": "The moon is 384,400 km away."},
        {"line": 7, "kind": "cell", "text": "Mars | Moons: 2"},
    ]
    assert found["counts"]["unread"] == 2


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("Rollout 8/0 upset the support team with 12 letters.", True),
        ("In task 8/0, step 1 reads two letters aloud.", True),
        ('In task 8/0, step 1 reads the word "lamp" aloud.', True),
        ("In all of them but task 8/0 the letter is read aloud.", True),
        ("It reads a letter aloud at step 4.", True),
        ("Rollout 8/0 upset the whole of the support team.", False),
        ("In task 8/0, step 1 reads a letter aloud.", False),
        ("Then repair task 8, the one whose letter nobody reads.", False),
        ("See tasks 8 and 17.", False),
        ("Task 8 never passes.", False),
        ("Have every letter read aloud before it is sent.", False),
    ],
)
def test_what_has_an_amount_that_nobody_read_is_told(
    blade: Blade, made: Path, tmp_path: Path, text: str, is_told: bool
) -> None:
    (tmp_path / "mine.md").write_text(text + "\n")
    found = json.loads(blade("check", tmp_path / "mine.md", "--run", made / "run", "--json").out)
    assert [one["text"] for one in found["unread"]] == ([text] if is_told else [])


def test_that_an_id_exists_is_counted_apart(blade: Blade, made: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Rollout 8/0 upset the support team at step 1.\n")
    found = json.loads(blade("check", tmp_path / "mine.md", "--run", made / "run", "--json").out)
    assert found["counts"]["named"] == found["counts"]["supported"] == 2


def test_of_our_own_report_all_is_read(blade: Blade, made: Path) -> None:
    found = json.loads(blade("check", made / "report" / "report.md", "--run", made / "run", "--json").out)
    assert found["unread"] == []


def test_a_report_that_says_nothing_is_told_so(blade: Blade, made: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("It went rather well.\n")
    said = blade("check", tmp_path / "mine.md", "--run", made / "run")
    assert said.code == 0
    assert "Nothing in this report could be read as a claim." in said.out


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_the_same_rows_in_another_file_leave_what_is_said_of_the_file_open(
    blade: Blade, tmp_path: Path, name: str
) -> None:
    plain = make_run(tmp_path, [make_row(task, 0, float(task % 2)) for task in range(8)], name="rows")
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert blade("diagnose", packed, "-o", tmp_path / "out").code == 0
    path = tmp_path / "out" / name
    said = json.loads(blade("check", path, "--run", plain, "--json").out)
    assert said["counts"]["contradicted"] == 0
    assert said["problems"]
    assert all("another file than rows.jsonl" in one["why"] for one in said["problems"])
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    path.write_text(path.read_text().replace(digest, digest[::-1]))
    said = json.loads(blade("check", path, "--run", packed, "--json").out)
    assert said["counts"]["contradicted"] > 0


def test_a_folder_that_is_not_there_is_not_made(blade: Blade, made: Path, tmp_path: Path) -> None:
    said = blade("check", made / "report" / "report.md", "-o", tmp_path / "none" / "marked.md")
    assert said.code != 0
    assert "its folder does not exist" in said.err
    assert not (tmp_path / "none").exists()


def test_the_line_of_the_wrong_number_is_told(blade: Blade, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("Over all of its 24 tasks\nthe model scored\n**82.0%** pass@1, not more.\n")
    said = blade("check", "--json", path, "--run", made / "run")
    assert [(one["line"], one["lines"], one["found"]) for one in json.loads(said.out)["problems"]] == [
        (3, [3, 3], "82.0%")
    ]


def test_a_reading_is_told_once(blade: Blade, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("The model passed 40.0% of the tasks.\n\nThe pass rate was 82.0%.\n")
    said = blade("check", "--json", path, "--run", made / "run")
    told = [
        one["why"].removeprefix("no reading fits: ").split("; ") for one in json.loads(said.out)["problems"]
    ]
    assert told
    assert all(len(set(words)) == len(words) for words in told)


def test_a_report_redacted_with_another_key_says_so_once(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_row(task, repeat, float(repeat > 1)) for task in range(6) for repeat in range(4)]
    for row in rows[::4]:
        row["error"] = "mail to jane.doe@corp-mail.com bounced: connection refused"
    run = make_run(tmp_path / "run", rows)
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a" * 64)
    assert blade("diagnose", run, "-o", tmp_path / "out", "--redact").code == 0
    report = tmp_path / "out" / "report.md"
    assert PLACEHOLDER.search(report.read_text())
    assert "placeholders" not in blade("check", report, "--run", run).out
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "b" * 64)
    said = blade("check", report, "--run", run)
    assert said.out.count("placeholders not re-derived: key differs") == 1


@pytest.mark.parametrize("words", [("detectors",), ("completion", "bash"), ("--help",)])
def test_a_reader_who_goes_away_is_no_fault(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "blade", *words]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=120)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
