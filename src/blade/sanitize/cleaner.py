"""Turn rows and texts into ones that may leave: private strings replaced, all else byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import msgspec

from blade.sanitize import code, fields
from blade.sanitize.echoes import Echoes
from blade.sanitize.keys import Key
from blade.sanitize.named import secret_name
from blade.sanitize.policy import Policy
from blade.sanitize.scan import Scanner
from blade.sanitize.views import View, base64_in, has_escapes

Seen = Callable[[str, str, str], None]  # field, kind, value
TOKEN = re.compile(r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<key>\s*:)?|(?P<open>[{\[])|[}\]]', re.DOTALL)
_DEPTH = 4  # texts inside texts: JSON in a string, in base64, in a string
_REMEMBERED = 64 << 20  # letters of texts that are kept as clean
# Fields that name things: they are joined on, so only what is private beyond doubt is replaced in them.
_IDS = frozenset("id uuid task_name name type role status object model finish_reason".split())


class Cleaner:
    """One policy and one key at work; `seen` is told of every replacement, never where values could leak."""

    def __init__(self, key: Key, policy: Policy | None = None, seen: Seen | None = None) -> None:
        self.key = key
        self.policy = policy or Policy()
        self.scanner = Scanner(self.policy)
        self.seen = seen
        self.field = ""
        self.known = Echoes()
        self._clean: set[tuple[str, str]] = set()  # keys and texts, as JSON writes them
        self._letters = 0

    def put(self, kind: str, value: str) -> str:
        """The placeholder of a value."""
        told = self.key.placeholder(kind, value)
        if self.seen is not None:
            self.seen(self.field, kind, value)
        self.known.add(kind, value, told)
        return told

    def stub(self, kind: str, value: str) -> str:
        """What is left of a field or of source code: its hash and its length."""
        if self.seen is not None:
            self.seen(self.field, kind, value)
        return self.key.stub(kind, value)

    def row(self, raw: str) -> str:
        """A line of JSON; one that is broken is cleaned as text."""
        return self.json(raw) if _is_json(raw) else self.text(raw)

    def json(self, raw: str, depth: int = 0) -> str:
        """JSON text: its strings and keys cleaned, its numbers, order and spaces untouched."""
        if self.policy.drop_fields and depth == 0:
            raw = fields.dropped(raw, self.policy, self._drop)
        parts: list[str] = []
        outer = self.field
        stack: list[str] = []  # the keys above; nothing for a list, whose key stands with its members
        saved: list[str] = []
        done, key, clean = 0, "", self._clean
        for hit in TOKEN.finditer(raw):
            text = hit["text"]
            if text is None:
                if hit["open"]:
                    stack.append(key if hit["open"] == "{" else "")
                    saved.append(key)
                elif saved:
                    stack.pop()
                    key = saved.pop()
                continue
            if hit["key"]:
                key = _decoded(text) if "\\" in text else text
                if ("", text) in clean:
                    continue
                told, name = key, ""
            else:
                if (key, text) in clean:
                    continue
                told, name = _decoded(text) if "\\" in text else text, key
            self.field = ".".join(filter(None, (outer, *stack, key, "" if name else "(key)")))
            new = self.text(told, name, (*stack, key), depth)
            # Whether source code may stay hangs on where it stands, so that it is looked at every time.
            if new == told and self.policy.source_code == "keep":
                self._remember(name, text)
            elif new == told:
                continue
            else:
                parts += [raw[done : hit.start("text")], _encoded(new, text)]
                done = hit.end("text")
        self.field = outer
        return "".join([*parts, raw[done:]]) if parts else raw

    def _drop(self, path: tuple[str, ...], value: str) -> str:
        self.field = ".".join(path)
        new = self.stub("DROPPED", value)
        self.field = ""
        return json.dumps(new)

    def _remember(self, name: str, text: str) -> None:
        """A text that is clean need not be looked at again: prompts and results recur from row to row."""
        if self._letters < _REMEMBERED:
            self._letters += len(text) + 64
            self._clean.add((name, text))

    def text(self, text: str, name: str = "", path: tuple[str, ...] = (), depth: int = 0) -> str:
        """Any text: spans replaced by placeholders, encoded parts decoded, cleaned and encoded again."""
        if len(text) < 4:
            return text
        if self.policy.source_code == "hash" and not self.policy.clears(path):
            text = code.without(text, name, self.stub)
        if depth < _DEPTH and text.lstrip()[:1] in ("{", "[") and _is_json(text):
            return self.json(text, depth + 1)
        edits = self._edits(text, name)
        if depth < _DEPTH and len(text) >= 24:
            for start, end, new in base64_in(text, lambda inner: self.text(inner, "", path, depth + 1)):
                if not any(start < edit[1] and edit[0] < end for edit in edits):
                    edits.append((start, end, new))
        return applied(text, edits)

    def _edits(self, text: str, name: str) -> list[tuple[int, int, str]]:
        is_id = name in _IDS or (name.endswith(("_id", "_index")) and not secret_name(name))
        if not has_escapes(text):
            return [
                (span.start, span.end, self.put(span.kind, text[span.start : span.end]))
                for span in self.scanner.spans(text, name, is_id=is_id)
            ]
        view = View(text)
        return [
            (
                view.place(span.start),
                view.place(span.end),
                self.put(span.kind, view.text[span.start : span.end]),
            )
            for span in self.scanner.spans(view.text, name, is_id=is_id)
        ]

    def echoes(self, text: str) -> str:
        """`text` without values that were found elsewhere: told by what stood beside them, or cut here."""
        return self.known.taken_out(text)


def applied(text: str, edits: list[tuple[int, int, str]]) -> str:
    """`text` with its edits made."""
    if not edits:
        return text
    parts, done = [], 0
    for start, end, new in sorted(edits):
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _decoded(text: str) -> str:
    """The text that a JSON string stands for; as it is where it is none."""
    try:
        told = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return told if isinstance(told, str) else text


def _encoded(text: str, like: str) -> str:
    """A text as the inside of a JSON string, escaped as the one it replaces."""
    ascii_only = "\\u" in like or any("\ud800" <= char <= "\udfff" for char in text)
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
