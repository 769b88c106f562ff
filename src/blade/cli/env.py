"""`blade env`: print, check and start what a configuration describes, and say what runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from blade.errors import EXIT_FAILED_GATE, NothingToRead, UsageError

if TYPE_CHECKING:
    from blade_eval.config import Asked, Problem, Resolved

HEAD = 11000  # where the incumbent's head server listens, too
Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--config", "paths", metavar="FILE", multiple=True, help="A YAML file; may be repeated."),
    click.option(
        "--benchmark",
        "benchmarks",
        metavar="NAME",
        multiple=True,
        help="A benchmark, as `blade list` has it.",
    ),
    click.option("--environment", "environments", metavar="NAME", multiple=True, help="An environment."),
    click.option(
        "--resources-server",
        "resources_servers",
        metavar="NAME[/FLAVOUR]",
        multiple=True,
        help="A resources server: tasks, tools and verifier.",
    ),
    click.option(
        "--model-type",
        "model_types",
        metavar="NAME[/FLAVOUR]",
        multiple=True,
        help="How the model is reached: openai_model or scripted_model.",
    ),
    click.option("--model", "-m", metavar="NAME", help="The model's name (policy_model_name)."),
    click.option("--model-url", metavar="URL", help="The address of its server (policy_base_url)."),
    click.option("--model-api-key", metavar="KEY", help="Its key (policy_api_key)."),
    click.option(
        "--search-dir",
        "search_dirs",
        metavar="DIR",
        multiple=True,
        help="Look for names here first, such as in a checkout of NeMo Gym; may be repeated.",
    ),
]


def config_options(command: Command) -> Command:
    """The flags that say which definitions to merge, for every command that takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asked(
    paths: tuple[str, ...],
    benchmarks: tuple[str, ...],
    environments: tuple[str, ...],
    resources_servers: tuple[str, ...],
    model_types: tuple[str, ...],
    model: str | None,
    model_url: str | None,
    model_api_key: str | None,
    search_dirs: tuple[str, ...],
    overrides: tuple[str, ...] = (),
) -> Asked:
    """What the flags of `config_options` ask for; a flag of the model wins over an override of its key."""
    from blade_eval.config import Asked

    flags = {"policy_base_url": model_url, "policy_api_key": model_api_key, "policy_model_name": model}
    given = tuple(f"++{key}={_quoted(value)}" for key, value in flags.items() if value is not None)
    return Asked(
        paths, benchmarks, environments, resources_servers, model_types, search_dirs, (*overrides, *given)
    )


def _quoted(text: str) -> str:
    """As YAML reads it back, whatever it holds; JSON's pairs of surrogates are two characters to YAML."""
    kept = (
        one if one.isascii() and one.isprintable() and one not in '"\\' else f"\\U{ord(one):08x}"
        for one in text
    )
    return f'"{"".join(kept)}"'


def tell(found: Resolved, problems: tuple[Problem, ...]) -> None:
    """Print what there is to say about a configuration, without secrets, to stderr."""
    from blade.hostile import line
    from blade_eval.config import hidden

    told = hidden({"config": found.tree, "told": [problem.told() for problem in problems]})["told"]
    for problem, text in zip(problems, told, strict=True):
        word = {"model": "unset"}.get(problem.level, problem.level)
        click.echo(f"{word + ':':<8} {line(text)}", err=True)


@click.group()
def env() -> None:
    """Print, check and start what a configuration describes.

    A configuration is merged from named definitions (--benchmark, --resources-server, --model-type …), files
    (--config), env.yaml in this folder and overrides such as ++key=value, a later one over an earlier one.
    """


@env.command(short_help="Print the merged configuration, secrets hidden.")
@config_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: the configuration, its files and problems."
)
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
def resolve(as_json: bool, overrides: tuple[str, ...], **flags: Any) -> None:
    """Print the merged configuration as YAML, secrets hidden; what is unset or wrong goes to stderr.

    The exit code is 1 if something is wrong, such as a reference to an instance that is not there.
    """
    from blade_eval.config import hidden

    found = _resolved(asked(**flags, overrides=overrides))
    tree = hidden(found.tree)
    if as_json:
        click.echo(json.dumps({"config": tree, **_json(found)}, indent=2, ensure_ascii=False, default=str))
    else:
        import yaml

        click.echo(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=100), nl=False)
        tell(found, found.problems)
    if found.of("error"):
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


@env.command(short_help="Check a configuration without starting it.")
@config_options
@click.option("--strict", is_flag=True, help="Fail also if no model is chosen, and on warnings.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
def validate(strict: bool, as_json: bool, overrides: tuple[str, ...], **flags: Any) -> None:
    """Merge and check: values that are unset, references, datasets, files that are named but missing.

    The exit code is 1 if it cannot be run. That no model is chosen yet is told; with --strict it fails.
    """
    found = _resolved(asked(**flags, overrides=overrides))
    wrong = found.of("error", "unset", "model", "warning") if strict else found.of("error", "unset")
    if not strict and _has_model(found):
        wrong = found.of("error", "unset", "model")
    if as_json:
        click.echo(json.dumps({"valid": not wrong, **_json(found)}, indent=2, ensure_ascii=False))
    else:
        tell(found, found.problems)
        _tell_misnamed(found)
        click.echo(_verdict(found, len(wrong)))
    if wrong:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def _tell_misnamed(found: Resolved) -> None:
    """A manifest that was copied with its benchmark and still has the other's name."""
    from blade.hostile import line
    from blade_eval.prepare.work import misnamed

    for text in (text for path in found.files for text in misnamed(path)):
        click.echo(f"{'notice:':<8} {line(text)}", err=True)


@env.command(short_help="Say which servers run.")
@click.option("--port", type=int, default=HEAD, show_default=True, help="Where the head server listens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(port: int, as_json: bool) -> None:
    """Ask the head server on this machine what runs."""
    from blade.hostile import line

    instances = _running(port)
    if as_json:
        click.echo(json.dumps(instances, indent=2, ensure_ascii=False))
        return
    rows = [tuple(line(cell) for cell in _row(one)) for one in instances]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(4)]
    for row in rows:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo(f"{len(rows)} servers; head server at 127.0.0.1:{port}", err=True)


@env.command(short_help="Serve resources servers, agents and models over HTTP.")
@config_options
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=int, default=HEAD, show_default=True, help="Where the head server listens.")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
def start(host: str, port: int, overrides: tuple[str, ...], **flags: Any) -> None:
    """Start every server of the configuration, and stop them on Ctrl-C."""
    from blade_eval.config import insist

    found = _resolved(asked(**flags, overrides=overrides))
    tell(found, found.of("warning", "notice"))
    if not found.servers:
        raise UsageError(
            "the configuration has no servers, so there is nothing to start",
            "name some, such as --resources-server workplace_assistant --model-type openai_model",
            "nothing-to-start",
        )
    insist(found)

    from blade_eval import servers

    servers.start(found, host, port)


def _resolved(wanted: Asked) -> Resolved:
    from pathlib import Path

    from blade_eval.config import resolved

    listed = any(given.lstrip("+").startswith("config_paths=") for given in wanted.overrides)
    if wanted.nothing and not listed and not Path("env.yaml").is_file():
        raise UsageError(
            "no configuration is named",
            "add --benchmark NAME, --resources-server NAME or --config FILE; `blade list` has the names",
            "no-config",
        )
    return resolved(wanted)


def _json(found: Resolved) -> dict[str, Any]:
    from dataclasses import asdict

    from blade_eval.config import hidden

    return {
        "servers": [
            {
                "instance": one.instance,
                "kind": one.kind,
                "implementation": one.implementation,
                "place": one.place,
            }
            for one in found.servers
        ],
        "files": [str(path) for path in found.files],
        "problems": hidden({"config": found.tree, "problems": [asdict(one) for one in found.problems]})[
            "problems"
        ],
    }


def _has_model(found: Resolved) -> bool:
    """Whether a model was chosen: then what it lacks is no longer to be chosen, but missing."""
    from blade_eval.config.resolve import MODEL

    return found.server(MODEL) is not None


def _verdict(found: Resolved, wrong: int) -> str:
    if wrong:
        return f"not valid: {wrong} problem{'s' if wrong > 1 else ''}"
    counts = {"server": len(found.servers), "dataset": len(found.datasets), "file": len(found.files)}
    told = "valid: " + ", ".join(f"{n} {noun}{'s' if n != 1 else ''}" for noun, n in counts.items())
    return f"{told}; a model is still to be chosen" if found.of("model") else told


def _running(port: int) -> list[dict[str, Any]]:
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    url = f"http://127.0.0.1:{port}/server_instances"
    try:
        # a proxy of the environment has no business between us and this machine
        with build_opener(ProxyHandler({})).open(url, timeout=5) as answer:
            found = json.load(answer)
    except (URLError, OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise NothingToRead(
            f"no head server answers at 127.0.0.1:{port} ({why})",
            "start one with `blade env start`, or name its port with --port",
            "no-head-server",
        ) from error
    if isinstance(found, dict):
        found = [
            {"name": name, **one} if isinstance(one, dict) else {"name": name} for name, one in found.items()
        ]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise NothingToRead(
            f"what answers at 127.0.0.1:{port} is no head server",
            "name the head server's port with --port",
            "no-head-server",
        )
    return found


def _row(one: dict[str, Any]) -> tuple[str, str, str, str]:
    name = one.get("name") or one.get("process_name") or one.get("config_path") or "?"
    kind = one.get("server_type") or one.get("type") or ""
    what = one.get("implementation") or one.get("entrypoint") or ""
    url = one.get("url") or f"http://{one.get('host', '?')}:{one.get('port', '?')}"
    return str(name), str(kind), str(what), str(url)
