"""Make texts that must not pass for a report: pasted facts, shuffled words, other numbers, denials."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

import msgspec

_WORD = re.compile(r"\S+")
_DIGITS = re.compile(r"\d+")
_MARK = re.compile(r"^\s*(?:#{1,6}|[-*+>]|\d{1,9}[.)])?\s*")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[*_`(]*[A-Z0-9`])")


class Material(msgspec.Struct, frozen=True):
    """What attacks are made of."""

    golden: str
    facts: tuple[tuple[str, str | None, float | None], ...]  # sentence, query and value of each anchor
    others: tuple[str, ...] = ()  # golden reports of other models in the package
    seed: int = 0


def pasted(material: Material) -> str:
    """The facts of the anchors, line by line, each with its number cited."""
    lines = [
        f"- {fact} {value}<!--blade: {query}-->" if query is not None else f"- {fact}"
        for fact, query, value in material.facts
    ]
    return "\n".join(["# Findings", "", *lines, ""])


def anchors_file(material: Material) -> str:
    """The file of anchors itself."""
    entries = [{"fact": fact, "query": query, "value": value} for fact, query, value in material.facts]
    return "# Report\n\n" + json.dumps(entries, indent=2, ensure_ascii=False).replace("[", "(", 1)


def keywords(material: Material) -> str:
    """The vocabulary of the anchors in any order, with the look of a report."""
    random = Random(f"keywords/{material.seed}")
    words = _WORD.findall(" ".join(fact for fact, _, _ in material.facts))
    random.shuffle(words)
    size = max(1, len(words) // 8)
    parts = [words[start : start + size] for start in range(0, len(words), size)]
    return "# report\n\n" + "\n\n".join(f"## {part[0]}\n\n{' '.join(part)}" for part in parts) + "\n\n| 1 |\n"


def shuffled(material: Material) -> str:
    """The words of each line in any order: every heading, id and number stays in its line."""
    random = Random(f"shuffled/{material.seed}")

    def mixed(line: str) -> str:
        hit = _MARK.match(line)
        start = hit[0] if hit else ""
        words = _WORD.findall(line[len(start) :])
        random.shuffle(words)
        return start + " ".join(words)

    return "\n".join(mixed(line) for line in material.golden.split("\n"))


def other_numbers(material: Material) -> str:
    """Every number another one."""
    random = Random(f"numbers/{material.seed}")

    def other(hit: re.Match[str]) -> str:
        first = str((int(hit[0][0]) + random.randint(1, 8)) % 9 + 1) if len(hit[0]) > 1 else ""
        rest = "".join(random.choice("0123456789") for _ in hit[0][len(first) :])
        return first + rest if first + rest != hit[0] else first + str((int(rest or 0) + 1) % 10)

    return _DIGITS.sub(other, material.golden)


def negated(material: Material) -> str:
    """Every sentence of the prose denied; headings and tables stay."""

    def denied(line: str) -> str:
        if not line.strip() or line.startswith(("#", "|", ">", "```", "<!--")):
            return line
        hit = _MARK.match(line)
        start = hit[0] if hit else ""
        parts = _SENTENCES.split(line[len(start) :])
        return start + " ".join(f"It is false that {part[:1].lower()}{part[1:]}" for part in parts)

    return "\n".join(denied(line) for line in material.golden.split("\n"))


def headings(material: Material) -> str:
    """The headings of the golden report, with nothing under them."""
    return "\n\n".join(line for line in material.golden.split("\n") if line.startswith("#")) + "\n"


def other_model(material: Material) -> str:
    """The golden report of another model of the package."""
    return material.others[0] if material.others else ""


Attack = Callable[[Material], str]
ATTACKS: dict[str, Attack] = {
    "anchors pasted": pasted,
    "anchors file": anchors_file,
    "keywords": keywords,
    "shuffled words": shuffled,
    "other numbers": other_numbers,
    "negated sentences": negated,
    "empty headings": headings,
    "another model's report": other_model,
}
