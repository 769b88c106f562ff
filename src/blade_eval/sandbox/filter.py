"""Write the system call filter of the box, as a program that the kernel runs before each call."""

from __future__ import annotations

import struct
from collections.abc import Iterator

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_SET, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # places in what the kernel shows of a call; arguments take 8 bytes
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

NAMESPACE_FLAGS = 0x7E020080  # any of CLONE_NEW*, the time namespace included
FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink: namespaces of the network hold these. Not vsock.
BUFFERS = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and their FORCE, on whatever level
# F_GETLK, F_OFD_GETLK, F_SETLEASE, F_NOTIFY: what tells of other boxes' doings on a file that all may read.
SPYING = (5, 36, 1024, 1026)

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE3 = 435  # this number and those below are the same on both
# What no program under test needs, and escapes, hidden memory, spying and channels between boxes are made of.
REFUSED = {
    "x86_64": (
        "ptrace 101 mount 165 umount2 166 pivot_root 155 chroot 161 swapon 167 reboot 169 init_module 175"
        " finit_module 313 kexec_load 246 bpf 321 setns 308 unshare 272 process_vm_readv 310"
        " process_vm_writev 311 kcmp 312 userfaultfd 323 perf_event_open 298 add_key 248 request_key 249"
        " keyctl 250 open_by_handle_at 304 memfd_create 319 shmget 29 msgget 68 semget 64 personality 135"
        " acct 163 quotactl 179 syslog 103 iopl 172 ioperm 173 mq_open 240 modify_ldt 154 fanotify_init 300"
        " flock 73 inotify_init 253 inotify_add_watch 254 inotify_init1 294"
    ),
    "aarch64": (
        "ptrace 117 mount 40 umount2 39 pivot_root 41 chroot 51 swapon 224 reboot 142 init_module 105"
        " finit_module 273 kexec_load 104 bpf 280 setns 268 unshare 97 process_vm_readv 270"
        " process_vm_writev 271 kcmp 272 userfaultfd 282 perf_event_open 241 add_key 217 request_key 218"
        " keyctl 219 open_by_handle_at 265 memfd_create 279 shmget 194 msgget 186 semget 190 personality 92"
        " acct 89 quotactl 60 syslog 116 mq_open 180 fanotify_init 262 flock 32 inotify_init1 26"
        " inotify_add_watch 27"
    ),
}
REFUSED_ON_BOTH = (
    "memfd_secret 447 fsopen 430 fsmount 432 move_mount 429 open_tree 428 mount_setattr 442"
    " io_uring_setup 425 io_uring_enter 426 io_uring_register 427 pidfd_getfd 438 landlock_create_ruleset 444"
)
LOOKED_INTO = {  # clone, socket, setsockopt, fcntl: calls that hang on their arguments
    "x86_64": (56, 41, 54, 72),
    "aarch64": (220, 198, 208, 25),
}


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refused(errno: int) -> bytes:
    return _step(RETURN, ERRNO | errno)


def _is_one_of(number: int, argument: int, values: tuple[int, ...], inside: bytes, outside: bytes) -> list[bytes]:
    """For one call: what becomes of it when an argument is one of these values, and when it is not."""
    tests = [_step(JUMP_EQUAL, value, len(values) - place) for place, value in enumerate(values)]
    return [_step(JUMP_EQUAL, number, 0, len(values) + 3), _step(LOAD, ARGUMENT + 8 * argument), *tests, outside, inside]


def _steps(machine: str) -> Iterator[bytes]:
    clone, socket, setsockopt, fcntl = LOOKED_INTO[machine]
    yield _step(LOAD, ARCHITECTURE)
    yield _step(JUMP_EQUAL, AUDIT[machine], 1, 0)
    yield _step(RETURN, KILL)  # the calls of another architecture would have other numbers
    yield _step(LOAD, NUMBER)
    if machine == "x86_64":
        yield _step(JUMP_GREATER, 0x3FFFFFFF, 0, 1)  # the x32 numbers
        yield _step(RETURN, KILL)
    for word in f"{REFUSED[machine]} {REFUSED_ON_BOTH}".split()[1::2]:
        yield _step(JUMP_EQUAL, int(word), 0, 1)
        yield _refused(EPERM)
    # Flags of clone3 stand behind a pointer, where a filter cannot look; without it libraries use clone.
    yield _step(JUMP_EQUAL, CLONE3, 0, 1)
    yield _refused(ENOSYS)
    yield _step(JUMP_EQUAL, clone, 0, 4)
    yield _step(LOAD, ARGUMENT)
    yield _step(JUMP_SET, NAMESPACE_FLAGS, 0, 1)
    yield _refused(EPERM)
    yield _step(RETURN, ALLOW)
    # What a socket holds is the memory of nobody: the watcher counts each at its size, so that must stay.
    yield from _is_one_of(setsockopt, 2, BUFFERS, _refused(EPERM), _step(RETURN, ALLOW))
    yield from _is_one_of(socket, 0, FAMILIES, _step(RETURN, ALLOW), _refused(EAFNOSUPPORT))
    yield from _is_one_of(fcntl, 1, SPYING, _refused(EPERM), _step(RETURN, ALLOW))
    yield _step(RETURN, ALLOW)


def program(machine: str) -> bytes | None:
    """The filter for this architecture; None where the numbers of its calls are not known here."""
    return b"".join(_steps(machine)) if machine in AUDIT else None
