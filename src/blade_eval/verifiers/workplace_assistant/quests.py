"""Read the tasks of the office: what each asks, and which calls would be right."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from blade_eval.expressions import table
from blade_eval.verifiers.workplace_assistant.tools import call, schemas
from blade_eval.verifiers.workplace_assistant.world import OWNER, TODAY, by_address, fresh, staff

Call = tuple[str, dict[str, Any]]


class Named(msgspec.Struct, frozen=True, array_like=True):
    """A person as a request speaks of them; a first name alone may be several people's."""

    look: str  # what the directory is asked for: a first name, or the whole
    address: str

    @property
    def said(self) -> str:
        return self.look if " " in self.look else f"{self.look} in {by_address()[self.address].department}"

    @property
    def namesakes(self) -> tuple[str, ...]:
        """The others of that first name."""
        first = by_address()[self.address].first
        others = (person.address for person in staff() if person.first == first)
        return tuple(address for address in others if address != self.address)


class Quest(msgspec.Struct, frozen=True):
    """One task. In calls, `{0}` is the address of the first person, `{id}` a record, `{total}` a number."""

    id: str
    difficulty: Literal["easy", "medium", "hard"]
    request: str
    acts: tuple[Call, ...]
    people: tuple[Named, ...] = ()
    read: Call | None = None
    pick: Literal["all", "first"] = "all"
    limit: str | None = None  # the argument of `read` that is a date with a record on it
    condition: tuple[Literal["above", "any", "none"], int] | None = None  # on the total of `read`
    otherwise: tuple[Call, ...] = ()

    @property
    def category(self) -> str:
        return self.id.partition("-")[0]


def spoken(day: str) -> str:
    """A day as people write it."""
    when = date.fromisoformat(day)
    return f"{when.day} {when:%B}"


def made(act: Call, people: Iterable[str], ident: str = "", total: int = 0) -> Call:
    """A call with its places filled."""
    places = {"{id}": ident, "{total}": str(total), **{f"{{{place}}}": address for place, address in enumerate(people)}}

    def filled(value: Any) -> Any:
        for place, content in places.items() if isinstance(value, str) else ():
            value = value.replace(place, content)
        return value

    return act[0], {key: filled(value) for key, value in act[1].items()}


def holds(quest: Quest, total: int) -> bool:
    """Whether the task's condition is met."""
    if quest.condition is None:
        return True
    kind, bound = quest.condition
    return total > bound if kind == "above" else (total > 0) == (kind == "any")


def consequences(quest: Quest, people: Iterable[str], entries: list[str], total: int, met: bool) -> list[Call]:
    """The calls that follow from what was found."""
    addresses = tuple(people)
    picked = entries[:1] if quest.pick == "first" else entries
    return [
        made(act, addresses, ident, total)
        for act in (quest.acts if met else quest.otherwise)
        for ident in (picked if "{id}" in act[1].values() else ("",))
    ]


def ident_of(fields: dict[str, Any]) -> str:
    """The first id among the fields of a record or a call."""
    return str(next((value for key, value in fields.items() if key.endswith("_id")), ""))


def truth(quest: Quest) -> list[Call]:
    """The calls that do what the task asks, and nothing else."""
    people = [named.address for named in quest.people]
    entries: list[str] = []
    total = 0
    if quest.read is not None:
        name, search = made(quest.read, people)
        answer = msgspec.json.decode(call(fresh(), name, search))
        total = answer["total"]
        for page in range(1, answer.get("pages", 0) + 1):  # a count has none
            rows = msgspec.json.decode(call(fresh(), name, {**search, "page": page}))["results"]
            entries += map(ident_of, rows)
    return consequences(quest, people, entries, total, holds(quest, total))


@cache
def quests() -> dict[str, Quest]:
    lines = (Path(__file__).parent / "quests.jsonl").read_bytes()
    return {quest.id: quest for quest in msgspec.json.Decoder(Quest).decode_lines(lines)}


TEXTS = table("verifiers/workplace_assistant/dataset.yaml")
POLICY = TEXTS["policy"].format(owner=OWNER, today=TODAY).strip()
AGENT = "workplace_assistant_simple_agent"
EXAMPLES = tuple(TEXTS["examples"].split())


def row(ident: str) -> dict[str, Any]:
    quest = quests()[ident]
    truths = [
        {"name": name, "arguments": msgspec.json.encode(search).decode()} for name, search in truth(quest)
    ]
    return {
        "task_id": ident,
        "responses_create_params": {
            "input": [{"role": "system", "content": POLICY}, {"role": "user", "content": quest.request}],
            "tools": schemas(), "parallel_tool_calls": True,
        },
        "ground_truth": truths,
        "category": quest.category,
        "difficulty": quest.difficulty,
        "no_change": not truths,  # a rollout that does nothing passes it
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
    }


def rows(idents: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
    return [row(ident) for ident in (quests() if idents is None else idents)]
