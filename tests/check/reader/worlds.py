"""Small runs of known content, read into worlds that reports are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from blade import pipeline
from blade.check.reader import read
from blade.check.world import World, world
from blade.model import Assertion
from blade.pipeline.comparing import compare
from blade.prose.document import document
from blade.store.index import Silent
from tests.builders import make_response, make_row, make_run

CATEGORIES = ("refund", "exchange", "lookup")
# passes of four repeats, by task: 3 always, 5 sometimes, 4 never; 21 of 48 rollouts
ALPHA = {0: 4, 1: 4, 2: 0, 3: 4, 4: 2, 5: 0, 6: 3, 7: 1, 8: 0, 9: 2, 10: 1, 11: 0}
# 8 always, 2 sometimes, 2 never; 38 of 48
BETA = {0: 4, 1: 4, 2: 0, 3: 4, 4: 4, 5: 4, 6: 4, 7: 4, 8: 0, 9: 4, 10: 3, 11: 3}


def rows(passes: Mapping[int, int], model: str, repeats: int = 4) -> list[dict[str, object]]:
    """Rows in which the first repeats of each task pass, labelled with a category in turn."""
    return [
        make_row(
            task, at, 1.0 if at < passed else 0.0,
            category=CATEGORIES[task % 3], response=make_response(model=model),
        )
        for task, passed in passes.items()
        for at in range(repeats)
    ]  # fmt: skip


def one_run(folder: Path) -> World:
    """The world of `alpha` alone."""
    loaded = pipeline.load([str(make_run(folder / "alpha", rows(ALPHA, "alpha-7b"), name="alpha"))], Silent())
    return world(pipeline.diagnose(loaded, "test"), loaded)


def two_runs(folder: Path) -> World:
    """The world of `alpha` and `beta`, compared."""
    files = [
        make_run(folder / name, rows(passes, f"{name}-7b"), name=name)
        for name, passes in (("alpha", ALPHA), ("beta", BETA))
    ]
    loaded = pipeline.load([str(file) for file in files], Silent())
    return world(compare(loaded, "test"), loaded)


def said(text: str, known: World, verdict: str) -> list[Assertion]:
    """What a report says that has this verdict."""
    return [one for one in read(document(text), known) if one.verdict == verdict]


def false_lines(text: str, known: World) -> Sequence[int]:
    """The lines on which a report says what the rows contradict."""
    return sorted({one.line for one in said(text, known, "contradicted")})
