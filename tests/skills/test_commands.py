"""Skills keep the Agent Skills rules, and every command they give an agent parses and runs as it says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import skills_ref
import yaml

from blade.agent.dossier.budget import tokens
from blade.agent.skills.installation import skill_at
from blade.model import Cause
from blade.pipeline import session
from blade.report.draft_report import SECTIONS
from tests.builders import make_rows, make_run
from tests.case_tables import cases
from tests.conftest import ROOT, Blade
from tests.test_docs import blade_arguments, parse

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
