"""Answer a query from Python: one value with its interval, or rows that become a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from blade.api.held import Held
from blade.api.tables import _not_installed

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import polars  # type: ignore[import-not-found,unused-ignore]


class Result(msgspec.Struct, frozen=True):
    """What a query gives: `value`, `low`, `high` and `n` of a measure, and rows in any case."""

    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    value: Any = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    tasks: tuple[str, ...] | None = None
    truncated: bool = False

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas, if that is installed."""
        try:
            import pandas
        except ImportError as error:
            raise _not_installed("pandas") from error
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of polars, if that is installed."""
        try:
            import polars
        except ImportError as error:
            raise _not_installed("polars") from error
        return polars.DataFrame(self.to_dicts(), infer_schema_length=None, strict=False)


def queried(held: Held, names: tuple[str, ...], query: str) -> Result:
    """What a query over some runs gives; it runs in a process of its own, under limits."""
    from blade.pipeline import tabling
    from blade.query import box

    chosen = [one for one in held.session.loaded if one.name in names]
    ground = tabling.ground_of(chosen, held.threshold, held.watcher, held.session.report)
    outcome = box.raised(box.ask(ground, [query])[0])
    columns, rows = outcome.table()
    answers = outcome.answers or ()
    if len(answers) == 1 and answers[0].group is None:
        only = answers[0]
        return Result(query, columns, rows, only.value, only.low, only.high, only.n, only.tasks)
    value = rows[0][0] if len(rows) == 1 and len(columns) == 1 else None
    return Result(query, columns, rows, value, truncated=outcome.is_cut)
