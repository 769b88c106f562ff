"""What tools find: people, mail, events, visits, tasks and customers, five to a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from blade_eval.verifiers.workplace_assistant.arguments import PAGE, Refused
from blade_eval.verifiers.workplace_assistant.people import staff
from blade_eval.verifiers.workplace_assistant.world import SOURCES as SOURCES
from blade_eval.verifiers.workplace_assistant.world import Record, State, visits

Arguments = dict[str, Any]
Found = dict[str, Any]


def find_people(_: State, given: Arguments) -> Found:
    """Matching the whole name: a first name is everybody who has it."""
    wanted = given["name"].strip().lower()
    found = [person for person in staff() if wanted in person.name.lower() or wanted == person.address]
    if not found:
        raise Refused(f"nobody in the directory is called {given['name']!r:.60}")
    return {
        "total": len(found),
        "results": [
            {"name": person.name, "email": person.address, "role": f"{person.title}, {person.department}"}
            for person in found[:10]
        ],
    }


def getter(table: str, key: str) -> Callable[[State, Arguments], Found]:
    def get(state: State, given: Arguments) -> Found:
        return {key: given[key], **record(state, table, given[key])}

    return get


def record(state: State, table: str, ident: str) -> Record:
    """A record by its id, or the tool's complaint."""
    found = state.table(table).get(ident)
    if found is None:
        raise Refused(f"no {table.removesuffix('s')} has the id {ident!r:.40}")
    return found


def search_emails(state: State, given: Arguments) -> Found:
    rows = _matching(state.emails.items(), given, {"sender": "sender"}, "sent_at", ("subject", "body"))
    shown = ("sender", "subject", "sent_at")
    return _page("email_id", sorted(rows, key=lambda item: item[1]["sent_at"], reverse=True), shown, given)


def search_events(state: State, given: Arguments) -> Found:
    among = {"participant": "participant_email"}
    rows = _matching(state.events.items(), given, among, "event_start", ("event_name",))
    shown = ("event_name", "participant_email", "event_start", "duration")
    return _page("event_id", sorted(rows, key=lambda item: item[1]["event_start"]), shown, given)


def search_tasks(state: State, given: Arguments) -> Found:
    renamed = {**given, "date_min": given.get("due_min"), "date_max": given.get("due_max")}
    among = {"assigned_to": "assigned_to_email", "list_name": "list_name", "board": "board"}
    rows = _matching(state.tasks.items(), renamed, among, "due_date", ("task_name",))
    shown = ("task_name", "assigned_to_email", "list_name", "due_date", "board")
    return _page("task_id", sorted(rows, key=lambda item: item[1]["due_date"]), shown, given)


def search_customers(state: State, given: Arguments) -> Found:
    renamed = {
        **given,
        "date_min": given.get("last_contact_min"),
        "date_max": given.get("last_contact_max"),
    }
    among = {
        "customer_name": "customer_name",
        "assigned_to": "assigned_to_email",
        "product_interest": "product_interest",
        "status": "status",
    }
    rows = _matching(state.customers.items(), renamed, among, "last_contact_date", ())
    shown = (
        "customer_name", "assigned_to_email", "product_interest", "status", "last_contact_date",
        "follow_up_by",
    )  # fmt: skip
    return _page("customer_id", sorted(rows, key=lambda item: item[1]["customer_name"]), shown, given)


def _matching(
    items: Iterable[tuple[str, Record]],
    given: Arguments,
    among: dict[str, str],
    when: str,
    words: tuple[str, ...],
) -> Iterator[tuple[str, Record]]:
    """Records that hold each text given, between the days given, both included."""
    first, last = given.get("date_min") or "", given.get("date_max") or "9999"
    wanted = {field: given[key].strip().lower() for key, field in among.items() if given.get(key)}
    asked = (given.get("query") or "").lower().split()
    for ident, row in items:
        text = " ".join(row[field] for field in words).lower()
        if (
            first <= row[when][:10] <= last
            and all(value in row[field].lower() for field, value in wanted.items())
            and all(word in text for word in asked)
        ):
            yield ident, row


def _page(key: str, rows: list[tuple[str, Record]], shown: tuple[str, ...], given: Arguments) -> Found:
    page, pages = given.get("page", 1), max(1, -(-len(rows) // PAGE))
    if page > pages:
        raise Refused(f"page {page} does not exist, there are {pages}")
    return {
        "total": len(rows),
        "page": page,
        "pages": pages,
        "results": [
            {key: ident, **{field: row[field] for field in shown}}
            for ident, row in rows[PAGE * (page - 1) : PAGE * page]
        ],
    }


def _between(given: Arguments) -> list[Record]:
    if given["date_min"] > given["date_max"]:
        raise Refused("date_min lies after date_max")
    return [row for row in visits() if given["date_min"] <= row["date"] <= given["date_max"]]


def count_visits(_: State, given: Arguments) -> Found:
    rows = _between(given)
    if "source" in given:
        rows = [row for row in rows if row["source"] == given["source"]]
    if "engaged" in given:
        rows = [row for row in rows if row["engaged"] == (given["engaged"] == "yes")]
    return {"total": len(rows)}


def average_duration(_: State, given: Arguments) -> Found:
    rows = _between(given)
    if not rows:
        raise Refused("there are no visits in this span")
    return {"total": round(sum(row["duration_seconds"] for row in rows) / len(rows)), "visits": len(rows)}


def traffic_sources(_: State, given: Arguments) -> Found:
    rows = _between(given)
    return {source: sum(row["source"] == source for row in rows) for source in SOURCES}
