"""Draw a comparison: the bridge, the tasks against noise, the buckets before and after."""

from __future__ import annotations

import math
from collections.abc import Callable

from blade import hostile, number_format
from blade.model import Comparison, Report
from blade.report.blocks import Figure, Line
from blade.report.change import words as say
from blade.report.change.charts import MOVED, front_spec, series_spec, times, titled
from blade.report.change.points import Scatter, scatter
from blade.report.change.tasks import ORDER
from blade.report.change.terms import folded, key
from blade.report.change.words import Scale
from blade.report.figures import (
    BAR,
    INK,
    MAX_RUNS,
    ROWS,
    RULE,
    SIDES,
    WIDTH,
    Spec,
    distinct,
    svg,
)

MAX_TERMS = 14  # bars of a bridge; the smaller ones share one
COLOURS = {**SIDES, "composition": "#0072B2", "missing": "#7A869A", "several": RULE}
SAID = {"better": "better", "worse": "worse", "noise": "within noise"}
NAMES = ("bridge", "scatter", "transitions", "series", "front")


def drawn(report: Report, prefix: str = "", draw: bool = True) -> tuple[Figure, ...]:
    """Every figure the comparisons of a report have the numbers for; files are numbered, never named.

    Without `draw` they have their captions and no drawing.
    """
    found: list[Figure] = []
    told = [one for one in report.comparisons if one.refused is None and not one.identical][:MAX_RUNS]
    for at, one in enumerate(told, 1):
        end = "" if len(report.comparisons) == 1 else f"-{at}"
        for name, spec in OF_PAIR.items():
            if made := spec(report, one):
                picture = svg(made[0]) if draw else ""
                found.append(Figure(name, key(one), f"{prefix}{name}{end}.svg", made[1], picture))
    for name, of_all in OF_ALL.items():
        if made := of_all(report):
            found.append(Figure(name, None, f"{prefix}{name}.svg", made[1], svg(made[0]) if draw else ""))
    return tuple(found)


def _pair(comparison: Comparison) -> str:
    return f"{hostile.line(comparison.baseline, 40)} → {hostile.line(comparison.candidate, 40)}"


def bridge_spec(report: Report, comparison: Comparison) -> tuple[Spec, Line] | None:
    """Floating bars from the score of the baseline to that of the candidate, whiskers as intervals."""
    start, end = comparison.score_baseline, comparison.score_candidate
    if not comparison.bridge or start is None or end is None:
        return None
    scale = say.scale(comparison.score_name)
    steps = _steps(comparison, start, scale)
    values = [
        {"label": "baseline", "total": start * times(scale), "said": _level(scale, start)},
        *steps,
        {"label": "candidate", "total": end * times(scale), "said": _level(scale, end)},
    ]
    labels = distinct([str(value["label"]) for value in values])
    ends = [float(value.get("to", value.get("total", 0.0))) for value in values]
    for at, value in enumerate(values):
        value["label"], value["end"] = labels[at], ends[at]
        value["next"] = labels[min(at + 1, len(labels) - 1)]
        seen = [value[name] for name in ("total", "from", "to", "low", "high") if value.get(name) is not None]
        value["right"] = max(seen)
    used = {
        side: colour for side, colour in COLOURS.items() if any(value.get("side") == side for value in steps)
    }
    used |= {value["side"]: BAR for value in steps if value["side"] not in used}
    of = say.score_label(comparison.score_name)
    n = number_format.count(len(comparison.alignment.common), "task")
    about = f"{_pair(comparison)} · {scale.said(comparison.delta)} of {of} · {n} in common"
    spec: Spec = {
        "title": titled("From the baseline's score to the candidate's", about),
        "width": WIDTH - 240,
        "height": {"step": 27},
        "data": {"values": values},
        "layer": _bridge_layers(values, used, f"{of}, %" if scale.is_rate else of),
    }
    return spec, (
        f"The change of {of} as terms that add up to ",
        scale.change(comparison.delta, f"{say.query(comparison)}.delta"),
        ": bars, the terms; lines, 95% intervals; diamonds, the two scores.",
    )


def _level(scale: Scale, value: float) -> str:
    return number_format.percent(value) if scale.is_rate else number_format.number(value)


def _steps(comparison: Comparison, start: float, scale: Scale) -> list[Spec]:
    """One floating bar per term, each starting where the last ended; the smaller ones share the last."""
    shown, left = folded(comparison.bridge, MAX_TERMS)
    terms = [(say.term(one.term, 60), one.side, one.value, one.low, one.high) for one in shown]
    if left:
        terms.append(
            (f"{len(left)} smaller terms", "several", math.fsum(one.value for one in left), None, None)
        )
    found: list[Spec] = []
    at, by = start, times(scale)
    for name, side, value, low, high in terms:
        spans = [at + one if one is not None and math.isfinite(one) else None for one in (low, high)]
        found.append(
            {
                "label": name,
                "side": hostile.line(side, 30),
                "from": at * by,
                "to": (at + value) * by,
                "low": spans[0] * by if spans[0] is not None else None,
                "high": spans[1] * by if spans[1] is not None else None,
                "said": scale.said(value).removesuffix(" points"),
            }
        )
        at += value
    return found


def _bridge_layers(values: list[Spec], used: dict[str, str], title: str) -> list[Spec]:
    seen = [value[name] for value in values for name in ("total", "from", "to", "low", "high")
            if value.get(name) is not None]  # fmt: skip
    low, high = min(seen), max(seen)
    room = (high - low) or 1.0
    x: Spec = {
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [low - 0.04 * room, high + 0.14 * room], "zero": False, "nice": False},
    }
    colour = {
        "field": "side",
        "type": "nominal",
        "scale": {"domain": list(used), "range": list(used.values())},
        "legend": {},
    }
    said = {"type": "text", "align": "left", "dx": 7, "color": INK, "fontSize": 11}
    link = {"type": "rule", "color": RULE, "strokeWidth": 1}
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 110, "color": INK, "opacity": 1}
    is_step = [{"filter": "isValid(datum.to)"}]
    return [
        {"mark": link, "encoding": {"y": ROWS, "y2": {"field": "next"}, "x": {"field": "end", **x}}},
        {
            "transform": is_step,
            "mark": {"type": "bar", "height": 15},
            "encoding": {"y": ROWS, "x": {"field": "from", **x}, "x2": {"field": "to"}, "color": colour},
        },
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2},
            "encoding": {"y": ROWS, "x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "isValid(datum.total)"}],
            "mark": diamond,
            "encoding": {"y": ROWS, "x": {"field": "total", **x}},
        },
        {"mark": said, "encoding": {"y": ROWS, "x": {"field": "right", **x}, "text": {"field": "said"}}},
    ]


def scatter_spec(report: Report, comparison: Comparison) -> tuple[Spec, Line] | None:
    """Each task's rate in both runs, larger where more tasks share it, over the band of noise."""
    found = scatter(report, comparison)
    if found is None:
        return None
    is_rate = say.scale(comparison.score_name).is_rate
    of = "pass rate" if is_rate else "mean reward"
    spots = [{"x": spot.x, "y": spot.y, "n": spot.n, "side": SAID[spot.side]} for spot in found.spots]
    band = [{"x": x, "low": low, "high": high} for x, low, high in _padded(found, is_rate)]
    spec: Spec = {
        "title": titled(
            "Each task in both runs", f"{_pair(comparison)} · {number_format.count(found.n_tasks, 'task')}"
        ),
        "width": 400,
        "height": 400,
        "layer": _scatter_layers(found, spots, band, is_rate, of),
    }
    return spec, _scatter_caption(found, is_rate)


def _padded(found: Scatter, is_rate: bool) -> list[tuple[float, float, float]]:
    """The band, half a rollout wider than the outermost rates inside it, so that they lie inside.

    It is cut to the axes here: clipping numbers its paths, and no two drawings would be the same.
    """
    if not is_rate:
        low, high = _domain(found, is_rate)
        return [(x, max(low, bottom), min(high, top)) for x, bottom, top in found.band]
    half = min(0.04, 0.5 / found.repeats[1])
    edge = [(x, max(-0.05, low - half), min(1.05, high + half)) for x, low, high in found.band]
    return [(-0.05, *edge[0][1:]), *edge, (1.05, *edge[-1][1:])]


def _domain(found: Scatter, is_rate: bool) -> tuple[float, float]:
    seen = [one for spot in found.spots for one in (spot.x, spot.y)]
    low, high = (0.0, 1.0) if is_rate else (min(seen), max(seen))
    pad = 0.05 * ((high - low) or 1.0)
    return low - pad, high + pad


def _scatter_layers(
    found: Scatter, spots: list[Spec], band: list[Spec], is_rate: bool, of: str
) -> list[Spec]:
    low, high = _domain(found, is_rate)
    axis: Spec = {"format": "%", "tickCount": 5} if is_rate else {"tickCount": 5}
    both: Spec = {
        "type": "quantitative",
        "axis": axis,
        "scale": {"domain": [low, high], "nice": False, "zero": False},
    }
    x: Spec = {**both, "title": f"{of}, baseline"}
    y: Spec = {**both, "title": f"{of}, candidate"}
    most = max(spot.n for spot in found.spots)
    size = {"field": "n", "type": "quantitative", "legend": None,
            "scale": {"domain": [0, most], "range": [0, 900 if most > 1 else 40]}}  # fmt: skip
    sides = {spot.side for spot in found.spots}
    used = {SAID[name]: colour for name, colour in MOVED.items() if name in sides}
    colour = {
        "field": "side",
        "type": "nominal",
        "scale": {"domain": list(used), "range": list(used.values())},
        "legend": {"symbolType": "circle", "symbolOpacity": 1},
    }
    area = {"type": "area", "color": "#e9edf2", "opacity": 0.9}
    line = [{"x": low, "y": low}, {"x": high, "y": high}]
    layers: list[Spec] = []
    if band:
        layers.append(
            {
                "data": {"values": band},
                "mark": area,
                "encoding": {"x": {"field": "x", **x}, "y": {"field": "low", **y}, "y2": {"field": "high"}},
            }
        )
    layers.append(
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": RULE, "strokeWidth": 1, "strokeDash": [4, 3]},
            "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}},
        }
    )
    mark = {"type": "circle", "opacity": 0.85, "stroke": "white", "strokeWidth": 0.5}
    layers.append(
        {
            "data": {"values": spots},
            "mark": mark,
            "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}, "size": size, "color": colour},
        }
    )
    return layers


def _scatter_caption(found: Scatter, is_rate: bool) -> Line:
    said = "Each task's rate in the baseline and in the candidate; larger where more tasks share the point"
    said += ", gathered on a grid. " if found.gathered else ". "
    if not found.band:
        return (f"{said}No band of noise: these rows do not show how much repeats of a task vary.",)
    if is_rate and all(low <= 0 and high >= 1 for _, low, high in found.band):
        return (f"{said}At so few repeats noise alone can give any one of these points.",)
    how = "Fisher's exact test" if is_rate else "the variance between repeats"
    return (f"{said}Grey band: what noise alone gives in at least 95 of 100 cases ({how}).",)


def _moves(comparison: Comparison) -> list[Spec]:
    """The nine cells; the more tasks, the stronger the colour."""
    most = max(one.n for one in comparison.transitions) or 1
    values: list[Spec] = []
    cell = {(one.before, one.after): one for one in comparison.transitions}
    for before in ORDER:
        for after in ORDER:
            one = cell.get((before, after))
            n, sure = (one.n, one.sure) if one is not None else (0, 0)
            step = ORDER.index(after) - ORDER.index(before)
            values.append(
                {
                    "before": before,
                    "after": after,
                    "n": f"{n:,}",
                    "sure": f"{sure:,} sure" if n else "",
                    "side": "better" if step > 0 else "worse" if step < 0 else "same",
                    "weight": 0.12 + 0.88 * math.sqrt(n / most) if n else 0.0,
                }
            )
    return values


def transitions_spec(report: Report, comparison: Comparison) -> tuple[Spec, Line] | None:
    """Tasks by bucket before and after."""
    if not comparison.transitions:
        return None
    values = _moves(comparison)
    colours = {"better": MOVED["better"], "worse": MOVED["worse"], "same": "#9AA3AE"}
    place: Spec = {"type": "nominal", "sort": list(ORDER)}
    x: Spec = {
        "field": "after",
        **place,
        "axis": {"title": "in the candidate", "orient": "top", "labelAngle": 0},
    }
    y: Spec = {"field": "before", **place, "axis": {"title": "in the baseline"}}
    colour = {"field": "side", "type": "nominal", "legend": None,
              "scale": {"domain": list(colours), "range": list(colours.values())}}  # fmt: skip
    weight = {
        "field": "weight",
        "type": "quantitative",
        "legend": None,
        "scale": {"domain": [0, 1], "range": [0, 1]},
    }
    spec: Spec = {
        "title": titled("Buckets before and after", f"{_pair(comparison)} · tasks"),
        "width": 330,
        "height": 210,
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": RULE},
                "encoding": {"x": x, "y": y, "color": colour, "opacity": weight},
            },
            {
                "mark": {"type": "text", "fontSize": 16, "fontWeight": "bold", "color": INK, "dy": -6},
                "encoding": {"x": x, "y": y, "text": {"field": "n"}},
            },
            {
                "mark": {"type": "text", "fontSize": 10.5, "color": INK, "dy": 11},
                "encoding": {"x": x, "y": y, "text": {"field": "sure"}},
            },
        ],
    }
    return spec, (
        "Tasks by bucket in the baseline (rows) and in the candidate (columns); sure: with a posterior "
        "probability of at least 0.8 that the bucket changed, on the diagonal that it did not.",
    )


OF_PAIR: dict[str, Callable[[Report, Comparison], tuple[Spec, Line] | None]] = {
    "bridge": bridge_spec,
    "scatter": scatter_spec,
    "transitions": transitions_spec,
}
OF_ALL: dict[str, Callable[[Report], tuple[Spec, Line] | None]] = {"series": series_spec, "front": front_spec}
