"""Builders: small reports, made from rewards by plain arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from blade import model
from blade.model import Cause, Coverage, Health, Measure, Outcome, Report, RewardKind, TaskResult

from .explained import explain
from .nouns import Word, nouns

SHA = "0123456789abcdef" * 4
A = "1111 1110 1111 1010 1000 0000 1100 0000"


def make_tasks(run: str, rewards: dict[str, list[float | None]], judged: bool, prefix: str) -> tuple[TaskResult, ...]:
    tasks = []
    for task, values in rewards.items():
        scored = [value for value in values if value is not None]
        n, c = len(scored), sum(value >= 1 for value in scored)
        rate = c / n if n and judged else None
        bucket = "missing" if not n else "always" if c == n else "sometimes" if c else "never"
        repeats = tuple(
            model.Repeat(repeat, Outcome.MISSING if v is None else Outcome.PASSED if v >= 1 else Outcome.FAILED, v)
            for repeat, v in enumerate(values)
        )
        shrunk = (c + 0.66) / (n + 1.32) if rate is not None else None
        low, high = (max(0.0, shrunk - 0.3), min(1.0, shrunk + 0.3)) if shrunk is not None else (None, None)
        mean = sum(scored) / n if n else None
        tasks.append(
            TaskResult(run, task, f"{prefix}{task}", n, c if judged else None, rate, mean, shrunk, low, high,
                       bucket if judged else None, 0.62 if rate is not None else None, repeats)
        )  # fmt: skip
    return tuple(tasks)


def make_measures(run: str, tasks: tuple[TaskResult, ...], expected: int, judged: bool) -> list[Measure]:
    done = [task for task in tasks if task.n]
    n, rows = len(done), sum(task.n for task in done)
    measures: list[Measure] = []

    def add(name: str, value: float | None, n: int, unit: str = "tasks", **more: Any) -> None:
        measures.append(Measure(run, name, value, n, unit, **more))

    if n:
        means = [task.rate if judged else task.mean_reward for task in done]
        mean = sum(means) / n
        half = 2 * sqrt(sum((m - mean) ** 2 for m in means) / max(1, n - 1) / n)
        low, high = (max(0.0, mean - half), min(1.0, mean + half)) if judged else (mean - half, mean + half)
        add("pass_at_1" if judged else "mean_reward", mean, n, low=low, high=high, method="task t")
        if judged:
            add("pass_at_1_micro", sum(task.passed or 0 for task in done) / rows, rows, "rows", method="rows are not independent")
            add("solved", sum(t.passed > 0 for t in done) / n, n, low=0.4, high=0.95, method="wilson")
            add("consistency", sum(t.passed == t.n for t in done) / n, n)
            for k in range(1, min(task.n for task in done) + 1):
                any_k = sum(1 - comb(t.n - t.passed, k) / comb(t.n, k) for t in done) / n
                all_k = sum(comb(t.passed, k) / comb(t.n, k) for t in done) / n
                for name, value in (("pass_at_k", any_k), ("pass_hat_k", all_k)):
                    add(name, value, n, k=k, low=max(0, value - 0.2), high=min(1, value + 0.2), method="task t")
            add("retry_value", measures[-2].value - mean, n)
        missing = expected - rows
        total = sum((task.passed if judged else task.mean_reward * task.n) for task in done)
        for name, more in (("missing_as_fail", 0), ("bound_low", 0), ("bound_high", missing)):
            add(name, (total + more) / expected if missing else mean, expected, "rows")
        add("icc", 0.46, rows, "rows")
    add("coverage", rows / expected if expected else None, expected, "rows")
    for outcome, size in (("all", 900.0), ("passed", 612.5), ("failed", 1310.25))[: 3 if judged else 1]:
        add("output_tokens", size, rows, "rows", slice=outcome, method="mean over rows that report it")
        add("output_tokens_median", size * 0.9, rows, "rows", slice=outcome, method="median over rows that report it")
    add("something_new", 0.25, 3, "rows", k=2)
    return measures


def make_report(
    runs: dict[str, dict[str, list[float | None]]],
    kind: RewardKind = RewardKind.BINARY,
    judged: bool = True,
    word: Word = str,
    **changes: Any,
) -> Report:
    """A report over `runs` (name -> task -> rewards, None: missing); `word` makes every foreign text."""
    lists: dict[str, list[Any]] = {
        name: [] for name in "runs measures buckets tasks health funnels slices compared losses".split()
    }
    for name, rewards in runs.items():
        keyed = {word(task): values for task, values in rewards.items()}
        tasks = make_tasks(name, keyed, judged, word("tau-"))
        expected = sum(len(values) for values in rewards.values())
        scored = sum(task.n for task in tasks)
        measures = make_measures(name, tasks, expected, judged)
        score_name = "pass_at_1" if judged else "mean_reward"
        score = next((m.value for m in measures if m.name == score_name), None)
        by_bucket = {b: tuple(t.task for t in tasks if t.bucket == b) for b in ("always", "sometimes", "never", "missing")}
        repeats = max((len(values) for values in rewards.values()), default=0)
        none = dict.fromkeys("failed_classes failed_keys lost_keys masked_keys duplicate_keys".split(), ())
        zero = dict.fromkeys("failed masked superseded unnumbered_copies unexpected".split(), 0)
        nothing = np.zeros(0, np.int64)
        coverage = Coverage(
            expected_from="materialized inputs", expected=expected, scored=scored, lost=expected - scored, duplicates=1,
            identical_duplicates=1, repeats=repeats, expected_per_task=nothing, missing_per_task=nothing, **zero, **none,
        )  # fmt: skip
        seen = Counter(repeat.outcome for task in tasks for repeat in task.repeats)
        outcomes = {outcome: seen[outcome] for outcome in Outcome} | {Outcome.MISSING: coverage.lost}
        path = word("runs/airline.jsonl")
        lists["runs"].append(
            model.Run(name, word("gpt-4o"), word("tool_agent"), word("tau_airline"), (model.Source(path, SHA, 123_456, scored),),
                (model.Artifact(word("rollouts"), path, True), model.Artifact("failures", word("runs/f.jsonl"), False)),
                (word("Collected on one node.\nTemperature as in the config."),),
                {word("temperature"): word("0.7"), "agent": word("tool calling")},
                len(rewards), scored, coverage, kind, 1.0, judged, score_name, score, 0.75, outcomes)
        )  # fmt: skip
        lists["measures"] += measures
        lists["buckets"].append(model.Buckets(name, **by_bucket))
        lists["tasks"] += tasks
        if judged and score is not None:
            lists["losses"].append(model.Loss(name, Cause.UNDETERMINED, word("not attributed"), 1 - score))
        quoted = {"run": name, "task": next(iter(keyed)), "repeat": 0, "field": word("verifier.error"), "quote": word("KeyError: 'user_id'")}
        known = {"run": name, "expected": expected, "scored": scored, "n_tasks": len(rewards), "score": score}
        lists["health"] += nouns(Health, "health", word, **known, first=quoted["task"], quoted=[quoted])
        stages = (("started", scored), (word("called a tool"), scored // 2))
        lists["funnels"].append(model.Funnel(name, "inferred", tuple(model.FunnelStage(*stage, expected) for stage in stages)))
        lists["slices"] += nouns(model.Slice, "slices", word, **known)
        lists["compared"] += nouns(model.Compared, "compared", word, **known)
    report = Report(
        {"blade": "0.1.0", "command": word("blade diagnose runs/airline.jsonl")},
        **{name: tuple(entries) for name, entries in lists.items()},
        skipped=(model.Skipped(word("runs/airline.jsonl"), 17, word("not JSON: line 17")),),
        skipped_total=1,
        gaps=(model.Gap(word("cost"), word("no row reports cost")),),
        benchmark={name: model.Benchmark(inferred=(word("task id from _ng_task_index"),)) for name in runs},
    )
    return replace(report, **changes)


def twenty() -> dict[str, list[float | None]]:
    """Twenty tasks of four repeats: six always pass, nine sometimes, five never."""
    sometimes = "1000 0110 1010 1110 0001 0100 1101 1000 0011".split()
    return rewards(" ".join(["1111"] * 6 + sometimes + ["0000"] * 5))


def f1() -> dict[str, list[float | None]]:
    return rewards(A)


def rewards(signs: str) -> dict[str, list[float | None]]:
    """One task for each word, one repeat for each sign."""
    return {str(task): [float(sign) for sign in word] for task, word in enumerate(signs.split())}


CASES: dict[str, Callable[[], Report]] = {
    "one run": lambda: make_report({"airline": f1()}),
    "two runs": lambda: make_report({"airline": f1(), "airline-b": {"0": [1.0, 1.0], "9": [0.0, 1.0]}}),
    "many runs": lambda: make_report({f"checkpoint-{at:05}": f1() for at in range(30)}),
    "unbounded": lambda: make_report({"game": {"0": [12.5, -3.0], "1": [700.25, 4.0]}}, RewardKind.UNBOUNDED, judged=False),
    "constant": lambda: make_report({"same": {"0": [1.0, 1.0], "1": [1.0, 1.0]}}, RewardKind.CONSTANT),
    "all missing": lambda: make_report({"gone": {"0": [None, None], "1": [None, None]}}),
    "some missing": lambda: make_report({"holes": {"0": [1.0, None, None, None], "1": [1.0, 1.0, 1.0, 1.0], "2": [1.0, 0.0, None, None]}}),
    "one repeat": lambda: make_report({"once": {str(at): [float(at % 3 == 0)] for at in range(40)}}),
    "many tasks": lambda: make_report({"large": {str(at): [1.0, float(at % 2), 0.0] for at in range(450)}}),
    "no run": lambda: Report({"blade": "0.1.0", "command": "blade diagnose nothing"}),
    "explained": lambda: explain(make_report({"desk": twenty()})),
    "explained runs": lambda: explain(make_report({"desk": twenty(), "desk-b": f1()})),
    "explained, no group": lambda: explain(make_report({"desk": twenty()}), groups=(), trust=(), recommendations=(), accuracy=None),
    "bare run": lambda: make_report({"bare": f1()}, measures=(), health=(), funnels=(), slices=(), compared=(), skipped=(), skipped_total=0, gaps=(), benchmark={}),
}  # fmt: skip


@pytest.fixture(scope="module", params=list(CASES))
def report(request: pytest.FixtureRequest) -> Report:
    """Every kind of report, one at a time."""
    return CASES[request.param]()


@pytest.fixture
def one_run() -> Report:
    return CASES["one run"]()


@pytest.fixture
def explained() -> Report:
    """One run with everything the later stages conclude."""
    return CASES["explained"]()
