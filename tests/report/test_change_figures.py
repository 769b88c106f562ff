"""The figures of a comparison: exact, bounded, offline, the same every time."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blade.model import Power, Report, Term
from blade.report.blocks import plain
from blade.report.change import charts as change_charts
from blade.report.change import figures as change_figures
from blade.report.change import points as change_points
from blade.report.change.points import binary_band, is_noise

from . import changed
from .conftest import make_report


def pair() -> Report:
    return changed.pair_report()


def test_every_figure_is_well_formed_and_fetches_nothing() -> None:
    for report in (pair(), changed.pair_report(*changed.large()), changed.many_report()):
        for figure in change_figures.drawn(report):
            root = ET.fromstring(figure.svg)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            for element in root.iter():
                assert element.tag.rpartition("}")[2] not in (
                    "script",
                    "image",
                    "foreignObject",
                    "a",
                    "style",
                )
                assert not [name for name in element.attrib if name.endswith("href") or name.startswith("on")]
            assert figure.caption


def test_files_are_numbered_only_where_there_are_several() -> None:
    one = [figure.file for figure in change_figures.drawn(pair(), "compare-")]
    assert one == ["compare-bridge.svg", "compare-scatter.svg", "compare-transitions.svg"]
    several = [figure.file for figure in change_figures.drawn(changed.many_report())]
    assert several == ["bridge-1.svg", "scatter-1.svg", "transitions-1.svg",
                       "bridge-2.svg", "scatter-2.svg", "transitions-2.svg", "series.svg", "front.svg"]  # fmt: skip


def test_the_same_report_draws_the_same_bytes() -> None:
    assert change_figures.drawn(pair()) == change_figures.drawn(pair())


def test_the_bridge_leads_from_one_score_to_the_other() -> None:
    report = pair()
    made = change_figures.bridge_spec(report, report.comparisons[0])
    assert made is not None
    first, *steps, last = made[0]["data"]["values"]
    assert first["total"] == pytest.approx(50.0)
    assert last["total"] == pytest.approx(71.875)
    assert steps[0]["from"] == pytest.approx(50.0)
    assert [step["from"] for step in steps[1:]] == pytest.approx([step["to"] for step in steps[:-1]])
    assert steps[-1]["to"] == pytest.approx(71.875)
    assert all(step["low"] < step["to"] < step["high"] for step in steps)


def test_a_bridge_of_many_terms_is_bounded_and_still_arrives() -> None:
    terms = tuple(Term(f"mode {at % 7}", 0.001, None, None, None, "model", 1) for at in range(60))
    report = changed.pair_report(bridge=terms, score_baseline=0.5, score_candidate=0.56, delta=0.06)
    made = change_figures.bridge_spec(report, report.comparisons[0])
    assert made is not None
    values = made[0]["data"]["values"]
    assert len(values) == change_figures.MAX_TERMS + 2
    assert len({value["label"] for value in values}) == len(values)
    assert values[-2]["label"] == "47 smaller terms"
    assert values[-2]["to"] == pytest.approx(56.0)


@pytest.mark.parametrize(
    ("n", "before", "after", "noise"),
    [
        (1, 0, 1, True),
        (4, 0, 4, False),  # Fisher 0.0286
        (4, 0, 3, True),  # 0.143
        (4, 4, 0, False),
        (8, 0, 5, False),  # 0.0256
        (8, 0, 4, True),  # 0.077
        (8, 5, 5, True),
        (200, 20, 30, True),
        (200, 20, 60, False),
    ],
)
def test_noise_is_what_one_rate_for_both_runs_would_give(
    n: int, before: int, after: int, noise: bool
) -> None:
    assert is_noise(before, n, after, n) is noise
    assert is_noise(after, n, before, n) is noise


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_the_band_does_not_care_which_run_comes_first(n_a: int, n_b: int, data: st.DataObject) -> None:
    c_a, c_b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    assert is_noise(c_a, n_a, c_b, n_b) == is_noise(c_b, n_b, c_a, n_a)
    assert is_noise(c_a, n_a, c_b, n_b) == is_noise(n_a - c_a, n_a, n_b - c_b, n_b)


@pytest.mark.parametrize("repeats", [(1, 1), (4, 4), (8, 3), (150, 150)])
def test_the_band_holds_the_diagonal(repeats: tuple[int, int]) -> None:
    half = 1 / repeats[1]
    for x, low, high in binary_band(*repeats):
        assert 0 <= low <= high <= 1
        assert low - half <= x <= high + half


def test_noise_fills_the_band_in_95_of_100_cases() -> None:
    for n, rate in ((4, 0.5), (8, 0.3), (16, 0.9)):
        law = [math.comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)]
        outside = sum(law[a] * law[b] for a in range(n + 1) for b in range(n + 1) if not is_noise(a, n, b, n))
        assert outside <= 0.05


def test_every_common_task_is_a_point() -> None:
    report = changed.pair_report(*changed.large())
    found = change_points.scatter(report, report.comparisons[0])
    assert found is not None
    assert sum(spot.n for spot in found.spots) == found.n_tasks == 120
    assert found.repeats == (8, 8)
    assert 0 < found.beyond() < 120
    assert all((spot.side == "noise") or (spot.side == "better") == (spot.y > spot.x) for spot in found.spots)


def test_tasks_outside_the_common_ones_are_no_points() -> None:
    runs = {"base": changed.rewards("1111 0000"), "cand": changed.rewards("1111 0000 0000")}
    report = replace(make_report(runs), comparisons=(changed.compared(runs["base"], runs["cand"]),))
    found = change_points.scatter(report, report.comparisons[0])
    assert found is not None
    assert found.n_tasks == 2


def test_many_different_rewards_are_gathered_on_a_grid() -> None:
    runs = {
        "base": {str(at): [at / 997.0, (at * 31 % 997) / 997.0] for at in range(997)},
        "cand": {str(at): [at / 997.0, (at * 57 % 997) / 997.0] for at in range(997)},
    }
    report = make_report(runs, judged=False)
    comparison = changed.compared(runs["base"], runs["cand"], score_name="mean_reward")
    report = replace(report, comparisons=(comparison,))
    found = change_points.scatter(report, comparison)
    assert found is not None
    assert found.gathered
    assert sum(spot.n for spot in found.spots) == 997
    assert len(found.spots) <= 3 * (change_points.GRID + 1) ** 2
    assert found.band[0][1] < found.band[0][0] < found.band[0][2]
    drawn = change_figures.scatter_spec(report, comparison)
    assert drawn is not None
    assert "gathered on a grid" in plain(drawn[1])


def test_without_the_noise_of_repeats_there_is_no_band_and_the_caption_says_so() -> None:
    runs = {"base": {"0": [0.2], "1": [0.5]}, "cand": {"0": [0.3], "1": [0.7]}}
    power = Power(0.1, 0.3, None, None, None, None, None, 0.1, None, 40)
    comparison = changed.compared(
        runs["base"], runs["cand"], score_name="mean_reward", power=power, transitions=()
    )
    report = replace(make_report(runs, judged=False), comparisons=(comparison,))
    made = change_figures.scatter_spec(report, comparison)
    assert made is not None
    assert "No band of noise" in plain(made[1])


def test_without_tasks_there_is_no_scatter() -> None:
    report = replace(pair(), tasks=())
    assert [figure.name for figure in change_figures.drawn(report)] == ["bridge", "transitions"]


def test_refused_and_identical_pairs_are_not_drawn() -> None:
    assert change_figures.drawn(changed.pair_report(refused="no task in common")) == ()
    assert change_figures.drawn(changed.pair_report(identical=True)) == ()


def test_a_long_series_is_sampled_and_says_so() -> None:
    names = [f"step-{at}" for at in range(200)]
    report = replace(pair(), series=changed.make_series(names, str))
    made = change_charts.series_spec(report)
    assert made is not None
    assert len(made[0]["data"]["values"]) == change_charts.MAX_CHECKPOINTS
    assert "An even sample of them is shown" in plain(made[1])


def test_the_front_needs_two_runs_that_report_it() -> None:
    report = changed.many_report()
    assert report.matrix is not None
    silent = tuple(replace(one, cost=None, tokens=None) for one in report.matrix.placed)
    assert change_charts.front_spec(replace(report, matrix=replace(report.matrix, placed=silent))) is None
    by_tokens = tuple(replace(one, cost=None) for one in report.matrix.placed)
    made = change_charts.front_spec(replace(report, matrix=replace(report.matrix, placed=by_tokens)))
    assert made is not None
    assert "output tokens" in plain(made[1])


def test_where_noise_can_give_every_point_the_caption_says_so() -> None:
    report = changed.pair_report("11 10 00", "1 0 1")
    made = change_figures.scatter_spec(report, report.comparisons[0])
    assert made is not None
    assert "noise alone can give any one of these points" in plain(made[1])


def test_single_rollouts_are_told_by_their_buckets_alone() -> None:
    report = changed.pair_report("1 0 0", "1 1 0")
    assert [figure.name for figure in change_figures.drawn(report)] == ["bridge", "transitions"]
