"""Answer calls on standard input, one JSON line each, under limits that the kernel enforces."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO

import msgspec

LONGEST_ERROR = 2000


@cache
def function_of(name: str) -> Callable[..., Any]:
    """The function of `module:function`; loading its libraries is not charged to the answer."""
    module, _, function = name.partition(":")
    member: Callable[..., Any] = getattr(import_module(module), function)
    return member


def limited(seconds: int, memory: int) -> None:
    """From here on, so many more seconds of computing and bytes of memory; no file is written."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    lowered(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds + 1)
    lowered(resource.RLIMIT_AS, held() + memory)
    lowered(resource.RLIMIT_FSIZE, 0)


def lowered(limit: int, most: int) -> None:
    """Set a limit, within one that is there already."""
    _, hard = resource.getrlimit(limit)
    try:
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    except (ValueError, OSError):
        if limit != resource.RLIMIT_AS:  # which macOS does not know
            raise


def held() -> int:
    """The address space in use; where the kernel does not tell, the usual size of such a process."""
    try:
        with open("/proc/self/statm", "rb") as pages:
            return int(pages.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30


def answered(line: bytes, memory: int) -> dict[str, Any]:
    """The reply to one call."""
    request = msgspec.json.decode(line)
    try:
        function = function_of(request["function"])
        limited(request["seconds"], memory)
        return {"result": function(*request["arguments"])}
    except MemoryError:
        return {"too_costly": "more memory than the limit"}
    except RecursionError:
        return {"too_costly": "nested deeper than the library can follow"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]}


def main(calls: BinaryIO, replies: BinaryIO, memory: int) -> None:
    for line in calls:
        replies.write(msgspec.json.encode(answered(line, memory)) + b"\n")
        replies.flush()


if __name__ == "__main__":
    # What a library prints must not be taken for a reply.
    private = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    main(sys.stdin.buffer, private, int(sys.argv[1]))
