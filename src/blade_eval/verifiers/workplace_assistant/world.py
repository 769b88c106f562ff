"""Generate the office: its staff, mail, calendar, customers, visits and tasks, the same in every process."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any

TODAY = date(2026, 3, 18)  # a Wednesday
DOMAIN = "quillmarsh.example"  # a top-level domain that is reserved for examples
OWNER = f"ines.vardal@{DOMAIN}"  # for whom the assistant works
TABLES = {"emails": 310, "events": 140, "customers": 520, "tasks": 870, "plots": 0}  # and their first ids

Record = MappingProxyType[str, Any]  # a record is replaced, never changed: sessions share the unchanged ones
Table = dict[str, Record]

DEPARTMENTS = tuple("Sales Support Finance Engineering Marketing Operations Legal People".split())
TITLES = tuple("Associate Specialist Analyst Lead Coordinator Manager".split())
# The first group is given to three people each, the second to two, the third to one.
THRICE = tuple("Nadia Tomas Freya Idris Marta Joel Ayla Simon Petra Ravi Lena Oskar".split())
TWICE = tuple(
    ("Bruno Celia Dmitri Elif Gareth Hanna Ivo Jonas Keiko Luca Maren Nils Olga Pablo Quinn Rosa Stefan "
     "Thea Umar Vera").split()
)
ONCE = tuple(
    ("Anselm Birte Cosmo Delphine Eamon Fadila Gitta Hakon Ilse Jarek Katya Lorcan Mirela Noor Odile Pavel "
     "Renske Saskia Tadeo Ulla Viktor Wilma Xenia Yusuf Zelda Bastian Corin Dagny Emeka Flora").split()
)
SURNAMES = tuple(
    ("Abbink Barlow Castellan Dunmore Eskelin Farrow Grantley Holloway Iversen Jessop Kestrel Lindqvist "
     "Marchetti Norwood Ostrander Penhallow Quist Rennick Sandoval Thornby Underhill Valdez Whitlock "
     "Yarrow Zeller Ashgrove Brandt Coldwell Drummond Ellery Fennimore Garnet Hartog Ingram Kowal Larkspur "
     "Mistry Novak").split()
)
TOPICS = tuple(
    ("warehouse inventory, spring catalogue, lease renewal, travel claims, badge printer, supplier audit, "
     "quarterly forecast, onboarding pack, price list, packaging trial, safety walk, server move, "
     "newsletter draft, returns backlog, trade fair booth, budget review").split(", ")
)
OPENINGS = tuple("Question on the {}, Update on the {}, The {} again, Notes about the {}, Decision on the {}".split(", "))
SENTENCES = (
    "The numbers have moved since last week.", "Could you have a look before Friday?",
    "I attached what we have so far.", "Nothing urgent, but please keep it in mind.",
    "Two points are still open on our side.", "The other team has agreed in principle.",
    "We should settle this in the next round.", "Let me know whom to ask.",
)  # fmt: skip
MEETINGS = tuple(
    ("Weekly check-in, Planning round, Supplier call, Design critique, Budget talk, Retrospective, Hiring "
     "sync, Demo rehearsal, Contract walk-through, Roadmap hour").split(", ")
)
PRODUCTS = tuple("Looms, Dye kits, Thread, Repair plans, Pattern books".split(", "))
STATUSES = tuple("Lead Qualified Proposal Won Lost".split())
BOARDS = tuple("Back end, Front end, Design, Data".split(", "))
LISTS = tuple("Backlog, In Progress, In Review, Completed".split(", "))
SOURCES = tuple("direct search social referral".split())
VERBS = tuple("Rework Document Test Replace Measure Trim Migrate Sketch".split())
THINGS = tuple(
    ("the login form, the price feed, the order export, the size chart, the search index, the colour "
     "picker, the invoice mail, the stock alert, the landing page, the refund flow, the audit log, the "
     "sitemap").split(", ")
)
FIRMS = tuple(
    ("Alder Beacon Cinder Dovetail Ember Fathom Gable Harrow Inkwell Juniper Kiln Lantern Mallow Nettle "
     "Orchard Pewter Quarry Rowan Saddle Timber").split()
)
TRADES = tuple("Textiles Interiors Outfitters Studios Mills Workshop Supply".split())


@dataclass(frozen=True, slots=True)
class Person:
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
def staff() -> tuple[Person, ...]:
    """The directory by address; people of one first name are in different departments."""
    rng = Random("office/people")
    found = [Person("Ines", "Vardal", "Operations", "Manager")]
    for firsts, times in ((THRICE, 3), (TWICE, 2), (ONCE, 1)):
        for first in firsts:
            lasts, places = rng.sample(SURNAMES, times), rng.sample(DEPARTMENTS, times)
            found += [
                Person(first, last, place, rng.choice(TITLES))
                for last, place in zip(lasts, places, strict=True)
            ]
    return tuple(sorted(found, key=lambda person: person.address))


@cache
def by_address() -> dict[str, Person]:
    return {person.address: person for person in staff()}


def namesakes(first: str) -> tuple[Person, ...]:
    return tuple(person for person in staff() if person.first == first)


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
        rows: Table = getattr(self, name)
        return rows


def fresh() -> State:
    """The office as every task finds it."""
    return State(**{name: dict(table) for name, table in _tables().items()})


def _addresses(firsts: str) -> list[str]:
    """Everybody of these first names, so that a first name alone means several people's records."""
    return [person.address for first in firsts.split() for person in namesakes(first)]


@cache
def _tables() -> dict[str, Table]:
    made = {"emails": _emails(), "events": _events(), "customers": _customers(), "tasks": _tasks(), "plots": []}
    return {
        name: {f"{TABLES[name] + place:08d}": MappingProxyType(row) for place, row in enumerate(rows)}
        for name, rows in made.items()
    }


def _emails() -> list[dict[str, Any]]:
    """The owner's inbox."""
    rng = Random("office/emails")
    writers = _addresses("Tomas Lena Quinn Oskar Thea Eamon Fadila Odile Jarek Noor Ulla Corin Dagny")
    rows = []
    for _ in range(240):
        sent = datetime(2026, 1, 12, 8) + timedelta(minutes=rng.randrange(65 * 24 * 60))
        body = " ".join(rng.sample(SENTENCES, 2))
        sender, subject = rng.choice(writers), rng.choice(OPENINGS).format(rng.choice(TOPICS))
        when = sent.strftime("%Y-%m-%d %H:%M")
        rows.append({"sender": sender, "recipient": OWNER, "subject": subject, "sent_at": when, "body": body})
    return sorted(rows, key=lambda row: row["sent_at"])


def _events() -> list[dict[str, Any]]:
    rng = Random("office/events")
    partners = _addresses("Ayla Simon Nadia Ravi Keiko Luca Rosa Pavel Saskia Yusuf Wilma")
    rows: dict[str, dict[str, Any]] = {}  # by their start
    while len(rows) < 150:
        day = date(2026, 3, 9) + timedelta(days=rng.randrange(33))
        start = f"{day} {rng.randrange(8, 17):02d}:{rng.choice(('00', '30'))}"
        if day.weekday() <= 4 and start not in rows:
            name, partner = rng.choice(MEETINGS), rng.choice(partners)
            minutes = rng.choice((30, 30, 60))
            rows[start] = {"event_name": name, "participant_email": partner, "event_start": start, "duration": minutes}
    return [rows[start] for start in sorted(rows)]


def _customers() -> list[dict[str, Any]]:
    rng = Random("office/customers")
    sellers = _addresses("Nadia Tomas Freya Joel Petra Bruno Elif Mirela Bastian")
    names = [f"{firm} {trade}" for firm in FIRMS for trade in TRADES]
    rows = []
    for name in rng.sample(names, 130):
        contacted = TODAY - timedelta(days=rng.randrange(1, 70))
        rows.append(
            {
                "customer_name": name,
                "customer_email": f"office@{name.lower().replace(' ', '-')}.example",
                "assigned_to_email": rng.choice(sellers), "product_interest": rng.choice(PRODUCTS),
                "status": rng.choice(STATUSES), "last_contact_date": str(contacted),
                "follow_up_by": str(TODAY + timedelta(days=rng.randrange(1, 45))), "notes": "",
            }
        )
    return rows


def _tasks() -> list[dict[str, Any]]:
    rng = Random("office/tasks")
    makers = _addresses("Idris Marta Ravi Lena Oskar Celia Hanna Hakon Zelda")
    names = [f"{verb} {thing}" for verb in VERBS for thing in THINGS]
    rng.shuffle(names)
    return [
        {
            "task_name": name, "assigned_to_email": rng.choice(makers), "list_name": rng.choice(LISTS),
            "due_date": str(TODAY + timedelta(days=rng.randrange(-18, 30))), "board": rng.choice(BOARDS),
        }
        for name in (*names, *(f"{name}, second pass" for name in names[:74]))
    ]


@cache
def visits() -> tuple[Record, ...]:
    """Visits to the website; no tool changes them."""
    rng = Random("office/visits")
    rows = []
    for back in range(76, 0, -1):
        day = TODAY - timedelta(days=back)
        for _ in range(rng.randrange(2, 12) if day.weekday() < 5 else rng.randrange(0, 5)):
            seconds = rng.randrange(4, 900)
            visitor, source = f"V{rng.randrange(1000, 9999)}", rng.choice(SOURCES)
            engaged = seconds > 180 and rng.random() < 0.7
            row = {"date": str(day), "visitor": visitor, "source": source, "duration_seconds": seconds, "engaged": engaged}
            rows.append(MappingProxyType(row))
    return tuple(rows)
