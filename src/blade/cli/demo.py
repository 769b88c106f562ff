"""`blade demo`: evaluate two scripted models in the office, diagnose both runs, and compare them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import force_option, json_option, output_option
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline import Loaded
    from blade_eval.runner.benchmark_run import Order

SCRIPTS = ("careful", "hasty")
REPEATS = 4
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class _Places:
    """What the demo writes, all of it under one folder."""

    root: Path

    @property
    def tasks(self) -> Path:
        return self.root / "tasks.jsonl"

    def rollouts(self, script: str) -> Path:
        return self.root / "runs" / f"{script}_rollouts.jsonl"

    def report(self, script: str) -> Path:
        return self.root / f"report_{script}"

    @property
    def comparison(self) -> Path:
        return self.root / "compare"


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
    from blade.cli.output import refuse_foreign

    places = _Places(Path(output))
    for script in SCRIPTS:
        refuse_foreign(places.report(script), force)
    refuse_foreign(places.comparison, force, is_comparison=True)
    _refuse_others(places, force)
    say = (lambda _: None) if as_json else click.echo  # with --json nothing but JSON goes to standard output
    say(f"Two scripted models in an invented office, {REPEATS} repeats: no language model is asked.\n")
    _evaluated(places, say)
    diagnosed = {script: _diagnosed(places, script, force) for script in SCRIPTS}
    compared = _compared(places, force)
    if as_json:
        click.echo(json.dumps(_document(places, diagnosed, compared), indent=2))
    else:
        _print(places, diagnosed["hasty"], compared)
    if opens:
        import webbrowser

        webbrowser.open((places.report("hasty") / "report.html").resolve().as_uri())


def _refuse_others(places: _Places, force: bool) -> None:
    """Write over nothing but an earlier demo, known by its manifests."""
    from blade_eval.runner.run_files import beside, read_manifest

    if force or not places.root.is_dir() or not any(places.root.iterdir()):
        return
    result = read_manifest(beside(places.rollouts(SCRIPTS[0])).manifest) or {}
    if result.get("command", [])[:2] != ["blade", "demo"]:
        hint = "name another folder with -o, or add --force"
        raise UsageError(f"{places.root} holds files that are not of the demo", hint, "output-not-empty")


def _evaluated(places: _Places, say: Callable[[str], None]) -> None:
    """Collect both runs and profile them."""
    import asyncio

    from blade.cli.output import cannot_write, notice
    from blade_eval.profile import profiled
    from blade_eval.runner.benchmark_run import carried_out
    from blade_eval.runner.progress import Progress
    from blade_eval.verifiers.workplace_assistant import __main__ as office

    written = office.datasets()
    try:
        places.rollouts(SCRIPTS[0]).parent.mkdir(parents=True, exist_ok=True)
        places.tasks.write_bytes(written["validation.jsonl"])
        (places.rollouts(SCRIPTS[0]).parent / "blade.toml").write_bytes(written["blade.toml"])
    except OSError as error:
        raise cannot_write(places.root, error) from error
    for script in SCRIPTS:
        order = ordered(places.tasks, places.rollouts(script), script)
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
        output=rollouts,
        asked=Asked(paths=configs, overrides=(script_override,), environ={}, folder=tasks.parent),
        input=tasks.resolve(),
        wanted=Wanted(repeats=REPEATS, agent="workplace_assistant_simple_agent"),
        concurrency=1,  # rollouts in the order of the tasks: the same bytes each time
        force=True,
        command=("blade", "demo"),
    )


def _loaded(*runs: str) -> list[Loaded]:
    from blade import pipeline
    from blade.cli.output import Progress

    with Progress() as progress:
        return pipeline.load(runs, progress)


@dataclass(frozen=True)
class _Diagnosed:
    """One run with its report, and the failure group of each rollout that is in one."""

    script: str
    report: Report
    group_of: dict[tuple[str, int], str]  # task, repeat -> name of the group


def _diagnosed(places: _Places, script: str, force: bool) -> _Diagnosed:
    from blade import pipeline
    from blade.cli.output import put
    from blade.pipeline.run_tables import ground_of
    from blade.report import write

    path, folder = places.rollouts(script), places.report(script)
    loaded = _loaded(str(path))
    report = pipeline.with_digests(pipeline.diagnose(loaded, f"blade diagnose {path} -o {folder}"))
    put(lambda: write(report, folder, force=force), folder)
    connection = ground_of(loaded).connection(False)
    group_of = {
        (str(task), int(repeat)): group.name
        for group in report.groups
        for _, task, repeat, _ in connection.execute(group.query).fetchall()
    }
    return _Diagnosed(script, report, group_of)


def _compared(places: _Places, force: bool) -> Report:
    from blade import pipeline
    from blade.cli.output import put
    from blade.pipeline import comparing
    from blade.report import write_comparison

    runs = [str(places.rollouts(script)) for script in SCRIPTS]
    command = f"blade compare {' '.join(runs)} -o {places.comparison}"
    report = pipeline.with_digests(comparing.compare(_loaded(*runs), command))
    put(lambda: write_comparison(report, places.comparison, force=force), places.comparison)
    return report


def _faults(diagnosed: _Diagnosed) -> dict[str, dict[str, Any]]:
    """For each fault that the script planted: its rollouts, the points that it costs, and the groups that hold them."""
    from collections import Counter

    from blade_eval.models.scripted_model import NONE, truth
    from blade_eval.verifiers.workplace_assistant.quests import quests

    planted = {
        (str(number), repeat): truth({"task_id": ident, "_ng_rollout_index": repeat}, {"script": diagnosed.script})
        for number, ident in enumerate(quests())
        for repeat in range(REPEATS)
    }
    faults: dict[str, dict[str, Any]] = {}
    for fault, number in Counter(planted.values()).most_common():
        default = NONE if fault == NONE else UNEXPLAINED
        groups = Counter(diagnosed.group_of.get(rollout, default) for rollout, drawn in planted.items() if drawn == fault)
        points = 0.0 if fault == NONE else number / len(planted)
        faults[fault] = {"rollouts": number, "points": points, "groups": dict(groups.most_common())}
    return faults


def _print(places: _Places, diagnosed: _Diagnosed, compared: Report) -> None:
    from blade.report import first_page
    from blade.report.comparison_screen import compare_text
    from blade_eval.models.scripted_model import FAULTS, NONE

    click.echo(first_page.render(diagnosed.report), nl=False)
    click.echo()
    click.echo(compare_text(compared), nl=False)
    click.echo(
        f"\nPlanted   The faults of {diagnosed.script}: rollouts, points lost, and the failure groups above that"
    )
    click.echo("          hold these rollouts. Each fault costs its rollout the pass.")
    for fault, numbers in _faults(diagnosed).items():
        if fault != NONE:
            lead = f"{numbers['rollouts']:3}  {100 * numbers['points']:4.1f}"
            click.echo(f"          {lead}  {fault}: {FAULTS[fault]}")
            for name, number in numbers["groups"].items():
                click.echo(f"                     {number:3}  {name}")
    page = places.report(diagnosed.script) / "report.html"
    click.echo(f"\nOpen {page} or {places.comparison / 'compare.html'}.")
    example = diagnosed.report.groups[0].examples[0] if diagnosed.report.groups else "0/0"
    # `make demo` runs what is in .venv and not on the path
    ours = Path(sys.argv[0])
    program = os.path.relpath(ours) if ours.name == "blade" and which("blade") is None else "blade"
    click.echo(f"Try: {program} show {places.rollouts(diagnosed.script)} {example}")


def _document(places: _Places, diagnosed: dict[str, _Diagnosed], compared: Report) -> dict[str, Any]:
    def run(script: str) -> dict[str, Any]:
        folder = places.report(script)
        return {
            "name": script, "rollouts": str(places.rollouts(script)), "report": str(folder / "report.json"),
            "html": str(folder / "report.html"), "planted": _faults(diagnosed[script]),
        }  # fmt: skip

    return {
        "folder": str(places.root), "tasks": str(places.tasks), "runs": list(map(run, diagnosed)),
        "compare": str(places.comparison / "compare.json"),
        "verdict": compared.comparisons[0].verdict if compared.comparisons else None,
    }  # fmt: skip
