"""Merge definitions, inherit, fill in, and check: from what was asked to what it says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade_eval.config import check
from blade_eval.config.chain import Document, chained, included, shadowed
from blade_eval.config.directives import UNSET, Applied, applied
from blade_eval.config.documents import lines_of, loaded
from blade_eval.config.nouns import Asked, Level, Problem, Resolved, Tree
from blade_eval.config.overrides import Override, as_tree, change, new, nowhere, parsed, there, unread
from blade_eval.config.places import candidates, named, roots
from blade_eval.config.secret import hidden, names_secret, without

# What the flags of the model are called in the configuration, and in the environment of other tools.
POLICY = {
    "policy_base_url": ("--model-url", "OPENAI_BASE_URL"),
    "policy_api_key": ("--model-api-key", "OPENAI_API_KEY"),
    "policy_model_name": ("--model", "OPENAI_MODEL"),
}
_NEEDS = "needs {}, which is not set"


def resolved(asked: Asked) -> Resolved:
    """The merged configuration. What cannot be read is raised; all else that is wrong is in `problems`."""
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
    found, wrong = check.servers(tree, places.where)
    made, wrong_data = check.datasets(found, under, places.where)
    wrong = [
        *wrong,
        *check.references(found),
        *check.self_judged(found),
        *wrong_data,
        *check.left_over(tree),
        *_unset(tree),
    ]
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
            path = named(kind, name, under)
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


def _unusable(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """Values that omegaconf does not take, such as text with an unfinished ${."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from _unusable(inner, (*above, str(key)))
        return
    try:
        OmegaConf.create({"value": value})
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        yield above, value, str(error).splitlines()[0]


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
    plain = _plain(OmegaConf.create(tree), (), problems)
    if any(_NEEDS.format("policy_base_url") in problem.message for problem in problems):
        # the key is wanted of nobody: with an address it is empty unless it is given
        problems = [one for one in problems if _NEEDS.format("policy_api_key") not in one.message]
    return plain, problems


def _plain(node: Any, above: tuple[str, ...], problems: list[Problem]) -> Any:
    from omegaconf import DictConfig, ListConfig, OmegaConf

    if isinstance(node, DictConfig):
        keys: list[Any] = list(node.keys())
    elif isinstance(node, ListConfig):
        keys = list(range(len(node)))
    else:
        return node
    if len(above) > 60:
        problems.append(Problem("error", f"{'.'.join(above[:3])}… refers to itself", ".".join(above[:3])))
        return None
    made: list[Any] = []
    as_written: Any = OmegaConf.to_container(node, resolve=False)
    for key in keys:
        path = (*above, str(key))
        written = as_written[key]
        if written == UNSET:
            made.append(UNSET)
            continue
        try:
            value = node[key]
        except Exception as error:  # a foreign expression can fail in as many ways as there are resolvers
            problems.append(_unfilled(path, str(written), error))
            made.append(written)
            continue
        made.append(_plain(value, path, problems))
    if isinstance(node, ListConfig):
        return made
    return dict(zip(keys, made, strict=True))


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


def _unset(tree: Tree) -> list[Problem]:
    found = []
    for path in check.unset(tree):
        key = ".".join(path)
        name = key if key not in POLICY else f"{key} ({POLICY[key][0]})"
        level: Level = "model" if key in POLICY else "unset"
        found.append(Problem(level, f"{name} is not set", key, hint=f"give ++{key}=VALUE"))
    return found


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
