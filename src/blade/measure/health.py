"""Flag what a reader of the score must know of the evaluation itself: missing, doubled, unscored, cut or empty rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from blade import stats
from blade.measure.outcome_rates import missing_bounds
from blade.measure.scoring import TOLERANCE, Scoring, begins
from blade.model import LAST_KINDS, Bools, Coverage, Evidence, Floats, Health, Level, RewardKind, Rollouts

Quote = Callable[[int, str], Evidence | None]  # a position in `Rollouts` and a field of its row

QUOTES = 3  # rows quoted for a flag
IN_NO_MEAN = "not counted"
GAPS = 0.05  # share of the tasks up to which numbers that are left out are gaps: from 20 tasks on
MANY = 0.05  # share from which a fault of single rows is a fault of the evaluation
GRAVE, MILD = (Level.WARNING, Level.PROBLEM), (Level.INFO, Level.WARNING)  # of few rows, of many
CALL, REASONING = LAST_KINDS.index("call"), LAST_KINDS.index("reasoning")


def health(
    rollouts: Rollouts, coverage: Coverage, scoring: Scoring, quote: Quote | None = None
) -> Iterator[Health]:
    """The flags of one run; `quote` opens a row for evidence."""
    page = _Page(rollouts, coverage, scoring, quote)
    parts = (page.coverage_flags, page.duplicate_flags, page.reward_flags, page.output_flags, page.ending_flags, page.repeat_flags)
    for flags in parts:
        yield from flags()


def share(part: int, whole: int) -> str:
    """`3 of 40 rows (7.5%)`; 0% and 100% stand only where they are exact."""
    if not whole:
        return f"{part:,} of 0 rows"
    percent = f"{100 * part / whole:.1f}%"
    if part in (0, whole):
        percent = percent.replace(".0", "")
    elif percent in ("0.0%", "100.0%"):
        percent = "<0.1%" if part < whole / 2 else ">99.9%"
    return f"{part:,} of {whole:,} rows ({percent})"


def _gaps(keys: tuple[str, ...]) -> list[int]:
    """The few numbers that are left out where tasks are numbered from 0 or 1; many would be a choice of tasks."""
    if not keys or not all(key.isdecimal() and len(key) < 10 for key in keys):
        return []
    numbers = {int(key) for key in keys}
    first, last = min(numbers), max(numbers)
    if first > 1 or last - first + 1 - len(numbers) > GAPS * len(numbers):
        return []
    return [number for number in range(first, last + 1) if number not in numbers]


def _standard_error(means: Floats) -> float:
    """Of the mean over tasks; where all tasks pass or all fail, a quarter of the 95% interval's width."""
    spread = float(means.std(ddof=1)) if means.size > 1 else 0.0
    if spread:
        return spread / math.sqrt(means.size)
    interval = stats.mean_interval(means)
    return (interval.high - interval.low) / 4 if interval else 0.0


class _Page:
    """What all flags of a run look at."""

    def __init__(self, rollouts: Rollouts, coverage: Coverage, scoring: Scoring, quote: Quote | None) -> None:
        self.rollouts, self.coverage, self.scoring, self.quote = rollouts, coverage, scoring, quote
        self.n_rows = scoring.rows.size  # rows that count
        self.failed = ~scoring.row_passed if scoring.has_pass_rate else scoring.row_reward <= TOLERANCE

    def flag(
        self, flag: str, level: Level | tuple[Level, Level], text: str, part: float, whole: int,
        evidence: Iterable[Evidence] = (),
    ) -> Health:  # fmt: skip
        """A flag with its share; of two levels the second is for a fault of many rows."""
        chosen = level if isinstance(level, Level) else level[part > MANY * whole]
        value = part / whole if whole else None
        return Health(self.rollouts.run, flag, chosen, text, value, whole, None, tuple(evidence))

    def quotes(self, positions: Any, field: str) -> Iterator[Evidence]:
        """Up to three quotations of `field` from the rows at these positions."""
        if self.quote is not None:
            opened = (self.quote(int(position), field) for position in positions[: 4 * QUOTES])
            yield from islice((result for result in opened if result is not None), QUOTES)

    def of_rows(
        self, flag: str, level: Level | tuple[Level, Level], rows: Bools, what: str, field: str
    ) -> Iterator[Health]:
        """A flag of the counted rows for which `rows` holds, if there are any, with quotations of `field`."""
        if n := int(np.count_nonzero(rows)):
            text = f"{share(n, self.n_rows)} {what}."
            yield self.flag(flag, level, text, n, self.n_rows, self.quotes(self.scoring.rows[rows], field))

    def coverage_flags(self) -> Iterator[Health]:
        cover, run = self.coverage, self.rollouts.run
        if cover.expected_from.startswith("inferred"):
            text = f"Nothing lists the expected rollouts; {cover.expected:,} are {cover.expected_from}."
            yield Health(run, "expected_inferred", Level.INFO, text, float(cover.expected), cover.expected)
        if cover.lost:
            absent = (Evidence(run, task, repeat) for task, repeat in cover.lost_keys[:QUOTES])
            yield self.uncounted("lost_rows", "missing", cover.lost, absent)
        if cover.failed:
            counted = Counter(name or "of no class" for name in cover.failed_classes).most_common(5)
            classes = ", ".join(f"{n:,} {name}" for name, n in counted)
            lost_rows = zip(cover.failed_keys, cover.failed_classes, strict=True)
            quoted = [Evidence(run, *key, field="_ng_failure_class", quote=name) for key, name in lost_rows if name]
            what = f"only in the failures file ({classes})"
            yield self.uncounted("failed_rows", what, cover.failed, quoted[:QUOTES])
        if cover.masked:
            seen = self.quotes(np.flatnonzero(self.rollouts.masked), "mask_sample")
            yield self.uncounted("masked_rows", "marked as not measured", cover.masked, seen)
        yield from self.missing_flags()
        gaps = _gaps(self.rollouts.task_keys) if cover.expected_from.startswith("inferred: tasks") else []
        if gaps:
            n = len(self.rollouts.task_keys) + len(gaps)
            which = ", ".join(map(str, gaps[:5])) + (", …" if len(gaps) > 5 else "")
            text = f"No row has the task index {which}: {len(gaps):,} of {n:,} tasks may be missing altogether and {IN_NO_MEAN}."
            yield self.flag("absent_tasks", Level.WARNING, text, len(gaps), n)
        if cover.unexpected:
            text = f"{cover.unexpected:,} keys of the rollouts file are not among the materialised inputs."
            yield self.flag("unexpected_keys", Level.WARNING, text, cover.unexpected, cover.expected)

    def uncounted(self, flag: str, what: str, n: int, evidence: Iterable[Evidence]) -> Health:
        """A flag of expected rollouts that are in no mean."""
        text = f"{share(n, self.coverage.expected)} are {what} and {IN_NO_MEAN}."
        return self.flag(flag, GRAVE, text, n, self.coverage.expected, evidence)

    def missing_flags(self) -> Iterator[Health]:
        """Whether it matters how the missing rows are counted."""
        score, means = self.scoring.score, self.scoring.task_means
        if score is None or not self.scoring.is_bounded or not self.coverage.missing_per_task.any():
            return
        as_fail = float(missing_bounds(self.coverage, self.scoring)[0].mean())
        se = _standard_error(means)
        if abs(score - as_fail) > se:
            text = (
                f"Missing rows matter: {self.scoring.score_name} is {self.said(score)} over {means.size:,} "
                f"tasks without them and {self.said(as_fail)} with them as failures, "
                f"more than one standard error ({self.said(se)}) apart."
            )
            yield Health(self.rollouts.run, "missing_rows_matter", Level.PROBLEM, text, score - as_fail, means.size)

    def duplicate_flags(self) -> Iterator[Health]:
        cover, rollouts = self.coverage, self.rollouts
        differing = cover.duplicates - cover.identical_duplicates
        first = begins(rollouts.task, rollouts.repeat)
        seen = self.quotes(np.flatnonzero(~(first & np.r_[first[1:], True])), "reward")
        kinds: tuple[tuple[str, Level | tuple[Level, Level], int, str, Iterable[Evidence]], ...] = (
            ("identical_duplicates", MILD, cover.identical_duplicates, "repeat another row byte for byte; each is kept once", ()),
            (
                "unnumbered_copies", Level.WARNING, cover.unnumbered_copies,
                "without a repeat index repeat another row byte for byte; they count as repeats", (),
            ),
            (
                "differing_duplicates", Level.WARNING, differing, "share task and repeat with a row that differs "
                f"({len(cover.duplicate_keys):,} keys); all of them enter the mean of their task", seen,
            ),
            (
                "superseded_attempts", Level.INFO, cover.superseded,
                "were replaced by a later attempt of the same rollout", (),
            ),
        )  # fmt: skip
        for flag, level, n, what, evidence in kinds:
            if n:
                yield self.flag(flag, level, f"{n:,} rows {what}.", n, rollouts.task.size, evidence)

    def reward_flags(self) -> Iterator[Health]:
        scoring, reward = self.scoring, self.scoring.row_reward
        what = "have no usable reward; they count as 0 and do not pass"
        yield from self.of_rows("unscored_rewards", GRAVE, scoring.unscored, what, "reward")
        scored = ~scoring.unscored
        n = int(np.count_nonzero(scored))
        if not n:
            return
        if scoring.reward_kind is RewardKind.CONSTANT:
            value, quoted = float(reward[scored][0]), self.quotes(scoring.rows[scored], "reward")
            if min(abs(value), abs(value - 1)) <= TOLERANCE:
                is_zero = value <= TOLERANCE
                doubt = "; perhaps nothing was scored" if is_zero else ""
                text = f"All {n:,} rewards are {value:g}, so they do not tell tasks apart{doubt}."
                yield self.flag("constant_reward", Level.WARNING if is_zero else Level.INFO, text, value * n, n, quoted)
            else:
                text = f"All {n:,} rewards are {value:g}: a batch value copied to its rows is no pass rate."
                yield self.flag("batch_copied_reward", Level.PROBLEM, text, value * n, n, quoted)
        elif scoring.reward_kind is RewardKind.UNBOUNDED:
            outside = scored & ((reward < -TOLERANCE) | (reward > 1 + TOLERANCE))
            passing = f"a row passes at {scoring.threshold:g}"
            bar = passing if scoring.threshold_given else "there is no pass rate until a pass threshold is given"
            text = f"Rewards run from {reward.min():g} to {reward.max():g}; {bar}."
            seen = self.quotes(scoring.rows[outside], "reward")
            yield self.flag("unbounded_reward", Level.WARNING, text, int(outside.sum()), n, seen)
        elif scoring.score_name == "mean_reward":
            at_one = int(np.count_nonzero(reward >= 1 - TOLERANCE))
            text = f"{share(at_one, self.n_rows)} reach a reward of 1: the score is the mean reward."
            if not at_one:
                text += " Every task is in the never bucket until a pass threshold is given."
            level = Level.INFO if at_one else Level.WARNING
            yield self.flag("graded_reward", level, text, at_one, self.n_rows)

    def output_flags(self) -> Iterator[Health]:
        rollouts, scoring = self.rollouts, self.scoring
        empty = rollouts.n_items[scoring.rows] <= 0
        errored = empty & self.failed & rollouts.errored[scoring.rows]
        silent = empty & ~errored  # those that carry an error have a flag of their own
        n_lost = int(np.count_nonzero(silent & self.failed))
        what = f"have no output and no error; {n_lost:,} of them score nothing"
        yield from self.of_rows("empty_outputs", GRAVE[n_lost > MANY * self.n_rows], silent, what, "response.output")
        if errored.any():
            what = f"carry an error, have no output and are scored as failures; {self.score_without(errored)}"
            yield from self.of_rows("errored_scored_zero", Level.PROBLEM, errored, what, "error")
        what = "pass without any output: the verifier may pass anything"
        yield from self.of_rows("passes_without_output", Level.PROBLEM, empty & scoring.row_passed, what, "response.output")

    def score_without(self, rows: Bools) -> str:
        scoring = self.scoring
        n = np.add.reduceat((~rows).astype(np.int64), scoring.starts)
        total = np.add.reduceat(np.where(rows, 0.0, scoring.row_score), scoring.starts)
        means = total[n > 0] / n[n > 0]
        if not means.size:
            return "no row is left without them"
        size = f"{means.size:,} tasks ({n.sum():,} rows)"
        return f"without them {scoring.score_name} is {self.said(float(means.mean()))} over {size}"

    def said(self, score: float) -> str:
        """A score as the reader knows it from the headline."""
        return f"{score:.1%}" if self.scoring.score_name == "pass_at_1" else f"{score:.4g}"

    def ending_flags(self) -> Iterator[Health]:
        rollouts, scoring = self.rollouts, self.scoring
        last, cut = rollouts.last_kind[scoring.rows], rollouts.truncated[scoring.rows]
        for name, rows, what, field in (
            ("truncated_rows", cut, "hit their token limit", "response.incomplete_details"),
            ("ended_on_call", last == CALL, "end on a tool call that nothing answers", "response.output"),
            ("ended_on_reasoning", last == REASONING, "end on reasoning, not an answer", "response.output"),
        ):
            if scoring.has_pass_rate:
                what += f"; {int(np.count_nonzero(rows & scoring.row_passed)):,} of them pass"
            yield from self.of_rows(name, MILD, rows, what, field)

    def repeat_flags(self) -> Iterator[Health]:
        n_tasks = self.scoring.n.size
        if "content" in self.rollouts.grouped_by:
            text = (
                f"No row names its task: {n_tasks:,} tasks are told apart by the {self.rollouts.grouped_by}. "
                "A prompt that varies between repeats counts as a task each time."
            )
            yield self.flag("tasks_by_content", Level.WARNING, text, n_tasks, self.n_rows)
        if n_tasks and self.scoring.n.max() == 1:
            text = f"One scored row for each of {n_tasks:,} tasks: sometimes-pass cannot be seen."
            yield self.flag("single_repeat", Level.INFO, text, n_tasks, n_tasks)
