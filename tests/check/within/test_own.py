"""Our own report of a simulated run bears itself out, and one changed number of it does not."""

from __future__ import annotations

import pytest

from tests.check.conftest import Told
from tests.check.within.said import contradicted, supported


def test_our_own_report_bears_itself_out(told: Told) -> None:
    assert contradicted(told.text) == []
    kinds = {one.kind for one in supported(told.text)}
    assert {"percentage", "interval", "p", "sum", "total", "partition", "repeated", "ordering"} <= kinds
    assert len(supported(told.text)) > 150


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("92 scored + 2 failed", "92 scored + 3 failed"),
        ("| sometimes | 13 | 54.2% |", "| sometimes | 12 | 54.2% |"),
        ("| sometimes | 13 | 54.2% |", "| sometimes | 13 | 45.2% |"),
        ("| **Sum** |  | **32.99 points** |", "| **Sum** |  | **34.99 points** |"),
        ("29.5 to the model", "28.5 to the model"),
        ("13 in some and 2 in none", "13 in some and 3 in none"),
        ("3 of 92 rows (3.3%)", "8 of 92 rows (3.3%)"),
        ("**67.0% [52.9%, 78.6%] pass@1**", "**76.0% [52.9%, 78.6%] pass@1**"),
    ],
)
def test_one_changed_number_is_found(told: Told, true: str, false: str) -> None:
    assert true in told.text
    assert contradicted(told.text.replace(true, false, 1))
