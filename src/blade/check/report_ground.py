"""Load the runs that a report is about: ground for its queries, rows for its quotations and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from msgspec.structs import replace

from blade.formats import single_rows
from blade.model import Judgement, Report, Trace
from blade.pipeline import comparing, stages
from blade.pipeline.load import Loaded
from blade.pipeline.run_tables import ground_of
from blade.pipeline.stages import load
from blade.query import engine
from blade.query.query_ground import Ground
from blade.tables.database import quoted
from blade.tables.index import Watcher

MAX_VALUES = 60  # distinct values of a column that are looked at
_OPTION = re.compile(
    r"(?<= )(?:(--(?:baseline|by))[= ]('[^']*'|\S+)|(--(?:pass-threshold|margin))[= ](\d+\.?\d*|\.\d+)"
    r"|(--(?:series|quick))())(?= |$)"
)


class Rows:
    """The rows of loaded runs, opened as they are asked for."""

    def __init__(self, loaded: Sequence[Loaded]) -> None:
        self._runs = {entry.name: entry.run for entry in loaded}
        self.runs = tuple(self._runs)
        self.notes = " ".join(note for entry in loaded for note in entry.notes)
        self.ambiguous: set[str] = set()  # the key of one task and the name of another
        self._codes: dict[tuple[str, str], set[int]] = {}  # by run and by key or name
        self._trace = lru_cache(maxsize=2_000)(lambda run, place: single_rows.traced(self._runs[run], place))
        for name, run in self._runs.items():
            keys = {key: code for code, key in enumerate(run.rollouts.task_keys)}
            for word, code in (*keys.items(), *zip(run.rollouts.task_names, keys.values(), strict=False)):
                self._codes.setdefault((name, word), set()).add(code)
                self.ambiguous |= {word} if keys.get(word, code) != code else set()
        self.names = frozenset(word for _, word in self._codes if word)

    def keys(self, task: str) -> tuple[str, ...]:
        """The keys of the tasks that go by a name."""
        codes = [(run, code) for run in self.runs for code in self._codes.get((run, task), ())]
        return tuple(sorted({self._runs[run].rollouts.task_keys[code] for run, code in codes}))

    def repeats(self, task: str, runs: Iterable[str]) -> set[int]:
        """The repeats of a task: those with a row, and those that were expected and left none."""
        numbers: set[int] = set()
        for run in runs:
            rollouts, coverage = self._runs[run].rollouts, self._runs[run].coverage
            for code in self._codes.get((run, task), ()):
                numbers |= set(rollouts.repeat[rollouts.task == code].tolist())
                lost = (*coverage.failed_keys, *coverage.lost_keys)
                numbers |= {repeat for key, repeat in lost if key == rollouts.task_keys[code]}
        return numbers

    def failures(self, task: str, repeat: int | None) -> list[str]:
        """What the failures file calls the failure of a rollout without a row."""
        lost_keys = [(run.coverage.failed_keys, run.coverage.failed_classes) for run in self._runs.values()]
        return [name for pair in lost_keys for key, name in zip(*pair, strict=False) if key == (task, repeat)]

    def at(self, run: str, task: str, repeat: int | None = None) -> list[Trace]:
        """The rollouts of a task, or of one of its repeats; a task goes by its key or its name."""
        rollouts, traces = self._runs[run].rollouts, list[Trace]()
        for code in sorted(self._codes.get((run, task), ())):
            is_meant = rollouts.task == code
            if repeat is not None:
                is_meant &= rollouts.repeat == repeat
            traces += [self._trace(run, position) for position in is_meant.nonzero()[0].tolist()]
        return traces

    def each(self, run: str) -> Iterator[Trace]:
        """Every rollout of a run, one after the other; none is kept."""
        rows = self._runs[run]
        return (single_rows.traced(rows, place) for place in range(len(rows.rollouts.row_id)))


class World:
    """The runs that a report is about."""

    def __init__(self, ground: Ground, rows: Rows) -> None:
        self.ground, self.rows = ground, rows
        self.page: Callable[[], str] = str  # the page that the engine writes of these rows
        self.values = cache(self._values)
        self.columns = cache(lambda: {name: kind for name, kind, *_ in self.select("describe rollouts")})

    def select(self, sql: str, with_traces: bool = False) -> list[tuple[Any, ...]]:
        """What a query of our own gives."""
        return self.ground.connection(with_traces).execute(sql).fetchall()

    def _values(self, column: str) -> tuple[str, ...]:
        """The distinct values of a column, none if there are many; `tool` is that of the calls."""
        table = "calls" if column == "tool" else "rollouts"
        sql = f"select distinct cast({quoted(column)} as varchar) from {table} limit {MAX_VALUES + 1}"
        is_known = column in self.columns() or column == "tool"
        rows = self.select(sql, table == "calls") if is_known else []
        return tuple(sorted(row[0] for row in rows if row[0])) if len(rows) <= MAX_VALUES else ()


def world_of(
    loaded: Sequence[Loaded], threshold: float | None = None, watcher: Watcher | None = None,
    report: Report | None = None,
) -> World:  # fmt: skip
    """The world of loaded runs; `report` answers what is asked of the engine."""
    return World(ground_of(loaded, threshold, watcher, report), Rows(loaded))


def world_for(
    text: str, specs: Sequence[str], watcher: Watcher, threshold: float | None = None,
    baseline: str | None = None,
) -> World:  # fmt: skip
    """The world of a report, with the run names and the options that it records of its own making."""
    recorded = re.search(r'^Made by BLADE [^\n]*?command `+ ?(.+?) ?`+[.,]|"command": ?"(blade .*?)(?<!\\)"', text, re.M)
    command = (recorded[1] or recorded[2]).replace("\\|", "|") if recorded else ""
    # of a recorded command only what changes what a report says
    options = {a or b or c: (x or y).strip("'") for a, x, b, y, c, _ in _OPTION.findall(command)}
    is_comparison = command.startswith("blade compare")
    loaded = _named(specs, text, watcher)
    if threshold is None and "--pass-threshold" in options:
        threshold = float(options["--pass-threshold"])
    if baseline is None and options.get("--baseline") in [entry.name for entry in loaded]:
        baseline = options["--baseline"]
    loaded = comparing.split_runs(loaded, options["--by"]) if "--by" in options else loaded
    loaded = stages.baseline_first(loaded, baseline)
    loaded = _then(text, loaded, watcher) if command else loaded

    @cache
    def report() -> Report:  # made when the text first cites what the engine concludes
        if not is_comparison:
            return stages.diagnose(loaded, command, threshold, watcher)
        return comparing.compare(
            loaded, command, threshold=threshold, margin=float(options.get("--margin", comparing.MARGIN)),
            ordered="--series" in options, quick="--quick" in options, watcher=watcher,
        )  # fmt: skip

    world = world_of(loaded, threshold, watcher)
    world.ground.engine = lambda query: engine.evaluate(query, report())
    if "<!--blade claims" in text:
        from blade import report as printer

        world.page = lambda: printer.markdown_text(report(), is_comparison)
    return world


def _then(text: str, loaded: Sequence[Loaded], watcher: Watcher) -> list[Loaded]:
    """The runs as our own report knew them: without judgements that were given since it was made."""
    runs, since, lines = list[Loaded](), 0, text.split("\n")

    def is_listed(judgement: Judgement) -> bool:
        cells = [f"`{cell}`" for cell in (f"{judgement.task}/{judgement.repeat}", judgement.by, judgement.at[:10])]
        return any(f'"{judgement.id}"' in line or all(cell in line for cell in cells) for line in lines)

    for run in loaded:
        known = tuple(filter(is_listed, run.judgements))
        standing = run.judgements if len(known) >= 40 else known  # of more a page does not list all
        since += len(run.judgements) - len(standing)
        artifacts = tuple(file for file in run.artifacts if standing or file.kind != "judgements")
        runs.append(replace(run, judgements=standing, artifacts=artifacts))
    if since:
        watcher.notice(f"{since} judgement(s) were given since the report was made; they are left out here")
    return runs


def _named(specs: Sequence[str], text: str, watcher: Watcher) -> list[Loaded]:
    """The runs, under the names that the citations of a report give them."""
    loaded = load(specs, watcher)
    known, cited = [entry.name for entry in loaded], re.findall(r"\brun\s*=\s*\\?'([^'/=:\\]+)'", text)
    others = [name for name in dict.fromkeys(cited) if name not in known]
    if not others or len(specs) != len(loaded) or any("=" in spec or spec == "-" for spec in specs):
        return loaded
    alike = [[name for name in others if entry.startswith(name)] for entry in known]
    is_ours = "<!--blade claims" in text or '"blade.report/' in text  # then all its queries name its runs
    alike = [others] if is_ours and len(others) == len(known) == 1 else alike
    specified = [f"{fits[0]}={spec}" if len(fits) == 1 else spec for fits, spec in zip(alike, specs, strict=True)]
    return load(specified, watcher) if specified != list(specs) else loaded
