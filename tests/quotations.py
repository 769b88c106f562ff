"""Check every quotation and every step of a report against the rows they are taken from."""

from __future__ import annotations

import json

from blade.check.report_ground import Rows as Rows
from blade.formats.rollout_steps import NOTHING, value_at
from blade.model import Evidence, Report, Trace

# The parts of a report that quote rows.
QUOTING = ("health", "attributions", "run_causes", "recommendations")


def assert_evidence_resolves(report: Report, rows: Rows) -> int:
    """Every quotation stands word for word where it says it does; how many there are."""
    quoted = [(f"{part}[{n}]", quote) for part in QUOTING for n, entry in enumerate(getattr(report, part)) for quote in entry.evidence]
    quoted += [(f"group {group.id} of {group.run}", group.quote) for group in report.groups if group.quote is not None]
    n = 0
    for place, evidence in quoted:
        found = rows.at(evidence.run, evidence.task, evidence.repeat)
        if evidence.quote is None:  # an absent row
            assert evidence.repeat is not None, (place, evidence)
            assert not found, (place, evidence)
            continue
        assert found, (place, evidence, "no such row")
        assert evidence.quote, (place, evidence, "nothing is quoted")
        told = [quotable(trace, evidence) for trace in found]
        assert any(evidence.quote in text for text in told), (place, evidence, told)
        n += 1
    return n


def quotable(trace: Trace, evidence: Evidence) -> str:
    """What may be quoted at the place that evidence names; empty if there is no such place."""
    if evidence.step is not None:
        if not 0 <= evidence.step < len(trace.steps):
            return ""
        step = trace.steps[evidence.step]
        return step.text or step.reasoning or step.tool or ""
    value = value_at(trace.row, evidence.field or "")
    if value is NOTHING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def assert_steps_exist(report: Report, rows: Rows) -> None:
    """Every step that is blamed is one of its rollout."""
    for cause in report.attributions:
        steps = [step for step in (cause.step, *(blame.step for blame in cause.steps)) if step is not None]
        traces = rows.at(cause.run, cause.task, cause.repeat) if steps else []
        n_steps = max((len(trace.steps) for trace in traces), default=0)
        assert all(0 <= step < n_steps for step in steps), (cause, n_steps)


def assert_losses_add_up(report: Report) -> None:
    """Of each run that has a full score to lose from, every lost point stands under one cause, once."""
    for run in report.runs:
        lost = [loss.lost for loss in report.losses if loss.run == run.name]
        attributed = {one.task: one.lost for one in report.attributions if one.run == run.name}
        assert len(attributed) == sum(one.run == run.name for one in report.attributions)
        if run.score is None or any(gap.what == f"losses of {run.name}" for gap in report.gaps):
            assert not lost
            assert not attributed
            continue
        assert all(value > 0 for value in lost)
        assert abs(sum(lost) - (1 - run.score)) < 1e-9, (sum(lost), 1 - run.score)
        assert abs(sum(attributed.values()) - sum(lost)) < 1e-9
        assert all(value > 0 for value in attributed.values())


def assert_groups_add_up(report: Report) -> None:
    """Of each run, groups and what is unexplained are all failures once, and the losses are their points."""
    for run in report.runs:
        groups = [group for group in report.groups if group.run == run.name]
        (rest,) = [part for part in report.unexplained if part.run == run.name]
        points = sum(group.points for group in groups) + rest.points
        assert abs(points - sum(loss.lost for loss in report.losses if loss.run == run.name)) < 1e-9
        assert all(group.rows >= group.tasks > 0 for group in groups)
        assert len({group.id for group in groups}) == len(groups)


def assert_examples_fail(report: Report) -> None:
    """The rollouts that are named for a group are there, and lose points."""
    full = {run.name: run.pass_threshold if run.has_pass_rate else 1.0 for run in report.runs}
    rewards: dict[tuple[str, str], list[float | None]] = {}
    for task in report.tasks:
        for each in task.repeats:
            rewards.setdefault((task.run, f"{task.task}/{each.repeat}"), []).append(each.reward)
    for group in report.groups:
        assert group.examples
        for name in group.examples:
            found = rewards[group.run, name]
            assert any(reward is None or reward < full[group.run] for reward in found), (group.id, name, found)


def losing_tasks(report: Report, run: str) -> set[str]:
    """The tasks whose part of the score is not full, by their counts; none where nothing was scored."""
    (told,) = [entry for entry in report.runs if entry.name == run]
    name = "rate" if told.score_name == "pass_at_1" else "mean_reward"
    rates = {task.task: getattr(task, name) for task in report.tasks if task.run == run and task.n}
    return {task for task, rate in rates.items() if told.score is not None and rate is not None and rate < 1}


def assert_sound(report: Report, rows: Rows) -> int:
    """All that must hold of any report; how many quotations it has."""
    assert_nothing_broke(report)
    assert_losses_add_up(report)
    assert_groups_add_up(report)
    assert_examples_fail(report)
    assert_steps_exist(report, rows)
    return assert_evidence_resolves(report, rows)


def assert_nothing_broke(report: Report) -> None:
    """No stage and no detector failed on the way."""
    assert not [gap for gap in report.gaps if "failed: " in gap.why], report.gaps
