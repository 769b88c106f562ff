"""The profile and aggregate files have the incumbent's bytes on any complete run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blade_eval import aggregate, profile
from blade_eval.aggregate import shards
from blade_eval.profile.row_table import encoded
from tests.evaluate import profile_reference as reference
from tests.evaluate.rows import put, rows_of

Row = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden"

rewards = st.sampled_from([0.0, -0.0, 1.0, 0.1, 0.2, 0.7, 1 / 3, -1.0, 0.30000000000000004])
wild = st.one_of(
    st.floats(-1e6, 1e6, allow_nan=False).filter(lambda x: x != 0 and abs(x) > 1e-6),
    st.floats(1e-9, 1e100) | st.floats(-1e100, -1e-9),
    st.sampled_from([0.0, -0.0]),
)
whole = st.integers(-(2**40), 2**40)
columns = st.dictionaries(
    st.sampled_from(["score", "is_right", "wer", "turns", "a note", "_hidden"]),
    st.one_of(wild, whole, st.booleans(), st.none(), st.just("text"), st.just([1, 2])),
    max_size=4,
)
usages = st.one_of(
    st.none(),
    st.fixed_dictionaries({"input_tokens": st.integers(0, 9999), "output_tokens": st.integers(0, 9999)}),
    st.fixed_dictionaries({"cost": wild, "input_tokens": st.integers(0, 99), "details": st.just({"cached": 3})}),
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Inputs and rollouts of a complete run: sparse tasks, uneven repeats, agents that may share tasks."""
    tasks = draw(st.lists(st.integers(0, 900), min_size=1, max_size=6, unique=True))
    names = draw(st.sampled_from([["desk"], ["desk"], ["zeta", "alpha"]]))
    shares = draw(st.booleans())
    can_mask = draw(st.booleans())
    inputs, results = [], []
    for at, task in enumerate(sorted(tasks)):
        for agent in names if shares else [names[at % len(names)]]:
            for repeat in range(draw(st.integers(1, 11))):
                key = {"_ng_task_index": task, "_ng_rollout_index": repeat}
                ref = {"agent_ref": {"type": "responses_api_agents", "name": agent}}
                asked = {"responses_create_params": {"input": f"frage {task} ✓"}, "weight": 1.50, **ref}
                inputs.append({**asked, **key})
                has_reward = draw(st.sampled_from([{"reward": draw(rewards)}] * 8 + [{"reward": None}, {}]))
                masked = {"mask_sample": draw(st.booleans())} if can_mask else {}
                response = draw(st.sampled_from([{"response": {"id": "r", "usage": draw(usages)}}] * 5 + [{}]))
                results.append({**response, **has_reward, **draw(columns), **masked, **key, **ref})
    return inputs, draw(st.permutations(results))


def write(folder: Path, inputs: list[Row], results: list[Row]) -> tuple[Path, Path]:
    paths = folder / "run_materialized_inputs.jsonl", folder / "run.jsonl"
    for path, rows in zip(paths, (inputs, results), strict=True):
        put(path, rows)
    return paths


SPARSE: list[Row] = [{"_ng_task_index": 0, "_ng_rollout_index": n, "agent_ref": {"name": "desk"}} for n in range(2)]


@example((SPARSE, [SPARSE[0] | {"reward": 1.0}, SPARSE[1] | {"score": 2.0}]))  # no column that all rows have
@settings(max_examples=8)
@given(runs())
def test_profile_files_have_the_bytes_of_the_rules(run: tuple[list[Row], list[Row]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile.profiled(*write(folder, *run)).write()
        for ending, expected in reference.files(*run).items():
            assert (folder / f"run{ending}").read_bytes() == expected, ending


@settings(max_examples=8)
@given(runs())
def test_aggregate_files_have_the_bytes_of_the_rules(run: tuple[list[Row], list[Row]]) -> None:
    expected = reference.aggregate(run[1])
    assert aggregate.content(aggregate.aggregate_metrics(run[1])) == expected
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, *run)
        shards.merged([str(folder / "run.jsonl")], folder / "whole.jsonl")
        assert (folder / "whole_aggregate_metrics.json").read_bytes() == expected


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e14, 1e18) | st.integers(0, 2**63)
# Texts that look like numbers, and those that end where they do not seem to.
texts = st.text() | st.lists(st.sampled_from(["1e16", '"', "\\", ":", "2e5,", "e"]), max_size=6).map("".join)


@settings(max_examples=100)
@given(st.dictionaries(texts, st.one_of(numbers, texts, st.lists(numbers, max_size=3))))
def test_every_number_is_spelled_as_the_incumbent_spells_it(value: Row) -> None:
    assert encoded(value) == orjson.dumps(value)


ENDINGS = ["_reward_profiling.jsonl", "_agent_metrics.json", "_repeat_level_metrics.json", "_aggregate_metrics.json"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_golden(ending: str, tmp_path: Path) -> None:
    """Two agents, shuffled and unequal repeats, a task of one row, gaps, a field that both row and usage have, a mask, a missing row."""
    profile.profiled(*write(tmp_path, *(rows_of(GOLDEN / f"run_{name}.jsonl") for name in ("inputs", "rollouts"))), allow_partial=True).write()
    shards.merged([str(tmp_path / "run.jsonl")], tmp_path / "whole.jsonl")
    stem = "whole" if ending == "_aggregate_metrics.json" else "run"
    assert (tmp_path / f"{stem}{ending}").read_bytes() == (GOLDEN / f"profile{ending}").read_bytes()
