"""Validation: the nonsense package fails reason by reason, each planted fault has its line, nothing crashes it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.package import golden_checks as metrics
from blade.package.golden_checks import anchor_checks
from blade.package.layout import golden
from blade.package.layout import write_text as put
from blade.package.report_score import Bench, Case
from blade.package.rollout_checks import NO_OBJECT, NO_REWARD, ODD_REWARD, REWARD, UNPARSED, scan_file
from tests.case_tables import cases
from tests.conftest import Blade
from tests.package.conftest import change_anchors, files
from tests.package.test_skill import INVENTED, UNRELATED

Failures = Callable[..., list[str]]


def write_nonsense(folder: Path) -> Path:
    """618 bytes that pass every check of form."""
    for name, text in cases(__file__, "nonsense"):
        put(folder / name, text)
    return folder


def test_the_nonsense_package_fails_with_a_line_for_each_reason(tmp_path: Path, failures: Failures) -> None:
    found = failures(write_nonsense(tmp_path / "nonsense"))
    assert set(cases(__file__, "reasons_of_nonsense")) <= set(found)
    assert any("8 of 8 anchor facts name nothing that could be looked up" in told for told in found)
    assert len(found) == len(set(found)), "no reason twice"


def test_the_package_of_a_person_is_ready_for_people_and_programs(package: Path, blade: Blade) -> None:
    result = blade("package", "validate", "--benchmark-dir", package)
    assert [line for line in result.out.splitlines() if line.startswith("[FAIL]")] == []
    assert result.code == 0
    told = blade("package", "validate", "--benchmark-dir", package, "--phase", "rollouts", "--json")
    found = json.loads(told.out)
    assert (told.code, found["schema"], found["passed"], found["readiness"]) == (0, "blade.validate/1", True, [])
    assert {check["phase"] for check in found["checks"]} == {"rollouts"}


def test_a_draft_is_not_ready_until_a_person_reviews_it(package: Path, made: Path, blade: Blade) -> None:
    for path in files(package):
        shutil.copyfile(made / "golden_reports" / path.name, path)
    result = blade("package", "validate", "--benchmark-dir", package)
    failed = [line for line in result.out.splitlines() if line.startswith("[FAIL]")]
    name = "sim_model_a_golden_report.md"
    how = "read it against the rollouts, then delete its line that begins with <!-- draft:"
    assert f"[FAIL] {name}: draft: not reviewed; {how}" in failed
    assert "sim_model_a_anchor_facts.json: anchor facts are not reviewed" in result.out
    assert "[FAIL] draft: not reviewed (1 golden report; see above how to clear the mark)" in failed
    assert result.code == 1


@pytest.mark.parametrize("how", ["mark deleted", "all marks deleted", "blade draft", "numbers changed"])
def test_a_draft_whose_marks_were_deleted_is_still_a_draft(
    package: Path, made: Path, failures: Failures, blade: Blade, tmp_path: Path, how: str
) -> None:
    text = (made / "golden_reports" / "sim_model_a_golden_report.md").read_text(encoding="utf-8")
    text = "\n".join(line for line in text.split("\n") if "<!-- draft:" not in line)
    if how == "blade draft":
        rollouts = package / "rollouts" / "sim_model_a_rollouts.jsonl"
        assert blade("draft", f"sim_model_a={rollouts}", "-o", tmp_path / "draft.md").code == 0
        text = (tmp_path / "draft.md").read_text(encoding="utf-8")
    if how != "mark deleted":
        text = re.sub(r"(?s)<!--blade claims.*?-->|<!--c\d+-->", "", text)
    if how == "numbers changed":
        text = text.replace("67.2%", "67.3%")
    files(package)[0].write_text(text, encoding="utf-8")
    found = [line for line in failures(package, "golden") if "draft: not reviewed" in line]
    assert len(found) == 1
    assert ("the engine's marks" if how == "mark deleted" else "those that blade writes itself") in found[0]


def test_an_anchor_must_be_true_of_the_rows_and_reviewed(package: Path, failures: Failures) -> None:
    facts = json.loads(files(package)[1].read_text(encoding="utf-8"))["anchor_facts"]
    change_anchors(package, review_required=True)
    how = 'strike weak facts, then set "review_required" to false'
    assert failures(package, "golden") == [f"sim_model_a_anchor_facts.json: anchor facts are not reviewed: {how}"]
    false = facts[0] | {"id": "F", "value": 3, "fact": "Three tries of task 2 stop."}
    change_anchors(package, review_required=False, anchor_facts=[*facts, false])
    why = "the rollouts do not bear out F (the rows give 9, the anchor says 3)"
    assert failures(package, "golden") == [f"sim_model_a_anchor_facts.json: {why}"]


def test_random_words_with_true_numbers_are_no_golden_report(package: Path, failures: Failures) -> None:
    rng = Random(1)

    def some(vocabulary: list[str], n: int) -> str:
        return " ".join(rng.choices(vocabulary, k=n))

    parts = [f"## {some(UNRELATED, 2)}\n\n{some(UNRELATED, 15)}.\n\n{some(INVENTED, 12)}.\n" for _ in range(9)]
    true = "pass@1 is 67.2% over 16 tasks, 64 rollouts.\n\nTask 1, task 2, task 3"
    text = "\n".join(["# Words\n", *parts, f"{true} {some(INVENTED, 5)}.\n"])
    files(package)[0].write_text(text, encoding="utf-8")
    found = failures(package, "golden")
    assert any("0 quotations and citations about single tasks supported" in line for line in found)
    low = r"scores 0\.[01]\d by its own anchor facts, at least 0\.7 is needed: 0 of 9 are met, not B1, "
    assert any(re.search(low, line) for line in found), found


def test_a_copy_in_another_order_is_a_copy_and_other_tasks_are_not_comparable(package: Path, failures: Failures) -> None:
    first, second = (package / "rollouts" / f"sim_model_{name}_rollouts.jsonl" for name in "ab")
    lines = first.read_bytes().splitlines(keepends=True)
    second.write_bytes(b"".join(reversed(lines)))
    assert failures(package, "rollouts") == [
        "sim_model_b_rollouts.jsonl holds the same rows as sim_model_a_rollouts.jsonl",
        "At least two scored rollout files: 1",
    ]
    second.write_bytes(b"".join(lines).replace(b'"reward":1.0', b'"reward":0.0', 1))
    assert failures(package, "rollouts") == [], "one reward makes it another run"
    path = package / "rollouts" / "sim_model_b_rollouts.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        other = f"else {row['_ng_task_index']}"
        row |= dict.fromkeys(("task_id", "instruction", "expected_answer"), other)
        row["responses_create_params"] = {"input": [{"role": "user", "content": other}]}
        row["_ng_task_index"] += 1000
    put(path, "".join(json.dumps(row) + "\n" for row in rows))
    for beside in path.parent.glob("sim_model_b_rollouts_*"):
        beside.unlink()
    (told,) = failures(package, "rollouts")
    assert told.endswith("only share 0 of 16 tasks")


@pytest.fixture(scope="module")
def expected(made: Path, desk: tuple[Case, Bench]) -> dict[str, tuple[float, ...]]:
    """What the rollouts of the first run say under each key of a sidecar."""
    worlds, path = desk[1].worlds, made / "golden_reports" / "sim_model_a_golden_report_metrics.json"
    assert worlds is not None
    return metrics.expected(worlds, [*json.loads(path.read_text(encoding="utf-8")), "num_tasks"])


def told_of(sidecar: dict[str, Any], expected: dict[str, tuple[float, ...]]) -> list[str]:
    checks = [*metrics.identity_checks("m.json", sidecar), *metrics.match_checks("m.json", sidecar, expected)]
    return [check.text for check in checks if not check.passed]


@pytest.mark.parametrize(("key", "value", "told"), cases(__file__, "metrics_that_the_rollouts_do_not_give"))
def test_metrics_that_the_rollouts_do_not_give(
    made: Path, expected: dict[str, tuple[float, ...]], key: str, value: object, told: str
) -> None:
    path = made / "golden_reports" / "sim_model_a_golden_report_metrics.json"
    sidecar = json.loads(path.read_text(encoding="utf-8"))
    assert told_of(sidecar, expected) == []
    (found,) = told_of(sidecar | ({"model": None} if key == "model_name" else {}) | {key: value}, expected)
    assert told in found


@pytest.mark.parametrize(("value", "stands"), [(0.672, True), (0.67, True), (0.68, False), (0.66, False)])
def test_a_sidecar_may_be_rounded_more_than_its_report(value: float, stands: bool) -> None:
    (told,) = metrics.in_report("m.json", {"pass_at_1": value}, "The model scores 67.2% pass@1 on 16 tasks.")
    assert told.passed is stands


def test_a_baseline_without_numbers_a_report_that_its_rollouts_contradict_and_one_without(package: Path, failures: Failures) -> None:
    files(package)[2].write_text("# x\n\n## Results\n", encoding="utf-8")
    (told,) = failures(package, "golden")
    assert told.startswith("sim_model_a_shallow.md: holds no table with a number")
    path = files(package)[0]
    path.write_text(path.read_text(encoding="utf-8").replace("16<!--blade: tasks-->", "61<!--blade: tasks-->", 1), encoding="utf-8")
    assert any(re.match(r"sim_model_a_golden_report\.md: line .*61", line) for line in failures(package, "golden"))
    path.rename(path.with_name("stranger_golden_report.md"))
    assert set(cases(__file__, "reasons_of_a_stranger")) <= set(failures(package, "golden"))


@pytest.mark.parametrize(("facts", "told"), cases(__file__, "anchors_that_are_none"))
def test_anchors_that_are_none(tmp_path: Path, facts: list[object], told: str) -> None:
    parts = golden(tmp_path / "a_golden_report.md")
    parts.anchors.write_text(json.dumps({"anchor_facts": facts}), encoding="utf-8")
    failed = [check.text for check in anchor_checks(parts, 0, None, "") if not check.passed]
    assert any(told in line for line in failed), failed


# ---- Whatever lies in the folder ---------------------------------------------------------------

ODD_LINES = [b"7", b"null", b'"text"', b"[]", b"{", b"\xff\xfe", b'{"reward": NaN, "task_id": "t"}', b"[" * 3000]


@pytest.mark.parametrize("line", ODD_LINES)
def test_a_line_that_is_no_row_is_counted(package: Path, failures: Failures, line: bytes) -> None:
    path = package / "rollouts" / "sim_model_a_rollouts.jsonl"
    path.write_bytes(path.read_bytes() + line + b"\n")
    (told,) = failures(package, "rollouts")
    assert told.startswith("sim_model_a_rollouts.jsonl: 1 ")
    assert "line 65" in told


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"null", b'"x"', b"{", b"[" * 5000, b'{"pass_at_1": 1e999}'])
@pytest.mark.parametrize("name", ["golden_report_metrics.json", "anchor_facts.json"])
def test_json_that_is_not_what_it_should_be(tmp_path: Path, failures: Failures, name: str, content: bytes) -> None:
    folder = write_nonsense(tmp_path / "p")
    for path in (folder / "rollouts").iterdir():
        path.unlink()
    before = failures(folder, "golden")
    (folder / "golden_reports" / f"a_{name}").write_bytes(content)
    found = [line for line in failures(folder, "golden") if line not in before]
    assert found
    assert all(line.startswith(f"a_{name}: ") for line in found)


def test_a_folder_that_is_not_there(tmp_path: Path, blade: Blade) -> None:
    told = blade("package", "validate", "--benchmark-dir", tmp_path / "nowhere", "--phase", "all")
    assert told.code == 1
    assert told.out.startswith(f"[FAIL] {tmp_path / 'nowhere'}: no such folder\n")
    assert set(cases(__file__, "lines_of_an_empty_package")) <= set(told.out.splitlines())


def test_a_line_that_is_too_long_is_counted_and_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blade.package.rollout_checks.MAX_LINE", 40)
    rows = ['{"task_id": "a", "reward": 1}', '{"task_id": "b", "x": "' + "y" * 200 + '"}', '{"task_id": "c"}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    found = scan_file(tmp_path / "a.jsonl")
    assert (found.records, found.counts[UNPARSED], found.first[UNPARSED]) == (2, 1, 2)
    assert set(found.tasks) == {"a", "c"}


PLAIN = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8)
KEYS = st.sampled_from(["reward", "score", "task_id", "response", "x"])
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8)


@given(rows=st.lists(JSON, max_size=6))
@settings(max_examples=60)
def test_the_lines_of_a_file_add_up(rows: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("scan") / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = scan_file(path)
    assert found.records + found.counts[UNPARSED] + found.counts[NO_OBJECT] == len(rows)
    assert found.counts[REWARD] + found.counts[NO_REWARD] + found.counts[ODD_REWARD] == found.records
    backwards = path.with_name("b.jsonl")
    backwards.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)), encoding="utf-8")
    assert scan_file(backwards).content == found.content
