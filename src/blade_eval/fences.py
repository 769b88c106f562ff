"""Find the blocks of code in a text: what stands between fences, with the language they name."""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^\s`{]*+)[^`\n]*+$")


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


def last(text: str, languages: tuple[str, ...]) -> str | None:
    """The last block in one of the languages, else the last that names none, else the last of any.

    A block that was never closed counts only when there is no other: its text was cut off.
    """
    every = blocks(text)
    usable = [block for block in every if block.is_closed] or every
    for chosen in (
        [block for block in usable if block.language in languages],
        [block for block in usable if not block.language], usable,
    ):
        if chosen:
            return chosen[-1].code
    return None
