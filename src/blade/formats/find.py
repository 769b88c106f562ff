"""Find the runs that a user named: rollouts files in folders, globs and shards."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Any

from blade.errors import NothingToRead, Unreadable
from blade.formats import FORMATS, lines, row_decoder
from blade.formats.rollout_steps import parsed

_SUFFIX = re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst|\.zstd)?$", re.IGNORECASE)
_SIDECAR = re.compile(
    r"(_materialized_inputs|_failures|_reward_profiling|_prepare|_judgements)$|^rollout_verdicts$|\.capture$"
)
# A shard number: said in words, or with its total, or padded with zeros to four digits or more. Fewer digits
# may count runs, and to take two runs for one is worse than to take one for two.
_SHARD = re.compile(
    r"(?:^|[-_.])(?:shard|part|chunk|rank|worker|slice|split)[-_.]?\d+(?:[-_]?of[-_]?\d+)?$"
    r"|[-_.](?:\d+[-_]of[-_]\d+|0\d{3,})$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-_.](\d{4,})$")
_SNIFF_ROWS, _SNIFF_BLOCKS = 20, 8  # how far we look for a first rollout before a file is passed over

Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """A run to be read: its name and its rollouts files."""

    name: str
    paths: tuple[Path, ...]
    named: bool = False  # the user gave the name


def runs(specs: Sequence[str], notice: Notice) -> list[Found]:
    """The runs that `specs` name: files, folders, globs of shards, `NAME=PATH`, or `-`."""
    ranked: list[tuple[int, Found]] = []  # with the place of what named it
    loose: list[tuple[int, Path]] = []  # files given one by one: shards of one run belong together
    for place, spec in enumerate(specs):
        head, equals, rest = spec.partition("=")
        is_named = equals and head and "/" not in head and not os.path.lexists(spec)
        name, path = (head, rest) if is_named else (None, spec)
        paths = [] if path == "-" else _files(path, notice)
        if path == "-":
            ranked.append((place, Found(name or "stdin", (Path("-"),), name is not None)))
        elif name is not None:  # of a run, or before the own names of the runs of a folder
            groups = [Found(name, tuple(paths))] if _is_glob(path) else _with_unique_names(_grouped(paths))
            names = [name] if len(groups) == 1 else [f"{name}/{run.name}" for run in groups]
            ranked += [(place, Found(own, run.paths, True)) for own, run in zip(names, groups, strict=True)]
        # names that differ in more than numbers are no shards of one run
        elif _is_glob(path) and len({re.sub(r"\d+", "", stem(path)) for path in paths}) == 1:
            shared = os.path.commonprefix([shard_stem(path) for path in paths])  # noqa: RUF071 - letters are meant
            shared = shared.rstrip("-_.0123456789") or paths[0].absolute().parent.name or "rollouts"
            ranked.append((place, Found(shared if len(paths) > 1 else stem(paths[0]), tuple(paths))))
        else:
            loose += [(place, path) for path in paths]
    first = {path: place for place, path in reversed(loose)}
    for run in _grouped(_once([path for _, path in loose], notice)):
        ranked.append((min(first[path] for path in run.paths), run))
    ranked.sort(key=lambda entry: entry[0])  # in the order in which they were given: the first is a baseline
    return _with_unique_names([run for _, run in ranked if run.paths])


def stem(path: Path) -> str:
    """The name of a rollouts file without its endings."""
    return _SUFFIX.sub("", path.name) or path.name


def _is_glob(path: str) -> bool:
    return any(mark in path for mark in "*?[") and not os.path.lexists(path)


def _files(spec: str, notice: Notice) -> list[Path]:
    """The rollouts files behind one argument."""
    if _is_glob(spec):
        matched = map(Path, sorted(glob.glob(spec, recursive=True)))
        paths = [path for path in matched if path.is_file() and _may_be_rollouts(path)]
        if not paths:
            hint = "check the pattern; quote it for the shell"
            raise NothingToRead(f"no rollouts file matches {spec}", hint, "no-such-path")
        return _once(paths, notice)
    if not spec:
        raise NothingToRead("an empty path names nothing", "give a rollouts file or a folder", "no-such-path")
    path = Path(spec).expanduser()
    try:
        if path.is_dir():
            return _in_folder(path, notice)
        if not path.exists():
            hint = "give a rollouts file, a folder or a glob"
            raise NothingToRead(f"{spec} does not exist", hint, "no-such-path")
        if not path.is_file():
            hint = "pipe it in: COMMAND | blade diagnose -"
            raise Unreadable(f"{spec} is not a regular file", hint, "unreadable-file")
        if path.stat().st_size == 0:
            raise NothingToRead(f"{spec} is empty", "a run writes one JSON line per rollout", "nothing-to-read")
        path.open("rb").close()  # whether we may is better said now than in the middle
    except OSError as error:
        raise lines.unreadable(path, error) from error
    return [path]


def _in_folder(folder: Path, notice: Notice) -> list[Path]:
    """Rollouts files below a folder, told from other JSONL by their first rows."""
    paths: list[Path] = []
    passed_over = 0
    for path in sorted(filter(_may_be_rollouts, _walk(folder, notice))):
        try:
            if not path.is_file():  # a link to nowhere, or a pipe that would wait for a writer
                notice(f"{path} is no regular file; passed over")
            elif reader_of(path) is not None:
                paths.append(path)
            else:
                passed_over += 1
        except (Unreadable, OSError) as error:
            reason = error if isinstance(error, Unreadable) else lines.unreadable(path, error)
            notice(f"{reason.message}; passed over")
    if passed_over:
        notice(f"passed over {passed_over} JSONL file(s) in {folder} that hold no rollouts")
    if not paths:
        hint = "a rollouts file is a .jsonl (or .jsonl.gz, .jsonl.zst) whose rows have a response or a reward"
        raise NothingToRead(f"no rollouts found in {folder}", hint, "no-rollouts")
    return _once(paths, notice)


def _walk(folder: Path, notice: Notice) -> Iterator[Path]:
    """Every file below a folder, each folder once however it is linked."""
    seen: set[tuple[int, int]] = set()

    def denied(error: OSError) -> None:
        notice(f"cannot read {error.filename}: {error.strerror}; passed over")

    for here, folders, files in os.walk(folder, followlinks=True, onerror=denied):
        status = os.stat(here)
        if (status.st_dev, status.st_ino) in seen:
            folders[:] = []
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "preprocessed_datasets")
        yield from (Path(here, name) for name in files)


def _may_be_rollouts(path: Path) -> bool:
    return bool(_SUFFIX.search(path.name)) and not _SIDECAR.search(stem(path))


def reader_of(path: Path) -> Any:
    """The module of FORMATS that reads a file, by its first readable rows; None where none of them is a rollout."""
    if str(path) == "-" or not path.is_file():  # can be read only once, and is not looked into
        return next(iter(FORMATS.values()))
    pairs = product(islice(_rows(path), _SNIFF_ROWS), FORMATS.values())
    return next((reader for row, reader in pairs if reader.matches(row)), None)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for block in islice(lines.blocks(path), _SNIFF_BLOCKS):
        for line in block.data[: block.size].split(b"\n"):
            body = line.removeprefix(b"\xef\xbb\xbf").lstrip()
            row = parsed(body)[0] if body.startswith(b"{") and row_decoder.refusal(body) is None else None
            if row is not None:
                yield row


def _once(paths: list[Path], notice: Notice) -> list[Path]:
    """Each file once, however often and by whatever link it was given."""
    seen: dict[str, Path] = {}
    for path in paths:
        if seen.setdefault(os.path.realpath(path), path) is not path:
            notice(f"{path} was given more than once; it is read once")
    return list(seen.values())


def shard_stem(path: Path) -> str:
    """The name of a rollouts file without its endings and its shard number."""
    return _SHARD.sub("", stem(path)) or path.absolute().parent.name


def _grouped(paths: list[Path]) -> list[Found]:
    """One run per file, except that files whose names differ only in a shard number are one."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        groups.setdefault((path.parent, shard_stem(path)), []).append(path)
    for path in paths:  # the shards after the last one that needs a leading zero
        number = _NUMBER.search(stem(path))
        first = groups.get((path.parent, stem(path)[: number.start()])) if number else None
        number_of_first = _NUMBER.search(stem(first[0])) if first else None
        is_same_length = number and number_of_first and len(number_of_first[1]) == len(number[1])
        if first and is_same_length and stem(path) not in map(stem, first):
            del groups[path.parent, stem(path)]
            first.append(path)
    return [
        Found(name if len(members) > 1 else stem(members[0]), tuple(sorted(members)))
        for (_, name), members in groups.items()
    ]


def _with_unique_names(runs: list[Found]) -> list[Found]:
    """Names that tell the runs apart, by as many parent folders as that takes."""
    for depth in range(1, 8):
        counts = Counter(run.name for run in runs)
        if len(counts) == len(runs):
            return runs
        for place, run in enumerate(runs):
            if counts[run.name] > 1 and not run.named:
                name = shard_stem(run.paths[0]) if len(run.paths) > 1 else stem(run.paths[0])
                name = "/".join((*run.paths[0].absolute().parent.parts[-depth:], name))
                runs[place] = replace(run, name=name)
    return [replace(run, name=f"{run.name}#{number}") for number, run in enumerate(runs, 1)]
