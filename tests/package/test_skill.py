"""The skill of a package: frontmatter by the Agent Skills rules, sections that are there and filled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from blade.agent import skills as frontmatter
from blade.package.skill_checks import SECTIONS
from tests.case_tables import cases

Failures = Callable[..., list[str]]
PERSON = Path(__file__).with_name("person_skill.md").read_text(encoding="utf-8")  # short and true
FIRST, MIDDLE = "ba ke li mo nu ra si to ve".split(), "lar ven dic mos".split()
INVENTED = [a + b + c for a in FIRST for b in MIDDLE for c in ("et", "in", "us")]
UNRELATED = cases(__file__, "unrelated")[0].split()


def changed(package: Path, old: str, new: str) -> Path:
    path = package / "skill" / "SKILL.md"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return package


def test_the_draft_passes(package: Path, failures: Failures) -> None:
    assert failures(package, "skill") == []


@pytest.mark.parametrize(("name", "reason"), cases(__file__, "names_that_break_a_rule"))
def test_names_that_break_a_rule(package: Path, failures: Failures, name: str, reason: str) -> None:
    (told,) = failures(changed(package, "name: sim-help-desk", f"name: {name}"), "skill")
    assert reason in told


@pytest.mark.parametrize(
    "name", ["skill", "sim-help-desk-analysis", '"sim-help-desk"', "sim-help-desk  # the benchmark"]
)
def test_names_that_break_none(package: Path, failures: Failures, name: str) -> None:
    assert failures(changed(package, "name: sim-help-desk", f"name: {name}"), "skill") == []


@pytest.mark.parametrize(("description", "reason"), cases(__file__, "descriptions_that_break_a_rule"))
def test_descriptions_that_break_a_rule(
    package: Path, failures: Failures, description: str, reason: str
) -> None:
    path = package / "skill" / "SKILL.md"
    head, body = frontmatter.split(path.read_text(encoding="utf-8"))
    assert head is not None
    path.write_text(f"---\nname: sim-help-desk\ndescription: {description}\n---\n{body}", encoding="utf-8")
    (told,) = failures(package, "skill")
    assert reason in told


@pytest.mark.parametrize(
    "title", ["Overview", "Input schema", "Workflow funnel", "Failure taxonomy", "Report template"]
)
def test_a_section_that_is_not_there(package: Path, failures: Failures, title: str) -> None:
    assert failures(changed(package, f"## {title}\n", "## Miscellany\n"), "skill") == [
        f"SKILL.md lacks the section {title}"
    ]


def test_a_section_that_says_nothing(package: Path, failures: Failures) -> None:
    assert failures(
        changed(package, "## Overview\n", "## Overview\n\nSee below.\n\n## Background\n"), "skill"
    ) == ["SKILL.md says nothing under Overview"]


def test_a_placeholder(package: Path, failures: Failures) -> None:
    (told,) = failures(
        changed(package, "## Overview\n", "## Overview\n\nTODO: describe the tasks\n"), "skill"
    )
    assert told == 'SKILL.md still holds a placeholder: "TODO"'


def test_a_short_skill_of_a_person_passes(package: Path, failures: Failures) -> None:
    (package / "skill" / "SKILL.md").write_text(PERSON, encoding="utf-8")
    assert failures(package, "skill") == []


@pytest.mark.parametrize("vocabulary", [INVENTED, UNRELATED], ids=["invented", "unrelated"])
def test_random_words_under_the_right_headings_are_no_skill(
    package: Path, failures: Failures, vocabulary: list[str]
) -> None:
    rng = Random(5)
    head, _ = frontmatter.split(PERSON)
    parts = [
        f"## {name}\n\n" + "\n\n".join(" ".join(rng.choices(vocabulary, k=12)) for _ in range(5))
        for name in SECTIONS
    ]
    path = package / "skill" / "SKILL.md"
    path.write_text(
        f"---\n{head}\n---\n" + "\n\n".join(parts) + "\nreward task_id response\n", encoding="utf-8"
    )
    assert failures(package, "skill") == [
        "SKILL.md Input schema names 0 fields that the rollouts have, at least 3 are needed",
        "SKILL.md says nothing of this benchmark or its analysis under Overview, Workflow funnel, Failure taxonomy, "
        "Analysis workflow, Report template",
        "SKILL.md Report template lists 0 parts of a report, at least 3 are needed",
    ]  # fmt: skip


def test_a_skill_in_another_language_passes(package: Path, failures: Failures) -> None:
    path = package / "skill" / "SKILL.md"
    german = "Der Agent sucht die Bestellung und ändert sie. Danach prüft jemand, ob die Tabelle stimmt und nichts fehlt."
    chinese = "代理先查订单再修改一次，检查器只看最后的表格是否正确，不看中间过程，也不看措辞。"
    for text in (german, chinese):
        body = "\n\n".join(
            f"## {name}\n\n{text}\n\n"
            + "\n\n".join(f"- {part}" for part in ("`reward`", "`db_match`", "`category`"))
            for name in SECTIONS
        )
        path.write_text(f"---\n{frontmatter.split(PERSON)[0]}\n---\n{body}\n", encoding="utf-8")
        assert [told for told in failures(package, "skill") if "hardly anything" not in told] == []
