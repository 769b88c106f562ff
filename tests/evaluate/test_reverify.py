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
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.cli.eval_reverify import reverify
from blade.errors import BladeError, NothingToRead, UsageError
from blade_eval import verifiers
from blade_eval.config import Asked, resolved
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.reverify import WAYS, Changes, Done, Wish, reverified, same
from tests.builders import make_message, make_response
from tests.case_tables import tables
from tests.evaluate.rows import key, put, rows_of
from tests.evaluate.serving import CONFIGS

CONFIG = CONFIGS["words"]


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
             "agent_ref": {"name": "words_simple_agent"}, "_ng_task_index": t, "_ng_rollout_index": r}
            for t in range(4) for r in range(2)
        ]  # fmt: skip
        put(self.inputs, tasks)
        # every repeat 0 is right and every repeat 1 wrong; tasks 1 (right) and 2 (wrong) were misjudged
        self.rows = [
            {**task, "response": make_response([make_message(f"Answer: {t}" if r == 0 else "Answer: no idea")]),
             "reward": float((r == 0) != ((t, r) in ((1, 0), (2, 1))))}
            for task in tasks for t, r in [key(task)]
        ]  # fmt: skip
        put(self.rollouts, self.rows[::-1])

    def again(self, **wish: Any) -> Done:
        config = resolved(Asked(paths=(str(self.folder / "c.yaml"),), environ={}, folder=self.folder))
        files = {"inputs": self.inputs, "rollouts": self.rollouts, "output": self.output}
        return asyncio.run(reverified(config, Wish(**files | wish)))

    def refused(self, slug: str, **wish: Any) -> BladeError:
        with pytest.raises(BladeError) as error:
            self.again(**wish)
        assert error.value.slug == slug
        return error.value

    @property
    def failed(self) -> list[Row]:
        return rows_of(self.output.with_name("again_failures.jsonl"))

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
    assert +done.changes.ways == {"passed to failed": 1, "failed to passed": 1, "same": 6}
    moved = [(change.key, change.before, change.after) for change in done.changes.ordered()]
    assert moved == [((1, 0), 0.0, 1.0), ((2, 1), 1.0, 0.0)]
    assert (done.changes.means(), done.changes.fields["reward"]) == ((0.5, 0.5), 2)
    rows = rows_of(run.output)
    assert list(map(key, rows)) == list(map(key, rows_of(run.rollouts)))
    assert all(row["reward"] == float(row["_ng_rollout_index"] == 0) for row in rows)
    assert all(row["agent_ref"] == {"name": "words_simple_agent"} for row in rows)
    assert run.failed == []
    (metrics,) = json.loads(run.output.with_name("again_aggregate_metrics.json").read_bytes())
    assert metrics["agent_metrics"]["mean/reward"] == 0.5
    second = run.again(rollouts=run.output, output=run.folder / "third.jsonl")
    assert (second.changes.ways, second.changes.fields) == ({"same": 8}, {})
    assert (run.folder / "third.jsonl").read_bytes() == run.output.read_bytes()
    # what is there is replaced only when asked
    run.again(limit=3, overwrite=True)
    part = run.output.read_bytes()
    run.refused("output-exists")
    done = run.again(resume=True)
    assert (done.n_before, done.n_judged, run.output.read_bytes().startswith(part)) == (3, 5, True)
    resumed = run.output.read_bytes()
    run.again(overwrite=True)
    assert run.output.read_bytes() == resumed
    run.output.write_bytes(resumed[:-20])  # a torn line is judged again, not kept and not lost
    assert run.again(resume=True).n_judged == 1
    assert run.output.read_bytes() == resumed


@pytest.mark.parametrize("name", ["run.jsonl", "run_failures.jsonl", "run_materialized_inputs.jsonl"])
@pytest.mark.parametrize("flag", ["overwrite", "resume"])
def test_the_stored_files_are_never_the_output(run: Run, name: str, flag: str) -> None:
    put(run.failures, [])
    before = run.stored()
    run.refused("output-is-input", output=run.folder / name, **{flag: True})
    assert run.stored() == before


def test_a_torn_end_and_not_a_number_are_told(run: Run) -> None:
    stored = run.rollouts.read_bytes()
    run.rollouts.write_bytes(stored + stored.splitlines()[0][:40])
    done = run.again()
    assert done.n_judged == 8
    assert any("line 9" in notice and "ends inside this line" in notice for notice in done.notices)
    # an end without a newline is none of that, nor is a torn line of the inputs
    run.rollouts.write_bytes(stored.rstrip(b"\n"))
    done = run.again(overwrite=True)
    assert (done.n_judged, done.notices) == (8, [])
    put(run.rollouts, [*run.rows[:-1], {**run.rows[-1], "cost": math.nan}])
    done = run.again(overwrite=True)
    assert (done.n_judged, any("line 8 holds NaN" in notice for notice in done.notices)) == (8, True)
    run.inputs.write_bytes(run.inputs.read_bytes()[:-9])
    assert "line 8" in run.refused("unreadable-line", overwrite=True).message
    # so is a row that cannot be placed
    run = Run(run.folder)
    new = run.folder / "new.jsonl"
    stored = run.rollouts.read_bytes()
    for text, slug in (("{", "unreadable-line"), ("[1]", "unreadable-line"), ('{"reward": 1}', "rows-without-indices")):
        run.rollouts.write_bytes(stored + f"\n{text}\n".encode())
        assert "line 10" in run.refused(slug, output=new).message
        assert not new.exists()


def test_agents_that_share_tasks_are_told_apart(run: Run) -> None:
    other: Row = {"agent_ref": {"name": "other"}}
    put(run.inputs, [*rows_of(run.inputs), {**rows_of(run.inputs)[0], **other, "expected_answer": "9"}])
    put(run.rollouts, [*run.rows, {**run.rows[0], **other}])
    done = run.again()
    rewards = {(row["agent_ref"]["name"], *key(row)): row["reward"] for row in rows_of(run.output)}
    assert (rewards["words_simple_agent", 0, 0], rewards["other", 0, 0]) == (1.0, 0.0)  # each has its own task
    assert (done.n_judged, len(rewards)) == (9, 9)
    run.output.write_text("".join(run.output.read_text().splitlines(keepends=True)[:-1]))
    assert run.again(resume=True).n_judged == 1
    # near misses: one of them twice, an agent that nobody asked, a row of another run
    run.output.write_bytes(b"of yesterday")
    for row, what in ((run.rows[0], "twice"), ({**run.rows[0], "agent_ref": {"name": "third"}}, "none of the inputs"),
                      ({**run.rows[0], "_ng_task_index": 99}, "none of the inputs")):  # fmt: skip
        put(run.rollouts, [*run.rows, row])
        assert what in run.refused("reverify-mismatch", overwrite=True).message
    assert run.output.read_bytes() == b"of yesterday"
    put(run.inputs, [*rows_of(run.inputs), rows_of(run.inputs)[0]])
    assert "twice" in run.refused("reverify-mismatch", overwrite=True).message


def test_packed_files_are_judged_like_others(run: Run) -> None:
    failed_judges(run)
    run.again(judge_failed_only=True)
    expected = run.output.read_bytes()
    for path in (run.rollouts, run.inputs, run.failures):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    run.rollouts, run.inputs = (path.with_name(path.name + ".gz") for path in (run.rollouts, run.inputs))
    done = run.again(judge_failed_only=True, overwrite=True)
    assert (done.n_copied, done.n_judged) == (6, 2)
    assert run.output.read_bytes() == expected
    assert command(run, "--overwrite").exit_code == 0  # which finds the inputs beside them
    assert "would not be packed" in run.refused("usage", output=run.folder / "more.jsonl.gz").message


def test_masked_rows_stay_masked_and_count_for_nothing(run: Run) -> None:
    masked = [{**row, "mask_sample": place == 0} for place, row in enumerate(run.rows)]
    put(run.rollouts, masked)
    done = run.again()
    assert [row.get("mask_sample") for row in rows_of(run.output)] == [True] + [None] * 7
    assert (done.n_judged, done.n_masked, done.changes.n_both) == (8, 1, 7)
    assert done.changes.means() == (3 / 7, 3 / 7)
    assert done.aggregate is not None
    (entry,) = json.loads(done.aggregate.read_bytes())
    assert entry["agent_metrics"]["coverage/masked_rollouts"] == 1


def failed_judges(run: Run) -> None:
    """Task 3 lost its judge: repeat 0 twice, repeat 1 once; another failure is not the judge's."""
    put(run.rollouts, run.rows[:6])
    body, other = ({k: v for k, v in row.items() if k != "reward"} for row in run.rows[6:])
    failures = [(body, "judge_failed"), (body, "judge_failed"), (other, "judge_invalid"), (other, "model_unreachable")]
    failures.append(({**other, "_ng_rollout_index": 0, "_ng_task_index": 2}, "judge_failed"))
    put(run.failures, [{**row, "mask_sample": True, "_ng_failure_class": kind} for row, kind in failures])


def test_only_failed_judges_are_asked_again_and_the_rest_stays_byte_for_byte(run: Run) -> None:
    failed_judges(run)
    before = run.stored()
    done = run.again(judge_failed_only=True)
    assert run.stored() == before
    assert (done.n_copied, done.n_judged, done.n_masked) == (6, 2, 0)  # what is judged now is masked no more
    assert run.output.read_bytes().startswith(run.rollouts.read_bytes())
    rows = rows_of(run.output)
    assert [(*key(row), row["reward"]) for row in rows[6:]] == [(3, 0, 1.0), (3, 1, 0.0)]
    assert not any("mask_sample" in row for row in rows)
    assert done.changes.ways == {"none to passed": 1, "none to failed": 1}
    assert any("two sources" in notice for notice in done.notices)
    again = run.again(judge_failed_only=True, resume=True)
    assert (again.n_copied, again.n_judged) == (0, 0)
    # appending adds the missing verdicts once
    run.output.write_bytes(run.rollouts.read_bytes())
    assert [run.again(judge_failed_only=True, append=True).n_judged for _ in range(2)] == [2, 0]
    assert len(rows_of(run.output)) == 8
    for flags in ({"append": True}, {"append": True, "judge_failed_only": True, "overwrite": True}):
        run.refused("usage", **flags)


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


def test_a_verifier_that_needs_its_state_is_refused_or_marked_and_foreign_words_are_harmless(toy: Run) -> None:
    output = command(toy).output
    assert "passed to none: task 0, repeat 0: 1 -> none; judge_failed: down" in output
    assert "\x1b" not in output
    for path in toy.folder.glob("again*"):
        path.unlink()
    STATE["mode"] = "unsupported"
    toy.refused("reverify-unsupported")
    assert not toy.output.exists()
    done = toy.again(force=True)
    assert done.places.rollouts.name == "unsafe_again.jsonl"
    assert sorted(path.name for path in toy.folder.glob("*again*")) == [
        "unsafe_again.jsonl", "unsafe_again_aggregate_metrics.json", "unsafe_again_failures.jsonl",
    ]  # fmt: skip


def test_what_a_verifier_cannot_judge_is_no_zero(toy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = toy.again(force=True)
    assert done.places.rollouts.name == "again.jsonl"  # force alone marks nothing
    assert sorted(row["_ng_failure_class"] for row in toy.failed) == ["judge_failed"] * 2 + ["verifier_error"] * 2
    assert (done.n_judged, done.n_failed) == (4, 4)
    assert done.changes.ways["failed to none"] + done.changes.ways["passed to none"] == 4
    assert all(row["score"] is None for row in rows_of(toy.output))
    monkeypatch.undo()
    put(toy.rollouts, [{**toy.rows[0], "response": None}, *toy.rows[1:]])
    done = toy.again(overwrite=True)
    assert (done.n_judged, done.n_failed, done.changes.ways["passed to none"]) == (7, 1, 1)
    (failure,) = toy.failed
    assert (failure["_ng_failure_class"], "reward" in failure) == ("response_missing", False)


rewards = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 2))


@settings(max_examples=50)
@given(st.lists(st.tuples(rewards, rewards), max_size=30))
def test_every_rollout_goes_one_way_and_back_again(moves: list[tuple[float | None, float | None]]) -> None:
    there, back = Changes(), Changes()
    for place, (old, new) in enumerate(moves):
        for changes, before, after in ((there, old, new), (back, new, old)):
            changes.add((place, 0), "a", {"reward": before}, {} if after is None else {"reward": after}, "why")
    assert sum(there.ways.values()) == len(moves)
    assert set(there.ways) <= set(WAYS)
    for way, reverse in (("passed to failed", "failed to passed"), ("lower", "higher"), ("same", "same")):
        assert there.ways[way] == back.ways[reverse]
    assert len(there.rows) == len(moves) - there.ways["same"]
    assert all(same(*pair) for pair in ((1, 1.0), (None, float("nan")), ({"a": [1, 2]}, {"a": (1, 2)})))
    assert not any(same(*pair) for pair in ((True, 1), ({"a": 1}, {"a": 1, "b": None})))


def command(run: Run, *more: str) -> Result:
    words = ["--config", str(run.folder / "c.yaml"), "--rollouts", str(run.rollouts), "-o", str(run.output)]
    return CliRunner().invoke(reverify, [*words, *more])


def test_the_command_tells_people_and_programs_the_same_and_that_no_judge_is_chosen(run: Run) -> None:
    result = command(run)
    assert result.exit_code == 0, result.output
    assert "failed to passed          1" in result.output
    assert "passed to failed: task 2, repeat 1: 1 -> 0" in result.output
    document = json.loads(command(run, "--overwrite", "--json").stdout)
    assert (document["judged"], document["verdicts"]["ways"]["failed to passed"]) == (8, 1)
    assert [change["_ng_task_index"] for change in document["verdicts"]["changes"]] == [1, 2]
    assert "no model judges" not in result.stderr
    judge = "      judge_model_server: {type: responses_api_models, name: policy_model}\n"
    (run.folder / "c.yaml").write_text(CONFIG.replace("      domain: other\n", "      domain: other\n" + judge), encoding="utf-8")
    result = command(run, "--overwrite")
    assert result.exit_code == 0, result.output
    assert "no model judges for words" in result.stderr


def test_the_command_says_what_it_lacks(run: Run) -> None:
    for name, slug in (("none.jsonl", "no-such-path"), ("none.jsonl.gz", "no-such-path"), ("", "unreadable-file")):
        run.refused(slug, inputs=run.folder / name)
        assert not run.output.exists()
    config = ["--config", str(run.folder / "c.yaml")]
    assert isinstance(CliRunner().invoke(reverify, config).exception, UsageError)
    keys = [f"+rollouts_jsonl_fpath={run.rollouts}", f"+output_jsonl_fpath={run.output}"]
    for words in (config, [f"+config_paths=[{run.folder / 'c.yaml'}]", "--overwrite"]):  # an override names one, too
        result = CliRunner().invoke(reverify, [*words, *keys])
        assert result.exit_code == 0, result.output
    for path in (run.inputs, run.rollouts):  # missing rollouts are named before their inputs
        path.unlink()
        error = command(run, "--overwrite").exception
        assert isinstance(error, NothingToRead)
        assert error.message == f"there is no file {path}"


@pytest.mark.parametrize(("identity", "is_told"), tables(__file__)["judges"])
def test_another_verifier_than_the_run_had_is_told(run: Run, identity: Any, is_told: bool) -> None:
    if identity is not None:
        manifest = {"schema_version": "1", "identity": identity}
        (run.folder / "run_manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    result = command(run)
    assert result.exit_code == 0, result.output
    assert ("the run was judged by math_with_judge, and string_match judges now" in result.stderr) is is_told
    assert ("judges now" in result.stderr) is is_told


def test_where_nothing_got_a_verdict_the_command_fails_and_says_why_once(run: Run) -> None:
    # a verifier that needs what the rows lack
    (run.folder / "c.yaml").write_text(CONFIG.replace("string_match:", "mcqa:"), encoding="utf-8")
    result = command(run)
    assert isinstance(result.exception, BladeError)
    assert (result.exception.slug, result.exception.exit_code) == ("nothing-judged", 4)
    assert "none of 8 rollouts got a verdict; 8 times: task_invalid" in result.exception.message
    assert len(run.failed) == 8
    told = [line for line in result.stdout.splitlines() if "task_invalid" in line]
    assert len(told) == 2  # of those that had passed, and of those that had failed
    assert told[0].startswith("passed to none: 4 rollouts, the first task 0, repeat 0: 1 -> none; task_invalid")
    whole = command(run, "--overwrite", "--json")
    assert isinstance(whole.exception, BladeError)
    assert len(json.loads(whole.stdout)["verdicts"]["changes"]) == 8
    # one verdict is enough to end well
    (run.folder / "c.yaml").write_text(CONFIG, encoding="utf-8")
    put(run.rollouts, [run.rows[0], *({**row, "response": None} for row in run.rows[1:])])
    result = command(run, "--overwrite")
    assert result.exit_code == 0, result.output
    assert "7 of them without a verdict now" in result.stdout
    assert result.stdout.count("response_missing") == 2
