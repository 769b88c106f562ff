"""Run the toolkit commands that need nothing but the standard library, and leave the others alone."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from blade.errors import with_pages
from blade.hostile import under
from blade.package.layout import Broken
from blade.package.shallow import make_shallow
from blade.package.validation import validate_skill


def main(arguments: list[str]) -> int | None:
    """The exit code of `make-shallow` or `validate --phase skill`; None: this takes the whole program."""
    command, *rest = arguments or [""]
    if command == "make-shallow":
        return _make_shallow(rest)
    return _validate_skill(rest) if command == "validate" else None


def _make_shallow(rest: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make-shallow", description="Keep the headings and aggregate tables of a report."
    )
    parser.add_argument("--input", required=True, metavar="FILE", help="the golden report")
    parser.add_argument("--output", required=True, metavar="FILE", help="where the shallow baseline goes")
    parser.add_argument("--force", action="store_true", help="write over a file that a person has changed")
    options = parser.parse_args(rest)
    try:
        why = make_shallow(Path(options.input), Path(options.output), options.force)
    except (Broken, OSError) as error:
        print(under("error: ", f"{options.input}: {error}"), file=sys.stderr)
        print("hint:  give a Markdown report in UTF-8, and a place that can be written", file=sys.stderr)
        return 1
    if why:
        print(under("error: ", f"{options.output} {why}; it was kept"), file=sys.stderr)
        print("hint:  name another file, or add --force to write over it", file=sys.stderr)
        print(f"see:   {with_pages('docs/errors.md#output-not-empty')}", file=sys.stderr)
        return 2
    print(f"Wrote {options.output}")
    return 0


def _validate_skill(rest: list[str]) -> int | None:
    parser = argparse.ArgumentParser(prog="validate", add_help=False, exit_on_error=False)
    for option in ("--benchmark-dir", "--phase", "--min-anchor-facts"):
        parser.add_argument(option, default="")
    parser.add_argument("--json", action="store_true")
    try:
        options, unknown = parser.parse_known_args(rest)
    except argparse.ArgumentError:
        return None
    is_skill = options.phase == "skill" and options.benchmark_dir and not unknown
    if not is_skill or not (options.min_anchor_facts or "0").isdecimal():
        return None
    result = validate_skill(Path(options.benchmark_dir))
    print(json.dumps(result.as_json(), indent=2) if options.json else "\n".join(result.lines()))
    return 0 if result.passed else 1
