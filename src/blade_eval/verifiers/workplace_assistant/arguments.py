"""Check the arguments of a call as a tool would, and say in its words what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from blade_eval.verifiers.workplace_assistant.people import by_address

PAGE = 5  # results of a search on one page


class Refused(Exception):
    """The tool does not do it; the text is its answer."""


@dataclass(frozen=True)
class Kind:
    """What an argument holds: how a schema shows it, and by what rule it is read."""

    rule: str
    about: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False

    def schema(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"type": "integer" if self.rule in ("count", "page") else "string"}
        if self.about:
            shown["description"] = self.about
        if self.choices:
            shown["enum"] = list(self.choices)
        return shown


def text(about: str = "", *, required: bool = False) -> Kind:
    return Kind("text", about, required=required)


def day(about: str = "", *, required: bool = False) -> Kind:
    return Kind("day", about, required=required)


def moment(about: str = "YYYY-MM-DD HH:MM", *, required: bool = False) -> Kind:
    return Kind("moment", about, required=required)


def colleague(about: str = "", *, required: bool = False) -> Kind:
    return Kind("colleague", about, required=required)


def one_of(choices: tuple[str, ...], *, required: bool = False) -> Kind:
    return Kind("text", choices=choices, required=required)


def count(about: str = "", *, required: bool = False) -> Kind:
    return Kind("count", about, required=required)


NUMBER = Kind("page")
TEXT, DAY, IDENT = text(), day(), text(required=True)


def checked(name: str, kinds: Mapping[str, Kind], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the tool uses them; absent and null ones are left out."""
    unknown = [key for key in given if key not in kinds]
    if unknown:
        raise Refused(f"unknown argument {unknown[0]!r}; {name} takes {', '.join(kinds)}")
    found = {key: value for key, value in given.items() if value is not None and value != ""}
    missing = [key for key, kind in kinds.items() if kind.required and key not in found]
    if missing:
        raise Refused(f"missing argument {', '.join(map(repr, missing))}")
    return {key: read(key, kinds[key], value) for key, value in found.items()}


def read(key: str, kind: Kind, value: Any) -> Any:
    """One argument by its rule."""
    if kind.rule in ("count", "page"):
        return _whole(key, value)
    if not isinstance(value, str):
        raise Refused(f"{key} must be a string, got {value!r:.60}")
    value = value.encode("utf-8", "replace").decode()  # half a surrogate pair could not be written again
    if kind.rule == "day":
        return _day(key, value)
    if kind.rule == "moment":
        return _moment(key, value)
    if kind.rule == "colleague":
        return _colleague(key, value)
    if kind.choices:
        return _choice(key, kind.choices, value)
    return value


def _whole(key: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 999_999:
        raise Refused(f"{key} must be a whole number from 1 on, got {value!r:.60}")
    return value


def _day(key: str, value: str) -> str:
    try:
        return date.fromisoformat(value.strip()).isoformat()
    except ValueError:
        raise Refused(f"{key} must be a date as YYYY-MM-DD, got {value!r:.60}") from None


def _moment(key: str, value: str) -> str:
    try:
        return datetime.strptime(value.strip(), "%Y-%m-%d %H:%M").strftime("%Y-%m-%d %H:%M")
    except ValueError:
        raise Refused(f"{key} must be a time as YYYY-MM-DD HH:MM, got {value!r:.60}") from None


def _colleague(key: str, value: str) -> str:
    address = value.strip().lower()
    if address not in by_address():
        raise Refused(f"{key} {value!r:.80} is not in the company directory")
    return address


def _choice(key: str, choices: tuple[str, ...], value: str) -> str:
    for choice in choices:
        if choice.lower() == value.strip().lower():
            return choice
    raise Refused(f"{key} must be one of {', '.join(choices)}; got {value!r:.60}")
