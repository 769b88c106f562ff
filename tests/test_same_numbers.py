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
from blade.planted import write_run
from blade.query.comments import unescape_comment
from blade.report.claims import agrees
from tests.exit_numbers import AFTER, BEFORE, EXITS, KINDS, OF_CAUSE, OF_QUEUE, Numbers, World, files


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("same")
    faults = ("provider_errors:4", "lost_rows:2", "failed_rows:1")
    write_run(place / "results", name="before", n_tasks=16, faults=faults)
    write_run(
        place / "results", name="after", n_tasks=16, seed=3, model="sim-model-b", rates=[0.9, 0.7, 0.5, 1.0]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(place / "cache"))
        patch.chdir(place)
        found = World(place, place / "out")
        for cause in blade.load(BEFORE).attributions()[:2]:
            quote = next(one for one in cause.evidence if one.step is not None)
            other = "KG" if cause.cause != "KG" else "BI"
            found.told(
                "label", BEFORE, cause.task, "--cause", other, "--repeat", quote.repeat, "--step", quote.step,
                "--quote", quote.quote, "--mechanism", "It does not know what is asked of it.", "--by", "ann",
            )  # fmt: skip
        found.told("diagnose", BEFORE, "-o", found.report)
        found.told("compare", BEFORE, AFTER, "-o", found.report)
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
        assert one["value"] in (one["lost"], pytest.approx(one["lost"] * (1 - one["confidence"]), abs=1e-15))
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
    touched = {**said, "files": files(World(world.place, tmp_path))}
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


def test_the_page_prints_score_buckets_losses_and_causes(world: World) -> None:
    _, right = misprinted(world.read("report.html"), json.loads(world.read("report.json")))
    assert {f"pass_at_1{part} where run = 'before'" for part in ("", ".low", ".high", ".n")} <= right
    for start in ("select count(*) from tasks", "engine.losses(", "engine.attributions("):
        assert any(query.startswith(start) for query in right), start


@pytest.mark.parametrize("printed", ["62.0%", "46.6%"])
def test_a_page_that_was_touched_is_seen(world: World, printed: str) -> None:
    page, wire = world.read("report.html"), json.loads(world.read("report.json"))
    assert printed in page
    assert misprinted(page.replace(printed, "61.9%"), wire)[0]


def measure(wire: Mapping[str, Any], name: str, k: int | None = None) -> list[Any]:
    (found,) = (one for one in wire["measures"] if (one["name"], one["k"], one["slice"]) == (name, k, None))
    return [found[part] for part in ("value", "low", "high", "n")]


def lost(wire: Mapping[str, Any], *causes: str) -> float:
    return math.fsum(one["lost"] for one in wire["losses"] if not causes or one["cause"] in causes)


# What the terminal prints -> what report.json or compare.json has.
PRINTED: dict[str, Callable[[Any], list[Any]]] = {
    r"^Score +(\S+%) \[(\S+%), (\S+%)\]  pass@1, n = (\d+) tasks": lambda wire: measure(wire, "pass_at_1"),
    r"^Repeats +pass@4 (\S+%) \[(\S+%), (\S+%)\]": lambda wire: measure(wire, "pass_at_k", 4)[:3],
    r"^Tasks +(\d+): (\d+) always, (\d+) sometimes, (\d+) never, (\d+) missing": lambda wire: [
        wire["runs"][0]["n_tasks"],
        *(len(wire["buckets"][0][name]) for name in ("always", "sometimes", "never", "missing")),
    ],
    r"^Lost +(\S+ points):": lambda wire: [lost(wire)],
    r"^Clean +clean pass@1 (\S+%) \[(\S+%), (\S+%)\], n = (\d+) tasks": lambda wire: measure(
        wire, "clean_pass_at_1"
    ),
    r"^Coverage +(\d+) expected = (\d+) scored \+ (\d+) failed \+ (\d+) masked \+ (\d+) lost": lambda wire: [
        wire["runs"][0][name] for name in ("expected_rollouts", "scored", "failed", "masked", "lost")
    ],
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
        hit = re.search(pattern, screen, re.MULTILINE)
        shown = hit.groups() if hit else ()
        if len(shown) != len(values(wire)) or not all(map(agrees, shown, values(wire))):
            wrong.append(f"{pattern}: {shown} for {values(wire)}")
    return wrong


def test_the_terminal_prints_what_the_report_has(world: World) -> None:
    wire, screen = json.loads(world.read("report.json")), world.told("diagnose", BEFORE)
    assert not off_screen(screen, wire, PRINTED)
    assert off_screen(screen.replace("62.0%", "62.1%", 1), wire, PRINTED)
    assert off_screen(re.sub(r"(\d+) never", "9 never", screen), wire, PRINTED)


def test_the_terminal_prints_the_change_as_it_is(world: World) -> None:
    wire, screen = json.loads(world.read("compare.json")), world.told("compare", BEFORE, AFTER)
    assert not off_screen(screen, wire, CHANGED)
    assert off_screen(screen.replace("+27.1", "+27.2", 1), wire, CHANGED)
    (change,) = wire["comparisons"]
    assert change["verdict"].upper() in screen
    bridge = " ".join(screen.partition("Bridge")[2].partition("\n\n")[0].split())
    terms = [100 * term["value"] for term in change["bridge"] if abs(term["value"]) > 1e-9]
    printed = re.findall(r"[+−-]\d+\.\d", bridge)
    assert len(printed) == len(terms) + 1
    assert all(map(agrees, printed, [*terms, 100 * change["delta"]]))


def test_the_summary_is_one_text_at_every_exit(world: World) -> None:
    from blade.mcp.house import House
    from blade.mcp.roots import roots
    from blade.mcp.tools import called

    screen = world.told("diagnose", BEFORE)
    assert blade.load(BEFORE).report().summary() == screen
    told = called(House(roots(["results"])), "blade_summary", {"run": BEFORE}).text
    assert [line for line in screen.splitlines() if line.strip() and line not in told] == []
