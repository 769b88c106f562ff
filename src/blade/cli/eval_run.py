"""`blade eval run`: collect the rollouts of a benchmark, each kept as it comes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli import env
from blade.cli.options import force_option, json_option
from blade.cli.output import notice
from blade.errors import EXIT_INTERRUPTED, Unreadable, UsageError
from blade.hostile import argument

if TYPE_CHECKING:
    from blade_eval.runner.benchmark_run import Order, Outcome
    from blade_eval.runner.progress import Progress

_NUMBER = click.IntRange(min=1)


@click.command(short_help="Run a benchmark: rollouts, failures, metrics and a manifest.")
@env.config_options
@click.option("--no-serve", is_flag=True, help="Use servers that run already (`blade env start`).")
@click.option("--head-url", metavar="URL", help="With --no-serve: the head server (127.0.0.1:11000).")
@click.option("-i", "--input", metavar="FILE", help="Rows to run; a benchmark brings its own.")
@click.option("-o", "--output", metavar="FILE", help="Where the rollouts go; the other files beside it.")
@click.option("-a", "--agent", metavar="NAME", help="The agent that runs every row.")
@click.option("--split", metavar="KIND", help="Which datasets: benchmark, validation, train or example.")
@click.option("--limit", metavar="N", type=_NUMBER, help="Only the first N tasks, with all their repeats.")
@click.option("--num-repeats", metavar="N", help="N rollouts of each task, whatever the benchmark says.")
@click.option("--shard", metavar="I/N", help="Only shard I of N: every Nth task, its index as in the whole.")
@click.option("--interleave-repeats", is_flag=True, help="All tasks once, then all again.")
@click.option("--gym-compat", is_flag=True,
              help="As NeMo Gym: --limit counts lines, --num-repeats multiplies, output goes.")  # fmt: skip
@click.option("--concurrency", metavar="N", type=_NUMBER, help="Rollouts under way at a time (default: 64).")
@click.option("--retries", metavar="N", type=click.IntRange(min=0),
              help="Further attempts at a rollout that could not be measured (default: 2).")  # fmt: skip
@click.option("--max-steps", metavar="N", type=_NUMBER, help="Turns of the agent (default: its own, else 100).")
@click.option("--resume", is_flag=True, help="Continue the run in --output.")
@force_option("Start over although --output is there: it is deleted.")
@click.option("--prompt-config", metavar="FILE", help="A YAML template that makes requests from columns.")
@click.option("--temperature", metavar="X", type=float, help="For every request.")
@click.option("--top-p", metavar="X", type=float, help="For every request.")
@click.option("--max-output-tokens", metavar="N", type=_NUMBER, help="For every request.")
@click.option("--skills", metavar="DIR", help="Skills for the agent; also +skills.path=DIR.")
@click.option("--price-in", metavar="USD", type=click.FloatRange(min=0), help="For a million tokens in.")
@click.option("--price-out", metavar="USD", type=click.FloatRange(min=0), help="For a million tokens out.")
@click.option("--disable-aggregation", is_flag=True, help="Write no _aggregate_metrics.json.")
@click.option("--no-health-check", is_flag=True, hidden=True)  # NeMo Gym's; `blade health` is asked for
@click.option("--health-check-workers", type=int, hidden=True)
@click.option("--health-check-ignore", hidden=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@json_option("The summary as JSON.")
@env.OVERRIDES
def run(overrides: tuple[str, ...], **options: Any) -> None:
    """Run the tasks of a benchmark with a model, and keep each rollout as it comes.

    What could not be measured goes to FILE_failures.jsonl and never becomes reward 0; it is tried again, and
    again by --resume. Ctrl-C lets what is under way finish; a second one does not. A run that was killed is
    continued by the same command with --resume: no rollout is lost and none runs twice.

    \b
      blade eval run --benchmark gsm8k --model NAME --model-url http://HOST/v1 -o results/a.jsonl
      blade eval run --resources-server workplace_assistant --model-type scripted_model -o results/try.jsonl

    KEY=VALUE changes the configuration, as in `blade env resolve`; ++num_repeats_add_seed=true gives each
    repeat its number as the seed.
    """
    import asyncio

    from blade_eval.runner import benchmark_run as orders
    from blade_eval.runner.progress import Prices, Progress

    wish = _order(options, overrides)
    costs = options["price_in"], options["price_out"]
    prices = None if costs == (None, None) else Prices(costs[0] or 0.0, costs[1] or 0.0)
    progress = Progress(prices=prices, is_quiet=options["quiet"])
    outcome = asyncio.run(orders.carried_out(wish, progress, notice))
    if options["as_json"]:
        click.echo(json.dumps(_json(outcome, progress), indent=2))
    else:
        _tell(outcome, progress)
    if outcome.summary.is_interrupted:
        words = [word for word in orders.masked(sys.argv[1:]) if word != "--force"]
        again = shlex.join(["blade", *words, *([] if "--resume" in words else ["--resume"])])
        click.echo(f"stopped. To continue: {again}", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if not outcome.summary.scored:
        most = progress.kinds.most_common(1)
        why = f", most often {most[0][0]} ({most[0][1]:,} times)" if most else ", all in earlier sittings"
        raise Unreadable(
            f"none of {outcome.summary.expected:,} rollouts could be scored{why}",
            f"{outcome.places.failures} says why; mend it, then --resume with more --retries, or --force",
            "nothing-scored",
        )


def _order(options: dict[str, Any], overrides: tuple[str, ...]) -> Order:
    from blade_eval.runner import benchmark_run, run_files
    from blade_eval.runner.inputs import Wanted

    flags, params, rest = benchmark_run.parsed_overrides(overrides)
    for name, value in flags.items():  # a flag wins over an override of its key
        if options.get(name) in (None, False):
            options[name] = value
    if not options["output"]:
        raise UsageError("nobody said where the rollouts go", "name a file with --output", "no-output")
    params |= {
        name: options[name] for name in ("temperature", "top_p", "max_output_tokens") if options[name] is not None
    }
    wanted = Wanted(
        limit=_whole(options["limit"], "limit"), repeats=benchmark_run.parsed_repeats(options["num_repeats"]),
        agent=options["agent"], params=params, shard=benchmark_run.parsed_shard(options["shard"]),
        seeds=bool(options.get("seeds")), interleaved=bool(options["interleave_repeats"]), gym=options["gym_compat"],
    )  # fmt: skip
    return benchmark_run.Order(
        output=run_files.named(str(options["output"])), asked=env.asked(options, rest),
        input=Path(options["input"]) if options["input"] else None, is_served=not options["no_serve"],
        split=options["split"], wanted=wanted, prompt=options["prompt_config"], skills=options["skills"],
        concurrency=_whole(options["concurrency"], "concurrency") or 64,
        attempts=benchmark_run.max_attempts(options["retries"], notice), max_steps=options["max_steps"],
        resume=bool(options["resume"]), force=options["force"] or options["gym_compat"],
        sums_up=not options["disable_aggregation"], head_url=options["head_url"], command=("blade", *sys.argv[1:]),
    )  # fmt: skip


def _whole(value: Any, name: str) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise UsageError(f"{name} cannot be {value}", "give a whole number of at least 1", "bad-number")


def _tell(outcome: Outcome, progress: Progress) -> None:
    summary, places = outcome.summary, outcome.places
    if not summary.is_interrupted:
        click.echo("Finished rollout collection! View results at:")
    click.echo(f"Rollouts: {places.rollouts}\nMaterialized inputs: {places.materialized}\nFailures: {places.failures}")
    if outcome.aggregate is not None:
        click.echo(f"Aggregate metrics: {outcome.aggregate}")
    click.echo(
        f"Manifest: {places.manifest}\nCoverage: {summary.expected:,} expected = {summary.scored:,} scored + "
        f"{summary.failed:,} failed + {summary.unfinished:,} unfinished"
    )
    if summary.scored_before:
        now = summary.scored - summary.scored_before
        click.echo(f"Resumed: {summary.scored_before:,} were there, {now:,} came now")
    if again := progress.asked_again():
        click.echo(f"Requests made again: {again:,}")
    totals = progress.totals
    if totals.scored:
        cost = totals.cost(progress.prices)
        click.echo(
            f"Pass rate: {100 * totals.passed / totals.scored:.1f}% of {totals.scored:,} rollouts,"
            f" mean reward {totals.reward / totals.scored:.4f}" + ("" if cost is None else f", ${cost:,.2f}")
        )
    path = argument(str(places.rollouts))
    if totals.scored and path:
        click.echo(f"Next: blade diagnose {path}")


def _json(outcome: Outcome, progress: Progress) -> dict[str, Any]:
    summary, places, totals = outcome.summary, outcome.places, progress.totals
    return {
        "rollouts": str(places.rollouts), "materialized_inputs": str(places.materialized),
        "failures": str(places.failures),
        "aggregate_metrics": None if outcome.aggregate is None else str(outcome.aggregate),
        "manifest": str(places.manifest), "expected": summary.expected, "scored": summary.scored,
        "scored_before": summary.scored_before, "failed": summary.failed, "unfinished": summary.unfinished,
        "failure_lines": summary.failure_lines, "retries": summary.retries,
        "requests_again": progress.asked_again(), "errors": dict(sorted(progress.kinds.items())),
        "seconds": round(summary.seconds, 3), "interrupted": summary.is_interrupted, "passed": totals.passed,
        "mean_reward": totals.reward / totals.scored if totals.scored else None, "tokens_in": totals.tokens_in,
        "tokens_out": totals.tokens_out, "cost_usd": totals.cost(progress.prices),
    }  # fmt: skip
