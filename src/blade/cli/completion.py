"""`blade completion`: the shell script that completes commands and options."""

from __future__ import annotations

import click


@click.command(short_help="Shell completion for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL; source it from the shell's start-up file."""
    from click.shell_completion import get_completion_class

    from blade.cli.main import cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "blade", "_BLADE_COMPLETE").source())
