"""The catalogue: what is found under the roots, what is said of it, and what a search returns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from blade_eval.catalogue import CATEGORIES, CRITERIA, Entry, components, entries, ranked
from blade_eval.catalogue.entries import category_of
from blade_eval.config import Asked, installed, resolved
from tests.conftest import Blade
from tests.evaluate.gym_tree import write


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write(tmp_path / "checkout")


@pytest.fixture
def there(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(checkout)
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)
    return checkout


def entry(name: str, domain: str = "other", description: str = "", **more: str) -> Entry:
    return Entry(
        name,
        "benchmark",
        Path("x"),
        domain=domain,
        description=description,
        category=category_of(domain, None),
        **more,
    )


def found(query: str, *among: Entry) -> list[str]:
    return [one.name for one in ranked(query, among).found]


# -- what is found --------------------------------------------------------------------------------


def test_the_catalogue_is_environments_benchmarks_and_runnable_resources_servers(checkout: Path) -> None:
    assert [(one.name, one.kind) for one in entries([checkout])] == [
        ("addition", "benchmark"),
        ("answer-judge", "benchmark"),
        ("office", "environment"),
        ("resources_servers/sums", "environment"),
        ("swebench/verified/opencode", "benchmark"),
    ]  # addition/harness names no dataset of its own: the incumbent goes by the text, too


def test_an_entry_says_what_its_definition_says_after_inheriting(checkout: Path) -> None:
    one = next(one for one in entries([checkout]) if one.name == "addition")
    assert (one.agent, one.verifier, one.num_repeats, one.license) == ("simple_agent", "sums", 32, "MIT")
    assert (one.domain, one.category, one.status) == ("math", "math & science", "experimental")
    assert one.description == "Sums of two numbers"  # the manifest's, not the resources server's


def test_without_a_manifest_the_verifier_describes(checkout: Path) -> None:
    one = next(one for one in entries([checkout]) if one.name == "answer-judge")
    assert (one.status, one.description, one.num_repeats) == ("no-manifest", "Is this proof right", 1)


def test_the_json_has_the_incumbents_keys_first_with_nulls(checkout: Path) -> None:
    told = {one.name: one.as_json() for one in entries([checkout])}
    gym = (
        "name kind status domain description version integration_profile modality licensing lifecycle".split()
    )
    ours = "category agent verifier num_repeats license choose".split()
    assert all(list(one) == gym + ours for one in told.values())
    assert told["addition"]["version"] == "0.1.0"
    assert told["addition"]["lifecycle"] == "active"
    assert told["addition"]["integration_profile"] is None
    assert told["addition"]["choose"] == {
        "task_fit": "arithmetic, nothing else",
        "variance": "±2 points at 32 repeats",
    }


def test_the_first_root_with_a_name_wins(checkout: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", **{"benchmarks/addition/manifest.yaml": "description: another\n"})
    both = [one for one in entries([other, checkout]) if one.name == "addition"]
    assert [one.description for one in both] == ["another"]


def test_a_broken_definition_is_listed_and_says_why(checkout: Path) -> None:
    (checkout / "benchmarks/addition/config.yaml").write_text("a: [\ntype: benchmark\n")
    (checkout / "benchmarks/addition/manifest.yaml").write_text("domain: math\n")
    one = next(one for one in entries([checkout]) if one.name == "addition")
    assert one.domain == "math"
    assert one.trouble is not None
    assert "not valid YAML" in one.trouble
    for text in ("a: [1,\n", "addition_agent: {}\n", "datasets: [{name: a, type: benchmrk}]\n"):
        (checkout / "benchmarks/addition/config.yaml").write_text(text)
        one = next(one for one in entries([checkout], "benchmark") if one.name == "addition")
        assert one.trouble
    (checkout / "benchmarks/addition/manifest.yaml").write_text("- no mapping\n")
    one = next(one for one in entries([checkout]) if one.name == "addition")
    assert one.status == "no-manifest"


def test_what_ships_resolves_without_a_problem_and_has_three_benchmarks_in_every_category() -> None:
    shipped = entries([installed()])
    assert not [one.trouble for one in shipped if one.trouble]
    benchmarks = [one for one in shipped if one.kind == "benchmark"]
    assert all(sum(one.category == category for one in benchmarks) >= 3 for category in CATEGORIES)
    assert all(set(one.choose) == set(CRITERIA) and one.license for one in benchmarks)
    for one in shipped:
        name = one.name.removeprefix("resources_servers/")
        asked = Asked(benchmarks=(name,)) if one.kind == "benchmark" else Asked(resources_servers=(name,))
        found = resolved(replace(asked, model_types=("scripted_model",), environ={}, folder=installed()))
        assert not found.of("error", "unset", "model", "warning"), one.name
        assert found.datasets, one.name


def test_a_benchmark_does_not_hide_the_resources_server_of_its_name(checkout: Path) -> None:
    (checkout / "benchmarks/sums").mkdir()
    text = (checkout / "benchmarks/answer-judge/config.yaml").read_text()
    (checkout / "benchmarks/sums/config.yaml").write_text(text)
    assert {"sums", "resources_servers/sums"} <= {one.name for one in entries([checkout])}


def test_a_domain_has_a_category_and_a_manifest_may_say_better() -> None:
    assert category_of("coding", None) == "coding"
    assert category_of("knowledge", "Math and science") == "math & science"
    assert category_of("agent", "agentic/tool use") == "agentic & tool use"
    assert category_of("math", "no such thing") == "math & science"
    assert category_of(None, None) == "other"
    assert len(CATEGORIES) == len(CRITERIA) == 6


def test_components_are_found_by_kind(checkout: Path) -> None:
    (agent,) = components("agents", [checkout])
    assert agent.as_json() == {
        "name": "office_agent",
        "pattern": "B (self-contained)",
        "self_contained": True,
        "variants": ["office_agent"],
        "description": "Brings its own tasks",
    }
    (model,) = components("models", [checkout])
    assert model.as_json() == {"name": "cloud_model", "model": "cloud_model", "model_group": "cloud_model"}
    (server,) = components("resources-servers", [checkout])
    assert server.as_json()["domain"] == "math"
    assert server.as_json()["description"].endswith("\nValue: Better sums")
    assert {one.name for one in components("models", [installed()])} >= {"openai_model", "scripted_model"}


@pytest.mark.parametrize("kind", ["models", "agents"])
def test_our_models_and_agents_say_what_they_are(kind: str, blade: Blade) -> None:
    found = components(kind, [installed()])
    told = [one.description for one in found]
    assert all(told)
    assert len(set(told)) == len(told)  # a flavour does not repeat what the model says
    listed = blade("list", kind).out
    assert all(one.description and one.description.split(",")[0][:20] in listed for one in found)


# -- search ---------------------------------------------------------------------------------------


def test_a_word_from_within_another_is_no_match() -> None:
    among = (entry("answer-judge", "math"), entry("swebench/verified"), entry("swerl"))
    assert found("swe", *among) == ["swebench/verified", "swerl"]


def test_the_name_counts_more_than_the_domain_and_that_more_than_the_description() -> None:
    among = (
        entry("x", "other", "with a little math"),
        entry("y", "math"),
        entry("math-500", "math"),
        entry("z", "other", "nothing"),
    )
    assert found("math", *among) == ["math-500", "y", "x"]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("coding", "evalplus"), ("code", "evalplus"), ("programming", "evalplus"), ("safety", "xstest"),
        ("refusal", "xstest"), ("tool use", "office"), ("maths", "gsm8k"), ("GSM8K", "gsm8k"), ("gsm", "gsm8k"),
        ("evalpuls", "evalplus"), ("asistant", "office"), ("plus", "evalplus"), ("knowledge reasoning", "mmlu"),
    ],
)  # fmt: skip
def test_what_people_type_finds_what_they_mean(query: str, name: str) -> None:
    among = (
        entry("evalplus", "coding", "Functions"),
        entry("xstest", "safety", "Safe and unsafe prompts"),
        entry("office", "agent", "An assistant with mail"),
        entry("gsm8k", "math", "Grade school sums"),
        entry("mmlu", "knowledge", "Questions of 57 subjects"),
    )
    assert found(query, *among)[0] == name


def test_a_benchmark_comes_before_the_resources_server_it_is_made_of() -> None:
    among = (entry("resources_servers/code_gen", "coding"), entry("mbpp", "coding"))
    assert found("coding", *among) == ["mbpp", "resources_servers/code_gen"]


@pytest.mark.parametrize("query", ["aime25", "ssw", "qqq", "ntt"])
def test_neither_another_number_nor_a_short_slip_matches(query: str) -> None:
    assert found(query, entry("aime24", "math", "answers"), entry("ant", "other", "an ant")) == []


def test_all_words_must_match_unless_nothing_has_them_all() -> None:
    among = (entry("a", "math", "olympiad"), entry("b", "math", "school"))
    assert ranked("math school", among).all_words
    assert found("math school", *among) == ["b"]
    some = ranked("school zebra", among)
    assert not some.all_words
    assert [one.name for one in some.found] == ["b"]


def test_what_ships_is_found_by_the_words_of_its_categories() -> None:
    among = [one for one in entries([installed()]) if not one.trouble]
    for word, category in (("math", CATEGORIES[0]), ("tool", CATEGORIES[3])):
        assert ranked(word, among).found[0].category == category


# -- the commands ---------------------------------------------------------------------------------


def test_benchmarks_stand_by_category_with_what_one_chooses_by(
    there: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    said = blade("list", "benchmarks")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].split()[:5] == ["name", "domain", "agent", "verifier", "repeats"]
    row = next(line for line in lines if line.startswith("addition "))
    assert row.split()[:5] == ["addition", "math", "simple_agent", "sums", "32"]
    assert lines.index("Math & science") < lines.index(row) < lines.index("Coding")
    assert "benchmarks" in said.err


@pytest.mark.parametrize("columns", ["60", "80", "120", "200"])
def test_no_line_is_wider_than_the_terminal(
    there: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    (there / "benchmarks/addition/manifest.yaml").write_text(
        f"description: {'long words ' * 60}\nchoose: {{task_fit: {'and so on ' * 40}}}\n"
    )
    monkeypatch.setenv("COLUMNS", columns)
    for words in (
        ["list", "benchmarks"],
        ["list", "environments"],
        ["search", "math"],
        ["list", "benchmarks", "answer-judge"],
    ):
        out = "\n".join(line for line in blade(*words).out.splitlines() if str(there) not in line)
        assert max(len(line) for line in out.splitlines() if "blade eval run" not in line) <= int(columns)


def test_one_benchmark_is_shown_with_how_to_choose_it(there: Path, blade: Blade) -> None:
    out = blade("list", "benchmarks", "addition").out
    assert "Task fit" in out
    assert "arithmetic, nothing else" in out
    assert out.count("not known") == 4
    assert "some-model: 81.2%; source: https://example.org/card" in out
    told = json.loads(blade("list", "benchmarks", "addition", "--json").out)
    assert list(told)[:6] == ["name", "type", "domain", "description", "details", "usage_example"]
    assert told["published"][0]["result"] == "81.2%"


def test_an_unknown_name_gets_a_guess_and_a_wrong_kind_is_said(there: Path, blade: Blade) -> None:
    said = blade("list", "benchmarks", "adition", "--json")
    assert said.code == 2
    assert "did you mean addition" in said.error["hint"]
    said = blade("list", "benchmarks", "office", "--json")
    assert said.code == 2
    assert said.error["error"] == "office is no benchmark but one of the environments"


def test_environments_are_filtered(there: Path, blade: Blade) -> None:
    def names(*flags: str) -> set[str]:
        return {one["name"] for one in json.loads(blade("list", "environments", "--json", *flags).out)}

    assert "office" in names()
    local = {"addition", "answer-judge", "office", "swebench/verified/opencode"}
    flags = ("--status", "experimental", "--modality", "text", "--lifecycle", "active", "--licensing", "MIT")
    assert names(*flags) & local == {"addition"}
    assert names("--status", "no-manifest") & local == local - {"addition"}
    assert "office" not in names("--kind", "benchmark")
    assert "swebench/verified/opencode" in names("--domain", "coding")


def test_a_checkout_is_read_with_search_dir_and_nothing_of_it_runs(
    checkout: Path, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = blade("list", "benchmarks", "--search-dir", str(checkout), "--json")
    assert {"addition", "swebench/verified/opencode"} <= {one["name"] for one in json.loads(said.out)}
    for words in (["agents", "office_agent"], ["models", "cloud_model"], ["resources-servers", "sums"]):
        assert blade("list", *words, "--search-dir", str(checkout)).code == 0


def test_search_takes_a_type_or_none(there: Path, blade: Blade) -> None:
    names = [one["name"] for one in json.loads(blade("search", "swe", "--json").out)]
    assert names[0] == "swebench/verified/opencode"
    assert "answer-judge" not in names
    assert [one["name"] for one in json.loads(blade("search", "agents", "office", "--json").out)] == [
        "office_agent"
    ]
    assert [one["name"] for one in json.loads(blade("search", "models", "cloud", "--json").out)] == [
        "cloud_model"
    ]
    said = blade("search", "zebra")
    assert (said.code, said.out) == (0, "")
    assert "no environments match" in said.err
    assert blade("search", "zebra", "--json").out.strip() == "[]"


def test_foreign_text_cannot_steer_the_terminal(there: Path, blade: Blade) -> None:
    (there / "benchmarks/addition/manifest.yaml").write_text(
        'description: "\\e[31mred\\e]0;title\\a"\ndomain: "ma\\e[2Jth"\n'
    )
    for words in (["list", "benchmarks"], ["list", "benchmarks", "addition"], ["search", "red"]):
        assert "\x1b" not in blade(*words).out
