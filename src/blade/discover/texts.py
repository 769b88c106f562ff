"""Turn texts into features: words, line templates, script, form and length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from blade import events

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


def form(text: str) -> Iterator[str]:
    """What a final text looks like."""
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
    ):
        if told:
            yield f"final_has({name})"
    if stripped[0] in "{[" and stripped[-1] in "}]":
        yield "final_is(JSON)"
    if not stripped.isascii():
        yield from _scripts(stripped)


def _scripts(text: str) -> Iterator[str]:
    head = text[:400]
    points = [point for sign in head if (point := ord(sign)) > 0x2FF]
    if len(points) * 10 > len(head):
        for name, low, high in _SCRIPTS:
            if sum(low <= point <= high for point in points) * 10 > len(head):
                yield f"final_script({name})"
