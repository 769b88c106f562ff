"""What the server refuses, that links lead it nowhere, and that nothing takes it down."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blade.agent.mcp import pages
from blade.agent.mcp import roots as under
from blade.report.blocks import para
from blade.tables import cache
from tests.builders import make_message, make_response, make_row, make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tests.mcp_server.conftest import Asking, environment, frames, here, served, started
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


@pytest.mark.parametrize(("name", "given", "says"), cases(__file__, "refusals"))
def test_errors_say_what_to_do_next(ask: Asking, name: str, given: dict[str, Any], says: list[str]) -> None:
    text = ask.error(name, **given)
    assert [part for part in says if part not in text] == [], text


@pytest.mark.parametrize("path", [*cases(__file__, "outside"), "a" * 5000, "a/" * 5000, "./" + "a" * 5000])
def test_nothing_outside_is_read(ask: Asking, folder: Path, path: str) -> None:
    path = path.format(folder)
    text = ask.error("blade_summary", run=path)
    assert "hidden" not in text.replace(path.replace("\0", ""), "")
    assert "outside the folders" in text or "no run" in text
    assert "pass@1" not in text
    text = ask.error("blade_check_claims", path=path.replace("hidden.jsonl", "report.md"))
    assert "outside the folders" in text or "does not exist" in text


def test_links_lead_nowhere_else(ask: Asking, folder: Path) -> None:
    inside = folder / "runs"
    links = {"link.jsonl": "secret/hidden.jsonl", "deeper": "secret", "link.md": "secret/report.md"}
    try:
        for name, target in links.items():
            (inside / name).symlink_to(folder / target)
        assert {run["name"] for run in ask.json("blade_list_runs")["runs"]} == {"first", "second"}
        for run in ("link.jsonl", "deeper", "deeper/hidden.jsonl", str(inside / "link.jsonl")):
            text = ask.error("blade_summary", run=run)
            assert "outside" in text or "no run" in text
        assert "outside" in ask.error("blade_check_claims", path="link.md")
    finally:
        for name in links:
            (inside / name).unlink(missing_ok=True)


def test_a_single_file_is_the_only_run(folder: Path) -> None:
    first = folder / "runs" / "first.jsonl"
    held = under.roots([str(first)])
    assert [place.name for place in under.places(held)] == ["first"]
    assert not held.holds(first.with_name("second.jsonl"))
    assert here(first).json("blade_fields")["run"] == "first"  # and need not be named
    named = under.roots([f"mine={first}"])
    assert [place.specs for place in under.places(named)] == [(f"mine={first}",)]


def test_two_who_ask_at_a_time_have_the_work_done_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, n_tasks=2, repeats=1)
    ask = here(tmp_path)
    threads = [threading.Thread(target=ask.json, args=("blade_summary",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capfd.readouterr().err.count("reading the traces") == 1


def test_pings_and_other_tools_are_answered_while_one_waits(folder: Path, tmp_path: Path) -> None:
    path = folder / "runs" / "second.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path))
        index = cache.folder_for(path)
    with served(tmp_path, path) as (portal, client):
        index.mkdir(parents=True, exist_ok=True)
        with cache.locked(index, lambda: None):  # as if another process were at work on it
            call = portal.start_task_soon(client.call_tool, "blade_summary", {})
            while "waiting for another process" not in (tmp_path / "stderr.txt").read_text():
                assert not call.done()
            assert len(portal.call(client.list_tools).tools) == 14
            given = {"report": "7 of 5 tasks failed.", "format": "json"}
            checked = portal.call(client.call_tool, "blade_check_claims", given).structured_content
            assert checked["counts"]["contradicted"] == 1
            assert not call.done()
        assert call.result().is_error is False


def test_pages_are_cut_by_length_and_lose_nothing() -> None:
    texts = [f"{n} " + "x" * 3000 for n in range(20)] + ["20 " + "y" * 100_000, "21"]
    for form in ("json", "markdown"):
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            question = SimpleNamespace(format=form, limit=200, offset=offset)
            page = pages.listed(question, "T", {}, "texts", texts, lambda entry: [para(entry["text"])], wire=lambda text: {"text": text})
            numbers = re.findall(r"(?:\bcount\b|next_offset)\W+(\w+)", page.text)
            count, following = int(numbers[0]), numbers[1]
            assert 1 <= count <= 8
            seen += texts[offset : offset + count]
            offset = int(following) if following.isdigit() else None
        assert seen == texts
    assert (pages.as_json({"text": "z" * 10_000}).document or {})["text"].endswith("… (6,000 characters more)")


def test_one_of_several_agents_is_named_by_run_and_agent(tmp_path: Path) -> None:
    rows = [make_row(task, 0, float(task == at), agent_ref={"name": f"agent{at}"}) for at in (0, 1) for task in range(3)]
    ask = here(make_run(tmp_path, rows, name="both"))
    (place,) = ask.json("blade_list_runs")["runs"]
    assert [run["name"] for run in place["runs"]] == ["both:agent0", "both:agent1"]
    assert [run["name"] for run in ask.json("blade_summary", run="both:agent1")["runs"]] == ["both:agent1"]
    assert "both:agent0" not in ask.text("blade_summary", run="both:agent1")
    for run in ("both", "both:nobody"):
        assert "both:agent0, both:agent1" in ask.error("blade_tasks", run=run)


def test_nothing_but_the_protocol_on_stdout_and_no_line_without_an_answer(folder: Path, tmp_path: Path) -> None:
    half = "\ud800"  # half of a character: no JSON, but rollouts hold it and clients repeat it
    summaries = [{"name": "blade_summary", "arguments": {"run": run}} for run in ("first", "../x", f"no{half}")]
    reports = [f"7 of 5 {half} tasks failed.", "7 of 5 tasks failed."]
    checks = [{"name": "blade_check_claims", "arguments": {"report": report}} for report in reports]
    calls = [*summaries, {"name": f"no{half}", "arguments": {}}, *checks]
    broken = [b"not JSON\n", b"\xff\xfe\n", b"[]\n", b'{"jsonrpc": "2.0", "id": {}, "method": 3}\n']
    requests = frames(*(("tools/call", call) for call in calls), ("tools/list", {}), ("ping", {}))
    sent = b"\n{]\n\xff\xfe\n" + requests + b"".join(broken)
    process = started(tmp_path, folder / "runs", command=[sys.executable, "-c", NOISY], said=sent)
    lines = [process.stdout.readline() for _ in range(9 + 7)]
    rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, b"")
    assert b"noise" not in b"".join(lines)
    assert errors.count(b"noise of a child") == len(calls)
    assert b"noise at the end" in errors
    answers = [json.loads(line) for line in lines]
    results = {answer["id"]: answer["result"] for answer in answers if answer["id"] is not None}
    assert sorted(results) == list(range(9))
    assert [results[number].get("isError", False) for number in range(1, 7)] == [False, True, True, True, False, False]
    assert "there is no run no\ufffd" in results[3]["content"][0]["text"]
    assert "there is no tool no\ufffd" in results[4]["content"][0]["text"]
    assert {answer["error"]["code"] for answer in answers if answer["id"] is None} == {-32700, -32600}


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_end_it_at_once(folder: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    process = started(tmp_path, folder / "runs", said=frames())
    process.stdout.readline()
    process.send_signal(sent)
    assert process.wait(timeout=60) == code
    process.communicate()


def test_an_empty_folder_is_served_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ask = here()
    assert ask.json("blade_list_runs")["total"] == 0
    assert "no run yet" in ask.error("blade_summary")
    write_run(tmp_path, name="late", n_tasks=2, repeats=1)
    assert [run["name"] for run in ask.json("blade_list_runs")["runs"]] == ["late"]


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from blade.cli.main import main; main(['mcp'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(tmp_path), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: the MCP server needs the package mcp",
        "hint:  install it: pip install 'blade-diagnostics[mcp]'",
        "see:   docs/errors.md#mcp-not-installed",
    ]


def test_standard_input_is_no_run(blade: Blade) -> None:
    refused = blade("mcp", "-")
    assert (refused.code, refused.out) == (2, "")
    assert "is the protocol" in refused.err


# -- links ------------------------------------------------------------------------------------------

READS = [
    ("blade_summary", {"run": "r"}),
    ("blade_compare", {"baseline": "r", "candidates": ["r"]}),
    ("blade_check_claims", {"report": "7 of 5 tasks failed.", "runs": ["r"]}),
]
SAID = "The parcel is on its way, I am sure of it."
GIVEN = {
    "task": "0", "repeat": 0, "step": 0, "quote": SAID, "cause": "BI",
    "mechanism": "It claims what it did not look up.",
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run in a folder of its own, and another folder beside it."""
    (tmp_path / "outside").mkdir()
    response = make_response([make_message(SAID)])
    rows = [make_row(task, at, float(task > 0), response=response) for task in range(3) for at in range(2)]
    return make_run(tmp_path / "root", rows, name="r")


def record(root: Path) -> str:
    return here(root).text("blade_record_judgement", by="a reader", judgements=[GIVEN])


def refused(root: Path, name: str, given: dict[str, Any]) -> bool:
    return "#outside-roots" in here(root).error(name, **given)


@pytest.mark.parametrize("as_file", [False, True], ids=["a folder", "a single file"])
@pytest.mark.parametrize("is_there", [False, True], ids=["to nothing", "to a file"])
def test_nothing_is_written_through_a_link(as_file: bool, is_there: bool, run: Path) -> None:
    root = run if as_file else run.parent
    target = run.parent.parent / "outside" / "stolen.jsonl"
    if is_there:
        target.write_text("", encoding="utf-8")
    kept = run.with_name("r_judgements.jsonl")
    kept.symlink_to(target)
    for name, given in [("blade_record_judgement", {"by": "x", "judgements": [GIVEN]}), *READS]:
        assert refused(root, name, given)
    assert target.exists() is is_there
    assert not is_there or target.read_text(encoding="utf-8") == ""
    kept.unlink()
    assert "1 judgement verified and kept" in record(root)
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 1


def test_nor_through_a_link_that_stays_inside(run: Path) -> None:
    own = run.with_name("own.txt")
    own.write_text("", encoding="utf-8")
    run.with_name("r_judgements.jsonl").symlink_to(own)
    assert refused(run.parent, "blade_record_judgement", {"by": "x", "judgements": [GIVEN]})
    assert own.read_text(encoding="utf-8") == ""
    assert refused(run, *READS[0])  # of a single file nothing else in its folder is a root
    assert here(run.parent).text("blade_summary")  # reading leads nowhere else


def test_a_folder_of_the_run_may_be_no_link_either(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "config.yaml").write_text("temperature: 0.123\n", encoding="utf-8")
    hydra = run.parent / ".hydra"
    hydra.symlink_to(outside)
    assert refused(run, *READS[0])
    assert refused(run.parent, *READS[0])
    hydra.unlink()
    shutil.copytree(outside, hydra)
    assert here(run).text("blade_summary") == here(run.parent).text("blade_summary")


def test_a_folder_that_links_back_is_outside_all_the_same(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "s.jsonl").symlink_to(run)  # what it holds lies inside, what is beside it does not
    (run.parent / "deeper").symlink_to(outside)
    here(run.parent).error("blade_record_judgement", run="deeper/s.jsonl", by="x", judgements=[GIVEN])
    assert os.listdir(outside) == ["s.jsonl"]


def test_a_link_that_was_named_is_judged_beside_its_name(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "s.jsonl").symlink_to(run)
    assert "1 judgement verified and kept" in record(outside / "s.jsonl")
    assert (outside / "s_judgements.jsonl").is_file()
    assert os.listdir(run.parent) == ["r.jsonl"]
