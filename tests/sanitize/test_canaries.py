"""The canary suite holds its limits on a small draw, and its own yardstick can fail."""

from __future__ import annotations

import json
import random

from tools.canaries import recall
from tools.canaries.canary_kinds import HELD_OUT
from tools.canaries.recall import PLACES, survives


def test_canaries_of_every_kind_are_caught_in_every_place() -> None:
    planted, caught, moved = recall.recall(1, 3)
    assert len(recall.ALL) >= 100
    assert sum(caught.values()) >= recall.RECALL * sum(planted.values())
    assert moved == 0


def test_simulated_rows_stay_as_they_are() -> None:
    tokens, lost, _ = recall.changed(recall.simulated_lines())
    assert tokens > 100_000
    assert lost <= recall.CHANGED * tokens


def test_a_canary_that_nobody_took_out_is_seen() -> None:
    for kind, make in {**recall.ALL, **HELD_OUT}.items():
        canary = make(random.Random(5))
        assert all(survives(canary, json.dumps(plant(canary))) for plant in PLACES.values()), kind
