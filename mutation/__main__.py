"""`make mutation`: does the checker catch planted faults and leave honest reports alone; exit 1 if not."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mutation import measured, reports, spoken
from mutation.page import MARKDOWN

FAULTS, SEED = 1200, 17
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folders of rollouts (default: ../shared/data)"
    )
    parser.add_argument("--faults", type=int, default=FAULTS, help=f"faults to plant (default: {FAULTS})")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--paraphrased", action="store_true", help="plant in reports told in other words")
    parser.add_argument("--only", metavar="DATASET", help="one data set, by its name")
    parser.add_argument("--batch", type=int, default=1, help="faults to a copy of a report (default: 1)")
    parser.add_argument("--misses", action="store_true", help="list what was missed, and false alarms")
    asked = parser.parse_args(arguments)
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        os.environ.setdefault("BLADE_CACHE_DIR", f"{folder}/cache")
        pages = [*reports.planted(Path(folder), asked.only)]
        pages += reports.natural(asked.data, asked.only) if asked.data.is_dir() else []
        if asked.paraphrased:
            pages = [*reports.reworded(pages, asked.seed)]
        trials, controls = measured.measure(
            pages, asked.faults, asked.seed, os.cpu_count() or 1, to_a_copy=asked.batch
        )
        ours = [page for page in pages if page.form == MARKDOWN and spoken.is_whole(page.world)]
        heard = [one for page in ours for one in spoken.heard(page.dataset, page.world)]
    if asked.misses:
        print(measured.missed(pages, trials, controls), end="\n\n")
        print(spoken.missed(heard), end="\n\n")
    print(measured.told(pages, trials, controls, asked.seed, asked.batch), end="\n\n")
    print(spoken.told(heard))
    broken = sum(not holds for *_, holds in measured.limits(trials, controls))
    print(f"\n{time.perf_counter() - start:.0f} s; limits broken: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
