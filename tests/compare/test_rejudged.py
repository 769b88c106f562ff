"""The same result with another verdict is the verifier's; near-misses: another form, chance, another result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade import pipeline
from blade.compare import compare
from blade.compare.rejudgements import MODE, rejudged
from blade.pipeline import comparing
from blade.tables.index import Silent
from tests.case_tables import tables
from tests.compare.builders import pair_of, side
from tools.planted.planted_runs import write_pair

GRAINS = ("words", "read", "result")


def ended(run, outcomes, model="m", prompt="p", **grains):
    """A run with what its rows ended with, by grain: a letter for each repeat of a task, "." for nothing."""
    made = side(run, outcomes, model=model, settings={"system prompt": prompt})
    keys = [made.judged.task_keys[code] for code in made.judged.task.tolist()]
    letters = {grain: [told[key][r] for key, r in zip(keys, made.judged.repeat.tolist(), strict=True)] for grain, told in grains.items()}
    content = {grain: np.array([0 if one == "." else ord(one) for one in ends], np.uint64) for grain, ends in letters.items()}
    return replace(made, content=content)


def booked(a, b):
    """The rows of each run that are booked on the verifier, as (task, repeat)."""
    found = []
    for one in rejudged(pair_of(a, b)):
        rows = [at for at, code in enumerate(one.mode.tolist()) if code >= 0 and one.modes[code] == MODE]
        found.append([(one.judged.task_keys[one.judged.task[at]], int(one.judged.repeat[at])) for at in rows])
    return tuple(found)


def term_of(found):
    return next((term for term in found.bridge if term.term == MODE[1]), None)


EACH = [(case, grain) for case in tables(__file__, "rejudgements.yaml") for grain in (GRAINS if "GRAIN" in case["a"] else ("",))]


def told_of(run, told, grain):
    told = {grain if key == "GRAIN" else key: value for key, value in told.items()}
    grains = {name: told[name] for name in GRAINS if name in told}
    made = ended(run, told["rows"], told.get("model", "m"), told.get("prompt", "p"), **grains)
    return replace(made, settings={**made.settings, "verifier_version": told["verifier"]}) if "verifier" in told else made


@pytest.mark.parametrize(("case", "grain"), EACH, ids=[f"{case['about']} {grain}" for case, grain in EACH])
def test_which_rows_are_booked_on_the_verifier(case, grain):
    a, b = (told_of(run, case[run], grain) for run in "ab")
    of_a, of_b = ([tuple(row) for row in case.get("booked", {}).get(run, [])] for run in "ab")
    assert booked(a, b) == (of_a, of_b)
    assert booked(b, a) == (of_b, of_a)


def test_the_form_changed_where_results_equal_to_the_word_are_judged_alike():
    """Half of the candidate's results have a new form and fail: the other half says that the verifier stayed."""
    keys = [f"t{i}" for i in range(20)]
    old = dict.fromkeys(keys, "1"), dict.fromkeys(keys, "d")
    new = {key: "01"[i % 2] for i, key in enumerate(keys)}, {key: "ud"[i % 2] for i, key in enumerate(keys)}
    meant = dict.fromkeys(keys, "c")
    a = ended("a", old[0], words=old[1], result=meant)
    assert booked(a, ended("b", new[0], words=new[1], result=meant)) == ([], [])
    # its twin: the old run wrote the new form as well, and passed it
    b = ended("b", new[0], words=new[1], result=meant)
    assert booked(ended("a", old[0], words=new[1], result=meant), b) == ([], [(key, 0) for key in sorted(keys[::2])])


def test_a_loss_that_is_not_the_models_stays_where_it_is():
    told = {"words": {"x": "p"}}
    a, b = ended("a", {"x": "1"}, **told), ended("b", {"x": "0"}, **told)
    broken = replace(b, mode=np.array([0]), modes=(("infrastructure", "timed out"),))
    assert booked(a, broken) == ([], [])


def flaky_pair(seed, k, flake, strict=0.0, n=60):
    """Two runs of one model: a few right and wrong results a task, and a judge that errs now and then.

    In the second run it also fails the right result of a share of the tasks.
    """
    rng = np.random.default_rng(seed)
    rates, rejected = rng.beta(1.5, 1.0, n), rng.random(n) < strict
    runs = []
    for run in "ab":
        outcomes, results = {}, {}
        for i, rate in enumerate(rates):
            right = rng.random(k) < rate
            accepts = run == "a" or not rejected[i]
            passes = (right & accepts) ^ (rng.random(k) < flake)
            outcomes[f"t{i}"] = "".join("01"[int(one)] for one in passes)
            results[f"t{i}"] = "".join("r" if one else "vw"[int(rng.integers(2))] for one in right)
        words = {key: told.replace("r", "rs"[int(rng.integers(2))]) for key, told in results.items()}
        runs.append(ended(run, outcomes, words=words, result=results))
    return runs


@pytest.mark.parametrize(("k", "flake"), [(1, 0.1), (4, 0.15)])
def test_a_judge_that_errs_both_ways_moves_nothing(k, flake):
    found = [compare(*flaky_pair(seed, k, flake)) for seed in range(20)]
    values = [term.value if (term := term_of(one)) else 0.0 for one in found]
    assert abs(np.mean(values)) < 0.012
    claims = [one for one in found if any(mover.term == MODE[1] for mover in one.movers)]
    assert len(claims) <= 1  # 5% of comparisons in which nothing changed


TOLD = st.lists(
    st.tuples(st.booleans(), st.sampled_from("..pq"), st.sampled_from("..pq"), st.sampled_from(".rs")), min_size=1, max_size=4
)


@settings(deadline=None)
@given(st.lists(st.tuples(TOLD, TOLD), min_size=1, max_size=5))
def test_roles_do_not_matter(tasks):
    runs = []
    for role, run in enumerate("ab"):
        told = {f"t{i}": task[role] for i, task in enumerate(tasks)}
        outcomes = {key: "".join("01"[int(row[0])] for row in rows) for key, rows in told.items()}
        grains = {grain: {key: "".join(row[at] for row in rows) for key, rows in told.items()} for at, grain in enumerate(GRAINS, 1)}
        runs.append(ended(run, outcomes, **grains))
    assert booked(*runs) == booked(*reversed(runs))[::-1]
    for one, rows in zip(runs, booked(*runs), strict=True):
        judged = one.judged
        passed = {(judged.task_keys[judged.task[at]], judged.repeat[at]) for at in np.flatnonzero(judged.passed)}
        assert not passed.intersection(rows)


@pytest.mark.parametrize(("seed", "form"), [(11010, "closing"), pytest.param(11024, "spelling", marks=pytest.mark.slow)])
def test_a_changed_verifier_is_claimed_from_the_rows_alone(seed, form, tmp_path):
    """It reads the last words, or the spelling of a value that goes out with a message in other words each time."""
    made = write_pair(tmp_path, "verifier changed", seed=seed)
    assert (made.world, made.form) == ("desk", form)
    loaded = pipeline.load([str(made.baseline), str(made.candidate)], Silent())
    movers = comparing.compare(loaded, "test").comparisons[0].movers
    assert [mover.term for mover in movers] == [MODE[1]]
    assert movers[0].value * made.delta > 0
