"""Keep judgements that verify, and tell what was judged and how far the judges agree."""

from __future__ import annotations

from typing import Any

import msgspec

from blade import number_format
from blade.agent.mcp import arguments, roots
from blade.agent.mcp.answers import Answer, answer, listed, paged
from blade.agent.mcp.house import House, key_of
from blade.hostile import line, quoted
from blade.model import Agreement, Judgement
from blade.report import places
from blade.report.blocks import Block, Bullets, Code, Heading, Line, Quote, para


def record(house: House, asked: arguments.RecordJudgement) -> Answer:
    """Verify judgements against the rows and keep them all, or none."""
    from blade.pipeline import reviewing

    session, run = house.session(asked)
    if run.judged_in is not None:
        roots.refuse_to_write(run.judged_in)
    proposals = [_proposal(one, key_of(session, run, one.task)) for one in asked.judgements]
    kept = reviewing.label(session, proposals, asked.by, run.name)
    document = {
        "run": run.name,
        "n_kept": len(kept),
        "judgements": [msgspec.to_builtins(one) for one in kept],
    }
    items: list[Line] = [
        (
            Code(line(places.place(one.task, one.repeat), 80)),
            f": {one.cause.value}, by ",
            Code(line(one.by, 80)),
        )
        for one in kept
    ]
    blocks: list[Block] = [
        para(f"{number_format.count(len(kept), 'judgement')} verified and kept beside the run."),
        Bullets(tuple(items)),
        para("They stand in for the engine's proposals from now on. blade_judgements tells the agreement."),
    ]
    return answer(asked, f"Judgements of {line(run.name, 120)}", document, blocks)


def _proposal(one: arguments.Proposal, task: str) -> dict[str, Any]:
    told = {**msgspec.structs.asdict(one), "task": task}
    return {key: value for key, value in told.items() if value is not None}


def judgements(house: House, asked: arguments.Judgements) -> Answer:
    """What was judged of a run, and the agreement of its judges with one another and the engine."""
    session, run = house.session(asked)
    found = session.report.judgements.get(run.name, ())
    if asked.task is not None:
        key = key_of(session, run, asked.task)
        found = tuple(one for one in found if one.task == key)
    agreements = [one for one in session.report.agreements if one.run == run.name]
    page = paged(found, asked, msgspec.to_builtins, _judgement)
    head = {"run": run.name, "agreements": [msgspec.to_builtins(one) for one in agreements]}
    intro: list[Block] = [para(f"{number_format.count(len(found), 'judgement')} of this run.")]
    intro += [Bullets(tuple(_agreement(one) for one in agreements))] if agreements else []
    return listed(asked, f"Judgements of {line(run.name, 120)}", head, "judgements", page, intro)


def _agreement(one: Agreement) -> Line:
    kappa = "kappa not defined" if one.kappa is None else f"kappa {one.kappa:.2f}"
    both = (Code(line(one.first, 80)), " and ", Code(line(one.second, 80)))
    return (*both, f": {one.agreed} of {number_format.count(one.n, 'task')} alike, {kappa}")


def _judgement(one: Judgement) -> tuple[Block, ...]:
    where = Code(line(places.place(one.task, one.repeat), 80))
    proposed = f"; the engine proposed {one.proposed.value}" if one.proposed is not None else ""
    at = (f"Step {one.step}",) if one.step is not None else ("Field ", Code(line(one.field or "", 80)))
    blocks: list[Block] = [
        Heading((where, f": {one.cause.value}, by ", Code(line(one.by, 80)))),
        para(Code(line(one.mechanism, 400)), f" Given {line(one.at, 40)}{proposed}."),
    ]
    if one.condition:
        blocks.append(para("The rollout meets the condition ", Code(line(one.condition, 400)), "."))
    return (*blocks, Quote(at, quoted(one.quote, places.QUOTE))) if one.quote else tuple(blocks)
