"""Turn a call into the files it names or writes, and the text it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.model import Call

PATH_FIELDS = ("path", "file_path", "filename", "file", "target_file", "filepath")
_OLD = frozenset("old_str old_string old_text old search find".split())  # what an edit takes away
_MAX_TEXT = 20_000  # characters of a command or a text that are looked at
_MAX_WORDS = 300
_MAX_PATH = 300
_PARTS = re.compile(r"[;&|\n]+")
_INTO = re.compile(r"(?<![0-9&<=-])>{1,2}\s*([^\s;&|<>]+)")
_MAKES = re.compile(r"create|new|write", re.IGNORECASE)
_CHANGES = frozenset("rm mv sed chmod unlink truncate shred".split())


def path_of(call: Call) -> str | None:
    """The file in the arguments of a call that is no shell command."""
    if not isinstance(call.arguments, dict):
        return None
    told = (call.arguments.get(field) for field in PATH_FIELDS)
    return next((path[:_MAX_PATH] for path in told if isinstance(path, str) and path), None)


def files(call: Call) -> list[tuple[str, bool]]:
    """The files a write writes to, each with whether it may be made by this."""
    path = path_of(call)
    if path is not None:
        told = call.arguments.get("command")
        return [(path, _MAKES.search(told if isinstance(told, str) else call.tool) is not None)]
    command = events.command_of(call.tool, call.arguments)
    return list(_in_command(command[:_MAX_TEXT])) if command else []


def _in_command(command: str) -> Iterator[tuple[str, bool]]:
    for part in _PARTS.split(command)[:_MAX_WORDS]:
        for target in _INTO.findall(part):
            yield _bare(target), True
        words = part.split()[:_MAX_WORDS]
        if words[:1] == ["git"]:
            words = words[1:]
        if not words or (words[0] == "sed" and not any(word.startswith("-i") for word in words)):
            continue
        if words[0] in _CHANGES or words[0] == "tee":
            for word in words[1:]:
                if not word.startswith("-"):
                    yield _bare(word), words[0] == "tee"


def named(call: Call) -> list[str]:
    """The files that a call names, whatever it does with them."""
    command = events.command_of(call.tool, call.arguments)
    if command is not None:
        return [_bare(word) for word in command[:_MAX_TEXT].split()[:_MAX_WORDS]]
    path = path_of(call)
    return [path] if path else []


def _bare(word: str) -> str:
    return word.strip("\"'`(){}")[:_MAX_PATH]


def content(call: Call) -> str:
    """The text a write writes, without what it takes away."""
    if not isinstance(call.arguments, dict):
        return call.raw[:_MAX_TEXT]
    told = (value for key, value in call.arguments.items() if isinstance(value, str) and key not in _OLD)
    return "\n".join(value[:_MAX_TEXT] for value in told)[:_MAX_TEXT]
