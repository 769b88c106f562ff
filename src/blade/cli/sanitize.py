"""`blade sanitize`: write files without what must not leave the house, and say what was taken out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.errors import EXIT_FAILED_GATE, NothingToRead, UsageError

if TYPE_CHECKING:
    from blade.sanitize import Key, Policy, Removed


@click.command(short_help="Take secrets, names, hosts and homes out of what leaves the house.")
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option(
    "-o", "--output", metavar="DIR", default="sanitized", show_default=True, help="Where the clean files go."
)
@click.option("--key", "key_path", metavar="FILE", help="The key of the placeholders (default: your own).")
@click.option(
    "--policy", "policy_path", metavar="FILE", help="A blade.toml with [sharing] (default: beside FILE)."
)
@click.option("--report", "report_path", metavar="FILE", help="Write what was removed, and where, as JSON.")
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; exit 1 if something would be removed."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def sanitize(
    files: tuple[str, ...],
    output: str,
    key_path: str | None,
    policy_path: str | None,
    report_path: str | None,
    only_check: bool,
    as_json: bool,
    force: bool,
) -> None:
    """Write each FILE into DIR without secrets, e-mail addresses, user and host names and home paths.

    FILE is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a report (.md, .html, .json) or a folder. The
    same value becomes the same placeholder everywhere, made with a key that stays with you. Rewards and
    ids stay as they are; rows change in no other byte.
    """
    from blade.sanitize import as_json as told_as_json
    from blade.sanitize import clean_files, policy_near, read_policy

    paths = [Path(file) for file in files]
    _refuse(paths)
    policy = read_policy(Path(policy_path)) if policy_path else policy_near(paths)
    if only_check:
        removed = _checked(paths, policy)
    else:
        pairs = _pairs(paths, Path(output), policy, key := _key(key_path))
        taken = [target for _, target in pairs if target.exists()]
        if taken and not force:
            hint = "name another folder with -o, or add --force"
            raise UsageError(f"{taken[0]} is there already", hint, "output-not-empty")
        try:
            removed = clean_files(pairs, key, policy)
        except OSError as error:
            from blade.cli.output import cannot_write

            raise cannot_write(Path(output), error) from error
    if report_path:
        _write(Path(report_path), told_as_json(removed))
    click.echo(told_as_json(removed) if as_json else _told(removed, None if only_check else output), nl=False)
    if removed.leaks or (only_check and removed.total):
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def _refuse(paths: list[Path]) -> None:
    if not paths:
        raise UsageError("no FILE was given", "name a rollouts file, a report or a folder", "usage")
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise NothingToRead(f"{missing[0]} does not exist", "name a file or a folder", "no-such-path")


def _key(path: str | None) -> Key:
    from blade.sanitize import own_key, read_key

    return read_key(Path(path)) if path else own_key()


def _pairs(paths: list[Path], target: Path, policy: Policy, key: Key) -> list[tuple[Path, Path]]:
    """Every file with where it goes: those of a folder keep their places below its name."""
    from blade.sanitize import Cleaner
    from blade.sanitize.files import inside

    naming = Cleaner(key, policy)
    pairs = [
        (file, target.joinpath(*map(naming.text, parts)))
        for path in paths
        for file, parts in (inside(path, target) if path.is_dir() else [(path, (path.name,))])
    ]
    seen: dict[Path, Path] = {}
    for file, there in pairs:
        if there in seen:
            message = f"{seen[there]} and {file} would both be written to {there}"
            raise UsageError(message, "give them one by one, each with its own -o", "usage")
        seen[there] = file
    return pairs


def _checked(paths: list[Path], policy: Policy) -> Removed:
    from blade.sanitize.files import inside, looked

    files = [file for path in paths for file, _ in (inside(path, None) if path.is_dir() else [(path, ())])]
    return looked(files, policy)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        from blade.cli.output import cannot_write

        raise cannot_write(path, error) from error


def _told(removed: Removed, output: str | None) -> str:
    """The counts, by kind and by file."""
    from blade.hostile import line

    verb = "Removed" if output is not None else "Found"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in removed.kinds.items())
    lines = [f"{verb} {removed.total:,} values" + (f": {kinds}" if kinds else "")]
    lines += [f"{count:>9,}  {line(file)}" for file, count in removed.files.items()]
    lines += [f" left out  {line(file)}: {why}" for file, why in removed.left_out.items()]
    if removed.leaks:
        lines.append(f"LEAK: {removed.leaks:,} values that look private are still in what was written")
    if output is not None:
        lines.append(f"Wrote {line(output)}/; keep the key with the raw rows, not with these")
    return "\n".join(lines) + "\n"
