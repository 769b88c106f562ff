"""The short form of a query: what it counts, over which rows, with which interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline
from blade.errors import UsageError
from blade.query import query_process
from blade.query.measures import Measure, measure_of
from blade.query.query_ground import Ground, value
from blade.tables.index import Silent
from tests.builders import make_call, make_message, make_response, make_result, make_row, make_rows, make_run
from tests.case_tables import cases
from tests.query.grounds import ground

pytestmark = pytest.mark.usefixtures("cache")


@pytest.mark.parametrize(("text", "parts"), cases(__file__, "taken apart"))
def test_taken_apart(text: str, parts: list[str | None] | None) -> None:
    assert measure_of(text) == (Measure(*parts) if parts else None)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", cases(__file__, "malformed"))
def test_malformed_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        measure_of(text)


@pytest.mark.parametrize(("text", "message"), cases(__file__, "misread"))
def test_what_is_wrong_is_said(told: Ground, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        told.ask(text)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    rows = make_rows({0: [1, 1, 0, 0], 1: [1, 1, 1, 1], 2: [0, 0, 0, 0]}, kind="plain")
    rows += make_rows({3: [1, 0]}, kind="odd")
    rows += [make_row(4, 0, 1.0, mask_sample=True, kind="odd")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        shared = ground(tmp_path_factory.mktemp("runs"), rows)
        shared.ask("select count(*) from steps, rollouts")
    return shared


@pytest.mark.parametrize(("query", "expected"), cases(__file__, "measures"))
def test_values(told: Ground, query: str, expected: float | None) -> None:
    found = value(query, told)
    assert found == expected if expected is None else found == pytest.approx(expected, abs=1e-12)


def test_groups_and_lists(told: Ground) -> None:
    assert {answer.group: answer.value for answer in told.ask("count by kind")} == {"odd": 3, "plain": 12}  # type: ignore[union-attr]
    (answer,) = told.ask("tasks where not passed")  # type: ignore[misc]
    assert answer.tasks == ("0", "2", "3")


def test_intervals_are_those_of_the_report(tmp_path: Path) -> None:
    rows = make_rows({task: [(task * 7 + at * 3) % 4 > 1 for at in range(4)] for task in range(20)})
    path = make_run(tmp_path, [{**row, "reward": float(row["reward"])} for row in rows])
    report = pipeline.diagnose(pipeline.load([f"run0={path}"], Silent()), "")
    told = ground(tmp_path / "again", rows)
    for name, query in (("pass_at_1", "pass_at_1"), ("pass_at_k", "pass_at_k(3)"), ("pass_hat_k", "pass_hat_k(2)")):
        k = int(query[-2]) if "(" in query else None
        measure = next(m for m in report.measures if m.name == name and m.k == k and m.slice is None)
        for part in ("low", "high", "n"):
            asked = query + "." + part
            assert value(asked, told) == pytest.approx(getattr(measure, part), abs=1e-12), asked
        assert value(query, told) == pytest.approx(measure.value, abs=1e-12)


def test_several_runs_need_a_name_and_a_group_without_a_rate_is_told(tmp_path: Path) -> None:
    told = ground(tmp_path, make_rows({0: [1]}), make_rows({0: [0], 1: [0]}))
    with pytest.raises(UsageError, match="names none"):
        told.ask("count")
    assert value("count where run = 'run1'", told) == 2
    assert [answer.value for answer in told.ask("count by run")] == [1, 2]  # type: ignore[union-attr]
    told = ground(tmp_path / "rates", make_rows({0: [1], 1: [0]}), make_rows({0: [-3.5], 1: [7.25]}))
    rates = [(answer.group, answer.value, answer.method) for answer in told.ask("rate by run")]  # type: ignore[union-attr]
    assert [group for group, _, _ in rates] == ["run0", "run1"]
    assert rates[1][1:] == (None, "no scored row")
    (outcome,) = query_process.ask(told, ["rate by run"])
    assert outcome.notes == ("run1 has no pass rate: its rewards are not 0 or 1; set --pass-threshold X",)


def test_what_a_rollout_calls_and_says_in_texts_and_fields_of_any_length(tmp_path: Path) -> None:
    output = [
        make_message("I will search"), make_call("1", "search"), make_result("1", "no hits"),
        make_call("2", "search"), make_result("2", "Error: quota"), make_message("It's done"),
    ]  # fmt: skip
    rows = [make_row(0, 0, 1.0, response=make_response(output)), make_row(1, 0, 0.0)]
    told = ground(tmp_path, rows)
    for query, expected in cases(__file__, "calls and says"):
        found = told.ask(query)
        cell = found.rows[0][0] if not isinstance(found, list) else found[0].value
        assert cell == expected, query
    middle = "a" * 5000 + "needle" + "b" * 5000
    output = [make_call("1", "look"), make_result("1", middle), make_message("done")]
    row = make_row(0, 0, 1.0, response=make_response(output), level="hard", story=middle, info={"kind": "short"})
    told = ground(tmp_path / "long", [row, make_row(1, 0, 0.0, level="easy")])
    for query, expected in cases(__file__, "says in long texts"):
        assert value(query, told) == expected, query


def test_without_any_reward_there_is_no_rate_and_a_threshold_moves_what_passes(tmp_path: Path) -> None:
    told = ground(tmp_path, [make_row(task, 0, None) for task in range(4)])
    for query in ("pass_at_1", "rate", "rate where task = '1'"):
        (answer,) = told.ask(query)  # type: ignore[misc]
        assert (answer.value, answer.method) == (None, "no row has a reward")
    assert value("rate", ground(tmp_path / "other", [make_row(0, 0, 0.0)])) == 0.0
    told = ground(tmp_path / "graded", make_rows({0: [0.5, 0.9], 1: [0.1, 1.0]}), threshold=0.5)
    assert value("pass_at_1", told) == 0.75


def test_names_that_differ_in_case_are_not_mixed_up(tmp_path: Path) -> None:
    rows = [make_row(task, 0, 1.0, Topic="up", topic="low") for task in range(3)]
    told = ground(tmp_path, rows)
    assert value("count where Topic = 'up'", told) == 3
    assert value("count where \"field.topic\" = 'low'", told) == 3
    for query in ("count where topic = 'low'", "count by topic", "select topic from rollouts"):
        with pytest.raises(UsageError, match="case of its letters"):
            told.ask(query)
