"""An index that was damaged is noticed and built anew."""

from __future__ import annotations

import json
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


@pytest.fixture(params=[None, "gz"], ids=["plain", "gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_run(tmp_path, n_tasks=6, sidecars=False, compress=request.param).path


def kept(path: Path, name: str) -> Path:
    """A file of the index."""
    (found,) = cache.folder_for(path).glob(f"{name}*")
    return found


def check_rebuilt(path: Path, expected: object) -> None:
    spy = Spy()
    assert told(opened(path, spy)) == expected
    assert spy.was_asked
    assert not strays(path)
    spy = Spy()
    assert told(opened(path, spy)) == expected
    assert not spy.was_asked


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def halved(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def lengthened(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\x00")


def zeroed(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def overwritten(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(file.stat().st_size))


def made_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def gone(file: Path) -> None:
    file.unlink()


DAMAGE = [emptied, halved, lengthened, zeroed, overwritten, gone]


@pytest.mark.parametrize("damage", [*DAMAGE, made_a_folder])
def test_a_damaged_part_is_built_anew(path: Path, damage: Callable[[Path], None]) -> None:
    expected = told(opened(path))
    damage(kept(path, "part-"))
    check_rebuilt(path, expected)


@pytest.mark.parametrize("damage", [emptied, halved, zeroed, overwritten, gone])
def test_a_damaged_manifest_is_built_anew(path: Path, damage: Callable[[Path], None]) -> None:
    expected = told(opened(path))
    damage(kept(path, "manifest"))
    check_rebuilt(path, expected)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"made_by": 1}', "[" * 100_000, '{"made_by":"\\ud800"}'])
def test_a_manifest_of_another_shape_is_built_anew(path: Path, text: str) -> None:
    expected = told(opened(path))
    kept(path, "manifest").write_text(text)
    assert task_rows.places(path, 0) is None
    check_rebuilt(path, expected)


def test_one_flipped_bit_of_a_part_is_noticed(path: Path) -> None:
    expected = told(opened(path))
    rng = random.Random(7)
    for _ in range(10):
        part = kept(path, "part-")
        data = bytearray(part.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        part.write_bytes(data)
        check_rebuilt(path, expected)


@pytest.mark.parametrize("damage", [emptied, halved, lengthened, zeroed, overwritten, gone])
def test_damaged_blocks_are_built_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = write_run(tmp_path, n_tasks=6, sidecars=False, compress="gz").path
    expected = told(opened(path))
    damage(kept(path, "blocks-"))
    check_rebuilt(path, expected)


def test_a_flipped_bit_of_a_block_is_not_shown_as_text(tmp_path: Path) -> None:
    path = write_run(tmp_path, n_tasks=6, sidecars=False, compress="gz").path
    opened(path)
    blocks = kept(path, "blocks-")
    data = bytearray(blocks.read_bytes())
    data[len(data) // 2] ^= 1
    blocks.write_bytes(data)
    with pytest.raises(Unreadable, match="is damaged") as error:
        opened(path).row_bytes(0)
    assert "doctor --clean" in error.value.hint


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_part_is_not_extended(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = write_run(tmp_path, n_tasks=6, sidecars=False).path
    opened(path)
    damage(kept(path, "part-"))
    with path.open("ab") as file:
        file.write(joined([make_row(99)]))
    spy = Spy()
    assert opened(path, spy).n_rows == 25
    assert spy.ranges == [(0, path.stat().st_size)]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", ["part-", "manifest"])
def test_the_quick_way_notices_damage_too(tmp_path: Path, blade: Blade, which: str, damage: Callable[[Path], None]) -> None:
    path = write_run(tmp_path, n_tasks=6, sidecars=False).path
    opened(path)
    expected = blade("show", path, "3/1")
    assert expected.code == 0
    damage(kept(path, which))
    assert blade("show", path, "3/1") == expected


def test_the_quick_way_does_not_show_a_wrong_place(tmp_path: Path, blade: Blade) -> None:
    path = write_run(tmp_path, n_tasks=6, sidecars=False).path
    opened(path)
    expected = blade("show", path, "3/1")
    part = kept(path, "part-")
    header, _, data = part.read_bytes().partition(b"\n")
    _, start, length = json.loads(header)["offset"]
    wrong = bytearray(data)
    for row in range(length // 8):
        wrong[start + 8 * row] ^= 3
    part.write_bytes(header + b"\n" + wrong)
    assert task_rows.places(path, 3) is None
    assert blade("show", path, "3/1") == expected
