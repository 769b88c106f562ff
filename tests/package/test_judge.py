"""The judge: what a report earns for what it finds, and what it pays for what it makes up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from blade.package.judge import score as judge
from blade.package.judge.score import Bench, Judged, consulted, is_backwards, judged, score
from blade.package.judge.sources import Case
from tests.conftest import Blade
from tests.package.court import files, make_unit, reports, seat_of


@pytest.fixture
def court(made: Path, cache: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


def test_the_golden_report_scores_high_and_the_shallow_one_nothing(
    court: tuple[Case, Bench, Judged],
) -> None:
    case, seat, golden = court
    assert golden.score >= 0.85
    assert golden.gate == 1
    assert judged(case.shallow, seat).score == 0
    assert judged("", seat).score == 0


def test_every_false_quotation_costs(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    task = seat.world.report.tasks[0].task
    false = [f"\n\nRollout {task}/0 says “We have never met before, dear number {n}.”\n" for n in range(2)]
    one, two = (judged(case.golden + "".join(false[:n]), seat) for n in (1, 2))
    assert one.gates["fabricated"] == pytest.approx(0.7)
    assert two.gates["fabricated"] == pytest.approx(0.49)
    assert golden.score > one.score > two.score


def test_an_id_that_no_row_has_costs(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    told = judged(case.golden + "\n\nTask 4711 never passes.\n", seat)
    assert told.gates["fabricated"] == pytest.approx(0.7)
    assert any("4711" in problem for problem in told.problems)


def test_a_report_that_says_a_thing_and_its_opposite_has_not_found_it(
    court: tuple[Case, Bench, Judged],
) -> None:
    case, seat, golden = court
    (first,) = [one for one in case.anchors if one.id == "B1"]
    assert first.predicate is not None
    task, cause = first.predicate.scope[0][1], first.predicate.value
    told = judged(f"{case.golden}\n\nIt is false that task {task} fails for {cause}.\n", seat)
    missed = [one.id for one, is_met, _ in told.hits if not is_met]
    assert missed == ["B1"]
    assert told.recall < golden.recall


def test_the_score_of_another_run_halves(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    run = seat.world.report.runs[0]
    assert run.score is not None
    right, wrong = f"{run.score * 100:.1f}%", "11.1%"
    told = judged(case.golden.replace(right, wrong), seat)
    assert told.gates["required_numbers"] == 0.5
    assert told.score < golden.score / 2
    without = "\n".join(line for line in case.golden.split("\n") if right not in line)
    assert judged(without, seat).gates["required_numbers"] == 0.5


def test_a_report_under_the_name_of_another_model_is_worth_nothing(
    court: tuple[Case, Bench, Judged],
) -> None:
    case, seat, _ = court
    text = case.golden.replace("sim-model-a", "sim-model-b").replace("sim_model_a", "sim_model_b")
    assert judged(text, seat).score == 0


def test_a_report_that_is_more_wrong_than_right_is_halved(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    right = [make_unit(f"Task 4 fails {n}.", line=n) for n in range(5)]
    wrong = [make_unit(f"Task 4 passes {n}.", line=9 + n, verdict=CONTRADICTED) for n in range(3)]
    assert score([*right, *wrong[:2]], seat).gates["more_wrong_than_right"] == 1
    assert score([*right, *wrong], seat).gates["more_wrong_than_right"] == 0.5


def test_saying_it_twice_earns_no_more_and_flooding_costs(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    twice = judged(case.golden + "\n\n" + case.golden, seat)
    assert twice.counts[SUPPORTED] == golden.counts[SUPPORTED]
    assert twice.score <= golden.score
    assert judged("\n\n".join([case.golden] * 5), seat).gates["length"] < 1


@pytest.mark.parametrize(
    ("text", "backwards"),
    [
        ("Step 9 caused the error at step 4.", True),
        ("Step 4 caused the error at step 9.", False),
        ("The error at step 4 is due to the call at step 9.", True),
        ("The error at step 9 is due to the call at step 4.", False),
        ("Step 9 follows; step 4 does not.", False),
    ],
)
def test_a_later_step_cannot_cause_an_earlier_one(text: str, backwards: bool) -> None:
    assert is_backwards(text) is backwards


def test_chronology_costs_a_fifth(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    told = judged(case.golden + "\n\nStep 9 caused the error at step 4.\n", seat)
    assert told.gates["chronology"] == 0.8


def test_a_false_fact_that_is_agreed_with_costs(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    canary = seat.canaries[0]
    task = dict(canary.scope)["task"]
    assert golden.gates["canaries"] == 1
    told = judged(f"{case.golden}\n\nThe cause of task {task} is {canary.value}.\n", seat)
    assert told.gates["canaries"] == pytest.approx(1 - 1 / len(seat.canaries))


def test_a_cause_is_wrong_where_rules_and_anchors_hold_another(
    court: tuple[Case, Bench, Judged],
) -> None:
    _, seat, _ = court
    told = seat.world.report.attributions[0]
    wrong = next(code for code in ("DA", "TI", "KG") if code not in seat.known.causes[told.task])

    def verdict(text: str) -> str | None:
        return judge.claims(text, seat.world, seat.known)[0].verdict

    assert verdict(f"Task {told.task} fails, and its cause is {told.cause.value}.") == SUPPORTED
    assert verdict(f"Task {told.task} fails, and its cause is {wrong}.") == CONTRADICTED
    assert verdict(f"Task {told.task} fails, but its cause is not {told.cause.value}.") == CONTRADICTED
    assert verdict(f"Task {told.task} fails, but its cause is not {wrong}.") != CONTRADICTED
    table = "| Task | Cause |\n| --- | --- |\n| {} | {} |\n"
    assert verdict(table.format(told.task, told.cause.value)) == SUPPORTED
    assert verdict(table.format(told.task, wrong)) == CONTRADICTED


def verdicts(text: str, seat: Bench) -> list[str | None]:
    return [unit.verdict for unit in judge.claims(text, seat.world, seat.known) if unit.kind == "sentence"]


def test_naming_a_task_and_a_step_proves_nothing_of_them(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    task = seat.world.report.tasks[0].task
    assert verdicts(f"Rollout {task}/0 sings at step 1.", seat) == [UNVERIFIABLE]
    assert verdicts(f"In rollout {task}/0, step 1, the text is:", seat) == [None]


def test_a_reason_needs_more_than_a_task_that_fails(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    never = next(one.task for one in seat.world.report.tasks if one.bucket == "never")
    assert verdicts(f"Task {never} never passes.", seat) == [SUPPORTED]
    assert verdicts(f"Task {never} never passes because the agent dislikes lamps.", seat) == [UNVERIFIABLE]


def test_claims_that_nothing_bears_out_cost_even_without_a_number(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    told = judged(
        case.golden + "\n\n## More\n\nThe agent prefers tea.\n\nIts makers were in a hurry.\n", seat
    )
    assert told.counts[UNVERIFIABLE] == golden.counts[UNVERIFIABLE] + 2
    assert told.score < golden.score


def test_rates_belong_to_their_sides(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    tool = "find_customer"
    told = next(one for one in seat.world.report.mechanisms if one.actionable == tool)
    task, repeat = told.rollouts[0]
    low, high = f"{told.pass_with:.1%}", f"{told.pass_without:.1%}"
    end = f"such as {task}/{repeat}"
    for text in (
        f"Without `{tool}` {{}} of the rollouts pass, {end}; with it {{}} do.",
        f"Of the rollouts that never call `{tool}`, {end}, {{}} pass, against {{}} of the others.",
    ):
        assert verdicts(text.format(low, high), seat)[0] == SUPPORTED
        assert verdicts(text.format(high, low), seat)[0] == CONTRADICTED


def test_what_the_rows_say_against_a_claim_is_told_with_its_line(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    false = "\n\n".join(f"Task {4711 + n} never passes." for n in range(25))
    told = judged(f"{case.golden}\n\n{false}\n", seat)
    first = case.golden.count("\n") + 3
    lines = [one for one in told.problems if one.startswith("line ")]
    assert lines[0].startswith(f"line {first}: Task 4711 never passes.: says Task 4711")
    assert len(lines) == 20
    assert told.problems[-1] == "and 5 more contradicted claims"


def test_the_score_is_the_formula(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    for text in (case.golden, case.golden[: len(case.golden) // 2], case.golden + "\n\nTask 4711 fails.\n"):
        told = judged(text, seat)
        assert told.score == pytest.approx(told.recall * (told.precision * told.evidence) ** 0.5 * told.gate)
        against = 2 * (told.counts[CONTRADICTED] + told.counts["foreign"]) + told.counts[UNVERIFIABLE] / 2
        assert told.precision == pytest.approx(told.counts[SUPPORTED] / (told.counts[SUPPORTED] + against))


def test_totals_earn_no_precision() -> None:
    assert judge.is_telling(make_unit())
    assert not judge.is_telling(make_unit(tasks=frozenset(), own=frozenset()))


def test_an_opinion_cannot_overrule_the_rows(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    text = f"{case.golden}\n\n## More\n\nTask 4711 never passes.\n\nThe agent is in a hurry at the end of the day.\n"
    before = judged(text, seat)
    seen: list[list[dict[str, Any]]] = []

    def flatter(table: list[dict[str, Any]]) -> dict[int, str]:
        seen.append(table)
        return {entry["id"]: SUPPORTED for entry in table}

    after = consulted(before, seat, flatter)
    assert after.counts[CONTRADICTED] == before.counts[CONTRADICTED] > 0
    assert after.gates == before.gates
    assert after.recall == before.recall
    assert before.counts[UNVERIFIABLE] > after.counts[UNVERIFIABLE] == 0
    (table,) = seen
    assert all(set(entry) == {"id", "verdict", "kinds", "found", "expected", "cites"} for entry in table)
    harsh = consulted(before, seat, lambda table: {entry["id"]: CONTRADICTED for entry in table})
    assert harsh.counts[SUPPORTED] == before.counts[SUPPORTED]
    assert harsh.precision < before.precision


def test_a_section_that_is_mostly_wrong_meets_no_anchor(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    right = make_unit("Task 4 is a knowledge gap (KG).", causes=frozenset({"KG"}))
    wrong = make_unit("Task 4 always passes.", line=2, verdict=CONTRADICTED)
    elsewhere = make_unit("Task 4 always passes.", line=2, verdict=CONTRADICTED, section=("Summary",))
    assert judge.sound([right, wrong]) == []
    assert judge.sound([right, elsewhere]) == [right]
    assert score([wrong], seat).score == 0


def test_the_command_prints_and_writes_the_known_keys(blade: Blade, package: Path, tmp_path: Path) -> None:
    golden, anchors, _ = files(package)
    words = ("package", "score", "--report", golden, "--golden", golden, "--anchor-facts", anchors)
    said = blade(*words, "--output-dir", tmp_path / "out")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told == json.loads((tmp_path / "out" / "reward.json").read_text())
    assert set(told["checklist"]) == {"score", "structure", "quantitative", "evidence", "anchor_coverage"}
    assert set(told["holistic"]) == {"normalized_score", "golden_overlap", "table_score"}
    assert {"id", "score", "met", "fact"} <= set(told["anchor_hits"][0])
    assert told["final_score"] >= 0.85
    assert told["holistic"]["golden_overlap"] == told["checklist"]["structure"] == 1


def test_without_rollouts_it_cannot_judge(blade: Blade, package: Path) -> None:
    golden, anchors, _ = files(package)
    kept = package / "kept.jsonl"
    (package / "rollouts" / "sim_model_a_rollouts.jsonl").rename(kept)
    words = ("package", "score", "--report", golden, "--golden", golden, "--anchor-facts", anchors)
    said = blade(*words)
    assert said.code == 1
    assert said.out == ""
    assert "cannot judge: no rollouts of sim-model-a" in said.err
    assert [line.split(":")[0] for line in said.err.splitlines()[-3:]] == ["error", "hint", "see"]
    assert blade(*words, "--rollouts", kept).code == 0


def test_too_few_usable_facts_cannot_judge(blade: Blade, package: Path) -> None:
    golden, anchors, _ = files(package)
    told = json.loads(anchors.read_text())
    vague = [{"id": f"V{n}", "fact": f"The agent fails in many ways, {n} of them grave."} for n in range(5)]
    told["anchor_facts"] = told["anchor_facts"][:7] + vague
    anchors.write_text(json.dumps(told))
    words = ("package", "score", "--report", golden, "--golden", golden, "--anchor-facts", anchors)
    said = blade(*words)
    assert said.code == 1
    assert "7 anchor facts can be used, 8 are needed; 5 cannot: it names no task or rollout" in said.err
    fewer = blade(*words, "--min-anchor-facts", 7)
    assert fewer.code == 0
    result = json.loads(fewer.out)
    assert [one["id"] for one in result["unusable_anchors"]] == ["V0", "V1", "V2", "V3", "V4"]
    assert result["recall"] == 1


@pytest.mark.parametrize("command", ["score", "calibrate"])
def test_fewer_than_no_facts_is_an_error_of_use(blade: Blade, command: str) -> None:
    said = blade("package", command, "--min-anchor-facts", -3)
    assert said.code == 2
    assert "--min-anchor-facts" in said.err


@pytest.mark.parametrize("option", ["--report", "--golden", "--anchor-facts"])
def test_a_missing_file_is_an_error_of_the_user(blade: Blade, package: Path, option: str) -> None:
    golden, anchors, _ = files(package)
    given = {"--report": golden, "--golden": golden, "--anchor-facts": anchors}
    given[option] = reports(package) / "nowhere.md"
    said = blade("package", "score", *(word for pair in given.items() for word in pair))
    assert said.code == 3
    assert "nowhere.md does not exist" in said.err


def test_anchor_facts_that_are_no_json_say_so(blade: Blade, package: Path) -> None:
    golden, anchors, _ = files(package)
    anchors.write_text("{")
    said = blade("package", "score", "--report", golden, "--golden", golden, "--anchor-facts", anchors)
    assert said.code == 4
    assert "anchor_facts.json" in said.err
    assert "see:   docs/errors.md#unreadable-file" in said.err


def test_a_sentence_turned_round_is_found_out_by_the_numbers_it_keeps(
    court: tuple[Case, Bench, Judged],
) -> None:
    _, seat, _ = court
    meant = next(
        one.text
        for one in seat.world.reference.statements
        if re.search(r"fires on \d+ of \d+ failing and \d+ of \d+ passing", one.text)
    )

    def verdict(text: str) -> str | None:
        return judge.claims(f"# x\n\n## Why\n\n{text}\n", seat.world, seat.known)[-1].verdict

    assert verdict(meant) == SUPPORTED
    turned = re.sub("failing|passing", lambda hit: {"failing": "passing"}.get(hit[0], "failing"), meant)
    assert verdict(turned) == CONTRADICTED
    assert verdict(meant.replace("fires", "does not fire")) == CONTRADICTED
    assert verdict(meant.replace("for instance", "for example")) == SUPPORTED


def test_a_sentence_is_about_the_tasks_that_the_next_one_points_to(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    first, second = (one.task for one in seat.world.report.tasks[:2])

    def tasks(text: str) -> frozenset[str]:
        return judge.claims(f"# x\n\n## Why\n\n{text}\n", seat.world, seat.known)[2].tasks

    assert tasks(f"Most rollouts are cut short. See task {first}.") == {first}
    assert tasks(f"Most rollouts are cut short. Task {first} is not.") == set()
    assert tasks(f"Task {second} is cut short. See task {first}.") == {second}
