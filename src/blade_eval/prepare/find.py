"""Find the datasets of a configuration that have a prepare script, and where their rows belong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade_eval.config import Dataset, Resolved, installed
from blade_eval.prepare.work import Wanted, manifest_pins


def wanted(found: Resolved, folder: Path | None = None) -> list[Wanted]:
    """Every dataset with a prepare script, each output once; rows go beside the definition they belong to."""
    folder = Path.cwd() if folder is None else folder
    chosen: dict[Path, Wanted] = {}
    for dataset in found.datasets:
        if dataset.prepare_script and dataset.jsonl_fpath:
            one = _wanted(dataset, found.roots, folder)
            chosen.setdefault(one.output, one)
    if not chosen:
        names = ", ".join(dataset.name for dataset in found.datasets) or "none at all"
        raise UsageError(
            f"no dataset with a prepare_script was found; datasets: {names}",
            "name a benchmark with --benchmark; `blade list benchmarks` prints them",
            "prepare-nothing",
        )
    return list(chosen.values())


def arguments(found: Resolved) -> Mapping[str, Any]:
    """The override `prepare_script_args`, a mapping of what `prepare()` is called with."""
    given = found.tree.get("prepare_script_args") or {}
    if not isinstance(given, Mapping):
        raise UsageError(
            f"prepare_script_args is {given!r}, not a mapping",
            "write ++prepare_script_args.NAME=VALUE, or ++prepare_script_args={NAME: VALUE}",
            "bad-override",
        )
    return {str(name): value for name, value in given.items()}


def cached(found: Resolved) -> bool:
    """The override `use_cached_prepared_benchmarks`."""
    return bool(found.tree.get("use_cached_prepared_benchmarks"))


def _wanted(dataset: Dataset, roots: Sequence[Path], folder: Path) -> Wanted:
    relative = Path(str(dataset.prepare_script))
    root = next((root for root in roots if (root / relative).is_file()), folder)
    script = (root / relative).absolute()
    work = root if _ours(root, script) else folder
    output = (work / str(dataset.jsonl_fpath)).absolute()
    return Wanted(dataset.name, script, root.absolute(), output, work.absolute(), manifest_pins(script))


def _ours(root: Path, script: Path) -> bool:
    """Whether data may be written into this tree: not into an installed package, nor where we may not."""
    package = Path(__file__).resolve().parents[1]
    if root.resolve() == installed() and root.resolve().is_relative_to(package):
        return False
    return os.access(script.parent if script.parent.is_dir() else root, os.W_OK)
