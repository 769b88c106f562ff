"""Read from a Responses object of any shape what the model said last, the blocks of code in it, and what it called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

# Some templates open the thought in the prompt, so that only its end stands in the answer.
THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
THOUGHT_OPENS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)

# What a block of code stands between, with the language it names.
FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^\s`{]*+)[^`\n]*+$")

# What only sets the type of its content.
WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|rm|bf)\s*\{([^{}]*)\}")


@dataclass(frozen=True)
class Call:
    """One function call: its name, its arguments, or why these could not be read."""

    name: str
    arguments: dict[str, Any] | None
    problem: str = ""


def items(response: Any) -> Iterator[dict[str, Any]]:
    """The output items in order; lists within the list, as some environments write them, are opened."""
    output = response.get("output") if isinstance(response, dict) else None
    waiting = list(reversed(output)) if isinstance(output, list) else []
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            yield item


def text_of(content: Any) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            text = part.get("text", part.get("refusal"))
            parts.append(text if isinstance(text, str) else "")
    return "".join(parts)


def last(response: Any) -> str:
    """The text of the last assistant message as it stands; empty when there is none."""
    text = ""
    for item in items(response):
        if item.get("type", "message") == "message" and item.get("role", "assistant") == "assistant":
            text = text_of(item.get("content"))
    # Half a surrogate pair can stand in JSON, but not in a file of UTF-8.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def answer(response: Any) -> str:
    """The last assistant message without its thoughts; a thought that never ended is no answer."""
    text = last(response)
    if "<" not in text:
        return text.strip()
    ends = list(THOUGHT_ENDS.finditer(text))
    rest = text[ends[-1].end() :] if ends else text
    return "" if THOUGHT_OPENS.match(rest) else rest.strip()


def calls(response: Any) -> list[Call]:
    """Every function call of the response, in order."""
    return [call(item) for item in items(response) if item.get("type") == "function_call"]


def call(item: dict[str, Any]) -> Call:
    """A function call item, read; its arguments are a JSON text, or already an object in some files."""
    name, arguments = item.get("name"), item.get("arguments")
    if not isinstance(name, str):
        return Call("", None, "the call has no name")
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (msgspec.DecodeError, RecursionError) as error:
            return Call(name, None, f"the arguments are not JSON: {error}")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return Call(name, None, "the arguments are not a JSON object")
    return Call(name, arguments)


def unwrapped(text: str) -> str:
    r"""Without `\text{…}` and its like."""
    for _ in range(3 if "\\" in text else 0):
        text = WRAPPER.sub(r"\1", text)
    return text.strip()


@dataclass(frozen=True)
class Block:
    """One block; without an end when the text stopped inside it."""

    language: str
    code: str
    is_closed: bool


def blocks(text: str) -> list[Block]:
    """Every block, in order."""
    closed_blocks: list[Block] = []
    fence, indent, language, lines = "", "", "", list[str]()
    for line in text.split("\n"):
        match = FENCE.match(line)
        if not fence:
            if match:
                fence, indent, language, lines = match["fence"], match["indent"], match["language"].lower(), []
        elif match and match["fence"].startswith(fence) and not match["language"]:
            closed_blocks.append(Block(language, "\n".join(lines), True))
            fence = ""
        else:
            lines.append(line.removeprefix(indent))  # a block in a list stands as far in as its fence
    if fence:
        closed_blocks.append(Block(language, "\n".join(lines), False))
    return closed_blocks


def closed(text: str) -> list[str]:
    """What the blocks hold that were opened and closed, in order."""
    return [block.code for block in blocks(text) if block.is_closed]


def last_block(text: str, languages: tuple[str, ...]) -> str | None:
    """The last block in one of the languages, else without one, else any; one that was cut off only without others."""
    every = blocks(text)
    usable = [block for block in every if block.is_closed] or every
    named = [block for block in usable if block.language in languages]
    chosen = named or [block for block in usable if not block.language] or usable
    return chosen[-1].code if chosen else None
