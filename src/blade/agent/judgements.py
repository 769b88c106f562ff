"""Verify judgements of failed tasks against their rollouts, keep them beside the run, and weigh agreement."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from blade import hostile, stats
from blade.errors import Unreadable
from blade.events import ERROR, compact, field_text, prompt, step_texts
from blade.events import gold as expected
from blade.model import Agreement, Cause, Judgement, Trace
from blade.targets import append_whole, locked, opened

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
    """What a judgement of a task is checked against: its rows, and those that lose points."""

    agent: str | None
    task: str
    traces: Sequence[Trace]
    losing: Sequence[bool]  # beside each row: whether it loses points
    proposed: Cause | None  # by the engine


def verified(proposal: Mapping[str, Any], seen: Seen, by: str, moment: str) -> Judgement | list[str]:
    """The judgement as it is kept; otherwise every reason against it."""
    label, (quote, mechanism) = str(proposal.get("cause")), map(proposal.get, ("quote", "mechanism"))
    by, mode, condition = (proposal.get(key) or word for key, word in (("by", by), ("mode", ""), ("condition", "")))
    step, field, repeat = map(proposal.get, ("step", "field", "repeat"))
    problems = [f"there is no key {key!r}" for key in proposal if key not in KEYS]
    cause = next((cause for cause in Cause if cause.value.lower() == label.lower()), None)
    if cause is None:
        causes = ", ".join(cause.value for cause in Cause)
        problems.append(f"{hostile.line(label, 40)!r} is no cause; the causes are {causes}")
    by_condition = bool(condition) and step is None and field is None and not quote
    problems += _texts(condition if by_condition else quote, mechanism, by, mode, condition)
    if (step is None) == (field is None) and not by_condition:
        problems.append("give a step or a field, one of them")
    place = _place(seen, repeat, step, field, by_condition)
    problems += [place] if isinstance(place, str) else []
    problems += _chronology(seen, step, mechanism) if isinstance(mechanism, str) else ()
    quote = "" if by_condition else quote
    if isinstance(place, str) or not isinstance(quote, str) or not (quote.strip() or by_condition):
        return problems
    rows = [(trace, parts, exact) for trace, parts in place if (exact := _exact(quote, parts)) is not None]
    if not rows:
        return [*problems, _elsewhere(quote, place[0][0], step, field)]
    trace, parts, exact = rows[0]
    if not by_condition:
        problems += _flaws(trace, step, exact, parts)
    if problems or cause is None:
        return problems
    mechanism, by, mode = (str(text).strip() for text in (mechanism, by, mode))
    identity = [seen.agent or "", seen.task, cause.value, repeat, step, field, exact, mechanism, by, mode]
    identity += [condition] if condition else []  # of those without one the name stays as it was
    return Judgement(
        _digest(compact(identity), 6), seen.agent, seen.task, cause, trace.rollout.repeat, step, field, exact,
        mechanism, by, moment, mode, seen.proposed, of_rollout(trace), condition,
    )  # fmt: skip


def again(earlier: Judgement, seen: Seen) -> list[str]:
    """What speaks against a judgement that was kept, now that its rows are read again."""
    if earlier.agent != seen.agent:
        return [f"it is of the rollouts of {hostile.line(str(earlier.agent), 60)}"]
    if not _TIME.fullmatch(earlier.at):
        return ["it does not say when it was given"]
    proposal = {key: getattr(earlier, key) for key in KEYS}
    judgement = verified({**proposal, "cause": earlier.cause.value}, seen, earlier.by, earlier.at)
    if isinstance(judgement, list):
        return judgement
    # without a quotation nothing else holds it to its rollout
    known = ("", judgement.rollout) if earlier.quote else (judgement.rollout,)
    return [] if earlier.rollout in known else ["the rollout is another one now"]


def of_rollout(trace: Trace) -> str:
    """A hash of what a rollout was asked, what was expected of it and what it did; not of its reward."""
    gold = prompt(trace.row), expected(trace.row).answer, compact(list(expected(trace.row).actions))
    steps = [(step.kind, step.tool, step.text, step.reasoning) for step in trace.steps]
    return _digest(compact([*gold, steps]), 8)


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _texts(quote: Any, mechanism: Any, by: Any, mode: Any, condition: Any) -> Iterator[str]:
    needed = ("quote", quote, MOST_QUOTED), ("mechanism", mechanism, MOST_SAID), ("by", by, MOST_NAMED)
    for name, value, most in needed:
        if not isinstance(value, str) or not value.strip():
            yield f"{name} is missing"
        elif len(value) > most:
            yield f"{name} has {len(value):,} characters; at most {most:,}"
    for name, value, most in (("mode", mode, MOST_NAMED), ("condition", condition, MOST_QUOTED)):
        if not isinstance(value, str) or len(value) > most:
            yield f"{name} is no text of at most {most:,} characters"
    if isinstance(by, str) and by.strip().casefold() == ENGINE:
        yield f"{ENGINE} is the name of the engine's own proposals"
    for name, value in (("mechanism", mechanism), ("by", by), ("mode", mode), ("condition", condition)):
        if isinstance(value, str) and hostile.line(value) != " ".join(value.split()):
            yield f"{name} holds control or invisible characters"


def _place(
    seen: Seen, repeat: Any, step: Any, field: Any, by_condition: bool
) -> list[tuple[Trace, list[str]]] | str:
    """The rows that are named, each with the texts of the place; or what is wrong with it."""
    rows = _failing(seen, repeat)
    if isinstance(rows, str):
        return rows
    if by_condition:  # the rows are named by their repeat alone
        return [(trace, [""]) for trace in rows]
    if field is None:
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < len(rows[0].steps):
            return f"{seen.task}/{repeat} has no step {step}; its {len(rows[0].steps)} steps count from 0"
        return [(trace, step_texts(trace.steps[step])) for trace in rows if step < len(trace.steps)]
    name = hostile.line(str(field), 80)
    if not isinstance(field, str) or _TELLS_NOTHING.match(field):
        return f"the field {name!r} says which row it is or that it failed, and nothing of why"
    if f"{field}.".startswith("response.output.") and any(trace.steps for trace in rows):
        return "what a rollout did is quoted by its step"
    texts = [(trace, [value]) for trace in rows if (value := field_text(trace.row, field)) is not None]
    return texts or f"the row of {rows[0].rollout.task}/{rows[0].rollout.repeat} has no field {name!r}"


def _failing(seen: Seen, repeat: Any) -> list[Trace] | str:
    """The rows of a repeat that lose points; or what is wrong with it."""
    if repeat is None:
        return "repeat is missing: which rollout shows it"
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        return f"repeat is no whole number: {hostile.line(str(repeat), 40)!r}"
    failing = [trace for trace, loses in zip(seen.traces, seen.losing, strict=True) if loses]
    if rows := [trace for trace in failing if trace.rollout.repeat == repeat]:
        return rows
    is_there = any(trace.rollout.repeat == repeat for trace in seen.traces)
    others = ", ".join(str(trace.rollout.repeat) for trace in (failing if is_there else seen.traces)[:20])
    if is_there:
        return f"repeat {repeat} of task {seen.task} does not fail; those that fail: {others or 'none'}"
    return f"task {seen.task} has no repeat {repeat}; it has {others or 'none'}"


def _exact(quote: str, parts: Sequence[str]) -> str | None:
    """The exact words of the place that are quoted: white space, and what no screen shows, may differ."""
    if any(quote in text for text in parts):
        return quote
    wanted = "".join(hostile.lines(quote).split())
    for text in parts if wanted else ():
        places = [place for place, sign in enumerate(text) if _visible(sign)]
        start = "".join(text[place] for place in places).find(wanted)
        if start >= 0:
            return text[places[start] : places[start + len(wanted) - 1] + 1]
    return None


def _visible(sign: str) -> bool:
    return not sign.isspace() and (sign.isascii() or hostile.lines(sign) == sign) and sign.isprintable()


def _elsewhere(quote: str, trace: Trace, step: Any, field: Any) -> str:
    """Why a quotation is refused, and the step of the same rollout where it stands instead."""
    where = f"step {step}" if field is None else f"field {hostile.line(str(field), 80)}"
    place = f"{trace.rollout.task}/{trace.rollout.repeat}"
    other = next((each.index for each in trace.steps if _exact(quote, step_texts(each)) is not None), None)
    hint = f"; it stands in step {other}" if other is not None else ""
    return f"{where} of {place} does not hold the quotation {hostile.line(quote, 80)!r}{hint}"


def _flaws(trace: Trace, step: Any, exact: str, parts: Sequence[str]) -> Iterator[str]:
    """A quotation says something, and an error is quoted where it first stands."""
    seen = sum(map(_visible, exact))
    if not seen or (seen < SOME and exact.strip() not in {part.strip() for part in parts}):
        place = "field" if step is None else "step"
        yield f"the quotation is too short to show anything: quote more of the {place}, or all of it"
    if step is None or trace.steps[step].kind != "result" or not ERROR.search(exact):
        return
    earlier = next((each for each in trace.steps[:step] if each.kind == "result" and exact in each.text), None)
    if earlier is not None:
        yield f"the same error stands in step {earlier.index} already: step {step} is not where it began"


def _chronology(seen: Seen, step: Any, mechanism: str) -> Iterator[str]:
    """No step brings about an earlier one, and none is cited that no rollout has.

    What no step is named for is said of the one that is blamed.
    """
    longest = max((len(trace.steps) for trace in seen.traces), default=0)
    for cited in map(int, _CITED.findall(mechanism)):
        if cited >= longest:
            yield f"the mechanism speaks of step {cited}; the longest rollout of the task has {longest} steps"
    for hit in _BRINGS.finditer(mechanism):
        first, second = int(hit["first"]) if hit["first"] else step, int(hit["second"])
        if isinstance(first, int) and second < first:
            yield f"step {first} is said to bring about step {second}, which came before it"


# -- the file beside a run --------------------------------------------------------------------------

MOST_BYTES = 64 << 20  # bytes: a file beyond this is not what its name says
_DECODER = msgspec.json.Decoder(Judgement)


class Withdrawn(msgspec.Struct, frozen=True):
    """A line that takes a judgement back."""

    withdrawn: str  # its id
    by: str
    at: str


def append(path: Path, lines: Sequence[Judgement | Withdrawn]) -> None:
    """Add all of the lines or none; what is an author's last word on its task already is not said again."""
    try:
        with locked(path) as file:
            last = {(line.agent, line.task, line.by): line.id for line in _read(_content(file))[0]}
            news = b""
            for line in lines:
                if isinstance(line, Judgement):
                    key = (line.agent, line.task, line.by)
                    if last.get(key) == line.id:
                        continue
                    last[key] = line.id
                news += msgspec.json.encode(line) + b"\n"
            if news:
                append_whole(file, news)
    except OSError as error:
        hint = "judgements are kept beside the rollouts; make that folder writable, or copy the run"
        raise Unreadable(f"cannot write {path}: {error.strerror or error}", hint, "cannot-write") from error


def read(path: Path) -> tuple[tuple[Judgement, ...], int]:
    """The judgements of a file that were not taken back, each author's last word last; and how many lines are none.

    A line that is being written is not there yet.
    """
    try:
        with opened(path, os.O_RDONLY) as file:
            return _read(_content(file))
    except FileNotFoundError:
        return (), 0
    except OSError as error:
        hint = "make it readable, or move it away"
        raise Unreadable(f"cannot read {path}: {error.strerror or error}", hint, "unreadable-file") from error


def _content(file: int) -> bytes:
    size = os.fstat(file).st_size
    if size > MOST_BYTES:
        raise OSError(errno.EFBIG, "it is too large to hold judgements")
    return os.pread(file, MOST_BYTES, 0)


def _read(content: bytes) -> tuple[tuple[Judgement, ...], int]:
    judgements: dict[str, Judgement] = {}
    bad = 0
    whole, _, torn = content.rpartition(b"\n")
    for line in [*whole.split(b"\n"), *([torn] if torn.rstrip().endswith(b"}") else [])]:
        if not line.strip():
            continue
        try:
            judgement = _DECODER.decode(line)
            judgements.pop(judgement.id, None)  # given again: it counts from now
            judgements[judgement.id] = judgement
        except msgspec.DecodeError:
            try:
                judgements.pop(msgspec.json.decode(line, type=Withdrawn).withdrawn, None)
            except msgspec.DecodeError:
                bad += 1
    return tuple(judgements.values()), bad


def standing(judgements: Iterable[Judgement]) -> dict[str, tuple[Judgement, ...]]:
    """Task -> the last judgement of each author, the newest last, in the order they were given: clocks may err."""
    latest: dict[str, dict[str, Judgement]] = {}
    for each in judgements:
        authors = latest.setdefault(each.task, {})
        authors.pop(each.by, None)
        authors[each.by] = each
    return {task: tuple(authors.values()) for task, authors in latest.items()}


# -- agreement --------------------------------------------------------------------------------------

MOST_AUTHORS = 12  # whose judgements are compared with one another, those who judged most


def agreements(
    run: str, judged: Mapping[str, Sequence[Judgement]], proposed: Mapping[str, Cause]
) -> tuple[Agreement, ...]:
    """Of each author with the engine, then of each two authors, over the tasks that both labelled."""
    labels: dict[str, dict[str, Cause]] = {}
    for task, judgements in judged.items():
        for each in judgements:
            labels.setdefault(each.by, {})[task] = each.cause
    authors = sorted(labels)
    pairs = [(ENGINE, author, proposed, labels[author]) for author in authors]
    busiest = sorted(sorted(authors, key=lambda name: (-len(labels[name]), name))[:MOST_AUTHORS])
    pairs += [(a, b, labels[a], labels[b]) for a, b in combinations(busiest, 2)]
    return tuple(pair for pair in (agreement(run, *pair) for pair in pairs) if pair.n)


def agreement(run: str, first: str, second: str, a: Mapping[str, Cause], b: Mapping[str, Cause]) -> Agreement:
    """Of two authors, over the tasks that both labelled."""
    counts = Counter((a[task], b[task]) for task in a if task in b)
    matrix = [[float(counts[x, y]) for y in Cause] for x in Cause]
    agreed = sum(n for (x, y), n in counts.items() if x is y)
    confusion = tuple((x, y, counts[x, y]) for x in Cause for y in Cause if counts[x, y])
    return Agreement(run, first, second, counts.total(), agreed, stats.cohen_kappa(matrix), confusion)
