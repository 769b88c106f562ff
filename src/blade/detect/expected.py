"""Pair what a task expects with what a rollout did: made otherwise, or made in addition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from blade import events
from blade.detect import passers
from blade.model import Call, Episode, Evidence, TaskTraces

_MAX = 25  # calls of one tool that are compared with each other
_MUCH = 2_000_000  # characters of all pairs that are compared to find what is left out
_ENOUGH = 3  # passing rollouts that must agree before another value is plainly wrong
_PROSE = 4  # words from which an argument is a text rather than a value
_IDS = re.compile(r"(?i:(?:^|_)ids?)$|[a-z](?:Ids?|IDs?)$")
_NAMES = re.compile(
    r"(?:^|_)(?:path|file|filename|url|email|number|key|name|table|user|account|order)$", re.IGNORECASE
)


class Action(NamedTuple):
    """A call that is expected."""

    tool: str
    arguments: Mapping[str, Any]


class Paired(NamedTuple):
    """What became of the expected calls in one rollout."""

    differing: list[tuple[Call, Action, list[str]]]  # fields that differ
    extra: list[Call]  # writes that nothing asks for


class LeftOut(NamedTuple):
    """Expected calls with one tool that a rollout does not even try, although it calls the tool."""

    last: Call  # the last call of the tool
    n_expected: int
    actions: list[Action]


class Expectation:
    """What the rollouts of a task are compared with: its expected actions, else what all that pass write."""

    def __init__(self, task: TaskTraces) -> None:
        self.field = task.gold.actions_field
        self.does = tool_does(task)
        gold = [
            Action(tool, arguments) for tool, arguments in task.gold.actions if isinstance(arguments, dict)
        ]
        self.only_reads = bool(gold) and not any(self._writes(action.tool) for action in gold)
        self._gold = [action for action in gold if self.only_reads or self._writes(action.tool)]
        self.has_gold = bool(task.gold.actions)
        self._asked: dict[str, dict[Any, Action]] = {}  # by tool; what is listed twice is asked once
        for action in self._gold:
            self._asked.setdefault(action.tool, {}).setdefault(plain(action.arguments), action)
        self._written = passers.Tally(task, lambda episode: {call.key for call in _writes(episode)})
        self._actions = {
            call.key: Action(call.tool, call.arguments)
            for episode in passers.passing(task)
            for call in _writes(episode)
            if isinstance(call.arguments, dict) and events.command_of(call.tool, call.arguments) is None
        }
        self.targets = passers.Tally(task, lambda episode: {target(call) for call in _writes(episode)})

    def _writes(self, tool: str) -> bool:
        return self.does.get(tool) == events.WRITE

    def can_compare(self) -> bool:
        """Is there anything to compare with."""
        return self.has_gold or self._written.n >= 2

    def beside(self, episode: Episode) -> int:
        """How many passing rollouts there are beside this one."""
        return self._written.others(episode)

    def severity(self, told: int) -> int:
        """As told where the task says what it expects; what passing rollouts share says less, and two of
        them may well agree by chance."""
        return told if self.has_gold else 2 if self._written.n >= _ENOUGH else 1

    def of(self, episode: Episode) -> list[Action]:
        """The calls expected of a rollout."""
        if self.has_gold:
            return self._gold
        shared = (str(key) for key in self._written.in_all(episode))
        return [self._actions[key] for key in shared if key in self._actions]

    def paired(self, episode: Episode) -> Paired:
        """The calls of a rollout against those expected of it; what a passing rollout does too is fine."""
        made: dict[str, list[Call]] = {}
        for call in episode.calls:
            if (call.does == events.WRITE or self.only_reads) and isinstance(call.arguments, dict):
                made.setdefault(call.tool, []).append(call)
        wanted: dict[str, list[Action]] = {}
        for action in self.of(episode):
            wanted.setdefault(action.tool, []).append(action)
        differing: list[tuple[Call, Action, list[str]]] = []
        extra: list[Call] = []
        for tool, every in made.items():
            # a write that was refused changed nothing: it only counts where no other was made
            calls = [call for call in every if not call.failed] or every
            pairs, rest = _pair(calls[-_MAX:], wanted.get(tool, [])[:_MAX])
            differing += [
                (call, action, fields)
                for call, action, fields in pairs
                if fields and not self._written.count(episode, call.key)
            ]
            extra += [call for call in rest if self._is_extra(episode, call)]
        differing.sort(key=lambda pair: pair[0].step)
        return Paired(differing, sorted(extra, key=lambda call: call.step))

    def left_out(self, episode: Episode) -> dict[str, LeftOut]:
        """By tool; nothing of a tool whose calls are so many or so long that they are not compared."""
        made: dict[str, list[Call]] = {}
        for call in episode.calls:
            if call.tool in self._asked:
                made.setdefault(call.tool, []).append(call)
        found: dict[str, LeftOut] = {}
        for tool, calls in made.items():
            wanted = list(self._asked[tool].values())
            much = len(wanted) * sum(len(call.raw) for call in calls)
            is_too_much = max(len(calls), len(wanted), len(found) + 1) > _MAX or much > _MUCH
            left = [] if is_too_much else _not_tried(calls, wanted)
            if left:
                found[tool] = LeftOut(calls[-1], len(wanted), left)
        return found

    def _is_extra(self, episode: Episode, call: Call) -> bool:
        if call.failed or call.does != events.WRITE:
            return False
        return not self.targets.count(episode, target(call))


def tool_does(task: TaskTraces) -> dict[str, str]:
    """What each tool of a task does: as its calls were read, else by its declaration or name."""
    found = {call.tool: call.does for episode in task.episodes for call in episode.calls}
    declared = next((episode.tools for episode in task.episodes if episode.tools), {})
    for tool, arguments in task.gold.actions:
        if tool not in found:
            found[tool] = events.what_it_does(tool, arguments, declared.get(tool), {})
    return found


def quoted(episode: Episode, field: str, tool: str) -> Evidence | None:
    """The expected actions as the row gives them, from where they name a tool."""
    value: Any = episode.trace.row
    for key in field.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    text = value if isinstance(value, str) else events.compact(value)
    return events.in_field(episode, field, max(0, text.find(f'"{tool}"')))


def target(call: Call) -> tuple[str, str]:
    """What a write acts on: its tool, and the first argument that is an id, else that names a thing."""
    field = _named(call.arguments) if isinstance(call.arguments, dict) else None
    return call.tool, str(call.arguments[field]).strip().casefold() if field else ""


def naming(arguments: Mapping[str, Any]) -> str | None:
    """The argument that tells a call from its like: what it acts on, else its first."""
    return _named(arguments) or next(iter(arguments), None)


def _named(arguments: Mapping[str, Any]) -> str | None:
    for names in (_IDS, _NAMES):
        for field, value in sorted(arguments.items()):
            if names.search(field) and isinstance(value, str | int):
                return field
    return None


def _writes(episode: Episode) -> Iterator[Call]:
    return (call for call in episode.calls if call.does == events.WRITE and not call.failed)


def _pair(
    calls: Sequence[Call], wanted: Sequence[Action]
) -> tuple[list[tuple[Call, Action, list[str]]], list[Call]]:
    """Each call with the expected one it is most like, one to one; and the calls that are left over."""
    ranked = []
    for place, call in enumerate(calls):
        for number, action in enumerate(wanted):
            fields = differing_fields(call.arguments, action.arguments)
            alike = len(action.arguments) - len(fields)
            if not fields or alike or len(action.arguments) == 1:
                ranked.append((bool(fields), -alike, call.failed, place, number, fields))
    ranked.sort()
    taken: set[int] = set()
    given: set[int] = set()
    pairs = []
    for _, _, _, place, number, fields in ranked:
        if place not in taken and number not in given:
            taken.add(place)
            given.add(number)
            pairs.append((calls[place], wanted[number], fields))
    return pairs, [call for place, call in enumerate(calls) if place not in taken]


def _not_tried(calls: Sequence[Call], wanted: Sequence[Action]) -> list[Action]:
    """Expected calls that were neither made nor refused nor misspelt."""
    readable = [call for call in calls if isinstance(call.arguments, dict)]
    pairs, _ = _pair([call for call in readable if not call.failed], wanted)
    met = {id(action) for _, action, _ in pairs}
    done = [action.arguments for action in wanted if id(action) in met]
    # a refusal of what was then made is no try at something else
    refused = (call for call in readable if call.failed)
    others = [call for call in refused if all(differing_fields(call.arguments, one) for one in done)]
    tries, _ = _pair(others, [one for one in wanted if id(one) not in met])
    met |= {id(action) for _, action, _ in tries}
    left = [one for one in wanted if id(one) not in met]
    return left[len(calls) - len(readable) :]  # a call that is no JSON may have been any of them


def differing_fields(made: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Expected fields that a call leaves out or gives another value; prose is never compared."""
    found = []
    for field, value in wanted.items():
        given = made.get(field)
        if given == value:
            continue
        if not (_is_prose(value) or _is_prose(given)) and plain(_as_far_as(given, value)) != plain(value):
            found.append(field)
    return found


def _as_far_as(given: Any, wanted: Any) -> Any:
    """A value without the inner fields that the expected one does not speak of."""
    if isinstance(given, dict) and isinstance(wanted, dict):
        return {key: inner for key, inner in given.items() if key in wanted}
    if isinstance(given, list) and isinstance(wanted, list):
        named = {key for inner in wanted if isinstance(inner, dict) for key in inner}
        return [
            {key: value for key, value in inner.items() if key in named} if isinstance(inner, dict) else inner
            for inner in given
        ]
    return given


def without(one: list[Any], other: list[Any]) -> list[Any]:
    """The entries of a list that another one lacks, each as often as it is lacking."""
    left = Counter(map(plain, _as_far_as(other, one)))
    found = []
    for entry, told in zip(one, _as_far_as(one, other), strict=True):
        key = plain(told)
        if left[key]:
            left[key] -= 1
        else:
            found.append(entry)
    return found


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > 200 or len(value.split()) > _PROSE)


def plain(value: Any, depth: int = 0) -> Any:
    """A value such that equal ones are equal: lists in any order, numbers by value, text by its letters."""
    if depth > 20:
        return repr(value)
    if isinstance(value, Mapping):
        told = ((str(key), plain(inner, depth + 1)) for key, inner in value.items())
        return "object", tuple(sorted((pair for pair in told if pair[1] is not None), key=repr))
    if isinstance(value, list | tuple):
        return "list", tuple(sorted((plain(inner, depth + 1) for inner in value), key=repr))
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).casefold()
    text = str(value).strip().casefold()
    try:
        return float(text)
    except ValueError:
        return text
