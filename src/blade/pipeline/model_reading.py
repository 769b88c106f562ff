"""Have a model read a run: tasks and clusters become questions, replies become answers that hold in the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from threading import Lock
from typing import Any

import msgspec
from msgspec.structs import replace

from blade import hostile
from blade.agent import judgements, reader
from blade.agent.dossier import BUDGET
from blade.agent.dossier import dossier as write_dossier
from blade.agent.dossier.budget import tokens
from blade.agent.dossier.case import PROMPT
from blade.agent.judgements import Seen
from blade.agent.reader import Cap, Patience, Price, Purse, Question, Result, Usage, shown
from blade.errors import UsageError
from blade.formats.single_rows import steps_of_row as steps_of
from blade.model import Agreement, Attribution, Cause, Evidence, Group, Judgement, Report, Trace
from blade.model.measurements import PLACEHOLDER
from blade.pipeline import reviewing, trace_reading
from blade.pipeline.session import Session
from blade.report.run_facts import Facts, facts
from blade.tables import cache

MEMBERS = 10  # tasks of a cluster that are quoted
ANSWERS = "answers"  # the folder of the cache in which answers are kept; emptying indexes leaves it alone
EXPLAINED = ("explained", reader.UNDETERMINED)
_QUOTES = 2  # of one task
_QUOTED = 400  # characters of a quotation
_HELD = 4  # tasks that stay open
_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)?(?:\|[ \t]?)?", re.MULTILINE)  # what the frame puts before a line
_HEAD = re.compile(r"^\[\d+\]\*?[ \t]+[a-z]+[ \t]*\|?[ \t]*")  # how a dossier begins the line of a step

Losing = dict[str, frozenset[int]]  # task -> its repeats that lose points


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
        return tuple(question for question in self.questions if question.key not in self.held)


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


# ---- Clusters: failures that the engine puts together ----------------------------------------------


class Cluster(msgspec.Struct, frozen=True):
    """A failure group with what is quoted of it."""

    id: str
    called: str  # by the engine
    tasks: tuple[str, ...]  # those that are quoted
    data: str


def clusters(facts: Facts, losing: Losing) -> tuple[list[Cluster], int]:
    """Lay out the groups in their order, and count those that nothing can be quoted from."""
    laid_out = [
        _cluster(group, [member for member in facts.attributions if member.group == group.id], losing)
        for group in facts.groups
    ]
    quoting = [cluster for cluster in laid_out if cluster is not None]
    return quoting, len(laid_out) - len(quoting)


def _cluster(group: Group, members: Sequence[Attribution], losing: Losing) -> Cluster | None:
    places = _failing(group, members, losing)
    if not places:
        return None
    tasks = tuple(dict.fromkeys(place.task for place in places))
    lines = [
        f"A group of failures, by the engine: {group.label.value}, {hostile.line(group.name, 200)}",
        f"What the engine says of it: {hostile.line(group.text, 600)}",
        f"Tasks: {group.tasks}; failures: {group.rows}; points of score lost: {group.points:.4f}",
        f"Quoted below: {len(tasks)} tasks",
    ]
    mechanisms = {member.task: hostile.line(member.mechanism, 300) for member in members}
    for task in tasks:
        lines += ["", f"task {hostile.line(task, 200)}" + (f": {mechanisms[task]}" if task in mechanisms else "")]
        for place in (place for place in places if place.task == task):
            field = f"field {hostile.line(place.field or '', 200)}"
            where = field if place.step is None else f"step {place.step}"
            quote = hostile.lines((place.quote or "")[:_QUOTED]).split("\n")
            lines += [f"repeat {place.repeat}, {where}:", *(f"| {line}" for line in quote)]
    called = f"{group.label.value}: {group.name}"
    digest = blake2b(called.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return Cluster(f"group-{digest}", called, tasks, "\n".join(lines))


def _failing(group: Group, members: Sequence[Attribution], losing: Losing) -> list[Evidence]:
    """What the tasks of a group show in rollouts that fail, then what the group quotes; of as many tasks as fit."""
    ranked = sorted(members, key=lambda member: (-member.lost, member.task))
    # what another task shows is no place of this one
    places = [place for member in ranked for place in member.evidence[:_QUOTES] if place.task == member.task]
    places += [group.quote] if group.quote is not None else []
    fails = [place for place in dict.fromkeys(places) if place.quote and place.repeat in losing.get(place.task, ())]
    tasks = list(dict.fromkeys(place.task for place in fails))[:MEMBERS]
    return [place for place in fails if place.task in tasks]


# ---- Whether answers hold --------------------------------------------------------------------------


class Checker:
    """Whether answers hold, one at a time: rows are opened as they are asked for."""

    def __init__(self, session: Session, run: str, members: Mapping[str, tuple[str, ...]]) -> None:
        self.run = session.run(run)
        self.members = members  # of a question: the tasks it may quote
        bench = trace_reading.Bench(self.run, session.threshold)
        self._losing, self._opened = bench.losing(), lru_cache(_HELD)(bench.seen)
        self._alone = Lock()

    def __call__(self, question: Question, answer: reader.Answer) -> reader.Answer | list[str]:
        """The answer with the exact words of each place; or every reason against it."""
        with self._alone:
            quotations: list[reader.Cited] = []
            reasons: list[str] = []
            for number, cited in enumerate(answer.evidence):
                place = self._place(question, answer, cited, is_first=number == 0)
                if isinstance(place, reader.Cited):
                    quotations.append(place)
                else:
                    reasons += [f"quotation {number + 1}: {reason}" for reason in place]
            if not reasons and answer.answer != reader.UNDETERMINED:
                reasons = self._enough(question, quotations)
            return reasons or replace(answer, evidence=tuple(dict.fromkeys(quotations)))

    def _place(
        self, question: Question, answer: reader.Answer, cited: reader.Cited, is_first: bool
    ) -> reader.Cited | list[str]:
        tasks = self.members[question.about]
        task = next((name for name in tasks if cited.task in (name, shown(name))), None)
        if task is None:
            return [f"the question is not about task {shown(cited.task)!r}"]
        seen = self._opened(task)
        if question.kind == reader.EXPLAIN:  # passing repeats are quoted too
            seen = replace(seen, losing=[True] * len(seen.traces))
        is_label = question.kind == reader.LABEL
        proposal = {
            "task": task, "cause": answer.answer if is_label else Cause.UNDETERMINED.value, "repeat": cited.repeat,
            "step": cited.step, "field": cited.field, "mechanism": answer.because if is_label and is_first else "quoted",
        }  # fmt: skip
        exact = _exact(proposal, cited.quote, seen)
        return exact if isinstance(exact, list) else replace(cited, task=task, quote=exact)

    def _enough(self, question: Question, quotations: list[reader.Cited]) -> list[str]:
        tasks = self.members[question.about]
        if question.kind == reader.NAME and len(tasks) > 1 and len({quotation.task for quotation in quotations}) < 2:
            return ["only one task is quoted: what is common to several is shown by two at least"]
        if question.kind != reader.EXPLAIN:
            return []
        losing = self._losing.get(tasks[0], frozenset())
        passing = {trace.rollout.repeat for trace in self._opened(tasks[0]).traces} - losing
        return [
            f"no repeat that {how} is quoted; those that {do}: {', '.join(map(str, sorted(repeats)[:20])) or 'none'}"
            for how, do, repeats in (("fails", "fail", losing), ("passes", "pass", passing))
            if (repeats or how == "fails") and not any(quotation.repeat in repeats for quotation in quotations)
        ]


def _exact(proposal: Mapping[str, Any], quote: str, seen: Seen) -> str | list[str]:
    """The quotation as it stands at the place; or the reasons against it."""

    def verified(form: str) -> Judgement | list[str]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return judgements.verified({**proposal, "quote": form}, seen, "model", now)

    reasons: list[str] = []
    for form in _forms(quote, proposal, seen):
        verdict = verified(form)
        if isinstance(verdict, Judgement):
            return verdict.quote
        reasons = reasons or verdict
    part = solid(quote)
    if part and len(part) < len(quote) and isinstance(verified(part), Judgement):
        return quote  # as it was sent: a placeholder stands for what did not leave
    return reasons


def _forms(quote: str, proposal: Mapping[str, Any], seen: Seen) -> list[str]:
    """A quotation, and the same without what a dossier writes around the words of a place."""
    bare = _HEAD.sub("", _MARKS.sub("", quote))
    step, field = proposal["step"], proposal["field"]
    tools = {
        trace.steps[step].tool or ""
        for trace in seen.traces
        if step is not None and trace.rollout.repeat == proposal["repeat"] and 0 <= step < len(trace.steps)
    }
    named = [f"{tool} " for tool in tools if tool] + ([f"{field}: "] if field else [])
    forms = [quote, bare, *(bare.removeprefix(name) for name in named)]
    return [form for form in dict.fromkeys(forms) if form.strip()]


def solid(quote: str) -> str:
    """The longest part of a quotation that no placeholder interrupts; all of it where there is none."""
    if PLACEHOLDER.search(quote) is None:
        return quote
    edges = [0, *(edge for hit in PLACEHOLDER.finditer(quote) for edge in hit.span()), len(quote)]
    parts = [quote[edges[place] : edges[place + 1]].strip() for place in range(0, len(edges), 2)]
    return max(parts, key=len)


# ---- Before: what would be asked ------------------------------------------------------------------


def plan(
    session: Session, wish: Wish, model: str, host: str, clean: Clean | None = None, fresh: bool = False
) -> Plan:
    """The questions of a wish, in order, those found that are answered already."""
    entry = session.run(wish.run)
    maker = _Maker(session, entry.name, wish, f"{model}\0{host}", clean)
    notes: list[str] = []
    if wish.kind == reader.NAME:
        questions, members, called = _clusters(session, maker, wish, notes)
    else:
        tasks = _tasks(session, wish, notes)
        names = {task.task: task.task_name for task in session.facts[entry.name].tasks}
        questions = [maker.of_task(task) for task in tasks]
        members, called = {task: (task,) for task in tasks}, {task: names.get(task, "") for task in tasks}
    known: dict[str, reader.Answer] = {}
    if not fresh:
        store = reader.Kept(cache.root() / ANSWERS, model, host)
        check = Checker(session, entry.name, members)
        for question in questions:
            answer = store.get(question.key)
            # what was kept is checked against question and rows again: a file can be changed by anybody
            checked = reader.again(answer, question) if answer is not None else []
            checked = check(question, checked) if isinstance(checked, reader.Answer) else checked
            if isinstance(checked, reader.Answer):
                known[question.key] = checked
    return Plan(
        entry.name, wish.kind, model, host, tuple(questions), members, called, tuple(notes), known, wish.asked
    )


class _Maker:
    """Turns tasks and clusters into questions."""

    def __init__(self, session: Session, run: str, wish: Wish, whom: str, clean: Clean | None) -> None:
        self.session, self.run, self.wish, self.whom, self.clean = session, run, wish, whom, clean
        self.facts = session.facts[run]
        if clean is not None:
            place = [entry.name for entry in session.report.runs].index(run)
            self.facts = facts(clean.report)[place]

    def of_task(self, task: str) -> Question:
        traces = self.session.traces(self.session.run(self.run), task)
        if self.clean is None:
            text = reviewing.dossier(self.session, task, self.run, self.wish.budget).text
        else:  # cleaned before it is cut to length: half a secret is not recognised as one
            text = self.clean.text(
                write_dossier(self.facts, task, self._cleaned(traces, self.clean), self.wish.budget).text
            )
        # commands are for whoever sits at this machine, and name its folders
        return self._question(
            task, "\n".join(line for line in text.split("\n") if not line.startswith(PROMPT)), traces
        )

    def of_cluster(self, cluster: Cluster) -> Question:
        run = self.session.run(self.run)
        traces = [trace for task in cluster.tasks for trace in self.session.traces(run, task)]
        return self._question(cluster.id, self.clean.text(cluster.data) if self.clean else cluster.data, traces)

    def _cleaned(self, traces: Sequence[Trace], clean: Clean) -> list[Trace]:
        names = {task.task: task.task_name for task in self.facts.tasks}
        cleaned = []
        for trace, row in zip(traces, clean.rows([trace.row for trace in traces]), strict=True):
            steps, source = steps_of(row)
            rollout = replace(trace.rollout, task_name=names.get(trace.rollout.task, ""))
            cleaned.append(Trace(rollout, tuple(steps), source, row))
        return cleaned

    def _question(self, about: str, data: str, traces: Sequence[Trace]) -> Question:
        wish = self.wish
        own = tuple(dict.fromkeys((*wish.choices, reader.UNDETERMINED))) if wish.choices else ()
        choices = {reader.LABEL: tuple(cause.value for cause in Cause), reader.EXPLAIN: EXPLAINED}.get(wish.kind, own)
        sent = reader.prompt(wish.kind, about, data, wish.asked, choices)
        rows = [[trace.rollout.task, trace.rollout.repeat, trace.rollout.reward, dict(trace.row)] for trace in traces]
        parts = [reader.VERSION, wish.kind, about, wish.asked, *choices, wish.budget, self.clean is not None]
        key = _digest([*parts, self.whom, *map(_digest, rows)])
        question = Question(wish.kind, about, sent, key, 0, choices)
        form = json.dumps(reader.schema(question))
        return replace(question, tokens=tokens(sent.system) + tokens(sent.user) + tokens(form))


def _digest(value: Any) -> str:
    """A hash of JSON values, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _tasks(session: Session, wish: Wish, notes: list[str]) -> list[str]:
    """The tasks that are named, else those of the queue; a task that loses nothing has nothing to explain."""
    entry = session.run(wish.run)
    failed = {attribution.task for attribution in session.facts[entry.name].attributions}
    if wish.tasks:
        named = list(dict.fromkeys(session.key(entry, task) for task in wish.tasks))
        whole = [task for task in named if task not in failed]
        if whole:
            hint = f"only failed tasks are read; `blade queue` lists them ({len(failed)} of this run)"
            raise UsageError(f"task {whole[0]} of {entry.name} loses no points", hint, "nothing-to-ask")
        return named
    waiting = reviewing.queue(session, entry.name, wish.most, wish.budget, judged=wish.kind == reader.ASK)
    left = len(failed) - len(waiting.waiting)
    if left > 0:
        judged = f", {waiting.n_judged} judged already" if waiting.n_judged else ""
        notes.append(f"{left} of {len(failed)} failed tasks are not asked about{judged}; --most asks about more")
    return [task.task for task in waiting.waiting]


def _clusters(
    session: Session, maker: _Maker, wish: Wish, notes: list[str]
) -> tuple[list[Question], dict[str, tuple[str, ...]], dict[str, str]]:
    losing = trace_reading.Bench(session.run(maker.run), session.threshold).losing()
    laid_out, silent = clusters(maker.facts, losing)
    if silent:
        notes.append(f"{silent} {'cluster is' if silent == 1 else 'clusters are'} left out: no failure is quoted")
    if wish.most is not None and len(laid_out) > wish.most:
        left = len(laid_out) - wish.most
        notes.append(f"{left} of {len(laid_out)} clusters are not asked about; --most asks about more")
        laid_out = laid_out[: wish.most]
    tasks, called = ({cluster.id: getattr(cluster, name) for cluster in laid_out} for name in ("tasks", "called"))
    return [maker.of_cluster(cluster) for cluster in laid_out], tasks, called


# ---- The asking -----------------------------------------------------------------------------------


def answers(
    session: Session, plan: Plan, endpoint: reader.Endpoint | None, cap: Cap | None = None, price: Price | None = None,
    at_once: int = 4, patience: Patience | None = None, progress: Callable[[Result], None] | None = None,
) -> Reading:
    """Ask what is open; results stand in the order of the questions, kept answers among them.

    Without an endpoint nothing is asked: there are only the answers that were kept.
    """
    purse = Purse(cap or Cap(), price)
    new: dict[str, Result] = {}
    stopped, is_kept = None, True
    if endpoint is not None and plan.open:
        store = reader.Kept(cache.root() / ANSWERS, plan.model, plan.host)
        asking = reader.Asking(endpoint, store, Checker(session, plan.run, plan.members), purse, patience, progress)
        new = {result.question.key: result for result in asking.ask(plan.open, at_once)}
        stopped, is_kept = asking.stopped, asking.is_kept
    unasked = (
        Result(question, reader.KEPT if question.key in plan.held else reader.LEFT, plan.held.get(question.key))
        for question in plan.questions
    )
    results = tuple(new.get(result.question.key) or result for result in unasked)
    engine = {entry.task: entry.proposed or entry.cause for entry in session.facts[plan.run].attributions}
    agreed = None
    if plan.kind == reader.LABEL:
        agreed = reader.agreement(plan.run, f"model {hostile.line(plan.model, 100)}", results, engine)
    return Reading(plan, results, purse.spent, price, engine, agreed, stopped, is_kept)


def record(session: Session, reading: Reading) -> tuple[tuple[Judgement, ...], list[str]]:
    """Keep the labels as judgements by the model; what was kept, and why the others were not."""
    proposals: list[dict[str, Any]] = []
    refused: list[str] = []
    for answer in (result.answer for result in reading.results if reading.plan.kind == reader.LABEL):
        if answer is None:
            continue
        if not answer.evidence:
            refused.append(f"task {hostile.line(answer.about, 60)}: {answer.answer}, and nothing is quoted")
            continue
        place = answer.evidence[0]
        proposal = {
            "task": answer.about, "cause": answer.answer, "repeat": place.repeat, "step": place.step,
            "field": place.field, "quote": solid(place.quote), "mechanism": answer.because,
            "mode": answer.mode,
        }  # fmt: skip
        _, against = reviewing.checked(session, [proposal], reading.by, reading.plan.run)
        refused += against
        proposals += [] if against else [proposal]
    if not proposals:
        return (), refused
    return reviewing.label(session, proposals, reading.by, reading.plan.run), refused
