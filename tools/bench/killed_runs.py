"""Kill `blade eval run` at random moments, resume it, and hold its rows against an uninterrupted run.

python -m tools.bench.killed_runs --kills 50
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.model_server import choice, serving

REPEATS = 4
TASKS_PER_KILL = 14  # so that the run outlives its kills
DELAY_S = 0.02
START_S, LONGEST_S = 0.05, 1.2  # a kill comes so long after the start of the process
TIMEOUT_S = 300.0

Key = tuple[int, int]


@dataclass(frozen=True)
class Kill:
    """One sitting that was killed: when, and what it left."""

    after_s: float
    before: int  # rollouts when it began
    left: int  # rollouts when it was killed
    torn: int  # bytes that were then torn off the last line, as by a machine that loses power


@dataclass(frozen=True)
class Outcome:
    """What became of the rows after all kills, against those of a run that nobody disturbed."""

    kills: tuple[Kill, ...]
    expected: int
    same: int
    different: int
    lost: int
    twice: int
    foreign: int

    @property
    def is_whole(self) -> bool:
        return self.same == self.expected and not (self.different or self.lost or self.twice or self.foreign)


def command(rows: Path, output: Path, url: str, *more: str) -> list[str]:
    """A run of multiple choice questions whose answers are a function of question and repeat."""
    return [
        sys.executable, "-m", "blade", "eval", "run", "--resources-server", "mcqa",
        "--model-type", "openai_model", "--model", "m", "--model-url", url,
        "--input", str(rows), "--output", str(output),
        "--num-repeats", str(REPEATS), "--concurrency", "4", "--quiet", "++num_repeats_add_seed=true", *more,
    ]  # fmt: skip


def questions(n_tasks: int) -> Iterator[str]:
    for number in range(n_tasks):
        options = [{letter: str(number + step)} for step, letter in enumerate("ABCD")]
        request = {"input": [{"role": "user", "content": f"What is {number} + 1? Options: {options}"}]}
        row = {"responses_create_params": request, "options": options, "expected_answer": "B"}
        yield json.dumps(row) + "\n"


def trial(kills: int, seed: int, folder: Path) -> Outcome:
    """Kill one run so often, let it end, and compare."""
    draw = random.Random(seed)
    rows, whole, killed = folder / "rows.jsonl", folder / "whole.jsonl", folder / "killed.jsonl"
    rows.write_text("".join(questions(max(20, kills * TASKS_PER_KILL))))
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with serving(choice([f"Answer: {letter}" for letter in "ABCD"]), delay=DELAY_S, keeps=False) as server:
        reference = command(rows, whole, server.url)
        subprocess.run(reference, env=environment, check=True, capture_output=True, timeout=TIMEOUT_S)
        resumed = command(rows, killed, server.url, "--resume")
        sittings = [_killed(resumed, environment, killed, draw) for _ in range(kills)]
        subprocess.run(resumed, env=environment, check=True, capture_output=True, timeout=TIMEOUT_S)
    return compared(whole, killed, tuple(sittings))


def _killed(resumed: list[str], environment: dict[str, str], output: Path, draw: random.Random) -> Kill:
    before = _count(output)
    after = draw.uniform(START_S, LONGEST_S)
    with subprocess.Popen(
        resumed, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        begun = time.monotonic()
        waited = _first_row(process, output, before, begun + 30) if draw.random() < 0.8 else 0.0
        time.sleep(after if not waited else after / 2)
        process.kill()
        _, text = process.communicate()
    if process.returncode not in (0, -9):
        raise RuntimeError(f"a sitting ended by itself with {process.returncode}:\n{text}")
    return Kill(waited + after, before, _count(output), _torn(output, draw))


def _first_row(process: subprocess.Popen[str], output: Path, before: int, until: float) -> float:
    """Wait until a sitting is at work, so that most kills hit work and not the start of Python."""
    begun = time.monotonic()
    while process.poll() is None and _count(output) <= before and time.monotonic() < until:
        time.sleep(0.01)
    return time.monotonic() - begun


def _count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _torn(path: Path, draw: random.Random) -> int:
    """Tear a part off the last line, every second time."""
    if not path.exists() or not path.stat().st_size or draw.random() < 0.5:
        return 0
    last = path.read_bytes().splitlines(keepends=True)[-1]
    off = draw.randrange(1, len(last) + 1)
    os.truncate(path, path.stat().st_size - off)
    return off


def compared(whole: Path, killed: Path, kills: tuple[Kill, ...]) -> Outcome:
    expected = {_key(row): row for row in _rows(whole)}
    results = list(_rows(killed))
    counts = Counter(map(_key, results))
    by_key = {_key(row): row for row in results}
    return Outcome(
        kills,
        len(expected),
        same=sum(by_key.get(key) == row for key, row in expected.items()),
        different=sum(key in by_key and by_key[key] != row for key, row in expected.items()),
        lost=len(expected.keys() - by_key.keys()),
        twice=sum(count > 1 for count in counts.values()),
        foreign=len(by_key.keys() - expected.keys()),
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _key(row: dict[str, Any]) -> Key:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        outcome = trial(options.kills, options.seed, Path(folder))
    print("kill  after    before    left  torn off")
    for number, kill in enumerate(outcome.kills, 1):
        print(f"{number:4}  {kill.after_s:4.2f} s  {kill.before:7,} {kill.left:7,}  {kill.torn or '':>8}")
    print(
        f"{outcome.expected:,} rows: {outcome.same:,} as in the uninterrupted run,"
        f" {outcome.different} different, {outcome.lost} lost, {outcome.twice} twice,"
        f" {outcome.foreign} foreign"
    )
    sys.exit(0 if outcome.is_whole else 1)


if __name__ == "__main__":
    main()
