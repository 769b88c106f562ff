"""Draw the charts of a diagnosis: Vega-Lite specifications made into SVG."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blade import hostile, number_format
from blade.model import Report, TaskResult
from blade.report import printed_names
from blade.report.blocks import Figure, Line, line
from blade.report.queried_numbers import whole
from blade.report.run_facts import Facts, facts

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
Chart = tuple[Spec, Line]  # a specification and its caption
AXIS: Spec = {"labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 11, "titleFontSize": 11}
CONFIG: Spec = {
    "background": "white",
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {**AXIS, "gridColor": "#e6eaef", "domainColor": RULE, "tickColor": RULE, "titleFontWeight": "normal"},
    "title": {"anchor": "start", "fontSize": 13, "color": INK, "subtitleColor": SOFT, "subtitleFontSize": 11},
    "legend": {"labelColor": SOFT, "labelFontSize": 11, "orient": "top", "title": None, "symbolType": "square"},
}
ROWS: Spec = {
    "field": "label", "type": "nominal", "sort": None,
    "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 220, "labelPadding": 7},
}  # fmt: skip
SAID: Spec = {"type": "text", "align": "left", "dx": 5, "color": INK, "fontSize": 11}
INTERVAL = "isValid(datum.low) && isValid(datum.high)"


def drawn(report: Report, draw: bool = True) -> tuple[Figure, ...]:
    """Every figure the report has the numbers for: one of all runs, then those of each run.

    Without `draw` they have their captions and no drawing.
    """
    runs = facts(report)
    chart = buckets_chart(runs)
    figures = [figure("buckets", None, "buckets.svg", chart, draw)] if chart else []
    for place, run in enumerate(runs[:MAX_RUNS], 1):
        for name, chart_of in CHARTS.items():
            # Run names are foreign text, so files are numbered, not named.
            file = f"{name}.svg" if len(runs) == 1 else f"{name}-{place}.svg"
            if chart := chart_of(run):
                figures.append(figure(name, run.run.name, file, chart, draw))
    return tuple(figures)


# ---- Vega-Lite -----------------------------------------------------------------------------------


def figure(name: str, run: str | None, file: str, chart: Chart, draw: bool) -> Figure:
    return Figure(name, run, file, chart[1], svg(chart[0]) if draw else "")


def svg(spec: Spec) -> str:
    """The specification as an SVG document; nothing is fetched for it."""
    import vl_convert

    full = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": CONFIG, **spec}
    text = json.dumps(full, allow_nan=False)
    picture: str = vl_convert.vegalite_to_svg(text, vl_version="5.20", allowed_base_urls=[])
    return picture if picture.endswith("\n") else picture + "\n"


def spec(title: str, about: str, width: int, height: int | Spec, layers: list[Spec], values: list[Spec] | None = None) -> Spec:
    """A picture of layers over one list of values, under its title."""
    head = {"text": title, "subtitle": about} if about else {"text": title}
    data = {"data": {"values": values}} if values is not None else {}
    return {"title": head, "width": width, "height": height, **data, "layer": layers}


def layer(mark: Spec, where: str = "", values: list[Spec] | None = None, **encoding: Spec) -> Spec:
    """One mark for each value, of those that the filter lets pass."""
    parts: Spec = {"data": {"values": values}} if values is not None else {}
    parts |= {"transform": [{"filter": where}]} if where else {}
    return {**parts, "mark": mark, "encoding": encoding}


def measured(axis: Spec, field: str) -> Spec:
    """A measured number on an axis that several layers share."""
    return {"field": field, "type": "quantitative", **axis}


def coloured(field: str, colours: Mapping[str, str], legend: Spec | None) -> Spec:
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def used(colours: Mapping[str, str], values: Sequence[Spec], field: str) -> dict[str, str]:
    """The colours that stand in the picture."""
    return {name: colour for name, colour in colours.items() if any(value.get(field) == name for value in values)}


def distinct(labels: list[str]) -> list[str]:
    """The labels, cleaned and short; equal ones are numbered, since a row is known by its label."""
    seen: Counter[str] = Counter()
    numbered = []
    for label in (hostile.line(label, 40) for label in labels):
        seen[label] += 1
        numbered.append(f"{label} ({seen[label]})" if seen[label] > 1 else label)
    return numbered


def sampled(n: int, most: int = MAX_TASKS) -> list[int]:
    """`most` places spread evenly over `n`, ends included; all when they fit."""
    return list(range(n)) if n <= most else [round(place * (n - 1) / (most - 1)) for place in range(most)]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _about(run: Facts, text: str) -> str:
    return f"{hostile.line(run.run.name, 60)} · {text}"


# ---- Charts --------------------------------------------------------------------------------------


def buckets_chart(runs: tuple[Facts, ...]) -> Chart | None:
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
    x: Spec = {"title": "tasks", "axis": {"tickMinStep": 1, "format": "d"}}
    colour = coloured("bucket", BUCKETS, {})
    number = layer(
        {"type": "text", "color": "white", "fontWeight": "bold", "fontSize": 11},
        y=ROWS, x=measured(x, "middle"), text={"field": "n", "type": "quantitative"},
    )  # fmt: skip
    middle = {"calculate": "(datum.from + datum.to) / 2", "as": "middle"}
    layers = [
        layer({"type": "bar", "height": 24}, y=ROWS, x=measured(x, "from"), x2={"field": "to"}, color=colour),
        {"transform": [{"filter": f"datum.n >= {readable!r}"}, middle], **number},
    ]
    caption = "Tasks whose repeats always, sometimes or never passed, and tasks without a scored rollout."
    return spec("Tasks by outcome of their repeats", "", WIDTH - 80, {"step": 38}, layers, values), (caption,)


def tasks_chart(run: Facts) -> Chart | None:
    """Each task's pass rate, shrunk rate and posterior interval, sorted."""
    rated = sorted((task for task in run.tasks if task.rate is not None), key=_rank)
    if not rated or not run.run.has_pass_rate:
        return None
    values = [
        {"rank": at + 1, "rate": t.rate, "shrunk": t.shrunk, "low": t.low, "high": t.high, "bucket": t.bucket}
        for at, t in ((at, rated[at]) for at in sampled(len(rated)))
    ]
    shown, part = number_format.count(len(rated), "task"), ""
    if len(values) < len(rated):
        shown, part = f"{len(values)} of {shown}, evenly sampled", ", an even sample of them"
    layers = _strip(len(values), len(rated))
    caption = f"Pass rate of each task{part}: dot, raw; tick, shrunk; line, 95% posterior interval."
    return spec("Pass rate of each task", _about(run, shown), WIDTH, 240, layers, values), (caption,)


def _rank(task: TaskResult) -> tuple[float, float]:
    rate = task.rate or 0.0
    return (rate if task.shrunk is None else task.shrunk, rate)


def _strip(shown: int, total: int) -> list[Spec]:
    dense = shown > 100
    x = measured(
        {
            "title": "task, by shrunk rate",
            "axis": {"grid": False, "format": "d", "tickCount": min(10, total)},
            "scale": {"domain": [0, total + 1], "nice": False},
        },
        "rank",
    )
    y: Spec = {"title": "pass rate", "axis": {"format": "%", "tickCount": 5}, "scale": {"domain": [0, 1]}}
    buckets = {name: BUCKETS[name] for name in ("always", "sometimes", "never")}
    colour = coloured("bucket", buckets, {"symbolType": "circle", "symbolOpacity": 1})
    rule = {"type": "rule", "strokeWidth": 1.2 if dense else 2.2, "opacity": 0.4}
    tick = {"type": "tick", "orient": "horizontal", "thickness": 1.5, "size": 5 if dense else 10, "color": INK}
    dot = {"type": "circle", "size": 14 if dense else 30, "opacity": 1}
    return [
        layer(rule, INTERVAL, x=x, y=measured(y, "low"), y2={"field": "high"}, color=colour),
        layer(tick, x=x, y=measured(y, "shrunk")),
        layer(dot, x=x, y=measured(y, "rate"), color=colour),
    ]


def funnel_chart(run: Facts) -> Chart | None:
    """How many expected rollouts reached each stage."""
    if run.funnel is None or not any(stage.of for stage in run.funnel.stages):
        return None
    stages = run.funnel.stages
    values: list[Spec] = []
    for label, stage in zip(distinct([stage.name for stage in stages]), stages, strict=True):
        share = number_format.percent(stage.reached / stage.of if stage.of else None)
        said = f"{stage.reached:,} ({share})"
        values.append({"label": label, "reached": stage.reached, "of": stage.of, "said": said})
    most = max(stage.of for stage in stages)
    x: Spec = {"axis": None, "scale": {"domain": [0, most * 1.2]}}
    layers = [
        layer({"type": "bar", "height": 18, "color": BEHIND}, y=ROWS, x=measured(x, "of")),
        layer({"type": "bar", "height": 18, "color": BAR}, y=ROWS, x=measured(x, "reached")),
        layer(SAID, y=ROWS, x=measured(x, "of"), text={"field": "said"}),
    ]
    about = _about(run, f"of {most:,} expected rollouts")
    expected = whole(most, run.counted("expected"))
    caption = line("Rollouts that reached each stage, of {} expected; each stage is counted on its own.", expected)
    return spec("Workflow funnel", about, WIDTH - 100, {"step": 28}, layers, values), caption


def tokens_chart(run: Facts) -> Chart | None:
    """Output tokens by outcome: mean, its interval where there is one, and median."""
    values: list[Spec] = []
    for measure in run.measures:
        is_outcome = measure.name == "output_tokens" and measure.slice not in (None, "all")
        if not is_outcome or _finite(measure.value) is None:
            continue
        outcome = hostile.line(str(measure.slice).replace("_", " "), 30)
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
    x: Spec = {"title": "output tokens per rollout", "scale": {"zero": True}}
    colour = coloured("outcome", {value["outcome"]: OUTCOMES.get(value["outcome"], BAR) for value in values}, None)
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 70, "color": INK, "opacity": 1}
    rule = {"type": "rule", "color": INK, "strokeWidth": 1.5}
    layers = [
        layer({"type": "bar", "height": 16, "opacity": 0.8}, y=ROWS, x=measured(x, "mean"), color=colour),
        layer(rule, INTERVAL, y=ROWS, x=measured(x, "low"), x2={"field": "high"}),
        layer(diamond, "isValid(datum.median)", y=ROWS, x=measured(x, "median")),
    ]
    about = _about(run, "bar: mean, diamond: median")
    caption = "Output tokens per rollout by outcome: bar, mean; diamond, median; line, 95% interval if any."
    return spec("Output tokens by outcome", about, WIDTH - 130, {"step": 30}, layers, values), (caption,)


def losses_chart(run: Facts) -> Chart | None:
    """Points of score by cause and mode, the largest first, coloured by who answers for them."""
    losses = [loss for loss in run.losses if _finite(loss.lost) is not None and loss.lost > printed_names.SAME]
    if len(losses) < 2 or not printed_names.is_explained(losses):
        return None
    shown = losses if len(losses) <= MAX_MODES else losses[: MAX_MODES - 1]
    bars = [
        (f"{loss.cause.value} {hostile.line(loss.mode, 60) or '(no name)'}", printed_names.SIDES[loss.cause], loss.lost)
        for loss in shown
    ]
    left = losses[len(shown) :]
    if left:
        bars.append((f"{len(left)} smaller modes", "several", printed_names.total(left)))
    values: list[Spec] = [
        {"label": label, "side": side, "lost": lost * 100, "said": number_format.size(lost)}
        for label, (_, side, lost) in zip(distinct([label for label, _, _ in bars]), bars, strict=True)
    ]
    most = max(value["lost"] for value in values)
    x = measured({"title": "points of score lost", "scale": {"domain": [0, most * 1.2]}}, "lost")
    colour = coloured("side", used({**SIDES, "several": RULE}, values, "side"), {})
    layers = [
        layer({"type": "bar", "height": 16}, y=ROWS, x=x, color=colour),
        layer(SAID, y=ROWS, x=x, text={"field": "said"}),
    ]
    total = number_format.size(printed_names.total(losses))
    about = _about(run, f"{total} lost over {number_format.count(run.score.n, 'task')}")
    caption = "Points of score lost by cause and mode; all bars together are {}, exactly 1 − the score."
    chart = spec("Score lost by cause and mode", about, WIDTH - 200, {"step": 26}, layers, values)
    return chart, line(caption, printed_names.all_lost(run))


# Figures drawn for each run, by the name of their file, in the order of print.
CHARTS: dict[str, Callable[[Facts], Chart | None]] = {
    "tasks": tasks_chart,
    "funnel": funnel_chart,
    "tokens": tokens_chart,
    "losses": losses_chart,
}
NAMES = ("buckets", *CHARTS)
