"""A thousand rollouts at a time against a local server, beside the bare HTTP client in the same run.

python -m tools.bench.concurrent
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from blade_eval import config
from blade_eval.config import Asked
from blade_eval.environment import Row
from blade_eval.runner import benchmark_run as orders
from blade_eval.runner.inputs import Wanted
from blade_eval.runner.progress import Progress
from tools.bench.bench_files import Files
from tools.bench.bench_measures import Line, rendered
from tools.bench.killed_runs import questions

CONCURRENCY = 1000
LEAST = 0.8  # of the rate of the bare client
MOST_MB = 150  # that a run may grow by while it works, whatever the number of its rows
_SAMPLE_S = 0.05


# The server that plays a model in the tests; and one that costs nothing, so that only the client counts.
SERVERS = {
    "local": ["tools.model_server", "--policy", "fixed:Answer: B"],
    "canned": ["tools.bench.canned_server"],
}


@contextmanager
def served(kind: str = "canned") -> Iterator[str]:
    """A model server in a process of its own, so that it and the client do not share a loop."""
    command = [sys.executable, "-m", *SERVERS[kind]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def bare(url: str, rows: list[Row]) -> float:
    """Requests a second that the client reaches which does nothing else: send, receive, decode."""
    waiting = iter(rows)

    async def work(session: aiohttp.ClientSession) -> None:
        for row in waiting:
            body = json.dumps({**row["responses_create_params"], "model": "m"})
            async with session.post(f"{url}/responses", data=body) as answer:
                json.loads(await answer.read())

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, headers={"Content-Type": "application/json"}
    ) as session:
        begun = time.perf_counter()
        await asyncio.gather(*(work(session) for _ in range(CONCURRENCY)))
        return len(rows) / (time.perf_counter() - begun)


def ours(url: str, path: Path, output: Path) -> tuple[float, float]:
    """Rollouts a second of a whole run, and the megabytes it grew by while it worked."""
    model = (f"++policy_base_url={url}", "++policy_model_name=m", "++policy_api_key=none")
    options = Asked(resources_servers=("mcqa",), model_types=("openai_model",), overrides=model)
    order = orders.Order(
        output, options, path, wanted=Wanted(repeats=1), concurrency=CONCURRENCY, force=True, sums_up=False
    )
    config.resolved(options)  # what is loaded once is no part of the rate
    peak = _Peak()
    outcome = asyncio.run(orders.carried_out(order, Progress(is_quiet=True), lambda _: None))
    grown = peak.stopped()
    if outcome.summary.scored != outcome.summary.expected:
        raise RuntimeError(f"only {outcome.summary.scored} of {outcome.summary.expected} were scored")
    return outcome.summary.scored / outcome.summary.seconds, grown


class _Peak:
    """The most anonymous memory of this process while it works, above what it had before."""

    def __init__(self) -> None:
        self._before = self._most = _anonymous_mb()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            self._most = max(self._most, _anonymous_mb())

    def stopped(self) -> float:
        self._stop.set()
        self._thread.join()
        return max(self._most, _anonymous_mb()) - self._before


def _anonymous_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    return 0.0


def rates(kind: str, folder: Path, n_rows: int, runs: int) -> tuple[float, float, float]:
    """Rollouts and bare requests a second, and the most that a run of ours grew by.

    The two take turns, and of each the best turn counts: what else a machine does only ever slows one down.
    """
    path = folder / "rows.jsonl"
    path.write_text("".join(questions(n_rows)))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    whole: list[float] = []
    alone: list[float] = []
    grown: list[float] = []
    with served(kind) as url:
        asyncio.run(bare(url, rows[:2000]))  # both sides warm
        for _ in range(runs):
            alone.append(asyncio.run(bare(url, rows)))
            rate, more = ours(url, path, folder / "r.jsonl")
            whole.append(rate)
            grown.append(more)
    return max(whole), max(alone), max(grown)


def lines(folder: Path, n_rows: int, runs: int) -> list[Line]:
    """A run against the local server, and what it costs beyond the client where the server costs nothing."""
    rate, alone, grown = rates("local", folder, n_rows, runs)
    free, free_alone, more = rates("canned", folder, n_rows, runs)
    name = f"{CONCURRENCY:,} rollouts at a time"
    note = f"{rate:,.0f} rollouts/s, the bare client {alone:,.0f} requests/s: {rate / alone:.2f} of it"
    grown = max(grown, more)
    cost = (
        f"{free:,.0f} rollouts/s, the bare client {free_alone:,.0f}/s; with rows, verifier, files and retries"
    )
    return [
        Line(f"{name}, {n_rows:,} rows", n_rows / rate, "s", f"<= {1 / LEAST:g} x", rate >= LEAST * alone,
             n_rows / alone, note),
        Line(f"{name}, memory", grown, "MB", f"<= {MOST_MB} MB", grown <= MOST_MB, note="growth of RssAnon"),
        Line(f"{name}, a server that costs nothing", n_rows / free, "s",
             baseline=n_rows / free_alone, note=cost),
    ]  # fmt: skip


def budget(files: Files, runs: int) -> list[Line]:
    """Four rows for each that flies at a time; fewer where the files are small."""
    return lines(files.folder, max(200, min(4 * CONCURRENCY, files.size // 250_000)), runs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        results = lines(Path(folder), options.rows, options.runs)
    print(rendered(results), end="")
    sys.exit(0 if all(line.met is not False for line in results) else 1)


if __name__ == "__main__":
    main()
