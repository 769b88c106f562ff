"""Measure one budget a function: indexing, queries, diagnosis, comparison, and the wing that evaluates."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from blade import formats, measure, pipeline
from blade.formats import single_rows
from blade.pipeline import comparing, trace_reading
from blade.report import write
from blade.tables import index
from blade.tables.index import Silent
from tools import planted
from tools.bench import bench_measures, concurrent
from tools.bench.bench_files import Files, use_cache
from tools.bench.bench_measures import Line, against, below, told

PROFILE = (
    "from pathlib import Path; from blade_eval import profile; "
    "profile.profiled(Path({!r}), Path({!r})).write()"
)


def catalogue(files: Files, runs: int) -> list[Line]:
    """The list of benchmarks, from a fresh process."""
    cache, command = files.cache(), ["-m", "blade", "list", "benchmarks"]
    bench_measures.fresh(command, cache)
    took = bench_measures.medians([lambda: bench_measures.fresh(command, cache)], runs)[0]
    return [below("blade list benchmarks", took * 1000, "ms", 300)]


def profile(files: Files, runs: int) -> list[Line]:
    """The profile of light rows from a fresh process, against one `apply` for each task in another."""
    inputs, rollouts, n_rows = _light(files)
    cache, words = files.cache(), ["--inputs", str(inputs), "--rollouts", str(rollouts)]
    ours = partial(bench_measures.fresh, ["-m", "blade", "eval", "profile", *words], cache)
    slow = files.folder / "per_group.jsonl"
    theirs = partial(bench_measures.fresh, ["-m", "tools.bench.per_group", str(inputs), str(rollouts), str(slow)], cache)
    before = [bench_measures.seconds(ours) for _ in range(runs // 2 + 1)]
    reference = bench_measures.seconds(theirs)  # takes as long as all of ours: once, between them
    took = statistics.median(before + [bench_measures.seconds(ours) for _ in range(runs // 2)])
    _same(slow, rollouts.with_name("few_reward_profiling.jsonl"))
    peak = bench_measures.peak_mb(["-c", PROFILE.format(str(inputs), str(rollouts))], cache)
    return [
        below(f"eval profile of {n_rows:,} light rows", took, "s", 5, f"{peak:,.0f} MB at most"),
        against("eval profile : one apply a task", took, reference, 0.1, "the reference was taken once"),
    ]


def _light(files: Files) -> tuple[Path, Path, int]:
    """A hundred light rows for each megabyte of the usual size, and the inputs they were made from."""
    rollouts, inputs = files.folder / "few.jsonl", files.folder / "few_materialized_inputs.jsonl"
    n_rows = max(8, files.size // 10_000)
    planted.write_light(rollouts, n_rows)
    with rollouts.open("rb") as rows, inputs.open("wb") as out:
        for line in rows:
            row = json.loads(line)
            request = {name: value for name, value in row.items() if name not in ("response", "reward")}
            out.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
    return inputs, rollouts, n_rows


def _same(first: Path, other: Path) -> None:
    """Both ways must find the same statistics, or the comparison says nothing."""
    with first.open("rb") as left, other.open("rb") as right:
        for slow, quick in zip(left, right, strict=True):
            expected, results = json.loads(slow), json.loads(quick)
            if any(results.get(name) != value for name, value in expected.items()):
                raise RuntimeError(f"task {expected['_ng_task_index']} has other statistics in the two ways")


INDEX = "from pathlib import Path; from tools.bench.budgets import indexed; indexed(Path({!r}))"
# Times the full parse: what the columns alone may take, and half as much again for the tables beside them.
MOST = {kind: 1.5 * alone for kind, alone in {"mix": 1.1, "mcqa": 1.3, "agentic": 1.1, "tokids": 0.6}.items()}
MOST_DISK = 0.25  # of the source
MOST_DIAGNOSIS = 30  # times the two-process parse


def indexed(path: Path) -> int:
    """Index a file, or find its index; how many rows it has."""
    return index.open_index(path, formats.FORMATS["nemo_gym"], Silent()).n_rows


def index_kind(kind: str, files: Files, runs: int) -> list[Line]:
    """Index a file from nothing, against a full parse of it."""
    path = files.kind(kind)
    n_rows = bench_measures.newlines(path)  # which also brings the file into memory

    used: list[Path] = []

    def ours() -> None:
        used.append(files.cache())
        use_cache(used[-1])
        if indexed(path) != n_rows:
            raise RuntimeError(f"{path} has {n_rows} rows and the index another number")

    took, parse, scan = bench_measures.medians(
        [ours, lambda: bench_measures.parsed(path), lambda: bench_measures.newlines(path)], runs
    )
    mb = path.stat().st_size / 1e6
    note = f"{mb / took:,.0f} MB/s; full parse {mb / parse:,.0f} MB/s, newline scan {mb / scan:,.0f} MB/s"
    share = sum(file.stat().st_size for file in used[-1].rglob("*") if file.is_file()) / path.stat().st_size
    return [
        against(f"index {kind} : full parse", took, parse, MOST[kind], note),
        below(f"index {kind} on disk", 100 * share, "%", 100 * MOST_DISK, "of the source"),
    ]


def query(files: Files, runs: int) -> list[Line]:
    """One question of a million rollouts, put again and again, and in a fresh process."""
    from blade.pipeline.run_tables import ground_of
    from blade.query import query_process

    path, cache = files.light(), files.cache()
    use_cache(cache)
    question = "select count(*) from rollouts where reward > 0.5"
    loaded = pipeline.load([str(path)], Silent())
    ground = ground_of(loaded)
    first = bench_measures.seconds(lambda: ground.files(False))
    command = ["-m", "blade", "query", str(path), question]
    warm, fresh = bench_measures.medians(
        [lambda: query_process.raised(query_process.ask(ground, [question])[0]), lambda: bench_measures.fresh(command, cache)], runs
    )
    n_rows = len(loaded[0].run.rollouts.task)
    return [
        told("tables of light rows, first use", first, "s", f"{n_rows:,} rollouts; kept afterwards"),
        below("query, warm", warm, "s", 0.5),
        below("query, fresh process", fresh, "s", 1.5),
    ]


def digest(files: Files, runs: int) -> list[Line]:
    """sha256 of a source: once, and then from the cache."""
    path = files.kind("mix")
    use_cache(files.cache())
    first = bench_measures.seconds(lambda: index.sha256_of(path))
    again = bench_measures.medians([lambda: index.sha256_of(path)], runs)[0]
    return [
        told("sha256, first call", first, "s", "not part of the index time"),
        below("sha256, second call", again * 1000, "ms", 10),
    ]


def reopen(files: Files, runs: int) -> list[Line]:
    """The summary of a file whose index is there."""
    path, cache = files.kind("mix"), files.cache()
    counts, full = (["-m", "blade", "diagnose", str(path), *more] for more in (["--quick"], []))
    bench_measures.fresh(counts, cache)
    bench_measures.fresh(full, cache)
    took, reopened = bench_measures.medians(
        [lambda: bench_measures.fresh(counts, cache), lambda: bench_measures.fresh(full, cache)], runs
    )
    return [
        below("re-open and print the counts", took, "s", 0.5),
        below("re-open and print the diagnosis", reopened, "s", 0.5, "its summary is kept beside the index"),
    ]


def append(files: Files, runs: int) -> list[Line]:
    """Rows are appended to an indexed file, and counted again."""
    path, batches = files.growing(runs)
    cache, alone = files.cache(), files.folder / "batch.jsonl"
    command = ["-m", "blade", "diagnose", str(path), "--quick"]
    bench_measures.fresh(command, cache)
    again, fresh = [], []
    for batch in batches:
        with path.open("ab") as file:
            file.write(batch)
        alone.write_bytes(batch)
        use_cache(files.cache())
        fresh.append(bench_measures.seconds(lambda: indexed(alone)))
        again.append(bench_measures.seconds(lambda: bench_measures.fresh(command, cache)))
    took, new = statistics.median(again), statistics.median(fresh)
    limit = 0.5 + 2 * new
    note = f"{len(batches[0]) / 1e6:,.1f} MB, {new:.3f} s to index alone, so at most {limit:.3f} s"
    path.unlink()
    return [Line("append, count again", took, "s", "<= 0.5 s + 2 x new", took <= limit, note=note)]


def memory(files: Files, runs: int) -> list[Line]:
    """The most anonymous memory while indexing, over all processes."""
    lines = []
    for what, path in (("the large file", files.large()), ("light rows", files.light())):
        peak = bench_measures.peak_mb(["-c", INDEX.format(str(path))], files.cache())
        note = f"{path.stat().st_size / 1e6:,.0f} MB on disk"
        lines.append(below(f"memory, indexing {what}", peak, "MB", 500, note))
    return lines


def measures(files: Files, runs: int) -> list[Line]:
    """Scores, buckets, slices, funnel and health of many light rollouts."""
    path = files.light()
    use_cache(files.cache())
    indexed(path)
    taken = [_measured(path) for _ in range(runs)]
    took = {name: statistics.median(times[name] for times in taken) for name in taken[0]}
    load, report = took.pop("load"), took.pop("whole report")
    stages = ", ".join(f"{name} {value:.3f} s" for name, value in took.items())
    n_rows = f"{files.size // 1000:,}"
    return [
        told(f"open the columns of {n_rows} rollouts", load, "s", f"the whole report {report:.3f} s"),
        below(f"measures and buckets of {n_rows}", sum(took.values()), "s", 2, stages),
    ]


def _measured(path: Path) -> dict[str, float]:
    """The time each stage takes, the columns being read from the index where they are first needed."""
    begun = time.perf_counter()
    loaded = pipeline.load([str(path)], Silent())
    took = {"load": time.perf_counter() - begun}
    entry = loaded[0]
    rollouts, coverage, benchmark = entry.run.rollouts, entry.run.coverage, entry.benchmark
    begun = time.perf_counter()
    scoring = measure.scoring.scoring(rollouts, None)
    took["scoring"] = time.perf_counter() - begun
    stages: dict[str, Callable[[], object]] = {
        "outcomes": lambda: list(measure.outcome_rates.measures(entry.name, rollouts, coverage, scoring)),
        "buckets": lambda: measure.scoring.buckets(rollouts, scoring),
        "funnel": lambda: measure.funnel.funnel(rollouts, coverage, scoring, benchmark),
        "health": lambda: list(measure.health.health(rollouts, coverage, scoring, single_rows.quoter(entry.run))),
        "whole report": lambda: pipeline.summarise(loaded, "bench"),
    }
    return took | {name: bench_measures.seconds(stage) for name, stage in stages.items()}


def diagnosis(files: Files, runs: int) -> list[Line]:
    """Index, read every trace, conclude and write the report, against a full parse of the same file."""
    path = files.kind("mix")
    parse = bench_measures.medians([lambda: bench_measures.parsed(path)], runs)[0]
    use_cache(files.cache())
    clock = trace_reading.Clock()
    took = bench_measures.seconds(lambda: _diagnosed(path, files.folder / "report", clock))
    stages = ", ".join(
        f"{name} {value:.1f} s" for name, value in sorted(clock.seconds.items(), key=lambda x: -x[1])
    )
    peak = bench_measures.peak_mb(
        ["-m", "blade", "diagnose", str(path), "-o", str(files.folder / "again")], files.cache()
    )
    return [
        against("full diagnosis of mix : full parse", took, parse, MOST_DIAGNOSIS, stages),
        below("memory, full diagnosis of mix", peak, "MB", 1000),
    ]


def _diagnosed(path: Path, folder: Path, clock: trace_reading.Clock) -> None:
    loaded = clock.timed("index", lambda: pipeline.load([str(path)], Silent()))
    report = pipeline.diagnose(loaded, "bench", None, Silent(), clock)
    clock.timed("write the report", lambda: write(report, folder))


def comparison(files: Files, runs: int) -> list[Line]:
    """Two runs of the same tasks against each other, from their indexes."""
    pair, cache = [str(path) for path in files.light_pair()], files.cache()
    command = ["-m", "blade", "compare", "--quick", *pair]
    bench_measures.fresh(command, cache)
    took = bench_measures.medians([lambda: bench_measures.fresh(command, cache)], runs)[0]
    use_cache(cache)
    clock = trace_reading.Clock()
    loaded = clock.timed("open the columns", lambda: pipeline.load(pair, Silent()))
    clock.timed("compare", lambda: comparing.compare(loaded, "bench", quick=True))
    n_tasks = len(loaded[0].run.rollouts.task_keys)
    note = ", ".join(f"{name} {value:.2f} s" for name, value in clock.seconds.items())
    what = f"compare {n_tasks:,} tasks x 8 x 2 runs from indexes"
    return [
        below(what, sum(clock.seconds.values()), "s", 3, note),
        told("the same in a fresh process, printed", took, "s", "with the start of Python and all imports"),
    ]


def show(files: Files, runs: int) -> list[Line]:
    """One rollout of the large file on the terminal."""
    path, cache = files.large(), files.cache()
    bench_measures.fresh(["-c", INDEX.format(str(path))], cache)
    task = path.stat().st_size // 24_000 // 8 // 2
    command = ["-m", "blade", "show", str(path), f"{task}/0"]
    ways = [command, ["-c", "pass"], ["-c", "import click"]]
    took, bare, click = bench_measures.medians([partial(bench_measures.fresh, way, cache) for way in ways], runs)
    note = f"python -c pass {bare * 1000:.0f} ms, with import click {click * 1000:.0f} ms"
    return [below(f"one rollout of {path.stat().st_size / 1e6:,.0f} MB", took * 1000, "ms", 150, note)]


def usage(files: Files, runs: int) -> list[Line]:
    """The list of commands."""
    cache = files.cache()
    command = ["-m", "blade", "--help"]
    bench_measures.fresh(command, cache)
    took = bench_measures.medians([lambda: bench_measures.fresh(command, cache)], runs)[0]
    return [below("blade --help", took * 1000, "ms", 150)]


def _index_of(kind: str) -> Callable[[Files, int], list[Line]]:
    return lambda files, runs: index_kind(kind, files, runs)


BUDGETS: dict[str, Callable[[Files, int], list[Line]]] = {
    **{kind: _index_of(kind) for kind in MOST},
    "query": query,
    "sha256": digest,
    "reopen": reopen,
    "append": append,
    "memory": memory,
    "measures": measures,
    "diagnosis": diagnosis,
    "compare": comparison,
    "show": show,
    "help": usage,
    "catalogue": catalogue,
    "profile": profile,
    "concurrent": concurrent.budget,
}
