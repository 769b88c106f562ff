"""Read a trace as events: calls, errors, what each tool does, what the task expects, quotations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from blade.formats.rollout_steps import answers_of
from blade.model import Call, Episode, Evidence, Gold, Step, Trace

# ---- JSON values, masked texts, quotations ---------------------------------------------------------

_VOLATILE = frozenset("timestamp request_id call_id nonce trace_id span_id idempotency_key session_id".split())


def parsed(text: str) -> Any:
    """The JSON in a text; None if there is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def canonical(value: Any) -> str:
    """A JSON value in one spelling, without fields that differ from call to call by nature."""
    if isinstance(value, dict) and _VOLATILE & value.keys():
        value = {key: inner for key, inner in value.items() if key not in _VOLATILE}
    try:
        text = msgspec.json.encode(value, order="deterministic").decode()
        return msgspec.json.encode(_whole(value), order="deterministic").decode() if ".0" in text else text
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return repr(value)


def _whole(value: Any) -> Any:
    """A JSON value in which 2.0 is 2."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def compact(value: Any) -> str:
    """A value as it is quoted when it is no string."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_MASKS = (
    ("<url>", r"[a-z][a-z0-9+.-]{1,10}://[^\s'\"<>)\]]+"),
    ("<email>", r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    ("<uuid>", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    ("<time>", r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
     r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b"),
    ("<hex>", r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{16,}\b"),
    ("<path>", r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/?|\b[A-Za-z]:\\[\w\\.-]+"),
    ("<text>", r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`"),
    ("<n>", r"(?<![\w<])#?[A-Za-z]{0,4}-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
     r"(?: ?(?:ms|s|sec|seconds?|minutes?|[kKMGT]i?B|bytes|%))?(?!\w)"),
    ("<id>", r"\b\w*\d{3,}\w*\b"),
)  # fmt: skip
_MASK = re.compile("|".join(f"(?P<m{number}>{pattern})" for number, (_, pattern) in enumerate(_MASKS)))
_NAMES = {f"m{number}": name for number, (name, _) in enumerate(_MASKS)}
_MASKABLE = re.compile(r"[\d'\"`/\\@]")  # without any of these there is nothing to mask


@lru_cache(maxsize=50_000)
def masked(text: str, limit: int = 200) -> str:
    """Text with volatile values replaced by what they are, in one line."""
    spaced = " ".join(text[: 2 * limit].split())
    if _MASKABLE.search(spaced) is None:
        return spaced[:limit]
    return _MASK.sub(lambda hit: _NAMES[hit.lastgroup or "m0"], spaced)[:limit]


QUOTE = 200  # characters of a quotation


def quoted(text: str, i: int = 0, length: int = QUOTE) -> str:
    """A passage of a text, around a place if it is long; always an exact substring."""
    if len(text) <= length:
        return text
    start = max(0, min(i - length // 4, len(text) - length))
    if start:  # at the beginning of a word, where one is near
        space = text.find(" ", start, start + length // 8)
        start = space + 1 if space >= 0 else start
    return text[start : start + length]


def step_text(step: Step) -> str:
    """What may be quoted of a step: its text, or the tool of a call without arguments."""
    return step.text or step.reasoning or step.tool or ""


def step_texts(step: Step) -> list[str]:
    """What stands in a step, part by part."""
    return [text for text in (step.text, step.reasoning, step.arguments, step.tool) if text]


def field_text(row: Mapping[str, Any], field: str) -> str | None:
    """The value at a dotted path as it is quoted: strings as they are, all else as compact JSON; None if the
    row has none. A key that holds dots itself is tried first; a number names an entry of a list."""
    value: Any = row
    while field:
        if isinstance(value, list):
            head, _, field = field.partition(".")
            if not head.isdecimal() or int(head) >= len(value):
                return None
            value = value[int(head)]
            continue
        if not isinstance(value, Mapping):
            return None
        if field in value:
            value, field = value[field], ""
        else:
            head, _, field = field.partition(".")
            if head not in value or not field:
                return None
            value = value[head]
    return value if isinstance(value, str) else compact(value)


def at_step(episode: Episode, index: int, i: int = 0) -> Evidence | None:
    """A quotation from a step; None if the step says nothing."""
    steps = episode.trace.steps
    return _quotation(episode, step_text(steps[index]) if 0 <= index < len(steps) else "", i, step=index)


def in_field(episode: Episode, field: str, i: int = 0) -> Evidence | None:
    """A quotation from a field of the row by its dotted path; None if the row has no such field."""
    return _quotation(episode, field_text(episode.trace.row, field), i, field=field)


def _quotation(episode: Episode, text: str | None, i: int, **place: Any) -> Evidence | None:
    rollout = episode.trace.rollout
    return Evidence(rollout.run, rollout.task, rollout.repeat, quote=quoted(text, i), **place) if text else None


# ---- Calls with their results ---------------------------------------------------------------------

READ, WRITE, CHECK = "read", "write", "check"

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
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


@cache
def _verbs() -> Mapping[str, frozenset[str]]:
    import yaml

    verbs = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return {does: frozenset(words.split()) for does, words in verbs.items()}


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
    if tool.lower().rpartition("__")[2] not in _verbs()["shells"]:
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
    verbs, words = _verbs(), [word.lower() for word in _WORD.findall(tool.rpartition("__")[2])]
    if words and (words[0] in verbs["reads"] or words[0] == "escalate" or not verbs["hands_over"].isdisjoint(words)):
        return READ
    if not verbs["writes"].isdisjoint(words):
        return WRITE
    return READ if verbs["checks"].isdisjoint(words) else CHECK


def declared_tools(row: Mapping[str, Any]) -> dict[str, Any]:
    """Declared tools by name, each as it is declared (a chat-style one unwrapped)."""
    params = row.get("responses_create_params")
    result: dict[str, Any] = {}
    listed = params.get("tools") if isinstance(params, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            inner = entry.get("function")
            tool = inner if isinstance(inner, dict) else entry
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


# ---- What the task asks and expects ----------------------------------------------------------------

_ANSWERS = (
    "expected_answer expected_output gold_answer gold ground_truth reference_answer correct_answer target "
    "answer_key label solution answer expected_outputs".split()
)
ACTIONS = "expected_actions gold_actions expected_tool_calls expected_calls ground_truth_actions actions".split()
_PERHAPS = ("ground_truth", "expected_answers")  # where every entry calls a tool that the row declares
_HOLDERS = ("", "verifier_metadata", "metadata", "verifier")
ARGUMENTS = ("kwargs", "arguments", "args", "parameters", "input")
_MAX_GOLD = 2000


def gold(row: Mapping[str, Any]) -> Gold:
    """What the row says its task expects."""
    answer, answer_field = _first(row, _ANSWERS, _as_answer)
    actions, actions_field = _first(row, ACTIONS, _as_actions)
    if not actions:
        actions, actions_field = _first(row, _PERHAPS, lambda value: _called(value, row))
    return Gold(answer, answer_field, actions or (), actions_field)


def _first(row: Mapping[str, Any], names: Iterable[str], take: Any) -> tuple[Any, str | None]:
    for holder in _HOLDERS:
        inner = row.get(holder) if holder else row
        if isinstance(inner, Mapping):
            for name in names:
                value = take(inner[name]) if name in inner else None
                if value:
                    return value, f"{holder}.{name}" if holder else name
    return None, None


def _called(value: Any, row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The calls of a list in which every entry calls a tool of the row; of any other value none."""
    entries = value if isinstance(value, list) else ()
    if not all(any(key in _inner(entry) for key in ARGUMENTS) for entry in entries):
        return ()
    result = _as_actions(entries)
    is_whole = len(result) == len(entries) and {name for name, _ in result} <= set(declared_tools(row))
    return result if is_whole else ()


def _inner(entry: Any) -> Mapping[str, Any]:
    """The name and arguments of a call, which may stand within its `function`."""
    if not isinstance(entry, Mapping):
        return {}
    return entry["function"] if isinstance(entry.get("function"), Mapping) else entry


def _as_answer(value: Any) -> str | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    return text if 0 < len(text) <= _MAX_GOLD else None


def _as_actions(value: Any) -> tuple[tuple[str, Any], ...]:
    """Calls the model must make; an action that the user takes is none of them."""
    result = []
    for entry in value if isinstance(value, list) else ():
        if not isinstance(entry, Mapping) or entry.get("requestor", "assistant") not in ("assistant", "agent"):
            continue
        source = _inner(entry)
        name = source.get("name", source.get("tool"))
        if isinstance(name, str):
            arguments: Any = next((source[key] for key in ARGUMENTS if key in source), {})
            result.append((name, parsed(arguments) if isinstance(arguments, str) else arguments))
    return tuple(result)


def prompt(row: Mapping[str, Any]) -> str:
    """All text of the request: instructions and input."""
    params = row.get("responses_create_params")
    return "\n".join(_texts(params, ("instructions", "input"))) if isinstance(params, Mapping) else ""


def _texts(value: Any, keys: Sequence[str] = ("content", "text", "output", "arguments")) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, Mapping):
        for key in keys:
            if value.get(key):
                yield from _texts(value[key])
