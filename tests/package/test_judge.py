"""The judge: ladders in order, pastes low, the formula, what it prints, and when it cannot judge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from blade.package.layout import GRADES, golden
from blade.package.report_score import BASE, Bench, Case, bench_for, case, judged
from blade.tables.index import Silent
from tests.case_tables import cases
from tests.conftest import ROOT, Blade, Said
from tests.package.conftest import DESK, change_anchors, files

Desk = tuple[Case, Bench]
Scored = Callable[..., Said]
OFFICE = ROOT / "benchmarks" / "workplace_assistant" / "golden_reports"
MODELS = ("scripted_careful", "scripted_hasty")


@pytest.fixture
def score(blade: Blade, package: Path) -> Scored:
    """`blade package score` of the golden report by its own facts."""
    report, anchors, _ = files(package)
    words = ("package", "score", "--report", report, "--golden", report, "--anchor-facts", anchors)
    return lambda *more: blade(*words, *more)


@cache
def office(model: str) -> Desk:
    held = case(OFFICE / f"{model}_golden_report.md", OFFICE / f"{model}_anchor_facts.json")
    return held, bench_for(held, Silent())


@pytest.mark.parametrize("model", [*MODELS, "desk"])
def test_graded_reports_come_out_in_order(desk: Desk, model: str) -> None:
    paths = {grade: DESK / f"{grade}.md" for grade in GRADES}
    paths = paths if model == "desk" else golden(OFFICE / f"{model}_golden_report.md").graded
    bench = (desk if model == "desk" else office(model))[1]
    scores = {grade: judged(path.read_text(encoding="utf-8"), bench).score for grade, path in paths.items()}
    assert list(scores) == list(GRADES)
    values = list(scores.values())
    assert all(high - low >= 0.05 for high, low in pairwise(values)), scores
    assert (values[0] >= 0.70, values[2] <= 0.25, values[-1] <= 0.20) == (True, True, True), scores


@pytest.mark.parametrize("model", [*MODELS, "desk"])
def test_a_golden_report_meets_its_own_anchors_with_and_without_citations(desk: Desk, model: str) -> None:
    held, bench = desk if model == "desk" else office(model)
    score = judged(held.golden, bench)
    assert score.score >= 0.9
    assert score.recall == 1
    assert not score.problems
    plain = judged(re.sub(r"<!--.*?-->", "", held.golden, flags=re.DOTALL), bench)
    assert plain.score >= 0.6, "numbers and quotations count without our comments too"


def test_the_score_is_the_formula(desk: Desk) -> None:
    held, bench = desk
    for text in (held.golden, held.golden[: len(held.golden) // 2], held.golden + "\n\nTask 4711 fails.\n"):
        score = judged(text, bench)
        counts, gates = score.counts, score.gates
        right = counts["supported"] + counts["by_wording"] + counts["found_again"]
        assert score.precision == pytest.approx(right / (right + 2 * counts["wrong"] + counts["bare"] / 2))
        assert score.evidence == pytest.approx(counts["evidence"] / (counts["evidence"] + 1))
        value = BASE + (1 - BASE) * score.recall * score.evidence
        value *= gates["plain"] * gates["names"] * gates["made_up"] * score.precision
        assert score.score == pytest.approx(value)


@pytest.mark.parametrize(("addition", "changes", "problems", "denied"), cases(__file__, "what_is_added_and_what_it_costs"))
def test_what_is_added_and_what_it_costs(
    desk: Desk, addition: str, changes: dict[str, int], problems: list[str], denied: list[str]
) -> None:
    held, bench = desk
    text = f"{held.golden}\n\n{addition}\n"
    before, after = judged(held.golden, bench), judged(text, bench)
    assert {name: after.counts[name] - before.counts[name] for name in changes} == changes
    assert after.gates["made_up"] == pytest.approx(0.7 ** after.counts["made_up"])
    stated = [problem.format(last=text.count("\n")) for problem in problems]
    assert [problem in line for problem, line in zip(stated, after.problems, strict=False)] == [True] * len(stated)
    assert [hit.anchor.id for hit in after.hits if hit.denied] == denied
    assert after.score < before.score or not any(changes.values())
    assert after.precision < before.precision or not changes.get("bare")


@pytest.mark.parametrize(("model", "total"), [("scripted_careful", "A11"), ("scripted_hasty", "A12")])
def test_facts_that_the_shallow_report_has_weigh_nothing(model: str, total: str) -> None:
    assert [anchor.id for anchor in office(model)[1].usable if not anchor.weighs] == [total]


@pytest.mark.parametrize("text", ["", "# x\n", "All is well.\n", "[]", "{}", "\ufeff# x\r\n\r\n|||\r\n"])
def test_nothing_said_is_worth_nothing(desk: Desk, text: str) -> None:
    assert judged(text, desk[1]).score == 0


def test_the_command_prints_and_writes_the_known_keys_and_what_the_score_rests_on(score: Scored, tmp_path: Path, package: Path) -> None:
    result = score("--output-dir", tmp_path / "out")
    assert result.code == 0, result.err
    reward = json.loads(result.out)
    assert reward == json.loads((tmp_path / "out" / "reward.json").read_text())
    assert set(reward["checklist"]) == {"score", "structure", "quantitative", "evidence", "anchor_coverage"}
    assert set(reward["holistic"]) == {"normalized_score", "golden_overlap", "table_score"}
    assert {"id", "score", "met", "fact", "how"} <= set(reward["anchor_hits"][0])
    assert reward["final_score"] >= 0.9
    assert reward["rests_on"] == "rollouts"
    assert reward["holistic"]["golden_overlap"] == reward["checklist"]["structure"] == 1
    for letter in "ab":
        (package / "rollouts" / f"sim_model_{letter}_rollouts.jsonl").unlink()
    result = score()
    assert result.code == 0, result.err
    reward = json.loads(result.out)
    assert reward["rests_on"] == "wording"
    assert "rests on wording" in reward["note"]
    assert "rests on wording" in result.err
    assert reward["recall"] > 0.7


def test_too_few_usable_facts_cannot_judge(score: Scored, package: Path) -> None:
    facts = json.loads(files(package)[1].read_text())["anchor_facts"]
    false = [fact | {"id": f"F{n}", "value": 99} for n, fact in enumerate(facts[:2])]
    change_anchors(package, anchor_facts=facts[2:] + false)
    result = score()
    assert result.code == 1
    why = "2 cannot: the rows give 9, the anchor says 99"
    assert f"7 anchor facts can be used, 8 are needed; {why}" in result.err
    assert [line.split(":")[0] for line in result.err.splitlines()[-3:]] == ["error", "hint", "see"]
    fewer = score("--min-anchor-facts", 7)
    assert fewer.code == 0
    assert [anchor["id"] for anchor in json.loads(fewer.out)["unusable_anchors"]] == ["F0", "F1"]


@pytest.mark.parametrize(("words", "code", "why"), cases(__file__, "words_that_score_refuses"))
def test_wrong_words_are_told(score: Scored, package: Path, words: list[str], code: int, why: str) -> None:
    files(package)[2].write_text("{")
    result = score(*(word.format(nowhere=package / "nowhere.md", broken=files(package)[2]) for word in words))
    assert (result.code, why in result.err) == (code, True), result.err
