"""Read NeMo Gym rollout files: ranges or streams of bytes in, parts of columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.formats import lines

if TYPE_CHECKING:
    from blade.model import Part


def matches(row: Mapping[str, Any]) -> bool:
    """Is this row a rollout: it holds a response, a reward or a repeat of a request."""
    if "rollout_infos" in row or "num_rollouts" in row:
        return False  # a line of `_reward_profiling.jsonl`
    if "responses_create_params" in row and "_ng_rollout_index" in row:
        return True
    return "response" in row or "reward" in row  # a request alone is a line of a dataset


def plain_parts(path: Path, start: int, end: int) -> Iterator[Part]:
    """The rows between two line starts of an uncompressed file."""
    from blade.formats import columns  # brings numpy, which a look at one rollout does without

    return columns.parts(lines.plain_blocks(path, start, end))


def stream_parts(path: Path, keep: Callable[[bytes, int], None]) -> Iterator[Part]:
    """All rows of a compressed file or of standard input; `keep` gets the lines as they come."""
    from blade.formats import columns

    def kept() -> Iterator[lines.Block]:
        for block in lines.stream_blocks(path):
            if block.size:
                keep(block.data[: block.size], block.offset)
            yield block

    return columns.parts(kept())
