"""Find what a person names in plain words: the cause of a failure, a behaviour, a tool, a mode."""

from __future__ import annotations

import re
from collections.abc import Mapping

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE

_GRADER = r"(?:verifier|grader|checker|scorer|judge)"
_FLAW = r"(?:fault|bug|error|mistake|flaw|problem)s?"
# Words that mean one cause and hardly another. What an agent does is not among them: any behaviour may be
# told of any task, so it must be the one that a rule found.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "TI": (
        r"false negatives?",
        rf"{_GRADER}(?:['’]s)? (?:\w+ ){{0,2}}{_FLAW}",
        rf"{_FLAW} (?:of|in|with|by) the (?:{_GRADER}|gold|reference|task itself)",
        rf"{_GRADER} (?:is wrong|is mistaken|wrongly|rejects|rejected|refuses|misses)",
        r"wrong(?:ly)? (?:rejected|graded|marked|scored|gold|reference|label)",
        r"(?:gold|reference|expected) (?:answer|label|solution)s? (?:is|are|was)"
        r" (?:\w+ )?(?:wrong|broken|rejected)",
        r"(?:right|correct) answer (?:is|was|gets) (?:rejected|refused|scored 0|marked wrong)",
    ),
    "IR": (
        r"tim(?:es?|ed|ing)[- ]?out",
        r"timeouts?",
        r"(?:connection|network|server|sandbox|container|harness)s? (?:\w+ )?"
        r"(?:errors?|fail\w*|crash\w*|lost|resets?|dropp?e?d?)",
        r"rate limit\w*",
    ),
    "KG": (
        r"(?:does|did) not know",
        r"do(?:es)?n['’]t know",
        r"lacks? (?:the |any )?(?:knowledge|facts?)",
        r"missing knowledge",
        r"never knows?",
        r"knows? nothing",
    ),
    "UK": (
        r"knows? (?:it|this|them|how) (?:only )?(?:sometimes|at times|in some)",
        r"(?:knowledge|recall|memory) (?:is|that is) (?:unreliable|shaky|patchy|inconsistent)",
        r"(?:shaky|patchy|inconsistent) (?:knowledge|recall|memory)",
    ),
    "DA": (
        r"(?:corrupt\w*|broken|malformed|duplicate[ds]?) (?:data|rows?|inputs?|records?)",
        r"data (?:bug|error|fault|problem)s?",
    ),
}
_PLAIN = {
    cause: re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", re.IGNORECASE)
    for cause, words in _WORDS.items()
}
_NO = re.compile(
    r"\b(?:not|no|nor|never|neither|without|rather than|instead of|rules? out)\b|n['’]t\b", re.IGNORECASE
)
_REACH = 40  # characters before the words in which a negation turns them


def meant(text: str) -> frozenset[str]:
    """The causes that the words of a sentence mean, but for those that it denies."""
    return frozenset(
        cause
        for cause, pattern in _PLAIN.items()
        if any(
            not _NO.search(text[max(0, hit.start() - _REACH) : hit.start()]) for hit in pattern.finditer(text)
        )
    )


ABSENT_WORDS = re.compile(
    r"\b(?:not|never|no|none|neither|without|miss(?:es|ing|ed)?|leaves? out|left out|omits?|omitted|skips?"
    r"|skipped|fails? to|lacks?)\b|n['’]t\b",
    re.IGNORECASE,
)
_STOP = frozenset(
    "the a an of in on at to and or for with by from is are was were be it its this that no not never could "
    "would task tasks rollout rollouts failing passing which what when".split()
)


def place(text: str, subject: str) -> int | None:
    """Where a text names a behaviour, tool or mode: the word itself, or nearly all that it is made of."""
    if not subject:
        return 0
    text, wanted = text.lower(), subject.lower()
    for form in (wanted, wanted.replace("_", " "), wanted.replace(" ", "_")):
        hit = re.search(rf"(?<![\w]){re.escape(form)}(?!\w)", text)
        if hit:
            return hit.start()
    words = [word for word in re.findall(r"[a-z0-9]+", wanted) if word not in _STOP]
    places = [text.find(word[: max(4, len(word) - 2)]) for word in words]
    # A phrase said in other words keeps its telling ones; a single word must stand as it is.
    found = [at for at in places if at >= 0]
    if len(words) >= 2 and len(found) >= max(2, round(0.75 * len(words))):
        return min(found)
    return None


def is_mode(text: str, mode: str) -> bool:
    """Whether a sentence says what a rule calls a mode of failing; what is left out must be said to be."""
    is_absence = bool(ABSENT_WORDS.search(mode.replace("_", " ")))
    return place(text, mode) is not None and (not is_absence or bool(ABSENT_WORDS.search(text)))


_NEVER = re.compile(r"`(?P<tool>[^`]+)` is never called")
_OTHER = re.compile(r"`(?P<tool>[^`]+)` at step \d+: .*\bexpected\b")
_WRONG = re.compile(
    r"\b(?:wrong\w*|instead of|rather than|should have|mistaken\w*|other than)\b", re.IGNORECASE
)


def is_told(text: str, happened: str) -> bool:
    """Whether a sentence says of a tool what a rule found: that it is never called, or called wrongly."""
    never, other = _NEVER.match(happened), _OTHER.match(happened)
    hit = never or other
    if hit is None or not re.search(rf"(?<![\w.]){re.escape(hit['tool'])}(?!\w)", text):
        return False
    return bool((ABSENT_WORDS if never else _WRONG).search(text))


_COMMON = frozenset(
    word[:5]
    for word in "that their them they with from this these those have been were will would should could must "
    "than then there when where what while whose which into over under more most less least same such each "
    "every before after again because fail fails failing failed failure pass passes passing passed score "
    "scores points model models agent agents task tasks rollout rollouts repeat repeats completed others "
    "against about rerun report first last also only very just make makes made".split()
)


def telling(text: str) -> set[str]:
    """The beginnings of the words of a sentence that tell what it is about."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())} - _COMMON


_FOR = re.compile(
    r"\b(?:tasks?|rollouts?|repeats?|it)\b[^.;:,]{0,60}?\s(?P<verb>[a-z]+)\s+(?:only |mostly |here )?"
    r"(?:for|because of|due to|owing to|from)\s+(?:an?\s+|the\s+)?",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"fail|los[et]|miss|wrong|stumbl|struggl|break|broke|suffer|flunk|go|went|gone|score|differ|cause|is\b|are\b"
    r"|was\b|were\b|lower|trouble|unsolved",
    re.IGNORECASE,
)
_PASSES = re.compile(r"pass|succe|solve|win\b|wins\b|won\b|prevail|triumph", re.IGNORECASE)


def verb(text: str, verdict: str) -> str:
    """What becomes of a cause that is named, by what the task is said to do for it: it has to fail."""
    hit = _FOR.search(text)
    if hit is None or _FAILS.match(hit["verb"]):
        return verdict
    if _PASSES.match(hit["verb"]) and verdict == SUPPORTED:
        return CONTRADICTED
    return UNVERIFIABLE if verdict == SUPPORTED else verdict
