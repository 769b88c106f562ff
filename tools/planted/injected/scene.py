"""One simulated rollout while it is written: its task, its items, what the verifier says of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tools.planted import items
from tools.planted.items import Item, encode

Key = tuple[int, int]  # task index, repeat
MODEL, AGENT = "sim-model-a", "sim_injected_agent"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a domain; the same number and options are the same task in every run."""

    number: int
    asked: Item  # the request
    fields: Item  # what the dataset says beside it; echoed into every row
    facts: Mapping[str, str]  # what the domain knows of its world


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of work: how its tasks look, are solved, are missed, and are judged."""

    task: Callable[[int, frozenset[str]], Task]
    solve: Callable[[Scene], None]
    miss: Callable[[Scene, int], None]  # the same variant is the same wrong content
    reply: Callable[[Task, str, Item], str]  # what a tool answers
    judge: Callable[[Scene], Item]  # reward and verifier fields
    also: tuple[str, ...]  # what rules may read into wrong content


@dataclass
class Scene:
    """A rollout that an injection may still change."""

    domain: Domain
    task: Task
    key: Key
    options: frozenset[str]
    rng: Random
    run: dict[Key, Scene]  # all rollouts of the run, for what only shows between them
    solved: bool = True
    variant: int = 0  # of the wrong content, where it is not solved
    output: list[Item] = field(default_factory=list)
    fields: Item = field(default_factory=dict)  # instead of the task's own
    response: Item = field(default_factory=dict)  # status, error and the like, where not as usual
    used: dict[str, int] = field(default_factory=dict)  # token counts, where not as long as the text
    ruled: Item = field(default_factory=dict)  # what the verifier says, whatever the output is

    @property
    def facts(self) -> Mapping[str, str]:
        return self.task.facts

    @property
    def parity(self) -> int:
        """Alternates between the repeats of a task, so that no order of reads is ever the rule."""
        return sum(self.key) % 2

    def ident(self) -> str:
        return f"{self.rng.getrandbits(48):012x}"

    def thought(self, text: str) -> Item:
        return items.reasoning(self.ident(), text)

    def said(self, text: str) -> Item:
        return items.message(self.ident(), text)

    def heard(self, text: str) -> Item:
        """A turn of the simulated user."""
        content = [{"type": "input_text", "text": text}]
        return {"id": f"msg_{self.ident()}", "type": "message", "role": "user", "content": content}

    def made(self, tool: str, arguments: Item, result: str | None = None) -> list[Item]:
        """A call and its result; the domain answers unless the result is given."""
        ident = self.ident()
        told = self.domain.reply(self.task, tool, arguments) if result is None else result
        return [items.call(ident, tool, arguments), items.result(ident, told)]

    def use(self, tool: str, arguments: Item, result: str | None = None) -> None:
        self.output += self.made(tool, arguments, result)

    def think(self, text: str) -> None:
        self.output.append(self.thought(text))

    def say(self, text: str) -> None:
        self.output.append(self.said(text))

    def calls(self, *tools: str) -> list[int]:
        """Where the calls of these tools stand; of all tools if none is named."""
        return [
            at
            for at, item in enumerate(self.output)
            if item["type"] == "function_call" and (not tools or item["name"] in tools)
        ]

    def result_of(self, at: int) -> int | None:
        wanted = self.output[at]["call_id"]
        for place, item in enumerate(self.output):
            if item["type"] == "function_call_output" and item["call_id"] == wanted:
                return place
        return None

    def arguments(self, at: int) -> Item:
        """The arguments of a call; empty when they are no object."""
        try:
            found = json.loads(self.output[at]["arguments"])
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def rewrite(self, at: int, **changed: Any) -> None:
        """Change arguments of a call."""
        self.output[at]["arguments"] = encode({**self.arguments(at), **changed}).decode()

    def insert(self, at: int, new: Sequence[Item]) -> None:
        self.output[at:at] = new

    def cut(self, at: int) -> None:
        """Forget everything from an item on; the thought right before it goes too."""
        while at and self.output[at - 1]["type"] == "reasoning":
            at -= 1
        del self.output[at:]

    def end(self, at: int, text: str) -> int:
        """End the rollout before an item with a closing message; where that message stands."""
        self.cut(at)
        self.say(text)
        return self.last

    @property
    def last(self) -> int:
        return len(self.output) - 1

    @property
    def final(self) -> str:
        """The assistant's text after the last call."""
        texts: list[str] = []
        for item in reversed(self.output):
            if item["type"] in ("function_call", "function_call_output") or item.get("role") == "user":
                break
            if item["type"] == "message":
                texts.append(text_of(item))
        return "\n".join(reversed(texts)).strip()

    def tools(self) -> set[str]:
        return {self.output[at]["name"] for at in self.calls()}


def text_of(item: Item) -> str:
    """The text of a message or of a thought."""
    parts = item.get("content") or item.get("summary") or ()
    return "".join(part.get("text", "") for part in parts)


def row_of(scene: Scene) -> Item:
    """The row as Gym writes it."""
    index, repeat = scene.key
    asked = scene.task.asked
    thoughts = [item for item in scene.output if item["type"] == "reasoning"]
    n_input, n_output = len(encode(asked)) // 4, len(encode(scene.output)) // 4
    counted = {"input": n_input, "output": n_output, "reasoning": len(encode(thoughts)) // 4, **scene.used}
    used = items.usage(counted["input"], counted["output"], min(counted["reasoning"], counted["output"]))
    ident = f"{Random(f'{scene.key}/{len(scene.output)}').getrandbits(64):016x}"
    response = {**items.response(ident, MODEL, scene.output, used), **scene.response}
    return {
        "responses_create_params": asked,
        "response": response,
        **scene.domain.judge(scene),
        **scene.ruled,
        **(scene.fields or scene.task.fields),
        "_ng_task_index": index,
        "_ng_rollout_index": repeat,
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
    }


def request(system: str, user: str, tools: Sequence[Item], limit: int = 4096) -> Item:
    """The request as Gym sends it."""
    return {
        "input": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "tools": list(tools),
        "temperature": 1.0,
        "top_p": None,
        "max_output_tokens": limit,
        "parallel_tool_calls": False,
        "metadata": None,
    }
