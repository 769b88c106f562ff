"""Whatever two runs hold: the terms of every view add up to the change, and exchanging the runs turns every sign and moves no digit."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.compare import compare
from blade.model import OTHER, Side
from tests.compare.builders import side
from tests.compare.test_bridge import TABLE, score
from tests.compared import Said, assert_adds_up, assert_mirrored, settled, turned

# Tasks of p are the same in both runs; those of q may be modified; those of r are expected of both.
KEYS = [f"{letter}{digit}" for letter in "pqr" for digit in "1234"]
MODES = {"i": TABLE[0], "t": TABLE[3], "w": TABLE[4], "o": ("undetermined", OTHER)}  # of a row that loses points
GRADES = {"1": 1.0, "i": 0.0, "t": 0.25, "w": 0.3, "o": 0.1}
SLICES = {"letter": {key: key[0] for key in KEYS}, "digit": {key: key[1] for key in KEYS if key[1] in "12"}}
place = st.tuples(st.sampled_from(KEYS), st.integers(0, 3))
places = st.lists(place, max_size=20, unique=True)
reports = st.dictionaries(place, st.sampled_from([0.1, 1.0, 2.5, 7.3]), max_size=30)
RUNS = st.fixed_dictionaries(
    {
        "rows": st.dictionaries(st.sampled_from(KEYS), st.text("1itwo", min_size=1, max_size=4), min_size=1),
        "is_modified": st.booleans(),
        "flags": st.fixed_dictionaries(dict.fromkeys(("errored", "timed out", "truncated"), places)),
        "behaviours": st.dictionaries(st.sampled_from("abc"), places, max_size=3),
        "signatures": st.dictionaries(st.sampled_from("xyz"), places, max_size=3),
        "effort": st.fixed_dictionaries({"turns": reports, "output_tokens": reports}),
    }
)


def run(name: str, content: dict[str, Any], is_graded: bool, shows_more: bool) -> Side:
    """A run of these rows; where it shows no more, its name and its rows are all that it has."""
    rows = {"p0": "1w"} | content["rows"]
    there = {(key, repeat) for key, letters in rows.items() for repeat in range(len(letters))}
    modes = {place: MODES[rows[place[0]][place[1]]] for place in there if rows[place[0]][place[1]] != "1"}
    more: dict[str, Any] = {}
    if shows_more:
        for field in ("flags", "behaviours", "signatures"):
            more[field] = {word: [place for place in shown if place in there] for word, shown in content[field].items()}
        more["effort"] = {
            word: {place: value for place, value in values.items() if place in there}
            for word, values in content["effort"].items()
        }
    outcomes: dict[str, Any] = {
        key: [GRADES[letter] for letter in letters] if is_graded else "".join("01"[letter == "1"] for letter in letters)
        for key, letters in rows.items()
    }
    gold = {key: f"{name} {key}" if content["is_modified"] and key[0] == "q" else key for key in rows}
    slices = {field: {key: label for key, label in labels.items() if key in rows} for field, labels in SLICES.items()}
    return side(
        name, outcomes, modes=modes, table=TABLE, slices=slices, fingerprints={"expected_answer": gold},
        expected={f"r{digit}": 2 for digit in "1234"}, **more,
    )  # fmt: skip


def wire(a: Side, b: Side) -> Said:
    return dict(json.loads(msgspec.json.encode(compare(a, b))))


@settings(max_examples=100, deadline=None)
@given(RUNS, RUNS, st.booleans(), st.sampled_from([("a", "b"), ("b", "a"), ("a", "a")]))
def test_views_add_up_and_exchanging_the_runs_turns_every_sign(
    first: dict[str, Any], second: dict[str, Any], is_graded: bool, names: tuple[str, str]
) -> None:
    a, b = (run(name, each, is_graded, len({*names}) > 1) for name, each in zip(names, (first, second), strict=True))
    there, back = wire(a, b), wire(b, a)
    exact, other = settled(turned(there)), settled(back)
    assert exact["derived"] == other["derived"]
    if a.run == b.run:
        return  # runs of one name and the same scores are told apart by nothing
    if not there["refused"]:
        assert there["delta"] == pytest.approx(score(b) - score(a), abs=1e-9)
        assert_adds_up(there)
    assert_mirrored(there, back)
    for part in ("churn", "sure", "transitions", "shifts"):
        assert exact[part] == other[part], part
    for flip, twin in zip(exact["flips"], other["flips"], strict=True):
        better, worse = flip.pop("p_better"), twin.pop("p_better")
        assert flip == twin
        assert better == (None if worse is None else pytest.approx(worse, abs=1e-12))
