"""Turn a call into what it does (read, write or check), and a row into the tools it declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

READ, WRITE, CHECK = "read", "write", "check"

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_READS = frozenset(
    "get list find search read view fetch lookup look show describe query retrieve browse load inspect "
    "calculate compute think count open ls cat grep head tail select".split()
)
_WRITES = frozenset(
    "create update delete send write edit apply patch submit book cancel modify move commit insert replace "
    "remove add set toggle exchange return pay transfer post put upload enable disable reset rename save "
    "assign schedule order purchase buy grant revoke suspend resume refund deploy install drop merge "
    "push reply close reopen approve reject register issue change refuel activate deactivate lock unlock "
    "block unblock subscribe unsubscribe enroll restart reboot archive publish top".split()
)
# To hand over to a person changes nothing that a verifier looks at, whatever verb it is named by.
_HANDS_OVER = frozenset("human humans person operator representative supervisor".split())
_CHECKS = frozenset("test tests pytest check lint compile verify validate build typecheck assert".split())
_SHELLS = frozenset(
    "bash sh shell execute exec terminal run command cmd console execute_bash run_command execute_command "
    "run_shell_command run_terminal_cmd execute_shell local_shell_call str_replace_editor".split()
)
_COMMAND_KEYS = ("command", "cmd", "code", "script", "action", "bash", "input", "keystrokes", "commands")
_SHELL_WRITE = re.compile(
    r"(?<![0-9&<>=-])>{1,2}(?![&=])(?!\s*/dev/null)|\bsed\s+(?:-\w+\s+)*-i|\b(?:rm|mv|cp|mkdir|touch|tee|chmod|chown|ln)\s"
    r"|\bgit\s+(?:commit|apply|checkout|reset|stash|merge|add|rm|mv)\b|\bpatch\s|\b(?:pip|npm|apt|apt-get|conda)\s+install\b"
)  # fmt: skip
_SHELL_CHECK = re.compile(
    r"\b(?:pytest|unittest|tox|nox|ruff|flake8|mypy|pylint|eslint|tsc|ctest|jest|vitest|rspec|phpunit)\b"
    r"|\b(?:make|npm|yarn|pnpm|cargo|go|mvn|gradle|dotnet|bundle)\s+(?:run\s+)?(?:test|check|build|lint|vet)\b"
    r"|\brun_?tests?\b|\b(?:gcc|g\+\+|javac|rustc|iverilog)\b|py_compile"
)
_EDITOR_WRITES = frozenset("create str_replace insert edit write undo_edit".split())


def what_it_does(tool: str, arguments: Any, declared: Any, overrides: Mapping[str, str]) -> str:
    """Whether a call reads, writes or checks: as told, by its schema, its command, or its name."""
    if tool in overrides:
        return overrides[tool]
    hints = declared.get("annotations") if isinstance(declared, Mapping) else None
    if isinstance(hints, Mapping):
        if hints.get("readOnlyHint") is True:
            return READ
        if hints.get("destructiveHint") is True:
            return WRITE
    command = command_of(tool, arguments)
    if command is not None:
        if command in _EDITOR_WRITES or _SHELL_WRITE.search(command):
            return WRITE
        return CHECK if _SHELL_CHECK.search(command) else READ
    return _by_name(tool)


def command_of(tool: str, arguments: Any) -> str | None:
    """The command of a call to a shell; None for any other tool."""
    if tool.lower().rpartition("__")[2] not in _SHELLS:
        return None
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        return None
    told = next((arguments[key] for key in _COMMAND_KEYS if key in arguments), None)
    if isinstance(told, list):
        told = " ".join(str(part) for part in told)
    return told if isinstance(told, str) else None


@lru_cache(maxsize=5000)
def _by_name(tool: str) -> str:
    words = [word.lower() for word in _WORD.findall(tool.rpartition("__")[2])]
    if words and (words[0] in _READS or words[0] == "escalate" or _HANDS_OVER.intersection(words)):
        return READ
    if any(word in _WRITES for word in words):
        return WRITE
    return CHECK if any(word in _CHECKS for word in words) else READ


def declared_tools(row: Mapping[str, Any]) -> dict[str, Any]:
    """Declared tools by name, each as it is declared (a chat-style one unwrapped)."""
    params = row.get("responses_create_params")
    found: dict[str, Any] = {}
    listed = params.get("tools") if isinstance(params, Mapping) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping):
            inner = entry.get("function")
            tool = inner if isinstance(inner, Mapping) else entry
            if isinstance(tool.get("name"), str):
                found[tool["name"]] = tool
    return found
