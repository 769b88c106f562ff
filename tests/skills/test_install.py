"""Skills that ship: found, listed, installed where agents look, kept where somebody changed them."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from blade import __version__
from blade.agent.skills import installation as shipped
from blade.agent.skills.installation import AGENTS, RECORD, contents
from blade.agent.skills.installation import shipped as listed
from blade.cli.skill import KNOWN
from tests.conftest import ROOT, Blade

NAME = "nemo-gym-blade-analysis"
Install = Callable[..., str]


@pytest.fixture
def folder(here: Path) -> Path:
    """Where the skill goes unless an agent is named."""
    return here / ".agents" / "skills" / NAME


@pytest.fixture
def install(blade: Blade, here: Path) -> Install:
    """Install and take what is printed, or the complaint where it is refused."""

    def run(*options: object, code: int = 0) -> str:
        said = blade("skill", "install", *options)
        assert said.code == code, said.err
        return said.err if code else said.out

    return run


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def forged(folder: Path, *names: str) -> None:
    """A record that knows these files of a folder, as if they had been installed."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: digest(folder / name) for name in names}
    (folder / RECORD).write_text(json.dumps({"engine": "0.0.1", "files": files}), encoding="utf-8")


def aged(folder: Path) -> None:
    """Make a copy what an earlier engine would have left: its version, and a file that is no more."""
    page = folder / "SKILL.md"
    page.write_text(page.read_text(encoding="utf-8").replace(f'blade: "{__version__}"', 'blade: "0.0.1"'), encoding="utf-8")
    (folder / "references" / "gone.md").write_text("old", encoding="utf-8")
    forged(folder, *json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"], "references/gone.md")


# -- what ships -------------------------------------------------------------------------------------


def test_the_analysis_skill_ships_where_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    (skill,) = listed()
    assert (skill.name, skill.version) == (NAME, __version__), "a new version takes a look at SKILL.md, then its number"
    assert f"blade skill check --for {__version__}" in (skill.folder / "SKILL.md").read_text(encoding="utf-8")
    assert "scripts/blade_toolkit.py" in contents(skill)
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["force-include"] == {".agents/skills": "blade/agent/skills/folders", "docs": "blade/docs"}
    assert ".agents" in targets["sdist"]["include"]
    assert shipped.PLACES[0].parts[-3:] == ("agent", "skills", "folders")
    for place in (".claude/skills", ".codex/skills"):  # agents that know the old places find it
        assert (ROOT / place).is_symlink()
        assert (ROOT / place / NAME / "SKILL.md").is_file()
    monkeypatch.setattr(shipped, "__version__", "9.9.9")  # an engine stamps its own version
    text = contents(skill)["SKILL.md"].decode()
    assert 'blade: "9.9.9"' in text
    assert "blade skill check --for 9.9.9" in text
    assert __version__ not in text


# -- where it goes ----------------------------------------------------------------------------------


def test_installed_for_each_agent_that_the_command_knows(install: Install, here: Path) -> None:
    assert tuple(AGENTS) == KNOWN
    for agent in KNOWN:
        place = Path(AGENTS[agent][0]) / NAME
        assert f"{place}/ ({agent})" in install("--agent", agent)
        assert (here / place / "SKILL.md").read_bytes() == contents(listed()[0])["SKILL.md"]
        assert json.loads((here / place / RECORD).read_text(encoding="utf-8"))["engine"] == __version__


def test_installed_for_the_agents_in_use_at_home_or_else_in_the_shared_folder(install: Install, here: Path) -> None:
    home = here.parent / "home"
    for name in (home / ".claude", home / ".cursor", here / ".github"):  # every repository has the last: no agent
        name.mkdir()
    install(NAME, "--user")
    assert {path.parents[2].name for path in home.rglob("SKILL.md")} == {".claude", ".cursor"}
    assert not list(here.rglob(f"{NAME}/SKILL.md"))
    install()
    assert [path.relative_to(here).parts[0] for path in here.rglob("SKILL.md")] == [".agents"]


def test_folders_that_are_one_are_written_once(install: Install, here: Path) -> None:
    (here / ".agents" / "skills").mkdir(parents=True)
    (here / ".claude").mkdir()
    (here / ".claude" / "skills").symlink_to("../.agents/skills")
    out = install()
    assert out.count("Wrote") == 1
    assert "claude, agents" in out


def test_a_dry_run_and_a_second_time_write_nothing(install: Install, here: Path) -> None:
    out = install("--dry-run")
    assert "Would write" in out
    assert "SKILL.md" in out
    assert not (here / ".agents").exists()
    install()
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*") if path.is_file()}
    assert "is up to date" in install()
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_copy_that_somebody_changed_is_kept(install: Install, folder: Path) -> None:
    install()
    page = folder / "SKILL.md"
    page.write_text(page.read_text(encoding="utf-8") + "\nOur own rule.\n", encoding="utf-8")
    assert "skill-changed" in install(code=2)
    assert "Our own rule." in page.read_text(encoding="utf-8")
    install("--force")
    assert "Our own rule." not in page.read_text(encoding="utf-8")


def test_nothing_is_written_where_one_of_several_copies_must_stay(install: Install, here: Path) -> None:
    own = here / ".claude" / "skills" / NAME / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine", encoding="utf-8")
    install("--agent", "agents", "--agent", "claude", code=2)
    assert not (here / ".agents").exists()


def test_a_copy_of_another_version_is_told_and_brought_up_to_date(install: Install, folder: Path, blade: Blade) -> None:
    install()
    aged(folder)
    said = blade("skill", "check")
    assert said.code == 1
    assert "written for another BLADE" in said.out
    assert "0.0.1" in blade("skill", "list").out
    assert "updated" in install()
    assert not (folder / "references" / "gone.md").exists()
    assert blade("skill", "check").code == 0


def test_a_record_does_not_give_away_what_it_does_not_know(install: Install, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, text in {"SKILL.md": "by hand", "other.md": "x"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    forged(folder, "other.md")
    assert "skill-changed" in install(code=2)
    assert (folder / "SKILL.md").read_text(encoding="utf-8") == "by hand"
    forged(folder, "other.md", "SKILL.md")
    assert "updated" in install()


# -- links ------------------------------------------------------------------------------------------


@pytest.fixture
def victim(here: Path) -> Path:
    """A file of somebody else, outside the project."""
    path = here.parent / "victim" / "blade_toolkit.py"
    path.parent.mkdir()
    path.write_text("precious", encoding="utf-8")
    return path


def test_a_record_cannot_have_files_elsewhere_removed(install: Install, folder: Path, victim: Path) -> None:
    install()
    aged(folder)
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    record["files"][os.path.relpath(victim, folder)] = digest(victim)
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")
    install("--force")
    assert victim.exists()


@pytest.mark.parametrize("options", [(), ("--force",)], ids=["plain", "forced"])
@pytest.mark.parametrize("behind", ["scripts", "old", "scripts/blade_toolkit.py", "SKILL.md", RECORD])
def test_no_link_in_a_copy_is_followed(behind: str, options: tuple[str, ...], victim: Path, folder: Path, here: Path, install: Install) -> None:
    link = folder / behind
    link.parent.mkdir(parents=True)
    link.symlink_to(victim.parent if behind in ("scripts", "old") else victim)
    if behind != RECORD:
        forged(folder, f"{behind}/{victim.name}" if link.is_dir() else behind)
    refused = install(*options, code=2)
    assert "skill-changed" in refused
    assert str(Path(NAME) / behind) in refused
    assert victim.read_text(encoding="utf-8") == "precious"
    assert os.listdir(victim.parent) == [victim.name]
    (link if link.parent == folder else link.parent).rename(here / "gone")
    (folder / RECORD).unlink(missing_ok=True)
    install()  # without the link it is a folder like any other


@pytest.mark.parametrize("at", [".agents", ".agents/skills", f".agents/skills/{NAME}"])
@pytest.mark.parametrize("is_there", [True, False], ids=["to a folder", "to nothing"])
def test_no_link_leads_out_of_the_project(at: str, is_there: bool, here: Path, install: Install) -> None:
    outside = here.parent / "outside"
    if is_there:
        outside.mkdir()
    (here / at).parent.mkdir(parents=True, exist_ok=True)
    (here / at).symlink_to(outside)
    for options in ((), ("--force",), ("--dry-run",)):
        assert "leads out of" in install("--agent", "agents", *options, code=2)
    assert outside.exists() is is_there
    assert not is_there or not os.listdir(outside)


@pytest.mark.parametrize("is_own", [False, True], ids=["to another agent's copy", "to the skill itself"])
def test_links_to_copies_are_followed_and_to_the_skill_left_alone(is_own: bool, folder: Path, here: Path, install: Install) -> None:
    own = listed()[0].folder
    before = (own / "SKILL.md").read_bytes()
    folder.mkdir(parents=True)
    link = here / ".claude" / "skills" / NAME
    link.parent.mkdir(parents=True)
    link.symlink_to(own if is_own else f"../../.agents/skills/{NAME}")
    assert ("is up to date" in install("--agent", "claude")) is is_own
    assert link.is_symlink()
    assert (folder / "SKILL.md").is_file() is not is_own
    assert ((own / "SKILL.md").read_bytes(), (own / RECORD).exists()) == (before, False)


def test_a_file_that_has_another_name_elsewhere_stays_as_it_is_there(victim: Path, folder: Path, install: Install) -> None:
    folder.mkdir(parents=True)
    os.link(victim, folder / "SKILL.md")
    install("--force")
    assert victim.read_text(encoding="utf-8") == "precious"
    assert (folder / "SKILL.md").read_bytes() == contents(listed()[0])["SKILL.md"]
    assert not [path for path in folder.rglob(".*") if path.name != RECORD]


def test_a_skill_does_not_take_files_from_elsewhere_along(victim: Path, here: Path, install: Install) -> None:
    skill = here / "given"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: given\ndescription: x\n---\n", encoding="utf-8")
    (skill / "notes.md").symlink_to(victim)
    assert "leads out of the skill" in install(skill, code=2)
    (skill / "notes.md").unlink()
    (skill / "notes.md").symlink_to("SKILL.md")
    install(skill)


@pytest.mark.parametrize("at", ["sim-help-desk", "sim-help-desk/SKILL.md"])
def test_a_new_skill_is_not_written_through_a_link(at: str, here: Path, blade: Blade) -> None:
    link = here / "into" / at
    link.parent.mkdir(parents=True)
    link.symlink_to(here.parent / "stolen")
    for options in ((), ("--force",)):
        refused = blade("skill", "new", "--run", "first", "-o", "into", *options)
        assert (refused.code, "is a link" in refused.err) == (2, True)
    assert not (here.parent / "stolen").exists()


# -- what is told -----------------------------------------------------------------------------------


def test_one_cheap_command_tells_whether_the_version_fits(here: Path, blade: Blade) -> None:
    assert blade("skill", "check", "--for", __version__).code == 0
    other = blade("skill", "check", "--for", "0.0.1")
    assert (other.code, "written for BLADE 0.0.1" in other.out) == (1, True)
    assert json.loads(blade("skill", "check", "--for", "0.0.1", "--json").out)["fits"] is False


def test_the_list_as_json(install: Install, blade: Blade) -> None:
    install("--agent", "claude")
    document = json.loads(blade("skill", "list", "--json").out)
    assert [skill["name"] for skill in document["skills"]] == [NAME]
    (copy,) = document["copies"]
    assert (copy["agents"], copy["scope"], copy["state"]) == (["claude"], "project", "current")


def test_another_skill_is_installed_under_its_own_name_if_it_is_there(here: Path, install: Install) -> None:
    install(ROOT / "benchmarks" / "workplace_assistant" / "skill", "--agent", "claude")
    assert (here / ".claude" / "skills" / "workplace-assistant" / "SKILL.md").is_file()
    refused = install("no-such-skill", code=2)
    assert "unknown-skill" in refused
    assert NAME in refused
