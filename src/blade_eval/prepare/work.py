"""Prepare benchmark datasets: run each one's script in a process of its own, check its rows, keep their record."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from blade import __version__
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade_eval.config import Resolved, installed
from blade_eval.prepare.fetch import CONTEXT, Context, digest, noted

Tell = Callable[[str], None]


# -- the rows and their record --------------------------------------------------------------------


def record_of(output: Path) -> Path:
    return output.with_name(f"{output.stem}_prepare.json")


def recorded(output: Path) -> dict[str, Any]:
    """The record of the rows, empty where there is none that can be read."""
    return noted(record_of(output))


def write_record(output: Path, what: Mapping[str, Any]) -> None:
    """Write the record of the rows, whole or not at all."""
    path = record_of(output)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(what, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def is_whole(output: Path) -> bool:
    """Whether these are the rows that the record tells of: only then did the run that made them end well."""
    known = recorded(output)
    return known.get("state") == "prepared" and output.is_file() and known.get("sha256") == digest(output)


@contextmanager
def lock_output(output: Path, tell: Tell) -> Iterator[None]:
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
    """Make room for new rows. The record of those that are aside stands within that of the new ones."""
    before = recorded(output) if output.exists() else {}
    if output.exists():
        os.replace(output, _aside(output))
    write_record(output, {"state": "preparing", **({"before": before} if before else {})})


def taken_back(output: Path) -> None:
    """Undo `set_aside`, and what was written since; a run killed in between does it again from the start."""
    known = recorded(output)
    if known.get("state") == "preparing":  # otherwise it is back already
        if known.get("before"):
            write_record(output, known["before"])
        else:
            record_of(output).unlink(missing_ok=True)
    if _aside(output).exists():
        os.replace(_aside(output), output)
    else:
        output.unlink(missing_ok=True)


def settled(output: Path) -> None:
    """Put right what a killed run left: its rows if it had recorded them, else those it had set aside."""
    for partial in output.parent.glob(f".{glob.escape(output.name)}.*.partial"):
        partial.unlink(missing_ok=True)
    if _aside(output).exists() and not is_whole(output):
        taken_back(output)
    else:
        _aside(output).unlink(missing_ok=True)


def _aside(output: Path) -> Path:
    return output.with_name(f".{output.name}.before")


# -- one dataset after another --------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """One dataset to prepare: its script and rows as absolute paths, and what its manifest pins."""

    name: str
    script: Path
    root: Path  # the tree that the script belongs to
    output: Path
    work: Path  # where the script runs; its relative paths begin here
    pins: Mapping[str, Any] = field(default_factory=dict)

    def pin(self, file: Any) -> Mapping[str, Any]:
        return (self.pins.get("files") or {}).get(file) or {}

    def unwritable(self, error: OSError) -> BladeError:
        hint = "run it in a folder of yours, or give the tree that holds the benchmark with --search-dir"
        return Unreadable(f"cannot write {self.output}: {error.strerror or error}", hint, "cannot-write")

    def failed(self, why: str) -> BladeError:
        hint = f"read its output above, and {self.script}"
        return Unreadable(f"the prepare script of {self.name} failed: {why}", hint, "prepare-failed")


@dataclass(frozen=True)
class Limits:
    """What one script may use."""

    wall_s: int = 3600
    cpu_s: int = 1800
    memory_bytes: int = 8 << 30
    file_bytes: int = 8 << 30


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
    limits: Limits = Limits()


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
        lines = []
        for file in lacking:
            lines += [f"  {file['name']}: {file['why']}", f"    from {file['url']}"]
            lines += [f"    {file['size']:,} bytes"] if file.get("size") else []
            lines += [f"    sha256 {file['sha256']}"] if file.get("sha256") else []
            lines.append(f"    or put it at {file['place']}")
        files, them, option, each = (
            ("these files are", "them", "--from FOLDER that holds them under these names", "each")
            if len(lacking) > 1
            else ("a file is", "it", "--from FILE", "it")
        )
        hint = f"fetch {them} where there is a network, then give {option}, or copy {each} to the place named above"
        what = f"{files} missing to prepare {name}:\n" + "\n".join(lines)
        super().__init__(what, hint, "prepare-missing-file")
        self.name, self.lacking = name, lacking


def prepared(wanted: Iterable[Wanted], how: How, tell: Tell) -> list[Prepared]:
    """Prepare each dataset in turn, after all scripts were found."""
    wanted = list(wanted)
    for wish in wanted:
        if not wish.script.is_file():
            what = f"{wish.name} has no prepare script at {wish.script}"
            hint = "correct prepare_script in its config; the path begins at the tree that holds benchmarks/"
            raise UsageError(what, hint, "prepare-no-script")
    if how.given is not None and not how.given.exists():
        hint = "name the raw file, or the folder it is in"
        raise NothingToRead(f"{how.given} does not exist", hint, "no-such-path")
    if how.given is not None and len({wish.script for wish in wanted}) > 1:
        what = f"--from stands for one benchmark's raw file, and this prepares {', '.join(wish.name for wish in wanted)}"
        raise UsageError(what, "prepare them one by one", "prepare-from-for-several")
    results: list[Prepared] = []
    absent: list[Absent] = []
    for wish in wanted:
        try:
            results.append(_prepared(wish, how, tell))
        except Absent as error:  # who fetches files by hand wants the list of all at once
            absent.append(error)
        except BladeError:
            for text in (line for earlier in absent for line in earlier.message.splitlines()):
                tell(text)
            raise
    if len(absent) == 1:
        raise absent[0]
    if absent:
        hint = "fetch them where there is a network, then copy each to the place named above, or prepare these "
        hint += "benchmarks one by one with --from"
        raise NothingToRead("\n".join(error.message for error in absent), hint, "prepare-missing-file")
    return results


def _prepared(wish: Wanted, how: How, tell: Tell) -> Prepared:
    """The rows that are there where they were asked for and are the right ones, else new ones."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_output(wish.output, tell))
        except OSError as error:
            # rows where we may not write cannot be held, but they can be read
            if (rows := _cached(wish, how, tell)) is not None:
                return rows
            raise wish.unwritable(error) from error
        return _cached(wish, how, tell) or _made(wish, how, tell)


def _cached(wish: Wanted, how: How, tell: Tell) -> Prepared | None:
    """The rows that are there, if their record is theirs and they are what a run would make now."""
    if not how.keep or not wish.output.is_file():
        return None
    known = recorded(wish.output)
    if why := _outdated(wish, how, known):
        tell(f"the rows of {wish.name} that are there do not count: {why}")
        return None
    sources = []
    for source in known.get("sources", []):  # checked against what is pinned now, which may not have been then
        sha256 = wish.pin(source.get("name")).get("sha256")
        sources.append({**source, "pinned": sha256 == source.get("sha256")} if sha256 else dict(source))
    try:
        return _counted(wish, how, sources, True)
    except Unreadable as error:
        if error.slug == "prepare-failed":
            raise
        tell(f"{error.message}; preparing them again")
        return None


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
    # as text, since 1 and True and 1.0 are equal
    old, new = (
        json.dumps(args, sort_keys=True, default=str) for args in (known.get("prepare_script_args", {}), how.args)
    )
    if old != new:
        return "they were made with other prepare_script_args"
    for source in known.get("sources", []):
        if not how.partial and not _as_pinned(wish, source):
            return f"they were made from another {source.get('name')} than the pinned one"
    return ""


def _as_pinned(wish: Wanted, source: Mapping[str, Any]) -> bool:
    """Whether a file that rows were made from is the pinned one, as far as anything is pinned."""
    pin = wish.pin(source.get("name"))
    what = "sha256" if pin.get("sha256") else "size"
    return source.get("pinned") is not False and pin.get(what) in (None, source.get(what))


def _made(wish: Wanted, how: How, tell: Tell) -> Prepared:
    """Run the script; rows of an earlier run come back, with their record, if this one fails."""
    tell(f"Preparing benchmark: {wish.name}")
    pins = wish.pins.get("files") or {}
    raw = str(how.given.absolute()) if how.given else None
    context = Context(str(how.cache), raw, how.offline, how.again, pins, len(pins) < 2, how.partial)
    script_sha256 = digest(wish.script)
    try:
        set_aside(wish.output)
    except OSError as error:
        with suppress(OSError):  # what cannot be put right now is put right by the next run
            settled(wish.output)
        raise wish.unwritable(error) from error
    is_done = False
    try:
        result = ran(wish, how, context, tell)
        rows = _checked(wish, how, result)
        record = {"state": "prepared", "dataset": wish.name, "rows": rows.rows, "sha256": rows.sha256}
        record |= {"complete": rows.complete, "script_sha256": script_sha256}
        record |= {"prepare_script_args": dict(how.args), "sources": rows.sources, "blade": __version__}
        # a manifest that was copied from another benchmark's
        files = {source["name"] for source in rows.sources}
        unread = [] if how.args else [str(file) for file in wish.pins.get("files") or {} if file not in files]
        what = f"{wish.script.parent / 'manifest.yaml'} pins {', '.join(unread)}, which the prepare script does not read"
        for notice in misnamed(wish.script) + ([what] if unread else []):
            tell(f"notice: {notice}")
        write_record(wish.output, record)
        is_done = True
    finally:
        if not is_done:
            taken_back(wish.output)
    _aside(wish.output).unlink(missing_ok=True)
    tell(f"Benchmark data prepared at: {wish.output}")
    return rows


def _checked(wish: Wanted, how: How, result: Mapping[str, Any]) -> Prepared:
    if "path" not in result:
        raise failure(wish, how, result)
    if Path(result["path"]).resolve() != wish.output.resolve():
        raise wish.failed(f"its prepare() wrote {result['path']}, but the config says {wish.output}")
    if not wish.output.is_file():
        raise wish.failed(f"its prepare() returned {wish.output}, which does not exist")
    sources = list(result.get("sources", []))
    if how.given is not None and not any(source["from"] == "given" for source in sources):
        names = ", ".join(source["name"] for source in sources) or "no file"
        what = f"--from {how.given} was not used: the prepare script of {wish.name} reads {names}"
        hint = "give the file under the name that the script asks for, or the folder that holds it"
        raise UsageError(what, hint, "prepare-from-unused")
    rows = _counted(wish, how, sources, False)
    if not rows.rows:
        raise wish.failed(f"its prepare() wrote no row to {wish.output}")
    return rows


def _counted(wish: Wanted, how: How, sources: list[dict[str, Any]], is_cached: bool) -> Prepared:
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
                raise wish.failed(f"line {number} of {wish.output} is no JSON object: {error}") from error
            rows += 1
    sha256 = summed.hexdigest()
    is_complete = _complete(wish, how, rows, sha256) if rows else None
    if not all(source.get("pinned") is not False and (not is_cached or _as_pinned(wish, source)) for source in sources):
        is_complete = False
    record = str(record_of(wish.output))
    return Prepared(wish.name, str(wish.output), rows, sha256, is_complete, is_cached, sources, record)


def _complete(wish: Wanted, how: How, rows: int, sha256: str) -> bool | None:
    """Whether these are the rows of the benchmark; pins hold for the script called without arguments."""
    expected, pinned = wish.pins.get("rows"), wish.pins.get("sha256")
    if how.args or (expected is None and pinned is None):
        return None
    name, want, got = ("row count", expected, rows) if pinned is None else ("sha256", pinned, sha256)
    if want == got or how.partial:
        return bool(want == got)
    what = f"the rows of {wish.name} have {name} {got}, but {want} is pinned in its manifest.yaml"
    hint = "use the raw file of the pinned revision; --allow-partial takes the rows and records that"
    raise Unreadable(what, hint, "prepare-checksum")


def failure(wish: Wanted, how: How, result: Mapping[str, Any]) -> BladeError:
    if "missing" in result:
        return Absent(wish.name, result["missing"])
    if "mismatch" in result:
        hint = "fetch it again with --force, or supply the right file with --from (a part: --allow-partial)"
        return Unreadable(f"{wish.name}: {result['mismatch']}", hint, "prepare-checksum")
    if "limit" in result:
        limits = how.limits
        most = {
            "time": f"{limits.wall_s:,} s", "CPU time": f"{limits.cpu_s:,} s",
            "memory": f"{limits.memory_bytes / 1e9:.1f} GB", "file size": f"{limits.file_bytes / 1e9:.1f} GB",
        }.get(result["limit"], "its share")  # fmt: skip
        what = f"the prepare script of {wish.name} needed more {result['limit']} than {most}; it was ended"
        hint = "raise the limit with --timeout or --max-memory if the script deserves it"
        return Unreadable(what, hint, "prepare-limit")
    if "unfit" in result:
        readme = wish.script.with_name("README.md")
        hint = "give the file that the benchmark is made from; its form is said by "
        hint += f"{readme if readme.is_file() else wish.script}"
        what = f"the raw data of {wish.name} cannot be read: {result['unfit']}"
        return Unreadable(what, hint, "prepare-failed")
    return wish.failed(str(result.get("error", "it brought no result")))


# -- the script's process: limited, without our secrets, ended as a whole --------------------------

# What a script may need of our environment: to find programs and a home, to get through a proxy, to log in at
# a dataset hub. Everything else, keys of model servers above all, stays here.
_PASSED = frozenset(
    "PATH HOME USER LANG LANGUAGE TZ TMPDIR PYTHONPATH VIRTUAL_ENV LD_LIBRARY_PATH XDG_CACHE_HOME "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HUGGING_FACE_HUB_TOKEN "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY".split()
)
_PASSED_STARTS = ("LC_", "HF_")
_MERCY_S = 10.0  # for the warden, to end all that the script started before it is ended itself
_LINE_MOST = 4000


def ran(wish: Wanted, how: How, context: Context, tell: Tell) -> dict[str, Any]:
    """Run the script and pass on each line it prints; what its process said at the end, or what ended it."""
    with tempfile.TemporaryDirectory(prefix="blade-prepare-") as folder:
        job_file, result_file = Path(folder, "job.json"), Path(folder, "result.json")
        document: dict[str, Any] = {"script": str(wish.script), "root": str(wish.root), "args": dict(how.args)}
        document |= {"limits": asdict(how.limits), "runner": os.getpid()}
        job_file.write_text(json.dumps(document), encoding="utf-8")
        process = subprocess.Popen(
            # -P: without it a json.py in the folder would stand in for Python's own
            [sys.executable, "-P", "-m", "blade_eval.prepare.child", str(job_file), str(result_file)],
            cwd=wish.work, env=environment(os.environ, context), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            in_time = _listened(process, time.monotonic() + how.limits.wall_s, tell)
        finally:
            _ended(process)
        if not in_time:
            return {"limit": "time"}
        with suppress(OSError, ValueError):
            result: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
            return result
    if process.returncode == -signal.SIGXCPU:
        return {"limit": "CPU time"}
    if process.returncode < 0:
        return {"error": f"its process was ended by {signal.Signals(-process.returncode).name}"}
    return {"error": f"its process ended with code {process.returncode} without a result"}


def environment(ours: Mapping[str, str], context: Context) -> dict[str, str]:
    """The environment of a script: what it may need of ours, and its context."""
    names = [name for name in ours if name.upper() in _PASSED or name.upper().startswith(_PASSED_STARTS)]
    passed = {name: ours[name] for name in names}
    return {**passed, "PYTHONUNBUFFERED": "1", CONTEXT: json.dumps(asdict(context))}


def _listened(process: subprocess.Popen[bytes], until: float, tell: Tell) -> bool:
    """Pass on what it prints until it ends; False if its time ran out first."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    rest = b""
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < until:
            heard = ready.select(timeout=min(0.2, max(0.0, until - time.monotonic())))
            piece = os.read(pipe, 1 << 16) if heard else b""
            # an end of the pipe, or silence after the process ended: what it started may hold the pipe open
            if not piece and (heard or process.poll() is not None):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=max(0.0, until - time.monotonic()))
                _pass_on(rest, tell)
                return process.poll() is not None
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                _pass_on(line, tell)
            if len(rest) > _LINE_MOST:
                _pass_on(rest, tell)
                rest = b""
    return False


def _pass_on(line: bytes, tell: Tell) -> None:
    text = line.decode("utf-8", "replace").rstrip()
    if text:
        tell(text[:_LINE_MOST])


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End the warden if it still runs, which ends the rest; then whatever is left of the group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_MERCY_S)
    if process.stdout is not None:
        process.stdout.close()


# -- what is told, and what is wanted -------------------------------------------------------------


def unknown(rows: Prepared) -> list[str]:
    """A notice for each raw file of these rows that could not be checked against a SHA-256."""
    return [
        f"{rows.name}: {source['name']}: this file has no known checksum; the one that was read has sha256 "
        f"{source.get('sha256')}"
        for source in rows.sources
        if source.get("pinned") is None
    ]


def as_json(results: Iterable[Prepared]) -> str:
    return json.dumps([asdict(rows) for rows in results], indent=2, ensure_ascii=False)


def manifest_pins(script: Path) -> Mapping[str, Any]:
    """What the manifest beside a script pins: `rows`, `sha256`, and `files` by name."""
    pins = _manifest(script).get("pins")
    return pins if isinstance(pins, Mapping) else {}


def _manifest(script: Path) -> Mapping[str, Any]:
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


def wanted_of(resolved: Resolved, folder: Path | None = None) -> list[Wanted]:
    """Every dataset with a prepare script, each output once; rows go beside the definition they belong to."""
    folder = Path.cwd() if folder is None else folder
    package = Path(__file__).resolve().parents[1]
    chosen: dict[Path, Wanted] = {}
    for dataset in (entry for entry in resolved.datasets if entry.prepare_script and entry.jsonl_fpath):
        relative = Path(str(dataset.prepare_script))
        root = next((root for root in resolved.roots if (root / relative).is_file()), folder)
        script = (root / relative).absolute()
        # data is not written into an installed package, nor where we may not
        is_shipped = root.resolve() == installed() and root.resolve().is_relative_to(package)
        is_ours = not is_shipped and os.access(script.parent if script.parent.is_dir() else root, os.W_OK)
        work = root if is_ours else folder
        output = (work / str(dataset.jsonl_fpath)).absolute()
        wish = Wanted(dataset.name, script, root.absolute(), output, work.absolute(), manifest_pins(script))
        chosen.setdefault(output, wish)
    if not chosen:
        names = ", ".join(dataset.name for dataset in resolved.datasets) or "none at all"
        what = f"no dataset with a prepare_script was found; datasets: {names}"
        hint = "name a benchmark with --benchmark; `blade list benchmarks` prints them"
        raise UsageError(what, hint, "prepare-nothing")
    return list(chosen.values())


def arguments(resolved: Resolved) -> Mapping[str, Any]:
    """The override `prepare_script_args`, a mapping of what `prepare()` is called with."""
    args = resolved.tree.get("prepare_script_args") or {}
    if not isinstance(args, Mapping):
        hint = "write ++prepare_script_args.NAME=VALUE, or ++prepare_script_args={NAME: VALUE}"
        raise UsageError(f"prepare_script_args is {args!r}, not a mapping", hint, "bad-override")
    return {str(name): value for name, value in args.items()}


def is_cached(resolved: Resolved) -> bool:
    return bool(resolved.tree.get("use_cached_prepared_benchmarks"))
