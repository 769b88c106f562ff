"""Hold the sentences of a report beside those its rows give again: the same one, another number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial

from msgspec.structs import replace

from blade.check.likeness import Difference, slot_differences, tokens, without_intervals, word_differences
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, Statement
from blade.prose.slots import CODE, NUMBER, QUOTED, RATIO, Slot, skeleton, slots

KINDS = {NUMBER: "number", RATIO: "share", CODE: "name", QUOTED: "quote"}
CLAUSE = "clause"  # part of a sentence of the reference
_LIKELY = 12  # references whose words are compared with a statement in full
_KEPT = 4_000  # statements whose readings are kept: reports say much again, in the same words
_COMMON = 400  # places from which a word is too common to find a statement by
_NEAR = 0.35  # share of words in common, headings counted in, from which two statements are compared
_FEW = 2  # differences up to which a sentence in other words is the same sentence
_TELLING = 3  # words from which a sentence is known again under another heading


class Reference:
    """The sentences of the recomputed pages, by skeleton and by words."""

    def __init__(self, pages: Iterable[Document]) -> None:
        self.statements = [piece for page in pages for one in page.statements for piece in _pieces(one)]
        self._by_skeleton: dict[str, list[Statement]] = {}
        self._by_text: dict[str, list[Statement]] = {}
        self._by_word: dict[str, list[int]] = {}
        self._under: dict[tuple[str, ...], list[int]] = {}
        self.read = lru_cache(maxsize=_KEPT)(partial(_read, reference=self))
        self._alike = lru_cache(maxsize=_KEPT)(self._most_alike)
        self.words = [frozenset(word for word, _ in tokens(one.text)) for one in self.statements]
        for at, statement in enumerate(self.statements):
            self._by_skeleton.setdefault(skeleton(statement.text), []).append(statement)
            self._by_text.setdefault(statement.text, []).append(statement)
            self._under.setdefault(statement.headings, []).append(at)
            for word in self.words[at]:
                self._by_word.setdefault(word, []).append(at)

    def same_text(self, statement: Statement) -> list[Statement]:
        return self._by_text.get(statement.text, [])

    def same_skeleton(self, statement: Statement) -> list[Statement]:
        return _fit(statement.text, self._by_skeleton.get(skeleton(statement.text), []))

    def alike(self, statement: Statement) -> list[Statement]:
        """The references that share most of their words with a statement, most alike first."""
        return self._alike(statement.text, statement.headings)

    def _most_alike(self, text: str, headings: tuple[str, ...]) -> list[Statement]:
        words = frozenset(word for word, _ in tokens(text)) - set("#$&")
        seen: Counter[int] = Counter()
        for word in sorted(words):  # which of two that are as near goes first is no matter of chance
            places = self._by_word.get(word, ())
            if len(places) <= _COMMON:
                seen.update(places)
        for at in self._under.get(headings, ())[:_COMMON]:
            seen[at] = len(words & self.words[at])
        ranked = [(n / len(words | self.words[at]), at) for at, n in seen.most_common(4 * _LIKELY) if n]
        near = [(share + _nearness(headings, self.statements[at].headings), at) for share, at in ranked]
        near = [(share, at) for share, at in near if share > _NEAR]
        return _fit(text, [self.statements[at] for _, at in sorted(near, reverse=True)])[:_LIKELY]


def _fit(text: str, among: list[Statement]) -> list[Statement]:
    """Without single clauses, if the statement has several: one of them would not speak for the others."""
    return [one for one in among if one.kind != CLAUSE] if "; " in text else among


def _pieces(statement: Statement) -> list[Statement]:
    """A sentence, and each of its clauses: a report may say them one by one."""
    clauses = statement.text.split("; ")
    if len(clauses) == 1 or statement.kind != "sentence":
        return [statement]
    return [statement, *(replace(statement, text=clause, kind=CLAUSE) for clause in clauses)]


def _nearness(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """How much the headings above two statements agree."""
    if one == other:
        return 0.3
    return 0.1 if one[:1] == other[:1] else 0.0


def given_again(document: Document, reference: Reference) -> set[tuple[int, str]]:
    """The statements that the rows give word for word under the same headings, by line and text."""
    return {
        (one.line, one.text)
        for one in document.statements
        if any(other.headings == one.headings for other in reference.same_text(one))
    }


def aligned(document: Document, reference: Reference) -> list[Assertion]:
    """What the recomputed pages say of each statement; nothing of those they have no like of."""
    found: list[Assertion] = []
    for one in document.statements:
        told = reference.read(replace(one, line=0, last_line=0))
        found += [replace(each, line=one.line, last_line=one.last_line) for each in told]
    return found


def _read(statement: Statement, reference: Reference) -> list[Assertion]:
    same = reference.same_skeleton(statement)
    here = _of_same_lead(statement, [one for one in same if one.headings == statement.headings])
    best = _closest(statement, here) if here else None
    if best is not None and not best[1]:
        return _supported(statement)
    if not here and (twins := [one for one in same if slot_differences(statement.text, one.text) == []]):
        return _supported(statement) if twins else []
    if best is not None:
        return _judged(statement, *best)
    if same and len(skeleton(statement.text).replace("#", "").split()) >= _TELLING:
        elsewhere = _closest(statement, same)
        if elsewhere is not None and _is_known_again(statement, elsewhere[1]):
            return _judged(statement, *elsewhere)
    return _reworded(statement, reference)


def _of_same_lead(statement: Statement, among: list[Statement]) -> list[Statement]:
    """Of a list with one item for each run, those of the same item."""
    same = [one for one in among if one.lead == statement.lead]
    return same or among


def _closest(statement: Statement, among: Sequence[Statement]) -> tuple[Statement, list[Difference]] | None:
    """The reference with the fewest other slots; of equal ones the one after the same words."""
    ranked = []
    for at, one in enumerate(among):
        differences = slot_differences(statement.text, one.text)
        if differences is not None:
            ranked.append((len(differences), one.before != statement.before, at, one, differences))
    if not ranked:
        return None
    _, _, _, one, differences = min(ranked, key=lambda rank: rank[:3])
    return one, differences


def _is_known_again(statement: Statement, differences: list[Difference]) -> bool:
    """Under another heading a sentence is the same only if most of what it names and numbers is."""
    n = len(slots(statement.text))
    return n >= 2 and len(differences) * 2 <= n


def _reworded(statement: Statement, reference: Reference) -> list[Assertion]:
    """The like of a statement in other words: rival words and other numbers contradict it."""
    if len(statement.text) > 3_000:
        return []
    alike = reference.alike(statement)
    here = _of_same_lead(statement, [one for one in alike if one.headings == statement.headings])
    here = [one for one in here if (one.kind == "heading") == (statement.kind == "heading")]
    read = _least_different(statement, here)
    if read is None:
        read = _least_different(statement, [one for one in alike if one.headings != statement.headings])
        return _supported(statement) if read is not None and _says_the_same(statement, *read) else []
    if _says_the_same(statement, *read):
        return _supported(statement)
    one, differences = read
    return _judged(statement, one, differences) if 0 < len(differences) <= _FEW else []


def _least_different(
    statement: Statement, among: Sequence[Statement]
) -> tuple[Statement, list[Difference]] | None:
    ranked = []
    for at, one in enumerate(among):
        differences = word_differences(statement.text, one.text)
        if differences is not None:
            ranked.append((len(differences), at, one, differences))
    return min(ranked, key=lambda rank: rank[:2])[2:] if ranked else None


def _says_the_same(statement: Statement, one: Statement, differences: list[Difference]) -> bool:
    return not differences and _same_slots(statement, one)


def _same_slots(statement: Statement, other: Statement) -> bool:
    """Whether two statements name and number the same, in whatever order; intervals may be left out."""
    ours, theirs, bare = (
        sorted(_key(slot) for slot in slots(text))
        for text in (statement.text, other.text, without_intervals(other.text))
    )
    return ours in (theirs, bare)


def _key(slot: Slot) -> tuple[str, str]:
    return slot.kind, f"{slot.value:g}/{slot.of}" if slot.value is not None else slot.text


def _supported(statement: Statement) -> list[Assertion]:
    return [
        _assertion(statement, SUPPORTED, KINDS[slot.kind], statement.text[slot.start : slot.end], slot.start)
        for slot in slots(statement.text)
    ]


def _judged(statement: Statement, one: Statement, differences: list[Difference]) -> list[Assertion]:
    """Every slot of a statement, with those that differ contradicted."""
    wrong = {difference.start: difference for difference in differences}
    found = [
        _assertion(statement, SUPPORTED, KINDS[slot.kind], statement.text[slot.start : slot.end], slot.start)
        for slot in slots(statement.text)
        if slot.start not in wrong
    ]
    for difference in wrong.values():
        kind = KINDS.get(difference.kind, "direction" if difference.kind == "negation" else "word")
        why = f"the rows give: {one.text}"
        found.append(
            _assertion(
                statement, CONTRADICTED, kind, difference.found, difference.start, difference.expected, why
            )
        )
    return found


def _assertion(
    statement: Statement, verdict: str, kind: str, found: str, start: int,
    expected: str | None = None, why: str = "the rows give the same sentence",
) -> Assertion:  # fmt: skip
    return Assertion(
        verdict, kind, statement.line, statement.last_line, statement.text, found, expected, why, start=start
    )
