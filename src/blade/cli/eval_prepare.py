"""`blade eval prepare`: turn a benchmark's public dataset into its rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click


@click.command(short_help="Fetch a benchmark's public dataset and write its rows.")
@click.option(
    "--benchmark", "benchmarks", multiple=True, metavar="NAME", help="A benchmark; may be repeated."
)
@click.option("--config", "configs", multiple=True, metavar="FILE", help="A config file; may be repeated.")
@click.option(
    "--search-dir", "search_dirs", multiple=True, metavar="DIR", help="Another tree of definitions."
)
@click.option(
    "--from", "given", metavar="FILE|DIR", help="The raw file, or the folder with it, fetched by hand."
)
@click.option(
    "--offline", is_flag=True, help="Fetch nothing: use what is given or in the cache, or say what lacks."
)
@click.option("--force", is_flag=True, help="Fetch raw files again although they are in the cache.")
@click.option(
    "--allow-partial", is_flag=True, help="Take rows that are not all of the benchmark's; recorded."
)
@click.option(
    "--timeout", type=click.IntRange(1), default=3600, metavar="SECONDS", help="For one script: 3600."
)
@click.option(
    "--max-memory", type=click.FloatRange(0.1), default=8.0, metavar="GB", help="For one script: 8."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was prepared as JSON.")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
def prepare(
    benchmarks: tuple[str, ...],
    configs: tuple[str, ...],
    search_dirs: tuple[str, ...],
    given: str | None,
    offline: bool,
    force: bool,
    allow_partial: bool,
    timeout: int,
    max_memory: float,
    as_json: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run the prepare script of each benchmark, and check and record what it wrote.

    This is the only command that reaches dataset hubs. The script runs in a process of its own, with limits
    and without your keys; HF_TOKEN and proxies are passed on. Raw files are kept in the cache.

    KEY=VALUE: use_cached_prepared_benchmarks=true leaves rows that are there;
    ++prepare_script_args.NAME=VALUE is what the script is called with.
    """
    from blade.hostile import line
    from blade.tables.cache import root
    from blade_eval import config
    from blade_eval.prepare import find, work
    from blade_eval.prepare.script import Limits

    asked = config.Asked(paths=configs, benchmarks=benchmarks, search_dirs=search_dirs, overrides=overrides)
    found = config.resolved(asked)
    # servers and models are not needed here; what was typed wrongly is no less wrong
    typed = tuple(one for one in found.of("error") if one.place == "command line")
    config.insist(replace(found, problems=typed))
    how = work.How(
        cache=root() / "raw",
        given=Path(given) if given else None,
        offline=offline,
        again=force,
        keep=find.cached(found),
        partial=allow_partial,
        args=find.arguments(found),
        limits=Limits(wall_s=timeout, cpu_s=timeout, memory_bytes=int(max_memory * 1e9)),
    )
    made = work.prepared(find.wanted(found), how, lambda text: print(line(text, 400), file=sys.stderr))
    for notice in (text for one in made for text in work.unknown(one)):
        print(f"notice: {line(notice, 400)}", file=sys.stderr)
    if as_json:
        click.echo(work.as_json(made))
        return
    for one in made:
        state = "as it was" if one.cached else "prepared"
        part = " (not all of the benchmark's)" if one.complete is False else ""
        click.echo(f"{one.name}: {one.rows:,} rows{part}, {state}: {one.path}")
