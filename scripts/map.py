"""Rewrite the map in docs/map.md from the first docstring line of every module; --check only compares."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "src" / "blade", ROOT / "src" / "blade_eval"
PAGE = ROOT / "docs" / "map.md"
START = "<!-- map: make map -->"
END = "<!-- /map -->"


def first_line(path: Path) -> str:
    """The first docstring line of the module at `path`; empty when it has none."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return doc.splitlines()[0] if doc else ""


def entries(package: Path, depth: int = 0) -> list[tuple[str, str]]:
    """Name and remark of a package and of all below it: folders stand for their `__init__`."""
    name = f"src/{package.name}/" if depth == 0 else f"{package.name}/"
    lines = [("  " * depth + name, first_line(package / "__init__.py"))]
    for path in sorted(package.iterdir()):
        if (path / "__init__.py").is_file():
            lines += entries(path, depth + 1)
        elif path.suffix == ".py" and path.name != "__init__.py":
            lines.append(("  " * (depth + 1) + path.name, first_line(path)))
    return lines


def block() -> str:
    """The map as it stands between the two marks of the page."""
    rows = [row for package in PACKAGES for row in entries(package)]
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"{name:<{width}}{remark}".rstrip() for name, remark in rows]
    return "\n".join([START, "", "```text", *lines, "```", "", END])


def page(text: str) -> str:
    """`text` with the block between its marks made anew."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} has lost its marks {START} and {END}")
    return before + block() + after


def main(arguments: list[str]) -> int:
    old = PAGE.read_text(encoding="utf-8")
    new = page(old)
    if "--check" in arguments:
        if new != old:
            print("docs/map.md is out of date: run `make map`", file=sys.stderr)
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
