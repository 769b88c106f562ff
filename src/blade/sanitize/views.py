"""Turn a text with escapes into what it says, and places in it back into places of the text."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterator

# Letters that JSON, Markdown, HTML and addresses may write otherwise; `%25` stays, lest it be read twice.
_ESCAPE = re.compile(
    r"\\u00(?P<json>[2-7][0-9a-fA-F])|%(?!25)(?P<url>[2-7][0-9a-fA-F])|&#(?P<html>\d{2,3});|&#x"
    r"(?P<hex>[2-7][0-9a-fA-F]);"
    r"|&(?P<word>amp|lt|gt|quot|commat);|\\(?P<mark>[/@_:.*<>\[\]|#!~&$`\-+=(){}])"
)
_HINT = re.compile(r"\\u00[2-7]|%[2-7]|&#|&(?:amp|lt|gt|quot|commat);|\\[/@_:.*<>\[\]|#!~&$`\-+=(){}]")
_WORDS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "commat": "@"}


class View:
    """A text without its escapes."""

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self.starts, self.raw = [0], [0]  # from each of these places of the view on, where the text goes on
        done = size = 0
        for hit in _ESCAPE.finditer(text):
            letter = _letter(hit)
            parts += [text[done : hit.start()], letter]
            size += hit.start() - done + len(letter)
            done = hit.end()
            self.starts += [size - len(letter), size]
            self.raw += [hit.start(), done]
        parts.append(text[done:])
        self.text = "".join(parts)

    def place(self, at: int) -> int:
        """Where a place of the view stands in the text."""
        index = bisect_right(self.starts, at) - 1
        return self.raw[index] + at - self.starts[index]


def _letter(hit: re.Match[str]) -> str:
    for group in ("json", "url", "hex"):
        if hit[group]:
            return chr(int(hit[group], 16))
    if hit["html"]:
        code = int(hit["html"])
        return chr(code) if 32 <= code < 127 else hit[0]
    return _WORDS.get(hit["word"] or "", hit["mark"] or "")


def has_escapes(text: str) -> bool:
    """Are letters written otherwise."""
    return ("\\" in text or "%" in text or "&" in text) and _HINT.search(text) is not None


_RUN = re.compile(r"[A-Za-z0-9+/_\-]{24,}={0,2}")  # of either alphabet: one look a letter
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}|[A-Za-z0-9_\-]{24,}={0,2}")
_WRAPPED = re.compile(
    r"(?:(?<![A-Za-z0-9+/])|(?<=\\n))(?:[A-Za-z0-9+/]{60,76}(?P<break>\\n|\r?\n)){1,4000}"
    r"[A-Za-z0-9+/]{1,76}={0,2}"
)
_PROBE = 64  # characters that tell whether the rest is worth decoding
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


def base64_in(text: str, clean: Callable[[str], str]) -> Iterator[tuple[int, int, str]]:
    """Encoded texts that hold something private, with what stands in their place, encoded again."""
    done: list[tuple[int, int]] = []
    if "\n" in text or "\\n" in text:
        for hit in _WRAPPED.finditer(text):
            packed = hit[0].replace(hit["break"], "")
            new = _recoded(packed, clean)
            if new is not None:
                lines = [new[at : at + 76] for at in range(0, len(new), 76)]
                yield *hit.span(), hit["break"].join(lines)
                done.append(hit.span())
    ends = iter([*done, (len(text), len(text))])
    begin, end = next(ends)
    for run in _RUN.finditer(text):
        while end <= run.start():
            begin, end = next(ends)
        if begin >= run.end():
            for hit in _BASE64.finditer(text, *run.span()):
                new = _recoded(hit[0], clean)
                if new is not None:
                    yield *hit.span(), new


def _recoded(packed: str, clean: Callable[[str], str]) -> str | None:
    """What an encoded text becomes, or None if it is no text or holds nothing private."""
    is_url = "-" in packed or "_" in packed
    altchars = b"-_" if is_url else b"+/"
    head = _decoded(packed[:_PROBE], altchars)
    if head is None or _BINARY.search(head) or sum(byte > 127 for byte in head) > len(head) // 4:
        return None
    data = _decoded(packed, altchars)
    try:
        text = data.decode("utf-8") if data else ""
    except UnicodeDecodeError:
        return None
    new = clean(text)
    if new == text:
        return None
    coded = b64encode(new.encode("utf-8", "replace"), altchars).decode("ascii")
    return coded if packed.endswith("=") or not coded.endswith("=") else coded.rstrip("=")


def _decoded(packed: str, altchars: bytes) -> bytes | None:
    packed = packed.rstrip("=")
    if len(packed) % 4 == 1:
        packed = packed[:-1]
    try:
        return b64decode(packed + "=" * (-len(packed) % 4), altchars, validate=True)
    except (ValueError, binascii.Error):
        return None
