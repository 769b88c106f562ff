"""One question, many exits: commands, MCP tools, Python, files and pages give the same numbers."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import blade
from blade.agent.mcp.roots import House, roots
from blade.agent.mcp.server import called
from blade.agent.queue import WRONG, WRONG_UNDETERMINED
from blade.cli.main import cli
from blade.model import Confidence
from blade.query.comments import unescape_comment
from blade.report.blocks import agrees
from tests.builders import make_run
from tests.case_tables import tables
from tests.test_vocabulary import acting
from tools.planted import write_run

BEFORE, AFTER = "results/before.jsonl", "results/after.jsonl"
LOOKUPS = "results/lookups.jsonl"  # whose gain can be estimated
TASKS = ("8", "14")  # whose dossiers are asked for

Key = tuple[Any, ...]
Numbers = dict[Key, Any]  # the kind of number, then what tells it from others -> its value

# List of a report -> the kind of its numbers, what tells its entries apart, the numbers of an entry.
LISTS: dict[str, list[str]] = tables(__file__)["report_numbers"]
OF_CHANGE = "delta verdict verdict_new_tasks margin score_baseline score_candidate delta_common refused mde"
BUCKETS = ("always", "sometimes", "never", "missing")
# Every kind of number, and the exits that must give all of it.
ALL = {"files", "commands", "python", "mcp"}
KINDS = {
    **{kind: ALL for kind, _, _ in LISTS.values()}, "measure of a slice": ALL - {"mcp"}, "bucket": ALL, "queue": ALL - {"files"},
    "dossier": ALL - {"files"}, "change": ALL, "term": ALL, "test": ALL,
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """A judged run, another one beside it, and what was written of them."""

    place: Path
    report: Path  # the folder that `diagnose -o` and `compare -o` wrote
    lookups: Path  # the folder that `diagnose -o` wrote of LOOKUPS

    def output(self, *arguments: object) -> str:
        """What a command prints."""
        done = CliRunner().invoke(cli, [str(word) for word in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    def wire(self, name: str, folder: str = "report") -> Any:
        return json.loads((getattr(self, folder) / name).read_text(encoding="utf-8"))


def picked(row: Any, names: str) -> list[Any]:
    """Fields of a JSON object, or of a row, as JSON has them: no words of a closed vocabulary, no number that is none."""
    values = [row[name] if isinstance(row, Mapping) else getattr(row, name) for name in names.split()]
    return [plain(value) for value in values]


def plain(value: Any) -> Any:
    if value is None or value == "" or (isinstance(value, float) and not math.isfinite(value)):
        return None  # an author that is nobody is no author on the wire
    if isinstance(value, bool | int | float):
        return value
    is_gain = hasattr(value, "point") or (isinstance(value, Mapping) and "point" in value)
    return picked(value, "low point high level") if is_gain else str(value)


def of_report(rows_of: Callable[[str], Iterable[Any]]) -> Numbers:
    numbers: Numbers = {}
    for name, (kind, keys, fields) in LISTS.items():
        for row in rows_of(name):
            key = picked(row, keys)
            of_slice = " of a slice" if name == "measures" and key[3] is not None else ""
            numbers[kind + of_slice, *key] = picked(row, fields)
    return numbers


def of_buckets(rows: Iterable[Any]) -> Numbers:
    parts = (({"run": row.run} | {name: getattr(row, name) for name in BUCKETS}) if not isinstance(row, Mapping) else row for row in rows)
    return {("bucket", row["run"], name): n if isinstance(n := row[name], int) else len(n) for row in parts for name in BUCKETS}


def of_change(pair: tuple[str, str], change: Any, terms: Iterable[Any], tests: Iterable[Any]) -> Numbers:
    numbers: Numbers = {("change", *pair): picked(change, OF_CHANGE)}
    numbers |= {("term", *pair, place, *picked(term, "term")): picked(term, "value low high p n") for place, term in enumerate(terms)}
    return numbers | {("test", *pair, *picked(test, "question name")): picked(test, "p estimate low high") for test in tests}


def of_wire(report: Any, change: Any, lookups: Any) -> Numbers:
    """The numbers of report.json and compare.json."""
    (pair,) = change["comparisons"]
    numbers = of_report(report.__getitem__) | of_buckets(report["buckets"])
    numbers |= of_report(lambda name: lookups[name] if name == "recommendations" else ())
    return numbers | of_change((pair["baseline"], pair["candidate"]), pair, pair["bridge"], pair["tests"])


def of_queue(rows: Iterable[Any]) -> Numbers:
    names = "task bucket cause confidence lost value tokens"
    return {("queue", place): picked(row, names) for place, row in enumerate(rows)}


def files(world: World) -> Numbers:
    """report.json and compare.json as they were written."""
    return of_wire(world.wire("report.json"), world.wire("compare.json"), world.wire("report.json", "lookups"))


def commands(world: World) -> Numbers:
    """What the commands print with --json."""
    asked = (("diagnose", BEFORE), ("compare", BEFORE, AFTER), ("diagnose", LOOKUPS), ("queue", BEFORE, "--most", 0))
    report, change, lookups, queue = (json.loads(world.output(*words, "--json")) for words in asked)
    dossiers = {("dossier", task): world.output("show", BEFORE, task, "--dossier") for task in TASKS}
    return of_wire(report, change, lookups) | of_queue(queue["waiting"]) | dossiers


def python(world: World) -> Numbers:
    """What rows have as attributes in Python."""
    run = blade.load(BEFORE)
    change = run.compare(AFTER)
    numbers = of_report(lambda name: getattr(run, name)()) | of_buckets(run.buckets())
    numbers |= of_report(lambda name: blade.load(LOOKUPS).recommendations() if name == "recommendations" else ())
    numbers |= of_queue(run.queue(most=None)) | {("dossier", task): run.dossier(task).text for task in TASKS}
    details = {name: getattr(change, name) for name in OF_CHANGE.split() if hasattr(change, name)}
    details |= {name: getattr(change.details, name) for name in OF_CHANGE.split() if hasattr(change.details, name)}
    return numbers | of_change((change.baseline, change.candidate), details, change.bridge(), change.tests())


def mcp(world: World) -> Numbers:
    """What the tools of the server answer."""
    house = House(roots(["results"]))

    def asked(tool: str, **arguments: Any) -> dict[str, Any]:
        document = called(house, f"blade_{tool}", {"format": "json", **arguments}).document
        assert document is not None
        return document

    def all_of(tool: str, key: str) -> list[dict[str, Any]]:
        page = asked(tool, run=BEFORE)
        rows = list(page[key])
        while page["has_more"]:
            page = asked(tool, run=BEFORE, offset=page["next_offset"])
            rows += page[key]
        return rows

    summary, tasks = asked("summary", run=BEFORE), all_of("tasks", "tasks")
    parts = ("losses", "trust", "groups", "unexplained")
    assert all(summary[part]["n"] == len(summary[part]["first"]) for part in parts)
    wire = {
        **{part: summary[part]["first"] for part in parts}, "measures": summary["measures"], "buckets": summary["buckets"],
        "tasks": tasks, "attributions": [task["attribution"] for task in tasks if task["attribution"]],
        "recommendations": summary["recommendations"], "agreements": asked("judgements", run=BEFORE)["agreements"],
        "judgements": all_of("judgements", "judgements"),
    }  # fmt: skip
    change = asked("compare", baseline=BEFORE, candidates=[AFTER])
    dossiers = {("dossier", task): asked("dossier", run=BEFORE, task=task)["text"] for task in TASKS}
    return of_wire(wire, change, asked("summary", run=LOOKUPS)) | of_queue(all_of("queue", "waiting")) | dossiers


# An exit is added here, and in KINDS to what it must give.
EXITS: dict[str, Callable[[World], Numbers]] = {"files": files, "commands": commands, "python": python, "mcp": mcp}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("same")
    faults = ("provider_errors:4", "lost_rows:2", "failed_rows:1")
    write_run(place / "results", name="before", n_tasks=16, faults=faults)
    write_run(place / "results", name="after", n_tasks=16, seed=3, model="sim-model-b", rates=[0.9, 0.7, 0.5, 1.0])
    # half of the rollouts of each task call `find` and pass, but for every fifth
    tries = product(range(12), range(4))
    lookups = [acting(task, repeat, repeat < 2, float(repeat < 2 and (task + repeat) % 5 > 0)) for task, repeat in tries]
    make_run(place / "results", lookups, name="lookups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(place / "cache"))
        patch.chdir(place)
        world = World(place, place / "out", place / "out-lookups")
        for cause in blade.load(BEFORE).attributions()[:2]:
            quote = next(evidence for evidence in cause.evidence if evidence.step is not None)
            world.output(
                "label", BEFORE, cause.task, "--cause", "KG" if cause.cause != "KG" else "BI", "--repeat", quote.repeat, "--step",
                quote.step, "--quote", quote.quote, "--mechanism", "It does not know what is asked of it.", "--by", "ann",
            )  # fmt: skip
        world.output("diagnose", BEFORE, "-o", world.report)
        world.output("compare", BEFORE, AFTER, "-o", world.report)
        world.output("diagnose", LOOKUPS, "-o", world.lookups)
        yield world


@pytest.fixture(scope="module")
def answers(world: World) -> dict[str, Numbers]:
    return {name: read(world) for name, read in EXITS.items()}


def kind_of(numbers: Numbers, kind: str) -> Numbers:
    return {key: value for key, value in numbers.items() if key[0] == kind}


def apart(answers: Mapping[str, Numbers], kind: str) -> list[str]:
    """Where exits differ in a kind of number, or do not have one that another has."""
    first, *others = sorted(KINDS[kind])
    stated = kind_of(answers[first], kind)
    differences = [] if stated else [f"{first} gives no {kind}"]
    for other in others:
        beside = kind_of(answers[other], kind)
        for key in sorted({*stated, *beside}, key=repr):
            if key not in stated or key not in beside or stated[key] != beside[key]:
                differences.append(f"{key}: {first} {stated.get(key)!r}, {other} {beside.get(key)!r}")
    return differences


@pytest.mark.parametrize("kind", KINDS)
def test_every_exit_gives_the_same_numbers_and_one_that_drifts_is_seen(answers: dict[str, Numbers], kind: str) -> None:
    assert not apart(answers, kind)
    for name in KINDS[kind]:
        key = min(kind_of(answers[name], kind), key=repr)
        drifted = {**answers[name], key: nudged(answers[name][key])}
        assert apart({**answers, name: drifted}, kind)
        del drifted[key]
        assert apart({**answers, name: drifted}, kind)


def nudged(value: Any) -> Any:
    """The least change: the next number, or another word."""
    if isinstance(value, list):
        place = next((place for place, part in enumerate(value) if isinstance(part, float)), 0)
        return [*value[:place], nudged(value[place]), *value[place + 1 :]]
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    return value + 1 if isinstance(value, int) else f"{value}."


def test_the_runs_have_something_of_everything(answers: dict[str, Numbers]) -> None:
    assert {key[0] for numbers in answers.values() for key in numbers} == set(KINDS)
    written = answers["files"]
    assert len({key[2] for key in kind_of(written, "loss")}) >= 3
    assert sum(value[3] == "ann" for value in kind_of(written, "cause").values()) == 2
    assert len(kind_of(written, "term")) >= 3
    gains = kind_of(written, "gain")
    (((low, point, high, level), most),) = [value for key, value in gains.items() if key[1] == "lookups"]
    assert 0 < low < point < high <= most
    assert level == 0.95
    assert all(value[0] is None for key, value in gains.items() if key[1] == "before")


def test_values_of_the_queue_come_from_the_report(answers: dict[str, Numbers]) -> None:
    causes = {key[2]: value for key, value in kind_of(answers["files"], "cause").items()}
    waiting = list(kind_of(answers["commands"], "queue").values())
    assert waiting
    for task, _, cause, confidence, lost, value, _ in waiting:
        assert [cause, lost] == [causes[task][0], causes[task][2]]
        wrong = WRONG_UNDETERMINED if cause == "undetermined" else WRONG[Confidence(confidence)]
        assert value == pytest.approx(lost * wrong, abs=1e-15)
    rates = [value / tokens for *_, value, tokens in waiting]
    assert rates == sorted(rates, reverse=True)


def misprinted(page: str, wire: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    """The numbers of a page that are no claims of its JSON or print another value; and the queries of the others."""
    claims = {(claim["query"], claim["text"]): claim["value"] for claim in wire["claims"]}
    wrong: list[str] = []
    right: set[str] = set()
    for title, shown in re.findall(r'<data class="n" value="[^"]*" title="([^"]*)">(.*?)</data>', page, re.DOTALL):
        query, text = unescape_comment(html.unescape(title)), html.unescape(re.sub("<[^>]*>", "", shown))
        value = claims.get((query, text))
        if value is None or not agrees(text, value):
            wrong.append(f"{query}: {value} as {text}")
        right.add(query)
    return wrong, right


@pytest.mark.parametrize("name", ["report", "compare"])
def test_pages_print_what_their_json_has(world: World, name: str) -> None:
    page, wire = (world.report / f"{name}.html").read_text(encoding="utf-8"), world.wire(f"{name}.json")
    wrong, right = misprinted(page, wire)
    assert (wrong, len(right) > 40) == ([], True)
    if name == "report":
        assert {f"pass_at_1{part} where run = 'before'" for part in ("", ".low", ".high", ".n")} <= right
        for start in ("select count(*) from tasks", *(f"engine.{name}(" for name in "losses groups unexplained recommendations".split())):
            assert any(query.startswith(start) for query in right), start
        for printed in ("62.0%", "46.6%"):
            assert printed in page
            assert misprinted(page.replace(printed, "61.9%"), wire)[0]


def headline(wire: Mapping[str, Any]) -> list[Any]:
    (score,), (run,) = [m for m in wire["measures"] if (m["name"], m["slice"]) == ("pass_at_1", None)], wire["runs"]
    counts = (run["outcomes"]["passed"], run["n_rollouts"])
    return [score["value"], *counts, score["low"], score["high"], run["n_tasks"], run["repeats"]]


def lost(wire: Mapping[str, Any]) -> list[Any]:
    """Points, failures and passes of each group, then points and failures that nothing explains."""
    groups = [[100 * group["points"], group["rows"], group["passed_rows"]] for group in wire["groups"]]
    rests = [[100 * rest["points"], rest["rows"]] for rest in wire["unexplained"]]
    return [value for row in (*groups, *rests) for value in row]


def changed(wire: Mapping[str, Any]) -> list[Any]:
    (pair,) = wire["comparisons"]
    return [*picked(pair, "delta score_baseline score_candidate"), pair["alignment"]["common"]["n"]]


# What the terminal prints -> what report.json or compare.json has.
PRINTED: dict[str, Callable[[Any], list[Any]]] = {
    r"^`sim-model-a` \(`before`\): (\S+%) passed on average over tasks \((\d+) of (\d+) rollouts,"
    r"\s95% CI (\S+%)\sto\s(\S+%)\); (\d+) tasks, (\d+) tries each$": headline,
    r"^.{27} *(\d+\.\d)  .* (\d+) failures?(?: +(\d+) passe?s?)?$": lost,
}
CHANGED = {r"^Change +(\S+ points) of pass@1: (\S+%) → (\S+%), (\d+) tasks in common": changed}


def off_screen(screen: str, wire: Mapping[str, Any], printed: Mapping[str, Callable[[Any], list[Any]]]) -> list[str]:
    """What a terminal does not show as the JSON has it."""
    wrong = []
    for pattern, values in printed.items():
        hits = re.finditer(pattern, screen, re.MULTILINE)
        shown = [part for hit in hits for part in hit.groups() if part is not None]
        if len(shown) != len(values(wire)) or not all(map(agrees, shown, values(wire))):
            wrong.append(f"{pattern}: {shown} for {values(wire)}")
    return wrong


def test_the_terminal_prints_what_report_and_comparison_have_and_the_summary_is_one_text(world: World) -> None:
    wire, screen = world.wire("report.json"), world.output("diagnose", BEFORE)
    assert not off_screen(screen, wire, PRINTED)
    for old, new in (("62.0%", "62.1%"), ("8 failures  0 passes", "9 failures  0 passes")):
        assert off_screen(screen.replace(old, new, 1), wire, PRINTED)
    assert blade.load(BEFORE).report().summary() == screen
    answer = called(House(roots(["results"])), "blade_summary", {"run": BEFORE}).text
    assert [line for line in screen.splitlines() if line.strip() and line not in answer] == []
    wire, screen = world.wire("compare.json"), world.output("compare", BEFORE, AFTER)
    assert not off_screen(screen, wire, CHANGED)
    assert off_screen(screen.replace("+27.1", "+27.2", 1), wire, CHANGED)
    assert wire["comparisons"][0]["verdict"].upper() in screen


def test_our_own_page_holds_at_every_exit_that_checks(world: World) -> None:
    page = str(world.report / "report.md")
    command = json.loads(world.output("check", page, "--run", BEFORE, "--json"))
    assert command["counts"]["supported"] > 150
    assert (command["counts"]["contradicted"], command["counts"]["uncited"]) == (0, 0)
    assert blade.load(BEFORE).check(page).to_dict() == command
    answer = called(House(roots(["."])), "blade_check_claims", {"path": page, "runs": [BEFORE], "format": "json"})
    assert answer.document is not None
    assert answer.document["counts"] == command["counts"]
