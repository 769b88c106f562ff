"""Put skills where coding agents look for them, and say which copies are there and who made them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from blade import __version__
from blade.agent.skills.shipped import PAGE, Skill, contents, skill_at
from blade.errors import UsageError

RECORD = ".blade.json"  # what was installed: lets a later version replace a copy that nobody changed
USER, PROJECT = "user", "project"

# Agent -> where it looks for skills, in a project and at home.
AGENTS = {
    "claude": (".claude/skills", ".claude/skills"),
    "codex": (".codex/skills", ".codex/skills"),
    "agents": (".agents/skills", ".agents/skills"),
    "cursor": (".cursor/skills", ".cursor/skills"),
    "gemini": (".gemini/skills", ".gemini/skills"),
    "copilot": (".github/skills", ".copilot/skills"),
    "opencode": (".opencode/skills", ".config/opencode/skills"),
}
DEFAULT = "agents"


class Copy(msgspec.Struct, frozen=True):
    """A skill in a folder where agents look."""

    name: str
    agents: tuple[str, ...]
    scope: str
    path: Path
    version: str | None  # of the engine that it was written for
    state: str  # current, older, changed, own (not one of ours)


class Done(msgspec.Struct, frozen=True):
    """What an installation did, or would do, in one place."""

    path: Path
    agents: tuple[str, ...]
    did: str  # installed, updated, replaced, unchanged
    files: tuple[str, ...]  # those written


def targets(scope: str, agents: Sequence[str], root: Path) -> dict[Path, tuple[str, ...]]:
    """The folders of skills for these agents, links followed; without any, of those that are in use."""
    where = int(scope == USER)
    chosen = list(agents) or [name for name, places in AGENTS.items() if _is_used(root / places[where])]
    found: dict[Path, tuple[str, ...]] = {}
    for name in chosen or [DEFAULT]:
        place = root / AGENTS[name][where]
        same = next((known for known in found if known.resolve() == place.resolve()), place)
        found[same] = (*found.get(same, ()), name)
    return found


def _is_used(place: Path) -> bool:
    """Whether an agent has a folder here; `.github` is there for other reasons too."""
    return place.is_dir() or (place.parent.is_dir() and place.parent.name != ".github")


def install(
    one: Skill, scope: str, agents: Sequence[str], root: Path, force: bool = False, dry: bool = False
) -> list[Done]:
    """Copy a skill to every agent's folder; nothing is written if one copy must not be replaced."""
    files = contents(one)
    plans = [(place / one.name, told) for place, told in targets(scope, agents, root).items()]
    for path, _ in plans:
        if path.resolve() != one.folder.resolve():
            _refuse_links(path, root, int(scope == USER))
    states = [_state(path, one, files) for path, _ in plans]
    for (path, _), state in zip(plans, states, strict=True):
        if state == "replaced" and not force:
            hint = "keep it, or add --force to write over it"
            raise UsageError(f"{path} is a copy that somebody changed", hint, "skill-changed")
    found = []
    for (path, told), state in zip(plans, states, strict=True):
        written = (
            [] if state == "unchanged" else [name for name in files if _differs(path / name, files[name])]
        )
        if state != "unchanged" and not dry:
            _write(path, files)
        found.append(Done(path, told, state, tuple(written)))
    return found


def _refuse_links(path: Path, root: Path, where: int) -> None:
    """Refuse a folder that a link takes elsewhere, and one that holds links: who wrote them is not known."""
    within = [(root / places[where]).resolve() for places in AGENTS.values()]
    within = [place for place in within if place.is_relative_to(root.resolve())]
    if path.resolve() not in [place / path.name for place in within]:
        raise UsageError(
            f"{path} is a link, or lies behind one, that leads out of {root}",
            "replace the link by a folder, or install where it leads to",
            "skill-changed",
        )
    for here, folders, files in os.walk(path):
        for name in (*folders, *files):
            kind = os.lstat(os.path.join(here, name)).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise UsageError(
                    f"{os.path.join(here, name)} is a link or no file, and would be written through",
                    "remove it, or the whole copy, and install again",
                    "skill-changed",
                )


def copies(root: Path, home: Path) -> list[Copy]:
    """The copies in the folders of this project and of the user."""
    found: dict[Path, Copy] = {}
    roots = [(PROJECT, place) for place in _project(root)]
    for scope, base in [*roots, (USER, home)]:
        for name, places in AGENTS.items():
            folder = base / places[int(scope == USER)]
            for page in sorted(folder.glob(f"*/{PAGE}")) if folder.is_dir() else []:
                key = page.resolve()
                if key in found:
                    one = found[key]
                    found[key] = msgspec.structs.replace(
                        one, agents=tuple(dict.fromkeys((*one.agents, name)))
                    )
                elif (seen := _copy(page.parent, scope, name)) is not None:
                    found[key] = seen
    return list(found.values())


def _project(root: Path) -> list[Path]:
    """This folder and those above it up to the top of its repository; outside of one, the folder alone."""
    above = [root, *root.parents]
    top = next((at for at, place in enumerate(above) if (place / ".git").exists()), 0)
    return above[: top + 1]


def _copy(path: Path, scope: str, agent: str) -> Copy | None:
    try:
        one = skill_at(path)
    except UsageError:
        return None
    kept = _record(path)
    state = "own"
    if one.version is not None:
        state = "current" if one.version == __version__ else "older"
    if kept and kept != _digests(path, kept):
        state = "changed"
    return Copy(one.name, (agent,), scope, path, one.version, state)


def _state(path: Path, one: Skill, files: dict[str, bytes]) -> str:
    """What an installation would do to a folder: replaced is what takes --force."""
    if path.exists() and path.resolve() == one.folder.resolve():
        return "unchanged"
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return "installed"
    if path.is_dir() and not any(_differs(path / name, data) for name, data in files.items()):
        return "unchanged"
    kept = _record(path)
    ours = all(name in kept for name in files if os.path.lexists(path / name))
    return "updated" if kept and ours and kept == _digests(path, kept) else "replaced"


def _differs(path: Path, data: bytes) -> bool:
    return not path.is_file() or path.read_bytes() != data


def _write(path: Path, files: dict[str, bytes]) -> None:
    """The files of a skill and the record of them; those of an earlier version that are gone go too."""
    kept = _record(path)
    for name in sorted(set(kept) - set(files)):
        inside = (path / name).resolve().is_relative_to(path.resolve())
        if inside and not _differs_from(path / name, kept[name]):
            (path / name).unlink()
    told = {"engine": __version__, "files": {name: _digest(data) for name, data in files.items()}}
    record = (json.dumps(told, indent=2) + "\n").encode()
    for name, data in {**files, RECORD: record}.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        _put(place, data)


def _put(place: Path, data: bytes) -> None:
    """A file in the stead of the one that is there: what else is known by another name stays as it is."""
    part = place.with_name(f".{place.name}.{os.getpid()}")
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(file, "wb") as opened:
            opened.write(data)
        os.replace(part, place)
    except BaseException:
        part.unlink()
        raise


def _record(path: Path) -> dict[str, str]:
    """The files that were installed, each with its digest; none where nothing says so."""
    try:
        told = json.loads((path / RECORD).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    inside = {
        name: digest
        for name, digest in (told.items() if isinstance(told, dict) else [])
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }
    return inside


def _digests(path: Path, names: dict[str, str]) -> dict[str, str]:
    return {name: _digest((path / name).read_bytes()) if (path / name).is_file() else "" for name in names}


def _differs_from(path: Path, digest: str) -> bool:
    return not path.is_file() or _digest(path.read_bytes()) != digest


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
