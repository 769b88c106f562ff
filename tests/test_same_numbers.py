"""One question, many exits: commands, MCP tools, Python, files and pages give the same numbers."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import blade
from blade.agent.queue import WRONG, WRONG_UNDETERMINED
from blade.model import Confidence
from blade.query.comments import unescape_comment
from blade.report.blocks import agrees
from tests.builders import Row, make_run
from tests.exit_numbers import (
    AFTER,
    BEFORE,
    EXITS,
    KINDS,
    LOOKUPS,
    OF_CAUSE,
    OF_QUEUE,
    Numbers,
    World,
    files,
)  # fmt: skip
from tests.test_vocabulary import acting
from tools.planted import write_run


def lookups() -> list[Row]:
    """Half of the rollouts of each task call `find` and pass, but for every fifth."""
    tried = [(task, repeat) for task in range(12) for repeat in range(4)]
    return [acting(task, at, at < 2, float(at < 2 and (task + at) % 5 > 0)) for task, at in tried]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("same")
    faults = ("provider_errors:4", "lost_rows:2", "failed_rows:1")
    write_run(place / "results", name="before", n_tasks=16, faults=faults)
    write_run(
        place / "results", name="after", n_tasks=16, seed=3, model="sim-model-b", rates=[0.9, 0.7, 0.5, 1.0]
    )
    make_run(place / "results", lookups(), name="lookups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(place / "cache"))
        patch.chdir(place)
        found = World(place, place / "out", place / "out-lookups")
        for cause in blade.load(BEFORE).attributions()[:2]:
            quote = next(one for one in cause.evidence if one.step is not None)
            other = "KG" if cause.cause != "KG" else "BI"
            found.told(
                "label", BEFORE, cause.task, "--cause", other, "--repeat", quote.repeat, "--step", quote.step,
                "--quote", quote.quote, "--mechanism", "It does not know what is asked of it.", "--by", "ann",
            )  # fmt: skip
        found.told("diagnose", BEFORE, "-o", found.report)
        found.told("compare", BEFORE, AFTER, "-o", found.report)
        found.told("diagnose", LOOKUPS, "-o", found.lookups)
        yield found


@pytest.fixture(scope="module")
def said(world: World) -> dict[str, Numbers]:
    return {name: read(world) for name, read in EXITS.items()}


def kind_of(numbers: Numbers, kind: str) -> Numbers:
    return {key: value for key, value in numbers.items() if key[0] == kind}


def apart(said: Mapping[str, Numbers], kind: str) -> list[str]:
    """Where exits differ in a kind of number, or do not have one that another has."""
    first, *others = sorted(KINDS[kind])
    told = kind_of(said[first], kind)
    found = [] if told else [f"{first} gives no {kind}"]
    for other in others:
        beside = kind_of(said[other], kind)
        for key in sorted({*told, *beside}, key=repr):
            if key not in told or key not in beside or told[key] != beside[key]:
                found.append(f"{key}: {first} {told.get(key)!r}, {other} {beside.get(key)!r}")
    return found


# ---- They say the same ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_exit_gives_the_same_numbers(said: dict[str, Numbers], kind: str) -> None:
    assert not apart(said, kind)


def test_no_exit_and_no_kind_is_left_out(said: dict[str, Numbers]) -> None:
    assert set().union(*KINDS.values()) == set(EXITS) == set(said)
    assert {key[0] for numbers in said.values() for key in numbers} == set(KINDS)


def test_the_run_has_several_causes_and_judgements(said: dict[str, Numbers]) -> None:
    causes = {key[2] for key in kind_of(said["files"], "loss")}
    assert len(causes) >= 3
    assert sum(value[3] == "ann" for value in kind_of(said["files"], "cause").values()) == 2
    assert len(kind_of(said["files"], "term")) >= 3


def test_a_gain_is_identified_and_another_is_not(said: dict[str, Numbers]) -> None:
    gains = kind_of(said["files"], "gain")
    (lookup,) = [value for key, value in gains.items() if key[1] == "lookups"]
    low, point, high, level, most = lookup
    assert 0 < low < point < high <= most
    assert level == 0.95
    assert all(len(value) == 1 for key, value in gains.items() if key[1] == "before")


def test_values_of_the_queue_come_from_the_report(said: dict[str, Numbers]) -> None:
    causes = {
        key[2]: dict(zip(OF_CAUSE, value, strict=True))
        for key, value in kind_of(said["files"], "cause").items()
    }
    waiting = [
        dict(zip(OF_QUEUE, value, strict=True)) for value in kind_of(said["commands"], "queue").values()
    ]
    assert waiting
    for one in waiting:
        cause = causes[one["task"]]
        assert (one["cause"], one["lost"]) == (cause["cause"], cause["lost"])
        is_open = one["cause"] == "undetermined"
        wrong = WRONG_UNDETERMINED if is_open else WRONG[Confidence(one["confidence"])]
        assert one["value"] == pytest.approx(one["lost"] * wrong, abs=1e-15)
    rates = [one["value"] / one["tokens"] for one in waiting]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("exit", "kind"), [(name, kind) for kind, exits in KINDS.items() for name in sorted(exits)]
)
def test_one_number_that_drifts_is_seen(said: dict[str, Numbers], exit: str, kind: str) -> None:
    drifted = deepcopy(said)
    key = min(kind_of(drifted[exit], kind), key=repr)
    drifted[exit][key] = nudged(drifted[exit][key])
    assert apart(drifted, kind)
    left_out = deepcopy(said)
    del left_out[exit][key]
    assert apart(left_out, kind)


def nudged(value: Any) -> Any:
    """The least change: the next number, or another word."""
    if isinstance(value, list):
        at = next((at for at, one in enumerate(value) if isinstance(one, float)), 0)
        return [*value[:at], nudged(value[at]), *value[at + 1 :]]
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    return value + 1 if isinstance(value, int) else f"{value}."


def test_a_file_that_was_touched_is_seen(world: World, said: dict[str, Numbers], tmp_path: Path) -> None:
    for name in ("report.json", "compare.json"):
        (tmp_path / name).write_text(world.read(name), encoding="utf-8")
    path = tmp_path / "report.json"
    wire = json.loads(path.read_text(encoding="utf-8"))
    next(one for one in wire["measures"] if one["name"] == "pass_at_1")["high"] += 1e-9
    path.write_text(json.dumps(wire), encoding="utf-8")
    touched = {**said, "files": files(World(world.place, tmp_path, world.lookups))}
    assert apart(touched, "measure")
    assert not apart(touched, "loss")


# ---- Pages: what is printed, at the precision of print -------------------------------------------

DATA = re.compile(r'<data class="n" value="([^"]*)" title="([^"]*)">(.*?)</data>', re.DOTALL)


def misprinted(page: str, wire: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    """The numbers of a page that are no claims of its JSON or print another value; and the queries of the others."""
    claims = {(one["query"], one["text"]): one["value"] for one in wire["claims"]}
    wrong: list[str] = []
    right: set[str] = set()
    for _, title, shown in DATA.findall(page):
        query, text = unescape_comment(html.unescape(title)), html.unescape(re.sub("<[^>]*>", "", shown))
        value = claims.get((query, text))
        if value is None or not agrees(text, value):
            wrong.append(f"{query}: {value} as {text}")
        right.add(query)
    return wrong, right


@pytest.mark.parametrize(("page", "wire"), [("report.html", "report.json"), ("compare.html", "compare.json")])
def test_pages_print_what_their_json_has(world: World, page: str, wire: str) -> None:
    wrong, right = misprinted(world.read(page), json.loads(world.read(wire)))
    assert not wrong
    assert len(right) > 40


def test_the_page_prints_score_buckets_losses_and_groups(world: World) -> None:
    _, right = misprinted(world.read("report.html"), json.loads(world.read("report.json")))
    assert {f"pass_at_1{part} where run = 'before'" for part in ("", ".low", ".high", ".n")} <= right
    for start in (
        "select count(*) from tasks", "engine.losses(", "engine.groups(", "engine.unexplained(",
        "engine.recommendations(",
    ):  # fmt: skip
        assert any(query.startswith(start) for query in right), start


@pytest.mark.parametrize("printed", ["62.0%", "46.6%"])
def test_a_page_that_was_touched_is_seen(world: World, printed: str) -> None:
    page, wire = world.read("report.html"), json.loads(world.read("report.json"))
    assert printed in page
    assert misprinted(page.replace(printed, "61.9%"), wire)[0]


def measure(wire: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    (found,) = (one for one in wire["measures"] if (one["name"], one["slice"]) == (name, None))
    return dict(found)


def headline(wire: Mapping[str, Any]) -> list[Any]:
    score, (run,) = measure(wire, "pass_at_1"), wire["runs"]
    counts = (run["outcomes"]["passed"], run["n_rollouts"])
    return [score["value"], *counts, score["low"], score["high"], run["n_tasks"], run["repeats"]]


def lost(wire: Mapping[str, Any]) -> list[Any]:
    """Points, failures and passes of each group, then points and failures that nothing explains."""
    groups = [(one["points"], one["rows"], one["passed_rows"]) for one in wire["groups"]]
    return [
        100 * value if at == 0 else value
        for row in [*groups, *((one["points"], one["rows"]) for one in wire["unexplained"])]
        for at, value in enumerate(row)
    ]


# What the terminal prints -> what report.json or compare.json has.
PRINTED: dict[str, Callable[[Any], list[Any]]] = {
    r"^`sim-model-a` \(`before`\): (\S+%) passed on average over tasks \((\d+) of (\d+) rollouts,"
    r"\s95% CI (\S+%)\sto\s(\S+%)\); (\d+) tasks, (\d+) tries each$": headline,
    r"^.{27} *(\d+\.\d)  .* (\d+) failures?(?: +(\d+) passe?s?)?$": lost,
}
CHANGED: dict[str, Callable[[Any], list[Any]]] = {
    r"^Change +(\S+ points) of pass@1: (\S+%) → (\S+%), (\d+) tasks in common": lambda wire: [
        wire["comparisons"][0]["delta"],
        wire["comparisons"][0]["score_baseline"],
        wire["comparisons"][0]["score_candidate"],
        wire["comparisons"][0]["alignment"]["common"]["n"],
    ],
}


def off_screen(
    screen: str, wire: Mapping[str, Any], printed: Mapping[str, Callable[[Any], list[Any]]]
) -> list[str]:
    """What a terminal does not show as the JSON has it."""
    wrong = []
    for pattern, values in printed.items():
        hits = re.finditer(pattern, screen, re.MULTILINE)
        shown = [part for hit in hits for part in hit.groups() if part is not None]
        if len(shown) != len(values(wire)) or not all(map(agrees, shown, values(wire))):
            wrong.append(f"{pattern}: {shown} for {values(wire)}")
    return wrong


def test_the_terminal_prints_what_the_report_has(world: World) -> None:
    wire, screen = json.loads(world.read("report.json")), world.told("diagnose", BEFORE)
    assert not off_screen(screen, wire, PRINTED)
    assert off_screen(screen.replace("62.0%", "62.1%", 1), wire, PRINTED)
    assert off_screen(screen.replace("8 failures  0 passes", "9 failures  0 passes"), wire, PRINTED)


def test_the_terminal_prints_the_change_as_it_is(world: World) -> None:
    wire, screen = json.loads(world.read("compare.json")), world.told("compare", BEFORE, AFTER)
    assert not off_screen(screen, wire, CHANGED)
    assert off_screen(screen.replace("+27.1", "+27.2", 1), wire, CHANGED)
    (change,) = wire["comparisons"]
    assert change["verdict"].upper() in screen
    bridge = " ".join(screen.partition("Bridge")[2].partition("\n\n")[0].split())
    terms = {term["term"]: 100 * term["value"] for term in change["bridge"] if abs(term["value"]) > 1e-9}
    parts = re.fullmatch(r"(.+?)(?:, (\d+) smaller (\S+))? = (\S+) points", bridge)
    assert parts is not None
    shown, n_left, left, total = parts.groups("0")
    printed = [part.rpartition(" ") for part in re.split(r"(?<=\.\d), ", shown)]
    for name, _, value in printed:
        (term,) = [term for term in terms if term.startswith(name.rstrip("…"))]
        assert agrees(value, terms.pop(term))
    assert int(n_left) == len(terms)
    assert agrees(left, math.fsum(terms.values()))
    assert agrees(total, 100 * change["delta"])


def test_the_summary_is_one_text_at_every_exit(world: World) -> None:
    from blade.agent.mcp.roots import House, roots
    from blade.agent.mcp.tool_table import called

    screen = world.told("diagnose", BEFORE)
    assert blade.load(BEFORE).report().summary() == screen
    told = called(House(roots(["results"])), "blade_summary", {"run": BEFORE}).text
    assert [line for line in screen.splitlines() if line.strip() and line not in told] == []


def test_our_own_page_holds_at_every_exit_that_checks(world: World) -> None:
    from blade.agent.mcp.roots import House, roots
    from blade.agent.mcp.tool_table import called

    page = str(world.report / "report.md")
    command = json.loads(world.told("check", page, "--run", BEFORE, "--json"))
    assert command["counts"]["supported"] > 150
    assert (command["counts"]["contradicted"], command["counts"]["uncited"]) == (0, 0)
    assert blade.load(BEFORE).check(page).to_dict() == command
    answer = called(
        House(roots(["."])), "blade_check_claims", {"path": page, "runs": [BEFORE], "format": "json"}
    )
    assert answer.document is not None
    assert answer.document["counts"] == command["counts"]
