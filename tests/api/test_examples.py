"""The examples of docs/python.md, run as they stand."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
FRAMES = ("pandas", "polars")


def examples(text: str, without: tuple[str, ...] = ()) -> list[doctest.Example]:
    """What stands behind `>>>` in the blocks of a page, less what needs one of the packages named."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [one for block in blocks for one in doctest.DocTestParser().get_examples(block)]
    needs = [name for name in without if importlib.util.find_spec(name) is None]
    frames = {"frame"} if "pandas" in needs else set()
    words = {*(f"to_{name}" for name in needs), *frames}
    return [one for one in found if not any(word in one.source for word in words)]


def failures(found: list[doctest.Example]) -> tuple[int, str]:
    test = doctest.DocTest(found, {}, "docs/python.md", None, None, None)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    result = runner.run(test, out=told.append)
    return result.failed, "".join(told)


def test_the_examples_of_the_page_say_what_they_say(folder: Path) -> None:
    found = examples(PAGE.read_text(encoding="utf-8"), without=FRAMES)
    assert len(found) > 40
    failed, told = failures(found)
    assert not failed, told


@pytest.mark.parametrize("name", FRAMES)
def test_the_page_shows_both_data_frames(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert any(f"to_{name}" in one.source for one in examples(text))


def test_a_planted_wrong_example_is_seen() -> None:
    found = examples("text\n```python\n>>> 1 + 1\n3\n\n```\n")
    assert failures(found)[0] == 1
