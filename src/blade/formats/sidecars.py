"""Find the files that belong to a run by its naming rules, and read the small ones."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from blade.errors import Unreadable
from blade.formats import compressed, find, lines
from blade.formats.rollout_steps import parsed
from blade.model import Artifact, Benchmark, Cause, Code, ReportedNumber, Stage

_METRICS = ("aggregate_metrics", "agent_metrics", "repeat_level_metrics")
# Kind of a file beside each shard, and beside the merged run -> how its name ends.
_ENDINGS = {kind: f"_{kind}.jsonl" for kind in ("materialized_inputs", "failures")}
_ENDINGS |= {kind: f"_{kind}.json" for kind in _METRICS} | {"reward_profiling": "_reward_profiling.jsonl"}
# Of the dozens of statistics in a metrics file, those that speak of the score or its cost.
_SCORES = re.compile(
    r"^(mean|std)/reward$|^mean/\w*tokens$|pass@|majority@|accuracy|^coverage/|^num_|^repeat "
)
_BESIDE = {
    "config": ("config.yaml", "config.yml", "config.json", ".hydra/config.yaml", ".hydra/overrides.yaml"),
    "notes": ("notes.md",), "benchmark": ("blade.toml",),
}  # fmt: skip
_MANIFEST = "_manifest.json"  # what `blade eval run` writes of a run
_MAX_SMALL = 64 << 20  # a metrics file beyond this is not what its name says
_MAX_SCALARS = 100_000  # looked at in a config; aliases of YAML can make a small file endlessly wide
_SHOWN = 200  # characters of a setting
# Words of a key that bear on a score, and words that keep a key out: secrets, places, names of servers.
_BEARING = frozenset(
    "temperature top p max min limit timeout timeouts deadline budget repeats repeat model benchmark split "
    "seed effort reasoning thinking verifier judge grader scorer rubric reward threshold version revision "
    "commit image prompt instructions system tools tool harness scaffold agent retries concurrency context "
    "steps turns sampling checkpoint quantization dtype backend engine skills dataset num".split()
)
_KEPT_OUT = frozenset(
    "key token secret password passwd auth credential credentials url uri endpoint host hostname port "
    "address cache log logs logging wandb mlflow user email".split()
)
_KEY_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_BY_A_TAG = (TypeError, LookupError, AttributeError)  # what !!int and the like meet before another value

Notice = Callable[[str], None]


def artifacts(run: find.Found) -> list[Artifact]:
    """Every file that belongs to the run, those that are missing too."""
    artifacts = [Artifact("rollouts", str(path), True) for path in run.paths]
    if run.paths[0] == Path("-"):
        return artifacts
    bases = _bases(run)
    folder, manifests = run.paths[0].parent, [f"{base}{_MANIFEST}" for base in bases]
    ends = {kind: [f"{ending}{pack}" for pack in ("", ".gz", ".zst")] for kind, ending in _ENDINGS.items()}
    paths_of = {kind: [f"{base}{end}" for base in bases for end in ends[kind]] for kind in ends}
    paths_of |= {kind: [str(folder / name) for name in names] for kind, names in _BESIDE.items()}
    for kind, paths in paths_of.items():
        others = manifests if kind == "config" else []
        present = [Artifact(kind, path, True) for path in (*others, *paths) if Path(path).is_file()]
        artifacts += present or [Artifact(kind, paths[0], False)]
    judged = judgements(run)
    if judged is not None and judged.is_file():  # nobody misses it
        artifacts.append(Artifact("judgements", str(judged), True))
    return artifacts


def judgements(run: find.Found) -> Path | None:
    """The file that holds judgements of a run, or would; None for standard input."""
    return None if run.paths[0] == Path("-") else Path(f"{_bases(run)[-1]}_judgements.jsonl")


def _bases(run: find.Found) -> list[str]:
    """Paths without ending from which sidecar names are made: of each shard, and of the merged run."""
    bases = [str(path.parent / find.stem(path)) for path in run.paths]
    if len(run.paths) > 1:
        bases.append(str(run.paths[0].parent / find.shard_stem(run.paths[0])))
    return list(dict.fromkeys(bases))


def of_kind(artifacts: list[Artifact], kind: str) -> list[Path]:
    """The files of one kind that are there."""
    return [Path(artifact.path) for artifact in artifacts if artifact.kind == kind and artifact.present]


# -- numbers the evaluation wrote down itself ---------------------------------------------------


def reported(run: str, artifacts: list[Artifact], notice: Notice) -> list[ReportedNumber]:
    """The numbers in the metrics files of a run, of either generation."""
    numbers: list[ReportedNumber] = []
    for kind in _METRICS:
        for path in of_kind(artifacts, kind):
            entries = _entries(path, notice)
            of_path = [
                ReportedNumber(run, path.name, _agent(entry), name, float(value))
                for entry in entries
                for name, value in _flat(kind, entry).items()
                if _is_number(value) and _SCORES.search(name)
            ]
            if entries and not of_path:
                notice(f"{path.name} holds no number that speaks of the score")
            numbers += of_path
    for path in of_kind(artifacts, "reward_profiling"):
        numbers += _of_profile(run, path, notice)
    return numbers


def _entries(path: Path, notice: Notice) -> list[Mapping[str, Any]]:
    try:
        data = json.loads(_content(path))
        if not isinstance(data, list | dict):
            raise ValueError("neither a list nor an object")
    except (OSError, ValueError, RecursionError) as error:
        notice(f"{path.name} could not be read: {error}")
        return []
    listed = data if isinstance(data, list) else [data]
    entries = [entry for entry in listed if isinstance(entry, Mapping)]
    if len(entries) < len(listed):
        notice(f"{len(listed) - len(entries)} entries of {path.name} are no objects; passed over")
    return entries


def _content(path: Path, limit: int = _MAX_SMALL) -> bytes:
    """A small file, inflated if need be."""
    content = bytearray()
    with path.open("rb") as file:
        for chunk in compressed.inflated(file, compressed.kind_of(file.peek(4))):
            if isinstance(chunk, str):
                raise ValueError(chunk)
            content += chunk
            if len(content) > limit:
                raise ValueError(f"it is larger than {limit:,} bytes")
    return bytes(content)


def _agent(entry: Mapping[str, Any]) -> str:
    ref = entry.get("agent_ref")
    return str(ref.get("name", "")) if isinstance(ref, Mapping) else ""


def _flat(kind: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The statistics of an entry by name."""
    if kind == "repeat_level_metrics":
        repeat = entry.get("_ng_rollout_index")
        return {f"repeat {repeat}/{key}": entry.get(key) for key in ("mean/reward", "std/reward")}
    if kind == "agent_metrics":
        return entry
    groups = [entry.get(group) for group in ("agent_metrics", "key_metrics")]
    return {name: value for group in groups if isinstance(group, Mapping) for name, value in group.items()}


def _of_profile(run: str, path: Path, notice: Notice) -> Iterator[ReportedNumber]:
    """The mean over tasks that the profile implies, and its counts."""
    means: dict[str, list[float]] = defaultdict(list)
    rollouts: dict[str, float] = defaultdict(float)
    try:
        for block in lines.stream_blocks(path):  # it holds a sample of every task and so may be large
            if block.broken or block.too_long:
                raise ValueError(block.broken or "a line is too long")
            for entry, why in map(parsed, filter(None, map(bytes.strip, block.data.split(b"\n")))):
                if entry is None:
                    raise ValueError(why)
                if _is_number(entry.get("mean/reward")):
                    means[_agent(entry)].append(float(entry["mean/reward"]))
                    count: Any = entry.get("num_rollouts")
                    rollouts[_agent(entry)] += float(count) if _is_number(count) else 0.0
    except (OSError, ValueError, Unreadable) as error:
        notice(f"{path.name} could not be read: {error}")
        return
    if not means:
        notice(f"{path.name} holds no number")
    for agent, values in means.items():
        mean = math.fsum(values) / len(values)
        yield ReportedNumber(run, str(path), agent, "mean over tasks of mean/reward", mean)
        yield ReportedNumber(run, path.name, agent, "tasks", float(len(values)))
        if rollouts[agent]:
            yield ReportedNumber(run, path.name, agent, "num_rollouts", rollouts[agent])


def _is_number(value: Any) -> bool:
    # a whole number beyond a double has no float either
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


# -- configuration beside the run ---------------------------------------------------------------


def settings(artifacts: list[Artifact], notice: Notice) -> dict[str, str]:
    """The few settings of a config file that bear on a score; everything else, secrets too, stays there."""
    chosen: dict[str, str] = {}
    for path in of_kind(artifacts, "config"):
        for key, value in islice(_scalars(_config(path, notice)), _MAX_SCALARS):
            *_, above, tail = ["", *key.split(".")]
            words = {word.lower() for word in _KEY_WORDS.findall(tail)}
            if not words & _KEPT_OUT and (words & _BEARING or (above, tail) == ("skills", "path")):
                text = str(value)
                folders = re.split(r"[/\\\\]", text)
                if len(folders) > 3 and (text[:1] in "/~" or text[1:3] in (":\\", ":/")):
                    text = "…/" + "/".join(folders[-2:])  # those above tell of a machine and its user, not of the run
                chosen.setdefault(f"{path.name}: {key}"[:_SHOWN], text[:_SHOWN])
            if len(chosen) >= 60:
                return chosen
    return chosen


def _config(path: Path, notice: Notice) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # plain values only, nothing is made or run
    try:
        text = _content(path, 4 << 20).decode("utf-8", "replace")
        data = json.loads(text) if path.suffix == ".json" else yaml.load(text, loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError, *_BY_A_TAG) as error:
        notice(f"{path.name} could not be read: {(str(error).splitlines() or ['no reason given'])[0]}")
        return None
    if path.name.endswith(_MANIFEST) and isinstance(data, Mapping):
        return {name: data[name] for name in ("identity", "config", "seeds") if name in data}  # not its sittings
    return data


def _scalars(value: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if depth > 8:  # aliases of YAML can make a small file endlessly deep
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _scalars(inner, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif isinstance(value, list):
        for inner in value[:50]:
            if isinstance(inner, str) and "=" in inner:  # an override line of Hydra
                key, _, text = inner.lstrip("+").partition("=")
                yield key, text
    elif isinstance(value, str | int | float | bool):
        yield prefix, value


def notes(artifacts: list[Artifact], named: Path | None) -> tuple[str, ...]:
    """What people wrote down beside the run."""
    texts = []
    for path in [named] if named is not None else of_kind(artifacts, "notes"):
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                texts.append(file.read(20_000).strip())
        except OSError as error:
            if named is not None:
                hint = "give a readable text file with --notes"
                raise Unreadable(f"cannot read {path}: {error.strerror}", hint, "unreadable-file") from error
            texts.append(f"{path.name} could not be read: {error.strerror}")
    return tuple(text for text in texts if text)


# -- blade.toml ---------------------------------------------------------------------------------

_KINDS: dict[Any, str] = {str: "a text", list: "a list", bool: "true or false", dict: "a table", float: "a number"}
_ANY = object
# What `blade.toml` and its tables may say. `sharing` is read where something leaves the house.
_KEYS: dict[str, dict[str, Any]] = {
    "": {"name": str, "pass_threshold": float, "task_id": str, "answer": str, "stages": list, "slices": list,
         "tools": dict, "codes": list, "sharing": dict},
    "stage": {"name": str, "field": str, "equals": _ANY, "at_least": float, "present": bool},
    "code": {"field": str, "equals": _ANY, "cause": _ANY, "mode": str},
}  # fmt: skip
_DOES = ("read", "write", "check")  # what a tool may be said to do
_CAUSES = (*(str(cause) for cause in Cause), "passed")  # what a code may be said to mean


def benchmark(artifacts: list[Artifact]) -> Benchmark:
    """What `blade.toml` beside the run says; without one, the name that the run's manifest has for it."""
    paths = of_kind(artifacts, "benchmark")
    if not paths:
        return Benchmark(name=_evaluated(artifacts))
    path = paths[0]
    try:
        data = _table("", tomllib.loads(path.read_text(encoding="utf-8")))
        if not all(isinstance(name, str) for name in data.get("slices", ())):
            raise TypeError("slices must be a list of texts")
        for tool, does in data.get("tools", {}).items():
            if does not in _DOES:
                raise TypeError(f"the tool {tool} must be one of {', '.join(_DOES)}")
        lists: dict[str, Callable[[Any], Any]] = {"stages": _stage, "slices": str, "codes": _code}
        data |= {key: tuple(map(entry, data.get(key, ()))) for key, entry in lists.items()}
        data["name"] = data.get("name") or _evaluated(artifacts)
        return Benchmark(**{key: value for key, value in data.items() if key != "sharing"}, path=str(path))
    except (OSError, ValueError, TypeError, KeyError) as error:
        hint = "compare it with the output of `blade init RUN`"
        raise Unreadable(f"{path} is not a benchmark file: {error}", hint, "bad-config") from error


def _evaluated(artifacts: list[Artifact]) -> str | None:
    """The benchmark that a manifest says was run; None where it says none, or several."""
    names = set()
    for path in of_kind(artifacts, "config"):
        for manifest in _entries(path, lambda _: None) if path.name.endswith(_MANIFEST) else ():
            datasets = manifest.get("datasets")
            for dataset in datasets if isinstance(datasets, list) else ():
                if isinstance(dataset, Mapping) and dataset.get("name"):
                    names.add(str(dataset["name"])[:_SHOWN])
    return names.pop() if len(names) == 1 else None


def _table(which: str, data: Any) -> dict[str, Any]:
    """A table whose keys and values are what they must be, every number a float."""
    if not isinstance(data, dict):
        raise TypeError(f"a {which} must be a table")
    kinds = _KEYS[which]
    if unknown := sorted(data.keys() - kinds):
        raise KeyError(f"there is no key {unknown[0]}") if not which else TypeError(f"a {which} has no key {unknown[0]!r}")
    for key, value in data.items():
        is_fit = _is_number(value) if kinds[key] is float else isinstance(value, kinds[key])
        if not is_fit:
            raise TypeError(f"{key} must be {_KINDS[kinds[key]]}")
    return {key: float(value) if kinds[key] is float else value for key, value in data.items()}


def _stage(entry: Any) -> Stage:
    stage = _table("stage", entry)
    if not stage.get("name") or not stage.get("field"):
        raise TypeError("a stage needs a name and a field")
    return Stage(**stage)


def _code(entry: Any) -> Code:
    code = _table("code", entry)
    if not code.get("field") or not code.get("mode") or "equals" not in code:
        raise TypeError("a code needs a field, what it equals, a cause and a mode")
    if not isinstance(code["equals"], str | bool | int | float):
        raise TypeError("equals of a code must be a text, a number, true or false")
    if code.get("cause") not in _CAUSES:
        raise TypeError(f"the cause of a code must be one of {', '.join(_CAUSES)}")
    return Code(**code)
