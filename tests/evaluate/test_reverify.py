"""Stored rollouts judged again: what changes is told, what cannot be judged is no zero, nothing stored is touched."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from blade.cli.eval_reverify import reverify
from blade.errors import BladeError, NothingToRead, UsageError
from blade_eval import verifiers
from blade_eval.config import Asked, resolved
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.reverify import Done, Wish, reverified
from blade_eval.reverify.changes import WAYS, Changes, same

CONFIG = """
words:
  resources_servers:
    string_match:
      entrypoint: app.py
      domain: other
words_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: words}
      model_server: {type: responses_api_models, name: policy_model}
"""


def said(text: str) -> Row:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "output": [{"type": "message", "role": "assistant", "content": [part]}],
        "usage": {"input_tokens": 3},
    }


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


class Run:
    """A stored run of four tasks by two repeats, in which some verdicts are not what they should be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "c.yaml").write_text(CONFIG, encoding="utf-8")
        self.rollouts = folder / "run.jsonl"
        self.inputs = folder / "run_materialized_inputs.jsonl"
        self.failures = folder / "run_failures.jsonl"
        self.output = folder / "again.jsonl"
        tasks = [
            {"responses_create_params": {"input": f"task {t}"}, "expected_answer": str(t),
             "agent_ref": {"name": "words_agent"}, "_ng_task_index": t, "_ng_rollout_index": r}
            for t in range(4) for r in range(2)
        ]  # fmt: skip
        write(self.inputs, tasks)
        # every repeat 0 is right and every repeat 1 wrong; tasks 1 (right) and 2 (wrong) were misjudged
        rows = []
        for task in tasks:
            t, r = task["_ng_task_index"], task["_ng_rollout_index"]
            is_right = r == 0
            is_passed = is_right if (t, r) not in ((1, 0), (2, 1)) else not is_right
            rows.append({
                "responses_create_params": task["responses_create_params"],
                "response": said(f"Answer: {t}" if is_right else "Answer: no idea"),
                "reward": float(is_passed), "expected_answer": str(t), "agent_ref": {"name": "words_agent"},
                "_ng_task_index": t, "_ng_rollout_index": r,
            })  # fmt: skip
        write(self.rollouts, rows[::-1])
        self.rows = rows

    def again(self, **wish: Any) -> Done:
        found = resolved(Asked(paths=(str(self.folder / "c.yaml"),), environ={}, folder=self.folder))
        wish = {"inputs": self.inputs, "rollouts": self.rollouts, "output": self.output, **wish}
        return asyncio.run(reverified(found, Wish(**wish)))

    def stored(self) -> dict[str, str]:
        names = (self.rollouts, self.inputs, self.failures)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in names if path.exists()}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_what_changed_is_told_and_nothing_stored_is_touched(run: Run) -> None:
    before = run.stored()
    done = run.again(concurrency=3)
    assert run.stored() == before
    assert {way: count for way, count in done.changes.ways.items() if count} == {
        "passed to failed": 1, "failed to passed": 1, "same": 6,
    }  # fmt: skip
    moved = [(change.key, change.before, change.after) for change in done.changes.ordered()]
    assert moved == [((1, 0), 0.0, 1.0), ((2, 1), 1.0, 0.0)]
    assert done.changes.means() == (0.5, 0.5)
    assert done.changes.fields["reward"] == 2
    rows = lines(run.output)
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows] == [
        (row["_ng_task_index"], row["_ng_rollout_index"]) for row in lines(run.rollouts)
    ]
    assert all(row["reward"] == float(row["_ng_rollout_index"] == 0) for row in rows)
    assert all(row["agent_ref"] == {"name": "words_agent"} for row in rows)
    assert run.output.with_name("again_failures.jsonl").read_bytes() == b""
    (metrics,) = json.loads(run.output.with_name("again_aggregate_metrics.json").read_bytes())
    assert metrics["agent_metrics"]["mean/reward"] == 0.5


def test_judging_what_was_judged_changes_nothing(run: Run) -> None:
    run.again()
    second = run.again(rollouts=run.output, output=run.folder / "third.jsonl")
    assert second.changes.ways == {"same": 8}
    assert not second.changes.fields
    assert (run.folder / "third.jsonl").read_bytes() == run.output.read_bytes()


def test_what_is_there_is_replaced_only_when_asked(run: Run) -> None:
    run.again(limit=3)
    whole = run.output.read_bytes()
    with pytest.raises(UsageError) as told:
        run.again()
    assert told.value.slug == "output-exists"
    done = run.again(resume=True)
    assert (done.n_before, done.n_judged) == (3, 5)
    assert run.output.read_bytes().startswith(whole)
    resumed = run.output.read_bytes()
    run.again(overwrite=True)
    assert run.output.read_bytes() == resumed
    # a torn line is judged again, not kept and not lost
    run.output.write_bytes(resumed[:-20])
    done = run.again(resume=True)
    assert done.n_judged == 1
    assert run.output.read_bytes() == resumed


@pytest.mark.parametrize("name", ["run.jsonl", "run_failures.jsonl", "run_materialized_inputs.jsonl"])
@pytest.mark.parametrize("flag", ["overwrite", "resume"])
def test_the_stored_files_are_never_the_output(run: Run, name: str, flag: str) -> None:
    write(run.failures, [])
    before = run.stored()
    with pytest.raises(UsageError) as told:
        run.again(output=run.folder / name, **{flag: True})
    assert told.value.slug == "output-is-input"
    assert run.stored() == before


def test_a_row_without_response_is_a_failure_not_a_zero(run: Run) -> None:
    rows = [
        {k: v for k, v in row.items() if k != "response"} if place == 0 else row
        for place, row in enumerate(run.rows)
    ]
    write(run.rollouts, rows)
    done = run.again()
    assert (done.n_judged, done.n_failed) == (7, 1)
    (failure,) = lines(run.output.with_name("again_failures.jsonl"))
    assert failure["_ng_failure_class"] == "response_missing"
    assert "reward" not in failure
    assert done.changes.ways["passed to none"] == 1


@pytest.mark.parametrize(
    ("broken", "slug"),
    [("{", "unreadable-line"), ("[1]", "unreadable-line"), ('{"reward": 1}', "rows-without-indices")],
)
def test_a_row_that_cannot_be_placed_is_told_with_its_line(run: Run, broken: str, slug: str) -> None:
    with run.rollouts.open("a", encoding="utf-8") as file:
        file.write(f"\n{broken}\n")
    with pytest.raises(BladeError, match="line 10") as told:
        run.again()
    assert told.value.slug == slug
    assert not run.output.exists()


def test_a_torn_end_is_passed_over_and_told(run: Run) -> None:
    stored = run.rollouts.read_bytes()
    run.rollouts.write_bytes(stored + stored.splitlines()[0][:40])
    done = run.again()
    assert done.n_judged == 8
    assert any("line 9" in told and "ends inside this line" in told for told in done.notices)
    # an end without a newline is none of that, nor is a torn line of the inputs
    run.rollouts.write_bytes(stored.rstrip(b"\n"))
    done = run.again(overwrite=True)
    assert (done.n_judged, done.notices) == (8, [])
    run.inputs.write_bytes(run.inputs.read_bytes()[:-9])
    with pytest.raises(BladeError, match="line 8") as told:
        run.again(overwrite=True)
    assert told.value.slug == "unreadable-line"


def test_not_a_number_is_judged_and_told(run: Run) -> None:
    write(run.rollouts, [*run.rows[:-1], {**run.rows[-1], "cost": math.nan}])
    done = run.again()
    assert done.n_judged == 8
    assert any("line 8 holds NaN" in told for told in done.notices)


def test_agents_that_share_tasks_are_told_apart(run: Run) -> None:
    other: Row = {"agent_ref": {"name": "other"}}
    write(run.inputs, [*lines(run.inputs), {**lines(run.inputs)[0], **other, "expected_answer": "9"}])
    write(run.rollouts, [*run.rows, {**run.rows[0], **other}])
    done = run.again()
    rewards = {(r["agent_ref"]["name"], r["_ng_task_index"], r["_ng_rollout_index"]): r["reward"]
               for r in lines(run.output)}  # fmt: skip
    assert (rewards["words_agent", 0, 0], rewards["other", 0, 0]) == (1.0, 0.0)  # each has its own task
    assert (done.n_judged, len(rewards)) == (9, 9)
    run.output.write_text("".join(run.output.read_text().splitlines(keepends=True)[:-1]))
    assert run.again(resume=True).n_judged == 1
    # near misses: one of them twice, and an agent that nobody asked
    for rows, what in (([*run.rows, run.rows[0]], "twice"),
                       ([{**run.rows[0], "agent_ref": {"name": "third"}}], "none of the inputs")):  # fmt: skip
        write(run.rollouts, rows)
        with pytest.raises(BladeError, match=what):
            run.again(overwrite=True)


def test_packed_files_are_judged_like_others(run: Run) -> None:
    failed_judges(run)
    run.again(judge_failed_only=True)
    expected = run.output.read_bytes()
    for path in (run.rollouts, run.inputs, run.failures):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = {name: run.folder / f"{name}.gz" for name in ("run.jsonl", "run_materialized_inputs.jsonl")}
    done = run.again(
        rollouts=packed["run.jsonl"], inputs=packed["run_materialized_inputs.jsonl"],
        judge_failed_only=True, overwrite=True,
    )  # fmt: skip
    assert (done.n_copied, done.n_judged) == (6, 2)
    assert run.output.read_bytes() == expected
    run.rollouts = packed["run.jsonl"]
    assert command(run, "--overwrite").exit_code == 0  # which finds the inputs beside them
    with pytest.raises(UsageError, match="would not be packed"):
        run.again(output=run.folder / "more.jsonl.gz")


def test_masked_rows_stay_masked_and_count_for_nothing(run: Run) -> None:
    masked = [{**row, "mask_sample": place == 0} for place, row in enumerate(run.rows)]
    write(run.rollouts, masked)
    done = run.again()
    assert [row.get("mask_sample") for row in lines(run.output)] == [True] + [None] * 7
    assert (done.n_judged, done.n_masked, done.changes.n_both) == (8, 1, 7)
    assert done.changes.means() == (3 / 7, 3 / 7)
    assert done.aggregate is not None
    (entry,) = json.loads(done.aggregate.read_bytes())
    assert entry["agent_metrics"]["coverage/masked_rollouts"] == 1


def test_a_failure_that_is_judged_now_is_masked_no_more(run: Run) -> None:
    failed_judges(run)
    write(run.failures, [{**row, "mask_sample": True} for row in lines(run.failures)])
    done = run.again(judge_failed_only=True)
    assert (done.n_judged, done.n_masked) == (2, 0)
    assert not any("mask_sample" in row for row in lines(run.output))


def test_rows_of_another_run_and_rows_twice_are_told(run: Run) -> None:
    write(run.rollouts, [*run.rows, {**run.rows[0], "_ng_task_index": 99}])
    with pytest.raises(BladeError, match="none of the inputs"):
        run.again()
    write(run.rollouts, [*run.rows, run.rows[0]])
    run.output.write_bytes(b"of yesterday")
    with pytest.raises(BladeError, match="twice"):
        run.again(overwrite=True)
    assert run.output.read_bytes() == b"of yesterday"


# ---- Judges that failed ------------------------------------------------------------------------


def failed_judges(run: Run) -> None:
    """Task 3 lost its judge: repeat 0 twice, repeat 1 once; another failure is not the judge's."""
    write(run.rollouts, run.rows[:6])
    body = {k: v for k, v in run.rows[6].items() if k != "reward"}
    other = {k: v for k, v in run.rows[7].items() if k != "reward"}
    write(
        run.failures,
        [
            {**body, "reward": 0.0, "_ng_failure_class": "judge_failed"},
            {**body, "reward": 0.0, "_ng_failure_class": "judge_failed"},
            {**other, "_ng_failure_class": "judge_invalid"},
            {**other, "_ng_rollout_index": 0, "_ng_task_index": 2, "_ng_failure_class": "judge_failed"},
            {**other, "_ng_failure_class": "model_unreachable"},
        ],
    )


def test_only_failed_judges_are_asked_again_and_the_rest_stays_byte_for_byte(run: Run) -> None:
    failed_judges(run)
    before = run.stored()
    done = run.again(judge_failed_only=True)
    assert run.stored() == before
    assert (done.n_copied, done.n_judged) == (6, 2)
    assert run.output.read_bytes().startswith(run.rollouts.read_bytes())
    rows = lines(run.output)[6:]
    assert [(row["_ng_task_index"], row["_ng_rollout_index"], row["reward"]) for row in rows] == [
        (3, 0, 1.0),
        (3, 1, 0.0),
    ]
    assert done.changes.ways == {"none to passed": 1, "none to failed": 1}
    assert any("two sources" in told for told in done.notices)
    again = run.again(judge_failed_only=True, resume=True)
    assert (again.n_copied, again.n_judged) == (0, 0)


def test_appending_adds_the_missing_verdicts_once(run: Run) -> None:
    failed_judges(run)
    run.output.write_bytes(run.rollouts.read_bytes())
    assert run.again(judge_failed_only=True, append=True).n_judged == 2
    assert run.again(judge_failed_only=True, append=True).n_judged == 0
    assert len(lines(run.output)) == 8


@pytest.mark.parametrize(
    "flags", [{"append": True}, {"append": True, "judge_failed_only": True, "overwrite": True}]
)
def test_flags_that_contradict(run: Run, flags: Any) -> None:
    with pytest.raises(UsageError):
        run.again(**flags)


# ---- Verifiers that need more than the response ------------------------------------------------

STATE: dict[str, Any] = {}


def environment(settings: Any) -> Environment:
    """An environment of this module, put into the table for a test."""

    async def verify(attempt: Attempt) -> Row:
        task = attempt.row["_ng_task_index"]
        if task == 0:
            raise Unmeasured("judge_failed", "\x1b[31mdown", fields={"response": attempt.response})
        if task == 1:
            raise ZeroDivisionError("a bug")
        return {"reward": 0.25, "seen": attempt.state is None, "score": float("nan")}

    return Environment("toy", verify, reverify=STATE.get("mode", "stateless"))


@pytest.fixture
def toy(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setitem(verifiers.ENVIRONMENTS, "string_match", __name__)
    STATE.clear()
    return run


def test_a_verifier_that_needs_its_state_is_refused_or_marked(toy: Run) -> None:
    STATE["mode"] = "unsupported"
    with pytest.raises(UsageError) as told:
        toy.again()
    assert told.value.slug == "reverify-unsupported"
    assert not toy.output.exists()
    done = toy.again(force=True)
    assert done.places.rollouts.name == "unsafe_again.jsonl"
    assert sorted(path.name for path in toy.folder.glob("*again*")) == [
        "unsafe_again.jsonl", "unsafe_again_aggregate_metrics.json", "unsafe_again_failures.jsonl",
    ]  # fmt: skip


def test_force_alone_marks_nothing(toy: Run) -> None:
    assert toy.again(force=True).places.rollouts.name == "again.jsonl"


def test_what_a_verifier_cannot_judge_is_no_zero(toy: Run) -> None:
    done = toy.again()
    kinds = [row["_ng_failure_class"] for row in lines(toy.output.with_name("again_failures.jsonl"))]
    assert sorted(kinds) == ["judge_failed"] * 2 + ["verifier_error"] * 2
    assert (done.n_judged, done.n_failed) == (4, 4)
    assert done.changes.ways["failed to none"] + done.changes.ways["passed to none"] == 4
    assert all(row["score"] is None for row in lines(toy.output))


# ---- The counting ------------------------------------------------------------------------------

rewards = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 2))


@given(st.lists(st.tuples(rewards, rewards), max_size=30))
def test_every_rollout_goes_one_way_and_back_again(moves: list[tuple[float | None, float | None]]) -> None:
    there, back = Changes(), Changes()
    for place, (old, new) in enumerate(moves):
        for counted, one, other in ((there, old, new), (back, new, old)):
            if other is None:
                counted.unjudged((place, 0), "a", {"reward": one}, "why")
            else:
                counted.judged((place, 0), "a", {"reward": one}, {"reward": other})
    assert sum(there.ways.values()) == len(moves)
    assert set(there.ways) <= set(WAYS)
    assert there.ways["passed to failed"] == back.ways["failed to passed"]
    assert there.ways["lower"] == back.ways["higher"]
    assert there.ways["same"] == back.ways["same"]
    assert len(there.rows) == len(moves) - there.ways["same"]


def test_equal_as_json() -> None:
    assert same(1, 1.0)
    assert same(None, float("nan"))
    assert same({"a": [1, 2]}, {"a": (1, 2)})
    assert not same(True, 1)
    assert not same({"a": 1}, {"a": 1, "b": None})


# ---- The command -------------------------------------------------------------------------------


def command(run: Run, *more: str) -> Result:
    arguments = [
        "--config",
        str(run.folder / "c.yaml"),
        "--rollouts",
        str(run.rollouts),
        "-o",
        str(run.output),
        *more,
    ]
    return CliRunner().invoke(reverify, arguments)


def test_the_command_tells_people_and_programs_the_same(run: Run) -> None:
    told = command(run)
    assert told.exit_code == 0, told.output
    assert "failed to passed          1" in told.output
    assert "passed to failed: task 2, repeat 1: 1 -> 0" in told.output
    found = json.loads(command(run, "--overwrite", "--json").stdout)
    assert found["judged"] == 8
    assert found["verdicts"]["ways"]["failed to passed"] == 1
    assert [change["_ng_task_index"] for change in found["verdicts"]["changes"]] == [1, 2]


def test_foreign_words_are_harmless_at_the_terminal(toy: Run) -> None:
    told = command(toy)
    assert "passed to none: task 0, repeat 0: 1 -> none; judge_failed: down" in told.output
    assert "\x1b" not in told.output


def test_the_command_says_what_it_lacks(run: Run) -> None:
    bare = CliRunner().invoke(reverify, ["--config", str(run.folder / "c.yaml")])
    assert isinstance(bare.exception, UsageError)
    named = CliRunner().invoke(
        reverify,
        [
            "--config",
            str(run.folder / "c.yaml"),
            f"+rollouts_jsonl_fpath={run.rollouts}",
            f"+output_jsonl_fpath={run.output}",
        ],
    )
    assert named.exit_code == 0, named.output


def test_a_judge_that_is_not_chosen_is_told(run: Run) -> None:
    named = "      judge_model_server: {type: responses_api_models, name: policy_model}\n"
    text = CONFIG.replace("      domain: other\n", "      domain: other\n" + named)
    (run.folder / "c.yaml").write_text(text, encoding="utf-8")
    told = command(run)
    assert told.exit_code == 0, told.output
    assert "no model judges for words" in told.stderr
    assert "no model judges" not in command(Run(run.folder), "--overwrite").stderr


@pytest.mark.parametrize(
    ("name", "slug"),
    [("none.jsonl", "no-such-path"), ("none.jsonl.gz", "no-such-path"), ("", "unreadable-file")],
)
def test_files_that_cannot_be_read_are_told(run: Run, name: str, slug: str) -> None:
    with pytest.raises(BladeError) as told:
        run.again(inputs=run.folder / name)
    assert told.value.slug == slug
    assert not run.output.exists()


def ran_with(run: Run, *verifiers: str, agent: str = "words_agent") -> None:
    """Give the run a manifest that names its verifiers."""
    agents = {agent: {"resources_servers": {name: {"domain": "other"} for name in verifiers}}}
    told = {"schema_version": "1", "identity": {"agents": agents}}
    (run.folder / "run_manifest.json").write_text(json.dumps(told), encoding="utf-8")


def as_mcqa(run: Run) -> None:
    """Have the rows judged by a verifier that needs what they lack."""
    text = CONFIG.replace("string_match:", "mcqa:")
    (run.folder / "c.yaml").write_text(text, encoding="utf-8")


def test_missing_rollouts_are_named_before_their_inputs(run: Run) -> None:
    run.inputs.unlink()
    run.rollouts.unlink()
    told = command(run).exception
    assert isinstance(told, NothingToRead)
    assert told.message == f"there is no file {run.rollouts}"
    # the rollouts are there, and their inputs are not
    write(run.rollouts, run.rows)
    told = command(run).exception
    assert isinstance(told, NothingToRead)
    assert told.message == f"there is no file {run.inputs}"


@pytest.mark.parametrize("agent", ["words_agent", "an_agent_by_another_name"])
def test_another_verifier_than_the_run_had_is_told(run: Run, agent: str) -> None:
    ran_with(run, "math_with_judge", agent=agent)
    assert "the run was judged by math_with_judge, and string_match judges now" in command(run).stderr
    ran_with(run, "string_match", agent=agent)
    assert "judges now" not in command(run, "--overwrite").stderr
    ran_with(run, agent=agent)
    assert "judges now" not in command(run, "--overwrite").stderr
    (run.folder / "run_manifest.json").unlink()
    assert "judges now" not in command(run, "--overwrite").stderr


@pytest.mark.parametrize("identity", [[], {"agents": []}, {"agents": {"words_agent": 1}}])
def test_a_manifest_of_another_shape_tells_nothing(run: Run, identity: Any) -> None:
    (run.folder / "run_manifest.json").write_text(json.dumps({"identity": identity}), encoding="utf-8")
    told = command(run)
    assert told.exit_code == 0, told.output
    assert "judges now" not in told.stderr


def test_where_nothing_got_a_verdict_the_command_fails_and_says_why_once(run: Run) -> None:
    as_mcqa(run)
    told = command(run)
    assert isinstance(told.exception, BladeError)
    assert (told.exception.slug, told.exception.exit_code) == ("nothing-judged", 4)
    assert "none of 8 rollouts got a verdict; 8 times: task_invalid" in told.exception.message
    assert len(lines(run.output.with_name("again_failures.jsonl"))) == 8
    said = [line for line in told.stdout.splitlines() if "task_invalid" in line]
    assert len(said) == 2  # of those that had passed, and of those that had failed
    assert said[0].startswith(
        "passed to none: 4 rollouts, the first task 0, repeat 0: 1 -> none; task_invalid"
    )
    whole = command(run, "--overwrite", "--json")
    assert isinstance(whole.exception, BladeError)
    assert len(json.loads(whole.stdout)["verdicts"]["changes"]) == 8


def test_one_verdict_is_enough_to_end_well(run: Run) -> None:
    rows = [row if at == 0 else {**row, "response": None} for at, row in enumerate(run.rows)]
    write(run.rollouts, rows)
    told = command(run)
    assert told.exit_code == 0, told.output
    assert "7 of them without a verdict now" in told.stdout
    assert told.stdout.count("response_missing") == 2
