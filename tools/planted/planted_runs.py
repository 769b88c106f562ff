"""Write simulated runs with their sidecars, or two with one cause between them, and say what is true of them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from tools.planted.injected.quiz_scene import Key
from tools.planted.paired_runs import CAUSES, WORLDS, Change, Plan, change, draw, forms, passing, play
from tools.planted.parcel_desk import desk_task
from tools.planted.planted_faults import Draft, by_task, key, lines, ordered, plant, sidecars
from tools.planted.planted_rows import Item, encode

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
    text = ", ".join(f"{count} x {name}" for name, _, count in (fault.partition(":") for fault in faults))
    (folder / "notes.md").write_text(NOTES.format(faults=text), encoding="utf-8")
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
    rest, identical, differing, superseded = counted_rows(draft.rows)
    masked = {key(row) for row in rest if row.get("mask_sample")}
    scored = {key(row) for row in rest} - masked
    failed = {key(row) for row in draft.failures} - scored - masked
    expected = {key(row) for row in draft.inputs}
    groups = by_task(row for row in rest if not row.get("mask_sample"))
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
    rest: list[Item] = []
    identical = superseded = 0
    for group in by_key.values():
        last = max(row.get("_ng_attempt_index", 0) for row in group)
        final = [row for row in group if row.get("_ng_attempt_index", 0) == last]
        superseded += len(group) - len(final)
        distinct = {encode(row): row for row in final}
        identical += len(final) - len(distinct)
        rest += distinct.values()
    return rest, identical, len(rest) - len(by_key), superseded


TRIES = 500  # designs until one lets the cause be as large as was asked for
LARGER = 1.4  # times that size is the largest aim


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """Two written runs and the truth about them; signs are candidate minus baseline."""

    baseline: Path
    candidate: Path
    cause: str  # of CAUSES
    sides: tuple[str, ...]  # of a right claim
    terms: tuple[str, ...]  # the slice that a right claim names, or the way to fail that its rollouts show
    delta: float  # true change of the headline score
    delta_common: float  # true change over the tasks that both have
    se: float  # of the change over common tasks, for new tasks like these
    mde: float  # smallest change that the design would see: the cause is `effect` times it, or 0
    n_tasks: tuple[int, int]
    n_common: int
    repeats: tuple[int, int]
    world: str
    form: str  # in which right results are now and then written
    swapped: bool  # what the cause does to a run was done to the baseline
    settings: tuple[str, ...]  # that differ between the runs, whether they matter or not
    rates: tuple[Mapping[str, float], Mapping[str, float]]  # true pass rates by task key
    how: tuple[Mapping[Key, str], Mapping[Key, str]]  # how each rollout went


def write_pair(
    folder: Path,
    cause: str,
    *,
    seed: int,
    n_tasks: int | None = None,
    repeats: int | None = None,
    effect: float = 2.0,
) -> PlantedPair:
    """Write `baseline.jsonl` and `candidate.jsonl`; what is not given is drawn from the seed.

    The true change is at least `effect` times the smallest change that the design can detect, unless the
    cause is "nothing"; ValueError where no such design is found.
    """
    rng = Random(f"pair/{cause}/{seed}")
    plan, text = planned(cause, rng, f"{cause}/{seed}", n_tasks, repeats, effect)
    swapped = rng.random() < 0.5
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "baseline.jsonl", folder / "candidate.jsonl"
    under = (plan.a, plan.b)
    played = [play(plan.design, entry, role) for role, entry in enumerate(under)]
    rates = [
        {str(place): rate for place, rate in enumerate(passing(plan.design, entry)) if place not in entry.dropped}
        for entry in under
    ]
    roles = (1, 0) if swapped else (0, 1)
    for path, role in zip(paths, roles, strict=True):
        path.write_bytes(lines(played[role].rows))
    sign = -1 if swapped else 1
    first, second = roles
    return PlantedPair(
        baseline=paths[0],
        candidate=paths[1],
        cause=cause,
        sides=plan.sides,
        terms=plan.terms,
        delta=sign * text.delta + 0.0,  # no negative zero
        delta_common=sign * text.delta_common + 0.0,
        se=text.se,
        mde=text.mde,
        n_tasks=(len(rates[first]), len(rates[second])),
        n_common=text.n_common,
        repeats=(plan.design.repeats[first], plan.design.repeats[second]),
        world=plan.design.world,
        form=plan.design.form,
        swapped=swapped,
        settings=differing(plan),
        rates=(rates[first], rates[second]),
        how=(played[first].how, played[second].how),
    )


def planned(
    cause: str, rng: Random, seed: str, n_tasks: int | None, repeats: int | None, effect: float
) -> tuple[Plan, Change]:
    """The first design that lets the cause be as large as asked, with the smallest size that is."""
    wanted = CAUSES[cause]
    for _ in range(TRIES):
        world = rng.choice(sorted(WORLDS))
        ways, loose = tuple(WORLDS[world].ways), forms(world, wanted)
        design = draw(rng, seed, world, ways, loose, rng.uniform(*wanted.means), n_tasks, repeats)
        aim = effect * rng.uniform(1.0, LARGER)
        for plan in wanted.plans(design, rng):
            text = change(plan.design, plan.a, plan.b)
            if abs(text.delta) >= aim * text.mde or cause == "nothing":
                return plan, text
    raise ValueError(f"no design of {n_tasks} tasks and {repeats} repeats shows {cause!r} at {effect} × MDE")


def differing(plan: Plan) -> tuple[str, ...]:
    """The settings that rows of the two runs state differently."""
    pairs = {
        "model": (plan.a.model, plan.b.model),
        "temperature": (plan.a.temperature, plan.b.temperature),
        "max_output_tokens": (plan.a.limit, plan.b.limit),
        "verifier_version": (plan.a.verifier, plan.b.verifier),
        "repeats": plan.design.repeats,
    }
    return tuple(name for name, (entry, other) in pairs.items() if entry != other)
