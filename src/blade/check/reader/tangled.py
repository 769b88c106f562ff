"""Turn contradictions into open questions where the sentence may say less than was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from blade.check.reader.ground import ROLLOUTS, TASKS, Ground
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, STATE, UNIT, Sentence
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, WORDS
from blade.check.reader.scope import segments
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion

# Exceptions, conditions and denials turn round what is said of single tasks and rollouts.
_TURNED = re.compile(
    r"\b(?:except|other than|apart from|besides|all but|neither|nor|none of|not one"
    r"|no (?:rollout|repeat|attempt|task)|if|suppose|supposing|unless|would|had it"
    r"|it is (?:false|not true|untrue))\b"
    r"|\bpassed (?:an?|the|its|wrong|no)\b"
)
_OF_ONE = frozenset(("outcome", "bucket", "label", "step"))
# A reason or a clause after what was counted makes it a part: not all that fail, fail because of this.
_PART = re.compile(
    r"[^.;]{0,60}?\b(?:fail|pass|solv|succeed|los)\w*\b[^.;,]{0,30}?"
    r"\b(?:because|due to|owing to|thanks to|with|although|though|despite|after|before|that|which|who|only"
    r"|for|on|in|when|as)\b"
)
_NUMBERS = rf"(?:\d+|hundred|{'|'.join(WORDS)})"
_BACK = re.compile(
    rf"\s+(?:of (?:these|those|them)|(?:\w+ )?in (?:every )?{_NUMBERS}|\w+ (?:that|which) only"
    r"|(?:rollouts?|repeats?|attempts?) of (?:task )?\S+)\b"
)
_FEW = re.compile(
    r"\b(?:ha(?:ve|s) only|at least one|only once|only (?:one|two|three|four|five) \w+|\d+ in \d+"
    r"|of every|per hundred)\b"
)
_COUNTED = frozenset(("count", "share"))
# At another time, elsewhere, by somebody else, or wished for: not said of these rows.
_ELSEWHERE = re.compile(
    r"\b(?:previous(?:ly)?|earlier|formerly|historically|originally|initially|back then|yesterday|ago|used to"
    r"|before (?:that|this)|(?:last|next) (?:\w+ )?(?:week|month|quarter|year|night|time|release|version|run)"
    r"|(?:in|since|by) (?:the )?(?:past|(?:19|20)\d\d)|version \d\S*|papers?|literature|authors?|et al"
    r"|arxiv|model card|blog|leaderboard|published|according to|press release|vendors?"
    r"|targets?|goals?|aim(?:s|ed|ing)?|hop(?:e[sd]?|ing)|want(?:s|ed)?|wish|plan(?:s|ned)?"
    r"|expect(?:s|ed)?|predict(?:s|ed)?|forecast|would|could|should|might|if|suppos\w+|imagine|assum\w+"
    r"|sampled?|by hand|hand-picked|inspected|humans?)\b"
)
_YEAR = re.compile(r"\s*(?:in )?(?:19|20)\d\d\s*")
# A number that is denied, or that stands for what is left out.
_DENIED = re.compile(
    r"(?:\b(?:not|hardly|barely|scarcely|shy of|short of|all but|except(?: for)?|other than|but)"
    r"\b|n['’]t)"
    r"(?:\s\w+){0,2}?\s*$"
)
# `two in five`: a share of no set
_IN_SO_MANY = re.compile(rf"\b{_NUMBERS}\s+in(?: every)?\s+$")
# `12 tasks pass exactly once`: how often each of them passed.
_OFTEN = re.compile(
    r"[^.;,]{0,40}?\b(?:pass|fail|solv|succeed|succe)\w*(?: it| them)?(?: (?:in|on|for))?"
    r"(?: (?:exactly|only|just|at most|at least|no more than|more than|less than|fewer than|up to|about))*"
    r" (?:once|twice|thrice|\S+ times|(?:one|two|three|four|\d+)\b|half|most|some|part"
    r"|a (?:single|third|few))"
)
# What a total does makes it a part: `231 rows score 0`. Words that nobody knows are in doubt already.
_DOES = re.compile(
    r"[^.,;]*?\b(?:(?:scor|achiev|us|produc|manag|includ|compris|complet|solv|mak)(?:es?|ed)|ha(?:ve|s|d)|got"
    r"|(?:get|hit|reach|record|post|attain|show|see|give|yield|sit|come|end|finish|hold|remain|leave|land|stand"
    r"|contain|obtain|consist|equal|improve|increase|drop|rise|fall)(?:e?s|ed)?)\b"
)
_ENDS = re.compile(
    r"\s*\w*\s*(?:$|[^\w\s]|(?:and|in|overall|over|across|for|of|from|on|each|per|x|with|at|by|altogether|or"
    r"|were|was|are|is|to|the|a|as)\b)"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_OWNED = re.compile(r"\b(?:have|has|had|with)(?: all| only| just| at least| the)*\s+$")
_THOSE = re.compile(r"\b(?:of|among|in) (?:these|those|them|which)\b|\bthereof\b")
_ROUND = 0.1  # how far `almost half` may be from the number that stands beside it
_WHOLE = frozenset(("passed", "failed", "solved"))


def untangled(found: Iterable[Assertion], line: Line) -> Iterator[Assertion]:
    """The assertions of one sentence; what it may mean otherwise is not contradicted."""
    told = list(found)
    lower = line.sentence.text.lower()
    is_turned = bool(_TURNED.search(lower))
    is_counted = any(one.verdict == CONTRADICTED and one.kind in _COUNTED for one in told)
    parts = _parts(line, {one.start for one in told if one.verdict != UNVERIFIABLE}) if is_counted else []
    for one in told:
        is_open = one.verdict == CONTRADICTED or (one.verdict == SUPPORTED and one.kind in _OF_ONE)
        reason = _reason(one, lower, is_turned) if is_open else ""
        if is_open and one.kind in _COUNTED:
            reason = reason or _scoped(one, line, parts) or _explained(one, told, lower)
        yield replace(one, verdict=UNVERIFIABLE, expected=None, why=reason) if reason else one


def placed_here(found: Iterable[Assertion], line: Line) -> Iterator[Assertion]:
    """The assertions of one sentence; what it may say of another time or place is not contradicted."""
    lower = line.sentence.text.lower()
    for one in found:
        is_it = len(line.ground.runs) > 1 and _IT.search(lower[: max(one.start, 0)])
        if one.verdict == CONTRADICTED and (is_it or _is_elsewhere(one, lower)):
            yield replace(one, verdict=UNVERIFIABLE, expected=None, why=_ANOTHER)
        else:
            yield one


_IT = re.compile(r"\b(?:it|they|the other(?: one)?)\s+(?:\w+\s+){1,2}$")  # either run may be meant
_ANOTHER = "it may be said of another run"


def _is_elsewhere(one: Assertion, text: str) -> bool:
    """Whether the clause of a claim, or the one that opens its sentence, is about something else."""
    clauses = [piece for piece in segments(text) if text[slice(*piece)].strip()] or [(0, len(text))]
    at = next((piece for piece in clauses if piece[0] <= one.start < piece[1]), clauses[0])
    if any(_YEAR.fullmatch(text[slice(*piece)]) for piece in clauses):
        return True
    return any(_ELSEWHERE.search(text, *piece) for piece in {clauses[0], at})


def _reason(one: Assertion, text: str, is_turned: bool) -> str:
    if one.verdict == CONTRADICTED and _is_elsewhere(one, text):
        return _ANOTHER
    if one.kind in _OF_ONE and is_turned:
        return "the sentence has an exception, a condition or a denial in it"
    if one.kind not in _COUNTED:
        return ""
    before, after = text[: max(one.start, 0)], text
    if one.start >= 0:
        after = text[one.start + len(one.found) :]
    if _DENIED.search(before) or _IN_SO_MANY.search(before):
        return "the number may not be that of what is counted"
    if _PART.match(after) or _BACK.match(after) or _FEW.search(text):
        return "the sentence may count a part only"
    if one.subject in _WHOLE and not one.scope and _OFTEN.match(after):
        return "the sentence may count how often each passed"
    return ""


def _parts(line: Line, told: set[int]) -> list[int]:
    """Where the sentence, or the one before it, counts tasks or rollouts of which nothing is read."""
    found = [start for start in _counted(line, line.sentence) if start not in told]
    before = line.reader.sentence(line.around.before[-400:]) if line.around.before else None
    if before is not None:
        last = max((hit.end() for hit in re.finditer(r"[.!?]\s+(?=\S)", before.text)), default=0)
        states = any(one.start >= last for one in before.of(STATE))
        found += [-1 for start in _counted(line, before) if start >= last and not states]
    return found


def _counted(line: Line, sentence: Sentence) -> Iterator[int]:
    """The places of numbers of tasks or rollouts that are neither all of them nor those of one task."""
    sizes = _sizes(line.ground)
    sizes |= {float(task.n) for run in line.ground.runs.values() for task in run.tasks.values()}
    for hit in _SOME.finditer(sentence.shape):
        amount = sentence.at[hit.start("q")]
        if amount.amount is not None and amount.amount.kind == COUNT and amount.amount.value not in sizes:
            yield amount.start


def _sizes(ground: Ground) -> set[float]:
    """How many tasks and rollouts the runs have."""
    return {
        size for run in ground.runs for unit in (TASKS, ROLLOUTS) for size in ground.wholes(run, unit, ())
    }


_SOME = shaped(r"(?P<q><Q>)(?:\s+[\w-]+){0,2}\s+(?P<n><NS>)")


def _scoped(one: Assertion, line: Line, parts: list[int]) -> str:
    """Why a count may be one of a part that the sentence speaks of."""
    text = line.sentence.text
    before, after = text[: max(one.start, 0)], text[one.start + len(one.found) :]
    colon = before.rfind(":")  # what follows it takes apart what is counted before it
    apart = any(start < colon for start in _counted(line, line.sentence)) if colon >= 0 else False
    if apart or any(part < one.start for part in parts) or _THOSE.search(before.lower()):
        return "it may be said of a part that is named before"
    if (one.subject or "").startswith("n_"):
        after = _BRACKETS.sub("", after.lower())
        if not _ENDS.match(after) or _DOES.match(after.partition(" and ")[0]):
            return "the sentence may count a part only"
    return "it may be said of each of them" if _is_owned(line, before) else ""


def _is_owned(line: Line, before: str) -> bool:
    """`nine tasks have two rows`, `tasks with three passes`: each of them, unless all are named."""
    hit = _OWNED.search(before)
    end = len(before[: hit.start()].rstrip()) if hit else -1
    owner = next((each for each in line.sentence.of(UNIT) if each.end == end), None)
    if owner is None:
        return False
    told = [each.amount for each in line.sentence.of(AMOUNT) if 0 <= owner.start - each.end <= 1]
    return not any(each is not None and each.value in _sizes(line.ground) for each in told)


def _explained(one: Assertion, told: list[Assertion], text: str) -> str:
    """`almost half (42%)`: the number beside a part in words says what is meant."""
    if one.kind != "share" or re.search(r"\d", one.found) or not isinstance(one.value, float):
        return ""
    after = [each for each in told if each.start > one.start and each.verdict == SUPPORTED]
    values = [each.value for each in after if each.kind == "share" and text[each.start - 1] == "("]
    near = any(isinstance(value, float) and abs(value - one.value) <= _ROUND for value in values)
    return "the number beside it is right" if near else ""


_WEAK = (CONTRADICTED, UNVERIFIABLE, SUPPORTED)


def weakest(found: Iterable[Assertion]) -> list[Assertion]:
    """One verdict where the same words are said of several tasks: they hold if they hold of all."""
    kept: dict[tuple[str, int, str], Assertion] = {}
    rest: list[Assertion] = []
    for one in found:
        if one.kind not in _OF_ONE:
            rest.append(one)
            continue
        key = (one.kind, one.start, one.found)
        if key not in kept or _WEAK.index(one.verdict) < _WEAK.index(kept[key].verdict):
            kept[key] = one
    return [*kept.values(), *rest]
