"""Programs judged by printed output, returned values and tests of every form, which they can neither forge nor spoil."""

from __future__ import annotations

import asyncio
import time
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blade_eval import replies
from blade_eval.environment import Attempt, Unmeasured
from blade_eval.sandbox import assertions, driver, holds, plain
from blade_eval.sandbox.assertions import Asserted, Reading
from blade_eval.sandbox.box import packages
from blade_eval.sandbox.verdicts import differs
from blade_eval.verifiers import code_gen
from blade_eval.verifiers.code_gen import environment, extracted
from tests.evaluate.verifiers.attempts import example, judged, responded, responses, shipped, survives

MISSING = [f"{check.name}: {check.seen}" for check in holds() if not check.holds]
boxed = pytest.mark.skipif(bool(MISSING), reason=f"no box on this machine: {'; '.join(MISSING)}")
has_numpy = pytest.mark.skipif(not (Path(packages()) / "numpy").exists(), reason="no numpy of its own")

PROGRAMS = yaml.safe_load((Path(__file__).parent / "programs.yaml").read_text("utf-8"))
SQUARE = "def f(x): return x * x"
CALLED = {"unit_tests": {"fn_name": "f", "inputs": ["5"], "outputs": ["25"]}}
TIME, RUNTIME = -3, -4


def block(code: str) -> str:
    return f"Like this:\n\n```python\n{code}\n```\n\nIt is quick."


def asserting(*tests: str, **more: Any) -> dict[str, Any]:
    return {"verifier_metadata": {"test_list": list(tests), **more}}


def verdict(code: str, tests: dict[str, Any] | str, **settings: Any) -> tuple[Any, ...]:
    """The reward and how it was come by, or why there is none."""
    row = {"test_list": [tests]} if isinstance(tests, str) else tests
    try:
        fields = judged(environment(settings), {"verifier_metadata": row}, block(code))
    except Unmeasured as missing:
        return None, missing.kind
    return fields["reward"], fields["checked"]


def rewards(rows: list[tuple[str, ...]], **settings: Any) -> dict[str, Any]:
    """The reward of each program, or why it has none; all of them at once."""
    env = environment(settings)

    async def reward(code: str, test: str, prompt: str = "") -> Any:
        try:
            return (await env.verify(Attempt({"test_list": [test], "prompt": prompt}, responded(block(code)))))["reward"]
        except Unmeasured as missing:
            return missing.kind

    async def all_of() -> list[Any]:
        return await asyncio.gather(*(reward(*row[1:]) for row in rows))

    return dict(zip([row[0] for row in rows], asyncio.run(all_of()), strict=True))


def programs(kind: str) -> list[tuple[str, ...]]:
    return [(name, PROGRAMS["defined"].get(first, "") + code, *rest) for name, first, code, *rest in PROGRAMS[kind]]


def unreachable(kind: str) -> dict[str, str | None]:
    """Why each test cannot be judged from outside, by its text and what the task says."""
    return {name: Reading(Asserted([test], before="".join(more))).unreachable() for name, _, test, *more in programs(kind)}


@boxed
def test_the_examples_are_solved_and_wrong_programs_say_what_is_wrong() -> None:
    env = shipped("code_gen")
    for row, case in zip(example("code_gen"), PROGRAMS["examples"], strict=True):
        fields = judged(env, row, block(case["right"]))
        assert fields["reward"] == 1.0, fields["metadata"]
        assert (fields["checked"], fields["metadata"], set(fields["result"])) == (case["how"], {}, {True})
        assert fields["extracted_model_code"] == case["right"]
        fields = judged(environment({}), row, block(case["wrong"]))
        assert (fields["reward"], fields["result"]) == (0.0, case["result"])
        assert case["reason"] in fields["metadata"]["error_message"]
        assert (fields["metadata"]["error_code"], bool(fields["metadata"]["inputs"])) == (case["result"][-1], True)


@boxed
def test_helpers_of_the_task_are_the_tasks_own() -> None:
    """A solution that redefines the helper by which it is tested changes nothing."""
    row = {
        "prompt": "def value(x):\n    return x * x\n\ndef root(n):\n    '''The root.'''\n", "entry_point": "root",
        "test": "def check(candidate):\n    assert value(candidate(49)) == 49\n",
    }
    cheat = "def value(x): return 49\ndef root(n): return 1"
    assert judged(environment({}), row, block(cheat))["reward"] == 0.0
    assert judged(environment({}), row, block("def root(n): return int(n ** 0.5)"))["reward"] == 1.0


@boxed
def test_a_slow_solution_and_what_it_returns_without_end_are_the_solutions_fault_and_not_the_tests() -> None:
    slow = "import time\ndef f(n):\n    time.sleep(0.4)\n    return n"
    env = environment({"unit_test_timeout_secs": 1, "unit_test_wall_secs": 1})
    fields = judged(env, asserting("for n in range(9): assert f(n) == n"), block(slow))
    assert (fields["reward"], fields["result"]) == (0.0, [TIME])
    limits = {"unit_test_timeout_secs": 1, "unit_test_wall_secs": 0.5}
    assert verdict("def f(x): return range(10 ** 12)", "assert sum(f(5)) == 25", **limits) == (0.0, "apart")
    assert verdict("f = range(10 ** 12)", "assert sum(f) == 25", **limits) == (0.0, "apart")
    assert verdict("def f(x): return range(x, 21, 15)", "assert sum(f(5)) == 25") == (1.0, "apart")


@boxed
@pytest.mark.parametrize("name", PROGRAMS["hoards"])
def test_a_solution_cannot_ask_for_the_weaker_check(name: str) -> None:
    """Values that are hard to pass on are the solution's own doing; the twins pass them on."""
    row = asserting("assert take(give()) == 3")
    fields = judged(environment({}), row, block(PROGRAMS["hoards"][name]))
    assert (fields["reward"], fields["checked"]) == (0.0, "apart")
    honest = PROGRAMS["hoards"][name].replace("while True: yield 1", "yield from range(99_999)")
    honest = honest.replace("return 1", "return 3").replace("return 2", "return 3")
    fields = judged(environment({}), row, block(honest))
    assert (fields["reward"], fields["checked"]) == (1.0, "apart"), fields["metadata"]


@boxed
def test_a_number_too_long_to_be_written_is_wrong_and_text_that_no_file_can_hold_is_made_writable() -> None:
    fields = judged(environment({}), {"unit_tests": CALLED["unit_tests"]}, block("def f(n): return 10 ** 100000"))
    assert fields["result"] == [-2]
    assert "too large to be shown" in fields["metadata"]["error_message"]
    fields = judged(environment({}), asserting("assert f() == 1"), block("def f(): raise ValueError('\\ud800')"))
    assert fields["metadata"]["error_message"].encode("utf-8")


def test_no_program_is_a_zero_with_its_reason_and_a_long_text_is_parsed_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = judged(environment({}), example("code_gen")[0], "I cannot say.")
    assert (fields["reward"], fields["extracted_model_code"]) == (0.0, None)
    assert fields["metadata"]["error_message"] == "No program in the answer"
    monkeypatch.setattr(code_gen, "PARSING", 1)
    fields = judged(environment({}), {"unit_tests": {"inputs": ["5"], "outputs": ["25"]}}, "import a" + ".b" * 100_000)
    assert fields["metadata"]["error_message"] == "No program in the answer"


@pytest.mark.parametrize("tests", PROGRAMS["unusable"])
def test_a_task_without_usable_tests_is_not_measured(tests: dict[str, Any]) -> None:
    with pytest.raises(Unmeasured) as missing:
        judged(environment({}), {"verifier_metadata": tests}, block("print(1)"))
    assert missing.value.kind == "task_invalid"


# --- the table of programs ---


@boxed
def test_c1_a_zero_stays_a_zero_whatever_the_solution_sends() -> None:
    outcomes = rewards(programs("wrong"), allow_in_process=True, unit_test_timeout_secs=2)
    assert {name: outcome for name, outcome in outcomes.items() if outcome != 0.0} == {}


@boxed
def test_c1_what_tests_ask_of_names_and_classes_is_measured() -> None:
    outcomes = rewards(programs("right"))
    assert {name: outcome for name, outcome in outcomes.items() if outcome != 1.0} == {}


def test_c1_what_cannot_be_judged_from_outside_is_known_before_anything_runs() -> None:
    assert [name for name, reason in unreachable("unmeasured").items() if reason is None] == []
    assert {name: reason for name, reason in (unreachable("wrong") | unreachable("right")).items() if reason} == {}


@boxed
@has_numpy
def test_m3_an_empty_answer_is_close_to_nothing() -> None:
    rows = [(f"{wanted}: {code} | {test}", code, test) for wanted, code, test in PROGRAMS["numpy"]]
    assert {name: outcome for name, outcome in rewards(rows).items() if outcome != float(name[0])} == {}


@boxed
def test_m1_an_exception_that_ends_loops_does_not_end_the_tests() -> None:
    loop = "n = 0\nfor got, want in zip(map(f, [1, 2]), [1, 4]):\n    assert got == want\n"
    assert verdict("class S(StopAsyncIteration): pass\ndef f(x): raise S", loop) == (0.0, "apart")
    assert verdict(SQUARE, loop) == (1.0, "apart")
    caught = "try: f(5)\nexcept StopIteration: pass\nelse: assert False"
    assert verdict("def f(x): raise StopIteration", caught) == (1.0, "apart")


@pytest.mark.parametrize(("test", "roles"), PROGRAMS["roles"])
def test_m2_names_are_the_tests_or_the_solutions_by_their_text(test: str, roles: dict[str, str]) -> None:
    assert Reading(Asserted([test])).roles() == roles


def test_m2_beside_the_entry_nothing_of_the_solution_judges() -> None:
    task = Asserted(["check(candidate)"], "def check(c):\n    assert is_close(candidate(2), 4)", entry="f", names={"candidate": "f"})
    assert "is_close, which nobody defines" in str(Reading(task).unreachable())


def test_the_text_of_long_tests_is_read_in_time() -> None:
    data = f"data = {list(range(20_000))}\n"
    lines = "\n".join(f"assert f(data, {n}) == {n}\nassert data[{n}] == g({n})" for n in range(1000))
    begun = time.process_time()
    assert Reading(Asserted([data + lines])).unreachable() is None
    assert time.process_time() - begun < 5


@boxed
@pytest.mark.parametrize("form", PROGRAMS["forms"])
def test_every_form_of_tests_is_run(form: str) -> None:
    """A program that does nothing and one that is wrong get nothing, where the right one gets its reward."""
    assert verdict(SQUARE, PROGRAMS["forms"][form]) == (1.0, "apart")
    assert verdict("def f(x): return x + x", PROGRAMS["forms"][form]) == (0.0, "apart")
    assert verdict("pass", PROGRAMS["forms"][form]) == (0.0, "apart")


@boxed
@pytest.mark.parametrize("tests", PROGRAMS["empty tests"])
def test_tests_that_test_nothing_are_the_tasks_fault(tests: dict[str, Any]) -> None:
    assert verdict(SQUARE, tests, unit_test_timeout_secs=1, unit_test_wall_secs=0.3) == (None, "task_invalid")


def test_only_imports_and_definitions_come_first_and_the_task_says_what_a_name_is_before_its_spelling() -> None:
    parts = ("import math", ["assert f(1) == 1", "assert f(2) == 4"])
    assert assertions.statements("\n".join((parts[0], *parts[1])), False) == parts
    assert assertions.statements("import math\nx = f(1)\nassert x == 1", False)[0] == ""
    test = "assert 3 in Interval(1, 5)"
    assert Reading(Asserted([test])).unreachable() is not None
    assert Reading(Asserted([test], question="Write a class Interval.")).roles() == {"Interval": "class"}
    assert Reading(Asserted([test], before="def Interval(a, b):")).roles() == {"Interval": "function"}


@boxed
@pytest.mark.parametrize("name", PROGRAMS["spoilers"])
def test_a_failing_solution_cannot_make_itself_unmeasured(name: str) -> None:
    assert verdict(PROGRAMS["spoilers"][name], CALLED) == (0.0, "calls")
    assert verdict(PROGRAMS["spoilers"][name], "assert f(5) == 25") == (0.0, "apart")
    assert verdict(SQUARE, CALLED) == (1.0, "calls")


@boxed
def test_an_answer_that_takes_long_to_read_is_read_by_a_worker() -> None:
    """Numbers of one hash: a set of them takes the square of its size to build."""
    hard = (
        "import gc, os, json\ndef channel():\n    return next(o for o in gc.get_objects() if type(o).__name__ == 'Channel')\n"
        "def f(x):\n    hard = [{'int': hex(k * (2 ** 61 - 1))} for k in range(45000)]\n"
        "    channel().send({'value': json.dumps({'set': hard})})"
    )
    fields = judged(environment({"unit_test_timeout_secs": 1}), CALLED, block(hard))
    assert fields["result"] == [RUNTIME]
    assert "cannot be compared: more than 1 s of computing" in fields["metadata"]["error_message"]


@boxed
@pytest.mark.parametrize("name", PROGRAMS["holes"])
def test_one_process_for_both_is_forged_easily_and_only_used_when_asked_for(name: str) -> None:
    """Known holes: they are why such rows are not measured unless somebody says that they shall be."""
    row = {"test": "def check(candidate):\n    assert candidate(lambda x: x + 1, 3) == 4\n", "entry_point": "f"}
    assert verdict(PROGRAMS["holes"][name], row) == (None, "unsafe_check")
    assert verdict(PROGRAMS["holes"][name], {**row, "checked": "in_process"}) == (1.0, "in_process")
    assert verdict(PROGRAMS["holes"][name], row, allow_in_process=True) == (1.0, "in_process")
    assert verdict("def f(g, x): return x", row, allow_in_process=True) == (0.0, "in_process")


@boxed
@pytest.mark.parametrize("name", PROGRAMS["malformed"])
def test_h1_an_answer_that_cannot_be_read_is_the_answers_fault(name: str) -> None:
    assert verdict(PROGRAMS["malformed"][name], CALLED) == (0.0, "calls")
    assert verdict(PROGRAMS["malformed"][name], "assert f(5) == 25") == (0.0, "apart")


@boxed
def test_h1_a_solution_cannot_keep_the_tests_from_their_time() -> None:
    """It starts when it is asked for the first time, so whatever the tests do before that is their own doing."""
    for clock in ("", "import time\ntime.time()\n"):  # tests that look at the clock are tried again
        test = f"{clock}assert sum(n * n for n in range(5_000_000)) > 0\nassert f(5) == 25"
        assert verdict(PROGRAMS["hog"], test, unit_test_timeout_secs=1, unit_test_wall_secs=3) == (0.0, "apart")
        assert verdict(SQUARE, test, unit_test_timeout_secs=1, unit_test_wall_secs=3) == (1.0, "apart")


@pytest.mark.parametrize(("test", "hack"), PROGRAMS["reviews"])
def test_m3_tests_that_a_wrong_solution_can_pass_are_named(test: str, hack: str | None) -> None:
    assert Reading(Asserted([test])).review() == ([hack] if hack else [])


@boxed
def test_m3_the_review_stands_in_the_row() -> None:
    fields = judged(environment({}), {"test_list": ["assert f(5)"]}, block(SQUARE))
    assert fields["metadata"] == {"review": ["any answer that counts as true passes"]}


@boxed
def test_l2_a_solution_named_like_a_builtin_is_asked() -> None:
    assert verdict("def sum(a): return 3", "assert sum([1, 2]) == 3") == (1.0, "apart")
    assert verdict("def sum(a): return 4", "assert sum([1, 2]) == 3") == (0.0, "apart")
    by_entry = {"test": "def check(candidate):\n    assert candidate([1, 2]) == max([1, 2]) == 2", "entry_point": "max"}
    assert verdict("def max(a): return 1", by_entry) == (0.0, "apart")
    assert verdict("def set(x): return 0\ndef f(x): return x", "assert set(f([1])) == {1}") == (1.0, "apart")


@boxed
def test_l2_a_time_out_that_the_machine_may_have_caused_can_be_tried_again() -> None:
    limits = {"unit_test_timeout_secs": 5, "unit_test_wall_secs": 0.3}
    row = {"verifier_metadata": {"test_list": ["import time\ntime.sleep(60)\nassert f(5) == 25"]}}
    with pytest.raises(Unmeasured) as missing:
        judged(environment(limits), row, block(SQUARE))
    assert (missing.value.kind, missing.value.terminal) == ("task_invalid", False)


def test_tuples_are_lists_at_any_depth() -> None:
    for value, wanted, is_same in (
        ({"k": (1, (2,))}, {"k": [1, [2]]}, True), ([{"k": ()}], [{"k": []}], True),
        ({"k": (1, 2)}, {"k": [2, 1]}, False), ({"k": (1, 2)}, {"j": [1, 2]}, False),
    ):  # fmt: skip
        assert (plain.unequal(plain.encoded(value), plain.encoded(wanted)) is None) is is_same


@pytest.mark.parametrize(("text", "code"), PROGRAMS["blocks"])
def test_the_program_is_the_last_block_of_its_language(text: str, code: str | None) -> None:
    assert extracted(text) == code


def test_output_is_compared_by_lines_and_numbers_by_value() -> None:
    assert [differs(*pair) for pair in (("1 2 \n3\n\n", " 1 2\n3"), ("0.50", "0.5"), ("", ""))] == [None] * 3
    others = (("1e400", "1e401"), ("2_5", "25"), ("٢٥", "25"), ("25 25", "25"), ("2", "2 5"), ("yes", "Yes"), ("1\n2", "1 2"))
    assert None not in [differs(*pair) for pair in others]


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.fractions(),
        st.complex_numbers(allow_nan=False), st.decimals(allow_nan=False), st.dates(), st.datetimes(), st.timedeltas(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(st.text(), inner, max_size=3),
        st.sets(st.integers(), max_size=4), st.frozensets(st.text(), max_size=3),
    ),
    max_leaves=12,
)  # fmt: skip


@given(values)
def test_plain_data_crosses_unchanged(value: Any) -> None:
    there = plain.decoded(plain.encoded(value))
    assert there == value
    assert type(there) is type(value)
    assert "\n" not in plain.encoded(value)


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("value", [object(), len, type, [lambda: 1], {1: object()}, LOOP])
def test_what_has_behaviour_or_contains_itself_does_not_cross(value: Any) -> None:
    with pytest.raises(plain.NotPlain):
        plain.encoded(value)


def test_arguments_come_back_only_when_they_were_changed() -> None:
    module = types.ModuleType("solution")
    module.__dict__.update(f=len, g=list.sort)
    message = {"ask": "call", "given": plain.encoded([[[2, 1]], {}])}
    assert driver._answered(module, {**message, "on": "f"}) == {"value": "2"}
    assert driver._answered(module, {**message, "on": "g"}) == {"value": "null", "args": plain.encoded([[[1, 2]], {}])}


@pytest.mark.parametrize("text", ["{", "[1.5]", '{"object":1}', '{"set":[[1]]}', '{"int":"zz"}', '{"a":1,"b":2}', '{"range":[1,2,0]}'])
def test_what_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        plain.decoded(text)


@given(st.text(alphabet="`~ \npyton", max_size=60))
def test_every_block_is_a_part_of_the_text(text: str) -> None:
    for found in replies.blocks(text):
        assert all(line in text for line in found.code.split("\n"))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(responses)
def test_any_response_survives(response: Any) -> None:
    survives(environment({"unit_test_timeout_secs": 1, "unit_test_wall_secs": 2}), example("code_gen")[0], response)
