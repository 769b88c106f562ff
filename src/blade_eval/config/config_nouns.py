"""What was asked of the configuration, and what it says once everything is merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import yaml

Tree = dict[str, Any]
Keys = tuple[str, ...]  # the path of a value
UNSET = "???"

KINDS = ("resources_servers", "responses_api_agents", "responses_api_models", "environment_servers")

_KNOWN = yaml.safe_load(Path(__file__).with_name("known_keys.yaml").read_text("utf-8"))
FLAGS: dict[str, str] = _KNOWN["flags"]
RESERVED, DATASET = (frozenset(_KNOWN[name].split()) for name in ("reserved", "dataset"))
RUN = frozenset(_KNOWN["run"].split()) | FLAGS.keys()
OPEN = ("responses_create_params", "prepare_script_args")  # of those, what stands below is for others to know

# error: it cannot work; unset: a required value is missing; model: the flags of the model give it;
# warning: it works, but hardly as meant; notice: what was done, for those who wonder
Level = Literal["error", "unset", "model", "warning", "notice"]


@dataclass(frozen=True)
class Asked:
    """Which definitions to merge: names that the roots have, and files (`paths`), which override them."""

    paths: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    resources_servers: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    search_dirs: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()  # as on the command line: key=value, +key=value, ++key=value, ~key
    environ: Mapping[str, str] | None = None  # None: the environment of the process
    folder: Path | None = None  # where relative paths and env.yaml are looked for; None: the current one

    @property
    def nothing(self) -> bool:
        """Nothing is named, not even by an override of config_paths."""
        named = any(text.lstrip("+").startswith("config_paths=") for text in self.overrides)
        names = (self.paths, self.benchmarks, self.environments, self.resources_servers, self.model_types)
        return not (named or any(names))


@dataclass(frozen=True)
class Problem:
    """One thing to tell about a configuration: what is wrong, and where it stands."""

    level: Level
    message: str
    path: str = ""  # the key path in the merged configuration
    place: str = ""  # file:line
    hint: str = ""

    def told(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.message}" + (f"; {self.hint}" if self.hint else "")


@dataclass(frozen=True)
class Server:
    """One instance: a block of the configuration that a process (or BLADE itself) serves."""

    instance: str
    kind: str  # one of KINDS
    implementation: str
    settings: Tree  # the block itself
    place: str = ""  # file:line

    def named(self, field_name: str) -> str | None:
        """The instance that a field such as `model_server` refers to."""
        reference = self.settings.get(field_name)
        name = reference.get("name") if isinstance(reference, dict) else None
        return name if isinstance(name, str) else None


@dataclass(frozen=True)
class Dataset:
    """The rows that belong to an agent: a file, and what makes it."""

    name: str
    type: str  # benchmark, example, train, validation
    agent: str | None  # the agent's instance
    resources_server: str | None  # the instance that judges
    jsonl_fpath: str | None
    prepare_script: str | None = None
    num_repeats: int = 1
    prompt_config: str | None = None
    license: str | None = None
    place: str = ""
    settings: Tree = field(default_factory=dict)  # the entry as it stands, with what has no field here


@dataclass(frozen=True)
class Resolved:
    """Everything merged. Unset values stand in the tree as `???`, unresolved ones as they were written."""

    tree: Tree
    servers: tuple[Server, ...]
    datasets: tuple[Dataset, ...]
    problems: tuple[Problem, ...]
    files: tuple[Path, ...]  # in merge order: a later one overrides an earlier one
    roots: tuple[Path, ...]

    @property
    def agents(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.kind == "responses_api_agents")

    def server(self, instance: str | None) -> Server | None:
        return next((server for server in self.servers if server.instance == instance), None)

    def of(self, *levels: Level) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level in levels)


def walk(value: Any, above: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """A value and all that stands in it, each with its path."""
    yield above, value
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from walk(inner, (*above, str(key)))


def is_open(value: Any) -> bool:
    return isinstance(value, str) and (value == UNSET or "${" in value)


def meant(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> str:
    """The hint at what may have been meant by a name, if anything is near it."""
    near = get_close_matches(name, list(known), most, cutoff)
    return f"did you mean {', '.join(near)}?" if near else ""
