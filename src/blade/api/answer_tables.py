"""Give rows of conclusions and answers of queries as lists that filter, print themselves and become data frames."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from blade import hostile
from blade.errors import UsageError
from blade.pipeline import run_tables
from blade.query import query_process
from blade.report.report_json import values

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import polars  # type: ignore[import-not-found,unused-ignore]

    from blade.api.loaded_runs import Loading

Row = TypeVar("Row", bound=msgspec.Struct)

MOST_LINES = 10  # of a table as text
MOST_ROWS = 40  # of a table in a notebook
MOST_CHARS = 100  # of one cell there

# What a table shows of its rows; all fields are in `to_dicts`. Other rows show their first fields.
SHOWN: dict[str, tuple[str, ...]] = {
    "Agreement": ("run", "first", "second", "n", "agreed", "kappa"),
    "Attribution": ("run", "task", "cause", "confidence", "lost", "mode", "repeat", "step", "mechanism"),
    "Buckets": ("run", "always", "sometimes", "never", "missing"),
    "Comparison": ("baseline", "candidate", "delta", "verdict", "verdict_new_tasks", "refused"),
    "Group": ("run", "id", "label", "confidence", "points", "rows", "tasks", "passed_rows", "name"),
    "Health": ("run", "level", "flag", "task", "value", "n", "text"),
    "Judgement": ("task", "cause", "repeat", "step", "field", "by", "at", "mechanism"),
    "Measure": ("run", "name", "k", "slice", "value", "n", "unit", "low", "high", "method"),
    "Recommendation": ("run", "rank", "action", "cause", "gain", "most"),
    "Run": ("name", "model", "score_name", "score", "n_tasks", "n_rollouts"),
    "Statement": ("verdict", "kind", "line", "printed", "expected", "reading", "why"),
    "Step": ("index", "kind", "tool", "arguments", "text", "failed"),
    "TaskResult": ("run", "task", "task_name", "n", "passed", "rate", "low", "high", "bucket", "p_bucket"),
    "Trust": ("run", "level", "label", "rows", "text"),
    "Unexplained": ("run", "points", "rows", "query"),
    "Waiting": ("run", "task", "bucket", "cause", "confidence", "lost", "value", "tokens", "reason"),
}
MOST_FIELDS = 9


class Table(Sequence[Row], Generic[Row]):
    """Rows of one kind, in the order of the report; frozen, as are the rows.

    A row has its fields as attributes; `to_dicts` gives them as report.json has them.
    """

    def __init__(self, kind: type[Row], rows: Iterable[Row]) -> None:
        self._kind = kind
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Table[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Table[Row]:
        return Table(self._kind, self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._kind, len(self._rows)))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what each row has."""
        return self._kind.__struct_fields__

    def where(self, test: Callable[[Row], object] | None = None, **equal: object) -> Table[Row]:
        """The rows that pass `test` and whose fields are equal to what is named: `where(cause="BI")`."""
        unknown = [name for name in equal if name not in self.fields and not hasattr(self._kind, name)]
        if unknown:
            raise self._no_field(unknown[0])
        rows = (row for row in self._rows if all(getattr(row, key) == equal[key] for key in equal))
        return Table(self._kind, (row for row in rows if test is None or test(row)))

    def column(self, name: str) -> list[Any]:
        """One field of every row."""
        if name not in self.fields:
            raise self._no_field(name)
        return [getattr(row, name) for row in self._rows]

    def _no_field(self, name: str) -> UsageError:
        return UsageError(f"a {self._kind.__name__} has no field {name}", f"its fields are {', '.join(self.fields)}", "usage")

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as report.json writes them: texts, numbers, lists, and nothing else."""
        return [to_dict(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas, if that is installed."""
        rows = [_flat(row) for row in self.to_dicts()]
        columns = None if rows else list(self.fields)
        frame: pandas.DataFrame = _library("pandas").DataFrame(rows or None, columns=columns)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of polars, if that is installed."""
        return _polars([_flat(row) for row in self.to_dicts()], self.fields)

    def __repr__(self) -> str:
        rows = self._rows[:MOST_LINES]
        lines = [f"{len(self):,} x {self._kind.__name__}"]
        lines += ["  " + "  ".join(f"{name}={_cell(row, name, 40)}" for name in self._shown) for row in rows]
        if len(self) > len(rows):
            lines.append(f"  ... {len(self) - len(rows):,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table for notebooks; text of rollouts in it is escaped and cut."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row, name))}</td>" for name in self._shown) + "</tr>"
            for row in self._rows[:MOST_ROWS]
        )
        more = f", the first {MOST_ROWS} shown" if len(self) > MOST_ROWS else ""
        caption = f"<caption>{len(self):,} x {html.escape(self._kind.__name__)}{more}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    @property
    def _shown(self) -> tuple[str, ...]:
        return SHOWN.get(self._kind.__name__, self.fields[:MOST_FIELDS])


def part(kind: type[Row], name: str, says: str) -> Callable[[Any], Table[Row]]:
    """The method of an answer that gives its rows of one kind; `self._rows(name)` are those."""

    def table(self: Any) -> Table[Row]:
        return Table(kind, self._rows(name))

    table.__name__, table.__doc__ = name, says
    return table


def to_dict(row: msgspec.Struct) -> dict[str, Any]:
    """One row as report.json writes it; what that does not have, by its fields."""
    written: dict[str, Any] = values(row)
    return written


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose nested objects are columns of their own: gain.low, gain.point."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": part for inner, part in value.items()}
        else:
            flat[name] = value
    return flat


def _cell(row: msgspec.Struct, name: str, most: int = MOST_CHARS) -> str:
    """A value on one line, without what could move a cursor or turn a text around."""
    value = getattr(row, name)
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return f"{len(value):,} of them" if len(value) != 1 else "1 of them"
    if isinstance(value, msgspec.Struct):
        inner = (f"{key} {_cell(value, key)}" for key in value.__struct_fields__)
        return hostile.line(", ".join(inner), most)
    return hostile.line(str(value), most)


def _polars(rows: list[dict[str, Any]], fields: Sequence[str]) -> polars.DataFrame:
    # all rows decide on the types: a column may begin with many nulls
    how = {"infer_schema_length": None, "strict": False} if rows else {"schema": list(fields)}
    frame: polars.DataFrame = _library("polars").DataFrame(rows or None, **how)
    return frame


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        message = f"{name} is not installed, and a data frame of it was asked for"
        hint = f"pip install {name}, or take the rows as they are with to_dicts()"
        raise UsageError(message, hint, "not-installed") from error


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
        frame: pandas.DataFrame = _library("pandas").DataFrame(list(self.rows), columns=list(self.columns))
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of polars, if that is installed."""
        return _polars(self.to_dicts(), self.columns)


def queried(loading: Loading, names: tuple[str, ...], query: str) -> Result:
    """What a query over some runs gives; it runs in a process of its own, under limits."""
    chosen = [run for run in loading.session.loaded if run.name in names]
    ground = run_tables.ground_of(chosen, loading.threshold, loading.watcher, loading.session.report)
    outcome = query_process.raised(query_process.ask(ground, [query])[0])
    columns, rows = outcome.table()
    answers = outcome.answers or ()
    if len(answers) == 1 and answers[0].group is None:
        only = answers[0]
        return Result(query, columns, rows, only.value, only.low, only.high, only.n, only.tasks)
    value = rows[0][0] if len(rows) == 1 and len(columns) == 1 else None
    return Result(query, columns, rows, value, truncated=outcome.is_cut)
