"""Extract the evidence of every row: fields, checks, line templates, acts, how it ends, what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from xxhash import xxh3_64_intdigest

from blade import events
from blade.diagnose.answers import candidates
from blade.ingest import records
from blade.ingest.items import text_of
from blade.model import Episode, Gold, Step, TaskTraces

SHORT = 200  # characters up to which a text is a value; a longer one is told by its lines
HEAD_LINES, TAIL_LINES = 2, 6  # lines of a long text that are kept as templates
RESULT_LINES = 2  # first and last lines of a result that are kept
MAX_ACTS = 60  # of one rollout, from both ends
MAX_FIELDS = 300  # scalars of one row
MAX_DEPTH = 6
FINAL = 1200  # characters kept of how the final text ends
MAX_LINE = 160
MAX_ERROR = 400  # characters of an error line
MAX_NAMES = 12  # arguments of a call
NAMED, MAX_NAMED = 1500, 40  # characters of a prompt in which names are looked for, and how many are kept
PASSAGE, AGAIN = 50, 6  # characters of a passage, and how often it is said, from which a text repeats itself
LEAST_DIGEST = 120  # characters of a rollout that is not equal to another by chance
LEAST_GOLD = 4  # characters of a gold that says something where it is found in a text
LEAST_VALUE = 3  # characters of an argument that is traced to its source
MAX_RESULT = 20_000  # characters of a result that arguments are looked for in
FORM_LINES, MAX_LABELS = 12, 200  # lines from which a text may be a form, and that are kept of it
_OWN = frozenset(
    "responses_create_params response _ng_task_index _ng_rollout_index agent_ref reward".split()
)  # read as prompt, trace and keys
_RECORDED = (
    "status",
    "incomplete_details",
    "error",
    "stop_reason",
    "finish_reason",
    "usage",
)  # of `response`


class Source(NamedTuple):
    """Where the value of an argument comes from."""

    name: str  # of the argument
    tool: str  # whose result showed the value first; empty: no result did
    key: int  # of the call that showed it
    value: int  # hash
    shape: str  # letters and digits masked: two values of one shape are of one kind
    is_given: bool  # the request itself states it


class Act(NamedTuple):
    """One call, or one message that stands for a call where tools are spoken in text."""

    tool: str
    key: int  # equal for equal tool and arguments
    failed: bool
    error: str  # the line of the result that says what went wrong; empty without error
    template: str  # the same with volatile values masked
    step: int
    is_answered: bool
    names: tuple[str, ...] = ()  # of the arguments that the call gives
    verb: str = ""  # first word of a command that is the only text argument: SELECT, ls
    sources: tuple[Source, ...] = ()  # of its text arguments, where the row expects calls
    is_partial: bool = False  # the result lists fewer entries than it counts


class RowEvidence(msgspec.Struct):
    """What one row holds, in the form that questions are asked of."""

    position: int  # in `Rollouts`
    prompt: int  # hash of what the user asks; 0 where the request holds no user message
    gold: int  # hash of everything the row expects
    fields: dict[str, Any]  # dotted path -> short scalar
    lines: dict[str, tuple[str, ...]]  # dotted path of a long text -> templates of its first and last lines
    checks: dict[str, bool]  # name -> passed
    acts: tuple[Act, ...]
    is_spoken: bool  # the acts are messages that another party answers
    n_acts: int
    n_turns: int  # messages and calls of the model
    has_output: bool
    has_response: bool  # the row has a place for the trace, be it empty
    transcript: str  # a field that looks like the trace, where the row has no such place
    end: str  # kind of the last step; "none" without steps
    is_pending: bool  # the last step is a call that nothing answers
    reply: str  # how the last thing begins that somebody answered the model, volatile values masked
    final: str  # how the final text ends
    final_step: int | None
    final_length: int
    labels: bytes  # hashes of how the lines of a long single answer begin, in order: a form that is filled in
    is_open: bool  # the final text stops within a fence, a box or a line of the prompt
    is_repeating: bool  # the final text says the same again and again at its end
    digest: int  # hash of everything the model said and did; 0 where that is little
    asked: tuple[str, ...]  # names and numbers of the prompt
    named: tuple[str, ...]  # the same of what the model does and says
    forms: tuple[str, ...]  # forms of an answer that the request asks for: box, tag
    missing: str  # a path that a log says is missing, and that the request does not give
    check_errors: dict[str, str]  # failed check -> the error that it met itself
    answers: dict[str, str]  # where it stands -> what is answered
    expected: tuple[tuple[str, str], ...] | None  # calls that the row expects: tool, canonical arguments
    barred: str  # error of an expected call that was made exactly so and never succeeded; empty without one
    made: tuple[tuple[str, str], ...]  # calls made without error: tool, canonical arguments
    gold_text: str  # short gold value by name, for runs without passes
    says_gold: bool  # the final text holds the gold word for word, and the request does not
    n_tools: int  # tools that the row declares


def observe(task: TaskTraces) -> list[RowEvidence]:
    """The evidence of each rollout of one task."""
    tools = {
        tool for episode in task.episodes for tool in (*episode.tools, *(call.tool for call in episode.calls))
    }
    return [_row(episode, task.given, tools) for episode in task.episodes]


def _row(episode: Episode, given: Mapping[str, Any], tools: set[str]) -> RowEvidence:
    steps = episode.trace.steps
    row = {**given, **episode.trace.row} if given else episode.trace.row
    fields: dict[str, Any] = {}
    lines: dict[str, tuple[str, ...]] = {}
    checks: dict[str, bool] = {}
    scalars = list(_scalars(row))
    for path, value in scalars:
        _keep(path, value, fields, lines, checks)
    _name_checks(scalars, checks)
    _status_objects(scalars, checks)
    prompt = _prompt(row)
    final, final_step = _final(steps)
    gold = events.gold(row)
    own = _expected(row)
    due = _expected_calls(row, gold, tools)
    request = _request(row, steps)
    acts, is_spoken = _acts(episode, steps, request if due is not None else None)
    last = steps[-1] if steps else None
    has_output = any(step.kind == "call" or step.text.strip() for step in steps if step.kind != "user")
    return RowEvidence(
        position=episode.position,
        prompt=xxh3_64_intdigest(prompt.encode("utf-8", "replace")) if prompt else 0,
        gold=xxh3_64_intdigest(repr(own).encode("utf-8", "replace")) if own else 0,
        fields=fields,
        lines=lines,
        checks=checks,
        acts=_bounded(acts),
        is_spoken=is_spoken,
        n_acts=len(acts),
        n_turns=sum(step.kind in ("message", "call") for step in steps),
        has_output=has_output,
        has_response="response" in row or bool(steps),
        transcript="" if "response" in row or steps else _transcript(scalars),
        end=last.kind if last is not None else "none",
        is_pending=_is_pending(steps),
        reply=_reply(steps),
        final=final[-FINAL:],
        final_step=final_step,
        final_length=len(final),
        labels=_labels(final) if len(acts) <= 1 else b"",
        is_open=_is_open(final, prompt),
        is_repeating=_is_repeating(final),
        digest=_digest(steps),
        asked=_names(prompt[:NAMED]),
        named=_names(" ".join([*(call.raw[:SHORT] for call in episode.calls[:MAX_ACTS]), final[-FINAL:]])),
        forms=_forms(request),
        missing=_missing(row, lines, request),
        check_errors=_check_errors(row),
        answers=candidates(final, _submitted(episode)),
        expected=due,
        barred=_barred(episode, due or ()),
        made=tuple(
            (call.tool, events.canonical(call.arguments)) for call in episode.calls if not call.failed
        ),
        gold_text=(gold.answer or "")[:SHORT],
        says_gold=_says(final, gold.answer or "", prompt),
        n_tools=len(episode.tools),
    )


# ---- Fields --------------------------------------------------------------------------------------


def _scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Dotted paths with their scalars, lists as they are; the trace and the prompt apart."""
    for key, value in row.items():
        if key not in _OWN:
            yield from _flat(key, value, 1)
    response = row.get("response")
    if isinstance(response, Mapping):
        for key in _RECORDED:
            if response.get(key) is not None:
                yield from _flat(f"response.{key}", response[key], 2)


def _flat(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value and all(isinstance(met, bool) and _is_data(name) for name, met in value.items()):
        yield path, value  # checks by what they are about: values that must be said, files that must exist
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}", inner, depth + 1)
        if not value:
            yield path, None
    else:
        yield path, value


def _keep(
    path: str, value: Any, fields: dict[str, Any], lines: dict[str, Any], checks: dict[str, bool]
) -> None:
    if len(fields) >= MAX_FIELDS:
        return
    if isinstance(value, str):
        if len(value) <= SHORT and "\n" not in value.strip():
            fields[path] = value
        else:
            lines[path] = _templates(value)
    elif isinstance(value, Mapping):
        checks.update({f"{path}: {str(name)[:SHORT]}": met for name, met in list(value.items())[: records.MAX_CHECKS]})
    elif isinstance(value, list):
        _keep_list(path, value, fields, lines, checks)
    elif value is None or isinstance(value, bool | int | float):
        fields[path] = value


def _keep_list(
    path: str, value: list[Any], fields: dict[str, Any], lines: dict[str, Any], checks: dict[str, bool]
) -> None:
    if value and isinstance(value[0], Mapping) and {"role", "content"} <= value[0].keys():
        return  # another copy of the conversation
    for name, status, _ in list(records._of_list(value))[: records.MAX_CHECKS]:
        if status != records.OTHER:
            full = f"{path}: {name}" if not name.isdigit() else f"{path}[{name}]"
            checks[full] = checks.get(full, True) and status == records.PASSED
    if all(isinstance(item, str | int | float | bool) or item is None for item in value):
        text = json.dumps(value, ensure_ascii=False)
        if len(text) <= SHORT:
            fields[path] = text
        elif all(isinstance(item, str) for item in value):
            lines[path] = _templates("\n".join(value))
    elif not value:
        fields[path] = "[]"


def _status_objects(scalars: list[tuple[str, Any]], checks: dict[str, bool]) -> None:
    """Take the entries of an object whose members are all words for a status as checks."""
    members: dict[str, dict[str, Any]] = {}
    for path, value in scalars:
        parent, _, name = path.rpartition(".")
        if parent:
            members.setdefault(parent, {})[name] = value
    for parent, values in members.items():
        if len(values) >= 2 and all(isinstance(value, str) and records.status_of(value) for value in values.values()):
            for name, value in values.items():
                if (status := records.status_of(value)) != records.OTHER:
                    checks[f"{parent}: {name}"] = status == records.PASSED


def _is_data(name: str) -> bool:
    """Whether the name of a member is a value itself rather than the name of a field."""
    return " " in name or name.replace(".", "").replace("-", "").isdigit() or len(name) > 30


def _name_checks(scalars: list[tuple[str, Any]], checks: dict[str, bool]) -> None:
    """Name the entries of a list of truths by the list of texts beside it that is as long: instructions, say."""
    for path, value in scalars:
        if not isinstance(value, list) or not value or not all(isinstance(entry, bool) for entry in value):
            continue
        parent = path.rpartition(".")[0]
        names = next(
            (
                other
                for place, other in scalars
                if place != path
                and place.rpartition(".")[0] == parent
                and isinstance(other, list)
                and len(other) == len(value)
                and all(isinstance(entry, str) for entry in other)
            ),
            None,
        )
        if names is not None:
            for name, passed in zip(names, value, strict=True):
                full = f"{path}: {name[:SHORT]}"
                checks[full] = checks.get(full, True) and passed


def _transcript(scalars: list[tuple[str, Any]]) -> str:
    """The field that looks like a trace: a list of messages, else the longest text that is named like one."""
    for path, value in scalars:
        if (
            isinstance(value, list)
            and value
            and all(isinstance(item, Mapping) and "role" in item for item in value)
        ):
            return path
    words = ("completion", "output", "transcript", "trajectory", "conversation", "response", "generation")
    texts = [
        (len(value), path)
        for path, value in scalars
        if isinstance(value, str) and any(word in path.lower() for word in words)
    ]
    return max(texts)[1] if texts else ""


def _templates(text: str) -> tuple[str, ...]:
    """The first and last lines of a long text, volatile values masked."""
    found = [line for line in text[:4000].splitlines() if line.strip()][:HEAD_LINES]
    tail = [line for line in text[-4000:].splitlines() if line.strip()][-TAIL_LINES:]
    return tuple(dict.fromkeys(template(line) for line in (*found, *tail)))


def template(line: str) -> str:
    """A line with its volatile values masked."""
    return events.masked(line[: 2 * MAX_LINE], MAX_LINE)


# ---- Acts ----------------------------------------------------------------------------------------


def _acts(episode: Episode, steps: Sequence[Step], request: str | None) -> tuple[list[Act], bool]:
    """The calls of a rollout, else what is spoken; with the request, arguments are traced to where they come from."""
    if not episode.calls:
        return list(_spoken(steps)), True
    acts: list[Act] = []
    shown: list[tuple[str, int, str]] = []  # tool, key and text of the results so far
    for call in episode.calls:
        key = xxh3_64_intdigest(call.key.encode("utf-8", "replace"))
        is_read = request is not None and len(acts) < MAX_ACTS
        acts.append(
            Act(
                call.tool,
                key,
                call.failed,
                error := _error_line(call.output) if call.failed else "",
                template(error),
                call.step,
                call.result_step is not None,
                tuple(call.arguments)[:MAX_NAMES] if isinstance(call.arguments, Mapping) else (),
                _verb(call.arguments),
                _sources(call.arguments, shown, request or "") if is_read else (),
                is_read and not call.failed and _is_partial(call.output),
            )
        )
        if is_read and not call.failed:
            shown.append((call.tool, key, call.output[:MAX_RESULT]))
    return acts, False


def _sources(arguments: Any, shown: Sequence[tuple[str, int, str]], request: str) -> tuple[Source, ...]:
    """Where each short text among the arguments was shown first."""
    if not isinstance(arguments, Mapping):
        return ()
    found = []
    for name, value in list(arguments.items())[:MAX_NAMES]:
        if isinstance(value, str) and LEAST_VALUE <= len(value) <= SHORT:
            tool, key = next(((tool, key) for tool, key, text in shown if value in text), ("", 0))
            digest = xxh3_64_intdigest(value.encode("utf-8", "replace"))
            found.append(Source(name, tool, key, digest, _shape(value), value in request))
    return tuple(found)


def _shape(value: str) -> str:
    """A short value with its letters and digits masked: `a.a@a.a`, `9-9-9`, `#a9`."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", value))[:40]


def _request(row: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """Everything that the model was told: instructions, system and user messages, those within the rollout too."""
    params = row.get("responses_create_params")
    params = params if isinstance(params, Mapping) else {}
    given = params.get("input")
    items = given if isinstance(given, list) else ()
    texts = [
        text_of(item.get("content")) for item in items if isinstance(item, Mapping) and item.get("role") is not None
    ]
    texts += [step.text for step in steps if step.kind == "user"]
    return "\n".join([str(params.get("instructions") or ""), given if isinstance(given, str) else "", *texts])


def _is_partial(output: str) -> bool:
    """Whether a result is an object that counts more entries than it lists."""
    if not output.lstrip().startswith("{") or len(output) > MAX_RESULT:
        return False
    try:
        content = msgspec.json.decode(output)
    except msgspec.DecodeError:
        return False
    lists = [value for value in content.values() if isinstance(value, list)]
    counts = [value for value in content.values() if isinstance(value, int) and not isinstance(value, bool)]
    return len(lists) == 1 and bool(lists[0]) and any(value > len(lists[0]) for value in counts)


def _verb(arguments: Any) -> str:
    """The first word of a command, where the only argument is a text."""
    if not isinstance(arguments, Mapping) or len(arguments) != 1:
        return ""
    text = next(iter(arguments.values()))
    word = text.split(None, 1)[0] if isinstance(text, str) and text.strip() else ""
    return word.upper() if word.isalpha() and len(word) <= 12 else ""


def _spoken(steps: Sequence[Step]) -> Iterator[Act]:
    """Messages that another party answers: a tool that is called in text."""
    for at, step in enumerate(steps):
        if step.kind != "message" or not step.text.strip():
            continue
        answer = steps[at + 1] if at + 1 < len(steps) and steps[at + 1].kind == "user" else None
        if answer is None and at + 1 < len(steps):
            continue
        text = step.text.strip()
        failed = answer is not None and events.reads_as_error(answer.text, events.WRITE)
        first = answer.text.strip().partition("\n")[0] if answer is not None else ""
        yield Act(
            _spoken_tool(text), xxh3_64_intdigest(text.encode("utf-8", "replace")), failed,
            first[:MAX_LINE] if failed else "", template(first) if failed else "", step.index, answer is not None,
        )  # fmt: skip


def _spoken_tool(text: str) -> str:
    """The word that a message opens with, up to a space or a bracket."""
    word = text.split(None, 1)[0]
    return word.partition("(")[0][:40] or "message"


def _error_line(output: str) -> str:
    """The line of a result that says what went wrong: the last of a traceback, else the first."""
    found = [line.strip() for line in output[-4000:].splitlines() if line.strip()]
    if not found:
        return ""
    is_traceback = found[0].startswith("Traceback") or "Traceback (most recent" in output[:200]
    return (found[-1] if is_traceback else output.strip().partition("\n")[0])[:MAX_ERROR]


def _bounded(acts: list[Act]) -> tuple[Act, ...]:
    return tuple(acts if len(acts) <= MAX_ACTS else [*acts[: MAX_ACTS // 2], *acts[-MAX_ACTS // 2 :]])


def _is_pending(steps: Sequence[Step]) -> bool:
    """Whether the rollout ends on calls of the model that nothing answers."""
    return bool(steps) and steps[-1].kind == "call" and not steps[-1].answered


# ---- Ends and answers ----------------------------------------------------------------------------


def _final(steps: Sequence[Step]) -> tuple[str, int | None]:
    """The last thing that the model said, whatever came after it."""
    for step in reversed(steps):
        if step.kind == "message" and step.text.strip():
            return step.text, step.index
    return "", None


def _reply(steps: Sequence[Step]) -> str:
    """The first two lines of the last result or message that was not the model's."""
    text = next((step.text for step in reversed(steps) if step.kind in ("user", "result")), "")
    lines = [line.strip() for line in text[:2000].splitlines() if line.strip()][:2]
    return template(" ".join(lines))


def _is_open(final: str, prompt: str) -> bool:
    """Whether a text stops in the middle: an open fence, an open box, or a part of a line of the prompt."""
    text = final.rstrip()
    if not text:
        return False
    if text.count("```") % 2:
        return True
    box = text.rfind("\\boxed{")
    if box >= 0 and text.count("{", box) > text.count("}", box):
        return True
    last = text.rpartition("\n")[2].strip()
    if len(last) < 4 or "\n" not in text:
        return False
    return any(line != last and line.startswith(last) for line in map(str.strip, prompt.splitlines()))


def _is_repeating(final: str) -> bool:
    """Whether a long text ends by saying one passage again and again."""
    unit = final[-PASSAGE - 10 : -10]
    return len(unit) == PASSAGE and final[-4000:].count(unit) >= AGAIN


def _digest(steps: Sequence[Step]) -> int:
    """A hash of all that the model said and did, where it is long enough not to be equal by chance."""
    texts = [step.text for step in steps if step.kind != "user"]
    whole = "\n".join(texts)
    return xxh3_64_intdigest(whole.encode("utf-8", "replace")) if len(whole) >= LEAST_DIGEST else 0


_WORD = re.compile(r"\w[\w-]+\w")
_DIGIT = re.compile(r"\d")


def _names(text: str) -> tuple[str, ...]:
    """Words that name something: capitalised ones, and those with digits."""
    words = (word for word in dict.fromkeys(_WORD.findall(text)) if word[0].isupper() or _DIGIT.search(word))
    return tuple(islice(words, MAX_NAMED))


_TAG_ASKED = re.compile(r"</?\w{2,40}>")


def _forms(request: str) -> tuple[str, ...]:
    """The forms in which the request wants the answer."""
    return (("box",) if "boxed" in request else ()) + (("tag",) if _TAG_ASKED.search(request) else ())


_ABSENT = re.compile(
    r"(?:no such file(?: or directory)?|FileNotFoundError|not found|does not exist|cannot open)\W{0,4}[^/\n]{0,40}?(/[\w./-]{3,120})",
    re.IGNORECASE,
)


def _missing(row: Mapping[str, Any], lines: Mapping[str, Any], request: str) -> str:
    """The path that the end of a log says is missing, unless the request gives it."""
    for path in lines:
        text = events.field_text(row, path) or ""
        if hits := _ABSENT.findall(text[-1000:]):
            name = hits[-1].rstrip(".")
            return "" if name in request else name
    return ""


def _check_errors(row: Mapping[str, Any]) -> dict[str, str]:
    """Failed checks that report an exception of their own instead of what is wrong with the work."""
    found = {}
    for key, value in row.items():
        if key not in _OWN and isinstance(value, list):
            for record in value[: records.MAX_CHECKS]:
                hit = records._status_in(record) if isinstance(record, Mapping) else None
                name = records._name(record, hit[0]) if hit is not None and hit[1] == records.FAILED else None
                texts = [text for text in record.values() if isinstance(text, str)] if name else []
                if name and (error := next((text for text in texts if _EXCEPTION.search(text)), "")):
                    found[f"{key}: {name}"] = template(error)
    return found


_EXCEPTION = re.compile(r"\b(?:[A-Z]\w*(?:Error|Exception)\b|Traceback )")


def _says(final: str, gold: str, prompt: str) -> bool:
    """Whether a text holds the gold as words of its own, and the prompt did not offer it."""
    words = gold.strip().casefold()
    if not LEAST_GOLD <= len(words) <= SHORT or words not in final.casefold() or words in prompt.casefold():
        return False
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", final.casefold()) is not None


def _labels(text: str) -> bytes:
    """Hashes of the beginnings of the lines of a text of many lines, up to a colon or a bar."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < FORM_LINES:
        return b""
    heads = (re.split(r"[:|=]", line, maxsplit=1)[0].strip()[:60] for line in lines[-MAX_LABELS:])
    return b"".join(
        xxh3_64_intdigest(head.encode("utf-8", "replace")).to_bytes(8, "little")
        for head in heads
        if len(head) >= 5 and any(sign.isalpha() for sign in head)
    )


def _submitted(episode: Episode) -> str:
    """The arguments of the last call, where the rollout ends with it."""
    return episode.calls[-1].raw if episode.calls else ""


def _prompt(row: Mapping[str, Any]) -> str:
    """What the user asks: all user messages of the request."""
    params = row.get("responses_create_params")
    given = params.get("input") if isinstance(params, Mapping) else None
    if isinstance(given, str):
        return given
    texts = []
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping) and item.get("role") == "user":
            texts.append(text_of(item.get("content")))
    return "\n".join(texts)


_GOLD_WORDS = frozenset("expected gold golden truth reference target solution label answer".split())


def _expected(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every field that is named like a gold, at the top of the row or one level below."""
    found = []
    for key, value in row.items():
        if key in _OWN:
            continue
        inner = value.items() if isinstance(value, Mapping) else ()
        for name, content in ((key, value), *inner):
            words = set(name.lower().replace("-", "_").split("_"))
            if words & _GOLD_WORDS and not words & {
                "extracted",
                "model",
                "predicted",
                "reward",
                "score",
                "func",
                "correct",
            }:
                found.append((name, content))
    return found


def _expected_calls(
    row: Mapping[str, Any], gold: Gold, tools: set[str]
) -> tuple[tuple[str, str], ...] | None:
    """The calls that a row expects, be it none; None where it does not say.

    A field that is named so, else any list of records that all name a tool of the task and its arguments.
    """
    if gold.actions_field or any(isinstance(row.get(name), list) for name in events.ACTIONS):
        return _calls(gold.actions)
    for key, value in row.items():
        inner = value.values() if isinstance(value, Mapping) else ()
        for content in (value, *inner) if key not in _OWN else ():
            if isinstance(content, list) and content and all(_is_call(entry, tools) for entry in content):
                return _calls(events.gold({"expected_actions": content}).actions)
    return None


def _barred(episode: Episode, due: Sequence[tuple[str, str]]) -> str:
    """The error of a call that is expected exactly as it was made, and that never succeeds in this rollout."""
    errors: dict[tuple[str, str], str] = {}
    worked = set()
    for call in episode.calls:
        made = call.tool, events.canonical(call.arguments)
        if call.failed:
            errors.setdefault(made, f"{call.tool}: {template(_error_line(call.output))}")
        else:
            worked.add(made)
    return next((errors[call] for call in due if call in errors and call not in worked), "")


def _is_call(entry: Any, tools: set[str]) -> bool:
    source = entry.get("function", entry) if isinstance(entry, Mapping) else None
    if not isinstance(source, Mapping) or source.get("name") not in tools:
        return False
    return any(key in source for key in ("arguments", "kwargs", "args", "parameters", "input"))


def _calls(actions: Sequence[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((tool, events.canonical(arguments)) for tool, arguments in actions)


def nothing_of(position: int) -> RowEvidence:
    """A row that could not be read: it holds nothing that a question could be asked of, not even an empty output."""
    return RowEvidence(
        position=position, prompt=0, gold=0, fields={}, lines={}, checks={}, acts=(), is_spoken=False, n_acts=0, n_turns=0,
        has_output=True,
        has_response=True,
        transcript="", end="none", is_pending=False, reply="", final="", final_step=None, final_length=0, labels=b"",
        is_open=False, is_repeating=False, digest=0, asked=(), named=(), forms=(), missing="", check_errors={}, answers={},
        expected=None,
        barred="", made=(), gold_text="", says_gold=False, n_tools=0,
    )  # fmt: skip
