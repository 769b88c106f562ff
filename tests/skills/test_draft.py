"""Drafts: short, true as they stand, marked where judgement belongs, and held against the rows afterwards."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from blade.agent.dossier.budget import tokens
from blade.report.chapters import chapters
from blade.report.draft_report import SECTIONS, draft
from tests.builders import make_row, make_run
from tests.conftest import Blade
from tests.inert import uncited
from tools.planted.planted_runs import write_run

RUN = "first/rollouts.jsonl"


@pytest.fixture(scope="module")
def project(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both runs and the draft on the first, for all tests that change neither."""
    return Path(shutil.copytree(planted, tmp_path_factory.mktemp("drafted") / "project"))


@pytest.fixture
def cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One cache for all tests here: they ask the same of the same run again and again."""
    monkeypatch.setenv("BLADE_CACHE_DIR", str(project.parent / "cache"))
    return project.parent / "cache"


@pytest.fixture
def drafted(project: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> str:
    """The draft as the first test made it; the test stands beside it."""
    monkeypatch.chdir(project)
    if not Path("report.md").exists():
        assert blade("draft", RUN, "-o", "report.md").code == 0
    return Path("report.md").read_text(encoding="utf-8")


def checked(blade: Blade, text: str, *runs: object) -> dict[str, Any]:
    """What check says of a changed draft."""
    Path("changed.md").write_text(text, encoding="utf-8")
    said = blade("check", "changed.md", *(runs or (RUN,)), "--json")
    printed: dict[str, Any] = json.loads(said.out)
    assert said.code == (1 if printed["counts"]["contradicted"] else 0)
    return printed


def wrong(printed: dict[str, Any]) -> dict[str, int]:
    """What is not borne out, by kind."""
    return {kind: n for kind, n in printed["counts"].items() if n and kind in ("contradicted", "unverifiable", "uncited")}


def made(blade: Blade, *arguments: object) -> str:
    """A draft of other runs, which is true as it stands."""
    assert blade("draft", *arguments, "-o", "made.md").code == 0
    text = Path("made.md").read_text(encoding="utf-8")
    runs = [word for word in arguments if not str(word).startswith("--") and not str(word)[0].isdigit()]
    assert wrong(checked(blade, text, *runs)) == {}
    return text


def test_it_is_true_and_short_and_has_all_sections(drafted: str, blade: Blade) -> None:
    printed = checked(blade, drafted)
    assert printed["counts"]["supported"] > 100
    assert wrong(printed) == {}
    assert tokens(uncited(drafted)) < 4500  # from above: common tokenizers count fewer
    assert re.findall(r"^## (.+)$", drafted, re.MULTILINE) == list(SECTIONS)
    assert not re.search(r"^### .+\n+#", uncited(drafted), re.MULTILINE)  # no heading stands over nothing
    summary = uncited(drafted).split("## Executive Summary\n")[1].split("\n## ")[0]
    table = "| Lost | Failure group | Label | Failures | Passes with it |"
    for words in ("**Can the score be trusted?**", table, "unexplained", "Fix first"):
        assert words in summary
    for words in ("Look at", "blade show"):  # the first page without the commands
        assert words not in summary


def test_a_long_note_is_cut_and_still_true(here: Path, blade: Blade) -> None:
    Path(RUN).with_name("notes.md").write_text("The desk was moved on the second day. " * 20, encoding="utf-8")
    assert blade("draft", RUN, "-o", "report.md").code == 0
    text = Path("report.md").read_text(encoding="utf-8")
    assert "characters more)" in text
    assert checked(blade, text)["counts"]["contradicted"] == 0


def test_marks_say_what_belongs_there_and_are_no_claims(drafted: str, blade: Blade) -> None:
    marks = re.findall(r"^<!-- write: .+ -->$", drafted, re.MULTILINE)
    assert len(marks) == 6
    assert f"blade check FILE --run {RUN}" in drafted
    bare = re.sub(r"^<!-- write: .+ -->\n\n", "", drafted, flags=re.MULTILINE)
    assert checked(blade, bare)["counts"] == checked(blade, drafted)["counts"]
    lied = drafted.replace("<!-- write: ", "<!-- write: The score is 99.9%, task `777` never passes. ")
    assert checked(blade, lied)["counts"] == checked(blade, drafted)["counts"]


@pytest.mark.parametrize(
    ("invented", "found"),
    [
        ("The run scored 91.3% pass@1.", "uncited"),
        ("Task `777` fails in every repeat.", "contradicted"),
        ("Of 12 tasks, 11 never pass.", "uncited"),
        ("Task `4/1` says at step 4: “I have cancelled the wrong order on purpose”.", "contradicted"),
        ("Failing, task `4/1`, step 4:\n\n```text\nthe customer was rude and I gave up\n```", "contradicted"),
        ("Sloppy calls cost 73.1 points.", "uncited"),
        ("Fixing the prompt would win 21.7 points.", "uncited"),
    ],
)
def test_what_an_agent_makes_up_is_listed(invented: str, found: str, drafted: str, blade: Blade) -> None:
    mark = re.search(r"^<!-- write: what happened .+ -->$", drafted, re.MULTILINE)
    assert mark is not None
    line = drafted[: mark.start()].count("\n") + 1
    printed = checked(blade, drafted.replace(mark[0], invented, 1))
    assert list(wrong(printed)) == [found]
    assert all(line <= one["line"] <= line + 4 for one in printed["findings"] if one["verdict"] in wrong(printed))


def test_prose_that_the_rows_bear_out_passes(drafted: str, blade: Blade) -> None:
    score = re.search(r": \*\*([\d.]+%)", drafted)
    assert score is not None
    prose = f"The run scored {score[1]}<!--blade: pass_at_1--> pass@1 over 12<!--blade: tasks--> tasks."
    for text, left in ((prose, {}), (re.sub("<!--.+?-->", "", prose), {"uncited": 2})):
        assert wrong(checked(blade, re.sub(r"<!-- write: what happened .+ -->", text, drafted))) == left


def test_several_runs_with_their_comparison(here: Path, blade: Blade) -> None:
    text = made(blade, f"a={RUN}", "b=second/rollouts.jsonl")
    for words in ("### Verdict", "Sum of", "blade compare a=first"):
        assert words in text


def test_a_threshold_is_found_again_and_a_run_needs_no_failures(here: Path, blade: Blade) -> None:
    graded = [make_row(task, at, (task + at) % 5 / 4) for task in range(6) for at in range(3)]
    text = made(blade, make_run(here / "graded.jsonl", graded), "--pass-threshold", "0.5")
    assert "a reward of 0.500 or more" in uncited(text)
    made(blade, make_run(here / "perfect.jsonl", [make_row(task) for task in range(5)]), "--force")


def test_a_name_cannot_end_a_mark(here: Path, blade: Blade) -> None:
    run = make_run(here / "x --> <b>y.jsonl", [make_row(task, 0, task % 2) for task in range(4)])
    assert blade("draft", run, "-o", "odd.md").code == 0
    for line in Path("odd.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("<!-- "):
            assert line.count("-->") == 1
            assert line.endswith("-->")


def test_it_is_not_written_over(here: Path, blade: Blade) -> None:
    Path("report.md").write_text("mine", encoding="utf-8")
    refused = blade("draft", RUN, "-o", "report.md")
    assert refused.code == 2
    assert "output-not-empty" in refused.err
    assert Path("report.md").read_text(encoding="utf-8") == "mine"
    assert blade("draft", RUN, "-o", "report.md", "--force").code == 0
    assert blade("draft", RUN, "-o", ".").code == 2


def test_a_large_run_stays_short(tmp_path: Path, cache: Path) -> None:
    from blade.pipeline import session

    run = write_run(tmp_path, n_tasks=60, seed=3, model="sim-model", rates=[0.5, 0.3]).path
    report = session([str(run)]).report
    text = draft(report, [str(run)])
    assert tokens(uncited(text)) < 9000
    assert "Not all of them are listed here" in text
    titles = {one.title for one in chapters(report)}
    assert titles == set(SECTIONS)


def test_it_leaves_out_what_the_report_alone_needs(drafted: str, blade: Blade, project: Path) -> None:
    assert blade("diagnose", RUN, "-o", "whole").code == 0
    whole, short = uncited(Path("whole/report.md").read_text(encoding="utf-8")), uncited(drafted)
    for part in ("| Read |", "| What it is |", "Effort, mean", "figures/", "| agrees |"):
        assert part in whole
        assert part not in short
    assert len(short) < len(whole)
