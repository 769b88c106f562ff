"""Turn verifier fields into what their values mean: declared, known, or proposed with their support."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade import stats
from blade.measure.scoring import TOLERANCE, Scoring
from blade.measure.slices import METADATA, PARENTS
from blade.model import Benchmark, Cause, Code, Column, Meaning, RewardKind, Rollouts

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

DECLARED, KNOWN, PROPOSED = "blade.toml", "known", "proposed"
_ORIGINS = (DECLARED, KNOWN, PROPOSED)
RESTATES = "restates the reward"
FOLLOWS = "parts passes from failures: it follows from the verdict, or measures the same"
ANY_VALUE = "(any)"  # no value of its own is meant, or none that is short enough to be listed

ABSENT, NULL, BOOL, NUMBER, TEXT = range(5)
MAX_CODES = 500  # distinct values of a field that are looked up
MAX_VALUES = 30  # of a field for which a meaning is proposed
MIN_ROWS = 5  # that show a value for which a meaning is proposed
MIN_OUTCOMES = 5  # passes, and failures, from which on a perfect agreement is no chance
PURITY = 0.99
MIN_EFFECT = 0.1  # difference in pass rate below which nothing is proposed
SAMPLE = 4096  # rows that show at once that numbers do not part the outcomes
ALPHA = 0.05

# Which cause explains a row that several codes speak of: what excludes the others comes first.
_ORDER = (
    Cause.DATA_ARTIFACT, Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER, Cause.BEHAVIOUR,
    Cause.UNRELIABLE_KNOWLEDGE, Cause.KNOWLEDGE_GAP, Cause.UNDETERMINED,
)  # fmt: skip
# Fields that hold an id, a measurement, a description of the task or what the model wrote, not a code.
_NO_CODE = re.compile(
    r"(^|_)(ids?|uuid|idx|index|seed|path|dir|file|url|date|time|timestamp|model|version|hash|agent|cost|tokens?)$"
    r"|(^|_)(calls|counts?|num|n|total|steps|turns|ms|s)(_|$)"
    r"|^(task|problem|question|sample|scenario|user)_"
    r"|answer|predict|extracted|parsed_|output|generation|response$|(^|_)text$|choice|patch"
)
_CODE = re.compile(r"[^\s]{1,60}(?: [^\s]{1,30}){0,2}")  # a word or three; a sentence describes
_LOOKS = tuple(
    (cause, says, re.compile(pattern))
    for cause, says, pattern in (
        (
            Cause.INFRASTRUCTURE,
            "looks like infrastructure",
            r"infra|crash|oom|kill|sandbox|container|provider|network|transport|timed?_?out|unavailable|server",
        ),
        (
            Cause.TASK_OR_VERIFIER,
            "looks like the judge or the gold",
            r"judge_(fail|error|invalid)|(gold|reference|expected)_\w*(invalid|error|missing)",
        ),
        (
            Cause.BEHAVIOUR,
            "looks like the form of the output",
            r"pars(e|ing)|format|malformed|schema|empty|refus|truncat|no_answer",
        ),
    )
)
_NUMERAL = re.compile(r"-?\d[\d.e+-]*")
_FLAGS = frozenset(("0", "1", "true", "false", "null"))


class Known(NamedTuple):
    """An entry of the vocabulary."""

    field: re.Pattern[str]
    value: re.Pattern[str] | None  # None: whatever is not empty, zero or false
    cause: Cause | None
    mode: str


class Coded(NamedTuple):
    """The values of a field over the rows that count."""

    code: Ints  # into `values` for each of `Scoring.rows`, -1 where there is none
    values: tuple[str, ...]  # as quoted in the rows
    is_crowded: bool  # too many values to be codes: texts are one value, numbers none
    n_rows: Ints  # of each value
    n_passed: Ints


def meanings(rollouts: Rollouts, scoring: Scoring, benchmark: Benchmark) -> list[Meaning]:
    """What the values of every verifier field mean, the declared first, then by field and value."""
    found: list[Meaning] = []
    proposals: list[tuple[Meaning, float | None]] = []
    for name in sorted(rollouts.fields):
        declared = {_as_quoted(code.equals): code for code in benchmark.codes if code.field == name}
        is_task = name in rollouts.input_fields or _is_metadata(name)
        if is_task and not declared and not _vocabulary_of(name):
            continue
        coded = _coded(rollouts.fields[name], scoring)
        places = range(len(coded.values))
        told = {place: _told(rollouts, scoring, name, coded, place, declared) for place in places}
        found += [one for one in told.values() if one is not None]
        if is_task or declared:
            continue
        mode = _restates(rollouts.fields[name], coded, scoring)
        if mode is not None:
            found.append(_of_all(rollouts, scoring, name, mode))
        elif not coded.is_crowded and not _NO_CODE.search(name.lower()):
            left = [place for place, one in told.items() if one is None]
            proposals += _proposals(rollouts, scoring, name, coded, left)
    found += _masked(rollouts)
    found += _confirmed(proposals)
    found.sort(key=lambda one: (_ORIGINS.index(one.origin), one.field, one.value))
    return found


def _of_all(rollouts: Rollouts, scoring: Scoring, name: str, mode: str) -> Meaning:
    rows = (rollouts.fields[name].kind > NULL)[scoring.rows]
    tasks = _n_tasks(rollouts, scoring, rows)
    n, passed = int(np.count_nonzero(rows)), int(np.count_nonzero(scoring.row_passed & rows))
    return Meaning(rollouts.run, name, ANY_VALUE, None, mode, PROPOSED, n, passed, tasks)


def restating(meanings: Iterable[Meaning]) -> frozenset[str]:
    """The fields that say no more than the reward."""
    return frozenset(one.field for one in meanings if one.mode in (RESTATES, FOLLOWS))


def row_codes(rollouts: Rollouts, scoring: Scoring, meanings: Iterable[Meaning]) -> dict[int, Meaning]:
    """The strongest declared or known code with a cause of each row that has one.

    A row that passes has one only if infrastructure is to blame: that spoils a row whatever its reward.
    """
    blaming = [one for one in meanings if one.cause is not None and one.origin != PROPOSED]
    blaming.sort(key=lambda one: (one.origin != DECLARED, _ORDER.index(one.cause or Cause.UNDETERMINED)))
    strongest = np.full(scoring.rows.size, len(blaming))
    for name in sorted({one.field for one in blaming} & rollouts.fields.keys()):
        coded = _coded(rollouts.fields[name], scoring)
        ranks = {one.value: rank for rank, one in enumerate(blaming) if one.field == name}
        rank_of = np.array([*(ranks.get(value, len(blaming)) for value in coded.values), len(blaming)])
        strongest = np.minimum(strongest, rank_of[coded.code])  # -1, no value, takes the last
    spoils = np.array([*(one.cause is Cause.INFRASTRUCTURE for one in blaming), False])
    rows = np.flatnonzero((strongest < len(blaming)) & (~scoring.row_passed | spoils[strongest]))
    return {int(scoring.rows[row]): blaming[strongest[row]] for row in rows.tolist()}


def known(field: str, value: str) -> Known | None:
    """What the vocabulary says of a value; for codes that stand outside the rows, as in a failures file."""
    text = value.lower()
    for entry in _vocabulary_of(field):
        if entry.value.fullmatch(text) if entry.value is not None else not _is_nothing(text):
            return entry
    return None


@lru_cache(maxsize=1)
def vocabulary() -> tuple[Known, ...]:
    """The codes that ship with the package."""
    data = tomllib.loads(Path(__file__).with_name("codes.toml").read_text(encoding="utf-8"))
    return tuple(
        Known(
            re.compile(entry["field"]),
            None if entry["value"] == "+" else re.compile(entry["value"]),
            Cause(entry["cause"]) if "cause" in entry else None,
            entry["mode"],
        )
        for entry in data["codes"]
    )


@lru_cache(maxsize=5000)
def _vocabulary_of(field: str) -> tuple[Known, ...]:
    last = field.lower().rpartition(".")[2]
    return tuple(entry for entry in vocabulary() if entry.field.fullmatch(last))


# ---- Values ------------------------------------------------------------------------------------


def _coded(column: Column, scoring: Scoring) -> Coded:
    """The values of a field as codes, with their counts."""
    kind, number, text = (part[scoring.rows] for part in (column.kind, column.number, column.code))
    code = np.full(kind.size, -1, np.int64)
    values: list[str] = []

    def put(rows: Bools, value: str) -> None:
        if rows.any():
            code[rows] = len(values)
            values.append(value)

    is_text, is_number = kind == TEXT, kind == NUMBER
    texts = np.flatnonzero(np.bincount(text[is_text] + 1, minlength=1)[1:])
    numbers = _distinct(number[is_number])
    is_crowded = numbers is None or texts.size + numbers.size > MAX_CODES
    if is_crowded:
        put(is_text, ANY_VALUE)
    else:
        order = sorted(texts.tolist(), key=column.texts.__getitem__)  # never the order of the rows
        place = np.full(len(column.texts) + 1, -1)
        place[order] = np.arange(len(order))
        code[is_text] = place[text[is_text]]
        values += [column.texts[one] for one in order]
        put(is_text & (text < 0), ANY_VALUE)  # texts too long for a column
        if numbers is not None and numbers.size:
            code[is_number] = len(values) + np.searchsorted(numbers, number[is_number])
            values += [_spelled(one) for one in numbers.tolist()]
    put((kind == BOOL) & (number == 0), "false")
    put((kind == BOOL) & (number == 1), "true")
    if (kind > NULL).any():
        put(kind == NULL, "null")
    n_rows = np.bincount(code + 1, minlength=len(values) + 1)[1:]
    n_passed = np.bincount(code[scoring.row_passed] + 1, minlength=len(values) + 1)[1:]
    return Coded(code, tuple(values), is_crowded, n_rows, n_passed)


def _distinct(numbers: Floats) -> Floats | None:
    """The distinct numbers; None as soon as there are too many to be codes."""
    if np.unique(numbers[:4096]).size > MAX_CODES:
        return None
    found: Floats = np.unique(numbers)
    return found if found.size <= MAX_CODES else None


def _spelled(number: float) -> str:
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)


def _as_quoted(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _spelled(value) if isinstance(value, int | float) else str(value)


def _is_nothing(value: str) -> bool:
    return value.strip().lower() in ("", "0", "false", "none", "null", "nan", "no_error", "ok", "success")


def _is_metadata(name: str) -> bool:
    *parents, last = name.lower().split(".")
    return last in METADATA and PARENTS.issuperset(parents)


# ---- Declared and known ------------------------------------------------------------------------


def _told(
    rollouts: Rollouts, scoring: Scoring, name: str, coded: Coded, place: int, declared: Mapping[str, Code]
) -> Meaning | None:
    """What is told of a value: by the benchmark's own file, else by the vocabulary."""
    value = coded.values[place]
    code = declared.get(value)
    if code is not None:
        cause = None if code.cause == "passed" else Cause(code.cause)
        return _meaning(rollouts, scoring, name, coded, place, cause, code.mode, DECLARED)
    entry = known(name, value)
    if entry is None:
        return None
    return _meaning(rollouts, scoring, name, coded, place, entry.cause, entry.mode, KNOWN)


def _meaning(
    rollouts: Rollouts,
    scoring: Scoring,
    name: str,
    coded: Coded,
    place: int,
    cause: Cause | None,
    mode: str,
    origin: str,
) -> Meaning:
    n, passed = int(coded.n_rows[place]), int(coded.n_passed[place])
    tasks = _n_tasks(rollouts, scoring, coded.code == place)
    return Meaning(rollouts.run, name, coded.values[place], cause, mode, origin, n, passed, tasks)


def _n_tasks(rollouts: Rollouts, scoring: Scoring, rows: Bools) -> int:
    task = rollouts.task[scoring.rows[rows]]  # ascending
    return int(np.count_nonzero(task[1:] != task[:-1])) + 1 if task.size else 0


def _masked(rollouts: Rollouts) -> Iterator[Meaning]:
    rows = np.flatnonzero(rollouts.masked)
    if rows.size:
        tasks = np.unique(rollouts.task[rows]).size
        mode = "the environment says the reward is no measurement"
        yield Meaning(
            rollouts.run,
            "mask_sample",
            "true",
            Cause.INFRASTRUCTURE,
            mode,
            KNOWN,
            int(rows.size),
            0,
            int(tasks),
        )


# ---- Proposed ----------------------------------------------------------------------------------


def _restates(column: Column, coded: Coded, scoring: Scoring) -> str | None:
    """How a field tells pass from fail by itself: it is the reward, or its values part the outcomes."""
    kind, number = column.kind[scoring.rows], column.number[scoring.rows]
    there = kind > NULL
    n = int(np.count_nonzero(there))
    if n == 0 or 2 * n < there.size or np.ptp(scoring.row_reward) <= TOLERANCE:
        return None
    numeric = (kind == NUMBER) | (kind == BOOL)
    passed = scoring.row_passed[there]
    n_passed = int(np.count_nonzero(passed))
    is_shown = min(n_passed, n - n_passed) >= MIN_OUTCOMES
    is_graded = scoring.reward_kind not in (RewardKind.BINARY, RewardKind.CONSTANT)  # equal by no chance
    is_comparable = (is_shown or is_graded) and bool(numeric.all())
    if is_comparable and np.mean(np.abs(number - scoring.row_reward) <= 1e-6) >= PURITY:
        return RESTATES
    if not is_shown:
        return None
    if not coded.is_crowded and 1 < len(coded.values) <= MAX_VALUES and not np.any(kind > TEXT):
        right = np.maximum(coded.n_passed, coded.n_rows - coded.n_passed).sum()
        is_verdict = (kind == TEXT).any() or (kind[there] == BOOL).all()
        if right >= PURITY * coded.n_rows.sum() and is_verdict:
            return RESTATES
    parts = numeric[there].all() and (_parts(number[there], passed) or _parts(-number[there], passed))
    return FOLLOWS if parts else None


def _parts(number: Floats, passed: Bools) -> bool:
    """Whether every pass lies above every failure, up to a few."""
    if passed.size > 2 * SAMPLE and not _parts(number[:SAMPLE], passed[:SAMPLE]):
        return False
    if passed.all() or not passed.any():  # of a sample
        return True
    low, high = np.quantile(number[passed], 1 - PURITY), np.quantile(number[~passed], PURITY)
    return bool(low > high)


def _proposals(
    rollouts: Rollouts, scoring: Scoring, name: str, coded: Coded, left: list[int]
) -> list[tuple[Meaning, float | None]]:
    """What the values of an unknown field may mean, with the p of going with failure."""
    values = [coded.values[place] for place in left]
    is_number = any(_NUMERAL.fullmatch(value) for value in values) and not set(values) <= _FLAGS
    if not 0 < len(values) <= MAX_VALUES or is_number or not scoring.has_pass_rate:
        return []
    task = rollouts.task[scoring.rows].astype(np.int64)
    if _is_constant(task, coded.code):
        return []
    found = []
    n, passes = scoring.rows.size, int(np.count_nonzero(scoring.row_passed))
    for place, value in zip(left, values, strict=True):
        inside, outside = int(coded.n_rows[place]), n - int(coded.n_rows[place])
        rate, other = coded.n_passed[place] / inside, (passes - coded.n_passed[place]) / max(outside, 1)
        is_code = value != ANY_VALUE and _CODE.fullmatch(value) is not None
        if inside < MIN_ROWS or not outside or rate > other - MIN_EFFECT or not is_code:
            continue
        cause, looks = _looks(name, value)
        mode = f"goes with failing; {looks}" if looks else "goes with failing"
        p = _p(task, coded.code == place, scoring)
        found.append((_meaning(rollouts, scoring, name, coded, place, cause, mode, PROPOSED), p))
    return found


def _is_constant(task: Ints, code: Ints) -> bool:
    """Whether a field never changes within a task that has repeats: then it describes the task."""
    same_task = task[1:] == task[:-1]
    return bool(same_task.any() and np.all(code[1:][same_task] == code[:-1][same_task]))


def _looks(name: str, value: str) -> tuple[Cause | None, str]:
    """What the words themselves suggest; a `false` suggests the opposite of its name."""
    words = f"{name} {value}".lower() if value not in ("false", "0", "null") else ""
    return next(((cause, says) for cause, says, pattern in _LOOKS if pattern.search(words)), (None, ""))


def _p(task: Ints, rows: Bools, scoring: Scoring) -> float | None:
    """The p of failing with the value against without: within tasks where repeats allow, else over rows."""
    if task.size == scoring.n.size:
        return stats.two_groups(scoring.row_passed[rows], scoring.row_passed[~rows])
    which = np.repeat(np.arange(scoring.n.size), scoring.n)
    cell = 4 * which + 2 * ~rows + scoring.row_passed
    return stats.mantel_haenszel(np.bincount(cell, minlength=4 * scoring.n.size).reshape(-1, 2, 2)).p


def _confirmed(proposals: list[tuple[Meaning, float | None]]) -> list[Meaning]:
    """The proposals that hold beyond chance."""
    adjusted = stats.benjamini_hochberg([p for _, p in proposals])
    return [one for (one, _), p in zip(proposals, adjusted, strict=True) if p is not None and p <= ALPHA]
