"""Ask what the grader itself says: acts against the expected acts, failed checks, and values of verdict fields.

Fires on any run whose rows carry expected calls, named checks or an error type; a value that equals all failures is the
verdict itself and names nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from blade.diagnose.answers import words
from blade.diagnose.cover import Candidate, Contrast, cover
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.expected import (
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
    told,
)
from blade.diagnose.population import Findings, Group, Mask, Population, count, joined
from blade.diagnose.upstream import trace_back

LEAST_PASSES = 3
LEAST_ENDED = 3  # failures that end so, from which they are a group
ALIKE = 0.5  # share of words that two last sentences have in common, from which they say the same
MAX_VALUES = 30
RESTATES = 0.95  # share of the failures from which a value is the verdict itself


def ask(people: Population, left: Mask) -> Findings:
    acts = list(_against_gold(people))
    groups = trace_back(people, cover(people, acts, left), frozenset(graded_tools(people)))
    for group in groups:
        left = left & ~group.rows
    for candidates in (list(_checks(people)), [*_check_lists(people), *_values(people, left)]):
        groups += (found := cover(people, candidates, left))
        for group in found:
            left = left & ~group.rows
    return Findings(_apart(people, groups))


def _apart(people: Population, groups: Sequence[Group]) -> list[Group]:
    """The groups, with rows apart in which an action is missing because the conversation was over before the model could act."""
    lacking = people.none
    for group in groups:
        if group.name in (_NAMES[NONE_DONE][0], _NAMES[PART][0]):
            lacking |= group.rows
    rows = interrupted(people, lacking)
    n = int(rows.sum())
    if n < LEAST_ENDED:
        return list(groups)
    found = [
        Group(
            rung="verdicts", label="TI", name="the user ends the conversation before the model can act", rows=rows, matched=rows,
            text=f"{count(n, 'failure')}: an expected action is missing, and the last message is the user's reply to the model, which had "
            "no turn left to act on it.",
            fix="Let the model take its turn after the user's last reply before the conversation is closed, and rerun these rollouts.",
            why="nobody can act after the conversation is over", confidence="unsure", blame=lambda row: None,
            place=lambda row: (row.final_step, "") if row.final_step is not None else None,
            against=["the model may have gone wrong before, or asked once too often"],
        )
    ]  # fmt: skip
    for group in groups:
        if (group.rows & ~rows).any():
            was, n_left = int(group.rows.sum()), int((group.rows & ~rows).sum())
            text = group.text.replace(count(was, "failure"), count(n_left, "failure"), 1)
            found.append(replace(group, rows=group.rows & ~rows, text=text))
    return found


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


def _against_gold(people: Population) -> Iterator[Candidate]:
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
        yield Candidate(name, rows, _differing(people, kind, name, fix, graded), order=2, is_tested=False)
    for tool in sorted(graded):
        more = people.where(lambda row: _more(row, tool))  # noqa: B023
        yield Candidate(f"more {tool}", more, _unexpected(people, tool, graded), order=1, is_tested=False)


def _more(row: RowEvidence, tool: str) -> bool:
    """Whether a row calls a tool more often than it is expected to."""
    if row.expected is None:
        return False
    return sum(name == tool for name, _ in row.made) > sum(name == tool for name, _ in row.expected)


def _differing(people: Population, kind: int, name: str, fix: str, graded: Mapping[str, str]):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast | None) -> Group:
        n = int(rows.sum())
        tools: Counter[str] = Counter()
        for at in np.flatnonzero(rows):
            row = people.rows[at]
            made, due = acts_of(row, graded)
            odd = (due - made) if kind in (NONE_DONE, PART, ARGUMENTS) else (made - due)
            tools.update(sorted({tool for tool, _ in odd}))
        about = joined(tool for tool, _ in tools.most_common(3))
        instead = _instead(people, rows) if kind in (NONE_DONE, PART) else ""
        lead = {
            NOTHING_DUE: f"{count(n, 'failure')}: something is changed ({about}) in tasks where nothing should be.",
            NONE_DONE: f"{count(n, 'failure')}: no change is made although one was due ({about}).",
            ARGUMENTS: f"{count(n, 'failure')}: the expected actions, with wrong arguments ({about}).",
            PART: f"{count(n, 'failure')}: only part of the expected changes is made; missing: {about}.",
            EXTRA: f"{count(n, 'failure')}: a change beyond the expected ones ({about}).",
            OTHER: f"{count(n, 'failure')}: other changes than the expected ones ({about}).",
        }[kind]
        return Group(
            rung="verdicts", label="BI", name=name, rows=rows, text=lead + instead, fix=fix,
            why="what was done differs from the expected calls that the row states", confidence="proved",
            place=lambda row: _place(row, kind, graded), blame=lambda row: _blame(row, kind, graded),
            deciding=tuple(tool for tool, _ in tools.most_common(3)),
            is_defined_by_passes=True,
            against=["the expected calls themselves may be wrong"],
        )  # fmt: skip

    return make


def interrupted(people: Population, rows: Mask) -> Mask:
    """Rows that end with somebody's reply to the model, which last said something else than passes end with."""
    closing = {words(_last_sentence(people.rows[at])) for at in np.flatnonzero(people.passed)}
    found = people.none
    for at in np.flatnonzero(rows):
        row = people.rows[at]
        said = words(_last_sentence(row))
        found[at] = row.end == "user" and bool(said) and not any(len(said & usual) >= ALIKE * len(said | usual) for usual in closing)
    return found


def _last_sentence(row: RowEvidence) -> str:
    return re.split(r"(?<=[.!?])\s+|\n", row.final.strip())[-1]


def _instead(people: Population, rows: Mask) -> str:
    """What most of some rows end with instead."""
    last = Counter(people.rows[at].acts[-1].tool for at in np.flatnonzero(rows) if people.rows[at].acts)
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
            wanted = call if due[call] > 0 else next(
                (
                    other
                    for other in due
                    if graded[name] == PARTS and other[0] == name and due[other] > 0 and covers(text, other[1])
                ),
                None,
            )
            if wanted is not None:
                due[wanted] -= 1
            elif tool is None or name == tool:
                return act.step
    return None


def _unexpected(people: Population, tool: str, graded: Mapping[str, str]):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast | None) -> Group:
        n = int(rows.sum())
        places = np.flatnonzero(rows)
        idle = sum(not acts_of(people.rows[at], graded)[1] for at in places)
        more = sum(any(name == tool for name, _ in people.rows[at].expected or ()) for at in places)
        where = f" In {idle:,} of them nothing should be done at all." if 0 < idle < n else ""
        where += f" In {more:,} of them it is expected for something else, or fewer times." if more else ""
        is_clean = not (people.passed & people.where(lambda row: _more(row, tool))).any()
        clean = " No rollout with such a call passes." if is_clean else ""
        return Group(
            rung="verdicts", label="BI", name=f"calls `{tool}` where it is not expected", rows=rows,
            text=f"{count(n, 'failure')}: `{tool}` is called where it is not among the expected calls.{where}{clean}",
            fix=f"Have the model check the conditions for `{tool}` in the policy before it calls it, and say so when they are not met.",
            why="the expected calls of the row do not contain it", confidence="proved",
            place=lambda row: (step, "") if (step := _mismatch(row, graded, tool)) is not None else None,
            deciding=(tool,), is_defined_by_passes=True, against=["the expected calls themselves may be wrong"],
        )  # fmt: skip

    return make


# ---- Checks and verdict fields -------------------------------------------------------------------


def _checks(people: Population) -> Iterator[Candidate]:
    """Checks that the row names, each by the rows that fail it."""
    names = Counter(
        name
        for row in people.rows
        for name, passed in row.checks.items()
        if not passed and not name.endswith("]")
    )
    for name, n in names.most_common(100):
        if n >= 2:
            rows = people.where(lambda row: row.checks.get(name) is False)  # noqa: B023
            # a check that no pass fails is part of the grade: it is the grader's own word and needs no test
            yield Candidate(
                name, rows, _failed_check(people, name), order=4, is_tested=bool(people.passed[rows].any())
            )


def _check_lists(people: Population) -> Iterator[Candidate]:
    """Lists of checks that every pass meets in full, each by the rows that fail any of them: single ones may be too rare."""
    paths = Counter(path for row in people.rows for path in {name.partition(": ")[0] for name in row.checks if ": " in name})
    for path, n in paths.most_common(30):
        rows = people.where(lambda row: any(not met for name, met in row.checks.items() if name.startswith(f"{path}: ")))  # noqa: B023
        if n and rows.any() and not people.passed[rows].any():
            yield Candidate(f"{path}: any", rows, _unmet(people, path), order=4, is_tested=False)


def _unmet(people: Population, path: str):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast | None) -> Group:
        n = int(rows.sum())
        names = Counter(
            name.partition(": ")[2]
            for at in np.flatnonzero(rows)
            for name, met in people.rows[at].checks.items()
            if not met and name.startswith(f"{path}: ")
        )
        return Group(
            rung="verdicts", label="BI", name=f"fails a check of `{path[-60:]}`", rows=rows,
            text=f"{count(n, 'failure')}: what `{path}` demands is not met ({joined(name[:60] for name, _ in names.most_common())}), "
            "as the grader records.",
            fix=f"Read the quoted rollout beside what `{path}` demands: was it never said or done, or said wrongly?",
            why="the grader names these checks as failed, and no pass fails one", confidence="proved", deciding=(path,),
            place=lambda row: (path, ""), blame=lambda row: None,
        )  # fmt: skip

    return make


def _failed_check(people: Population, name: str):  # type: ignore[no-untyped-def]
    field, _, short = name.partition(": ")
    # a number says nothing without the list that it stands in
    of = f" of `{field.rpartition('.')[2]}`" if not any(sign.isalpha() for sign in short) else ""

    def make(rows: Mask, test: Contrast | None) -> Group:
        n = int(rows.sum())
        return Group(
            rung="verdicts", label="BI", name=f"fails the check `{(short or name)[:80]}`{of}", rows=rows,
            text=f"{count(n, 'failure')}: the check `{(short or name)[:120]}` is not met, as the grader records in `{field}`.",
            fix=f"Train or prompt for `{(short or name)[:80]}`; read the quoted rollout first.",
            why="the grader names this check as failed", confidence="proved", deciding=(name,),
            place=lambda row: (field, ""),
        )  # fmt: skip

    return make


def _values(people: Population, left: Mask) -> Iterator[Candidate]:
    """Values of fields that vary within tasks and never pass."""
    for path in people.paths:
        codes, values = people.codes(path)
        if not 2 <= len(values) <= MAX_VALUES or path in people.task_level or people.is_reward(path):
            continue
        if people.is_constant_within(codes) if people.has_repeats else len(values) > 0.2 * people.n:
            continue  # it names or describes tasks, whatever became of them
        is_part = set(values) <= {0, 1} and not any(isinstance(value, bool) for value in values)
        if not is_part and any(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        ):
            continue
        if any(isinstance(value, str) and value[:1] in "[{" for value in values):
            continue  # a list tells of single steps, not of the outcome
        is_graded = people.is_graded(codes) or is_part or _is_for_failures(people, codes)
        for code, value in enumerate(values):
            if is_part and value != 0:
                continue
            rows = codes == code
            of_failed = float((rows & people.failed).sum()) / max(int(people.failed.sum()), 1)
            if people.passed[rows].any() or of_failed >= RESTATES or (rows & left).sum() < 2:
                continue
            # what grading sets needs no test: it is the grader's own word
            yield Candidate(
                f"{path}={value}", rows, _valued(path, str(value)), order=5, is_tested=not is_graded
            )


def _is_for_failures(people: Population, codes: np.ndarray) -> bool:
    """Whether a field is filled for nearly every failure and for no pass: it says why the row failed."""
    held = codes >= 0
    return bool(people.failed.any() and held[people.failed].mean() >= 0.9 and not held[people.passed].any())


# Words that name a fault of what surrounds the model, where a verdict field speaks of it.
_OUTSIDE = re.compile(
    r"\b(?:verifier|grader|judge|sandbox|container|server|service|gateway|connection|network|provider|quota|rate limit)\b"
    r".{0,60}\b(?:time[sd]? ?out|timeout|fail\w*|error\w*|crash\w*|unavailable|refused|reset|exceeded|overloaded)\b",
    re.IGNORECASE,
)


def _valued(path: str, value: str):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast | None) -> Group:
        n = int(rows.sum())
        return Group(
            rung="verdicts", label="IR" if _OUTSIDE.search(value) else "undetermined", name=f"`{path}` is `{value[:60]}`", rows=rows,
            text=f"{count(n, 'failure')}: `{path}` is `{value[:100]}`, which no pass has.",
            fix=f"Read the quoted rollout: what leads to `{path}` = `{value[:60]}`?",
            why="a field of the row names this outcome; what causes it is not shown", confidence="unsure",
            place=lambda row: (path, value[:80]), deciding=(path,),
        )  # fmt: skip

    return make
