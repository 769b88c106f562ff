"""The same result with another verdict is the verifier's; near-misses: another form, chance, another result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade import pipeline
from blade.compare import compare
from blade.compare.alignment import align
from blade.compare.rejudgements import MODE, rejudged
from blade.compare.task_pairs import paired
from blade.pipeline import comparing
from blade.tables.index import Silent
from tests.compare.builders import side
from tools.planted.planted_runs import write_pair

GRAINS = ("words", "read", "result")


def ended(run, outcomes, model="m", prompt="p", **grains):
    """A run with what its rows ended with, by grain: a letter for each repeat of a task, "." for nothing."""
    made = side(run, outcomes, model=model, settings={"system prompt": prompt})
    keys = [made.judged.task_keys[code] for code in made.judged.task.tolist()]
    content = {
        grain: np.array([_number(told[key][r]) for key, r in zip(keys, made.judged.repeat.tolist(), strict=True)], np.uint64)
        for grain, told in grains.items()
    }
    return replace(made, content=content)


def _number(letter):
    return 0 if letter == "." else ord(letter)


def booked(a, b):
    """The rows of each run that are booked on the verifier, as (task, repeat)."""
    found = []
    for one in rejudged(paired(a, b, align(a, b))):
        rows = [at for at, code in enumerate(one.mode.tolist()) if code >= 0 and one.modes[code] == MODE]
        found.append([(one.judged.task_keys[one.judged.task[at]], int(one.judged.repeat[at])) for at in rows])
    return tuple(found)


def term_of(found):
    return next((term for term in found.bridge if term.term == MODE[1]), None)


@pytest.mark.parametrize("grain", GRAINS)
def test_the_same_result_with_another_verdict_is_booked_on_the_verifier(grain):
    a = ended("a", {"x": "11", "y": "10"}, **{grain: {"x": "pp", "y": "qr"}})
    b = ended("b", {"x": "00", "y": "10"}, **{grain: {"x": "ps", "y": "qr"}})
    assert booked(a, b) == ([], [("x", 0)])  # the other failure of x is another result
    assert booked(b, a) == ([("x", 0)], [])


@pytest.mark.parametrize("grain", GRAINS)
def test_results_that_one_run_judges_both_ways_decide_nothing(grain):
    a, b = (ended(run, {"x": told}, **{grain: {"x": "pp"}}) for run, told in (("a", "10"), ("b", "00")))
    assert booked(a, b) == ([], [])
    once = ended("a", {"x": "1"}, **{grain: {"x": "p"}})
    assert booked(once, b) == ([], [("x", 0), ("x", 1)])


def test_what_a_run_judges_both_ways_counts_by_its_words():
    """The strict run passes one closing of the same changes and fails the other, which the lenient one passes."""
    told = {"words": {"x": "du", "y": "du"}, "result": {"x": "cc", "y": "cc"}}
    lenient, strict = ended("a", {"x": "11", "y": "11"}, **told), ended("b", {"x": "10", "y": "10"}, **told)
    assert booked(lenient, strict) == ([], [("x", 1), ("y", 1)])
    flaky = ended("b", {"x": "10", "y": "10"}, words={"x": "uu", "y": "uu"}, result=told["result"])
    assert booked(lenient, flaky) == ([], [])  # nor do words decide


@pytest.mark.parametrize("changed", [{"model": "other"}, {"model": None}, {"prompt": "other"}])
def test_another_model_or_prompt_may_have_changed_the_form(changed):
    a = ended("a", {"x": "1"}, words={"x": "d"}, read={"x": "."}, result={"x": "c"})
    b = ended("b", {"x": "0"}, words={"x": "u"}, read={"x": "."}, result={"x": "c"})
    assert booked(a, b) == ([], [("x", 0)])
    other = ended("b", {"x": "0"}, words={"x": "u"}, read={"x": "."}, result={"x": "c"}, **changed)
    assert booked(a, other) == ([], [])
    for grain in ("words", "read"):  # what is equal to the word has one form
        there, here = (ended(run, {"x": v}, **{grain: {"x": "d"}}) for run, v in (("a", "1"), ("b", "0")))
        assert booked(there, replace(here, model=other.model, settings=other.settings)) == ([], [("x", 0)])


def test_a_verifier_that_is_stated_to_differ_leaves_the_form_alone():
    a, b = (ended(run, {"x": v}, result={"x": "c"}) for run, v in (("a", "1"), ("b", "0")))
    named = [replace(one, settings={**one.settings, "verifier_version": one.run}) for one in (a, b)]
    assert booked(*named) == ([], [("x", 0)])


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


def test_another_result_or_none_is_no_matter_of_the_verifier():
    a = ended("a", {"x": "1", "y": "1"}, words={"x": "p", "y": "."}, read={"x": ".", "y": "."}, result={"x": "p", "y": "."})
    b = ended("b", {"x": "0", "y": "0"}, words={"x": "q", "y": "."}, read={"x": ".", "y": "."}, result={"x": "q", "y": "."})
    assert booked(a, b) == ([], [])
    assert booked(replace(a, content={}), b) == ([], [])  # nobody looked
    assert booked(a, replace(b, judged=replace(b.judged, judged=False))) == ([], [])


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


@pytest.mark.parametrize(("k", "flake"), [(1, 0.02), (1, 0.1), (4, 0.02), (4, 0.15)])
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
        grains = {
            grain: {key: "".join(row[at] for row in rows) for key, rows in told.items()}
            for at, grain in enumerate(GRAINS, 1)
        }
        runs.append(ended(run, outcomes, **grains))
    assert booked(*runs) == booked(*reversed(runs))[::-1]
    for one, rows in zip(runs, booked(*runs), strict=True):
        passed = dict(zip(zip(one.judged.task.tolist(), one.judged.repeat.tolist(), strict=True),
                          one.judged.passed.tolist(), strict=True))  # fmt: skip
        assert not any(passed[one.judged.task_keys.index(key), repeat] for key, repeat in rows)


@pytest.mark.parametrize(("seed", "form"), [(11010, "closing"), (11024, "spelling")])
def test_a_changed_verifier_is_claimed_from_the_rows_alone(seed, form, tmp_path):
    """It reads the last words, or the spelling of a value that goes out with a message in other words each time."""
    made = write_pair(tmp_path, "verifier changed", seed=seed)
    assert (made.world, made.form) == ("desk", form)
    loaded = pipeline.load([str(made.baseline), str(made.candidate)], Silent())
    movers = comparing.compare(loaded, "test").comparisons[0].movers
    assert [mover.term for mover in movers] == [MODE[1]]
    assert movers[0].value * made.delta > 0
