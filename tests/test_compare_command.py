"""`blade compare`: from files to the screen, the pages and the exit code; what it cannot do is said before it is tried."""

from __future__ import annotations

import json
import random
import re
import shlex
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import pytest

from blade.formats import single_rows
from tests.builders import Row, make_input, make_message, make_response, make_row, make_rows, make_run
from tests.case_tables import tables
from tests.compared import (
    Compared,
    Pairs,
    assert_adds_up,
    assert_mirrored,
    by_json,
    drawn,
    only,
    screen,
    some_slow,
    turned,
    two_runs,
    without_claims,
    word,
    written,
)
from tests.conftest import Blade
from tests.report.test_wire import VALIDATOR
from tests.same import of_rows
from tools.planted.paired_runs import CAUSES

CHANGED = ("improved", "regressed")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return written(tmp_path_factory)


@pytest.fixture
def compared(blade: Blade) -> Compared:
    return without_claims(blade)


@pytest.mark.parametrize("cause", some_slow(CAUSES, "infra outage", "one slice worse", "tasks dropped"))
def test_a_pair_on_screen_and_as_json(blade: Blade, compared: Compared, pairs: Pairs, cause: str) -> None:
    pair = pairs(cause)
    said = blade("compare", pair.baseline, pair.candidate)
    assert said.code == 0, said.err
    lines = screen(said.out)
    assert lines[0] == "BLADE  baseline → candidate"
    labels = [line[:13].strip() for line in lines if line[:1].strip()]
    for label in ("Change", "These tasks", "New tasks", "Margin", "Moved by", "Bridge", "Tasks", "Settings"):
        assert label in labels
    document = compared(pair.baseline, pair.candidate)
    VALIDATOR.validate(document)
    one = only(document)
    assert (one["baseline"], one["candidate"]) == ("baseline", "candidate")
    assert_adds_up(one)
    assert (document["matrix"], document["series"], document["gate"]) == (None, None, None)
    n = {kind: len(one["alignment"][kind]["tasks"]) for kind in ("common", "added", "removed")}
    assert n["common"] == pair.n_common
    assert n["common"] + n["removed"] == pair.n_tasks[0]
    assert n["common"] + n["added"] == pair.n_tasks[1]


def test_the_files_of_a_comparison(blade: Blade, pairs: Pairs, tmp_path: Path) -> None:
    pair = pairs("one slice worse")
    out = tmp_path / "out"
    said = blade("compare", pair.baseline, pair.candidate, "-o", out)
    assert said.code == 0, said.err
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert [name for name in names if "/" not in name] == ["compare.html", "compare.json", "compare.md"]
    figures = [name for name in names if "/" in name]
    assert {"figures/compare-bridge.svg", "figures/compare-scatter.svg"} <= set(figures)
    text = (out / "compare.md").read_text(encoding="utf-8")
    for figure in figures:
        assert figure in text
    assert [line for line in said.out.splitlines() if line.startswith("Wrote ")] == [
        f"Wrote {out}/figures/ ({len(figures)} figures)",
        *(f"Wrote {out / name}" for name in ("compare.md", "compare.html", "compare.json")),
    ]
    assert not re.search(r"\b(nan|None|inf)\b", text)
    again = blade("compare", "--json", pair.baseline, pair.candidate, "-o", out)
    assert again.code == 0
    assert again.out == (out / "compare.json").read_text(encoding="utf-8")
    VALIDATOR.validate(json.loads(again.out))


def test_a_comparison_leaves_a_report_in_the_same_folder_alone(blade: Blade, pairs: Pairs, tmp_path: Path) -> None:
    pair = pairs("nothing")
    out = tmp_path / "out"
    assert blade("diagnose", pair.baseline, "-o", out).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert blade("compare", pair.baseline, pair.candidate, "-o", out).code == 0
    both = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert before.items() < both.items()
    assert blade("diagnose", pair.baseline, "-o", out).code == 0  # and the reverse
    assert {path: path.read_bytes() for path in both} == both
    (out / "mine.txt").write_text("x")
    refused = blade("compare", pair.baseline, pair.candidate, "-o", out)
    assert (refused.code, refused.out) == (2, "")
    assert blade("compare", pair.baseline, pair.candidate, "-o", out, "--force").code == 0


def test_the_command_of_the_report_says_what_was_asked(compared: Compared, pairs: Pairs) -> None:
    pair = pairs("nothing")
    document = compared("--margin", "0.05", "--quick", pair.baseline, pair.candidate)
    assert shlex.split(document["made_by"]["command"]) == [
        "blade", "compare", str(pair.baseline), str(pair.candidate), "--margin", "0.05", "--quick"
    ]
    assert only(document)["margin"] == 0.05


@pytest.mark.parametrize("words", tables(__file__)["wrong comparisons"])
def test_a_wrong_use_is_refused(blade: Blade, tmp_path: Path, words: str) -> None:
    slug = tables(__file__)["wrong comparisons"][words]
    known = {name: make_run(tmp_path / name, drawn(1, 60, 2), name=name) for name in "AB"}
    arguments = [known.get(word, word) for word in words.split()]
    said = blade("compare", "--json", *arguments)
    assert (said.code, said.out) == (2, "")
    assert (said.error["slug"], said.error["exit"]) == (slug, 2)
    assert said.error["hint"]
    people = blade("compare", *arguments)
    assert (people.code, people.out) == (2, "")
    assert "error:" in people.err


def test_nothing_to_read_and_a_bad_policy_are_refused_before_anything_is_written(blade: Blade, tmp_path: Path) -> None:
    there = make_run(tmp_path, drawn(1, 4, 2))
    (tmp_path / "empty.jsonl").write_text("")
    for second in ("none.jsonl", "empty.jsonl"):
        assert blade("compare", there, tmp_path / second).code == 3
    assert blade("compare", there, there, "--gate", tmp_path / "no.toml").code == 3
    runs = two_runs(tmp_path, drawn(1, 30, 2), drawn(2, 30, 2))
    said = blade("compare", "--json", *runs, "--gate", policy_of(tmp_path, "min_tasks = 3\n"), "-o", tmp_path / "out")
    assert (said.code, said.out, said.error["slug"]) == (4, "", "bad-policy")
    assert not (tmp_path / "out").exists()


def policy_of(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


SCORE = '[[metric]]\nname = "score"\nmax_drop = 0.02\n'


@pytest.mark.parametrize(("rate", "verdict", "code"), [(0.1, "FAIL", 1), (1.0, "PASS", 0)])
def test_the_gate_judges_a_fall_and_a_rise(blade: Blade, tmp_path: Path, rate: float, verdict: str, code: int) -> None:
    runs = two_runs(tmp_path, drawn(1, 60, 4, 0.7), drawn(2, 60, 4, rate))
    policy, out = policy_of(tmp_path, SCORE), tmp_path / "out"
    said = blade("compare", *runs, "--gate", policy, "-o", out)
    assert said.code == code, said.err
    assert any(line.startswith(f"Gate         {verdict}: ") for line in screen(said.out.partition("Wrote ")[0]))
    assert f"## Gate: {verdict}" in (out / "gate.md").read_text(encoding="utf-8")
    told = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    VALIDATOR.validate(told)
    assert told["gate"]["verdict"] == verdict
    assert [check["verdict"] for check in told["gate"]["checks"] if check["metric"] == "score"] == [verdict]


def test_an_unchanged_model_passes_and_a_waived_fall_does_not_fail(blade: Blade, tmp_path: Path) -> None:
    policy = policy_of(tmp_path, SCORE.replace("0.02", "0.05"))
    same = two_runs(tmp_path / "same", drawn(1, 300, 8), drawn(2, 300, 8))
    said = blade("compare", "--json", *same, "--gate", policy)
    assert (said.code, json.loads(said.out)["gate"]["verdict"]) == (0, "PASS")
    until = date.today() + timedelta(days=20)
    waived = policy_of(tmp_path, f'{SCORE}[[waiver]]\nmetric = "score"\nreason = "known"\nexpires = {until}\n')
    worse = two_runs(tmp_path / "worse", drawn(1, 60, 4, 0.9), drawn(2, 60, 4, 0.3))
    said = blade("compare", "--json", *worse, "--gate", waived)
    assert said.code == 0
    assert json.loads(said.out)["gate"]["verdict"] != "FAIL"
    expired = policy_of(tmp_path, waived.read_text().replace(str(until), "2020-01-01"))
    assert blade("compare", *worse, "--gate", expired).code == 1


def test_by_a_field_of_the_rows(compared: Compared, blade: Blade, tmp_path: Path) -> None:
    rows = [
        {**row, "prompt_style": "terse"} if row["_ng_rollout_index"] < 2 else {**row, "prompt_style": "wordy", "reward": 1.0}
        for row in drawn(1, 30, 4)
    ]
    path = make_run(tmp_path, rows, name="run")
    one = only(compared(path, "--by", "prompt_style"))
    assert (one["baseline"], one["candidate"]) == ("run[prompt_style=terse]", "run[prompt_style=wordy]")
    terse = [row["reward"] for row in rows if row["prompt_style"] == "terse"]
    assert one["delta"] == pytest.approx(1 - sum(terse) / len(terse))
    assert (one["verdict"], one["verdict_new_tasks"]) == ("improved", "improved")
    assert one["alignment"]["common"]["n"] == 30
    for name in ("wordy", "run[prompt_style=wordy]"):
        other = only(compared(path, "--by", "prompt_style", "--baseline", name))
        assert (other["baseline"], other["candidate"]) == ("run[prompt_style=wordy]", "run[prompt_style=terse]")
        assert other["delta"] == pytest.approx(-one["delta"])
    assert "run[prompt_style=terse] → run[prompt_style=wordy]" in blade("compare", path, "--by", "prompt_style").out


def test_by_the_skills_of_a_row_and_by_a_field_whose_parts_hold_the_same_questions_under_other_keys(
    compared: Compared, tmp_path: Path
) -> None:
    rows = [
        make_row(12 * arm + task, repeat, float(repeat), question=f"q{task}", arm="ab"[arm])
        for arm, task, repeat in product((0, 1), range(12), (0, 1))
    ]
    document = compared("--quick", f"x={make_run(tmp_path, rows)}", "--by", "arm")
    assert len(only(document)["alignment"]["common"]["tasks"]) == 12
    rows = [
        {**row, "skills_ref": {"path": "s", "hash": ("aa11", "bb22")[row["_ng_rollout_index"] % 2], "skills": []}}
        for row in drawn(1, 24, 4)
    ]
    one = only(compared(make_run(tmp_path, rows, name="run"), "--by", "skills_ref.hash"))
    assert (one["baseline"], one["candidate"]) == ("run[skills_ref.hash=aa11]", "run[skills_ref.hash=bb22]")
    (diff,) = one["config_diff"]
    assert (diff["key"], diff["kind"], diff["baseline"], diff["candidate"]) == ("skills_ref.hash", "skills", "aa11", "bb22")
    assert one["separable"] is True


def test_runs_whose_indices_mix_questions_are_compared(compared: Compared, tmp_path: Path) -> None:
    """The diagnosis groups such rows by question; all runs together are grouped as each of them was."""

    def answered(seed: int) -> list[Row]:
        rng, rows = random.Random(seed), []
        for index, repeat in product(range(12), range(4)):
            number = (index + 6 * (repeat % 2)) % 12
            said = number if rng.random() < 0.5 else rng.randrange(100, 1000)
            asked = f"What is number {number}?"
            answers = {"expected_answer": str(number), "extracted_answer": str(said)}
            row = make_row(index, repeat, float(said == number), question=asked, **answers)
            row["responses_create_params"]["input"] = [{"role": "user", "content": asked}]
            row["response"]["output"] = [make_message(f"The answer is {said}")]
            rows.append(row)
        return rows

    document = compared(*two_runs(tmp_path, answered(1), answered(2)))
    doubts = [(one["run"], one["label"]) for one in document["trust"] if one["level"] == "alarm"]
    assert doubts == [("one", "DA"), ("two", "DA")]
    assert_adds_up(only(document))
    assert {term["term"] for term in only(document)["bridge"]} == {"wrong answer"}


def test_three_runs_give_a_matrix_and_in_order_a_trend(compared: Compared, blade: Blade, tmp_path: Path) -> None:
    """Three runs, each of which passes more often."""
    checkpoints = [f"step-{at}={make_run(tmp_path / str(at), drawn(at, 40, 4, 0.2 + 0.35 * at))}" for at in range(3)]
    document = compared(*checkpoints)
    VALIDATOR.validate(document)
    matrix = document["matrix"]
    assert matrix["runs"] == ["step-0", "step-1", "step-2"]
    assert (matrix["n_tasks"], document["series"]) == (40, None)
    assert matrix["verdicts"] == [["", "regressed", "regressed"], ["improved", "", "regressed"], ["improved", "improved", ""]]
    scores = {run["name"]: run["score"] for run in document["runs"]}
    for at, one in enumerate(matrix["runs"]):
        for other_at, other in enumerate(matrix["runs"]):
            if at != other_at:
                assert matrix["deltas"][at][other_at] == pytest.approx(scores[one] - scores[other])
    assert [(one["baseline"], one["candidate"]) for one in document["comparisons"]] == [("step-0", "step-1"), ("step-0", "step-2")]
    for one in document["comparisons"]:
        assert one["p_adjusted"] >= one["tests"][0]["p"]
        assert_adds_up(one)
    assert screen(blade("compare", *checkpoints).out)[0].startswith("BLADE  2 candidates against step-0")
    document = compared(*checkpoints, "--series")
    VALIDATOR.validate(document)
    series = document["series"]
    assert series["runs"] == ["step-0", "step-1", "step-2"]
    assert series["slope"] == pytest.approx((series["checkpoints"][2]["score"] - series["checkpoints"][0]["score"]) / 2)
    assert series["low"] < series["slope"] < series["high"]
    assert series["first_different"] == "step-1"
    assert series["learned"]["n"] > series["forgotten"]["n"]
    lines = screen(blade("compare", *checkpoints, "--series").out)
    assert any(line.startswith("Series") for line in lines)


@pytest.mark.parametrize("cause", ["infra outage", "truncation limit lowered"])
def test_quick_reads_no_trace_and_agrees_on_what_it_says(
    compared: Compared, blade: Blade, pairs: Pairs, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = pairs(cause)
    full = only(compared(pair.baseline, pair.candidate))
    monkeypatch.setattr(single_rows, "traced", Mock(side_effect=AssertionError("a trace was opened")))
    document = compared("--quick", pair.baseline, pair.candidate)
    VALIDATOR.validate(document)
    quick = only(document)
    for key in "delta delta_common verdict verdict_new_tasks tests power alignment flips churn derived config_diff".split():
        assert quick[key] == full[key], key
    assert_adds_up(quick)
    assert [shift for shift in quick["shifts"] if shift["kind"] in ("behaviour", "signature")] == []
    assert any("no trajectory was read" in gap["why"] for gap in document["gaps"])
    screen(blade("compare", "--quick", pair.baseline, pair.candidate).out)


@pytest.mark.parametrize("cause", ["verifier changed", "tasks dropped"])
def test_diagnose_carries_the_same_comparison_with_the_baseline_that_is_named(
    compared: Compared, diagnosed: Blade, pairs: Pairs, cause: str
) -> None:
    runs = pairs(cause).baseline, pairs(cause).candidate
    assert diagnosed(*runs).report["comparisons"] == compared(*runs)["comparisons"]
    if cause == "tasks dropped":
        turned_round = diagnosed(*runs, "--baseline", "candidate").report
        assert turned_round["comparisons"] == compared(*runs[::-1])["comparisons"]


@pytest.mark.parametrize("command", ["compare", "diagnose"])
def test_a_folder_that_cannot_be_written_is_told_before_a_run_is_read(blade: Blade, tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone.jsonl"
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for output in ("/proc/zz", tmp_path / "file" / "x"):
        said = blade(command, gone, gone, "-o", output)
        assert "cannot-write" in said.err
    assert "no-such-path" in blade(command, gone, gone, "-o", tmp_path / "new" / "deep").err
    assert not (tmp_path / "new").exists()


# -- exchanged ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", some_slow(CAUSES, "tasks dropped", "verifier changed"))
def test_exchanging_the_runs_turns_every_sign_and_no_meaning(compared: Compared, pairs: Pairs, cause: str) -> None:
    pair = pairs(cause)
    runs = f"one={pair.baseline}", f"two={pair.candidate}"
    one, other = only(compared(*runs)), only(compared(*runs[::-1]))
    assert one["delta"] != 0
    assert_mirrored(one, other)


def rough(folder: Path, unbounded: bool) -> tuple[str, str]:
    """Runs that share some tasks: others are added, removed, modified or lost; repeats, limits, ends differ."""
    rng = random.Random(8)
    specs = []
    for name, others, repeats, lost in (("one", (60, 61, 62, 63), 2, (3, 4)), ("two", (70, 71, 72), 3, (8,))):
        rows = []
        for task in (*range(40), *others):
            text = f"question {task}" + (" in other words" if name == "two" and task in (5, 6, 7) else "")
            for repeat in range(repeats):
                reward = rng.choice((0.0, 0.25, 1.0, 1.0)) + (0.2 if name == "two" and task % 3 == 0 else 0.0)
                row = make_row(
                    task, repeat, 3 * reward - 1 if unbounded else min(reward, 1.0),
                    question=text, expected_answer=f"gold {text}", category=f"kind {task % 3}", level=f"level {task % 2}",
                    response=make_response(model=f"sim-{name}"),
                )  # fmt: skip
                temperature = 0.5 if name == "one" else 1.0
                row["responses_create_params"] = {"input": [{"role": "user", "content": text}], "temperature": temperature}
                rows.append(row)
        kept = [row for row in rows if row["_ng_task_index"] not in lost and rng.random() < 0.95]
        for row in rng.sample(kept, 6):
            row |= {"reward": -1.0 if unbounded else 0.0, "error": "429 Too Many Requests: rate limit exceeded"}
        specs.append(f"{name}={make_run(folder / name, kept, inputs=map(make_input, rows))}")
    return specs[0], specs[1]


@pytest.mark.parametrize("unbounded", [False, True])
@pytest.mark.parametrize("options", [(), ("--quick",)])
def test_exchanging_rough_runs_turns_every_sign(compared: Compared, tmp_path: Path, unbounded: bool, options: tuple[str, ...]) -> None:
    runs = rough(tmp_path, unbounded)
    one, other = only(compared(*runs, *options)), only(compared(*runs[::-1], *options))
    sizes = {"common": 34, "added": 3, "removed": 4, "modified": 3, "missing_baseline": 2, "missing_candidate": 1}
    assert {kind: one["alignment"][kind]["n"] for kind in sizes} == sizes
    assert {term["term"] for term in one["bridge"]} >= {
        "added tasks", "removed tasks", "modified tasks", "tasks the candidate lost", "tasks the baseline lost",
    }  # fmt: skip
    assert_adds_up(one)
    assert_adds_up(other)
    assert_mirrored(one, other)


def test_the_mirror_sees_a_sign_that_does_not_turn(compared: Compared, pairs: Pairs) -> None:
    pair = pairs("one slice worse")
    one = only(compared(f"one={pair.baseline}", f"two={pair.candidate}"))
    for spoil in (
        lambda found: found["bridge"][0].update(value=-found["bridge"][0]["value"]),
        lambda found: found.update(verdict=word(found["verdict"])),
        lambda found: found["tests"][0].update(low=found["tests"][0]["low"] + 1e-6),
        lambda found: found["views"][0]["terms"][0].update(p=0.5),
    ):
        other = turned(one)
        assert_mirrored(one, other)
        spoil(other)
        with pytest.raises(AssertionError):
            assert_mirrored(one, other)


# -- the same run, other tasks --------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--quick",)])
def test_a_run_held_against_itself_is_recognised(
    compared: Compared, blade: Blade, pairs: Pairs, tmp_path: Path, options: tuple[str, ...]
) -> None:
    pair = pairs("nothing")
    rows = pair.baseline.read_bytes().splitlines(keepends=True)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(b"".join(random.Random(3).sample(rows, len(rows))))
    one = only(compared(pair.baseline, copy, *options))
    assert one["identical"] is True
    assert (one["verdict"], one["verdict_new_tasks"]) == ("equivalent", "equivalent")
    assert one["delta"] == one["delta_common"] == 0
    for terms in (one["bridge"], *(view["terms"] for view in one["views"])):
        assert terms
        assert [term["value"] for term in terms if term["value"] != 0] == []
    assert (one["movers"], one["flips"]) == ([], [])
    assert (one["churn"]["gains"], one["churn"]["losses"]) == (0, 0)
    assert {shift["change"] for shift in one["shifts"]} <= {0}
    said = blade("compare", pair.baseline, copy, *options).out
    assert "equivalent: both runs hold the same rows" in said


def test_runs_without_a_common_task_are_refused_with_a_reason(blade: Blade, compared: Compared, tmp_path: Path) -> None:
    other = [make_row(task, repeat, 1.0) for task in range(100, 112) for repeat in (0, 1)]
    runs = two_runs(tmp_path, drawn(1, 12, 2), other)
    out = tmp_path / "out"
    said = blade("compare", *runs, "-o", out)
    for warned in (said, blade("compare", "--json", *runs)):
        assert warned.code == 0, warned.err
        (warning,) = [line for line in warned.err.splitlines() if line.startswith("warning:")]
        assert "two was not compared with one" in warning
    assert "warning:" not in blade("compare", runs[0], runs[0].replace("one=", "two=")).err
    lines = screen(said.out.partition("Wrote ")[0])
    assert any(line.startswith("Refused      the runs have no task in common") for line in lines)
    document = compared(*runs)
    VALIDATOR.validate(document)
    one = only(document)
    assert "no task in common" in one["refused"]
    assert (one["delta"], one["verdict"], one["verdict_new_tasks"], one["bridge"]) == (None, None, None, [])
    assert (one["alignment"]["added"]["n"], one["alignment"]["removed"]["n"]) == (12, 12)
    assert "Not compared" in (out / "compare.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("cause", some_slow(["infra outage", "one failure mode fixed", "tasks dropped"], "infra outage"))
def test_order_shards_and_compression_change_nothing(blade: Blade, pairs: Pairs, tmp_path: Path, cause: str) -> None:
    pair, compared = pairs(cause), by_json(blade)
    plain = of_rows(compared(f"a={pair.baseline}", f"b={pair.candidate}"))
    rng = random.Random(4)
    lines = {name: path.read_bytes().splitlines() for name, path in (("a", pair.baseline), ("b", pair.candidate))}
    forms: dict[str, list[str]] = {"shards": [], "packed": []}
    for name, held in lines.items():
        mixed = rng.sample(held, len(held))
        for at in range(3):
            make_run(tmp_path / "shards" / name, mixed[at::3], name=f"part-{at}", compress="gz" if at == 1 else None)
        forms["shards"].append(f"{name}={tmp_path / 'shards' / name}/part-*.jsonl*")
        mixed = rng.sample(held, len(held))
        forms["packed"].append(f"{name}={make_run(tmp_path / 'packed' / name, mixed, compress='zst')}")
    for form, runs in forms.items():
        assert of_rows(compared(*runs)) == plain, form


# -- what is claimed ------------------------------------------------------------------------------


def test_a_fall_of_everything_is_no_pass_and_an_unchanged_model_is_no_failure(compared: Compared, tmp_path: Path) -> None:
    passing, failing = (make_rows(dict.fromkeys(range(10), rewards)) for rewards in ([1.0] * 5, [1.0] + [0.0] * 4))
    fall = only(compared(*two_runs(tmp_path / "fall", passing, failing)))
    assert (fall["verdict"], fall["verdict_new_tasks"]) == ("regressed", "regressed")
    same = only(compared(*two_runs(tmp_path / "same", drawn(1, 400, 8), drawn(2, 400, 8))))
    assert (same["verdict"], same["verdict_new_tasks"]) == ("equivalent", "equivalent")
    assert same["movers"] == []


def test_runs_judged_by_different_thresholds_are_refused_until_one_is_given(compared: Compared, tmp_path: Path) -> None:
    half = [{**row, "reward": row["reward"] / 2} for row in drawn(2, 20, 2)]
    runs = two_runs(tmp_path, drawn(1, 20, 2), half)
    (tmp_path / "two" / "blade.toml").write_text('name = "x"\npass_threshold = 0.5\n')
    assert "--pass-threshold" in only(compared(*runs))["refused"]
    second = only(compared(*runs, "--pass-threshold", "0.5"))
    assert (second["refused"], second["delta"] is None) == (None, False)


def test_a_text_is_known_again_whichever_form_is_the_commoner(compared: Compared, tmp_path: Path) -> None:
    """Two forms of one message stand in both runs; which of them is common differs."""
    runs = []
    for n_first in (2, 20):
        rows = drawn(1, 40, 2, 1.0)
        for at, row in enumerate(rows[:30]):
            ending = "no change" if at < n_first else f"green lamp {60 + at}"
            row |= {"reward": 0.0, "verifier_message": f"The records differ: expected blue lamp {20 + at}, found {ending}."}
        runs.append(rows)
    one = only(compared(*two_runs(tmp_path, *runs)))
    told = {shift["name"]: shift["status"] for shift in one["shifts"] if "records differ" in shift["name"]}
    assert not {"appeared", "disappeared"} & set(told.values()), told


def test_an_error_is_counted_on_every_row_that_shows_it(compared: Compared, tmp_path: Path) -> None:
    runs = []
    for n_broken in (45, 0):
        rows = make_rows({task: [float(task >= n_broken)] * 20 for task in range(60)})
        runs.append([{**row, "stderr": "fatal: no space left on device"} if row["reward"] == 0 else row for row in rows])
    one = only(compared(*two_runs(tmp_path, *runs)))
    (shift,) = [shift for shift in one["shifts"] if shift["kind"] == "signature" and "no space" in shift["name"]]
    assert (shift["baseline"], shift["candidate"], shift["status"]) == (pytest.approx(0.75), 0, "disappeared")
