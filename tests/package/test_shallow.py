"""The shallow baseline: headings and aggregate tables stay, whatever they are called; a diagnosis never does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.package import layout as files
from blade.package.shallow import make_shallow, shallow
from tests.case_tables import cases

HEADLINE = "| Model | Pass@1 |\n|---|---:|\n| strong | 80.0% |\n"


@pytest.mark.parametrize("heading", cases(__file__, "headline_tables_stay_whatever_their_heading"))
def test_headline_tables_stay_whatever_their_heading(heading: str) -> None:
    made = shallow(f"# Title\n\nprose\n\n## {heading}\n\n{HEADLINE}\nmore prose\n", "x")
    assert f"## {heading}" in made
    assert "| strong | 80.0% |" in made
    assert "prose" not in made


@pytest.mark.parametrize("below", cases(__file__, "no_diagnosis_stays"))
def test_no_diagnosis_stays(below: str) -> None:
    assert "task_leak" not in shallow(f"# Title\n\n{below}", "x")


def test_what_the_draft_of_a_golden_report_keeps(made: Path) -> None:
    text = files.read_text(made / "golden_reports" / "sim_model_a_shallow.md")
    assert text.startswith("# Shallow Baseline: sim_model_a_golden_report\n")
    assert [line for line in cases(__file__, "lines_of_a_shallow_draft") if line not in text] == []
    golden = files.read_text(made / "golden_reports" / "sim_model_a_golden_report.md")
    for absent in ("Can the score be trusted?", "| Failure group |", "stopped by a limit", "Fix first"):
        assert absent in golden
        assert absent not in text


def test_a_baseline_that_a_person_changed_is_kept_unless_forced(tmp_path: Path) -> None:
    source, to = tmp_path / "golden_report.md", tmp_path / "out.md"
    source.write_text(f"# T\n\n## Scores\n\n{HEADLINE}", encoding="utf-8")
    assert make_shallow(source, to) == ""
    source.write_text(f"# T\n\n## Results\n\n{HEADLINE}", encoding="utf-8")
    assert make_shallow(source, to) == ""  # a draft that nobody touched
    assert "## Results" in to.read_text(encoding="utf-8")
    mine = to.read_text(encoding="utf-8").replace("80.0%", "81.0%")
    to.write_text(mine, encoding="utf-8")
    assert "differs" in make_shallow(source, to)
    assert to.read_text(encoding="utf-8") == mine
    assert make_shallow(source, to, force=True) == ""
    assert "80.0%" in to.read_text(encoding="utf-8")


PER_TASK = "| Task | Evidence |\n|---|---|\n| task_leak | wrong order changed |\n"
PIECES = [HEADLINE, PER_TASK, "## Scores\n", "### task_leak\n", "text\n", "```\n", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_it_adds_nothing_and_leaks_nothing(parts: list[str]) -> None:
    text = "\n".join(parts)
    made = shallow(text, "x")
    assert "task_leak" not in made
    body = made.split("Do not use it as a report.\n", 1)[1]
    assert set(filter(None, body.splitlines())) <= {line.strip() for line in text.splitlines()}
