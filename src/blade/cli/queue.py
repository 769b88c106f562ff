"""`blade queue`: list the failed tasks worth reading, costly and doubtful labels first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import ONLY, THRESHOLD, json_option
from blade.cli.output import Progress
from blade.errors import UsageError
from blade.hostile import argument, command_line, line
from blade.number_format import hundredths

if TYPE_CHECKING:
    from blade.model import Waiting
    from blade.pipeline.reviewing import Queue


@click.command(short_help="List the failed tasks worth reading next.")
@click.argument("run", metavar="RUN")
@click.option("--most", metavar="N", default=10, show_default=True, help="Tasks to list; 0 for all.")
@ONLY
@click.option("--budget", metavar="TOKENS", type=int, help="Of a dossier (default: as for `blade show`).")
@THRESHOLD
@click.option("--judged", is_flag=True, help="List tasks that were judged already, too.")
@json_option()
def queue(
    run: str, most: int, only: str | None, budget: int | None, pass_threshold: float | None, judged: bool, as_json: bool
) -> None:
    """Order the failed tasks of RUN by what reading them could set right.

    The value of a task is the points it loses times how often such labels are wrong: 10% where the label is
    proved, 30% where it is likely, 70% where it is unsure, 100% where there is none. These shares are rough
    and only order the list. The order is value per token of the task's dossier.
    """
    from blade import pipeline
    from blade.pipeline import reviewing

    if most < 0:
        raise UsageError(f"--most {most} is no number of tasks", "give 0 for all", "usage")
    with Progress() as progress:
        session = pipeline.session([run], progress, pass_threshold)
        waiting_list = reviewing.queue(session, only, most or None, budget or reviewing.BUDGET, judged)
    click.echo(
        json.dumps(as_document(waiting_list), indent=2) if as_json else render(waiting_list, run, only, pass_threshold)
    )


def as_document(listing: Queue) -> dict[str, Any]:
    """The queue as JSON values; points of score as fractions."""
    heads = {name: getattr(listing, name) for name in ("run", "n_failed", "n_judged", "value")}
    return {**heads, "waiting": [_entry(task) for task in listing.waiting]}


def _entry(task: Waiting) -> dict[str, Any]:
    from blade.agent.queue import per_token

    return {
        "task": task.task, "task_name": task.task_name, "bucket": task.bucket, "cause": task.cause.value,
        "confidence": task.confidence.value, "lost": task.lost, "value": task.value, "tokens": task.tokens,
        "value_per_1000_tokens": 1000 * per_token(task), "reason": task.reason,
    }  # fmt: skip


def render(listing: Queue, run: str, only: str | None = None, threshold: float | None = None) -> str:
    """A line for each task, and what to type to read the first."""
    from blade.agent.queue import WRONG, WRONG_UNDETERMINED

    if not listing.waiting:
        judged = f", {listing.n_judged} judged already (--judged lists them)" if listing.n_judged else ""
        return f"Nothing to read in {line(listing.run, 80)}: {listing.n_failed} tasks lose points{judged}"
    shares = {**{name.value: share for name, share in WRONG.items()}, "undetermined": WRONG_UNDETERMINED}
    rough = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    lines = [
        f"{line(listing.run, 80)}: {listing.n_failed} tasks lose points, {listing.n_judged} judged",
        f"value = points lost x how often such labels are wrong ({rough}; a rough guide)",
        "order: value per 1,000 tokens of the dossier",
        "",
        f"{'task':<14} {'bucket':<10} {'cause':<13} {'lost':>6} {'label':<7} {'value':>6} {'tokens':>6} {'per 1k':>7}  why",
    ]
    for task in listing.waiting:
        entry = _entry(task)
        lines.append(
            f"{line(task.task, 14):<14} {task.bucket or '':<10} {task.cause.value:<13} {hundredths(task.lost):>6} "
            f"{task.confidence.value:<7} {hundredths(task.value):>6} {task.tokens:>6,} "
            f"{hundredths(entry['value_per_1000_tokens']):>7}  {line(task.reason, 80)}"
        )
    total, tokens = sum(task.value for task in listing.waiting), sum(task.tokens for task in listing.waiting)
    lines += ["", f"total: {hundredths(total)} points of value for {tokens:,} tokens"]
    names = (run, listing.waiting[0].task)
    if all(argument(word) for word in (*names, only or run)):
        lines.append(f"read:  {command_line('show', names, dossier=True, run=only or None, pass_threshold=threshold)}")
    return "\n".join(lines)


# ---- Judgements ---------------------------------------------------------------------------------
