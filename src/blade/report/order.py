"""Put what was concluded in the order of print: same conclusions, same order, however they came."""

from __future__ import annotations

from msgspec.structs import replace

from blade.model import Report


def ordered(report: Report) -> Report:
    """The report with its conclusions sorted; trust and groups keep their rank within a run."""
    runs = {run.name: at for at, run in enumerate(report.runs)}

    def of(run: str) -> int:
        return runs.get(run, len(runs))

    return replace(
        report,
        trust=tuple(sorted(report.trust, key=lambda one: of(one.run))),
        groups=tuple(sorted(report.groups, key=lambda one: of(one.run))),
        unexplained=tuple(sorted(report.unexplained, key=lambda one: of(one.run))),
        attributions=tuple(sorted(report.attributions, key=lambda a: (of(a.run), *task_key(a.task), a.id))),
        losses=tuple(sorted(report.losses, key=lambda x: (of(x.run), -x.lost, x.cause.value, x.mode))),
        run_causes=tuple(sorted(report.run_causes, key=lambda c: of(c.run))),
        judgements={
            run: tuple(sorted(told, key=lambda j: (*task_key(j.task), j.at, j.by)))
            for run, told in sorted(report.judgements.items(), key=lambda told: of(told[0]))
        },
        recommendations=tuple(sorted(report.recommendations, key=lambda r: (of(r.run), r.rank, r.action))),
    )


def task_key(task: str) -> tuple[bool, int, str]:
    """What tasks are sorted by: numbers in numeric order, then names."""
    is_number = task.isascii() and task.isdigit() and len(task) <= 18
    return (not is_number, int(task) if is_number else 0, task)
