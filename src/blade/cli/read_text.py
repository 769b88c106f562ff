"""Say what would be asked, what a model answered, what was thrown away, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from blade.agent.reader import EXPECTED_OUT, Price, Question, Result, Usage, answers, statuses
from blade.hostile import line
from blade.model import Judgement
from blade.pipeline.model_reading import Plan, Reading

Recorded = tuple[Sequence[Judgement], list[str]] | None

SCHEMA = "blade.agent.reader/1"
_TITLES = {"label": "Labels", "name": "Names of clusters", "explain": "Explanations", "ask": "Answers"}


# ---- Before ----------------------------------------------------------------------------------------


def _estimate(plan: Plan, limit: int) -> tuple[Usage, Usage]:
    """What the open questions will likely cost, and what they cost at most without a second try."""
    tokens_in, n = sum(question.tokens for question in plan.open), len(plan.open)
    return Usage(tokens_in, n * min(EXPECTED_OUT, limit)), Usage(tokens_in, n * limit)


def before(plan: Plan, price: Price | None, limit: int, is_redacted: bool) -> list[str]:
    """What is about to be asked, of whom, and what that will cost."""
    n, n_kept = len(plan.open), len(plan.questions) - len(plan.open)
    word = "cluster" if plan.kind == "name" else "task"
    what = f"question about {n} {word}" if n == 1 else f"questions about {n} {word}s"
    known = f"; {n_kept} answered before cost nothing" if n_kept else ""
    lines = [f"asking   {n} {what} of {line(plan.model, 80)} at {line(plan.host, 80)}{known}"]
    if n:
        likely, most = _estimate(plan, limit)
        how = "with placeholders for what looks private" if is_redacted else (
            "as it is (--redact replaces what looks private)"
        )
        cost = "; --price IN,OUT tells it in dollars" if price is None else (
            f": about {_money(price.of(likely))}, at most {_money(price.of(most))} before second tries"
        )
        lines += [
            f"sending  text of rollouts leaves this machine, {how}",
            f"cost     about {likely.tokens_in:,} tokens in and {likely.tokens_out:,} out, at most "
            f"{most.tokens_out:,} out{cost}",
        ]
    return [*lines, *(f"note     {line(note)}" for note in plan.notes)]


def listed(plan: Plan) -> list[str]:
    """Every question of a plan on a line."""
    return [
        f"  {_named(question, plan)}: "
        + ("answered before" if question.key in plan.held else f"{question.tokens:,} tokens")
        for question in plan.questions
    ]


def dry_json(plan: Plan, price: Price | None, limit: int) -> str:
    """The plan for a program, prompts included."""
    likely, most = _estimate(plan, limit)
    questions = [
        {
            "about": question.about, "name": plan.called.get(question.about, ""), "tokens": question.tokens,
            "answered_before": question.key in plan.held, "system": question.prompt.system, "user": question.prompt.user,
        }
        for question in plan.questions
    ]  # fmt: skip
    estimate = {"likely": _usage(likely, price), "most": _usage(most, price)}
    return _dumped(
        {**_head(plan), "dry_run": True, "estimate": estimate, "questions": questions, "notes": list(plan.notes)}
    )


# ---- After -----------------------------------------------------------------------------------------


def render(reading: Reading, recorded: Recorded = None) -> str:
    """The answers for a reader."""
    plan, counts = reading.plan, statuses(reading.results)
    n = counts["kept"] + counts["accepted"]
    lines = [f"{_TITLES[plan.kind]} of {line(plan.run, 80)} by {reading.by}: {n} of {len(reading.results)}"]
    lines.append("  " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    if plan.asked:
        lines.append(f"Question  {line(plan.asked)}")
    for result in reading.results:
        if result.answer is not None:
            lines += ["", *_answer(result, reading)]
    for status, why in (
        ("discarded", "what they say does not hold, and is not used"), ("failed", "no answer came"), ("left", "not asked"),
    ):  # fmt: skip
        those = [result for result in reading.results if result.status == status]
        lines += ["", f"{status.capitalize()}: {len(those)}, {why}"] if those else []
        lines += [f"  {_named(result.question, plan)}: {line('; '.join(result.reasons), 400)}" for result in those]
    if plan.kind == "ask":
        lines += _counted(reading)
    if (pair := reading.agreement) is not None:
        kappa = "κ is not defined: chance alone decides" if pair.kappa is None else f"κ {pair.kappa:.2f}"
        lines += ["", f"Agreement with the engine: {pair.agreed} of {pair.n} tasks, {kappa}"]
        lines += [f"  engine {a.value}, model {b.value}: {count}" for a, b, count in pair.confusion if a is not b]
    if recorded is not None:
        lines += ["", f"Recorded: {len(recorded[0])} judgements beside the run"]
        lines += [f"  not recorded: {line(reason, 400)}" for reason in recorded[1]]
    return "\n".join(lines) + "\n"


def after(reading: Reading) -> list[str]:
    """What it cost, and what the user must know."""
    spent = reading.spent
    lines = ["spent    nothing"]
    if spent.total:
        guess = f"{spent.estimated:,} of them estimated: the endpoint did not say, or fewer than can be"
        cost = f": {_money(reading.price.of(spent))}" if reading.price is not None else ""
        how = guess if spent.estimated else "measured"
        lines = [f"spent    {spent.tokens_in:,} tokens in and {spent.tokens_out:,} out ({how}){cost}"]
    if reading.stopped is not None:
        hint = f"; {line(reading.stopped.hint)}" if reading.stopped.hint else ""
        lines.append(f"stopped  {line(reading.stopped.text, 400)}{hint}")
    if not reading.is_kept:
        lines.append("warning: answers could not be kept in the cache: they are paid for again next time")
    return lines


def _answer(result: Result, reading: Reading) -> list[str]:
    answer = result.answer
    assert answer is not None
    mark = ", kept" if result.status == "kept" else ""
    cause, beside = reading.proposed.get(result.question.about), ""
    if reading.plan.kind == "label" and cause is not None:  # what the engine says of the same task
        beside = " (as the engine)" if cause.value == answer.answer else f" (engine: {cause.value})"
    lines = [f"{_named(result.question, reading.plan)}: {line(answer.answer)}{beside}{mark}"]
    if answer.mode:
        lines.append(f"    {line(answer.mode)}")
    lines.append(f"    {line(answer.because)}")
    for place in answer.evidence:
        where = f"step {place.step}" if place.step is not None else f"field {line(place.field or '', 120)}"
        task = "" if place.task == answer.about else f"task {line(place.task, 80)}, "
        lines.append(f"    {task}repeat {place.repeat}, {where}: “{line(place.quote, 240)}”")
    return lines


def _counted(reading: Reading) -> list[str]:
    tallied = answers(reading.results)
    n = sum(len(abouts) for _, abouts in tallied)
    lines = ["", f"Counted over {n} tasks with an answer, of {len(reading.results)} asked about"]
    for answer, abouts in tallied:
        tasks = ", ".join(line(about, 40) for about in abouts[:12]) + (", …" if len(abouts) > 12 else "")
        lines.append(f"  {len(abouts)} of {n}  {line(answer)}: {tasks}")
    return lines


# ---- For a program ---------------------------------------------------------------------------------


def as_json(reading: Reading, recorded: Recorded = None) -> str:
    """The same for a program."""
    result_json: dict[str, Any] = {
        **_head(reading.plan),
        "counts": statuses(reading.results),
        "results": [_result(result, reading) for result in reading.results],
        "spent": _usage(reading.spent, reading.price),
        "stopped": None if reading.stopped is None else line(reading.stopped.text, 400),
        "notes": list(reading.plan.notes),
    }
    if reading.plan.kind == "ask":
        result_json["counted"] = [
            {"answer": answer, "n": len(of), "tasks": list(of)} for answer, of in answers(reading.results)
        ]
    if reading.agreement is not None:
        result = reading.agreement
        result_json["agreement"] = {
            "with": result.first, "n": result.n, "agreed": result.agreed, "kappa": result.kappa,
            "confusion": [{"engine": a.value, "model": b.value, "n": n} for a, b, n in result.confusion],
        }  # fmt: skip
    if recorded is not None:
        result_json["recorded"] = {"kept": [result.id for result in recorded[0]], "refused": recorded[1]}
    return _dumped(result_json)


def _head(plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA, "run": plan.run, "kind": plan.kind, "model": plan.model, "host": plan.host,
        "question": plan.asked or None,
    }  # fmt: skip


def _result(result: Result, reading: Reading) -> dict[str, Any]:
    engine = reading.proposed.get(result.question.about) if reading.plan.kind != "name" else None
    answer = result.answer
    document: dict[str, Any] = {
        "about": result.question.about, "name": reading.plan.called.get(result.question.about, ""),
        "status": result.status, "answer": answer.answer if answer else None,
        "engine": engine.value if engine is not None else None, "reasons": list(result.reasons), "calls": result.calls,
    }  # fmt: skip
    if answer is not None:
        keys = ("task", "repeat", "step", "field", "quote")
        evidence = [{key: getattr(place, key) for key in keys} for place in answer.evidence]
        document |= {"mode": answer.mode, "because": answer.because, "evidence": evidence}
    return document


def _usage(usage: Usage, price: Price | None) -> dict[str, Any]:
    usd = None if price is None else round(price.of(usage), 6)
    return {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "estimated": usage.estimated, "usd": usd}


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def _named(question: Question, plan: Plan) -> str:
    name = plan.called.get(question.about, "")
    about = line(question.about, 80)
    what = about if question.kind == "name" else f"task {about}"
    return what if not name or name == question.about else f"{what} ({line(name, 80)})"


def _money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.995 else f"${dollars:.4f}"
