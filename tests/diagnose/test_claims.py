"""Every run of a table shows what it was made to show, or nothing: the claims that take one line each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.diagnose.diagnosed import Diagnose, each

NAMES = "behaviour cut delivered environment identity kinds knowledge ran verdicts verifier".split()
RUNGS = {name: import_module(f"tests.diagnose.test_{name}") for name in NAMES}


@each({f"{rung}: {name}": case for rung, module in RUNGS.items() for name, case in getattr(module, "PROVED", {}).items()})
def test_what_is_proved(diagnose: Diagnose, case: tuple[Any, ...]) -> None:
    """A case is how to make a run and its struck rows, the `rung label level` of their group, and words that are told of it."""
    make, what, *words = case
    rows, keys = make()
    diagnose(rows).shows(keys, what, *words)


@each({f"{rung}: {name}": (rung, case) for rung, module in RUNGS.items() for name, case in getattr(module, "INNOCENT", {}).items()})
def test_what_is_innocent(diagnose: Diagnose, case: tuple[str, Any]) -> None:
    """A run in which a rung proves nothing, and of which no alarm is given."""
    rung, make = case
    made = make()
    run = diagnose(made[0] if isinstance(made, tuple) else made)
    assert [group.name for group in run.of_rung(rung)] == []
    assert [alarm.text for alarm in run.alarms] == []
