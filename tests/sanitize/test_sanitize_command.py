"""`blade sanitize`, and `--redact` of diagnose and compare: nothing planted survives in any file."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import zstandard

from blade import errors, sanitize
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
