"""Prepare benchmark datasets: run each one's script, check its rows, and leave a record beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from blade import __version__
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade_eval.prepare import place
from blade_eval.prepare.fetch import Context, digest
from blade_eval.prepare.script import DEFAULTS, Job, Limits, ran

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """One dataset to prepare: its script and rows as absolute paths, and what its manifest pins."""

    name: str
    script: Path
    root: Path  # the tree that the script belongs to
    output: Path
    work: Path  # where the script runs; its relative paths begin here
    pins: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class How:
    """What the user asked for, the same for every dataset."""

    cache: Path
    given: Path | None = None
    offline: bool = False
    again: bool = False
    keep: bool = False  # rows that are there already are left as they are
    partial: bool = False  # another number of rows than pinned is accepted, and recorded
    args: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = DEFAULTS


@dataclass(frozen=True)
class Prepared:
    """The rows of a dataset, and what is known of them."""

    name: str
    path: str
    rows: int
    sha256: str
    complete: bool | None  # as many rows as the benchmark has; None where nobody said how many
    cached: bool
    sources: list[dict[str, Any]]
    record: str


class Absent(NothingToRead):
    """Raw files are missing; `lacking` are the fields of each."""

    def __init__(self, name: str, lacking: list[dict[str, Any]]) -> None:
        super().__init__(*_told_missing(name, lacking), "prepare-missing-file")
        self.name, self.lacking = name, lacking


def prepared(wanted: Iterable[Wanted], how: How, tell: Tell) -> list[Prepared]:
    """Prepare each dataset in turn, after all scripts were found."""
    wanted = list(wanted)
    for one in wanted:
        if not one.script.is_file():
            raise UsageError(
                f"{one.name} has no prepare script at {one.script}",
                "correct prepare_script in its config; the path begins at the tree that holds benchmarks/",
                "prepare-no-script",
            )
    if how.given is not None and not how.given.exists():
        raise NothingToRead(
            f"{how.given} does not exist", "name the raw file, or the folder it is in", "no-such-path"
        )
    if how.given is not None and len({one.script for one in wanted}) > 1:
        names = ", ".join(one.name for one in wanted)
        raise UsageError(
            f"--from stands for one benchmark's raw file, and this prepares {names}",
            "prepare them one by one",
            "prepare-from-for-several",
        )
    made, absent = [], []
    for one in wanted:
        try:
            made.append(_one(one, how, tell))
        except Absent as error:  # who fetches files by hand wants the list of all at once
            absent.append(error)
        except BladeError:
            for text in (line for earlier in absent for line in earlier.message.splitlines()):
                tell(text)
            raise
    if absent:
        raise _together(absent)
    return made


def _one(one: Wanted, how: How, tell: Tell) -> Prepared:
    """The rows that are there where they were asked for and are the right ones, else new ones."""
    with ExitStack() as held:
        try:
            held.enter_context(place.alone(one.output, tell))
        except OSError as error:
            # rows where we may not write cannot be held, but they can be read
            if (kept := _cached(one, how, tell)) is not None:
                return kept
            raise _unwritable(one.output, error) from error
        return _cached(one, how, tell) or _made(one, how, tell)


def _cached(one: Wanted, how: How, tell: Tell) -> Prepared | None:
    """The rows that are there, if their record is theirs and they are what a run would make now."""
    if not how.keep or not one.output.is_file():
        return None
    known = place.recorded(one.output)
    why = _outdated(one, how, known)
    if why:
        tell(f"the rows of {one.name} that are there do not count: {why}")
        return None
    rows, sha256 = counted(one)
    sources = [_held(one, source) for source in known.get("sources", [])]
    try:
        complete = _complete(one, how, rows, sha256)
    except Unreadable as error:
        tell(f"{error.message}; preparing them again")
        return None
    if not all(_as_pinned(one, source) for source in sources):
        complete = False
    record = str(place.record_of(one.output))
    return Prepared(one.name, str(one.output), rows, sha256, complete, True, sources, record)


def _outdated(one: Wanted, how: How, known: Mapping[str, Any]) -> str:
    """Why the rows that are there are not what a run would make now, or nothing."""
    if how.given is not None:
        return "a raw file was given with --from"
    if not known:
        return "they have no record of how they were made"
    if not place.whole(one.output):
        return "they are not those of their record"
    if known.get("script_sha256") != digest(one.script):
        return "the prepare script is another one than theirs"
    if _spelled(known.get("prepare_script_args", {})) != _spelled(how.args):
        return "they were made with other prepare_script_args"
    for source in known.get("sources", []):
        if not how.partial and not _as_pinned(one, source):
            return f"they were made from another {source.get('name')} than the pinned one"
    return ""


def _as_pinned(one: Wanted, source: Mapping[str, Any]) -> bool:
    """Whether a file that rows were made from is the pinned one, as far as anything is pinned."""
    pin = (one.pins.get("files") or {}).get(source.get("name")) or {}
    what = "sha256" if pin.get("sha256") else "size"
    return source.get("pinned") is not False and pin.get(what) in (None, source.get(what))


def _held(one: Wanted, source: Mapping[str, Any]) -> dict[str, Any]:
    """What the record says of a file, held against what is pinned now, which may not have been then."""
    sha256 = ((one.pins.get("files") or {}).get(source.get("name")) or {}).get("sha256")
    return {**source, "pinned": sha256 == source.get("sha256")} if sha256 else dict(source)


def _spelled(args: Mapping[str, Any]) -> str:
    # as text, since 1 and True and 1.0 are equal
    return json.dumps(args, sort_keys=True, default=str)


def _made(one: Wanted, how: How, tell: Tell) -> Prepared:
    """Run the script; rows of an earlier run come back, with their record, if this one fails."""
    tell(f"Preparing benchmark: {one.name}")
    pins = one.pins.get("files") or {}
    context = Context(
        str(how.cache),
        str(how.given.absolute()) if how.given else None,
        how.offline,
        how.again,
        pins,
        len(pins) < 2,
        how.partial,
    )
    script_sha256 = digest(one.script)
    try:
        place.set_aside(one.output)
    except OSError as error:
        with suppress(OSError):  # what cannot be put right now is put right by the next run
            place.settled(one.output)
        raise _unwritable(one.output, error) from error
    done = False
    try:
        told = ran(Job(one.script, one.root, one.work, how.args, context, how.limits), tell)
        made = _checked(one, how, told)
        place.write_record(one.output, _record(one, how, made, script_sha256))
        for notice in _of_another(one, how, made.sources):
            tell(f"notice: {notice}")
        done = True
    finally:
        if done:
            place.cleared(one.output)
        else:
            place.taken_back(one.output)
    tell(f"Benchmark data prepared at: {one.output}")
    return made


def _checked(one: Wanted, how: How, told: Mapping[str, Any]) -> Prepared:
    if "path" not in told:
        raise failure(one, how, told)
    if Path(told["path"]).resolve() != one.output.resolve():
        raise _failed(one, f"its prepare() wrote {told['path']}, but the config says {one.output}")
    if not one.output.is_file():
        raise _failed(one, f"its prepare() returned {one.output}, which does not exist")
    rows, sha256 = counted(one)
    if not rows:
        raise _failed(one, f"its prepare() wrote no row to {one.output}")
    sources = list(told.get("sources", []))
    if how.given is not None and not any(source["from"] == "given" for source in sources):
        asked = ", ".join(source["name"] for source in sources) or "no file"
        raise UsageError(
            f"--from {how.given} was not used: the prepare script of {one.name} reads {asked}",
            "give the file under the name that the script asks for, or the folder that holds it",
            "prepare-from-unused",
        )
    complete = _complete(one, how, rows, sha256)
    if any(source.get("pinned") is False for source in sources):
        complete = False
    record = str(place.record_of(one.output))
    return Prepared(one.name, str(one.output), rows, sha256, complete, False, sources, record)


def _complete(one: Wanted, how: How, rows: int, sha256: str) -> bool | None:
    """Whether these are the rows of the benchmark; pins hold for the script called without arguments."""
    expected, pinned = one.pins.get("rows"), one.pins.get("sha256")
    if how.args or (expected is None and pinned is None):
        return None
    what, want, got = ("sha256", pinned, sha256) if pinned is not None else ("row count", expected, rows)
    if want == got:
        return True
    if how.partial:
        return False
    raise Unreadable(
        f"the rows of {one.name} have {what} {got}, but {want} is pinned in its manifest.yaml",
        "use the raw file of the pinned revision; --allow-partial takes the rows and records that",
        "prepare-checksum",
    )


def failure(one: Wanted, how: How, told: Mapping[str, Any]) -> BladeError:
    """The error for a script that brought no rows."""
    if "missing" in told:
        return Absent(one.name, told["missing"])
    if "mismatch" in told:
        return Unreadable(
            f"{one.name}: {told['mismatch']}",
            "fetch it again with --force, or supply the right file with --from (a part: --allow-partial)",
            "prepare-checksum",
        )
    if "limit" in told:
        most = {
            "time": f"{how.limits.wall_s:,} s",
            "CPU time": f"{how.limits.cpu_s:,} s",
            "memory": f"{how.limits.memory_bytes / 1e9:.1f} GB",
            "file size": f"{how.limits.file_bytes / 1e9:.1f} GB",
        }.get(told["limit"], "its share")
        return Unreadable(
            f"the prepare script of {one.name} needed more {told['limit']} than {most}; it was ended",
            "raise the limit with --timeout or --max-memory if the script deserves it",
            "prepare-limit",
        )
    if "unfit" in told:
        readme = one.script.with_name("README.md")
        return Unreadable(
            f"the raw data of {one.name} cannot be read: {told['unfit']}",
            "give the file that the benchmark is made from; its form is said by "
            f"{readme if readme.is_file() else one.script}",
            "prepare-failed",
        )
    return _failed(one, str(told.get("error", "it brought no result")))


def _told_missing(name: str, lacking: list[dict[str, Any]]) -> tuple[str, str]:
    """The message and the hint for what is missing to prepare one benchmark."""
    lines = []
    for file in lacking:
        known = [f"{file['size']:,} bytes"] if file.get("size") else []
        known += [f"sha256 {file['sha256']}"] if file.get("sha256") else []
        lines.append(
            f"  {file['name']}: {file['why']}\n    from {file['url']}" + "".join(f"\n    {k}" for k in known)
        )
        lines.append(f"    or put it at {file['place']}")
    several = len(lacking) > 1
    files = "these files are" if several else "a file is"
    given = "--from FOLDER that holds them under these names" if several else "--from FILE"
    return (
        f"{files} missing to prepare {name}:\n" + "\n".join(lines),
        f"fetch {'them' if several else 'it'} where there is a network, then give {given}, or copy "
        f"{'each' if several else 'it'} to the place named above",
    )


def _together(absent: list[Absent]) -> BladeError:
    """One error for all that is missing, whichever benchmark wants it."""
    if len(absent) == 1:
        return absent[0]
    return NothingToRead(
        "\n".join(error.message for error in absent),
        "fetch them where there is a network, then copy each to the place named above, or prepare these "
        "benchmarks one by one with --from",
        "prepare-missing-file",
    )


def _failed(one: Wanted, why: str) -> BladeError:
    return Unreadable(
        f"the prepare script of {one.name} failed: {why}",
        f"read its output above, and {one.script}",
        "prepare-failed",
    )


def _unwritable(path: Path, error: OSError) -> BladeError:
    return Unreadable(
        f"cannot write {path}: {error.strerror or error}",
        "run it in a folder of yours, or give the tree that holds the benchmark with --search-dir",
        "cannot-write",
    )


def counted(one: Wanted) -> tuple[int, str]:
    """How many rows the output has, and its SHA-256; a line that is no object fails the whole."""
    import msgspec

    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    rows, summed = 0, hashlib.sha256()
    with one.output.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            summed.update(line)
            if not line.strip():
                continue
            try:
                decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise _failed(one, f"line {number} of {one.output} is no JSON object: {error}") from error
            rows += 1
    return rows, summed.hexdigest()


def _record(one: Wanted, how: How, made: Prepared, script_sha256: str) -> dict[str, Any]:
    """What the rows are, where they came from, and what made them: enough to make them again."""
    return {
        "state": "prepared",
        "dataset": one.name,
        "rows": made.rows,
        "sha256": made.sha256,
        "complete": made.complete,
        "script_sha256": script_sha256,
        "prepare_script_args": dict(how.args),
        "sources": made.sources,
        "blade": __version__,
    }


def unknown(made: Prepared) -> list[str]:
    """A notice for each raw file of these rows that could not be held against a SHA-256."""
    return [
        f"{made.name}: {source['name']}: this file has no known checksum; the one that was read has sha256 "
        f"{source.get('sha256')}"
        for source in made.sources
        if source.get("pinned") is None
    ]


def as_json(made: Iterable[Prepared]) -> str:
    """The same for a program."""
    return json.dumps([asdict(one) for one in made], indent=2, ensure_ascii=False)


def manifest_pins(script: Path) -> Mapping[str, Any]:
    """What the manifest beside a script pins: `rows`, `sha256`, and `files` by name."""
    pins = _manifest(script).get("pins")
    return pins if isinstance(pins, Mapping) else {}


def _manifest(script: Path) -> Mapping[str, Any]:
    import yaml

    told: Any = None
    with suppress(OSError, UnicodeDecodeError, yaml.YAMLError):
        told = yaml.safe_load((script.parent / "manifest.yaml").read_text(encoding="utf-8"))
    return told if isinstance(told, Mapping) else {}


def misnamed(beside: Path) -> list[str]:
    """A notice if the manifest beside a script or config has another name than its folder."""
    name, folder = _manifest(beside).get("name"), beside.absolute().parent
    if name in (None, folder.name):
        return []
    return [f"{folder / 'manifest.yaml'} says `name: {name}`, but its folder is {folder.name}"]


def _of_another(one: Wanted, how: How, sources: Iterable[Mapping[str, Any]]) -> list[str]:
    """What in a manifest seems to be another benchmark's, as it is after copying one."""
    notices, manifest = misnamed(one.script), one.script.parent / "manifest.yaml"
    read = {source["name"] for source in sources}
    unread = [] if how.args else [str(file) for file in one.pins.get("files") or {} if file not in read]
    if unread:
        notices.append(f"{manifest} pins {', '.join(unread)}, which the prepare script does not read")
    return notices
