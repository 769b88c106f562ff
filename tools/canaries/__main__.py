"""`make canaries`: what the sanitiser catches and what it changes; exit 1 if a limit breaks."""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.canaries import recall
from tools.canaries.canary_kinds import HELD_OUT
from tools.canaries.recall import PLACES

EACH, SEED = 20, 7
Counts = Counter[tuple[str, str]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.canaries", description=__doc__)
    parser.add_argument("--each", type=int, default=EACH, help="canaries of each kind in each place")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--data", help="a folder of clean rollouts (*.jsonl.gz) to measure as well")
    options = parser.parse_args()
    planted, caught, moved = recall.recall(options.each, options.seed)
    share = sum(caught.values()) / sum(planted.values())
    print(table(planted, caught))
    print(
        f"\n{len(recall.ALL)} kinds in {len(PLACES)} places: "
        f"{sum(caught.values())} of {sum(planted.values())} caught"
    )
    for group, members in recall.GROUPS.items():
        print(f"{group:<14} {len(members):>3} kinds: recall {_share(members, planted, caught):.4f}")
    planted, caught, _ = recall.recall(options.each, options.seed, HELD_OUT)
    beyond = _share(HELD_OUT, planted, caught)
    print(f"{'held out':<14} {len(HELD_OUT):>3} kinds: recall {beyond:.4f} (not counted)")
    print(f"recall {share:.4f} (at least {recall.RECALL}); rows whose ids or reward moved: {moved}")
    broken = (share < recall.RECALL) + bool(moved)
    clean = {"simulated run": recall.simulated_lines()}
    for path in sorted(Path(options.data).rglob("*.jsonl.gz")) if options.data else ():
        clean[f"{path.parent.name}/{path.name}"] = gzip.decompress(path.read_bytes()).decode().splitlines()
    for name, lines in clean.items():
        tokens, lost, kinds = recall.changed(lines)
        broken += lost > recall.CHANGED * tokens
        text = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
        print(f"{name:<60} {tokens:>9,} tokens  {lost / max(tokens, 1):.4%} changed: {text}")
    print(f"limits broken: {broken} (changed at most {recall.CHANGED:.1%} of the tokens of clean data)")
    return 1 if broken else 0


def _share(kinds: Iterable[str], planted: Counts, caught: Counts) -> float:
    cells = [(kind, place) for kind in kinds for place in PLACES]
    return sum(caught[cell] for cell in cells) / sum(planted[cell] for cell in cells)


def table(planted: Counts, caught: Counts) -> str:
    """Caught of planted, by kind and place."""
    lines = [f"{'kind':<22}" + "".join(f"{place:>12}" for place in PLACES)]
    for kind in recall.ALL:
        cells = (f"{caught[kind, place]}/{planted[kind, place]}" for place in PLACES)
        lines.append(f"{kind:<22}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
