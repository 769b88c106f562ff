"""Turn sentences into claims of measures, counts and shares, each held against its readings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from blade.check.reader import scope as around_it
from blade.check.reader.ground import ROLLOUTS, TASKS, Reading
from blade.check.reader.lexicon import NARROWING, NOUN_STATES
from blade.check.reader.mentions import (
    AMOUNT,
    CAUSE,
    METRIC,
    MODE,
    SLICE,
    STATE,
    TASK,
    UNIT,
    Mention,
    Reader,
    Sentence,
)
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.phrases import (
    ALONE_AFTER,
    ALONE_BEFORE,
    BEFORE,
    BESIDE,
    COSTS_OF_LOSS,
    DENIED,
    DONE,
    GOES_ON,
    HAS,
    HAS_MORE,
    IN_BRACKETS,
    LISTED,
    MEASURED,
    REACHES,
    SET,
    STATED,
)
from blade.check.reader.quantities import COUNT, POINTS, RATE, RATIO
from blade.check.reader.verdicts import Place, held, judged, said
from blade.model import Assertion
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE


class Prose:
    """One sentence at a time; every amount is claimed once, by the most telling pattern."""

    def __init__(
        self,
        reader: Reader,
        sentence: Sentence,
        place: Place,
        around: around_it.Around,
        used: set[int] | None = None,
    ) -> None:
        self.reader, self.ground = reader, reader.ground
        self.sentence, self.place, self.around = sentence, place, around
        self.used: set[int] = set(used or ())
        self.amounts = sentence.of(AMOUNT)

    def read(self) -> list[Assertion]:
        if not self.amounts:
            return []
        return [*self._costs(), *self._denied(), *self._measures(), *self._sets()]

    def _costs(self) -> Iterator[Assertion]:
        """`KG accounts for 40% of the lost score`: a sum that the report here makes, not a judgement."""
        for hit in COSTS_OF_LOSS.finditer(self.sentence.shape):
            amount, what = self._at(hit, "q"), self._at(hit, "c")
            told = around_it.run_of(self.reader, self.sentence, self.around)
            if amount.amount is None or amount.amount.kind != RATE or self.sentence.of(TASK):
                continue
            self.used.add(amount.start)
            part = _state(what)
            readings = [one for run in told.runs for one in self._lost(run, (), part)]
            is_sum = "lost" in hit["lost"] or "loss" in hit["lost"]
            doubt = told.doubt or ("" if is_sum else self.ground.unsettled(told.runs, part))
            if not is_sum:
                readings += [
                    one for run in told.runs for unit in (TASKS, ROLLOUTS)
                    for one in self.ground.shares(run, unit, ("failed",), part)
                ]  # fmt: skip
            yield judged(
                self.place, amount, "share", readings, subject="lost",
                run=told.runs[0] if len(told.runs) == 1 else None,
                scope=(("cause" if what.kind == CAUSE else "mode", what.names[0]),), as_rate=True,
                doubt=doubt or ("it may be narrowed" if NARROWING.search(self.sentence.shape) else ""),
            )  # fmt: skip

    # --- measures ------------------------------------------------------------------------------------

    def _denied(self) -> Iterator[Assertion]:
        """`pass@1 is not 70%`: false if it is, true if no reading of the measure is."""
        for hit in DENIED.finditer(self.sentence.shape):
            amount, metric = self._at(hit, "q"), self._at(hit, "m")
            told = around_it.run_of(self.reader, self.sentence, self.around)
            alone = len(self.amounts) == 1 and len(told.runs) == 1 and not told.doubt
            self.used.add(amount.start)
            if (
                not alone
                or not _can_measure(amount, metric)
                or any(self.sentence.of(kind) for kind in "TALDC")
            ):
                continue
            name, k = metric.names[0], int(metric.names[1]) if metric.names[1] else None
            readings = self.ground.rates(told.runs[0], name, k)
            fit = held(amount.amount, readings, name not in _NUMBERS) if amount.amount else None
            doubt = around_it.task_of(self.reader, self.sentence, self.around)[1]
            doubt = doubt or around_it.doubt_of(self.sentence, hit.end(), hit.end())
            if not readings:
                continue
            verdict, why = SUPPORTED, ""
            if fit is not None:
                verdict, why = CONTRADICTED, "it is"
                if doubt or fit is not readings[0]:
                    verdict, why = UNVERIFIABLE, doubt or "it is, in another way of counting"
            yield said(
                self.place, verdict, "metric", f"not {amount.text}", amount.start, expected=readings[0].words,
                why=why,
                subject=name, run=told.runs[0], query=readings[0].query,
            )  # fmt: skip

    def _plain(self) -> Iterator[tuple[Mention, re.Match[str]]]:
        """A rate that stands for the score, though no measure is named: `A reaches 58% and B 54%`."""
        if any(self.sentence.of(kind) for kind in "TALDCS") or _NAMED_OTHER.search(self.sentence.text):
            return
        metrics = self.sentence.of(METRIC)
        metric = metrics[0] if len(metrics) == 1 else Mention(METRIC, ("score", ""), 0, 0)
        for hit in REACHES.finditer(self.sentence.shape) if not metrics else ():
            yield metric, hit

    def _beside(self) -> Iterator[tuple[Mention, list[tuple[Mention, int, int]]]]:
        """`A (58%) beats B (54%)`: rates in brackets behind the runs."""
        hits = list(BESIDE.finditer(self.sentence.shape))
        metrics = self.sentence.of(METRIC)
        if len(hits) < 2 or len(metrics) > 1 or any(self.sentence.of(kind) for kind in "TALDCS"):
            return
        metric = metrics[0] if metrics else Mention(METRIC, ("score", ""), 0, 0)
        chain = [(self._at(hit, "q"), hit.start("q"), hit.end("q")) for hit in hits]
        if all(_can_measure(one, metric) and one.start not in self.used for one, _, _ in chain):
            self.used |= {one.start for one, _, _ in chain}
            yield metric, chain

    def _measures(self) -> Iterator[Assertion]:
        chains: list[tuple[Mention, list[tuple[Mention, int, int]]]] = []
        shape = self.sentence.shape
        named = [
            (self._at(hit, "m"), hit) for pattern in (MEASURED, BEFORE) for hit in pattern.finditer(shape)
        ]
        for metric, hit in [*named, *self._plain()]:
            amount = self._at(hit, "q")
            if amount.start in self.used or not _can_measure(amount, metric):
                continue
            self.used.add(amount.start)
            chain = [(amount, hit.start(), hit.end())]
            end = hit.end()
            while more := GOES_ON.match(shape, end):
                amount = self._at(more, "q")
                if amount.start in self.used or not _can_measure(amount, metric) or not _names_other(more[0]):
                    break
                self.used.add(amount.start)
                chain.append((amount, hit.start(), more.end()))
                end = more.end()
            chains.append((metric, chain))
        for metric, chain in [*chains, *self._beside()]:
            yield from self._chain(metric, chain)

    def _chain(self, metric: Mention, chain: list[tuple[Mention, int, int]]) -> Iterator[Assertion]:
        amounts = [amount for amount, _, _ in chain]
        whose = around_it.aligned(self.sentence, amounts) if len(self.ground.runs) > 1 else None
        for amount, start, end in chain:
            runs: tuple[str, ...]
            if whose is not None:
                runs, doubt = (whose[amount.start],), ""
            else:
                told = around_it.run_of(self.reader, self.sentence, self.around)
                runs, doubt = told.runs, told.doubt
                if len(chain) > 1 and len(self.ground.runs) == 1:
                    doubt = "several values are given for one measure"
            doubt = doubt or around_it.doubt_of(self.sentence, start, end)
            yield self._measure(metric, amount, runs, doubt, (start, end))

    def _measure(
        self, metric: Mention, amount: Mention, runs: tuple[str, ...], doubt: str, span: tuple[int, int]
    ) -> Assertion:
        name, k = metric.names[0], int(metric.names[1]) if metric.names[1] else None
        tasks, pieces = self.sentence.of(TASK), self.sentence.of(SLICE)
        if not tasks and not pieces:
            doubt = doubt or around_it.task_of(self.reader, self.sentence, self.around)[1]
        scope: tuple[tuple[str, str], ...] = ()
        readings: list[Reading] = []
        if tasks or pieces:
            readings, scope, more = self._narrowed(name, tasks, pieces, runs)
            doubt = doubt or more
        else:
            readings = [one for run in runs for one in self.ground.rates(run, name, k)]
        if not readings and name in ("pass_at_k", "pass_hat_k"):
            doubt = doubt or f"no {metric.text} was measured"
        subject = name if k is None else f"{name}:{k}"
        return judged(
            self.place, amount, "metric", readings, subject=subject, run=runs[0] if len(runs) == 1 else None,
            scope=scope, as_rate=name not in _NUMBERS, doubt=doubt,
        )  # fmt: skip

    def _narrowed(
        self, name: str, tasks: list[Mention], pieces: list[Mention], runs: tuple[str, ...]
    ) -> tuple[list[Reading], tuple[tuple[str, str], ...], str]:
        """The readings of a measure of one task or one slice."""
        if name not in ("pass_at_1", "pass_rate", "score", "mean_reward"):
            return [], (), "nothing here measures it of a part"
        if tasks and not pieces and len(tasks) == 1 and len(tasks[0].names) == 1:
            key = tasks[0].names[0]
            found = [
                one
                for run in runs
                if key in self.ground.runs[run].tasks
                for one in self.ground.of_task(run, key)
            ]
            return found, (("task", key),), ""
        if pieces and not tasks and len(pieces) == 1:
            field, value = pieces[0].names
            found = [one for run in runs for one in self.ground.of_slice(run, field, value)]
            return found, (("slice", f"{field}={value}"),), ""
        return [], (), "several parts could be meant"

    # --- counts and shares ---------------------------------------------------------------------------

    def _sets(self) -> Iterator[Assertion]:
        shape = self.sentence.shape
        for hit in DONE.finditer(shape):
            yield from self._claim(hit, done=self._at(hit, "s"))
        for hit in SET.finditer(shape):
            if hit["post"] or hit["pre"]:
                yield from self._claim(hit)
        for hit in STATED.finditer(shape):
            pre = self._at(hit, "pre")
            if hit["post"] and not NOUN_STATES.search(pre.text.lower()):
                continue
            yield from self._claim(hit)
        for pattern in (LISTED, HAS):
            for hit in pattern.finditer(shape):
                if hit["n"] or hit.groupdict().get("pre"):
                    yield from self._claim(hit)
                more = HAS_MORE.match(shape, hit.end()) if pattern is HAS else None
                if more:
                    yield from self._claim(more)

    def _claim(self, hit: re.Match[str], done: Mention | None = None) -> Iterator[Assertion]:
        amount = self._at(hit, "q")
        quantity = amount.amount
        assert quantity is not None
        if amount.start in self.used or quantity.kind == POINTS:
            return
        if quantity.kind == COUNT and quantity.value != int(quantity.value):
            return
        pre, post, noun = (self._maybe(hit, name) for name in ("pre", "post", "n"))
        whole, part = _parts(pre, post, done, quantity.kind)
        if hit.groupdict().get("once") and part == ("solved",):
            part = ("solved_once",)
        if (
            quantity.kind == RATE
            and not part
            and noun is None
            and pre is not None
            and not hit.groupdict().get("of")
        ):
            whole, part = (), _state(pre)
        if quantity.kind in (RATE, RATIO) and not part:
            return
        self.used.add(amount.start)
        start, end = hit.span()
        told = around_it.run_of(self.reader, self.sentence, self.around)
        doubt = told.doubt or around_it.doubt_of(self.sentence, start, end)
        runs = told.runs
        doubt = doubt or self.ground.unsettled(runs, (*whole, *part))
        if done is not None and len(self.ground.runs) > 1:
            runs, doubt = self._doer(done, runs, doubt, start, end)
        task, more = around_it.task_of(self.reader, self.sentence, self.around)
        if task is not None and (more := around_it.is_apart(self.sentence, amount.start, noun)):
            task = None
        if task is None and (_of_one_task(noun) or _of_one_task(next(iter(self.sentence.of(UNIT)), None))):
            more = more or "repeats are counted task by task"
        doubt = doubt or more
        if not part and whole and not self._is_total(start, end):
            doubt = doubt or "it may be a part of them"
        units = (noun.names[0],) if noun is not None else (TASKS, ROLLOUTS)
        yield self._counted(amount, units, whole, part, runs, task, doubt)
        inside = hit.start("b") if hit.groupdict().get("b") else end
        if bracket := IN_BRACKETS.match(self.sentence.shape, inside):
            yield from self._bracket(bracket, units, whole, part, runs, task, doubt)

    def _is_total(self, start: int, end: int) -> bool:
        """`116 failed rollouts` by itself, not as what something covers or shows."""
        shape = self.sentence.shape
        return bool(ALONE_BEFORE.search(shape[:start]) and ALONE_AFTER.match(shape, end))

    def _doer(
        self, done: Mention, runs: tuple[str, ...], doubt: str, start: int, end: int
    ) -> tuple[tuple[str, ...], str]:
        """`A solved 52 tasks and B 61`: the run right before the verb did it."""
        before = [one for one in self.sentence.of("R") if one.end <= done.start and len(one.names) == 1]
        between = self.sentence.text[before[-1].end : done.start] if before else "x"
        if before and not between.strip(" ,()`*_") and len(self.sentence.of("R")) > 1:
            states = tuple(one for one in done.names)
            doubt = around_it.doubt_of(self.sentence, start, end)
            return before[-1].names, doubt or self.ground.unsettled(before[-1].names, states)
        return runs, doubt

    def _bracket(
        self, bracket: re.Match[str], units: tuple[str, ...], whole: tuple[str, ...], part: tuple[str, ...],
        runs: tuple[str, ...], task: str | None, doubt: str,
    ) -> Iterator[Assertion]:  # fmt: skip
        """`52 of 164 tasks (31.7%)`: what stands in brackets says the same as a share."""
        amount = self._at(bracket, "q")
        if (
            amount.start in self.used
            or amount.amount is None
            or amount.amount.kind not in (RATE, RATIO)
            or not (part or whole)
        ):
            return
        self.used.add(amount.start)
        of, some = (whole, part) if part else ((), whole)
        yield self._counted(amount, units, of, some, runs, task, doubt)

    def _counted(
        self, amount: Mention, units: tuple[str, ...], whole: tuple[str, ...], part: tuple[str, ...],
        runs: tuple[str, ...], task: str | None, doubt: str,
    ) -> Assertion:  # fmt: skip
        quantity = amount.amount
        assert quantity is not None
        run = runs[0] if len(runs) == 1 else None
        scope = (("task", task),) if task is not None else ()
        known = [one for one in runs if task is None or task in self.ground.runs[one].tasks]
        subject = "_".join((*(part or ()), *whole)) or f"n_{units[0]}"
        if quantity.kind == COUNT:
            states = (*whole, *part)
            readings = [
                one
                for name in known
                for unit in units
                for one in self.ground.counts(name, unit, states, task)
            ]
            return judged(
                self.place, amount, "count", readings, subject=subject, run=run, scope=scope, doubt=doubt
            )
        if quantity.kind == RATE:
            readings = [
                one
                for name in known
                for unit in units
                for one in self.ground.shares(name, unit, whole, part, task)
            ]
            readings += [one for name in known for one in self._lost(name, whole, part)]
            return judged(
                self.place,
                amount,
                "share",
                readings,
                subject=subject,
                run=run,
                scope=scope,
                as_rate=True,
                doubt=doubt,
            )
        return self._ratio(amount, units, whole, part, known, task, doubt, subject)

    def _lost(self, run: str, whole: tuple[str, ...], part: tuple[str, ...]) -> list[Reading]:
        """Failures by cause or mode may be meant by the score they cost."""
        causes = [one.partition(":")[2] for one in part if one.startswith("cause:")]
        modes = [one.partition(":")[2] for one in part if one.startswith("mode:")]
        total = self.ground.lost(run)
        if total <= 0 or not (causes or modes) or (set(whole) - {"failed"}):
            return []
        lost = self.ground.lost(run, causes, modes[0] if modes else None)
        what = (causes or modes)[0]
        return [Reading(lost / total, f"{what} takes {lost / total:.1%} of the score that {run} lost")]

    def _ratio(
        self, amount: Mention, units: tuple[str, ...], whole: tuple[str, ...], part: tuple[str, ...],
        runs: list[str], task: str | None, doubt: str, subject: str,
    ) -> Assertion:  # fmt: skip
        quantity = amount.amount
        assert quantity is not None
        told: dict[str, Any] = {
            "subject": subject,
            "run": runs[0] if len(runs) == 1 else None,
            "value": quantity.value,
        }
        wanted: list[str] = []
        for run in runs:
            for unit in units:
                tops = self.ground.counts(run, unit, (*whole, *part), task)
                wholes = self.ground.wholes(run, unit, whole, task)
                if tops and wholes:
                    wanted.append(f"{tops[0].value:.0f} of {wholes[0]:.0f} {unit} ({subject}) in {run}")
                if any(quantity.fits(one.value) for one in tops) and quantity.of in wholes:
                    return said(
                        self.place,
                        SUPPORTED,
                        "count",
                        amount.text,
                        amount.start,
                        expected=wanted[-1],
                        **told,
                    )
        sizes = [one for run in runs for unit in units for one in self.ground.wholes(run, unit, whole, task)]
        if share := quantity.as_proportion(sizes):
            return self._counted(replace(amount, amount=share), units, whole, part, tuple(runs), task, doubt)
        if doubt or not wanted:
            why = doubt or "nothing here counts it"
            return said(self.place, UNVERIFIABLE, "count", amount.text, amount.start, why=why, **told)
        return said(
            self.place, CONTRADICTED, "count", amount.text, amount.start, expected=wanted[0],
            why="the rows say otherwise", **told,
        )  # fmt: skip

    # --- marks ---------------------------------------------------------------------------------------

    def _at(self, hit: re.Match[str], name: str) -> Mention:
        found = self._maybe(hit, name)
        assert found is not None
        return found

    def _maybe(self, hit: re.Match[str], name: str) -> Mention | None:
        groups = hit.groupdict()
        return self.sentence.at[hit.start(name)] if groups.get(name) else None


_NAMED_OTHER = re.compile(
    r"\b(?:reward|tokens?|turns?|calls?|cost|coverage|interval|confidence|flip|agreement|error|loss|"
    r"lost|share)\b",
    re.IGNORECASE,
)
_NUMBERS = {"icc", "design_effect", "mean_reward"}


def _can_measure(amount: Mention, metric: Mention) -> bool:
    quantity = amount.amount
    if quantity is None or quantity.kind == POINTS:
        return False
    if metric.names[0] in _NUMBERS:
        return quantity.kind == COUNT
    # a whole number beside a measure is hardly its value: a step, a list number, a count
    return quantity.kind != COUNT or (
        0 <= quantity.value <= 1 and ("." in quantity.text or quantity.value in (0, 1))
    )


def _names_other(between: str) -> bool:
    return any(mark in between for mark in _RUNS) or any(
        word in between.lower() for word in ("vs", "versus", "against", "compared")
    )


_RUNS = (shaped("<R>").pattern.strip("[]"),)


def _of_one_task(noun: Mention | None) -> bool:
    return noun is not None and noun.text.lower().startswith(("repeat", "tries"))


def _state(one: Mention | None) -> tuple[str, ...]:
    if one is None:
        return ()
    prefix = {CAUSE: "cause:", MODE: "mode:", STATE: ""}[one.kind]
    return (prefix + one.names[0],)


def _parts(
    pre: Mention | None, post: Mention | None, done: Mention | None, kind: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of what, and what of it."""
    if done is not None:
        return _state(pre), _state(done)
    if post is not None:
        return _state(pre), _state(post)
    if kind == COUNT:
        return _state(pre), ()
    return (), ()


__all__ = ["UNIT", "Prose"]
