"""Turn words of change into claims: better, worse, from here to there, by so much, and their denials."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from blade.check.reader import lexicon, scope
from blade.check.reader.clauses import clauses
from blade.check.reader.ground import Reading
from blade.check.reader.mentions import METRIC, RUN, SLICE, TASK, Mention, Reader, Sentence
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, POINTS, RATE
from blade.check.reader.verdicts import Place, judged, said
from blade.model import Assertion, Comparison
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE

_UP = (
    r"(?:improv(?:e[sd]?|ing|ements?)|increas(?:e[sd]?|ing)|rises?|rose|risen|went up|goes up|gain(?:s|"
    r"ed)?|climb(?:s|ed)|"
    r"jump(?:s|ed)|better|higher|outperform(?:s|ed)?|beat(?:s|en)?|exceed(?:s|ed)?|surpass(?:es|ed)?|ahead|"
    r"superior|stronger|"
    r"leads?|grew|wins?|won|more accurate|more reliable)"
)
_DOWN = (
    r"(?:regress(?:es|ed|ions?)?|declin(?:e[sd]?)|drop(?:s|ped)?|falls?|fell|fallen|decreas(?:e[sd]?)|"
    r"worse(?:ned|ns)?|lower|"
    r"behind|trails?|underperform(?:s|ed)?|went down|goes down|inferior|weaker|los(?:es|t) to|"
    r"degrad(?:e[sd]?|ation)|slipp?(?:s|ed))"
)
_SAME = (
    r"(?:no (?:clear |real |measurable |meaningful )?(?:difference|change)|unchanged|on par|tied|identical|"
    r"equal(?:ly)?|the same (?:score|pass rate|pass@1)|equivalent|no (?:better|worse))"
)
_WORD = re.compile(rf"\b(?:(?P<same>{_SAME})|(?P<up>{_UP})|(?P<down>{_DOWN}))\b", re.IGNORECASE)
_NOT = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|fail(?:s|ed)? to|without|hardly|n['’]t)\b|n['’]t\b", re.IGNORECASE
)
_SURE = re.compile(
    r"\b(?:significant(?:ly)?|statistically|real|reliabl[ey]|genuine(?:ly)?|beyond (?:chance|noise)|"
    r"clear(?:ly)?)\b",
    re.IGNORECASE,
)
_SIGNIFICANT = re.compile(
    r"\b(?:difference|gap|change|improvement|regression|drop|gain)s?\b[^.;,]{0,60}?\b(?:is|was|are|were)"
    r"(?P<no>\s+not|n['’]t)?\s+(?:statistically\s+)?significant\b",
    re.IGNORECASE,
)
_OTHERWISE = "the tests say otherwise"
_P = re.compile(r"\bp\s?(?P<sign>[<=>≤≥≈])\s?(?P<value>0?\.\d+|[01](?:\.0)?)(?![\d%])")
_DIFFERS = re.compile(
    r"\b(?:gain|difference|change|improvement|drop|regression|gap|lift|effect|better|worse|beats?|higher|lower)\b",
    re.IGNORECASE,
)
_FROM_TO = shaped(
    r"from\s+(?P<a><Q>)(?:\s+\(?(?:in|for|with|on|"
    r"by)?\s*(?P<ra><R>)\)?)?\s*,?\s+to\s+(?P<b><Q>)(?:\s+\(?(?:in|for|with|on|by)?\s*(?P<rb><R>)\)?)?"
)
_ARROW = shaped(r"(?P<a><Q>)\s*(?:→|->|=>|⇒)\s*(?P<b><Q>)")
_BY = shaped(
    r"\bby\s+(?:a\s+)?(?P<q><Q>)|(?P<q2><Q>)\s*(?:\w+\s+)?(?:higher|lower|better|worse|ahead|behind|gain|"
    r"drop|improvement|regression)\b"
)


_ONE = re.compile(
    r"\b(?:this|the|that|each|a|one) (?:task|rollout|slice|category|mode|repeat)\b", re.IGNORECASE
)


class Pair(msgspec.Struct, frozen=True):
    """Two runs of which one thing is said: what the first has against the second."""

    one: str
    other: str


class Directions:
    """What one sentence says of how runs differ."""

    def __init__(self, reader: Reader, sentence: Sentence, place: Place, around: scope.Around) -> None:
        self.reader, self.ground = reader, reader.ground
        self.sentence, self.place, self.around = sentence, place, around
        self.used: set[int] = set()  # amounts that stand for two runs at once

    def read(self) -> list[Assertion]:
        if len(self.ground.runs) < 2:
            return []
        if (
            self.sentence.of(SLICE)
            or self.sentence.of(TASK)
            or self.sentence.of("A")
            or _ONE.search(self.sentence.text)
        ):
            return []
        return [*self._from_to(), *self._words(), *self._significant(), *self._chance()]

    # --- values --------------------------------------------------------------------------------------

    def _from_to(self) -> Iterator[Assertion]:
        for hit in [*_FROM_TO.finditer(self.sentence.shape), *_ARROW.finditer(self.sentence.shape)]:
            metric = self._metric()
            first, second = self.sentence.at[hit.start("a")], self.sentence.at[hit.start("b")]
            if metric is None or not _is_rate(first) or not _is_rate(second):
                continue
            self.used |= {first.start, second.start}
            pair = self._ends(hit)
            for amount, run in (
                ((first, pair.other), (second, pair.one)) if pair else ((first, None), (second, None))
            ):
                readings = self._readings(metric, run) if run else []
                doubt = (
                    "two runs could be meant"
                    if run is None
                    else scope.doubt_of(self.sentence, hit.start(), hit.end())
                )
                doubt = "" if doubt.endswith(_WORDS_OF_CHANGE) else doubt
                yield self._valued(amount, readings, metric, run, doubt)

    def _ends(self, hit: re.Match[str]) -> Pair | None:
        """The runs from which and to which, in this order."""
        groups = hit.groupdict()
        if groups.get("ra") and groups.get("rb"):
            before, after = self.sentence.at[hit.start("ra")].names, self.sentence.at[hit.start("rb")].names
            return Pair(after[0], before[0]) if len(before) == len(after) == 1 else None
        roles = self.reader.roles()
        named = [one.names for one in self.sentence.of(RUN)]
        if roles is not None and (len(named) < 2 or named == [(roles[0],), (roles[1],)]):
            return Pair(roles[1], roles[0])
        if len(named) == 2 and len(named[0]) == len(named[1]) == 1 and "from" in self.sentence.text.lower():
            order = re.search(r"\bfrom\b.{0,20}\ue052.{0,20}\bto\b.{0,20}\ue052", self.sentence.shape)
            return Pair(named[1][0], named[0][0]) if order else None
        return None

    def _valued(
        self,
        amount: Mention,
        readings: list[Reading],
        metric: tuple[str, int | None],
        run: str | None,
        doubt: str,
    ) -> Assertion:
        subject = metric[0] if metric[1] is None else f"{metric[0]}:{metric[1]}"
        return judged(
            self.place, amount, "metric", readings, subject=subject, run=run, as_rate=True, doubt=doubt
        )

    # --- words ---------------------------------------------------------------------------------------

    def _words(self) -> Iterator[Assertion]:
        hits = list(_WORD.finditer(self.sentence.shape))
        if len(hits) != 1 or lexicon_thought(self.sentence.text):
            return
        hit = hits[0]
        pair = self._pair(hit)
        metric = self._metric(default=True)
        if pair is None or metric is None:
            return
        way = 0 if hit["same"] else 1 if hit["up"] else -1
        around = self.sentence.shape[max(0, hit.start() - 40) : hit.start()]
        if hit["same"] and hit[0].lower() in ("no better", "no worse"):
            way, is_not = (1 if "better" in hit[0].lower() else -1), True
        else:
            is_not = bool(_NOT.search(around))
        sure = self._is_sure(hit)
        yield self._way(hit, pair, metric, way, is_not, sure)
        if not is_not and way:
            yield from self._by_how_much(pair, metric)

    def _is_sure(self, hit: re.Match[str]) -> bool:
        """Whether its own clause calls it real; `better, but not significantly` tells the way alone."""
        first, last = next(
            piece for piece in scope.segments(self.sentence.shape) if piece[0] <= hit.start() <= piece[1]
        )
        told = _SURE.search(self.sentence.shape, first, last)
        return told is not None and not _NOT.search(self.sentence.shape, hit.end(), told.start())

    def _significant(self) -> Iterator[Assertion]:
        """`the difference is not significant`, of the one comparison there is."""
        hit = _SIGNIFICANT.search(self.sentence.shape)
        told = self.ground.report.comparisons
        other = {one.names[0] for one in self.sentence.of(METRIC)} - {"score", "pass_rate", "pass_at_1"}
        if hit is None or len(told) != 1 or other or lexicon_thought(self.sentence.text):
            return
        verdicts = {one for one in (told[0].verdict, told[0].verdict_new_tasks) if one}
        values = [one.p for one in told[0].tests if one.p is not None and "equivalence" not in one.name]
        if not verdicts or not values:
            return
        shown, denied = bool(verdicts & {"improved", "regressed"}), bool(hit["no"])
        is_clear = max(values) < 0.05 if shown else min(values) > 0.1
        verdict = SUPPORTED if shown != denied else CONTRADICTED if is_clear else UNVERIFIABLE
        if verdict == CONTRADICTED and scope_is_narrow(self.sentence, hit):
            verdict = UNVERIFIABLE
        yield said(
            self.place, verdict, "direction", hit[0], self.sentence.places[hit.start()],
            expected=f"on these tasks: {', '.join(sorted(verdicts))}; p from {min(values):.3g}",
            why="" if verdict == SUPPORTED else "the tests say otherwise", subject="significance",
            scope=(("candidate", told[0].candidate), ("baseline", told[0].baseline)),
        )  # fmt: skip

    def _chance(self) -> Iterator[Assertion]:
        """`the gain is solid (p < 0.001)`: the p of the one comparison there is, by any test of it."""
        told, hits = self.ground.report.comparisons, list(_P.finditer(self.sentence.text))
        if len(told) != 1 or len(hits) != 1 or self.sentence.of("D") or self.sentence.of("C"):
            return
        if not _DIFFERS.search(self.sentence.text) or lexicon_thought(self.sentence.text):
            return
        values = [one.p for one in told[0].tests if one.p is not None and "equivalence" not in one.name]
        values += [one for one in (told[0].p_adjusted, told[0].p_adjusted_new) if one is not None]
        if not values:
            return
        hit, stated = hits[0], float(hits[0]["value"])
        if hit["sign"] in ("<", "≤"):
            holds, is_off = min(values) <= stated, min(values) > 5 * stated
        elif hit["sign"] in (">", "≥"):
            holds, is_off = max(values) >= stated, max(values) < stated / 5
        else:
            digits = 0.5 * 10.0 ** -len(hit["value"].partition(".")[2])
            holds = any(abs(one - stated) <= digits + 1e-12 for one in values)
            is_off = all(one < stated / 10 or one > stated * 10 for one in values)
        # another test may give another p, though hardly ten times another
        known = _KNOWN | {"solid", "robust", "convincing", "chance", "p", "test", "tests"}
        is_plain = all(word in known for one in clauses(self.sentence) for word in one.unknown)
        verdict = SUPPORTED if holds else CONTRADICTED if is_off and is_plain else UNVERIFIABLE
        yield said(
            self.place, verdict, "p", hit[0], hit.start(),
            expected=f"p from {min(values):.3g} to {max(values):.3g}",
            why="" if holds else _OTHERWISE if verdict == CONTRADICTED else "another test may give it",
            subject="test_p", scope=(("candidate", told[0].candidate), ("baseline", told[0].baseline)),
        )  # fmt: skip

    def _pair(self, hit: re.Match[str]) -> Pair | None:
        """Which run is said to be what against which."""
        named = list(self.sentence.of(RUN))
        if any(len(one.names) != 1 for one in named):
            return None
        names = [one.names[0] for one in named]
        roles = self.reader.roles()
        if len(names) == 2 and names[0] != names[1]:
            starts = sorted(at for at, one in self.sentence.at.items() if one.kind == RUN)
            shape = self.sentence.shape
            if re.search(r"\bfrom\b[^.]{0,20}\ue052[^.]{0,12}\bto\b[^.]{0,6}\ue052", shape):
                return Pair(names[1], names[0])
            if starts[0] < hit.start() < starts[1] and _PLAIN_BETWEEN.search(shape[hit.end() : starts[1]]):
                return Pair(names[0], names[1])
            if hit["same"]:
                return Pair(names[0], names[1])
            return None
        if roles is None or len(names) > 1:
            return None
        if names and names[0] == roles[0]:
            return None  # said of the baseline alone it is no change
        compares = self._metric() is not None or bool(names)
        compares |= bool(hit["same"] and re.search(r"\b(?:runs|models|two|agents)\b", self.sentence.text))
        return Pair(roles[1], roles[0]) if compares else None

    def _way(
        self,
        hit: re.Match[str],
        pair: Pair,
        metric: tuple[str, int | None],
        way: int,
        is_not: bool,
        sure: bool,
    ) -> Assertion:
        signs, words = self._signs(pair, metric)
        verdicts = self._verdicts(pair)
        verdict, why = _judge(way, is_not, sure, signs, verdicts)
        start = self.sentence.places[hit.start()]
        subject = metric[0] if metric[1] is None else f"{metric[0]}:{metric[1]}"
        if verdict == CONTRADICTED and scope_is_narrow(self.sentence, hit):
            verdict, why = UNVERIFIABLE, "the sentence may narrow it"
        told = f"{words}; on these tasks: {', '.join(sorted(verdicts)) or 'not tested'}"
        return said(
            self.place, verdict, "direction", hit[0], start, expected=told, why=why,
            subject=subject, scope=(("candidate", pair.one), ("baseline", pair.other)),
            value=("not " if is_not else "") + ("same" if way == 0 else "higher" if way > 0 else "lower"),
        )  # fmt: skip

    def _signs(self, pair: Pair, metric: tuple[str, int | None]) -> tuple[set[int], str]:
        """The signs that the difference has, over all that may be meant by the measure."""
        ones, others = (self._main(metric, run) for run in (pair.one, pair.other))
        signs = {_sign(a - b) for a, b in zip(ones, others, strict=False)}
        told = self._comparison(pair)
        if told is not None and metric[0] in ("score", "pass_rate", "pass_at_1"):
            flip = 1 if told.candidate == pair.one else -1
            signs |= {_sign(flip * each) for each in (told.delta, told.delta_common) if each is not None}
        words = (
            f"{pair.one} {ones[0]:.1%} against {pair.other} {others[0]:.1%}"
            if ones and others
            else "not measured"
        )
        return signs, words

    def _main(self, metric: tuple[str, int | None], run: str) -> list[float]:
        ground = self.ground.runs[run]
        name, k = metric
        if name in ("score", "pass_rate", "pass_at_1"):
            keys: list[tuple[str, int | None]] = [("pass_at_1", None), ("pass_at_1_micro", None)]
            if name == "score" and ground.run.score is not None:
                found = [float(ground.run.score)]
                return found + [
                    float(ground.measures[key].value or 0) for key in keys if key in ground.measures
                ]
        else:
            keys = [(name, k)]
        return [float(ground.measures[key].value or 0) for key in keys if key in ground.measures]

    def _by_how_much(self, pair: Pair, metric: tuple[str, int | None]) -> Iterator[Assertion]:
        hits = list(_BY.finditer(self.sentence.shape))
        if len(hits) != 1:
            return
        name = "q" if hits[0]["q"] else "q2"
        amount = self.sentence.at[hits[0].start(name)]
        quantity = amount.amount
        if quantity is None or quantity.kind not in (POINTS, RATE) or amount.start in self.used:
            return
        ones, others = (self._main(metric, run) for run in (pair.one, pair.other))
        gaps = [a - b for a, b in zip(ones, others, strict=False)]
        told = self._comparison(pair)
        if told is not None:
            gaps += [each for each in (told.delta, told.delta_common) if each is not None]
        readings = [
            Reading(abs(gap), f"{gap * 100:+.1f} points between {pair.other} and {pair.one}") for gap in gaps
        ]
        if quantity.kind == RATE:
            readings += [
                Reading(abs(a - b) / b, f"{abs(a - b) / b:.1%} relative to {pair.other}")
                for a, b in zip(ones, others, strict=False) if b
            ]  # fmt: skip
        self.used.add(amount.start)
        wanted = msgspec.structs.replace(quantity, value=abs(quantity.value), kind=COUNT)
        yield self._valued(
            msgspec.structs.replace(amount, amount=wanted), readings, ("delta", None), None,
            "the sentence may narrow it" if scope_is_narrow(self.sentence, hits[0]) else "",
        )  # fmt: skip

    # --- what is known -------------------------------------------------------------------------------

    def _metric(self, default: bool = False) -> tuple[str, int | None] | None:
        named = {one.names for one in self.sentence.of(METRIC)}
        if len(named) == 1:
            name, k = next(iter(named))
            return name, int(k) if k else None
        return ("score", None) if default and not named else None

    def _readings(self, metric: tuple[str, int | None], run: str) -> list[Reading]:
        return self.ground.rates(run, *metric)

    def _comparison(self, pair: Pair) -> Comparison | None:
        return next(
            (
                one
                for one in self.ground.report.comparisons
                if {one.baseline, one.candidate} == {pair.one, pair.other}
            ),
            None,
        )

    def _verdicts(self, pair: Pair) -> set[str]:
        told = self._comparison(pair)
        if told is None:
            return set()
        found = {one for one in (told.verdict, told.verdict_new_tasks) if one}
        if told.candidate == pair.one:
            return found
        turned = {"improved": "regressed", "regressed": "improved"}
        return {turned.get(one, one) for one in found}


_PLAIN_BETWEEN = re.compile(
    r"^(?:\s|\b(?:than|the|over|of|on|to|by|from|with|against|score|model|run|that|compared|versus|in|"
    r"slightly|significantly)\b|[\ue04d\ue051,'’s])*$",
    re.IGNORECASE,
)
_WORDS_OF_CHANGE = ("increase", "decrease", "drop", "improvement", "regression", "change", "gain")
_FORMS = re.compile(
    r"\b(?:would|could|should|might|may|if|expect(?:ed|s)?|target|whether|unless|hypothes\w*|hope\w*|"
    r"aim\w*|likely|possibl[ey])\b|\?",
    re.IGNORECASE,
)


def lexicon_thought(text: str) -> bool:
    """Whether a sentence asks or supposes rather than states."""
    return bool(_FORMS.search(text))


def scope_is_narrow(sentence: Sentence, hit: re.Match[str]) -> bool:
    """Whether words around a word of change say what of the runs it is about, in a way nobody here knows."""
    for first, last in scope.segments(sentence.shape):
        piece = sentence.shape[first:last]
        if not (first < hit.end() and last > hit.start()):
            if re.match(
                r"^\W*(?:on|in|for|among|when|where|if|excluding|without|after|under|within)\b",
                piece,
                re.IGNORECASE,
            ):
                words = re.findall(r"[^\W\d_][\w'’-]*", piece)
                if any(word.lower() not in lexicon.HARMLESS for word in words):
                    return True
            continue
        for word in re.findall(r"[^\W\d_][\w'’-]*", _WORD.sub(" ", _SURE.sub(" ", _NOT.sub(" ", piece)))):
            lowered = word.lower()
            if not (lowered in lexicon.HARMLESS or lowered.endswith("ly") or lowered in _KNOWN):
                return True
    return False


_KNOWN = frozenset("points point difference change statistical slightly much far significant clear real "
                   "noise wide margin t "
                   "between relative absolute percentage gain drop fail fails failed "
                   "overall any two three statistically".split())  # fmt: skip


def _is_rate(amount: Mention) -> bool:
    quantity = amount.amount
    return quantity is not None and (
        quantity.kind == RATE or (quantity.kind == COUNT and 0 <= quantity.value <= 1)
    )


def _sign(value: float) -> int:
    return 0 if abs(value) < 1e-9 else 1 if value > 0 else -1


def _judge(way: int, is_not: bool, sure: bool, signs: set[int], verdicts: set[str]) -> tuple[str, str]:
    """A stated way against the signs that are there and, for words such as significant, the verdicts."""
    if not signs:
        return UNVERIFIABLE, "nothing here measures it of both"
    decided = {"improved": 1, "regressed": -1}
    shown = {decided[one] for one in verdicts if one in decided}
    if way == 0:
        way_not = is_not
        if signs == {0} or (not shown and verdicts):
            return (UNVERIFIABLE, "no difference is shown, nor its absence") if way_not else (SUPPORTED, "")
        if shown and 0 not in signs:
            return (SUPPORTED, "") if way_not else (CONTRADICTED, "a difference is shown")
        return UNVERIFIABLE, "the runs differ, and nothing says whether by chance"
    if sure:
        if not verdicts:
            return UNVERIFIABLE, "the difference was not tested"
        if is_not:
            all_shown = len(shown) == 1 and way in shown and len(verdicts) == 1
            return (CONTRADICTED, "the difference is shown") if all_shown else (SUPPORTED, "")
        return (SUPPORTED, "") if way in shown else (CONTRADICTED, "no such difference is shown")
    if is_not:
        if way not in signs:
            return SUPPORTED, ""
        if signs == {way} and shown == {way}:
            return CONTRADICTED, "the rows say otherwise"
        return UNVERIFIABLE, "it is so in the rows, but may be chance"
    if way in signs:
        return SUPPORTED, ""
    return CONTRADICTED, "the rows say otherwise"
