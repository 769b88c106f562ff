"""Which terms are claimed to have moved the score: planted causes, and twins in which nothing did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blade.compare.bridge import bridge
from blade.compare.change_views import movers, views
from blade.model import OTHER, Mover, Setting, Side
from blade.stats import seeded_rng
from tests.case_tables import cases
from tests.compare.builders import pair_of, side

TABLE = (
    ("infrastructure", "infra_error"),
    ("task or verifier", "flaky"),
    ("model", "wrong_arg"),
    ("model", "gave_up"),
    ("model", "truncated"),
    ("undetermined", OTHER),
)
LEVELS = ("easy", "middle", "hard")
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


@pytest.mark.parametrize("case", cases(__file__, "movers"), ids=lambda case: case["about"])
def test_what_is_claimed_of_a_planted_cause(baseline: Side, case: dict[str, Any]) -> None:
    b = generated("b", case.get("spoiled", {}), case.get("worse", {}))
    found = claimed(baseline, b, (Setting("max_output_tokens", "4096", "512", "limit", True),) if case.get("limit") else ())
    assert [[mover.term, mover.side, mover.mechanical, mover.value > 0] for mover in found] == case.get("claims", [])
    assert [part for part in case.get("says", ()) if part not in found[0].text] == []
    sizes = [abs(mover.value) for mover in found]
    assert not case.get("mechanical_first") or sizes[0] < sizes[1]  # however sure others are
    assert not found or found[0].share > case.get("share", 0)
    assert claimed(baseline, baseline) == ()  # a run against itself


def test_of_modes_that_all_grow_alike_the_largest_alone_is_claimed_and_told_to_be_in_proportion(baseline: Side) -> None:
    pair = pair_of(baseline, generated("b", {}, dict.fromkeys(LEVELS, 0.4)))
    terms = bridge(pair)[0]
    (mover,) = movers(pair, terms, views(pair, terms, (), None), ())
    named = [term for term in terms if term.side == "model"]
    assert len(named) == 3
    assert mover.term == min(named, key=lambda term: term.value).term
    assert "in proportion to the losses of both runs it would be −" in mover.text


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
    assert [mover.term for mover in claimed(a, b)] == (["mode 00"] if is_claimed else [])


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
