"""Turn what the runs say into readings: every honest value that a phrase of a report may stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import product

import msgspec

from blade.check.world import World
from blade.facts.query import path
from blade.model import Cause, Fact, Outcome, Report, TaskResult

TASKS, ROLLOUTS = "tasks", "rollouts"
PROPOSALS = "causes and modes are told by judgement: ours are proposals, and the report may see it otherwise"
_LOST = (Outcome.MALFORMED, Outcome.MASKED, Outcome.MISSING)
_BAD = (Outcome.FAILED, Outcome.ERRORED, Outcome.TIMED_OUT)
_TOLD_BY = {"timed_out": "timeout", "errored": "infra_error"}
Keys = frozenset[object]


class Reading(msgspec.Struct, frozen=True):
    """One value that a phrase may stand for, in words, with the query that finds it."""

    value: float
    words: str
    query: str | None = None


class RunGround:
    """One run: its tasks and rows as sets, and its measures by name."""

    def __init__(self, name: str, report: Report) -> None:
        self.name = name
        self.run = next(run for run in report.runs if run.name == name)
        self.tasks = {task.task: task for task in report.tasks if task.run == name}
        self.names: dict[str, str] = {}
        for task in self.tasks.values():
            self.names.setdefault(task.task_name, task.task)
        self.measures = {
            (one.name, one.k): one
            for one in report.measures
            if one.run == name and one.slice is None and one.value is not None
        }
        self.causes = {one.task: one for one in report.attributions if one.run == name}
        self.losses = [one for one in report.losses if one.run == name]
        self.slices = [one for one in report.slices if one.run == name]
        self.behaviours = {one.detector: one for one in report.behaviours if one.run == name}
        self._findings = [one for one in report.findings if one.run == name]
        self._states: dict[tuple[str, str], tuple[Keys, ...]] = {}
        # tasks that it shares with the run it is compared with, where these are not all
        self.common = [
            frozenset(
                one.alignment.common
                if name == one.baseline
                else one.alignment.common_candidate or one.alignment.common
            )
            for one in report.comparisons
            if name in (one.baseline, one.candidate)
        ]
        self.derived = {
            (each.name, each.k): each.baseline if name == one.baseline else each.candidate
            for one in report.comparisons
            if name in (one.baseline, one.candidate)
            for each in one.derived
        }
        self.scores = [
            score
            for one in report.comparisons
            if name in (one.baseline, one.candidate)
            for score in ([one.score_baseline, one.common_baseline] if name == one.baseline
                          else [one.score_candidate, one.common_candidate])
            if score is not None
        ]  # fmt: skip

    def key(self, task: str) -> str | None:
        """The key of a task that goes by its key or its name."""
        return task if task in self.tasks else self.names.get(task)

    @property
    def is_judged(self) -> bool:
        return self.run.has_pass_rate

    @cached_property
    def rows(self) -> dict[tuple[str, int], Outcome | None]:
        # duplicates share a repeat number: the position keeps them apart
        return {
            (task.task, at): one.outcome
            for task in self.tasks.values()
            for at, one in enumerate(task.repeats)
        }

    def universe(self, unit: str) -> tuple[Keys, ...]:
        """All tasks or rollouts; those that were scored; those that both runs have."""
        found = self._states.get(("", unit))
        if found is None:
            found = self._states["", unit] = self._universe(unit)
        return found

    def _universe(self, unit: str) -> tuple[Keys, ...]:
        if unit == TASKS:
            seen = frozenset(key for key, task in self.tasks.items() if task.bucket != "missing")
            shared = [frozenset(key for key in each if key in self.tasks) for each in self.common]
            return _distinct([frozenset(self.tasks), seen, *shared])
        rows = self.rows
        scored = frozenset(key for key, outcome in rows.items() if outcome not in _LOST)
        both: list[Keys] = [frozenset(key for key in rows if key[0] in each) for each in self.common]
        return _distinct([frozenset(rows), scored, *both])

    def states(self, state: str, unit: str) -> tuple[Keys, ...]:
        """The sets that a word such as `failed` may mean, of tasks or of rollouts."""
        found = self._states.get((state, unit))
        if found is None:
            make = self._task_sets if unit == TASKS else self._row_sets
            found = self._states[state, unit] = _distinct(make(state))
        return found

    def senses(self, state: str) -> list[Keys]:
        """The sets of tasks that a word may mean, in the same order for every run."""
        return self._task_sets(state)

    def _bucket(self, *names: str) -> Keys:
        return frozenset(key for key, task in self.tasks.items() if task.bucket in names)

    def _task_sets(self, state: str) -> list[Keys]:
        if not self.is_judged and not state.startswith(("cause:", "mode:")):
            return []
        if state == "never":
            return [self._bucket("never"), self._bucket("never", "missing")]
        if state in ("always", "sometimes", "missing"):
            return [self._bucket(state)]
        if state == "solved_once":
            return [self._bucket("always", "sometimes")]
        if state in ("passed", "solved"):
            return [self._bucket("always", "sometimes"), self._bucket("always"), self._above(0.5)]
        if state == "failed":
            sets = [self._bucket(*names) for names in (("never",), ("never", "sometimes"))]
            sets += [self._bucket(*names, "missing") for names in (("never",), ("never", "sometimes"))]
            return [*sets, frozenset(self.tasks) - self._above(0.5), frozenset(self.causes)]
        if state.startswith("cause:"):
            cause = state.removeprefix("cause:")
            return [frozenset(key for key, one in self.causes.items() if one.cause == cause)]
        if state.startswith("mode:"):
            mode = state.removeprefix("mode:")
            named = frozenset(key for key, one in self.causes.items() if one.mode == mode)
            return [named, frozenset(one.task for one in self._findings if one.detector == mode)]
        rows = list(self._row_sets(state))
        some = [frozenset(key[0] for key in each if isinstance(key, tuple)) for each in rows]
        whole = [
            frozenset(
                task for task in any_of
                if all((task, at) in each for at in range(len(self.tasks[str(task)].repeats)))
            )
            for any_of, each in zip(some, rows, strict=True)
        ]  # fmt: skip
        return [*some, *whole]

    def _above(self, rate: float) -> Keys:
        return frozenset(key for key, task in self.tasks.items() if (task.rate or 0) >= rate)

    def _row_sets(self, state: str) -> list[Keys]:
        rows = self.rows
        if state in ("always", "sometimes", "never"):
            tasks = self.states(state, TASKS)
            return [frozenset(key for key in rows if key[0] in each) for each in tasks]
        if state.startswith("mode:"):
            mode = state.removeprefix("mode:")
            places = {(one.task, one.repeat) for one in self._findings if one.detector == mode}
            every = frozenset(
                (key, at)
                for key, task in self.tasks.items()
                for at, one in enumerate(task.repeats)
                if (key, one.repeat) in places
            )
            return [every, frozenset(key for key in every if rows[key] in _BAD)]
        if not self.is_judged:
            return []
        if state.startswith("cause:"):
            cause = state.removeprefix("cause:")
            return [
                frozenset(
                    key for key, outcome in rows.items()
                    if outcome != Outcome.PASSED and key[0] in self.causes
                    and self.causes[key[0]].cause == cause
                )
            ]  # fmt: skip
        kinds: dict[str, list[tuple[Outcome, ...]]] = {
            "passed": [(Outcome.PASSED,)], "solved": [(Outcome.PASSED,)],
            "solved_once": [(Outcome.PASSED,)],
            "failed": [_BAD, (Outcome.FAILED,), (*_BAD, Outcome.MALFORMED), (*_BAD, *_LOST)],
            "timed_out": [(Outcome.TIMED_OUT,)],
            "errored": [(Outcome.ERRORED,), (Outcome.ERRORED, Outcome.TIMED_OUT), (Outcome.ERRORED, *_LOST)],
            "malformed": [(Outcome.MALFORMED,)], "masked": [(Outcome.MASKED,)],
            "missing": [(Outcome.MISSING,)],
        }  # fmt: skip
        found: list[Keys] = [
            frozenset(key for key, one in rows.items() if one in each) for each in kinds.get(state, [])
        ]
        if state in _TOLD_BY:
            # what a report calls a timeout may stand in the trace, not in the outcome of the row
            found += [found[0] | each for each in self._row_sets(f"mode:{_TOLD_BY[state]}")]
        return found


class Ground:
    """All runs, and what may be said of them."""

    def __init__(self, world: World) -> None:
        self.report = world.report
        self.facts: tuple[Fact, ...] = world.facts
        self.runs = {run.name: RunGround(run.name, world.report) for run in world.report.runs}
        self.world = world
        # the same few things are asked of the whole run again and again, each task of its own once or twice
        self.counts = lru_cache(maxsize=5_000)(self._counts)
        self.shares = lru_cache(maxsize=5_000)(self._shares)
        self.rates = lru_cache(maxsize=5_000)(self._rates)
        self.wholes = lru_cache(maxsize=5_000)(self._wholes)

    def unsettled(self, runs: Iterable[str], states: Iterable[str]) -> str:
        """Why rows do not settle how many are what `states` says; empty where they do."""
        for state in states:
            if state.startswith(("cause:", "mode:")):
                return PROPOSALS
            seen = [self.runs[run].behaviours.get(_TOLD_BY.get(state, "")) for run in runs]
            if any(one is not None and one.n_rollouts for one in seen):
                return "some of them show in traces alone"
        return ""

    # --- counts and shares ---------------------------------------------------------------------------

    def _counts(self, run: str, unit: str, states: tuple[str, ...], task: str | None = None) -> list[Reading]:
        """How many tasks or rollouts are all that `states` says."""
        ground = self.runs[run]
        found = [
            Reading(float(len(each)), _counted(len(each), unit, states, run, task), _query(run, unit, states))
            for each in self._sets(ground, unit, states, task)
        ]
        return _unlike([*found, *(self._noted(ground, unit, states) if task is None else ())])

    def _shares(
        self, run: str, unit: str, whole: tuple[str, ...], part: tuple[str, ...], task: str | None = None
    ) -> list[Reading]:
        """Which share of the tasks or rollouts that are `whole` is `part` too."""
        ground, found = self.runs[run], []
        parts = self._sets(ground, unit, part, task)
        wholes = self._sets(ground, unit, whole, task)
        for all_of, some in product(wholes, parts):
            if all_of:
                n, of = len(all_of & some), len(all_of)
                words = f"{n} of {of} {_called(unit, whole)} are {_adjective(part)} in {run} ({n / of:.1%})"
                found.append(Reading(n / of, words, None))
        return _unlike(found)

    def _wholes(self, run: str, unit: str, states: tuple[str, ...], task: str | None = None) -> list[float]:
        """What may stand behind `of` when rollouts or tasks are counted."""
        ground = self.runs[run]
        sets = self._sets(ground, unit, states, task)
        noted = self._noted(ground, unit, states) if task is None else ()
        return [*(float(len(each)) for each in sets), *(one.value for one in noted)]

    def _sets(self, ground: RunGround, unit: str, states: tuple[str, ...], task: str | None) -> list[Keys]:
        if task is not None:
            return self._of_one(ground, unit, states, task)
        choices = [ground.universe(unit), *(ground.states(state, unit) for state in states)]
        return list(_distinct(frozenset.intersection(*chosen) for chosen in product(*choices)))

    def _of_one(self, ground: RunGround, unit: str, states: tuple[str, ...], task: str) -> list[Keys]:
        """The sets of one task: they are small, and those of the run are not gone through for them."""
        every: Keys = frozenset(
            [task] if unit == TASKS else ((task, at) for at in range(len(ground.tasks[task].repeats)))
        )
        choices = [[every & each for each in ground.states(state, unit)] for state in states]
        wholes = _distinct(every & each for each in ground.universe(unit))
        return list(_distinct(frozenset.intersection(*chosen) for chosen in product(wholes, *choices)))

    def _noted(self, ground: RunGround, unit: str, states: tuple[str, ...]) -> Iterator[Reading]:
        """Counts that the report notes of a run as a whole."""
        run, stem = ground.run, path("runs", name=ground.name)
        if not states and unit == ROLLOUTS:
            noted = {"n_rollouts": run.n_rollouts, "expected_rollouts": run.coverage.expected,
                     "scored": run.coverage.scored}  # fmt: skip
            for field, n in noted.items():
                yield Reading(float(n), f"{n} rollouts ({field}) in {run.name}", f"{stem}.{field}")
        if not states and unit == TASKS:
            yield Reading(float(run.n_tasks), f"{run.n_tasks} tasks in {run.name}", f"{stem}.n_tasks")
        if len(states) != 1:
            return
        state = states[0]
        if unit == ROLLOUTS:
            for outcome, n in run.outcomes.items():
                if outcome.value == state:
                    words = f"{n} rollouts {state.replace('_', ' ')} in {run.name}"
                    yield Reading(float(n), words, f"{stem}.outcomes.{state}")
            if state == "failed":
                scored_below = sum(n for outcome, n in run.outcomes.items() if outcome in _BAD)
                for n in (scored_below, sum(run.outcomes.values()) - run.outcomes.get(Outcome.PASSED, 0)):
                    yield Reading(float(n), f"{n} rollouts failed in {run.name}")
        seen = ground.behaviours.get(state.removeprefix("mode:")) if state.startswith("mode:") else None
        if seen is not None:
            mine = [key for key, one in ground.causes.items() if one.mode == seen.detector]
            failed = sum(key in mine and one in _BAD for (key, _), one in ground.rows.items())
            for n in (seen.n_tasks,) if unit == TASKS else (seen.n_rollouts, seen.in_fail, failed):
                yield Reading(float(n), f"{n} {unit} show {seen.detector} in {run.name}")

    # --- rates ---------------------------------------------------------------------------------------

    def _rates(self, run: str, metric: str, k: int | None = None) -> list[Reading]:
        """What a measure of a run may be: over tasks or rows, with or without what is missing."""
        ground = self.runs[run]
        wanted = _SAME.get(metric, ((metric, k),))
        found = [
            Reading(float(one.value), f"{_title(one.name, one.k)} of {run} is {_shown(float(one.value))}",
                    path("measures", run=run, name=one.name, k=one.k, slice=None) + ".value")
            for name, at in wanted
            for one in ground.measures.values()
            if one.name == name and one.value is not None and at in (one.k, ANY)
        ]  # fmt: skip
        for (name, at), value in ground.derived.items():
            if (name, at) == (metric, k) or ((name, at) in wanted and at == k):
                found.append(
                    Reading(value, f"{_title(name, at)} of {run} over the tasks both have is {_shown(value)}")
                )
        if (
            metric in ("score", "pass_at_1", "pass_rate")
            and ground.run.score is not None
            and (metric == "score" or ground.run.score_name == "pass_at_1")
        ):
            score = float(ground.run.score)
            found += [
                Reading(one, f"the score of {run} over the tasks both have is {_shown(one)}")
                for one in ground.scores
            ]
            found.append(
                Reading(score, f"the score of {run} is {_shown(score)}", f"{path('runs', name=run)}.score")
            )
        if metric in ("pass_at_1", "pass_rate", "score") and ground.is_judged:
            found += self._pass_rates(ground)
        if metric in ("pass_rate", "solved"):
            found += self.shares(run, TASKS, (), ("solved",))
        if metric == "pass_at_k" and k is not None and k == ground.run.coverage.repeats:
            found += self.shares(run, TASKS, (), ("solved",))[:1]
        return _unlike(found)

    def _pass_rates(self, ground: RunGround) -> list[Reading]:
        found = self.shares(ground.name, ROLLOUTS, (), ("passed",))
        rows = ground.rows
        for left_out in ((), (Outcome.ERRORED,), (Outcome.ERRORED, Outcome.TIMED_OUT), _LOST):
            kept = [(key[0], one) for key, one in rows.items() if one not in left_out]
            tasks: dict[str, list[bool]] = {}
            for task, outcome in kept:
                tasks.setdefault(task, []).append(outcome == Outcome.PASSED)
            means = [sum(each) / len(each) for each in tasks.values()]
            for value in (
                sum(means) / len(means) if means else None,
                sum(means) / len(ground.tasks) if means else None,
                sum(one == Outcome.PASSED for _, one in kept) / len(kept) if kept else None,
            ):
                if value is not None:
                    found.append(Reading(value, f"the pass rate of {ground.name} is {_shown(value)}"))
        passes = sum(one == Outcome.PASSED for one in rows.values())
        for of in (ground.run.coverage.expected, ground.run.coverage.scored):
            if of:
                found.append(Reading(passes / of, f"{passes} of {of} rollouts of {ground.name} passed"))
        return found

    def of_task(self, run: str, key: str) -> list[Reading]:
        """The pass rate of one task."""
        task = self.runs[run].tasks[key]
        stem = path("tasks", run=run, task=key)
        given = {"rate": task.rate, "shrunk": task.shrunk, "mean_reward": task.mean_reward}
        return [
            Reading(
                float(value),
                f"task {key} of {run}: {name} {_shown(float(value))} over {task.n}",
                f"{stem}.{name}",
            )
            for name, value in given.items()
            if value is not None
        ]

    def of_slice(self, run: str, field: str, value: str) -> list[Reading]:
        """The pass rate of a slice."""
        return [
            Reading(float(one.pass_rate), f"{field}={value} of {run}: {_shown(float(one.pass_rate))} of "
                                          f"{one.n_tasks} tasks",
                    path("slices", run=run, field=field, value=value) + ".pass_rate")
            for one in self.runs[run].slices
            if (one.field, one.value) == (field, value) and one.pass_rate is not None
        ]  # fmt: skip

    # --- losses --------------------------------------------------------------------------------------

    def lost(self, run: str, causes: Iterable[str] = (), mode: str | None = None) -> float:
        """Points of score lost to causes or to a mode; to anything without either."""
        wanted = set(causes)
        return sum(
            one.lost
            for one in self.runs[run].losses
            if (not wanted or one.cause in wanted) and (mode is None or one.mode == mode)
        )


ANY = -1
_SAME: dict[str, tuple[tuple[str, int | None], ...]] = {
    "pass_at_1": (("pass_at_1", None), ("pass_at_1_micro", None), ("pass_at_k", 1), ("pass_hat_k", 1)),
    "pass_rate": (("pass_at_1", None), ("pass_at_1_micro", None), ("clean_pass_at_1", None), ("solved", None),
                  ("consistency", None)),
    "score": (("pass_at_1", None), ("pass_at_1_micro", None), ("mean_reward", None),
              ("mean_reward_micro", None)),
    "consistency": (("consistency", None), ("self_agreement", None), ("pass_hat_k", ANY)),
    "mean_reward": (("mean_reward", None), ("mean_reward_micro", None)),
    "solved": (("solved", None), ("pass_at_k", ANY)),
    "pass_at_any": (("pass_at_k", ANY), ("solved", None)),
    "pass_hat_any": (("pass_hat_k", ANY), ("consistency", None)),
}  # fmt: skip


def _distinct(sets: Iterable[Keys]) -> tuple[Keys, ...]:
    return tuple(dict.fromkeys(sets))


def _unlike(readings: Iterable[Reading]) -> list[Reading]:
    """One reading of every value, the first that gives it."""
    found: dict[float, Reading] = {}
    for one in readings:
        found.setdefault(round(one.value, 9), one)
    return list(found.values())


_ADJECTIVES = {
    "always": "always passing", "sometimes": "sometimes passing", "never": "never passing",
    "missing": "missing", "passed": "passed", "solved": "solved", "failed": "failed",
    "timed_out": "timed out",
}  # fmt: skip


def _adjective(states: tuple[str, ...]) -> str:
    return " and ".join(
        _ADJECTIVES.get(one, one.partition(":")[2] or one.replace("_", " ")) for one in states
    )


def _called(unit: str, states: tuple[str, ...]) -> str:
    return f"{_adjective(states)} {unit}" if states else unit


def _counted(n: int, unit: str, states: tuple[str, ...], run: str, task: str | None) -> str:
    where = f"task {task} of {run}" if task is not None else run
    return f"{n} {_called(unit, states)} in {where}"


def _query(run: str, unit: str, states: tuple[str, ...]) -> str | None:
    if unit == TASKS and len(states) == 1 and states[0] in ("always", "sometimes", "never", "missing"):
        return f"count({path('buckets', run=run)}.{states[0]})"
    if unit == TASKS and not states:
        return f"{path('runs', name=run)}.n_tasks"
    if unit == ROLLOUTS and states == ("passed",):
        return f"{path('runs', name=run)}.outcomes.passed"
    return None


def _title(name: str, k: int | None) -> str:
    for stem, sign in (("pass_at_k", "pass@"), ("pass_hat_k", "pass^")):
        if name == stem:
            return f"{sign}{k}"
    return {"pass_at_1": "pass@1", "pass_at_1_micro": "pass@1 over rows"}.get(name, name.replace("_", " "))


def _shown(value: float) -> str:
    return f"{value:.1%}" if 0 <= value <= 1 else f"{value:g}"


CAUSES = tuple(cause.value for cause in Cause)
__all__ = ["ANY", "CAUSES", "ROLLOUTS", "TASKS", "Ground", "Reading", "RunGround", "TaskResult"]
