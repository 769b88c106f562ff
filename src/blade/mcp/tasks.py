"""Tell which tasks fail and why: a table of tasks, and what the detectors found."""

from __future__ import annotations

from typing import Any

from blade.hostile import line
from blade.mcp import arguments
from blade.mcp.answers import MOST, Answer, cut, listed, paged
from blade.mcp.house import House, key_of
from blade.mcp.overview import QUOTES, one_table, quotes
from blade.report import places, words
from blade.report.sections import Block, Code, Heading, Line, Table, cells, para, prose
from blade.report.wire import document as wired


def tasks(house: House, asked: arguments.Tasks) -> Answer:
    """The tasks of a run with their outcomes; of failed ones the cause."""
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
    intro = [para(f"Tasks{only}. Lost is in points of score. blade_dossier tells all there is of one task.")]
    return listed(asked, f"Tasks of {line(run.name, 120)}", head, "tasks", page, intro, one_table)


def _task(one: dict[str, Any]) -> dict[str, Any]:
    cause = one["attribution"]
    brief = None
    if cause:
        brief = {**cause, "evidence": cause["evidence"][:QUOTES]}
    return {**one, "repeats": cut(one["repeats"], MOST), "attribution": brief}


def _table(one: dict[str, Any]) -> Table:
    cause = one["attribution"]
    passed = words.NONE if one["passed"] is None else f"{one['passed']} of {one['n']}"
    about: tuple[str | Line, ...] = ("", "", "", "")
    if cause:
        about = (
            cause["cause"],
            f"{cause['confidence']:.2f}",
            f"{cause['lost'] * 100:.2f}" if cause.get("lost") is not None else words.NONE,
            (Code(line(cause["mechanism"].replace("`", ""), 200)),),  # words of rows and of judges
        )
    row = cells(
        Code(line(one["task"], 80)),
        Code(line(one["task_name"], 80)),
        one["bucket"] or words.NONE,
        passed,
        *about,
    )
    header = ("Task", "Name", "Bucket", "Passed", "Cause", "Confidence", "Lost", "What happened")
    return Table(header, (row,), "lllrlrrl")


def findings(house: House, asked: arguments.Findings) -> Answer:
    """What detectors found in the rollouts of a run, with quotations."""
    session, run = house.session(asked)
    wire = wired(session.report)
    found = [one for one in wire["findings"] if one["run"] == run.name and one["severity"] >= asked.severity]
    if asked.task is not None:
        key = key_of(session, run, asked.task)
        found = [one for one in found if one["task"] == key]
    if asked.detector is not None:
        found = [one for one in found if one["detector"] == asked.detector]
    if asked.cause is not None:
        found = [one for one in found if one["cause"] == asked.cause]
    found.sort(key=lambda one: -one["severity"])
    names = sorted({one["detector"] for one in wire["findings"] if one["run"] == run.name})
    page = paged(found, asked, lambda one: {**one, "evidence": one["evidence"][:QUOTES]}, _finding)
    intro = [
        para(
            "The gravest first. Detectors that found something in this run: ", ", ".join(names) or "none", "."
        )
    ]
    head = {"run": run.name, "detectors": names}
    return listed(asked, f"Findings of {line(run.name, 120)}", head, "findings", page, intro)


def _finding(one: dict[str, Any]) -> tuple[Block, ...]:
    where = Code(line(places.place(one["task"], one["repeat"]), 80))
    about = f", severity {one['severity']}, {one['confidence']}, speaks for {one['cause']}"
    return (
        Heading((Code(line(one["detector"], 60)), " in task ", where, about)),
        para(*prose(line(one["summary"], 600))),
        *quotes(one["evidence"]),
    )
