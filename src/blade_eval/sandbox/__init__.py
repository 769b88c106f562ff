"""Contain untrusted Python on Linux, or refuse: programs run only where every part of the box holds, by trial."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from blade_eval.environment import Unmeasured
from blade_eval.sandbox.box import MEGABYTE, Limits, Outcome, packages, run, system_folders

__all__ = ["Check", "Limits", "Outcome", "holds", "needed", "run"]

TRYING = Lock()


@dataclass(frozen=True)
class Check:
    """One containment, whether it holds here, and what was seen."""

    name: str
    holds: bool
    seen: str


# Each line of output is a name, whether it holds, and what was seen.
PROBE = r"""
import json, mmap, os, socket, sys
host = json.loads(sys.stdin.read())
def say(name, holds, seen): print(json.dumps([name, bool(holds), str(seen)]))
def refused(action):
    try: action()
    except (OSError, MemoryError) as fault: return fault
    return None
def gives(name, action, otherwise):
    fault = refused(action)
    say(name, fault is not None, repr(fault) if fault is not None else otherwise)
say("unprivileged user", os.getuid() == 65534 and refused(lambda: os.setuid(0)), f"user {os.getuid()}")
hidden = refused(lambda: os.kill(host["pid"], 0))
say("process namespace", os.getpid() < 10 and hidden, f"process {os.getpid()}")
interfaces = [name for _, name in socket.if_nameindex()]
say("network namespace", set(interfaces) <= {"lo", "sit0", "tunl0", "ip6tnl0"} and refused(
    lambda: socket.create_connection(("127.0.0.1", 9), 0.2)), " ".join(interfaces))
gives("other networks", lambda: socket.socket(40, socket.SOCK_STREAM), "a vsock can be made")
def written(path):
    with open(path, "w") as file: file.write("x")
places = ("/x", "/usr/x", "/etc/x", "/root/x", "/dev/x", "/var/x")
open_to = [p for p in places if refused(lambda: written(p)) is None]
say("read-only file system", not open_to, " ".join(open_to) or "writes are refused")
seen = [p for p in host["private"] if os.path.exists(p)]
say("private files", not seen, " ".join(seen) or "files of the machine are not there")
say("empty environment", not set(os.environ) & set(host["environment"]), " ".join(sorted(os.environ)))
fds = [n for n in range(256) if refused(lambda: os.fstat(n)) is None]
say("no open files passed on", fds == [0, 1, 2], fds)
gives("system call filter", lambda: os.memfd_create("x"), "memory without a name can be made")
gives("memory limit", lambda: mmap.mmap(-1, 4 * host["memory"]), "more memory than allowed was given")
def filled():
    with open("/tmp/box/fill", "wb") as file:
        while True: file.write(bytes(1 << 20))
gives("disk limit", filled, "")
os.unlink("/tmp/box/fill")
held = []
def opened():
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
gives("open file limit", opened, "")
for fd in held: os.close(fd)
n = 0
while n < 3 * host["processes"]:
    try:
        if os.fork() == 0:
            import time; time.sleep(30); os._exit(0)
    except OSError: break
    n += 1
say("process limit", n <= host["processes"], f"{n} more processes could be made")
"""

HOARD = """
import os, time
for _ in range(4): os.fork()
held = bytearray(b"x" * (24 << 20))
time.sleep(15)
"""
SMALL = Limits(cpu=5, wall=15, memory=160 * MEGABYTE, processes=20, open_files=64, disk=4 * MEGABYTE)


def _at_home() -> list[str]:
    """What lies in the home of whoever runs BLADE, but for the way to the interpreter."""
    shown = (*system_folders(), packages())
    try:
        entries = sorted(str(entry) for entry in Path.home().iterdir())
    except (OSError, RuntimeError):
        return []
    return [entry for entry in entries if not any(f"{path}/".startswith(f"{entry}/") for path in shown)][:50]


async def _probed() -> list[Check]:
    own = {"PATH", "HOME", "LANG", "PYTHONHASHSEED", "PYTHONPATH", "OPENBLAS_NUM_THREADS"}
    with tempfile.NamedTemporaryFile() as marker:
        facts = {
            "pid": os.getpid(), "private": [marker.name, "/etc/shadow", *_at_home()],
            "environment": sorted({"BLADE_SANDBOX_PROBE", *os.environ} - own), "memory": SMALL.memory,
            "processes": SMALL.processes,
        }
        outcome = await run(PROBE, json.dumps(facts).encode(), SMALL)
    lines = [json.loads(line) for line in outcome.stdout.decode("utf-8", "replace").splitlines()]
    checks = [Check(str(name), bool(holds), str(seen)) for name, holds, seen in lines]
    if outcome.code != 0 or len(checks) < 13:
        last = outcome.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        checks.append(Check("interpreter", False, last or f"ended with {outcome.code}, {outcome.stopped}"))
    return checks


async def _bounded() -> list[Check]:
    """The limits that the watcher outside of the box enforces."""
    hoarding = Limits(cpu=5, wall=15, memory=160 * MEGABYTE)
    trials = {
        "wall": ("wall time limit", "import time\ntime.sleep(30)", Limits(cpu=1, wall=0.3)),
        "cpu": ("processor time limit", "while True: pass", Limits(cpu=1, wall=15)),
        "memory": ("memory of all together", HOARD, hoarding),
    }
    ends = await asyncio.gather(*(run(code, b"", limits) for _, code, limits in trials.values()))
    return [
        Check(name, end.stopped == limit, f"ended after {end.wall:g} s, {end.peak >> 20} MB: {end.stopped}")
        for (limit, (name, _, _)), end in zip(trials.items(), ends, strict=True)
    ]


async def _checked() -> tuple[Check, ...]:
    try:
        probed, bounded = await asyncio.gather(_probed(), _bounded())
        return (*probed, *bounded)
    except Unmeasured as missing:
        part, _, why = missing.reason.partition(": ")
        return (Check(part, False, why or part),)


def holds() -> tuple[Check, ...]:
    """What holds on this machine, tried once for each process however many ask at the same time."""
    with TRYING:
        return _tried()


@cache
def _tried() -> tuple[Check, ...]:
    """In a thread, since a loop may be running."""
    if sys.platform != "linux":
        return (Check("Linux", False, f"the box is made of what Linux has; this is {sys.platform}"),)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _checked()).result()


async def needed() -> None:
    """Raise `Unmeasured` unless every containment holds on this machine."""
    checks = await asyncio.to_thread(holds)
    missing = [f"{check.name}: {check.seen}" for check in checks if not check.holds]
    if missing:
        raise Unmeasured("sandbox_unavailable", "; ".join(missing), terminal=True)
