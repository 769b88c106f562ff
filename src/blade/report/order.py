"""Put what was concluded in the order of print: same conclusions, same order, however they came."""

from __future__ import annotations

from msgspec.structs import replace

from blade.model import Report

STANDINGS = ("cause", "mechanism", "unproven", "lead", "style")  # what explains first, what does not last


def ordered(report: Report) -> Report:
    """The report with its conclusions sorted, and the rollouts inside them too.

    What a stage ranks keeps its rank within a run: mechanisms in the order in which they cover the failures,
    signatures, contrasts, and the tasks of a recommendation.
    """
    runs = {run.name: at for at, run in enumerate(report.runs)}

    def of(run: str) -> int:
        return runs.get(run, len(runs))

    findings = sorted(
        report.findings,
        key=lambda f: (of(f.run), *task_key(f.task), -1 if f.repeat is None else f.repeat, f.detector, f.id),
    )
    mechanisms = sorted(report.mechanisms, key=lambda m: (of(m.run), standing(m.standing)))
    signatures = sorted(report.signatures, key=lambda s: of(s.run))
    contrasts = sorted(
        report.contrasts, key=lambda c: (of(c.run), c.task is not None, *task_key(c.task or ""))
    )
    return replace(
        report,
        findings=tuple(findings),
        behaviours=tuple(
            sorted(
                report.behaviours,
                key=lambda b: (
                    of(b.run),
                    standing(b.standing),
                    _p(b.p_adjusted, b.p),
                    -b.in_fail,
                    b.detector,
                ),
            )
        ),
        signatures=tuple(replace(s, rollouts=_rollouts(s.rollouts)) for s in signatures),
        meanings=tuple(sorted(report.meanings, key=lambda m: (of(m.run), m.field, m.value, m.origin))),
        mechanisms=tuple(replace(m, rollouts=_rollouts(m.rollouts)) for m in mechanisms),
        contrasts=tuple(contrasts),
        divergences=tuple(
            sorted(
                report.divergences,
                key=lambda d: (of(d.run), *task_key(d.task), d.repeat, d.passer_run, d.passer, d.step),
            )
        ),
        attributions=tuple(sorted(report.attributions, key=lambda a: (of(a.run), *task_key(a.task), a.id))),
        losses=tuple(sorted(report.losses, key=lambda x: (of(x.run), -x.lost, x.cause.value, x.mode))),
        run_causes=tuple(
            sorted(
                report.run_causes,
                key=lambda c: (of(c.run), -c.lost, -c.n_rollouts, c.cause.value, c.mode, c.text),
            )
        ),
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


def standing(word: str) -> int:
    return STANDINGS.index(word) if word in STANDINGS else len(STANDINGS)


def _p(adjusted: float | None, raw: float | None) -> tuple[float, float]:
    return (2.0 if adjusted is None else adjusted, 2.0 if raw is None else raw)


def _rollouts(rollouts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(rollouts, key=lambda at: (task_key(at[0]), at[1])))
