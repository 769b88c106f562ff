"""Whether a sentence meets an anchor: by query, by number and names, by a list, by words; and when it does not."""

from __future__ import annotations

import pytest

from blade.model.conclusions import SUPPORTED, Finding
from blade.package.anchors import Anchor, Meaning
from blade.package.matching import Hit, Tasks, hit_of, passages
from blade.package.report_score import Bench, Case
from tests.case_tables import cases

KNOWN = Tasks({str(n): str(n) for n in range(20)}, {str(n): frozenset(range(4)) for n in range(20)})
GUESSED = frozenset(
    f"{task}/{n}" for task, numbers in {4: (1, 2), 8: range(4), 12: (3,), 15: (0, 1)}.items() for n in numbers
)
COUNT = (
    Anchor("C", "Nine tries of tasks 4, 8, 12 and 15 guess the account.", "count where guessed", 9, tasks=("4", "8", "12", "15")),
    Meaning("count", 9, GUESSED, 16, frozenset({"find_customer"}), "count"),
)  # fmt: skip
NONE = (
    Anchor("N", "No try of tasks 4 and 8 without find_customer passes.", "rate where calls('find_customer') = 0", 0.0, tasks=("4", "8")),
    Meaning("rate", 0.0, None, 8, frozenset({"find_customer"}), "rate"),
)  # fmt: skip
ALL = (
    Anchor(
        "A", "All four tries of task 8 change a stranger's order.", "count where task = '8'", 4, tasks=("8",)
    ),
    Meaning("count", 4, frozenset(f"8/{n}" for n in range(4)), 4, frozenset(), "count"),
)
SHARE = (
    Anchor("S", "Of the easy tickets 91.7% are solved.", "pass_at_1 where difficulty = 'easy'", 11 / 12),
    Meaning("rate", 11 / 12, None, None, frozenset({"easy", "difficulty"}), "pass_at_1"),
)
TOTAL = (
    Anchor("T", "The run passes 67.2% of its attempts.", "pass_at_1", 0.671875),
    Meaning("rate", 0.671875, None, None, frozenset(), "pass_at_1"),
)

ONE = (
    Anchor("O", "Task 7 is the only one that never opens an order.", "count where calls('open') = 0", 1, tasks=("7",)),
    Meaning("count", 1, frozenset({"7/0"}), 1, frozenset({"open_order"}), "count"),
)  # fmt: skip


FACTS = {"COUNT": COUNT, "NONE": NONE, "ALL": ALL, "SHARE": SHARE, "TOTAL": TOTAL, "ONE": ONE}


def met(fact: str, text: str) -> Hit:
    return hit_of(*FACTS[fact], passages(f"# Report\n\n{text}\n", KNOWN), (), None, KNOWN)


@pytest.mark.parametrize(("fact", "text", "how"), cases(__file__, "a_fact_is_met_by_its_number_beside_its_names"))
def test_a_fact_is_met_by_its_number_beside_its_names(fact: str, text: str, how: str) -> None:
    hit = met(fact, text)
    assert (hit.met, hit.how) == (True, how)


@pytest.mark.parametrize(("fact", "text"), cases(__file__, "a_fact_is_not_met_by_another_number_or_other_tasks"))
def test_a_fact_is_not_met_by_another_number_or_other_tasks(fact: str, text: str) -> None:
    assert not met(fact, text).met


@pytest.mark.parametrize("text", cases(__file__, "a_fact_that_is_denied_is_not_met"))
def test_a_fact_that_is_denied_is_not_met(text: str) -> None:
    hit = met("COUNT", text)
    assert (hit.met, hit.denied) == (False, True)


def test_a_negation_that_is_the_fact_denies_nothing() -> None:
    assert met("NONE", "Tries of tasks 4 and 8 that do not call `find_customer` pass in 0% of cases.").met


def citation(query: str, text: str) -> Finding:
    return Finding(SUPPORTED, "citation", 3, (3,), text, "9", "9", "", "", query)


@pytest.mark.parametrize(("query", "text", "is_met"), cases(__file__, "a_citation_meets_a_fact_of_the_same_rollouts"))
def test_a_citation_meets_a_fact_of_the_same_rollouts(
    desk: tuple[Case, Bench], query: str, text: str, is_met: bool
) -> None:
    bench = desk[1]
    anchor = next(anchor for anchor in bench.anchors if anchor.id == "B3")
    hit = hit_of(anchor, bench.meanings["B3"], (), [citation(query, text)], bench.worlds, bench.known)
    assert hit.met is is_met


@pytest.mark.parametrize(("text", "is_met"), cases(__file__, "prose_without_a_query_is_matched_by_wording"))
def test_prose_without_a_query_is_matched_by_wording(text: str, is_met: bool) -> None:
    anchor = Anchor("W", "Task 4 fails in 3 of 4 repeats.", tasks=("4",))
    hit = hit_of(anchor, None, passages(text, KNOWN), (), None, KNOWN)
    assert hit.met is is_met
    assert hit.how in ("wording", "")
