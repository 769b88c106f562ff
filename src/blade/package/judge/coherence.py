"""Find sentences whose words stand in no order that English allows: shuffled text, not prose."""

from __future__ import annotations

import re

_ARTICLES = frozenset("the a an its their".split())
_PREPOSITIONS = frozenset("of in on at for with from by into".split())
_VERBS = frozenset("is are was were has have does do did will would could should".split())
_LINKS = frozenset("and or but that which because".split())
_AFTER_ARTICLE = _ARTICLES | _PREPOSITIONS | _VERBS | _LINKS | {"to", "it", "they", "not"}
_AFTER_PREPOSITION = frozenset("of is are was were has have and or but will would could".split())
_AFTER_VERB = frozenset("of is are was were does do did and or".split())
_CODE = re.compile(r"`+[^`]*`+|“[^“”]*”|\"[^\"]*\"")
_TOKEN = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*|[^\sA-Za-z]+")
_SHARE = 0.04  # of the words of a sentence that may stand where they cannot


def is_sentence(text: str) -> bool:
    """Whether the words of a text stand in an order that English allows; texts of few words always do."""
    text = _CODE.sub(" x ", text)
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    words = sum(token[0].isalpha() for token in tokens)
    odd = sum(_is_odd(a, b) for a, b in zip(tokens, [*tokens[1:], "."], strict=False)) + _unbalanced(text)
    return odd == 0 or words < 4 or (odd < 2 and words > 6) or odd / words < _SHARE


def _is_odd(word: str, after: str) -> bool:
    ends = after[0] in ".,;:!?)]"
    if word in _ARTICLES:
        return after in _AFTER_ARTICLE or ends
    if word in _PREPOSITIONS:
        return after in _AFTER_PREPOSITION or (word in ("of", "from", "into", "with", "at") and ends)
    if word in _VERBS:
        return after in _AFTER_VERB
    return word in ("and", "or") and (ends or after in ("of", "and", "or"))


def _unbalanced(text: str) -> int:
    depth, worst = 0, 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        worst = min(worst, depth)
    return (depth != 0) + (worst < 0) + (text.count("“") != text.count("”"))
