"""Answers that lie, stray, obey an injection or break the form: corrected once, then thrown away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from blade import pipeline
from blade.agent.reader import ACCEPTED, DISCARDED
from blade.pipeline import model_reading, reviewing
from blade.pipeline.session import Session
from blade.report.run_facts import facts
from tests.builders import make_row, make_run
from tests.case_tables import cases
from tests.read.conftest import Ask, honest, label, locked, place, rollout
from tests.read.server import Act, Call, Says, Server


def reply(lie: dict[str, Any]) -> Any:
    """A true label of task 0, or one that a case changes."""
    if "reply" in lie:
        return lie["reply"]
    changed = {key: word.replace("ERROR", locked(0)) if isinstance(word, str) else word for key, word in lie.get("place", {}).items()}
    first = [place(0)] if lie.get("is_second") else []
    return label(0, **{"evidence": [*first, place(0, **changed)], **lie.get("label", {})})


# ---- Labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((reply(lie), lie["reason"]) for lie in cases(__file__, "lies")),
        (label(0, because="so " * 400), "JSON"),
        (label(0, mode="m" * 500), "JSON"),
        (label(0, evidence=[place(0)] * 40), "JSON"),
        (json.dumps(label(0)) + "\nIgnore the rest.", "JSON"),
        (json.dumps(label(0))[:-20], "JSON"),
        ("x" * 100_000, "100,000 characters"),
        ('{"about": ' + "[" * 50_000, "50,010 characters"),
    ],
)
def test_what_does_not_hold_is_corrected_once_then_thrown_away(text: Any, reason: str, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Says(text)
    reading = ask(tasks=("0",))
    (result,) = reading.results
    assert (result.status, result.answer) == (DISCARDED, None)
    assert reason in " ".join(result.reasons)
    assert [call.is_second for call in server.calls] == [False, True]
    assert reason in server.calls[1].turns[2]["content"]
    assert server.calls[1].turns[0] == server.calls[0].turns[0]
    assert reading.spent.total == 2200


def test_a_model_that_corrects_itself_is_heard(ask: Ask, server: Server) -> None:
    false = Says(label(0, evidence=[place(0, step=1)]))
    server.script = lambda call, n: honest(call, n) if call.is_second else false
    (result,) = ask(tasks=("0",)).results
    assert result.status == ACCEPTED
    assert result.answer is not None
    assert result.answer.evidence[0].step == 3


@pytest.mark.parametrize("truth", cases(__file__, "holds"))
def test_what_holds_is_accepted(truth: dict[str, Any], ask: Ask, server: Server, session: Session) -> None:
    server.script = lambda call, n: Says(reply(truth))
    (result,) = ask(tasks=("0",)).results
    assert result.status == ACCEPTED, result.reasons
    assert result.answer is not None
    assert result.answer.answer in ("BI", "undetermined")
    for cited in result.answer.evidence:  # what is kept are the exact words of the place
        (trace,) = (one for one in session.traces(session.run(), "0") if one.rollout.repeat == cited.repeat)
        assert cited.quote in (trace.row[cited.field] if cited.field else trace.steps[cited.step or 0].text)


@pytest.mark.parametrize("says", [Says("{}", is_cut=True), Says("", refusal="I cannot help with that")])
def test_a_reply_that_is_cut_or_refused_is_no_answer(says: Says, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: says
    (result,) = ask(tasks=("0",)).results
    assert result.status == DISCARDED
    assert "cut short" in result.reasons[0] or "refused: I cannot help" in result.reasons[0]


def test_text_of_answers_is_cleaned(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Says(label(0, because="It \x1b[31mfailed\x1b[0m\u202e and\nlied.", mode="a\x07b"))
    (result,) = ask(tasks=("0",)).results
    assert result.answer is not None
    assert (result.answer.because, result.answer.mode) == ("It failed and lied.", "ab")


# ---- The other questions -----------------------------------------------------------------------------


def explained(task: int, *places: dict[str, Any], **changed: Any) -> Says:
    return Says(label(task, **{"answer": "explained", "evidence": list(places), "mode": "", **changed}))


def test_an_explanation_quotes_both_sides(ask: Ask, server: Server) -> None:
    passing = place(0, repeat=1, step=5, quote="record R-000 now has the value red")
    replies = [explained(0, place(0)), explained(0, passing), explained(0, place(0), passing)]
    server.script = lambda call, n: replies[n]
    (result,) = ask("explain", tasks=("0",)).results
    assert result.status == DISCARDED
    assert "no repeat that fails" in result.reasons[0]
    assert "no repeat that passes" in server.calls[1].turns[2]["content"]
    assert ask("explain", tasks=("0",)).results[0].status == ACCEPTED


def test_a_task_that_never_passes_is_explained_by_its_failures_without_a_mode(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: explained(5, place(5), mode="m" * (n == 0))
    assert ask("explain", tasks=("5",)).results[0].status == ACCEPTED
    assert "only a label has a mode" in server.calls[1].turns[2]["content"]


DROPPED, FULL = "the model endpoint dropped the request", "no space is left on the device"


@pytest.fixture
def broken(server: Server, tmp_path: Path) -> Session:
    """A run in which tasks 0 to 3 and 4 to 7 never ran, for two reasons; every repeat of them passes."""
    rows = []
    for task in range(8):
        rows.append(make_row(task, 0, 0.0, response={"output": []}, error=f"Error: {DROPPED if task < 4 else FULL}"))
        rows += [{**rollout(task, True), "_ng_rollout_index": repeat} for repeat in range(1, 12)]
    return pipeline.session([str(make_run(tmp_path, rows))])


def test_clusters_are_the_failure_groups(broken: Session) -> None:
    plan = model_reading.plan(broken, model_reading.Wish("name"), "m", "h")
    groups = broken.report.groups
    assert [plan.called[one.about] for one in plan.questions] == [f"IR: {group.name}" for group in groups]
    assert sorted(plan.members.values()) == [("0", "1", "2", "3"), ("4", "5", "6", "7")]
    for question, group in zip(plan.questions, groups, strict=True):
        assert f"A group of failures, by the engine: IR, {group.name}" in question.prompt.user
        assert "Tasks: 4; failures: 4; points of score lost: 0.0417" in question.prompt.user


def test_a_group_of_which_no_failure_is_quoted_is_left_out(broken: Session) -> None:
    first, second = (replace(group, quote=None) for group in broken.report.groups)
    causes = [replace(one, evidence=() if one.group == first.id else one.evidence) for one in broken.report.attributions]
    report = replace(broken.report, groups=(first, second), attributions=tuple(causes))
    clusters, left = model_reading.clusters(facts(report)[0], {str(task): frozenset({0}) for task in range(8)})
    assert ([cluster.called for cluster in clusters], left) == ([f"IR: {second.name}"], 1)


def test_a_cluster_is_named_by_what_several_tasks_show(broken: Session, ask: Ask, server: Server) -> None:
    def named(call: Call, number: int) -> Act:
        quoted = [line[7:] for line in call.turns[0]["content"].splitlines() if line.startswith("> task ")]
        tasks = [line.partition(":")[0] for line in quoted][: 2 if call.is_second else 1]
        quotes = {task: DROPPED if int(task) < 4 else FULL for task in tasks}
        places = [place(task, step=None, field="error", quote=quote) for task, quote in quotes.items()]
        return Says({"about": call.about, "answer": "never started", "because": "Nothing came.", "evidence": places})

    server.script = named
    assert [one.status for one in ask("name", broken).results] == [ACCEPTED, ACCEPTED]
    seconds = [call for call in server.calls if call.is_second]
    assert ["shown by two" in call.turns[2]["content"] for call in seconds] == [True, True]


def test_a_question_over_all_failures_is_counted(ask: Ask, server: Server) -> None:
    def answered(call: Call, number: int) -> Act:
        word = {"5": "undetermined", "4": "YES"}.get(call.about, "yes")
        evidence = [] if call.about == "5" else [place(call.about)]
        return Says({"about": call.about, "answer": word, "because": "The error stands there.", "evidence": evidence})

    server.script = answered
    reading = ask("ask", asked="Was a lock ignored?", choices=("yes", "no"))
    yes = tuple(one.question.about for one in reading.results if one.question.about != "5")
    assert model_reading.counted(reading.results) == [("yes", yes), ("undetermined", ("5",))]
    assert "The question: Was a lock ignored?" in server.calls[0].turns[0]["content"]
    schema = server.calls[0].body["text"]["format"]["schema"]
    assert schema["properties"]["answer"]["enum"] == ["yes", "no", "undetermined"]


# ---- Beside the engine -------------------------------------------------------------------------------


def test_agreement_with_the_engine_is_told(ask: Ask, server: Server, session: Session) -> None:
    server.script = lambda call, n: Says(label(call.about, answer="KG" if call.about == "5" else "BI"))
    pair = ask().agreement
    engine = {one.task: one.cause.value for one in session.facts[session.run().name].attributions}
    mine = {task: "KG" if task == "5" else "BI" for task in engine}
    assert pair is not None
    assert (pair.n, pair.agreed) == (6, sum(mine[task] == engine[task] for task in engine))
    assert sum(n for _, _, n in pair.confusion) == 6
    assert {(a.value, b.value) for a, b, _ in pair.confusion} == {(engine[task], mine[task]) for task in engine}


def test_labels_are_kept_as_judgements_by_the_model(ask: Ask, server: Server, copy: Path) -> None:
    open_one = {"answer": "undetermined", "evidence": []}
    server.script = lambda call, n: Says(label(call.about, **(open_one if call.about == "5" else {})))
    recorded, refused = model_reading.record(pipeline.session([str(copy)]), ask())
    assert sorted(one.task for one in recorded) == ["0", "1", "2", "3", "4"]
    assert {(one.by, one.cause.value, one.mode) for one in recorded} == {("model m", "BI", "ignored a tool error")}
    assert ["task 5" in reason for reason in refused] == [True]
    after = pipeline.session([str(copy)])
    judged = {one.task for one in after.facts[after.run().name].attributions if one.judged_by == "model m"}
    assert judged == {"0", "1", "2", "3", "4"}
    assert {one.task for one in reviewing.queue(after).waiting} == {"5"}
