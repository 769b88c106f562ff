"""Turn the place of a text in a row into how it is looked at: as an id, as a name, or as any text."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from blade.model.rows import ID_FIELDS
from blade.sanitize.named import secret_name, secret_value
from blade.sanitize.policy import Policy

# Texts that rows are joined and counted by stand here, and nowhere else.
_TASKS = frozenset(tuple(name.split(".")) for name in ID_FIELDS) - {("name",)}
# These name a task only where nothing better does; else they may well name a person.
WEAK = frozenset(("id", "uuid", "task_name"))
STRONG = re.compile(r'"(?:_ng_task_index|task_id|problem_id|instance_id|question_id)"\s*:')
_VERIFIER = frozenset({(), ("verifier_metadata",), ("metadata",), ("verifier",), ("verification",)})
_CODE = re.compile(r"(?:\w*_)?(?:kind|code|class|category|verdict|label|outcome)")
# What the format itself names: models, tools, roles, states.
_FORMAT = frozenset(
    "response responses_create_params input output content tools agent_ref messages tool_calls function "
    "choices message trajectory delegated_response subagent_trajectories reasoning summary "
    "tool_choice".split()
)
_TOOLS = frozenset("tools function output agent_ref tool_choice".split())
_NAMES = frozenset(
    "id uuid call_id tool_call_id task_name name type role status object model finish_reason".split()
)
# Below a key such as `credentials`: what holds the secret, who it is of, and what only tells about it.
_SECRETS = frozenset("pass pw pin value secret password key plain plaintext".split())
_USERS = frozenset("user login account usr".split())
_ABOUT = frozenset(
    "type description title format pattern enum default const examples name label placeholder url uri host "
    "port email id status expires expires_at created created_at updated_at scope scopes provider method "
    "items properties required".split()
)
_NAMING = frozenset("name key variable var env env_var header".split())
_VALUES = frozenset("value val content data secret_value".split())
_NAME_LETTERS = 60
_NUMERIC = re.compile(r"(?i)\w*(?:pass(?:word|wd|code|phrase)|pwd|secret|api_?key|credential)|pin")


class Role(msgspec.Struct, frozen=True):
    """How a text is looked at: under which name, and whether rows are joined or named by it."""

    name: str = ""
    is_id: bool = False  # of a task, or a verifier's code: it stays, unless it is a secret or a home
    is_name: bool = False  # what the format names: no word is private there for looking random
    is_numeric: bool = False  # a number here is a secret
    is_thing: bool = False  # a tool, a model or an agent is named here, never a person


def role(path: tuple[str, ...], holder: str, is_row: bool, policy: Policy) -> Role:
    """The role of the values at a path; `holder` is the key above that names a secret, if any does."""
    key = path[-1]
    if holder:
        return _held(key)
    name_of_secret = secret_name(key)
    if is_row and not name_of_secret:
        if path in _TASKS or _is_code(path) or ".".join(path) in policy.ids:
            return Role(key, is_id=True, is_name=True)
        if _is_named(path):
            return Role(key, is_name=True, is_thing=key == "model" or _names_tool(path))
    return Role(key, is_numeric=name_of_secret and _NUMERIC.fullmatch(key) is not None)


def _held(key: str) -> Role:
    """The role of what lies below the name of a secret."""
    if key.lower() in _SECRETS:
        return Role("password", is_numeric=True)
    if key.lower() in _USERS:
        return Role("username")
    if key.lower() in _ABOUT or secret_name(key):
        return Role(key, is_numeric=_NUMERIC.fullmatch(key) is not None)
    return Role("token")


@lru_cache(maxsize=10_000)
def holds(key: str) -> bool:
    """Does the name of an object or a list say that secrets lie in it."""
    lowered = key.lower()
    if lowered.endswith(("signature", "tokens")):
        return False
    return secret_name(key) or (lowered.endswith("s") and secret_name(key[:-1]))


def member(key: str, own: Role) -> Role:
    """The role of what a list of secrets lists."""
    if secret_name(key):
        return own
    return Role("password" if key.lower().endswith("passwords") else "token")


def naming(path: tuple[str, ...], text: str) -> str:
    """The name of a secret, where it is a value of its own: `{"name": "DB_PASSWORD", "value": ...}`."""
    if len(text) > _NAME_LETTERS or not secret_name(text):
        return ""
    return text if text.lower() == "authorization" or (path and path[-1].lower() in _NAMING) else ""


def is_beside(path: tuple[str, ...], name: str) -> bool:
    """Is it where the value of what was named before stands; a header and its value may be a plain pair."""
    return name.lower() == "authorization" or (bool(path) and path[-1].lower() in _VALUES)


def is_secret_number(text: str) -> bool:
    """Can these digits, under the name of a secret, be it."""
    return secret_value("password", text)


def _is_code(path: tuple[str, ...]) -> bool:
    return path[:-1] in _VERIFIER and _CODE.fullmatch(path[-1]) is not None


def _is_named(path: tuple[str, ...]) -> bool:
    """Is it where the format, and not its content, names something."""
    key = path[-1]
    if len(path) == 1:
        return key in _NAMES or key.endswith(("_id", "_index"))
    return key in _NAMES and all(part in _FORMAT for part in path[:-1])


def _names_tool(path: tuple[str, ...]) -> bool:
    return path[-1] == "name" and len(path) > 1 and path[-2] in _TOOLS
