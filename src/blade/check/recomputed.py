"""Turn a report and its runs into the world it is held against, made as the report was made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from blade import pipeline
from blade.check.judged import then
from blade.check.made import Made, made, options
from blade.check.redacted import like
from blade.check.world import World, world
from blade.pipeline import comparing

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline.load import Loaded
    from blade.store.index import Watcher

_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def recomputed(
    text: str,
    specs: Sequence[str],
    watcher: Watcher,
    threshold: float | None = None,
    baseline: str | None = None,
) -> World:
    """The runs diagnosed or compared anew; what the caller gives goes before what the report says."""
    told = made(text)
    loaded = then(text, told, _loaded(specs, told.runs, watcher), watcher)
    given = options(told.command)
    if threshold is None:
        threshold = _number(given.get("--pass-threshold"))
    if baseline is None and given.get("--baseline") in [one.name for one in loaded]:
        baseline = given["--baseline"]
    report, loaded = _report(told, given, loaded, threshold, baseline, watcher)
    if told.version:  # a report says who made it, which no row can tell
        report = replace(report, made_by={**report.made_by, "blade": told.version})
    report = pipeline.with_digests(report)
    _tell_others(text, report, watcher)
    report, is_blind = like(text, report, loaded)
    return world(report, loaded, told.is_comparison, is_blind)


def _tell_others(text: str, report: Report, watcher: Watcher) -> None:
    """Say so where a report names the digests of other files than these: then much of it may differ."""
    told = set(_DIGEST.findall(text))
    here = {source.sha256 for run in report.runs for source in run.sources if source.sha256}
    if told and here and not told & here:
        watcher.notice("the report is about other files (another SHA-256); it is held against these rows")
    elif len(here & told) < len(told & _of_sources(text)):
        watcher.notice("the report is about more runs than were given; name them all with --run")


def _of_sources(text: str) -> set[str]:
    """The digests of rollouts files that a page or a wire names."""
    found = re.findall(r"^\| `[^|]*` \|[^|]*\|[^|]*\| `([0-9a-f]{64})` \|", text, re.MULTILINE)
    return set(found) | set(re.findall(r'"sha256": "([0-9a-f]{64})"', text))


def _loaded(specs: Sequence[str], names: Sequence[str], watcher: Watcher) -> list[Loaded]:
    """The runs, under the names that the report gives them where it names as many and others."""
    loaded = pipeline.load(specs, watcher)
    others = set(names) != {one.name for one in loaded} and len(specs) == len(names) == len(loaded)
    if not others or any("=" in spec or spec == "-" for spec in specs):
        return loaded
    if any(set("/=:") & set(name) for name in names):
        return loaded
    return pipeline.load([f"{name}={spec}" for name, spec in zip(names, specs, strict=True)], watcher)


def _report(
    told: Made,
    given: dict[str, str],
    loaded: list[Loaded],
    threshold: float | None,
    baseline: str | None,
    watcher: Watcher,
) -> tuple[Report, list[Loaded]]:
    if not told.is_comparison:
        return pipeline.diagnose(loaded, told.command, threshold, watcher, None, baseline), loaded
    if field := given.get("--by"):
        loaded = comparing.split_runs(loaded, field)
    margin = _number(given.get("--margin"))
    report = comparing.compare(
        loaded, told.command, threshold=threshold, margin=comparing.MARGIN if margin is None else margin,
        baseline=baseline, ordered="--series" in given, quick="--quick" in given, watcher=watcher,
    )  # fmt: skip
    return report, loaded


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
