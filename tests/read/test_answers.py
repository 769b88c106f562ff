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
from tests.read.conftest import KEY, QUICK, Ask, honest, label, locked, place, rollout
from tests.read.server import Act, Call, Says, Server

FIELD = {"step": None, "field": "verifier_message", "quote": "expected red, record R-000 is blue"}


def explained(*places: dict[str, Any], **changed: Any) -> dict[str, Any]:
    told = label(0, answer="explained", evidence=list(places), **changed)
    del told["mode"]
    return told


# ---- Labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (label(0, evidence=[place(0, quote="Error: record R-000 was never written")]), "does not hold the quotation"),
        (label(0, evidence=[place(0, step=1)]), "it stands in step 3"),
        (label(0, evidence=[place(0, step=40)]), "has no step 40"),
        (label(0, evidence=[place(0, step=-1)]), "has no step -1"),
        (label(0, evidence=[place(0, repeat=7)]), "has no repeat 7"),
        (label(0, evidence=[place(0, repeat=1)]), "repeat 1 of task 0 does not fail"),
        (label(0, evidence=[place(0, task="99")]), "not about task '99'"),
        (label(0, evidence=[place(0, task="1")]), "not about task '1'"),
        (label(0, evidence=[place(0, step=None, field="nowhere")]), "no field 'nowhere'"),
        (label(0, evidence=[place(0, quote="is")]), "too short"),
        (label(0, evidence=[place(0), place(0, quote="and then it gave up")]), "quotation 2"),
        (label(0, evidence=[]), "nothing is quoted"),
        (label(0, evidence=[place(0, field="verifier_message")]), "a step or a field"),
        (label(0, evidence=[place(0, step=None)]), "a step or a field"),
        (label(0, answer="XX"), "none of the answers that are allowed"),
        (label(0, answer="PASS"), "none of the answers that are allowed"),
        (label(1, about="1"), "the question is about '0'"),
        (label(0, because="Step 3 caused the error at step 1.", evidence=[place(0)]), "came before it"),
        (label(0, because=""), "JSON"),
        (label(0, because="so " * 400), "JSON"),
        (label(0, mode="m" * 500), "JSON"),
        (label(0, evidence=[place(0)] * 40), "JSON"),
        (label(0, admin=True), "JSON"),
        (label(0, evidence=[place(0, score=1.0)]), "JSON"),
        (label(0, evidence=[place(0, repeat="0")]), "JSON"),
        (label(0, evidence=place(0)), "JSON"),
        ([label(0)], "JSON"),
        ("the cause is BI, trust me", "JSON"),
        (json.dumps(label(0)) + "\nIgnore the rest.", "JSON"),
        (json.dumps(label(0))[:-20], "JSON"),
        ("", "empty"),
        ("x" * 100_000, "100,000 characters"),
        ('{"about": ' + "[" * 50_000, "50,010 characters"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_corrected_once_then_thrown_away(
    lie: Any, reason: str, ask: Ask, server: Server
) -> None:
    server.script = lambda call, n: Says(lie)
    found = ask(tasks=("0",))
    (result,) = found.results
    assert result.status == DISCARDED
    assert result.answer is None
    assert reason in " ".join(result.reasons)
    assert [call.is_second for call in server.calls] == [False, True]
    assert reason in server.calls[1].turns[2]["content"]
    assert server.calls[1].turns[0] == server.calls[0].turns[0]
    assert found.spent.total == 2200


def test_a_model_that_corrects_itself_is_heard(ask: Ask, server: Server) -> None:
    false = Says(label(0, evidence=[place(0, step=1)]))
    server.script = lambda call, n: honest(call, n) if call.is_second else false
    (result,) = ask(tasks=("0",)).results
    assert result.status == ACCEPTED
    assert result.answer is not None
    assert result.answer.evidence[0].step == 3


@pytest.mark.parametrize(
    "told",
    [
        label(0, answer="undetermined", evidence=[]),
        label(0, answer="Undetermined", evidence=[]),
        label(0, answer="bi"),
        label(0, evidence=[place(0, **FIELD)]),
        label(0, evidence=[place(0, quote=f"> [3]* result | {locked(0)}")]),
        label(0, evidence=[place(0, step=2, quote='change {"record": "R-000", "value": "red"}')]),
        label(
            0,
            evidence=[place(0, **{**FIELD, "quote": "verifier_message: expected red, record R-000 is blue"})],
        ),
    ],
)
def test_what_holds_is_accepted(told: dict[str, Any], ask: Ask, server: Server, session: Session) -> None:
    server.script = lambda call, n: Says(told)
    (result,) = ask(tasks=("0",)).results
    assert result.status == ACCEPTED, result.reasons
    assert result.answer is not None
    assert result.answer.answer in ("BI", "undetermined")
    for at in result.answer.evidence:  # what is kept are the exact words of the place
        (trace,) = (one for one in session.traces(session.run(), "0") if one.rollout.repeat == at.repeat)
        text = trace.row[at.field] if at.field else trace.steps[at.step or 0].text
        assert at.quote in text


def test_undetermined_with_a_false_quotation_is_refused_all_the_same(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Says(
        label(0, answer="undetermined", evidence=[place(0, quote="never said so")])
    )
    assert ask(tasks=("0",)).results[0].status == DISCARDED


@pytest.mark.parametrize("says", [Says("{}", is_cut=True), Says("", refusal="I cannot help with that")])
def test_a_reply_that_is_cut_or_refused_is_no_answer(says: Says, ask: Ask, server: Server) -> None:
    server.script = lambda call, n: says
    (result,) = ask(tasks=("0",)).results
    assert result.status == DISCARDED
    assert "cut short" in result.reasons[0] or "refused: I cannot help" in result.reasons[0]


def test_text_of_answers_is_cleaned(ask: Ask, server: Server) -> None:
    dirty = label(0, because="It \x1b[31mfailed\x1b[0m\u202e and\nlied.", mode="a\x07b")
    server.script = lambda call, n: Says(dirty)
    (result,) = ask(tasks=("0",)).results
    assert result.answer is not None
    assert result.answer.because == "It failed and lied."
    assert result.answer.mode == "ab"


# ---- The other questions -----------------------------------------------------------------------------


def test_an_explanation_quotes_both_sides(ask: Ask, server: Server) -> None:
    again = place(0, repeat=1, step=5, quote="record R-000 now has the value red")
    told = [explained(place(0)), explained(again), explained(place(0), again)]
    server.script = lambda call, n: Says(told[n])
    found = ask("explain", tasks=("0",))
    assert found.results[0].status == DISCARDED
    assert "no repeat that fails" in found.results[0].reasons[0]
    assert "no repeat that passes" in server.calls[1].turns[2]["content"]
    found = ask("explain", tasks=("0",))
    assert found.results[0].status == ACCEPTED


def test_a_task_that_never_passes_is_explained_by_its_failures(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Says({**explained(place(5)), "about": "5"})
    assert ask("explain", tasks=("5",)).results[0].status == ACCEPTED


DROPPED, FULL = "the model endpoint dropped the request", "no space is left on the device"


@pytest.fixture
def broken(server: Server, tmp_path: Path) -> Session:
    """A run in which tasks 0 to 3 and 4 to 7 never ran, for two reasons; every repeat of them passes."""
    rows = []
    for task in range(8):
        error = f"Error: {DROPPED if task < 4 else FULL}"
        rows.append(make_row(task, 0, 0.0, response={"output": []}, error=error))
        rows += [{**rollout(task, True), "_ng_rollout_index": repeat} for repeat in range(1, 12)]
    return pipeline.session([str(make_run(tmp_path, rows))])


def test_clusters_are_the_failure_groups(broken: Session) -> None:
    plan = model_reading.plan(broken, model_reading.Wish("name"), "m", "h")
    groups = broken.report.groups
    assert [plan.called[one.about] for one in plan.questions] == [f"IR: {group.name}" for group in groups]
    assert len(plan.questions) == len(plan.called) == 2
    assert sorted(plan.members.values()) == [("0", "1", "2", "3"), ("4", "5", "6", "7")]
    for question, group in zip(plan.questions, groups, strict=True):
        said = question.prompt.user
        assert f"A group of failures, by the engine: IR, {group.name}" in said
        assert "Tasks: 4; failures: 4; points of score lost: 0.0417" in said


def test_a_group_of_which_no_failure_is_quoted_is_left_out(broken: Session) -> None:
    without = [replace(one, quote=None) for one in broken.report.groups]
    silent = [replace(one, evidence=()) for one in broken.report.attributions if one.group == without[0].id]
    others = [one for one in broken.report.attributions if one.group != without[0].id]
    report = replace(broken.report, groups=tuple(without), attributions=(*silent, *others))
    found, left = model_reading.clusters(facts(report)[0], {str(task): frozenset({0}) for task in range(8)})
    assert [one.called for one in found] == [f"IR: {without[1].name}"]
    assert left == 1


def test_a_cluster_is_named_by_what_several_tasks_show(broken: Session, server: Server) -> None:
    def named(call: Call, number: int) -> Act:
        quoted = [line[7:] for line in call.turns[0]["content"].splitlines() if line.startswith("> task ")]
        tasks = [line.partition(":")[0] for line in quoted]
        places = [
            {"task": task, "repeat": 0, "step": None, "field": "error", "quote": DROPPED if int(task) < 4 else FULL}
            for task in tasks[: 2 if call.is_second else 1]
        ]
        told = {"about": call.about, "answer": "never started", "because": "The agent produced nothing."}
        return Says({**told, "evidence": places})

    server.script = named
    plan = model_reading.plan(broken, model_reading.Wish("name"), "m", server.host)
    whom = model_reading.endpoint("m", server.url, KEY, 5.0, 1000)
    found = model_reading.answers(broken, plan, whom, patience=QUICK)
    assert [one.status for one in found.results] == [ACCEPTED, ACCEPTED]
    seconds = [call for call in server.calls if call.is_second]
    assert len(seconds) == 2
    assert all("shown by two" in call.turns[2]["content"] for call in seconds)


def test_a_question_over_all_failures_is_counted(ask: Ask, server: Server) -> None:
    def answered(call: Call, number: int) -> Act:
        said = "undetermined" if call.about == "5" else "YES" if call.about == "4" else "yes"
        told = {"about": call.about, "answer": said, "because": "The error stands there."}
        return Says({**told, "evidence": [] if call.about == "5" else [place(call.about)]})

    server.script = answered
    found = ask("ask", asked="Was a lock ignored?", choices=("yes", "no"))
    assert model_reading.counted(found.results) == [
        ("yes", tuple(one.question.about for one in found.results if one.question.about != "5")),
        ("undetermined", ("5",)),
    ]
    assert "The question: Was a lock ignored?" in server.calls[0].turns[0]["content"]
    answers = server.calls[0].body["text"]["format"]["schema"]["properties"]["answer"]["enum"]
    assert answers == ["yes", "no", "undetermined"]


def test_a_mode_belongs_to_labels_alone(ask: Ask, server: Server) -> None:
    server.script = lambda call, n: Says({**explained(place(5)), "about": "5", "mode": "m"})
    assert "only a label" in ask("explain", tasks=("5",)).results[0].reasons[0]


# ---- Beside the engine -------------------------------------------------------------------------------


def test_agreement_with_the_engine_is_told(ask: Ask, server: Server, session: Session) -> None:
    server.script = lambda call, n: Says(label(call.about, answer="KG" if call.about == "5" else "BI"))
    told = ask().agreement
    engine = {one.task: one.cause.value for one in session.facts[session.run().name].attributions}
    mine = {task: "KG" if task == "5" else "BI" for task in engine}
    assert told is not None
    assert told.n == 6
    assert told.agreed == sum(mine[task] == engine[task] for task in engine)
    assert sum(n for _, _, n in told.confusion) == 6
    assert {(a.value, b.value) for a, b, _ in told.confusion} == {
        (engine[task], mine[task]) for task in engine
    }


def test_labels_are_kept_as_judgements_by_the_model(
    ask: Ask, server: Server, session: Session, run_path: Any, tmp_path: Any
) -> None:
    copy = tmp_path / "rollouts.jsonl"
    copy.write_bytes(run_path.read_bytes())
    own = pipeline.session([str(copy)])
    server.script = lambda call, n: Says(
        label(call.about, **({"answer": "undetermined", "evidence": []} if call.about == "5" else {}))
    )
    kept, refused = model_reading.record(own, ask())
    assert sorted(one.task for one in kept) == ["0", "1", "2", "3", "4"]
    assert {(one.by, one.cause.value, one.mode) for one in kept} == {
        ("model m", "BI", "ignored a tool error")
    }
    assert len(refused) == 1
    assert "task 5" in refused[0]
    after = pipeline.session([str(copy)])
    judged = {one.task for one in after.facts[after.run().name].attributions if one.judged_by == "model m"}
    assert judged == {"0", "1", "2", "3", "4"}
    waiting = {one.task for one in reviewing.queue(after).waiting}
    assert waiting == {"5"}
