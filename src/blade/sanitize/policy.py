"""Read what may leave and with which key: `[sharing]` of blade.toml, and the key of the placeholders."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from blade.errors import NothingToRead, Unreadable, UsageError
from blade.model.measurements import PLACEHOLDER as PLACEHOLDER

ENVIRONMENT = "BLADE_SANITIZE_KEY"
DIGITS = 8  # of the code in a placeholder
MIN_KEY = 16  # bytes; a shorter key can be guessed, and with it every placeholder
_NO_FILE = "name a file with at least 16 bytes in it"


class Key(msgspec.Struct, frozen=True):
    """What placeholders are made with; it stays where the raw rows stay."""

    secret: bytes
    path: Path | None = None  # where it was read from

    def __repr__(self) -> str:
        return "Key(...)"

    def code(self, kind: str, value: str) -> str:
        data = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.secret, data, "sha256").hex()[:DIGITS]

    def placeholder(self, kind: str, value: str) -> str:
        """`[KIND:code]`."""
        return f"[{kind}:{self.code(kind, value)}]"

    def stub(self, kind: str, value: str) -> str:
        """`[KIND:code:length]`: what is left of a text that is dropped whole."""
        return f"[{kind}:{self.code(kind, value)}:{len(value)}]"


def read_key(path: Path) -> Key:
    """The key in a file."""
    try:
        return msgspec.structs.replace(_checked(path.read_bytes().strip(), str(path)), path=path)
    except OSError as error:
        message = f"cannot read the key {path}: {error.strerror or error}"
        raise UsageError(message, _NO_FILE, "bad-sanitize-key") from error


def known_key() -> Key | None:
    """The key of this user, if there is one: from the environment, else from the file of `own_key`."""
    words = os.environ.get(ENVIRONMENT)
    if words is not None:
        return _checked(words.encode(), ENVIRONMENT)
    path = key_file()
    return read_key(path) if path.is_file() else None


def own_key() -> Key:
    """The key of this user; one is made the first time and kept where nothing exports it."""
    if (known := known_key()) is not None:
        return known
    path = key_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    except FileExistsError:
        pass  # another process was quicker: its key is the key
    except OSError as error:
        hint = f"give --key FILE, or set {ENVIRONMENT}"
        message = f"cannot keep a key in {path}: {error.strerror or error}"
        raise UsageError(message, hint, "bad-sanitize-key") from error
    return read_key(path)


def key_file() -> Path:
    """Where the key of this user lies."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "blade" / "sanitize.key"


def _checked(content: bytes, where: str) -> Key:
    if len(content) < MIN_KEY:
        raise UsageError(f"the key in {where} is too short to keep a secret", _NO_FILE, "bad-sanitize-key")
    return Key(content)


# ---- [sharing] -----------------------------------------------------------------------------------

KEYS = ("names", "hosts", "users", "drop_fields", "source_code", "cleared", "allow")
SOURCE_CODE = ("keep", "hash")
# What every count rests on: without these fields the rows would say something else.
_NEEDED = frozenset("reward _ng_task_index _ng_rollout_index agent_ref response".split())
_FILE = "blade.toml"


class Policy(msgspec.Struct, frozen=True):
    """What must not leave beside what is private by its form."""

    names: tuple[str, ...] = ()  # unreleased benchmarks, projects, people
    hosts: tuple[str, ...] = ()  # host names, or endings such as .example.net
    users: tuple[str, ...] = ()
    drop_fields: tuple[str, ...] = ()  # `patch` at any depth, or `verifier.patch`
    source_code: str = "keep"  # or hash: fenced blocks, diffs and files leave hash and length
    cleared: tuple[str, ...] = ()  # fields whose source code may stay
    allow: tuple[str, ...] = ()  # values that look private and are not
    ids: tuple[str, ...] = ()  # fields of the row that name its task or hold a verifier's code

    def drops(self, path: tuple[str, ...]) -> bool:
        """Is the field at this path to be dropped."""
        return any(_ends(path, words) for words in self.drop_fields)

    def clears(self, path: tuple[str, ...]) -> bool:
        """May the source code below this path stay."""
        return any(_ends(path[: place + 1], words) for words in self.cleared for place in range(len(path)))


def _ends(path: tuple[str, ...], words: str) -> bool:
    parts = tuple(words.split("."))
    return path[-len(parts) :] == parts


def read_policy(path: Path) -> Policy:
    """The `[sharing]` table of a blade.toml; an empty policy if it has none."""
    if not path.exists():
        raise NothingToRead(f"{path} does not exist", "name a blade.toml with --policy", "no-such-path")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.structs.replace(policy_of(data.get("sharing", {})), ids=_ids(data))
    except (OSError, ValueError, TypeError) as error:
        message = f"{path} does not say what may be shared: {error}"
        raise Unreadable(message, "docs/sanitize.md lists the keys of [sharing]", "bad-config") from error


def _ids(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that the benchmark's facts name as its task id and as its verifier's codes."""
    codes = data.get("codes")
    listed = codes if isinstance(codes, list) else []
    words = [data.get("task_id"), *(entry.get("field") for entry in listed if isinstance(entry, Mapping))]
    return tuple(dict.fromkeys(name for name in words if isinstance(name, str)))


def policy_of(table: Any) -> Policy:
    """A `[sharing]` table, checked key by key; TypeError or ValueError say what is wrong with it."""
    if not isinstance(table, Mapping):
        raise TypeError("sharing must be a table")
    unknown = sorted(table.keys() - set(KEYS))
    if unknown:
        raise ValueError(f"[sharing] has no key {unknown[0]}")
    code = table.get("source_code", "keep")
    if code not in SOURCE_CODE:
        raise ValueError(f"source_code must be one of {', '.join(SOURCE_CODE)}")
    lists = {key: _texts(table, key) for key in KEYS if key != "source_code"}
    for words in lists["drop_fields"]:
        if words.rpartition(".")[2] in _NEEDED:
            raise ValueError(f"drop_fields may not name {words}: nothing can be counted without it")
    return Policy(source_code=code, **lists)


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
        raise TypeError(f"{key} must be a list of texts")
    return tuple(value.strip() for value in values)


def policy_near(paths: list[Path], *, here: bool = True) -> Policy:
    """What every blade.toml around these files says together; nothing if there is none.

    It may lie beside a file, above it in its package, beside the rollouts of that package, or `here`: in the
    folder that one works in, which says nothing of a report that is to be redacted alike elsewhere.
    """
    return joined([read_policy(path) for path in policies_near(paths, here=here)])


def policies_near(paths: list[Path], *, here: bool = True) -> list[Path]:
    """The files that `policy_near` reads."""
    hits: dict[Path, Path] = {}
    for path in paths:
        folder = path if path.is_dir() else path.parent
        around = [folder, folder.parent, folder / "rollouts", folder.parent / "rollouts", *[Path()] * here]
        for file in (place / _FILE for place in around):
            if file.is_file():
                hits.setdefault(file.resolve(), file)
    return list(hits.values())


def joined(policies: list[Policy]) -> Policy:
    """What several policies ask for together: what one takes out no other may keep."""
    if len(policies) == 1:
        return policies[0]
    keys = [key for key in (*KEYS, "ids") if key != "source_code"]
    lists = {key: tuple(dict.fromkeys(words for each in policies for words in getattr(each, key))) for key in keys}
    taken = {words.casefold() for key in ("names", "hosts", "users") for words in lists[key]}
    lists["allow"] = tuple(words for words in lists["allow"] if words.casefold() not in taken)
    strict = any(policy.source_code == "hash" for policy in policies)
    return Policy(source_code="hash" if strict else "keep", **lists)


def name_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Any of the names, in any case, however its words are joined."""
    if not names:
        return None
    words = sorted(set(names), key=lambda name: (-len(name), name))
    each = [r"[\s_.\-]{0,3}".join(map(re.escape, re.split(r"[\s_\-]+", name))) for name in words]
    # a digit may follow, as in NAME2; a letter would make it another word
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(each)})(?![^\W\d_])", re.IGNORECASE)
