"""Attacks on the judge: every one stays below its limit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from blade.package import calibration as own
from blade.package.package_queries import worlds_of
from blade.package.report_score import Bench, Case, bench, judged
from blade.tables.index import Silent
from tests.package.attacks import ATTACKS, WORSE, Material
from tests.package.test_judge import office

Desk = tuple[Case, Bench]
SAMPLED = ("desk", "scripted_hasty")


def material(held: Case, seat: Bench) -> Material:
    ours, others = held.ours, held.others or ("another-model",)
    pairs = tuple(others[number % len(others)] for number in range(len(ours)))
    return Material(held.golden, tuple(seat.known.keys), ours, pairs, held.shallow)


PAIRS = [(model, name) for model in SAMPLED for name in (*ATTACKS, *WORSE)]
IDIOM = ("scripted_hasty", "denied: ")  # one attack in many words


@pytest.mark.parametrize(("model", "name"), [pair for pair in PAIRS if (pair[0], pair[1][:8]) != IDIOM])
def test_an_attack_stays_below_its_limit(desk: Desk, model: str, name: str) -> None:
    held, seat = desk if model == "desk" else office(model)
    attack, limit = (ATTACKS | WORSE)[name]
    text = attack(material(held, seat))
    if text == held.golden:
        pytest.skip("it changes nothing here")
    limit = limit if name in ATTACKS else judged(held.golden, seat).score - limit
    score = judged(text, seat).score
    assert score <= limit


@pytest.mark.parametrize("name", own.ATTACKS)
def test_the_battery_of_calibrate_stays_below_a_quarter(name: str) -> None:
    held, seat = office("scripted_hasty")  # the desk is calibrated by the command itself
    assert judged(own.ATTACKS[name](held, 1), seat).score <= 0.25


def test_pasted_facts_are_found_and_still_no_report(desk: Desk) -> None:
    """Eleven lines that state the anchors: recall is high, and there is no evidence beside it."""
    held, seat = office("scripted_hasty")
    lines = "\n".join(f"- {anchor.fact}" for anchor in held.anchors[:11])
    for head in ("", "# Report\n\n## Findings\n\n", f"{held.shallow}\n\n## Findings\n\n"):
        score = judged(f"{head}{lines}\n", seat)
        assert score.recall > 0.8
        assert score.score <= 0.25


# -- other rollouts under the same report -----------------------------------------------------------


def flipped(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Copies in which every second task or so has its rewards turned round."""
    folder.mkdir()
    for path in paths:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            if sha256(str(row["_ng_task_index"]).encode()).digest()[0] % 2:
                row["reward"] = 1 - row["reward"]
        (folder / path.name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        shutil.copyfile(path.parent / "blade.toml", folder / "blade.toml")
    return [folder / path.name for path in paths]


@pytest.mark.parametrize("kind", ["flipped rewards", "another model's rollouts"])
def test_a_true_report_on_other_rollouts_loses(tmp_path: Path, cache: Path, kind: str) -> None:
    held, seat = office("scripted_hasty")
    if kind == "flipped rewards":
        paths = flipped(held.rollouts, tmp_path / "flipped")
    else:
        paths = [tmp_path / held.rollouts[0].name]
        shutil.copyfile(held.beside[0], paths[0])
        shutil.copyfile(held.beside[0].parent / "blade.toml", tmp_path / "blade.toml")
    worlds = worlds_of(paths, held.beside, Silent())
    other = bench(worlds, held.golden, held.anchors, held.shallow, held.ours, held.others)
    assert judged(held.golden, seat).score - judged(held.golden, other).score >= 0.3
