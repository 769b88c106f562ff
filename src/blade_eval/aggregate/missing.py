"""Find the shards of a run that are not among those read, by the manifests beside these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from blade_eval.aggregate import shards
from blade_eval.runner import manifest

MANIFEST = "_manifest.json"
_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)
_NAMED = 20  # numbers that a sentence names


class Missing(NamedTuple):
    """The shards of one run that nobody gave."""

    shards: tuple[int, ...]  # counted from 1
    of: int
    beside: Path  # a shard of the same run that was read
    sources: tuple[int, ...]  # all that were read of it, as places among the paths
    untold: int  # files that were read and have no manifest: they may be what is missing

    def __str__(self) -> str:
        named = ", ".join(map(str, self.shards[:_NAMED]))
        more = f" and {len(self.shards) - _NAMED} more" if len(self.shards) > _NAMED else ""
        one = len(self.shards) == 1
        told = f"{'shard' if one else 'shards'} {named}{more} of {self.of} {'is' if one else 'are'} missing"
        if self.untold:
            files = "the file that has" if self.untold == 1 else f"one of the {self.untold} files that have"
            told += f", unless {'it is' if one else 'they are in'} {files} no manifest"
        return told

    def as_json(self) -> dict[str, Any]:
        return {
            "shards": list(self.shards),
            "of": self.of,
            "beside": str(self.beside),
            "files_without_manifest": self.untold,
        }


def missing(paths: Sequence[Path]) -> list[Missing]:
    """One for each run of which some shards were read and others were not."""
    runs: dict[tuple[bytes, int], dict[int, list[int]]] = {}
    untold = 0
    for source, path in enumerate(paths):
        identity = identity_of(path)
        if identity is None:
            untold += 1
        elif found := _shard(identity):
            (number, of), run = found
            runs.setdefault((run, of), {}).setdefault(number, []).append(source)
    told = []
    for (_, of), read in runs.items():
        absent = tuple(number for number in range(1, of + 1) if number not in read)
        if absent:
            sources = sorted(source for of_number in read.values() for source in of_number)
            told.append(Missing(absent, of, paths[sources[0]], tuple(sources), untold))
    return told


def identity_of(rollouts: Path) -> dict[str, Any] | None:
    """What the manifest beside rollouts says that the run is; None where there is none that can be read."""
    beside = shards.beside(rollouts, MANIFEST)
    try:
        identity = (manifest.read(beside) or {}).get("identity") if beside else None
    except RecursionError:  # brackets without end, which no run of ours writes
        return None
    return identity if isinstance(identity, dict) else None


def _shard(identity: dict[str, Any]) -> tuple[tuple[int, int], bytes] | None:
    """Which shard of how many, and what identifies the run; None for a run without shards."""
    flags = identity.get("flags")
    if not isinstance(flags, dict):
        return None
    given = flags.get("--shard")
    match = _SHARD.fullmatch(given) if isinstance(given, str) else None
    if match is None or int(match[1]) > int(match[2]):
        return None
    # where a shard was run, in servers or without, does not make it one of another run
    rest = {key: value for key, value in identity.items() if key not in ("flags", "is_served")}
    rest["flags"] = {key: value for key, value in flags.items() if key != "--shard"}
    return (int(match[1]), int(match[2])), msgspec.json.encode(rest, order="sorted")
