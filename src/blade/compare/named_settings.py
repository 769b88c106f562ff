"""Turn the name of a setting into its kind, and into whether it is a variable at all."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

MECHANICAL = frozenset({"limit", "tools", "verifier", "data"})
KINDS = tuple("model harness skills prompt tools sampling limit verifier data other repeats".split())

_FILE = re.compile(r"[^:\s]+\.(?:ya?ml|json|toml): ")  # "config.yaml: a.b" is the setting a.b of that file
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

# Words of a name that tell its kind; the first kind with a word of the name wins.
_VERIFIER = frozenset("verifier judge grader scorer rubric threshold reward".split())
_SKILLS = frozenset("skill skills".split())
_REPEATS = frozenset("repeat repeats rollouts".split())
_HOW_MANY = frozenset("samples examples tasks problems instances rows".split())
_BY_WORD = {
    kind: frozenset(words.split())
    for kind, words in {
        "limit": "max limit limits timeout timeouts deadline budget cutoff context window memory cpu cpus "
        "gpu gpus concurrency concurrent parallel workers resources retries",
        "sampling": "temperature top p penalty reasoning effort thinking sampling beam beams greedy stop",
        "tools": "tool tools mcp functions",
        "prompt": "prompt prompts instruction instructions template system shot shots",
        "data": "dataset datasets data benchmark split subset",
        "harness": "agent agents harness scaffold framework environment env server",
        "model": "model models checkpoint ckpt weights policy engine quantization dtype precision",
    }.items()
}
_ONE_MODEL = frozenset("policy model name id path checkpoint ckpt weights".split())
_ONE_AGENT = frozenset("agent name".split())

# Where something lies: of a prompt or a data set that may be all that tells of a change, of a server nothing.
_PLACE = frozenset("path paths dir directory folder file files filename root".split())
_SERVER = frozenset("url uri endpoint host hostname address port ip".split())
# What any two runs differ in: when, by whom and under which name they were started, what they left behind.
_RECORD = frozenset(
    "run experiment exp job project session user username owner author email timestamp date datetime created "
    "started finished uuid log logs logging logger wandb mlflow cache output outputs secret password api "
    "verbose debug comment description notes blade".split()
)
_OURS = frozenset({"tasks grouped by"})
_OF_A_FILE = frozenset({"prompt", "tools", "data", "verifier", "skills", "model"})


class Named(NamedTuple):
    """What the name of a setting says."""

    kind: str
    counts: bool  # False: a rollout scores the same whatever it is
    is_place: bool  # its value says where something lies
    same_as: str  # settings that say the same thing under several names have the same word here


def without_file(key: str) -> str:
    """The setting without the file it was read from."""
    return _FILE.sub("", key, count=1)


def tail_of(key: str) -> str:
    return key.rpartition(".")[2]


@lru_cache(maxsize=4096)
def named(key: str) -> Named | None:
    """What a setting is by its name; None if any two runs differ in it and it means nothing.

    Only names of places and records are passed over, and only where no word of theirs names a variable: one
    variable too many is seen, one too few is not.
    """
    tail, words = _words(tail_of(key)), _words(key)
    kind = _kind(tail, words)
    if key in _OURS or (tail & _SERVER and kind != "limit"):
        return None
    is_place = bool(tail & _PLACE)
    if is_place and kind not in _OF_A_FILE:
        return None
    if tail & _RECORD and kind in ("other", "harness"):
        return None
    counts = kind != "repeats" and "seed" not in tail and not _is_how_many(tail)
    return Named(kind, counts, is_place, _same_as(key, kind, tail))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(text))


def _kind(tail: frozenset[str], words: frozenset[str]) -> str:
    """By the words of the last part of the name, then by those before it."""
    if words & _VERIFIER:
        return "verifier"
    if words & _SKILLS:
        return "skills"
    if tail & _REPEATS or {"per", "task"} <= tail:
        return "repeats"
    if _is_how_many(tail):
        return "data"
    if "seed" in tail:
        return "other"
    for part in (tail, words):
        for kind, known in _BY_WORD.items():
            if part & known:
                return kind
    return "other"


def _is_how_many(tail: frozenset[str]) -> bool:
    """Does it say how many tasks are run, not how."""
    return tail == {"limit"} or (bool(tail & _HOW_MANY) and bool(tail & {"num", "n", "max", "limit"}))


def _same_as(key: str, kind: str, tail: frozenset[str]) -> str:
    if kind in ("repeats", "skills"):
        return kind
    if kind == "model" and tail <= _ONE_MODEL:
        return kind
    if kind == "harness" and tail <= _ONE_AGENT:
        return kind
    return f"{kind}: {tail_of(key).lower()}"
