"""Ask the same of a faultless and a faulty model server, and hold the rewards side by side.

python -m tools.bench.faulty --share 0.2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.bench.killed_runs import Outcome, command, compared, questions
from tools.model_server import ALL_KINDS, Faults, choice, serving

TIMEOUT_S = 600.0
_BLOCK = "++policy_model.responses_api_models.openai_model"
_QUICK = (
    f"{_BLOCK}.timeout=0.5",
    f"{_BLOCK}.first_wait=0.01",
)  # a server that hangs is left after half a second


@dataclass(frozen=True)
class Trial:
    """What the faults were, what they cost, and what they changed."""

    rows: Outcome
    calls: int
    faults: Counter[str]
    failure_lines: int
    retries: int  # of whole rollouts; those of single calls are calls - rollouts
    seconds: float
    seconds_without: float


def trial(share: float, n_tasks: int, seed: int, folder: Path) -> Trial:
    """Both runs, one after the other."""
    rows = folder / "rows.jsonl"
    rows.write_text("".join(questions(n_tasks)))
    results = {}
    policy = choice([f"Answer: {letter}" for letter in "ABCD"])
    for name, faults in {"whole": Faults(), "faulty": Faults(share, ALL_KINDS, seed, hang=2.0)}.items():
        with serving(policy, faults, keeps=False) as server:
            words = command(rows, folder / f"{name}.jsonl", server.url, "--json", *_QUICK)
            words[words.index("--concurrency") + 1] = "32"
            done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
            if done.returncode:
                raise RuntimeError(done.stderr)
            results[name] = json.loads(done.stdout)
            counts = Counter(server.counts)
    return Trial(
        compared(folder / "whole.jsonl", folder / "faulty.jsonl", ()),
        counts["calls"],
        Counter({kind.removeprefix("fault:"): n for kind, n in counts.items() if kind.startswith("fault:")}),
        results["faulty"]["failure_lines"],
        results["faulty"]["retries"],
        results["faulty"]["seconds"],
        results["whole"]["seconds"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--tasks", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        done = trial(options.share, options.tasks, options.seed, Path(folder))
    total = done.faults.total()
    print(f"{done.calls:,} calls, {total:,} of them with a fault ({100 * total / done.calls:.1f}%)")
    for kind, count in sorted(done.faults.items()):
        print(f"  {kind:14} {count:6,}")
    rows = done.rows
    print(f"{done.retries} rollouts tried again, {done.failure_lines} failure lines,"
          f" {done.seconds:.1f} s (without faults {done.seconds_without:.1f} s)")  # fmt: skip
    print(f"{rows.expected:,} rows: {rows.same:,} with the same reward and response,"
          f" {rows.different} different, {rows.lost} lost, {rows.twice} twice")  # fmt: skip
    sys.exit(0 if rows.is_whole else 1)


if __name__ == "__main__":
    main()
