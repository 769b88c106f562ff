"""Write down what a run is: command, config, versions, commit, data, seeds, and each sitting of it."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from blade import __version__
from blade.errors import BladeError, Unreadable
from blade_eval.config import Dataset
from blade_eval.config.directives import value_of
from blade_eval.config.resolve import DATASET_TYPES
from blade_eval.config.secret import HIDDEN, hidden, hidden_command, names_secret, without
from blade_eval.environment import Row
from blade_eval.prepare import work
from blade_eval.prepare.fetch import digest
from blade_eval.runner.inputs import Source

_GIT_S = 10.0
_OPENS = ("{", "[")
_NAME = re.compile(r"[\w-]+")
_TELLING = 8  # a shorter secret stands by chance inside other words
_PACKAGES = "msgspec aiohttp omegaconf math-verify rapidfuzz jiwer sacrebleu jsonschema".split()


def sitting(command: Sequence[str]) -> Row:
    """One time that somebody sat down to the run: when, by what, from which commit."""
    return {
        "status": "running", "command": masked(command), "started": now(), "ended": None,
        "versions": versions(), "git": commit(), "counts": {},
    }  # fmt: skip


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def described_dataset(source: Source) -> Row:
    """What identifies the rows that were asked, and whether they are all of the benchmark's."""
    path = source.path
    facts = {"path": str(path), "bytes": path.stat().st_size, "sha256": digest(path)}
    return {"name": source.name, **facts, "complete": source.complete}


def versions() -> dict[str, str]:
    """What ran: of packages those that a reward may depend on."""
    packages = {"blade": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
    return packages


def commit() -> Row | None:
    """The commit of the current folder, and whether files differ from it; None outside of git."""
    head = _git("rev-parse", "HEAD")
    if head is None:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": head.strip(), "dirty": None if changed is None else bool(changed.strip())}


def _git(*arguments: str) -> str | None:
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        return subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=_GIT_S, check=True
        ).stdout
    return None


def masked(command: Sequence[str]) -> list[str]:
    """A command line without its secrets, also where they stand inside of a value such as {api_key: …}."""
    secrets: set[str] = set()
    words = []
    for word in command:
        name, equals, value = word.partition("=") if not word.startswith(_OPENS) else ("", "", word)
        words.append(f"{name}{equals}{_shown_value(value, secrets)}")
    telling = [secret for secret in secrets if len(secret) >= _TELLING]
    return [without(word, telling) for word in hidden_command(words)]


def _shown_value(text: str, secrets: set[str]) -> str:
    """A value of a command; of a mapping or a list the secrets in it are hidden."""
    bare = text.strip().strip("'\"").lstrip()
    if not bare.startswith(_OPENS):
        return text
    try:
        value = value_of(text, "")
    except (BladeError, RecursionError):  # nobody knows what is a name in it and what a secret
        return HIDDEN if any(map(names_secret, _NAME.findall(text))) else text
    shown = _shown_value(value, secrets) if isinstance(value, str) else _inner(value, hidden(value, {}), secrets)
    if shown == value:
        return text
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)


def _inner(value: Any, shown: Any, secrets: set[str]) -> Any:
    """What is shown of a value, texts in it taken apart once more; what was hidden goes to `secrets`."""
    if isinstance(value, dict):
        return {key: _inner(value[key], inner, secrets) for key, inner in shown.items()}
    if isinstance(value, list):
        return [_inner(inner, other, secrets) for inner, other in zip(value, shown, strict=True)]
    if shown == HIDDEN:
        secrets.add(str(value))
    return _shown_value(shown, secrets) if isinstance(shown, str) else shown


def command_line() -> list[str]:
    return ["blade", *sys.argv[1:]]


def known(path: Path, entry: Dataset | None, notice: Callable[[str], None]) -> tuple[str | None, bool | None]:
    """The name of rows, and whether they are all of the benchmark's; None where nobody said.

    Rows of a preparation that did not end are refused.
    """
    record = work.recorded(path)
    name = record.get("dataset") if isinstance(record.get("dataset"), str) else None
    if entry is not None:  # one that says only what it is for is named with whose it is
        is_plain = entry.name in DATASET_TYPES and entry.resources_server
        name = f"{entry.resources_server} {entry.name}" if is_plain else entry.name
    if record.get("state") == "preparing":
        raise Unreadable(
            f"{path} is being prepared, or its preparation was killed: nobody knows which rows are missing",
            "run `blade eval prepare` again, with the same --benchmark or --config", "rows-unfinished",
        )  # fmt: skip
    if record.get("state") != "prepared":
        return name, None
    file = work.record_of(path).name
    if record.get("sha256") != digest(path):
        notice(f"{path} is not as it was prepared: its sha256 is another than in {file}")
        return name, None
    complete = record.get("complete")
    if complete is False:
        notice(
            f"the rows of {name or path} are not all of the benchmark's, or not from its pinned files"
            f" ({file}): the result is not comparable"
        )
    return name, complete if isinstance(complete, bool) else None
