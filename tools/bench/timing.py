"""Clocks: medians, two ways side by side, fresh processes, memory of a process tree."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import blade

SAMPLE_S = 0.005


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def medians(ways: Sequence[Callable[[], object]], runs: int) -> list[float]:
    """The median of each way, the ways taking turns so that all meet the same weather."""
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(runs):
        for way, times in zip(ways, taken, strict=True):
            times.append(seconds(way))
    return [statistics.median(times) for times in taken]


def environment(cache: Path) -> dict[str, str]:
    """For fresh processes: our package, a cache of their own, and compiled modules kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(Path(blade.__file__).parent.parent), "BLADE_CACHE_DIR": str(cache)}


def fresh(arguments: Sequence[str], cache: Path) -> str:
    """What `python ARGUMENTS` prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(cache), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def peak_mb(arguments: Sequence[str], cache: Path) -> float:
    """The most anonymous memory that `python ARGUMENTS` and its children held at one time."""
    if not Path("/proc/self/task", str(os.getpid()), "children").exists():
        raise RuntimeError("this system does not list the children of a process")
    with subprocess.Popen([sys.executable, *arguments], env=environment(cache)) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, _tree_kb(process.pid))
            time.sleep(SAMPLE_S)
    if process.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed")
    return peak / 1000


def _tree_kb(pid: int) -> int:
    """RssAnon of a process and all below it; those that end meanwhile count nothing."""
    total = 0
    waiting = [pid]
    while waiting:
        here = Path("/proc", str(waiting.pop()))
        try:
            status = (here / "status").read_text()
            waiting += [int(child) for task in (here / "task").iterdir() for child in _children(task)]
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return total


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:
        return []
