"""Load a folder of skills: what stamps a run, what the agent tells of them, and what it may read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from blade.errors import UsageError
from blade_eval.environment import Row

READ_TOOL = "read_skill_file"
_MOST_READ = 200_000  # characters of a file that one call gives
_ARGUMENTS = {"skill": "The name of the skill.", "path": "The file, relative to the skill's folder."}
_TOOL = {
    "type": "function", "name": READ_TOOL,
    "description": "Read a file of one of the skills listed in the instructions; begin with SKILL.md.",
    "parameters": {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in _ARGUMENTS.items()},
        "required": list(_ARGUMENTS), "additionalProperties": False,
    },
    "strict": True,
}  # fmt: skip


class Skill(NamedTuple):
    """One skill: what its frontmatter says and the folder it lies in."""

    name: str
    description: str | None
    version: str | None
    folder: Path


class Skills(NamedTuple):
    """The skills of a run."""

    path: str  # as it was given
    hash: str
    skills: tuple[Skill, ...]

    def ref(self) -> Row:
        rows = [{"name": name, "description": text, "version": version} for name, text, version, _ in self.skills]
        return {"path": self.path, "hash": self.hash, "skills": rows}

    def offered(self, params: Row) -> Row:
        """A request whose instructions list the skills and whose tools can read them; its input stays."""
        text = (
            "You have skills: folders of instructions and files for kinds of work. When a skill fits the\n"
            f"task, read its SKILL.md with the tool {READ_TOOL} before you begin, and follow it."
        )
        text += "".join(f"\n- {skill.name}: {skill.description or '(no description)'}" for skill in self.skills)
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
            names = ", ".join(skill.name for skill in self.skills)
            return f"Error: there is no skill {name!r}; the skills are {names}"
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
    """The skills below a folder, given as `path` and lying at `place`; their hash is over all files, by their paths' parts."""
    folder = place or Path(path)
    if not folder.exists():
        raise _wrong(f"there is no folder of skills {path}")
    if not folder.is_dir():
        raise _wrong(f"{path} is a file, not a folder of skills")
    inside = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    if not inside:
        raise _wrong(f"{path} holds no skill")
    for above, names, _ in os.walk(folder):
        for link in (entry for name in names if (entry := Path(above, name)).is_symlink()):
            why = "the hash of the skills would not cover what lies behind it"
            raise _wrong(f"{link} is a link to a folder: {why}", "put a copy in its place")
    digest = hashlib.sha256()
    paths = (Path(above, name) for above, _, names in os.walk(folder) for name in names)
    files = [path.relative_to(folder) for path in paths if path.is_file()]
    for file in sorted(files, key=lambda file: file.parts):
        digest.update(file.as_posix().encode("utf-8", "surrogateescape") + b"\0")
        digest.update((folder / file).read_bytes() + b"\0")
    return Skills(path, digest.hexdigest()[:12], tuple(map(_skill, inside)))


def _skill(folder: Path) -> Skill:
    file = folder / "SKILL.md"
    if not file.is_file():
        raise _wrong(f"{folder} has no SKILL.md")
    head = _frontmatter(file)
    name, description, metadata = (head.get(key) for key in ("name", "description", "metadata"))
    if name is None or not str(name).strip():
        raise _wrong(f"the frontmatter of {file} has no name")
    version = metadata.get("version") if isinstance(metadata, Mapping) else None
    description, version = (None if text is None else str(text) for text in (description, version))
    return Skill(str(name), description, version, folder)


def _frontmatter(file: Path) -> Mapping[str, Any]:
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
