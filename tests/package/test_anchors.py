"""Anchor facts: read from files, meant by their query, drafted from reports and rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blade.package.anchors import Anchor, Meaning, as_file, drafted, meaning, of_file
from blade.package.package_queries import names_in
from blade.package.report_score import Bench, Case
from tests.case_tables import cases
from tests.conftest import Blade
from tests.package.conftest import files

Desk = tuple[Case, Bench]


def test_a_file_gives_back_what_was_written_and_odd_entries_cannot_be_used(desk: Desk) -> None:
    anchors = list(desk[0].anchors)
    data = json.loads(json.dumps(as_file(anchors, "desk", "sim-model-a")))
    assert of_file(data) == anchors
    assert of_file(data["anchor_facts"]) == anchors
    assert set(data) == set("benchmark model extraction_method review_required anchor_facts draft".split())
    keys = set("id fact query value tasks weight difficulty mean_score".split())
    assert keys <= set(data["anchor_facts"][0])
    found = of_file([7, None, {"fact": 3}, {"fact": "too short"}, "Task 4 fails in 3 of its 4 repeats."])
    assert [bool(anchor.problem) for anchor in found] == [True, True, True, True, False]
    assert [anchor.id for anchor in found] == ["B1", "B2", "B3", "B4", "B5"]
    assert found[-1].by_wording


@pytest.mark.parametrize("name", ["weight", "difficulty", "query"])
@pytest.mark.parametrize("value", [[], {}, 3, True])
def test_a_word_that_is_none_is_told_and_stops_nothing(name: str, value: object) -> None:
    fact = {"id": "B1", "fact": "Task 4 fails in 3 of its 4 repeats."}
    [bad, good] = of_file([fact | {name: value}, fact])
    assert name in bad.problem
    assert not good.problem


@pytest.mark.parametrize(("query", "names"), cases(__file__, "a_query_names_tools_values_and_fields"))
def test_a_query_names_tools_values_and_fields(query: str, names: set[str]) -> None:
    assert names_in(query) == set(names)


def meant(query: str, value: float | None, tasks: tuple[str, ...], desk: Desk) -> Meaning | str:
    return meaning(Anchor("B1", "A fact of twenty characters.", query, value, tasks=tasks), desk[1].worlds)


def test_a_query_means_its_value_its_rollouts_and_its_kind(desk: Desk) -> None:
    found = meant("count where task = '8' and calls('find_customer') = 0", 4, ("8",), desk)
    rate = meant("rate where truncated", 0.0, (), desk)
    assert isinstance(found, Meaning)
    assert isinstance(rate, Meaning)
    assert (found.kind, found.value, found.n_rollouts) == ("count", 4, 4)
    assert found.rollouts == {"8/0", "8/1", "8/2", "8/3"}
    assert (rate.kind, rate.value) == ("rate", 0.0)


@pytest.mark.parametrize(("query", "value", "why"), cases(__file__, "an_anchor_that_the_rows_do_not_bear_out_says_why"))
def test_an_anchor_that_the_rows_do_not_bear_out_says_why(desk: Desk, query: str, value: float | None, why: str) -> None:
    assert why in str(meant(query, value, (), desk))


def test_facts_are_drafted_from_citations_about_tasks_then_totals_then_contrasts(desk: Desk) -> None:
    case, bench = desk
    assert bench.worlds is not None
    found = drafted(case.golden, bench.worlds, 12)
    assert len(found) == 12
    assert all(anchor.query and anchor.value is not None for anchor in found)
    assert not any(anchor.weak for anchor in found), "the report cites enough about tasks"
    first = {(anchor.query, anchor.value, anchor.tasks) for anchor in found}
    assert ("count where calls('find_customer') = 0", 9, ("4", "8", "12", "15")) in first
    every = drafted(case.golden, bench.worlds, 99)
    weak = {anchor.query for anchor in every if anchor.weak}
    assert {"pass_at_1", "count where not passed", "pass_at_1 where difficulty = 'easy'"} <= weak
    assert not [anchor for anchor in every if "sim_model_b" in (anchor.query or "")]
    found = drafted("# A report\n\nIt says little.\n", bench.worlds, 12)
    contrast = next(anchor for anchor in found if "find_customer" in anchor.fact)
    assert (contrast.value, contrast.tasks) == (0.0, ("4", "12", "15"))
    assert "against 100.0% of those that call it" in contrast.fact
    assert any("never passes: 8" in anchor.fact for anchor in found)


def test_the_command_takes_its_rows_from_the_package_or_wording_and_keeps_what_was_reviewed(blade: Blade, package: Path, tmp_path: Path) -> None:
    golden, to = files(package)[0], tmp_path / "facts.json"
    model = ("--model-name", "sim-model-a", "--benchmark", "desk")
    words = ("package", "extract-anchor-facts", "--golden", golden, *model, "--output", to)
    result = blade(*words, "--num-facts", 9)
    assert result.code == 0, result.err
    data = json.loads(to.read_text())
    assert (len(data["anchor_facts"]), data["review_required"], data["model"]) == (9, True, "sim-model-a")
    assert blade(*words, "--min-facts", 99).code == 1
    drafts = json.loads(to.read_text())
    for change in ({"review_required": False}, {"anchor_facts": drafts["anchor_facts"][1:]}):
        changed = drafts | change
        to.write_text(json.dumps(changed))
        kept = blade(*words)
        assert (kept.code, json.loads(to.read_text())) == (2, changed)
        assert "--force" in kept.err
    assert blade(*words, "--force").code == 0
    assert json.loads(to.read_text()) == drafts
    alone, to = tmp_path / "alone.md", tmp_path / "wording.json"
    alone.write_text(files(package)[0].read_text())
    words = ("--golden", alone, "--benchmark", "desk", "--model-name", "m", "--output", to)
    result = blade("package", "extract-anchor-facts", *words)
    assert result.code == 0, result.err
    assert "no rollouts" in result.err
    data = json.loads(to.read_text())
    assert "no rollouts" in data["extraction_method"]
    assert not any("query" in fact for fact in data["anchor_facts"])
