"""Planted pairs of runs: they differ in the one thing that the truth names, and by as much as it says."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

from blade.model import Mover
from tests.case_tables import cases
from tools.calibration import planted_causes
from tools.planted import paired_runs
from tools.planted.paired_runs import BROKEN, CAUSES, CUT, LOOSE, SOLVED, WORLDS, Plan, play
from tools.planted.planted_runs import PlantedPair, planned, write_pair

Row = dict[str, Any]
Rows = dict[tuple[int, int], Row]
SEEDS = (1, 2)
MOVING = [cause for cause in CAUSES if cause != "nothing"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A pair by cause and seed with its rows, written once for all tests that only read it."""

    @cache
    def write(cause: str, seed: int) -> tuple[PlantedPair, Rows, Rows]:
        pair = write_pair(tmp_path_factory.mktemp("pair"), cause, seed=seed)
        return pair, rows_of(pair.baseline), rows_of(pair.candidate)

    return write


def by_key(rows: Iterable[Row]) -> Rows:
    return {(row["_ng_task_index"], row["_ng_rollout_index"]): row for row in rows}


def rows_of(path: Path) -> Rows:
    lines = path.read_bytes().splitlines()
    rows = by_key(map(json.loads, lines))
    assert len(rows) == len(lines)
    return rows


def touched_first(pair: PlantedPair, a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """The run that the cause was done to, and the other."""
    return (a, b) if pair.swapped else (b, a)


def score(rows: Rows) -> float:
    rewards: defaultdict[int, list[float]] = defaultdict(list)
    for (task, _), row in rows.items():
        rewards[task].append(row["reward"])
    return fmean(fmean(held) for held in rewards.values())


def twins(cause: str, seed: int) -> tuple[Plan, Rows, Rows, dict[Any, str], dict[Any, str]]:
    """One and the same run without the cause and with it: every rollout is drawn from the same stream."""
    plan = planned(cause, Random(f"{cause}/{seed}"), f"{cause}/{seed}", None, None, 2.0)[0]
    design = replace(plan.design, repeats=(plan.design.repeats[0],) * 2, rows=(plan.design.rows[0],) * 2)
    first, second = (play(design, under, 0) for under in (plan.a, plan.b))
    return plan, by_key(first.rows), by_key(second.rows), dict(first.how), dict(second.how)


def output(row: Row) -> list[Row]:
    return list(row["response"]["output"])


@pytest.mark.parametrize(("cause", "seed"), [(cause, seed) for cause in CAUSES for seed in SEEDS])
def test_the_files_hold_the_rows_and_the_score_that_the_truth_says(written: Any, cause: str, seed: int) -> None:
    pair, *both = written(cause, seed)
    for rows, rates, how, n_tasks, repeats in zip(both, pair.rates, pair.how, pair.n_tasks, pair.repeats, strict=True):
        n = Counter(str(task) for task, _ in rows)
        assert (set(rows), set(n)) == (set(how), set(rates))
        assert (len(n), max(n.values())) == (n_tasks, repeats)
        spread = sqrt(sum(rate * (1 - rate) / n[task] for task, rate in rates.items())) / len(n)
        assert abs(score(rows) - fmean(rates.values())) < 4 * spread
        for key, row in rows.items():
            assert how[key] in (SOLVED, LOOSE, CUT, BROKEN, *WORLDS[pair.world].ways)
            assert row["reward"] in (0.0, 1.0)
            assert how[key] in (SOLVED, LOOSE) or row["reward"] == 0.0
            assert how[key] != SOLVED or row["reward"] == 1.0
    assert fmean(pair.rates[1].values()) - fmean(pair.rates[0].values()) == pytest.approx(pair.delta)
    # the cause is as large as was asked for
    assert pair.mde == pytest.approx(2.8 * pair.se)
    if cause == "nothing":
        assert (pair.delta, pair.delta_common) == (0.0, 0.0)
    else:
        assert abs(pair.delta) >= 2 * pair.mde


def test_seeds_differ_in_design_and_one_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    pairs = [write_pair(tmp_path / str(seed), "infra outage", seed=seed) for seed in range(8)]
    again = write_pair(tmp_path / "again", "infra outage", seed=3)
    for path, other in ((again.baseline, pairs[3].baseline), (again.candidate, pairs[3].candidate)):
        assert path.read_bytes() == other.read_bytes()
    assert len({pair.n_tasks for pair in pairs}) > 4
    assert len({pair.repeats for pair in pairs}) > 2
    assert {pair.world for pair in pairs} == {"desk", "quiz"}
    assert {pair.swapped for pair in pairs} == {pair.delta > 0 for pair in pairs} == {True, False}
    assert all((pair.delta > 0) == pair.swapped for pair in pairs)


# ---- Each cause: what differs, and what does not ---------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_dropped_tasks_are_harder_or_easier_and_the_others_are_as_before(written: Any, seed: int) -> None:
    pair, a, b = written("tasks dropped", seed)
    fewer, more = touched_first(pair, a, b)
    kept, every = ({str(task) for task, _ in rows} for rows in (fewer, more))
    assert kept < every
    assert 2 * len(kept) >= len(every) - 1
    rates = pair.rates[0] if pair.swapped is False else pair.rates[1]
    gap = fmean(rates[task] for task in kept) - fmean(rates[task] for task in every - kept)
    assert abs(gap) > 0.3
    assert all(pair.rates[0][task] == pair.rates[1][task] for task in kept)
    assert pair.delta_common == 0.0
    assert pair.sides == ("composition",)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_outage_leaves_errors_and_no_output(written: Any, seed: int) -> None:
    pair, a, b = written("infra outage", seed)
    how = dict(zip((id(a), id(b)), pair.how, strict=True))
    shares = []
    for rows in touched_first(pair, a, b):
        broken = {key for key, way in how[id(rows)].items() if way == BROKEN}
        assert {key for key, row in rows.items() if row.get("error")} == broken
        assert all(output(rows[key]) == [] and rows[key]["reward"] == 0.0 for key in broken)
        shares.append(len(broken) / len(rows))
    assert shares[0] > 0.1 > 0.06 > shares[1]
    assert pair.sides == ("infrastructure",)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lowered_limit_cuts_what_is_longer(written: Any, seed: int) -> None:
    pair, a, b = written("truncation limit lowered", seed)
    assert "max_output_tokens" in pair.settings
    limits, shares = [], []
    for rows in touched_first(pair, a, b):
        (limit,) = {row["responses_create_params"]["max_output_tokens"] for row in rows.values()}
        cut = [row for row in rows.values() if row["response"]["status"] == "incomplete"]
        for row in cut:
            assert row["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
            assert row["response"]["usage"]["output_tokens"] == limit
            assert row["reward"] == 0.0
        limits.append(limit)
        shares.append(len(cut) / len(rows))
        rest = [row["response"]["usage"] for row in rows.values() if row["response"]["status"] == "completed"]
        assert all(used["output_tokens"] < 0.97 * limit for used in rest if used)
    low, high = limits
    assert low * 4 <= high
    assert shares[0] > shares[1] + 0.1
    _, more = touched_first(pair, a, b)
    assert any(row["reward"] == 1.0 and row["response"]["usage"]["output_tokens"] > low for row in more.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_one_category_is_worse_and_no_other(written: Any, seed: int) -> None:
    pair, a, _ = written("one slice worse", seed)
    (term,) = pair.terms
    category = {str(task): row["category"] for (task, _), row in a.items()}
    ratios = {task: rate / pair.rates[pair.swapped][task] for task, rate in pair.rates[not pair.swapped].items() if rate}
    inside = {round(ratio, 9) for task, ratio in ratios.items() if f"category={category[task]}" == term}
    outside = {ratio for task, ratio in ratios.items() if f"category={category[task]}" != term}
    assert (outside, len(inside)) == ({1.0}, 1)
    assert inside.pop() <= 0.8
    assert pair.sides == ("slice",)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fixed_mode_is_gone_and_its_rollouts_pass(seed: int) -> None:
    plan, before, after, how_before, how_after = twins("one failure mode fixed", seed)
    (way,) = plan.terms
    assert (way in how_before.values(), way in how_after.values()) == (True, False)
    for key, played in how_before.items():
        if played == way:
            assert how_after[key] in (SOLVED, LOOSE)
            assert (before[key]["reward"], after[key]["reward"]) == (0.0, 1.0)
        else:
            assert how_after[key] == played
    others = set(how_after.values()) - {SOLVED, LOOSE, CUT, BROKEN}
    assert len(others) >= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_changed_verifier_judges_the_same_outputs_otherwise(seed: int) -> None:
    _, lenient, strict, how_before, how_after = twins("verifier changed", seed)
    assert how_before == how_after
    for key, row in lenient.items():
        assert output(row) == output(strict[key])
        changed = row["reward"] != strict[key]["reward"]
        assert changed == (how_before[key] == LOOSE)
        assert not changed or (row["reward"], strict[key]["reward"]) == (1.0, 0.0)
    assert {LOOSE, SOLVED} <= set(how_before.values())


# ---- As the calibration judges claims ----------------------------------------------------------------


def mover(side: str, term: str, *rollouts: tuple[str, str, int]) -> Mover:
    return Mover("bridge", term, side, -0.2, -0.3, -0.1, 0.001, 1.0, False, "", rollouts)


def played(pair: PlantedPair, *ways: str) -> list[tuple[str, str, int]]:
    """A rollout of the pair for each of these ways."""
    places = defaultdict(list)
    for path, how in zip((pair.baseline, pair.candidate), pair.how, strict=True):
        for (task, repeat), way in how.items():
            places[way].append((path.stem, str(task), repeat))
    return [places[way].pop(0) for way in ways]


@pytest.mark.parametrize(("cause", "side", "way", "claimed"), cases(__file__, "classes_of_claims"))
def test_a_group_has_the_class_of_what_its_rollouts_really_did(
    written: Any, cause: str, side: str, way: str | None, claimed: str
) -> None:
    pair = written(cause, 1)[0]
    ways = [getattr(paired_runs, way)] * 2 if way else []
    assert planted_causes.claim(mover(side, "any name", *played(pair, *ways)), pair) == claimed


def test_only_the_planted_slice_and_the_planted_mode_are_right(written: Any) -> None:
    pair, *_ = written("one slice worse", 1)
    assert planted_causes.claim(mover("slice", pair.terms[0]), pair) == "one slice worse"
    assert planted_causes.claim(mover("slice", "difficulty=hard"), pair) == "another slice"
    pair, *_ = written("one failure mode fixed", 1)
    (way,) = pair.terms
    other = next(taken for how in pair.how for taken in how.values() if taken not in (way, SOLVED, LOOSE, CUT, BROKEN))
    assert planted_causes.claim(mover("model", "any name", *played(pair, way, way, other)), pair) == "one failure mode fixed"
    assert planted_causes.claim(mover("model", way, *played(pair, way, other, other)), pair) == "another mode"
    assert planted_causes.claim(mover("composition", "removed tasks"), pair) == "tasks dropped"
    assert planted_causes.claim(mover("missing", "tasks the candidate lost"), pair) == "something else"
