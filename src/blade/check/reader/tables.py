"""Turn tables into claims, cell by cell: what a row is about, what a column says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from blade.check.reader import lexicon, scope
from blade.check.reader.buckets import BARE, bucket_claim, label_claim
from blade.check.reader.ground import ROLLOUTS, TASKS, Reading
from blade.check.reader.mentions import CAUSE, METRIC, MODE, RUN, SLICE, STATE, TASK, UNIT, Mention, Reader
from blade.check.reader.outcomes import (
    ATTEMPT,
    FAIL_PASS,
    NUMBERED,
    OUTCOME,
    PASS_FAIL,
    TURNED,
    both_ways,
    in_turn,
)
from blade.check.reader.quantities import COUNT, POINTS, RATE, RATIO, Quantity, quantities
from blade.check.reader.verdicts import Place, judged, said
from blade.model import Assertion
from blade.model.checked import CONTRADICTED
from blade.prose.document import Row, Table

VALUE, BUCKET, LABEL, TASK_ID, PASSES, REPEATS, SHARE, TOTAL, REWARD, SIZE = (
    "value", "bucket", "label", "task_id", "passes", "repeats", "share", "total", "reward", "size",
)  # fmt: skip
_PLAIN = {
    "value": VALUE, "count": VALUE, "number": VALUE, "result": VALUE, "results": VALUE, "measured": VALUE,
    "bucket": BUCKET, "class": BUCKET, "outcome": BUCKET, "status": BUCKET, "pass bucket": BUCKET,
    "cause": LABEL, "root cause": LABEL, "label": LABEL, "cause code": LABEL, "code": LABEL,
    "task": TASK_ID, "task id": TASK_ID, "task_id": TASK_ID, "problem": TASK_ID, "id": TASK_ID,
    "instance": TASK_ID, "tasks": UNIT, "#": "", "task key": TASK_ID, "task name": TASK_ID,
    "passes": PASSES, "passed": PASSES, "pass": PASSES, "pass count": PASSES, "repeats passed": PASSES,
    "passed repeats": PASSES, "passing rollouts": PASSES, "passed rollouts": PASSES,
    "repeats": REPEATS, "attempts": REPEATS, "rollouts": REPEATS, "n": SIZE, "trials": REPEATS,
    "share": SHARE, "fraction": SHARE, "percent": SHARE, "%": SHARE, "share of tasks": SHARE,
    "% of tasks": SHARE,
    "reward": REWARD, "mean reward": REWARD, "total": TOTAL,
}  # fmt: skip
_BESIDE_RUN = {"the", "run", "model", "agent", "baseline", "candidate", "system"}
_OUTCOMES = ("timed_out", "errored", "malformed", "missing", "masked")
_NEVER = re.compile(
    r"[Δ±]|\bdelta\b|\bdiff|\bchange\b|\bci\b|interval|\bp\b|p-value|\bstd|\bse\b|\bmethod\b|rank",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"^\W*(?:total|all|overall|all tasks|whole run|grand total)\W*$", re.IGNORECASE)
_SIGNS = re.compile(
    r"^[#№]\s*|\s*[#№]$|\s*\((?:%|n|#|count|↑|↓|in %|percent|rate)\)\s*$|[↑↓]|\s*%$", re.IGNORECASE
)
_CHOICE = re.compile(
    r"\b(?:among|excluding|without|except|only|subset|first|top|hardest|examples?|some of|selected|"
    r"sampled?|failing|changed)\b",
    re.IGNORECASE,
)


class Part(msgspec.Struct, frozen=True):
    """What a header or a row label is: its role, what it names, and why it may be more than that."""

    role: str
    mention: Mention | None = None
    states: tuple[str, ...] = ()
    unit: str = ""
    is_percent: bool = False
    doubt: str = ""
    is_ours: bool = False  # a behaviour by the very name that its rule has: the count of the rule is meant


class Tables:
    """The tables of a report, one after the other."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.ground = reader, reader.ground
        self.by_name = False
        self._part = lru_cache(maxsize=20_000)(self._parsed)
        # a value under the name of its field
        self._slices = {
            (field.lower(), one.value.lower()): (one.field, one.value)
            for one in self.ground.report.slices
            for field in (one.field, one.field.rpartition(".")[2])
        }

    def read(self, table: Table, title: str) -> Iterator[Assertion]:
        columns = [self._part(cell) for cell in table.header]
        if len(columns) < 2 or table.ragged > len(table.rows) // 2:
            return
        around = scope.Around(table.headings, table.before, title)
        empty = self.reader.sentence("")
        told = scope.run_of(self.reader, empty, around)
        part = scope.task_of(self.reader, empty, around)[1] or (
            "the table may show a part"
            if table.before.endswith(":") and _CHOICE.search(table.before[-200:])
            else ""
        )
        label_at = next((at for at, one in enumerate(columns) if one.role == TASK_ID), 0)
        rows = [row for row in table.rows if len(row.cells) == len(columns) and row.cells[label_at]]
        self.by_name = False
        header = table.header[label_at]
        found = [one for row in rows for one in self._row(row, columns, label_at, told, part, header)]
        if self.reader.named and columns[label_at].role == TASK_ID and _false(found):
            # ids that are keys of some tasks and names of others: the table may go by either
            self.by_name = True
            other = [one for row in rows for one in self._row(row, columns, label_at, told, part, header)]
            found = min(found, other, key=_false)
        yield from found

    def _row(
        self, row: Row, columns: list[Part], label_at: int, told: scope.Scope, part: str, header: str
    ) -> Iterator[Assertion]:
        text = " | ".join(row.cells)
        place = Place(text, row.line, row.line)
        label = self._label(row.cells[label_at], columns[label_at], header)
        starts = _starts(row.cells)
        if label.role == TASK and label.mention is not None:
            place = msgspec.structs.replace(place, cites=label.mention.names)
            yield from self._task_row(row, columns, label.mention.names[0], told, place, starts)
            return
        if label.role == "nobody":
            yield said(place, CONTRADICTED, "id", row.cells[label_at], starts[label_at],
                       expected=f"no run has a task {row.cells[label_at]}", why="no such task")  # fmt: skip
            return
        for at, column in enumerate(columns):
            if at == label_at or _NEVER.search(column.doubt):
                continue
            yield from self._cell(row.cells[at], starts[at], label, column, told, part, place)

    def _label(self, cell: str, column: Part, header: str) -> Part:
        name = cell.strip("`* ")
        piece = self._slices.get((header.strip("`* ").lower(), name.lower()))
        if piece is not None:
            return Part(SLICE, Mention(SLICE, piece, 0, len(cell), text=cell))
        if column.role == TASK_ID:
            key = (self.reader.named.get(name) if self.by_name else None) or self.reader.tasks.get(name)
            if key is not None:
                return Part(TASK, Mention(TASK, (key,), 0, len(cell), text=cell))
            address = re.fullmatch(r"(.+)/\d+", name)
            if name.isdigit() and self.reader.has_numbers and not address:
                return Part("nobody")
            return Part("")
        if _TOTAL.match(cell):
            return Part(TOTAL)
        if name.lower() in BARE:
            return Part(STATE, None, (BARE[name.lower()],), TASKS)
        found = self._part(cell)
        if found.role == PASSES:
            return Part(STATE, None, ("passed",), "")
        return found

    def _parsed(self, cell: str) -> Part:
        """A header or a label by what it names."""
        is_percent = "%" in cell
        plain = _SIGNS.sub("", cell.strip("`* ")).strip()
        if _NEVER.search(plain) or re.match(r"(?:out )?of\b", plain, re.IGNORECASE):
            return Part("", doubt=plain)
        turned = TURNED.fullmatch(plain)
        if turned is not None:
            return Part(PASS_FAIL if turned[1].lower().startswith(("p", "s")) else FAIL_PASS)
        if NUMBERED.fullmatch(plain):
            return Part(ATTEMPT)
        role = SHARE if cell.strip("`* ") == "%" else _PLAIN.get(plain.lower())
        sentence = self.reader.sentence(plain)
        doubt = scope.unknown_words(sentence, 0, len(sentence.shape))
        kinds = [one for one in sentence.mentions if one.kind != "X"]
        if role is not None:
            states = _states(kinds)
            return Part(
                role, None, states, TASKS if role == UNIT else ROLLOUTS if role == REPEATS else "", is_percent
            )
        if not kinds or doubt:
            return Part("", doubt=doubt or plain)
        for kind in (RUN, METRIC, SLICE):
            found = [one for one in kinds if one.kind == kind]
            if len(found) == 1 and len(kinds) == 1:
                if kind == RUN and len(found[0].names) > 1:
                    return Part("", doubt="several runs go by this name")
                if kind == RUN and set(re.findall(r"[^\W\d_]+", sentence.shape.lower())) - _BESIDE_RUN:
                    return Part("", doubt=plain)
                return Part(kind, found[0], is_percent=is_percent)
            if found:
                return Part("", doubt=plain)
        units = [one.names[0] for one in kinds if one.kind == UNIT]
        if any(one.kind in "TAQ" for one in kinds) or len(units) > 1:
            return Part("", doubt=plain)
        states = _states(kinds)
        ours = len(kinds) == 1 and kinds[0].kind == MODE and "_" in plain
        ours = ours and any(kinds[0].names[0] in run.behaviours for run in self.ground.runs.values())
        return Part(STATE if states else UNIT, None, states, units[0] if units else "", is_percent, "", ours)

    # --- cells ---------------------------------------------------------------------------------------

    def _cell(
        self, cell: str, start: int, label: Part, column: Part, told: scope.Scope, part: str, place: Place
    ) -> Iterator[Assertion]:
        amount = _amount(cell, start, label.is_percent or column.is_percent)
        if amount is None:
            return
        runs, doubt = told.runs, told.doubt or part
        if label.role == RUN or column.role == RUN:
            mention = label.mention if label.role == RUN else column.mention
            assert mention is not None
            runs, doubt = mention.names, part
        what = column if label.role in (RUN, TOTAL, SLICE) else label
        if label.role == SLICE and label.mention is not None:
            yield from self._slice_cell(amount, label.mention, column, runs, doubt, place)
            return
        if label.role in (RUN, TOTAL):
            if column.role in (REPEATS, SIZE):
                yield from self._size(amount, runs, doubt, place)
                return
            if column.role == PASSES:
                what = Part(STATE, None, ("passed",))
        elif column.role == SHARE:
            yield from self._share(amount, label, runs, doubt, place)
            return
        elif column.role == UNIT or (column.role == REPEATS and label.role == STATE):
            if label.role == STATE and not column.states:
                unit = TASKS if column.role == UNIT and column.unit != ROLLOUTS else ROLLOUTS
                what = msgspec.structs.replace(label, unit=label.unit or unit)
            else:
                return
        elif column.role not in (VALUE, RUN):
            return
        elif label.role in (REPEATS, SIZE):
            yield from self._size(amount, runs, doubt, place)
            return
        yield from self._value(amount, what, runs, doubt, place)

    def _value(
        self, amount: Mention, what: Part, runs: tuple[str, ...], doubt: str, place: Place
    ) -> Iterator[Assertion]:
        quantity = amount.amount
        assert quantity is not None
        run = runs[0] if len(runs) == 1 else None
        if what.role == METRIC and what.mention is not None and quantity.kind != POINTS:
            name, k = what.mention.names[0], int(what.mention.names[1]) if what.mention.names[1] else None
            readings = [one for each in runs for one in self.ground.rates(each, name, k)]
            subject = name if k is None else f"{name}:{k}"
            as_rate = name not in ("icc", "design_effect", "mean_reward") or what.is_percent
            yield judged(
                place, amount, "metric", readings, subject=subject, run=run, as_rate=as_rate, doubt=doubt
            )
            return
        if what.role not in (STATE, UNIT):
            return
        units = (what.unit,) if what.unit else (TASKS, ROLLOUTS)
        is_counted = what.is_ours and quantity.kind == COUNT
        doubt = doubt or ("" if is_counted else self.ground.unsettled(runs, what.states))
        subject = "_".join(what.states) or f"n_{units[0]}"
        if quantity.kind == COUNT and not what.is_percent and quantity.value == int(quantity.value):
            readings = [
                one for each in runs for unit in units for one in self.ground.counts(each, unit, what.states)
            ]
            yield judged(place, amount, "count", readings, subject=subject, run=run, doubt=doubt)
        elif quantity.kind == RATIO and what.states:
            yield self._ratio(amount, units, what.states, runs, doubt, place, subject)
        elif what.states:
            readings = [
                one
                for each in runs
                for unit in units
                for one in self.ground.shares(each, unit, (), what.states)
            ]
            yield judged(
                place, amount, "share", readings, subject=subject, run=run, as_rate=True, doubt=doubt
            )

    def _ratio(
        self, amount: Mention, units: tuple[str, ...], states: tuple[str, ...], runs: tuple[str, ...],
        doubt: str, place: Place, subject: str,
    ) -> Assertion:  # fmt: skip
        quantity = amount.amount
        assert quantity is not None
        run = runs[0] if len(runs) == 1 else None
        found = [
            one
            for each in runs
            for unit in units
            for one in self.ground.counts(each, unit, states)
            if quantity.of in self.ground.wholes(each, unit, ())
        ]
        if not found:
            doubt = doubt or "it is counted of something else"
        return judged(place, amount, "count", found, subject=subject, run=run, doubt=doubt)

    def _size(self, amount: Mention, runs: tuple[str, ...], doubt: str, place: Place) -> Iterator[Assertion]:
        """A column such as `n` or `rollouts` beside a run: rows, tasks or repeats."""
        readings = [
            one for each in runs for unit in (ROLLOUTS, TASKS) for one in self.ground.counts(each, unit, ())
        ]
        readings += [
            Reading(float(self.ground.runs[each].run.coverage.repeats), f"repeats per task in {each}")
            for each in runs
        ]
        run = runs[0] if len(runs) == 1 else None
        yield judged(place, amount, "count", readings, subject="n_rollouts", run=run, doubt=doubt)

    def _share(
        self, amount: Mention, label: Part, runs: tuple[str, ...], doubt: str, place: Place
    ) -> Iterator[Assertion]:
        if label.role != STATE:
            return
        doubt = doubt or self.ground.unsettled(runs, label.states)
        units = (label.unit,) if label.unit else (TASKS, ROLLOUTS)
        readings = [
            one
            for each in runs
            for unit in units
            for whole in (
                ((), ("failed",)) if ":" in label.states[0] or label.states[0] in _OUTCOMES else ((),)
            )
            for one in self.ground.shares(each, unit, whole, label.states)
        ]
        run = runs[0] if len(runs) == 1 else None
        yield judged(
            place,
            amount,
            "share",
            readings,
            subject="_".join(label.states),
            run=run,
            as_rate=True,
            doubt=doubt,
        )

    def _slice_cell(
        self, amount: Mention, piece: Mention, column: Part, runs: tuple[str, ...], doubt: str, place: Place
    ) -> Iterator[Assertion]:
        field, value = piece.names
        given = (("slice", f"{field}={value}"),)
        run = runs[0] if len(runs) == 1 else None
        quantity = amount.amount
        assert quantity is not None
        is_rate = column.role == METRIC and column.mention is not None and column.mention.names[0] in (
            "pass_at_1", "pass_rate", "score"
        )  # fmt: skip
        if (is_rate or column.role == RUN) and quantity.kind != POINTS:
            if column.role == RUN and quantity.kind == COUNT and not 0 <= quantity.value <= 1:
                return
            readings = [one for each in runs for one in self.ground.of_slice(each, field, value)]
            yield judged(
                place,
                amount,
                "metric",
                readings,
                subject="pass_rate",
                run=run,
                scope=given,
                as_rate=True,
                doubt=doubt,
            )
        elif column.role == UNIT and not column.states and column.unit == TASKS and quantity.kind == COUNT:
            readings = [
                Reading(float(one.n_tasks), f"{one.n_tasks} tasks have {field}={value} in {each}")
                for each in runs
                for one in self.ground.runs[each].slices
                if (one.field, one.value) == (field, value)
            ]
            yield judged(
                place, amount, "count", readings, subject="n_tasks", run=run, scope=given, doubt=doubt
            )

    # --- tasks ---------------------------------------------------------------------------------------

    def _task_row(
        self, row: Row, columns: list[Part], key: str, told: scope.Scope, place: Place, starts: list[int]
    ) -> Iterator[Assertion]:
        if len(told.runs) == 1 and not told.doubt and key in self.ground.runs[told.runs[0]].tasks:
            tried = [at for at, one in enumerate(columns) if one.role == ATTEMPT]
            yield from in_turn(row, tried, self.ground.runs[told.runs[0]].tasks[key], place, starts)
        for at, column in enumerate(columns):
            cell = row.cells[at]
            runs, doubt = told.runs, told.doubt
            if column.role == RUN and column.mention is not None:
                runs, doubt = column.mention.names, ""
            if not cell or column.role == TASK_ID:
                continue
            known = tuple(one for one in runs if key in self.ground.runs[one].tasks)
            if not known:
                continue
            if column.role == BUCKET or (column.role == RUN and OUTCOME.match(cell)):
                yield from bucket_claim(self.reader, cell, starts[at], key, known, doubt, place)
            elif column.role == LABEL:
                yield from label_claim(self.ground, cell, starts[at], key, known, place)
            elif column.role in (PASS_FAIL, FAIL_PASS):
                tasks = [self.ground.runs[run].tasks[key] for run in known]
                yield from both_ways(cell, starts[at], column.role, tasks, doubt, place)
            elif amount := _amount(cell, starts[at], column.is_percent):
                yield from self._task_cell(amount, column, key, known, doubt, place)

    def _task_cell(
        self, amount: Mention, column: Part, key: str, runs: tuple[str, ...], doubt: str, place: Place
    ) -> Iterator[Assertion]:
        quantity = amount.amount
        assert quantity is not None
        given = (("task", key),)
        run = runs[0] if len(runs) == 1 else None
        is_rate = column.role == METRIC and column.mention is not None and column.mention.names[0] in (
            "pass_at_1", "pass_rate", "score", "mean_reward"
        )  # fmt: skip
        passes = (
            (column.role == TOTAL and quantity.kind == RATIO)
            or column.role == PASSES
            or (column.role == STATE and column.states == ("passed",))
        )
        if passes or column.role == RUN or (is_rate and quantity.kind == RATIO):
            if quantity.kind == RATIO:
                yield self._task_ratio(amount, key, runs, doubt, place)
            elif quantity.kind == COUNT and quantity.value == int(quantity.value) and column.role != RUN:
                readings = [
                    one for each in runs for one in self.ground.counts(each, ROLLOUTS, ("passed",), key)
                ]
                yield judged(
                    place, amount, "count", readings, subject="passed", run=run, scope=given, doubt=doubt
                )
            elif quantity.kind == RATE:
                is_rate = True
        if (is_rate or column.role == REWARD) and quantity.kind in (RATE, COUNT):
            readings = [one for each in runs for one in self.ground.of_task(each, key)]
            yield judged(
                place, amount, "metric", readings, subject="rate", run=run, scope=given,
                as_rate=column.role != REWARD, doubt=doubt,
            )  # fmt: skip
        elif column.role in (REPEATS, SIZE) and quantity.kind == COUNT:
            readings = [one for each in runs for one in self.ground.counts(each, ROLLOUTS, (), key)]
            yield judged(place, amount, "count", readings, subject="n", run=run, scope=given, doubt=doubt)

    def _task_ratio(
        self, amount: Mention, key: str, runs: tuple[str, ...], doubt: str, place: Place
    ) -> Assertion:
        quantity = amount.amount
        assert quantity is not None
        readings = [
            Reading(float(task.passed), f"{task.passed} of {task.n} repeats of task {key} passed in {each}")
            for each in runs
            for task in (self.ground.runs[each].tasks[key],)
            if task.passed is not None
        ]
        wholes = [n for each in runs for n in self.ground.wholes(each, ROLLOUTS, (), key)]
        wholes += [float(self.ground.runs[each].tasks[key].n) for each in runs]
        if readings and quantity.of not in wholes:
            amount = msgspec.structs.replace(amount, amount=msgspec.structs.replace(quantity, value=-1.0))
        run = runs[0] if len(runs) == 1 else None
        return judged(
            place, amount, "count", readings, subject="passed", run=run, scope=(("task", key),), doubt=doubt
        )


def _false(found: list[Assertion]) -> int:
    return sum(one.verdict == CONTRADICTED for one in found)


def _states(kinds: list[Mention]) -> tuple[str, ...]:
    prefix = {CAUSE: "cause:", MODE: "mode:", STATE: ""}
    return tuple(prefix[one.kind] + one.names[0] for one in kinds if one.kind in prefix)


def _starts(cells: tuple[str, ...]) -> list[int]:
    found, at = [], 0
    for cell in cells:
        found.append(at)
        at += len(cell) + 3
    return found


_BESIDE = re.compile(r"\b(?:tasks?|rollouts?|rows|repeats|points?|pp|percent)\b|[\s`*]", re.IGNORECASE)
_CLEAN = re.compile(r"[\[(][^\])]*[\])]|±.*$")


def _amount(cell: str, start: int, is_percent: bool) -> Mention | None:
    """The amount that a cell begins with, if it holds nothing else that matters."""
    plain = cell.strip("`* ")
    if not plain or not any(one.isdigit() for one in plain):
        return None
    cleaned = _CLEAN.sub(lambda hit: " " * len(hit[0]), cell)
    found = quantities(cleaned)
    if len(found) != 1:
        return None
    rest = cleaned[: found[0].start] + cleaned[found[0].end :]
    if _BESIDE.sub("", rest):
        return None
    one: Quantity = found[0]
    if is_percent and one.kind == COUNT:
        one = msgspec.structs.replace(one, kind=RATE, value=one.value / 100, unit=one.unit / 100)
        if one.value <= 0.01:
            return None  # a fraction under a percent sign: either may be meant
    return Mention("Q", (), start + one.start, start + one.end, one, cell[one.start : one.end])


__all__ = ["Tables", "lexicon"]
