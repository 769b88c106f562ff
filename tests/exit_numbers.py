"""What each exit says of the same two runs, as numbers that can be held against one another."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import blade
from blade.cli.main import cli

BEFORE, AFTER = "results/before.jsonl", "results/after.jsonl"
LOOKUPS = "results/lookups.jsonl"  # whose gain can be estimated
TASKS = ("8", "14")  # whose dossiers are asked for

Key = tuple[Any, ...]
Numbers = dict[Key, Any]  # the kind of number, then what tells it from others -> its value

# Every kind of number, and the exits that must give all of it.
ALL = {"files", "commands", "python", "mcp"}
KINDS: dict[str, set[str]] = {
    "measure": ALL,
    "measure of a slice": ALL - {"mcp"},
    "bucket": ALL,
    "task": ALL,
    "loss": ALL,
    "trust": ALL,
    "group": ALL,
    "unexplained": ALL,
    "cause": ALL,
    "gain": ALL,
    "agreement": ALL,
    "judgement": ALL,
    "queue": ALL - {"files"},
    "dossier": ALL - {"files"},
    "change": ALL,
    "term": ALL,
    "test": ALL,
}
BUCKETS = ("always", "sometimes", "never", "missing")
MEASURED = ("value", "n", "unit", "low", "high", "method")
OF_TASK = ("n", "passed", "rate", "mean_reward", "shrunk", "low", "high", "bucket", "p_bucket")
OF_TRUST = ("level", "label", "rows")
OF_GROUP = ("label", "confidence", "points", "rows", "tasks", "passed_rows", "most")
OF_CAUSE = ("cause", "confidence", "lost", "judged_by", "proposed", "proposed_confidence", "repeat", "step")
OF_CHANGE = (
    "delta",
    "verdict",
    "verdict_new_tasks",
    "margin",
    "score_baseline",
    "score_candidate",
    "delta_common",
    "refused",
)
OF_TERM = ("value", "low", "high", "p", "n")
OF_TEST = ("p", "estimate", "low", "high")
OF_QUEUE = ("task", "bucket", "cause", "confidence", "lost", "value", "tokens")


@dataclass(frozen=True)
class World:
    """A judged run, another one beside it, and what was written of them."""

    place: Path
    report: Path  # the folder that `diagnose -o` and `compare -o` wrote
    lookups: Path  # the folder that `diagnose -o` wrote of LOOKUPS

    def told(self, *arguments: object) -> str:
        """What a command prints."""
        done = CliRunner().invoke(cli, [str(word) for word in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    def read(self, name: str) -> str:
        return (self.report / name).read_text(encoding="utf-8")


def plain(value: Any) -> Any:
    """As JSON has it: no tuples, no words of a closed vocabulary, no number that is none."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def picked(one: Any, names: tuple[str, ...]) -> list[Any]:
    """Fields of a JSON object, or of a row."""
    return [plain(one[name] if isinstance(one, Mapping) else getattr(one, name)) for name in names]


def of_report(wire: Mapping[str, Any]) -> Numbers:
    """The numbers of report.json."""
    found: Numbers = {}
    for one in wire["measures"]:
        found |= measured(one)
    for one in wire["buckets"]:
        found |= {("bucket", one["run"], name): len(one[name]) for name in BUCKETS}
    for one in wire["tasks"]:
        found["task", one["run"], one["task"]] = picked(one, OF_TASK)
    for one in wire["losses"]:
        found["loss", one["run"], one["cause"], one["mode"]] = one["lost"]
    for one in wire["trust"]:
        found["trust", one["run"], one["text"]] = picked(one, OF_TRUST)
    for one in wire["groups"]:
        found["group", one["run"], one["id"]] = [*picked(one, OF_GROUP), *gained(one["gain"])]
    for one in wire["unexplained"]:
        found["unexplained", one["run"]] = picked(one, ("points", "rows"))
    for one in wire["attributions"]:
        found["cause", one["run"], one["task"]] = picked(one, OF_CAUSE)
    found |= of_gains(wire["recommendations"])
    for one in wire["agreements"]:
        found["agreement", one["run"], one["first"], one["second"]] = picked(one, ("n", "agreed", "kappa"))
    for one in wire["judgements"]:
        found["judgement", one["task"], one["by"]] = picked(one, ("cause", "proposed"))
    return found


def of_gains(wire: Iterable[Mapping[str, Any]]) -> Numbers:
    return {("gain", one["run"], one["rank"]): [*gained(one["gain"]), plain(one["most"])] for one in wire}


def gained(gain: Any) -> list[Any]:
    """A gain with its interval; nothing where it cannot be estimated."""
    return [] if gain is None else picked(gain, ("low", "point", "high", "level"))


def measured(one: Any) -> Numbers:
    run, name, k, part = picked(one, ("run", "name", "k", "slice"))
    kind = "measure" if part is None else "measure of a slice"
    return {(kind, run, name, k, part): picked(one, MEASURED)}


def of_comparisons(wire: list[Mapping[str, Any]]) -> Numbers:
    """The numbers of compare.json."""
    found: Numbers = {}
    for one in wire:
        pair = (one["baseline"], one["candidate"])
        found["change", *pair] = [*picked(one, OF_CHANGE), one["mde"]]
        found |= {
            ("term", *pair, at, term["term"]): picked(term, OF_TERM) for at, term in enumerate(one["bridge"])
        }
        found |= {
            ("test", *pair, test["question"], test["name"]): picked(test, OF_TEST) for test in one["tests"]
        }
    return found


def of_queue(wire: list[Mapping[str, Any]]) -> Numbers:
    return {("queue", at): picked(one, OF_QUEUE) for at, one in enumerate(wire)}


def files(world: World) -> Numbers:
    """report.json and compare.json as they were written."""
    report, change = json.loads(world.read("report.json")), json.loads(world.read("compare.json"))
    lookups = json.loads((world.lookups / "report.json").read_text(encoding="utf-8"))
    return of_report(report) | of_comparisons(change["comparisons"]) | of_gains(lookups["recommendations"])


def commands(world: World) -> Numbers:
    """What the commands print with --json."""
    report = json.loads(world.told("diagnose", BEFORE, "--json"))
    change = json.loads(world.told("compare", BEFORE, AFTER, "--json"))
    queue = json.loads(world.told("queue", BEFORE, "--most", 0, "--json"))
    dossiers: Numbers = {("dossier", task): world.told("show", BEFORE, task, "--dossier") for task in TASKS}
    found = of_report(report) | of_comparisons(change["comparisons"]) | of_queue(queue["waiting"]) | dossiers
    return found | of_gains(json.loads(world.told("diagnose", LOOKUPS, "--json"))["recommendations"])


def python(world: World) -> Numbers:
    """What rows have as attributes in Python."""
    run = blade.load(BEFORE)
    change = run.compare(AFTER)
    pair = (change.baseline, change.candidate)
    found: Numbers = {}
    for measure in run.measures():
        found |= measured(measure)
    for row in run.buckets():
        found |= {("bucket", row.run, name): len(getattr(row, name)) for name in BUCKETS}
    found |= {("task", row.run, row.task): picked(row, OF_TASK) for row in run.tasks()}
    found |= {("loss", row.run, str(row.cause), row.mode): row.lost for row in run.losses()}
    for cause in run.attributions():
        # an author that is nobody is no author on the wire
        found["cause", cause.run, cause.task] = [
            None if told == "" else told for told in picked(cause, OF_CAUSE)
        ]
    found |= {("trust", row.run, row.text): picked(row, OF_TRUST) for row in run.trust()}
    for group in run.groups():
        found["group", group.run, group.id] = [*picked(group, OF_GROUP), *gained(group.gain)]
    found |= {("unexplained", row.run): picked(row, ("points", "rows")) for row in run.unexplained()}
    for advice in (*run.recommendations(), *blade.load(LOOKUPS).recommendations()):
        found["gain", advice.run, advice.rank] = [*gained(advice.gain), plain(advice.most)]
    for both in run.agreements():
        found["agreement", both.run, both.first, both.second] = picked(both, ("n", "agreed", "kappa"))
    found |= {("judgement", row.task, row.by): picked(row, ("cause", "proposed")) for row in run.judgements()}
    found |= {("queue", at): picked(row, OF_QUEUE) for at, row in enumerate(run.queue(most=None))}
    found |= {("dossier", task): run.dossier(task).text for task in TASKS}
    found["change", *pair] = [*picked(change.details, OF_CHANGE), change.mde]
    found |= {
        ("term", *pair, at, term.term): picked(term, OF_TERM) for at, term in enumerate(change.bridge())
    }
    found |= {("test", *pair, test.question, test.name): picked(test, OF_TEST) for test in change.tests()}
    return found


def mcp(world: World) -> Numbers:
    """What the tools of the server answer."""
    from blade.agent.mcp.roots import House, roots
    from blade.agent.mcp.tool_table import called

    house = House(roots(["results"]))

    def asked(tool: str, **given: Any) -> dict[str, Any]:
        answer = called(house, tool, {"format": "json", **given})
        assert answer.document is not None
        return answer.document

    def all_of(tool: str, key: str) -> list[dict[str, Any]]:
        page = asked(tool, run=BEFORE)
        found = list(page[key])
        while page["has_more"]:
            page = asked(tool, run=BEFORE, offset=page["next_offset"])
            found += page[key]
        return found

    summary = asked("blade_summary", run=BEFORE)
    for part in ("losses", "trust", "groups", "unexplained"):
        assert summary[part]["n"] == len(summary[part]["first"])
    tasks = all_of("blade_tasks", "tasks")
    wire = {
        "measures": summary["measures"],
        "buckets": [],
        "tasks": tasks,
        **{part: summary[part]["first"] for part in ("losses", "trust", "groups", "unexplained")},
        "attributions": [one["attribution"] for one in tasks if one["attribution"]],
        "recommendations": summary["recommendations"],
        "agreements": asked("blade_judgements", run=BEFORE)["agreements"],
        "judgements": all_of("blade_judgements", "judgements"),
    }
    found = of_report(wire) | of_gains(asked("blade_summary", run=LOOKUPS)["recommendations"])
    for one in summary["buckets"]:
        found |= {("bucket", one["run"], name): n for name, n in one.items() if name != "run"}
    found |= of_queue(all_of("blade_queue", "waiting"))
    found |= {("dossier", task): asked("blade_dossier", run=BEFORE, task=task)["text"] for task in TASKS}
    return found | of_comparisons(asked("blade_compare", baseline=BEFORE, candidates=[AFTER])["comparisons"])


# An exit is added here, and in KINDS to what it must give.
EXITS: dict[str, Callable[[World], Numbers]] = {
    "files": files,
    "commands": commands,
    "python": python,
    "mcp": mcp,
}
