"""Plant faults in a simulated run, each on a known set of rows, and write its sidecars; the FAULTS table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec
import numpy as np

from tools.planted.parcel_desk import FAILING, SOLVED, Task, desk_task, draw_mode, play, request, task_fields
from tools.planted.planted_rows import Item, encode

VERIFIER_FIELDS = ("extracted_answer", "db_match", "n_lookups", "n_updates", "verifier_message")
Key = tuple[int, int]


@dataclass
class Draft:
    """A run of one agent before it is written; faults change it in place and record what they did."""

    model: str
    agent: str
    seed: int
    tasks: dict[int, Task]  # by task index
    repeats: int
    rng: Random
    rows: list[Item] = field(default_factory=list)  # the main file
    inputs: list[Item] = field(default_factory=list)  # the materialised inputs
    failures: list[Item] = field(default_factory=list)
    modes: dict[Key, str] = field(default_factory=dict)  # how each rollout was played
    planted: list[dict[str, Any]] = field(default_factory=list)
    touched: set[Key] = field(default_factory=set)
    torn: Item | None = None  # the row of the cut last line
    sidecars: bool = True
    numbered: bool = True  # rows carry their repeat index
    simulated_user: bool = False
    others: list[Draft] = field(default_factory=list)  # further agents in the same file

    def play_all(self) -> None:
        for index, task in self.tasks.items():
            for repeat in range(self.repeats):
                self.inputs.append(self.materialized(task, index, repeat))
                self.rows.append(self.play_one(task, index, repeat))

    def materialized(self, task: Task, index: int, repeat: int) -> Item:
        options = {"responses_create_params": request(task), **task_fields(task), "agent_ref": self.agent_ref}
        return {**options, "_ng_task_index": index, "_ng_rollout_index": repeat}

    def play_one(
        self, task: Task, index: int, repeat: int, mode: str | None = None, attempt: int = 0
    ) -> Item:
        """Draw from a stream of the rollout's own, so that a fault leaves all other rows as they were."""
        rng = Random(f"{self.seed}/{self.agent}/{index}/{repeat}/{attempt}")
        drawn = draw_mode(task, rng)
        self.modes[index, repeat] = mode or drawn
        row = play(task, rng, mode or drawn, self.model)
        if self.simulated_user:
            row["responses_create_params"] = request(task, repeat)
        return {**row, "_ng_task_index": index, "_ng_rollout_index": repeat, "agent_ref": self.agent_ref}

    @property
    def agent_ref(self) -> Item:
        return {"type": "responses_api_agents", "name": self.agent}

    def take(self, count: int | None) -> list[Item]:
        """Rows no fault has touched, a twentieth of the run unless told, spread over the tasks."""
        free = [row for row in self.rows if key(row) not in self.touched]
        self.rng.shuffle(free)
        rank: Counter[int] = Counter()
        order = []
        for row in free:
            order.append((rank[row["_ng_task_index"]], row))
            rank[row["_ng_task_index"]] += 1
        order.sort(key=lambda ranked: ranked[0])
        wanted = max(1, len(self.rows) // 20) if count is None else count
        if wanted > len(order):
            raise ValueError(f"cannot plant in {wanted} rows: {len(order)} are free")
        taken = [row for _, row in order[:wanted]]
        self.touched.update(map(key, taken))
        return taken

    def take_tasks(self, count: int) -> list[int]:
        """Tasks no fault has touched."""
        used = {index for index, _ in self.touched}
        free = [index for index in self.tasks if index not in used]
        if count > len(free):
            raise ValueError(f"cannot plant in {count} tasks: {len(free)} are free")
        taken = sorted(self.rng.sample(free, count))
        self.touched.update((index, repeat) for index in taken for repeat in range(self.repeats))
        return taken

    def note(self, fault: str, row: Item, **more: Any) -> None:
        index, repeat = key(row)
        self.planted.append({"fault": fault, "agent": self.agent, "task": index, "repeat": repeat, **more})

    def drop(self, gone: Item) -> None:
        del self.modes[key(gone)]
        self.rows = [row for row in self.rows if row is not gone]


def key(row: Item) -> Key:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def empty(draft: Draft, row: Item, message: str) -> None:
    """Take a rollout's output away: nothing to verify, reward 0."""
    del draft.modes[key(row)]
    row["response"]["output"] = []
    row.update(reward=0.0, extracted_answer=None, db_match=False, n_lookups=0, n_updates=0)
    row["verifier_message"] = message


def sparse_indices(draft: Draft, count: int | None) -> None:
    """Near miss: task indices have holes (28, 33, 38, ...) although nothing is missing."""
    moved = {index: 28 + 5 * index for index in draft.tasks}
    for row in draft.rows + draft.inputs:
        row["_ng_task_index"] = moved[row["_ng_task_index"]]
    draft.tasks = {moved[index]: task for index, task in draft.tasks.items()}
    draft.modes = {(moved[index], repeat): mode for (index, repeat), mode in draft.modes.items()}
    draft.planted.append({"fault": "sparse_indices", "agent": draft.agent, "first": 28, "step": 5})


def simulated_user_opening(draft: Draft, count: int | None) -> None:
    """Near miss: the user's opening in the request differs per repeat; the task is the same."""
    draft.simulated_user = True
    for row in draft.rows:
        index, repeat = key(row)
        row["responses_create_params"] = request(draft.tasks[index], repeat)
    draft.planted.append({"fault": "simulated_user_opening", "agent": draft.agent})


def two_tasks_one_index(draft: Draft, count: int | None) -> None:
    """The later half of a task's repeats belongs to another task, under the same task index."""
    for place, index in enumerate(draft.take_tasks(count or 1)):
        other = desk_task(10_000 + place)
        for repeat in range((draft.repeats + 1) // 2, draft.repeats):
            replace(draft, index, repeat, other)
            draft.planted.append({"fault": "two_tasks_one_index", "agent": draft.agent, "task": index,
                                  "repeat": repeat, "task_id": f"desk-{other.number:04d}"})  # fmt: skip


def one_task_two_indices(draft: Draft, count: int | None) -> None:
    """A second task index carries the very task of a first one."""
    taken = draft.take_tasks(2 * (count or 1))
    for first, second in zip(taken[::2], taken[1::2], strict=True):
        draft.tasks[second] = draft.tasks[first]
        for repeat in range(draft.repeats):
            replace(draft, second, repeat, draft.tasks[first])
        draft.planted.append(
            {"fault": "one_task_two_indices", "agent": draft.agent, "tasks": [first, second]}
        )


def replace(draft: Draft, index: int, repeat: int, task: Task) -> None:
    """Put another task's rollout and input under a key."""
    for content, built in (
        (draft.rows, draft.play_one(task, index, repeat)),
        (draft.inputs, draft.materialized(task, index, repeat)),
    ):
        content[:] = [built if key(row) == (index, repeat) else row for row in content]


def two_agents(draft: Draft, count: int | None) -> None:
    """A second agent answers the same keys in the same file."""
    other = Draft(draft.model, f"{draft.agent}_b", draft.seed, dict(draft.tasks), draft.repeats, draft.rng)
    other.simulated_user = draft.simulated_user
    other.play_all()
    draft.others.append(other)
    draft.planted.append({"fault": "two_agents", "agents": [draft.agent, other.agent]})


def constant_reward(draft: Draft, count: int | None) -> None:
    """Every row has reward 1, whatever the verifier's own fields say."""
    for row in rewarded(draft):
        row["reward"] = 1.0
    draft.planted.append({"fault": "constant_reward", "agent": draft.agent, "reward": 1.0})


def batch_reward(draft: Draft, count: int | None) -> None:
    """Every row has the mean of the batch as its reward, below one."""
    rows = rewarded(draft)
    shared = min(0.9999, round(sum(row["reward"] for row in rows) / len(rows), 4))
    for row in rows:
        row["reward"] = shared
    draft.planted.append({"fault": "batch_reward", "agent": draft.agent, "reward": shared})


def rewarded(draft: Draft) -> list[Item]:
    rows = [row for each in (draft, *draft.others) for row in each.rows]
    return [row for row in rows if row["reward"] is not None]


def provider_errors(draft: Draft, count: int | None) -> None:
    """The provider failed: an error text, no output, scored 0."""
    for row in draft.take(count):
        empty(draft, row, "Nothing to verify: the agent returned no output.")
        row["error"] = "model endpoint answered 503: service overloaded, request dropped after 3 tries"
        row["response"]["usage"] = None
        draft.note("provider_errors", row)


def empty_outputs(draft: Draft, count: int | None) -> None:
    """The response has no output item and no error, scored 0."""
    for row in draft.take(count):
        empty(draft, row, "Nothing to verify: the output is empty.")
        used = row["response"]["usage"]
        used.update(output_tokens=0, total_tokens=used["input_tokens"])
        used["output_tokens_details"] = {"reasoning_tokens": 0}
        draft.note("empty_outputs", row)


def lost_rows(draft: Draft, count: int | None) -> None:
    """The rollout stands in the materialised inputs and nowhere else."""
    for row in draft.take(count):
        draft.drop(row)
        draft.note("lost_rows", row)


def failed_rows(draft: Draft, count: int | None) -> None:
    """The rollout stands only in the failures sidecar; the first of them with two attempts."""
    for place, row in enumerate(draft.take(count)):
        draft.drop(row)
        failed = {name: value for name, value in row.items() if name not in VERIFIER_FIELDS}
        failed.update(reward=0.0, _ng_failure_class="judge_failed")
        failed["_ng_failure_judge_error"] = "judge endpoint closed the connection"
        lines = 2 if place == 0 else 1
        draft.failures += [failed] * lines
        draft.note("failed_rows", row, lines=lines)


def masked_rows(draft: Draft, count: int | None) -> None:
    """The environment says that the reward is no measurement."""
    taken = draft.take(count)
    for row in [row for each in (draft, *draft.others) for row in each.rows]:
        row["mask_sample"] = False
    for row in taken:
        row.update(reward=0.0, mask_sample=True, verifier_message="The database was not reachable.")
        draft.note("masked_rows", row)


def null_rewards(draft: Draft, count: int | None) -> None:
    """The reward is null."""
    for row in draft.take(count):
        row.update(reward=None, verifier_message="The verifier returned nothing.")
        draft.note("null_rewards", row)


def duplicate_identical(draft: Draft, count: int | None) -> None:
    """The same line stands twice."""
    for row in draft.take(count):
        draft.rows.append(deepcopy(row))
        draft.note("duplicate_identical", row)


def duplicate_differing(draft: Draft, count: int | None) -> None:
    """Two rows share a key; one passes, one fails."""
    for row in draft.take(count):
        mode = FAILING[0] if draft.modes[key(row)] == SOLVED else SOLVED
        draft.rows.append(second_play(draft, row, mode))
        draft.note("duplicate_differing", row)


def retried_attempt(draft: Draft, count: int | None) -> None:
    """A later attempt, which passes, stands beside the row of the first."""
    for row in draft.take(count):
        draft.rows.append({**second_play(draft, row, SOLVED), "_ng_attempt_index": 1})
        draft.modes[key(row)] = SOLVED
        draft.note("retried_attempt", row)


def second_play(draft: Draft, row: Item, mode: str) -> Item:
    """Another rollout of a row's key; the mode of the first stays on record."""
    first = draft.modes[key(row)]
    built = draft.play_one(draft.tasks[key(row)[0]], *key(row), mode=mode, attempt=1)
    draft.modes[key(row)] = first
    return built


def torn_tail(draft: Draft, count: int | None) -> None:
    """The last line is cut in the middle, without a newline; its rollout is lost."""
    (draft.torn,) = draft.take(1)
    draft.drop(draft.torn)
    draft.note("torn_tail", draft.torn)


def missing_repeat_index(draft: Draft, count: int | None) -> None:
    """Near miss: rows have no repeat index and no sidecars; they are repeats, not duplicates."""
    draft.sidecars = draft.numbered = False
    draft.planted.append({"fault": "missing_repeat_index", "agent": draft.agent})


Fault = Callable[[Draft, int | None], None]
FAULTS: dict[str, Fault] = {  # in the order of planting
    "sparse_indices": sparse_indices,
    "simulated_user_opening": simulated_user_opening,
    "two_tasks_one_index": two_tasks_one_index,
    "one_task_two_indices": one_task_two_indices,
    "two_agents": two_agents,
    "provider_errors": provider_errors,
    "empty_outputs": empty_outputs,
    "lost_rows": lost_rows,
    "failed_rows": failed_rows,
    "null_rewards": null_rewards,
    "duplicate_identical": duplicate_identical,
    "duplicate_differing": duplicate_differing,
    "retried_attempt": retried_attempt,
    "masked_rows": masked_rows,
    "torn_tail": torn_tail,
    "constant_reward": constant_reward,
    "batch_reward": batch_reward,
    "missing_repeat_index": missing_repeat_index,
}
COUNTED = frozenset(FAULTS) - {
    "sparse_indices", "simulated_user_opening", "two_agents", "constant_reward", "batch_reward", "torn_tail",
    "missing_repeat_index",
}  # fmt: skip


def plant(draft: Draft, faults: tuple[str, ...]) -> None:
    """Plant faults given as `name` or `name:count`."""
    counts: dict[str, int | None] = {}
    for wish in faults:
        name, _, count = wish.partition(":")
        if name not in FAULTS or (count and name not in COUNTED):
            raise ValueError(f"no such fault: {wish}")
        counts[name] = int(count) if count else None
    for name, fault in FAULTS.items():
        if name in counts:
            fault(draft, counts[name])


# Gym appends its own keys after the verifier's, in this order.
LAST = ("_ng_failure_class", "_ng_failure_judge_error", "_ng_task_index", "_ng_rollout_index", "agent_ref",
        "_ng_attempt_index")  # fmt: skip


def lines(rows: Iterable[Item]) -> bytes:
    return b"".join(encode(ordered(row)) + b"\n" for row in rows)


def ordered(row: Item) -> Item:
    return {name: row[name] for name in [*(n for n in row if n not in LAST), *(n for n in LAST if n in row)]}


def sidecars(draft: Draft) -> dict[str, bytes]:
    """File endings and contents; a killed run has no metrics, and neither has one without rows."""
    drafts = (draft, *draft.others)
    files = {
        "_materialized_inputs.jsonl": b"".join(encode(row) + b"\n" for each in drafts for row in each.inputs),
        "_failures.jsonl": lines(row for each in drafts for row in each.failures),
    }
    measured = [each for each in drafts if each.rows]
    if measured and draft.torn is None:
        metrics = encode([aggregate(each) for each in measured])
        files["_aggregate_metrics.json"] = msgspec.json.format(metrics, indent=2)
        profiles = [entry for each in measured for entry in profile(each, named=len(measured) > 1)]
        profiles.sort(key=lambda entry: entry["_ng_task_index"])
        files["_reward_profiling.jsonl"] = b"".join(encode(entry) + b"\n" for entry in profiles)
    return files


def aggregate(draft: Draft) -> Item:
    rows = measured_rows(draft)
    metrics = statistics(rows)
    agent = {"name": draft.agent}
    groups = []
    for index, group in by_task(rows).items():
        sample = {"agent_ref": {"name": "agent"}}
        groups.append(
            {"_ng_task_index": index, **statistics(group), "sample": sample, **completion(group, len(group))}
        )
    means = {name: value for name, value in metrics.items() if name.startswith("mean/")}
    return {"agent_ref": agent, "agent_metrics": metrics, "key_metrics": means, "group_level_metrics": groups}


def profile(draft: Draft, *, named: bool) -> Iterator[Item]:
    """One entry per task with a row; `named` where several agents share the file."""
    expected = by_task(draft.inputs)
    for index, group in by_task(measured_rows(draft)).items():
        sample = {name: value for name, value in expected[index][0].items() if not name.startswith("_ng_")}
        entry = {"_ng_task_index": index, **statistics(group), "sample": sample}
        agent = {"agent_ref": {"name": draft.agent}} if named else {}
        yield {**entry, **completion(group, len(expected[index])), **agent}


def measured_rows(draft: Draft) -> list[Item]:
    return sorted((row for row in draft.rows if not row.get("mask_sample")), key=key)


def by_task(rows: Iterable[Item]) -> dict[int, list[Item]]:
    groups: dict[int, list[Item]] = {}
    for row in rows:
        groups.setdefault(row["_ng_task_index"], []).append(row)
    return groups


def completion(group: Sequence[Item], expected: int) -> Item:
    n = len(group)
    return {
        "num_rollouts": n,
        "expected_num_rollouts": expected,
        "missing_num_rollouts": max(0, expected - n),
        "reward_profile_completion_pct": 100.0 * n / expected,
        "rollout_infos": [rollout_info(row) for row in group],
    }


def rollout_info(row: Item) -> Item:
    index, repeat = key(row)
    results = {name: int(value) if isinstance(value, bool) else value for name, value in numbers(row).items()}
    info = {"rollout_id": f"{index}:{repeat}", "_ng_task_index": index, "_ng_rollout_index": repeat}
    return {**info, "reward": row["reward"], **results}


def numbers(row: Item) -> Item:
    """The numeric columns of a row: its own top-level numbers, then those of its usage."""
    used = row["response"]["usage"] or {}
    own = {name: value for name, value in row.items() if name[0] != "_" and name != "mask_sample"}
    return {name: value for name, value in {**own, **used}.items() if isinstance(value, bool | int | float)}


def statistics(rows: Sequence[Item]) -> dict[str, float]:
    """The five statistics of each column, grouped by statistic; what is undefined is left out."""
    results = [numbers(row) for row in rows]
    columns = {name: None for row in results for name in row}
    tables: dict[str, dict[str, float]] = {name: {} for name in ("mean", "max", "min", "median", "std")}
    for column in columns:
        here = np.array([row[column] for row in results if column in row], dtype=np.float64)
        # Gym sums in pairs with 0 for what is absent; the bytes depend on it.
        filled = np.array([row.get(column, 0.0) for row in results], dtype=np.float64)
        mean = float(filled.sum() / len(here))
        tables["mean"][column] = mean
        tables["max"][column] = float(here.max())
        tables["min"][column] = float(here.min())
        tables["median"][column] = float(np.median(here))
        if len(here) > 1:
            squares = np.array([(mean - row[column]) ** 2 if column in row else 0.0 for row in results])
            tables["std"][column] = math.sqrt(float(squares.sum()) / (len(here) - 1))
        elif len(rows) == 1:
            tables["std"][column] = 0.0
    return {f"{name}/{column}": value for name, table in tables.items() for column, value in table.items()}
