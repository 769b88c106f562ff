"""`blade list` and `blade search`: what there is to evaluate with, and how to choose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import SEARCH_DIR, LateGroup, json_option, stack
from blade.cli.output import notice
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade_eval.catalogue import Component, Entry

TYPES = ("benchmarks", "environments", "agents", "models", "resources-servers")
NAME = click.argument("name", metavar="[NAME]", required=False)
SHARED = stack(SEARCH_DIR, json_option())


@click.group(
    "list", cls=LateGroup, late={name: f"catalogue:{name.replace('-', '_')}" for name in TYPES},
    short_help="What there is to evaluate with: benchmarks, models, agents.",
)  # fmt: skip
def listing() -> None:
    """List benchmarks, environments, agents, models or resources servers, or look at one of them."""


@click.command(short_help="Benchmarks by category, or one of them and how to choose it.")
@NAME
@click.option("--domain", help="Only this domain.")
@click.option("--category", help="Only this category, such as coding.")
@SHARED
def benchmarks(
    name: str | None, domain: str | None, category: str | None, search_dirs: tuple[str, ...], as_json: bool
) -> None:
    """List the benchmarks: name, domain, agent, verifier, repeats and description, by category.

    With NAME: everything that is known of one, and how to choose it.
    """
    if name is not None:
        return _inspect(name, _entries(search_dirs), "benchmark", as_json)
    wanted = [entry for entry in _entries(search_dirs, "benchmark") if domain in (None, entry.domain)]
    _print([entry for entry in wanted if (category or "").lower() in entry.category], "benchmarks", as_json)


@click.command(short_help="Environments and benchmarks, or one of them.")
@NAME
@click.option("--domain", help="Only this domain.")
@click.option("--kind", type=click.Choice(["environment", "benchmark"]), help="Only this kind.")
@click.option("--modality", help="Only this modality, as manifests say.")
@click.option("--licensing", help="Only this licence, as manifests say.")
@click.option("--status", type=click.Choice(["experimental", "no-manifest"]), help="Only this status.")
@click.option("--lifecycle", type=click.Choice(["active", "deprecated"]), help="Only this lifecycle.")
@SHARED
def environments(name: str | None, search_dirs: tuple[str, ...], as_json: bool, **filters: str | None) -> None:
    """List everything that can be run: environments, benchmarks, and resources servers with data."""
    entries = _entries(search_dirs)
    if name is not None:
        return _inspect(name, entries, "environment", as_json)
    chosen = {key: value for key, value in filters.items() if value is not None}
    wanted = [entry for entry in entries if all(entry.as_json()[key] == value for key, value in chosen.items())]
    _print(wanted, "environments", as_json)


def _command(kind: str, short_help: str, help: str) -> click.Command:
    @click.command(kind, short_help=short_help, help=help)
    @NAME
    @SHARED
    def command(name: str | None, search_dirs: tuple[str, ...], as_json: bool) -> None:
        _list_components(kind, name, search_dirs, as_json)

    return command


agents = _command("agents", "Agents: what runs a rollout.", "List the agents.")
models = _command(
    "models", "Models: what --model-type takes.", "List the ways to reach a model, as --model-type takes them."
)
resources_servers = _command(
    "resources-servers", "Resources servers: tasks, tools and verifiers.", "List the resources servers."
)


@click.command(short_help="Search benchmarks and other components by words.")
@click.argument("words", metavar="[TYPE] WORDS...", nargs=-1, required=True)
@SHARED
def search(words: tuple[str, ...], search_dirs: tuple[str, ...], as_json: bool) -> None:
    """Search names, domains, categories and descriptions; the best match comes first.

    TYPE is benchmarks, environments (both by default), agents, models or resources-servers.
    """
    from blade_eval.catalogue import ranked

    has_type = len(words) > 1 and words[0] in TYPES
    kind = words[0] if has_type else "environments"
    query = " ".join(words[1:] if has_type else words)
    among: Sequence[Any]
    if kind in ("benchmarks", "environments"):
        among = [entry for entry in _entries(search_dirs) if kind == "environments" or entry.kind == "benchmark"]
    else:
        among = _components(kind, search_dirs)
    hits = ranked(query, among)
    if hits.found and not hits.all_words and not as_json:
        notice("nothing has all of these words; these have some", "notice")
    if not hits.found and not as_json:
        click.echo(f"no {kind} match {query!r}", err=True)
    _print(hits.found, kind, as_json, by_category=False)


def _entries(search_dirs: tuple[str, ...], only: str | None = None) -> tuple[Entry, ...]:
    from blade_eval.catalogue import entries
    from blade_eval.config import roots

    return entries(roots(search_dirs), only)


def _components(kind: str, search_dirs: tuple[str, ...]) -> tuple[Component, ...]:
    from blade_eval.catalogue import components
    from blade_eval.config import roots

    return components(kind, roots(search_dirs))


def _warn_unreadable(items: Sequence[Any]) -> None:
    """Name definitions of which not everything could be read."""
    broken = [item for item in items if item.trouble]
    for item in broken[:3]:
        notice(f"{item.name}: {item.trouble}", "notice")
    if len(broken) > 3:
        notice(f"{len(broken) - 3} more cannot be read in full", "notice")


def _list_components(kind: str, name: str | None, search_dirs: tuple[str, ...], as_json: bool) -> None:
    components = _components(kind, search_dirs)
    if name is None:
        return _print(components, kind, as_json)
    component = next((item for item in components if item.name == name), None)
    noun = kind.removesuffix("s").replace("-", " ")
    if component is None:
        raise _unknown(noun, name, [item.name for item in components], kind)
    flag = {"models": "--model-type", "resources-servers": "--resources-server"}.get(kind)
    variants = {"variants": ", ".join(component.variants)} if component.variants else {}
    document = {
        "name": component.name, "type": noun, "domain": component.domain, "description": component.description,
        "details": {"path": str(component.path), **variants},
        "usage_example": f"blade env resolve {flag} {component.name}" if flag else None,
    }  # fmt: skip
    _show(document, as_json)


def _inspect(name: str, entries: Sequence[Entry], kind: str, as_json: bool) -> None:
    same = [entry for entry in entries if entry.name == name]
    right = [entry for entry in same if kind in (entry.kind, "environment")]
    if not right and same:
        other = same[0].kind
        hint = f"`blade list {other}s {name}` shows it"
        raise UsageError(f"{name} is no {kind} but one of the {other}s", hint, "no-such-component")
    if not right:
        names = [entry.name for entry in entries if kind in (entry.kind, "environment")]
        raise _unknown(kind, name, names, f"{kind}s")
    _warn_unreadable(right[:1])
    _show(_document(right[0]), as_json)


def _unknown(noun: str, name: str, known: list[str], kind: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 3, 0.5) or [other for other in known if name in other][:3]
    hint = f"did you mean {', '.join(near)}?" if near else f"`blade list {kind}` prints what there is"
    return UsageError(f"there is no {noun} {name}", hint, "no-such-component")


def _document(entry: Entry) -> dict[str, Any]:
    """The incumbent's inspect view, and what we know beyond it."""
    wire = entry.as_json()
    details = {
        "config": str(entry.path), "status": entry.status, "version": wire["version"],
        "profile": wire["integration_profile"], "modality": wire["modality"], "licensing": entry.license,
        "lifecycle": wire["lifecycle"], "resources servers": entry.verifier, "agent": entry.agent,
        "datasets": ", ".join(entry.datasets), "repeats": str(entry.num_repeats) if entry.num_repeats else None,
    }  # fmt: skip
    flag, name = "--benchmark", entry.name.removeprefix("resources_servers/")
    if entry.kind == "environment":
        flag = "--environment" if name == entry.name else "--resources-server"
    output = f"results/{name.replace('/', '_')}.jsonl"
    return {
        "name": entry.name, "type": entry.kind, "domain": entry.domain, "description": entry.description,
        "details": {key: value for key, value in details.items() if value},
        "usage_example": f"blade eval run {flag} {name} --model-type openai_model --output {output}",
        "category": entry.category, "choose": entry.choose, "published": entry.published,
    }  # fmt: skip


def _show(document: dict[str, Any], as_json: bool) -> None:
    from blade.cli.catalogue_text import inspected

    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else inspected(document))


def _print(items: Sequence[Any], kind: str, as_json: bool, by_category: bool = True) -> None:
    from blade.cli import catalogue_text

    _warn_unreadable(items)
    if as_json:
        click.echo(json.dumps([item.as_json() for item in items], indent=2, ensure_ascii=False))
        return
    is_entry = kind in ("benchmarks", "environments")
    text = catalogue_text.entries(items, by_category) if is_entry else catalogue_text.components(items)
    if text:
        click.echo(text)
    if by_category:
        noun = kind.replace("-", " ")
        click.echo(f"{len(items)} {noun if len(items) != 1 else noun.removesuffix('s')}", err=True)
