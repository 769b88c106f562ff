"""Answer every tool from the session of a run: what the command line prints, in pages that agents can afford."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from blade import pipeline, rollout_text
from blade.agent.mcp import roots
from blade.agent.mcp.pages import MOST, TEXT, Answer, answer, as_json, cut, listed
from blade.agent.mcp.roots import House, key_of
from blade.check import check_findings, checked, world_for
from blade.check.json_reports import read_report
from blade.errors import BladeError, Unreadable, UsageError
from blade.formats.rollout_steps import quotable
from blade.hostile import line, lines, quoted
from blade.model import Agreement, Judgement, Step, Trace
from blade.number_format import NONE, count, hundredths, number, size
from blade.pipeline import comparing, report_pages, reviewing, run_tables
from blade.pipeline.load import Loaded
from blade.pipeline.session import depends_on
from blade.query import query_ground, query_process
from blade.report import first_page, report_json, row_addresses
from blade.report.blocks import Block, Bullets, Code, Heading, Line, Quote, Table, cells, para, prose
from blade.report.comparison_screen import compare_text
from blade.rollout_text import FRAMEWORK

QUOTES = 2  # quotations of one entry
SHOWN = 8  # recommendations and the like of a summary
ROWS = 100  # of one answer to a query
TERMS = 12  # of a long list of a comparison
REPORT = 16 << 20  # bytes of a report that is checked
LEVELS = ("alarm", "warning", "note")
FLAG_LEVELS = ("problem", "warning", "info")
FIELDS, FIELD = 40, 160  # fields of a row that are listed, characters of each
TURNS = 6  # turns of the request
DOSSIER = 100_000  # characters: it keeps to its budget itself
LAST = 200  # characters of the last words of a repeat
Entry = dict[str, Any]


def _row(header: str, align: str, *values: Any) -> list[Block]:
    return [Table(tuple(header.split(", ")), (cells(*values),), align)]


def _code(text: str, most: int = 80) -> Code:
    return Code(line(text, most))


def _about(entries: list[Entry], *names: str) -> list[Entry]:
    """The entries about some runs, and those about no single one."""
    return [entry for entry in entries if entry.get("run", names[0]) in names]


def _without(entry: Entry, *keys: str) -> Entry:
    return {key: value for key, value in entry.items() if key not in keys}


def _with_whole_query(entry: Entry) -> Entry:
    """Leave out a query that is too long for an answer: a part of it would give other rows."""
    return entry if len(entry["query"]) <= TEXT else {**entry, "query": None}


def _few_quoted(entry: Entry) -> Entry:
    return {**entry, "evidence": entry["evidence"][:QUOTES]}


def _quote(evidence: Entry) -> Block:
    """A quotation under the place where it stands."""
    where = ("task ", _code(row_addresses.place(evidence["task"], evidence["repeat"])))
    if evidence["quote"] is None:
        return para(*where, ", a row that is not there.")
    step: Line = (", field ", _code(evidence["field"] or ""))
    if evidence["step"] is not None:
        step = (f", step {evidence['step']}",)
    return Quote((*where, *step), quoted(evidence["quote"], row_addresses.QUOTE))


# -- whole runs -------------------------------------------------------------------------------------


def list_runs(house: House, question: Any) -> Answer:
    """The runs under the folders of the server, each with its rows and its score."""
    notes: list[str] = []
    places = roots.places(house.roots, notes.append)
    intro = ["Give the path or the name of a run to the other tools.", *(line(note, 300) for note in notes[:5])]
    if not places:
        intro.append("There is no rollouts file here. Start the server with a folder: blade mcp FOLDER.")
    head = {"folders": [str(place) for place in house.roots.allowed], "notes": notes[:20]}
    return listed(question, "Runs", head, "runs", places, _runs, [*map(para, intro)], partial(_run, house))


def _run(house: House, place: roots.Place) -> Entry:
    """A place with what its columns say; a file that cannot be read says why."""
    head = {"run": place.id, "name": place.name, "error": None, "hint": None}
    try:
        roots.refuse_links(house.roots, place)
        loaded = pipeline.load(place.specs, house.watcher)
        report = report_pages.listed(loaded, [report_pages.scoring_of(run, None) for run in loaded], "")
    except BladeError as error:
        return {**head, "error": error.message, "hint": error.hint, "runs": []}
    runs = [
        {
            "name": run.name, "n_tasks": int(run.n_tasks), "n_rollouts": int(run.n_rollouts),
            "score_name": run.score_name, "score": report_json.number(run.score), "model": run.model,
        }
        for run in report.runs
    ]  # fmt: skip
    return {**head, "runs": runs}


def _runs(place: Entry) -> list[Block]:
    rows = []
    for run in place["runs"]:
        score = "no score" if run["score"] is None else f"{run['score_name']} {number(run['score'])}"
        rows.append((run["name"], f"{run['n_tasks']:,}", f"{run['n_rollouts']:,}", score))
    rows = rows or [(place["name"], "–", "–", line(place["error"] or "", 200))]
    body = tuple(cells(Code(place["run"]), Code(name), *texts) for name, *texts in rows)
    return [Table(("Run", "Name", "Tasks", "Rollouts", "Score"), body, "llrrl")]


def summary(house: House, question: Any) -> Answer:
    """Give the first page of a run: score, trust, failure groups, what to fix first."""
    session, only = house.sessions(question.run, question.pass_threshold)
    if only is not None:
        session.run(only)  # an agent that is not there is refused
    runs = tuple(run for run in session.report.runs if only in (None, run.name))
    report = replace(session.report, runs=runs)
    if question.format == "markdown":
        label = (f"{count(len(runs), 'run')}, as ", Code("blade diagnose"), " prints it")
        more = para("More: blade_tasks, blade_queue and blade_dossier, blade_groups, blade_health.")
        title = f"Summary of {line(', '.join(run.name for run in runs), 120)}"
        return answer(question, title, {}, [Quote(label, first_page.render(report)), more])
    wire = report_json.document(report)
    names = [run["name"] for run in wire["runs"]]

    def about(part: str) -> list[Entry]:
        return _about(wire[part], *names)

    document = {
        "runs": [_without(run, "sources", "artifacts", "notes", "settings") for run in wire["runs"]],
        "measures": [measure for measure in about("measures") if measure["slice"] is None],
        "buckets": [
            {key: value if key == "run" else len(value) for key, value in each.items()}
            for each in about("buckets")
        ],
        # without their queries, which are long: blade_groups and blade_health have them
        **{
            part: cut([_without(entry, "query") for entry in about(part)], SHOWN)
            for part in ("trust", "groups", "unexplained")
        },
        "losses": cut(about("losses")),
        "run_causes": [*map(_brief, about("run_causes")[:SHOWN])],
        "recommendations": [*map(_brief, about("recommendations")[:SHOWN])],
        "health": [_levels(wire, name) for name in names],
        "gaps": cut(wire["gaps"], SHOWN),
        "accuracy": {key: (wire["accuracy"] or {}).get(key) for key in ("date", "confidence")},
    }
    return answer(question, "", document, [])


def _brief(entry: Entry) -> Entry:
    """A conclusion with few of its tasks and quotations."""
    return _few_quoted(entry) | ({"tasks": cut(entry["tasks"], SHOWN)} if "tasks" in entry else {})


def _levels(wire: Entry, name: str) -> Entry:
    """Count what speaks against a score, and the flags on its columns, by level."""
    seen = Counter((part, entry["level"]) for part in ("trust", "health") for entry in wire[part] if entry["run"] == name)
    trust, flags = {level: seen["trust", level] for level in LEVELS}, {level: seen["health", level] for level in FLAG_LEVELS}
    return {"run": name, "trust": trust, "flags": flags}


def health(house: House, question: Any) -> Answer:
    """List what speaks against the score, then the flags on its columns, the gravest first."""
    session, run = house.session(question)
    wire = report_json.document(session.report)
    flags = sorted(_about(wire["health"], run.name), key=lambda flag: FLAG_LEVELS.index(flag["level"]))
    entries = [{"kind": "trust", **_with_whole_query(doubt)} for doubt in _about(wire["trust"], run.name)]
    entries += [{"kind": "flag", **_few_quoted(flag)} for flag in flags]
    (of_run,) = [each for each in wire["runs"] if each["name"] == run.name]
    head = {key: of_run[key] for key in ("name", "score_name", "score", "n_tasks", "n_rollouts")}
    head["levels"] = _levels(wire, run.name)
    counts = ", ".join(count(n, level) for level, n in head["levels"]["trust"].items())
    intro = [para(f"{counts}. An alarm means that the score cannot be used as it is.")]
    title = f"Health of {line(run.name, 120)}"
    return listed(question, title, head, "entries", entries, _health_entry, intro)


def _health_entry(entry: Entry) -> list[Block]:
    if entry["kind"] == "flag":
        title = Heading((f"{entry['level']}: ", _code(entry["flag"], 60)))
        return [title, Quote((f"n = {entry['n']:,}",), lines(entry["text"])), *map(_quote, entry["evidence"])]
    label = f", label {entry['label']}" if entry["label"] else ""
    fix = f"\nFix: {entry['fix']}" if entry["fix"] else ""
    # the sentence repeats words of rows, so it stands in a fence
    words = Quote((count(entry["rows"], "rollout"),), lines(entry["text"] + fix))
    return [Heading((f"{entry['level']}{label}",)), words]


def query(house: House, question: Any) -> Answer:
    """One measure, or one SELECT over the tables of a run."""
    ground = run_tables.ground_of(_named(house, question.runs), question.pass_threshold, house.watcher)
    outcome = query_process.raised(query_process.ask(ground, [question.query])[0])
    columns, rows = outcome.table()
    document: Entry = {
        "query": question.query, "columns": list(columns), "rows": [list(row) for row in rows[:ROWS]],
        "n_rows": len(rows), "truncated": outcome.is_cut or len(rows) > ROWS, "notes": list(outcome.notes),
    }  # fmt: skip
    answers = outcome.answers or ()
    if len(answers) == 1 and answers[0].group is None:
        names = ("value", "low", "high", "n", "unit", "method")
        document |= {name: getattr(answers[0], name) for name in names}
        document |= {"tasks": list(answers[0].tasks[:ROWS])} if answers[0].tasks else {}
    body = tuple(cells(*map(_cell, row)) for row in rows[:ROWS])
    table = Table(tuple(line(name, 80) for name in columns), body, "l" * len(columns))
    blocks: list[Block] = [para(_code(question.query, 400)), table if rows else para("No row.")]
    if len(rows) > ROWS:
        blocks.append(para(f"{len(rows) - ROWS:,} more rows: narrow the query, or count instead of listing."))
    return answer(question, "Query", document, [*blocks, *(para(line(note, 400)) for note in outcome.notes)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else line(str(value), 300)


def fields(house: House, question: Any) -> Answer:
    """Every field of the rows of a run, and what it is by how its values behave."""
    run = _named(house, [question.run])[0]
    ground = run_tables.ground_of([run], question.pass_threshold, house.watcher)
    names = ("path", "column", "role", "type", "presence", "distinct", "example")
    columns = ", ".join(f'"{name}"' for name in names)
    rows = ground.ask(f"select {columns} from fields order by role, path")
    assert isinstance(rows, query_ground.Table)
    entries = [dict(zip(names, row, strict=True)) for row in rows.rows if question.role in (None, row[2])]

    def blocks_of(entry: Entry) -> list[Block]:
        values = [_cell(value) for name, value in entry.items() if name != "column"]
        return _row("Field, Role, Type, Rows, Distinct, Example", "lllrrl", *values)

    return listed(question, "Fields", {"run": run.name}, "fields", entries, blocks_of)


def _named(house: House, names: Sequence[str | None]) -> list[Loaded]:
    if loaded := house.loaded(names):
        return loaded
    raise UsageError("no run was named", "give runs as blade_list_runs lists them", "no-such-run")


# -- comparisons and claims -------------------------------------------------------------------------


def compare(house: House, question: Any) -> Answer:
    """Is the change real, and what moved it, in terms that add up."""
    names = [question.baseline, *question.candidates]
    loaded = house.loaded(names)
    if len({run.name for run in loaded}) < len(loaded):
        loaded = pipeline.load(house.specs(names), house.watcher)
    if len(loaded) < 2:
        raise UsageError("a comparison takes two runs", "name another run among the candidates", "one-run")
    settings = f"compare {question.margin} {question.series} {question.pass_threshold}"
    key = depends_on(loaded, settings) or settings
    report = house.once(
        ("compare", key, *(run.name for run in loaded)),
        lambda: comparing.compare(
            loaded, "blade mcp", threshold=question.pass_threshold, margin=question.margin,
            ordered=question.series, watcher=house.watcher,
        ),
    )  # fmt: skip
    if question.format == "markdown":
        title = f"Comparison of {', '.join(line(run.name, 60) for run in report.runs[:4])}"
        page = Quote(("As ", Code("blade compare"), " tells it"), compare_text(report))
        return answer(question, title, {}, [page])
    scores = [{"name": run.name, "score_name": run.score_name, "score": run.score} for run in report.runs]
    compared = [
        {
            key: cut(value, TERMS) if isinstance(value, list) and key not in ("tests", "bridge") else _first(value)
            for key, value in report_json.values(pair).items()
        }
        for pair in report.comparisons
    ]
    series = report_json.values(report.series)
    return answer(question, "", {"runs": scores, "comparisons": compared, "series": series}, [])


def _first(value: Any) -> Any:
    """A value with the first entries of its long lists."""
    if isinstance(value, dict):
        return {key: _first(item) for key, item in value.items()}
    return value[: TERMS * 5] if isinstance(value, list) else value


def check_claims(house: House, question: Any) -> Answer:
    """Check a report: what is wrong, what cannot be verified, what names no source."""
    report, world = _report(house, question), None
    if question.runs:
        world = world_for(report, house.specs(question.runs), house.watcher, question.pass_threshold)
    findings, names = checked(report, world), list(world.rows.runs) if world is not None else []
    problems = json.loads(check_findings.as_json(check_findings.problems(findings)))["findings"]
    head = {"against": names, "counts": check_findings.counts(findings)}
    against = ", ".join(line(name, 60) for name in names) or "nothing but itself; name runs to check it by"
    intro = [para(f"Checked against {against}: {check_findings.summary(findings, bool(names))}.")]
    return listed(question, "Check of a report", head, "problems", problems, _problem, intro)


def _report(house: House, question: Any) -> str:
    """The text of the report that is given, or of the file that is named."""
    if (question.report is None) == (question.path is None):
        hint = "give its text as `report`, or its `path`"
        raise UsageError("there is no one report to check", hint, "usage")
    if question.report is not None:
        if not question.report.strip():
            raise UsageError("the report is empty", "give Markdown or JSON", "usage")
        return str(question.report)
    path = roots.file_of(house.roots, question.path or "")
    if path.stat().st_size > REPORT:
        raise Unreadable(f"{path.name} is too large for a report", "give a part of it", "unreadable-file")
    return read_report(str(path), house.roots.holds)


def _problem(finding: Entry) -> list[Block]:
    expected = f" Expected {line(str(finding['expected']), 200)}." if finding["expected"] else ""
    why = line(finding["why"] or f"{finding['verdict']}: {finding['printed']}", 400).rstrip(".")
    return [
        Heading((f"{finding['verdict']}, {finding['kind']}, line {finding['line']}",)),
        para(*prose(f"{why[:1].upper()}{why[1:]}.{expected}")),
        Quote(("The report says",), quoted(finding["text"], 400)),
    ]


# -- tasks and groups -------------------------------------------------------------------------------


def tasks(house: House, question: Any) -> Answer:
    """List the tasks of a run with their outcomes, and the cause of each that failed."""
    session, run = house.session(question)
    wire = report_json.document(session.report)
    causes = {cause["task"]: _few_quoted(cause) for cause in wire["attributions"] if cause["run"] == run.name}
    entries = [
        {**task, "repeats": cut(task["repeats"], MOST), "attribution": causes.get(task["task"])}
        for task in wire["tasks"]
        if task["run"] == run.name and question.bucket in (None, task["bucket"])
        if question.cause in (None, causes.get(task["task"], {}).get("cause"))
    ]
    head = {"run": run.name, "bucket": question.bucket, "cause": question.cause}
    only = "".join(f", {name} {value}" for name, value in head.items() if value and name != "run")
    intro = [para(f"Tasks{only}. Lost is in points of score. blade_dossier gives all evidence on one task.")]
    return listed(question, f"Tasks of {line(run.name, 120)}", head, "tasks", entries, _task, intro)


def _task(task: Entry) -> list[Block]:
    cause = task["attribution"]
    passed = NONE if task["passed"] is None else f"{task['passed']} of {task['n']}"
    about: tuple[str | Line, ...] = ("", "", "", "")
    if cause:
        lost = hundredths(cause["lost"]) if cause.get("lost") is not None else NONE
        words = (_code(cause["text"].replace("`", ""), 200),)  # words of rows and of judges
        about = (cause["cause"], cause["confidence"], lost, words)
    name = _code(task["task"]), _code(task["task_name"])
    header = "Task, Name, Bucket, Passed, Cause, Confidence, Lost, What happened"
    return _row(header, "lllrllrl", *name, task["bucket"] or NONE, passed, *about)


def groups(house: House, question: Any) -> Answer:
    """List the failure groups of a run, the largest first, and what no group explains."""
    session, run = house.session(question)
    wire = report_json.document(session.report)
    entries = [group for group in wire["groups"] if group["run"] == run.name]
    entries = [group for group in entries if question.label in (None, group["label"])]
    if question.task is not None:
        cause = session.facts[run.name].attribution.get(key_of(session, run, question.task))
        entries = [group for group in entries if cause is not None and group["id"] == cause.group]
    rest = next((each for each in wire["unexplained"] if each["run"] == run.name), None)
    left = "Nothing was diagnosed."
    if rest is not None:
        left = f"Unexplained: {size(rest['points'])}, {count(rest['rows'], 'failure')}."
    head = {"run": run.name, "label": question.label, "task": question.task}
    head["unexplained"] = rest and _with_whole_query(rest)
    intro = [para(f"Groups cover the lost points, the largest first. {left}")]
    title = f"Failure groups of {line(run.name, 120)}"
    return listed(question, title, head, "groups", entries, _group, intro, _with_whole_query)


def _group(group: Entry) -> list[Block]:
    failures = f"{count(group['rows'], 'failure')} in {count(group['tasks'], 'task')}"
    passes = count(group["passed_rows"], "pass", "passes")
    # names and sentences repeat words of rows, so they stand in fences
    texts = [group["name"], group["text"], f"Label {group['label']}: {group['why_label']}."]
    texts += [f"Against it: {'; '.join(group['against'])}."] if group["against"] else []
    texts += [f"Fix: {group['fix']}", f"Examples: {', '.join(group['examples'])}"]
    blocks: list[Block] = [
        Heading((f"{group['id']}: {group['label']}, {group['confidence']}",)),
        para(f"{size(group['points'])}, {failures}, {passes} with it."),
        Quote(("What it is",), lines("\n".join(texts))),
    ]
    if (quotation := group["quote"]) is not None:
        blocks.append(_quote({"step": None, "field": None, **quotation, "quote": quotation["text"]}))
    if group["query"] is not None:
        blocks.append(Quote(("Its rows, for blade_query",), lines(group["query"])))
    return blocks


# -- reading ----------------------------------------------------------------------------------------


def queue(house: House, question: Any) -> Answer:
    """List the failed tasks worth reading, the most valuable for its tokens first."""
    session, run = house.session(question)
    # as many as the command would be asked for, so that both tell one order
    waiting = reviewing.queue(session, run.name, question.offset + question.limit)
    head = {name: getattr(waiting, name) for name in ("run", "n_failed", "n_judged", "value")}
    intro = (
        f"{waiting.n_failed:,} failed tasks, {waiting.n_judged:,} judged. Value is points lost times how often "
        "such labels are wrong, a rough guide. Read one: blade_dossier."
    )
    return listed(
        question, f"Queue of {line(run.name, 120)}", head, "waiting", waiting.waiting, _waiting, [para(intro)],
        msgspec.to_builtins, waiting.n_waiting,
    )  # fmt: skip


def _waiting(task: Entry) -> list[Block]:
    return _row(
        "Task, Name, Bucket, Cause, Confidence, Lost, Value, Tokens, Why", "lllllrrrl", _code(task["task"]),
        _code(task["task_name"]), task["bucket"] or NONE, task["cause"], task["confidence"],
        hundredths(task["lost"]), hundredths(task["value"]), f"{task['tokens']:,}",
        _code(task["reason"].replace("`", ""), 200),  # the name of a group repeats words of rows
    )  # fmt: skip


def dossier(house: House, question: Any) -> Answer:
    """All that is needed to judge one task, within a budget."""
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
        intro = [para("Each repeat with its last words; its number as repeat opens it step by step.")]
        title, head = f"Task {line(task, 80)} of {line(run.name, 80)}", {"run": run.name, "task": task}

        def wire(trace: Trace) -> Entry:
            effort = rollout_text.effort([*map(msgspec.to_builtins, trace.steps)])
            return {**_head(run.name, trace), **effort}

        def blocks_of(repeat: Entry) -> list[Block]:
            counts = (str(repeat["repeat"]), line(quotable(repeat["reward"]), 20), str(repeat["n_steps"]), str(repeat["n_calls"]))
            last = _code(repeat["last_words"], LAST) if repeat["last_words"].strip() else ""
            return _row("Repeat, Reward, Steps, Calls, Last words", "rrrrl", *counts, last)

        return listed(question, title, head, "repeats", traces, blocks_of, intro, wire)
    chosen = [trace for trace in traces if trace.rollout.repeat == question.repeat]
    if not chosen:
        there = ", ".join(str(trace.rollout.repeat) for trace in traces[:20]) or "none: its rows were lost"
        message = f"task {line(task, 80)} has no repeat {question.repeat}"
        raise UsageError(message, f"its repeats are {there}", "unknown-task")
    return _rollout(question, run.name, chosen)


def _head(run: str, trace: Trace) -> Entry:
    rollout = trace.rollout
    return {
        "run": run, "task": rollout.task, "task_name": rollout.task_name, "repeat": int(rollout.repeat),
        "reward": trace.row.get("reward"), "file": rollout.file, "line": int(rollout.line),
        "n_steps": len(trace.steps),
    }  # fmt: skip


def _rollout(question: Any, run: str, chosen: list[Trace]) -> Answer:
    """The steps of a rollout; the row and the request on the first page only."""
    trace, chars = chosen[0], question.chars
    head = {**_head(run, trace), "rows_of_this_repeat": len(chosen), "steps_from": trace.steps_from}
    title = f"Task {line(head['task'], 80)} repeat {head['repeat']} of {line(run, 80)}"
    where = f"Reward {line(quotable(head['reward']), 40)}, {head['n_steps']} steps from "
    place = (Code(trace.steps_from), ", ", _code(head["file"], 200), f", line {head['line']}.")
    intro: list[Block] = [para(where, *place)]
    if len(chosen) > 1:
        intro.append(para(f"{len(chosen)} rows have this number; this is the first of them."))
    if question.offset == 0:
        members = [(key, value) for key, value in trace.row.items() if key not in FRAMEWORK][:FIELDS]
        # no name of a field becomes a key
        head["fields"] = [{"field": line(str(key), 80), "value": line(quotable(value), FIELD)} for key, value in members]
        turns = [turn for turn in rollout_text.turns(trace.row) if turn != {"role": "user", "text": ""}]
        request = [{"role": line(turn["role"], 40), "text": quoted(turn["text"], chars)} for turn in turns[:TURNS]]
        left = len(turns) - TURNS
        head["request"] = [*request, *([{"role": "left out", "text": f"{left} more turns"}] if left > 0 else [])]
        items = [(Code(each["field"]), ": ", Code(each["value"])) for each in head["fields"]]
        intro += [Bullets(tuple(items))] if items else []
        intro += [Quote(("Request, ", Code(turn["role"])), turn["text"]) for turn in head["request"]]
        intro += [para("Steps:")] if trace.steps else []

    def wire(step: Step) -> Entry:
        members = rollout_text.step(msgspec.to_builtins(step))
        return members | {name: quoted(members[name], chars) for name in ("text", "reasoning") if name in members}

    return listed(question, title, head, "steps", trace.steps, _step, intro, wire)


def _step(step: Entry) -> list[Block]:
    tool = (" ", _code(step["tool"])) if step.get("tool") else ()
    states = (f" ({state})" for state in rollout_text.states(step.get("answered"), step.get("failed")))
    blocks: list[Block] = [Heading((f"Step {step['index']}, {step['kind']}", *tool, *states))]
    if "reasoning" in step:
        blocks.append(Quote(("Thinking",), step["reasoning"]))
    if step["text"] or "reasoning" not in step:
        blocks.append(Quote(("Text",), step["text"] or "(empty)"))
    return blocks


# -- judgements -------------------------------------------------------------------------------------


def record(house: House, question: Any) -> Answer:
    """Verify judgements against the rows and keep them all, or none."""
    session, run = house.session(question)
    if run.judged_in is not None:
        roots.refuse_to_write(run.judged_in)
    proposals = []
    for proposal in question.judgements:
        members = {**msgspec.structs.asdict(proposal), "task": key_of(session, run, proposal.task)}
        proposals.append({key: value for key, value in members.items() if value is not None})
    judged = msgspec.to_builtins(reviewing.label(session, proposals, question.by, run.name))
    blocks: list[Block] = [
        para(f"{count(len(judged), 'judgement')} verified and kept beside the run."),
        Bullets(tuple(map(_label, judged))),
        para("They stand in for the engine's proposals from now on. blade_judgements tells the agreement."),
    ]
    document = {"run": run.name, "n_kept": len(judged), "judgements": judged}
    return answer(question, f"Judgements of {line(run.name, 120)}", document, blocks)


def _label(judgement: Entry) -> Line:
    where = _code(row_addresses.place(judgement["task"], judgement["repeat"]))
    return (where, f": {judgement['cause']}, by ", _code(judgement["by"]))


def judgements(house: House, question: Any) -> Answer:
    """What was judged of a run, and the agreement of its judges with one another and the engine."""
    session, run = house.session(question)
    entries: tuple[Judgement, ...] = session.report.judgements.get(run.name, ())
    if question.task is not None:
        key = key_of(session, run, question.task)
        entries = tuple(judgement for judgement in entries if judgement.task == key)
    agreements = [pair for pair in session.report.agreements if pair.run == run.name]
    head = {"run": run.name, "agreements": msgspec.to_builtins(agreements)}
    intro: list[Block] = [para(f"{count(len(entries), 'judgement')} of this run.")]
    intro += [Bullets(tuple(map(_agreement, agreements)))] if agreements else []
    title = f"Judgements of {line(run.name, 120)}"
    return listed(question, title, head, "judgements", entries, _judgement, intro, msgspec.to_builtins)


def _agreement(pair: Agreement) -> Line:
    kappa = "kappa not defined" if pair.kappa is None else f"kappa {pair.kappa:.2f}"
    alike = f": {pair.agreed} of {count(pair.n, 'task')} alike, {kappa}"
    return (_code(pair.first), " and ", _code(pair.second), alike)


def _judgement(judgement: Entry) -> list[Block]:
    proposed = f"; the engine proposed {judgement['proposed']}" if judgement["proposed"] else ""
    words = _code(judgement["mechanism"], 400), f" Given {line(judgement['at'], 40)}{proposed}."
    blocks: list[Block] = [Heading(_label(judgement)), para(*words)]
    if judgement["condition"]:
        blocks.append(para("The rollout meets the condition ", _code(judgement["condition"], 400), "."))
    if judgement["quote"]:
        place: Line = ("Field ", _code(judgement["field"] or ""))
        place = (f"Step {judgement['step']}",) if judgement["step"] is not None else place
        blocks.append(Quote(place, quoted(judgement["quote"], row_addresses.QUOTE)))
    return blocks
