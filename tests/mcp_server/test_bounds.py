"""What the server refuses, and that nothing takes it down."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blade.agent.mcp import pages, tool_table
from blade.agent.mcp import roots as under
from blade.agent.mcp.roots import House
from blade.errors import UsageError
from blade.report.blocks import para
from blade.tables import cache
from tests.builders import make_row, make_run
from tests.conftest import ROOT
from tests.mcp_server.asking import COMMAND, Asking, asking, environment, frames, started
from tools.planted import write_run

NOISY = """
import atexit, os, sys
import blade.agent.mcp.tool_table as tool_table
from blade.agent.mcp.server import serve
atexit.register(print, "noise at the end")
answers = tool_table.called
def noisy(*given):
    print("noise"); os.write(1, b"noise of a library in C\\n"); os.system("echo noise of a child")
    return answers(*given)
tool_table.called = noisy
serve(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("blade_tasks", {"run": "nobody"}, ["no run nobody", "first.jsonl", "second.jsonl"]),
        ("blade_tasks", {}, ["no run was named", "first.jsonl"]),
        ("blade_tasks", {"run": "first", "limit": 0}, ["limit"]),
        ("blade_tasks", {"run": "first", "offset": -1}, ["offset"]),
        ("blade_tasks", {"run": "first", "bucket": "rarely"}, ["bucket", "sometimes"]),
        ("blade_tasks", {"run": "first", "limits": 3}, ["limits", "limit"]),
        ("blade_tasks", {"run": ["first"]}, ["run"]),
        ("blade_tasks", {"run": "first", "pass_threshold": "nan"}, ["finite"]),
        ("blade_show", {"run": "first", "task": "no such"}, ["no task", "its 8 tasks"]),
        ("blade_show", {"run": "first", "task": "0", "repeat": 99}, ["no repeat 99", "0, 1, 2"]),
        ("blade_dossier", {"run": "first", "task": "no such"}, ["no task"]),
        ("blade_dossier", {"run": "first", "task": "0", "budget": 1}, ["budget"]),
        ("blade_compare", {"baseline": "first", "candidates": ["first"]}, ["two runs"]),
        ("blade_compare", {"baseline": "first", "candidates": []}, ["candidates"]),
        ("blade_check_claims", {}, ["report", "path"]),
        ("blade_check_claims", {"report": "x", "path": "report.md"}, ["one report"]),
        ("blade_check_claims", {"path": "no.md"}, ["does not exist"]),
        ("blade_record_judgement", {"run": "first", "by": "x", "judgements": []}, ["judgements"]),
        ("blade_record_judgement", {"run": "first", "by": "x", "judgements": [{"task": "0", "cause": "XX"}]}, ["cause"]),
        ("blade_none", {}, ["no tool", "blade_list_runs"]),
    ],
)  # fmt: skip
def test_errors_say_what_to_do_next(ask: Asking, name: str, given: dict[str, Any], says: list[str]) -> None:
    said = ask.error(name, **given)
    assert all(part in said for part in says), said


@pytest.mark.parametrize(
    "path",
    [
        "../secret/hidden.jsonl",
        "{}/secret/hidden.jsonl",
        "{}/secret",
        "/etc/passwd",
        "..",
        "../../..",
        "a/../../secret",
        "first.jsonl/../../secret",
        "./\0",
        "-",
    ],
)
def test_nothing_outside_is_read(ask: Asking, folder: Path, path: str) -> None:
    said = ask.error("blade_summary", run=path.format(folder))
    assert "hidden" not in said.replace(path.format(folder).replace("\0", ""), "")
    assert "outside the folders" in said or "no run" in said
    assert "pass@1" not in said


@pytest.mark.parametrize("path", ["../secret/report.md", "{}/secret/report.md", "/etc/passwd", "..", "\0"])
def test_no_report_outside_is_checked(ask: Asking, folder: Path, path: str) -> None:
    assert "outside the folders" in ask.error("blade_check_claims", path=path.format(folder))


def test_links_lead_nowhere_else(ask: Asking, folder: Path, tmp_path: Path) -> None:
    inside = folder / "runs"
    made = [inside / "link.jsonl", inside / "deeper", inside / "link.md"]
    targets = [folder / "secret" / "hidden.jsonl", folder / "secret", folder / "secret" / "report.md"]
    try:
        for link, target in zip(made, targets, strict=True):
            link.symlink_to(target)
        assert {run["name"] for run in ask.json("blade_list_runs")["runs"]} == {"first", "second"}
        for asked in ("link.jsonl", "deeper", "deeper/hidden.jsonl", str(inside / "link.jsonl")):
            assert "outside" in ask.error("blade_summary", run=asked) or "no run" in ask.error(
                "blade_summary", run=asked
            )
        assert "outside" in ask.error("blade_check_claims", path="link.md")
    finally:
        for link in made:
            link.unlink(missing_ok=True)


def test_files_beside_a_run_may_not_lead_elsewhere(tmp_path: Path) -> None:
    write_run(tmp_path / "in", n_tasks=2, repeats=1)
    (tmp_path / "private.md").write_text("a private note")
    (tmp_path / "in" / "notes.md").symlink_to(tmp_path / "private.md")
    with asking(tmp_path, tmp_path / "in") as ask:
        assert "link that leads out" in ask.error("blade_summary")
        (tmp_path / "in" / "notes.md").unlink()
        assert ask.json("blade_summary")["runs"]


def test_a_single_file_is_the_only_run(folder: Path) -> None:
    held = under.roots([str(folder / "runs" / "first.jsonl")])
    assert [place.name for place in under.places(held)] == ["first"]
    assert not held.holds(folder / "runs" / "second.jsonl")
    named = under.roots([f"mine={folder / 'runs' / 'first.jsonl'}"])
    assert [place.specs for place in under.places(named)] == [(f"mine={folder / 'runs' / 'first.jsonl'}",)]


def test_two_who_ask_at_a_time_have_the_work_done_once(folder: Path, tmp_path: Path) -> None:
    with asking(tmp_path, folder / "runs" / "second.jsonl") as ask:
        told = ask.both("blade_summary", {"format": "markdown"}, format="json")
        assert [one.is_error for one in told] == [False, False]
        assert ask.errors.read_text().count("reading the traces") == 1


def test_pings_and_other_tools_are_answered_while_one_waits(folder: Path, tmp_path: Path) -> None:
    path = folder / "runs" / "second.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path))
        index = cache.folder_for(path)
    with asking(tmp_path, path) as ask:
        index.mkdir(parents=True, exist_ok=True)
        with cache.locked(index, lambda: None):  # as if another process were at work on it
            call = ask.portal.start_task_soon(ask.client.call_tool, "blade_summary", {})
            while "waiting for another process" not in ask.errors.read_text():
                assert not call.done()
            assert len(ask.portal.call(ask.client.list_tools).tools) == 14
            checked = ask.json("blade_check_claims", report="7 of 5 tasks failed.")
            assert checked["counts"]["contradicted"] == 1
            assert not call.done()
        assert call.result().is_error is False


def test_pages_are_cut_by_length_and_lose_nothing() -> None:
    texts = [f"{n} " + "x" * 3000 for n in range(20)] + ["20 " + "y" * 100_000, "21"]
    for form in ("json", "markdown"):
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            asked = SimpleNamespace(format=form, limit=200, offset=offset)
            page = pages.listed(asked, "T", {}, "texts", texts, lambda entry: [para(entry["text"])], wire=lambda text: {"text": text})
            numbers = re.findall(r"(?:\bcount\b|next_offset)\W+(\w+)", page.text)
            count, following = int(numbers[0]), numbers[1]
            assert 1 <= count <= 8
            seen += texts[offset : offset + count]
            offset = int(following) if following.isdigit() else None
        assert seen == texts
    long = pages.as_json({"text": "z" * 10_000}).document
    assert long is not None
    assert long["text"].endswith("… (6,000 characters more)")


def test_one_of_several_agents_is_named_by_run_and_agent(tmp_path: Path) -> None:
    rows = [
        make_row(task, 0, float(task == at), agent_ref={"name": f"agent{at}"})
        for at in (0, 1)
        for task in range(3)
    ]
    house = House(under.roots([str(make_run(tmp_path, rows, name="both"))]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
        (place,) = json.loads(tool_table.called(house, "blade_list_runs", {"format": "json"}).text)["runs"]
        assert [run["name"] for run in place["runs"]] == ["both:agent0", "both:agent1"]
        told = json.loads(tool_table.called(house, "blade_summary", {"format": "json", "run": "both:agent1"}).text)
        assert [run["name"] for run in told["runs"]] == ["both:agent1"]
        assert "both:agent0" not in tool_table.called(house, "blade_summary", {"run": "both:agent1"}).text
        for run in ("both", "both:nobody"):
            with pytest.raises(UsageError) as refused:
                tool_table.called(house, "blade_tasks", {"run": run})
            assert "both:agent0, both:agent1" in refused.value.hint


def answered(out: bytes) -> dict[int, dict[str, Any]]:
    """The answers by the number of their question; every line is a frame of the protocol."""
    told = [json.loads(line) for line in out.splitlines()]
    assert all(one["jsonrpc"] == "2.0" and ("id" in one or "method" in one) for one in told)
    return {one["id"]: one for one in told if "id" in one}


def test_nothing_but_the_protocol_on_stdout(folder: Path, tmp_path: Path) -> None:
    calls = [
        ("tools/list", {}),
        ("tools/call", {"name": "blade_summary", "arguments": {"run": "first"}}),
        ("tools/call", {"name": "blade_summary", "arguments": {"run": "../x"}}),
        ("ping", {}),
    ]
    process = started(tmp_path, folder / "runs", command=[sys.executable, "-c", NOISY])
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(frames(*calls))
    process.stdin.flush()
    out = b"".join(process.stdout.readline() for _ in range(1 + len(calls)))
    rest, errors = process.communicate(timeout=60)
    told = answered(out + rest)
    assert set(told) == set(range(1 + len(calls)))
    assert told[2]["result"]["isError"] is False
    assert told[3]["result"]["isError"] is True
    assert b"noise" not in out + rest
    assert errors.count(b"noise of a child") == 2
    assert b"noise at the end" in errors
    assert process.returncode == 0


def test_frames_that_are_no_frames_do_not_end_it(folder: Path, tmp_path: Path) -> None:
    process = started(tmp_path, folder / "runs")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n{]\n\xff\xfe\n" + frames(("tools/call", {"name": "blade_list_runs"})))
    process.stdin.flush()
    found: dict[int, dict[str, Any]] = {}
    while 1 not in found:
        found |= answered(process.stdout.readline())
    out, _ = process.communicate(timeout=60)
    assert found[1]["result"]["isError"] is False
    assert process.returncode == 0
    assert not out


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_end_it_at_once(folder: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    process = started(tmp_path, folder / "runs")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(frames())
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(sent)
    assert process.wait(timeout=60) == code
    process.communicate()


def test_no_line_stays_without_an_answer(folder: Path, tmp_path: Path) -> None:
    half = "\ud800"  # half of a character: no JSON, but rollouts hold it and clients repeat it
    good = ("tools/call", {"name": "blade_check_claims", "arguments": {"report": "7 of 5 tasks failed."}})
    calls = [
        ("tools/call", {"name": "blade_summary", "arguments": {"run": f"no{half}"}}),
        ("tools/call", {"name": f"no{half}", "arguments": {}}),
        (
            "tools/call",
            {"name": "blade_check_claims", "arguments": {"report": f"7 of 5 {half} tasks failed."}},
        ),
        good,
    ]
    process = started(tmp_path, folder / "runs")
    assert process.stdin is not None
    assert process.stdout is not None
    broken = [b"not JSON\n", b"\xff\xfe\n", b"[]\n", b'{"jsonrpc": "2.0", "id": {}, "method": 3}\n']
    process.stdin.write(frames(*calls) + b"".join(broken))
    process.stdin.flush()
    out = [json.loads(process.stdout.readline()) for _ in range(1 + len(calls) + len(broken))]
    process.communicate()
    told = {one["id"]: one for one in out if one["id"] is not None}
    assert sorted(told) == [0, 1, 2, 3, 4]
    assert "there is no run no\ufffd" in told[1]["result"]["content"][0]["text"]
    assert "there is no tool no\ufffd" in told[2]["result"]["content"][0]["text"]
    assert not told[3]["result"].get("isError")
    refused = [one["error"]["code"] for one in out if one["id"] is None]
    assert refused == [-32700, -32700, -32600, -32600]


def test_an_empty_folder_is_served_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with asking(tmp_path, cwd=tmp_path / "empty") as ask:
        assert ask.json("blade_list_runs")["total"] == 0
        assert "no run yet" in ask.error("blade_summary")
        write_run(tmp_path / "empty", name="late", n_tasks=2, repeats=1)
        assert [run["name"] for run in ask.json("blade_list_runs")["runs"]] == ["late"]


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from blade.cli.main import main; main(['mcp'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(tmp_path), check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: the MCP server needs the package mcp",
        "hint:  install it: pip install 'blade-diagnostics[mcp]'",
        "see:   docs/errors.md#mcp-not-installed",
    ]


def test_the_command_is_quick_to_load() -> None:
    code = "import sys, blade.cli.mcp; print(sorted({'mcp', 'anyio', 'numpy', 'msgspec', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_standard_input_is_no_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "-"],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert "is the protocol" in done.stderr
    assert os.fsencode(done.stdout) == b""
