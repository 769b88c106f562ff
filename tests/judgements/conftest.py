"""A run with failing tasks to judge: rollouts with calls, errors and last words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run

ERROR = "Error: order O-17 is locked by the packing line"


def trajectory(task: int, repeat: int, reward: float) -> Row:
    """Look, look again into the same error, tell; the words say which rollout it is."""
    if reward:
        found = make_result("a", f'{{"order": "O-{task}", "state": "open"}}')
        said = make_message(f"The order O-{task} was found and sent, try {repeat}.")
        call = make_call("a", "find_order", f'{{"order": "O-{task}", "try": {repeat}}}')
        return make_row(task, repeat, reward, response=make_response([call, found, said]), error=None)
    output = [
        make_message(f"I look at order O-{task} first."),
        make_call("a", "find_order", f'{{"order": "O-{task}", "try": {repeat}}}'),
        make_result("a", ERROR),
        make_call("b", "find_order", f'{{"order": "O-{task}", "again": true}}'),
        make_result("b", ERROR),
        make_message(f"Done:  the order O-{task} is on its way,\nas you wished in try {repeat}."),
    ]
    return make_row(task, repeat, reward, response=make_response(output, status="done"), error=None)


def rows() -> list[Row]:
    rewards = {0: (1, 1, 1), 1: (1, 0, 0), 2: (0, 0, 0), 3: (1, 1, 0), 4: (0, 0, 0)}
    return [
        trajectory(task, at, float(reward))
        for task, told in rewards.items()
        for at, reward in enumerate(told)
    ]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    return make_run(tmp_path / "run", rows())
