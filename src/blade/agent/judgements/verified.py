"""Turn a proposed judgement and the rollouts of its task into a judgement, or the reasons against it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from blade import hostile
from blade.events import ERROR, compact, field_text, prompt, step_texts
from blade.events import gold as expected
from blade.model import Cause, Judgement, Trace

KEYS = ("task", "cause", "repeat", "step", "field", "quote", "mechanism", "mode", "by", "condition")
SOME = 8  # characters without white space: a shorter quotation stands anywhere
MOST_QUOTED, MOST_SAID, MOST_NAMED = 2000, 1000, 120  # characters
_CITED = re.compile(r"\b(?:at|in|from|after|before|by|until|since|of) steps?\s+(\d{1,6})\b", re.IGNORECASE)
# A step that is said, in so many words, to bring about another one.
_BRINGS = re.compile(
    r"(?:\bsteps?\s+(?P<first>\d{1,6})\b[^.;,]{0,40}?)?"
    r"\b(?:causes?|caused|led to|leads to|resulted in|results in|triggers?|triggered|provokes?|provoked|"
    r"brought about|is why|is the cause of|made|breaks?|broke)\b(?! by\b)"
    r"[^.;,]{0,40}?\bsteps?\s+(?P<second>\d{1,6})\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Fields that say which row it is, or that it failed: they show nothing of why.
_TELLS_NOTHING = re.compile(r"^(?:_ng_.*|reward|task_id|id|uuid|agent_ref(?:\..*)?|response\.id)$")
ENGINE = "engine"


class Seen(msgspec.Struct, frozen=True):
    """A task as a judgement of it is held against: its rows, and those that lose points."""

    agent: str | None
    task: str
    traces: Sequence[Trace]
    losing: Sequence[bool]  # beside each row: whether it loses points
    proposed: Cause | None  # by the engine


def verified(given: Mapping[str, Any], seen: Seen, by: str, at: str) -> Judgement | list[str]:
    """The judgement as it is kept; otherwise every reason against it."""
    problems = [f"there is no key {key!r}" for key in given if key not in KEYS]
    cause = next((one for one in Cause if one.value.lower() == str(given.get("cause", "")).lower()), None)
    if cause is None:
        told = ", ".join(one.value for one in Cause)
        problems.append(f"{hostile.line(str(given.get('cause')), 40)!r} is no cause; the causes are {told}")
    quote, mechanism = given.get("quote"), given.get("mechanism")
    by, mode, condition = given.get("by") or by, given.get("mode") or "", given.get("condition") or ""
    step, field, repeat = given.get("step"), given.get("field"), given.get("repeat")
    by_condition = bool(condition) and step is None and field is None and not quote
    problems += _texts(condition if by_condition else quote, mechanism, by, mode, condition)
    if (step is None) == (field is None) and not by_condition:
        problems.append("give a step or a field, one of them")
    place = _without_place(seen, repeat) if by_condition else _place(seen, repeat, step, field)
    problems += [place] if isinstance(place, str) else []
    if isinstance(mechanism, str):
        problems += _chronology(seen, step, mechanism)
    quote = "" if by_condition else quote
    if isinstance(place, str) or not isinstance(quote, str) or not (quote.strip() or by_condition):
        return problems
    rows = [(trace, found) for trace, parts in place if (found := _found(quote, parts)) is not None]
    if not rows:
        return [*problems, _elsewhere(quote, place[0][0], step, field)]
    (trace, exact), parts = rows[0], next(parts for trace, parts in place if trace is rows[0][0])
    if not by_condition:
        problems += [*_says_something(exact, parts, field), *_began(trace, step, exact)]
    if problems or cause is None:
        return problems
    said = (str(mechanism).strip(), str(by).strip(), str(mode).strip())
    all_of_it = [seen.agent or "", seen.task, cause.value, repeat, step, field, exact, *said]
    all_of_it += [condition] if condition else []  # of those without one the name stays as it was
    name = blake2b(compact(all_of_it).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Judgement(
        name, seen.agent, seen.task, cause, trace.rollout.repeat, step, field, exact, said[0], said[1], at,
        said[2], seen.proposed, of_rollout(trace), condition,
    )  # fmt: skip


def again(kept: Judgement, seen: Seen) -> list[str]:
    """What speaks against a judgement that was kept, now that its rows are read again."""
    if kept.agent != seen.agent:
        return [f"it is of the rollouts of {hostile.line(str(kept.agent), 60)}"]
    if not _TIME.fullmatch(kept.at):
        return ["it does not say when it was given"]
    given = {key: getattr(kept, key) for key in KEYS}
    told = verified({**given, "cause": kept.cause.value}, seen, kept.by, kept.at)
    if isinstance(told, list):
        return told
    known = ("", told.rollout) if kept.quote else (told.rollout,)  # nothing else holds it to its rollout
    return [] if kept.rollout in known else ["the rollout is another one now"]


def of_rollout(trace: Trace) -> str:
    """A hash of what a rollout was asked, what was expected of it and what it did; not of its reward."""
    gold = prompt(trace.row), expected(trace.row).answer, compact(list(expected(trace.row).actions))
    steps = [(step.kind, step.tool, step.text, step.reasoning) for step in trace.steps]
    told = compact([*gold, steps])
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _texts(quote: Any, mechanism: Any, by: Any, mode: Any, condition: Any) -> Iterator[str]:
    for name, value, most in (
        ("quote", quote, MOST_QUOTED),
        ("mechanism", mechanism, MOST_SAID),
        ("by", by, MOST_NAMED),
    ):
        if not isinstance(value, str) or not value.strip():
            yield f"{name} is missing"
        elif len(value) > most:
            yield f"{name} has {len(value):,} characters; at most {most:,}"
    if not isinstance(mode, str) or len(mode) > MOST_NAMED:
        yield f"mode is no text of at most {MOST_NAMED} characters"
    if isinstance(by, str) and by.strip().casefold() == ENGINE:
        yield f"{ENGINE} is the name of the engine's own proposals"
    if not isinstance(condition, str) or len(condition) > MOST_QUOTED:
        yield f"condition is no text of at most {MOST_QUOTED:,} characters"
    for name, value in (("mechanism", mechanism), ("by", by), ("mode", mode), ("condition", condition)):
        if isinstance(value, str) and hostile.line(value) != " ".join(value.split()):
            yield f"{name} holds control or invisible characters"


def _without_place(seen: Seen, repeat: Any) -> list[tuple[Trace, list[str]]] | str:
    """The rows that are named, by their repeat alone."""
    rows = _failing(seen, repeat)
    return rows if isinstance(rows, str) else [(trace, [""]) for trace in rows]


def _place(seen: Seen, repeat: Any, step: Any, field: Any) -> list[tuple[Trace, list[str]]] | str:
    """The rows that are named, each with the texts of the place; or what is wrong with it."""
    rows = _failing(seen, repeat)
    if isinstance(rows, str):
        return rows
    if field is not None:
        return _in_field(rows, field)
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < len(rows[0].steps):
        return f"{seen.task}/{repeat} has no step {step}; its {len(rows[0].steps)} steps count from 0"
    return [(trace, step_texts(trace.steps[step])) for trace in rows if step < len(trace.steps)]


def _failing(seen: Seen, repeat: Any) -> list[Trace] | str:
    """The rows of a repeat that lose points; or what is wrong with it."""
    if repeat is None:
        return "repeat is missing: which rollout shows it"
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        return f"repeat is no whole number: {hostile.line(str(repeat), 40)!r}"
    if not any(trace.rollout.repeat == repeat for trace in seen.traces):
        have = ", ".join(str(trace.rollout.repeat) for trace in seen.traces[:20]) or "none"
        return f"task {seen.task} has no repeat {repeat}; it has {have}"
    failing = [trace for trace, loses in zip(seen.traces, seen.losing, strict=True) if loses]
    rows = [trace for trace in failing if trace.rollout.repeat == repeat]
    if not rows:
        others = ", ".join(str(trace.rollout.repeat) for trace in failing[:20]) or "none"
        return f"repeat {repeat} of task {seen.task} does not fail; those that fail: {others}"
    return rows


def _in_field(rows: Sequence[Trace], field: Any) -> list[tuple[Trace, list[str]]] | str:
    name = hostile.line(str(field), 80)
    if not isinstance(field, str) or _TELLS_NOTHING.match(field):
        return f"the field {name!r} says which row it is or that it failed, and nothing of why"
    is_output = field == "response.output" or field.startswith("response.output.")
    if is_output and any(trace.steps for trace in rows):
        return "what a rollout did is quoted by its step"
    values = [(trace, field_text(trace.row, field)) for trace in rows]
    found = [(trace, [value]) for trace, value in values if value is not None]
    place = f"{rows[0].rollout.task}/{rows[0].rollout.repeat}"
    return found or f"the row of {place} has no field {name!r}"


def _found(quote: str, parts: Sequence[str]) -> str | None:
    """The exact words of the place that a quotation stands for: white space, and what no screen shows, may
    differ."""
    for text in parts:
        if quote in text:
            return quote
    wanted = "".join(hostile.lines(quote).split())
    if not wanted:
        return None
    for text in parts:
        kept = [(sign, at) for at, sign in enumerate(text) if _visible(sign)]
        at = "".join(sign for sign, _ in kept).find(wanted)
        if at >= 0:
            return text[kept[at][1] : kept[at + len(wanted) - 1][1] + 1]
    return None


def _visible(sign: str) -> bool:
    return not sign.isspace() and (sign.isascii() or hostile.lines(sign) == sign) and sign.isprintable()


def _elsewhere(quote: str, trace: Trace, step: Any, field: Any) -> str:
    """Why a quotation is refused, and the step of the same rollout where it stands instead."""
    where = f"step {step}" if field is None else f"field {hostile.line(str(field), 80)}"
    place = f"{trace.rollout.task}/{trace.rollout.repeat}"
    other = next((one.index for one in trace.steps if _found(quote, step_texts(one)) is not None), None)
    hint = f"; it stands in step {other}" if other is not None else ""
    return f"{where} of {place} does not hold the quotation {hostile.line(quote, 80)!r}{hint}"


def _says_something(exact: str, parts: Sequence[str], field: Any) -> Iterator[str]:
    seen = sum(map(_visible, exact))
    if not seen or (seen < SOME and exact.strip() not in {part.strip() for part in parts}):
        place = "field" if field is not None else "step"
        yield f"the quotation is too short to show anything: quote more of the {place}, or all of it"


def _chronology(seen: Seen, step: Any, mechanism: str) -> Iterator[str]:
    """No step brings about an earlier one, and none is cited that no rollout has; what no step is named for
    is said of the one that is blamed."""
    longest = max((len(one.steps) for one in seen.traces), default=0)
    for cited in map(int, _CITED.findall(mechanism)):
        if cited >= longest:
            yield f"the mechanism speaks of step {cited}; the longest rollout of the task has {longest} steps"
    for hit in _BRINGS.finditer(mechanism):
        first, second = int(hit["first"]) if hit["first"] else step, int(hit["second"])
        if isinstance(first, int) and second < first:
            yield f"step {first} is said to bring about step {second}, which came before it"


def _began(trace: Trace, step: Any, exact: str) -> Iterator[str]:
    """An error is quoted where it first stands."""
    if step is None or trace.steps[step].kind != "result" or not ERROR.search(exact):
        return
    for earlier in trace.steps[:step]:
        if earlier.kind == "result" and exact in earlier.text:
            yield f"the same error stands in step {earlier.index} already: step {step} is not where it began"
            return
