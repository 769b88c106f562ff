"""Draw several runs at once: the score of checkpoints in order, and the score against what it costs."""

from __future__ import annotations

from blade import number_format
from blade.model import Matrix, Placed, Report, Series
from blade.report import numbers
from blade.report.blocks import Line
from blade.report.change import words as say
from blade.report.change.many import score_name
from blade.report.change.words import Scale
from blade.report.figures import BAR, INK, SOFT, WIDTH, Spec, distinct, sampled

MAX_CHECKPOINTS = 60
MAX_PLACED = 40
MOVED = {"better": "#009E73", "worse": "#D55E00", "noise": "#8FA3B8"}


def titled(title: str, about: str) -> Spec:
    return {"text": title, "subtitle": about}


def times(scale: Scale) -> float:
    """What a score is multiplied by on an axis: rates are drawn in percent."""
    return 100.0 if scale.is_rate else 1.0


def series_spec(report: Report) -> tuple[Spec, Line] | None:
    """The score of each checkpoint with the interval of its change from the first."""
    found = report.series
    if found is None or len(found.checkpoints) < 2:
        return None
    scale = say.scale(score_name(report))
    values = _checkpoints(found, times(scale))
    of = say.score_label(score_name(report))
    x: Spec = {"field": "label", "type": "nominal", "sort": None,
               "axis": {"title": None, "labelAngle": -35, "labelLimit": 140}}  # fmt: skip
    y: Spec = {"type": "quantitative", "title": f"{of}, %" if scale.is_rate else of, "scale": {"zero": False}}
    spec: Spec = {
        "title": titled("Score of each checkpoint", f"{_tasks(found.n_tasks)} that all of them have"),
        "width": WIDTH - 60,
        "height": 240,
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "line", "color": BAR}, "encoding": {"x": x, "y": {"field": "score", **y}}},
            {
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1.3},
                "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "circle", "color": BAR, "size": 60, "opacity": 1},
                "encoding": {"x": x, "y": {"field": "score", **y}},
            },
        ],
    }
    shown = "" if len(values) == len(found.checkpoints) else " An even sample of them is shown."
    return spec, (
        f"{of} of each checkpoint over ",
        *numbers.count(found.n_tasks, "task", "engine.series.n_tasks"),
        f"; lines, 95% interval of the change from the first, set upon the first's score.{shown}",
    )


def _tasks(n: int) -> str:
    return number_format.count(n, "task")


def _checkpoints(found: Series, by: float) -> list[Spec]:
    first = found.checkpoints[0].score
    shown = [found.checkpoints[at] for at in sampled(len(found.checkpoints), MAX_CHECKPOINTS)]
    return [
        {
            "label": label,
            "score": one.score * by,
            "low": (first + one.low) * by if one.low is not None else None,
            "high": (first + one.high) * by if one.high is not None else None,
        }
        for label, one in zip(distinct([one.run for one in shown]), shown, strict=True)
    ]


def front_spec(report: Report) -> tuple[Spec, Line] | None:
    """The score of each run against what its rollouts cost, in dollars or else in output tokens."""
    found = report.matrix
    if found is None:
        return None
    by_cost = sum(one.cost is not None for one in found.placed) >= 2
    values = _fronted(found, by_cost, times(say.scale(score_name(report))))
    if len(values) < 2:
        return None
    what = "cost of a rollout (USD, mean)" if by_cost else "output tokens of a rollout (mean)"
    of = say.score_label(score_name(report))
    is_rate = say.scale(score_name(report)).is_rate
    x: Spec = {"field": "x", "type": "quantitative", "title": what, "scale": {"zero": True}}
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "title": f"{of}, %" if is_rate else of,
        "scale": {"zero": False},
    }
    x["scale"] = {"domain": [0, 1.15 * max(value["x"] for value in values) or 1.0], "nice": False}
    colours = {"on the front": MOVED["better"], "dominated": MOVED["noise"]}
    on = {
        "field": "on",
        "type": "nominal",
        "legend": {"symbolType": "circle"},
        "scale": {"domain": list(colours), "range": list(colours.values())},
    }
    stair = {"type": "line", "color": MOVED["better"], "strokeWidth": 1, "interpolate": "step-after"}
    spec: Spec = {
        "title": titled("Score against what it costs", f"{_tasks(found.n_tasks)} that all runs have"),
        "width": WIDTH - 120,
        "height": 260,
        "data": {"values": values},
        "layer": [
            {
                "transform": [{"filter": "datum.on == 'on the front'"}],
                "mark": stair,
                "encoding": {"x": x, "y": y},
            },
            {"mark": {"type": "circle", "size": 80, "opacity": 1}, "encoding": {"x": x, "y": y, "color": on}},
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "dy": -7, "color": INK, "fontSize": 11},
                "encoding": {"x": x, "y": y, "text": {"field": "label"}},
            },
        ],
    }
    return spec, (
        f"{of} of each run against {what}; on the front: no other run scores at least as much for less.",
    )


def _fronted(found: Matrix, by_cost: bool, by: float) -> list[Spec]:
    def of(one: Placed) -> tuple[float | None, bool | None]:
        return (one.cost, one.on_front_cost) if by_cost else (one.tokens, one.on_front_tokens)

    shown = [one for one in found.placed[:MAX_PLACED] if one.score is not None and of(one)[0] is not None]
    return [
        {
            "label": label,
            "x": of(one)[0],
            "y": (one.score or 0.0) * by,
            "on": "on the front" if of(one)[1] else "dominated",
        }
        for label, one in zip(distinct([one.run for one in shown]), shown, strict=True)
    ]
