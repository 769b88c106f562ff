"""A mechanism of one run looked up in a run: in its own the same rollouts, in another those that show it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from blade.discover import Gathered, applied, conclude
from blade.discover.choose import SOMETIMES
from blade.model import Column, Episode, Mechanism
from tests.test_discover import LOOK, OTHER, WRITE, Bench, bench, column, skips_the_lookup

NONE = np.zeros(0, bool)
NOTE = "send_note"
Keys = tuple[tuple[str, int], ...]
Fields = dict[str, Column]


def varied(
    task: int, repeat: int, rng: random.Random, expects: Sequence[str] = (WRITE, OTHER)
) -> tuple[Sequence[Any], bool]:
    """Many habits, some of which decide: looking first, paying in cash, closing with a long text."""
    given = {"item": "a", "pay": rng.choice(["cash", "card"]), "ids": ["x"] * rng.randrange(4)}
    looks = rng.random() < 0.5
    write = (expects[task % 2], json.dumps(given), rng.choice(["done", "Error: no stock"]))
    calls = [*([(LOOK, "{}", "three left")] if looks else []), *[write] * rng.choice([1, 1, 2])]
    if rng.random() < 0.3:
        calls.append((NOTE, '{"text": "hello"}', "ok"))
    end = rng.choice(["All done.", "I cannot help with that.", "Done: " + "well " * rng.randrange(60)])
    return [*calls, end], rng.random() < 0.3 + 0.5 * looks - 0.25 * (given["pay"] == "cash")


def pays_in_cash(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
    """An argument decides, among the rollouts that make the call."""
    given = {"item": "a", "pay": rng.choice(["cash", "card"])}
    pays = [(WRITE, json.dumps(given), "done")] if rng.random() < 0.8 else []
    return [*pays, "All done."], rng.random() < (0.5 if not pays else 0.1 if given["pay"] == "cash" else 0.9)


def fields_of(scene: Bench, seed: int = 0) -> Fields:
    """Fields of a verifier of every kind, all of which go with failing, and one of the task."""
    rng = random.Random(seed)
    passed, n = scene.judged.passed.tolist(), len(scene.judged.passed)

    def often(good: bool) -> bool:
        return rng.random() < (0.25 if good else 0.75)

    return {
        "style": column(["wordy" if often(good) else "terse" for good in passed]),
        "flagged": column([often(good) for good in passed]),
        "depth": column([float(rng.randrange(6) + 2 * often(good)) for good in passed]),
        "hint": column(["given" if often(good) else None for good in passed]),
        "category": column([f"kind {int(scene.judged.task[at]) % 3}" for at in range(n)]),
    }


TASK_FIELDS = frozenset({"category"})


def looked_up(one: Mechanism | str, scene: Bench, fields: Fields | None = None) -> Keys | None:
    """The rollouts of a run that show a mechanism, or a predicate."""
    mechanism = written(one) if isinstance(one, str) else one
    return applied(mechanism, scene.judged, fields or {}, TASK_FIELDS, Gathered(scene.observed()))


def written(predicate: str) -> Mechanism:
    """A mechanism with this predicate: `[never_|not ]FEATURE[ within CONDITION]`."""
    told, _, condition = predicate.partition(" within ")
    absent = told.startswith(("never_", "not "))
    feature = told.removeprefix("never_").removeprefix("not ")
    return replace(SAMPLE, predicate=predicate, feature=feature, condition=condition, absent=absent)


SAMPLE = bench(skips_the_lookup).found()[0]


def failing(scene: Bench, shows: Callable[[Episode], bool]) -> Keys:
    """What must be found: told from the rollouts themselves."""
    every = sorted(scene.episodes.items())
    return tuple(
        (e.trace.rollout.task, e.trace.rollout.repeat) for _, e in every if not e.passed and shows(e)
    )


def calls(episode: Episode, tool: str) -> bool:
    return any(call.tool == tool for call in episode.calls)


def number(episode: Episode) -> int:
    return int(episode.trace.rollout.task)


# ---- In its own run ------------------------------------------------------------------------------


def form(told: str) -> str:
    """The form of a predicate, without what it is about."""
    absent = "not " if told.startswith("not ") else ""
    plain = told.removeprefix("not ")
    kind = (
        "is given"
        if " is given)" in plain
        else "#field"
        if plain.startswith("#field")
        else plain.partition("(")[0].partition(">=")[0]
    )
    return f"{absent}{kind}{' within' if ' within ' in told else ''}"


@pytest.mark.parametrize(("n_tasks", "repeats"), [(30, 4), (90, 1)])
def test_a_run_shows_its_own_mechanisms_where_they_were_found(n_tasks: int, repeats: int) -> None:
    seen: set[str] = set()
    for seed in range(8):
        for play in (varied, skips_the_lookup, pays_in_cash):
            scene = bench(play, n_tasks, repeats, seed)
            observed = Gathered(scene.observed())
            for fields in ({}, fields_of(scene, seed)):
                found = conclude(scene.judged, fields, TASK_FIELDS, observed, scene.opener)
                assert found
                for one in found:
                    if SOMETIMES in one.predicate:
                        continue  # has a test of its own
                    seen.add(form(one.predicate))
                    assert applied(one, scene.judged, fields, TASK_FIELDS, observed) == one.rollouts, (
                        one.predicate
                    )
    assert seen >= {"never_calls", "never_calls within", "field", "not field", "#field"}
    assert {"arg within", "not arg within"} & seen
    assert {"calls within", "is given", "first_call"} & seen


def test_the_order_of_what_was_observed_does_not_matter() -> None:
    scene = bench(varied)
    observed = scene.observed()
    mixed = Gathered(random.Random(1).sample(observed, len(observed)))
    for one in conclude(scene.judged, {}, frozenset(), observed, scene.opener):
        assert applied(one, scene.judged, {}, frozenset(), mixed) == one.rollouts


def test_broken_rows_show_nothing() -> None:
    scene = bench(varied)
    broken = [position for position in scene.episodes if position % 5 == 0]
    less = Bench(scene.tasks, broken)
    wanted = failing(less, lambda e: e.position % 5 != 0 and not calls(e, LOOK))
    assert looked_up(f"never_calls({LOOK})", less) == wanted


def test_a_large_number_is_cut_where_it_was_found() -> None:
    for seed in range(4):
        rng = random.Random(seed)
        scene = bench(varied, seed=seed)
        values = [
            float(rng.randrange(10_000, 20_000) + (0 if good else 8_000))
            for good in scene.judged.passed.tolist()
        ]
        fields = {"spent": column(values)}
        found = [one for one in scene.found(fields) if "spent" in one.predicate]
        assert found
        for one in found:
            assert looked_up(one, scene, fields) == one.rollouts, one.predicate


def mixed_tasks(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
    """Of tasks that do both, those rollouts fail that do not look; tasks that always fail look most."""
    looks = rng.random() < (0.85, 0.15, 0.5)[task // 2 % 3]
    write = (WRITE if task % 2 == 0 else OTHER, "{}", "done")
    passes = (False, True, rng.random() < (0.95 if looks else 0.05))[task // 2 % 3]
    return [*([(LOOK, "{}", "three left")] if looks else []), write, "All done."], passes


def test_a_mechanism_of_tasks_that_sometimes_pass_is_found_again() -> None:
    scene = bench(mixed_tasks, n_tasks=60)
    (one,) = [found for found in scene.found() if SOMETIMES in found.predicate][:1]
    assert one.standing == "mechanism"
    assert one.explains
    assert looked_up(one, scene) == one.rollouts, one.predicate


def test_words_of_the_grammar_inside_a_value_are_no_grammar() -> None:
    def ships(task: int, repeat: int, rng: random.Random) -> tuple[Sequence[Any], bool]:
        mode = rng.choice(["air within state", "road"])
        return [(WRITE, json.dumps({"mode": mode}), "done"), "All done."], rng.random() < (
            0.1 if mode == "road" else 0.9
        )

    scene = bench(ships, n_tasks=40)
    wanted = failing(scene, lambda e: any((c.arguments or {}).get("mode") == "road" for c in e.calls))
    assert looked_up(f"arg({WRITE}.mode=road)", scene) is not None
    for one in scene.found():
        if ".mode" in one.predicate:
            assert set(one.rollouts) == set(wanted)
            assert looked_up(one, scene) == one.rollouts, one.predicate


# ---- In another run ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other() -> Bench:
    """A run of the same tasks whose rollouts go otherwise."""
    return bench(varied, seed=99)


def test_an_act_and_its_absence(other: Bench) -> None:
    assert looked_up(f"calls({LOOK})", other) == failing(other, lambda e: calls(e, LOOK))
    assert looked_up(f"never_calls({LOOK})", other) == failing(other, lambda e: not calls(e, LOOK))
    assert looked_up(f"first_call({LOOK})", other) == failing(other, lambda e: e.calls[0].tool == LOOK)
    assert looked_up(f"not first_call({LOOK})", other) == failing(other, lambda e: e.calls[0].tool != LOOK)


def test_an_act_within_tasks_that_expect_something(other: Bench) -> None:
    even = f"gold_has({WRITE})"
    assert looked_up(f"never_calls({LOOK}) within {even}", other) == failing(
        other, lambda e: number(e) % 2 == 0 and not calls(e, LOOK)
    )
    assert looked_up(f"calls({LOOK}) within {even}", other) == failing(
        other, lambda e: number(e) % 2 == 0 and calls(e, LOOK)
    )
    assert looked_up(f"calls({WRITE}) within gold_lacks({WRITE})", other) == failing(
        other, lambda e: number(e) % 2 == 1 and calls(e, WRITE)
    )


def test_an_act_within_a_kind_of_task(other: Bench) -> None:
    fields = fields_of(other)
    assert looked_up(f"never_calls({LOOK}) within category=kind 1", other, fields) == failing(
        other, lambda e: number(e) % 3 == 1 and not calls(e, LOOK)
    )
    assert looked_up(f"never_calls({LOOK}) within category=kind 7", other, fields) is None


def test_an_argument_among_rollouts_that_make_the_call(other: Bench) -> None:
    def pays(episode: Episode, how: str) -> bool:
        return any(c.tool == WRITE and (c.arguments or {}).get("pay") == how for c in episode.calls)

    within = f"within calls({WRITE})"
    assert looked_up(f"arg({WRITE}.pay=cash) {within}", other) == failing(other, lambda e: pays(e, "cash"))
    assert looked_up(f"not arg({WRITE}.pay=cash) {within}", other) == failing(
        other, lambda e: calls(e, WRITE) and not pays(e, "cash")
    )


def test_a_number(other: Bench) -> None:
    assert looked_up("#n_calls>=3", other) == failing(other, lambda e: len(e.calls) >= 3)
    assert looked_up("not #n_calls>=3", other) == failing(other, lambda e: len(e.calls) < 3)
    often = f"#calls({WRITE})>=2"
    assert looked_up(often, other) == failing(other, lambda e: sum(c.tool == WRITE for c in e.calls) >= 2)
    assert looked_up("#n_of_nothing>=2", other) is None


def test_fields_of_every_kind(other: Bench) -> None:
    fields = fields_of(other)
    style, flagged, depth, hint = (fields[name] for name in ("style", "flagged", "depth", "hint"))
    wordy = style.texts.index("wordy")
    expected = {
        "field(style=wordy)": lambda at: style.code[at] == wordy,
        "field(flagged=true)": lambda at: flagged.number[at] == 1,
        "#field(depth)>=4": lambda at: depth.number[at] >= 4,
        "field(hint is given)": lambda at: hint.kind[at] == 4,
    }
    for told, shows in expected.items():
        assert looked_up(told, other, fields) == failing(
            other, lambda e, shows=shows: bool(shows(e.position))
        ), told
        assert looked_up(f"not {told}", other, fields) == failing(
            other, lambda e, shows=shows: not shows(e.position)
        ), told
        assert looked_up(told, other) is None  # a run without the field cannot tell
    assert looked_up("field(style=sung)", other, fields) == ()


def test_what_nobody_does_is_shown_by_none_and_its_absence_by_all(other: Bench) -> None:
    assert looked_up("calls(unheard_of)", other) == ()
    assert looked_up("never_calls(unheard_of)", other) == failing(other, lambda e: True)


def test_a_run_without_a_row_cannot_tell(other: Bench) -> None:
    every = Bench(other.tasks, list(other.episodes))
    assert looked_up(f"calls({LOOK})", every) is None


# ---- Where the other run is more of a kind -------------------------------------------------------


def test_a_condition_that_every_task_of_the_other_run_meets_is_met() -> None:
    """Of the tasks only those that expect an exchange: nothing is left to compare, all is left to look up."""
    whole = bench(varied, n_tasks=40, seed=5)
    part = Bench([task for at, task in enumerate(whole.tasks) if at % 2 == 0])
    wanted = failing(part, lambda e: not calls(e, LOOK))
    assert wanted
    assert looked_up(f"never_calls({LOOK}) within gold_has({WRITE})", part) == wanted


def test_a_call_that_every_rollout_makes_is_a_condition_too() -> None:
    whole = bench(varied, n_tasks=40, seed=5)
    part = Bench([task for at, task in enumerate(whole.tasks) if at % 2 == 0])
    wanted = failing(part, lambda e: any((c.arguments or {}).get("pay") == "cash" for c in e.calls))
    assert all(calls(episode, WRITE) for episode in part.episodes.values())
    assert looked_up(f"arg({WRITE}.pay=cash) within calls({WRITE})", part) == wanted


def test_a_condition_that_few_tasks_of_the_other_run_meet_is_met_by_these() -> None:
    whole = bench(varied, n_tasks=40, seed=6)
    part = Bench(
        [task for at, task in enumerate(whole.tasks) if at % 2 == 1 or at < 6]
    )  # three tasks of an exchange
    wanted = failing(part, lambda e: number(e) % 2 == 0 and not calls(e, LOOK))
    assert wanted
    assert looked_up(f"never_calls({LOOK}) within gold_has({WRITE})", part) == wanted
