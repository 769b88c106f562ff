"""Find out whether a report says that it is about another model or benchmark than its rollouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from blade.model import Report
from blade.package.judge.units import Unit

_FILE = re.compile(r"\S*\.(?:jsonl?|md|toml|ya?ml|csv|gz|txt)\b\S*")
_NAME = r"[`*_]*(?P<name>[A-Za-z][\w./-]*(?:[-_./]\w|\d)[\w./-]*)[`*_]*"
_SCORES = re.compile(
    rf"(?:^|\bmodel:?\s+){_NAME}(?:\s*\([^()]*\))?\s+(?:scor|reach|achiev|attain|gets\b|got\b|solv|pass)",
    re.IGNORECASE,
)
_ON = re.compile(
    rf"\b(?:on|of) (?:the )?{_NAME} benchmark\b|\bbenchmark:?\s+{_NAME.replace('name', 'other')}", re.I
)
_TITLE = re.compile(rf"^{_NAME}\s+(?:BLADE|benchmark|analysis|diagnos|report)", re.IGNORECASE)


def misnamed(read: Sequence[Unit], ours: Sequence[str], report: Report) -> list[str]:
    """What a report says in place of the model and of the benchmark that its rollouts are of."""
    benchmarks = [run.benchmark for run in report.runs if run.benchmark]
    benchmarks += [one.name for one in report.benchmark.values() if one.name]
    return [
        f"the rollouts are of the {what} {known[0]}, the report says that it is about {found[0]}"
        for what, known, told in (
            ("model", ours, _models(read)),
            ("benchmark", benchmarks, _benchmarks(read)),
        )
        if known and (found := _others(read, known, told))
    ]


def _others(read: Sequence[Unit], known: Iterable[str], told: Iterable[str]) -> list[str]:
    """Names that stand where those that are known should, in a report that has none of these anywhere."""
    plain = {_plain(name) for name in known} - {""}
    prose = [_plain(_FILE.sub(" ", unit.text)) for unit in read if unit.kind != "quote"]
    if any(name in text for text in prose for name in plain):
        return []
    return [
        name
        for name in told
        if (bare := _plain(name)) and not any(bare in one or one in bare for one in plain)
    ]


def _models(read: Sequence[Unit]) -> Iterator[str]:
    yield from _listed(read, "model")
    for unit in read:
        if unit.kind == "sentence" and (hit := _SCORES.search(unit.text)):
            yield hit["name"]


def _benchmarks(read: Sequence[Unit]) -> Iterator[str]:
    yield from _listed(read, "benchmark")
    for unit in read:
        if unit.kind == "heading" and not unit.section and (hit := _TITLE.match(unit.text)):
            yield hit["name"]
        elif unit.kind == "sentence" and (hit := _ON.search(unit.text)):
            yield hit["name"] or hit["other"]


def _listed(read: Sequence[Unit], label: str) -> Iterator[str]:
    """What stands beside a label in a table, or behind it and a colon."""
    for unit in read:
        cells = [cell.strip(" `*_") for cell in re.split(r"\s*\|\s*|:\s+", unit.text, maxsplit=2)]
        if unit.kind in ("row", "sentence") and len(cells) > 1 and cells[0].lower() == label:
            yield from (name for name in cells[1:2] if re.search(r"[A-Za-z]", name) and len(name.split()) < 4)


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())
