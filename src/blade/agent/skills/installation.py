"""Find the skills that ship with BLADE, install them where coding agents look, and compare the copies there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from blade import __version__
from blade.agent.skills import NAME, PAGE, keys, split
from blade.errors import UsageError
from blade.targets import put_all

_HERE = Path(__file__).resolve().parent
# Where a wheel puts the folders, then where a checkout has them; the first that is there counts.
PLACES = (_HERE / "folders", _HERE.parents[3] / ".agents" / "skills")
_WRITTEN_FOR = re.compile(r'^[ \t]+blade:[ \t]*"?(?P<version>[\w.+-]+)"?[ \t]*$', re.MULTILINE)
_ASKED_FOR = re.compile(r"(?P<before>blade skill check --for )(?P<version>[\w.+-]+)")
RECORD = ".blade.json"  # what was installed: lets a later version replace a copy that nobody changed
USER, PROJECT = "user", "project"

# Agent -> where it looks for skills, in a project and at home.
AGENTS = {
    **{name: (f".{name}/skills",) * 2 for name in ("claude", "codex", "agents", "cursor", "gemini")},
    "copilot": (".github/skills", ".copilot/skills"),
    "opencode": (".opencode/skills", ".config/opencode/skills"),
}
DEFAULT = "agents"


class Skill(msgspec.Struct, frozen=True):
    """A folder with a SKILL.md."""

    name: str
    description: str
    version: str | None  # of the engine that it was written for; None: it does not say
    folder: Path
    is_shipped: bool


def shipped() -> tuple[Skill, ...]:
    """The skills that come with this engine, by name."""
    homes = (sorted(place.glob(f"*/{PAGE}")) for place in PLACES)
    return tuple(skill_at(page.parent, is_shipped=True) for page in next(filter(None, homes), []))


def skill(name: str | None) -> Skill:
    """The shipped skill of this name, or the one in a folder; without a name the only one that ships."""
    known = {each.name: each for each in shipped()}
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name in known:
        return known[name]
    if name and (Path(name) / PAGE).is_file():
        return skill_at(Path(name))
    message = f"there is no skill {name}" if name else "no skill was named"
    hint = f"name a folder with a {PAGE}, or one that ships: {', '.join(known) or 'none'}"
    raise UsageError(message, hint, "unknown-skill")


def skill_at(folder: Path, is_shipped: bool = False) -> Skill:
    """The skill in a folder, by its frontmatter; it must have a name, for that is what it is installed as."""
    path = folder / PAGE
    try:
        block = split(path.read_text(encoding="utf-8"))[0] or ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", "give a SKILL.md in UTF-8", "unknown-skill") from error
    head, hit = keys(block), _WRITTEN_FOR.search(block)
    if not NAME.fullmatch(head.get("name", "")):
        hint = "its frontmatter needs a name of lower-case letters, digits and single hyphens"
        raise UsageError(f"{path} names no skill", hint, "unknown-skill")
    version = hit["version"] if hit else None
    return Skill(head["name"], head.get("description", ""), version, folder, is_shipped)


def contents(skill: Skill) -> dict[str, bytes]:
    """The files of a skill by their place in its folder, as they are installed.

    A skill that ships belongs to this engine, so the version that it names is this one.
    """
    files = {}
    for path in sorted(skill.folder.rglob("*")):
        place = path.relative_to(skill.folder)
        if not path.is_file() or any(part.startswith((".", "__pycache__")) for part in place.parts):
            continue
        if not path.resolve().is_relative_to(skill.folder.resolve()):
            hint = "put the file itself into the skill"
            raise UsageError(f"{path} is a link that leads out of the skill", hint, "unknown-skill")
        files[place.as_posix()] = path.read_bytes()
    if skill.is_shipped:
        block, body = split(files[PAGE].decode("utf-8"))
        if block is not None and (hit := _WRITTEN_FOR.search(block)):
            block = block[: hit.start("version")] + __version__ + block[hit.end("version") :]
            body = _ASKED_FOR.sub(lambda mention: mention["before"] + __version__, body)
            files[PAGE] = f"---\n{block}\n---\n{body}".encode()
    return files


# -- copies -----------------------------------------------------------------------------------------


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
    places = {name: root / both[scope == USER] for name, both in AGENTS.items()}
    # those with a folder here; `.github` is there for other reasons too
    used = [
        name for name, place in places.items()
        if place.is_dir() or (place.parent.is_dir() and place.parent.name != ".github")
    ]  # fmt: skip
    folders: dict[Path, tuple[str, ...]] = {}
    for name in agents or used or [DEFAULT]:
        place = places[name]
        same = next((folder for folder in folders if folder.resolve() == place.resolve()), place)
        folders[same] = (*folders.get(same, ()), name)
    return folders


def install(
    skill: Skill, scope: str, agents: Sequence[str], root: Path, force: bool = False, dry: bool = False
) -> list[Done]:
    """Copy a skill to every agent's folder; nothing is written if one copy must not be replaced."""
    files, plans = contents(skill), []
    for place, names in targets(scope, agents, root).items():
        path = place / skill.name
        if path.resolve() != skill.folder.resolve():
            _refuse_links(path, root, int(scope == USER))
        state = _state(path, skill, files)
        if state == "replaced" and not force:
            hint = "keep it, or add --force to write over it"
            raise UsageError(f"{path} is a copy that somebody changed", hint, "skill-changed")
        changed = [name for name in files if state != "unchanged" and _differs(path / name, files[name])]
        plans.append(Done(path, names, state, tuple(changed)))
    for plan in plans:
        if plan.did != "unchanged" and not dry:
            _write(plan.path, files)
    return plans


def _refuse_links(path: Path, root: Path, where: int) -> None:
    """Refuse a folder that a link takes elsewhere, and one that holds links: who wrote them is not known."""
    places = [(root / both[where]).resolve() / path.name for both in AGENTS.values()]
    if path.resolve() not in places or not path.resolve().parent.is_relative_to(root.resolve()):
        message = f"{path} is a link, or lies behind one, that leads out of {root}"
        hint = "replace the link by a folder, or install where it leads to"
        raise UsageError(message, hint, "skill-changed")
    for here, folders, files in os.walk(path):
        for place in (os.path.join(here, name) for name in (*folders, *files)):
            kind = os.lstat(place).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                message = f"{place} is a link or no file, and would be written through"
                raise UsageError(message, "remove it, or the whole copy, and install again", "skill-changed")


def copies(root: Path, home: Path) -> list[Copy]:
    """The copies in the folders of this project, up to the top of its repository, and of the user."""
    above = [root, *root.parents]
    top = next((number for number, place in enumerate(above) if (place / ".git").exists()), 0)
    seen: dict[Path, Copy] = {}
    for scope, base in [*((PROJECT, place) for place in above[: top + 1]), (USER, home)]:
        for name, places in AGENTS.items():
            folder = base / places[int(scope == USER)]
            for page in sorted(folder.glob(f"*/{PAGE}")) if folder.is_dir() else []:
                key = page.resolve()
                if key in seen:
                    seen[key] = replace(seen[key], agents=tuple(dict.fromkeys((*seen[key].agents, name))))
                elif (copy := _copy(page.parent, scope, name)) is not None:
                    seen[key] = copy
    return list(seen.values())


def _copy(path: Path, scope: str, agent: str) -> Copy | None:
    try:
        skill = skill_at(path)
    except UsageError:
        return None
    record, state = _record(path), "own"
    if skill.version is not None:
        state = "current" if skill.version == __version__ else "older"
    if record and record != _digests(path, record):
        state = "changed"
    return Copy(skill.name, (agent,), scope, path, skill.version, state)


def _state(path: Path, skill: Skill, files: dict[str, bytes]) -> str:
    """What an installation would do to a folder: replaced is what takes --force."""
    if path.exists() and path.resolve() == skill.folder.resolve():
        return "unchanged"
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return "installed"
    if path.is_dir() and not any(_differs(path / name, data) for name, data in files.items()):
        return "unchanged"
    record = _record(path)
    ours = all(name in record for name in files if os.path.lexists(path / name))
    return "updated" if record and ours and record == _digests(path, record) else "replaced"


def _differs(path: Path, data: bytes) -> bool:
    return not path.is_file() or path.read_bytes() != data


def _write(path: Path, files: dict[str, bytes]) -> None:
    """The files of a skill and the record of them; those of an earlier version that are gone go too."""
    before = _record(path)
    for name, digest in _digests(path, before).items():
        inside = (path / name).resolve().is_relative_to(path.resolve())
        if name not in files and inside and digest and digest == before[name]:
            (path / name).unlink()
    record = {"engine": __version__, "files": {name: _digest(data) for name, data in files.items()}}
    text = (json.dumps(record, indent=2) + "\n").encode()
    put_all({path / name: data for name, data in {**files, RECORD: text}.items()})


def _record(path: Path) -> dict[str, str]:
    """The files that were installed, each with its digest; none where nothing says so."""
    try:
        files = json.loads((path / RECORD).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    listed = files.items() if isinstance(files, dict) else ()
    return {name: digest for name, digest in listed if not {"/", ".."} & set(Path(name).parts)}


def _digests(path: Path, names: dict[str, str]) -> dict[str, str]:
    """The digests of files as they are now; none of one that is gone."""
    return {name: _digest((path / name).read_bytes()) if (path / name).is_file() else "" for name in names}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
