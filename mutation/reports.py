"""Turn data sets, given and planted, into stripped reports and the worlds that they are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from blade import pipeline
from blade.check.world import world
from blade.model import Report
from blade.package.calibrate.paraphrase import paraphrased
from blade.pipeline import comparing
from blade.pipeline.load import Loaded
from blade.planted import write_demo, write_run
from blade.planted.pairs import write_pair
from blade.report import json_v1, markdown
from blade.report.change import pages as change
from blade.store.index import Silent
from mutation import values
from mutation.lines import stripped
from mutation.page import JSON, MARKDOWN, Page

LARGEST = 500_000  # characters of JSON; a larger report tells no more and takes far longer


def natural(data: Path, only: str | None = None) -> Iterator[Page]:
    """The reports of every folder of rollouts, all its runs together, and their comparison."""
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        files = [path for path in sorted(folder.glob("*.jsonl*")) if not path.name.startswith("labels")]
        if files and only in (None, folder.name):
            yield from both(folder.name, [str(path) for path in files])


def planted(folder: Path, only: str | None = None) -> Iterator[Page]:
    """The reports of simulated runs, which are always at hand."""
    for name, write in PLANTED.items():
        if only in (None, name):
            yield from both(name, write(folder / name.replace(" ", "-")), **OPTIONS.get(name, {}))


def both(
    dataset: str, paths: list[str], threshold: float | None = None, margin: float | None = None
) -> Iterator[Page]:
    """The diagnosis of runs and, of several, their comparison."""
    loaded = pipeline.load(paths, Silent())
    yield from forms(dataset, "report", pipeline.diagnose(loaded, "mutation", threshold), loaded)
    if len(loaded) > 1:
        told = comparing.compare(loaded, "mutation", threshold=threshold, margin=margin or comparing.MARGIN)
        yield from forms(dataset, "compare", told, loaded)


def forms(dataset: str, name: str, report: Report, loaded: list[Loaded]) -> Iterator[Page]:
    """A report in Markdown and in JSON, without anchors and claims, and the world of its runs."""
    report = pipeline.with_digests(report)
    is_comparison = name == "compare"
    known = world(report, loaded, is_comparison)
    if is_comparison:
        text = markdown.page(change.title(report), change.chapters(report))
    else:
        text = markdown.render(report)
    yield Page(dataset, name, MARKDOWN, stripped(text), known, loaded)
    written = values.stripped(json_v1.render(report))
    if len(written) <= LARGEST:
        yield Page(dataset, name, JSON, written, known, loaded)


def reworded(pages: Sequence[Page], seed: int) -> Iterator[Page]:
    """The Markdown reports in other words, so that no sentence need be one of ours."""
    for at, page in enumerate(pages):
        if page.form == MARKDOWN:
            text = paraphrased(page.text, seed + at)
            yield Page(page.dataset, f"{page.name}, paraphrased", MARKDOWN, text, page.world, page.loaded)


def _demo(folder: Path) -> list[str]:
    write_demo(folder)
    return [str(folder)]


def _run(**told: Any) -> Callable[[Path], list[str]]:
    def write(folder: Path) -> list[str]:
        return [str(write_run(folder, **told).path)]

    return write


def _runs(folder: Path) -> list[str]:
    made = [
        write_run(folder, name=name, n_tasks=18, repeats=repeats, seed=seed, model=f"sim-{name}", rates=rates)
        for name, repeats, seed, rates in (
            ("early", 3, 5, (0.2, 0.5, 0.0)),
            ("middle", 3, 6, (0.6, 0.4, 0.8)),
            ("late", 4, 7, (0.9, 0.7, 1.0)),
        )
    ]
    return [f"{path.name.split('.')[0]}={path}" for path in (one.path for one in made)]


def _pair(cause: str, seed: int) -> Callable[[Path], list[str]]:
    def write(folder: Path) -> list[str]:
        made = write_pair(folder, cause, seed=seed)
        return [str(made.baseline), str(made.candidate)]

    return write


PLANTED: dict[str, Callable[[Path], list[str]]] = {
    "demo": _demo,
    "one repeat": _run(n_tasks=40, repeats=1, seed=1, rates=(0.7, 0.4)),
    "eight repeats": _run(n_tasks=16, repeats=8, seed=2, faults=("torn_tail", "masked_rows:4")),
    "odd rows": _run(
        n_tasks=20,
        seed=3,
        sidecars=False,
        faults=("null_rewards:3", "duplicate_differing:2", "retried_attempt:2", "empty_outputs:2"),
    ),
    "hard": _run(n_tasks=30, repeats=3, seed=4, rates=(0.0, 0.1, 0.3, 0.05), faults=("lost_rows:4",)),
    "three runs": _runs,
    "mode fixed": _pair("one failure mode fixed", 3),
    "slice worse": _pair("one slice worse", 4),
    "nothing changed": _pair("nothing", 5),
    "tasks dropped": _pair("tasks dropped", 6),
}
OPTIONS: dict[str, dict[str, float]] = {
    "odd rows": {"threshold": 0.5},
    "slice worse": {"margin": 0.05},
}
