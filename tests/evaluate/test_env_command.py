"""`blade env`: what it prints, what it complains about, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.case_tables import tables
from tests.conftest import Blade
from tests.evaluate.file_server import Files, serving
from tests.evaluate.rows import gym_tree

CASES = tables(__file__)
ADDITION = ("--benchmark", "addition")
CLOUD = ("--model-type", "cloud_model")
MODEL = (*CLOUD, "--model-url", "http://h", "-m", "m")


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "NEMO_GYM_EXTRA_ROOTS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return gym_tree(tmp_path / "work")


def test_a_benchmark_alone_is_printed_and_what_is_unset_is_told(blade: Blade) -> None:
    result = blade("env", "resolve", *ADDITION)
    assert (result.code, list(yaml.safe_load(result.out))) == (0, ["addition_sums_resources_server", "addition_sums_simple_agent"])
    lines = result.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("unset:") and "--model-type" in line for line in lines)
    document = json.loads(blade("env", "resolve", *ADDITION, "--json").out)
    assert [server["implementation"] for server in document["servers"]] == ["sums", "simple_agent"]
    assert [Path(path).name for path in document["files"]] == ["sums.yaml", "config.yaml"]
    assert {problem["level"] for problem in document["problems"]} == {"model"}


def test_the_printed_configuration_resolves_to_itself_and_a_models_name_is_kept_to_the_letter(blade: Blade, there: Path) -> None:
    for name in ("m😀", 'a"b\\c', "é\x85\t", "1e3"):
        result = blade("env", "resolve", *CLOUD, "--model-url", "http://h", "-m", name, "--json")
        assert json.loads(result.out)["config"]["policy_model_name"] == name
    first = blade("env", "resolve", *ADDITION, *MODEL)
    (there / "again.yaml").write_text(first.out)
    assert blade("env", "resolve", "--config", "again.yaml").out == first.out


def test_secrets_are_hidden_in_yaml_json_and_messages(blade: Blade) -> None:
    words = [*CLOUD, "--model-api-key", "sk-very-secret-1", "--model-url", "http://u:pw-secret@h"]
    for flags in ([], ["--json"]):
        result = blade("env", "resolve", *words, *flags, "++x=${nowhere}/sk-very-secret-1")
        assert "secret" not in (result.out + result.err).replace("secrets", "")
        assert "${nowhere}/****" in result.out


def test_a_missing_reference_is_an_error_and_the_configuration_is_printed_all_the_same(blade: Blade) -> None:
    key = "addition_sums_simple_agent.responses_api_agents.simple_agent.resources_server.name"
    result = blade("env", "resolve", *ADDITION, f"++{key}=nobody")
    assert (result.code, bool(yaml.safe_load(result.out))) == (1, True)
    assert "error:" in result.err
    assert "resources_servers/nobody, which is not defined" in result.err


@pytest.mark.parametrize(("words", "code", "out", "err"), CASES["valid"])
def test_what_is_valid(blade: Blade, words: tuple[str, ...], code: int, out: str, err: str) -> None:
    result = blade("env", "validate", *words)
    assert (result.code, result.out.startswith(out), err in result.err) == (code, True, True), result
    assert "--strict" in words or json.loads(blade("env", "validate", *words, "--json").out)["valid"] is (code == 0)


@pytest.mark.parametrize("command", ["resolve", "validate", "start"])
def test_what_fails_each_command(blade: Blade, command: str) -> None:
    result = blade("env", command, *ADDITION, *MODEL, "num_repeat=2")
    assert result.code == (2 if command == "start" else 1)
    assert "num_repeat is not in the config" in result.err
    assert "did you mean num_repeats?" in result.err
    result = blade("env", command)
    assert (result.code, "no configuration is named" in result.err) == (2, True)


def test_start_refuses_what_cannot_run_with_all_reasons(blade: Blade, there: Path) -> None:
    (there / "empty.yaml").write_text("num_repeats: 4\n")
    for words, parts in (
        (("start", *ADDITION, *CLOUD), ("policy_base_url", "policy_model_name", "docs/errors.md#config-incomplete")),
        (("start", "--config", "empty.yaml"), ("nothing to start",)),
        (("resolve", *ADDITION, "nonsense"), ("'nonsense' is no override",)),
    ):
        result = blade("env", *words)
        assert (result.code, [part for part in parts if part not in result.err]) == (2, [])


def test_status_prints_what_runs(blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not asked about this machine
    instances = [{"name": "sums\x1b[31m", "server_type": "resources_servers", "url": "http://127.0.0.1:5"}]
    head = Files({"/server_instances": json.dumps(instances).encode()})
    status = ("env", "status", "--port")
    with serving(head):
        port = head.url.rpartition(":")[2]
        result = blade(*status, port)
        assert (result.code, result.out.split()) == (0, ["sums", "resources_servers", "http://127.0.0.1:5"])
        assert json.loads(blade(*status, port, "--json").out) == instances
        for answer in (b"<html>", b"7", b"null"):  # something else at the port
            head.bodies["/server_instances"] = answer
            assert blade(*status, port).code == 3
    result = blade(*status, port)
    assert (result.code, "no head server answers" in result.err) == (3, True)
