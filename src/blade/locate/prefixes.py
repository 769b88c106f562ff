"""Turn the repeats of a task into the step after which they pass less often: a trie of what they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from blade import events
from blade.align import FINISH, end_step
from blade.locate.vote import Candidate
from blade.model import Episode, TaskTraces

MAX_TOKENS = 200
MIN_ROWS = 3  # rollouts at a node, for a drop below it to count

Token = tuple[str, int]


class Node(NamedTuple):
    """How many rollouts begin like this, and how many of them pass."""

    n: int
    passed: int

    @property
    def value(self) -> float:
        return (self.passed + 1) / (self.n + 2)


class Trie:
    """The beginnings of all rollouts of a task; the root is 0."""

    def __init__(self, rows: Iterable[tuple[list[Token], bool]]) -> None:
        self._next: dict[tuple[int, str], int] = {}
        self._nodes: list[list[int]] = [[0, 0]]
        for tokens, passed in rows:
            for at in self._path(tokens, grow=True):
                self._nodes[at][0] += 1
                self._nodes[at][1] += passed

    def _path(self, tokens: list[Token], grow: bool = False) -> list[int]:
        path = [0]
        for name, _ in tokens:
            key = (path[-1], name)
            if grow and key not in self._next:
                self._next[key] = len(self._nodes)
                self._nodes.append([0, 0])
            path.append(self._next[key])
        return path

    def nodes(self, tokens: list[Token]) -> list[Node]:
        """The nodes a rollout of the task passes through, the root first."""
        return [Node(*self._nodes[at]) for at in self._path(tokens)]


def drop(nodes: list[Node]) -> int | None:
    """The place of the largest fall in value, the earliest on ties; None if the value never falls."""
    falls = [before.value - after.value if before.n >= MIN_ROWS else 0.0 for before, after in pairwise(nodes)]
    best = max(falls, default=0.0)
    return falls.index(best) if best > 1e-12 else None


def value_drops(task: TaskTraces) -> Mapping[int, Candidate]:
    """For failing rollouts, by position, the step after which repeats pass less often."""
    judged = [episode for episode in task.episodes if episode.passed is not None]
    if len({episode.passed for episode in judged}) < 2:
        return {}
    found: dict[int, Candidate] = {}
    for tokens_of in (events.tool_tokens, events.salient_tokens):
        rows = {episode.position: _ended(episode, tokens_of(episode)) for episode in judged}
        trie = Trie((rows[episode.position], bool(episode.passed)) for episode in judged)
        for episode in judged:
            if episode.passed or episode.position in found:
                continue
            tokens = rows[episode.position]
            nodes = trie.nodes(tokens)
            at = drop(nodes)
            if at is not None:
                name, step = tokens[at]
                found[episode.position] = Candidate(step, "value_drop", _reason(name, nodes, at))
    return found


def _ended(episode: Episode, tokens: list[Token]) -> list[Token]:
    end = end_step(episode)
    return tokens[:MAX_TOKENS] + ([(FINISH, end)] if end is not None else [])


def _reason(name: str, nodes: list[Node], at: int) -> str:
    before, after = nodes[at], nodes[at + 1]
    what = "finish here" if name == FINISH else f"go on with {name}"
    return (
        f"{before.passed} of {before.n} repeats that begin like this pass, "
        f"{after.passed} of {after.n} of those that {what}"
    )
