"""Open the files of a run: begin it, or go on with it if it is the same run, else say why not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from blade.errors import NothingToRead, UsageError
from blade_eval.environment import Row
from blade_eval.runner import encode, kept, manifest
from blade_eval.runner.kept import Kept, Standing, Told
from blade_eval.runner.places import Places

_NAMED = 5  # differences that a message names


@dataclass(frozen=True)
class Begun:
    """The files of a run, open and whole, and what they hold."""

    kept: Kept
    standing: Standing
    expected: int
    is_resumed: bool


def begun(
    places: Places,
    rows: Iterable[Row],
    identity: Row,
    *,
    resume: bool,
    force: bool,
    notice: Callable[[str], None],
    seen: Callable[[Told], None] | None = None,
) -> Begun:
    """Write the materialised rows, or see that those of the earlier sitting are the same."""
    files = Kept(places)  # before anything is looked at: another process may be writing
    draft = places.materialized.with_name(places.materialized.name + ".tmp")
    try:
        has_before = _size(places.rollouts) > 0 or _size(places.failures) > 0
        if has_before and not resume and not force:
            raise UsageError(
                f"{places.rollouts} is there already",
                "--resume goes on with it, --force begins anew and deletes it, --output names another file",
                "output-exists",
            )
        expected = _written(draft, rows)
        goes_on = resume and _same(places, draft, identity, has_before, notice)
        if goes_on:
            draft.unlink()
            for path in (places.rollouts, places.failures):
                told = kept.mended(path)
                if told:
                    notice(told)
        else:
            files.emptied()
            os.replace(draft, places.materialized)
        standing = kept.standing(places, seen)
        for path, numbers in standing.unreadable.items():
            notice(files.set_aside(path, numbers))
        return Begun(files, standing, expected, goes_on)
    except OSError as error:
        files.close()
        raise kept.cannot_write(places.rollouts, error) from error
    except BaseException:
        files.close()
        raise
    finally:
        draft.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _written(draft: Path, rows: Iterable[Row]) -> int:
    count = 0
    with draft.open("wb", buffering=1 << 20) as file:
        for row in rows:
            file.write(encode.line(row))
            count += 1
    if not count:
        raise NothingToRead(
            "there is no row to run", "the input is empty, or this shard or limit has no task", "no-rows"
        )
    return count


def _same(
    places: Places, draft: Path, identity: Row, has_before: bool, notice: Callable[[str], None]
) -> bool:
    """Whether there is an earlier sitting of this very run; one of another run is refused."""
    if not has_before:  # also when it was killed before its first rollout
        notice("there is nothing to go on with yet; the run begins")
        return False
    if not places.materialized.exists():
        raise UsageError(
            f"{places.materialized.name} is missing, so nobody knows which rollouts are",
            "begin anew with --force, or with another --output",
            "cannot-resume",
        )
    before = manifest.read(places.manifest)
    changed = manifest.differences(before.get("identity") or {}, identity) if before else []
    if not changed:
        difference = _difference(places.materialized, draft)
        changed = [difference] if difference else []
    if changed:
        more = f"; and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise UsageError(
            f"this is not the run that {places.rollouts} holds: {'; '.join(changed[:_NAMED])}{more}",
            "give the same data and flags to go on; --force begins anew, --output names another file",
            "cannot-resume",
        )
    return True


def _difference(one: Path, other: Path) -> str:
    """Where two materialised files part, as objects: their spelling may differ."""
    with one.open("rb") as before, other.open("rb") as after:
        for number, (old, new) in enumerate(zip_longest(_lines(before), _lines(after)), 1):
            if old == new:
                continue
            if old is None or new is None:
                return f"it had {'more' if new is None else 'fewer'} rows (line {number} of the inputs)"
            left, right = encode.decode(old), encode.decode(new)
            if left != right:
                keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
                return f"line {number} of the inputs has another {', '.join(keys[:3])}"
    return ""


def _lines(file: Iterable[bytes]) -> Iterator[bytes]:
    return (line for line in file if line.strip())
