"""What names no source: uncited numbers with the query that gives them, and causes."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.check.uncited_numbers import bank
from blade.model.conclusions import OPINION, UNCITED
from tests.case_tables import cases

from .conftest import Desk


@pytest.mark.parametrize(("text", "numbers"), cases(__file__, "every_number_that_claims_something_is_listed"))
def test_every_number_that_claims_something_is_listed(desk: Desk, text: str, numbers: list[str]) -> None:
    assert [item.printed for item in desk.check(text) if item.verdict == UNCITED] == numbers


@pytest.mark.parametrize(("text", "query"), cases(__file__, "the_only_short_query_that_gives_a_number_is_suggested"))
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


@pytest.mark.parametrize(("text", "is_opinion"), cases(__file__, "a_cause_without_a_source_is_an_opinion"))
def test_a_cause_without_a_source_is_an_opinion(desk: Desk, text: str, is_opinion: bool) -> None:
    assert (OPINION in desk.verdicts(text)) == is_opinion
    assert (OPINION in [item.verdict for item in checked(text, None)]) == is_opinion
