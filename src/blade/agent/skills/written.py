"""Write the skill of one benchmark from runs of it: a folder that an agent can be given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blade.agent.skills.names import skill_name
from blade.agent.skills.shipped import PAGE
from blade.errors import UsageError
from blade.targets import refuse_link

if TYPE_CHECKING:
    from blade.pipeline.session import Session


def folder_of(name: str | None, session: Session, into: Path) -> tuple[str, Path]:
    """The benchmark as it is called, and the folder of its skill."""
    told = (run.benchmark for run in session.report.runs if run.benchmark)
    called = name or next(told, None) or session.loaded[0].name
    return called, into / skill_name(called)


def refuse_written(folder: Path, force: bool) -> None:
    """Do not write over a skill unless told to: somebody may have put work into it."""
    refuse_link(folder / PAGE, folder.parent)
    if (folder / PAGE).exists() and not force:
        raise UsageError(
            f"{folder / PAGE} is there already", "name another, or add --force", "output-not-empty"
        )


def write(called: str, folder: Path, session: Session) -> Path:
    """The SKILL.md of a benchmark; its commands name the runs as they lie, seen from here."""
    from blade.agent.skills.draft import skill

    if any(source.path == "-" for one in session.loaded for source in one.sources):
        raise UsageError("a skill names its runs, and standard input has no name", "name a file", "usage")
    paths = {one.name: _here(one.sources[0].path) for one in session.loaded}
    text = skill(called, session.loaded, [session.report], paths)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PAGE
    path.write_text(text, encoding="utf-8")
    return path


def _here(path: str) -> str:
    """A path as one types it: relative where it lies below this folder."""
    place, here = Path(path), Path.cwd()
    return str(place.relative_to(here)) if place.is_absolute() and place.is_relative_to(here) else path
