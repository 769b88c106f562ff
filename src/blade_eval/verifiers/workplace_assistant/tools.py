"""Answer the tools of the office: check arguments, look records up, change them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import msgspec

from blade_eval.expressions import table
from blade_eval.verifiers.workplace_assistant import world
from blade_eval.verifiers.workplace_assistant.world import OWNER, TODAY, Record, State, by_address

Arguments = dict[str, Any]
Answer = dict[str, Any]

PAGE = 5  # results of a search on one page
NEW = 50_000  # ids of new records lie above, so that none is that of a deleted one
NOW = f"{TODAY} 09:00"  # the clock of the office stands still


class Argument(msgspec.Struct, frozen=True, array_like=True):
    """What an argument holds: the rule by which it is read, and what it is about."""

    rule: str
    about: str = ""

    def schema(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"type": "integer" if self.rule in ("count", "page") else "string"}
        if self.about:
            shown["description"] = self.about
        if self.rule in CHOICES:
            shown["enum"] = list(CHOICES[self.rule])
        return shown


class Tool(msgspec.Struct, frozen=True):
    about: str
    arguments: dict[str, Argument]
    required: tuple[str, ...] = ()


class Search(msgspec.Struct, frozen=True):
    """How a table is searched: by which fields, on which day, in which words; and what a page shows."""

    among: dict[str, str]  # argument to field
    days: tuple[str, str, str]  # the field, and the arguments that are the first and the last day
    words: tuple[str, ...]
    shown: tuple[str, ...]
    order: str
    is_newest_first: bool = False


class _Office(msgspec.Struct, frozen=True):
    choices: dict[str, tuple[str, ...]]
    searches: dict[str, Search]
    tools: dict[str, Tool]


_OFFICE = msgspec.convert(table("verifiers/workplace_assistant/tools.yaml"), _Office)
CHOICES, SEARCHES, TOOLS = _OFFICE.choices, _OFFICE.searches, _OFFICE.tools


class Refused(Exception):
    """The tool does not do it; the text is its answer."""


# ---- Arguments ---------------------------------------------------------------------------------


def checked(name: str, tool: Tool, inputs: Mapping[str, Any]) -> Arguments:
    """The arguments as the tool uses them; absent and null ones are left out."""
    unknown = [key for key in inputs if key not in tool.arguments]
    if unknown:
        raise Refused(f"unknown argument {unknown[0]!r}; {name} takes {', '.join(tool.arguments)}")
    present = {key: value for key, value in inputs.items() if value is not None and value != ""}
    missing = [key for key in tool.required if key not in present]
    if missing:
        raise Refused(f"missing argument {', '.join(map(repr, missing))}")
    return {key: read(key, tool.arguments[key].rule, value) for key, value in present.items()}


def read(key: str, rule: str, value: Any) -> Any:
    """One argument by its rule."""
    if rule in ("count", "page"):
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 999_999:
            raise Refused(f"{key} must be a whole number from 1 on, got {value!r:.60}")
        return value
    if not isinstance(value, str):
        raise Refused(f"{key} must be a string, got {value!r:.60}")
    value = value.encode("utf-8", "replace").decode()  # half a surrogate pair could not be written again
    try:
        if rule == "day":
            return date.fromisoformat(value.strip()).isoformat()
        if rule == "moment":
            return datetime.strptime(value.strip(), "%Y-%m-%d %H:%M").strftime("%Y-%m-%d %H:%M")
    except ValueError:
        form = "a date as YYYY-MM-DD" if rule == "day" else "a time as YYYY-MM-DD HH:MM"
        raise Refused(f"{key} must be {form}, got {value!r:.60}") from None
    if rule == "colleague" and value.strip().lower() not in by_address():
        raise Refused(f"{key} {value!r:.80} is not in the company directory")
    if rule in CHOICES:
        for choice in CHOICES[rule]:
            if choice.lower() == value.strip().lower():
                return choice
        raise Refused(f"{key} must be one of {', '.join(CHOICES[rule])}; got {value!r:.60}")
    return value.strip().lower() if rule == "colleague" else value


# ---- What tools find ---------------------------------------------------------------------------


def find_people(_: State, inputs: Arguments) -> Answer:
    """Matching the whole name: a first name is everybody who has it."""
    wanted = inputs["name"].strip().lower()
    people = [person for person in world.staff() if wanted in person.name.lower() or wanted == person.address]
    if not people:
        raise Refused(f"nobody in the directory is called {inputs['name']!r:.60}")
    shown = [
        {"name": person.name, "email": person.address, "role": f"{person.title}, {person.department}"}
        for person in people[:10]
    ]
    return {"total": len(people), "results": shown}


def record(state: State, table: str, ident: str) -> Record:
    row = state.tables[table].get(ident)
    if row is None:
        raise Refused(f"no {table.removesuffix('s')} has the id {ident!r:.40}")
    return row


def get(state: State, table: str, inputs: Arguments) -> Answer:
    ident = inputs[id_of(table)]
    return {id_of(table): ident, **record(state, table, ident)}


def id_of(table: str) -> str:
    return f"{table.removesuffix('s')}_id"


def search(state: State, table: str, inputs: Arguments) -> Answer:
    """A page of the records that fit."""
    rule = SEARCHES[table]
    rows = sorted(fitting(state, table, inputs), key=lambda item: item[1][rule.order], reverse=rule.is_newest_first)
    page, pages = inputs.get("page", 1), max(1, -(-len(rows) // PAGE))
    if page > pages:
        raise Refused(f"page {page} does not exist, there are {pages}")
    results = [
        {id_of(table): ident, **{field: row[field] for field in rule.shown}}
        for ident, row in rows[PAGE * (page - 1) : PAGE * page]
    ]
    return {"total": len(rows), "page": page, "pages": pages, "results": results}


def fitting(state: State, table: str, inputs: Arguments) -> Iterator[tuple[str, Record]]:
    """Records that hold each text given, between the days given, both included."""
    rule = SEARCHES[table]
    when, first, last = rule.days[0], inputs.get(rule.days[1]) or "", inputs.get(rule.days[2]) or "9999"
    wanted = {field: inputs[key].strip().lower() for key, field in rule.among.items() if inputs.get(key)}
    query_words = (inputs.get("query") or "").lower().split()
    for ident, row in state.tables[table].items():
        if first <= row[when][:10] <= last and all(value in row[field].lower() for field, value in wanted.items()):
            text = " ".join(row[field] for field in rule.words).lower() if query_words else ""
            if all(word in text for word in query_words):
                yield ident, row


def _between(inputs: Arguments) -> list[Record]:
    if inputs["date_min"] > inputs["date_max"]:
        raise Refused("date_min lies after date_max")
    return [row for row in world.visits() if inputs["date_min"] <= row["date"] <= inputs["date_max"]]


def count_visits(_: State, inputs: Arguments) -> Answer:
    rows = _between(inputs)
    if "source" in inputs:
        rows = [row for row in rows if row["source"] == inputs["source"]]
    if "engaged" in inputs:
        rows = [row for row in rows if row["engaged"] == (inputs["engaged"] == "yes")]
    return {"total": len(rows)}


def average_duration(_: State, inputs: Arguments) -> Answer:
    rows = _between(inputs)
    if not rows:
        raise Refused("there are no visits in this span")
    return {"total": round(sum(row["duration_seconds"] for row in rows) / len(rows)), "visits": len(rows)}


def traffic_sources(_: State, inputs: Arguments) -> Answer:
    rows = _between(inputs)
    return {source: sum(row["source"] == source for row in rows) for source in CHOICES["sources"]}


# ---- What tools change: each adds, replaces or removes one record ---------------------------------


def _add(state: State, table: str, fields: dict[str, Any]) -> Answer:
    rows = state.tables[table]
    ident = f"{max([NEW, *map(int, rows)]) + 1:08d}"
    rows[ident] = MappingProxyType(fields)
    return {"ok": True, id_of(table): ident}


def update(state: State, table: str, inputs: Arguments) -> Answer:
    """Other values for fields of a record."""
    key = id_of(table)
    before = record(state, table, inputs[key])
    changes = {field: value for field, value in inputs.items() if field != key}
    if not changes:
        raise Refused("nothing to change was given")
    if "event_start" in changes:
        _need_free(state, changes["event_start"], inputs[key])
    state.tables[table][inputs[key]] = MappingProxyType({**before, **changes})
    return {"ok": True, key: inputs[key], "changed": sorted(changes)}


def delete(state: State, table: str, inputs: Arguments) -> Answer:
    ident = inputs[id_of(table)]
    record(state, table, ident)
    del state.tables[table][ident]
    return {"ok": True, "deleted": ident}


def _recipient(state: State, value: str) -> str:
    address = value.strip().lower()
    customers = {row["customer_email"] for row in state.tables["customers"].values()}
    if address not in by_address() and address not in customers:
        raise Refused(f"recipient {value!r:.80} is no known address; nothing was sent")
    return address


def _send(state: State, recipient: str, subject: str, body: str) -> Answer:
    fields = {"sender": OWNER, "recipient": recipient, "subject": subject, "sent_at": NOW, "body": body}
    answer = _add(state, "emails", fields)
    state.sent.append(state.tables["emails"][answer["email_id"]])
    return answer


def reply_email(state: State, inputs: Arguments) -> Answer:
    mail = record(state, "emails", inputs["email_id"])
    return _send(state, mail["sender"], f"Re: {mail['subject']}", inputs["body"])


def forward_email(state: State, inputs: Arguments) -> Answer:
    mail = record(state, "emails", inputs["email_id"])
    return _send(state, _recipient(state, inputs["recipient"]), f"Fwd: {mail['subject']}", mail["body"])


def create_event(state: State, inputs: Arguments) -> Answer:
    _need_free(state, inputs["event_start"])
    return _add(state, "events", dict(inputs))


def _need_free(state: State, start: str, but: str = "") -> None:
    for ident, row in state.tables["events"].items():
        if row["event_start"] == start and ident != but:
            raise Refused(f"there is already an event at {start} ({ident}); nothing was booked")


def add_customer(state: State, inputs: Arguments) -> Answer:
    name = inputs["customer_name"].strip().lower()
    if any(row["customer_name"].lower() == name for row in state.tables["customers"].values()):
        raise Refused(f"a customer called {inputs['customer_name']!r:.60} already exists")
    blank = {"status": "Lead", "last_contact_date": str(TODAY), "follow_up_by": "", "notes": ""}
    return _add(state, "customers", {**blank, **inputs})


def create_plot(state: State, inputs: Arguments) -> Answer:
    _between(inputs)
    name = f"{inputs['metric']}_{inputs['date_min']}_{inputs['date_max']}_{inputs['plot_type']}"
    return {**_add(state, "plots", dict(inputs)), "file": f"plots/{name.replace(' ', '_')}.png"}


# ---- The tools ---------------------------------------------------------------------------------


# What a tool `…_search_emails` does is its verb with a table; the others have functions of their own.
VERBS = {"search": search, "get": get, "update": update, "delete": delete}
OWN: dict[str, Callable[[State, Arguments], Answer]] = {
    "company_directory_find_email_address": find_people,
    "email_send_email": lambda state, inputs: _send(
        state, _recipient(state, inputs["recipient"]), inputs["subject"], inputs["body"]),
    "email_reply_email": reply_email, "email_forward_email": forward_email,
    "calendar_create_event": create_event,
    "project_management_create_task": lambda state, inputs: _add(state, "tasks", dict(inputs)),
    "customer_relationship_manager_add_customer": add_customer,
    "analytics_count_visits": count_visits, "analytics_average_duration": average_duration,
    "analytics_traffic_sources": traffic_sources, "analytics_create_plot": create_plot,
}


def schemas() -> list[dict[str, Any]]:
    """The tools as a request lists them."""
    return [
        {
            "type": "function", "name": name, "description": tool.about,
            "parameters": {
                "type": "object", "properties": {key: argument.schema() for key, argument in tool.arguments.items()},
                "required": list(tool.required),
            },
            "strict": False,
        }
        for name, tool in TOOLS.items()
    ]  # fmt: skip


def call(state: State, name: str, inputs: Any) -> str:
    """A tool's answer as text; what it cannot do is an answer too, and changes nothing."""
    tool = TOOLS.get(name)
    if tool is None:
        return f"Error: there is no tool {name!r:.80}."
    if not isinstance(inputs, Mapping):
        return f"Error: the arguments of {name} must be a JSON object."
    _, verb, noun = name.rsplit("_", 2)
    try:
        arguments = checked(name, tool, inputs)
        own = OWN.get(name)
        answer = own(state, arguments) if own else VERBS[verb](state, f"{noun.removesuffix('s')}s", arguments)
    except Refused as refused:
        return f"Error: {refused}."
    return msgspec.json.encode(answer).decode()
