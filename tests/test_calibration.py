"""Are verdicts and claimed causes as right as they say: a small form of `make calibration`, and that it can fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from blade import stats
from blade.compare.change_verdict import EQUIVALENT, IMPROVED, INCONCLUSIVE
from tests.compared import some_slow
from tools.calibration import __main__ as command
from tools.calibration import planted_causes, simulated_verdicts
from tools.calibration.simulated_verdicts import Cell, Line, draw, measure
from tools.planted.paired_runs import CAUSES

SEED, PAIRS = 11, 300
CELLS = [
    Cell(10, 1, "spread"), Cell(20, 8, "ceiling"), Cell(50, 4, "spread"), Cell(50, 16, "floor"),
    Cell(50, 1, "half solved", "unbalanced"), Cell(100, 4, "middle"), Cell(300, 4, "half solved", "missing"),
    Cell(300, 16, "half solved"),
]
LARGE = Cell(300, 16, "half solved")  # every limit is asked of it


def broken(found: list[Line]) -> set[tuple[str, str, str]]:
    return {(line.what, line.world, line.question) for line in found if not line.holds}


# ---- Verdicts ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_the_limits_of_a_cell_hold(cell: Cell) -> None:
    found = measure((cell, PAIRS, SEED))
    assert broken(found) == set()
    asked = {line.what for line in found}
    assert asked >= {"type I", "coverage", "false equivalence"}
    assert "power" in asked or cell.n < 100
    for line in found:
        assert 0 < line.slack < 0.06
        assert 0 <= line.value <= 1


def changed(by: Callable[[stats.Change], stats.Change]) -> Callable[[simulated_verdicts.Drawn], dict[str, stats.Change]]:
    """The verdicts of a comparison that is wrong in one way."""
    honest = simulated_verdicts.judged
    return lambda drawn: {question: by(change) for question, change in honest(drawn).items()}


def scaled(change: stats.Change, factor: float) -> stats.Change:
    """As if the standard error were so many times what it is."""
    se = change.se * factor
    low, high = (change.estimate + factor * (end - change.estimate) for end in (change.low, change.high))
    p = math.erfc(abs(change.estimate) / se / math.sqrt(2)) if se else 1.0
    return change._replace(se=se, low=low, high=high, p=p)


def test_intervals_that_are_too_narrow_break_type_1_and_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_verdicts, "judged", changed(lambda change: scaled(change, 0.6)))
    found = broken(measure((Cell(100, 4, "middle"), 200, SEED)))
    for question in simulated_verdicts.QUESTIONS:
        assert ("type I", "unchanged", question) in found
        assert ("coverage", "unchanged", question) in found


SAYS: dict[str, tuple[str, set[tuple[str, str]]]] = {
    IMPROVED: ("always a change", {("type I", "unchanged"), ("equivalent", "unchanged")}),
    INCONCLUSIVE: ("never an answer", {("type I", "unchanged"), ("power", "shift"), ("equivalent", "unchanged")}),
    EQUIVALENT: ("always the same", {("type I", "unchanged"), ("power", "shift"), ("false equivalence", simulated_verdicts.AT_MARGIN)}),
}


@pytest.mark.parametrize("word", SAYS, ids=lambda word: SAYS[word][0])
def test_one_word_for_everything_breaks_a_limit(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr(simulated_verdicts, "verdict", lambda change, margin: word)
    found = {(what, world) for what, world, _ in broken(measure((LARGE, 300, SEED)))}
    assert found >= SAYS[word][1]


@pytest.mark.parametrize("law", some_slow(simulated_verdicts.LAWS, "spread", "ceiling"))
def test_what_is_called_true_is_what_is_drawn(law: str) -> None:
    rng = stats.seeded_rng("test", law)
    for world, (shift, churn) in simulated_verdicts.WORLDS.items():
        big = draw(Cell(40_000, 4, law), rng, shift, churn)
        change = big.c_b / big.n_b - big.c_a / big.n_a
        se = float(change.std() / math.sqrt(change.size)) + 1e-9
        true = simulated_verdicts.simulate(Cell(10, 1, law), world, 1, SEED).true_new
        assert abs(float(change.mean()) - true) < 4 * se
        assert abs(float((big.p_b - big.p_a).mean()) - true) < 4 * se
        assert big.se_these == pytest.approx(
            math.sqrt(float((big.p_a * (1 - big.p_a) / 4 + big.p_b * (1 - big.p_b) / 4).sum())) / 40_000
        )
    at_margin = draw(Cell(200_000, 1, law), rng, simulated_verdicts.shift_to(law, 0.03))
    assert float((at_margin.p_b - at_margin.p_a).mean()) == pytest.approx(0.03, abs=5e-4)


def line(value: float, least: float | None, most: float | None, slack: float = 0.01) -> Line:
    return Line("n=9 k=9 spread, balanced", "unchanged", "new tasks", "type I", value, least, most, slack)


def test_a_limit_holds_up_to_its_slack_and_no_further() -> None:
    assert line(0.07, None, 0.06).holds
    assert not line(0.0701, None, 0.06).holds
    assert line(0.92, 0.93, None).holds
    assert not line(0.9199, 0.93, None).holds
    assert not line(0.99, 0.93, 0.975).holds
    assert line(0.5, None, None).holds


# ---- Causes --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_planted_causes_are_the_first_claim() -> None:
    found = planted_causes.run(7, SEED)
    assert found["pairs"] == 7
    assert {cause: sum(row.values()) for cause, row in found["matrix"].items()} == dict.fromkeys(CAUSES, 1)
    assert found["holds"], planted_causes.told(found)
    assert [line for line in found["lines"] if not line["right"]] == []
    for told in found["lines"]:
        assert told["cause"] == "nothing" or abs(told["delta"]) >= 2 * told["mde"]


def claimed(cause: str, claim: str) -> dict[str, Any]:
    return {
        "cause": cause, "seed": 1, "world": "desk, closing", "n_tasks": (9, 9), "repeats": (2, 2), "delta": 0.2, "mde": 0.1,
        "swapped": False, "terms": ("x",), "claimed": claim, "right": claim == cause, "movers": [],
    }  # fmt: skip


def test_wrong_claims_break_the_limits() -> None:
    right = [claimed(cause, cause) for cause in CAUSES for _ in range(30)]
    assert planted_causes.result(right, 1)["holds"]
    moving = [cause for cause in CAUSES if cause != "nothing"]
    silent = [claimed(cause, "nothing") for cause in CAUSES for _ in range(30)]
    assert planted_causes.result(silent, 1)["shares"]["nothing"]["value"] == 1
    assert not planted_causes.result(silent, 1)["holds"]
    eager = [
        *(claimed(cause, cause) for cause in moving for _ in range(30)),
        *(claimed("nothing", "infra outage") for _ in range(30)),
    ]
    assert not planted_causes.result(eager, 1)["holds"]
    near = [claimed(cause, "another mode" if cause == "one failure mode fixed" else cause) for cause in CAUSES for _ in range(30)]
    found = planted_causes.result(near, 1)
    assert not found["holds"]
    assert found["matrix"]["one failure mode fixed"] == {"another mode": 30}
    told = planted_causes.told(found)
    assert "Wrong (30):" in told
    assert "mode?" in told
    assert "Wrong" not in planted_causes.told(planted_causes.result(right, 1))


@pytest.mark.parametrize(("value", "code"), [(0.05, 0), (0.5, 1)])
def test_the_command_fails_if_a_limit_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: float, code: int
) -> None:
    one = replace(line(0.05, None, 0.06), value=value)
    monkeypatch.setattr(simulated_verdicts, "run", lambda pairs, seed, workers: [one])
    monkeypatch.setattr("sys.argv", ["calibration", "--only", "verdicts", "--pairs", "10"])
    assert command.main() == code
    assert f"limits broken: {code}" in capsys.readouterr().out
