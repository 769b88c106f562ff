"""The tasks on customers, projects and the website's visits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from random import Random

from blade_eval.verifiers.workplace_assistant.asked_mail import ambiguous, boundary
from blade_eval.verifiers.workplace_assistant.people import by_address, namesakes, staff
from blade_eval.verifiers.workplace_assistant.quests import (
    Named,
    Quest,
    by_department,
    by_name,
    spoken,
)
from blade_eval.verifiers.workplace_assistant.world import TODAY, Record, Table, fresh, visits

_SEARCH, _CHANGE = (
    "customer_relationship_manager_search_customers",
    "customer_relationship_manager_update_customer",
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
            first + timedelta(days=13),
            ("visits", "duration", "sources")[place],
            "line bar bar".split(),
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
