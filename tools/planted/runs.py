"""Write a simulated run with its sidecars, and say what is true of it."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from tools.planted.desk import desk_task
from tools.planted.faults import Draft, key, plant
from tools.planted.items import Item, encode
from tools.planted.sidecars import by_task, lines, ordered, sidecars

NOTES = """# Simulated run

Every task, tool, rollout and reward of this run is invented. `blade demo` wrote it; no model was called.
The help desk asks an agent to find the right account and to change exactly one order.

Planted on purpose: {faults}.
"""

BENCHMARK = """name = "sim-help-desk"
pass_threshold = 1.0
answer = "extracted_answer"
slices = ["category", "difficulty"]

[[stages]]
name = "looked up a record"
field = "n_lookups"
at_least = 1

[[stages]]
name = "tried to change an order"
field = "n_updates"
at_least = 1

[[stages]]
name = "left the database as expected"
field = "db_match"
equals = true
"""


@dataclass(frozen=True)
class Planted:
    """A written run and the truth about it; one agent's part of it where the file has several."""

    path: Path
    files: tuple[Path, ...]  # all files written, the rollouts first
    agent: str
    n_tasks: int
    repeats: int
    expected: int  # keys: expected = scored + failed + masked + lost
    scored: int
    failed: int
    masked: int
    lost: int
    identical_duplicates: int  # surplus rows
    differing_duplicates: int
    superseded: int  # rows with a later attempt beside them
    passes: Mapping[int, int]  # passing rows by task index, of those that count
    rows: Mapping[int, int]  # rows that count, by task index
    always: tuple[int, ...]
    sometimes: tuple[int, ...]
    never: tuple[int, ...]
    missing: tuple[int, ...]
    pass_rate: float | None  # mean over tasks
    modes: Mapping[tuple[int, int], str]  # how the rollout of a key was played: solved, or the way it fails
    faults: tuple[dict[str, Any], ...]
    others: tuple[Planted, ...] = ()  # further agents in the same file


def write_run(
    folder: Path,
    *,
    name: str = "rollouts",
    n_tasks: int = 20,
    repeats: int = 4,
    seed: int = 0,
    model: str = "sim-model-a",
    agent: str = "sim_desk_agent",
    rates: Sequence[float] | None = None,
    faults: Sequence[str] = (),
    sidecars: bool = True,
    compress: Literal["gz", "zst"] | None = None,
    shuffle: bool = True,
) -> Planted:
    """Write a run of the help desk; a task is the same in every run, `seed` decides how its rollouts go.

    `rates` are pass rates by task, begun again where they are too few. A fault is a name of FAULTS, or
    `name:count` for a fault that has a size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {
        index: desk_task(index, rates[index % len(rates)] if rates else None) for index in range(n_tasks)
    }
    draft = Draft(model, agent, seed, tasks, repeats, Random(f"run/{seed}"), sidecars=sidecars)
    draft.play_all()
    plant(draft, tuple(faults))
    files = write_files(draft, folder, name, compress, shuffle=shuffle)
    others = tuple(truth(other, files) for other in draft.others)
    return truth(draft, files, others)


def write_demo(folder: Path) -> Planted:
    """Write the run of the golden files, with its notes and its benchmark facts."""
    faults = ("provider_errors:3", "lost_rows:2", "failed_rows:2", "duplicate_identical:1")
    planted = write_run(folder, n_tasks=24, faults=faults)
    told = ", ".join(f"{count} x {name}" for name, _, count in (fault.partition(":") for fault in faults))
    (folder / "notes.md").write_text(NOTES.format(faults=told), encoding="utf-8")
    (folder / "blade.toml").write_text(BENCHMARK, encoding="utf-8")
    return planted


def write_files(
    draft: Draft, folder: Path, name: str, compress: str | None, *, shuffle: bool
) -> tuple[Path, ...]:
    rows = [row for each in (draft, *draft.others) for row in each.rows]
    if shuffle:
        draft.rng.shuffle(rows)
    else:
        rows.sort(key=key)
    if not draft.numbered:
        rows = [{name: value for name, value in row.items() if name != "_ng_rollout_index"} for row in rows]
    content = lines(rows)
    if draft.torn is not None:
        torn = encode(ordered(draft.torn))
        content += torn[: len(torn) // 2]
    path = folder / f"{name}.jsonl{'.' + compress if compress else ''}"
    path.write_bytes(compressed(content, compress))
    files = [path]
    for ending, beside in (sidecars(draft) if draft.sidecars else {}).items():
        files.append(folder / f"{name}{ending}")
        files[-1].write_bytes(beside)
    return tuple(files)


def compressed(content: bytes, how: str | None) -> bytes:
    if how == "gz":
        return gzip.compress(content, mtime=0)
    if how == "zst":
        import zstandard

        return zstandard.compress(content)
    return content


def truth(draft: Draft, files: tuple[Path, ...], others: tuple[Planted, ...] = ()) -> Planted:
    kept, identical, differing, superseded = counted_rows(draft.rows)
    masked = {key(row) for row in kept if row.get("mask_sample")}
    scored = {key(row) for row in kept} - masked
    failed = {key(row) for row in draft.failures} - scored - masked
    expected = {key(row) for row in draft.inputs}
    groups = by_task(row for row in kept if not row.get("mask_sample"))
    n = {index: len(groups.get(index, ())) for index in draft.tasks}
    passes = {index: sum(map(is_pass, groups.get(index, ()))) for index in draft.tasks}
    rates = [passes[index] / n[index] for index in draft.tasks if n[index]]
    return Planted(
        path=files[0],
        files=files,
        agent=draft.agent,
        n_tasks=len(draft.tasks),
        repeats=draft.repeats,
        expected=len(expected),
        scored=len(scored),
        failed=len(failed),
        masked=len(masked),
        lost=len(expected - scored - masked - failed),
        identical_duplicates=identical,
        differing_duplicates=differing,
        superseded=superseded,
        passes=passes,
        rows=n,
        always=tuple(index for index in n if n[index] and passes[index] == n[index]),
        sometimes=tuple(index for index in n if 0 < passes[index] < n[index]),
        never=tuple(index for index in n if n[index] and not passes[index]),
        missing=tuple(index for index in n if not n[index]),
        pass_rate=sum(rates) / len(rates) if rates else None,
        modes=draft.modes,
        faults=tuple(draft.planted),
        others=others,
    )


def is_pass(row: Item) -> bool:
    return row["reward"] is not None and row["reward"] >= 1


def counted_rows(rows: Sequence[Item]) -> tuple[list[Item], int, int, int]:
    """The rows that count, and the identical, differing and superseded ones beside them."""
    by_key: dict[tuple[int, int], list[Item]] = {}
    for row in rows:
        by_key.setdefault(key(row), []).append(row)
    kept: list[Item] = []
    identical = superseded = 0
    for group in by_key.values():
        last = max(row.get("_ng_attempt_index", 0) for row in group)
        final = [row for row in group if row.get("_ng_attempt_index", 0) == last]
        superseded += len(group) - len(final)
        distinct = {encode(row): row for row in final}
        identical += len(final) - len(distinct)
        kept += distinct.values()
    return kept, identical, len(kept) - len(by_key), superseded
