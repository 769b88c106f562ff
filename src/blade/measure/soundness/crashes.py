"""Find rows whose verifier or judge says of itself that it did not work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from blade.measure.health import share
from blade.measure.soundness.rows import MANY, Rows, collected, named
from blade.measure.soundness.sounding import HARD
from blade.measure.soundness.verdicts import NOTHING, Found, by_task
from blade.model import Column, Level, Rollouts

if TYPE_CHECKING:
    from blade.model import Bools

_WHO = r"(?:verifier|verification|judge|grader|grading|evaluator|evaluation|scorer|eval)"
_WHAT = r"(?:error|exception|timed_?out|timeout|crash(?:ed)?|failed|failure)"
_BROKEN = re.compile(rf"(?:^|[._]){_WHO}(?:_\w+)??_{_WHAT}$|(?:^|[._])invalid_{_WHO}(?:_\w+)?$")
_WHOLE = re.compile(rf"(?:^|[._]){_WHO}_(?:completed|succeeded|ok)$")
_EXIT = re.compile(rf"(?:^|[._]){_WHO}_(?:exit_?code|return_?code)$")
_KILLED = (124, 134, 137, 139, 143)  # exit codes of a process that timed out, aborted or was killed
_SILENT = frozenset(("", "none", "null", "no_error", "ok", "success", "false"))
_BOOL, _NUMBER, _TEXT = 2, 3, 4


def crashed(rows: Rows) -> Found:
    """Rows whose verifier failed; where it failed on every repeat of a task, the task is suspect."""
    field = failed(rows.rollouts)
    struck = [(task, one) for task in rows.tasks for one in task.heard if one.position in field]
    if not struck:
        return NOTHING
    names = sorted({field[one.position] for _, one in struck})
    text = f"The verifier says of {share(len(struck), rows.n_rows)} that it failed ({', '.join(names[:4])}), "
    text += f"in {named(task.task for task, _ in struck)}."
    cited = [rows.quoted(one.position, field[one.position]) for _, one in struck[:6]]
    level = Level.PROBLEM if len(struck) > MANY * rows.n_rows else Level.WARNING
    told = [one for one in cited if one is not None]
    health = rows.flag("verifier_crashes", level, text, len(struck), rows.n_rows, told)
    always = {
        key: places
        for key, places in by_task(struck).items()
        if len(places) > 1
        and len(places) == len(places[0][0].heard)
        and not any(rows.passed(one) for _, one in places)
    }
    said = "the verifier failed on each of {rollouts}"
    return health, collected(always, rows, health.flag, HARD, said, field=names[0])


def failed(rollouts: Rollouts) -> dict[int, str]:
    """The positions of rows whose verifier failed, each with the field that says so."""
    found: dict[int, str] = {}
    for name, bad in _columns(rollouts):
        for position in np.flatnonzero(bad).tolist():
            found.setdefault(position, name)
    return found


def _columns(rollouts: Rollouts) -> Iterator[tuple[str, Bools]]:
    fields = rollouts.fields
    for name in sorted(fields):
        if _BROKEN.search(name):
            yield name, _says_yes(fields[name])
        elif _WHOLE.search(name):
            column = fields[name]
            yield name, (column.kind == _BOOL) & (column.number == 0)
        elif _EXIT.search(name):
            column = fields[name]
            yield name, (column.kind == _NUMBER) & np.isin(column.number, _KILLED)


def _says_yes(column: Column) -> Bools:
    """True, 1, or a text that tells of something."""
    silent = [code for code, text in enumerate(column.texts) if text.strip().casefold() in _SILENT]
    told = (column.kind == _TEXT) & ~np.isin(column.code, silent)
    yes: Bools = told | (((column.kind == _BOOL) | (column.kind == _NUMBER)) & (column.number == 1))
    return yes
