"""Turn the shards of a run into one run: rows in order, completeness, aggregate; no server is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from blade.errors import NothingToRead, Unreadable, UsageError
from blade_eval.aggregate import complete, entries, passing, replaced, shards
from blade_eval.aggregate.missing import Missing, missing
from blade_eval.aggregate.shards import FAILURES, INPUTS, Lines
from blade_eval.environment import Environment
from blade_eval.profile import files, joining, passes
from blade_eval.profile.entries import Entry, Rows
from blade_eval.profile.hook import Hook, again, stripped
from blade_eval.profile.joining import Duplicates
from blade_eval.profile.reading import Line, Seen
from blade_eval.profile.table import Ints, Keys, Table
from blade_eval.runner import places

EnvironmentOf = Callable[[str], Environment | None]  # of an agent's name
METRICS = "_aggregate_metrics.json"


@dataclass
class Merged:
    """What was read, what was found, and what was written."""

    shards: list[Path]
    told: Rows
    entries: list[Entry]
    completeness: list[complete.Whole]  # empty where no shard says what was expected
    missing: list[Missing] = field(default_factory=list)  # shards that were not given
    written: list[Path] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def scores(self, threshold: float = 1.0) -> list[passes.Score]:
        """pass@k and variance of each agent."""
        return passes.scores(self.told, threshold)


@dataclass
class _Read:
    """The lines of one kind of file, and their keys."""

    lines: Lines = field(default_factory=Lines)
    keys: Keys = field(default_factory=Keys)


def merged(
    globs: Sequence[str],
    output: Path,
    *,
    duplicates: Duplicates = "error",
    merge: bool = True,
    force: bool = False,
    hook: Hook | None = None,
    environment_of: EnvironmentOf | None = None,
) -> Merged:
    """Read shards, refuse what contradicts itself, then write: rollouts, inputs, failures, aggregate."""
    if output.suffix in (".gz", ".zst"):
        raise UsageError(f"{output} would not be packed", "give --output a name that ends in .jsonl", "usage")
    paths, skipped = shards.found(globs)
    beside = {
        ending: [found for path in paths if (found := shards.beside(path, ending))]
        for ending in (INPUTS, FAILURES)
    }
    if merge:
        _refuse_unusable(output, [*paths, *beside[INPUTS], *beside[FAILURES]], force)
    table, rollouts = Table(), Lines()
    for path in paths:
        _read_rollouts(path, table, rollouts)
    if not len(table.keys):
        raise NothingToRead(
            f"none of {len(paths)} shards holds a rollout", "check that the run has begun", "no-rollouts"
        )
    inputs, failures = _Read(keys=Keys(table.keys.agents)), _Read(keys=Keys(table.keys.agents))
    for path in beside[INPUTS]:
        _read_keys(path, inputs, needs_key=True)
    for path in beside[FAILURES]:
        _read_keys(path, failures, needs_key=False)
    asked, made = joining.owners(inputs.keys, table.keys)
    broke = joining.failed(inputs.keys, asked, failures.keys)
    kept = joining.settled(table.keys, made, rollouts.paths, duplicates, "rollout")
    expected = joining.settled(inputs.keys, asked, inputs.lines.paths, duplicates, "input")
    told = Rows(table, kept.rows, made, table.keys.agents.texts)
    added = [_of_environments(told, environment_of, paths)] if environment_of else []
    added += [_of_hook(hook, paths)] if hook else []
    done = Merged(paths, told, list(entries.by_agent(told, _both(added))), [], missing(paths))
    if len(inputs.keys):
        wholes = complete.counted(
            complete.Side(inputs.keys, expected.rows, asked),
            complete.Side(table.keys, kept.rows, made),
            complete.Side(failures.keys, _by_key(failures.keys), broke),
            np.frombuffer(table.masked, np.uint8),
            told.names,
            inputs.lines.paths,
        )
        done.completeness = [_with_missing(one, told, done.missing) for one in wholes]
    done.notices = [f"{path}: skipped, a sidecar and no shard" for path in skipped]
    for lines in (rollouts, inputs.lines, failures.lines):
        done.notices += lines.notices()
    done.notices += [*_unsaid(paths, environment_of), *_twice(kept, duplicates)]
    if merge and not force:
        replaced.refuse_loss(_targets(output), (rollouts, inputs.lines, failures.lines))
    _write(done, output, merge, (rollouts, kept.rows), (inputs, expected.rows), failures)
    for lines in (rollouts, inputs.lines, failures.lines):
        lines.close()
    return done


def _with_missing(whole: complete.Whole, told: Rows, absent: Sequence[Missing]) -> complete.Whole:
    """What is missing of the runs that the agent has a rollout of; without any it may be of each of them."""
    if not absent:
        return whole
    source = told.table.keys.source
    has = set(np.unique(source[told.agent == told.names.index(whole.agent)]).tolist())
    mine = tuple(str(one) for one in absent if not has or has & set(one.sources))
    return whole._replace(missing_shards=mine)


def _twice(kept: joining.Settled, duplicates: Duplicates) -> list[str]:
    told = []
    if kept.n_copies:
        told.append(f"{kept.n_copies:,} rollouts stand there again, word for word; kept once")
    if kept.n_overruled:
        told.append(
            f"{kept.n_overruled:,} rollouts contradict another of their key; the {duplicates} was kept"
        )
    return told


def _unsaid(paths: Sequence[Path], environment_of: EnvironmentOf | None) -> list[str]:
    """What the aggregate cannot say although a reader may think so."""
    without = [path for path in paths if not shards.beside(path, INPUTS)]
    told = []
    if 0 < len(without) < len(paths):
        more = f" and {len(without) - 1} more shards have" if len(without) > 1 else " has"
        told.append(f"{without[0]}{more} no {INPUTS} beside it: what was expected there is unknown")
    for path in paths:
        metrics = files.beside(path, METRICS)
        if environment_of is None and metrics.is_file() and b'"per_sample_aggregate"' in metrics.read_bytes():
            told.append(
                f"{metrics} has metrics of its environment (pass@k, majority@k), which are left out here: "
                "name the --resources-server, --benchmark or --config of the run"
            )
            break
    return told


def _both(added: Sequence[entries.Custom]) -> entries.Custom | None:
    def found(told: Rows) -> Mapping[str, Any]:
        return {name: value for custom in added for name, value in custom(told).items()}

    return found if added else None


def _of_environments(told: Rows, environment_of: EnvironmentOf, paths: Sequence[Path]) -> entries.Custom:
    environments = {code: environment_of(told.names[code]) for code in told.agents()}
    kept: dict[int, passing.Told] = {}
    if any(one is not None and one.scores is not None for one in environments.values()):
        for row, members in again(told, paths):
            environment = environments[int(told.agent[row])]
            if environment is not None and environment.scores is not None:
                kept[row] = passing.told(stripped(members), environment)

    def found(mine: Rows) -> Mapping[str, Any]:
        return passing.of_agent(mine, kept, environments[int(mine.agent[mine.rows[0]])])

    return found


def _of_hook(hook: Hook, paths: Sequence[Path]) -> entries.Custom:
    def found(told: Rows) -> Mapping[str, Any]:
        return next(iter(hook.by_agent(told, paths).values()), {})

    return found


def _targets(output: Path) -> tuple[Path, Path, Path]:
    """Where the rollouts, the inputs and the failures go."""
    return output, files.beside(output, INPUTS), files.beside(output, FAILURES)


def _refuse_unusable(output: Path, read: Sequence[Path], force: bool) -> None:
    places.usable(places.beside(output))
    same = {path.resolve() for path in _targets(output)} & {path.resolve() for path in read}
    if same and not force:
        raise UsageError(
            f"{min(same)} would be written and is itself read as part of a shard",
            "choose another --output, narrow the glob, or add --force to replace it",
            "output-is-input",
        )


def _read_rollouts(path: Path, table: Table, rollouts: Lines) -> None:
    def take(source: int, line: Line, seen: Seen) -> bool:
        result = files.result_of(path, line, seen)
        if result is not None:
            table.add(result, source, line.number, hash(line.data))
        return result is not None

    rollouts.read(path, take)


def _read_keys(path: Path, into: _Read, needs_key: bool) -> None:
    def take(source: int, line: Line, seen: Seen) -> bool:
        try:
            found = files.key_of(path, line, seen)
        except Unreadable:
            if needs_key:
                raise
            seen.bad.append((line.number, "a failure without indices"))
            return False
        if found is not None:
            into.keys.add(*found, source, line.number, hash(line.data))
        return found is not None

    into.lines.read(path, take)


def _by_key(keys: Keys) -> Ints:
    """All rows by task and repeat; attempts at the same rollout in the order they came."""
    return np.lexsort((np.arange(len(keys)), keys.repeat, keys.task))


def _write(
    done: Merged,
    output: Path,
    merge: bool,
    rollouts: tuple[Lines, Ints],
    inputs: tuple[_Read, Ints],
    failures: _Read,
) -> None:
    """Nothing is written before everything was read and found consistent."""
    if merge:
        _put(done, output, *rollouts)
        if inputs[0].lines.paths:
            _put(done, files.beside(output, INPUTS), inputs[0].lines, inputs[1])
        if failures.lines.paths:
            _put(done, files.beside(output, FAILURES), failures.lines, _by_key(failures.keys))
    path = files.beside(output, METRICS)
    with files.written(path) as file:
        file.write(entries.encoded(done.entries))
    done.written.append(path)


def _put(done: Merged, path: Path, lines: Lines, rows: Ints) -> None:
    with files.written(path) as file:
        file.writelines(lines.written(rows.tolist()))
    done.written.append(path)
