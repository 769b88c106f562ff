"""`blade sanitize`: replace private values in files by placeholders; redact a report or a row for other commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

import click

from blade.cli.options import force_option, json_option, output_option
from blade.cli.output import exit_failed, put, refuse_unwritable
from blade.errors import EXIT_NOTHING, EXIT_UNREADABLE, NothingToRead, UsageError
from blade.hostile import line
from blade.targets import link_in, put_text, refuse_taken, settled, staging

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline import Loaded, Session
    from blade.pipeline.model_reading import Clean
    from blade.sanitize import Key, Policy, Redactor, Removed

KEY = click.option("--key", "key_path", metavar="FILE", help="The key of the placeholders (default: your own).")
REPORT = click.option("--report", "report_path", metavar="FILE", help="Write what was removed, and where, as JSON.")


@click.command(short_help="Take secrets, names, hosts and homes out before sharing.")
@click.argument("files", nargs=-1, metavar="FILE...")
@output_option("Where the clean files go.", default="sanitized", show_default=True)
@KEY
@click.option("--policy", "policy_path", metavar="FILE", help="A blade.toml with [sharing] (default: beside FILE).")
@REPORT
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if something would be removed.")
@json_option("Print what was removed as JSON.")
@force_option("Write over files that are there.")
def sanitize(
    files: tuple[str, ...], output: str, key_path: str | None, policy_path: str | None, report_path: str | None,
    only_check: bool, as_json: bool, force: bool,
) -> None:  # fmt: skip
    """Write each FILE into DIR without secrets, e-mail addresses, user and host names and home paths.

    FILE is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a report (.md, .html, .json), a folder, or - for
    standard input, whose clean text goes to standard output. The same value becomes the same placeholder
    everywhere, made with a key that stays with you. Rewards and ids stay as they are; rows change in no
    other byte.
    """
    from blade.sanitize import as_json as removed_as_json
    from blade.sanitize import clean_files, own_key, policy_near, read_key, read_policy
    from blade.sanitize.files import looked

    is_piped = "-" in files
    paths = settled([Path(file) for file in files]) if not is_piped else [Path(file) for file in files]
    _refuse(paths, is_piped, as_json and not only_check)
    policy = read_policy(Path(policy_path)) if policy_path else policy_near(paths)
    named = read_key(Path(key_path)) if key_path else None
    key = None if only_check else named or own_key()
    hits = {} if is_piped else _hits(paths, None if only_check else Path(output))
    pairs = _pairs(hits, Path(output), policy, key) if key else [(file, file) for file in hits]
    if report_path:
        settings = settings_of(paths, key_path, policy_path)
        refuse_taken(Path(report_path), force, [*settings, *(path for pair in pairs for path in pair)])
        refuse_unwritable(Path(report_path).parent)
    if is_piped:
        removed = _piped(policy, key)
    elif key is None:
        removed = looked(hits, policy, hits, key=named)
    else:
        removed = clean_files(pairs, Path(output), key, policy, force)
    if report_path:
        put(lambda: put_text(Path(report_path), removed_as_json(removed), force), Path(report_path))
    if as_json:
        click.echo(removed_as_json(removed), nl=False)
    else:
        click.echo(_page(removed, None if is_piped else output, only_check), nl=False, err=is_piped)
    for file in removed.unread:
        click.echo(f"warning: {line(file)} was left out: it {removed.left_out[file]}", err=True)
    exit_failed(removed.leaks or (only_check and removed.total))
    if removed.unread:
        raise click.exceptions.Exit(EXIT_UNREADABLE)
    if not removed.read:
        raise click.exceptions.Exit(EXIT_NOTHING)


def _piped(policy: Policy, key: Key | None) -> Removed:
    """Clean what comes in and pass it on; without a key it is only looked through."""
    from blade.sanitize import clean_files
    from blade.sanitize.escapes import is_json
    from blade.sanitize.files import looked, renamed

    data = sys.stdin.buffer.read()
    is_rows = is_json(data.partition(b"\n")[0].decode("utf-8", "surrogateescape"))
    with staging(Path(gettempdir()).resolve()) as folder:
        source = Path(folder, "stdin.jsonl" if is_rows else "stdin.txt")
        source.write_bytes(data)
        if key is None:
            return renamed(looked([source], policy), "-")
        clean = Path(folder, "clean")
        removed = clean_files([(source, clean)], folder, key, policy)
        if clean.exists():
            sys.stdout.buffer.write(clean.read_bytes())
        return renamed(removed, "-")


def _refuse(paths: list[Path], is_piped: bool, as_json: bool) -> None:
    if not paths:
        raise UsageError("no FILE was given", "name a rollouts file, a report or a folder", "usage")
    if is_piped:
        if len(paths) > 1:
            raise UsageError("- cannot be given with other files", "clean them apart", "usage")
        if as_json:
            hint = "write what was removed to a file with --report FILE"
            raise UsageError("--json and the clean text would both go to standard output", hint, "usage")
        return
    missing = [path for path in paths if not os.path.exists(path)]  # any name, too long ones as well
    if missing:
        raise NothingToRead(f"{missing[0]} does not exist", "name a file or a folder", "no-such-path")
    links = [link for path in paths if (link := link_in(path))]
    if links:  # a shell names what it finds: that a link was given does not mean that it was chosen
        hint = f"name what it leads to: {links[0].resolve()}"
        raise UsageError(f"{links[0]} is a link, and is not followed", hint, "usage")


def settings_of(paths: list[Path], key_path: str | None, policy_path: str | None) -> list[Path]:
    """The files that say how to clean: keys and policies, those that were named and those that are found."""
    from blade.sanitize.policy import key_file, policies_near

    return [*(Path(item) for item in (key_path, policy_path) if item), key_file(), *policies_near(paths)]


def _hits(paths: list[Path], target: Path | None) -> dict[Path, tuple[str, ...]]:
    """Every file with its place: those of a folder keep theirs below its name."""
    from blade.sanitize.files import inside

    hits = {
        file: parts
        for path in paths
        for file, parts in (inside(path, target, target is None) if path.is_dir() else [(path, (path.name,))])
    }
    if not hits:
        words = ", ".join(map(str, paths[:3]))
        raise NothingToRead(f"{words} holds no file", "hidden files are looked at by --check alone", "nothing-to-read")
    return hits


def _pairs(hits: dict[Path, tuple[str, ...]], target: Path, policy: Policy, key: Key) -> list[tuple[Path, Path]]:
    """Every file with where it goes."""
    from blade.sanitize import Cleaner
    from blade.sanitize.files import clean_name

    naming = Cleaner(key, policy)
    pairs = [(file, target.joinpath(*(clean_name(part, naming) for part in parts))) for file, parts in hits.items()]
    seen: dict[Path, Path] = {}
    for file, there in pairs:
        if there in seen:
            message = f"{seen[there]} and {file} would both be written to {there}"
            raise UsageError(message, "give them one by one, each with its own -o", "usage")
        seen[there] = file
    return pairs


def _page(removed: Removed, output: str | None, only_check: bool) -> str:
    """The counts, by kind and by file."""
    from blade.sanitize import leak_lines
    from blade.sanitize.files import NOT_SEEN

    verb = "Found" if only_check else "Removed"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in removed.kinds.items())
    lines = [f"{verb} {removed.total:,} values" + (f": {kinds}" if kinds else "")]
    lines += [f"{count:>9,}  {line(file)}" for file, count in removed.files.items()]
    lines += [f" left out  {line(file)}: {why}" for file, why in removed.left_out.items()]
    lines += [line(text, 400) for text in leak_lines(removed)]
    if only_check:
        lines.append(f"Not looked for, as no rule can tell them: {', '.join(NOT_SEEN)}")
    if not (output is None or only_check or removed.leaks):
        wrote = f"Wrote {line(output)}/; keep the key with the raw rows, not with these"
        lines.append(wrote if removed.read else "Wrote nothing: every file was left out")
    return "\n".join(lines) + "\n"


# ---- For other commands --------------------------------------------------------------------------


def redacted(report: Report, loaded: Sequence[Loaded]) -> Report:
    """A report with placeholders for what looks private."""
    from blade import sanitize

    return sanitize.redacted(report, sanitize.own_key(), policy_of(loaded))[0]


def policy_of(loaded: Sequence[Loaded]) -> Policy:
    """What the blade.toml files around the runs say, taken together."""
    from blade.sanitize import policy_near

    return policy_near([Path(source.path) for run in loaded for source in run.sources], here=False)


def redactor(loaded: Sequence[Loaded]) -> Redactor:
    """What takes out of the rows of runs, and of texts about them, what looks private."""
    from blade import sanitize

    ids = (key for run in loaded for key in run.run.rollouts.task_keys)
    return sanitize.Redactor(sanitize.own_key(), policy_of(loaded), frozenset(ids))


def cleaner(session: Session, loaded: Loaded) -> Clean:
    """What may be sent of a run: placeholders for what looks private, in a text or anywhere in its rows."""
    from blade import sanitize
    from blade.pipeline.model_reading import Clean

    own = redactor([loaded])
    return Clean(sanitize.redacted(session.report, own.key, own.policy)[0], own.rows, own.text)
