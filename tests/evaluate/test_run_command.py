"""`blade eval run` as it is typed: files, words, exit codes, resume, secrets, interruption."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from blade import errors
from blade_eval.config import Asked
from blade_eval.prepare import work
from blade_eval.runner import benchmark_run, collect
from blade_eval.runner.progress import Progress
from tests.case_tables import tables
from tests.conftest import Blade
from tests.evaluate.rows import put, rows_of
from tests.evaluate.serving import CONFIGS
from tools.bench import faulty, killed_runs
from tools.bench.killed_runs import questions
from tools.model_server import Faults, Server, Status, choice, serving

CASES = tables(__file__)
SECRET = "sk-do-not-write-me-down"
LETTERS = [f"Answer: {letter}" for letter in "ABCD"]
NOBODY = "http://127.0.0.1:9/v1"
QUICK = "++policy_model.responses_api_models.openai_model.first_wait=0.001"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(choice(LETTERS), keeps=False) as running:
        yield running


class Command:
    """The command on three questions, in a folder of its own and in this process."""

    def __init__(self, folder: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.out, self._blade, self._monkeypatch = folder, folder / "out", blade, monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setattr(collect.Stop, "within", self.at_once)

    @staticmethod
    async def at_once(stop: collect.Stop, seconds: float) -> bool:
        """Attempts follow one another without a wait."""
        return stop.is_set

    def words(self, url: str, *more: str, tasks: int = 3) -> list[str]:
        rows = self.folder / "rows.jsonl"
        if not rows.exists():
            rows.write_text("".join(questions(tasks)))
        words = "eval run --resources-server mcqa --model-type openai_model --model m --quiet".split()
        words += ["--input", str(rows), "--output", str(self.out / "r.jsonl"), "--model-api-key", SECRET]
        return [*words, "--model-url", url, *more]

    def __call__(self, url: str, *more: str, code: int = 0, tasks: int = 3) -> Any:
        words = self.words(url, *more, tasks=tasks)
        self._monkeypatch.setattr(sys, "argv", ["blade", *words])
        result = self._blade(*words)
        assert result.code == code, result.err
        return result

    def rows(self, name: str = "r.jsonl") -> list[dict[str, Any]]:
        return rows_of(self.out / name)

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.out / "r_manifest.json").read_text())


@pytest.fixture
def run(tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, blade, monkeypatch)


def picky(body: dict[str, object]) -> object:
    return Status(400, "too long") if "What is 1 +" in json.dumps(body) else "Answer: B"


def test_a_run_writes_its_files_and_a_second_goes_on_or_is_refused(run: Command, server: Server) -> None:
    cool = ("--num-repeats", "2", "--temperature", "0.5")
    first = run(server.url, *cool, "--price-in", "1").out
    for text in ("Finished rollout collection! View results at:", "6 expected = 6 scored + 0 failed + 0 unfinished", "Next: blade diagnose"):
        assert text in first
    names = {f"r{end}" for end in (".jsonl", "_materialized_inputs.jsonl", "_failures.jsonl", "_manifest.json", "_aggregate_metrics.json")}
    assert {path.name for path in run.out.iterdir()} == names
    assert not any(SECRET in path.read_text() for path in run.out.iterdir())
    assert {row["agent_ref"]["name"] for row in run.rows()} == {"mcqa_simple_agent"}
    assert all(row["responses_create_params"]["temperature"] == 0.5 for row in run.rows())

    assert "is there already" in run(server.url, code=2).err
    hot = run(server.url, "--num-repeats", "2", "--temperature", "0.9", "--resume", code=2)
    assert "flags.responses_create_params.temperature: was 0.5, now 0.9" in hot.err
    summary = json.loads(run(server.url, *cool, "--resume", "--json").out)
    assert (summary["scored"], summary["scored_before"], summary["expected"], summary["tokens_in"] > 0) == (6, 6, 6, True)
    assert [sitting["status"] for sitting in run.manifest()["sittings"]] == ["finished", "finished"]
    with (run.folder / "rows.jsonl").open("a") as file:
        file.write(next(questions(1)).replace("What", "Which"))
    assert "dataset.1.sha256" in run(server.url, *cool, "--resume", code=2).err
    assert "manifest" not in run._blade("diagnose", run.out, "--quick").err  # which is not confused by it


def test_a_server_that_does_not_answer_stops_the_run_and_a_good_one_finishes_it(
    run: Command, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blade_eval.runner.components._PROBE_WAIT_S", 0.01)
    assert "nobody answers at 127.0.0.1:9" in run(NOBODY, tasks=40, code=errors.EXIT_UNREADABLE).err
    assert not run.out.exists()
    with serving(lambda body: Status(401, "no such key"), keeps=False) as refusing:
        done = run(refusing.url, code=errors.EXIT_UNREADABLE)
    assert (SECRET in done.err, run.manifest()["sittings"][0]["status"]) == (False, "stopped")
    assert "stopped at 0 of 40" in done.err
    assert run(server.url, "--resume").out.count("40 scored") == 1


def test_requests_made_again_and_rollouts_that_were_there_are_told(run: Command) -> None:
    def busy(body: dict[str, object]) -> object:
        return Status(503, "busy") if server.counts["calls"] == 1 else "Answer: B"

    with serving(busy) as server:
        assert "Requests made again: 1" in run(server.url, QUICK).out
        assert run.manifest()["sittings"][-1]["counts"]["requests_again"] == 1
        assert "Resumed: 3 were there, 0 came now" in run(server.url, QUICK, "--resume").out
    with serving(choice(LETTERS), Faults(0.5, ("500",), seed=1), keeps=False) as shaky:
        summary = json.loads(run(shaky.url, "--json", QUICK, "--force").out)
    assert summary["requests_again"] == shaky.counts["fault:500"] > 0
    assert (summary["scored"], summary["retries"]) == (3, 0)


def test_a_row_that_is_refused_is_a_failure_and_no_zero(run: Command) -> None:
    with serving(picky, keeps=False) as model:
        assert "3 expected = 2 scored + 1 failed + 0 unfinished" in run(model.url).out
    failures = run.rows("r_failures.jsonl")
    assert (len(failures), any("reward" in failure for failure in failures)) == (3, False)
    fields = ("_ng_failure_class", "_ng_failure_http_status", "_ng_failure_stage")
    assert {tuple(failure[name] for name in fields) for failure in failures} == {("model_refused", 400, "model")}
    # and a run without one score ends with 4 and keeps its files
    with serving(lambda body: Status(400, "no such parameter"), keeps=False) as model:
        done = run(model.url, "--json", "--force", code=errors.EXIT_UNREADABLE)
        again = run(model.url, "--resume", code=errors.EXIT_UNREADABLE)
    summary, error = json.loads(done.out), json.loads(done.err.splitlines()[-1])
    assert (summary["scored"], summary["failed"], summary["failure_lines"]) == (0, 3, 9)
    message = "none of 3 rollouts could be scored, most often model_refused (9 times)"
    assert (error["slug"], error["error"]) == ("nothing-scored", message)
    assert "3 expected = 0 scored + 3 failed" in again.out
    assert len(run.rows("r_failures.jsonl")) == 9


def test_after_a_resume_the_bar_counts_what_was_given_up_before(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(questions(3)))
    with serving(picky, keeps=False) as model:
        overrides = (f"++policy_base_url={model.url}", "++policy_model_name=m", "++policy_api_key=k")
        wish = Asked(resources_servers=("mcqa",), model_types=("openai_model",), overrides=overrides, environ={})
        for resume in (False, True):
            progress = Progress(is_quiet=True)
            order = benchmark_run.Order(tmp_path / "r.jsonl", wish, rows, resume=resume, retry_wait_s=0.001)
            asyncio.run(benchmark_run.carried_out(order, progress, print))
            assert progress.text().startswith("3 of 3 rollouts (100%)")
            assert "1 given up" in progress.text()


def test_secrets_of_parameters_do_not_reach_the_manifest(run: Command, server: Server) -> None:
    params = "++responses_create_params.metadata={extra_headers: {Authorization: 'Bearer hunter2pass'}, team: blue}"
    for more in ([], ["--resume"]):
        result = run(server.url.replace("//", "//me:hunter2pass@"), params, *more)
        manifest = (run.out / "r_manifest.json").read_text()
        assert "hunter2" not in manifest + result.out + result.err
        assert "blue" in manifest


def test_ctrl_c_finishes_what_is_under_way_and_says_how_to_go_on(run: Command) -> None:
    with serving(choice(LETTERS), delay=0.1, keeps=False) as slow:
        command = [sys.executable, "-m", "blade", *run.words(slow.url, "--concurrency", "2", tasks=40)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            until, path = time.monotonic() + 60, run.out / "r.jsonl"
            while time.monotonic() < until and not (path.exists() and path.stat().st_size):
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == errors.EXIT_INTERRUPTED, err
        assert ("--resume" in err, SECRET in err + out, "unfinished" in out) == (True, False, True)
        assert "40 expected = 40 scored" in run(slow.url, "--concurrency", "30", "--resume").out
    assert sorted(row["_ng_task_index"] for row in run.rows()) == list(range(40))


@pytest.mark.parametrize("text", ["num_repeat=2", "mcqa_simple_agent.responses_api_agents.simple_agent.max_step=3"])
def test_an_override_of_a_key_that_is_not_there_runs_nothing(run: Command, server: Server, text: str) -> None:
    assert f"{text.split('=')[0]} is not in the config" in run(server.url, text, code=2).err
    assert not run.out.exists()
    notices = run(server.url, f"+{text}").err
    assert ("nothing reads num_repeat; did you mean num_repeats?" in notices) is (text == "num_repeat=2")


def test_overrides_within_a_parameter_and_skills_reach_the_row(run: Command, server: Server) -> None:
    skill = run.folder / "skills" / "a"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: alpha\ndescription: d\n---\n")
    metadata = ("+responses_create_params.metadata.team=blue", "++responses_create_params.metadata.n=x")
    run(server.url, f"+skills.path={skill.parent}", *metadata)
    for name in ("r.jsonl", "r_materialized_inputs.jsonl"):
        assert run.rows(name)[0]["skills_ref"]["skills"] == [{"name": "alpha", "description": "d", "version": None}]
    params = run.rows()[0]["responses_create_params"]
    assert params["metadata"] == {"team": "blue", "n": "x"}
    assert "- alpha: d" in params["instructions"]
    refused = run(server.url, "--no-serve", "--skills", str(skill.parent), "--force", code=2)
    assert "not known to use skills" in refused.err


def test_who_judges_itself_is_told_and_another_judge_needs_no_model_type(run: Command, blade: Blade) -> None:
    words = "eval run --resources-server equivalence_llm_judge -q -m x -o j.jsonl --force --model-url".split()
    key = "equivalence_llm_judge.resources_servers.equivalence_llm_judge.judge_model_server.name"
    notice = "the judge of equivalence_llm_judge is the model under test (policy_model); name another with ++"
    with serving(lambda body: "Paris", keeps=False) as model, serving(lambda body: "[[A=B]]", keeps=False) as judge:
        (run.folder / "judge.yaml").write_text(CONFIGS["judge"].replace("URL", judge.url))
        assert f"{notice}{key}=" in blade(*words, model.url).err
        result = blade(*words, model.url, "--config", "judge.yaml", f"{key}=judge_model", QUICK)
    assert (result.code, notice in result.err, judge.counts["answered"] > 0) == (0, False, True), result.err
    assert "no --model-type was given: openai_model" in result.err


def test_rows_prepared_in_part_are_told_and_those_of_a_killed_preparation_refused(run: Command, server: Server) -> None:
    def dataset() -> tuple[Any, Any]:
        (entry,) = run.manifest()["datasets"]
        return entry["name"], entry["complete"]

    assert "rows" not in run(server.url).err
    assert dataset() == (None, None)
    rows = run.folder / "rows.jsonl"
    prepared = {"state": "prepared", "dataset": "quiz", "sha256": sha256(rows.read_bytes()).hexdigest()}
    for record, is_told, expected in (
        ({"complete": True}, False, ("quiz", True)),
        ({"complete": False}, True, ("quiz", False)),
        ({"sha256": "0", "complete": True}, False, ("quiz", None)),
    ):
        work.write_record(rows, prepared | record)
        notices = run(server.url, "--force").err
        assert ("the rows of quiz are not all of the benchmark's" in notices) is is_told
        assert ("is not as it was prepared" in notices) is ("sha256" in record)
        assert dataset() == expected
    work.write_record(rows, {"state": "preparing"})
    refused = run(server.url, "--force", code=errors.EXIT_UNREADABLE)
    assert "run `blade eval prepare` again" in refused.err
    # without them the manifest names the dataset of the configuration
    words = ["eval", "run", "--resources-server", "mcqa", "-q", "-m", "x", "--model-url", server.url]
    key = "mcqa_simple_agent.responses_api_agents.simple_agent.datasets.0.name"
    for more, name in (((QUICK,), "mcqa example"), ((f"{key}=quiz",), "quiz")):
        result = run._blade(*words, "-o", "n.jsonl", "--force", *more)
        assert result.code == 0, result.err
        (entry,) = json.loads((run.folder / "n_manifest.json").read_text())["datasets"]
        assert entry["name"] == name


def test_an_output_that_is_no_file_is_refused_at_once(run: Command) -> None:
    (run.folder / "folder").mkdir()
    os.mkfifo(run.folder / "pipe")
    (run.folder / "b_failures.jsonl").mkdir()
    for path, text in CASES["no_outputs"]:
        # that nobody answers would be an error, too, if it came so far
        assert text in run(NOBODY, "--output", path.format(folder=run.folder), "--force", code=errors.EXIT_USAGE).err
    assert not list((run.folder / "folder").iterdir())
    assert not (run.folder / "new").exists()


def test_the_example_without_a_server_scores_and_a_task_that_it_does_not_know_is_no_zero(run: Command, blade: Blade) -> None:
    (example,) = [line for line in blade("eval", "run", "--help").out.splitlines() if "scripted_model -o" in line]
    result = blade(*example.split()[1:], "--json", "-q")
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    assert summary["scored"] == summary["expected"] > 0
    assert summary["passed"] > 0
    unknown = blade(*"eval run --resources-server mcqa --model-type scripted_model -q --json -o m.jsonl".split())
    summary = json.loads(unknown.out)
    assert (unknown.code, summary["scored"]) == (errors.EXIT_UNREADABLE, 0)
    assert summary["errors"] == {"unknown_task": summary["expected"]}


@pytest.mark.parametrize(("more", "code", "text"), CASES["misuse"])
def test_what_cannot_be_meant_is_said(run: Command, server: Server, more: list[str], code: int, text: str) -> None:
    assert text in run(server.url, *more, code=code).err


@pytest.mark.parametrize("path", ["''", "null", '" "'])
def test_rows_that_the_definition_does_not_name_are_never_replaced(path: str, run: Command, blade: Blade) -> None:
    """A benchmark without its file once ran the five example rows and printed their rate as its own."""
    home = run.folder / "benchmarks" / "hollow"
    home.mkdir(parents=True)
    (run.folder / "example.jsonl").write_text("".join(questions(5)))
    (home / "prepare.py").touch()
    (home / "config.yaml").write_text(CONFIGS["hollow"].replace("PATH", path))
    result = blade("eval", "run", "--benchmark", "hollow", "--model-url", NOBODY, "--model", "m", "-o", "r.jsonl", "--json")
    assert result.code in (errors.EXIT_USAGE, errors.EXIT_NOTHING)
    assert "jsonl_fpath" in result.err, result.err
    assert not (run.folder / "r.jsonl").exists()


def test_kills_and_torn_lines_leave_no_trace_in_the_rows(tmp_path: Path) -> None:
    outcome = killed_runs.trial(3, 1, tmp_path)
    assert outcome.is_whole, outcome
    at_work = [kill for kill in outcome.kills if kill.before < kill.left < outcome.expected]
    assert len(at_work) >= 2  # it was not only killed before it began or after its end
    assert any(kill.torn for kill in outcome.kills)
    manifest = json.loads((tmp_path / "killed_manifest.json").read_text())
    counts = {"expected": outcome.expected, "scored": outcome.expected, "failed": 0, "unfinished": 0}
    assert manifest["counts"] == counts
    *before, last = [sitting["status"] for sitting in manifest["sittings"]]
    assert (last, len(before) <= 3, set(before) <= {"running", "finished"}) == ("finished", True, True)


@pytest.mark.parametrize(("others", "which"), CASES["other_rows"])
def test_the_comparison_sees_what_it_is_there_for(tmp_path: Path, others: list[Any], which: str | None) -> None:
    for name, rows in {"a": [(0, 1), (1, 0)], "b": others}.items():
        put(tmp_path / name, [{"_ng_task_index": task, "_ng_rollout_index": 0, "reward": reward} for task, reward in rows])
    outcome = killed_runs.compared(tmp_path / "a", tmp_path / "b", ())
    assert outcome.is_whole == (which is None)
    assert which is None or getattr(outcome, which) == 1


def test_a_fifth_of_faults_costs_retries_and_no_reward(tmp_path: Path) -> None:
    done = faulty.trial(0.2, 12, 3, tmp_path)
    assert done.rows.is_whole, done
    assert done.calls == 48 + done.faults.total()
    assert len(done.faults) >= 5
