"""Turn a design and the conditions of a run into its rows, and say how each was played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, sqrt
from random import Random

from tools.planted.injected.scene import Key, Scene, Task, row_of
from tools.planted.items import Item
from tools.planted.paired.design import (
    OWN,
    SHARED,
    SPREAD,
    Conditions,
    Design,
    Drawn,
    loose_share,
    own_way,
)
from tools.planted.paired.worlds import WORLDS, break_off, cut_off

NEARBY = 6  # tasks in flight together: rows are written in the order in which they end
SOLVED, LOOSE, CUT, BROKEN = "solved", "solved, loose form", "truncated", "infra_error"
BELOW = 0.96  # of its limit: what is longer and not cut would look cut


@dataclass(frozen=True, slots=True)
class Played:
    """The rows of one run, and how each rollout went: solved, cut, broken off, or the way it failed."""

    rows: tuple[Item, ...]
    how: Mapping[Key, str]


def play(design: Design, under: Conditions, role: int) -> Played:
    """Every rollout from a stream of its own; `role` is 0 for the first run of the pair, 1 for the second."""
    rng = Random(f"order/{design.seed}/{role}")
    world = WORLDS[design.world]
    made: dict[Key, Item] = {}
    how: dict[Key, str] = {}
    for index, drawn in enumerate(design.tasks):
        if index in under.dropped:
            continue
        task = world.domain.task(drawn.number, world.options)
        kept = sorted(rng.sample(range(design.repeats[role]), design.rows[role][index]))
        for repeat in kept:
            scene = staged(design, task, (index, repeat), role)
            how[index, repeat] = rollout(scene, drawn, design, under)
            made[index, repeat] = row(scene, drawn, design, under)
    order = sorted(made, key=lambda key: key[0] + NEARBY * rng.random())
    for at, key in enumerate(order):
        made[key]["response"]["created_at"] += 7.0 * at
    return Played(tuple(made[key] for key in order), how)


def staged(design: Design, task: Task, key: Key, role: int) -> Scene:
    world = WORLDS[design.world]
    rng = Random(f"rollout/{design.seed}/{role}/{key}")
    return Scene(world.domain, task, key, world.options, rng, {})


def rollout(scene: Scene, task: Drawn, design: Design, under: Conditions) -> str:
    """Play a rollout; how it went."""
    world, rng = WORLDS[design.world], scene.rng
    own, luck = rng.gauss(0.0, 1.0), rng.random()  # drawn first: the same whatever the rollout does
    tokens = design.typical * exp(SPREAD * (SHARED * task.length + sqrt(1 - SHARED**2) * own))
    scene.domain.solve(scene)
    how = drawn_way(scene, task, design, under)
    if how == LOOSE:
        said = world.forms[design.form](scene)
        lenient = {"verifier_message": "As expected, in another form."}
        if design.world == "quiz":
            lenient["extracted_answer"] = scene.facts["gold"]
        scene.ruled = {"reward": 0.0, **said} if under.strict else {**accepted(scene), **lenient}
    elif how != SOLVED:
        world.ways[how](scene)
    if luck < under.outage[scene.key[0]]:
        break_off(scene)
        return BROKEN
    if tokens > under.limit:
        scene.ruled = {}
        cut_off(scene, under.limit)
        return CUT
    used = round(min(tokens, BELOW * under.limit))
    scene.used = {"output": used, "reasoning": round(0.8 * used)}
    return how


def accepted(scene: Scene) -> Item:
    return {"reward": 1.0, "db_match": True} if "order" in scene.facts else {"reward": 1.0}


def drawn_way(scene: Scene, task: Drawn, design: Design, under: Conditions) -> str:
    rng = scene.rng
    way = SOLVED
    if rng.random() >= task.rate * (1 - under.worse.get(task.category, 0.0)):
        own = own_way(task, design.mix)
        way = own if rng.random() < OWN else rng.choices(list(design.mix), list(design.mix.values()))[0]
    if way == under.fixed:
        way = SOLVED
    return LOOSE if way == SOLVED and rng.random() < loose_share(task, design) else way


def row(scene: Scene, task: Drawn, design: Design, under: Conditions) -> Item:
    """The row as Gym writes it, under the settings of its run."""
    scene.fields = {**scene.task.fields, "category": task.category, "difficulty": task.difficulty}
    made = row_of(scene)
    settings = {"max_output_tokens": under.limit, "temperature": under.temperature}
    made["responses_create_params"] = {**made["responses_create_params"], **settings}
    made["response"] |= {"id": f"resp_{scene.ident()}", "model": under.model}
    if not design.extracts:
        made.pop("extracted_answer", None)
    if under.verifier is not None:
        made["verifier_version"] = under.verifier
    return made
