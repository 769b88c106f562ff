"""Generate the office: mail, calendar, customers, visits and tasks, the same in every process."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any

from blade_eval.verifiers.workplace_assistant.people import OWNER, namesakes

TODAY = date(2026, 3, 18)  # a Wednesday
Record = MappingProxyType[str, Any]  # a record is replaced, never changed: sessions share the unchanged ones
Table = dict[str, Record]
TABLES = ("emails", "events", "customers", "tasks", "plots")

TOPICS = (
    "warehouse inventory", "spring catalogue", "lease renewal", "travel claims", "badge printer",
    "supplier audit",
    "quarterly forecast", "onboarding pack", "price list", "packaging trial", "safety walk", "server move",
    "newsletter draft", "returns backlog", "trade fair booth", "budget review",
)  # fmt: skip
OPENINGS = (
    "Question on the {}",
    "Update on the {}",
    "The {} again",
    "Notes about the {}",
    "Decision on the {}",
)
SENTENCES = (
    "The numbers have moved since last week.", "Could you have a look before Friday?",
    "I attached what we have so far.", "Nothing urgent, but please keep it in mind.",
    "Two points are still open on our side.", "The other team has agreed in principle.",
    "We should settle this in the next round.", "Let me know whom to ask.",
)  # fmt: skip
MEETINGS = (
    "Weekly check-in", "Planning round", "Supplier call", "Design critique", "Budget talk", "Retrospective",
    "Hiring sync", "Demo rehearsal", "Contract walk-through", "Roadmap hour",
)  # fmt: skip
PRODUCTS = ("Looms", "Dye kits", "Thread", "Repair plans", "Pattern books")
STATUSES = ("Lead", "Qualified", "Proposal", "Won", "Lost")
BOARDS = ("Back end", "Front end", "Design", "Data")
LISTS = ("Backlog", "In Progress", "In Review", "Completed")
SOURCES = ("direct", "search", "social", "referral")
VERBS = ("Rework", "Document", "Test", "Replace", "Measure", "Trim", "Migrate", "Sketch")
THINGS = (
    "the login form", "the price feed", "the order export", "the size chart", "the search index",
    "the colour picker",
    "the invoice mail", "the stock alert", "the landing page", "the refund flow", "the audit log",
    "the sitemap",
)  # fmt: skip
FIRMS = (
    "Alder", "Beacon", "Cinder", "Dovetail", "Ember", "Fathom", "Gable", "Harrow", "Inkwell", "Juniper",
    "Kiln",
    "Lantern", "Mallow", "Nettle", "Orchard", "Pewter", "Quarry", "Rowan", "Saddle", "Timber",
)  # fmt: skip
TRADES = ("Textiles", "Interiors", "Outfitters", "Studios", "Mills", "Workshop", "Supply")


@dataclass
class State:
    """What one session sees: the tables as they are now, and all mail that left the office."""

    emails: Table
    events: Table
    customers: Table
    tasks: Table
    plots: Table
    sent: list[Record] = field(init=False, default_factory=list)  # a ledger: no tool takes back what was sent

    def table(self, name: str) -> Table:
        found: Table = getattr(self, name)
        return found


def fresh() -> State:
    """The office as every task finds it."""
    return State(**{name: dict(table) for name, table in _tables().items()})


def _addresses(firsts: list[str]) -> list[str]:
    """Everybody of these first names, so that a first name alone means several people's records."""
    return [person.address for first in firsts for person in namesakes(first)]


def _ident(number: int) -> str:
    return f"{number:08d}"


@cache
def _tables() -> dict[str, Table]:
    made = {
        "emails": _emails(),
        "events": _events(),
        "customers": _customers(),
        "tasks": _tasks(),
        "plots": [],
    }
    starts = {"emails": 310, "events": 140, "customers": 520, "tasks": 870, "plots": 0}
    return {
        name: {_ident(starts[name] + place): MappingProxyType(row) for place, row in enumerate(rows)}
        for name, rows in made.items()
    }


def _emails() -> list[dict[str, Any]]:
    """The owner's inbox."""
    rng = Random("office/emails")
    writers = _addresses("Tomas Lena Quinn Oskar Thea Eamon Fadila Odile Jarek Noor Ulla Corin Dagny".split())
    found = []
    for _ in range(240):
        sent = datetime(2026, 1, 12, 8) + timedelta(minutes=rng.randrange(65 * 24 * 60))
        body = " ".join(rng.sample(SENTENCES, 2))
        found.append(
            {
                "sender": rng.choice(writers),
                "recipient": OWNER,
                "subject": rng.choice(OPENINGS).format(rng.choice(TOPICS)),
                "sent_at": sent.strftime("%Y-%m-%d %H:%M"),
                "body": body,
            }
        )
    return sorted(found, key=lambda row: row["sent_at"])


def _events() -> list[dict[str, Any]]:
    rng = Random("office/events")
    partners = _addresses("Ayla Simon Nadia Ravi Keiko Luca Rosa Pavel Saskia Yusuf Wilma".split())
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    while len(found) < 150:
        day = date(2026, 3, 9) + timedelta(days=rng.randrange(33))
        start = f"{day} {rng.randrange(8, 17):02d}:{rng.choice(('00', '30'))}"
        if day.weekday() > 4 or start in taken:
            continue
        taken.add(start)
        found.append(
            {
                "event_name": rng.choice(MEETINGS),
                "participant_email": rng.choice(partners),
                "event_start": start,
                "duration": rng.choice((30, 30, 60)),
            }
        )
    return sorted(found, key=lambda row: row["event_start"])


def _customers() -> list[dict[str, Any]]:
    rng = Random("office/customers")
    sellers = _addresses("Nadia Tomas Freya Joel Petra Bruno Elif Mirela Bastian".split())
    names = [f"{firm} {trade}" for firm in FIRMS for trade in TRADES]
    found = []
    for name in rng.sample(names, 130):
        contacted = TODAY - timedelta(days=rng.randrange(1, 70))
        found.append(
            {
                "customer_name": name,
                "customer_email": f"office@{name.lower().replace(' ', '-')}.example",
                "assigned_to_email": rng.choice(sellers),
                "product_interest": rng.choice(PRODUCTS),
                "status": rng.choice(STATUSES),
                "last_contact_date": str(contacted),
                "follow_up_by": str(TODAY + timedelta(days=rng.randrange(1, 45))),
                "notes": "",
            }
        )
    return found


def _tasks() -> list[dict[str, Any]]:
    rng = Random("office/tasks")
    makers = _addresses("Idris Marta Ravi Lena Oskar Celia Hanna Hakon Zelda".split())
    names = [f"{verb} {thing}" for verb in VERBS for thing in THINGS]
    rng.shuffle(names)
    return [
        {
            "task_name": name,
            "assigned_to_email": rng.choice(makers),
            "list_name": rng.choice(LISTS),
            "due_date": str(TODAY + timedelta(days=rng.randrange(-18, 30))),
            "board": rng.choice(BOARDS),
        }
        for name in (*names, *(f"{name}, second pass" for name in names[:74]))
    ]


@cache
def visits() -> tuple[Record, ...]:
    """Visits to the website; no tool changes them."""
    rng = Random("office/visits")
    found = []
    for back in range(76, 0, -1):
        day = TODAY - timedelta(days=back)
        for _ in range(rng.randrange(2, 12) if day.weekday() < 5 else rng.randrange(0, 5)):
            seconds = rng.randrange(4, 900)
            found.append(
                {
                    "date": str(day),
                    "visitor": f"V{rng.randrange(1000, 9999)}",
                    "source": rng.choice(SOURCES),
                    "duration_seconds": seconds,
                    "engaged": seconds > 180 and rng.random() < 0.7,
                }
            )
    return tuple(MappingProxyType(row) for row in found)
