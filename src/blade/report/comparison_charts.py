"""Draw a comparison: the bridge, the tasks against noise, the buckets before and after, checkpoints, cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from blade import hostile, number_format
from blade.model import Comparison, Placed, Report, TaskResult
from blade.report import comparison_words as say
from blade.report.blocks import Figure, Line, line
from blade.report.comparison_pages import score_name
from blade.report.comparison_terms import BUCKET_ORDER, folded, key
from blade.report.comparison_words import cited
from blade.report.queried_numbers import count
from blade.report.run_charts import (
    BAR,
    INK,
    INTERVAL,
    MAX_RUNS,
    ROWS,
    RULE,
    SAID,
    SIDES,
    SOFT,
    WIDTH,
    Chart,
    Spec,
    coloured,
    distinct,
    figure,
    layer,
    measured,
    sampled,
    spec,
    used,
)  # fmt: skip

NAMES = ("bridge", "scatter", "transitions", "series", "front")
MAX_TERMS = 14  # bars of a bridge; the smaller ones share one
COLOURS = {**SIDES, "composition": "#0072B2", "missing": "#7A869A", "several": RULE}
MOVED = {"better": "#009E73", "worse": "#D55E00", "noise": "#8FA3B8"}
MOVED_NAMES = {"better": "better", "worse": "worse", "noise": "within noise"}


def drawn(report: Report, prefix: str = "", draw: bool = True) -> tuple[Figure, ...]:
    """Every figure the comparisons of a report have the numbers for; files are numbered, never named.

    Without `draw` they have their captions and no drawing.
    """
    figures: list[Figure] = []
    shown = [one for one in report.comparisons if one.refused is None and not one.identical][:MAX_RUNS]
    of_pair: dict[str, Callable[[Report, Comparison], Chart | None]] = {
        "bridge": bridge_chart, "scatter": scatter_chart, "transitions": transitions_chart,
    }  # fmt: skip
    of_all: dict[str, Callable[[Report], Chart | None]] = {"series": series_chart, "front": front_chart}
    for place, one in enumerate(shown, 1):
        end = "" if len(report.comparisons) == 1 else f"-{place}"
        for name, chart_of in of_pair.items():
            if chart := chart_of(report, one):
                figures.append(figure(name, key(one), f"{prefix}{name}{end}.svg", chart, draw))
    for name, chart_of_all in of_all.items():
        if chart := chart_of_all(report):
            figures.append(figure(name, None, f"{prefix}{name}.svg", chart, draw))
    return tuple(figures)


def _pair(comparison: Comparison) -> str:
    return f"{hostile.line(comparison.baseline, 40)} → {hostile.line(comparison.candidate, 40)}"


def _times(is_rate: bool) -> float:
    """What a score is multiplied by on an axis: rates are drawn in percent."""
    return 100.0 if is_rate else 1.0


# ---- The bridge ----------------------------------------------------------------------------------


def bridge_chart(report: Report, comparison: Comparison) -> Chart | None:
    """Floating bars from the score of the baseline to that of the candidate, whiskers as intervals."""
    start, end = comparison.score_baseline, comparison.score_candidate
    if not comparison.bridge or start is None or end is None:
        return None
    is_rate, of = say.is_rate(comparison.score_name), say.score_label(comparison.score_name)
    steps = _steps(comparison, start, is_rate)
    values = [
        {"label": "baseline", "total": start * _times(is_rate), "said": number_format.level(start, is_rate)},
        *steps,
        {"label": "candidate", "total": end * _times(is_rate), "said": number_format.level(end, is_rate)},
    ]
    labels = distinct([str(value["label"]) for value in values])
    for place, value in enumerate(values):
        value["label"], value["end"] = labels[place], float(value.get("to", value.get("total", 0.0)))
        value["next"] = labels[min(place + 1, len(labels) - 1)]
        value["right"] = max(_ends(value))
    colours = used(COLOURS, steps, "side")
    colours |= {value["side"]: BAR for value in steps if value["side"] not in colours}
    n = number_format.count(len(comparison.alignment.common), "task")
    delta = number_format.change(comparison.delta, is_rate)
    about = f"{_pair(comparison)} · {delta} of {of} · {n} in common"
    layers = _bridge_layers(values, colours, f"{of}, %" if is_rate else of)
    caption = "The change of {} as terms that add up to {}: bars, the terms; lines, 95% intervals; diamonds, the two scores."
    title = "From the baseline's score to the candidate's"
    return spec(title, about, WIDTH - 240, {"step": 27}, layers, values), line(caption, of, cited(comparison).change("delta"))


def _ends(value: Spec) -> list[float]:
    return [value[name] for name in ("total", "from", "to", "low", "high") if value.get(name) is not None]


def _steps(comparison: Comparison, start: float, is_rate: bool) -> list[Spec]:
    """One floating bar per term, each starting where the last ended; the smaller ones share the last."""
    shown, left = folded(comparison.bridge, MAX_TERMS)
    terms = [(say.term(term.term, 60), term.side, term.value, term.low, term.high) for term in shown]
    if left:
        terms.append((f"{len(left)} smaller terms", "several", math.fsum(term.value for term in left), None, None))
    steps: list[Spec] = []
    at, by = start, _times(is_rate)
    for name, side, value, low, high in terms:
        ends = [(at + end) * by if end is not None and math.isfinite(end) else None for end in (low, high)]
        steps.append(
            {
                "label": name, "side": hostile.line(side, 30), "from": at * by, "to": (at + value) * by,
                "low": ends[0], "high": ends[1], "said": number_format.change(value, is_rate).removesuffix(" points"),
            }
        )  # fmt: skip
        at += value
    return steps


def _bridge_layers(values: list[Spec], colours: dict[str, str], title: str) -> list[Spec]:
    seen = [end for value in values for end in _ends(value)]
    low, room = min(seen), (max(seen) - min(seen)) or 1.0
    domain = [low - 0.04 * room, max(seen) + 0.14 * room]
    x: Spec = {"title": title, "scale": {"domain": domain, "zero": False, "nice": False}}
    colour = coloured("side", colours, {})
    link = {"type": "rule", "color": RULE, "strokeWidth": 1}
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 110, "color": INK, "opacity": 1}
    bar, rule = {"type": "bar", "height": 15}, {"type": "rule", "color": INK, "strokeWidth": 1.2}
    return [
        layer(link, y=ROWS, y2={"field": "next"}, x=measured(x, "end")),
        layer(bar, "isValid(datum.to)", y=ROWS, x=measured(x, "from"), x2={"field": "to"}, color=colour),
        layer(rule, INTERVAL, y=ROWS, x=measured(x, "low"), x2={"field": "high"}),
        layer(diamond, "isValid(datum.total)", y=ROWS, x=measured(x, "total")),
        layer({**SAID, "dx": 7}, y=ROWS, x=measured(x, "right"), text={"field": "said"}),
    ]


# ---- Tasks against the band that noise alone would fill ------------------------------------------

MAX_SPOTS = 400  # distinct points; more are gathered on a grid
GRID = 25  # steps of that grid along each axis
EXACT = 100  # repeats up to which the band is exact; beyond, a normal approximation serves
Z = 1.959963984540054  # 97.5% of the normal distribution


class Spot(NamedTuple):
    """Tasks that share a rate in the baseline and one in the candidate."""

    x: float
    y: float
    n: int
    side: str  # better, worse (both outside the band), or noise


class Scatter(NamedTuple):
    spots: tuple[Spot, ...]
    n_tasks: int
    repeats: tuple[int, int]  # the usual ones of a task, by which the band is drawn
    band: tuple[tuple[float, float, float], ...]  # rate in the baseline, lowest and highest in the candidate
    gathered: bool  # spots stand for cells of a grid


def scatter(report: Report, comparison: Comparison) -> Scatter | None:
    """The common tasks as points; None where the report lacks them, or where tasks have no repeats."""
    is_rate = say.is_rate(comparison.score_name)
    before, after = (_tasks(report, name, is_rate) for name in (comparison.baseline, comparison.candidate))
    other = say.candidate_keys(comparison)
    keys = [(key, other.get(key, key)) for key in comparison.alignment.common]
    keys = [(a, b) for a, b in keys if a in before and b in after]
    if not keys:
        return None
    pairs = Counter((*before[a], *after[b]) for a, b in keys)
    repeats = _usual(pairs)
    if is_rate and repeats == (1, 1):  # four corners, which the buckets before and after tell as well
        return None
    half = _half_width(comparison, repeats)
    spots: Counter[tuple[float, float, str]] = Counter()
    for (sum_a, n_a, sum_b, n_b), n in pairs.items():
        x, y = sum_a / n_a, sum_b / n_b
        if is_rate:
            noise = is_noise(round(sum_a), n_a, round(sum_b), n_b)
        else:
            noise = half is None or abs(y - x) <= half
        spots[x, y, "noise" if noise or x == y else "better" if y > x else "worse"] += n
    gathered = len(spots) > MAX_SPOTS
    spots = _gathered(spots) if gathered else spots
    points = tuple(Spot(x, y, n, side) for (x, y, side), n in sorted(spots.items()))
    low, high = _range(points)
    band = binary_band(*repeats) if is_rate else _wide_band(half, low, high)
    return Scatter(points, len(keys), repeats, band, gathered)


def _range(spots: tuple[Spot, ...]) -> tuple[float, float]:
    values = [value for spot in spots for value in (spot.x, spot.y)]
    return min(values), max(values)


def _tasks(report: Report, run: str, is_rate: bool) -> dict[str, tuple[float, int]]:
    """Task -> passes (or sum of rewards) and repeats."""
    sums = {task.task: (_total(task, is_rate), task.n) for task in report.tasks if task.run == run and task.n}
    return {task: (total, n) for task, (total, n) in sums.items() if total is not None}


def _total(task: TaskResult, is_rate: bool) -> float | None:
    if is_rate:
        return None if task.passed is None else float(task.passed)
    if task.mean_reward is None or not math.isfinite(task.mean_reward):
        return None
    return task.mean_reward * task.n


def _usual(pairs: Counter[tuple[float, int, float, int]]) -> tuple[int, int]:
    """The most frequent numbers of repeats; of equally frequent ones the largest."""
    seen: Counter[tuple[int, int]] = Counter()
    for (_, n_a, _, n_b), n in pairs.items():
        seen[n_a, n_b] += n
    return max(seen, key=lambda repeats: (seen[repeats], min(repeats), max(repeats)))


def _half_width(comparison: Comparison, repeats: tuple[int, int]) -> float | None:
    """How far the difference of two task means of one model strays in 95 of 100 cases."""
    power = comparison.power
    if power is None or power.sigma2_a is None or power.sigma2_b is None:
        return None
    return Z * math.sqrt(max(0.0, power.sigma2_a / repeats[0] + power.sigma2_b / repeats[1]))


def is_noise(c_a: int, n_a: int, c_b: int, n_b: int) -> bool:
    """Whether one rate for both runs gives such counts in more than 5 of 100 cases (Fisher, two-sided)."""
    if max(n_a, n_b) > EXACT:
        rate = (c_a + c_b) / (n_a + n_b)
        se = math.sqrt(rate * (1 - rate) * (1 / n_a + 1 / n_b))
        return abs(c_b / n_b - c_a / n_a) <= Z * se + 1e-12
    return c_b in _likely(n_a, n_b, c_a + c_b)


@lru_cache(maxsize=4096)
def _likely(n_a: int, n_b: int, total: int) -> frozenset[int]:
    """The passes of the candidate, of `total` in both runs, that noise would give."""
    possible = range(max(0, total - n_a), min(n_b, total) + 1)
    ways = {c: math.comb(n_b, c) * math.comb(n_a, total - c) for c in possible}
    everything = sum(ways.values())
    return frozenset(c for c, w in ways.items() if 20 * sum(v for v in ways.values() if v <= w) > everything)


def binary_band(n_a: int, n_b: int) -> tuple[tuple[float, float, float], ...]:
    """For every rate in the baseline the lowest and highest in the candidate that noise would give."""
    band = []
    for c_a in range(0, n_a + 1, max(1, n_a // 50)):
        inside = [c_b for c_b in range(n_b + 1) if is_noise(c_a, n_a, c_b, n_b)]
        band.append((c_a / n_a, min(inside) / n_b, max(inside) / n_b))
    return tuple(band)


def _wide_band(half: float | None, low: float, high: float) -> tuple[tuple[float, float, float], ...]:
    if half is None or low == high:
        return ()
    steps = [low + step * (high - low) / 40 for step in range(41)]
    return tuple((x, x - half, x + half) for x in steps)


def _gathered(spots: Counter[tuple[float, float, str]]) -> Counter[tuple[float, float, str]]:
    """The spots moved to the nearest point of a grid over their range."""
    values = [value for x, y, _ in spots for value in (x, y)]
    low, step = min(values), (max(values) - min(values)) / GRID or 1.0
    grid: Counter[tuple[float, float, str]] = Counter()
    for (x, y, side), n in spots.items():
        grid[low + round((x - low) / step) * step, low + round((y - low) / step) * step, side] += n
    return grid


def scatter_chart(report: Report, comparison: Comparison) -> Chart | None:
    """Each task's rate in both runs, larger where more tasks share it, over the band of noise."""
    points = scatter(report, comparison)
    if points is None:
        return None
    is_rate = say.is_rate(comparison.score_name)
    about = f"{_pair(comparison)} · {number_format.count(points.n_tasks, 'task')}"
    layers = _scatter_layers(points, is_rate, "pass rate" if is_rate else "mean reward")
    return spec("Each task in both runs", about, 400, 400, layers), _scatter_caption(points, is_rate)


def _padded(points: Scatter, is_rate: bool) -> list[tuple[float, float, float]]:
    """The band, half a rollout wider than the outermost rates inside it, so that they lie inside.

    It is cut to the axes here: clipping numbers its paths, and no two drawings would be the same.
    """
    if not is_rate:
        low, high = _domain(points, is_rate)
        return [(x, max(low, bottom), min(high, top)) for x, bottom, top in points.band]
    half = min(0.04, 0.5 / points.repeats[1])
    edge = [(x, max(-0.05, low - half), min(1.05, high + half)) for x, low, high in points.band]
    return [(-0.05, *edge[0][1:]), *edge, (1.05, *edge[-1][1:])]


def _domain(points: Scatter, is_rate: bool) -> tuple[float, float]:
    low, high = (0.0, 1.0) if is_rate else _range(points.spots)
    pad = 0.05 * ((high - low) or 1.0)
    return low - pad, high + pad


def _scatter_layers(points: Scatter, is_rate: bool, of: str) -> list[Spec]:
    low, high = _domain(points, is_rate)
    axis: Spec = {"format": "%", "tickCount": 5} if is_rate else {"tickCount": 5}
    both: Spec = {"axis": axis, "scale": {"domain": [low, high], "nice": False, "zero": False}}
    x, y = {**both, "title": f"{of}, baseline"}, {**both, "title": f"{of}, candidate"}
    most = max(spot.n for spot in points.spots)
    area_of = {"domain": [0, most], "range": [0, 900 if most > 1 else 40]}
    size = {"field": "n", "type": "quantitative", "legend": None, "scale": area_of}
    spots: list[Spec] = [{"x": s.x, "y": s.y, "n": s.n, "side": MOVED_NAMES[s.side]} for s in points.spots]
    sides = used({MOVED_NAMES[name]: colour for name, colour in MOVED.items()}, spots, "side")
    colour = coloured("side", sides, {"symbolType": "circle", "symbolOpacity": 1})
    band: list[Spec] = [{"x": x, "low": low, "high": high} for x, low, high in _padded(points, is_rate)]
    area = {"type": "area", "color": "#e9edf2", "opacity": 0.9}
    diagonal = {"type": "line", "color": RULE, "strokeWidth": 1, "strokeDash": [4, 3]}
    dot = {"type": "circle", "opacity": 0.85, "stroke": "white", "strokeWidth": 0.5}
    ends: list[Spec] = [{"x": low, "y": low}, {"x": high, "y": high}]
    layers = [layer(area, values=band, x=measured(x, "x"), y=measured(y, "low"), y2={"field": "high"})] if band else []
    return [
        *layers,
        layer(diagonal, values=ends, x=measured(x, "x"), y=measured(y, "y")),
        layer(dot, values=spots, x=measured(x, "x"), y=measured(y, "y"), size=size, color=colour),
    ]


def _scatter_caption(points: Scatter, is_rate: bool) -> Line:
    text = "Each task's rate in the baseline and in the candidate; larger where more tasks share the point"
    text += ", gathered on a grid. " if points.gathered else ". "
    if not points.band:
        return (f"{text}No band of noise: these rows do not show how much repeats of a task vary.",)
    if is_rate and all(low <= 0 and high >= 1 for _, low, high in points.band):
        return (f"{text}At so few repeats noise alone can give any one of these points.",)
    how = "Fisher's exact test" if is_rate else "the variance between repeats"
    return (f"{text}Grey band: what noise alone gives in at least 95 of 100 cases ({how}).",)


# ---- Buckets before and after --------------------------------------------------------------------


def transitions_chart(report: Report, comparison: Comparison) -> Chart | None:
    """Tasks by bucket before and after: the more tasks, the stronger the colour."""
    if not comparison.transitions:
        return None
    place: Spec = {"type": "nominal", "sort": list(BUCKET_ORDER)}
    x = {"field": "after", **place, "axis": {"title": "in the candidate", "orient": "top", "labelAngle": 0}}
    y = {"field": "before", **place, "axis": {"title": "in the baseline"}}
    unit = {"domain": [0, 1], "range": [0, 1]}
    weight = {"field": "weight", "type": "quantitative", "legend": None, "scale": unit}
    colours = {"better": MOVED["better"], "worse": MOVED["worse"], "same": "#9AA3AE"}
    number = {"type": "text", "fontSize": 16, "fontWeight": "bold", "color": INK, "dy": -6}
    layers = [
        layer({"type": "rect", "stroke": RULE}, x=x, y=y, color=coloured("side", colours, None), opacity=weight),
        layer(number, x=x, y=y, text={"field": "n"}),
        layer({"type": "text", "fontSize": 10.5, "color": INK, "dy": 11}, x=x, y=y, text={"field": "sure"}),
    ]
    caption = (
        "Tasks by bucket in the baseline (rows) and in the candidate (columns); sure: with a posterior "
        "probability of at least 0.8 that the bucket changed, on the diagonal that it did not."
    )
    about = f"{_pair(comparison)} · tasks"
    return spec("Buckets before and after", about, 330, 210, layers, _moves(comparison)), (caption,)


def _moves(comparison: Comparison) -> list[Spec]:
    """The nine cells."""
    most = max(move.n for move in comparison.transitions) or 1
    counts = {(move.before, move.after): (move.n, move.sure) for move in comparison.transitions}
    values: list[Spec] = []
    for before in BUCKET_ORDER:
        for after in BUCKET_ORDER:
            n, sure = counts.get((before, after), (0, 0))
            step = BUCKET_ORDER.index(after) - BUCKET_ORDER.index(before)
            values.append(
                {
                    "before": before, "after": after, "n": f"{n:,}", "sure": f"{sure:,} sure" if n else "",
                    "side": "better" if step > 0 else "worse" if step < 0 else "same",
                    "weight": 0.12 + 0.88 * math.sqrt(n / most) if n else 0.0,
                }
            )  # fmt: skip
    return values


# ---- Several runs --------------------------------------------------------------------------------

MAX_CHECKPOINTS = 60
MAX_PLACED = 40


def series_chart(report: Report) -> Chart | None:
    """The score of each checkpoint with the interval of its change from the first."""
    series = report.series
    if series is None or len(series.checkpoints) < 2:
        return None
    is_rate, of = say.is_rate(score_name(report)), say.score_label(score_name(report))
    by, first = _times(is_rate), series.checkpoints[0].score
    shown = [series.checkpoints[place] for place in sampled(len(series.checkpoints), MAX_CHECKPOINTS)]
    values: list[Spec] = [
        {
            "label": label,
            "score": point.score * by,
            "low": (first + point.low) * by if point.low is not None else None,
            "high": (first + point.high) * by if point.high is not None else None,
        }
        for label, point in zip(distinct([point.run for point in shown]), shown, strict=True)
    ]
    x = {"field": "label", "type": "nominal", "sort": None,
         "axis": {"title": None, "labelAngle": -35, "labelLimit": 140}}  # fmt: skip
    y: Spec = {"title": f"{of}, %" if is_rate else of, "scale": {"zero": False}}
    rule = {"type": "rule", "color": SOFT, "strokeWidth": 1.3}
    layers = [
        layer({"type": "line", "color": BAR}, x=x, y=measured(y, "score")),
        layer(rule, INTERVAL, x=x, y=measured(y, "low"), y2={"field": "high"}),
        layer({"type": "circle", "color": BAR, "size": 60, "opacity": 1}, x=x, y=measured(y, "score")),
    ]
    sample = "" if len(values) == len(series.checkpoints) else " An even sample of them is shown."
    caption = line(
        "{} of each checkpoint over {}; lines, 95% interval of the change from the first, set upon the first's score.{}",
        of, count(series.n_tasks, "task", "engine.series.n_tasks"), sample,
    )  # fmt: skip
    about = f"{number_format.count(series.n_tasks, 'task')} that all of them have"
    return spec("Score of each checkpoint", about, WIDTH - 60, 240, layers, values), caption


def front_chart(report: Report) -> Chart | None:
    """The score of each run against what its rollouts cost, in dollars or else in output tokens."""
    matrix = report.matrix
    if matrix is None:
        return None
    is_rate, of = say.is_rate(score_name(report)), say.score_label(score_name(report))
    by_cost = sum(run.cost is not None for run in matrix.placed) >= 2

    def cost(run: Placed) -> tuple[float | None, bool | None]:
        return (run.cost, run.on_front_cost) if by_cost else (run.tokens, run.on_front_tokens)

    shown = [run for run in matrix.placed[:MAX_PLACED] if run.score is not None and cost(run)[0] is not None]
    values: list[Spec] = [
        {
            "label": label,
            "x": cost(run)[0],
            "y": (run.score or 0.0) * _times(is_rate),
            "on": "on the front" if cost(run)[1] else "dominated",
        }
        for label, run in zip(distinct([run.run for run in shown]), shown, strict=True)
    ]
    if len(values) < 2:
        return None
    what = "cost of a rollout (USD, mean)" if by_cost else "output tokens of a rollout (mean)"
    domain = [0, 1.15 * max(value["x"] for value in values) or 1.0]
    x = measured({"title": what, "scale": {"domain": domain, "nice": False}}, "x")
    y = measured({"title": f"{of}, %" if is_rate else of, "scale": {"zero": False}}, "y")
    colours = {"on the front": MOVED["better"], "dominated": MOVED["noise"]}
    stair = {"type": "line", "color": MOVED["better"], "strokeWidth": 1, "interpolate": "step-after"}
    layers = [
        layer(stair, "datum.on == 'on the front'", x=x, y=y),
        layer({"type": "circle", "size": 80, "opacity": 1}, x=x, y=y, color=coloured("on", colours, {"symbolType": "circle"})),
        layer({**SAID, "dx": 8, "dy": -7}, x=x, y=y, text={"field": "label"}),
    ]
    about = f"{number_format.count(matrix.n_tasks, 'task')} that all runs have"
    caption = f"{of} of each run against {what}; on the front: no other run scores at least as much for less."
    return spec("Score against what it costs", about, WIDTH - 120, 260, layers, values), (caption,)
