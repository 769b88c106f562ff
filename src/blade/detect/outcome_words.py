"""Turn what a model says of its own work into: claims success, owns up to a failure."""

from __future__ import annotations

import re

_SUCCESS = re.compile(
    r"\b(?:done|completed|successfully|fixed|sent|resolved|all set|finali[sz]ed|confirmed|processed"
    r"|(?:has|have|was|were|is now|are now|been)(?: been)? (?:\w+ly )?"
    r"(?:updated|created|cancel{1,2}ed|booked|modified|exchanged|returned|changed|added|removed|deleted"
    r"|applied"
    r"|submitted|placed|scheduled|refunded|saved|written|implemented|enabled|disabled|installed|deployed)"
    r"|I(?:['’]ve| have) (?:\w+ly )?(?:updated|created|cancel{1,2}ed|booked|modified|exchanged|returned"
    r"|changed|added"
    r"|removed|deleted|applied|submitted|placed|scheduled|refunded|saved|written|implemented|enabled))\b",
    re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"(?:\b(?:not|n['’]t|never|once|when|after|if|until|will be|to be|cannot be|can be|could be"
    r"|unless)\s+(?:\w+\s+){0,3})$",
    re.IGNORECASE,
)
_OWNS_UP = re.compile(
    r"\b(?:error|fail(?:s|ed|ure|ing)?|unable|cannot|can ?not|can['’]t|could ?n[o'’]t|couldn['’]t|not able"
    r"|did ?n[o'’]t"
    r"|didn['’]t|does ?n['’]t|issue|problem|unfortunately|not found|no (?:such|results?|matching|match)"
    r"|invalid"
    r"|apologi[sz]e|apologies|sorry|unavailable|not (?:available|possible|allowed|exist|eligible|permitted"
    r"|valid)"
    r"|denied|rejected|declined|trouble|isn['’]t|wasn['’]t|try again|exceeds?|insufficient|mismatch"
    r"|incorrect)\b",
    re.IGNORECASE,
)


def claims_success(text: str) -> bool:
    """Whether a text says that something was done."""
    return success_at(text) is not None


def success_at(text: str) -> int | None:
    """Where a text says that something was done, rather than that it will or would be."""
    for found in _SUCCESS.finditer(text[:4000]):
        if not _NOT_YET.search(text[max(0, found.start() - 40) : found.start()]):
            return found.start()
    return None


def owns_up(text: str) -> bool:
    """Whether a text admits that something did not work, or says what was wrong."""
    return _OWNS_UP.search(text[:4000]) is not None
