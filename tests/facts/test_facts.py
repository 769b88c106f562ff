"""Every fact that a report yields is found again by its query in the report.json of that report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.facts import facts
from blade.facts.known import Known, number_of
from blade.facts.query import Answers
from blade.model import Fact, Report
from blade.pipeline import comparing
from blade.planted import write_demo, write_run
from blade.report import wire
from tests.report import changed
from tests.report.conftest import CASES, make_report, twenty
from tests.report.explained import explain

NASTY = 'a,b]=c["x"].y\\ \n|(z) null ☂'

REPORTS: dict[str, Callable[[], Report]] = {
    **CASES,
    "pair": changed.pair_report,
    "pair, hostile": lambda: changed.pair_report(word=lambda text: f"{text} {NASTY}"),
    "many": changed.many_report,
    "hostile": lambda: explain(
        make_report({f"desk {NASTY}": twenty()}, word=lambda text: f"{NASTY} {text}"),
        word=lambda text: f"{NASTY} {text}",
    ),
}


def all_of(report: Report) -> list[Fact]:
    known = Known(report)
    return [*known.all, *(fact for one in report.tasks for fact in known.task(one.run, one.task))]


def is_same(said: Any, meant: Any) -> bool:
    if isinstance(meant, float):
        is_number = isinstance(said, int | float) and not isinstance(said, bool)
        return is_number and math.isclose(said, meant, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(meant, tuple):
        return bool(said == list(meant))
    return bool(said == meant)


def assert_found_again(report: Report) -> list[Fact]:
    answers = Answers(json.loads(wire.render(report)))
    found = all_of(report)
    for fact in found:
        assert is_same(answers.answer(fact.query), fact.value), fact
        assert fact.value is not None
        assert all(name == name.lower() for name in fact.names), fact
    assert len({(fact.query, fact.subject) for fact in found}) == len(found)
    return found


@pytest.mark.parametrize("case", list(REPORTS))
def test_every_query_answers_to_its_value(case: str) -> None:
    report = REPORTS[case]()
    found = assert_found_again(report)
    assert found, "a report states something, be it that it holds no run"


def test_a_planted_run_is_told_in_facts(tmp_path: Path, loaded: Callable[..., Any]) -> None:
    write_demo(tmp_path)
    report = pipeline.diagnose(loaded(tmp_path), "blade demo")
    subjects = {fact.subject for fact in assert_found_again(report)}
    assert {
        "pass_at_1", "pass_at_1_low", "pass_at_k", "n_tasks", "lost", "never", "never_tasks", "reached",
        "slice_rate", "signature_failed", "behaviour_in_fail", "mechanism_p", "task_cause", "task_bucket",
        "repeat_reward", "lost_by_side", "tasks_by_cause", "gain", "rows_passed", "accuracy_value", "sha256",
    } - subjects <= {"sha256"}  # fmt: skip


def test_a_planted_pair_is_told_in_facts(tmp_path: Path, loaded: Callable[..., Any]) -> None:
    for seed, name in enumerate(("one", "two", "three")):
        write_run(
            tmp_path / name, name=name, seed=seed, n_tasks=12, rates=(0.2, 0.6, 0.9), faults=("lost_rows:2",)
        )
    report = comparing.compare(
        loaded(*(tmp_path / name for name in ("one", "two", "three"))), "blade compare"
    )
    subjects = {fact.subject for fact in assert_found_again(report)}
    assert {
        "delta",
        "verdict",
        "mde",
        "estimate",
        "term",
        "term_sum",
        "n_up",
        "n_common",
        "matrix_n_tasks",
    } <= subjects


def test_numbers_are_those_that_were_counted() -> None:
    known = Known(make_report({"airline": {"0": [1.0, 0.0], "1": [0.0, 0.0], "2": [1.0, 1.0]}}))

    def only(subject: str) -> Any:
        (fact,) = known.of(subject, "airline")
        return fact.value

    assert (only("always"), only("sometimes"), only("never"), only("missing")) == (1.0, 1.0, 1.0, 0.0)
    assert only("never_tasks") == ("1",)
    assert only("n_tasks") == 3.0
    assert only("pass_at_1") == pytest.approx(0.5)
    by_subject = {fact.subject: fact.value for fact in known.task("airline", "0") if len(fact.scope) == 1}
    assert by_subject["task_passed"] == 1.0
    assert by_subject["task_failed"] == 1.0
    assert by_subject["task_bucket"] == "sometimes"


def test_losses_add_up_by_side_and_by_cause() -> None:
    known = Known(explain(make_report({"desk": twenty()})))
    (total,) = known.of("lost_total", "desk")
    for subject in ("lost_by_side", "lost_by_cause", "lost_by_mode", "lost"):
        parts = [number_of(fact) for fact in known.of(subject, "desk")]
        assert math.isclose(math.fsum(parts), number_of(total)), subject


def test_facts_of_tasks_are_made_only_when_asked() -> None:
    few = make_report({"run": {str(at): [1.0, 0.0] for at in range(10)}})
    more = make_report({"run": {str(at): [1.0, 0.0] for at in range(400)}})
    assert len(facts(more)) == len(facts(few))
    assert {fact.query for fact in Known(more).task("run", "7")}.isdisjoint(fact.query for fact in facts(more))
    assert Known(more).task("run", "7") != ()
    assert Known(more).task("run", "no such task") == ()


def test_facts_are_found_by_what_they_are_about() -> None:
    known = Known(make_report({"airline": twenty()}))
    (score,) = known.of("pass_at_1", "airline")
    assert score in known.named("score")
    assert score in known.named("pass@1")
    assert score in known.between(number_of(score) - 0.001, number_of(score) + 0.001)
    assert score not in known.between(number_of(score) + 0.001, 2)
    assert {fact.subject for fact in known.about(("bucket", "never"), "airline")} >= {"never", "never_share"}
    assert {fact.subject for fact in known.about(("task", "3"))} >= {"task_passed", "task_bucket"}
    assert known.keys("3") == (("airline", "3"),)
    assert any(fact.subject == "name" for fact in known.saying("airline"))
