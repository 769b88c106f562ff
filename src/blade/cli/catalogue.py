"""`blade list` and `blade search`: what there is to evaluate with, and how to choose."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from blade.errors import UsageError

if TYPE_CHECKING:
    from blade_eval.catalogue import Component, Entry

TYPES = ("benchmarks", "environments", "agents", "models", "resources-servers")
Command = TypeVar("Command", bound=Callable[..., Any])


def _options(command: Command) -> Command:
    search_dir = click.option(
        "--search-dir",
        "search_dirs",
        metavar="DIR",
        multiple=True,
        help="Look here first, such as in a checkout of NeMo Gym; may be repeated.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    return search_dir(as_json(command))


@click.group(name="list", short_help="What there is to evaluate with: benchmarks, models, agents.")
def listing() -> None:
    """List benchmarks, environments, agents, models or resources servers, or look at one of them."""


@listing.command(short_help="Benchmarks by category, or one of them and how to choose it.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--domain", help="Only this domain.")
@click.option("--category", help="Only this category, such as coding.")
@_options
def benchmarks(
    name: str | None, domain: str | None, category: str | None, search_dirs: tuple[str, ...], as_json: bool
) -> None:
    """List the benchmarks: name, domain, agent, verifier, repeats and description, by category.

    With NAME: everything that is known of one, and how to choose it.
    """
    if name is not None:
        _inspect(name, _entries(search_dirs), "benchmark", as_json)
        return
    wanted = [entry for entry in _entries(search_dirs, "benchmark") if domain in (None, entry.domain)]
    if category is not None:
        wanted = [entry for entry in wanted if category.lower() in entry.category]
    _print(wanted, "benchmarks", as_json)


@listing.command(short_help="Environments and benchmarks, or one of them.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--domain", help="Only this domain.")
@click.option("--kind", type=click.Choice(["environment", "benchmark"]), help="Only this kind.")
@click.option("--modality", help="Only this modality, as manifests say.")
@click.option("--licensing", help="Only this licence, as manifests say.")
@click.option("--status", type=click.Choice(["experimental", "no-manifest"]), help="Only this status.")
@click.option("--lifecycle", type=click.Choice(["active", "deprecated"]), help="Only this lifecycle.")
@_options
def environments(
    name: str | None, search_dirs: tuple[str, ...], as_json: bool, **filters: str | None
) -> None:
    """List everything that can be run: environments, benchmarks, and resources servers with data."""
    found = _entries(search_dirs)
    if name is not None:
        _inspect(name, found, "environment", as_json)
        return
    given = {key: value for key, value in filters.items() if value is not None}
    wanted = [one for one in found if all(one.as_json()[key] == value for key, value in given.items())]
    _print(wanted, "environments", as_json)


@listing.command(short_help="Agents: what runs a rollout.")
@click.argument("name", metavar="[NAME]", required=False)
@_options
def agents(name: str | None, search_dirs: tuple[str, ...], as_json: bool) -> None:
    """List the agents."""
    _components("agents", name, search_dirs, as_json)


@listing.command(short_help="Models: what --model-type takes.")
@click.argument("name", metavar="[NAME]", required=False)
@_options
def models(name: str | None, search_dirs: tuple[str, ...], as_json: bool) -> None:
    """List the ways to reach a model, as --model-type takes them."""
    _components("models", name, search_dirs, as_json)


@listing.command("resources-servers", short_help="Resources servers: tasks, tools and verifiers.")
@click.argument("name", metavar="[NAME]", required=False)
@_options
def resources_servers(name: str | None, search_dirs: tuple[str, ...], as_json: bool) -> None:
    """List the resources servers."""
    _components("resources-servers", name, search_dirs, as_json)


@click.command(short_help="Search benchmarks and other components by words.")
@click.argument("words", metavar="[TYPE] WORDS...", nargs=-1, required=True)
@_options
def search(words: tuple[str, ...], search_dirs: tuple[str, ...], as_json: bool) -> None:
    """Search names, domains, categories and descriptions; the best match comes first.

    TYPE is benchmarks, environments (both by default), agents, models or resources-servers.
    """
    from blade_eval.catalogue import ranked

    kind = words[0] if len(words) > 1 and words[0] in TYPES else "environments"
    query = " ".join(words[1:] if len(words) > 1 and words[0] in TYPES else words)
    among: Sequence[Any]
    if kind in ("benchmarks", "environments"):
        among = [one for one in _entries(search_dirs) if kind == "environments" or one.kind == "benchmark"]
    else:
        among = _found(kind, search_dirs)
    hits = ranked(query, among)
    if hits.found and not hits.all_words and not as_json:
        click.echo("notice: nothing has all of these words; these have some", err=True)
    if not hits.found and not as_json:
        click.echo(f"no {kind} match {query!r}", err=True)
    _print(hits.found, kind, as_json, by_category=False)


def _entries(search_dirs: tuple[str, ...], only: str | None = None) -> tuple[Entry, ...]:
    from blade_eval.catalogue import entries
    from blade_eval.config import roots

    return entries(roots(search_dirs), only)


def _tell_trouble(found: Sequence[Any]) -> None:
    """Definitions of which not everything could be read."""
    from blade.hostile import line

    broken = [one for one in found if one.trouble]
    for one in broken[:3]:
        click.echo(f"notice: {line(f'{one.name}: {one.trouble}')}", err=True)
    if len(broken) > 3:
        click.echo(f"notice: {len(broken) - 3} more cannot be read in full", err=True)


def _found(kind: str, search_dirs: tuple[str, ...]) -> tuple[Component, ...]:
    from blade_eval.catalogue import components
    from blade_eval.config import roots

    return components(kind, roots(search_dirs))


def _components(kind: str, name: str | None, search_dirs: tuple[str, ...], as_json: bool) -> None:
    found = _found(kind, search_dirs)
    if name is None:
        _print(found, kind, as_json)
        return
    one = next((one for one in found if one.name == name), None)
    noun = kind.removesuffix("s").replace("-", " ")
    if one is None:
        raise _unknown(noun, name, [one.name for one in found], kind)
    flag = {"models": "--model-type", "resources-servers": "--resources-server"}.get(kind)
    told: dict[str, Any] = {
        "name": one.name,
        "type": noun,
        "domain": one.domain,
        "description": one.description,
        "details": {"path": str(one.path), **({"variants": ", ".join(one.variants)} if one.variants else {})},
        "usage_example": f"blade env resolve {flag} {one.name}" if flag else None,
    }
    _show(told, as_json)


def _inspect(name: str, found: Sequence[Entry], kind: str, as_json: bool) -> None:
    same = [entry for entry in found if entry.name == name]
    right = [entry for entry in same if kind in (entry.kind, "environment")]
    if not right and same:
        raise UsageError(
            f"{name} is no {kind} but one of the {same[0].kind}s",
            f"`blade list {same[0].kind}s {name}` shows it",
            "no-such-component",
        )
    if not right:
        names = [entry.name for entry in found if kind in (entry.kind, "environment")]
        raise _unknown(kind, name, names, f"{kind}s")
    _tell_trouble(right[:1])
    _show(_told(right[0]), as_json)


def _unknown(noun: str, name: str, known: list[str], kind: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 3, 0.5) or [one for one in known if name in one][:3]
    hint = f"did you mean {', '.join(near)}?" if near else f"`blade list {kind}` prints what there is"
    return UsageError(f"there is no {noun} {name}", hint, "no-such-component")


def _told(entry: Entry) -> dict[str, Any]:
    """The incumbent's inspect view, and what we know beyond it."""
    said = entry.as_json()
    details = {
        "config": str(entry.path),
        "status": entry.status,
        "version": said["version"],
        "profile": said["integration_profile"],
        "modality": said["modality"],
        "licensing": entry.license,
        "lifecycle": said["lifecycle"],
        "resources servers": entry.verifier,
        "agent": entry.agent,
        "datasets": ", ".join(entry.datasets),
        "repeats": str(entry.num_repeats) if entry.num_repeats else None,
    }
    flag, name = "--benchmark", entry.name.removeprefix("resources_servers/")
    if entry.kind == "environment":
        flag = "--environment" if name == entry.name else "--resources-server"
    output = f"results/{name.replace('/', '_')}.jsonl"
    return {
        "name": entry.name,
        "type": entry.kind,
        "domain": entry.domain,
        "description": entry.description,
        "details": {key: value for key, value in details.items() if value},
        "usage_example": f"blade eval run {flag} {name} --model-type openai_model --output {output}",
        "category": entry.category,
        "choose": entry.choose,
        "published": entry.published,
    }


def _show(told: dict[str, Any], as_json: bool) -> None:
    from blade.cli.catalogue_text import inspected

    click.echo(json.dumps(told, indent=2, ensure_ascii=False) if as_json else inspected(told))


def _print(found: Sequence[Any], kind: str, as_json: bool, by_category: bool = True) -> None:
    _tell_trouble(found)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2, ensure_ascii=False))
        return
    from blade.cli import catalogue_text

    if kind in ("benchmarks", "environments"):
        text = catalogue_text.entries(found, by_category)
    else:
        text = catalogue_text.components(found)
    if text:
        click.echo(text)
    if by_category:
        noun = kind.replace("-", " ")
        click.echo(f"{len(found)} {noun if len(found) != 1 else noun.removesuffix('s')}", err=True)
