"""Answer tools about tasks: their causes and groups, the queue, a dossier, steps, judgements."""

from __future__ import annotations

from typing import Any

import msgspec

from blade import number_format
from blade.agent.mcp import roots
from blade.agent.mcp.roots import House, key_of
from blade.agent.mcp.run_answers import QUOTES, quote, with_whole_query
from blade.agent.mcp.tool_answers import MOST, TEXT, Answer, answer, as_json, cut, listed, paged
from blade.errors import UsageError
from blade.formats.rollout_steps import quotable
from blade.hostile import line, lines, quoted
from blade.model import Agreement, Judgement, Step, Trace, Waiting
from blade.report import report_json, row_addresses
from blade.report.blocks import Block, Bullets, Code, Heading, Line, Quote, Table, cells, para

FRAMEWORK = ("responses_create_params", "response", "reward")
FIELDS, FIELD = 40, 160  # fields of a row that are listed, characters of each
TURNS = 6  # turns of the request
DOSSIER = 100_000  # characters: it keeps to its budget itself
LAST = 200  # characters of the last words of a repeat


def tasks(house: House, question: Any) -> Answer:
    """List the tasks of a run with their outcomes, and the cause of each that failed."""
    session, run = house.session(question)
    wire = report_json.document(session.report)
    causes = {cause["task"]: cause for cause in wire["attributions"] if cause["run"] == run.name}
    entries = [
        {**task, "attribution": causes.get(task["task"])} for task in wire["tasks"] if task["run"] == run.name
    ]
    if question.bucket is not None:
        entries = [task for task in entries if task["bucket"] == question.bucket]
    if question.cause is not None:
        entries = [
            task for task in entries if task["attribution"] and task["attribution"]["cause"] == question.cause
        ]
    head = {"run": run.name, "bucket": question.bucket, "cause": question.cause}
    page = paged(entries, question, _task, lambda task: (_task_row(task),))
    only = "".join(f", {name} {value}" for name, value in head.items() if value and name != "run")
    intro = [para(f"Tasks{only}. Lost is in points of score. blade_dossier gives all evidence on one task.")]
    return listed(question, f"Tasks of {line(run.name, 120)}", head, "tasks", page, intro)


def _task(task: dict[str, Any]) -> dict[str, Any]:
    cause = task["attribution"]
    brief = {**cause, "evidence": cause["evidence"][:QUOTES]} if cause else None
    return {**task, "repeats": cut(task["repeats"], MOST), "attribution": brief}


def _task_row(task: dict[str, Any]) -> Table:
    cause = task["attribution"]
    passed = number_format.NONE if task["passed"] is None else f"{task['passed']} of {task['n']}"
    about: tuple[str | Line, ...] = ("", "", "", "")
    if cause:
        lost = f"{cause['lost'] * 100:.2f}" if cause.get("lost") is not None else number_format.NONE
        words = (Code(line(cause["text"].replace("`", ""), 200)),)  # words of rows and of judges
        about = (cause["cause"], cause["confidence"], lost, words)
    name = Code(line(task["task"], 80)), Code(line(task["task_name"], 80))
    row = cells(*name, task["bucket"] or number_format.NONE, passed, *about)
    header = ("Task", "Name", "Bucket", "Passed", "Cause", "Confidence", "Lost", "What happened")
    return Table(header, (row,), "lllrllrl")


def groups(house: House, question: Any) -> Answer:
    """List the failure groups of a run, the largest first, and what no group explains."""
    session, run = house.session(question)
    wire = report_json.document(session.report)
    entries = [group for group in wire["groups"] if group["run"] == run.name]
    if question.label is not None:
        entries = [group for group in entries if group["label"] == question.label]
    if question.task is not None:
        cause = session.facts[run.name].attribution.get(key_of(session, run, question.task))
        entries = [group for group in entries if cause is not None and group["id"] == cause.group]
    rest = next((each for each in wire["unexplained"] if each["run"] == run.name), None)
    left = "Nothing was diagnosed."
    if rest is not None:
        left = (
            f"Unexplained: {100 * rest['points']:.1f} points, {number_format.count(rest['rows'], 'failure')}."
        )
    head = {"run": run.name, "label": question.label, "task": question.task}
    page = paged(entries, question, with_whole_query, _group)
    intro = [para(f"Groups cover the lost points, the largest first. {left}")]
    head["unexplained"] = rest and with_whole_query(rest)
    return listed(question, f"Failure groups of {line(run.name, 120)}", head, "groups", page, intro)


def _group(group: dict[str, Any]) -> tuple[Block, ...]:
    failures, in_tasks = (
        number_format.count(group[key], noun) for key, noun in (("rows", "failure"), ("tasks", "task"))
    )
    passes = number_format.count(group["passed_rows"], "pass", "passes")
    # names and sentences repeat words of rows, so they stand in fences
    texts = [group["name"], group["text"], f"Label {group['label']}: {group['why_label']}."]
    texts += [f"Against it: {'; '.join(group['against'])}."] if group["against"] else []
    texts += [f"Fix: {group['fix']}", f"Examples: {', '.join(group['examples'])}"]
    blocks: list[Block] = [
        Heading((f"{group['id']}: {group['label']}, {group['confidence']}",)),
        para(f"{100 * group['points']:.1f} points, {failures} in {in_tasks}, {passes} with it."),
        Quote(("What it is",), lines("\n".join(texts))),
    ]
    if group["quote"] is not None:
        blocks.append(quote({"step": None, "field": None, **group["quote"], "quote": group["quote"]["text"]}))
    if len(group["query"]) <= TEXT:
        blocks.append(Quote(("Its rows, for blade_query",), lines(group["query"])))
    return tuple(blocks)


# -- reading ----------------------------------------------------------------------------------------


def queue(house: House, question: Any) -> Answer:
    """List the failed tasks worth reading, the most valuable for its tokens first."""
    from blade.pipeline import reviewing

    session, run = house.session(question)
    # as many as the command would be asked for, so that both tell one order
    waiting = reviewing.queue(session, run.name, question.offset + question.limit)
    page = paged(
        waiting.waiting, question, msgspec.to_builtins, lambda task: (_waiting(task),), waiting.n_waiting
    )
    head = {
        "run": waiting.run,
        "n_failed": waiting.n_failed,
        "n_judged": waiting.n_judged,
        "value": waiting.value,
    }
    intro = [
        para(
            f"{waiting.n_failed:,} failed tasks, {waiting.n_judged:,} judged. Value is points lost times how often "
            "such labels are wrong, a rough guide. Read one: blade_dossier."
        )
    ]
    return listed(question, f"Queue of {line(run.name, 120)}", head, "waiting", page, intro)


def _waiting(task: Waiting) -> Table:
    row = cells(
        Code(line(task.task, 80)), Code(line(task.task_name, 80)), task.bucket or number_format.NONE,
        task.cause.value, task.confidence.value, f"{task.lost * 100:.2f}", f"{task.value * 100:.2f}",
        f"{task.tokens:,}",
        Code(line(task.reason.replace("`", ""), 200)),  # the name of a group repeats words of rows
    )  # fmt: skip
    header = ("Task", "Name", "Bucket", "Cause", "Confidence", "Lost", "Value", "Tokens", "Why")
    return Table(header, (row,), "lllllrrrl")


def dossier(house: House, question: Any) -> Answer:
    """All that is needed to judge one task, within a budget."""
    from blade.pipeline import reviewing

    session, run = house.session(question)
    task = key_of(session, run, question.task)
    budget = {} if question.budget is None else {"budget": question.budget}
    page = reviewing.dossier(session, task, run.name, **budget)
    return as_json(msgspec.to_builtins(page), DOSSIER) if question.format == "json" else Answer(page.text)


def show(house: House, question: Any) -> Answer:
    """The repeats of a task, or the steps of one of them."""
    session, run = house.session(question)
    task = key_of(session, run, question.task)
    traces = session.traces(run, task)
    if question.repeat is None:
        page = paged(
            traces,
            question,
            lambda trace: _repeat(run.name, trace),
            lambda trace: (_repeat_row(run.name, trace),),
        )
        intro = [para("Each repeat with its last words; its number as repeat opens it step by step.")]
        title = f"Task {line(task, 80)} of {line(run.name, 80)}"
        return listed(question, title, {"run": run.name, "task": task}, "repeats", page, intro)
    chosen = [trace for trace in traces if trace.rollout.repeat == question.repeat]
    if not chosen:
        there = ", ".join(str(trace.rollout.repeat) for trace in traces[:20]) or "none: its rows were lost"
        message = f"task {line(task, 80)} has no repeat {question.repeat}"
        raise UsageError(message, f"its repeats are {there}", "unknown-task")
    return _rollout(question, run.name, chosen)


def _head(run: str, trace: Trace) -> dict[str, Any]:
    rollout = trace.rollout
    return {
        "run": run, "task": rollout.task, "task_name": rollout.task_name, "repeat": int(rollout.repeat),
        "reward": trace.row.get("reward"), "file": rollout.file, "line": int(rollout.line),
        "n_steps": len(trace.steps),
    }  # fmt: skip


def _repeat(run: str, trace: Trace) -> dict[str, Any]:
    texts = [step.text for step in trace.steps if step.kind == "message" and step.text]
    calls = sum(step.kind == "call" for step in trace.steps)
    return {**_head(run, trace), "n_calls": calls, "last_words": texts[-1] if texts else ""}


def _repeat_row(run: str, trace: Trace) -> Table:
    repeat = _repeat(run, trace)
    reward, words = line(quotable(repeat["reward"]), 20), repeat["last_words"]
    counts = (str(repeat["repeat"]), reward, str(repeat["n_steps"]), str(repeat["n_calls"]))
    row = cells(*counts, Code(line(words, LAST)) if words.strip() else "")
    return Table(("Repeat", "Reward", "Steps", "Calls", "Last words"), (row,), "rrrrl")


def _rollout(question: Any, run: str, chosen: list[Trace]) -> Answer:
    """The steps of a rollout; the row and the request on the first page only."""
    trace, chars = chosen[0], question.chars
    page = paged(trace.steps, question, lambda step: _wire(step, chars), lambda step: _step(step, chars))
    head = {**_head(run, trace), "rows_of_this_repeat": len(chosen), "steps_from": trace.steps_from}
    if question.offset == 0:
        head |= {"fields": _fields(trace), "request": _request(trace, chars)}
    title = f"Task {line(head['task'], 80)} repeat {head['repeat']} of {line(run, 80)}"
    where = (
        f"Reward {line(quotable(head['reward']), 40)}, {head['n_steps']} steps from ",
        Code(trace.steps_from),
    )
    intro: list[Block] = [para(*where, ", ", Code(line(head["file"], 200)), f", line {head['line']}.")]
    if len(chosen) > 1:
        intro.append(para(f"{len(chosen)} rows have this number; this is the first of them."))
    if question.offset == 0:
        items = [(Code(each["field"]), ": ", Code(each["value"])) for each in head["fields"]]
        intro += [Bullets(tuple(items))] if items else []
        intro += [Quote(("Request, ", Code(turn["role"])), turn["text"]) for turn in head["request"]]
        intro += [para("Steps:")] if page.entries else []
    return listed(question, title, head, "steps", page, intro)


def _fields(trace: Trace) -> list[dict[str, str]]:
    """What the row says beside the request and the steps; no name of a field becomes a key."""
    members = [(key, value) for key, value in trace.row.items() if key not in FRAMEWORK]
    return [
        {"field": line(str(key), 80), "value": line(quotable(value), FIELD)}
        for key, value in members[:FIELDS]
    ]


def _request(trace: Trace, chars: int) -> list[dict[str, str]]:
    params = trace.row.get("responses_create_params")
    inputs = params.get("input") if isinstance(params, dict) else None
    turns = inputs if isinstance(inputs, list) else [inputs] if inputs else []
    request = []
    for turn in turns[:TURNS]:
        is_turn = isinstance(turn, dict)
        role = line(str(turn.get("role") or turn.get("type") or "other"), 40) if is_turn else "user"
        request.append({"role": role, "text": quoted(_text(turn) if is_turn else quotable(turn), chars)})
    left = len(turns) - TURNS
    return [*request, {"role": "left out", "text": f"{left} more turns"}] if left > 0 else request


def _text(turn: dict[str, Any]) -> str:
    content = turn.get("content", turn.get("output", turn.get("arguments")))
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = "\n".join(quotable(part) for part in parts if part is not None)
    return content if isinstance(content, str) else quotable(content)


def _wire(step: Step, chars: int) -> dict[str, Any]:
    """A step without what it does not say."""
    members = msgspec.to_builtins(step).items()
    wire = {
        key: value for key, value in members if value not in (None, "") and key not in ("arguments", "tokens")
    }
    thought = {"reasoning": quoted(step.reasoning, chars)} if step.reasoning else {}
    return {**wire, "text": quoted(step.text, chars), **thought}


def _step(step: Step, chars: int) -> tuple[Block, ...]:
    about: tuple[Any, ...] = (f"Step {step.index}, {step.kind}",)
    about += (" ", Code(line(step.tool, 80))) if step.tool else ()
    about += (" (never answered)",) if step.answered is False else ()
    about += (" (failed)",) if step.failed else ()
    thought = (Quote(("Thinking",), quoted(step.reasoning, chars)),) if step.reasoning else ()
    block = (Quote(("Text",), quoted(step.text or "(empty)", chars)),) if step.text or not thought else ()
    return (Heading(about), *thought, *block)


# -- judgements -------------------------------------------------------------------------------------


def record(house: House, question: Any) -> Answer:
    """Verify judgements against the rows and keep them all, or none."""
    from blade.pipeline import reviewing

    session, run = house.session(question)
    if run.judged_in is not None:
        roots.refuse_to_write(run.judged_in)
    proposals = []
    for proposal in question.judgements:
        members = {**msgspec.structs.asdict(proposal), "task": key_of(session, run, proposal.task)}
        proposals.append({key: value for key, value in members.items() if value is not None})
    judged = reviewing.label(session, proposals, question.by, run.name)
    document = {"run": run.name, "n_kept": len(judged), "judgements": msgspec.to_builtins(judged)}
    blocks: list[Block] = [
        para(f"{number_format.count(len(judged), 'judgement')} verified and kept beside the run."),
        Bullets(tuple(_label(judgement) for judgement in judged)),
        para("They stand in for the engine's proposals from now on. blade_judgements tells the agreement."),
    ]
    return answer(question, f"Judgements of {line(run.name, 120)}", document, blocks)


def _label(judgement: Judgement) -> Line:
    where = Code(line(row_addresses.place(judgement.task, judgement.repeat), 80))
    return (where, f": {judgement.cause.value}, by ", Code(line(judgement.by, 80)))


def judgements(house: House, question: Any) -> Answer:
    """What was judged of a run, and the agreement of its judges with one another and the engine."""
    session, run = house.session(question)
    entries = session.report.judgements.get(run.name, ())
    if question.task is not None:
        key = key_of(session, run, question.task)
        entries = tuple(judgement for judgement in entries if judgement.task == key)
    agreements = [pair for pair in session.report.agreements if pair.run == run.name]
    page = paged(entries, question, msgspec.to_builtins, _judgement)
    head = {"run": run.name, "agreements": msgspec.to_builtins(agreements)}
    intro: list[Block] = [para(f"{number_format.count(len(entries), 'judgement')} of this run.")]
    intro += [Bullets(tuple(map(_agreement, agreements)))] if agreements else []
    return listed(question, f"Judgements of {line(run.name, 120)}", head, "judgements", page, intro)


def _agreement(pair: Agreement) -> Line:
    kappa = "kappa not defined" if pair.kappa is None else f"kappa {pair.kappa:.2f}"
    both = (Code(line(pair.first, 80)), " and ", Code(line(pair.second, 80)))
    return (*both, f": {pair.agreed} of {number_format.count(pair.n, 'task')} alike, {kappa}")


def _judgement(judgement: Judgement) -> tuple[Block, ...]:
    engine = judgement.proposed
    proposed = f"; the engine proposed {engine.value}" if engine is not None else ""
    words = Code(line(judgement.mechanism, 400)), f" Given {line(judgement.at, 40)}{proposed}."
    blocks: list[Block] = [Heading(_label(judgement)), para(*words)]
    if judgement.condition:
        blocks.append(para("The rollout meets the condition ", Code(line(judgement.condition, 400)), "."))
    if judgement.quote:
        place: Line = ("Field ", Code(line(judgement.field or "", 80)))
        place = (f"Step {judgement.step}",) if judgement.step is not None else place
        blocks.append(Quote(place, quoted(judgement.quote, row_addresses.QUOTE)))
    return tuple(blocks)
