"""What the model was given and what was read of it: keys that are shifted, results that are cut, answers that nothing was read of."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.diagnose.builders import quiz_row
from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Act, Row, grid, make_row, struck

LETTERS = "ABCD"


@struck
def choices(is_shifted: bool, n_repeats: int = 4) -> Iterator[tuple[Row, bool]]:
    """Multiple choice from two sources: the key of the second is one letter on, or the model errs there in all directions."""
    chance = random.Random(3)
    for task, repeat in grid(40, n_repeats):
        right = (task * 7) % 4
        is_old = task >= 20
        errs = chance.random() < 0.15
        given = (right + chance.randrange(1, 4)) % 4 if errs or (is_old and not is_shifted and chance.random() < 0.9) else right
        gold = (right + 1) % 4 if is_old and is_shifted else right
        reward = float(given == gold)
        yield quiz_row(task, repeat, reward, LETTERS[given], LETTERS[gold], source="old" if is_old else "new"), is_old and is_shifted and given == right


def test_key_that_is_one_letter_on_is_found_where_it_is(diagnose: Diagnose) -> None:
    """Wrong letters in all directions are no shifted key."""
    rows, shifted = choices(is_shifted=True)
    run = diagnose(rows)
    first = run.groups[0]
    assert (first.rung, first.label.value) == ("verifier", "TI")
    # a wrong answer may lie one letter on by chance
    assert shifted <= run.keys(first)
    assert len(run.keys(first) - shifted) <= 3
    assert "`source` is `old`" in first.text
    assert [alarm.label.value for alarm in run.alarms if alarm.label] == ["TI"]
    run = diagnose(choices(is_shifted=False)[0])
    assert not [group for group in run.groups if "shifted" in group.name]
    assert run.alarms == []


def pages(limit: int | None) -> Iterator[Row]:
    """A reader opens one page and answers from it; the number stands late in half of the pages, which may be cut at a limit."""
    for task, repeat in grid(30, 4):
        chance = random.Random(task)
        number = f"{7919 + 37 * task} volumes"
        filler = " ".join(f"Hall {chance.randrange(10**6)} keeps its own ledger." for _ in range(60 + task))
        place = 200 if task % 2 else 1600
        page = f"{filler[:place]} The branch holds {number}. {filler[place:]}"
        page = page[:limit] if limit is not None else page + " " * chance.randrange(9)
        sees = number in page
        answer = number if sees else f"{100 + 17 * task + repeat} volumes"
        acts: list[Act] = [("open_page", {"page": f"p{task}"}, page), f"The branch holds {answer}."]
        yield make_row(task, repeat, float(sees), acts, tools=("open_page",), expected_answer=number)


def test_results_of_one_length_are_cut_and_not_badly_read(diagnose: Diagnose) -> None:
    """Not where they differ in length, nor where many read one long page."""
    rows = list(pages(limit=1200))
    run = diagnose(rows)
    assert any("exactly 1,200 characters" in entry.text for entry in run.trust)
    group = run.groups[0]
    assert (group.rung, group.label.value) == ("knowledge", "TI")
    assert run.keys(group) == {(task, repeat) for task, repeat in grid(30, 4) if task % 2 == 0}
    differ = [{**row, "reward": 0.0} if place < 24 else row for place, row in enumerate(pages(limit=None))]  # some fail all the same
    page = rows[0]["response"]["output"][1]["output"]
    for row in rows:
        row["response"]["output"][1]["output"] = page
    assert not any("characters long" in entry.text for other in (rows, differ) for entry in diagnose(other).trust)


@pytest.mark.parametrize("passes_without", [0, 12])
def test_text_in_which_the_grader_found_no_answer(diagnose: Diagnose, passes_without: int) -> None:
    """The grader's own record is empty in some failures; where passes lack it too, it is not what is graded."""
    rows, blank = [], set()
    for task, repeat in grid(20, 4):
        number = task * 4 + repeat
        gold = str(task * 13 + 41)
        is_blank, is_wrong = number % 8 == 0, number % 8 == 1
        is_lenient = number % 8 == 2 and passes_without > number // 8
        answer = str(task * 13 + 47 + repeat) if is_wrong else gold
        read = None if is_blank or is_lenient else answer
        reward = float(not is_blank and not is_wrong)
        text = f"In all there are {gold} of them, in {repeat + 2} halls." if is_blank else f"I counted {repeat + 2} halls.\nCount: {answer}"
        rows.append(make_row(task, repeat, reward, [text], expected_answer=gold, extracted_answer=read))
        if is_blank:
            blank.add((task, repeat))
    run = diagnose(rows)
    groups = [group for group in run.groups if "no answer found in the text" in group.name]
    if passes_without:
        assert groups == []
    else:
        assert [(group.label.value, run.keys(group)) for group in groups] == [("BI", blank)]
