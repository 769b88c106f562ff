"""Measure how often the strongest claim about a pair of runs names the cause that was planted."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from blade import pipeline, stats
from blade.model import Mover
from blade.pipeline import comparing
from blade.tables.index import Silent
from tools.planted.paired_runs import BROKEN, CAUSES, CUT, LOOSE
from tools.planted.planted_runs import PlantedPair, write_pair

LEAST = 0.95  # of the planted causes must be the strongest claim, and of the unchanged pairs claim nothing
NOTHING = "nothing"
# What a claim is of, in the order of the columns; the last ones are never right.
CLASSES = {
    "tasks dropped": "tasks",
    "infra outage": "infra",
    "truncation limit lowered": "cut",
    "one slice worse": "slice",
    "one failure mode fixed": "mode",
    "verifier changed": "verifier",
    NOTHING: "none",
    "another slice": "slice?",
    "another mode": "mode?",
    "something else": "else",
}


# Ways in which rollouts were played, and the side that a right claim about them has.
BY_WAY = {
    (CUT, "task or verifier"): "truncation limit lowered",
    (BROKEN, "infrastructure"): "infra outage",
    (LOOSE, "task or verifier"): "verifier changed",
}


def run(pairs: int = 203, seed: int = 11, workers: int = 2) -> dict[str, Any]:
    """Compare `pairs` planted pairs, the causes by turns; what was claimed first, and whether it is right."""
    names = list(CAUSES)
    jobs = [(names[place % len(names)], 1000 * seed + place // len(names)) for place in range(pairs)]
    with (
        TemporaryDirectory() as cache,
        ProcessPoolExecutor(workers, initializer=_cached, initargs=(cache,)) as pool,
    ):
        lines = list(pool.map(compared, jobs, chunksize=7))
    return result(lines, seed)


def result(lines: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    """The claims of all pairs as a matrix, shares, and limits that hold or do not."""
    by_cause = {cause: [line for line in lines if line["cause"] == cause] for cause in CAUSES}
    limits = {
        "a planted cause is the first claim": share(
            [line["right"] for line in lines if line["cause"] != NOTHING]
        ),
        "nothing is claimed": share([line["right"] for line in by_cause[NOTHING]]),
    }
    return {
        "pairs": len(lines),
        "seed": seed,
        "matrix": {
            cause: dict(Counter(line["claimed"] for line in lines)) for cause, lines in by_cause.items()
        },
        "shares": {cause: share([line["right"] for line in lines]) for cause, lines in by_cause.items()},
        "limits": limits,
        "holds": all(limit["value"] is None or limit["value"] >= LEAST - limit["slack"] for limit in limits.values()),
        "lines": list(lines),
    }


def _cached(folder: str) -> None:
    os.environ["BLADE_CACHE_DIR"] = folder


def share(right: Sequence[bool]) -> dict[str, Any]:
    """A share with its Wilson interval, and two Monte-Carlo standard errors at the limit."""
    n, hits = len(right), sum(right)
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0, "slack": 0.0}
    interval = stats.wilson(hits, n)
    assert interval is not None  # it is None for n = 0 alone
    slack = 2 * math.sqrt(LEAST * (1 - LEAST) / n)
    return {"value": hits / n, "low": interval.low, "high": interval.high, "n": n, "slack": slack}


def compared(job: tuple[str, int]) -> dict[str, Any]:
    """One pair through the whole pipeline."""
    cause, seed = job
    with TemporaryDirectory() as folder:
        pair = write_pair(Path(folder), cause, seed=seed)
        loaded = pipeline.load([str(pair.baseline), str(pair.candidate)], Silent())
        report = comparing.compare(loaded, "calibration")
    movers = report.comparisons[0].movers
    claimed = claim(movers[0], pair) if movers else NOTHING
    return {
        "cause": cause,
        "seed": seed,
        "world": f"{pair.world}, {pair.form}",
        "n_tasks": pair.n_tasks,
        "repeats": pair.repeats,
        "delta": pair.delta,
        "mde": pair.mde,
        "swapped": pair.swapped,
        "terms": (*pair.sides, *pair.terms),
        "claimed": claimed,
        "right": claimed == cause,
        "movers": [f"{mover.term} [{mover.side}] {mover.value:+.3f} p {mover.p_adjusted:.2g}" for mover in movers],
    }


def claim(mover: Mover, pair: PlantedPair) -> str:
    """Classify a claim by its side, and a failure group by how the rollouts that it lists were really played."""
    if mover.side == "slice":
        return "one slice worse" if mover.term in pair.terms else "another slice"
    if mover.side == "composition":
        return "tasks dropped"
    played = Counter(_played(mover, pair)).most_common(1)
    if not played:
        return "something else"
    (way, _), *_ = played
    if (way, mover.side) in BY_WAY:
        return BY_WAY[way, mover.side]
    if mover.side != "model":
        return "something else"
    return "one failure mode fixed" if way in pair.terms else "another mode"


def _played(mover: Mover, pair: PlantedPair) -> Iterator[str]:
    how = {pair.baseline.stem: pair.how[0], pair.candidate.stem: pair.how[1]}
    for run, task, repeat in mover.rollouts:
        yield how[run][int(task), repeat]


def told(result: dict[str, Any]) -> str:
    """The confusion matrix, the limits, and every pair whose strongest claim is wrong."""
    columns = [name for name in CLASSES if any(name in row for row in result["matrix"].values())]
    head = " ".join(f"{CLASSES[name]:>8}" for name in columns)
    about = f"{result['pairs']} pairs, seed {result['seed']}; rows are planted, columns claimed first"
    lines = [f"Planted causes: {about}", "", f"{'':<26}{head}   right"]
    for cause, row in result["matrix"].items():
        cells = " ".join(f"{row.get(name, 0) or '·':>8}" for name in columns)
        lines.append(f"{cause:<26}{cells}   {said(result['shares'][cause])}")
    lines.append("")
    for name, limit in result["limits"].items():
        lines.append(f"{name}: {said(limit)}, at least {LEAST:.0%} ± {limit['slack']:.1%}")
    wrong = [line for line in result["lines"] if not line["right"]]
    lines += ["", f"Wrong ({len(wrong)}):"] if wrong else []
    return "\n".join([*lines, *map(failed, wrong)])


def failed(line: dict[str, Any]) -> str:
    """A pair whose strongest claim is wrong."""
    tasks, repeats = ("/".join(map(str, line[name])) for name in ("n_tasks", "repeats"))
    about = f"seed {line['seed']}, {line['world']}, tasks {tasks}, repeats {repeats}"
    size = f"true {line['delta']:+.2f}, MDE {line['mde']:.2f}"
    claimed = "; ".join(line["movers"][:3]) or "nothing"
    return f"  {line['cause']} ({about}, {size}): {' '.join(line['terms']) or 'no claim'} / {claimed}"


def said(limit: dict[str, Any]) -> str:
    if limit["value"] is None:
        return "- (n = 0)"
    return f"{limit['value']:.1%} [{limit['low']:.1%}, {limit['high']:.1%}] (n = {limit['n']})"
