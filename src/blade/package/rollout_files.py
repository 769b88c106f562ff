"""Copy the rollouts of a run into a package: one plain file, its row sidecars packed beside it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blade.errors import Unreadable

if TYPE_CHECKING:
    from blade.pipeline.load import Loaded

# Row sidecars are packed: tools that take every `rollouts/*.jsonl` for a run must not take them for one.
_PACKED = ("materialized_inputs", "failures", "reward_profiling")
_PLAIN = ("aggregate_metrics", "agent_metrics", "repeat_level_metrics")


def copied(run: Loaded, is_shared: bool, path: Path) -> list[Path]:
    """Write the rows of a run to `path`, its sidecars beside it; `is_shared`: its file holds other runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = [Path(source.path) for source in run.sources]
    if path.exists() and any(path.samefile(source) for source in sources):
        return [path]  # drafted anew from its own rollouts, which stay as they are
    agent = run.run.agent if is_shared else None
    with path.open("wb") as out:
        out.writelines(_rows(sources, agent))
    written = [path]
    base = path.name.removesuffix(".jsonl")
    for kind in (*_PACKED, *_PLAIN):
        paths = [
            Path(artifact.path) for artifact in run.artifacts if artifact.kind == kind and artifact.present
        ]
        if not paths:
            continue
        if kind in _PACKED:
            written.append(path.with_name(f"{base}_{kind}.jsonl.gz"))
            written[-1].write_bytes(gzip.compress(b"".join(_rows(paths, agent)), mtime=0))
        elif not is_shared and len(paths) == 1 and paths[0].suffix == ".json":
            written.append(path.with_name(f"{base}_{kind}.json"))
            shutil.copyfile(paths[0], written[-1])
    return written


def shared_files(loaded: Sequence[Loaded]) -> set[str]:
    """The names of runs whose file holds another run as well."""
    by_file: dict[str, list[str]] = {}
    for run in loaded:
        by_file.setdefault(run.sources[0].path, []).append(run.name)
    return {name for names in by_file.values() if len(names) > 1 for name in names}


def _rows(paths: Iterable[Path], agent: str | None) -> Iterator[bytes]:
    """Every line as it stands, with its newline; of one agent alone where others lie beside it."""
    from blade.formats import inflate

    for path in paths:
        rest = b""
        with path.open("rb") as file:
            for chunk in inflate.inflated(file, inflate.kind_of(file.peek(4))):
                if isinstance(chunk, str):
                    raise Unreadable(f"{path}: {chunk}", "repack the file", "unreadable-file")
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line + b"\n" for line in lines if _is_of(line, agent))
        if rest and _is_of(rest, agent):
            yield rest + b"\n"


def _is_of(line: bytes, agent: str | None) -> bool:
    if agent is None:
        return True
    try:
        row = json.loads(line)
        return bool(row["agent_ref"]["name"] == agent)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
