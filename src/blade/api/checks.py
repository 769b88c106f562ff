"""Check a text about runs and hand back what was found of each of its statements."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade.api.tables import Table
from blade.errors import NothingToRead, Unreadable
from blade.model.checked import Finding

if TYPE_CHECKING:
    from blade.tables.index import Watcher

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
        return Table(Statement, map(_statement, self._findings))

    def problems(self) -> Table[Statement]:
        """All that is not supported, contradictions first."""
        from blade.check import check_findings

        return Table(Statement, map(_statement, check_findings.problems(self._findings)))

    def to_dict(self) -> dict[str, Any]:
        """What `blade check --json` prints."""
        from blade.check import check_findings

        document: dict[str, Any] = json.loads(check_findings.as_json(self._findings))
        return document

    def __repr__(self) -> str:
        return f"<blade.Checked {', '.join(f'{n:,} {verdict}' for verdict, n in self.counts.items())}>"

    def _repr_html_(self) -> str:
        return self.problems()._repr_html_()


def _statement(finding: Finding) -> Statement:
    return Statement(**msgspec.structs.asdict(finding))


def checked(
    text: str | os.PathLike[str], specs: Sequence[str], watcher: Watcher, threshold: float | None
) -> Checked:
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
