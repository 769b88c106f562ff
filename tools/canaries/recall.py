"""Turn planted canaries and clean data into two numbers: the share caught, and the share changed."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from blade.sanitize import Cleaner, Key, Policy
from tools import planted
from tools.canaries.canary_kinds import DISGUISED, KINDS, PEOPLE, PUBLIC, UNRELEASED, Canary
from tools.canaries.planting import PLACES, survives

RECALL, CHANGED = 0.995, 0.005  # at least, at most
KEY = Key(b"a key for canaries, not for use")
POLICY = Policy(names=(*UNRELEASED, *PEOPLE))
GROUPS = {"well known": KINDS, "public forms": PUBLIC, "in disguise": DISGUISED}
ALL = {kind: make for kinds in GROUPS.values() for kind, make in kinds.items()}
_KEPT = ("_ng_task_index", "_ng_rollout_index", "reward", "task_id", "failure_kind")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def recall(
    each: int, seed: int, kinds: Mapping[str, Callable[[random.Random], Canary]] = ALL
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """Canaries planted and caught by kind and place, and rows whose ids or reward moved."""
    planted_, caught = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    moved = 0
    for kind, make in kinds.items():
        rng = random.Random(f"{seed} {kind}")
        for place, plant in PLACES.items():
            for _ in range(each):
                canary = make(rng)
                row = plant(canary)
                new = Cleaner(KEY, POLICY).row(json.dumps(row))
                planted_[kind, place] += 1
                caught[kind, place] += not survives(canary, new)
                moved += any(json.loads(new)[field] != row[field] for field in _KEPT)
    return planted_, caught, moved


def changed(lines: Iterable[str]) -> tuple[int, int, Counter[str]]:
    """Tokens of clean rows, how many of them changed, and by which kind."""
    kinds: Counter[str] = Counter()
    lost = 0

    def seen(field: str, kind: str, value: str) -> None:
        nonlocal lost
        kinds[kind] += 1
        lost += len(_TOKEN.findall(value))

    cleaner = Cleaner(KEY, POLICY, seen)
    tokens = 0
    cleaned = []
    for line in lines:
        cleaned.append(cleaner.row(line))
        tokens += len(_TOKEN.findall(line))
    echoing = cleaner.echoing(seen)
    for line in cleaned:
        echoing.row(line)
    return tokens, lost, kinds


def simulated_lines() -> list[str]:
    """Rows of a simulated run: nothing in them is private."""
    with tempfile.TemporaryDirectory() as folder:
        planted.write_demo(Path(folder))
        paths = sorted(Path(folder).glob("*.jsonl"))
        return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
