"""What was measured, beside its baseline and its budget, and how that is printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

HEADINGS = ("what", "measured", "baseline", "ratio", "budget", "met")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; `met` is None where there is nothing to meet."""

    what: str
    measured: float
    unit: str  # s, ms or MB
    budget: str = ""
    met: bool | None = None
    baseline: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.baseline else self.measured / self.baseline

    def as_json(self) -> dict[str, Any]:
        """The same line for a program."""
        return {**asdict(self), "ratio": self.ratio}


def against(what: str, measured: float, baseline: float, most: float, note: str = "") -> Line:
    """A time in seconds that may be at most `most` times its baseline."""
    return Line(what, measured, "s", f"<= {most:g} x", measured <= most * baseline, baseline, note)


def below(what: str, measured: float, unit: str, most: float, note: str = "") -> Line:
    """A quantity with an absolute limit."""
    return Line(what, measured, unit, f"<= {most:g} {unit}", measured <= most, note=note)


def told(what: str, measured: float, unit: str, note: str = "") -> Line:
    """A quantity without a budget, for comparison."""
    return Line(what, measured, unit, note=note)


def rows(lines: list[Line]) -> list[tuple[str, ...]]:
    return [
        (
            line.what,
            _quantity(line.measured, line.unit),
            "" if line.baseline is None else _quantity(line.baseline, line.unit),
            "" if line.ratio is None else f"{line.ratio:.2f} x",
            line.budget,
            "" if line.met is None else "yes" if line.met else "NO",
        )
        for line in lines
    ]


def rendered(lines: list[Line]) -> str:
    """The table as text, with the notes below it."""
    table = [HEADINGS, *rows(lines)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    printed = [_row(row, widths) for row in table]
    printed.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{line.what}: {line.note}" for line in lines if line.note]
    return "\n".join([*printed, "", *notes]) + "\n"


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *numbers]).rstrip()


def _quantity(value: float, unit: str) -> str:
    return f"{value:.3f} s" if unit == "s" else f"{value:,.0f} {unit}"
