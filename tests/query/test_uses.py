"""The same short form where people use it: the command line, labels, gates, Python."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.builders import make_call, make_message, make_response, make_result, make_row, make_rows, make_run
from tests.case_tables import cases
from tests.conftest import Blade

STORY = "word " * 90  # longer than what a column keeps


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four tasks of three repeats; what searches passes, and a private address stands in a message."""
    rows = []
    for task in range(4):
        for repeat in range(3):
            is_right = repeat < task
            calls = [make_call("1", "search", '{"q": "x"}'), make_result("1", "hit")] if is_right else []
            text = "found it" if is_right else "=1+1 I give up, write to jane.roe@corp-mail.example"
            output = [*calls, make_message(text)]
            rows.append(make_row(task, repeat, float(is_right), response=make_response(output), level=f"l{task % 2}", story=STORY))
    return make_run(tmp_path / "run", rows)


def test_a_table_in_every_form(blade: Blade, run: Path, tmp_path: Path) -> None:
    sql = "select task, count(*) as n from rollouts where passed group by 1 order by 1"
    assert list(csv.reader(io.StringIO(blade("query", run, sql, "--csv").out)))[1] == ["1", "1"]
    assert blade("query", run, sql, "--limit", 1).out.count("\n") == 4
    path = tmp_path / "out.parquet"
    assert blade("query", run, sql, "--parquet", path).out == f"Wrote {path}\n"
    assert "is there already" in blade("query", run, sql, "--parquet", path).err
    assert blade("query", run, sql, "--parquet", path, "--force").code == 0
    assert duckdb.connect().execute(f"select sum(n) from '{path}'").fetchall() == [(6,)]


def test_cells_cannot_become_formulas_and_private_text_is_replaced(blade: Blade, run: Path) -> None:
    sql = "select text from steps where text like '%give up%' limit 1"
    assert next(csv.reader(io.StringIO(blade("query", run, sql, "--csv").out.split("\n", 1)[1])))[0].startswith("'=")
    assert "jane.roe" in blade("query", run, sql).out
    assert "jane.roe" not in blade("query", run, sql, "--redact", "--json").out
    nested = sql.replace("text from", "[text] as l, {'a': {'b': text}} as s, 'hunter2x9' as password, 'hunter2x9' as x, 1 as \"a@b.io\" from")
    for form in ("--json", "--csv"):
        plain, said = (blade("query", run, nested, form, *more).out for more in ((), ("--redact",)))
        assert [value in plain for value in ("jane.roe", "hunter2x9", "a@b.io")] == [True] * 3
        assert not [value for value in ("jane.roe", "hunter2x9", "a@b.io") if value in said]


@pytest.mark.parametrize(
    "cell", ["reverse(text)", "substr(text, 1, 9)", "text[1:9]", "text [1 : 9]", "hex(text)", "text || 'x'", "text::blob",
             "text.reverse()", "regexp_replace(text, '@', ' ')"],
)  # fmt: skip
def test_b12_no_function_spells_a_private_value_otherwise(blade: Blade, run: Path, cell: str) -> None:
    said = blade("query", run, f"select {cell} as x from steps", "--redact")
    assert (said.code, "may spell a private value" in said.err) == (2, True), said.err
    for harmless in ("max(text)", "length(text)", "list(text)", "'reverse(x)'", "[text]", "count(*) filter (text like '%a%')"):
        said = blade("query", run, f"select {harmless} as x from steps", "--redact", "--json")
        assert (said.code, "jane.roe" in said.out) == (0, False), said.err


@pytest.mark.parametrize(("words", "message"), cases(__file__, "faults"))
def test_faults_in_words(blade: Blade, run: Path, words: list[str], message: str) -> None:
    said = blade("query", *(run if word == "RUN" else word for word in words))
    assert said.code == 2
    assert message in said.err


def test_measures_and_fields_on_the_command_line(blade: Blade, run: Path) -> None:
    told = json.loads(blade("fields", run, "--json").out)["fields"]
    assert {field["path"]: field["role"] for field in told}["level"] == "task-level"
    assert "level" in blade("fields", run, "--role", "task-level").out
    assert "more rows: --limit 0 or --json print all" in blade("fields", run, "--limit", 1).out
    said = blade("query", run, "count where calls('serach') = 0", "--json")
    assert json.loads(said.out)["notes"] == [said.err.strip().splitlines()[-1].removeprefix("note: ")]
    said = blade("query", run, "pass_at_1")
    assert said.out.startswith("50.0% [")
    assert "n = 4 tasks" in said.out
    told = json.loads(blade("query", run, "tasks where not passed", "--json").out)
    assert (told["value"], told["tasks"]) == (3, ["0", "1", "2"])
    assert blade("query", run, "pass_at_1.low").out.strip().endswith("%")
    whole, low = (json.loads(blade("query", run, f"pass_at_1{part}", "--json").out) for part in ("", ".low"))
    assert low["value"] == whole["low"] < whole["value"]
    assert int(blade("query", run, "rate.n", "--csv").out.splitlines()[1].split(",")[0]) == 12
    assert "l0" in blade("query", run, "pass_at_1 by level").out


def test_rows_of_another_shape(blade: Blade, tmp_path: Path) -> None:
    rows = [
        {"id": name, "score": score, "chat": [{"role": "assistant", "content": f"answer {name}"}], "meta": {"topic": topic}}
        for name, score, topic in (("a", "1.0", "x"), ("b", 0, "x"), ("c", True, "y"))
    ]
    path = make_run(tmp_path, rows)
    how = ("--map", "trace=chat,reward=score,task=id")
    told = json.loads(blade("query", path, 'pass_at_1 by "meta.topic"', *how, "--json").out)
    assert [(group["group"], group["value"]) for group in told["groups"]] == [("x", 0.5), ("y", 1.0)]
    assert json.loads(blade("query", path, "count where says('answer b')", *how, "--json").out)["value"] == 1
    assert json.loads(blade("query", path, "select path from runs", *how, "--json").out) == [{"path": str(path)}]
    renamed = 'the field score of the rows is called "field.score" here'
    assert renamed in blade("query", path, "mean(score)", *how).err
    assert renamed not in blade("query", path, "mean(field.score)", *how).err
    assert "name their fields: --map trace=" in blade("query", path, "count").err, "no row of it is a rollout"
    chats = make_run(tmp_path / "chats", [{**row, "messages": row["chat"]} for row in rows])
    assert "no row has a reward; for rows that are not NeMo Gym's, --map" in blade("query", chats, "rate").err
    assert "no row has the field 'nosuch'" in blade("query", path, "count", "--map", "reward=nosuch").err


def test_what_lies_beside_rows_of_another_shape_counts(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [{"tid": name, "score": 0.5} for name in "abcde"])
    (tmp_path / "blade.toml").write_text("pass_threshold = 0.4\n", encoding="utf-8")
    path.with_name(f"{path.stem}_failures.jsonl").write_text(json.dumps(make_row(0)) + "\n", encoding="utf-8")
    said = blade("diagnose", path, "--map", "reward=score,task=tid")
    assert "100% passed (5 of 5" in said.out
    assert "other keys than its inputs and failures have; those are left out" in said.err


@pytest.mark.parametrize("n", [3, 20_000])
def test_rows_of_another_shape_on_standard_input_are_read_once(n: int, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"tid": {task}, "score": {task % 2}, "text": "{"x" * 100}"}}\n' for task in range(n))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert json.loads(blade("query", "-", "rate", "--map", "reward=score,task=tid", "--json").out)["value"] == n // 2 / n
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert "no row has the field 'nosuch'" in blade("query", "-", "count", "--map", "reward=nosuch").err


def test_calls_and_answers_of_rows_of_another_shape(blade: Blade, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
    chat = [
        {"role": "user", "content": "find it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no hits"},
        {"role": "assistant", "content": "It is \\boxed{4}"},
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps({"n": n, "ok": n % 2, "chat": chat, "said": "\\boxed{5}"}) + "\n" for n in range(4)))
    sql = "select sum(calls), any_value(last_tool), any_value(answer), (select count(*) from calls where failed) from rollouts"
    told = json.loads(blade("query", path, sql, "--map", "task=n,reward=ok,trace=chat", "--json").out)
    assert list(told[0].values()) == [4, "search", "4", 4]
    told = json.loads(blade("query", path, "count where answer = '5'", "--map", "task=n,reward=ok,trace=said", "--json").out)
    assert told["value"] == 4


@pytest.mark.parametrize(("query", "note", "absent"), cases(__file__, "notes"))
def test_what_a_query_cannot_see_is_told(blade: Blade, run: Path, query: str, note: str | None, absent: str | None) -> None:
    said = blade("query", run, query)
    assert note is None or note in said.err
    assert absent is None or absent not in said.err


@pytest.mark.parametrize(("sql", "rows"), cases(__file__, "json"))
def test_json_has_numbers_that_json_has(blade: Blade, run: Path, sql: str, rows: list[Any]) -> None:
    assert json.loads(blade("query", run, sql, "--json").out, parse_constant=pytest.fail) == rows


def test_gates_ask_queries(blade: Blade, tmp_path: Path) -> None:
    before = make_run(tmp_path / "a", make_rows({task: [1, 0] for task in range(30)}, flag=False))
    after = make_run(tmp_path / "b", make_rows({task: [1, 0] for task in range(30)}, flag=True))
    policy = tmp_path / "gate.toml"
    policy.write_text("[[metric]]\nquery = 'count where flag'\nmax_rise = 0.05\n", encoding="utf-8")
    said = blade("compare", f"a={before}", f"b={after}", "--gate", policy)
    assert said.code == 1
    assert "count where flag" in said.out
    policy.write_text("[[metric]]\nquery = 'count where not flag'\nname = 'score'\nmax_rise = 0.05\n", encoding="utf-8")
    assert "a name and a query" in blade("compare", f"a={before}", f"b={after}", "--gate", policy).err


def test_in_python(run: Path, cache: Path) -> None:
    import blade

    loaded = blade.load(run)
    found = loaded.query("pass_at_1 by level")
    assert found.columns[0] == "level"
    assert loaded.query("pass_at_1").value == 0.5
    frame = loaded.query("select task, reward from rollouts").to_pandas()
    assert frame.shape == (12, 2)
    assert "level" in {row["path"] for row in loaded.fields().to_dicts()}
