"""Merge the shards of a run into one run: rows in order, completeness, aggregate; nothing lost in silence."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from blade.errors import NothingToRead, Unreadable, UsageError
from blade_eval import aggregate, profile
from blade_eval.aggregate import EnvironmentOf
from blade_eval.profile import Duplicates, row_table, scores
from blade_eval.profile.row_table import Keyed, Line, Row, Seen, Table, beside, sidecar
from blade_eval.profile.scores import Hook
from blade_eval.profile.statistics import Rollouts
from blade_eval.runner import run_files
from blade_eval.runner.run_files import FAILURES, INPUTS, MANIFEST, METRICS

if TYPE_CHECKING:
    import pandas as pd

_SIDECARS = tuple(
    f"{ending}{pack}"
    for ending in (INPUTS, FAILURES, "_reward_profiling.jsonl", "_judgements.jsonl", "rollout_verdicts.jsonl")
    for pack in ("", ".gz", ".zst")
)
_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)
_NAMED = 20  # numbers that a sentence names


@dataclass
class Whole:
    """What became of the rollouts that one agent was to make: expected = scored + failed + masked + lost."""

    agent: str
    expected: int
    scored: int
    failed: int  # not among the rollouts, but among the failures
    masked: int
    lost: int  # without any trace
    missing: list[tuple[int, int, str]]  # failed and lost: task, repeat, and the file that expected it
    unexpected: int  # rollouts that no input asked for
    missing_shards: list[str]  # whose inputs nobody gave: `expected` is without them

    @property
    def is_complete(self) -> bool:
        return not (self.failed or self.lost or self.unexpected or self.missing_shards)

    def as_json(self) -> dict[str, Any]:
        missing = [{"task": task, "repeat": repeat, "of": path} for task, repeat, path in self.missing]
        return {**vars(self), "missing": missing, "is_complete": self.is_complete}


class Missing(NamedTuple):
    """The shards of one run that nobody gave."""

    shards: tuple[int, ...]  # counted from 1
    of: int
    beside: Path  # a shard of the same run that was read
    sources: tuple[int, ...]  # all that were read of it, as places among the paths
    unnamed: int  # files that were read and have no manifest: they may be what is missing

    def __str__(self) -> str:
        names = ", ".join(map(str, self.shards[:_NAMED]))
        more = f" and {len(self.shards) - _NAMED} more" if len(self.shards) > _NAMED else ""
        is_one = len(self.shards) == 1
        text = f"{'shard' if is_one else 'shards'} {names}{more} of {self.of} {'is' if is_one else 'are'} missing"
        if self.unnamed:
            files = "the file that has" if self.unnamed == 1 else f"one of the {self.unnamed} files that have"
            text += f", unless {'it is' if is_one else 'they are in'} {files} no manifest"
        return text

    def as_json(self) -> dict[str, Any]:
        document = {"shards": list(self.shards), "of": self.of, "beside": str(self.beside)}
        return {**document, "files_without_manifest": self.unnamed}


@dataclass
class Merged:
    """What was read, what was found, and what was written."""

    shards: list[Path]
    rollouts: Rollouts
    completeness: list[Whole]  # empty where no shard says what was expected
    missing: list[Missing]  # shards that were not given
    written: list[Path] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def scores(self, threshold: float = 1.0) -> list[scores.Score]:
        return scores.scores(self.rollouts, threshold)


def merged(
    globs: Sequence[str], output: Path, *, duplicates: Duplicates = "error", merge: bool = True, force: bool = False,
    hook: Hook | None = None, environment_of: EnvironmentOf | None = None,
) -> Merged:  # fmt: skip
    """Read shards, refuse what contradicts itself, then write: rollouts, inputs, failures, aggregate."""
    if output.suffix in (".gz", ".zst"):
        raise UsageError(f"{output} would not be packed", "give --output a name that ends in .jsonl", "usage")
    paths, skipped = _shards(globs)
    with_inputs, with_failures = ([p for path in paths if (p := sidecar(path, ending))] for ending in (INPUTS, FAILURES))
    targets = output, beside(output, INPUTS), beside(output, FAILURES)
    if merge:
        run_files.usable(run_files.beside(output))
        read = {path.resolve() for path in (*paths, *with_inputs, *with_failures)}
        same = read & {path.resolve() for path in targets}
        if same and not force:
            what = f"{min(same)} would be written and is itself read as part of a shard"
            hint = "choose another --output, narrow the glob, or add --force to replace it"
            raise UsageError(what, hint, "output-is-input")
    table = Table()
    inputs, failures = Table(table.agents), Table(table.agents)
    for path in paths:
        table.read(path, row_table.result_of)
    if not len(table):
        what = f"none of {len(paths)} shards holds a rollout"
        raise NothingToRead(what, "check that the run has begun", "no-rollouts")
    for path in with_inputs:
        inputs.read(path, row_table.key_of)
    for path in with_failures:
        failures.read(path, _key_of_failure)
    asked_rows, rows, broken = inputs.frame(), table.frame(), failures.frame()
    profile.own(asked_rows, rows, table.agents)
    profile.own_failures(asked_rows, broken, table.agents)
    results = profile.settled(table, rows, duplicates, "rollout")
    expected = profile.settled(inputs, asked_rows, duplicates, "input")
    rollouts = Rollouts(table, results.rows)
    customs: list[aggregate.Custom] = []
    if environment_of:
        customs.append(aggregate.of_environments(rollouts, environment_of, table.row))
    if hook:
        customs.append(lambda mine: next(iter(hook.by_agent(mine).values()), {}))
    entries = list(aggregate.entries(rollouts, customs))
    done = Merged(paths, rollouts, [], missing(paths))
    if len(asked_rows):
        done.completeness = list(_completeness(expected.rows, rollouts, broken, inputs.paths, done.missing))
    done.notices = [f"{path}: skipped, a sidecar and no shard" for path in skipped]
    done.notices += [notice for part in (table, inputs, failures) for notice in part.notices()]
    done.notices += [*_left_out(paths, environment_of), *results.notices("rollouts", duplicates)]
    by_key = broken.iloc[np.lexsort((broken.index, broken["repeat"], broken["task"]))]  # attempts as they came
    parts = list(zip(targets, (table, inputs, failures), (results.rows, expected.rows, by_key), strict=True))
    for path, part, _ in parts if merge and not force else ():
        _refuse_loss(path, part)
    for path, part, order in parts if merge else ():
        if part.paths:
            with run_files.written(path) as file:
                file.writelines(part.line(row) + b"\n" for row in order.index.tolist())
            done.written.append(path)
    with run_files.written(beside(output, METRICS)) as file:
        file.write(aggregate.content(entries))
    done.written.append(beside(output, METRICS))
    for part in (table, inputs, failures):
        part.close()
    return done


def _shards(patterns: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """The shards that comma-separated globs name, each once; and sidecars among them, which are none."""
    parts = [part.strip() for text in patterns for part in text.split(",") if part.strip()]
    paths = [Path(name) for part in parts for name in sorted(glob.glob(part, recursive=True))]
    skipped = [path for path in paths if path.name.endswith(_SIDECARS)]
    shards: dict[Path, Path] = {}
    for path in paths:
        if path.is_file() and not path.name.endswith(_SIDECARS):
            shards.setdefault(path.resolve(), path)
    if not shards:
        what = f"No shards matched input_glob='{','.join(patterns)}'"
        hint = "quote the glob, so that the shell leaves it alone; sidecar files are no shards"
        raise NothingToRead(what, hint, "no-rollouts")
    return list(shards.values()), list(dict.fromkeys(skipped))


def _key_of_failure(line: Line, seen: Seen) -> Keyed | None:
    try:
        return row_table.key_of(line, seen)
    except Unreadable:
        seen.bad.append((line.number, "a failure without indices"))
        return None


def _refuse_loss(path: Path, part: Table) -> None:
    """An error if a file is there and holds a line that is none of those merged into it."""
    if not path.exists():
        return
    known: set[int] = set()  # of the lines only hashes are held
    longest = 1
    for line in map(part.line, range(len(part))):
        known.add(hash(line))
        longest = max(longest, len(line) + 1)
    hint = "choose another --output, or add --force to replace it"
    try:
        with path.open("rb") as file:
            # a file of another kind may be one line without end
            for number, line in enumerate(iter(lambda: file.readline(longest + 1), b""), 1):
                if line.strip() and hash(line.strip()) not in known:
                    what = f"{path} is there already, and its line {number} is in none of the shards"
                    raise UsageError(what, hint, "output-exists")
    except OSError as error:
        what = f"cannot read {path}: {error.strerror or error}"
        raise Unreadable(what, f"{hint} unread", "unreadable-file") from error


def _left_out(paths: Sequence[Path], environment_of: EnvironmentOf | None) -> Iterator[str]:
    """What the aggregate cannot say although a reader may think so."""
    without = [path for path in paths if not sidecar(path, INPUTS)]
    if 0 < len(without) < len(paths):
        more = f" and {len(without) - 1} more shards have" if len(without) > 1 else " has"
        yield f"{without[0]}{more} no {INPUTS} beside it: what was expected there is unknown"
    for metrics in (beside(path, METRICS) for path in paths if environment_of is None):
        if metrics.is_file() and b'"per_sample_aggregate"' in metrics.read_bytes():
            yield (
                f"{metrics} has metrics of its environment (pass@k, majority@k), which are left out here: "
                "name the --resources-server, --benchmark or --config of the run"
            )
            return


def _completeness(
    inputs: pd.DataFrame, rollouts: Rollouts, failures: pd.DataFrame, paths: Sequence[Path],
    absent: Sequence[Missing],
) -> Iterator[Whole]:
    """One for each agent that anything was expected or came of, by name."""
    rows, names = rollouts.rows, rollouts.names
    wanted, came, broke = profile.numbered([inputs, rows, failures], profile.KEY)
    has_come, has_failed = np.isin(wanted, came), np.isin(wanted, broke)
    is_masked = np.isin(wanted, came[rows["masked"] != 0])
    extra = ~np.isin(came, wanted)
    whose, maker = inputs["agent"].to_numpy(), rows["agent"].to_numpy()
    for code in sorted({*whose.tolist(), *maker.tolist()}, key=lambda code: names[code]):
        mine = whose == code
        gone = inputs[mine & ~has_come]
        keys = zip(gone["task"].tolist(), gone["repeat"].tolist(), gone["source"].tolist(), strict=True)
        # of the runs that the agent has a rollout of; without any it may be of each of them
        sources = set(rows["source"][maker == code].tolist())
        yield Whole(
            agent=names[code], expected=int(mine.sum()), scored=int((mine & has_come & ~is_masked).sum()),
            failed=int((mine & ~has_come & has_failed).sum()), masked=int((mine & is_masked).sum()),
            lost=int((mine & ~has_come & ~has_failed).sum()),
            missing=[(task, repeat, str(paths[source])) for task, repeat, source in keys],
            unexpected=int((extra & (maker == code)).sum()),
            missing_shards=[str(run) for run in absent if not sources or sources & set(run.sources)],
        )


def missing(paths: Sequence[Path]) -> list[Missing]:
    """One for each run of which some shards were read and others were not, by the manifests beside them."""
    runs: dict[tuple[bytes, int], dict[int, list[int]]] = {}
    identities = list(map(identity_of, paths))
    for source, identity in enumerate(identities):
        if identity and (shard := _shard(identity)):
            number, of, run = shard
            runs.setdefault((run, of), {}).setdefault(number, []).append(source)
    absent = []
    for (_, of), read in runs.items():
        numbers = tuple(number for number in range(1, of + 1) if number not in read)
        sources = tuple(sorted(source for of_number in read.values() for source in of_number))
        if numbers:
            absent.append(Missing(numbers, of, paths[sources[0]], sources, identities.count(None)))
    return absent


def identity_of(rollouts: Path) -> Row | None:
    """What the manifest beside rollouts says that the run is; None where there is none that can be read."""
    path = sidecar(rollouts, MANIFEST)
    identity = (run_files.read_manifest(path) or {}).get("identity") if path else None
    return identity if isinstance(identity, dict) else None


def _shard(identity: Row) -> tuple[int, int, bytes] | None:
    """Which shard of how many, and what identifies the run; None for a run without shards."""
    flags = identity.get("flags")
    flag = flags.get("--shard") if isinstance(flags, dict) else None
    match = _SHARD.fullmatch(flag) if isinstance(flag, str) else None
    if match is None or int(match[1]) > int(match[2]):
        return None
    # where a shard was run, in servers or without, does not make it one of another run
    rest = {key: value for key, value in identity.items() if key not in ("flags", "is_served")}
    rest["flags"] = {key: value for key, value in identity["flags"].items() if key != "--shard"}
    return int(match[1]), int(match[2]), msgspec.json.encode(rest, order="sorted")
