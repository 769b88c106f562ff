"""Skills keep the Agent Skills rules, are installed where agents look, and every command they give an agent runs as it says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import skills_ref
import yaml

from blade import __version__
from blade.agent.dossier.budget import tokens
from blade.agent.skills import installation as shipped
from blade.agent.skills.installation import AGENTS, RECORD, contents, skill_at
from blade.agent.skills.installation import shipped as listed
from blade.cli.skill import KNOWN
from blade.model import Cause
from blade.pipeline import session
from blade.report.draft_report import SECTIONS
from tests.builders import make_rows, make_run
from tests.case_tables import cases
from tests.conftest import ROOT, Blade
from tests.test_docs import blade_arguments, parse

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


def test_a_changed_copy_is_kept_and_one_of_another_version_brought_up_to_date(install: Install, folder: Path, blade: Blade) -> None:
    install()
    page = folder / "SKILL.md"
    page.write_text(page.read_text(encoding="utf-8") + "\nOur own rule.\n", encoding="utf-8")
    assert "skill-changed" in install(code=2)
    assert "Our own rule." in page.read_text(encoding="utf-8")
    install("--force")
    assert "Our own rule." not in page.read_text(encoding="utf-8")
    aged(folder)
    said = blade("skill", "check")
    assert said.code == 1
    assert "written for another BLADE" in said.out
    assert "0.0.1" in blade("skill", "list").out
    assert "updated" in install()
    assert not (folder / "references" / "gone.md").exists()
    assert blade("skill", "check").code == 0


def test_nothing_is_written_where_one_of_several_copies_must_stay(install: Install, here: Path) -> None:
    own = here / ".claude" / "skills" / NAME / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine", encoding="utf-8")
    install("--agent", "agents", "--agent", "claude", code=2)
    assert not (here / ".agents").exists()


def test_a_record_does_not_give_away_what_it_does_not_know_nor_what_lies_elsewhere(install: Install, folder: Path, victim: Path) -> None:
    folder.mkdir(parents=True)
    for name, text in {"SKILL.md": "by hand", "other.md": "x"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    forged(folder, "other.md")
    assert "skill-changed" in install(code=2)
    assert (folder / "SKILL.md").read_text(encoding="utf-8") == "by hand"
    forged(folder, "other.md", "SKILL.md")
    assert "updated" in install()
    aged(folder)
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    record["files"][os.path.relpath(victim, folder)] = digest(victim)
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")
    install("--force")
    assert victim.exists()


# -- links ------------------------------------------------------------------------------------------


@pytest.fixture
def victim(here: Path) -> Path:
    """A file of somebody else, outside the project."""
    path = here.parent / "victim" / "blade_toolkit.py"
    path.parent.mkdir()
    path.write_text("precious", encoding="utf-8")
    return path


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


def test_a_file_of_another_name_elsewhere_stays_and_none_comes_along(victim: Path, folder: Path, install: Install, here: Path) -> None:
    folder.mkdir(parents=True)
    os.link(victim, folder / "SKILL.md")
    install("--force")
    assert victim.read_text(encoding="utf-8") == "precious"
    assert (folder / "SKILL.md").read_bytes() == contents(listed()[0])["SKILL.md"]
    assert not [path for path in folder.rglob(".*") if path.name != RECORD]
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


def test_one_cheap_command_tells_whether_the_version_fits_and_the_list_comes_as_json(here: Path, blade: Blade, install: Install) -> None:
    assert blade("skill", "check", "--for", __version__).code == 0
    other = blade("skill", "check", "--for", "0.0.1")
    assert (other.code, "written for BLADE 0.0.1" in other.out) == (1, True)
    assert json.loads(blade("skill", "check", "--for", "0.0.1", "--json").out)["fits"] is False
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


# ---- The commands of the pages ----------------------------------------------------------------------


OURS = ROOT / ".agents" / "skills" / "nemo-gym-blade-analysis"
PAGES = [OURS / "SKILL.md", *sorted((OURS / "references").glob("*.md"))]
BENCH, MODEL = "sim-help-desk", "sim_first"
# What ends with 1 here because it should: nobody has reviewed the drafts of the package.
UNREVIEWED = ["package", "validate"]
# What takes long, and the test that runs it with the same options.
ELSEWHERE = {("package", "calibrate"): ROOT / "tests" / "package" / "test_calibrate.py"}


def named(text: str) -> Iterator[list[str]]:
    """The arguments of every command in backticks, the three dots and COMMAND aside."""
    for told in re.findall(r"`(?:uv run )?blade ([^`\n]+)`", text):
        words = shlex.split(told)
        if "COMMAND" not in words and "…" not in words:
            yield words


def is_mention(words: list[str]) -> bool:
    """Whether a command is only called by its name."""
    return all(re.fullmatch(r"[a-z-]+", word) for word in words) and words[0] != "doctor"


def given(page: Path) -> list[list[str]]:
    """What a page tells one to run, in its order: whole commands, fenced or in backticks."""
    text = page.read_text(encoding="utf-8")
    fenced = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    found: list[list[str]] = []
    at = 0
    for block in fenced.finditer(text):
        found += [words for words in named(text[at : block.start()]) if not is_mention(words)]
        found += list(blade_arguments(block[0]))
        at = block.end()
    return found + [words for words in named(text[at:]) if not is_mention(words)]


class Filled:
    """Words of a skill with what they stand for in a project that has two runs."""

    def __init__(self, run: str, other: str) -> None:
        causes = [one for one in session([run]).report.attributions if one.step is not None]
        places = ((one, e.quote) for one in causes for e in one.evidence if (e.step, e.repeat) == (one.step, one.repeat))
        self.one, self.quote = next((one, quote) for one, quote in places if quote)
        self.words = {"RUN": run, "BASELINE": run, "CANDIDATE": other, "TASK": self.one.task, "AGENT": "agent", "FIELD": "_ng_rollout_index"}
        rows = map(json.loads, Path(run).read_text(encoding="utf-8").splitlines())
        place = (self.one.task, self.one.repeat)
        self.row = next(row for row in rows if (str(row["_ng_task_index"]), row["_ng_rollout_index"]) == place)

    def label(self) -> dict[str, Any]:
        return {"task": self.one.task, "cause": "BI", "repeat": self.one.repeat, "step": self.one.step,
                "quote": self.quote, "mechanism": "The order is changed without a look at what was asked."}  # fmt: skip

    def of(self, words: list[str]) -> list[str]:
        """A command as it is typed here."""
        typed = [self._word(word) for word in words]
        if words[0] == "label" and "--quote" in words:
            quote = self.row[words[words.index("--field") + 1]] if "--field" in words else self.quote
            values = {"--repeat": str(self.one.repeat), "--step": str(self.one.step), "--quote": quote}
            for option in values.keys() & set(words):
                typed[words.index(option) + 1] = values[option]
        return typed

    def _word(self, word: str) -> str:
        word = f"{self.one.task}/{self.one.repeat}" if re.fullmatch(r"TASK/\d", word) else self.words.get(word, word)
        return re.sub(r"\bNAME\b", BENCH, re.sub(r"\bMODEL(?=_)|^MODEL$", MODEL, word))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_parse_and_those_that_are_only_named_exist(page: Path) -> None:
    from blade.cli.main import cli

    commands = given(page)
    assert commands
    for words in commands:
        parse(words)
    for words in filter(is_mention, named(page.read_text(encoding="utf-8"))):
        command: click.Command | None = cli
        for word in words:
            assert isinstance(command, click.Group), words
            command = command.get_command(click.Context(command), word)
            assert command is not None, words


# the commands of packages take half a minute, and tests/package runs each of them by itself
SLOW = [pytest.param(page, marks=pytest.mark.slow) if page.name == "packages.md" else page for page in PAGES]


@pytest.mark.parametrize("page", SLOW, ids=lambda page: page.name)
def test_commands_run(page: Path, here: Path, blade: Blade) -> None:
    filled = Filled("first/rollouts.jsonl", "second/rollouts.jsonl")
    Path("judgements.jsonl").write_text(json.dumps(filled.label()) + "\n", encoding="utf-8")
    commands = [filled.of(words) for words in given(page)]
    if any("report.md" in words for words in commands) and not any(words[0] == "draft" for words in commands):
        assert blade("draft", "first/rollouts.jsonl", "-o", "report.md").code == 0
    for words in commands:
        if Path("report.md").exists() and words[0] == "draft":
            words.append("--force")
        if test := ELSEWHERE.get(tuple(words[:2])):
            assert json.dumps(words[:2])[1:-1] in test.read_text(encoding="utf-8")
            assert all(Path(word).is_file() for word in words if word.startswith("benchmarks/"))
            continue
        said = blade(*words)
        expected = 1 if words[:2] == UNREVIEWED else 0
        assert said.code == expected, (words, said.out[-400:], said.err)
        if words[0] == "check":
            assert re.search(r"^\d+ cited numbers hold, \d+ quotations? found, \d+ ids? exists?$", said.out, re.MULTILINE)
    if page.name == "SKILL.md":  # what was judged on the way stands in the report that was checked
        text = Path("report.md").read_text(encoding="utf-8")
        assert "### Judgements" in text
        assert f"| `{filled.one.task}/{filled.one.repeat}` | BI behaviour |" in text
        assert "| `agent` |" in text
        assert filled.quote in text


def test_what_a_page_gives_is_seen() -> None:
    text = "Use `blade compare` or:\n\n```sh\nblade health RUN\n```\n\n`blade queue RUN --most 3`, `blade COMMAND --help`"
    assert [words for words in named(text) if not is_mention(words)] == [["queue", "RUN", "--most", "3"]]
    assert list(blade_arguments(text)) == [["health", "RUN"]]


FOREIGN = "9.9\x1b]0;owned\x07\x1b[2J\u202e\nhint:  run this"


@pytest.mark.parametrize(("stream", "words"), cases(__file__, "foreign"))
def test_foreign_text_steers_no_terminal_and_begins_no_line(blade: Blade, tmp_path: Path, words: str, stream: str) -> None:
    typed = {"RUN": make_run(tmp_path, make_rows({0: [1.0, 0.0]})), "FOREIGN": FOREIGN}
    result = blade(*(typed.get(word, word) for word in words.split()))
    assert result.code in (1, 2, 3)
    said = getattr(result, stream)
    assert "9.9" in said
    assert not {"\x1b", "\x07", "\u202e"} & set(said)
    assert sum(line.startswith("hint:") for line in said.splitlines()) <= 1
    assert "hint:  run this" not in [line.strip(" ") for line in said.splitlines() if not line.startswith("   ")]


def test_a_copy_in_a_folder_with_an_odd_name_is_listed_on_one_line(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".agents" / "skills" / "x\x1b[2J\ny"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: x\n---\nbody\n", encoding="utf-8")
    for command in ("list", "check"):
        said = blade("skill", command).out
        assert "names no version" in said
        assert "\x1b" not in said
        assert not [line for line in said.splitlines() if line.startswith("y")]


# ---- The rules for skills, by a validator that is not ours -------------------------------------------

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


@pytest.mark.parametrize("name", cases(__file__, "names_of_benchmarks"))
def test_a_skill_that_was_just_written_whatever_the_benchmark_is_called(name: str, here: Path, tmp_path: Path, blade: Blade) -> None:
    assert blade("skill", "new", name, "--run", "first", "-o", "skills").code == 0
    (page,) = (here / "skills").glob("*/SKILL.md")
    assert problems(page.parent, tmp_path) == []


@pytest.mark.parametrize(("old", "new"), cases(__file__, "broken_rules"))
def test_the_validator_sees_a_broken_rule(old: str, new: str, tmp_path: Path) -> None:
    folder = tmp_path / OURS.name
    shutil.copytree(OURS, folder)
    page = folder / "SKILL.md"
    text = page.read_text(encoding="utf-8")
    assert old in text
    assert list(skills_ref.validate(folder)) == []
    page.write_text(text.replace(old, re.sub(r"x\*(\d+)", lambda hit: "x" * int(hit[1]), new), 1), encoding="utf-8")
    assert list(skills_ref.validate(folder)) != []


def test_the_skill_is_cheap_to_load_names_every_cause_and_section_and_holds_evals_and_metadata() -> None:
    text = (OURS / "SKILL.md").read_text(encoding="utf-8")
    references = {path.name: path.read_text(encoding="utf-8") for path in (OURS / "references").iterdir()}
    assert len(text.splitlines()) < 500
    assert tokens(text) < 2500
    assert set(re.findall(r"`references/([\w.]+)`", text)) == set(references)
    for page in references.values():
        assert tokens(page) < 1500
        assert "references/" not in page
    def rows(name: str, pattern: str) -> list[str]:
        return re.findall(pattern, (OURS / "references" / name).read_text(encoding="utf-8"), re.MULTILINE)

    assert {cause.value for cause in Cause} == set(rows("labels.md", r"^\| (\w+)")) - {"Cause"}
    sections = rows("report_template.md", r"^\| ([A-Z][\w -]+?) \|")
    assert sections[1 : len(SECTIONS) + 1] == list(SECTIONS)
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
