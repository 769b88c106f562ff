"""`blade env`: what it prints, what it complains about, and with which exit code."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from tests.conftest import Blade
from tests.evaluate.gym_tree import write


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "NEMO_GYM_EXTRA_ROOTS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return write(folder)


def test_a_benchmark_alone_is_printed_and_what_is_unset_is_told(blade: Blade) -> None:
    said = blade("env", "resolve", "--benchmark", "addition")
    assert said.code == 0
    config = yaml.safe_load(said.out)
    assert list(config) == ["addition_sums_resources_server", "addition_sums_simple_agent"]
    lines = said.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("unset:") and "--model-type" in line for line in lines)


def test_the_printed_configuration_resolves_to_itself(blade: Blade, there: Path) -> None:
    words = ["--model-url", "http://h", "-m", "m"]
    first = blade("env", "resolve", "--benchmark", "addition", "--model-type", "cloud_model", *words)
    (there / "again.yaml").write_text(first.out)
    assert blade("env", "resolve", "--config", "again.yaml").out == first.out


def test_secrets_are_hidden_in_yaml_json_and_messages(blade: Blade) -> None:
    words = [
        "--model-type",
        "cloud_model",
        "--model-api-key",
        "sk-very-secret-1",
        "--model-url",
        "http://u:pw-secret@h",
    ]
    for flags in ([], ["--json"]):
        said = blade("env", "resolve", *words, *flags, "++x=${nowhere}/sk-very-secret-1")
        assert "secret" not in (said.out + said.err).replace("secrets", "")
        assert "${nowhere}/****" in said.out


@pytest.mark.parametrize("name", ["m", "m😀", 'a"b\\c', "é\x85\t", "1e3"])
def test_a_models_name_is_kept_to_the_letter(blade: Blade, name: str) -> None:
    said = blade(
        "env", "resolve", "--model-type", "cloud_model", "--model-url", "http://h", "-m", name, "--json"
    )
    assert json.loads(said.out)["config"]["policy_model_name"] == name


def test_a_missing_reference_is_an_error_and_the_configuration_is_printed_all_the_same(blade: Blade) -> None:
    key = "addition_sums_simple_agent.responses_api_agents.simple_agent.resources_server.name"
    said = blade("env", "resolve", "--benchmark", "addition", f"++{key}=nobody")
    assert said.code == 1
    assert yaml.safe_load(said.out)
    assert "error:" in said.err
    assert "resources_servers/nobody, which is not defined" in said.err


def test_json_has_the_configuration_its_files_and_its_problems(blade: Blade) -> None:
    told = json.loads(blade("env", "resolve", "--benchmark", "addition", "--json").out)
    assert [server["implementation"] for server in told["servers"]] == ["sums", "simple_agent"]
    assert [Path(path).name for path in told["files"]] == ["sums.yaml", "config.yaml"]
    assert {problem["level"] for problem in told["problems"]} == {"model"}


def test_valid_means_that_it_could_be_started_once_a_model_is_chosen(blade: Blade) -> None:
    said = blade("env", "validate", "--benchmark", "addition")
    assert said.code == 0
    assert said.out.startswith("valid: 2 servers")
    assert "a model is still to be chosen" in said.out
    assert blade("env", "validate", "--benchmark", "addition", "--strict").code == 1
    whole = [
        "--benchmark",
        "addition",
        "--model-type",
        "cloud_model",
        "--model-url",
        "http://h",
        "--model",
        "m",
    ]
    assert blade("env", "validate", *whole, "--strict").code == 0


def test_a_chosen_model_without_its_address_is_not_valid(blade: Blade) -> None:
    said = blade("env", "validate", "--benchmark", "addition", "--model-type", "cloud_model")
    assert said.code == 1
    assert said.out == "not valid: 2 problems\n"
    assert said.err.count("unset:") == 2
    words = ["--benchmark", "addition", "--model-type", "cloud_model", "--model-url", "http://h"]
    assert blade("env", "validate", *words, "-m", "m").out.startswith("valid: 3 servers")


@pytest.mark.parametrize("command", ["resolve", "validate", "start"])
def test_a_key_that_is_not_there_fails_each_command(blade: Blade, command: str) -> None:
    words = ["--benchmark", "addition", "--model-type", "cloud_model", "--model-url", "http://h", "-m", "m"]
    said = blade("env", command, *words, "num_repeat=2")
    assert said.code == (2 if command == "start" else 1)
    assert "num_repeat is not in the config" in said.err
    assert "did you mean num_repeats?" in said.err


def test_what_is_unset_is_not_valid(blade: Blade) -> None:
    said = blade("env", "validate", "--resources-server", "sums/judged")
    assert said.code == 1
    assert "not valid: 1 problem" in said.out
    assert "judged.yaml:8" in said.err
    told = json.loads(blade("env", "validate", "--resources-server", "sums/judged", "--json").out)
    assert told["valid"] is False
    fixed = "++sums.resources_servers.sums.judge_prompt=Is it right"
    assert blade("env", "validate", "--resources-server", "sums/judged", fixed).code == 0


@pytest.mark.parametrize("command", ["resolve", "validate", "start"])
def test_nothing_named_is_an_error(blade: Blade, command: str) -> None:
    said = blade("env", command)
    assert said.code == 2
    assert "no configuration is named" in said.err


def test_start_refuses_what_cannot_run_with_all_reasons(blade: Blade) -> None:
    said = blade("env", "start", "--benchmark", "addition", "--model-type", "cloud_model")
    assert said.code == 2
    assert "policy_base_url" in said.err
    assert "policy_model_name" in said.err
    assert "docs/errors.md#config-incomplete" in said.err


def test_start_without_a_server_is_refused(blade: Blade, there: Path) -> None:
    (there / "empty.yaml").write_text("num_repeats: 4\n")
    said = blade("env", "start", "--config", "empty.yaml")
    assert said.code == 2
    assert "nothing to start" in said.err


def test_a_bad_override_is_refused(blade: Blade) -> None:
    said = blade("env", "resolve", "--benchmark", "addition", "nonsense")
    assert said.code == 2
    assert "'nonsense' is no override" in said.err


class Head(BaseHTTPRequestHandler):
    """A head server as small as can be."""

    answer = b"[]"

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/server_instances" else 404)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def head() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Head)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_status_prints_what_runs(blade: Blade, head: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not asked about this machine
    instances = [{"name": "sums\x1b[31m", "server_type": "resources_servers", "url": "http://127.0.0.1:5"}]
    monkeypatch.setattr(Head, "answer", json.dumps(instances).encode())
    said = blade("env", "status", "--port", head.server_port)
    assert said.code == 0
    assert said.out.split() == ["sums", "resources_servers", "http://127.0.0.1:5"]
    assert json.loads(blade("env", "status", "--port", head.server_port, "--json").out) == instances


@pytest.mark.parametrize("answer", [b"<html>", b"7", b"null"])
def test_something_else_at_the_port_is_no_head_server(
    blade: Blade, head: HTTPServer, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(Head, "answer", answer)
    assert blade("env", "status", "--port", head.server_port).code == 3


def test_status_of_nothing_says_so(blade: Blade, head: HTTPServer) -> None:
    port = head.server_port + 1 if head.server_port < 65000 else head.server_port - 1
    said = blade("env", "status", "--port", port)
    assert said.code == 3
    assert "no head server answers" in said.err
