"""`blade doctor`: what this machine has, and how large the cache is."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from pathlib import Path

import click

from blade import __version__

_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)")
_NAME = re.compile(r"[\w.-]*")


@click.command(short_help="What this machine has; the cache and its size.")
@click.option("--clean", is_flag=True, help="Empty the cache of indexes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(clean: bool, as_json: bool) -> None:
    """Show versions, the cache folder and its size; --clean empties the cache."""
    from blade.tables import cache

    if clean:
        freed, n_freed = cache.clean()
        if as_json:
            click.echo(
                json.dumps({"cache": str(cache.root()), "freed_bytes": freed, "freed_indexes": n_freed})
            )
        else:
            click.echo(f"Freed {freed / 1e6:,.1f} MB of {n_freed} indexes in {cache.root()}")
        return
    size, n_indexes = cache.size()
    facts = {
        "blade": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "cache": str(cache.root()),
        "cache_writable": _is_writable(cache.root()),
        "cache_bytes": size,
        "cache_indexes": n_indexes,
        "cache_disk_free_bytes": _free(cache.root()),
        "sandbox": _sandbox(),
        "packages": _packages(),
        "eval_packages": _packages("eval"),
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            click.echo(f"{name}")
            for package, hits in value.items():
                click.echo(f"  {package:<22} {hits or 'MISSING'}")
            if name == "eval_packages" and None in value.values():
                click.echo("  for verifiers that need them: pip install 'blade-diagnostics[eval]'")
        else:
            click.echo(
                f"{name:<22} {value:,}" if isinstance(value, int) and value > 9999 else f"{name:<22} {value}"
            )


def _sandbox() -> str:
    """Whether untrusted code can be judged here: only where every part of the box holds."""
    from blade_eval import sandbox

    missing = [f"{check.name}: {check.seen}" for check in sandbox.holds() if not check.holds]
    return "; ".join(missing) or "holds"


def _packages(extra: str = "") -> dict[str, str | None]:
    """The packages BLADE or an extra of it needs and their versions; None for one that is missing."""
    from importlib.metadata import PackageNotFoundError, requires, version  # slow to import

    try:
        lines = requires("blade-diagnostics") or []
    except PackageNotFoundError:
        return {}
    names = []
    for line in lines:
        needed, _, condition = line.partition(";")
        of = _EXTRA.search(condition)
        if (of[1] if of else "") == extra:
            names.append(_NAME.match(needed.strip())[0])  # type: ignore[index]
    hits: dict[str, str | None] = {}
    for name in names:
        try:
            hits[name] = version(name)
        except PackageNotFoundError:
            hits[name] = None
    return hits


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _is_writable(path: Path) -> bool:
    return os.access(_existing(path), os.W_OK)


def _free(path: Path) -> int:
    return shutil.disk_usage(_existing(path)).free
