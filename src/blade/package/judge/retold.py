"""Find what a sentence adds to a recomputed one: words that frame it, verbs that turn it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from blade.check.aligned import Reference
from blade.check.likeness import tokens, word_differences
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.package.calibrate.paraphrase import OTHER_WORDS
from blade.package.judge.frames import is_small, is_untrue
from blade.package.judge.polarity import signs, turned
from blade.package.judge.units import SAME, Unit, is_note, is_pointer
from blade.prose.document import Statement
from blade.prose.slots import slots

MIN_WORDS = 4  # from which on a sentence that nothing bears out is a claim, not a caption
_NEUTRAL = frozenset(
    """
    overall altogether again likewise furthermore moreover besides also thus hence therefore meanwhile
    finally first second third next then note notably specifically namely summary short brief total
    concretely more over with into than both when where while whereas since because until among across
    against between during after before per out up run runs model agent task tasks rollout rollouts repeat
    repeats benchmark report data rows show shows see
    """.split()
)


def with_retelling(read: Sequence[Unit], world: World) -> tuple[Unit, ...]:
    """Units whose sentences are those of the rows only as far as they add nothing to them.

    Words that stand around a recomputed sentence may say anything of it, so they leave it unproved; a verb
    that turns it contradicts it; and a sentence that nothing bears out is a claim that cannot be verified.
    """
    told = _vocabulary(world.reference)
    return tuple(_retold(unit, world, told) if unit.kind == "sentence" else unit for unit in read)


class _Vocabulary:
    """The words of the recomputed pages, but those that call a saying untrue."""

    def __init__(self, reference: Reference) -> None:
        known = {word for words in reference.words for word in words}
        self.words = {word for word in known if not is_untrue(word)} | _NEUTRAL | OTHER_WORDS

    def adds(self, text: str, reference: str) -> list[str]:
        """The words that a sentence has beyond its reference and that are not known to say nothing."""
        ours, theirs = (Counter(word for word, _ in tokens(one)) for one in (text, reference))
        more = ours - theirs
        return [word for word in more if word not in self.words and not is_small(word)]


@lru_cache(maxsize=4)
def _vocabulary(reference: Reference) -> _Vocabulary:
    return _Vocabulary(reference)


def _retold(unit: Unit, world: World, told: _Vocabulary) -> Unit:
    again = any(one.why == SAME for one in unit.assertions)
    if not (unit.verdict is None or (again and unit.verdict == SUPPORTED)):
        return unit
    statement = Statement(unit.text, unit.line, unit.last_line, unit.section)
    if world.reference.same_text(statement) or (again and world.reference.same_skeleton(statement)):
        return unit
    like = _like(statement, world)
    if unit.verdict is None:
        is_known = like is not None and not told.adds(unit.text, like.text)
        return unit if is_known or not _is_claim(unit) else replace(unit, verdict=UNVERIFIABLE)
    if like is None:
        return unit
    if turned(unit.text, like.text):
        found, meant = (" ".join(signs(one)) or "no such word" for one in (unit.text, like.text))
        part = Assertion(
            CONTRADICTED, "direction", unit.line, unit.last_line, unit.text, found, meant,
            f"the rows give: {like.text}",
        )  # fmt: skip
        return replace(unit, verdict=CONTRADICTED, assertions=(*unit.assertions, part))
    is_more = bool(told.adds(unit.text, like.text))
    return replace(unit, verdict=UNVERIFIABLE, denied=True) if is_more else unit


def _like(statement: Statement, world: World) -> Statement | None:
    """The recomputed sentence that a statement says again, in whatever words."""
    wanted = _slots(statement.text)
    alike = [one for one in world.reference.alike(statement) if _slots(one.text) == wanted]
    alike = [one for one in alike if word_differences(statement.text, one.text) == []]
    ours = Counter(word for word, _ in tokens(statement.text))

    def beyond(one: Statement) -> int:
        return (ours - Counter(word for word, _ in tokens(one.text))).total()

    return min(alike, key=beyond, default=None)


def _slots(text: str) -> list[tuple[str, str]]:
    return sorted(
        (slot.kind, f"{slot.value:g}/{slot.of}" if slot.value is not None else slot.text)
        for slot in slots(text)
    )


_ASKS = re.compile(r"[:?]\W*$")


def _is_claim(unit: Unit) -> bool:
    """Whether a sentence without numbers and names states something: no label, question or note."""
    is_open = not _ASKS.search(unit.text) and not is_pointer(unit.text)
    return len(unit.text.split()) >= MIN_WORDS and is_open and not is_note(unit)
