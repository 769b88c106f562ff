"""Turn what a stage says into lines of a page: cleaned, with signs, a capital and a full stop."""

from __future__ import annotations

import re
from collections.abc import Collection

from blade import hostile, number_format
from blade.report.blocks import Line, Said

# What is taken from elsewhere keeps its letters: code spans and quotations.
_FOREIGN = r"`[^`]*`|“[^”]*”|\"[^\"]*\""
_SIGNS = r"(?P<minus>(?<![^\s(\[{])-(?=\d))"
_ENDS = (".", "!", "?", "…", ".)", ".”")


def sentence(text: str, query: str, limit: int = 600, names: Collection[str] = ()) -> Line:
    """What a stage says, with its full stop; `names` stand in it as they are, whatever they hold."""
    return _told(text, text, query, limit, names)


def note_told(text: str, query: str, names: Collection[str] = ()) -> Line:
    """A note as a sentence of its own; the name of a run that it starts with keeps its letters."""
    said = hostile.line(text, 600)
    if not any(_starts_with(said, name) for name in _cleaned(names)):
        said = said[:1].upper() + said[1:]
    return _told(said, text, query, 600, names)


def _told(text: str, written: str, query: str, limit: int, names: Collection[str]) -> Line:
    said = hostile.line(text, limit)
    if not said:
        return ()
    line = Said(_signed(said, names), query, written)
    return (line,) if line.text.endswith(_ENDS) else (line, ".")


def _starts_with(said: str, name: str) -> bool:
    after = said[len(name) : len(name) + 1]
    return said.startswith(name) and not after.isalnum()


def _cleaned(names: Collection[str]) -> list[str]:
    """Longest first, so that a name is not taken for one that it begins with."""
    found = {hostile.line(name, 600) for name in names} - {""}
    return sorted(found, key=lambda name: (-len(name), name))


def _signed(said: str, names: Collection[str]) -> str:
    """With − for the hyphen before a number, outside of names and quotations."""
    kept = "|".join([_FOREIGN, *(rf"(?<!\w){re.escape(name)}(?!\w)" for name in _cleaned(names))])

    def sign(hit: re.Match[str]) -> str:
        return number_format.MINUS if hit["minus"] else hit[0]

    return re.sub(f"{kept}|{_SIGNS}", sign, said)
