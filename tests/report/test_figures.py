"""The figures: well-formed, offline, the same every time."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable

from msgspec.structs import replace

from blade.model import Measure, Report
from blade.report import figures
from blade.report.blocks import plain
from blade.report.facts import facts

Cases = dict[str, Callable[[], Report]]


def test_every_figure_is_well_formed_and_fetches_nothing(report: Report) -> None:
    for figure in figures.drawn(report):
        root = ET.fromstring(figure.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        for element in root.iter():
            assert element.tag.rpartition("}")[2] not in ("script", "image", "foreignObject", "a", "style")
            assert not [name for name in element.attrib if name.endswith("href") or name.startswith("on")]
        assert figure.caption


def test_the_same_report_draws_the_same_bytes(one_run: Report) -> None:
    assert figures.drawn(one_run) == figures.drawn(one_run)


def test_one_run_has_four_figures(one_run: Report) -> None:
    assert [figure.file for figure in figures.drawn(one_run)] == [
        "buckets.svg",
        "tasks.svg",
        "funnel.svg",
        "tokens.svg",
    ]


def test_files_of_several_runs_are_numbered(cases: Cases) -> None:
    files = [figure.file for figure in figures.drawn(cases["two runs"]())]
    assert files == [
        "buckets.svg",
        "tasks-1.svg",
        "funnel-1.svg",
        "tokens-1.svg",
        "tasks-2.svg",
        "funnel-2.svg",
        "tokens-2.svg",
    ]


def test_many_tasks_are_sampled_evenly_and_the_title_says_so(cases: Cases) -> None:
    (run,) = facts(cases["many tasks"]())
    made = figures.tasks_spec(run)
    assert made is not None
    spec, caption = made
    ranks = [value["rank"] for value in spec["data"]["values"]]
    assert len(ranks) == len(set(ranks)) == 200
    assert (ranks[0], ranks[-1]) == (1, 450)
    assert "200 of 450 tasks, evenly sampled" in spec["title"]["subtitle"]
    assert "an even sample of them" in plain(caption)


def test_tasks_are_sorted(one_run: Report) -> None:
    made = figures.tasks_spec(facts(one_run)[0])
    assert made is not None
    shrunk = [value["shrunk"] for value in made[0]["data"]["values"]]
    assert shrunk == sorted(shrunk)


def test_without_numbers_there_is_no_figure(cases: Cases) -> None:
    assert [figure.name for figure in figures.drawn(cases["unbounded"]())] == ["funnel"]
    assert figures.drawn(cases["no run"]()) == ()


def test_a_nan_draws_nothing(one_run: Report) -> None:
    broken = replace(one_run, measures=(Measure("airline", "output_tokens", math.nan, 1, slice="passed"),))
    assert "tokens" not in [figure.name for figure in figures.drawn(broken)]


def test_equal_labels_are_told_apart() -> None:
    assert figures.distinct(["a", "a", "b\x1b[0m", "b"]) == ["a", "a (2)", "b", "b (2)"]
