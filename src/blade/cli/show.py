"""`blade show`: one task or one rollout, readable within a length budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.cli.trace_text import Shown


@click.command(short_help="One task, or one rollout step by step.")
@click.argument("run", metavar="RUN")
@click.argument("task", metavar="TASK[/REPEAT]")
@click.option("--steps", metavar="A:B", help="Only steps A to B, B not included; either may be left out.")
@click.option(
    "--chars", metavar="N", default=1500, show_default=True, help="Most characters of one step; 0 for all."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(run: str, task: str, steps: str | None, chars: int, as_json: bool) -> None:
    """Show the repeats of TASK, or the steps of one repeat: blade show results.jsonl 12/0.

    TASK is the key or the name of a task, REPEAT its number. Text of a rollout is data: nothing in it
    is run, followed or obeyed.
    """
    from blade.cli import trace_text

    wanted = _range(steps)
    rows = _quick(run, task) or _thorough(run, task)
    if len(rows) == 1 and rows[0].is_one:
        result: Any = trace_text.rollout(rows[0], wanted)
    else:
        result = trace_text.task(rows)
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        click.echo(trace_text.render(result, chars), nl=False)


def _range(steps: str | None) -> tuple[int, int | None]:
    if steps is None:
        return 0, None
    first, colon, last = steps.partition(":")
    try:
        start = int(first or 0)
        return start, (int(last) if last else None) if colon else start + 1
    except ValueError:
        raise UsageError(f"--steps {steps} is no range", "write it as 3:10, :10, 3: or 3", "usage") from None


def _split(task: str) -> tuple[str, int | None]:
    """TASK/REPEAT; a name may hold slashes itself."""
    name, slash, repeat = task.rpartition("/")
    return (name, int(repeat)) if slash and _is_number(repeat) else (task, None)


def _is_number(text: str) -> bool:
    """Is it a whole number as we would write it; not `003`, not a superscript."""
    return text.isascii() and text.isdigit() and str(int(text)) == text


def _quick(run: str, task: str) -> list[Shown]:
    """Straight from the index of a plain file; empty where that is not enough."""
    from blade.cli.trace_text import Shown
    from blade.store import quick

    name, repeat = _split(task)
    path = Path(run)
    if not _is_number(name) or not path.is_file():
        return []
    found = quick.places(path, int(name)) or []
    chosen = [place for place in found if repeat is None or place.repeat == repeat]
    label = path.name.removesuffix(".ndjson").removesuffix(".jsonl")
    return [
        Shown(
            label,
            name,
            place.repeat,
            str(path),
            place.line,
            _parsed(quick.row_bytes(path, place)),
            repeat is not None,
        )
        for place in chosen
    ]


def _parsed(line: bytes) -> dict[str, Any]:
    row = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    return row if isinstance(row, dict) else {}


def _thorough(run: str, task: str) -> list[Shown]:
    """Through the whole index: any kind of RUN, names of tasks, duplicates, several agents."""
    from blade import pipeline
    from blade.cli.trace_text import Shown
    from blade.cli.watch import Progress
    from blade.ingest import opened

    with Progress() as progress:
        loaded = pipeline.load([run], progress)
    found = []
    for one in loaded:
        for key, repeat in ((task, None), _split(task)):
            chosen = opened.positions(one.run, key, repeat)
            if not len(chosen):
                continue
            for position in chosen:
                trace = opened.traced(one.run, position)
                rollout = trace.rollout
                found.append(
                    Shown(
                        one.name,
                        rollout.task,
                        rollout.repeat,
                        rollout.file,
                        rollout.line,
                        dict(trace.row),
                        repeat is not None,
                    )
                )
            break
    if not found:
        raise _unknown(run, task, loaded)
    return found


def _unknown(run: str, task: str, loaded: list[Any]) -> UsageError:
    keys = loaded[0].run.rollouts.task_keys
    some = ", ".join(keys[:3]) + (f" ... {keys[-1]}" if len(keys) > 3 else "")
    return UsageError(
        f"{run} has no task or rollout {task}",
        f"its {len(keys)} tasks are {some}; a rollout is TASK/REPEAT",
        "unknown-task",
    )
