"""Judge a short answer by its text: equal, or nearly equal, to one of the accepted answers.

Both texts go through `normal`: one form of every sign (NFKC, superscripts kept apart from digits), no case,
one space. Three more steps are settings, since NeMo Gym does not take them: leading articles go, marks around
the answer go (those inside stay: `C#`, `-5`, `3.14`, `U.S.`), and numbers are written one way (`1,000`, `+5`,
`2.0`, `twelve`). A near match never forgives a number, a numeral, an initial or a negation.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

from blade.answers import last_box
from blade.errors import UsageError
from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row, required
from blade_eval.expressions import Expressions
from blade_eval.replies import unwrapped

PATTERNS = Expressions("string_match")

AROUND = " \"'`*_“”‘’«»„[]{}<>.,;:!?"
LONGEST = 20_000  # characters more than four times an accepted answer's, of what can be one
DEEPEST = 10  # brackets within brackets around an answer
PAIRS = {"(": ")", "[": "]", "{": "}", "$": "$"}

DASHES = dict.fromkeys(map(ord, "‐‑‒–—−"), "-")
QUOTES = {ord("‘"): "'", ord("’"): "'", ord("“"): '"', ord("”"): '"'}

OPPOSITES = ("un", "in", "im", "ir", "il", "non", "non-", "dis")

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SPELLED = [*ONES, *(f"{ten} {unit}".rstrip() for ten in TENS for unit in ("", *ONES[1:10]))]
NUMBERS = {words: str(number) for number, words in enumerate(SPELLED)}


@dataclass(frozen=True)
class Rules:
    """What the settings say about equality."""

    case_sensitive: bool = False
    ignore_articles: bool = False
    ignore_punctuation: bool = False
    normalize_numbers: bool = False
    match_mode: str = "exact"
    fuzzy_threshold: float = 90.0
    extraction_mode: str = "final_answer"


def environment(settings: Mapping[str, Any]) -> Environment:
    """Text match as the settings say; rows may name their own `extraction_mode` and `case_sensitive`."""
    own = {name: settings[name] for name in Rules.__dataclass_fields__ if settings.get(name) is not None}
    rules = Rules(**own)
    if rules.match_mode not in ("exact", "fuzzy"):
        hint = "match_mode is exact or fuzzy"
        raise UsageError(f"string_match has no match mode {rules.match_mode!r}", hint, "environment-settings")
    if rules.match_mode == "fuzzy":
        required("rapidfuzz", "rapidfuzz", "string_match")
    return Environment("string_match", partial(verify, rules), answer=lambda row: row.get("extracted_answer"))


async def verify(rules: Rules, attempt: Attempt) -> Row:
    """The reward and what was taken for the answer; `similarity` (0 to 100) where near is enough."""
    accepted = accepted_of(attempt.row)
    mode = str(task_row.field(attempt.row, "extraction_mode") or rules.extraction_mode)
    if mode not in EXTRACTIONS:
        raise task_row.faulty(f"the extraction mode {mode!r} is none of {', '.join(sorted(EXTRACTIONS))}")
    answer = EXTRACTIONS[mode](replies.answer(attempt.response))
    own_case = task_row.field(attempt.row, "case_sensitive")
    case = rules.case_sensitive if own_case is None else bool(own_case)
    expected = task_row.field(attempt.row, "expected_answer", accepted)
    fields: Row = {"reward": 0.0, "expected_answer": expected, "extracted_answer": answer}
    wanted = [normal(text, rules, case) for text in accepted]
    most = LONGEST + 4 * max(map(len, accepted))
    got = normal(answer, rules, case) if answer is not None and len(answer) <= most else ""
    equal = bool(got) and got in wanted
    if rules.match_mode == "exact":
        return {**fields, "reward": float(equal)}
    near = max((similarity(got, text) for text in wanted), default=0.0) if got else 0.0
    return {**fields, "reward": float(equal or near >= rules.fuzzy_threshold), "similarity": near}


def accepted_of(row: Row) -> list[str]:
    """The accepted answers: `expected_answer`, one or several, and `accepted_answers`."""
    answer: list[Any] = []
    for name in ("expected_answer", "accepted_answers"):
        value = task_row.field(row, name, [])
        answer.extend(value if isinstance(value, list) else [value])
    accepted = [str(value) for value in answer if isinstance(value, (str, int, float))]
    if not any(text.strip() for text in accepted):
        raise task_row.faulty("the row has no expected_answer")
    return accepted


def final_answer(text: str) -> str | None:
    """What follows the last `Answer:` on its line, or on the next; else what the last box holds."""
    prefixed = deque(PATTERNS.prefix.finditer(text), maxlen=1)  # the text may say it a hundred thousand times
    return (prefixed[0][1].strip() or None) if prefixed else boxed(text)


def boxed(text: str) -> str | None:
    """What the last box holds."""
    box = last_box(text)
    return unwrapped(box[1]) if box else None


def last_line(text: str) -> str | None:
    """The last line that is not blank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None


EXTRACTIONS: dict[str, Callable[[str], str | None]] = {
    "final_answer": final_answer, "boxed": boxed, "last_line": last_line,
    "full_response": lambda text: text or None,
}


def normal(text: str, rules: Rules, case_sensitive: bool) -> str:
    """A text in the form in which answers are compared."""
    text = PATTERNS.superscripts.sub(lambda sign: "^" + unicodedata.normalize("NFKC", sign[0]), text)
    text = unicodedata.normalize("NFKC", text).translate(DASHES).translate(QUOTES)
    text = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    text = " ".join(text.split())
    if rules.ignore_punctuation:
        text = bare(text)
    if rules.ignore_articles:
        text = PATTERNS.article.sub("", text)
    if not case_sensitive:
        text = text.casefold()
    return number(text) if rules.normalize_numbers else text


def bare(text: str) -> str:
    """Without the marks around it; a bracket goes only with its partner, and a sign of a number stays."""
    for _ in range(DEEPEST):
        before = text
        text = text.strip(AROUND) if not PATTERNS.number.fullmatch(text) else text
        if len(text) > 2 and PAIRS.get(text[0]) == text[-1]:
            text = text[1:-1]
    return text or before


def number(text: str) -> str:
    """Numbers written one way; leading zeros and decimals that are not zero mean something and stay."""
    text = PATTERNS.grouped.sub(lambda answer: answer[0].replace(",", ""), text)
    text = PATTERNS.plus.sub("", PATTERNS.whole.sub(r"\1", text))
    return NUMBERS.get(" ".join(text.casefold().replace("-", " ").split()), text)


def similarity(got: str, wanted: str) -> float:
    """From 0 to 100; 0 when numbers, numerals, initials or negations differ, however alike the rest is."""
    ours, other = got.casefold(), wanted.casefold()
    is_same = (
        same(PATTERNS.number, got, wanted) and same(PATTERNS.numeral, ours, other)
        and same(PATTERNS.negation, ours, other) and not unlike(ours, other) and not opposed(ours, other)
    )  # fmt: skip
    return float(import_module("rapidfuzz.fuzz").ratio(got, wanted)) if is_same else 0.0


def same(pattern: re.Pattern[str], got: str, wanted: str) -> bool:
    """Whether an expression finds the same in both texts, each as often."""
    return Counter(pattern.findall(got)) == Counter(pattern.findall(wanted))


def unlike(got: str, wanted: str) -> bool:
    """Whether a letter of its own is in one text and not in the other; "U.S." is also "US"."""
    mine, theirs = (
        {re.sub(r"\W", "", letters) for letters in PATTERNS.initials.findall(text)} for text in (got, wanted)
    )
    return bool(mine - theirs - set(PATTERNS.word.findall(wanted)) or theirs - mine - set(PATTERNS.word.findall(got)))


def opposed(got: str, wanted: str) -> bool:
    """Whether a word of one text is one of the other with a syllable that negates it."""
    mine, theirs = set(got.split()) - set(wanted.split()), set(wanted.split()) - set(got.split())
    pairs = [*product(mine, [theirs]), *product(theirs, [mine])]
    return any(prefix + word in others for word, others in pairs for prefix in OPPOSITES)
