"""List the tasks of a run with their causes, and its failure groups with their quotations."""

from __future__ import annotations

from typing import Any

from blade import number_format
from blade.agent.mcp import arguments
from blade.agent.mcp.answers import MOST, TEXT, Answer, cut, listed, paged
from blade.agent.mcp.house import House, key_of
from blade.agent.mcp.overview import QUOTES, one_table, quote, with_whole_query
from blade.hostile import line, lines
from blade.report.blocks import Block, Code, Heading, Line, Quote, Table, cells, para
from blade.report.report_json import document as wired


def tasks(house: House, asked: arguments.Tasks) -> Answer:
    """List the tasks of a run with their outcomes, and the cause of each that failed."""
    session, run = house.session(asked)
    wire = wired(session.report)
    causes = {one["task"]: one for one in wire["attributions"] if one["run"] == run.name}
    found = [
        {**one, "attribution": causes.get(one["task"])} for one in wire["tasks"] if one["run"] == run.name
    ]
    if asked.bucket is not None:
        found = [one for one in found if one["bucket"] == asked.bucket]
    if asked.cause is not None:
        found = [one for one in found if one["attribution"] and one["attribution"]["cause"] == asked.cause]
    head = {"run": run.name, "bucket": asked.bucket, "cause": asked.cause}
    page = paged(found, asked, _task, lambda one: (_table(one),))
    only = "".join(f", {name} {value}" for name, value in head.items() if value and name != "run")
    intro = [para(f"Tasks{only}. Lost is in points of score. blade_dossier gives all evidence on one task.")]
    return listed(asked, f"Tasks of {line(run.name, 120)}", head, "tasks", page, intro, one_table)


def _task(one: dict[str, Any]) -> dict[str, Any]:
    cause = one["attribution"]
    brief = None
    if cause:
        brief = {**cause, "evidence": cause["evidence"][:QUOTES]}
    return {**one, "repeats": cut(one["repeats"], MOST), "attribution": brief}


def _table(one: dict[str, Any]) -> Table:
    cause = one["attribution"]
    passed = number_format.NONE if one["passed"] is None else f"{one['passed']} of {one['n']}"
    about: tuple[str | Line, ...] = ("", "", "", "")
    if cause:
        about = (
            cause["cause"],
            cause["confidence"],
            f"{cause['lost'] * 100:.2f}" if cause.get("lost") is not None else number_format.NONE,
            (Code(line(cause["text"].replace("`", ""), 200)),),  # words of rows and of judges
        )
    row = cells(
        Code(line(one["task"], 80)),
        Code(line(one["task_name"], 80)),
        one["bucket"] or number_format.NONE,
        passed,
        *about,
    )
    header = ("Task", "Name", "Bucket", "Passed", "Cause", "Confidence", "Lost", "What happened")
    return Table(header, (row,), "lllrllrl")


def groups(house: House, asked: arguments.Groups) -> Answer:
    """List the failure groups of a run, the largest first, and what no group explains."""
    session, run = house.session(asked)
    wire = wired(session.report)
    found = [one for one in wire["groups"] if one["run"] == run.name]
    if asked.label is not None:
        found = [one for one in found if one["label"] == asked.label]
    if asked.task is not None:
        cause = session.facts[run.name].attribution.get(key_of(session, run, asked.task))
        found = [one for one in found if cause is not None and one["id"] == cause.group]
    (rest,) = [one for one in wire["unexplained"] if one["run"] == run.name] or [None]
    head = {
        "run": run.name,
        "label": asked.label,
        "task": asked.task,
        "unexplained": rest and with_whole_query(rest),
    }
    page = paged(found, asked, with_whole_query, _group)
    intro = [para(f"Groups cover the lost points, the largest first. {_left(rest)}")]
    return listed(asked, f"Failure groups of {line(run.name, 120)}", head, "groups", page, intro)


def _left(rest: dict[str, Any] | None) -> str:
    if rest is None:
        return "Nothing was diagnosed."
    return f"Unexplained: {100 * rest['points']:.1f} points, {number_format.count(rest['rows'], 'failure')}."


def _group(group: dict[str, Any]) -> tuple[Block, ...]:
    size = f"{100 * group['points']:.1f} points, {number_format.count(group['rows'], 'failure')} in "
    size += f"{number_format.count(group['tasks'], 'task')}, {number_format.count(group['passed_rows'], 'pass', 'passes')} with it"
    # names and sentences repeat words of rows, so they stand in fences
    said = [group["name"], group["text"], f"Label {group['label']}: {group['why_label']}."]
    said += [f"Against it: {'; '.join(group['against'])}."] if group["against"] else []
    said += [f"Fix: {group['fix']}", f"Examples: {', '.join(group['examples'])}"]
    blocks: list[Block] = [
        Heading((f"{group['id']}: {group['label']}, {group['confidence']}",)),
        para(f"{size}."),
        Quote(("What it is",), lines("\n".join(said))),
    ]
    if group["quote"] is not None:
        blocks.append(quote({"step": None, "field": None, **group["quote"], "quote": group["quote"]["text"]}))
    if len(group["query"]) <= TEXT:
        blocks.append(Quote(("Its rows, for blade_query",), lines(group["query"])))
    return tuple(blocks)
