"""Turn a feature into its parts, its kind and how much a reader can do with it."""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"(?P<count>#?)(?P<name>\w+)(?:\((?P<inner>.*?)\))?(?:>=(?P<cut>[-+.\deE]+))?$", re.DOTALL
)

# How far up a predicate stands among equals: what a reader can act on before what merely goes with it.
WEIGHTS = {
    "gold_found": 0.95, "gold_ids_touched": 0.9, "misses_gold_write": 0.8, "abstention": 0.8,
    "calls": 1.0, "runs": 0.9, "checks": 0.95, "writes": 0.5, "call_failed": 0.9, "repeats": 0.85,
    "arg": 0.85, "arguments_no_json": 0.9, "first_call": 0.7, "cut_off": 0.9, "no_message": 0.7,
    "field": 0.7, "final_has": 0.7, "final_script": 0.7, "final_is": 0.7, "answer only": 0.7,
    "final_empty": 0.6,
    "n_calls": 0.25, "n_tools": 0.25, "n_writes": 0.45, "n_failed": 0.6, "n_repeated": 0.6,
    "n_user_turns": 0.2, "final_chars": 0.2, "length": 0.2, "output_says": 0.5, "judge_says": 0.2,
    "says": 0.15, "opens_with": 0.15, "closes_with": 0.15, "last_call": 0.3, "ends": 0.25,
    "last_call_failed": 0.5, "effort": 0.25,
}  # fmt: skip
# What a rollout did of its own accord, before it could know how it went.
DONE = frozenset(
    {"calls", "runs", "checks", "writes", "call_failed", "repeats", "arg", "first_call", "gold_found"}
)
# How a rollout stands to what its task expects; of these, what comes close to the reward.
GOLD = frozenset({"gold_found", "gold_ids_touched", "misses_gold_write"})
NEAR = frozenset({"gold_ids_touched", "misses_gold_write"})
# Acts that a few rollouts may tell of in a small run, where the task says what is expected.
ASKED = GOLD | {"calls", "n_writes"}
# How much there was of something: it tells less than any act that tells the same.
AMOUNTS = frozenset({"final_chars", "length", "n_calls", "n_tools", "n_user_turns", "effort"})
ACTS = DONE | GOLD | {"abstention"}
# What a rollout may be blamed for never doing; of other features the rarer side is the telling one.
OMITTED = (DONE | {"gold_ids_touched"}) - {"first_call", "call_failed", "repeats"}
# What only a rollout with a final text can have.
FINAL = frozenset(
    {"final_has", "final_is", "final_script", "final_chars", "says", "opens_with", "closes_with"}
)
# What tells only where it is present: everybody lacks most words, and reasons more or less.
PRESENT = frozenset({"says", "opens_with", "closes_with", "judge_says", "answer only"})
WORDS = frozenset({"says", "opens_with", "closes_with", "judge_says", "output_says"})
# What a rollout does last often follows from how it went.
LATE = frozenset({"ends", "last_call", "last_call_failed", "closes_with", "says", "opens_with", "judge_says"})
_SUBJECTS = {
    "gold_found": "tool results",
    "gold_ids_touched": "ids given to calls",
    "misses_gold_write": "expected changes",
    "abstention": "final text",
    "answer only": "final text",
}
REWARD = re.compile(
    r"(?:^|[._\-\s])(?:rewards?|scores?|scored?|correct(?:ness)?|incorrect|success(?:ful)?|pass(?:ed|es)?|fail(?:ed|ure)?"
    r"|match(?:es|ed)?|accuracy|acc|verdict|grades?|graded|solved|resolved|equals?|f1|em|bleu|rouge|outcome|win|won|hash"
    r"|r)(?:$|[._\-\s])|reward|_match",
    re.IGNORECASE,
)  # fmt: skip
IDENTITY = re.compile(r"^_ng_|(?:^|[._])(?:id|ids|idx|index|uuid|seed|hash|timestamp)$", re.IGNORECASE)
EFFORT = re.compile(
    r"cost|duration|seconds|latency|elapsed|wall|(?:^|[._])time(?:$|[._])|_ms$|_s$|tokens|timestamp",
    re.IGNORECASE,
)


def split(feature: str) -> tuple[str, str, str | None, bool]:
    """Name, what stands in its brackets, the cut of a number, and whether it counts."""
    hit = _PARTS.match(feature)
    if hit is None:
        return feature, "", None, False
    return hit["name"], hit["inner"] or "", hit["cut"], bool(hit["count"])


def kind(feature: str) -> str:
    """The key of WEIGHTS that a feature belongs to."""
    name, inner, cut, _ = split(feature)
    if name == "field" and EFFORT.search(inner.partition("=")[0]):
        return "effort"
    if name in ("final_has", "final_is") and inner in ("abstention", "answer only"):
        return inner
    if name == "calls" and cut is not None:
        return "n_calls"
    return name


def explains(feature: str) -> bool:
    """Whether a feature is something a rollout did or left undone, not how it reads or how long it is."""
    name, inner, _, counts = split(feature)
    return (name in DONE and bool(inner) and not counts) or kind(feature) in ("gold_found", "abstention")


def weight(feature: str) -> float:
    """How much a reader can do with a feature."""
    return WEIGHTS.get(kind(feature), 0.5)


def is_word(feature: str) -> bool:
    """Whether a feature is wording or a chosen value: they are many and share a small part of the risk."""
    name, inner, _, _ = split(feature)
    return name in WORDS or (name == "arg" and "=" in inner)


def tool_of(feature: str) -> str:
    """The tool a feature is about; empty if it is about none."""
    name, inner, _, _ = split(feature)
    if name in (
        "calls",
        "writes",
        "checks",
        "call_failed",
        "repeats",
        "first_call",
        "last_call",
        "arguments_no_json",
    ):
        return inner
    if name in ("arg", "length"):
        return inner.partition("=")[0].rpartition(".")[0]
    return inner.partition(": ")[0] if name == "output_says" else ""


def stem(feature: str) -> str:
    """A feature without its cut: two cuts of one number are one finding."""
    return feature.partition(">=")[0].removeprefix("#")


def subject(feature: str) -> str:
    """The tool, field or setting that a reader would change."""
    name, inner, _, _ = split(feature)
    if kind(feature) in _SUBJECTS:
        return _SUBJECTS[kind(feature)]
    if name == "arg":
        return inner.partition("=")[0]
    if name == "field":
        return inner.partition("=")[0]
    return tool_of(feature) or (inner if name in ("runs", "cut_off") else name)
