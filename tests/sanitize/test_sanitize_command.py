"""`blade sanitize`, and `--redact` of diagnose and compare: nothing planted survives in any file."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
import zstandard

from blade import errors, sanitize
from blade.sanitize.files import looked
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.conftest import Blade
from tests.sanitize.conftest import GITHUB, MAIL, contents, run

USER, HOST, WORD = "kvasir77", "gpu-12.internal", "hunter2x9"
TOKEN = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
NAME = "Quillmark"
PLANTED = (MAIL, USER, HOST, WORD, TOKEN, NAME)


def rows() -> list[Row]:
    found = []
    command = json.dumps({"cmd": f"cat /home/{USER}/conf; export OPENAI_API_KEY={TOKEN}"})
    told = f"Error: {HOST} refused {MAIL}\nRuntimeError: cannot open /home/{USER}/data"
    for task, repeat in product(range(5), range(3)):
        passed, error = (task + repeat) % 3 == 0, None
        answer = "fine" if passed else f"I asked {MAIL} about {NAME}; password: {WORD} works"
        output = [make_call("c1", "shell", command), make_result("c1", told), make_message(answer)]
        if not passed and repeat == 2:  # never ran, for a reason that a report quotes
            output, error = [], f"RuntimeError: node {HOST} lost for {MAIL}"
        found.append(make_row(task, repeat, float(passed), response=make_response(output), error=error))
    return found


def make(folder: Path, compress: str | None = None) -> Path:
    path = make_run(folder, rows(), compress=compress)
    (folder / "blade.toml").write_text(f'[sharing]\nnames = ["{NAME}"]\n', encoding="utf-8")
    return path


def written(folder: Path) -> dict[str, str]:
    return {name: content.decode() for name, content in contents(folder).items()}


@pytest.mark.parametrize("compress", [None, "gz", "zst"])
def test_files_are_written_clean_and_packed_as_they_were(tmp_path: Path, compress: str | None) -> None:
    source = make(tmp_path / "run", compress)
    done = run("sanitize", source, "-o", tmp_path / "out", "--report", tmp_path / "removed.json")
    assert done.exit_code == 0, done.output
    data = (tmp_path / "out" / source.name).read_bytes()
    unzstd = zstandard.ZstdDecompressor().decompressobj().decompress
    text = {None: bytes, "gz": gzip.decompress, "zst": unzstd}[compress](data).decode()
    assert not [value for value in PLANTED if value in text]
    for old, line in zip(rows(), text.splitlines(), strict=True):
        new = json.loads(line)
        assert all(new[key] == old[key] for key in ("_ng_task_index", "_ng_rollout_index", "reward", "agent_ref"))
    removed = json.loads((tmp_path / "removed.json").read_text())
    n = sum(place["count"] for place in removed["places"])
    assert removed["total"] == n == sum(removed["kinds"].values())
    assert {place["line"] for place in removed["places"]} == set(range(1, 16))
    assert removed["leaks"] == 0
    assert not [value for value in PLANTED if value in json.dumps(removed)]


def test_a_folder_is_cleaned_whole_and_what_is_no_text_stays_home(tmp_path: Path) -> None:
    make(tmp_path / "pack" / "rollouts")
    (tmp_path / "pack" / "golden.md").write_text(f"Asked {MAIL}.\nThe word is {WORD}.\n", encoding="utf-8")
    (tmp_path / "pack" / "shot.png").write_bytes(b"\x89PNG\r\n\0\0")
    removed = sanitize.folder(tmp_path / "pack", tmp_path / "out", sanitize.Policy(names=(NAME,)))
    texts = written(tmp_path / "out")
    assert not [name for name, text in texts.items() for value in PLANTED if value in text]
    assert [Path(name).name for name in removed.left_out] == ["shot.png"]
    code = sanitize.own_key().placeholder("EMAIL", MAIL)
    assert {name for name in texts if code in texts[name]} == {"golden.md", "rollouts/rollouts.jsonl"}
    assert "shot.png" not in texts


def test_nothing_is_written_over_and_bad_settings_are_told(tmp_path: Path) -> None:
    source = make(tmp_path / "run")
    assert run("sanitize", source, "-o", tmp_path / "out").exit_code == 0
    assert isinstance(run("sanitize", source, "-o", tmp_path / "out").exception, errors.UsageError)
    assert isinstance(run("sanitize", source, "-o", tmp_path / "run", "--force").exception, errors.UsageError)
    assert isinstance(run("sanitize", tmp_path / "none").exception, errors.NothingToRead)
    for bad in ("names = 3", 'source_code = "maybe"', 'drop_fields = ["reward"]', "colour = 1"):
        (tmp_path / "run" / "blade.toml").write_text(f"[sharing]\n{bad}\n", encoding="utf-8")
        told = run("sanitize", source, "-o", tmp_path / "other").exception
        assert isinstance(told, errors.BladeError)
        assert told.slug == "bad-config"


def test_a_key_too_short_is_refused_and_one_is_made_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "short")
    with pytest.raises(errors.UsageError):
        sanitize.own_key()
    monkeypatch.delenv("BLADE_SANITIZE_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert sanitize.known_key() is None
    made = sanitize.own_key()
    assert made == sanitize.own_key() == sanitize.known_key()
    assert (tmp_path / "blade" / "sanitize.key").stat().st_mode & 0o077 == 0
    assert made.secret.decode() not in repr(made)


def test_diagnose_redacts_every_form_and_no_number_moves(tmp_path: Path) -> None:
    make(tmp_path / "run")
    done = run("diagnose", tmp_path / "run", "-o", tmp_path / "red", "--redact")
    assert done.exit_code == 0, done.output
    assert "warning:" not in done.stderr
    texts = {**written(tmp_path / "red"), "stdout": done.stdout}
    assert not [(name, value) for name in texts for value in (*PLANTED, MAIL[:12]) if value in texts[name]]
    report = json.loads(texts["report.json"])
    assert "EMAIL" in report["made_by"]["redacted"]
    assert f"redacted `{report['made_by']['redacted']}`" in texts["report.md"]
    assert "#error`, redacted:\n" in texts["report.md"]
    quotes = [one for cause in report["attributions"] for one in cause["evidence"] if one.get("redacted")]
    raw = (tmp_path / "run" / "rollouts.jsonl").read_text(encoding="utf-8")
    raw = raw.replace("\\n", "\n").replace('\\"', '"')
    assert quotes
    for one in quotes:
        pieces = map(re.escape, re.split(r"\[[A-Z]+:[0-9a-f]{8}\]", one["quote"]))
        assert re.search(".+?".join(pieces), raw, re.DOTALL)  # equal to the rows outside the placeholders
    assert run("diagnose", tmp_path / "run", "-o", tmp_path / "plain").exit_code == 0
    plain = json.loads((tmp_path / "plain" / "report.json").read_text())
    for part in ("measures", "buckets"):
        assert plain[part] == report[part]
    # the name of a group may quote a message, which is redacted; what is lost to it stays
    losses = [[(loss["cause"], loss["lost"]) for loss in document["losses"]] for document in (plain, report)]
    assert losses[0] == losses[1]


def test_the_sanitiser_runs_when_asked(tmp_path: Path) -> None:
    """One `blade diagnose` ran 18 modules of the sanitiser to print one warning."""
    source, out = str(make(tmp_path / "run")), tmp_path / "out"
    out.mkdir()
    words = (("diagnose", source, "a"), ("compare", source, source, "b"), ("draft", source, "d.md"))
    commands = [[*command, "-o", str(out / name)] for *command, name in words]
    code = (
        "import sys, json\nfrom blade.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n    try:\n        main(words)\n"
        "    except SystemExit as stop:\n        assert not stop.code, (words, stop.code)\n"
        "print([name for name in sys.modules if name.startswith('blade.sanitize')], file=sys.stderr)"
    )
    python = [sys.executable, "-c", code, json.dumps(commands)]
    done = subprocess.run(python, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
    assert "private" not in done.stderr


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_a_damaged_file_is_told_and_nothing_is_left_of_it(blade: Blade, tmp_path: Path, how: str) -> None:
    rows = [make_row(task, 0, 1.0, note=f"a note {task} " * 40) for task in range(200)]
    path = make_run(tmp_path, rows, compress=how)
    torn = bytearray(path.read_bytes())
    torn[len(torn) // 2 : len(torn) // 2 + 60] = b"x" * 60
    path.write_bytes(torn)
    said = blade("sanitize", path, "-o", tmp_path / "out")
    assert said.code == 4
    assert "unreadable-file" in said.err
    assert not contents(tmp_path / "out")


@pytest.mark.parametrize("name", [f"token-{GITHUB}.md", f"{GITHUB}/a.md"])
def test_b7_the_names_of_files_and_folders_count_and_are_told_clean(blade: Blade, tmp_path: Path, name: str) -> None:
    for path in (tmp_path / "in" / name, tmp_path / "in" / "plain" / "b.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("nothing\n", encoding="utf-8")
    told = blade("sanitize", tmp_path / "in", "--check")
    assert (told.code, told.out.splitlines()[0]) == (errors.EXIT_FAILED_GATE, "Found 1 values: 1 SECRET")
    assert GITHUB not in told.out
    assert blade("sanitize", tmp_path / "in" / "plain", "--check").code == 0


@pytest.mark.parametrize(("more", "code"), [(1, errors.EXIT_FAILED_GATE), (100, errors.EXIT_UNREADABLE)])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_b8_lines_of_two_bytes_a_letter_are_read_or_keep_the_file_at_home(
    blade: Blade, tmp_path: Path, more: int, code: int, encoding: str
) -> None:
    path = tmp_path / "a.log"
    tail = f"password: {WORD} for {MAIL}\r\n" + "and so on\r\n" * more
    path.write_bytes(b"all is well\n" * 900 + tail.encode(encoding))
    assert blade("sanitize", path, "--check").code in {code, errors.EXIT_FAILED_GATE}
    told = blade("sanitize", path, "-o", tmp_path / "out")
    left = b"".join(contents(tmp_path / "out").values())
    assert WORD not in left.replace(b"\0", b"").decode("utf-8", "replace")
    assert bool(left) == (more == 1), told.err


def test_b8_a_text_that_goes_on_as_something_else_stays_home(blade: Blade, tmp_path: Path) -> None:
    (tmp_path / "run.bin").write_bytes(b"#!/bin/sh\n" * 2000 + bytes(range(256)) * 40)
    (tmp_path / "hole.log").write_bytes(b"all is well\n" * 900 + b"\0" * 4096 + b"and goes on\n")
    told = blade("sanitize", tmp_path / "run.bin", tmp_path / "hole.log", "-o", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["hole.log"], told.err


def test_b9_a_text_without_line_breaks_is_cut_between_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize.files, "MAX_WHOLE", 1000)
    path = tmp_path / "a.json"
    for n in range(470, 500):
        path.write_text('{"a":"' + "x " * n + GITHUB + " " + "y " * 490 + '"}', encoding="utf-8")
        assert sanitize.files.looked([path]).kinds == {"SECRET": 1}


# -- what it says of what it did -------------------------------------------------------------------

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
