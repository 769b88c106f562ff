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


RIGHT = ["sim-help-desk", *cases(__file__, "names_that_break_no_rule")]


@pytest.mark.parametrize(("name", "reason"), [*cases(__file__, "names_that_break_a_rule"), *((name, "") for name in RIGHT)])
def test_names_that_break_a_rule_and_names_that_break_none(package: Path, failures: Failures, name: str, reason: str) -> None:
    told = failures(changed(package, "name: sim-help-desk", f"name: {name}"), "skill")
    assert [reason in text for text in told] == [True] * bool(reason)


@pytest.mark.parametrize(("description", "reason"), cases(__file__, "descriptions_that_break_a_rule"))
def test_descriptions_that_break_a_rule(package: Path, failures: Failures, description: str, reason: str) -> None:
    path = package / "skill" / "SKILL.md"
    head, body = frontmatter.split(path.read_text(encoding="utf-8"))
    assert head is not None
    path.write_text(f"---\nname: sim-help-desk\ndescription: {description}\n---\n{body}", encoding="utf-8")
    (told,) = failures(package, "skill")
    assert reason in told


@pytest.mark.parametrize(("old", "new", "told"), cases(__file__, "sections_that_say_nothing"))
def test_a_section_that_is_not_there_or_says_nothing(
    package: Path, failures: Failures, old: str, new: str, told: str
) -> None:
    assert failures(changed(package, old, new), "skill") == [told]


def test_a_short_skill_of_a_person_passes(package: Path, failures: Failures) -> None:
    (package / "skill" / "SKILL.md").write_text(PERSON, encoding="utf-8")
    assert failures(package, "skill") == []


@pytest.mark.parametrize("vocabulary", [INVENTED, UNRELATED], ids=["invented", "unrelated"])
def test_random_words_under_the_right_headings_are_no_skill(
    package: Path, failures: Failures, vocabulary: list[str]
) -> None:
    rng = Random(5)
    head, _ = frontmatter.split(PERSON)
    bodies = ["\n\n".join(" ".join(rng.choices(vocabulary, k=12)) for _ in range(5)) for _ in SECTIONS]
    parts = [f"## {name}\n\n{body}" for name, body in zip(SECTIONS, bodies, strict=True)]
    text = f"---\n{head}\n---\n" + "\n\n".join(parts) + "\nreward task_id response\n"
    (package / "skill" / "SKILL.md").write_text(text, encoding="utf-8")
    assert failures(package, "skill") == cases(__file__, "reasons_of_random_words")


@pytest.mark.parametrize("text", cases(__file__, "skills_in_other_languages"))
def test_a_skill_in_another_language_passes(package: Path, failures: Failures, text: str) -> None:
    fields = "- `reward`\n\n- `db_match`\n\n- `category`"
    body = "\n\n".join(f"## {name}\n\n{text}\n\n{fields}" for name in SECTIONS)
    skill = f"---\n{frontmatter.split(PERSON)[0]}\n---\n{body}\n"
    (package / "skill" / "SKILL.md").write_text(skill, encoding="utf-8")
    assert [told for told in failures(package, "skill") if "hardly anything" not in told] == []
