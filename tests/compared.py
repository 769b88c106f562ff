"""Comparisons as tests read them: written pairs, JSON, and what an exchange of the runs must say."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from blade.tables.index import Silent
from tests.builders import Row, make_rows, make_run
from tests.conftest import Blade
from tools.planted.planted_runs import PlantedPair, write_pair

Said = dict[str, Any]
Pairs = Callable[..., PlantedPair]
Compared = Callable[..., Said]


def some_slow(causes: Iterable[str], *quick: str) -> list[Any]:
    """All causes; those that are not named repeat the claim on more data."""
    return [cause if cause in quick else pytest.param(cause, marks=pytest.mark.slow) for cause in causes]


def written(folders: pytest.TempPathFactory) -> Pairs:
    """A planted pair by cause, each written once."""

    @cache
    def write(cause: str, seed: int = 5) -> PlantedPair:
        return write_pair(folders.mktemp("pair"), cause, seed=seed, n_tasks=40, repeats=3, effect=1.0)

    return write


def by_json(blade: Blade) -> Compared:
    """The JSON of `blade compare`."""

    def run(*arguments: object) -> Said:
        said = blade("compare", "--json", *arguments)
        assert said.code == 0, said.err
        return dict(json.loads(said.out, parse_constant=lambda name: pytest.fail(f"{name} on the wire")))

    return run


def without_claims(blade: Blade) -> Compared:
    """The JSON of `blade compare` without its claims, which are much of its work; with options it is asked."""
    from blade import pipeline
    from blade.pipeline import comparing
    from blade.report import report_json

    def run(*arguments: object) -> Said:
        specs = [str(argument) for argument in arguments]
        if len({*specs}) < 2 or any(spec.startswith("-") for spec in specs):
            return by_json(blade)(*specs)
        loaded = pipeline.load(specs, Silent())
        report = pipeline.with_digests(comparing.compare(loaded, "blade compare"), loaded)
        told = json.dumps(report_json.document(report), allow_nan=False)
        return dict(json.loads(told))

    return run


def only(document: Said) -> Said:
    (found,) = document["comparisons"]
    return dict(found)


def drawn(seed: int, n_tasks: int, repeats: int, rate: float = 0.6, **changed: Any) -> list[Row]:
    """Rows of tasks that pass now and then."""
    rng = random.Random(seed)
    rewards = {task: [float(rng.random() < rate) for _ in range(repeats)] for task in range(n_tasks)}
    return make_rows(rewards, **changed)


def two_runs(folder: Path, one: list[Row], two: list[Row]) -> tuple[str, str]:
    """The arguments for two runs with names that say nothing of their roles."""
    return f"one={make_run(folder / 'one', one)}", f"two={make_run(folder / 'two', two)}"


def screen(said: str) -> list[str]:
    lines = said.rstrip("\n").split("\n")
    assert said.endswith("\n")
    assert len(lines) <= 40
    assert max(map(cell_len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    return lines


def assert_adds_up(one: Said) -> None:
    """Every view sums to the change, with an interval around each term."""
    for name, terms in [("bridge", one["bridge"]), *((view["name"], view["terms"]) for view in one["views"])]:
        assert math.fsum(term["value"] for term in terms) == pytest.approx(one["delta"], abs=1e-9), name
        for term in terms:
            assert term["low"] - 1e-9 <= term["value"] <= term["high"] + 1e-9, (name, term)


# -- exchanged ------------------------------------------------------------------------------------

PAIRED = (
    "improved|regressed, added tasks|removed tasks, tasks the candidate lost|tasks the baseline lost, "
    "all other gains|all other losses, appeared|disappeared, more|less"
)
TURNED = {word: other for pair in PAIRED.split(", ") for word, other in permutations(pair.split("|"))}
SWAPPED = [
    pair.split("|")
    for pair in "baseline|candidate score_baseline|score_candidate common_baseline|common_candidate "
    "missing_baseline|missing_candidate added|removed sigma2_a|sigma2_b before|after n_up|n_down up|down null_up|null_down".split()
]
NEGATED = ("delta", "delta_common", "value", "change", "estimate", "expected")
BOUNDS = [("low", "high"), ("low90", "high90")]


def minus(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


def word(text: str) -> str:
    """A term, a verdict or a status as the exchanged comparison says it."""
    key, colon, values = text.partition(": ")
    first, arrow, second = values.partition(" → ")
    return f"{key}: {second} → {first}" if colon and arrow else TURNED.get(text, text)


def turned(one: Any) -> Any:
    """What a comparison must say with baseline and candidate exchanged."""
    if isinstance(one, list):
        return [turned(part) for part in one]
    if not isinstance(one, dict):
        return one
    out = {key: turned(value) for key, value in one.items()}
    for a, b in SWAPPED:
        if a in out and b in out:
            out[a], out[b] = out[b], out[a]
    out |= {key: minus(one[key]) for key in NEGATED if isinstance(one.get(key), float | int)}
    for low, high in BOUNDS:
        if low in one:
            out[low], out[high] = minus(one[high]), minus(one[low])
    for key in ("term", "verdict", "verdict_new_tasks", "status"):
        if isinstance(one.get(key), str):
            out[key] = word(one[key])
    if "gains" in one:
        out["gains"], out["losses"] = minus(one["losses"]), minus(one["gains"])
    if one.get("p_better") is not None:
        out["p_better"] = 1 - one["p_better"]
    if "classes" in one:
        out["classes"] = one["classes"][::-1]
    if str(one.get("name")).startswith("McNemar"):
        out["name"] = re.sub(r"(\d+) up and (\d+) down", r"\2 up and \1 down", one["name"])
    return out


def settled(one: Said) -> Said:
    """A comparison without the order of its terms, and with sentences as the words they are made of."""
    out = dict(one)
    for name in ("bridge", "transitions"):
        out[name] = sorted(one[name], key=lambda part: json.dumps([part.get("term"), part.get("before"), part.get("after")]))
    out["views"] = [{**view, "terms": sorted(view["terms"], key=lambda term: term["term"])} for view in one["views"]]
    out["notes"] = [words(note) for note in one["notes"]]
    out["movers"] = [{**mover, "text": words(mover["text"])} for mover in one["movers"]]
    out["refused"] = words(one["refused"] or "")
    out["missing_run"] = bool(one["missing_run"])
    out["config_diff"] = json.loads(re.sub(r", [\d,]+ the same", "", json.dumps(one["config_diff"])))  # told of the candidate
    return out


def words(text: str) -> Counter[str]:
    """The words of a sentence, in any order, signs and directions aside."""
    for one, other in (("took", "gave"), ("removed", "added"), ("baseline", "candidate")):
        text = text.replace(one, other)
    return Counter(re.findall(r"[\w.]*\w", text))


def assert_same(found: Any, wanted: Any, where: str = "") -> None:
    """Equal, numbers to 1e-9."""
    if isinstance(wanted, dict) and not isinstance(wanted, Counter):
        assert set(found) == set(wanted), where
        for key in wanted:
            assert_same(found[key], wanted[key], f"{where}.{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_same(one, other, f"{where}[{at}]")
    elif isinstance(wanted, float) and isinstance(found, float | int):
        assert found == pytest.approx(wanted, abs=1e-9), where
    else:
        assert found == wanted, where


def assert_mirrored(one: Said, other: Said) -> None:
    assert_same(settled(other), settled(turned(one)))
