"""Write runs as JSONL, diagnose them, and look up what was concluded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.model import Group, Report, Trust
from blade.pipeline.run_tables import ground_of
from blade.query.query_ground import Ground, Table
from blade.tables.index import Silent
from tests.builders import make_run
from tests.diagnose.rows import Key, Row, failing


@dataclass(frozen=True)
class Diagnosed:
    """What was concluded of a run, with the rows of each conclusion."""

    report: Report = field(repr=False)
    path: Path
    rows: list[Row] = field(repr=False)
    loaded: list[Any] = field(repr=False)

    @cached_property
    def ground(self) -> Ground:
        return ground_of(self.loaded)

    def keys(self, part: Any) -> set[Key]:
        """The rows that the query of a group, a trust entry or the unexplained rest gives."""
        table = self.ground.ask(part.query)
        assert isinstance(table, Table)
        places = [table.columns.index(name) for name in ("task", "repeat")]
        return {(int(row[places[0]]), int(row[places[1]])) for row in table.rows}

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.report.groups

    @property
    def trust(self) -> tuple[Trust, ...]:
        return self.report.trust

    @property
    def alarms(self) -> list[Trust]:
        return [entry for entry in self.trust if entry.level == "alarm"]

    @property
    def score(self) -> float:
        score = self.report.runs[0].score
        assert score is not None
        return score

    @property
    def failing(self) -> set[Key]:
        return failing(self.rows)[1]

    def of_rung(self, *rungs: str) -> list[Group]:
        return [group for group in self.groups if group.rung in rungs]

    def holders(self, keys: set[Key]) -> list[Group]:
        """The groups that hold any of some rows, the largest share first."""
        held = [(len(self.keys(group) & keys), group) for group in self.groups]
        return [group for n, group in sorted(held, key=lambda pair: -pair[0]) if n]

    def labels(self, keys: set[Key]) -> set[str]:
        """The labels of all groups that hold any of some rows."""
        return {group.label.value for group in self.holders(keys)}

    def causes(self, keys: set[Key]) -> set[str]:
        """The causes of the tasks that some rows belong to."""
        tasks = {str(task) for task, _ in keys}
        return {entry.cause.value for entry in self.report.attributions if entry.task in tasks}

    def group(self, keys: set[Key]) -> Group:
        """The one group that holds exactly these rows; fails with what holds them instead."""
        holders = self.holders(keys)
        shown = [(group.rung, group.label.value, group.name, sorted(self.keys(group))) for group in holders]
        assert len(holders) == 1, f"planted {sorted(keys)}, held by {shown or 'nothing'}"
        assert self.keys(holders[0]) == keys, f"planted {sorted(keys)}, held by {shown}"
        return holders[0]

    def levels(self, keys: set[Key]) -> list[str]:
        """The levels of what is said before the causes of exactly these rows."""
        return [entry.level for entry in self.trust if entry.query and self.keys(entry) == keys]

    def shows(self, keys: set[Key], what: str, *words: str) -> Group:
        """The one group of exactly these rows, as `rung label`, with its level of trust or how sure it is; what is told of it holds words."""
        rung, label, *more = what.split()
        group = self.group(keys)
        assert (group.rung, group.label.value) == (rung, label), group.text
        assert set(more) <= {*self.levels(keys), group.confidence.value}, [(entry.level, entry.text) for entry in self.trust]
        missing = [word for word in words if word not in f"{told_of(group)}\n{group.fix}"]
        assert not missing, (missing, told_of(group))
        return group

    @property
    def said(self) -> str:
        """Everything that a reader is told."""
        parts = [f"{entry.text} {entry.fix}" for entry in self.trust]
        for group in self.groups:
            parts += [group.name, group.text, group.fix, group.why_label, *group.against, *group.consequences]
        parts += [cause.text for cause in self.report.run_causes]
        parts += [advice.action for advice in self.report.recommendations]
        parts += [attribution.mechanism for attribution in self.report.attributions]
        return "\n".join(dict.fromkeys(parts))


def told_of(group: Group) -> str:
    """Everything that a reader is told of a group."""
    return "\n".join([group.name, group.text, group.why_label, *group.consequences])


Diagnose = Callable[..., Diagnosed]


def each(cases: dict[str, Any]) -> pytest.MarkDecorator:
    """One test for each case of a table, under its name."""
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def diagnose(folder: Path, rows: Iterable[Row], inputs: Iterable[Row] | None = None) -> Diagnosed:
    """Write a run and diagnose it."""
    listed = list(rows)
    path = make_run(folder, listed, inputs=inputs)
    loaded = pipeline.load([str(path)], Silent())
    return Diagnosed(pipeline.diagnose(loaded, "test"), path, listed, loaded)
