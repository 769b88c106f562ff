"""Gates that ask queries: a wrong one is a usage error at once, and one that meets nothing says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Blade, Said
from tests.report.behaving import write_behaving, write_mixed


def gated(blade: Blade, folder: Path, *tables: str, write: object = write_behaving, more: tuple[object, ...] = ()) -> Said:
    before, after = write(folder / "runs", 0)  # type: ignore[operator]
    policy = folder / "gate.toml"
    policy.write_text("\n".join(f"[[metric]]\n{table}\n" for table in tables), encoding="utf-8")
    return blade("compare", f"a={before}", f"b={after}", "--gate", policy, *more)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("rate where nosuch = 1", 'Referenced column "nosuch" not found'),
        ("count where level = ", "syntax error"),
        ("count where says('(')", "missing )"),
        ("count by level", "a gate cannot be asked"),
        ("count where calls('look') > 0; drop table rollouts", ""),
    ],
)
def test_a_query_that_cannot_be_asked_is_a_usage_error(blade: Blade, tmp_path: Path, query: str, why: str) -> None:
    said = gated(blade, tmp_path, f'query = """{query}"""\nmax_drop = 0.05')
    assert said.code == 2, said.err
    assert f"gate.toml cannot be used: metric {query!r}: " in said.err
    assert why in said.err
    assert "fault of BLADE" not in said.err
    assert "blade fields RUN" in said.err
    assert "docs/errors.md#bad-query" in said.err
    assert said.out == ""


@pytest.mark.parametrize("query", ["count where calls('serach') > 0", "count where calls('serach') = 0"])
def test_a_tool_that_no_rollout_calls_is_told_even_where_it_passes(blade: Blade, tmp_path: Path, query: str) -> None:
    said = gated(blade, tmp_path, f'query = "{query}"\nmax_rise = 0.3', more=("-o", tmp_path / "out"))
    assert said.code == 0
    told = " ".join(said.out.split())
    assert "Gate PASS: 3 checks, 0 not passed" in told
    assert f"PASS {query}:" in told
    assert "no rollout calls 'serach'; there are look, run_2" in told
    assert ("no rollout of either run meets the condition" in told) == ("> 0" in query)
    for name in ("gate.md", "compare.md"):
        assert "no rollout calls" in (tmp_path / "out" / name).read_text(encoding="utf-8")


def test_a_condition_that_no_rollout_meets_is_told(blade: Blade, tmp_path: Path) -> None:
    unmet = "no rollout of either run meets the condition"
    told = " ".join(gated(blade, tmp_path / "a", 'query = "rate where turns > 999"\nmax_drop = 0.05').out.split())
    assert f"INCONCLUSIVE rate where turns > 999: not measured: {unmet}" in told
    assert unmet in gated(blade, tmp_path / "b", 'query = "count where timed_out"\nmax_rise = 0.3').out.replace("\n             ", " ")
    for query in ("count where level = 'hard'", "count where calls('look') = 0"):
        said = gated(blade, tmp_path / query.replace(" ", "_"), f'query = "{query}"\nmax_rise = 0.3')
        assert (unmet in " ".join(said.out.split())) == (query == "count where calls('look') = 0")


def test_a_gate_judges_runs_of_different_scores_as_the_comparison_does(blade: Blade, tmp_path: Path) -> None:
    said = gated(blade, tmp_path, 'query = "pass_at_1"\nmax_drop = 0.05', 'name = "score"\nmax_drop = 0.05', write=write_mixed)
    assert said.code == 1
    told = " ".join(said.out.split())
    first, second = (told.partition(f"FAIL {name}: ")[2].split(" [")[0] for name in ("pass_at_1", "score"))
    assert first == second == "67.8% → 23.3%: −44.4 points"
