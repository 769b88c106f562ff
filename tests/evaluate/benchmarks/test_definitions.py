"""The eighteen benchmarks: complete definitions, and rows that their verifiers judge rightly."""

from __future__ import annotations

import ast
import asyncio
import json
import shutil
import sqlite3
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml

from blade_eval import config
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.prepare import work
from blade_eval.runner import inputs
from blade_eval.verifiers import ENVIRONMENTS, environment

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = Path(__file__).parent / "samples"
CATEGORIES = {
    "math & science": {"aime24", "gsm8k", "math-500"},
    "coding": {"humaneval", "mbpp", "bird_sql"},
    "knowledge & reasoning": {"gpqa", "mmlu_pro", "simpleqa"},
    "agentic/tool use": {"workplace_assistant", "xlam_fc", "bfcl"},
    "instruction following & safety": {"ifeval", "xstest", "structured_outputs"},
    "other": {"flores200", "wmt24pp", "librispeech"},
}
ALL = sorted(name for names in CATEGORIES.values() for name in names)
FETCHED = [name for name in ALL if name != "workplace_assistant"]
CRITERIA = [
    "task_fit",
    "verifier_fidelity",
    "model_compatibility",
    "harness_fit",
    "variance",
    "reproducibility",
]
ROWS = {
    "bfcl": 4, "flores200": 15, "wmt24pp": 10, "mbpp": 3, "librispeech": 3, "structured_outputs": 3,
}  # fmt: skip


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (ROOT / "benchmarks" / name / "manifest.yaml").read_text(encoding="utf-8")
    )
    return found


def resolved(name: str, tree: Path = ROOT) -> config.Resolved:
    return config.resolved(config.Asked(benchmarks=(name,), folder=tree, environ={}))


def test_there_are_three_of_each_category() -> None:
    said = Counter(manifest(name)["category"] for name in ALL)
    assert said == dict.fromkeys(CATEGORIES, 3)
    for category, names in CATEGORIES.items():
        assert {name for name in ALL if manifest(name)["category"] == category} == names


@pytest.mark.parametrize("name", ALL)
def test_a_manifest_says_what_one_chooses_by(name: str) -> None:
    told = manifest(name)
    assert told["name"] == name
    assert told["kind"] == "benchmark"
    assert told["licensing"]
    assert list(told["choose"]) == CRITERIA
    assert all(isinstance(text, str) and len(text) >= 9 for text in told["choose"].values())
    assert told["reward"] == {"range": [0, 1], "higher_is_better": True}
    assert told["resources_server"] in ENVIRONMENTS
    assert len(told["schema_source"]) > 20
    for one in told["published"]:
        assert set(one) == {"result", "model", "metric", "source", "conditions"}
        assert isinstance(one["result"], float)
        assert "http" in one["source"] or "model card" in one["source"]


@pytest.mark.parametrize("name", ALL)
def test_a_definition_resolves_to_its_script_prompt_and_licence(name: str) -> None:
    told = manifest(name)
    found = resolved(name)
    (dataset,) = [one for one in found.datasets if one.type == "benchmark"]
    assert dataset.name == name
    verifier = told["resources_server"]
    # an instance of the verifier's own name would take the place of the agent it inherits from
    assert (
        dataset.agent
        == f"{name}_{'benchmark' if verifier == name == 'workplace_assistant' else verifier}_simple_agent"
    )
    assert dataset.license == told["licensing"]
    assert dataset.num_repeats == told["num_repeats"]
    assert dataset.prompt_config == told.get("standard_prompt_config")
    (wanted,) = work.wanted_of(found, ROOT)
    assert wanted.script == ROOT / "benchmarks" / name / "prepare.py"
    assert not found.of("error")


@pytest.mark.parametrize("name", ["xlam_fc", "bfcl"])
def test_calls_that_no_tool_answers_end_with_the_first_turn(name: str) -> None:
    (agent,) = resolved(name).agents
    assert agent.settings["max_steps"] == 1


@pytest.mark.parametrize("name", FETCHED)
def test_a_script_declares_its_files_as_the_manifest_pins_them(name: str) -> None:
    script = module(name)
    assert set(script.SOURCES) == set(manifest(name)["pins"]["files"])
    assert all(url.startswith("https://") for url in script.SOURCES.values())
    assert script.OUTPUT.as_posix() == f"benchmarks/{name}/data/{name}_benchmark.jsonl"
    for file in manifest(name)["pins"]["files"].values():
        assert len(file.get("sha256", "x" * 64)) == 64


@pytest.mark.parametrize("name", FETCHED)
def test_a_readme_shows_how_to_prepare_and_run(name: str) -> None:
    text = (ROOT / "benchmarks" / name / "README.md").read_text(encoding="utf-8")
    for part in (
        f"blade eval prepare --benchmark {name}",
        f"blade eval run --benchmark {name}",
        "## Licence",
    ):
        assert part in text
    if "gated" in manifest(name):
        assert "HF_TOKEN" in text
    for one in manifest(name)["published"]:
        assert str(one["result"]) in text


# ---- from a sample in the public schema to a reward ----


@pytest.mark.parametrize("name", FETCHED)
def test_a_sample_becomes_rows_that_are_judged_rightly(name: str, tmp_path: Path) -> None:
    rows = prepared(name, tmp_path)
    assert len(rows) == ROWS.get(name, 3)
    told = manifest(name)
    for row in rows:
        request = row.get("responses_create_params") or asked(name, row)
        assert request["input"][-1]["role"] == "user"
        shown = str(request["input"][-1]["content"])
        assert all(row[key].split("\n")[0] in shown for key in ("question", "prompt") if key in row)
    judge = verifier(told["resources_server"], tmp_path)
    for row in rows:
        full = {**row, "responses_create_params": row.get("responses_create_params") or asked(name, row)}
        right, wrong = ANSWERS[name](row)
        best, worst = reward(judge, full, right), reward(judge, full, wrong)
        if told["resources_server"] in ("wmt_translation",):
            assert best > 0.95
            assert worst < best - 0.2
        else:
            assert (best, worst) == (1.0, 0.0), row


def test_the_office_is_prepared_whole_and_without_a_network(tmp_path: Path) -> None:
    (one,) = work.wanted_of(resolved("workplace_assistant"), ROOT)
    here = replace(one, output=tmp_path / one.output.relative_to(ROOT), work=tmp_path)
    (made,) = work.prepared([here], work.How(cache=tmp_path / "cache", offline=True), lambda _: None)
    assert made.complete is True
    assert made.sources == []


def prepared(name: str, folder: Path) -> list[Row]:
    """The rows of the sample, prepared in a tree of their own."""
    home = folder / "benchmarks" / name
    home.mkdir(parents=True)
    for file in ("prepare.py", "manifest.yaml"):
        shutil.copy(ROOT / "benchmarks" / name / file, home / file)
    script = home / "prepare.py"
    output = home / "data" / f"{name}_benchmark.jsonl"
    one = work.Wanted(name, script, folder, output, folder, work.manifest_pins(script))
    how = work.How(cache=folder / "cache", given=sample(name, folder), offline=True, partial=True)
    said: list[str] = []
    (made,) = work.prepared([one], how, said.append)
    assert made.complete is not True
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def sample(name: str, folder: Path) -> Path:
    """The sample as the dataset is published: a file, a folder of files, or an archive of ours."""
    given = SAMPLES / name
    if name == "bird_sql":
        return databases(given, folder)
    if name in ("flores200", "librispeech", "structured_outputs"):
        archive = folder / "sample.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            for path in sorted(given.rglob("*")):
                packed.add(path, path.relative_to(given).as_posix(), recursive=False)
        return archive
    return given if given.is_dir() else next(SAMPLES.glob(f"{name}.*"))


def databases(given: Path, folder: Path) -> Path:
    """dev.zip with its questions, and its databases in an archive inside."""
    inner = folder / "dev_databases.zip"
    with zipfile.ZipFile(inner, "w") as packed:
        for text in sorted(given.glob("*.sql")):
            made = folder / f"{text.stem}.sqlite"
            connection = sqlite3.connect(made)
            connection.executescript(text.read_text())
            connection.close()
            packed.write(made, f"dev_databases/{text.stem}/{text.stem}.sqlite")
            packed.writestr(f"__MACOSX/dev_databases/{text.stem}/._{text.stem}.sqlite", b"junk")
    outer = folder / "dev.zip"
    with zipfile.ZipFile(outer, "w") as packed:
        packed.write(given / "dev.json", "dev_20240627/dev.json")
        packed.write(inner, "dev_20240627/dev_databases.zip")
    return outer


def module(name: str) -> Any:
    spec = util.spec_from_file_location(
        f"prepare_{name.replace('-', '_')}", ROOT / "benchmarks" / name / "prepare.py"
    )
    assert spec is not None
    assert spec.loader is not None
    loaded = util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def asked(name: str, row: Row) -> Row:
    """The request that the benchmark's prompt makes of a row."""
    prompt = inputs.load_prompt(ROOT / "benchmarks" / name / "prompt.yaml")
    return {"input": prompt.messages(row)}


def verifier(implementation: str, folder: Path) -> Environment:
    configured = ROOT / "resources_servers" / implementation / "configs" / f"{implementation}.yaml"
    block = yaml.safe_load(configured.read_text(encoding="utf-8"))
    settings = next(
        one["resources_servers"][implementation]
        for one in block.values()
        if implementation in one.get("resources_servers", {})
    )
    return environment(implementation, {**settings, **SETTINGS.get(implementation, lambda _: {})(folder)})


def reward(judge: Environment, row: Row, output: list[Row]) -> float:
    async def ask(request: Row, of: Row) -> Row:
        return response(message(JUDGES[judge.name](request)))

    attempt = Attempt(row, response(output), None, ask if judge.name in JUDGES else None)
    try:
        fields = asyncio.run(judge.verify(attempt))
    except Unmeasured as error:
        if error.kind == "sandbox_unavailable":
            pytest.skip(f"no sandbox here: {error.reason}")
        raise
    return float(fields["reward"])


def response(output: list[Row]) -> Row:
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "sample", "output": output}


def message(text: str) -> list[Row]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}]


def calls(wanted: list[Row]) -> list[Row]:
    return [
        {
            "type": "function_call",
            "id": f"f{number}",
            "call_id": f"c{number}",
            "name": call["name"],
            "arguments": json.dumps(call["arguments"]),
            "status": "completed",
        }
        for number, call in enumerate(wanted)
    ]


def accepted(row: Row) -> list[Row]:
    """One way to call what BFCL accepts: the last of the accepted values, optional ones left out."""
    return [
        {
            "name": call["name"],
            "arguments": {key: values[-1] for key, values in call["arguments"].items() if "" not in values},
        }
        for call in row["accepted_calls"]
    ]


Answers = tuple[list[Row], list[Row]]  # a right and a wrong answer


def texts(right: str, wrong: str) -> Answers:
    return message(right), message(wrong)


def letter(row: Row) -> Answers:
    other = next(letter for one in row["options"] for letter in one if letter != row["expected_answer"])
    return texts(f"So it is clear.\nAnswer: {row['expected_answer']}", f"Answer: {other}")


def code(solutions: dict[str, str]) -> Callable[[Row], Answers]:
    return lambda row: texts(
        f"```python\n{solutions[row['id']]}\n```", "```python\ndef nothing():\n    return None\n```"
    )


def solutions(name: str) -> dict[str, str]:
    found = [json.loads(line) for line in (SAMPLES / f"{name}.jsonl").read_text().splitlines()]
    if name == "mbpp":
        return {f"MBPP/{one['task_id']}": one["code"] for one in found}
    return {one["task_id"]: one["prompt"] + one["canonical_solution"] for one in found}


INSTRUCTED = {
    1: ("Roses grow by the wall.", "Roses, lilies, and moss."),
    2: ("A grey cloud.", "A grey cloud brings a lot of rain."),
    3: ("These are more than five words.", "Too few."),
}
DOCUMENTS = {
    "Github_medium/o1": ('{"name": "Ann", "age": 3}', '{"name": "Ann", "age": -3}'),
    "Github_medium/o2": ('["red"]', "[]"),
    "Github_medium/o3": ('{"name": "word"}', '{"name": "Not This"}'),
}
REFUSED, COMPLIED = (
    "I'm sorry, but I can't help with that.",
    "Sure. First open the settings, then do the rest step by step.",
)
ANSWERS: dict[str, Callable[[Row], Answers]] = {
    "aime24": lambda row: texts(f"\\boxed{{{row['expected_answer']}}}", "\\boxed{999}"),
    "gsm8k": lambda row: texts(f"It is \\boxed{{{row['expected_answer']}}}.", "\\boxed{123456}"),
    "math-500": lambda row: texts(f"\\boxed{{{row['expected_answer']}}}", "\\boxed{17}"),
    "gpqa": letter,
    "mmlu_pro": letter,
    "simpleqa": lambda row: texts(row["expected_answer"], "I believe it was Upper Nowhere"),
    "humaneval": code(solutions("humaneval")),
    "mbpp": code(solutions("mbpp")),
    "bird_sql": lambda row: texts(f"```sql\n{row['gt_sql']}\n```", "```sql\nSELECT 'nothing'\n```"),
    "ifeval": lambda row: texts(*INSTRUCTED[row["id"]]),
    "xstest": lambda row: texts(*((COMPLIED, REFUSED) if row["label"] == "safe" else (REFUSED, COMPLIED))),
    "structured_outputs": lambda row: texts(*DOCUMENTS[row["id"]]),
    "xlam_fc": lambda row: (calls(row["expected_answers"]), calls(row["expected_answers"][:-1])),
    "bfcl": lambda row: (calls(accepted(row)), calls([{**accepted(row)[0], "arguments": {"no": "such"}}])),
    "flores200": lambda row: texts(row["translation"], "zzz qqq"),
    "wmt24pp": lambda row: texts(row["translation"], "zzz qqq"),
    "librispeech": lambda row: texts(row["text"], "something else was said entirely"),
}
SETTINGS: dict[str, Callable[[Path], Row]] = {
    "bird_sql": lambda folder: {"bird_sql_dir": str(folder / "benchmarks/bird_sql/data/dev_databases")}
}


def equivalence_judge(request: Row) -> str:
    """A judge who reads: equal if the reference stands in the candidate."""
    text = json.dumps(request, ensure_ascii=False)
    return "[[A!=B]]" if "Upper Nowhere" in text else "[[A=B]]"


JUDGES: dict[str, Callable[[Row], str]] = {"equivalence_llm_judge": equivalence_judge}


def test_every_script_is_plain_and_reads_only_through_fetched() -> None:
    for name in FETCHED:
        tree = ast.parse((ROOT / "benchmarks" / name / "prepare.py").read_text(encoding="utf-8"))
        imported = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {"urllib.request", "requests", "httpx", "datasets", "socket", "subprocess"}, (
            name
        )
