"""Find what looks private in a package, and write a package without it that still proves itself."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from blade.errors import BladeError
from blade.package.drafts import redraft
from blade.package.layout import Golden, Layout, layout, text_or_nothing, write_text
from blade.package.validation import SANITISED, Check, plural
from blade.sanitize import Export, Key, Policy, Removed, folder_pairs, own_key, policy_near
from blade.sanitize.files import inside, looked
from blade.tables.index import Watcher
from blade.targets import put_files, staging

SHOWN = 10  # files listed one by one


def sanitised_checks(package: Layout) -> list[Check]:
    """Whether anything in the package looks private, with a line for each file that holds such things."""
    if not package.folder.is_dir():
        return []
    folder = package.folder.resolve()
    paths = dict(inside(folder, None))
    links = [path.relative_to(folder) for path in paths if path.is_symlink()]
    refused = [Check(False, f"{name} is a link, and what it leads to is not shared", SANITISED) for name in links]
    try:
        removed = looked(paths, _policy(package), paths, lambda path: path.relative_to(folder))
    except BladeError as error:
        return [*refused, Check(False, f"not looked through for private values: {error.message}", SANITISED)]
    if not removed.total and not refused:
        return [Check(True, f"nothing in {plural(len(removed.files), 'file')} looks private", SANITISED)]
    texts, kinds = [], Counter[tuple[str, str]]()
    for place in removed.places:
        kinds[place.file, place.kind] += place.count
    private = {file: n for file, n in removed.files.items() if n}
    for file, n in list(private.items())[:SHOWN]:
        listed = ", ".join(f"{count:,} {kind}" for (of, kind), count in sorted(kinds.items()) if of == file and count)
        texts.append(f"{file}: {plural(n, 'value')} that look private: {listed}")
    if len(private) > SHOWN:
        texts.append(f"{len(private) - SHOWN} further files hold values that look private")
    return [*refused[:SHOWN], *(Check(False, text, SANITISED) for text in texts)]


def _policy(package: Layout) -> Policy:
    return policy_near([package.folder, *package.rollouts])


def sanitise(
    source: Path, target: Path, policy: Policy | None, key: Key | None, watcher: Watcher, force: bool = False
) -> Removed:
    """Clean a package into `target`; drafts are written anew there, from the clean rollouts."""
    source, real = source.resolve(), target.resolve()
    before = layout(source)
    policy, key = policy if policy is not None else _policy(before), key or own_key()
    export = Export(key, policy)
    with staging(real) as waiting:  # until nothing private is found; else none of it is put in place
        draft = Path(waiting, target.absolute().name)
        pairs = []
        for path, there in folder_pairs(source, target, policy, key):
            if before.is_part(path.relative_to(source)):
                pairs.append((path, draft / there.relative_to(target)))
            else:
                export.tally.left_out[str(there.relative_to(target))] = "is no part of a package"
        export.clean(pairs)
        after = layout(draft)
        if len(before.rollouts) == len(after.rollouts) and len(before.goldens) == len(after.goldens):
            for raw, clean in zip(before.goldens, after.goldens, strict=True):
                if not redraft(after, clean, watcher):
                    _rehash((before, raw), (after, clean))
        paths = [path.relative_to(draft) for path in sorted(draft.rglob("*")) if path.is_file()]
        export.test((str(target / path), draft / path) for path in paths)
        put_files([(draft / path, real / path) for path in paths] if not export.tally.leaks else (), force)
    return export.tally.told()


def _rehash(raw: tuple[Layout, Golden], clean: tuple[Layout, Golden]) -> None:
    text = text_or_nothing(clean[1].report)
    lines = text.split("\n")
    for pair in zip(raw[0].rollouts, clean[0].rollouts, strict=True):
        old, new = map(_sha256, pair)
        was, now = (f"{path.stat().st_size:,}" for path in pair)
        lines = [line.replace(was, now).replace(old, new) if old in line else line for line in lines]
    if text:
        write_text(clean[1].report, "\n".join(lines))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
