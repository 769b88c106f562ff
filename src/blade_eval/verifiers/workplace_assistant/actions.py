"""What tools change: each adds, replaces or removes one record of the office."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from blade_eval.verifiers.workplace_assistant.arguments import Refused
from blade_eval.verifiers.workplace_assistant.lookups import Arguments, record
from blade_eval.verifiers.workplace_assistant.people import OWNER, by_address
from blade_eval.verifiers.workplace_assistant.world import TODAY, State

Said = dict[str, Any]
METRICS = ("visits", "engaged visits", "duration", "sources")
PLOTS = ("line", "bar", "histogram", "scatter")
_NEW = 50_000  # ids of new records lie above, so that none is that of a deleted one
NOW = f"{TODAY} 09:00"  # the clock of the office stands still


def _add(state: State, table: str, key: str, fields: dict[str, Any]) -> Said:
    rows = state.table(table)
    ident = f"{max(_NEW, *map(int, rows)) + 1:08d}" if rows else f"{_NEW + 1:08d}"
    rows[ident] = MappingProxyType(fields)
    return {"ok": True, key: ident}


def creator(table: str, key: str) -> Callable[[State, Arguments], Said]:
    return lambda state, given: _add(state, table, key, dict(given))


def updater(table: str, key: str) -> Callable[[State, Arguments], Said]:
    def update(state: State, given: Arguments) -> Said:
        before = record(state, table, given[key])
        changes = {field: value for field, value in given.items() if field != key}
        if not changes:
            raise Refused("nothing to change was given")
        if "event_start" in changes:
            _free(state, changes["event_start"], given[key])
        state.table(table)[given[key]] = MappingProxyType({**before, **changes})
        return {"ok": True, key: given[key], "changed": sorted(changes)}

    return update


def deleter(table: str, key: str) -> Callable[[State, Arguments], Said]:
    def delete(state: State, given: Arguments) -> Said:
        record(state, table, given[key])
        del state.table(table)[given[key]]
        return {"ok": True, "deleted": given[key]}

    return delete


def _recipient(state: State, value: str) -> str:
    address = value.strip().lower()
    customers = {row["customer_email"] for row in state.customers.values()}
    if address not in by_address() and address not in customers:
        raise Refused(f"recipient {value!r:.80} is no known address; nothing was sent")
    return address


def _send(state: State, recipient: str, subject: str, body: str) -> Said:
    fields = {"sender": OWNER, "recipient": recipient, "subject": subject, "sent_at": NOW, "body": body}
    answer = _add(state, "emails", "email_id", fields)
    state.sent.append(state.emails[answer["email_id"]])
    return answer


def send_email(state: State, given: Arguments) -> Said:
    return _send(state, _recipient(state, given["recipient"]), given["subject"], given["body"])


def reply_email(state: State, given: Arguments) -> Said:
    asked = record(state, "emails", given["email_id"])
    return _send(state, asked["sender"], f"Re: {asked['subject']}", given["body"])


def forward_email(state: State, given: Arguments) -> Said:
    passed = record(state, "emails", given["email_id"])
    recipient = _recipient(state, given["recipient"])
    return _send(state, recipient, f"Fwd: {passed['subject']}", passed["body"])


def create_event(state: State, given: Arguments) -> Said:
    _free(state, given["event_start"], None)
    return _add(state, "events", "event_id", dict(given))


def _free(state: State, start: str, but: str | None) -> None:
    for ident, row in state.events.items():
        if row["event_start"] == start and ident != but:
            raise Refused(f"there is already an event at {start} ({ident}); nothing was booked")


def add_customer(state: State, given: Arguments) -> Said:
    name = given["customer_name"].strip().lower()
    if any(row["customer_name"].lower() == name for row in state.customers.values()):
        raise Refused(f"a customer called {given['customer_name']!r:.60} already exists")
    blank = {"status": "Lead", "last_contact_date": str(TODAY), "follow_up_by": "", "notes": ""}
    return _add(state, "customers", "customer_id", {**blank, **given})


def create_plot(state: State, given: Arguments) -> Said:
    if given["date_min"] > given["date_max"]:
        raise Refused("date_min lies after date_max")
    name = f"{given['metric']}_{given['date_min']}_{given['date_max']}_{given['plot_type']}"
    return {**_add(state, "plots", "plot_id", dict(given)), "file": f"plots/{name.replace(' ', '_')}.png"}
