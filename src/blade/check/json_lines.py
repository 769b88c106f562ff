"""Find the line of a JSON text on which each of its values begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\n')


class Lines:
    """The line on which each value of a JSON text begins, found when it is first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, int] | None = None

    def of(self, path: str) -> int:
        if self._places is None:
            self._places = dict(_places(self._text))
        while path and path not in self._places:  # a value that is not there stands where it should
            path = path[: max(path.rfind("."), path.rfind("["))] if re.search(r"[.\[]", path) else ""
        return self._places.get(path, 1)


def _places(text: str) -> Iterator[tuple[str, int]]:
    line, path, key = 1, "", ""
    stack: list[tuple[str, int]] = []  # the container, and the next index or -1 for an object
    is_key = False
    for hit in _TOKEN.finditer(text):
        token = hit[0]
        if token == "\n":
            line += 1
        elif token in "{[":
            at = _at(stack, key)
            yield at, line
            stack.append((at, -1 if token == "{" else 0))
            is_key = token == "{"
        elif token in "}]":
            if stack:
                stack.pop()
            is_key = False
        elif token == ",":
            if stack and stack[-1][1] >= 0:
                stack[-1] = (stack[-1][0], stack[-1][1] + 1)
            is_key = bool(stack) and stack[-1][1] < 0
        elif token == ":":
            is_key = False
        elif is_key:
            key = json.loads(token) if token.startswith('"') else token
        else:
            path = _at(stack, key)
            yield path, line


def _at(stack: list[tuple[str, int]], key: str) -> str:
    if not stack:
        return ""
    container, index = stack[-1]
    if index >= 0:
        return f"{container}[{index}]"
    return f"{container}.{key}" if container else key
