"""`blade eval reverify`: judge stored rollouts again and show what changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli import env
from blade.cli.options import force_option, json_option, threshold_option
from blade.cli.output import notice
from blade.errors import Unreadable, UsageError
from blade.hostile import line

if TYPE_CHECKING:
    from blade_eval.reverify import Change, Done

_MOST = 10  # changed rollouts shown for each way
_NUMBER = click.IntRange(min=1)
_KEYS = {
    "materialized_inputs_jsonl_fpath": "inputs", "rollouts_jsonl_fpath": "rollouts", "output_jsonl_fpath": "output",
}  # fmt: skip


@click.command(short_help="Judge stored rollouts again and show what changed.")
@env.config_options
@click.option("--inputs", metavar="FILE", help="The materialised inputs (default: beside --rollouts).")
@click.option("--rollouts", metavar="FILE", help="The stored rollouts; they are never written to.")
@click.option("-o", "--output", metavar="FILE", help="Where the new rows go; failures and metrics beside it.")
@click.option("--concurrency", metavar="N", type=_NUMBER, default=64, help="Verdicts under way: 64.")
@click.option("--limit", metavar="N", type=_NUMBER, help="Only the first N rollouts that are to be judged.")
@force_option("Although a verifier needs more than the response: unsafe_FILE.")
@click.option("--overwrite", is_flag=True, help="Replace --output.")
@click.option("--resume", is_flag=True, help="Judge only what --output does not hold yet.")
@click.option("--judge-failed-only", is_flag=True,
              help="Take successes over and judge only the rollouts whose judge failed.")  # fmt: skip
@click.option("--append", is_flag=True, help="With --judge-failed-only: add to --output.")
@click.option("--disable-aggregation", is_flag=True, help="Write no _aggregate_metrics.json.")
@threshold_option("A row passes at reward >= X: 1.", 1.0)
@json_option("Print JSON: every rollout whose verdict changed.")
@env.OVERRIDES
def reverify(overrides: tuple[str, ...], **flags: Any) -> None:
    """Judge stored rollouts again, without running them again and without servers.

    Name the definitions of the run (--benchmark or --resources-server, and --model-type for a judge). The
    verifier sees the task of --inputs and the response of --rollouts. What it cannot judge goes to
    FILE_failures.jsonl and never becomes reward 0.

    \b
      blade eval reverify --resources-server mcqa --rollouts results/a.jsonl -o results/again.jsonl
    """
    import asyncio

    from blade_eval.profile.row_table import beside, sidecar
    from blade_eval.reverify import Wish, reverified
    from blade_eval.runner.run_files import INPUTS

    rest = tuple(text for text in overrides if not _taken(text, flags))
    config = _resolved(flags, rest)
    if not flags["rollouts"] or not flags["output"]:
        hint = "name the stored rollouts, and where the new rows go"
        raise UsageError("--rollouts and --output are needed", hint, "usage")
    rollouts = Path(flags["rollouts"])
    # the inputs of a run, packed or not; their usual name if there are none
    inputs = flags["inputs"] or sidecar(rollouts, INPUTS) or beside(rollouts, INPUTS)
    names = "concurrency limit force overwrite resume append judge_failed_only".split()
    wish = Wish(
        Path(inputs), rollouts, Path(flags["output"]), **{name: flags[name] for name in names},
        sums_up=not flags["disable_aggregation"], threshold=flags["pass_threshold"],
    )  # fmt: skip
    done = asyncio.run(
        reverified(config, wish, lambda n: click.echo(f"{n:,} judged", err=True) if n % 1000 == 0 else None)
    )
    for text in done.notices:
        notice(text)
    if flags["as_json"]:
        document = {
            "rollouts": str(done.places.rollouts), "failures": str(done.places.failures),
            "aggregate_metrics": None if done.aggregate is None else str(done.aggregate), "judged": done.n_judged,
            "masked": done.n_masked, "failed": done.n_failed, "taken_over": done.n_copied,
            "there_before": done.n_before, "verdicts": done.changes.as_json(),
        }  # fmt: skip
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _tell(done)
    if done.n_failed and not (done.n_judged or done.n_copied or done.n_before):
        why, count = Counter(change.reason for change in done.changes.rows if change.reason).most_common(1)[0]
        raise Unreadable(
            f"none of {done.n_failed:,} rollouts got a verdict; {count:,} times: {line(why, 200)}",
            f"name the verifier of the run; {done.places.failures} says more",
            "nothing-judged",
        )


def _taken(text: str, flags: dict[str, Any]) -> bool:
    """An override that is one of our flags under its name in the configuration."""
    key, _, value = text.lstrip("+").partition("=")
    if key not in _KEYS:
        return False
    flags[_KEYS[key]] = flags[_KEYS[key]] or value
    return True


def _resolved(flags: dict[str, Any], overrides: tuple[str, ...]) -> Any:
    """The configuration; that no model is chosen is no error, for most verdicts need none."""
    from blade_eval.config import insist, resolved

    wish = env.asked(flags, overrides)
    if wish.nothing and not Path("env.yaml").is_file():
        hint = "add --benchmark NAME, --resources-server NAME or --config FILE of the run"
        raise UsageError("no configuration is named", hint, "no-config")
    config = resolved(wish)
    insist(replace(config, problems=config.of("error", "unset")))
    env.print_problems(config, config.of("warning"))
    return config


def _tell(done: Done) -> None:
    from blade_eval.reverify import WAYS

    changes = done.changes
    total = sum(changes.ways.values())
    click.echo(f"Judged again: {total:,} rollouts, {done.n_failed:,} of them without a verdict now")
    for way in WAYS:
        if changes.ways[way]:
            click.echo(f"  {way:<18} {changes.ways[way]:>8,}")
    if done.n_masked:
        click.echo(f"Masked: {done.n_masked:,} rollouts whose reward the run itself takes for none; they stay so")
    means = changes.means()
    if means:
        click.echo(
            f"Mean reward: {means[0]:.4f} before, {means[1]:.4f} now ({means[1] - means[0]:+.4f};"
            f" {changes.n_both:,} rollouts with both)"
        )
    if changes.fields:
        fields = ", ".join(f"{name} in {count:,}" for name, count in changes.fields.most_common(12))
        click.echo(line(f"Fields that differ: {fields}"))
    for way in WAYS[:-1]:
        mine = changes.folded(way)
        for alike in mine[:_MOST]:
            click.echo(line(f"{way}: {_told(alike)}", 300))
        if len(mine) > _MOST:
            click.echo(f"{way}: {sum(map(len, mine[_MOST:])):,} more; --json has all")
    if done.n_copied or done.n_before:
        click.echo(f"Taken over: {done.n_copied:,} rows; there before: {done.n_before:,}")
    click.echo(f"Rollouts: {done.places.rollouts}")
    click.echo(f"Failures: {done.places.failures}")
    if done.aggregate is not None:
        click.echo(f"Aggregate metrics: {done.aggregate}")


def _told(alike: Sequence[Change]) -> str:
    """What became of a rollout, or of several alike."""
    change = alike[0]
    where = f"task {change.key[0]}, repeat {change.key[1]}"
    if len(alike) > 1:
        where = f"{len(alike):,} rollouts, the first {where}"
    fields = f" ({', '.join(change.fields)})" if change.fields else ""
    why = f"; {change.reason}" if change.reason else ""
    return f"{where}: {_number(change.before)} -> {_number(change.after)}{fields}{why}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
