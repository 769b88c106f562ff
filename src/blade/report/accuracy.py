"""Say how right the labels are: the share that was right where the truth is known, by confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blade.model import Confidence, Report
from blade.report import numbers
from blade.report.blocks import Block, Code, Heading, Table, cells, para


def accuracy(report: Report) -> list[Block]:
    """How many labels of each confidence were right, or that this was never measured."""
    card: Mapping[str, Any] = (report.accuracy or {}).get("confidence", {})
    heading = Heading(("How right are these labels",))
    rows = tuple(
        cells(
            word,
            (
                numbers.whole(card[word]["right"], f"engine.accuracy['confidence'][{word!r}]['right']"),
                " of ",
                numbers.whole(card[word]["n"], f"engine.accuracy['confidence'][{word!r}]['n']"),
            ),
        )
        for word in map(str, Confidence)  # the surest first
        if word in card
    )
    if not rows:
        return [heading, para("How often such labels are right was not measured.")]
    return [
        heading,
        Table(("Confidence", "Groups whose label was right"), rows, "lr"),
        para(
            "On real runs with an answer key and on runs with planted faults; ",
            Code("make accuracy"),
            " measures it again.",
        ),
    ]
