"""What a task asks, as data: whom it names, what must be looked up, and which calls follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import msgspec

from blade_eval.verifiers.workplace_assistant.people import Person, by_address, namesakes
from blade_eval.verifiers.workplace_assistant.tools import call
from blade_eval.verifiers.workplace_assistant.world import State, fresh

Call = tuple[str, dict[str, Any]]
Found = dict[str, Any]


@dataclass(frozen=True)
class Named:
    """A person as a request speaks of them; a first name alone may be several people's."""

    said: str
    look: str  # what the directory is asked for
    address: str

    @property
    def namesakes(self) -> tuple[str, ...]:
        """The others of that first name."""
        first = by_address()[self.address].first
        return tuple(person.address for person in namesakes(first) if person.address != self.address)


@dataclass(frozen=True)
class Quest:
    """One task. In calls, `{0}` is the address of the first person, `{id}` a record, `{total}` a number."""

    category: str
    difficulty: Literal["easy", "medium", "hard"]
    request: str
    acts: tuple[Call, ...]
    people: tuple[Named, ...] = ()
    read: Call | None = None
    pick: Literal["all", "first"] = "all"
    limit: str | None = None  # the argument of `read` that is a date with a record on it
    condition: tuple[Literal["above", "any", "none"], int] | None = None  # on the total of `read`
    otherwise: tuple[Call, ...] = ()


def by_department(person: Person) -> Named:
    return Named(f"{person.first} in {person.department}", person.first, person.address)


def by_name(person: Person) -> Named:
    return Named(person.name, person.name, person.address)


def spoken(day: str | date) -> str:
    """A day as people write it."""
    when = date.fromisoformat(str(day))
    return f"{when.day} {when:%B}"


def filled(value: Any, people: Iterable[str], ident: str = "", total: int = 0) -> Any:
    """A template with its places filled."""
    if not isinstance(value, str):
        return value
    for place, address in enumerate(people):
        value = value.replace(f"{{{place}}}", address)
    return value.replace("{id}", ident).replace("{total}", str(total))


def made(act: Call, people: Iterable[str], ident: str = "", total: int = 0) -> Call:
    addresses = tuple(people)
    return act[0], {key: filled(value, addresses, ident, total) for key, value in act[1].items()}


def per_record(act: Call) -> bool:
    return "{id}" in act[1].values()


def pages(state: State, read: Call) -> Iterator[Found]:
    """The answers of a search, page after page; a count has one."""
    name, given = read
    answer: Found = msgspec.json.decode(call(state, name, given))
    yield answer
    for page in range(2, answer.get("pages", 1) + 1):
        yield msgspec.json.decode(call(state, name, {**given, "page": page}))


def idents(answers: Iterable[Found]) -> list[str]:
    """The ids that searches found, in their order."""
    return [
        str(next(value for key, value in row.items() if key.endswith("_id")))
        for answer in answers
        for row in answer.get("results", ())
    ]


def holds(quest: Quest, total: int) -> bool:
    """Whether the task's condition is met."""
    if quest.condition is None:
        return True
    kind, bound = quest.condition
    return total > bound if kind == "above" else (total > 0) == (kind == "any")


def consequences(quest: Quest, people: Iterable[str], found: list[str], total: int, met: bool) -> list[Call]:
    """The calls that follow from what was found."""
    addresses = tuple(people)
    picked = found[:1] if quest.pick == "first" else found
    calls: list[Call] = []
    for act in quest.acts if met else quest.otherwise:
        if per_record(act):
            calls += [made(act, addresses, ident, total) for ident in picked]
        else:
            calls.append(made(act, addresses, total=total))
    return calls


def truth(quest: Quest) -> list[Call]:
    """The calls that do what the task asks, and nothing else."""
    people = tuple(named.address for named in quest.people)
    found, total = [], 0
    if quest.read is not None:
        answers = list(pages(fresh(), made(quest.read, people)))
        found, total = idents(answers), answers[0]["total"]
    return consequences(quest, people, found, total, holds(quest, total))
