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
from blade_eval.aggregate import Verdict
from blade_eval.aggregate.shards import merged
from blade_eval.environment import Attempt, Environment
from tests.builders import make_row
from tests.conftest import Blade
from tests.evaluate.rows import key, put, rows_of

Row = dict[str, Any]
SHARDS = "shard_?.jsonl"


def shards(folder: Path, n_tasks: int = 4) -> list[Row]:
    """Two shards of tasks x 2 rollouts in completion order; 1:0 masked, 2:1 failed twice, 3:1 without a trace."""
    rows = [make_row(task, repeat, float(repeat)) for task in range(n_tasks) for repeat in range(2)]
    rows[2]["mask_sample"] = True
    gone = {(2, 1), (3, 1)}
    for shard in range(2):
        mine = [row for row in rows if row["_ng_task_index"] % 2 == shard]
        stem = folder / f"shard_{shard}"
        put(Path(f"{stem}.jsonl"), [row for row in mine if key(row) not in gone][::-1])
        inputs = [{k: v for k, v in row.items() if k not in ("response", "reward", "mask_sample")} for row in mine]
        put(Path(f"{stem}_materialized_inputs.jsonl"), inputs)
        put(Path(f"{stem}_failures.jsonl"), [] if shard else [{"_ng_failure_class": "judge_failed", **inputs[-1]}] * 2)
    return [row for row in rows if key(row) not in gone]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def aggregated(blade: Blade, folder: Path, pattern: str, *words: str) -> tuple[dict[str, Any], str, str]:
    """What a program reads, what a person reads, and the notices."""
    command = ["eval", "aggregate", "-i", folder / pattern, "-o", folder / "out" / "run.jsonl", *words]
    text, document = blade(*command), blade(*command, "--json")
    assert (text.code, document.code) == (0, 0), document.err
    return json.loads(document.out), text.out, text.err


def test_shards_become_one_run_in_order(blade: Blade, tmp_path: Path) -> None:
    rows = shards(tmp_path)
    out = tmp_path / "out" / "run.jsonl"
    aggregated(blade, tmp_path, SHARDS, "merge_shards=false")
    assert [path.name for path in out.parent.iterdir()] == ["run_aggregate_metrics.json"]
    document, text, notices = aggregated(blade, tmp_path, f"shard_1.jsonl, {tmp_path}/shard_*.jsonl")
    assert rows_of(out) == rows
    inputs = rows_of(out.with_name("run_materialized_inputs.jsonl"))
    assert [key(row) for row in inputs] == list(itertools.product(range(4), range(2)))
    assert len(rows_of(out.with_name("run_failures.jsonl"))) == 2
    (whole,) = document["completeness"]
    counts = {"expected": 8, "scored": 5, "failed": 1, "masked": 1, "lost": 1, "unexpected": 0, "is_complete": False}
    assert counts.items() <= whole.items()
    missing = [(gap["task"], gap["repeat"], Path(gap["of"]).name) for gap in whole["missing"]]
    assert missing == [(task, 1, f"shard_{task % 2}_materialized_inputs.jsonl") for task in (2, 3)]
    (entry,) = json.loads(out.with_name("run_aggregate_metrics.json").read_bytes())
    assert entry["agent_metrics"]["coverage/masked_rollouts"] == 1
    assert document["agents"][0]["pass@1"]["n_tasks"] == 4
    assert set(document["agents"][0]["pass@k"]) == {"1", "2"}
    assert "2 shards, 6 rollouts" in text  # a file that two patterns name is read once
    assert "8 expected = 5 scored + 1 failed + 1 masked + 1 lost" in text
    assert "missing 3:1, expected by" in text
    assert "shard_0_failures.jsonl: skipped, a sidecar and no shard" in notices
    # it is complete if all that was asked for came and nothing else
    asked = [make_row(0, repeat) for repeat in range(3)]
    put(tmp_path / "a_materialized_inputs.jsonl", asked)
    for extra, expected in (([], (0, True)), ([make_row(0, 3)], (1, False))):
        put(tmp_path / "a.jsonl", asked + extra)
        (found,) = merged([str(tmp_path / "a.jsonl")], tmp_path / "run.jsonl").completeness
        assert (found.unexpected, found.is_complete) == expected


def test_packed_shards_and_those_with_a_byte_order_mark_give_the_same_run(tmp_path: Path) -> None:
    shards(tmp_path)
    merged([f"{tmp_path}/{SHARDS}"], tmp_path / "plain.jsonl")
    for path in tmp_path.glob("shard_?.jsonl"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    merged([f"{tmp_path}/{SHARDS}"], tmp_path / "marked.jsonl")
    for path in list(tmp_path.glob("shard_*.jsonl")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    merged([f"{tmp_path}/shard_?.jsonl.gz"], tmp_path / "packed.jsonl")
    for ending in (".jsonl", "_materialized_inputs.jsonl", "_failures.jsonl", "_aggregate_metrics.json"):
        assert len({(tmp_path / f"{name}{ending}").read_bytes() for name in ("plain", "marked", "packed")}) == 1


def test_copies_in_several_shards_count_once_and_contradictions_name_both(tmp_path: Path) -> None:
    pattern, output = [f"{tmp_path}/?.jsonl"], tmp_path / "run.jsonl"
    put(tmp_path / "a.jsonl", [make_row(0, 0), make_row(0, 1)])
    put(tmp_path / "b.jsonl", [make_row(1, 0), make_row(0, 1)])
    done = merged(pattern, output)
    assert len(done.rollouts.rows) == 3
    assert "1 rollouts stand there again, word for word; kept once" in done.notices
    output.unlink()
    put(tmp_path / "b.jsonl", [make_row(1, 0), make_row(0, 1, 0.0)])
    with pytest.raises(BladeError, match=r"0:1 in line 2 of .*a\.jsonl and in line 2 of .*b\.jsonl"):
        merged(pattern, output)
    assert not output.exists()
    merged(pattern, output, duplicates="last")
    assert [row["reward"] for row in rows_of(output)] == [1.0, 0.0, 1.0]


def test_what_a_shard_lacks_is_told(blade: Blade, tmp_path: Path) -> None:
    words = ["eval", "aggregate", "-o", tmp_path / "run.jsonl", "-i"]
    result = blade(*words, tmp_path / "no*.jsonl")
    assert (result.code, "No shards matched input_glob='" in result.err) == (3, True)
    words.append(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_bytes(b"\n")
    assert blade(*words).code == 3
    put(tmp_path / "a.jsonl", [make_row(0, 0), {"reward": 1.0}])
    result = blade(*words)
    assert (result.code, "a.jsonl, line 2: it has no _ng_task_index" in result.err) == (4, True)
    assert not list(tmp_path.glob("run*"))
    (tmp_path / "a.jsonl").write_bytes(msgspec.json.encode(make_row()) + b'\n\n{"rew')
    result = blade(*words)
    assert (result.code, "Expected: unknown" in result.out) == (0, True)
    assert "line 3: the file ends inside this line" in result.err
    assert "line 2 holds blank" in result.err
    assert not (tmp_path / "run_materialized_inputs.jsonl").exists()


async def verify(attempt: Attempt) -> Row:
    return {"reward": 1.0}


def test_agents_and_servers_have_entries_of_their_own_and_only_an_environment_with_scores_adds_metrics() -> None:
    names = ["zeta", "alpha", "zeta"]
    rows = [make_row(n, 0, agent_ref={"name": name}, _ng_environment_server=f"at_{name}") for n, name in enumerate(names)]
    entries = aggregate.aggregate_metrics(rows)
    assert [entry["agent_ref"]["name"] for entry in entries] == ["zeta", "alpha"]
    assert list(entries[0])[:3] == ["agent_ref", "_ng_environment_server", "agent_metrics"]
    assert len(entries[0]["group_level_metrics"]) == 2
    rows = [make_row(0, repeat, float(repeat), answer="b" if repeat else "a") for repeat in range(2)]
    assert aggregate.aggregate_metrics(rows, Environment("quiet", verify)) == aggregate.aggregate_metrics(rows)
    loud = Environment("loud", verify, scores=lambda row: {"right": row["reward"]}, answer=lambda row: row["answer"])
    (entry,) = aggregate.aggregate_metrics(rows, loud)
    names = ("pass@2/right", "pass@1[avg-of-1]/right", "majority@2/right", "pass@1/no_answer")
    assert [entry["agent_metrics"][name] for name in names] == [100.0, 0.0, 50.0, 0.0]
    assert list(entry["agent_metrics"])[-1] == "num_repeats"


def metrics_of(rewards: list[list[float]]) -> Row:
    return aggregate.pass_majority([[Verdict({"accuracy": reward}) for reward in of_task] for of_task in rewards])


def test_the_two_kinds_of_pass_at_1_differ_and_votes_are_cast_for_an_answer_with_its_score() -> None:
    metrics = metrics_of([[1, 0, 0, 0], [0, 1, 1, 0]])
    for name, value in {
        "pass@1/accuracy": 37.5, "pass@1[avg-of-1]/accuracy": 50.0, "pass@1[avg-of-4]/accuracy": 37.5,
        "per_sample_aggregate": {"accuracy": [50.0, 50.0, 50.0, 0.0]}, "pass@1[avg-of-4]/accuracy/std_dev_across_runs": 25.0,
        "pass@1[avg-of-4]/accuracy/std_err_across_runs": 12.5, "pass@1[avg-of-1]/accuracy/std_dev_across_runs": None,
    }.items():  # fmt: skip
        assert metrics.get(name) == value, name
    # partial scores take the best of the first
    metrics = metrics_of([[0.2, 0.9, 0.4], [0.0, 1.0]])
    assert metrics["pass@1/accuracy"] == pytest.approx(100 * (0.2 + 0.5) / 2)
    assert metrics["pass@3/accuracy"] == pytest.approx(90.0)  # the second task has no third value
    rows = [Verdict({"accuracy": r}, a) for a, r in [("x", 1.0), ("y", 0.0), ("y", 0.0), (None, 0.0)]]
    metrics = aggregate.pass_majority([rows], True)
    assert [metrics[f"majority@{k}/accuracy"] for k in (1, 2, 3, 4)] == [100.0, 50.0, 0.0, 0.0]
    assert aggregate.pass_majority([[Verdict({"accuracy": 1.0})]], True)["majority@1/accuracy"] == 0.0


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=1, max_size=5))
def test_pass_at_k_is_the_share_of_draws_with_a_pass(rewards: list[list[float]]) -> None:
    metrics = metrics_of(rewards)
    for k in range(1, max(map(len, rewards)) + 1):
        draws = [[max(draw) for draw in itertools.combinations(of_task, k)] for of_task in rewards]
        shares = [sum(of_task) / len(of_task) for of_task in draws if of_task]
        assert math.isclose(metrics[f"pass@{k}/accuracy"], 100 * sum(shares) / len(shares), abs_tol=1e-9)


def solved(n_tasks: int = 2) -> list[Row]:
    return [
        {"reward": float(repeat), "library_reward": float(repeat), "extracted_answer": "4", "agent_ref": {"name": "math_agent"},
         "_ng_task_index": task, "_ng_rollout_index": repeat} for task in range(n_tasks) for repeat in range(2)
    ]  # fmt: skip


def test_a_named_environment_adds_what_it_adds_to_a_run(blade: Blade, tmp_path: Path) -> None:
    rows = solved()
    put(tmp_path / "s0.jsonl", rows[2:])
    put(tmp_path / "s1.jsonl", rows[:2])
    math_metrics = aggregate.aggregate_metrics(rows, verifiers.environment("math_with_judge", {}))
    assert "majority@2/symbolic_accuracy" in math_metrics[0]["agent_metrics"]
    document, beside = tmp_path / "out_aggregate_metrics.json", tmp_path / "s0_aggregate_metrics.json"
    words = ["eval", "aggregate", "-i", tmp_path / "s?.jsonl", "-o", tmp_path / "out.jsonl", "--force"]
    server = "--resources-server"
    assert blade(*words, server, "math_with_judge").code == 0
    assert document.read_bytes() == aggregate.content(math_metrics)
    # without it, and with an environment that names no scores, nothing is added; what is left out is told
    for more, metrics, is_told in (
        ((), math_metrics, True), ((server, "math_with_judge"), math_metrics, False), ((), aggregate.aggregate_metrics(rows), False),
        ((server, "mcqa"), math_metrics, False),
    ):  # fmt: skip
        beside.write_bytes(aggregate.content(metrics))
        assert ("left out" in blade(*words, *more).err) is is_told
        assert ("majority@" in document.read_text()) is ("math_with_judge" in more)


def test_of_rows_with_scores_only_these_are_held_in_memory(tmp_path: Path) -> None:
    environment = Environment("x", verify, scores=lambda row: {"accuracy": row["reward"]})
    put(tmp_path / "r.jsonl", [{**row, "note": "x" * 100_000} for row in solved(200)])
    tracemalloc.start()
    (entry,) = aggregate.of_file(tmp_path / "r.jsonl", lambda name: environment)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20  # the rows are of 40 MB
    assert entry["agent_metrics"]["pass@2/accuracy"] == 100.0


def test_an_agent_without_inputs_is_not_complete(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    stray = [row | {"agent_ref": {"name": "stray"}} for row in solved()]
    put(tmp_path / "shard_9.jsonl", stray)
    for has_inputs in (False, True):
        document, _, notices = aggregated(blade, tmp_path, SHARDS)
        whole = next(whole for whole in document["completeness"] if whole["agent"] == "stray")
        assert whole["is_complete"] is has_inputs
        assert (whole["expected"], whole["unexpected"]) == ((4, 0) if has_inputs else (0, 4))
        assert ("shard_9.jsonl has no _materialized_inputs.jsonl" in notices) is not has_inputs
        put(tmp_path / "shard_9_materialized_inputs.jsonl", stray)


@pytest.mark.parametrize("who", ["asked", "made", None])
def test_failures_belong_to_the_agent_that_the_rollouts_name(who: str | None, tmp_path: Path) -> None:
    rows = [row | {"agent_ref": {"name": "made"}} for row in solved()]
    put(tmp_path / "r_materialized_inputs.jsonl", [row | {"agent_ref": {"name": "asked"}} for row in rows])
    put(tmp_path / "r.jsonl", [rows[0], rows[2]])
    put(tmp_path / "r_failures.jsonl", [rows[1] | {"agent_ref": {"name": who} if who else None}])
    (whole,) = merged([str(tmp_path / "r.jsonl")], tmp_path / "o.jsonl").completeness
    assert [*vars(whole).values()][:6] == ["made", 4, 2, 1, 0, 1]


def test_another_file_is_not_replaced_without_force(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    output = tmp_path / "run.jsonl"
    put(output, [make_row(0, 0, 0.0), make_row(77, 0)])
    before = contents(tmp_path)
    words = ["eval", "aggregate", "-i", tmp_path / SHARDS, "-o", output]
    result = blade(*words)
    assert (result.code, "--force" in result.err) == (2, True)
    assert "run.jsonl is there already, and its line 2 is in none of the shards" in result.err
    assert contents(tmp_path) == before  # metrics among them
    assert blade(*words, "--force").code == 0
    assert len(rows_of(output)) == 6
    for ending in ("_materialized_inputs.jsonl", "_failures.jsonl"):
        put(tmp_path / f"run{ending}", [make_row(77, 0)])
        before = contents(tmp_path)
        with pytest.raises(BladeError, match=rf"run{ending} is there already, and its line 1 is"):
            merged([f"{tmp_path}/{SHARDS}"], output)
        assert contents(tmp_path) == before
        (tmp_path / f"run{ending}").unlink()


def test_a_shard_a_folder_or_a_pipe_is_no_output(tmp_path: Path) -> None:
    shards(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("run", "pipe"):
        with pytest.raises(BladeError) as error:
            merged([f"{tmp_path}/{SHARDS}"], tmp_path / name, force=True)
        assert error.value.slug == "output-no-file"
    with pytest.raises(BladeError, match="is itself read"):
        merged([f"{tmp_path}/{SHARDS}"], tmp_path / "shard_0.jsonl")
    assert contents(tmp_path) == before
    merged([f"{tmp_path}/{SHARDS}"], tmp_path / "shard_0.jsonl", force=True)
    assert len(rows_of(tmp_path / "shard_0.jsonl")) == 6
    assert (tmp_path / "shard_1.jsonl").read_bytes() == before["shard_1.jsonl"]


def test_an_earlier_merge_of_the_same_shards_and_an_empty_file_are_replaced(tmp_path: Path) -> None:
    shards(tmp_path)
    pattern, output = [f"{tmp_path}/{SHARDS}"], tmp_path / "run.jsonl"
    output.write_bytes(b"\n \n")
    merged(pattern, output)
    before = contents(tmp_path)
    merged(pattern, output)
    assert contents(tmp_path) == before
    # the run goes on, and the merge grows with it
    with (tmp_path / "shard_1.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(make_row(3, 1)) + b"\n")
    merged(pattern, output)
    assert len(rows_of(output)) == 7
    # one shard less, and rows would be lost
    with pytest.raises(BladeError) as error:
        merged([f"{tmp_path}/shard_0.jsonl"], output)
    assert error.value.slug == "output-exists"
    # metrics alone lose nothing
    merged([f"{tmp_path}/shard_0.jsonl"], output, merge=False)


def sharded(folder: Path, name: str, shard: Any, agent: str = "desk", **identity: Any) -> None:
    """A shard of a task, with its inputs and its manifest."""
    rows = [make_row(int(name[-1]), repeat, 1.0, agent_ref={"name": agent}) for repeat in range(2)]
    put(folder / f"{name}.jsonl", rows)
    put(folder / f"{name}_materialized_inputs.jsonl", rows)
    flags = {"--limit": None, "--shard": shard}
    manifest = {"schema_version": "1", "identity": {"dataset": [{"sha256": "ab"}], "flags": flags, **identity}}
    (folder / f"{name}_manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_shard_that_was_not_given_is_missing(blade: Blade, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        sharded(tmp_path, f"s{number}", f"{number}/3", is_served=number == 1)
    document, text, _ = aggregated(blade, tmp_path, "s[12].jsonl", "--force")
    (whole,) = document["completeness"]
    assert (whole["is_complete"], whole["missing_shards"]) == (False, ["shard 3 of 3 is missing"])
    assert (document["missing_shards"][0]["shards"], document["missing_shards"][0]["of"]) == ([3], 3)
    assert "shard 3 of 3 is missing" in text
    assert "shards 1, 3 of 3 are missing (of the run of" in aggregated(blade, tmp_path, "s2.jsonl", "--force")[1]
    document, text, _ = aggregated(blade, tmp_path, "s?.jsonl", "--force")  # all of them
    assert (document["completeness"][0]["is_complete"], document["missing_shards"], "missing" in text) == (True, [], False)
    (tmp_path / "s3_manifest.json").unlink()
    document, text, _ = aggregated(blade, tmp_path, "s?.jsonl", "--force")
    assert "shard 3 of 3 is missing, unless it is the file that has no manifest" in text
    assert not document["completeness"][0]["is_complete"]
    (tmp_path / "s2_materialized_inputs.jsonl").unlink()  # nobody knows what was expected
    document, text, _ = aggregated(blade, tmp_path, "s2.jsonl", "--force")
    assert (document["completeness"], "shards 1, 3 of 3 are missing" in text) == (None, True)


@pytest.mark.parametrize(
    "text", [None, b"", b"[]", b'{"identity": []}', b'{"identity": {"flags": 1}}', b"[" * 99_999, "1/1", "3/2", "x", "1/9999999999999999", 7]
)
def test_what_is_no_shard_or_has_no_manifest_lacks_none(blade: Blade, tmp_path: Path, text: Any) -> None:
    sharded(tmp_path, "s1", text if isinstance(text, str | int) else None)
    if isinstance(text, bytes):
        (tmp_path / "s1_manifest.json").write_bytes(text)
    document, page, _ = aggregated(blade, tmp_path, "s1.jsonl")
    assert document["completeness"][0]["is_complete"]
    assert "missing" not in page


def test_shards_of_two_runs_do_not_stand_in_for_one_another(blade: Blade, tmp_path: Path) -> None:
    for number in (1, 2):
        sharded(tmp_path, f"a{number}", f"{number}/2", "desk", agents={"desk": {}})
    sharded(tmp_path, "b1", "1/2", "till", agents={"till": {}})
    document, text, _ = aggregated(blade, tmp_path, "??.jsonl")
    assert {whole["agent"]: whole["is_complete"] for whole in document["completeness"]} == {"desk": True, "till": False}
    assert text.count("missing") == 1
