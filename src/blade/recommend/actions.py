"""Turn a cause and mode into a concrete action: what to change, of which kind, at what effort."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from blade.model import Cause, Mechanism, Rule

# Kind of intervention -> effort class, and what a class costs relative to a changed setting.
EFFORT = {
    "infrastructure": "config",
    "prompt": "prompt",
    "harness": "harness",
    "verifier": "verifier",
    "data": "data",
    "training": "training",
}
COST = {"config": 1.0, "prompt": 1.0, "harness": 2.0, "verifier": 3.0, "data": 5.0, "training": 8.0}
CANNOT_PASS = "a row with it cannot pass, so this is an upper bound"
VERIFIED = "at most, if something always chose the right answer; the estimate is what a vote would win"
_LIMIT = re.compile(r"step|turn|limit|budget|iteration", re.IGNORECASE)
_FORM = re.compile(r"form|extract|pars|answer|output|empty|code", re.IGNORECASE)
VARIES = "varies between repeats"
MAX_NAMED = 3


class Action(msgspec.Struct, frozen=True):
    kind: str
    text: str
    bound: str = ""  # why the gain is an upper bound, if it is one


def of_rule(rule: Rule, details: Sequence[str], cause: Cause) -> Action:
    """What a behaviour asks for, naming the tools or fields it was seen at."""
    named = _named(details)
    text = rule.remedy
    for place in ("`{tool}`", "`{detail}`", "{tool}", "{detail}"):
        text = text.replace(place, named)
    kind = rule.kind
    if cause is Cause.INFRASTRUCTURE:
        kind = "infrastructure"
    elif cause is Cause.TASK_OR_VERIFIER and kind not in ("harness", "verifier"):
        kind = "verifier"
    return Action(kind, text, CANNOT_PASS if rule.terminal else "")


_ADVICE = (  # predicate -> kind of intervention, what to do
    (
        "calls(",
        "prompt",
        "Say in the instructions when `{what}` may be called, and have it refused otherwise",
    ),
    (
        "repeats(",
        "harness",
        "Answer a call of `{what}` that repeats an earlier one unchanged with a note that says so",
    ),
    ("call_failed(", "harness", "Let the errors of `{what}` say how the call is to be mended"),
    ("not gold_found", "harness", "Better the search: other words, more results, a second look ({what})"),
    (
        "final_has(abstention",
        "prompt",
        "Have the model search on before it may say that there is no answer ({what})",
    ),
    ("not gold_ids_touched", "prompt", "Have the model list what the task names and tick off each ({what})"),
    (
        "misses_gold_write",
        "harness",
        "Refuse to finish while something that was asked for is undone ({what})",
    ),
    ("arguments_no_json", "harness", "Constrain the arguments of calls to valid JSON"),
)


def of_mechanism(mechanism: Mechanism) -> Action:
    """What a condition found in the rows asks for."""
    what = mechanism.actionable
    if mechanism.predicate.startswith(("never_calls", "not calls", "never")):
        text = (
            f"Make `{what}` part of the workflow (a rule in the instructions, or a check that refuses the "
            f"final call without it): {mechanism.text}"
        )
        return Action("harness", text)
    for start, kind, advice in _ADVICE:
        if mechanism.predicate.startswith(start):
            return Action(kind, f"{advice.format(what=what)}: {mechanism.text}")
    return Action("prompt", f"Look into `{what}`: {mechanism.text}")


def of_meaning(field: str, value: str, mode: str, cause: Cause) -> Action:
    """What a code of the verifier asks for."""
    told = f"rows with `{field}` = {value} ({mode})"
    if cause is Cause.INFRASTRUCTURE:
        return Action("infrastructure", f"Run the {told} again and keep them out of the score until then")
    if cause is Cause.TASK_OR_VERIFIER:
        return Action("verifier", f"Repair the verifier for {told}, then verify the stored rollouts again")
    if cause is Cause.DATA_ARTIFACT:
        return Action("data", f"Repair the data of {told}")
    if _LIMIT.search(mode):
        text = f"Stop loops before the limit, or raise it if passing rollouts come near it: {told}"
        return Action("harness", text)
    if _FORM.search(mode):
        text = f"State the required output in the instructions and check it before the end: {told}"
        return Action("prompt", text)
    return Action("harness", f"Catch this while the rollout runs and let the model mend it: {told}")


def of_flag(flag: str, text: str, cause: Cause) -> Action:
    """What hard evidence against tasks asks for."""
    if cause is Cause.DATA_ARTIFACT:
        return Action("data", f"Repair the task data ({flag.replace('_', ' ')}): {text}")
    return Action("verifier", f"Repair the verifier or the tasks ({flag.replace('_', ' ')}): {text}")


_JUDGED = {  # cause -> kind of intervention, what to do about what somebody saw
    Cause.BEHAVIOUR: ("prompt", "Instruct against it, or have the harness catch it"),
    Cause.KNOWLEDGE_GAP: ("training", "Give the model what it lacks"),
    Cause.UNRELIABLE_KNOWLEDGE: ("training", "Make it reliable"),
    Cause.INFRASTRUCTURE: ("infrastructure", "Repair it and run the tasks again"),
    Cause.TASK_OR_VERIFIER: ("verifier", "Repair the task or its verifier"),
    Cause.DATA_ARTIFACT: ("data", "Repair the data"),
}


def of_judged(mode: str, mechanism: str, cause: Cause, tasks: Sequence[str]) -> Action | None:
    """What a judgement asks for, in the words of its author; None where it names no cause."""
    if cause not in _JUDGED:
        return None
    kind, advice = _JUDGED[cause]
    named = ", ".join(f"`{task}`" for task in tasks[:MAX_NAMED])
    more = f" and {len(tasks) - MAX_NAMED} more" if len(tasks) > MAX_NAMED else ""
    return Action(kind, f"{advice} ({mode}; tasks {named}{more}): {mechanism}")


def of_result(mode: str, tasks: Sequence[str]) -> Action | None:
    """What tasks ask for that show no behaviour to change; None where nobody can say."""
    named = ", ".join(f"`{task}`" for task in tasks[:MAX_NAMED])
    more = f" and {len(tasks) - MAX_NAMED} more" if len(tasks) > MAX_NAMED else ""
    if mode == "same wrong result":
        text = f"Give the model what it lacks on tasks {named}{more} (training data, or a reference to read)"
        return Action("training", f"{text}: most of their repeats end in one and the same wrong result")
    if mode == "different wrong results":
        return Action("training", f"Train on tasks like {named}{more}: their repeats fail in different ways")
    if mode == VARIES:
        text = f"Sample several answers and choose among them (vote or verify) on tasks like {named}{more}"
        return Action("harness", f"{text}: the model can solve them and does not do so every time", VERIFIED)
    return None


def _named(details: Sequence[str]) -> str:
    """The commonest details, as code."""
    counted = Counter(detail for detail in details if detail)
    first = sorted(counted, key=lambda detail: (-counted[detail], detail))[:MAX_NAMED]
    return ", ".join(f"`{detail}`" for detail in first) or "the tool concerned"
