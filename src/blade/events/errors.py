"""Turn the result of a call into whether it tells of an error."""

from __future__ import annotations

import re

from blade.events.episodes import READ
from blade.events.quotes import parsed

_HEAD = 500  # characters of a result in which an error is told
_OPENING = 40  # of what a reading tool returns, only its opening is the tool's own word
_SHORT = 200  # characters up to which a result in one line is no content but an answer
ERROR = re.compile(
    r"\b(errors?|exceptions?|traceback|failed|failures?|invalid|malformed|not found|no such file|denied|timed? ?out"
    r"|missing (?:\d+ )?required|unavailable|refused|aborted|unreachable|ECONN[A-Z]+|no space left|OOM-?killed"
    r"|exit(?:ed)?(?: with)?(?: code| status)?:? *[1-9]\d*"
    r"|\w+_(?:error|exception)|(?-i:[A-Z]\w*(?:Error|Exception)))\b",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(
    r"\b(?:no|0|without|zero)\s+(?:\w+\s+)?(?:error|exception|failure|failed|invalid|malformed|missing required)s?\b(?: (?:or|and) \w+)?"
    r"|\b(?:error|exception|failure|failed)s?\W{1,4}(?:0|none|null|false|\[\]|\"\")",
    re.IGNORECASE,
)
_BAD_STATUS = frozenset("error failed failure fail timeout timed_out denied rejected".split())


def reads_as_error(text: str, does: str) -> bool:
    """Whether a result tells of an error; what a reading tool brings back may well be about errors."""
    head = text[:_HEAD]
    told = _structured(head, text)
    if told is not None:
        return told
    if does == READ and (len(text) > _SHORT or "\n" in text.strip()):
        head = head.lstrip()[:_OPENING].partition("\n")[0]
    return ERROR.search(_NO_ERROR.sub(" ", head)) is not None


def _structured(head: str, text: str) -> bool | None:
    """What a JSON result says of itself; None if it says nothing."""
    if not head.lstrip().startswith("{") or len(text) > 100_000:
        return None
    value = parsed(text)
    if not isinstance(value, dict):
        return None
    for key in ("error", "errors", "exception", "is_error", "isError"):
        if value.get(key):
            return True
    for key in ("success", "ok", "succeeded"):
        if isinstance(value.get(key), bool):
            return not value[key]
    code = value.get("exit_code", value.get("returncode", value.get("return_code")))
    if isinstance(code, int) and not isinstance(code, bool):
        return code != 0
    status = value.get("status")
    return isinstance(status, str) and status.lower() in _BAD_STATUS
