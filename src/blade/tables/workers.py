"""Do pieces of work in forked processes that never outlive their piece."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import NoReturn, TypeVar

Piece = TypeVar("Piece")
_LENGTH = 8  # bytes that tell the size of a result


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits till the end of the block, so that no process is lost sight of."""
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _started(child: Callable[[int], NoReturn]) -> tuple[int, int]:
    """A new process that runs `child` with a pipe to write to, and the pipe that its result comes through."""
    reader, writer = os.pipe()
    try:
        process = os.fork()
        if not process:
            os.close(reader)  # else it would not notice that the parent is gone
            child(writer)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return process, reader


def streamed(
    work: Callable[[Piece], bytes], pieces: list[Piece], n_workers: int
) -> Generator[tuple[Piece, bytes | None], None, None]:
    """Each piece with what `work` makes of it, as they come, from processes that are started at once.

    They hold what the parent held then and nothing of what it gathers from them. None for every piece that a
    process did not live to finish.
    """
    poll = select.poll()
    running: dict[
        int, tuple[int, list[Piece], bytearray]
    ] = {}  # pipe -> process, its pieces left, bytes read
    try:
        for number in range(min(n_workers, len(pieces))):
            mine = pieces[number::n_workers]
            try:
                with _uninterrupted():
                    process, pipe = _started(partial(_work_through, work, mine))
                    running[pipe] = process, mine, bytearray()
                    poll.register(pipe, select.POLLIN)
            except OSError:
                yield from ((piece, None) for piece in mine)
        while running:
            for pipe, _ in poll.poll():
                process, left, buffer = running[pipe]
                read = os.read(pipe, 1 << 20)
                buffer += read
                while (frame := _frame(buffer)) is not None:
                    yield left.pop(0), frame
                if not read:
                    with _uninterrupted():
                        poll.unregister(pipe)
                        del running[pipe]
                        _ended(process, pipe)
                    yield from ((piece, None) for piece in left)
    finally:
        with _uninterrupted():
            for pipe, (process, _, _) in running.items():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                _ended(process, pipe)


def _frame(buffer: bytearray) -> bytes | None:
    """The next whole result, taken off the front."""
    if len(buffer) < _LENGTH:
        return None
    size = int.from_bytes(buffer[:_LENGTH], "big")
    if len(buffer) < _LENGTH + size:
        return None
    frame = bytes(buffer[_LENGTH : _LENGTH + size])
    del buffer[: _LENGTH + size]
    return frame


def _work_through(work: Callable[[Piece], bytes], pieces: list[Piece], pipe: int) -> NoReturn:
    try:
        with os.fdopen(pipe, "wb") as file:
            for piece in pieces:
                result = work(piece)
                file.write(len(result).to_bytes(_LENGTH, "big") + result)
                file.flush()
    finally:
        os._exit(0)


def _ended(process: int, pipe: int) -> None:
    os.close(pipe)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)
