"""Find the instances and datasets of a merged configuration, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from blade_eval.config.directives import UNSET
from blade_eval.config.nouns import KINDS, RESERVED, Dataset, Problem, Server, Tree
from blade_eval.config.places import candidates

DATASET_TYPES = ("benchmark", "example", "train", "validation")
_DATASET_KEYS = (
    "name type jsonl_fpath prepare_script prompt_config num_repeats license source gitlab_identifier "
    "huggingface_identifier prepare_dependencies taskset agent num_repeats_add_seed start_idx end_idx"
).split()
POLICY = "policy_model"  # the model under test, by the incumbent's name

Where = Callable[[tuple[str, ...]], str]


def servers(tree: Tree, where: Where) -> tuple[list[Server], list[Problem]]:
    """The instances, and the blocks that look like one but are none."""
    found: list[Server] = []
    problems: list[Problem] = []
    for name, block in tree.items():
        if name in RESERVED or not isinstance(block, dict):
            continue
        kinds = [kind for kind in KINDS if kind in block]
        if len(kinds) == 1 and isinstance(block[kinds[0]], dict) and len(block[kinds[0]]) == 1:
            (implementation, settings), *_ = block[kinds[0]].items()
            if isinstance(settings, dict):
                place = where((name, kinds[0], implementation))
                found.append(Server(str(name), kinds[0], str(implementation), settings, place))
                continue
        if (problem := _almost(str(name), block, kinds)) is not None:
            problems.append(problem)
    return found, problems


def _almost(name: str, block: Tree, kinds: list[str]) -> Problem | None:
    """A top-level block that was meant as an instance."""
    if len(kinds) > 1:
        return Problem(
            "error", f"{name} is {' and '.join(kinds)} at once", name, hint="an instance is one of them"
        )
    if kinds:
        inner = block[kinds[0]]
        count = f"{len(inner)} implementations" if isinstance(inner, dict) else f"{inner!r}"
        if isinstance(inner, dict) and len(inner) == 1:
            name_of = next(iter(inner))
            if inner[name_of] == UNSET:
                return None  # told as unset
            message = f"{name}.{kinds[0]}.{name_of} is no mapping but {inner[name_of]!r}"
            return Problem("error", message, f"{name}.{kinds[0]}.{name_of}")
        hint = f"below {kinds[0]} stands one implementation, and below that its settings"
        return Problem("error", f"{name}.{kinds[0]} holds {count}", f"{name}.{kinds[0]}", hint=hint)
    for key in block:
        near = get_close_matches(str(key), KINDS, 1, 0.75)
        if near and isinstance(block[key], dict):
            message = f"{name}.{key} is no kind of server"
            return Problem("error", message, f"{name}.{key}", hint=f"did you mean {near[0]}?")
    return None


def references(found: Sequence[Server]) -> Iterator[Problem]:
    """Fields that name an instance which is not there."""
    for server in found:
        for path, kind, name in _named(
            server.settings, (server.instance, server.kind, server.implementation)
        ):
            same = [other.instance for other in found if other.kind == kind]
            if name in same or name == UNSET or "${" in name:
                continue
            key = ".".join((*path, "name"))
            if kind == "responses_api_models" and name == POLICY:
                there = f"only {', '.join(sorted(same))} is defined" if same else "no model is chosen"
                message = f"{server.instance} needs {name} as its {'.'.join(path[3:])}, and {there}"
                yield Problem("model", message, key, hint="choose one, such as --model-type openai_model")
                continue
            near = get_close_matches(name, same, 3, 0.6)
            others = (
                f"did you mean {', '.join(near)}?"
                if near
                else f"there are {', '.join(sorted(same)) or 'none'}"
            )
            other = next((one for one in found if one.instance == name), None)
            told = f", which is one of {other.kind}" if other else ", which is not defined"
            yield Problem("error", f"{'.'.join(path)} refers to {kind}/{name}{told}", key, hint=others)


def self_judged(found: Sequence[Server]) -> Iterator[Problem]:
    """Judges that are the model whose answers they judge: it may be meant, but should be known."""
    for server in found:
        judge = server.named("judge_model_server")
        is_used = all(server.settings.get(key) is not False for key in ("should_use_judge", "use_judge"))
        if server.kind != "resources_servers" or judge is None or not is_used:
            continue
        users = [one for one in found if one.named("resources_server") == server.instance]
        judged = [one.named("model_server") for one in users]
        if judge in judged:
            key = f"{server.instance}.{server.kind}.{server.implementation}.judge_model_server.name"
            message = f"the judge of {server.instance} is the model under test ({judge})"
            yield Problem("notice", message, key, hint=f"name another with ++{key}=INSTANCE")


def _named(value: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    if isinstance(value, dict):
        if value.get("type") in KINDS and isinstance(value.get("name"), str):
            yield above, value["type"], value["name"]
        for key, inner in value.items():
            yield from _named(inner, (*above, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _named(inner, (*above, str(number)))


def datasets(
    found: Sequence[Server], roots: Sequence[Path], where: Where
) -> tuple[list[Dataset], list[Problem]]:
    """The datasets of agents and, in newer definitions, of resources servers, and what is wrong with them."""
    made: list[Dataset] = []
    problems: list[Problem] = []
    for server in found:
        above = (server.instance, server.kind, server.implementation, "datasets")
        entries = server.settings.get("datasets")
        if entries is None or entries == UNSET:
            continue
        if not isinstance(entries, list):
            problems.append(Problem("error", f"{'.'.join(above)} is no list", ".".join(above)))
            continue
        for number, entry in enumerate(entries):
            path = (*above, str(number))
            told = list(_wrong(entry, path, roots))
            problems += told
            if isinstance(entry, dict) and not any(one.level == "error" for one in told):
                made.append(_dataset(entry, server, found, where(path)))
    return made, problems


def _dataset(entry: Tree, server: Server, found: Sequence[Server], place: str) -> Dataset:
    agent: str | None = server.instance
    judge = server.named("resources_server")
    if server.kind != "responses_api_agents":
        users = [one for one in found if one.named("resources_server") == server.instance]
        # an environment server, of newer definitions, binds an agent to a resources server from outside
        agents = [one.named("agent_server") or one.instance for one in users]
        pinned = entry.get("agent")
        agent, judge = (pinned if isinstance(pinned, str) else next(iter(agents), None)), server.instance
    repeats = entry.get("num_repeats")
    return Dataset(
        name=str(entry.get("name")),
        type=str(entry.get("type")),
        agent=agent,
        resources_server=judge,
        jsonl_fpath=_said(entry.get("jsonl_fpath")),
        prepare_script=_said(entry.get("prepare_script")),
        num_repeats=repeats if isinstance(repeats, int) else 1,
        prompt_config=_said(entry.get("prompt_config")),
        license=_said(entry.get("license")),
        place=place,
        settings=entry,
    )


def _said(value: Any) -> str | None:
    return str(value) if value not in (None, UNSET) else None


def _wrong(entry: Any, path: tuple[str, ...], roots: Sequence[Path]) -> Iterator[Problem]:
    at = ".".join(path)
    if not isinstance(entry, dict):
        yield Problem("error", f"{at} is no mapping but {entry!r}", at)
        return
    for key in entry:
        near = get_close_matches(str(key), _DATASET_KEYS, 1, 0.8)
        if str(key) not in _DATASET_KEYS and near:
            yield Problem(
                "warning", f"{at} has the key {key}", f"{at}.{key}", hint=f"did you mean {near[0]}?"
            )
    kind = entry.get("type")
    if kind not in DATASET_TYPES:
        hint = f"types are {', '.join(DATASET_TYPES)}"
        yield Problem("error", f"{at} has the type {kind!r}", f"{at}.type", hint=hint)
        return
    needed = ("name", "jsonl_fpath", "prepare_script") if kind == "benchmark" else ("name", "jsonl_fpath")
    for key in needed:
        if entry.get(key) is None and not (key == "jsonl_fpath" and entry.get("source")):
            yield Problem("error", f"{at}, of type {kind}, has no {key}", at)
    repeats = entry.get("num_repeats", 1)
    open_yet = repeats is None or (isinstance(repeats, str) and (repeats == UNSET or "${" in repeats))
    if not open_yet and (not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1):
        yield Problem("error", f"{at}.num_repeats is {repeats!r}, not a count from 1", f"{at}.num_repeats")
    for key in ("prepare_script", "prompt_config"):
        named = entry.get(key)
        if isinstance(named, str) and named != UNSET and "${" not in named and not candidates(named, roots):
            looked = ", ".join(str(root) for root in roots)
            yield Problem(
                "error", f"{at}.{key} names {named}, which was not found under {looked}", f"{at}.{key}"
            )


def unset(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all values that still are `???`."""
    if value == UNSET:
        yield above
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from unset(inner, (*above, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unset(inner, (*above, str(number)))


def left_over(value: Any, above: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Directives that are still there: they came with what was inherited, which is not expanded again."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("_inherit_from", "_copy"):
                message = f"{'.'.join(above)} has inherited {key}: {inner}, which is not expanded"
                yield Problem(
                    "error", message, ".".join((*above, key)), hint="inherit from the original directly"
                )
            yield from left_over(inner, (*above, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from left_over(inner, (*above, str(number)))
