"""Turn cells that tell how a task ended into claims: marks in turn, passes beside failures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blade.check.reader.verdicts import Place, said
from blade.model import Assertion, TaskResult
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from blade.prose.document import Row

PASS_FAIL, FAIL_PASS, ATTEMPT = "pass_fail", "fail_pass", "attempt"
TURNED = re.compile(
    r"((?:pass|fail|success)\w*|solved)\s*(?:/|:|vs\.?)\s*(?:(?:pass|fail)\w*|solved)", re.IGNORECASE
)
NUMBERED = re.compile(r"(?:run|repeat|attempt|trial|rollout|try|sample|seed|r|#)\s?#?\d{1,3}", re.IGNORECASE)
_YES = r"pass(?:ed)?|solved|success|ok|✓|✔|✅|yes|1|1\.0"
_NO = r"fail(?:ed|ure)?|✗|✘|❌|×|x|no|0|0\.0"
_PASSED = re.compile(rf"[`* ]*(?:{_YES})[`* ]*$", re.IGNORECASE)
OUTCOME = re.compile(rf"[`* ]*(?:{_YES}|{_NO})[`* ]*$", re.IGNORECASE)


def both_ways(
    cell: str, start: int, role: str, tasks: Sequence[TaskResult], doubt: str, place: Place
) -> Iterator[Assertion]:
    """`3/1` under `Fail/Pass`: how many failed and how many passed; or, of one kind, of how many."""
    hit = re.fullmatch(r"\s*(\d+)\s?(?:/|:|-|–)\s?(\d+)\s*", cell.strip("`*"))
    if hit is None or any(task.passed is None for task in tasks):
        return
    stated, holds = (int(hit[1]), int(hit[2])), False
    for task in tasks:
        passed = int(task.passed or 0)
        mine, other = (passed, task.n - passed) if role == PASS_FAIL else (task.n - passed, passed)
        holds |= stated in ((mine, other), (mine, task.n), (mine, len(task.repeats)))
    yield said(
        place,
        SUPPORTED if holds else UNVERIFIABLE if doubt else CONTRADICTED,
        "count",
        cell,
        start,
        expected="; ".join(_told(task) for task in tasks),
        why="" if holds else doubt or "the rows say otherwise",
        subject="passed",
        run=tasks[0].run if len(tasks) == 1 else None,
        scope=(("task", tasks[0].task),),
        value=cell,
    )


def in_turn(
    row: Row, columns: Sequence[int], task: TaskResult, place: Place, starts: Sequence[int]
) -> Iterator[Assertion]:
    """`pass | fail | pass` under `Run 1 | Run 2 | Run 3`: as many as passed, in whatever order."""
    cells = [row.cells[at] for at in columns if OUTCOME.match(row.cells[at])]
    if len(cells) < 2 or len(cells) != len(columns) or task.passed is None:
        return
    if len(cells) != task.n or task.n != len(task.repeats):
        return
    passed = sum(bool(_PASSED.match(cell)) for cell in cells)
    holds = passed == task.passed
    yield said(
        place,
        SUPPORTED if holds else CONTRADICTED,
        "count",
        " | ".join(cells),
        starts[columns[0]],
        expected=_told(task),
        why="" if holds else "the rows say otherwise",
        subject="passed",
        run=task.run,
        scope=(("task", task.task),),
        value=float(passed),
    )


def _told(task: TaskResult) -> str:
    return f"{task.passed} of {task.n} repeats of task {task.task} passed in {task.run}"
