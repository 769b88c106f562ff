"""Run one prepare script in this process, under limits, and say in a file what came of it."""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import sysconfig
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetch, warden
from blade_eval.prepare.records import Found, NotReadable


def main(arguments: list[str]) -> int:
    """`python -m blade_eval.prepare.child JOB RESULT`: both are JSON files."""
    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    warden.watched(job["runner"], job["limits"]["wall_s"])
    limited(job["limits"])
    told = outcome(Path(job["script"]), Path(job["root"]), job["args"])
    told["sources"] = fetch.used
    Path(arguments[1]).write_text(json.dumps(told), encoding="utf-8")
    return 0 if "path" in told else 1


def limited(limits: Mapping[str, int]) -> None:
    """Set the limits of this process and of all it starts; a system without one of them goes without."""
    for what, most in (
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):
            hard = resource.getrlimit(what)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            # the soft limit of the CPU sends a signal by which the parent knows it; the hard one kills
            upper = least + 5 if what == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else least
            resource.setrlimit(what, (least, upper))


def outcome(script: Path, root: Path, args: Mapping[str, Any]) -> dict[str, Any]:
    """What `prepare(**args)` returned, or why it did not return."""
    try:
        module = loaded(script, root)
        prepare = getattr(module, "prepare", None)
        if not callable(prepare):
            return {"error": "it has no function prepare()"}
        try:
            returned = prepare(**args)
        except fetch.Missing as error:
            return {"missing": [asdict(one) for one in all_lacking(error, module)]}
    except fetch.Mismatch as error:
        return {"mismatch": str(error)}
    except NotReadable as error:
        return {"unfit": str(error)}
    except MemoryError:
        return {"limit": "memory"}
    except OSError as error:
        if error.errno == 27:  # EFBIG: Python ignores the signal, the write fails
            return {"limit": "file size"}
        return raised(error, script)
    except (Exception, SystemExit) as error:
        return raised(error, script)
    if not isinstance(returned, str | Path):
        return {"error": f"prepare() returned {type(returned).__name__}, not a path"}
    return {"path": str(Path(returned).absolute())}


def loaded(script: Path, root: Path) -> Any:
    """The script as a module, which may import from its own tree."""
    # after Python's own modules, as a json.py in somebody's folder is not meant for us; before installed ones
    own = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")}
    places = [n for n, place in enumerate(sys.path, 1) if place in own or place.endswith("lib-dynload")]
    sys.path.insert(max(places, default=0), str(root))
    spec = importlib.util.spec_from_file_location("prepare_script", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # from its text: compiled code is taken for current if a change came within the second and kept the length
    exec(compile(script.read_bytes(), str(script), "exec"), module.__dict__)
    return module


def all_lacking(error: fetch.Missing, module: Any) -> list[fetch.Lacking]:
    """The file that was missed first, and the others of the script's SOURCES that would be missed next."""
    declared = getattr(module, "SOURCES", None)
    rest = fetch.lacking(fetch.current(), declared) if isinstance(declared, Mapping) else []
    known = {one.name for one in error.lacking}
    return [*error.lacking, *(one for one in rest if one.name not in known)]


def raised(error: BaseException, script: Path) -> dict[str, Any]:
    """An exception of the script: where in the script it came from, and at which record."""
    trace = error.__traceback__
    frames = list(traceback.walk_tb(trace))
    # what stands above the script is ours, and tells its author nothing
    while trace is not None and trace.tb_frame.f_code.co_filename != str(script):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)
    told = f"{type(error).__name__}: {error}"
    if frames:
        told += f" ({frames[-1][0].f_code.co_filename}:{frames[-1][1]})"
    # the innermost record at hand, by what it is and not by what the script calls it
    at = [one for frame, _ in frames for one in frame.f_locals.values() if type(one) is Found]
    return {"error": f"{told}, at {at[-1].place()}" if at else told}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
