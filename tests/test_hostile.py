"""Hostile and broken input through the real command: an exit code, a count, and the good rows still there."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.builders import DROP, Line, Row, encode, joined, make_message, make_response, make_row, make_run
from tests.case_tables import cases
from tests.conftest import ROOT, Blade, Said, environment

ODD = ROOT / "tests" / "odd_rows.jsonl"  # what differs in a row of each kind
GOOD = [make_row(0, 0, 1.0), make_row(0, 1, 0.0), make_row(1, 0, 1.0), make_row(1, 1, 1.0)]
Process = Callable[..., subprocess.CompletedProcess[bytes]]


def reasons(said: Said) -> list[str]:
    """Why lines were skipped, and that all of them were counted."""
    report = said.report
    assert report["skipped_total"] == len(report["skipped"])
    return [entry["reason"] for entry in report["skipped"]]


def counts(said: Said) -> tuple[int, int, int]:
    """Rows kept, tasks, keys scored."""
    run = said.run
    assert run["expected_rollouts"] == run["scored"] + run["failed"] + run["masked"] + run["lost"]
    return run["n_rollouts"], run["n_tasks"], run["scored"]


# -- nothing to read ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "slug", "note"),
    [
        ([], "nothing-to-read", ""),
        (["", "  ", "\t"], "nothing-to-read", ""),
        ([{"label": "x"}, {"label": "y"}], "no-rollouts", ""),
        ([b"<PLACEHOLDER ROW>", bytes(range(256)).replace(b"\n", b"")], "no-readable-rows", "not JSON"),
        ([joined(GOOD).decode().encode("utf-16")], "no-readable-rows", "UTF-16"),
        ([joined(GOOD).decode().encode("utf-16-le")], "no-readable-rows", "UTF-16"),
        ([joined(GOOD).decode().encode("utf-16-be")], "no-readable-rows", ""),
    ],
    ids=["empty", "blank lines", "no rollouts", "binary", "UTF-16", "UTF-16-LE", "UTF-16-BE"],
)  # fmt: skip
def test_a_file_without_a_rollout(tmp_path: Path, diagnosed: Blade, lines: list[Line], slug: str, note: str) -> None:
    said = diagnosed(make_run(tmp_path, lines, ending=b"\n" if len(lines) != 1 else b""))
    assert (said.code, said.error["slug"], said.out) == (4 if slug == "no-readable-rows" else 3, slug, "")
    assert note in said.error["error"]


@pytest.mark.parametrize("spec", ["no.jsonl", "x=no.jsonl", "no*.jsonl", "", "x=", "."])
def test_a_path_without_a_run(tmp_path: Path, diagnosed: Blade, blade: Blade, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path, [{"label": "x"}], name="labels")
    said = diagnosed(spec)
    assert (said.code, said.error["slug"]) == (3, "no-rollouts" if spec == "." else "no-such-path")
    assert ("passed over 1 JSONL file" in said.err) == (spec == ".")
    # for people
    assert [line.split(":")[0] for line in blade("diagnose", spec).err.splitlines() if "note" not in line] == ["error", "hint", "see"]


# -- files and folders ----------------------------------------------------------------------------


def a_link(folder: Path) -> None:
    (folder / "link.jsonl").symlink_to(folder / "rollouts.jsonl")


def in_another_encoding(encoding: str) -> Callable[[Path], Any]:
    text = joined([make_row(0, 0, note="é")]).decode()
    return lambda folder: (folder / "odd.jsonl").write_bytes(text.encode(encoding))


BESIDE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "loop": (lambda folder: (folder / "up").symlink_to(folder, target_is_directory=True), ""),
    "dangling link": (lambda folder: (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl"), "passed over"),
    "circular link": (lambda folder: (folder / "circle.jsonl").symlink_to(folder / "circle.jsonl"), "passed over"),
    "link to the same file": (a_link, ""),
    "pipe": (lambda folder: os.mkfifo(folder / "pipe.jsonl"), ""),
    "UTF-16": (in_another_encoding("utf-16"), "passed over 1 JSONL"),
    "latin-1": (in_another_encoding("latin-1"), "passed over 1 JSONL"),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_a_folder_holds_beside_a_run(tmp_path: Path, diagnosed: Blade, case: str) -> None:
    odd, note = BESIDE[case]
    path = make_run(tmp_path, GOOD)
    odd(tmp_path)
    for specs in ((tmp_path,), (f"{tmp_path}/*.jsonl",)) if odd is a_link else ((tmp_path,),):
        said = diagnosed(*specs)
        assert counts(said) == (4, 2, 4)
        assert note in said.err
    for other in (path, tmp_path / "link.jsonl") if odd is a_link else ():
        said = diagnosed(path, other)
        assert (counts(said), "given more than once" in said.err) == ((4, 2, 4), True)


def test_what_the_system_does_not_let_us_read(tmp_path: Path, diagnosed: Blade, deny: Callable[[Path], None]) -> None:
    path, pipe = make_run(tmp_path, GOOD), tmp_path / "pipe.jsonl"
    make_run(tmp_path, GOOD, name="other")
    deny(path)
    os.mkfifo(pipe)
    for name, part, text in ((path, "error", "Permission denied"), (pipe, "hint", "blade diagnose -")):
        said = diagnosed(name)
        assert (said.code, said.error["slug"]) == (4, "unreadable-file")
        assert text in said.error[part]
    said = diagnosed(tmp_path)
    assert counts(said) == (4, 2, 4)
    assert "rollouts.jsonl: Permission denied; passed over" in said.err


def test_file_name_that_is_not_utf8(tmp_path: Path, diagnosed: Blade) -> None:
    path = make_run(tmp_path, GOOD)
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe name\x1b[31m.jsonl")
    os.rename(path, odd)
    said = diagnosed(f"run={odd}")
    assert counts(said) == (4, 2, 4)
    assert "\x1b" not in said.out + said.err


# -- bytes ----------------------------------------------------------------------------------------


def test_torn_last_line(tmp_path: Path, diagnosed: Blade) -> None:
    torn = encode(make_row(2, 0))
    said = diagnosed(make_run(tmp_path, GOOD, tail=torn[: len(torn) // 2]))
    assert counts(said) == (4, 2, 4)
    (entry,) = said.report["skipped"]
    assert entry["line"] == 5
    assert entry["reason"].startswith("not JSON")


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("data", "n", "duplicates"),
    [
        (joined(GOOD) + encode(make_row(2, 0)), (5, 3, 5), 0),
        (MARK + joined(GOOD), (4, 2, 4), 0),
        (MARK + joined(GOOD) + MARK + joined(GOOD[:1]), (4, 2, 4), 1),
        (joined([*GOOD, GOOD[0]], b"\r\n") + encode(GOOD[1]), (4, 2, 4), 2),
        (joined(["", *GOOD[:2], "   ", "\t", *GOOD[2:], ""]), (4, 2, 4), 0),
    ],
    ids=["no newline at the end", "byte order mark", "marks of joined files", "CRLF", "blank lines"],
)
def test_every_row_is_read(tmp_path: Path, diagnosed: Blade, data: bytes, n: tuple[int, ...], duplicates: int) -> None:
    path = tmp_path / "rollouts.jsonl"
    path.write_bytes(data)
    said = diagnosed(path)
    assert (counts(said), reasons(said), said.run["duplicates"]) == (n, [], duplicates)
    assert ("identical_duplicates" in said.flags) == (duplicates > 0)


BAD_LINES: dict[str, tuple[bytes, str]] = {
    **{case: (line.encode(), reason) for case, (line, reason) in json.loads((ODD.parent / "bad_lines.json").read_text()).items()},
    "NUL bytes": (b"\x00" * 40, "UTF-16|control"),
    "NUL inside a row": (encode(make_row(2, 0)).replace(b"question 2", b"quest\x00ion", 1), "raw control characters"),
    "raw control characters": (encode(make_row(2, 0)).replace(b"the answer", b"a\x1b[31mb"), "raw control characters"),
    "raw tab in a string": (encode(make_row(2, 0)).replace(b"the answer", b"a\tb"), "not JSON"),
    "invalid UTF-8": (encode(make_row(2, 0)).replace(b"the answer", b"\xff\xfe\xfa"), "not valid UTF-8"),
    "invalid UTF-8 in an unread place": (encode(make_row(2, 0)).replace(b"resp_1", b"\xc3\x28"), "not valid UTF-8"),
    "nested 600 deep": (encode(make_row(2, 0, deep=0)).replace(b'"deep":0', b'"deep":' + b"[" * 600 + b"]" * 600), "nested deeper"),
    "nested 10,000 deep": (
        encode(make_row(2, 0, deep=0)).replace(b'"deep":0', b'"deep":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        "nested deeper",
    ),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_bad_line_costs_that_line_alone(tmp_path: Path, diagnosed: Blade, case: str) -> None:
    line, reason = BAD_LINES[case]
    said = diagnosed(make_run(tmp_path, [*GOOD[:2], line, *GOOD[2:]]))
    assert counts(said) == (4, 2, 4)
    (entry,) = said.report["skipped"]
    assert entry["line"] == 3
    assert any(part in entry["reason"] for part in reason.split("|"))


def test_deep_nesting_among_good_rows_is_refused_on_every_python(tmp_path: Path, diagnosed: Blade) -> None:
    """The fields are known already, so nothing but the depth sends the block the careful way."""
    deep = [encode(make_row(n, 0, deep=[])).replace(b"[]}", b"[" * 600 + b"]" * 600 + b"}") for n in (0, 1)]
    shallow = [make_row(n, 0, deep=[[[]]]) for n in range(5)]
    filler = [make_row(n, 1, deep=[], note="x" * 60_000) for n in range(30)]
    said = diagnosed(make_run(tmp_path, [*shallow, *filler, *deep]))
    assert (len(reasons(said)), counts(said)[0]) == (2, 35)


@pytest.mark.parametrize(
    "line",
    [
        encode(make_row(2, 0, deep=0)).replace(b'"deep":0', b'"deep":' + b"[" * 511 + b"]" * 511),
        json.dumps(make_row(2, 0, float("nan"), note='[{"\\' * 3000)),
    ],
    ids=["511 levels", "brackets inside strings"],
)
def test_nesting_that_is_read(tmp_path: Path, diagnosed: Blade, line: Line) -> None:
    said = diagnosed(make_run(tmp_path, [*GOOD, line]))
    assert (counts(said)[0], reasons(said)) == (5, [])


def test_many_bad_lines_are_all_counted(tmp_path: Path, diagnosed: Blade) -> None:
    said = diagnosed(make_run(tmp_path, [*GOOD, *["junk"] * 2500, *["{junk"] * 2500, make_row(2, 0), "", *["junk"] * 9]))
    report = said.report
    assert (len(report["skipped"]), report["skipped_total"]) == (1000, 5009)
    assert report["runs"][0]["n_rollouts"] == 5


# -- compressed -----------------------------------------------------------------------------------


def big_rows(n: int = 300) -> list[Row]:
    return [make_row(task, 0, note=os.urandom(600).hex()) for task in range(n)]


def compressed(content: bytes, how: str) -> bytes:
    return gzip.compress(content) if how == "gz" else zstandard.ZstdCompressor(write_checksum=True).compress(content)


def damaged(content: bytes) -> bytes:
    half = len(content) // 2
    return content[:half] + b"\xff" * 8 + content[half + 8 :]


# What becomes of a compressed file -> the rows, what is done with them, how many are read, why others are not.
SPOILED: dict[str, tuple[list[Row], Callable[[bytes, str], bytes], tuple[int, int], str]] = {
    "half of it": (big_rows(), lambda data, how: data[: len(data) // 2], (75, 300), "cut short"),
    "all but the end": (big_rows(), lambda data, how: data[: int(len(data) * 0.999)], (149, 300), "cut short"),
    "damage in the middle": (big_rows(800), lambda data, how: damaged(data), (200, 800), "damaged"),
    "bytes after the stream": (GOOD, lambda data, how: data + b"garbage", (4, 4), " "),
    "joined streams": (GOOD[:2], lambda data, how: data + compressed(joined(GOOD[2:]), how), (4, 4), ""),
}


@pytest.mark.parametrize("how", ["gz", "zst"])
@pytest.mark.parametrize("case", SPOILED)
def test_compression_that_is_spoiled_keeps_what_came_before(tmp_path: Path, diagnosed: Blade, case: str, how: str) -> None:
    rows, spoil, (least, most), reason = SPOILED[case]
    path = tmp_path / f"rollouts.jsonl.{how}"
    path.write_bytes(spoil(compressed(joined(rows), how), how))
    said = diagnosed(path)
    assert least <= counts(said)[0] <= most
    assert any(reason in text for text in reasons(said)) if reason else reasons(said) == []


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_compression_cut_at_its_start_and_names_that_lie(tmp_path: Path, diagnosed: Blade, how: str) -> None:
    path = tmp_path / f"rollouts.jsonl.{how}"
    path.write_bytes(compressed(joined(GOOD), how)[:12])
    said = diagnosed(path)
    assert (said.code, said.error["slug"]) == (4, "no-readable-rows")
    assert "cut short" in said.error["error"]
    for name, content in ((path, joined(GOOD)), (tmp_path / "plain.jsonl", compressed(joined(GOOD), how))):
        name.write_bytes(content)
        assert counts(diagnosed(name)) == (4, 2, 4)


# A process's own ru_maxrss starts at what its parent held when it started it, here a test worker's hundreds of
# megabytes; VmHWM counts from the start of the program.
PEAK = """
import re, resource, runpy, sys
sys.argv = ["blade", *sys.argv[1:]]
try:
    runpy.run_module("blade", run_name="__main__")
finally:
    own = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    print("peak", max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024, file=sys.stderr)
"""


def peak_mb(cache: Path, *arguments: object) -> tuple[Said, int]:
    """Run the command in a process of its own; what it said and its peak memory."""
    words = [sys.executable, "-c", PEAK, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, env=environment(cache), check=False, timeout=300)
    err = done.stderr.decode()
    assert "Traceback" not in err
    return Said(done.returncode, done.stdout.decode(), err), int(err.splitlines()[-1].split()[1])


@pytest.mark.slow
def test_line_of_200_mb_in_bounded_memory(tmp_path: Path, cache: Path) -> None:
    path = make_run(tmp_path, GOOD)
    with path.open("ab") as file:
        file.write(b'{"reward":1,"note":"')
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + joined([make_row(2, 0)]))
    said, peak = peak_mb(cache, "diagnose", "--json", path)
    assert said.report["runs"][0]["n_rollouts"] == 5
    (entry,) = said.report["skipped"]
    assert entry["line"] == 5
    assert "longer than 67,108,864" in entry["reason"]
    assert peak < 400


@pytest.mark.parametrize("filler", [b"{},", b"[],"])
def test_a_line_of_countless_empty_objects_in_bounded_memory(tmp_path: Path, cache: Path, filler: bytes) -> None:
    path = tmp_path / "rollouts.jsonl.gz"
    path.write_bytes(compressed(joined(GOOD) + b'{"reward":1,"x":[' + filler * 12_000_000 + b"1]}\n", "gz"))
    said, peak = peak_mb(cache, "diagnose", "--json", path)
    assert said.report["runs"][0]["n_rollouts"] == 4
    (entry,) = said.report["skipped"]
    assert (entry["line"], entry["reason"]) == (5, "more than 3,000,000 lists and objects")
    assert peak < 500


NO_ROW = b"this is not a row, and neither is any of those after it\n"


@pytest.mark.slow
@pytest.mark.parametrize(("content", "how"), [(b"\0", "gz"), (b"\0", "zst"), (NO_ROW, "gz"), (NO_ROW, "zst"), (b"\n", "gz")])
def test_bomb(tmp_path: Path, cache: Path, content: bytes, how: str) -> None:
    """400 MB in less than a megabyte: the good rows before it count, the rest is not inflated."""
    path = tmp_path / f"rollouts.jsonl.{how}"
    block = (content * (1 << 20))[: 1 << 20]
    path.write_bytes(compressed(joined(GOOD), how) + compressed(block, how) * 400)
    assert path.stat().st_size < 2 << 20
    said, peak = peak_mb(cache, "diagnose", "--json", path)
    report = said.report
    assert report["runs"][0]["n_rollouts"] == 4
    assert report["skipped_total"] > 0
    assert len(report["skipped"]) <= 1000
    assert peak < 400


@pytest.mark.slow
def test_the_peak_measured_is_the_commands_own(cache: Path) -> None:
    ballast = bytearray(b"x") * (450 << 20)
    _, peak = peak_mb(cache, "--version")
    assert 10 < peak < len(ballast) >> 21


# -- rewards --------------------------------------------------------------------------------------


def literal(row: Row, key: str, text: str) -> bytes:
    """A row with a value that no JSON writer would write."""
    return encode({**row, key: "@@"}).replace(b'"@@"', text.encode())


NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400, "1" + "0" * 5000, '"1.0"', "null", "[1.0]", '{"value":1.0}', '""', DROP]


@pytest.mark.parametrize("reward", NO_NUMBERS, ids=lambda reward: str(reward)[:20] + "…" * (len(str(reward)) > 401))
def test_reward_that_is_no_number(tmp_path: Path, diagnosed: Blade, reward: Any) -> None:
    said = diagnosed(make_run(tmp_path, [*GOOD, make_row(2, 0, DROP) if reward is DROP else literal(make_row(2, 0), "reward", reward)]))
    assert (counts(said), reasons(said)) == ((5, 3, 5), [])
    assert "unscored_rewards" in said.flags
    (task,) = [task for task in said.report["tasks"] if task["task"] == "2"]
    assert task["repeats"][0] == {"repeat": 0, "outcome": "malformed", "reward": None}
    assert said.run["score"] == pytest.approx((0.5 + 1 + 0) / 3)


def added(*rows: tuple[Any, Any, Any], **more: Any) -> list[Line]:
    """Rows behind the good ones: task, repeat, reward."""
    return [make_row(*row, **more) for row in rows]


SAME = {"question": "q", "responses_create_params": {"input": "q"}}
# What is added to the good rows -> rows kept, tasks, keys scored; what the run says; its flags, and those that it has not.
READ: dict[str, tuple[list[Line], tuple[int, int, int], dict[str, Any], str, str]] = {
    # a huge reward leaves no pass rate, an absurd one is no measurement
    **{f"reward {value!r:.20}": (added((2, 0, value)), (5, 3, 5), {"reward_kind": "binary"}, "", "unscored_rewards") for value in (True, False, 1, 0)},
    **{f"reward {value!r:.20}": (added((2, 0, value)), (5, 3, 5), {"reward_kind": "unbounded"}, "", "unscored_rewards") for value in (10**30, -(10**18), 1e99)},
    **{f"reward {value!r:.20}": (added((2, 0, value)), (5, 3, 5), {"reward_kind": "binary"}, "unscored_rewards", "") for value in (1e101, -1e308, 10**400)},
    "identical": ([GOOD[0], GOOD[0]], (4, 2, 4), {"duplicates": 2}, "identical_duplicates", "differing_duplicates"),
    "differing": (added((1, 0, 0.0)), (5, 2, 4), {"duplicates": 1}, "differing_duplicates", "identical_duplicates"),
    "both": ([*added((1, 0, 0.0), (1, 0, 0.0)), GOOD[2]], (5, 2, 4), {"duplicates": 3}, "identical_duplicates differing_duplicates", ""),
    "number and text of one index": (
        added((5, 0, 1.0), (5, 1, 1.0), ("5", 0, 1.0), ("5", 2, 1.0), **SAME), (8, 3, 7), {"duplicates": 1}, "", ""
    ),
    # an odd repeat index makes a further repeat, an integer is a key
    **{f"repeat {repeat!r}": (added((0, repeat, 0.5), (1, repeat, 0.5)), (6, 2, 6), {"duplicates": 0, "repeats": 3}, "", "")
       for repeat in ("x", None, True, 1.5, 10**30, DROP, -1, 2**62)},
    **{f"mask {value!r}": (added((2, 0, 1.0), mask_sample=value), (5, 3, 4), {"masked": 1}, "", "") for value in (True, 1, 1.0, "true", "True")},
    **{f"mask {value!r}": (added((2, 0, 1.0), mask_sample=value), (5, 3, 5), {"masked": 0}, "", "") for value in (False, 0, "false", "", None, [], {})},
    # an odd response is an empty output
    **{f"response {value!r}": (added((2, 0, 1.0), response=value), (5, 3, 5), {}, "empty_outputs", "")
       for value in ("text", [], ["x"], None, 5, True, {}, DROP)},
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_is_odd_is_read_and_counted(tmp_path: Path, diagnosed: Blade, case: str) -> None:
    lines, n, run, has, lacks = READ[case]
    said = diagnosed(make_run(tmp_path, [*GOOD, *lines]))
    assert (counts(said), reasons(said)) == (n, [])
    assert {name: said.run[name] for name in run} == run
    assert set(has.split()) <= said.flags
    assert not set(lacks.split()) & said.flags
    if case.startswith("reward") and run["reward_kind"] == "binary":
        assert {task["task"]: task["passed"] for task in said.report["tasks"]}["2"] == (case in ("reward True", "reward 1"))
    repeats = {entry["repeat"] for task in said.report["tasks"] for entry in task["repeats"]}
    assert not case.startswith("repeat") or repeats == {0, 1, {"repeat -1": -1, f"repeat {2**62}": 2**62}.get(case, 2)}


# -- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "key"),
    [
        ("abc", "abc"), ("7", "7"), (7.0, "7"), (7.5, "7.5"), (-3, "-3"), (2**63, str(2**63)), (10**30, str(10**30)),
        (1e300, "1e+300"), ("x" * 300, "x" * 300), ("", ""), *((none, None) for none in (True, None, [1], {"a": 1}, DROP)),
    ],
)  # fmt: skip
def test_odd_task_index_is_a_key_all_the_same_or_the_content_is(tmp_path: Path, diagnosed: Blade, index: Any, key: str | None) -> None:
    said = diagnosed(make_run(tmp_path, [*GOOD, *(make_row(2, repeat, _ng_task_index=index) for repeat in (0, 1))]))
    assert (counts(said), reasons(said)) == ((6, 3, 6), [])
    names = {task["task"] for task in said.report["tasks"]}
    assert key in names if key is not None else any(name.startswith("content-") for name in names)
    assert ("content" in said.run["settings"].get("tasks grouped by", "")) == (key is None)


# -- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases(__file__, "odd_outputs"))
def test_odd_output(tmp_path: Path, blade: Blade, loaded: Callable[..., Any], case: Any) -> None:
    """What the columns count is what `show` shows."""
    output, n_items = cases(__file__, "odd_outputs")[case]
    response = make_response()
    response["output"] = output
    path = make_run(tmp_path, [*GOOD, make_row(2, 0, response=response)])
    said = blade("diagnose", "--json", path)
    assert (counts(said), reasons(said)) == ((5, 3, 5), [])
    assert ("empty_outputs" in said.flags) == (n_items == 0)
    assert loaded(path)[0].run.rollouts.n_items.tolist() == [1, 1, 1, 1, n_items]
    shown = blade("show", "--json", path, "2/0")
    assert shown.code == 0
    assert json.loads(shown.out)["n_steps"] == n_items


ODD_ROWS: dict[str, Line] = {
    **{odd["case"]: make_row(2, 0) | odd["row"] for odd in map(json.loads, ODD.read_text(encoding="utf-8").splitlines())},
    "usage beyond a double": make_row(2, 0, response=make_response(usage={"input_tokens": 10**400, "output_tokens": 1.5})),
    "number beyond a double": literal(make_row(2, 0), "size", "1e999"),
    "number beyond a double in an object": literal(make_row(2, 0, metadata={"a": 1, "b": "x"}), "extra", "1").replace(
        b'"a":1', b'"a":1e999'
    ),
    "number of 5,000 digits": literal(make_row(2, 0), "size", "1" + "0" * 5000),
    "number of 5,000 digits in an object": encode(make_row(2, 0, metadata={"a": 1})).replace(b'"a":1', b'"a":1' + b"0" * 5000),
    "NaN in an object": literal(make_row(2, 0), "metadata", '{"a":NaN,"b":[Infinity,"NaN"]}'),
    "NaN in the output": encode(make_row(2, 0)).replace(b'"annotations":[]', b'"annotations":[NaN]'),
    "duplicate keys": encode(make_row(2, 0)).replace(b'"reward":1.0', b'"reward":0.0,"reward":1.0'),
    "2,000 keys": make_row(2, 0, **{f"key {n}": n for n in range(2000)}),
    "key of 70,000 characters": make_row(2, 0, **{"k" * 70_000: 1}),
    "lone surrogate": json.dumps(make_row(2, 0, note="a\ud800b", question="\udfff")),
    "lone surrogate in the output": json.dumps(make_row(2, 0, response=make_response([make_message("a\ud800b")]))),
    "lone surrogate in a key": json.dumps(make_row(2, 0, **{"k\ud800": 1})),
    "lone surrogate in an object": json.dumps(make_row(2, 0, metadata={"k\ud800": "\udc00"})),
    "surrogate pair": json.dumps(make_row(2, 0, note="🦊")),
    "metadata of 3,000 keys": make_row(2, 0, metadata={f"k{n}": n for n in range(900)}),
}


@pytest.mark.parametrize("case", ODD_ROWS)
def test_odd_row_is_kept(tmp_path: Path, diagnosed: Blade, case: str) -> None:
    said = diagnosed(make_run(tmp_path / "run", [*GOOD, ODD_ROWS[case], make_row(3, 0)]))
    assert (counts(said), reasons(said)) == ((6, 4, 6), [])
    assert {task["task"]: task["passed"] for task in said.report["tasks"]} == {"0": 1, "1": 2, "2": 1, "3": 1}
    assert [reason for reason in said.report["trust"] if reason["label"] == "DA"] == []


def test_odd_rows_are_written_and_shown(tmp_path: Path, blade: Blade) -> None:
    odd = [row for case, row in ODD_ROWS.items() if "5,000 digits" not in case]
    path, out = make_run(tmp_path / "run", [*GOOD, *odd, make_row(3, 0)]), tmp_path / "report"
    for command in (("diagnose", path, "-o", out), ("show", path, "2/0"), ("init", path)):
        assert blade(*command).code == 0
    assert (out / "report.md").is_file()
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["runs"][0]["n_rollouts"] == len(odd) + 5


def test_agent_as_text_is_its_name(tmp_path: Path, diagnosed: Blade) -> None:
    assert diagnosed(make_run(tmp_path, [make_row(n, 0, agent_ref="bob") for n in range(3)])).run["agent"] == "bob"


def test_odd_row_does_not_look_like_another_task(tmp_path: Path, diagnosed: Blade) -> None:
    """Python writes NaN, and spaces after commas: the values of such a row are those of its fellows."""
    same = {"task_id": "t", "options": ["A", "B", {"c": [1, 2]}], "metadata": {"level": 1}}
    rows = [json.dumps(make_row(n, at, float("nan") if at == 2 else 1.0, **same, gold=f"g{n}")) for n in range(4) for at in range(3)]
    said = diagnosed(make_run(tmp_path, rows))
    assert counts(said) == (12, 4, 12)
    assert [one for one in said.report["trust"] if one["label"] == "DA"] == []


def test_many_fields_are_told_and_rows_with_a_key_of_their_own_stay_cheap(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_row(n, 0, **{f"key {n} {k}": k for k in range(300)}, task_id=f"t{n}", error="boom") for n in range(4)]
    said = diagnosed(make_run(tmp_path, rows))
    assert counts(said) == (4, 4, 4)
    assert "512 fields or more" in said.err
    assert [task["task_name"] for task in said.report["tasks"]] == ["t0", "t1", "t2", "t3"]
    # A map from ids to values inside an object must not make a column per row.
    rows = [make_row(n, 0, metadata={f"id-{n}-{k}": k for k in range(4)}) for n in range(400)]
    assert counts(diagnosed(make_run(tmp_path / "own", rows)))[0] == 400


# -- as a process ---------------------------------------------------------------------------------


def test_the_process_says_the_same_on_a_terminal_that_knows_no_utf8(tmp_path: Path, blade_process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, [*GOOD, "<PLACEHOLDER ROW>", make_row(2, 0, note="🦊", agent_ref={"name": "é"})])
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = blade_process("diagnose", "--json", path)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert json.loads(done.stdout)["skipped_total"] == 1
    assert blade_process("diagnose", "--nonsense").returncode == 2


# -- a reader who leaves --------------------------------------------------------------------------


def test_a_closed_pipe_costs_no_file_and_is_no_fault(tmp_path: Path, cache: Path) -> None:
    path = make_run(tmp_path, [make_row(task, 0, float(task % 2)) for task in range(80)])
    words = [sys.executable, "-m", "blade", "diagnose", "--json", str(path), "-o", str(tmp_path / "out")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(cache)) as running:
        assert running.stdout is not None
        assert running.stdout.read(1) == b"{"
        running.stdout.close()
        assert running.wait(120) == 0
    written = (tmp_path / "out" / "report.json").read_text()
    assert json.loads(written)["runs"][0]["n_rollouts"] == 80
    assert len(written) > 1 << 16  # more than a pipe holds
