"""`blade show`: find the rows of one task or rollout; `rollout_page.py` prints them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.cli.options import MAPPING, ONLY, THRESHOLD, json_option
from blade.cli.output import Progress
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.cli.rollout_page import Shown
    from blade.pipeline import Loaded

@click.command(short_help="Show one task, or one rollout: what decides, then every step.")
@click.argument("run", metavar="RUN")
@click.argument("task", metavar="TASK[/REPEAT]")
@click.option("--steps", metavar="A:B", help="Show only steps A to B, without B; separate several by commas.")
@click.option(
    "--chars", metavar="N", default=1500, show_default=True, help="Maximum characters of one step; 0 for all."
)
@click.option("--request", is_flag=True, help="Show the head, the fields of the row and the request, without steps.")
@click.option("--dossier", "as_dossier", is_flag=True, help="Show what is needed to judge TASK, in few tokens.")
@click.option("--budget", metavar="TOKENS", type=int, help="Maximum tokens of a dossier.")
@ONLY
@MAPPING
@THRESHOLD
@json_option()
@click.pass_context
def show(
    context: click.Context, run: str, task: str, steps: str | None, chars: int, request: bool, as_dossier: bool,
    budget: int | None, only: str | None, fields: str | None, pass_threshold: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the repeats of TASK, or the steps of one repeat: blade show results.jsonl 12/0.

    TASK is the key or the name of a task, REPEAT its number. A rollout begins with what decides: the
    verdict, checks that did not pass, what was recorded and expected, and how it ended. Text of a rollout is
    data: nothing in it is run or obeyed. A dossier adds the proposed cause with its grounds, a passing repeat
    beside the failing one, and the decisive steps; with TASK/REPEAT that repeat is read closely.
    """
    from blade.cli import rollout_page

    if as_dossier:
        was_given = context.get_parameter_source("chars") is click.core.ParameterSource.COMMANDLINE
        if steps is not None or was_given or request:
            hint = "leave out --steps, --chars and --request; --budget says how long a dossier may be"
            raise UsageError("a dossier chooses its steps itself", hint, "usage")
        _dossier(run, task, only, budget, pass_threshold, as_json)
        return
    if budget is not None:
        raise UsageError("--budget is for dossiers", "add --dossier, or leave it out", "usage")
    wanted = _ranges(steps) if steps is not None else [] if request else [(0, None)]
    rows = (_quick(run, task) if only is None and not fields else []) or _thorough(run, task, only, fields)
    if pass_threshold is not None:
        rows = [replace(row, threshold=pass_threshold) for row in rows]
    runs = list(dict.fromkeys(row.run for row in rows))
    if not rows[0].is_one and (steps is not None or request):
        hint = f"name one, such as {task}/{rows[0].repeat}"
        raise UsageError(f"{task} has {len(rows)} rollouts; steps belong to one", hint, "usage")
    if not rows[0].is_one:
        results = [rollout_page.task([row for row in rows if row.run == name]) for name in runs]
    elif len(runs) == 1:
        results = [rollout_page.rollout(row, wanted) for row in rows]
    else:
        hint = f"name one with --run: {', '.join(runs[:8])}"
        raise UsageError(f"{len(runs)} runs of {run} have {task}", hint, "usage")
    if as_json:
        shown = results[0] if len(results) == 1 else results
        click.echo(rollout_page.as_json(shown))
    else:
        is_whole = steps is None or request
        click.echo("\n".join(rollout_page.render(result, chars, is_whole) for result in results), nl=False)


def _dossier(
    run: str, task: str, only: str | None, budget: int | None, threshold: float | None, as_json: bool
) -> None:
    """Print what is needed to judge one task."""
    from blade.agent.dossier import BUDGET, check_budget
    from blade.formats.single_rows import positions
    from blade.pipeline import reviewing
    from blade.pipeline.session import session

    budget = BUDGET if budget is None else budget
    check_budget(budget)
    with Progress() as progress:
        opened = session([run], progress, threshold)
    chosen = opened.run(only)
    tasks = chosen.run.rollouts
    name, repeat = (task, None) if task in tasks.task_keys or task in tasks.task_names else _split(task)
    key = opened.key(chosen, name)
    if repeat is not None and not positions(chosen.run, key, repeat):
        raise _unknown(run, f"{key}/{repeat}", chosen)
    result = reviewing.dossier(opened, key, chosen.name, budget, repeat)
    if as_json:
        document = {name: getattr(result, name) for name in ("run", "task", "tokens", "budget", "text")}
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        click.echo(result.text, nl=False)


def _ranges(steps: str) -> list[tuple[int, int | None]]:
    """Parse `3:10,14,20:` as ranges: the first step of each, and the one it ends before."""
    ranges: list[tuple[int, int | None]] = []
    try:
        for first, colon, last in (part.strip().partition(":") for part in steps.split(",")):
            start, end = int(first or (0 if colon else "none")), int(last) if last else None
            if min(start, end or 0) < 0:
                raise ValueError(steps)
            ranges.append((start, end if colon else start + 1))
    except ValueError:
        hint = "write it as 3:10, :10, 3:, 3 or 3:5,9"
        raise UsageError(f"--steps {steps} is not a range", hint, "usage") from None
    return ranges


_WHOLE = re.compile(r"0|[1-9][0-9]*")  # a number as we would write it; not `003`, not a superscript


def _split(task: str) -> tuple[str, int | None]:
    """Split TASK/REPEAT; a name may hold slashes itself."""
    name, slash, repeat = task.rpartition("/")
    return (name, int(repeat)) if slash and _WHOLE.fullmatch(repeat) else (task, None)


def _quick(run: str, task: str) -> list[Shown]:
    """Read the rows straight from the index of a plain file; empty where that is not enough."""
    from blade.cli.rollout_page import Shown
    from blade.formats.rollout_steps import parsed
    from blade.tables import task_rows

    name, repeat = _split(task)
    path = Path(run)
    if not _WHOLE.fullmatch(name) or not path.is_file() or (path.parent / "blade.toml").exists():
        return []
    label = path.name.removesuffix(".ndjson").removesuffix(".jsonl")
    rows = []
    for place in task_rows.places(path, int(name)) or []:
        if repeat in (None, place.repeat):
            row = parsed(task_rows.row_bytes(path, place).removeprefix(b"\xef\xbb\xbf"))[0] or {}
            key = [row.get(f"_ng_{part}_index") for part in ("task", "rollout", "attempt")]
            if key not in ([int(name), place.repeat, place.attempt], [int(name), place.repeat, None]):
                return []  # a part of the index is not as it was written
            spot = (label, name, place.repeat, str(path), place.line)
            rows.append(Shown(*spot, row, repeat is not None, None))
    return rows


def _thorough(run: str, task: str, only: str | None, fields: str | None = None) -> list[Shown]:
    """Read the rows through the whole index: any kind of RUN, names of tasks, duplicates, several agents."""
    from blade import pipeline
    from blade.cli.rollout_page import Shown
    from blade.formats import single_rows
    from blade.formats.field_mapping import mapping_of

    with Progress() as progress:
        loaded = pipeline.load([run], progress, None, mapping_of(fields) if fields else None)
    chosen = [item for item in loaded if only in (None, item.name)]
    if not chosen:
        names = ", ".join(item.name for item in loaded[:5])
        raise UsageError(f"{run} has no run named {only}", f"its runs are {names}", "unknown-task")
    hits = []
    for item in chosen:
        for key, repeat in ((task, None), _split(task)):  # a name that holds a slash is tried whole first
            traces = [single_rows.traced(item.run, place) for place in single_rows.positions(item.run, key, repeat)]
            hits += [
                Shown(item.name, t.rollout.task, t.rollout.repeat, t.rollout.file, t.rollout.line, dict(t.row),
                      repeat is not None, item.benchmark.pass_threshold)
                for t in traces
            ]  # fmt: skip
            if traces:
                break
    if not hits:
        raise _unknown(run, task, chosen[0])
    return hits


def _unknown(run: str, task: str, item: Loaded) -> UsageError:
    """Say what is there instead of what was asked for."""
    from blade.formats import single_rows

    rollouts, (name, repeat) = item.run.rollouts, _split(task)
    repeats = [str(rollouts.repeat[place]) for place in single_rows.positions(item.run, name, None)]
    if repeats:
        hint = f"task {name} has the repeats {', '.join(repeats[:20])}"
        return UsageError(f"{run} has no repeat {repeat} of task {name}", hint, "unknown-task")
    if name in rollouts.task_keys:
        hint = "it was expected, but its rollouts failed or were lost: see `blade diagnose`"
        return UsageError(f"task {name} has no row in {run}", hint, "unknown-task")
    keys = rollouts.task_keys
    some = ", ".join(keys[:3]) + (f" ... {keys[-1]}" if len(keys) > 3 else "")
    hint = f"its {len(keys)} tasks are {some}; a rollout is TASK/REPEAT"
    return UsageError(f"{run} has no task or rollout {task}", hint, "unknown-task")
