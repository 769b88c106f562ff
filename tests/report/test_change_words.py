"""How sentences of stages and names of runs are put on a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from blade.report.blocks import Code, Said, plain
from blade.report.change.names import apart, middle
from blade.report.change.sentences import note_told, sentence

ROLLOUTS = [f"codellama-7b_output[_ng_rollout_index={at}]" for at in range(9)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("it fell by -8.6 points [-12.1, -3.0]", "it fell by −8.6 points [−12.1, −3.0]."),
        ("-8.6 (-3)", "−8.6 (−3)."),
        ("always → never", "always → never."),
        ("x->y -> z", "x->y -> z."),
        ("gpt-4 and pass 1-2 at 2031-01-01 and -x", "gpt-4 and pass 1-2 at 2031-01-01 and -x."),
        ("`a -> -1` moved -1", "a -> -1 moved −1."),
        ('it says “a -> -1” and "b -> -2" -> -3', 'it says “a -> -1” and "b -> -2" -> −3.'),
        ("ends here.", "ends here."),
        ("", ""),
    ],
)
def test_signs_of_our_own_sentences_are_signs(text: str, said: str) -> None:
    assert plain(sentence(text, "engine.x")) == said


def test_names_keep_their_signs() -> None:
    assert (
        plain(sentence("zone=a -> -1 took -1 points", "engine.x", names=("zone=a -> -1",)))
        == "zone=a -> -1 took −1 points."
    )
    (said, _) = sentence("`x -> y` rose", "engine.x")
    assert isinstance(said, Said)
    assert said.line[0] == Code("x -> y")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt-4o differs in model", "gpt-4o differs in model."),
        ("gpt-4: is another name", "Gpt-4: is another name."),
        ("the change is small", "The change is small."),
        ("gpt-4o-mini is no run here", "gpt-4o-mini is no run here."),
        ("", ""),
    ],
)
def test_a_note_has_its_capital_but_a_run_keeps_its_letters(text: str, said: str) -> None:
    assert plain(note_told(text, "engine.x", ("gpt-4o", "gpt-4.1"))) == said


def test_names_are_cut_in_the_middle() -> None:
    assert middle("short", 10) == "short"
    assert middle("0123456789abcdef", 9) == "0123…cdef"
    assert middle("漢字漢字漢字", 7) == "漢…字"


@pytest.mark.parametrize("columns", [10, 14, 28, 60])
def test_names_with_a_long_start_in_common_stay_apart(columns: int) -> None:
    found = apart(ROLLOUTS, columns)
    assert len(set(found)) == 9
    assert max(map(len, found)) <= columns
    assert all(name.endswith(f"{at}]") for at, name in enumerate(found))


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    names = [f"{'a' * 40}/model-{letter}/{'b' * 40}" for letter in "xyz"]
    found = apart(names, 20)
    assert len(set(found)) == 3
    assert all(letter in name for letter, name in zip("xyz", found, strict=True))


@given(
    st.lists(st.text("ab-漢", min_size=1, max_size=40), min_size=1, max_size=9, unique=True),
    st.integers(8, 30),
)
def test_different_names_never_become_one(names: list[str], columns: int) -> None:
    found = apart(names, columns)
    assert len(set(found)) == len(names)
    assert max(map(cell_len, found)) <= columns
