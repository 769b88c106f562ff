"""Turn what a report says of single tasks and rollouts into claims: buckets, labels, ids."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader import lexicon, scope
from blade.check.reader.ground import TASKS, Ground
from blade.check.reader.mentions import ADDRESS, CAUSE, STATE, TASK, Mention, Reader, Sentence
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.verdicts import Place, said
from blade.facts.query import path
from blade.model import Assertion, Outcome
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE

_NOT = re.compile(
    r"\b(?:not|n[o']t|never|hardly|rarely|isn['’]t|doesn['’]t|didn['’]t|wasn['’]t|aren['’]t|weren['’]t|"
    r"don['’]t)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|isn['’]t|wasn['’]t|rather than|instead of|neither)\b", re.IGNORECASE)
_BETWEEN = (
    r"(?:\s|,|`|\(|\)|<R>|<C>|\b(?:is|are|was|were|be|been|being|a|an|the|both|all|each|has|have|had|still|"
    r"only|also|"
    r"in|of|for|by|as|that|which|which|does|do|did|not|doesn['’]t|don['’]t|didn['’]t|isn['’]t|aren['’]t|"
    r"remains?|classified|labelled|marked|considered|ends?|ended|run|baseline|candidate|under|on|truly|"
    r"clearly|"
    r"consistently|genuinely|always|just|simply|two|three|four|five|these|those|they|it)\b)*"
)
_SAID = shaped(rf"(?P<t><TA>)(?P<between>{_BETWEEN})(?P<s><S>)")
_LISTED = shaped(r"(?P<s><S>)[\s-]*(?:\(<Q>\)\s*)?(?P<t><T>)")
_COLON = re.compile(r"^(?P<head>[^:]{3,80}):\s*(?P<ids>[^:]+?)\.?$")
_ONLY = re.compile(r"\bonly\b|\bexactly\b|\bthe sole\b|\bjust\b", re.IGNORECASE)
_AFTER = re.compile(
    r"\s*(?:in|on|under|with|when|if|at|for|after|before|once|\d|until|unless|by)\b", re.IGNORECASE
)
_THOUGHT = re.compile(r"\b(?:would|could|should|might|may|if|unless|had it)\b", re.IGNORECASE)
_ENGINE = re.compile(
    r"\b(?:blade|engine|tool|analy[sz]er|classifier|report)(?:['’]s)?\s+(?:labels?|labelled|assigns?|"
    r"assigned|attributes?|says|calls|classif\w+|marks?|label)\b",
    re.IGNORECASE,
)
BARE = {
    "always": "always",
    "sometimes": "sometimes",
    "never": "never",
    "flaky": "sometimes",
    "mixed": "sometimes",
}
# How a cell tells an outcome without a word for it.
MARKS = dict.fromkeys(("✓", "✔", "✅", "yes", "1", "1.0", "ok", "success"), "passed")
MARKS |= dict.fromkeys(("✗", "✘", "❌", "×", "x", "no", "0", "0.0"), "failed")
_BUCKETS = ("always", "sometimes", "never", "missing")


class Parts:
    """What one sentence says of tasks and rollouts by their ids."""

    def __init__(self, reader: Reader, sentence: Sentence, place: Place, around: scope.Around) -> None:
        self.reader, self.ground = reader, reader.ground
        self.sentence, self.place, self.around = sentence, place, around

    def read(self, is_heading: bool, is_told: bool = False) -> Iterator[Assertion]:
        """All of it; `is_told`: how tasks ended is read already, in more words than the state alone."""
        named = [one for one in self.sentence.mentions if one.kind in (TASK, ADDRESS)]
        if named:
            told = scope.run_of(self.reader, self.sentence, self.around)
            yield from self._ids(named, is_heading)
            yield from self._states(told, is_told)
            yield from self._labels(told)
        yield from self._colon()

    # --- ids -------------------------------------------------------------------------------------

    def _ids(self, named: list[Mention], is_heading: bool) -> Iterator[Assertion]:
        for one in named:
            for name in one.names:
                task, _, repeat = (
                    name.rpartition("/") if one.kind == ADDRESS and "/" in name else (name, "", "")
                )
                runs = [run for run in self.ground.runs.values() if task in run.tasks]
                exists = bool(runs) and (not repeat or any(
                    int(repeat) in {each.repeat for each in run.tasks[key].repeats}
                    for run in runs for key in self.reader.either(task) if key in run.tasks
                ))  # fmt: skip
                if exists:
                    yield said(
                        self.place,
                        SUPPORTED,
                        "id",
                        one.text,
                        one.start,
                        value=name,
                        query=path("tasks", task=task),
                    )
                elif runs or not is_heading:
                    what = f"task {task} has no repeat {repeat}" if runs else f"no run has a task {task}"
                    yield said(
                        self.place,
                        CONTRADICTED,
                        "id",
                        one.text,
                        one.start,
                        expected=what,
                        why="no such id",
                        value=name,
                    )

    # --- states --------------------------------------------------------------------------------------

    def _states(self, told: scope.Scope, is_told: bool) -> Iterator[Assertion]:
        used: set[int] = set()
        for pattern in (_SAID, _LISTED):
            for hit in pattern.finditer(self.sentence.shape):
                named, state = self.sentence.at[hit.start("t")], self.sentence.at[hit.start("s")]
                if state.start in used or named.start in used or (is_told and named.kind == TASK):
                    continue
                used |= {state.start, named.start}
                is_not = pattern is _SAID and bool(_NOT.search(hit["between"]))
                rest = self.sentence.shape[hit.end() :]
                doubt = told.doubt
                if named.kind == ADDRESS:
                    doubt = doubt or ("more is said of it" if _THOUGHT.search(self.sentence.text) else "")
                elif pattern is _SAID and _AFTER.match(rest) and state.names[0] not in _BUCKETS:
                    doubt = doubt or "more is said of it"
                if pattern is _SAID and re.match(r"[\s]*\ue051", rest):  # an amount follows: how often
                    continue
                if re.match(r"\s*(?:because|due|with|when|in every|in all|\d)", rest) and is_not:
                    doubt = doubt or "more is said of it"
                for name in named.names:
                    yield from self._state(name, named, state, is_not, told.runs, doubt)
                if (
                    _ONLY.search(self.sentence.text[: named.start][-12:])
                    and named.kind == TASK
                    and not is_not
                ):
                    yield from self._only(named, state, told)

    def _state(
        self, name: str, named: Mention, state: Mention, is_not: bool, runs: tuple[str, ...], doubt: str
    ) -> Iterator[Assertion]:
        if named.kind == ADDRESS and "/" in name:
            yield from self._outcome(name, named, state, is_not, runs, doubt)
            return
        known = [run for run in runs if name in self.ground.runs[run].tasks]
        buckets = {run: self.ground.runs[run].tasks[name].bucket for run in known}
        if not known or None in buckets.values():
            return
        meant = [
            str(self.ground.runs[run].tasks[key].bucket)
            for run in known
            for key in self.reader.either(name)
            if key in self.ground.runs[run].tasks
        ]
        verdicts = [_holds(state.names[0], bucket, is_not) for bucket in meant]
        first, found = self._span(named, state)
        expected = "; ".join(
            f"task {name} is {bucket} ({self.ground.runs[run].tasks[name].passed} of "
            f"{self.ground.runs[run].tasks[name].n} passed) in {run}"
            for run, bucket in buckets.items()
        )
        verdict, why = UNVERIFIABLE, doubt or "the rows do not settle it"
        if any(one is True for one in verdicts) and (not doubt or len(verdicts) == 1 or all(verdicts)):
            verdict, why = SUPPORTED, ""
        elif verdicts and all(one is False for one in verdicts) and not doubt:
            verdict, why = CONTRADICTED, "the rows say otherwise"
        run = known[0] if len(known) == 1 else None
        yield said(
            self.place, verdict, "bucket", found, first, expected=expected, why=why, subject=state.names[0],
            run=run, scope=(("task", name),), value=f"not {state.names[0]}" if is_not else state.names[0],
            query=path("tasks", "bucket", run=known[0], task=name),
        )  # fmt: skip

    def _span(self, named: Mention, state: Mention) -> tuple[int, str]:
        first, last = min(named.start, state.start), max(named.end, state.end)
        return first, self.sentence.text[first:last]

    def _outcome(
        self, name: str, named: Mention, state: Mention, is_not: bool, runs: tuple[str, ...], doubt: str
    ) -> Iterator[Assertion]:
        task, _, repeat = name.rpartition("/")
        found = {
            run: [
                one.outcome
                for key in self.reader.either(task)
                if key in self.ground.runs[run].tasks
                for one in self.ground.runs[run].tasks[key].repeats
                if one.repeat == int(repeat)
            ]
            for run in runs
            if task in self.ground.runs[run].tasks
        }
        outcomes = [one for each in found.values() for one in each]
        if (
            not outcomes
            or None in outcomes
            or state.names[0] not in ("passed", "failed", "solved", "timed_out", "missing")
        ):
            return
        wants = state.names[0] in ("passed", "solved")
        if state.names[0] in ("timed_out", "missing"):
            fits = [one.value == state.names[0] for one in outcomes if one]
            sure = state.names[0] == "missing" or Outcome.PASSED in outcomes
        else:
            fits, sure = [(one == Outcome.PASSED) == (wants != is_not) for one in outcomes], True
        told = ", ".join(
            f"{name} {one.value.replace('_', ' ')} in {run}"
            for run, each in found.items()
            for one in each
            if one
        )
        verdict = SUPPORTED if any(fits) else CONTRADICTED if sure and not doubt else UNVERIFIABLE
        first, span = self._span(named, state)
        yield said(
            self.place, verdict, "outcome", span, first,
            expected=told, why="" if verdict == SUPPORTED else doubt or "the rows say otherwise",
            subject=state.names[0], run=next(iter(found)) if len(found) == 1 else None,
            scope=(("task", task), ("repeat", repeat)), value=state.names[0],
        )  # fmt: skip

    def _only(self, named: Mention, state: Mention, told: scope.Scope) -> Iterator[Assertion]:
        """`only tasks 3 and 5 never pass`: no other one may."""
        if state.names[0] not in _BUCKETS or len(told.runs) != 1:
            return
        sets = self.ground.runs[told.runs[0]].states(state.names[0], TASKS)
        others = [each - set(named.names) for each in sets]
        verdict = SUPPORTED if any(not each for each in others) else CONTRADICTED
        some = ", ".join(sorted(map(str, others[0]))[:5]) if others else ""
        yield said(
            self.place, verdict, "bucket", self._span(named, state)[1], named.start,
            expected=f"{len(sets[0])} tasks are {state.names[0]} in "
                     f"{told.runs[0]}" + (f", also {some}" if some else ""),
            why="" if verdict == SUPPORTED else "others are too", subject=state.names[0], run=told.runs[0],
            value="only",
        )  # fmt: skip

    # --- labels --------------------------------------------------------------------------------------

    def _labels(self, told: scope.Scope) -> Iterator[Assertion]:
        causes = self.sentence.of(CAUSE)
        tasks = {name.rpartition("/")[0] if one.kind == ADDRESS and "/" in name else name
                 for one in self.sentence.mentions
                 if one.kind in (TASK, ADDRESS) for name in one.names}  # fmt: skip
        if len(causes) != 1 or len(tasks) != 1 or _DENIED.search(self.sentence.text):
            return
        engine = bool(_ENGINE.search(self.sentence.text))
        yield from label_claim(
            self.ground,
            causes[0].text,
            causes[0].start,
            next(iter(tasks)),
            told.runs,
            self.place,
            causes[0].names[0],
            engine,
        )

    # --- lists ---------------------------------------------------------------------------------------

    def _colon(self) -> Iterator[Assertion]:
        """`Never-pass tasks (3): 0, 4, 7`."""
        hit = _COLON.match(self.sentence.text)
        if hit is None or self.sentence.of(TASK):
            return
        head = self.reader.sentence(hit["head"])
        ids = [
            one.strip().strip("`")
            for one in re.split(r",\s*(?:and\s+)?|\s+and\s+", hit["ids"])
            if one.strip()
        ]
        states = head.of(STATE)
        bare = BARE.get(hit["head"].strip("*_` ").lower())
        if bare is not None:
            states = [Mention(STATE, (bare,), 0, hit.end("head"), text=hit["head"])]
        if len(states) != 1 or not ids or head.of(TASK) or states[0].names[0] not in _BUCKETS:
            return
        if not all(one in self.reader.tasks for one in ids) or (len(ids) < 2 and not head.of("N")):
            return
        if len(ids) < 2 and ids[0].isdigit():
            return  # one number behind a colon is a count
        told = scope.run_of(self.reader, self.sentence, self.around)
        doubt = told.doubt or scope.unknown_words(head, 0, len(head.shape))
        for one in ids:
            key = self.reader.tasks[one]
            named = Mention(TASK, (key,), hit.start("ids"), hit.end("ids"), text=one)
            yield from self._state(key, named, states[0], False, told.runs, doubt)


def bucket_claim(
    reader: Reader, cell: str, start: int, key: str, runs: tuple[str, ...], doubt: str, place: Place
) -> Iterator[Assertion]:
    """A table cell that names the bucket of a task."""
    plain = cell.strip("`* ").lower()
    states = [one.names[0] for one in reader.sentence(cell).of(STATE)]
    state = plain if plain in _BUCKETS else states[0] if len(states) == 1 else MARKS.get(plain, "")
    if state not in (*_BUCKETS, "passed", "failed"):
        return
    buckets = [str(reader.ground.runs[run].tasks[key].bucket) for run in runs]
    holds = [_holds(state, bucket, False) for bucket in buckets]
    verdict = (
        SUPPORTED
        if any(holds)
        else CONTRADICTED
        if not doubt and all(one is False for one in holds)
        else UNVERIFIABLE
    )
    yield said(
        place, verdict, "bucket", cell, start, expected=f"task {key} is {buckets[0]} in {runs[0]}",
        why="" if verdict == SUPPORTED else doubt or "the rows say otherwise", subject=state,
        run=runs[0] if len(runs) == 1 else None, scope=(("task", key),), value=state,
        query=path("tasks", "bucket", run=runs[0], task=key),
    )  # fmt: skip


def label_claim(
    ground: Ground, cell: str, start: int, key: str, runs: tuple[str, ...], place: Place,
    code: str | None = None, engine: bool = False,
) -> Iterator[Assertion]:  # fmt: skip
    """A cause that a report gives a task; ours is a proposal, so that another one is no contradiction."""
    code = code or cell.strip("`* ")
    if code not in lexicon.CAUSE_CODES or len(runs) != 1 or key not in ground.runs[runs[0]].tasks:
        return
    run = ground.runs[runs[0]]
    ours = run.causes.get(key)
    verdict, why = UNVERIFIABLE, "causes are told by judgement; ours is a proposal"
    expected = f"task {key} is labelled {ours.cause.value} here" if ours else f"task {key} has no cause here"
    if ours is not None and ours.cause.value == code:
        verdict, why = SUPPORTED, ""
    elif run.tasks[key].bucket == "always":
        verdict, why, expected = (
            CONTRADICTED,
            "a task that always passes has no cause of failure",
            f"task {key} always passes",
        )
    elif engine:
        verdict, why = CONTRADICTED, "it is not what the labels here say"
    yield said(
        place, verdict, "label", cell, start, expected=expected, why=why, subject="cause", run=runs[0],
        scope=(("task", key),), value=code, query=path("attributions", "cause", run=runs[0], task=key),
    )  # fmt: skip


def _holds(state: str, bucket: str, is_not: bool) -> bool | None:
    """Whether a state can be said of a task in a bucket; None where the rows do not settle it."""
    if state in _BUCKETS:
        fits: bool | None = state == bucket
        if state == "never" and bucket == "missing":
            return None
    elif state in ("passed", "solved", "solved_once"):
        fits = {
            "always": True,
            "sometimes": None if is_not or state == "passed" else True,
            "never": False,
        }.get(bucket)
        fits = True if bucket == "sometimes" and not is_not else fits
    elif state == "failed":
        fits = {"never": True, "sometimes": None if is_not else True, "always": False}.get(bucket)
    else:
        return None
    return fits if fits is None or not is_not else not fits
