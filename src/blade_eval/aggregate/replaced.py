"""Refuse to replace a file of rows unless all of them stand in the shards that are merged into it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blade.errors import Unreadable, UsageError
from blade_eval.aggregate.shards import Lines


def refuse_loss(targets: Sequence[Path], merged: Sequence[Lines]) -> None:
    """An error if one of the files is there and holds a line that is none of those merged into it."""
    for path, lines in zip(targets, merged, strict=True):
        _refuse(path, lines)


def _refuse(path: Path, lines: Lines) -> None:
    if not path.exists():
        return
    try:
        number = _first_other(path, lines)
    except OSError as error:
        raise Unreadable(
            f"cannot read {path}: {error.strerror or error}",
            "choose another --output, or add --force to replace it unread",
            "unreadable-file",
        ) from error
    if number is not None:
        raise UsageError(
            f"{path} is there already, and its line {number} is in none of the shards",
            "choose another --output, or add --force to replace it",
            "output-exists",
        )


def _first_other(path: Path, lines: Lines) -> int | None:
    """The number of the first line that would be lost. Of the lines only hashes are held."""
    known: set[int] = set()
    longest = 0
    for line in lines.written(range(len(lines))):
        known.add(hash(line))
        longest = max(longest, len(line))
    with path.open("rb") as file:
        number = 0
        # a file of another kind may be one line without end
        while line := file.readline(longest + 1):
            number += 1
            if line.strip() and hash(line.strip() + b"\n") not in known:
                return number
    return None
