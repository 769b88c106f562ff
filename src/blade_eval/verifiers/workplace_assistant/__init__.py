"""Judge an office assistant by what it left behind: its changes against those of the task's own calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from blade_eval import task_row
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.verifiers.workplace_assistant.tools import call
from blade_eval.verifiers.workplace_assistant.world import TABLES, State, fresh

# Written by a person or a model, so case and the width of spaces do not count. All else is compared as it is.
FREE_TEXT = {"subject", "body", "event_name", "task_name", "customer_name", "customer_email", "notes"}
_SHOWN = 20  # changes of one kind that a row lists

Call = tuple[str, Any]
Change = tuple[str, ...]


def performed(output: Any, offered: set[str] | None = None) -> Iterator[Call]:
    """The calls of a response that were answered, in order, with arguments as far as they can be read.

    A call without an answer was never made: the rollout ended before it. Nor was one of a tool that the task
    does not offer: the agent itself turned it down.
    """
    items = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
    answered = Counter(
        str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"
    )
    for item in items:
        if item.get("type") == "function_call" and answered[str(item.get("call_id"))]:
            answered[str(item.get("call_id"))] -= 1
            name = str(item.get("name"))
            if offered is None or name in offered:
                yield name, arguments(item.get("arguments"))


def _offered(row: Row) -> set[str] | None:
    params = row.get("responses_create_params")
    tools = params.get("tools") if isinstance(params, Mapping) else None
    if not isinstance(tools, list):
        return None
    return {str(tool.get("name")) for tool in tools if isinstance(tool, Mapping)}


def arguments(spelled: Any) -> Any:
    """Arguments as the agent reads them, which refuses what is no text; None where they cannot be read."""
    try:
        return json.loads(spelled or "{}")
    except (ValueError, TypeError, RecursionError):
        return None


def after(calls: Iterable[Call], is_truth: bool = False) -> State:
    """The office after these calls on a fresh one; a refused call changes nothing, and spoils a task whose own call it is."""
    state = fresh()
    for name, spelled in calls:
        answer = call(state, name, spelled)
        if is_truth and answer.startswith("Error"):
            raise task_row.faulty(f"a call of ground_truth is refused: {answer[:300]}")
    return state


def expected(row: Row) -> list[Call]:
    """The calls that the task says would have been right."""
    truth = row.get("ground_truth")
    if not isinstance(truth, list) or not all(
        isinstance(entry, Mapping) and "name" in entry for entry in truth
    ):
        reason = "the row has no list of calls under ground_truth"
        raise Unmeasured("task_unreadable", reason, terminal=True)
    return [(str(entry["name"]), opened(entry.get("arguments"))) for entry in truth]


def opened(spelled: Any) -> Any:
    """Arguments of a call that no model made: its writer may spell them as a text or as an object."""
    return spelled if isinstance(spelled, Mapping) else arguments(spelled)


def changes(state: State) -> Counter[Change]:
    """What differs from the fresh office. The id of a new record does not count, its content does.

    Mail that was sent is known to its reader: it counts from the ledger, whatever became of the copy.
    """
    start = fresh()
    differences: Counter[Change] = Counter()
    for name in TABLES:
        before, now = start.tables[name], state.tables[name]
        for ident, row in now.items():
            if ident not in before:
                if name != "emails":
                    differences[("new", name, "", *_said(row))] += 1
            elif row is not before[ident] and (differing := set(_said(row)) - set(_said(before[ident]))):
                differences[("changed", name, ident, *sorted(differing))] += 1
        for ident in before.keys() - now.keys():
            differences[("deleted", name, ident)] += 1
    copies = {id(row) for row in state.tables["emails"].values()}
    for mail in state.sent:
        differences[("new", "emails", "", *_said(mail))] += 1
        if id(mail) not in copies:
            differences[("deleted", "emails", "", *_said(mail))] += 1
    return differences


def _said(fields: Mapping[str, Any]) -> tuple[str, ...]:
    texts = {key: " ".join(fields[key].casefold().split()) for key in FREE_TEXT & fields.keys()}
    return tuple(f"{key}={texts.get(key, value)}" for key, value in sorted(fields.items()))


def _told(change: Change) -> str:
    kind, table, ident, *fields = change
    what = f"{kind} {table.removesuffix('s')}{f' {ident}' if ident else ''}"
    text = f"{what}: {', '.join(fields)}" if fields else what
    return text if len(text) <= 160 else text[:159] + "…"


def _listed(differences: Counter[Change]) -> list[str]:
    return [_told(change) for change in sorted(differences.elements())][:_SHOWN]


async def verify(attempt: Attempt) -> Row:
    """Reward 1 if the office is as the task's own calls leave it, however that was done; replayed, as a stored rollout is."""
    wanted = expected(attempt.row)
    want = changes(after(wanted, is_truth=True))
    done = changes(after(performed(attempt.response.get("output"), _offered(attempt.row))))
    missing, extra = want - done, done - want
    match = not missing and not extra
    sides = ((missing, "expected changes are missing"), (extra, "changes were not asked for"))
    parts = [f"{side.total()} {what}, first: {_listed(side)[0]}." for side, what in sides if side]
    return {
        "reward": 1.0 if match else 0.0, "db_match": match, "missing_changes": _listed(missing),
        "extra_changes": _listed(extra),
        "verifier_message": " ".join(parts) or "The office is as expected.",
        "expected_actions": [{"name": name, "arguments": spelled} for name, spelled in wanted],
    }


def environment(settings: Mapping[str, Any]) -> Environment:
    return Environment("workplace_assistant", verify, seed=lambda row: fresh(), call=call)
