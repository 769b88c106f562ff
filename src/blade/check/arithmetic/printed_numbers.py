"""Read numbers as printed: value, precision, unit, and whether they are exact."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from blade.check.vocabulary import any_of, compiled, words

Label = frozenset[str]


EMPTY = words("empty")
# Plural and tense: failures, failing and Failed are all `fail`.
_ENDING = re.compile(r"(?<=\w{3})(?:ies|y|ures?|ings?|ed|es|e|(?<!s)s)$")


@lru_cache(maxsize=50_000)
def label(text: str) -> Label:
    """The words of a name that say something, in no order."""
    words = re.findall(r"[^\W_]+(?:[@^][^\W_]+)?", text.lower())
    return frozenset(_ENDING.sub("", word) for word in words if word not in EMPTY)


_SUM = re.compile(r"(?:grand |column |row |sub-?)?(?:totals?|sum)(?: \([^()]*\)| [\w-]+){0,2}:?", re.I)
_ALL = re.compile(r"(?:overall|all|together|combined)(?: [\w-]+){0,2}(?: \([^()]*\))?:?", re.I)


@lru_cache(maxsize=20_000)
def summary(name: str) -> str:
    """What a row or column sums up: `sum` if it must be a sum, `all` if it may be, `other`, or nothing."""
    name = name[:61].strip(" `*")
    is_sum, is_all = _SUM.fullmatch(name), _ALL.fullmatch(name)
    return "other" if any_of("other_summary").search(name) else "sum" if is_sum else "all" if is_all else ""


Span = tuple[float, float]  # the least and the greatest value that a printed number allows


class Figure(msgspec.Struct, frozen=True):
    """A number as printed: 12.5% is 12.5 with the unit % and the step 0.1."""

    text: str
    value: float
    step: float = 1.0  # what one unit of the last printed digit is worth
    unit: str = ""  # %, points, x, $, s, … or nothing
    hedged: bool = False  # about, over, at least, <
    signed: bool = False

    @property
    def is_count(self) -> bool:
        return self.step == 1 and not self.unit and not self.hedged and self.value >= 0

    @property
    def span(self) -> Span:
        half = 0.0 if self.is_count else self.step / 2
        return self.value - half, self.value + half

    @property
    def digits(self) -> int:
        """How many digits say something: 51.5 has 3, 7 has 1, 0 has none."""
        return len(f"{abs(self.value) / self.step:.0f}".lstrip("0"))


class Phrase(msgspec.Struct, frozen=True):
    """A text with ⟨0n⟩ for its first number; n is plain, % a percentage, p points, x a multiple, u others."""

    text: str
    figures: tuple[Figure, ...]
    gaps: tuple[str, ...]  # the words between: gaps[i] precedes figures[i], and one follows the last


_UNITS = {"percent": "%", "×": "x", "times": "x", "seconds": "s", "minutes": "min", "hours": "h"}
_UNITS |= dict.fromkeys("point points pp ppt ppts pts".split(), "points")


@lru_cache(maxsize=50_000)
def phrase(text: str) -> Phrase:
    """A text with its numbers taken out; what is no quantity stays, without its digits."""
    text = text[:3_000].replace("⟨", "<").replace("⟩", ">")
    text = compiled("no_quantity").sub(lambda hit: re.sub(r"\d", "¤", hit[0]), text)
    figures: list[Figure] = []

    def taken(hit: re.Match[str]) -> str:
        figures.append(_figure(hit))
        kind = {"": "n", "%": "%", "points": "p", "x": "x"}.get(figures[-1].unit, "u")
        return f"⟨{len(figures) - 1}{kind}⟩"

    text = compiled("printed_number").sub(taken, text)
    return Phrase(text, tuple(figures), tuple(re.split(r"⟨\d+[n%pxu]⟩", text)))


def _figure(hit: re.Match[str]) -> Figure:
    unit, digits = re.split("[ -]", (hit["unit"] or "").strip(" -"))[-1], hit["digits"].replace(",", "")
    scale = {"k": 1e3, "M": 1e6}.get(unit, 1.0)
    step = scale * 10.0 ** -len(digits.partition(".")[2])
    value = (-1 if hit["sign"] in ("-", "−") else 1) * float(digits) * scale
    unit = "" if scale > 1 else _UNITS.get(unit.lower(), unit.lower()) or hit["money"]
    text = hit[0][len(hit["hedge"] or "") :]
    return Figure(text, value, step, unit, bool(hit["hedge"] or hit["more"]), bool(hit["sign"]))


def meets(figure: Figure, span: Span) -> bool:
    """Whether a printed number can stand for something between two bounds, in its own unit."""
    slack = 1e-9 * max(1.0, abs(span[0]), abs(span[1]))
    return figure.span[0] - slack <= span[1] and span[0] <= figure.span[1] + slack


def agree(figure: Figure, other: Figure) -> bool:
    """Whether two printed numbers can stand for the same value."""
    return figure.unit != other.unit or meets(figure, other.span)


def shown(value: float, like: Figure) -> str:
    """A value printed as another number is."""
    places = len(f"{like.step:.10f}".rstrip("0").partition(".")[2]) if like.step < 1 else 0
    text = f"{'+' * (like.signed and value > 0)}{value:,.{places}f}".replace("-", "−")
    unit = f" {like.unit}" if like.unit == "points" else like.unit
    return f"{unit}{text}" if unit in "$€£" else f"{text}{unit}"


def quotient(part: Figure, whole: Figure, scale: float = 1.0) -> Span:
    """The least and the greatest that part / whole can be."""
    if whole.span[0] <= 0:
        return float("-inf"), float("inf")
    ends = [scale * top / below for top in part.span for below in whole.span]
    return min(ends), max(ends)


def minus(figure: Figure, other: Figure) -> Span:
    return figure.span[0] - other.span[1], figure.span[1] - other.span[0]
