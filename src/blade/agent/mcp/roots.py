"""Find the runs that a server may read, refuse all others, and keep the session of each."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from blade import pipeline
from blade.errors import NothingToRead, UsageError
from blade.formats import find, sidecars
from blade.hostile import line
from blade.pipeline.load import Loaded
from blade.pipeline.session import Session

Value = TypeVar("Value")
MOST_NAMED = 20  # runs that an error lists
KEPT = 4  # comparisons and checks held in memory


class Place(msgspec.Struct, frozen=True):
    """A run as it lies on disk; a file with several agents is one place."""

    id: str  # what to ask for it by: its path, or its folder and name where it is split into shards
    name: str
    paths: tuple[Path, ...]
    specs: tuple[str, ...]  # what a command would be given


class Roots(msgspec.Struct, frozen=True):
    """What may be read: the specs as given, and the real places behind them."""

    specs: tuple[str, ...]
    allowed: tuple[Path, ...]
    # the folders of files that were named one by one: what belongs to such a run lies there
    beside: tuple[Path, ...] = ()

    def holds(self, path: str | Path) -> bool:
        """Does a path, its links followed, lie in one of the places."""
        try:
            real = _real(path)
        except (OSError, ValueError):  # a NUL, a circle of links
            return False
        return any(real == place or place in real.parents for place in self.allowed)


def roots(specs: Sequence[str]) -> Roots:
    """The places behind `specs`; the working directory where none is given."""
    named = tuple(specs) or (".",)
    allowed: dict[Path, None] = {}
    beside: dict[Path, None] = {}
    for spec in named:
        name, equals, path = spec.partition("=")  # NAME=PATH, or PATH alone
        if not equals or not name or "/" in name or os.path.lexists(spec):
            path = spec
        if path == "-":
            hint = "name files or folders instead of -"
            raise UsageError("standard input is the protocol of this server", hint, "usage")
        files = [Path(os.path.expanduser(path))]
        if not files[0].exists():  # a glob, or nothing: `find` says which
            files = [file for run in find.runs([spec], lambda text: None) for file in run.paths]
        allowed |= {_real(file): None for file in files}
        beside |= {_real(file.parent): None for file in files if not file.is_dir()}
    return Roots(named, tuple(allowed), tuple(beside))


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def places(roots: Roots, notice: Callable[[str], None] = lambda text: None) -> list[Place]:
    """The runs that lie there; files that a link takes elsewhere are left out and told."""
    inside: dict[str, Place] = {}
    for spec in roots.specs:
        try:
            runs = find.runs([spec], notice)
        except NothingToRead as error:
            notice(error.message)
            continue
        for place in map(_place, runs):
            if all(map(roots.holds, place.paths)):
                inside[place.id] = place
            else:
                notice(f"{place.name} leads out of the folders of this server by a link; passed over")
    return list(inside.values())


def chosen(roots: Roots, name: str | None) -> tuple[Place, str | None]:
    """The place that is asked for, and the run in it where one of several agents is named."""
    known = places(roots)
    if name is None:
        if len(known) == 1:
            return known[0], None
        raise _unknown("no run was named" if known else "there is no run yet", known)
    paths = _candidates(roots, name)
    can_be_path = "/" in name or name.startswith((".", "~")) or "\0" in name
    if can_be_path and not any(map(roots.holds, paths)):  # whether something is there is not told
        hint = f"{_listed(known)}; to read others start it with them: blade mcp FOLDER"
        raise _outside(f"{line(name, 200)} lies outside the folders of this server", hint)

    meant = set(map(_real, paths))
    for matches in (
        [place for place in known if name in (place.id, place.name)],
        [place for place in known if any(meant & {file, *file.parents} for file in map(_real, place.paths))],
        [place for place in known if name.startswith(f"{place.name}:")],
        [place for place in known if line(name) in (line(place.id), line(place.name))],
    ):
        if len(matches) == 1:
            only = name if name.startswith(f"{matches[0].name}:") else None
            return matches[0], only
        if matches:
            raise _unknown(f"{len(matches)} runs are called {line(name, 100)}", matches)
    raise _unknown(f"there is no run {line(name, 200)}", known)


def file_of(roots: Roots, text: str) -> Path:
    """A file that may be read."""
    paths = [path for path in _candidates(roots, text) if roots.holds(path)]
    if not paths:
        hint = "give the text itself, or a file under the folders the server was started with"
        raise _outside(f"{line(text, 200)} lies outside the folders of this server", hint)
    with suppress(OSError):  # a name that is too long for any file
        for path in filter(Path.is_file, paths):
            return path
    hint = "check the path, or give the text"
    raise NothingToRead(f"{line(text, 200)} does not exist", hint, "no-such-path")


def refuse_links(roots: Roots, place: Place) -> None:
    """Refuse a run with files beside it that a link takes elsewhere; nothing has been read of them yet.

    A link may lead to nothing: what is written through it later would come to lie there.
    """
    run = find.Found(place.name, place.paths)
    beside = [artifact.path for artifact in sidecars.artifacts(run) if artifact.kind != "rollouts"]
    folders = {file.parent: _real(file.parent) for file in place.paths}
    for path in [*beside, sidecars.judgements(run)]:
        if path is None or roots.holds(path):
            continue
        # or it lies beside a file that was named, without a link between the two
        straight = (real for folder, real in folders.items() if real / os.path.relpath(path, folder) == _real(path))
        if not any(real in roots.beside for real in straight):
            hint = "replace the link by the file, or start the server with the folder it leads to"
            name = line(str(path), 200)
            raise _outside(f"{name} is a link that leads out of the folders of this server", hint)


def refuse_to_write(path: Path) -> None:
    """Refuse a file that is written if it is anything but a file, or still to be made."""
    if os.path.islink(path) or (os.path.lexists(path) and not path.is_file()):
        message = f"{line(str(path), 200)} is a link or no file, and judgements would be written through it"
        raise _outside(message, "replace it by a file, or remove it")


def _outside(message: str, hint: str) -> UsageError:
    return UsageError(message, hint, "outside-roots")


def _place(run: find.Found) -> Place:
    paths = tuple(str(path) for path in run.paths)
    if len(paths) > 1:
        return Place(str(run.paths[0].parent / run.name), run.name, run.paths, paths)
    named = run.named and "/" not in run.name
    return Place(paths[0], run.name, run.paths, (f"{run.name}={paths[0]}",) if named else paths)


def _candidates(roots: Roots, text: str) -> list[Path]:
    """Where a path may be meant to start: here, or at a folder of the server."""
    return [Path(os.path.abspath(text)), *(folder / text for folder in roots.allowed if folder.is_dir())]


def _unknown(message: str, known: Sequence[Place]) -> UsageError:
    return UsageError(message, _listed(known), "no-such-run")


def _listed(known: Sequence[Place]) -> str:
    if not known:
        return "no rollouts file lies under the folders of this server; start it with others: blade mcp FOLDER"
    left = f" and {len(known) - MOST_NAMED} more, see blade_list_runs" if len(known) > MOST_NAMED else ""
    return f"the runs are {', '.join(line(place.id, 200) for place in known[:MOST_NAMED])}{left}"


class Aloud:
    """A watcher that tells on stderr what is being done: stdout belongs to the protocol."""

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        self.notice(what)

    def advance(self, done: int) -> None: ...

    def notice(self, text: str) -> None:
        print(f"blade mcp: {line(text, 400)}", file=sys.stderr, flush=True)


class House:
    """What the tools of one server share: each session is made once, however many ask for it at a time."""

    def __init__(self, roots: Roots) -> None:
        self.roots, self.watcher = roots, Aloud()
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._held: dict[tuple[str, ...], Any] = {}  # the last that was asked for comes last

    def session(self, question: Any) -> tuple[Session, Loaded]:
        """The session of the run that is asked for, and that run in it."""
        session, only = self.sessions(question.run, question.pass_threshold)
        return session, session.run(only)

    def sessions(self, run: str | None, threshold: float | None) -> tuple[Session, str | None]:
        """The session of a file with all its agents, and the run that was named where it holds several."""
        place, only = self._place(run)
        with self._lock_of(("session", str(threshold), *place.specs)):
            return pipeline.session(place.specs, self.watcher, threshold), only

    def loaded(self, runs: Sequence[str | None]) -> list[Loaded]:
        """Several runs, in the order they are asked for."""
        return [
            run for place, only in map(self._place, runs) for run in pipeline.load(place.specs, self.watcher)
            if only in (None, run.name)
        ]  # fmt: skip

    def specs(self, runs: Sequence[str]) -> list[str]:
        """What a command would be given for these runs."""
        return list(dict.fromkeys(spec for run in runs for spec in self._place(run)[0].specs))

    def _place(self, run: str | None) -> tuple[Place, str | None]:
        place, only = chosen(self.roots, run)
        refuse_links(self.roots, place)
        return place, only

    def once(self, key: tuple[str, ...], make: Callable[[], Value]) -> Value:
        """What `make` makes, made once for each key while it is remembered."""
        with self._lock_of(key):
            value: Value = self._held.pop(key) if key in self._held else make()
            self._held[key] = value
            for oldest in list(self._held)[:-KEPT]:
                del self._held[oldest]
            return value

    def _lock_of(self, key: tuple[str, ...]) -> threading.Lock:
        return self._locks.setdefault(key, threading.Lock())


def key_of(session: Session, run: Loaded, task: str) -> str:
    """The key of a task by its key, its name, or either as it is printed."""
    rollouts = run.run.rollouts
    if task not in rollouts.task_keys and task not in rollouts.task_names:
        for names in (rollouts.task_keys, rollouts.task_names):
            pairs = zip(rollouts.task_keys, names, strict=True)
            alike = [key for key, name in pairs if line(name) == line(task)]
            if len(alike) == 1:
                return alike[0]
    return session.key(run, task)
