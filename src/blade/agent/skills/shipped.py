"""Find the skills that ship with BLADE: beside this module in a wheel, in the repository otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from blade import __version__
from blade.agent.skills import frontmatter
from blade.errors import UsageError

PAGE = "SKILL.md"
_HERE = Path(__file__).resolve().parent
# Where a wheel puts the folders, then where a checkout has them; the first that is there counts.
PLACES = (_HERE / "folders", _HERE.parents[3] / ".agents" / "skills")
_WRITTEN_FOR = re.compile(r'^[ \t]+blade:[ \t]*"?(?P<version>[\w.+-]+)"?[ \t]*$', re.MULTILINE)
_ASKED_FOR = re.compile(r"(?P<before>blade skill check --for )(?P<version>[\w.+-]+)")


class Skill(msgspec.Struct, frozen=True):
    """A folder with a SKILL.md."""

    name: str
    description: str
    version: str | None  # of the engine that it was written for; None: it does not say
    folder: Path
    is_shipped: bool


def shipped() -> tuple[Skill, ...]:
    """The skills that come with this engine, by name."""
    home = next((place for place in PLACES if any(place.glob(f"*/{PAGE}"))), None)
    found = (
        [skill_at(page.parent, is_shipped=True) for page in sorted(home.glob(f"*/{PAGE}"))] if home else []
    )
    return tuple(found)


def skill(name: str | None) -> Skill:
    """The shipped skill of this name, or the one in a folder; without a name the only one that ships."""
    known = shipped()
    if name is None and len(known) == 1:
        return known[0]
    named = [one for one in known if one.name == name]
    if named:
        return named[0]
    folder = Path(name or "")
    if name and (folder / PAGE).is_file():
        return skill_at(folder)
    names = ", ".join(one.name for one in known) or "none"
    message = f"there is no skill {name}" if name else "no skill was named"
    raise UsageError(message, f"name a folder with a {PAGE}, or one that ships: {names}", "unknown-skill")


def skill_at(folder: Path, is_shipped: bool = False) -> Skill:
    """The skill in a folder, by its frontmatter; it must have a name, for that is what it is installed as."""
    path = folder / PAGE
    try:
        block, _ = frontmatter.split(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", "give a SKILL.md in UTF-8", "unknown-skill") from error
    keys = frontmatter.keys(block) if block is not None else {}
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", keys.get("name", "")):
        hint = "its frontmatter needs a name of lower-case letters, digits and single hyphens"
        raise UsageError(f"{path} names no skill", hint, "unknown-skill")
    told = _WRITTEN_FOR.search(block or "")
    return Skill(
        keys["name"], keys.get("description", ""), told["version"] if told else None, folder, is_shipped
    )


def contents(one: Skill) -> dict[str, bytes]:
    """The files of a skill by their place in its folder, as they are installed.

    A skill that ships belongs to this engine, so the version that it names is this one.
    """
    found = {}
    for path in sorted(one.folder.rglob("*")):
        place = path.relative_to(one.folder)
        if not path.is_file() or any(part.startswith((".", "__pycache__")) for part in place.parts):
            continue
        if not path.resolve().is_relative_to(one.folder.resolve()):
            hint = "put the file itself into the skill"
            raise UsageError(f"{path} is a link that leads out of the skill", hint, "unknown-skill")
        found[place.as_posix()] = path.read_bytes()
    if one.is_shipped:
        found[PAGE] = _stamped(found[PAGE].decode("utf-8")).encode("utf-8")
    return found


def _stamped(text: str) -> str:
    block, body = frontmatter.split(text)
    told = _WRITTEN_FOR.search(block or "")
    if block is None or told is None:
        return text
    at, end = told.span("version")
    body = _ASKED_FOR.sub(lambda found: found["before"] + __version__, body)
    return f"---\n{block[:at]}{__version__}{block[end:]}\n---\n{body}"
