"""What a report prints and names, and whether it meets an anchor: by query, by number and names, by a list, by words."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from blade.model.conclusions import SUPPORTED, Finding
from blade.package.anchors import Anchor, Meaning
from blade.package.matching import Hit, Tasks, figures, hit_of, mentions, passages, visible
from blade.package.report_score import Bench, Case
from tests.case_tables import cases

NAMES = {str(n): str(n) for n in range(20)}
KNOWN = Tasks(NAMES | {"desk-07": "7", "set/x-3": "12"}, {key: frozenset(range(4)) for key in NAMES})


def fact_of(name: str) -> tuple[Anchor, Meaning]:
    """An anchor of the table `facts`, with what its query means."""
    (entry,) = (entry for entry in cases(__file__, "facts") if entry["name"] == name)
    return msgspec.convert({"id": name, **entry["anchor"]}, Anchor), msgspec.convert(entry["meaning"], Meaning)


def met(fact: str, text: str) -> Hit:
    return hit_of(*fact_of(fact), passages(f"# Report\n\n{text}\n", KNOWN), (), None, KNOWN)


@pytest.mark.parametrize(("fact", "text", "how"), [
    *cases(__file__, "a_fact_is_met_by_its_number_beside_its_names"),
    *((*row, "") for row in cases(__file__, "a_fact_is_not_met_by_another_number_or_other_tasks")),
    *(("COUNT", text, "denied") for text in cases(__file__, "a_fact_that_is_denied_is_not_met")),
])  # fmt: skip
def test_a_fact_is_met_by_its_number_beside_its_names_unless_it_is_denied(fact: str, text: str, how: str) -> None:
    hit = met(fact, text)
    assert ("denied" if hit.denied else hit.how if hit.met else "") == how
    assert not (hit.met and hit.denied)


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


READINGS: dict[str, Callable[[str], object]] = {  # by table: what a text is read as
    "tasks_are_named_where_they_are_said_to_be_tasks": lambda text: sorted({name for *_, name in mentions(text, KNOWN)}),
    "without_rollouts_any_id_will_do": lambda text: sorted({name for *_, name in mentions(text, Tasks())}),
    "numbers_are_read_as_printed": lambda text: [[each.number, each.is_percent, each.whole] for each in figures(text, KNOWN)],
}


@pytest.mark.parametrize(("name", "text", "expected"), [(name, *row) for name in READINGS for row in cases(__file__, name)])
def test_what_a_text_is_read_as(name: str, text: str, expected: list[object]) -> None:
    assert READINGS[name](text) == (expected if name == "numbers_are_read_as_printed" else sorted(expected))  # type: ignore[type-var]


@pytest.mark.parametrize(("table", "tasks", "numbers"), cases(__file__, "columns_of_ids_count_nothing"))
def test_columns_of_ids_count_nothing(table: str, tasks: set[str], numbers: list[float]) -> None:
    rows = passages(f"# x\n\n{table}", KNOWN)[1:]
    assert {task for row in rows for task in row.tasks} == set(tasks)
    assert [figure.number for row in rows for each in row.statements for figure in each.figures] == numbers


def test_what_is_struck_or_hidden_is_not_read() -> None:
    text = "a ~~b\nc~~ d\n<div hidden>\n\ne\n\n</div>\nf"
    assert visible(text).split() == ["a", "d", "f"]
    assert visible(text).count("\n") == text.count("\n")
