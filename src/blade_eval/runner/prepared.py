"""Find what the record of a dataset says of its rows: whether all are there, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blade.errors import Unreadable
from blade_eval.config import Dataset
from blade_eval.config.resolve import DATASET_TYPES
from blade_eval.prepare import place
from blade_eval.runner import manifest


@dataclass(frozen=True)
class Known:
    """A dataset's name, and whether its rows are all of the benchmark's; None where nobody said."""

    name: str | None
    complete: bool | None


def known(path: Path, entry: Dataset | None, notice: Callable[[str], None]) -> Known:
    """What is known of rows; those of a preparation that did not end are refused."""
    record = place.recorded(path)
    given = record.get("dataset")
    name = _named(entry) if entry is not None else given if isinstance(given, str) else None
    if record.get("state") == "preparing":
        raise Unreadable(
            f"{path} is being prepared, or its preparation was killed: nobody knows which rows are missing",
            "run `blade eval prepare` again, with the same --benchmark or --config",
            "rows-unfinished",
        )
    if record.get("state") != "prepared":
        return Known(name, None)
    if record.get("sha256") != manifest.sha256(path):
        notice(
            f"{path} is not as it was prepared: its sha256 is another than in {place.record_of(path).name}"
        )
        return Known(name, None)
    complete = record.get("complete")
    if complete is False:
        notice(
            f"the rows of {name or path} are not all of the benchmark's, or not from its pinned files"
            f" ({place.record_of(path).name}): the result is not comparable"
        )
    return Known(name, complete if isinstance(complete, bool) else None)


def _named(entry: Dataset) -> str:
    """The name of a dataset; one that says only what it is for, with whose it is."""
    if entry.name not in DATASET_TYPES or not entry.resources_server:
        return entry.name
    return f"{entry.resources_server} {entry.name}"
