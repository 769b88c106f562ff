"""Draw a report's figures: Vega-Lite specifications made into SVG."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from blade import hostile, number_format
from blade.model import Report, TaskResult
from blade.report import causes, numbers
from blade.report.blocks import Figure, Line
from blade.report.facts import Facts, facts

MAX_TASKS = 200  # points in the strip of tasks
MAX_MODES = 12  # bars of the losses; the smaller ones share the last
MAX_RUNS = 12  # runs that get figures of their own
WIDTH = 680
INK, SOFT, RULE, BAR, BEHIND = "#1b2430", "#4a5563", "#c6ced8", "#3b78b5", "#e9edf2"
# Colours that the colour-blind can tell apart (Okabe and Ito).
BUCKETS = {"always": "#009E73", "sometimes": "#E69F00", "never": "#D55E00", "missing": "#9AA3AE"}
OUTCOMES = {"passed": "#009E73", "failed": "#D55E00", "errored": "#CC79A7", "timed out": "#56B4E9"}

SIDES = {
    "model": "#D55E00",
    "infrastructure": "#56B4E9",
    "task or verifier": "#E69F00",
    "data": "#CC79A7",
    "undetermined": "#9AA3AE",
}

Spec = dict[str, Any]
AXIS: Spec = {"labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 11, "titleFontSize": 11}
CONFIG: Spec = {
    "background": "white",
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **AXIS,
        "gridColor": "#e6eaef",
        "domainColor": RULE,
        "tickColor": RULE,
        "titleFontWeight": "normal",
    },
    "title": {"anchor": "start", "fontSize": 13, "color": INK, "subtitleColor": SOFT, "subtitleFontSize": 11},
    "legend": {
        "labelColor": SOFT,
        "labelFontSize": 11,
        "orient": "top",
        "title": None,
        "symbolType": "square",
    },
}
ROWS: Spec = {
    "field": "label",
    "type": "nominal",
    "sort": None,
    "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 220, "labelPadding": 7},
}


def drawn(report: Report, draw: bool = True) -> tuple[Figure, ...]:
    """Every figure the report has the numbers for: one of all runs, then those of each run.

    Without `draw` they have their captions and no drawing.
    """
    runs = facts(report)
    made = buckets_spec(runs)
    found = [_figure("buckets", None, "buckets.svg", *made, draw)] if made else []
    for at, run in enumerate(runs[:MAX_RUNS], 1):
        for name, spec in FIGURES.items():
            # Run names are foreign text, so files are numbered, not named.
            file = f"{name}.svg" if len(runs) == 1 else f"{name}-{at}.svg"
            if made := spec(run):
                found.append(_figure(name, run.run.name, file, *made, draw))
    return tuple(found)


def _figure(name: str, run: str | None, file: str, spec: Spec, caption: Line, draw: bool) -> Figure:
    return Figure(name, run, file, caption, svg(spec) if draw else "")


def svg(spec: Spec) -> str:
    """The specification as an SVG document; nothing is fetched for it."""
    import vl_convert

    full = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": CONFIG, **spec}
    text = json.dumps(full, allow_nan=False)
    made: str = vl_convert.vegalite_to_svg(text, vl_version="5.20", allowed_base_urls=[])
    return made if made.endswith("\n") else made + "\n"


def _spec(
    title: str, about: str, size: tuple[int, int | Spec], values: list[Spec], layers: list[Spec]
) -> Spec:
    return {
        "title": {"text": title, "subtitle": about} if about else {"text": title},
        "width": size[0],
        "height": size[1],
        "data": {"values": values},
        "layer": layers,
    }


def distinct(labels: list[str]) -> list[str]:
    """The labels, cleaned and short; equal ones are numbered, since a row is known by its label."""
    seen: Counter[str] = Counter()
    found = []
    for label in (hostile.line(label, 40) for label in labels):
        seen[label] += 1
        found.append(f"{label} ({seen[label]})" if seen[label] > 1 else label)
    return found


def _scale(colours: dict[str, str]) -> Spec:
    return {"domain": list(colours), "range": list(colours.values())}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def buckets_spec(runs: tuple[Facts, ...]) -> tuple[Spec, Line] | None:
    """Tasks by bucket, one stacked bar per run."""
    judged = [run for run in runs if run.run.has_pass_rate and run.run.n_tasks]
    if not judged:
        return None
    values = []
    for label, run in zip(distinct([run.run.name for run in judged]), judged, strict=True):
        start = 0
        for name in BUCKETS:
            n = len(getattr(run.buckets, name))
            values.append({"label": label, "bucket": name, "n": n, "from": start, "to": start + n})
            start += n
    readable = 0.03 * max(run.run.n_tasks for run in judged)  # narrower pieces have no room for their number
    x: Spec = {"type": "quantitative", "title": "tasks", "axis": {"tickMinStep": 1, "format": "d"}}
    bar = {
        "mark": {"type": "bar", "height": 24},
        "encoding": {
            "y": ROWS,
            "x": {"field": "from", **x},
            "x2": {"field": "to"},
            "color": {"field": "bucket", "type": "nominal", "scale": _scale(BUCKETS), "legend": {}},
        },
    }
    number = {
        "transform": [
            {"filter": f"datum.n >= {readable!r}"},
            {"calculate": "(datum.from + datum.to) / 2", "as": "middle"},
        ],
        "mark": {"type": "text", "color": "white", "fontWeight": "bold", "fontSize": 11},
        "encoding": {
            "y": ROWS,
            "x": {"field": "middle", **x},
            "text": {"field": "n", "type": "quantitative"},
        },
    }
    size = (WIDTH - 80, {"step": 38})
    caption = "Tasks whose repeats always, sometimes or never passed, and tasks without a scored rollout."
    return _spec("Tasks by outcome of their repeats", "", size, values, [bar, number]), (caption,)


def sampled(n: int, most: int = MAX_TASKS) -> list[int]:
    """`most` places spread evenly over `n`, ends included; all when they fit."""
    return list(range(n)) if n <= most else [round(at * (n - 1) / (most - 1)) for at in range(most)]


def tasks_spec(run: Facts) -> tuple[Spec, Line] | None:
    """Each task's pass rate, shrunk rate and posterior interval, sorted."""
    rated = sorted((task for task in run.tasks if task.rate is not None), key=_rank)
    if not rated or not run.run.has_pass_rate:
        return None
    kept = [(at + 1, rated[at]) for at in sampled(len(rated))]
    values = [
        {"rank": at, "rate": t.rate, "shrunk": t.shrunk, "low": t.low, "high": t.high, "bucket": t.bucket}
        for at, t in kept
    ]
    shown = number_format.count(len(rated), "task")
    if len(kept) < len(rated):
        shown = f"{len(kept)} of {shown}, evenly sampled"
    about = f"{hostile.line(run.run.name, 60)} · {shown}"
    spec = _spec("Pass rate of each task", about, (WIDTH, 240), values, _strip(len(kept), len(rated)))
    sampled_too = ", an even sample of them" if len(kept) < len(rated) else ""
    return spec, (
        f"Pass rate of each task{sampled_too}: dot, raw; tick, shrunk; line, 95% posterior interval.",
    )


def _rank(task: TaskResult) -> tuple[float, float]:
    rate = task.rate or 0.0
    return (rate if task.shrunk is None else task.shrunk, rate)


def _strip(shown: int, total: int) -> list[Spec]:
    dense = shown > 100
    x: Spec = {
        "field": "rank",
        "type": "quantitative",
        "title": "task, by shrunk rate",
        "axis": {"grid": False, "format": "d", "tickCount": min(10, total)},
        "scale": {"domain": [0, total + 1], "nice": False},
    }
    y: Spec = {
        "type": "quantitative",
        "title": "pass rate",
        "axis": {"format": "%", "tickCount": 5},
        "scale": {"domain": [0, 1]},
    }
    colour: Spec = {
        "field": "bucket",
        "type": "nominal",
        "scale": _scale({name: BUCKETS[name] for name in ("always", "sometimes", "never")}),
        "legend": {"symbolType": "circle", "symbolOpacity": 1},
    }
    tick = {
        "type": "tick",
        "orient": "horizontal",
        "thickness": 1.5,
        "size": 5 if dense else 10,
        "color": INK,
    }
    return [
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "strokeWidth": 1.2 if dense else 2.2, "opacity": 0.4},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}, "color": colour},
        },
        {"mark": tick, "encoding": {"x": x, "y": {"field": "shrunk", **y}}},
        {
            "mark": {"type": "circle", "size": 14 if dense else 30, "opacity": 1},
            "encoding": {"x": x, "y": {"field": "rate", **y}, "color": colour},
        },
    ]


def funnel_spec(run: Facts) -> tuple[Spec, Line] | None:
    """How many expected rollouts reached each stage."""
    if run.funnel is None or not any(stage.of for stage in run.funnel.stages):
        return None
    stages = run.funnel.stages
    values = []
    for label, stage in zip(distinct([stage.name for stage in stages]), stages, strict=True):
        share = number_format.percent(stage.reached / stage.of if stage.of else None)
        said = f"{stage.reached:,} ({share})"
        values.append({"label": label, "reached": stage.reached, "of": stage.of, "said": said})
    most = max(stage.of for stage in stages)
    x: Spec = {"type": "quantitative", "axis": None, "scale": {"domain": [0, most * 1.2]}}
    said_mark = {"type": "text", "align": "left", "dx": 5, "color": INK, "fontSize": 11}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": 18, "color": BEHIND},
            "encoding": {"y": ROWS, "x": {"field": "of", **x}},
        },
        {
            "mark": {"type": "bar", "height": 18, "color": BAR},
            "encoding": {"y": ROWS, "x": {"field": "reached", **x}},
        },
        {"mark": said_mark, "encoding": {"y": ROWS, "x": {"field": "of", **x}, "text": {"field": "said"}}},
    ]
    about = f"{hostile.line(run.run.name, 60)} · of {most:,} expected rollouts"
    spec = _spec("Workflow funnel", about, (WIDTH - 100, {"step": 28}), values, layers)
    expected = numbers.whole(most, run.counted("expected"))
    return spec, (
        "Rollouts that reached each stage, of ",
        expected,
        " expected; each stage is counted on its own.",
    )


def tokens_spec(run: Facts) -> tuple[Spec, Line] | None:
    """Output tokens by outcome: mean, its interval where there is one, and median."""
    values: list[Spec] = []
    colours: dict[str, str] = {}
    for measure in run.measures:
        if (
            measure.name != "output_tokens"
            or measure.slice in (None, "all")
            or _finite(measure.value) is None
        ):
            continue
        outcome = hostile.line(str(measure.slice).replace("_", " "), 30)
        colours[outcome] = OUTCOMES.get(outcome, BAR)
        median = run.measure("output_tokens_median", slice=measure.slice)
        values.append(
            {
                "outcome": outcome,
                "label": f"{outcome} (n = {measure.n:,})",
                "mean": measure.value,
                "low": _finite(measure.low),
                "high": _finite(measure.high),
                "median": _finite(median.value) if median else None,
            }
        )
    if not values:
        return None
    x: Spec = {"type": "quantitative", "title": "output tokens per rollout", "scale": {"zero": True}}
    colour = {"field": "outcome", "type": "nominal", "scale": _scale(colours), "legend": None}
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 70, "color": INK, "opacity": 1}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": 16, "opacity": 0.8},
            "encoding": {"y": ROWS, "x": {"field": "mean", **x}, "color": colour},
        },
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1.5},
            "encoding": {"y": ROWS, "x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "isValid(datum.median)"}],
            "mark": diamond,
            "encoding": {"y": ROWS, "x": {"field": "median", **x}},
        },
    ]
    about = f"{hostile.line(run.run.name, 60)} · bar: mean, diamond: median"
    spec = _spec("Output tokens by outcome", about, (WIDTH - 130, {"step": 30}), values, layers)
    caption = "Output tokens per rollout by outcome: bar, mean; diamond, median; line, 95% interval if any."
    return spec, (caption,)


def losses_spec(run: Facts) -> tuple[Spec, Line] | None:
    """Points of score by cause and mode, the largest first, coloured by who answers for them."""
    found = [loss for loss in run.losses if _finite(loss.lost) is not None and loss.lost > causes.SAME]
    if len(found) < 2 or not causes.is_explained(found):
        return None
    shown = found if len(found) <= MAX_MODES else found[: MAX_MODES - 1]
    named = [
        (f"{loss.cause.value} {causes.mode(run, loss.mode, 60)}", causes.SIDES[loss.cause], loss.lost)
        for loss in shown
    ]
    left = found[len(shown) :]
    if left:
        named.append((f"{len(left)} smaller modes", "several", causes.total(left)))
    values: list[Spec] = [
        {"label": label, "side": side, "lost": lost * 100, "said": causes.points(lost)}
        for label, (_, side, lost) in zip(distinct([one[0] for one in named]), named, strict=True)
    ]
    used = {
        side: colour
        for side, colour in {**SIDES, "several": RULE}.items()
        if any(v["side"] == side for v in values)
    }
    most = max(value["lost"] for value in values)
    x: Spec = {
        "field": "lost",
        "type": "quantitative",
        "title": "points of score lost",
        "scale": {"domain": [0, most * 1.2]},
    }
    colour = {"field": "side", "type": "nominal", "scale": _scale(used), "legend": {}}
    said = {"type": "text", "align": "left", "dx": 5, "color": INK, "fontSize": 11}
    layers: list[Spec] = [
        {"mark": {"type": "bar", "height": 16}, "encoding": {"y": ROWS, "x": x, "color": colour}},
        {"mark": said, "encoding": {"y": ROWS, "x": x, "text": {"field": "said"}}},
    ]
    total = causes.points(causes.total(found))
    about = f"{hostile.line(run.run.name, 60)} · {total} lost over {number_format.count(run.score.n, 'task')}"
    spec = _spec("Score lost by cause and mode", about, (WIDTH - 200, {"step": 26}), values, layers)
    return spec, (
        "Points of score lost by cause and mode; all bars together are ",
        causes.all_lost(run),
        ", exactly 1 − the score.",
    )


# Figures drawn for each run, by the name of their file, in the order of print.
FIGURES: dict[str, Callable[[Facts], tuple[Spec, Line] | None]] = {
    "tasks": tasks_spec,
    "funnel": funnel_spec,
    "tokens": tokens_spec,
    "losses": losses_spec,
}
NAMES = ("buckets", *FIGURES)
