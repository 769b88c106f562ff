"""Every scalar of a row is a column, and what is inside lists and objects is a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.query.query_ground import Ground, Table
from tests.builders import Row, make_input, make_message, make_response, make_row
from tests.case_tables import cases
from tests.query.grounds import ground

pytestmark = pytest.mark.usefixtures("cache")


def rows_of(told: Ground, sql: str) -> list[tuple[Any, ...]]:
    found = told.ask(sql)
    assert isinstance(found, Table)
    return list(found.rows)


def one(told: Ground, sql: str) -> Any:
    ((cell,),) = rows_of(told, sql)
    return cell


@pytest.mark.parametrize(("label", "rows", "answers"), cases(__file__, "rows and their tables"))
def test_what_rows_become(tmp_path: Path, label: str, rows: list[Any], answers: list[Any]) -> None:
    told = ground(tmp_path, [row_of(*row) for row in rows])
    for sql, cells in answers:
        assert rows_of(told, sql) == [tuple(row) for row in cells], label


def row_of(task: int, repeat: int, reward: float, fields: dict[str, Any]) -> Row:
    """A row whose request and response have what they usually have, and those fields."""
    row = make_row(task, repeat, reward, **{name: value for name, value in fields.items() if name != "output"})
    row["response"] = make_response(fields.get("output"), **fields.get("response", {}))
    return row


def test_long_texts_are_cut_with_a_mark_but_stay_two_values_and_whole_numbers_keep_all_digits(tmp_path: Path) -> None:
    told = ground(tmp_path, [make_row(0, 0, 1.0, log="x" * 5000, full="y" * 200, level="hard")])
    assert one(told, "select log from rollouts") == "x" * 199 + "…"
    assert rows_of(told, "select path from fields where is_cut") == [("log",)]
    texts = ["x" * 300, "x" * 301, "x" * 300, "y" * 300]
    told = ground(tmp_path / "alike", [make_row(task, 0, 1.0, log=text) for task, text in enumerate(texts)])
    assert one(told, "select count(distinct log) from rollouts") == 3
    assert one(told, "select \"distinct\" from fields where path = 'log'") == 3
    seeds = [1234567890123456780 + n for n in range(9)]
    told = ground(tmp_path / "seeds", [make_row(n, 0, 1.0, seed=seed) for n, seed in enumerate(seeds)])
    assert one(told, "select count(distinct seed) from rollouts") == 9
    assert one(told, f"select count(*) from rollouts where seed = {seeds[3]}") == 1
    near = ground(tmp_path / "near", [make_row(n, 0, 1.0, seed=(1 << 53) - 1 - n) for n in range(3)])
    assert rows_of(near, "select sum(seed) from rollouts") == [(3 * (1 << 53) - 6,)]


def test_keys_that_few_rows_have_or_come_late_and_objects_of_very_many_keys(tmp_path: Path) -> None:
    rows = [make_row(task, 0, 1.0, info={"seen": {}}) for task in range(100)]
    for row, keys in ((rows[0], "abc"), (rows[1], "cd")):
        row["info"]["seen"] = {key: key == "a" for key in keys}
    told = ground(tmp_path, rows)
    sql = "select path, type, presence, \"distinct\", example from fields where path like 'info%'"
    assert rows_of(told, sql) == [("info.seen.*", "boolean", 2, 2, "True")], "rows and values, not keys"
    tests = {f"test_{number}": "passed" if number % 3 else "failed" for number in range(400)}
    told = ground(tmp_path / "many", [make_row(0, 0, 0.0, results=tests), make_row(1, 0, 1.0, results={"test_1": "passed"})])
    assert one(told, "select count(*) from checks where status = 'failed' and task = '0'") == 134
    assert one(told, "select count(*) from rollouts where check_failed('test_3')") == 1
    rows = [make_row(task, 0, 1.0, info={"a": task}) for task in range(300)]
    rows += [make_row(300, 0, 1.0, info={"a": 300, "late": {"b": "x"}}), make_row(301, 0, 1.0, info="plain")]
    told = ground(tmp_path / "late", rows)
    assert one(told, 'select count("info.a") from rollouts') == 301
    assert rows_of(told, 'select task, "info.late.b" from rollouts where "info.late.b" is not null') == [("300", "x")]


@pytest.mark.parametrize(("text", "answer", "source"), cases(__file__, "answers"))
def test_answers(tmp_path: Path, text: str, answer: str | None, source: str | None) -> None:
    told = ground(tmp_path, [make_row(0, 0, 1.0, response=make_response([make_message(text)]))])
    assert one(told, "select answer from rollouts") == answer
    assert rows_of(told, "select source from answers") == ([(source,)] if source else [])


def boxed_rows(gold_of: dict[int, str], key: str = "expected_answer") -> list[dict[str, Any]]:
    """Three repeats of each task, the last one wrong."""
    rows = []
    for task, gold in gold_of.items():
        for repeat in range(3):
            text = f"\\boxed{{{gold if repeat < 2 else 'other'}}}"
            row = make_row(task, repeat, float(repeat < 2), response=make_response([make_message(text)]))
            rows.append({**row, key: gold})
    return rows


def test_the_gold_is_what_passing_answers_equal_whatever_its_name_and_place(tmp_path: Path) -> None:
    rows = boxed_rows({0: "4", 1: "x+1", 2: "seven"}, key="zebra")
    told = ground(tmp_path, [{**row, "label": "misleading"} for row in rows])
    assert one(told, "select count(*) from rollouts where equals_gold = passed") == 9
    assert rows_of(told, "select distinct gold from rollouts order by 1") == [("4",), ("seven",), ("x+1",)]
    rows = boxed_rows({0: "4", 1: "9", 2: "12"})
    told = ground(tmp_path / "others", [{**row, "expected_answer": f"f() == {row['expected_answer']}"} for row in rows])
    assert one(told, "select count(gold) from rollouts") == 9
    assert one(told, "select count(equals_gold) from rollouts") == 0
    inputs = [make_input(row) for row in rows]
    told = ground(tmp_path / "inputs", [{k: v for k, v in row.items() if k != "expected_answer"} for row in rows], inputs=inputs)
    assert one(told, "select count(*) from rollouts where gold is not null and equals_gold = passed") == 9


def test_what_the_verifier_read_is_the_answer_before_what_we_read(tmp_path: Path) -> None:
    rows = [
        {**row, "read": "" if row["reward"] == 0 and row["_ng_task_index"] == 0 else read}
        for row in boxed_rows({task: str(task) for task in range(12)}, key="target")
        for read in [row["target"] if row["reward"] else "other"]
    ]
    rows = [{**row, "target": f"{row['target']} apples"} for row in rows]  # so that no pass equals the gold
    rows[3]["read"] = "a verifier reads something else here"
    told = ground(tmp_path, rows)
    assert one(told, "select count(*) from rollouts where answer is distinct from nullif(read, '')") == 0
    assert one(told, "select count(*) from answers where source = 'field'") == 35
    echo = ground(tmp_path / "gold", boxed_rows({task: str(task) for task in range(12)}))
    assert one(echo, "select count(*) from answers where source = 'field'") == 0, "the gold is no answer"


ROLES = {
    "same": ("x", "constant"),
    "level": (lambda task, repeat: f"level {task % 2}", "task-level"),
    "name": (lambda task, repeat: f"task {task}", "identity"),
    "uid": (lambda task, repeat: f"{task}-{repeat}", "identity"),
    "won": (lambda task, repeat: bool((task + repeat) % 2), "reward"),
    "why": (lambda task, repeat: "good" if (task + repeat) % 2 else ("late", "wrong")[task % 2], "verdict"),
    "spent": (lambda task, repeat: 100.5 + 7 * task + 3 * repeat, "effort"),
    "log": (lambda task, repeat: f"line {task} {repeat} " + "word " * 40, "text"),
    "noise": (lambda task, repeat: "abc"[(task + repeat * 2) % 3], "other"),
}


@pytest.mark.parametrize("path", ROLES)
def test_roles_follow_from_how_values_behave(tmp_path: Path, path: str) -> None:
    made, role = ROLES[path]
    rows = [
        make_row(task, repeat, float((task + repeat) % 2), thing=made(task, repeat) if callable(made) else made)
        for task in range(12)
        for repeat in range(3)
    ]
    assert one(ground(tmp_path, rows), "select role from fields where path = 'thing'") == role


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=20)


@settings(max_examples=15)
@given(st.dictionaries(NAMES, SCALARS, max_size=4), st.dictionaries(NAMES, SCALARS, max_size=4))
def test_hostile_names_and_values_do_no_harm(tmp_path_factory: pytest.TempPathFactory, flat: dict[str, Any], inner: dict[str, Any]) -> None:
    row = {**flat, **make_row(0, 0, 1.0), "inner": inner}
    told = ground(tmp_path_factory.mktemp("run"), [row, make_row(1, 0, 0.0)])
    assert one(told, "select count(*) from rollouts") == 2
    for path, column in rows_of(told, 'select path, "column" from fields where "column" is not null'):
        quoted = column.replace('"', '""')
        one(told, f'select count("{quoted}") from rollouts')
        assert path
