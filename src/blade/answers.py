"""Read answers out of texts and compare them by what they mean: boxes, announcements, numbers, dates, LaTeX, literals, letters."""

from __future__ import annotations

import ast
import json
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

_BOXED = re.compile(r"\\boxed\s*\{")
# A box and its brace, a box without one, a sign that LaTeX escapes, or a plain brace.
_BRACES = re.compile(r"\\f?boxed\s*\{|\\f?boxed\s+(?P<bare>[^\s{}$\\]+)|\\.|[{}]", re.DOTALL)
_TOLD = re.compile(r"(?:final answer|answer)\s*(?:is\s*:?|:|=)\s*(.+)", re.IGNORECASE)
_DECORATION = re.compile(r"\\(?:text|mathrm|mathbf|left|right|,|;|!)|[*_`$]|\\[()\[\]]")
_NUMBER_IN = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_UNIT = re.compile(r"^[\s]*(?:%|percent|dollars?|usd|units?|cm|mm|km|m|kg|g|hours?|minutes?|seconds?|days?)?\s*$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+")
MAX_ANSWER = 400


def boxed(text: str) -> str | None:
    """The content of the last `\\boxed{}` of a text."""
    starts = [hit.end() for hit in _BOXED.finditer(text)]
    if not starts:
        return None
    depth, start = 1, starts[-1]
    for place in range(start, min(len(text), start + MAX_ANSWER)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place]
    return None


def last_box(text: str) -> tuple[int, str] | None:
    """Where the last `\\boxed{…}` that closes ends, and all it holds, braces matched.

    Only offsets are kept on the way: boxes within boxes would otherwise cost memory by the square.
    """
    if "boxed" not in text:
        return None
    result: tuple[int, int, int] | None = None  # where its content starts and ends, and where it ends itself
    open_braces: list[int] = []  # where the content of a box starts; -1 for any other brace
    for sign in _BRACES.finditer(text):
        delimiter = sign[0]
        if delimiter == "}":
            start = open_braces.pop() if open_braces else -1
            if start >= 0:
                result = (start, sign.start(), sign.end())
        elif delimiter == "{":
            open_braces.append(-1)
        elif sign["bare"]:
            bare = sign["bare"].rstrip(".,;")
            result = (sign.start("bare"), sign.start("bare") + len(bare), sign.end())
        elif delimiter.endswith("{") and "boxed" in delimiter:
            open_braces.append(sign.end())
    return (result[2], text[result[0] : result[1]].strip()) if result else None


def answer_in(text: str) -> str | None:
    """The answer a final text gives: boxed, announced, or the whole text if it is short."""
    result = boxed(text)
    if result is not None:
        return result
    announcements = _TOLD.findall(text)
    if announcements:
        return str(announcements[-1]).strip()[:MAX_ANSWER]
    stripped = text.strip()
    return stripped if 0 < len(stripped) <= 80 else None


@lru_cache(maxsize=20_000)
def normalised(answer: str) -> str:
    """An answer without decoration, case, articles, thousands separators and units."""
    text = _DECORATION.sub("", answer[:MAX_ANSWER]).strip().strip(".;:!,\"' ").casefold()
    number = _plain_number(text)
    if number is not None:
        return f"{number:.10g}"
    return _ARTICLE.sub("", re.sub(r"\s+", " ", text)).strip("{} ")


def _plain_number(text: str) -> float | None:
    """The number a text is, whatever its separators and unit; None if it says more than a number."""
    hit = _NUMBER_IN.search(text)
    if hit is None or text[: hit.start()].strip(" ($£€") or not _UNIT.match(text[hit.end() :].strip(") .")):
        return None
    try:
        return float(hit.group().replace(",", ""))
    except ValueError:
        return None


# ---- Answers beside golds -------------------------------------------------------------------------

_FENCE = re.compile(r"```[\w+-]*\n?(.*?)```", re.DOTALL)
_TAG = re.compile(r"<(\w{1,40})>\s*([^<>]{1,400}?)\s*</\1>|\[(\w{1,40})\]\s*(.{1,400}?)\s*\[/\3\]", re.DOTALL)
_ANNOUNCED = re.compile(r"answer\W{0,4}(?:is\b\W{0,4}|:\W{0,3}|=\s*)(.+)", re.IGNORECASE)
LEADING = re.compile(r"\A\W*([-+]?\d[\d,]*(?:\.\d+)?)(?=[\s*°%$€£a-zA-Z]|\Z)")
_EQUALS = re.compile(r"(?<![=<>!+*/-])(==?)(?!=)\s*")


def candidates(final: str, submitted: str) -> dict[str, str]:
    """What a rollout answers, by where it stands: box, tag, announcement, fence, last line, whole text, call."""
    result: dict[str, str] = {}
    text = final.strip()
    if (inner := boxed(text)) is not None:
        result["box"] = inner
    if tags := _TAG.findall(text[-4000:]):
        result["tag"] = tags[-1][1] or tags[-1][3]
    if announcements := _ANNOUNCED.findall(text[-2000:]):
        result["announced"] = announcements[-1].strip().rstrip(".")
        if head := LEADING.match(result["announced"]):
            result["announced number"] = head[1]  # without its unit or what is said about it
    if fences := _FENCE.findall(text):
        result["fence"] = fences[-1].strip()
    if text:
        result["line"] = text.rpartition("\n")[2].strip()
        result["whole"] = text
    if submitted:
        result["call"] = submitted
    for name in ("tag", "fence", "line"):
        if name in result and (side := _right_side(result[name])):
            result[f"{name} after ="] = side
    return {name: value[: MAX_ANSWER + 1] for name, value in result.items() if value}


def _right_side(text: str) -> str:
    """What stands behind the last `==` of a text, else behind its last `=`; empty without one."""
    signs = list(_EQUALS.finditer(text[: 2 * MAX_ANSWER]))
    double = [sign for sign in signs if sign[1] == "=="] or signs
    return text[double[-1].end() :].strip() if double else ""


_SPACING = re.compile(r"\\(?:left|right|,|;|!|:|quad|qquad|displaystyle|limits)(?![a-zA-Z])|~")
_WRAPPER = re.compile(r"\\(?:text|mathrm|mathbf|mbox|operatorname|textbf|mathit)\s*\{([^{}]*)\}")
_SHORT_FRACTION = re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\d)")
_DEGREES = re.compile(r"\^\s*\{?\\circ\}?|\\degree|°")
_MEMBER = re.compile(r"^\s*[a-zA-Z]\w?\s*\\in\s*")
_TRAILING = re.compile(r"\\(?:text|mathrm|mbox)\s*\{[^{}]*\}\s*(?:\^\s*\{?\d\}?)?\s*$")  # a unit
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}")
_MIXED = re.compile(r"^(-?\d+)\s*\\[dt]?frac\s*\{(\d+)\}\s*\{(\d+)\}$")
_NUMBER = re.compile(r"^[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?$")
_UNITS = re.compile(r"^([-+]?[\d.,]*\d)\s*(?:\\?%|[a-zA-Z°]{1,12}(?:\^?\{?[23]\}?)?|\\?\$)\.?$")
_SIMPLE_FRACTION = re.compile(r"\\frac\s*\{(\w+)\}\s*\{(\w+)\}")
_LINE_SPACE = re.compile(r"\\\\\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\]")
_ORDINAL = re.compile(r"\^\s*\{?\\(?:text|mathrm)\s*\{(?:st|nd|rd|th)\}\}?")
_OPTION = re.compile(r"^\W*(?:\\text\s*\{\s*)?(?:\(([A-Z])\)|([A-Z])(?:[).:*]|\s*$))")
_LETTER = re.compile(r"^\(?([A-Za-z])\)?[.:)]?$")


@lru_cache(maxsize=50_000)
def value_of(text: str) -> Any:
    """What a text says, in a form in which equal answers are equal: tagged with the type it was read as."""
    plain = text.strip()
    parsed = literal(plain)
    if parsed is not None:
        return parsed
    plain = _SPACING.sub("", plain.strip("$ ").removeprefix("\\(").removesuffix("\\)"))
    plain = _SHORT_ROOT.sub(r"\\sqrt{\1}", _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", plain))
    plain = _MEMBER.sub("", _ORDINAL.sub("", _DEGREES.sub("", plain))).replace("\\$", "").replace("\\%", "%").replace("{,}", ",")
    if (parsed := literal(plain.strip())) is not None:
        return parsed
    if (date := _date(plain.strip())) is not None:
        return "date", date
    plain = _TRAILING.sub("", plain).strip() or plain
    plain = re.sub(r"^\s*[a-zA-Z]\w?\s*=\s*", "", plain)
    if (mixed := _MIXED.match(plain)) is not None:
        whole, above, below = (int(part) for part in mixed.groups())
        if below:
            return "number", Fraction(whole) + (1 if whole >= 0 else -1) * Fraction(above, below)
    plain = _WRAPPER.sub(r"\1", plain)
    if (parsed := literal(plain.strip())) is not None:
        return parsed
    if (number := as_number(plain)) is not None:
        return "number", number
    if (letter := _LETTER.match(plain.strip("*` "))) is not None:
        return "letter", letter[1].upper()
    text = re.sub(r"\\[dt]frac", r"\\frac", plain).replace("\\cdot", "*").replace("\\times", "*")
    text = _SIMPLE_FRACTION.sub(r"\1/\2", _LINE_SPACE.sub(r"\\\\", text))
    text = re.sub(r"\s*([-+*/])\s*", r"\1", re.sub(r"(\d)\s+([a-z])\b", r"\1\2", text))
    text = re.sub(r"\s+", " ", text.strip(".;:!,*`\"' ")).casefold()
    if "\\" in text or re.search(r"[=^_{}()]", text):  # in a formula spaces say nothing
        text = re.sub(r"\s+", "", text)
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and all(parts) and not re.search(r"[\[\](){}]", text):
        return "list", tuple(sorted(str(value_of(part)) for part in parts))  # solutions in whatever order
    return "text", text


_MONTHS = {name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DAYS = tuple(map(re.compile, (
    r"^(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})$",
    r"^(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?P<month>[A-Za-z]{3,9})\.?,?\s+(?P<year>\d{4})\.?$",
    r"^(?P<month>[A-Za-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})\.?$",
)))  # fmt: skip


def _date(text: str) -> tuple[int, int, int] | None:
    """A day that is written out, whatever the order of its parts; all-digit forms other than ISO may mean two days."""
    hit = next((hit for pattern in _DAYS if (hit := pattern.match(text))), None)
    if hit is None:
        return None
    year, day = int(hit["year"]), int(hit["day"])
    month = int(hit["month"]) if hit["month"].isdecimal() else _MONTHS.get(hit["month"][:3].lower(), 0)
    return (year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


_DIGITS = re.compile(r"^(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})$")


def _is_day(text: str, date: tuple[int, int, int]) -> bool:
    """Whether an all-digit day can be read as a given one, be it with the day or with the month first."""
    hit = _DIGITS.match(text.strip())
    return hit is not None and date in ((int(hit[3]), int(hit[1]), int(hit[2])), (int(hit[3]), int(hit[2]), int(hit[1])))


def literal(text: str) -> Any:
    """A text that is a Python or JSON literal of more than a number, as its value; None if it is none."""
    if not text or len(text) > MAX_ANSWER or text[0] not in "[{(\"'TFNtfn":
        return None
    for read in (ast.literal_eval, json.loads):
        try:
            parsed = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(parsed, str | list | dict | tuple | bool | set) or parsed is None:
            return "literal", repr(_sorted(parsed))
    return None


def _sorted(value: Any) -> Any:
    """The same value whatever the order of keys, whole floats as integers, tuples as lists."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=repr)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    if isinstance(value, set):
        return sorted(map(repr, value))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def as_number(text: str) -> Fraction | None:
    """The number that a text is, whatever its separators, fraction or unit."""
    plain = text.strip().strip("*`$ ").rstrip(".").replace("\\$", "").replace("\\%", "%").replace("{,}", ",")
    if (fraction := _FRACTION.fullmatch(plain.lstrip("-"))) is not None:
        above, below = as_number(fraction[1]), as_number(fraction[2])
        if above is not None and below:
            return (-1 if plain.startswith("-") else 1) * above / below
    if (unit := _UNITS.match(plain)) is not None:
        plain = unit[1]
    if not plain or not plain[-1].isdigit():
        return None
    if "/" in plain:
        first, _, second = plain.partition("/")
        parts = as_number(first), as_number(second)
        return parts[0] / parts[1] if parts[0] is not None and parts[1] else None
    if not _NUMBER.match(plain) or not any(c.isdigit() for c in plain):
        return None
    try:
        exponent = plain.lower().partition("e")[2]
        return Fraction(plain.replace(",", "")) if abs(int(exponent or 0)) < 300 else None
    except (ValueError, ZeroDivisionError):
        return None


def is_same(answer: str, gold: str) -> bool:
    """Whether an answer is the gold: parsed values where the gold is a literal, meaning otherwise."""
    if not answer.strip() or not gold.strip():
        return False
    first, second = value_of(answer), value_of(gold)
    if first == second:
        return True
    if "date" in (first[0], second[0]):
        return _is_day(answer, second[1]) if second[0] == "date" else _is_day(gold, first[1])
    if "literal" in (first[0], second[0]):
        return _literal_string(first) is not None and _literal_string(first) == _literal_string(second)
    if second[0] == "letter" and (option := _OPTION.match(answer.strip())) is not None:
        return bool((option[1] or option[2]) == second[1])  # an option with its text behind it
    if "=" in answer and "=" not in gold:
        before, _, side = answer.rpartition("=")
        is_one = not re.search(r"[,;]|\band\b", before)  # `p = 17, m = 110` gives two values
        return is_one and bool(side.strip(". ")) and is_same(side.strip().rstrip("."), gold)
    if _opens_with(answer, gold):
        return True
    if first[0] == second[0] == "number":
        return bool(abs(first[1] - second[1]) <= abs(second[1]) * Fraction(1, 10**9))
    return False


_WRAP = re.compile(r"\\(?:text|mathrm|textbf|mbox)\{([^{}]*)\}")
_ELSE = re.compile(r"[,;]|n['’]t\b|\b(?:and|or|not|no|never|cannot|but|nor|than|if|except|without|unless)\b", re.IGNORECASE)
_PLAIN_WORDS = frozenset("yes no all none both some any true false".split())  # that begin a sentence which says something else
MORE_WORDS = 3  # after a name, from which what follows is a sentence about it and not more of the name


def _opens_with(answer: str, gold: str) -> bool:
    """Whether an answer is a sentence that begins with the gold, a name, and brings in nothing else."""
    if len(answer) <= len(gold):
        return False
    name, text = (_WRAP.sub(r"\1", part).strip(" .$*") for part in (gold, answer))
    if len(name) < 3 or not name.replace(" ", "").isalpha() or len(text) > MAX_ANSWER or name.casefold() in _PLAIN_WORDS:
        return False
    rest = text[len(name) :]
    # a capital after it is more of the name, or of another
    is_first = text[: len(name)].casefold() == name.casefold() and rest[:1] == " " and rest.lstrip()[:1].islower()
    return is_first and len(rest.split()) >= MORE_WORDS and _ELSE.search(rest) is None


def _literal_string(value: Any) -> str | None:
    """The text of a quoted literal or of a bare word, case kept; None for all other values."""
    return value[1] if value[0] == "literal" and value[1][:1] in "'\"" else None


def is_closed(text: str) -> bool:
    """Whether an answer is of a closed type: a number, a letter or a literal."""
    return bool(text.strip()) and value_of(text)[0] in ("number", "letter", "literal", "date")


def words(text: str) -> frozenset[str]:
    """The words and numbers of a free answer that carry what it says."""
    return frozenset(word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3 or word.isdigit())
