"""Turn a diagnosis or a comparison into pages: text, Markdown, HTML, JSON, or a folder of them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade import hostile
from blade.api.checks import Checked, checked
from blade.errors import Unreadable

if TYPE_CHECKING:
    from blade import model
    from blade.tables.index import Watcher


class Report:
    """Everything that was concluded, as the command line would write it."""

    def __init__(
        self,
        report: model.Report,
        specs: Sequence[str],
        watcher: Watcher,
        threshold: float | None,
        is_comparison: bool = False,
    ) -> None:
        self._report = report
        self._specs = tuple(specs)
        self._watcher = watcher
        self._threshold = threshold
        self._is_comparison = is_comparison

    @property
    def data(self) -> model.Report:
        """The report as typed values."""
        return self._report

    def of(self, report: model.Report) -> Report:
        """Pages of another report on the same runs."""
        return Report(report, self._specs, self._watcher, self._threshold, self._is_comparison)

    def summary(self) -> str:
        """One screen of text, as the command prints it."""
        from blade.report import comparison_screen, first_page

        render = comparison_screen.compare_text if self._is_comparison else first_page.render
        return render(self._report)

    def markdown(self) -> str:
        """The pages as Markdown, without their figures."""
        from blade import report

        return report.markdown_text(self._report, self._is_comparison)

    def html(self) -> str:
        """One offline page without scripts, figures included."""
        from blade import report

        return report.html_text(self._report, self._is_comparison)

    def json(self) -> str:
        """The wire format `blade.report/2`, byte for byte what `--json` prints."""
        from blade import report

        return report.json_text(self._report, self._is_comparison)

    def to_dict(self) -> dict[str, Any]:
        """The wire format as Python values."""
        wire: dict[str, Any] = json.loads(self.json())
        return wire

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the pages and figures into a folder, over those of an earlier report and nothing else."""
        from blade import report

        write = report.write_comparison if self._is_comparison else report.write
        try:
            return write(self._report, Path(folder))
        except OSError as error:
            message = f"cannot write {folder}: {error.strerror or error}"
            raise Unreadable(message, "choose another folder", "cannot-write") from error

    def check(self, text: str | os.PathLike[str]) -> Checked:
        """Every claim of a text, or of a file, against the rows; the report itself holds no error to find."""
        return checked(text, self._specs, self._watcher, self._threshold)

    def __repr__(self) -> str:
        names = ", ".join(hostile.line(run.name, 80) for run in self._report.runs[:4])
        return f"<blade.Report of {names}{', ...' if len(self._report.runs) > 4 else ''}>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its styles stay inside, and nothing in it runs."""
        page = html.escape(self.html(), quote=True)
        return f'<iframe sandbox srcdoc="{page}" style="width:100%;height:700px;border:0"></iframe>'
