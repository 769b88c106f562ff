"""`blade eval aggregate`: shards into one run, nothing lost in silence, no server asked."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.errors import BladeError
from blade_eval import aggregate, verifiers
from blade_eval.aggregate.shards import merged
from blade_eval.environment import Attempt, Environment
from tests.builders import make_row
from tests.conftest import Blade

Row = dict[str, Any]


def put(path: Path, rows: list[Row]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def key(row: Row) -> tuple[int, int]:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def shards(folder: Path, n_tasks: int = 4) -> list[Row]:
    """Two shards of tasks x 2 rollouts in completion order; 1:0 masked, 2:1 failed twice, 3:1 without a trace."""
    rows = [make_row(task, repeat, float(repeat)) for task in range(n_tasks) for repeat in range(2)]
    rows[2]["mask_sample"] = True
    gone = {(2, 1), (3, 1)}
    for shard in range(2):
        mine = [row for row in rows if row["_ng_task_index"] % 2 == shard]
        stem = folder / f"shard_{shard}"
        put(Path(f"{stem}.jsonl"), [row for row in mine if key(row) not in gone][::-1])
        asked = [
            {k: v for k, v in row.items() if k not in ("response", "reward", "mask_sample")} for row in mine
        ]
        put(Path(f"{stem}_materialized_inputs.jsonl"), asked)
        failed = {"_ng_failure_class": "judge_failed", **asked[-1]}
        put(Path(f"{stem}_failures.jsonl"), [failed, failed] if shard == 0 else [])
    return [row for row in rows if key(row) not in gone]


def test_shards_become_one_run_in_order(blade: Blade, tmp_path: Path) -> None:
    rows = shards(tmp_path)
    out = tmp_path / "out" / "run.jsonl"
    said = blade("eval", "aggregate", "-i", tmp_path / "shard_*.jsonl", "-o", out, "--json")
    told = json.loads(said.out)
    assert [json.loads(one) for one in out.read_bytes().splitlines()] == rows
    inputs = [
        json.loads(one) for one in out.with_name("run_materialized_inputs.jsonl").read_bytes().splitlines()
    ]
    assert [key(row) for row in inputs] == [(task, repeat) for task in range(4) for repeat in range(2)]
    assert len(out.with_name("run_failures.jsonl").read_bytes().splitlines()) == 2
    (whole,) = told["completeness"]
    counts = [whole[name] for name in ("expected", "scored", "failed", "masked", "lost", "unexpected")]
    assert counts == [8, 5, 1, 1, 1, 0]
    assert not whole["is_complete"]
    first, second = whole["missing"]
    assert (first["task"], first["repeat"], Path(first["of"]).name) == (
        2,
        1,
        "shard_0_materialized_inputs.jsonl",
    )
    assert (second["task"], second["repeat"], Path(second["of"]).name) == (
        3,
        1,
        "shard_1_materialized_inputs.jsonl",
    )
    (entry,) = json.loads(out.with_name("run_aggregate_metrics.json").read_bytes())
    assert entry["agent_metrics"]["coverage/masked_rollouts"] == 1
    assert told["agents"][0]["pass@1"]["n_tasks"] == 4
    assert set(told["agents"][0]["pass@k"]) == {"1", "2"}


def test_the_text_accounts_for_every_rollout(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    glob = f"{tmp_path}/shard_1.jsonl, {tmp_path}/shard_*.jsonl"
    said = blade("eval", "aggregate", "--input-glob", glob, "--output", tmp_path / "run.jsonl")
    assert said.code == 0, said.err
    assert "2 shards, 6 rollouts" in said.out  # a file that two patterns name is read once
    assert "8 expected = 5 scored + 1 failed + 1 masked + 1 lost" in said.out
    assert "missing 3:1, expected by" in said.out
    assert "shard_0_failures.jsonl: skipped, a sidecar and no shard" in said.err


def test_a_complete_run_is_told_to_be_complete(tmp_path: Path) -> None:
    rows = [make_row(0, repeat) for repeat in range(3)]
    put(tmp_path / "a.jsonl", rows)
    put(tmp_path / "a_materialized_inputs.jsonl", rows)
    done = merged([str(tmp_path / "a.jsonl")], tmp_path / "run.jsonl")
    assert [one.is_complete for one in done.completeness] == [True]
    # one rollout more than was asked for
    put(tmp_path / "a.jsonl", [*rows, make_row(0, 3)])
    done = merged([str(tmp_path / "a.jsonl")], tmp_path / "run.jsonl")
    assert [(one.unexpected, one.is_complete) for one in done.completeness] == [(1, False)]


def test_without_inputs_nobody_knows_what_was_expected(blade: Blade, tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", [make_row()])
    said = blade("eval", "aggregate", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "run.jsonl")
    assert "Expected: unknown" in said.out
    assert not (tmp_path / "run_materialized_inputs.jsonl").exists()


def test_no_shard_and_no_row_are_errors(blade: Blade, tmp_path: Path) -> None:
    said = blade("eval", "aggregate", "-i", tmp_path / "no*.jsonl", "-o", tmp_path / "run.jsonl")
    assert said.code == 3
    assert "No shards matched input_glob='" in said.err
    (tmp_path / "a.jsonl").write_bytes(b"\n")
    assert blade("eval", "aggregate", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "run.jsonl").code == 3
    assert not (tmp_path / "run.jsonl").exists()
    assert not (tmp_path / "run_aggregate_metrics.json").exists()


def test_a_shard_is_not_overwritten(tmp_path: Path) -> None:
    shards(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(BladeError, match="is itself read"):
        merged([f"{tmp_path}/shard_*.jsonl"], tmp_path / "shard_0.jsonl")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    merged([f"{tmp_path}/shard_*.jsonl"], tmp_path / "shard_0.jsonl", force=True)
    assert len((tmp_path / "shard_0.jsonl").read_bytes().splitlines()) == 6
    assert (tmp_path / "shard_1.jsonl").read_bytes() == before["shard_1.jsonl"]


def test_packed_shards_give_the_same_run(tmp_path: Path) -> None:
    shards(tmp_path)
    merged([f"{tmp_path}/shard_*.jsonl"], tmp_path / "plain.jsonl")
    for path in list(tmp_path.glob("shard_*.jsonl")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    merged([f"{tmp_path}/shard_?.jsonl.gz"], tmp_path / "packed.jsonl")
    for ending in (".jsonl", "_materialized_inputs.jsonl", "_failures.jsonl", "_aggregate_metrics.json"):
        assert (tmp_path / f"packed{ending}").read_bytes() == (tmp_path / f"plain{ending}").read_bytes()


def test_copies_in_several_shards_count_once_and_contradictions_name_both(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", [make_row(0, 0), make_row(0, 1)])
    put(tmp_path / "b.jsonl", [make_row(1, 0), make_row(0, 1)])
    done = merged([f"{tmp_path}/?.jsonl"], tmp_path / "run.jsonl")
    assert len(done.rollouts.rows) == 3
    assert "1 rollouts stand there again, word for word; kept once" in done.notices
    (tmp_path / "run.jsonl").unlink()
    put(tmp_path / "b.jsonl", [make_row(1, 0), make_row(0, 1, 0.0)])
    with pytest.raises(BladeError, match=r"0:1 in line 2 of .*a\.jsonl and in line 2 of .*b\.jsonl"):
        merged([f"{tmp_path}/?.jsonl"], tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()
    merged([f"{tmp_path}/?.jsonl"], tmp_path / "run.jsonl", duplicates="last")
    assert [json.loads(one)["reward"] for one in (tmp_path / "run.jsonl").read_bytes().splitlines()] == [
        1.0,
        0.0,
        1.0,
    ]


def test_rows_without_indices_and_torn_lines_are_told(blade: Blade, tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", [make_row(0, 0), {"reward": 1.0}])
    said = blade("eval", "aggregate", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "run.jsonl")
    assert said.code == 4
    assert "a.jsonl, line 2: it has no _ng_task_index" in said.err
    (tmp_path / "a.jsonl").write_bytes(msgspec.json.encode(make_row()) + b'\n\n{"rew')
    said = blade("eval", "aggregate", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "run.jsonl")
    assert said.code == 0
    assert "line 3: the file ends inside this line" in said.err
    assert "line 2 holds blank" in said.err


def test_merge_shards_false_writes_the_metrics_alone(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    out = tmp_path / "out" / "run.jsonl"
    assert blade("eval", "aggregate", "-i", tmp_path / "s*.jsonl", "-o", out, "merge_shards=false").code == 0
    assert [path.name for path in out.parent.iterdir()] == ["run_aggregate_metrics.json"]


def test_agents_and_servers_have_entries_of_their_own() -> None:
    rows = [make_row(task, 0, agent_ref={"name": name}, _ng_environment_server=f"at_{name}")
            for task, name in enumerate(["zeta", "alpha", "zeta"])]  # fmt: skip
    found = aggregate.aggregate_metrics(rows)
    assert [entry["agent_ref"]["name"] for entry in found] == ["zeta", "alpha"]
    assert list(found[0])[:3] == ["agent_ref", "_ng_environment_server", "agent_metrics"]
    assert len(found[0]["group_level_metrics"]) == 2


def test_only_an_environment_with_scores_adds_metrics() -> None:
    async def verify(attempt: Attempt) -> Row:
        return {"reward": 1.0}

    rows = [make_row(0, repeat, float(repeat), answer="b" if repeat else "a") for repeat in range(2)]
    silent = Environment("quiet", verify)
    assert aggregate.aggregate_metrics(rows, silent) == aggregate.aggregate_metrics(rows)
    speaking = Environment(
        "loud", verify, scores=lambda row: {"right": row["reward"]}, answer=lambda row: row["answer"]
    )
    (entry,) = aggregate.aggregate_metrics(rows, speaking)
    assert entry["agent_metrics"]["pass@2/right"] == 100.0
    assert entry["agent_metrics"]["pass@1[avg-of-1]/right"] == 0.0
    assert entry["agent_metrics"]["majority@2/right"] == 50.0
    assert entry["agent_metrics"]["pass@1/no_answer"] == 0.0
    assert list(entry["agent_metrics"])[-1] == "num_repeats"


def tasks_of(rewards: list[list[float]]) -> list[list[Row]]:
    return [[{"reward": reward} for reward in of_task] for of_task in rewards]


def test_the_two_kinds_of_pass_at_1_differ() -> None:
    found = aggregate.pass_majority(tasks_of([[1, 0, 0, 0], [0, 1, 1, 0]]))
    assert found["pass@1/accuracy"] == 37.5
    assert found["pass@1[avg-of-1]/accuracy"] == 50.0
    assert found["pass@1[avg-of-4]/accuracy"] == 37.5
    assert found["per_sample_aggregate"] == {"accuracy": [50.0, 50.0, 50.0, 0.0]}
    spread = found["pass@1[avg-of-4]/accuracy/std_dev_across_runs"]
    assert spread == 25.0
    assert found["pass@1[avg-of-4]/accuracy/std_err_across_runs"] == 12.5
    assert "pass@1[avg-of-1]/accuracy/std_dev_across_runs" not in found


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=1, max_size=5))
def test_pass_at_k_is_the_share_of_draws_with_a_pass(rewards: list[list[float]]) -> None:
    found = aggregate.pass_majority(tasks_of(rewards))
    for k in range(1, max(map(len, rewards)) + 1):
        shares = []
        for of_task in rewards:
            draws = [max(draw) for draw in itertools.combinations(of_task, k)]
            shares += [sum(draws) / len(draws)] if draws else []
        assert math.isclose(found[f"pass@{k}/accuracy"], 100 * sum(shares) / len(shares), abs_tol=1e-9)


def test_partial_scores_take_the_best_of_the_first() -> None:
    found = aggregate.pass_majority(tasks_of([[0.2, 0.9, 0.4], [0.0, 1.0]]))
    assert found["pass@1/accuracy"] == pytest.approx(100 * (0.2 + 0.5) / 2)
    assert found["pass@3/accuracy"] == pytest.approx(90.0)  # the second task has no third value


def test_votes_are_cast_for_an_answer_with_its_score() -> None:
    rows = [{"reward": r, "a": a} for a, r in [("x", 1.0), ("y", 0.0), ("y", 0.0), (None, 0.0)]]
    found = aggregate.pass_majority([rows], answer=lambda row: row["a"])
    assert [found[f"majority@{k}/accuracy"] for k in (1, 2, 3, 4)] == [100.0, 50.0, 0.0, 0.0]
    assert found["pass@1/no_answer"] == 25.0
    nobody = [{"reward": 1.0, "a": None}]
    assert aggregate.pass_majority([nobody], answer=lambda row: row["a"])["majority@1/accuracy"] == 0.0


def solved(n_tasks: int = 2) -> list[Row]:
    return [
        {
            "reward": float(repeat),
            "library_reward": float(repeat),
            "extracted_answer": "4",
            "agent_ref": {"name": "math_agent"},
            "_ng_task_index": task,
            "_ng_rollout_index": repeat,
        }
        for task in range(n_tasks)
        for repeat in range(2)
    ]


def test_a_named_environment_adds_what_it_adds_to_a_run(blade: Blade, tmp_path: Path) -> None:
    rows = solved()
    put(tmp_path / "s0.jsonl", rows[2:])
    put(tmp_path / "s1.jsonl", rows[:2])
    words = ["eval", "aggregate", "-i", tmp_path / "s?.jsonl", "-o", tmp_path / "out.jsonl"]
    said = blade(*words, "--resources-server", "math_with_judge")
    assert said.code == 0, said.err
    expected = aggregate.aggregate_metrics(rows, verifiers.environment("math_with_judge", {}))
    written = tmp_path / "out_aggregate_metrics.json"
    assert written.read_bytes() == aggregate.content(expected)
    assert "majority@2/symbolic_accuracy" in expected[0]["agent_metrics"]
    # without it, and with an environment that names no scores, nothing is added
    assert blade(*words, "--force").err == ""
    assert "majority@" not in written.read_text()
    assert blade(*words, "--force", "--resources-server", "mcqa").code == 0
    assert "majority@" not in written.read_text()


def test_metrics_that_are_left_out_are_told(blade: Blade, tmp_path: Path) -> None:
    put(tmp_path / "s.jsonl", solved())
    found = aggregate.aggregate_metrics(solved(), verifiers.environment("math_with_judge", {}))
    beside = tmp_path / "s_aggregate_metrics.json"
    beside.write_bytes(aggregate.content(found))
    words = ["eval", "aggregate", "-i", tmp_path / "s.jsonl", "-o", tmp_path / "out.jsonl"]
    assert "left out" in blade(*words).err
    assert "left out" not in blade(*words, "--resources-server", "math_with_judge").err
    beside.write_bytes(aggregate.content(aggregate.aggregate_metrics(solved())))
    assert "left out" not in blade(*words).err


def test_of_rows_with_scores_only_these_are_held_in_memory() -> None:
    async def verify(attempt: Attempt) -> Row:
        return {"reward": 1.0}

    environment = Environment("x", verify, scores=lambda row: {"accuracy": row["reward"]})
    rows = ({**row, "note": "x" * 100_000} for row in solved(200))
    tracemalloc.start()
    (entry,) = aggregate.aggregate_metrics(rows, environment)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20  # the rows are of 40 MB
    assert entry["agent_metrics"]["pass@2/accuracy"] == 100.0


def test_an_agent_without_inputs_is_not_complete(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    stray = [row | {"agent_ref": {"name": "stray"}} for row in solved()]
    put(tmp_path / "shard_9.jsonl", stray)
    words = [
        "eval",
        "aggregate",
        "-i",
        tmp_path / "shard_*.jsonl",
        "-o",
        tmp_path / "out" / "o.jsonl",
        "--json",
    ]
    said = blade(*words)
    told = {one["agent"]: one for one in json.loads(said.out)["completeness"]}
    assert (told["stray"]["expected"], told["stray"]["unexpected"]) == (0, 4)
    assert not told["stray"]["is_complete"]
    assert "shard_9.jsonl has no _materialized_inputs.jsonl" in said.err
    put(tmp_path / "shard_9_materialized_inputs.jsonl", stray)
    said = blade(*words)
    told = {one["agent"]: one for one in json.loads(said.out)["completeness"]}
    assert told["stray"]["is_complete"]
    assert "has no" not in said.err


@pytest.mark.parametrize("who", ["asked", "made", None])
def test_failures_belong_to_the_agent_that_the_rollouts_name(who: str | None, tmp_path: Path) -> None:
    asked = [row | {"agent_ref": {"name": "asked"}} for row in solved()]
    made = [row | {"agent_ref": {"name": "made"}} for row in solved()]
    put(tmp_path / "r_materialized_inputs.jsonl", asked)
    put(tmp_path / "r.jsonl", [made[0], made[2]])
    failed = {k: v for k, v in made[1].items() if k != "agent_ref"}
    put(tmp_path / "r_failures.jsonl", [failed | ({"agent_ref": {"name": who}} if who else {})])
    done = merged([str(tmp_path / "r.jsonl")], tmp_path / "o.jsonl")
    (whole,) = done.completeness
    assert [*vars(whole).values()][:6] == ["made", 4, 2, 1, 0, 1]


def test_no_byte_order_mark_of_a_shard_lands_within_the_merged_file(tmp_path: Path) -> None:
    for shard, rows in enumerate((solved()[2:], solved()[:2])):
        path = tmp_path / f"s{shard}.jsonl"
        put(path, rows)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    merged([str(tmp_path / "s?.jsonl")], tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_bytes()
    assert b"\xef\xbb\xbf" not in text
    assert [json.loads(one) for one in text.splitlines()] == solved()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_another_file_is_not_replaced_without_force(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    put(tmp_path / "run.jsonl", [make_row(0, 0, 0.0), make_row(77, 0)])
    before = contents(tmp_path)
    words = ["eval", "aggregate", "-i", tmp_path / "shard_?.jsonl", "-o", tmp_path / "run.jsonl"]
    said = blade(*words)
    assert said.code == 2
    assert "run.jsonl is there already, and its line 2 is in none of the shards" in said.err
    assert "--force" in said.err
    assert contents(tmp_path) == before  # metrics among them
    assert blade(*words, "--force").code == 0
    assert len((tmp_path / "run.jsonl").read_bytes().splitlines()) == 6


@pytest.mark.parametrize("ending", ["_materialized_inputs.jsonl", "_failures.jsonl"])
def test_nor_are_the_inputs_and_failures_of_another_run(tmp_path: Path, ending: str) -> None:
    shards(tmp_path)
    put(tmp_path / f"run{ending}", [make_row(77, 0)])
    before = contents(tmp_path)
    with pytest.raises(BladeError, match=rf"run{ending} is there already, and its line 1 is"):
        merged([f"{tmp_path}/shard_?.jsonl"], tmp_path / "run.jsonl")
    assert contents(tmp_path) == before


def test_an_earlier_merge_of_the_same_shards_is(tmp_path: Path) -> None:
    shards(tmp_path)
    pattern, output = [f"{tmp_path}/shard_?.jsonl"], tmp_path / "run.jsonl"
    merged(pattern, output)
    before = contents(tmp_path)
    merged(pattern, output)
    assert contents(tmp_path) == before
    # the run goes on, and the merge grows with it
    with (tmp_path / "shard_1.jsonl").open("ab") as file:
        put(tmp_path / "more", [make_row(3, 1)])
        file.write((tmp_path / "more").read_bytes())
    merged(pattern, output)
    assert len(output.read_bytes().splitlines()) == 7
    # one shard less, and rows would be lost
    with pytest.raises(BladeError) as told:
        merged([f"{tmp_path}/shard_0.jsonl"], output)
    assert told.value.slug == "output-exists"
    # metrics alone lose nothing
    merged([f"{tmp_path}/shard_0.jsonl"], output, merge=False)


@pytest.mark.parametrize("text", [b"", b"\n \n"])
def test_an_empty_file_is_free(tmp_path: Path, text: bytes) -> None:
    shards(tmp_path)
    (tmp_path / "run.jsonl").write_bytes(text)
    merged([f"{tmp_path}/shard_?.jsonl"], tmp_path / "run.jsonl")
    assert len((tmp_path / "run.jsonl").read_bytes().splitlines()) == 6


def test_a_folder_or_a_pipe_is_no_output(tmp_path: Path) -> None:
    shards(tmp_path)
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("run", "pipe"):
        with pytest.raises(BladeError) as told:
            merged([f"{tmp_path}/shard_?.jsonl"], tmp_path / name, force=True)
        assert told.value.slug == "output-no-file"
    assert (tmp_path / "pipe").is_fifo()


def sharded(folder: Path, name: str, shard: str | None, agent: str = "desk", **identity: Any) -> None:
    """A shard of a task, with its inputs and its manifest."""
    task = int(shard.partition("/")[0]) if shard else 0
    rows = [make_row(task, repeat, 1.0, agent_ref={"name": agent}) for repeat in range(2)]
    put(folder / f"{name}.jsonl", rows)
    put(folder / f"{name}_materialized_inputs.jsonl", rows)
    flags = {"--limit": None, "--shard": shard}
    told = {"schema_version": "1", "identity": {"dataset": [{"sha256": "ab"}], "flags": flags, **identity}}
    (folder / f"{name}_manifest.json").write_text(json.dumps(told), encoding="utf-8")


def aggregated(blade: Blade, folder: Path, pattern: str) -> tuple[dict[str, Any], str]:
    words = ["eval", "aggregate", "-i", folder / pattern, "-o", folder / "out" / "run.jsonl"]
    said = blade(*words, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found, blade(*words).out


def test_a_shard_that_was_not_given_is_missing(blade: Blade, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        sharded(tmp_path, f"s{number}", f"{number}/3", is_served=number == 1)
    found, text = aggregated(blade, tmp_path, "s[12].jsonl")
    (whole,) = found["completeness"]
    assert not whole["is_complete"]
    assert whole["missing_shards"] == ["shard 3 of 3 is missing"]
    assert (found["missing_shards"][0]["shards"], found["missing_shards"][0]["of"]) == ([3], 3)
    assert "shard 3 of 3 is missing" in text
    # all of them
    found, text = aggregated(blade, tmp_path, "s?.jsonl")
    assert found["completeness"][0]["is_complete"]
    assert found["missing_shards"] == []
    assert "missing" not in text


def test_several_are_named(blade: Blade, tmp_path: Path) -> None:
    sharded(tmp_path, "s2", "2/4")
    _, text = aggregated(blade, tmp_path, "s2.jsonl")
    assert "shards 1, 3, 4 of 4 are missing (of the run of" in text


@pytest.mark.parametrize("shard", [None, "1/1", "3/2", "x", "1/9999999999999999", 7])
def test_what_is_no_shard_lacks_none(blade: Blade, tmp_path: Path, shard: Any) -> None:
    sharded(tmp_path, "s", None)
    path = tmp_path / "s_manifest.json"
    text = json.loads(path.read_bytes())
    text["identity"]["flags"]["--shard"] = shard
    path.write_text(json.dumps(text), encoding="utf-8")
    found, said = aggregated(blade, tmp_path, "s.jsonl")
    assert found["completeness"][0]["is_complete"]
    assert "missing" not in said


@pytest.mark.parametrize(
    "text", [None, b"", b"[]", b'{"identity": []}', b'{"identity": {"flags": 1}}', b"[" * 99_999]
)
def test_without_a_manifest_nothing_is_said(blade: Blade, tmp_path: Path, text: bytes | None) -> None:
    sharded(tmp_path, "s1", "1/3")
    path = tmp_path / "s1_manifest.json"
    path.unlink() if text is None else path.write_bytes(text)
    found, said = aggregated(blade, tmp_path, "s1.jsonl")
    assert found["completeness"][0]["is_complete"]
    assert "missing" not in said


def test_a_file_without_a_manifest_may_be_the_missing_one(blade: Blade, tmp_path: Path) -> None:
    sharded(tmp_path, "s1", "1/2")
    sharded(tmp_path, "s2", "2/2")
    (tmp_path / "s2_manifest.json").unlink()
    found, text = aggregated(blade, tmp_path, "s?.jsonl")
    assert "shard 2 of 2 is missing, unless it is the file that has no manifest" in text
    assert not found["completeness"][0]["is_complete"]


def test_shards_of_two_runs_do_not_stand_in_for_one_another(blade: Blade, tmp_path: Path) -> None:
    for number in (1, 2):
        sharded(tmp_path, f"a{number}", f"{number}/2", "desk", agents={"desk": {}})
    sharded(tmp_path, "b1", "1/2", "till", agents={"till": {}})
    found, text = aggregated(blade, tmp_path, "??.jsonl")
    assert {one["agent"]: one["is_complete"] for one in found["completeness"]} == {
        "desk": True,
        "till": False,
    }
    assert text.count("missing") == 1


def test_it_is_told_where_nobody_knows_what_was_expected(blade: Blade, tmp_path: Path) -> None:
    sharded(tmp_path, "s1", "1/2")
    (tmp_path / "s1_materialized_inputs.jsonl").unlink()
    found, text = aggregated(blade, tmp_path, "s1.jsonl")
    assert found["completeness"] is None
    assert "shard 2 of 2 is missing" in text
