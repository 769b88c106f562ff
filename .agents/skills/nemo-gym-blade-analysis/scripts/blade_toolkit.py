#!/usr/bin/env python3
"""Hand the commands of the package toolkit to BLADE: this checkout, an installed one, or `blade` on PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOME = [*Path(__file__).resolve().parents][-1 if len(Path(__file__).resolve().parents) < 5 else 4]
SOURCE = HOME / "src"
INSTALL = """error: BLADE is not installed for this Python, and there is no `blade` on PATH
hint:  in a checkout of BLADE: put `uv run` before this command, or pip install . and run it again"""


def main(arguments: list[str]) -> int:
    if (SOURCE / "blade" / "__init__.py").is_file():
        sys.path.insert(0, str(SOURCE))
    try:
        from blade.package import toolkit_commands

        code = toolkit_commands.main(arguments)
        if code is None:
            import msgspec  # what the program needs may be missing where its source is not

            from blade.__main__ import main as program

            del msgspec
            program(["package", *arguments])
        return code or 0
    except ModuleNotFoundError:
        pass  # no blade for this interpreter, or not what it needs; it may have a home of its own
    command = shutil.which("blade")
    if command:
        return subprocess.call([command, "package", *arguments])
    print(INSTALL, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
