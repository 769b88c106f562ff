"""The errors a user can meet: message, hint, slug, exit code."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED_GATE = 1
EXIT_USAGE = 2
EXIT_NOTHING = 3
EXIT_UNREADABLE = 4
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


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
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def as_json(self) -> dict[str, object]:
        """The same error for a program."""
        see = f"docs/errors.md#{self.slug}"
        return {
            "error": self.message,
            "hint": self.hint,
            "slug": self.slug,
            "see": see,
            "exit": self.exit_code,
        }


class UsageError(BladeError):
    exit_code = EXIT_USAGE


class NothingToRead(BladeError):
    exit_code = EXIT_NOTHING


class Unreadable(BladeError):
    exit_code = EXIT_UNREADABLE


class OurBug(BladeError):
    exit_code = EXIT_BUG
