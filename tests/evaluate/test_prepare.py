"""Preparing a benchmark: downloads that break off, sums that differ, and scripts that misbehave."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade_eval.prepare import NotReadable, child, fetch, records, work, written
from tests.case_tables import tables
from tests.conftest import Blade
from tests.evaluate.file_server import Files, serving
from tests.evaluate.serving import CONFIGS

BODY = "".join(json.dumps({"question": f"What is {n} + 1?", "answer": str(n + 1)}) + "\n" for n in range(400)).encode()
SUM = hashlib.sha256(BODY).hexdigest()
CASES = tables(__file__)
ROWS, RECORD = "sums_benchmark.jsonl", "sums_benchmark_prepare.json"
SCRIPTS: dict[str, str] = tables(__file__, "prepare_scripts.yaml")
COPIES, FAILS, ONE, WAITS, LEAVES = (SCRIPTS[name] for name in ("copies", "fails", "one row", "waits", "leaves another"))


@pytest.fixture
def files() -> Iterator[Files]:
    with serving(Files({"/raw.jsonl": BODY})) as served:
        yield served


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another at once."""
    monkeypatch.setattr(fetch, "PAUSES", (0.0, 0.0, 0.0))


def here(wish: work.Wanted, how: work.How, context: fetch.Context, tell: Callable[[str], None]) -> dict[str, Any]:
    """Run a script as its process would, but in this one."""
    before, out = (Path.cwd(), list(sys.path)), io.StringIO()
    fetch.used.clear()
    os.chdir(wish.work)
    try:
        environ = {fetch.CONTEXT: json.dumps(asdict(context))}
        with redirect_stdout(out), redirect_stderr(out), patch.dict(os.environ, environ):
            result = child.outcome(wish.script, wish.root, how.args)
        for line in out.getvalue().splitlines():
            tell(line)
        return result | {"sources": list(fetch.used)}
    finally:
        os.chdir(before[0])
        sys.path[:] = before[1]


class Tree:
    """A tree with one benchmark, its script, and what preparing it says."""

    def __init__(self, folder: Path, url: str = "http://127.0.0.1:9/raw.jsonl") -> None:
        self.folder, self.url = folder, url
        self.home = folder / "benchmarks" / "sums"
        self.home.mkdir(parents=True)
        self.output = self.home / "data" / ROWS
        self.notes: list[str] = []
        self.makes(COPIES)

    def makes(self, body: str, head: str = "") -> None:
        """A script whose `prepare(**args)` has this body; without one it has no such function."""
        start = SCRIPTS["head"].replace("URL", self.url).replace("FOLDER", str(self.folder)) + head
        define = "\ndef prepare(**args):\n" + textwrap.indent(body, "    ")
        self.home.joinpath("prepare.py").write_text(start + define * bool(body))

    def pins(self, text: str) -> None:
        self.home.joinpath("manifest.yaml").write_text("pins:\n" + textwrap.indent(text, "  "))

    def wanted(self) -> work.Wanted:
        prepare = self.home / "prepare.py"
        return work.Wanted("sums", prepare, self.folder, self.output, self.folder, work.manifest_pins(prepare))

    def prepared(self, own_process: bool = False, **how: object) -> work.Prepared:
        with patch.object(work, "ran", work.ran if own_process else here):
            return work.prepared([self.wanted()], work.How(**{"cache": self.folder / "cache", **how}), self.notes.append)[0]

    def refused(self, error: type[BladeError] = Unreadable, **how: Any) -> BladeError:
        with pytest.raises(error) as caught:
            self.prepared(**how)
        return caught.value

    def state(self) -> tuple[bytes, dict[str, Any], list[str]]:
        """The rows, their record, and what else is in their folder, but for the lock."""
        names = sorted(path.name for path in self.output.parent.iterdir() if path.suffix != ".lock")
        return self.output.read_bytes(), json.loads((self.output.parent / RECORD).read_text()), names


@pytest.fixture
def tree(tmp_path: Path, files: Files) -> Tree:
    return Tree(tmp_path, files.url + "/raw.jsonl")


def test_a_file_is_fetched_once_unless_forced_damaged_or_of_another_revision(tree: Tree, files: Files) -> None:
    result = tree.prepared(own_process=True)
    rows, record, _ = tree.state()
    assert result.rows == len(rows.splitlines()) == 400
    assert record["sha256"] == hashlib.sha256(rows).hexdigest() == result.sha256
    source = {"name": "raw.jsonl", "url": tree.url, "sha256": SUM, "size": len(BODY), "from": "fetched", "pinned": None}
    assert record["sources"] == [source]
    assert {"Preparing benchmark: sums", f"Benchmark data prepared at: {tree.output}"} <= set(tree.notes)
    assert tree.prepared().sources[0]["from"] == "cache"
    assert len(files.asked) == 1
    tree.prepared(again=True)
    assert len(files.asked) == 2
    (cached,) = (tree.folder / "cache").glob("*/raw.jsonl")
    cached.write_bytes(b'{"question": "?", "answer": "!"}\n')
    assert tree.prepared().rows == 400
    assert any("changed since it was fetched" in line for line in tree.notes)
    files.bodies["/v2/raw.jsonl"] = BODY.replace(b"What is", b"How much is")
    tree.url = files.url + "/v2/raw.jsonl"
    tree.makes(COPIES)
    tree.prepared()
    assert b"How much is" in tree.output.read_bytes()


def test_rows_that_are_there_are_kept_only_if_their_record_is_theirs(tree: Tree, tmp_path: Path) -> None:
    tree.prepared()
    whole, record = tree.output.read_bytes(), tree.output.parent / RECORD
    for change in (
        lambda: record.write_text('{"state": "preparing"}'), lambda: record.unlink(),
        lambda: tree.output.write_bytes(whole[:100]), lambda: tree.output.write_bytes(whole + b'{"one": "more"}\n'),
        lambda: tree.makes(COPIES + "  # another"),
    ):
        assert tree.prepared(keep=True).cached
        (tree.home / "prepare.py").touch()
        change()
        assert not tree.prepared(keep=True).cached
        assert tree.output.read_bytes() == whole
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"question": "?", "answer": "!"}\n')
    assert tree.prepared(given=mine, keep=True).rows == 1


@pytest.mark.parametrize(("before", "now", "cached"), CASES["script_arguments"])
def test_rows_made_with_other_arguments_are_made_again(tree: Tree, before: dict[str, Any], now: dict[str, Any], cached: bool) -> None:
    tree.makes(SCRIPTS["arguments"])
    tree.pins("rows: 400")  # pins are for the script called without arguments
    tree.prepared(args=before)
    if now:
        assert tree.prepared(args=now, keep=True).cached is cached
        assert tree.state()[1]["prepare_script_args"] == now
    else:
        assert tree.refused(keep=True).slug == "prepare-checksum"


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("pins", "what"), CASES["pins"])
def test_rows_and_files_are_held_against_the_pins(tree: Tree, tmp_path: Path, pins: str, what: str, kept: bool) -> None:
    result = tree.prepared()
    tree.pins(pins.format(rows=result.sha256, raw=SUM, other="ab" * 32))
    if not what:
        assert tree.prepared(keep=kept).cached is kept
        return
    error = tree.refused(keep=kept)
    assert (error.slug, what.format(raw=SUM) in error.message) == ("prepare-checksum", True)
    assert tree.output.read_bytes().count(b"\n") == 400  # the rows of before
    (mine := tmp_path / "mine.jsonl").write_bytes(BODY)
    partial = tree.prepared(keep=True, partial=True) if kept else tree.prepared(given=mine, partial=True)
    assert (partial.cached, partial.complete) == (kept, False)


def killed(tree: Tree) -> None:
    """Run the command, and kill it with -9 as soon as the script says that it is ready."""
    (tree.home / "config.yaml").write_text(CONFIGS["sums"])
    words = [sys.executable, "-m", "blade", "eval", "prepare", "--benchmark", "sums"]
    running = subprocess.Popen(words, cwd=tree.folder, stderr=subprocess.DEVNULL)
    while not (tree.folder / "ready").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.kill()
    running.wait()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_killed_run_and_then_a_failing_one_lose_no_rows(tree: Tree, is_first: bool) -> None:
    good = (tree.home / "prepare.py").read_text()
    before = None if is_first else (tree.prepared(), tree.state())[1]
    tree.makes(SCRIPTS["ready with a torn file"] + WAITS)
    killed(tree)
    tree.makes(FAILS)
    for _ in range(2):
        assert "KeyError" in tree.refused(keep=True).message  # torn rows never count
        assert before is None or tree.state() == before
    (tree.home / "prepare.py").write_text(good)
    assert tree.prepared(keep=True).cached is not is_first
    assert tree.state()[2] == [ROWS, RECORD]


@pytest.mark.parametrize("n_acts", range(1, 6))
def test_wherever_a_run_is_killed_the_rows_and_their_record_come_back(tree: Tree, n_acts: int) -> None:
    tree.prepared()
    before, rows, record = tree.state(), tree.output, tree.output.parent / RECORD
    aside, whole = rows.with_name(f".{rows.name}.before"), record.read_text()
    acts: list[Callable[[], object]] = [
        lambda: rows.rename(aside), lambda: record.write_text(f'{{"state": "preparing", "before": {whole}}}'),
        lambda: rows.write_text('{"torn": 1}\n'), lambda: record.write_text(whole), lambda: aside.replace(rows),
    ]
    for act in acts[:n_acts]:
        act()
    assert tree.prepared(keep=True).cached
    assert tree.state() == before


def test_rows_that_cannot_be_set_aside_or_were_written_at_the_very_end_stay_where_they_are(tree: Tree) -> None:
    tree.prepared()
    before = tree.state()
    block = tree.output.parent / f".{RECORD}.partial"
    block.mkdir()  # where a part of the record would be written
    assert tree.refused().slug == "cannot-write"
    block.rmdir()
    assert tree.prepared(keep=True).cached
    assert tree.state() == before
    # a run was killed when all was written: only what had been set aside is still there
    tree.output.with_name(f".{ROWS}.before").write_text('{"old": 1}\n')
    tree.makes(FAILS)
    tree.refused()
    assert tree.state() == before


def test_of_two_runs_at_once_the_second_waits(tree: Tree) -> None:
    tree.makes(SCRIPTS["two at once"])
    ends: dict[str, str] = {}

    def run(who: str) -> None:
        try:
            ends[who] = str(tree.prepared(own_process=True, args={"who": who}).rows)
        except BladeError as error:
            ends[who] = error.message
        (tree.folder / "done").touch()

    first, second = (threading.Thread(target=run, args=(who,)) for who in ("first", "second"))
    first.start()
    while not (tree.folder / "ready").exists():
        assert first.is_alive()
        time.sleep(0.02)
    second.start()
    while not (tree.folder / "go").exists() and not any("waiting" in line for line in tree.notes):
        time.sleep(0.02)
    (tree.folder / "go").touch()
    first.join()
    second.join()
    assert ends["first"] == "1"
    assert "KeyError: 'second'" in ends["second"]
    rows, record, _ = tree.state()
    assert json.loads(rows) == {"who": "first"} == record["prepare_script_args"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drops=st.lists(st.integers(0, len(BODY) - 1), max_size=6), ranges=st.booleans())
def test_a_download_that_breaks_off_is_whole_in_the_end(
    tmp_path: Path, files: Files, quiet: None, drops: list[int], ranges: bool
) -> None:
    files.drops, files.ranges = list(drops), ranges
    part = tmp_path / f"{os.urandom(8).hex()}.part"
    try:
        assert fetch.downloaded(files.url + "/raw.jsonl", part, {}, lambda _: None).read_bytes() == BODY
    except fetch.Unreachable:
        # only where several attempts in a row brought nothing new
        assert any(all(n == 0 or not ranges for n in drops[i : i + 4]) for i in range(len(drops) - 3))


def test_going_on_asks_only_for_the_rest_unless_the_file_changed_meanwhile(tree: Tree, tmp_path: Path, files: Files, quiet: None) -> None:
    files.drops, url = [1000, 2000], files.url + "/raw.jsonl"
    fetch.downloaded(url, tmp_path / "x.part", {}, lambda _: None)
    assert [wanted for _, wanted, _ in files.asked] == [None, "bytes=1000-", "bytes=3000-"]
    part, beside = tmp_path / "y.part", tmp_path / "y.part.json"
    part.write_bytes(b"other" * 100)
    beside.write_text(json.dumps({"url": url, "mark": '"another"'}))
    assert fetch.downloaded(url, part, {}, lambda _: None).read_bytes() == BODY
    assert not beside.exists()
    # the connection drops after 3000 bytes, and the process dies before it can ask again: the next run goes on
    files.asked.clear()
    files.drops = [3000]
    tree.makes(SCRIPTS["dies in its pause"] + COPIES)
    assert "SIGKILL" in tree.refused(own_process=True).message
    assert not tree.output.exists()
    tree.makes(COPIES)
    assert tree.prepared().rows == 400
    assert [wanted for _, wanted, _ in files.asked] == [None, "bytes=3000-"]


def test_a_server_that_is_busy_is_asked_again_and_one_that_is_not_there_is_a_missing_file(
    tmp_path: Path, files: Files, quiet: None
) -> None:
    for code in (429, 503):
        files.refusals = [code, code]
        files.asked.clear()
        part = fetch.downloaded(files.url + "/raw.jsonl", tmp_path / f"{code}.part", {}, lambda _: None)
        assert (part.read_bytes(), len(files.asked)) == (BODY, 3)
    error = Tree(tmp_path).refused(NothingToRead)
    assert ("refused" in error.message.lower(), "--from FILE" in error.hint) == (True, True)


def test_the_hubs_token_goes_to_the_hub_and_nowhere_else(tree: Tree, tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.refusals = [401]
    error = tree.refused(NothingToRead)
    assert ("HF_TOKEN" in error.message, error.slug) == (True, "prepare-missing-file")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    tree.prepared()
    assert [token for _, _, token in files.asked] == [None, None]
    files.asked.clear()
    files.redirects["/datasets/a/b/resolve/main/raw.jsonl"] = files.url + "/raw.jsonl"
    monkeypatch.setenv("HF_ENDPOINT", files.url)
    hub = Tree(tmp_path / "tree", "https://huggingface.co/datasets/a/b/resolve/main/raw.jsonl")
    hub.prepared()
    paths = ["/datasets/a/b/resolve/main/raw.jsonl", "/raw.jsonl"]
    assert [(path, token) for path, _, token in files.asked] == list(zip(paths, ["Bearer hf_secret", None], strict=True))
    assert "hf_secret" not in "".join(path.read_text() for path in hub.output.parent.iterdir())


def test_offline_names_every_missing_file_its_url_sum_and_place(tree: Tree) -> None:
    tree.makes(COPIES, "SOURCES['answers.csv'] = SOURCES['raw.jsonl'].replace('raw.jsonl', 'answers.csv')")
    tree.pins(f"files: {{raw.jsonl: {{sha256: {SUM}, size: {len(BODY)}}}, answers.csv: {{}}}}")
    error = tree.refused(NothingToRead, offline=True)
    parts = ("raw.jsonl", "answers.csv", tree.url, SUM, f"{len(BODY):,} bytes", str(tree.folder / "cache"))
    assert all(part in error.message for part in parts)
    assert "--from FOLDER" in error.hint
    (place,) = (Path(text) for text in re.findall(r"put it at (.*raw\.jsonl)", error.message))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(BODY)
    assert tree.prepared(offline=True).rows == 400


def test_of_several_benchmarks_all_that_is_missing_is_named(tmp_path: Path) -> None:
    trees = [Tree(tmp_path / name, f"http://127.0.0.1:9/{name}/raw.jsonl") for name in ("a", "b", "c")]
    trees[1].makes(ONE)
    how, notes = work.How(cache=tmp_path / "cache", offline=True), trees[0].notes
    with pytest.raises(NothingToRead) as error, patch.object(work, "ran", here):
        work.prepared([tree.wanted() for tree in trees], how, notes.append)
    assert error.value.slug == "prepare-missing-file"
    assert [tree.url in error.value.message for tree in trees] == [True, False, True]
    assert trees[1].output.exists()
    trees[1].makes("return 7")  # a failing script does not hide what is missing before it
    with pytest.raises(Unreadable, match="returned int"), patch.object(work, "ran", here):
        work.prepared([tree.wanted() for tree in trees], how, notes.append)
    assert any(trees[0].url in line for line in notes)
    gone = work.Wanted("other", tmp_path / "none.py", tmp_path, tmp_path / "o.jsonl", tmp_path)
    trees[1].output.unlink()
    with pytest.raises(UsageError, match="no prepare script"):
        work.prepared([trees[1].wanted(), gone], how, notes.append)
    assert not trees[1].output.exists()


def test_a_file_by_hand_stands_for_the_download_under_any_name_and_of_several_under_its_own(tree: Tree, files: Files, tmp_path: Path) -> None:
    mine, part = tmp_path / "mine.jsonl.gz", tmp_path / "part.jsonl"
    mine.write_bytes(gzip.compress(BODY))
    result = tree.prepared(given=mine, offline=True)
    assert (result.rows, result.sources[0]["from"], files.asked) == (400, "given", [])
    tree.pins(f"rows: 400\nfiles: {{raw.jsonl: {{sha256: {SUM}}}}}")
    part.write_bytes(BODY[: BODY.index(b"\n") + 1])
    assert "is pinned" in tree.refused(given=part).message
    result = tree.prepared(given=part, partial=True)
    assert (result.rows, result.complete, result.sources[0]["pinned"]) == (1, False, False)
    tree.pins("files: {raw.jsonl: {}, other.jsonl: {}}")
    assert "was not used" in tree.refused(UsageError, given=part).message
    (hand := tmp_path / "hand").mkdir()
    tree.makes(SCRIPTS["two files"], "SOURCES['answers.jsonl'] = SOURCES['raw.jsonl'] + '.answers'")
    tree.pins("files: {raw.jsonl: {}, answers.jsonl: {}}")
    (hand / "raw.jsonl").write_text('{"question": "?"}\n')
    assert "answers.jsonl" in tree.refused(NothingToRead, given=hand, offline=True).message
    (hand / "answers.jsonl").write_text('{"expected_answer": "!"}\n')
    tree.prepared(given=hand, offline=True)
    assert json.loads(tree.output.read_text()) == {"question": "?", "expected_answer": "!"}


@pytest.mark.parametrize("which", [*CASES["failing"], "no function"])
def test_a_script_that_fails_leaves_the_rows_of_before(tree: Tree, which: str) -> None:
    body, text = CASES["failing"].get(which, ("", "no function prepare"))
    tree.output.parent.mkdir(parents=True)
    tree.output.write_text('{"before": true}\n')
    tree.makes(body)
    error = tree.refused(own_process=which == "dies")
    assert (error.slug, text in error.message) == ("prepare-failed", True), error.message
    assert tree.output.read_text() == '{"before": true}\n'
    assert [path.name for path in tree.output.parent.iterdir() if path.suffix != ".lock"] == [ROWS]


@pytest.mark.parametrize(("name", "text", "message", "traced"), CASES["schemas"])
def test_a_raw_file_of_another_schema_is_told_by_line_and_column(
    tree: Tree, tmp_path: Path, name: str, text: str, message: str, traced: bool
) -> None:
    tree.makes(SCRIPTS["quiz"])
    (tmp_path / name).write_text(text)
    assert message in tree.refused(given=tmp_path / name).message
    shown = "\n".join(tree.notes)
    assert ("Traceback" in shown, "child.py" in shown) == (traced, False)


@pytest.mark.parametrize(("manifest", "notices"), CASES["manifests"])
def test_a_manifest_copied_from_another_benchmark_is_told(tree: Tree, manifest: str, notices: list[str]) -> None:
    (tree.home / "manifest.yaml").write_text(manifest)
    tree.prepared()
    lines = [line for line in tree.notes if line.startswith("notice:")]
    assert [part in line for part, line in zip(notices, lines, strict=True)] == [True] * len(notices)


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death and collects orphans")


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("starts", [SCRIPTS["starts another"], pytest.param(LEAVES, marks=LINUX)])
def test_what_a_script_started_is_ended_with_it(tree: Tree, ends: bool, starts: str) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    tree.makes(starts + (ONE if ends else WAITS))
    if ends:
        assert tree.prepared(own_process=True).rows == 1
    else:
        error = tree.refused(own_process=True, limits=work.Limits(wall_s=2))
        assert ("more time" in error.message, error.slug) == (True, "prepare-limit")
    assert is_gone(tree, "pid")
    assert "started" in tree.notes or starts == LEAVES
    assert other.poll() is None  # what others started is left alone
    other.kill()
    other.wait()


@LINUX
def test_a_script_does_not_outlive_who_ran_it(tree: Tree) -> None:
    tree.makes(LEAVES + SCRIPTS["ready with its id"] + WAITS)
    killed(tree)
    assert all(is_gone(tree, name) for name in ("own", "pid"))


def is_gone(tree: Tree, name: str) -> bool:
    """Whether a process is gone, or but waits to be collected."""
    pid = int((tree.folder / name).read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    return False


def test_a_script_imports_from_its_own_tree_and_pythons_own_first(tree: Tree) -> None:
    # which may reckon with a missing column, and write its path otherwise
    tree.makes(SCRIPTS["missing column"])
    (raw := tree.folder / "a.jsonl").write_text('{"hint": "h"}\n{"b": 1}\n')
    tree.prepared(given=raw)
    assert tree.output.read_text() == '{"a":"h"}\n{"a":"none","b":1}\n'
    for name in ("json", "ctypes", "colorsys"):
        (tree.folder / f"{name}.py").write_text("raise RuntimeError('the wrong one')\n")
    (tree.home / "shared.py").write_text("ROWS = [{'a': 1}]\n")
    tree.makes(SCRIPTS["imports"])
    assert tree.prepared(own_process=True).rows == 2


@pytest.mark.parametrize(("body", "limits", "what"), CASES["limits"])
def test_a_script_that_wants_too_much_is_stopped(tree: Tree, body: str, limits: dict[str, int], what: str) -> None:
    tree.makes(body)
    error = tree.refused(own_process=True, limits=work.Limits(**limits))
    assert (error.slug, f"more {what}" in error.message) == ("prepare-limit", True)
    assert [path.suffix for path in tree.output.parent.iterdir()] == [".lock"]


def test_keys_stay_here_and_what_a_hub_needs_goes_along() -> None:
    ours = "OPENAI_API_KEY AWS_SECRET_ACCESS_KEY BLADE_CACHE_DIR PATH https_proxy HF_TOKEN LC_ALL".split()
    passed = work.environment(dict.fromkeys(ours, "x"), fetch.Context("/c"))
    assert set(passed) == {"PATH", "https_proxy", "HF_TOKEN", "LC_ALL", "PYTHONUNBUFFERED", "BLADE_PREPARE"}


@pytest.mark.parametrize(("name", "text", "message"), [*((*form, "") for form in CASES["forms"]), *CASES["unreadable"]])
def test_every_form_of_a_raw_file_gives_the_same_records_and_what_is_something_else_says_so(
    tmp_path: Path, name: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    plain, packed = tmp_path / name, tmp_path / (name + ".gz")
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    if message:
        with pytest.raises(NotReadable, match=message):
            list(records(plain))
    else:
        assert list(records(plain)) == list(records(packed)) == [{"x": "1"}, {"x": "ü"}]


def test_parquet_with_its_library_is_read_and_rows_that_cannot_be_made_leave_no_file(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    with pytest.raises(ZeroDivisionError):
        written(({"a": 1 // n} for n in (1, 0)), tmp_path / "x.jsonl")
    assert not list(tmp_path.iterdir())
    rows = [{"x": 1, "options": ["a", "b"]}, {"x": 2, "options": []}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert list(records(tmp_path / "a.parquet")) == rows


def test_the_command_fetches_once_and_says_which_file_has_no_checksum(
    tree: Tree, files: Files, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.home / "config.yaml").write_text(CONFIGS["sums"])
    monkeypatch.chdir(tree.folder)
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tree.folder / "cache"))
    monkeypatch.setattr(work, "ran", here)
    words = ("eval", "prepare", "--benchmark", "sums")
    lacking = blade(*words, "--offline")
    assert lacking.code == 3
    assert tree.url in lacking.err
    tree.pins(f"files: {{raw.jsonl: {{size: {len(BODY)}}}}}")
    done = blade(*words, "--json")
    assert done.code == 0, done.err
    (rows,) = json.loads(done.out)
    assert (rows["name"], rows["rows"], rows["cached"]) == ("sums", 400, False)
    notice = f"notice: sums: raw.jsonl: this file has no known checksum; the one that was read has sha256 {SUM}"
    assert notice in done.err
    keep = (*words, "--offline", "use_cached_prepared_benchmarks=true")
    again = blade(*keep)
    assert again.out.startswith("sums: 400 rows, as it was: ")
    assert notice in again.err
    tree.pins(f"files: {{raw.jsonl: {{sha256: {SUM}}}}}")
    assert [notice in blade(*command).err for command in (keep, words)] == [False, False]
    assert len(files.asked) == 1
    tree.makes(SCRIPTS["names"])
    assert blade(*words, "++prepare_script_args.names=[a,b]").out.startswith("sums: 2 rows, prepared: ")
    (tree.home / "config.yaml").write_text(CONFIGS["sums"].replace("          prepare_script: benchmarks/sums/prepare.py\n", ""))
    done = blade(*words)
    assert (done.code, "no dataset with a prepare_script" in done.err) == (2, True)


def test_the_docs_name_the_benchmarks_whose_files_have_no_known_checksum() -> None:
    root = Path(__file__).parents[2]
    without = set()
    for path in root.glob("benchmarks/*/prepare.py"):
        pins = work.manifest_pins(path).get("files") or {}
        if not all((pin or {}).get("sha256") for pin in pins.values()):
            without.add(path.parent.name)
    text = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    part = text.split("**Files without a known checksum**")[1].split("so another file")[0]
    assert set(re.findall(r"`([^`]+)`", part)) == without
