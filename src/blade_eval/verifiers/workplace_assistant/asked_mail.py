"""The tasks on mail and calendar."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice
from random import Random

from blade_eval.verifiers.workplace_assistant.people import Person, by_address, staff
from blade_eval.verifiers.workplace_assistant.quests import (
    Named,
    Quest,
    by_department,
    by_name,
    spoken,
)
from blade_eval.verifiers.workplace_assistant.world import TODAY, TOPICS, Record, fresh

_SUBJECTS = (
    "Keys for the sample room",
    "New courier times",
    "Parking on Friday",
    "Thread order",
    "Door code",
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
            "task_name": f"Prepare talk with {by_address()[address].name}",
            "assigned_to_email": "{0}",
            "list_name": "Backlog",
            "due_date": day,
            "board": "Design",
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
