"""The tools of the office: what each is called, takes and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from blade_eval.verifiers.workplace_assistant import actions, lookups
from blade_eval.verifiers.workplace_assistant.arguments import (
    DAY,
    IDENT,
    NUMBER,
    TEXT,
    Kind,
    Refused,
    checked,
    colleague,
    count,
    day,
    moment,
    one_of,
    text,
)
from blade_eval.verifiers.workplace_assistant.world import BOARDS, LISTS, PRODUCTS, STATUSES, State

Answer = Any  # plain data; the model sees its JSON


@dataclass(frozen=True)
class Tool:
    """One tool; those that write are what the verifier looks at."""

    about: str
    kinds: Mapping[str, Kind]
    run: Callable[[State, dict[str, Any]], Answer]
    writes: bool = False


_MUST = text(required=True)
_EMAIL, _EVENT, _TASK, _CUSTOMER = "email", "calendar", "project_management", "customer_relationship_manager"
_SPAN = {"date_min": day(required=True), "date_max": day(required=True)}

TOOLS: dict[str, Tool] = {
    "company_directory_find_email_address": Tool(
        "Addresses of the colleagues whose name contains a text.", {"name": _MUST}, lookups.find_people
    ),
    f"{_EMAIL}_search_emails": Tool(
        "Search the inbox, newest first.",
        {
            "query": text("words of subject or body"),
            "sender": TEXT,
            "date_min": DAY,
            "date_max": DAY,
            "page": NUMBER,
        },
        lookups.search_emails,
    ),
    f"{_EMAIL}_get_email": Tool(
        "Read one e-mail.", {"email_id": IDENT}, lookups.getter("emails", "email_id")
    ),
    f"{_EMAIL}_send_email": Tool(
        "Send an e-mail.", {"recipient": _MUST, "subject": _MUST, "body": _MUST}, actions.send_email, True
    ),
    f"{_EMAIL}_reply_email": Tool(
        "Answer the sender of an e-mail.", {"email_id": IDENT, "body": _MUST}, actions.reply_email, True
    ),
    f"{_EMAIL}_forward_email": Tool(
        "Forward an e-mail.", {"email_id": IDENT, "recipient": _MUST}, actions.forward_email, True
    ),
    f"{_EMAIL}_delete_email": Tool(
        "Delete an e-mail.", {"email_id": IDENT}, actions.deleter("emails", "email_id"), True
    ),
    f"{_EVENT}_search_events": Tool(
        "Search the calendar, earliest first.",
        {
            "query": text("words of the name"),
            "participant": TEXT,
            "date_min": DAY,
            "date_max": DAY,
            "page": NUMBER,
        },
        lookups.search_events,
    ),
    f"{_EVENT}_get_event": Tool("Read one event.", {"event_id": IDENT}, lookups.getter("events", "event_id")),
    f"{_EVENT}_create_event": Tool(
        "Book an event.",
        {
            "event_name": _MUST,
            "participant_email": colleague(required=True),
            "event_start": moment(required=True),
            "duration": count("minutes", required=True),
        },
        actions.create_event,
        True,
    ),
    f"{_EVENT}_update_event": Tool(
        "Change fields of an event.",
        {
            "event_id": IDENT,
            "event_name": TEXT,
            "participant_email": colleague(),
            "event_start": moment(),
            "duration": count("minutes"),
        },
        actions.updater("events", "event_id"),
        True,
    ),
    f"{_EVENT}_delete_event": Tool(
        "Cancel an event.", {"event_id": IDENT}, actions.deleter("events", "event_id"), True
    ),
    "analytics_count_visits": Tool(
        "Number of visits to the website.",
        {**_SPAN, "source": one_of(lookups.SOURCES), "engaged": one_of(("yes", "no"))},
        lookups.count_visits,
    ),
    "analytics_average_duration": Tool(
        "Mean length of a visit in seconds, rounded.", _SPAN, lookups.average_duration
    ),
    "analytics_traffic_sources": Tool("Visits by source.", _SPAN, lookups.traffic_sources),
    "analytics_create_plot": Tool(
        "Save a plot for the owner.",
        {
            **_SPAN,
            "metric": one_of(actions.METRICS, required=True),
            "plot_type": one_of(actions.PLOTS, required=True),
        },
        actions.create_plot,
        True,
    ),
    f"{_TASK}_search_tasks": Tool(
        "Search project tasks, earliest due first.",
        {
            "query": text("words of the name"),
            "assigned_to": TEXT,
            "list_name": one_of(LISTS),
            "board": one_of(BOARDS),
            "due_min": DAY,
            "due_max": DAY,
            "page": NUMBER,
        },
        lookups.search_tasks,
    ),
    f"{_TASK}_get_task": Tool("Read one task.", {"task_id": IDENT}, lookups.getter("tasks", "task_id")),
    f"{_TASK}_create_task": Tool(
        "Add a task to a board.",
        {
            "task_name": _MUST,
            "assigned_to_email": colleague(required=True),
            "list_name": one_of(LISTS, required=True),
            "due_date": day(required=True),
            "board": one_of(BOARDS, required=True),
        },
        actions.creator("tasks", "task_id"),
        True,
    ),
    f"{_TASK}_update_task": Tool(
        "Change fields of a task.",
        {
            "task_id": IDENT,
            "task_name": TEXT,
            "assigned_to_email": colleague(),
            "list_name": one_of(LISTS),
            "due_date": DAY,
            "board": one_of(BOARDS),
        },
        actions.updater("tasks", "task_id"),
        True,
    ),
    f"{_TASK}_delete_task": Tool(
        "Delete a task.", {"task_id": IDENT}, actions.deleter("tasks", "task_id"), True
    ),
    f"{_CUSTOMER}_search_customers": Tool(
        "Search customers by name.",
        {
            "customer_name": TEXT,
            "assigned_to": TEXT,
            "product_interest": one_of(PRODUCTS),
            "status": one_of(STATUSES),
            "last_contact_min": DAY,
            "last_contact_max": DAY,
            "page": NUMBER,
        },
        lookups.search_customers,
    ),
    f"{_CUSTOMER}_add_customer": Tool(
        "Add a customer.",
        {
            "customer_name": _MUST,
            "customer_email": _MUST,
            "assigned_to_email": colleague(required=True),
            "product_interest": one_of(PRODUCTS, required=True),
            "status": one_of(STATUSES),
        },
        actions.add_customer,
        True,
    ),
    f"{_CUSTOMER}_update_customer": Tool(
        "Change fields of a customer.",
        {
            "customer_id": IDENT,
            "assigned_to_email": colleague(),
            "product_interest": one_of(PRODUCTS),
            "status": one_of(STATUSES),
            "follow_up_by": DAY,
            "notes": TEXT,
        },
        actions.updater("customers", "customer_id"),
        True,
    ),
    f"{_CUSTOMER}_delete_customer": Tool(
        "Delete a customer.", {"customer_id": IDENT}, actions.deleter("customers", "customer_id"), True
    ),
}


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


def call(state: State, name: str, given: Any) -> str:
    """A tool's answer as text; what it cannot do is an answer too, and changes nothing."""
    tool = TOOLS.get(name)
    if tool is None:
        return f"Error: there is no tool {name!r:.80}."
    if not isinstance(given, Mapping):
        return f"Error: the arguments of {name} must be a JSON object."
    try:
        return msgspec.json.encode(tool.run(state, checked(name, tool.kinds, given))).decode()
    except Refused as refused:
        return f"Error: {refused}."
