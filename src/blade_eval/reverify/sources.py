"""Find the rollouts that are to be judged again, each with the task it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from blade.errors import NothingToRead, Unreadable
from blade_eval.aggregate.shards import identity_of
from blade_eval.environment import Row
from blade_eval.profile import row_table as reading
from blade_eval.profile.row_table import Keyed, Line, Seen, Table
from blade_eval.runner import json_lines

JUDGE_FAILED = ("judge_failed", "judge_invalid")
Key = tuple[int, int]
Who = tuple[int, int, str]  # a rollout: task, repeat, and the agent where several were asked for both


class Stored(NamedTuple):
    """A line of a file of rows."""

    key: Key
    agent: str  # or nothing
    line: Line

    def row(self) -> Row:
        """What stands there; NaN is none."""
        return json_lines.any_row(self.line.data.removeprefix(reading.BOM)) or {}


@dataclass(frozen=True)
class Pair:
    """A task as it was asked, and the stored row of what came of it."""

    key: Key
    who: Who
    task: Row
    stored: Row


class Inputs:
    """The materialised rows of a run, by task, repeat and agent; only their places are held in memory."""

    def __init__(self, path: Path) -> None:
        self._table = Table()
        self._rows: dict[Key, dict[str, int]] = {}

        def take(line: Line, seen: Seen) -> Keyed | None:
            key = reading.key_of(line, seen)
            if key is not None:
                of_key = self._rows.setdefault((key.task, key.repeat), {})
                if (key.agent or "") in of_key:
                    raise _wrong(
                        path, Stored((key.task, key.repeat), key.agent or "", line), "stands there twice"
                    )
                of_key[key.agent or ""] = len(self._table)
            return key

        insist(path)
        if (seen := self._table.read(path, take)).bad:
            raise _unreadable(seen)
        if not self._rows:
            raise NothingToRead(
                f"{path} holds no row", "give --inputs the materialised inputs", "no-rollouts"
            )

    def who(self, stored: Stored) -> Who | None:
        """Which rollout a row is of; None if nobody was asked for it. An agent asked alone needs no name."""
        agents = self._rows.get(stored.key, {})
        if len(agents) < 2:
            return (*stored.key, "") if agents else None
        return (*stored.key, stored.agent) if stored.agent in agents else None

    def task(self, who: Who) -> Row:
        """The input of a rollout."""
        agents = self._rows[who[0], who[1]]
        row = agents[who[2]] if len(agents) > 1 else next(iter(agents.values()))
        return json_lines.any_row(self._table.line(row)) or {}

    def close(self) -> None:
        self._table.close()


def check(inputs: Inputs, path: Path) -> list[str]:
    """Find what is wrong with a file of rollouts before anything is written for it; what is to be told."""
    seen, found = Seen(path), set()
    for stored in keyed(path, seen):
        who = inputs.who(stored)
        if who is None:
            raise _wrong(path, stored, "is none of the inputs")
        if who in found:
            raise _wrong(path, stored, "stands there twice")
        found.add(who)
    return seen.notices()


def pairs(inputs: Inputs, path: Path) -> Iterator[Pair]:
    """Every rollout of a file with its task, in the order of the file."""
    for stored in keyed(path):
        yield _pair(inputs, path, stored)


def judge_failed(inputs: Inputs, path: Path, succeeded: set[Who]) -> Iterator[Pair]:
    """The last failure of every rollout that only lacks the judge's verdict."""
    found: dict[Who, Stored] = {}
    if path.exists():
        for stored in keyed(path):
            if stored.row().get("_ng_failure_class") in JUDGE_FAILED:
                who = inputs.who(stored)
                if who is None:
                    raise _wrong(path, stored, "is none of the inputs")
                if who not in succeeded:
                    found[who] = stored
    for _, stored in sorted(found.items(), key=lambda one: one[0]):
        yield _pair(inputs, path, stored)


def there(inputs: Inputs, path: Path) -> set[Who]:
    """The rollouts of which a file has rows."""
    found = (inputs.who(stored) for stored in keyed(path)) if path.exists() else ()
    return {who for who in found if who is not None}


def verifiers(rollouts: Path) -> dict[str, list[str]]:
    """The implementations that judged each agent's rows, as far as the run's manifest tells."""
    agents = (identity_of(rollouts) or {}).get("agents")
    found = {}
    for name, described in agents.items() if isinstance(agents, dict) else ():
        named = described.get("resources_servers") if isinstance(described, dict) else None
        if isinstance(named, dict) and named:
            found[name] = sorted(named)
    return found


def keyed(path: Path, seen: Seen | None = None) -> Iterator[Stored]:
    """Every row with its key. Only a torn end, as a killed run leaves it, is passed over and noted."""
    insist(path)
    seen = seen or Seen(path)
    for line in reading.read(path, seen):
        found = _stored(path, line, seen)
        if found is not None:
            yield found
        elif seen.bad and line.is_ended:
            raise _unreadable(seen)


def _stored(path: Path, line: Line, seen: Seen) -> Stored | None:
    key = reading.key_of(line, seen)
    return None if key is None else Stored((key.task, key.repeat), key.agent or "", line)


def _unreadable(seen: Seen) -> Unreadable:
    number, reason = seen.bad[0]
    return Unreadable(
        f"{seen.path}, line {number}: {reason}",
        "restore the file, or judge a copy without the lines that are no rows",
        "unreadable-line",
    )


def _pair(inputs: Inputs, path: Path, stored: Stored) -> Pair:
    who = inputs.who(stored)
    if who is None:
        raise _wrong(path, stored, "is none of the inputs")
    return Pair(stored.key, who, inputs.task(who), stored.row())


def insist(path: Path) -> None:
    """That there is a file, and that we may read it."""
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise NothingToRead(f"there is no file {path}", "check the path", "no-such-path") from None
    except OSError as error:
        why = error.strerror or error
        raise Unreadable(f"cannot read {path}: {why}", "check its rights", "unreadable-file") from error


def _wrong(path: Path, stored: Stored, what: str) -> Unreadable:
    (task, repeat), agent = stored.key, f" of {stored.agent}" if stored.agent else ""
    return Unreadable(
        f"{path}, line {stored.line.number}: task {task}, repeat {repeat}{agent} {what}",
        "--inputs and --rollouts must be of one run: X_materialized_inputs.jsonl and X.jsonl",
        "reverify-mismatch",
    )
