"""List what a query names: tools, values and fields, as a sentence about it would name them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FUNCTION = re.compile(r"\b(?P<name>calls|says|check_failed)\s*\(\s*'(?P<text>(?:[^']|'')*)'", re.IGNORECASE)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_TOOL = re.compile(
    r"\b(?:calls\s*\(|\w*tool\s*(?:=|in\b))\s*\(?(?P<names>(?:\s*'(?:[^']|'')*'\s*,?)+)", re.IGNORECASE
)
_OWN = re.compile(
    r"\b(?:run|task|repeat|task_name)\s*(?:=|<>|!=|in)\s*(?:'(?:[^']|'')*'|\((?:[^()]*)\))", re.IGNORECASE
)
_COLUMN = re.compile(
    r"(?<![\w.'\"])(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[a-z_][\w.]*))(?![\w.]|\s*\()", re.IGNORECASE
)
_TABLE = re.compile(r"\b(?:from|join)\s+\w+(?:\s+(?:as\s+)?[a-z]\b)?", re.IGNORECASE)
_RESERVED = frozenset(
    "count tasks rate pass_at_1 pass_at_k pass_hat_k mean sum low high n where by and or not "
    "is null in like ilike between true false select from distinct case when then else end as order group "
    "having limit on using join left exists cast integer int double avg min max median rollouts runs fields "
    "checks answers texts run task repeat row rows step passed masked any tool user arguments "
    "result text kind failed status value name path c r s t".split()
)


def columns_in(condition: str) -> frozenset[str]:
    """The fields that a condition is about, in lower case, without the outcome and the identity of rows."""
    rest = _TABLE.sub(" ", _LITERAL.sub(" ", _FUNCTION.sub(" ", condition)))
    names = ((hit["quoted"] or hit["plain"]).lower() for hit in _COLUMN.finditer(rest))
    return frozenset(name for name in names if name not in _RESERVED)


def names_in(query: str) -> frozenset[str]:
    """The tools and values that a query names; the fields of one that names no value."""
    bare = _OWN.sub(" ", query)
    tools = [name for hit in _TOOL.finditer(bare) for name in _LITERAL.findall(hit["names"])]
    patterns = [hit["text"] for hit in _FUNCTION.finditer(bare)]
    values = [part for text in patterns for part in ([text] if "(" in text else text.split("|"))]
    values += _LITERAL.findall(_FUNCTION.sub(" ", bare))
    names = _plain(tools, 1) | _plain(values, 3)  # a tool may be called `ls`
    return names or _plain((name.rpartition(".")[2] for name in columns_in(bare)), 3)


def _plain(texts: Iterable[str], least: int) -> frozenset[str]:
    """Texts without the signs of patterns; those with fewer letters in a row than `least` are left out."""
    bare = (re.sub(r"\\[a-z]|[\\%^$\[\](){}|*+?\"]+", " ", text).replace("''", "'") for text in texts)
    plain = (" ".join(text.lower().split()) for text in bare)
    letters = re.compile(rf"[^\W\d_]{{{least}}}")
    return frozenset(text for text in plain if letters.search(text) and text not in _RESERVED)
