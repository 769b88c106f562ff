"""Runs in Python: what they answer is what the command line answers, in tables that filter and print themselves; nothing is printed."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import blade
from blade.api.answer_tables import MOST_CHARS, MOST_ROWS
from blade.cli.main import main
from blade.model import Evidence, Group, Measure
from blade.model.enums import Cause, Confidence
from tests.builders import make_row, make_run
from tests.inert import uncited
from tests.report.test_hostile import HOSTILE
from tools.planted import write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that holds `results/`, and is where paths begin."""
    place = tmp_path_factory.mktemp("api")
    write_run(place / "results", name="before", n_tasks=16, faults=("provider_errors:4", "lost_rows:2", "failed_rows:1"))
    write_run(
        place / "results", name="after", n_tasks=16, seed=3, model="sim-model-b", rates=[0.9, 0.7, 0.5, 1.0]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(place / "cache"))
        patch.chdir(place)
        yield place


@pytest.fixture(scope="module")
def run(folder: Path) -> blade.Runs:
    return blade.load("results/before.jsonl")


@pytest.fixture(scope="module")
def runs(folder: Path) -> blade.Runs:
    return blade.load("results/before.jsonl", "results/after.jsonl")


# ---- Runs -------------------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints, the cache being that of the module."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    told = capsys.readouterr()
    assert stop.value.code == code, told.err
    return told.out


def test_import_loads_nothing_and_everything_offered_is_there() -> None:
    program = "import sys, blade; print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "blade" in loaded
    assert not loaded & {"numpy", "scipy", "msgspec", "click", "rich", "jinja2", "pandas", "polars"}
    from blade import api

    assert set(blade.__all__) - {"__version__"} == set(api.__all__)
    assert all(getattr(blade, name) is getattr(api, name) for name in api.__all__)
    assert set(blade.__all__) <= set(dir(blade))
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        blade.lod  # noqa: B018


def test_reports_are_those_of_the_command_line(run: blade.Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.report().json() == said(capsys, "diagnose", "results/before.jsonl", "--json")
    assert run.report().summary() == said(capsys, "diagnose", "results/before.jsonl")
    both = ("results/before.jsonl", "results/after.jsonl")
    change = run.compare("results/after.jsonl", margin=0.05).report()
    assert change.json() == said(capsys, "compare", *both, "--margin", "0.05", "--json")
    assert change.summary() == said(capsys, "compare", *both, "--margin", "0.05")


def test_a_threshold_is_that_of_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make_row(task, repeat, (task + repeat) % 5 / 4) for task in range(4) for repeat in range(3)]
    path = make_run(folder / "graded", rows)
    graded = blade.load(path, threshold=0.5)
    assert graded.report().json() == said(capsys, "diagnose", str(path), "--pass-threshold", "0.5", "--json")
    assert graded.score != blade.load(path).score
    with pytest.raises(blade.UsageError, match="different thresholds"):
        graded.compare(blade.load(path))


def test_pages_are_those_that_are_written(run: blade.Runs, tmp_path: Path) -> None:
    report = run.report()
    paths = [path for path in report.write(tmp_path) if path.suffix != ".svg"]
    written = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert report.html() == written["report.html"]
    assert report.json() == written["report.json"]
    assert report.markdown() == uncited(written["report.md"])
    assert "<script" not in report._repr_html_()
    assert report._repr_html_().count("<iframe sandbox ") == 1
    with pytest.raises(blade.Unreadable, match="cannot write"):
        report.write(tmp_path / "report.json")


def test_runs_are_a_mapping_by_name(runs: blade.Runs) -> None:
    assert list(runs) == ["before", "after"]
    assert len(runs) == 2
    assert "after" in runs
    assert "other" not in runs
    assert runs["after"] == runs["after"] != runs["before"]
    assert {task.run for task in runs["after"].tasks()} == {"after"}
    assert {task.run for task in runs.tasks()} == {"before", "after"}
    assert [run["name"] for run in runs["after"].report().to_dict()["runs"]] == ["after"]
    with pytest.raises(KeyError, match="there is no run named other"):
        runs["other"]


@pytest.mark.parametrize("ask", [lambda runs: runs.score, lambda runs: runs.rollout("8"), lambda runs: runs.dossier("8"), lambda runs: runs.run])
def test_what_concerns_one_run_is_asked_of_one(runs: blade.Runs, ask: Callable[[blade.Runs], Any]) -> None:
    with pytest.raises(blade.UsageError, match=r"2 runs were read\nhint: take one with runs\[NAME\]: before, after"):
        ask(runs)


def test_what_is_shown_has_its_n_and_its_interval(run: blade.Runs, runs: blade.Runs) -> None:
    score = run.measures().where(name="pass_at_1")[0]
    for shown in (repr(run), repr(runs)):
        assert f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}], 16 tasks, 61 rollouts" in shown
    assert run._repr_html_().count("<tr>") == 2
    assert runs._repr_html_().count("<tr>") == 3
    assert "<th>low</th><th>high</th>" in runs._repr_html_()


def test_a_name_that_would_move_the_cursor_is_shown_without(folder: Path) -> None:
    rows = [make_row(task, 0, task % 2) for task in range(3)]
    path = make_run(folder / "odd", rows, name="a\x1b[2J\u202eb")
    run = blade.load(path)
    change = run.compare(path)
    shown = (*map(repr, (run, run.report(), change, run.tasks())), run._repr_html_(), change._repr_html_())
    assert not set("".join(shown)) & {"\x1b", "\u202e"}


def test_runs_of_one_file_or_one_name_are_compared_and_those_that_cannot_be_say_why(folder: Path) -> None:
    agents = enumerate({"type": "agent", "name": name} for name in ("one", "two"))
    rows = [make_row(task, 0, (task + at) % 2, agent_ref=ref) for at, ref in agents for task in range(3)]
    runs = blade.load(make_run(folder / "agents", rows, name="both"))
    assert list(runs) == ["both:one", "both:two"]
    change = runs["both:two"].compare(runs["both:one"])
    assert (change.baseline, change.candidate) == ("both:two", "both:one")
    assert change.delta == pytest.approx((runs["both:one"].score or 0) - (runs["both:two"].score or 0))
    rows = [make_row(f"t{at}", 0, 1.0, question=f"what is {at}") for at in range(3)]
    other = make_run(folder / "foreign", rows)
    write_run(folder / "desk", n_tasks=3, repeats=2)
    change = blade.load("desk").compare(other)
    assert change.refused
    assert change.delta is None
    assert "refused" in repr(change)
    for place in ("x", "y"):
        write_run(folder / place, n_tasks=4, repeats=2, seed=ord(place))
    x, y = blade.load("x"), blade.load("y")
    assert x.name == y.name == "rollouts"
    change = x.compare(y)
    assert (change.baseline, change.candidate) == ("x/rollouts", "y/rollouts")


def test_comparisons_agree_however_the_runs_were_loaded_and_a_run_is_equal_to_itself(run: blade.Runs, runs: blade.Runs) -> None:
    apart = run.compare("results/after.jsonl")
    for other in (runs.compare(), runs["before"].compare(runs["after"]), run.compare(runs["after"])):
        assert other.to_dicts() == apart.to_dicts()
    back = runs["after"].compare(run)
    assert (back.baseline, back.candidate) == ("after", "before")
    assert back.delta == pytest.approx(-(apart.delta or 0))
    assert f"before against after: −{repr(apart).partition(': +')[2][:4]} points" in repr(back).replace("<blade.Comparison ", "")
    assert apart.delta == pytest.approx(sum(term.value for term in apart.bridge()), abs=1e-9)
    assert apart["after"].verdict == apart.verdict
    assert "before" in repr(apart)
    assert "<table>" in apart._repr_html_()
    for change in (run.compare(run), run.compare("results/before.jsonl")):
        assert change.details.identical
        assert change.delta == 0


def test_several_candidates_are_asked_one_by_one(folder: Path) -> None:
    three = ("a", "b", "c")
    for at, name in enumerate(three):
        write_run(folder / "three", name=name, n_tasks=6, repeats=2, seed=at)
    runs = blade.load(*(f"three/{name}.jsonl" for name in three))
    change = runs.compare(series=True)
    assert change.comparisons.column("candidate") == ["b", "c"]
    assert change["c"].candidate == "c"
    with pytest.raises(blade.UsageError, match=r"comparison\[NAME\]: b, c"):
        _ = change.delta
    with pytest.raises(blade.UsageError, match="they are b, c"):
        change["a"]
    assert change.report().to_dict()["series"]["runs"] == list(three)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda run: blade.load(), "no path was given"),
        (lambda run: blade.load("results/none.jsonl"), "does not exist"),
        (lambda run: blade.load("results/before.jsonl", threshold=float("nan")), "no number to pass at"),
        (lambda run: run.compare(), "a comparison takes two"),
        (lambda run: run.compare("results/after.jsonl", margin=0), "a margin of 0"),
        (lambda run: run.rollout("8", 9), "no repeat 9\nhint: it has the repeats 0, 1, 2, 3"),
        (lambda run: run.rollout("none"), "has no task none"),
        (lambda run: run.check("none.md"), "none.md does not exist"),
    ],
)
def test_errors_say_what_to_do(run: blade.Runs, ask: Callable[[blade.Runs], Any], told: str) -> None:
    with pytest.raises(blade.BladeError, match=told) as caught:
        ask(run)
    assert f"\nhint: {caught.value.hint}" in str(caught.value)
    assert caught.value.slug


def test_rows_that_share_a_key_are_not_chosen_among(folder: Path) -> None:
    path = make_run(folder / "twice", [make_row(0, 0, 1.0), make_row(0, 0, 0.0), make_row(1, 0, 1.0)])
    run = blade.load(path)
    assert len(run.rollouts(0)) == 2
    with pytest.raises(blade.UsageError, match="2 rows are repeat 0 of task 0"):
        run.rollout(0, 0)
    assert run.rollout(1).steps[0].text == "the answer"


def test_nothing_is_printed_unless_asked(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [make_row(task, 0, task % 2) for task in range(4)]
    path = make_run(folder / "quiet", [*rows, "not a row"])
    run = blade.load(path)
    run.report().summary()
    assert capfd.readouterr() == ("", "")
    assert len(run.skipped()) == 1
    path.write_bytes(path.read_bytes() * 2)
    blade.load(path, progress=True)
    told = capfd.readouterr()
    assert told.out == ""
    assert "..." in told.err


def test_a_judgement_counts_at_once_and_is_taken_back(folder: Path) -> None:
    write_run(folder / "judged", n_tasks=6, repeats=3, rates=[0.3])
    run = blade.load("judged")
    was = run.attributions()[0]
    place = next(one for one in was.evidence if one.step is not None)
    cause = "KG" if was.cause != "KG" else "UK"
    kept = run.label(
        was.task, cause=cause, repeat=place.repeat or 0, step=place.step, quote=place.quote or "",
        mechanism="It does not know.", by="ann",
    )  # fmt: skip
    assert run.judgements().column("id") == [kept.id]
    now = run.attributions().where(task=was.task)[0]
    assert (now.cause, now.judged_by, now.proposed) == (cause, "ann", was.cause)
    assert sum(run.losses().where(cause=cause).column("lost")) > 0
    assert run.agreements().where(first="engine", second="ann")[0].agreed == 0
    assert was.task not in run.queue(most=None).column("task")
    place = {"repeat": 0, "step": 0, "field": "reward"}
    with pytest.raises(blade.UsageError, match="refused"):
        run.label(was.task, cause=cause, quote="x", mechanism="It guesses.", by="ann", **place)
    assert len(run.judgements()) == 1
    run.withdraw(was.task, by="ann")
    assert run.attributions().where(task=was.task)[0].cause == was.cause


def test_a_check_is_that_of_the_command_line(
    run: blade.Runs, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "select count(*) from tasks where bucket = 'never'"
    text = f"The run before has a pass@1 of 62.0%<!--blade: pass_at_1-->, and 3<!--blade: {query}--> tasks never pass.\n"
    (folder / "said.md").write_text(text)
    found = run.check(folder / "said.md")
    assert not found.ok
    assert found.counts["contradicted"] == len(found.problems().where(verdict="contradicted")) == 1
    assert run.check(text).to_dict() == run.check("said.md").to_dict() == found.to_dict()
    (folder / "wide.md").write_text(text, encoding="utf-16")
    assert run.check("wide.md").to_dict() == found.to_dict()
    assert json.loads(said(capsys, "check", "said.md", "--run", "results/before.jsonl", "--json", code=1)) == found.to_dict()


# ---- Tables -----------------------------------------------------------------------------------------


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


def test_every_list_of_rows_was_compared_with_something(wire: Mapping[str, Any], folder: Path) -> None:
    empty = [name for name in LISTS.values() if not wire[name]]
    assert set(empty) <= {"skipped", "agreements", "run_causes"}  # of the last this run has some:
    write_run(folder / "results", name="outage", n_tasks=16, faults=["provider_errors:24"])
    found = blade.load("results/outage.jsonl")
    rows = found.run_causes().to_dicts()
    assert [row["cause"] for row in rows] == ["IR"]
    assert json.loads(json.dumps(rows)) == found.report().to_dict()["run_causes"]


def test_a_table_is_a_list_that_filters_and_shows_so_many_rows_and_so_much_of_a_text() -> None:
    table = measures(5)
    assert [row.n for row in table] == [0, 1, 2, 3, 4]
    assert isinstance(table[1:3], blade.Table)
    assert table[1:3].column("n") == [1, 2]
    assert table.where(lambda row: row.n > 2).column("n") == [3, 4]
    assert table.where(lambda row: row.n > 2, name="m3") == table[3:4]
    assert table.where(name="none") != table
    assert table[-1].n == 4
    for ask in (lambda: table.where(nme="x"), lambda: table.column("nme")):
        with pytest.raises(blade.UsageError, match="has no field nme\nhint: its fields are run, name"):
            ask()
    said = repr(measures(25))
    assert (said.startswith("25 x Measure\n"), said.endswith("... 15 more")) == (True, True)
    assert "more" not in repr(measures(10))
    assert measures(MOST_ROWS + 5)._repr_html_().count("<tr>") == MOST_ROWS + 1
    assert f"the first {MOST_ROWS} shown" in measures(MOST_ROWS + 5)._repr_html_()
    assert "shown" not in measures(MOST_ROWS)._repr_html_()
    shown = blade.Table(Group, [group("x" * 5000)])._repr_html_()
    assert "x" * (MOST_CHARS // 2) in shown
    assert "x" * (MOST_CHARS + 1) not in shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_a_rollout_says_is_inert_in_a_notebook(text: str) -> None:
    shown = blade.Table(Group, [group(text)])._repr_html_()
    tags = {part.partition(">")[0].lstrip("/") for part in shown.split("<")[1:]}
    assert tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    printed = shown + repr(blade.Table(Group, [group(text)]))
    assert not set(printed.replace("\n", "")) & {"\x1b", "\x07", "\x00", "\u202e", "\u2066", "\x9b"}


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


def test_an_attribution_names_the_group_that_holds_its_task_and_the_query_gives_its_rows(run: blade.Runs) -> None:
    groups = {one.id: one for one in run.groups()}
    explained = run.attributions().where(lambda one: one.group != "")
    assert explained
    assert {(one.cause, one.mode) for one in explained} <= {(one.label, one.name) for one in groups.values()}
    lost = sum(run.groups().column("points")) + sum(run.unexplained().column("points"))
    assert lost == pytest.approx(1 - (run.score or 0))
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


# ---- The examples of docs/python.md, run as they stand ----------------------------------------------


PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
FRAMES = ("pandas", "polars")


def examples(text: str, without: tuple[str, ...] = ()) -> list[doctest.Example]:
    """What stands behind `>>>` in the blocks of a page, less what needs one of the packages named."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [one for block in blocks for one in doctest.DocTestParser().get_examples(block)]
    needs = [name for name in without if importlib.util.find_spec(name) is None]
    frames = {"frame"} if "pandas" in needs else set()
    words = {*(f"to_{name}" for name in needs), *frames}
    return [one for one in found if not any(word in one.source for word in words)]


def failures(found: list[doctest.Example]) -> tuple[int, str]:
    test = doctest.DocTest(found, {}, "docs/python.md", None, None, None)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    result = runner.run(test, out=told.append)
    return result.failed, "".join(told)


def test_the_examples_of_the_page_say_what_they_say_and_a_planted_wrong_one_is_seen(folder: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = examples(text, without=FRAMES)
    assert len(found) > 40
    failed, told = failures(found)
    assert not failed, told
    assert all(any(f"to_{name}" in one.source for one in examples(text)) for name in FRAMES)
    planted = examples("text\n```python\n>>> 1 + 1\n3\n\n```\n")
    assert failures(planted)[0] == 1
