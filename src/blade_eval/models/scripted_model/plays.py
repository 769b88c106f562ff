"""Play a task of the office turn by turn: look up, act, report, and go wrong in one way if told so."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from blade_eval.verifiers.workplace_assistant.quests import (
    Call,
    Named,
    Quest,
    consequences,
    holds,
    made,
    spoken,
)
from blade_eval.verifiers.workplace_assistant.world import OWNER, by_address

DIRECTORY = "company_directory_find_email_address"
_DATES = ("sent_at", "event_start", "due_date", "last_contact_date")
_AT_ONCE = 4  # calls in one turn
_DONE = (
    "Done: {}.", "All set: {}.", "I have taken care of it: {}.",
)  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """What the model puts out at once: a thought, calls, or its last word."""

    calls: tuple[tuple[str, dict[str, Any] | str], ...] = ()
    thought: str = ""
    says: str = ""


Play = Generator[Turn, list[str], None]


@dataclass
class _Seen:
    """What the searches have shown."""

    rows: list[dict[str, Any]]
    total: int = 0

    def idents(self) -> list[str]:
        return [str(next(value for key, value in row.items() if key.endswith("_id"))) for row in self.rows]


def play(quest: Quest, fault: str, rng: Random) -> Play:
    """One rollout of a task; what comes back are the answers of the tools."""
    people = yield from _people(quest, fault, rng)
    seen = _Seen([])
    if quest.read is not None:
        seen = yield from _searched(quest, fault, people, rng)
    met = holds(quest, seen.total)
    thought = ""
    if quest.condition is not None and rng.random() < 0.6:
        thought = f"That makes {seen.total}, so the condition is {'' if met else 'not '}met."
    if fault == "ignored_condition":
        met, thought = not met, ""
    calls = consequences(quest, people, seen.idents(), seen.total, met)
    if fault == "stopped_early":
        yield Turn(says=_plan(calls))
        return
    if fault == "reworded_text":
        calls = [_reworded(act, rng) for act in calls]
    yield from _acted(calls, fault, thought, rng)
    if fault == "unasked_message":
        to = people[0] if people else OWNER
        note = {"recipient": to, "subject": "For your information", "body": "I have just taken care of this."}
        yield Turn((("email_send_email", note),), "They will want to know about this.")
    yield Turn(says=_report(calls, rng))


def _people(quest: Quest, fault: str, rng: Random) -> Generator[Turn, list[str], tuple[str, ...]]:
    """The addresses that the rest of the play works with."""
    addresses = []
    for place, named in enumerate(quest.people):
        if fault == "unresolved_name" and place == 0:
            addresses.append(by_address()[named.address].first)
            continue
        thought = f"First I need the address of {named.said}." if rng.random() < 0.5 else ""
        answer = yield Turn(((DIRECTORY, {"name": named.look}),), thought)
        addresses.append(_taken(named, fault, answer))
    return tuple(addresses)


def _taken(named: Named, fault: str, answer: list[str]) -> str:
    """The one who is meant, or whoever is not and stands nearest to the top."""
    if fault != "first_match" or not named.namesakes:
        return named.address
    listed = [row["email"] for row in _read(answer[0]).get("results", ())]
    return next((address for address in listed if address != named.address), named.address)


def _read(answer: str) -> dict[str, Any]:
    try:
        answered = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return {}
    return answered if isinstance(answered, dict) else {}


def _searched(
    quest: Quest, fault: str, people: tuple[str, ...], rng: Random
) -> Generator[Turn, list[str], _Seen]:
    assert quest.read is not None
    name, arguments = made(quest.read, people)
    bound = arguments.pop(quest.limit) if fault == "dropped_boundary" and quest.limit else None
    thought = "Now I look for what this is about." if rng.random() < 0.4 else ""
    answer = _read((yield Turn(((name, arguments),), thought))[0])
    seen = _Seen(list(answer.get("results", ())), int(answer.get("total", 0)))
    if fault != "first_page":
        for page in range(2, int(answer.get("pages", 1)) + 1):
            more = yield Turn(((name, {**arguments, "page": page}),))
            seen.rows += _read(more[0]).get("results", ())
    else:
        seen.total = len(seen.rows)
    if bound is not None:
        seen.rows = [row for row in seen.rows if _inside(row, str(quest.limit), bound)]
        seen.total = len(seen.rows)
    return seen


def _inside(row: dict[str, Any], limit: str, bound: str) -> bool:
    """Between the limits as somebody reckons who forgets that they are included."""
    day = str(next(row[key] for key in _DATES if key in row))[:10]
    return day > bound if limit.endswith("min") else day < bound


def _acted(calls: list[Call], fault: str, thought: str, rng: Random) -> Generator[Turn, list[str], None]:
    """Make the calls. Now and then one is misspelled and corrected; a fault is not to correct it."""
    slip = rng.randrange(len(calls)) if calls and (fault == "ignored_error" or rng.random() < 0.12) else -1
    start = 0
    while start < len(calls):
        batch = calls[start : start + _AT_ONCE]
        spelled: list[tuple[str, dict[str, Any] | str]] = [*batch]
        if start <= slip < start + len(batch):
            spelled[slip - start] = _misspelled(calls[slip], rng)
        yield Turn(tuple(spelled), thought)
        thought = ""
        if start <= slip < start + len(batch) and fault != "ignored_error":
            yield Turn((calls[slip],), "One call was refused. I correct its arguments and try again.")
        start += len(batch)


def _misspelled(act: Call, rng: Random) -> tuple[str, dict[str, Any] | str]:
    """The call with one argument as the tool does not take it."""
    name, arguments = act
    for key in ("event_start", "due_date", "follow_up_by", "date_min"):
        if key in arguments:
            return name, {**arguments, key: spoken(str(arguments[key])[:10])}
    for key in ("recipient", "assigned_to_email", "participant_email"):
        if key in arguments and rng.random() < 0.7:
            return name, {**arguments, key: str(arguments[key]).split("@")[0]}
    for key in ("email_id", "event_id", "task_id", "customer_id"):
        if key in arguments and rng.random() < 0.7:
            return name, {**arguments, key: str(arguments[key]).lstrip("0")}
    return name, msgspec.json.encode(arguments).decode()[:-2]


def _reworded(act: Call, rng: Random) -> Call:
    """The texts in the model's own words, where the task gives them in quotes."""
    name, arguments = act
    changed = dict(arguments)
    if "body" in arguments:
        changed["body"] = f"Hello, {arguments['body']} Best regards"
    for key in ("task_name", "event_name", "notes"):
        if key in arguments:
            changed[key] = f"{arguments[key]} ({rng.choice(('new', 'please check', 'as discussed'))})"
    return name, changed


def _plan(calls: list[Call]) -> str:
    n = len(calls)
    return (
        f"I have looked everything up. Next I will make the {n} change{'s' * (n != 1)} that you asked for; "
        "tell me if that is what you want."
    )


_WORDS = {
    "send": "sent the e-mail", "reply": "answered the e-mail", "forward": "forwarded the e-mail",
    "delete": "removed",
    "create": "created", "update": "changed", "add": "added",
}  # fmt: skip


def _report(calls: list[Call], rng: Random) -> str:
    if not calls:
        return "There was nothing to change, so I left everything as it is."
    acts = []
    for name, arguments in calls:
        verb = next(words for key, words in _WORDS.items() if f"_{key}_" in name)
        ident = next((str(value) for key, value in arguments.items() if key.endswith("_id")), "")
        acts.append(f"{verb} {ident}".strip())
    return rng.choice(_DONE).format(", ".join(acts))
