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
from tests.builders import Row, make_call, make_message, make_result
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
        assert (told.quote or "?") in events.step_text(episode.trace.steps[told.step])
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


# ---- What the task expects --------------------------------------------------------------------


def features(*calls: Any, **fields: Any) -> tuple[str, ...]:
    """What is observed of one rollout."""
    ((_, found),) = observe(make_task(rollout(did(*calls), **fields)))
    return found


@pytest.mark.parametrize(
    ("answer", "output", "found"),
    [
        ("Hollow ship", "the term HOLLOW SHIP stands for", True),
        ("Hollow ship", "hollow ships, hollow, ship", False),
        ("1,204.5 km", "it is 1,204.5 km long", True),
        ("1994", "in 1994.", True),
        ("1994", "version 1994.2 and 21994", False),
        ("Ann Lee, Bob Ray and Cy Dow", "Cy Dow met Ann Lee; Bob Ray did not", True),
        ("Ann Lee, Bob Ray and Cy Dow", "Cy Dow met Ann Lee", False),
        ("Hollow ship", "x" * 20_000 + " hollow ship", False),  # beyond what is read of one result
    ],
)
def test_an_expected_answer_is_found_in_a_result(answer: str, output: str, found: bool) -> None:
    told = features(("search", "{}", "nothing"), ("search", "{}", output), "Done.", expected_answer=answer)
    assert "task:gold_answer" in told
    assert ("gold_found" in told) == found


@pytest.mark.parametrize("answer", ["42", "7.5%", "no", "word " * 30, "one\ntwo"])
def test_an_answer_that_chance_brings_up_or_nobody_repeats_is_not_looked_for(answer: str) -> None:
    told = features(("search", "{}", f"so: {answer} ."), "Done.", expected_answer=answer)
    assert not {"task:gold_answer", "gold_found"} & set(told)


def test_an_answer_that_the_prompt_holds_need_not_be_found() -> None:
    told = features(
        ("search", "{}", "Kherson"), expected_answer="Kherson", prompt="Which one, Kherson or Lviv?"
    )
    assert "task:gold_answer" not in told


def test_a_field_that_differs_between_repeats_is_no_expected_answer() -> None:
    rows = [
        rollout(did(("search", "{}", said)), 0.0, at, answer=said) for at, said in enumerate(["Rome", "Oslo"])
    ]
    assert all("task:gold_answer" not in told for _, told in observe(make_task(*rows)))


ORDER = {"name": "exchange_items", "arguments": {"order": "#W123456", "items": [98765], "on": "2024-05-20"}}


@pytest.mark.parametrize(
    ("given", "touched"),
    [
        ({"order": "#W123456", "items": ["98765"]}, True),  # neither the date nor the type is an id
        ({"order": "#W123456", "items": ["987651"]}, False),
        ({"order": "#W123456"}, False),
    ],
)
def test_expected_ids_are_touched_if_all_stand_in_some_call(given: dict[str, Any], touched: bool) -> None:
    told = features(("get_order", json.dumps(given), "ok"), "Done.", expected_actions=[ORDER])
    assert "task:gold_ids" in told
    assert ("gold_ids_touched" in told) == touched


def test_an_expected_change_is_missed_if_no_call_of_it_succeeds() -> None:
    both = [ORDER, {"name": "cancel_order", "arguments": {}}]
    done, failed = ("exchange_items", "{}", "done"), ("exchange_items", "{}", "Error: no such item")
    other = ("cancel_order", "{}", "done")
    assert "misses_gold_write" not in features(failed, done, other, expected_actions=both)
    assert "misses_gold_write" in features(failed, other, expected_actions=both)
    assert "misses_gold_write" in features(done, expected_actions=both)
    assert "misses_gold_write" not in features(("get_order", "{}", "ok"), expected_actions=[])


def searches(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
    """What finds the answer mostly passes; what does not find it mostly gives up."""
    if rng.random() < 0.1:
        return ["I know this by heart."], rng.random() < 0.5
    finds = rng.random() < 0.5
    result = f"the answer is Alpha{task}x" if finds else "something else"
    return [("search", "{}", result), "Here it is."], rng.random() < (0.85 if finds else 0.15)


def questions(play: Play, n_tasks: int = 30, repeats: int = 4) -> Bench:
    """Tasks that name the answer they expect."""
    rng = random.Random(5)
    tasks = []
    for task in range(n_tasks):
        rows = []
        for repeat in range(repeats):
            calls, passes = play(task, repeat, rng)
            gold = f"Alpha{task}x"
            rows.append(rollout(did(*calls), float(passes), repeat, task, expected_answer=gold))
        tasks.append(make_task(*rows, start=task * repeats))
    return Bench(tasks)


def test_never_getting_the_answer_is_told_among_rollouts_that_call_a_tool() -> None:
    scene = questions(searches)
    first = scene.found()[0]
    asking = [episode for episode in scene.episodes.values() if episode.calls]
    assert first.standing == "mechanism"
    assert first.predicate == "not gold_found within gold_answer"
    assert first.n_with + first.n_without == len(asking)
    assert first.n_with == sum("something else" in episode.calls[0].output for episode in asking)
    assert "never get the expected answer from any tool" in first.text
    assert "of those that do." in first.text
    assert first.evidence


def test_a_call_that_brings_the_answer_is_named_rather_than_the_answer() -> None:
    def looks_up(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        looks = rng.random() < 0.5
        call = (LOOK, "{}", f"it is Alpha{task}x") if looks else ("wait", "{}", "waited")
        return [call, ("wait", "{}", "waited"), "Here it is."], rng.random() < (0.85 if looks else 0.15)

    assert questions(looks_up).found()[0].predicate == f"never_calls({LOOK})"


def test_finding_the_answer_by_chance_is_no_mechanism() -> None:
    def idle(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        calls, _ = searches(task, repeat, rng)
        return calls, rng.random() < 0.5

    assert not mechanisms(questions(idle).found())


def test_what_comes_close_to_the_reward_ranks_below_what_can_be_acted_on() -> None:
    def skips(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        looks = rng.random() < 0.5
        writes = rng.random() < (0.85 if looks else 0.35)
        calls = [(LOOK, "{}", "three left")] if looks else []
        calls += [(WRITE if task % 2 == 0 else OTHER, "{}", "done")] if writes else []
        return [*calls, "All done."], writes and rng.random() < (0.9 if looks else 0.6)

    found = mechanisms(bench(skips, n_tasks=60).found())
    assert [one.predicate for one in found[:2]] == [
        f"never_calls({LOOK})",
        "misses_gold_write within gold_writes",
    ]
    assert "comes close to restating the reward" not in found[0].control
    assert "comes close to restating the reward" in found[1].control


def test_a_few_rollouts_tell_in_a_small_run_where_the_task_says_what_is_expected() -> None:
    def hands_over(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        gives_up = task % 2 == 0 and task < 10
        calls = [("give_up", "{}", "done")] if gives_up or task % 2 else [(WRITE, "{}", "done")]
        return [*calls, "All done."], not gives_up and rng.random() < 0.8

    for gold, told in ((True, True), (False, False)):
        rng = random.Random(2)
        tasks = []
        for task in range(40):
            calls, passes = hands_over(task, 0, rng)
            wanted = [{"name": "give_up" if task % 2 else WRITE, "arguments": {}}] if gold else []
            row = rollout(did(*calls), float(passes), 0, task, expected_actions=wanted)
            tasks.append(make_task(row, start=task))
        shown = [
            one
            for one in Bench(tasks).found()
            if one.predicate.startswith("calls(give_up) within gold_lacks")
        ]
        assert bool(shown) == told
        assert all(one.n_with == 5 for one in shown)


# ---- Final texts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "abstains"),
    [
        ("The page does not mention her birthday.", True),
        ("I looked.\nThere is no information on this in the results.", True),
        ("No, the page mentions that she was born in May.", False),
        ("He did not win. The text says so.", False),
    ],
)
def test_a_final_text_that_abstains(text: str, abstains: bool) -> None:
    assert ("final_has(abstention)" in features(text)) == abstains


@pytest.mark.parametrize(
    ("text", "asked", "only"),
    [
        ("$\\boxed{42}$", False, True),
        ("**Final answer:** \\boxed{\\frac{1}{2}}.", False, True),
        ("Since 6 x 7 = 42, \\boxed{42}", False, False),
        ("Answer: Hollow ship", True, True),
        ("[(4, 1), (4, 1),\n (2, 3)]", True, True),
        ("The ship was called hollow by Homer.", True, False),
        ("All done", True, True),
        ("All done", False, False),  # no answer is expected, so this is none
    ],
)
def test_a_final_text_that_is_the_answer_alone(text: str, asked: bool, only: bool) -> None:
    fields = {"expected_answer": "Hollow ship"} if asked else {}
    assert ("final_is(answer only)" in features(text, **fields)) == only


@pytest.mark.parametrize(
    ("text", "stays_open"),
    [
        ("[1, 1, 1, 1", True),
        ("'ababab", True),
        ("[1, [2], 3]", False),
        ('"Yes" (so', False),
        ("(a) and (b)", False),
    ],
)
def test_a_final_text_whose_bracket_stays_open(text: str, stays_open: bool) -> None:
    assert any("stays open" in feature for feature in features(text)) == stays_open


def test_an_abstention_is_told_rather_than_the_length_of_the_text() -> None:
    def gives_up(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        abstains = rng.random() < 0.4
        text = (
            "After a long look I must say that the results do not mention it." if abstains else "It is blue."
        )
        return [("search", "{}", "seen"), text], rng.random() < (0.1 if abstains else 0.8)

    def rambles(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        is_long = rng.random() < 0.4
        text = "".join(rng.choices("klmnopqr", k=60 if is_long else 11))
        return [("search", "{}", "seen"), text], rng.random() < (0.1 if is_long else 0.8)

    found = bench(gives_up, n_tasks=40).found()
    assert found[0].predicate == "final_has(abstention)"
    assert "they cannot answer or that their sources do not tell" in found[0].text
    assert "do not mention" in (found[0].evidence[0].quote or "")
    assert not any(one.predicate.startswith("#final_chars") for one in found)
    assert mechanisms(bench(rambles, n_tasks=40).found())[0].predicate.startswith("#final_chars")


def test_a_rollout_without_a_word_is_quoted_by_its_output() -> None:
    """A condition that only silent rollouts show still points at something."""
    silent = [rollout([make_message("")], float(n > 20), task=n) for n in range(24)]
    telling = [rollout(did(f"the answer is {n}"), float(n > 26), task=n) for n in range(24, 48)]
    found = Bench([make_task(row, start=at) for at, row in enumerate([*silent, *telling])]).found()
    assert found
    assert all(one.evidence for one in found)
