"""Packages of strangers: links, devices, huge and odd files; nothing outside is read, written or shared."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blade.agent.skills import keys, split
from blade.package import layout as files
from blade.package.golden_checks import identity_checks, match_checks
from blade.package.layout import layout
from blade.package.rollout_checks import rollout_checks
from blade.package.shallow import make_shallow
from blade.package.sharing import sanitised_checks
from blade.package.validation import validate, validate_skill
from blade.tables.index import Silent
from tests.case_tables import cases
from tests.conftest import Blade

SECRET = "the words of another folder"
REPORT = "# Report\n\n## Results\n\n| Model | pass@1 |\n|---|---|\n| a | 50.0% |\n"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that no package may reach, with a file for every part of one."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("notes.txt", "SKILL.md", "a_golden_report.md"):
        (folder / name).write_text(f"# x\n\n{SECRET}\n", encoding="utf-8")
    (folder / "a_rollouts.jsonl").write_text(json.dumps({"task_id": "t", "reward": 1, "said": SECRET}) + "\n")
    return folder


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A small package, and no good one."""
    folder = tmp_path / "bench"
    files.write_text(folder / "skill" / "SKILL.md", "---\nname: bench\n---\n# x\n")
    files.write_text(folder / "rollouts" / "b_rollouts.jsonl", '{"task_id": "t", "reward": 1}\n')
    files.write_text(folder / "golden_reports" / "b_golden_report.md", REPORT)
    return folder


@pytest.mark.parametrize(("place", "to"), cases(__file__, "links"))
def test_no_link_of_a_package_is_shared_or_passes_for_looked_through(
    stranger: Path, outside: Path, blade: Blade, place: str, to: str
) -> None:
    (stranger / place).unlink(missing_ok=True)
    (stranger / place).parent.mkdir(parents=True, exist_ok=True)
    (stranger / place).symlink_to(outside / to)
    if place != "rollouts/blade.toml":  # a policy that cannot be read has its own line
        told = [check.text for check in sanitised_checks(layout(stranger)) if not check.passed]
        assert f"{place} is a link, and what it leads to is not shared" in told
    blade("package", "sanitize", "--benchmark-dir", stranger, "-o", stranger.parent / "shared")
    shared = [path for path in (stranger.parent / "shared").rglob("*") if path.is_file() or path.is_symlink()]
    assert not [path for path in shared if path.is_symlink() or SECRET in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("folder", ["skill", "golden_reports"])
def test_a_clean_package_is_not_written_through_a_link(stranger: Path, outside: Path, blade: Blade, folder: str) -> None:
    target, before = stranger.parent / "shared", sorted(path.name for path in outside.iterdir())
    target.mkdir()
    (target / folder).symlink_to(outside)
    result = blade("package", "sanitize", "--benchmark-dir", stranger, "-o", target, "--force")
    assert (result.code, "would be written through" in result.err) == (2, True)
    assert sorted(path.name for path in outside.iterdir()) == before
    assert [path.name for path in target.iterdir()] == [folder], "nothing was put in place"


def test_drafts_are_not_written_through_links(stranger: Path, outside: Path, blade: Blade) -> None:
    source, link = stranger / "golden_reports" / "b_golden_report.md", stranger / "link"
    before = (outside / "notes.txt").read_bytes()
    link.symlink_to(outside / "notes.txt")
    with pytest.raises(OSError, match="symbolic links"):
        make_shallow(source, link, force=True)
    words = ("--golden", source, "--benchmark", "x", "--model-name", "m", "--output", link, "--force")
    assert blade("package", "extract-anchor-facts", *words).code not in (0, 70)
    assert (outside / "notes.txt").read_bytes() == before
    new = stranger.parent / "new"
    new.mkdir()
    (new / "rollouts").symlink_to(outside)
    result = blade("package", "init", new, "--force", "--run", stranger / "rollouts" / "b_rollouts.jsonl")
    assert (result.code, "would be written through" in result.err) == (2, True)


@pytest.mark.parametrize("place", ["rollouts/a.jsonl", "golden_reports/a_golden_report.md", "skill/SKILL.md"])
@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "circle"])
def test_what_is_no_file_is_no_part_of_a_package(stranger: Path, place: str, kind: str) -> None:
    """Nothing is read of it: a pipe would wait for ever, and a device never ends."""
    path = stranger / place
    path.unlink(missing_ok=True)
    {
        "device": lambda: path.symlink_to("/dev/zero"), "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir, "circle": lambda: path.symlink_to(path.name),
    }[kind]()  # fmt: skip
    parts = layout(stranger)
    assert path not in (*parts.rollouts, parts.skill, *(parts.report for parts in parts.goldens))
    assert validate_skill(stranger).checks


def test_a_huge_report_is_refused_by_its_size(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stranger / "golden_reports" / "b_golden_report.md"
    os.truncate(path, files.MAX_SIZE + 1)  # a hole: it takes no room
    with pytest.raises(files.Broken, match=r"more than 67,108,864 bytes"):
        files.read_text(path)
    texts = [check.text for _, check in validate(stranger, "golden", 8, Silent()).checks]
    assert "b_golden_report.md: has more than 67,108,864 bytes" in texts


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nname: bench\n"


@pytest.mark.parametrize("block", [BOMB, "name: " + "&x " * 50_000, "name: !!python/object/apply:os.system [id]", "{" * 50_000])
def test_frontmatter_is_read_as_text(block: str) -> None:
    """No anchor is followed, no tag is made, nothing nests: a name is what stands on its line."""
    head, _ = split(f"---\n{block}\n---\nbody")
    values = keys(head or "")
    assert all(isinstance(value, str) for value in values.values())
    assert sum(map(len, values.values())) <= len(block)


@pytest.mark.parametrize("number", cases(__file__, "odd_numbers"))
def test_odd_numbers_crash_no_check(tmp_path: Path, number: str) -> None:
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "a.jsonl").write_text(f'{{"task_id": "t", "reward": {number}}}\n')
    assert any("reward" in check.text for check in rollout_checks(layout(tmp_path), Silent()))
    sidecar = json.loads(f'{{"model": "m", "benchmark": "b", "pass_at_1": {number}, "total_tasks": {number}}}')
    expected = {"pass_at_1": [0.5], "total_tasks": [16.0]}
    checks = [*identity_checks("m.json", sidecar), *match_checks("m.json", sidecar, expected)]
    assert not all(check.passed for check in checks) or number in ("null", "true")


@pytest.mark.parametrize("name", cases(__file__, "names_of_files"))
def test_a_name_stays_on_its_line_and_steers_nothing(tmp_path: Path, name: str) -> None:
    files.write_text(tmp_path / "rollouts" / f"{name}.jsonl", '{"reward":"\\u001b[2J\\u202e","task_id":1}\n7\n')
    files.write_text(tmp_path / "golden_reports" / f"{name}_golden_report.md", "# x\n")
    lines = list(validate(tmp_path, "all", 8, Silent()).lines())
    assert all("\n" not in line and "\x1b" not in line and "\u202e" not in line for line in lines)
    assert not [line for line in lines if line.startswith("[PASS] D1")]


@pytest.mark.parametrize("model", ["../../outside/a", "/etc/passwd", "a/../../outside/a", "\x00", ".", ""])
def test_a_sidecar_names_no_path(stranger: Path, outside: Path, model: str, failures: Callable[..., list[str]]) -> None:
    report = stranger / "golden_reports" / "c_golden_report.md"
    files.write_text(report, REPORT)
    sidecar = json.dumps({"model_name": model, "benchmark": model, "pass_at_1": 0.5})
    files.write_text(report.with_name("c_golden_report_metrics.json"), sidecar)
    files.write_text(stranger / "rollouts" / "d.jsonl", '{"task_id": "t", "reward": 1}\n')
    parts = layout(stranger)
    chosen = files.rollouts_of(parts.goldens[-1], parts.rollouts, [model])
    assert chosen is None or chosen.parent == stranger / "rollouts"
    assert not [line for line in failures(stranger, "golden") if SECRET in line]
