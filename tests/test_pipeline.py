"""From files to a report, on simulated runs."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from blade import pipeline
from blade.pipeline import report_pages, stages, trace_reading
from blade.pipeline.run_tables import ground_of
from blade.query.query_ground import Table
from blade.report import markdown_text
from blade.tables.index import Silent
from blade.tables.index_files import Index
from tests.builders import Row, make_message, make_response, make_row, make_run
from tests.conftest import environment, read, report_on
from tools import planted


@pytest.mark.parametrize("has_file", [True, False])
def test_what_is_inferred_is_said_unless_a_file_says_it(cache: Path, tmp_path: Path, has_file: bool) -> None:
    planted.write_run(tmp_path, n_tasks=4, repeats=2)
    if has_file:
        (tmp_path / "blade.toml").write_text('name = "desk"\n')
    assert ("tasks are told apart by" in markdown_text(report_on(tmp_path))) is not has_file


def test_golds_that_different_models_contradict_are_to_review_with_their_rows(cache: Path, tmp_path: Path) -> None:
    def row(model: str, task: int, repeat: int) -> Row:
        answer = 700 if task == 3 else task  # of task 3 the gold is wrong, and all models say the same
        response = make_response([make_message(f"The answer is \\boxed{{{answer}}}.")], model=model)
        return make_row(task, repeat, float(answer == task), response=response, expected_answer=str(task))

    places = list(product(range(12), range(2)))
    loaded = read(*(make_run(tmp_path / name, [row(f"sim-{name}", *place) for place in places], name=name) for name in "abc"))
    report = pipeline.diagnose(loaded, "test")
    doubts = [one for one in report.trust if "to review: different models agree" in one.text]
    assert [(one.run, one.level, one.rows) for one in doubts] == [(name, "warning", 2) for name in "abc"]
    found = ground_of(loaded, report=report).ask(doubts[1].query)
    assert isinstance(found, Table)
    assert [row[:3] for row in found.rows] == [("b", "3", 0), ("b", "3", 1)]


def reads_of(run: str, patch: pytest.MonkeyPatch) -> tuple[Counter[int], int]:
    """How often each row of a run is read from its file in one diagnosis, and how many rows are quoted."""
    reads: Counter[int] = Counter()
    row_bytes = Index.row_bytes

    def counted(self: Index, row: int) -> bytes:
        reads[row] += not self.path.stem.endswith(("_inputs", "_failures"))
        return row_bytes(self, row)

    loaded = read(run)
    with patch.context() as here:
        here.setattr(Index, "row_bytes", counted)
        report = pipeline.diagnose(loaded, "test")
    assert len(reads) == report.runs[0].n_rollouts
    places = {(entry.task, entry.repeat) for part in (report.attributions, report.health) for one in part for entry in one.evidence}
    places |= {(group.quote.task, group.quote.repeat) for group in report.groups if group.quote is not None}
    return reads, len(places)


def test_traces_are_read_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = str(planted.write_run(tmp_path, n_tasks=12, faults=["provider_errors"]).path)
    reads, _ = reads_of(run, monkeypatch)
    assert set(reads.values()) == {1}
    monkeypatch.setattr(trace_reading, "_KEPT_BYTES", 0)  # a run too large to keep: only what is quoted is opened again
    reads, n_quoted = reads_of(run, monkeypatch)
    assert sum(count > 1 for count in reads.values()) <= n_quoted < len(reads)


def test_the_list_of_stages_is_the_whole_flow_and_of_one_run_nothing_that_compares_is_loaded(cache: Path, tmp_path: Path) -> None:
    run = str(planted.write_run(tmp_path, n_tasks=4, repeats=2).path)
    work = stages.Work(Silent(), "test", [run])
    for stage in stages.LOADING:
        stage(work)
    work.scored = [report_pages.scoring_of(one, None) for one in work.loaded]
    for stage in stages.DIAGNOSING:
        stage(work)
    assert markdown_text(work.report) == markdown_text(report_on(run))
    assert [stage.__name__ for stage in stages.STAGES] == [
        "find_files", "read_rows_into_an_index", "lay_out_tables", "measure", "read_traces", "diagnose_failures", "trust",
        "conclude", "refuse_changed_files", "report", "compare",
    ]  # fmt: skip
    program = f"import sys; from blade.cli.main import main; sys.argv[0] = 'blade'\ntry: main(['diagnose', {run!r}])\nexcept SystemExit: pass\n"
    program += "print([name for name in sys.modules if name.startswith(('blade.sanitize', 'blade_eval', 'blade.check', 'blade.compare'))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment(cache))
    assert done.stdout.splitlines()[-1] == "[]"
