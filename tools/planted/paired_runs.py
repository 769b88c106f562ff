"""Design two runs of the same tasks with one cause between them, and play their rollouts: right, wrong, cut or broken off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist, fmean, variance

from tools.planted.injected import injected_acts, injected_ends
from tools.planted.injected.injected_acts import put
from tools.planted.injected.injected_desk import DESK
from tools.planted.injected.quiz_scene import QUIZ, Domain, Key, Scene, Task, row_of, working
from tools.planted.planted_rows import Item, talk

WRONG = "wrong content"  # the result is not the right one, and that is all
# Ways to fail that a trace shows. Those of the quiz end in a wrong answer, and what led to it no row tells.
VISIBLE = frozenset({"wrong_arg_field", "extra_side_effect", "missing_required_tool", "ignored_error"})
OUTAGES = (
    "model endpoint answered 503: service unavailable, request dropped after 3 tries",
    "Connection reset by peer (ECONNRESET)",
    "429 Too Many Requests: rate limit exceeded",
)


@dataclass(frozen=True, slots=True)
class World:
    """A kind of work: how it fails, and how a right result can be written otherwise."""

    domain: Domain
    options: frozenset[str]
    ways: Mapping[str, Callable[[Scene], object]]
    forms: Mapping[str, Callable[[Scene], Item]]  # loose forms: write it so, say what a strict verifier says


def unboxed(scene: Scene) -> Item:
    """The right number in bold type instead of the box that was asked for."""
    scene.output[-1] = scene.said(f"{working(scene, 0)[0]} The answer is **{scene.facts['gold']}**.")
    return {"extracted_answer": None, "verifier_message": "No boxed answer could be parsed."}


def with_unit(scene: Scene) -> Item:
    """The right number with what it counts."""
    gold, goods = scene.facts["gold"], scene.facts["goods"]
    scene.output[-1] = scene.said(f"{working(scene, 0)[0]} So the answer is \\boxed{{{gold} {goods}}}.")
    text = f"Extracted {gold} {goods}, expected {gold}."
    return {"extracted_answer": f"{gold} {goods}", "verifier_message": text}


def other_closing(scene: Scene) -> Item:
    """The right change, and a closing sentence that begins with other words."""
    scene.output[-1] = scene.said("All set: order {order} now has {action} {value}.".format(**scene.facts))
    return {"verifier_message": 'The closing sentence does not begin with "Done:".'}


def other_spelling(scene: Scene) -> Item:
    """The right value in another spelling: a capital, or no last zero."""
    value = scene.facts["value"]
    spelled = value.capitalize() if value[0].isalpha() else value.rstrip("0")
    scene.rewrite(scene.calls("update_order")[-1], value=spelled)
    text = f"The records differ: expected {value!r}, found {spelled!r}."
    return {"db_match": False, "verifier_message": text}


def cut_off(scene: Scene, limit: int) -> None:
    """End in the middle, at the limit of tokens."""
    places = scene.calls() or [place for place, item in enumerate(scene.output) if item["type"] == "message"]
    scene.cut(scene.rng.choice(places[1:] or places))
    scene.think("Let me go over all of it once more. " + talk(scene.rng, 4))
    scene.response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    scene.used = {"output": limit, "reasoning": limit - 60}


def break_off(scene: Scene) -> None:
    """The provider fails before anything is said."""
    scene.output.clear()
    scene.response = {"usage": None}
    message = scene.rng.choice(OUTAGES)
    if scene.rng.random() < 0.3:
        error = {"code": "server_error", "message": message}
        scene.response |= {"status": "failed", "error": error}
    scene.ruled = {"reward": 0.0, "error": message, "verifier_message": "Nothing to verify: no output."}


def wrong(scene: Scene) -> None:
    """Another result than the right one; which, depends on the task and on chance."""
    scene.output.clear()
    often = Random(f"slip/{scene.task.number}").randrange(4)
    scene.domain.miss(scene, often if scene.rng.random() < 0.5 else scene.rng.randrange(4))


def tell_another(scene: Scene) -> None:
    """Tell the customer, and then a second one who has nothing to do with it."""
    note = {"customer_id": scene.facts["other_customer"], "text": "An order of your account was changed."}
    put(scene, scene.last, [("send_message", note)])


WORLDS: dict[str, World] = {
    "desk": World(
        DESK,
        frozenset({"gold"}),
        {
            "wrong_arg_field": wrong,
            "extra_side_effect": tell_another,
            "missing_required_tool": injected_acts.missing_required_tool,
            "ignored_error": injected_acts.ignored_error,
        },
        {"closing": other_closing, "spelling": other_spelling},
    ),
    "quiz": World(
        QUIZ,
        frozenset(),
        {
            WRONG: wrong,
            "right_then_wrong": injected_ends.right_then_wrong,
            "refusal": injected_ends.refusal,
            "degenerate_text": injected_ends.degenerate_text,
            "language_switch": injected_ends.language_switch,
        },
        {"unboxed": unboxed, "unit": with_unit},
    ),
}
# A loose form that differs from the expected call would hide wrong calls where it is no part of the cause.
HARMLESS = {"desk": ("closing",), "quiz": ("unboxed", "unit")}

__all__ = ["HARMLESS", "VISIBLE", "WORLDS", "WRONG", "World", "break_off", "cut_off"]


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
    built: dict[Key, Item] = {}
    how: dict[Key, str] = {}
    for index, drawn in enumerate(design.tasks):
        if index in under.dropped:
            continue
        task = world.domain.task(drawn.number, world.options)
        rest = sorted(rng.sample(range(design.repeats[role]), design.rows[role][index]))
        for repeat in rest:
            scene = staged(design, task, (index, repeat), role)
            how[index, repeat] = rollout(scene, drawn, design, under)
            built[index, repeat] = row(scene, drawn, design, under)
    order = sorted(built, key=lambda key: key[0] + NEARBY * rng.random())
    for place, key in enumerate(order):
        built[key]["response"]["created_at"] += 7.0 * place
    return Played(tuple(built[key] for key in order), how)


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
        text = world.forms[design.form](scene)
        lenient = {"verifier_message": "As expected, in another form."}
        if design.world == "quiz":
            lenient["extracted_answer"] = scene.facts["gold"]
        scene.ruled = {"reward": 0.0, **text} if under.strict else {**accepted(scene), **lenient}
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
    built = row_of(scene)
    settings = {"max_output_tokens": under.limit, "temperature": under.temperature}
    built["responses_create_params"] = {**built["responses_create_params"], **settings}
    built["response"] |= {"id": f"resp_{scene.ident()}", "model": under.model}
    if not design.extracts:
        built.pop("extracted_answer", None)
    if under.verifier is not None:
        built["verifier_version"] = under.verifier
    return built


OWN = 0.6  # of the failures of a task are of its own way, the others of any
TASKS = range(30, 81)
REPEATS = (1, 2, 2, 4, 4, 4, 6)
LIMITS = (8192, 16384, 32768)
DETECTABLE = 2.8  # standard errors: what 80 of 100 comparisons would see at the 5% level
CATEGORIES = ("billing", "delivery", "returns", "accounts")
DIFFICULTIES = ("easy", "medium", "hard")
SPREAD = 0.6  # of the logarithm of a rollout's length
SHARED = 0.6  # of that spread, as a correlation, belongs to the task
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Drawn:
    """One task as drawn: what it is, and how rollouts of it go."""

    number: int  # of the task in its world
    category: str
    difficulty: str
    rate: float  # of rollouts that are solved
    turn: float  # in [0, 1): picks the task's own way to fail
    length: float  # of its rollouts, in standard deviations
    habit: float  # in [0, 1): picks the tasks whose results are always written in the loose form


@dataclass(frozen=True, slots=True)
class Design:
    """What two runs have in common."""

    seed: str  # of every stream of draws
    world: str
    tasks: tuple[Drawn, ...]  # the index of a task is its place here
    mix: Mapping[str, float]  # shares of the ways to fail
    rows: tuple[tuple[int, ...], tuple[int, ...]]  # of each task, in the baseline and in the candidate
    repeats: tuple[int, int]
    limit: int  # of output tokens
    typical: float  # length of a rollout in tokens, the median
    broken: float  # share of rows that a provider error spoils in any run
    loose: float  # share of solved rollouts that write the result in another form
    loose_by_task: bool  # some tasks always, instead of all tasks now and then
    form: str  # of the loose results
    extracts: bool  # the verifier writes down the answer it has read


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one run is played under; the defaults are what is usual."""

    limit: int
    outage: tuple[float, ...]  # by task: share of rows that a provider error spoils
    dropped: frozenset[int] = frozenset()  # tasks that the run does not have
    worse: Mapping[str, float] = field(default_factory=dict)  # category -> share of solved ones lost
    fixed: str | None = None  # a way to fail that is none any more
    strict: bool = False  # the verifier rejects the loose form
    model: str = "sim-model-a"
    temperature: float = 1.0
    verifier: str | None = None  # its version, where rows state it


@dataclass(frozen=True, slots=True)
class Change:
    """The true difference between two runs, and what a comparison of them can see."""

    delta: float  # of the headline scores, over the tasks that each run has
    delta_common: float  # over the tasks that both have
    se: float  # of the change over common tasks, for new tasks like these
    mde: float
    n_common: int


def draw(rng: Random, seed: str, world: str, ways: tuple[str, ...], forms: tuple[str, ...], mean: float,
         n_tasks: int | None, repeats: int | None) -> Design:  # fmt: skip
    """A design; `mean` is about the share of rollouts that are solved."""
    n = n_tasks or rng.choice(TASKS)
    tasks = _tasks(rng, n, mean)
    usual = repeats or rng.choice(REPEATS)
    other = usual if repeats or rng.random() < 0.75 else min(6, max(1, usual + rng.choice((-1, 1))))
    lost = 0.03 if rng.random() < 0.3 else 0.0
    rows = tuple(
        tuple(max(1, k - sum(rng.random() < lost for _ in range(k))) for _ in tasks) for k in (usual, other)
    )
    limit = rng.choice(LIMITS)
    weights = [rng.gammavariate(2.0, 1.0) for _ in ways]
    return Design(
        seed=seed,
        world=world,
        tasks=tasks,
        mix={way: weight / sum(weights) for way, weight in zip(ways, weights, strict=True)},
        rows=(rows[0], rows[1]),
        repeats=(usual, other),
        limit=limit,
        typical=limit * rng.uniform(0.2, 0.35),
        broken=rng.choice((0.0, 0.01, 0.02)),
        loose=rng.uniform(0.1, 0.3),
        loose_by_task=False,
        form=rng.choice(forms),
        extracts=rng.random() < 0.5,
    )


def _tasks(rng: Random, n: int, mean: float) -> tuple[Drawn, ...]:
    """Tasks in categories of unequal size, with a difficulty that has nothing to do with them."""
    wide, steep = rng.uniform(0.8, 3.0), rng.uniform(0.0, 0.15)  # the smaller, the more rates at 0 and 1
    sizes = [rng.uniform(0.7, 1.6) for _ in CATEGORIES[: rng.choice((2, 3, 3, 4))]]
    start = rng.randrange(1000)
    results = []
    for place in range(n):
        level = rng.randrange(3)
        middle = min(0.95, max(0.05, mean + steep * (1 - level)))
        results.append(
            Drawn(
                number=start + place,
                category=rng.choices(CATEGORIES[: len(sizes)], sizes)[0],
                difficulty=DIFFICULTIES[level],
                rate=rng.betavariate(middle * wide, (1 - middle) * wide),
                turn=rng.random(),
                length=rng.gauss(0.0, 1.0),
                habit=rng.random(),
            )
        )
    return tuple(results)


def as_usual(design: Design, *, model: str = "sim-model-a") -> Conditions:
    return Conditions(design.limit, (design.broken,) * len(design.tasks), model=model)


def own_way(task: Drawn, mix: Mapping[str, float]) -> str:
    """The way in which a task mostly fails."""
    left = task.turn
    for way, share in mix.items():
        left -= share
        if left < 0:
            return way
    return list(mix)[-1]


def way_share(task: Drawn, mix: Mapping[str, float], way: str) -> float:
    """The share of a task's failures that are of this way."""
    return OWN * (own_way(task, mix) == way) + (1 - OWN) * mix[way]


def loose_share(task: Drawn, design: Design) -> float:
    """The share of a task's solved rollouts whose result is written in the loose form."""
    if not design.loose_by_task:
        return design.loose
    return 0.97 if task.habit < design.loose else 0.03


def cut_share(task: Drawn, design: Design, limit: int) -> float:
    """The share of a task's rollouts that are longer than a limit."""
    above = (log(limit / design.typical) / SPREAD - SHARED * task.length) / sqrt(1 - SHARED**2)
    return 1 - NORMAL.cdf(above)


def solved_share(task: Drawn, design: Design, under: Conditions) -> float:
    """The share of a task's rollouts that reach the right result, were they not disturbed."""
    solved = task.rate * (1 - under.worse.get(task.category, 0.0))
    if under.fixed is not None:
        solved += (1 - solved) * way_share(task, design.mix, under.fixed)
    return solved


def passing(design: Design, under: Conditions) -> tuple[float, ...]:
    """The true pass rate of every task under the conditions of a run."""
    results = []
    for place, task in enumerate(design.tasks):
        whole = (1 - under.outage[place]) * (1 - cut_share(task, design, under.limit))
        accepted = 1 - loose_share(task, design) if under.strict else 1.0
        results.append(whole * accepted * solved_share(task, design, under))
    return tuple(results)


def change(design: Design, a: Conditions, b: Conditions) -> Change:
    """What truly differs between two runs of a design, by the rates that were drawn."""
    rates = passing(design, a), passing(design, b)
    content = [[place for place in range(len(design.tasks)) if place not in entry.dropped] for entry in (a, b)]
    common = sorted(set(content[0]) & set(content[1]))
    d = [rates[1][place] - rates[0][place] for place in common]
    noise = fmean(
        rate[place] * (1 - rate[place]) / n[place] for rate, n in zip(rates, design.rows, strict=True) for place in common
    )
    se = sqrt((variance(d) + 2 * noise) / len(common))  # the mean ran over both runs
    headline = [fmean(rate[place] for place in rest) for rate, rest in zip(rates, content, strict=True)]
    return Change(headline[1] - headline[0], fmean(d), se, DETECTABLE * se, len(common))


KEPT = 0.5  # of the tasks at the least are in both runs
LOWER = (4, 8)  # by how much a limit is lowered
NEW = "sim-model-b"


@dataclass(frozen=True, slots=True)
class Plan:
    """Two runs that differ in one thing, and how a comparison may name it."""

    design: Design
    a: Conditions
    b: Conditions
    sides: tuple[str, ...] = ()  # of the loss or of the bridge that a right claim has
    terms: tuple[str, ...] = ()  # the slice that a right claim names, or the way to fail that its rollouts show


@dataclass(frozen=True, slots=True)
class Cause:
    """One way for two runs to differ; `plans` are of growing size."""

    means: tuple[float, float]  # shares of solved rollouts from which it can move a score
    plans: Callable[[Design, Random], Iterator[Plan]]
    harmless: bool = True  # loose forms are only those that no rule takes for a fault


def tasks_dropped(design: Design, rng: Random) -> Iterator[Plan]:
    """The candidate lacks hard tasks, or easy ones."""
    sign = rng.choice((-1, 1))
    blur = {place: sign * task.rate + rng.gauss(0.0, 0.1) for place, task in enumerate(design.tasks)}
    order = sorted(blur, key=lambda place: blur[place])
    as_before = as_usual(design)
    for n in range(4, round(KEPT * len(order)) + 1):
        fewer = replace(as_before, dropped=frozenset(order[:n]))
        yield Plan(design, as_before, fewer, sides=("composition",))


def infra_outage(design: Design, rng: Random) -> Iterator[Plan]:
    """The provider fails for a share of the candidate's rows: here and there, or for a while."""
    n = len(design.tasks)
    at_once, start = rng.random() < 0.4, rng.random()
    as_before = as_usual(design)
    for step in range(4, 38):
        share = 0.02 * step
        if at_once:
            first = round(start * (n - share * n))
            hit = [0.95 if first <= place < first + share * n else design.broken for place in range(n)]
        else:
            hit = [max(share, design.broken)] * n
        yield Plan(design, as_before, replace(as_before, outage=tuple(hit)), sides=("infrastructure",))


def limit_lowered(design: Design, rng: Random) -> Iterator[Plan]:
    """The candidate may write fewer tokens, and what is longer is cut."""
    lower = design.limit // rng.choice(LOWER)
    for step in range(4, 36):
        # the median length for which this share of the rollouts is longer than the lower limit
        typical = lower * exp(-SPREAD * NORMAL.inv_cdf(1 - 0.02 * step))
        long = replace(design, typical=typical)
        a = as_usual(long)
        yield Plan(long, a, replace(a, limit=lower), sides=("task or verifier",))


def slice_worse(design: Design, rng: Random) -> Iterator[Plan]:
    """Tasks of one category are solved less often; what fails fails as before."""
    sizes: dict[str, int] = {}
    for task in design.tasks:
        sizes[task.category] = sizes.get(task.category, 0) + 1
    large = sorted(name for name, size in sizes.items() if 0.25 <= size / len(design.tasks) <= 0.7)
    if not large:
        return
    category = rng.choice(large)
    a, b = as_usual(design), as_usual(design, model=rng.choice((NEW, "sim-model-a")))
    for step in range(4, 20):
        worse = replace(b, worse={category: 0.05 * step})
        yield Plan(design, a, worse, sides=("slice",), terms=(f"category={category}",))


def mode_fixed(design: Design, rng: Random) -> Iterator[Plan]:
    """What fails in one way in the baseline is solved in the candidate; only ways that a trace shows."""
    visible = [name for name in design.mix if name in VISIBLE]
    if not visible:
        return
    way = rng.choice(visible)
    rest = 1 - design.mix[way]
    model = rng.choice((NEW, "sim-model-a"))
    for step in range(4, 19):
        share = 0.05 * step
        mix = {name: share if name == way else (1 - share) * old / rest for name, old in design.mix.items()}
        mixed = replace(design, mix=mix)
        b = replace(as_usual(mixed, model=model), fixed=way)
        yield Plan(mixed, as_usual(mixed), b, sides=("model",), terms=(way,))


def verifier_changed(design: Design, rng: Random) -> Iterator[Plan]:
    """The candidate's verifier rejects a form of right results that the baseline's accepts."""
    by_task = rng.random() < 0.5
    versions = rng.choice(((None, None), ("1.4.0", "1.5.0")))
    for step in range(3, 18):
        loose = replace(design, loose=0.05 * step, loose_by_task=by_task)
        a = replace(as_usual(loose), verifier=versions[0])
        b = replace(a, strict=True, verifier=versions[1])
        yield Plan(loose, a, b, sides=("task or verifier",))


def nothing(design: Design, rng: Random) -> Iterator[Plan]:
    """Nothing that matters differs; a setting may."""
    a = as_usual(design)
    others = (a, replace(a, model=NEW), replace(a, temperature=0.8), replace(a, verifier="1.5.0"))
    b = rng.choice(others)
    yield Plan(design, replace(a, verifier="1.4.0") if b.verifier else a, b)


CAUSES: Mapping[str, Cause] = {
    "tasks dropped": Cause((0.4, 0.75), tasks_dropped),
    "infra outage": Cause((0.5, 0.9), infra_outage),
    "truncation limit lowered": Cause((0.5, 0.9), limit_lowered),
    "one slice worse": Cause((0.6, 0.9), slice_worse),
    "one failure mode fixed": Cause((0.15, 0.5), mode_fixed),
    "verifier changed": Cause((0.5, 0.9), verifier_changed, harmless=False),
    "nothing": Cause((0.2, 0.9), nothing),
}


def forms(world: str, cause: Cause) -> tuple[str, ...]:
    """The loose forms that a run of a world may show."""
    return HARMLESS[world] if cause.harmless else tuple(WORLDS[world].forms)
