"""B11: the model called a tool with an identifier that nobody had told it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="ungrounded_arg",
    number="B11",
    rule="An argument that is an identifier, an e-mail address or the path of a read stands nowhere "
    "in the prompt, in the declared tools or in any earlier step.",
    cause=Cause.UNRELIABLE_KNOWLEDGE,
    otherwise="KG where two or more repeats, and at least half of them, do it in the same field",
    procedural=False,
    needs=("calls",),
    kind="prompt",
    remedy="Require a look-up before {detail} is filled, and refuse calls whose {detail} was never "
    "returned by a tool or given by the user.",
)

_ID_FIELD = re.compile(
    r"(?:^|_)(?:ids?|uuids?|guids?|numbers?|nos?|keys?|skus?|refs?|references?|accounts?|tickets?|emails?|handle)$",
    re.IGNORECASE,
)
_STRICT_FIELD = re.compile(r"(?:^|_)(?:ids?|uuids?|guids?)$", re.IGNORECASE)
_SLUG = re.compile(r"(?=.*[_:/.-])[A-Za-z][\w:/.-]{5,}")
_PATH_FIELD = re.compile(r"(?:^|_)(?:path|file|filename|filepath|directory|dir)$", re.IGNORECASE)
_ID_VALUE = re.compile(r"#?[A-Za-z][A-Za-z_-]*\d{3,}[\w-]*|#?(?=[\w-]*\d{3})[\w-]{5,}")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T ].*)?|(?:19|20)\d\d[01]\d[0-3]\d|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}|(?:19|20)\d\d"
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_RUN = re.compile(r"[a-z0-9]+")
_GAPS = {code: None for code in range(128) if not chr(code).isalnum()}
_CREATES = frozenset("create add new register write save upload insert generate make open start".split())
_MAX_VALUE = 100  # characters of an identifier
_MAX_TEXT = 2_000_000  # characters of a rollout that are searched
_MAX_VALUES = 100  # distinct values of a rollout that are looked for
_MAX_MISSES = 10  # of a rollout that are looked at twice
_MIN_RUN = 4  # a shorter run of digits occurs anywhere


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The first call with each value that comes from nowhere."""
    found = [(episode, list(_made_up(episode))) for episode in task.episodes]
    fields = [{f"{call.tool}.{field}" for call, field, _ in made} for _, made in found]
    for episode, made in found:
        for call, field, value in made:
            detail = f"{call.tool}.{field}"
            often = len(found) > 1 and 2 * sum(detail in one for one in fields) >= max(len(found), 4)
            summary = (
                f"`{call.tool}` was called with {field} {value}, which occurs nowhere before step {call.step}"
            )
            accepted = call.result_step is not None and not call.failed
            severity = 2 if call.failed or call.does == events.WRITE else 1
            summary += (
                "; the call was accepted." if accepted else "." if not call.failed else "; the call failed."
            )
            at = max(0, episode.trace.steps[call.step].text.find(value))
            result = events.at_step(episode, row.result_place(call)) if call.failed else None
            yield hit(
                episode, summary, severity, events.at_step(episode, call.step, at), result, detail=detail,
                cause=Cause.KNOWLEDGE_GAP if often else None,
            )  # fmt: skip


def _made_up(episode: Episode) -> Iterator[tuple[Call, str, str]]:
    wanted = _wanted(episode)
    if not wanted:
        return
    text, starts = _text_before(episode)
    squeezed, ends = "", [0]
    misses, declared = 0, ""
    for value, (call, field) in wanted.items():
        end = starts[call.step + 1] if call.step + 1 < len(starts) else None
        if end is None or misses >= _MAX_MISSES:
            return
        if _stands_in(text, value.lower(), end):
            continue
        misses += 1
        if not squeezed:
            squeezed, ends = _squeezed(text, starts)
            declared = events.canonical(dict(episode.tools)).lower()
        # ids are dictated with spaces and dashes
        spoken = squeezed.find(value.lower().translate(_GAPS), 0, ends[call.step + 1]) >= 0
        if not spoken and value.lower() not in declared:
            yield call, field, value


def _wanted(episode: Episode) -> dict[str, tuple[Call, str]]:
    """The identifiers among the arguments, each with the first call that uses it."""
    wanted: dict[str, tuple[Call, str]] = {}
    for call in episode.calls:
        if isinstance(call.arguments, Mapping) and len(call.raw) <= 20_000:
            for field, value in _leaves(call.arguments, "", 0):
                if len(wanted) >= _MAX_VALUES:
                    return wanted
                if _is_identifier(call, field, value):
                    wanted.setdefault(str(value).strip(), (call, field))
    return wanted


def _leaves(value: Any, field: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and depth < 4:
        for key, inner in value.items():
            yield from _leaves(inner, str(key), depth + 1)
    elif isinstance(value, list) and depth < 4:
        for inner in value[:50]:
            yield from _leaves(inner, field, depth + 1)
    elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        yield field, value


def _is_identifier(call: Call, field: str, value: str | int) -> bool:
    text = str(value).strip()
    if not 4 <= len(text) <= _MAX_VALUE or len(text.split()) > 1 or "://" in text:
        return False
    if _DATE.fullmatch(text) or _is_new(call.tool, field):
        return False
    if _EMAIL.fullmatch(text) or _UUID.fullmatch(text):
        return True
    if _PATH_FIELD.search(field):
        return call.does == events.READ and call.failed and "/" in text.strip("/")
    named = _ID_FIELD.search(field) is not None
    if _PLAIN_NUMBER.fullmatch(text):
        return named and len(text) > _MIN_RUN
    return named and (_ID_VALUE.fullmatch(text) is not None or _is_slug(field, text))


def _is_slug(field: str, text: str) -> bool:
    """A readable identifier: words joined without a space, in a field that says it holds one."""
    return _STRICT_FIELD.search(field) is not None and _SLUG.fullmatch(text) is not None


def _is_new(tool: str, field: str) -> bool:
    """Whether the call makes the thing that the field names."""
    words = tool.lower().rpartition("__")[2].split("_")
    if not words or words[0] not in _CREATES:
        return False
    noun = field.lower().removesuffix("s").removesuffix("_id").removesuffix("id")
    return not noun or noun in words or _PATH_FIELD.search(field) is not None


def _text_before(episode: Episode) -> tuple[str, list[int]]:
    """Prompt and steps in one text; `starts[i + 1]` is where step i begins."""
    pieces = [events.prompt(episode.trace.row).lower()]
    starts = [0]
    place = len(pieces[0]) + 1
    for step in episode.trace.steps:
        starts.append(place)
        piece = f"{step.text}\n{step.reasoning}".lower() if step.reasoning else step.text.lower()
        pieces.append(piece)
        place += len(piece) + 1
        if place > _MAX_TEXT:
            break
    return "\n".join(pieces), starts


def _squeezed(text: str, starts: list[int]) -> tuple[str, list[int]]:
    """The text without gaps, and where its pieces begin."""
    pieces = [
        text[start:end].translate(_GAPS) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
    ]
    ends = [0]
    for piece in pieces[:-1]:
        ends.append(ends[-1] + len(piece))
    return "".join(pieces), ends


def _stands_in(text: str, value: str, end: int) -> bool:
    """Whether the parts of a value stand in the text before a place, together or apart."""
    if text.find(value.lstrip("#"), 0, end) >= 0:
        return True
    for run in _RUN.findall(value):
        digits = run.lstrip("abcdefghijklmnopqrstuvwxyz")
        part = digits if digits.isdigit() and len(digits) >= _MIN_RUN else run
        if text.find(part, 0, end) < 0:
            return False
    return True
