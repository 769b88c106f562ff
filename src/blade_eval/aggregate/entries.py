"""Turn a table of result rows into the entries of the aggregate file, one for each agent and server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from blade_eval.profile import entries
from blade_eval.profile.entries import Entry, Rows
from blade_eval.profile.joining import ids
from blade_eval.profile.spelling import spelled

# The rows of one entry, to the metrics that its environment or a hook adds.
Custom = Callable[[Rows], Mapping[str, Any]]
_SAMPLE = {"agent_ref": {"name": "agent"}}  # the file has no place for the task itself


def by_agent(told: Rows, custom: Custom | None = None) -> Iterator[Entry]:
    """In the order in which the agents first appear among the ordered rows."""
    keys = told.table.keys
    rows = told.rows[np.lexsort((told.rank()[told.rows], keys.repeat[told.rows], keys.task[told.rows]))]
    whose = ids(told.agent[rows], told.table.server[rows])
    _, first = np.unique(whose, return_index=True)
    for at in sorted(first.tolist()):
        mine = told._replace(rows=rows[whose == whose[at]])
        server = told.table.servers.texts[told.table.server[rows[at]]]
        yield _entry(mine, server, custom)


def _entry(told: Rows, server: str | None, custom: Custom | None) -> Entry:
    one = next(entries.agents(told))
    added = dict(custom(told)) if custom and one.values else {}
    per_task = added.pop("per_task_metrics", {})
    metrics: Entry = {**one.values, **added, **one.across, **one.coverage}
    if one.n_repeats:
        metrics["num_repeats"] = one.n_repeats
    means = {name: value for name, value in metrics.items() if name.startswith("mean/")}
    groups = []
    for group in entries.groups(told):
        groups.append(
            entries.task_entry(group, _SAMPLE, told, len(group.rows)) | dict(per_task.get(group.task, {}))
        )
    return {
        "agent_ref": {"name": one.name},
        **({"_ng_environment_server": server} if server is not None else {}),
        "agent_metrics": metrics,
        "key_metrics": {**means, **one.coverage},
        "group_level_metrics": groups,
        "repeat_level_metrics": one.by_repeat,
    }


def encoded(found: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of the file: indented by two, without a newline at the end."""
    return spelled(msgspec.json.format(msgspec.json.encode(found), indent=2))
