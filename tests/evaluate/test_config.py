"""Definitions merge in the documented order, and every problem says what is wrong and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.config import Asked, Resolved, found, hidden, insist, resolved, roots, sources
from blade_eval.config.config_nouns import RUN
from blade_eval.config.directives import applied, merged, parsed
from blade_eval.config.resolve import _merge
from blade_eval.config.sources import chained, tree_of
from blade_eval.runner import benchmark_run, inputs
from tests.evaluate.gym_tree import write

MODEL = ("policy_base_url=http://x", "policy_api_key=k", "policy_model_name=m")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path)


def put(root: Path, name: str, text: str) -> str:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    return name


def asked(*paths: str, overrides: tuple[str, ...] = (), **more: Any) -> Resolved:
    return resolved(Asked(paths=paths, overrides=overrides, environ={}, **more))


def told(config: Resolved, *levels: Any) -> list[str]:
    return [problem.told() for problem in config.of(*levels)]


# -- the order of merging -------------------------------------------------------------------------


def test_the_includer_overrides_what_it_includes_however_deep(tree: Path) -> None:
    put(tree, "c.yaml", "a: c\nb: c\nd: c\n")
    put(tree, "b.yaml", "config_paths: [c.yaml]\na: b\nb: b\n")
    put(tree, "a.yaml", "config_paths: [b.yaml]\na: a\n")
    assert asked("a.yaml").tree == {"a": "a", "b": "b", "d": "c"}


def test_a_later_sibling_overrides_an_earlier_one_with_all_it_pulled_in(tree: Path) -> None:
    put(tree, "inner.yaml", "x: inner\ny: inner\n")
    put(tree, "one.yaml", "x: one\ny: one\n")
    put(tree, "two.yaml", "config_paths: [inner.yaml]\ny: two\n")
    put(tree, "top.yaml", "config_paths: [one.yaml, two.yaml]\n")
    assert asked("top.yaml").tree == {"x": "inner", "y": "two"}
    put(tree, "top.yaml", "config_paths: [two.yaml, one.yaml]\n")
    assert asked("top.yaml").tree == {"x": "one", "y": "one"}


def test_env_yaml_overrides_files_and_the_command_line_overrides_it(tree: Path) -> None:
    put(tree, "a.yaml", "a: file\nb: file\nc: file\n")
    put(tree, "env.yaml", "b: env\nc: env\n")
    assert asked("a.yaml", overrides=("c=line",)).tree == {"a": "file", "b": "env", "c": "line"}


def test_env_yaml_may_name_the_files_and_the_command_line_replaces_them(tree: Path) -> None:
    put(tree, "a.yaml", "a: 1\n")
    put(tree, "b.yaml", "b: 1\n")
    put(tree, "env.yaml", "config_paths: [a.yaml]\n")
    assert asked().tree == {"a": 1}
    assert asked("b.yaml").tree == {"b": 1}


def test_a_file_is_merged_once_and_that_is_told(tree: Path) -> None:
    put(tree, "shared.yaml", "x: shared\n")
    put(tree, "one.yaml", "config_paths: [shared.yaml]\nx: one\n")
    put(tree, "two.yaml", "config_paths: [./shared.yaml]\n")  # another spelling of the same file
    config = asked("one.yaml", "two.yaml")
    assert config.tree == {"x": "one"}
    assert [path.name for path in config.files] == ["shared.yaml", "one.yaml", "two.yaml"]
    (notice,) = told(config, "notice")
    assert "two.yaml:1" in notice
    assert "included already" in notice


def test_a_circle_of_includes_is_told_with_its_way(tree: Path) -> None:
    put(tree, "a.yaml", "config_paths: [b.yaml]\nx: a\n")
    put(tree, "b.yaml", "config_paths:\n- a.yaml\nx: b\n")
    config = asked("a.yaml")
    assert config.tree == {"x": "a"}
    (warning,) = told(config, "warning")
    assert "b.yaml:2" in warning
    assert "a.yaml → b.yaml → a.yaml" in warning


@st.composite
def forests(draw: st.DrawFn) -> dict[int, list[int]]:
    """Files that include later-numbered files: a tree, each file included by one other at most."""
    count = draw(st.integers(1, 7))
    below: dict[int, list[int]] = {number: [] for number in range(count)}
    for number in range(1, count):
        below[draw(st.integers(0, number - 1))].append(number)
    return below


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

    documents, _ = chained([root / "0.yaml"], [root])
    merged_tree: dict[str, Any] = {}
    for _, document in documents:
        merged_tree |= {key: value for key, value in document.items() if key != "config_paths"}
    assert merged_tree == expected(0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["text", "???"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TREES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(under=TREES, over=TREES)
def test_the_quick_merge_of_the_catalogue_is_omegaconfs(under: dict[str, Any], over: dict[str, Any]) -> None:
    try:
        expected = _merge(under, over)
    except UsageError:
        reject()  # a list meets a mapping: told by `resolved`, and of no account in a list of names
    assert merged(under, over) == expected


def test_a_list_that_meets_a_mapping_is_told(tree: Path) -> None:
    put(tree, "low.yaml", "a:\n  b: [1]\n")
    put(tree, "top.yaml", "config_paths: [low.yaml]\na:\n  b: {c: 1}\n")
    with pytest.raises(UsageError, match=r"top\.yaml does not merge .* a\.b is a list in one"):
        asked("top.yaml")
    with pytest.raises(UsageError, match=r"the override of a\.b does not merge"):
        asked("low.yaml", overrides=("a.b={c:1}",))


# -- inheriting -----------------------------------------------------------------------------------


def test_inheriting_takes_the_source_away_and_merges_own_keys_over_it() -> None:
    done = applied(
        {
            "s": {"x": 1, "y": {"z": 2}},
            "t": {"_inherit_from": "s", "y": {"w": 3}},
            "u": {"_inherit_from": "s"},
        }
    )
    assert done.tree == {"t": {"x": 1, "y": {"z": 2, "w": 3}}, "u": {"x": 1, "y": {"z": 2}}}
    assert not done.problems


def test_copying_leaves_the_source() -> None:
    done = applied({"s": {"x": 1}, "t": {"_copy": "s", "x": 2}})
    assert done.tree == {"s": {"x": 1}, "t": {"x": 2}}


def test_the_string_forms_take_a_value() -> None:
    tree = {"s": {"x": 1, "y": 2}, "t": {"a": "${inherit_from:s.x}", "b": "${copy:s.y}"}}
    assert applied(tree).tree == {"s": {"y": 2}, "t": {"a": 1, "b": 2}}


def test_keys_are_deleted_own_ones_first_then_inherited_ones() -> None:
    done = applied(
        {"s": {"x": 1, "y": 2, "z": 3}, "t": {"_inherit_from": "s", "_delete_key": "x, y", "y": 9}}
    )
    assert done.tree == {"t": {"y": 2, "z": 3}}  # the own y went first; the inherited one was not asked for


def test_a_key_to_delete_that_is_nowhere_is_told() -> None:
    done = applied({"s": {"entrypoint": 1}, "t": {"_inherit_from": "s", "_delete_key": "entrypoin"}})
    (problem,) = done.problems
    assert problem.path == "t._delete_key"
    assert "did you mean entrypoint?" in problem.hint


def test_directives_inside_lists_are_carried_out() -> None:
    done = applied(
        {
            "s": {"sets": [{"name": "a", "type": "example"}], "x": 1, "y": 2},
            "t": ["${copy:s.sets.0}", {"_copy": "s.sets.0", "name": "b"}, ["${inherit_from:s.x}"]],
            "u": [{"_copy": "s.sets.0", "_delete_key": "type"}, "${s.y}"],
        }
    )
    assert not done.problems
    assert done.tree["t"] == [{"name": "a", "type": "example"}, {"name": "b", "type": "example"}, [1]]
    assert done.tree["u"] == [{"name": "a"}, "${s.y}"]
    assert "x" not in done.tree["s"]


def test_a_source_of_a_list_element_that_is_nowhere_is_told() -> None:
    done = applied({"s": [{"name": "a"}], "t": [{"_copy": "s.1"}, "${copy:s.0}"]})
    (problem,) = done.problems
    assert problem.path == "t.0._copy"
    assert done.tree["t"][1] == {"name": "a"}


def test_a_key_to_delete_may_come_with_what_a_block_further_up_inherits() -> None:
    tree = {
        "s": {"inner": {"x": 1, "y": 2}},
        "t": {"_inherit_from": "s", "inner": {"_delete_key": "x", "z": 3}},
    }
    done = applied(tree)
    assert not done.problems
    assert done.tree == {"t": {"inner": {"y": 2, "z": 3}}}
    tree["t"]["inner"] = {"_delete_key": "w"}
    (problem,) = applied(tree).problems
    assert problem.path == "t.inner._delete_key"


def test_a_source_is_taken_as_it_was_before_any_directive(tree: Path) -> None:
    put(tree, "a.yaml", "c: {x: 1}\nb: {_inherit_from: c, y: 2}\na: {_inherit_from: b}\n")
    config = asked("a.yaml")
    (problem,) = told(config, "error")
    assert "a has inherited _inherit_from: c, which is not expanded" in problem


def test_an_unset_source_makes_the_target_unset(tree: Path) -> None:
    put(tree, "a.yaml", "s: ???\nt: {_copy: s, x: 1}\nu: ${copy:s}\n")
    config = asked("a.yaml")
    assert config.tree == {"s": "???", "t": "???", "u": "???"}
    assert [problem.path for problem in config.of("unset")] == ["s", "t", "u"]


def test_a_source_that_is_nowhere_is_told_with_its_line_and_a_guess(tree: Path) -> None:
    put(tree, "a.yaml", "source: {x: 1}\n\nt:\n  _inherit_from: sourse\n")
    (problem,) = told(asked("a.yaml"), "error")
    assert problem.startswith("a.yaml:4: t takes its values from sourse")
    assert "did you mean source?" in problem


# -- a whole checkout -----------------------------------------------------------------------------


def test_a_benchmark_resolves_alone_and_says_that_a_model_is_missing(tree: Path) -> None:
    config = resolved(Asked(benchmarks=("addition",), environ={}))
    assert [(s.instance, s.kind, s.implementation) for s in config.servers] == [
        ("addition_sums_resources_server", "resources_servers", "sums"),
        ("addition_sums_simple_agent", "responses_api_agents", "simple_agent"),
    ]
    (data,) = config.datasets
    assert (data.name, data.type, data.num_repeats, data.license) == ("addition", "benchmark", 32, "MIT")
    assert (data.agent, data.resources_server) == (
        "addition_sums_simple_agent",
        "addition_sums_resources_server",
    )
    assert not config.of("error", "unset")
    places = [problem.place for problem in config.of("model")]
    assert places == [
        "resources_servers/sums/configs/sums.yaml:11",
        "resources_servers/sums/configs/sums.yaml:25",
    ]
    with pytest.raises(UsageError, match="2 things"):
        insist(config)


def test_with_a_model_nothing_is_missing(tree: Path) -> None:
    asks = Asked(benchmarks=("addition",), model_types=("cloud_model",), overrides=MODEL, environ={})
    config = insist(resolved(asks))
    model = config.server("policy_model")
    assert model is not None
    assert model.settings["base_url"] == "http://x"


def test_what_the_model_needs_is_named_with_its_flag_or_comes_from_the_environment(tree: Path) -> None:
    asks = Asked(model_types=("cloud_model",), environ={})
    paths = {problem.path.rsplit(".", 1)[-1]: problem.hint for problem in resolved(asks).of("model")}
    assert set(paths) == {"base_url", "model"}  # the key is not wanted
    assert "--model-url" in paths["base_url"]
    fixed = "++policy_model.responses_api_models.cloud_model.base_url=http://h"
    asks = Asked(model_types=("cloud_model",), overrides=(fixed,), environ={})
    paths = {problem.path.rsplit(".", 1)[-1]: problem.hint for problem in resolved(asks).of("model")}
    assert set(paths) == {"api_key", "model", "authorization"}  # nobody knows whether that server wants one
    environ = {"OPENAI_BASE_URL": "http://e", "OPENAI_API_KEY": "key-of-e", "OPENAI_MODEL": "e"}
    config = resolved(Asked(model_types=("cloud_model",), environ=environ))
    assert not config.problems
    assert config.tree["policy_model"]["responses_api_models"]["cloud_model"]["model"] == "e"


def test_a_server_on_ones_own_machine_needs_no_key(tree: Path) -> None:
    environ = {"OPENAI_BASE_URL": "http://e", "OPENAI_MODEL": "e"}
    assert not resolved(Asked(model_types=("cloud_model",), environ=environ)).problems


def test_flavours_and_nested_names_find_their_files(tree: Path) -> None:
    config = resolved(Asked(resources_servers=("sums/judged",), environ={}))
    (problem,) = config.of("unset")
    assert problem.path == "sums.resources_servers.sums.judge_prompt"
    assert problem.place == "resources_servers/sums/configs/judged.yaml:8"
    nested = resolved(Asked(benchmarks=("swebench/verified/opencode",), environ={}))
    (unset,) = told(nested, "unset")
    assert "A_VARIABLE_THAT_NOBODY_SETS" in unset


def test_an_instance_that_is_set_to_null_is_gone(tree: Path) -> None:
    config = resolved(Asked(benchmarks=("addition/harness",), environ={}))
    assert "addition_sums_simple_agent" not in [server.instance for server in config.servers]


def test_all_unset_values_are_told_together(tree: Path) -> None:
    put(tree, "a.yaml", "x: ???\ny:\n  z: ???\n  l:\n  - 1\n  - ???\n")
    assert [problem.path for problem in asked("a.yaml").of("unset")] == ["x", "y.z", "y.l.1"]


def test_a_reference_to_nobody_is_an_error_with_a_guess_and_a_near_miss_is_not(tree: Path) -> None:
    put(
        tree,
        "bad.yaml",
        "config_paths: [resources_servers/sums/configs/sums.yaml]\nsums_simple_agent:\n  responses_api_agents:\n    simple_agent:\n      resources_server: {name: sum}\n",
    )
    (problem,) = told(asked("bad.yaml"), "error")
    assert problem.startswith("bad.yaml:5: ")
    assert "refers to resources_servers/sum, which is not defined" in problem
    assert "did you mean sums?" in problem
    assert not asked("resources_servers/sums/configs/sums.yaml").of("error")


def test_a_model_of_another_name_is_really_missing(tree: Path) -> None:
    put(
        tree,
        "bad.yaml",
        "s:\n  resources_servers:\n    s:\n      judge: {type: responses_api_models, name: judge_model}\n",
    )
    (problem,) = told(asked("bad.yaml"), "error")
    assert "responses_api_models/judge_model, which is not defined" in problem


JUDGE = "j:\n  responses_api_models:\n    cloud_model: {entrypoint: app.py}\n"


def test_a_judge_does_not_stand_in_for_the_model_under_test(tree: Path) -> None:
    put(tree, "judge.yaml", JUDGE)
    config = asked("resources_servers/sums/configs/sums.yaml", "judge.yaml")
    assert not config.of("error")
    problem = told(config, "model")[-1]
    assert "only j is defined" in problem
    assert "--model-type openai_model" in problem


def test_a_model_that_judges_itself_is_told_and_one_that_is_judged_by_another_is_not(tree: Path) -> None:
    put(tree, "judge.yaml", JUDGE)
    name = "sums.resources_servers.sums.judge_model_server.name"
    judged = "++sums.resources_servers.sums.should_use_judge=true"
    for overrides, says in (((judged,), True), ((), False), ((judged, f"{name}=j"), False)):
        config = asked("resources_servers/sums/configs/sums.yaml", "judge.yaml", overrides=overrides)
        said = [line for line in told(config, "notice") if "is the model under test (policy_model)" in line]
        assert bool(said) is says
        assert all(f"++{name}=" in line for line in said)


def test_what_was_meant_as_an_instance_is_told(tree: Path) -> None:
    put(
        tree,
        "bad.yaml",
        "one:\n  resource_servers:\n    x: {}\ntwo:\n  resources_servers:\n    x: {}\n    y: {}\nhead_server: {host: h}\nfree: {anything: 1}\n",
    )
    first, second = told(asked("bad.yaml"), "error")
    assert first.startswith("bad.yaml:2: one.resource_servers is no kind of server")
    assert "did you mean resources_servers?" in first
    assert "two.resources_servers holds 2 implementations" in second


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{name: x, type: benchmark, jsonl_fpath: y}", "has no prepare_script"),
        ("{name: x, type: bench, jsonl_fpath: y}", "has the type 'bench'"),
        ("{name: x, type: example, jsonl_fpath: y, num_repeats: 0}", "num_repeats is 0"),
        ("{name: x, type: example, jsonl_fpath: y, prompt_config: nowhere.yaml}", "names nowhere.yaml"),
        ("7", "is no mapping but 7"),
    ],
)
def test_datasets_are_checked(tree: Path, entry: str, said: str) -> None:
    put(tree, "d.yaml", f"a:\n  responses_api_agents:\n    simple_agent:\n      datasets:\n      - {entry}\n")
    (problem,) = told(asked("d.yaml"), "error")
    assert problem.startswith("d.yaml:5: ")
    assert said in problem


def test_a_dataset_of_the_right_form_is_not_complained_about(tree: Path) -> None:
    put(
        tree,
        "d.yaml",
        "a:\n  responses_api_agents:\n    simple_agent:\n      datasets:\n      - {name: x, type: example, jsonl_fpath: y, num_repeats: 1}\n",
    )
    config = asked("d.yaml")
    assert not config.problems
    assert [data.name for data in config.datasets] == ["x"]


def test_a_slip_in_a_datasets_key_is_told(tree: Path) -> None:
    put(
        tree,
        "d.yaml",
        "a:\n  responses_api_agents:\n    simple_agent:\n      datasets:\n      - {name: x, type: example, jsonl_fpath: y, num_repeat: 4}\n",
    )
    (warning,) = told(asked("d.yaml"), "warning")
    assert "did you mean num_repeats?" in warning


def test_datasets_on_a_resources_server_belong_to_the_agent_that_uses_it(tree: Path) -> None:
    put(
        tree,
        "d.yaml",
        "config_paths: [resources_servers/sums/configs/sums.yaml]\nsums:\n  resources_servers:\n    sums:\n      datasets:\n      - {name: mine, type: example, jsonl_fpath: y}\n",
    )
    data = next(data for data in asked("d.yaml").datasets if data.name == "mine")
    assert (data.agent, data.resources_server) == ("sums_simple_agent", "sums")


def test_an_environment_server_binds_an_agent_to_the_datasets_of_a_resources_server(tree: Path) -> None:
    put(
        tree,
        "d.yaml",
        """
tasks:
  resources_servers:
    tasks: {datasets: [{name: mine, type: example, jsonl_fpath: y}]}
harness:
  responses_api_agents:
    pi_agent: {entrypoint: app.py}
bound:
  environment_servers:
    single_agent:
      resources_server: {type: resources_servers, name: tasks}
      agent_server: {type: responses_api_agents, name: harness}
""",
    )
    config = asked("d.yaml")
    assert not config.problems
    assert [(data.agent, data.resources_server) for data in config.datasets] == [("harness", "tasks")]


# -- what cannot be read --------------------------------------------------------------------------


def test_broken_yaml_is_told_with_line_and_column(tree: Path) -> None:
    put(tree, "bad.yaml", "a: 1\nb: [1, 2\nc: 3\n")
    with pytest.raises(Unreadable, match=r"bad\.yaml, line 3, column 2, is not valid YAML"):
        asked("bad.yaml")


def test_every_file_that_cannot_be_used_is_told_at_once(tree: Path) -> None:
    put(tree, "x.yaml", "a: [\n")
    put(tree, "top.yaml", "config_paths:\n- x.yaml\n- resources_servers/sums/configs/sum.yaml\n")
    with pytest.raises(Unreadable) as error:
        asked("top.yaml")
    assert "2 files cannot be used" in error.value.message
    assert "x.yaml, line 2" in error.value.message
    assert "top.yaml:3: config_paths names" in error.value.message


def test_a_path_that_is_nowhere_gets_a_guess(tree: Path) -> None:
    put(tree, "top.yaml", "config_paths:\n- resources_servers/sums/configs/sum.yaml\n")
    with pytest.raises(UsageError) as error:
        asked("top.yaml")
    assert "did you mean resources_servers/sums/configs/sums.yaml?" in error.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "line 2, column 1, has the key a twice, first in line 1"),
        ("- a\n", "no mapping"),
        ("config_paths: x.yaml\n", "no list of paths"),
        ("a: &a [*a]\n", "refers to itself"),
        ("a: !!python/object/apply:os.system [true]\n", "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
    ],
)
def test_other_broken_files_are_told(tree: Path, text: str, said: str) -> None:
    put(tree, "bad.yaml", text)
    with pytest.raises(BladeError) as error:
        asked("bad.yaml")
    assert said in error.value.message


def test_aliases_that_mean_billions_of_values_are_refused() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(Unreadable, match="more than 200,000 values"):
        tree_of("\n".join(levels), Path("bomb.yaml"))


@pytest.mark.parametrize("opener", ["[", "{a: ", "- ", "? "])
def test_a_file_that_nests_without_end_is_refused(opener: str) -> None:
    with pytest.raises(Unreadable, match="nests more than 100 levels"):
        tree_of(opener * 50_000, Path("deep.yaml"))
    flat = "a: [" + ", ".join(["[x]"] * 2_000) + "]"
    assert len(tree_of(flat, Path("flat.yaml"))["a"]) == 2_000


def test_values_are_read_as_omegaconf_reads_them(tree: Path) -> None:
    text = "a: 1e-3\nb: 2024-01-01\nc: yes\nd: 0x10\ne: '1'\nf: 1.5\ng: ~\n"
    put(tree, "a.yaml", text)
    from omegaconf import OmegaConf

    assert asked("a.yaml").tree == OmegaConf.to_container(OmegaConf.load(tree / "a.yaml"))


def test_a_value_that_cannot_be_used_is_told_with_its_key(tree: Path) -> None:
    put(tree, "a.yaml", "a:\n  b: [x, 'costs ${5']\n")
    with pytest.raises(UsageError, match=r"a\.yaml: a\.b\.1 cannot be used, 'costs \$\{5'"):
        asked("a.yaml")
    put(tree, "a.yaml", "a:\n  b: [x, 'costs \\${5}']\n")
    assert asked("a.yaml").tree == {"a": {"b": ["x", "costs ${5}"]}}


def test_what_the_command_line_says_wrongly_is_told_of_the_command_line(tree: Path) -> None:
    key = "sums_simple_agent.responses_api_agents.simple_agent.resources_server.name"
    (problem,) = told(
        asked("resources_servers/sums/configs/sums.yaml", overrides=(f"{key}=nobody",)), "error"
    )
    assert problem.startswith("command line: sums_simple_agent")


def test_a_value_that_refers_to_itself_is_told(tree: Path) -> None:
    put(tree, "a.yaml", "a: ${b}\nb: ${a}\nc:\n  d: ${c}\n")
    assert {problem.path.split(".")[0] for problem in asked("a.yaml").of("error")} >= {"a", "b", "c"}


# -- overrides ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_text", "value"),
    [
        ("a=4", 4), ("a=0.5", 0.5), ("a=true", True), ("a=null", None), ("a=", ""), ("a=[1,x]", [1, "x"]),
        ("a={b:1,c:{d:x}}", {"b": 1, "c": {"d": "x"}}), ("a={u:http://x:80/y}", {"u": "http://x:80/y"}),
        ("a=http://x:80", "http://x:80"), ("a='4'", "4"), ("a=one: two", "one: two"), ("a=x=y", "x=y"),
        ("a=a,b", "a,b"), ("a=#x", "#x"), ("a=*x", "*x"),
    ],
)  # fmt: skip
def test_the_values_of_overrides(given_text: str, value: Any) -> None:
    assert parsed(given_text).value == value


@pytest.mark.parametrize("given_text", ["a", "=4", "a..b=1", "a b=1", "a=[1", "~"])
def test_what_is_no_override_is_refused(given_text: str) -> None:
    with pytest.raises(UsageError):
        parsed(given_text)


def test_overrides_come_before_inheriting_and_those_into_lists_after_it(tree: Path) -> None:
    agent = "addition_sums_simple_agent.responses_api_agents.simple_agent"
    overrides = (
        "++sums.resources_servers.sums.should_use_judge=true",
        f"{agent}.datasets.0.num_repeats=2",
        f"~{agent}.model_server",
    )
    config = resolved(Asked(benchmarks=("addition",), overrides=overrides, environ={}))
    server = config.server("addition_sums_resources_server")
    assert server is not None
    assert server.settings["should_use_judge"] is True
    assert config.datasets[0].num_repeats == 2


def test_an_override_of_a_key_that_is_not_there_is_an_error_unless_it_says_so(tree: Path) -> None:
    file = "resources_servers/sums/configs/sums.yaml"
    wrong = "sums.resources_servers.sums.should_use_judg=true"
    (error,) = told(asked(file, overrides=(wrong,)), "error")
    assert "did you mean sums.resources_servers.sums.should_use_judge?" in error
    for plus in ("+", "++"):
        assert not asked(file, overrides=(f"{plus}{wrong}",)).of("error", "warning")
    (error,) = told(asked(file, overrides=("num_repeat=4",)), "error")
    assert "did you mean num_repeats?" in error
    with pytest.raises(UsageError, match="num_repeat is not in the config"):
        insist(asked(file, overrides=("num_repeat=4", *MODEL)))
    known = ("num_repeats=4", "skills.path=x", "responses_create_params.top_k=3", "default_host=x", *MODEL)
    assert not asked(file, overrides=known).of("error", "warning")


def test_a_key_that_is_inherited_or_was_given_before_is_there(tree: Path) -> None:
    server = "addition_sums_resources_server.resources_servers.sums"
    entry = "addition_sums_simple_agent.responses_api_agents.simple_agent.datasets.0"
    for good in (f"{server}.should_use_judge=true", f"{entry}.num_repeats=2", f"+{entry}.num_repeat=2"):
        config = resolved(Asked(benchmarks=("addition",), overrides=(good,), environ={}))
        assert not config.of("error"), good
    for bad in (f"{server}.should_use_judg=true", f"{entry}.num_repeat=2"):
        config = resolved(Asked(benchmarks=("addition",), overrides=(bad,), environ={}))
        assert [problem.path for problem in config.of("error")] == [bad.split("=")[0]]
        assert "did you mean" in told(config, "error")[0]
    again = (f"+{server}.fresh=1", f"{server}.fresh=2")
    assert not resolved(Asked(benchmarks=("addition",), overrides=again, environ={})).of("error")


def test_a_new_key_at_the_top_that_nothing_reads_is_told(tree: Path) -> None:
    put(tree, "a.yaml", "x: ${level}\ny: {_copy: source}\n")
    (warning,) = told(asked("a.yaml", overrides=("+num_repeat=2",)), "warning")
    assert "nothing reads num_repeat; did you mean num_repeats?" in warning
    block = "+s={resources_servers: {s: {entrypoint: app.py}}}"
    for read in ("+level=3", "+source.z=1", "++num_repeats=2", block):
        assert not asked("a.yaml", overrides=(read,)).of("warning"), read


def test_the_settings_of_a_run_are_known_to_the_configuration() -> None:
    assert set(benchmark_run.KEYS) <= RUN


# -- roots ----------------------------------------------------------------------------------------


def test_the_first_root_wins_and_the_shadowed_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "here/benchmarks/x/config.yaml", "x: here\n")
    put(tmp_path, "there/benchmarks/x/config.yaml", "x: there\n")
    put(tmp_path, "extra/benchmarks/x/config.yaml", "x: extra\n")
    monkeypatch.chdir(tmp_path / "here")
    assert resolved(Asked(benchmarks=("x",), environ={})).tree == {"x": "here"}
    environ = {"NEMO_GYM_EXTRA_ROOTS": str(tmp_path / "extra")}
    assert resolved(Asked(benchmarks=("x",), environ=environ)).tree == {"x": "extra"}
    config = resolved(Asked(benchmarks=("x",), search_dirs=("../there",), environ=environ))
    assert config.tree == {"x": "there"}
    (warning,) = told(config, "warning")
    assert str(tmp_path / "here" / "benchmarks/x/config.yaml") in warning


def test_the_roots_are_folders_each_once_and_end_with_ours(tmp_path: Path) -> None:
    under = roots([str(tmp_path), str(tmp_path)], {}, tmp_path)
    assert under[0] == tmp_path.resolve()
    assert len(under) == len(set(under)) == 2
    assert found("responses_api_models/openai_model/configs/openai_model.yaml", under).is_file()
    with pytest.raises(UsageError, match="not a folder"):
        roots([str(tmp_path / "nowhere")], {}, tmp_path)


def test_an_unknown_name_gets_a_guess(tree: Path) -> None:
    with pytest.raises(UsageError) as error:
        resolved(Asked(benchmarks=("adition",), environ={}))
    assert "did you mean addition" in error.value.hint
    with pytest.raises(UsageError) as error:
        resolved(Asked(resources_servers=("sums/judge",), environ={}))
    assert "sums/judged" in error.value.hint


# -- secrets --------------------------------------------------------------------------------------


def test_secrets_are_hidden_wherever_they_stand() -> None:
    secret = "sk-abcdef123456"
    shown = hidden(
        {
            "openai_api_key": secret,
            "headers": {"x": f"Bearer {secret}"},
            "hfToken": "abc",
            "url": "https://me:pass@host/v1?api_key=zzz&a=b",
            "password": 12345678,
            "tokens": {"a": "b"},
        },
        {},
    )
    assert shown == {
        "openai_api_key": "****",
        "headers": {"x": "Bearer ****"},
        "hfToken": "****",
        "url": "https://****@host/v1?api_key=****&a=b",
        "password": "****",
        "tokens": {"a": "****"},
    }


def test_what_only_sounds_like_a_secret_is_shown() -> None:
    plain = {
        "max_output_tokens": 4096,
        "tokenizer": "t",
        "keyword": "k",
        "api_key": "???",
        "token": "${hf}",
        "secret": None,
    }
    block = {"token_key_agent": {"resources_servers": {"x": {"entrypoint": "app.py"}}}}
    assert hidden(plain | block, {}) == plain | block


def test_secrets_of_the_environment_are_hidden_in_a_value_that_took_them(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "very-secret-value")
    put(tree, "a.yaml", "a: x-${oc.env:SOME_SERVICE_TOKEN}\n")
    assert hidden(asked("a.yaml").tree) == {"a": "x-****"}


# -- hostile configurations -----------------------------------------------------------------------

DOUBLING = "x0: aaaaaaaaaa\n" + "".join(f"x{i}: ${{x{i - 1}}}${{x{i - 1}}}\n" for i in range(1, 40))
NODES = "x0: [1, 2]\n" + "".join(f"x{i}: {{p: '${{x{i - 1}}}', q: '${{x{i - 1}}}'}}\n" for i in range(1, 30))
DEEP = "x: '" + "${oc.env:V," * 400 + "a" + "}" * 400 + "'\n"


@pytest.mark.parametrize(
    ("text", "overrides", "slug"),
    [
        (DOUBLING, (), "bad-config-value"),
        (NODES, (), "bad-config-value"),
        (DEEP, (), "bad-config-value"),
        ('config_paths: ["."]\n', (), "no-config-file"),
        ("a: 1\n", (f"++{'.'.join('a' * 3000)}=1",), "bad-override"),
    ],
    ids=["doubled text", "doubled nodes", "deep", "a folder", "3,000 parts"],
)
def test_a_hostile_configuration_is_a_usage_error(
    text: str, overrides: tuple[str, ...], slug: str, tmp_path: Path
) -> None:
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        resolved(Asked(paths=("c.yaml",), overrides=overrides, folder=tmp_path, environ={}))
    assert raised.value.slug == slug
    assert len(raised.value.message) < 1000


def test_a_file_without_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 1000)
    monkeypatch.setattr(sources, "MOST_BYTES", 1000)
    zero = Path("/dev/zero")
    for read in (inputs.load_prompt, sources.loaded):
        with pytest.raises(Unreadable, match="larger than 1,000 bytes"):
            read(zero)
