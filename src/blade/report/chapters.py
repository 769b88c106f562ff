"""Turn a report into its title and eleven sections."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Report
from blade.report import first_page
from blade.report.blocks import Block, Code, Figure, Heading, Section, para
from blade.report.facts import Facts, facts
from blade.report.failure_groups import (
    cross_model,
    dominant_failure_modes,
    never_pass,
    recommendations,
    sometimes_pass,
)
from blade.report.inventory import artifact_inventory, reproducibility
from blade.report.results import aggregate_results, task_outcome_buckets, workflow_funnel


def title(report: Report) -> str:
    """`<Benchmark or run name> BLADE Analysis Report`."""
    benchmarks = {run.benchmark for run in report.runs}
    shared = benchmarks.pop() if len(benchmarks) == 1 else None
    names = [hostile.line(run.name, 60) for run in report.runs]
    subject = hostile.line(shared or "", 80) or (
        number_format.listing(names) if 0 < len(names) <= 3 else number_format.count(len(names), "run")
    )
    return f"{subject} BLADE Analysis Report"


def chapters(report: Report, figures: tuple[Figure, ...] = ()) -> tuple[Section, ...]:
    """The eleven sections, in the order that readers of BLADE reports expect."""
    runs = facts(report)
    contents = {
        "Executive Summary": executive_summary(report, runs),
        "Artifact Inventory": artifact_inventory(report, runs),
        "Aggregate Results": aggregate_results(runs, figures),
        "Workflow Funnel": workflow_funnel(runs, figures),
        "Task Outcome Buckets": task_outcome_buckets(runs, figures),
        "Dominant Failure Modes": dominant_failure_modes(runs, figures),
        "Sometimes-Pass Deep Dives": sometimes_pass(runs),
        "Never-Pass Deep Dives": never_pass(runs),
        "Cross-Model Comparison": cross_model(report, runs, figures),
        "Recommendations": recommendations(runs),
        "Reproducibility Notes": reproducibility(report, runs, figures),
    }
    return tuple(Section(name, tuple(blocks)) for name, blocks in contents.items())


def executive_summary(report: Report, runs: tuple[Facts, ...]) -> list[Block]:
    """The first page of each run."""
    if not runs:
        return [para("No run was read, so there is nothing to summarise.")]
    blocks: list[Block] = []
    for run in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(run.run.name, 80)),)))
        blocks += first_page.blocks(run)
    return blocks
