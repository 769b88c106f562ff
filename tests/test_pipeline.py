"""From files to a report, on simulated runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline
from blade.report import markdown
from blade.tables.index import Silent
from tests.builders import Row, make_message, make_response, make_row, make_run
from tools import planted


@pytest.mark.parametrize("has_file", [True, False])
def test_what_is_inferred_is_said_unless_a_file_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_file: bool
) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    planted.write_run(tmp_path / "run", n_tasks=4, repeats=2)
    if has_file:
        (tmp_path / "run" / "blade.toml").write_text('name = "desk"\n')
    loaded = pipeline.load([str(tmp_path / "run")], Silent())
    said = markdown.render(pipeline.diagnose(loaded, "test"))
    assert ("tasks are told apart by" in said) is not has_file


def test_losses_add_up_to_what_the_score_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    planted.write_run(tmp_path / "run", faults=["lost_rows", "provider_errors"])
    report = pipeline.diagnose(pipeline.load([str(tmp_path / "run")], Silent()), "test")
    assert sum(loss.lost for loss in report.losses) == pytest.approx(1 - report.runs[0].score, abs=1e-9)


def test_golds_that_different_models_contradict_are_to_review_with_their_rows(cache: Path, tmp_path: Path) -> None:
    def rows(model: str) -> list[Row]:
        found = []
        for task in range(12):
            answer = 700 if task == 3 else task  # of task 3 the gold is wrong, and all models say the same
            response = make_response([make_message(f"The answer is \\boxed{{{answer}}}.")], model=model)
            for repeat in range(2):
                found.append(make_row(task, repeat, float(answer == task), response=response, expected_answer=str(task)))
        return found

    paths = [make_run(tmp_path / name, rows(f"sim-{name}"), name=name) for name in ("a", "b", "c")]
    loaded = pipeline.load([str(path) for path in paths], Silent())
    report = pipeline.diagnose(loaded, "test")
    doubts = [one for one in report.trust if "to review: different models agree" in one.text]
    assert [(one.run, one.level, one.rows) for one in doubts] == [(name, "warning", 2) for name in ("a", "b", "c")]
    from blade.pipeline.tabling import ground_of
    from blade.query.ground import Table

    found = ground_of(loaded, report=report).ask(doubts[1].query)
    assert isinstance(found, Table)
    assert [row[:3] for row in found.rows] == [("b", "3", 0), ("b", "3", 1)]
