"""Which terms are claimed to have moved the score: planted causes, and twins in which nothing did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blade.compare.bridge import bridge
from blade.compare.change_views import movers, views
from blade.model import OTHER, Mover, Setting, Side
from blade.stats import seeded_rng
from tests.compare.builders import pair_of, side
from tests.compared import TURNED

TABLE = (
    ("infrastructure", "infra_error"),
    ("task or verifier", "flaky"),
    ("model", "wrong_arg"),
    ("model", "gave_up"),
    ("model", "truncated"),
    ("undetermined", OTHER),
)
LEVELS = ("easy", "middle", "hard")
LIMIT = (Setting("max_output_tokens", "4096", "512", "limit", True),)
N, REPEATS = 120, 4


def generated(run: str, spoiled: dict[str, float], worse: dict[str, float], seed: str = "") -> Side:
    """Rows that end by a mode of `spoiled` with its chance, else pass or fail by a mode as tasks do.

    `worse` takes a share of the passes of a level; `spoiled["-mode"]` lets rows pass that would fail by it.
    """
    rng = seeded_rng("movers", run, seed)
    tasks = seeded_rng("tasks", seed)
    rates = tasks.uniform(0.2, 0.9, N)
    mixes = tasks.dirichlet([3, 3, 1, 2], N)
    outcomes, modes = {}, {}
    for i in range(N):
        rate = rates[i] * (1 - worse.get(LEVELS[i % 3], 0))
        letters = ""
        for repeat in range(REPEATS):
            mode = TABLE[2 + int(rng.choice(4, p=mixes[i]))] if rng.random() >= rate else None
            for name, chance in spoiled.items():
                drawn = rng.random() < chance
                if drawn and name.startswith("-"):
                    mode = None if mode is not None and mode[1] == name[1:] else mode
                elif drawn:
                    mode = next(entry for entry in TABLE if entry[1] == name)
            letters += "1" if mode is None else "0"
            if mode is not None:
                modes[str(i), repeat] = mode
        outcomes[str(i)] = letters
    labels = {"level": {str(i): LEVELS[i % 3] for i in range(N)}, "half": {str(i): str(i % 2) for i in range(N)}}
    labels["grade"] = {key: str(LEVELS.index(label)) for key, label in labels["level"].items()}  # an alias
    return side(run, outcomes, modes=modes, table=TABLE, slices=labels)


def claimed(a: Side, b: Side, diff: tuple[Setting, ...] = (), **told: Any) -> tuple[Mover, ...]:
    pair = pair_of(a, b, **told)
    terms, _ = bridge(pair)
    return movers(pair, terms, views(pair, terms, diff, None), diff)


def names(found: tuple[Mover, ...]) -> list[str]:
    return [mover.term for mover in found]


@pytest.fixture(scope="module")
def baseline() -> Side:
    return generated("a", {}, {})


def without(run: Side, keys: set[str]) -> Side:
    """The run as if some tasks had never been part of it."""
    kept = [i for i, key in enumerate(run.judged.task_keys) if key not in keys]
    outcomes = {run.judged.task_keys[i]: run.judged.score[run.judged.task == i].tolist() for i in kept}
    rows = np.flatnonzero(np.isin(run.judged.task, kept) & (run.mode >= 0)).tolist()
    modes = {(run.judged.task_keys[run.judged.task[row]], int(run.judged.repeat[row])): TABLE[run.mode[row]] for row in rows}
    slices = {field: {run.judged.task_keys[i]: labels[codes[i]] for i in kept} for field, (codes, labels) in run.slices.items()}
    return side(run.run, outcomes, modes=modes, table=TABLE, slices=slices)


# ---- Planted causes -----------------------------------------------------------------------------------


def test_nothing_is_claimed_where_nothing_changed(baseline: Side) -> None:
    assert claimed(baseline, generated("b", {}, {})) == ()
    assert claimed(baseline, baseline) == ()


def test_an_outage_is_told_first_and_alone(baseline: Side) -> None:
    """The rows that it spoils fail by no mode of the model's: that they gain is not claimed."""
    (mover,) = claimed(baseline, generated("b", {"infra_error": 0.3}, {}))
    assert (mover.view, mover.term, mover.side, mover.mechanical) == ("bridge", "infra_error", "infrastructure", True)
    assert mover.value < 0
    assert mover.text.startswith("infra_error (infrastructure) accounts for −")
    assert mover.text.endswith(f"of {N} tasks concerned)")


def test_a_mode_that_was_fixed_is_claimed_and_the_others_are_not(baseline: Side) -> None:
    (mover,) = claimed(baseline, generated("b", {"-gave_up": 0.9}, {}))
    assert (mover.term, mover.side, mover.mechanical) == ("gave_up", "model", False)
    assert mover.share > 0.6
    assert "gave_up (model) accounts for +" in mover.text
    assert "in proportion to the losses of both runs it would be +" in mover.text


def test_a_slice_that_got_worse_is_claimed_first_and_once(baseline: Side) -> None:
    """Two fields cut the tasks in the same way; no other slice is claimed, and of the modes only the largest."""
    first, *others = claimed(baseline, generated("b", {}, {"hard": 0.7}))
    assert (first.term, first.side) == ("grade=2", "slice")
    assert first.value < 0
    assert [mover.side for mover in others] in ([], ["model"])


def test_of_modes_that_all_grow_alike_the_largest_alone_is_claimed_and_told_to_be_in_proportion(baseline: Side) -> None:
    pair = pair_of(baseline, generated("b", {}, dict.fromkeys(LEVELS, 0.4)))
    terms = bridge(pair)[0]
    (mover,) = movers(pair, terms, views(pair, terms, (), None), ())
    named = [term for term in terms if term.side == "model"]
    assert len(named) == 3
    assert mover.term == min(named, key=lambda term: term.value).term
    assert "in proportion to the losses of both runs it would be −" in mover.text


def test_the_largest_mode_is_claimed_if_it_goes_with_the_change_and_is_beyond_noise(baseline: Side) -> None:
    """Near-misses: a mode that shrinks while the score falls, and one that grows by a few rows."""
    grows = generated("b", {"wrong_arg": 0.3}, {})
    (mover,) = claimed(baseline, grows)
    assert (mover.term, mover.value < 0) == ("wrong_arg", True)
    assert claimed(baseline, generated("b", {"wrong_arg": 0.01}, {})) == ()
    falls = claimed(baseline, generated("b", {OTHER: 0.5}, {}))  # it takes rows away from every named mode
    assert falls == ()


def test_truncation_is_mechanical_if_a_limit_changed_and_the_models_doing_if_none_did(baseline: Side) -> None:
    b = generated("b", {"truncated": 0.3}, {})
    (mover,) = claimed(baseline, b, LIMIT)
    assert (mover.term, mover.side, mover.mechanical) == ("truncated", "model", True)
    (mover,) = claimed(baseline, b)
    assert (mover.term, mover.mechanical) == ("truncated", False)


def test_mechanical_causes_come_first_however_sure_others_are(baseline: Side) -> None:
    found = claimed(baseline, generated("b", {"flaky": 0.08}, {"hard": 0.9}))
    assert names(found) == ["flaky", "grade=2"]
    assert found[0].mechanical
    assert abs(found[0].value) < abs(found[1].value)


def test_hard_tasks_that_were_dropped_are_claimed_and_as_many_others_are_not(baseline: Side) -> None:
    means = [baseline.judged.score[baseline.judged.task == i].mean() for i in range(N)]
    order = [baseline.judged.task_keys[i] for i in np.argsort(means, kind="stable").tolist()]
    b = generated("b", {}, {})
    (mover,) = claimed(baseline, without(b, set(order[:40])))
    assert (mover.term, mover.side, mover.mechanical) == ("removed tasks", "composition", True)
    assert mover.text.endswith(f"(40 of {N} tasks concerned)")
    assert claimed(baseline, without(b, set(order[::3]))) == ()


@pytest.mark.parametrize(("n_others", "is_claimed"), [(10, True), (25, False)])
def test_modes_that_are_told_together_count_as_looked_at(n_others: int, is_claimed: bool) -> None:
    """A mode that is new in 9 tasks has p = 1/256: enough among a dozen modes, too little among two dozen."""
    table = tuple(("model", f"mode {i:02}") for i in range(n_others + 1))
    modes_a = {(f"{i}.{n}", 0): table[i] for i in range(1, n_others + 1) for n in range(5)}
    modes_b = {(f"{i}.{5 + n}", 0): table[i] for i in range(1, n_others + 1) for n in range(5)}
    modes_b |= {(f"0.{n}", 0): table[0] for n in range(9)}
    tasks = [key for key, _ in modes_a | modes_b]
    a, b = (
        side(run, {key: "0" if (key, 0) in modes else "1" for key in tasks}, modes=modes, table=table)
        for run, modes in (("a", modes_a), ("b", modes_b))
    )
    assert names(claimed(a, b)) == (["mode 00"] if is_claimed else [])


def test_swapped_runs_claim_the_same_with_the_other_sign(baseline: Side) -> None:
    hard = {str(i) for i in range(0, N, 3) if generated_mean(baseline, i) < 0.5}
    b = without(generated("b", {"infra_error": 0.2}, {"hard": 0.8}), hard)
    there, back = claimed(baseline, b), claimed(b, baseline)
    assert len(there) > 1
    assert names(back) == [TURNED.get(name, name) for name in names(there)]
    for mover, other in zip(there, back, strict=True):
        assert other.value == pytest.approx(-mover.value)
        assert other.p_adjusted == pytest.approx(mover.p_adjusted)
        assert other.share == pytest.approx(mover.share)


def generated_mean(run: Side, task: int) -> float:
    return float(run.judged.score[run.judged.task == task].mean())


@pytest.mark.parametrize(("n_also", "told"), [(6, True), (5, False)])
def test_a_claim_lists_rollouts_and_says_what_most_of_them_show_as_well(n_also: int, told: bool) -> None:
    """Six of ten rollouts are most of them, five are not; a fact that names the claim itself is not repeated."""
    table = (("model", "no write"),)
    modes = {(str(i), 0): table[0] for i in range(10)}
    facts = {"error: locked": [(str(i), 0) for i in range(n_also)], "no write": list(modes)}
    a = side("a", {str(i): "1" for i in range(20)}, table=table)
    b = side("b", {str(i): "0" if i < 10 else "1" for i in range(20)}, modes=modes, table=table, behaviours=facts)
    (mover,) = claimed(a, b)
    assert mover.rollouts == tuple(("b", str(i), 0) for i in range(5))
    assert mover.beside == (("6 of its 10 failing rollouts in b also show: error: locked",) if told else ())
