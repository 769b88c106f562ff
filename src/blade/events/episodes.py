"""Read the steps of a trace as calls with their results: what each does, whether it failed, how the rollout ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from blade.events.quotes import canonical, parsed
from blade.formats.rollout_steps import answers_of
from blade.model import Call, Episode, Step, Trace

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
    text = next((arguments[key] for key in _COMMAND_KEYS if key in arguments), None)
    if isinstance(text, list):
        text = " ".join(str(part) for part in text)
    return text if isinstance(text, str) else None


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
    result: dict[str, Any] = {}
    listed = params.get("tools") if isinstance(params, Mapping) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping):
            inner = entry.get("function")
            tool = inner if isinstance(inner, Mapping) else entry
            if isinstance(tool.get("name"), str):
                result[tool["name"]] = tool
    return result


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
    marked = _structured(head, text)
    if marked is not None:
        return marked
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


_SPACE = re.compile(r"\s+")


def calls(steps: Sequence[Step], tools: Mapping[str, Any], overrides: Mapping[str, str]) -> list[Call]:
    """The calls of a rollout in order, each with the first result that answers it."""
    answers = answers_of([(step.kind, step.call_id) for step in steps])
    results = []
    for step in steps:
        if step.kind != "call":
            continue
        tool, raw = step.tool or "", step.arguments or ""
        arguments = parsed(raw)
        result = steps[answers[step.index]] if step.index in answers else None
        hosted = result is None and step.call_id is None and len(step.text) > len(raw)
        output = result.text if result is not None else step.text[len(raw) :].strip() if hosted else ""
        does = what_it_does(tool, arguments, tools.get(tool), overrides)
        text = result.failed if result is not None else step.failed
        failed = text if text is not None else bool(output) and reads_as_error(output, does)
        place = result.index if result is not None else step.index if hosted else None
        key = f"{tool} {canonical(arguments) if arguments is not None else _SPACE.sub(' ', raw)}"
        results.append(Call(step.index, tool, arguments, raw, key, does, place, output, failed))
    return results


def episode(
    trace: Trace, position: int, score: float, passed: bool | None, overrides: Mapping[str, str]
) -> Episode:
    """A trace read as events."""
    tools = declared_tools(trace.row)
    episode_calls = calls(trace.steps, tools, overrides)
    last_call = episode_calls[-1].step if episode_calls else -1
    final, place = "", None
    for step in reversed(trace.steps):
        if step.index <= last_call:
            break
        if step.kind == "message" and step.text.strip():
            final, place = step.text, step.index
            break
    has_user = any(step.kind == "user" for step in trace.steps)
    return Episode(trace, position, score, passed, tuple(episode_calls), final, place, tools, has_user)
