"""Find the parts of a package, read and write its files, and know again a file that a command drafted."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from blade.agent.skills import slug

ROLLOUTS = "rollouts/*.jsonl"
DATA = "data/*rollout*.jsonl"
TRIALS = "calibration-runs"  # where `calibrate` writes unless told otherwise
GRADES = ("1_excellent", "2_good", "3_shallow", "4_wrong_causes", "5_fabricated")  # the best first
MAX_SIZE = 64 << 20  # bytes of a report or sidecar; what is larger is none
_NO_ROLLOUTS = ("materialized_inputs", "reward_profiling", "aggregate")
_REPORT = re.compile(r"^(?P<prefix>.+?)[-_]golden[-_]report\.md$", re.IGNORECASE)
_VERSUS = re.compile(r"[-_]vs[-_]", re.IGNORECASE)
_ROOT = re.compile(r"(?i)(?:readme|licen[cs]e|notice|citation|changelog|authors|contributing)(?:[._-].*)?")
FOLDERS = ("skill", "rollouts", "golden_reports")


@dataclass(frozen=True)
class Golden:
    """A golden report and the files that belong to it; those that are missing by their expected place."""

    report: Path
    prefix: str  # what its name says before `_golden_report`: the model
    metrics: Path
    anchors: Path
    shallow: Path
    is_comparison: bool  # a report on several runs, whose sidecars are optional

    @property
    def graded(self) -> dict[str, Path]:
        """The reports of graded quality beside it that are there, the best first."""
        folder = self.report.parent / "graded"
        paths = {grade: folder / f"{self.prefix}_{grade}.md" for grade in GRADES}
        return {grade: path for grade, path in paths.items() if path.is_file()}


@dataclass(frozen=True)
class Layout:
    """The parts of a package that are there."""

    folder: Path
    skill: Path | None
    rollouts: tuple[Path, ...]
    source: str | None  # by which rule rollouts were looked for; None: neither folder is there
    has_reports: bool  # whether there is a folder for golden reports
    goldens: tuple[Golden, ...]

    def is_part(self, path: Path) -> bool:
        """Whether a file, by its place below the folder, belongs to a package: the rest is somebody's own."""
        top = path.parts[0]
        if TRIALS in path.parts:
            return False
        if len(path.parts) == 1:
            return top in ("SKILL.md", "blade.toml") or bool(_ROOT.fullmatch(top))
        if top in FOLDERS or (top == "data" and self.source == DATA):
            return True
        return top in ("references", "scripts", "assets") and self.skill == self.folder / "SKILL.md"


def layout(folder: Path) -> Layout:
    """What lies where; nothing is opened."""
    skills = [path for path in (folder / "skill" / "SKILL.md", folder / "SKILL.md") if path.is_file()]
    source = next((rule for rule in (ROLLOUTS, DATA) if (folder / rule).parent.is_dir()), None)
    rows = [path for path in (_files(folder, source) if source else ()) if not path.stem.endswith("_failures")]
    rollouts = tuple(path for path in rows if not any(part in path.name for part in _NO_ROLLOUTS))
    reports = folder / "golden_reports"
    goldens = tuple(golden(path) for path in _files(reports, "*.md") if _REPORT.match(path.name))
    return Layout(folder, skills[0] if skills else None, rollouts, source, reports.is_dir(), goldens)


def golden(report: Path) -> Golden:
    """A golden report with its sidecars, by the first of their names that is there."""
    matched = _REPORT.match(report.name)
    prefix = matched["prefix"] if matched else report.stem
    plain = prefix.replace("-", "_")

    def first(*names: str) -> Path:
        paths = [report.parent / name for name in names]
        return next((path for path in paths if path.is_file()), paths[0])

    def sidecar(name: str, suffix: str) -> Path:
        other = name.replace("_", "-")
        return first(f"{prefix}_{name}{suffix}", f"{prefix}-{other}{suffix}", f"{plain}_{name}{suffix}")

    metrics = [f"{name}_golden_report_metrics.json" for name in (prefix, plain)]
    metrics += [f"{report.stem}{ending}" for ending in ("_metrics.json", "-metrics.json", ".metrics.json")]
    return Golden(
        report, prefix, first(*metrics, f"{report.name}.metrics.json"), sidecar("anchor_facts", ".json"),
        sidecar("shallow", ".md"), bool(_VERSUS.search(prefix)),
    )  # fmt: skip


def prefix_of(rollouts: Path) -> str:
    """What a rollouts file is called beside its reports: its name without `_rollouts`."""
    stem = rollouts.name.partition(".jsonl")[0]
    return re.sub(r"[-_.]?rollouts?$", "", stem, flags=re.IGNORECASE) or stem


def rollouts_of(golden: Golden, rollouts: Sequence[Path], models: Sequence[str] = ()) -> Path | None:
    """The rollouts file that a golden report is about: by its own name, or by a name of its model."""
    for name in (golden.prefix, *models):
        wanted = slug(name)
        exact = [path for path in rollouts if wanted in (slug(prefix_of(path)), slug(path.stem))]
        near = [path for path in rollouts if slug(path.stem).startswith(f"{wanted}_")]
        if wanted and len(exact or near) == 1:
            return (exact or near)[0]
    return rollouts[0] if len(rollouts) == 1 and not golden.is_comparison else None


def own_rollouts(golden: Golden, package: Layout, models: Sequence[str] = ()) -> tuple[Path, ...]:
    """The rollouts of a golden report; what goes by the name of another golden report is not its own."""
    if golden.is_comparison:
        return sides_of(golden, package.rollouts) or package.rollouts
    others = {slug(other.prefix) for other in package.goldens if not other.is_comparison} - {slug(golden.prefix)}
    paths = [path for path in package.rollouts if slug(prefix_of(path)) not in others]
    path = rollouts_of(golden, paths, models)
    return () if path is None else (path,)


def sides_of(golden: Golden, rollouts: Sequence[Path]) -> tuple[Path, ...]:
    """The rollouts files of both sides of a comparison report, in its order; none if one is missing."""
    names = _VERSUS.split(golden.prefix)
    paths = [rollouts_of(replace(golden, prefix=name, is_comparison=True), rollouts) for name in names]
    return tuple(path for path in paths if path is not None) if None not in paths else ()


def models_in(data: Any) -> list[str]:
    """The names of the model in a sidecar or a file of anchors."""
    names = [data.get(key) for key in ("model_name", "model")] if isinstance(data, dict) else []
    return [name for name in names if isinstance(name, str) and name]


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file()) if folder.is_dir() else []


# -- words and patterns -----------------------------------------------------------------------------


@cache
def table() -> dict[str, Any]:
    """The words, patterns and queries that packages are checked and reports are judged by."""
    return tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))


@cache
def words_of(name: str) -> frozenset[str]:
    return frozenset(table()["words"][name].split())


@cache
def compiled(name: str) -> re.Pattern[str]:
    return re.compile("".join(table()["patterns"][name]))


# -- reading and writing ----------------------------------------------------------------------------


class Broken(Exception):
    """A file that cannot be read, with the reason in words."""


def read_text(path: Path) -> str:
    """A text file without its byte-order mark; line endings are one newline."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise Broken(f"cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_SIZE:
        raise Broken(f"has more than {MAX_SIZE:,} bytes")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Broken(f"is not UTF-8 (byte {error.start:,})") from error


def read_json(path: Path) -> Any:
    """The value of a JSON file."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise Broken(str(error) or "is nested too deeply") from error


def text_or_nothing(path: Path) -> str:
    """A text file that may be missing or broken."""
    with suppress(Broken):
        return read_text(path) if path.is_file() else ""
    return ""


def json_or_nothing(path: Path) -> Any:
    """The value of a JSON file that may be missing or broken; then an empty object."""
    with suppress(Broken):
        return read_json(path) if path.is_file() else {}
    return {}


def write_text(path: Path, content: str) -> None:
    """Write a text file; its folder is made, and no link is written through."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o666), "wb") as file:
        file.write(content.encode("utf-8"))


def is_finite(value: object) -> bool:
    """Whether a JSON value is a number that a float can hold."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def compact(value: object, limit: int = 60) -> str:
    """A JSON value in one short line, for a message; nothing in it can steer a terminal."""
    short = json.dumps(value, ensure_ascii=True, default=str)
    return short if len(short) <= limit else f"{short[: limit - 1]}…"


# -- drafts that nobody has touched -----------------------------------------------------------------

SEAL = "draft"  # the key of a JSON draft under which its own digest stands
_SEALED = re.compile(r"\n<!-- drafted: (?P<digest>[0-9a-f]{12}) -->\s*\Z")


def sealed(text: str) -> str:
    """A page with a last line by which it is known again as a draft that nobody has touched."""
    return f"{text}\n<!-- drafted: {_digest(text)} -->\n"


def sealed_json(data: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with its own digest."""
    plain = {key: value for key, value in data.items() if key != SEAL}
    return data | {SEAL: _digest(json.dumps(plain, sort_keys=True))}


def why_kept(path: Path, draft: str) -> str:
    """Why a file is not to be replaced by a draft made just now; empty: it may be."""
    if not path.is_file():
        return ""
    try:
        text = read_text(path)
    except Broken:
        return "is no draft of ours"
    if text == draft:
        return ""
    data = json_or_nothing(path)
    if isinstance(data, dict) and data:
        if data.get("review_required") is False:
            return "was reviewed"
        is_draft = data.get(SEAL) == sealed_json(data)[SEAL]
    else:
        hit = _SEALED.search(text)
        is_draft = hit is not None and hit["digest"] == _digest(text[: hit.start()])
    return "" if is_draft else "differs from what would be written"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
