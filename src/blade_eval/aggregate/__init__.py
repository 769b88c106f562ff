"""Turn result rows into the aggregate file of a run, and shards into one run, without any server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from blade.errors import Unreadable
from blade_eval.aggregate import entries, passing
from blade_eval.aggregate.entries import encoded
from blade_eval.aggregate.merge import Merged, merged
from blade_eval.environment import Environment
from blade_eval.profile import hook, joining, numbers
from blade_eval.profile.entries import Entry, Rows
from blade_eval.profile.table import Keys, Table

__all__ = ["Merged", "aggregate_metrics", "encoded", "merged"]


def aggregate_metrics(
    rows: Iterable[Mapping[str, Any]], environment: Environment | None = None
) -> list[Entry]:
    """The entries of the aggregate file for rows in memory, as plain values.

    Only an environment that names scores adds metrics of its own, as only some servers of the incumbent do.
    A row with the same key as another and other content is refused.
    """
    table = Table()
    kept: dict[int, passing.Told] = {}  # not the rows, which may be many
    for at, row in enumerate(rows):
        try:
            result = numbers.of_row(row)
        except numbers.NoKey as error:
            raise Unreadable(
                f"row {at}: {error}", "rows need _ng_task_index and _ng_rollout_index", "rows-without-indices"
            ) from None
        table.add(result, 0, at, hash(msgspec.json.encode(row)))
        if environment is not None and environment.scores is not None and not result.masked:
            kept[at] = passing.told(next(hook.without_long(iter([row]))), environment)
    told = _told(table)

    def custom(mine: Rows) -> Mapping[str, Any]:
        return passing.of_agent(mine, kept, environment)

    has_scores = environment is not None and environment.scores is not None
    found = list(entries.by_agent(told, custom if has_scores else None))
    plain: list[Entry] = msgspec.json.decode(msgspec.json.encode(found))
    table.infos.close()
    return plain


def _told(table: Table) -> Rows:
    keys = table.keys
    _, agent = joining.owners(Keys(keys.agents), keys)
    settled = joining.settled(keys, agent, [], "error", "rollout")
    return Rows(table, settled.rows, agent, keys.agents.texts)
