"""The eighteen benchmarks: complete definitions, rows that their verifiers judge rightly; and the one that docs/benchmarks.md adds."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shlex
import shutil
import sqlite3
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
import yaml

from blade_eval import config
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.prepare import work
from blade_eval.runner import inputs
from blade_eval.verifiers import ENVIRONMENTS, environment
from tests.conftest import Blade
from tests.evaluate.rows import rows_of
from tests.evaluate.test_prepare import here
from tests.evaluate.verifiers.attempts import called, message, responded
from tools.model_server import Body, serving, text_of

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = Path(__file__).parent / "samples"
EXPECTED = yaml.safe_load((SAMPLES / "expected.yaml").read_text(encoding="utf-8"))
CATEGORIES: dict[str, list[str]] = EXPECTED["categories"]
ALL = sorted(name for names in CATEGORIES.values() for name in names)
FETCHED = [name for name in ALL if name != "workplace_assistant"]
CRITERIA = ["task_fit", "verifier_fidelity", "model_compatibility", "harness_fit", "variance", "reproducibility"]
ROWS = {"bfcl": 4, "flores200": 15, "wmt24pp": 10}  # of the sample; else 3


@cache
def manifest(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "benchmarks" / name / "manifest.yaml").read_text(encoding="utf-8"))
    return document


def resolved(name: str, tree: Path = ROOT) -> config.Resolved:
    return config.resolved(config.Asked(benchmarks=(name,), folder=tree, environ={}))


@pytest.mark.parametrize("name", ALL)
def test_a_definition_says_what_one_chooses_by_and_resolves(name: str) -> None:
    document = manifest(name)
    assert (document["name"], document["kind"], bool(document["licensing"])) == (name, "benchmark", True)
    assert name in CATEGORIES[document["category"]]
    assert list(document["choose"]) == CRITERIA
    assert all(isinstance(text, str) and len(text) >= 9 for text in document["choose"].values())
    assert document["reward"] == {"range": [0, 1], "higher_is_better": True}
    assert len(document["schema_source"]) > 20
    for result in document["published"]:
        assert set(result) == {"result", "model", "metric", "source", "conditions"}
        assert isinstance(result["result"], float)
        assert "http" in result["source"] or "model card" in result["source"]
    verifier = document["resources_server"]
    assert verifier in ENVIRONMENTS
    config_ = resolved(name)
    (dataset,) = [dataset for dataset in config_.datasets if dataset.type == "benchmark"]
    # an instance of the verifier's own name would take the place of the agent it inherits from
    owner = "benchmark" if verifier == name == "workplace_assistant" else verifier
    assert (dataset.name, dataset.agent) == (name, f"{name}_{owner}_simple_agent")
    assert (dataset.license, dataset.num_repeats) == (document["licensing"], document["num_repeats"])
    assert dataset.prompt_config == document.get("standard_prompt_config")
    (wanted,) = work.wanted_of(config_, ROOT)
    assert wanted.script == ROOT / "benchmarks" / name / "prepare.py"
    assert not config_.of("error")
    if name in ("xlam_fc", "bfcl"):  # calls that no tool answers end with the first turn
        assert config_.agents[0].settings["max_steps"] == 1


@pytest.mark.parametrize("name", FETCHED)
def test_a_script_declares_its_files_as_pinned_and_a_readme_shows_how_to_run(name: str) -> None:
    script, document = module(name), manifest(name)
    nodes = list(ast.walk(ast.parse((ROOT / "benchmarks" / name / "prepare.py").read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not imported & {"urllib.request", "requests", "httpx", "datasets", "socket", "subprocess"}  # it reads only through `fetched`
    assert set(script.SOURCES) == set(document["pins"]["files"])
    assert all(url.startswith("https://") for url in script.SOURCES.values())
    assert script.OUTPUT.as_posix() == f"benchmarks/{name}/data/{name}_benchmark.jsonl"
    assert all(len(file.get("sha256", "x" * 64)) == 64 for file in document["pins"]["files"].values())
    text = (ROOT / "benchmarks" / name / "README.md").read_text(encoding="utf-8")
    parts = [f"blade eval {command} --benchmark {name}" for command in ("prepare", "run")]
    parts += ["## Licence", *(["HF_TOKEN"] if "gated" in document else [])]
    assert [part for part in (*parts, *(str(result["result"]) for result in document["published"])) if part not in text] == []


@pytest.mark.parametrize("name", FETCHED)
def test_a_sample_becomes_rows_that_are_judged_rightly(name: str, tmp_path: Path) -> None:
    rows, implementation = prepared(name, tmp_path), manifest(name)["resources_server"]
    assert len(rows) == ROWS.get(name, 3)
    judge = verifier(implementation, tmp_path)
    prompt = ROOT / "benchmarks" / name / "prompt.yaml"
    for row in rows:
        request = row.get("responses_create_params") or {"input": inputs.load_prompt(prompt).messages(row)}
        assert request["input"][-1]["role"] == "user"
        shown = str(request["input"][-1]["content"])
        assert all(row[key].split("\n")[0] in shown for key in ("question", "prompt") if key in row)
        best, worst = (reward(judge, {**row, "responses_create_params": request}, output) for output in ANSWERS[name](row))
        if implementation == "wmt_translation":
            assert best > max(0.95, worst + 0.2)
        else:
            assert (best, worst) == (1.0, 0.0), row


def test_the_office_is_prepared_whole_and_without_a_network(tmp_path: Path) -> None:
    (wish,) = work.wanted_of(resolved("workplace_assistant"), ROOT)
    local = replace(wish, output=tmp_path / wish.output.relative_to(ROOT), work=tmp_path)
    (result,) = work.prepared([local], work.How(cache=tmp_path / "cache", offline=True), lambda _: None)
    assert (result.complete, result.sources) == (True, [])


def prepared(name: str, folder: Path) -> list[Row]:
    """The rows of the sample, prepared in a tree of their own."""
    home = folder / "benchmarks" / name
    home.mkdir(parents=True)
    for file in ("prepare.py", "manifest.yaml"):
        shutil.copy(ROOT / "benchmarks" / name / file, home / file)
    script = home / "prepare.py"
    output = home / "data" / f"{name}_benchmark.jsonl"
    wish = work.Wanted(name, script, folder, output, folder, work.manifest_pins(script))
    how = work.How(cache=folder / "cache", given=sample(name, folder), offline=True, partial=True)
    with patch.object(work, "ran", here):
        (result,) = work.prepared([wish], how, lambda _: None)
    assert result.complete is not True
    return rows_of(output)


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
    path = ROOT / "benchmarks" / name / "prepare.py"
    spec = util.spec_from_file_location(f"prepare_{name.replace('-', '_')}", path)
    script = util.module_from_spec(cast("Any", spec))
    cast("Any", spec).loader.exec_module(script)
    return script


def verifier(implementation: str, folder: Path) -> Environment:
    path = ROOT / "resources_servers" / implementation / "configs" / f"{implementation}.yaml"
    blocks = [block.get("resources_servers", {}) for block in yaml.safe_load(path.read_text(encoding="utf-8")).values()]
    (settings, *_) = (block[implementation] for block in blocks if implementation in block)
    own = {"bird_sql_dir": str(folder / "benchmarks/bird_sql/data/dev_databases")} if implementation == "bird_sql" else {}
    return environment(implementation, {**settings, **own})


async def reader(request: Row, of: Row) -> Row:
    """A judge who reads."""
    return responded("[[A!=B]]" if "Upper Nowhere" in json.dumps(request) else "[[A=B]]")


def reward(judge: Environment, row: Row, output: list[Row]) -> float:
    attempt = Attempt(row, responded(*output), None, reader if judge.name == "equivalence_llm_judge" else None)
    try:
        return float(asyncio.run(judge.verify(attempt))["reward"])
    except Unmeasured as error:
        if error.kind == "sandbox_unavailable":
            pytest.skip(f"no sandbox here: {error.reason}")
        raise


def letter(row: Row) -> Answers:
    other = next(letter for option in row["options"] for letter in option if letter != row["expected_answer"])
    return texts(f"So it is clear.\nAnswer: {row['expected_answer']}", f"Answer: {other}")


def calls(wanted: list[Row]) -> list[Row]:
    return [called(call["name"], call["arguments"]) for call in wanted]


def accepted(row: Row) -> list[Row]:
    """One way to call what BFCL accepts: the last of the accepted values, optional ones left out."""
    arguments = [{key: values[-1] for key, values in call["arguments"].items() if "" not in values} for call in row["accepted_calls"]]
    return [{"name": call["name"], "arguments": given} for call, given in zip(row["accepted_calls"], arguments, strict=True)]


Answers = tuple[list[Row], list[Row]]  # a right and a wrong answer


def texts(right: str, wrong: str) -> Answers:
    return [message(right)], [message(wrong)]


def code(solutions: dict[str, str]) -> Callable[[Row], Answers]:
    nothing = "```python\ndef nothing():\n    return None\n```"
    return lambda row: texts(f"```python\n{solutions[row['id']]}\n```", nothing)


def solutions(name: str) -> dict[str, str]:
    tasks = rows_of(SAMPLES / f"{name}.jsonl")
    if name == "mbpp":
        return {f"MBPP/{task['task_id']}": task["code"] for task in tasks}
    return {task["task_id"]: task["prompt"] + task["canonical_solution"] for task in tasks}


REFUSED, COMPLIED = "I'm sorry, but I can't help with that.", "Sure. First open the settings, then do the rest step by step."
ANSWERS: dict[str, Callable[[Row], Answers]] = {
    "aime24": lambda row: texts(f"\\boxed{{{row['expected_answer']}}}", "\\boxed{999}"),
    "gsm8k": lambda row: texts(f"It is \\boxed{{{row['expected_answer']}}}.", "\\boxed{123456}"),
    "math-500": lambda row: texts(f"\\boxed{{{row['expected_answer']}}}", "\\boxed{17}"), "gpqa": letter, "mmlu_pro": letter,
    "simpleqa": lambda row: texts(row["expected_answer"], "I believe it was Upper Nowhere"),
    "humaneval": code(solutions("humaneval")), "mbpp": code(solutions("mbpp")),
    "bird_sql": lambda row: texts(f"```sql\n{row['gt_sql']}\n```", "```sql\nSELECT 'nothing'\n```"),
    "ifeval": lambda row: texts(*EXPECTED["instructed"][row["id"]]),
    "xstest": lambda row: texts(*((COMPLIED, REFUSED) if row["label"] == "safe" else (REFUSED, COMPLIED))),
    "structured_outputs": lambda row: texts(*EXPECTED["documents"][row["id"]]),
    "xlam_fc": lambda row: (calls(row["expected_answers"]), calls(row["expected_answers"][:-1])),
    "bfcl": lambda row: (calls(accepted(row)), calls([{**accepted(row)[0], "arguments": {"no": "such"}}])),
    "flores200": lambda row: texts(row["translation"], "zzz qqq"), "wmt24pp": lambda row: texts(row["translation"], "zzz qqq"),
    "librispeech": lambda row: texts(row["text"], "something else was said entirely"),
}



# --- the one that the page shows how to add: its files and commands, run as they stand there ---


def test_the_example_of_the_page_is_prepared_asked_judged_and_diagnosed(tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split("## Adding one")[1]
    blocks = re.finditer(r"^```(?:csv|yaml|python)\n(.*?)^```", section, re.M | re.S)
    # each block is that of the path which begins the paragraph before it
    shown = {section[: block.start()].split("\n\n")[-2].split("`")[1]: block[1] for block in blocks}
    assert sorted(shown) == [*(f"benchmarks/quiz/{name}" for name in ("config.yaml", "manifest.yaml", "prepare.py", "prompt.yaml")), "quiz.csv"]
    for name, text in shown.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def answer(body: Body) -> str:
        """A model that reads the options as they are lettered in the prompt."""
        words = text_of(body["input"][-1]["content"]) if isinstance(body["input"], list) else body["input"]
        known = {"fruit": "apple", "barks": "cat", "7 x 6": "42"}  # one of the three is wrong
        text = next(text for topic, text in known.items() if topic in words)
        letter = re.search(rf"^([A-J])\) {text}$", words, re.M)
        return f"Answer: {letter[1]}" if letter else "I see no options."

    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^```bash\n(.*?)^```", section, re.M | re.S)[-1].splitlines()
    assert [line.split()[1] for line in commands] == ["list", "env", "eval", "eval", "diagnose"]
    answers = {}
    with serving(answer) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "m", "BLADE_CACHE_DIR": str(tmp_path / "cache")}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        for words in map(shlex.split, commands):
            done = answers[" ".join(words[1:3])] = blade(*words[1:])
            assert done.code == 0, done.err
    assert "Three questions" in answers["list benchmarks"].out
    assert answers["eval prepare"].out.startswith("quiz: 3 rows, prepared: ")
    assert "notice" not in answers["eval prepare"].err
    rewards = Counter((row["question"], row["reward"]) for row in rows_of(tmp_path / "results" / "quiz_rollouts.jsonl"))
    assert rewards == {("Which of these is a fruit?", 1.0): 4, ("Which of these barks?", 0.0): 4, ("How much is 7 x 6?", 1.0): 4}
    assert "66.7%" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
