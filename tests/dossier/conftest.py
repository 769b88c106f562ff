"""Runs that dossiers are made of, diagnosed once for all tests; and dossiers read by their frame alone: what is ours, what is quoted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from blade.agent.dossier.budget import BAR, RULE
from blade.agent.dossier.case import PROMPT
from blade.formats.single_rows import steps_of_row as steps
from blade.model import Rollout, Trace
from blade.pipeline.session import Session, session
from tests.builders import Row, make_call, make_message, make_result, make_row, make_rows, make_run
from tests.case_tables import cases
from tools.planted.injected import Injected, write_injected

Written = Callable[[str, float], tuple[Injected, Session]]


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder that lasts as long as the sessions that are kept in it."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def planted(cached: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A run with one fault in it, and what was concluded of it."""

    def written(fault: str, prevalence: float) -> tuple[Injected, Session]:
        folder = tmp_path_factory.mktemp(fault)
        made = write_injected(folder, fault=fault, prevalence=prevalence, seed=3, n_tasks=6)
        return made, session([str(made.path)])

    return cache(written)


def worked(number: int, wrong: bool) -> list[Row]:
    """A rollout of an order desk: it reads, it writes, it says that it is done."""
    colour = "red" if wrong else "green"
    return [
        make_message("I look at the order first."),
        make_call("c1", "read_order", f'{{"order":"O-{number}"}}'),
        make_result("c1", f'{{"order":"O-{number}","lamp":"grey","note":"{"n" * 400}"}}'),
        make_call("c2", "write_order", f'{{"order":"O-{number}","lamp":"{colour}"}}'),
        make_result("c2", '{"ok":true}'),
        make_message(f"Done: the lamp of O-{number} is {colour} now."),
    ]


def desk_rows() -> list[Row]:
    """Six tasks of four repeats; in the first two tasks some repeats write the wrong colour."""
    rows = make_rows({task: [1.0, 0.0, 1.0, 0.0] if task < 2 else [1.0] * 4 for task in range(6)})
    for row in rows:
        task, wrong = row["_ng_task_index"], row["reward"] < 1
        gold = [{"name": "write_order", "arguments": {"order": f"O-{task}", "lamp": "green"}}]
        words = "the lamp is red, not green" if wrong else "all as expected"
        row |= {"task_id": f"desk-{task}", "expected_actions": gold, "verifier_message": words}
        row["responses_create_params"]["input"][0]["content"] = f"Make the lamp of order O-{task} green."
        row["response"]["output"] = worked(task, wrong)
    return rows


@pytest.fixture(scope="module")
def desk(cached: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return session([str(make_run(tmp_path_factory.mktemp("desk"), desk_rows()))])


def traced(row: Row, repeat: int = 0, task: str = "0") -> Trace:
    """A row as a rollout of a task."""
    items, source = steps(row)
    reward = row.get("reward")
    known = reward if isinstance(reward, float) else None
    return Trace(Rollout("rollouts", task, task, repeat, known, "rollouts.jsonl", 1), tuple(items), source, row)


def rollout(output: Any, repeat: int = 1, **changed: Any) -> Trace:
    """A failing rollout with these output items."""
    row = make_row(0, repeat, 0.0, **changed)
    row["response"] = {"output": output, "model": "sim-model"}
    return traced(row, repeat)


# ---- Reading a dossier -----------------------------------------------------------------------------

HEADINGS = tuple(cases(__file__, "headings"))
OURS = re.compile("|".join(f"(?:{way})" for way in cases(__file__, "ours")))


def ours(text: str) -> list[str]:
    """What stands before the bar of each line, without lines that are quoted from end to end."""
    heads = [line.partition(BAR)[0].rstrip() for line in text.splitlines() if not line.startswith(PROMPT)]
    return [head for head in heads if head]


def strangers(text: str) -> list[str]:
    """Lines of ours that no part of a dossier writes: what a rollout would have to forge."""
    known = (RULE, *HEADINGS)
    return [head for head in ours(text) if not head.startswith(known) and not OURS.fullmatch(head)]


def commands(text: str) -> list[str]:
    return [line.removeprefix(PROMPT) for line in text.splitlines() if line.startswith(PROMPT)]


def focus(text: str) -> int | None:
    found = re.search(r"^## rollout in focus: repeat (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def shown(text: str, repeat: int, step: int) -> str | None:
    """The words a dossier shows of a step, on one line; None if it shows none."""
    of_focus = rf"|\[{step}\]" if focus(text) == repeat else ""
    head = re.compile(rf"^(?:repeat {repeat} [^|\n]*\[{step}\]{of_focus})[^|\n]*\n?((?:\|.*\n?)*)", re.MULTILINE)
    quoted = (re.sub(r"^\|", "", hit, flags=re.MULTILINE) for hit in head.findall(text))
    return max((" ".join(words.split()) for words in quoted), key=len, default=None)
