"""Turn two statements into how they differ: in a slot, in a telling word, or in wording alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec

from blade.prose.slots import CODE, NUMBER, QUOTED, RATIO, Slot, rounded, slots

# Words of one group exclude one another: a statement that has one where the rows say another is wrong.
RIVALS = """
always sometimes never
every some no
all some none
all most few
passed failed
passes fails
pass fail
passing failing
success failure
improved regressed equivalent inconclusive
better worse
higher lower
more fewer
more less
most fewest
most least
largest smallest
highest lowest
best worst
first last
above below
increase decrease
increased decreased
rose fell
rises falls
gained lost
gains loses
with without
before after
within between
present absent
agrees differs
problem warning info
cause unproven style
kg uk bi ti ir da undetermined
behavioural gap unreliable verifier infrastructure artifact
baseline candidate
earlier later
faster slower
longer shorter
easy hard
added removed
appeared disappeared
learned forgotten
significant insignificant
systemic flaky idiosyncratic
binary ordinal continuous unbounded constant
harness prompt training data verifier infrastructure
minimum maximum
over under
up down
equal unequal
same different
won lost
one two three four five six seven eight nine ten
""".strip().splitlines()
_GROUPS: dict[str, set[int]] = {}
for _at, _group in enumerate(RIVALS):
    for _word in _group.split():
        _GROUPS.setdefault(_word, set()).add(_at)

NEGATIONS = frozenset(
    "not no never none nothing nobody without neither nor cannot hardly false untrue".split()
)
_NAME = re.compile(r"(?=.*\d)(?=.*[a-z])[\w.-]+")  # a name with a number in it, such as desk-0014
_TOKEN = re.compile(r"[^\W_]+(?:['’_-][^\W_]+)*|[#$&]")
_INTERVAL = re.compile(r"\[[-−+<>≥≤\d.,%\s]{1,40},\s[-−+<>≥≤\d.,%\s]{1,40}(?:points|pp)?\]")
_BOUNDARY = re.compile(r"[,;:()—–]|\b(?:and|but|or|while|whereas|because|that|which|who)\b", re.IGNORECASE)
_LIKE = 0.6  # share of words in common from which two statements may say the same
_CLOSE = 0.75  # the share from which another number in the same place is another value


Words = Sequence[tuple[str, int]]  # each with its place


class Difference(msgspec.Struct, frozen=True):
    """One place where a statement departs from its reference."""

    kind: str  # the kind of the slot, word, or negation
    found: str
    expected: str
    start: int


@lru_cache(maxsize=20_000)
def tokens(text: str) -> Words:
    """The words of a statement outside its slots, each with its place; a slot is one mark."""
    found, at = [], 0
    marks = {NUMBER: "#", RATIO: "#", CODE: "$", QUOTED: "&"}
    for slot in slots(text):
        found += [(hit[0].lower(), at + hit.start()) for hit in _TOKEN.finditer(text[at : slot.start])]
        found.append((marks[slot.kind], slot.start))
        at = slot.end
    found += [(hit[0].lower(), at + hit.start()) for hit in _TOKEN.finditer(text[at:])]
    return tuple(found)


def same_slot(one: Slot, other: Slot) -> bool:
    """Whether a slot can stand for the same thing as that of the reference."""
    if one.kind != other.kind:
        return False
    if one.kind == NUMBER:
        return _same_number(one, other)
    if one.kind == RATIO:
        return (one.value, one.of) == (other.value, other.of)
    return same_text(one.text, other.text)


def _same_number(one: Slot, other: Slot) -> bool:
    if one.value is None or other.value is None or (one.unit == "%") != (other.unit == "%"):
        return False
    if one.bound != other.bound and (one.bound in "<>" or other.bound in "<>"):
        return one.bound == "" == other.bound
    if not (one.unit or other.unit) and {one.value, other.value} & {0, 1} and one.value != other.value:
        # A bare 0 or 1 is no rounded share: 0.96 is not written as 1.
        return abs(one.value - other.value) <= min(rounded(one), rounded(other)) + 1e-12
    # Our pages print 0% and 100% only where they are exact; any other number may be rounded more coarsely.
    is_exact = other.unit == "%" and other.value in (0, 1)
    slack = rounded(one) if is_exact else max(rounded(one), rounded(other))
    return abs(one.value - other.value) <= slack * 0.999 + 1e-12


def same_text(one: str, other: str) -> bool:
    """Whether two names or quotations are the same, as far as both go.

    Where a file lies is no claim about what it holds: any path stands for any other.
    """
    one, other = (" ".join(text.split()) for text in (one, other))
    if one == other or (is_path(one) and is_path(other)):
        return True
    for cut, whole in ((one, other), (other, one)):
        if cut.endswith("…") and len(cut) > 8 and whole.startswith(cut[:-1].rstrip()):
            return True
    return False


_PATH = re.compile(
    r"(?:[~.]{0,2}/|[A-Za-z]:\\)\S.*|[^\s/]+(?:/[^/]+)*/[^/]+\.(?:jsonl?|toml|ya?ml|md|html|gz|zst|csv|txt)"
)


def is_path(text: str) -> bool:
    return bool(_PATH.fullmatch(text))


def slot_differences(text: str, reference: str) -> list[Difference] | None:
    """Where the slots of two statements of one skeleton differ; None when they do not pair up."""
    ours, theirs = slots(text), slots(reference)
    if len(ours) != len(theirs):
        return None
    return [
        Difference(one.kind, text[one.start : one.end], reference[other.start : other.end], one.start)
        for one, other in zip(ours, theirs, strict=True)
        if not same_slot(one, other)
    ]


def word_differences(text: str, reference: str) -> list[Difference] | None:
    """Where meaning differs between two statements alike in their words; None when they are not alike.

    A rival word, a negation more or less, or another value in a slot that stands in the same place.
    """
    if len(_INTERVAL.findall(text)) != len(_INTERVAL.findall(reference)):
        text, reference = without_intervals(text), without_intervals(reference)
    ours, theirs = tokens(text), tokens(reference)
    matcher = SequenceMatcher(None, [word for word, _ in theirs], [word for word, _ in ours], autojunk=False)
    likeness = matcher.ratio() if matcher.quick_ratio() >= _LIKE else 0.0
    if likeness < _LIKE:
        return None
    changed = [
        (theirs[low:high], ours[start:end], start)
        for how, low, high, start, end in matcher.get_opcodes()
        if how != "equal"
    ]
    found = [each for gone, come, _ in changed for each in _rivals(gone, come)]
    if not _says_no_elsewhere(changed, ours, text):
        found += [each for gone, come, start in changed for each in _negated(gone, come, ours, start)]
    if likeness < _CLOSE and not found:
        return [] if _same_numbers(text, reference) else None
    return found + _paired(text, reference, matcher.get_opcodes(), ours, theirs)


def without_intervals(text: str) -> str:
    """A statement without its intervals, which a report may leave out; all else stays in its place."""
    return _INTERVAL.sub(lambda hit: " " * len(hit[0]), text)


def _same_numbers(text: str, reference: str) -> bool:
    ours, theirs = (
        sorted(slot.text for slot in slots(each) if slot.kind != CODE) for each in (text, reference)
    )
    return ours == theirs


def _rivals(gone: Words, come: Words) -> list[Difference]:
    """Words of one group that took each other's place."""
    found = []
    for word, place in come:
        for other, _ in gone:
            if word != other and _excludes(word, other):
                found.append(Difference("word", word, other, place))
    return found


def _excludes(one: str, other: str) -> bool:
    """Whether two words cannot both be right: rivals, one the other denied, or two names."""
    if _GROUPS.get(one, set()) & _GROUPS.get(other, set()):
        return True
    short, long = sorted((one, other), key=len)
    if len(short) > 3 and long in (
        f"un{short}",
        f"in{short}",
        f"im{short}",
        f"dis{short}",
        f"non{short}",
        f"non-{short}",
    ):
        return True
    return bool(_NAME.fullmatch(one) and _NAME.fullmatch(other))


def _says_no_elsewhere(changed: Sequence[tuple[Words, Words, int]], ours: Words, text: str) -> bool:
    """Whether a negation went where another came: `no task can` for `a task cannot`.

    Two that change places across clauses (`a does not and b does`) each turn round what they stand in.
    """
    turned = [
        (n, _is_wide(gone, come), ours[min(start, len(ours) - 1)][1])
        for gone, come, start in changed
        if (n := _negations(come) - _negations(gone)) != 0
    ]
    if not turned or sum(n for n, _, _ in turned) != 0:
        return False
    is_one_clause = not _BOUNDARY.search(text, turned[0][2], turned[-1][2])
    return is_one_clause or any(is_wide for _, is_wide, _ in turned)


def _negations(words: Words) -> int:
    return sum(is_negation(word) for word, _ in words)


def _is_wide(gone: Words, come: Words) -> bool:
    """Whether more than a word changed: a clause that is left out denies nothing."""
    return len(gone) + len(come) > 6 or len(gone) > 2 + len(come)


def _negated(gone: Words, come: Words, ours: Words, start: int) -> list[Difference]:
    if (_negations(gone) - _negations(come)) % 2 == 0 or _is_wide(gone, come):
        return []
    place = next((place for word, place in come if is_negation(word)), ours[min(start, len(ours) - 1)][1])
    said = " ".join(word for word, _ in come) or "(nothing)"
    meant = " ".join(word for word, _ in gone) or "(nothing)"
    return [Difference("negation", said, meant, place)]


def is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith(("n't", "n’t"))


def _paired(
    text: str, reference: str, codes: Sequence[tuple[str, int, int, int, int]],
    ours: Words, theirs: Words,
) -> list[Difference]:  # fmt: skip
    """Slots that stand in the same place of both statements and differ.

    Where one says more than the other its places are not sure: what the other has anywhere is right.
    """
    mine = {slot.start: slot for slot in slots(text)}
    others = {slot.start: slot for slot in slots(reference)}
    anywhere = list(others.values()) if len(mine) != len(others) else []
    found = []
    for how, low, high, start, _ in codes:
        if how != "equal":
            continue
        for at in range(high - low):
            slot, other = mine.get(ours[start + at][1]), others.get(theirs[low + at][1])
            if slot is None or other is None or same_slot(slot, other):
                continue
            if not any(same_slot(slot, one) for one in anywhere):
                found.append(Difference(slot.kind, text[slot.start : slot.end], other.text, slot.start))
    return found
