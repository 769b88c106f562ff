"""Turn a prompt template and the columns of a row into the messages that a model is given."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blade.errors import Unreadable
from blade_eval.config.sources import MOST_BYTES
from blade_eval.environment import Row

_parse = string.Formatter().parse


@dataclass(frozen=True)
class Prompt:
    """The templates of a `prompt_config`: texts with `{column}`; a brace that is meant is doubled."""

    path: str
    user: str
    system: str | None = None
    sha256: str = ""

    def messages(self, row: Row) -> list[Row]:
        """The input of a request; a column that is not there is a KeyError."""
        system = [] if self.system is None else [{"role": "system", "content": filled(self.system, row)}]
        return [*system, {"role": "user", "content": filled(self.user, row)}]


def filled(template: str, row: Mapping[str, Any]) -> str:
    """The template with the columns in place; they are put in as they are and never read as templates."""
    parts = []
    for text, name, _, conversion in _parse(template):
        parts.append(text)
        if name is not None:
            value = row[name]
            parts.append(repr(value) if conversion == "r" else str(value))
    return "".join(parts)


def loaded(path: Path) -> Prompt:
    """The templates of a YAML file."""
    import yaml

    try:
        with path.open("rb") as file:  # a device has no size, and no end
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _wrong(path, f"it is larger than {MOST_BYTES:,} bytes")
        config = yaml.safe_load(data.decode())
    except OSError as error:
        hint = "name a YAML file with the key user, and system if there is one"
        raise Unreadable(f"cannot read the prompt {path}: {error.strerror}", hint, "bad-prompt") from error
    except (yaml.YAMLError, ValueError) as error:
        raise _wrong(path, f"it is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(config, Mapping) or not isinstance(config.get("user"), str):
        raise _wrong(path, "it has no text under the key user")
    system = config.get("system")
    if system is not None and not isinstance(system, str):
        raise _wrong(path, "system is no text")
    for template in (config["user"], system or ""):
        try:
            names = [name for _, name, _, _ in _parse(template) if name is not None]
        except ValueError as error:
            raise _wrong(
                path, f"a brace is out of place ({error}); a brace that is meant is doubled"
            ) from error
        if "" in names:
            raise _wrong(path, "{} names no column; braces that are meant are doubled")
    return Prompt(str(path), config["user"], system, hashlib.sha256(data).hexdigest())


def _wrong(path: Path, why: str) -> Unreadable:
    hint = "a prompt is YAML with `user:` and, if wanted, `system:`, texts with {column} of the rows in them"
    return Unreadable(f"the prompt {path} cannot be used: {why}", hint, "bad-prompt")
