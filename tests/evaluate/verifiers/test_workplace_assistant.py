"""The office: its tasks can be done, its verdict sees what is left behind, and no call breaks it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.environment import Attempt, Row, Unmeasured
from blade_eval.runner import agent
from blade_eval.verifiers import environment
from blade_eval.verifiers.workplace_assistant import after, changes, performed
from blade_eval.verifiers.workplace_assistant.__main__ import datasets
from blade_eval.verifiers.workplace_assistant.quests import quests, row, truth
from blade_eval.verifiers.workplace_assistant.tools import TOOLS, call
from blade_eval.verifiers.workplace_assistant.world import OWNER, fresh, staff
from tests.case_tables import tables
from tests.conftest import ROOT

Call = tuple[str, Any]
OFFICE = environment("workplace_assistant", {})
LOOK: Call = ("company_directory_find_email_address", {"name": "Nadia"})
MAIL: Call = ("email_send_email", {"recipient": OWNER, "subject": "Done", "body": "All done."})


def response(calls: list[Call]) -> Row:
    output: list[Row] = []
    for number, (name, arguments) in enumerate(calls):
        spelled = arguments if isinstance(arguments, str) else json.dumps(arguments)
        output.append({"type": "function_call", "call_id": f"c{number}", "name": name, "arguments": spelled})
        output.append({"type": "function_call_output", "call_id": f"c{number}", "output": "…"})
    return {"output": output}


def judged(task: str | Row, calls: list[Call] | Row) -> Row:
    """The verdict on calls, or on a whole response, in a task of the office or another."""
    said = calls if isinstance(calls, dict) else response(calls)
    return asyncio.run(OFFICE.verify(Attempt(row(task) if isinstance(task, str) else task, said)))


def test_there_are_tasks_of_every_kind_and_many_colleagues_of_one_first_name() -> None:
    categories = {"email", "calendar", "crm", "projects", "analytics", "multi"}
    assert {quest.category for quest in quests().values()} == categories
    assert len({quest.request for quest in quests().values()}) == len(quests()) >= 60
    idle = {ident for ident, quest in quests().items() if not truth(quest)}
    marked = {ident for ident in quests() if row(ident)["no_change"]}  # a rollout that does nothing passes them
    assert marked == idle == {ident for ident in quests() if judged(ident, [])["reward"] == 1.0}
    assert len(marked) == 7
    people = staff()
    assert len(people) >= 100
    assert len({person.address for person in people}) == len(people)
    shared = Counter(person.first for person in people)
    assert sum(number > 1 for number in shared.values()) > 30
    # else a first name and a department would not say who is meant
    assert len({(person.first, person.department) for person in people}) == len(people)


@pytest.mark.parametrize("ident", list(quests()))
def test_every_task_can_be_done_and_no_call_of_it_is_idle(ident: str) -> None:
    calls = truth(quests()[ident])
    state = fresh()
    assert all(not call(state, name, arguments).startswith("Error") for name, arguments in calls)
    assert judged(ident, calls)["reward"] == 1.0
    assert judged(ident, [LOOK, *reversed(calls), LOOK])["reward"] == 1.0
    extra = judged(ident, [*calls, MAIL])
    assert (extra["reward"], extra["db_match"], extra["missing_changes"]) == (0.0, False, [])
    assert len(extra["extra_changes"]) == 1
    assert extra["extra_changes"][0].startswith("new email: body=all done.")
    for left_out in range(len(calls)):
        less = judged(ident, calls[:left_out] + calls[left_out + 1 :])
        assert (less["reward"], less["extra_changes"], len(less["missing_changes"])) == (0.0, [], 1)
    assert not any({"search", "get", "find"} & set(name.split("_")) for name, _ in calls)


def test_neither_the_spelling_of_free_text_counts_nor_a_detour_but_words_and_the_end_do() -> None:
    (name, arguments), *_ = truth(quests()["email-01"])
    for body, worth in ((f"  {arguments['body'].upper()}\n", 1.0), (arguments["body"] + " Thanks.", 0.0)):
        assert judged("email-01", [(name, {**arguments, "body": body})])["reward"] == worth
    (name, right), *_ = truth(quests()["crm-01"])
    wrong = (name, {**right, "status": "Lost"})
    assert judged("crm-01", [wrong, (name, right)])["reward"] == 1.0
    assert judged("crm-01", [(name, right), wrong])["reward"] == 0.0
    state = fresh()  # a record that was made and removed again leaves nothing
    plot = {"date_min": "2026-03-02", "date_max": "2026-03-06", "metric": "visits", "plot_type": "bar"}
    assert call(state, "analytics_create_plot", plot).startswith("{")
    event = {"event_name": "Tea", "participant_email": OWNER, "event_start": "2026-06-01 10:00", "duration": 30}
    made = json.loads(call(state, "calendar_create_event", event))["event_id"]
    assert changes(state).total() == 2
    call(state, "calendar_delete_event", {"event_id": made})
    assert [change[:2] for change in changes(state)] == [("new", "plots")]


def test_what_was_sent_is_sent_whatever_becomes_of_the_copy() -> None:
    calls = truth(quests()["email-01"])
    copy = ("email_delete_email", {"email_id": json.loads(call(fresh(), *MAIL))["email_id"]})
    right = judged("email-01", [*calls, LOOK])
    assert (right["reward"], right["extra_changes"]) == (1.0, [])
    regretted = judged("email-01", [MAIL, copy, *calls])
    assert (regretted["reward"], regretted["missing_changes"]) == (0.0, [])
    assert [change.split(":")[0] for change in regretted["extra_changes"]] == ["deleted email", "new email"]
    twice = judged("email-01", [*calls, *calls])
    assert (twice["reward"], len(twice["extra_changes"])) == (0.0, 1)
    half = judged("email-01", [*calls, copy, *calls])
    assert (half["reward"], len(half["extra_changes"])) == (0.0, 2)
    hidden = judged("email-01", [*calls, copy])
    assert (hidden["missing_changes"], len(hidden["extra_changes"])) == ([], 1)


NOBODY = {"recipient": "nobody@nowhere.example", "subject": "a", "body": "b"}


@pytest.mark.parametrize(
    ("name", "arguments"), [*(("email_send_email", spelled) for spelled in (json.dumps(NOBODY), NOBODY, "{", None)), ("no_such_tool", "{}")]
)
def test_a_task_whose_own_calls_are_refused_is_not_measured(name: str, arguments: Any) -> None:
    right = {"name": MAIL[0], "arguments": MAIL[1]}
    broken = {"ground_truth": [right, {"name": name, "arguments": arguments}]}
    for calls in ([], [MAIL], [MAIL, (name, arguments)]):
        with pytest.raises(Unmeasured, match="task_invalid") as raised:
            judged(broken, calls)
        assert raised.value.terminal
    whole = {"ground_truth": [right, {"name": LOOK[0], "arguments": json.dumps(LOOK[1])}]}
    assert judged(whole, [MAIL])["reward"] == 1.0
    assert judged(whole, [])["reward"] == 0.0
    with pytest.raises(Unmeasured, match="task_unreadable"):
        judged({"ground_truth": "none"}, [])


@pytest.mark.parametrize("spelled", [json.dumps, lambda given: given, lambda given: [given], lambda given: 3])
def test_arguments_are_read_again_as_the_agent_read_them(spelled: Any) -> None:
    """An object where a text belongs is refused while the rollout runs, so the replay refuses it too."""
    calls = truth(quests()["crm-01"])
    task = row("crm-01")
    turns = response([(name, "") for name, _ in calls])["output"][::2]
    for item, (_, arguments) in zip(turns, calls, strict=True):
        item["arguments"] = spelled(arguments)
    said = iter([{"output": turns}, {"output": []}])

    async def respond(params: Row, row: Row) -> Row:
        return next(said)

    live: list[Any] = []

    async def kept(attempt: Attempt) -> Row:
        live.append(attempt.state)
        return await OFFICE.verify(attempt)

    told = asyncio.run(agent.run(task, respond, dataclasses.replace(OFFICE, verify=kept), {}))
    assert told["reward"] == float(spelled is json.dumps)
    replayed = after(performed(told["response"]["output"]))
    assert changes(replayed) == changes(live[0])


@pytest.mark.parametrize("name", [["email_send_email"], {"a": 1}, None, 3])
def test_a_call_of_no_name_is_no_call_nor_is_one_that_was_never_answered_or_offered(name: Any) -> None:
    calls = truth(quests()["crm-01"])
    said = response([LOOK, *calls])
    said["output"][0]["name"] = name
    assert judged("crm-01", said)["reward"] == 1.0
    said["output"][2]["name"] = name
    assert judged("crm-01", said)["reward"] == 0.0
    said = response(calls)
    said["output"].pop()
    assert judged("crm-01", said)["reward"] == 0.0
    without = row("crm-01")
    without["responses_create_params"]["tools"] = []
    assert judged(without, calls)["reward"] == 0.0


@pytest.mark.parametrize(("name", "arguments", "said"), tables(__file__, "fields.yaml")["refused by the office"])
def test_a_tool_says_what_is_wrong_and_does_nothing(name: str, arguments: Any, said: str) -> None:
    state = fresh()
    answer = call(state, name, arguments)
    assert (answer.startswith("Error: "), said in answer, changes(state).total()) == (True, True, 0)


def test_a_search_includes_the_days_it_is_limited_to_and_all_pages_together_are_all_results() -> None:
    state = fresh()
    day = next(iter(state.tables["emails"].values()))["sent_at"][:10]
    found = json.loads(call(state, "email_search_emails", {"date_min": day, "date_max": day}))
    assert found["total"] == sum(row["sent_at"].startswith(day) for row in state.tables["emails"].values()) > 0
    first, *rest = (json.loads(call(state, "email_search_emails", {"sender": "tomas", "page": page})) for page in range(1, 8))
    assert first["pages"] == 7
    ids = [result["email_id"] for answer in (first, *rest) for result in answer["results"]]
    assert len(ids) == len(set(ids)) == first["total"] > 5


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=12), st.just("2026-03-18"), st.just("2026-03-18 10:15"),
    st.sampled_from(["00000315", "00000150", "00000530", "00000900", OWNER, "Nadia", "Won", "Design", "\ud800"]),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip


@st.composite
def any_call(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from([*TOOLS, "no_such_tool"]))
    keys = list(TOOLS[name].arguments) if name in TOOLS else ["x"]
    return name, draw(st.dictionaries(st.sampled_from([*keys, "other"]), _VALUES, max_size=6))


@given(st.lists(any_call(), max_size=12))
@settings(max_examples=150, deadline=None)
def test_no_sequence_of_calls_breaks_the_office_and_the_replay_is_the_session(calls: list[Call]) -> None:
    state = OFFICE.seed({}) if OFFICE.seed else None
    assert OFFICE.call is not None
    for name, arguments in calls:
        assert OFFICE.call(state, name, arguments)
    assert changes(state) == changes(after(performed(response(calls)["output"])))


def test_the_data_of_the_repository_is_what_the_generator_writes() -> None:
    folder = ROOT / "resources_servers" / "workplace_assistant" / "data"
    stale = [name for name, content in datasets().items() if (folder / name).read_bytes() != content]
    assert not stale, "run python -m blade_eval.verifiers.workplace_assistant"
