"""Open a session: runs that are read and diagnosed once and can be asked many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from blade.errors import UsageError
from blade.formats import single_rows
from blade.model import Report, Trace
from blade.pipeline import stages
from blade.pipeline.load import Loaded
from blade.report.run_facts import Facts, facts
from blade.tables import cache
from blade.tables import index as store


class Session(msgspec.Struct, frozen=True):
    """Some runs, and everything that was concluded of each by itself."""

    loaded: tuple[Loaded, ...]
    report: Report
    threshold: float | None = None  # at which a row passes, where the user said so
    facts: Mapping[str, Facts] = msgspec.field(default_factory=dict)  # the same report, run by run

    def run(self, name: str | None = None) -> Loaded:
        """The run of this name; the only one where none is named."""
        chosen = [entry for entry in self.loaded if name in (None, entry.name)]
        names = ", ".join(entry.name for entry in self.loaded[:8])
        if not chosen:
            raise UsageError(f"there is no run named {name}", f"the runs are {names}", "no-such-run")
        if len(chosen) > 1:
            raise UsageError(f"{len(chosen)} runs were read", f"name one of {names}", "no-such-run")
        return chosen[0]

    def key(self, run: Loaded, task: str) -> str:
        """The key of a task that is named by its key or by its name."""
        rollouts = run.run.rollouts
        if task in rollouts.task_keys:
            return task
        if task in rollouts.task_names:
            return rollouts.task_keys[rollouts.task_names.index(task)]
        keys = rollouts.task_keys
        more = f" ... {keys[-1]}" if len(keys) > 3 else ""
        hint = f"its {len(keys)} tasks are {', '.join(keys[:3])}{more}"
        raise UsageError(f"{run.name} has no task {task}", hint, "unknown-task")

    def traces(self, run: Loaded, task: str) -> tuple[Trace, ...]:
        """All rows of a task with their steps, in the order of their repeats."""
        traces_of = [single_rows.traced(run.run, position) for position in single_rows.positions(run.run, task, None)]
        return tuple(sorted(traces_of, key=lambda trace: (trace.rollout.repeat, trace.rollout.line)))


def session(
    specs: Sequence[str], watcher: store.Watcher | None = None, threshold: float | None = None, command: str = ""
) -> Session:
    """The runs that `specs` name; a diagnosis that was made before of the same files is taken again."""
    watcher = watcher or store.Silent()
    loaded = stages.load(specs, watcher)
    key = depends_on(loaded, f"session {threshold}")
    source = Path(loaded[0].sources[0].path)
    packed = cache.kept(source, "report", key) if key else None
    if packed is not None:
        try:
            return _session(loaded, msgspec.msgpack.decode(packed, type=Report), threshold, command)
        except msgspec.DecodeError:
            pass  # written by other code, or torn: made again below
    report = stages.diagnose(loaded, command, threshold, watcher)
    if key:
        cache.keep(source, "report", key, msgspec.msgpack.encode(report, enc_hook=_plain))
    return _session(loaded, report, threshold, command)


def _session(loaded: Sequence[Loaded], report: Report, threshold: float | None, command: str) -> Session:
    report = replace(report, made_by={**report.made_by, "command": command})
    return Session(tuple(loaded), report, threshold, {entry.run.name: entry for entry in facts(report)})


def depends_on(loaded: Sequence[Loaded], *others: str) -> str | None:
    """What a conclusion on these runs depends on, as a key; None for what cannot be found again."""
    if any(source.path == "-" for entry in loaded for source in entry.sources):
        return None
    stamps = {path: stamp for entry in loaded for path, stamp in entry.stamps.items()}
    names = [entry.name for entry in loaded]
    notes = [note for entry in loaded for note in entry.notes]
    gaps = [f"{gap.what}: {gap.why}" for entry in loaded for gap in entry.gaps]
    return cache.key(stamps, *names, *notes, *gaps, *others)


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as those of Python; nothing else in a report needs help."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotImplementedError(f"a report holds a {type(value).__name__}")
