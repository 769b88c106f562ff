"""Turn what a report says of its file into open questions where its rows come in another file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from msgspec.structs import replace

from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion, Source
from blade.report.words import sized


def filed(found: Iterable[Assertion], text: str, world: World) -> Iterator[Assertion]:
    """The assertions; the name, size and digest of a file that is not here are not contradicted."""
    paths = _paths(world)
    others = [one for run in world.report.runs for one in run.sources if not _is_told(one, text)]
    told = [(one, re.compile(_token(_name(one)))) for one in others]
    for one in found:
        if one.verdict == CONTRADICTED and _is_same(one, paths):
            yield replace(one, verdict=SUPPORTED, why="the same file by another path")
            continue
        other = next((file for file, name in told if _is_of(one, file, name)), None)
        if one.verdict == CONTRADICTED and other is not None:
            why = f"the report is about another file than {_name(other)}; its rows alone are here"
            yield replace(one, verdict=UNVERIFIABLE, expected=None, why=why)
        else:
            yield one


def _paths(world: World) -> re.Pattern[str] | None:
    """The files of the runs in any folder."""
    runs = world.report.runs
    told_of = [one.path for run in runs for one in run.sources]
    told_of += [one.path for run in runs for one in run.artifacts]
    names = {PurePath(path).name for path in told_of}
    told = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name)
    return re.compile(rf"(?:[\w.~%+-]*/)*({told})(?![\w.-])") if told else None


def _is_same(one: Assertion, paths: re.Pattern[str] | None) -> bool:
    """Whether what stands there and what is expected differ in the folders of files alone."""
    if paths is None or one.expected is None or one.found is None:
        return False
    # a path with a slash is quoted inside a query, one without is not
    told = (text.replace("\\", "").replace('"', "") for text in (one.found, one.expected))
    here, there = (paths.sub(r"\1", text) for text in told)
    return here == there and one.found != one.expected


def _is_told(source: Source, text: str) -> bool:
    """Whether a report tells a file by its name, with its compression, or by its digest."""
    digest = source.sha256
    return bool(re.search(_token(_name(source)), text)) or (digest is not None and digest in text)


def _is_of(one: Assertion, source: Source, name: re.Pattern[str]) -> bool:
    expected = one.expected or ""
    sizes = (str(source.bytes), f"{source.bytes}.0", sized(source.bytes))
    return (
        expected in sizes
        or name.search(expected) is not None
        or (source.sha256 is not None and source.sha256 in expected)
    )


def _name(source: Source) -> str:
    return PurePath(source.path).name


def _token(name: str) -> str:
    return rf"(?<![\w.-]){re.escape(name)}(?!\.?\w)"
