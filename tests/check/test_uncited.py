"""What names no source: uncited numbers with the query that gives them, and causes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from blade import pipeline
from blade.check import checked, world_of
from blade.check.uncited_numbers import MAX_QUERIES, bank
from blade.model.conclusions import OPINION, UNCITED
from blade.tables.index import Silent
from tests.builders import make_row, make_run

from .conftest import Desk


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It scores 67.0% on 24 tasks.", ["67.0%", "24"]),
        ("| Group | Tasks | Rate |\n|---|---:|---:|\n| easy | 9 | 91.7% |\n", ["9", "91.7%"]),
        ("- 11 of 28 fail\n", ["11", "28"]),
        ("67.0%<!--blade: pass_at_1--> of 24 tasks", ["24"]),
        ("## 3. Results: 67.0%\n", ["67.0%"]),
        # near misses: numbers that claim nothing
        ("In 2024, on 3 May and 2025-01-31, version 1.2.3 of gpt-4.1 ran.", []),
        ("Task 4, rollout 8/0, steps 4 and 7, `12/3#2` and 4/1 at step 3.", []),
        ("pass@4 and pass^2 with their 95% intervals; see section 3.", []),
        ("1. First\n2. Second\n", []),
        ("| Task | Step |\n|---|---|\n| 4 | 7 |\n", []),
        ("| k | What |\n|---|---|\n| 2 | two of them |\n", []),
        ("It says “you owe 44 lamps” and `x = 5`.", []),
        ("[EMAIL:1a2b3c44] and [ID:00001234:55] are gone.", []),
        ("```text\n12 of 24\n```\n", []),
    ],
)
def test_every_number_that_claims_something_is_listed(desk: Desk, text: str, numbers: list[str]) -> None:
    assert [item.printed for item in desk.check(text) if item.verdict == UNCITED] == numbers


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("It scores 67.0%.", "pass_at_1"),
        ("Easy ones reach 91.7%.", "pass_at_1 where difficulty = 'easy'"),
        ("At best it is 90.0%.", "pass_at_k(4)"),
        ("Every try: 35.0%.", "pass_hat_k(4)"),
        ("It passes in 61 tries.", "count where passed"),
        ("It takes 4.554 calls.", "mean(calls)"),
        ("At least 52.9% of it.", "pass_at_1.low"),
        # near misses
        ("It is 23.4%.", ""),
        ("Easy ones reach 92%.", ""),
        ("At least 53% of it.", ""),
        ("It scores 67%.", "pass_at_1"),
        ("It grew by 67.0 points.", ""),
        ("It is 1 of them.", ""),
    ],
)
def test_the_only_short_query_that_gives_a_number_is_suggested(desk: Desk, text: str, query: str) -> None:
    item = next(item for item in desk.check(text, "number"))
    assert (item.expected, item.query) == (query, query or None)
    assert item.why == (f"{item.printed} = {query}; cite it?" if query else "")


def test_every_suggestion_gives_what_it_says(desk: Desk) -> None:
    from blade.query.query_ground import value

    known = list(bank(desk.world, desk.world.ground.runs[0]))
    assert len({item.query for item in known}) > 100
    for item in known:
        assert value(item.query, desk.world.ground) == pytest.approx(item.value), item.query


@pytest.mark.slow
def test_the_bank_is_bounded(tmp_path: Path) -> None:
    rows = [
        make_row(n // 4, n % 4, float(n % 3 == 0), **{f"field_{k}": f"value {(n // 4 * 7 + k) % 19}" for k in range(30)})
        for n in range(20_000)
    ]
    world = world_of(pipeline.load([str(make_run(tmp_path, rows))], Silent()))
    world.columns()
    start = time.monotonic()
    known = list(bank(world, world.ground.runs[0]))
    assert len(known) < 2 * MAX_QUERIES
    assert time.monotonic() - start < 8  # 2 s on an idle machine


@pytest.mark.parametrize(
    ("text", "is_opinion"),
    [
        ("It fails because it never looks.", True),
        ("The losses are due to the lock.", True),
        ("Guessing leads to wrong orders.", True),
        ("It fails because it never looks: 14<!--blade: count where calls('find_customer') = 0-->.", False),
        ("It fails because of “nothing was changed” (2/2#9).", False),
        ("It never looks.", False),
        ("They have three causes.", False),
    ],
)
def test_a_cause_without_a_source_is_an_opinion(desk: Desk, text: str, is_opinion: bool) -> None:
    assert (OPINION in desk.verdicts(text)) == is_opinion
    assert (OPINION in [item.verdict for item in checked(text, None)]) == is_opinion
