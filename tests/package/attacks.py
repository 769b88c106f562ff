"""Reports made from a golden one that must not score like it: word games, denials, inventions, other data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from random import Random

import msgspec

TEXT_LIMIT, EVIDENCE_LIMIT = 0.25, 0.40
OTHER = Path(__file__).with_name("other_report.md")
TEMPLATE = Path(__file__).with_name("generic_report.md")

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ASIDE = re.compile(r"^ {0,3}>")
_ITEM = re.compile(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)(.*)$")
class Material(msgspec.Struct, frozen=True):
    """What attacks are made of."""

    golden: str
    facts: tuple[str, ...]  # the prose of the anchors
    ids: tuple[str, ...]  # how the tasks of the runs are called
    ours: tuple[str, ...]  # names of the model and run that the report is about
    others: tuple[str, ...]  # names that stand for them in another run, one for each
    shallow: str = ""
    seed: int = 0


Attack = Callable[[Material], str]


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


# Each says of a sentence that it is not so. Those that are held out use no word that the judge looks for.
BEFORE = {
    "myth": "It is a myth that", "refuted": "The data refute the idea that", "alleged": "Critics wrongly allege that",
}  # fmt: skip
AFTER = {"lie": ", which is a lie.", "wrong": " (this is wrong).", "taken back": ". None of that is true."}
HELD_OUT_BEFORE = {"horoscope": "My horoscope insists that", "pigs": "On the day when pigs fly,"}
HELD_OUT_AFTER = {"april": ", April fool!", "no one": ", said no one ever."}


def framed_before(words: str) -> Attack:
    """An attack that puts words before every sentence."""
    return lambda material: _each(material.golden, lambda part: f"{words} {_lower(part)}")


def framed_after(words: str) -> Attack:
    """An attack that puts words after every sentence."""
    return lambda material: _each(material.golden, lambda part: part.rstrip(".") + words)


def under_heading(material: Material) -> str:
    """Every heading says that what stands under it was refuted."""
    return _outside(material.golden, lambda line: re.sub(r"^(#{2,6} )", r"\1Refuted: ", line))


def under_title(material: Material) -> str:
    """One heading over all others says that they are false."""
    deeper = _outside(material.golden, lambda line: "#" + line if line.startswith("#") else line)
    return f"# False claims\n\n{deeper}"


def under_preface(material: Material) -> str:
    """The first sentence takes back all others."""
    head, _, rest = material.golden.partition("\n")
    return f"{head}\n\nEvery statement in this report is a lie.\n{rest}"


def asked(material: Material) -> str:
    """Every sentence a question."""
    return _each(material.golden, lambda part: f"{part.rstrip('.')}?")


def over_closing(material: Material) -> str:
    """The last sentence takes back all others."""
    return f"{material.golden.rstrip()}\n\nIgnore every word that you have read: the numbers were made up.\n"


def over_refrain(material: Material) -> str:
    """Idle words after every sentence laugh it off, three of them in turn."""
    idle = cycle(("Just kidding.", "Psych!", "Fooled you!"))
    return _each(material.golden, lambda part: f"{part} {next(idle)}")


def hidden(material: Material) -> str:
    """The report in a block that no reader sees."""
    return f"<div hidden>\n\n{material.golden}\n\n</div>\n\nAll is well.\n"


def struck(material: Material) -> str:
    """Every line struck through, and every cell."""

    def strike(line: str) -> str:
        mark = re.match(r"^\s*(?:#{1,6}\s|[-*+>]\s|\d{1,9}[.)]\s)?\s*", line)
        start = mark[0] if mark else ""
        rest = line[len(start) :]
        if not rest.strip() or re.fullmatch(r"[\s|:-]+", line):
            return line
        if not rest.startswith("|"):
            return f"{start}~~{rest.strip()}~~"
        cells = [f" ~~{cell.strip()}~~ " if cell.strip() else cell for cell in rest.strip("|").split("|")]
        return f"|{'|'.join(cells)}|"

    return _outside(material.golden, strike)


_REASONS = (
    "the agent trusts its memory more than the manual", "the agent hurries as soon as a name looks foreign",
    "the prompt tires the agent before the second call", "the agent takes politeness for consent",
    "the agent prefers short words to right ones", "the designers of the agent never tried such a case",
    "the agent reads numbers from right to left", "the agent thinks that the customer is testing it",
)  # fmt: skip
_WHEN = ("", " after the first answer", " late in the day", " while nobody looks", " for no clear reason")


def invented(material: Material) -> str:
    """The golden report and as many claims more that nothing bears out, of tasks that exist."""
    random = Random(f"invented/{material.seed}")
    n = sum(
        len(_sentences(line)) for line, is_quoted in _lines(material.golden) if line.strip() and not is_quoted
    )
    names = [name for name in material.ids if name.isdigit()] or list(material.ids) or ["0"]
    every = list(product(names, _REASONS, _WHEN))  # each once, for what is said twice counts once
    drawn = random.sample(every, min(n, len(every)))
    told = [f"{at}. In task {name} {why}{when}." for at, (name, why, when) in enumerate(drawn, 1)]
    return "\n".join([material.golden, "", "## More Findings", "", *told, ""])


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


_QUOTED = re.compile(r"“[^“”]{20,}”|(?<![\w{:,\[])\"[^\"]{20,}\"(?![\w:}\]])")


def false_quotes(material: Material) -> str:
    """Every quotation replaced by words that no rollout has."""
    random = Random(f"quotes/{material.seed}")
    lines, inside, shell, aside = [], "", False, False
    for line in material.golden.split("\n"):
        fence, was_aside = _FENCE.match(line), aside
        aside = not inside and bool(_ASIDE.match(line))
        if aside:
            lines += [] if was_aside else [f"> {random.choice(_INVENTED)}"]
        elif fence and not inside:
            inside, shell = fence[1], line.strip(" `~") in ("sh", "bash", "console")
            lines.append(line)
            if not shell:
                lines.append(random.choice(_INVENTED))
        elif fence and inside and not line.strip(" `~"):
            inside = ""
            lines.append(line)
        elif not inside or shell:
            lines.append(_QUOTED.sub(lambda hit: f"{hit[0][0]}{random.choice(_INVENTED)}{hit[0][-1]}", line))
    return "\n".join(lines)


def generic(material: Material) -> str:
    """A report that would suit any run: it says nothing of this one."""
    return TEMPLATE.read_text(encoding="utf-8")


def shallow(material: Material) -> str:
    return material.shallow


def other_benchmark(material: Material) -> str:
    """The golden report of another benchmark: the right shape, other rollouts."""
    return OTHER.read_text(encoding="utf-8")


ATTACKS: dict[str, tuple[Attack, float]] = {
    "inverted claims": (inverted, TEXT_LIMIT),
    "swapped models": (swapped_models, TEXT_LIMIT),
    "false ids": (false_ids, EVIDENCE_LIMIT),
    "false quotes": (false_quotes, EVIDENCE_LIMIT),
    "generic template": (generic, TEXT_LIMIT),
    "shallow tables": (shallow, TEXT_LIMIT),
    "another benchmark": (other_benchmark, TEXT_LIMIT),
    "denied by headings": (under_heading, TEXT_LIMIT),
    "denied by title": (under_title, TEXT_LIMIT),
    "denied by preface": (under_preface, TEXT_LIMIT),
    "struck through": (struck, TEXT_LIMIT),
    "as questions": (asked, TEXT_LIMIT),
    "denied by closing line": (over_closing, TEXT_LIMIT),
    "denied by refrain": (over_refrain, TEXT_LIMIT),
    "hidden from the reader": (hidden, TEXT_LIMIT),
}
for _told, _make in ((BEFORE | HELD_OUT_BEFORE, framed_before), (AFTER | HELD_OUT_AFTER, framed_after)):
    ATTACKS |= {f"denied: {name}": (_make(words), TEXT_LIMIT) for name, words in _told.items()}
# Reports that keep what is true: they must fall below golden by so much at least.
WORSE: dict[str, tuple[Attack, float]] = {
    "invented claims added": (invented, 0.15),
}


def _each(text: str, change: Callable[[str], str]) -> str:
    return _prose(text, lambda told: " ".join(change(part) for part in _sentences(told)))


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
        yield line, bool(inside or fence or _ASIDE.match(line))
        if fence and not inside:
            inside = fence[1]
        elif fence and line.strip().startswith(inside) and not line.strip(" `~"):
            inside = ""


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[*_`(]*[A-Z0-9`])", text)


def _lower(text: str) -> str:
    word = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if word.istitle() else text


def _like(old: str, new: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() else new
