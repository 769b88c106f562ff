"""Keep a benchmark's rows and their record together: one run at a time, set aside, brought back."""

from __future__ import annotations

import fcntl
import glob
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blade_eval.prepare.fetch import digest


def record_of(output: Path) -> Path:
    """Where the record of a dataset's rows is."""
    return output.with_name(f"{output.stem}_prepare.json")


def recorded(output: Path) -> dict[str, Any]:
    """The record of the rows, empty where there is none that can be read."""
    try:
        known = json.loads(record_of(output).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_record(output: Path, what: Mapping[str, Any]) -> None:
    """Write the record of the rows, whole or not at all."""
    _put(record_of(output), (json.dumps(what, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))


def whole(output: Path) -> bool:
    """Whether these are the rows that the record tells of: only then did the run that made them end well."""
    known = recorded(output)
    return known.get("state") == "prepared" and output.is_file() and known.get("sha256") == digest(output)


@contextmanager
def alone(output: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the output while it is worked on; another run waits, and what a killed one left is put right."""
    output.parent.mkdir(parents=True, exist_ok=True)
    # the file stays: were it removed, one run could hold the removed one and the next a new one
    with output.with_name(f".{output.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another run prepares {output}; waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        settled(output)
        yield


def set_aside(output: Path) -> None:
    """Make room for new rows. The copy of the record comes first: the rows aside are never without theirs."""
    if output.exists():
        if record_of(output).exists():
            _put(_aside(record_of(output)), record_of(output).read_bytes())
        os.replace(output, _aside(output))
    write_record(output, {"state": "preparing"})


def taken_back(output: Path) -> None:
    """Undo `set_aside`, and what was written since; a run killed in between does it again from the start."""
    if not _aside(output).exists():
        output.unlink(missing_ok=True)
        record_of(output).unlink(missing_ok=True)
        return
    if _aside(record_of(output)).exists():
        _put(record_of(output), _aside(record_of(output)).read_bytes())
    else:
        record_of(output).unlink(missing_ok=True)
    os.replace(_aside(output), output)
    cleared(output)


def cleared(output: Path) -> None:
    """Let go of what was set aside; rows first, as a record alone means nothing."""
    _aside(output).unlink(missing_ok=True)
    _aside(record_of(output)).unlink(missing_ok=True)


def settled(output: Path) -> None:
    """Put right what a killed run left: its rows if it had recorded them, else those it had set aside."""
    for partial in output.parent.glob(f".{glob.escape(output.name)}.*.partial"):
        partial.unlink(missing_ok=True)
    if _aside(output).exists() and not whole(output):
        taken_back(output)
    else:
        cleared(output)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.before")


def _put(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)
