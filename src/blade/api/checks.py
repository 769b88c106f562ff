"""Turn a text about runs into what the rows say of each of its claims."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.api.tables import Table
from blade.errors import NothingToRead, Unreadable
from blade.model import Assertion

if TYPE_CHECKING:
    from blade.check.unread import Unread
    from blade.store.index import Watcher

ENDINGS = (".md", ".markdown", ".json", ".txt")  # of names of reports


class Checked:
    """The claims of a text, each supported, contradicted or unverifiable."""

    def __init__(self, found: Sequence[Assertion], left: Sequence[Unread]) -> None:
        self._found = tuple(found)
        self._left = tuple(left)

    @property
    def ok(self) -> bool:
        """Is nothing contradicted."""
        return not self.counts["contradicted"]

    @property
    def counts(self) -> dict[str, int]:
        """How many claims are supported, contradicted, unverifiable."""
        from blade.check import told

        return told.counts(self._found)

    def claims(self) -> Table[Assertion]:
        """Every claim that was read."""
        return Table(Assertion, self._found)

    def problems(self) -> Table[Assertion]:
        """All that is not supported, contradictions first."""
        from blade.check import told

        return Table(Assertion, told.problems(self._found))

    def to_dict(self) -> dict[str, Any]:
        """What `blade check --json` prints."""
        from blade.check import told

        wire: dict[str, Any] = json.loads(told.as_json(self._found, self._left))
        return wire

    def __repr__(self) -> str:
        return f"<blade.Checked {', '.join(f'{n:,} {verdict}' for verdict, n in self.counts.items())}>"

    def _repr_html_(self) -> str:
        return self.problems()._repr_html_()


def checked(
    text: str | os.PathLike[str], specs: Sequence[str], watcher: Watcher, threshold: float | None
) -> Checked:
    """Every claim of a text, or of a file that holds one, against the rows of the runs."""
    from blade import check
    from blade.check import redacted, told
    from blade.check.recomputed import recomputed
    from blade.check.unread import unread

    said = _text(text)
    world = recomputed(said, specs, watcher, threshold)
    found = check.checked(said, world)
    left = unread(redacted.blinded(said) if world.is_blind else said, found)
    return Checked(told.placed(said, found), left)


def _text(text: str | os.PathLike[str]) -> str:
    """A text as it is; that of a file where a path or the name of a report is given."""
    if isinstance(text, str) and ("\n" in text or not text.lower().endswith(ENDINGS)):
        return text
    path = Path(text)
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NothingToRead(f"{path} does not exist", "check the path", "no-such-path") from error
    except (OSError, UnicodeDecodeError) as error:
        hint = "give a report in Markdown or JSON, in UTF-8"
        raise Unreadable(f"{path} cannot be read: {error}", hint, "unreadable-file") from error
