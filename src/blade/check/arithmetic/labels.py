"""Normalise the names of quantities: case, plural, markup and the order of words do not matter."""

from __future__ import annotations

import re
from functools import lru_cache

Label = frozenset[str]


def pattern(words: str, more: str = "") -> re.Pattern[str]:
    """A pattern for any of these words; `_` is a space, `*` any ending."""
    choices = "|".join(re.escape(word).replace("_", " ").replace(r"\*", r"\w*") for word in words.split())
    return re.compile(rf"\b(?:{choices})\b{more}", re.IGNORECASE)


EMPTY = frozenset(
    """a an the of in on at to for by with and or all any each every per is are was were be been has have had
    this that these those its their it as from into than then also both only just no not n number count counts
    value values total totals overall sum amount result results vs via which who where when while still what
    how there we our they out off up such more most other others same own do does did can may will""".split()
)
# Plural and tense: failures, failing and Failed are all `fail`.
_ENDING = re.compile(r"(?<=\w{3})(?:ies|y|ures?|ings?|ed|es|e|(?<!s)s)$")


@lru_cache(maxsize=50_000)
def label(text: str) -> Label:
    """The words of a name that say something, in no order."""
    words = re.findall(r"[^\W_]+(?:[@^][^\W_]+)?", text.lower())
    return frozenset(_ENDING.sub("", word) for word in words if word not in EMPTY)


_SUM = re.compile(r"(?:grand |column |row |sub-?)?(?:totals?|sum)(?: \([^()]*\)| [\w-]+){0,2}:?", re.I)
_ALL = re.compile(r"(?:overall|all|together|combined)(?: [\w-]+){0,2}(?: \([^()]*\))?:?", re.I)
_OTHER = pattern(
    "mean average avg median max min maximum minimum best worst std sd macro micro weighted of_which change "
    "difference delta range cv stdev variance spread iqr",
    r"|^(?:↳|└|–|—|-)\s?\w|^[σΔδ]",
)


@lru_cache(maxsize=20_000)
def summary(name: str) -> str:
    """What a row or column sums up: `sum` if it must be a sum, `all` if it may be, `other`, or nothing."""
    name = name[:61].strip(" `*")
    is_sum, is_all = _SUM.fullmatch(name), _ALL.fullmatch(name)
    return "other" if _OTHER.search(name) else "sum" if is_sum else "all" if is_all else ""


# Quantities of which a total is no sum.
RATE = pattern(
    "rate rates score scores accuracy pass mean average avg median p50 p90 p95 p99 p ratio per max min speed "
    "recall precision f1 probability confidence interval ci rank id index year step steps k odds std sd auc "
    "latency version seed repeats percentile coverage effect kappa level temperature weight",
    r"|pass[@^]\w+",
)
_DELTA = "change difference* diff delta gain drop gap shift increase decrease improvement lift net vs"
DELTA = pattern(_DELTA, "|Δ|−")
MULTIPLE = pattern(f"{_DELTA} ratio speedup factor multiple times relative x", "|×|Δ")
SHARE = pattern("share percent percentage fraction proportion rate of_total accuracy coverage", "|%|pass@1")
# Rows that are a choice, or overlap, need not add up.
PARTIAL = pattern(
    "top first largest selected sample_of example* excerpt among_others overlap* several multiple exclusive "
    "more_than_one distinct unique at_least_one may can not_add not_sum not_shown omit* remaining biggest "
    "most_common most_frequent worst best main includ* notable subset rounded weighted such_as some",
    r"|…|\.\.\.",
)
# The first header of a table whose rows are different quantities.
MIXED = pattern("metric measure quantity field parameter setting statistic headline property option key what")
# A number in such a clause may be of another time, a plan, or part of something.
UNSURE = pattern(
    "if would could should expected target without exclud* except after before previous* earlier another "
    "additional more remaining rest new first second last half least next goal planned paper published than "
    "reported instead no_longer up_to per each every extra beyond threshold baseline other mean average"
)
