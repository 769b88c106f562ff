"""Turn the fields of a row into the texts and codes in which a verifier says what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from blade.signatures import wording

# Something broke; a word of a closed list; a named check that was not met; somebody explains.
ERROR, CODE, CHECK, PROSE = "error", "code", "check", "prose"

# The request, the trajectory wherever it stands, and what a framework adds: none of it is a verdict.
_PASSED_OVER = frozenset(
    "responses_create_params response agent_ref skills_ref messages trajectory subagent_trajectories "
    "osworld_steps delegated_response ng_model_call_capture ng_agent_observations ng_trajectory ng_perf "
    "tools input judge_prompt judge_evaluations".split()
)
_TASK = re.compile(
    r"expected|gold|ground_truth|^gt_|reference|^target|instruction|^question|^problem|^prompt"
)
_ERROR = re.compile(r"error|stderr|exception|traceback|failure|crash|invalid_reasons?$|(^|_)fail(_|$)")
_CODE = re.compile(r"(^|_)(status|verdict|state|reasons?|outcome)$|^category$")
_PROSE = re.compile(
    r"(^|_)(messages?|explanations?|rationale|feedback|justification|critique|reasons?)$"
    r"|^judge_?(text|output|response|raw|reason\w*|comment)$|^judge?ment_|^raw$"
)
_EXIT = re.compile(r"(^|_)(exit_?code|return_?code|exit_?status)$")
_WORD = re.compile(r"[\w.:/<>=!\[\]-]{2,60}$")
_LISTS = re.compile(
    r"judg|rubric|valid|result|check|test|service|detail|criteri|evaluat|assert|error|fail|reason"
)
_MET = re.compile(r"(^|_)(met|passed|match|matched|success|succeeded|satisfied|correct|ok|valid)$")
_NAMES = ("name", "func_name", "criterion", "criteria", "check", "test", "instruction", "rule", "title", "id")
_FINE = frozenset("pass passed met yes correct success ok satisfied".split())
_NOT_FINE = frozenset("fail failed unmet no incorrect failure error unsatisfied".split())
# Words with which a verifier says that nothing is wrong, or no more than the reward says.
_SAYS_NOTHING = frozenset(
    "none null nan n/a na ok okay success successful succeeded pass passed correct completed complete done "
    "finished yes true no_error no_failure normal natural stop end_turn user_stop agent_stop user_done exit "
    "equal equivalent compliance unknown fail failed failure incorrect wrong wrong_answer no false mismatch "
    "not_equivalent error errors active running".split()
)
_MAX_LEAVES, _MAX_ITEMS, _MAX_DEPTH = 400, 20, 3


class Told(NamedTuple):
    """A text of a row and where it stands."""

    sort: str  # ERROR, CODE, CHECK or PROSE
    source: str  # dotted path, `[]` for each list on the way
    field: str  # dotted path of the value to quote: a text, or the list that holds it
    text: str
    quoted_as_json: bool  # the text stands inside a list, so it is quoted as JSON writes it


def told(row: Mapping[str, Any]) -> list[Told]:
    """What the fields of a row tell, errors first."""
    found = list(_response(row))
    left = [_MAX_LEAVES]
    for key in sorted(row):
        if key not in _PASSED_OVER:
            found += _walk(key, row[key], key, key, False, 0, left)
    found += _judges(row.get("judge_evaluations"))
    found.sort(key=lambda one: (one.sort != ERROR, "traceback" in one.source))
    return found


def _response(row: Mapping[str, Any]) -> Iterator[Told]:
    response = row.get("response")
    if not isinstance(response, Mapping):
        return
    error = response.get("error")
    if isinstance(error, Mapping):
        error, path = error.get("message"), "response.error.message"
    else:
        path = "response.error"
    if isinstance(error, str) and error.strip():
        yield Told(ERROR, path, path, error, False)
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if isinstance(reason, str) and reason:
        path = "response.incomplete_details.reason"
        yield Told(CODE, path, path, reason, False)


def _walk(
    leaf: str, value: Any, source: str, field: str, in_list: bool, depth: int, left: list[int]
) -> Iterator[Told]:
    left[0] -= 1
    if left[0] < 0:
        return
    if isinstance(value, str):
        sort = _sort_of_value(leaf, value)
        if sort is not None:
            yield Told(sort, source, field, value, in_list)
    elif isinstance(value, int):
        if value and not isinstance(value, bool) and _EXIT.search(leaf):
            yield Told(CODE, source, field, f"{value}", in_list)
    elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
        met = _met(value) if in_list else None
        if met:
            return
        name = _name(value) if met is False else None
        if name is not None:
            yield Told(CHECK, source, field, name, True)
        for key in sorted(value, key=str)[:_MAX_LEAVES]:
            if key not in _PASSED_OVER:
                path = field if in_list else f"{field}.{key}"
                yield from _walk(str(key), value[key], f"{source}.{key}", path, in_list, depth + 1, left)
    elif isinstance(value, list) and depth < _MAX_DEPTH and _LISTS.search(leaf):
        for inner in value[:_MAX_ITEMS]:
            yield from _walk(leaf, inner, f"{source}[]", field, True, depth + 1, left)


def _met(item: Mapping[str, Any]) -> bool | None:
    """Whether one of several checks was met; None if it does not say."""
    for key, value in item.items():
        if isinstance(value, bool) and _MET.search(key):
            return value
    word = item.get("verdict", item.get("status"))
    if not isinstance(word, str):
        return None
    return True if word.lower() in _FINE else False if word.lower() in _NOT_FINE else None


def _name(item: Mapping[str, Any]) -> str | None:
    """What a check is called: by itself, or by the one thing it checks."""
    inner = (value for value in item.values() if isinstance(value, Mapping))
    for holder in (item, *inner):
        for key in _NAMES:
            if isinstance(holder.get(key), str) and holder[key].strip():
                return str(holder[key]).strip()[: wording.LONGEST]
    return None


def _judges(evaluations: Any) -> Iterator[Told]:
    """What judges wrote: the last text of each of their own responses."""
    for entry in evaluations[:_MAX_ITEMS] if isinstance(evaluations, list) else ():
        response = entry.get("response") if isinstance(entry, Mapping) else None
        output = response.get("output") if isinstance(response, Mapping) else None
        for item in reversed(output if isinstance(output, list) else []):
            content = item.get("content") if isinstance(item, Mapping) else None
            text = content if isinstance(content, str) else _last_text(content)
            if text.strip():
                yield Told(PROSE, "judge_evaluations[].response", "judge_evaluations", text, True)
                break


def _last_text(content: Any) -> str:
    for part in reversed(content if isinstance(content, list) else []):
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            return str(part["text"])
    return ""


@lru_cache(maxsize=20_000)
def _sort(leaf: str) -> str | None:
    """What a field of this name holds, if it can speak of a failure at all."""
    name = leaf.lower()
    if _TASK.search(name):
        return None
    if _ERROR.search(name):
        return ERROR
    if _PROSE.search(name):
        return PROSE
    return CODE if _CODE.search(name) else None


def _sort_of_value(leaf: str, value: str) -> str | None:
    sort = _sort(leaf)
    text = value.strip() if sort is not None or len(value) < 20_000 else ""
    if len(text) < 2 or text.lower() in _SAYS_NOTHING:
        return None
    if sort is None:  # a test log may stand under any name, and says itself what it is
        return ERROR if "Traceback (most recent call last)" in text else None
    if _WORD.match(text):
        return CODE if sort == ERROR or _CODE.search(leaf.lower()) else None
    if leaf.lower() == "category":  # some verifiers write whole sentences as codes; else it is a kind of task
        return CODE if text.count(" ") >= 4 else None
    return PROSE if sort == CODE else sort


def quote(one: Told, line: str) -> str:
    """The line as it stands in the value of its field."""
    return json.dumps(line, ensure_ascii=False)[1:-1][: wording.LONGEST] if one.quoted_as_json else line
