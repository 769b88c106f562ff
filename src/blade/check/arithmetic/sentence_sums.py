"""Check the arithmetic inside one sentence: shares, changes, ratios, intervals, equations and partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

import msgspec

from blade.check.arithmetic.printed_numbers import Figure, Phrase, Span, meets, minus, phrase, quotient, shown
from blade.check.vocabulary import any_of, compiled

Fault = tuple[str, str, str, str]  # kind, stated, expected, why
_OF_THEM = re.compile(r".*?(?P<count>[\d,]*\d) of (?:them|these|those)\b(?P<rest>.*)", re.S)


def faults(text: str, before: str = "") -> Iterator[Fault]:
    """What a sentence says against itself; `12 of them` is of the last count before it."""
    counts = [figure for figure in phrase(before).figures if figure.is_count] if " of the" in text else []
    if counts and (hit := _OF_THEM.match(text)):
        text = f"Of {counts[-1].text}, {hit['count']}{hit['rest']}"
    for check in (_shares, _changes, _intervals, _partitions):
        yield from check(phrase(text))


_ARTICLES = r"(?:(?:all|the|its|these|those|our|a total of) )*"
_OF = re.compile(rf"(?: [\w-]+){{0,3}} (?:of|out of) {_ARTICLES}(?:[\w-]+ )?| ?/ ?")
_DIRECTLY_OF = re.compile(rf" (?:of|out of) {_ARTICLES}")
_THEN_SHARE = compiled("then_share")
_THEN_PART = re.compile(r"[^.;⟨⟩]{0,60}?(?: ?[(\[]| ?[—–:,] ?)")
_AVERAGED = re.compile(r"\b(?:averaged?|mean) (?:over|across)\b", re.I)  # over tasks, say: no share of rows
_THEN_WHOLE = re.compile(rf"\),? ?(?:[\w-]+ ){{0,4}}(?:of|out of) {_ARTICLES}")
_IN_BRACKETS = re.compile(r"(?: [\w@^'’-]+){0,4} ?\(")
_GIVEN = re.compile(rf"(?:^|[\s(])(?:of|among|from|across|out of) {_ARTICLES}$", re.I)
_OWN_WHOLE = re.compile(r"(?: [\w-]+){0,2} ?(?:of|out of) (?:[a-z]+ ){0,3}")


def _shares(words: Phrase) -> Iterator[Fault]:
    """26 of 29 errors (89.7%) · 89.7% (26 of 29) · 26 (89.7%) of 29 · Of 29 errors, 26 (89.7%) are …"""
    figures, gaps = words.figures, words.gaps
    # 40 of the 84 passes: this 84 has its part, and is the whole of nothing else
    inputs = [figure for index, figure in enumerate(figures) if figure.is_count and _GIVEN.search(gaps[index])
             and not (index and _OWN_WHOLE.fullmatch(gaps[index]))]  # fmt: skip
    for index, (left, right) in enumerate(pairwise(figures)):
        before, gap, after = gaps[index : index + 3]
        first, last = figures[index - 1] if index else left, figures[min(index + 2, len(figures) - 1)]
        part, share, wholes, is_aside = left, right, list[Figure](), _IN_BRACKETS.fullmatch(gap)
        if left.is_count and right.is_count and left.value > right.value > 0 and _DIRECTLY_OF.fullmatch(gap):
            yield "share", left.text, f"at most {right.text}", f"{left.text} cannot be part of {right.text}"
        if right.unit == "%" and left.is_count and _THEN_SHARE.fullmatch(gap) and not after.startswith(" of"):
            if _OF.fullmatch(before) and first.is_count:
                part, wholes = first, [left]
            elif is_aside:
                wholes = [last] if _THEN_WHOLE.fullmatch(after) and last.is_count else inputs
        elif left.unit == "%" and right.is_count and _THEN_PART.fullmatch(gap) and gap[0] != ")":
            part, share = right, left
            wholes = [last] if _OF.fullmatch(after) and last.is_count else inputs if is_aside else []
            wholes = [] if _AVERAGED.search(gap) else wholes
        is_part = len(wholes) == 1 and 0 < part.value <= wholes[0].value and not share.hedged
        counts = [figure for figure in figures if not figure.unit and figure.value > 0][: 12 if is_part else 0]
        pairs = ((top, whole) for top, whole in permutations(counts, 2) if top.value <= whole.value)
        if is_part and not any(meets(share, quotient(top, whole, 100)) for top, whole in pairs):
            expected = shown(100 * part.value / wholes[0].value, share)
            why = f"{part.text} of {wholes[0].text} is {expected}, not {share.text}"
            yield "share", share.text, expected, why


_CHANGE = any_of("change")
_BY = re.compile(r"(?:\bby|\b(?:increase|decrease|gain|drop|rise|fall|reduction|difference|growth) of) $")
_VERSUS = re.compile(r"[^.;⟨⟩]{0,45}? (?:vs\.?|versus|against|compared \w+|than)(?: [^.;⟨⟩]{0,40}?)? ?\(?")
_ARROW = re.compile(r"[^.;⟨⟩\]]{0,25}(?:→|->)[^.;⟨⟩\[]{0,25}")
_TO = re.compile(r"\)?(?: ?\([^()⟨⟩]*\))? to (?:[^.;,⟨⟩]{0,35}\()?")
_FROM_TO = re.compile(r"[^.;,⟨⟩]{0,40} to (?:[^.;,⟨⟩]{0,35}\(?)?")
_AND = re.compile(r"[^.;⟨⟩]{0,40}(?:,| and| while| but) [^.;⟨⟩]{0,40}")
_FROM = re.compile(r"(?:from|between)\b[^⟨⟩]{0,35}$", re.I)
_NEXT = re.compile(r"[^.;⟨⟩]{0,45}?[,(–—:=] ?[^.;⟨⟩,]{0,35}|\)? ?(?:[\w-]+ ){0,3}")
_RANGE = re.compile(r"\s*(?:from|between)\s*", re.I)
_INTERVAL = re.compile(r"(?:CI|interval|confidence|range)\b[^⟨⟩]{0,12}$|\[$")


def _changes(words: Phrase) -> Iterator[Fault]:
    """Two values and what lies between them: from 41.2% to 46.0%, +4.8 points; 2.5x (6.6% vs 2.6%)."""
    figures, gaps = words.figures, words.gaps
    for index, (start, end) in enumerate(pairwise(figures)):
        before, gap, after = gaps[index : index + 3]
        is_from = bool(_FROM.search(before))
        is_ordered = bool((_FROM_TO if is_from else _TO).fullmatch(gap) or _ARROW.fullmatch(gap))
        is_loose = not (is_ordered or _VERSUS.fullmatch(gap) or (is_from and " and " in gap))
        is_alike = start.unit == end.unit and (bool(start.unit) or (start.step == 1) == (end.step == 1))
        is_level = is_alike and start.unit not in ("points", "x") and not _INTERVAL.search(before)
        is_exact = start.value != end.value and not start.hedged and not end.hedged
        is_range = bool(_RANGE.fullmatch(before)) and "," in after  # From 5 to 10 turns, it drops by 20%
        are_years = all(not each.unit and each.step == 1 and 1900 <= each.value <= 2100 for each in (start, end))
        is_exact = is_exact and not is_range and not are_years
        if not is_level or not is_exact or (is_loose and not _AND.fullmatch(gap)):
            continue
        sizes, later = [], (*gaps, "")[index + 3]
        has_own = _VERSUS.fullmatch((*gaps, "", "")[index + 4]) is not None and later.endswith("(")
        has_own = has_own or re.match(r" (?:\(|$)", later) is not None
        if index + 2 < len(figures) and _NEXT.fullmatch(after) and not has_own:
            sizes.append((figures[index + 2], after, later[:30]))
        if index and _NEXT.fullmatch(before) and not is_loose and before[0] != ")":
            sizes.append((figures[index - 1], gaps[index - 1][-30:], before))
        for size, left, right in sizes:
            spans = _readings_of_change(start, end, size, is_ordered)
            other = size if size.signed and is_ordered else msgspec.structs.replace(size, value=-size.value)
            is_right = any(meets(figure, span) for figure in (size, other) for span in spans)
            if not is_right and _is_size(start, size, left, right, is_loose):
                expected = shown(sum(spans[0]) / 2 if size.signed else abs(sum(spans[0]) / 2), size)
                why = f"from {start.text} to {end.text} is {expected}, not {size.text}"
                yield "ratio" if size.unit == "x" else "difference", size.text, expected, why


def _is_size(start: Figure, size: Figure, before: str, after: str, is_loose: bool) -> bool:
    """Whether a number says how far two others are apart."""
    if size.hedged or (size.unit == "%" and not size.signed and re.match(r" (?:of|in|on)\b", after)):
        return False
    if is_loose:  # 54.5% and 51.5%: +3.0 points
        has_word = _CHANGE.search(before + after[:20]) is not None
        return size.unit == "points" and start.unit == "%" and (size.signed or has_word)
    if size.unit in ("points", "x"):
        return size.unit == "x" or start.unit == "%" or start.step < 1
    if size.unit == "%" and start.unit == "%":
        return size.signed or "relative" in before + after
    is_change = size.signed or _BY.search(before) or (size.unit and _CHANGE.search(before + after))
    return size.unit in (start.unit, "%") and bool(is_change)


def _readings_of_change(start: Figure, end: Figure, size: Figure, is_ordered: bool) -> list[Span]:
    """What may lie between two values, the likeliest first: a difference, a relative change, or a ratio."""
    low, high = minus(end, start)
    is_fraction = size.unit != start.unit and not start.unit and start.step < 1
    spans = [(100 * low, 100 * high) if is_fraction else (low, high)]
    if size.unit == "points" or min(start.value, end.value) <= 0:
        return spans
    ratios = [quotient(end, start), quotient(start, end)]
    if size.unit == "x":
        ratios.sort(key=lambda ratio: (ratio[0] < 1) == (size.value >= 1))
        return ratios + [(low - 1, high - 1) for low, high in ratios]
    relative = [(100 * low - 100, 100 * high - 100) for low, high in ratios[: 1 if is_ordered else 2]]
    return relative + spans if size.unit == "%" != start.unit and not is_fraction else spans + relative


_ALONE = re.compile(r".*[(\[ ](?:CI|interval|confidence interval)s?(?: of| is| was|:| from)? ?[\[(]?", re.S)
_DASH = re.compile(r" ?(?:,|–|—|-|to|\.\.|;) ?")


def _intervals(words: Phrase) -> Iterator[Fault]:
    figures, gaps = words.figures, words.gaps
    for index, (low, high) in enumerate(pairwise(figures)):
        opens = compiled("opens").fullmatch(gaps[index]) if index else None
        is_named = bool((opens and opens["name"]) or _ALONE.fullmatch(gaps[index]))
        in_brackets = gaps[index].endswith("[") and gaps[index + 2].startswith("]")
        if not (is_named or in_brackets) or not _DASH.fullmatch(gaps[index + 1]) or low.hedged or high.hedged:
            continue
        interval, value = f"{low.text} to {high.text}", figures[index - 1]
        if low.unit in ("", high.unit) and low.value > high.value:
            yield "interval", interval, f"{high.text} to {low.text}", "the interval is upside down"
        elif opens and index > 1 and gaps[index - 1].strip() == "±":
            middle, slack = figures[index - 2], (figures[index - 2].step + value.step) / 2
            bottom, top = middle.value - value.value, middle.value + value.value
            fits = meets(low, (bottom - slack, bottom + slack)) and meets(high, (top - slack, top + slack))
            expected = f"{shown(bottom, low)} to {shown(top, high)}"
            if not fits:
                yield "interval", interval, expected, f"{middle.text} ± {value.text} is {expected}, not {interval}"
        elif not (opens or (index and compiled("with").fullmatch(gaps[index]))) or value.hedged:
            continue
        elif not _covers(low, high, value):
            yield "interval", value.text, interval, f"{value.text} is outside its interval, {interval}"


def _covers(low: Figure, high: Figure, value: Figure) -> bool:
    """Whether a value can lie in an interval; units may be left out or be those of a share of 1."""
    if len({figure.unit for figure in (value, high)} - {""}) > 1:
        return True
    bottom, top = low.value - low.step / 2 - 1e-9, high.value + high.step / 2 + 1e-9
    least, most = value.value - value.step / 2, value.value + value.step / 2
    scales = (1.0,) if bool(value.unit) == bool(high.unit) else (1.0, 100.0, 0.01)
    return any(bottom <= scale * most and scale * least <= top for scale in scales)


_BRACKETED = re.compile(r" ?\((?:[^()⟨⟩]*⟨\d+%⟩)[^()⟨⟩]*\)|,? ⟨\d+%⟩(?= [a-z])")
_OF_ALL = re.compile(r"(?:^|.*[.;:—(,] ?|So )(?:of|among|out of) (?:(?:all|the|its|these) )*", re.I | re.S)
_ENDS = re.compile(r"[^⟨⟩.;:()]{0,50}?(?:[,;—(]|,? for|,? making) ?(?:(?!of)[a-z]+ ){0,4}(?:of )?")
_IN_ALL = any_of("in_all")
_PARTLY = any_of("partly")


def _partitions(words: Phrase) -> Iterator[Fault]:
    """412 failures: 301 wrong, 80 timeouts and 31 crashes · Of 240 runs, 151 passed and 89 failed."""
    text = _BRACKETED.sub("", words.text)
    figures = tuple(words.figures[int(index)] for index in re.findall(r"⟨(\d+)", text))
    bare, start = Phrase(text, figures, tuple(re.split(r"⟨\d+[n%pxu]⟩", text))), 0
    while start < len(figures) - 1:
        end = start
        while end + 1 < len(figures) and compiled("separator").fullmatch(bare.gaps[end + 1]):
            end += 1
        for whole, parts, limit in _readings(bare, start, end) if end > start else ():
            value = sum(part.value for part in parts)
            is_near = 0 < abs(value - whole.value) <= limit * whole.value
            if is_near and max(part.value for part in parts) < whole.value:
                terms = " + ".join(part.text for part in parts)
                yield "partition", whole.text, f"{value:,.0f}", f"{terms} is {value:,.0f}, not {whole.text}"
                break
        start = end + 1


def _readings(words: Phrase, start: int, end: int) -> Iterator[tuple[Figure, Sequence[Figure], float]]:
    """A run of counts with the whole before it or after it, and how far off it may be to be meant."""
    figures, gaps = words.figures, words.gaps
    around = gaps[start][-40:] + " ".join(gaps[start + 1 : end + 1]) + gaps[end + 1][:40]
    if _PARTLY.search(around) or not all(figure.is_count for figure in figures[max(0, start - 1) : end + 1]):
        return
    is_named = all(re.match(r" (?!and |or )[A-Za-z]", gaps[index + 1]) for index in range(start, end))
    closes = is_named and (end + 1 == len(figures) or re.match(r"[^⟨⟩]*[).;]", gaps[end + 1]))
    is_closed = closes and (end - start > 2 or re.search(r"\b(?:and|plus) ", gaps[end]))
    is_sure = any_of("pass").search(around) and any_of("fail").search(around)
    if start and is_closed and compiled("starts").fullmatch(gaps[start].rstrip()):
        yield figures[start - 1], figures[start : end + 1], 0.3
    if _OF_ALL.fullmatch(gaps[start]) and end - start > 1 and (is_closed or is_sure):
        yield figures[start], figures[start + 1 : end + 1], 0.3 if is_sure else 0.1
    following, after = "".join(gaps[end + 1 : end + 3])[:80], figures[end + 1 : end + 2]
    if after and after[0].is_count and _ENDS.fullmatch(gaps[end + 1]) and _IN_ALL.search(following):
        yield after[0], figures[start : end + 1], 0.5
    if end - start > 1 and _IN_ALL.search(gaps[end + 1][:30]):
        yield figures[end], figures[start:end], 0.5
