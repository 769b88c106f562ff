"""Say what would be asked, what a model answered, what was thrown away, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blade.hostile import line

if TYPE_CHECKING:
    from blade.model import Agreement, Judgement
    from blade.pipeline.asking import Plan, Price, Question, Reading, Result, Usage

    Recorded = tuple[Sequence[Judgement], list[str]] | None

SCHEMA = "blade.agent.reader/1"
_TITLES = {
    "label": "Labels", "name": "Names of clusters", "explain": "Explanations", "ask": "Answers",
}  # fmt: skip


# ---- Before ----------------------------------------------------------------------------------------


def _estimate(plan: Plan, limit: int) -> tuple[Usage, Usage]:
    """What the open questions will likely cost, and what they cost at most without a second try."""
    from blade.pipeline.asking import EXPECTED_OUT, Usage

    tokens_in = sum(question.tokens for question in plan.open)
    n = len(plan.open)
    return Usage(tokens_in, n * min(EXPECTED_OUT, limit)), Usage(tokens_in, n * limit)


def before(plan: Plan, price: Price | None, limit: int, is_redacted: bool) -> list[str]:
    """What is about to be asked, of whom, and what that will cost."""
    n, kept = len(plan.open), len(plan.questions) - len(plan.open)
    known = f"; {kept} answered before cost nothing" if kept else ""
    said = [f"asking   {n} {_things(n, plan)} of {line(plan.model, 80)} at {line(plan.host, 80)}{known}"]
    if n:
        likely, most = _estimate(plan, limit)
        what = (
            "with placeholders for what looks private"
            if is_redacted
            else "as it is (--redact replaces what looks private)"
        )
        said.append(f"sending  text of rollouts leaves this machine, {what}")
        out = f"{likely.tokens_out:,} out, at most {most.tokens_out:,} out"
        told = f"about {likely.tokens_in:,} tokens in and {out}"
        if price is not None:
            told += (
                f": about {_money(price.of(likely))}, at most {_money(price.of(most))} before second tries"
            )
        else:
            told += "; --price IN,OUT tells it in dollars"
        said.append(f"cost     {told}")
    return [*said, *(f"note     {line(note)}" for note in plan.notes)]


def listed(plan: Plan) -> list[str]:
    """Every question of a plan on a line."""
    said = []
    for question in plan.questions:
        state = "answered before" if question.key in plan.held else f"{question.tokens:,} tokens"
        said.append(f"  {_named(question, plan)}: {state}")
    return said


def dry_json(plan: Plan, price: Price | None, limit: int) -> str:
    """The plan for a program, prompts included."""
    likely, most = _estimate(plan, limit)
    told = {
        **_head(plan),
        "dry_run": True,
        "estimate": {"likely": _usage(likely, price), "most": _usage(most, price)},
        "questions": [
            {
                "about": question.about,
                "name": plan.called.get(question.about, ""),
                "tokens": question.tokens,
                "answered_before": question.key in plan.held,
                "system": question.prompt.system,
                "user": question.prompt.user,
            }
            for question in plan.questions
        ],
        "notes": list(plan.notes),
    }
    return _dumped(told)


# ---- After -----------------------------------------------------------------------------------------


def render(found: Reading, recorded: Recorded = None) -> str:
    """The answers for a reader."""
    from blade.pipeline.asking import statuses

    plan, counts = found.plan, statuses(found.results)
    n = counts["kept"] + counts["accepted"]
    said = [f"{_TITLES[plan.kind]} of {line(plan.run, 80)} by {found.by}: {n} of {len(found.results)}"]
    said.append("  " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    if plan.asked:
        said.append(f"Question  {line(plan.asked)}")
    for result in found.results:
        if result.answer is not None:
            said += ["", *_answer(result, found)]
    for status, why in (
        ("discarded", "what they say does not hold, and is not used"),
        ("failed", "no answer came"),
        ("left", "not asked"),
    ):
        said += _without(found, status, why)
    if plan.kind == "ask":
        said += _counted(found)
    if found.agreement is not None:
        said += ["", *_agreement(found.agreement)]
    if recorded is not None:
        said += ["", *_recorded(recorded)]
    return "\n".join(said) + "\n"


def after(found: Reading) -> list[str]:
    """What it cost, and what the user must know."""
    spent, said = found.spent, []
    if spent.total:
        how = (
            "measured"
            if not spent.estimated
            else f"{spent.estimated:,} of them estimated: the endpoint did not say, or fewer than can be"
        )
        cost = f": {_money(found.price.of(spent))}" if found.price is not None else ""
        said.append(f"spent    {spent.tokens_in:,} tokens in and {spent.tokens_out:,} out ({how}){cost}")
    else:
        said.append("spent    nothing")
    if found.stopped is not None:
        hint = f"; {line(found.stopped.hint)}" if found.stopped.hint else ""
        said.append(f"stopped  {line(found.stopped.text, 400)}{hint}")
    if not found.is_kept:
        said.append("warning: answers could not be kept in the cache: they are paid for again next time")
    return said


def _answer(result: Result, found: Reading) -> list[str]:
    answer = result.answer
    assert answer is not None
    kept = ", kept" if result.status == "kept" else ""
    said = [f"{_named(result.question, found.plan)}: {line(answer.answer)}{_beside(result, found)}{kept}"]
    if answer.mode:
        said.append(f"    {line(answer.mode)}")
    said.append(f"    {line(answer.because)}")
    for place in answer.evidence:
        where = f"step {place.step}" if place.step is not None else f"field {line(place.field or '', 120)}"
        task = "" if place.task == answer.about else f"task {line(place.task, 80)}, "
        said.append(f"    {task}repeat {place.repeat}, {where}: “{line(place.quote, 240)}”")
    return said


def _beside(result: Result, found: Reading) -> str:
    """What the engine says of the same task."""
    cause = found.proposed.get(result.question.about)
    if found.plan.kind != "label" or cause is None or result.answer is None:
        return ""
    return " (as the engine)" if cause.value == result.answer.answer else f" (engine: {cause.value})"


def _without(found: Reading, status: str, why: str) -> list[str]:
    those = [one for one in found.results if one.status == status]
    if not those:
        return []
    said = ["", f"{status.capitalize()}: {len(those)}, {why}"]
    for one in those:
        said.append(f"  {_named(one.question, found.plan)}: {line('; '.join(one.reasons), 400)}")
    return said


def _counted(found: Reading) -> list[str]:
    from blade.pipeline.asking import counted

    told = counted(found.results)
    n = sum(len(abouts) for _, abouts in told)
    said = ["", f"Counted over {n} tasks with an answer, of {len(found.results)} asked about"]
    for answer, abouts in told:
        tasks = ", ".join(line(about, 40) for about in abouts[:12]) + (", …" if len(abouts) > 12 else "")
        said.append(f"  {len(abouts)} of {n}  {line(answer)}: {tasks}")
    return said


def _agreement(told: Agreement) -> list[str]:
    kappa = "κ is not defined: chance alone decides" if told.kappa is None else f"κ {told.kappa:.2f}"
    said = [f"Agreement with the engine: {told.agreed} of {told.n} tasks, {kappa}"]
    for first, second, count in told.confusion:
        if first is not second:
            said.append(f"  engine {first.value}, model {second.value}: {count}")
    return said


def _recorded(recorded: tuple[Sequence[Judgement], list[str]]) -> list[str]:
    kept, refused = recorded
    said = [f"Recorded: {len(kept)} judgements beside the run"]
    return [*said, *(f"  not recorded: {line(reason, 400)}" for reason in refused)]


# ---- For a program ---------------------------------------------------------------------------------


def as_json(found: Reading, recorded: Recorded = None) -> str:
    """The same for a program."""
    from blade.pipeline.asking import counted, statuses

    told: dict[str, Any] = {
        **_head(found.plan),
        "counts": statuses(found.results),
        "results": [_result(one, found) for one in found.results],
        "spent": _usage(found.spent, found.price),
        "stopped": None if found.stopped is None else line(found.stopped.text, 400),
        "notes": list(found.plan.notes),
    }
    if found.plan.kind == "ask":
        told["counted"] = [
            {"answer": answer, "n": len(of), "tasks": list(of)} for answer, of in counted(found.results)
        ]
    if found.agreement is not None:
        one = found.agreement
        told["agreement"] = {
            "with": one.first, "n": one.n, "agreed": one.agreed, "kappa": one.kappa,
            "confusion": [{"engine": a.value, "model": b.value, "n": n} for a, b, n in one.confusion],
        }  # fmt: skip
    if recorded is not None:
        told["recorded"] = {"kept": [one.id for one in recorded[0]], "refused": recorded[1]}
    return _dumped(told)


def _head(plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA, "run": plan.run, "kind": plan.kind, "model": plan.model, "host": plan.host,
        "question": plan.asked or None,
    }  # fmt: skip


def _result(one: Result, found: Reading) -> dict[str, Any]:
    engine = found.proposed.get(one.question.about) if found.plan.kind != "name" else None
    told: dict[str, Any] = {
        "about": one.question.about,
        "name": found.plan.called.get(one.question.about, ""),
        "status": one.status,
        "answer": None,
        "engine": engine.value if engine is not None else None,
        "reasons": list(one.reasons),
        "calls": one.calls,
    }
    if one.answer is not None:
        told["answer"] = one.answer.answer
        told["mode"] = one.answer.mode
        told["because"] = one.answer.because
        told["evidence"] = [
            {"task": at.task, "repeat": at.repeat, "step": at.step, "field": at.field, "quote": at.quote}
            for at in one.answer.evidence
        ]
    return told


def _usage(usage: Usage, price: Price | None) -> dict[str, Any]:
    return {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "estimated": usage.estimated,
        "usd": None if price is None else round(price.of(usage), 6),
    }


def _dumped(told: dict[str, Any]) -> str:
    return json.dumps(told, indent=2, ensure_ascii=True) + "\n"


def _named(question: Question, plan: Plan) -> str:
    name = plan.called.get(question.about, "")
    about = line(question.about, 80)
    what = about if question.kind == "name" else f"task {about}"
    return what if not name or name == question.about else f"{what} ({line(name, 80)})"


def _things(n: int, plan: Plan) -> str:
    word = "cluster" if plan.kind == "name" else "task"
    return f"question about {n} {word}" if n == 1 else f"questions about {n} {word}s"


def _money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.995 else f"${dollars:.4f}"
