"""Where the files of a run stand: their names derive from the path given to --output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blade.errors import UsageError

# /dev/stdout may lead to a file, but the names beside it are nobody's to take
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


@dataclass(frozen=True)
class Places:
    """The files of a run, named as NeMo Gym names them; the manifest is ours."""

    rollouts: Path
    materialized: Path
    failures: Path
    aggregate: Path
    manifest: Path


def beside(output: Path) -> Places:
    """The files of the run whose rollouts go to `output`."""

    def named(ending: str) -> Path:
        return output.with_name(output.stem + ending)

    return Places(
        output,
        named("_materialized_inputs.jsonl"),
        named("_failures.jsonl"),
        named("_aggregate_metrics.json"),
        named("_manifest.json"),
    )


def usable(places: Places) -> Places:
    """The places, if each is free or a file: lines are appended, locked, read again and brought to disk."""
    for path in (places.rollouts, places.materialized, places.failures, places.aggregate, places.manifest):
        if path.is_dir():
            raise UsageError(f"{path} is a folder", _hint(places.rollouts), "output-no-file")
        if (path.exists() and not path.is_file()) or path.absolute().parent in _DEVICES:
            raise UsageError(
                f"{path} is a device or a pipe, and a run keeps its rollouts in a file",
                "name a file with --output",
                "output-no-file",
            )
    return places


def named(given: str) -> Path:
    """The path of --output; a slash at its end means a folder, also one that is not there yet."""
    if given.endswith("/"):
        raise UsageError(f"{given} is a folder", _hint(Path(given)), "output-no-file")
    return Path(given)


def _hint(output: Path) -> str:
    return f"--output names the file of the rollouts, such as {output / 'rollouts.jsonl'}"
