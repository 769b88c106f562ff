"""Hold the answer of a model against the rollouts that it quotes, by the same rule as a judgement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from blade.agent import judgements, reader
from blade.agent.judgements import Seen
from blade.agent.reader import shown
from blade.model import Cause, Judgement
from blade.model.measured import PLACEHOLDER
from blade.pipeline import judging, pages, reading

if TYPE_CHECKING:
    from blade.model import Judged
    from blade.pipeline.session import Session

_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)?(?:\|[ \t]?)?", re.MULTILINE)  # what the frame puts before a line
_HEAD = re.compile(r"^\[\d+\]\*?[ \t]+[a-z]+[ \t]*\|?[ \t]*")  # how a dossier begins the line of a step
_HELD = 4  # tasks that stay open


class Checker:
    """Whether answers hold, one at a time: rows are opened as they are asked for."""

    def __init__(self, session: Session, run: str, members: Mapping[str, tuple[str, ...]]) -> None:
        self.run = session.run(run)
        self.members = members  # of a question: the tasks it may quote
        scoring = pages.scoring_of(self.run, session.threshold)
        self.judged: Judged = reading.judged_of(self.run, scoring)
        self.is_bounded = scoring.is_bounded
        self._losing = judging.losing(self.judged, scoring.is_bounded)
        self._seen: dict[str, Seen] = {}
        self._alone = Lock()

    def losing(self, task: str) -> frozenset[int]:
        """The repeats of a task that lose points."""
        return self._losing.get(task, frozenset())

    def __call__(self, question: reader.Question, answer: reader.Answer) -> reader.Answer | list[str]:
        """The answer with the exact words of each place; or every reason against it."""
        with self._alone:
            found: list[reader.Cited] = []
            reasons: list[str] = []
            for number, cited in enumerate(answer.evidence):
                told = self._place(question, answer, cited, is_first=number == 0)
                if isinstance(told, reader.Cited):
                    found.append(told)
                else:
                    reasons += [f"quotation {number + 1}: {reason}" for reason in told]
            if not reasons and not answer.is_undetermined:
                reasons = self._enough(question, found)
            return reasons or replace(answer, evidence=tuple(dict.fromkeys(found)))

    def _place(
        self, question: reader.Question, answer: reader.Answer, cited: reader.Cited, is_first: bool
    ) -> reader.Cited | list[str]:
        tasks = self.members[question.about]
        task = next((one for one in tasks if cited.task in (one, shown(one))), None)
        if task is None:
            return [f"the question is not about task {shown(cited.task)!r}"]
        seen = self._opened(task)
        if question.kind == reader.EXPLAIN:  # passing repeats are quoted too
            seen = replace(seen, losing=[True] * len(seen.traces))
        blames = question.kind == reader.LABEL and is_first
        said = answer.because if blames else "quoted"
        given = {
            "task": task,
            "cause": answer.answer if question.kind == reader.LABEL else Cause.UNDETERMINED.value,
            "repeat": cited.repeat,
            "step": cited.step,
            "field": cited.field,
            "mechanism": said,
        }
        exact = _held(given, cited.quote, seen)
        return exact if isinstance(exact, list) else replace(cited, task=task, quote=exact)

    def _enough(self, question: reader.Question, found: list[reader.Cited]) -> list[str]:
        tasks = self.members[question.about]
        if question.kind == reader.NAME and len(tasks) > 1 and len({one.task for one in found}) < 2:
            return ["only one task is quoted: what is common to several is shown by two at least"]
        if question.kind != reader.EXPLAIN:
            return []
        losing = self.losing(tasks[0])
        passing = {trace.rollout.repeat for trace in self._opened(tasks[0]).traces} - losing
        reasons = []
        if not any(one.repeat in losing for one in found):
            reasons.append(f"no repeat that fails is quoted; those that fail: {_few(losing)}")
        if passing and not any(one.repeat in passing for one in found):
            reasons.append(f"no repeat that passes is quoted; those that pass: {_few(passing)}")
        return reasons

    def _opened(self, task: str) -> Seen:
        if task not in self._seen:
            while len(self._seen) >= _HELD:
                del self._seen[next(iter(self._seen))]
            self._seen[task] = judging.seen_of(self.run, self.judged, task, None, self.is_bounded)
        return self._seen[task]


def _held(given: Mapping[str, Any], quote: str, seen: Seen) -> str | list[str]:
    """The quotation as it stands at the place; or the reasons against it."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    reasons: list[str] = []
    for tried in _forms(quote, given, seen):
        told = judgements.verified({**given, "quote": tried}, seen, "model", at)
        if isinstance(told, Judgement):
            return told.quote
        reasons = reasons or told
    parts = solid(quote)
    if parts and len(parts) < len(quote):
        told = judgements.verified({**given, "quote": parts}, seen, "model", at)
        if isinstance(told, Judgement):
            return quote  # as it was sent: a placeholder stands for what did not leave
    return reasons


def _forms(quote: str, given: Mapping[str, Any], seen: Seen) -> list[str]:
    """A quotation, and the same without what a dossier writes around the words of a place."""
    bare = _HEAD.sub("", _MARKS.sub("", quote))
    step, field = given["step"], given["field"]
    tools = {
        trace.steps[step].tool or ""
        for trace in seen.traces
        if step is not None and trace.rollout.repeat == given["repeat"] and 0 <= step < len(trace.steps)
    }
    named = [f"{tool} " for tool in tools if tool] + ([f"{field}: "] if field else [])
    found = [quote, bare, *(bare.removeprefix(name) for name in named)]
    return [one for one in dict.fromkeys(found) if one.strip()]


def solid(quote: str) -> str:
    """The longest part of a quotation that no placeholder interrupts; all of it where there is none."""
    if PLACEHOLDER.search(quote) is None:
        return quote
    edges = [0, *(edge for hit in PLACEHOLDER.finditer(quote) for edge in hit.span()), len(quote)]
    parts = [quote[edges[at] : edges[at + 1]].strip() for at in range(0, len(edges), 2)]
    return max(parts, key=len)


def _few(repeats: set[int] | frozenset[int]) -> str:
    return ", ".join(map(str, sorted(repeats)[:20])) or "none"
