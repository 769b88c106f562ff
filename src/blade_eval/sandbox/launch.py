"""Run one program in a box of namespaces and limits; a script that imports nothing of BLADE.

It is started with an empty environment and the number of a pipe. On standard input comes the length of a plan
and the plan; what follows belongs to the program in the box, whose output goes straight to whoever started
this. On the pipe goes how the program ended, or `refused`, with the part that cannot be had.

Three processes: this one watches from outside (time, memory, whether anybody still waits); the first process
of the new process namespace builds the box, waits, and takes everything in it along when it ends; the third
gives up all rights and becomes the program.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import signal
import struct
import sys
import time

TYPE_CHECKING = False  # a checker knows this name; importing typing takes longer than building the box
if TYPE_CHECKING:
    from typing import Any, NoReturn

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534
WATCH = 20  # milliseconds between two looks at the memory

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
NAMESPACES = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWPID | NEWNET

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442  # the same number on every architecture
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38

# The new root is mounted over /proc: a folder that exists everywhere and that no program or library lies
# under. What is needed of the old /proc is reached through a descriptor opened before.
NEW = "/proc"
ASKED_TO_END: list[int] = []
DEVICES = ("null", "zero", "full", "random", "urandom")


class Refused(Exception):
    """A part of the box cannot be had; the program is not run."""


def _called(part: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise Refused(f"{part}: {os.strerror(number)}")


def _unshare(part: str, flags: int) -> None:
    _called(part, LIBC.unshare(flags))


def _mount(part: str, source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = kind.encode() if kind else None
    result = LIBC.mount(os.fsencode(source), os.fsencode(target), encoded, flags, options.encode() or None)
    _called(part, result)


def _set_attributes(target: str, attributes: int, flags: int = 0) -> None:
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)
    path, size = os.fsencode(target), ctypes.c_size_t(len(wanted))
    number = ctypes.c_long(SYS_MOUNT_SETATTR)
    _called("read-only file system", LIBC.syscall(number, AT_FDCWD, path, flags, wanted, size))


def _prctl(part: str, option: int, value: int, pointer: Any = None) -> None:
    _called(part, LIBC.prctl(option, ctypes.c_ulong(value), pointer, None, None))


def _written(proc: int, name: str, text: str) -> None:
    fd = os.open(name, os.O_WRONLY, dir_fd=proc)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _map_user(proc: int, uid: int, gid: int) -> None:
    """Inside, the one user there is is nobody; there is no root to become."""
    try:
        _written(proc, "self/setgroups", "deny")
        _written(proc, "self/uid_map", f"{NOBODY} {uid} 1")
        _written(proc, "self/gid_map", f"{NOBODY} {gid} 1")
    except OSError as fault:
        raise Refused(f"user namespace: its users cannot be mapped: {fault.strerror}") from fault


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount("mount namespace", source, target, None, MS_BIND | MS_REC)


def _build(plan: dict[str, Any]) -> None:
    """A root of its own: the interpreter and the libraries to read, one small folder in memory to write."""
    _mount("mount namespace", "none", "/", None, MS_REC | MS_PRIVATE)
    _mount("private root", "tmpfs", NEW, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    os.mkdir(f"{NEW}/tmp")
    # Everything that can be written lies on this one file system, so that its size is the limit of all.
    options = f"size={plan['disk']},nr_inodes={plan['inodes']},mode=1777"
    _mount("disk limit", "tmpfs", f"{NEW}/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)
    for path in plan["readable"]:
        if os.path.islink(path):
            os.symlink(os.readlink(path), NEW + path)
        elif os.path.exists(path) and not os.path.exists(NEW + path):
            _bind(path, NEW + path)
            _set_attributes(NEW + path, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, AT_RECURSIVE)
    for device in DEVICES:
        _bind(f"/dev/{device}", f"{NEW}/dev/{device}")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{NEW}/dev/{name}")
    os.symlink("/proc/self/fd", f"{NEW}/dev/fd")
    for folder in ("box", "shm"):
        os.mkdir(f"{NEW}/tmp/{folder}")
        os.chmod(f"{NEW}/tmp/{folder}", 0o777)
    os.mkdir(f"{NEW}/dev/shm")
    _mount("mount namespace", f"{NEW}/tmp/shm", f"{NEW}/dev/shm", None, MS_BIND)
    for name, text in plan["files"].items():
        os.makedirs(os.path.dirname(f"{NEW}/tmp/box/{name}"), exist_ok=True)
        with open(f"{NEW}/tmp/box/{name}", "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
    os.makedirs(f"{NEW}/etc", exist_ok=True)
    with open(f"{NEW}/etc/passwd", "w", encoding="utf-8") as file:
        file.write(f"nobody:x:{NOBODY}:{NOBODY}:nobody:/tmp/box:/bin/false\n")
    os.mkdir(f"{NEW}/proc")
    try:  # a convenience, for /dev/stdin and the like; where the kernel forbids it, programs do without
        _mount("proc", "proc", f"{NEW}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid")
    except Refused:
        pass
    _set_attributes(NEW, ATTR_RDONLY)
    os.chdir(NEW)
    pivot = ctypes.c_long(SYS_PIVOT_ROOT[os.uname().machine])
    _called("private root", LIBC.syscall(pivot, b".", b"."))
    _called("private root", LIBC.umount2(b".", MNT_DETACH))
    os.chdir("/")


def _limits(plan: dict[str, Any], extra: int) -> None:
    memory = plan["memory"]
    # Default stacks of threads are taken from the soft limit; a program may raise its own.
    for kind, soft, hard in (
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_STACK, min(8 << 20, memory), resource.getrlimit(resource.RLIMIT_STACK)[1]),  # programs raise it without limit
        (resource.RLIMIT_CPU, plan["cpu"], plan["cpu"] + 1),
        (resource.RLIMIT_NPROC, plan["processes"] + extra, plan["processes"] + extra),
        (resource.RLIMIT_NOFILE, plan["open_files"], plan["open_files"]),
        (resource.RLIMIT_FSIZE, plan["disk"], plan["disk"]), (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0), (resource.RLIMIT_MSGQUEUE, 0, 0),
    ):
        try:
            resource.setrlimit(kind, (soft, hard))
        except (OSError, ValueError) as fault:
            raise Refused(f"resource limits: {fault}") from fault


def _filtered(program: bytes) -> None:
    """The system calls that nobody's program needs and that escapes are made of are refused from here on."""
    code = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    _prctl("system call filter", PR_SET_NO_NEW_PRIVS, 1)
    _prctl("system call filter", PR_SET_SECCOMP, 2, ctypes.create_string_buffer(whole, len(whole)))


def _become(plan: dict[str, Any], proc: int, is_root: bool) -> NoReturn:
    """Give up all rights, then become the program."""
    os.setsid()
    if is_root:
        try:
            for fd in (0, 1, 2):
                os.fchown(fd, NOBODY, NOBODY)  # so that /dev/stdin and the like can be opened
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        except OSError as fault:
            raise Refused(f"unprivileged user: {fault.strerror}") from fault
        _prctl("unprivileged user", PR_SET_DUMPABLE, 1)  # else /proc/self would still be root's
        # A user namespace for each run, so that the number of processes is counted for each run.
        _unshare("user namespace", NEWUSER)
        _map_user(proc, NOBODY, NOBODY)
    for capability in range(64):
        if LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), None, None, None) != 0:
            break
    _limits(plan, 0 if is_root else 2)
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass
    os.chdir("/tmp/box")
    os.umask(0o022)
    _filtered(bytes.fromhex(plan["filter"]))
    try:
        os.execve(plan["argv"][0], plan["argv"], plan["environment"])
    except OSError as fault:
        raise Refused(f"interpreter: {plan['argv'][0]} does not start in the box: {fault.strerror}") from fault


def _told(fd: int, message: dict[str, Any]) -> None:
    try:
        os.write(fd, marshal.dumps(message))
    except OSError:
        pass  # whoever asked is gone


def _first(plan: dict[str, Any], proc: int, report: int, is_root: bool) -> NoReturn:
    """The first process of the box: when it ends, the kernel ends all others in it."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # what has no handler cannot reach a first process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _prctl("process namespace", PR_SET_PDEATHSIG, signal.SIGKILL)
        _written(proc, "self/oom_score_adj", "1000")
        _prctl("process namespace", PR_SET_DUMPABLE, 0)  # its descriptors are not to be looked at from the box
        LIBC.sethostname(b"box", 3)
        _build(plan)
        started, start = os.pipe()
        program = os.fork()
        if program == 0:
            try:
                os.dup2(start, 4)
                os.dup2(proc, 3)
                os.closerange(5, 4096)
                os.set_inheritable(3, False)
                os.set_inheritable(4, False)
                _become(plan, 3, is_root)
            except BaseException as fault:
                _told(4, {"refused": str(fault) or repr(fault)})
            finally:
                os._exit(127)
        os.close(start)
        os.close(0)
        os.close(1)
        os.close(2)
        with os.fdopen(started, "rb") as pipe:
            refusal = pipe.read()  # ends when the program has taken the place of the third process
        if refusal:
            os.write(report, refusal)
            os._exit(0)
        while True:
            pid, status, usage = os.wait4(-1, 0)
            if pid == program:
                break
        code = os.waitstatus_to_exitcode(status)
        spent = usage.ru_utime + usage.ru_stime
        _told(report, {"code": code, "cpu": round(spent, 3), "peak": usage.ru_maxrss * 1024})
    except BaseException as fault:
        _told(report, {"refused": str(fault) or repr(fault)})
    finally:
        os._exit(0)


def _look(proc: int, name: str) -> bytes:
    """A small file of /proc, of the machine's own: the box has been mounted over the path of that name."""
    try:
        fd = os.open(name, os.O_RDONLY, dir_fd=proc)
    except OSError:
        return b""  # the process has ended
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _threads(proc: int, pid: int) -> list[str]:
    try:
        fd = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
    except OSError:
        return []
    try:
        return os.listdir(fd)
    except OSError:
        return []
    finally:
        os.close(fd)


def _memory(proc: int, first: int, limit: int) -> int:
    """What the processes in the box hold together; shared pages are divided only when the sum is too high."""
    pids, queue = [], [first]
    while queue:
        pid = queue.pop()
        pids.append(pid)
        for thread in _threads(proc, pid):
            queue += [int(child) for child in _look(proc, f"{pid}/task/{thread}/children").split()]
    sizes = [_look(proc, f"{pid}/statm").split() for pid in pids]
    total = sum(int(size[1]) for size in sizes if size) * resource.getpagesize()
    return total if total <= limit else sum(_share(proc, pid) for pid in pids)


def _buffer(proc: int) -> int:
    """What one socket may hold, in bytes, with the last piece that goes beyond; it belongs to no process."""
    sizes = [_look(proc, f"sys/net/core/{name}_default").strip() for name in ("wmem", "rmem")]
    return max(int(size) if size.isdigit() else 212_992 for size in sizes) + (1 << 16)


def _sockets(proc: int) -> int:
    """How many sockets there are in the network namespace of the box, which is this process's too."""
    _, _, rest = _look(proc, "self/net/sockstat").partition(b"sockets: used ")
    return int(rest.split()[0]) if rest else 0


def _share(proc: int, pid: int) -> int:
    _, _, rest = _look(proc, f"{pid}/smaps_rollup").partition(b"\nPss:")
    return int(rest.split()[0]) * 1024 if rest else 0


def _watch(plan: dict[str, Any], first: int, report: int, status: int, proc: int, buffer: int) -> dict[str, Any]:
    """Wait for the end of the box, or bring it about."""
    ended = os.pidfd_open(first)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(status, 0)  # the other end is closed: nobody waits any more
    begun, stopped, high = time.monotonic(), None, 0
    while True:
        events = dict(poll.poll(WATCH))
        if ended in events:
            break
        high = max(high, _memory(proc, first, plan["memory"]) + _sockets(proc) * buffer)
        if status in events or ASKED_TO_END:
            stopped = "abandoned"
        elif time.monotonic() - begun > plan["wall"]:
            stopped = "wall"
        elif high > plan["memory"]:
            stopped = "memory"
        if stopped:
            os.kill(first, signal.SIGKILL)
            break
    os.waitpid(first, 0)
    result: dict[str, Any] = {"code": None, "cpu": None, "peak": high}
    with os.fdopen(report, "rb") as pipe:
        summary = pipe.read()
    result |= marshal.loads(summary) if summary else {}
    result |= {"stopped": stopped, "wall": round(time.monotonic() - begun, 3)}
    result["peak"] = max(high, result["peak"])
    return result


def _read(fd: int, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = os.read(fd, size - len(parts))
        if not part:
            raise Refused("the plan ended early")
        parts += part
    return parts


def _boxed(status: int) -> dict[str, Any]:
    plan = marshal.loads(_read(0, struct.unpack(">Q", _read(0, 8))[0]))
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    buffer = _buffer(proc)  # before the new network namespace, which need not have the setting
    is_root, uid, gid = os.geteuid() == 0, os.getuid(), os.getgid()
    if is_root:
        _unshare("mount, process, network and message namespaces", NAMESPACES)
    else:
        _unshare("user, mount, process, network and message namespaces", NAMESPACES | NEWUSER)
        _map_user(proc, uid, gid)
    if not _look(proc, "self/net/sockstat"):
        raise Refused("memory of sockets: the kernel does not tell how many there are")
    report, tell = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(report)
        os.close(status)
        _first(plan, proc, tell, is_root)
    os.close(tell)
    for fd in (0, 1, 2):
        os.close(fd)
    return _watch(plan, first, report, status, proc, buffer)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: ASKED_TO_END.append(number))
    status = int(sys.argv[1])
    try:
        result = _boxed(status)
    except (Refused, OSError, ValueError) as fault:
        result = {"refused": str(fault) or repr(fault)}
    _told(status, result)


if __name__ == "__main__":
    main()
