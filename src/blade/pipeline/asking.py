"""Have a model read a run: tasks and clusters become questions, replies become answers that hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from blade import hostile
from blade.agent import reader
from blade.agent.dossier import BUDGET
from blade.agent.dossier import dossier as write_dossier
from blade.agent.dossier.commands import PROMPT
from blade.agent.dossier.tokens import tokens
from blade.agent.reader import (
    EXPECTED_OUT,
    PUBLIC,
    Cap,
    Patience,
    Price,
    Purse,
    Question,
    Result,
    Usage,
    host_of,
    statuses,
)
from blade.agent.reader import answers as counted
from blade.agent.reader import proposals as queries
from blade.errors import UsageError
from blade.formats.trace import steps as steps_of
from blade.model import Agreement, Cause, Judgement, Report, Trace
from blade.pipeline import clusters, reviewing
from blade.pipeline.answering import Checker, solid
from blade.report.facts import facts
from blade.tables import cache

if TYPE_CHECKING:
    from blade.pipeline.session import Session

__all__ = [
    "EXPECTED_OUT", "PUBLIC", "Cap", "Clean", "Patience", "Plan", "Price", "Question", "Reading", "Result",
    "Usage", "Wish", "answers", "counted", "endpoint", "host_of", "plan", "prompt", "queries", "record",
    "statuses",
]  # fmt: skip

ANSWERS = "answers"  # the folder of the cache in which answers are kept; emptying indexes leaves it alone
EXPLAINED = ("explained", reader.UNDETERMINED)


class Clean(msgspec.Struct, frozen=True):
    """What may leave the house in place of a session: its report, and rows and texts as they may be shown."""

    report: Report
    rows: Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]
    text: Callable[[str], str]


class Wish(msgspec.Struct, frozen=True):
    """What is to be asked of which tasks."""

    kind: str
    tasks: tuple[str, ...] = ()  # keys or names; empty: the first of the queue
    most: int | None = 20
    asked: str = ""  # the question, in the user's words
    choices: tuple[str, ...] = ()
    run: str | None = None
    budget: int = BUDGET


class Plan(msgspec.Struct, frozen=True):
    """Questions that are ready to be asked, and those that were answered before."""

    run: str
    kind: str
    model: str
    host: str
    questions: tuple[Question, ...]
    members: Mapping[str, tuple[str, ...]]  # what a question is about -> the tasks it may quote
    called: Mapping[str, str]  # what a question is about -> a name for it
    notes: tuple[str, ...]
    held: Mapping[str, reader.Answer] = {}  # by the key of the question
    asked: str = ""

    @property
    def open(self) -> tuple[Question, ...]:
        return tuple(one for one in self.questions if one.key not in self.held)


class Reading(msgspec.Struct, frozen=True):
    """What a model said of a run, question by question, and what that cost."""

    plan: Plan
    results: tuple[Result, ...]
    spent: Usage
    price: Price | None
    proposed: Mapping[str, Cause]  # by the engine
    agreement: Agreement | None
    stopped: reader.Stopped | None
    is_kept: bool  # False: the cache could not be written, so another run asks again

    @property
    def by(self) -> str:
        return f"model {hostile.line(self.plan.model, 100)}"


# ---- Before: what would be asked ------------------------------------------------------------------


def plan(
    session: Session, wish: Wish, model: str, host: str, clean: Clean | None = None, fresh: bool = False
) -> Plan:
    """The questions of a wish, in order, those found that are answered already."""
    one = session.run(wish.run)
    made = _Maker(session, one.name, wish, f"{model}\0{host}", clean)
    notes: list[str] = []
    if wish.kind == reader.NAME:
        questions, members, called = _clusters(session, made, wish, notes)
    else:
        tasks = _tasks(session, wish, notes)
        names = {task.task: task.task_name for task in session.facts[one.name].tasks}
        questions = [made.of_task(task) for task in tasks]
        members, called = {task: (task,) for task in tasks}, {task: names.get(task, "") for task in tasks}
    held: dict[str, reader.Answer] = {}
    if not fresh:
        kept = reader.Kept(cache.root() / ANSWERS, model, host)
        check = Checker(session, one.name, members)
        for question in questions:
            found = kept.get(question.key)
            # what was kept is held against question and rows again: a file can be changed by anybody
            told = reader.again(found, question) if found is not None else []
            told = check(question, told) if isinstance(told, reader.Answer) else told
            if isinstance(told, reader.Answer):
                held[question.key] = told
    return Plan(
        one.name, wish.kind, model, host, tuple(questions), members, called, tuple(notes), held, wish.asked
    )


def prompt(
    session: Session,
    task: str,
    kind: str = reader.LABEL,
    run: str | None = None,
    budget: int = BUDGET,
    asked: str = "",
    choices: tuple[str, ...] = (),
    clean: Clean | None = None,
) -> reader.Prompt:
    """What would be sent to a model about one task."""
    one = session.run(run)
    wish = Wish(kind, (task,), None, asked, choices, one.name, budget)
    return _Maker(session, one.name, wish, "", clean).of_task(session.key(one, task)).prompt


class _Maker:
    """Turns tasks and clusters into questions."""

    def __init__(self, session: Session, run: str, wish: Wish, whom: str, clean: Clean | None) -> None:
        self.session, self.run, self.wish, self.whom, self.clean = session, run, wish, whom, clean
        self.facts = session.facts[run]
        if clean is not None:
            at = [one.name for one in session.report.runs].index(run)
            self.facts = facts(clean.report)[at]

    def of_task(self, task: str) -> Question:
        traces = self.session.traces(self.session.run(self.run), task)
        if self.clean is None:
            text = reviewing.dossier(self.session, task, self.run, self.wish.budget).text
        else:  # cleaned before it is cut to length: half a secret is not recognised as one
            shown = self._cleaned(traces, self.clean)
            text = self.clean.text(write_dossier(self.facts, task, shown, self.wish.budget).text)
        # commands are for whoever sits at this machine, and name its folders
        told = "\n".join(line for line in text.split("\n") if not line.startswith(PROMPT))
        return self._question(task, told, traces)

    def of_cluster(self, found: clusters.Cluster) -> Question:
        run = self.session.run(self.run)
        traces = [trace for task in found.tasks for trace in self.session.traces(run, task)]
        data = found.data if self.clean is None else self.clean.text(found.data)
        return self._question(found.id, data, traces)

    def _cleaned(self, traces: Sequence[Trace], clean: Clean) -> list[Trace]:
        names = {one.task: one.task_name for one in self.facts.tasks}
        found = []
        for trace, row in zip(traces, clean.rows([trace.row for trace in traces]), strict=True):
            steps, source = steps_of(row)
            rollout = replace(trace.rollout, task_name=names.get(trace.rollout.task, ""))
            found.append(Trace(rollout, tuple(steps), source, row))
        return found

    def _question(self, about: str, data: str, traces: Sequence[Trace]) -> Question:
        wish, choices = self.wish, _choices(self.wish)
        made = reader.prompt(wish.kind, about, data, wish.asked, choices)
        told = [reader.VERSION, wish.kind, about, wish.asked, *choices, wish.budget, self.clean is not None]
        key = _digest([*told, self.whom, *(_digest(_row(trace)) for trace in traces)])
        question = Question(wish.kind, about, made, key, 0, choices)
        form = json.dumps(reader.schema(question))
        count = tokens(made.system) + tokens(made.user) + tokens(form)
        return replace(question, tokens=count)


def _choices(wish: Wish) -> tuple[str, ...]:
    if wish.kind == reader.LABEL:
        return tuple(cause.value for cause in Cause)
    if wish.kind == reader.EXPLAIN:
        return EXPLAINED
    return tuple(dict.fromkeys((*wish.choices, reader.UNDETERMINED))) if wish.choices else ()


def _row(trace: Trace) -> list[Any]:
    return [trace.rollout.task, trace.rollout.repeat, trace.rollout.reward, dict(trace.row)]


def _digest(value: Any) -> str:
    """A hash of JSON values, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _tasks(session: Session, wish: Wish, notes: list[str]) -> list[str]:
    """The tasks that are named, else those of the queue; a task that loses nothing has nothing to explain."""
    one = session.run(wish.run)
    failed = {found.task for found in session.facts[one.name].attributions}
    if wish.tasks:
        named = list(dict.fromkeys(session.key(one, task) for task in wish.tasks))
        whole = [task for task in named if task not in failed]
        if whole:
            raise UsageError(
                f"task {whole[0]} of {one.name} loses no points",
                f"only failed tasks are read; `blade queue` lists them ({len(failed)} of this run)",
                "nothing-to-ask",
            )
        return named
    waiting = reviewing.queue(session, one.name, wish.most, wish.budget, judged=wish.kind == reader.ASK)
    left = len(failed) - len(waiting.waiting)
    if left > 0:
        judged = f", {waiting.n_judged} judged already" if waiting.n_judged else ""
        notes.append(
            f"{left} of {len(failed)} failed tasks are not asked about{judged}; --most asks about more"
        )
    return [found.task for found in waiting.waiting]


def _clusters(
    session: Session, made: _Maker, wish: Wish, notes: list[str]
) -> tuple[list[Question], dict[str, tuple[str, ...]], dict[str, str]]:
    check = Checker(session, made.run, {})
    losing = {task.task: check.losing(task.task) for task in made.facts.tasks}
    found, silent = clusters.clusters(made.facts, losing)
    if silent:
        notes.append(
            f"{silent} {'cluster is' if silent == 1 else 'clusters are'} left out: no failure is quoted"
        )
    if wish.most is not None and len(found) > wish.most:
        notes.append(
            f"{len(found) - wish.most} of {len(found)} clusters are not asked about; --most asks about more"
        )
        found = found[: wish.most]
    questions = [made.of_cluster(one) for one in found]
    return questions, {one.id: one.tasks for one in found}, {one.id: one.called for one in found}


# ---- The asking -----------------------------------------------------------------------------------


def answers(
    session: Session,
    made: Plan,
    endpoint: reader.Endpoint | None,
    cap: Cap | None = None,
    price: Price | None = None,
    at_once: int = 4,
    patience: Patience | None = None,
    told: Callable[[Result], None] | None = None,
) -> Reading:
    """Ask what is open; results stand in the order of the questions, kept answers among them.

    Without an endpoint nothing is asked: there are only the answers that were kept.
    """
    purse = Purse(cap or Cap(), price)
    asked: dict[str, Result] = {}
    stopped, is_kept = None, True
    if endpoint is not None and made.open:
        kept = reader.Kept(cache.root() / ANSWERS, made.model, made.host)
        check = Checker(session, made.run, made.members)
        asking = reader.Asking(endpoint, kept, check, purse, patience, told)
        asked = {result.question.key: result for result in asking.ask(made.open, at_once)}
        stopped, is_kept = asking.stopped, asking.is_kept
    results = tuple(asked.get(one.key) or _unasked(one, made.held.get(one.key)) for one in made.questions)
    engine = {found.task: found.proposed or found.cause for found in session.facts[made.run].attributions}
    agreed = None
    if made.kind == reader.LABEL:
        agreed = reader.agreement(made.run, f"model {hostile.line(made.model, 100)}", results, engine)
    return Reading(made, results, purse.spent, price, engine, agreed, stopped, is_kept)


def _unasked(question: Question, held: reader.Answer | None) -> Result:
    return Result(question, reader.LEFT if held is None else reader.KEPT, held)


def endpoint(model: str, url: str, key: str, timeout: float, limit: int) -> reader.Endpoint:
    """A model behind a URL; the key is held in memory alone."""
    return reader.Endpoint(model, url, key, timeout, limit)


def record(session: Session, found: Reading) -> tuple[tuple[Judgement, ...], list[str]]:
    """Keep the labels as judgements by the model; what was kept, and why the others were not."""
    proposals: list[dict[str, Any]] = []
    refused: list[str] = []
    for result in found.results:
        answer = result.answer
        if answer is None or found.plan.kind != reader.LABEL:
            continue
        if not answer.evidence:
            refused.append(f"task {hostile.line(answer.about, 60)}: {answer.answer}, and nothing is quoted")
            continue
        place = answer.evidence[0]
        given = {
            "task": answer.about, "cause": answer.answer, "repeat": place.repeat, "step": place.step,
            "field": place.field, "quote": solid(place.quote), "mechanism": answer.because,
            "mode": answer.mode,
        }  # fmt: skip
        _, against = reviewing.checked(session, [given], found.by, found.plan.run)
        if against:
            refused += against
        else:
            proposals.append(given)
    if not proposals:
        return (), refused
    return reviewing.label(session, proposals, found.by, found.plan.run), refused
