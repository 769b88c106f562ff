"""Tell the overrides of a command that speak of the run from those that speak of its configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from blade.errors import UsageError
from blade_eval.config import directives as written

# NeMo Gym's keys, and the flags that say the same here.
KEYS = {
    "input_jsonl_fpath": "input",
    "output_jsonl_fpath": "output",
    "agent_name": "agent",
    "limit": "limit",
    "num_repeats": "num_repeats",
    "num_repeats_add_seed": "seeds",
    "split": "split",
    "num_samples_in_parallel": "concurrency",
    "resume_from_cache": "resume",
    "prompt_config": "prompt_config",
    "interleave_repeats": "interleave_repeats",
    "disable_aggregation": "disable_aggregation",
    "skills.path": "skills",
}
_PARAMS = "responses_create_params"
_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")
ATTEMPTS_VARIABLE = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"


def told(overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """What overrides say of the run by flag, of the requests by field, and those that are left."""
    flags: dict[str, Any] = {}
    params: dict[str, Any] = {}
    rest: list[str] = []
    for given in overrides:
        override = written.parsed(given)
        name = ".".join(override.keys)
        if override.removes:
            rest.append(given)
        elif name in KEYS:
            flags[KEYS[name]] = override.value
        elif override.keys[0] == _PARAMS and len(override.keys) > 1:
            written.change(params, replace(override, keys=override.keys[1:]))
        elif name == "skills" and isinstance(override.value, Mapping) and "path" in override.value:
            flags["skills"] = override.value["path"]
        elif name == _PARAMS and isinstance(override.value, Mapping):
            params |= override.value
        else:
            rest.append(given)
    return flags, params, tuple(rest)


def repeats(given: Any) -> int | dict[str, int] | None:
    """How many repeats: a number, or numbers by agent with `_default` for the others."""
    if given is None:
        return None
    if isinstance(given, str) and given.strip().startswith("{"):
        given = written.value_of(given, f"--num-repeats {given}")
    if isinstance(given, Mapping):
        return {str(name): _at_least_one(number) for name, number in given.items()}
    return _at_least_one(given)


def _at_least_one(given: Any) -> int:
    try:
        number = int(str(given))
    except ValueError:
        number = 0
    if number < 1 or isinstance(given, bool):
        hint = "a whole number of at least 1, or {AGENT: 4, _default: 1}"
        raise UsageError(f"--num-repeats cannot be {given}", hint, "bad-repeats")
    return number


def shard(given: str | None) -> tuple[int, int] | None:
    """Which shard of how many, from `2/8`."""
    if given is None:
        return None
    match = _SHARD.fullmatch(given.strip())
    which, many = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= which <= many:
        hint = "write it as 1/8 to 8/8: which shard, counted from 1, of how many"
        raise UsageError(f"--shard cannot be {given}", hint, "bad-shard")
    return which, many


def attempts(retries: int | None, notice: Callable[[str], None]) -> int:
    """How many failure lines a rollout may have before it is given up."""
    if retries is not None:
        return retries + 1
    given = os.environ.get(ATTEMPTS_VARIABLE)
    if given is None:
        return 3
    try:
        number = int(given)
    except ValueError:
        number = 0
    if number < 1:
        notice(f"{ATTEMPTS_VARIABLE}={given} is no whole number of at least 1; 3 is taken")
        return 3
    return number
