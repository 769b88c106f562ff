"""Hide keys, tokens and passwords before a configuration is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from blade.evaluate.config.nouns import KINDS

HIDDEN = "****"

# A word of a key's name that ends so names a secret: api_key, hfToken, OPENAI_APIKEY; not tokenizer, keyword.
_SECRET = re.compile(r"(?:key|token|secret|password|passwd|passphrase|credential|authorization)s?$")
_COUNTED = re.compile(r"(?:^|[_-])(?:tokens|keys)$")  # max_output_tokens: a number there is a number
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LOGIN = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_QUERY = re.compile(
    r"([?&](?:api[-_]?key|access[-_]?token|token|key|secret|password|sig(?:nature)?)=)[^&\s#]+", re.I
)
_LEFT = re.compile(r"^(?:\?\?\?|\$\{[^{}]*\}|)$")  # not yet a value
_SHORTEST = 6  # a shorter secret stands by chance inside other words


def hidden(tree: Any, environ: Mapping[str, str] | None = None) -> Any:
    """A copy to be shown, without secrets: found by their key's name, hidden wherever they stand."""
    environ = os.environ if environ is None else environ
    secrets = {value for name, value in environ.items() if names_secret(name) and len(value) >= 8}
    _collect(tree, False, secrets)
    known = sorted(secrets, key=lambda text: (-len(text), text))
    return _shown(tree, False, known)


def names_secret(name: str) -> bool:
    """Whether a key of that name holds a secret."""
    return any(_SECRET.search(word.lower()) for word in _WORD.findall(name))


def _collect(value: Any, secret: bool, into: set[str]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(inner, (secret or names_secret(str(key))) and not _is_block(inner), into)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, secret, into)
    elif secret and isinstance(value, str) and len(value) >= _SHORTEST and not _LEFT.match(value):
        into.add(value)


def _shown(value: Any, secret: bool, known: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            _text(key, known) if isinstance(key, str) else key: _below(key, inner, secret, known)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_shown(inner, secret, known) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return HIDDEN if secret and not _LEFT.match(value) else _text(value, known)
    return HIDDEN if secret else value


def _below(key: Any, inner: Any, secret: bool, known: list[str]) -> Any:
    secret = (secret or names_secret(str(key))) and not _is_block(inner)
    if secret and isinstance(inner, int | float) and _COUNTED.search(str(key).lower()):
        return inner
    return _shown(inner, secret, known)


def _is_block(value: Any) -> bool:
    """An instance may be called anything."""
    return isinstance(value, dict) and any(kind in value for kind in KINDS)


def _text(text: str, known: list[str]) -> str:
    for secret in known:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return _QUERY.sub(rf"\g<1>{HIDDEN}", _LOGIN.sub(HIDDEN, text))
