"""Escape queries for the comments in which a page carries them."""

from __future__ import annotations

from urllib.parse import quote, unquote

from blade import hostile


def inline(query: str) -> str:
    """A query as it stands in the comment behind a number: two dashes in a row would end it."""
    return query.replace("--", "-%2D").replace("\n", " ")


def escape_comment(query: str) -> str:
    """A query as one line that cannot end a comment or deceive whoever reads it.

    `%`, a second hyphen in a row and every character that is not shown on one line stand as %XX, as in a web
    address; `unescape_comment` takes that back.
    """
    text = query.replace("%", "%25").replace("--", "-%2D")
    if hostile.line(text) == text:
        return text
    shown = {letter for letter in set(text) if letter == " " or hostile.line(letter) == letter}
    return "".join(letter if letter in shown else quote(letter, safe="", errors="surrogatepass") for letter in text)


def unescape_comment(text: str) -> str:
    """The query that `escape_comment` wrote."""
    return unquote(text, errors="surrogatepass")
