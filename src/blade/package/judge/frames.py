"""Find words that take back what stands in, beside or under them: denial, doubt, strikethrough."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

DENIED, TOLD = "denied", "told"

# Beginnings of words that call a saying untrue, and whole words after them. Words that analyses use of what
# an agent does (fail, miss, reject an answer) are not here: they take nothing back.
_UNTRUE = tuple(
    """
falsehood falsity untru inaccura incorrect erroneous mistaken myth misconception fallac hoax bogus nonsens
humbug canard fiction fictiti fabricat invent imaginary rumour rumor satir sarcas joke joking kidding prank
parody refut rebut disprov debunk dispel discredit disput deny denies denied denying denial disagree doubt
dubious contradict belies disbelie distrust mistrust sceptic skeptic alleg purport supposedly ostensibl
so-called reputed pretend pretence feign absurd ridicul prepost implausib improbab impossib inconceiv
unthink unbeliev unfounded baseless groundless unsupported unsubstant unwarrant misl retract withdrawn
disavow disown recant revok contrary delusion deluded figment misinform disinform misstate misrepresent
untenable spurious
""".split()
)
_UNTRUE_WORDS = frozenset("false falsely wrong wrongly lie lies lying liar liars bunk rubbish".split())
_UNSURE = tuple(
    """
suppos assum imagin hypothe conject specul questionab suspect unlikely unproven unclear uncertain pretext
perhaps maybe wonder dream what-if
""".split()
)
_TRUE = frozenset(
    """
    true truth truly correct correctly right real accurate valid reliable believe believes believed
    believable belief trust trusts trusted trustworthy rely relied accept accepted seriously credible
    credence
    """.split()
)
_BORNE = frozenset(
    """
    so case evidence proof prove proves proved proven reason reasons basis support supports supported sign
    signs indication think thinks hold holds show shows showed shown suggest suggests mean means imply
    implies indicate indicates confirm confirms confirmed establish establishes demonstrate demonstrates
    conclude concluded follow follows likely plausible claim claims say says said assert asserts find
    found see seen clear agree agrees fact grounds ground certain
    """.split()
)
_HOLDS = frozenset(
    "is was be been conclude concludes write writes state states maintain argue argues infer infers".split()
)
_NO = frozenset(
    "not no nor never none nothing nobody neither cannot hardly scarcely barely without few little".split()
)
_SAYING = frozenset(
    """
    claim claims statement statements sentence sentences assertion assertions finding findings conclusion
    conclusions idea ideas notion notions belief beliefs view views word words paragraph paragraphs
    section sections report reports analysis document documents page pages text story stories content
    contents hypothesis hypotheses
    """.split()
)
_GROUND = frozenset("data rows rollouts evidence fact facts expected".split())
_WHOLE = frozenset("report analysis document page text file".split())
_POINTING = frozenset("following below above here this these those everything anything all".split())
_SMALL = frozenset(
    """
    a an the this that these those it its is are was were be been being has have had to of in on at by as
    for from and or but i we you they one which what who all every each some any most everything anything
    very quite simply just plain plainly clearly totally completely entirely utterly course here there
    above below following previous preceding last would will should can could may might must do does did
    if also however actually really indeed us our my such
    """.split()
)
_AGENT = re.compile(
    r"\b(?:agents?|models?|assistant|message|rollouts?|responses?|answers?|reply|user|customers?|tools?|verifier"
    r"|judge|grader|they|repeats?|runs?)\b|\bit\s+(?!is\b|was\b|would\b|has\b|cannot\b|can\b|should\b|isn)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MATRIX = re.compile(r"^\W*(?P<frame>[^\d`“”\"|:;]{2,90}?)\b(?:that|whether)\s+(?=\S+\s+\S)", re.IGNORECASE)
_LEAD = re.compile(r"^\W*(?P<frame>[^\d`“”\"|,:;()]{2,60}?)\s*(?:[,:–—]|\s-)\s*(?=\S+\s+\S)")
_TAIL = re.compile(r"(?:[,;–—(\[]|\s-{1,2}\s)\s*(?P<frame>[^\d`“”\"|,;()\[\]–—]{2,90}?)\W*$")
_WHICH = re.compile(
    r"^(?:which|this|that|it|all of (?:which|this|it)|(?:and|but) (?:this|that|it)|or so|as if|if only)\b",
    re.IGNORECASE,
)
_PREVIOUS = re.compile(
    r"^\W*(?:this|that|it|none of (?:this|that|it|the above)|all of (?:this|that|it)|not|nothing of the sort"
    r"|the (?:previous|preceding|above|last|foregoing) \w+|what was just said)\b",
    re.IGNORECASE,
)
_UNWISE = re.compile(r"\b(?:mistake|error|folly|unwise|foolish|premature|naive) to\b")
_NOT_SO = re.compile(
    r"\b(?:wrong|false|absurd|mistaken?|a mistake|foolish) to (?:doubt|deny|dispute|question)\b"
)


@lru_cache(maxsize=10_000)
def denies(text: str) -> str:
    """`denied` if a sentence says that what it says is not so; `told` if it tells of such words, or doubts.

    Words of denial stand before a clause with `that`, before a colon or comma of their own, or at the end.
    """
    for frame, wide in _frames(text):
        if how := _backs(frame, wide):
            return TOLD if _AGENT.search(frame) else how
    return DENIED if _IS_FALSE.search(text) else ""


def _frames(text: str) -> Iterator[tuple[str, bool]]:
    """Words that stand around what a sentence says, and whether a clause with `that` follows them."""
    if (hit := _MATRIX.match(text)) and _takes_clause(_words(hit["frame"])[-1:]):
        yield hit["frame"], True
    if (hit := _LEAD.match(text)) and _is_bare(hit["frame"]):
        yield hit["frame"], False
    if (hit := _TAIL.search(text)) and (_WHICH.match(hit["frame"]) or _is_bare(hit["frame"])):
        yield hit["frame"], False


_IS_FALSE = re.compile(
    r"(?<!`\s)\b(?:is|are|was|were|be|been)\s+(?:simply |just |plainly |all |both )?"
    r"(?:false|untrue|a lie|lies|a myth|refuted)\b|\bthe (?:opposite|reverse) (?:is true|holds)\b"
    r"|\bno truth\b|\bin no way\b|\bcontrary to (?:fact|what)\b",
    re.IGNORECASE,
)


def _takes_clause(words: Sequence[str]) -> bool:
    """Whether a clause may follow the word; `tasks that fail` has none."""
    known = _TRUE | _BORNE | _SAYING | _HOLDS
    return any(word in known or is_untrue(word) or _is_unsure(word) for word in words)


def _is_unsure(word: str) -> bool:
    return word.startswith(_UNSURE)


def _backs(frame: str, wide: bool = False) -> str:
    """Whether words about a saying call it untrue; a denial denied does not."""
    words = _words(frame)
    negations = sum(word in _NO or word.endswith(("n't", "n’t")) for word in words)
    if any(map(is_untrue, words)) or _UNWISE.search(frame.lower()):
        return "" if negations % 2 or _NOT_SO.search(frame.lower()) else DENIED
    known = _TRUE | _BORNE if wide else _TRUE
    if negations % 2 and any(word in known for word in words):
        return DENIED
    return TOLD if any(map(_is_unsure, words)) else ""


def is_untrue(word: str) -> bool:
    """Whether a word calls something untrue."""
    return word in _UNTRUE_WORDS or word.startswith(_UNTRUE)


def is_small(word: str) -> bool:
    return word in _SMALL


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _is_bare(frame: str) -> bool:
    """Whether words speak of nothing but a saying and its truth."""
    words = _words(frame)
    known = _SMALL | _SAYING | _TRUE | _NO | _GROUND
    return bool(words) and all(word in known or is_untrue(word) or _is_unsure(word) for word in words)


@lru_cache(maxsize=5_000)
def takes_back_below(heading: str) -> bool:
    """Whether a heading says that what stands under it is not so: `Refuted`, `Myths about this run`."""
    lead = re.split(r"\s*[:–—]\s*", heading, maxsplit=1)[0]
    words = _words(lead)
    if not words or _backs(lead) != DENIED:
        return False
    plain = all(word not in ("wrong", "incorrect", "false") for word in words)
    about = re.split(r"\b(?:about|on|concerning|regarding)\b", lead)[0]
    return _is_bare(about) and (plain or bool(set(words) & _SAYING))


_BESIDE = 3  # words beside those of a saying and its truth, up to which a sentence speaks of nothing else


_SELF = r"(?:i|we|the authors?|the writers?)"
_PAGE = r"(?:report|document|analysis|page)"
_UNMADE = (
    r" (?:is|are|was|were|has been|have been) (?:all |just |pure |simply |mere |entirely )*"
    r"(?:made[ -]up|guess(?:es|ed|work)|invented|fabricated|fiction|a joke|a hoax|a prank|nonsense)\b"
)
_DISMISSES = re.compile(
    r"(?:^\W*|[.!;]\s+|\bplease\s+)(?:ignore|disregard|discard|forget|disbelieve)\s+"
    r"(?:(?:every(?:thing)?|all|anything|any|each|the (?:whole|entire|rest))\b.{0,40}"
    rf"\b(?:words?|above|below|{_PAGE}|findings?|claims?|read|written|said|this)\b|this {_PAGE}\b)",
    re.IGNORECASE,
)
# Words with which an author lets go of all that was written, whatever they are followed by.
_WITHDRAWS = re.compile(
    rf"\b(?:this {_PAGE}|(?:the|these|all|our|my) findings"
    rf"|everything (?:here|above|below|in this {_PAGE})){_UNMADE}"
    rf"|^\W*{_SELF} (?:have |just |simply )*(?:made|guessed|invented|fabricated) (?:all of |most of )?"
    r"(?:this|it|all|everything|these|those|that|the (?:numbers|findings|report|claims))\b"
    r"|\bread (?:every|each|all)\b.{0,30}\b(?:as|for) (?:its|their|the) (?:reverse|opposite|contrary)"
    r"|\bwhat (?:comes next|follows|stands (?:here|below)) is (?:pure |mere )?(?:guess|invent|made up)"
    rf"|\b{_SELF} (?:do|does|did|can|will)(?: not|n['’]t) (?:vouch|stand) (?:for|behind) (?:a|any|it|this)\b"
    rf"|^\W*{_SELF} (?:have )?never (?:looked at|read|opened|saw|seen) (?:any of )?"
    r"the (?:rollouts|data|rows)\b",
    re.IGNORECASE,
)
# The same may be said of what an agent writes, so it is on the whole report only where all else was said.
_MADE_UP = re.compile(
    rf"\b(?:all|the|these|our|my) (?:numbers|figures|claims|statements|sentences|results|rest){_UNMADE}",
    re.IGNORECASE,
)
_NOT_ANY = re.compile(r"\b(?:no|none|not|nothing|neither|nor|never)\b|n['’]t\b", re.IGNORECASE)


def withdraws(text: str, is_last: bool = False) -> bool:
    """Whether an author lets go of the whole report: `ignore all of this`, `the numbers were made up`."""
    hit = _WITHDRAWS.search(text) or (_MADE_UP.search(text) if is_last else None)
    hit = hit or (None if _AGENT.search(text) else _DISMISSES.search(text))
    if hit is None or re.search(r"[`“”]|\d{2}", text):
        return False
    return not _NOT_ANY.search(text[: hit.start()].rpartition(";")[2])


def reach(text: str) -> str:
    """How much else a sentence takes back: the `report`, its `section`, the `previous` one, or nothing."""
    words = _words(text)
    if withdraws(text):
        return "report"
    if re.search(r"[\d`“”]", text) or _backs(text) != DENIED or _AGENT.search(text):
        return ""
    if sum(not _is_bare(word) for word in words) > min(_BESIDE, len(words) // 2):
        return ""
    if _PREVIOUS.match(text) and _is_bare(text) and not set(words) & _WHOLE:
        return "previous"
    if set(words) & (_SAYING | {"following", "below", "above"}) and set(words) & (_POINTING | _WHOLE):
        return "report" if set(words) & _WHOLE else "section"
    return "section" if text.rstrip().endswith(":") and _is_bare(text) else ""


_STRUCK = re.compile(
    r"(?<![~\\])~~(?!~)(?=\S).*?(?<=\S)~~(?!~)|<(?P<tag>del|s|strike)\b[^<>]*>.*?</(?P=tag)\s*>",
    re.IGNORECASE | re.DOTALL,
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}(?!.*~))", re.MULTILINE)


def unstruck(text: str) -> str:
    """A report without what is struck through; its lines keep their numbers."""
    return "".join(
        part if is_fenced else _STRUCK.sub(lambda hit: "\n" * hit[0].count("\n"), part)
        for part, is_fenced in parts(text)
    )


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text in and outside of fenced blocks."""
    held: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            yield "".join(held), False
            held, fence = [line], mark[1]
        elif fence and line.strip().startswith(fence) and not line.strip(" `~\r\n"):
            yield "".join([*held, line]), True
            held, fence = [], ""
        else:
            held.append(line)
    yield "".join(held), bool(fence)


def titles(text: str) -> list[tuple[int, str]]:
    """The headings of the first level, each with its line."""
    found, line = [], 1
    for part, is_fenced in parts(text):
        for at, told in enumerate(part.split("\n")):
            if not is_fenced and (hit := re.match(r" {0,3}#\s+(.*?)[#\s]*$", told)):
                found.append((line + at, hit[1]))
        line += part.count("\n")
    return found


_OF_ALL = re.compile(r"^\W*(?:none|all|nothing) of\b", re.IGNORECASE)


def taken_back(sayings: Sequence[tuple[str, tuple[str, ...], bool]]) -> set[int]:
    """Which of a report's parts others take back; each part is its text, the headings above it, if it speaks.

    A part speaks if it is a sentence; rows and quotations take nothing back.
    """
    found: set[int] = set()
    section: tuple[str, ...] | None = None
    last = max((at for at, (_, _, speaks) in enumerate(sayings) if speaks), default=-1)
    for at, (text, headings, speaks) in enumerate(sayings):
        if section is not None and headings[: len(section)] != section:
            section = None
        if section is not None or any(map(takes_back_below, headings)):
            found.add(at)
        how = reach(text) if speaks else ""
        # The last word on a report that speaks of all of it is on more than the sentence before.
        is_last = at == last and (withdraws(text, True) or (how == "previous" and bool(_OF_ALL.match(text))))
        if how == "report" or is_last or (how == "section" and not headings):
            return set(range(len(sayings)))
        if how == "section":
            section = headings
        elif how == "previous" and at:
            found.add(at - 1)
    return found
