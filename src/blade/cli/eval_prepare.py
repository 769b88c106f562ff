"""`blade eval prepare`: turn a benchmark's public dataset into its rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from blade.cli.env import OVERRIDES
from blade.cli.options import SEARCH_DIR, force_option, json_option
from blade.cli.output import notice
from blade.hostile import line


@click.command(short_help="Fetch a benchmark's public dataset and write its rows.")
@click.option("--benchmark", "benchmarks", multiple=True, metavar="NAME", help="A benchmark; may be repeated.")
@click.option("--config", "configs", multiple=True, metavar="FILE", help="A config file; may be repeated.")
@SEARCH_DIR
@click.option("--from", "raw", metavar="FILE|DIR", help="The raw file, or the folder with it, fetched by hand.")
@click.option("--offline", is_flag=True, help="Fetch nothing: use what is given or in the cache, or say what lacks.")
@force_option("Fetch raw files again although they are in the cache.")
@click.option("--allow-partial", is_flag=True, help="Take rows that are not all of the benchmark's; recorded.")
@click.option("--timeout", type=click.IntRange(1), default=3600, metavar="SECONDS", help="For one script: 3600.")
@click.option("--max-memory", type=click.FloatRange(0.1), default=8.0, metavar="GB", help="For one script: 8.")
@json_option("Print what was prepared as JSON.")
@OVERRIDES
def prepare(
    benchmarks: tuple[str, ...], configs: tuple[str, ...], search_dirs: tuple[str, ...], raw: str | None, offline: bool,
    force: bool, allow_partial: bool, timeout: int, max_memory: float, as_json: bool, overrides: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the prepare script of each benchmark, and check and record what it wrote.

    This is the only command that reaches dataset hubs. The script runs in a process of its own, with limits
    and without your keys; HF_TOKEN and proxies are passed on. Raw files are kept in the cache.

    KEY=VALUE: use_cached_prepared_benchmarks=true leaves rows that are there;
    ++prepare_script_args.NAME=VALUE is what the script is called with.
    """
    from blade.tables.cache import root
    from blade_eval import config
    from blade_eval.prepare import work

    wish = config.Asked(paths=configs, benchmarks=benchmarks, search_dirs=search_dirs, overrides=overrides)
    resolved = config.resolved(wish)
    # servers and models are not needed here; what was typed wrongly is no less wrong
    typed = tuple(problem for problem in resolved.of("error") if problem.place == "command line")
    config.insist(replace(resolved, problems=typed))
    how = work.How(
        cache=root() / "raw", given=Path(raw) if raw else None, offline=offline, again=force,
        keep=work.is_cached(resolved), partial=allow_partial, args=work.arguments(resolved),
        limits=work.Limits(wall_s=timeout, cpu_s=timeout, memory_bytes=int(max_memory * 1e9)),
    )  # fmt: skip
    prepared_rows = work.prepared(work.wanted_of(resolved), how, lambda text: print(line(text, 400), file=sys.stderr))
    for text in (text for rows in prepared_rows for text in work.unknown(rows)):
        notice(text, "notice", 400)
    if as_json:
        click.echo(work.as_json(prepared_rows))
        return
    for rows in prepared_rows:
        state = "as it was" if rows.cached else "prepared"
        part = " (not all of the benchmark's)" if rows.complete is False else ""
        click.echo(f"{rows.name}: {rows.rows:,} rows{part}, {state}: {rows.path}")
