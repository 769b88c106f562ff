"""Answer the tools of the office: check arguments, look records up, change them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import msgspec

from blade_eval.verifiers.workplace_assistant.world import (
    BOARDS,
    LISTS,
    OWNER,
    PRODUCTS,
    SOURCES,
    STATUSES,
    TODAY,
    Record,
    State,
    by_address,
    staff,
    visits,
)

Arguments = dict[str, Any]
Answer = dict[str, Any]
Run = Callable[[State, Arguments], Answer]

PAGE = 5  # results of a search on one page
NEW = 50_000  # ids of new records lie above, so that none is that of a deleted one
NOW = f"{TODAY} 09:00"  # the clock of the office stands still
CHOICES = {
    "boards": BOARDS, "lists": LISTS, "products": PRODUCTS, "sources": SOURCES, "statuses": STATUSES,
    "yes_no": ("yes", "no"), "metrics": ("visits", "engaged visits", "duration", "sources"),
    "plots": ("line", "bar", "histogram", "scatter"),
}


class Refused(Exception):
    """The tool does not do it; the text is its answer."""


# ---- Arguments ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What an argument holds: by what rule it is read, and how a schema shows it."""

    rule: str
    about: str
    required: bool

    def schema(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"type": "integer" if self.rule in ("count", "page") else "string"}
        if self.about:
            shown["description"] = self.about
        if self.rule in CHOICES:
            shown["enum"] = list(CHOICES[self.rule])
        return shown


def kinds_of(text: str) -> dict[str, Kind]:
    """Arguments written as `name!:rule about`, where `!` is for those that are needed."""
    kinds = {}
    for argument in filter(None, map(str.strip, text.split(","))):
        name, _, rest = argument.partition(":")
        rule, _, about = rest.partition(" ")
        about = about or ("YYYY-MM-DD HH:MM" if rule == "moment" else "")
        kinds[name.rstrip("!")] = Kind(rule or "text", about, name.endswith("!"))
    return kinds


def checked(name: str, kinds: Mapping[str, Kind], inputs: Mapping[str, Any]) -> Arguments:
    """The arguments as the tool uses them; absent and null ones are left out."""
    unknown = [key for key in inputs if key not in kinds]
    if unknown:
        raise Refused(f"unknown argument {unknown[0]!r}; {name} takes {', '.join(kinds)}")
    present = {key: value for key, value in inputs.items() if value is not None and value != ""}
    missing = [key for key, kind in kinds.items() if kind.required and key not in present]
    if missing:
        raise Refused(f"missing argument {', '.join(map(repr, missing))}")
    return {key: read(key, kinds[key].rule, value) for key, value in present.items()}


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
    people = [person for person in staff() if wanted in person.name.lower() or wanted == person.address]
    if not people:
        raise Refused(f"nobody in the directory is called {inputs['name']!r:.60}")
    shown = [
        {"name": person.name, "email": person.address, "role": f"{person.title}, {person.department}"}
        for person in people[:10]
    ]
    return {"total": len(people), "results": shown}


def record(state: State, table: str, ident: str) -> Record:
    """A record by its id, or the tool's complaint."""
    row = state.table(table).get(ident)
    if row is None:
        raise Refused(f"no {table.removesuffix('s')} has the id {ident!r:.40}")
    return row


def getter(table: str) -> Run:
    key = id_of(table)
    return lambda state, inputs: {key: inputs[key], **record(state, table, inputs[key])}


def id_of(table: str) -> str:
    return f"{table.removesuffix('s')}_id"


@dataclass(frozen=True)
class Search:
    """How a table is searched: by which fields, on which day, in which words; and what a page shows."""

    table: str
    among: Mapping[str, str]  # argument to field
    when: str
    days: tuple[str, str]  # the arguments that are the first and the last day
    words: tuple[str, ...]
    shown: tuple[str, ...]
    order: str
    is_newest_first: bool = False

    def run(self, state: State, inputs: Arguments) -> Answer:
        rows = sorted(self.matching(state, inputs), key=lambda item: item[1][self.order], reverse=self.is_newest_first)
        page, pages = inputs.get("page", 1), max(1, -(-len(rows) // PAGE))
        if page > pages:
            raise Refused(f"page {page} does not exist, there are {pages}")
        results = [
            {id_of(self.table): ident, **{field: row[field] for field in self.shown}}
            for ident, row in rows[PAGE * (page - 1) : PAGE * page]
        ]
        return {"total": len(rows), "page": page, "pages": pages, "results": results}

    def matching(self, state: State, inputs: Arguments) -> Iterator[tuple[str, Record]]:
        """Records that hold each text given, between the days given, both included."""
        first, last = inputs.get(self.days[0]) or "", inputs.get(self.days[1]) or "9999"
        wanted = {field: inputs[key].strip().lower() for key, field in self.among.items() if inputs.get(key)}
        query_words = (inputs.get("query") or "").lower().split()
        for ident, row in state.table(self.table).items():
            text = " ".join(row[field] for field in self.words).lower()
            is_fitting = all(value in row[field].lower() for field, value in wanted.items())
            if first <= row[self.when][:10] <= last and is_fitting and all(word in text for word in query_words):
                yield ident, row


DAYS = ("date_min", "date_max")
EMAILS = Search(
    "emails", {"sender": "sender"}, "sent_at", DAYS, ("subject", "body"), ("sender", "subject", "sent_at"),
    "sent_at", is_newest_first=True,
)  # fmt: skip
EVENTS = Search(
    "events", {"participant": "participant_email"}, "event_start", DAYS, ("event_name",),
    ("event_name", "participant_email", "event_start", "duration"), "event_start",
)  # fmt: skip
TASKS = Search(
    "tasks", {"assigned_to": "assigned_to_email", "list_name": "list_name", "board": "board"}, "due_date",
    ("due_min", "due_max"), ("task_name",), ("task_name", "assigned_to_email", "list_name", "due_date", "board"), "due_date",
)  # fmt: skip
CUSTOMERS = Search(
    "customers",
    {"customer_name": "customer_name", "assigned_to": "assigned_to_email", "product_interest": "product_interest", "status": "status"},
    "last_contact_date", ("last_contact_min", "last_contact_max"), (),
    ("customer_name", "assigned_to_email", "product_interest", "status", "last_contact_date", "follow_up_by"), "customer_name",
)  # fmt: skip


def _between(inputs: Arguments) -> list[Record]:
    if inputs["date_min"] > inputs["date_max"]:
        raise Refused("date_min lies after date_max")
    return [row for row in visits() if inputs["date_min"] <= row["date"] <= inputs["date_max"]]


def count_visits(_: State, inputs: Arguments) -> Answer:
    rows: Iterable[Record] = _between(inputs)
    if "source" in inputs:
        rows = [row for row in rows if row["source"] == inputs["source"]]
    if "engaged" in inputs:
        rows = [row for row in rows if row["engaged"] == (inputs["engaged"] == "yes")]
    return {"total": len(list(rows))}


def average_duration(_: State, inputs: Arguments) -> Answer:
    rows = _between(inputs)
    if not rows:
        raise Refused("there are no visits in this span")
    return {"total": round(sum(row["duration_seconds"] for row in rows) / len(rows)), "visits": len(rows)}


def traffic_sources(_: State, inputs: Arguments) -> Answer:
    rows = _between(inputs)
    return {source: sum(row["source"] == source for row in rows) for source in SOURCES}


# ---- What tools change: each adds, replaces or removes one record ---------------------------------


def _add(state: State, table: str, fields: dict[str, Any]) -> Answer:
    rows = state.table(table)
    ident = f"{max(NEW, *map(int, rows)) + 1:08d}" if rows else f"{NEW + 1:08d}"
    rows[ident] = MappingProxyType(fields)
    return {"ok": True, id_of(table): ident}


def updater(table: str) -> Run:
    key = id_of(table)

    def update(state: State, inputs: Arguments) -> Answer:
        before = record(state, table, inputs[key])
        changes = {field: value for field, value in inputs.items() if field != key}
        if not changes:
            raise Refused("nothing to change was given")
        if "event_start" in changes:
            _need_free(state, changes["event_start"], inputs[key])
        state.table(table)[inputs[key]] = MappingProxyType({**before, **changes})
        return {"ok": True, key: inputs[key], "changed": sorted(changes)}

    return update


def deleter(table: str) -> Run:
    def delete(state: State, inputs: Arguments) -> Answer:
        record(state, table, inputs[id_of(table)])
        del state.table(table)[inputs[id_of(table)]]
        return {"ok": True, "deleted": inputs[id_of(table)]}

    return delete


def _recipient(state: State, value: str) -> str:
    address = value.strip().lower()
    customers = {row["customer_email"] for row in state.customers.values()}
    if address not in by_address() and address not in customers:
        raise Refused(f"recipient {value!r:.80} is no known address; nothing was sent")
    return address


def _send(state: State, recipient: str, subject: str, body: str) -> Answer:
    fields = {"sender": OWNER, "recipient": recipient, "subject": subject, "sent_at": NOW, "body": body}
    answer = _add(state, "emails", fields)
    state.sent.append(state.emails[answer["email_id"]])
    return answer


def send_email(state: State, inputs: Arguments) -> Answer:
    return _send(state, _recipient(state, inputs["recipient"]), inputs["subject"], inputs["body"])


def reply_email(state: State, inputs: Arguments) -> Answer:
    mail = record(state, "emails", inputs["email_id"])
    return _send(state, mail["sender"], f"Re: {mail['subject']}", inputs["body"])


def forward_email(state: State, inputs: Arguments) -> Answer:
    mail = record(state, "emails", inputs["email_id"])
    return _send(state, _recipient(state, inputs["recipient"]), f"Fwd: {mail['subject']}", mail["body"])


def create_event(state: State, inputs: Arguments) -> Answer:
    _need_free(state, inputs["event_start"], None)
    return _add(state, "events", dict(inputs))


def _need_free(state: State, start: str, but: str | None) -> None:
    for ident, row in state.events.items():
        if row["event_start"] == start and ident != but:
            raise Refused(f"there is already an event at {start} ({ident}); nothing was booked")


def add_customer(state: State, inputs: Arguments) -> Answer:
    name = inputs["customer_name"].strip().lower()
    if any(row["customer_name"].lower() == name for row in state.customers.values()):
        raise Refused(f"a customer called {inputs['customer_name']!r:.60} already exists")
    blank = {"status": "Lead", "last_contact_date": str(TODAY), "follow_up_by": "", "notes": ""}
    return _add(state, "customers", {**blank, **inputs})


def create_plot(state: State, inputs: Arguments) -> Answer:
    if inputs["date_min"] > inputs["date_max"]:
        raise Refused("date_min lies after date_max")
    name = f"{inputs['metric']}_{inputs['date_min']}_{inputs['date_max']}_{inputs['plot_type']}"
    return {**_add(state, "plots", dict(inputs)), "file": f"plots/{name.replace(' ', '_')}.png"}


# ---- The tools ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tool:
    """One tool: what it says of itself, what it takes, what it does."""

    about: str
    kinds: Mapping[str, Kind]
    run: Run


_SPAN = "date_min!:day, date_max!:day"
_EVENT, _TASK, _CUSTOMER = "calendar", "project_management", "customer_relationship_manager"
_WHOLE: tuple[tuple[str, str, str, Run], ...] = (  # name, what it is about, its arguments, what runs
    ("company_directory_find_email_address", "Addresses of the colleagues whose name contains a text.", "name!", find_people),
    ("email_search_emails", "Search the inbox, newest first.",
     "query:text words of subject or body, sender, date_min:day, date_max:day, page:page", EMAILS.run),
    ("email_get_email", "Read one e-mail.", "email_id!", getter("emails")),
    ("email_send_email", "Send an e-mail.", "recipient!, subject!, body!", send_email),
    ("email_reply_email", "Answer the sender of an e-mail.", "email_id!, body!", reply_email),
    ("email_forward_email", "Forward an e-mail.", "email_id!, recipient!", forward_email),
    ("email_delete_email", "Delete an e-mail.", "email_id!", deleter("emails")),
    (f"{_EVENT}_search_events", "Search the calendar, earliest first.",
     "query:text words of the name, participant, date_min:day, date_max:day, page:page", EVENTS.run),
    (f"{_EVENT}_get_event", "Read one event.", "event_id!", getter("events")),
    (f"{_EVENT}_create_event", "Book an event.",
     "event_name!, participant_email!:colleague, event_start!:moment, duration!:count minutes", create_event),
    (f"{_EVENT}_update_event", "Change fields of an event.",
     "event_id!, event_name, participant_email:colleague, event_start:moment, duration:count minutes", updater("events")),
    (f"{_EVENT}_delete_event", "Cancel an event.", "event_id!", deleter("events")),
    ("analytics_count_visits", "Number of visits to the website.", f"{_SPAN}, source:sources, engaged:yes_no", count_visits),
    ("analytics_average_duration", "Mean length of a visit in seconds, rounded.", _SPAN, average_duration),
    ("analytics_traffic_sources", "Visits by source.", _SPAN, traffic_sources),
    ("analytics_create_plot", "Save a plot for the owner.", f"{_SPAN}, metric!:metrics, plot_type!:plots", create_plot),
    (f"{_TASK}_search_tasks", "Search project tasks, earliest due first.",
     "query:text words of the name, assigned_to, list_name:lists, board:boards, due_min:day, due_max:day, page:page", TASKS.run),
    (f"{_TASK}_get_task", "Read one task.", "task_id!", getter("tasks")),
    (f"{_TASK}_create_task", "Add a task to a board.",
     "task_name!, assigned_to_email!:colleague, list_name!:lists, due_date!:day, board!:boards",
     lambda state, inputs: _add(state, "tasks", dict(inputs))),
    (f"{_TASK}_update_task", "Change fields of a task.",
     "task_id!, task_name, assigned_to_email:colleague, list_name:lists, due_date:day, board:boards", updater("tasks")),
    (f"{_TASK}_delete_task", "Delete a task.", "task_id!", deleter("tasks")),
    (f"{_CUSTOMER}_search_customers", "Search customers by name.",
     "customer_name, assigned_to, product_interest:products, status:statuses, last_contact_min:day, last_contact_max:day, page:page",
     CUSTOMERS.run),
    (f"{_CUSTOMER}_add_customer", "Add a customer.",
     "customer_name!, customer_email!, assigned_to_email!:colleague, product_interest!:products, status:statuses", add_customer),
    (f"{_CUSTOMER}_update_customer", "Change fields of a customer.",
     "customer_id!, assigned_to_email:colleague, product_interest:products, status:statuses, follow_up_by:day, notes",
     updater("customers")),
    (f"{_CUSTOMER}_delete_customer", "Delete a customer.", "customer_id!", deleter("customers")),
)  # fmt: skip
TOOLS = {name: Tool(about, kinds_of(arguments), run) for name, about, arguments, run in _WHOLE}


def schemas() -> list[dict[str, Any]]:
    """The tools as a request lists them."""
    return [
        {
            "type": "function",
            "name": name,
            "description": tool.about,
            "parameters": {
                "type": "object",
                "properties": {key: kind.schema() for key, kind in tool.kinds.items()},
                "required": [key for key, kind in tool.kinds.items() if kind.required],
            },
            "strict": False,
        }
        for name, tool in TOOLS.items()
    ]


def call(state: State, name: str, inputs: Any) -> str:
    """A tool's answer as text; what it cannot do is an answer too, and changes nothing."""
    tool = TOOLS.get(name)
    if tool is None:
        return f"Error: there is no tool {name!r:.80}."
    if not isinstance(inputs, Mapping):
        return f"Error: the arguments of {name} must be a JSON object."
    try:
        return msgspec.json.encode(tool.run(state, checked(name, tool.kinds, inputs))).decode()
    except Refused as refused:
        return f"Error: {refused}."
