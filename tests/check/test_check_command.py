"""`blade check` and `blade cite` as a person uses them: any report, with its run or without."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from blade.agent.reader import Patience
from blade.cli.main import main
from blade.model.measurements import PLACEHOLDER
from tests.builders import make_row, make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tools.model_server import Act, Call, Script, Status, says, serving
from tools.planted import write_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its report, made once; the report lies beside it as it was."""
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


@pytest.mark.parametrize(("name", "quotations"), [("report.md", 4), ("report.json", 20)])
def test_our_own_report_holds(blade: Blade, made: Path, name: str, quotations: int) -> None:
    said = blade("check", made / "report" / name, "--run", made / "run", "--json")
    assert said.code == 0, said.err
    findings = json.loads(said.out)["findings"]
    assert {item["verdict"] for item in findings} <= {"supported", "opinion"}
    seen = Counter(item["kind"] for item in findings)
    assert seen["citation"] > 150
    assert seen["quotation"] >= quotations


def test_a_wrong_citation_is_told_marked_and_ends_with_1(blade: Blade, made: Path, tmp_path: Path) -> None:
    path = made / "report" / "report.md"
    text, n = re.subn(r"(?m)^\| always \| 9<", "| always | 10<", path.read_text())
    assert n
    path.write_text(text)
    said = blade("check", path, "--run", made / "run", "-o", tmp_path / "marked.md")
    assert said.code == 1
    assert all(line in said.out for line in ("1 wrong (1 citation)", "cited numbers hold", "expected   9"))
    assert said.out.endswith(f"Wrote {tmp_path / 'marked.md'}\n")
    marked = (tmp_path / "marked.md").read_text()
    assert "> **contradicted**" in marked
    assert [line for line in marked.split("\n") if line in set(text.split("\n"))] != []
    assert blade("check", path, "--run", made / "run", "-o", tmp_path / "marked.md").code == 2


def test_every_cited_sentence_is_shown_in_text_and_json_or_its_arithmetic_alone(blade: Blade, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text(
        "Easy tasks pass in 59.3%<!--blade: pass_at_1 where difficulty = 'medium'--> of tries.\n\n"
        "It never asks, which costs 7 tries.\n\nThat is because it hurries.\n"
    )
    said = blade("check", path, "--run", made / "run")
    assert said.code == 0  # a true number under a wrong citation is for the reader to see
    assert [line for line in cases(__file__, "lines_about_citations") if line not in said.out] == []
    assert "What was found" not in said.out
    path.write_text("It scores 67.5%<!--blade: pass_at_1-->, on 24 tasks, because of `4/1` (“x y z” 4/1#4).\n")
    said = blade("check", "--json", path, "--run", made / "run")
    assert said.code == 1
    found = json.loads(said.out)
    schema = json.loads(resources.files("blade").joinpath("check", "check.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(found)
    assert found["schema"] == "blade.check/2"
    assert found["counts"] == {"supported": 1, "contradicted": 1, "unverifiable": 0, "uncited": 1, "opinion": 0}
    wrong = next(item for item in found["findings"] if item["verdict"] == "contradicted")
    assert (wrong["printed"], wrong["expected"], wrong["query"]) == ("67.5%", "67.01%", "pass_at_1")
    assert wrong["tasks"] == ["4/1"]
    for share, code in ((30, 0), (45, 1)):
        path.write_text(f"We solved 12 of 40 tasks ({share}%).\n")
        said = blade("check", path)
        assert said.code == code
        assert ("no contradiction in its arithmetic, nothing was checked against rows" in said.out) == (code == 0)


PLAIN = "There were 4,131 quiet ones, 4,207 loud ones and 4,312 that nobody knows.\n"
PROPOSED = {"4,131": "count where passed", "4,207": "count where no_such_column"}
PROPOSED["4,312"] = "select 'read_csv' from read_csv('/etc/passwd')"


def answering(queries: dict[str, str]) -> Script:
    """A model that has a query for some numbers, one for a number that nobody asked for, and a bad first moment."""

    def act(call: Call, number: int) -> Act:
        asked = re.findall(r"^> number (\d+): (\S+) in:", call.turns[0]["content"], re.MULTILINE)
        found = [{"id": int(place), "query": queries[text]} for place, text in asked if text in queries]
        return says({"proposals": [*found, {"id": 99, "query": "count"}]}) if number else Status(503, "come back")

    return act


def test_a_model_proposes_queries_and_the_author_sees_what_they_give(
    blade: Blade, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "sum(steps) where passed and steps > 2"
    n, passed = (
        blade("query", made / "run", one, "--csv").out.split()[-1].split(",")[0].removesuffix(".0")
        for one in (query, "count where passed")
    )
    path = tmp_path / "mine.md"
    path.write_text(f"Passing rollouts took {n} steps, leaving the shortest out.\n\n{PLAIN}")
    before = json.loads(blade("check", path, "--run", made / "run", "--json").out)["counts"]
    with serving() as server:
        server.script = answering({**PROPOSED, n: query})
        monkeypatch.setattr("blade.agent.reader.Patience", lambda: Patience(base=0.001))
        words = ("check", path, "--run", made / "run", "--llm", "--model", "m", "--base-url", server.url)
        said = blade(*words)
        told = json.loads(blade(*words, "--json").out)
    assert said.code == 0
    assert told["counts"] == before
    answers = {n: "gives it; cite it", "4,131": f"gives {passed}"}
    for number, proposed in {n: query, **PROPOSED}.items():
        answer = answers.get(number, "cannot be run")
        assert f"{number}: the model proposes {proposed}, which {answer}" in said.out
    assert f"are sent to {server.host}" in said.err
    (sent,) = {call.turns[0]["content"] for call in server.calls}
    assert "4,312 in: There were 4,131 quiet ones" in sent
    assert "packing line" not in sent, "no text of a rollout is sent"


@pytest.mark.parametrize(("words", "code"), cases(__file__, "words_that_check_refuses"))
def test_wrong_words_are_told(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.bin").write_bytes(b"\xff\xfa\x80abc")
    for name, text in cases(__file__, "files_that_check_refuses"):
        (tmp_path / name).write_text(text)
    make_run(tmp_path, [make_row(0, 0, 1.0)], name="run")
    said = blade(*words)
    assert said.code == code
    assert "Traceback" not in said.err
    assert "hint:" in said.err or "Usage" in said.err


def test_a_redacted_report_is_not_called_wrong(blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [make_row(task, repeat, float(repeat > 1)) for task in range(6) for repeat in range(4)]
    for row in rows[::4]:  # never ran, for a reason that the report quotes
        row["response"]["output"] = []
        row["error"] = "mail to jane.doe@corp-mail.com bounced: connection refused"
    run = make_run(tmp_path / "run", rows)
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a" * 64)
    assert blade("diagnose", run, "-o", tmp_path / "out", "--redact").code == 0
    for name in ("report.md", "report.json"):
        assert PLACEHOLDER.search((tmp_path / "out" / name).read_text())
        for key in ("a", "b"):
            monkeypatch.setenv("BLADE_SANITIZE_KEY", key * 64)
            said = blade("check", tmp_path / "out" / name, "--run", run, "--json")
            assert said.code == 0, [item for item in json.loads(said.out)["findings"] if item["verdict"] == "contradicted"]


# -- blade cite -------------------------------------------------------------------------------------

OPEN = (
    "Easy: {{ pass_at_1 where difficulty = 'easy' }}, {{ count | count }} rollouts, {{ tasks where passed = false | list }} fail.\n\n"
    "{{ pass_at_1 by difficulty }}\n\nIt says {{ 2/2#9 }} there; `{{ count }}` is code. Of those that pass, {{ rate where passed }} do.\n"
)


def test_what_is_filled_in_holds_and_what_cannot_be_is_left_and_told(blade: Blade, made: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "mine.md", tmp_path / "filled.md"
    path.write_text(OPEN)
    said = blade("cite", path, "--run", made / "run", "-o", out)
    assert (said.code, said.out) == (0, f"Filled in 6; wrote {out}\n")
    text = out.read_text()
    assert "Easy: 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->, 92<!--blade: count | count--> rollouts" in text
    assert "“Error: order O-20023 is locked by the packing line, nothing was changed.”<!--blade: 2/2#9-->" in text
    assert "`{{ count }}`" in text
    assert "100%<!--blade: rate where passed-->" in text, "as on every page"
    found = json.loads(blade("check", out, "--run", made / "run", "--json").out)
    assert [item["verdict"] for item in found["findings"] if item["kind"] in ("citation", "quotation")] == ["supported"] * 6
    assert found["counts"]["contradicted"] == found["counts"]["uncited"] == 0
    assert blade("cite", path, "--run", made / "run").out == text  # printed where no file is named
    assert blade("cite", path, "--run", made / "run", "--in-place").code == 0
    assert path.read_text() == text
    path.write_text("It is {{ count }}, {{ counting }} and {{ 99/0#1 }}.\n")
    said = blade("cite", path, "--run", made / "run", "--json")
    assert said.code == 1
    told = json.loads(said.out)
    assert (told["filled"], len(told["problems"])) == (1, 2)
    assert told["text"] == "It is 92<!--blade: count-->, {{ counting }} and {{ 99/0#1 }}.\n"
    said = blade("cite", path, "--run", made / "run")
    assert said.err.count("not filled in: line 1: ") == 2


@pytest.mark.parametrize("words", [("detectors",), ("completion", "bash"), ("--help",)])
def test_a_reader_who_goes_away_is_no_fault(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([sys.executable, "-m", "blade", *words], stdout=writing, stderr=subprocess.PIPE, timeout=120)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
