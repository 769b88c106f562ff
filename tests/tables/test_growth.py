"""However a file grew, its index equals one that is built from nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.builders import encode, make_call, make_message, make_response, make_row
from tests.tables.watching import in_pieces, opened, strays, told, told_anew

pytestmark = pytest.mark.usefixtures("cache")

ROWS = st.builds(
    make_row,
    task=st.integers(0, 3) | st.sampled_from(["t-1", 2.0, None]),
    repeat=st.integers(0, 2),
    reward=st.sampled_from([0.0, 1.0, 1, True, None, "1", float("nan"), 10**400]),
    note=st.sampled_from(["", "é", "日本", "x" * 200, 7, None, [1, {"a": 2}], {"k": "v"}]),
    response=st.sampled_from([make_response(), make_response([make_call("c"), make_message("ok")]), None]),
)
LINES = ROWS.map(encode) | st.sampled_from(
    [b"", b"  ", b"{broken", b"[1]", b"null", b'{"reward":1}\r', b"\xff\xfe{", b"{}", b'{"reward":1,"reward":0}']
)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
# The first row has a full key and the second has none: what is kept of a row does not hang on its neighbours.
MIXED = [encode(make_row(0, 0, note="x" * 200)), encode(make_row(None, 1))]


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@example(lines=MIXED, cuts=[0.5], ends=True)
@example(lines=[b"", b"  "], cuts=[], ends=False)  # a block without a row
@given(lines=st.lists(LINES, min_size=1, max_size=8), cuts=st.lists(st.floats(0, 1), max_size=6), ends=st.booleans())
@pytest.mark.parametrize("many", [False, True], ids=["one range", "many ranges"])
def test_any_sequence_of_appends_gives_the_index_of_the_whole(
    lines: list[bytes], cuts: list[float], ends: bool, many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:
        in_pieces(monkeypatch, 300, 500, 1)
        monkeypatch.setattr("blade.formats.lines.BLOCK_BYTES", 256)
    content = b"\n".join(lines) + (b"\n" if ends else b"")
    path, other = tmp_path / "rollouts.jsonl", tmp_path / "other"
    path.unlink(missing_ok=True)
    path.touch()
    for cut in [*sorted(cuts), 1.0]:
        size = path.stat().st_size
        with path.open("ab") as file:
            file.write(content[size : max(size, round(cut * len(content)))])
        found = told(opened(path))
        shutil.rmtree(other, ignore_errors=True)
        assert found == told_anew(path, other, monkeypatch)
        assert not strays(path)
