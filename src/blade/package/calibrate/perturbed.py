"""Turn rollouts into others that a true report must not fit: flipped rewards, swapped models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

REWARDS = ("reward", "score")
_TASK = ("_ng_task_index", "_task_index", "task_index", "task_id", "task_name")
_STALE = ("aggregate_metrics", "agent_metrics", "repeat_level_metrics", "reward_profiling")


def flipped(rollouts: Sequence[Path], folder: Path) -> list[Path]:
    """Copies in which every second task or so has its rewards turned round."""
    return [_copied(path, folder / path.name, flip=True) for path in rollouts]


def swapped(rollouts: Sequence[Path], others: Sequence[Path], folder: Path) -> list[Path]:
    """The rollouts of other models under the names of these."""
    pairs = zip(rollouts, _cycled(others, len(rollouts)), strict=True)
    return [_copied(other, folder / mine.name, flip=False) for mine, other in pairs]


def _cycled(paths: Sequence[Path], n: int) -> list[Path]:
    return [paths[at % len(paths)] for at in range(n)]


def _copied(source: Path, target: Path, *, flip: bool) -> Path:
    """A copy with what lies beside it, but without the numbers that the evaluation reported of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    stem = source.name.removesuffix(".jsonl")
    for beside in sorted(source.parent.glob(f"{stem}_*")):
        if not any(part in beside.name for part in _STALE):
            shutil.copyfile(
                beside, target.parent / (target.name.removesuffix(".jsonl") + beside.name[len(stem) :])
            )
    if not flip:
        shutil.copyfile(source, target)
        return target
    with source.open("rb") as rows, target.open("wb") as out:
        out.writelines(_turned(rows))
    return target


def _turned(rows: Iterator[bytes] | Any) -> Iterator[bytes]:
    for line in rows:
        try:
            row = json.loads(line)
        except ValueError:
            yield line
            continue
        if isinstance(row, dict) and _is_chosen(row):
            row |= {name: _other(row[name]) for name in REWARDS if name in row}
        yield json.dumps(row).encode() + b"\n"


def _is_chosen(row: dict[str, Any]) -> bool:
    task = next((row[name] for name in _TASK if row.get(name) is not None), "")
    return sha256(str(task).encode()).digest()[0] % 2 == 0


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return type(value)(1) - value if 0 <= value <= 1 else -value
    return value
