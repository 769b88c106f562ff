"""Answer tools about whole runs: which there are, summary, health, fields, queries, comparisons, claims."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from blade import number_format
from blade.agent.mcp import roots
from blade.agent.mcp.roots import House, refuse_threshold
from blade.agent.mcp.tool_answers import TEXT, Answer, answer, cut, listed, paged
from blade.errors import BladeError, Unreadable, UsageError
from blade.hostile import line, lines, quoted
from blade.report import first_page, report_json, row_addresses
from blade.report.blocks import Block, Code, Heading, Quote, Table, cells, para, prose

QUOTES = 2  # quotations of one entry
SHOWN = 8  # recommendations and the like of a summary
ROWS = 100  # of one answer to a query
TERMS = 12  # of a long list of a comparison
REPORT = 16 << 20  # bytes of a report that is checked
LEVELS = ("alarm", "warning", "note")
FLAG_LEVELS = ("problem", "warning", "info")


def list_runs(house: House, question: Any) -> Answer:
    """The runs under the folders of the server, each with its rows and its score."""
    notes: list[str] = []
    listed_runs = roots.places(house.roots, notes.append)
    page = paged(
        listed_runs, question, lambda place: _run(house, place), lambda place: (_runs(_run(house, place)),)
    )
    intro = [para("Give the path or the name of a run to the other tools.")]
    intro += [para(line(note, 300)) for note in notes[:5]]
    if not listed_runs:
        intro.append(
            para("There is no rollouts file here. Start the server with a folder: blade mcp FOLDER.")
        )
    head = {"folders": [str(place) for place in house.roots.allowed], "notes": notes[:20]}
    return listed(question, "Runs", head, "runs", page, intro)


def _run(house: House, place: roots.Place) -> dict[str, Any]:
    """A place with what its columns say; a file that cannot be read says why."""
    from blade import pipeline
    from blade.pipeline import report_pages

    try:
        roots.refuse_links(house.roots, place)
        loaded = pipeline.load(place.specs, house.watcher)
        report = report_pages.listed(loaded, [report_pages.scoring_of(run, None) for run in loaded], "")
    except BladeError as error:
        return {"run": place.id, "name": place.name, "error": error.message, "hint": error.hint, "runs": []}
    runs = [
        {
            "name": run.name, "n_tasks": int(run.n_tasks), "n_rollouts": int(run.n_rollouts),
            "score_name": run.score_name, "score": report_json.number(run.score), "model": run.model,
        }
        for run in report.runs
    ]  # fmt: skip
    return {"run": place.id, "name": place.name, "error": None, "hint": None, "runs": runs}


def _runs(place: dict[str, Any]) -> Table:
    rows = []
    for run in place["runs"]:
        score = "no score"
        if run["score"] is not None:
            score = f"{run['score_name']} {number_format.number(run['score'])}"
        counts = (f"{run['n_tasks']:,}", f"{run['n_rollouts']:,}")
        rows.append(cells(Code(place["run"]), Code(run["name"]), *counts, score))
    if not rows:
        rows.append(cells(Code(place["run"]), Code(place["name"]), "–", "–", line(place["error"] or "", 200)))
    return Table(("Run", "Name", "Tasks", "Rollouts", "Score"), tuple(rows), "llrrl")


def summary(house: House, question: Any) -> Answer:
    """Give the first page of a run: score, trust, failure groups, what to fix first."""
    session, only = house.sessions(question.run, question.pass_threshold)
    if only is not None:
        session.run(only)  # an agent that is not there is refused
    runs = tuple(run for run in session.report.runs if only in (None, run.name))
    report = replace(session.report, runs=runs)
    if question.format == "markdown":
        label = (f"{number_format.count(len(runs), 'run')}, as ", Code("blade diagnose"), " prints it")
        more = para("More: blade_tasks, blade_queue and blade_dossier, blade_groups, blade_health.")
        title = f"Summary of {line(', '.join(run.name for run in runs), 120)}"
        return answer(question, title, {}, [Quote(label, first_page.render(report)), more])
    wire = report_json.document(report)
    names = [run["name"] for run in wire["runs"]]
    document = {
        "runs": [_without(run, "sources", "artifacts", "notes", "settings") for run in wire["runs"]],
        "measures": [each for each in _of(wire["measures"], names) if each["slice"] is None],
        "buckets": [
            {key: value if key == "run" else len(value) for key, value in each.items()}
            for each in _of(wire["buckets"], names)
        ],
        # without their queries, which are long: blade_groups and blade_health have them
        **{
            part: cut([_without(each, "query") for each in _of(wire[part], names)], SHOWN)
            for part in ("trust", "groups", "unexplained")
        },
        "losses": cut(_of(wire["losses"], names)),
        **{
            part: [_brief(each) for each in _of(wire[part], names)[:SHOWN]]
            for part in ("run_causes", "recommendations")
        },
        "health": [_levels(wire, name) for name in names],
        "gaps": cut(wire["gaps"], SHOWN),
        "accuracy": {key: (wire["accuracy"] or {}).get(key) for key in ("date", "confidence")},
    }
    return answer(question, "", document, [])


def _of(entries: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """The entries about some runs, and those about no single one."""
    return [entry for entry in entries if entry.get("run", names[0]) in names]


def _without(entry: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in keys}


def _brief(entry: dict[str, Any]) -> dict[str, Any]:
    """A conclusion with few of its tasks and quotations."""
    brief = {**entry, "evidence": entry["evidence"][:QUOTES]}
    return {**brief, "tasks": cut(entry["tasks"], SHOWN)} if "tasks" in entry else brief


def _levels(wire: dict[str, Any], name: str) -> dict[str, Any]:
    """Count what speaks against a score, and the flags on its columns, by level."""
    levels: dict[str, Any] = {"run": name}
    for key, part, every in (("trust", "trust", LEVELS), ("flags", "health", FLAG_LEVELS)):
        seen = [entry["level"] for entry in wire[part] if entry["run"] == name]
        levels[key] = {level: seen.count(level) for level in every}
    return levels


def with_whole_query(entry: dict[str, Any]) -> dict[str, Any]:
    """Leave out a query that is too long for an answer: a part of it would give other rows."""
    return entry if len(entry["query"]) <= TEXT else {**entry, "query": None}


def health(house: House, question: Any) -> Answer:
    """List what speaks against the score, then the flags on its columns, the gravest first."""
    session, run = house.session(question)
    wire = report_json.document(session.report)
    flags = sorted(_of(wire["health"], [run.name]), key=lambda flag: FLAG_LEVELS.index(flag["level"]))
    entries = [{"kind": "trust", **with_whole_query(each)} for each in _of(wire["trust"], [run.name])]
    entries += [{"kind": "flag", **flag, "evidence": flag["evidence"][:QUOTES]} for flag in flags]
    (of_run,) = [each for each in wire["runs"] if each["name"] == run.name]
    head = {key: of_run[key] for key in ("name", "score_name", "score", "n_tasks", "n_rollouts")}
    head["levels"] = _levels(wire, run.name)
    counts = [number_format.count(n, level) for level, n in head["levels"]["trust"].items()]
    page = paged(entries, question, dict, _health_entry)
    intro = [para(f"{', '.join(counts)}. An alarm means that the score cannot be used as it is.")]
    return listed(question, f"Health of {line(run.name, 120)}", head, "entries", page, intro)


def _health_entry(entry: dict[str, Any]) -> tuple[Block, ...]:
    if entry["kind"] == "trust":
        label = f", label {entry['label']}" if entry["label"] else ""
        fix = f"\nFix: {entry['fix']}" if entry["fix"] else ""
        # the sentence repeats words of rows, so it stands in a fence
        block = Quote((number_format.count(entry["rows"], "rollout"),), lines(entry["text"] + fix))
        return (Heading((f"{entry['level']}{label}",)), block)
    return (
        Heading((f"{entry['level']}: ", Code(line(entry["flag"], 60)))),
        Quote((f"n = {entry['n']:,}",), lines(entry["text"])),
        *(quote(place) for place in entry["evidence"]),
    )


def quote(evidence: dict[str, Any]) -> Block:
    """A quotation under the place where it stands."""
    where = ("task ", Code(line(row_addresses.place(evidence["task"], evidence["repeat"]), 80)))
    if evidence["quote"] is None:
        return para(*where, ", a row that is not there.")
    step: tuple[Any, ...] = (", field ", Code(line(evidence["field"] or "", 80)))
    if evidence["step"] is not None:
        step = (f", step {evidence['step']}",)
    return Quote((*where, *step), quoted(evidence["quote"], row_addresses.QUOTE))


# -- queries ----------------------------------------------------------------------------------------


def query(house: House, question: Any) -> Answer:
    """One measure, or one SELECT over the tables of a run."""
    from blade.pipeline import run_tables
    from blade.query import query_process

    loaded = house.loaded(question.runs)
    if not loaded:
        raise UsageError("no run was named", "give runs as blade_list_runs lists them", "no-such-run")
    ground = run_tables.ground_of(loaded, question.pass_threshold, house.watcher)
    outcome = query_process.raised(query_process.ask(ground, [question.query])[0])
    columns, rows = outcome.table()
    document: dict[str, Any] = {
        "query": question.query,
        "columns": list(columns),
        "rows": [list(row) for row in rows[:ROWS]],
        "n_rows": len(rows),
        "truncated": outcome.is_cut or len(rows) > ROWS,
        "notes": list(outcome.notes),
    }
    answers = outcome.answers or ()
    if len(answers) == 1 and answers[0].group is None:
        names = ("value", "low", "high", "n", "unit", "method")
        document |= {name: getattr(answers[0], name) for name in names}
        document |= {"tasks": list(answers[0].tasks[:ROWS])} if answers[0].tasks else {}
    blocks: list[Block] = [para(Code(line(question.query, 400)))]
    if rows:
        body = tuple(cells(*map(_cell, row)) for row in rows[:ROWS])
        blocks.append(Table(tuple(line(name, 80) for name in columns), body, "l" * len(columns)))
    else:
        blocks.append(para("No row."))
    if len(rows) > ROWS:
        blocks.append(para(f"{len(rows) - ROWS:,} more rows: narrow the query, or count instead of listing."))
    return answer(question, "Query", document, [*blocks, *(para(line(note, 400)) for note in outcome.notes)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else line(str(value), 300)


def fields(house: House, question: Any) -> Answer:
    """Every field of the rows of a run, and what it is by how its values behave."""
    from blade.pipeline import run_tables
    from blade.query.query_ground import Table as Rows

    loaded = house.loaded([question.run] if question.run else [])
    if not loaded:
        raise UsageError("no run was named", "give run as blade_list_runs lists it", "no-such-run")
    ground = run_tables.ground_of(loaded[:1], None, house.watcher)
    names = ("path", "column", "role", "type", "presence", "distinct", "example")
    columns = ", ".join(f'"{name}"' for name in names)
    rows = ground.ask(f"select {columns} from fields order by role, path")
    assert isinstance(rows, Rows)
    entries = [dict(zip(names, row, strict=True)) for row in rows.rows if question.role in (None, row[2])]

    def laid_out(entry: dict[str, Any]) -> tuple[Block, ...]:
        head = ("Field", "Role", "Type", "Rows", "Distinct", "Example")
        return (Table(head, (cells(*(_cell(entry[name]) for name in names if name != "column")),), "lllrrl"),)

    page = paged(entries, question, lambda entry: entry, laid_out)
    return listed(question, "Fields", {"run": loaded[0].name}, "fields", page)


# -- comparisons and claims -------------------------------------------------------------------------


def compare(house: House, question: Any) -> Answer:
    """Is the change real, and what moved it, in terms that add up."""
    from blade import pipeline
    from blade.pipeline import comparing
    from blade.pipeline.session import depends_on

    refuse_threshold(question.pass_threshold)
    loaded = house.loaded([question.baseline, *question.candidates])
    if len({run.name for run in loaded}) < len(loaded):
        loaded = pipeline.load(house.specs([question.baseline, *question.candidates]), house.watcher)
    if len(loaded) < 2:
        raise UsageError("a comparison takes two runs", "name another run among the candidates", "one-run")
    settings = f"compare {question.margin} {question.series} {question.pass_threshold}"
    key = depends_on(loaded, settings) or settings
    report = house.once(
        ("compare", key, *(run.name for run in loaded)),
        lambda: comparing.compare(
            loaded, "blade mcp", threshold=question.pass_threshold, margin=question.margin, ordered=question.series,
            watcher=house.watcher,
        ),
    )  # fmt: skip
    if question.format == "markdown":
        from blade.report.comparison_screen import compare_text

        names = ", ".join(line(run.name, 60) for run in report.runs[:4])
        page = Quote(("As ", Code("blade compare"), " tells it"), compare_text(report))
        return answer(question, f"Comparison of {names}", {}, [page])
    scores = [{"name": run.name, "score_name": run.score_name, "score": run.score} for run in report.runs]
    compared = [_short(report_json.values(each)) for each in report.comparisons]
    series = report_json.values(report.series)
    return answer(question, "", {"runs": scores, "comparisons": compared, "series": series}, [])


def _short(comparison: dict[str, Any]) -> dict[str, Any]:
    """A comparison with the first entries of its long lists."""
    whole = ("tests", "bridge")
    return {
        key: cut(value, TERMS) if isinstance(value, list) and key not in whole else _first(value)
        for key, value in comparison.items()
    }


def _first(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _first(item) for key, item in value.items()}
    return value[: TERMS * 5] if isinstance(value, list) else value


def check_claims(house: House, question: Any) -> Answer:
    """Check a report: what is wrong, what cannot be verified, what names no source."""
    from blade.check import check_findings, checked, world_for

    refuse_threshold(question.pass_threshold)
    report, world = _report(house, question), None
    if question.runs:
        world = world_for(report, house.specs(question.runs), house.watcher, question.pass_threshold)
    findings, names = checked(report, world), list(world.rows.runs) if world is not None else []
    problems = json.loads(check_findings.as_json(check_findings.problems(findings)))["findings"]
    page = paged(problems, question, dict, _problem)
    head = {"against": names, "counts": check_findings.counts(findings)}
    against = ", ".join(line(name, 60) for name in names) or "nothing but itself; name runs to check it by"
    intro = [para(f"Checked against {against}: {check_findings.summary(findings, bool(names))}.")]
    return listed(question, "Check of a report", head, "problems", page, intro)


def _report(house: House, question: Any) -> str:
    """The text of the report that is given, or of the file that is named."""
    from blade.check.json_reports import claims_file, with_claims

    if (question.report is None) == (question.path is None):
        hint = "give its text as `report`, or its `path`"
        raise UsageError("there is no one report to check", hint, "usage")
    if question.report is not None:
        if not question.report.strip():
            raise UsageError("the report is empty", "give Markdown or JSON", "usage")
        return str(question.report)
    path = roots.file_of(house.roots, question.path or "")
    try:
        if path.stat().st_size > REPORT:
            raise Unreadable(f"{path.name} is too large for a report", "give a part of it", "unreadable-file")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        why = f"cannot read {path.name}: {error.strerror}"
        raise Unreadable(why, "check it", "unreadable-file") from error
    except UnicodeDecodeError as error:
        hint = "give Markdown or JSON in UTF-8"
        raise Unreadable(f"{path.name} is no text", hint, "unreadable-file") from error
    return with_claims(text, path) if house.roots.holds(str(claims_file(path))) else text


def _problem(finding: dict[str, Any]) -> tuple[Block, ...]:
    expected = f" Expected {line(str(finding['expected']), 200)}." if finding["expected"] else ""
    why = line(finding["why"] or f"{finding['verdict']}: {finding['printed']}", 400).rstrip(".")
    return (
        Heading((f"{finding['verdict']}, {finding['kind']}, line {finding['line']}",)),
        para(*prose(f"{why[:1].upper()}{why[1:]}.{expected}")),
        Quote(("The report says",), quoted(finding["text"], 400)),
    )
