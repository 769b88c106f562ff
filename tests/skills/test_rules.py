"""Every skill folder against the Agent Skills rules, by a validator that is not ours, and by what it leaves out."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import skills_ref
import yaml

from blade.agent.dossier.budget import tokens
from blade.agent.skills.installation import skill_at
from blade.model import Cause
from blade.report.draft_report import SECTIONS
from tests.conftest import ROOT, Blade

OURS = ROOT / ".agents" / "skills" / "nemo-gym-blade-analysis"
FOLDERS = [
    *sorted((ROOT / ".agents" / "skills").glob("*/SKILL.md")),
    *sorted((ROOT / "benchmarks").glob("*/skill/SKILL.md")),
]


def problems(folder: Path, to: Path) -> list[str]:
    """What the validator says of a skill under its own name: a package keeps it in a folder called `skill`."""
    one = skill_at(folder)
    if folder.name == one.name:
        return list(skills_ref.validate(folder))
    shutil.copytree(folder, to / one.name)
    return list(skills_ref.validate(to / one.name))


@pytest.mark.parametrize("page", FOLDERS, ids=lambda page: page.relative_to(ROOT).parent.as_posix())
def test_skills_of_the_repository(page: Path, tmp_path: Path) -> None:
    assert problems(page.parent, tmp_path) == []


@pytest.mark.parametrize("name", ["My Bench (v2)", "x" * 90, "Ünïcode 基准", '<b>bold</b>: "quoted" # not a comment', "a: - b"])
def test_a_skill_that_was_just_written_whatever_the_benchmark_is_called(name: str, here: Path, tmp_path: Path, blade: Blade) -> None:
    assert blade("skill", "new", name, "--run", "first", "-o", "skills").code == 0
    (page,) = (here / "skills").glob("*/SKILL.md")
    assert problems(page.parent, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: nemo-gym-blade-analysis", "name: Nemo-Gym"),
        ("name: nemo-gym-blade-analysis", "name: nemo--gym"),
        ("name: nemo-gym-blade-analysis", "name: another"),
        ('description: "', 'description: "' + "x" * 1024),
        ('compatibility: "', 'compatibility: "' + "x" * 500),
        ("license: Apache-2.0", "licence: Apache-2.0"),
    ],
)
def test_the_validator_sees_a_broken_rule(old: str, new: str, tmp_path: Path) -> None:
    folder = tmp_path / OURS.name
    shutil.copytree(OURS, folder)
    page = folder / "SKILL.md"
    text = page.read_text(encoding="utf-8")
    assert old in text
    assert list(skills_ref.validate(folder)) == []
    page.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert list(skills_ref.validate(folder)) != []


def test_the_skill_is_cheap_to_load_and_its_references_are_one_level_deep() -> None:
    text = (OURS / "SKILL.md").read_text(encoding="utf-8")
    references = {path.name: path.read_text(encoding="utf-8") for path in (OURS / "references").iterdir()}
    assert len(text.splitlines()) < 500
    assert tokens(text) < 2500
    assert set(re.findall(r"`references/([\w.]+)`", text)) == set(references)
    for page in references.values():
        assert tokens(page) < 1500
        assert "references/" not in page


def test_every_cause_and_every_section_of_a_report_is_named() -> None:
    def rows(name: str, pattern: str) -> list[str]:
        return re.findall(pattern, (OURS / "references" / name).read_text(encoding="utf-8"), re.MULTILINE)

    assert {cause.value for cause in Cause} == set(rows("labels.md", r"^\| (\w+)")) - {"Cause"}
    sections = rows("report_template.md", r"^\| ([A-Z][\w -]+?) \|")
    assert sections[1 : len(SECTIONS) + 1] == list(SECTIONS)


def test_evals_hold_trigger_and_task_tests_and_codex_finds_its_metadata() -> None:
    held = json.loads((OURS / "evals" / "evals.json").read_text(encoding="utf-8"))
    triggers = {one["query"]: one["should_trigger"] for one in held["triggers"]}
    assert (held["skill_name"], len(triggers)) == (OURS.name, len(held["triggers"]))
    assert min(sum(triggers.values()), len(triggers) - sum(triggers.values())) >= 8
    assert [one["id"] for one in held["evals"]] == list(range(1, len(held["evals"]) + 1))
    assert all(one["prompt"] and one["expected_output"] and one["expectations"] for one in held["evals"])
    metadata = yaml.safe_load((OURS / "agents" / "openai.yaml").read_text(encoding="utf-8"))
    assert 25 <= len(metadata["interface"]["short_description"]) <= 64
    assert f"${OURS.name}" in metadata["interface"]["default_prompt"]
    assert metadata["policy"] == {"allow_implicit_invocation": True}
