"""Cited numbers, lists and tables: they hold, they are wrong, or they cannot be evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline
from blade.check import checked, cited_numbers, world_of
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNCITED, UNVERIFIABLE
from blade.query import query_process
from blade.tables.index import Silent
from tests.builders import make_row, make_run

from .conftest import Desk

TABLE = "<!--blade-->\n\n| difficulty | pass@1 |\n|---|---:|\n| easy | 91.7% |\n| hard | {} |\n| medium | 59.3% |\n\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It scores {}<!--blade: pass_at_1-->.", [("67.0%", "67.5%"), ("67%", "68%"), ("0.670", "0.67%")]),
        ("It scores **{}**<!--blade: pass_at_1--> here.", [("67.0%", "66.0%")]),
        ("From {}<!--blade: pass_at_1.low--> to the top.", [("52.9%", "52.8%")]),
        ("Of all, {}<!--blade: count where passed--> pass.", [("61", "62"), ("61 of 92", "60 of 92")]),
        ("It is {}<!--blade: rate-->.", [("61 of 92", "61 of 91"), ("66.3%", "66.4%"), ("about 66%", "about 60%")]),
        ("We saw 92<!--blade: count--> of {}<!--blade: select expected from runs-->.", [("96", "97")]),
        ("4 calls, {}<!--blade: mean(turns) where passed--> / 5.04<!--blade: mean(turns) where outcome = 'failed'-->.", [("6.02", "5.04")]),
        ("It costs {}<!--blade: sum(total_tokens)--> tokens.", [("127,196", "127,169"), ("127 thousand", "12.7 thousand")]),
        ("| a | b |\n|---|---|\n| x | {}<!--blade: tasks--> |\n", [("24", "25")]),
        ("Tasks <!--blade-->{}<!--blade: select task from tasks where bucket = 'never' | list--> fail.", [("8 and 17", "8 and 18")]),
        (TABLE + "<!--blade: pass_at_1 by difficulty-->\n", [("41.7%", "41.8%"), ("42%", "40%")]),
        ("It scores {}<!--c1-->.\n\n<!--blade claims\nc1 pass_at_1\n-->\n", [("67.0%", "67.5%")]),
        ("The gain is {}<!--blade: engine.runs(name='run').score | points-->.", [("67.0 points", "66.0 points")]),
        ("It loses {}<!--blade: engine.losses(run='run').lost | points-->.", [("33.0 points", "32.0 points")]),
        ("In {}<!--blade: count where calls('find_customer') = 0--> of them it guesses.", [("14", "15")]),
        ("There are nine {}<!--blade: select count(*) from tasks where bucket = 'always'-->.", [("(9)", "(8)")]),
    ],
)
def test_a_number_holds_at_its_printed_precision(desk: Desk, text: str, wrong: list[tuple[str, str]]) -> None:
    run = desk.world.ground.runs[0]
    for right, false in wrong:
        for printed, verdict in ((right, SUPPORTED), (false, CONTRADICTED)):
            items = desk.check(text.replace("{}", printed).replace("'run'", f"'{run}'"), "citation")
            assert verdict in [item.verdict for item in items], (printed, items)
            if verdict == SUPPORTED:
                assert {item.verdict for item in items} == {SUPPORTED}, items


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It is 5<!--blade: count where run = 'other'-->.", "the run 'other' was not given"),
        ("It is 5<!--blade: pass_at_1 by difficulty-->.", "3 values, not one"),
        ("It is 5<!--blade: select task from tasks-->.", "24 values, not one"),
        ("It is so.<!--blade: count-->", "no number"),
        ("It is 5<!--blade: engine.nothing.here-->.", "no 'nothing'"),
        ("It is {{ count }}.", "not filled in"),
        ("It is 5<!--blade: count where answer = '[EMAIL:1a2b3c4d]'-->.", "redacted"),
    ],
)
def test_what_cannot_be_evaluated_is_unverifiable(desk: Desk, text: str, why: str) -> None:
    (item,) = desk.check(text, "citation")
    assert item.verdict == UNVERIFIABLE
    assert why in item.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It is 5<!--blade: counting-->.", "no measure and no SELECT"),
        ("It is 5<!--blade: count where colour = 'red'-->.", "colour"),
        ("It is 5<!--blade: select * from read_csv('/etc/passwd')-->.", "not available"),
        ("It is 5<!--blade: drop table rollouts-->.", "no measure and no SELECT"),
        ("It is 5<!--blade: select 5-->.", "reads no column"),
        ("It is 5<!--blade: select 5 from runs-->.", "reads no column"),
        ("It is 5 of 7<!--blade: pass_at_k-->.", "pass_at_k needs its k"),
        ("It is 5<!--c9-->.\n\n<!--blade claims\nc1 count\n-->\n", "not in the list of claims"),
    ],
)
def test_a_citation_that_cannot_be_asked_is_wrong(desk: Desk, text: str, why: str) -> None:
    (item,) = desk.check(text, "citation")
    assert item.verdict == CONTRADICTED
    assert why in item.why


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Easy: 91.7% [67.0%, 99.0%]<!--blade: pass_at_1 where difficulty = 'easy'-->", CONTRADICTED),
        ("Easy: more than 90%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: at least 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: less than 91%<!--blade: pass_at_1 where difficulty = 'easy'-->", CONTRADICTED),
        ("Easy: fewer than 10<!--blade: tasks where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: just over 90%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: well under 95%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: over 95%<!--blade: pass_at_1 where difficulty = 'easy'-->", CONTRADICTED),
        ("Easy: not even 90%<!--blade: pass_at_1 where difficulty = 'easy'-->", CONTRADICTED),
        ("Easy: a mean over 8<!--blade: tasks where difficulty = 'easy'--> tasks", CONTRADICTED),
        ("Easy: 90.1%–91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: 91.7<!--blade: pass_at_1 where difficulty = 'easy'-->%", SUPPORTED),
        ("Easy: 91.8<!--blade: pass_at_1 where difficulty = 'easy'--> percent", CONTRADICTED),
        ("Easy: 91,7%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: 91.7 per cent,<!--blade: pass_at_1 where difficulty = 'easy'--> as it seems", SUPPORTED),
        ("In batch 12 nine<!--blade: tasks where difficulty = 'easy'--> are easy", SUPPORTED),
        ("In batch 9 eight<!--blade: tasks where difficulty = 'easy'--> are easy", CONTRADICTED),
        ("In version 2 127<!--blade: select 127 from rollouts where row = 0-->", SUPPORTED),
        ("Easy: 90.1%<!--blade: select 0.901 from rollouts where row = 0-->–91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: {}<!--blade: select 100.0 * avg(passed::int) from rollouts where difficulty = 'easy' and not masked-->", SUPPORTED),
        ("Easy: more than two thirds<!--blade: pass_at_1 where difficulty = 'easy'-->", UNVERIFIABLE),
        ("Easy: 92 in 100<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("Easy: 93 in 100<!--blade: pass_at_1 where difficulty = 'easy'-->", CONTRADICTED),
        ("Easy: 91.7% (n = 9)<!--blade: pass_at_1 where difficulty = 'easy'-->", SUPPORTED),
        ("A drop of 4 points<!--blade: select -0.04 from rollouts where row = 0-->", SUPPORTED),
        ("A gain of 4 points<!--blade: select -0.04 from rollouts where row = 0-->", CONTRADICTED),
        ("| Slice | Pass rate (%) |\n|---|---|\n| easy | 91.7<!--blade: pass_at_1 where difficulty = 'easy'--> |\n", SUPPORTED),
        ("| Slice | Pass rate (%) |\n|---|---|\n| easy | 91.8<!--blade: pass_at_1 where difficulty = 'easy'--> |\n", CONTRADICTED),
        ("None of the 9<!--blade: tasks where difficulty = 'easy'--> is lost", SUPPORTED),
        ("None of the 8<!--blade: tasks where difficulty = 'easy'--> is lost", CONTRADICTED),
        ("Fourteen<!--blade: count where calls('find_customer') = 0--> guess", SUPPORTED),
        ("Easy: 1<!--blade: pass_at_1 where difficulty = 'easy'-->", CONTRADICTED),
        ("Easy: forty-nine<!--blade: tasks where difficulty = 'easy'-->", UNVERIFIABLE),
    ],
)
def test_intervals_bounds_and_words(desk: Desk, text: str, verdict: str) -> None:
    (rate,) = desk.world.select("select avg(passed::int) from rollouts where difficulty = 'easy' and not masked")[0]
    items = desk.check(text.replace("{}", f"{rate:.1%}"), "citation")
    assert {item.verdict for item in items} == {verdict}, items


def test_the_interval_behind_a_number_is_checked_with_it(desk: Desk) -> None:
    (answer,) = desk.world.ground.ask("pass_at_1")  # type: ignore[misc]
    ends = [f"{end * 100:.1f}%" for end in (answer.low, answer.high)]
    (item,) = desk.check(f"It is {answer.value:.1%} [{', '.join(ends)}]<!--blade: pass_at_1-->.", "citation")
    assert item.verdict == SUPPORTED
    (item,) = desk.check(f"It is {answer.value:.1%} [{ends[0]}, 99.9%]<!--blade: pass_at_1-->.", "citation")
    assert (item.verdict, item.printed) == (CONTRADICTED, f"[{ends[0]}, 99.9%]")


def test_what_a_count_is_out_of_is_uncited_unless_it_is_all(desk: Desk) -> None:
    assert desk.check("It passes 9 of 24<!--blade: tasks where difficulty = 'easy'-->.", "number") == []
    (item,) = desk.check("It passes 9 of 99<!--blade: tasks where difficulty = 'easy'-->.", "number")
    assert (item.verdict, item.printed) == (UNCITED, "99")


def test_the_reading_says_what_a_citation_is_about(desk: Desk) -> None:
    (item,) = desk.check("Easy ones: 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->.", "citation")
    assert item.reading == "pass@1 (mean over tasks) where difficulty = 'easy' = 91.67%, n = 9 tasks"
    assert (item.printed, item.query) == ("91.7%", "pass_at_1 where difficulty = 'easy'")


def test_all_queries_of_a_report_are_asked_in_one_process(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[query_process.Job] = []
    run = query_process.run
    monkeypatch.setattr(query_process, "run", lambda job: jobs.append(job) or run(job))
    desk.check("".join(f"It is {n}<!--blade: count where turns = {n}-->.\n\n" for n in range(30)))
    assert [len(job.queries) for job in jobs] == [30]


def test_a_query_that_ends_its_process_does_not_take_the_others_with_it(
    desk: Desk, processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "select count(*) from range(100000000000) a, range(1000000) b"
    monkeypatch.setattr(query_process, "SECONDS", 1.5)
    text = f"It is 92<!--blade: count-->, 5<!--blade: {slow}--> and 24<!--blade: tasks-->."
    assert desk.verdicts(text, "citation") == [SUPPORTED, UNVERIFIABLE, SUPPORTED]


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ("select count(*) from calls", True),
        ("count where calls('x') > 0", True),
        ("rate where says('calls')", True),
        ('select 1 from "steps"', True),
        ("select a from rollouts, texts", True),
        ("mean(calls) where passed", False),
        ("select median(steps) from rollouts", False),
        ("count where calls > 3 and steps = 4", False),
        ("count where answer = 'says calls'", False),
    ],
)
def test_traces_are_made_for_queries_that_read_them(query: str, needed: bool) -> None:
    assert cited_numbers.needs_traces(query) is needed


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Hard ones pass in 91.7%<!--blade: pass_at_1 where difficulty = 'easy'--> of tries.", "says hard, the citation is about easy"),
        ("Easy ones pass in 91.7%<!--blade: pass_at_1 where difficulty = 'easy'--> of tries.", ""),
        ("Beside hard ones, easy ones reach 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->.", ""),
        ("Hard: 41.7%<!--blade: pass_at_1 where difficulty = 'hard'-->, the rest 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->.", ""),
        ("In the simple group it is 91.7%<!--blade: pass_at_1 where difficulty = 'easy'-->.", ""),
        ("## Easy tasks\n\nHere 91.7%<!--blade: pass_at_1 where difficulty = 'easy'--> pass, unlike hard ones.", ""),
        ("| Difficulty | pass@1 |\n|---|---|\n| hard | 91.7%<!--blade: pass_at_1 where difficulty = 'easy'--> |\n", "says hard"),
        ("| Difficulty | pass@1 |\n|---|---|\n| easy | 91.7%<!--blade: pass_at_1 where difficulty = 'easy'--> |\n", ""),
        ("Failed ones take 6.02<!--blade: mean(turns) where passed--> turns.", "says failed, the citation is about passed"),
        ("Those that pass take 6.02<!--blade: mean(turns) where passed--> turns.", ""),
        ("Failures take 5.04<!--blade: mean(turns) where outcome = 'failed'-->, the others 6.02<!--blade: mean(turns) where passed-->.", ""),
        ("Without `update_order` it is 14<!--blade: count where calls('find_customer') = 0-->.", "says update_order"),
        ("Without `find_customer` it is 14<!--blade: count where calls('find_customer') = 0-->.", ""),
        ("`update_order` fails; in 14<!--blade: count where calls('find_customer') = 0--> it is a guess.", ""),
        ("The mean input is 804.3<!--blade: mean(output_tokens)--> tokens.", "says input_tokens"),
        ("The mean output is 804.3<!--blade: mean(output_tokens)--> tokens.", ""),
        ("In all it writes 804.3<!--blade: mean(output_tokens)--> tokens a try.", ""),
        ("The total is 804.3<!--blade: mean(output_tokens)--> tokens a try.", "says total_tokens"),
        ("The first repeat has 15<!--blade: count where passed and repeat = 3-->.", "says first repeat"),
        ("At pass@2 it is 90.0%<!--blade: pass_at_k(4)-->.", "says 2"),
        ("At pass@4 it is 90.0%<!--blade: pass_at_k(4)-->.", ""),
        ("With four tries it is 90.0%<!--blade: pass_at_k(4)-->.", ""),
    ],
)
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
