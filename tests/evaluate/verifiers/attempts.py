"""Attempts to be judged: a row, what a model said or called, and responses of every odd shape."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hypothesis import strategies as st

from blade_eval.environment import Attempt, Environment, Respond, Row, Unmeasured
from blade_eval.verifiers import environment

ROOT = Path(__file__).parents[3]
ANSWERS = yaml.safe_load((Path(__file__).parent / "answers.yaml").read_text("utf-8"))
SERVER = {"judge_model_server": {"type": "responses_api_models", "name": "policy_model"}}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 0}, "on": {"type": "string"}},
    "required": ["name", "size"], "additionalProperties": False,
}
INSTRUCTIONS: list[list[Any]] = ANSWERS["instructions"]


def message(text: Any, role: str = "assistant") -> Row:
    content = [{"type": "output_text", "text": text, "annotations": []}] if isinstance(text, str) else text
    return {"type": "message", "role": role, "content": content, "id": "msg_1", "status": "completed"}


def called(name: str, arguments: Any) -> Row:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {"type": "function_call", "name": name, "arguments": text, "call_id": "call_1"}


def put_out(item: Any) -> Any:
    """An output item: a text or what one `says` is a message, what is a `call` a function call; else as it is."""
    if isinstance(item, list):
        return list(map(put_out, item))
    if isinstance(item, str):
        return message(item)
    if "call" in item:
        return called(item["call"], item["arguments"]) | item.get("more", {})
    return message(item["says"], item.get("role", "assistant")) if "says" in item else item


def responded(*output: Any) -> Row:
    return {"id": "resp_1", "object": "response", "model": "m", "output": put_out(list(output))}


def judged(env: Environment, row: Row, *output: Any, ask: Respond | None = None) -> Row:
    """The verifier's fields for what the model put out; a text is an assistant message."""
    return asyncio.run(env.verify(Attempt(row, responded(*output), ask=ask)))


def reward(env: Environment, row: Row, *output: Any, ask: Respond | None = None) -> float:
    given = judged(env, row, *output, ask=ask)["reward"]
    assert isinstance(given, float)
    return given


class Judge:
    """A judge that gives the answers it was built with, in order, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Row] = []

    async def __call__(self, params: Row, row: Row) -> Row:
        self.asked.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(self.prompt())
        return responded(answer)

    def prompt(self) -> str:
        """The last prompt's text."""
        return str(self.asked[-1]["input"][-1]["content"])


def example(impl: str) -> list[Row]:
    lines = (ROOT / "resources_servers" / impl / "data" / "example.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def config(impl: str) -> Row:
    text = (ROOT / "resources_servers" / impl / "configs" / f"{impl}.yaml").read_text()
    tree: Row = yaml.safe_load(text)
    return tree


def shipped(impl: str) -> Environment:
    """The environment as its own config sets it up."""
    tree = config(impl)
    assert set(tree) == {impl, f"{impl}_simple_agent"}
    settings = tree[impl]["resources_servers"][impl]
    assert settings["domain"]
    assert settings["description"]
    assert settings["verified"] is False
    agent = tree[f"{impl}_simple_agent"]["responses_api_agents"]["simple_agent"]
    assert agent["resources_server"] == {"type": "resources_servers", "name": impl}
    assert agent["model_server"] == {"type": "responses_api_models", "name": "policy_model"}
    (dataset,) = agent["datasets"]
    assert dataset["jsonl_fpath"] == f"resources_servers/{impl}/data/example.jsonl"
    return environment(impl, settings)


texts = st.one_of(st.text(max_size=40), st.sampled_from(["\\boxed{", "}}", "<think>", "Answer:", "{}", "[", "B"]))
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
parts = st.one_of(plain, st.fixed_dictionaries({"type": st.just("output_text"), "text": st.one_of(texts, plain)}))
items = st.one_of(
    plain,
    st.fixed_dictionaries(
        {"type": st.just("message"), "content": st.one_of(texts, st.none(), st.lists(parts, max_size=3))}
    ),
    st.fixed_dictionaries({"type": st.just("function_call"), "name": plain, "arguments": plain}),
)
outputs = st.lists(st.one_of(items, st.lists(items, max_size=2)), max_size=3)
responses = st.one_of(plain, st.fixed_dictionaries({"output": st.one_of(outputs, plain)}))


def survives(env: Environment, row: Row, response: Any, ask: Respond | None = None) -> None:
    """Whatever the response is, there is a reward in [0, 1] or a failure that is not the model's."""
    try:
        fields = asyncio.run(env.verify(Attempt(row, response, ask=ask)))
    except Unmeasured:
        return
    assert isinstance(fields["reward"], float)
    assert 0 <= fields["reward"] <= 1
    msgspec.json.encode(fields)
