"""The `blade` command: its subcommands, and the one place where errors are told."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import NoReturn

import click

from blade import __version__, errors
from blade.cli.options import LateGroup
from blade.hostile import under

# Each is imported when it is asked for; `blade --help` imports them all, and nothing heavy with them.
COMMANDS = {
    name: name
    for name in (
        "diagnose compare check cite query fields show health queue label draft read skill mcp package sanitize list search "
        "eval env init detectors demo doctor completion"
    ).split()
} | {
    "cite": "check:cite", "fields": "query:fields", "list": "catalogue:listing",
    "search": "catalogue:search", "health": "diagnose:health", "draft": "diagnose:draft", "init": "diagnose:init",
    "mcp": "skill:mcp", "eval": "main:evaluate", "completion": "main:completion",
}  # fmt: skip
EVAL_COMMANDS = {
    "prepare": "eval_prepare:prepare", "run": "eval_run:run", "profile": "eval_profile:profile",
    "aggregate": "eval_profile:aggregate", "reverify": "eval_reverify:reverify",
}  # fmt: skip


@click.group(cls=LateGroup, late=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="blade")
def cli() -> None:
    """Diagnose an evaluation: which tasks failed, why, what to fix first, and how far to trust the score."""


@click.group(cls=LateGroup, late=EVAL_COMMANDS, short_help="Run a benchmark: prepare, run, profile, aggregate, reverify.")
def evaluate() -> None:
    """Run an evaluation and sum it up, in the files that `blade diagnose` reads.

    The words and files are those of NeMo Gym's `gym eval`.
    """


@click.command(short_help="Shell completion for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL; source it from the shell's start-up file."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(script(cli, {}, "blade", "_BLADE_COMPLETE").source())


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and turn whatever goes wrong into a message and an exit code."""
    options = sys.argv[1:] if arguments is None else arguments
    as_json, out = "--json" in options, sys.stdout
    # we multiply no matrices: idle threads of the linear algebra library only slow the start
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = cli.main(options, prog_name="blade", standalone_mode=False)
        sys.stdout.flush()
        # click hands back the code of a command that ends early, such as a gate that fails
        sys.exit(code if isinstance(code, int) else errors.EXIT_OK)
    except errors.BladeError as error:
        _end(error, as_json)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        sys.exit(errors.EXIT_USAGE)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "blade"
        _end(errors.UsageError(error.format_message(), f"`{command} --help` lists what it takes", "usage"), as_json)
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(errors.EXIT_INTERRUPTED)
    except BrokenPipeError:
        _drop_stdout()  # the reader went away: nothing to tell
        sys.exit(errors.EXIT_OK)
    except SystemExit:
        if sys.stdout is out:
            raise
        _drop_stdout()  # click saw the broken pipe first: it wraps stdout, and would end with 1
        sys.exit(errors.EXIT_OK)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _end(_our_bug(error, options), as_json)
        _drop_stdout()
        _end(errors.Unreadable(f"cannot write: {error.strerror}", "free some disk space", "cannot-write"), as_json)
    except Exception as error:
        _end(_our_bug(error, options), as_json)


def _drop_stdout() -> None:
    """Let what is still buffered go nowhere, so that the end of the program does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(error: errors.BladeError, as_json: bool) -> NoReturn:
    """Tell an error, and end with its exit code."""
    lines = (under("error: ", error.message), under("hint:  ", errors.with_pages(error.hint)), f"see:   {error.see}")
    print(json.dumps(error.as_json()) if as_json else "\n".join(lines), file=sys.stderr)
    sys.exit(error.exit_code)


def _our_bug(error: Exception, options: list[str]) -> errors.BladeError:
    """Leave a log that can be pasted into a report."""
    import platform
    import tempfile
    import traceback

    words = errors.OurBug(f"{type(error).__name__}: {error}", "this is a fault of BLADE", "internal-error")
    try:
        with tempfile.NamedTemporaryFile("w", prefix="blade-", suffix=".log", delete=False) as log:
            log.write(f"blade {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
            log.write(f"arguments: {options}\n\n{''.join(traceback.format_exception(error))}")
        words.hint = f"this is a fault of BLADE; please report it with {log.name}"
    except OSError:
        traceback.print_exception(error, file=sys.stderr)
    return words
