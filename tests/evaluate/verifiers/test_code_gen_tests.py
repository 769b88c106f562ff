"""Tests of every form are really run, apart from the solution, which can neither forge nor spoil a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blade_eval.environment import Unmeasured
from blade_eval.sandbox import holds, plain, verdicts
from blade_eval.sandbox.box import packages
from blade_eval.sandbox.verdicts import Asserted, Reading
from blade_eval.verifiers import code_gen
from blade_eval.verifiers.code_gen import environment
from tests.evaluate.verifiers.attempts import judged

MISSING = [f"{check.name}: {check.seen}" for check in holds() if not check.holds]
boxed = pytest.mark.skipif(bool(MISSING), reason=f"no box on this machine: {'; '.join(MISSING)}")

has_numpy = pytest.mark.skipif(not (Path(packages()) / "numpy").exists(), reason="no numpy of its own")

SQUARE = "def f(x): return x * x"
WRONG, TIME, RUNTIME = -2, -3, -4


def verdict(code: str, tests: dict[str, Any] | str, **settings: Any) -> tuple[Any, ...]:
    """The reward and how it was come by, or why there is none."""
    row = {"test_list": [tests]} if isinstance(tests, str) else tests
    try:
        fields = judged(environment(settings), {"verifier_metadata": row}, f"```python\n{code}\n```")
    except Unmeasured as missing:
        return None, missing.kind
    return fields["reward"], fields["checked"]


PYTEST = "def test_a():\n    assert f(5) == 25\n\ndef helper(x):\n    return x\n"
UNITTEST = (
    "import unittest\nclass Squares(unittest.TestCase):\n    def setUp(self): self.five = 5\n"
    "    def test_a(self): self.assertEqual(f(self.five), 25)\nif __name__ == '__main__':\n    unittest.main()"
)
FORMS = {
    "test functions": {"test": PYTEST}, "cases of unittest": {"test": UNITTEST},
    "a class of pytest": {"test": "class TestSquares:\n    def test_a(self):\n        assert f(5) == 25"},
    "a check without candidate": {"test": "def check():\n    assert f(5) == 25"},
    "a check of the entry": {"test": "def check(candidate):\n    assert candidate(5) == 25", "entry_point": "f"},
    "a check that uses the name": {"test": "META = {'by': 1}\ndef check(candidate):\n    assert candidate(5) == 25 == f(5)", "entry_point": "f"},
    "a check that is called": {"test": "def check(c):\n    assert c(5) == 25\ncheck(f)"},
    "statements": {"test": "x = f(5)\nassert x == 25"},
    "statements and functions": {"test": "limit = f(5)\ndef test_a():\n    assert limit == 25"},
    "an import": {"test": "from solution import f\nassert f(5) == 25"},
    "an import of everything": {"test": "from solution import *\n\ndef test_a():\n    assert f(5) == 25"},
    "setup that uses the solution": {"test_setup_code": "x = f(5)", "test_list": ["assert x == 25"]},
}


@boxed
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_tests_is_run(form: str) -> None:
    """A program that does nothing and one that is wrong get nothing, where the right one gets its reward."""
    assert verdict(SQUARE, FORMS[form]) == (1.0, "apart")
    assert verdict("def f(x): return x + x", FORMS[form]) == (0.0, "apart")
    assert verdict("pass", FORMS[form]) == (0.0, "apart")


@boxed
@pytest.mark.parametrize(
    "tests",
    [
        {"test_list": ["", "# nothing"]}, {"test": "def check(candidate):\n    assert candidate(5) == 25"},
        {"test": "def never():\n    assert f(5) == 25"}, {"test": "def test_a(fixture):\n    assert f(fixture) == 25"},
        {"test": "assert True"}, {"test": "assert False"},
        {"test": "import unittest\nclass Empty(unittest.TestCase):\n    pass"},
        {"test": "import no_such_module\nassert f(5) == 25"}, {"test_list": ["while True: pass"]},
    ],
)
def test_tests_that_test_nothing_are_the_tasks_fault(tests: dict[str, Any]) -> None:
    assert verdict(SQUARE, tests, unit_test_timeout_secs=1, unit_test_wall_secs=0.3) == (None, "task_invalid")


def test_only_imports_and_definitions_come_first() -> None:
    assert verdicts.statements("import math\nassert f(1) == 1\nassert f(2) == 4", False) == (
        "import math", ["assert f(1) == 1", "assert f(2) == 4"],
    )
    assert verdicts.statements("import math\nx = f(1)\nassert x == 1", False)[0] == ""


# --- what a failing solution cannot do ---

CHANNEL = "import gc, os, json\ndef channel():\n    return next(o for o in gc.get_objects() if type(o).__name__ == 'Channel')\n"
SPOILERS = {
    "a number that raises when compared": "from decimal import Decimal\ndef f(x): return Decimal('sNaN')",
    "deep nesting on the channel": CHANNEL + "def f(x):\n    data = b'[' * 300000 + b'\\n'\n    while data: data = data[os.write(channel().outgoing, data):]",
    "another type on the channel": CHANNEL + "def f(x):\n    channel().send({'value': {'a': [1]}, 'raised': 5})",
    "an object": "def f(x): return object()", "a coroutine": "async def f(x): return 25",
}


@boxed
@pytest.mark.parametrize("name", SPOILERS)
def test_a_failing_solution_cannot_make_itself_unmeasured(name: str) -> None:
    called = {"unit_tests": {"fn_name": "f", "inputs": ["5"], "outputs": ["25"]}}
    assert verdict(SPOILERS[name], called) == (0.0, "calls")
    assert verdict(SPOILERS[name], "assert f(5) == 25") == (0.0, "apart")
    assert verdict(SQUARE, called) == (1.0, "calls")


@boxed
def test_tests_that_do_not_end_on_what_was_returned_are_the_solutions_failure() -> None:
    limits = {"unit_test_timeout_secs": 1, "unit_test_wall_secs": 0.5}
    assert verdict("def f(x): return range(10 ** 12)", "assert sum(f(5)) == 25", **limits) == (0.0, "apart")
    assert verdict("f = range(10 ** 12)", "assert sum(f) == 25", **limits) == (0.0, "apart")
    assert verdict("def f(x): return range(x, 21, 15)", "assert sum(f(5)) == 25") == (1.0, "apart")


@boxed
def test_an_answer_that_takes_long_to_read_is_read_by_a_worker() -> None:
    """Numbers of one hash: a set of them takes the square of its size to build."""
    hard = (
        CHANNEL + "def f(x):\n    hard = [{'int': hex(k * (2 ** 61 - 1))} for k in range(45000)]\n"
        "    channel().send({'value': json.dumps({'set': hard})})"
    )
    row = {"unit_tests": {"fn_name": "f", "inputs": ["5"], "outputs": ["25"]}}
    fields = judged(environment({"unit_test_timeout_secs": 1}), row, f"```python\n{hard}\n```")
    assert fields["result"] == [RUNTIME]
    assert "cannot be compared: more than 1 s of computing" in fields["metadata"]["error_message"]


def test_a_text_that_takes_long_to_parse_is_parsed_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_gen, "PARSING", 1)
    row = {"unit_tests": {"inputs": ["5"], "outputs": ["25"]}}
    fields = judged(environment({}), row, "import a" + ".b" * 100_000)
    assert fields["metadata"]["error_message"] == "No program in the answer"


# --- what crosses ---

RIGHT = {
    "a named tuple": ("from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(n): return P(n, 2)", "assert f(3).x == 3 and f(3) == (3, 2)"),
    "a data class": ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(n): return P(n)", "assert f(3).x == 3\nassert f(3) == P(3)\nassert isinstance(f(3), P)"),
    "an enumeration": ("import enum\nclass C(enum.Enum):\n    A = 1\ndef f(x): return C.A", "assert f(1).value == 1 and f(1) == C.A"),
    "a closure": ("def f(n): return lambda y: y + n", "assert f(3)(4) == 7"),
    "a coroutine": ("async def f(x): return x * x", "import asyncio\nassert asyncio.run(f(5)) == 25"),
    "a counter": ("def f(s): return Counter(s)", "assert f('aab').most_common(1) == [('a', 2)]"),
    "a dict with defaults": ("def f(s):\n    d = defaultdict(int)\n    d[s] += 1\n    return d", "assert f('a') == {'a': 1}\nassert f('a')['z'] == 0"),
    "an argument by its name": ("def f(*, m): m.append(1)", "a = []\nf(m=a)\nassert a == [1]"),
    "an exception of its own": ("class Bad(ValueError): pass\ndef f(s): raise Bad('no')", "for kind in (1, 2):\n    try: f(kind); assert False\n    except Bad as bad: assert str(bad) == 'no'\ntry: f(3)\nexcept ValueError: pass"),
    "a constant": ("MOD = 7\ndef f(x): return x % MOD", "assert MOD == 7 and f(9) == 2"),
    "what is printed": ("def f(x): print(x)", "import io, contextlib\nb = io.StringIO()\nwith contextlib.redirect_stdout(b): f(5)\nassert b.getvalue() == '5\\n'"),
    "an object and its methods": ("class Stack:\n    def __init__(self): self.a = []\n    def push(self, x): self.a.append(x)\n    def pop(self): return self.a.pop()\n    def __len__(self): return len(self.a)", "s = Stack()\ns.push(4)\nassert len(s) == 1 and s.pop() == 4 and not s"),
    "objects as arguments": ("class Node:\n    def __init__(self, v): self.v, self.next = v, None\ndef f(n): return 1 + f(n.next) if n else 0", "a = Node(1)\na.next = Node(2)\nassert f(a) == 2"),
    "an array": ("import numpy\ndef f(x): return numpy.array([x, 2])", "assert (f(1) == [1, 2]).all()"),
}  # fmt: skip


@boxed
@pytest.mark.parametrize("name", RIGHT)
def test_right_solutions_of_many_kinds_are_judged_apart(name: str) -> None:
    if name == "an array" and not (Path(packages()) / "numpy").exists():
        pytest.skip("no numpy of its own")
    code, test = RIGHT[name]
    assert verdict(code, test) == (1.0, "apart")


OWN = "class E:\n    def __{0}__(self, *_): return {1}\n    __r{0}__ = __{0}__\ndef f(x): return E()\nclass Box:\n    def get(self): return E()"


@boxed
@pytest.mark.parametrize(
    ("own", "gives", "test"),
    [
        ("eq", True, "assert f(5) == 25"), ("eq", True, "assert Box().get() == 25"), ("sub", 0, "assert abs(f(5) - 25) < 1"),
        ("contains", True, "assert 25 in f(5)"), ("lt", True, "assert f(5) < 25"),
        ("getattr", "lambda *_: True", "assert f(5).issubset({25})"), ("add", 25, "assert Box().get() + 1 == 25"),
        ("deepcopy", 25, "import copy\nassert copy.deepcopy(f(5)) == 25"),
    ],
)
def test_an_object_does_not_answer_for_plain_data(own: str, gives: object, test: str) -> None:
    assert verdict(OWN.format(own, gives), test) == (0.0, "apart")


FUNCTION = {
    "test": "def check(candidate):\n    assert candidate(lambda x: x + 1, 3) == 4\n", "entry_point": "f",
}
HOLES = {
    "equal to everything": "class E:\n    def __eq__(self, other): return True\ndef f(*_): return E()",
    "a driver of its own": "import sys\nsys.modules['__main__']._tested = lambda m, t, c: {'passed': True, 'nonce': t['nonce']}\ndef f(*_): return 0",
}


@boxed
@pytest.mark.parametrize("name", HOLES)
def test_one_process_for_both_is_forged_easily_and_only_used_when_asked_for(name: str) -> None:
    """Known holes: they are why such rows are not measured unless somebody says that they shall be."""
    assert verdict(HOLES[name], FUNCTION) == (None, "unsafe_check")
    assert verdict(HOLES[name], {**FUNCTION, "checked": "in_process"}) == (1.0, "in_process")
    assert verdict(HOLES[name], FUNCTION, allow_in_process=True) == (1.0, "in_process")
    assert verdict("def f(g, x): return x", FUNCTION, allow_in_process=True) == (0.0, "in_process")


@boxed
@pytest.mark.parametrize("test", ["a = [1]\nassert f(a) is a", "assert f(lambda x: x) == 1", "class B(Own): pass\nassert B(1).v == 1"])
def test_what_cannot_be_seen_from_outside_is_not_measured(test: str) -> None:
    code = "class Own:\n    def __init__(self, v): self.v = v\ndef f(x): return x"
    assert verdict(code, test) == (None, "unsafe_check")


# --- what a red team broke ---

YES = "class Y:\n    def __eq__(self, o): return True\n    __lt__ = __contains__ = __eq__\n    def __sub__(self, o): return 0\n    __hash__ = None\n"
PATCH = "import sys\nsys.modules['__main__']._numbered = lambda v: {'name': 'z'}\n"
TURNED = {
    "patched reply": (PATCH + "def f(x): return object()", "assert f(5) == 25"),
    "patched reply of a class": (PATCH + "def F(x): return object()", "assert F(5) == 25"),
    "equal to everything": (YES + "def f(x): return Y()", "assert f(5) == 25"),
    "capitalised, equal": (YES + "def Square(x): return Y()", "assert Square(5) == 25"),
    "capitalised, contains": (YES + "def Square(x): return Y()", "assert 25 in Square(5)"),
    "capitalised, less": (YES + "def Square(x): return Y()", "assert Square(5) < 26"),
    "capitalised, minus": (YES + "def Square(x): return Y()", "assert abs(Square(5) - 25) < 1"),
    "capitalised, judged by itself": ("class Y:\n    def issuperset(self, o): return True\ndef Digits(x): return Y()", "assert Digits(5).issuperset({2, 5})"),
    "a constant that is an object": (YES + "MOD = Y()\ndef f(x): return x", "assert f(1) == 1 and MOD == 7"),
    "a constant that is missing": ("def f(x): return x", "assert MOD == 7"),
    "an attribute of a constant": (YES + "MOD = Y()", "assert MOD.real == 7"),
    "an exception that is handed on": ("def f(x): raise ValueError('x')\ndef g(e): return 1", "try: r = f(1)\nexcept ValueError as e: r = g(e)\nassert r == 2"),
}  # fmt: skip


@boxed
@pytest.mark.parametrize("name", TURNED)
def test_c1_a_zero_stays_a_zero_whatever_the_solution_sends(name: str) -> None:
    code, test = TURNED[name]
    assert verdict(code, test) == (0.0, "apart")
    assert verdict(code, test, allow_in_process=True) == (0.0, "apart")


VECTOR = (
    "class Vector:\n    def __init__(s, x): s.x = x\n    def __add__(s, o): return Vector(s.x + o.x)\n"
    "    def __mul__(s, k): return Vector(s.x * k)\n    def __eq__(s, o): return s.x == o.x"
)
BAG = "class Bag:\n    def __init__(s): s.a = []\n    def put(s, x): s.a.append(x)\n    def __contains__(s, x): return x in s.a\n    def __getitem__(s, i): return s.a[i]"
LOCK = "class L:\n    def __init__(s): s.a = 0\n    def __enter__(s): s.a = 1; return s\n    def __exit__(s, *a): s.a = 2"
REACHED = {
    "capitalised": ("def Split(s): return list(s)", "assert Split('ab') == ['a', 'b']"),
    "capitalised, in brackets": ("def Diff(a, b): return [x for x in a if x not in b]", "assert (Diff([1, 2], [2])) == [1]"),
    "operators of a class": (VECTOR, "v = Vector(1)\nassert v.x == 1 and Vector(1) + Vector(2) == Vector(3) == v * 3"),
    "operators that give plain data": ("class Own:\n    def __init__(s, v): s.v = v\n    def __add__(s, o): return s.v + o.v", "assert Own(1) + Own(2) == 3"),
    "a container": (BAG, "b = Bag()\nb.put(3)\nassert 3 in b and 4 not in b and b[0] == 3"),
    "a context": (LOCK, "l = L()\nwith l as m: assert m.a == 1\nassert l.a == 2"),
    "its own name": ("def f(x): 'doc'", "assert f.__name__ == 'f'"),
}  # fmt: skip


@boxed
@pytest.mark.parametrize("name", REACHED)
def test_c1_what_tests_ask_of_names_and_classes_is_measured(name: str) -> None:
    code, test = REACHED[name]
    assert verdict(code, test) == (1.0, "apart")


MALFORMED = {
    "odd fields": "class T(tuple):\n    _fields = ('a b', 'class', '')\ndef f(x): return T((1,))",
    "odd dtype": "import sys\nsys.modules['__main__'].plain.encoded = lambda *a, **k: '{\"array\":[\"<f8,(((\",[1]]}'\ndef f(x): return 1",
    "two keys": "import sys\nsys.modules['__main__'].plain.encoded = lambda *a, **k: '{\"a\":1,\"b\":2}'\ndef f(x): return 1",
    "not even text": "import sys\nsys.modules['__main__'].plain.encoded = lambda *a, **k: 7\ndef f(x): return 1",
}


@boxed
@pytest.mark.parametrize("name", MALFORMED)
def test_h1_an_answer_that_cannot_be_read_is_the_answers_fault(name: str) -> None:
    called = {"unit_tests": {"fn_name": "f", "inputs": ["5"], "outputs": ["25"]}}
    assert verdict(MALFORMED[name], called) == (0.0, "calls")
    assert verdict(MALFORMED[name], "assert f(5) == 25") == (0.0, "apart")


LOOP = "n = 0\nfor got, want in zip(map(f, [1, 2]), [1, 4]):\n    assert got == want\n"


@boxed
def test_m1_an_exception_that_ends_loops_does_not_end_the_tests() -> None:
    assert verdict("def f(x): raise StopIteration", LOOP) == (0.0, "apart")
    assert verdict("class S(StopAsyncIteration): pass\ndef f(x): raise S", LOOP) == (0.0, "apart")
    assert verdict(SQUARE, LOOP) == (1.0, "apart")
    caught = "try: f(5)\nexcept StopIteration: pass\nelse: assert False"
    assert verdict("def f(x): raise StopIteration", caught) == (1.0, "apart")


ALWAYS = "def f(x): return 0.0\ndef isclose(*a, **k): return True\nclass np: isclose = allclose = isclose\nfloor = isclose\n"


@boxed
@pytest.mark.parametrize(
    "test",
    [
        "assert isclose(f(2), 4.0)", "r = f(2)\nassert isclose(r, 4.0)", "assert floor(f(2)) == 4",
        pytest.param("assert np.isclose(f(2), 4.0)", marks=has_numpy),
        pytest.param("assert np.allclose([f(2)], [4.0])", marks=has_numpy),
    ],
)
def test_m2_names_that_tests_judge_with_are_not_the_solutions(test: str) -> None:
    assert verdict(ALWAYS, test) == (0.0, "apart")
    assert verdict("def f(x): return 4.0", test) == (1.0, "apart")


@boxed
@has_numpy
@pytest.mark.parametrize(
    "test",
    [
        "import numpy as np\nassert np.allclose(f(2), 4.0)", "from numpy import allclose\nassert allclose(f(2), 4.0)",
        "import numpy\nnumpy.testing.assert_allclose(f(2), 4.0)", "assert np.isclose(f(2), 4.0).all()",
    ],
)
def test_m3_an_empty_answer_is_close_to_nothing(test: str) -> None:
    assert verdict("def f(x): return []", test) == (0.0, "apart")
    assert verdict("def f(x): return 4.0", test) == (1.0, "apart")


@pytest.mark.parametrize(
    ("test", "hack"),
    [
        ("assert isclose(f(2), 4.0)", "an empty array is close to any number"),
        ("for x in f(5): assert x > 0", "an empty answer ends a loop over it before anything is compared"),
        ("assert all(x > 0 for x in f(5))", "an empty answer ends a loop over it before anything is compared"),
        ("assert f(5)", "any answer that counts as true passes"),
        ("assert f(2) == f(3)", "answers are compared with one another: one answer to everything passes"),
        ("assert f(2) != 3", "any answer but one passes"), ("assert f(2) == 3", None),
    ],
)
def test_m3_tests_that_a_wrong_solution_can_pass_are_named(test: str, hack: str | None) -> None:
    assert Reading(Asserted([test])).review() == ([hack] if hack else [])


@boxed
def test_m3_the_review_stands_in_the_row() -> None:
    fields = judged(environment({}), {"test_list": ["assert f(5)"]}, f"```python\n{SQUARE}\n```")
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
        judged(environment(limits), row, f"```python\n{SQUARE}\n```")
    assert (missing.value.kind, missing.value.terminal) == ("task_invalid", False)


@boxed
def test_a_coroutine_passed_on_is_the_solutions_own() -> None:
    test = "import asyncio\nassert asyncio.run(again(f(2))) == 3"
    code = "async def f(x): return x\nasync def again(c): return 1 + await c"
    assert verdict(code, test) == (1.0, "apart")
    assert verdict(code.replace("1 +", "2 +"), test) == (0.0, "apart")


@boxed
def test_a_function_with_a_customary_name_is_the_solutions() -> None:
    tests = {"test": "def test_a():\n    assert gcd(4, 6) == 2 and f(5) == 25"}
    assert verdict(SQUARE + "\ndef gcd(a, b): return 2", tests) == (1.0, "apart")
    assert verdict(SQUARE + "\ndef gcd(a, b): return 1", tests) == (0.0, "apart")


def test_tuples_are_lists_at_any_depth() -> None:
    def same(value: Any, wanted: Any) -> bool:
        return plain.unequal(plain.encoded(value), plain.encoded(wanted)) is None

    assert same({"k": (1, (2,))}, {"k": [1, [2]]})
    assert same([{"k": ()}], [{"k": []}])
    assert not same({"k": (1, 2)}, {"k": [2, 1]})
    assert not same({"k": (1, 2)}, {"j": [1, 2]})
