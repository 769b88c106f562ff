"""Facts on a whole run, whatever the order of its tasks."""

from __future__ import annotations

import pickle
import random

from blade.detect import survey
from blade.model import RunFacts, TaskTraces
from tests.builders import Row, make_message
from tests.traces import did, make_task, make_tool, rollout


def facts(*tasks: TaskTraces) -> RunFacts:
    return survey.facts("run", [survey.partial(task) for task in tasks])


def turns(
    number: int, task: int, last: str | None = "the answer", reward: float = 0.0, **fields: object
) -> Row:
    """A rollout of so many model turns."""
    calls = [("look", "{}", "seen")] * (number - (last is not None))
    return rollout(did(*calls, *([last] if last is not None else [])), reward, task=task, **fields)


def test_no_rows_make_facts_too() -> None:
    nothing = survey.facts("run", [])
    assert (nothing.n_rollouts, nothing.turn_cap, nothing.share_empty) == (0, None, 0.0)


def test_calls_are_counted_by_tool() -> None:
    one = make_task(
        rollout(did(("look", "{}", "seen"), ("look", "{}", "Error: gone"), ("send", "{}", "sent")))
    )
    two = make_task(rollout(did(("look", "{}", "seen")), task=1), rollout(did("hm"), task=1))
    tools = facts(one, two).tools
    assert (
        tools["look"].n_calls,
        tools["look"].n_failed,
        tools["look"].n_rollouts,
        tools["look"].n_tasks,
    ) == (3, 1, 2, 2)
    assert list(tools) == ["look", "send"]


def test_partials_are_pickled_and_their_order_is_nothing() -> None:
    rng = random.Random(7)
    tasks = [
        make_task(*(turns(rng.randint(1, 6), number, rng.choice(["done", None])) for _ in range(3)))
        for number in range(20)
    ]
    partials = [pickle.loads(pickle.dumps(survey.partial(task))) for task in tasks]
    told = survey.facts("run", partials)
    rng.shuffle(partials)
    assert survey.facts("run", partials) == told


# ---- Defects ------------------------------------------------------------------------------------


def broken(task: int, output: str, arguments: str = '{"n":1}', tools: list[Row] | None = None) -> TaskTraces:
    return make_task(
        rollout(did(("page", arguments, output), ("page", arguments, output)), task=task, tools=tools or [])
    )


def test_one_error_throughout_is_a_defect() -> None:
    told = facts(
        *(
            broken(task, f"Traceback\n  line {task}\nTypeError: got '{task}' in 0x{task}ff")
            for task in range(3)
        )
    )
    (defect,) = told.defects
    assert (defect.tool, defect.n_calls, defect.n_tasks, defect.share) == ("page", 6, 3, 1.0)
    assert defect.template == "TypeError: got <text> in <hex>"


def test_an_error_of_some_calls_or_of_few_tasks_is_none() -> None:
    bad = [broken(task, "Error: cannot page") for task in range(3)]
    assert not facts(*bad[:2]).defects
    assert not facts(*bad, broken(3, "page 3")).defects
    assert not facts(*(broken(task, f"Error: {'abc'[task]} is no page") for task in range(3))).defects


def test_arguments_that_break_their_schema_are_not_the_tools_fault() -> None:
    tool = make_tool("page", "n", n="integer")
    assert not facts(
        *(broken(task, "Error: cannot page", '{"n":"one"}', [tool]) for task in range(3))
    ).defects
    assert not facts(*(broken(task, "Error: cannot page", '{"n":') for task in range(3))).defects
    assert facts(*(broken(task, "Error: cannot page", '{"n":1}', [tool]) for task in range(3))).defects


def test_a_tool_that_nobody_declared_has_no_defect() -> None:
    other, page = make_tool("look"), make_tool("page", "n", n="integer")
    assert not facts(*(broken(task, "Error: unknown tool", tools=[other]) for task in range(3))).defects
    for tools in ([page], [other, page], []):  # where nothing is declared, nothing is undeclared
        (defect,) = facts(*(broken(task, "Error: cannot page", tools=tools) for task in range(3))).defects
        assert defect.tool == "page"


# ---- Turn limits --------------------------------------------------------------------------------


def test_a_limit_shows_where_many_stop_without_a_text() -> None:
    ended = [make_task(turns(2 + task % 4, task)) for task in range(40)]
    cut = [make_task(turns(8, 100 + task, None)) for task in range(6)]
    told = facts(*ended, *cut)
    assert (told.turn_cap, told.n_at_cap) == (8, 6)
    assert facts(*ended, *cut[:4]).turn_cap is None
    assert facts(*ended, *cut, make_task(turns(9, 200))).turn_cap is None


def test_where_no_rollout_ends_with_a_text_the_longest_need_not_be_cut() -> None:
    assert facts(*(make_task(turns(1 + task % 3, task, None)) for task in range(30))).turn_cap is None


def test_a_peak_without_a_pass_shows_a_limit_in_conversations() -> None:
    def talk(number: int, task: int, reward: float) -> TaskTraces:
        items = [
            make_message(text, role)
            for _ in range(number)
            for text, role in (("yes?", "assistant"), ("and?", "user"))
        ]
        return make_task(rollout(items, reward, task=task))

    ended = [talk(2 + task % 10, task, 1.0) for task in range(150)]
    cut = [talk(20, 200 + task, 0.0) for task in range(5)]
    assert (facts(*ended, *cut).turn_cap, facts(*ended, *cut).n_at_cap) == (20, 5)
    assert facts(*ended, *cut[:4], talk(20, 300, 1.0)).turn_cap is None
    assert facts(*ended).turn_cap is None


def test_a_limit_that_every_row_names_is_the_limit() -> None:
    named = [make_task(turns(1 + task % 3, task, None, max_turns=3)) for task in range(6)]
    assert (facts(*named).turn_cap, facts(*named).n_at_cap) == (3, 2)
    done = [make_task(turns(3, 20 + task, max_turns=3)) for task in range(4)]  # in just so many turns
    assert (facts(*named, *done).turn_cap, facts(*named, *done).n_at_cap) == (3, 2)
    assert facts(*named, make_task(turns(2, 9))).turn_cap is None
    assert facts(*named, make_task(turns(5, 9, max_turns=3))).turn_cap is None


# ---- Shares and token limits --------------------------------------------------------------------


def test_shares_of_rows() -> None:
    cut = {"incomplete_details": {"reason": "max_output_tokens"}}
    rows = [
        rollout([], response={"usage": None}),
        rollout([], response={"usage": {"output_tokens": 9}}),
        rollout(did("x"), response=cut),
        rollout([make_message("hi", "user"), make_message("yes")]),
    ]
    told = facts(make_task(*rows))
    assert (told.share_empty, told.share_truncated, told.share_user) == (0.25, 0.25, 0.25)


def test_a_token_limit_counts_if_all_rows_share_it() -> None:
    def limited(task: int, limit: int | None) -> TaskTraces:
        row = rollout(did("x"), task=task)
        row["responses_create_params"]["max_output_tokens"] = limit
        return make_task(row)

    assert facts(limited(0, 512), limited(1, 512)).max_output_tokens == 512
    assert facts(limited(0, 512), limited(1, 1024)).max_output_tokens is None
    assert facts(limited(0, 512), limited(1, None)).max_output_tokens is None


def test_an_environment_that_stops_at_success_is_noticed() -> None:
    """Solved rollouts end early and pass; the others go on to the cap."""
    early = [make_task(rollout(did(("look", "{}", "ok")), 1.0, task=n, max_turns=3)) for n in range(12)]
    late = [
        make_task(rollout(did(*[("look", "{}", "ok")] * 3), 0.0, task=n, max_turns=3)) for n in range(12, 24)
    ]
    assert survey.facts("run", [survey.partial(task) for task in early + late]).ends_when_solved
    failing = [make_task(rollout(did(("look", "{}", "ok")), 0.0, task=n, max_turns=3)) for n in range(12)]
    assert not survey.facts("run", [survey.partial(task) for task in failing + late]).ends_when_solved
    few = survey.facts("run", [survey.partial(task) for task in early[:5] + late])
    assert not few.ends_when_solved
