"""Turn a sentence into its clauses: what each names, and which of its words nobody knows."""

from __future__ import annotations

import re

import msgspec

from blade.check.reader import lexicon
from blade.check.reader.mentions import AMOUNT, Mention, Sentence
from blade.check.reader.mentions import pattern as shaped

_CUT = shaped(
    r"(?P<mark>;|:(?=\s)|\s[—–-]\s|—|,(?=\s))"
    r"|(?<!\bnow)\s(?P<word>and|but|while|whereas|yet|versus|vs\.?|against|compared (?:with|to)|so|i\.e\."
    r"|over|across)\s"
)
_JOINS = ("versus", "vs", "vs.", "against", "compared with", "compared to", "over", "across")
_OF_ALL = shaped(r"\W*(?:out of|of)\s+<Q>\s+<N>(?=\s+<Q>)")
_BOTH_SIDES = ("and", *_JOINS)
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_BETWEEN = re.compile(r"\bin between\b(?=\W*$)", re.IGNORECASE)  # neither always nor never
_NO_ADVERBS = frozenset("nightly hourly daily weekly monthly quarterly yearly early friendly family".split())
# What may stand in a clause and changes nothing in what is counted or measured.
KNOWN = lexicon.HARMLESS | frozenset(
    """found find finds count counts counted counting see seen lift lifts lifted raise raises raised push
    pushed pushes bring brings brought say says said tell tells told turn turns turned file files log logs
    collected right correct correctly wrong incorrect i.e ie roughly go goes going went where there out
    comes coming
    headline
    gain gained gains improvement increase drop decrease change jump difference point points pp thus ci
    interval percent picture looking look looks got getting sits mostly well far much quite very rather
    altogether attempt times time round numbers number ran run runs evaluated
    them these those they
    which leaves leaving meaning namely overall we i my our you one's that's it's let us call calls called
    aggregate averages averaging averaged works work worked out's puts put us at""".split()
)
# Before or behind a clause these say that it may be about less, or about what is not.
ASIDE = re.compile(
    r"\b(?:leav(?:e|ing) (?:\w+ ){0,3}out|left out|drop(?:ping)? (?:the|those|these|them|all)"
    r"|count(?:ing|ed)? (?:as|only|these|those|the|them)|correct(?:ed|ing) for"
    r"|adjust\w*|restrict\w*|filter\w*|treat(?:ed|ing)"
    r"|assum\w*|with (?:these|those|them)|among|amongst|when|where|whenever|once|after|before|until|within"
    r"|for (?:the|these|those|tasks|rollouts)|on (?:the (?!same|whole|full)|these|those|tasks|rollouts|its)"
    r"|in (?:the (?!run|data|file|end|log)|these|those|tasks|rollouts)|of (?:these|those|them|which|whom|its)"
    r"|given|suppose|imagine|only counting|if|unless|would|could|should|might|may|expect\w*|without|except"
    r"|exclud\w*|ignoring|apart from|other than|besides|previous\w*|earlier|last (?:week|time|month|run|year)"
    r"|published|paper|leaderboard|claim\w*|estimat\w*|hypothe\w*|simulat\w*|target|goal|threshold|remaining"
    r"|the rest|the others?|another|instead|used to|no longer|was once|the remaining|not true|false|untrue"
    r"|subset|sampled?|random\w*|half of|first|second|third|last|next|best|worst|top|each of|per)\b|\?",
    re.IGNORECASE,
)
BACK = re.compile(
    r"\b(?:of (?:these|those|them|which|whom)|these|those|they|them|it|its|such|the rest|others?)\b"
    r"|^\W*(?:which|who|that)\b",
    re.IGNORECASE,
)


class Clause(msgspec.Struct, frozen=True):
    """A part of a sentence: its span in the shape, what it names, what of it nobody knows."""

    start: int  # in the shape
    end: int
    first: int  # in the text
    last: int
    mentions: tuple[Mention, ...]
    unknown: tuple[str, ...]
    joint: str = ""  # the word or mark that it hangs on the one before by
    shape: str = ""

    def of(self, kinds: str) -> list[Mention]:
        return [one for one in self.mentions if one.kind in kinds]


def clauses(sentence: Sentence) -> list[Clause]:
    """The clauses of a sentence, in order, and what stands in brackets behind each; lists are not cut."""
    brackets = [hit.span() for hit in _BRACKETS.finditer(sentence.shape)]
    shape = _BRACKETS.sub(lambda hit: " " * len(hit[0]), sentence.shape)
    inside = {at for start, end in brackets for at in range(start, end)}
    cuts = [(0, 0, "")]
    amounts = [at for at, one in sentence.at.items() if one.kind == AMOUNT and at not in inside]
    for hit in _CUT.finditer(shape):
        word = (hit["word"] or "").lower()
        # `and` joins two clauses if each has an amount; else it joins two things of one
        before = any(cuts[-1][1] <= at < hit.start() for at in amounts)
        behind = any(hit.end() <= at for at in amounts)
        if word in _BOTH_SIDES and not (before and behind):
            continue
        cuts.append((hit.start(), hit.end(), word or hit["mark"].strip()))
    if told := _OF_ALL.match(shape):
        cuts.insert(1, (told.end(), told.end(), ","))
    ends = [*(start for start, _, _ in cuts[1:]), len(shape)]
    found = [
        _clause(sentence, shape, start, end, joint, inside)
        for (_, start, joint), end in zip(cuts, ends, strict=True) if shape[start:end].strip()
    ]  # fmt: skip
    for start, end in brackets:
        found.append(_clause(sentence, sentence.shape, start + 1, end - 1, "(", set()))
    return sorted(found, key=lambda one: one.start)


def _clause(sentence: Sentence, shape: str, start: int, end: int, joint: str, hidden: set[int]) -> Clause:
    inside = tuple(one for at, one in sorted(sentence.at.items()) if start <= at < end and at not in hidden)
    plain = _BETWEEN.sub(" ", shape[start:end])
    words = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(plain))
    unknown = tuple(
        word
        for word in words
        if not (
            word in KNOWN
            or (word.endswith("ly") and word not in _NO_ADVERBS)
            or "\ue000" <= word[0] <= "\uf8ff"
        )
    )
    places = sentence.places
    return Clause(start, end, places[start], places[end], inside, unknown, joint, shape[start:end])
