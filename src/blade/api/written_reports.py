"""Write a diagnosis or a comparison as text, Markdown, HTML, JSON or a folder, and check a text against its rows."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade import hostile
from blade import report as pages
from blade.api.answer_tables import Table
from blade.errors import NothingToRead, Unreadable
from blade.model.conclusions import Finding
from blade.report import comparison_screen, first_page

if TYPE_CHECKING:
    from blade import model
    from blade.tables.index import Watcher


@dataclass(frozen=True, repr=False)
class Report:
    """Everything that was concluded, as the command line would write it."""

    data: model.Report  # as typed values
    _specs: tuple[str, ...]
    _watcher: Watcher
    _threshold: float | None
    _is_comparison: bool = False

    def summary(self) -> str:
        """One screen of text, as the command prints it."""
        render = comparison_screen.compare_text if self._is_comparison else first_page.render
        return render(self.data)

    def markdown(self) -> str:
        """The pages as Markdown, without their figures."""
        return pages.markdown_text(self.data, self._is_comparison)

    def html(self) -> str:
        """One offline page without scripts, figures included."""
        return pages.html_text(self.data, self._is_comparison)

    def json(self) -> str:
        """The wire format `blade.report/2`, byte for byte what `--json` prints."""
        return pages.json_text(self.data, self._is_comparison)

    def to_dict(self) -> dict[str, Any]:
        """The wire format as Python values."""
        wire: dict[str, Any] = json.loads(self.json())
        return wire

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the pages and figures into a folder, over those of an earlier report and nothing else."""
        try:
            return pages.write(self.data, Path(folder), self._is_comparison)
        except OSError as error:
            message = f"cannot write {folder}: {error.strerror or error}"
            raise Unreadable(message, "choose another folder", "cannot-write") from error

    def check(self, text: str | os.PathLike[str]) -> Checked:
        """Every claim of a text, or of a file, against the rows; the report itself holds no error to find."""
        return checked(text, self._specs, self._watcher, self._threshold)

    def __repr__(self) -> str:
        names = ", ".join(hostile.line(run.name, 80) for run in self.data.runs[:4])
        return f"<blade.Report of {names}{', ...' if len(self.data.runs) > 4 else ''}>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its styles stay inside, and nothing in it runs."""
        page = html.escape(self.html(), quote=True)
        return f'<iframe sandbox srcdoc="{page}" style="width:100%;height:700px;border:0"></iframe>'


ENDINGS = (".md", ".markdown", ".json", ".txt")  # of names of reports


class Statement(Finding, frozen=True):
    """One statement of a checked text: supported, contradicted, unverifiable, uncited or opinion."""


class Checked:
    """The statements of a text, each with its verdict."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)

    @property
    def ok(self) -> bool:
        """Is nothing contradicted."""
        return not self.counts["contradicted"]

    @property
    def counts(self) -> dict[str, int]:
        """How many statements are supported, contradicted, unverifiable, uncited, opinion."""
        from blade.check import check_findings

        return check_findings.counts(self._findings)

    def claims(self) -> Table[Statement]:
        """Every statement that was read."""
        return _table(self._findings)

    def problems(self) -> Table[Statement]:
        """All that is not supported, contradictions first."""
        from blade.check import check_findings

        return _table(check_findings.problems(self._findings))

    def to_dict(self) -> dict[str, Any]:
        """What `blade check --json` prints."""
        from blade.check import check_findings

        document: dict[str, Any] = json.loads(check_findings.as_json(self._findings))
        return document

    def __repr__(self) -> str:
        return f"<blade.Checked {', '.join(f'{n:,} {verdict}' for verdict, n in self.counts.items())}>"

    def _repr_html_(self) -> str:
        return self.problems()._repr_html_()


def _table(findings: Sequence[Finding]) -> Table[Statement]:
    return Table(Statement, (Statement(**msgspec.structs.asdict(finding)) for finding in findings))


def checked(text: str | os.PathLike[str], specs: Sequence[str], watcher: Watcher, threshold: float | None) -> Checked:
    """Every statement of a text, or of a file that holds one, against the rows of the runs."""
    from blade import check

    content = _text(text)
    return Checked(check.checked(content, check.world_for(content, specs, watcher, threshold)))


def _text(text: str | os.PathLike[str]) -> str:
    """A text as it is; that of a file where a path or the name of a report is given."""
    if isinstance(text, str) and ("\n" in text or not text.lower().endswith(ENDINGS)):
        return text
    from blade.check.json_reports import with_claims

    path = Path(text)
    try:
        return with_claims(path.read_text(encoding="utf-8-sig"), path)
    except FileNotFoundError as error:
        raise NothingToRead(f"{path} does not exist", "check the path", "no-such-path") from error
    except (OSError, UnicodeDecodeError) as error:
        hint = "give a report in Markdown or JSON, in UTF-8"
        raise Unreadable(f"{path} cannot be read: {error}", hint, "unreadable-file") from error
