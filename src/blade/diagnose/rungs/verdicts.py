"""Ask what the grader itself says: acts against the expected acts, failed checks, and values of verdict fields.

Fires on any run whose rows carry expected calls, named checks or an error type; a value that equals all failures is the
verdict itself and names nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from blade.answers import words
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.expected_calls import (
    AGREE,
    ARGUMENTS,
    EXTRA,
    NONE_DONE,
    NOTHING_DUE,
    OTHER,
    PART,
    PARTS,
    SAME,
    acts_of,
    covers,
    difference,
    graded_tools,
    in_words,
    nothing_due,
    odd_arguments,
    only_reads,
    told,
)
from blade.diagnose.fact_cover import Candidate, Contrast, cover
from blade.diagnose.fields import template
from blade.diagnose.population import Findings, Group, Ints, Mask, Population, at_end, count, joined, short
from blade.diagnose.reference import gives_answer
from blade.diagnose.upstream import trace_back
from blade.formats.check_records import FAILED, KINDS, status_of

LEAST_PASSES = 3
ALIKE = 0.5  # share of words that two last sentences have in common, from which they say the same
MAX_VALUES = 30
MAX_TEXTS = 3_000  # different texts of a field that are compared without their numbers
WORDS = 2  # blanks of a text from which its numbers are taken for details
SEVERAL = 5  # failing tasks from which a check of one of them names no group
MAX_CROSSED, CROSSED = 8, 0.15  # values of two fields that are crossed, and share of the failures that both must hold
MAX_LINES = 60  # lines of logs that may name a group
RESTATES = 0.95  # share of the failures from which a value is the verdict itself


def ask(people: Population, left: Mask) -> Findings:
    groups: list[Group] = []
    for make in (_against_gold, _named_checks, _rest):
        result = cover(people, list(make(people, left)), left)
        traced = trace_back(people, result, frozenset(graded_tools(people)), make is _against_gold)
        groups += _unanswered(people, result, traced) if make is _against_gold else traced
        for group in result:
            left = left & ~group.rows
    return Findings(groups)


def ask_messages(people: Population, left: Mask) -> Findings:
    """What messages of the rows say, whatever numbers they give: asked last, since it repeats the verdict in words."""
    return Findings(cover(people, list(_values(people, left, is_folded=True)), left))


def _unanswered(people: Population, result: Sequence[Group], traced: Sequence[Group]) -> list[Group]:
    """The groups, with rows apart in which the model names the expected change and the user agrees and is gone.

    `found` are the groups by what differs, `traced` the same after rows went to acts upstream.
    """
    graded = graded_tools(people)
    omitted, rows = people.none, people.none
    for group in result:
        omitted |= group.rows if group.name in _OMISSIONS else people.none
    for group in traced:
        if group.name in _OMISSIONS:
            rows |= group.rows & people.where(lambda row: _proposes(row, graded))
    left_of = [_counted(people, group, group.rows & ~rows, omitted, graded) for group in traced if (group.rows & ~rows).any()]
    n = int(rows.sum())
    if not n:
        return left_of
    return [
        *left_of,
        Group(
            rung="verdicts", label="TI", name="the user leaves when the model asks to confirm the expected change", rows=rows, matched=rows,
            text=f"{count(n, 'failure')}: the model names the expected change and asks, the user's answer ends the conversation, and the "
            "model has no turn left to make the change.",
            fix="Give the model its turn after the user's last answer before the conversation is closed, and rerun these rollouts.",
            why="nobody can act after the conversation is over", blame=lambda row: None,
            place=at_end,
            detail=lambda i: in_words(people.rows[i], graded), against=["the model could have acted without asking"],
        ),
    ]  # fmt: skip


def _counted(people: Population, group: Group, rows: Mask, omitted: Mask, graded: Mapping[str, str]) -> Group:
    """A group with the rows that are left to it, what it says of them counted again, and with the doubt that some had no turn left."""
    kind = next((kind for kind, (name, _) in _NAMES.items() if name == group.name), None)
    tool = next((tool for tool in graded if _unexpected_name(tool) == group.name), None)
    if kind is not None:
        fresh = _differing(people, kind, *_NAMES[kind], graded, rows, None)
    elif tool is not None:
        fresh = _unexpected(people, tool, graded, rows, None)
    else:
        fresh = group
    ended = _cut_short(people, rows & omitted)
    # where it holds for half of them, whose fault it is stands in doubt, and the reader must know
    is_doubtful = 2 * interrupted(people, rows & omitted).sum() >= rows.sum()
    text = fresh.text + "".join(f" {doubt[0].upper()}{doubt[1:]}." for doubt in ended if is_doubtful)
    confidence = "likely" if is_doubtful and group.confidence == "proved" else group.confidence
    return replace(group, rows=rows, text=text, deciding=fresh.deciding, against=[*group.against, *ended], confidence=confidence)


def _proposes(row: RowEvidence, graded: Mapping[str, str]) -> bool:
    """Whether the last message of the model asks and names what identifies every missing call and no other thing, and is agreed to."""
    if row.end != "user" or not _AGREES.match(row.reply) or not _asks(row):
        return False
    calls, due = acts_of(row, graded)
    values = [set(_MARKED.findall(text)) for _, text in due]
    missing = [(tool, set(_MARKED.findall(text))) for tool, text in (due - calls)]
    shapes = {_shape(value) for _, named in missing for value in named}
    others = {value for value in _MARKED.findall(row.final) if _shape(value) in shapes}.difference(*values)
    return bool(missing) and not others and all(_is_named(row.final, tool, named, graded) for tool, named in missing)


def _asks(row: RowEvidence) -> bool:
    """Whether a message ends with a question, or itself gives the word that is answered: reply "yes" to proceed."""
    end, answer = row.final.rstrip()[-200:], re.search(r"\w+", row.reply)
    return "?" in end or (answer is not None and re.search(rf"\b{answer[0]}\b", end, re.IGNORECASE) is not None)


def _is_named(text: str, tool: str, values: set[str], graded: Mapping[str, str]) -> bool:
    """Whether a text names most of the values of a call, and another act by name only where two values show which is meant."""
    phrase = {value for value in values if value in text}
    if not phrase or len(phrase) < 0.5 * len(values):
        return False
    own, spoken = _stems(tool), _stems(text)
    return len(phrase) > 1 or all(own & spoken - _stems(other) or not (_stems(other) - own) & spoken for other in graded)


def _stems(text: str) -> set[str]:
    """How the words of a text or of a name begin."""
    return {word[:5].casefold() for word in re.findall(r"[^\W\d_]+", text)}


def _shape(value: str) -> str:
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", value))


_YES = (
    r"\A\W*(?:yes|yep|yeah|yup|sure|correct|confirm\w*|go ahead|proceed|do it|that works|sounds (?:good|great|perfect|right|fine)"
    r"|that(?:'s| is) (?:right|correct|fine|perfect))\b"
)
_CERTAIN = re.compile(_YES, re.IGNORECASE)
_AGREES = re.compile(rf"{_YES}|\A\W*(?:ok|okay|please|perfect)\b", re.IGNORECASE)  # which may as well begin a refusal
_MARKED = re.compile(r"[#\w-]*\d[\w-]{3,}")  # values with digits, which identify what is meant


def _rest(people: Population, left: Mask) -> Iterator[Candidate]:
    yield from _check_lists(people)
    yield from _values(people, left)
    yield from _crossed(people)
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for i in np.flatnonzero(people.failed).tolist():
        for path, lines in people.rows[i].lines.items():
            for line in lines:
                places[path, line].append(i)
    passing = {(path, line) for i in np.flatnonzero(people.passed) for path, lines in people.rows[i].lines.items() for line in lines}
    common = sorted(((len(rows), place) for place, rows in places.items() if len(rows) >= 3 and place not in passing), reverse=True)
    answered = people.where(gives_answer)
    for n, (path, line) in common[:MAX_LINES]:
        if _CODE.fullmatch(line) and answered[places[path, line]].all():
            continue
        if n < RESTATES * people.failed.sum():
            rows = people.mask(places[path, line])
            yield Candidate(f"{path}: {line}", rows, partial(_valued, path, _words_of(people, path, line, rows)), order=6)


def _words_of(people: Population, path: str, line: str, rows: Mask) -> str:
    """A line of a log as one of some rows words it."""
    some = np.flatnonzero(rows)[:MAX_VALUES]
    texts = (text for i in some for text in people.rows[i].tails.get(path, "").splitlines() if template(text) == line)
    return short(next(texts, line), 100)


# ---- What was done against what is expected ------------------------------------------------------


_NAMES = {
    NOTHING_DUE: (
        "acts although nothing should be changed",
        "Make the model check the rules before it changes anything, and refuse what they forbid.",
    ),
    NONE_DONE: (
        "no change made although one was due",
        "Have the model carry out what the user is entitled to before it ends or hands over.",
    ),
    ARGUMENTS: (
        "right action with wrong arguments",
        "Have the model restate and verify every argument against the records before it acts.",
    ),
    PART: ("only part of the expected actions", "Have the model list everything that was asked and check the list before it finishes."),
    EXTRA: ("an action beyond the expected ones", "Have the model act only on what was asked and confirmed."),
    OTHER: ("other actions than the expected ones", "Show the model which action fits which case, with examples."),
}  # fmt: skip
_OMISSIONS = (_NAMES[NONE_DONE][0], _NAMES[PART][0])


def _against_gold(people: Population, left: Mask) -> Iterator[Candidate]:
    has = people.where(lambda row: row.expected is not None)
    if has.mean() < 0.5:
        return
    graded = graded_tools(people)
    if not graded:
        return
    kinds = np.array([difference(row, graded) if row.expected is not None else SAME for row in people.rows])
    passes = has & people.passed
    is_graded = passes.sum() >= LEAST_PASSES and (kinds[passes] == SAME).mean() >= AGREE
    if not is_graded:
        return
    for kind, (name, fix) in _NAMES.items():
        rows = has & (kinds == kind)
        yield Candidate(name, rows, partial(_differing, people, kind, name, fix, graded), order=2, is_tested=False)
    for tool in sorted(graded):
        more = people.where(lambda row: _more(row, tool))  # noqa: B023
        yield Candidate(f"more {tool}", more, partial(_unexpected, people, tool, graded), order=1, is_tested=False)


def _more(row: RowEvidence, tool: str) -> bool:
    """Whether a row calls a tool more often than it is expected to."""
    if row.expected is None:
        return False
    return sum(name == tool for name, _ in row.made) > sum(name == tool for name, _ in row.expected)


def _differing(people: Population, kind: int, name: str, fix: str, graded: Mapping[str, str], rows: Mask, test: Contrast | None) -> Group:
    n = int(rows.sum())
    tools: Counter[str] = Counter()
    for i in np.flatnonzero(rows):
        row = people.rows[i]
        calls, due = acts_of(row, graded)
        odd = (due - calls) if kind in (NONE_DONE, PART, ARGUMENTS) else (calls - due)
        tools.update(sorted({tool for tool, _ in odd}))
    about = joined(tool for tool, _ in tools.most_common(3))
    instead = _instead(people, rows) if kind in (NONE_DONE, PART) else ""
    instead = _by_argument(people, rows, graded) if kind == ARGUMENTS else instead
    lead = {
        NOTHING_DUE: f"{count(n, 'failure')}: something is changed ({about}) in tasks where nothing should be.",
        NONE_DONE: f"{count(n, 'failure')}: no change is made although one was due ({about}).",
        ARGUMENTS: f"{count(n, 'failure')}: the expected actions, with wrong arguments ({about}).",
        PART: f"{count(n, 'failure')}: only part of the expected changes is made; missing: {about}.",
        EXTRA: f"{count(n, 'failure')}: a change beyond the expected ones ({about}).",
        OTHER: f"{count(n, 'failure')}: other changes than the expected ones ({about}).",
    }[kind]
    actual = sum(_is_told(row, graded) for row in people.of(rows)) if kind == ARGUMENTS else 0
    text = f" In {actual:,} of them the value that counts as wrong is one that the prompt or the user names." if actual else ""
    return Group(
        rung="verdicts", label="BI", name=name, rows=rows, text=lead + instead + text, fix=fix,
        why="what was done differs from the expected calls that the row states", confidence="likely" if 2 * actual >= n else "proved",
        place=lambda row: _place(row, kind, graded), blame=lambda row: _blame(row, kind, graded),
        deciding=tuple(tool for tool, _ in tools.most_common(3)),
        is_defined_by_passes=True, detail=lambda i: in_words(people.rows[i], graded),
        against=["the expected calls themselves may be wrong"],
    )  # fmt: skip


def _is_told(row: RowEvidence, graded: Mapping[str, str]) -> bool:
    """Whether some argument that differs from the expected one has a value that the prompt or the user names, and no result."""
    odd = set(odd_arguments(row, graded))
    sources = (source for act in row.acts if act.tool in graded and not act.failed for source in act.sources)
    return any(source.name in odd and source.is_given and not source.tool for source in sources)


def _cut_short(people: Population, rows: Mask) -> list[str]:
    """That in some rows another party had the last word, as a doubt about whose fault the omission is."""
    ended = interrupted(people, rows)
    agreed = ended & people.where(lambda row: _CERTAIN.match(row.reply))
    n, m = int(agreed.sum()), int((ended & ~agreed).sum())
    phrase = [
        f"in {n:,} of them the user agrees to what the model last said and the conversation ends there, so it has no turn left to act; "
        "that it would have made the expected change is not shown" if n else "",
        f"in {m:,} {'more' if n else 'of them'} the conversation ends with the user's reply, before the model could act on it" if m else "",
    ]  # fmt: skip
    return [doubt for doubt in phrase if doubt]


def _by_argument(people: Population, rows: Mask, graded: Mapping[str, str]) -> str:
    """The arguments that most often differ from the expected ones, as a sentence."""
    odd = Counter(name for i in np.flatnonzero(rows) for name in sorted(set(odd_arguments(people.rows[i], graded))))
    listed = ", ".join(f"`{name}` in {n:,}" for name, n in odd.most_common(4))
    return f" Most often wrong: {listed}." if odd else ""


def interrupted(people: Population, rows: Mask) -> Mask:
    """Rows that end with somebody's reply to the model, which last said something else than passes end with."""
    closing = {words(_last_sentence(row)) for row in people.of(people.passed)}
    result = people.none
    for i in np.flatnonzero(rows):
        row = people.rows[i]
        phrase = words(_last_sentence(row))
        result[i] = row.end == "user" and bool(phrase) and not any(len(phrase & usual) >= ALIKE * len(phrase | usual) for usual in closing)
    return result


def _last_sentence(row: RowEvidence) -> str:
    return re.split(r"(?<=[.!?])\s+|\n", row.final.strip())[-1]


def _instead(people: Population, rows: Mask) -> str:
    """What most of some rows end with instead."""
    last = Counter(row.acts[-1].tool for row in people.of(rows) if row.acts)
    if not last:
        return ""
    tool, n = last.most_common(1)[0]
    return f" {n:,} of them end with `{tool}`." if n > 1 and n >= 0.5 * rows.sum() else ""


def _place(row: RowEvidence, kind: int, graded: Mapping[str, str]) -> tuple[int | str, str] | None:
    """What to quote: the first change that is not among the expected ones, else how the rollout ends."""
    step = _mismatch(row, graded) if kind not in (NONE_DONE, PART) else None
    step = row.final_step if step is None else step
    if step is None and row.acts:
        step = row.acts[-1].step
    return (step, "") if step is not None else None


def _blame(row: RowEvidence, kind: int, graded: Mapping[str, str]) -> tuple[int | str, str] | None:
    """The wrong change; what was left out has no step of its own."""
    step = _mismatch(row, graded) if kind not in (NONE_DONE, PART) else None
    return (step, "") if step is not None else None


def _mismatch(row: RowEvidence, graded: Mapping[str, str], tool: str | None = None) -> int | None:
    """The step of the first call, of one tool or of any, that matches no expected one."""
    _, due = acts_of(row, graded)
    worked = [act for act in row.acts if not act.failed]
    if len(worked) != len(row.made):
        return None  # only the first and last acts of a long rollout are kept
    for act, (name, text) in zip(worked, row.made, strict=True):
        if name in graded:
            call = name, told(text, graded[name])
            others = [other for other in due if other[0] == name and due[other] > 0] if graded[name] == PARTS else []
            wanted = call if due[call] > 0 else next((other for other in others if covers(text, other[1])), None)
            if wanted is not None:
                due[wanted] -= 1
            elif tool is None or name == tool:
                return act.step
    return None


def _unexpected_name(tool: str) -> str:
    return f"calls `{tool}` where it is not expected"


def _unexpected(people: Population, tool: str, graded: Mapping[str, str], rows: Mask, test: Contrast | None) -> Group:
    n = int(rows.sum())
    places = np.flatnonzero(rows)
    idle = int((nothing_due(people) & people.where(only_reads) & rows).sum())
    more = sum(any(name == tool for name, _ in people.rows[i].expected or ()) for i in places)
    where = f" In {idle:,} of them no change by the model is expected at all." if 0 < idle < n else ""
    where = " No change by the model is expected there at all." if idle == n else where
    where += f" In {more:,} of them it is expected for something else, or fewer times." if more else ""
    is_clean = not (people.passed & people.where(lambda row: _more(row, tool))).any()
    clean = " No rollout with such a call passes." if is_clean else ""
    return Group(
        rung="verdicts", label="BI", name=_unexpected_name(tool), rows=rows,
        text=f"{count(n, 'failure')}: `{tool}` is called where it is not among the expected calls.{where}{clean}",
        fix=f"Have the model check the conditions for `{tool}` in the policy before it calls it, and say so when they are not met.",
        why="the expected calls of the row do not contain it", confidence="proved",
        place=lambda row: (step, "") if (step := _mismatch(row, graded, tool)) is not None else None,
        deciding=(tool,), is_defined_by_passes=True, detail=lambda i: in_words(people.rows[i], graded),
        against=["the expected calls themselves may be wrong"],
    )  # fmt: skip


# ---- Checks and verdict fields -------------------------------------------------------------------


def _named_checks(people: Population, left: Mask) -> Iterator[Candidate]:
    """Checks that the row names, each by the rows that fail it, and how what is compared differs."""
    yield from _unlike_pairs(people)
    names = Counter(
        name
        for row in people.rows
        for name, passed in row.checks.items()
        if not passed and any(sign.isalpha() for sign in name.partition(": ")[2])
    )  # a number names no check: it is a value that is due in one task, and belongs to its list
    several = people.n_tasks(people.failed) >= SEVERAL
    for name, n in names.most_common(100):
        if n >= 2:
            rows = people.where(lambda row: row.checks.get(name) is False)  # noqa: B023
            if several and people.n_tasks(rows) == 1:
                continue  # a test of one task says no more than that the task failed: all such are told together
            # a check that no pass fails is part of the grade: it is the grader's own word and needs no test
            is_tested = bool(people.passed[rows].any())
            yield Candidate(name, rows, partial(_failed_check, people, name), order=4, is_tested=is_tested)


_UNLIKE = {
    "more": ("gives a value where none is expected", "Tell the model to leave a field empty where nothing states it, with examples."),
    "less": ("leaves out a value that is expected", "Have the model look for every field before it gives one up."),
}  # fmt: skip


def _unlike_pairs(people: Population) -> Iterator[Candidate]:
    """Rows all of whose fields that differ from the expected ones differ in one way: a value too much, or one too few."""
    lists = {name.partition(": ")[0] for row in people.rows for name in row.checks if " = " in name.partition(": ")[0]}
    for path in sorted(lists):
        expected, actual = path.split(" = ")[:2]
        if _varies(people, expected):
            expected, actual = actual, expected
        if _varies(people, expected) or not _varies(people, actual):
            continue  # the expected side is the same in all repeats of a task, and the other is not
        for way, (name, fix) in _UNLIKE.items():
            rows = people.where(lambda row: _ways(row, path, expected, actual) == {way})  # noqa: B023
            if rows.any() and not people.passed[rows].any():
                yield Candidate(f"{path} {way}", rows, partial(_unlike_pair, people, path, name, fix), order=3, is_tested=False)


def _varies(people: Population, side: str) -> bool:
    """Whether some member of an object differs between repeats of a task."""
    for path in people.paths:
        if path.startswith(f"{side}."):
            codes, _ = people.codes(path)
            pairs = np.unique(np.stack([people.task, codes]), axis=1)
            if pairs.shape[1] > len(np.unique(people.task)):
                return True
    return False


def _ways(row: RowEvidence, path: str, expected: str, actual: str) -> set[str]:
    """How the fields of a row that are not as expected differ."""
    names = [name.partition(": ")[2] for name, met in row.checks.items() if not met and name.startswith(f"{path}: ")]
    blank = (None, "", "[]")
    pairs = [(row.fields.get(f"{expected}.{name}") in blank, row.fields.get(f"{actual}.{name}") in blank) for name in names]
    return {"more" if is_none and not is_left else "less" if is_left and not is_none else "other" for is_none, is_left in pairs}


def _unlike_pair(people: Population, path: str, name: str, fix: str, rows: Mask, test: Contrast | None) -> Group:
    fields = Counter(
        check.partition(": ")[2]
        for i in np.flatnonzero(rows)
        for check, met in people.rows[i].checks.items()
        if not met and check.startswith(f"{path}: ")
    )
    listed = ", ".join(f"`{field[:40]}` in {n:,}" for field, n in fields.most_common(4))
    return Group(
        rung="verdicts", label="BI", name=name, rows=rows, fix=fix, confidence="proved", deciding=(path,),
        text=f"{count(int(rows.sum()), 'failure')}: all that differs from what is expected is that the model {name} ({listed}).",
        why="the two objects that are compared differ in nothing else, and no pass differs so",
        place=at_end,
        detail=lambda i: _failed_checks(people.rows[i]), against=["the expected value itself may be missing by mistake"],
    )  # fmt: skip


def _check_lists(people: Population) -> Iterator[Candidate]:
    """Lists of checks that every pass meets in full, each by the rows that fail any of them: single ones may be too rare."""
    paths = Counter(path for row in people.rows for path in {name.partition(": ")[0] for name in row.checks if ": " in name})
    for path, n in paths.most_common(30):
        rows = people.where(lambda row: any(not met for name, met in row.checks.items() if name.startswith(f"{path}: ")))  # noqa: B023
        if n and rows.any() and not people.passed[rows].any():
            yield Candidate(f"{path}: any", rows, partial(_unmet, people, path), order=4, is_tested=False)


def _unmet(people: Population, path: str, rows: Mask, test: Contrast | None) -> Group:
    n = int(rows.sum())
    tasks: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for i in np.flatnonzero(rows).tolist():
        for name, met in people.rows[i].checks.items():
            if not met and name.startswith(f"{path}: "):
                tasks[name.partition(": ")[2]][int(people.task[i])] += 1
    listed = joined(name[:60] for name in sorted(tasks, key=lambda name: (-tasks[name].total(), name)))
    is_own = all(len(present) == 1 and re.search(r"[^\W\d_]", name) for name, present in tasks.items()) and people.n_tasks(rows) > 1
    field = path.rpartition(".")[2][-60:]
    return Group(
        rung="verdicts", label="BI", rows=rows, name="fails a test of its own task" if is_own else f"misses what `{field}` demands",
        text=f"{count(n, 'failure')}: "
        + (f"a test that only the task itself has is not passed ({listed}), as `{path}` records." if is_own else
           f"what `{path}` demands is not met ({listed}), as the grader records."),
        fix=f"Read the quoted rollout beside what `{path}` demands: was it never said or done, or said wrongly?",
        why="the grader names these checks as failed, and no pass fails one", confidence="proved", deciding=(path,),
        place=lambda row: (path, ""), blame=lambda row: None, detail=lambda i: _failed_checks(people.rows[i], path),
    )  # fmt: skip


def _failed_checks(row: RowEvidence, path: str = "") -> str:
    """The checks that a row fails, of how many; those under one path first."""
    own = {name: met for name, met in row.checks.items() if name.startswith(f"{path}: ")} if path else row.checks
    unmet = [name for name, met in row.checks.items() if not met]
    failed, others = ([name.partition(": ")[2] or name for name in unmet if (name in own) is is_own] for is_own in (True, False))
    pair = next((phrase for name in failed if (phrase := _compared(row, name))), "")
    listed = joined(short(name, 60) for name in failed)
    more = f"; other checks not met: {joined(short(name, 60) for name in others)}" if others else ""
    return f"{len(failed):,} of {count(len(own), 'check')} not met: {listed}{f' ({pair})' if pair else ''}{more}"


def _compared(row: RowEvidence, name: str) -> str:
    """The values that two objects of a row hold under the name of a check, where they differ: what is and what should be."""
    present = {path: value for path, value in row.fields.items() if path.endswith(f".{name}")}
    result = [(path, value) for path, value in present.items() if not isinstance(value, bool) and value not in (0, 1)]
    if len(result) != 2 or result[0][1] == result[1][1]:
        return ""
    return ", ".join(f"`{path}` is {short(str(value), 40)}" for path, value in result)


def _failed_check(people: Population, name: str, rows: Mask, test: Contrast | None) -> Group:
    field, _, short_name = name.partition(": ")
    n = int(rows.sum())
    return Group(
        rung="verdicts", label="BI", name=f"fails the check `{short_name[:80]}`", rows=rows,
        text=f"{count(n, 'failure')}: the check `{short_name[:120]}` is not met, as the grader records in `{field}`."
        + _example(people, rows, short_name),
        fix=f"Train or prompt for `{short_name[:80]}`; read the quoted rollout first.",
        why="the grader names this check as failed", confidence="proved", deciding=(name,),
        place=lambda row: (field, ""), detail=lambda i: _failed_checks(people.rows[i]),
    )  # fmt: skip


def _example(people: Population, rows: Mask, name: str) -> str:
    """What the first of some rows holds for a check beside what it should, as a sentence."""
    pairs = (_compared(row, name) for row in people.of(rows))
    phrase = next(filter(None, pairs), "")
    return f" In one of them {phrase}." if phrase else ""


def _values(people: Population, left: Mask, is_folded: bool = False) -> Iterator[Candidate]:
    """Values of fields that vary within tasks and never pass."""
    plain = _restated(people)
    answered = people.where(gives_answer)
    for path in people.paths:
        if path in people.task_level or people.is_reward(path):
            continue
        codes, values = _alike(*people.codes(path))
        is_message = len(values) < len(people.codes(path)[1]) or len(values) == 1
        if is_message != is_folded or not 1 <= len(values) <= MAX_VALUES:
            continue
        if people.is_constant_within(codes) if people.has_repeats else len(values) > 0.2 * people.n:
            continue  # it names or describes tasks, whatever became of them
        is_part = set(values) <= {0, 1} and not any(isinstance(value, bool) for value in values)
        if not is_part and any(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            continue
        if any(isinstance(value, str) and value[:1] in "[{" for value in values):
            continue  # a list tells of single steps, not of the outcome
        is_graded = people.is_graded(codes) or is_part or people.is_for_failures(codes)
        for code, value in enumerate(values):
            if is_part and value != 0:
                continue
            rows = codes == code
            of_failed = float((rows & people.failed).sum()) / max(int(people.failed.sum()), 1)
            if people.passed[rows].any() or of_failed >= RESTATES or (rows & left).sum() < 2:
                continue
            if np.packbits(rows).tobytes() in plain or (_CODE.fullmatch(str(value)) and answered[rows].all()):
                continue  # that it is wrong says nothing beyond the reward, nor does a letter beside an answer that can be read
            # what grading sets needs no test: it is the grader's own word
            yield Candidate(
                f"{path}={value}", rows, partial(_valued, path, str(value)), order=5, is_tested=not is_graded,
                is_fault=not people.passed[codes >= 0].any(),
            )


_CODE = re.compile(r"\W*(?:\w+\W+)?[A-Za-z]{1,2}\W*")  # a letter, be it after a word: `B`, `grade: B`


def _alike(codes: Ints, values: list[Any]) -> tuple[Ints, list[Any]]:
    """Texts that differ in numbers and the like alone under one number, as one text."""
    if not 1 <= len(values) <= MAX_TEXTS or not all(isinstance(value, str) and value.count(" ") >= WORDS for value in values):
        return codes, values  # in a code the number is what it says
    known: dict[str, int] = {}
    mapped = np.array([*(known.setdefault(template(value), len(known)) for value in values), -1], np.int64)
    if len(known) == len(values):
        return codes, values
    shown = {template(value): value for value in reversed(values)}
    single = Counter(template(value) for value in values)
    return mapped[codes], [shown[text] if single[text] == 1 else _MASK.sub("…", text) for text in known]


_MASK = re.compile(r"<[a-z]+>")


def _crossed(people: Population) -> Iterator[Candidate]:
    """A value of the row in one kind of task, where neither fails by itself: the value passes elsewhere, the tasks with other values."""
    least = max(5, CROSSED * people.failed.sum())
    kinds = [(path, codes, values) for path, (codes, values) in people.task_level.items() if 2 <= len(values) <= MAX_CROSSED]
    for path in people.paths if kinds else ():
        codes, values = people.codes(path)
        if path in people.task_level or people.is_reward(path) or not 2 <= len(values) <= MAX_CROSSED:
            continue
        for code, value in enumerate(values):
            rows = codes == code
            if not isinstance(value, str | bool) or (rows & people.failed).sum() < least:
                continue
            for kind, kind_codes, kind_values in kinds:
                for kind_code, kind_value in enumerate(kind_values):
                    own = kind_codes == kind_code
                    both, elsewhere, otherwise = rows & own, rows & ~own, own & ~rows
                    if both.sum() < least or people.passed[both].any() or people.n_tasks(both) < 3:
                        continue
                    if all(present.sum() >= 5 and people.rate(present) >= 0.5 for present in (elsewhere, otherwise)):
                        name = f"`{path}` is `{str(value)[:40]}` where `{kind}` is `{str(kind_value)[:40]}`"
                        yield Candidate(name, both, partial(_cross, people, name, path, str(value), elsewhere), order=3, is_tested=False)


def _cross(people: Population, name: str, path: str, value: str, elsewhere: Mask, rows: Mask, test: Contrast | None) -> Group:
    return Group(
        rung="verdicts", label="BI", name=name, rows=rows, confidence="likely", deciding=(path,),
        text=f"{count(int(rows.sum()), 'failure')}: {name}. In other tasks {people.rate(elsewhere):.0%} of the rollouts with this "
        "value pass, so the model makes a choice there that is right elsewhere.",
        fix=f"Show the model with examples of both kinds when `{value[:40]}` is right and when it is not.",
        why="what it does is right in other tasks and never in these, while tasks of this kind pass when it does otherwise",
        place=lambda row: (row.final_step, "") if row.final_step is not None else (path, value[:80]),
        against=[f"`{path}` may be set by a classifier that errs"], detail=lambda i: f"`{path}` is `{value[:60]}`",
    )  # fmt: skip


def _restated(people: Population) -> set[bytes]:
    """Rows that a field calls wrong in a plain word, whatever else is said of the same rows."""
    result = set()
    for path in people.paths:
        codes, values = people.codes(path)
        if len(values) <= MAX_VALUES:
            wrong = [code for code, value in enumerate(values) if isinstance(value, str | bool) and status_of(value) == FAILED]
            wrong = [code for code in wrong if str(values[code]).strip().lower() not in KINDS]
            result |= {np.packbits(codes == code).tobytes() for code in wrong}
    return result


# Words that name a fault of what surrounds the model, where a verdict field speaks of it.
_OUTSIDE = re.compile(
    r"\b(?:verifier|grader|judge|sandbox|container|server|service|gateway|connection|network|provider|quota|rate limit)\b"
    r".{0,60}\b(?:time[sd]? ?out|timeout|fail\w*|error\w*|crash\w*|unavailable|refused|reset|exceeded|overloaded)\b",
    re.IGNORECASE,
)


def _valued(path: str, value: str, rows: Mask, test: Contrast | None) -> Group:
    n = int(rows.sum())
    return Group(
        rung="verdicts", label="IR" if _OUTSIDE.search(value) else "undetermined", name=f"`{path}` is `{value[:60]}`", rows=rows,
        text=f"{count(n, 'failure')}: `{path}` is or says `{value[:100]}`, which no pass has.",
        fix=f"Read the quoted rollout: what leads to `{path}` = `{value[:60]}`?",
        why="a field of the row names this outcome; what causes it is not shown", confidence="unsure",
        place=lambda row: (path, value[:80]), deciding=(path,),
    )  # fmt: skip
