"""Prepare benchmark datasets: find and run each one's script, check its rows, keep their record beside them."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from blade import __version__
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade_eval.config import Dataset, Resolved, installed
from blade_eval.prepare.fetch import Context, digest
from blade_eval.prepare.script import DEFAULTS, Job, Limits, ran


def record_of(output: Path) -> Path:
    """Where the record of a dataset's rows is."""
    return output.with_name(f"{output.stem}_prepare.json")


def recorded(output: Path) -> dict[str, Any]:
    """The record of the rows, empty where there is none that can be read."""
    try:
        known = json.loads(record_of(output).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_record(output: Path, what: Mapping[str, Any]) -> None:
    """Write the record of the rows, whole or not at all."""
    _put(record_of(output), (json.dumps(what, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))


def is_whole(output: Path) -> bool:
    """Whether these are the rows that the record tells of: only then did the run that made them end well."""
    known = recorded(output)
    return known.get("state") == "prepared" and output.is_file() and known.get("sha256") == digest(output)


@contextmanager
def lock_output(output: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the output while it is worked on; another run waits, and what a killed one left is put right."""
    output.parent.mkdir(parents=True, exist_ok=True)
    # the file stays: were it removed, one run could hold the removed one and the next a new one
    with output.with_name(f".{output.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another run prepares {output}; waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        settled(output)
        yield


def set_aside(output: Path) -> None:
    """Make room for new rows. The copy of the record comes first: the rows aside are never without theirs."""
    if output.exists():
        if record_of(output).exists():
            _put(_set_aside_path(record_of(output)), record_of(output).read_bytes())
        os.replace(output, _set_aside_path(output))
    write_record(output, {"state": "preparing"})


def taken_back(output: Path) -> None:
    """Undo `set_aside`, and what was written since; a run killed in between does it again from the start."""
    if not _set_aside_path(output).exists():
        output.unlink(missing_ok=True)
        record_of(output).unlink(missing_ok=True)
        return
    if _set_aside_path(record_of(output)).exists():
        _put(record_of(output), _set_aside_path(record_of(output)).read_bytes())
    else:
        record_of(output).unlink(missing_ok=True)
    os.replace(_set_aside_path(output), output)
    cleared(output)


def cleared(output: Path) -> None:
    """Let go of what was set aside; rows first, as a record alone means nothing."""
    _set_aside_path(output).unlink(missing_ok=True)
    _set_aside_path(record_of(output)).unlink(missing_ok=True)


def settled(output: Path) -> None:
    """Put right what a killed run left: its rows if it had recorded them, else those it had set aside."""
    for partial in output.parent.glob(f".{glob.escape(output.name)}.*.partial"):
        partial.unlink(missing_ok=True)
    if _set_aside_path(output).exists() and not is_whole(output):
        taken_back(output)
    else:
        cleared(output)


def _set_aside_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.before")


def _put(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


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
    for wish in wanted:
        if not wish.script.is_file():
            raise UsageError(
                f"{wish.name} has no prepare script at {wish.script}",
                "correct prepare_script in its config; the path begins at the tree that holds benchmarks/",
                "prepare-no-script",
            )
    if how.given is not None and not how.given.exists():
        raise NothingToRead(
            f"{how.given} does not exist", "name the raw file, or the folder it is in", "no-such-path"
        )
    if how.given is not None and len({wish.script for wish in wanted}) > 1:
        names = ", ".join(wish.name for wish in wanted)
        raise UsageError(
            f"--from stands for one benchmark's raw file, and this prepares {names}",
            "prepare them one by one",
            "prepare-from-for-several",
        )
    rows_made, absent = [], []
    for wish in wanted:
        try:
            rows_made.append(_one(wish, how, tell))
        except Absent as error:  # who fetches files by hand wants the list of all at once
            absent.append(error)
        except BladeError:
            for text in (line for earlier in absent for line in earlier.message.splitlines()):
                tell(text)
            raise
    if absent:
        raise _together(absent)
    return rows_made


def _one(wish: Wanted, how: How, tell: Tell) -> Prepared:
    """The rows that are there where they were asked for and are the right ones, else new ones."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_output(wish.output, tell))
        except OSError as error:
            # rows where we may not write cannot be held, but they can be read
            if (there := _cached(wish, how, tell)) is not None:
                return there
            raise _unwritable(wish.output, error) from error
        return _cached(wish, how, tell) or _made(wish, how, tell)


def _cached(wish: Wanted, how: How, tell: Tell) -> Prepared | None:
    """The rows that are there, if their record is theirs and they are what a run would make now."""
    if not how.keep or not wish.output.is_file():
        return None
    known = recorded(wish.output)
    why = _outdated(wish, how, known)
    if why:
        tell(f"the rows of {wish.name} that are there do not count: {why}")
        return None
    rows, sha256 = counted(wish)
    sources = [_held(wish, source) for source in known.get("sources", [])]
    try:
        complete = _complete(wish, how, rows, sha256)
    except Unreadable as error:
        tell(f"{error.message}; preparing them again")
        return None
    if not all(_as_pinned(wish, source) for source in sources):
        complete = False
    record = str(record_of(wish.output))
    return Prepared(wish.name, str(wish.output), rows, sha256, complete, True, sources, record)


def _outdated(wish: Wanted, how: How, known: Mapping[str, Any]) -> str:
    """Why the rows that are there are not what a run would make now, or nothing."""
    if how.given is not None:
        return "a raw file was given with --from"
    if not known:
        return "they have no record of how they were made"
    if not is_whole(wish.output):
        return "they are not those of their record"
    if known.get("script_sha256") != digest(wish.script):
        return "the prepare script is another one than theirs"
    if _spelled(known.get("prepare_script_args", {})) != _spelled(how.args):
        return "they were made with other prepare_script_args"
    for source in known.get("sources", []):
        if not how.partial and not _as_pinned(wish, source):
            return f"they were made from another {source.get('name')} than the pinned one"
    return ""


def _as_pinned(wish: Wanted, source: Mapping[str, Any]) -> bool:
    """Whether a file that rows were made from is the pinned one, as far as anything is pinned."""
    pin = (wish.pins.get("files") or {}).get(source.get("name")) or {}
    what = "sha256" if pin.get("sha256") else "size"
    return source.get("pinned") is not False and pin.get(what) in (None, source.get(what))


def _held(wish: Wanted, source: Mapping[str, Any]) -> dict[str, Any]:
    """What the record says of a file, held against what is pinned now, which may not have been then."""
    sha256 = ((wish.pins.get("files") or {}).get(source.get("name")) or {}).get("sha256")
    return {**source, "pinned": sha256 == source.get("sha256")} if sha256 else dict(source)


def _spelled(args: Mapping[str, Any]) -> str:
    # as text, since 1 and True and 1.0 are equal
    return json.dumps(args, sort_keys=True, default=str)


def _made(wish: Wanted, how: How, tell: Tell) -> Prepared:
    """Run the script; rows of an earlier run come back, with their record, if this one fails."""
    tell(f"Preparing benchmark: {wish.name}")
    pins = wish.pins.get("files") or {}
    context = Context(
        str(how.cache),
        str(how.given.absolute()) if how.given else None,
        how.offline,
        how.again,
        pins,
        len(pins) < 2,
        how.partial,
    )
    script_sha256 = digest(wish.script)
    try:
        set_aside(wish.output)
    except OSError as error:
        with suppress(OSError):  # what cannot be put right now is put right by the next run
            settled(wish.output)
        raise _unwritable(wish.output, error) from error
    done = False
    try:
        result = ran(Job(wish.script, wish.root, wish.work, how.args, context, how.limits), tell)
        rows_made = _checked(wish, how, result)
        write_record(wish.output, _record(wish, how, rows_made, script_sha256))
        for notice in _of_another(wish, how, rows_made.sources):
            tell(f"notice: {notice}")
        done = True
    finally:
        if done:
            cleared(wish.output)
        else:
            taken_back(wish.output)
    tell(f"Benchmark data prepared at: {wish.output}")
    return rows_made


def _checked(wish: Wanted, how: How, result: Mapping[str, Any]) -> Prepared:
    if "path" not in result:
        raise failure(wish, how, result)
    if Path(result["path"]).resolve() != wish.output.resolve():
        raise _failed(wish, f"its prepare() wrote {result['path']}, but the config says {wish.output}")
    if not wish.output.is_file():
        raise _failed(wish, f"its prepare() returned {wish.output}, which does not exist")
    rows, sha256 = counted(wish)
    if not rows:
        raise _failed(wish, f"its prepare() wrote no row to {wish.output}")
    sources = list(result.get("sources", []))
    if how.given is not None and not any(source["from"] == "given" for source in sources):
        names = ", ".join(source["name"] for source in sources) or "no file"
        raise UsageError(
            f"--from {how.given} was not used: the prepare script of {wish.name} reads {names}",
            "give the file under the name that the script asks for, or the folder that holds it",
            "prepare-from-unused",
        )
    complete = _complete(wish, how, rows, sha256)
    if any(source.get("pinned") is False for source in sources):
        complete = False
    record = str(record_of(wish.output))
    return Prepared(wish.name, str(wish.output), rows, sha256, complete, False, sources, record)


def _complete(wish: Wanted, how: How, rows: int, sha256: str) -> bool | None:
    """Whether these are the rows of the benchmark; pins hold for the script called without arguments."""
    expected, pinned = wish.pins.get("rows"), wish.pins.get("sha256")
    if how.args or (expected is None and pinned is None):
        return None
    what, want, got = ("sha256", pinned, sha256) if pinned is not None else ("row count", expected, rows)
    if want == got:
        return True
    if how.partial:
        return False
    raise Unreadable(
        f"the rows of {wish.name} have {what} {got}, but {want} is pinned in its manifest.yaml",
        "use the raw file of the pinned revision; --allow-partial takes the rows and records that",
        "prepare-checksum",
    )


def failure(wish: Wanted, how: How, result: Mapping[str, Any]) -> BladeError:
    """The error for a script that brought no rows."""
    if "missing" in result:
        return Absent(wish.name, result["missing"])
    if "mismatch" in result:
        return Unreadable(
            f"{wish.name}: {result['mismatch']}",
            "fetch it again with --force, or supply the right file with --from (a part: --allow-partial)",
            "prepare-checksum",
        )
    if "limit" in result:
        most = {
            "time": f"{how.limits.wall_s:,} s",
            "CPU time": f"{how.limits.cpu_s:,} s",
            "memory": f"{how.limits.memory_bytes / 1e9:.1f} GB",
            "file size": f"{how.limits.file_bytes / 1e9:.1f} GB",
        }.get(result["limit"], "its share")
        return Unreadable(
            f"the prepare script of {wish.name} needed more {result['limit']} than {most}; it was ended",
            "raise the limit with --timeout or --max-memory if the script deserves it",
            "prepare-limit",
        )
    if "unfit" in result:
        readme = wish.script.with_name("README.md")
        return Unreadable(
            f"the raw data of {wish.name} cannot be read: {result['unfit']}",
            "give the file that the benchmark is made from; its form is said by "
            f"{readme if readme.is_file() else wish.script}",
            "prepare-failed",
        )
    return _failed(wish, str(result.get("error", "it brought no result")))


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
    option = "--from FOLDER that holds them under these names" if several else "--from FILE"
    return (
        f"{files} missing to prepare {name}:\n" + "\n".join(lines),
        f"fetch {'them' if several else 'it'} where there is a network, then give {option}, or copy "
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


def _failed(wish: Wanted, why: str) -> BladeError:
    return Unreadable(
        f"the prepare script of {wish.name} failed: {why}",
        f"read its output above, and {wish.script}",
        "prepare-failed",
    )


def _unwritable(path: Path, error: OSError) -> BladeError:
    return Unreadable(
        f"cannot write {path}: {error.strerror or error}",
        "run it in a folder of yours, or give the tree that holds the benchmark with --search-dir",
        "cannot-write",
    )


def counted(wish: Wanted) -> tuple[int, str]:
    """How many rows the output has, and its SHA-256; a line that is no object fails the whole."""
    import msgspec

    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    rows, summed = 0, hashlib.sha256()
    with wish.output.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            summed.update(line)
            if not line.strip():
                continue
            try:
                decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise _failed(wish, f"line {number} of {wish.output} is no JSON object: {error}") from error
            rows += 1
    return rows, summed.hexdigest()


def _record(wish: Wanted, how: How, rows_made: Prepared, script_sha256: str) -> dict[str, Any]:
    """What the rows are, where they came from, and what made them: enough to make them again."""
    return {
        "state": "prepared",
        "dataset": wish.name,
        "rows": rows_made.rows,
        "sha256": rows_made.sha256,
        "complete": rows_made.complete,
        "script_sha256": script_sha256,
        "prepare_script_args": dict(how.args),
        "sources": rows_made.sources,
        "blade": __version__,
    }


def unknown(rows_made: Prepared) -> list[str]:
    """A notice for each raw file of these rows that could not be held against a SHA-256."""
    return [
        f"{rows_made.name}: {source['name']}: this file has no known checksum; the one that was read has sha256 "
        f"{source.get('sha256')}"
        for source in rows_made.sources
        if source.get("pinned") is None
    ]


def as_json(rows_made: Iterable[Prepared]) -> str:
    """The same for a program."""
    return json.dumps([asdict(wish) for wish in rows_made], indent=2, ensure_ascii=False)


def manifest_pins(script: Path) -> Mapping[str, Any]:
    """What the manifest beside a script pins: `rows`, `sha256`, and `files` by name."""
    pins = _manifest(script).get("pins")
    return pins if isinstance(pins, Mapping) else {}


def _manifest(script: Path) -> Mapping[str, Any]:
    import yaml

    manifest: Any = None
    with suppress(OSError, UnicodeDecodeError, yaml.YAMLError):
        manifest = yaml.safe_load((script.parent / "manifest.yaml").read_text(encoding="utf-8"))
    return manifest if isinstance(manifest, Mapping) else {}


def misnamed(beside: Path) -> list[str]:
    """A notice if the manifest beside a script or config has another name than its folder."""
    name, folder = _manifest(beside).get("name"), beside.absolute().parent
    if name in (None, folder.name):
        return []
    return [f"{folder / 'manifest.yaml'} says `name: {name}`, but its folder is {folder.name}"]


def _of_another(wish: Wanted, how: How, sources: Iterable[Mapping[str, Any]]) -> list[str]:
    """What in a manifest seems to be another benchmark's, as it is after copying one."""
    notices, manifest = misnamed(wish.script), wish.script.parent / "manifest.yaml"
    read = {source["name"] for source in sources}
    unread = [] if how.args else [str(file) for file in wish.pins.get("files") or {} if file not in read]
    if unread:
        notices.append(f"{manifest} pins {', '.join(unread)}, which the prepare script does not read")
    return notices


def wanted_of(resolved: Resolved, folder: Path | None = None) -> list[Wanted]:
    """Every dataset with a prepare script, each output once; rows go beside the definition they belong to."""
    folder = Path.cwd() if folder is None else folder
    chosen: dict[Path, Wanted] = {}
    for dataset in resolved.datasets:
        if dataset.prepare_script and dataset.jsonl_fpath:
            wish = _wanted_of(dataset, resolved.roots, folder)
            chosen.setdefault(wish.output, wish)
    if not chosen:
        names = ", ".join(dataset.name for dataset in resolved.datasets) or "none at all"
        raise UsageError(
            f"no dataset with a prepare_script was found; datasets: {names}",
            "name a benchmark with --benchmark; `blade list benchmarks` prints them",
            "prepare-nothing",
        )
    return list(chosen.values())


def arguments(resolved: Resolved) -> Mapping[str, Any]:
    """The override `prepare_script_args`, a mapping of what `prepare()` is called with."""
    args = resolved.tree.get("prepare_script_args") or {}
    if not isinstance(args, Mapping):
        raise UsageError(
            f"prepare_script_args is {args!r}, not a mapping",
            "write ++prepare_script_args.NAME=VALUE, or ++prepare_script_args={NAME: VALUE}",
            "bad-override",
        )
    return {str(name): value for name, value in args.items()}


def is_cached(resolved: Resolved) -> bool:
    """The override `use_cached_prepared_benchmarks`."""
    return bool(resolved.tree.get("use_cached_prepared_benchmarks"))


def _wanted_of(dataset: Dataset, roots: Sequence[Path], folder: Path) -> Wanted:
    relative = Path(str(dataset.prepare_script))
    root = next((root for root in roots if (root / relative).is_file()), folder)
    script = (root / relative).absolute()
    work = root if _ours(root, script) else folder
    output = (work / str(dataset.jsonl_fpath)).absolute()
    return Wanted(dataset.name, script, root.absolute(), output, work.absolute(), manifest_pins(script))


def _ours(root: Path, script: Path) -> bool:
    """Whether data may be written into this tree: not into an installed package, nor where we may not."""
    package = Path(__file__).resolve().parents[1]
    if root.resolve() == installed() and root.resolve().is_relative_to(package):
        return False
    return os.access(script.parent if script.parent.is_dir() else root, os.W_OK)
