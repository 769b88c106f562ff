"""Every command that a skill gives an agent parses, and runs on a small planted run as it says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from blade.pipeline import session
from tests.builders import make_rows, make_run
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
        quotes = {one: next((e.quote for e in one.evidence if (e.step, e.repeat) == (one.step, one.repeat)), None)
                  for one in session([run]).report.attributions if one.step is not None}  # fmt: skip
        self.one, self.quote = next((one, quote) for one, quote in quotes.items() if quote)
        self.words = {"RUN": run, "BASELINE": run, "CANDIDATE": other, "TASK": self.one.task, "AGENT": "agent",
                      "FIELD": "_ng_rollout_index"}  # fmt: skip
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
        if word in self.words:
            return self.words[word]
        if re.fullmatch(r"TASK/\d", word):
            return f"{self.one.task}/{self.one.repeat}"
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


def test_a_command_that_does_not_run_is_seen(here: Path, blade: Blade) -> None:
    filled = Filled("first/rollouts.jsonl", "second/rollouts.jsonl")
    wrong = ["label", "RUN", "TASK", "--cause", "BI", "--repeat", "1", "--step", "7", "--mechanism", "x"]
    assert blade(*filled.of([*wrong, "--quote", "EXACT WORDS"])).code == 0
    assert blade(*[*filled.of(wrong), "--quote", "words that stand nowhere"]).code == 2


FOREIGN = "9.9\x1b]0;owned\x07\x1b[2J\u202e\nhint:  run this"


@pytest.mark.parametrize(
    ("words", "stream"),
    [
        (("skill", "check", "--for", FOREIGN), "out"),
        (("skill", "install", FOREIGN), "err"),
        (("label", "RUN", FOREIGN, "--cause", "BI", "--repeat", "0", "--step", "0", "--quote", "a quotation", "--mechanism", "m"), "err"),
        (("show", "RUN", FOREIGN), "err"),
        (("show", "RUN", FOREIGN, "--dossier"), "err"),
        (("package", "score", "--report", FOREIGN, "--golden", "x", "--anchor-facts", "x"), "err"),
    ],
)  # fmt: skip
def test_foreign_text_steers_no_terminal_and_begins_no_line(
    blade: Blade, tmp_path: Path, words: tuple[str, ...], stream: str
) -> None:
    run = make_run(tmp_path, make_rows({0: [1.0, 0.0]}))
    result = blade(*(run if word == "RUN" else word for word in words))
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
