"""Load a folder of skills: what stamps a run, what the agent tells of them, and what it may read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade_eval.environment import Row

READ_TOOL = "read_skill_file"
_MOST_READ = 200_000  # characters of a file that one call gives
_TOOL = {
    "type": "function",
    "name": READ_TOOL,
    "description": "Read a file of one of the skills listed in the instructions; begin with SKILL.md.",
    "parameters": {
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The name of the skill."},
            "path": {"type": "string", "description": "The file, relative to the skill's folder."},
        },
        "required": ["skill", "path"],
        "additionalProperties": False,
    },
    "strict": True,
}


@dataclass(frozen=True)
class Skill:
    """One skill: what its frontmatter says and the folder it lies in."""

    name: str
    description: str | None
    version: str | None
    folder: Path


@dataclass(frozen=True)
class Skills:
    """The skills of a run."""

    path: str  # as it was given
    hash: str
    skills: tuple[Skill, ...]

    def ref(self) -> Row:
        """What stamps every row of the run."""
        return {
            "path": self.path,
            "hash": self.hash,
            "skills": [
                {"name": skill.name, "description": skill.description, "version": skill.version}
                for skill in self.skills
            ],
        }

    def offered(self, params: Row) -> Row:
        """A request whose instructions list the skills and whose tools can read them; its input stays."""
        listed = [f"- {skill.name}: {skill.description or '(no description)'}" for skill in self.skills]
        text = (
            "You have skills: folders of instructions and files for kinds of work. When a skill fits the\n"
            f"task, read its SKILL.md with the tool {READ_TOOL} before you begin, and follow it.\n"
            + "\n".join(listed)
        )
        before = params.get("instructions")
        return {
            **params,
            "instructions": f"{before}\n\n{text}" if isinstance(before, str) and before else text,
            "tools": [*(params.get("tools") or []), _TOOL],
        }

    def read(self, arguments: Mapping[str, Any]) -> str:
        """A file of a skill as text; what cannot be read is said in words."""
        name, wanted = str(arguments.get("skill")), str(arguments.get("path"))
        chosen = next((skill for skill in self.skills if skill.name == name), None)
        if chosen is None:
            return (
                f"Error: there is no skill {name!r}; the skills are {', '.join(s.name for s in self.skills)}"
            )
        try:
            root = chosen.folder.resolve()
            file = (root / wanted).resolve()
            if not file.is_relative_to(root):
                return f"Error: {wanted!r} lies outside the skill"
            if file.is_dir():
                return "\n".join(sorted(f"{p.name}/" if p.is_dir() else p.name for p in file.iterdir()))
            if not file.is_file():
                return f"Error: the skill {name} has no file {wanted!r}"
            with file.open(encoding="utf-8", errors="replace") as opened:
                text = opened.read(_MOST_READ + 1)
        except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
            return f"Error: {wanted!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        return text if len(text) <= _MOST_READ else text[:_MOST_READ] + "\n… (the file goes on)"


def loaded(path: str, place: Path | None = None) -> Skills:
    """The skills below a folder, given as `path` and lying at `found`."""
    folder = place or Path(path)
    if not folder.exists():
        raise _wrong(f"there is no folder of skills {path}")
    if not folder.is_dir():
        raise _wrong(f"{path} is a file, not a folder of skills")
    inside = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    if not inside:
        raise _wrong(f"{path} holds no skill")
    for linked in _linked(folder):
        why = "the hash of the skills would not cover what lies behind it"
        raise _wrong(f"{linked} is a link to a folder: {why}", "put a copy in its place")
    return Skills(path, hashed(folder), tuple(_skill(entry) for entry in inside))


def hashed(folder: Path) -> str:
    """The first 12 hex digits over all files below a folder, in the order of their paths' parts."""
    digest = hashlib.sha256()
    files = [
        Path(here, name).relative_to(folder)
        for here, _, names in os.walk(folder)
        for name in names
        if Path(here, name).is_file()
    ]
    for file in sorted(files, key=lambda file: file.parts):
        digest.update(file.as_posix().encode("utf-8", "surrogateescape") + b"\0")
        digest.update((folder / file).read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _linked(folder: Path) -> Iterator[Path]:
    """Links to folders, at any depth."""
    for here, names, _ in os.walk(folder):
        yield from (Path(here, name) for name in names if Path(here, name).is_symlink())


def _skill(folder: Path) -> Skill:
    file = folder / "SKILL.md"
    if not file.is_file():
        raise _wrong(f"{folder} has no SKILL.md")
    head = _frontmatter(file)
    name = head.get("name")
    if name is None or not str(name).strip():
        raise _wrong(f"the frontmatter of {file} has no name")
    description, metadata = head.get("description"), head.get("metadata")
    version = metadata.get("version") if isinstance(metadata, Mapping) else None
    return Skill(
        str(name),
        None if description is None else str(description),
        None if version is None else str(version),
        folder,
    )


def _frontmatter(file: Path) -> Mapping[str, Any]:
    import yaml

    lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    if not lines or lines[0].strip() != "---":
        raise _wrong(f"{file} does not begin with frontmatter (a line ---)")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        raise _wrong(f"the frontmatter of {file} does not end (no second line ---)")
    try:
        head = yaml.safe_load("\n".join(lines[1:end]))
    except (yaml.YAMLError, ValueError) as error:
        raise _wrong(f"the frontmatter of {file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(head, Mapping):
        raise _wrong(f"the frontmatter of {file} is not a mapping of keys to values")
    return head


_FORM = "every folder below it needs a SKILL.md that begins with ---, name: …, description: …, ---"


def _wrong(message: str, hint: str = _FORM) -> UsageError:
    return UsageError(message, hint, "bad-skills")
