"""Turn a value that must not leave the house into a keyed placeholder, the same for the same value."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

import msgspec

from blade.errors import UsageError
from blade.model.measured import PLACEHOLDER

ENVIRONMENT = "BLADE_SANITIZE_KEY"
DIGITS = 8  # of the code in a placeholder
__all__ = ["PLACEHOLDER", "Key", "key_file", "known_key", "own_key", "read_key"]
MIN_KEY = 16  # bytes; a shorter key can be guessed, and with it every placeholder
_NO_FILE = "name a file with at least 16 bytes in it"


class Key(msgspec.Struct, frozen=True):
    """What placeholders are made with; it stays where the raw rows stay."""

    secret: bytes

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
        held = path.read_bytes().strip()
    except OSError as error:
        message = f"cannot read the key {path}: {error.strerror or error}"
        raise UsageError(message, _NO_FILE, "bad-sanitize-key") from error
    return _checked(held, str(path))


def known_key() -> Key | None:
    """The key of this user, if there is one: from the environment, else from the file of `own_key`."""
    told = os.environ.get(ENVIRONMENT)
    if told is not None:
        return _checked(told.encode(), ENVIRONMENT)
    path = key_file()
    return read_key(path) if path.is_file() else None


def own_key() -> Key:
    """The key of this user; one is made the first time and kept where nothing exports it."""
    known = known_key()
    if known is not None:
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


def _checked(held: bytes, where: str) -> Key:
    if len(held) < MIN_KEY:
        raise UsageError(f"the key in {where} is too short to keep a secret", _NO_FILE, "bad-sanitize-key")
    return Key(held)
