"""The errors a user can meet: message, hint, slug, exit code."""

from __future__ import annotations

import re
from pathlib import Path

EXIT_OK = 0
EXIT_FAILED_GATE = 1
EXIT_USAGE = 2
EXIT_NOTHING = 3
EXIT_UNREADABLE = 4
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


_DOCS = Path(__file__).with_name("docs")  # an installed package brings the pages along; a checkout has them above
_PAGE = re.compile(r"\bdocs/(?=[\w\-]+\.md)")


def with_pages(text: str) -> str:
    """`text` with the pages of the documentation that it names, such as docs/errors.md, as files that are here."""
    return _PAGE.sub(f"{_DOCS}/".replace("\\", r"\\"), text) if _DOCS.is_dir() else text


class BladeError(Exception):
    """What happened, what to do about it, and where `docs/errors.md` says more."""

    exit_code = EXIT_UNREADABLE

    def __init__(self, message: str, hint: str, slug: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.slug = slug

    def __str__(self) -> str:
        """What a traceback shows: both, for somebody who calls from Python."""
        return f"{self.message}\nhint: {with_pages(self.hint)}" if self.hint else self.message

    @property
    def see(self) -> str:
        """The heading that says more."""
        return with_pages(f"docs/errors.md#{self.slug}")

    def as_json(self) -> dict[str, object]:
        """The same error for a program."""
        return {
            "error": self.message, "hint": with_pages(self.hint), "slug": self.slug, "see": self.see,
            "exit": self.exit_code,
        }  # fmt: skip


class UsageError(BladeError):
    exit_code = EXIT_USAGE


class NothingToRead(BladeError):
    exit_code = EXIT_NOTHING


class Unreadable(BladeError):
    exit_code = EXIT_UNREADABLE


class OurBug(BladeError):
    exit_code = EXIT_BUG
