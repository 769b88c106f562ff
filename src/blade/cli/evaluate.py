"""`blade eval`: prepare, run, profile, aggregate and re-verify an evaluation."""

from __future__ import annotations

from importlib import import_module

import click

# Each module holds the command of its name; it is imported when it is asked for, not for `blade --help`.
COMMANDS = {
    "prepare": "blade.cli.eval_prepare",
    "run": "blade.cli.eval_run",
    "profile": "blade.cli.eval_profile",
    "aggregate": "blade.cli.eval_aggregate",
    "reverify": "blade.cli.eval_reverify",
}


class _Late(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
        return command


@click.group("eval", cls=_Late, short_help="Run a benchmark: prepare, run, profile, aggregate, reverify.")
def evaluate() -> None:
    """Run an evaluation and sum it up, in the files that `blade diagnose` reads.

    The words and files are those of NeMo Gym's `gym eval`.
    """
