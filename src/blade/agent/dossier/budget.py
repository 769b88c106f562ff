"""Share a budget of tokens among the parts of a page, the more urgent first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blade.agent.dossier import tokens

Lines = list[str]
_LEAST = 8  # tokens: with less room left nothing more is tried


@dataclass
class Part:
    """A few lines at one of several levels of detail; nothing as long as no level fits."""

    levels: Sequence[Callable[[], Lines]]
    shown: Lines = field(default_factory=list)
    spent: int = 0
    level: int = -1


@dataclass
class Page:
    """Parts in the order of print, and the room that is left."""

    room: int  # hundredths of a token
    parts: list[Part] = field(default_factory=list)

    def add(self, *levels: Callable[[], Lines]) -> Part:
        part = Part(levels)
        self.parts.append(part)
        return part

    def raise_to(self, part: Part, level: int = 0, also: int = 0) -> bool:
        """Show a part in more detail if there is room; `also` is what this costs elsewhere."""
        level = min(level, len(part.levels) - 1)
        if level <= part.level:
            return True
        if self.room < _LEAST * tokens.UNIT:
            return False
        lines = part.levels[level]()
        spent = price(lines)
        if spent - part.spent + also > self.room:
            return False
        self.room -= spent - part.spent + also
        part.shown, part.spent, part.level = lines, spent, level
        return True

    def lines(self) -> Lines:
        return [line for part in self.parts for line in part.shown]


def price(lines: Lines) -> int:
    return sum(tokens.cost(line) + tokens.NEWLINE for line in lines)
