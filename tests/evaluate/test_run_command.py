"""`blade eval run` as it is typed: files, words, exit codes, resume, secrets, interruption."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from blade import errors
from blade.cli import main
from blade_eval.config import Asked
from blade_eval.prepare import work
from blade_eval.runner import benchmark_run
from blade_eval.runner.progress import Progress
from tests.conftest import Blade
from tests.evaluate.openai_server import Faults, Server, Status, choice, serving
from tools.bench.killed_runs import questions

SECRET = "sk-do-not-write-me-down"
LETTERS = [f"Answer: {letter}" for letter in "ABCD"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(choice(LETTERS), keeps=False) as running:
        yield running


def arguments(folder: Path, url: str, *more: str, tasks: int = 3) -> list[str]:
    rows = folder / "rows.jsonl"
    if not rows.exists():
        rows.write_text("".join(questions(tasks)))
    given = "eval run --resources-server mcqa --model-type openai_model --model m --quiet".split()
    paths = ["--input", str(rows), "--output", str(folder / "out" / "r.jsonl")]
    return [
        sys.executable,
        "-m",
        "blade",
        *given,
        *paths,
        "--model-url",
        url,
        "--model-api-key",
        SECRET,
        *more,
    ]


@dataclass(frozen=True)
class Told:
    stdout: str
    stderr: str


Ran = Callable[..., Told]


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ran:
    """Run the command in this process, which spares the start of Python."""
    monkeypatch.chdir(tmp_path)

    def run(url: str, *more: str, code: int = 0, tasks: int = 3) -> Told:
        given = arguments(tmp_path, url, *more, tasks=tasks)[3:]
        monkeypatch.setattr(sys, "argv", ["blade", *given])
        with pytest.raises(SystemExit) as ended:
            main.main(given)
        told = Told(*capsys.readouterr())
        assert ended.value.code == code, told.stderr
        return told

    return run


def test_a_run_writes_its_files_and_a_second_goes_on_or_is_refused(
    ran: Ran, tmp_path: Path, server: Server
) -> None:
    first = ran(server.url, "--num-repeats", "2", "--temperature", "0.5", "--price-in", "1")
    assert "Finished rollout collection! View results at:" in first.stdout
    assert "Coverage: 6 expected = 6 scored + 0 failed + 0 unfinished" in first.stdout
    assert "Next: blade diagnose" in first.stdout
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} >= {
        "r.jsonl", "r_materialized_inputs.jsonl", "r_failures.jsonl", "r_manifest.json", "r_aggregate_metrics.json",
    }  # fmt: skip
    for path in out.iterdir():
        assert SECRET not in path.read_text(), path
    rows = [json.loads(line) for line in (out / "r.jsonl").read_text().splitlines()]
    assert {row["agent_ref"]["name"] for row in rows} == {"mcqa_simple_agent"}
    assert all(row["responses_create_params"]["temperature"] == 0.5 for row in rows)

    assert "is there already" in ran(server.url, code=errors.EXIT_USAGE).stderr
    other = ran(server.url, "--num-repeats", "2", "--temperature", "0.9", "--resume", code=2)
    assert "flags.responses_create_params.temperature: was 0.5, now 0.9" in other.stderr
    told = ran(server.url, "--num-repeats", "2", "--temperature", "0.5", "--resume", "--json")
    summary = json.loads(told.stdout)
    assert (summary["scored"], summary["scored_before"], summary["expected"]) == (6, 6, 6)
    assert summary["tokens_in"] > 0
    manifest = json.loads((out / "r_manifest.json").read_text())
    assert [sitting["status"] for sitting in manifest["sittings"]] == ["finished", "finished"]
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write(next(questions(1)).replace("What", "Which"))
    changed = ran(server.url, "--num-repeats", "2", "--temperature", "0.5", "--resume", code=2)
    assert "dataset.1.sha256" in changed.stderr


def test_diagnose_reads_the_run_and_is_not_confused_by_the_manifest(
    ran: Ran, tmp_path: Path, server: Server
) -> None:
    ran(server.url, "--num-repeats", "2")
    command = [sys.executable, "-m", "blade", "diagnose", str(tmp_path / "out"), "--quick"]
    environment = {**os.environ, "BLADE_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "manifest" not in done.stderr


def test_a_dead_address_is_told_before_anything_is_burnt(ran: Ran, tmp_path: Path) -> None:
    done = ran("http://127.0.0.1:9/v1", code=errors.EXIT_UNREADABLE)
    assert "nobody answers at 127.0.0.1:9" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_server_that_refuses_every_call_stops_the_run_and_a_good_one_finishes_it(
    ran: Ran, tmp_path: Path, server: Server
) -> None:
    with serving(lambda body: Status(401, "no such key"), keeps=False) as refusing:
        done = ran(refusing.url, tasks=40, code=errors.EXIT_UNREADABLE)
    assert "stopped at 0 of 40" in done.stderr
    assert SECRET not in done.stderr
    manifest = json.loads((tmp_path / "out" / "r_manifest.json").read_text())
    assert manifest["sittings"][0]["status"] == "stopped"
    assert ran(server.url, "--resume").stdout.count("40 scored") == 1


def test_requests_made_again_and_rollouts_that_were_there_are_told(ran: Ran, tmp_path: Path) -> None:
    def busy(body: dict[str, object]) -> object:
        return Status(503, "busy") if server.counts["calls"] == 1 else "Answer: B"

    with serving(busy) as server:
        assert "Requests made again: 1" in ran(server.url).stdout
        sitting = json.loads((tmp_path / "out" / "r_manifest.json").read_text())["sittings"][-1]
        assert sitting["counts"]["requests_again"] == 1
        assert "Resumed: 3 were there, 0 came now" in ran(server.url, "--resume").stdout


def test_a_row_that_is_refused_is_a_failure_and_no_zero(ran: Ran, tmp_path: Path) -> None:
    def policy(body: dict[str, object]) -> object:
        return Status(400, "too long") if "What is 1 +" in json.dumps(body) else "Answer: B"

    with serving(policy, keeps=False) as picky:
        done = ran(picky.url)
    assert "3 expected = 2 scored + 1 failed + 0 unfinished" in done.stdout
    lines = (tmp_path / "out" / "r_failures.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for failure in map(json.loads, lines):
        assert failure["_ng_failure_class"] == "model_refused"
        assert failure["_ng_failure_http_status"] == 400
        assert failure["_ng_failure_stage"] == "model"
        assert "reward" not in failure


def test_a_run_without_one_score_ends_with_4_and_keeps_its_files(ran: Ran, tmp_path: Path) -> None:
    with serving(lambda body: Status(400, "no such parameter"), keeps=False) as picky:
        done = ran(picky.url, "--json", code=errors.EXIT_UNREADABLE)
        again = ran(picky.url, "--resume", code=errors.EXIT_UNREADABLE)
    told = json.loads(done.stdout)
    assert (told["scored"], told["failed"], told["failure_lines"]) == (0, 3, 9)
    error = json.loads(done.stderr.splitlines()[-1])
    assert error["slug"] == "nothing-scored"
    assert error["error"] == "none of 3 rollouts could be scored, most often model_refused (9 times)"
    assert "3 expected = 0 scored + 3 failed" in again.stdout
    assert len((tmp_path / "out" / "r_failures.jsonl").read_text().splitlines()) == 9


def test_after_a_resume_the_bar_counts_what_was_given_up_before(tmp_path: Path) -> None:
    def policy(body: dict[str, object]) -> object:
        return Status(400, "too long") if "What is 1 +" in json.dumps(body) else "Answer: B"

    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(questions(3)))
    texts = []
    with serving(policy, keeps=False) as picky:
        given = [f"++policy_base_url={picky.url}", "++policy_model_name=m", "++policy_api_key=k"]
        asked = Asked(
            resources_servers=("mcqa",), model_types=("openai_model",), overrides=tuple(given), environ={}
        )
        for resume in (False, True):
            progress = Progress(is_quiet=True)
            wish = benchmark_run.Order(tmp_path / "r.jsonl", asked, rows, resume=resume, retry_wait_s=0.001)
            asyncio.run(benchmark_run.carried_out(wish, progress, print))
            texts.append(progress.text())
    assert all(text.startswith("3 of 3 rollouts (100%)") and "1 given up" in text for text in texts), texts


def test_requests_that_were_made_again_are_counted(ran: Ran, server: Server) -> None:
    with serving(choice(LETTERS), Faults(0.5, ("500",), seed=1), keeps=False) as shaky:
        wait = "++policy_model.responses_api_models.openai_model.first_wait=0.001"
        told = json.loads(ran(shaky.url, "--json", wait, tasks=20).stdout)
    assert told["requests_again"] == shaky.counts["fault:500"] > 0
    assert (told["scored"], told["retries"]) == (20, 0)
    assert json.loads(ran(server.url, "--json", "--force").stdout)["requests_again"] == 0


def test_secrets_of_parameters_do_not_reach_the_manifest(ran: Ran, tmp_path: Path, server: Server) -> None:
    given = "++responses_create_params.metadata={extra_headers: {Authorization: 'Bearer hunter2pass'}, team: blue}"
    for more in ([], ["--resume"]):
        told = ran(server.url.replace("//", "//me:hunter2pass@"), given, *more)
        manifest = (tmp_path / "out" / "r_manifest.json").read_text()
        assert "hunter2" not in manifest + told.stdout + told.stderr
        assert "blue" in manifest


def test_ctrl_c_finishes_what_is_under_way_and_says_how_to_go_on(ran: Ran, tmp_path: Path) -> None:
    with serving(choice(LETTERS), delay=0.1, keeps=False) as slow:
        command = arguments(tmp_path, slow.url, "--concurrency", "2", tasks=60)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        ) as process:
            until = time.monotonic() + 60
            path = tmp_path / "out" / "r.jsonl"
            while time.monotonic() < until and not (path.exists() and path.stat().st_size):
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == errors.EXIT_INTERRUPTED, err
        assert "--resume" in err
        assert SECRET not in err + out
        assert "unfinished" in out
        done = ran(slow.url, "--concurrency", "30", "--resume")
    assert "60 expected = 60 scored" in done.stdout
    keys = [json.loads(line)["_ng_task_index"] for line in path.read_text().splitlines()]
    assert sorted(keys) == list(range(60))


MISTYPED = "mcqa_simple_agent.responses_api_agents.simple_agent.max_step=3"


@pytest.mark.parametrize("given", ["num_repeat=2", MISTYPED])
def test_an_override_of_a_key_that_is_not_there_runs_nothing(
    ran: Ran, tmp_path: Path, server: Server, given: str
) -> None:
    refused = ran(server.url, given, code=errors.EXIT_USAGE)
    assert f"{given.split('=')[0]} is not in the config" in refused.stderr
    assert not (tmp_path / "out").exists()
    told = ran(server.url, f"+{given}").stderr
    assert ("nothing reads num_repeat; did you mean num_repeats?" in told) is (given != MISTYPED)


def test_overrides_within_a_parameter_reach_it(ran: Ran, tmp_path: Path, server: Server) -> None:
    ran(server.url, "+responses_create_params.metadata.team=blue", "++responses_create_params.metadata.n=x")
    row = json.loads((tmp_path / "out" / "r.jsonl").read_text().splitlines()[0])
    assert row["responses_create_params"]["metadata"] == {"team": "blue", "n": "x"}


JUDGE = """judge_model:
  responses_api_models:
    openai_model: {entrypoint: app.py, openai_base_url: URL, openai_api_key: k, openai_model: judge}
"""


def test_who_judges_itself_is_told_and_another_judge_needs_no_model_type(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = "eval run --resources-server equivalence_llm_judge -q -m x -o j.jsonl --force --model-url".split()
    key = "equivalence_llm_judge.resources_servers.equivalence_llm_judge.judge_model_server.name"
    told = "the judge of equivalence_llm_judge is the model under test (policy_model); name another with ++"
    with (
        serving(lambda body: "Paris", keeps=False) as model,
        serving(lambda body: "[[A=B]]", keeps=False) as judge,
    ):
        (tmp_path / "judge.yaml").write_text(JUDGE.replace("URL", judge.url))
        assert f"{told}{key}=" in blade(*given, model.url).err
        said = blade(*given, model.url, "--config", "judge.yaml", f"{key}=judge_model")
        assert said.code == 0, said.err
        assert told not in said.err
        assert "no --model-type was given: openai_model" in said.err
        assert judge.counts["answered"] > 0


def test_a_setting_of_the_default_model_does_not_stand_in_for_it(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.chdir(tmp_path)
    wait = "++policy_model.responses_api_models.openai_model.first_wait=0.001"
    given = ["eval", "run", "--resources-server", "mcqa", "-q", "-m", "x", "-o", "d.jsonl", "--model-url"]
    said = blade(*given, server.url, wait)
    assert said.code == 0, said.err


def test_rows_prepared_in_part_are_told_and_those_of_a_killed_preparation_refused(
    ran: Ran, tmp_path: Path, server: Server
) -> None:
    def manifest() -> dict[str, Any]:
        told = json.loads((tmp_path / "out" / "r_manifest.json").read_text())
        (entry,) = told["datasets"]
        return {key: entry[key] for key in ("name", "complete")}

    assert "rows" not in ran(server.url).stderr
    assert manifest() == {"name": None, "complete": None}
    rows = tmp_path / "rows.jsonl"
    prepared = {"state": "prepared", "dataset": "quiz", "sha256": sha256(rows.read_bytes()).hexdigest()}
    for complete in (True, False):
        work.write_record(rows, {**prepared, "complete": complete})
        told = ran(server.url, "--force").stderr
        assert ("the rows of quiz are not all of the benchmark's" in told) is not complete
        assert manifest() == {"name": "quiz", "complete": complete}
    work.write_record(rows, {**prepared, "sha256": "0", "complete": True})
    assert "is not as it was prepared" in ran(server.url, "--force").stderr
    assert manifest()["complete"] is None
    work.write_record(rows, {"state": "preparing"})
    refused = ran(server.url, "--force", code=errors.EXIT_UNREADABLE)
    assert "run `blade eval prepare` again" in refused.stderr


def test_the_manifest_names_the_dataset(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["eval", "run", "--resources-server", "mcqa", "-q", "-m", "x", "--model-url", server.url]
    key = "mcqa_simple_agent.responses_api_agents.simple_agent.datasets.0.name"
    for more, name in (((), "mcqa example"), ((f"{key}=quiz",), "quiz")):
        said = blade(*given, "-o", "n.jsonl", "--force", *more)
        assert said.code == 0, said.err
        (entry,) = json.loads((tmp_path / "n_manifest.json").read_text())["datasets"]
        assert entry["name"] == name


def test_an_output_that_is_no_file_is_refused_at_once(ran: Ran, tmp_path: Path) -> None:
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    (tmp_path / "b_failures.jsonl").mkdir()
    nobody = "http://127.0.0.1:9/v1"  # which would be an error, too, if it came so far
    for path, says in (
        (folder, "folder is a folder"),
        (f"{tmp_path}/new/", "new/ is a folder"),
        (tmp_path / "b.jsonl", "b_failures.jsonl is a folder"),
        (pipe, "pipe is a device or a pipe"),
        ("/dev/full", "/dev/full is a device or a pipe"),
        ("/dev/stdout", "/dev/stdout is a device or a pipe"),
    ):
        refused = ran(nobody, "--output", str(path), "--force", code=errors.EXIT_USAGE)
        assert says in refused.stderr
    assert not list(folder.iterdir())
    assert not (tmp_path / "new").exists()


def test_the_example_without_a_server_scores_and_a_task_that_it_does_not_know_is_no_zero(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = [
        line for line in blade("eval", "run", "--help").out.splitlines() if "scripted_model -o" in line
    ]
    said = blade(*example.split()[1:], "--json", "-q")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["scored"] == told["expected"] > 0
    assert told["passed"] > 0
    given = "eval run --resources-server mcqa --model-type scripted_model -q --json -o m.jsonl".split()
    unknown = blade(*given)
    assert unknown.code == errors.EXIT_UNREADABLE
    told = json.loads(unknown.out)
    assert told["scored"] == 0
    assert told["errors"] == {"unknown_task": told["expected"]}


def test_skills_are_stamped_and_refused_where_nobody_could_read_them(
    ran: Ran, tmp_path: Path, server: Server
) -> None:
    skill = tmp_path / "skills" / "a"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: alpha\ndescription: d\n---\n")
    ran(server.url, f"+skills.path={tmp_path / 'skills'}")
    for name in ("r.jsonl", "r_materialized_inputs.jsonl"):
        row = json.loads((tmp_path / "out" / name).read_text().splitlines()[0])
        assert row["skills_ref"]["skills"] == [{"name": "alpha", "description": "d", "version": None}]
    row = json.loads((tmp_path / "out" / "r.jsonl").read_text().splitlines()[0])
    assert "- alpha: d" in row["responses_create_params"]["instructions"]
    refused = ran(server.url, "--no-serve", "--skills", str(tmp_path / "skills"), "--force", code=2)
    assert "not known to use skills" in refused.stderr


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (["--shard", "3/2"], errors.EXIT_USAGE, "--shard cannot be 3/2"),
        (["--num-repeats", "0"], errors.EXIT_USAGE, "--num-repeats cannot be 0"),
        (["--agent", "nobody"], errors.EXIT_USAGE, "there is no agent 'nobody'"),
        (["--prompt-config", "rows.jsonl"], errors.EXIT_UNREADABLE, "prompt"),
        (["--input", "none.jsonl"], errors.EXIT_USAGE, "none.jsonl was not found"),
        (["nonsense"], errors.EXIT_USAGE, "is no override"),
    ],
)
def test_what_cannot_be_meant_is_said(
    ran: Ran, server: Server, more: list[str], code: int, says: str
) -> None:
    assert says in ran(server.url, *more, code=code).stderr


@pytest.mark.parametrize("path", ["''", "null", '" "'])
def test_rows_that_the_definition_does_not_name_are_never_replaced(
    path: str, blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A benchmark without its file once ran the five example rows and printed their rate as its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.jsonl").write_text("".join(questions(5)))
    (tmp_path / "benchmarks" / "hollow").mkdir(parents=True)
    (tmp_path / "benchmarks" / "hollow" / "prepare.py").touch()
    (tmp_path / "benchmarks" / "hollow" / "config.yaml").write_text(f"""\
config_paths: [resources_servers/mcqa/configs/mcqa.yaml]
hollow_agent:
  _inherit_from: mcqa_simple_agent
  responses_api_agents:
    simple_agent:
      datasets:
        - {{name: hollow, type: benchmark, jsonl_fpath: {path}, prepare_script: benchmarks/hollow/prepare.py}}
        - {{name: example, type: example, jsonl_fpath: example.jsonl}}
""")
    given = ["--benchmark", "hollow", "--model-url", "http://127.0.0.1:9/v1", "--model", "m", "-o", "r.jsonl"]
    said = blade("eval", "run", *given, "--json")
    assert said.code in (errors.EXIT_USAGE, errors.EXIT_NOTHING)
    assert "jsonl_fpath" in said.err, said.err
    assert not (tmp_path / "r.jsonl").exists()
