"""Pairs of runs whose rollouts behave: they loop, fail at calls, skip a tool, and pass less for it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run

TASKS, REPEATS = 30, 3
# Behaviour -> how often a rollout that shows it passes, beside a rollout that shows nothing.
PASSES = {"loops": 0.05, "fails": 0.15, "skips": 0.1, "plain": 0.85}
TOOL = "run_2"  # a digit in a name must not be taken for a number


def write_behaving(folder: Path, seed: int) -> tuple[Path, Path]:
    """Two runs in which one behaviour has become frequent, whichever the seed chooses."""
    rng = Random(f"behaving/{seed}")
    grown = rng.choice(["loops", "fails", "skips"])
    shares = {"loops": 0.1, "fails": 0.1, "skips": 0.1}
    before = make_run(folder / "a", _rows(rng, shares, "sim-a"), name="before")
    after = make_run(folder / "b", _rows(rng, {**shares, grown: 0.6}, f"sim->{seed}"), name="after")
    return (before, after) if seed % 2 == 0 else (after, before)


def write_mixed(folder: Path, seed: int) -> tuple[Path, Path]:
    """The same where one run has rewards beyond 1, so that by itself it is told by its mean reward."""
    first, second = write_behaving(folder, seed)
    text = second.read_text(encoding="utf-8")
    second.write_text(text.replace('"reward":0.0', '"reward":-0.25', 3), encoding="utf-8")
    return first, second


def _rows(rng: Random, shares: dict[str, float], model: str) -> list[Row]:
    found = []
    for task in range(TASKS):
        for repeat in range(REPEATS):
            behaviour = next((name for name, share in shares.items() if rng.random() < share), "plain")
            reward = float(rng.random() < PASSES[behaviour])
            output = _output(behaviour, task, repeat)
            level = "hard" if task % 3 == 0 else "easy"
            found.append(make_row(task, repeat, reward, response=make_response(output, model=model), level=level))
    return found


def _output(behaviour: str, task: int, repeat: int) -> list[dict[str, Any]]:
    calls: list[tuple[str, str, str]] = [("look", f'{{"q": "{task}"}}', "3 rows")]
    if behaviour != "skips":
        calls.append((TOOL, f'{{"sql": "select {task}"}}', f"row {task}"))
    if behaviour == "loops":
        calls += [(TOOL, '{"sql": "select x"}', "no such column: x")] * 6
    if behaviour == "fails":
        calls += [(TOOL, f'{{"sql": "select {at} from y{task}"}}', f"Error: no table y{task}") for at in range(2)]
    output: list[dict[str, Any]] = []
    for place, (tool, arguments, result) in enumerate(calls):
        output += [make_call(str(place), tool, arguments), make_result(str(place), result)]
    return [*output, make_message(f"The answer to question {task} is {task + repeat}.")]
