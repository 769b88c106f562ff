"""Measure every budget, print the table, and fail where a budget is missed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from tools.bench import bench_files, bench_measures
from tools.bench.budgets import BUDGETS


def main() -> int:
    options = _arguments()
    names = options.only or list(BUDGETS)
    folder, free = bench_files.room_mb()
    if free < bench_files.needed_mb(options.size_mb):
        needed = bench_files.needed_mb(options.size_mb)
        print(f"{folder} has {free:,} MB free; the files need {needed:,} MB", file=sys.stderr)
        print("set TMPDIR to a folder with more room, or give a smaller --size-mb", file=sys.stderr)
        return 2
    lines: list[bench_measures.Line] = []
    with bench_files.files(options.size_mb) as paths:
        for name in names:
            print(f"measuring {name} ...", file=sys.stderr)
            lines += BUDGETS[name](paths, options.runs)
    print(f"{options.size_mb:,} MB files, medians of {options.runs}, {os.cpu_count()} cores, "
          f"Python {platform.python_version()}\n")  # fmt: skip
    print(bench_measures.rendered(lines), end="")
    if options.json:
        options.json.write_text(json.dumps([line.as_json() for line in lines], indent=2) + "\n")
    missed = [line.what for line in lines if line.met is False]
    if missed:
        print(f"\nmissed: {', '.join(missed)}")
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    add = parser.add_argument
    add("--size-mb", type=int, default=1000, metavar="N", help="size of a file (default: 1000)")
    add("--runs", type=int, default=5, metavar="N", help="medians of N runs (default: 5)")
    add("--only", action="append", choices=list(BUDGETS), help="measure this alone; may be repeated")
    add("--json", type=Path, metavar="FILE", help="write the lines as JSON too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
