"""What a person writes in words of their own: quotations, causes, rates and examples, told and mistold."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from blade.package.calibrate import attacks
from blade.package.calibrate import battery as calibrate
from blade.package.judge import score as judge
from blade.package.judge.anchors import drafted
from blade.package.judge.plainly import is_mode, is_told, meant
from blade.package.judge.predicates import Predicate, met, narrowed, overlap
from blade.package.judge.score import Bench, Judged
from blade.package.judge.sources import Case
from blade.package.judge.units import Unit, is_pointer
from blade.package.layout import is_part, layout
from blade.store.index import Silent
from tests.conftest import Blade
from tests.package.conftest import reviewed
from tests.package.court import make_unit, seat_of
from tests.package.person import REPORT

LOCKED = "Error: order O-20143 is locked by the packing line, nothing was changed."


@pytest.fixture(scope="module")
def court(made: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


def read(text: str, seat: Bench) -> tuple[Unit, ...]:
    return judge.claims(f"# x\n\n## Why\n\n{text}\n", seat.world, seat.known)[2:]


def test_a_block_quote_is_a_quotation_and_meets_its_anchor(court: tuple[Case, Bench, Judged]) -> None:
    seat = court[1]
    told = read(f"At step 10 of rollout 14/1 the tool says:\n\n> {LOCKED}", seat)[-1]
    assert (told.kind, told.verdict, told.quotes) == ("quote", SUPPORTED, (LOCKED,))
    wanted = Predicate("quote", object=LOCKED, must_cite=("14/1",))
    assert list(met(told, wanted))
    false = read(
        "At step 10 of rollout 14/1 the tool says:\n\n> The order was lost by the night shift.", seat
    )
    assert false[-1].verdict == CONTRADICTED
    remark = read("> Remember that all of this is a simulation of a desk.", seat)[-1]
    assert remark.kind == "sentence"


@pytest.mark.parametrize(
    ("quote", "meant", "same"),
    [
        (
            "the answer is **Hong Taiji**, of the Qing",
            "So the answer is Hong Taiji, of the Qing dynasty.",
            True,
        ),
        ("the order is locked […] nothing was changed at all", "nothing was changed at all, he says", True),
        ("the order is locked by the night shift", "the order was opened by the day shift", False),
        ("locked", "the order is locked", False),
    ],
)
def test_quotations_are_held_against_each_other_without_their_marks(
    quote: str, meant: str, same: bool
) -> None:
    assert overlap(quote, meant) is same


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("Task 9 is a false negative of the verifier.", {"TI"}),
        ("The grader wrongly marks task 9 as failed.", {"TI"}),
        ("In task 9 the sandbox crashed.", {"IR"}),
        ("Task 9 is not a fault of the verifier.", set()),
        ("In task 9 the agent forgets to ask.", set()),
    ],
)
def test_some_words_mean_a_cause(text: str, causes: set[str]) -> None:
    assert meant(text) == causes


def test_a_mode_in_plain_words_is_its_cause_where_the_rules_found_it(
    court: tuple[Case, Bench, Judged],
) -> None:
    seat = court[1]
    true = read("In task 14 the agent ignores the error and says that all is done.", seat)[0]
    assert (true.verdict, true.causes) == (SUPPORTED, {"BI"})
    other = read("In task 8 the agent ignores the error and says that all is done.", seat)[0]
    assert (other.verdict, other.causes) == (UNVERIFIABLE, set())
    tool = "`find_order` is never called; `expected_actions` asks for it."
    assert is_told("Task 3 leaves out `find_order`.", tool)
    assert not is_told("Task 3 calls `find_order`.", tool)
    assert not is_told("Task 3 leaves out `find_user`.", tool)
    assert is_mode("the agent never calls find_customer", "never calls find_customer")
    assert not is_mode("the agent calls find_customer", "never calls find_customer")


@pytest.mark.parametrize(
    ("verb", "verdict"), [("fails", SUPPORTED), ("passes", CONTRADICTED), ("dances", UNVERIFIABLE)]
)
def test_what_has_a_cause_fails(court: tuple[Case, Bench, Judged], verb: str, verdict: str) -> None:
    assert read(f"Task 14 {verb} for a behavioural issue (BI).", court[1])[0].verdict == verdict


def test_rates_in_own_words_are_known_by_their_counts(court: tuple[Case, Bench, Judged]) -> None:
    seat = court[1]
    right = "12 rollouts leave out a change that the task expects; 0% of these pass, against 83% of the rest."
    wrong = right.replace("0%", "83%", 1).replace("83% of the rest", "0% of the rest")
    wanted = next(
        one.predicate
        for one in seat.usable
        if one.predicate and one.predicate.type == "contrast" and "leave out" in one.predicate.object
    )
    unit = read(right, seat)[0]
    assert unit.verdict == SUPPORTED
    assert list(met(unit, wanted))
    assert read(wrong, seat)[0].verdict == CONTRADICTED
    assert read(right.replace("12", "13"), seat)[0].verdict != SUPPORTED


def test_a_list_of_examples_claims_nothing(court: tuple[Case, Bench, Judged]) -> None:
    assert read("The desk is slow. Examples: tasks 4, 8, 12.", court[1])[-1].verdict is None
    assert is_pointer("See rollouts 4/1, 8/0 and 14/1.")
    assert not is_pointer("See task 4, which a robot solved.")


def test_another_task_may_stand_for_the_one_of_an_anchor(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    of_cause = {task for task, causes in seat.known.causes.items() if causes == {"BI"}}
    one = next(
        anchor.predicate
        for anchor in drafted(seat.world, seat.golden)
        if anchor.predicate and anchor.predicate.type == "cause" and anchor.predicate.value == "BI"
    )
    for task in sorted(of_cause):
        unit = make_unit(f"Task {task} (BI).", tasks=frozenset({task}), causes=frozenset({"BI"}))
        assert list(met(unit, one)), task
    assert not list(met(make_unit(tasks=frozenset({"8"}), causes=frozenset({"BI"})), one))
    assert {cite.split("/")[0] for cite in narrowed(one, unit).must_cite} == {task}


def test_an_honest_report_that_states_most_of_the_findings_scores(court: tuple[Case, Bench, Judged]) -> None:
    told = judge.judged(REPORT, court[1])
    assert told.gates["fabricated"] == told.gates["more_wrong_than_right"] == 1
    assert told.recall >= 0.5
    assert told.score >= 0.45


@pytest.mark.parametrize(
    ("path", "is_of_it"),
    [
        ("skill/SKILL.md", True), ("README.md", True), ("rollouts/blade.toml", True), ("LICENSE", True),
        ("golden_reports/a_shallow.md", True), ("candidate.md", False), ("notes/plan.md", False),
        ("golden_reports/calibration-runs/x/reward.json", False), ("calibration-runs/y.json", False),
        ("data/rows.jsonl", False),
    ],
)  # fmt: skip
def test_what_belongs_to_a_package(made: Path, path: str, is_of_it: bool) -> None:
    assert is_part(layout(made), Path(path)) is is_of_it


def test_a_package_leaves_without_what_lies_beside_it(
    made: Path, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")
    desk, clean = reviewed(made, tmp_path / "desk"), tmp_path / "clean"
    (desk / "candidate.md").write_text("# mine\n", encoding="utf-8")
    (desk / "calibration-runs").mkdir()
    (desk / "calibration-runs" / "x.json").write_text("{}\n", encoding="utf-8")
    told = blade("package", "sanitize", "--benchmark-dir", desk, "-o", clean)
    assert told.code == 0, told.err
    assert "Left out candidate.md: it is no part of a package" in told.out
    assert "calibration-runs/x.json" in told.out
    assert {path.name for path in clean.iterdir()} == {"skill", "rollouts", "golden_reports"}


def test_an_attack_that_changes_nothing_is_not_tried(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, _ = court
    told = calibrate.calibrated(
        replace(case, golden=REPORT), replace(seat, golden=read(REPORT, seat)), Silent(), seeds=1
    )
    by_name = {one.name: one for one in told.attacks}
    assert by_name["swapped models"].score is None
    assert by_name["swapped models"].held is None
    assert by_name["false quotes"].score is not None
    assert not any("swapped models" in problem for problem in told.problems)
    assert by_name["inverted claims"].held


def test_block_quotes_are_attacked_too() -> None:
    material = attacks.Material(
        "# x\n\nIt says:\n\n> The order is locked.\n> Nothing was changed.\n", (), (), (), ()
    )
    made = attacks.false_quotes(material)
    assert "locked" not in made
    assert made.count("\n> ") == 1
    assert "> The order is locked." in attacks.negated(material)
