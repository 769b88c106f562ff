"""Find what looks private in a package, and write a package without it that still proves itself."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from blade.errors import BladeError
from blade.package import files
from blade.package.replacements import Carried
from blade.package.drafts import page_of, redraft
from blade.package.layout import Golden, Layout, is_part, layout
from blade.package.validate.phases import SANITISED, Check, plural

if TYPE_CHECKING:
    from blade.sanitize import Cleaner, Key, Policy, Removed
    from blade.store.index import Watcher

SHOWN = 10  # files told one by one


def sanitised_checks(package: Layout) -> list[Check]:
    """Whether anything in the package looks private, with a line for each file that holds such things."""
    from blade.sanitize.files import inside, looked

    if not package.folder.is_dir():
        return []
    try:
        found = looked([path for path, _ in inside(package.folder, None)], _policy(package))
    except BladeError as error:
        return [Check(False, f"not looked through for private values: {error.message}", SANITISED)]
    if not found.total:
        return [Check(True, f"nothing in {plural(len(found.files), 'file')} looks private", SANITISED)]
    return list(_told(package.folder, found))


def _told(folder: Path, found: Removed) -> Iterator[Check]:
    private = {file: n for file, n in found.files.items() if n}
    for file, n in list(private.items())[:SHOWN]:
        kinds: Counter[str] = Counter()
        for place in found.places:
            kinds[place.kind] += place.count if place.file == file else 0
        told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()) if count)
        name = Path(file).relative_to(folder)
        yield Check(False, f"{name}: {plural(n, 'value')} that look private: {told}", SANITISED)
    if len(private) > SHOWN:
        yield Check(False, f"{len(private) - SHOWN} further files hold values that look private", SANITISED)


def _policy(package: Layout) -> Policy:
    """What the benchmark's own facts say of sharing, in the package or beside its rollouts."""
    from blade.sanitize import policy_near

    return policy_near([package.folder, *package.rollouts])


def sanitise(source: Path, target: Path, policy: Policy | None, key: Key | None, watcher: Watcher) -> Removed:
    """Clean a package into `target`; drafts are written anew there, from the clean rollouts.

    All of it waits beside `target` until nothing private is found in it; else none of it is put in place.
    """
    from blade.sanitize import Export, folder_pairs, own_key

    before = layout(source)
    policy, key = policy if policy is not None else _policy(before), key or own_key()
    export = Export(key, policy)
    parent = target.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".blade-", dir=parent) as waiting:
        held = Path(waiting, target.absolute().name)
        pairs = []
        for path, there in folder_pairs(source, target, policy, key):
            if is_part(before, path.relative_to(source)):
                pairs.append((path, held / there.relative_to(target)))
            else:
                export.tally.left_out[str(there.relative_to(target))] = "is no part of a package"
        export.clean(pairs)
        after = layout(held)
        if len(before.rollouts) == len(after.rollouts) and len(before.goldens) == len(after.goldens):
            for raw, clean in zip(before.goldens, after.goldens, strict=True):
                if not redraft(after, clean, watcher):
                    _rehash(clean.report, before, after)
                    _carry(export.cleaner, (before, raw), (after, clean), watcher)
        files = [path.relative_to(held) for path in sorted(held.rglob("*")) if path.is_file()]
        export.test((str(target / path), held / path) for path in files)
        for path in files if not export.tally.leaks else ():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(held / path, target / path)
    return export.tally.told()


def _carry(
    cleaner: Cleaner, before: tuple[Layout, Golden], after: tuple[Layout, Golden], watcher: Watcher
) -> None:
    """Let what a person wrote say of clean rollouts what it said of raw ones."""
    old, new = page_of(*before, watcher), page_of(*after, watcher)
    if old is None or new is None:
        return
    carried, one = Carried(cleaner.silent(old), new), after[1]
    for path in (one.report, one.anchors, one.shallow):
        if carried and path.is_file():
            text = files.text(path)
            files.write(path, carried.text(text) if path.suffix == ".md" else carried.line(text))


def _rehash(report: Path, before: Layout, after: Layout) -> None:
    """Give a report the hash and the size of the rollouts that it now lies beside."""
    from blade.report.words import sized

    try:
        lines = files.text(report).split("\n")
    except files.Broken:
        return
    for raw, clean in zip(before.rollouts, after.rollouts, strict=True):
        old, new = _sha256(raw), _sha256(clean)
        sizes = sized(raw.stat().st_size), sized(clean.stat().st_size)
        lines = [line.replace(*sizes).replace(old, new) if old in line else line for line in lines]
    files.write(report, "\n".join(lines))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
