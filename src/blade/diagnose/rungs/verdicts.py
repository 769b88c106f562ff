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
from itertools import product
from typing import Any

import numpy as np

from blade.answers import words
from blade.diagnose import expected_calls
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fact_cover import Candidate, Contrast, candidate, cover
from blade.diagnose.fields import template
from blade.diagnose.groups import Findings, Group, at_end, count, explained, group, joined, sentence, short
from blade.diagnose.population import Ints, Mask, Population, most_common
from blade.diagnose.reference import gives_answer
from blade.diagnose.rungs.ran import lines_of
from blade.diagnose.upstream import trace_back
from blade.formats import check_records

LEAST_PASSES = 3
ALIKE = 0.5  # share of words that two last sentences have in common, from which they say the same
MAX_VALUES = 30
MAX_TEXTS = 3_000  # different texts of a field that are compared without their numbers
WORDS = 2  # blanks of a text from which its numbers are taken for details
SEVERAL = 5  # failing tasks from which a check of one of them names no group
MAX_CROSSED, CROSSED = 8, 0.15  # values of two fields that are crossed, and share of the failures that both must hold
MAX_LINES = 60  # lines of logs that may name a group
MAX_CHECKS, MAX_LISTS = 100, 30  # checks, and lists of them, that may name a group
RESTATES = 0.95  # share of the failures from which a value is the verdict itself

Graded = Mapping[str, str]  # tool -> how closely its calls must match


def ask(people: Population, left: Mask) -> Findings:
    groups: list[Group] = []
    for make in (_against_gold, _named_checks, _rest):
        result = cover(people, list(make(people, left)), left)
        traced = trace_back(people, result, frozenset(expected_calls.graded_tools(people)), make is _against_gold)
        groups += _unanswered(people, result, traced) if make is _against_gold else traced
        left = left & ~explained(people, result)
    return Findings(groups)


def ask_messages(people: Population, left: Mask) -> Findings:
    """What messages of the rows say, whatever numbers they give: asked last, since it repeats the verdict in words."""
    return Findings(cover(people, list(_values(people, left, is_folded=True)), left))


# ---- What was done against what is expected ------------------------------------------------------


_OMISSIONS = ("none done", "part")


def _against_gold(people: Population, left: Mask) -> Iterator[Candidate]:
    has, graded = people.where(lambda row: row.expected is not None), expected_calls.graded_tools(people)
    if has.mean() < 0.5 or not graded:
        return
    kinds = np.array([expected_calls.difference(row, graded) if row.expected is not None else "" for row in people.rows])
    passes = has & people.passed
    if passes.sum() < LEAST_PASSES or (kinds[passes] == "").mean() < expected_calls.AGREE:
        return
    detail = lambda i: expected_calls.in_words(people.rows[i], graded)  # noqa: E731
    for kind in expected_calls.KINDS:
        # the first change that is not among the expected ones; what was left out has no step of its own
        blame = (lambda row: None) if kind in _OMISSIONS else lambda row: _step(expected_calls.mismatch(row, graded))
        facts = partial(_differing, people, kind, graded)
        place = lambda row, blame=blame: blame(row) or at_end(row) or ((row.acts[-1].step, "") if row.acts else None)  # noqa: E731
        own = has & (kinds == kind)
        yield candidate(people, f"verdicts.{kind}", own, 2, facts, is_tested=False, place=place, blame=blame, detail=detail)
    for tool in sorted(graded):
        more, facts = people.where(partial(_calls_more, tool)), partial(_unexpected, people, tool)
        place = lambda row, tool=tool: _step(expected_calls.mismatch(row, graded, tool))  # noqa: E731
        clean = not people.passed[more].any()
        yield candidate(
            people, "verdicts.unexpected", more, 1, facts, is_tested=False, tool=tool, clean=clean, place=place, detail=detail
        )


def _calls_more(tool: str, row: RowEvidence) -> bool:
    """Whether a row calls a tool more often than it is expected to."""
    n_made, n_due = (sum(name == tool for name, _ in calls or ()) for calls in (row.made, row.expected))
    return row.expected is not None and n_made > n_due


def _differing(people: Population, kind: str, graded: Graded, rows: Mask, test: Contrast | None) -> dict[str, Any]:
    own = people.of(rows)
    tools, wrong, n_told = Counter[str](), Counter[str](), 0
    for row in own:
        calls, due = expected_calls.acts_of(row, graded)
        tools.update(sorted({tool for tool, _ in (due - calls if kind in (*_OMISSIONS, "arguments") else calls - due)}))
        odd = set(expected_calls.odd_arguments(row, graded)) if kind == "arguments" else set()
        wrong.update(sorted(odd))
        # a value that the prompt or the user names, and no result
        sources = (source for act in row.acts if act.tool in graded and not act.failed for source in act.sources)
        n_told += any(source.name in odd and source.is_given and not source.tool for source in sources)
    last, n_last = most_common(row.acts[-1].tool for row in own if row.acts) if kind in _OMISSIONS else ("", 0)
    return {
        "about": joined(tool for tool, _ in tools.most_common(3)), "told": n_told,
        "instead": f" {n_last:,} of them end with `{last}`." if n_last > 1 and n_last >= 0.5 * len(own) else "",
        "odd": ", ".join(f"`{name}` in {n:,}" for name, n in wrong.most_common(4)),
        "confidence": "likely" if 2 * n_told >= len(own) else "proved",
    }  # fmt: skip


def _step(step: int | None) -> tuple[int, str] | None:
    return (step, "") if step is not None else None


def _unexpected(people: Population, tool: str, rows: Mask, test: Contrast | None) -> dict[str, Any]:
    n, n_idle = int(rows.sum()), int((expected_calls.nothing_due(people) & people.where(expected_calls.only_reads) & rows).sum())
    more = sum(any(name == tool for name, _ in row.expected or ()) for row in people.of(rows))
    return {"all_idle": n_idle == n, "some_idle": n_idle if n_idle < n else 0, "more": more}


# ---- Conversations that end before the model can act ---------------------------------------------


def _unanswered(people: Population, result: Sequence[Group], traced: Sequence[Group]) -> list[Group]:
    """The groups, with rows apart in which the model names the expected change and the user agrees and is gone.

    `result` are the groups by what differs, `traced` the same after rows went to acts upstream.
    """
    graded = expected_calls.graded_tools(people)
    omitted, still = (explained(people, [entry for entry in groups if entry.kind in _OMISSIONS]) for groups in (result, traced))
    rows = still & people.where(lambda row: _proposes(row, graded))
    rest = [_recounted(people, entry, entry.rows & ~rows, omitted) for entry in traced if (entry.rows & ~rows).any()]
    if not rows.any():
        return rest
    return [*rest, group("verdicts.user leaves", people, rows, detail=lambda i: expected_calls.in_words(people.rows[i], graded))]


def _recounted(people: Population, entry: Group, rows: Mask, omitted: Mask) -> Group:
    """A group with the rows that are left to it, what it says of them counted again, and with the doubt that some had no turn left."""
    text = entry.recount(rows, None).text if entry.recount is not None else entry.text
    ended = _interrupted(people, rows & omitted)
    agreed = ended & people.where(lambda row: _CERTAIN.match(row.reply))
    n, m = int(agreed.sum()), int((ended & ~agreed).sum())
    doubts = [sentence("verdicts.agreed", n=n)] if n else []
    doubts += [sentence("verdicts.interrupted", n=m, which="more" if n else "of them")] if m else []
    # where it holds for half of them, whose fault it is stands in doubt, and the reader must know
    is_doubtful = 2 * ended.sum() >= rows.sum()
    text += "".join(f" {doubt[0].upper()}{doubt[1:]}." for doubt in doubts if is_doubtful)
    confidence = "likely" if is_doubtful and entry.confidence == "proved" else entry.confidence
    return replace(entry, rows=rows, text=text, against=[*entry.against, *doubts], confidence=confidence)


def _proposes(row: RowEvidence, graded: Graded) -> bool:
    """Whether the last message of the model asks and names what identifies every missing call and no other thing, and is agreed to."""
    if row.end != "user" or not _AGREES.match(row.reply):
        return False
    # it ends with a question, or itself gives the word that is answered: reply "yes" to proceed
    end, answer = row.final.rstrip()[-200:], re.search(r"\w+", row.reply)
    if "?" not in end and (answer is None or not re.search(rf"\b{answer[0]}\b", end, re.IGNORECASE)):
        return False
    calls, due = expected_calls.acts_of(row, graded)
    values = [set(_MARKED.findall(text)) for _, text in due]
    missing = [(tool, set(_MARKED.findall(text))) for tool, text in (due - calls)]
    shapes = {_shape(value) for _, named in missing for value in named}
    others = {value for value in _MARKED.findall(row.final) if _shape(value) in shapes}.difference(*values)
    return bool(missing) and not others and all(_is_named(row.final, tool, named, graded) for tool, named in missing)


def _is_named(text: str, tool: str, values: set[str], graded: Graded) -> bool:
    """Whether a text names most of the values of a call, and another act by name only where two values show which is meant."""
    present = {value for value in values if value in text}
    if not present or len(present) < 0.5 * len(values):
        return False
    own, spoken = _stems(tool), _stems(text)
    return len(present) > 1 or all(own & spoken - _stems(other) or not (_stems(other) - own) & spoken for other in graded)


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


def _interrupted(people: Population, rows: Mask) -> Mask:
    """Rows that end with somebody's reply to the model, which last said something else than passes end with."""
    closing = {_last_words(row) for row in people.of(people.passed)}
    result = people.none
    for i in np.flatnonzero(rows):
        last = _last_words(people.rows[i])
        is_usual = any(len(last & usual) >= ALIKE * len(last | usual) for usual in closing)
        result[i] = people.rows[i].end == "user" and bool(last) and not is_usual
    return result


def _last_words(row: RowEvidence) -> frozenset[str]:
    """The words of the last sentence of a row."""
    return words(re.split(r"(?<=[.!?])\s+|\n", row.final.strip())[-1])


# ---- Checks ----------------------------------------------------------------------------------------


def _named_checks(people: Population, left: Mask) -> Iterator[Candidate]:
    """Checks that the row names, each by the rows that fail it, and how what is compared differs."""
    yield from _unlike_pairs(people)
    # a number names no check: it is a value that is due in one task, and belongs to its list
    unmet = Counter(name for row in people.rows for name, met in row.checks.items() if not met)
    names = Counter({name: n for name, n in unmet.items() if any(sign.isalpha() for sign in name.partition(": ")[2])})
    has_several = people.n_tasks(people.failed) >= SEVERAL
    detail = lambda i: _failed_checks(people.rows[i])  # noqa: E731
    for name, n in names.most_common(MAX_CHECKS):
        rows = people.where(lambda row: row.checks.get(name) is False)  # noqa: B023
        # a test of one task says no more than that the task failed: all such are told together
        if n >= 2 and not (has_several and people.n_tasks(rows) == 1):
            # a check that no pass fails is part of the grade: it is the grader's own word and needs no test
            path, _, check = name.partition(": ")
            facts = lambda rows, test, check=check: {"example": next(filter(None, (_compared(row, check) for row in people.of(rows))), "")}  # noqa: E731
            yield candidate(
                people, "verdicts.failed check", rows, 4, facts, is_tested=bool(people.passed[rows].any()),
                path=path, check=check, detail=detail,
            )  # fmt: skip


def _unlike_pairs(people: Population) -> Iterator[Candidate]:
    """Rows all of whose fields that differ from the expected ones differ in one way: a value too much, or one too few."""
    lists = {name.partition(": ")[0] for row in people.rows for name in row.checks if " = " in name.partition(": ")[0]}
    for path in sorted(lists):
        expected, actual = path.split(" = ")[:2]
        if _varies(people, expected):
            expected, actual = actual, expected
        if _varies(people, expected) or not _varies(people, actual):
            continue  # the expected side is the same in all repeats of a task, and the other is not
        ways = [_ways(row, path, expected, actual) for row in people.rows]
        for way in ("more", "less"):
            rows = np.array([own == {way} for own in ways], bool)
            if rows.any() and not people.passed[rows].any():
                facts, detail = partial(_unlike, people, path), lambda i: _failed_checks(people.rows[i])
                yield candidate(people, f"verdicts.{way}", rows, 3, facts, is_tested=False, detail=detail)


def _varies(people: Population, side: str) -> bool:
    """Whether some member of an object differs between repeats of a task."""
    codes = (people.codes(path)[0].tolist() for path in people.paths if path.startswith(f"{side}."))
    return any(len(set(zip(people.task.tolist(), column, strict=True))) > people.n_tasks(~people.none) for column in codes)


def _unmet_of(row: RowEvidence, path: str) -> list[str]:
    """The checks of one list that a row fails."""
    return [name.partition(": ")[2] for name, met in row.checks.items() if not met and name.startswith(f"{path}: ")]


def _ways(row: RowEvidence, path: str, expected: str, actual: str) -> set[str]:
    """How the fields of a row that are not as expected differ."""
    names = _unmet_of(row, path)
    sides = ([row.fields.get(f"{side}.{name}") in (None, "", "[]") for name in names] for side in (expected, actual))
    return {"other" if is_none == is_left else "more" if is_none else "less" for is_none, is_left in zip(*sides, strict=True)}


def _unlike(people: Population, path: str, rows: Mask, test: Contrast | None) -> dict[str, Any]:
    fields = Counter(field for row in people.of(rows) for field in _unmet_of(row, path))
    return {"listed": ", ".join(f"`{field[:40]}` in {n:,}" for field, n in fields.most_common(4))}


def _check_lists(people: Population) -> Iterator[Candidate]:
    """Lists of checks that every pass meets in full, each by the rows that fail any of them: single ones may be too rare."""
    paths = Counter(path for row in people.rows for path in {name.partition(": ")[0] for name in row.checks if ": " in name})
    for path, _ in paths.most_common(MAX_LISTS):
        rows = people.where(lambda row: _unmet_of(row, path))  # noqa: B023
        if rows.any() and not people.passed[rows].any():
            yield candidate(
                people, "verdicts.unmet", rows, 4, partial(_unmet, people, path), is_tested=False, path=path,
                field=path.rpartition(".")[2][-60:], detail=lambda i, path=path: _failed_checks(people.rows[i], path),
            )  # fmt: skip


def _unmet(people: Population, path: str, rows: Mask, test: Contrast | None) -> dict[str, Any]:
    tasks: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for i in np.flatnonzero(rows).tolist():
        for name in _unmet_of(people.rows[i], path):
            tasks[name][int(people.task[i])] += 1
    is_own = all(len(present) == 1 and re.search(r"[^\W\d_]", name) for name, present in tasks.items()) and people.n_tasks(rows) > 1
    names = sorted(tasks, key=lambda name: (-tasks[name].total(), name))
    return {"own": is_own, "listed": joined(name[:60] for name in names)}


def _failed_checks(row: RowEvidence, path: str = "") -> str:
    """The checks that a row fails, of how many; those under one path first."""
    own = {name: met for name, met in row.checks.items() if name.startswith(f"{path}: ")} if path else row.checks
    unmet = [name for name, met in row.checks.items() if not met]
    failed, others = ([name.partition(": ")[2] or name for name in unmet if (name in own) is is_own] for is_own in (True, False))
    pair = next(filter(None, (_compared(row, name) for name in failed)), "")
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


# ---- Verdict fields and lines of logs ------------------------------------------------------------


def _rest(people: Population, left: Mask) -> Iterator[Candidate]:
    yield from _check_lists(people)
    yield from _values(people, left)
    yield from _crossed(people)
    places = {place: rows for place, rows in people.places(lines_of).items() if not people.passed[rows].any()}
    common = sorted(((len(rows), place) for place, rows in places.items() if len(rows) >= 3), reverse=True)
    answered = people.where(gives_answer)
    for n, (path, line) in common[:MAX_LINES]:
        own = places[path, line]
        if not (_CODE.fullmatch(line) and answered[own].all()) and n < RESTATES * people.failed.sum():
            # as one of these rows words it
            texts = [text for i in own[:MAX_VALUES] for text in people.rows[i].tails.get(path, "").splitlines() if template(text) == line]
            yield _valued(people, path, short([*texts, line][0], 100), people.mask(own), 6)


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
        # what grading sets needs no test: it is the grader's own word
        is_tested = not (people.is_graded(codes) or is_part or people.is_for_failures(codes))
        is_fault = not people.passed[codes >= 0].any()
        for code, value in enumerate(values):
            rows = codes == code
            n_failed = int((rows & people.failed).sum())
            if (is_part and value != 0) or people.passed[rows].any() or (rows & left).sum() < 2:
                continue
            if n_failed / max(int(people.failed.sum()), 1) >= RESTATES:
                continue
            # that it is wrong says nothing beyond the reward, nor does a letter beside an answer that can be read
            if np.packbits(rows).tobytes() not in plain and not (_CODE.fullmatch(str(value)) and answered[rows].all()):
                yield _valued(people, path, str(value), rows, 5, is_tested=is_tested, is_fault=is_fault)


_CODE = re.compile(r"\W*(?:\w+\W+)?[A-Za-z]{1,2}\W*")  # a letter, be it after a word: `B`, `grade: B`
_MASK = re.compile(r"<[a-z]+>")


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


def _crossed(people: Population) -> Iterator[Candidate]:
    """A value of the row in one kind of task, where neither fails by itself: the value passes elsewhere, the tasks with other values."""
    least = max(5, CROSSED * people.failed.sum())
    kinds = people.kinds_of_task(MAX_CROSSED)
    for path in people.paths if kinds else ():
        codes, values = people.codes(path)
        if path in people.task_level or people.is_reward(path) or not 2 <= len(values) <= MAX_CROSSED:
            continue
        frequent = [(value, codes == code) for code, value in enumerate(values) if isinstance(value, str | bool)]
        for (value, rows), (kind, kind_value, own) in product(frequent, kinds):
            both, elsewhere, otherwise = rows & own, rows & ~own, own & ~rows
            if both.sum() < least or people.passed[both].any() or people.n_tasks(both) < 3:
                continue
            if all(present.sum() >= 5 and people.rate(present) >= 0.5 for present in (elsewhere, otherwise)):
                text = str(value)
                yield candidate(
                    people, "verdicts.crossed", both, 3, is_tested=False, path=path, value=text, elsewhere=people.rate(elsewhere),
                    about=f"`{path}` is `{text[:40]}` where `{kind}` is `{str(kind_value)[:40]}`",
                    place=lambda row, path=path, text=text: at_end(row) or (path, text[:80]),
                )  # fmt: skip


def _restated(people: Population) -> set[bytes]:
    """Rows that a field calls wrong in a plain word, whatever else is said of the same rows."""
    result = set()
    for path in people.paths:
        codes, values = people.codes(path)
        for code, value in enumerate(values if len(values) <= MAX_VALUES else ()):
            is_wrong = isinstance(value, str | bool) and check_records.status_of(value) == check_records.FAILED
            if is_wrong and str(value).strip().lower() not in check_records.KINDS:
                result.add(np.packbits(codes == code).tobytes())
    return result


# Words that name a fault of what surrounds the model, where a verdict field speaks of it.
_OUTSIDE = re.compile(
    r"\b(?:verifier|grader|judge|sandbox|container|server|service|gateway|connection|network|provider|quota|rate limit)\b"
    r".{0,60}\b(?:time[sd]? ?out|timeout|fail\w*|error\w*|crash\w*|unavailable|refused|reset|exceeded|overloaded)\b",
    re.IGNORECASE,
)


def _valued(people: Population, path: str, value: str, rows: Mask, order: int, **how: Any) -> Candidate:
    label = "IR" if _OUTSIDE.search(value) else "undetermined"
    place = lambda row: (path, value[:80])  # noqa: E731
    return candidate(people, "verdicts.valued", rows, order, path=path, value=value, label=label, place=place, **how)
