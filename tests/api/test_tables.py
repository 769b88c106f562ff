"""Tables: rows that filter, print themselves, and become what report.json has or a data frame."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import blade
from blade.api.answer_tables import MOST_CHARS, MOST_ROWS
from blade.model import Evidence, Group, Measure
from blade.model.enums import Cause, Confidence
from tests.report.test_hostile import HOSTILE
from tools.planted import write_run

# Method -> the list of report.json that holds its rows.
LISTS = {
    "overview": "runs", "measures": "measures", "tasks": "tasks", "buckets": "buckets", "health": "health",
    "funnels": "funnel", "slices": "slices", "trust": "trust", "groups": "groups", "unexplained": "unexplained",
    "attributions": "attributions", "run_causes": "run_causes", "losses": "losses",
    "recommendations": "recommendations", "gaps": "gaps", "skipped": "skipped", "agreements": "agreements",
}  # fmt: skip


def group(text: str, quote: Evidence | None = None) -> Group:
    return Group(
        id="g1", run="r", rung="behaviour", label=Cause.BEHAVIOUR, confidence=Confidence.LIKELY, name=text, text=text,
        points=0.25, rows=1, tasks=1, passed_rows=0, query="select 1", examples=("0/0",), quote=quote,
        why_label="", against=(), consequences=(), fix="", gain=None, most=0.25,
    )  # fmt: skip


def measures(n: int) -> blade.Table[Measure]:
    return blade.Table(Measure, (Measure("r", f"m{at}", at / 7, at) for at in range(n)))


@pytest.mark.parametrize("method", LISTS)
def test_rows_are_those_of_the_report(runs: blade.Runs, wire: Mapping[str, Any], method: str) -> None:
    found = getattr(runs, method)().to_dicts()
    if method == "overview":  # the report adds the digests of the files
        for run in [*found, *wire["runs"]]:
            run["sources"] = [{**source, "sha256": None} for source in run["sources"]]
    assert json.loads(json.dumps(found)) == wire[LISTS[method]]


@pytest.fixture(scope="module")
def wire(runs: blade.Runs) -> dict[str, Any]:
    return runs.report().to_dict()


def test_every_list_of_rows_was_compared_with_something(wire: Mapping[str, Any]) -> None:
    empty = [name for name in LISTS.values() if not wire[name]]
    assert set(empty) <= {"skipped", "agreements", "run_causes"}  # of the last the next test has some


def test_a_cause_of_the_whole_run_is_that_of_the_report(folder: Path) -> None:
    write_run(folder / "results", name="outage", n_tasks=16, faults=["provider_errors:24"])
    found = blade.load("results/outage.jsonl")
    rows = found.run_causes().to_dicts()
    assert [row["cause"] for row in rows] == ["IR"]
    assert json.loads(json.dumps(rows)) == found.report().to_dict()["run_causes"]


def test_a_table_is_a_list_that_filters() -> None:
    table = measures(5)
    assert [row.n for row in table] == [0, 1, 2, 3, 4]
    assert isinstance(table[1:3], blade.Table)
    assert table[1:3].column("n") == [1, 2]
    assert table.where(lambda row: row.n > 2).column("n") == [3, 4]
    assert table.where(lambda row: row.n > 2, name="m3") == table[3:4]
    assert table.where(name="none") != table
    assert table[-1].n == 4


@pytest.mark.parametrize("ask", [lambda table: table.where(nme="x"), lambda table: table.column("nme")])
def test_a_field_that_is_not_there_is_told(ask: Any) -> None:
    with pytest.raises(blade.UsageError, match="has no field nme\nhint: its fields are run, name"):
        ask(measures(1))


def test_text_is_short_and_says_how_much_there_is() -> None:
    said = repr(measures(25))
    assert said.startswith("25 x Measure\n")
    assert said.endswith("... 15 more")
    assert "more" not in repr(measures(10))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_a_rollout_says_is_inert_in_a_notebook(text: str) -> None:
    shown = blade.Table(Group, [group(text)])._repr_html_()
    tags = {part.partition(">")[0].lstrip("/") for part in shown.split("<")[1:]}
    assert tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    printed = shown + repr(blade.Table(Group, [group(text)]))
    assert not set(printed.replace("\n", "")) & {"\x1b", "\x07", "\x00", "\u202e", "\u2066", "\x9b"}


def test_a_notebook_shows_so_many_rows_and_so_much_of_a_text() -> None:
    assert measures(MOST_ROWS + 5)._repr_html_().count("<tr>") == MOST_ROWS + 1
    assert f"the first {MOST_ROWS} shown" in measures(MOST_ROWS + 5)._repr_html_()
    assert "shown" not in measures(MOST_ROWS)._repr_html_()
    shown = blade.Table(Group, [group("x" * 5000)])._repr_html_()
    assert "x" * (MOST_CHARS // 2) in shown
    assert "x" * (MOST_CHARS + 1) not in shown


@pytest.mark.parametrize("name", ["pandas", "polars"])
@pytest.mark.parametrize("method", LISTS)
def test_data_frames_have_every_row_and_scalar(runs: blade.Runs, method: str, name: str) -> None:
    pytest.importorskip(name)
    table = getattr(runs, method)()
    frame = getattr(table, f"to_{name}")()
    assert frame.shape[0] == len(table)
    rows = table.to_dicts()
    for key in [key for key in (rows[0] if rows else {}) if all(isinstance(row[key], str) for row in rows)]:
        assert list(frame[key]) == [row[key] for row in rows]
    if not rows:
        assert list(frame.columns) == list(table.fields)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_nested_objects_are_columns(name: str) -> None:
    pytest.importorskip(name)
    table = blade.Table(Group, [group("a", Evidence("r", "7", 2, 3, None, "words"))])
    frame = getattr(table, f"to_{name}")()
    assert [list(frame[f"quote.{part}"]) for part in ("task", "repeat", "step", "text")] == [["7"], [2], [3], ["words"]]


def test_an_attribution_names_the_group_that_holds_its_task(run: blade.Runs) -> None:
    groups = {one.id: one for one in run.groups()}
    explained = run.attributions().where(lambda one: one.group != "")
    assert explained
    assert {(one.cause, one.mode) for one in explained} <= {(one.label, one.name) for one in groups.values()}
    lost = sum(run.groups().column("points")) + sum(run.unexplained().column("points"))
    assert lost == pytest.approx(1 - (run.score or 0))


def test_the_query_of_a_group_gives_its_rows(run: blade.Runs) -> None:
    for one in [*run.groups(), *run.unexplained()]:
        assert len(run.query(one.query).rows) == one.rows
    first = run.groups()[0]
    places = {f"{row['task']}/{row['repeat']}" for row in run.query(first.query).to_dicts()}
    assert set(first.examples) <= places


def test_a_task_matrix_takes_several_runs(runs: blade.Runs) -> None:
    matrix = runs.task_matrix
    assert matrix is not None
    assert matrix.runs == ("before", "after")
    rates = {(task.run, task.task): task.rate for task in runs.tasks() if task.n}
    for task, passes in zip(matrix.tasks, matrix.passes, strict=True):
        assert passes == tuple(rates.get((name, task)) for name in matrix.runs)
    assert runs["before"].task_matrix is None


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_what_is_not_installed_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # importing it fails as if it were not there
    with pytest.raises(blade.UsageError, match=f"{name} is not installed(.|\n)*pip install {name}"):
        getattr(measures(1), f"to_{name}")()


def test_one_kind_of_data_frame_is_tested_where_all_must_hold() -> None:
    """`make test` installs one of the two, so that the tests above are not all skipped."""
    assert importlib.util.find_spec("pandas") or importlib.util.find_spec("polars")
