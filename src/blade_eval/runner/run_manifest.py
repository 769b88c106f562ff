"""Write down what a run is: command, config, versions, commit, data, seeds, and each sitting of it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from blade import __version__
from blade.errors import BladeError, Unreadable
from blade_eval.config import Dataset
from blade_eval.config.directives import value_of
from blade_eval.config.resolve import DATASET_TYPES
from blade_eval.config.secret import HIDDEN, hidden, hidden_command, names_secret, without
from blade_eval.environment import Row
from blade_eval.prepare import work

_BLOCK = 1 << 20
_GIT_S = 10.0
_OPENS = ("{", "[")
_NAME = re.compile(r"[\w-]+")
_TELLING = 8  # a shorter secret stands by chance inside other words
_PACKAGES = (
    "msgspec",
    "aiohttp",
    "omegaconf",
    "math-verify",
    "rapidfuzz",
    "jiwer",
    "sacrebleu",
    "jsonschema",
)


def new_manifest(
    *, command: Sequence[str], identity: Row, config: Row, datasets: Sequence[Row], seeds: Row, expected: int
) -> Row:
    """The manifest of a run that begins."""
    return {
        "schema_version": "1",
        "command": masked(command),
        "identity": identity,
        "datasets": list(datasets),
        "seeds": seeds,
        "expected": expected,
        "config": config,
        "counts": {},
        "sittings": [],
    }


def sitting(command: Sequence[str]) -> Row:
    """One time that somebody sat down to the run: when, by what, from which commit."""
    return {
        "status": "running",
        "command": masked(command),
        "started": now(),
        "ended": None,
        "versions": versions(),
        "git": commit(),
        "counts": {},
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_manifest(path: Path) -> Row | None:
    """The manifest of an earlier sitting; None where there is none that can be read."""
    try:
        manifest = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def write_manifest(path: Path, manifest: Row) -> None:
    """Replace the file as a whole: who reads it never sees half of it."""
    draft = path.with_name(path.name + ".tmp")
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def described_dataset(path: Path, name: str | None = None, complete: bool | None = None) -> Row:
    """What identifies the rows that were asked, and whether they are all of the benchmark's."""
    facts: Row = {"path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path)}
    return {"name": name, **facts, "complete": complete}


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """What ran: of packages those that a reward may depend on."""
    packages = {"blade": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for name in _PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return packages


def commit() -> Row | None:
    """The commit of the current folder, and whether files differ from it; None outside of git."""
    head = _git("rev-parse", "HEAD")
    if head is None:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": head.strip(), "dirty": None if changed is None else bool(changed.strip())}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None


def masked(command: Sequence[str]) -> list[str]:
    """A command line without its secrets, also where they stand inside of a value such as {api_key: …}."""
    secrets: set[str] = set()
    flat = [_unnested(word, secrets) for word in command]
    telling = [secret for secret in secrets if len(secret) >= _TELLING]
    return [without(word, telling) for word in hidden_command(flat)]


def _unnested(word: str, secrets: set[str]) -> str:
    """A word whose value is a mapping or a list, with the secrets in it hidden; others as they are."""
    name, equals, value = word.partition("=") if not word.startswith(_OPENS) else ("", "", word)
    shown = _shown_value(value, secrets)
    return word if shown == value else f"{name}{equals}{shown}"


def _shown_value(text: str, secrets: set[str]) -> str:
    bare = text.strip().strip("'\"").lstrip()
    if not bare.startswith(_OPENS):
        return text
    try:
        value = value_of(text, "")
    except (BladeError, RecursionError):  # nobody knows what is a name in it and what a secret
        return HIDDEN if any(map(names_secret, _NAME.findall(text))) else text
    shown = _hidden_in(value, secrets)
    if shown == value:
        return text
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)


def _hidden_in(value: Any, secrets: set[str]) -> Any:
    if isinstance(value, str):
        return _shown_value(value, secrets)
    shown = hidden(value, {})
    _collect(value, shown, secrets)
    return _each(shown, lambda text: _shown_value(text, secrets))


def _collect(value: Any, shown: Any, secrets: set[str]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(inner, shown.get(key), secrets)
    elif isinstance(value, list):
        for inner, other in zip(value, shown, strict=True):
            _collect(inner, other, secrets)
    elif shown == HIDDEN:
        secrets.add(str(value))


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _each(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each(inner, change) for inner in value]
    return change(value) if isinstance(value, str) else value


# -- whether it is the same run -----------------------------------------------------------------


def differences(before: Row, after: Row) -> list[str]:
    """What of a run's identity has changed, each as `what: before, now after`."""
    old, new = dict(_flat(before)), dict(_flat(after))
    return [
        f"{key}: was {_shown(old.get(key))}, now {_shown(new.get(key))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value, 1)
    else:
        yield name, value
        return
    for key, inner in pairs:
        yield from _flat(inner, f"{name}.{key}" if name else str(key))


def _shown(value: Any) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def command_line() -> list[str]:
    """What was typed, as far as the process knows."""
    return ["blade", *sys.argv[1:]]


@dataclass(frozen=True)
class Known:
    """A dataset's name, and whether its rows are all of the benchmark's; None where nobody said."""

    name: str | None
    complete: bool | None


def known(path: Path, entry: Dataset | None, notice: Callable[[str], None]) -> Known:
    """What is known of rows; those of a preparation that did not end are refused."""
    record = work.recorded(path)
    name_given = record.get("dataset")
    name = _named(entry) if entry is not None else name_given if isinstance(name_given, str) else None
    if record.get("state") == "preparing":
        raise Unreadable(
            f"{path} is being prepared, or its preparation was killed: nobody knows which rows are missing",
            "run `blade eval prepare` again, with the same --benchmark or --config",
            "rows-unfinished",
        )
    if record.get("state") != "prepared":
        return Known(name, None)
    if record.get("sha256") != sha256(path):
        notice(f"{path} is not as it was prepared: its sha256 is another than in {work.record_of(path).name}")
        return Known(name, None)
    complete = record.get("complete")
    if complete is False:
        notice(
            f"the rows of {name or path} are not all of the benchmark's, or not from its pinned files"
            f" ({work.record_of(path).name}): the result is not comparable"
        )
    return Known(name, complete if isinstance(complete, bool) else None)


def _named(entry: Dataset) -> str:
    """The name of a dataset; one that says only what it is for, with whose it is."""
    if entry.name not in DATASET_TYPES or not entry.resources_server:
        return entry.name
    return f"{entry.resources_server} {entry.name}"
