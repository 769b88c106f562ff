"""Measure the queue: the wrong or missing labels in its first ten tasks, against ten at random."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from blade import pipeline
from blade.model import Attribution, Cause
from blade.pipeline import reviewing
from blade.planted.injected import INJECTIONS, write_injected

FIRST = 10
FAULTS, TASKS, SHARE = 6, 20, 0.2  # faults of a run, tasks of each, rows that have it
APART = 1000  # task numbers of one fault and the next
SOLVABLE = sorted(
    name for name, one in INJECTIONS.items() if not name.endswith("_twin") and one.pick != "run"
)  # faults of a whole run leave nothing to order
# repeats, and the share of tasks that have lost all but one of them: there the engine abstains most
DESIGNS = {"2 repeats": (2, 0.0), "3 repeats": (3, 0.0), "4 repeats": (4, 0.0), "4, uneven": (4, 0.3)}


@dataclass(frozen=True)
class Lift:
    """Points of score under wrong or missing labels: in all, in the first ten, in ten at random."""

    n_failed: int
    n_wrong: int
    wrong: float
    first: float
    random: float


def mixed(folder: Path, seed: int, repeats: int, uneven: float) -> tuple[Path, dict[str, set[str]]]:
    """A run in which several faults happen, and the causes that are right for each failed task."""
    rng = Random(f"queue/{seed}")
    truth: dict[str, set[str]] = {}
    lines: list[str] = []
    for at, fault in enumerate(rng.sample(SOLVABLE, FAULTS)):
        written = write_injected(
            folder / fault, fault=fault, prevalence=SHARE, seed=seed, n_tasks=TASKS, repeats=repeats
        )
        for one in (*written.truths, *written.background):
            truth.setdefault(str(int(one.task) + at * APART), set()).update(one.causes)
        thin = {task for task in range(TASKS) if rng.random() < uneven}
        for line in written.path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["_ng_task_index"] not in thin or row["_ng_rollout_index"] == 0:
                row["_ng_task_index"] += at * APART
                lines.append(json.dumps(row))
    path = folder / "rollouts.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, truth


def lift(seed: int, repeats: int, uneven: float) -> Lift:
    """The queue of one such run, held against the truth."""
    with TemporaryDirectory() as folder:
        path, truth = mixed(Path(folder), seed, repeats, uneven)
        session = pipeline.session([str(path)])
        waiting = reviewing.queue(session, most=FIRST).waiting
        told = session.report.attributions
        wrong = {one.task: one.lost for one in told if not _is_right(one, truth.get(one.task))}
        n = len(told)
    return Lift(
        n,
        len(wrong),
        sum(wrong.values()),
        sum(wrong.get(one.task, 0.0) for one in waiting),
        sum(wrong.values()) * min(FIRST, n) / max(n, 1),
    )


def _is_right(one: Attribution, causes: set[str] | None) -> bool:
    """Whether a label is one of those that are true; what was not planted is not held against it."""
    return one.cause is not Cause.UNDETERMINED and (causes is None or one.cause.value in causes)


def pooled(lifts: Iterable[Lift]) -> tuple[float, float]:
    """The loss under wrong or missing labels in the first ten and in ten at random, over all runs."""
    told = list(lifts)
    return sum(one.first for one in told), sum(one.random for one in told)


def main(seeds: Iterable[int]) -> None:
    """A line for each design."""
    heads = f"{'design':<12} {'runs':>4} {'failed':>7} {'wrong':>6} {'first ten':>10} {'random ten':>10}"
    print(f"{heads} {'ratio':>6}")
    for name, (repeats, uneven) in DESIGNS.items():
        told = [lift(seed, repeats, uneven) for seed in seeds]
        first, random = pooled(told)
        failed, wrong = sum(one.n_failed for one in told), sum(one.n_wrong for one in told)
        ratio = f"{first / random:6.1f}" if random else "     –"
        print(f"{name:<12} {len(told):>4} {failed:>7} {wrong:>6} {first:>10.3f} {random:>10.3f} {ratio}")


if __name__ == "__main__":
    main(range(int(sys.argv[1]) if len(sys.argv) > 1 else 12))
