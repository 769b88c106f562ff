"""Turn a report on the files of a package into one that names them from the package's own folder."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from blade.model import Report


def portable(report: Report, folder: Path) -> Report:
    """The same report, without the place where the package happens to lie."""
    at = f"{folder}/"

    def named(path: str) -> str:
        return path.removeprefix(at)

    runs = [
        replace(
            run,
            sources=tuple(replace(one, path=named(one.path)) for one in run.sources),
            artifacts=tuple(replace(one, path=named(one.path)) for one in run.artifacts),
        )
        for run in report.runs
    ]
    return replace(
        report,
        made_by={key: text.replace(at, "") for key, text in report.made_by.items()},
        runs=tuple(runs),
        compared=tuple(replace(one, file=named(one.file)) for one in report.compared),
        skipped=tuple(replace(one, file=named(one.file)) for one in report.skipped),
        gaps=tuple(
            replace(gap, what=gap.what.replace(at, ""), why=gap.why.replace(at, "")) for gap in report.gaps
        ),
        benchmark={
            name: replace(known, path=named(known.path)) if known.path else known
            for name, known in report.benchmark.items()
        },
    )
