"""Turn words of rank and of quantity into claims: best, worst, leads, most common, most, all, none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from blade.check.reader import scope
from blade.check.reader.ground import PROPOSALS, ROLLOUTS, TASKS, Ground
from blade.check.reader.lexicon import HARMLESS, NOUN_STATES
from blade.check.reader.mentions import (
    CAUSE,
    METRIC,
    MODE,
    RUN,
    SLICE,
    STATE,
    TASK,
    Mention,
    Reader,
    Sentence,
)
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.verdicts import Place, said
from blade.model import Assertion
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE

_HIGH = (
    r"best|strongest|highest|easiest|top[- ](?:scoring|performing)|leads?|leading|ranks? first|on top|"
    r"first place|most (?:accurate|reliable)"
)
_LOW = (
    r"worst|weakest|lowest|hardest|bottom|most difficult|poorest|ranks? last|last place|"
    r"least (?:accurate|reliable)"
)
_RANK = re.compile(rf"\b(?:(?P<high>{_HIGH})|(?P<low>{_LOW}))\b", re.IGNORECASE)
_COMMON = shaped(
    r"\b(?P<most>(?:the )?(?:single )?(?:(?P<often>most (?:common|frequent|widespread|prevalent)|"
    r"commonest)|dominant|largest|biggest"
    r"|leading|main|top|primary|costliest|most (?:costly|expensive)))\s+"
    r"(?:single\s+)?(?P<what>failure (?:modes?|types?|causes?|reasons?|patterns?)|modes?|causes?|"
    r"root causes?|buckets?|reasons?|"
    r"(?P<seen>behaviou?rs?|detectors?)|<S>(?: (?:modes?|types?|patterns?))?)(?!\w)"
    r"(?P<lost> of (?:the |all )?(?:loss(?:es)?|lost (?:<M>|points)|points lost))?"
)
_MOST_POINTS = shaped(
    r"\b(?:most|more)\s+(?:of the\s+)?(?:lost\s+)?points?\s+(?:are\s+lost|go(?:es)?|went|were\s+lost)\s+to\s+"
    r"(?:the\s+)?(?P<d><D>)(?:\s+than\s+to\s+any(?:thing|\s+\w+)?(?:\s+else)?)?(?=\s*(?:$|[.,;:()]))"
)
_MOST = shaped(
    r"(?:^|[,;:(]\s*|\b(?:and|but|while|that|because|since|so|although|though)\s+)"
    r"(?P<word>most|the majority|a majority|the bulk|nearly all|almost all|all|every|each|no|none|few|"
    r"hardly any|not all|not every)\s+"
    r"(?:of\s+)?(?:(?:the|its|our|these)\s+)*(?:(?P<pre><SCD>)[\s-]+(?=<N>))?(?:(?P<n><N>)|(?P<s><S>))"
    r"(?:\s+(?:of|in|by|from|for)\s+(?:the\s+)?<R>)?"
    r"(?:\s+(?:are|is|were|was|have|has|had|been|ended|as|labelled|attributed|to|due|caused|by|in|a|"
    r"an)\b)*\s+(?P<post><SCD>)"
    r"(?!\s*(?:in|on|at|because|when|if|with|for|only|after|\d|once|by)\b)"
)
_NOT = re.compile(r"\b(?:not|never|no longer|neither|nor|isn['’]t|wasn['’]t|aren['’]t)\b", re.IGNORECASE)
_SMALL = (1, 2, 3, 5, 10)


class Orders:
    """What one sentence says of rank, and of most, all and none."""

    def __init__(self, reader: Reader, sentence: Sentence, place: Place, around: scope.Around) -> None:
        self.reader, self.ground = reader, reader.ground
        self.sentence, self.place, self.around = sentence, place, around

    def read(self) -> list[Assertion]:
        if re.search(
            r"\b(?:would|could|should|might|may|if|whether)\b|\?", self.sentence.text, re.IGNORECASE
        ):
            return []
        return [*self._ranks(), *self._commonest(), *self._costliest(), *self._quantified()]

    # --- rank ----------------------------------------------------------------------------------------

    def _ranks(self) -> Iterator[Assertion]:
        hits = list(_RANK.finditer(self.sentence.shape))
        if len(hits) != 1 or _COMMON.search(self.sentence.shape):
            return
        hit = hits[0]
        is_low, is_not = bool(hit["low"]), bool(_NOT.search(self.sentence.shape[: hit.start()][-30:]))
        pieces, runs = self.sentence.of(SLICE), self.sentence.of(RUN)
        if len(pieces) == 1 and len(runs) < 2:
            yield from self._slice(hit, pieces[0], is_low, is_not)
        elif len(runs) == 1 and not pieces and not self.sentence.of(TASK) and len(self.ground.runs) > 1:
            yield from self._run(hit, runs[0], is_low, is_not)

    def _slice(self, hit: re.Match[str], piece: Mention, is_low: bool, is_not: bool) -> Iterator[Assertion]:
        told = scope.run_of(self.reader, self.sentence, self.around)
        field, value = piece.names
        if len(told.runs) != 1:
            return
        every = [one for one in self.ground.runs[told.runs[0]].slices if one.pass_rate is not None]
        mine = next((one for one in every if (one.field, one.value) == (field, value)), None)
        peers = [one for one in every if one.field == field]
        if mine is None or len(peers) < 2:
            return
        sign = 1 if is_low else -1
        is_first = any(
            sign * float(mine.pass_rate or 0) <= min(sign * float(one.pass_rate or 0) for one in kept) + 1e-9
            for least in _SMALL
            if mine in (kept := [one for one in peers if one.n_tasks >= least])
        )
        first = min(peers, key=lambda one: (sign * float(one.pass_rate or 0), -one.n_tasks))
        words = f"{field}={first.value} is ({float(first.pass_rate or 0):.1%}); "
        words += f"{value} has {float(mine.pass_rate or 0):.1%}"
        yield self._ranked(
            hit, is_first, is_not, words, told.runs[0], (("slice", f"{field}={value}"),), "slice"
        )

    def _run(self, hit: re.Match[str], named: Mention, is_low: bool, is_not: bool) -> Iterator[Assertion]:
        metrics = self.sentence.of(METRIC)
        if len(named.names) != 1 or len({one.names for one in metrics}) > 1:
            return
        name, k = (metrics[0].names[0], metrics[0].names[1]) if metrics else ("score", "")
        at = int(k) if k else None
        values = {
            run: [one.value for one in self.ground.rates(run, name, at)][:1] for run in self.ground.runs
        }
        if any(not each for each in values.values()):
            return
        mine = values[named.names[0]][0]
        others = [each[0] for run, each in values.items() if run != named.names[0]]
        is_first = mine <= min(others) + 1e-9 if is_low else mine >= max(others) - 1e-9
        words = ", ".join(f"{run} {each[0]:.1%}" for run, each in values.items())
        yield self._ranked(hit, is_first, is_not, words, named.names[0], (), name)

    def _ranked(
        self, hit: re.Match[str], is_first: bool, is_not: bool, words: str, run: str,
        given: tuple[tuple[str, str], ...], subject: str, doubt: str = "",
    ) -> Assertion:  # fmt: skip
        narrow = doubt or self._narrow(hit)
        verdict = SUPPORTED if is_first != is_not else UNVERIFIABLE if narrow else CONTRADICTED
        why = "" if verdict == SUPPORTED else narrow or "the rows say otherwise"
        return said(
            self.place, verdict, "ordering", hit[0], self.sentence.places[hit.start()],
            expected=words, why=why,
            subject=subject, run=run, scope=given, value=("not " if is_not else "") + hit[0].lower(),
        )  # fmt: skip

    def _narrow(self, hit: re.Match[str]) -> str:
        for first, last in scope.segments(self.sentence.shape):
            if first < hit.end() and last > hit.start():
                piece = _COMMON.sub(" ", _RANK.sub(" ", self.sentence.shape[first:last]))
                for word in re.findall(r"[^\W\d_][\w'’-]*", piece):
                    lowered = word.lower()
                    if not (lowered in HARMLESS or lowered in _KNOWN or lowered.endswith("ly")):
                        return f"the sentence may narrow it: {word}"
        return ""

    # --- most common ---------------------------------------------------------------------------------

    def _commonest(self) -> Iterator[Assertion]:
        hits = list(_COMMON.finditer(self.sentence.shape))
        told = scope.run_of(self.reader, self.sentence, self.around)
        if len(hits) != 1 or len(told.runs) != 1:
            return
        hit, run = hits[0], told.runs[0]
        named = [one for one in self.sentence.mentions if one.kind in (MODE, CAUSE, STATE)]
        inside = range(hit.start("what"), hit.end("what"))
        linked = [
            one for at, one in self.sentence.at.items()
            if one in named and at not in inside and self._is_linked(hit, one)
        ]  # fmt: skip
        if len(linked) != 1:
            return
        one = linked[0]
        is_not = bool(_NOT.search(self.sentence.shape))
        counted = tallies(self.ground, run, one.kind, often=bool(hit["often"]), seen=bool(hit["seen"]))
        counted = counted[:1] if hit["lost"] and one.kind != STATE else counted
        name = one.names[0]
        is_first = any(
            name in tally and tally[name] >= max(tally.values()) - 1e-9 for tally in counted if tally
        )
        if not any(counted):
            return
        doubt = (
            PROPOSALS
            if one.kind == CAUSE or (one.kind == MODE and name not in self.ground.runs[run].behaviours)
            else ""
        )
        if one.kind == STATE and name not in ("always", "sometimes", "never"):
            return
        tally = next(each for each in counted if each)
        first = max(tally, key=lambda key: tally[key])
        yield self._ranked(
            hit, is_first, is_not, f"{first} is ({tally[first]:g}); {name} has {tally.get(name, 0):g}", run,
            (((one.kind == CAUSE and "cause") or "mode", name),), "most common", doubt,
        )  # fmt: skip

    def _costliest(self) -> Iterator[Assertion]:
        """`more points go to x than to anything else`: a sum that the report here makes."""
        told = scope.run_of(self.reader, self.sentence, self.around)
        for hit in _MOST_POINTS.finditer(self.sentence.shape) if len(told.runs) == 1 else ():
            name, run = self.sentence.at[hit.start("d")].names[0], told.runs[0]
            lost = tallies(self.ground, run, MODE)[0]
            if lost:
                first = max(lost, key=lambda key: lost[key])
                mine = lost.get(name, 0.0)
                words = f"{first} is ({lost[first] * 100:.1f} points); {name} has {mine * 100:.1f}"
                holds = mine >= lost[first] - 1e-9
                doubt = "" if name in self.ground.runs[run].behaviours else PROPOSALS
                start, end = (self.sentence.places[at] for at in hit.span())
                verdict = SUPPORTED if holds else UNVERIFIABLE if doubt else CONTRADICTED
                yield said(
                    self.place, verdict, "ordering", self.sentence.text[start:end], start, expected=words,
                    why="" if holds else doubt or "the rows say otherwise", subject="lost", run=run,
                    scope=(("mode", name),), value="most points",
                )  # fmt: skip

    def _is_linked(self, hit: re.Match[str], one: Mention) -> bool:
        """`the most common mode is X`, or `X is the most common mode`."""
        at = next(place for place, mention in self.sentence.at.items() if mention is one)
        between = (
            self.sentence.shape[hit.end() : at]
            if at >= hit.end()
            else self.sentence.shape[at + 1 : hit.start()]
        )
        return bool(_PLAIN.fullmatch(between))

    # --- most, all, none -----------------------------------------------------------------------------

    def _quantified(self) -> Iterator[Assertion]:
        for hit in _MOST.finditer(self.sentence.shape):
            yield from self._share(hit)

    def _share(self, hit: re.Match[str]) -> Iterator[Assertion]:
        told = scope.run_of(self.reader, self.sentence, self.around)
        pre, alone, post = (
            self.sentence.at[hit.start(name)] if hit[name] else None for name in ("pre", "s", "post")
        )
        pre = pre or alone
        noun = self.sentence.at[hit.start("n")] if hit["n"] else None
        if (
            len(told.runs) != 1
            or post is None
            or (noun is None and (pre is None or not NOUN_STATES.search(pre.text.lower())))
        ):
            return
        part, more = scope.task_of(self.reader, self.sentence, self.around)
        if (
            part is not None
            or more
            or (noun is not None and noun.text.lower().startswith(("repeat", "tries")))
        ):
            return
        run, units = told.runs[0], (noun.names[0],) if noun is not None else (TASKS, ROLLOUTS)
        whole, some = _state(pre), _state(post)
        shares = [one for unit in units for one in self.ground.shares(run, unit, whole, some)]
        if not shares:
            return
        doubt = scope.doubt_of(self.sentence, hit.start(), hit.end())
        doubt = doubt or self.ground.unsettled(told.runs, (*whole, *some))
        word = hit["word"].lower()
        holds = any(_is_so(word, one.value) for one in shares)
        verdict = SUPPORTED if holds else UNVERIFIABLE if doubt else CONTRADICTED
        start = self.sentence.places[hit.start("word")]
        yield said(
            self.place, verdict, "share", self.sentence.text[start : post.end], start,
            expected=shares[0].words, why="" if holds else doubt or "the rows say otherwise",
            subject="_".join(some), run=run, value=word,
        )  # fmt: skip


_PLAIN = re.compile(
    r"(?:\s|[,:=()*]|\b(?:is|was|are|were|of|by|far|the|here|overall|remains|in|a|an|for|it|and|clearly|"
    r"again|still|with|namely|this|run|failures?|tasks?)\b|[\ue052])*",
    re.IGNORECASE,
)
_KNOWN = frozenset("slice slices category categories field domain group model run agent failure mode modes "
                   "cause causes bucket type "
                   "difficult rank ranks place class level by far of behaviour behavior reason segment "
                   "among ranking".split())  # fmt: skip


def _is_so(word: str, share: float) -> bool:
    if word in ("most", "the majority", "a majority", "the bulk"):
        return share > 0.5
    if word in ("nearly all", "almost all"):
        return share >= 0.8
    if word in ("all", "every", "each"):
        return share >= 1 - 1e-9
    if word in ("not all", "not every"):
        return share < 1
    if word in ("no", "none"):
        return share <= 1e-9
    return share < 0.5


def _state(one: Mention | None) -> tuple[str, ...]:
    if one is None:
        return ()
    return ({CAUSE: "cause:", MODE: "mode:", STATE: ""}[one.kind] + one.names[0],)


def tallies(
    from_ground: Ground, run: str, kind: str, often: bool = False, seen: bool = False
) -> list[Mapping[str, float]]:
    """How often each mode, cause or bucket is met, in every way of counting.

    What is `often` met is not what costs most; of behaviours that are `seen`, rollouts and tasks count.
    """
    ground = from_ground.runs[run]
    if kind == STATE:
        return [{name: float(len(ground.states(name, TASKS)[0])) for name in ("always", "sometimes", "never")
                 if ground.states(name, TASKS)}]  # fmt: skip
    lost: dict[str, float] = {}
    for loss in ground.losses:
        key = loss.mode if kind == MODE else loss.cause.value
        lost[key] = lost.get(key, 0.0) + loss.lost
    tasks: dict[str, float] = {}
    for each in ground.causes.values():
        key = each.mode if kind == MODE else each.cause.value
        tasks[key] = tasks.get(key, 0.0) + 1
    if kind == CAUSE:
        return [lost, tasks]
    fired = ground.behaviours.values()
    by_count = [
        {one.detector: float(one.n_rollouts) for one in fired},
        {one.detector: float(one.in_fail) for one in fired},
        {one.detector: float(one.n_tasks) for one in fired},
    ]
    if seen:
        return list(by_count)
    if often:
        return [*by_count, tasks, lost]
    return [
        lost, {mode: value for mode, value in lost.items() if mode in ground.behaviours},
        {loss.mode: loss.lost for loss in sorted(ground.losses, key=lambda each: each.lost)},
        tasks, *by_count,
    ]  # fmt: skip
