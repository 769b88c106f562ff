"""Skills that ship: found, listed, installed where agents look, kept where somebody changed them."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path

import pytest

from blade import __version__
from blade.agent.skills import installation as shipped
from blade.agent.skills.installation import AGENTS, RECORD, contents
from blade.agent.skills.installation import shipped as listed
from blade.cli.skill import KNOWN
from tests.conftest import ROOT, Blade

NAME = "nemo-gym-blade-analysis"


def test_the_analysis_skill_ships_and_was_written_for_this_engine() -> None:
    one = next(one for one in listed() if one.name == NAME)
    assert one.version == __version__, "a new version takes a look at SKILL.md, then its number"
    assert f"blade skill check --for {__version__}" in (one.folder / "SKILL.md").read_text(encoding="utf-8")
    assert "scripts/blade_toolkit.py" in contents(one)


def test_a_wheel_puts_the_folders_where_they_are_looked_for() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    assert told["wheel"]["force-include"] == {
        ".agents/skills": "blade/agent/skills/folders", "docs": "blade/docs",
    }  # fmt: skip
    assert ".agents" in told["sdist"]["include"]
    assert shipped.PLACES[0].parts[-3:] == ("agent", "skills", "folders")


def test_agents_that_know_the_old_places_find_it() -> None:
    for place in (".claude/skills", ".codex/skills"):
        assert (ROOT / place).is_symlink()
        assert (ROOT / place / NAME / "SKILL.md").is_file()


def test_the_command_knows_every_agent() -> None:
    assert tuple(AGENTS) == KNOWN


@pytest.mark.parametrize("agent", KNOWN)
def test_installed_for_one_agent(agent: str, here: Path, blade: Blade) -> None:
    said = blade("skill", "install", "--agent", agent)
    place = Path(AGENTS[agent][0]) / NAME
    assert said.code == 0
    assert f"{place}/ ({agent})" in said.out
    assert (here / place / "SKILL.md").read_bytes() == contents(listed()[0])["SKILL.md"]
    assert json.loads((here / place / RECORD).read_text(encoding="utf-8"))["engine"] == __version__


def test_installed_for_the_agents_in_use_at_home(here: Path, blade: Blade) -> None:
    home = here.parent / "home"
    (home / ".claude").mkdir()
    (home / ".cursor").mkdir()
    assert blade("skill", "install", NAME, "--user").code == 0
    assert {path.parent.parent.parent.name for path in home.rglob("SKILL.md")} == {".claude", ".cursor"}
    assert not list(here.rglob(f"{NAME}/SKILL.md"))


def test_without_any_agent_it_goes_to_the_shared_folder(here: Path, blade: Blade) -> None:
    (here / ".github").mkdir()  # every repository has one: no sign of an agent
    blade("skill", "install")
    assert [path.relative_to(here).parts[0] for path in here.rglob("SKILL.md")] == [".agents"]


def test_folders_that_are_one_are_written_once(here: Path, blade: Blade) -> None:
    (here / ".agents" / "skills").mkdir(parents=True)
    (here / ".claude").mkdir()
    (here / ".claude" / "skills").symlink_to("../.agents/skills")
    said = blade("skill", "install")
    assert said.out.count("Wrote") == 1
    assert "claude, agents" in said.out


def test_a_dry_run_writes_nothing(here: Path, blade: Blade) -> None:
    said = blade("skill", "install", "--dry-run")
    assert "Would write" in said.out
    assert "SKILL.md" in said.out
    assert not (here / ".agents").exists()


def test_a_second_time_nothing_happens(here: Path, blade: Blade) -> None:
    blade("skill", "install")
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*") if path.is_file()}
    said = blade("skill", "install")
    assert "is up to date" in said.out
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_copy_that_somebody_changed_is_kept(here: Path, blade: Blade) -> None:
    blade("skill", "install")
    page = here / ".agents" / "skills" / NAME / "SKILL.md"
    page.write_text(page.read_text(encoding="utf-8") + "\nOur own rule.\n", encoding="utf-8")
    refused = blade("skill", "install")
    assert refused.code == 2
    assert "skill-changed" in refused.err
    assert "Our own rule." in page.read_text(encoding="utf-8")
    assert blade("skill", "install", "--force").code == 0
    assert "Our own rule." not in page.read_text(encoding="utf-8")


def test_nothing_is_written_where_one_of_several_copies_must_stay(here: Path, blade: Blade) -> None:
    own = here / ".claude" / "skills" / NAME / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine", encoding="utf-8")
    assert blade("skill", "install", "--agent", "agents", "--agent", "claude").code == 2
    assert not (here / ".agents").exists()


def test_a_copy_of_another_version_is_told_and_brought_up_to_date(here: Path, blade: Blade) -> None:
    blade("skill", "install")
    folder = here / ".agents" / "skills" / NAME
    aged(folder)
    said = blade("skill", "check")
    assert said.code == 1
    assert "written for another BLADE" in said.out
    assert "0.0.1" in blade("skill", "list").out
    assert "updated" in blade("skill", "install").out
    assert not (folder / "references" / "gone.md").exists()
    assert blade("skill", "check").code == 0


def aged(folder: Path) -> None:
    """Make a copy what an earlier engine would have left: its version, and a file that is no more."""
    page = folder / "SKILL.md"
    text = page.read_text(encoding="utf-8").replace(f'blade: "{__version__}"', 'blade: "0.0.1"')
    page.write_text(text, encoding="utf-8")
    (folder / "references" / "gone.md").write_text("old", encoding="utf-8")
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    for name in ("SKILL.md", "references/gone.md"):
        record["files"][name] = digest(folder / name)
    (folder / RECORD).write_text(json.dumps({**record, "engine": "0.0.1"}), encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_record_cannot_have_files_elsewhere_removed(here: Path, blade: Blade) -> None:
    blade("skill", "install")
    folder = here / ".agents" / "skills" / NAME
    victim = here / "precious.txt"
    victim.write_text("old", encoding="utf-8")
    aged(folder)
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    record["files"]["../../../precious.txt"] = digest(victim)
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")
    blade("skill", "install", "--force")
    assert victim.exists()


@pytest.fixture
def victim(here: Path) -> Path:
    """A file of somebody else, outside the project."""
    found = here.parent / "victim" / "blade_toolkit.py"
    found.parent.mkdir()
    found.write_text("precious", encoding="utf-8")
    return found


def forged(folder: Path, *names: str) -> None:
    """A record that knows these files of a folder, as if they had been installed."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {"engine": "0.0.1", "files": {name: digest(folder / name) for name in names}}
    (folder / RECORD).write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize("options", [(), ("--force",)], ids=["plain", "forced"])
@pytest.mark.parametrize("behind", ["scripts", "old", "scripts/blade_toolkit.py", "SKILL.md", RECORD])
def test_no_link_in_a_copy_is_followed(
    behind: str, options: tuple[str, ...], victim: Path, here: Path, blade: Blade
) -> None:
    folder = here / ".agents" / "skills" / NAME
    link = folder / behind
    link.parent.mkdir(parents=True)
    link.symlink_to(victim.parent if behind in ("scripts", "old") else victim)
    if behind != RECORD:
        forged(folder, f"{behind}/{victim.name}" if link.is_dir() else behind)
    said = blade("skill", "install", *options)
    assert said.code == 2
    assert "skill-changed" in said.err
    assert str(Path(NAME) / behind) in said.err
    assert victim.read_text(encoding="utf-8") == "precious"
    assert os.listdir(victim.parent) == [victim.name]
    assert link.is_symlink()
    if link.parent != folder:
        link.parent.rename(here / "gone")
    else:
        link.unlink()
    (folder / RECORD).unlink(missing_ok=True)
    assert blade("skill", "install").code == 0  # without the link it is a folder like any other


@pytest.mark.parametrize("at", [".agents", ".agents/skills", f".agents/skills/{NAME}"])
@pytest.mark.parametrize("is_there", [True, False], ids=["to a folder", "to nothing"])
def test_no_link_leads_out_of_the_project(at: str, is_there: bool, here: Path, blade: Blade) -> None:
    outside = here.parent / "outside"
    if is_there:
        outside.mkdir()
    (here / at).parent.mkdir(parents=True, exist_ok=True)
    (here / at).symlink_to(outside)
    for options in ((), ("--force",), ("--dry-run",)):
        said = blade("skill", "install", "--agent", "agents", *options)
        assert said.code == 2
        assert "leads out of" in said.err
    assert outside.exists() is is_there
    assert not is_there or not os.listdir(outside)


def test_links_between_folders_of_agents_are_followed(here: Path, blade: Blade) -> None:
    shared = here / ".agents" / "skills" / NAME
    shared.mkdir(parents=True)
    (here / ".claude" / "skills").mkdir(parents=True)
    (here / ".claude" / "skills" / NAME).symlink_to(f"../../.agents/skills/{NAME}")
    assert blade("skill", "install", "--agent", "claude").code == 0
    assert (shared / "SKILL.md").is_file()
    assert (here / ".claude" / "skills" / NAME).is_symlink()


def test_a_link_to_the_skill_itself_is_left_alone(here: Path, blade: Blade) -> None:
    own = listed()[0].folder
    (here / ".claude" / "skills").mkdir(parents=True)
    (here / ".claude" / "skills" / NAME).symlink_to(own)
    before = (own / "SKILL.md").read_bytes()
    assert "is up to date" in blade("skill", "install", "--agent", "claude").out
    assert (own / "SKILL.md").read_bytes() == before
    assert not (own / RECORD).exists()


def test_a_record_that_does_not_know_a_file_does_not_give_it_away(here: Path, blade: Blade) -> None:
    folder = here / ".agents" / "skills" / NAME
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("by hand", encoding="utf-8")
    (folder / "other.md").write_text("x", encoding="utf-8")
    forged(folder, "other.md")
    assert "skill-changed" in blade("skill", "install").err
    assert (folder / "SKILL.md").read_text(encoding="utf-8") == "by hand"
    forged(folder, "other.md", "SKILL.md")
    assert "updated" in blade("skill", "install").out


def test_a_file_that_has_another_name_elsewhere_stays_as_it_is_there(
    victim: Path, here: Path, blade: Blade
) -> None:
    folder = here / ".agents" / "skills" / NAME
    folder.mkdir(parents=True)
    os.link(victim, folder / "SKILL.md")
    assert blade("skill", "install", "--force").code == 0
    assert victim.read_text(encoding="utf-8") == "precious"
    assert (folder / "SKILL.md").read_bytes() == contents(listed()[0])["SKILL.md"]
    assert not [path for path in folder.rglob(".*") if path.name != RECORD]


def test_a_skill_does_not_take_files_from_elsewhere_along(victim: Path, here: Path, blade: Blade) -> None:
    skill = here / "given"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: given\ndescription: x\n---\n", encoding="utf-8")
    (skill / "notes.md").symlink_to(victim)
    said = blade("skill", "install", skill)
    assert said.code == 2
    assert "leads out of the skill" in said.err
    (skill / "notes.md").unlink()
    (skill / "notes.md").symlink_to("SKILL.md")
    assert blade("skill", "install", skill).code == 0


@pytest.mark.parametrize("at", ["sim-help-desk", "sim-help-desk/SKILL.md"])
def test_a_new_skill_is_not_written_through_a_link(at: str, here: Path, blade: Blade) -> None:
    link = here / "into" / at
    link.parent.mkdir(parents=True)
    link.symlink_to(here.parent / "stolen")
    for options in ((), ("--force",)):
        said = blade("skill", "new", "--run", "first", "-o", "into", *options)
        assert said.code == 2
        assert "is a link" in said.err
    assert not (here.parent / "stolen").exists()


def test_one_cheap_command_tells_whether_the_version_fits(here: Path, blade: Blade) -> None:
    assert blade("skill", "check", "--for", __version__).code == 0
    other = blade("skill", "check", "--for", "0.0.1")
    assert other.code == 1
    assert "written for BLADE 0.0.1" in other.out
    assert json.loads(blade("skill", "check", "--for", "0.0.1", "--json").out)["fits"] is False


def test_the_list_as_json(here: Path, blade: Blade) -> None:
    blade("skill", "install", "--agent", "claude")
    told = json.loads(blade("skill", "list", "--json").out)
    assert [one["name"] for one in told["skills"]] == [NAME]
    (copy,) = told["copies"]
    assert (copy["agents"], copy["scope"], copy["state"]) == (["claude"], "project", "current")


def test_the_skill_of_a_package_is_installed_under_its_own_name(here: Path, blade: Blade) -> None:
    said = blade("skill", "install", ROOT / "benchmarks" / "workplace_assistant" / "skill", "--agent", "claude")
    assert said.code == 0
    assert (here / ".claude" / "skills" / "workplace-assistant" / "SKILL.md").is_file()


def test_a_skill_that_is_not_there(here: Path, blade: Blade) -> None:
    said = blade("skill", "install", "no-such-skill")
    assert said.code == 2
    assert "unknown-skill" in said.err
    assert NAME in said.err


def test_an_engine_stamps_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "__version__", "9.9.9")
    text = contents(listed()[0])["SKILL.md"].decode()
    assert 'blade: "9.9.9"' in text
    assert "blade skill check --for 9.9.9" in text
    assert __version__ not in text
