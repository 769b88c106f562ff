"""Any line at all: it is a row or it is skipped, and nothing else happens."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blade.formats import columns, lines, row_decoder
from blade.model import Part
from tests.builders import encode, joined, make_row

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([10**400, -(10**30), "\ud800", "NaN"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)
KEYS = (
    st.sampled_from([*row_decoder.KNOWN.values(), *row_decoder.UNREAD, "metadata", "metadata.a", "result", "trajectory", "question"])
    | st.text()
)
INNER = st.sampled_from(["output", "usage", "model", "error", "incomplete_details", "input", "tools", "temperature", "name", "hash"])
ROWS = st.dictionaries(KEYS, VALUES | st.dictionaries(INNER, VALUES), max_size=8)


def parts_of(data: bytes, folder: Path) -> list[Part]:
    path = folder / "any.jsonl"
    path.write_bytes(data)
    return list(columns.parts(lines.plain_blocks(path, 0, len(data))))


def assert_sound(found: Iterable[Part], n_lines: int) -> None:
    """Every column has as many entries as there are rows, and every line is accounted for."""
    n_rows = n_skipped = 0
    for part in found:
        n_rows, n_skipped = n_rows + part.n_rows, n_skipped + part.n_skipped
        assert {len(column) for name, column in part.columns.items() if not name.startswith("c.")} <= {part.n_rows}
    assert n_rows + n_skipped == n_lines


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROWS, min_size=1, max_size=5))
def test_any_object_is_a_row(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    found = parts_of(joined(map(json.dumps, rows)), tmp_path)
    assert_sound(found, len(rows))
    assert sum(part.n_skipped for part in found) == 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk=st.lists(st.binary().map(lambda data: data.replace(b"\n", b"") + b"x"), max_size=6))
def test_any_bytes_are_accounted_for(tmp_path: Path, junk: list[bytes]) -> None:
    good = [make_row(0, 0), make_row(1, 0)]
    mixed = [*junk, *good]
    random.Random(len(junk)).shuffle(mixed)
    found = parts_of(joined(mixed), tmp_path)
    assert_sound(found, len(mixed))
    assert sum(part.n_rows for part in found) >= 2


@pytest.mark.parametrize("seed", range(6))
def test_damaged_rows(tmp_path: Path, seed: int) -> None:
    """A few bytes of a row changed: each line is read or skipped, as the standard library would have it."""
    rng = random.Random(seed)
    damaged = []
    for n in range(30):
        line = bytearray(encode(make_row(n, 0, metadata={"a": 1.5, "b": "é"}, options=[1, {"c": None}])))
        for _ in range(rng.randrange(1, 4)):
            line[rng.randrange(len(line))] = rng.choice(b'{}[]",:\\0123eE+-ntfu \xff\x00')
        damaged.append(bytes(line))
    found = parts_of(joined(damaged), tmp_path)
    assert_sound(found, len(damaged))
    bad = {line for part in found for line, _ in part.skipped}
    for number, line in enumerate(damaged):
        try:
            is_row = isinstance(json.loads(line.decode()), dict) and row_decoder.refusal(line) is None
        except ValueError:
            is_row = False
        assert is_row == (number not in bad), line


def test_what_fits_stands_as_it_stood() -> None:
    """One odd member costs that member alone, and the bytes of the others do not change."""
    line = b'{"reward": [1], "response": {"output": [1], "usage": {"input_tokens": "x", "output_tokens": 5}}, "options": [1,  2]}'
    row, reason = row_decoder.members(line)
    assert row is not None
    assert reason is None
    kept = row_decoder.coerced(row, {"options": False})
    assert b'"options":[1,  2]' in kept
    assert json.loads(kept) == {
        "response": {"output": [{"type": "other"}], "usage": {"output_tokens": 5}}, "reward": "", "options": [1, 2],
    }  # fmt: skip


def test_too_many_fields_leave_the_same_ones_in_any_order() -> None:
    rows = [{f"key {n} {k}": k for k in range(200)} for n in range(5)] + [{"task_id": "x", "error": None}]
    kept = set()
    for seed in range(5):
        fields: dict[str, bool] = {}
        for row in random.Random(seed).sample(rows, 6):
            row_decoder.learn(fields, row_decoder.members(json.dumps(row).encode())[0] or {})
        kept.add(frozenset(fields))
    (names,) = kept
    assert len(names) == row_decoder.MAX_FIELDS
    assert {"task_id", "error"} <= names
