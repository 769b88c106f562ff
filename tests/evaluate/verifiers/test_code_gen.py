"""Programs judged by printed output, returned values and assertions; wrong ones say why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blade_eval import fences
from blade_eval.environment import Unmeasured
from blade_eval.sandbox import holds, plain
from blade_eval.sandbox.verdicts import differs
from blade_eval.verifiers.code_gen import environment, extracted
from tests.evaluate.verifiers.attempts import example, judged, responses, shipped, survives

MISSING = [f"{check.name}: {check.seen}" for check in holds() if not check.holds]
boxed = pytest.mark.skipif(bool(MISSING), reason=f"no box on this machine: {'; '.join(MISSING)}")

SOLUTIONS = [
    "print(sum(n for n in map(int, input().split()) if n % 2 == 0))",
    "seen, twice = set(), []\nfor _ in range(int(input())):\n    w = input()\n    if w in seen and w not in twice: twice.append(w)\n    seen.add(w)\nprint('\\n'.join(twice) or 'NONE')",
    "class Solution:\n    def longestRun(self, heights: List[int]) -> int:\n        best = run = 0\n        for i, h in enumerate(heights):\n            run = run + 1 if i and h > heights[i - 1] else 1\n            best = max(best, run)\n        return best",
    "def fold(text, width):\n    return [text[i:i + width] for i in range(0, len(text), width)]",
    "def mirror_pairs(words):\n    return {(a, b) for a in words for b in words if a < b and a == b[::-1]}",
]
HOW = ["outputs", "outputs", "calls", "apart", "apart"]


def block(code: str) -> str:
    return f"Like this:\n\n```python\n{code}\n```\n\nIt is quick."


@boxed
def test_the_examples_are_solved_and_say_how_they_were_checked() -> None:
    env = shipped("code_gen")
    for row, code, how in zip(example("code_gen"), SOLUTIONS, HOW, strict=True):
        fields = judged(env, row, block(code))
        assert fields["reward"] == 1.0, fields["metadata"]
        assert (fields["checked"], fields["metadata"], set(fields["result"])) == (how, {}, {True})
        assert fields["extracted_model_code"] == code


WRONG = [
    ("print(sum(map(int, input().split())))", [-2], "line 1 is '10' where '6' is expected"), ("print(", [-4], "SyntaxError"),
    ("class Solution:\n    def longestRun(self, heights):\n        return 3 if heights[0] == 1 else 5", [True, -2], "5 where 1"),
    ("def fold(text, width):\n    return [text] if text else 1 / 0", [-2], "AssertionError"),
    ("def mirror_pairs(words):\n    return {('lap', 'pal')}", [True, -2], "AssertionError"),
]


@boxed
def test_wrong_programs_say_what_is_wrong() -> None:
    env = environment({})
    for row, (code, result, reason) in zip(example("code_gen"), WRONG, strict=True):
        fields = judged(env, row, block(code))
        assert (fields["reward"], fields["result"]) == (0.0, result)
        assert reason in fields["metadata"]["error_message"]
        assert fields["metadata"]["error_code"] == result[-1]
        assert fields["metadata"]["inputs"]


def asserting(*tests: str, **more: Any) -> dict[str, Any]:
    return {"verifier_metadata": {"test_list": list(tests), **more}}


@boxed
@pytest.mark.parametrize(
    ("row", "code", "how"),
    [
        (asserting("x = [2, 1]\norder(x)\nassert x == [1, 2]"), "def order(x): x.sort()", "apart"),
        (asserting("assert list(up(3)) == [0, 1, 2]"), "def up(n):\n    yield from range(n)", "apart"),
        (asserting("try: f(1)\nexcept ValueError: pass\nelse: assert False"), "def f(x): raise ValueError(x)", "apart"),
        (asserting("assert math.isclose(lcm(2, 3), 6.0)"), "def lcm(a, b): return a * b", "apart"),
        (asserting("assert f(10 ** 400) == 10 ** 400 + 1"), "def f(n): return n + 1", "apart"),
        (asserting("assert f(lambda x: x + 1) == 4", checked="in_process"), "def f(g): return g(3)", "in_process"),
        (asserting("assert Node.kind == 3"), "class Node:\n    kind = 3", "apart"),
        (asserting("assert Node(3).v == 3", checked="in_process"), "class Node:\n    def __init__(s, v): s.v = v", "in_process"),
    ],
)  # fmt: skip
def test_assertions_of_many_kinds(row: dict[str, Any], code: str, how: str) -> None:
    fields = judged(environment({}), row, block(code))
    assert (fields["reward"], fields["checked"]) == (1.0, how), fields["metadata"]


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
def test_a_slow_solution_is_the_solutions_fault_and_not_the_tests() -> None:
    env = environment({"unit_test_timeout_secs": 1, "unit_test_wall_secs": 1})
    row = asserting("for n in range(9): assert f(n) == n")
    fields = judged(env, row, block("import time\ndef f(n):\n    time.sleep(0.4)\n    return n"))
    assert (fields["reward"], fields["result"]) == (0.0, [-3])


HOARDS = {
    "endless": "def give():\n    while True: yield 1\ndef take(x): return 1",
    "deep": "def give():\n    x = []\n    for _ in range(400): x = [x]\n    return x\ndef take(x): return 1",
    "digits": "def give(): return 10 ** 100000\ndef take(x): return 2",
}


@boxed
@pytest.mark.parametrize("name", HOARDS)
def test_a_solution_cannot_ask_for_the_weaker_check(name: str) -> None:
    """Values that are hard to pass on are the solution's own doing; the twins pass them on."""
    row = asserting("assert take(give()) == 3")
    fields = judged(environment({}), row, block(HOARDS[name]))
    assert (fields["reward"], fields["checked"]) == (0.0, "apart")
    honest = (
        HOARDS[name] .replace("while True: yield 1", "yield from range(99_999)")
        .replace("return 1", "return 3")
    )
    fields = judged(environment({}), row, block(honest.replace("return 2", "return 3")))
    assert (fields["reward"], fields["checked"]) == (1.0, "apart"), fields["metadata"]


@boxed
def test_a_number_too_long_to_be_written_is_wrong_and_not_a_crash() -> None:
    row = {"unit_tests": {"inputs": ["1"], "outputs": ["2"], "fn_name": "f"}}
    fields = judged(environment({}), row, block("def f(n): return 10 ** 100000"))
    assert fields["result"] == [-2]
    assert "too large to be shown" in fields["metadata"]["error_message"]


@boxed
def test_text_that_no_file_can_hold_is_made_writable() -> None:
    fields = judged(
        environment({}), asserting("assert f() == 1"), block("def f(): raise ValueError('\\ud800')")
    )
    assert fields["metadata"]["error_message"].encode("utf-8")


def test_no_program_is_a_zero_with_its_reason_and_needs_no_box() -> None:
    fields = judged(environment({}), example("code_gen")[0], "I cannot say.")
    assert (fields["reward"], fields["extracted_model_code"]) == (0.0, None)
    assert fields["metadata"]["error_message"] == "No program in the answer"


@pytest.mark.parametrize(
    "tests",
    [{}, {"unit_tests": {"inputs": ["1"], "outputs": []}}, {"unit_tests": {"inputs": [], "outputs": []}}, {"test": "assert ("}, {"test_list": []}],
)  # fmt: skip
def test_a_task_without_usable_tests_is_not_measured(tests: dict[str, Any]) -> None:
    with pytest.raises(Unmeasured) as missing:
        judged(environment({}), {"verifier_metadata": tests}, block("print(1)"))
    assert missing.value.kind == "task_invalid"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\na = 1\n```\nor\n```python\nb = 2\n```", "b = 2"),
        ("```python\na = 1\n```\nwhich prints\n```\n1\n```", "a = 1"), ("```\na = 1\n```\n```json\n{}\n```", "a = 1"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''"),
        ("```python\na = 1\n```\nbetter:\n```python\nb =", "a = 1"), ("```py\na = 1", "a = 1"),
        ("def f():\n    return 1", "def f():\n    return 1"), ("Yes", None), ("No idea at all.", None),
        ("```python\n\n```", None), ("", None),
    ],
)
def test_the_program_is_the_last_block_of_its_language(text: str, code: str | None) -> None:
    assert extracted(text) == code


def test_output_is_compared_by_lines_and_numbers_by_value() -> None:
    assert differs("1 2 \n3\n\n", " 1 2\n3") is None
    assert differs("0.50", "0.5") is None
    assert differs("1e400", "1e401") is not None
    assert differs("yes", "Yes") is not None
    assert differs("1\n2", "1 2") is not None
    assert differs("", "") is None


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


@pytest.mark.parametrize("value", [object(), len, type, [lambda: 1], {1: object()}])
def test_what_has_behaviour_does_not_cross(value: Any) -> None:
    with pytest.raises(plain.NotPlain):
        plain.encoded(value)


def test_what_contains_itself_does_not_cross() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(plain.NotPlain):
        plain.encoded(loop)


@pytest.mark.parametrize(
    "text",
    ["{", "[1.5]", '{"object":1}', '{"set":[[1]]}', '{"int":"zz"}', '{"a":1,"b":2}', '{"range":[1,2,0]}'],
)
def test_what_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        plain.decoded(text)


@given(st.text(alphabet="`~ \npyton", max_size=60))
def test_every_block_is_a_part_of_the_text(text: str) -> None:
    for found in fences.blocks(text):
        assert all(line in text for line in found.code.split("\n"))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(responses)
def test_any_response_survives(response: Any) -> None:
    survives(
        environment({"unit_test_timeout_secs": 1, "unit_test_wall_secs": 2}), example("code_gen")[0], response
    )
