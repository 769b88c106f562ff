"""The charts: well-formed, offline, exact, bounded, the same every time."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blade.model import Cause, Loss, Measure, Power, Report, Term
from blade.report import charts
from blade.report.blocks import Figure
from blade.report.charts import Scatter, binary_band, bridge_chart, is_noise, scatter, scatter_chart
from blade.report.phrases import plain
from blade.report.run_facts import facts

from . import changed
from .conftest import CASES, make_report
from .explained import SKIPS
from .renders import sayings


def files(figures: tuple[Figure, ...]) -> list[str]:
    return [figure.file for figure in figures]


def values(chart: charts.Chart | None) -> list[dict[str, Any]]:
    assert chart is not None
    return list(chart.fields["values"])


def caption(chart: charts.Chart | None) -> str:
    assert chart is not None
    return plain(chart.caption)


def points_of(report: Report) -> Scatter:
    points = scatter(report, report.comparisons[0])
    assert points is not None
    return points


def of_rewards(runs: dict[str, dict[str, list[float | None]]], **changes: Any) -> Report:
    """The comparison of two runs whose score is their mean reward."""
    comparison = changed.compared(runs["base"], runs["cand"], score_name="mean_reward", **changes)
    return replace(make_report(runs, judged=False), comparisons=(comparison,))


def assert_quiet(figures: tuple[Figure, ...]) -> None:
    for figure in figures:
        root = ET.fromstring(figure.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        for element in root.iter():
            assert element.tag.rpartition("}")[2] not in ("script", "image", "foreignObject", "a", "style")
            assert not [name for name in element.attrib if name.endswith("href") or name.startswith("on")]
        assert figure.caption


def test_every_figure_of_a_report_is_well_formed_and_fetches_nothing(report: Report) -> None:
    assert_quiet(charts.run_figures(report))


def test_every_figure_of_a_comparison_is_well_formed_and_the_same_twice() -> None:
    for report in (changed.pair_report(), changed.pair_report(*changed.large()), changed.many_report()):
        assert_quiet(charts.comparison_figures(report))
    assert charts.comparison_figures(changed.pair_report()) == charts.comparison_figures(changed.pair_report())


# ---- Of runs -------------------------------------------------------------------------------------


def test_files_are_numbered_only_where_there_are_several(one_run: Report) -> None:
    assert charts.run_figures(one_run) == charts.run_figures(one_run)
    assert files(charts.run_figures(one_run)) == ["buckets.svg", "tasks.svg", "funnel.svg", "tokens.svg"]
    several = ["buckets.svg", *(f"{name}-{run}.svg" for run in (1, 2) for name in ("tasks", "funnel", "tokens"))]
    assert files(charts.run_figures(CASES["two runs"](), draw=False)) == several
    assert files(charts.comparison_figures(changed.pair_report(), "compare-", draw=False)) == [
        "compare-bridge.svg", "compare-scatter.svg", "compare-transitions.svg",
    ]  # fmt: skip
    pairs = [f"{name}-{pair}.svg" for pair in (1, 2) for name in ("bridge", "scatter", "transitions")]
    assert files(charts.comparison_figures(changed.many_report(), draw=False)) == [*pairs, "series.svg", "front.svg"]


def test_many_tasks_are_sorted_and_sampled_evenly_and_the_title_says_so(one_run: Report) -> None:
    chart = charts.tasks_chart(facts(CASES["many tasks"]())[0])
    ranks = [value["rank"] for value in values(chart)]
    assert len(ranks) == len(set(ranks)) == 200
    assert (ranks[0], ranks[-1]) == (1, 450)
    assert chart is not None
    assert "200 of 450 tasks, evenly sampled" in chart.fields["about"]
    assert "an even sample of them" in caption(chart)
    assert charts.distinct(["a", "a", "b\x1b[0m", "b"]) == ["a", "a (2)", "b", "b (2)"]
    shrunk = [value["shrunk"] for value in values(charts.tasks_chart(facts(one_run)[0]))]
    assert shrunk == sorted(shrunk)


def test_without_numbers_there_is_no_figure(one_run: Report) -> None:
    assert files(charts.run_figures(CASES["unbounded"]())) == ["funnel.svg"]
    assert charts.run_figures(CASES["no run"]()) == ()
    broken = replace(one_run, measures=(Measure("airline", "output_tokens", math.nan, 1, slice="passed"),))
    assert "tokens.svg" not in files(charts.run_figures(broken))


def test_the_losses_are_drawn_largest_first_and_the_small_share_a_bar(explained: Report, one_run: Report) -> None:
    bars = values(charts.losses_chart(facts(explained)[0]))
    assert [bar["label"] for bar in bars][:2] == [f"BI {SKIPS}", "TI expected result contradicts the poli…"]
    assert abs(sum(bar["lost"] for bar in bars) - 50) < 1e-6
    many = tuple(Loss("desk", Cause.BEHAVIOUR, f"mode {at}", 0.5 / 40) for at in range(40))
    assert values(charts.losses_chart(facts(replace(explained, losses=many))[0]))[-1]["label"] == "29 smaller modes"
    assert "losses.svg" in files(charts.run_figures(explained, draw=False))
    assert charts.losses_chart(facts(one_run)[0]) is None


# ---- Of comparisons ------------------------------------------------------------------------------


def test_the_bridge_leads_from_one_score_to_the_other() -> None:
    report = changed.pair_report()
    first, *steps, last = values(bridge_chart(report, report.comparisons[0]))
    assert (first["total"], last["total"]) == (pytest.approx(50.0), pytest.approx(71.875))
    assert [step["from"] for step in steps] == pytest.approx([50.0, *(step["to"] for step in steps[:-1])])
    assert steps[-1]["to"] == pytest.approx(71.875)
    assert all(step["low"] < step["to"] < step["high"] for step in steps)


def test_a_bridge_of_many_terms_is_bounded_and_still_arrives() -> None:
    terms = tuple(Term(f"mode {at % 7}", 0.001, None, None, None, "model", 1) for at in range(60))
    report = changed.pair_report(bridge=terms, score_baseline=0.5, score_candidate=0.56, delta=0.06)
    bars = values(bridge_chart(report, report.comparisons[0]))
    assert len({bar["label"] for bar in bars}) == len(bars) == charts.MAX_TERMS + 2
    assert bars[-2]["label"] == "47 smaller terms"
    assert bars[-2]["to"] == pytest.approx(56.0)


@pytest.mark.parametrize(("n", "before", "after", "noise"), sayings("noise of rates"))
def test_noise_is_what_one_rate_for_both_runs_would_give(n: int, before: int, after: int, noise: bool) -> None:
    assert is_noise(before, n, after, n) is is_noise(after, n, before, n) is noise


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_the_band_does_not_care_which_run_comes_first(n_a: int, n_b: int, data: st.DataObject) -> None:
    c_a, c_b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    assert is_noise(c_a, n_a, c_b, n_b) == is_noise(c_b, n_b, c_a, n_a) == is_noise(n_a - c_a, n_a, n_b - c_b, n_b)


def test_the_band_holds_the_diagonal_and_noise_fills_it_in_95_of_100_cases() -> None:
    for a, b in ((1, 1), (4, 4), (8, 3), (150, 150)):
        assert all(0 <= low <= high <= 1 and low - 1 / b <= x <= high + 1 / b for x, low, high in binary_band(a, b))
    for n, rate in ((4, 0.5), (8, 0.3), (16, 0.9)):
        law = [math.comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)]
        assert sum(law[a] * law[b] for a in range(n + 1) for b in range(n + 1) if not is_noise(a, n, b, n)) <= 0.05


def test_every_common_task_and_no_other_is_a_point() -> None:
    points = points_of(changed.pair_report(*changed.large()))
    assert points.spots.total() == points.n_tasks == 120
    assert points.repeats == (8, 8)
    assert 0 < sum(n for (_, _, side), n in points.spots.items() if side != "within noise") < 120
    assert all(side == "within noise" or (side == "better") == (y > x) for x, y, side in points.spots)
    runs = {"base": changed.rewards("1111 0000"), "cand": changed.rewards("1111 0000 0000")}
    few = replace(make_report(runs), comparisons=(changed.compared(runs["base"], runs["cand"]),))
    assert points_of(few).n_tasks == 2


def test_many_different_rewards_are_gathered_on_a_grid() -> None:
    report = of_rewards({
        name: {str(at): [at / 997.0, (at * factor % 997) / 997.0] for at in range(997)}
        for name, factor in (("base", 31), ("cand", 57))
    })
    points = points_of(report)
    assert points.is_gathered
    assert points.spots.total() == 997
    assert len(points.spots) <= 3 * (charts.GRID + 1) ** 2
    assert points.band[0][1] < points.band[0][0] < points.band[0][2]
    assert "gathered on a grid" in caption(scatter_chart(report, report.comparisons[0]))


def test_a_caption_says_where_noise_is_unknown_or_gives_every_point() -> None:
    runs: dict[str, dict[str, list[float | None]]] = {"base": {"0": [0.2], "1": [0.5]}, "cand": {"0": [0.3], "1": [0.7]}}
    power = Power(0.1, 0.3, None, None, None, None, None, 0.1, None, 40)
    few, each = of_rewards(runs, power=power, transitions=()), changed.pair_report("11 10 00", "1 0 1")
    assert "No band of noise" in caption(scatter_chart(few, few.comparisons[0]))
    assert "noise alone can give any one of these points" in caption(scatter_chart(each, each.comparisons[0]))


def test_every_side_has_its_colour() -> None:
    report = changed.pair_report()
    for chart in (chart_of(report, report.comparisons[0]) for chart_of in charts.PAIR_CHARTS.values()):
        assert chart is not None
        assert {value["side"] for value in values(chart) if "side" in value} <= set(chart.fields["names"])


def test_what_has_no_points_has_no_figure() -> None:
    bare = ["bridge.svg", "transitions.svg"]
    assert files(charts.comparison_figures(replace(changed.pair_report(), tasks=()), draw=False)) == bare
    assert files(charts.comparison_figures(changed.pair_report("1 0 0", "1 1 0"), draw=False)) == bare
    assert charts.comparison_figures(changed.pair_report(refused="no task in common")) == ()
    assert charts.comparison_figures(changed.pair_report(identical=True)) == ()


def test_a_long_series_is_sampled_and_says_so() -> None:
    series = changed.make_series([f"step-{at}" for at in range(200)], str)
    chart = charts.series_chart(replace(changed.pair_report(), series=series))
    assert len(values(chart)) == charts.MAX_CHECKPOINTS
    assert "An even sample of them is shown" in caption(chart)


def test_the_front_needs_two_runs_that_report_it() -> None:
    def front(**nothing: None) -> Any:
        matrix = changed.make_matrix(["base", "step-1", "step-2", "step-3"], str)
        placed = tuple(replace(run, **nothing) for run in matrix.placed)
        return charts.front_chart(replace(changed.many_report(), matrix=replace(matrix, placed=placed)))

    assert front(cost=None, tokens=None) is None
    assert "output tokens" in caption(front(cost=None))
