"""The command line as tests use it: run in this process, everything it says caught."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from blade import pipeline
from blade.model import Report
from blade.pipeline import trace_reading
from blade.query import query_process
from blade.query.query_ground import Files
from blade.tables import index
from blade.tables.index import Silent

ROOT = Path(__file__).resolve().parent.parent

# The collector walks all tests and all that they keep again and again: a third of the time to find them.
gc.set_threshold(100_000, 20, 20)

# The same examples every time, so that a change that fails is a change that broke something; `make fuzz` looks
# for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("exploring", deadline=None)
settings.load_profile("exploring" if os.environ.get("BLADE_FUZZ") else "repeatable")


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The report that `--json` printed."""
        assert self.code == 0, self.err
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def run(self) -> dict[str, Any]:
        """The only run of the report."""
        (run,) = self.report["runs"]
        return dict(run)

    @property
    def flags(self) -> set[str]:
        """What the report says of the health of its runs."""
        return {flag["flag"] for flag in self.report["health"]}

    @property
    def error(self) -> dict[str, Any]:
        """The error that `--json` printed; notes may stand before it."""
        found: dict[str, Any] = json.loads(self.err.splitlines()[-1])
        return found


Blade = Callable[..., Said]


@pytest.fixture(scope="session", autouse=True)
def _in_this_process() -> Iterator[None]:
    """Queries are run in the test's own process, once on the same tables, and traces are read there too.

    Starting processes and asking again was a third of the time.
    """
    known: dict[tuple[str, tuple[Files, ...]], query_process.Outcome] = {}
    decoder = msgspec.msgpack.Decoder(query_process.Outcome)

    def run(job: query_process.Job) -> list[query_process.Outcome]:
        new = tuple(query for query in dict.fromkeys(job.queries) if (query, job.files) not in known)
        found = query_process.outcomes(msgspec.structs.replace(job, queries=new)) if new else ()
        for query, outcome in zip(new, found, strict=True):
            known[query, job.files] = decoder.decode(query_process.packed(outcome))
        return [known[query, job.files] for query in job.queries]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_process, "run", run)
        patch.setattr(trace_reading, "_PARALLEL_ROWS", sys.maxsize)
        patch.setattr(index, "TICK_NS", 0)  # files of tests are young, and nobody waits for them
        yield


RUN, PARALLEL_ROWS, TICK_NS = query_process.run, trace_reading._PARALLEL_ROWS, index.TICK_NS


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the processes themselves: as users have them."""
    monkeypatch.setattr(query_process, "run", RUN)
    monkeypatch.setattr(trace_reading, "_PARALLEL_ROWS", PARALLEL_ROWS)


@pytest.fixture
def deny(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Have the system refuse to open a file."""
    opens = Path.open

    def denying(path: Path) -> None:
        def denied(self: Path, *arguments: Any, **options: Any) -> Any:
            if self == path:
                raise PermissionError(13, "Permission denied", str(self))
            return opens(self, *arguments, **options)

        monkeypatch.setattr(Path, "open", denied)

    return denying


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("BLADE_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="module")
def module_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder that lasts as long as a module, and what its tests keep."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("BLADE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def blade(cache: Path, capfd: pytest.CaptureFixture[str]) -> Blade:
    """Run `blade ARGUMENTS` in this process."""
    from blade.cli.main import main

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        code = stop.value.code
        assert isinstance(code, int)
        assert "Traceback" not in said.out + said.err
        return Said(code, said.out, said.err)

    return run


def environment(cache: Path) -> dict[str, str]:
    """What a `blade` of this tree needs as a process of its own."""
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "BLADE_CACHE_DIR": str(cache)}


@pytest.fixture
def blade_process(cache: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run `blade ARGUMENTS` as a process of its own."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-m", "blade", *map(str, arguments)]
        return subprocess.run(words, capture_output=True, env=environment(cache), check=False, timeout=300, **options)

    return run


@pytest.fixture
def diagnosed(blade: Blade) -> Blade:
    """What `blade diagnose --json ARGUMENTS` says, without its claims: they are most of its work.

    Where it can say nothing but an error, or is given an option, the command itself is asked.
    """
    from blade.errors import BladeError
    from blade.report import report_json

    def run(*arguments: object) -> Said:
        specs, watcher = [str(argument) for argument in arguments], Listener()
        if any(spec.startswith("-") for spec in specs):
            return blade("diagnose", "--json", *specs)
        try:
            loaded = pipeline.load(specs, watcher)
            report = pipeline.with_digests(pipeline.diagnose(loaded, "blade diagnose", watcher=watcher), loaded)
        except BladeError:
            return blade("diagnose", "--json", *specs)
        told = "".join(f"note: {note}\n" for note in watcher.notes)
        return Said(0, json.dumps(report_json.document(report), allow_nan=False), told)

    return run


def read(*specs: object) -> list[pipeline.Loaded]:
    """Runs, indexed and assembled."""
    return pipeline.load([str(spec) for spec in specs], Silent())


def report_on(*specs: object, threshold: float | None = None) -> Report:
    """What a diagnosis of runs concludes."""
    return pipeline.diagnose(read(*specs), "test", threshold)


class Listener(Silent):
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.done = self.total = 0

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        self.total += total

    def advance(self, done: int) -> None:
        self.done += done

    def notice(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def loaded(cache: Path) -> Callable[..., Any]:
    """Find, index and assemble runs; what was noticed on the way stands in `loaded.notes`."""
    def load(*specs: object) -> Any:
        watcher = Listener()
        load.notes = watcher.notes
        return pipeline.load([str(spec) for spec in specs], watcher)

    return load
