"""Measure time and memory: medians, two ways side by side, fresh processes, baselines, and the lines of the table."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

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
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "PYTHONPATH": str(Path(blade.__file__).parent.parent), "BLADE_CACHE_DIR": str(cache)}


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


N_PROCESSES = 2


def newlines(path: Path) -> int:
    """Count the lines of a file with two processes."""
    return sum(_forked(path, _count))


def parsed(path: Path) -> int:
    """Parse every line of a file with two processes; how many there were."""
    return sum(_forked(path, _parse))


def _count(path: Path, start: int, end: int) -> int:
    count = 0
    with path.open("rb", buffering=0) as file:
        while start < end:
            data = os.pread(file.fileno(), min(1 << 20, end - start), start)
            count += data.count(b"\n")
            start += len(data)
    return count


def _parse(path: Path, start: int, end: int) -> int:
    count = 0
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            orjson.loads(line)
            count += 1
            start += len(line)
            if start >= end:
                break
    return count


def _forked(path: Path, work: Callable[[Path, int, int], int]) -> list[int]:
    marks = _marks(path)
    workers = []
    for start, end in pairwise(marks):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.write(writer, str(work(path, start, end)).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        workers.append((pid, reader))
    return [_result(pid, reader) for pid, reader in workers]


def _result(pid: int, reader: int) -> int:
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    return int(text)


def _marks(path: Path) -> list[int]:
    """Where the ranges begin and end: at line starts."""
    size = path.stat().st_size
    marks = [0]
    with path.open("rb") as file:
        for number in range(1, N_PROCESSES):
            file.seek(size * number // N_PROCESSES)
            file.readline()
            marks.append(file.tell())
    return [*marks, size]


HEADINGS = ("what", "measured", "baseline", "ratio", "budget", "met")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; `met` is None where there is nothing to meet."""

    what: str
    measured: float
    unit: str  # s, ms or MB
    budget: str = ""
    met: bool | None = None
    baseline: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.baseline else self.measured / self.baseline

    def as_json(self) -> dict[str, Any]:
        """The same line for a program."""
        return {**asdict(self), "ratio": self.ratio}


def against(what: str, measured: float, baseline: float, most: float, note: str = "") -> Line:
    """A time in seconds that may be at most `most` times its baseline."""
    return Line(what, measured, "s", f"<= {most:g} x", measured <= most * baseline, baseline, note)


def below(what: str, measured: float, unit: str, most: float, note: str = "") -> Line:
    """A quantity with an absolute limit."""
    return Line(what, measured, unit, f"<= {most:g} {unit}", measured <= most, note=note)


def told(what: str, measured: float, unit: str, note: str = "") -> Line:
    """A quantity without a budget, for comparison."""
    return Line(what, measured, unit, note=note)


def rows(lines: list[Line]) -> list[tuple[str, ...]]:
    return [
        (
            line.what,
            _quantity(line.measured, line.unit),
            "" if line.baseline is None else _quantity(line.baseline, line.unit),
            "" if line.ratio is None else f"{line.ratio:.2f} x",
            line.budget,
            "" if line.met is None else "yes" if line.met else "NO",
        )
        for line in lines
    ]


def rendered(lines: list[Line]) -> str:
    """The table as text, with the notes below it."""
    table = [HEADINGS, *rows(lines)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    printed = [_row(row, widths) for row in table]
    printed.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{line.what}: {line.note}" for line in lines if line.note]
    return "\n".join([*printed, "", *notes]) + "\n"


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *numbers]).rstrip()


def _quantity(value: float, unit: str) -> str:
    return f"{value:.3f} s" if unit == "s" else f"{value:,.0f} {unit}"
