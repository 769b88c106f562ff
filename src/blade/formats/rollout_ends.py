"""Read how a rollout ends: its last call, and the answer that the last message of the model gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from blade.formats.rollout_steps import flat, kind_of, text_of

MAX_ANSWER = 300  # characters
MAX_LINE = 200  # characters of a last line that may be an answer
_REACH = 20_000  # characters from the end of a message within which its answer is looked for
_TAGGED = re.compile(
    r"<(\w{1,40})>\s*([^<>]{1,300}?)\s*</\1>|\[(\w{1,40})\]\s*(.{1,300}?)\s*\[/\3\]", re.DOTALL
)

# Where an answer was read: the codes of the column `answer_source`.
SOURCES = ("none", "boxed", "tagged", "final line")


# The end of one rollout: its answer, where that was read (a code into SOURCES), its last tool, and the
# arguments of that call; a plain tuple, since one is made for every row.
Final = tuple[str | None, int, str | None, str | None]
NOTHING: Final = (None, 0, None, None)


class Part(msgspec.Struct, gc=False):
    text: str | None = None


_CONTENT = msgspec.json.Decoder(str | list[Part] | None)  # what nearly all messages hold


def final_of(output: Sequence[Any] | None, n_calls: int) -> Final:
    """The end of a rollout whose output items are structs, from the last item on back to the last call."""
    if not output:
        return NOTHING
    last = output[-1]
    is_plain = not n_calls and type(last) is not list and last.tool_calls is msgspec.UNSET
    if is_plain and kind_of(last.type, last.role) == "message":  # a simulated user may have the last word
        return (*answer_in(_text(last.content) or ""), None, None)
    text = tool = arguments = None
    is_answered = False
    for item in reversed(flat(output)):
        kind = kind_of(item.type, item.role)
        if kind == "message" and not is_answered:
            text, is_answered = _text(item.content), True
        if kind == "call":
            tool, arguments = item.name or item.type, _text(item.arguments)
            break
        if kind == "message" and (call := _last_call(item.tool_calls)):
            tool, arguments = call
            break
    return (*answer_in(text or ""), tool, arguments[:MAX_ANSWER] if arguments else None)


def final_of_steps(steps: Sequence[Mapping[str, Any]]) -> Final:
    """The end of a rollout whose steps were read one by one."""
    message, call = (next((s for s in reversed(steps) if s["kind"] == kind), None) for kind in ("message", "call"))
    answer, source = answer_in(message["text"] if message else "")
    if call is None:
        return answer, source, None, None
    return answer, source, call.get("tool"), (call.get("arguments") or "")[:MAX_ANSWER]


def answer_in(text: str) -> tuple[str | None, int]:
    """The answer that a message gives, and where: the last box, the last tagged text, or the last line."""
    text = text[-_REACH:].rstrip()
    if not text:
        return None, 0
    # one character is looked for first, which is many times faster
    if "\\" in text and "\\boxed" in text and (inner := _braced(text, text.rfind("\\boxed") + 6)) is not None:
        return inner[:MAX_ANSWER], 1
    if ("<" in text or ("[" in text and "[/" in text)) and (tags := _TAGGED.findall(text[-2000:])):
        return tags[-1][1] or tags[-1][3], 2
    start = text.rfind("\n") + 1
    if len(text) - start > 2 * MAX_LINE or not (line := text[start:].strip()) or len(line) > MAX_LINE:
        return None, 0
    return line, 3


def _braced(text: str, start: int) -> str | None:
    """What stands between the braces that open at `start`."""
    start = text.find("{", start, start + 3)
    if start < 0:
        return None
    depth = 0
    for place in range(start, min(len(text), start + 4 * MAX_ANSWER)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return text[start + 1 : place].strip()
    return None


def _text(value: Any) -> str | None:
    """The text of raw content: a string, or parts that hold one."""
    if value is msgspec.UNSET:
        return None
    try:
        content: str | list[Part] | None = _CONTENT.decode(value)
        if content is None or isinstance(content, str):
            return content
        texts = [part.text for part in content if part.text]
        if len(texts) == len(content):
            return "\n".join(texts)
    except (msgspec.DecodeError, RecursionError):
        pass
    content = _decoded(value)
    return text_of(content) if content is not None else None


def _decoded(value: Any) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def _last_call(value: Any) -> tuple[str | None, str | None] | None:
    """Name and arguments of the last of some chat-style calls."""
    calls = _decoded(value) if value is not msgspec.UNSET else None
    last = calls[-1] if isinstance(calls, list) and calls else None
    if not isinstance(last, Mapping):
        return None
    inner = last.get("function")
    function: Mapping[str, Any] = inner if isinstance(inner, Mapping) else last
    name, arguments = function.get("name"), function.get("arguments", function.get("input"))
    return name if isinstance(name, str) else None, text_of(arguments)
