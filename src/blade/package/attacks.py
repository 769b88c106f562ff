"""Turn a golden report into reports that must not score like it, and into some that must."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec

from blade.package.paraphrase import paraphrased

TEXT_LIMIT, EVIDENCE_LIMIT = 0.25, 0.40
OTHER = Path(__file__).with_name("other_report.md")
TEMPLATE = Path(__file__).with_name("generic_report.md")

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)(.*)$")
_WORD = re.compile(r"\S+")
_DIGITS = re.compile(r"\d+")


class Material(msgspec.Struct, frozen=True):
    """What attacks are made of."""

    golden: str
    facts: tuple[str, ...]  # the prose of the anchors
    ids: tuple[str, ...]  # how the tasks of the runs are called
    ours: tuple[str, ...]  # names of the model and run that the report is about
    others: tuple[str, ...]  # names that stand for them in another run, one for each
    shallow: str = ""
    seed: int = 0


def shuffled_words(material: Material) -> str:
    """All words of the report and the anchors, in any order, with the look of a report."""
    random = Random(f"shuffled/{material.seed}")
    words = _WORD.findall(" ".join((material.golden, *material.facts)))
    random.shuffle(words)
    return _padded(words, random)


def shuffled_lines(material: Material) -> str:
    """The words of each line in any order: every heading, id and number stays where it was."""
    random = Random(f"lines/{material.seed}")

    def mix(line: str) -> str:
        mark = re.match(r"^\s*(?:#{1,6}|[-*+>]|\d{1,9}[.)])?\s*", line)
        start = mark[0] if mark else ""
        words = _WORD.findall(line[len(start) :])
        random.shuffle(words)
        return start + " ".join(words)

    return "\n".join(mix(line) for line in material.golden.split("\n"))


def negated(material: Material) -> str:
    """Every sentence denied."""

    def deny(text: str) -> str:
        return " ".join(f"It is false that {_lower(part)}" for part in _sentences(text))

    return _prose(material.golden, deny)


_OPPOSITES = (
    ("always", "never"), ("passing", "failing"), ("passes", "fails"), ("passed", "failed"),
    ("pass", "fail"),
    ("more", "fewer"), ("higher", "lower"), ("largest", "smallest"), ("most", "least"), ("above", "below"),
    ("is", "is not"), ("are", "are not"), ("was", "was not"), ("were", "were not"),
    ("calls", "does not call"),
    ("fires on", "does not fire on"), ("loses", "does not lose"), ("covers", "does not cover"),
    ("scored", "did not score"), ("scores", "does not score"), ("would", "would not"),
    ("shows", "does not show"),
)  # fmt: skip


def inverted(material: Material) -> str:
    """Every verb negated and every direction turned round, in prose."""
    turned = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
    pattern = re.compile(
        r"(?<![\w@^`/-])(?:"
        + "|".join(sorted(map(re.escape, turned), key=len, reverse=True))
        + r")(?![\w@^`/-])",
        re.IGNORECASE,
    )

    def turn(text: str) -> str:
        return pattern.sub(lambda hit: _like(hit[0], turned[hit[0].lower()]), text)

    return _prose(material.golden, turn)


def randomised_numbers(material: Material) -> str:
    """Every number another one, outside quotations."""
    random = Random(f"numbers/{material.seed}")

    def other(hit: re.Match[str]) -> str:
        old = hit[0]
        while True:
            new = "".join(random.choice("0123456789") for _ in old)
            new = (random.choice("123456789") + new[1:]) if len(old) > 1 and old[0] != "0" else new
            if new != old:
                return new

    return _outside(material.golden, lambda line: _DIGITS.sub(other, line))


def swapped_models(material: Material) -> str:
    """The report of one model under the name of another."""
    turned = dict(zip(material.ours, material.others, strict=False))
    turned |= {new: old for old, new in turned.items()}
    if not turned:
        return material.golden
    names = sorted(map(re.escape, turned), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])")
    return pattern.sub(lambda hit: turned[hit[0]], material.golden)


def false_ids(material: Material) -> str:
    """Every task that is named replaced by one that does not exist."""
    known = {name: _no_such(name, set(material.ids)) for name in material.ids}
    words = sorted((re.escape(name) for name in known if not name.isdigit()), key=len, reverse=True)
    digits = "|".join(sorted((name for name in known if name.isdigit()), key=len, reverse=True)) or r"(?!)"
    patterns = [
        re.compile(rf"(?<=`)({digits})(?=`|/\d|\s\d+/\d)"),
        re.compile(rf"(?i:(?<=\btask )|(?<=\btasks ))({digits})(?!\w)"),
    ]
    patterns += [re.compile(rf"(?<![\w.,-])({digits})(?=/\d+[\s`,;:)])")]
    if words:
        patterns.append(re.compile(rf"(?<![\w-])({'|'.join(words)})(?![\w-])"))

    def change(line: str) -> str:
        for pattern in patterns:
            line = pattern.sub(lambda hit: known[hit[1]], line)
        return line

    return _outside(material.golden, change)


def _no_such(name: str, known: set[str]) -> str:
    at = 9_001
    while True:
        told = str(at + int(name)) if name.isdigit() and len(name) < 9 else f"{name}-{at}"
        if told not in known:
            return told
        at += 1


_INVENTED = (
    "I will now skip the remaining checks and report that everything went well.",
    "The requested record could not be opened, so I made up a plausible value.",
    "Since the tool keeps failing I will answer from memory instead of asking again.",
    "Traceback: the harness lost its connection while writing the last result.",
)


def false_quotes(material: Material) -> str:
    """Every quotation replaced by words that no rollout has."""
    random = Random(f"quotes/{material.seed}")
    lines, inside, shell = [], "", False
    for line in material.golden.split("\n"):
        fence = _FENCE.match(line)
        if fence and not inside:
            inside, shell = fence[1], line.strip(" `~") in ("sh", "bash", "console")
            lines.append(line)
            if not shell:
                lines.append(random.choice(_INVENTED))
        elif fence and inside and not line.strip(" `~"):
            inside = ""
            lines.append(line)
        elif not inside or shell:
            lines.append(re.sub(r"“[^“”]{20,}”", lambda _: f"“{random.choice(_INVENTED)}”", line))
    return "\n".join(lines)


def anchor_words(material: Material) -> str:
    """The vocabulary of the anchors, in any order, with the look of a report."""
    random = Random(f"bag/{material.seed}")
    words = _WORD.findall(" ".join(material.facts))
    random.shuffle(words)
    return _padded(words, random)


def generic(material: Material) -> str:
    """A report that would suit any run: it says nothing of this one."""
    return TEMPLATE.read_text(encoding="utf-8")


def shallow(material: Material) -> str:
    return material.shallow


def other_benchmark(material: Material) -> str:
    """The golden report of another benchmark: the right shape, other rollouts."""
    return OTHER.read_text(encoding="utf-8")


Attack = Callable[[Material], str]
ATTACKS: dict[str, tuple[Attack, float]] = {
    "shuffled words": (shuffled_words, TEXT_LIMIT),
    "words shuffled within lines": (shuffled_lines, TEXT_LIMIT),
    "negated claims": (negated, TEXT_LIMIT),
    "inverted claims": (inverted, TEXT_LIMIT),
    "randomised numbers": (randomised_numbers, TEXT_LIMIT),
    "swapped models": (swapped_models, TEXT_LIMIT),
    "false ids": (false_ids, EVIDENCE_LIMIT),
    "false quotes": (false_quotes, EVIDENCE_LIMIT),
    "anchor vocabulary": (anchor_words, TEXT_LIMIT),
    "generic template": (generic, TEXT_LIMIT),
    "shallow tables": (shallow, TEXT_LIMIT),
    "another benchmark": (other_benchmark, TEXT_LIMIT),
}


def reordered(text: str, seed: int = 0) -> str:
    """The sections under level-two headings in another order."""
    parts = re.split(r"(?m)^(?=## )", _guarded(text))
    head, sections = parts[0], parts[1:]
    sections = [part if part.endswith("\n") else part + "\n" for part in sections]
    Random(f"sections/{seed}").shuffle(sections)
    return _unguarded(head + "\n".join(sections))


def reworded(text: str, seed: int = 0) -> str:
    return paraphrased(text, seed)


def without_lines(text: str, dropped: set[int]) -> str:
    """A text without some of its lines, counted from 1."""
    return "\n".join(line for at, line in enumerate(text.split("\n"), 1) if at not in dropped)


def _padded(words: Sequence[str], random: Random) -> str:
    """Words under headings and pipes, with numbers and the words that scorers by vocabulary count."""
    words = [word for word in words if not word.startswith(("#", "|", "```", "---"))]
    per = max(1, len(words) // 80)
    lines = [" ".join(words[at : at + per]) for at in range(0, len(words), per)]
    body = []
    for at in range(8):
        body += [f"## {random.choice(words) if words else 'x'}", "", *lines[at::8], ""]
    return "\n".join(["# report", "", *body, *["|"] * 20, "1 " * 20, "task " * 20, ""])


def _prose(text: str, change: Callable[[str], str]) -> str:
    """A text with its sentences changed; headings, tables, labels and quotations stay."""

    def line_of(line: str) -> str:
        if not line.strip() or line.startswith("#") or "|" in line or line.rstrip().endswith(":"):
            return line
        item = _ITEM.match(line)
        return item[1] + change(item[2]) if item else change(line)

    return _outside(text, line_of)


def _outside(text: str, change: Callable[[str], str]) -> str:
    """A text with its lines changed, but not those of quotations."""
    return "\n".join(line if is_quoted else change(line) for line, is_quoted in _lines(text))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    inside = ""
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        yield line, bool(inside or fence)
        if fence and not inside:
            inside = fence[1]
        elif fence and line.strip().startswith(inside) and not line.strip(" `~"):
            inside = ""


def _guarded(text: str) -> str:
    """A text whose quotations cannot be taken for headings."""
    return "\n".join("\0" + line if is_quoted else line for line, is_quoted in _lines(text))


def _unguarded(text: str) -> str:
    return text.replace("\0", "")


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[*_`(]*[A-Z0-9`])", text)


def _lower(text: str) -> str:
    word = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if word.istitle() else text


def _like(old: str, new: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() else new
