"""Sort the fields of a row for a reader: failed checks, what was recorded, what was expected, the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from blade.formats.items import quotable

# Names only decide the order of print: a field that no pattern knows is shown among what was recorded.
_KEYS = re.compile(r"^_ng_|^(?:agent_ref|skills_ref|uuid|id|name|task_name|\w+_id)$")
_TASK = re.compile(
    r"instruction|^question|^problem|^prompt|^task_(?:purpose|description)|^scenario|^goal$|^query$"
)
_STEPS = frozenset("trajectory messages subagent_trajectories delegated_response osworld_steps".split())
_EXPECTED = re.compile(r"expected|^gold|ground_truth|^gt_|reference_|^target|^answer$|^solution$|answer_key")
_TELLING = re.compile(
    r"error|fail|exception|stderr|verdict|judge|reason|explan|feedback|check|message|assert|test|verif|valid|status"
    r"|termination|rubric|grade|reward|score|match|correct|answer|log",
    re.IGNORECASE,
)
_JUDGES = re.compile(
    r"verif|check|test|judge|assert|rubric|grade|criteri|match|pass|correct|success|valid|\bmet$|resolved|satisf|solved"
    r"|follow",
    re.IGNORECASE,
)
_BAD_IF_TRUE = re.compile(r"error|fail|timed?_?out|truncat|crash|invalid|incomplete|violat", re.IGNORECASE)
_BAD = frozenset("failed fail failure error errored incorrect wrong unmet timeout".split())
_STOPS = ("error", "incomplete_details", "stop_reason", "finish_reason")  # of `response`
_DEPTH = 8
_NODES = 5000  # values of a row that are looked into for failed checks
_MEMBERS = 12  # values of an object up to which each has a line of its own
_LINES = 30  # of what was recorded
_LONG = 200  # characters from which a text is told by its end
_TEXTS = 4


@dataclass(slots=True)
class Sorted:
    """The fields of a row in the order in which they help a reader."""

    failed: list[str] = field(default_factory=list)  # checks inside the fields that did not pass
    recorded: list[tuple[str, Any]] = field(default_factory=list)  # path and value
    texts: list[tuple[str, str]] = field(default_factory=list)  # long ones
    expected: list[tuple[str, Any]] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)  # given before, or without room above


def sorted_fields(fields: Mapping[str, Any], stops: Mapping[str, Any]) -> Sorted:
    """Sort the fields of a row, `stops` of its response among them."""
    found = Sorted()
    open_: list[tuple[str, Any]] = list(stops.items())
    for name, value in fields.items():
        if value in (None, "", [], {}) or _is_given(name, value):
            found.others.append((name, value))
        elif _EXPECTED.search(name):
            found.expected.append((name, value))
        else:
            open_.append((name, value))
    checks = [check for name, value in open_ for check in _failed(name, value, _Nodes())]
    found.failed = [text for _, text in checks]
    failing = Counter(path for path, _ in checks)
    open_.sort(key=lambda one: not _TELLING.search(one[0]))
    for name, value in open_:
        _place(found, name, value, failing)
    return found


def _is_given(name: str, value: Any) -> bool:
    """Decide whether a field was there before the rollout, or holds its steps: keys, the task, trajectories."""
    if _KEYS.search(name) or name in _STEPS or name in ("tools", "input"):
        return True
    return isinstance(value, str) and bool(_TASK.search(name))


def stops(response: Any) -> dict[str, Any]:
    """Collect what a response says of how it stopped; nothing where it completed."""
    if not isinstance(response, Mapping):
        return {"response": "missing"}
    status = (
        {"response.status": response["status"]} if response.get("status") not in (None, "completed") else {}
    )
    return status | {f"response.{key}": response[key] for key in _STOPS if response.get(key)}


def _place(found: Sorted, name: str, value: Any, failing: Counter[str]) -> None:
    """Put a field where it is read first and still fits; its failed checks are not repeated."""
    leaves = list(_leaves(name, value, _DEPTH))
    texts = [leaf for leaf in leaves if _is_text(leaf[1])][: _TEXTS - len(found.texts)]
    found.texts += texts
    members = [leaf for leaf in leaves if leaf not in texts]
    members = members if len(members) <= _MEMBERS else [(name, value)]
    members = [
        (path, f"{len(inner):,} entries, {failing[path]} not passed") if path in failing else (path, inner)
        for path, inner in members
        if path not in failing or isinstance(inner, list)
    ]
    if len(found.recorded) + len(members) <= _LINES:
        found.recorded += members
    else:
        found.others.append((name, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > _LONG or "\n" in value.strip())


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values inside objects by their dotted path, empty ones apart."""
    if isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner, depth - 1)
    elif value not in (None, "", [], {}):
        yield path, value


class _Nodes:
    """Counts the values that are looked into: a row may hold very many."""

    left = _NODES

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _failed(path: str, value: Any, nodes: _Nodes, depth: int = _DEPTH) -> Iterator[tuple[str, str]]:
    """Yield the checks inside a value that did not pass: the path of the value or list, and its own words."""
    if not nodes.take() or not depth:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _failed(f"{path}.{key}", inner, nodes, depth - 1)
    elif isinstance(value, list):
        yield from _failed_in_list(path, value, nodes, depth)
    elif is_bad(path, value):
        yield path, f"{path} = {quotable(value)}"


def _failed_in_list(path: str, values: list[Any], nodes: _Nodes, depth: int) -> Iterator[tuple[str, str]]:
    if values and all(isinstance(value, bool) for value in values):
        places = [str(at) for at, value in enumerate(values) if not value]
        if places and _JUDGES.search(path):
            more = " …" if len(places) > 20 else ""
            yield "", f"{path}: {len(places)} of {len(values)} false, at {', '.join(places[:20])}{more}"
        return
    if values and isinstance(values[0], Mapping) and {"role", "content"} <= values[0].keys():
        return  # a conversation, not a list of checks
    for at, record in enumerate(values):
        if not nodes.take():
            return
        if not isinstance(record, Mapping):
            continue
        bad = next((key for key, value in record.items() if is_bad(f"{path}.{key}", value)), None)
        if bad is not None:
            yield path, f"{path}[{at}] {bad} = {quotable(record[bad])}: {quotable(record)}"
        else:
            for key, inner in record.items():
                if isinstance(inner, Mapping | list):
                    yield from _failed(f"{path}[{at}].{key}", inner, nodes, depth - 1)


def is_bad(path: str, value: Any) -> bool:
    """Decide whether a value says of a check that it did not pass: a word for it, or a truth by its name."""
    if isinstance(value, bool):
        name = path.rpartition(".")[2]
        return value if _BAD_IF_TRUE.search(name) else not value and bool(_JUDGES.search(path))
    return isinstance(value, str) and value.strip().lower() in _BAD
