"""Draft the golden reports of a package with their sidecars, and recognise a draft that nobody has edited."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from blade.package import files
from blade.package.layout import Golden, Layout, prefix_of, rollouts_of, sides_of
from blade.package.metrics import sidecar
from blade.package.seal import sealed
from blade.package.shallow import shallow

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline.load import Loaded
    from blade.tables.index import Watcher

MARK = "<!-- draft:"
_DRAFT = MARK + " written from {path} by `blade package init`; review it, then delete this line -->"
UNEDITED = 0.7  # share of sentences that are the engine's own, from which on a report is a draft
CITED = 10  # citations in the form for people, from which on a report is no page of ours
_CLAIM = re.compile(r"<!--c\d+-->")
_THRESHOLD = re.compile(r"--pass-threshold[ =](?P<value>-?\d+(?:\.\d+)?)")


def golden(
    folder: Path, run: Loaded, benchmark: str, threshold: float | None, watcher: Watcher
) -> tuple[Report, list[Path]]:
    """The draft of a golden report, with its metrics, anchors and shallow baseline."""
    from blade.report.facts import facts

    path = Path(run.sources[0].path)
    report, page = _page(folder, [run], threshold, watcher)
    text = _marked(page, f"rollouts/{path.name}")
    model = report.runs[0].model or run.name
    base = folder / "golden_reports" / f"{run.name}_golden_report.md"
    contents = {
        base: text,
        base.with_name(f"{base.stem}_metrics.json"): _json(sidecar(facts(report)[0], model, benchmark)),
        base.with_name(f"{run.name}_anchor_facts.json"): _json(
            _anchors(text, report, run, benchmark, threshold, watcher)
        ),
        base.with_name(f"{run.name}_shallow.md"): sealed(shallow(text, base.stem)),
    }
    for place, content in contents.items():
        files.write(place, content)
    return report, list(contents)


def compared(folder: Path, pair: Sequence[Loaded], threshold: float | None, watcher: Watcher) -> Path:
    """The draft of a report on two runs; it has no sidecars of its own."""
    _, text = _page(folder, pair, threshold, watcher)
    path = folder / "golden_reports" / f"{'_vs_'.join(run.name for run in pair)}_golden_report.md"
    files.write(path, _marked(text, "rollouts/"))
    return path


def _page(
    folder: Path, runs: Sequence[Loaded], threshold: float | None, watcher: Watcher
) -> tuple[Report, str]:
    """What the engine writes about the rollouts today, of one run or of two: the report, and its page."""
    from blade import pipeline
    from blade.pipeline import comparing
    from blade.report import markdown
    from blade.report.change import pages

    names = " ".join(run.sources[0].path for run in runs)
    option = f" --pass-threshold {threshold!r}" if threshold is not None else ""
    if len(runs) == 1:
        report = pipeline.diagnose(runs, f"blade diagnose {names}{option}", threshold, watcher)
        report = _portable(pipeline.with_digests(report), folder)
        return report, markdown.render(report)
    command = f"blade compare {names}{option}"
    report = comparing.compare(runs, command, threshold=threshold, watcher=watcher)
    report = _portable(pipeline.with_digests(report), folder)
    return report, markdown.page(pages.title(report), pages.chapters(report))


def _portable(report: Report, folder: Path) -> Report:
    """The same report, without the place where the package happens to lie."""
    base = f"{folder}/"
    runs = [
        replace(
            run,
            sources=tuple(replace(source, path=source.path.removeprefix(base)) for source in run.sources),
            artifacts=tuple(replace(file, path=file.path.removeprefix(base)) for file in run.artifacts),
        )
        for run in report.runs
    ]
    return replace(
        report,
        made_by={key: text.replace(base, "") for key, text in report.made_by.items()},
        runs=tuple(runs),
        compared=tuple(replace(each, file=each.file.removeprefix(base)) for each in report.compared),
        skipped=tuple(replace(each, file=each.file.removeprefix(base)) for each in report.skipped),
        gaps=tuple(
            replace(gap, what=gap.what.replace(base, ""), why=gap.why.replace(base, ""))
            for gap in report.gaps
        ),
        benchmark={
            name: replace(known, path=known.path.removeprefix(base)) if known.path else known
            for name, known in report.benchmark.items()
        },
    )


def runs_of(package: Layout, parts: Golden, text: str, watcher: Watcher) -> tuple[list[Loaded], float | None]:
    """The runs that a report is on, none if one is missing, and the threshold that it was made with."""
    from blade import pipeline

    own = rollouts_of(parts, package.rollouts) if not parts.is_comparison else None
    paths = sides_of(parts, package.rollouts) if parts.is_comparison else ((own,) if own else ())
    loaded = [pipeline.load([f"{prefix_of(path)}={path}"], watcher)[0] for path in paths]
    return loaded, threshold_in(text)


def threshold_in(text: str) -> float | None:
    """The pass threshold that a report says it was made with."""
    hit = _THRESHOLD.search(text)
    return float(hit["value"]) if hit else None


def redraft(package: Layout, parts: Golden, watcher: Watcher) -> bool:
    """Write a report again if it is still a draft of ours; whether it was."""
    text, data = files.text_or_nothing(parts.report), files.data_or_nothing(parts.metrics)
    loaded, threshold = runs_of(package, parts, text, watcher) if MARK in text else ([], None)
    if not loaded:
        return False
    if parts.is_comparison:
        compared(package.folder, loaded, threshold, watcher)
    else:
        benchmark = data.get("benchmark") if isinstance(data, dict) else None
        golden(package.folder, loaded[0], str(benchmark or package.folder.name), threshold, watcher)
    return True


# -- recognising a draft ----------------------------------------------------------------------------


def why_draft(text: str, package: Layout, parts: Golden, watcher: Watcher) -> str:
    """Why a report is an unedited draft of ours; empty: a person has written it."""
    if MARK in text:
        return f"read it against the rollouts, then delete its line that begins with {MARK}"
    if len(_CLAIM.findall(text)) >= 5:
        return "its numbers still carry the engine's marks (<!--c1-->); write and cite the findings yourself"
    # A person who cites queries of their own has written the report: no page of ours does that.
    share = _own_share(text, package, parts, watcher) if text.count("<!--blade:") < CITED else 0.0
    if share < UNEDITED:
        return ""
    return f"{share:.0%} of its sentences are those that blade writes itself; write the findings yourself"


def _own_share(text: str, package: Layout, parts: Golden, watcher: Watcher) -> float:
    """The share of a report's sentences and rows that the engine writes about the same runs."""
    from blade.report.draft import draft

    runs, threshold = runs_of(package, parts, text, watcher)
    sentences = _sentences(text)
    if not runs or not sentences:
        return 0.0
    report, page = _page(package.folder, runs, threshold, watcher)
    ours = set(_sentences(page)) | set(_sentences(draft(report, [run.name for run in runs])))
    return sum(sentence in ours for sentence in sentences) / len(sentences)


def _sentences(text: str) -> list[str]:
    """The sentences and table rows of a text, without their numbers."""
    from blade.check.markdown_document import parse
    from blade.package.judge.statements import row_text

    document = parse(text)
    sentences = [sentence.text for sentence in document.sentences if sentence.kind != "heading"]
    sentences += [row_text(table, row) for table in document.tables for row in table.rows]
    return [re.sub(r"[\d.,%]+", "#", each.lower()) for each in sentences if len(each.split()) > 4]


def _marked(text: str, source: str) -> str:
    """A report that is marked as a draft where nobody takes the mark for a claim."""
    title, _, body = text.partition("\n")
    return f"{title}\n\n{_DRAFT.format(path=source)}\n{body}"


def _anchors(
    text: str, report: Report, run: Loaded, benchmark: str, threshold: float | None, watcher: Watcher
) -> dict[str, Any]:
    """Facts that the draft cites, each with its query."""
    from blade.check import world_of
    from blade.package.judge.anchors import as_file
    from blade.package.judge.extraction import drafted
    from blade.package.worlds import Worlds

    worlds = Worlds(world_of([run], threshold, watcher, report))
    return as_file(drafted(text, worlds, 12), benchmark, report.runs[0].model or run.name)


def _json(value: Any) -> str:
    from blade.hostile import json_text

    return json_text(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"
