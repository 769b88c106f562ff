"""`blade env`: print, check and start what a configuration describes, and say what runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import SEARCH_DIR, json_option, stack
from blade.cli.output import exit_failed
from blade.errors import NothingToRead, UsageError
from blade.hostile import line

if TYPE_CHECKING:
    from blade_eval.config import Asked, Problem, Resolved

HEAD = 11000  # where the incumbent's head server listens, too
CONFIG = ("paths", "benchmarks", "environments", "resources_servers", "model_types", "search_dirs")
MODEL = {"model": "policy_model_name", "model_url": "policy_base_url", "model_api_key": "policy_api_key"}
OVERRIDES = click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
PORT = click.option("--port", type=int, default=HEAD, show_default=True, help="Where the head server listens.")
# The flags that say which definitions to merge, for every command that takes them.
config_options = stack(
    click.option("--config", "paths", metavar="FILE", multiple=True, help="A YAML file; may be repeated."),
    click.option("--benchmark", "benchmarks", metavar="NAME", multiple=True, help="A benchmark, as `blade list` has it."),
    click.option("--environment", "environments", metavar="NAME", multiple=True, help="An environment."),
    click.option("--resources-server", "resources_servers", metavar="NAME[/FLAVOUR]", multiple=True,
                 help="A resources server: tasks, tools and verifier."),
    click.option("--model-type", "model_types", metavar="NAME[/FLAVOUR]", multiple=True,
                 help="How the model is reached: openai_model or scripted_model."),
    click.option("--model", "-m", metavar="NAME", help="The model's name (policy_model_name)."),
    click.option("--model-url", metavar="URL", help="The address of its server (policy_base_url)."),
    click.option("--model-api-key", metavar="KEY", help="Its key (policy_api_key)."),
    SEARCH_DIR,
)  # fmt: skip


def asked(flags: Mapping[str, Any], overrides: tuple[str, ...] = ()) -> Asked:
    """What the flags of `config_options` ask for; a flag of the model wins over an override of its key."""
    from blade_eval.config import Asked

    changes = [f"++{key}={_quoted(flags[flag])}" for flag, key in MODEL.items() if flags[flag] is not None]
    return Asked(**{name: flags[name] for name in CONFIG}, overrides=(*overrides, *changes))


def has_config(wish: Asked) -> bool:
    """Whether a configuration is named anywhere but in env.yaml."""
    return not wish.nothing or any(word.lstrip("+").startswith("config_paths=") for word in wish.overrides)


def _quoted(text: str) -> str:
    """As YAML reads it back, whatever it holds; JSON's pairs of surrogates are two characters to YAML."""
    letters = (c if c.isascii() and c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{"".join(letters)}"'


def print_problems(config: Resolved, problems: tuple[Problem, ...]) -> None:
    """Print what there is to say about a configuration, without secrets, to stderr."""
    from blade_eval.config import hidden

    texts = hidden({"config": config.tree, "texts": [problem.told() for problem in problems]})["texts"]
    for problem, text in zip(problems, texts, strict=True):
        word = "unset" if problem.level == "model" else problem.level
        click.echo(f"{word + ':':<8} {line(text)}", err=True)


@click.group()
def env() -> None:
    """Print, check and start what a configuration describes.

    A configuration is merged from named definitions (--benchmark, --resources-server, --model-type …), files
    (--config), env.yaml in this folder and overrides such as ++key=value, a later one over an earlier one.
    """


@env.command(short_help="Print the merged configuration, secrets hidden.")
@config_options
@json_option("Print JSON: the configuration, its files and problems.")
@OVERRIDES
def resolve(as_json: bool, overrides: tuple[str, ...], **flags: Any) -> None:
    """Print the merged configuration as YAML, secrets hidden; what is unset or wrong goes to stderr.

    The exit code is 1 if something is wrong, such as a reference to an instance that is not there.
    """
    from blade_eval.config import hidden

    config = _resolved(asked(flags, overrides))
    tree = hidden(config.tree)
    if as_json:
        click.echo(json.dumps({"config": tree, **_json(config)}, indent=2, ensure_ascii=False, default=str))
    else:
        import yaml

        click.echo(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=100), nl=False)
        print_problems(config, config.problems)
    exit_failed(config.of("error"))


@env.command(short_help="Check a configuration without starting it.")
@config_options
@click.option("--strict", is_flag=True, help="Fail also if no model is chosen, and on warnings.")
@json_option()
@OVERRIDES
def validate(strict: bool, as_json: bool, overrides: tuple[str, ...], **flags: Any) -> None:
    """Merge and check: values that are unset, references, datasets, files that are named but missing.

    The exit code is 1 if it cannot be run. That no model is chosen yet is told; with --strict it fails.
    """
    from blade_eval.config.resolve import MODEL
    from blade_eval.prepare.work import misnamed

    config = _resolved(asked(flags, overrides))
    # once a model is chosen, what it lacks is missing, no longer to be chosen
    wrong = len(config.of("error", "unset")) + (len(config.of("warning")) if strict else 0)
    wrong += len(config.of("model")) if strict or config.server(MODEL) is not None else 0
    if as_json:
        click.echo(json.dumps({"valid": not wrong, **_json(config)}, indent=2, ensure_ascii=False))
    else:
        print_problems(config, config.problems)
        for text in (text for path in config.files for text in misnamed(path)):
            click.echo(f"{'notice:':<8} {line(text)}", err=True)
        counts = {"server": len(config.servers), "dataset": len(config.datasets), "file": len(config.files)}
        valid = "valid: " + ", ".join(f"{n} {noun}{'s' if n != 1 else ''}" for noun, n in counts.items())
        valid += "; a model is still to be chosen" if config.of("model") else ""
        click.echo(f"not valid: {wrong} problem{'s' if wrong > 1 else ''}" if wrong else valid)
    exit_failed(wrong)


@env.command(short_help="Say which servers run.")
@PORT
@json_option()
def status(port: int, as_json: bool) -> None:
    """Ask the head server on this machine what runs."""
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    try:
        # a proxy of the environment has no business between us and this machine
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/server_instances", timeout=5) as answer:
            instances = json.load(answer)
    except (URLError, OSError, ValueError) as error:
        hint = "start one with `blade env start`, or name its port with --port"
        why = getattr(error, "reason", error)
        raise NothingToRead(f"no head server answers at 127.0.0.1:{port} ({why})", hint, "no-head-server") from error
    if isinstance(instances, dict):
        instances = [{"name": name, **(row if isinstance(row, dict) else {})} for name, row in instances.items()]
    if not isinstance(instances, list) or not all(isinstance(row, dict) for row in instances):
        message = f"what answers at 127.0.0.1:{port} is no head server"
        raise NothingToRead(message, "name the head server's port with --port", "no-head-server")
    if as_json:
        click.echo(json.dumps(instances, indent=2, ensure_ascii=False))
        return
    rows = [[line(cell) for cell in _row(instance)] for instance in instances]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo(f"{len(rows)} servers; head server at 127.0.0.1:{port}", err=True)


@env.command(short_help="Serve resources servers, agents and models over HTTP.")
@config_options
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@PORT
@OVERRIDES
def start(host: str, port: int, overrides: tuple[str, ...], **flags: Any) -> None:
    """Start every server of the configuration, and stop them on Ctrl-C."""
    from blade_eval.config import insist
    from blade_eval.servers import sites

    config = _resolved(asked(flags, overrides))
    print_problems(config, config.of("warning", "notice"))
    if not config.servers:
        hint = "name some, such as --resources-server workplace_assistant --model-type openai_model"
        message = "the configuration has no servers, so there is nothing to start"
        raise UsageError(message, hint, "nothing-to-start")
    insist(config)
    sites.start(config, host, port)


def _resolved(wish: Asked) -> Resolved:
    from blade_eval.config import resolved

    if not has_config(wish) and not Path("env.yaml").is_file():
        hint = "add --benchmark NAME, --resources-server NAME or --config FILE; `blade list` has the names"
        raise UsageError("no configuration is named", hint, "no-config")
    return resolved(wish)


def _json(config: Resolved) -> dict[str, Any]:
    from blade_eval.config import hidden

    names = ("instance", "kind", "implementation", "place")
    problems = [asdict(problem) for problem in config.problems]
    return {
        "servers": [{name: getattr(server, name) for name in names} for server in config.servers],
        "files": [str(path) for path in config.files],
        "problems": hidden({"config": config.tree, "problems": problems})["problems"],
    }


def _row(instance: dict[str, Any]) -> tuple[str, str, str, str]:
    url = instance.get("url") or f"http://{instance.get('host', '?')}:{instance.get('port', '?')}"
    keys = (("name", "process_name", "config_path"), ("server_type", "type"), ("implementation", "entrypoint"))
    name, kind, what = (next((str(instance[key]) for key in names if instance.get(key)), "") for names in keys)
    return name or "?", kind, what, str(url)
