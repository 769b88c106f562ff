"""`make calibration`: are verdicts, intervals and claimed causes right; exit 1 if a limit breaks."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tools.calibration import simulated_verdicts

PAIRS, CAUSES, SEED = 2000, 210, 11


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.calibration", description=__doc__)
    parser.add_argument("--only", choices=("verdicts", "causes"), help="one of the two parts")
    parser.add_argument("--pairs", type=int, help=f"simulated pairs a cell and world (default: {PAIRS})")
    parser.add_argument("--causes", type=int, default=CAUSES, help="pairs of runs with a planted cause")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    start, broken = time.perf_counter(), 0
    if options.only in (None, "verdicts"):
        results = simulated_verdicts.run(options.pairs or PAIRS, options.seed, os.cpu_count() or 1)
        print(simulated_verdicts.told(results, options.pairs or PAIRS, options.seed))
        broken += sum(not line.holds for line in results)
    if options.only in (None, "causes"):
        from tools.calibration import planted_causes

        result = planted_causes.run(options.causes, options.seed)
        print(planted_causes.told(result))
        broken += not result["holds"]
    print(f"\n{time.perf_counter() - start:.0f} s; limits broken: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
