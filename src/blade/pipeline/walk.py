"""Take the tasks of a run through the stages that read traces: rows in, what each task showed out."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from blade import events
from blade.formats import opened
from blade.model import Episode, TaskTraces
from blade.tables import workers

if TYPE_CHECKING:
    from blade.formats.assemble import Assembled
    from blade.model import Judged
    from blade.tables.index import Watcher

T = TypeVar("T")
Span = tuple[int, int]  # from, to: places in `Judged.rows`

_PIECE_ROWS = 128  # that travel together
_KEPT_BYTES = 16 << 20
_PARALLEL_ROWS = 64  # below this a second process costs more than it brings


class Walker:
    """Opens the tasks of one run; `tools` says what tools do where a person said so."""

    def __init__(self, run: Assembled, judged: Judged, tools: Mapping[str, str]) -> None:
        self._run, self._judged, self._tools = run, judged, tools
        self._place = {int(position): at for at, position in enumerate(judged.rows)}
        self._inputs = opened.input_rows(run)
        self._kept: dict[int, Episode] = {}  # of a run so small that no second process reads it

    def opener(self, position: int) -> Episode:
        """The row at a position of `Rollouts`, read as events: for the few rows that are quoted."""
        at = self._place[position]
        return self._kept[at] if at in self._kept else self._episode(at)

    def row(self, position: int) -> dict[str, Any]:
        """The row at a position of `Rollouts`, whether it counts or not."""
        kept = self._kept.get(self._place.get(position, -1))
        return dict(kept.trace.row) if kept is not None else opened.row(self._run, position)

    def _episode(self, at: int) -> Episode:
        judged = self._judged
        position = int(judged.rows[at])
        passed = bool(judged.passed[at]) if judged.judged else None
        trace = opened.traced(self._run, position)
        score = float(judged.score[at])
        try:
            return events.episode(trace, position, score, passed, self._tools)
        except Exception as error:  # rows are hostile: one must not cost the report
            fault = f"{type(error).__name__}: {error}"[:200]
            return Episode(trace, position, score, passed, (), "", None, {}, False, fault)

    def task(self, span: Span) -> TaskTraces:
        """All counted rollouts of one task."""
        episodes = tuple(self._episode(at) for at in range(*span))
        first = episodes[0].trace
        given = opened.given(self._run, self._inputs.get(first.rollout.task))
        return TaskTraces(
            first.rollout.run, first.rollout.task, first.rollout.task_name, episodes, _gold(episodes, given), given
        )

    def spans(self) -> list[Span]:
        """The rows of each task."""
        import numpy as np

        task = self._judged.task
        if not task.size:
            return []
        starts = np.flatnonzero(np.r_[True, task[1:] != task[:-1]])
        ends = np.r_[starts[1:], task.size]
        return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]

    def walk(
        self, spans: list[Span], work: Callable[[TaskTraces], T], what: str, watcher: Watcher
    ) -> Iterator[T]:
        """What `work` makes of each task, in the order of the tasks, on all cores."""
        total = sum(end - start for start, end in spans)
        watcher.start(what, total, "rows")
        if total < _PARALLEL_ROWS or (os.cpu_count() or 1) < 2:
            keeps = self._fits()
            for span in spans:
                task = self.task(span)
                if keeps:
                    self._kept.update(zip(range(*span), task.episodes, strict=True))
                yield work(task)
                watcher.advance(span[1] - span[0])
            return
        yield work(self.task(spans[0]))  # what it imports and compiles, every process then has
        watcher.advance(spans[0][1] - spans[0][0])
        yield from self._in_parallel(_pieces(spans[1:]), work, watcher)

    def _fits(self) -> bool:
        """Whether all rows may stay in memory, so that none is opened again for a quotation."""
        rows = self._run.rollouts.row_id[self._judged.rows]
        return bool(self._run.rows.numbers("length")[rows].sum() <= _KEPT_BYTES)

    def _in_parallel(
        self, pieces: list[tuple[Span, ...]], work: Callable[[TaskTraces], T], watcher: Watcher
    ) -> Iterator[T]:
        def of_piece(piece: tuple[Span, ...]) -> bytes:
            return pickle.dumps([work(self.task(span)) for span in piece], pickle.HIGHEST_PROTOCOL)

        def in_worker(piece: tuple[Span, ...]) -> bytes:
            gc.disable()  # a pass over what the parent holds would copy all of its pages
            return of_piece(piece)

        done: dict[tuple[Span, ...], bytes] = {}
        waiting = iter(pieces)
        wanted = next(waiting, None)
        for piece, told in workers.streamed(in_worker, pieces, os.cpu_count() or 1):
            # a process that failed met a fault: meet it here, where it can be told
            done[piece] = told if told is not None else of_piece(piece)
            watcher.advance(sum(end - start for start, end in piece))
            while wanted is not None and wanted in done:
                seen: list[Any] = pickle.loads(done.pop(wanted))
                yield from seen
                wanted = next(waiting, None)


def _pieces(spans: list[Span]) -> list[tuple[Span, ...]]:
    found: list[tuple[Span, ...]] = []
    piece: list[Span] = []
    rows = 0
    for span in spans:
        piece.append(span)
        rows += span[1] - span[0]
        if rows >= _PIECE_ROWS:
            found.append(tuple(piece))
            piece, rows = [], 0
    return [*found, tuple(piece)] if piece else found


def _gold(episodes: tuple[Episode, ...], given: Mapping[str, Any]) -> Any:
    """What the task expects, from the first row that says so: a row cut short by an error may not."""
    found = events.gold(episodes[0].trace.row)
    for row in (*(episode.trace.row for episode in episodes[1:]), given):
        if found.answer is not None or found.actions:
            break
        found = events.gold(row)
    return found
