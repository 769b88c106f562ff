"""`blade doctor`: what this machine has, and how large the cache is."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil

import click

from blade import __version__
from blade.cli.options import json_option

_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)")
_NAME = re.compile(r"[\w.-]*")


@click.command(short_help="What this machine has; the cache and its size.")
@click.option("--clean", is_flag=True, help="Empty the cache of indexes.")
@json_option()
def doctor(clean: bool, as_json: bool) -> None:
    """Show versions, the cache folder and its size; --clean empties the cache."""
    from blade.tables import cache
    from blade_eval import sandbox

    folder = cache.root()
    if clean:
        freed, n_freed = cache.clean()
        if as_json:
            click.echo(json.dumps({"cache": str(folder), "freed_bytes": freed, "freed_indexes": n_freed}))
        else:
            click.echo(f"Freed {freed / 1e6:,.1f} MB of {n_freed} indexes in {folder}")
        return
    size, n_indexes = cache.size()
    # whether untrusted code can be judged here: only where every part of the box holds
    missing = [f"{check.name}: {check.seen}" for check in sandbox.holds() if not check.holds]
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    facts = {
        "blade": __version__, "python": platform.python_version(), "platform": platform.platform(),
        "cores": os.cpu_count(), "cache": str(folder), "cache_writable": os.access(existing, os.W_OK),
        "cache_bytes": size, "cache_indexes": n_indexes, "cache_disk_free_bytes": shutil.disk_usage(existing).free,
        "sandbox": "; ".join(missing) or "holds", "packages": _packages(), "eval_packages": _packages("eval"),
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            click.echo("\n".join([name, *(f"  {package:<22} {version or 'MISSING'}" for package, version in value.items())]))
            if name == "eval_packages" and None in value.values():
                click.echo("  for verifiers that need them: pip install 'blade-diagnostics[eval]'")
        else:
            click.echo(f"{name:<22} {value:,}" if isinstance(value, int) and value > 9999 else f"{name:<22} {value}")


def _packages(extra: str = "") -> dict[str, str | None]:
    """The packages BLADE or an extra of it needs and their versions; None for one that is missing."""
    from importlib.metadata import PackageNotFoundError, requires, version  # slow to import

    def version_of(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    try:
        lines = requires("blade-diagnostics") or []
    except PackageNotFoundError:
        return {}
    versions = {}
    for needed, _, condition in (line.partition(";") for line in lines):
        of = _EXTRA.search(condition)
        name = _NAME.match(needed.strip())
        if name and (of[1] if of else "") == extra:
            versions[name[0]] = version_of(name[0])
    return versions
