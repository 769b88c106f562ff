"""Discovery: a planted mechanism is found with its counts, and what only looks like one is not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from blade import events
from blade.discover import Gathered, conclude, observe
from blade.discover.grammar import split
from blade.model import Column, Episode, Judged, Mechanism, TaskTraces
from tests.builders import Row, make_call, make_result
from tests.traces import did, make_task, rollout

LOOK, WRITE, OTHER = "get_stock", "exchange_items", "return_items"


class Bench:
    """Rollouts of many tasks, with what a stage receives of them."""

    def __init__(self, tasks: Sequence[TaskTraces], broken: Sequence[int] = ()) -> None:
        self.tasks = tasks
        self.episodes = {episode.position: episode for task in tasks for episode in task.episodes}
        every = [(at, episode) for at, task in enumerate(tasks) for episode in task.episodes]
        self.judged = Judged(
            "run",
            tuple(task.task for task in tasks),
            np.asarray([episode.position for _, episode in every], np.int64),
            np.asarray([at for at, _ in every], np.int64),
            np.asarray([episode.trace.rollout.repeat for _, episode in every], np.int64),
            np.asarray([bool(episode.passed) for _, episode in every]),
            np.asarray([episode.score for _, episode in every]),
            True,
            np.asarray([episode.position in broken for _, episode in every]),
        )

    def observed(self) -> list[tuple[int, tuple[str, ...]]]:
        return [entry for task in self.tasks for entry in observe(task)]

    def opener(self, position: int) -> Episode:
        return self.episodes[position]

    def found(self, fields: dict[str, Column] | None = None, **known: frozenset[str]) -> list[Mechanism]:
        about = known.get("task_fields", frozenset())
        restating = known.get("restating", frozenset())
        return conclude(self.judged, fields or {}, about, self.observed(), self.opener, restating)


Play = Callable[[int, int, random.Random], tuple[Sequence[Any], bool]]


def bench(play: Play, n_tasks: int = 30, repeats: int = 4, seed: int = 0, **fields: Any) -> Bench:
    """Every rollout as `play` decides from its task and repeat; even tasks expect an exchange, odd ones a return."""
    rng = random.Random(seed)
    tasks = []
    for task in range(n_tasks):
        gold = [{"name": WRITE if task % 2 == 0 else OTHER, "arguments": {}}]
        rows = []
        for repeat in range(repeats):
            calls, passes = play(task, repeat, rng)
            rows.append(rollout(did(*calls), float(passes), repeat, task, expected_actions=gold, **fields))
        tasks.append(make_task(*rows, start=task * repeats))
    return Bench(tasks)


def column(values: Sequence[Any]) -> Column:
    """A verifier field with these values, one for each row."""
    texts = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    kinds = [
        2 if isinstance(v, bool) else 3 if isinstance(v, int | float) else 4 if isinstance(v, str) else 0
        for v in values
    ]
    return Column(
        np.asarray(kinds, np.uint8),
        np.asarray([float(v) if isinstance(v, int | float) else np.nan for v in values]),
        np.asarray([texts.index(v) if isinstance(v, str) else -1 for v in values], np.int32),
        texts,
        np.asarray([abs(hash(str(v))) + 1 for v in values], np.uint64),
    )


def skips_the_lookup(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
    """Exchanges without a look at the stock mostly fail; returns need none."""
    write = (WRITE if task % 2 == 0 else OTHER, '{"item": "a"}', "done")
    looks = rng.random() < 0.5
    if task % 2:
        return [write, "All done."], rng.random() < 0.6
    calls = [(LOOK, "{}", "three left"), write] if looks else [write]
    return [*calls, "All done."], rng.random() < (0.8 if looks else 0.05)


def by_chance(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
    """The look-up is as common in passes as in failures."""
    write = (WRITE if task % 2 == 0 else OTHER, '{"item": "a"}', "done")
    calls = [(LOOK, "{}", "three left"), write] if rng.random() < 0.5 else [write]
    words = " ".join(rng.sample(["sure", "gladly", "noted", "indeed", "right", "fine"], 2))
    return [*calls, f"All done, {words}."], rng.random() < 0.5


def mechanisms(found: Sequence[Mechanism]) -> list[Mechanism]:
    return [one for one in found if one.standing == "mechanism"]


def test_a_planted_mechanism_is_found_first_with_its_counts() -> None:
    scene = bench(skips_the_lookup)
    first = scene.found()[0]
    shown = [
        episode
        for episode in scene.episodes.values()
        if int(episode.trace.rollout.task) % 2 == 0 and all(call.tool != LOOK for call in episode.calls)
    ]
    assert first.standing == "mechanism"
    assert first.predicate.startswith(f"never_calls({LOOK})")
    assert first.within_task
    assert first.actionable == LOOK
    assert (first.n_with, first.n_without) == (len(shown), 60 - len(shown))
    assert first.pass_with == sum(bool(episode.passed) for episode in shown) / len(shown)
    assert first.low is not None
    assert first.high is not None
    assert first.low <= first.pass_without - first.pass_with <= first.high
    failing = {(e.trace.rollout.task, e.trace.rollout.repeat) for e in shown if not e.passed}
    assert set(first.rollouts) == failing
    assert f"{first.n_with} never call `{LOOK}`" in first.text


def test_its_quotes_are_exact_and_stand_where_the_step_was_skipped() -> None:
    scene = bench(skips_the_lookup)
    first = scene.found()[0]
    assert 1 <= len(first.evidence) <= 3
    for told in first.evidence:
        episode = next(
            e
            for e in scene.episodes.values()
            if (e.trace.rollout.task, e.trace.rollout.repeat) == (told.task, told.repeat)
        )
        assert told.step is not None
        assert told.quote in events.step_text(episode.trace.steps[told.step])
        assert episode.trace.steps[told.step].tool == WRITE


def test_what_passes_show_as_often_is_no_mechanism() -> None:
    found = bench(by_chance).found()
    assert not mechanisms(found)
    assert len(found) >= 3  # the strongest are still told, as leads
    assert all(one.p is not None and one.p_adjusted is not None and one.p_adjusted >= one.p for one in found)


def test_across_tasks_where_there_are_no_repeats() -> None:
    found = bench(skips_the_lookup, n_tasks=120, repeats=1).found()
    assert found[0].predicate.startswith(f"never_calls({LOOK})")
    assert found[0].standing == "mechanism"
    assert not found[0].within_task
    assert "expected" in found[0].control


def test_a_predicate_that_names_the_kind_of_task_is_no_mechanism() -> None:
    def by_kind(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        tool = WRITE if task % 2 == 0 else OTHER
        return [("look", "{}", "seen"), (tool, "{}", "done"), f"The {tool} is done."], rng.random() < (
            0.9 if task % 2 else 0.1
        )

    for repeats in (1, 4):
        found = bench(by_kind, n_tasks=60, repeats=repeats).found()
        assert not mechanisms(found), [one.predicate for one in found]


def test_a_field_of_the_task_is_a_slice() -> None:
    scene = bench(by_chance, n_tasks=80, repeats=1)
    level = ["hard" if not passed else "easy" for passed in scene.judged.passed]
    noisy = {"level": column([value if at % 3 else "easy" for at, value in enumerate(level)])}
    assert mechanisms(scene.found(noisy))
    assert not mechanisms(scene.found(noisy, task_fields=frozenset({"level"})))


@pytest.mark.parametrize("name", ["db_match", "judge_reward", "is_correct", "final.score"])
def test_a_restatement_of_the_reward_is_left_out_by_its_name(name: str) -> None:
    scene = bench(by_chance)
    nearly = [bool(passed) if at % 9 else False for at, passed in enumerate(scene.judged.passed)]
    assert not mechanisms(scene.found({name: column(nearly)}))


def test_a_restatement_of_the_reward_is_left_out_by_its_values() -> None:
    scene = bench(by_chance)
    same = ["ok" if passed else "bad" for passed in scene.judged.passed]
    assert not mechanisms(scene.found({"state": column(same)}))
    noisy = [value if at % 4 else "ok" for at, value in enumerate(same)]
    assert mechanisms(scene.found({"state": column(noisy)}))[0].actionable == "state"
    assert not mechanisms(scene.found({"state": column(noisy)}, restating=frozenset({"state"})))


def test_objects_of_a_verifier_are_read_and_their_rewards_left_out() -> None:
    rng = random.Random(1)
    tasks = []
    for task in range(30):
        rows = []
        for repeat in range(4):
            passes = rng.random() < 0.5
            told = {"timeout": not passes and rng.random() < 0.8, "reward_info": {"r_outputs": passes}}
            rows.append(rollout(did("fine"), float(passes), repeat, task, verifier=told))
        tasks.append(make_task(*rows, start=4 * task))
    found = mechanisms(Bench(tasks).found())
    assert [one.predicate for one in found] == ["field(verifier.timeout=true)"]
    assert found[0].evidence[0].field == "verifier.timeout"


def test_broken_rows_are_in_no_count() -> None:
    scene = bench(skips_the_lookup)
    broken = [position for position in scene.episodes if position % 7 == 0]
    less = Bench(scene.tasks, broken).found()[0]
    even = [e for e in scene.episodes.values() if int(e.trace.rollout.task) % 2 == 0 and e.position % 7]
    assert less.n_with + less.n_without == len(even)
    assert not {
        (e.trace.rollout.task, e.trace.rollout.repeat)
        for e in scene.episodes.values()
        if e.position in broken
    } & set(less.rollouts)


def test_an_argument_is_compared_among_rollouts_that_make_the_call() -> None:
    def argues(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        cash = rng.random() < 0.5
        calls = (
            [(WRITE, json.dumps({"item": "a", "pay": "cash" if cash else "card"}), "done")]
            if rng.random() < 0.8
            else []
        )
        return [*calls, "All done."], rng.random() < (0.5 if not calls else 0.1 if cash else 0.9)

    first = bench(argues, n_tasks=40).found()[0]
    assert first.standing == "mechanism"
    assert first.actionable == f"{WRITE}.pay"
    assert first.predicate.endswith(f"within calls({WRITE})")


@pytest.mark.parametrize("repeats", [1, 4])
def test_shuffled_outcomes_give_no_mechanism(repeats: int) -> None:
    scene = bench(skips_the_lookup, n_tasks=30 if repeats > 1 else 90, repeats=repeats)
    observed = scene.observed()
    hits = 0
    for seed in range(40):
        order = np.argsort(
            scene.judged.task * (repeats > 1) + np.random.default_rng(seed).random(scene.judged.task.size)
        )
        told = Judged(
            **{
                **{name: getattr(scene.judged, name) for name in scene.judged.__struct_fields__},
                "passed": scene.judged.passed[order],
            }
        )
        hits += bool(mechanisms(conclude(told, {}, frozenset(), observed, scene.opener)))
    assert hits <= 2


def test_the_order_of_what_was_observed_does_not_matter() -> None:
    scene = bench(skips_the_lookup)
    observed = scene.observed()
    shuffled = random.Random(3).sample(observed, len(observed))
    one = conclude(scene.judged, {}, frozenset(), observed, scene.opener)
    assert conclude(scene.judged, {}, frozenset(), shuffled, scene.opener) == one
    gathered = Gathered()
    for entry in shuffled:
        gathered.add([entry])
    assert conclude(scene.judged, {}, frozenset(), gathered, scene.opener) == one


def test_nothing_is_said_of_too_few_rows_of_one_outcome_or_without_a_threshold() -> None:
    assert bench(skips_the_lookup, n_tasks=2, repeats=4).found() == []
    assert bench(lambda *_: (["done"], True)).found() == []
    scene = bench(skips_the_lookup)
    unjudged = Judged(
        **{**{name: getattr(scene.judged, name) for name in scene.judged.__struct_fields__}, "judged": False}
    )
    assert conclude(unjudged, {}, frozenset(), scene.observed(), scene.opener) == []
    assert conclude(scene.judged, {}, frozenset(), [], scene.opener) == []


@pytest.mark.parametrize("half", [1, 2])  # 1: the kind of task decides, and no like tasks can be compared
def test_ten_rows_are_enough_for_leads(half: int) -> None:
    def small(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        calls = [("look", json.dumps({"at": at}), "seen") for at in range(task % 3)]
        return [*calls, "done, " + "well " * (task % 4)], task // half % 2 == 0

    found = bench(small, n_tasks=12, repeats=1).found()
    assert found
    assert not mechanisms(found)


def test_malformed_traces_are_observed() -> None:
    items: list[Row] = [
        make_result("nobody", "an orphan"),
        make_call("same", "look", "no json {"),
        make_call("same", "look", '["a", "list"]'),
        make_result("same", ""),
        make_call("x", "", '{"a)b": "v(1)", "": null}'),
        {"type": "message", "role": "assistant", "content": []},
    ]
    task = make_task(
        rollout(items, verifier={"a": {"b": {"c": {"d": 1}}}, "f": float("inf")}, judge_text="\ud800 lone")
    )
    ((position, features),) = observe(task)
    assert position == 0
    assert "arguments_no_json(look)" in features
    assert all(split(feature)[0] for feature in features)


def test_long_rollouts_and_rows_stay_small() -> None:
    items = [
        item
        for at in range(5000)
        for item in (
            make_call(f"c{at}", f"tool_{at % 900}", json.dumps({f"k{at}": at})),
            make_result(f"c{at}", "ok " * 50),
        )
    ]
    ((_, features),) = observe(make_task(rollout([*items])))
    assert len(features) <= 300
    assert max(map(len, features)) <= 120


def test_no_episode_no_feature() -> None:
    assert observe(TaskTraces("run", "1", "one", (), events.gold({}))) == []
