"""Do pieces of work in forked processes that never outlive their piece."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Piece = TypeVar("Piece")


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits till the end of the block, so that no process is lost sight of."""
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _started(child: Callable[[Connection], NoReturn]) -> tuple[int, Connection]:
    """A new process that runs `child` with a pipe to write to, and the pipe that its results come through."""
    from multiprocessing.connection import Pipe  # as much as all else that a small run loads here

    reader, writer = Pipe(duplex=False)
    try:
        process = os.fork()
        if not process:
            reader.close()  # else it would not notice that the parent is gone
            child(writer)
    except OSError:
        reader.close()
        raise
    finally:
        writer.close()
    return process, reader


def streamed(
    work: Callable[[Piece], bytes], pieces: list[Piece], n_workers: int
) -> Generator[tuple[Piece, bytes | None], None, None]:
    """Each piece with what `work` makes of it, as they come, from processes that are started at once.

    They hold what the parent held then and nothing of what it gathers from them. None for every piece that a
    process did not live to finish.
    """
    from multiprocessing.connection import wait

    running: dict[Connection, tuple[int, list[Piece]]] = {}  # pipe -> process and its pieces left
    try:
        for number in range(min(n_workers, len(pieces))):
            mine = pieces[number::n_workers]
            try:
                with _uninterrupted():
                    process, pipe = _started(partial(_work_through, work, mine))
                    running[pipe] = process, mine
            except OSError:
                yield from ((piece, None) for piece in mine)
        while running:
            ready = set(wait(running))
            for pipe, (process, left) in [(pipe, running[pipe]) for pipe in running if pipe in ready]:
                try:
                    result = pipe.recv_bytes()
                except (EOFError, OSError):  # it ended, perhaps in the middle of a result
                    with _uninterrupted():
                        del running[pipe]
                        _ended(process, pipe)
                    yield from ((piece, None) for piece in left)
                else:
                    yield left.pop(0), result
    finally:
        with _uninterrupted():
            for pipe, (process, _) in running.items():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                _ended(process, pipe)


def _work_through(work: Callable[[Piece], bytes], pieces: list[Piece], pipe: Connection) -> NoReturn:
    try:
        for piece in pieces:
            pipe.send_bytes(work(piece))
    finally:
        os._exit(0)


def _ended(process: int, pipe: Connection) -> None:
    pipe.close()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)
