"""`blade list` and `blade search`: what there is to evaluate with, and how to choose."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import SEARCH_DIR, LateGroup, json_option, stack
from blade.cli.output import notice
from blade.errors import UsageError
from blade.hostile import line, lines

if TYPE_CHECKING:
    from blade_eval.catalogue import Component, Entry

TYPES = ("benchmarks", "environments", "agents", "models", "resources-servers")
_ENTRIES = TYPES[:2]  # the others are components
NAME = click.argument("name", metavar="[NAME]", required=False)
SHARED = stack(SEARCH_DIR, json_option())
_BESIDE = 44  # columns that a description needs to stand beside the rest
_HEADS = ["name", "domain", "agent", "verifier", "repeats"]


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
        return _inspect(name, _listed("environments", search_dirs), "benchmark", as_json)
    wanted = [entry for entry in _listed("benchmarks", search_dirs) if domain in (None, entry.domain)]
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
    entries = _listed("environments", search_dirs)
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
        components = _listed(kind, search_dirs)
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
    hits = ranked(query, _listed(kind, search_dirs))
    if hits.found and not hits.all_words and not as_json:
        notice("nothing has all of these words; these have some", "notice")
    if not hits.found and not as_json:
        click.echo(f"no {kind} match {query!r}", err=True)
    _print(hits.found, kind, as_json, by_category=False)


def _listed(kind: str, search_dirs: tuple[str, ...]) -> Sequence[Any]:
    """All of a kind: benchmarks alone, environments with the benchmarks, or components such as agents."""
    from blade_eval.catalogue import components, entries
    from blade_eval.config import roots

    places = roots(search_dirs)
    if kind in _ENTRIES:
        return entries(places, "benchmark" if kind == "benchmarks" else None)
    return components(kind, places)


def _warn_unreadable(items: Sequence[Any]) -> None:
    """Name definitions of which not everything could be read."""
    broken = [item for item in items if item.trouble]
    for item in broken[:3]:
        notice(f"{item.name}: {item.trouble}", "notice")
    if len(broken) > 3:
        notice(f"{len(broken) - 3} more cannot be read in full", "notice")


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
    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else page_of(document))


def _print(items: Sequence[Any], kind: str, as_json: bool, by_category: bool = True) -> None:
    _warn_unreadable(items)
    if as_json:
        click.echo(json.dumps([item.as_json() for item in items], indent=2, ensure_ascii=False))
        return
    text = entry_lines(items, by_category) if kind in _ENTRIES else component_lines(items)
    if text:
        click.echo(text)
    if by_category:
        noun = kind.replace("-", " ")
        click.echo(f"{len(items)} {noun if len(items) != 1 else noun.removesuffix('s')}", err=True)


# ---- Lines that fit the terminal -------------------------------------------------------------------


def width() -> int:
    """The terminal's columns, at least 60; 100 where the output goes to a file or a pipe."""
    return max(60, shutil.get_terminal_size((100, 24)).columns)


def entry_lines(items: Sequence[Entry], by_category: bool) -> str:
    """Name, domain, agent, verifier and repeats on a line, the description beside or below."""
    from blade_eval.catalogue import CATEGORIES

    heads = _HEADS
    rows = [
        [line(item.name), item.domain or "-", item.agent or "-", item.verifier or "-", str(item.num_repeats or "-")]
        for item in items
    ]
    texts = [item.description or "" for item in items]
    widths = _widths([heads, *rows])
    if sum(widths) + 2 * len(widths) > width():  # agent and verifier go down to the description
        texts = [f"{row[2]}, {row[3]}: {text}" for row, text in zip(rows, texts, strict=True)]
        heads, rows = [heads[n] for n in (0, 1, 4)], [[row[n] for n in (0, 1, 4)] for row in rows]
        widths = _widths([heads, *rows])
    beside = sum(widths) + 2 * len(widths) + _BESIDE <= width()
    page = [_row(heads, widths, "description" if beside else "")] if items else []
    for category in CATEGORIES if by_category else [""]:
        chosen = [n for n, item in enumerate(items) if not by_category or item.category == category]
        page += ["", category[:1].upper() + category[1:]] if by_category and chosen else []
        page += [_row(rows[n], widths, texts[n]) for n in chosen]
    return "\n".join(page)


def _widths(rows: list[list[str]]) -> list[int]:
    return [min(40, max(map(len, column))) for column in zip(*rows, strict=True)]


def component_lines(items: Sequence[Component]) -> str:
    """Name and domain on a line, the description beside or below."""
    rows = [[line(item.name), line(item.domain or "")] for item in items]
    rows = rows if any(row[1] for row in rows) else [row[:1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ((item.description or "").split("\n")[0] for item in items)
    return "\n".join(_row(row, widths, text) for row, text in zip(rows, texts, strict=True))


def _row(cells: Sequence[str], widths: Sequence[int], description: str) -> str:
    start = "  ".join(f"{line(cell, size):<{size}}" for cell, size in zip(cells, widths, strict=True))
    text, room = line(description), width()
    if text and len(start) + 2 + _BESIDE <= room:
        return f"{start}  {line(text, room - len(start) - 2)}"
    start = start.rstrip()
    if len(start) > room:
        start = textwrap.fill(", ".join(map(line, cells)), room, subsequent_indent="  ")
    indent = "    "
    below = textwrap.fill(text, room, initial_indent=indent, subsequent_indent=indent, max_lines=2, placeholder=" …")
    return f"{start}\n{below}" if text else start


def page_of(document: dict[str, Any]) -> str:
    """One component: what it is, how to choose it, and what to reproduce."""
    from blade_eval.catalogue import CRITERIA

    page = [f"{line(document['name'])} ({document['type']})", ""]
    if document["description"]:
        page += ["\n".join(textwrap.fill(part, width()) for part in lines(document["description"]).splitlines()), ""]
    facts = {"category": document.get("category"), "domain": document["domain"], **document["details"]}
    page += [_fact(key, str(value)) for key, value in facts.items() if value]
    if "choose" in document:
        choose = document["choose"]
        page += ["", "How to choose", *(_fact(name, choose.get(key, "not known")) for key, name in CRITERIA.items())]
    if document.get("published"):
        page += ["", "Reproduce before trusting it", *(_fact("-", _published(row), 2) for row in document["published"])]
    if document["usage_example"]:
        page += ["", "Use", f"  {line(document['usage_example'])}"]
    return "\n".join(page)


def _published(row: dict[str, str]) -> str:
    first = [row[key] for key in ("model", "result") if row.get(key)]
    rest = [f"{key}: {value}" for key, value in row.items() if key not in ("model", "result") and value]
    return "; ".join([": ".join(first), *rest] if first else rest)


def _fact(key: str, value: str, indent: int = 22) -> str:
    head = f"{key} " if indent == 2 else f"  {key:<{indent - 2}}"
    return textwrap.fill(
        line(value), width(), initial_indent=head, subsequent_indent=" " * indent, break_on_hyphens=False
    )
