"""Turn texts into features: words, line templates, script, form and length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from blade import answers, events

MAX_GIVEN = 2000  # characters of what the model was given, for words that are not its own
MAX_WORDS = 50
_HEAD, _TAIL = 1000, 500
_WORD = re.compile(r"[^\W\d_]{4,24}")
_SCRIPTS = (
    ("Han", 0x4E00, 0x9FFF),
    ("kana", 0x3040, 0x30FF),
    ("Hangul", 0xAC00, 0xD7AF),
    ("Cyrillic", 0x0400, 0x04FF),
    ("Arabic", 0x0600, 0x06FF),
    ("Hebrew", 0x0590, 0x05FF),
    ("Devanagari", 0x0900, 0x097F),
    ("Greek", 0x0370, 0x03FF),
    ("Thai", 0x0E00, 0x0E7F),
)
MAX_PLAIN = 5  # words of an answer that says nothing of how it came about
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_DENIALS = ("not ", "n't ", "n’t ", " no ", "unable ")
_LITERAL = re.compile(r"[bfru]?[\[({\"']")
_LEAD = re.compile(r"^\W*(?:the\s+)?(?:final\s+)?answer\s*(?:is|:|=)+\W*", re.IGNORECASE)
_FRAME = " \n\t.$*[]()\\"  # what may stand around a boxed answer
# Words of any English text.
_EMPTY = frozenset(
    "about after also been before being both could does each either even every from have here into just "
    "know like made make many more most much must only other over same should since some such than that "
    "their them then there these they this those through under until very want were what when where "
    "which while will with within would your".split()
)
# Words with which a judge gives its verdict: they restate the reward and explain nothing.
_VERDICT = frozenset(
    "correct incorrect incorrectly correctly right wrong match matches matched matching equal equals same "
    "equivalent identical different differs pass passed passes fail failed fails failing failure success "
    "successful successfully score scored reward grade graded verdict true false accurate inaccurate "
    "accurately valid invalid answer answers answered therefore thus consistent inconsistent satisfied "
    "satisfies mismatch".split()
)


def rounded(number: float) -> str:
    """A number in two significant digits above 99: cuts need no more, and texts stay few."""
    if number != number or abs(number) == float("inf"):
        return "0"
    if abs(number) >= 100:
        return f"{float(f'{number:.2g}'):.0f}"
    return f"{number:.3g}"


def _ends_of(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"


def words(text: str) -> list[str]:
    """The first distinct words of a text and of its end, in lower case."""
    return [word for word in dict.fromkeys(_WORD.findall(_ends_of(text).lower())) if word not in _EMPTY][
        :MAX_WORDS
    ]


@lru_cache(maxsize=64)  # many tasks share one prompt
def words_of(text: str) -> frozenset[str]:
    """All words of a text."""
    return frozenset(_WORD.findall(text.lower()))


def judged_words(text: str) -> list[str]:
    """The words of a judge, without those that give the verdict."""
    return [word for word in words(text) if word not in _VERDICT][:40]


@lru_cache(maxsize=20_000)
def template(text: str) -> str:
    """The first line of a text that says something, with volatile values masked."""
    for line in text[:600].splitlines():
        found = events.masked(line[:200], 70)
        if len(_WORD.findall(found)) >= 2:
            return found
    return ""


def final_lines(text: str) -> Iterator[str]:
    """The templates with which a final text opens and closes."""
    opening = template(text[:600])
    if opening:
        yield f"opens_with({opening})"
    lines = text[-600:].rstrip().splitlines()
    closing = template(lines[-1]) if len(lines) > 1 else ""
    if closing:
        yield f"closes_with({closing})"


def form(text: str, asked: bool = False) -> Iterator[str]:
    """What a final text looks like; `asked`: the task expects an answer."""
    stripped = text.strip()
    if not stripped:
        yield "final_empty"
        return
    yield f"#final_chars={rounded(len(stripped))}"
    shape = _ends_of(stripped)
    for name, told in (
        ("code fence", "```" in shape),
        ("boxed answer", "\\boxed" in shape),
        ("table or heading", "\n|" in shape or "\n#" in shape),
        ("list", "\n- " in shape or "\n* " in shape or "\n1." in shape),
        ("thinking tag", "<think" in shape or "</think" in shape),
        ("tool call as text", "<tool_call" in shape or '{"name":' in shape),
        ("question at the end", stripped[-1] in "?？"),
        ("closing punctuation mark", stripped[-1] in ".!?。！？…"),
        ("bracket or quote at its beginning that stays open", _stays_open(stripped)),
        ("abstention", abstains(stripped)),
    ):
        if told:
            yield f"final_has({name})"
    if stripped[0] in "{[" and stripped[-1] in "}]":
        yield "final_is(JSON)"
    if _only_answers(stripped, asked):
        yield "final_is(answer only)"
    if not stripped.isascii():
        yield from _scripts(stripped)


def _stays_open(text: str) -> bool:
    first = text[0]
    if first in _CLOSES:
        return text.count(first) > text.count(_CLOSES[first])
    return first in "\"'" and len(text) > 1 and text.count(first) == 1


def abstains(text: str) -> bool:
    """Whether a text says that it has no answer; only what denies something is read closely."""
    parts = f" {_ends_of(text).lower()}".replace("\n", ". ").split(".")
    denying = [part for part in parts if any(word in part for word in _DENIALS)]
    return bool(denying) and answers.abstains(".".join(denying)) >= 0


def _only_answers(text: str, asked: bool) -> bool:
    """Whether a text gives its answer and no word on how it came about."""
    if asked and _LITERAL.match(text) and text[-1] in "])}\"'":
        return True
    if len(text) > answers.MAX_ANSWER:
        return False
    inner = answers.boxed(text)
    if inner is not None:
        told = text[text.rfind("\\boxed") :].partition("{")[2]
        rest = text[: text.rfind("\\boxed")] + told[len(inner) + 1 :]
        return not _LEAD.sub("", rest).strip(_FRAME)
    said = _LEAD.sub("", text).strip()
    return asked and "\n" not in said and len(said.split()) <= MAX_PLAIN and said[-1:] not in ("", "?", "!")


def _scripts(text: str) -> Iterator[str]:
    head = text[:400]
    points = [point for sign in head if (point := ord(sign)) > 0x2FF]
    if len(points) * 10 > len(head):
        for name, low, high in _SCRIPTS:
            if sum(low <= point <= high for point in points) * 10 > len(head):
                yield f"final_script({name})"
