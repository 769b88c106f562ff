"""What is a secret, where it is hidden, and what only looks like one: in configs, commands and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.errors import UsageError
from blade_eval.config import Asked, hidden, resolved
from blade_eval.config.secret import hidden_command, without
from blade_eval.runner.run_manifest import masked


@pytest.mark.parametrize(
    "tree",
    [
        {"pwd": "SECRETpwd"},
        {"auth": "SECRETauth"},
        {"access": {"bearer": "SECRETbearer"}},
        {"cookie": "SECRET"},
        {"pat": "ghp_SECRETpat"},
        {"api-key": "SECRET"},
        {"headers": ["Authorization: Bearer SECRETlist"]},
        {"headers": "{'X-Api-Key': 'SECRET'}"},
        {"x": "Bearer sk-SECRETinline0000"},
        {"x": "https://host/v1?auth=SECRET&a=b"},
        {"x": "https://host/v1?a=b&sig=SECRET"},
        {"x": "postgres://u:SECRETp/w@host/db"},
        {"x": "postgres://u:p@SECRETtail@host/db"},
        {"x": "https://SECRET@host"},
    ],
)
def test_a_secret_is_hidden_whatever_its_key_is_called(tree: dict[str, Any]) -> None:
    assert "SECRET" not in str(hidden(tree, {}))


@pytest.mark.parametrize(
    "tree",
    [
        {"compat": "v1", "author": "me", "path": "/x", "patience": "3"},
        {"auth": None, "cookie": False},
        {"x": "https://host:8000/repo@main"},
        {"x": "https://host/@name/story"},
        {"x": "git+https://host/x?ref=a@b"},
        {"x": "http://[::1]:8000/x@y"},
        {"x": "https://host/v1?api-version=2024-02-01"},
        {"x": "The bearer of bad news brings basic arithmetic to every token there is."},
        {"x": "Find the answer key: it is B."},
        {"x": "Authorization: ${header}"},
    ],
)
def test_what_only_looks_like_a_secret_stands(tree: dict[str, Any]) -> None:
    assert hidden(tree, {}) == tree


def test_a_dummy_key_changes_no_name_and_no_other_word() -> None:
    tree = {
        "policy_api_key": "openai",
        "policy_model": {"responses_api_models": {"openai_model": {"name": "openai/m", "key": "openai"}}},
        "sk-very-long-key-of-a-mapping": 1,
        "other_key": "sk-very-long-key-of-a-mapping",
        "equal": "openai",
    }
    shown = hidden(tree, {"OPENAI_API_KEY": "openai"})
    assert list(shown) == list(tree)
    assert shown["policy_model"]["responses_api_models"]["openai_model"] == {
        "name": "openai/m",
        "key": "****",
    }
    assert shown["equal"] == "****"


def test_a_long_secret_is_hidden_inside_other_values_and_a_short_one_only_where_it_stands() -> None:
    tree = {"long_key": "abcdefgh", "short_key": "abc", "x": "an abcdefgh", "y": "abc-tail"}
    assert hidden(tree, {}) == {"long_key": "****", "short_key": "****", "x": "an ****", "y": "abc-tail"}


def test_where_one_stands_is_no_secret_of_the_environment() -> None:
    environ = {"PWD": "/home/me/work", "OLDPWD": "/home/me/before", "MYSQL_PWD": "horse-battery"}
    tree = {"a": "/home/me/work/x.yaml", "b": "/home/me/before/y.yaml", "c": "my horse-battery"}
    assert hidden(tree, environ) == tree | {"c": "my ****"}


def test_a_command_is_hidden_by_the_same_rules() -> None:
    words = [
        "blade", "--model-api-key", "sk-1234567", "--max-output-tokens", "100", "++x=a-sk-1234567-b",
        "++db.pwd=p", "++max_tokens=5", "--model-url", "postgres://u:p/w@h", "++token=${hf}",
    ]  # fmt: skip
    shown = hidden_command(words, {})
    assert shown == [
        "blade", "--model-api-key", "****", "--max-output-tokens", "100", "++x=a-****-b",
        "++db.pwd=****", "++max_tokens=5", "--model-url", "postgres://****@h", "++token=${hf}",
    ]  # fmt: skip
    assert masked(words) == shown  # the manifest has no rules of its own


@given(st.text("abcXYZ019-_/+=", min_size=6), st.text(max_size=20), st.text(max_size=20))
def test_no_text_keeps_a_secret_it_is_cleaned_of(secret: str, before: str, after: str) -> None:
    assert secret not in without(f"{before}{secret}{after}", [secret])


@pytest.mark.parametrize(
    "override",
    [
        "++policy_api_key=\"sk-SECRET${x\"",
        "++policy_api_key={sk-SECRET",
        "policy api_key=sk-SECRET",
        "++policy_api_key=[{a: sk-SECRET${x}]",
        "++servers.0.api_key=sk-SECRET${x",
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_key_is_told_without_it(override: str, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text("servers: [{api_key: x}]\n")
    with pytest.raises(UsageError) as told:
        resolved(Asked(overrides=(override,), environ={}, folder=tmp_path))
    assert "SECRET" not in f"{told.value.message} {told.value.hint}"
    assert "api_key" in told.value.message


def test_what_is_wrong_with_a_plain_value_is_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"greeting cannot be used, 'hello \$\{x'"):
        resolved(Asked(overrides=("++greeting=hello ${x",), environ={}, folder=tmp_path))
