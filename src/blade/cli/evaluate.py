"""`blade eval`: prepare, run, profile, aggregate and re-verify an evaluation."""

from __future__ import annotations

import click

from blade.cli.options import LateGroup

COMMANDS = {name: f"eval_{name}:{name}" for name in ("prepare", "run", "profile", "aggregate", "reverify")}


@click.group(cls=LateGroup, late=COMMANDS, short_help="Run a benchmark: prepare, run, profile, aggregate, reverify.")
def evaluate() -> None:
    """Run an evaluation and sum it up, in the files that `blade diagnose` reads.

    The words and files are those of NeMo Gym's `gym eval`.
    """
