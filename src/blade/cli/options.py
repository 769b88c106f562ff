"""Declare the arguments and options that several commands take, and refuse values that none of them can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

import click

from blade.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


class LateGroup(click.Group):
    """A group that imports a command when it is asked for: name -> module of this room, and attribute if other."""

    def __init__(self, *args: Any, late: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.late = late

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.late:
            return None
        module, _, attribute = self.late[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"blade.cli.{module}"), attribute or module)
        return command


def stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order in which help lists them."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def refuse_no_runs(runs: tuple[str, ...]) -> tuple[str, ...]:
    if not runs:
        raise UsageError("no RUN was given", "name a rollouts file or a folder, or try `blade demo`", "usage")
    return runs


def _finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    if value is not None and not abs(value) < float("inf"):
        raise UsageError(
            f"--pass-threshold {value} is no number to pass at", "give a finite number", "bad-threshold"
        )
    return value


def runs_argument(metavar: str = "RUN...") -> Callable[[Command], Command]:
    return click.argument("runs", nargs=-1, metavar=metavar, callback=lambda _, __, runs: refuse_no_runs(runs))


def threshold_option(
    help: str = "A row passes at reward >= X (default: 1).", default: float | None = None
) -> Callable[[Command], Command]:
    return click.option("--pass-threshold", metavar="X", type=float, default=default, callback=_finite, help=help)


def json_option(help: str = "Print JSON.") -> Callable[[Command], Command]:
    return click.option("--json", "as_json", is_flag=True, help=help)


def force_option(help: str = "Write into a folder that holds other files.") -> Callable[[Command], Command]:
    return click.option("--force", is_flag=True, help=help)


def output_option(help: str, metavar: str = "DIR", **more: Any) -> Callable[[Command], Command]:
    return click.option("-o", "--output", metavar=metavar, help=help, **more)


THRESHOLD = threshold_option()
MAPPING = click.option(
    "--map", "fields", metavar="NAME=FIELD,...", help="Name the fields of rows that are not NeMo Gym's."
)
REDACT = click.option("--redact", is_flag=True, help="Replace what must not be shared by placeholders.")
TIMINGS = click.option("--timings", is_flag=True, help="Tell on stderr how long each stage took.")
ONLY = click.option("--run", "only", metavar="NAME", help="Of several runs in RUN, the one of this name.")
ENDPOINT = stack(
    click.option("--base-url", metavar="URL", help="The endpoint (default: OPENAI_BASE_URL, else OpenAI's)."),
    click.option("--key-env", metavar="NAME", help="The variable that holds the key (default: OPENAI_API_KEY)."),
)
SEARCH_DIR = click.option(
    "--search-dir", "search_dirs", metavar="DIR", multiple=True,
    help="Look for names here first, such as in a checkout of NeMo Gym; may be repeated.",
)  # fmt: skip
