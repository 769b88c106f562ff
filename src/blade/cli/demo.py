"""`blade demo`: evaluate two scripted models in the office, diagnose both runs, and compare them."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import force_option, json_option, output_option
from blade.cli.output import Progress, notice, put, refuse_foreign
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.model import Report
    from blade_eval.runner.benchmark_run import Order

SCRIPTS = ("careful", "hasty")
REPEATS = 4
Groups = dict[tuple[str, int], str]  # task, repeat -> name of the group
UNEXPLAINED = "unexplained"


def _rollouts(root: Path, script: str) -> Path:
    return root / "runs" / f"{script}_rollouts.jsonl"


@click.command(short_help="Evaluate, profile, diagnose and compare, without network.")
@output_option("Where all of it goes.", default="blade-demo", show_default=True)
@json_option("Print what was made and found as JSON.")
@force_option("Write over files that are not of an earlier demo.")
@click.option("--open", "opens", is_flag=True, help="Open the report in a browser.")
def demo(output: str, as_json: bool, force: bool, opens: bool) -> None:
    """Evaluate two scripted models in an invented office, diagnose both runs, and compare them.

    No language model is asked and no network is used: the models play scripts with faults that are known
    (docs/demo.md), so that you can check what the diagnosis finds of them, and what it misses.
    """

    root = Path(output)
    for script in SCRIPTS:
        refuse_foreign(root / f"report_{script}", force)
    refuse_foreign(root / "compare", force, is_comparison=True)
    from blade_eval.runner.run_files import beside, read_manifest

    if not force and root.is_dir() and any(root.iterdir()):  # over nothing but an earlier demo, known by its manifests
        result = read_manifest(beside(_rollouts(root, SCRIPTS[0])).manifest) or {}
        if result.get("command", [])[:2] != ["blade", "demo"]:
            hint = "name another folder with -o, or add --force"
            raise UsageError(f"{root} holds files that are not of the demo", hint, "output-not-empty")
    say = (lambda _: None) if as_json else click.echo  # with --json nothing but JSON goes to standard output
    say(f"Two scripted models in an invented office, {REPEATS} repeats: no language model is asked.\n")
    _evaluate(root, say)
    diagnosed = {script: _diagnosed(root, script, force) for script in SCRIPTS}
    compared = _compared(root, force)
    if as_json:
        click.echo(json.dumps(_document(root, diagnosed, compared), indent=2))
    else:
        _print(root, "hasty", *diagnosed["hasty"], compared)
    if opens:
        import webbrowser

        webbrowser.open((root / "report_hasty" / "report.html").resolve().as_uri())


def _evaluate(root: Path, say: Callable[[str], None]) -> None:
    """Collect both runs and profile them."""
    import asyncio

    from blade_eval.profile import profiled
    from blade_eval.runner.benchmark_run import carried_out
    from blade_eval.runner.progress import Progress
    from blade_eval.verifiers.workplace_assistant import __main__ as office

    tasks, facts = root / "tasks.jsonl", root / "runs" / "blade.toml"
    put(lambda: facts.parent.mkdir(parents=True, exist_ok=True), root)
    written = office.datasets()
    for path, name in ((tasks, "validation.jsonl"), (facts, "blade.toml")):
        put(partial(path.write_bytes, written[name]), root)
    for script in SCRIPTS:
        order = ordered(tasks, _rollouts(root, script), script)
        done = asyncio.run(carried_out(order, Progress(is_quiet=True), notice))
        table = profiled(done.places.materialized, done.places.rollouts)
        table.write()
        passing = table.scores()[0].passing
        rates = f"pass@1 {100 * passing[0].value:.1f}%, pass@{len(passing)} {100 * passing[-1].value:.1f}%"
        say(f"Ran       {script}: {done.summary.scored} rollouts, {rates}, {done.places.rollouts}")
    say("")


def ordered(tasks: Path, rollouts: Path, script: str) -> Order:
    """The run as `blade eval run` would order it, with nothing taken from the folder it is asked in."""
    from blade_eval.config import Asked, installed
    from blade_eval.runner.benchmark_run import Order
    from blade_eval.runner.inputs import Wanted

    here = installed()
    configs = (
        str(here / "resources_servers/workplace_assistant/configs/workplace_assistant.yaml"),
        str(here / "responses_api_models/scripted_model/configs/scripted_model.yaml"),
    )
    script_override = f"++policy_model.responses_api_models.scripted_model.script={script}"
    return Order(
        output=rollouts, input=tasks.resolve(), force=True, command=("blade", "demo"),
        asked=Asked(paths=configs, overrides=(script_override,), environ={}, folder=tasks.parent),
        wanted=Wanted(repeats=REPEATS, agent="workplace_assistant_simple_agent"),
        concurrency=1,  # rollouts in the order of the tasks: the same bytes each time
    )  # fmt: skip


def _diagnosed(root: Path, script: str, force: bool) -> tuple[Report, Groups]:
    """The report on one run, and the failure group of each rollout that is in one."""
    from blade import pipeline
    from blade.pipeline.run_tables import ground_of
    from blade.report import write

    path, folder = _rollouts(root, script), root / f"report_{script}"
    with Progress() as progress:
        loaded = pipeline.load([str(path)], progress)
    report = pipeline.with_digests(pipeline.diagnose(loaded, f"blade diagnose {path} -o {folder}"), loaded)
    put(lambda: write(report, folder, force=force), folder)
    connection = ground_of(loaded).connection(False)
    group_of = {
        (str(task), int(repeat)): group.name
        for group in report.groups
        for _, task, repeat, _ in connection.execute(group.query).fetchall()
    }
    return report, group_of


def _compared(root: Path, force: bool) -> Report:
    from blade import pipeline
    from blade.pipeline import comparing
    from blade.report import write

    runs, folder = [str(_rollouts(root, script)) for script in SCRIPTS], root / "compare"
    with Progress() as progress:
        loaded = pipeline.load(runs, progress)
    command = f"blade compare {' '.join(runs)} -o {folder}"
    report = pipeline.with_digests(comparing.compare(loaded, command), loaded)
    put(lambda: write(report, folder, is_comparison=True, force=force), folder)
    return report


def _faults(script: str, group_of: Groups) -> dict[str, dict[str, Any]]:
    """For each fault that the script planted: its rollouts, the points that it costs, and the groups that hold them."""
    from blade_eval.models.scripted_model import NONE, truth
    from blade_eval.verifiers.workplace_assistant.quests import quests

    planted = {
        (str(number), repeat): truth({"task_id": ident, "_ng_rollout_index": repeat}, {"script": script})
        for number, ident in enumerate(quests())
        for repeat in range(REPEATS)
    }
    faults: dict[str, dict[str, Any]] = {}
    for fault, number in Counter(planted.values()).most_common():
        default = NONE if fault == NONE else UNEXPLAINED
        groups = Counter(group_of.get(rollout, default) for rollout, drawn in planted.items() if drawn == fault)
        points = 0.0 if fault == NONE else number / len(planted)
        faults[fault] = {"rollouts": number, "points": points, "groups": dict(groups.most_common())}
    return faults


def _print(root: Path, script: str, report: Report, group_of: Groups, compared: Report) -> None:
    from blade.report import first_page
    from blade.report.comparison_screen import compare_text
    from blade_eval.models.scripted_model import FAULTS, NONE

    click.echo(first_page.render(report), nl=False)
    click.echo()
    click.echo(compare_text(compared), nl=False)
    click.echo(f"\nPlanted   The faults of {script}: rollouts, points lost, and the failure groups above that")
    click.echo("          hold these rollouts. Each fault costs its rollout the pass.")
    for fault, numbers in _faults(script, group_of).items():
        if fault != NONE:
            lead = f"{numbers['rollouts']:3}  {100 * numbers['points']:4.1f}"
            click.echo(f"          {lead}  {fault}: {FAULTS[fault]}")
            for name, number in numbers["groups"].items():
                click.echo(f"                     {number:3}  {name}")
    page = root / f"report_{script}" / "report.html"
    click.echo(f"\nOpen {page} or {root / 'compare' / 'compare.html'}.")
    example = report.groups[0].examples[0] if report.groups else "0/0"
    # `make demo` runs what is in .venv and not on the path
    ours = Path(sys.argv[0])
    program = os.path.relpath(ours) if ours.name == "blade" and which("blade") is None else "blade"
    click.echo(f"Try: {program} show {_rollouts(root, script)} {example}")


def _document(root: Path, diagnosed: dict[str, tuple[Report, Groups]], compared: Report) -> dict[str, Any]:
    def run(script: str) -> dict[str, Any]:
        folder = root / f"report_{script}"
        return {
            "name": script, "rollouts": str(_rollouts(root, script)), "report": str(folder / "report.json"),
            "html": str(folder / "report.html"), "planted": _faults(script, diagnosed[script][1]),
        }  # fmt: skip

    return {
        "folder": str(root), "tasks": str(root / "tasks.jsonl"), "runs": list(map(run, diagnosed)),
        "compare": str(root / "compare" / "compare.json"),
        "verdict": compared.comparisons[0].verdict if compared.comparisons else None,
    }  # fmt: skip
