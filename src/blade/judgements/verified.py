"""Turn a proposed judgement and the rollouts of its task into a judgement, or the reasons against it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from blade import hostile
from blade.events import ERROR, compact
from blade.model import Cause, Judgement, Step, Trace

KEYS = ("task", "cause", "repeat", "step", "field", "quote", "mechanism", "mode", "by")
SOME = 8  # characters without white space: a shorter quotation stands anywhere
MOST_QUOTED, MOST_SAID, MOST_NAMED = 2000, 1000, 120  # characters
_CITED = re.compile(r"\bsteps?\s+(\d{1,6})\b", re.IGNORECASE)
# A step that is said to bring about what happened at another one.
_BRINGS = re.compile(
    r"\b(?:caus\w+|led to|leads? to|leading to|result\w* in|trigger\w*|produc\w+|provok\w+|brought about)\b"
    r"[^.;]{0,80}?\bsteps?\s+(\d{1,6})\b",
    re.IGNORECASE,
)


class Seen(msgspec.Struct, frozen=True):
    """A task as a judgement of it is held against: its rows, and those that lose points."""

    agent: str | None
    task: str
    traces: Sequence[Trace]
    losing: frozenset[int]  # repeats
    proposed: Cause | None  # by the engine


def verified(given: Mapping[str, Any], seen: Seen, by: str, at: str) -> Judgement | list[str]:
    """The judgement as it is kept; otherwise every reason against it."""
    problems = [f"there is no key {key!r}" for key in given if key not in KEYS]
    cause = next((one for one in Cause if one.value.lower() == str(given.get("cause", "")).lower()), None)
    if cause is None:
        told = ", ".join(one.value for one in Cause)
        problems.append(f"{hostile.line(str(given.get('cause')), 40)!r} is no cause; the causes are {told}")
    quote, mechanism = given.get("quote"), given.get("mechanism")
    by, mode = given.get("by") or by, given.get("mode") or ""
    problems += _texts(quote, mechanism, by, mode)
    step, field, repeat = given.get("step"), given.get("field"), given.get("repeat")
    if (step is None) == (field is None):
        problems.append("give a step or a field, one of them")
    place = _place(seen, repeat, step, field)
    problems += [place] if isinstance(place, str) else []
    if problems or isinstance(place, str) or cause is None:
        return problems
    trace, parts = place
    exact = _found(str(quote), parts)
    if exact is None:
        return [_elsewhere(str(quote), trace, step, field)]
    problems = [*_says_something(exact, parts, field), *_chronology(trace, seen, step, exact, str(mechanism))]
    if problems:
        return problems
    said = (str(mechanism).strip(), str(by).strip(), str(mode).strip())
    all_of_it = [seen.agent or "", seen.task, cause.value, repeat, step, field, exact, *said]
    name = blake2b(compact(all_of_it).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Judgement(
        name, seen.agent, seen.task, cause, trace.rollout.repeat, step, field, exact, said[0], said[1], at,
        said[2], seen.proposed,
    )  # fmt: skip


def again(kept: Judgement, seen: Seen) -> list[str]:
    """What speaks against a judgement that was kept, now that its rows are read again."""
    given = {key: getattr(kept, key) for key in KEYS}
    told = verified({**given, "cause": kept.cause.value}, seen, kept.by, kept.at)
    return told if isinstance(told, list) else []


def _texts(quote: Any, mechanism: Any, by: Any, mode: Any) -> Iterator[str]:
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
    for name, value in (("mechanism", mechanism), ("by", by), ("mode", mode)):
        if isinstance(value, str) and hostile.line(value) != " ".join(value.split()):
            yield f"{name} holds control or invisible characters"


def _place(seen: Seen, repeat: Any, step: Any, field: Any) -> tuple[Trace, list[str]] | str:
    """The rollout and the texts of the place that is named; or what is wrong with it."""
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        return "repeat is missing: which rollout shows it"
    rows = [trace for trace in seen.traces if trace.rollout.repeat == repeat]
    if not rows:
        have = ", ".join(str(trace.rollout.repeat) for trace in seen.traces[:20]) or "none"
        return f"task {seen.task} has no repeat {repeat}; it has {have}"
    if repeat not in seen.losing:
        failing = ", ".join(map(str, sorted(seen.losing)[:20])) or "none"
        return f"repeat {repeat} of task {seen.task} does not fail; those that fail: {failing}"
    trace = rows[0]
    if field is not None:
        value = _value_at(trace.row, field) if isinstance(field, str) else None
        if value is None:
            return f"the row of {seen.task}/{repeat} has no field {hostile.line(str(field), 80)!r}"
        return trace, [value]
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < len(trace.steps):
        return f"{seen.task}/{repeat} has no step {step}; its {len(trace.steps)} steps count from 0"
    return trace, _step_texts(trace.steps[step])


def _value_at(row: Mapping[str, Any], path: str) -> str | None:
    """The text of a value at a dotted path, as it is quoted: strings as they are, all else compact."""
    value: Any = row
    rest = path
    while rest:
        if not isinstance(value, Mapping):
            return None
        if rest in value:
            value, rest = value[rest], ""
            break
        head, _, rest = rest.partition(".")
        if head not in value or not rest:
            return None
        value = value[head]
    return value if isinstance(value, str) else compact(value)


def _step_texts(step: Step) -> list[str]:
    return [text for text in (step.text, step.arguments, step.reasoning, step.tool) if text]


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
    other = next((one.index for one in trace.steps if _found(quote, _step_texts(one)) is not None), None)
    hint = f"; it stands in step {other}" if other is not None else ""
    return f"{where} of {place} does not hold the quotation {hostile.line(quote, 80)!r}{hint}"


def _says_something(exact: str, parts: Sequence[str], field: Any) -> Iterator[str]:
    if len("".join(exact.split())) < SOME and exact.strip() not in {part.strip() for part in parts}:
        place = "field" if field is not None else "step"
        yield f"the quotation is too short to show anything: quote more of the {place}, or all of it"


def _chronology(trace: Trace, seen: Seen, step: Any, exact: str, mechanism: str) -> Iterator[str]:
    """No step is blamed for what happened before it, and none is cited that no rollout has."""
    longest = max(len(one.steps) for one in seen.traces)
    for cited in map(int, _CITED.findall(mechanism)):
        if cited >= longest:
            yield f"the mechanism speaks of step {cited}; the longest rollout of the task has {longest} steps"
    if step is None:
        return
    for cited in map(int, _BRINGS.findall(mechanism)):
        if cited < step:
            yield f"step {step} is blamed for step {cited}, which came before it"
    if trace.steps[step].kind != "result" or not ERROR.search(exact):
        return
    for earlier in trace.steps[:step]:
        if earlier.kind == "result" and exact in earlier.text:
            yield f"the same error stands in step {earlier.index} already: step {step} is not where it began"
            return
