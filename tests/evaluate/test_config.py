"""Definitions merge in the documented order, every problem says what is wrong and where, and secrets are hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.config import Asked, Resolved, found, hidden, insist, resolve, resolved, roots, sources
from blade_eval.config.directives import Applied, merged, parsed
from blade_eval.config.secret import hidden_command, without
from blade_eval.config.sources import chained, tree_of
from blade_eval.runner import inputs
from blade_eval.runner.benchmark_run import masked
from tests.case_tables import tables
from tests.evaluate.rows import gym_tree

CASES = tables(__file__, "config_cases.yaml")
SECRETS = CASES["secrets"]
LEVELS = ("error", "warning", "notice", "unset", "model")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return gym_tree(tmp_path)


def put(root: Path, name: str, text: str) -> str:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    return name


def asked(**wish: Any) -> Resolved:
    return resolved(Asked(**{"environ": {}} | {key: tuple(value) if isinstance(value, list) else value for key, value in wish.items()}))


@pytest.mark.parametrize("case", CASES["configurations"], ids=lambda case: case["name"])
def test_a_configuration_is_merged_and_what_is_wrong_is_told(case: dict[str, Any], tree: Path) -> None:
    if "datasets" in case:
        text = f"a:\n  responses_api_agents:\n    simple_agent:\n      datasets:\n      - {case['datasets']}\n"
        case = {**case, "files": {"d.yaml": text}, "paths": ["d.yaml"]}
    for name, text in case.get("files", {}).items():
        put(tree, name, text)
    wish = {key: case[key] for key in ("paths", "overrides", "benchmarks", "resources_servers") if key in case}
    if "raises" in case:
        slug, *parts = case["raises"]
        with pytest.raises(BladeError) as error:
            asked(**wish)
        assert error.value.slug == slug
        assert all(part in f"{error.value.message} {error.value.hint}" for part in parts), error.value.message
        return
    config = asked(**wish)
    assert "tree" not in case or config.tree == case["tree"]
    for level in LEVELS:
        lines = [problem.told() for problem in config.of(level)]
        if level in case:
            assert len(lines) == len(case[level]), lines
            assert all(part in line for line, parts in zip(lines, case[level], strict=True) for part in parts), lines
        assert not lines or level not in case.get("none", ()), lines
    if "of" in case:
        owners = [[data.name, data.agent, data.resources_server] for data in config.datasets]
        assert owners == case["of"]


@st.composite
def forests(draw: st.DrawFn) -> dict[int, list[int]]:
    """Files that include later-numbered files: a tree, each file included by one other at most."""
    count = draw(st.integers(1, 7))
    below: dict[int, list[int]] = {number: [] for number in range(count)}
    for number in range(1, count):
        below[draw(st.integers(0, number - 1))].append(number)
    return below


@settings(max_examples=40)
@given(below=forests(), keys=st.lists(st.sets(st.sampled_from("abc")), min_size=7, max_size=7))
def test_the_merge_order_is_that_of_the_rules(
    below: dict[int, list[int]], keys: list[set[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("chain")
    for number, inner in below.items():
        values = "".join(f"{key}: {number}\n" for key in sorted(keys[number]))
        put(root, f"{number}.yaml", f"config_paths: {[f'{n}.yaml' for n in inner]}\n{values}")

    def expected(number: int) -> dict[str, int]:
        values: dict[str, int] = {}
        for inner in below[number]:
            values |= expected(inner)  # a later one over an earlier one, with all it pulled in
        return values | dict.fromkeys(keys[number], number)

    whole: dict[str, Any] = {}
    for _, document in chained([root / "0.yaml"], [root])[0]:
        whole |= {key: value for key, value in document.items() if key != "config_paths"}
    assert whole == expected(0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["text", "???"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TREES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@settings(max_examples=60)
@given(under=TREES, over=TREES)
def test_the_quick_merge_of_the_catalogue_is_omegaconfs(under: dict[str, Any], over: dict[str, Any]) -> None:
    try:
        expected = resolve._merge(under, over)
    except UsageError:
        reject()  # a list meets a mapping: told by `resolved`, and of no account in a list of names
    assert merged(under, over) == expected


@pytest.mark.parametrize("case", CASES["directives"])
def test_directives_are_carried_out(case: dict[str, Any]) -> None:
    done, problems = Applied(case["before"]), case.get("problems", {})
    assert done.tree == case["after"]
    assert [problem.path for problem in done.problems] == list(problems)
    assert all(hint in problem.hint for hint, problem in zip(problems.values(), done.problems, strict=True))


def test_a_benchmark_resolves_alone_and_says_that_a_model_is_missing(tree: Path) -> None:
    config = asked(benchmarks=("addition",))
    names = ["addition_sums_resources_server", "addition_sums_simple_agent"]
    assert [(s.instance, s.kind, s.implementation) for s in config.servers] == [
        (names[0], "resources_servers", "sums"), (names[1], "responses_api_agents", "simple_agent"),
    ]  # fmt: skip
    (data,) = config.datasets
    assert (data.name, data.type, data.num_repeats, data.license) == ("addition", "benchmark", 32, "MIT")
    assert [data.resources_server, data.agent] == names
    assert not config.of("error", "unset")
    places = [problem.place for problem in config.of("model")]
    assert places == [f"resources_servers/sums/configs/sums.yaml:{line}" for line in (11, 25)]
    with pytest.raises(UsageError, match="2 things"):
        insist(config)
    overrides = ("policy_base_url=http://x", "policy_api_key=k", "policy_model_name=m")
    model = insist(asked(benchmarks=("addition",), model_types=("cloud_model",), overrides=overrides)).server("policy_model")
    assert model is not None
    assert model.settings["base_url"] == "http://x"
    harness = asked(benchmarks=("addition/harness",))  # where an instance is set to null
    assert "addition_sums_simple_agent" not in [server.instance for server in harness.servers]


@pytest.mark.parametrize(("overrides", "environ", "lacks"), CASES["model_settings"])
def test_what_the_model_needs_is_named_with_its_flag_or_comes_from_the_environment(
    tree: Path, overrides: list[str], environ: dict[str, str], lacks: list[str]
) -> None:
    config = asked(model_types=("cloud_model",), overrides=overrides, environ=environ)
    hints = {problem.path.rsplit(".", 1)[-1]: problem.hint for problem in config.of(*LEVELS)}
    assert set(hints) == set(lacks)
    assert "base_url" not in lacks or "--model-url" in hints["base_url"]
    assert lacks or config.tree["policy_model"]["responses_api_models"]["cloud_model"]["model"] == "e"


def test_overrides_come_before_inheriting_and_those_into_lists_after_it(tree: Path) -> None:
    agent = "addition_sums_simple_agent.responses_api_agents.simple_agent"
    judge = "++sums.resources_servers.sums.should_use_judge=true"
    overrides = (judge, f"{agent}.datasets.0.num_repeats=2", f"~{agent}.model_server")
    config = asked(benchmarks=("addition",), overrides=overrides)
    server = config.server("addition_sums_resources_server")
    assert server is not None
    assert (server.settings["should_use_judge"], config.datasets[0].num_repeats) == (True, 2)


def test_the_values_of_overrides_and_what_is_none() -> None:
    assert [[text, parsed(text).value] for text, _ in CASES["overrides"]] == CASES["overrides"]
    for text in ("a", "=4", "a..b=1", "a b=1", "a=[1", "~"):
        with pytest.raises(UsageError):
            parsed(text)


def test_the_roots_are_folders_and_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here", "there", "extra"):
        put(tmp_path, f"{name}/benchmarks/x/config.yaml", f"x: {name}\n")
    monkeypatch.chdir(tmp_path / "here")
    environ = {"NEMO_GYM_EXTRA_ROOTS": str(tmp_path / "extra")}
    assert asked(benchmarks=("x",)).tree == {"x": "here"}
    assert asked(benchmarks=("x",), environ=environ).tree == {"x": "extra"}
    config = asked(benchmarks=("x",), search_dirs=("../there",), environ=environ)
    assert config.tree == {"x": "there"}
    (warning,) = config.of("warning")
    assert str(tmp_path / "here" / "benchmarks/x/config.yaml") in warning.told()
    under = roots([str(tmp_path), str(tmp_path)], {}, tmp_path)
    assert (under[0], len(under), len(set(under))) == (tmp_path.resolve(), 2, 2)
    assert found("responses_api_models/openai_model/configs/openai_model.yaml", under).is_file()
    with pytest.raises(UsageError, match="not a folder"):
        roots([str(tmp_path / "nowhere")], {}, tmp_path)


@pytest.mark.parametrize("opener", ["[", "{a: ", "- ", "? "])
def test_a_file_that_nests_without_end_or_whose_aliases_mean_billions_of_values_is_refused(opener: str) -> None:
    with pytest.raises(Unreadable, match="nests more than 100 levels"):
        tree_of(opener * 50_000, Path("deep.yaml"))
    flat = "a: [" + ", ".join(["[x]"] * 2_000) + "]"
    assert len(tree_of(flat, Path("flat.yaml"))["a"]) == 2_000
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(Unreadable, match="more than 200,000 values"):
        tree_of("\n".join(levels), Path("bomb.yaml"))


def test_values_are_read_as_omegaconf_reads_them_and_secrets_of_the_environment_hidden_in_them(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tree, "a.yaml", "a: 1e-3\nb: 2024-01-01\nc: yes\nd: 0x10\ne: '1'\nf: 1.5\ng: ~\n")
    assert asked(paths=("a.yaml",)).tree == OmegaConf.to_container(OmegaConf.load(tree / "a.yaml"))
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "very-secret-value")
    put(tree, "a.yaml", "a: x-${oc.env:SOME_SERVICE_TOKEN}\n")
    assert hidden(asked(paths=("a.yaml",)).tree) == {"a": "x-****"}


DOUBLING = "x0: aaaaaaaaaa\n" + "".join(f"x{i}: ${{x{i - 1}}}${{x{i - 1}}}\n" for i in range(1, 40))
NODES = "x0: [1, 2]\n" + "".join(f"x{i}: {{p: '${{x{i - 1}}}', q: '${{x{i - 1}}}'}}\n" for i in range(1, 30))
DEEP = "x: '" + "${oc.env:V," * 400 + "a" + "}" * 400 + "'\n"


@pytest.mark.parametrize(
    ("text", "overrides", "slug"),
    [
        (DOUBLING, (), "bad-config-value"), (NODES, (), "bad-config-value"), (DEEP, (), "bad-config-value"),
        ("a: 1\n", (f"++{'.'.join('a' * 3000)}=1",), "bad-override"),
    ],
    ids=["doubled text", "doubled nodes", "deep", "3,000 parts"],
)  # fmt: skip
def test_a_hostile_configuration_is_a_usage_error(
    text: str, overrides: tuple[str, ...], slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "_MOST_FILLED", 200_000)
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        asked(paths=("c.yaml",), overrides=overrides, folder=tmp_path)
    assert (error.value.slug, len(error.value.message) < 1000) == (slug, True)


def test_a_file_without_end_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 1000)
    monkeypatch.setattr(sources, "MOST_BYTES", 1000)
    for read in (inputs.load_prompt, sources.loaded):
        with pytest.raises(Unreadable, match="larger than 1,000 bytes"):
            read(Path("/dev/zero"))


@pytest.mark.parametrize(("tree", "is_hidden"), [(tree, name == "hidden") for name in ("hidden", "shown") for tree in SECRETS[name]])
def test_a_secret_is_hidden_whatever_its_key_is_called_and_what_only_looks_like_one_stands(tree: dict[str, Any], is_hidden: bool) -> None:
    assert "SECRET" not in str(hidden(tree, {})) if is_hidden else hidden(tree, {}) == tree


@pytest.mark.parametrize("case", SECRETS["cases"])
def test_what_is_shown_of_a_configuration(case: dict[str, Any]) -> None:
    environ = {"PWD": "/home/me/work", "OLDPWD": "/home/me/before", "MYSQL_PWD": "horse-battery", "OPENAI_API_KEY": "openai"}
    assert hidden(case["tree"], environ) == case["shown"]


def test_secrets_inside_of_values_are_hidden_wherever_they_stand_and_nothing_else() -> None:
    for word in SECRETS["hidden_words"]:
        shown = masked(["blade", "eval", word])
        assert (shown[:2], "hunter2" in shown[2], "****" in shown[2]) == (["blade", "eval"], False, True), word
    assert "hunter2" not in masked(["++a={api_key: hunter2pass}", "++b.c=hunter2pass"])[1]
    assert [masked([word]) for word in SECRETS["shown_words"]] == [[word] for word in SECRETS["shown_words"]]
    # a command is hidden by the same rules
    words = "blade --model-api-key sk-1234567 --max-output-tokens 100 ++x=a-sk-1234567-b ++db.pwd=p ++max_tokens=5"
    words += " --model-url postgres://u:p/w@h ++token=${hf}"
    shown = "blade --model-api-key **** --max-output-tokens 100 ++x=a-****-b ++db.pwd=**** ++max_tokens=5"
    shown += " --model-url postgres://****@h ++token=${hf}"
    assert hidden_command(words.split(), {}) == masked(words.split()) == shown.split()  # the manifest has no rules of its own


@settings(max_examples=50)
@given(st.text("abcXYZ019-_/+=", min_size=6, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_text_keeps_a_secret_it_is_cleaned_of(secret: str, before: str, after: str) -> None:
    assert secret not in without(f"{before}{secret}{after}", [secret])


@pytest.mark.parametrize("override", SECRETS["broken"])
def test_what_is_wrong_with_a_key_is_told_without_it(override: str, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text("servers: [{api_key: x}]\n")
    with pytest.raises(UsageError) as error:
        asked(overrides=(override,), folder=tmp_path)
    text = f"{error.value.message} {error.value.hint}"
    assert ("SECRET" in text, "api_key" in error.value.message) == (False, True)
    with pytest.raises(UsageError, match=r"greeting cannot be used, 'hello \$\{x'"):
        asked(overrides=("++greeting=hello ${x",), folder=tmp_path)
