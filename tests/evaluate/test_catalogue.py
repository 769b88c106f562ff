"""The catalogue: what is found under the roots, what is said of it, and what a search returns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from blade_eval.catalogue import CATEGORIES, CRITERIA, Entry, category_of, components, entries, ranked
from blade_eval.config import Asked, installed, resolved
from tests.case_tables import tables
from tests.conftest import Blade
from tests.evaluate.rows import gym_tree

CASES = tables(__file__)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return gym_tree(tmp_path / "checkout")


@pytest.fixture
def there(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(checkout)
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)
    return checkout


def entry_of(name: str, *roots: Path) -> Entry:
    (entry,) = (entry for entry in entries(roots) if entry.name == name)
    return entry


def benchmark(name: str, domain: str = "other", description: str = "") -> Entry:
    return Entry(name, "benchmark", Path("x"), domain=domain, description=description, category=category_of(domain, None))


def names(query: str, *among: Entry) -> list[str]:
    return [entry.name for entry in ranked(query, among).found]


def test_the_catalogue_is_environments_benchmarks_and_runnable_resources_servers(checkout: Path) -> None:
    assert [(entry.name, entry.kind) for entry in entries([checkout])] == [
        ("addition", "benchmark"), ("answer-judge", "benchmark"), ("office", "environment"),
        ("resources_servers/sums", "environment"), ("swebench/verified/opencode", "benchmark"),
    ]  # addition/harness names no dataset of its own: the incumbent goes by the text, too  # fmt: skip
    (checkout / "benchmarks/sums").mkdir()
    (checkout / "benchmarks/sums/config.yaml").write_text((checkout / "benchmarks/answer-judge/config.yaml").read_text())
    assert {"sums", "resources_servers/sums"} <= {entry.name for entry in entries([checkout])}


def test_an_entry_says_what_its_definition_says_after_inheriting(checkout: Path, tmp_path: Path) -> None:
    entry = entry_of("addition", checkout)
    assert (entry.agent, entry.verifier, entry.num_repeats, entry.license) == ("simple_agent", "sums", 32, "MIT")
    assert (entry.domain, entry.category, entry.status) == ("math", "math & science", "experimental")
    assert entry.description == "Sums of two numbers"  # the manifest's, not the resources server's
    judge = entry_of("answer-judge", checkout)  # without a manifest the verifier describes
    assert (judge.status, judge.description, judge.num_repeats) == ("no-manifest", "Is this proof right", 1)
    other = gym_tree(tmp_path / "other", **{"benchmarks/addition/manifest.yaml": "description: another\n"})
    assert entry_of("addition", other, checkout).description == "another"  # the first root with a name wins


def test_the_json_has_the_incumbents_keys_first_with_nulls(checkout: Path) -> None:
    documents = {entry.name: entry.as_json() for entry in entries([checkout])}
    keys = "name kind status domain description version integration_profile modality licensing lifecycle"
    keys += " category agent verifier num_repeats license choose"
    assert all(list(document) == keys.split() for document in documents.values())
    addition = documents["addition"]
    assert [addition[key] for key in ("version", "lifecycle", "integration_profile")] == ["0.1.0", "active", None]
    assert addition["choose"] == {"task_fit": "arithmetic, nothing else", "variance": "±2 points at 32 repeats"}


def test_a_broken_definition_is_listed_and_says_why(checkout: Path) -> None:
    config, manifest = (checkout / "benchmarks/addition" / name for name in ("config.yaml", "manifest.yaml"))
    manifest.write_text("domain: math\n")
    config.write_text("a: [\ntype: benchmark\n")
    assert entry_of("addition", checkout).domain == "math"
    assert "not valid YAML" in str(entry_of("addition", checkout).trouble)
    for text in ("a: [1,\n", "addition_agent: {}\n", "datasets: [{name: a, type: benchmrk}]\n"):
        config.write_text(text)
        assert entry_of("addition", checkout).trouble
    manifest.write_text("- no mapping\n")
    assert entry_of("addition", checkout).status == "no-manifest"


def test_what_ships_resolves_without_a_problem_and_has_three_benchmarks_in_every_category() -> None:
    shipped = entries([installed()])
    assert not [entry.trouble for entry in shipped if entry.trouble]
    benchmarks = [entry for entry in shipped if entry.kind == "benchmark"]
    assert all(sum(entry.category == category for entry in benchmarks) >= 3 for category in CATEGORIES)
    assert all(set(entry.choose) == set(CRITERIA) and entry.license for entry in benchmarks)
    for entry in shipped:
        name = entry.name.removeprefix("resources_servers/")
        wish = Asked(benchmarks=(name,)) if entry.kind == "benchmark" else Asked(resources_servers=(name,))
        config = resolved(replace(wish, model_types=("scripted_model",), environ={}, folder=installed()))
        assert not config.of("error", "unset", "model", "warning"), entry.name
        assert config.datasets, entry.name
    for word, category in (("math", CATEGORIES[0]), ("tool", CATEGORIES[3])):
        assert ranked(word, shipped).found[0].category == category


def test_a_domain_has_a_category_and_a_manifest_may_say_better() -> None:
    pairs = [("coding", None), ("knowledge", "Math and science"), ("agent", "agentic/tool use"), ("math", "no such thing"), (None, None)]
    expected = ["coding", "math & science", "agentic & tool use", "math & science", "other"]
    assert [category_of(*pair) for pair in pairs] == expected
    assert len(CATEGORIES) == len(CRITERIA) == 6


def test_components_are_found_by_kind(checkout: Path) -> None:
    (agent,), (model,), (server,) = (components(kind, [checkout]) for kind in ("agents", "models", "resources-servers"))
    assert agent.as_json() == {
        "name": "office_agent", "pattern": "B (self-contained)", "self_contained": True, "variants": ["office_agent"],
        "description": "Brings its own tasks",
    }  # fmt: skip
    assert model.as_json() == {"name": "cloud_model", "model": "cloud_model", "model_group": "cloud_model"}
    assert server.as_json()["domain"] == "math"
    assert server.as_json()["description"].endswith("\nValue: Better sums")


@pytest.mark.parametrize("kind", ["models", "agents"])
def test_our_models_and_agents_say_what_they_are(kind: str, blade: Blade) -> None:
    ours = components(kind, [installed()])
    assert kind == "agents" or {part.name for part in ours} >= {"openai_model", "scripted_model"}
    texts = [str(part.description or "") for part in ours]
    assert len(set(texts)) == len(texts)  # a flavour does not repeat what the model says
    listed = blade("list", kind).out
    assert all(text and text.split(",")[0][:20] in listed for text in texts)


@pytest.mark.parametrize(("query", "name"), CASES["queries"])
def test_what_people_type_finds_what_they_mean(query: str, name: str) -> None:
    among = [benchmark(*words) for words in CASES["searched"]]
    assert names(query, *among)[0] == name
    assert ranked("math school", among).all_words
    some = ranked("school zebra", among)  # unless nothing has all words
    assert (some.all_words, [entry.name for entry in some.found]) == (False, ["gsm8k"])


@pytest.mark.parametrize(("query", "among", "expected"), CASES["ranking"])
def test_what_is_found_and_in_which_order(query: str, among: list[list[str]], expected: list[str]) -> None:
    assert names(query, *(benchmark(*words) for words in among)) == expected


def test_benchmarks_stand_by_category_with_what_one_chooses_by(there: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    result = blade("list", "benchmarks")
    lines = result.out.splitlines()
    assert (result.code, lines[0].split()[:5]) == (0, ["name", "domain", "agent", "verifier", "repeats"])
    row = next(line for line in lines if line.startswith("addition "))
    assert row.split()[:5] == ["addition", "math", "simple_agent", "sums", "32"]
    assert lines.index("Math & science") < lines.index(row) < lines.index("Coding")
    assert "benchmarks" in result.err


@pytest.mark.parametrize("columns", ["60", "120"])
def test_no_line_is_wider_than_the_terminal_nor_steers_it(
    there: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    (there / "benchmarks/addition/manifest.yaml").write_text(
        f'description: "{"long words " * 60}\\e[31mred\\e]0;title\\a"\ndomain: "ma\\e[2Jth"\nchoose: {{task_fit: {"and so on " * 40}}}\n'
    )
    monkeypatch.setenv("COLUMNS", columns)
    for words in ("list benchmarks", "list environments", "search math", "search long", "list benchmarks addition"):
        lines = [line for line in blade(*words.split()).out.splitlines() if str(there) not in line and "blade eval run" not in line]
        assert max(map(len, lines)) <= int(columns)
        assert not any("\x1b" in line for line in lines)


def test_one_benchmark_is_shown_with_how_to_choose_it(there: Path, blade: Blade) -> None:
    out = blade("list", "benchmarks", "addition").out
    assert all(text in out for text in ("Task fit", "arithmetic, nothing else", "some-model: 81.2%; source: https://example.org/card"))
    assert out.count("not known") == 4
    document = json.loads(blade("list", "benchmarks", "addition", "--json").out)
    assert list(document)[:6] == ["name", "type", "domain", "description", "details", "usage_example"]
    assert document["published"][0]["result"] == "81.2%"
    unknown, other = (blade("list", "benchmarks", name, "--json") for name in ("adition", "office"))
    assert (unknown.code, other.code) == (2, 2)
    assert "did you mean addition" in unknown.error["hint"]
    assert other.error["error"] == "office is no benchmark but one of the environments"


def listed(blade: Blade, *words: str) -> list[str]:
    return [entry["name"] for entry in json.loads(blade(*words, "--json").out)]


def test_environments_are_filtered(there: Path, blade: Blade) -> None:
    command = ("list", "environments")
    local = {"addition", "answer-judge", "office", "swebench/verified/opencode"}
    flags = ("--status", "experimental", "--modality", "text", "--lifecycle", "active", "--licensing", "MIT")
    assert set(listed(blade, *command, *flags)) & local == {"addition"}
    assert set(listed(blade, *command, "--status", "no-manifest")) & local == local - {"addition"}
    assert ["office" in listed(blade, *command, *more) for more in ((), ("--kind", "benchmark"))] == [True, False]
    assert "swebench/verified/opencode" in listed(blade, *command, "--domain", "coding")


def test_a_checkout_is_read_with_search_dir_and_nothing_of_it_runs(
    checkout: Path, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flag = ("--search-dir", str(checkout))
    assert {"addition", "swebench/verified/opencode"} <= set(listed(blade, "list", "benchmarks", *flag))
    for words in ("agents office_agent", "models cloud_model", "resources-servers sums"):
        assert blade("list", *words.split(), *flag).code == 0


def test_search_takes_a_type_or_none(there: Path, blade: Blade) -> None:
    swe = listed(blade, "search", "swe")
    assert (swe[0], "answer-judge" in swe) == ("swebench/verified/opencode", False)
    assert listed(blade, "search", "agents", "office") == ["office_agent"]
    assert listed(blade, "search", "models", "cloud") == ["cloud_model"]
    result = blade("search", "zebra")
    assert (result.code, result.out, "no environments match" in result.err) == (0, "", True)
    assert blade("search", "zebra", "--json").out.strip() == "[]"
