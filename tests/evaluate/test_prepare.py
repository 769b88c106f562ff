"""Preparing a benchmark: downloads that break off, sums that differ, and scripts that misbehave."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade_eval.prepare import NotReadable, fetch, records, script, work, written
from tests.evaluate.file_server import Files, serving

BODY = "".join(
    json.dumps({"question": f"What is {n} + 1?", "answer": str(n + 1)}) + "\n" for n in range(400)
).encode()
SUM = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def files() -> Iterator[Files]:
    with serving(Files({"/raw.jsonl": BODY})) as served:
        yield served


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another at once."""
    monkeypatch.setattr(fetch, "PAUSES", (0.0, 0.0, 0.0))


class Tree:
    """A tree with one benchmark whose script is `body`, and what preparing it says."""

    def __init__(self, folder: Path, url: str = "http://127.0.0.1:9/raw.jsonl") -> None:
        self.folder, self.url = folder, url
        self.home = folder / "benchmarks" / "sums"
        self.home.mkdir(parents=True)
        self.output = self.home / "data" / "sums_benchmark.jsonl"
        self.said: list[str] = []
        self.script(
            """
            def prepare(**args):
                rows = records(fetched(SOURCES["raw.jsonl"], "raw.jsonl"))
                return written(({"question": r["question"], "expected_answer": r["answer"]} for r in rows), OUTPUT)
            """
        )

    def script(self, body: str) -> None:
        head = f"""
            from pathlib import Path
            from blade_eval.prepare import fetched, records, written
            SOURCES = {{"raw.jsonl": "{self.url}"}}
            OUTPUT = Path("benchmarks/sums/data/sums_benchmark.jsonl")
            """
        self.home.joinpath("prepare.py").write_text(textwrap.dedent(head) + textwrap.dedent(body))

    def pins(self, text: str) -> None:
        self.home.joinpath("manifest.yaml").write_text(
            "pins:\n" + textwrap.indent(textwrap.dedent(text), "  ")
        )

    def wanted(self) -> work.Wanted:
        prepare = self.home / "prepare.py"
        pins = work.manifest_pins(prepare)
        return work.Wanted("sums", prepare, self.folder, self.output, self.folder, pins)

    def prepared(self, **how: object) -> work.Prepared:
        asked = work.How(**{"cache": self.folder / "cache", **how})
        return work.prepared([self.wanted()], asked, self.said.append)[0]

    def record(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.output.parent / "sums_benchmark_prepare.json").read_text())
        return told

    def beside(self) -> list[str]:
        """What is in the folder of the rows, but for the lock."""
        return sorted(path.name for path in self.output.parent.iterdir() if path.suffix != ".lock")


@pytest.fixture
def tree(tmp_path: Path, files: Files) -> Tree:
    return Tree(tmp_path, files.url + "/raw.jsonl")


def test_rows_and_record_say_where_they_come_from(tree: Tree, files: Files) -> None:
    made = tree.prepared()
    rows = [json.loads(line) for line in tree.output.read_text().splitlines()]
    assert made.rows == len(rows) == 400
    assert rows[3] == {"question": "What is 3 + 1?", "expected_answer": "4"}
    record = json.loads((tree.output.parent / "sums_benchmark_prepare.json").read_text())
    assert record["sha256"] == hashlib.sha256(tree.output.read_bytes()).hexdigest() == made.sha256
    assert record["sources"] == [
        {
            "name": "raw.jsonl",
            "url": tree.url,
            "sha256": SUM,
            "size": len(BODY),
            "from": "fetched",
            "pinned": None,
        }
    ]
    assert "Preparing benchmark: sums" in tree.said
    assert f"Benchmark data prepared at: {tree.output}" in tree.said


def test_the_second_time_nothing_is_fetched_unless_forced(tree: Tree, files: Files) -> None:
    tree.prepared()
    again = tree.prepared()
    assert again.sources[0]["from"] == "cache"
    assert len(files.asked) == 1
    tree.prepared(again=True)
    assert len(files.asked) == 2


def test_another_revision_is_another_file_of_the_cache(tree: Tree, files: Files) -> None:
    files.bodies["/v2/raw.jsonl"] = BODY.replace(b"What is", b"How much is")
    tree.prepared()
    tree.url = files.url + "/v2/raw.jsonl"
    tree.script(
        "def prepare():\n    return written(records(fetched(SOURCES['raw.jsonl'], 'raw.jsonl')), OUTPUT)"
    )
    tree.prepared()
    assert b"How much is" in tree.output.read_bytes()


def test_rows_that_are_there_are_kept_only_if_their_run_ended(tree: Tree, files: Files) -> None:
    tree.prepared()
    assert tree.prepared(keep=True).cached
    record = tree.output.parent / "sums_benchmark_prepare.json"
    record.write_text('{"state": "preparing"}')
    assert not tree.prepared(keep=True).cached
    whole = tree.output.read_bytes()
    for changed in (whole[:100], whole + b'{"one": "more"}\n'):
        tree.output.write_bytes(changed)
        assert not tree.prepared(keep=True).cached
        assert tree.output.read_bytes() == whole


def test_rows_without_a_record_do_not_count(tree: Tree) -> None:
    tree.prepared()
    whole = tree.output.read_bytes()
    (tree.output.parent / "sums_benchmark_prepare.json").unlink()
    assert not tree.prepared(keep=True).cached
    assert tree.output.read_bytes() == whole
    assert tree.prepared(keep=True).cached


TAKES_ANY = """
def prepare(**args):
    return written([{"args": repr(sorted(args))}], OUTPUT)
"""


@pytest.mark.parametrize(
    ("before", "now", "cached"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {}, False),
        ({}, {"a": 1}, False),
    ],
)
def test_rows_made_with_other_arguments_are_made_again(
    tree: Tree, before: dict[str, Any], now: dict[str, Any], cached: bool
) -> None:
    tree.script(TAKES_ANY)
    tree.prepared(args=before)
    assert tree.prepared(args=now, keep=True).cached is cached
    assert tree.record()["prepare_script_args"] == now


def test_rows_of_another_script_are_made_again(tree: Tree) -> None:
    tree.script("def prepare():\n    return written([{'a': 1}], OUTPUT)")
    tree.prepared()
    (tree.home / "prepare.py").touch()
    assert tree.prepared(keep=True).cached
    tree.script("def prepare():\n    return written([{'a': 2}], OUTPUT)")
    assert not tree.prepared(keep=True).cached
    assert json.loads(tree.output.read_text()) == {"a": 2}
    assert any("script" in line for line in tree.said)


@pytest.mark.parametrize(
    ("pins", "fine"),
    [
        ("rows: 400", True),
        ("rows: 401", False),
        ("sha256: {rows}", True),
        ("sha256: {other}", False),
        ("files: {{raw.jsonl: {{sha256: {raw}}}}}", True),
        ("files: {{raw.jsonl: {{sha256: {other}}}}}", False),
        ("files: {{raw.jsonl: {{size: 12}}}}", False),
        ("files: {{another.jsonl: {{sha256: {other}}}}}", True),
    ],
)
def test_rows_that_are_there_are_held_against_the_pins(tree: Tree, pins: str, fine: bool) -> None:
    made = tree.prepared()
    tree.pins(pins.format(rows=made.sha256, raw=SUM, other="ab" * 32))
    if fine:
        assert tree.prepared(keep=True).cached
        return
    with pytest.raises(Unreadable) as error:
        tree.prepared(keep=True)
    assert error.value.slug == "prepare-checksum"
    taken = tree.prepared(keep=True, partial=True)
    assert (taken.cached, taken.complete) == (True, False)


def test_a_file_by_hand_is_read_although_rows_are_there(tree: Tree, tmp_path: Path) -> None:
    tree.prepared()
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"question": "?", "answer": "!"}\n')
    assert tree.prepared(given=mine, keep=True).rows == 1
    assert tree.prepared(keep=True).cached


# ---- runs that are killed, and runs beside one another ----


def killed(tree: Tree, ready: Path) -> None:
    """Run the command, and kill it with -9 as soon as `ready` is there."""
    (tree.home / "config.yaml").write_text(CONFIG)
    words = [sys.executable, "-m", "blade", "eval", "prepare", "--benchmark", "sums"]
    running = subprocess.Popen(words, cwd=tree.folder, stderr=subprocess.DEVNULL)
    while not ready.exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.kill()
    running.wait()


def torn(tree: Tree, tmp_path: Path) -> None:
    """A run that is killed after it has written half of its rows; the script then fails for good."""
    ready = tmp_path / "ready"
    tree.script(
        f"""
        import time
        def prepare():
            OUTPUT.write_text('{{"torn": 1}}\\n')
            Path({str(ready)!r}).touch()
            time.sleep(600)
        """
    )
    killed(tree, ready)
    tree.script("def prepare():\n    raise KeyError('question')")


def test_a_killed_run_and_then_a_failing_one_lose_no_rows(tree: Tree, tmp_path: Path) -> None:
    good = (tree.home / "prepare.py").read_text()
    tree.prepared()
    whole, record = tree.output.read_bytes(), tree.record()
    torn(tree, tmp_path)
    for _ in range(2):
        with pytest.raises(Unreadable, match="KeyError"):
            tree.prepared(keep=True)
        assert (tree.output.read_bytes(), tree.record()) == (whole, record)
    (tree.home / "prepare.py").write_text(good)
    assert tree.prepared(keep=True).cached
    assert tree.beside() == ["sums_benchmark.jsonl", "sums_benchmark_prepare.json"]


def test_torn_rows_of_a_killed_first_run_never_count(tree: Tree, tmp_path: Path) -> None:
    torn(tree, tmp_path)
    for _ in range(2):
        with pytest.raises(Unreadable, match="KeyError"):
            tree.prepared(keep=True)


def test_a_run_killed_at_its_very_end_keeps_its_new_rows(tree: Tree) -> None:
    tree.prepared()
    whole, record = tree.output.read_bytes(), tree.record()
    # all was written; only what had been set aside is still there
    tree.output.with_name(f".{tree.output.name}.before").write_text('{"old": 1}\n')
    tree.script("def prepare():\n    raise KeyError('question')")
    with pytest.raises(Unreadable, match="KeyError"):
        tree.prepared()
    assert (tree.output.read_bytes(), tree.record()) == (whole, record)


STEPS = ["record set aside", "rows set aside", "preparing", "torn", "record back", "rows back"]


@pytest.mark.parametrize("step", STEPS)
def test_wherever_a_run_is_killed_the_rows_and_their_record_come_back(tree: Tree, step: str) -> None:
    tree.prepared()
    whole, record = tree.output.read_bytes(), tree.record()
    rows, told = tree.output, tree.output.parent / "sums_benchmark_prepare.json"
    rows_aside, told_aside = (p.with_name(f".{p.name}.before") for p in (rows, told))
    reached = STEPS.index(step)
    told_aside.write_bytes(told.read_bytes())
    if reached >= 1:
        rows.rename(rows_aside)
    if reached >= 2:
        told.write_text('{"state": "preparing"}')
    if reached >= 3:
        rows.write_text('{"torn": 1}\n')
    if reached >= 4:
        told.write_bytes(told_aside.read_bytes())
    if reached >= 5:
        rows_aside.replace(rows)
    assert tree.prepared(keep=True).cached
    assert (rows.read_bytes(), tree.record()) == (whole, record)
    assert tree.beside() == [rows.name, told.name]


def test_a_run_that_fails_leaves_the_record_of_the_rows(tree: Tree) -> None:
    tree.prepared()
    record = tree.record()
    tree.script("def prepare():\n    raise KeyError('question')")
    with pytest.raises(Unreadable):
        tree.prepared()
    assert tree.record() == record


def test_rows_that_cannot_be_set_aside_stay_where_they_are(tree: Tree) -> None:
    tree.prepared()
    whole, record = tree.output.read_bytes(), tree.record()
    for name in (".sums_benchmark_prepare.json.before", "sums_benchmark_prepare.json"):
        block = tree.output.parent / f".{name}.partial"
        block.mkdir()  # where a part of the record would be written
        with pytest.raises(Unreadable) as error:
            tree.prepared()
        block.rmdir()
        assert error.value.slug == "cannot-write"
        assert tree.prepared(keep=True).cached
        assert (tree.output.read_bytes(), tree.record()) == (whole, record)


def test_of_two_runs_at_once_the_second_waits(tree: Tree, tmp_path: Path) -> None:
    ready, go, done = tmp_path / "ready", tmp_path / "go", tmp_path / "done"
    tree.script(
        f"""
        import time
        def prepare(who):
            if who == "second":
                Path({str(go)!r}).touch()
                while not Path({str(done)!r}).exists():
                    time.sleep(0.02)
                raise KeyError(who)
            written([{{"who": who}}], OUTPUT)
            Path({str(ready)!r}).touch()
            while not Path({str(go)!r}).exists():
                time.sleep(0.02)
            return OUTPUT
        """
    )
    ends: dict[str, str] = {}

    def run(who: str) -> None:
        try:
            ends[who] = str(tree.prepared(args={"who": who}).rows)
        except BladeError as error:
            ends[who] = error.message
        done.touch()

    first, second = (threading.Thread(target=run, args=(who,)) for who in ("first", "second"))
    first.start()
    while not ready.exists():
        assert first.is_alive()
        time.sleep(0.02)
    second.start()
    while not go.exists() and not any("waiting" in line for line in tree.said):
        time.sleep(0.02)
    go.touch()
    first.join()
    second.join()
    assert ends["first"] == "1"
    assert "KeyError: 'second'" in ends["second"]
    assert json.loads(tree.output.read_text()) == {"who": "first"}
    assert tree.record()["prepare_script_args"] == {"who": "first"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_going_on_asks_only_for_the_rest(tmp_path: Path, files: Files, quiet: None) -> None:
    files.drops = [1000, 2000]
    fetch.downloaded(files.url + "/raw.jsonl", tmp_path / "x.part", {}, lambda _: None)
    assert [wanted for _, wanted, _ in files.asked] == [None, "bytes=1000-", "bytes=3000-"]


def test_a_file_that_changed_meanwhile_is_fetched_from_its_start(
    tmp_path: Path, files: Files, quiet: None
) -> None:
    part = tmp_path / "x.part"
    part.write_bytes(b"other" * 100)
    beside = part.with_name("x.part.json")
    beside.write_text(json.dumps({"url": files.url + "/raw.jsonl", "mark": '"another"'}))
    fetch.downloaded(files.url + "/raw.jsonl", part, {}, lambda _: None)
    assert part.read_bytes() == BODY
    assert not beside.exists()


def test_a_download_killed_midway_goes_on_in_the_next_run(tree: Tree, files: Files) -> None:
    whole = (tree.home / "prepare.py").read_text()
    tree.script(
        """
        import os, signal
        from blade_eval.prepare import fetch
        def prepare():
            # the connection drops after 3000 bytes, and the process dies before it can ask again
            fetch.time.sleep = lambda seconds: os.kill(os.getpid(), signal.SIGKILL)
            return fetched(SOURCES["raw.jsonl"], "raw.jsonl")
        """
    )
    files.drops = [3000]
    with pytest.raises(Unreadable, match="SIGKILL"):
        tree.prepared()
    assert not tree.output.exists()
    (tree.home / "prepare.py").write_text(whole)
    assert tree.prepared().rows == 400
    assert [wanted for _, wanted, _ in files.asked] == [None, "bytes=3000-"]


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_is_busy_is_asked_again(tmp_path: Path, files: Files, quiet: None, code: int) -> None:
    files.refusals = [code, code]
    part = fetch.downloaded(files.url + "/raw.jsonl", tmp_path / "x.part", {}, lambda _: None)
    assert part.read_bytes() == BODY
    assert len(files.asked) == 3


def test_a_gated_dataset_says_that_it_wants_a_token(tree: Tree, files: Files) -> None:
    files.refusals = [401]
    with pytest.raises(NothingToRead) as error:
        tree.prepared()
    assert "HF_TOKEN" in error.value.message
    assert error.value.slug == "prepare-missing-file"


def test_the_hubs_token_goes_to_the_hub_and_not_to_where_it_redirects(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.redirects["/datasets/a/b/resolve/main/raw.jsonl"] = files.url + "/raw.jsonl"
    monkeypatch.setenv("HF_ENDPOINT", files.url)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    tree = Tree(tmp_path / "tree", "https://huggingface.co/datasets/a/b/resolve/main/raw.jsonl")
    tree.prepared()
    assert [(path, token) for path, _, token in files.asked] == [
        ("/datasets/a/b/resolve/main/raw.jsonl", "Bearer hf_secret"),
        ("/raw.jsonl", None),
    ]
    assert "hf_secret" not in "".join(path.read_text() for path in tree.output.parent.iterdir())


def test_another_host_never_sees_the_hubs_token(
    tree: Tree, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    tree.prepared()
    assert [token for _, _, token in files.asked] == [None]


def test_a_wrong_sum_names_both_and_leaves_nothing(tree: Tree, files: Files) -> None:
    tree.pins(f"files: {{raw.jsonl: {{sha256: {'ab' * 32}}}}}")
    with pytest.raises(Unreadable) as error:
        tree.prepared()
    assert error.value.slug == "prepare-checksum"
    assert SUM in error.value.message
    assert "ab" * 32 in error.value.message
    assert not tree.output.exists()
    tree.pins(f"files: {{raw.jsonl: {{sha256: {SUM}, size: {len(BODY)}}}}}")
    assert tree.prepared().rows == 400


def test_a_size_alone_is_held_against_the_file(tree: Tree) -> None:
    tree.pins("files: {raw.jsonl: {size: 12}}")
    with pytest.raises(Unreadable, match="size 12 is pinned"):
        tree.prepared()


def test_a_cached_file_that_was_damaged_is_fetched_again(tree: Tree, files: Files) -> None:
    tree.prepared()
    (cached,) = (tree.folder / "cache").glob("*/raw.jsonl")
    cached.write_bytes(b'{"question": "?", "answer": "!"}\n')
    assert tree.prepared().rows == 400
    assert any("changed since it was fetched" in line for line in tree.said)


@pytest.mark.parametrize(("pinned", "fine"), [(400, True), (399, False), (401, False)])
def test_the_number_of_rows_is_held_against_the_manifest(tree: Tree, pinned: int, fine: bool) -> None:
    tree.pins(f"rows: {pinned}")
    if fine:
        assert tree.prepared().complete is True
        return
    with pytest.raises(Unreadable, match=f"row count 400, but {pinned}"):
        tree.prepared()
    assert not tree.output.exists()
    assert tree.prepared(partial=True).complete is False


def test_the_sum_of_the_rows_is_held_against_the_manifest(tree: Tree) -> None:
    made = tree.prepared()
    tree.pins(f"rows: 400\nsha256: {made.sha256}")
    assert tree.prepared().complete is True
    tree.pins(f"rows: 400\nsha256: {'cd' * 32}")
    with pytest.raises(Unreadable, match="sha256"):
        tree.prepared()
    assert tree.output.read_bytes(), "the rows of the earlier run are back"


def test_arguments_reach_the_script_and_pins_then_do_not_apply(tree: Tree) -> None:
    tree.script(
        "def prepare(first):\n    rows = list(records(fetched(SOURCES['raw.jsonl'], 'raw.jsonl')))\n"
        "    return written(rows[:first], OUTPUT)"
    )
    tree.pins("rows: 400")
    made = tree.prepared(args={"first": 5})
    assert (made.rows, made.complete) == (5, None)


def test_offline_names_every_missing_file_its_url_sum_and_place(tree: Tree) -> None:
    tree.script(
        """
        SOURCES["answers.csv"] = SOURCES["raw.jsonl"].replace("raw.jsonl", "answers.csv")
        def prepare():
            return written(records(fetched(SOURCES["raw.jsonl"], "raw.jsonl")), OUTPUT)
        """
    )
    tree.pins(f"files: {{raw.jsonl: {{sha256: {SUM}, size: {len(BODY)}}}, answers.csv: {{}}}}")
    with pytest.raises(NothingToRead) as error:
        tree.prepared(offline=True)
    message = error.value.message
    for part in (
        "raw.jsonl",
        "answers.csv",
        tree.url,
        SUM,
        f"{len(BODY):,} bytes",
        str(tree.folder / "cache"),
    ):
        assert part in message
    assert "--from FOLDER" in error.value.hint
    place = next(
        line.split("put it at ")[1]
        for line in message.splitlines()
        if "raw.jsonl" in line and "put it" in line
    )
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).write_bytes(BODY)
    assert tree.prepared(offline=True).rows == 400


def test_offline_names_the_missing_files_of_every_benchmark(tmp_path: Path) -> None:
    one = Tree(tmp_path / "one", "http://127.0.0.1:9/first/raw.jsonl")
    whole = Tree(tmp_path / "two")
    whole.script("def prepare():\n    return written([{'a': 1}], OUTPUT)")
    other = Tree(tmp_path / "three", "http://127.0.0.1:9/third/raw.jsonl")
    how = work.How(cache=tmp_path / "cache", offline=True)
    with pytest.raises(NothingToRead) as error:
        work.prepared([one.wanted(), whole.wanted(), other.wanted()], how, one.said.append)
    assert error.value.slug == "prepare-missing-file"
    assert all(tree.url in error.value.message for tree in (one, other))
    assert whole.url not in error.value.message
    assert whole.output.exists()


def test_a_failing_script_does_not_hide_what_is_missing_before_it(tmp_path: Path) -> None:
    one, other = Tree(tmp_path / "one"), Tree(tmp_path / "two")
    other.script("def prepare():\n    return 7")
    how = work.How(cache=tmp_path / "cache", offline=True)
    with pytest.raises(Unreadable, match="returned int"):
        work.prepared([one.wanted(), other.wanted()], how, one.said.append)
    assert any(one.url in line for line in one.said)


def test_a_host_that_cannot_be_reached_is_a_missing_file(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    with pytest.raises(NothingToRead) as error:
        tree.prepared()
    assert "refused" in error.value.message.lower()
    assert "--from FILE" in error.value.hint


def test_a_file_by_hand_stands_for_the_download_under_any_name(
    tree: Tree, files: Files, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.jsonl.gz"
    mine.write_bytes(gzip.compress(BODY))
    made = tree.prepared(given=mine, offline=True)
    assert (made.rows, made.sources[0]["from"]) == (400, "given")
    assert not files.asked


def test_a_part_of_the_pinned_file_is_taken_only_when_said_so(tree: Tree, tmp_path: Path) -> None:
    tree.pins(f"rows: 400\nfiles: {{raw.jsonl: {{sha256: {SUM}}}}}")
    part = tmp_path / "part.jsonl"
    part.write_bytes(BODY[: BODY.index(b"\n") + 1])
    with pytest.raises(Unreadable, match="is pinned"):
        tree.prepared(given=part)
    made = tree.prepared(given=part, partial=True)
    assert (made.rows, made.complete, made.sources[0]["pinned"]) == (1, False, False)


def test_of_several_files_each_is_given_under_its_name(tree: Tree, tmp_path: Path) -> None:
    tree.script(
        """
        SOURCES["answers.jsonl"] = SOURCES["raw.jsonl"] + ".answers"
        def prepare():
            asked = records(fetched(SOURCES["raw.jsonl"], "raw.jsonl"))
            answers = records(fetched(SOURCES["answers.jsonl"], "answers.jsonl"))
            return written(({**a, **b} for a, b in zip(asked, answers)), OUTPUT)
        """
    )
    tree.pins("files: {raw.jsonl: {}, answers.jsonl: {}}")
    hand = tmp_path / "hand"
    hand.mkdir()
    (hand / "raw.jsonl").write_text('{"question": "?"}\n')
    with pytest.raises(NothingToRead, match=r"answers\.jsonl"):
        tree.prepared(given=hand, offline=True)
    (hand / "answers.jsonl").write_text('{"expected_answer": "!"}\n')
    tree.prepared(given=hand, offline=True)
    assert json.loads(tree.output.read_text()) == {"question": "?", "expected_answer": "!"}


def test_a_file_by_hand_that_nobody_read_is_told(tree: Tree, tmp_path: Path) -> None:
    tree.pins("files: {raw.jsonl: {}, other.jsonl: {}}")
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(BODY)
    with pytest.raises(UsageError, match="was not used"):
        tree.prepared(given=mine)


BAD = {
    "another path": (
        "def prepare():\n    return written([{'a': 1}], Path('elsewhere.jsonl'))",
        "elsewhere.jsonl",
    ),
    "no path": ("def prepare():\n    return 7", "returned int"),
    "nothing written": ("def prepare():\n    return OUTPUT", "does not exist"),
    "no rows": ("def prepare():\n    return written([], OUTPUT)", "no row"),
    "not JSON": (
        "def prepare():\n    OUTPUT.parent.mkdir(parents=True, exist_ok=True)\n"
        "    OUTPUT.write_text('{\"a\": 1}\\nhello\\n')\n    return OUTPUT",
        "line 2",
    ),
    "raises": ("def prepare():\n    raise KeyError('question')", "KeyError: 'question'"),
    "exits": ("import sys\ndef prepare():\n    sys.exit(0)", "SystemExit"),
    "dies": ("import os\ndef prepare():\n    os._exit(3)", "code 3"),
    "no function": ("x = 1", "no function prepare"),
    "does not parse": ("def prepare(:\n    pass", "SyntaxError"),
    "not the schema": (
        "def prepare():\n    return written(({'q': r['prompt']} for r in records(fetched(SOURCES['raw.jsonl'], 'raw.jsonl'))), OUTPUT)",
        "raw.jsonl, line 1, lacks the column `prompt`; its columns: `question`, `answer`",
    ),
}


QUIZ = """
def row(asked):
    return {"question": asked["question"], "expected_answer": asked["answer"].rsplit("####", 1)[1]}
def prepare():
    return written((row(r) for r in records(fetched(SOURCES["raw.jsonl"], "raw.jsonl"))), OUTPUT)
"""


@pytest.mark.parametrize(
    ("name", "text", "says", "traced"),
    [
        ("a.jsonl", '{"question": "?"}\n', "a.jsonl, line 1, lacks the column `answer`", False),
        ("a.jsonl", '{"question": "?", "answer": "#### 1"}\n\n{}\n', "a.jsonl, line 3, lacks", False),
        ("a.csv", "question,reply\n?,!\n", "a.csv, record 1, lacks the column `answer`", False),
        ("a.json", '[{"Answer": 1}]', "a.json, record 1, lacks the column `question`", False),
        ("a.jsonl", '{"question": "?", "answer": "#### 1"}\n{"question": "?", "answer": "1"}\n',
         "at a.jsonl, line 2", True),
        ("a.csv", "question,answer\n?\n", "at a.csv, record 1", True),
    ],
)  # fmt: skip
def test_a_raw_file_of_another_schema_is_told_by_line_and_column(
    tree: Tree, tmp_path: Path, name: str, text: str, says: str, traced: bool
) -> None:
    tree.script(QUIZ)
    (tmp_path / name).write_text(text)
    with pytest.raises(Unreadable) as error:
        tree.prepared(given=tmp_path / name)
    assert says in error.value.message
    shown = "\n".join(tree.said)
    assert ("Traceback" in shown) is traced
    assert "child.py" not in shown


def test_a_script_may_reckon_with_a_column_that_is_not_there(tree: Tree, tmp_path: Path) -> None:
    tree.script(
        """
        def prepare():
            made = []
            for record in records(fetched(SOURCES["raw.jsonl"], "raw.jsonl")):
                try:
                    made.append({"a": record["hint"]})
                except KeyError:
                    made.append({"a": record.get("hint", "none"), **record})
            return written(made, OUTPUT)
        """
    )
    (tmp_path / "a.jsonl").write_text('{"hint": "h"}\n{"b": 1}\n')
    tree.prepared(given=tmp_path / "a.jsonl")
    assert tree.output.read_text() == '{"a":"h"}\n{"a":"none","b":1}\n'


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("name: sums\npins: {files: {raw.jsonl: {}}}", []),
        ("name: totals", ["says `name: totals`, but its folder is sums"]),
        ("pins: {files: {other.jsonl: {size: 3}}}", ["pins other.jsonl, which the prepare script"]),
    ],
)
def test_a_manifest_copied_from_another_benchmark_is_told(tree: Tree, manifest: str, says: list[str]) -> None:
    (tree.home / "manifest.yaml").write_text(manifest)
    tree.prepared()
    notices = [line for line in tree.said if line.startswith("notice:")]
    assert len(notices) == len(says)
    assert all(part in notice for part, notice in zip(says, notices, strict=True))


@pytest.mark.parametrize("which", BAD)
def test_a_script_that_fails_leaves_the_rows_of_before(tree: Tree, which: str) -> None:
    body, says = BAD[which]
    tree.output.parent.mkdir(parents=True)
    tree.output.write_text('{"before": true}\n')
    tree.script(body)
    with pytest.raises(Unreadable) as error:
        tree.prepared()
    assert error.value.slug == "prepare-failed"
    assert says in error.value.message
    assert tree.output.read_text() == '{"before": true}\n'
    assert tree.beside() == ["sums_benchmark.jsonl"]


def test_the_same_path_written_otherwise_is_the_same_path(tree: Tree) -> None:
    tree.script(
        "def prepare():\n    written([{'a': 1}], OUTPUT)\n    return Path(__file__).parent / 'data' / '..' / 'data' / OUTPUT.name"
    )
    assert tree.prepared().rows == 1


def test_a_script_imports_from_its_own_tree(tree: Tree) -> None:
    (tree.home / "shared.py").write_text("ROWS = [{'a': 1}, {'a': 2}]\n")
    tree.script("from benchmarks.sums.shared import ROWS\ndef prepare():\n    return written(ROWS, OUTPUT)")
    assert tree.prepared().rows == 2


def test_a_script_that_hangs_is_ended_with_what_it_started(tree: Tree, tmp_path: Path) -> None:
    tree.script(
        f"""
        import subprocess, sys, time
        def prepare():
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
            print("started", flush=True)
            time.sleep(600)
        """
    )
    with pytest.raises(Unreadable) as error:
        tree.prepared(limits=script.Limits(wall_s=3))
    assert error.value.slug == "prepare-limit"
    assert "started" in tree.said
    assert ended(int((tmp_path / "pid").read_text()))


def test_what_a_script_leaves_running_is_ended_too(tree: Tree, tmp_path: Path) -> None:
    tree.script(
        f"""
        import subprocess, sys
        def prepare():
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
            return written([{{"a": 1}}], OUTPUT)
        """
    )
    assert tree.prepared().rows == 1
    assert ended(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans go to the first process")
@pytest.mark.parametrize("ends", [True, False])
def test_what_leaves_the_session_is_ended_too(tree: Tree, tmp_path: Path, ends: bool) -> None:
    pid = tmp_path / "pid"
    tree.script(
        f"""
        import os, time
        def prepare():
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.setsid()
                    Path({str(pid)!r}).write_text(str(os.getpid()))
                    time.sleep(600)
                os._exit(0)
            while not Path({str(pid)!r}).exists() or not Path({str(pid)!r}).read_text():
                time.sleep(0.02)
            if not {ends}:
                time.sleep(600)
            return written([{{"a": 1}}], OUTPUT)
        """
    )
    if ends:
        assert tree.prepared().rows == 1
    else:
        with pytest.raises(Unreadable, match="more time"):
            tree.prepared(limits=script.Limits(wall_s=2))
    assert ended(int(pid.read_text()))


def test_a_script_leaves_alone_what_others_started(tree: Tree) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        tree.prepared()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_modules_of_the_folder_do_not_stand_in_for_pythons_own(tree: Tree, tmp_path: Path) -> None:
    for name in ("json", "ctypes", "colorsys"):
        (tree.folder / f"{name}.py").write_text("raise RuntimeError('the wrong one')\n")
    (tree.folder / "mine.py").write_text("ROWS = [{'a': 1}]\n")
    tree.script(
        """
        def prepare():
            import colorsys  # loaded only now
            from mine import ROWS
            return written([*ROWS, {"is": colorsys.rgb_to_hsv.__module__}], OUTPUT)
        """
    )
    assert tree.prepared().rows == 2


def test_a_script_that_eats_memory_is_stopped_by_the_limit(tree: Tree) -> None:
    tree.script("def prepare():\n    return [bytearray(64 << 20) for _ in range(1000)]")
    with pytest.raises(Unreadable, match="more memory") as error:
        tree.prepared(limits=script.Limits(memory_bytes=700 << 20))
    assert error.value.slug == "prepare-limit"


def test_a_script_that_burns_time_or_disk_is_stopped(tree: Tree) -> None:
    tree.script("def prepare():\n    while True: pass")
    with pytest.raises(Unreadable, match="more CPU time"):
        tree.prepared(limits=script.Limits(cpu_s=1, wall_s=60))
    tree.script("def prepare():\n    return written(({'a': 'x' * 100000} for _ in range(1000)), OUTPUT)")
    with pytest.raises(Unreadable, match="more file size"):
        tree.prepared(limits=script.Limits(file_bytes=1 << 20))
    assert tree.beside() == []


def test_keys_stay_here_and_what_a_hub_needs_goes_along() -> None:
    ours = {
        "OPENAI_API_KEY": "sk-1",
        "AWS_SECRET_ACCESS_KEY": "s",
        "BLADE_CACHE_DIR": "/x",
        "PATH": "/bin",
        "https_proxy": "http://p",
        "HF_TOKEN": "hf",
        "LC_ALL": "C",
    }
    passed = script.environment(ours, fetch.Context("/c"))
    assert set(passed) == {"PATH", "https_proxy", "HF_TOKEN", "LC_ALL", "PYTHONUNBUFFERED", "BLADE_PREPARE"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_a_script_does_not_outlive_who_ran_it(tree: Tree, tmp_path: Path) -> None:
    tree.script(
        f"""
        import os, time
        def prepare():
            if os.fork() == 0:
                os.setsid()
                Path({str(tmp_path / "left")!r}).write_text(str(os.getpid()))
                time.sleep(600)
            while not Path({str(tmp_path / "left")!r}).exists():
                time.sleep(0.02)
            Path({str(tmp_path / "pid")!r}).write_text(str(os.getpid()))
            Path({str(tmp_path / "ready")!r}).touch()
            time.sleep(600)
        """
    )
    killed(tree, tmp_path / "ready")
    assert [ended(int((tmp_path / name).read_text())) for name in ("pid", "left")] == [True, True]


def ended(pid: int) -> bool:
    """Whether a process is gone, or but waits to be collected."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    return False


# ---- reading and writing ----


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"x": "1"}\n\n{"x": "ü"}'),
        ("a.json", '[{"x": "1"}, {"x": "ü"}]'),
        ("lines.json", '{"x": "1"}\n{"x": "ü"}\n'),
        ("a.csv", "\ufeffx\r\n1\r\nü\r\n"),
        ("a.tsv", "x\n1\nü\n"),
    ],
)
def test_every_form_of_a_raw_file_gives_the_same_records(tmp_path: Path, name: str, text: str) -> None:
    plain, packed = tmp_path / name, tmp_path / (name + ".gz")
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    assert list(records(plain)) == list(records(packed)) == [{"x": "1"}, {"x": "ü"}]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", '{"x": 1}\n{"x":', "line 2"),
        ("a.jsonl", "[1]\n", "a list, not an object"),
        ("a.json", "[1, 2]", "record 1"),
        ("a.txt", "x", "none of"),
    ],
)
def test_a_raw_file_that_is_something_else_says_where(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(NotReadable, match=says):
        list(records(tmp_path / name))


def test_parquet_without_its_library_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(NotReadable, match="pip install pyarrow"):
        list(records(tmp_path / "a.parquet"))


def test_parquet_with_its_library_is_read(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = [{"x": 1, "options": ["a", "b"]}, {"x": 2, "options": []}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert list(records(tmp_path / "a.parquet")) == rows


def test_rows_that_cannot_be_made_leave_no_file(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"a": 1}
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        written(rows(), tmp_path / "x.jsonl")
    assert not list(tmp_path.iterdir())


# ---- the command ----


def blade(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "blade", "eval", "prepare", *words],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )


CONFIG = """
sums_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: mcqa}
      model_server: {type: responses_api_models, name: policy_model}
      datasets:
        - name: sums
          type: benchmark
          jsonl_fpath: benchmarks/sums/data/sums_benchmark.jsonl
          prepare_script: benchmarks/sums/prepare.py
"""


def test_the_command_fetches_once_and_tells_a_program(tree: Tree, files: Files) -> None:
    (tree.home / "config.yaml").write_text(CONFIG)
    cache = str(tree.folder / "cache")
    done = blade("--benchmark", "sums", "--json", cwd=tree.folder, BLADE_CACHE_DIR=cache)
    assert done.returncode == 0, done.stderr
    (made,) = json.loads(done.stdout)
    assert (made["name"], made["rows"], made["cached"]) == ("sums", 400, False)
    assert "Preparing benchmark: sums" in done.stderr
    again = blade(
        "--benchmark",
        "sums",
        "--offline",
        "use_cached_prepared_benchmarks=true",
        cwd=tree.folder,
        BLADE_CACHE_DIR=cache,
    )
    assert again.stdout.startswith("sums: 400 rows, as it was: ")
    assert len(files.asked) == 1


def test_the_command_says_which_file_has_no_known_checksum(tree: Tree) -> None:
    (tree.home / "config.yaml").write_text(CONFIG)
    says = f"notice: sums: raw.jsonl: this file has no known checksum; the one that was read has sha256 {SUM}"
    words = ("--benchmark", "sums")
    keep = (*words, "use_cached_prepared_benchmarks=true")
    for pins, asked, told in (
        (f"size: {len(BODY)}", words, True),
        (f"size: {len(BODY)}", keep, True),
        (f"sha256: {SUM}", keep, False),
        (f"sha256: {SUM}", words, False),
    ):
        tree.pins(f"files: {{raw.jsonl: {{{pins}}}}}")
        done = blade(*asked, cwd=tree.folder, BLADE_CACHE_DIR=str(tree.folder / "cache"))
        assert done.returncode == 0, done.stderr
        assert (says in done.stderr) is told


def test_the_docs_name_the_benchmarks_whose_files_have_no_known_checksum() -> None:
    root = Path(__file__).parents[2]
    without = set()
    for script_file in root.glob("benchmarks/*/prepare.py"):
        files = work.manifest_pins(script_file).get("files") or {}
        if not all((pin or {}).get("sha256") for pin in files.values()):
            without.add(script_file.parent.name)
    text = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    said = text.split("**Files without a known checksum**")[1].split("so another file")[0]
    assert set(re.findall(r"`([^`]+)`", said)) == without


def test_the_command_passes_arguments_and_says_what_lacks(tree: Tree) -> None:
    (tree.home / "config.yaml").write_text(CONFIG)
    cache = str(tree.folder / "cache")
    lacking = blade("--benchmark", "sums", "--offline", cwd=tree.folder, BLADE_CACHE_DIR=cache)
    assert lacking.returncode == 3
    assert tree.url in lacking.stderr
    assert cache in lacking.stderr
    tree.script("def prepare(names):\n    return written(({'name': n} for n in names), OUTPUT)")
    done = blade(
        "--benchmark", "sums", "++prepare_script_args.names=[a,b]", cwd=tree.folder, BLADE_CACHE_DIR=cache
    )
    assert done.stdout.startswith("sums: 2 rows, prepared: "), done.stderr


def test_a_config_without_a_script_is_told(tree: Tree) -> None:
    (tree.home / "config.yaml").write_text(
        CONFIG.replace("          prepare_script: benchmarks/sums/prepare.py\n", "")
    )
    done = blade("--benchmark", "sums", cwd=tree.folder)
    assert done.returncode == 2
    assert "no dataset with a prepare_script" in done.stderr


def test_a_script_that_is_not_there_stops_all_before_any_runs(tree: Tree) -> None:
    other = work.Wanted("other", tree.home / "none.py", tree.folder, tree.folder / "o.jsonl", tree.folder)
    with pytest.raises(BladeError, match="no prepare script"):
        work.prepared([tree.wanted(), other], work.How(cache=tree.folder / "cache"), tree.said.append)
    assert not tree.output.exists()
