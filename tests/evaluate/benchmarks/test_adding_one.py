"""The benchmark that docs/benchmarks.md shows how to add: its files and commands, run as they stand there."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Blade
from tests.evaluate.rows import rows_of
from tools.model_server import Body, serving, text_of

DOCS = Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"
KNOWN = {"fruit": "apple", "barks": "cat", "7 x 6": "42"}  # one of the three is wrong


def section() -> str:
    return DOCS.read_text(encoding="utf-8").split("## Adding one")[1]


def shown() -> dict[str, str]:
    """The files of the section: each block is that of the path which begins the paragraph before it."""
    found = re.finditer(r"^```(?:csv|yaml|python)\n(.*?)^```", section(), re.M | re.S)
    return {section()[: one.start()].split("\n\n")[-2].split("`")[1]: one[1] for one in found}


def answer(body: Body) -> str:
    """A model that reads the options as they are lettered in the prompt."""
    asked = text_of(body["input"][-1]["content"]) if isinstance(body["input"], list) else body["input"]
    text = next(text for words, text in KNOWN.items() if words in asked)
    letter = re.search(rf"^([A-J])\) {text}$", asked, re.M)
    return f"Answer: {letter[1]}" if letter else "I see no options."


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in shown().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_example_is_prepared_asked_judged_and_diagnosed(tree: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    commands = re.findall(r"^```bash\n(.*?)^```", section(), re.M | re.S)[-1].splitlines()
    assert [line.split()[1] for line in commands] == ["list", "env", "eval", "eval", "diagnose"]
    said = {}
    with serving(answer) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "m"}
        for name, value in (environ | {"BLADE_CACHE_DIR": str(tree / "cache")}).items():
            monkeypatch.setenv(name, value)
        for line in commands:
            words = shlex.split(line)
            done = blade(*words[1:])
            assert done.code == 0, done.err
            said[" ".join(words[1:3])] = done
    assert "Three questions" in said["list benchmarks"].out
    assert said["eval prepare"].out.startswith("quiz: 3 rows, prepared: ")
    assert "notice" not in said["eval prepare"].err
    rows = rows_of(tree / "results" / "quiz_rollouts.jsonl")
    rewards = Counter((row["question"], row["reward"]) for row in rows)
    assert rewards == {("Which of these is a fruit?", 1.0): 4, ("Which of these barks?", 0.0): 4, ("How much is 7 x 6?", 1.0): 4}
    assert "66.7%" in (tree / "report" / "report.md").read_text(encoding="utf-8")


def test_the_files_are_those_that_the_config_names(tree: Path) -> None:
    assert sorted(shown()) == [
        "benchmarks/quiz/config.yaml", "benchmarks/quiz/manifest.yaml", "benchmarks/quiz/prepare.py",
        "benchmarks/quiz/prompt.yaml", "quiz.csv",
    ]
