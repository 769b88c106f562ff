"""Hide keys, tokens and passwords before a configuration, a command or an error is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blade_eval.config.config_nouns import KINDS

HIDDEN = "****"

# A word of a key's name that ends so names a secret: api_key, hfToken, OPENAI_APIKEY; not tokenizer, keyword.
_SECRET = re.compile(
    r"(?:key|token|secret|password|passwd|pwd|passphrase|credential|authorization|auth|bearer|cookie|webhook)s?$"
    r"|^pats?$"
)
_COUNTED = re.compile(r"(?:^|[_.+-])(?:tokens|keys)$")  # max_output_tokens: a number there is a number
_NUMBER = re.compile(r"[-+]?[\d_.]+(?:e[-+]?\d+)?", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PLACES = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})  # names of the environment that only sound like it
_LEFT = re.compile(r"^(?:\?\?\?|\$\{[^{}]*\}|)$")  # not yet a value
_SHORTEST = 6  # a shorter one is a word such as `none`
_TELLING = 8  # and one shorter than this stands by chance inside other words

# Secrets that a text shows by its form, in bounded steps, for the text may be a stranger's. A password may
# hold a slash or an @ that nobody escaped, while an @ after the host (`…/x@main`, `…/@name`) is no login.
_LOGIN = re.compile(r"(?<=://)(?:[^/\s]+(?=@)|[^/\s@:\[]+:(?!\d*(?:/|$))\S{0,300}(?=@))")
_QUERY = re.compile(r"([?&;]([\w.-]+)=)[^&\s#'\"]+")
_SIGNED = frozenset({"sig", "signature", "code"})
_HEADER = re.compile(
    r"(\b(?:(?:proxy-)?authorization|(?:x-)?api-key|x-[\w-]{0,40}(?:key|token)|^(?:set-)?cookie)['\"]?\s*[:=]\s*['\"]?"
    r"(?:(?:bearer|basic|token|digest)\s+)?)(?![$?*])[^\s'\",]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s+)(?=[^\s'\",]*\d)[^\s'\",]{8,}", re.IGNORECASE)
# How some services begin theirs.
_ISSUED = re.compile(r"\b(?:sk-[\w-]{16,}|(?:ghp|gho|ghs|hf)_[A-Za-z0-9]{20,}|nvapi-[\w-]{20,})")


def hidden(tree: Any, environ: Mapping[str, str] | None = None) -> Any:
    """A copy to be shown, without secrets: found by their key's name, hidden in every value, in no key."""
    secrets = _of_environment(environ)
    _collect(tree, False, secrets)
    return _shown(tree, False, secrets)


def hidden_command(words: Sequence[str], environ: Mapping[str, str] | None = None) -> list[str]:
    """A command line without its secrets, whether they follow a flag or stand in an override."""
    secrets = _of_environment(environ)
    flagged: set[int] = set()  # the places of words that follow the flag of a secret
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and _hides(name, value):
            secrets.add(value)
        elif word.startswith("-") and place + 1 < len(words) and _hides(word, words[place + 1]):
            flagged.add(place + 1)
            secrets.add(words[place + 1])

    def shown(place: int, word: str) -> str:
        name, equals, value = word.partition("=")
        if place in flagged:
            return HIDDEN
        return f"{name}={HIDDEN}" if equals and _hides(name, value) else _value(word, secrets)

    return [shown(place, word) for place, word in enumerate(words)]


def without(text: str, secrets: Iterable[str], shortest: int = _SHORTEST) -> str:
    """A text, such as an error, without these secrets and without what has the form of one."""
    for secret in sorted(set(secrets), key=lambda text: (-len(text), text)):  # the longest first
        if len(secret) >= shortest:
            text = text.replace(secret, HIDDEN)
    return _formless(text)


def names_secret(name: str) -> bool:
    return any(_SECRET.search(word.lower()) for word in _WORD.findall(name))


def _hides(name: str, value: str) -> bool:
    is_count = _COUNTED.search(name.lower()) and _NUMBER.fullmatch(value)
    return names_secret(name) and not is_count and not _LEFT.match(value)


def _of_environment(environ: Mapping[str, str] | None) -> set[str]:
    environ = os.environ if environ is None else environ
    named = {name: value for name, value in environ.items() if names_secret(name) and name not in _PLACES}
    return {value for value in named.values() if len(value) >= _TELLING}


def _collect(value: Any, secret: bool, into: set[str]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(inner, (secret or names_secret(str(key))) and not _is_block(inner), into)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, secret, into)
    elif secret and isinstance(value, str) and not _LEFT.match(value):
        into.add(value)


def _shown(value: Any, secret: bool, known: set[str]) -> Any:
    if isinstance(value, dict):
        shown = {}
        for key, inner in value.items():
            is_secret = (secret or names_secret(str(key))) and not _is_block(inner)
            is_count = isinstance(inner, int | float) and _COUNTED.search(str(key).lower())
            shown[key] = inner if is_secret and is_count else _shown(inner, is_secret, known)
        return shown
    if isinstance(value, list):
        return [_shown(inner, secret, known) for inner in value]
    if isinstance(value, str):
        return HIDDEN if secret and not _LEFT.match(value) else _value(value, known)
    return HIDDEN if secret and value is not None and not isinstance(value, bool) else value


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and any(kind in value for kind in KINDS)


def _value(text: str, known: set[str]) -> str:
    """A value elsewhere that is a secret, or holds one: a dummy such as `openai` is part of many words."""
    return HIDDEN if len(text) >= _SHORTEST and text in known else without(text, known, _TELLING)


def _formless(text: str) -> str:
    def parameter(match: re.Match[str]) -> str:
        return f"{match[1]}{HIDDEN}" if names_secret(match[2]) or match[2].lower() in _SIGNED else match[0]

    text = _QUERY.sub(parameter, _LOGIN.sub(HIDDEN, text))
    return _ISSUED.sub(HIDDEN, _BEARER.sub(rf"\g<1>{HIDDEN}", _HEADER.sub(rf"\g<1>{HIDDEN}", text)))
