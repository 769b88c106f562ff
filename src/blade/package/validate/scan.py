"""Scan a rollouts file line by line for what a validation asks of it, whatever the lines hold."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from blade.package import files

# In the order in which they are preferred; the first that a file has is the one it is read by.
TASK_FIELDS = ("_ng_task_index", "_task_index", "task_id", "task_name", "task_index")
REPEAT_FIELDS = ("_ng_rollout_index", "_rollout_index", "rollout_index", "rollout_id")
REWARD_FIELDS = ("reward", "score")
MAX_LINE = 64 << 20  # bytes; a longer line is no row


@dataclass
class Scan:
    """What the lines of one rollouts file hold."""

    path: Path
    records: int = 0
    unparsed: int = 0
    first_unparsed: int | None = None
    no_object: int = 0  # lines that are JSON and no object
    first_no_object: int | None = None
    fields: Counter[str] = field(default_factory=Counter)
    rewards: int = 0  # rows with a number
    no_reward: int = 0  # rows without a reward, or with null
    odd_rewards: int = 0  # rows with a reward that is no number
    odd_reward: str = ""  # the first of them
    first_odd_reward: int | None = None
    unnamed: int = 0  # rows whose task id is null, empty or not there, though rows of the file have one
    first_unnamed: int | None = None
    tasks: Counter[str] = field(default_factory=Counter)
    content: str = ""  # a hash of the lines, whatever their order
    broken: str = ""  # why the file could not be read at all

    @property
    def task_field(self) -> str | None:
        return next((name for name in TASK_FIELDS if self.fields[name]), None)

    @property
    def has_reward(self) -> bool:
        return any(self.fields[name] for name in REWARD_FIELDS)

    @property
    def is_scored(self) -> bool:
        return self.rewards > 0

    @property
    def has_repeats_told_apart(self) -> bool:
        """Whether rows name their repeat, or each task has one row."""
        if any(self.fields[name] for name in REPEAT_FIELDS):
            return True
        return self.records > 0 and max((*self.tasks.values(), self.unnamed)) <= 1


def scan_file(path: Path) -> Scan:
    """Read a rollouts file once; the memory it takes is bounded by its longest line and its tasks."""
    result = Scan(path)
    total = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), 1):
                body = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if body:
                    total = (total + int.from_bytes(hashlib.sha256(body).digest(), "big")) % (1 << 256)
                    _line(result, body, number)
    except OSError as error:
        result.broken = f"cannot be read: {error.strerror or error}"
    result.content = f"{total:064x}" if result.records + result.unparsed + result.no_object else ""
    result.unnamed = result.records - sum(result.tasks.values()) if result.task_field else 0
    return result


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is too long its beginning alone."""
    while line := file.readline(MAX_LINE + 2):
        rest = line
        while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE + 2)
        yield line


def _line(result: Scan, body: bytes, number: int) -> None:
    try:
        if len(body) > MAX_LINE:
            raise ValueError("too long to be a row")
        row = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        result.unparsed += 1
        result.first_unparsed = result.first_unparsed or number
        return
    if not isinstance(row, dict):
        result.no_object += 1
        result.first_no_object = result.first_no_object or number
        return
    result.records += 1
    result.fields.update(row.keys())
    _reward(result, row, number)
    name = next((row[name] for name in TASK_FIELDS if name in row), None)
    if _is_name(name):
        result.tasks[str(name)] += 1
    else:
        result.first_unnamed = result.first_unnamed or number


def _reward(result: Scan, row: dict[str, Any], number: int) -> None:
    value = next((row[name] for name in REWARD_FIELDS if name in row), None)
    if value is None:
        result.no_reward += 1
    elif isinstance(value, int | float) and math.isfinite(value):
        result.rewards += 1
    else:
        result.odd_rewards += 1
        if result.first_odd_reward is None:
            result.first_odd_reward, result.odd_reward = number, files.compact(value, 40)


def _is_name(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and bool(value.strip()))
