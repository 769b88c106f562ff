"""What `blade sanitize` says of what it did: lines, counts, files left out, places that cannot be written."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blade import errors
from blade.sanitize.files import looked
from tests.conftest import Blade
from tests.sanitize.conftest import MAIL

# Each look at it uncovers one more secret, so that no bounded number of looks takes all of them out.
CHAIN = "sk-9f8e7d6c5b4a39281706f5e4d3c2b1a0=gpu-1.internalhunter2x9"


def lines_of(path: Path) -> set[tuple[str, int]]:
    told = json.loads(path.read_text(encoding="utf-8"))
    return {(Path(place["file"]).name, place["line"]) for place in told["places"]}


def test_an_export_with_a_leak_writes_nothing_and_says_where(blade: Blade, tmp_path: Path) -> None:
    Path("a.md").write_text(f"one\ntwo {CHAIN * 40}\n", encoding="utf-8")
    Path("b.jsonl").write_text(json.dumps({"n": 1, "log": {"out": CHAIN * 40}}) + "\n", encoding="utf-8")
    Path("c.md").write_text("fine\n", encoding="utf-8")
    said = blade("sanitize", "a.md", "b.jsonl", "c.md", "-o", "out")
    assert said.code == errors.EXIT_FAILED_GATE
    places = ("a.md, line 2: ", "b.jsonl, line 1, field log.out: ")
    assert all(line in said.out for line in ("nothing was written", *places))
    assert "Wrote" not in said.out
    assert not Path("out").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"a.md", "b.jsonl", "c.md"}
    Path("a.md").write_text(f"one\ntwo {CHAIN * 12}\n", encoding="utf-8")
    said = blade("sanitize", "a.md", "c.md", "-o", "out")
    assert said.code == 0, said.out
    assert "9f8e" not in Path("out/a.md").read_text(encoding="utf-8")


def test_lines_are_those_of_the_file_that_was_given(blade: Blade) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIabc\nMIIdef\n-----END PRIVATE KEY-----"
    packed = base64.b64encode(f"please ask {MAIL} about it".encode()).decode()
    text = f"# Title\n{key}\nask {MAIL}\n\nby kvasirsson\n{packed}\nls /home/kvasirsson/x\n"
    Path("a.md").write_text(text, encoding="utf-8")
    Path("b.json").write_text(json.dumps({"n": 1, "by": MAIL, "m": {"x": MAIL}}, indent=1), encoding="utf-8")
    assert blade("sanitize", "a.md", "b.json", "-o", "out", "--report", "r.json").code == 0
    want = {("a.md", line) for line in (2, 6, 8, 9, 10)} | {("b.json", 3), ("b.json", 5)}
    assert lines_of(Path("r.json")) == want
    assert blade("sanitize", "a.md", "b.json", "--check", "--report", "c.json").code == 1
    assert lines_of(Path("c.json")) == want


def test_lines_of_a_long_text_are_true_where_it_is_read_again() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----"
    text = f"{key}\n" + "word word word\n" * 3000 + f"{CHAIN * 3}\nend\n"
    Path("a.md").write_text(text, encoding="utf-8")
    assert {(place.line, place.count) for place in looked([Path("a.md")]).places} == {(1, 1), (3004, 3)}


def test_a_check_counts_what_writing_removes(blade: Blade) -> None:
    row = {"note": "password: hunter2x9", "more": ["hunter2x9", "hunter2x9…"], "p": "/home/kvasirsson/y"}
    Path("a.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    Path("b.md").write_text(f"kvasirsson and hunter2x9 {CHAIN * 12}\n", encoding="utf-8")
    found = blade("sanitize", "a.jsonl", "b.md", "--check").out.splitlines()
    removed = blade("sanitize", "a.jsonl", "b.md", "-o", "out").out.splitlines()
    assert found[0].replace("Found", "Removed") == removed[0]
    assert found[1:-1] == removed[1:3]
    assert "keys that look like a hash" in found[-1]  # M8: a check says what it cannot see


def test_a_folder_without_files_is_nothing_to_clean(blade: Blade) -> None:
    Path("empty").mkdir()
    for more in (["-o", "out"], ["--check"]):
        said = blade("sanitize", "empty", *more)
        assert (said.code, said.out, "nothing-to-read" in said.err) == (errors.EXIT_NOTHING, "", True)
    assert not Path("out").exists()
    Path("shot.png").write_bytes(b"\x89PNG\r\n\0\0")
    said = blade("sanitize", "shot.png", "-o", "out")
    assert said.code == errors.EXIT_NOTHING
    assert "Wrote nothing" in said.out
    assert not Path("out").exists()


def test_hidden_files_are_checked_and_stay_at_home(blade: Blade) -> None:
    for name in ("in/.env", "in/.git/config", "in/a.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("DB_PASSWORD=hunter2x9\n" if "." in name[3] else "fine\n", encoding="utf-8")
    said = blade("sanitize", "in", "--check")
    assert said.code == errors.EXIT_FAILED_GATE
    assert [line.split() for line in said.out.splitlines()[1:4]] == [["1", "in/.env"], ["1", "in/.git/config"], ["0", "in/a.md"]]
    assert blade("sanitize", "in", "-o", "out").code == 0
    assert [path.name for path in Path("out").rglob("*") if path.is_file()] == ["a.md"]


def test_a_run_that_is_ended_leaves_nothing_and_clears_up_after_killed_ones(tmp_path: Path) -> None:
    Path("a.md").write_text(f"ask {MAIL} and others\n" * 30_000, encoding="utf-8")
    Path("tmp").mkdir()

    def places() -> list[Path]:
        return [*tmp_path.glob("out/.*/*"), *tmp_path.glob("tmp/.*/*")]

    for word in ("a.md", "-"):
        for stop in (signal.SIGTERM, signal.SIGKILL, None):
            with Path("a.md").open("rb") as text:
                command = [sys.executable, "-m", "blade", "sanitize", word, "-o", "out"]
                run = subprocess.Popen(command, env={**os.environ, "TMPDIR": "tmp"}, stdin=text, stdout=subprocess.DEVNULL)
            while stop and not places() and run.poll() is None:
                time.sleep(0.01)
            if stop:
                run.send_signal(stop)
            assert run.wait() == (-stop if stop == signal.SIGKILL else (stop and errors.EXIT_INTERRUPTED) or 0)
            assert bool(places()) == (stop == signal.SIGKILL)


def test_long_names_of_files_are_answered(blade: Blade) -> None:
    Path(f"{'a@b.io ' * 35}.md").write_text("fine\n", encoding="utf-8")
    Path("n" * 252 + ".md").write_text("fine\n", encoding="utf-8")
    assert blade("sanitize", *map(str, Path().glob("*.md")), "-o", "out").code == 0
    assert sorted(path.name[:5] for path in Path("out").iterdir()) == ["[NAME", "nnnnn"]
    for words in (["n" * 300], ["-o", "n" * 300, "x.md"], ["x.md", "--report", "n" * 300], ["x.md", "--key", "n" * 300]):
        Path("x.md").write_text("fine\n", encoding="utf-8")
        assert blade("sanitize", *words).code in (errors.EXIT_USAGE, errors.EXIT_NOTHING, errors.EXIT_UNREADABLE)


def test_what_cannot_be_written_is_no_fault_of_what_is_read(blade: Blade) -> None:
    Path("r.md").write_text(f"ask {MAIL}\n", encoding="utf-8")
    for words in (["r.md"], ["r.md/x"], ["/proc/zz"], ["out", "--report", "/proc/zz/r.json"]):
        said = blade("sanitize", "r.md", "-o", *words)
        assert said.code == errors.EXIT_UNREADABLE
        assert "cannot-write" in said.err
    assert not Path("out").exists()
    said = blade("sanitize", "r.md", "-o", "out", "--policy", "nope.toml")
    assert said.code == errors.EXIT_NOTHING
    assert "no-such-path" in said.err


@pytest.mark.parametrize("name", ["a.jsonl", "a.md", "a.jsonl.gz"])
def test_a_text_that_is_none_is_left_out_and_told(blade: Blade, name: str) -> None:
    data = random.Random(4).randbytes(3000)
    Path(name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    Path("b.md").write_text("fine\n", encoding="utf-8")
    for more in (["-o", "out"], ["--check"]):
        said = blade("sanitize", name, "b.md", *more)
        assert said.code == errors.EXIT_UNREADABLE
        assert f"warning: {name} was left out" in said.err
    assert [path.name for path in Path("out").iterdir()] == ["b.md"]


def test_odd_letters_make_no_text_unreadable(blade: Blade) -> None:
    error = "\x1b[31mFehler\x1b[0m für jede \0 Übung mit Zahlen und so\n"
    Path("a.log").write_bytes(error.encode("latin-1") * 9 + MAIL.encode())
    Path("b.txt").write_bytes(f"Привет, {MAIL}\n".encode("cp1251"))
    said = blade("sanitize", "a.log", "b.txt", "-o", "out")
    assert said.code == 0
    assert "2 EMAIL" in said.out
    assert MAIL.encode() not in Path("out/a.log").read_bytes() + Path("out/b.txt").read_bytes()
