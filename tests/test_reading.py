"""The contract of reading traces: nothing breaks, every point is booked once, every quotation stands in its row."""

from __future__ import annotations

import gc
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade import pipeline
from blade.model import Cause, Report
from blade.report import report_json
from tests import quotations
from tests.builders import DROP, Row, make_call, make_message, make_result, make_run
from tests.conftest import read as loaded_of
from tests.conftest import report_on
from tests.traces import did, make_tool, rollout
from tools.planted.injected import INJECTIONS, write_injected

SCHEMA = json.loads((files("blade.report") / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# -- arbitrary runs -------------------------------------------------------------------------------

TOOLS = [
    make_tool("get_order", "order_id", order_id="string"),
    make_tool("cancel_order", "order_id", order_id="string", qty="integer"),
    make_tool("run_tests"),
    {"type": "function", "name": "odd", "parameters": {"type": "no such type"}},
]
WORDS = json.loads(Path(__file__).with_name("reading.json").read_text(encoding="utf-8"))
NAMES, ARGUMENTS, OUTPUTS, TEXTS, IDS, USAGE, GOLD = (
    st.sampled_from(WORDS[name]) for name in ("names", "arguments", "outputs", "texts", "ids", "usage", "gold")
)


def _with(kind: str, **keys: Any) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=keys)


def _message(role: str) -> st.SearchStrategy[Row]:
    parts = st.lists(st.fixed_dictionaries({"type": st.just("output_text"), "text": TEXTS}), max_size=2)
    content = st.one_of(TEXTS, parts, st.none(), st.just([{"type": "refusal", "refusal": "No."}]))
    return _with("message", role=st.just(role), content=content, id=IDS)


ITEMS = st.one_of(
    _with("function_call", call_id=IDS, name=NAMES, arguments=ARGUMENTS),
    _with("function_call_output", call_id=IDS, output=OUTPUTS, status=st.sampled_from(["completed", "failed", None])),
    st.builds(
        lambda name, *call: [
            {"type": "function_call", "call_id": name, **dict(zip(("name", "arguments"), call, strict=False))},
            {"type": "function_call_output", "call_id": name, "output": call[2]},
        ], IDS, NAMES, ARGUMENTS, OUTPUTS,
    ),
    _message("assistant"),
    _message("user"),
    _message("system"),
    _with("reasoning", summary=st.sampled_from([[], [{"type": "summary_text", "text": "think"}]])),
    _with("web_search_call", status=st.just("failed"), output=OUTPUTS),
    st.sampled_from(WORDS["odd_items"]),
)
LISTS = st.lists(ITEMS, min_size=1, max_size=9)
OUTPUT = st.one_of(LISTS, LISTS, LISTS, st.lists(st.lists(ITEMS, max_size=3), max_size=3), st.none(), TEXTS)
FULL = st.fixed_dictionaries(
    {"output": OUTPUT, "usage": USAGE},
    optional={
        "incomplete_details": st.sampled_from([None, None, None, {"reason": "max_output_tokens"}]),
        "error": st.sampled_from([None, None, None, {"message": "503 Service Unavailable"}]),
        "status": st.sampled_from(["completed", "incomplete", "failed"]),
    },
)
RESPONSES = st.one_of(FULL, FULL, FULL, FULL, st.sampled_from([DROP, None, [], "x", {}]))
REWARDS = {
    "binary": st.sampled_from([0.0, 1.0]),
    "graded": st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0, None]),
    "continuous": st.floats(0, 1),
    "unbounded": st.sampled_from([-3.0, 0.0, 2.5, 17.0]),
    "none": st.sampled_from([None, "high", DROP]),
    "nearly": st.sampled_from([0.9999999999999998, 1.0, 0]),
}
FIELDS = st.fixed_dictionaries(
    {}, optional={"stderr": OUTPUTS, **{name: st.sampled_from(values) for name, values in WORDS["fields"].items()}}
)


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    """The rows of a small run: several tasks, each with its repeats, of one kind of reward."""
    reward = REWARDS[draw(st.sampled_from(sorted(REWARDS)))]
    tools = draw(st.sampled_from([[], TOOLS, None, "x"]))
    pool = draw(st.lists(RESPONSES, min_size=1, max_size=4))  # so that rollouts have something in common
    response = st.one_of(st.sampled_from(pool), RESPONSES)
    rows = []
    for task in range(draw(st.integers(1, 4))):
        gold = draw(GOLD)
        for repeat in range(draw(st.integers(1, 4))):
            params = {"input": [{"role": "user", "content": f"Do task {task} for order #W1234567."}], "tools": tools}
            row = {
                "_ng_task_index": task,
                "_ng_rollout_index": repeat if draw(st.integers(0, 19)) else 0,
                "responses_create_params": params,
                "response": draw(response),
                "reward": draw(reward),
                **gold,
                **draw(FIELDS),
            }
            rows.append({key: value for key, value in row.items() if value is not DROP})
    return rows


def lines_of(rows: list[Row]) -> list[bytes]:
    """quotations.Rows as lines of a file; half characters stay as they are, escaped."""
    return [json.dumps(row).encode() for row in rows]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder for files and cache that all examples share."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(Path(folder) / "cache"))
        yield Path(folder)


def read(*paths: Path, threshold: float | None = None) -> tuple[Report, quotations.Rows]:
    """The report on some files, and their rows."""
    return report_on(*paths, threshold=threshold), quotations.Rows(loaded_of(*paths))


ANSWERED = (Cause.KNOWLEDGE_GAP, Cause.UNRELIABLE_KNOWLEDGE, Cause.UNDETERMINED)


def assert_holds(report: Report, rows: quotations.Rows, with_claims: bool = False) -> None:
    """All that must hold of any report; its claims, which take longest to draw up, where they are asked for."""
    quotations.assert_sound(report, rows)
    for run in report.runs:
        if not any(gap.what == f"losses of {run.name}" for gap in report.gaps):
            attributed = {one.task for one in report.attributions if one.run == run.name}
            assert attributed == quotations.losing_tasks(report, run.name)
    groups = {(one.run, one.id): one for one in report.groups}
    for one in report.attributions:
        assert one.mechanism
        if one.group:
            group = groups[one.run, one.group]
            assert one.mode == group.name
            # of wrong answers each task has its own label: with repeats that agree, with others, with one try
            assert one.cause == group.label or (group.rung == "knowledge" and one.cause in ANSWERED), one
        else:
            assert one.cause is Cause.UNDETERMINED
    sizes = {run.name: run.n_rollouts for run in report.runs}
    for one in report.trust:
        assert one.level in ("alarm", "warning", "note")
        assert one.text
        assert 0 <= one.rows <= sizes[one.run] + sum(run.coverage.expected for run in report.runs if run.name == one.run)
    for run in report.runs:
        ranks = [one.rank for one in report.recommendations if one.run == run.name]
        assert ranks == list(range(1, len(ranks) + 1))
    for advice in report.recommendations:
        assert advice.gain is None or -1 <= advice.gain.low <= advice.gain.point <= advice.gain.high <= 1, advice
        assert 0 <= advice.most <= 1, advice
        assert set(advice.tasks) <= {task.task for task in report.tasks}
    told = report_json.render(report) if with_claims else json.dumps(report_json.document(report), allow_nan=False)
    VALIDATOR.validate(json.loads(told))


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@given(runs(), st.sampled_from([None, None, 0.5]))
def test_any_run_is_read_to_the_end(place: Path, rows: list[Row], threshold: float | None) -> None:
    path = make_run(Path(tempfile.mkdtemp(dir=place)), lines_of(rows))
    assert_holds(*read(path, threshold=threshold), with_claims=True)


@settings(max_examples=12, deadline=None, suppress_health_check=QUIET)
@given(runs(), runs())
def test_any_two_runs_are_read_together(place: Path, one: list[Row], other: list[Row]) -> None:
    folder = Path(tempfile.mkdtemp(dir=place))
    assert_holds(*read(make_run(folder, lines_of(one), name="one"), make_run(folder, lines_of(other), name="other")))


def test_the_checks_refuse_what_is_not_so(place: Path) -> None:
    path = write_injected(place / "sound", fault="cycle", prevalence=0.3, seed=1, n_tasks=6).path
    report, rows = read(path)
    assert_holds(report, rows)
    group = next(one for one in report.groups if one.quote is not None)
    assert group.quote is not None
    for wrong in ({"quote": "never said"}, {"task": "999"}, {"repeat": 77}):
        altered = replace(report, groups=(replace(group, quote=replace(group.quote, **wrong)),))
        with pytest.raises(AssertionError):
            quotations.assert_evidence_resolves(altered, rows)
    with pytest.raises(AssertionError):
        quotations.assert_groups_add_up(replace(report, groups=report.groups[1:]))
    passing = next(f"{task.task}/{each.repeat}" for task in report.tasks for each in task.repeats if each.reward == 1)
    with pytest.raises(AssertionError):
        quotations.assert_examples_fail(replace(report, groups=(replace(group, examples=(passing,)),)))
    with pytest.raises(AssertionError):
        quotations.assert_losses_add_up(replace(report, losses=report.losses[1:]))
    with pytest.raises(AssertionError):
        quotations.assert_steps_exist(replace(report, attributions=(replace(report.attributions[0], step=10**6),)), rows)


# -- runs that make sense, spoiled ----------------------------------------------------------------


def spoiled(row: Row, rng: random.Random) -> Row:
    """A row with something taken out of it, doubled, exchanged, or made nonsense of."""
    items = [dict(item) for item in row["response"]["output"]]
    how = rng.choice(("drop", "double", "exchange", "ids", "arguments", "outputs", "texts", "nest", "field", "cut"))
    at = rng.randrange(len(items)) if items else 0
    if how == "field":
        gone = rng.choice(sorted(row))
        return {key: value for key, value in row.items() if key != gone or key.startswith("_ng_")}
    if how == "drop":
        del items[at : at + 1]
    elif how == "double":
        items[at:at] = items[at : at + rng.randrange(1, 9)]
    elif how == "exchange":
        rng.shuffle(items)
    elif how == "cut":
        del items[at:]
    elif how == "nest":
        items = [items[:at], items[at:]]
    for item in items if how in ("ids", "arguments", "outputs", "texts") else ():
        if how == "ids" and "call_id" in item:
            item["call_id"] = rng.choice(("c0", "c1", "", None))
        if how == "arguments" and "arguments" in item:
            item["arguments"] = rng.choice(("", "{", "[]", "null", item["arguments"][:-1]))
        if how == "outputs" and "output" in item:
            item["output"] = rng.choice(("", None, "Error: it failed", ["x"], item["output"]))
        if how == "texts" and "content" in item:
            item["content"] = rng.choice(("", None, [], item["content"]))
    return {**row, "response": {**row["response"], "output": items}}


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(fault=st.sampled_from(sorted(INJECTIONS)), seed=st.integers(0, 2**32), share=st.sampled_from([0.1, 0.4, 1.0]))
@example(fault="format_mismatch", seed=221, share=1.0)  # many rollouts say nothing at all
def test_a_run_that_makes_sense_is_read_to_the_end_once_spoiled(place: Path, fault: str, seed: int, share: float) -> None:
    folder, rng = Path(tempfile.mkdtemp(dir=place)), random.Random(seed)
    written = write_injected(folder, fault=fault, prevalence=0.3, seed=seed % 97, n_tasks=8, repeats=4)
    rows = [json.loads(line) for line in written.path.read_bytes().splitlines()]
    rows = [spoiled(row, rng) if rng.random() < share else row for row in rows]
    for row in rows:
        if rng.random() < 0.1:
            row["reward"] = rng.choice((0.0, 1.0, 0.5, None))
    assert_holds(*read(make_run(folder, lines_of(rows))))


# -- long rollouts and long texts -----------------------------------------------------------------


def long_items(n: int, shape: str) -> list[Row]:
    """A rollout of `n` items, each shape a trial of another kind."""
    if shape == "orphans":
        return [make_result(f"c{at % 3}", f"Error: record {at} not found") for at in range(n)]
    if shape == "unanswered":
        return [make_call("c0", "look", f'{{"id": "A{at}"}}') for at in range(n)]
    if shape == "answers at the end":
        calls = [make_call("c0", "look", f'{{"id": "A{at}"}}') for at in range(n // 2)]
        return [*calls, *(make_result("c0", f"record B{at}") for at in range(n // 2))]
    if shape == "dialogue":
        return [make_message(f"About A{at}: shall I go on?", ("assistant", "user")[at % 2]) for at in range(n)]
    items = []
    for at in range(n // 2):
        what = at if shape == "varied" else at % 2 if shape == "in turns" else 0
        arguments = f"{{id: A{at}" if shape == "no JSON" else f'{{"id": "A{what * 7919}", "note": "some words"}}'
        output = "" if shape == "empty" else f"Error: A{what} is gone" if what % 3 == 1 else f"record A{what + 1} of it"
        items += [make_call(f"c{at}", f"tool{what % 5}", arguments), make_result(f"c{at}", output)]
    return items


def lines_run(path: Path) -> int:
    """How many lines of ours run, loops counted turn by turn, to read a run too small for a second process."""
    loaded = loaded_of(path)
    home = str(Path(pipeline.__file__).parents[1])
    n = 0

    def each(frame: FrameType, event: str, told: object) -> Any:
        nonlocal n
        n += 1
        return each

    def trace(frame: FrameType, event: str, told: object) -> Any:
        return each if frame.f_code.co_filename.startswith(home) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        report = pipeline.diagnose(loaded, "test")
    finally:
        sys.settrace(before)
    quotations.assert_nothing_broke(report)
    return n


def assert_linear(cost: Callable[[int], int], small: int) -> None:
    """Four times as much takes about four times as many steps."""
    cost(10)  # imports
    assert 2 < cost(4 * small) / cost(small) < 5


def cpu_seconds(path: Path) -> float:
    """What it takes this process to read a run that is too small for a second one."""
    loaded = loaded_of(path)
    gc.disable()  # what other tests left in this process is no cost of this one
    try:
        start = time.process_time()
        quotations.assert_nothing_broke(pipeline.diagnose(loaded, "test"))
        return time.process_time() - start
    finally:
        gc.enable()


SHAPES = ["varied", "same", "in turns", "no JSON", "empty", "orphans", "unanswered", "answers at the end", "dialogue"]


@pytest.mark.parametrize("shape", SHAPES)
def test_long_rollouts_take_linear_work(place: Path, shape: str) -> None:
    def cost(n: int) -> int:
        actions = [{"name": "tool1", "arguments": {"id": "A7919"}}]
        rows = [rollout(long_items(n, shape), float(repeat), repeat, expected_actions=actions) for repeat in (0, 1)]
        return lines_run(make_run(Path(tempfile.mkdtemp(dir=place)), rows))

    assert_linear(cost, 100)


@pytest.mark.parametrize("piece", [" ", "a", "/a", "\n", "{", "\\boxed{", "1 passed, ", "<think>"])
def test_long_texts_take_linear_time(place: Path, piece: str) -> None:
    def cost(n: int) -> float:
        text = piece * (n // len(piece))
        items = did(("look", text, text), ("bash", json.dumps({"command": text}), f"Error: {text}"))
        items += [make_message(text, "user"), make_message(text)]
        fields = {"expected_answer": "42", "extracted_answer": text, "stderr": text}
        tools = [make_tool("look", "id", id="string")]
        rows = [rollout(items, float(repeat), repeat, task, tools, **fields) for task in (0, 1) for repeat in (0, 1)]
        return cpu_seconds(make_run(Path(tempfile.mkdtemp(dir=place)), rows))

    # A pattern that goes back over a text does so in C, where no line of ours runs: only time shows it.
    cost(10)  # imports
    bound = 8 * max(cost(10_000), 0.02)
    assert any(cost(40_000) < bound for _ in range(4))


def test_four_times_the_rows_take_linear_work(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blade.pipeline.trace_reading._PARALLEL_ROWS", 10_000)  # so that all of the work is seen

    def cost(n: int) -> int:
        items = [long_items(12, "varied"), long_items(10, "in turns"), long_items(6, "empty")]
        rows = [rollout(items[(at * 7) % 3], float(at * at % 5 > 1), at % 4, at // 4) for at in range(n)]
        return lines_run(make_run(Path(tempfile.mkdtemp(dir=place)), rows))

    assert_linear(cost, 32)
