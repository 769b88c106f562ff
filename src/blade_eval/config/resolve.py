"""Merge definitions, inherit, fill in, and check: from what was asked to what it says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade_eval.config import config_nouns as nouns
from blade_eval.config import directives, sources
from blade_eval.config.config_nouns import (
    KINDS,
    UNSET,
    Asked,
    Dataset,
    Keys,
    Level,
    Problem,
    Resolved,
    Server,
    Tree,
)
from blade_eval.config.directives import NOWHERE, Applied, Override, there
from blade_eval.config.secret import hidden, names_secret, without
from blade_eval.config.sources import Document, candidates, included

# What the flags of the model are called in the configuration, and in the environment of other tools.
POLICY = {
    "policy_base_url": ("--model-url", "OPENAI_BASE_URL"),
    "policy_api_key": ("--model-api-key", "OPENAI_API_KEY"),
    "policy_model_name": ("--model", "OPENAI_MODEL"),
}
_NEEDS = "needs {}, which is not set"
_MOST_FILLED = 5_000_000  # characters that all ${...} together may mean; a value counts as some
_VALUE = 200


def resolved(wish: Asked) -> Resolved:
    """The merged configuration. What cannot be read is raised; all else that is wrong is in `problems`."""
    try:
        return _resolved(wish)
    except RecursionError:
        what = "the configuration nests too deep, or one of its values does"
        raise UsageError(what, "write it flatter; nothing was merged", "bad-config-value") from None


def _resolved(wish: Asked) -> Resolved:
    environ = os.environ if wish.environ is None else wish.environ
    folder = Path.cwd() if wish.folder is None else wish.folder
    under = sources.roots(wish.search_dirs, environ, folder)
    overrides = [directives.parsed(text) for text in wish.overrides]
    env_file = folder / "env.yaml"
    ours: list[Document] = [(env_file.resolve(), sources.loaded(env_file))] if env_file.is_file() else []
    starts, problems = _starts(wish, overrides, ours, under)
    documents, more = sources.chained(starts, under)
    documents += ours
    problems += more
    raw = _merged(documents, overrides, problems)
    raw.pop("config_paths", None)
    # the lowest layer: what no file and no flag says about the model, the environment may say
    for key, (_, variable) in POLICY.items():
        if raw.get(key) in (None, UNSET) and environ.get(variable):
            raw[key] = environ[variable]
    if raw.get("policy_base_url") not in (None, UNSET):
        raw.setdefault("policy_api_key", "")  # most servers on one's own machine want none
    done = Applied(raw, _merge)
    for override in filter(lambda override: override.deep, overrides):
        _merge({}, override.tree, override.whose)  # can it be used
        if not (override.new or override.removes or there(done.tree, override.keys)):
            problems.append(directives.unplaced(override, done.tree))
        if not directives.change(done.tree, override):
            problems.append(directives.unplaced(override, done.tree, NOWHERE))
    problems += directives.unread(overrides, raw, done.tree)
    places = Places([path for path, _ in documents], done, [override.keys for override in overrides])
    tree, unfilled = _filled(done.tree)
    servers, wrong = found_servers(tree, places.where)
    datasets, wrong_data = _datasets(servers, under, places.where)
    wrong += [*references(servers), *self_judged(servers), *wrong_data, *_left_over(tree)]
    problems += map(places.at, [*done.problems, *unfilled, *wrong])
    files = tuple(path for path, _ in documents)
    return Resolved(tree, tuple(servers), tuple(datasets), tuple(dict.fromkeys(problems)), files, under)


def _starts(
    wish: Asked, overrides: list[Override], ours: list[Document], under: Sequence[Path]
) -> tuple[list[Path], list[Problem]]:
    """The files that were asked for by name or path; else those that env.yaml names."""
    problems: list[Problem] = []
    starts: list[Path] = []
    for kind in ("model type", "resources server", "environment", "benchmark"):
        names = getattr(wish, f"{kind.replace(' ', '_')}s")
        for path in (sources.component_file(kind, name, under) for name in names):
            starts.append(path)
            root = next(root for root in under if path.is_relative_to(root))
            sources.first_file(path.relative_to(root), under, problems)
    entries = list(wish.paths)
    for override in overrides:
        if override.keys == ("config_paths",):
            entries += included(Path("the command line"), {"config_paths": override.value})
    if not starts and not entries:
        entries = [entry for path, tree in ours for entry in included(path, tree)]
    for entry in entries:
        direct = Path(wish.folder or "", entry)
        start = direct if direct.is_file() else sources.first_file(entry, under, problems)
        if start is None:
            hint = "check the spelling; paths are relative to this folder or to a root (--search-dir)"
            raise sources.not_found(entry, under, hint)
        starts.append(start)
    return starts, problems


def _merge(low: Tree, high: Tree, whose: str = "what inherits") -> Tree:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    unusable = (OmegaConfBaseException, ValueError, TypeError)
    try:
        both = OmegaConf.merge(OmegaConf.create(low), OmegaConf.create(high))
    except unusable as error:
        for keys, value in nouns.walk(high):
            try:
                OmegaConf.create({"value": None if isinstance(value, dict | list) else value})
            except unusable as reason:  # such as text with an unfinished ${
                hint = "write a literal ${ as \\${, and of values only text, numbers, true, false and null"
                shown = f"{without(str(value), ())[:80]!r}: {without(str(reason).splitlines()[0], ())}"
                if any(map(names_secret, keys)):  # the reason quotes it as well
                    shown = "and is not shown, for its name is that of a secret"
                what = f"{whose}: {'.'.join(keys)} cannot be used, {shown}"
                raise UsageError(what, hint, "bad-config-value") from None
        clash = next(_clashes(low, high), None)
        why = f"{'.'.join(clash)} is a list in one and a mapping in the other" if clash else str(error)
        why = hidden({"low": low, "high": high, "why": why.splitlines()[0]})["why"]
        raise UsageError(
            f"{whose} does not merge with what it overrides: {why}",
            "give the key the same form in both, or take it away with _delete_key first", "config-does-not-merge",
        ) from None  # fmt: skip
    plain: Any = OmegaConf.to_container(both, resolve=False)
    return dict(plain)


def _clashes(low: Any, high: Any, above: Keys = ()) -> Iterator[Keys]:
    if isinstance(low, dict) and isinstance(high, dict):
        for key in low.keys() & high.keys():
            yield from _clashes(low[key], high[key], (*above, str(key)))
    elif {type(low), type(high)} == {list, dict}:
        yield above


def _merged(documents: list[Document], overrides: list[Override], problems: list[Problem]) -> Tree:
    plain: Tree = {}
    for path, document in documents:
        plain = _merge(plain, document, str(path))
    inherited: Tree | None = None
    for override in overrides:
        if override.keys == ("config_paths",) or override.deep:
            continue
        if not (override.new or override.removes or override.known or there(plain, override.keys)):
            inherited = Applied(plain, _merge).tree if inherited is None else inherited
            if not there(inherited, override.keys):
                problems.append(directives.unplaced(override, {**plain, **inherited}))
        if not override.removes:
            plain = _merge(plain, override.tree, override.whose)
        elif not directives.change(plain, override):
            problems.append(directives.unplaced(override, plain, NOWHERE))
    return plain


def _filled(tree: Tree) -> tuple[Tree, list[Problem]]:
    """Every `${...}` as its value; what cannot be filled in stays as written, and is told."""
    from omegaconf import OmegaConf

    problems: list[Problem] = []
    with _bounded() as spent:
        plain = _plain(OmegaConf.create(tree), (), problems, spent)
    if any(_NEEDS.format("policy_base_url") in problem.message for problem in problems):
        # the key is wanted of nobody: with an address it is empty unless it is given
        problems = [problem for problem in problems if _NEEDS.format("policy_api_key") not in problem.message]
    return plain, problems


@contextmanager
def _bounded() -> Iterator[Callable[[int], None]]:
    """Count what the values mean once filled in: each ${x}${x} doubles it, and omegaconf knows no bound."""
    from omegaconf.base import Container

    original: Any = Container._resolve_node_interpolation
    size = 0

    def spend(amount: int) -> None:
        nonlocal size
        size += amount
        if size > _MOST_FILLED:
            what = f"the configuration means more than {_MOST_FILLED:,} characters once its ${{...}} are filled in"
            raise UsageError(what, "let values refer to one another less often", "bad-config-value")

    def counted(self: Any, *args: Any, **named: Any) -> Any:
        node = original(self, *args, **named)
        text = node._value() if node is not None else None
        spend(_VALUE + (len(text) if isinstance(text, str) else 0))
        return node

    Container._resolve_node_interpolation = counted  # type: ignore[method-assign]
    try:
        yield spend
    finally:
        Container._resolve_node_interpolation = original  # type: ignore[method-assign]


def _plain(node: Any, above: Keys, problems: list[Problem], spend: Callable[[int], None]) -> Any:
    from omegaconf import DictConfig, ListConfig, OmegaConf

    if not isinstance(node, DictConfig | ListConfig):
        return node
    if len(above) > 60:
        problems.append(Problem("error", f"{'.'.join(above[:3])}… refers to itself", ".".join(above[:3])))
        return None
    as_written: Any = OmegaConf.to_container(node, resolve=False)
    keys: list[Any] = list(node.keys()) if isinstance(node, DictConfig) else list(range(len(node)))
    values: list[Any] = []
    for key in keys:
        path, value = (*above, str(key)), as_written[key]
        spend(_VALUE)
        if value != UNSET:
            try:
                inner = node[key]
            except Exception as error:  # a foreign expression can fail in as many ways as there are resolvers
                spend(0)  # or because too much was spent
                problems.append(_unfilled(".".join(path), str(value), error))
            else:
                value = _plain(inner, path, problems, spend)
        values.append(value)
    return values if isinstance(node, ListConfig) else dict(zip(keys, values, strict=True))


def _unfilled(key: str, written: str, error: Exception) -> Problem:
    for name, (flag, variable) in POLICY.items():
        if f"${{{name}}}" in written:
            hint = f"give {flag}, or {name} in env.yaml, or {variable} in the environment"
            return Problem("model", f"{key} {_NEEDS.format(name)}", key, hint=hint)
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, RecursionError):
        why = "it refers to itself"
    if "oc.env" in written:
        hint = "set the variable of the environment"
        return Problem("unset", f"{key}: {written} is not set: {why}", key, hint=hint)
    return Problem("error", f"{key}: {written} cannot be filled in: {why}", key)


class Places:
    """Where a value of the merged configuration was written: the last file that has its path."""

    def __init__(self, files: Sequence[Path], done: Applied, overridden: Sequence[Keys]) -> None:
        self._overridden, self._sources = overridden, done.sources
        self._files = list(reversed(files))
        self._lines = cache(sources.lines_of)

    def at(self, problem: Problem) -> Problem:
        return problem if problem.place else replace(problem, place=self.where(tuple(problem.path.split("."))))

    def where(self, keys: Keys) -> str:
        """File and line of a path, or of the nearest one above it; or the command line, which comes last."""
        if any(way[: len(above)] == above for way in self._written(keys) for above in self._overridden):
            return "command line"
        for length in range(len(keys), 0, -1):
            for path in self._written(keys[:length]):
                for file in self._files:
                    if line := self._lines(file).get(path):
                        here = Path.cwd()
                        return f"{file.relative_to(here) if file.is_relative_to(here) else file}:{line}"
        return ""

    def _written(self, keys: Keys) -> list[Keys]:
        ways = ((*source, *keys[len(to) :]) for to, source in self._sources.items() if keys[: len(to)] == to)
        return [keys, *ways]


def insist(config: Resolved) -> Resolved:
    """The configuration, if it can be run: everything that is wrong or unset in one error."""
    wrong = config.of("error", "unset", "model")
    if not wrong:
        return config
    count = "1 thing" if len(wrong) == 1 else f"{len(wrong)} things"
    shown = hidden({"config": config.tree, "lines": [problem.told() for problem in wrong]})["lines"]
    message = f"the configuration lacks or misnames {count}:\n" + "\n".join(f"  {line}" for line in shown)
    hint = "`blade env resolve` with the same arguments prints the merged configuration"
    raise UsageError(message, hint, "config-incomplete")


DATASET_TYPES = ("benchmark", "example", "train", "validation")
MODEL = "policy_model"  # the model under test, by the incumbent's name

Where = Callable[[Keys], str]


def found_servers(tree: Tree, where: Where) -> tuple[list[Server], list[Problem]]:
    """The instances, and the blocks that look like one but are none."""
    servers: list[Server] = []
    problems: list[Problem] = []
    for name, block in tree.items():
        if name in nouns.RESERVED or not isinstance(block, dict):
            continue
        kinds = [kind for kind in KINDS if kind in block]
        inner = block[kinds[0]] if len(kinds) == 1 else None
        if isinstance(inner, dict) and len(inner) == 1 and isinstance(settings := next(iter(inner.values())), dict):
            (implementation,) = inner
            place = where((name, kinds[0], implementation))
            servers.append(Server(str(name), kinds[0], str(implementation), settings, place))
        else:
            problems += _almost(str(name), block, kinds)
    return servers, problems


def _almost(name: str, block: Tree, kinds: list[str]) -> Iterator[Problem]:
    if len(kinds) > 1:
        yield Problem("error", f"{name} is {' and '.join(kinds)} at once", name, hint="an instance is one of them")
    elif kinds:
        path, inner = f"{name}.{kinds[0]}", block[kinds[0]]
        if isinstance(inner, dict) and len(inner) == 1:
            ((key, value),) = inner.items()
            if value != UNSET:  # else told as unset
                yield Problem("error", f"{path}.{key} is no mapping but {value!r}", f"{path}.{key}")
        else:
            count = f"{len(inner)} implementations" if isinstance(inner, dict) else f"{inner!r}"
            hint = f"below {kinds[0]} stands one implementation, and below that its settings"
            yield Problem("error", f"{path} holds {count}", path, hint=hint)
    else:
        for key in block:
            hint = nouns.meant(str(key), KINDS, 1, 0.75)
            if hint and isinstance(block[key], dict):
                yield Problem("error", f"{name}.{key} is no kind of server", f"{name}.{key}", hint=hint)
                return


def references(servers: Sequence[Server]) -> Iterator[Problem]:
    for server in servers:
        for path, value in nouns.walk(server.settings, (server.instance, server.kind, server.implementation)):
            kind, name = (value.get("type"), value.get("name")) if isinstance(value, dict) else (None, None)
            same = sorted(other.instance for other in servers if other.kind == kind)
            if kind not in KINDS or not isinstance(name, str) or name in same or nouns.is_open(name):
                continue
            key = ".".join((*path, "name"))
            if kind == "responses_api_models" and name == MODEL:
                what = f"only {', '.join(same)} is defined" if same else "no model is chosen"
                message = f"{server.instance} needs {name} as its {'.'.join(path[3:])}, and {what}"
                yield Problem("model", message, key, hint="choose one, such as --model-type openai_model")
                continue
            hint = nouns.meant(name, same) or f"there are {', '.join(same) or 'none'}"
            kinds = [other.kind for other in servers if other.instance == name]
            what = f", which is one of {kinds[0]}" if kinds else ", which is not defined"
            yield Problem("error", f"{'.'.join(path)} refers to {kind}/{name}{what}", key, hint=hint)


def self_judged(servers: Sequence[Server]) -> Iterator[Problem]:
    """Judges that are the model whose answers they judge: it may be meant, but should be known."""
    for server in servers:
        judge = server.named("judge_model_server")
        is_used = all(server.settings.get(key) is not False for key in ("should_use_judge", "use_judge"))
        if server.kind != "resources_servers" or judge is None or not is_used:
            continue
        if judge in [user.named("model_server") for user in _users(server, servers)]:
            key = f"{server.instance}.{server.kind}.{server.implementation}.judge_model_server.name"
            message = f"the judge of {server.instance} is the model under test ({judge})"
            yield Problem("notice", message, key, hint=f"name another with ++{key}=INSTANCE")


def _users(server: Server, servers: Sequence[Server]) -> list[Server]:
    return [user for user in servers if user.named("resources_server") == server.instance]


def _datasets(
    servers: Sequence[Server], roots: Sequence[Path], where: Where
) -> tuple[list[Dataset], list[Problem]]:
    """The datasets of agents and, in newer definitions, of resources servers, and what is wrong with them."""
    datasets: list[Dataset] = []
    problems: list[Problem] = []
    for server in servers:
        above = (server.instance, server.kind, server.implementation, "datasets")
        entries = server.settings.get("datasets")
        if entries is None or entries == UNSET:
            continue
        if not isinstance(entries, list):
            problems.append(Problem("error", f"{'.'.join(above)} is no list", ".".join(above)))
            continue
        for number, entry in enumerate(entries):
            path = (*above, str(number))
            wrong = list(_wrong(entry, ".".join(path), roots))
            problems += wrong
            if not any(problem.level == "error" for problem in wrong):
                datasets.append(_dataset(entry, server, servers, where(path)))
    return datasets, problems


def _dataset(entry: Tree, server: Server, servers: Sequence[Server], place: str) -> Dataset:
    agent: str | None = server.instance
    judge = server.named("resources_server")
    if server.kind != "responses_api_agents":
        # an environment server, of newer definitions, binds an agent to a resources server from outside
        agents = [user.named("agent_server") or user.instance for user in _users(server, servers)]
        pinned = entry.get("agent")
        agent, judge = (pinned if isinstance(pinned, str) else next(iter(agents), None)), server.instance
    repeats = entry.get("num_repeats")
    names = ("jsonl_fpath", "prepare_script", "prompt_config", "license")
    texts = {name: str(entry[name]) if entry.get(name) not in (None, UNSET) else None for name in names}
    return Dataset(
        name=str(entry.get("name")), type=str(entry.get("type")), agent=agent, resources_server=judge,
        num_repeats=repeats if isinstance(repeats, int) else 1, place=place, settings=entry, **texts,
    )  # fmt: skip


def _wrong(entry: Any, name: str, roots: Sequence[Path]) -> Iterator[Problem]:
    if not isinstance(entry, dict):
        yield Problem("error", f"{name} is no mapping but {entry!r}", name)
        return
    for key in map(str, entry):
        if key not in nouns.DATASET and (hint := nouns.meant(key, nouns.DATASET, 1, 0.8)):
            yield Problem("warning", f"{name} has the key {key}", f"{name}.{key}", hint=hint)
    kind, repeats = entry.get("type"), entry.get("num_repeats")
    if kind not in DATASET_TYPES:
        hint = f"types are {', '.join(DATASET_TYPES)}"
        yield Problem("error", f"{name} has the type {kind!r}", f"{name}.type", hint=hint)
        return
    for key in ("name", "jsonl_fpath", "prepare_script")[: 3 if kind == "benchmark" else 2]:
        if entry.get(key) is None and not (key == "jsonl_fpath" and entry.get("source")):
            yield Problem("error", f"{name}, of type {kind}, has no {key}", name)
    is_count = isinstance(repeats, int) and not isinstance(repeats, bool) and repeats >= 1
    if not (repeats is None or nouns.is_open(repeats) or is_count):
        what = f"{name}.num_repeats is {repeats!r}, not a count from 1"
        yield Problem("error", what, f"{name}.num_repeats")
    for key in ("prepare_script", "prompt_config"):
        path = entry.get(key)
        if isinstance(path, str) and not nouns.is_open(path) and not candidates(path, roots):
            what = f"{name}.{key} names {path}, which was not found under {', '.join(map(str, roots))}"
            yield Problem("error", what, f"{name}.{key}")


def _left_over(tree: Tree) -> Iterator[Problem]:
    """Directives that came with what was inherited, which is not expanded again; then all values that are `???`."""
    paths = [(".".join(path), path, value) for path, value in nouns.walk(tree)]
    for key, path, value in paths:
        if path and path[-1] in ("_inherit_from", "_copy"):
            message = f"{'.'.join(path[:-1])} has inherited {path[-1]}: {value}, which is not expanded"
            yield Problem("error", message, key, hint="inherit from the original directly")
    for key in (key for key, _, value in paths if value == UNSET):
        hint, flag = f"give ++{key}=VALUE", POLICY.get(key, ("",))[0]
        level: Level = "model" if flag else "unset"
        yield Problem(level, f"{key} ({flag}) is not set" if flag else f"{key} is not set", key, hint=hint)
