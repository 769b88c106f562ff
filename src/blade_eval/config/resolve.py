"""Merge definitions, inherit, fill in, and check: from what was asked to what it says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade_eval.config.config_nouns import (
    KINDS,
    RESERVED,
    UNSET,
    Asked,
    Dataset,
    Keys,
    Level,
    Problem,
    Resolved,
    Server,
    Tree,
    is_open,
    walk,
)
from blade_eval.config.directives import (
    Applied,
    Override,
    applied,
    as_tree,
    change,
    new,
    nowhere,
    parsed,
    there,
    unread,
)
from blade_eval.config.secret import hidden, names_secret, without
from blade_eval.config.sources import (
    Document,
    candidates,
    chained,
    component_file,
    included,
    lines_of,
    loaded,
    roots,
    shadowed,
)

# What the flags of the model are called in the configuration, and in the environment of other tools.
POLICY = {
    "policy_base_url": ("--model-url", "OPENAI_BASE_URL"),
    "policy_api_key": ("--model-api-key", "OPENAI_API_KEY"),
    "policy_model_name": ("--model", "OPENAI_MODEL"),
}
_NEEDS = "needs {}, which is not set"
_MOST_FILLED = 5_000_000  # characters that all ${...} together may mean; a value counts as some
_VALUE = 200


def resolved(asked: Asked) -> Resolved:
    """The merged configuration. What cannot be read is raised; all else that is wrong is in `problems`."""
    try:
        return _resolved(asked)
    except RecursionError:
        raise UsageError(
            "the configuration nests too deep, or one of its values does",
            "write it flatter; nothing was merged",
            "bad-config-value",
        ) from None


def _resolved(asked: Asked) -> Resolved:
    environ = os.environ if asked.environ is None else asked.environ
    folder = Path.cwd() if asked.folder is None else asked.folder
    under = roots(asked.search_dirs, environ, folder)
    overrides = [parsed(given) for given in asked.overrides]
    env_file = folder / "env.yaml"
    ours: list[Document] = [(env_file.resolve(), loaded(env_file))] if env_file.is_file() else []
    starts, problems = _starts(asked, overrides, ours, under)
    documents, told = chained(starts, under)
    documents += ours
    raw, more = _merged(documents, overrides)
    problems = [*problems, *told, *more]
    raw.pop("config_paths", None)
    _from_environment(raw, environ)
    done = applied(raw, _merge)
    for override in overrides:
        if not override.deep:
            continue
        _merge({}, as_tree(override), f"the override of {'.'.join(override.keys)}")  # can it be used
        known = override.new or override.removes or there(done.tree, override.keys)
        problems += [] if known else [new(override, done.tree)]
        if not change(done.tree, override):
            problems.append(nowhere(override, done.tree))
    problems += unread(overrides, raw, done.tree)
    places = Places([path for path, _ in documents], done, [override.keys for override in overrides])
    tree, unfilled = _filled(done.tree)
    problems += [places.at(problem) for problem in [*done.problems, *unfilled]]
    found, wrong = found_servers(tree, places.where)
    made, wrong_data = found_datasets(found, under, places.where)
    wrong = [*wrong, *references(found), *self_judged(found), *wrong_data, *_left_over(tree), *_unset(tree)]
    problems += [places.at(problem) for problem in wrong]
    files = tuple(path for path, _ in documents)
    return Resolved(tree, tuple(found), tuple(made), tuple(dict.fromkeys(problems)), files, under)


def _starts(
    asked: Asked, overrides: list[Override], ours: list[Document], under: Sequence[Path]
) -> tuple[list[Path], list[Problem]]:
    """The files that were asked for by name or path; else those that env.yaml names."""
    problems: list[Problem] = []
    starts: list[Path] = []
    kinds = {
        "model type": asked.model_types,
        "resources server": asked.resources_servers,
        "environment": asked.environments,
        "benchmark": asked.benchmarks,
    }
    for kind, names in kinds.items():
        for name in names:
            path = component_file(kind, name, under)
            starts.append(path)
            relative = next(path.relative_to(root) for root in under if path.is_relative_to(root))
            _tell_shadow(str(relative), under, problems)
    given = list(asked.paths)
    for override in overrides:
        if override.keys == ("config_paths",):
            given += included(Path("the command line"), {"config_paths": override.value})
    if not starts and not given:
        given = [entry for path, tree in ours for entry in included(path, tree)]
    for entry in given:
        direct = Path(entry) if asked.folder is None else asked.folder / entry
        if direct.is_file():
            starts.append(direct)
            continue
        there = [path for path in candidates(entry, under) if path.is_file()]
        if not there:
            looked = ", ".join(str(root) for root in under)
            hint = "check the spelling; paths are relative to this folder or to a root (--search-dir)"
            raise UsageError(f"{entry} was not found under {looked}", hint, "no-config-file")
        starts.append(there[0])
        _tell_shadow(entry, under, problems)
    return starts, problems


def _tell_shadow(relative: str, under: Sequence[Path], problems: list[Problem]) -> None:
    there = list(dict.fromkeys(path.resolve() for path in candidates(relative, under) if path.is_file()))
    if len(there) > 1:
        problems.append(shadowed(relative, there))


def _merge(low: Tree, high: Tree, whose: str = "what inherits") -> Tree:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        both = OmegaConf.merge(OmegaConf.create(low), OmegaConf.create(high))
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        for keys, value, why in _unusable(high):
            hint = "write a literal ${ as \\${, and of values only text, numbers, true, false and null"
            shown = _unused(keys, value, why)
            raise UsageError(
                f"{whose}: {'.'.join(keys)} cannot be used, {shown}", hint, "bad-config-value"
            ) from None
        clash = next(_clashes(low, high), None)
        why = f"{'.'.join(clash)} is a list in one and a mapping in the other" if clash else str(error)
        why = hidden({"low": low, "high": high, "told": why.splitlines()[0]})["told"]
        raise UsageError(
            f"{whose} does not merge with what it overrides: {why}",
            "give the key the same form in both, or take it away with _delete_key first",
            "config-does-not-merge",
        ) from None
    plain: Any = OmegaConf.to_container(both, resolve=False)
    return dict(plain)


def _unusable(tree: Tree) -> Iterator[tuple[Keys, Any, str]]:
    """Values that omegaconf does not take, such as text with an unfinished ${."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for path, value in walk(tree):
        if not isinstance(value, dict | list):
            try:
                OmegaConf.create({"value": value})
            except (OmegaConfBaseException, ValueError, TypeError) as error:
                yield path, value, str(error).splitlines()[0]


def _unused(keys: tuple[str, ...], value: Any, why: str) -> str:
    """A value that cannot be used, and why; not one that may be a secret, which the reason quotes as well."""
    if any(names_secret(key) for key in keys):
        return "and is not shown, for its name is that of a secret"
    return f"{without(str(value), ())[:80]!r}: {without(why, ())}"


def _clashes(low: Any, high: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a list meets a mapping."""
    if isinstance(low, dict) and isinstance(high, dict):
        for key in low.keys() & high.keys():
            yield from _clashes(low[key], high[key], (*above, str(key)))
    elif {type(low), type(high)} == {list, dict}:
        yield above


def _merged(documents: list[Document], overrides: list[Override]) -> tuple[Tree, list[Problem]]:
    plain: Tree = {}
    for path, document in documents:
        plain = _merge(plain, document, str(path))
    inherited: Tree | None = None
    problems: list[Problem] = []
    for override in overrides:
        if override.keys == ("config_paths",) or override.deep:
            continue
        if not (override.new or override.removes or override.known or there(plain, override.keys)):
            inherited = applied(plain, _merge).tree if inherited is None else inherited
            if not there(inherited, override.keys):
                problems.append(new(override, {**plain, **inherited}))
        if override.removes:
            if not change(plain, override):
                problems.append(nowhere(override, plain))
        else:
            plain = _merge(plain, as_tree(override), f"the override of {'.'.join(override.keys)}")
    return plain, problems


def _from_environment(tree: Tree, environ: Mapping[str, str]) -> None:
    """The lowest layer: what no file and no flag says about the model, the environment may say."""
    for key, (_, variable) in POLICY.items():
        if tree.get(key) in (None, UNSET) and environ.get(variable):
            tree[key] = environ[variable]
    if tree.get("policy_base_url") not in (None, UNSET):
        tree.setdefault("policy_api_key", "")  # most servers on one's own machine want none


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
            raise UsageError(
                f"the configuration means more than {_MOST_FILLED:,} characters once its ${{...}} are filled in",
                "let values refer to one another less often",
                "bad-config-value",
            )

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
    keys: list[Any] = list(node.keys()) if isinstance(node, DictConfig) else list(range(len(node)))
    if len(above) > 60:
        problems.append(Problem("error", f"{'.'.join(above[:3])}… refers to itself", ".".join(above[:3])))
        return None
    values: list[Any] = []
    as_written: Any = OmegaConf.to_container(node, resolve=False)
    for key in keys:
        path, written = (*above, str(key)), as_written[key]
        spend(_VALUE)
        if written == UNSET:
            values.append(UNSET)
            continue
        try:
            value = node[key]
        except Exception as error:  # a foreign expression can fail in as many ways as there are resolvers
            spend(0)
            problems.append(_unfilled(path, str(written), error))
            values.append(written)
            continue
        values.append(_plain(value, path, problems, spend))
    return values if isinstance(node, ListConfig) else dict(zip(keys, values, strict=True))


def _unfilled(path: tuple[str, ...], written: str, error: Exception) -> Problem:
    key = ".".join(path)
    for name, (flag, variable) in POLICY.items():
        if f"${{{name}}}" in written:
            hint = f"give {flag}, or {name} in env.yaml, or {variable} in the environment"
            return Problem("model", f"{key} {_NEEDS.format(name)}", key, hint=hint)
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, RecursionError):
        why = "it refers to itself"
    if "oc.env" in written:
        return Problem(
            "unset", f"{key}: {written} is not set: {why}", key, hint="set the variable of the environment"
        )
    return Problem("error", f"{key}: {written} cannot be filled in: {why}", key)


def _unset(tree: Tree) -> Iterator[Problem]:
    """All values that still are `???`."""
    for key in (".".join(path) for path, value in walk(tree) if value == UNSET):
        name = key if key not in POLICY else f"{key} ({POLICY[key][0]})"
        level: Level = "model" if key in POLICY else "unset"
        yield Problem(level, f"{name} is not set", key, hint=f"give ++{key}=VALUE")


class Places:
    """Where a value of the merged configuration was written: the last file that has its path."""

    def __init__(self, files: Sequence[Path], done: Applied, overridden: Sequence[tuple[str, ...]]) -> None:
        self.files = list(files)
        self.overridden = overridden
        self.sources = done.sources
        self.lines: dict[Path, dict[tuple[Any, ...], int]] = {}

    def at(self, problem: Problem) -> Problem:
        """The problem with its place."""
        return (
            problem if problem.place else replace(problem, place=self.where(tuple(problem.path.split("."))))
        )

    def where(self, keys: tuple[str, ...]) -> str:
        """File and line of a path, or of the nearest one above it; or the command line, which comes last."""
        ways = self._written(keys)
        if any(way[: len(given)] == given for way in ways for given in self.overridden):
            return "command line"
        for length in range(len(keys), 0, -1):
            for path in self._written(keys[:length]):
                for file in reversed(self.files):
                    line = self._lines(file).get(path)
                    if line:
                        return f"{_short(file)}:{line}"
        return ""

    def _written(self, keys: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The path itself, then what it was inherited from."""
        ways = [keys]
        for target, source in self.sources.items():
            if keys[: len(target)] == target:
                ways.append((*source, *keys[len(target) :]))
        return ways

    def _lines(self, file: Path) -> dict[tuple[Any, ...], int]:
        if file not in self.lines:
            self.lines[file] = lines_of(file)
        return self.lines[file]


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def insist(found: Resolved) -> Resolved:
    """The configuration, if it can be run: everything that is wrong or unset in one error."""
    wrong = found.of("error", "unset", "model")
    if not wrong:
        return found
    count = "1 thing" if len(wrong) == 1 else f"{len(wrong)} things"
    shown = hidden({"config": found.tree, "told": [one.told() for one in wrong]})["told"]
    message = f"the configuration lacks or misnames {count}:\n" + "\n".join(f"  {one}" for one in shown)
    hint = "`blade env resolve` with the same arguments prints the merged configuration"
    raise UsageError(message, hint, "config-incomplete")


DATASET_TYPES = ("benchmark", "example", "train", "validation")
_DATASET_KEYS = (
    "name type jsonl_fpath prepare_script prompt_config num_repeats license source gitlab_identifier "
    "huggingface_identifier prepare_dependencies taskset agent num_repeats_add_seed start_idx end_idx"
).split()
MODEL = "policy_model"  # the model under test, by the incumbent's name

Where = Callable[[tuple[str, ...]], str]


def found_servers(tree: Tree, where: Where) -> tuple[list[Server], list[Problem]]:
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
        for path, value in walk(server.settings, (server.instance, server.kind, server.implementation)):
            kind, name = (value.get("type"), value.get("name")) if isinstance(value, dict) else (None, None)
            if kind not in KINDS or not isinstance(name, str):
                continue
            same = [other.instance for other in found if other.kind == kind]
            if name in same or is_open(name):
                continue
            key = ".".join((*path, "name"))
            if kind == "responses_api_models" and name == MODEL:
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


def found_datasets(
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
    if not (repeats is None or is_open(repeats)) and (
        not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1
    ):
        yield Problem("error", f"{at}.num_repeats is {repeats!r}, not a count from 1", f"{at}.num_repeats")
    for key in ("prepare_script", "prompt_config"):
        named = entry.get(key)
        if isinstance(named, str) and not is_open(named) and not candidates(named, roots):
            looked = ", ".join(str(root) for root in roots)
            yield Problem(
                "error", f"{at}.{key} names {named}, which was not found under {looked}", f"{at}.{key}"
            )


def _left_over(tree: Tree) -> Iterator[Problem]:
    """Directives that are still there: they came with what was inherited, which is not expanded again."""
    for path, value in walk(tree):
        if path and path[-1] in ("_inherit_from", "_copy"):
            message = f"{'.'.join(path[:-1])} has inherited {path[-1]}: {value}, which is not expanded"
            yield Problem("error", message, ".".join(path), hint="inherit from the original directly")
