"""Turn the values of a JSON report into claims: what a key is called says what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from blade.check.reader.ground import ROLLOUTS, TASKS, Ground, Reading
from blade.check.reader.mentions import RUN, SLICE, TASK, Mention, Reader
from blade.check.reader.quantities import COUNT, Quantity
from blade.check.reader.verdicts import Place, judged, said
from blade.check.world import World
from blade.model import Assertion
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE

_NAMES = ("model_name", "model", "run", "run_name", "agent", "agent_name")
_RATES = {
    "pass_rate": "pass_rate", "success_rate": "pass_rate", "accuracy": "pass_rate", "solve_rate": "pass_rate",
    "score": "score", "pass_at_k": "pass_at_any", "pass_hat_k": "pass_hat_any", "overall_score": "score",
    "mean_score": "score", "resolution_rate": "pass_rate", "avg_reward": "mean_reward",
    "average_reward": "mean_reward",
}  # fmt: skip
_SIZES = {
    "tasks": TASKS, "total_tasks": TASKS, "num_tasks": TASKS, "n_tasks": TASKS, "task_count": TASKS,
    "problems": TASKS,
    "rollouts": ROLLOUTS, "total_rollouts": ROLLOUTS, "num_rollouts": ROLLOUTS, "n_rollouts": ROLLOUTS,
    "rows": ROLLOUTS, "num_rows": ROLLOUTS, "expected_rollouts": ROLLOUTS, "attempts": ROLLOUTS,
}  # fmt: skip
_REPEATS = {
    "repeats",
    "num_repeats",
    "n_repeats",
    "repeats_per_task",
    "samples_per_task",
    "rollouts_per_task",
}
_WORDS = {
    "always_pass": "always", "always_passing": "always", "always_passed": "always", "always": "always",
    "sometimes_pass": "sometimes", "sometimes_passing": "sometimes", "flaky": "sometimes",
    "sometimes": "sometimes",
    "always_fail": "never", "never_pass": "never", "always_failing": "never", "never_passing": "never",
    "never": "never",
    "unsolved": "never", "missing": "missing", "passed": "passed", "passing": "passed", "failed": "failed",
    "failing": "failed", "solved": "solved", "timed_out": "timed_out", "errored": "errored",
    "masked": "masked",
    "malformed": "malformed",
}  # fmt: skip
_COUNTED = re.compile(
    r"(?:num_|n_|number_of_|total_)?(?P<state>[a-z_]+?)(?:_(?P<unit>tasks|rollouts|rows))?(?:_count|_ids)?"
)
_K = re.compile(r"pass(?:_at_|@)(?P<at>\d+)|pass(?:_hat_|\^)(?P<hat>\d+)")
_NUMBERS = {
    "mean_reward",
    "icc",
    "design_effect",
    "effective_n",
    "between_task_variance",
    "within_task_variance",
}
MOST = 200_000  # values that are looked at
DEEPEST = 40


class Here(msgspec.Struct, frozen=True):
    """Where in the JSON a value stands, and what everything there is about."""

    path: str = ""
    runs: tuple[str, ...] = ()
    doubt: str = ""
    scope: tuple[tuple[str, str], ...] = ()
    known: bool = True  # every key above was understood


def read_json(value: object, world: World, text: str = "") -> list[Assertion]:
    """Every value of a JSON report that says something of the runs; `text` gives the lines."""
    return list(_Json(Reader(Ground(world)), text).read(value))


class _Json:
    def __init__(self, reader: Reader, text: str) -> None:
        self.reader, self.ground, self.text = reader, reader.ground, text
        self.at, self.line, self.left = 0, 1, MOST

    def read(self, value: object) -> Iterator[Assertion]:
        runs = tuple(self.ground.runs)
        doubt = "" if len(runs) == 1 else "two runs could be meant"
        yield from self._walk(value, "", Here(runs=runs, doubt=doubt), 0)

    def _walk(self, value: object, key: str, here: Here, depth: int) -> Iterator[Assertion]:
        self.left -= 1
        if self.left < 0 or depth > DEEPEST:
            return
        if isinstance(value, Mapping):
            here = self._named(value, here)
            for name, inside in value.items():
                self._seek(str(name))
                below = self._below(str(name), inside, here)
                yield from self._leaf(str(name), inside, value, here, below)
                if isinstance(inside, Mapping | list) and not _are_ids(inside):
                    yield from self._walk(inside, str(name), below, depth + 1)
        elif isinstance(value, list):
            for at, inside in enumerate(value):
                if isinstance(inside, Mapping | list):
                    yield from self._walk(
                        inside, key, msgspec.structs.replace(here, path=f"{here.path}[{at}]"), depth + 1
                    )

    def _named(self, value: Mapping[Any, Any], here: Here) -> Here:
        """An object that says whose it is."""
        for key in _NAMES:
            name = value.get(key)
            if not isinstance(name, str):
                continue
            told = self.reader.sentence(f"`{name.replace('`', '')}`").of(RUN)
            if not told:
                return (
                    msgspec.structs.replace(here, doubt=f"no run named {name}") if key in _NAMES[:4] else here
                )
            if len(told[0].names) == 1:
                return msgspec.structs.replace(here, runs=told[0].names, doubt="")
            return msgspec.structs.replace(here, runs=told[0].names, doubt="two runs could be meant")
        return here

    def _below(self, key: str, inside: object, here: Here) -> Here:
        """What stands under a key: of a run, a slice or a task if the key names one."""
        path = f"{here.path}.{key}" if here.path else key
        here = msgspec.structs.replace(here, path=path)
        if not isinstance(inside, Mapping | list):
            return here
        sentence = self.reader.sentence(f"`{key.replace('`', '')}`")
        if told := sentence.of(RUN):
            doubt = "" if len(told[0].names) == 1 else "two runs could be meant"
            return msgspec.structs.replace(here, runs=told[0].names, doubt=doubt)
        if told := sentence.of(SLICE):
            return msgspec.structs.replace(here, scope=(("slice", "=".join(told[0].names)),))
        if key in self.reader.tasks and re.search(r"task|problem|instance", here.path.rpartition(".")[0]):
            return msgspec.structs.replace(here, scope=(("task", self.reader.tasks[key]),))
        return msgspec.structs.replace(here, known=here.known and key.lower() in _GROUPS)

    def _leaf(
        self, key: str, value: object, beside: Mapping[Any, Any], here: Here, below: Here
    ) -> Iterator[Assertion]:
        place = Place(below.path, self.line, self.line)
        doubt = here.doubt or ("" if here.known else "nothing here says what it is a part of")
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, int | float):
            yield from self._number(key.lower(), value, beside, here, doubt, place)
        elif isinstance(value, list) and _are_ids(value):
            yield from self._ids(key.lower(), value, here, doubt, place)
        elif isinstance(value, str) and key.lower() in ("dominant_failure_type", "dominant_failure_mode"):
            yield from self._dominant(value, here, doubt, place)

    # --- numbers -------------------------------------------------------------------------------------

    def _number(
        self, key: str, value: float, beside: Mapping[Any, Any], here: Here, doubt: str, place: Place
    ) -> Iterator[Assertion]:
        amount = _printed(value)
        if amount is None:
            return
        kind, subject, readings, as_rate = self._readings(key, beside, here)
        if not subject:
            return
        run = here.runs[0] if len(here.runs) == 1 else None
        yield judged(
            place,
            amount,
            kind,
            readings,
            subject=subject,
            run=run,
            scope=here.scope,
            as_rate=as_rate,
            doubt=doubt,
        )

    def _readings(
        self, key: str, beside: Mapping[Any, Any], here: Here
    ) -> tuple[str, str, list[Reading], bool]:
        if here.scope:
            return self._of_part(key, here)
        runs = here.runs
        if hit := _K.fullmatch(key):
            name, k = ("pass_at_k", int(hit["at"])) if hit["at"] else ("pass_hat_k", int(hit["hat"]))
            name = "pass_at_1" if (name, k) == ("pass_at_k", 1) else name
            found = [
                one
                for run in runs
                for one in self.ground.rates(run, name, None if name == "pass_at_1" else k)
            ]
            return "metric", f"{name}:{k}", found, True
        name = _RATES.get(key, key)
        if key in _RATES or any((key, None) in self.ground.runs[run].measures for run in runs):
            tries = beside.get("k")
            at = tries if isinstance(tries, int) else None
            if name in ("pass_at_any", "pass_hat_any") and at is not None:
                name = name.replace("any", "k")
            found = [
                one
                for run in runs
                for one in self.ground.rates(run, name, at if name.endswith("_k") else None)
            ]
            return "metric", name, found, name not in _NUMBERS
        if key in _SIZES:
            found = [one for run in runs for one in self.ground.counts(run, _SIZES[key], ())]
            return "count", f"n_{_SIZES[key]}", found, False
        if key in _REPEATS:
            found = [
                Reading(float(self.ground.runs[run].run.coverage.repeats), f"repeats per task in {run}")
                for run in runs
            ]
            return "count", "repeats", found, False
        if key in ("dominant_failure_count", "dominant_failure_fraction"):
            return self._of_mode(key, str(beside.get("dominant_failure_type", "")), runs)
        return self._of_state(key, here)

    def _of_state(self, key: str, here: Here) -> tuple[str, str, list[Reading], bool]:
        hit = _COUNTED.fullmatch(key)
        state = _WORDS.get(hit["state"]) if hit else None
        is_plain = hit is not None and not hit["unit"] and key in _WORDS
        if hit is None or state is None or (is_plain and not _PARTS.search(here.path)):
            return "", "", [], False
        unit = {"tasks": TASKS, "rollouts": ROLLOUTS, "rows": ROLLOUTS}.get(hit["unit"] or "", "")
        units = (unit,) if unit else (TASKS, ROLLOUTS)
        found = [
            one for run in here.runs for each in units for one in self.ground.counts(run, each, (state,))
        ]
        return "count", state, found, False

    def _of_part(self, key: str, here: Here) -> tuple[str, str, list[Reading], bool]:
        kind, name = here.scope[0]
        if kind == "slice":
            field, _, value = name.partition("=")
            if key in ("pass_rate", "pass_at_1", "accuracy", "success_rate", "score", "pass@1"):
                return (
                    "metric",
                    "pass_rate",
                    [one for run in here.runs for one in self.ground.of_slice(run, field, value)],
                    True,
                )
            if _SIZES.get(key) == TASKS or key in ("n", "count"):
                found = [
                    Reading(float(one.n_tasks), f"{one.n_tasks} tasks have {name} in {run}")
                    for run in here.runs
                    for one in self.ground.runs[run].slices
                    if (one.field, one.value) == (field, value)
                ]
                return "count", "n_tasks", found, False
            return "", "", [], False
        runs = [run for run in here.runs if name in self.ground.runs[run].tasks]
        if key in ("pass_rate", "rate", "pass_at_1", "score", "mean_reward"):
            return "metric", "rate", [one for run in runs for one in self.ground.of_task(run, name)], True
        if key in ("passes", "passed", "n_passed", "num_passed"):
            found = [one for run in runs for one in self.ground.counts(run, ROLLOUTS, ("passed",), name)]
            return "count", "passed", found, False
        return "", "", [], False

    def _of_mode(self, key: str, mode: str, runs: tuple[str, ...]) -> tuple[str, str, list[Reading], bool]:
        """How much the failure mode that is named beside it takes."""
        found: list[Reading] = []
        for run in runs:
            ground = self.ground.runs[run]
            seen, tasks = ground.behaviours.get(mode), sum(one.mode == mode for one in ground.causes.values())
            lost, total = self.ground.lost(run, mode=mode), self.ground.lost(run)
            if seen is None and not tasks and not lost:
                continue
            if key.endswith("count"):
                counts = [tasks, *((seen.n_rollouts, seen.in_fail, seen.n_tasks) if seen else ())]
                found += [Reading(float(n), f"{n} are of {mode} in {run}") for n in counts]
            else:
                shares = [lost / total if total else 0.0, tasks / max(1, len(ground.causes))]
                shares += [seen.in_fail / seen.of_fail] if seen and seen.of_fail else []
                found += [Reading(share, f"{share:.1%} is {mode} in {run}") for share in shares]
        return ("count" if key.endswith("count") else "share"), "mode", found, key.endswith("fraction")

    # --- lists and names -----------------------------------------------------------------------------

    def _ids(self, key: str, value: list[Any], here: Here, doubt: str, place: Place) -> Iterator[Assertion]:
        hit = _COUNTED.fullmatch(key)
        state = _WORDS.get(hit["state"]) if hit else None
        if state not in ("always", "sometimes", "never", "missing") or here.scope or len(here.runs) != 1:
            return
        run = here.runs[0]
        sets = [set(map(str, each)) for each in self.ground.runs[run].states(state, TASKS)]
        for one in value:
            name = str(one)
            keys = set(self.reader.either(self.reader.tasks.get(name, name)))
            fits = any(keys & each for each in sets)
            is_known = name in self.reader.tasks
            verdict = SUPPORTED if fits else UNVERIFIABLE if doubt or not sets else CONTRADICTED
            words = f"task {name} is not {state} in {run}" if is_known else f"no task {name} in {run}"
            yield said(
                place, verdict, "bucket" if is_known else "id", name, expected=None if fits else words,
                why="" if fits else doubt or "the rows say otherwise", subject=state, run=run,
                scope=(("task", name),), value=state,
            )  # fmt: skip

    def _dominant(self, value: str, here: Here, doubt: str, place: Place) -> Iterator[Assertion]:
        from blade.check.reader.ordering import tallies

        if len(here.runs) != 1:
            return
        counted = [each for each in tallies(self.ground, here.runs[0], "D") if each]
        if not counted or not any(value in each for each in counted):
            yield said(
                place,
                UNVERIFIABLE,
                "ordering",
                value,
                why=f"nothing here counts {value}",
                subject="most common",
            )
            return
        fits = any(value in each and each[value] >= max(each.values()) - 1e-9 for each in counted)
        first = max(counted[0], key=lambda one: counted[0][one])
        verdict = SUPPORTED if fits else UNVERIFIABLE if doubt else CONTRADICTED
        yield said(
            place, verdict, "ordering", value, expected=f"{first} is the most common in {here.runs[0]}",
            why="" if fits else doubt or "the rows say otherwise", subject="most common",
            run=here.runs[0], value=value,
        )  # fmt: skip

    def _seek(self, key: str) -> None:
        """Go on to the line on which the next such key stands."""
        if not self.text:
            return
        found = self.text.find(f'"{key}"', self.at)
        if found >= 0:
            self.line += self.text.count("\n", self.at, found)
            self.at = found


_PARTS = re.compile(r"bucket|outcome|rollouts|rows|tasks", re.IGNORECASE)
# keys that hold more of the same, so that what stands below is about the whole
_GROUPS = frozenset(
    "metrics summary overall aggregate results result scores models runs per_model by_model buckets outcomes "
    "task_buckets per_category by_category categories per_slice by_slice slices tasks per_task by_task "
    "totals counts "
    "headline report data headline_metrics".split()
)


def _are_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, str | int) and not isinstance(one, bool) for one in value)
    )


def _printed(value: float) -> Mention | None:
    if abs(value) > 1e300:
        return None  # nobody counts so far, and it cannot be told apart from its neighbours
    text = repr(value)
    if not re.fullmatch(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text):
        return None
    digits = len(text.partition("e")[0].partition(".")[2])
    # a float that is printed in full is rounded by nobody
    unit = (
        1e-6
        if digits > 6 or "e" in text
        else 1.0
        if isinstance(value, int) or value == int(value)
        else 10.0**-digits
    )
    if isinstance(value, float) and value == int(value):
        unit = 0.1
    return Mention("Q", (), -1, -1, Quantity(text, -1, -1, COUNT, float(value), unit=unit), text)


__all__ = ["TASK", "read_json"]
