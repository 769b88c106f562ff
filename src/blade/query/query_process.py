"""Run foreign queries in a process of their own, under limits that the kernel enforces."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from blade.errors import UsageError
from blade.query.measures import Answer, measure_of
from blade.query.query_ground import CONSTANT, Damaged, Files, Ground, Table, limits, opened, unknown

SECONDS = 30.0  # for all queries of one call
MEMORY_MB = 2_000
MAX_ROWS = 200_000  # of one result
STOPPED = "the query was stopped"
MAX_CHILDREN = 3  # a query that ends its process takes those behind it with it: they are asked once more


class Job(msgspec.Struct, frozen=True):
    """Queries, and where their tables lie."""

    queries: tuple[str, ...]
    files: tuple[Files, ...]
    seconds: float = SECONDS
    memory_mb: int = MEMORY_MB


class Outcome(msgspec.Struct, frozen=True):
    """What became of one query: answers, a table, or why there is neither."""

    answers: tuple[Answer, ...] | None = None
    columns: tuple[str, ...] | None = None
    types: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    is_cut: bool = False
    by: str | None = None  # the column that answers are grouped by
    error: str | None = None
    hint: str = ""
    notes: tuple[str, ...] = ()  # what the query cannot see: names no row has, texts that are cut
    is_damaged: bool = False  # the tables are not as they were written

    def table(self) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        """The answer as columns and rows, whatever its form."""
        if self.columns is not None:
            return self.columns, self.rows
        answers = self.answers or ()
        names = ("group", "value", "low", "high", "n", "unit", "method")[0 if self.by else 1 :]
        rows = tuple(tuple(getattr(answer, name) for name in names) for answer in answers)
        return tuple(self.by or name if name == "group" else name for name in names), rows


def run(job: Job) -> list[Outcome]:
    """The outcomes of some queries, in their order; all that were not reached fail alike."""
    child = subprocess.Popen(
        [sys.executable, "-m", "blade.query.query_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        reply, _ = child.communicate(msgspec.msgpack.encode(job), timeout=job.seconds + 10)
    except subprocess.TimeoutExpired:
        child.kill()
        reply, _ = child.communicate()
    outcomes: list[Outcome] = []
    while len(reply) >= 8 and len(reply) >= (end := 8 + int.from_bytes(reply[:8], "big")):
        outcomes.append(msgspec.msgpack.decode(reply[8:end], type=Outcome))
        reply = reply[end:]
    error = f"{STOPPED}: it took more than {job.seconds:g} seconds or {job.memory_mb:,} MB"
    why = Outcome(error=error, hint="narrow it, or raise --seconds or --memory")
    return outcomes + [why] * (len(job.queries) - len(outcomes))


STRING = re.compile(r"'(?:[^']|'')*'")
_TRACED = r"(?:steps|calls|texts|says)"
# Where these words are columns and no tables: `median(steps)`, `calls > 3`.
_COLUMN = re.compile(
    rf"\b(?!from\b|join\b|in\b)\w+\(\s*{_TRACED}\s*\)|\b{_TRACED}\s*(?=[<>=!]|is\b|between\b)", re.IGNORECASE
)


def needs_traces(query: str) -> bool:
    """Whether a query may read steps, calls or texts; in doubt it does."""
    return re.search(rf"\b{_TRACED}\b", _COLUMN.sub("", STRING.sub("''", query)), re.IGNORECASE) is not None


def ask(
    ground: Ground, queries: Sequence[str], seconds: float = SECONDS, memory_mb: int = MEMORY_MB
) -> list[Outcome]:
    """What foreign queries give; those of the engine are asked here, the others in a process of their own."""
    left = list(dict.fromkeys(query for query in queries if not is_ours(query)))
    with_traces, boxed = any(map(needs_traces, left)), dict[str, Outcome]()
    for _ in range(MAX_CHILDREN if left else 0):
        outcomes = run(Job(tuple(left), ground.files(with_traces), seconds, memory_mb))
        boxed |= dict(zip(left, outcomes, strict=True))
        if any(outcome.is_damaged for outcome in outcomes):
            ground.discard()
            continue
        stops = [n for n, outcome in enumerate(outcomes) if (outcome.error or "").startswith(STOPPED)]
        left = left[stops[0] + 1 :] if stops else []
        if not left:
            break
    return [_of_engine(ground, query) if is_ours(query) else boxed[query] for query in queries]


def _of_engine(ground: Ground, query: str) -> Outcome:
    try:
        answer = ground.ask(query)
    except UsageError as error:
        return Outcome(error=error.message, hint=error.hint)
    return Outcome(answers=tuple(answer)) if isinstance(answer, list) else Outcome(error="no value")


def is_ours(query: str) -> bool:
    """Whether the engine answers it: no SQL of the asker is run."""
    return query.lstrip().startswith("engine.")


def raised(outcome: Outcome) -> Outcome:
    """The outcome, unless the query failed."""
    if outcome.error is not None:
        raise UsageError(outcome.error, outcome.hint, "bad-query")
    return outcome


class Answers(Ground):
    """Ground whose foreign queries were asked in a process of their own; the engine is asked here."""

    def __init__(self, ground: Ground, queries: Iterable[str]) -> None:
        super().__init__(ground.runs, ground.files, ground.engine)
        foreign = [query for query in dict.fromkeys(queries) if not is_ours(query)]
        outcomes = ask(ground, foreign, SECONDS + 0.05 * len(foreign))
        self._ground, self._outcomes = ground, dict(zip(foreign, outcomes, strict=True))

    def ask(self, query: str) -> list[Answer] | Table:
        outcome = self._outcomes.get(query)
        if outcome is None:
            return self._ground.ask(query)
        if outcome.error is not None or CONSTANT in outcome.notes:
            raise UsageError(outcome.error or CONSTANT, outcome.hint, "bad-query")
        if outcome.answers is not None:
            return list(outcome.answers)
        decimals = {n for n, kind in enumerate(outcome.types) if kind.startswith("DECIMAL")}  # come as texts
        rows = [[float(c) if n in decimals and c else c for n, c in enumerate(row)] for row in outcome.rows]
        return Table(outcome.columns or (), outcome.types, tuple(map(tuple, rows)), outcome.is_cut)


def outcomes(job: Job) -> Iterator[Outcome]:
    """The outcome of each query of a job, in this process."""
    try:
        connection = opened(job.files, job.memory_mb)
    except Damaged as error:
        yield from (Outcome(error=str(error), is_damaged=True) for _ in job.queries)
        return
    ground = Ground(tuple(run.run for run in job.files), lambda _: job.files, connection=connection)
    for query in job.queries:
        try:
            yield _outcome(query, ground)
        except Damaged as error:
            yield Outcome(error=str(error), is_damaged=True)
        except UsageError as error:
            yield Outcome(error=error.message, hint=error.hint)
        except MemoryError:
            yield Outcome(error="the query needs more memory than it may have", hint="narrow it")


def _outcome(query: str, ground: Ground) -> Outcome:
    answer, connection, measure = ground.ask(query), ground.connection(True), measure_of(query)
    notes = unknown(query, connection) + limits(query, connection)
    if not isinstance(answer, Table):
        return Outcome(answers=tuple(answer), by=measure.by if measure else None, notes=notes)
    rows, is_cut = answer.rows[:MAX_ROWS], answer.is_cut or len(answer.rows) > MAX_ROWS
    return Outcome(columns=answer.columns, types=answer.types, rows=rows, is_cut=is_cut, notes=notes)


def main() -> None:
    """Read a job, write an outcome for each of its queries; what exceeds the limits ends this process."""
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Job)
    room = (job.memory_mb + 500) << 20  # beside the interpreter and its libraries
    resource.setrlimit(resource.RLIMIT_DATA, (room, room))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_REAL, job.seconds)  # its signal ends the process
    for outcome in outcomes(job):
        data = packed(outcome)
        sys.stdout.buffer.write(len(data).to_bytes(8, "big") + data)
        sys.stdout.buffer.flush()


def packed(outcome: Outcome) -> bytes:
    """An outcome as it travels: decimals as numbers, what has no form of its own as text."""
    return msgspec.msgpack.Encoder(decimal_format="number", enc_hook=str).encode(outcome)


if __name__ == "__main__":
    main()
