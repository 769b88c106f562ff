"""Read the office: its staff, mail, calendar, customers, visits and tasks, the same in every process."""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

TODAY = date(2026, 3, 18)  # a Wednesday
DOMAIN = "quillmarsh.example"  # a top-level domain that is reserved for examples
OWNER = f"ines.vardal@{DOMAIN}"  # for whom the assistant works
TABLES = {"emails": 310, "events": 140, "customers": 520, "tasks": 870, "plots": 0}  # and their first ids

Record = MappingProxyType[str, Any]  # a record is replaced, never changed: sessions share the unchanged ones
Table = dict[str, Record]


class Person(msgspec.Struct, frozen=True, array_like=True):
    """One entry of the directory."""

    first: str
    last: str
    department: str
    title: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def address(self) -> str:
        return f"{self.first}.{self.last}@{DOMAIN}".lower()


@cache
def _world() -> dict[str, list[list[Any]]]:
    """Tables by name, each with a line of its fields first; the directory has none."""
    world: dict[str, list[list[Any]]] = msgspec.json.decode((Path(__file__).parent / "world.json").read_bytes())
    return world


def _records(name: str) -> list[Record]:
    fields, *rows = _world()[name] or [[]]
    return [MappingProxyType(dict(zip(fields, row, strict=True))) for row in rows]


@cache
def staff() -> tuple[Person, ...]:
    """The directory by address; people of one first name are in different departments."""
    return msgspec.convert(_world()["staff"], tuple[Person, ...])


@cache
def by_address() -> dict[str, Person]:
    return {person.address: person for person in staff()}


class State(NamedTuple):
    """What one session sees: the tables as they are now, and all mail that left the office."""

    tables: dict[str, Table]
    sent: list[Record]  # a ledger: no tool takes back what was sent


def fresh() -> State:
    """The office as every task finds it."""
    return State({name: dict(table) for name, table in _tables().items()}, [])


@cache
def _tables() -> dict[str, Table]:
    return {
        name: {f"{first + place:08d}": row for place, row in enumerate(_records(name))}
        for name, first in TABLES.items()
    }


@cache
def visits() -> tuple[Record, ...]:
    """Visits to the website; no tool changes them."""
    return tuple(_records("visits"))
