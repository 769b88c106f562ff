"""Flatten a row into fields, line templates of its texts, and the checks that stand in lists, objects and logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeGuard

from blade import events
from blade.formats import check_records

SHORT = 200  # characters up to which a text is a value; a longer one is shown by its lines
LONG_WORD = 500  # the same of a text without blanks
HEAD_LINES, TAIL_LINES = 2, 6  # lines of a long text that are kept as templates
TAIL = 400  # characters that are kept of the end of a long text
MAX_FIELDS = 300  # scalars of one row
MAX_DEPTH = 6
MAX_LINE = 160
# read as prompt, trace and keys
OWN = frozenset("responses_create_params response _ng_task_index _ng_rollout_index agent_ref reward".split())
_RECORDED = "status incomplete_details error stop_reason finish_reason usage".split()  # of `response`


LIMIT = re.compile(
    r"\b(?:length|max[ _-]?\w*|limit\w*|truncat\w*|time[ _-]?out|timed[ _-]out|budget|exceed\w*|incomplete|"
    r"context[ _-]window|step[ _-]cap|cut[ _-]off)\b", re.IGNORECASE,
)  # fmt: skip


def is_limit(value: Any) -> TypeGuard[str]:
    """Whether a value says in words that a limit was met."""
    return isinstance(value, str) and LIMIT.search(value.replace("_", " ")) is not None


_STOPS = ("incomplete_details.reason", "finish_reason", "stop_reason")  # where the record of a model's reply says why it ended
MAX_ENTRIES = 4  # of a list in which such records are looked for


class Flat(NamedTuple):
    """A row without its trace and its prompt."""

    scalars: list[tuple[str, Any]]
    fields: dict[str, Any]  # dotted path -> short scalar
    lines: dict[str, tuple[str, ...]]  # dotted path of a long text -> templates of its first and last lines
    tails: dict[str, str]  # dotted path of a long text -> its last lines as they are
    checks: dict[str, bool]  # name -> passed

    def meet(self, name: str, passed: bool) -> None:
        """Take a check; one that is stated twice passed only if both say so."""
        self.checks[name] = self.checks.get(name, True) and passed


def flatten(row: Mapping[str, Any]) -> Flat:
    """The fields, texts and checks of a row."""
    flat = Flat(list(_scalars(row)), {}, {}, {}, {})
    for path, value in flat.scalars:
        _keep(path, value, flat)
    flat.tails.update({path: (events.field_text(row, path) or "")[-TAIL:] for path in flat.lines})
    _name_checks(flat)
    members = _members(flat.scalars)
    _status_objects(members, flat.checks)
    _pair_checks(members, flat.checks)
    return flat


def _scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Dotted paths with their scalars, lists as they are; the trace and the prompt apart."""
    for key, value in row.items():
        if key not in OWN:
            yield from _flat(key, value, 1)
    response = row.get("response")
    if isinstance(response, dict):
        for key in _RECORDED:
            if response.get(key) is not None:
                yield from _flat(f"response.{key}", response[key], 2)


def _flat(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):  # what a JSON decoder makes of an object
        yield path, value
    elif value and all(isinstance(met, bool) and _is_data(name) for name, met in value.items()):
        yield path, value  # checks by what they are about: values that must be said, files that must exist
    elif depth < MAX_DEPTH:
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}", inner, depth + 1)
        if not value:
            yield path, None
    else:
        yield path, value


def _keep(path: str, value: Any, flat: Flat) -> None:
    if len(flat.fields) >= MAX_FIELDS:
        return
    if isinstance(value, str):
        # a text without blanks is one word, such as an id, however long
        if len(value) <= (SHORT if " " in value else LONG_WORD) and "\n" not in value.strip():
            flat.fields[path] = value
        else:
            flat.lines[path] = _templates(value)
            # the tests that a log reports; one that is reported twice passed only if both say so
            for hit in islice(_TEST_LINE.finditer(value[-MAX_LOG:]), check_records.MAX_CHECKS):
                name, phrase = hit["before"] or hit["behind"], (hit["after"] or hit["first"]).lower()
                flat.meet(f"{path}: {name.rpartition('::')[2]}", phrase in ("passed", "pass", "ok"))
    elif isinstance(value, dict):
        flat.checks.update({f"{path}: {str(name)[:SHORT]}": met for name, met in list(value.items())[: check_records.MAX_CHECKS]})
    elif isinstance(value, list):
        _keep_list(path, value, flat)
    elif value is None or isinstance(value, bool | int | float):
        flat.fields[path] = value


def _keep_list(path: str, value: list[Any], flat: Flat) -> None:
    if value and isinstance(value[0], dict) and {"role", "content"} <= value[0].keys():
        return  # another copy of the conversation
    for name, status, _ in list(check_records.of_list(value))[: check_records.MAX_CHECKS]:
        if status != check_records.OTHER:
            is_place = name.isdigit() and int(name) < len(value)  # not a number that must be said or found
            flat.meet(f"{path}[{name}]" if is_place else f"{path}: {name}", status == check_records.PASSED)
    if all(isinstance(item, str | int | float | bool) or item is None for item in value):
        text = json.dumps(value, ensure_ascii=False)
        if len(text) <= SHORT:
            flat.fields[path] = text
        elif all(isinstance(item, str) for item in value):
            flat.lines[path] = _templates("\n".join(value))


def cut_call(row: Mapping[str, Any]) -> str:
    """Where a row records that another model it asked, such as a judge, was cut off by a limit; empty without such a place."""
    waiting = [(key, value, 1) for key, value in row.items() if key not in OWN]
    while waiting:
        path, value, depth = waiting.pop()
        if isinstance(value, list):
            waiting += [(f"{path}.{i}", entry, depth + 1) for i, entry in enumerate(value[:MAX_ENTRIES]) if isinstance(entry, dict)]
        elif isinstance(value, dict) and depth <= MAX_DEPTH:
            for name in _STOPS if "output" in value or "message" in value else ():
                if is_limit(events.field_text(value, name)):
                    return f"{path}.{name}"
            inner = [(key, entry) for key, entry in value.items() if isinstance(entry, dict | list) and key != "responses_create_params"]
            waiting += [(f"{path}.{key}", entry, depth + 1) for key, entry in inner]
    return ""


def _members(scalars: list[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
    """The members of each object that holds some, by its path."""
    members: dict[str, dict[str, Any]] = {}
    for path, value in scalars:
        parent, _, name = path.rpartition(".")
        if parent:
            members.setdefault(parent, {})[name] = value
    return members


def _status_objects(members: dict[str, dict[str, Any]], checks: dict[str, bool]) -> None:
    """Take the entries of an object whose members are all words for a status, or all scores of 0 to 1, as checks."""
    for parent, values in members.items():
        is_scored = all(isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1 for value in values.values())
        statuses = {name: check_records.status_of(value) for name, value in values.items() if isinstance(value, str)}
        if len(values) >= 2 and is_scored:
            checks.update({f"{parent}: {name}": value == 1 for name, value in values.items()})
        elif len(values) >= 2 and len(statuses) == len(values) and all(statuses.values()):
            known = ((name, status) for name, status in statuses.items() if status != check_records.OTHER)
            checks.update({f"{parent}: {name}": status == check_records.PASSED for name, status in known})


def _pair_checks(members: dict[str, dict[str, Any]], checks: dict[str, bool]) -> None:
    """Take each key of two objects that hold the same keys as a check: whether they agree on it, as what is and what should be do."""
    alike: dict[frozenset[str], list[tuple[str, dict[str, Any]]]] = {}
    for parent, values in members.items():
        plain = {name: value for name, value in values.items() if not isinstance(value, list | dict)}
        if len(plain) >= 2 and not parent.startswith("response"):
            alike.setdefault(frozenset(plain), []).append((parent, plain))
    for names, objects in alike.items():
        if len(objects) == 2:
            (path, first), (other, second) = objects
            checks.update({f"{path} = {other}: {name}": first[name] == second[name] for name in sorted(names)})


# Lines in which test runners report one test: `name PASSED`, `FAILED name`, `test name ... ok`, `ok 3 - name`, `--- FAIL: name`.
_TEST_LINE = re.compile(
    r"^(?:test )?(?P<before>[\w./:\[\]-]{3,120}?)(?: \.\.\.)? (?P<after>PASSED|FAILED|ERROR|ok|FAIL|PASS)$"
    r"|^(?:--- )?(?P<first>PASSED|FAILED|ERROR|PASS|FAIL|ok|not ok):? (?:\d+ - )?(?P<behind>[\w./:\[\]-]{3,120})", re.MULTILINE,
)  # fmt: skip
MAX_LOG = 20_000  # characters at the end of a log in which tests are looked for


def _is_data(name: str) -> bool:
    """Whether the name of a member is a value itself rather than the name of a field."""
    return " " in name or name.replace(".", "").replace("-", "").isdigit() or len(name) > 30


def _name_checks(flat: Flat) -> None:
    """Name the entries of a list of truths by the list of texts beside it that is as long: instructions, say."""
    for path, value in flat.scalars:
        if not isinstance(value, list) or not value or not all(isinstance(entry, bool) for entry in value):
            continue
        parent = path.rpartition(".")[0]
        lists = (other for place, other in flat.scalars if place != path and place.rpartition(".")[0] == parent and isinstance(other, list))
        fitting = (names for names in lists if len(names) == len(value) and all(isinstance(name, str) for name in names))
        for name, passed in zip(next(fitting, ()), value, strict=False):
            flat.meet(f"{path}: {name[:SHORT]}", passed)


def _templates(text: str) -> tuple[str, ...]:
    """The first and last lines of a long text, volatile values masked."""
    result = [line for line in text[:4000].splitlines() if line.strip()][:HEAD_LINES]
    tail = [line for line in text[-4000:].splitlines() if line.strip()][-TAIL_LINES:]
    return tuple(dict.fromkeys(template(line) for line in (*result, *tail)))


def template(line: str) -> str:
    """A line with its volatile values masked."""
    return events.masked(line[: 2 * MAX_LINE], MAX_LINE)
