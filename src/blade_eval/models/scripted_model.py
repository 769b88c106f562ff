"""Play the tasks of the office by a script, with known faults drawn from the seed: a model without a server."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import msgspec

from blade.errors import UsageError
from blade_eval.environment import Respond, Response, Row, Unmeasured
from blade_eval.expressions import table
from blade_eval.verifiers.workplace_assistant import after, changes, opened
from blade_eval.verifiers.workplace_assistant import quests as office
from blade_eval.verifiers.workplace_assistant.quests import Call, Quest, ident_of, quests
from blade_eval.verifiers.workplace_assistant.tools import call
from blade_eval.verifiers.workplace_assistant.world import OWNER, State, by_address, fresh

# ---- The play: look up, act, report, and go wrong in one way if told so ------------------------

DIRECTORY = "company_directory_find_email_address"
_TABLE = table("models/scripts.yaml")
_DATES = ("sent_at", "event_start", "due_date", "last_contact_date")
_AT_ONCE = 4  # calls in one turn
_DONE = ("Done: {}.", "All set: {}.", "I have taken care of it: {}.")


@dataclass(frozen=True)
class Turn:
    """What the model puts out at once: a thought, calls, or its last word."""

    calls: tuple[tuple[str, dict[str, Any] | str], ...] = ()
    thought: str = ""
    says: str = ""


Play = Generator[Turn, list[str], None]


def play(quest: Quest, fault: str, rng: Random) -> Play:
    """One rollout of a task; what comes back are the answers of the tools."""
    people = yield from _people(quest, fault, rng)
    idents, total = (yield from _searched(quest, fault, people, rng)) if quest.read is not None else ([], 0)
    met = office.holds(quest, total)
    thought = ""
    if quest.condition is not None and rng.random() < 0.6:
        thought = f"That makes {total}, so the condition is {'' if met else 'not '}met."
    if fault == "ignored_condition":
        met, thought = not met, ""
    calls = office.consequences(quest, people, idents, total, met)
    if fault == "stopped_early":
        n, what = len(calls), "I have looked everything up. Next I will make the"
        yield Turn(says=f"{what} {n} change{'s' * (n != 1)} that you asked for; tell me if that is what you want.")
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
    addresses = []
    for place, named in enumerate(quest.people):
        if fault == "unresolved_name" and place == 0:
            addresses.append(by_address()[named.address].first)
            continue
        thought = f"First I need the address of {named.said}." if rng.random() < 0.5 else ""
        answer = yield Turn(((DIRECTORY, {"name": named.look}),), thought)
        # the one who is meant, or whoever is not and stands nearest to the top
        is_wrong = fault == "first_match" and bool(named.namesakes)
        listed = [row["email"] for row in _read(answer[0]).get("results", ())] if is_wrong else ()
        addresses.append(next((address for address in listed if address != named.address), named.address))
    return tuple(addresses)


def _read(answer: str) -> dict[str, Any]:
    try:
        answered = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return {}
    return answered if isinstance(answered, dict) else {}


def _searched(
    quest: Quest, fault: str, people: tuple[str, ...], rng: Random
) -> Generator[Turn, list[str], tuple[list[str], int]]:
    """The ids of the records and the total that the pages of a search show, as far as they are read."""
    assert quest.read is not None
    name, arguments = office.made(quest.read, people)
    bound = arguments.pop(quest.limit) if fault == "dropped_boundary" and quest.limit else None
    thought = "Now I look for what this is about." if rng.random() < 0.4 else ""
    answer = _read((yield Turn(((name, arguments),), thought))[0])
    rows = list(answer.get("results", ()))
    for page in range(2, int(answer.get("pages", 1)) + 1) if fault != "first_page" else ():
        more = yield Turn(((name, {**arguments, "page": page}),))
        rows += _read(more[0]).get("results", ())
    if bound is not None:
        rows = [row for row in rows if _inside(row, str(quest.limit), bound)]
    is_counted = bound is not None or fault == "first_page"
    return list(map(ident_of, rows)), len(rows) if is_counted else int(answer.get("total", 0))


def _inside(row: dict[str, Any], limit: str, bound: str) -> bool:
    """Between the limits as somebody reckons who forgets that they are included."""
    day = str(next(row[key] for key in _DATES if key in row))[:10]
    return day > bound if limit.endswith("min") else day < bound


def _acted(calls: list[Call], fault: str, thought: str, rng: Random) -> Generator[Turn, list[str], None]:
    """Make the calls. Now and then one is misspelled and corrected; a fault is not to correct it."""
    slip = rng.randrange(len(calls)) if calls and (fault == "ignored_error" or rng.random() < 0.12) else -1
    for start in range(0, len(calls), _AT_ONCE):
        spelled: list[tuple[str, dict[str, Any] | str]] = [*calls[start : start + _AT_ONCE]]
        has_slip = start <= slip < start + len(spelled)
        if has_slip:
            spelled[slip - start] = _misspelled(calls[slip], rng)
        yield Turn(tuple(spelled), "" if start else thought)
        if has_slip and fault != "ignored_error":
            yield Turn((calls[slip],), "One call was refused. I correct its arguments and try again.")


def _misspelled(act: Call, rng: Random) -> tuple[str, dict[str, Any] | str]:
    name, arguments = act
    for key in ("event_start", "due_date", "follow_up_by", "date_min"):
        if key in arguments:
            return name, {**arguments, key: office.spoken(str(arguments[key])[:10])}
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


def _report(calls: list[Call], rng: Random) -> str:
    if not calls:
        return "There was nothing to change, so I left everything as it is."
    acts = []
    for name, arguments in calls:
        verb = next(words for key, words in _TABLE["reports"].items() if f"_{key}_" in name)
        acts.append(f"{verb} {ident_of(arguments)}".strip())
    return rng.choice(_DONE).format(", ".join(acts))


# ---- The faults --------------------------------------------------------------------------------

NONE = "none"
FAULTS: dict[str, str] = _TABLE["faults"]  # what each does
SCRIPTS: dict[str, dict[str, dict[str, float]]] = _TABLE["scripts"]


def drawn(script: str, seed: int, ident: str, repeat: int) -> str:
    """The fault of a rollout, or `none`: half of what goes wrong is a task's own, in every repeat, the rest is spread evenly."""
    rates, weights_of = SCRIPTS[script]["rates"], SCRIPTS[script]["weights"]
    possible = [fault for fault in applicable(ident) if fault in weights_of]
    if not possible:
        return NONE
    weights = [weights_of[fault] for fault in possible]
    rate = rates[quests()[ident].difficulty]
    own = Random(f"{seed}/{script}/{ident}")
    usual = own.choices(possible, weights)[0]
    chance = 1.0 if own.random() < rate / 2 else rate / 2 / (1 - rate / 2)
    rng = Random(f"{seed}/{script}/{ident}/{repeat}")
    if rng.random() >= chance:
        return NONE
    return usual if rng.random() < 0.8 else rng.choices(possible, weights)[0]


@cache
def applicable(ident: str) -> tuple[str, ...]:
    """The faults after which the office is not as the task wants it, whatever else is drawn."""
    wanted = changes(after(office.truth(quests()[ident])))
    return tuple(
        fault
        for fault in FAULTS
        if _meant(quests()[ident], fault)
        and all(changes(played(ident, fault, Random(f"try/{draw}"))) != wanted for draw in range(2))
    )


def _meant(quest: Quest, fault: str) -> bool:
    if fault == "ignored_condition":
        return quest.condition is not None
    if fault == "unresolved_name":
        return quest.read is not None and "{0}" in quest.read[1].values() and bool(quest.people[0].namesakes)
    return True


def played(ident: str, fault: str, rng: Random) -> State:
    state = fresh()
    course = play(quests()[ident], fault, rng)
    with suppress(StopIteration):
        turn = next(course)
        while True:
            turn = course.send([call(state, name, opened(arguments)) for name, arguments in turn.calls])
    return state


def script_and_seed(settings: Mapping[str, Any]) -> tuple[str, int]:
    return str(settings.get("script") or "careful"), int(settings.get("seed") or 0)


def truth(row: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The fault that the scripted model of these settings has, or had, in this row."""
    ident = row.get("task_id")
    if ident not in quests():
        return NONE
    return drawn(*script_and_seed(settings), str(ident), int(row.get("_ng_rollout_index") or 0))


# ---- The model ---------------------------------------------------------------------------------

_CREATED = 1773824400.0  # the morning of the office's day: rows hold no time of a clock


@asynccontextmanager
async def model(settings: Mapping[str, Any]) -> AsyncIterator[Respond]:
    """A `Respond` that plays `script` (flawless, careful, hasty, novice), drawn from `seed`."""
    script, _ = script_and_seed(settings)
    if script not in SCRIPTS:
        hint = f"the scripts are {', '.join(SCRIPTS)}"
        raise UsageError(f"the scripted model has no script {script!r}", hint, "unknown-script")

    async def respond(params: Row, row: Row) -> Response:
        return answered(params, row, settings)

    yield respond


def answered(params: Row, row: Row, settings: Mapping[str, Any]) -> Response:
    """The next turn. The play is begun anew and led along what was said so far, so nothing is remembered."""
    script, seed = script_and_seed(settings)
    whole = f"{seed}/{script}/{row.get('task_id')}/{row.get('_ng_rollout_index') or 0}"
    course = _course(row, settings, Random(f"{whole}/play"))
    history = params.get("input")
    items = [item for item in history if isinstance(item, Mapping)] if isinstance(history, list) else []
    answers = [item for item in items if item.get("type") == "function_call_output"]
    outputs = {str(item.get("call_id")): str(item.get("output")) for item in answers}
    number, turn = 0, next(course)
    while turn.calls:
        idents = [_ident(whole, number, place) for place in range(len(turn.calls))]
        if not all(f"call_{ident}" in outputs for ident in idents):
            break
        turn = course.send([outputs[f"call_{ident}"] for ident in idents])
        number += 1
    output = _items(turn, whole, number)
    return {
        "id": f"resp_{_ident(whole, number, 99)}", "created_at": _CREATED,
        "model": str(settings.get("model") or f"scripted-{script}"), "object": "response", "output": output,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed", "error": None,
        "incomplete_details": None, "usage": _usage(params, output),
    }  # fmt: skip


def _course(row: Row, settings: Mapping[str, Any], rng: Random) -> Play:
    """Of tasks that no script knows: the calls that the row itself calls right, which may be none."""
    ident = row.get("task_id")
    if ident in quests():
        yield from play(quests()[str(ident)], truth(row, settings), rng)
        return
    calls = row.get("ground_truth")
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) and "name" in call for call in calls):
        reason = "the scripted model knows the tasks of workplace_assistant, and those whose ground_truth is calls"
        raise Unmeasured("unknown_task", reason, terminal=True)
    for entry in calls:
        yield Turn(((str(entry["name"]), opened(entry.get("arguments")) or {}),))
    yield Turn(says="Done." if calls else "There was nothing to change, so I left everything as it is.")


def _ident(whole: str, turn: int, place: int) -> str:
    return hashlib.blake2b(f"{whole}/{turn}/{place}".encode(), digest_size=8).hexdigest()


def _items(turn: Turn, whole: str, number: int) -> list[Row]:
    items: list[Row] = []
    if turn.thought:
        summary = [{"type": "summary_text", "text": turn.thought}]
        items.append({"id": f"rs_{_ident(whole, number, 98)}", "type": "reasoning", "summary": summary})
    for place, (name, arguments) in enumerate(turn.calls):
        ident = _ident(whole, number, place)
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        head = {"id": f"fc_{ident}", "type": "function_call", "call_id": f"call_{ident}"}
        items.append({**head, "name": name, "arguments": text, "status": "completed"})
    if turn.says:
        content = [{"type": "output_text", "text": turn.says, "annotations": []}]
        head = {"id": f"msg_{_ident(whole, number, 97)}", "type": "message", "role": "assistant"}
        items.append({**head, "status": "completed", "content": content})
    return items


def _usage(params: Row, output: list[Row]) -> Row:
    thoughts = [item for item in output if item["type"] == "reasoning"]
    parts = ([params.get("input"), params.get("tools")], output, thoughts)
    n_input, n_output, n_thought = (len(msgspec.json.encode(part)) // 4 for part in parts)
    n_output = max(1, n_output)
    return {
        "input_tokens": n_input, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": n_output,
        "output_tokens_details": {"reasoning_tokens": n_thought if n_thought > 1 else 0},
        "total_tokens": n_input + n_output,
    }  # fmt: skip
