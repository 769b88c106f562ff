"""Answer what there is: the runs, the first page of one, and whether its score can be trusted."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from blade import number_format
from blade.agent.mcp import arguments, roots
from blade.agent.mcp.answers import TEXT, Answer, answer, cut, listed, paged
from blade.agent.mcp.house import House
from blade.errors import BladeError
from blade.hostile import line, lines, quoted
from blade.report import places, text
from blade.report.blocks import Block, Code, Heading, Quote, Table, cells, para
from blade.report.report_json import document as wired
from blade.report.report_json import number

QUOTES = 2  # quotations of one entry
SHOWN = 8  # recommendations and the like of a summary
LEVELS = ("alarm", "warning", "note")
FLAG_LEVELS = ("problem", "warning", "info")


def list_runs(house: House, asked: arguments.ListRuns) -> Answer:
    """The runs under the folders of the server, each with its rows and its score."""
    notes: list[str] = []
    found = roots.places(house.roots, notes.append)
    page = paged(
        found, asked, lambda place: _run(house, place), lambda place: (_runs_table([_run(house, place)]),)
    )
    intro = [para("Give the path or the name of a run to the other tools.")]
    intro += [para(line(note, 300)) for note in notes[:5]]
    if not found:
        intro.append(
            para("There is no rollouts file here. Start the server with a folder: blade mcp FOLDER.")
        )
    head = {"folders": [str(one) for one in house.roots.allowed], "notes": notes[:20]}
    return listed(asked, "Runs", head, "runs", page, intro, one_table)


def _run(house: House, place: roots.Place) -> dict[str, Any]:
    """A place with what its columns say; a file that cannot be read says why."""
    from blade import pipeline
    from blade.pipeline import pages

    try:
        roots.refuse_links(house.roots, place)
        loaded = pipeline.load(place.specs, house.watcher)
        report = pages.listed(loaded, [pages.scoring_of(one, None) for one in loaded], "")
    except BladeError as error:
        return {"run": place.id, "name": place.name, "error": error.message, "hint": error.hint, "runs": []}
    told = [
        {
            "name": run.name,
            "n_tasks": int(run.n_tasks),
            "n_rollouts": int(run.n_rollouts),
            "score_name": run.score_name,
            "score": number(run.score),
            "model": run.model,
        }
        for run in report.runs
    ]
    return {"run": place.id, "name": place.name, "error": None, "hint": None, "runs": told}


def _runs_table(told: list[dict[str, Any]]) -> Table:
    rows = []
    for place in told:
        for run in place["runs"] or [None]:
            if run is None:
                rows.append(
                    cells(Code(place["run"]), Code(place["name"]), "–", "–", line(place["error"], 200))
                )
                continue
            score = (
                "no score" if run["score"] is None else f"{run['score_name']} {number_format.number(run['score'])}"
            )
            counts = (f"{run['n_tasks']:,}", f"{run['n_rollouts']:,}")
            rows.append(cells(Code(place["run"]), Code(run["name"]), *counts, score))
    return Table(("Run", "Name", "Tasks", "Rollouts", "Score"), tuple(rows), "llrrl")


def one_table(blocks: tuple[tuple[Block, ...], ...]) -> tuple[Block, ...]:
    """The rows of many tables of one header under one header."""
    tables = [block for one in blocks for block in one if isinstance(block, Table)]
    return (Table(tables[0].header, tuple(row for one in tables for row in one.rows), tables[0].align),)


def summary(house: House, asked: arguments.Summary) -> Answer:
    """Give the first page of a run: score, trust, failure groups, what to fix first."""
    session, only = house.sessions(asked.run, asked.pass_threshold)
    if only is not None:
        session.run(only)  # an agent that is not there is refused
    report = replace(
        session.report, runs=tuple(run for run in session.report.runs if only in (None, run.name))
    )
    if asked.format == "markdown":
        named = ", ".join(run.name for run in report.runs)
        more = para("More: blade_tasks, blade_queue and blade_dossier, blade_groups, blade_health.")
        blocks = [
            Quote(
                (f"{number_format.count(len(report.runs), 'run')}, as ", Code("blade diagnose"), " prints it"),
                text.render(report),
            )
        ]
        return answer(asked, f"Summary of {line(named, 120)}", {}, [*blocks, more])
    wire = wired(report)
    names = [run["name"] for run in wire["runs"]]
    told = {
        "runs": [
            _without(run, "sources", "artifacts", "notes", "settings")
            for run in _of(wire["runs"], names, "name")
        ],
        "measures": [one for one in _of(wire["measures"], names) if one["slice"] is None],
        "buckets": [
            {key: value if key == "run" else len(value) for key, value in one.items()}
            for one in _of(wire["buckets"], names)
        ],
        # without their queries, which are long: blade_groups and blade_health have them
        **{
            part: cut([_without(one, "query") for one in _of(wire[part], names)], SHOWN)
            for part in ("trust", "groups", "unexplained")
        },
        "losses": cut(_of(wire["losses"], names)),
        "run_causes": [_brief(one) for one in _of(wire["run_causes"], names)[:SHOWN]],
        "recommendations": [_brief(one) for one in _of(wire["recommendations"], names)[:SHOWN]],
        "health": [_levels(wire, name) for name in names],
        "gaps": cut(wire["gaps"], SHOWN),
        "accuracy": {key: (wire["accuracy"] or {}).get(key) for key in ("date", "confidence")},
    }
    return answer(asked, "", told, [])


def _of(found: list[dict[str, Any]], names: list[str], key: str = "run") -> list[dict[str, Any]]:
    return [one for one in found if one.get(key, names[0]) in names]


def _without(one: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in keys}


def _brief(one: dict[str, Any]) -> dict[str, Any]:
    """A conclusion with few of its tasks and quotations."""
    found = {**one, "evidence": one["evidence"][:QUOTES]}
    return {**found, "tasks": cut(one["tasks"], SHOWN)} if "tasks" in one else found


def _levels(wire: dict[str, Any], name: str) -> dict[str, Any]:
    """Count what speaks against a score, and the flags on its columns, by level."""
    trust = [one["level"] for one in wire["trust"] if one["run"] == name]
    flags = [one["level"] for one in wire["health"] if one["run"] == name]
    return {
        "run": name,
        "trust": {level: trust.count(level) for level in LEVELS},
        "flags": {level: flags.count(level) for level in FLAG_LEVELS},
    }


def with_whole_query(entry: dict[str, Any]) -> dict[str, Any]:
    """Leave out a query that is too long for an answer: a part of it would give other rows."""
    return entry if len(entry["query"]) <= TEXT else {**entry, "query": None}


def health(house: House, asked: arguments.Health) -> Answer:
    """List what speaks against the score, then the flags on its columns, the gravest first."""
    session, run = house.session(asked)
    wire = wired(session.report)
    flags = sorted(_of(wire["health"], [run.name]), key=lambda flag: FLAG_LEVELS.index(flag["level"]))
    entries = [{"kind": "trust", **with_whole_query(one)} for one in _of(wire["trust"], [run.name])]
    entries += [{"kind": "flag", **flag, "evidence": flag["evidence"][:QUOTES]} for flag in flags]
    (told,) = _of(wire["runs"], [run.name], "name")
    head = {key: told[key] for key in ("name", "score_name", "score", "n_tasks", "n_rollouts")}
    head["levels"] = _levels(wire, run.name)
    counts = [number_format.count(n, level) for level, n in head["levels"]["trust"].items()]
    page = paged(entries, asked, dict, _health_entry)
    intro = [para(f"{', '.join(counts)}. An alarm means that the score cannot be used as it is.")]
    return listed(asked, f"Health of {line(run.name, 120)}", head, "entries", page, intro)


def _health_entry(entry: dict[str, Any]) -> tuple[Block, ...]:
    if entry["kind"] == "trust":
        label = f", label {entry['label']}" if entry["label"] else ""
        fix = f"\nFix: {entry['fix']}" if entry["fix"] else ""
        # the sentence repeats words of rows, so it stands in a fence
        said = Quote((number_format.count(entry["rows"], "rollout"),), lines(entry["text"] + fix))
        return (Heading((f"{entry['level']}{label}",)), said)
    return (
        Heading((f"{entry['level']}: ", Code(line(entry["flag"], 60)))),
        Quote((f"n = {entry['n']:,}",), lines(entry["text"])),
        *(quote(place) for place in entry["evidence"]),
    )


def quote(one: dict[str, Any]) -> Block:
    where = ("task ", Code(line(places.place(one["task"], one["repeat"]), 80)))
    if one["quote"] is None:
        return para(*where, ", a row that is not there.")
    step = (
        (f", step {one['step']}",) if one["step"] is not None else (", field ", Code(line(one["field"], 80)))
    )
    return Quote((*where, *step), quoted(one["quote"], places.QUOTE))
