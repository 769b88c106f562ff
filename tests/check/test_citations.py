"""Cited numbers and ids: they hold, they are wrong, or nobody can say; and what names no source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from blade import pipeline
from blade.check import checked, world_of
from blade.check.row_ids import mentions, numbered
from blade.check.uncited_numbers import bank
from blade.model.conclusions import CONTRADICTED, OPINION, SUPPORTED, UNCITED, UNVERIFIABLE
from blade.query import query_process
from blade.tables.index import Silent
from tests.builders import make_row, make_run
from tests.case_tables import cases

from .conftest import Desk


@pytest.mark.parametrize(("text", "wrong"), cases(__file__, "a_number_holds_at_its_printed_precision"))
def test_a_number_holds_at_its_printed_precision(desk: Desk, text: str, wrong: list[tuple[str, str]]) -> None:
    run = desk.world.ground.runs[0]
    for right, false in wrong:
        for printed, verdict in ((right, SUPPORTED), (false, CONTRADICTED)):
            items = desk.check(text.replace("{}", printed).replace("'run'", f"'{run}'"), "citation")
            assert verdict in [item.verdict for item in items], (printed, items)
            if verdict == SUPPORTED:
                assert {item.verdict for item in items} == {SUPPORTED}, items


def is_opinion(desk: Desk, text: str) -> bool | None:
    """Whether a text has an opinion, with the rows and without them; None if that differs."""
    with_rows, alone = (OPINION in [item.verdict for item in checked(text, world)] for world in (desk.world, None))
    return with_rows if with_rows == alone else None


READINGS: dict[str, Callable[[Desk, str], object]] = {  # by table: what a text is read as
    "every_number_that_claims_something_is_listed":
        lambda desk, text: [item.printed for item in desk.check(text) if item.verdict == UNCITED],
    "numbers_that_name_are_told_from_those_that_count": lambda _, text: [list(name.numbers) for name in numbered(text)],
    "the_tasks_of_a_text": lambda desk, text: [str(item.address.rollout) for item in mentions(text, desk.world.rows)],
    "traces_are_made_for_queries_that_read_them": lambda _, query: query_process.needs_traces(query),
    "a_cause_without_a_source_is_an_opinion": is_opinion,
    "a_quotation_from_elsewhere_is_contradicted_with_where_it_stands":
        lambda desk, text: [item.expected for item in desk.check(text, "quotation") if item.verdict == CONTRADICTED],
}


@pytest.mark.parametrize(("name", "text", "expected"), [(name, *row) for name in READINGS for row in cases(__file__, name)])
def test_what_a_text_is_read_as(desk: Desk, name: str, text: str, expected: object) -> None:
    assert READINGS[name](desk, text) == expected


REFUSED = {"what_cannot_be_evaluated_is_unverifiable": UNVERIFIABLE, "a_citation_that_cannot_be_asked_is_wrong": CONTRADICTED}


@pytest.mark.parametrize(("verdict", "text", "why"), [(REFUSED[name], *row) for name in REFUSED for row in cases(__file__, name)])
def test_what_cannot_be_evaluated_is_unverifiable_or_wrong(desk: Desk, verdict: str, text: str, why: str) -> None:
    (item,) = desk.check(text, "citation")
    assert item.verdict == verdict
    assert why in item.why


@pytest.mark.parametrize(("text", "verdict"), cases(__file__, "intervals_bounds_and_words"))
def test_intervals_bounds_and_words(desk: Desk, text: str, verdict: str) -> None:
    (rate,) = desk.world.select("select avg(passed::int) from rollouts where difficulty = 'easy' and not masked")[0]
    items = desk.check(text.replace("{}", f"{rate:.1%}"), "citation")
    assert {item.verdict for item in items} == {verdict}, items


def test_the_interval_and_the_whole_beside_a_number_are_checked_and_its_reading_is_said(desk: Desk) -> None:
    (answer,) = desk.world.ground.ask("pass_at_1")  # type: ignore[misc]
    for high, verdict in ((f"{answer.high:.1%}", SUPPORTED), ("99.9%", CONTRADICTED)):
        ends = f"[{answer.low:.1%}, {high}]"
        (item,) = desk.check(f"It is {answer.value:.1%} {ends}<!--blade: pass_at_1-->.", "citation")
        assert item.verdict == verdict
    assert item.printed == ends
    assert desk.check("It passes 9 of 24<!--blade: tasks where difficulty = 'easy'-->.", "number") == []
    (item,) = desk.check("It passes 9 of 99<!--blade: tasks where difficulty = 'easy'-->.", "number")
    assert (item.verdict, item.printed) == (UNCITED, "99")
    (item,) = desk.check("Easy ones: 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->.", "citation")
    assert item.reading == "pass@1 (mean over tasks) where difficulty = 'easy' = 91.67%, n = 9 tasks"
    assert (item.printed, item.query) == ("91.7%", "pass_at_1 where difficulty = 'easy'")
    (item,) = desk.check(f"| Level | Rate |\n|---|---|\n| easy | 91.7%<!--blade: {item.query}--> |\n", "citation")
    assert item.text == "Level: easy | Rate: 91.7%"


def test_all_queries_are_asked_in_one_process_and_one_that_ends_it_takes_none_along(desk: Desk, monkeypatch: pytest.MonkeyPatch, processes: None) -> None:
    jobs: list[query_process.Job] = []
    run = query_process.run
    monkeypatch.setattr(query_process, "run", lambda job: jobs.append(job) or run(job))
    desk.check("".join(f"It is {n}<!--blade: count where turns = {n}-->.\n\n" for n in range(30)))
    assert [len(job.queries) for job in jobs] == [30]
    slow = "select count(*) from range(100000000000) a, range(1000000) b"
    monkeypatch.setattr(query_process, "SECONDS", 1.5)
    text = f"It is 92<!--blade: count-->, 5<!--blade: {slow}--> and 24<!--blade: tasks-->."
    assert desk.verdicts(text, "citation") == [SUPPORTED, UNVERIFIABLE, SUPPORTED]


def test_damaged_tables_are_made_anew_and_make_no_number_wrong(tmp_path: Path, cache: Path, processes: None) -> None:
    world = world_of(pipeline.load([str(make_run(tmp_path, [make_row(task, 0, float(task % 2)) for task in range(8)]))], Silent()))
    (files,) = world.ground.files(False)
    Path(files.tables).write_bytes(b"no tables" * 2_000)
    assert [item.verdict for item in checked("It is 50%<!--blade: rate-->.", world)] == [SUPPORTED]


@pytest.mark.parametrize(("text", "note"), cases(__file__, "another_value_than_the_cited_one_is_pointed_out"))
def test_another_value_than_the_cited_one_is_pointed_out(desk: Desk, text: str, note: str) -> None:
    items = [item for item in desk.check(text, "citation") if item.why.startswith("the sentence says")]
    assert len(items) == bool(note), items
    assert all(note in item.why and item.verdict == UNVERIFIABLE for item in items)


def test_a_run_that_is_not_named_is_not_guessed(tmp_path: Path) -> None:
    make_run(tmp_path, [make_row(task, 0, float(task % 2)) for task in range(8)], name="gpt-4.1")
    world = world_of(pipeline.load([f"one+(={tmp_path}/gpt-4.1.jsonl", f"gpt-4.1={tmp_path}/gpt-4.1.jsonl"], Silent()))
    (item,) = checked("It is 50%<!--blade: rate-->.", world)
    assert (item.verdict, item.kind) == (UNVERIFIABLE, "citation")
    assert "names none" in item.why
    named = "Run `gpt-4.1` is at 50%<!--blade: rate where run = '{}'-->."
    assert [item.verdict for item in checked(named.format("gpt-4.1"), world)] == [SUPPORTED]
    note = [item.why for item in checked(named.format("one+("), world) if item.why]
    assert note == ["the sentence says gpt-4.1, the citation is about one+("]


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


@pytest.mark.parametrize(("text", "printed", "verdict"), cases(__file__, "what_is_named_exists_or_not"))
def test_what_is_named_exists_or_not(desk: Desk, text: str, printed: str, verdict: str) -> None:
    assert (verdict, printed) in [(item.verdict, item.printed) for item in desk.check(text, "id")]


@pytest.mark.parametrize("text", cases(__file__, "what_is_not_surely_an_id_is_never_wrong"))
def test_what_is_not_surely_an_id_is_never_wrong(desk: Desk, text: str) -> None:
    assert CONTRADICTED not in desk.verdicts(text, "id")


def test_the_step_and_the_field_of_an_address_are_looked_up(desk: Desk) -> None:
    for text, why in (("See 4/1#77.", "no such step"), ("See 4/1#nothing.", "no row has the field nothing")):
        (item,) = desk.check(text, "id")
        assert (item.verdict, why in item.why) == (CONTRADICTED, True)
    assert desk.verdicts("See 4/1#0.", "id") == [SUPPORTED]


def test_an_index_that_is_the_name_of_another_task_is_never_supported(tmp_path: Path) -> None:
    rows = [make_row(task, 0, 1.0, task_id=str(3 - task)) for task in range(4)]  # task 0 is called 3
    world = world_of(pipeline.load([str(make_run(tmp_path, rows))], Silent()))
    assert world.rows.keys("3") == ("0", "3")
    for text in ("Task 3 fails.", "In `3/0` it stops."):
        assert {item.verdict for item in checked(text, world) if item.kind == "id"} == {UNVERIFIABLE}
    quoted = "Task `3/0` says:\n\n```text\nthe answer\n```\n"
    assert {item.verdict for item in checked(quoted, world)} == {UNVERIFIABLE}
    (pinned,) = [item for item in checked("See 3/0#0.", world) if item.kind == "id"]  # our notation: the key
    assert pinned.verdict == SUPPORTED
