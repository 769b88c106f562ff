"""Passing against failing rollouts: planted differences are found, shuffled outcomes stay silent."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from blade import contrast, events
from blade.contrast.shuffled import task_adjusted
from blade.model import Contrast, Episode, Judged, TaskTraces
from tests.builders import make_call, make_result
from tests.traces import did, make_task, rollout

LOOK = ("get_order", '{"id": "1"}', "order 1")
PRODUCT = ("get_product", '{"id": "7"}', "product 7")
UPDATE = ("update_order", '{"id": "1"}', "ok")
NOTE = ("list_notes", "{}", "[]")

Play = Callable[[Random, bool], list[Any]]


def tasks_of(play: Play, n_tasks: int, rewards: Sequence[int], seed: int = 0) -> list[TaskTraces]:
    """Tasks whose repeats end as told; `play` makes the calls of one rollout, given whether it passes."""
    found = []
    for number in range(n_tasks):
        rng = Random(f"{seed}/{number}")
        rows = [rollout(did(*play(rng, bool(one))), one, task=number) for one in rewards]
        found.append(make_task(*rows, start=number * len(rewards)))
    return found


def judged_of(tasks: Sequence[TaskTraces], broken: Sequence[int] = ()) -> Judged:
    rows = [(code, one) for code, task in enumerate(tasks) for one in task.episodes]
    passed = np.array([bool(one.passed) for _, one in rows])
    return Judged(
        run="run",
        task_keys=tuple(task.task for task in tasks),
        rows=np.array([one.position for _, one in rows]),
        task=np.array([code for code, _ in rows]),
        repeat=np.array([one.trace.rollout.repeat for _, one in rows]),
        passed=passed,
        score=passed.astype(float),
        judged=True,
        broken=np.array([one.position in broken for _, one in rows]),
    )


def concluded(tasks: Sequence[TaskTraces], judged: Judged | None = None) -> list[Contrast]:
    by_position = {one.position: one for task in tasks for one in task.episodes}
    observed = pickle.loads(pickle.dumps([contrast.observe(task) for task in tasks]))
    return contrast.conclude(judged or judged_of(tasks), observed, by_position.__getitem__)


def of_run(found: Sequence[Contrast]) -> list[Contrast]:
    return [one for one in found if one.task is None]


def noisy(rng: Random) -> list[Any]:
    return [NOTE] * (rng.random() < 0.5)


def left_out(rng: Random, passes: bool) -> list[Any]:
    """Failing rollouts seldom look at the product."""
    looks = rng.random() < (0.95 if passes else 0.05)
    return [*noisy(rng), LOOK, *([PRODUCT] if looks else []), UPDATE, "Done."]


def unlinked(rng: Random, passes: bool) -> list[Any]:
    """The same looks, whatever the outcome."""
    return left_out(rng, rng.random() < 0.5)


def out_of_order(rng: Random, passes: bool) -> list[Any]:
    right = [PRODUCT, UPDATE] if rng.random() < (0.95 if passes else 0.05) else [UPDATE, PRODUCT]
    return [LOOK, *right, *noisy(rng), "Done."]


def test_a_step_that_failing_rollouts_leave_out_is_found() -> None:
    found = concluded(tasks_of(left_out, 20, (1, 1, 0, 0)))
    first = of_run(found)[0]
    assert first.feature == "calls get_product"
    assert first.in_pass > 0.85 > 0.15 > first.in_fail
    assert first.p is not None
    assert first.p_adjusted is not None
    assert first.p <= first.p_adjusted <= 0.05
    assert "failing rollouts leave out" in first.text
    fail, passed = first.evidence
    assert passed.quote == '{"id": "7"}'
    assert fail.quote == '{"id": "1"}'
    assert (fail.task, fail.step) == (passed.task, passed.step)


def test_the_same_looks_without_a_link_to_the_outcome_say_nothing() -> None:
    assert concluded(tasks_of(unlinked, 20, (1, 1, 0, 0))) == []


def test_what_failing_rollouts_do_besides_is_found() -> None:
    def besides(rng: Random, passes: bool) -> list[Any]:
        extra = (
            [("cancel_order", '{"id": "1"}', "cancelled")] if rng.random() < (0.05 if passes else 0.9) else []
        )
        return [LOOK, *noisy(rng), *extra, UPDATE, "Done."]

    first = of_run(concluded(tasks_of(besides, 20, (1, 1, 0, 0))))[0]
    assert first.feature == "calls cancel_order"
    assert first.in_fail > first.in_pass
    assert first.text.startswith("Goes with failing")


def test_errors_of_a_tool_are_found() -> None:
    def failing_tool(rng: Random, passes: bool) -> list[Any]:
        bad = rng.random() < (0.05 if passes else 0.95)
        return [LOOK, ("update_order", '{"id": "1"}', "Error: locked" if bad else "ok"), *noisy(rng), "Done."]

    first = of_run(concluded(tasks_of(failing_tool, 20, (1, 1, 0, 0))))[0]
    assert first.feature == "gets an error from update_order"


def test_an_order_is_found_only_where_both_orders_occur() -> None:
    found = of_run(concluded(tasks_of(out_of_order, 20, (1, 1, 0, 0))))
    tools = ("get_product", "update_order")
    assert any(" before " in one.feature or ", next " in one.feature for one in found)
    assert all(any(tool in one.feature for tool in tools) for one in found)
    assert not any(" before " in one.feature for one in concluded(tasks_of(left_out, 20, (1, 1, 0, 0))))


def test_a_task_gets_what_holds_over_the_run_and_separates_it() -> None:
    tasks = tasks_of(left_out, 20, (1, 1, 0, 0))
    found = [one for one in concluded(tasks) if one.task is not None]
    assert len({one.task for one in found}) >= 15
    for one in found:
        assert abs(one.in_pass - one.in_fail) >= 0.5
        assert (one.n_pass, one.n_fail) == (2, 2)
        assert [quote.repeat in (0, 1) for quote in one.evidence] == [False, True]
    silent = {task.task for task in tasks} - {one.task for one in found}
    assert all(abs(looks(task, True) - looks(task, False)) < 0.5 for task in tasks if task.task in silent)


def looks(task: TaskTraces, passed: bool) -> float:
    rows = [one for one in task.episodes if one.passed is passed]
    return sum(any(call.tool == "get_product" for call in one.calls) for one in rows) / len(rows)


def test_a_perfect_separator_of_one_task_alone_is_noise() -> None:
    def odd_one(rng: Random, passes: bool) -> list[Any]:
        return [LOOK, *([PRODUCT] if passes else []), UPDATE, "Done."]

    lone = tasks_of(odd_one, 1, (1, 1, 0, 0))
    assert concluded(lone) == []


def test_many_repeats_of_one_task_speak_for_themselves() -> None:
    def clear(rng: Random, passes: bool) -> list[Any]:
        return [*noisy(rng), LOOK, *([PRODUCT] if passes else []), UPDATE, "Done."]

    (found,) = concluded(tasks_of(clear, 1, (1,) * 8 + (0,) * 8))
    assert (found.task, found.feature) == ("0", "calls get_product")
    assert found.p_adjusted is not None
    assert found.p_adjusted <= 0.05
    assert "shuffled outcomes" in found.text


def test_the_p_of_one_task_counts_the_labellings_that_do_as_well() -> None:
    failed = np.array([True] * 3 + [False] * 3)
    told = task_adjusted(failed[None, :], failed)
    assert told == (2 / 20, 0)  # of C(6, 3) labellings the one seen and its mirror image
    assert task_adjusted(failed[None, [0, 1, 3, 4]], failed[[0, 1, 3, 4]]) is None


def test_broken_rows_are_in_no_contrast() -> None:
    tasks = tasks_of(left_out, 20, (1, 1, 0, 0))
    broken = [one.position for task in tasks for one in task.episodes if not one.passed]
    assert concluded(tasks, judged_of(tasks, broken)) == []


def test_an_unjudged_run_has_no_contrast() -> None:
    tasks = tasks_of(left_out, 20, (1, 1, 0, 0))
    assert concluded(tasks, replace(judged_of(tasks), judged=False)) == []


def test_the_order_of_rows_and_tasks_does_not_matter() -> None:
    tasks = tasks_of(left_out, 12, (1, 0, 1, 0))
    turned = [TaskTraces(t.run, t.task, t.task_name, t.episodes[::-1], t.gold) for t in tasks[::-1]]
    by_position = {one.position: one for task in tasks for one in task.episodes}
    told = [
        contrast.conclude(
            judged_of(tasks), [contrast.observe(task) for task in some], by_position.__getitem__
        )
        for some in (tasks, turned)
    ]
    features = [[(one.task, one.feature, one.p, one.p_adjusted) for one in some] for some in told]
    assert features[0] == features[1] != []


@pytest.mark.parametrize(("n_tasks", "rewards"), [(20, (1, 1, 0, 0)), (6, (1,) * 8 + (0,) * 8)])
def test_shuffled_outcomes_stay_silent(n_tasks: int, rewards: tuple[int, ...]) -> None:
    """Of runs with outcomes shuffled within tasks, few get a contrast, and fewer tasks do."""
    tasks = tasks_of(left_out, n_tasks, rewards)
    judged = judged_of(tasks)
    observed = [contrast.observe(task) for task in tasks]
    by_position = {one.position: one for task in tasks for one in task.episodes}
    rng = np.random.default_rng(7)
    runs = told = 0
    times = 240
    for _ in range(times):
        passed = judged.passed.reshape(n_tasks, -1).copy()
        rng.permuted(passed, axis=1, out=passed)
        found = contrast.conclude(replace(judged, passed=passed.ravel()), observed, by_position.__getitem__)
        runs += any(one.task is None for one in found)
        told += len({one.task for one in found if one.task is not None})
    assert runs <= 0.05 * times
    assert told <= 0.05 * times * n_tasks


def test_quotes_are_substrings_of_their_steps() -> None:
    tasks = tasks_of(left_out, 12, (1, 1, 0, 0))
    rows = {(one.trace.rollout.task, one.trace.rollout.repeat): one for t in tasks for one in t.episodes}
    quotes = [quote for one in concluded(tasks) for quote in one.evidence]
    assert quotes
    for quote in quotes:
        step = rows[quote.task, quote.repeat or 0].trace.steps[quote.step or 0]
        assert str(quote.quote) in events.step_text(step)


# ---- Passes of another run ---------------------------------------------------------------------


def other_run(*rows: Any) -> list[Episode]:
    return list(make_task(*rows).episodes)


def test_a_task_that_never_passes_borrows_the_passes_of_another_run() -> None:
    never = make_task(*[rollout(did(LOOK, UPDATE, "Done."), 0) for _ in range(4)])
    passers = other_run(*[rollout(did(LOOK, PRODUCT, UPDATE, "Done."), 1) for _ in range(3)])
    found = contrast.borrowed(never, passers, "stronger")
    assert found is not None
    assert (found.feature, found.other_run, found.task) == ("calls get_product", "stronger", "0")
    assert (found.in_fail, found.in_pass, found.n_fail, found.n_pass) == (0, 1, 4, 3)
    assert "another run, stronger" in found.text
    assert [quote.step for quote in found.evidence] == [2, 2]


def test_nothing_is_borrowed_where_nothing_differs_or_nobody_passes() -> None:
    same = rollout(did(LOOK, UPDATE, "Done."), 0)
    never = make_task(same, same)
    assert contrast.borrowed(never, other_run(rollout(did(LOOK, UPDATE, "Done."), 1)), "other") is None
    assert contrast.borrowed(never, other_run(rollout(did(LOOK, PRODUCT), 0)), "other") is None
    passing = make_task(same, rollout(did(LOOK), 1))
    assert contrast.borrowed(passing, other_run(rollout(did(LOOK, PRODUCT), 1)), "other") is None


# ---- Odd rows ----------------------------------------------------------------------------------


def test_malformed_rollouts_are_observed() -> None:
    odd = [make_result("x", ""), make_call("c", "look", "{"), make_call("c", "", "[1]"), make_result("c", "")]
    task = make_task(rollout(odd, 1), rollout([], 0), rollout(did("only words"), 0))
    seen = contrast.observe(task)
    assert "calls no tool" in seen.features
    assert concluded([task]) == []


def test_a_task_with_one_outcome_leaves_nothing() -> None:
    seen = contrast.observe(make_task(rollout(did(LOOK), 0), rollout(did(PRODUCT), 0)))
    assert (seen.features, seen.divergences) == ((), ())


def test_very_long_rollouts_leave_little() -> None:
    rng = Random(0)
    calls = [(rng.choice(("look", "edit", "run")), f'{{"path": "f{at}"}}', "ok") for at in range(2500)]
    seen = contrast.observe(make_task(rollout(did(*calls), 1), rollout(did(*calls[:2000]), 0)))
    assert len(pickle.dumps(seen)) < 100_000


def test_the_parting_from_a_borrowed_pass_names_its_run() -> None:
    never = make_task(rollout(did(LOOK, UPDATE, "Done."), 0))
    (found,) = contrast.borrowed_divergences(
        never, other_run(rollout(did(LOOK, PRODUCT, UPDATE, "Done."), 1))
    )
    assert (found.step, found.passer_step, found.passer_run) == (2, 2, "run")
    assert found.passer_does == 'calls get_product with {"id": "7"}'


def test_a_borrowed_contrast_that_nothing_can_be_quoted_for_is_not_claimed() -> None:
    from blade.contrast import borrowed

    silent = make_task(rollout([{"type": "function_call_output"}]))
    passing = make_task(rollout([{"type": "function_call_output"}] * 2, 1.0))
    told = borrowed(silent, passing.episodes, "other")
    assert told is None or told.evidence
