"""`blade label`: keep a judgement of a failed task, once its ids, place, quotation and order hold."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import ONLY, THRESHOLD, json_option
from blade.cli.output import Progress, exit_failed
from blade.errors import NothingToRead, Unreadable, UsageError
from blade.hostile import json_text, line, under

if TYPE_CHECKING:
    from blade.model import Judgement
    from blade.pipeline import Session


@click.command(short_help="Judge failed tasks; list what was judged, and how far authors agree.")
@click.argument("run", metavar="RUN")
@click.argument("task", metavar="[TASK[/REPEAT]]", required=False)
@click.option("--cause", metavar="CAUSE", help="KG, UK, BI, TI, IR, DA or undetermined.")
@click.option("--repeat", metavar="N", type=int, help="The failing rollout that shows it.")
@click.option("--step", metavar="N", type=int, help="The step that decided it.")
@click.option("--field", metavar="PATH", help="Instead of a step: a field of the row, such as error.")
@click.option("--quote", metavar="TEXT", help="Words that stand in that step or field.")
@click.option("--mechanism", metavar="TEXT", help="What happened, in a sentence.")
@click.option("--mode", metavar="TEXT", help="A short name for it, under which losses are booked.")
@click.option("--by", metavar="NAME", help="Who judges (default: the user's name).")
@click.option(
    "--from", "source", metavar="FILE", help="Many judgements, one JSON object a line; - for stdin."
)
@click.option("--where", "condition", metavar="EXPR", help="Judge every failed task with such a rollout.")
@click.option("--withdraw", is_flag=True, help="Take back what --by said of TASK.")
@click.option("--check", "only_check", is_flag=True, help="Verify, and keep nothing.")
@ONLY
@THRESHOLD
@json_option()
def label(
    run: str, task: str | None, source: str | None, condition: str | None, withdraw: bool, only_check: bool,
    only: str | None, as_json: bool, by: str | None, pass_threshold: float | None, **options: Any,
) -> None:  # fmt: skip
    """Judge TASK of RUN: blade label results.jsonl 12 --cause BI --repeat 2 --step 7 --quote "…"
    --mechanism "…".

    A judgement is kept only if the task and repeat exist and fail, the step or field holds the quotation,
    and nothing is blamed for what came before it. It is kept beside the run, in FILE_judgements.jsonl, and
    replaces the engine's proposal from then on. With --where EXPR, a condition as in `blade query`, all
    failed tasks with such a rollout are judged at once, each with what the condition finds in its rollout;
    the condition itself is the ground where nothing can be quoted. Without TASK and --from, what was judged
    is listed, with the agreement between authors and the engine.
    """
    from blade import pipeline
    from blade.pipeline import reviewing

    author, values = by or _user(), {key: value for key, value in options.items() if value is not None}
    proposals = _proposals(task, source, values, withdraw) if condition is None else []
    with Progress() as progress:
        session = pipeline.session([run], progress, pass_threshold)
        if condition is not None:
            proposals = _where(session, condition, task or source, values, only)
        if withdraw:
            named = _split(str(task), session.run(only).run.rollouts.task_keys)[0]
            _print({"withdrawn": reviewing.withdraw(session, named, author, only)}, as_json, is_full=True)
            return
        if proposals is None:
            click.echo(_listed(session, only, as_json))
            return
        proposals = _addressed(proposals, session.run(only).run.rollouts.task_keys)
        if only_check:
            judgements, refused = reviewing.checked(session, proposals, author, only)
            _print({"would_keep": judgements, "refused": list(refused)}, as_json)
            return exit_failed(refused)
        recorded = reviewing.label(session, proposals, author, only)
    path = str(session.run(only).judged_in)
    _print({"kept": recorded, **({"file": path} if as_json else {})}, as_json)
    if not as_json:
        click.echo(f"Wrote {path}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as containers have them
        return "unnamed"


def _proposals(
    task: str | None, source: str | None, values: Mapping[str, Any], withdraw: bool
) -> list[Mapping[str, Any]] | None:
    """What was given to be judged; None where nothing was, and what is kept shall be listed."""
    if source is not None:
        if task is not None or values:
            raise UsageError("--from brings its own tasks", "leave out TASK and the other options", "usage")
        return _lines(source)
    if task is None:
        if values or withdraw:
            raise UsageError("no TASK was given", "name the task that is judged", "usage")
        return None
    if withdraw:
        return None
    return [{"task": task, **values}]


def _where(
    session: Session, condition: str, other: str | None, values: Mapping[str, Any], only: str | None
) -> list[Mapping[str, Any]]:
    """A judgement of every failed task that has a rollout as described."""
    from blade.pipeline import reviewing, run_tables

    if other is not None:
        hint = "leave out TASK and --from, or judge them without --where"
        raise UsageError("--where finds the tasks itself", hint, "usage")
    if place := {"repeat", "step", "field", "quote"} & values.keys():
        names = " and ".join(f"--{name}" for name in sorted(place))
        raise UsageError(
            f"{names} {'names' if len(place) == 1 else 'name'} a place of one rollout, and --where judges "
            "many: each quotes what the condition finds in it",
            f"leave out {names}; to choose by words, write --where \"says('…')\"",
            "usage",
        )
    run = session.run(only)
    ground = run_tables.ground_of([run], session.threshold)
    return reviewing.proposals_where(run, ground, condition, values, session.threshold)


def _addressed(proposals: list[Mapping[str, Any]], keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """TASK/REPEAT as a task and its repeat, unless a task is called so."""
    addressed: list[Mapping[str, Any]] = []
    for proposal in proposals:
        task, repeat = _split(str(proposal.get("task")), keys)
        wanted = proposal.get("repeat")
        if repeat is not None and wanted not in (None, repeat):
            raise UsageError(f"{proposal['task']} and --repeat {wanted} disagree", "give one of them", "usage")
        addressed.append(proposal if repeat is None else {**proposal, "task": task, "repeat": repeat})
    return addressed


def _split(task: str, keys: Sequence[str]) -> tuple[str, int | None]:
    name, slash, repeat = task.rpartition("/")
    if task in keys or not slash or not (repeat.isascii() and repeat.isdecimal()):
        return task, None
    return name, int(repeat)


def _lines(source: str) -> list[Mapping[str, Any]]:
    """The objects of a JSONL file."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NothingToRead(f"there is no file {source}", "give a JSONL file", "nothing-to-read") from None
    except (OSError, UnicodeError) as error:
        raise Unreadable(f"cannot read {source}: {error}", "give a JSONL file", "unreadable-file") from error
    judgements: list[Mapping[str, Any]] = []
    for number, text_line in enumerate(text.split("\n"), 1):
        if not text_line.strip():
            continue
        try:
            value = json.loads(text_line)
        except ValueError as error:
            raise UsageError(f"line {number} of {source} is no JSON: {error}", _FORM, "usage") from error
        if not isinstance(value, dict):
            raise UsageError(f"line {number} of {source} is no object", _FORM, "usage")
        judgements.append({**value, "task": str(value["task"])} if "task" in value else value)
    if not judgements:
        raise UsageError(f"{source} holds no judgement", _FORM, "usage")
    return judgements


_FORM = 'each line is {"task": …, "cause": …, "repeat": …, "step": …, "quote": …, "mechanism": …}'


def _json(document: Any) -> str:
    import msgspec

    return json_text(json.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=False))


def _line(judgement: Judgement, is_full: bool = True) -> str:
    """One judgement; its mechanism is left out where its author has only just typed it."""
    field, condition = judgement.field, judgement.condition
    place = f"field {line(field, 80)}" if field is not None else f"where {line(condition, 80)}"
    place = f"step {judgement.step}" if judgement.step is not None else place
    engine = f" (engine: {judgement.proposed.value})" if judgement.proposed is not None else ""
    suffix = f", {line(judgement.at, 20)}: {line(judgement.mechanism, 160)}" if is_full else ""
    who = f"by {line(judgement.by, 40)}"
    return f"{line(judgement.task, 40)}/{judgement.repeat} {place}: {judgement.cause.value}{engine}, {who}{suffix}"


def _print(document: Mapping[str, Any], as_json: bool, is_full: bool = False) -> None:
    """Print judgements by what became of them, and why others were refused."""
    if as_json:
        click.echo(_json(document))
        return
    for what, entries in document.items():
        for entry in entries:
            is_refused, head = what == "refused", f"{what.replace('_', ' ')}  "
            click.echo(under("refused     ", entry) if is_refused else head + _line(entry, is_full))


def _listed(session: Session, only: str | None, as_json: bool) -> str:
    """What was judged of a run, and how far its authors agree."""
    from blade.report.report_json import values

    run = session.run(only)
    facts = session.facts[run.name]
    fallen = [gap.why for gap in session.report.gaps if gap.what == f"judgements of {run.name}"]
    if as_json:
        return _json({"judgements": facts.judgements, "agreements": values(facts.agreements), "fallen": fallen})
    if not facts.judgements and fallen:
        return f"No judgement of {line(run.name, 80)} holds: {line(fallen[0], 600)}"
    if not facts.judgements:
        return f"Nothing of {line(run.name, 80)} was judged yet; `blade queue` says where to begin"
    lines = [*map(_line, facts.judgements), *(f"fallen     {line(why, 600)}" for why in fallen)]
    for each in facts.agreements:
        kappa = "not computable" if each.kappa is None else f"{each.kappa:.2f}"
        names = f"{line(each.first, 40)} and {line(each.second, 40)}"
        lines.append(f"agreement  {names}: {each.agreed} of {each.n} tasks, kappa {kappa}")
        lines += [f"           {a.value} / {b.value}: {n}" for a, b, n in each.confusion if a is not b]
    return "\n".join(lines)
