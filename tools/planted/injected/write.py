"""Write a simulated run with one fault in it, and say which rows have it and since which step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from tools.planted.injected.desk import DESK
from tools.planted.injected.quiz import QUIZ
from tools.planted.injected.scene import Domain, Key, Scene, row_of
from tools.planted.injected.shell import SHELL
from tools.planted.injected.table import INJECTIONS
from tools.planted.injected.truth import Injected, Injection, Mark, Truth
from tools.planted.items import Item
from tools.planted.sidecars import lines

DOMAINS: dict[str, Domain] = {"desk": DESK, "shell": SHELL, "quiz": QUIZ}
# How the tasks of a run go, in turn: most are solved, some now and then, few never.
LUCK = ("always", "always", "sometimes", "always", "always", "never_same", "always", "sometimes", "always",
        "always", "never_varied", "always")  # fmt: skip
COMMON = 0.1  # above this share a fault is one of the whole run
NEARBY = 6  # tasks in flight together: rows are written in the order in which they end
WRONG = "wrong_content"


def write_injected(
    folder: Path, *, fault: str, prevalence: float, seed: int, n_tasks: int = 40, repeats: int = 4
) -> Injected:
    """Write `rollouts.jsonl`; `prevalence` is the share of rows that get the fault, 1 for all of them.

    Every draw of a rollout comes from a stream of its own: the rows without the fault are the same as
    in the run of its twin, where both play the same domain.
    """
    injection = INJECTIONS[fault]
    wide = injection.pick == "run" or prevalence >= 1
    repeats = max(repeats, injection.repeats)
    run = play(injection, seed, n_tasks, repeats, solve_all=prevalence >= 1 and injection.pick != "run")
    rng = Random(f"choose/{seed}/{injection.behaviour}")
    order = sorted(run, key=lambda key: key[0] + NEARBY * rng.random())
    before = {key: (scene.tools(), len(scene.calls())) for key, scene in run.items()}
    marks: dict[Key, Mark] = {}
    for key in choose(injection, run, order, rng, 1.0 if wide else prevalence):
        scene = run[key]
        scene.rng = Random(f"inject/{seed}/{fault}/{key}")
        mark = injection.inject(scene)
        if mark is not None:
            marks[key] = Mark(mark.step, mark.steps, (*mark.also, *lacking(scene, *before[key])))
    rows = {key: row_of(run[key]) for key in order}
    for at, row in enumerate(rows.values()):
        row["response"]["created_at"] += 7.0 * at
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rollouts.jsonl"
    path.write_bytes(lines(rows.values()))
    causes = (
        injection.throughout if injection.throughout and (wide or prevalence > COMMON) else injection.causes
    )
    return Injected(
        path=path,
        fault=fault,
        twin=injection.twin,
        prevalence=1.0 if wide else prevalence,
        truths=tuple(
            truth(key, mark, injection.behaviour, causes) for key, mark in sorted(marks.items()) if causes
        ),
        background=background(injection, run, rows, marks if causes else {}),
        touched=tuple((str(index), repeat) for index, repeat in sorted(marks)),
    )


def truth(key: Key, mark: Mark, behaviour: str, causes: tuple[str, ...]) -> Truth:
    also = tuple(name for name in dict.fromkeys(mark.also) if name != behaviour)
    return Truth(str(key[0]), key[1], behaviour, causes, mark.step, tuple(sorted(set(mark.steps))), also)


def play(injection: Injection, seed: int, n_tasks: int, repeats: int, *, solve_all: bool) -> dict[Key, Scene]:
    """Every rollout without the fault, some of them wrong for their content."""
    domain = DOMAINS[injection.domain]
    run: dict[Key, Scene] = {}
    for index in range(n_tasks):
        task = domain.task(index, injection.options)
        luck = "never_varied" if "hopeless" in injection.options else LUCK[index % len(LUCK)]
        for repeat in range(repeats):
            rng = Random(f"{seed}/{injection.domain}/{index}/{repeat}")
            solved = luck == "always" or (luck == "sometimes" and rng.random() < 0.5) or solve_all
            variant = index if luck == "never_same" else index + repeat
            scene = Scene(domain, task, (index, repeat), injection.options, rng, run, solved, variant)
            run[index, repeat] = scene
            if solved:
                domain.solve(scene)
            else:
                domain.miss(scene, variant)
    return run


def choose(
    injection: Injection, run: dict[Key, Scene], order: list[Key], rng: Random, prevalence: float
) -> list[Key]:
    """The rows to change: seeded, spread over the tasks, and only where the rollout passes."""
    wanted = max(1, round(prevalence * len(run)))
    if injection.pick == "run":
        return order
    if injection.pick == "block":
        wanted = max(4, wanted)
        start = rng.randrange(max(1, len(order) - wanted))
        return order[start : start + wanted]
    solved = Counter(key[0] for key, scene in run.items() if scene.solved)
    repeats = Counter(key[0] for key in run)
    if injection.pick == "tasks":
        free = [index for index in repeats if solved[index] == repeats[index]]
        rng.shuffle(free)
        tasks = set(free[: max(injection.least, round(wanted / max(repeats.values())))])
        return [key for key in run if key[0] in tasks]
    # All rows of a run leave no passers, except where the fault is only seen against them.
    kept = injection.passers if prevalence < 1 or injection.passers > 1 else 0
    return spread([key for key in run if run[key].solved], solved, kept, rng)[:wanted]


def spread(keys: list[Key], solved: Counter[int], kept: int, rng: Random) -> list[Key]:
    """In random order, first one row of each task, then the second; the last `kept` of a task stay."""
    rng.shuffle(keys)
    rank: Counter[int] = Counter()
    ranked = []
    for key in keys:
        if rank[key[0]] < solved[key[0]] - kept:
            ranked.append((rank[key[0]], key))
        rank[key[0]] += 1
    ranked.sort(key=lambda one: one[0])
    return [key for _, key in ranked]


def lacking(scene: Scene, tools: set[str], n_calls: int) -> list[str]:
    """What a rollout shows as well because it came to an end before its time."""
    found = ["missing_required_tool"] if tools - scene.tools() else []
    if 2 * len(scene.calls()) <= n_calls:
        found += ["premature_stop"] if n_calls else []
    if tools and not scene.calls():
        found.append("tool_never_used")
    return found


def background(
    injection: Injection, run: dict[Key, Scene], rows: dict[Key, Item], taken: dict[Key, Mark]
) -> tuple[Truth, ...]:
    """The rollouts that were wrong before anything was injected, and why."""
    passes = Counter(key[0] for key, row in rows.items() if row["reward"] >= 1)
    everywhere = injection.pick == "run" and not injection.twin
    shared = {name: None for mark in taken.values() for name in mark.also} if everywhere else {}
    found = []
    for key, scene in sorted(run.items()):
        if scene.solved or key in taken:
            continue
        peers = [other for other in run.values() if other.key[0] == key[0]]
        variants = {other.variant % 4 for other in peers if not other.solved}
        if passes[key[0]]:
            causes: tuple[str, ...] = ("UK",)
        elif any(other.solved for other in peers) or len(variants) > 1:
            causes = ("UK", "KG")  # nothing passes as the rows stand, and the content varies
        else:
            causes = ("KG",)
        if everywhere:
            causes = tuple(dict.fromkeys((*causes, *injection.causes)))  # the fault covers these rows too
        found.append(truth(key, Mark(also=(*scene.domain.also, *shared)), WRONG, causes))
    return tuple(found)
