"""Draw the charts of a diagnosis and of a comparison: their values and captions; charts.yaml specifies the pictures."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from blade import hostile, number_format
from blade.model import Cause, Comparison, Report
from blade.report import comparison_words as say
from blade.report import printed_names
from blade.report.blocks import Figure, Line
from blade.report.comparison_terms import BUCKET_ORDER, folded, key
from blade.report.phrases import LABELS, explained, line
from blade.report.queried_numbers import count, entry, num, whole
from blade.report.run_facts import Facts, facts

MAX_TASKS = 200  # points in the strip of tasks
MAX_MODES = 12  # bars of the losses; the smaller ones share the last
MAX_TERMS = 14  # bars of a bridge; likewise
MAX_RUNS = 12  # runs, and pairs of runs, that get figures of their own
MAX_CHECKPOINTS = 60
MAX_PLACED = 40
BAR = "#3b78b5"
# Colours that the colour-blind can tell apart (Okabe and Ito).
COLOURS: dict[str, dict[str, str]] = LABELS["colours"]
BUCKETS, SIDES, MOVED = COLOURS["buckets"], COLOURS["sides"], COLOURS["moved"]

Spec = dict[str, Any]


class Chart(NamedTuple):
    caption: Line
    fields: Spec  # what the specification leaves open, `values` among it


def run_figures(report: Report, draw: bool = True) -> tuple[Figure, ...]:
    """Every figure the runs of a report have the numbers for; without `draw` they have captions and no drawing."""
    runs = facts(report)
    charts: list[tuple[str, str | None, str, Chart | None]] = [("buckets", None, "", buckets_chart(runs))]
    for place, run in enumerate(runs[:MAX_RUNS], 1):
        end = "" if len(runs) == 1 else f"-{place}"  # run names are foreign text, so files are numbered, not named
        charts += [(name, run.run.name, end, chart_of(run)) for name, chart_of in RUN_CHARTS.items()]
    return _figures(charts, "", draw)


def comparison_figures(report: Report, prefix: str = "", draw: bool = True) -> tuple[Figure, ...]:
    """The same of its comparisons, then of all of them together."""
    pairs = [pair for pair in report.comparisons if pair.refused is None and not pair.identical][:MAX_RUNS]
    charts: list[tuple[str, str | None, str, Chart | None]] = []
    for place, pair in enumerate(pairs, 1):
        end = "" if len(report.comparisons) == 1 else f"-{place}"
        charts += [(name, key(pair), end, chart_of(report, pair)) for name, chart_of in PAIR_CHARTS.items()]
    return _figures([*charts, *((name, None, "", chart_of(report)) for name, chart_of in SERIES_CHARTS.items())], prefix, draw)


def _figures(charts: Iterable[tuple[str, str | None, str, Chart | None]], prefix: str, draw: bool) -> tuple[Figure, ...]:
    return tuple(
        Figure(name, run, f"{prefix}{name}{end}.svg", chart.caption, svg(name, chart.fields) if draw else "")
        for name, run, end, chart in charts if chart is not None
    )  # fmt: skip


def svg(name: str, fields: Spec) -> str:
    """The chart of this name as an SVG document; nothing is fetched for it."""
    import vl_convert

    specs = _specs()
    spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": specs["config"], **_filled(specs[name], fields)}
    spec["layer"] = [layer for layer in spec["layer"] if layer.get("data") != {"values": []}]
    text = json.dumps(spec, allow_nan=False)
    picture: str = vl_convert.vegalite_to_svg(text, vl_version="5.20", allowed_base_urls=[])
    return picture if picture.endswith("\n") else picture + "\n"


@cache
def _specs() -> Spec:
    import yaml

    specs: Spec = yaml.safe_load(Path(__file__).with_name("charts.yaml").read_text(encoding="utf-8"))
    return specs


def _filled(spec: Any, fields: Spec) -> Any:
    """The specification with the fields in their places."""
    if isinstance(spec, dict):
        return {name: _filled(part, fields) for name, part in spec.items()}
    if isinstance(spec, list):
        return [_filled(part, fields) for part in spec]
    return fields[spec[1:]] if isinstance(spec, str) and spec.startswith("$") else spec


def _coloured(colours: Mapping[str, str]) -> Spec:
    return {"names": list(colours), "colours": list(colours.values())}


def _used(colours: Mapping[str, str], values: list[Spec]) -> dict[str, str]:
    """The colours of the sides that stand in the picture."""
    sides = {value.get("side") for value in values}
    return {name: colour for name, colour in colours.items() if name in sides}


def distinct(labels: Iterable[str]) -> list[str]:
    """The labels, cleaned and short; equal ones are numbered, since a row is known by its label."""
    seen: Counter[str] = Counter()
    numbered = []
    for label in (hostile.line(label, 40) for label in labels):
        seen[label] += 1
        numbered.append(f"{label} ({seen[label]})" if seen[label] > 1 else label)
    return numbered


def _sampled(n: int, most: int) -> list[int]:
    """`most` places spread evenly over `n`, ends included; all when they fit."""
    return list(range(n)) if n <= most else [round(place * (n - 1) / (most - 1)) for place in range(most)]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _about(run: Facts, text: str) -> str:
    return f"{hostile.line(run.run.name, 60)} · {text}"


# ---- Of runs -------------------------------------------------------------------------------------


def buckets_chart(runs: tuple[Facts, ...]) -> Chart | None:
    """Tasks by bucket, one stacked bar per run."""
    judged = [run for run in runs if run.run.has_pass_rate and run.run.n_tasks]
    if not judged:
        return None
    values = []
    for label, run in zip(distinct(run.run.name for run in judged), judged, strict=True):
        start = 0
        for name in BUCKETS:
            n = len(getattr(run.buckets, name))
            values.append({"label": label, "bucket": name, "n": n, "from": start, "to": start + n})
            start += n
    readable = 0.03 * max(run.run.n_tasks for run in judged)  # narrower pieces have no room for their number
    caption = "Tasks whose repeats always, sometimes or never passed, and tasks without a scored rollout."
    return Chart((caption,), {"values": values, "readable": f"datum.n >= {readable!r}", **_coloured(BUCKETS)})


def tasks_chart(run: Facts) -> Chart | None:
    """Each task's pass rate, shrunk rate and posterior interval, sorted."""
    rated = [task for task in run.tasks if task.rate is not None]
    rated.sort(key=lambda task: (task.rate if task.shrunk is None else task.shrunk, task.rate))
    if not rated or not run.run.has_pass_rate:
        return None
    places = _sampled(len(rated), MAX_TASKS)
    names = ("rate", "shrunk", "low", "high", "bucket")
    values = [{"rank": place + 1, **{name: getattr(rated[place], name) for name in names}} for place in places]
    shown, part, is_dense = number_format.count(len(rated), "task"), "", len(values) > 100
    if len(values) < len(rated):
        shown, part = f"{len(values)} of {shown}, evenly sampled", ", an even sample of them"
    colours = _coloured({name: BUCKETS[name] for name in BUCKET_ORDER[::-1]})
    thick, tick, dot = (1.2, 5, 14) if is_dense else (2.2, 10, 30)
    fields = {"ticks": min(10, len(rated)), "end": len(rated) + 1, "thick": thick, "tick": tick, "dot": dot, **colours}
    caption = f"Pass rate of each task{part}: dot, raw; tick, shrunk; line, 95% posterior interval."
    return Chart((caption,), {"values": values, "about": _about(run, shown), **fields})


def funnel_chart(run: Facts) -> Chart | None:
    """How many expected rollouts reached each stage."""
    if run.funnel is None or not any(stage.of for stage in run.funnel.stages):
        return None
    stages = run.funnel.stages
    values: list[Spec] = []
    for label, stage in zip(distinct(stage.name for stage in stages), stages, strict=True):
        share = number_format.percent(stage.reached / stage.of if stage.of else None)
        values.append({"label": label, "reached": stage.reached, "of": stage.of, "said": f"{stage.reached:,} ({share})"})
    most = max(stage.of for stage in stages)
    caption = "Rollouts that reached each stage, of {} expected; each stage is counted on its own."
    about = _about(run, f"of {most:,} expected rollouts")
    return Chart(line(caption, whole(most, run.counted("expected"))), {"values": values, "about": about, "end": most * 1.2})


def tokens_chart(run: Facts) -> Chart | None:
    """Output tokens by outcome: mean, its interval where there is one, and median."""
    values: list[Spec] = []
    for measure in run.measures:
        is_outcome = measure.name == "output_tokens" and measure.slice not in (None, "all")
        if not is_outcome or _finite(measure.value) is None:
            continue
        outcome = hostile.line(str(measure.slice).replace("_", " "), 30)
        median = run.measure("output_tokens_median", slice=measure.slice)
        numbers = {"mean": measure.value, "low": measure.low, "high": measure.high, "median": median.value if median else None}
        label = f"{outcome} (n = {measure.n:,})"
        values.append({"outcome": outcome, "label": label, **{name: _finite(value) for name, value in numbers.items()}})
    if not values:
        return None
    colours = _coloured({value["outcome"]: COLOURS["outcomes"].get(value["outcome"], BAR) for value in values})
    caption = "Output tokens per rollout by outcome: bar, mean; diamond, median; line, 95% interval if any."
    return Chart((caption,), {"values": values, "about": _about(run, "bar: mean, diamond: median"), **colours})


def losses_chart(run: Facts) -> Chart | None:
    """Points of score by cause and mode, the largest first, coloured by who answers for them."""
    losses = [loss for loss in run.losses if _finite(loss.lost) is not None and loss.lost > printed_names.SAME]
    if len(losses) < 2 or all(loss.cause is Cause.UNDETERMINED for loss in losses):
        return None
    shown = losses if len(losses) <= MAX_MODES else losses[: MAX_MODES - 1]
    names = [f"{loss.cause.value} {hostile.line(loss.mode, 60) or '(no name)'}" for loss in shown]
    bars = [(printed_names.SIDES[loss.cause], loss.lost) for loss in shown]
    if left := losses[len(shown) :]:
        names.append(f"{len(left)} smaller modes")
        bars.append(("several", printed_names.total(left)))
    values: list[Spec] = [
        {"label": label, "side": side, "lost": lost * 100, "said": number_format.size(lost)}
        for label, (side, lost) in zip(distinct(names), bars, strict=True)
    ]
    total = number_format.size(printed_names.total(losses))
    about = _about(run, f"{total} lost over {number_format.count(run.score.n, 'task')}")
    fields = {"end": max(value["lost"] for value in values) * 1.2, **_coloured(_used(SIDES, values))}
    caption = "Points of score lost by cause and mode; all bars together are {}, exactly 1 − the score."
    lost = printed_names.total(run.losses)
    all_lost = num(number_format.size(lost), lost, f"{entry('losses', run=run.run.name)}.lost")
    return Chart(line(caption, all_lost), {"values": values, "about": about, **fields})


# ---- Of a pair: the bridge -----------------------------------------------------------------------


class _Axis(NamedTuple):
    """How the score is drawn: rates in percent."""

    is_rate: bool
    label: str
    times: float
    title: str


def _axis(score_name: str) -> _Axis:
    is_rate, label = say.is_rate(score_name), say.score_label(score_name)
    return _Axis(is_rate, label, 100.0 if is_rate else 1.0, f"{label}, %" if is_rate else label)


def _pair(comparison: Comparison) -> str:
    return f"{hostile.line(comparison.baseline, 40)} → {hostile.line(comparison.candidate, 40)}"


def bridge_chart(report: Report, comparison: Comparison) -> Chart | None:
    """Floating bars from the score of the baseline to that of the candidate, whiskers as intervals."""
    start, end = comparison.score_baseline, comparison.score_candidate
    if not comparison.bridge or start is None or end is None:
        return None
    axis = _axis(comparison.score_name)
    first, last = (
        {"label": role, "total": score * axis.times, "said": number_format.level(score, axis.is_rate)}
        for role, score in (("baseline", start), ("candidate", end))
    )
    steps = _steps(comparison, start, axis)
    values: list[Spec] = [first, *steps, last]
    labels = distinct(str(value["label"]) for value in values)
    for place, value in enumerate(values):
        value |= {"label": labels[place], "end": value["to"] if "to" in value else value["total"]}
        value |= {"next": labels[min(place + 1, len(labels) - 1)], "right": max(_ends(value))}
    colours = _used(SIDES, steps)
    colours |= {step["side"]: BAR for step in steps if step["side"] not in colours}
    seen = [end for value in values for end in _ends(value)]
    room = (max(seen) - min(seen)) or 1.0
    n = number_format.count(len(comparison.alignment.common), "task")
    about = f"{_pair(comparison)} · {number_format.change(comparison.delta, axis.is_rate)} of {axis.label} · {n} in common"
    fields = {"axis": axis.title, "domain": [min(seen) - 0.04 * room, max(seen) + 0.14 * room], **_coloured(colours)}
    caption = explained("chart of the bridge", axis.label, say.cited(comparison).change("delta"))
    return Chart(caption, {"values": values, "about": about, **fields})


def _ends(value: Spec) -> list[float]:
    return [value[name] for name in ("total", "from", "to", "low", "high") if value.get(name) is not None]


def _steps(comparison: Comparison, start: float, axis: _Axis) -> list[Spec]:
    """One floating bar per term, each starting where the last ended; the smaller ones share the last."""
    shown, left = folded(comparison.bridge, MAX_TERMS)
    terms = [(say.term(term.term, 60), term.side, term.value, term.low, term.high) for term in shown]
    if left:
        terms.append((f"{len(left)} smaller terms", "several", math.fsum(term.value for term in left), None, None))
    steps: list[Spec] = []
    for name, side, value, *interval in terms:
        low, high = ((start + end) * axis.times if _finite(end) is not None and end is not None else None for end in interval)
        change = number_format.change(value, axis.is_rate).removesuffix(" points")
        span = {"from": start * axis.times, "to": (start + value) * axis.times, "low": low, "high": high}
        steps.append({"label": name, "side": hostile.line(side, 30), **span, "said": change})
        start += value
    return steps


# ---- Of a pair: tasks against the band that noise alone would fill -------------------------------

MAX_SPOTS = 400  # distinct points; more are gathered on a grid
GRID = 25  # steps of that grid along each axis
EXACT = 100  # repeats up to which the band is exact; beyond, a normal approximation serves
Z = 1.959963984540054  # 97.5% of the normal distribution
Spots = Counter[tuple[float, float, str]]
Band = tuple[tuple[float, float, float], ...]  # rate in the baseline, lowest and highest in the candidate


class Scatter(NamedTuple):
    spots: Spots  # rate in the baseline, in the candidate, and one of MOVED -> tasks that share them
    n_tasks: int
    repeats: tuple[int, int]  # the usual ones of a task, by which the band is drawn
    band: Band
    is_gathered: bool  # spots stand for cells of a grid


def scatter(report: Report, comparison: Comparison) -> Scatter | None:
    """The common tasks as points; None where the report lacks them, or where tasks have no repeats."""
    is_rate = say.is_rate(comparison.score_name)
    before, after = (_totals(report, name, is_rate) for name in say.pair(comparison))
    other = say.candidate_keys(comparison)
    keys = [(key, other.get(key, key)) for key in comparison.alignment.common]
    pairs = Counter((*before[a], *after[b]) for a, b in keys if a in before and b in after)
    if not pairs:
        return None
    seen: Counter[tuple[int, int]] = Counter()
    for (_, n_a, _, n_b), n in pairs.items():
        seen[n_a, n_b] += n
    repeats = max(seen, key=lambda pair: (seen[pair], min(pair), max(pair)))  # of equally frequent ones the largest
    if is_rate and repeats == (1, 1):  # four corners, which the buckets before and after tell as well
        return None
    power, half = comparison.power, None  # how far two task means of one model differ in 95 of 100 cases
    if power is not None and power.sigma2_a is not None and power.sigma2_b is not None:
        half = Z * math.sqrt(max(0.0, power.sigma2_a / repeats[0] + power.sigma2_b / repeats[1]))
    spots: Spots = Counter()
    for (sum_a, n_a, sum_b, n_b), n in pairs.items():
        x, y = sum_a / n_a, sum_b / n_b
        is_within = is_noise(round(sum_a), n_a, round(sum_b), n_b) if is_rate else half is None or abs(y - x) <= half
        spots[x, y, "within noise" if is_within or x == y else "better" if y > x else "worse"] += n
    is_gathered = len(spots) > MAX_SPOTS
    spots = _gathered(spots) if is_gathered else spots
    band = binary_band(*repeats) if is_rate else _wide_band(half, *_range(spots))
    return Scatter(spots, pairs.total(), repeats, band, is_gathered)


def _range(spots: Spots) -> tuple[float, float]:
    values = [value for x, y, _ in spots for value in (x, y)]
    return min(values), max(values)


def _totals(report: Report, run: str, is_rate: bool) -> dict[str, tuple[float, int]]:
    """Task -> passes (or sum of rewards) and repeats."""
    tasks = [task for task in report.tasks if task.run == run and task.n]
    if is_rate:
        return {task.task: (float(task.passed), task.n) for task in tasks if task.passed is not None}
    means = ((task, _finite(task.mean_reward)) for task in tasks)
    return {task.task: (mean * task.n, task.n) for task, mean in means if mean is not None}


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


def binary_band(n_a: int, n_b: int) -> Band:
    """For every rate in the baseline the lowest and highest in the candidate that noise would give."""
    band = []
    for c_a in range(0, n_a + 1, max(1, n_a // 50)):
        inside = [c_b for c_b in range(n_b + 1) if is_noise(c_a, n_a, c_b, n_b)]
        band.append((c_a / n_a, min(inside) / n_b, max(inside) / n_b))
    return tuple(band)


def _wide_band(half: float | None, low: float, high: float) -> Band:
    steps = [low + step * (high - low) / 40 for step in range(41)]
    return () if half is None or low == high else tuple((x, x - half, x + half) for x in steps)


def _gathered(spots: Spots) -> Spots:
    """The spots moved to the nearest point of a grid over their range."""
    low, high = _range(spots)
    step = (high - low) / GRID or 1.0
    grid: Spots = Counter()
    for (x, y, side), n in spots.items():
        grid[low + round((x - low) / step) * step, low + round((y - low) / step) * step, side] += n
    return grid


def scatter_chart(report: Report, comparison: Comparison) -> Chart | None:
    """Each task's rate in both runs, larger where more tasks share it, over the band of noise."""
    if (points := scatter(report, comparison)) is None:
        return None
    is_rate = say.is_rate(comparison.score_name)
    score = "pass rate" if is_rate else "mean reward"
    low, high = (0.0, 1.0) if is_rate else _range(points.spots)
    pad, most = 0.05 * ((high - low) or 1.0), max(points.spots.values())
    low, high = low - pad, high + pad
    values = [{"x": x, "y": y, "n": n, "side": side} for (x, y, side), n in sorted(points.spots.items())]
    fields = {
        "values": values, "axis": {"format": "%", "tickCount": 5} if is_rate else {"tickCount": 5}, "domain": [low, high],
        "band": [dict(zip(("x", "low", "high"), edge, strict=True)) for edge in _padded(points, is_rate, low, high)],
        "diagonal": [{"x": end, "y": end} for end in (low, high)], "before": f"{score}, baseline", "after": f"{score}, candidate",
        "most": most, "area": 900 if most > 1 else 40, "about": f"{_pair(comparison)} · {number_format.count(points.n_tasks, 'task')}",
    }  # fmt: skip
    return Chart((_scatter_caption(points, is_rate),), {**fields, **_coloured(_used(MOVED, values))})


def _padded(points: Scatter, is_rate: bool, low: float, high: float) -> Band:
    """The band, half a rollout wider than its outermost rates; cut to the axes here, as clipping numbers its paths anew in each drawing."""
    if not is_rate:
        return tuple((x, max(low, bottom), min(high, top)) for x, bottom, top in points.band)
    half = min(0.04, 0.5 / points.repeats[1])
    edge = [(x, max(-0.05, bottom - half), min(1.05, top + half)) for x, bottom, top in points.band]
    return ((-0.05, *edge[0][1:]), *edge, (1.05, *edge[-1][1:]))


def _scatter_caption(points: Scatter, is_rate: bool) -> str:
    grid = ", gathered on a grid" if points.is_gathered else ""
    text = f"Each task's rate in the baseline and in the candidate; larger where more tasks share the point{grid}. "
    if not points.band:
        return f"{text}No band of noise: these rows do not show how much repeats of a task vary."
    if is_rate and all(low <= 0 and high >= 1 for _, low, high in points.band):
        return f"{text}At so few repeats noise alone can give any one of these points."
    how = "Fisher's exact test" if is_rate else "the variance between repeats"
    return f"{text}Grey band: what noise alone gives in at least 95 of 100 cases ({how})."


def transitions_chart(report: Report, comparison: Comparison) -> Chart | None:
    """Tasks by bucket before and after, nine cells: the more tasks, the stronger the colour."""
    if not comparison.transitions:
        return None
    most = max(move.n for move in comparison.transitions) or 1
    counts = {(move.before, move.after): (move.n, move.sure) for move in comparison.transitions}
    values: list[Spec] = []
    for row, before in enumerate(BUCKET_ORDER):
        for column, after in enumerate(BUCKET_ORDER):
            n, sure = counts.get((before, after), (0, 0))
            side = "better" if column > row else "worse" if column < row else "same"
            weight = 0.12 + 0.88 * math.sqrt(n / most) if n else 0.0
            texts = {"n": f"{n:,}", "sure": f"{sure:,} sure" if n else ""}
            values.append({"before": before, "after": after, **texts, "side": side, "weight": weight})
    fields = {"about": f"{_pair(comparison)} · tasks", "buckets": list(BUCKET_ORDER), **_coloured(COLOURS["steps"])}
    return Chart(explained("chart of buckets"), {"values": values, **fields})


# ---- Of several runs -----------------------------------------------------------------------------


def series_chart(report: Report) -> Chart | None:
    """The score of each checkpoint with the interval of its change from the first."""
    series = report.series
    if series is None or len(series.checkpoints) < 2:
        return None
    axis, first = _axis(say.report_score_name(report)), series.checkpoints[0].score
    shown = [series.checkpoints[place] for place in _sampled(len(series.checkpoints), MAX_CHECKPOINTS)]
    values: list[Spec] = []
    for label, point in zip(distinct(point.run for point in shown), shown, strict=True):
        low, high = ((first + end) * axis.times if end is not None else None for end in (point.low, point.high))
        values.append({"label": label, "score": point.score * axis.times, "low": low, "high": high})
    sampled = "" if len(values) == len(series.checkpoints) else " An even sample of them is shown."
    n = count(series.n_tasks, "task", "engine.series.n_tasks")
    caption = explained("chart of checkpoints", axis.label, n, sampled)
    about = f"{number_format.count(series.n_tasks, 'task')} that all of them have"
    return Chart(caption, {"values": values, "about": about, "axis": axis.title})


def front_chart(report: Report) -> Chart | None:
    """The score of each run against what its rollouts cost, in dollars or else in output tokens."""
    if (matrix := report.matrix) is None:
        return None
    axis, by_cost = _axis(say.report_score_name(report)), sum(run.cost is not None for run in matrix.placed) >= 2
    what = "cost of a rollout (USD, mean)" if by_cost else "output tokens of a rollout (mean)"

    cost, front = ("cost", "on_front_cost") if by_cost else ("tokens", "on_front_tokens")
    shown = [run for run in matrix.placed[:MAX_PLACED] if run.score is not None and getattr(run, cost) is not None]
    values: list[Spec] = []
    for label, run in zip(distinct(run.run for run in shown), shown, strict=True):
        place = {"x": getattr(run, cost), "y": (run.score or 0.0) * axis.times}
        values.append({"label": label, **place, "on": "on the front" if getattr(run, front) else "dominated"})
    if len(values) < 2:
        return None
    caption = f"{axis.label} of each run against {what}; on the front: no other run scores at least as much for less."
    fields = {"cost": what, "axis": axis.title, "end": 1.15 * max(value["x"] for value in values) or 1.0, **_coloured(COLOURS["front"])}
    about = f"{number_format.count(matrix.n_tasks, 'task')} that all runs have"
    return Chart((caption,), {"values": values, "about": about, **fields})


# Figures by the name of their file, in the order of print.
RUN_CHARTS: dict[str, Callable[[Facts], Chart | None]] = {
    "tasks": tasks_chart, "funnel": funnel_chart, "tokens": tokens_chart, "losses": losses_chart,
}  # fmt: skip
PAIR_CHARTS: dict[str, Callable[[Report, Comparison], Chart | None]] = {
    "bridge": bridge_chart, "scatter": scatter_chart, "transitions": transitions_chart,
}  # fmt: skip
SERIES_CHARTS: dict[str, Callable[[Report], Chart | None]] = {"series": series_chart, "front": front_chart}
COMPARISON_NAMES = (*PAIR_CHARTS, *SERIES_CHARTS)
NAMES = ("buckets", *RUN_CHARTS, *COMPARISON_NAMES)
