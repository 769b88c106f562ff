"""Print what of the box holds on this machine: `python -m blade_eval.sandbox`."""

from __future__ import annotations

import sys

from blade_eval.sandbox import holds


def main() -> int:
    """Print every check; 1 when one does not hold, and code cannot be verified here."""
    checks = holds()
    for check in checks:
        print(f"{'holds' if check.holds else 'MISSING':<8} {check.name:<26} {check.seen}")
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
