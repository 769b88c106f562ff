"""An index that was damaged is noticed and built anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from blade.errors import Unreadable
from blade.tables import cache, task_rows
from tests.builders import joined, make_row
from tests.conftest import Blade
from tests.tables.watching import Spy, opened, strays, told
from tools.planted import write_run

pytestmark = pytest.mark.usefixtures("cache")
Damage = Callable[[Path], object]


def make(folder: Path, compress: str | None = None) -> Path:
    return write_run(folder, n_tasks=6, sidecars=False, compress=compress).path


def kept(path: Path, name: str) -> Path:
    """A file of the index."""
    (found,) = cache.folder_for(path).glob(f"{name}*")
    return found


def check_rebuilt(path: Path, expected: object) -> None:
    for is_damaged in (True, False):
        spy = Spy()
        assert told(opened(path, spy)) == expected
        assert spy.was_asked == is_damaged
    assert not strays(path)


def flip(file: Path, seed: int) -> None:
    """Turn one bit over."""
    data, rng = bytearray(file.read_bytes()), random.Random(seed)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


FLIPS: dict[str, Damage] = {f"bit {seed} flipped": lambda file, seed=seed: flip(file, seed) for seed in range(3)}  # type: ignore[misc]
DAMAGE: dict[str, Damage] = {
    **FLIPS,
    "emptied": lambda file: file.write_bytes(b""),
    "halved": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "lengthened": lambda file: file.write_bytes(file.read_bytes() + b"\x00"),
    "zeroed": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "overwritten": lambda file: file.write_bytes(random.Random(1).randbytes(file.stat().st_size)),
    "gone": lambda file: file.unlink(),
    "made a folder": lambda file: (file.unlink(), file.mkdir()),
}


NOT_OF = {"part-": (), "manifest": ("made a folder",), "blocks-": ("made a folder", *FLIPS)}  # of a block a bit is checked when it is read


@pytest.mark.parametrize(("which", "damage"), [(which, name) for which, others in NOT_OF.items() for name in DAMAGE if name not in others])
def test_a_damaged_file_is_built_anew(tmp_path: Path, which: str, damage: str) -> None:
    path = make(tmp_path, "gz")
    expected = told(opened(path))
    DAMAGE[damage](kept(path, which))
    check_rebuilt(path, expected)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"made_by": 1}', "[" * 100_000, '{"made_by":"\\ud800"}'])
def test_a_manifest_of_another_shape_is_built_anew(tmp_path: Path, text: str) -> None:
    path = make(tmp_path)
    expected = told(opened(path))
    for content in (text.encode(), cache.sealed(text.encode())):
        kept(path, "manifest").write_bytes(content)
        assert task_rows.places(path, 0) is None
        check_rebuilt(path, expected)


def test_a_flipped_bit_of_a_block_is_not_shown_as_text(tmp_path: Path) -> None:
    path = make(tmp_path, "gz")
    opened(path)
    blocks = kept(path, "blocks-")
    data = bytearray(blocks.read_bytes())
    data[len(data) // 2] ^= 1
    blocks.write_bytes(data)
    with pytest.raises(Unreadable, match="is damaged") as error:
        opened(path).row_bytes(0)
    assert "doctor --clean" in error.value.hint


@pytest.mark.parametrize("damage", [name for name in DAMAGE if name != "made a folder"])
def test_a_damaged_part_is_neither_extended_nor_shown(tmp_path: Path, blade: Blade, damage: str) -> None:
    path = make(tmp_path)
    opened(path)
    expected = blade("show", path, "3/1")
    assert expected.code == 0
    for which in ("part-", "manifest"):
        DAMAGE[damage](kept(path, which))
        assert blade("show", path, "3/1") == expected
    DAMAGE[damage](kept(path, "part-"))
    with path.open("ab") as file:
        file.write(joined([make_row(99)]))
    spy = Spy()
    assert opened(path, spy).n_rows == 25
    assert spy.ranges == [(0, path.stat().st_size)]
