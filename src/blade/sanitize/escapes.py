"""Decode what a text spells in JSON, escapes, wide letters or base64, and map places back to the text."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from unicodedata import normalize
from urllib.parse import unquote

import msgspec

from blade.sanitize.rule_table import compiled, words

TOKEN = compiled("token")
_SCALAR = re.compile(r"[^\s,}\]]+")
_NUMBERS = re.compile(r"\[?\s*(?:-?\d+\s*,\s*)*-?\d+\s*(?=[,}\]])")  # one, or the first of a plain list


def is_json(text: str) -> bool:
    """Is it JSON, or what Python writes and reads as such: NaN, Infinity."""
    with suppress(msgspec.DecodeError, RecursionError):
        msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=msgspec.Raw)
        return True
    with suppress(ValueError, RecursionError):
        json.loads(text, strict=False)
        return True
    return False


def decoded(text: str) -> str:
    """The text that the inside of a JSON string stands for; as it is where it is none."""
    if "\\" not in text:
        return text
    try:
        words = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return words if isinstance(words, str) else text


def encoded(text: str, like: str) -> str:
    """A text as the inside of a JSON string, escaped as the one it replaces."""
    ascii_only = "\\u" in like or any("\ud800" <= char <= "\udfff" for char in text)
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def numbers_end(raw: str, start: int) -> int:
    """Where the whole numbers that stand here end: one, or a list of them; `start` if there are none."""
    hit = _NUMBERS.match(raw, start)
    return hit.end() if hit else start


def value_end(raw: str, start: int) -> int:
    """Where the value that starts here ends."""
    hit = TOKEN.match(raw, start)
    if hit is None:
        scalar = _SCALAR.match(raw, start)
        is_torn = raw[start : start + 1] == '"'
        return len(raw) if is_torn else scalar.end() if scalar else start
    if hit["text"] is not None:
        return hit.end() - len(hit["key"] or "")
    depth = 0
    for hit in TOKEN.finditer(raw, start):
        depth += bool(hit["open"]) - bool(hit["close"])
        if depth == 0:
            return hit.end()
    return len(raw)


# Letters that JSON, Markdown, HTML, addresses and shells may write otherwise, or that nobody sees (a NUL stands beside
# each letter where lines of two bytes a letter were added to a text of one), tags and colours, which may be written
# otherwise themselves. Of a `%25` only the letter that was encoded twice is read.
_ESCAPE, _UNSEEN = compiled("escape"), compiled("unseen")
_FIRST = compiled("escape_first")  # one letter to look for is found sooner than a pattern
# Letters of other alphabets that look like a Latin one beside them.
_ALIKE = dict(zip("аеорсухіѕјԁА", "aeopcyxisjdA", strict=True))
_SIGNS = ("\\", "%", "&", "</", "<!", "<wbr", "\0", "\x1b")  # one of them at least, where an ASCII text has any
_WORDS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "commat": "@", "nbsp": " "}
# A form as browsers send it, where + stands for a space.
_FORM = compiled("form")
_SENT = str.maketrans("+", " ")


def _escapes(text: str) -> Iterator[re.Match[str]]:
    done = 0
    for first in _FIRST.finditer(text):
        if first.start() >= done and (hit := _ESCAPE.match(text, first.start())) is not None:
            done = hit.end()
            yield hit


class Reading:
    """A text with some of its parts read otherwise, and where its places stand in the text."""

    def __init__(self, text: str, changes: Iterable[tuple[int, int, str]]) -> None:
        self.starts, self.raw = [0], [0]  # from each of these places of the reading on, where the text goes on
        parts: list[str] = []
        done = size = 0
        for start, end, letters in changes:
            parts += [text[done:start], letters]
            size += start - done + len(letters)
            done = end
            self.starts += [size - len(letters), size]
            self.raw += [start, end]
        self.text = "".join([*parts, text[done:]])

    def place(self, place: int) -> int:
        """Where a place of the view stands in the text."""
        index = bisect_right(self.starts, place) - 1
        return self.raw[index] + place - self.starts[index]

    def end(self, place: int) -> int:
        """Where in the text the letter before a place of the view ends; what nobody sees after it is not of it."""
        index = bisect_left(self.starts, place)
        is_edge = index < len(self.starts) and self.starts[index] == place
        return self.raw[index] if is_edge else self.place(place)


class View(Reading):
    """A text without its escapes."""

    def __init__(self, text: str) -> None:
        if text.isascii() and not any(sign in text for sign in _SIGNS):
            super().__init__(text, ())  # no letter is written otherwise
            return
        if "+" in text and "=" in text:
            text = _FORM.sub(lambda hit: hit[0].translate(_SENT) if _is_sent(hit) else hit[0], text)
        super().__init__(text, ((*hit.span(), _letter(hit)) for hit in _escapes(text)))


_LINE_PREFIX = compiled("line_prefix")
_ARGUMENTS = [(compiled("arguments"), compiled("argument")), (compiled("items"), compiled("item"))]
_OPTION = re.compile(r"--?[A-Za-z]|/[a-zA-Z]{1,8}:")
_TOOLS = words("tools")


def unprefixed(text: str) -> tuple[Reading, bool] | None:
    """The lines of a text without what tools put before each, escaped breaks as breaks; None if it is the same.

    Told is whether words change by it, and not only what stands below what.
    """
    hits = _LINE_PREFIX.finditer("\n" + text)  # so that the first line is one, too
    changes = [(max(0, hit.start() - 1), hit.end() - 1, "\n" if hit.start() else "") for hit in hits]
    is_glued = any(not text[end - 1].isspace() for _, end, _ in changes)
    return (Reading(text, changes), is_glued) if changes else None


def commands_in(text: str) -> Iterator[tuple[int, Reading]]:
    """Lists of arguments, joined with blanks as a shell has them, and where each begins."""
    for run, member in _ARGUMENTS:
        for hit in run.finditer(text):
            words = [(word.start("word"), word["word"]) for word in member.finditer(hit["run"])]
            is_command = words[0][1].rpartition("/")[2] in _TOOLS or any(_OPTION.match(word) for _, word in words)
            ends = [0, *(start + len(word) for start, word in words)]
            if is_command:
                changes = [(end, start, " " if end else "") for end, (start, _) in zip(ends, words, strict=False)]
                yield hit.start("run"), Reading(hit["run"], [*changes, (ends[-1], len(hit["run"]), "")])


def _is_sent(hit: re.Match[str]) -> bool:
    """Is it a field of a form: one of several, or with letters written as forms write them."""
    before = hit.string[hit.start() - 1 : hit.start()]
    return hit["next"][:1] == "&" or "%" in hit["value"] or before in ("&", "?")


def _letter(hit: re.Match[str]) -> str:
    """What an escape stands for; itself where that is no letter."""
    group = hit.lastgroup or ""
    words = hit[group]
    if group == "wide":
        return normalize("NFKC", words)[:1]
    if group == "line":
        return "" if hit.string[hit.start() - 1 : hit.start()].isspace() else " "
    if group in ("json", "byte", "octal", "url", "hex", "html"):
        code = int(words, {"html": 10, "octal": 8}.get(group, 16))
        is_letter = code in (9, 10, 13) or 32 <= code < 127
        is_letter = is_letter or (group in ("json", "byte", "html") and 160 <= code < 0xD800)
        letter = chr(code) if is_letter or code == 0xFEFF else hit[0]
        return " " if code == 160 else _UNSEEN.sub("", letter)
    if group == "utf":
        words = unquote(words)
        return hit[0] if "\ufffd" in words else _UNSEEN.sub("", words)
    if group in ("blank", "cell"):
        return " " if group == "blank" else ": "
    return _WORDS.get(words, _ALIKE.get(words, words if group == "mark" else ""))


# of either alphabet: one look a letter; no text in UTF-8 begins with a sign of them when it is encoded
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9+/_\-]{23,}={0,2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}|[A-Za-z0-9_\-]{24,}={0,2}")
_WRAPPED = compiled("wrapped")
_PROBE = 64  # characters that tell whether the rest is worth decoding
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def base64_in(text: str, clean: Callable[[str, int], str]) -> Iterator[tuple[int, int, str]]:
    """Encoded texts that hold something private, with what stands in their place, encoded again.

    `clean` is told what an encoded text says, and where it stands.
    """
    done: list[tuple[int, int]] = []
    runs = [run.span() for run in _RUN.finditer(text)]
    if any(end - start >= 60 for start, end in runs) and ("\n" in text or "\\n" in text):
        for hit in _WRAPPED.finditer(text):
            packed = hit[0].replace(hit["break"], "")
            new = _recoded(packed, hit.start(), clean)
            if new is not None:
                lines = [new[place : place + 76] for place in range(0, len(new), 76)]
                yield *hit.span(), hit["break"].join(lines)
                done.append(hit.span())
    ends = iter([*done, (len(text), len(text))])
    begin, end = next(ends)
    for start, stop in runs:
        while end <= start:
            begin, end = next(ends)
        if begin >= stop:
            for hit in _BASE64.finditer(text, start, stop):
                if hit[0].lower() == hit[0] or hit[0].upper() == hit[0]:
                    continue  # a path or a hash: what is encoded has letters of both cases
                new = _recoded(hit[0], hit.start(), clean)
                if new is not None:
                    yield *hit.span(), new


def is_encoded_text(packed: str) -> bool:
    """Is it base64 of something to read."""
    words = _decoded(packed, b"-_" if "-" in packed or "_" in packed else b"+/")
    return words is not None and words.isascii() and not _BINARY.search(words)


def _recoded(packed: str, place: int, clean: Callable[[str, int], str]) -> str | None:
    """What an encoded text becomes, or None if it is no text or holds nothing private."""
    is_url = "-" in packed or "_" in packed
    altchars = b"-_" if is_url else b"+/"
    head = _decoded(packed[:_PROBE], altchars)
    if head is None or _BINARY.search(head):
        return None
    data = _decoded(packed, altchars)
    try:
        text = data.decode("utf-8") if data else ""
    except UnicodeDecodeError:
        return None
    new = clean(text, place)
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
