"""Invent the tasks of the office: what each asks, as data, and which calls would be right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import islice
from random import Random
from typing import Any, Literal

import msgspec

from blade_eval.verifiers.workplace_assistant.tools import call, schemas
from blade_eval.verifiers.workplace_assistant.world import (
    OWNER,
    TODAY,
    TOPICS,
    Person,
    Record,
    State,
    Table,
    by_address,
    fresh,
    namesakes,
    staff,
    visits,
)

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


# ---- Mail and calendar ---------------------------------------------------------------------------

_SUBJECTS = (
    "Keys for the sample room", "New courier times", "Parking on Friday", "Thread order", "Door code",
)
_BODIES = (
    "Please collect them at the front desk.", "From Monday on the van leaves at three.",
    "The yard is closed for repairs.", "We need forty spools by Thursday.", "It changes tonight at eight.",
)  # fmt: skip


def ambiguous(rng: Random, number: int, *, but: str = "") -> list[Person]:
    """People whose first name others have too."""
    firsts = [person.first for person in staff()]
    return rng.sample([p for p in staff() if firsts.count(p.first) > 1 and p.first != but], number)


def boundary(rows: list[Record], field: str, *, early: bool) -> str | None:
    """A day with a record on it, such that others lie inside and outside of the limit."""
    days = sorted({str(row[field])[:10] for row in rows})
    if len(days) < 4:
        return None
    return days[len(days) // 2 - 1] if early else days[len(days) // 2]


def emails() -> Iterator[Quest]:
    rng = Random("office/quests/emails")
    plain = rng.sample(
        [person for person in staff() if person.first in ("Odile", "Pavel", "Renske", "Flora")], 3
    )
    for place, person in enumerate(plain):
        yield _send(Quest("email", "easy", "", (), (by_name(person),)), place)
    for place, person in enumerate(ambiguous(rng, 3)):
        yield _send(Quest("email", "medium", "", (), (by_department(person),)), place + 2)
    yield from _forwards(rng)
    yield from islice(_deletions(), 0, None, 2)


def _send(quest: Quest, place: int) -> Quest:
    subject, body = _SUBJECTS[place], _BODIES[place]
    request = f"Send {quest.people[0].said} an e-mail with the subject '{subject}' and the text '{body}'"
    act = ("email_send_email", {"recipient": "{0}", "subject": subject, "body": body})
    return Quest(quest.category, quest.difficulty, request, (act,), quest.people)


def _writers() -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for row in fresh().emails.values():
        found.setdefault(row["sender"], []).append(row)
    return dict(sorted(found.items()))


def _forwards(rng: Random) -> Iterator[Quest]:
    """The newest of several e-mails on a topic goes to somebody, or is answered."""
    twice = [
        (sender, topic)
        for sender, rows in _writers().items()
        for topic in TOPICS
        if sum(topic in row["subject"] for row in rows) > 1
    ]
    for place, (sender, topic) in enumerate(rng.sample(twice, 5)):
        person = by_address()[sender]
        read = ("email_search_emails", {"sender": "{0}", "query": topic})
        if place < 3:
            to = ambiguous(rng, 1, but=person.first)[0]
            said = by_department(to).said
            request = f"Forward the newest e-mail that {person.name} wrote about the {topic} to {said}."
            act = ("email_forward_email", {"email_id": "{id}", "recipient": "{1}"})
            people: tuple[Named, ...] = (by_name(person), by_department(to))
        else:
            body = ("I agree, please go ahead.", "Not this month, sorry.")[place - 3]
            people = (by_department(person),)
            request = f"Answer the latest e-mail from {people[0].said} on the {topic} with '{body}'"
            act = ("email_reply_email", {"email_id": "{id}", "body": body})
        yield Quest("email", "medium", request, (act,), people, read, "first")


def _deletions() -> Iterator[Quest]:
    for sender, rows in _writers().items():
        day = boundary(rows, "sent_at", early=False)
        if day and by_address()[sender].first in ("Tomas", "Lena", "Thea", "Oskar") and len(rows) < 11:
            named = by_department(by_address()[sender])
            yield Quest(
                "email",
                "hard",
                f"Delete every e-mail that I got from {named.said} from {spoken(day)} on, that day included.",
                (("email_delete_email", {"email_id": "{id}"}),),
                (named,),
                ("email_search_emails", {"sender": "{0}", "date_min": day}),
                limit="date_min",
            )


def events() -> Iterator[Quest]:
    rng = Random("office/quests/events")
    taken = {row["event_start"] for row in fresh().events.values()}
    for place, person in enumerate(ambiguous(rng, 3)):
        named = by_name(person) if place < 2 else by_department(person)
        start, name = _free(rng, taken), ("Sample review", "Fabric tasting", "Loom service")[place]
        minutes = (30, 45, 90)[place]
        yield Quest(
            "calendar",
            "easy" if place < 2 else "medium",
            f"Book '{name}' with {named.said} on {spoken(start[:10])} at {start[11:]} for {minutes} minutes.",
            (_event(name, start, minutes),),
            (named,),
        )
    yield from islice(_cancellations(), 0, None, 3)
    yield from _moves(rng, taken)
    yield from _if_free(rng, taken)


def _event(name: str, start: str, minutes: int, who: str = "{0}") -> tuple[str, dict[str, object]]:
    given = {"event_name": name, "participant_email": who, "event_start": start, "duration": minutes}
    return "calendar_create_event", given


def _free(rng: Random, taken: set[str]) -> str:
    while True:
        day = TODAY + timedelta(days=rng.randrange(2, 20))
        start = f"{day} {rng.randrange(8, 17):02d}:15"
        if day.weekday() < 5 and start not in taken:
            taken.add(start)
            return start


def _partners() -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for row in fresh().events.values():
        if row["event_start"][:10] > str(TODAY):
            found.setdefault(row["participant_email"], []).append(row)
    return dict(sorted(found.items()))


def _cancellations() -> Iterator[Quest]:
    for address, rows in _partners().items():
        day = boundary(rows, "event_start", early=True)
        if (
            day
            and by_address()[address].first in ("Ayla", "Nadia", "Ravi", "Simon", "Luca")
            and len(rows) < 8
        ):
            named = by_department(by_address()[address])
            yield Quest(
                "calendar",
                "hard",
                f"Cancel all my meetings with {named.said} from tomorrow up to and including {spoken(day)}.",
                (("calendar_delete_event", {"event_id": "{id}"}),),
                (named,),
                (
                    "calendar_search_events",
                    {"participant": "{0}", "date_min": str(TODAY + timedelta(days=1)), "date_max": day},
                ),
                limit="date_max",
            )


def _moves(rng: Random, taken: set[str]) -> Iterator[Quest]:
    for address in rng.sample(list(_partners()), 3):
        start = _free(rng, taken)
        named = by_department(by_address()[address])
        yield Quest(
            "calendar",
            "medium",
            f"Move my next meeting with {named.said} after today to {spoken(start[:10])}, {start[11:]}.",
            (("calendar_update_event", {"event_id": "{id}", "event_start": start}),),
            (named,),
            ("calendar_search_events", {"participant": "{0}", "date_min": str(TODAY + timedelta(days=1))}),
            "first",
        )


def _if_free(rng: Random, taken: set[str]) -> Iterator[Quest]:
    """Once nothing is there, twice something: then nothing may be booked."""
    partners = _partners()
    for place, address in enumerate(rng.sample(list(partners), 3)):
        named = by_department(by_address()[address])
        busy = [row["event_start"][:10] for row in partners[address]]
        start = _free(rng, taken)
        while start[:10] in busy:
            start = _free(rng, taken)
        if place:
            start = f"{busy[0]} 17:15"
        yield Quest(
            "calendar",
            "medium",
            f"If I have no meeting with {named.said} on {spoken(start[:10])} yet, book 'Catch-up' with them "
            f"that day at {start[11:]} for 30 minutes. If there is one already, leave the calendar alone.",
            (_event("Catch-up", start, 30),),
            (named,),
            (
                "calendar_search_events",
                {"participant": "{0}", "date_min": start[:10], "date_max": start[:10]},
            ),
            condition=("none", 0),
        )


def _on(search: str, day: str) -> tuple[str, dict[str, object]]:
    return search, {"participant": "{0}", "date_min": day, "date_max": day}


def mixed() -> Iterator[Quest]:
    """Calendar, mail and board in one request, with two branches."""
    rng = Random("office/quests/mixed")
    partners = _partners()
    for place, address in enumerate(rng.sample(list(partners), 3)):
        named = by_department(by_address()[address])
        days = [row["event_start"][:10] for row in partners[address]]
        day = next(day for day in days if days.count(day) == 1) if place else str(date(2026, 3, 29))
        task = {
            "task_name": f"Prepare talk with {by_address()[address].name}", "assigned_to_email": "{0}",
            "list_name": "Backlog", "due_date": day, "board": "Design",
        }
        note = {"recipient": "{0}", "subject": "Meeting cancelled", "body": "I am travelling that day."}
        yield Quest(
            "multi",
            "hard",
            f"If I meet {named.said} on {spoken(day)}, cancel that meeting and send them an e-mail, subject "
            f"'Meeting cancelled', text 'I am travelling that day.' Otherwise add the task "
            f"'{task['task_name']}' to the Backlog of the Design board, assigned to them and due that day.",
            (("calendar_delete_event", {"event_id": "{id}"}), ("email_send_email", note)),
            (named,),
            _on("calendar_search_events", day),
            condition=("any", 0),
            otherwise=(("project_management_create_task", task),),
        )


# ---- Customers, projects and visits ----------------------------------------------------------------

_SEARCH, _CHANGE = (
    "customer_relationship_manager_search_customers", "customer_relationship_manager_update_customer",
)
_TASKS, _MOVE = "project_management_search_tasks", "project_management_update_task"


def _held(table: Table) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for row in table.values():
        found.setdefault(row["assigned_to_email"], []).append(row)
    return dict(sorted(found.items()))


def _shared(held: dict[str, list[Record]], address: str, **same: str) -> bool:
    """Whether somebody of the same first name has such records too."""
    others = [p.address for p in namesakes(by_address()[address].first) if p.address != address]
    rows = [row for other in others for row in held.get(other, ())]
    return any(all(row[key] == value for key, value in same.items()) for row in rows)


def customers() -> Iterator[Quest]:
    rng = Random("office/quests/customers")
    table = fresh().customers
    for place, row in enumerate(rng.sample(list(table.values()), 3)):
        status = ("Won", "Proposal", "Qualified")[place]
        status = "Lost" if status == row["status"] else status
        yield Quest(
            "crm",
            "easy",
            f"Set the status of the customer {row['customer_name']} to {status}.",
            ((_CHANGE, {"customer_id": "{id}", "status": status}),),
            read=(_SEARCH, {"customer_name": row["customer_name"]}),
        )
    for place, person in enumerate(ambiguous(rng, 2)):
        name, product = ("Osier & Daughters", "Bramble House")[place], ("Looms", "Thread")[place]
        address = ("hello@osier.example", "desk@bramble-house.example")[place]
        given = {"customer_name": name, "customer_email": address, "assigned_to_email": "{0}"}
        yield Quest(
            "crm",
            "medium",
            f"Add {name} ({address}) to the customers, interested in {product}, looked after by "
            f"{by_department(person).said}.",
            (("customer_relationship_manager_add_customer", {**given, "product_interest": product}),),
            (by_department(person),),
        )
    yield from _handed_over(rng, _held(table))
    yield from islice(_stale(_held(table)), 0, None, 2)
    yield from _many_customers(table)


def _handed_over(rng: Random, held: dict[str, list[Record]]) -> Iterator[Quest]:
    """Both people share their first names with colleagues who have customers too."""
    found = [
        (address, product)
        for address, rows in held.items()
        for product in sorted({row["product_interest"] for row in rows})
        if 2 <= sum(row["product_interest"] == product for row in rows) <= 5
        and _shared(held, address, product_interest=product)
    ]
    for address, product in rng.sample(found, 4):
        before = by_department(by_address()[address])
        to = by_department(ambiguous(rng, 1, but=by_address()[address].first)[0])
        yield Quest(
            "crm",
            "hard",
            f"{before.said} hands over all customers interested in {product} to {to.said}. "
            "Please reassign them.",
            ((_CHANGE, {"customer_id": "{id}", "assigned_to_email": "{1}"}),),
            (before, to),
            (_SEARCH, {"assigned_to": "{0}", "product_interest": product}),
        )


def _stale(held: dict[str, list[Record]]) -> Iterator[Quest]:
    for address, rows in held.items():
        day = boundary(rows, "last_contact_date", early=True)
        if day and len(namesakes(by_address()[address].first)) == 3 and 6 <= len(rows) <= 8:
            named = by_department(by_address()[address])
            yield Quest(
                "crm",
                "hard",
                f"Customers of {named.said} whom nobody has contacted since {spoken(day)} (last contact "
                f"that day or earlier) get {spoken(TODAY + timedelta(days=7))} as the date to follow up by.",
                ((_CHANGE, {"customer_id": "{id}", "follow_up_by": str(TODAY + timedelta(days=7))}),),
                (named,),
                (_SEARCH, {"assigned_to": "{0}", "last_contact_max": day}),
                limit="last_contact_max",
            )


def _many_customers(table: Table) -> Iterator[Quest]:
    """More than one page of them."""
    counts: dict[tuple[str, str], int] = {}
    for row in table.values():
        key = (row["product_interest"], row["status"])
        counts[key] = counts.get(key, 0) + 1
    for product, status in sorted(key for key, number in counts.items() if 6 <= number <= 9)[:4:2]:
        yield Quest(
            "crm",
            "hard",
            f"Put the note 'Spring offer sent' on all customers with the status {status} who are interested "
            f"in {product}.",
            ((_CHANGE, {"customer_id": "{id}", "notes": "Spring offer sent"}),),
            read=(_SEARCH, {"product_interest": product, "status": status}),
        )


def projects() -> Iterator[Quest]:
    rng = Random("office/quests/projects")
    table = fresh().tasks
    for place, person in enumerate(ambiguous(rng, 2)):
        due = str(TODAY + timedelta(days=9 + place))
        name, board = ("Draw the loom icon", "Count the bolts of linen")[place], ("Design", "Data")[place]
        named = (by_name, by_department)[place](person)
        given = {"task_name": name, "assigned_to_email": "{0}", "list_name": "Backlog", "due_date": due}
        yield Quest(
            "projects",
            ("easy", "medium")[place],
            f"Add the task '{name}' to the Backlog of the {board} board for {named.said}, due on "
            f"{spoken(due)}.",
            (("project_management_create_task", {**given, "board": board}),),
            (named,),
        )
    held = _held(table)
    yield from islice(_late(held), 0, None, 2)
    yield from _tasks_handed_over(rng, held)
    yield from _many_tasks(table)
    yield from _none_late(held)


def _late(held: dict[str, list[Record]]) -> Iterator[Quest]:
    for address, rows in held.items():
        day = boundary(rows, "due_date", early=True)
        if (
            day
            and by_address()[address].first in ("Idris", "Marta", "Celia", "Oskar")
            and 7 <= len(rows) <= 9
        ):
            named = by_department(by_address()[address])
            yield Quest(
                "projects",
                "hard",
                f"All tasks of {named.said} that are due by {spoken(day)} at the latest are now "
                "due on 24 April.",
                ((_MOVE, {"task_id": "{id}", "due_date": "2026-04-24"}),),
                (named,),
                (_TASKS, {"assigned_to": "{0}", "due_max": day}),
                limit="due_max",
            )


def _tasks_handed_over(rng: Random, held: dict[str, list[Record]]) -> Iterator[Quest]:
    found = [
        (address, board)
        for address, rows in held.items()
        for board in sorted({row["board"] for row in rows})
        if 2 <= sum(row["board"] == board for row in rows) <= 5 and _shared(held, address, board=board)
    ]
    for address, board in rng.sample(found, 3):
        before = by_department(by_address()[address])
        to = by_department(ambiguous(rng, 1, but=by_address()[address].first)[0])
        yield Quest(
            "projects",
            "hard",
            f"{to.said} takes over everything that {before.said} has on the {board} board. Reassign "
            "these tasks.",
            ((_MOVE, {"task_id": "{id}", "assigned_to_email": "{1}"}),),
            (before, to),
            (_TASKS, {"assigned_to": "{0}", "board": board}),
        )


def _many_tasks(table: Table) -> Iterator[Quest]:
    for board in ("Data", "Front end"):
        yield Quest(
            "projects",
            "hard",
            f"Clear the {board} board: delete all tasks in its list Completed.",
            (("project_management_delete_task", {"task_id": "{id}"}),),
            read=(_TASKS, {"board": board, "list_name": "Completed"}),
        )


def _none_late(held: dict[str, list[Record]]) -> Iterator[Quest]:
    """Nothing is due, though a namesake has such tasks: the right thing is to do nothing."""
    found = 0
    for address, rows in held.items():
        days = sorted(row["due_date"] for row in rows if row["list_name"] == "In Progress")
        day = str(TODAY + timedelta(days=-3))
        if days and days[0] > day and len(namesakes(by_address()[address].first)) > 1 and found < 3:
            found += 1
            named = by_department(by_address()[address])
            yield Quest(
                "projects",
                "medium",
                f"If {named.said} has tasks In Progress that were due on {spoken(day)} or earlier, move them "
                "to the Backlog. If not, change nothing.",
                ((_MOVE, {"task_id": "{id}", "list_name": "Backlog"}),),
                (named,),
                (_TASKS, {"assigned_to": "{0}", "list_name": "In Progress", "due_max": day}),
                condition=("any", 0),
            )


def analytics() -> Iterator[Quest]:
    rng = Random("office/quests/analytics")
    for place in range(3):
        first = TODAY - timedelta(days=30 + 9 * place)
        last, metric, plot = (
            first + timedelta(days=13), ("visits", "duration", "sources")[place], "line bar bar".split(),
        )
        given = {"date_min": str(first), "date_max": str(last), "metric": metric, "plot_type": plot[place]}
        yield Quest(
            "analytics",
            "easy",
            f"Make a {plot[place]} plot of the {metric} from {spoken(first)} to {spoken(last)}.",
            (("analytics_create_plot", given),),
        )
    for place in range(6):
        yield _if_visits(rng, place)
    for person in rng.sample([p for p in staff() if p.first in ("Ilse", "Emeka", "Tadeo")], 2):
        yield _number(rng, by_name(person))


def _span(rng: Random) -> dict[str, str]:
    first = TODAY - timedelta(days=rng.randrange(20, 60))
    return {"date_min": str(first), "date_max": str(first + timedelta(days=rng.randrange(6, 12)))}


def _if_visits(rng: Random, place: int) -> Quest:
    """Half of the conditions hold; where the fifth and sixth do not, nothing is to be done."""
    span, source = _span(rng), ("search", "social", "direct")[place % 3]
    total = sum(
        row["source"] == source and span["date_min"] <= row["date"] <= span["date_max"] for row in visits()
    )
    bound = total - 1 if place in (0, 2, 3) else total  # not above: the number itself
    named = by_department(ambiguous(rng, 1)[0])
    plot = {**span, "metric": "sources", "plot_type": "bar"}
    note = {"recipient": "{0}", "subject": "Visits", "body": f"Visits from {source} stay low."}
    days = f"from {spoken(span['date_min'])} to {spoken(span['date_max'])}"
    alone = place >= 4
    said = f"If more than {bound} visits came from {source} {days}, make a bar plot of the sources for then. "
    said += "If not, there is nothing to do." if alone else (
        f"If not, send {named.said} an e-mail, subject 'Visits', text '{note['body']}'"
    )  # fmt: skip
    return Quest(
        "analytics",
        "medium",
        said,
        (("analytics_create_plot", plot),),
        () if alone else (named,),
        ("analytics_count_visits", {**span, "source": source}),
        condition=("above", bound),
        otherwise=() if alone else (("email_send_email", note),),
    )


def _number(rng: Random, named: Named) -> Quest:
    span = _span(rng)
    return Quest(
        "analytics",
        "medium",
        f"Tell {named.said} by e-mail how many engaged visits we had from {spoken(span['date_min'])} to "
        f"{spoken(span['date_max'])}: subject 'Engaged visits', the number alone as the text.",
        (("email_send_email", {"recipient": "{0}", "subject": "Engaged visits", "body": "{total}"}),),
        (named,),
        ("analytics_count_visits", {**span, "engaged": "yes"}),
    )


def counted() -> Iterator[Quest]:
    """How many customers somebody has, told to somebody else."""
    rng = Random("office/quests/counted")
    held = _held(fresh().customers)
    found = [address for address in held if _shared(held, address, status="Proposal")]
    for address in rng.sample(found, 2):
        holder = by_department(by_address()[address])
        to = by_department(ambiguous(rng, 1, but=by_address()[address].first)[0])
        note = {"recipient": "{1}", "subject": "Open proposals", "body": "{total}"}
        yield Quest(
            "multi",
            "hard",
            f"How many customers of {holder.said} have the status Proposal? Send the number, and nothing "
            f"else, to {to.said} under the subject 'Open proposals'.",
            (("email_send_email", note),),
            (holder, to),
            (_SEARCH, {"assigned_to": "{0}", "status": "Proposal"}),
        )


# ---- Rows of a dataset ---------------------------------------------------------------------------

POLICY = f"""You are the office assistant of Ines Vardal ({OWNER}) and act only through the tools.
Today is {TODAY:%A}, {TODAY}, 09:00; days without a year are of this year.
Dates are YYYY-MM-DD, times YYYY-MM-DD HH:MM; the limits of a search are included in it.
- Do what is asked and nothing else: no change that was not asked for, no message that was not asked for.
- Several colleagues share a first name. Look a person up in the directory and take the one who is meant.
- A search shows five results a page. If `pages` is more than 1, read them all.
- Use texts in quotes as they stand.
- An answer that begins with "Error" means that nothing was done. Correct the call; report only what was done.
- Nobody answers questions. When all is done, say in one or two sentences what you did."""

AGENT = "workplace_assistant_simple_agent"
EXAMPLES = ("email-01", "email-07", "email-12", "calendar-01", "calendar-04", "calendar-10", "crm-01",
            "crm-06", "crm-10",
            "projects-03", "projects-07", "analytics-05", "multi-01")  # fmt: skip


@cache
def quests() -> dict[str, Quest]:
    """All tasks by their id."""
    families = (emails, events, customers, projects, analytics, mixed, counted)  # fmt: skip
    found: dict[str, Quest] = {}
    numbers: dict[str, int] = {}
    for quest in (quest for family in families for quest in family()):
        numbers[quest.category] = numbers.get(quest.category, 0) + 1
        found[f"{quest.category}-{numbers[quest.category]:02d}"] = quest
    return found


def row(ident: str) -> dict[str, Any]:
    """One line of the dataset."""
    quest = quests()[ident]
    truths = [
        {"name": name, "arguments": msgspec.json.encode(given).decode()} for name, given in truth(quest)
    ]
    return {
        "task_id": ident,
        "responses_create_params": {
            "input": [{"role": "system", "content": POLICY}, {"role": "user", "content": quest.request}],
            "tools": schemas(), "parallel_tool_calls": True,
        },
        "ground_truth": truths,
        "category": quest.category,
        "difficulty": quest.difficulty,
        "no_change": not truths,  # a rollout that does nothing passes it
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
    }


def rows(idents: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
    return [row(ident) for ident in (quests() if idents is None else idents)]
