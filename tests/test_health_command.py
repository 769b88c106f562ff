"""`blade health`, `detectors`, `doctor` and `diagnose --quick`: can the score be trusted, the rule book, what is there, counts alone."""

from __future__ import annotations

import json
import pkgutil
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.diagnose import rungs
from blade.diagnose.ladder import RULES
from blade.formats import single_rows
from blade.model import Cause
from blade.pipeline import report_pages
from blade.pipeline.stages import Clock
from blade.tables.index import Silent
from tests.builders import Row, make_input, make_message, make_response, make_row, make_rows, make_run
from tests.conftest import Blade
from tools.planted import write_run

NAMES = [rule.name for rule in RULES]
CODES = {cause.value for cause in Cause}


# -- the rule book --------------------------------------------------------------------------------


def test_every_rung_of_the_ladder_is_in_the_rule_book_in_the_order_of_asking(cache: Path, tmp_path: Path) -> None:
    modules = {module.name for module in pkgutil.iter_modules(rungs.__path__)}
    # three questions have no module of their own: one is asked by `ran`, one of several runs together, one of the owner
    assert set(NAMES) == modules | {"recorded", "gold", "declared"}
    assert len(NAMES) == len(set(NAMES))
    clock = Clock()
    path = make_run(tmp_path, make_rows({task: [1.0, 0.0] for task in range(8)}))  # nothing is explained before the last
    pipeline.diagnose(pipeline.load([str(path)], Silent()), "", clock=clock)
    asked = [name.removeprefix("ladder: ") for name in clock.seconds if name.startswith("ladder: ")]
    early = ("kinds", "verdicts")  # slices and the golds that verdicts hold are found before their question is asked
    asked = [name for name in asked if name in NAMES and name not in early]
    assert asked == [name for name in NAMES if name in asked]
    assert set(asked) == set(NAMES) - {"recorded", "gold", *early}


def test_all_questions_are_printed_in_order_and_held_by_the_list_as_json(blade: Blade) -> None:
    said = blade("detectors")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if line and not line.startswith(" ")] == NAMES
    assert max(map(len, said.out.splitlines())) <= 100
    printed = json.loads(blade("detectors", "--json").out)["rungs"]
    assert [entry["name"] for entry in printed] == NAMES
    assert all(set(entry) == {"name", "question", "proof", "refuted", "label", "accuracy"} for entry in printed)
    assert json.loads(blade("detectors", "verifier", "--json").out) == printed[NAMES.index("verifier")]


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_one_question_by_name(blade: Blade, rule: Any) -> None:
    said = blade("detectors", rule.name.upper())
    assert said.out.strip() in blade("detectors").out
    heads = [line[2:12].strip() for line in said.out.splitlines()[1:] if line[2] != " "]
    assert heads == ["Question", "Proved by", "Refuted by", "Label", "Accuracy"]
    words = " ".join(said.out.split())
    assert all(text in words for text in (rule.question, rule.proof, rule.refuted, rule.label))
    assert rule.question.endswith("?")
    assert set(re.findall(r"\b[A-Z]{2}\b", rule.label)) <= CODES


def test_accuracy_is_printed_where_the_card_has_it_and_unknown_names_are_refused(blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"cut": {"n": 16, "right": 14}}
    monkeypatch.setattr(report_pages, "card", lambda: {"rungs": measured})
    assert "Accuracy    14 of 16 labels right (88%), on runs with a known answer" in blade("detectors", "cut").out
    assert json.loads(blade("detectors", "cut", "--json").out)["accuracy"] == measured["cut"]
    assert "Accuracy    not measured" in blade("detectors", "verifier").out
    assert json.loads(blade("detectors", "verifier", "--json").out)["accuracy"] is None
    said = blade("detectors", "verifer")
    assert (said.code, said.out) == (2, "")
    assert "there is no question named verifer" in said.err
    assert "did you mean verifier" in said.err
    assert "docs/errors.md#no-such-detector" in said.err
    assert "`blade detectors` lists them" in blade("detectors", "zzz").err
    said = blade("detectors", "--json", "B99")
    assert (said.error["slug"], said.error["exit"]) == ("no-such-detector", 2)


# -- counts alone ---------------------------------------------------------------------------------


def test_quick_counts_without_opening_a_trace_and_prints_only(blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path / "run", n_tasks=10, repeats=4).path
    full = blade("diagnose", path)

    def refused(*_: object) -> None:
        raise AssertionError("a trace was opened")

    monkeypatch.setattr(single_rows, "traced", refused)
    quick = blade("diagnose", "--quick", path)
    assert (full.code, quick.code) == (0, 0)
    score = re.compile(r"\d+\.\d%")
    assert score.search(quick.out)
    assert score.findall(quick.out)[0] == score.findall(full.out)[0]
    assert "Wrote" not in quick.out
    assert "Where the points went" in full.out
    assert "Where the points went" not in quick.out  # no cause is named
    for option in (("-o", tmp_path / "out"), ("--json",)):
        said = blade("diagnose", "--quick", *option, path)
        assert (said.code, said.out) == (2, "")
        assert "--quick only prints the counts" in said.err
    assert not (tmp_path / "out").exists()


# -- health ---------------------------------------------------------------------------------------


def test_health_as_json_holds_trust_and_flags_of_the_report(blade: Blade, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", n_tasks=10, repeats=4, faults=["provider_errors"]).path
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    report = json.loads(blade("diagnose", "--json", path).out)
    assert run["trust"] == report["trust"]
    assert run["flags"]
    assert sorted(flag["flag"] for flag in run["flags"]) == sorted(flag["flag"] for flag in report["health"])


def answered(task: int, repeat: int, reward: float, answer: str, gold: str) -> Row:
    said = make_response([make_message(f"The {repeat}th time I find \\boxed{{{answer}}} for question {task}.")])
    return make_row(task, repeat, reward, response=said, expected_answer=gold)


def sound() -> list[Row]:
    """Six tasks of which one fails with another answer each time."""
    return [answered(t, r, float(t != 5), str(t if t != 5 else r + 70), str(t)) for t in range(6) for r in range(2)]


def test_a_verifier_that_rejects_right_answers_is_an_alarm_in_text_and_json(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [answered(t, r, 0.0, str(t), str(t)) for t in range(6) for r in range(2)])
    said = blade("health", path)
    assert said.code == 0, said.err
    assert "Can the score be trusted? No." in said.out
    assert "\nalarm    " in said.out
    assert "[TI, task, verifier or harness; 12 rows]" in " ".join(said.out.split())
    document = json.loads(blade("health", "--json", path).out)
    assert document["schema"] == "blade.health/2"
    (run,) = document["runs"]
    assert list(run) == ["name", "score_name", "score", "n_tasks", "n_rollouts", "trust", "flags"]
    assert (run["score"], run["n_tasks"], run["n_rollouts"]) == (0.0, 6, 12)
    first = run["trust"][0]
    assert (first["level"], first["label"], first["rows"]) == ("alarm", "TI", 12)
    assert first["query"].startswith("select run, task, repeat, row from rollouts where run = 'rollouts'")
    assert first["fix"]


def test_a_sound_run_raises_no_warning_and_missing_rows_ask_for_care(blade: Blade, tmp_path: Path) -> None:
    rows = sound()
    path = make_run(tmp_path, rows, inputs=map(make_input, rows))
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    assert {one["level"] for one in run["trust"]} <= {"note"}
    assert {flag["level"] for flag in run["flags"]} <= {"info"}
    assert "Can the score be trusted? Yes" in blade("health", path).out
    path = make_run(tmp_path, rows[:-3], inputs=map(make_input, rows))
    said = blade("health", path).out
    assert "Can the score be trusted? Yes" not in said
    assert "\nproblem  3 of 12 rows (25.0%)" in said
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    assert "lost_rows" in [flag["flag"] for flag in run["flags"] if flag["level"] == "problem"]


def test_each_run_has_its_own_part_with_its_threshold_and_nothing_to_read_is_refused(blade: Blade, tmp_path: Path) -> None:
    paths = [make_run(tmp_path / name, sound(), name=name) for name in ("one", "two")]
    said = blade("health", *paths).out
    assert said.count("Can the score be trusted?") == said.count("Flags of the columns") == 2
    assert [run["name"] for run in json.loads(blade("health", "--json", *paths).out)["runs"]] == ["one", "two"]
    path = make_run(tmp_path, [make_row(task, at, (task + at) % 5 / 4) for task in range(6) for at in range(3)])
    (run,) = json.loads(blade("health", "--json", path, "--pass-threshold", "0.5").out)["runs"]
    assert (run["score_name"], round(run["score"], 3)) == ("pass_at_1", 0.556)
    assert blade("health").code == 2
    assert blade("health", tmp_path / "none.jsonl").code == 3


# -- doctor ----------------------------------------------------------------------------------------

EVAL = {"math-verify", "rapidfuzz", "jiwer", "sacrebleu", "langdetect", "pyarrow"}


def test_the_packages_of_the_verifiers_are_listed_apart(blade: Blade) -> None:
    told = json.loads(blade("doctor", "--json").out)
    assert set(told["eval_packages"]) == EVAL
    assert told["packages"]["msgspec"] == metadata.version("msgspec")
    assert EVAL.isdisjoint(told["packages"])


@pytest.mark.parametrize("name", ["surely-not-installed", "msgspec"])
def test_what_is_missing_is_told_with_what_to_install(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The description of another installation stands before that of this one."""
    folder = tmp_path / "blade_diagnostics-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: blade-diagnostics\nVersion: 9\nProvides-Extra: eval\n"
        f'Requires-Dist: click>=8.1\nRequires-Dist: {name}>=0.1; extra == "eval"\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("blade_eval.sandbox.holds", tuple)  # which takes a second to try
    told = blade("doctor").out
    assert ("MISSING" in told) is (name != "msgspec")
    assert ("pip install 'blade-diagnostics[eval]'" in told) is (name != "msgspec")


# -- show ----------------------------------------------------------------------------------------


def test_show_says_so_when_a_range_holds_no_step(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [make_row(0, 0)])
    assert "no step in this range: they are numbered 0 to 0" in blade("show", path, "0/0", "--steps", "500:510").out
    assert "no step in this range" not in blade("show", path, "0/0", "--steps", "0:1").out
